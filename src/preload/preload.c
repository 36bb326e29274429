/* SPDX-License-Identifier: Apache-2.0 */
/* preload.c - attaching to the ring, and the blocks that threads write into. */
#include "ring/handover.h"
#include "preload/preload.h"
#include "preload/got.h"
#include "preload/env.h"
#include "preload/next.h"
#include "preload/real.h"
#include "ring/tally.h"

#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

struct preload_fresh preload_fresh __attribute__((aligned(PRELOAD_PAGE)));
struct record_target_side preload_met PRELOAD_EARLY;
struct preload_runtimes preload_runtimes PRELOAD_EARLY;
struct preload_ring preload_ring PRELOAD_EARLY;

enum {
	BLOCK_WORDS = (RING_BLOCK_BYTES - sizeof(struct ring_block)) / sizeof(uint64_t),
	RETRY_TICKS = 50000,    /* after finding no free block */
	KEYS_WITHOUT_HEAP = 32, /* pthread_setspecific() allocates for keys from here */
};

/* What survives fork; written by one thread only. */
static struct {
	struct ring_head *mapped;         /* the ring */
	bool prepared;                    /* once a process: key, fork handling */
	bool has_key, sees_exit, started; /* started: by our constructor */
	pthread_key_t key;                /* its destructor ends threads */
	uint32_t image; /* of this process; in a new fork's child: of the parent */
	uint32_t parent_image;
	uint64_t pid_ns;    /* as in struct ring_ids */
	bool sees_recorder; /* it is in our pid namespace */
	char *const *argv;  /* NULL: not known yet */
	bool forked;        /* this image was made by fork: modules are as in the parent */
	bool late;          /* we were brought into a process that ran already (late.c) */
} process PRELOAD_EARLY;

__attribute__((used)) static const struct ring_tag version_tag = {RING_TAG, RING_VERSION};

/* What everyone records into when there is no ring: nothing. */
static struct ring_head nowhere;

/* ---- attaching ------------------------------------------------------------------------------- */

static long preload_kernel(long number, long a, long b, long c, long d, long e, long f)
{
	return preload_syscall(number, a, b, c, d, e, f);
}

/* Everything is read once: what is checked is what is used. */
static bool layout_of(const struct ring_head *head, uint64_t size_bytes, struct preload_ring *ret)
{
	struct ring_head copy;
	memcpy(&copy, head, sizeof copy);
	PRELOAD_BARRIER();
	*ret = (struct preload_ring){.nr_blocks = copy.nr_blocks,
		.nr_tables = copy.nr_tables,
		.tally_mask = copy.tally_mask,
		.tables_offset = copy.tables_offset,
		.affinity_bytes = copy.affinity_bytes,
		.nr_events = copy.nr_events <= RING_EVENTS ? copy.nr_events : 0,
		.event_modes = copy.event_modes,
		.events_by_call = copy.events_by_call};
	memcpy(ret->event, copy.event, sizeof ret->event);
	return ring_layout_fits(&copy, size_bytes) &&
	       (!ret->nr_tables || tally_layout_fits(&copy, size_bytes));
}

/* Its lock is on the first byte; the kernel has no number of a recorder that is in none of our
 * namespaces. (A stat() of /proc/self/ns/pid says the same, but at a program's start /proc has
 * nothing of it yet.)
 */
static bool sees_recorder(long fd)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1};
	return !preload_syscall(SYS_fcntl, fd, F_GETLK, (long)&lock, 0, 0, 0) &&
	       lock.l_type != F_UNLCK && lock.l_pid > 0;
}

static struct ring_head *map_ring(const char *path,
	long (*open_ring)(handover_call *call, const char *path, uint64_t *ret_bytes))
{
	uint64_t size_bytes = 0;
	struct ring_head copy, *head = NULL;
	long fd = open_ring(preload_kernel, path, &size_bytes);
	if (fd < 0)
		return NULL;
	if (preload_syscall(SYS_read, fd, (long)&copy, sizeof copy, 0, 0, 0) == sizeof copy &&
		layout_of(&copy, size_bytes, &preload_ring))
		head = preload_window_begin(fd, size_bytes);
	process.sees_recorder = sees_recorder(fd);
	preload_syscall(SYS_close, fd, 0, 0, 0, 0, 0);
	if (!head)
		preload_ring = (struct preload_ring){0};
	return head;
}

