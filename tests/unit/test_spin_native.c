/* SPDX-License-Identifier: Apache-2.0 */
/* test_spin_native.c - instructions about to be stepped; what the tool for Valgrind wrote; live
 * bursts. */
#include "spin/native.h"
#include "spin/arm.h"
#include "spin/cycles.h"
#include "spin/decode.h"
#include "spin/tasks.h"
#include "ring/yield.h"

#include <linux/perf_event.h>
#include <pthread.h>
#include <sched.h>
#include "test.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- decoding -------------------------------------------------------------------------------- */

struct expected {
	const char *code;
	size_t length;
	bool jump, unfit, kernel;
	unsigned reads, writes;
	uint64_t address; /* of the first access; 0: none */
	unsigned size;
};

#define CODE(text) text, sizeof text - 1

static void instructions(void **state)
{
	(void)state;
	const struct user_regs_struct regs = {.rip = 0x1000,
		.rax = 0x10,
		.rbx = 0x200,
		.rsp = 0x9000,
		.rdi = 0x700,
		.fs_base = 0x50000};
	static const struct expected e[] = {
		{CODE("\x8b\x03"), false, false, false, 1, 0, 0x200, 4},     /* mov (%rbx),%eax */
		{CODE("\x89\x43\x08"), false, false, false, 0, 1, 0x208, 4}, /* mov %eax,8(%rbx) */
		{CODE("\x87\x04\x83"), false, false, false, 1, 1, 0x240,
			4}, /* xchg %eax,(%rbx,%rax,4) */
		{CODE("\xf0\x0f\xb1\x0b"), false, false, false, 1, 1, 0x200,
			4}, /* lock cmpxchg %ecx,(%rbx) */
		{CODE("\x8b\x05\x10\x00\x00\x00"), false, false, false, 1, 0, 0x1016,
			4}, /* 0x10(%rip) */
		{CODE("\x64\x8b\x03"), false, false, false, 1, 0, 0x50200,
			4},                                               /* mov %fs:(%rbx),%eax */
		{CODE("\x50"), false, false, false, 0, 1, 0x9000 - 8, 8}, /* push %rax */
		{CODE("\xe8\x00\x00\x00\x00"), false, false, false, 0, 1, 0x9000 - 8, 8}, /* call */
		{CODE("\xaa"), false, false, false, 0, 1, 0x700, 1},  /* stosb */
		{CODE("\x8d\x03"), false, false, false, 0, 0, 0, 0},  /* lea */
		{CODE("\x75\xfe"), true, false, false, 0, 0, 0, 0},   /* jne */
		{CODE("\xeb\xfe"), true, false, false, 0, 0, 0, 0},   /* jmp */
		{CODE("\xff\xe0"), true, false, false, 0, 0, 0, 0},   /* jmp *%rax */
		{CODE("\xc3"), false, false, false, 1, 0, 0x9000, 8}, /* ret */
		{CODE("\xf3\x90"), false, false, false, 0, 0, 0, 0},  /* pause */
		{CODE("\x0f\x05"), false, false, true, 0, 0, 0, 0},   /* syscall */
		{CODE("\x9c"), false, true, false, 0, 1, 0x9000 - 8,
			8},                                          /* pushf shows the trap flag */
		{CODE("\x9d"), false, true, false, 1, 0, 0x9000, 8}, /* popf */
		{CODE("\xcc"), false, true, false, 0, 0, 0, 0},      /* int3 */
		{CODE("\xcd\x80"), false, true, false, 0, 0, 0, 0},  /* int 0x80 */
		{CODE("\x8e\xd0"), false, true, false, 0, 0, 0, 0},  /* mov %eax,%ss */
	};
	for (size_t i = 0; i < sizeof e / sizeof *e; i++) {
		struct spin_instruction d;
		unsigned reads = 0, writes = 0;
		assert_true(spin_decode((const uint8_t *)e[i].code, e[i].length, &d));
		assert_int_equal(d.length, e[i].length);
		for (unsigned k = 0; k < d.nr_accesses; k++) {
			reads += d.access[k].reads;
			writes += d.access[k].writes;
		}
		if (d.jump != e[i].jump || d.unfit != e[i].unfit || d.calls_kernel != e[i].kernel)
			fail_msg("instruction %zu: jump %d unfit %d kernel %d", i, d.jump, d.unfit,
				d.calls_kernel);
		if (e[i].kernel || e[i].unfit)
			continue; /* it is not stepped, or not for its accesses */
		if (reads != e[i].reads || writes != e[i].writes)
			fail_msg("instruction %zu: %u reads, %u writes", i, reads, writes);
		if (e[i].address) {
			assert_int_equal(spin_address(&d, &d.access[0], &regs), e[i].address);
			assert_int_equal(d.access[0].size_bytes, e[i].size);
		}
	}
	struct spin_instruction d;
	assert_false(spin_decode((const uint8_t *)"\x8b", 1, &d)); /* cut short */
	assert_true(spin_decode(
		(const uint8_t *)"\x62\xf2\x7d\x49\xa2\x04\x08", 7, &d)); /* vscatterdps */
	assert_true(d.opaque);
}

