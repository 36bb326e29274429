/* SPDX-License-Identifier: Apache-2.0 */
/* test_deadlock_text.c - answers made by hand, in words, as JSON and as a graph. */
#include "deadlock/private.h"
#include "deadlock/say/say.h"
#include "test.h"

#include <stdlib.h>
#include <string.h>

enum { PID = 1 << 29, WAITS = 40 }; /* no such process */

static const struct deadlock_frame frames[] = {
	{.function = "futex_wait", .module = "libc.so.6", .file = "", .is_runtime = true},
	{.function = "eat", .module = "table", .file = "/src/table.c", .line = 12, .offset = 7},
	{.function = "", .pc = 0x1234, .module = "table", .file = ""},
	{.function = "dine", .module = "table", .file = "", .pc = 5},
	{.function = "more", .module = "table", .file = "", .pc = 5},
};

struct by_hand {
	struct deadlock_answer a;
	struct deadlock_wait wait[WAITS];
	enum deadlock_hope hope[WAITS];
	struct deadlock_run run[WAITS];
	struct deadlock_accesses accesses;
};

static void begin(struct by_hand *h, size_t nr)
{
	struct base_err err;
	*h = (struct by_hand){0};
	assert_int_equal(deadlock_world_open(&h->a.world, &err), BASE_OK);
	h->a.wait = h->wait;
	h->a.hope = h->hope;
	h->a.nr_waits = nr;
	h->a.nr_processes = 1;
	h->a.nr_long = nr;
	h->a.now_ns = 90000000000;
	h->a.elapsed_ns = 3000000;
	for (size_t i = 0; i < nr; i++) {
		h->wait[i] = (struct deadlock_wait){.thread = {.pid = PID,
							    .tid = PID + (pid_t)i,
							    .state = 'S',
							    .name = "diner"},
			.kind = DEADLOCK_MUTEX,
			.call = 202,
			.object = 0x1000 * (i + 1),
			.owner = PID + (pid_t)((i + 1) % nr),
			.owner_is_exact = true,
			.nr_keys = 1,
			.key = {{.kind = DEADLOCK_KEY_FUTEX,
				.space = PID,
				.at = 0x1000 * (i + 1),
				.bytes = 40}},
			.blocked_since_ns = 30000000000};
	}
}

static void judge(struct by_hand *h)
{
	struct base_err err;
	assert_int_equal(deadlock_close_world(&h->a, &h->accesses, &err), BASE_OK);
	assert_int_equal(deadlock_judge(&h->a, &h->accesses, &err), BASE_OK);
}

static void finish(struct by_hand *h)
{
	base_free(h->a.edge);
	base_free(h->a.finding);
	deadlock_world_close(h->a.world);
}

static void assert_text(const struct by_hand *h, const char *expected)
{
	struct base_str s = {0};
	deadlock_text(&s, &h->a);
	assert_string_equal(base_str_text(&s), expected);
	base_str_fini(&s);
}

/* Is it said, or not? */
static void assert_says(const struct by_hand *h, const char *words, bool is_said)
{
	struct base_str s = {0};
	deadlock_text(&s, &h->a);
	if (!strstr(base_str_text(&s), words) == is_said)
		fail_msg("%s in:\n%s", words, base_str_text(&s));
	base_str_fini(&s);
}

static void assert_dot(const struct by_hand *h, const char *expected)
{
	struct base_str s = {0};
	deadlock_dot(&s, &h->a);
	assert_string_equal(base_str_text(&s), expected);
	base_str_fini(&s);
}

/* Three in a circle, of a process whose first thread is another one's number before; one waits
 * behind. */