/* The inode of our pid namespace, if it is not the recorder's; 0: it is, or /proc is not there. A
 * process whose parent is in another one sees none: so a fork's child that sees its parent need not
 * ask. */
static uint64_t pid_namespace(const struct ring_head *head, uint64_t of_parent)
{
	struct stat st;
	if (process.forked && preload_syscall(SYS_getppid, 0, 0, 0, 0, 0, 0))
		return of_parent;
	if (!process.forked && process.sees_recorder)
		return 0;
	if (preload_syscall(
		    SYS_newfstatat, AT_FDCWD, (long)"/proc/self/ns/pid", (long)&st, 0, 0, 0))
		return 0;
	return st.st_ino == head->pid_ns ? 0 : (uint64_t)st.st_ino;
}

static uint32_t preload_number_at(const char *text, const char **ret_end)
{
	uint32_t n = 0;
	while (*text >= '0' && *text <= '9')
		n = n * 10 + (uint32_t)(*text++ - '0');
	*ret_end = text;
	return n;
}

/* The numbers that the recorder knows us by: "PID/task/TID", as long as /proc is the recorder's. */
static struct ring_ids ids_outside(const struct ring_head *head)
{
	static const char task[] = "/task/";
	struct ring_ids ids = {.ns = process.pid_ns};
	struct stat st = {0};
	char text[64] = {0}; /* (which only the kernel writes) */
	const char *at;
	if (!ids.ns ||
		preload_syscall(SYS_newfstatat, AT_FDCWD, (long)"/proc", (long)&st, 0, 0, 0) ||
		st.st_dev != head->proc_dev)
		return ids;
	long n = preload_syscall(SYS_readlinkat, AT_FDCWD, (long)"/proc/thread-self", (long)text,
		sizeof text - 1, 0, 0);
	text[n > 0 ? n : 0] = '\0';
	uint32_t pid = preload_number_at(text, &at);
	if (strncmp(at, task, sizeof task - 1) != 0)
		return ids;
	ids.outer_pid = pid;
	ids.outer_tid = preload_number_at(at + sizeof task - 1, &at);
	return ids;
}

static void forget_parent(void)
{
	memset(&preload_fresh, 0, sizeof preload_fresh);
}

/*
 * pthread runs key destructors up to four times while any has been set again: ours asks for the
 * last round, when those of the program have run.
 */
static void preload_thread_ends(void *value)
{
	struct preload_thread *self = preload_self;
	if (self->place && ++self->key_rounds < PTHREAD_DESTRUCTOR_ITERATIONS) {
		pthread_setspecific(process.key, value);
		return;
	}
	preload_thread_end();
	preload_self_give();
}

void preload_thread_watch(const struct preload_thread *self)
{
	if (process.has_key)
		pthread_setspecific(process.key, self);
}

void preload_record_exit(int status)
{
	if (preload_active() && !preload_self->ended)
		preload_record_at(
			preload_now(), RING_exit, PRELOAD_WORDS((uint64_t)(status & 0xff) << 8));
}

/* Registered by our constructor, which is before all others: so it runs last, after the program's
 * atexit() functions and all destructors. One of them may have called exit() again: this is the
 * status that counts. */
static void exits(int status, void *unused)
{
	(void)unused;
	preload_record_exit(status);
	preload_thread_end();
}

static void prepare_process(void)
{
	if (process.prepared)
		return;
	process.prepared = true;
	/* valgrind and old kernels refuse: then at least fork() itself is seen */
	if (preload_syscall(SYS_madvise, (long)&preload_fresh, sizeof preload_fresh,
		    MADV_WIPEONFORK, 0, 0, 0) < 0)
		pthread_atfork(NULL, NULL, forget_parent);
	process.has_key = pthread_key_create(&process.key, preload_thread_ends) == 0;
	if (process.has_key && process.key >= KEYS_WITHOUT_HEAP) {
		pthread_key_delete(process.key);
		process.has_key = false;
	}
	process.sees_exit = on_exit(exits, NULL) == 0;
	preload_stack_warm_up();
}

static void begin_image(struct ring_head *head)
{
	process.forked = process.image != 0;
	process.parent_image = process.forked ? process.image : preload_env_parent_image();
	process.pid_ns = pid_namespace(head, process.pid_ns);
	process.image = __atomic_add_fetch(&head->next_image, 1, __ATOMIC_RELAXED);
	preload_fresh.tsc_origin = head->tsc_origin;
	preload_env_set_image(process.image);
	preload_fresh.image = process.image;
	__atomic_fetch_add(&head->images_attached, 1, __ATOMIC_RELAXED);
}

