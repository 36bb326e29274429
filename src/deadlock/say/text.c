/* SPDX-License-Identifier: Apache-2.0 */
/* text.c - an answer for people: the finding, the circle, each thread's place, what it is based on.
 */
#include "deadlock/private.h"

#include "deadlock/say/say.h"

#include <inttypes.h>
#include <string.h>
#include <sys/syscall.h>

enum { SHOWN_MEMBERS = 24, SHOWN_FRAMES = 3, SHOWN_EDGES = 12 };

/* ---- the first line of a finding ------------------------------------------------------------- */

static size_t nr_processes_of(const struct deadlock_answer *a, const struct deadlock_finding *f)
{
	size_t n = 0;
	for (uint32_t i = 0; i < f->nr_members; i++) {
		bool is_new = true;
		for (uint32_t k = 0; k < i && is_new; k++)
			is_new = a->wait[f->member[k]].thread.pid !=
				 a->wait[f->member[i]].thread.pid;
		n += is_new;
	}
	return n;
}

/* "5 threads of philosophers (pid 123)", "3 threads of 3 processes" */
static void text_add_who(
	struct base_str *out, const struct deadlock_answer *a, const struct deadlock_finding *f)
{
	size_t nr = nr_processes_of(a, f);
	const struct deadlock_wait *w = &a->wait[f->member[0]];
	if (f->nr_members == 1)
		base_str_addf(out, "thread %d of ", (int)w->thread.tid);
	else
		base_str_addf(out, "%" PRIu32 " {thread|threads} of ", f->nr_members);
	if (nr == 1)
		deadlock_say_process(out, a, w->thread.pid);
	else
		base_str_addf(out, "%zu {process|processes}", nr);
}

static const char *sureness(const struct deadlock_answer *a, const struct deadlock_finding *f)
{
	uint64_t left_ns;
	switch (f->sure) {
	case DEADLOCK_CERTAIN:
		return "certain: nobody else can end it";
	case DEADLOCK_PROBABLE:
		if (deadlock_finding_left_ns(a, f, &left_ns))
			return "probable: a time limit will end it";
		return f->nr_breakers
			       ? "probable: who could still end it sleeps, and run ahead did not"
			       : "probable: nobody was seen to end it; that nobody could (a signal "
				 "handler, the kernel, who spins) is not proven";
	default:
		return "unknown: somebody may end it, and could not be run ahead";
	}
}

void deadlock_say_finding(
	struct base_str *out, const struct deadlock_answer *a, const struct deadlock_finding *f)
{
	const struct deadlock_wait *w = &a->wait[f->member[0]];
	switch (f->kind) {
	case DEADLOCK_FINDING_CYCLE:
		base_str_add(
			out, f->sure == DEADLOCK_UNKNOWN_OUTCOME ? "Suspicious: " : "Deadlock: ");
		text_add_who(out, a, f);
		base_str_add(out,
			f->is_simple ? " wait for each other in a circle" : " wait for each other");
		break;
	case DEADLOCK_FINDING_SELF:
		base_str_add(out, "Deadlock: ");
		text_add_who(out, a, f);
		base_str_add(out, " waits for itself");
		break;
	case DEADLOCK_FINDING_ORPHANED:
		base_str_add(out, "Orphaned lock: ");
		text_add_who(out, a, f);
		base_str_add(out, " waits for ");
		deadlock_say_object(out, a, f->member[0], 0);
		base_str_addf(out, ", which thread %d had when it ended", (int)w->owner);
		break;
	case DEADLOCK_FINDING_INHERITED:
		base_str_add(out, "Lock held over a fork: ");
		text_add_who(out, a, f);
		base_str_add(out, " waits for ");
		deadlock_say_object(out, a, f->member[0], 0);
		base_str_addf(out,
			", which thread %d of its parent had when this process was forked",
			(int)w->owner);
		break;
	case DEADLOCK_FINDING_STUCK:
		base_str_add(out, f->is_lost_wakeup ? "Lost wake-up: " : "Stuck: ");
		text_add_who(out, a, f);
		base_str_add(out, f->nr_members == 1
					  ? " waits, and nobody is left who could wake it"
					  : " wait, and nobody is left who could wake any of them");
		break;
	}
	base_str_addf(out, " (%s).", sureness(a, f));
}

