/* SPDX-License-Identifier: Apache-2.0 */
/* finding.c - the first sentence: what the critical path is made of most, in words. */
#include "report/private.h"

#include <string.h>

enum { DOMINANT_PERCENT = 15 };

struct subject {                      /* the longest topic of the path */
	const struct report_row *row; /* its longest row */
	double path_ns;
	bool waited_for; /* a lock that is held: others waited, all in all, for waited_ns */
	uint64_t waited_ns;
};

static void finding_add_where(struct base_str *s, const char *lead, const char *where)
{
	if (*where)
		base_str_addf(s, "%s%s", lead, where);
}

/* "in ladder/worker #2"; of many, through which the path goes: ", through 4 threads (ladder/worker)". */
static void finding_add_who(struct base_str *s, const char *lead, const struct subject *u)
{
	if (*u->row->topic_actor)
		base_str_addf(s, "%s%s", lead, u->row->topic_actor);
	else
		base_str_addf(s, ", through %u %ss (%s)", u->row->nr_topic_actors,
			model_noun_text[u->row->noun], u->row->group);
}

/* ", thread ladder/worker #2" */
static void finding_add_actor(struct base_str *s, const struct subject *u)
{
	const bool says_itself = u->row->noun == MODEL_NOUN_none || u->row->noun == MODEL_NOUN_rank;
	base_str_add(s, *u->row->topic_actor ? ", " : "");
	if (*u->row->topic_actor && !says_itself)
		base_str_addf(s, "%s ", model_noun_text[u->row->noun]);
	finding_add_who(s, "", u);
}

/* "program+0x12ab" is no function, and C++ names have their arguments. */
static bool finding_is_plain(const char *function)
{
	return !strpbrk(function, "+(");
}

/* No function has it all: "computing after f (f.c:7), 25 % of it in a, 17 % of it in b". */
static void finding_add_functions(struct base_str *s, const struct report_row *row)
{
	enum { NAMED = 2 };
	static const double NAMED_SHARE_MIN = 0.01;
	base_str_add(s, "computing");
	if (row->cause == MODEL_CAUSE_run_spread)
		base_str_addf(s, " in %s", row->what);
	else if (row->cause == MODEL_CAUSE_run_after || row->cause == MODEL_CAUSE_run)
		base_str_addf(s, " %s", *row->where ? row->where : row->what);
	if (!row->nr_functions)
		base_str_add(s, " (no samples say in which function)");
	for (size_t i = 0; i < row->nr_functions && i < NAMED; i++) {
		if (i && row->function[i].share < NAMED_SHARE_MIN)
			break;
		base_str_addf(s, ", %.0f %% of it in %s", row->function[i].share * 100,
			*row->function[i].said ? row->function[i].said : row->function[i].where);
	}
}

static void finding_add_run(struct base_str *s, const struct subject *u)
{
	enum model_cause cause = u->row->cause;
	const struct report_main *f = &u->row->main;
	const char *function = f->name ? f->name : u->row->what;
	const char *where = f->name && *f->where ? f->where : u->row->where;
	bool is_function = f->name || cause == MODEL_CAUSE_run_function;
	bool is_place = cause == MODEL_CAUSE_run_after || cause == MODEL_CAUSE_run;
	if (!f->name && (is_place || u->row->nr_functions)) {
		finding_add_functions(s, u->row);
	} else {
		base_str_addf(s, "computing in %s%s", function,
			is_function && finding_is_plain(function) ? "()" : "");
		finding_add_where(s, " (", where);
		base_str_add(s, *where ? ")" : "");
	}
	finding_add_actor(s, u);
}

static void finding_add_latency(struct base_str *s, const struct report_row *row)
{
	static const struct {
		enum model_cause cause;
		const char *before, *behind; /* around what the state is about */
	} text[] = {
		{MODEL_CAUSE_handover, "the hand-off through ",
			": the receiver wakes up late, or waits for a processor"},
		{MODEL_CAUSE_handover_flush, "the hand-off of ", ", which start late"},
		{MODEL_CAUSE_handover_signal, "the hand-off of ", ", which is noticed late"},
		{MODEL_CAUSE_waking, "", ": threads were woken, and it took them long to go on"},
		{MODEL_CAUSE_start_thread, "the ", ", from its creation to its first step"},
		{MODEL_CAUSE_start_process, "the ", ", from its creation to its first step"},
		{MODEL_CAUSE_thread_ends, "the ", ", until the thread that waits for it goes on"},
	};
	for (size_t i = 0; i < BASE_COUNT(text); i++)
		if (text[i].cause == row->cause) {
			base_str_addf(s, "%s%s%s", text[i].before, row->what, text[i].behind);
			return;
		}
	base_str_add(s, row->state);
}

