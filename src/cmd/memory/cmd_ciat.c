/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_ciat.c - `longpole ciat`: how threads share memory, whatever the machine. */
#include "cmd/memory/ciat.h"
#include "cmd/memory/streams.h"
#include "memory/stream/silent.h"
#include "memory/stream/smait.h"
#include "config.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
	LINES_SHOWN = 5,
	SITES_SHOWN = 4,
	OFFSETS_SHOWN = 4,
	FIELDS_SHOWN = 3,
	BUSY_LEAST = 1000,        /* a line came back so often, or it is not worth a sentence */
	POLLS_PER_CHANGE = 10000, /* a variable is waited for that is accessed so often, */
	POLLED_PART = 4,          /* this part of all accesses, */
	POLLED_BY_PERCENT = 60,   /* and by loads that see it change: a thread that counts in it
				   stores, too */
	FUNCTIONS_SHOWN = 10,
	OBJECTS_SHOWN = 10,
	MATRIX_SHOWN = 16,
	REUSE_LINES = 1000 /* sampled: fewer may mislead */
};

static const struct cmd_option option[] = {
	CMD_STREAM_OPTIONS,
	{"tags", 'T', NULL, NULL, "print the report of the original tool, with tags RrTtLll:"},
	{"report", 0, "FILE", "@file", "write that report to FILE"},
	{"memory-file", 'm', "FILE", "@file",
		"write the memory usage of each touched page to FILE"},
	{"events", 'e', "FILE", "@file",
		"write each communication event to FILE ('longpole tdat' reads it)"},
	{"ciat-events", 0, NULL, NULL, "the same, to TRACE.ciat_events (the seed's option)"},
	{"smait", 0, "STEM", NULL,
		"write the trace as SMAIT's binary files STEM.0, STEM.1 ..., big-endian"},
	{"location", 0, "BYTES", "1 2 4 8", "size of a memory location (default 4)"},
	{"line", 0, "BYTES", NULL, "size of a cache line (default 64)"},
	{"no-lines", 0, NULL, NULL, "do not tell false from true sharing; a fifth faster"},
	{"functions", 0, NULL, NULL, "a table of instructions, beside that of functions"},
	{"reuse", 0, "[SHARE]", NULL,
		"reuse distances and miss-ratio curves; of a share of the lines when given (0.01)"},
	{"range-shared", 0, "FROM-TO", NULL, "an address range reserved for shared pages"},
	{"max-memory", 0, "SIZE", NULL,
		"give up beyond that much memory for the state of touched memory (default 4G)"},
};

static const struct cmd_spelling spelling[] = {
	CMD_STREAM_SPELLINGS, {"-ciat_events", "ciat-events"}, {NULL, NULL}};

const struct cmd_details cmd_details_ciat = {
	.usage = "[OPTIONS] TRACE...\n[OPTIONS] -- PROG [ARG...]",
	.about = "Configuration independent analysis of memory traces. It says who reads what "
		 "others wrote, which cache lines move between threads and why, and how much "
		 "memory is touched and shared, by phase and thread. TRACE is one file a thread, "
		 "or the stem of such files (run.4 for run.4.0 ... run.4.3), or one file for all. "
		 "PROG is run and analysed at the same time, without a file.",
	.option = option,
	.nr_options = BASE_COUNT(option),
	.spelling = spelling,
	.example = {"longpole ciat run.4", "longpole ciat --tags --calls=level1.4 run.4",
		"longpole ciat --json lackey.txt | jq .result.usage", "longpole ciat -- ./prog"},
};

/* ---- options --------------------------------------------------------------------------------- */

static bool range_option(struct cmd *c, struct memory_ciat_options *o)
{
	const char *text = cmd_value(c, "range-shared");
	if (!text)
		return true;
	char *end;
	o->shared_from = strtoull(text, &end, 0);
	if (end != text && *end == '-') {
		const char *second = end + 1;
		o->shared_to = strtoull(second, &end, 0);
		if (end != second && !*end && o->shared_from < o->shared_to)
			return true;
	}
	cmd_usage(c, "--range-shared=%s: two addresses, such as 0x80000000-0xc0000000", text);
	return false;
}

static bool ciat_options(struct cmd *c, struct memory_ciat_options *o)
{
	uint64_t line = 0, location = 0;
	const char *share = cmd_value(c, "reuse");
	*o = (struct memory_ciat_options){.without_lines = cmd_given(c, "no-lines"),
		.with_functions = true,
		.with_reuse = cmd_given(c, "reuse"),
		.hpux = cmd_given(c, "hpux")};
	if (!cmd_value_count(c, "line", &line) || !cmd_value_count(c, "location", &location) ||
		!cmd_value_size(c, "max-memory", &o->memory_limit_bytes) || !range_option(c, o) ||
		(share && *share && !cmd_value_real(c, "reuse", 1e-6, &o->reuse_share)))
		return false;
	if (o->reuse_share > 1) {
		cmd_usage(c, "--reuse=%s: a share of the lines, up to 1 (all of them)", share);
		return false;
	}
	o->line_bytes = line > UINT32_MAX ? UINT32_MAX : (uint32_t)line;
	o->location_bytes = (uint32_t)location;
	return true;
}

