/* SPDX-License-Identifier: Apache-2.0 */
/* link_mpi.c - how long messages take on their way, by size, and the line that fits that (model/link.h). */
#include "model/link.h"
#include "runtime/mpi/rules_mpi.h"

#include <math.h>
#include <stdlib.h>

enum { MPI_LINK_MOVED_MAX = 1 << 16 };

/* The first are kept, then one in so many takes the place of another: each has the same chance. */
static void link_keep(struct mpi_link_size *s, uint64_t delay_ns)
{
	uint64_t n = s->nr_seen++;
	/* (a multiplicative hash of the message's number: repeatable, and even) */
	uint64_t at = n < MPI_LINK_DELAYS ? n : (n * UINT64_C(0x9e3779b97f4a7c15) >> 32) % (n + 1);
	if (at < MPI_LINK_DELAYS)
		s->delay_ns[at] = (double)(delay_ns ? delay_ns : 1);
}

void model_mpi_note_send(struct model *m, uint64_t lasted_ns)
{
	link_keep(&m->known.mpi->links.send, lasted_ns);
}

void model_mpi_note_moved(
	struct model *m, uint32_t state, uint64_t nr_bytes, uint64_t ago_ns, uint64_t delay_ns)
{
	struct mpi_links *x = &m->known.mpi->links;
	uint32_t ago = ago_ns ? 64 - (uint32_t)__builtin_clzll(ago_ns) : 0;
	uint64_t i, hi = (uint64_t)ago << 32 | state;
	if (!base_map_get(&x->moved_of, hi, nr_bytes, &i)) {
		if (x->nr_moved == MPI_LINK_MOVED_MAX ||
			!model_grow(m, &x->moved, &x->moved_capacity, x->nr_moved + 1,
				sizeof *x->moved))
			return;
		i = x->nr_moved++;
		x->moved[i] =
			(struct mpi_link_moved){.state = state, .ago = ago, .nr_bytes = nr_bytes};
		model_put(m, &x->moved_of, hi, nr_bytes, i);
	}
	x->moved[i].nr++;
	x->moved[i].total_ns += delay_ns;
}

void model_mpi_note_delay(struct model *m, uint64_t nr_bytes, uint64_t delay_ns)
{
	struct mpi_links *x = &m->known.mpi->links;
	uint32_t i = 0;
	while (i < x->nr_sizes && x->size[i].nr_bytes != nr_bytes)
		i++;
	if (i == MPI_LINK_SIZES)
		return;
	struct mpi_link_size *s = &x->size[i];
	s->nr_bytes = nr_bytes;
	x->nr_sizes += i == x->nr_sizes;
	link_keep(s, delay_ns);
}

static int link_order(const void *pa, const void *pb)
{
	const double a = *(const double *)pa, b = *(const double *)pb;
	return (a > b) - (a < b);
}

static double link_median(double *v, size_t nr)
{
	qsort(v, nr, sizeof *v, link_order);
	return nr % 2 ? v[nr / 2] : (v[nr / 2 - 1] + v[nr / 2]) / 2;
}

static uint32_t link_nr_kept(const struct mpi_link_size *s)
{
	return s->nr_seen < MPI_LINK_DELAYS ? (uint32_t)s->nr_seen : MPI_LINK_DELAYS;
}

static double link_median_of(const struct mpi_link_size *s)
{
	double v[MPI_LINK_DELAYS];
	uint32_t nr = link_nr_kept(s);
	for (uint32_t i = 0; i < nr; i++)
		v[i] = s->delay_ns[i];
	return link_median(v, nr);
}

/* Least squares of (latency + n * per_byte) / delay - 1, where neither is below 0. */
static void link_solve(const struct mpi_links *x, struct model_link *ret)
{
	double a = 0, b = 0, c = 0, d = 0,
	       e = 0; /* sums of 1, n, n * n, by delay; of what they make */
	for (uint32_t i = 0; i < x->nr_sizes; i++) {
		double delay = link_median_of(&x->size[i]), n = (double)x->size[i].nr_bytes / delay;
		a += 1 / (delay * delay);
		b += n / delay;
		c += n * n;
		d += 1 / delay;
		e += n;
	}
	double determinant = a * c - b * b;
	bool is_line = x->nr_sizes > 1 && determinant > 1e-12 * a * c;
	ret->latency_ns = is_line ? (d * c - e * b) / determinant : d / a;
	ret->ns_per_byte = is_line ? (a * e - b * d) / determinant : 0;
	if (ret->latency_ns < 0) {
		ret->latency_ns = 0;
		ret->ns_per_byte = e / c;
	} else if (ret->ns_per_byte < 0) {
		ret->latency_ns = d / a;
		ret->ns_per_byte = 0;
	}
}

