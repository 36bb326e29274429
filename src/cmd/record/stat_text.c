/* SPDX-License-Identifier: Apache-2.0 */
/* stat_text.c - the answer of `longpole stat` for people: the finding, tables, caveats, what next.
 */
#include "cmd/record/stat.h"
#include "base/column.h"
#include "base/json.h"
#include "os/clock.h"

#define LONGPOLE_DISABLE
#include "longpole/counter.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

enum { NAME_COLUMN = 18, SPLIT_LEAST_TICKS = 20 };
static const double ready_much = 0.3; /* of the time: processors are too few */

/* ---- cells ----------------------------------------------------------------------------------- */

static void stat_text_cell_ns(struct base_str *out, unsigned width, uint64_t ns)
{
	struct base_str text = {0};
	base_str_add_ns(&text, ns);
	base_str_add_right(out, base_str_text(&text), width);
	base_str_fini(&text);
}

static void stat_text_cell_count(struct base_str *out, unsigned width, uint64_t n)
{
	struct base_str text = {0};
	base_str_add_count(&text, n);
	base_str_add_right(out, base_str_text(&text), width);
	base_str_fini(&text);
}

static void cell_name(struct base_str *out, const char *name)
{
	struct base_str clean = {0};
	report_clean_add(&clean, name);
	base_str_addf(out, "  %-*.*s", NAME_COLUMN, NAME_COLUMN, base_str_text(&clean));
	base_str_fini(&clean);
}

/* ---- sums ------------------------------------------------------------------------------------ */

struct sum {
	const char *name;
	pid_t pid;
	size_t nr_threads;
	struct stat_counts counts;
	uint64_t alive_ns;
	uint32_t counted; /* bits: of all threads */
	bool has_migrations, has_calls;
};

static void stat_text_add(struct sum *sum, const struct stat_thread *t)
{
	struct stat_counts *c = &sum->counts;
	sum->counted = sum->nr_threads ? sum->counted & t->counted : t->counted;
	sum->has_migrations = t->has_migrations && (!sum->nr_threads || sum->has_migrations);
	sum->has_calls = t->has_calls && (!sum->nr_threads || sum->has_calls);
	c->call_ns += t->counts.call_ns;
	c->calls += t->counts.calls;
	sum->nr_threads++;
	sum->alive_ns += t->end_ns - t->begin_ns;
	c->task_ns += t->counts.task_ns;
	c->runqueue_ns += t->counts.runqueue_ns;
	c->user_ticks += t->counts.user_ticks;
	c->kernel_ticks += t->counts.kernel_ticks;
	c->voluntary += t->counts.voluntary;
	c->forced += t->counts.forced;
	c->migrations += t->counts.migrations;
	c->minor_faults += t->counts.minor_faults;
	c->major_faults += t->counts.major_faults;
	for (size_t i = 0; i < STAT_EVENTS_MAX; i++)
		c->event[i] += t->counts.event[i];
}

static struct sum sum_all(const struct stat_result *s)
{
	struct sum sum = {0};
	for (size_t i = 0; i < s->nr_threads; i++)
		stat_text_add(&sum, &s->thread[i]);
	return sum;
}

/* ---- tables ---------------------------------------------------------------------------------- */

/* Without BPF the split is the kernel's guess at clock ticks: of few ticks it says nothing. */
static bool knows_kernel(const struct stat_counts *c, bool has_calls)
{
	return has_calls || c->user_ticks + c->kernel_ticks >= SPLIT_LEAST_TICKS;
}

static void cell_kernel(struct base_str *out, const void *row, const struct base_layout *l)
{
	const struct sum *sum = row;
	const struct stat_counts *c = &sum->counts;
	(void)l;
	if (!knows_kernel(c, sum->has_calls))
		base_str_add(out, "-");
	else if (sum->has_calls)
		base_str_addf(out, "%.1f %%",
			100.0 * (double)c->call_ns / (double)(c->task_ns ? c->task_ns : 1));
	else
		base_str_addf(out, "%.0f %%",
			100.0 * (double)c->kernel_ticks /
				(double)(c->user_ticks + c->kernel_ticks));
}