/* ---- text ------------------------------------------------------------------------------------ */

static uint64_t sum_accesses(const struct memory_ciat_counts *n)
{
	uint64_t sum = 0;
	for (unsigned k = 0; k < 2; k++)
		for (unsigned s = 0; s < MEMORY_CIAT_SIZES; s++)
			for (unsigned r = 0; r < MEMORY_REG_KINDS; r++)
				sum += n->access[k][s][r];
	return sum;
}

/* Of memory without a name: ", on the stack of thread 3". */
static void cmd_ciat_add_stack(
	struct base_str *out, const struct memory_source *s, uint64_t at, uint64_t bytes)
{
	unsigned nr = 0;
	uint32_t first = 0;
	for (uint32_t i = 0; s->ops->on_stack && i < s->info.nr_threads; i++)
		if (s->ops->on_stack(s, i, at, bytes) && !nr++)
			first = i;
	if (nr)
		base_str_addf(out, ", on %s of thread %u%s", nr == 1 ? "the stack" : "a stack",
			first, nr == 1 ? "" : " and others");
}

/* Of an instruction, or a line of so many bytes. */
static void cmd_ciat_add_place(
	struct base_str *out, struct cmd_slack_names *n, uint64_t at, uint64_t line_bytes)
{
	const bool code = !line_bytes;
	const struct memory_source *s = n->source;
	struct memory_place p = {.name = "", .file = ""};
	bool (*find)(const struct memory_source *, uint64_t, struct memory_place *) =
		code ? s->ops->code_place : s->ops->data_place;
	struct base_str text = {0};
	if (find && find(s, at, &p)) {
		base_str_add(&text, p.name);
		if (!code && p.start && at > p.start)
			base_str_addf(&text, "+%" PRIu64, at - p.start);
		if (p.file[0])
			base_str_addf(&text, " (%s:%u)", p.file, p.line);
		report_name_add(out, base_str_text(&text));
	} else if (code && !at) {
		base_str_add(out, ciat_unseen_code(n));
	} else if (code && s->ops->linked) {
		cmd_slack_name(n, CMD_SLACK_INSTRUCTION, at, &text);
		report_name_add(out, base_str_text(&text));
	} else if (!code && ciat_data_at(&text, n, at)) {
		report_name_add(out, base_str_text(&text));
	} else {
		base_str_addf(
			out, "%s 0x%" PRIx64, code ? "the instruction at" : "the line at", at);
		if (!code)
			cmd_ciat_add_stack(out, s, at, line_bytes);
	}
	base_str_fini(&text);
}

static uint64_t cmd_ciat_address_of(
	const struct memory_ciat_result *r, const struct memory_ciat_site *e)
{
	unsigned first = e->offsets ? (unsigned)__builtin_ctzll(e->offsets) : 0;
	return e->line + first * (uint64_t)r->line_bytes / 64;
}

/* Of a line's sites the first behind `from`; NULL: none. */
static const struct memory_ciat_site *next_site(
	const struct memory_ciat_result *r, uint64_t line, uint64_t from)
{
	const struct memory_ciat_site *next = NULL;
	size_t k = BASE_PARTITION(i, r->nr_sites, r->site[i].line < line);
	for (; k < r->nr_sites && r->site[k].line == line; k++)
		if (cmd_ciat_address_of(r, &r->site[k]) >= from &&
			(!next ||
				cmd_ciat_address_of(r, &r->site[k]) < cmd_ciat_address_of(r, next)))
			next = &r->site[k];
	return next;
}

/* What is met in a line, in its order: "stats.hits and stats.misses". */
static void add_line_object(struct base_str *out, struct cmd_slack_names *n,
	const struct memory_ciat_result *r, const struct memory_ciat_line *l)
{
	struct base_str name[FIELDS_SHOWN] = {0};
	const struct memory_ciat_site *e = next_site(r, l->address, l->address);
	unsigned nr = 0;
	for (; e && nr < FIELDS_SHOWN;
		e = next_site(r, l->address, cmd_ciat_address_of(r, e) + 1)) {
		if (!ciat_site_object(&name[nr], n, r, e))
			continue;
		/* (of one field several bytes may have been met) */
		if (nr && !strcmp(base_str_text(&name[nr]), base_str_text(&name[nr - 1])))
			base_str_reset(&name[nr]);
		else
			nr++;
	}
	for (unsigned i = 0; i < nr; i++) {
		base_str_add(out, i ? i + 1 == nr && !e ? " and " : ", " : "");
		report_name_add(out, base_str_text(&name[i]));
	}
	base_str_add(out, nr && e ? ", ..." : "");
	if (!nr)
		cmd_ciat_add_place(out, n, l->address, r->line_bytes);
	for (unsigned i = 0; i < FIELDS_SHOWN; i++)
		base_str_fini(&name[i]);
}

