/* SPDX-License-Identifier: Apache-2.0 */
/* ciat_text.c - the report with a tag before each line, the memory usage file, the event trace. */
#include "memory/ciat/ciat.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const char *const size_line[] = {
#define SIZE(name, bytes, line) line,
#include "memory/ciat/ciat_sizes.def"
};
static const char *const reg_line[MEMORY_REG_KINDS] = {"", " integer", " float", " vector"};

enum { ALL = -1 };

/* Which phase and thread a line is about; ALL is printed as x. */
struct where {
	struct base_str *out;
	int64_t phase, thread;
};

static void tag(const struct where *w, unsigned kind)
{
	base_str_add(w->out, "R");
	if (w->phase == ALL)
		base_str_add(w->out, "x");
	else
		base_str_addf(w->out, "%" PRId64, w->phase);
	base_str_add(w->out, "T");
	if (w->thread == ALL)
		base_str_add(w->out, "x");
	else
		base_str_addf(w->out, "%" PRId64, w->thread);
	base_str_addf(w->out, "L%02u: ", kind);
}

static void number_line(const struct where *w, unsigned kind, const char *name, uint64_t n)
{
	tag(w, kind);
	base_str_addf(w->out, "%s %" PRIu64 "\n", name, n);
}

static void share_line(
	const struct where *w, unsigned kind, const char *name, uint64_t n, uint64_t of)
{
	tag(w, kind);
	base_str_addf(
		w->out, "%s %" PRIu64 " %.2f%%\n", name, n, of ? 100 * (double)n / (double)of : 0);
}

static uint64_t accesses(const struct memory_ciat_counts *n, unsigned kind)
{
	uint64_t sum = 0;
	for (unsigned s = 0; s < MEMORY_CIAT_SIZES; s++)
		for (unsigned r = 0; r < MEMORY_REG_KINDS; r++)
			sum += n->access[kind][s][r];
	return sum;
}

static void ciat_text_access_lines(const struct where *w, const struct memory_ciat_counts *n)
{
	static const char *const kind_name[] = {"load", "store"};
	uint64_t of[2] = {accesses(n, 0), accesses(n, 1)};
	number_line(w, 1, "accesses", of[0] + of[1]);
	share_line(w, 2, "loads", of[0], of[0] + of[1]);
	share_line(w, 3, "stores", of[1], of[0] + of[1]);
	if (n->atomics)
		share_line(w, 3, "atomic, in both", n->atomics, of[0] + of[1]);
	for (unsigned k = 0; k < 2; k++)
		for (unsigned s = 0; s < MEMORY_CIAT_SIZES; s++)
			for (unsigned r = 0; r < MEMORY_REG_KINDS; r++) {
				uint64_t count = n->access[k][s][r];
				if (!count)
					continue;
				tag(w, 4 + k);
				base_str_addf(w->out, "%s %s%s %" PRIu64 " %.2f%%\n", kind_name[k],
					size_line[s], reg_line[r], count,
					100 * (double)count / (double)of[k]);
			}
	for (unsigned k = 0; k < 2; k++)
		for (unsigned i = 1; i < MEMORY_CIAT_STRINGS; i++) {
			if (!n->string[k][i])
				continue;
			tag(w, 6 + k);
			base_str_addf(w->out, "%s string of %s%" PRIu64 " %" PRIu64 "\n",
				kind_name[k], i > MEMORY_CIAT_STRING_EXACT ? "at least " : "",
				i > MEMORY_CIAT_STRING_EXACT
					? (uint64_t)1 << (i - MEMORY_CIAT_STRING_EXACT + 5)
					: i,
				n->string[k][i]);
		}
}

static void instruction_lines(const struct where *w, const struct memory_ciat_counts *n)
{
	number_line(w, 11, "fetched instructions", n->fetched);
	number_line(w, 12, "taken branches", n->branches);
	number_line(w, 13, "procedure calls", n->procedure_calls);
	number_line(w, 14, "calls to instrumented procedures", n->procedure_starts);
	number_line(w, 15, "instructions of the pseudo clock", n->instructions);
	for (unsigned k = 0; k < MEMORY_CIAT_CALLS; k++) {
		const struct memory_ciat_call_sum *c = &n->call[k];
		if (!c->count)
			continue;
		tag(w, 21);
		base_str_addf(w->out,
			"%s: %" PRIu64 " {call|calls}, %" PRIu64 " ns, amount %" PRIu64 "\n",
			memory_call_find(k)->line, c->count, c->time_ns, c->amount);
	}
	if (n->range_loads || n->range_stores) {
		tag(w, 22);
		base_str_addf(w->out,
			"unseen code read %" PRIu64 " {byte|bytes} in %" PRIu64
			" {range|ranges}, wrote %" PRIu64 " in %" PRIu64 "\n",
			n->range_load_bytes, n->range_loads, n->range_store_bytes, n->range_stores);
	}
}