static json_t *events_json(
	const struct cmd_stat *c, const uint64_t *value, uint32_t counted, size_t first)
{
	json_t *object = json_object();
	for (size_t i = 0; i < c->options->nr_events; i++)
		json_object_set_new(object,
			longpole_event_name((enum longpole_event)c->options->event[i]),
			counted & 1u << (i + first) ? base_json_u64(value[i]) : json_null());
	return object;
}

static double phase_call_ns(const struct cmd_stat *c, const struct stat_phase *p)
{
	size_t at = c->options->nr_events + 3;
	return c->options->kernel_time && p->counted & 1u << at ? (double)p->count[at] : NAN;
}

struct stat_why {
	const char *what, *why;
};
static json_t *why_json(const struct cmd_stat *c, const struct base_table *table)
{
	struct stat_why why[STAT_EVENTS_MAX + 3];
	size_t nr = 0;
	for (size_t i = 0; i < c->options->nr_events; i++)
		why[nr++] = (struct stat_why){
			longpole_event_name((enum longpole_event)c->options->event[i]),
			c->s->no_event_why[i]};
	why[nr++] = (struct stat_why){"system calls", c->s->no_calls_why};
	why[nr++] = (struct stat_why){"threads", c->s->no_threads_why};
	why[nr++] = (struct stat_why){"phases", c->s->no_phases_why};
	json_t *list = json_array();
	for (size_t i = 0; i < nr; i++)
		if (*why[i].why)
			json_array_append_new(list, base_table_json(table, &why[i], NULL, 0));
	return list;
}
#include "cmd/record/stat.def"

static int stat_text_by_time(const void *a, const void *b)
{
	const struct sum *x = a, *y = b;
	if (x->counts.task_ns != y->counts.task_ns)
		return x->counts.task_ns < y->counts.task_ns ? 1 : -1;
	return x->pid < y->pid ? -1 : x->pid > y->pid;
}

static void stat_text_table(struct base_str *out, const struct cmd_stat *c, const char *what,
	const char *id, struct sum *rows, size_t nr)
{
	struct base_layout l = {.table = &stat_sum};
	size_t shown = c->limit && c->limit < nr ? c->limit : nr;
	if (!nr)
		return;
	qsort(rows, nr, sizeof *rows, stat_text_by_time);
	base_str_addf(out, "\n  %-*s%8s", NAME_COLUMN, what, id);
	base_layout_titles(out, &l);
	for (size_t i = 0; i < shown; i++) {
		base_str_add(out, "\n");
		cell_name(out, rows[i].name);
		base_str_addf(out, "%8d", (int)rows[i].pid);
		base_layout_cells(out, &l, &rows[i]);
	}
	base_str_add(out, "\n");
	if (shown < nr)
		base_str_addf(out, "  ... and %zu more (--all)\n", nr - shown);
}

static void stat_text_threads(struct base_str *out, const struct cmd_stat *c)
{
	const struct stat_result *s = c->s;
	struct sum *rows = base_alloc(s->nr_threads * sizeof *rows + 1);
	size_t nr = 0;
	for (size_t i = 0; rows && i < s->nr_threads; i++) {
		if (s->thread[i].missed)
			continue;
		rows[nr] = (struct sum){.name = s->thread[i].comm, .pid = s->thread[i].tid};
		stat_text_add(&rows[nr++], &s->thread[i]);
	}
	stat_text_table(out, c, "thread", "tid", rows, nr);
	base_free(rows);
}

/* A process has the name of its first thread. */
static void processes(struct base_str *out, const struct cmd_stat *c)
{
	const struct stat_result *s = c->s;
	struct sum *rows = base_alloc(s->nr_threads * sizeof *rows + 1);
	struct base_map known = {0};
	size_t nr = 0;
	for (size_t i = 0; rows && i < s->nr_threads; i++) {
		const struct stat_thread *t = &s->thread[i];
		uint64_t at;
		if (t->tid == t->pid || !base_map_get(&known, 0, (uint64_t)t->pid, &at)) {
			at = nr++;
			rows[at] = (struct sum){.name = t->comm, .pid = t->pid};
			if (base_map_put(&known, 0, (uint64_t)t->pid, at) != BASE_OK)
				break;
		}
		stat_text_add(&rows[at], t);
	}
	if (nr > 1 && nr < s->nr_threads) /* else it is the threads' table again */
		stat_text_table(out, c, "process", "pid", rows, nr);
	base_map_fini(&known);
	base_free(rows);
}

