/* SPDX-License-Identifier: Apache-2.0 */
/* calls.c - library calls of all threads, summed by function and place. */
#include "report/calls.h"
#include "report/private.h"

#include <stdlib.h>
#include <string.h>

struct place_key {
	uint32_t function, inside, site; /* strings and a site */
};
struct cell {
	struct place_key key;
	uint64_t category;
	struct report_call_use use;
};
/* What a thread's tables say, the last of them. */
struct total {
	uint64_t count, enabled_ns, running_ns;
	unsigned mode, event;
};
struct builder {
	struct report_calls *out;
	const struct report_run *run;
	struct model *m;
	struct cell *cell;
	size_t nr_cells, capacity;
	struct base_map cells; /* (function << 32 | inside, site) -> cell */
	struct base_map lasts; /* stream -> 1 + cell */
	struct total *total;
	size_t nr_totals, totals_capacity;
	struct base_map totals; /* (stream, mode and event) -> total */
	bool no_memory;
};

/* ---- counting -------------------------------------------------------------------------------- */

static struct cell *calls_cell_of(struct builder *b, const struct trace_record *r)
{
	const struct trace_call_count *k = &r->u.call_count;
	uint64_t at, hi = (uint64_t)k->function << 32 | k->inside;
	if (!base_map_get(&b->cells, hi, k->site, &at)) {
		at = b->nr_cells;
		if (base_grow(&b->cell, &b->capacity, at + 1, sizeof *b->cell) != BASE_OK ||
			base_map_put(&b->cells, hi, k->site, at) != BASE_OK) {
			b->no_memory = true;
			return NULL;
		}
		b->cell[b->nr_cells++] = (struct cell){
			.key = {k->function, k->inside, k->site}, .category = k->category};
	}
	if (base_map_put(&b->lasts, 0, r->stream, at + 1) != BASE_OK)
		b->no_memory = true;
	return &b->cell[at];
}

static void calls_add_failed(struct report_call_use *u, uint64_t nr, uint64_t error, uint64_t most)
{
	u->failed += nr;
	if (most > u->most_failed) {
		u->most_failed = most;
		u->last_error = error;
	}
}

static void calls_count(struct builder *b, const struct trace_record *r)
{
	struct cell *c = calls_cell_of(b, r);
	if (!c)
		return;
	c->use.calls += r->u.call_count.calls;
	c->use.bytes += r->u.call_count.bytes;
}

static void time_of_last(struct builder *b, const struct trace_record *r)
{
	const struct trace_call_time *t = &r->u.call_time;
	uint64_t at;
	if (!base_map_get(&b->lasts, 0, r->stream, &at) || !at || at > b->nr_cells)
		return;
	struct report_call_use *u = &b->cell[at - 1].use;
	u->timed += t->nr;
	u->timed_ns += t->total_ns;
	u->max_ns = t->max_ns > u->max_ns ? t->max_ns : u->max_ns;
	u->cpu_timed += t->cpu_nr;
	u->cpu_timed_ns += t->cpu_ns;
}

static void special_of_last(struct builder *b, const struct trace_record *r)
{
	uint64_t at;
	if (!base_map_get(&b->lasts, 0, r->stream, &at) || !at || at > b->nr_cells)
		return;
	struct report_call_use *u = &b->cell[at - 1].use;
	u->special += r->u.call_special.nr;
	u->special_ns += r->u.call_special.total_ns;
	u->special_waits |= r->u.call_special.waits != 0;
}

static void failed_of_last(struct builder *b, const struct trace_record *r)
{
	const struct trace_call_failed *k = &r->u.call_failed;
	uint64_t at;
	if (!base_map_get(&b->lasts, 0, r->stream, &at) || !at || at > b->nr_cells)
		return;
	calls_add_failed(&b->cell[at - 1].use, k->nr, k->error, k->nr);
}

static void special_cpu_of_last(struct builder *b, const struct trace_record *r)
{
	uint64_t at;
	if (!base_map_get(&b->lasts, 0, r->stream, &at) || !at || at > b->nr_cells)
		return;
	struct report_call_use *u = &b->cell[at - 1].use;
	u->special_cpu += r->u.call_special_cpu.nr;
	u->special_cpu_ns += r->u.call_special_cpu.cpu_ns;
}

static void kernel_of_last(struct builder *b, const struct trace_record *r)
{
	uint64_t at;
	if (!base_map_get(&b->lasts, 0, r->stream, &at) || !at || at > b->nr_cells)
		return;
	struct report_call_use *u = &b->cell[at - 1].use;
	u->kernel_timed += r->u.call_kernel.nr;
	u->kernel_timed_ns += r->u.call_kernel.kernel_ns;
	u->kernel_special += r->u.call_kernel.special_nr;
	u->kernel_special_ns += r->u.call_kernel.special_kernel_ns;
	b->out->has_kernel = true;
}