static double link_error(const struct mpi_links *x, const struct model_link *l)
{
	static const size_t most = (size_t)MPI_LINK_SIZES * MPI_LINK_DELAYS;
	double *off = base_alloc(most * sizeof *off), error;
	size_t nr = 0;
	if (!off)
		return 1;
	for (uint32_t i = 0; i < x->nr_sizes; i++) {
		const struct mpi_link_size *s = &x->size[i];
		double expected = l->latency_ns + l->ns_per_byte * (double)s->nr_bytes;
		for (uint32_t k = 0; k < link_nr_kept(s); k++)
			off[nr++] = (s->delay_ns[k] > expected ? s->delay_ns[k] - expected
							       : expected - s->delay_ns[k]) /
				    s->delay_ns[k];
	}
	error = link_median(off, nr);
	base_free(off);
	return error;
}

bool model_link_fit(const struct model *m, struct model_link *ret)
{
	const struct mpi_links *x = m->known.mpi ? &m->known.mpi->links : NULL;
	*ret = (struct model_link){0};
	if (!x || !x->nr_sizes)
		return false;
	ret->nr_sizes = x->nr_sizes;
	for (uint32_t i = 0; i < x->nr_sizes; i++)
		ret->nr_messages += x->size[i].nr_seen;
	link_solve(x, ret);
	ret->error = link_error(x, ret);
	ret->overhead_ns = x->send.nr_seen ? link_median_of(&x->send) : 0;
	return true;
}

/* Latency without what its two ends do (2o, as far as a send shows o): for how much, and between
 * which ends. Where no send shows it, up to half of it may be theirs. */
static void link_latency(const struct model_link *l, double ret[3])
{
	const double o = l->overhead_ns > 0 ? l->overhead_ns : l->latency_ns / 4;
	const double twice[3] = {l->overhead_ns > 0 ? 2 * o : 0, 3 * o, l->overhead_ns > 0 ? o : 0};
	for (unsigned i = 0; i < 3; i++)
		ret[i] = l->latency_ns > twice[i] ? l->latency_ns - twice[i] : 0;
}

/* What is on the path need not be of the usual size: the interval reaches as far as sizes deviate,
 * and as the fit is off. */
static void link_interval(double mean, double squares, double error, double *low, double *high)
{
	const double nine_of_ten = 1.645; /* standard deviations */
	double variance = squares - mean * mean,
	       off = (variance > 0 ? nine_of_ten * sqrt(variance) : 0) + error * mean;
	*low = *low - off > 0 ? *low - off : 0;
	*high = *high + off < 1 ? *high + off : 1;
}

/* Of what took so long, how much a part of `part_ns` a message is. A message that was sent before its
 * receiver came is shorter by all of that part, if it still was on its way; else not at all. */
static double link_part(
	const struct mpi_link_moved *v, double part_ns, double expected_ns, double all_ns)
{
	if (!v->ago)
		return part_ns / expected_ns;
	if (ldexp(1, (int)v->ago - 1) >= expected_ns || all_ns <= 0)
		return 0;
	double share = part_ns * (double)v->nr / all_ns;
	return share < 1 ? share : 1;
}

bool model_link_share(const struct model *m, uint32_t state, const struct model_link *l,
	struct model_link_share *ret)
{
	const struct mpi_links *x = m->known.mpi ? &m->known.mpi->links : NULL;
	double all_ns = 0, of_latency[3], sum[3] = {0}, bytes = 0, latency2 = 0, bytes2 = 0;
	*ret = (struct model_link_share){0};
	link_latency(l, of_latency);
	for (size_t i = 0; x && i < x->nr_moved; i++) {
		const struct mpi_link_moved *v = &x->moved[i];
		double by_bytes = l->ns_per_byte * (double)v->nr_bytes,
		       expected = l->latency_ns + by_bytes, ns = (double)v->total_ns;
		if (v->state != state || expected <= 0)
			continue;
		all_ns += ns;
		for (unsigned k = 0; k < 3; k++)
			sum[k] += ns * link_part(v, of_latency[k], expected, ns);
		double latency = link_part(v, of_latency[0], expected, ns),
		       transfer = link_part(v, by_bytes, expected, ns);
		latency2 += ns * latency * latency;
		bytes += ns * transfer;
		bytes2 += ns * transfer * transfer;
	}
	if (all_ns <= 0)
		return false;
	ret->latency = sum[0] / all_ns;
	ret->latency_low = sum[1] / all_ns;
	ret->latency_high = sum[2] / all_ns;
	ret->bytes = ret->bytes_low = ret->bytes_high = bytes / all_ns;
	link_interval(
		ret->latency, latency2 / all_ns, l->error, &ret->latency_low, &ret->latency_high);
	link_interval(ret->bytes, bytes2 / all_ns, l->error, &ret->bytes_low, &ret->bytes_high);
	return true;
}