static int by_wall(const void *a, const void *b)
{
	const struct stat_phase *x = a, *y = b;
	if (x->wall_ns != y->wall_ns)
		return x->wall_ns < y->wall_ns ? 1 : -1;
	return x->tid < y->tid ? -1 : x->tid > y->tid;
}

static void phase_events(struct base_str *out, const struct cmd_stat *c, const struct stat_phase *p)
{
	for (size_t i = 0; i < c->options->nr_events; i++) {
		if (*c->s->no_event_why[i])
			continue;
		if (p->counted & 1u << (i + 3))
			stat_text_cell_count(out, 14, p->count[i + 3]);
		else
			base_str_add_right(out, "-", 14);
	}
	if (!c->options->kernel_time)
		return;
	if (p->counted & 1u << (c->options->nr_events + 3))
		stat_text_cell_ns(out, 11, p->count[c->options->nr_events + 3]);
	else
		base_str_add_right(out, "-", 11);
}

static void phases(struct base_str *out, const struct cmd_stat *c)
{
	struct stat_result *s = c->s;
	struct base_layout l = {.table = &stat_phase_table};
	size_t shown = c->limit && c->limit < s->nr_phases ? c->limit : s->nr_phases;
	if (!s->nr_phases)
		return;
	qsort(s->phase, s->nr_phases, sizeof *s->phase, by_wall);
	base_str_addf(out, "\n  %-*s", NAME_COLUMN, "phase");
	base_layout_titles(out, &l);
	for (size_t i = 0; i < c->options->nr_events; i++)
		if (!*s->no_event_why[i])
			base_str_add_right(out,
				longpole_event_name((enum longpole_event)c->options->event[i]), 14);
	if (c->options->kernel_time)
		base_str_add_right(out, "kernel", 11);
	base_str_add(out, "\n");
	for (size_t i = 0; i < shown; i++) {
		const struct stat_phase *p = &s->phase[i];
		cell_name(out, p->name);
		base_layout_cells(out, &l, p);
		phase_events(out, c, p);
		base_str_add(out, "\n");
	}
	if (shown < s->nr_phases)
		base_str_addf(out, "  ... and %zu more (--all)\n", s->nr_phases - shown);
}

/* ---- the processor's events ------------------------------------------------------------------ */

static bool stat_text_index_of(const struct cmd_stat *c, enum longpole_event event, size_t *ret)
{
	for (*ret = 0; *ret < c->options->nr_events; ++*ret)
		if (c->options->event[*ret] == (uint16_t)event)
			return true;
	return false;
}

/* A rate beside a count: of instructions a cycle, of others a thousand instructions. */
static void stat_text_rate(
	struct base_str *out, const struct cmd_stat *c, const struct sum *sum, size_t i)
{
	size_t of;
	bool instructions = c->options->event[i] == LONGPOLE_INSTRUCTIONS;
	if (c->options->event[i] == LONGPOLE_CYCLES) {
		if (sum->counts.task_ns)
			base_str_addf(out, "   %.3f GHz while it ran",
				(double)sum->counts.event[i] / (double)sum->counts.task_ns);
	} else if (stat_text_index_of(
			   c, instructions ? LONGPOLE_CYCLES : LONGPOLE_INSTRUCTIONS, &of) &&
		   (sum->counted & 1u << of) && sum->counts.event[of]) {
		double share = (double)sum->counts.event[i] / (double)sum->counts.event[of];
		base_str_addf(out,
			instructions ? "   %.2f a cycle" : "   %.2f a thousand instructions",
			instructions ? share : share * 1000);
	}
}

static void events(struct base_str *out, const struct cmd_stat *c, const struct sum *sum)
{
	const struct stat_result *s = c->s;
	bool any = false;
	for (size_t i = 0; i < c->options->nr_events; i++) {
		if (!(sum->counted & 1u << i))
			continue;
		base_str_add(out, any ? "" : "\n");
		any = true;
		base_str_addf(out, "  %-*s", NAME_COLUMN + 6,
			longpole_event_name((enum longpole_event)c->options->event[i]));
		stat_text_cell_count(out, 18, sum->counts.event[i]);
		stat_text_rate(out, c, sum, i);
		if (s->event_user_only[i])
			base_str_add(out, "   (in user space only)");
		base_str_add(out, "\n");
	}
}