/* Its place in event_name; REPORT_CALL_EVENTS: there are too many. (A merged trace has a name's
 * string several times.) */
static unsigned event_of(struct builder *b, uint32_t id)
{
	struct report_calls *out = b->out;
	const char *name = trace_text_of(trace_reader_defs(b->run->reader), id);
	unsigned i = 0;
	while (i < out->nr_events && strcmp(out->event_name[i], name) != 0)
		i++;
	if (i == out->nr_events && i < REPORT_CALL_EVENTS) {
		const char *kept = report_clean(out->arena, name);
		if (!kept) {
			b->no_memory = true;
			return REPORT_CALL_EVENTS;
		}
		out->event_name[out->nr_events++] = kept;
	}
	return i;
}

static enum report_call_mode mode_of(struct builder *b, uint64_t in_kernel)
{
	b->out->has_kernel_events |= in_kernel != 0;
	return in_kernel ? REPORT_CALL_KERNEL : REPORT_CALL_USER;
}

static void event_of_last(struct builder *b, const struct trace_record *r)
{
	const struct trace_call_event *k = &r->u.call_event;
	uint64_t at;
	unsigned i = event_of(b, k->event);
	if (i == REPORT_CALL_EVENTS || !base_map_get(&b->lasts, 0, r->stream, &at) || !at ||
		at > b->nr_cells)
		return;
	struct report_call_event *e = &b->cell[at - 1].use.event[mode_of(b, k->in_kernel)][i];
	e->nr += k->nr;
	e->count += k->count;
	e->special_nr += k->special_nr;
	e->special_count += k->special_count;
}

static void total_of_thread(struct builder *b, const struct trace_record *r)
{
	const struct trace_thread_event *k = &r->u.thread_event;
	unsigned i = event_of(b, k->event);
	if (i == REPORT_CALL_EVENTS)
		return;
	enum report_call_mode mode = mode_of(b, k->in_kernel);
	uint64_t at, key = (uint64_t)mode * REPORT_CALL_EVENTS + i;
	if (!base_map_get(&b->totals, r->stream, key, &at)) {
		at = b->nr_totals;
		if (base_grow(&b->total, &b->totals_capacity, at + 1, sizeof *b->total) !=
				BASE_OK ||
			base_map_put(&b->totals, r->stream, key, at) != BASE_OK) {
			b->no_memory = true;
			return;
		}
		b->total[b->nr_totals++] = (struct total){.mode = mode, .event = i};
	}
	struct total *t = &b->total[at];
	if (k->count < t->count)
		return;
	t->count = k->count;
	t->enabled_ns = k->enabled_ns;
	t->running_ns = k->running_ns;
}

/* While others had the counters, a thread is taken to have gone on as before. */
static void calls_add_totals(struct builder *b)
{
	struct report_calls *out = b->out;
	out->least_running_share = 1;
	for (size_t i = 0; i < b->nr_totals; i++) {
		const struct total *t = &b->total[i];
		double share = t->enabled_ns ? (double)t->running_ns / (double)t->enabled_ns : 0;
		if (!(share > 0))
			continue;
		out->program_event[t->mode][t->event] += (double)t->count / (share < 1 ? share : 1);
		if (share < out->least_running_share)
			out->least_running_share = share;
	}
}

static enum base_status calls_read_records(struct builder *b, struct base_err *err)
{
	struct trace_batch batch;
	enum base_status s = trace_reader_rewind(b->run->reader, err);
	while (s == BASE_OK && !b->no_memory) {
		s = trace_reader_next(b->run->reader, &batch, err);
		for (size_t i = 0; s == BASE_OK && i < batch.nr; i++) {
			const struct trace_record *r = &batch.record[i];
			if (r->kind == TRACE_call_count)
				calls_count(b, r);
			else if (r->kind == TRACE_call_time)
				time_of_last(b, r);
			else if (r->kind == TRACE_call_special)
				special_of_last(b, r);
			else if (r->kind == TRACE_call_failed)
				failed_of_last(b, r);
			else if (r->kind == TRACE_call_special_cpu)
				special_cpu_of_last(b, r);
			else if (r->kind == TRACE_call_kernel)
				kernel_of_last(b, r);
			else if (r->kind == TRACE_call_event)
				event_of_last(b, r);
			else if (r->kind == TRACE_thread_event)
				total_of_thread(b, r);
			else if (r->kind == TRACE_lock_full)
				b->out->nr_full += r->u.lock_full.n;
		}
	}
	if (b->no_memory)
		return base_fail(err, BASE_ERR_NOMEM, "out of memory for the calls");
	return s == BASE_END ? BASE_OK : s;
}