static uint64_t came_back(const struct memory_ciat_line *l)
{
	return l->true_misses + l->false_misses;
}

/* The line that came back most often; NULL: there are none. */
static const struct memory_ciat_line *busiest_line(const struct memory_ciat_result *r)
{
	const struct memory_ciat_line *busiest = NULL;
	for (size_t i = 0; i < r->nr_lines; i++)
		if (!busiest || came_back(&r->line[i]) > came_back(busiest))
			busiest = &r->line[i];
	return busiest;
}

/* One line is most of all that came back, with news: the first sentence is about it. */
static bool busiest_finding(
	struct base_str *out, const struct memory_ciat_result *r, struct cmd_slack_names *s)
{
	const struct memory_ciat_line *l = busiest_line(r);
	uint64_t misses = r->total.all.true_misses + r->total.all.false_misses;
	if (!l || came_back(l) < BUSY_LEAST || came_back(l) * 2 <= misses)
		return false;
	size_t k = BASE_PARTITION(i, r->nr_sites, r->site[i].line < l->address);
	base_str_addf(out, "%.0f%% of the ", base_percent(came_back(l), misses));
	base_str_add_counted(
		out, "%s {time|times} that a line comes back changed are of one line: ", misses);
	add_line_object(out, s, r, l);
	if (k < r->nr_sites && r->site[k].line == l->address) {
		base_str_addf(out, ", most often %s by ", r->site[k].stores ? "stored" : "loaded");
		cmd_ciat_add_place(out, s, r->site[k].code, 0);
	}
	base_str_add(out, ".\n");
	return true;
}

static void cmd_ciat_finding(
	struct base_str *out, const struct memory_ciat_result *r, struct cmd_slack_names *s)
{
	const struct memory_ciat_counts *n = &r->total.all;
	uint64_t accesses = sum_accesses(n), misses = n->true_misses + n->false_misses;
	if (r->nr_lines && n->false_misses * 2 > misses && n->false_misses > 16) {
		base_str_addf(out, "False sharing: %.0f%% of the ",
			base_percent(n->false_misses, misses));
		base_str_add_counted(out,
			"%s {time|times} that a line comes back changed bring no news; most in ",
			misses);
		add_line_object(out, s, r, &r->line[0]);
		base_str_addf(out, " (%.0f%% of them).\n",
			base_percent(r->line[0].false_misses, n->false_misses));
	} else if (r->nr_threads == 1 || !r->usage.shared_bytes) {
		base_str_add_counted(out, "%s {access|accesses}", accesses);
		base_str_addf(out, " of %u {thread|threads} to ", r->nr_threads);
		base_str_add_size(out, r->usage.data_bytes);
		base_str_addf(out, " of memory; nothing is shared.\n");
	} else if (!busiest_finding(out, r, s)) {
		base_str_addf(out, "%.2f%% of ", base_percent(n->event[MEMORY_CIAT_RAW], accesses));
		base_str_add_counted(out, "%s {access|accesses}", accesses);
		base_str_addf(out,
			" read what another thread wrote; %.1f%% of the touched memory is "
			"shared by %u {thread|threads}.\n",
			base_percent(r->usage.shared_bytes, r->usage.touched_bytes), r->nr_threads);
	}
}

/* A variable that is read all the time, by those who see it change, which it hardly ever does: they
 * are not at work, and are in all shares of accesses. */
static void polling(
	struct base_str *out, const struct memory_ciat_result *r, const struct ciat_table *objects)
{
	for (size_t i = 0; i < objects->nr; i++) {
		const struct ciat_row *o = &objects->row[i];
		uint64_t changes = o->true_misses + o->false_misses + o->upgrades;
		if (o->kind != CIAT_VARIABLE || o->lines_moved != 1 || !o->true_misses ||
			o->accesses / POLLS_PER_CHANGE < changes ||
			o->accesses < r->usage.data_accesses / POLLED_PART ||
			base_percent(o->readers_loads, o->accesses) < POLLED_BY_PERCENT)
			continue;
		base_str_addf(out, "%.0f%% of the accesses are to ",
			base_percent(o->accesses, r->usage.data_accesses));
		report_name_add(out, o->name);
		base_str_addf(out,
			", which came back changed %" PRIu64
			" {time|times} only: threads that wait for it, and not work.\n",
			o->true_misses + o->false_misses);
	}
}

/* Of a recorded program's parallel region it is the address of its function, as it ran. */
static bool has_number(const struct memory_ciat_phase *p, const struct memory_source *s)
{
	return p->number && !(p->kind == MEMORY_PHASE_PARALLEL && s->ops->linked);
}