/* ---- its members ----------------------------------------------------------------------------- */

static const char *name_of_edge(enum deadlock_edge_why why)
{
	switch (why) {
	case DEADLOCK_EDGE_OWNS:
		return "which %s has";
	case DEADLOCK_EDGE_WOULD:
		return "which %s would give, if it went on";
	default:
		return "which %s could give";
	}
}

static void add_edges_of(struct base_str *out, const struct deadlock_answer *a,
	const struct deadlock_finding *f, uint32_t member)
{
	uint32_t shown = 0, nr = 0, key = UINT32_MAX;
	for (uint32_t i = 0; i < f->nr_edges; i++)
		nr += a->edge[f->edge[i]].waiter == member;
	for (uint32_t i = 0; i < f->nr_edges; i++) {
		const struct deadlock_edge *e = &a->edge[f->edge[i]];
		char who[64];
		if (e->waiter != member)
			continue;
		if (shown++ == SHOWN_EDGES) {
			base_str_addf(out, "\n      and %" PRIu32 " more", nr - SHOWN_EDGES);
			return;
		}
		base_str_add(out, shown > 1 ? "\n      or " : " ");
		/* whose exit it is, the object says */
		const bool is_exit = e->why == DEADLOCK_EDGE_EXITS ||
				     a->wait[member].key[e->key].kind == DEADLOCK_KEY_PROCESS_EXIT;
		const bool is_said = is_exit && e->producer != member;
		if (e->key != key) {
			deadlock_say_object(out, a, member, e->key);
			base_str_add(out, is_said ? "" : ", ");
		}
		key = e->key;
		if (e->producer == member)
			base_str_add(out, e->why == DEADLOCK_EDGE_OWNS
						  ? "which it has already"
						  : "which only itself could give");
		else if (!is_said) {
			deadlock_say_tid(who, sizeof who, a, e->producer);
			deadlock_say_with(out, name_of_edge(e->why), who);
		}
	}
	if (!nr) {
		base_str_add(out, " ");
		deadlock_say_object(out, a, member, 0);
	}
}

/* "eat() table.c:12 < philosopher() table.c:20": the application's innermost frames. */
static void add_native_place(struct base_str *out, const struct deadlock_wait *w)
{
	size_t shown = 0;
	for (size_t i = 0; i < w->nr_frames && shown < SHOWN_FRAMES; i++) {
		const struct deadlock_frame *f = &w->frame[i];
		if (f->is_runtime && shown)
			break;
		if (f->is_runtime)
			continue;
		base_str_add(out, shown ? " < " : "      at ");
		deadlock_say_frame(out, f);
		shown++;
	}
	if (shown)
		base_str_add(out, "\n");
}

/* A Python program's own functions, and where in the library they are now. */
static void add_python_place(struct base_str *out, const struct deadlock_wait *w)
{
	size_t shown = 0;
	for (size_t i = 0; i < w->nr_python && shown < SHOWN_FRAMES; i++) {
		const struct deadlock_frame *f = &w->python[i];
		if (f->is_runtime && i)
			continue;
		base_str_add(out, i ? " < " : "      at ");
		deadlock_say_frame(out, f);
		shown++;
	}
	base_str_add(out, "\n");
}

static void text_add_place(struct base_str *out, const struct deadlock_wait *w)
{
	if (w->nr_python)
		add_python_place(out, w);
	else
		add_native_place(out, w);
	if (w->without_python)
		base_str_addf(
			out, "      its Python functions are not known: %s\n", w->without_python);
}

/* Text of the program's own: on one line. */
static void text_add_quoted(struct base_str *out, const char *text)
{
	base_str_add(out, "\"");
	for (const unsigned char *p = (const unsigned char *)text; *p;) {
		uint32_t code = *p;
		size_t n = base_utf8_decode(p, strlen((const char *)p), &code);
		if (code == '\n')
			base_str_add(out, "\\n");
		else if (n && base_is_shown(code))
			base_str_add_bytes(out, p, n);
		else if (n > 1)
			base_str_add_escape(out, code);
		else
			base_str_addf(out, "\\x%02x", *p);
		p += n ? n : 1;
	}
	base_str_add(out, "\"");
}