/* ---- what the tool wrote --------------------------------------------------------------------- */

static const char good[] =
	"{\"schema\": \"longpole-valgrind/spin/1\", \"pid\": 7, \"sdt\": 16, \"rub\": 64, "
	"\"yield_after\": 8,"
	"\"loops_lost\": 0, \"words_lost\": 0, \"threads\": ["
	"{\"thread\": 2, \"parent\": 1, \"instructions\": 100, \"marked_instructions\": 0, "
	"\"spin_instructions\": 60, \"counting_instructions\": 40, \"branches_back\": 1, "
	"\"cycles\": 1, "
	"\"spin_iterations\": 20, \"evictions\": 0, \"overflows\": 0},"
	"{\"thread\": 1, \"parent\": 0, \"instructions\": 50, \"marked_instructions\": 0, "
	"\"spin_instructions\": 0, \"counting_instructions\": 0, \"branches_back\": 1, \"cycles\": "
	"1, "
	"\"spin_iterations\": 0, \"evictions\": 0, \"overflows\": 0}], \"loops\": ["
	"{\"thread\": 2, \"branch\": {\"address\": \"0x40\", \"function\": \"wait\", \"file\": "
	"\"a.c\", "
	"\"line\": 3}, \"begins\": {\"address\": \"0x38\"}, \"spin_iterations\": 20, "
	"\"spin_instructions\": 60, \"waits\": 2, \"longest_iterations\": 11, "
	"\"counting_iterations\": 0, \"counting_instructions\": 0, \"more_words\": false, "
	"\"words\": ["
	"{\"address\": \"0x5000\", \"name\": \"lock\", \"offset_bytes\": 4, \"changes\": 3, "
	"\"writers\": [1, "
	"2], \"last_writer\": 1, \"last_writer_at\": {\"address\": \"0x44\"}}]}]}";

static void tool_answer(void **state)
{
	(void)state;
	struct spin_answer a = {.arena = base_arena_new(0)};
	struct base_err err = {0};
	assert_int_equal(spin_read_tool(good, sizeof good - 1, &a, &err), BASE_OK);
	assert_int_equal(a.nr_threads, 2);
	assert_int_equal(a.nr_loops, 1);
	assert_string_equal(a.loop[0].polled[0].name, "lock+0x4");
	assert_int_equal(a.loop[0].polled[0].last_writer, 1);
	assert_int_equal(a.loop[0].polled[0].nr_writers, 2);
	assert_string_equal(a.loop[0].branch.function, "wait");
	/* a second process's threads are numbered on */
	assert_int_equal(spin_read_tool(good, sizeof good - 1, &a, &err), BASE_OK);
	spin_sort(&a);
	assert_int_equal(a.nr_threads, 4);
	assert_int_equal(a.thread[3].id, 4);
	assert_int_equal(a.thread[3].parent, 3);
	assert_int_equal(a.loop[1].thread, 4);
	assert_int_equal(a.loop[1].polled[0].last_writer, 3);
	spin_answer_fini(&a);
}

static void tool_answer_damaged(void **state)
{
	(void)state;
	char text[sizeof good];
	for (size_t cut = 0; cut < sizeof good - 1; cut += 7) {
		struct spin_answer a = {.arena = base_arena_new(0)};
		struct base_err err = {0};
		assert_int_equal(spin_read_tool(good, cut, &a, &err), BASE_ERR_CORRUPT);
		assert_true(err.nr_causes > 0);
		spin_answer_fini(&a);
	}
	/* more spinning than there was */
	memcpy(text, good, sizeof good);
	char *hundred = strstr(text, "100");
	assert_non_null(hundred);
	hundred[0] = '5';
	hundred[1] = '9';
	hundred[2] = ' ';
	struct spin_answer a = {.arena = base_arena_new(0)};
	struct base_err err = {0};
	assert_int_equal(spin_read_tool(text, sizeof good - 1, &a, &err), BASE_ERR_CORRUPT);
	spin_answer_fini(&a);
}