static void calls(struct base_str *out, const struct sum *sum)
{
	const struct stat_counts *n = &sum->counts;
	if (!sum->nr_threads || !sum->has_calls)
		return;
	base_str_add(out, "\n  ");
	base_str_add_counted(out, "%s system {call|calls}, ", n->calls);
	base_str_add_ns(out, n->call_ns);
	base_str_add(out, " in them with a processor");
	if (n->calls) {
		base_str_add(out, ", ");
		base_str_add_ns(out, n->call_ns / n->calls);
		base_str_add(out, " each");
	}
	base_str_add(out, " (page faults and interrupts are not in them)\n");
}

/* A thread's own time is without what the host took, time in system calls and by the clock is
 * not. */
static void stolen(struct base_str *out, const struct stat_result *s)
{
	if (!os_clock_much_stolen(s->stolen_ns, s->elapsed_ns))
		return;
	base_str_add(out, "\n  the machine's host took ");
	base_str_add_ns(out, s->stolen_ns);
	base_str_add(out, " from its processors meanwhile (of all programs together): that is in "
			  "the times by the clock and in those in system calls, not in those on a "
			  "processor\n");
}

/* ---- first and last lines -------------------------------------------------------------------- */

/* Of the time that threads could have run: without a processor. */
static double share_ready(const struct sum *sum)
{
	return (double)sum->counts.runqueue_ns /
	       (double)(sum->counts.task_ns + sum->counts.runqueue_ns + 1);
}

static void stat_text_finding(struct base_str *out, const struct cmd_stat *c, const struct sum *sum)
{
	const struct stat_result *s = c->s;
	struct base_str name = {0};
	uint64_t ran = sum->nr_threads ? sum->counts.task_ns : (s->user_us + s->kernel_us) * 1000;
	report_clean_add(&name, c->program);
	base_str_addf(out, "%s ran ", base_str_text(&name));
	base_str_add_ns(out, ran);
	base_str_add(out, " of processor time in ");
	base_str_add_ns(out, s->elapsed_ns);
	if (s->elapsed_ns)
		base_str_addf(out, ": %.2f processors were busy with it on average",
			(double)ran / (double)s->elapsed_ns);
	if (sum->nr_threads) {
		base_str_addf(out, "; its %zu {thread|threads} waited ", sum->nr_threads);
		base_str_add_ns(out, sum->counts.runqueue_ns);
		base_str_addf(out, " for one (%.0f %% of the time that %s could have run)",
			100.0 * share_ready(sum), sum->nr_threads == 1 ? "it" : "they");
	}
	base_str_add(out, ".\n");
	if (WIFSIGNALED(s->wait_status))
		base_str_addf(out, "It was ended by signal %d.\n", WTERMSIG(s->wait_status));
	base_str_fini(&name);
}

static void stat_text_whole(struct base_str *out, const struct stat_result *s)
{
	uint64_t ran_us = s->user_us + s->kernel_us;
	base_str_addf(out, "\n  the program%s, and those of its children that it waited for:\n  ",
		s->nr_threads ? "" : ", from its fork on");
	if (ran_us * 1000 < SPLIT_LEAST_TICKS * s->tick_ns) {
		base_str_add(out, "user and kernel ");
		base_str_add_ns(out, ran_us * 1000);
		base_str_add(out, " together (too few clock ticks to tell them apart), ");
	} else {
		base_str_add(out, "user ");
		base_str_add_ns(out, s->user_us * 1000);
		base_str_add(out, ", kernel ");
		base_str_add_ns(out, s->kernel_us * 1000);
		base_str_add(out, " (as the kernel divides it by clock ticks), ");
	}
	base_str_add_counted(out, "%s page {fault|faults} (", s->minor_faults + s->major_faults);
	base_str_add_count(out, s->major_faults);
	base_str_add(out, " major), at most ");
	base_str_add_size(out, s->max_rss_kb << 10);
	base_str_add(out, " of memory\n");
}