static void test_circle(void **state)
{
	struct by_hand h;
	(void)state;
	begin(&h, 4);
	h.wait[2].owner = PID; /* of three */
	h.wait[3].owner = PID;
	h.wait[1].nr_frames = BASE_COUNT(frames);
	memcpy(h.wait[1].frame, frames, sizeof frames);
	judge(&h);
	assert_text(&h, "Deadlock: 3 threads of diner (pid 536870912) wait for each other in a "
			"circle (certain: nobody else can end it).\n"
			"\n"
			"  thread 536870912 \"diner\" waits for a mutex: mutex 0x1000, which "
			"thread 536870913 has; asleep for at least 60.0 s\n"
			"  thread 536870913 \"diner\" waits for a mutex: mutex 0x2000, which "
			"thread 536870914 has; asleep for at least 60.0 s\n"
			"      at eat() table.c:12 < 0x1234 in table < dine() in table\n"
			"  thread 536870914 \"diner\" waits for a mutex: mutex 0x3000, which "
			"thread 536870912 has; asleep for at least 60.0 s\n"
			"  Each of them waits for the next one, and the last for the first: none "
			"can go on before another does.\n"
			"  1 more thread waits behind them.\n"
			"\n"
			"HOW IT IS KNOWN\n"
			"  Observed: 4 sleeping threads of 1 process; what each waits for by its "
			"system call and lock words, and who could wake them by who has access; in "
			"3.00 ms, and no thread was stopped.\n");
	finish(&h);
}

static void test_dot(void **state)
{
	struct by_hand h;
	(void)state;
	begin(&h, 2);
	h.wait[1].nr_frames = BASE_COUNT(frames);
	memcpy(h.wait[1].frame, frames, sizeof frames);
	strcpy(h.wait[1].thread.name, "a\"\\b");
	judge(&h);
	assert_dot(&h, "digraph deadlock {\n"
		       "\tnode [fontname=\"sans-serif\"];\n"
		       "\tedge [fontname=\"sans-serif\", fontsize=10];\n"
		       "\tsubgraph cluster_1 {\n"
		       "\tlabel=\"Deadlock: 2 threads of diner (pid 536870912) wait for each other "
		       "in a circle (certain: nobody else can end it).\";\n"
		       "\tt536870912 [shape=box, label=\"thread 536870912\\ndiner\"];\n"
		       "\tt536870913 [shape=box, label=\"thread 536870913\\na\\\"\\\\b\\neat() "
		       "table.c:12\"];\n"
		       "\te0_0 [label=\"mutex 0x1000\"];\n"
		       "\tt536870912 -> e0_0;\n"
		       "\te0_0 -> t536870913 [label=\"owns\"];\n"
		       "\te0_1 [label=\"mutex 0x2000\"];\n"
		       "\tt536870913 -> e0_1;\n"
		       "\te0_1 -> t536870912 [label=\"owns\"];\n"
		       "\t}\n"
		       "}\n");
	finish(&h);
}

/* Waits for what two others may give or would give: no circle of locks. */
static void test_may_and_would(void **state)
{
	struct by_hand h;
	(void)state;
	begin(&h, 3);
	static pid_t all[] = {PID};
	static struct deadlock_access access = {.pid = all, .nr_pids = 1};
	for (size_t i = 0; i < 3; i++) {
		h.wait[i].kind = DEADLOCK_READ;
		h.wait[i].owner = 0;
		h.wait[i].owner_is_exact = false;
		h.wait[i].key[0] = (struct deadlock_key){.kind = DEADLOCK_KEY_PIPE_DATA, .id = 5};
	}
	access.key = h.wait[0].key[0];
	h.accesses = (struct deadlock_accesses){.access = &access, .nr = 1};
	h.a.run = h.run;
	h.run[0] = (struct deadlock_run){.end = DEADLOCK_END_EXITED,
		.why = "its process",
		.event = {{.key = access.key, .count = 2},
			{.key = {.kind = DEADLOCK_KEY_FILE_LOCK, .id = 8}, .is_share = true}},
		.nr_events = 2,
		.would_write = "a\"\n\x01\xc3\xa4",
		.would_write_fd = 7};
	h.run[1] = (struct deadlock_run){.end = DEADLOCK_END_BLOCKED,
		.why = "in read",
		.again = access.key,
		.is_forced = true};
	h.run[2] = (struct deadlock_run){.end = DEADLOCK_END_CRASHED};
	judge(&h);
	assert_text(&h,
		"Deadlock: 2 threads of diner (pid 536870912) wait for each other in a circle "
		"(certain: nobody else can end it).\n"
		"\n"
		"  thread 536870912 \"diner\" reads: data or end of file in a pipe (5), which "
		"thread 536870914 could give; asleep for at least 60.0 s\n"
		"      run ahead: it would give data or end of file in a pipe (5), its share of "
		"the lock on inode 8; then its process would end; it would write to descriptor 7: "
		"\"a\"\\n\\x01ä\"\n"
		"  thread 536870914 \"diner\" reads: data or end of file in a pipe (5), which "
		"thread 536870912 would give, if it went on; asleep for at least 60.0 s\n"
		"      run ahead: the copy crashed\n"
		"  Each of them waits for the next one, and the last for the first: none can go on "
		"before another does.\n"
		"  1 more thread waits behind them.\n"
		"\n"
		"HOW IT IS KNOWN\n"
		"  Observed: 3 sleeping threads of 1 process; what each waits for by its system "
		"call and lock words, and who could wake them by who has access; in 3.00 ms, and "
		"no thread was stopped.\n");
	finish(&h);
}