/* The shortest way to record is for those whom nothing stands between: no stub, no runtime, no
 * mutex functions of somebody else. */
static void preload_set_direct(struct ring_head *head)
{
	const bool is_between = preload_met.is_stub || preload_runtimes.any ||
				preload_has_python() || preload_has_java() || preload_has_node() ||
				preload_mutex_is_wrapped;
	__atomic_store_n(&preload_fresh.direct, is_between ? NULL : head, __ATOMIC_RELEASE);
}

/*
 * Called by the first to come: our constructor, a wrapper in another library's constructor, or a
 * fork's child. Others see `nowhere` in the meantime, as do the functions that are called from here
 * and happen to be wrapped.
 */
PRELOAD_COLD struct ring_head *preload_attach(void)
{
	uint32_t idle = 0;
	int saved_errno = errno;
	struct ring_head *head = __atomic_load_n(&preload_fresh.head, __ATOMIC_ACQUIRE);
	if (head)
		return head;
	if (PRELOAD_IS_STATIC && !process.started) /* what begins a program registers with the
						      unwinder first */
		return &nowhere;
	if (!__atomic_compare_exchange_n(
		    &preload_fresh.attaching, &idle, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
		return &nowhere;
	if (!process.mapped && !process.late) {
		if (!environ) { /* libc is not ready: later */
			__atomic_store_n(&preload_fresh.attaching, 0, __ATOMIC_RELEASE);
			return &nowhere;
		}
		preload_real_find();
		if (preload_env_read(environ) && !preload_sandbox_inherited(preload_env_ring()))
			process.mapped = map_ring(preload_env_ring(), handover_open);
		if (preload_sandbox.no_calls)
			preload_env_forget();
	}
	head = &nowhere;
	/* (the child of a process that must not ask would have to ask who it is) */
	if (process.mapped && !preload_sandbox.no_calls && !preload_sandbox.no_clock) {
		head = process.mapped;
		prepare_process();
		/* the thread that we were in the parent stays behind, but for what fork() left us
		 */
		preload_self_renew();
		begin_image(head);
	}
	preload_set_direct(head);
	__atomic_store_n(&preload_fresh.head, head, __ATOMIC_RELEASE);
	preload_thread_begin();
	errno = saved_errno;
	return head;
}

void preload_stop(void)
{
	if (preload_self->place)
		preload_tally_end();
	preload_be_indirect();
	__atomic_store_n(&preload_fresh.head, &nowhere, __ATOMIC_RELEASE);
}

__attribute__((constructor)) static void start(int nr, char **argv)
{
	process.started = true;
	process.late = preload_next_is_late();
	process.argv = nr > 0 && !process.late ? argv : NULL;
	if (process.late) /* what the environment says is of another time */
		__atomic_store_n(&preload_fresh.head, &nowhere, __ATOMIC_RELEASE);
	else
		preload_attach();
}

/* Runs after the program's atexit() functions. An exit that passes by here ends the recording of
 * the thread in _exit(), or where the kernel stops it. */
__attribute__((destructor)) static void stop(void)
{
	preload_flush_stdout();
	if (!process.sees_exit)
		preload_thread_end();
}

#ifndef PRELOAD_STATIC
/* AddressSanitizer as a library refuses to start behind another one. It bears us: we replace no
 * allocation. (A program's own function of this name is asked instead.) */
const char *__asan_default_options(void);
PRELOAD_EXPORT const char *__asan_default_options(void)
{
	return "verify_asan_link_order=0";
}
#endif

/* ---- blocks ---------------------------------------------------------------------------------- */

static struct ring_block *preload_take_block(struct ring_head *head)
{
	/* always the lowest: few blocks stay warm in the caches, instead of all in turn */
	const uint32_t nr_blocks = preload_ring.nr_blocks;
	struct ring_block *block = NULL;
	for (uint32_t word = 0; word < (nr_blocks + 63) / 64; word++) {
		uint64_t map = __atomic_load_n(&head->free_map[word], __ATOMIC_RELAXED);
		while (map) {
			uint32_t index = word * 64 + (uint32_t)__builtin_ctzll(map);
			if (index >= nr_blocks)
				break;
			if (!(block = preload_window_block(index)))
				return NULL;
			if (__atomic_compare_exchange_n(&head->free_map[word], &map,
				    map & (map - 1), false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
				return block;
		}
	}
	return NULL;
}

/* From the first line on, a signal handler finds no room and takes the slow path. */
void preload_block_finish(struct preload_thread *self)
{
	struct ring_block *block = self->block;
	self->end = NULL;
	self->kept_end = NULL;
	PRELOAD_BARRIER();
	self->block = NULL;
	if (!block)
		return;
	block->nr_words = (uint64_t)(self->cursor - block->word);
	__atomic_store_n(&block->state, RING_BLOCK_DONE, __ATOMIC_RELEASE);
}

void preload_poll_open(struct preload_thread *self)
{
	self->end = NULL;
	PRELOAD_BARRIER();
	self->poll.is_open = 1;
}

/* (Where a handler was in between the block is another one.) */
void preload_poll_close(struct preload_thread *self)
{
	self->poll.is_open = 0;
	self->poll.last_tsc = 0;
	PRELOAD_BARRIER();
	if (self->block)
		self->end = self->block->word + BLOCK_WORDS;
}

/* The time of the last one's end is what the program did nothing else before. */
void preload_poll_say_end(struct preload_thread *self)
{
	uint64_t tsc = self->poll.last_tsc;
	preload_poll_close(self);
	PRELOAD_RECORD_AT(tsc, mpi_return, self->poll.op, self->poll.site, 0);
}

static size_t preload_put_text(uint64_t *words, const char *text, size_t nr_bytes)
{
	memcpy(words, text, nr_bytes); /* the block was zero: it is padded already */
	return (nr_bytes + 7) / 8;
}

static size_t first_command(char *out)
{
	size_t n = 0;
	for (char *const *arg = process.argv; *arg && n < RING_TEXT_MAX; arg++) {
		size_t left = RING_TEXT_MAX - n, length = strnlen(*arg, left - 1) + 1;
		memcpy(out + n, *arg, length - 1);
		n += length;
		out[n - 1] = '\0';
	}
	return n;
}

/* The arguments, each ended by NUL. A program may have written others over them since it began. */
static size_t command_line(char *out)
{
	long nr_bytes = 0;
	if (process.argv && !process.forked)
		return first_command(out);
	long fd = preload_syscall(
		SYS_openat, AT_FDCWD, (long)"/proc/self/cmdline", O_RDONLY | O_CLOEXEC, 0, 0, 0);
	if (fd >= 0) {
		nr_bytes = preload_syscall(SYS_read, fd, (long)out, RING_TEXT_MAX, 0, 0, 0);
		preload_syscall(SYS_close, fd, 0, 0, 0, 0, 0);
	}
	while (nr_bytes > 1 && !out[nr_bytes - 1] && !out[nr_bytes - 2])
		nr_bytes--; /* (what a title of the program's own has left of them) */
	return nr_bytes < 0 ? 0 : (size_t)nr_bytes;
}

/* RING_image and process_begin, straight into the image's first block. */
static uint64_t *introduce_image(uint64_t *at, uint64_t token)
{
	char command[RING_TEXT_MAX];
	size_t nr_bytes = command_line(command);
	at[1] = (uint64_t)preload_syscall(SYS_getppid, 0, 0, 0, 0, 0, 0);
	at[2] = nr_bytes;
	size_t nr_words = 3 + preload_put_text(at + 3, command, nr_bytes);
	preload_publish(at, RING_image, preload_now());
	at += nr_words;
	at[1] = token;
	preload_publish(at, PRELOAD_process_begin, preload_now());
	return at + 2;
}

/*
 * A new block for this thread; at the thread's beginning its first records too. The cursor is set
 * last, with no room before it, so that a signal handler at any point here ends up in the slow
 * path, where `busy` stops it.
 */
static bool start_block(struct preload_thread *self, struct ring_head *head, bool *ret_introduced)
{
	struct ring_block *block = preload_take_block(head);
	if (!block)
		return false;
	/* A read lets the kernel map the pages that there are, all between two multiples of 64 KiB
	 * at once, of which a block may meet two; a write only its own. */
	(void)__atomic_load_n(&block->word[0], __ATOMIC_RELAXED);
	(void)__atomic_load_n(&block->word[BLOCK_WORDS - 1], __ATOMIC_RELAXED);
	bool is_new = self->number == 0;
	if (is_new) {
		self->image = preload_fresh.image;
		self->number = __atomic_add_fetch(&preload_fresh.next_thread, 1, __ATOMIC_RELAXED);
		self->ids = ids_outside(head);
	}
	block->ids = self->ids;
	block->pid = self->pid;
	block->tid = self->tid;
	block->image = self->image;
	block->parent_image = process.parent_image;
	block->sequence = self->sequence++;
	block->thread = self->number;
	__atomic_store_n(&block->state, RING_BLOCK_ACTIVE, __ATOMIC_RELEASE);

	uint64_t *at = block->word;
	if (is_new) {
		uint64_t token = self->token;
		if (!__atomic_exchange_n(&preload_fresh.introduced, 1, __ATOMIC_RELAXED)) {
			*ret_introduced = true;
			at = introduce_image(at, token);
			token = 0;
		}
		at[1] = token;
		at[2] = self == preload_self ? (uint64_t)pthread_self() : 0;
		at[3] = self->start_site;
		preload_publish(at, PRELOAD_thread_begin, preload_now());
		at += 4;
	}
	if (self->lost) {
		at[1] = self->lost;
		preload_publish(at, RING_lost, preload_now());
		at += 2;
		self->lost = 0;
	}
	self->block = block;
	self->cursor = at;
	PRELOAD_BARRIER();
	self->end = block->word + BLOCK_WORDS;
	return true;
}

/* Are we in the child of a vfork, on the parent's stack and TLS? If we are the parent again, go on
 * as before. */
PRELOAD_COLD bool preload_is_vfork_child(void)
{
	struct preload_thread *self = preload_self;
	if (!self->in_vfork)
		return false;
	if ((uint32_t)preload_syscall(SYS_getpid, 0, 0, 0, 0, 0, 0) != self->pid)
		return true;
	self->in_vfork = 0;
	self->end = self->kept_end;
	return false;
}

/* What a vfork's child says of itself, in the name of its parent, which waits and then finds the
 * cursor moved. In the child nothing else writes (its handlers find no room), and where the block
 * is full this is not said either. */
static void vfork_child_says(unsigned kind, const uint64_t *words, size_t nr_words)
{
	struct preload_thread *self = preload_self;
	uint64_t *record = self->cursor;
	if (!self->block || (uintptr_t)(record + 1 + nr_words) > (uintptr_t)self->kept_end ||
		self->busy || !preload_on())
		return;
	self->cursor = record + 1 + nr_words;
	PRELOAD_BARRIER();
	memcpy(record + 1, words, nr_words * sizeof *words);
	preload_publish(record, kind, preload_now());
}

void preload_vfork_executes(void)
{
	if (preload_is_vfork_child())
		vfork_child_says(PRELOAD_process_fork, PRELOAD_WORDS(0, preload_self->vfork_site));
}

void preload_vfork_goes_on(void)
{
	if (preload_is_vfork_child())
		vfork_child_says(PRELOAD_process_vfork, PRELOAD_WORDS(preload_self->vfork_site));
}

static uint64_t *reserve_busy(
	struct preload_thread *self, struct ring_head *head, size_t nr_words, bool *ret_introduced)
{
	for (;;) {
		uint64_t *from = self->cursor;
		if (self->block && (uintptr_t)(from + nr_words) <= (uintptr_t)self->end) {
			uint64_t *expected = from;
			if (__atomic_compare_exchange_n(&self->cursor, &expected, from + nr_words,
				    false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
				return from;
			continue; /* a handler took the words */
		}
		preload_block_finish(self);
		if (self->retry_tsc && preload_now() < self->retry_tsc)
			return NULL;
		if (!start_block(self, head, ret_introduced)) {
			self->retry_tsc = preload_now() + RETRY_TICKS;
			return NULL;
		}
		self->retry_tsc = 0;
	}
}

PRELOAD_COLD uint64_t *preload_reserve_slow(size_t nr_words)
{
	struct ring_head *head = preload_fresh.head;
	if (!head)
		return NULL;
	struct preload_thread *self = preload_own();
	bool introduced = false;
	if (self->ended || preload_is_vfork_child())
		return NULL;
	if (self->busy || nr_words > BLOCK_WORDS - 8) {
		__atomic_fetch_add(&head->nested_dropped, 1, __ATOMIC_RELAXED);
		return NULL;
	}
	if (PRELOAD_RARE(self->before.is_open))
		preload_self_say_end(self);
	if (PRELOAD_RARE(self->poll.is_open))
		preload_poll_say_end(self);
	self->busy = 1;
	PRELOAD_BARRIER();
	uint64_t *record = reserve_busy(self, head, nr_words, &introduced);
	if (!record) {
		self->lost++;
		__atomic_fetch_add(&head->lost_records, 1, __ATOMIC_RELAXED);
	}
	PRELOAD_BARRIER();
	self->busy = 0;
	if (introduced && !process.forked)
		preload_modules_scan();
	return record;
}

/* ---- a process that ran already (late.c) ----------------------------------------------------- */

/* What was told in an earlier recording (names of places, of locks) is known by the image that it
 * was told in: no two recordings of a process have the same. */
static void preload_next_image(struct ring_head *head)
{
	uint32_t next = 0;
	while (next < process.image &&
		!__atomic_compare_exchange_n(&head->next_image, &next, process.image, false,
			__ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
	}
}

struct ring_head *preload_join(const char *ring)
{
	if (!process.late || process.mapped)
		return NULL;
	preload_real_find_all();
	struct ring_head *head = map_ring(ring, handover_open_given);
	if (!head)
		return NULL;
	prepare_process();
	preload_stop(); /* until all is ready */
	preload_fresh.attaching = preload_fresh.introduced = preload_fresh.fd_end = 0;
	preload_fresh.next_thread = 0;
	if (process.image)
		memset(preload_fresh.fd, 0,
			sizeof preload_fresh - offsetof(struct preload_fresh, fd));
	preload_next_image(head);
	process.image = 0; /* it is no fork's child, whatever it was before */
	begin_image(head);
	process.mapped = head;
	return head;
}

void preload_joined(struct ring_head *head)
{
	preload_set_direct(head);
	__atomic_store_n(&preload_fresh.head, head, __ATOMIC_RELEASE);
}

void preload_leave(void)
{
	preload_stop();
	preload_self_leave_all();
	process.mapped = NULL;
	preload_window_end();
}

/* `other` is in a call since before. */
static void say_before(struct preload_thread *place, const struct preload_before *before)
{
	uint64_t object = before->fd < 0 ? 0 : preload_fd_object(before->fd);
	if (before->is_ours)
		return;
	place->before.is_open = before->sleeps || object || before->futex;
	place->before.sleeps = before->sleeps;
	place->before.object = object;
	place->before.op = (uint8_t)before->op;
	place->before.bytes = before->nr_bytes;
	place->before.futex = before->futex;
	if (before->sleeps)
		PRELOAD_RECORD(sleep_begin, 0, before->site);
	if (object)
		PRELOAD_RECORD(io_begin, object, before->op, before->nr_bytes, before->site);
}

/* Its first block is written here, by a thread of ours, and ended: its own records come in the
 * next. */
void preload_introduce(struct ring_head *head, uint32_t tid, const char *name, size_t name_bytes,
	const struct preload_before *before)
{
	struct preload_thread other = {.tid = tid};
	uint32_t own_tid;
	bool introduced = false;
	preload_sandbox_ids(&other.pid, &own_tid);
	struct preload_thread *place = preload_self_reserve(tid);
	if (!place || !start_block(&other, head, &introduced))
		return;
	preload_self = &other;
	if (introduced) {
		preload_joined(head); /* (nobody is led to us yet) */
		preload_modules_forget();
		preload_modules_scan();
	}
	preload_record_text(RING_thread_name, PRELOAD_WORDS(name_bytes), name, name_bytes);
	say_before(place, before);
	preload_block_finish(&other);
	preload_self = &preload_ended;
	preload_self_begin(place, &other);
}

/* ---- threads --------------------------------------------------------------------------------- */

uint64_t preload_token(void)
{
	uint64_t count = __atomic_add_fetch(&preload_fresh.next_token, 1, __ATOMIC_RELAXED);
	return (uint64_t)preload_fresh.image << 32 | (count & UINT32_MAX);
}

void preload_thread_begin(void)
{
	if (preload_on() && !preload_self->number)
		preload_reserve_slow(0);
}

/* After this the thread records nothing: only the destructors of others can still call us. */
void preload_thread_end(void)
{
	struct preload_thread *self = preload_self;
	if (!preload_active() || self->ended || self->image != preload_fresh.image)
		return;
	preload_tally_end();
	preload_record_at(preload_now(), PRELOAD_thread_end, NULL, 0);
	self->busy = 1;
	PRELOAD_BARRIER();
	preload_block_finish(self);
	PRELOAD_BARRIER();
	self->ended = 1;
	self->busy = 0;
}

/* The core is in libraries that count and in one that records: what the one has, the other lacks.
 */
__attribute__((weak)) void preload_tally_end(void)
{
}
__attribute__((weak)) uint64_t preload_fd_object(int fd)
{
	(void)fd;
	return 0;
}
__attribute__((weak)) void preload_flush_stdout(void)
{
}
__attribute__((weak)) void preload_omp_loaded(void)
{
}
__attribute__((weak)) bool preload_mpi_meets(struct dl_phdr_info *info)
{
	(void)info;
	return false;
}
__attribute__((weak)) void preload_mpi_loaded(void)
{
}

__attribute__((weak)) struct preload_python preload_python PRELOAD_EARLY;
__attribute__((weak)) void preload_python_meets(const struct dl_phdr_info *info)
{
	(void)info;
}
__attribute__((weak)) uintptr_t preload_python_site(uintptr_t caller)
{
	return caller;
}
__attribute__((weak)) bool preload_python_is_own(uintptr_t code)
{
	(void)code;
	return false;
}
__attribute__((weak)) size_t preload_python_frames(uint64_t *to, size_t max)
{
	(void)to, (void)max;
	return 0;
}

__attribute__((weak)) void preload_python_made(volatile void *semaphore, uintptr_t caller)
{
	(void)semaphore, (void)caller;
}
__attribute__((weak)) uint64_t preload_python_life(const volatile void *semaphore)
{
	(void)semaphore;
	return 0;
}
__attribute__((weak)) bool preload_gil_is_mutex(const volatile void *mutex)
{
	(void)mutex;
	return false;
}
__attribute__((weak)) bool preload_gil_waits(const volatile void *cond, uintptr_t caller)
{
	(void)cond, (void)caller;
	return false;
}
__attribute__((weak)) void preload_gil_waited(const volatile void *cond)
{
	(void)cond;
}
__attribute__((weak)) bool preload_gil_signals(const volatile void *cond, uintptr_t caller)
{
	(void)cond, (void)caller;
	return false;
}

__attribute__((weak)) void preload_python_polls(void)
{
}
/* (got.c is x86-64's) */
__attribute__((weak)) bool preload_got_lead_names(uintptr_t bias, const ElfW(Phdr) * segment,
	size_t nr_segments, const struct preload_got_name *names, size_t nr_names)
{
	(void)bias, (void)segment, (void)nr_segments, (void)names, (void)nr_names;
	return false;
}

__attribute__((weak)) struct preload_java preload_java PRELOAD_EARLY;
__attribute__((weak)) void preload_java_meets(const struct dl_phdr_info *info)
{
	(void)info;
}
__attribute__((weak)) bool preload_java_is_own(uintptr_t code)
{
	(void)code;
	return false;
}
__attribute__((weak)) bool preload_java_waits(const volatile void *cond, uintptr_t caller)
{
	(void)cond, (void)caller;
	return false;
}
__attribute__((weak)) void preload_java_waited(const volatile void *cond, int result)
{
	(void)cond, (void)result;
}
__attribute__((weak)) bool preload_java_signals(const volatile void *cond, uintptr_t caller)
{
	(void)cond, (void)caller;
	return false;
}
__attribute__((weak)) uintptr_t preload_java_start(uintptr_t caller)
{
	(void)caller;
	return 0;
}
__attribute__((weak)) void preload_java_named(const char *name)
{
	(void)name;
}
__attribute__((weak)) uint64_t preload_java_futex(uint64_t object)
{
	return object;
}

__attribute__((weak)) struct preload_node preload_node PRELOAD_EARLY;
__attribute__((weak)) void preload_node_meets(const struct dl_phdr_info *info)
{
	(void)info;
}
__attribute__((weak)) void preload_node_calls(void)
{
}

/* ---- records with a text --------------------------------------------------------------------- */

void preload_record_text(
	unsigned kind, const uint64_t *words, size_t nr_words, const char *text, size_t text_bytes)
{
	uint64_t tsc = preload_now();
	uint64_t *record = preload_reserve(1 + nr_words + (text_bytes + 7) / 8);
	if (!record)
		return;
	memcpy(record + 1, words, nr_words * sizeof *words);
	preload_put_text(record + 1 + nr_words, text, text_bytes);
	preload_publish(record, kind, tsc);
}