static void add_future(struct base_str *out, const struct deadlock_answer *a, uint32_t i)
{
	const struct deadlock_run *r = a->run ? &a->run[i] : NULL;
	if (!r || r->end == DEADLOCK_END_NONE)
		return;
	base_str_add(out, r->is_forced ? "      run ahead, as if what it looks at had come true: "
				       : "      run ahead: ");
	for (size_t e = 0; e < r->nr_events; e++) {
		base_str_add(out, e ? ", " : "it would give ");
		base_str_add(out, r->event[e].is_share ? "its share of " : "");
		deadlock_say_key(out, a, i, &r->event[e].key);
	}
	const bool is_over = r->end == DEADLOCK_END_EXITED && *r->why;
	base_str_addf(out, "%s%s%s", r->nr_events ? "; then " : "",
		is_over ? r->why : deadlock_end_text(r->end), is_over ? " would end" : "");
	if (r->again.kind != DEADLOCK_KEY_NONE) {
		base_str_add(out, ", for ");
		deadlock_say_key(out, a, i, &r->again);
	}
	if (*r->why && !is_over)
		base_str_addf(out, " (%s)", r->why);
	if (*r->would_write) {
		base_str_addf(out, "; it would write to descriptor %d: ", r->would_write_fd);
		text_add_quoted(out, r->would_write);
	}
	base_str_add(out, "\n");
}

static void add_member(struct base_str *out, const struct deadlock_answer *a,
	const struct deadlock_finding *f, uint32_t i)
{
	const struct deadlock_wait *w = &a->wait[i];
	char who[64];
	deadlock_say_tid(who, sizeof who, a, i);
	base_str_addf(out, "  %s \"%s\" %s:", who, w->thread.name, deadlock_kind_text(w->kind));
	add_edges_of(out, a, f, i);
	if (w->kind != DEADLOCK_SPIN && !a->core) {
		base_str_add(out, "; asleep for at least ");
		base_str_add_ns(
			out, a->now_ns > w->blocked_since_ns ? a->now_ns - w->blocked_since_ns : 0);
	}
	base_str_add(out, "\n");
	text_add_place(out, w);
	add_future(out, a, i);
}

/* The sentence that explains it. */
static void add_moral(
	struct base_str *out, const struct deadlock_answer *a, const struct deadlock_finding *f)
{
	uint64_t left_ns;
	if (f->kind == DEADLOCK_FINDING_CYCLE && f->is_simple)
		base_str_addf(out,
			"  Each of them waits for the next one, and the last for the first: "
			"none can go on before another does%s.\n",
			deadlock_finding_left_ns(a, f, &left_ns) ? ", or its time is up" : "");
	else if (f->kind == DEADLOCK_FINDING_CYCLE && f->is_knot)
		base_str_add(out, "  Whoever could wake one of them is one of them (a knot).\n");
	else if (f->kind == DEADLOCK_FINDING_CYCLE)
		base_str_add(out, "  They wait for each other; some could also be woken by others, "
				  "who wait as well.\n");
	if (f->nr_behind)
		base_str_addf(out, "  %" PRIu32 " more {thread waits|threads wait} behind %s.\n",
			f->nr_behind, f->nr_members == 1 ? "it" : "them");
}

/* Why it is not certain, where a name is the reason. */
static void text_add_name(
	struct base_str *out, const struct deadlock_answer *a, const struct deadlock_finding *f)
{
	for (uint32_t m = 0; m < f->nr_members && f->sure == DEADLOCK_PROBABLE; m++) {
		const struct deadlock_wait *w = &a->wait[f->member[m]];
		for (size_t k = 0; k < w->nr_keys && !w->owner_is_exact; k++) {
			const char *name = deadlock_key_met_by_name(&w->key[k]);
			if (!name)
				continue;
			base_str_addf(out,
				"  Not certain: a process that was not seen, or does not run yet, "
				"may reach what thread %d waits for by %s.\n",
				(int)w->thread.tid, name);
			return;
		}
	}
}