/* ---- what is said, and what is not ----------------------------------------------------------- */

/* Nobody is left; one or several, of one process or of several. */
static void test_stuck(void **state)
{
	struct by_hand h;
	(void)state;
	for (size_t nr = 1; nr < 3; nr++) {
		begin(&h, nr);
		h.a.run = h.run;
		for (size_t i = 0; i < nr; i++) {
			h.wait[i].thread.pid += (pid_t)i;
			h.wait[i].kind = DEADLOCK_SEMAPHORE;
			h.wait[i].owner_is_exact = false;
			h.wait[i].key[0] = (struct deadlock_key){
				.kind = DEADLOCK_KEY_SYSV_SEM, .id = 3, .at = 4};
			h.run[i].end = DEADLOCK_END_EXITED;
			h.a.hope[i] = DEADLOCK_STUCK;
		}
		assert_int_equal(deadlock_judge(&h.a, &h.accesses, &(struct base_err){0}), BASE_OK);
		assert_int_equal(h.a.nr_findings, nr);
		assert_says(&h,
			"Lost wake-up: thread 536870912 of diner (pid 536870912) waits, and nobody "
			"is "
			"left who could wake it (certain",
			true);
		assert_says(&h,
			"process 536870912 \"diner\" waits for a semaphore: System V "
			"semaphore 4 of set 3;",
			true);
		assert_says(&h, " And 1 more.\n", nr == 2);
		assert_says(&h, "\n1. Lost", nr == 2);
		assert_says(&h, "\n2. Lost", nr == 2);
		h.a.finding[0].is_lost_wakeup = false;
		h.a.finding[0].sure = DEADLOCK_PROBABLE;
		assert_says(&h, "Stuck: thread 536870912", true);
		assert_says(&h, "(probable: nobody was seen to end it", true);
		assert_says(&h, "Not certain: ", false);
		h.wait[0].key[0].is_named = true;
		assert_says(&h,
			"Not certain: a process that was not seen, or does not run yet, may "
			"reach what thread 536870912 waits for by its System V key",
			true);
		finish(&h);
	}
	/* both in one finding */
	begin(&h, 2);
	static const uint32_t both[] = {0, 1};
	static struct deadlock_finding f = {
		.kind = DEADLOCK_FINDING_STUCK, .member = both, .nr_members = 2, .nr_behind = 2};
	h.a.finding = &f;
	h.a.nr_findings = 1;
	assert_says(&h,
		"Stuck: 2 threads of diner (pid 536870912) wait, and nobody is left who could "
		"wake any of them",
		true);
	assert_says(&h, "  2 more threads wait behind them.\n", true);
	h.wait[1].thread.pid++;
	assert_says(&h, "Stuck: 2 threads of 2 processes wait, and", true);
	h.a.finding = NULL;
	finish(&h);
}

static void test_owners(void **state)
{
	struct by_hand h;
	(void)state;
	begin(&h, 1);
	judge(&h);
	assert_says(
		&h, "Deadlock: thread 536870912 of diner (pid 536870912) waits for itself", true);
	assert_says(&h, "mutex 0x1000, which it has already; asleep", true);
	h.wait[0].is_timed = true;
	h.wait[0].limit_ns = 120000000000;
	assert_says(&h, "Not for ever: a time limit ends it within 60.0 s.", true);
	h.wait[0].limit_ns = 0; /* not known */
	assert_says(&h, "Not for ever: a time limit ends it.", true);
	finish(&h);
	begin(&h, 1);
	h.wait[0].owner += 99;
	judge(&h);
	assert_says(&h,
		"Orphaned lock: thread 536870912 of diner (pid 536870912) waits for mutex "
		"0x1000, which thread 536871011 had when it ended",
		true);
	h.a.finding[0].kind = DEADLOCK_FINDING_INHERITED;
	assert_says(&h, "Lock held over a fork: thread 536870912 of", true);
	finish(&h);
}

