/* SPDX-License-Identifier: Apache-2.0 */
/* spin_text.c - the answer of `longpole spin` for people and for programs. */
#include "cmd/spin.h"
#include "base/column.h"
#include "base/json.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { NAME_COLUMN = 17, NS_PER_MS = 1000000, SAMPLES_FEW = 100 };

struct totals {
	uint64_t instructions, marked, spinning, counting, evictions, overflows;
	uint64_t samples, spins, counts, kernel, works, cut, refused;
};

static struct totals spin_text_sum(const struct spin_answer *a)
{
	struct totals t = {0};
	for (size_t i = 0; i < a->nr_threads; i++) {
		const struct spin_thread *r = &a->thread[i];
		t.instructions += r->instructions;
		t.marked += r->marked_instructions;
		t.spinning += r->spin_instructions;
		t.counting += r->counting_instructions;
		t.evictions += r->evictions;
		t.overflows += r->overflows;
		t.spins += r->samples[SPIN_SPINS];
		t.counts += r->samples[SPIN_COUNTS];
		t.kernel += r->samples[SPIN_KERNEL];
		t.works += r->samples[SPIN_WORKS];
		t.cut += r->samples[SPIN_CUT];
		t.refused += r->samples[SPIN_REFUSED];
	}
	t.samples = t.spins + t.counts + t.kernel + t.works + t.cut;
	return t;
}

static double spin_text_share(uint64_t part, uint64_t whole)
{
	return whole ? (double)part / (double)whole : 0;
}

/* Of what was counted, or of the samples: less is no reason to do anything. */
static bool matters(const struct cmd_spin *c, const struct totals *t)
{
	static const double least_share = 0.001;
	double waits = c->a->sampled ? spin_text_share(t->spins + t->counts, t->samples)
				     : spin_text_share(t->spinning + t->counting, t->instructions);
	return c->a->nr_loops && waits >= least_share;
}

/* ---- names ----------------------------------------------------------------------------------- */

static void spin_text_add_place(struct base_str *out, const struct spin_place *p)
{
	const char *base = p->file ? strrchr(p->file, '/') : NULL;
	if (p->function)
		report_name_add(out, p->function);
	else
		base_str_addf(out, "0x%" PRIx64, p->address);
	if (p->file) {
		base_str_add(out, " (");
		report_clean_add(out, base ? base + 1 : p->file);
		base_str_addf(out, ":%" PRIu64 ")", p->line);
	} else if (!p->function && p->object) {
		base_str_add(out, " in ");
		report_clean_add(out, p->object);
	}
}

static void add_thread_name(struct base_str *out, const struct cmd_spin *c, uint64_t id)
{
	const struct spin_thread *t = spin_thread_of(c->a, id);
	base_str_addf(out, "thread %" PRIu64, id);
	if (t && *t->name) {
		base_str_add(out, " ");
		report_clean_add(out, t->name);
	}
}

static void spin_text_add_word(struct base_str *out, const struct spin_polled *p)
{
	if (p->name)
		report_name_add(out, p->name);
	else
		base_str_addf(out, "0x%" PRIx64, p->address);
	if (p->name)
		base_str_addf(out, " (0x%" PRIx64 ")", p->address);
	if (p->own_stack)
		base_str_add(out, " on its own stack");
	if (p->shared)
		base_str_add(out, " in memory shared with other processes");
}

/* The word that was changed most often; the first variable; the first. */
static const struct spin_polled *main_word(const struct spin_loop *l)
{
	const struct spin_polled *best = l->nr_polled ? &l->polled[0] : NULL;
	for (size_t i = 1; i < l->nr_polled; i++)
		if (l->polled[i].changes > best->changes ||
			(l->polled[i].changes == best->changes && !best->name && l->polled[i].name))
			best = &l->polled[i];
	return best;
}

/* ---- text ------------------------------------------------------------------------------------ */

