/* SPDX-License-Identifier: Apache-2.0 */
/* gpu_links.c - what a collective operation costs. */
#include "report/gpu_links.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

enum { SIZES_APART = 2 }; /* a fit needs sizes that differ by that */

/* Rounds: how often each rank hands on what it has; each moves (n - 1)/n of all, or all if it is whole. */
static const struct links_kind {
	const char *name; /* letters of the operation's name, small */
	double rounds;
	bool is_whole;
} links_kinds[] = {
	{"allreduce", 2, false},
	{"allgather", 1, false},
	{"reducescatter", 1, false},
	{"alltoall", 1, false},
	{"broadcast", 1, true},
	{"reduce", 1, true},
	{"send", 0, true},
	{"recv", 0, true},
};

/* The longest name that is in it comes first in the table. */
static const struct links_kind *links_kind_of(const char *operation)
{
	char letters[128];
	size_t nr = 0;
	for (const char *p = operation; *p && nr + 1 < sizeof letters; p++)
		if (isalpha((unsigned char)*p))
			letters[nr++] = (char)tolower((unsigned char)*p);
	letters[nr] = 0;
	for (size_t i = 0; i < BASE_COUNT(links_kinds); i++)
		if (strstr(letters, links_kinds[i].name))
			return &links_kinds[i];
	return &links_kinds[0];
}

static double links_steps(const struct links_kind *k, double ranks, bool is_tree)
{
	if (!(ranks > 1) || !(k->rounds > 0))
		return 1;
	return k->rounds * (is_tree ? log2(ranks) : ranks - 1);
}

static double links_bytes(const struct links_kind *k, const struct report_transfer *t, double ranks)
{
	double part = k->is_whole || !(ranks > 1) ? 1 : (ranks - 1) / ranks;
	return t->bytes * part * (k->rounds > 0 ? k->rounds : 1);
}

struct report_links report_links_fit(const struct report_transfer *t, size_t nr)
{
	double ss = 0, sb = 0, bb = 0, st = 0, bt = 0, least = INFINITY, most = 0;
	for (size_t i = 0; i < nr; i++) {
		const struct links_kind *k = links_kind_of(t[i].operation);
		/* weights: what all of them took, so that short ones count as much as long ones */
		double w = t[i].mean_ns > 0 ? t[i].times / t[i].mean_ns : 0;
		double s = links_steps(k, t[i].ranks, false), b = links_bytes(k, &t[i], t[i].ranks);
		ss += w * s * s;
		sb += w * s * b;
		bb += w * b * b;
		st += w * s * t[i].mean_ns;
		bt += w * b * t[i].mean_ns;
		least = t[i].bytes < least ? t[i].bytes : least;
		most = t[i].bytes > most ? t[i].bytes : most;
	}
	double d = ss * bb - sb * sb;
	struct report_links l = {0};
	bool differ = most >= SIZES_APART * least && d > 1e-9 * ss * bb;
	if (differ) {
		l.step_ns = (st * bb - bt * sb) / d;
		l.byte_ns = (bt * ss - st * sb) / d;
	}
	l.is_fitted = differ && l.step_ns >= 0 && l.byte_ns >= 0;
	if (!l.is_fitted)
		l = (struct report_links){.byte_ns = bb > 0 ? bt / bb : 0};
	return l;
}

double report_links_share(const struct report_links *l, const struct report_transfer *t)
{
	const struct links_kind *k = links_kind_of(t->operation);
	double bytes_ns = l->byte_ns * links_bytes(k, t, t->ranks);
	double all_ns = bytes_ns + l->step_ns * links_steps(k, t->ranks, false);
	return all_ns > 0 ? bytes_ns / all_ns : 0;
}

double report_links_ranks(
	const struct report_links *l, const struct report_transfer *t, double ranks, bool is_tree)
{
	const struct links_kind *k = links_kind_of(t->operation);
	double share = report_links_share(l, t), now = links_bytes(k, t, t->ranks);
	double bytes = now > 0 ? links_bytes(k, t, ranks) / now : 1;
	double steps = links_steps(k, ranks, is_tree) / links_steps(k, t->ranks, is_tree);
	return share * bytes + (1 - share) * steps;
}