/* What other tools count element by element. */
static void range_row(struct base_str *out, const struct memory_ciat_counts *n)
{
	if (!n->range_load_bytes && !n->range_store_bytes)
		return;
	base_str_add(out, "  Ranges, not among these loads and stores (string instructions, system "
			  "calls, the library's copies): ");
	base_str_add_size(out, n->range_load_bytes);
	base_str_add(out, " read, ");
	base_str_add_size(out, n->range_store_bytes);
	base_str_add(out, " written\n");
}

struct phase_sum { /* of one phase, or of several */
	uint64_t clocks, accesses[2], events[MEMORY_CIAT_EVENTS];
};

static void add_phase(struct phase_sum *sum, const struct memory_ciat_phase *p)
{
	sum->clocks += p->end_clock - p->begin_clock;
	for (unsigned k = 0; k < 2; k++)
		for (unsigned s = 0; s < MEMORY_CIAT_SIZES; s++)
			for (unsigned g = 0; g < MEMORY_REG_KINDS; g++)
				sum->accesses[k] += p->all.access[k][s][g];
	for (unsigned e = 0; e < MEMORY_CIAT_EVENTS; e++)
		sum->events[e] += p->all.event[e];
}

static void phase_row(struct base_str *out, const char *name, const struct phase_sum *p)
{
	base_str_addf(out,
		"  %-12s %12" PRIu64 " %9" PRIu64 " %9" PRIu64 " %9" PRIu64 " %9" PRIu64
		" %9" PRIu64 " %9" PRIu64 "\n",
		name, p->clocks, p->accesses[0], p->accesses[1], p->events[0], p->events[1],
		p->events[2], p->events[3]);
}

/* When not all of them are shown: what is serial, and what is not. */
static void phase_kinds(struct base_str *out, const struct memory_ciat_result *r)
{
	struct phase_sum sum[MEMORY_PHASE_USER] = {0};
	for (size_t i = 0; i < r->nr_phases; i++)
		if (r->phase[i].kind < MEMORY_PHASE_USER)
			add_phase(&sum[r->phase[i].kind], &r->phase[i]);
	for (unsigned k = 0; k < MEMORY_PHASE_USER; k++) {
		struct base_str name = {0};
		base_str_addf(&name, "all %s", memory_phase_name(k));
		if (sum[k].clocks)
			phase_row(out, base_str_text(&name), &sum[k]);
		base_str_fini(&name);
	}
}

static void cmd_ciat_phase_rows(struct base_str *out, const struct memory_ciat_result *r,
	const struct memory_source *source)
{
	size_t shown = r->nr_phases < 20 ? r->nr_phases : 20;
	base_str_add(out,
		"\n  Loads and stores of what another thread had accessed last, as RAW (a load of "
		"what it stored),\n  WAR (a store to what it loaded), WAW and RAR.\n");
	base_str_add(out, "\n  phase              clocks     loads    stores       RAW       WAR  "
			  "     WAW       RAR\n");
	for (size_t i = 0; i < shown; i++) {
		const struct memory_ciat_phase *p = &r->phase[i];
		struct phase_sum one = {0};
		struct base_str name = {0};
		base_str_addf(&name, "%zu %s", i, memory_phase_name(p->kind));
		if (has_number(p, source))
			base_str_addf(&name, " %" PRIu64, p->number);
		add_phase(&one, p);
		phase_row(out, base_str_text(&name), &one);
		base_str_fini(&name);
	}
	if (r->nr_phases > shown) {
		base_str_addf(out, "  (%zu more {phase|phases}: --tags has them)\n",
			r->nr_phases - shown);
		phase_kinds(out, r);
	}
	struct phase_sum total = {0};
	add_phase(&total, &r->total);
	phase_row(out, "all", &total);
	range_row(out, &r->total.all);
}

static void degree_rows(struct base_str *out, const struct memory_ciat_result *r)
{
	base_str_add(out, "\n  How many threads load a value, and how many had loaded what a store "
			  "replaces:\n");
	base_str_add(out, "\n  readers of a value    values    readers before a store    stores\n");
	for (uint32_t k = 1; k <= r->nr_threads; k++)
		if (r->total.sharing[k] || r->total.invalidation[k])
			base_str_addf(out, "  %18u %9" PRId64 "    %22u %9" PRIu64 "\n", k,
				r->total.sharing[k], k, r->total.invalidation[k]);
}