/* Numbers of another process's threads lie between those of this one: it has two all the same. */
static void test_who_is_alone(void **state)
{
	struct by_hand h;
	char who[64];
	(void)state;
	begin(&h, 3);
	h.wait[1].thread.pid = h.wait[1].thread.tid;
	deadlock_say_tid(who, sizeof who, &h.a, 0);
	assert_string_equal(who, "thread 536870912");
	deadlock_say_tid(who, sizeof who, &h.a, 1);
	assert_string_equal(who, "process 536870913");
	deadlock_say_tid(who, sizeof who, &h.a, 2);
	assert_string_equal(who, "thread 536870914");
	finish(&h);
}

/* Many: not all of them are shown, nor all that may wake one. */
static void test_many(void **state)
{
	enum { ALL = WAITS, SHOWN = 24, EDGES = 12 };
	static uint32_t member[ALL], edge[ALL];
	static struct deadlock_edge edges[ALL];
	static struct deadlock_finding f = {.kind = DEADLOCK_FINDING_CYCLE,
		.sure = DEADLOCK_UNKNOWN_OUTCOME,
		.member = member,
		.nr_members = SHOWN + 3,
		.edge = edge,
		.nr_edges = EDGES + 2,
		.is_knot = true,
		.breaker = member};
	struct by_hand h;
	(void)state;
	begin(&h, ALL);
	for (uint32_t i = 0; i < ALL; i++) {
		member[i] = edge[i] = i;
		edges[i] = (struct deadlock_edge){.producer = i, .why = DEADLOCK_EDGE_MAY};
	}
	h.a.edge = edges;
	h.a.finding = &f;
	h.a.nr_findings = 1;
	assert_says(&h, "Suspicious: 27 threads of", true);
	assert_says(&h, "(unknown: somebody may end it", true);
	assert_says(&h, "thread 536870935 \"diner\" waits", true);
	assert_says(&h, "thread 536870936 \"diner\" waits", false);
	assert_says(&h, "\n  and 3 more\n", true);
	assert_says(&h, "which only itself could give\n      or which thread 536870913 could give",
		true);
	assert_says(&h, "or which thread 536870923 could give\n      and 2 more", true);
	assert_says(&h, "(a knot)", true);
	f.is_knot = false;
	assert_says(&h, "some could also be woken by others", true);
	assert_says(&h, "Could still end it", false);
	f.nr_breakers = SHOWN + 1;
	h.a.run = h.run;
	h.run[1].end = DEADLOCK_END_BLOCKED;
	assert_says(&h,
		"Could still end it: thread 536870912 \"diner\", which waits for a mutex; what "
		"it will do is not known.\n",
		true);
	assert_says(&h,
		"Could still end it: thread 536870913 \"diner\", which waits for a mutex; run "
		"ahead, it did not.\n",
		true);
	assert_says(&h, "\n  and 1 more\n", true);
	f.nr_breakers = SHOWN;
	assert_says(&h, "\n  and 1 more\n", false);
	f.nr_members = SHOWN;
	f.nr_edges = EDGES;
	assert_says(&h, "\n  and", false);
	assert_says(&h, "\n      and", false);
	f.sure = DEADLOCK_PROBABLE;
	assert_says(&h, "(probable: who could still end it sleeps, and run ahead did not)", true);
	h.a.edge = NULL;
	h.a.finding = NULL;
	finish(&h);
}

