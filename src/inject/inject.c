/* SPDX-License-Identifier: Apache-2.0 */
/* inject.c - the steps of an injection. */
#include "inject/private.h"
#include "os/proc.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>

enum { LOOK_NS = 200000, LEAVE_LOOKS = 5000, LOOKS = 50000 /* 10 s */ };

static enum base_status inject_map(struct inject_thread *t, uint64_t *ret_at, struct base_err *err)
{
	const uint64_t map[6] = {0, INJECT_SCAFFOLD_BYTES, PROT_READ | PROT_WRITE | PROT_EXEC,
		MAP_PRIVATE | MAP_ANONYMOUS, UINT64_MAX, 0};
	enum base_status status = inject_thread_syscall(t, SYS_mmap, map, err);
	if (status != BASE_OK)
		return status;
	if (t->result < 0)
		return base_fail_errno(
			err, (int)-t->result, "no memory in process %d", (int)t->memory->pid);
	*ret_at = (uint64_t)t->result;
	return BASE_OK;
}

/* All that is written while a thread stands still, made ready before. */
struct inject_plan {
	uint64_t create; /* pthread_create() */
	uint8_t code[INJECT_CODE_BYTES];
	struct inject_scaffold words;
};
_Static_assert(offsetof(struct inject_plan, words) ==
			       offsetof(struct inject_plan, code) + INJECT_CODE_BYTES &&
		       sizeof(struct inject_scaffold) <= INJECT_SCAFFOLD_BYTES - INJECT_CODE_BYTES,
	"written in one piece");

static enum base_status inject_make_plan(struct inject_plan *p, const struct inject_memory *m,
	const struct inject_what *what, struct base_err *err)
{
	static const char *const name[] = {
		"pthread_self", "pthread_detach", "dlopen", "dlsym", "dlerror", "gettid"};
	bool all = true;
	*p = (struct inject_plan){.create = inject_function(m, "pthread_create"),
		.words = {.progress = INJECT_WAITS}};
	for (size_t i = 0; i < BASE_COUNT(name); i++)
		all = (p->words.functions[i] = inject_function(m, name[i])) && all;
	if (!all || !p->create)
		return base_fail(err, BASE_ERR_ENV,
			"process %d has a glibc before 2.34, whose libc.so.6 lacks what is needed",
			(int)m->pid);
	(void)inject_scaffold_code(p->code);
	memcpy(p->words.library, what->library, strlen(what->library) + 1);
	memcpy(p->words.entry, what->entry, strlen(what->entry) + 1);
	return BASE_OK;
}

static bool inject_fill(struct inject_plan *p, const struct inject_memory *m,
	const struct inject_what *what, uint64_t at)
{
	*what->scaffold = at;
	*what->scaffold_bytes = INJECT_SCAFFOLD_BYTES;
	memcpy(p->words.argument, what->argument, what->argument_bytes);
	return inject_write(m, at, p->code, INJECT_CODE_BYTES + sizeof p->words);
}

/* The thread that is stopped begins one beside it. */
static enum base_status inject_begin(struct inject_thread *t, struct inject_plan *p,
	const struct inject_what *what, uint64_t *ret_at, struct base_err *err)
{
	enum base_status status = inject_map(t, ret_at, err);
	if (status != BASE_OK)
		return status;
	const uint64_t words = *ret_at + INJECT_CODE_BYTES;
	const uint64_t begin[6] = {
		words + offsetof(struct inject_scaffold, thread), 0, *ret_at, words};
	if (!inject_fill(p, t->memory, what, *ret_at))
		return base_fail_errno(
			err, errno, "cannot write to process %d", (int)t->memory->pid);
	return inject_thread_call(t, p->create, begin, err);
}

/* What has become of it. Its words are gone when the entry has begun its work. */
static enum base_status inject_await(const struct inject_memory *m, uint64_t at,
	const struct inject_what *what, struct inject_result *ret, bool *ret_gone,
	struct base_err *err)
{
	struct inject_scaffold s = {.progress = INJECT_WAITS};
	*ret_gone = false;
	for (unsigned i = 0; i < LOOKS; i++) {
		if (!inject_read(m, at + INJECT_CODE_BYTES, &s, sizeof s)) {
			*ret_gone = true;
			return BASE_OK;
		}
		s.why[INJECT_TEXT_BYTES] = '\0';
		if (s.progress == INJECT_REFUSED) {
			ret->refused = (int)s.refused;
			return BASE_OK;
		}
		if (s.progress > INJECT_BEGUN)
			return base_fail(err, BASE_ERR_ENV, "process %d cannot load %s: %s",
				(int)m->pid, what->library,
				*s.why ? s.why : "its loader does not say why");
		nanosleep(&(struct timespec){.tv_nsec = LOOK_NS}, NULL);
	}
	return base_fail(err, BASE_ERR_ENV,
		s.progress == INJECT_WAITS
			? "process %d could not begin a thread for %s within 10 s: it goes on"
			: "process %d has not loaded %s within 10 s: it goes on",
		(int)m->pid, what->library);
}