/* A lock that keeps nobody waiting is no bottleneck: what is done under it is. */
static void finding_add_hold(struct base_str *s, const struct subject *u)
{
	const struct report_row *row = u->row;
	if (u->waited_for) {
		base_str_addf(s, "inside %s", row->what);
		if (*row->where)
			base_str_addf(s, " (taken at %s)", row->where);
		finding_add_who(s, ", by ", u);
		return;
	}
	if (u->row->main.name)
		base_str_addf(s, "computing in %s%s", u->row->main.name,
			finding_is_plain(u->row->main.name) ? "()" : "");
	else if (row->nr_functions)
		finding_add_functions(s, row);
	else
		base_str_add(s, "computing");
	if (u->row->main.name || !row->nr_functions)
		base_str_addf(s, " under %s, for which %s waited",
			u->row->main.name ? "a lock" : row->what,
			u->waited_ns ? "hardly anybody" : "nobody");
	finding_add_actor(s, u);
}

/* (what passes through terminals is not followed, recorded or not) */
static void finding_add_external(
	struct base_str *s, const struct report *r, const struct report_row *row)
{
	base_str_addf(s, r->trace.process ? "%s" : "waiting for the outside: %s", row->state);
	finding_add_where(s, " at ", row->where);
	base_str_add(s, r->trace.switches_only
				? ", and switches alone do not show who is at the other end "
				  "(record with --full)"
				: ", and nobody who was recorded is seen at the other end");
}

static void finding_add_sleep(struct base_str *s, const struct report *r, const struct subject *u)
{
	const struct report_row *row = u->row;
	if (row->cause == MODEL_CAUSE_sleep_deadline)
		base_str_addf(s, "%s, which less work does not bring nearer", row->state);
	else if (r->trace.process)
		base_str_add(s, row->state);
	else
		base_str_add(
			s, row->cause == MODEL_CAUSE_sleep || row->cause == MODEL_CAUSE_task_sleep
				   ? "a sleep that the program asks for"
				   : "a sleep until a time limit ends the wait");
	finding_add_where(s, ", at ", row->where);
	finding_add_who(s, ", in ", u);
}

static void finding_add_kind(struct base_str *s, const struct report *r, const struct subject *u)
{
	const struct report_row *row = u->row;
	switch (row->kind) {
	case MODEL_STATE_run:
		finding_add_run(s, u);
		break;
	case MODEL_STATE_hold:
		finding_add_hold(s, u);
		break;
	case MODEL_STATE_wait:
		base_str_add(s, row->state);
		finding_add_where(s, " at ", row->where);
		if (!r->trace.process || row->unexplained_ns > row->path_ns / 2)
			base_str_add(
				s, ", and nothing that was recorded says what ended these waits");
		else
			finding_add_who(s, ", in ", u);
		break;
	case MODEL_STATE_latency:
		finding_add_latency(s, row);
		break;
	case MODEL_STATE_runnable:
		base_str_add(s, row->state);
		if (r->trace.nr_processors) /* an imported trace may not say */
			base_str_addf(s, " (this machine has %llu)",
				(unsigned long long)r->trace.nr_processors);
		break;
	case MODEL_STATE_blocked:
		base_str_add(s,
			"blocked outside every recorded call (a lock inside libc, as malloc's, a "
			"system call of its own, the kernel): longpole does not see in what");
		finding_add_who(s, ", ", u);
		break;
	case MODEL_STATE_external:
		finding_add_external(s, r, row);
		break;
	case MODEL_STATE_sleep:
		finding_add_sleep(s, r, u);
		break;
	case MODEL_STATE_io:
		base_str_addf(s, "%s%s",
			row->cause == MODEL_CAUSE_mpi_call ? "" : "in the kernel: ", row->state);
		finding_add_where(s, ", at ", row->where);
		finding_add_who(s, ", in ", u);
		break;
	case MODEL_STATE_device:
		base_str_add(s, row->state);
		break;
	case MODEL_STATE_start:
		if (row->cause == MODEL_CAUSE_start_child) {
			base_str_add(s, row->state);
			finding_add_where(s, " (after vfork), at ", row->where);
			break;
		}
		base_str_add(s, "starting programs, before their first own instruction");
		break;
	case MODEL_STATE_annotated:
		base_str_addf(s, "in state %s", row->state);
		finding_add_who(s, " of ", u);
		break;
	case MODEL_STATE_idle:
		base_str_addf(s,
			"in %s, of which nothing was recorded before: it slept since "
			"before the recording, or ran without a pause",
			row->actor);
		break;
	default:
		base_str_add(s, "in no thread that was recorded");
	}
}