/* Where in the line accesses began: "byte 8", "bytes 0, 16, 32, 48 and 2 more". */
static void add_offsets(struct base_str *out, uint64_t offsets, uint32_t line_bytes)
{
	unsigned nr = (unsigned)__builtin_popcountll(offsets), shown = 0;
	base_str_add(out, nr > 1 ? "      bytes" : "      byte");
	if (!nr)
		base_str_add(out, " 0");
	for (; offsets && shown < OFFSETS_SHOWN; offsets &= offsets - 1)
		base_str_addf(out, "%s %u", shown++ ? "," : "",
			(unsigned)__builtin_ctzll(offsets) * line_bytes / 64);
	if (nr > shown && shown)
		base_str_addf(out, " and %u more", nr - shown);
}

static void line_row(struct base_str *out, const struct memory_ciat_result *r,
	struct cmd_slack_names *s, const struct memory_ciat_line *l)
{
	unsigned shown = 0;
	base_str_addf(out, "  0x%" PRIx64 "  false %" PRIu64 "  true %" PRIu64 "  ", l->address,
		l->false_misses, l->true_misses);
	add_line_object(out, s, r, l);
	base_str_add(out, "\n");
	size_t k = BASE_PARTITION(i, r->nr_sites, r->site[i].line < l->address);
	for (; k < r->nr_sites && r->site[k].line == l->address && shown < SITES_SHOWN; k++) {
		const struct memory_ciat_site *e = &r->site[k];
		struct base_str field = {0};
		add_offsets(out, e->offsets, r->line_bytes);
		if (ciat_site_object(&field, s, r, e)) {
			base_str_add(out, " (");
			report_name_add(out, base_str_text(&field));
			base_str_add(out, ")");
		}
		base_str_fini(&field);
		base_str_addf(out, " %s by thread %u%s, ", e->stores ? "stored" : "loaded",
			e->thread, e->several ? " and others" : "");
		cmd_ciat_add_place(out, s, e->code, 0);
		uint64_t times = e->true_misses + e->false_misses + e->upgrades;
		base_str_addf(out, ": %" PRIu64 " {time|times}\n", times);
		shown++;
	}
}

/* Those with most false sharing, and the one that came back most often. */
static void line_rows(
	struct base_str *out, const struct memory_ciat_result *r, struct cmd_slack_names *s)
{
	const struct memory_ciat_counts *n = &r->total.all;
	if (!r->lines_known || r->nr_threads == 1)
		return;
	base_str_addf(out,
		"\n  Lines of %u {byte|bytes} that came back after another thread had changed "
		"them:\n  %" PRIu64 " with news (true sharing), %" PRIu64
		" without (false sharing)\n",
		r->line_bytes, n->true_misses, n->false_misses);
	for (size_t i = 0; i < r->nr_lines && i < LINES_SHOWN; i++)
		if (came_back(&r->line[i])) /* (or nobody did after a change) */
			line_row(out, r, s, &r->line[i]);
	const struct memory_ciat_line *busiest = busiest_line(r);
	if (busiest >= r->line + LINES_SHOWN && busiest->true_misses >= BUSY_LEAST)
		line_row(out, r, s, busiest);
}

static void matrix_rows(struct base_str *out, const struct memory_ciat_result *r)
{
	if (r->nr_threads < 2 || r->nr_threads > MATRIX_SHOWN ||
		!r->total.all.event[MEMORY_CIAT_RAW])
		return;
	base_str_add(out, "\n  Values read (columns) from who wrote them (rows)\n       ");
	for (uint32_t to = 0; to < r->nr_threads; to++)
		base_str_addf(out, " %9u", to);
	base_str_add(out, "\n");
	for (uint32_t from = 0; from < r->nr_threads; from++) {
		base_str_addf(out, "  %5u", from);
		for (uint32_t to = 0; to < r->nr_threads; to++)
			base_str_addf(
				out, " %9" PRIu64, r->matrix[(size_t)from * r->nr_threads + to]);
		base_str_add(out, "\n");
	}
}

static void usage_rows(struct base_str *out, const struct memory_ciat_result *r)
{
	const struct memory_ciat_usage *u = &r->usage;
	base_str_add(out, "\n  Memory: ");
	base_str_add_counted(out, "%s {page|pages}", u->touched_pages);
	base_str_addf(out, " touched (%" PRIu64 " shared), ", u->shared_pages);
	base_str_add_size(out, u->touched_bytes);
	base_str_add(out, " touched (data ");
	base_str_add_size(out, u->data_bytes);
	base_str_add(out, ", code ");
	base_str_add_size(out, u->code_bytes);
	base_str_add(out, "; shared ");
	base_str_add_size(out, u->shared_bytes);
	base_str_addf(out,
		")\n  %.1f%% of data accesses go to shared locations, %.1f%% to shared pages; each "
		"touched byte was accessed %.1f times, each touched instruction %.1f times\n",
		base_percent(u->shared_data_accesses, u->data_accesses),
		base_percent(u->page_shared_data_accesses, u->data_accesses), u->data_locality,
		u->code_locality);
}