/* Has its thread ended, or never begun? */
static bool inject_has_ended(const struct inject_memory *m, uint64_t at, bool led)
{
	struct inject_scaffold s;
	char text[64];
	if (!led)
		return true;
	if (!inject_read(m, at + INJECT_CODE_BYTES, &s, sizeof s) || !s.tid)
		return false;
	for (unsigned i = 0; i < LEAVE_LOOKS; i++) {
		if (os_proc_read_task(m->pid, (pid_t)s.tid, "comm", text, sizeof text) <= 0)
			return true;
		nanosleep(&(struct timespec){.tv_nsec = LOOK_NS}, NULL);
	}
	return false;
}

/* The memory that was mapped. */
static void inject_tidy(struct inject_thread *t, const struct inject_memory *m, uint64_t at)
{
	const uint64_t unmap[6] = {at, INJECT_SCAFFOLD_BYTES};
	struct base_err ignored = {0};
	if (inject_thread_stop(t, m, &ignored) != BASE_OK)
		return;
	(void)!inject_thread_syscall(t, SYS_munmap, unmap, &ignored);
	inject_thread_go(t);
}

/* While a thread stands still for us we are not to wait for a processor, where we may say so: each of its steps waits for us. */
struct inject_hurry {
	int policy;
	struct sched_param parameters;
};

static void inject_hurry(struct inject_hurry *h)
{
	const struct sched_param first = {.sched_priority = 1};
	h->policy = sched_getscheduler(0);
	if (h->policy < 0 || sched_getparam(0, &h->parameters) ||
		sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &first))
		h->policy = -1;
}

static void inject_hurry_no_more(const struct inject_hurry *h)
{
	if (h->policy >= 0)
		(void)!sched_setscheduler(0, h->policy, &h->parameters);
}

static enum base_status inject_bring(const struct inject_memory *m, struct inject_thread *t,
	struct inject_plan *p, const struct inject_what *what, struct inject_result *ret,
	struct base_err *err)
{
	struct inject_hurry h;
	uint64_t at = 0;
	bool gone = false;
	enum base_status status = inject_make_plan(p, m, what, err);
	if (status != BASE_OK)
		return status;
	inject_hurry(&h);
	status = inject_thread_stop(t, m, err);
	bool stood = status == BASE_OK;
	if (stood)
		status = inject_begin(t, p, what, &at, err);
	bool led = stood && status == BASE_OK;
	if (stood)
		inject_thread_go(t);
	inject_hurry_no_more(&h);
	if (!stood)
		return status;
	if (led)
		status = inject_await(m, at, what, ret, &gone, err);
	ret->through = t->tid;
	ret->stopped_ns = t->stopped_ns;
	/* (where nobody knows whether a thread is still in there, two pages stay) */
	if (at && !gone && (!led || status != BASE_OK || ret->refused) &&
		inject_has_ended(m, at, led))
		inject_tidy(t, m, at);
	return status;
}

enum base_status inject_library(
	pid_t pid, const struct inject_what *what, struct inject_result *ret, struct base_err *err)
{
	struct inject_memory m;
	*ret = (struct inject_result){0};
	if (strlen(what->library) >= sizeof((struct inject_scaffold *)0)->library ||
		strlen(what->entry) >= sizeof((struct inject_scaffold *)0)->entry ||
		what->argument_bytes > sizeof((struct inject_scaffold *)0)->argument)
		return base_fail(err, BASE_ERR_LIMIT, "the path of the library is too long");
	enum base_status status = inject_memory_open(&m, pid, err);
	if (status != BASE_OK)
		return status;
	struct inject_thread *t = base_alloc(sizeof *t);
	struct inject_plan *p = base_alloc(sizeof *p);
	sigset_t child, before;
	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	pthread_sigmask(SIG_BLOCK, &child, &before);
	status = t && p ? inject_bring(&m, t, p, what, ret, err)
			: base_fail(err, BASE_ERR_NOMEM, "no memory to look into a process");
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	base_free(p);
	base_free(t);
	inject_memory_close(&m);
	return status;
}
