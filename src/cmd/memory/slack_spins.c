/* SPDX-License-Identifier: Apache-2.0 */
/* slack_spins.c - of `longpole slack --spins`: loops of the program's own that only wait. */
#include "cmd/memory/slack.h"

#include <inttypes.h>
#include <stdlib.h>

static double slack_spins_ratio(uint64_t n, uint64_t of)
{
	return of ? (double)n / (double)of : 0;
}

static int slack_spins_most_first(const void *x, const void *y)
{
	const struct slack_spin_loop *a = *(const struct slack_spin_loop *const *)x;
	const struct slack_spin_loop *b = *(const struct slack_spin_loop *const *)y;
	if (a->instructions != b->instructions)
		return a->instructions < b->instructions ? 1 : -1;
	return a < b ? -1 : a > b;
}

const struct slack_spin_loop **cmd_slack_loops(const struct slack_spins *s)
{
	const struct slack_spin_loop **list = base_alloc((s->nr_loops + 1) * sizeof *list);
	for (size_t i = 0; list && i < s->nr_loops; i++)
		list[i] = &s->loop[i];
	if (list && s->nr_loops)
		qsort(list, s->nr_loops, sizeof(const struct slack_spin_loop *),
			slack_spins_most_first);
	return list;
}

static void slack_spins_add_words(
	struct base_str *out, const struct cmd_slack_view *v, const struct slack_spin_loop *l)
{
	for (uint32_t i = 0; i < l->nr_words; i++) {
		base_str_add(out, i ? ", " : "");
		cmd_slack_name(v->names, CMD_SLACK_DATA, l->word[i], out);
	}
	if (l->more_words)
		base_str_add(out, ", ...");
}

static void slack_spins_add_row(
	struct base_str *out, const struct cmd_slack_view *v, const struct slack_spin_loop *l)
{
	struct base_str name = {0}, words = {0};
	cmd_slack_name(v->names, CMD_SLACK_INSTRUCTION, l->branch, &name);
	slack_spins_add_words(&words, v, l);
	base_str_addf(out, "  %6u %12" PRIu64 " %12" PRIu64 " %7" PRIu64 " %10" PRIu64 "  ",
		l->thread, l->instructions, l->rounds, l->waits, l->longest_rounds);
	report_name_add(out, base_str_text(&name));
	base_str_add(out, l->nr_words ? " on " : "");
	report_clean_add(out, base_str_text(&words));
	base_str_add(out, l->counts ? "; counts\n" : "\n");
	base_str_fini(&name);
	base_str_fini(&words);
}

/* What a processor that sleeps while it spins would save: section 3.5.2.2. */
static void power_rows(struct base_str *out, const struct cmd_slack_view *v)
{
	const struct slack_machine_result *m = v->result ? &v->result->machine : NULL;
	uint64_t spun = 0, low = 0, ends = 0, wrong = 0, all = 0;
	for (uint32_t i = 0; m && i < m->nr_processors; i++) {
		const struct slack_processor_result *p = &m->processor[i];
		spun += p->spun_cycles;
		low += p->low_power_cycles;
		ends += p->low_power_ends;
		wrong += p->low_power_false;
		all += p->end - p->begin;
	}
	if (!spun)
		return;
	base_str_addf(out,
		"\n  Such loops took %.2f%% of the processors' cycles in the machine.\n  With a "
		"load address cache of %" PRIu64
		" {line|lines}, %.2f%% of them would be in low power (%.2f%% of all).\n  Stores "
		"ended that %" PRIu64 " {time|times}, %" PRIu64
		" of them to another word of the line.\n",
		base_percent(spun, all), v->config->lac_entries, base_percent(low, spun),
		base_percent(low, all), ends, wrong);
}

/* How often loops went round in the machine, and why some did as they were recorded. */
static void wait_rows(struct base_str *out, const struct cmd_slack_view *v)
{
	const struct slack_waits *w = v->waits;
	const struct slack_machine_result *m = v->result ? &v->result->machine : NULL;
	if (!m || !v->spins->nr_loops)
		return;
	if (!w) {
		base_str_add(out, "\n  In the machine such loops went round as often as they did "
				  "when they were recorded.\n");
		return;
	}
	base_str_addf(out,
		"\n  In the machine such loops waited anew: %" PRIu64
		" {instruction|instructions} in %" PRIu64 " {wait|waits}, instead of %" PRIu64
		" that were recorded. Of all %" PRIu64 " {instruction|instructions} %" PRIu64
		" {was|were} useful, in %" PRIu64
		" {cycle|cycles}: useful IPC %.3f, IPC %.3f, of all processors together.\n",
		m->respun, m->rewaits, w->skipped, m->instructions, m->instructions - m->spinning,
		m->cycles, slack_spins_ratio(m->instructions - m->spinning, m->cycles),
		slack_spins_ratio(m->instructions, m->cycles));
	base_str_addf(out,
		"  What ends them: %" PRIu64 " {time|times} one store that can have, %" PRIu64
		" {time|times} a lock was free. Of loops in which nobody waited when it was "
		"recorded it "
		"is not known that they wait: their locks exclude nobody here.\n",
		w->flags, w->locks);
	if (w->several || w->unseen)
		base_str_addf(out,
			"  As recorded: %" PRIu64
			" {wait|waits} that several stores can have ended, %" PRIu64
			" that no store in the trace can.\n",
			w->several, w->unseen);
}

void cmd_slack_spins_text(struct base_str *out, const struct cmd_slack_view *v)
{
	const struct slack_spins *s = v->spins;
	if (!s)
		return;
	base_str_addf(out,
		"\nSpinning: %.2f%% of the recorded instructions, %" PRIu64 " of %" PRIu64
		", only wait (proved by their code and the way they went)",
		base_percent(s->spinning, s->instructions), s->spinning, s->instructions);
	if (s->counting)
		base_str_addf(out,
			". Another %.2f%%, %" PRIu64
			", poll and count (two-phase waiting, or a delay): a sign, no proof; they "
			"count as useful",
			base_percent(s->counting, s->instructions), s->counting);
	base_str_add(out, s->nr_loops ? ".\n\n  thread instructions       rounds   waits    "
					"longest  loop\n"
				      : ".\n");
	const struct slack_spin_loop **list = cmd_slack_loops(s);
	for (size_t i = 0; list && i < s->nr_loops && i < v->rows; i++)
		slack_spins_add_row(out, v, list[i]);
	base_free(list);
	wait_rows(out, v);
	power_rows(out, v);
	if (s->unknown)
		base_str_addf(out,
			"  not told: %" PRIu64
			" {round|rounds} through code that could not be decoded\n",
			s->unknown);
}