static void finding_livelock(struct base_str *out, const struct cmd_spin *c)
{
	const struct spin_standstill *s = &c->a->standstill;
	bool open = s->verdict == SPIN_LIVELOCK_OPEN;
	base_str_addf(out, "%s: %" PRIu64 " {thread runs, and spins|threads run, and all spin}",
		open ? "perhaps a livelock" : "livelock", s->nr_spinning);
	if (s->nr_asleep)
		base_str_addf(out, ", %" PRIu64 " more {sleeps|sleep}", s->nr_asleep);
	if (open) {
		base_str_addf(out, "; but %s\n", s->open);
		return;
	}
	base_str_add(out, ", and none can end it; found after ");
	base_str_add_ns(out, s->found_ns);
	base_str_add(out,
		s->has_handlers ? " (certain, unless a signal handler ends it)\n" : " (certain)\n");
}

struct interval {
	double low, high;
};

/* Of a share, 95 % (Wilson 1927). Samples are taken one after the other, by chance. */
static struct interval interval_of(uint64_t part, uint64_t whole)
{
	const double z = 1.96, n = (double)whole;
	if (!whole)
		return (struct interval){0, 1};
	double p = (double)part / n, d = 1 + z * z / n;
	double mid = (p + z * z / (2 * n)) / d;
	double half = z * sqrt(p * (1 - p) / n + z * z / (4 * n * n)) / d;
	return (struct interval){
		part ? fmax(mid - half, 0) : 0, part < whole ? fmin(mid + half, 1) : 1};
}

static void finding_sampled(
	struct base_str *out, const struct spin_answer *a, const struct totals *t)
{
	if (!t->samples && !t->refused && a->nr_idle_looks) {
		base_str_add(out, "nothing spins: all threads slept, at each of ");
		base_str_add_counted(out,
			"%s {look|looks} (of this process; its children are others)",
			a->nr_idle_looks);
		return;
	}
	if (!t->samples) {
		base_str_add(out, "nothing is known: no thread was met that ran or could");
		return;
	}
	struct interval i = {interval_of(t->spins, t->samples).low,
		interval_of(t->spins + t->cut, t->samples).high};
	base_str_addf(out,
		"%.1f %% of the samples spin: %" PRIu64 " of %" PRIu64
		" (so of the time, with 95 %% certainty: %.1f to %.1f %%)",
		spin_text_share(t->spins, t->samples) * 100, t->spins, t->samples, i.low * 100,
		i.high * 100);
	if (t->counts)
		base_str_addf(out, "; %.1f %% more poll and count",
			spin_text_share(t->counts, t->samples) * 100);
	if (t->cut)
		base_str_addf(out, "; of %.1f %% it is not known, they were cut short",
			spin_text_share(t->cut, t->samples) * 100);
}

static void finding_counted(struct base_str *out, const struct totals *t, bool waits)
{
	if (waits)
		base_str_addf(out, "%.1f %% of the instructions only wait: ",
			spin_text_share(t->spinning, t->instructions) * 100);
	else
		base_str_add(out, "no spinning that would matter: ");
	base_str_add_count(out, t->spinning);
	base_str_add(out, " of ");
	base_str_add_count(out, t->instructions);
	base_str_add(out, waits ? " (counted)" : " instructions only wait (counted)");
	if (!t->counting)
		return;
	base_str_add(out, "; ");
	if (waits)
		base_str_addf(out, "%.1f %%", spin_text_share(t->counting, t->instructions) * 100);
	else
		base_str_add_count(out, t->counting);
	base_str_add(out, " more poll and count");
}

static void spin_text_finding(
	struct base_str *out, const struct cmd_spin *c, const struct totals *t)
{
	const struct spin_answer *a = c->a;
	if (a->standstill.verdict != SPIN_LIVELOCK_NONE)
		finding_livelock(out, c);
	if (a->sampled)
		finding_sampled(out, a, t);
	else
		finding_counted(out, t, matters(c, t));
	base_str_add(out, "\n");
	if (!matters(c, t))
		return;
	const struct spin_loop *l = &a->loop[0];
	const struct spin_polled *p = main_word(l);
	base_str_add(out, "most: ");
	add_thread_name(out, c, l->thread);
	base_str_add(out, " in ");
	spin_text_add_place(out, &l->branch);
	if (p) {
		base_str_add(out, ", on ");
		spin_text_add_word(out, p);
	}
	if (p && p->last_writer) {
		base_str_add(out, ", which ");
		add_thread_name(out, c, p->last_writer);
		base_str_add(out, " changed last, in ");
		spin_text_add_place(out, &p->last_writer_at);
	}
	base_str_add(out, "\n");
}

