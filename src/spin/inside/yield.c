/* SPDX-License-Identifier: Apache-2.0 */
/*
 * yield_program.c - liblongpole-yield.so: in programs that `longpole run --spin-yield` runs. A
 * signal handler, and nothing else: it wraps no function and has no thread.
 */
#include "ring/yield.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

enum {
	NS_PER_S = 1000000000,
	NAP_LEAST_NS = 20000,
	NAP_MOST_NS = 1000000,
	NAP_SHARE = 8, /* a nap is no longer than this part of the wait so far */
	SLEEP_FIRST_NS = 200000,
	SLEEP_TIMES = 2,
	VAIN_NS = 50000000, /* that may be slept in vain, and */
	VAIN_TIMES = 8,     /* so many times what was not */
};

static struct yield_shared *shared;

/* The loop that this thread was in when it was last met, and what its words were then. What is the
 * same at two signals, it has likely looked at in between; but it may be another wait, in which it
 * has not. So it sleeps briefly at first, and longer each time it finds no change; and no more in
 * a loop where that is mostly in vain. */
static _Thread_local struct {
	uint32_t loop; /* index + 1 */
	uint64_t since_ns, most_ns;
	uint64_t value[YIELD_WORDS_MAX];
} last;

static void yield_add(uint64_t *counter, uint64_t n)
{
	__atomic_fetch_add(counter, n, __ATOMIC_RELAXED);
}

static uint64_t now_ns(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec;
}

static uint64_t register_of(const ucontext_t *c, uint8_t number)
{
	static const uint8_t place[16] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP,
		REG_RSI, REG_RDI, REG_R8, REG_R9, REG_R10, REG_R11, REG_R12, REG_R13, REG_R14,
		REG_R15};
	return number < 16 ? (uint64_t)c->uc_mcontext.gregs[place[number]] : 0;
}

/* (by a system call: the word may be gone) */
static void yield_read_words(
	const struct yield_loop *loop, const ucontext_t *c, uint64_t value[YIELD_WORDS_MAX])
{
	memset(value, 0, YIELD_WORDS_MAX * sizeof *value);
	for (uint64_t i = 0; i < loop->nr_words && i < YIELD_WORDS_MAX; i++) {
		const struct yield_word *w = &loop->word[i];
		uint64_t address = w->displacement + register_of(c, w->base) +
				   register_of(c, w->index) * w->scale;
		size_t nr_bytes = __atomic_load_n(&w->size_bytes, __ATOMIC_RELAXED); /* shared */
		struct iovec here = {&value[i], nr_bytes};
		struct iovec there = {(void *)(uintptr_t)address, nr_bytes};
		if (nr_bytes <= sizeof *value)
			syscall(SYS_process_vm_readv, shared->pid, &here, 1, &there, 1, 0);
	}
}

static void yield_nap(uint64_t waited_ns, uint64_t left_ns)
{
	uint64_t ns = waited_ns / NAP_SHARE;
	ns = ns < NAP_LEAST_NS ? NAP_LEAST_NS : ns > NAP_MOST_NS ? NAP_MOST_NS : ns;
	struct timespec ts = {.tv_nsec = (long)(ns < left_ns ? ns : left_ns)};
	syscall(SYS_nanosleep, &ts, NULL);
}

enum gave { GAVE_NOTHING, SLEPT_IN_VAIN, SLEPT_UNTIL_CHANGED };

/* Nothing: it is to yield. */
static enum gave sleep_until_changed(uint32_t index, const ucontext_t *c)
{
	const struct yield_loop *loop = &shared->loop[index];
	uint64_t value[YIELD_WORDS_MAX], begin_ns = now_ns(), ns = 0;
	if (!shared->sleep_ns || !loop->nr_words ||
		loop->vain_ns > VAIN_NS + VAIN_TIMES * loop->slept_ns)
		return GAVE_NOTHING;
	yield_read_words(loop, c, value);
	bool same = last.loop == index + 1 && !memcmp(value, last.value, sizeof value);
	if (!same) {
		last.loop = index + 1;
		last.since_ns = begin_ns;
		last.most_ns = SLEEP_FIRST_NS;
		memcpy(last.value, value, sizeof value);
		return GAVE_NOTHING;
	}
	uint64_t most_ns = last.most_ns < shared->sleep_ns ? last.most_ns : shared->sleep_ns;
	while (same && ns < most_ns) {
		yield_nap(begin_ns + ns - last.since_ns, most_ns - ns);
		yield_read_words(loop, c, value);
		same = !memcmp(value, last.value, sizeof value);
		ns = now_ns() - begin_ns;
	}
	last.most_ns = most_ns * SLEEP_TIMES;
	if (!same)
		last.loop = 0; /* the next wait is another */
	return same ? SLEPT_IN_VAIN : SLEPT_UNTIL_CHANGED;
}