/* The threads that could still end it, by name. */
static void add_breakers(
	struct base_str *out, const struct deadlock_answer *a, const struct deadlock_finding *f)
{
	char who[64];
	for (uint32_t i = 0; i < f->nr_breakers && i < SHOWN_MEMBERS; i++) {
		const struct deadlock_wait *w = &a->wait[f->breaker[i]];
		const struct deadlock_run *r = a->run ? &a->run[f->breaker[i]] : NULL;
		deadlock_say_tid(who, sizeof who, a, f->breaker[i]);
		base_str_addf(out, "  Could still end it: %s \"%s\", which %s; ", who,
			w->thread.name, deadlock_kind_text(w->kind));
		base_str_add(out, r && deadlock_end_is_proper(r->end)
					  ? "run ahead, it did not.\n"
					  : "what it will do is not known.\n");
	}
	if (f->nr_breakers > SHOWN_MEMBERS)
		base_str_addf(out, "  and %" PRIu32 " more\n", f->nr_breakers - SHOWN_MEMBERS);
}

static void add_limit(
	struct base_str *out, const struct deadlock_answer *a, const struct deadlock_finding *f)
{
	uint64_t left_ns;
	if (!deadlock_finding_left_ns(a, f, &left_ns))
		return;
	base_str_add(out, "  Not for ever: a time limit ends it");
	if (left_ns != UINT64_MAX) {
		base_str_add(out, " within ");
		base_str_add_ns(out, left_ns);
	}
	base_str_add(out, ".\n");
}

static void text_add_finding(
	struct base_str *out, const struct deadlock_answer *a, const struct deadlock_finding *f)
{
	for (uint32_t m = 0; m < f->nr_members && m < SHOWN_MEMBERS; m++)
		add_member(out, a, f, f->member[m]);
	if (f->nr_members > SHOWN_MEMBERS)
		base_str_addf(out, "  and %" PRIu32 " more\n", f->nr_members - SHOWN_MEMBERS);
	text_add_name(out, a, f);
	add_limit(out, a, f);
	add_breakers(out, a, f);
	add_moral(out, a, f);
}

/* ---- the whole ------------------------------------------------------------------------------- */

/* Threads in the state of /proc: 'T' by a signal, 't' by a tracer. */
static size_t count_state(const struct deadlock_answer *a, char state)
{
	size_t nr = 0;
	for (size_t i = 0; i < a->nr_waits; i++)
		nr += a->wait[i].thread.state == state;
	return nr;
}

/* A stopped thread neither sleeps nor runs; says how it goes on. */
static void add_stopped(struct base_str *out, const struct deadlock_answer *a)
{
	const size_t nr_stopped = count_state(a, 'T'), nr_traced = count_state(a, 't');
	pid_t last = 0;
	if (nr_stopped) {
		base_str_addf(out,
			" %zu {thread is|threads are} stopped by a signal; to continue: kill -CONT",
			nr_stopped);
	}
	for (size_t i = 0, nr = 0; i < a->nr_waits && nr < SHOWN_MEMBERS; i++) {
		const struct deadlock_thread *t = &a->wait[i].thread;
		if (t->state != 'T' || t->pid == last)
			continue;
		base_str_addf(out, " %d", (int)t->pid);
		last = t->pid;
		nr++;
	}
	if (nr_stopped)
		base_str_add(out, ".");
	if (nr_traced)
		base_str_addf(out,
			" %zu {thread is|threads are} stopped by a debugger or another tracer, "
			"which continues {it|them}.",
			nr_traced);
}

void deadlock_say_headline(struct base_str *out, const struct deadlock_answer *a)
{
	if (a->nr_findings) {
		deadlock_say_finding(out, a, &a->finding[0]);
		if (a->nr_findings > 1)
			base_str_addf(out, " And %zu more.", a->nr_findings - 1);
		return;
	}
	base_str_addf(out, "No deadlock seen: of %zu {thread|threads} of %zu {process|processes}",
		a->nr_waits, a->nr_processes);
	if (a->nr_waits && count_state(a, 'T') + count_state(a, 't') == a->nr_waits)
		base_str_add(out, a->nr_waits == 1 ? " it is stopped." : " all are stopped.");
	else if (!a->nr_long)
		base_str_add(out, " none has slept all the time.");
	else
		base_str_addf(out,
			" %zu slept all the time, and as far as is known each may still be woken: "
			"by somebody who runs, by time, or from outside.",
			a->nr_long);
	add_stopped(out, a);
}