static void add_right(struct base_str *out, unsigned width, uint64_t n)
{
	struct base_str s = {0};
	base_str_add_count(&s, n);
	base_str_addf(out, "%*s", (int)width, base_str_text(&s));
	out->failed |= s.failed;
	base_str_fini(&s);
}

static void threads_counted(struct base_str *out, const struct cmd_spin *c)
{
	const struct spin_answer *a = c->a;
	base_str_addf(out, "\n%-*s %15s %15s %15s %15s %7s\n", NAME_COLUMN, "thread",
		"instructions", "spinning", "poll and count", "useful", "useful");
	for (size_t i = 0; i < a->nr_threads && (!c->limit || i < c->limit); i++) {
		const struct spin_thread *t = &a->thread[i];
		uint64_t useful = t->instructions - t->spin_instructions;
		base_str_addf(out, "%-*" PRIu64, NAME_COLUMN, t->id);
		add_right(out, 16, t->instructions);
		add_right(out, 16, t->spin_instructions);
		add_right(out, 16, t->counting_instructions);
		add_right(out, 16, useful);
		base_str_addf(out, " %5.1f %%\n", spin_text_share(useful, t->instructions) * 100);
	}
}

static void threads_sampled(struct base_str *out, const struct cmd_spin *c)
{
	const struct spin_answer *a = c->a;
	base_str_addf(out, "\n%-24s %9s %9s %9s %9s %9s %9s\n", "thread", "samples", "spinning",
		"polling", "kernel", "working", "cut short");
	for (size_t i = 0; i < a->nr_threads && (!c->limit || i < c->limit); i++) {
		const struct spin_thread *t = &a->thread[i];
		struct base_str name = {0};
		uint64_t all = 0;
		for (unsigned v = SPIN_KERNEL; v < SPIN_VERDICTS; v++)
			all += t->samples[v];
		base_str_addf(&name, "%" PRIu64 " ", t->id);
		report_clean_add(&name, t->name);
		base_str_addf(out, "%-24.24s %9" PRIu64, base_str_text(&name), all);
		base_str_fini(&name);
		base_str_addf(out, " %7.1f %% %7.1f %% %7.1f %% %7.1f %% %7.1f %%\n",
			spin_text_share(t->samples[SPIN_SPINS], all) * 100,
			spin_text_share(t->samples[SPIN_COUNTS], all) * 100,
			spin_text_share(t->samples[SPIN_KERNEL], all) * 100,
			spin_text_share(t->samples[SPIN_WORKS], all) * 100,
			spin_text_share(t->samples[SPIN_CUT], all) * 100);
	}
}

static void loop_amount(struct base_str *out, const struct cmd_spin *c, const struct spin_loop *l,
	const struct totals *t)
{
	if (c->a->sampled) {
		uint64_t n = l->samples_spin + l->samples_count;
		base_str_addf(out, "%5.1f %% of samples", spin_text_share(n, t->samples) * 100);
		if (l->samples_count > l->samples_spin)
			base_str_add(out, ", polls and counts (two-phase waiting?)");
		else if (l->loop_instructions)
			base_str_addf(out, ", a round is %" PRIu64 " {instruction|instructions}",
				l->loop_instructions);
		if (l->yields)
			base_str_add(out, ", yields");
		return;
	}
	base_str_addf(out, "%5.1f %% of instructions",
		spin_text_share(l->spin_instructions + l->counting_instructions, t->instructions) *
			100);
	if (l->spin_iterations) {
		base_str_add(out, ", ");
		base_str_add_counted(out, "%s {wait|waits}", l->waits);
		base_str_addf(out, ", %.1f instructions a round, at most ",
			spin_text_share(l->spin_instructions, l->spin_iterations));
		base_str_add_counted(out, "%s {round|rounds} in a row", l->longest_iterations);
	}
	if (l->counting_iterations) {
		base_str_add(out, "; polls and counts (two-phase waiting?) in ");
		base_str_add_counted(out, "%s {round|rounds}", l->counting_iterations);
	}
}