static void test_nothing_found(void **state)
{
	struct by_hand h;
	(void)state;
	begin(&h, 3);
	h.a.nr_long = 0;
	h.a.nr_processes = 2;
	assert_says(&h,
		"No deadlock seen: of 3 threads of 2 processes none has slept all the time.", true);
	h.a.nr_long = 2;
	assert_says(&h, "of 3 threads of 2 processes 2 slept all the time", true);
	assert_says(&h, "CAVEATS", false);
	h.a.nr_not_run = 1;
	assert_says(
		&h, "  1 thread could not be run ahead: what it would do is not known.\n", true);
	h.a.nr_not_run = 2;
	h.a.without_ahead = "no ptrace";
	assert_says(&h,
		"  2 threads could not be run ahead: what they would do is not known (no "
		"ptrace).\n",
		true);
	h.a.nr_blind = 1;
	assert_says(&h, "  1 process may have, or receive, what some of them wait for", true);
	h.a.without_bpf = "no BPF";
	assert_says(&h, "Without BPF (no BPF)", true);
	h.a.stopped_ns = 5000;
	assert_says(&h, "in 3.00 ms; longest stop of a thread 5.00 us.", true);
	h.a.nr_run = 1;
	assert_says(&h, "and what they would do next by running copies ahead; in", true);
	h.wait[0].kind = h.wait[1].kind = DEADLOCK_UNKNOWN;
	h.wait[0].call = h.wait[1].call = 2;
	assert_says(&h,
		"  2 threads sleep in a system call that is not judged (number 2: the opening "
		"of a FIFO?):",
		true);
	h.wait[1].call = 77;
	assert_says(&h, "(number 2: the opening of a FIFO?, 77)", true);
	h.wait[0].call = -1;
	assert_says(&h, "  1 thread sleeps in a system call that is not judged (number 77):", true);
	assert_says(&h, "--spinners", false);
	h.wait[2].kind = DEADLOCK_RUNNING;
	assert_says(&h, "--spinners", false); /* it waits for a processor, or was just woken */
	h.wait[2].thread.state = 'R';
	assert_says(&h, "  1 thread is on a processor, and may spin", true);
	h.a.finds_spinners = true;
	assert_says(&h, "--spinners", false);
	h.a.core = (struct deadlock_core *)&h;
	assert_says(&h, "from a core file", true);
	assert_says(&h, "CAVEATS", false);
	finish(&h);
}

/* ---- for programs ---------------------------------------------------------------------------- */

static json_t *at(json_t *j, const char *path)
{
	char name[64];
	while (j && *path) {
		const size_t n = strcspn(path, ".");
		memcpy(name, path, n);
		name[n] = 0;
		j = json_is_array(j) ? json_array_get(j, (size_t)strtoul(name, NULL, 10))
				     : json_object_get(j, name);
		path += path[n] ? n + 1 : n;
	}
	return j;
}

static void assert_at(json_t *j, const char *path, const char *expected)
{
	char *text = at(j, path) ? json_dumps(at(j, path), JSON_ENCODE_ANY | JSON_COMPACT) : NULL;
	if (!text || strcmp(text, expected) != 0)
		fail_msg("%s: %s, not %s", path, text ? text : "nothing", expected);
	free(text);
}