static void no_memory(void **state)
{
	(void)state;
	for (uint64_t nth = 1;; nth++) {
		struct spin_answer a = {.arena = base_arena_new(0)};
		struct base_err err = {0};
		enum base_status s =
			WITHOUT_NTH(nth, spin_read_tool(good, sizeof good - 1, &a, &err));
		if (s == BASE_OK) {
			assert_int_equal(a.nr_threads, 2);
			assert_string_equal(a.loop[0].polled[0].name, "lock+0x4");
		}
		spin_answer_fini(&a);
		if (s == BASE_OK) {
			assert_true(nth > 3);
			return;
		}
	}
}

/* ---- live bursts ----------------------------------------------------------------------------- */

static volatile unsigned word;
static volatile uint64_t sink[4];

/* A child that does one thing until it is killed. */
static pid_t child_of(void (*loop)(void))
{
	pid_t pid = fork();
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;)
		loop();
}

static void spin_on_word(void)
{
	while (!word)
		;
}
static void spin_and_yield(void)
{
	while (!word)
		sched_yield();
}
static void count_rounds(void)
{
	for (unsigned i = 0; i < 1000000000 && !word; i++)
		;
	sink[0]++;
}
static void compute(void)
{
	for (unsigned i = 0; i < 1000000000; i++)
		sink[i % 4] += i;
}
static void spin_with_trap_blocked(void)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGTRAP);
	sigprocmask(SIG_BLOCK, &set, NULL);
	spin_on_word();
}
static void spin_with_trap_ignored(void)
{
	signal(SIGTRAP, SIG_IGN);
	spin_on_word();
}

static uint64_t blocked_of(pid_t pid)
{
	char path[32], line[256];
	unsigned long long mask = 0;
	snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
	FILE *f = fopen(path, "re");
	while (f && fgets(line, sizeof line, f))
		if (sscanf(line, "SigBlk: %llx", &mask) == 1)
			break;
	if (f)
		fclose(f);
	return mask;
}

/* The most frequent verdict of some bursts. */
static enum spin_burst_verdict verdict_of(
	void (*loop)(void), struct spin_burst *ret, bool *ret_alive, uint64_t *ret_mask)
{
	const struct spin_limits limits = {.steps = SPIN_STEPS_DEFAULT, .iterations = 2};
	struct spin_stepper *s = spin_stepper_new();
	unsigned count[SPIN_VERDICTS] = {0}, best = 0;
	pid_t pid = child_of(loop);
	usleep(50000);
	for (int i = 0; i < 5; i++) {
		struct spin_burst b;
		spin_burst(s, pid, pid, &limits, &b);
		count[b.verdict]++;
		if (b.verdict == SPIN_SPINS || i == 0)
			*ret = b;
	}
	*ret_mask = blocked_of(pid);
	*ret_alive = waitpid(pid, NULL, WNOHANG) == 0;
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	spin_stepper_free(s);
	for (unsigned v = 0; v < SPIN_VERDICTS; v++)
		if (count[v] > count[best])
			best = v;
	return (enum spin_burst_verdict)best;
}

static void live_bursts(void **state)
{
	(void)state;
	struct spin_burst b;
	bool alive;
	uint64_t mask;
	const uint64_t trap = UINT64_C(1) << (SIGTRAP - 1);
	enum spin_burst_verdict v = verdict_of(spin_on_word, &b, &alive, &mask);
	if (v == SPIN_REFUSED) /* no ptrace here */
		skip();
	assert_int_equal(v, SPIN_SPINS);
	assert_true(alive && b.nr_words == 1 && b.word[0].address == (uint64_t)(uintptr_t)&word);
	assert_true(b.word[0].size_bytes == 4 && !b.word[0].value && b.iterations == 2);
	assert_int_equal(verdict_of(spin_and_yield, &b, &alive, &mask), SPIN_SPINS);
	assert_true(alive && b.yields);
	assert_int_equal(verdict_of(compute, &b, &alive, &mask), SPIN_WORKS);
	assert_true(alive);
	v = verdict_of(count_rounds, &b, &alive, &mask);
	assert_true(alive && v != SPIN_SPINS);
	/* the mask is what it was; and where a step would change what the program set, there is
	 * none */
	assert_int_equal(verdict_of(spin_with_trap_blocked, &b, &alive, &mask), SPIN_SPINS);
	assert_true(alive && (mask & trap));
	assert_int_equal(verdict_of(spin_with_trap_ignored, &b, &alive, &mask), SPIN_REFUSED);
	assert_true(alive);
}