static void event_lines(const struct where *w, const struct memory_ciat_counts *n, bool lines)
{
	static const unsigned kind[MEMORY_CIAT_EVENTS] = {31, 33, 35, 36};
	uint64_t of = accesses(n, 0) + accesses(n, 1);
	for (unsigned e = 0; e < MEMORY_CIAT_EVENTS; e++)
		share_line(w, kind[e], memory_ciat_event_name(e), n->event[e], of);
	if (!lines)
		return;
	number_line(w, 71, "line misses, first", n->cold_misses);
	number_line(w, 72, "line misses, true sharing", n->true_misses);
	number_line(w, 73, "line misses, false sharing", n->false_misses);
	number_line(w, 74, "line upgrades", n->upgrades);
}

static void degree_lines(const struct where *w, const struct memory_ciat_phase *p, uint32_t nr)
{
	for (uint32_t k = 1; k <= nr; k++) {
		if (!p->sharing[k])
			continue;
		tag(w, 32);
		base_str_addf(w->out, "sharing degree %u %" PRId64 "\n", k, p->sharing[k]);
	}
	for (uint32_t k = 1; k <= nr; k++) {
		if (!p->invalidation[k])
			continue;
		tag(w, 34);
		base_str_addf(
			w->out, "invalidation degree %u %" PRIu64 "\n", k, p->invalidation[k]);
	}
}

static bool ciat_text_is_empty(const struct memory_ciat_counts *n)
{
	const uint64_t *p = (const uint64_t *)n;
	for (size_t i = 0; i < sizeof *n / sizeof *p; i++)
		if (p[i])
			return false;
	return true;
}

static void ciat_text_phase_lines(struct base_str *out, const struct memory_ciat_result *r,
	const struct memory_ciat_phase *p, int64_t number)
{
	struct where w = {out, number, ALL};
	tag(&w, 0);
	if (number == ALL)
		base_str_add(out, "all phases");
	else
		base_str_addf(out, "%s phase %" PRIu64, memory_phase_name(p->kind), p->number);
	base_str_addf(out, ", clock %" PRIu64 " to %" PRIu64 "\n", p->begin_clock, p->end_clock);
	for (int64_t t = 0; t <= r->nr_threads; t++) {
		bool all = t == r->nr_threads;
		const struct memory_ciat_counts *n = all ? &p->all : &p->thread[t];
		if (!all && ciat_text_is_empty(n))
			continue;
		w.thread = all ? ALL : t;
		ciat_text_access_lines(&w, n);
		instruction_lines(&w, n);
		event_lines(&w, n, r->lines_known);
	}
	degree_lines(&w, p, r->nr_threads);
}

static void usage_lines(struct base_str *out, const struct memory_ciat_result *r)
{
	const struct memory_ciat_usage *u = &r->usage;
	struct where w = {out, ALL, ALL};
#define FIGURE(number, name, line) number_line(&w, 40 + (number), line, u->name);
#include "memory/ciat/ciat_usage.def"
	tag(&w, 59);
	base_str_addf(out, "data locality index %.3f\n", u->data_locality);
	tag(&w, 60);
	base_str_addf(out, "code locality index %.3f\n", u->code_locality);
}

void memory_ciat_tags(struct base_str *out, const struct memory_ciat_result *r)
{
	for (size_t i = 0; i < r->nr_phases; i++)
		ciat_text_phase_lines(out, r, &r->phase[i], (int64_t)i);
	ciat_text_phase_lines(out, r, &r->total, ALL);
	usage_lines(out, r);
	struct where w = {out, ALL, ALL};
	for (uint32_t from = 0; from < r->nr_threads; from++)
		for (uint32_t to = 0; to < r->nr_threads; to++) {
			uint64_t n = r->matrix[(size_t)from * r->nr_threads + to];
			if (!n)
				continue;
			w.thread = from;
			tag(&w, 81);
			base_str_addf(out, "read by thread %u %" PRIu64 "\n", to, n);
		}
}