static void curve_rows(struct base_str *out, const struct memory_ciat_result *r)
{
	unsigned last = 0, least = memory_reuse_least(&r->shared_curve);
	if (!r->has_reuse)
		return;
	for (unsigned i = 0; i < MEMORY_REUSE_BUCKETS; i++)
		if (r->shared_curve.count[i] > 0 || r->private_curve.count[i] > 0)
			last = i;
	base_str_add(out, "\n  Miss ratio of a fully associative LRU cache (");
	if (least)
		base_str_addf(out,
			"estimated from %" PRIu64
			" {line|lines}, %g%% of all, which say nothing of "
			"smaller caches%s)\n",
			r->shared_curve.sampled_lines, r->shared_curve.sampled_share * 100,
			r->shared_curve.sampled_lines < REUSE_LINES
				? "; so few may mislead: --reuse is exact"
				: "");
	else
		base_str_add(out, "exact)\n");
	base_str_addf(out, "  %12s %14s %14s\n", "size", "one for all", "one a thread");
	for (unsigned i = least; i <= last; i++) {
		struct base_str size = {0};
		base_str_add_size(&size, (uint64_t)r->line_bytes << i);
		base_str_addf(out, "  %12s %13.4f%% %13.4f%%\n", base_str_text(&size),
			100 * memory_reuse_miss_ratio(&r->shared_curve, i),
			100 * memory_reuse_miss_ratio(&r->private_curve, i));
		base_str_fini(&size);
	}
}

static int by_accesses(const void *a, const void *b)
{
	const struct memory_ciat_function *x = *(const struct memory_ciat_function *const *)a,
					  *y = *(const struct memory_ciat_function *const *)b;
	uint64_t nx = x->loads + x->stores, ny = y->loads + y->stores;
	return nx != ny ? (nx < ny ? 1 : -1) : (x->code > y->code) - (x->code < y->code);
}

static void cmd_ciat_instruction_rows(
	struct base_str *out, const struct memory_ciat_result *r, struct cmd_slack_names *s)
{
	const struct memory_ciat_function **by =
		base_alloc((r->nr_functions + 1) * sizeof(struct memory_ciat_function *));
	if (!r->nr_functions || !by) {
		base_free(by);
		return;
	}
	for (size_t i = 0; i < r->nr_functions; i++)
		by[i] = &r->function[i];
	qsort(by, r->nr_functions, sizeof(struct memory_ciat_function *), by_accesses);
	base_str_add(out, "\n      loads     stores        RAW  sharing misses  instruction\n");
	for (size_t i = 0; i < r->nr_functions && i < FUNCTIONS_SHOWN; i++) {
		base_str_addf(out,
			"  %9" PRIu64 "  %9" PRIu64 "  %9" PRIu64 "       %9" PRIu64 "  ",
			by[i]->loads, by[i]->stores, by[i]->raw, by[i]->misses);
		cmd_ciat_add_place(out, s, by[i]->code, 0);
		base_str_add(out, "\n");
	}
	base_free(by);
}

static void cmd_ciat_caveats(
	struct base_str *out, const struct cmd_streams *s, const struct memory_ciat_result *r)
{
	cmd_streams_caveats(s, out);
	base_str_addf(out,
		"Accesses are compared by locations of %u {byte|bytes}. The analysis took ",
		r->location_bytes);
	base_str_add_size(out, r->memory_bytes);
	base_str_addf(out, ", %.1f bytes for each byte that was touched.\n",
		r->usage.touched_bytes ? (double)r->memory_bytes / (double)r->usage.touched_bytes
				       : 0);
	if (r->phases_left_out)
		base_str_addf(out,
			"Caution: %" PRIu64 " {phase beyond the limit is|phases beyond the limit "
			"are} only in the sums.\n",
			r->phases_left_out);
	if (r->blocks_left_out)
		base_str_addf(out,
			"Caution: %" PRIu64
			" allocated {block was|blocks were} too many at a time; accesses to "
			"them have no name.\n",
			r->blocks_left_out);
	if (r->sites_left_out)
		base_str_addf(out,
			"Caution: %" PRIu64
			" sharing {miss is|misses are} not attributed to instructions.\n",
			r->sites_left_out);
	if (r->nr_threads > 1 && r->lines_known)
		base_str_add(out, "Caches are taken as endless: a line comes back only because "
				  "another thread changed it.\n");
	base_str_add(out, "NEXT  longpole cdat ");
	if (r->nr_threads > 1) /* (threads fill a node before the next one) */
		base_str_addf(out, "--set=nodes=2 --set=processors=%u ", (r->nr_threads + 1) / 2);
	cmd_streams_again(out, s);
}

/* ---- running --------------------------------------------------------------------------------- */

static void on_event(
	void *ctx, uint64_t clock, enum memory_ciat_event kind, uint32_t thread, uint32_t degree)
{
	struct cmd_out *o = ctx;
	memory_ciat_event_line(&o->pending, clock, kind, thread, degree);
	cmd_out_add(o);
}