/* A millisecond passes between any two looks at the clock. */
static uint64_t slow_clock(void *ctx)
{
	struct timespec ts;
	uint64_t *looks = ctx;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec + ++*looks * 1000000u;
}

/* Whatever it does, a thread is not held for longer than it may be. */
static void bursts_are_cut(void **state)
{
	(void)state;
	uint64_t looks = 0;
	const struct spin_limits limits = {.steps = SPIN_STEPS_DEFAULT,
		.iterations = 2,
		.stop_ns = 10000000,
		.clock_ns = slow_clock,
		.clock_ctx = &looks};
	struct spin_stepper *s = spin_stepper_new();
	struct spin_burst b = {0};
	pid_t pid = child_of(compute);
	enum { TRIES = 100 }; /* it may be in the kernel, or still come back from its fork() */
	for (int i = 0; i < TRIES; i++) {
		spin_burst(s, pid, pid, &limits, &b);
		if (b.verdict != SPIN_KERNEL && b.verdict != SPIN_WORKS)
			break;
		usleep(10000);
	}
	const bool refused = b.verdict == SPIN_REFUSED;
	assert_int_equal(b.verdict, refused ? SPIN_REFUSED : SPIN_CUT);
	assert_true(b.steps < 10 && !b.nr_words);
	assert_int_equal(waitpid(pid, NULL, WNOHANG), 0); /* and goes on */
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	spin_stepper_free(s);
	if (refused)
		skip();
}

/* There are no counters to be had everywhere: events of the kernel take their place. */
static void two_events(void **state)
{
	(void)state;
	static const struct spin_event event[SPIN_EVENTS] = {
		{PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK},
		{PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK}};
	static struct spin_cycles c;
	uint64_t v[SPIN_EVENTS];
	pid_t pid = child_of(compute);
	if (!spin_cycles_open(&c, pid, event)) { /* perf_event is forbidden here */
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		skip();
	}
	usleep(200000);
	assert_true(spin_cycles_read(&c, v));
	assert_true(v[0] > 0 && v[1] > 0);
	spin_cycles_close(&c);
	assert_false(spin_cycles_read(&c, v));
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	assert_false(spin_cycles_open(&c, pid, event)); /* it is gone */
}

static void block_signals_when_continued(void)
{
	sigset_t all;
	sigfillset(&all);
	raise(SIGSTOP);
	sigprocmask(SIG_BLOCK, &all, NULL);
	for (;;)
		pause();
}

/* A thread that is in the library's handler blocks the signal, and is still armed. */
static void armed_threads_stay_armed(void **state)
{
	(void)state;
	static pid_t task[SPIN_TASKS_MAX];
	static struct spin_arms a;
	a = (struct spin_arms){
		.pid = child_of(block_signals_when_continued), .period_ns = 1000000000};
	waitpid(a.pid, NULL, WUNTRACED);
	spin_arms_scan(&a, task);
	size_t nr = a.nr;
	kill(a.pid, SIGCONT);
	while (nr && !(blocked_of(a.pid) >> (YIELD_SIGNAL - 1) & 1))
		usleep(1000);
	int fd = a.thread[0].fd;
	spin_arms_scan(&a, task);
	bool still = a.nr == 1 && a.thread[0].fd == fd && !a.nr_blocked_now;
	kill(a.pid, SIGKILL);
	waitpid(a.pid, NULL, 0);
	spin_arms_scan(&a, task);
	size_t nr_after = a.nr;
	spin_arms_close(&a);
	if (!nr) /* perf_event is forbidden here */
		skip();
	assert_true(still);
	assert_int_equal(nr_after, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(instructions),
		cmocka_unit_test(tool_answer),
		cmocka_unit_test(tool_answer_damaged),
		cmocka_unit_test(no_memory),
		cmocka_unit_test(live_bursts),
		cmocka_unit_test(bursts_are_cut),
		cmocka_unit_test(two_events),
		cmocka_unit_test(armed_threads_stay_armed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
