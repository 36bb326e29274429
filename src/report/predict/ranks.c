/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ranks.c - what of an MPI program is not in the trace: ranks that were not recorded, and the one
 * that ended first and badly, for which the others then waited.
 */
#include "report/predict/predictor.h"
#include "base/names.h"

#include <string.h>
#include <sys/wait.h>

enum { NAMED = 8 }; /* runs of ranks, in a sentence */

struct ranks_list {
	struct base_str text;
	uint32_t nr, first, last, nr_runs;
};

static void ranks_add_run(struct ranks_list *l)
{
	if (!l->nr || l->nr_runs++ >= NAMED)
		return;
	base_str_addf(&l->text, "%s%u", l->text.length ? ", " : "", l->first);
	if (l->last > l->first)
		base_str_addf(&l->text, l->last == l->first + 1 ? ", %u" : " to %u", l->last);
}

/* In ascending order. */
static void ranks_add(struct ranks_list *l, uint32_t rank)
{
	bool goes_on = l->nr && rank == l->last + 1;
	if (!goes_on)
		ranks_add_run(l);
	l->first = goes_on ? l->first : rank;
	l->last = rank;
	l->nr++;
}

static const char *const ranks_lacks[2] = {"has no trace: what it held up is not seen",
	"have no trace: what they held up is not seen"};
static const char *const ranks_cut[2] = {"has no end in the trace: what it did last is not seen",
	"have no end in the trace: what they did last is not seen"};

/* "rank 3 of 8 has", "ranks 3, 5 to 7 of 8 have"; nothing of none. */
static void ranks_add_text(
	struct base_str *out, struct ranks_list *l, uint32_t nr_ranks, const char *const does[2])
{
	ranks_add_run(l);
	if (l->nr)
		base_str_addf(out, "%s %s%s of %u %s", l->nr == 1 ? "rank" : "ranks",
			base_str_text(&l->text), l->nr_runs > NAMED ? " and others" : "", nr_ranks,
			does[l->nr > 1]);
	base_str_fini(&l->text);
}

/* NULL: no memory. */
static const char *ranks_keep(struct base_arena *arena, struct ranks_list *l, uint32_t nr_ranks,
	const char *const does[2])
{
	struct base_str s = {0};
	ranks_add_text(&s, l, nr_ranks, does);
	return report_keep(arena, &s);
}

void report_missing_ranks(struct base_str *out, const bool *recorded, uint32_t nr_ranks)
{
	struct ranks_list missing = {0};
	for (uint32_t i = 0; i < nr_ranks; i++)
		if (!recorded[i])
			ranks_add(&missing, i);
	ranks_add_text(out, &missing, nr_ranks, ranks_lacks);
}

static bool ranks_ended_badly(const struct model_mpi_rank *r)
{
	bool signalled = r->ended && r->status >= 0 && WIFSIGNALED((int)r->status);
	return r->aborted || (r->ended && (!r->finalized || signalled));
}

static const char *ranks_keep_end(struct base_arena *arena, struct model *m,
	const struct report_world *w, const struct model_mpi_rank *r)
{
	struct base_str s = {0};
	int status = (int)r->status;
	const char *where = r->aborted ? model_site_text(m, r->abort_site) : "";
	base_str_addf(&s, "rank %u of %u ", w->first_ended, w->nr_ranks);
	if (r->aborted)
		base_str_addf(&s, "called MPI_Abort%s%s", *where ? " at " : "", where);
	else if (r->status >= 0 && WIFSIGNALED(status) && base_signal_name(WTERMSIG(status)))
		base_str_addf(&s, "was ended by SIG%s", base_signal_name(WTERMSIG(status)));
	else if (r->status >= 0 && WIFEXITED(status))
		base_str_addf(
			&s, "ended without MPI_Finalize, with status %d", WEXITSTATUS(status));
	else
		base_str_add(&s, "ended without MPI_Finalize");
	if (r->ended) {
		base_str_add(&s, ", ");
		base_str_add_ns(&s, r->end_ns);
		base_str_add(&s, " after the start");
	}
	base_str_add(&s, ": no other ended badly before it");
	return report_keep(arena, &s);
}

static bool ranks_fill_world(struct report_world *w, struct base_arena *arena, struct model *m,
	const struct model_mpi_world *world)
{
	struct ranks_list missing = {0}, unfinished = {0};
	struct model_mpi_rank first = {0};
	*w = (struct report_world){.nr_ranks = world->nr_ranks,
		.nr_recorded = world->nr_recorded,
		.first_ended = REPORT_NONE,
		.ended = ""};
	for (uint32_t i = 0; i < w->nr_ranks; i++) {
		struct model_mpi_rank r = model_mpi_rank_of(m, world, i);
		if (!r.recorded)
			ranks_add(&missing, i);
		else if (!r.ended && !r.finalized && !r.aborted)
			ranks_add(&unfinished, i);
		else if (ranks_ended_badly(&r) &&
			 (w->first_ended == REPORT_NONE || r.end_ns < first.end_ns)) {
			w->first_ended = i;
			first = r;
		}
	}
	w->missing = ranks_keep(arena, &missing, w->nr_ranks, ranks_lacks);
	w->unfinished = ranks_keep(arena, &unfinished, w->nr_ranks, ranks_cut);
	if (w->first_ended != REPORT_NONE)
		w->ended = ranks_keep_end(arena, m, w, &first);
	return w->missing && w->unfinished && w->ended;
}

enum base_status report_fill_ranks(
	struct report_ranks *ret, struct base_arena *arena, struct model *m, struct base_err *err)
{
	size_t nr;
	const struct model_mpi_world *world = model_mpi_worlds(m, &nr);
	*ret = (struct report_ranks){0};
	ret->world = report_array(arena, nr, sizeof *ret->world);
	if (!ret->world)
		return report_no_memory(err);
	for (; ret->nr < nr; ret->nr++)
		if (!ranks_fill_world(&ret->world[ret->nr], arena, m, &world[ret->nr]))
			return report_no_memory(err);
	return BASE_OK;
}