static enum base_status cmd_ciat_add(
	void *ctx, const struct memory_steps *steps, struct base_err *err)
{
	return memory_ciat_add(ctx, steps, err);
}

struct tables {
	struct cmd_slack_names names;
	struct ciat_table objects, functions;
};

static enum base_status fill_tables(struct tables *t, const struct cmd_streams *s,
	const struct memory_ciat *analysis, const struct memory_ciat_result *r)
{
	*t = (struct tables){.names = {.source = s->source}};
	enum base_status ok = ciat_objects(&t->objects, &t->names, analysis, r);
	return ok == BASE_OK ? ciat_functions(&t->functions, &t->names, r) : ok;
}

static void cmd_ciat_tables_fini(struct tables *t)
{
	ciat_table_fini(&t->objects);
	ciat_table_fini(&t->functions);
	cmd_slack_names_fini(&t->names);
}

static bool cmd_ciat_field_of(void *ctx, const struct memory_ciat_result *r,
	const struct memory_ciat_site *site, struct base_str *out)
{
	return ciat_site_object(out, ctx, r, site);
}

static int cmd_ciat_answer_json(struct cmd *c, const struct cmd_streams *s, struct tables *t,
	const struct memory_ciat_result *r)
{
	const struct memory_names by = {&t->names, cmd_slack_place, cmd_ciat_field_of};
	json_t *result = memory_ciat_json(r, s->source, &by);
	if (!cmd_given(c, "functions"))
		json_object_del(result, "instructions");
	json_object_set_new(result, "objects", ciat_objects_json(&t->objects));
	json_object_set_new(result, "functions", ciat_functions_json(&t->functions));
	return cmd_write_json(c, json_pack("{s:s, s:s, s:o, s:o}", "schema", "longpole/ciat/1",
					 "tool", "longpole " LONGPOLE_VERSION, "source",
					 cmd_streams_json(s), "result", result));
}

static int cmd_ciat_answer(struct cmd *c, const struct cmd_streams *s,
	const struct memory_ciat *analysis, const struct memory_ciat_result *r)
{
	struct base_str text = {0};
	struct tables t;
	if (cmd_given(c, "tags")) {
		memory_ciat_tags(&text, r);
		return cmd_write(c, &text);
	}
	int status = CMD_OK;
	enum base_status ok = fill_tables(&t, s, analysis, r);
	if (ok != BASE_OK) {
		status = cmd_fail(c, base_fail(&c->err, ok, "no memory for names"));
	} else if (cmd_given(c, "json")) {
		status = cmd_ciat_answer_json(c, s, &t, r);
	} else {
		cmd_ciat_finding(&text, r, &t.names);
		polling(&text, r, &t.objects);
		cmd_ciat_phase_rows(&text, r, t.names.source);
		if (r->nr_threads > 1)
			degree_rows(&text, r);
		line_rows(&text, r, &t.names);
		ciat_objects_text(&text, &t.objects, OBJECTS_SHOWN);
		ciat_functions_text(&text, &t.functions, FUNCTIONS_SHOWN);
		matrix_rows(&text, r);
		memory_silent_text(&text, s->source, r->nr_threads);
		usage_rows(&text, r);
		curve_rows(&text, r);
		if (cmd_given(c, "functions"))
			cmd_ciat_instruction_rows(&text, r, &t.names);
		cmd_ciat_caveats(&text, s, r);
		status = cmd_write_prose(c, &text);
	}
	cmd_ciat_tables_fini(&t);
	return status;
}

static int cmd_ciat_write_files(struct cmd *c, const struct memory_ciat_result *r)
{
	struct cmd_out report, usage;
	if (!cmd_out_open(c, "report", &report))
		return cmd_exit_of(c->err.status);
	if (report.file)
		memory_ciat_tags(&report.pending, r);
	int status = cmd_out_close(c, &report);
	if (status != CMD_OK)
		return status;
	if (!cmd_out_open(c, "memory-file", &usage))
		return cmd_exit_of(c->err.status);
	if (usage.file)
		memory_ciat_usage_file(&usage.pending, r);
	return cmd_out_close(c, &usage);
}

/* --events=FILE, or the seed's -ciat_events, which names the file by the trace. */
static bool cmd_ciat_open_events(struct cmd *c, const struct cmd_streams *s, struct cmd_out *ret)
{
	if (!cmd_given(c, "ciat-events") || cmd_given(c, "events"))
		return cmd_out_open(c, "events", ret);
	struct base_str path = {0};
	base_str_addf(&path, "%s.ciat_events", s->name);
	bool opened = cmd_out_open_path(c, base_str_text(&path), ret);
	ret->path = s->name; /* what messages name: the path's text ends here */
	base_str_fini(&path);
	return opened;
}