/* Events that are refused for one reason share a line. */
static void not_counted(struct base_str *out, const struct cmd_stat *c, const struct sum *sum)
{
	const char *why = "";
	for (size_t i = 0; i < c->options->nr_events; i++) {
		const char *name = longpole_event_name((enum longpole_event)c->options->event[i]);
		const char *this_why = c->s->no_event_why[i];
		if (!*this_why && sum->nr_threads && !(sum->counted & 1u << i))
			this_why = "some threads did not have a counter all the time";
		if (!*this_why)
			continue;
		if (*why && strcmp(why, this_why) != 0)
			base_str_addf(out, ": %s\n", why);
		base_str_addf(out, "%s%s",
			*why && !strcmp(why, this_why) ? ", " : "  not counted: ", name);
		why = this_why;
	}
	if (*why)
		base_str_addf(out, ": %s\n", why);
}

static void stat_text_caveats(struct base_str *out, const struct cmd_stat *c, const struct sum *sum)
{
	const struct stat_result *s = c->s;
	uint64_t missed = s->missed_threads, going_on = 0, open = 0, stops = 0, unsplit = 0;
	for (size_t i = 0; i < s->nr_threads; i++) {
		const struct stat_thread *t = &s->thread[i];
		missed += t->missed;
		unsplit += !t->missed && !knows_kernel(&t->counts, t->has_calls);
		going_on += !t->ended;
		stops += t->stops;
	}
	for (size_t i = 0; i < s->nr_phases; i++)
		open += s->phase[i].open;
	base_str_add(out, "\n");
	not_counted(out, c, sum);
	if (unsplit && !c->options->kernel_time)
		base_str_addf(out,
			"  kernel: '-' where a thread met fewer than %d clock ticks, by which the "
			"kernel estimates it; --kernel-time (as root) counts it\n",
			SPLIT_LEAST_TICKS);
	if (*s->no_threads_why)
		base_str_addf(out, "  not by thread: %s\n", s->no_threads_why);
	if (*s->no_phases_why)
		base_str_addf(out, "  no phases: %s\n", s->no_phases_why);
	if (*s->no_calls_why)
		base_str_addf(out, "  not counted: system calls: %s\n", s->no_calls_why);
	if (s->lost_calls)
		base_str_add_counted(out,
			"  %s system {call|calls} could not be timed (the kernel did not report a "
			"switch): the time in "
			"calls is a little more\n",
			s->lost_calls);
	if (missed)
		base_str_add_counted(out,
			"  %s {thread was|threads were} killed before {its|their} counts could be "
			"read: {it is|they are} in no table\n",
			missed);
	if (going_on)
		base_str_add_counted(out,
			"  %s {thread|threads} lived on after the program: counted so far\n",
			going_on);
	if (open)
		base_str_add_counted(out,
			"  %s {phase|phases} had no end (the process was ended or replaced): "
			"{its|their} last stay is not in {it|them}\n",
			open);
	if (s->dropped_marks)
		base_str_add_counted(out,
			"  %s phase {mark|marks} found no room, or came in a handler during "
			"another\n",
			s->dropped_marks);
	if (!stops)
		return;
	base_str_add_counted(out,
		"  observed: exact counts of the kernel at each thread's end; %s {stop|stops} to "
		"read them",
		stops - s->signals);
	if (s->signals)
		base_str_add_counted(
			out, " and %s {signal|signals} that passed through", s->signals);
	base_str_add(out, " cost some 10 to 40 us each\n");
}

void cmd_stat_text(struct base_str *out, const struct cmd_stat *c)
{
	struct sum sum = sum_all(c->s);
	stat_text_finding(out, c, &sum);
	stat_text_threads(out, c);
	processes(out, c);
	phases(out, c);
	events(out, c, &sum);
	calls(out, &sum);
	stat_text_whole(out, c->s);
	stolen(out, c->s);
	stat_text_caveats(out, c, &sum);
	base_str_addf(out,
		"next: %slongpole record, then longpole report: who the threads wait for\n",
		share_ready(&sum) >= ready_much
			? "longpole spin --sample: whether some only spin while others lack a "
			  "processor; "
			: "");
}

json_t *cmd_stat_json(const struct cmd_stat *c)
{
	return cmd_result_json(
		cmd_stat_document.name, base_table_json(&cmd_stat_document, c, c, 0));
}