static void loop_word(struct base_str *out, const struct cmd_spin *c, const struct spin_polled *p)
{
	base_str_add(out, "          on ");
	spin_text_add_word(out, p);
	if (c->a->sampled) {
		base_str_addf(out, " = %" PRIu64 "\n", p->value);
		return;
	}
	if (!p->last_writer) {
		base_str_add(out, ", which nobody was seen to change\n");
		return;
	}
	base_str_add(out, ", changed last by ");
	add_thread_name(out, c, p->last_writer);
	base_str_add(out, " in ");
	spin_text_add_place(out, &p->last_writer_at);
	base_str_add(out, "; ");
	base_str_add_counted(out, "%s {change|changes}", p->changes);
	if (p->nr_writers > 1)
		base_str_addf(out, ", by %zu%s threads", p->nr_writers,
			p->nr_writers == SPIN_WRITERS ? " or more" : "");
	base_str_add(out, "\n");
}

static void loops(struct base_str *out, const struct cmd_spin *c, const struct totals *t)
{
	const struct spin_answer *a = c->a;
	for (size_t i = 0; i < a->nr_loops && (!c->limit || i < c->limit); i++) {
		const struct spin_loop *l = &a->loop[i];
		base_str_add(out, i ? "  " : "\nloops that wait, by thread\n  ");
		add_thread_name(out, c, l->thread);
		base_str_add(out, " in ");
		spin_text_add_place(out, &l->branch);
		base_str_add(out, "\n    ");
		loop_amount(out, c, l, t);
		base_str_add(out, "\n");
		for (size_t k = 0; k < l->nr_polled; k++)
			loop_word(out, c, &l->polled[k]);
		if (l->more_polled)
			base_str_add(out, "          and on more words\n");
	}
	if (c->limit && a->nr_loops > c->limit)
		base_str_addf(
			out, "  %zu {loop|loops} more: --all shows them\n", a->nr_loops - c->limit);
}

static void how_counted(struct base_str *out, const struct cmd_spin *c, const struct totals *t)
{
	const struct spin_answer *a = c->a;
	base_str_add(out, "\n");
	if (matters(c, t))
		base_str_addf(out,
			"useful IPC is %.3f times IPC. Estimated: cycles are not known "
			"under Valgrind; on a "
			"processor of one instruction a cycle useful IPC would be that number.\n",
			1 - spin_text_share(t->spinning, t->instructions));
	base_str_add(out, "how: every instruction was seen, one thread at a time. How often a loop "
			  "goes round "
			  "depends on that schedule, the useful instructions do not.\n");
	if (t->evictions || t->overflows)
		base_str_addf(out,
			"limits: of %" PRIu64 " {loop|loops} and %" PRIu64
			" {register|registers} %" PRIu64 " and %" PRIu64
			" {time|times} one more was needed; what spun then may be missing "
			"(--sdt, --rub)\n",
			a->nr_sdt, a->nr_rub, t->evictions, t->overflows);
	if (t->marked) {
		base_str_add(out, "marked: ");
		base_str_add_counted(out,
			"%s {instruction was|instructions were} in the range of --marked\n",
			t->marked);
	}
	if (a->lost_loops || a->lost_words)
		base_str_addf(out,
			"lost: %" PRIu64 " {loop|loops}, %" PRIu64 " {word|words} had no place\n",
			a->lost_loops, a->lost_words);
	if (a->nr_processes > 1)
		base_str_addf(out, "processes: %" PRIu64 ", whose threads are numbered on\n",
			a->nr_processes);
}