static int cmd_ciat_run(struct cmd *c, struct cmd_streams *s, struct memory_ciat_options *o)
{
	struct cmd_out events;
	struct memory_ciat *analysis = NULL;
	const struct memory_ciat_result *r = NULL;
	if (!cmd_ciat_open_events(c, s, &events))
		return cmd_exit_of(c->err.status);
	uint32_t nr_threads = memory_order_threads(s->order);
	if (events.file) {
		o->event = on_event;
		o->event_ctx = &events;
		memory_ciat_event_header(&events.pending, nr_threads);
	}
	int status = CMD_OK;
	enum base_status ok = memory_ciat_new(nr_threads, o, &analysis, &c->err);
	if (ok == BASE_OK && !o->event && !o->with_reuse)
		ok = memory_order_allow_runs(s->order, &c->err);
	if (ok != BASE_OK)
		status = cmd_fail(c, ok);
	else
		status = cmd_streams_run(c, s, cmd_ciat_add, analysis);
	if (status == CMD_OK) {
		memory_ciat_set_threads(analysis, cmd_streams_threads(s));
		ok = memory_ciat_finish(analysis, s->source->info.instruction_bytes, &r, &c->err);
		status = ok == BASE_OK ? cmd_ciat_write_files(c, r) : cmd_fail(c, ok);
	}
	int closed = cmd_out_close(c, &events);
	status = status == CMD_OK ? closed : status;
	if (status == CMD_OK)
		status = cmd_ciat_answer(c, s, analysis, r);
	memory_ciat_free(analysis);
	return status;
}

/* All batches of the source; a second pass then analyses it. */
static enum base_status copy_batches(
	struct memory_source *s, struct memory_smait_writer *w, int thread, struct base_err *err)
{
	for (;;) {
		struct memory_batch b;
		enum base_status ok = memory_source_next(s, thread, &b, err);
		if (ok == BASE_OK)
			ok = memory_smait_writer_put(w, &b, err);
		if (ok != BASE_OK)
			return ok == BASE_END ? BASE_OK : ok;
	}
}

static enum base_status copy_source(
	struct memory_source *s, struct memory_smait_writer *w, struct base_err *err)
{
	enum base_status ok = BASE_OK;
	if (s->info.flags & MEMORY_SOURCE_TOTAL_ORDER)
		return copy_batches(s, w, MEMORY_ANY_THREAD, err);
	for (uint32_t i = 0; i < s->info.nr_threads && ok == BASE_OK; i++)
		ok = copy_batches(s, w, (int)i, err);
	return ok;
}

static int write_smait(struct cmd *c, const char *stem)
{
	struct memory_source *s;
	struct memory_smait_writer *w;
	struct memory_smait_loss loss = {0};
	int status = cmd_streams_open_source(c, 0, &s);
	if (status != CMD_OK)
		return status;
	enum base_status ok = memory_smait_writer_open(stem, s->info.nr_threads, true, &w, &c->err);
	if (ok == BASE_OK) {
		ok = copy_source(s, w, &c->err);
		enum base_status closed =
			memory_smait_writer_close(w, &loss, ok == BASE_OK ? &c->err : NULL);
		ok = ok == BASE_OK ? closed : ok;
	}
	memory_source_close(s);
	if (ok != BASE_OK)
		return cmd_fail(c, ok);
	if (loss.nested_calls || loss.shared_locks)
		cmd_note(c,
			"%s: %" PRIu64
			" {thread|threads} created or joined by another thread than the first "
			"are in no spawn or join record; %" PRIu64
			" {lock|locks} of readers became critical sections, which admit one",
			stem, loss.nested_calls, loss.shared_locks);
	if (loss.moved_pages || loss.ranges || loss.other_calls || loss.left_out)
		cmd_note(c,
			"%s: %" PRIu64
			" {page was|pages were} moved below 4 GiB (code: 256 MiB); %" PRIu64
			" {range|ranges}, %" PRIu64 " call {record|records} and %" PRIu64
			" other {record has|records have} no place in the format",
			stem, loss.moved_pages, loss.ranges, loss.other_calls, loss.left_out);
	return CMD_OK;
}

int cmd_run_ciat(struct cmd *c)
{
	struct memory_ciat_options o;
	struct cmd_streams s;
	if (!ciat_options(c, &o))
		return CMD_USAGE;
	if (cmd_streams_are_live(c) && cmd_given(c, "smait"))
		return cmd_usage(c, "--smait reads a trace: record it first");
	int status = cmd_streams_open(c, 0, MEMORY_LIVE_THREADS, &s);
	if (status != CMD_OK)
		return status;
	if (cmd_given(c, "smait"))
		status = write_smait(c, cmd_value(c, "smait"));
	if (status == CMD_OK)
		status = cmd_ciat_run(c, &s, &o);
	status = cmd_streams_exit(&s, status);
	cmd_streams_close(&s);
	return status;
}