static void test_json(void **state)
{
	struct by_hand h;
	(void)state;
	begin(&h, 3);
	h.wait[2].owner = PID + 1; /* behind a circle of two */
	h.wait[1].owner = PID;
	h.wait[1].nr_frames = BASE_COUNT(frames);
	memcpy(h.wait[1].frame, frames, sizeof frames);
	h.wait[1].python = &frames[1];
	h.wait[1].nr_python = 1;
	h.a.run = h.run;
	h.run[1] = (struct deadlock_run){.end = DEADLOCK_END_BLOCKED,
		.nr_events = 1,
		.event = {{.key = {.kind = DEADLOCK_KEY_PROCESS_EXIT, .id = PID}, .count = 4}},
		.nr_calls = 6};
	judge(&h);
	json_t *j = deadlock_json(&h.a, "t");
	static const struct {
		const char *path, *value;
	} field[] = {
		{"schema", "\"longpole/deadlock/1\""},
		{"result.threads", "3"},
		{"result.registers", "\"BPF, no thread was stopped\""},
		{"result.deadlocks.0.kind", "\"cycle\""},
		{"result.deadlocks.0.sure", "\"certain\""},
		{"result.deadlocks.0.circle", "true"},
		{"result.deadlocks.0.knot", "true"},
		{"result.deadlocks.0.waiting_behind", "1"},
		{"result.deadlocks.0.threads.1.tid", "536870913"},
		{"result.deadlocks.0.threads.1.owner_tid", "536870912"},
		{"result.deadlocks.0.threads.1.asleep_at_least_ns", "60000000000"},
		{"result.deadlocks.0.threads.1.waits_for.0", "\"mutex 0x2000\""},
		{"result.deadlocks.0.threads.1.object", "\"0x2000\""},
		{"result.deadlocks.0.threads.1.frames.1.function", "\"eat\""},
		{"result.deadlocks.0.threads.1.frames.1.offset_bytes", "7"},
		{"result.deadlocks.0.threads.1.python_frames.0.line", "12"},
		{"result.deadlocks.0.threads.0.run_ahead", "null"},
		{"result.deadlocks.0.threads.1.run_ahead.proper", "true"},
		{"result.deadlocks.0.threads.1.run_ahead.events.0.times", "4"},
		{"result.deadlocks.0.threads.1.run_ahead.events.0.event",
			"\"the end of diner (pid 536870912)\""},
		{"result.deadlocks.0.edges.1.waiter_tid", "536870913"},
		{"result.deadlocks.0.edges.1.producer_tid", "536870912"},
		{"result.deadlocks.0.edges.1.why", "\"owns\""},
	};
	for (size_t i = 0; i < BASE_COUNT(field); i++)
		assert_at(j, field[i].path, field[i].value);
	assert_null(at(j, "result.deadlocks.0.threads.2"));
	json_decref(j);
	h.a.without_bpf = "none";
	j = deadlock_json(&h.a, "t");
	assert_at(j, "result.registers", "\"unknown\"");
	json_decref(j);
	h.a.stopped_ns = 1;
	j = deadlock_json(&h.a, "t");
	assert_at(j, "result.registers", "\"ptrace\"");
	json_decref(j);
	j = deadlock_sarif(&h.a, "t");
	static const struct {
		const char *path, *value;
	} sarif[] = {
		{"version", "\"2.1.0\""},
		{"runs.0.results.0.ruleId", "\"cycle\""},
		{"runs.0.results.0.level", "\"error\""},
		{"runs.0.results.0.partialFingerprints.waitPlaces/v1", "\"?+0,eat+7\""},
		{"runs.0.results.0.locations.0.physicalLocation.artifactLocation.uri",
			"\"program\""},
		{"runs.0.results.0.locations.0.physicalLocation.region.startLine", "1"},
		{"runs.0.results.0.codeFlows.0.threadFlows.1.locations.0.location.physicalLocation."
		 "region.startLine",
			"12"},
		{"runs.0.results.0.codeFlows.0.threadFlows.1.locations.0.location.logicalLocations."
		 "0."
		 "fullyQualifiedName",
			"\"eat\""},
		{"runs.0.results.0.locations.0.message.text",
			"\"thread 536870912 waits for a mutex: mutex 0x1000\""},
		{"runs.0.tool.driver.rules.4.id", "\"stuck\""},
	};
	for (size_t i = 0; i < BASE_COUNT(sarif); i++)
		assert_at(j, sarif[i].path, sarif[i].value);
	json_decref(j);
	/* The same again is not the same: a reader takes equal prints for one. */
	struct deadlock_finding twice[] = {h.a.finding[0], h.a.finding[0]}, *own = h.a.finding;
	size_t nr_own = h.a.nr_findings;
	h.a.finding = twice;
	h.a.nr_findings = 2;
	j = deadlock_sarif(&h.a, "t");
	assert_at(j, "runs.0.results.1.partialFingerprints.waitPlaces/v1", "\"?+0,eat+7#2\"");
	assert_false(
		json_equal(at(j, "runs.0.results.0.partialFingerprints.primaryLocationLineHash"),
			at(j, "runs.0.results.1.partialFingerprints.primaryLocationLineHash")));
	json_decref(j);
	h.a.finding = own;
	h.a.nr_findings = nr_own;
	finish(&h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_circle),
		cmocka_unit_test(test_dot),
		cmocka_unit_test(test_may_and_would),
		cmocka_unit_test(test_stuck),
		cmocka_unit_test(test_owners),
		cmocka_unit_test(test_who_is_alone),
		cmocka_unit_test(test_many),
		cmocka_unit_test(test_nothing_found),
		cmocka_unit_test(test_json),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