static void how_sampled(struct base_str *out, const struct cmd_spin *c, const struct totals *t)
{
	const struct spin_answer *a = c->a;
	base_str_add(out, "\nhow: ");
	base_str_add_counted(
		out, "%s {sample|samples} of threads that ran or could, in ", t->samples);
	base_str_add_ns(out, a->elapsed_ns);
	base_str_add(out,
		"; each was stepped until its registers and memory came back, twice. Spins "
		"are "
		"proved; a longer loop than the steps of a sample counts as work (--steps)\n"
		"cost: threads were held for ");
	base_str_add_ns(out, a->stopped_ns);
	base_str_add(out, " in all, ");
	base_str_add_ns(out, a->longest_stop_ns);
	base_str_add(out, " at most at once");
	if (t->cut) {
		base_str_add(out, "; ");
		base_str_add_counted(out,
			"%s {sample was|samples were} cut short, because others had the processor "
			"(--longest-stop)",
			t->cut);
	}
	if (a->standstill.stopped_ns) {
		base_str_add(out, "; all of them together for ");
		base_str_add_ns(out, a->standstill.stopped_ns);
		base_str_add(out, " at most, to look for livelock");
	}
	base_str_add(out, "\n");
	if (t->samples < SAMPLES_FEW)
		base_str_add(out, "few samples: a longer --duration brings more, or a higher "
				  "--max-stop where others have the processors\n");
	if (a->has_cycles)
		base_str_addf(out,
			"useful IPC %.2f, IPC %.2f: estimated, as if loops that spin had the IPC "
			"of the rest\n",
			spin_text_share(a->instructions, a->cycles) *
				(1 - spin_text_share(t->spins, t->samples)),
			spin_text_share(a->instructions, a->cycles));
	else if (t->samples)
		base_str_addf(out,
			"useful IPC is %.2f to %.2f times IPC: cycles are not counted on "
			"this machine\n",
			1 - interval_of(t->spins, t->samples).high,
			1 - interval_of(t->spins, t->samples).low);
	if (t->refused)
		base_str_addf(out, "not looked at, %" PRIu64 " {time|times}: %s\n", t->refused,
			a->refused ? a->refused : "");
	if (c->no_tool)
		base_str_addf(out, "instructions were not counted: %s\n", c->no_tool);
}

void cmd_spin_text(struct base_str *out, const struct cmd_spin *c)
{
	struct totals t = spin_text_sum(c->a);
	spin_text_finding(out, c, &t);
	if (c->a->sampled)
		threads_sampled(out, c);
	else
		threads_counted(out, c);
	loops(out, c, &t);
	if (c->a->sampled)
		how_sampled(out, c, &t);
	else
		how_counted(out, c, &t);
	base_str_add(out,
		matters(c, &t)
			? "next: longpole run --spin-yield 2 PROG, where threads are more than "
			  "processors; longpole locks for what the locks cost\n"
			: "next: longpole record, then longpole report: what it does wait for\n");
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static json_t *address_json(uint64_t address)
{
	char text[24];
	snprintf(text, sizeof text, "0x%" PRIx64, address);
	return json_string(text);
}

static json_t *writers_json(const struct spin_polled *p)
{
	json_t *writers = json_array();
	for (size_t i = 0; i < p->nr_writers; i++)
		json_array_append_new(writers, base_json_u64(p->writer[i]));
	return writers;
}

static const char *const livelock_verdict[] = {"none", "not_certain", "found"};
enum { BY_SAMPLES = 1, COUNTED = 2, PROGRAM_ENDED = 4 };
struct spin_document {
	const char *program, *no_tool;
	const struct spin_answer *a;
	struct totals t;
};

#include "cmd/spin.def"

json_t *cmd_spin_json(const struct cmd_spin *c)
{
	struct spin_document d = {c->program, c->no_tool, c->a, spin_text_sum(c->a)};
	unsigned has = (c->a->sampled ? BY_SAMPLES : COUNTED) |
		       (c->program && !c->a->running ? PROGRAM_ENDED : 0);
	return cmd_result_json(
		cmd_spin_document.name, base_table_json(&cmd_spin_document, &d, NULL, has));
}