/* What a sample says of all: processor time is that of the timed ones where none was measured. */
static void estimate(struct report_call_use *u)
{
	double calls = (double)(u->calls > u->special ? u->calls - u->special : 0);
	u->ns = u->timed ? (double)u->timed_ns / (double)u->timed * calls : 0;
	u->cpu_ns = u->cpu_timed ? (double)u->cpu_timed_ns / (double)u->cpu_timed * calls : u->ns;
	if (u->cpu_ns > u->ns) /* a sample of slow ones */
		u->cpu_ns = u->ns;
	u->kernel_ns =
		u->kernel_timed ? (double)u->kernel_timed_ns / (double)u->kernel_timed * calls : 0;
	double special_kernel_ns = u->kernel_special
					   ? (double)u->kernel_special_ns /
						     (double)u->kernel_special * (double)u->special
					   : 0;
	u->kernel_ns += special_kernel_ns;
	u->ns += (double)u->special_ns;
	/* of a wait only what the kernel did for it is known to have had a processor */
	double special_cpu_ns = u->special_cpu_ns < u->special_ns ? (double)u->special_cpu_ns
								  : (double)u->special_ns;
	if (special_cpu_ns < special_kernel_ns)
		special_cpu_ns = special_kernel_ns;
	u->cpu_ns += u->special_waits ? special_cpu_ns : (double)u->special_ns;
	u->is_estimate = (double)u->timed < calls || (u->cpu_timed && u->cpu_timed < u->timed);
	if (u->cpu_ns < u->kernel_ns) /* that was on a processor, and more of it was measured */
		u->cpu_ns = u->kernel_ns;
}

/* Each sort's mean is that of its own calls. */
static void estimate_events(struct report_call_use *u, unsigned nr_events)
{
	uint64_t special = u->special < u->calls ? u->special : u->calls,
		 sampled = u->calls - special;
	for (unsigned mode = 0; mode < REPORT_CALL_MODES; mode++)
		for (unsigned i = 0; i < nr_events; i++) {
			struct report_call_event *e = &u->event[mode][i];
			e->all = 0;
			if (e->nr)
				e->all += (double)e->count / (double)e->nr * (double)sampled;
			if (e->special_nr)
				e->all += (double)e->special_count / (double)e->special_nr *
					  (double)special;
		}
	if (nr_events) {
		const struct report_call_event *e = &u->event[REPORT_CALL_USER][0];
		u->without_events = (e->nr ? 0 : sampled) + (e->special_nr ? 0 : special);
	}
}

static void calls_add_events(struct report_call_use *to, const struct report_call_use *from)
{
	for (unsigned mode = 0; mode < REPORT_CALL_MODES; mode++)
		for (unsigned i = 0; i < REPORT_CALL_EVENTS; i++) {
			struct report_call_event *t = &to->event[mode][i];
			const struct report_call_event *f = &from->event[mode][i];
			t->nr += f->nr;
			t->count += f->count;
			t->special_nr += f->special_nr;
			t->special_count += f->special_count;
			t->all += f->all;
		}
	to->without_events += from->without_events;
}

static void calls_add(struct report_call_use *to, const struct report_call_use *from)
{
	to->calls += from->calls;
	to->bytes += from->bytes;
	calls_add_failed(to, from->failed, from->last_error, from->most_failed);
	to->timed += from->timed;
	to->timed_ns += from->timed_ns;
	to->max_ns = from->max_ns > to->max_ns ? from->max_ns : to->max_ns;
	to->special += from->special;
	to->special_ns += from->special_ns;
	to->special_cpu += from->special_cpu;
	to->special_cpu_ns += from->special_cpu_ns;
	to->is_estimate |= from->is_estimate;
	to->cpu_timed += from->cpu_timed;
	to->cpu_timed_ns += from->cpu_timed_ns;
	to->kernel_timed += from->kernel_timed;
	to->kernel_timed_ns += from->kernel_timed_ns;
	to->kernel_special += from->kernel_special;
	to->kernel_special_ns += from->kernel_special_ns;
	to->kernel_ns += from->kernel_ns;
	to->ns += from->ns;
	to->cpu_ns += from->cpu_ns;
	calls_add_events(to, from);
}

/* ---- rows ------------------------------------------------------------------------------------ */

static int places_by_time(const void *a, const void *b)
{
	const struct report_call_place *x = a, *y = b;
	if (x->use.cpu_ns != y->use.cpu_ns)
		return x->use.cpu_ns < y->use.cpu_ns ? 1 : -1;
	if (x->use.calls != y->use.calls)
		return x->use.calls < y->use.calls ? 1 : -1;
	int c = strcmp(x->where, y->where);
	return c ? c : strcmp(x->inside, y->inside);
}