/* ---- the memory usage file ------------------------------------------------------------------- */

#define USAGE_HEADER                                                                               \
	"# page touched_bytes touched_code_bytes shared_bytes data_accesses code_accesses "        \
	"shared_data_accesses shared_code_accesses owner\n"

void memory_ciat_usage_file(struct base_str *out, const struct memory_ciat_result *r)
{
	base_str_addf(out, "# memory usage, pages of %d bytes, owner -1: shared\n" USAGE_HEADER,
		MEMORY_CIAT_PAGE_BYTES);
	for (size_t i = 0; i < r->nr_pages; i++) {
		const struct memory_ciat_page *p = &r->page[i];
		base_str_addf(out,
			"%" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64
			" %" PRIu64 " %" PRIu64 " %" PRId32 "\n",
			p->page, p->touched_bytes, p->code_bytes, p->shared_bytes, p->data_accesses,
			p->code_accesses, p->shared_data_accesses, p->shared_code_accesses,
			p->owner);
	}
}

enum { USAGE_COLUMNS = 9 };

static bool parse_usage(const char *line, struct memory_ciat_page *ret)
{
	long long v[USAGE_COLUMNS];
	for (unsigned i = 0; i < USAGE_COLUMNS; i++) {
		char *end;
		v[i] = strtoll(line, &end, 10);
		if (end == line || (v[i] < 0 && i < USAGE_COLUMNS - 1))
			return false;
		line = end;
	}
	while (*line == ' ' || *line == '\t' || *line == '\r')
		line++;
	if ((*line && *line != '\n') || v[8] < -1 || v[8] >= MEMORY_THREADS_MAX ||
		(uint64_t)v[0] >= MEMORY_ADDRESS_LIMIT / MEMORY_CIAT_PAGE_BYTES)
		return false;
	*ret = (struct memory_ciat_page){.page = (uint64_t)v[0],
		.touched_bytes = (uint64_t)v[1],
		.code_bytes = (uint64_t)v[2],
		.shared_bytes = (uint64_t)v[3],
		.data_accesses = (uint64_t)v[4],
		.code_accesses = (uint64_t)v[5],
		.shared_data_accesses = (uint64_t)v[6],
		.shared_code_accesses = (uint64_t)v[7],
		.owner = (int32_t)v[8]};
	return true;
}

enum base_status memory_ciat_usage_read(const char *text, const char *path,
	struct memory_ciat_page **ret, size_t *ret_nr, struct base_err *err)
{
	struct memory_ciat_page *page = NULL;
	size_t nr = 0, capacity = 0;
	*ret = NULL;
	*ret_nr = 0;
	for (unsigned number = 1; *text; number++) {
		const char *end = strchr(text, '\n');
		end = end ? end + 1 : text + strlen(text);
		struct memory_ciat_page p;
		if (*text != '#' && *text != '\n') {
			enum base_status s = base_grow(&page, &capacity, nr + 1, sizeof *page);
			if (s != BASE_OK || !parse_usage(text, &p)) {
				base_free(page);
				return s != BASE_OK
					       ? base_fail(err, s, "no memory to read %s", path)
					       : base_fail(err, BASE_ERR_FOREIGN,
							 "%s, line %u: not a record of a memory "
							 "usage file (nine numbers)",
							 path, number);
			}
			page[nr++] = p;
		}
		text = end;
	}
	*ret = page;
	*ret_nr = nr;
	return BASE_OK;
}

/* ---- the event trace ------------------------------------------------------------------------- */

void memory_ciat_event_header(struct base_str *out, uint32_t nr_threads)
{
	base_str_addf(out,
		"# longpole ciat events, %u {processor|processors}: clock event processor degree; "
		"events 1 "
		"RAW, 2 "
		"WAR, 3 WAW, 4 RAR; degree 0: undefined\n",
		nr_threads);
}

void memory_ciat_event_line(struct base_str *out, uint64_t clock, enum memory_ciat_event kind,
	uint32_t thread, uint32_t degree)
{
	base_str_addf(out, "%" PRIu64 " %u %u %u\n", clock, (unsigned)kind + 1, thread, degree);
}