static void give_way(uint32_t index, const ucontext_t *c)
{
	uint64_t begin_ns = now_ns();
	enum gave gave = sleep_until_changed(index, c);
	if (gave == GAVE_NOTHING)
		syscall(SYS_sched_yield);
	uint64_t ns = now_ns() - begin_ns;
	yield_add(&shared->nr_spinning, 1);
	yield_add(gave ? &shared->nr_sleeps : &shared->nr_yields, 1);
	yield_add(gave ? &shared->slept_ns : &shared->yielded_ns, ns);
	struct yield_loop *loop = &shared->loop[index];
	yield_add(gave == SLEPT_IN_VAIN ? &loop->vain_ns
		  : gave                ? &loop->slept_ns
					: &loop->yielded_ns,
		ns);
	yield_add(&shared->nr_changed, gave == SLEPT_UNTIL_CHANGED);
}

static void at_sample(int number, siginfo_t *info, void *context)
{
	const ucontext_t *c = context;
	uint64_t pc = (uint64_t)c->uc_mcontext.gregs[REG_RIP];
	uint32_t nr = __atomic_load_n(&shared->nr_loops, __ATOMIC_ACQUIRE);
	int saved_errno = errno;
	(void)number;
	if (info->si_code <= 0) /* somebody's kill() */
		return;
	yield_add(&shared->nr_samples, 1);
	uint32_t i = 0;
	while (i < nr && i < YIELD_LOOPS_MAX &&
		(pc < shared->loop[i].begins || pc > shared->loop[i].branch))
		i++;
	bool spins = i < nr && i < YIELD_LOOPS_MAX;
	if (spins)
		give_way(i, c);
	else {
		uint64_t at = __atomic_fetch_add(&shared->nr_recent, 1, __ATOMIC_RELAXED);
		shared->recent[at % YIELD_RECENT] =
			(struct yield_recent){pc, (uint64_t)syscall(SYS_gettid)};
		last.loop = 0;
	}
	errno = saved_errno;
}

static struct yield_shared *yield_map_file(void)
{
	const char *path = secure_getenv(YIELD_ENVIRONMENT);
	struct stat st;
	int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
	void *at = MAP_FAILED;
	if (fd >= 0 && !fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_uid == geteuid() &&
		st.st_size == sizeof(struct yield_shared))
		at = mmap(NULL, sizeof(struct yield_shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd,
			0);
	if (fd >= 0)
		close(fd);
	return at == MAP_FAILED ? NULL : at;
}

/* The first process is the one; an exec of it begins anew. */
static bool yield_is_ours(struct yield_shared *s)
{
	uint32_t nobody = 0, me = (uint32_t)getpid();
	if (s->magic != YIELD_MAGIC || s->size_bytes != sizeof *s)
		return false;
	__atomic_compare_exchange_n(
		&s->pid, &nobody, me, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
	return s->pid == me;
}

__attribute__((constructor)) static void begin(void)
{
	int saved_errno = errno;
	struct sigaction before;
	struct sigaction ours = {
		.sa_sigaction = at_sample, .sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK};
	shared = yield_map_file();
	if (shared && yield_is_ours(shared) && !sigaction(YIELD_SIGNAL, NULL, &before) &&
		before.sa_handler == SIG_DFL && !sigaction(YIELD_SIGNAL, &ours, NULL))
		__atomic_fetch_add(&shared->images, 1, __ATOMIC_RELEASE);
	errno = saved_errno;
}

/* AddressSanitizer as a library refuses to start behind another one. It bears us: we replace no
 * allocation. (A program's own function of this name is asked instead.) */
const char *__asan_default_options(void);
__attribute__((visibility("default"))) const char *__asan_default_options(void)
{
	return "verify_asan_link_order=0";
}