static int functions_by_time(const void *a, const void *b)
{
	const struct report_call_function *x = a, *y = b;
	if (x->use.cpu_ns != y->use.cpu_ns)
		return x->use.cpu_ns < y->use.cpu_ns ? 1 : -1;
	if (x->use.calls != y->use.calls)
		return x->use.calls < y->use.calls ? 1 : -1;
	return strcmp(x->name, y->name);
}

static int cells_by_function(const void *a, const void *b)
{
	const struct cell *x = a, *y = b;
	return x->key.function < y->key.function ? -1 : x->key.function > y->key.function;
}

static void estimate_cell(const struct builder *b, struct cell *c)
{
	estimate(&c->use);
	estimate_events(&c->use, b->out->nr_events);
}

static enum base_status calls_add_place(struct builder *b, struct report_call_function *f,
	const struct cell *c, struct base_err *err)
{
	struct report_calls *out = b->out;
	const struct trace_defs *d = trace_reader_defs(b->run->reader);
	const char *where = model_site_text(b->m, c->key.site);
	struct report_call_place *p = &f->place[f->nr_places++];
	*p = (struct report_call_place){.where = report_clean(out->arena, *where ? where : "?"),
		.inside = report_clean(out->arena, trace_text_of(d, c->key.inside)),
		.use = c->use};
	calls_add(&f->use, &c->use);
	if (c->key.inside) {
		calls_add(&f->inside, &c->use);
	} else {
		calls_add(&out->category[f->category], &c->use);
		calls_add(&out->all, &c->use);
	}
	return p->where && p->inside ? BASE_OK : report_no_memory(err);
}

static enum base_status make_functions(struct builder *b, struct base_err *err)
{
	struct report_calls *out = b->out;
	const struct trace_defs *d = trace_reader_defs(b->run->reader);
	out->function = report_array(out->arena, b->nr_cells, sizeof *out->function);
	if (!out->function)
		return report_no_memory(err);
	if (b->nr_cells)
		qsort(b->cell, b->nr_cells, sizeof *b->cell, cells_by_function);
	for (size_t i = 0, end; i < b->nr_cells; i = end) {
		for (end = i;
			end < b->nr_cells && b->cell[end].key.function == b->cell[i].key.function;)
			estimate_cell(b, &b->cell[end++]);
		struct report_call_function *f = &out->function[out->nr_functions++];
		uint64_t category = b->cell[i].category;
		f->name = report_clean(out->arena, trace_text_of(d, b->cell[i].key.function));
		f->category =
			category < TRACE_CALL_NR ? (enum trace_call)category : TRACE_CALL_other;
		f->place = report_array(out->arena, end - i, sizeof *f->place);
		if (!f->name || !f->place)
			return report_no_memory(err);
		for (size_t k = i; k < end; k++) {
			enum base_status s = calls_add_place(b, f, &b->cell[k], err);
			if (s != BASE_OK)
				return s;
		}
		qsort(f->place, f->nr_places, sizeof *f->place, places_by_time);
	}
	if (out->nr_functions)
		qsort(out->function, out->nr_functions, sizeof *out->function, functions_by_time);
	return BASE_OK;
}

static enum base_status fill(struct builder *b, struct base_err *err)
{
	struct report_pass_options plain = {0};
	struct report_calls *out = b->out;
	enum base_status s = report_pass(b->run, "reading what was counted", &plain, &b->m, err);
	if (s == BASE_OK)
		s = report_fill_trace(&out->trace, out->arena, b->run, b->m, err);
	if (s == BASE_OK)
		s = calls_read_records(b, err);
	if (s == BASE_OK && !b->nr_cells)
		s = base_fail(err, BASE_ERR_LACKS,
			"this trace has no counts of library calls; 'longpole calls -- PROG' makes "
			"them");
	if (s != BASE_OK)
		return s;
	out->tick_hz = trace_reader_info(b->run->reader)->tick_hz;
	out->elapsed_ns = trace_reader_last_ns(b->run->reader);
	out->cpu_ns = out->trace.target_cpu_ns;
	calls_add_totals(b);
	return make_functions(b, err);
}

enum base_status report_calls_build(
	const struct report_run *run, struct report_calls **ret, struct base_err *err)
{
	struct report_calls *out = report_answer_new(sizeof *out);
	if (!out)
		return report_no_memory(err);
	struct builder b = {.out = out, .run = run};
	enum base_status s = fill(&b, err);
	base_free(b.cell);
	base_free(b.total);
	base_map_fini(&b.totals);
	base_map_fini(&b.cells);
	base_map_fini(&b.lasts);
	model_free(b.m);
	if (s != BASE_OK)
		report_calls_free(out);
	else
		*ret = out;
	return s;
}

struct report_calls *report_calls_free(struct report_calls *c)
{
	return report_answer_free(c);
}