/* Waits that nothing is known of, by the numbers of their calls. */
static void add_unknown(struct base_str *out, const struct deadlock_answer *a)
{
	struct base_str calls = {0};
	size_t nr = 0;
	for (size_t i = 0; i < a->nr_waits; i++) {
		const struct deadlock_wait *w = &a->wait[i];
		bool is_new = w->kind == DEADLOCK_UNKNOWN && w->call >= 0;
		nr += is_new;
		for (size_t k = 0; k < i && is_new; k++)
			is_new = a->wait[k].kind != DEADLOCK_UNKNOWN || a->wait[k].call != w->call;
		if (is_new)
			base_str_addf(&calls, "%s%" PRId64 "%s", calls.length ? ", " : "", w->call,
				w->call == SYS_open || w->call == SYS_openat
					? ": the opening of a FIFO?"
					: "");
	}
	if (nr) {
		base_str_addf(out,
			"  %zu {thread sleeps|threads sleep} in a system call that is not judged "
			"(number %s): who could end it is "
			"not known, so it counts as able to go on.\n",
			nr, base_str_text(&calls));
	}
	base_str_fini(&calls);
}

/* A running thread may spin for what a sleeper has: to know that, it must be stopped for a
 * moment. */
static void text_add_running(struct base_str *out, const struct deadlock_answer *a)
{
	size_t nr = 0;
	for (size_t i = 0; i < a->nr_waits; i++)
		nr += a->wait[i].kind == DEADLOCK_RUNNING && a->wait[i].thread.state == 'R';
	if (!nr || a->finds_spinners)
		return;
	base_str_addf(out,
		"  %zu {thread is|threads are} on a processor, and may spin for what never comes: "
		"--spinners looks.\n",
		nr);
}

static void text_add_caveats(struct base_str *out, const struct deadlock_answer *a)
{
	add_unknown(out, a);
	if (a->java)
		base_str_addf(out,
			"  Process %d is a Java VM: who has a monitor or a lock of "
			"java.util.concurrent "
			"is not known, so circles of those are not found here: jstack %d says "
			"them.\n",
			(int)a->java, (int)a->java);
	if (!a->core)
		text_add_running(out, a);
	if (a->nr_blind) {
		base_str_addf(out,
			"  %zu {process|processes} may have, or receive, what some of them wait "
			"for; whether so could not "
			"be seen: none of these waits counts as certain.\n",
			a->nr_blind);
	}
	if (a->without_bpf)
		base_str_addf(out,
			"  Without BPF (%s) registers are not known: stacks may end early.\n",
			a->without_bpf);
	if (a->nr_not_run) {
		base_str_addf(out,
			"  %zu {thread|threads} could not be run ahead: what {it|they} would do is "
			"not known%s%s%s.\n",
			a->nr_not_run, a->without_ahead ? " (" : "",
			a->without_ahead ? a->without_ahead : "", a->without_ahead ? ")" : "");
	}
}

void deadlock_text(struct base_str *out, const struct deadlock_answer *a)
{
	struct base_str caveats = {0};
	deadlock_say_headline(out, a);
	base_str_add(out, "\n");
	for (size_t i = 0; i < a->nr_findings; i++) {
		base_str_add(out, "\n");
		if (i || a->nr_findings > 1) {
			base_str_addf(out, "%zu. ", i + 1);
			deadlock_say_finding(out, a, &a->finding[i]);
			base_str_add(out, "\n");
		}
		text_add_finding(out, a, &a->finding[i]);
	}
	base_str_add(out, "\nHOW IT IS KNOWN\n  Observed: ");
	base_str_addf(out,
		"%zu sleeping {thread|threads} of %zu {process|processes}; what each waits for by "
		"its system call and lock words, ",
		a->nr_long, a->nr_processes);
	if (a->core) {
		base_str_add(out, "from a core file, which has no files and no other processes.\n");
		return;
	}
	base_str_add(out, a->nr_run ? "and what they would do next by running copies ahead; "
				    : "and who could wake them by who has access; ");
	base_str_add(out, "in ");
	base_str_add_ns(out, a->elapsed_ns);
	base_str_add(
		out, a->stopped_ns ? "; longest stop of a thread " : ", and no thread was stopped");
	if (a->stopped_ns)
		base_str_add_ns(out, a->stopped_ns);
	base_str_add(out, ".\n");
	text_add_caveats(&caveats, a);
	if (caveats.length)
		base_str_addf(out, "CAVEATS\n%s", base_str_text(&caveats));
	out->failed |= caveats.failed;
	base_str_fini(&caveats);
}