/* Rows are sorted: the first of the longest topic is its longest. */
static struct subject find_subject(const struct report *r, const struct report_index *ix)
{
	struct subject best = {0};
	for (size_t i = 0; i < r->nr_rows; i++) {
		struct subject u = {.row = &r->row[i]};
		if (u.row->topic < ix->nr_topics && ix->is_recorders[u.row->topic])
			continue;
		for (size_t k = i; k < r->nr_rows; k++)
			if (r->row[k].topic == u.row->topic)
				u.path_ns += r->row[k].path_ns;
		if (u.path_ns > best.path_ns)
			best = u;
		if (best.path_ns > r->elapsed_ns / 2 || i >= 64)
			break;
	}
	return best;
}

/* For how long others waited for the lock that its state says is held. */
static void fill_waited(struct subject *u, struct model *m, const struct report_index *ix)
{
	enum { HARDLY = 100 }; /* that part of the time in which it was held */
	struct graph *g = model_graph(m);
	uint32_t lock = model_state_argument(
		model_state(m, ix->first_state[u->row->topic]), MODEL_ARGUMENT_object);
	for (uint32_t i = 0; i < graph_nr_queues(g); i++)
		if (model_queue(m, i)->name_text == lock)
			u->waited_ns += graph_queue_stats(g, i)->wait_data_ns;
	u->waited_for = (double)u->waited_ns * HARDLY > u->path_ns;
}

bool report_topic_is_waited_for(
	struct model *m, const struct report_index *ix, const struct report_row *row)
{
	struct subject u = {.row = row, .path_ns = row->path_ns};
	fill_waited(&u, m, ix);
	return u.waited_for;
}

/* The holder of the processor that the row waits for, if it does. */
static void finding_add_holder(struct report_crowd *crowd, const struct model *m,
	const struct report_index *ix, const struct report_row *row)
{
	const struct model_state *st = model_state(m, ix->first_state[row->topic]);
	if (row->cause == MODEL_CAUSE_processor_had)
		report_crowd_add(crowd,
			model_text(m, model_state_argument(st, MODEL_ARGUMENT_program)),
			row->path_ns);
}

static const char *certainty(struct report *r)
{
	struct base_str s = {0};
	bool lossy = false;
	for (size_t i = 0; i < r->trace.nr_diags; i++)
		lossy |= strcmp(r->trace.diag[i].severity, "info") != 0;
	base_str_add(&s, r->trace.readable_bytes < r->trace.file_bytes
				 ? "observed in the readable part of a cut or damaged file; "
				 : "observed; ");
	if (r->explained_share >= 0.9995)
		base_str_add(&s, "all of the path is explained");
	else
		base_str_addf(&s, "%.1f %% of the path is explained", r->explained_share * 100);
	if (lossy)
		base_str_add(&s, "; see the caveats");
	return report_keep(r->arena, &s);
}

void report_topic_text(struct base_str *out, const struct report *r, struct model *m,
	const struct report_index *ix, uint32_t topic)
{
	struct subject u = {0};
	for (size_t i = 0; i < r->nr_rows; i++) {
		if (r->row[i].topic != topic)
			continue;
		u.row = u.row ? u.row : &r->row[i];
		u.path_ns += r->row[i].path_ns;
	}
	if (!u.row)
		return;
	if (u.row->kind == MODEL_STATE_hold)
		fill_waited(&u, m, ix);
	finding_add_kind(out, r, &u);
}

enum base_status report_fill_finding(
	struct report *r, struct model *m, const struct report_index *ix, struct base_err *err)
{
	struct base_str s = {0};
	struct report_crowd crowd = {0};
	struct subject u = find_subject(r, ix);
	if (u.row && u.row->kind == MODEL_STATE_hold)
		fill_waited(&u, m, ix);
	for (size_t i = 0; i < r->nr_rows; i++)
		finding_add_holder(&crowd, m, ix, &r->row[i]);
	bool crowded = crowd.nr > 1 && crowd.path_ns > u.path_ns;
	double share = r->elapsed_ns > 0 ? u.path_ns / r->elapsed_ns : 0;
	if (crowded && crowd.path_ns * 100 >= DOMINANT_PERCENT * r->elapsed_ns) {
		report_percent(&s, crowd.path_ns / r->elapsed_ns);
		base_str_add(&s, " of the time the critical path is ");
		report_crowd_text(&s, &crowd, r->elapsed_ns, r->trace.nr_processors);
	} else if (!u.row) {
		base_str_add(
			&s, "The critical path is empty: the program did nothing that takes time");
	} else if (share * 100 < DOMINANT_PERCENT) {
		base_str_add(&s, "No single state dominates the critical path; the largest, ");
		report_percent(&s, share);
		base_str_add(&s, " of the time, is ");
		finding_add_kind(&s, r, &u);
	} else {
		report_percent(&s, share);
		base_str_add(&s, " of the time the critical path is ");
		finding_add_kind(&s, r, &u);
	}
	r->finding = report_keep(r->arena, &s);
	r->certainty = certainty(r);
	return r->finding && r->certainty ? BASE_OK : report_no_memory(err);
}
