/* SPDX-License-Identifier: Apache-2.0 */
/* ring.c - the ring's file and blocks, from the reader's side. */
#include "session/ring.h"
#include "os/proc.h"
#include "os/clock.h"
#include "record/affinity.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

enum {
	PAGE_BYTES = 4096,
	BURY_EVERY_NS = 200000000,
	WARM_NS = 2000000, /* between two blocks */
	STUCK_TICKS = 8,   /* how long a thread's missing block is waited for */
	HELD_MOST = 256,   /* blocks: 8 MiB */
	ENDED_MOST = 256,  /* threads with unread blocks */
};

/* ---- the file -------------------------------------------------------------------------------- */

/* A sparse file that cannot get its pages kills whoever writes to it: leave room. 0: errno says why
 * there is none. */
static size_t fitting(const char *dir, size_t size_bytes)
{
	struct statvfs st;
	if (statvfs(dir, &st))
		return 0;
	uint64_t half = (uint64_t)st.f_bavail * st.f_frsize / 2;
	errno = ENOSPC;
	if (half < SESSION_RING_BYTES_MIN)
		return 0;
	return half < size_bytes ? (size_t)half : size_bytes;
}

/* -1: errno is of the first place that there is. */
static int ring_create_file(struct session_ring *r, size_t *size_bytes)
{
	const char *dir[SESSION_PLACE_DIRS];
	int why = ENOENT;
	session_place_dirs(dir);
	for (size_t i = 0; i < SESSION_PLACE_DIRS; i++) {
		size_t fit = fitting(dir[i], *size_bytes);
		bool made = fit && session_place_open(&r->place, dir[i]);
		int fd = made ? session_place_file(&r->place, SESSION_RING_FILE, r->path) : -1;
		if (fd >= 0) {
			*size_bytes = fit;
			return fd;
		}
		why = why == ENOENT ? errno : why;
		if (made)
			session_place_close(&r->place);
	}
	errno = why;
	return -1;
}

static size_t head_bytes(size_t nr_blocks)
{
	size_t bytes = sizeof(struct ring_head) + (nr_blocks + 63) / 64 * 8;
	return (bytes + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
}

/* Is our number in /proc the one that we know? */
static bool proc_is_ours(void)
{
	char text[32] = "";
	ssize_t n = readlink("/proc/self", text, sizeof text - 1);
	text[n > 0 ? n : 0] = 0;
	return strtol(text, NULL, 10) == getpid();
}

static uint32_t own_filters(void)
{
	char text[4096];
	(void)os_read_file("/proc/self/status", text, sizeof text);
	return ring_filters_in(text);
}

static void init_head(struct session_ring *r, unsigned stack_depth, uint64_t tsc_origin)
{
	struct stat ns = {.st_ino = 0}, proc = {.st_dev = 0};
	bool sees_itself =
		proc_is_ours() && !stat("/proc/self/ns/pid", &ns) && !stat("/proc", &proc);
	*r->head = (struct ring_head){.version = RING_VERSION,
		.block_bytes = RING_BLOCK_BYTES,
		.nr_blocks = r->nr_blocks,
		.tsc_origin = tsc_origin,
		.stack_depth_max = stack_depth < RING_STACK_MAX ? stack_depth : RING_STACK_MAX,
		.filters = own_filters(),
		.pid_ns = sees_itself ? ns.st_ino : 0,
		.proc_dev = sees_itself ? proc.st_dev : 0,
		.affinity_bytes = record_affinity_bytes()};
	for (uint32_t i = 0; i < r->nr_blocks; i++)
		r->head->free_map[i / 64] |= 1ull << i % 64;
	__atomic_store_n(&r->head->magic, RING_MAGIC, __ATOMIC_RELEASE);
}

enum base_status session_ring_create(struct session_ring *r, size_t size_bytes,
	unsigned stack_depth, uint64_t tsc_origin, struct base_err *err)
{
	enum base_status status = BASE_OK;
	void *map = MAP_FAILED;
	memset(r, 0, sizeof *r);
	r->place.fd = r->place.session_fd = -1;
	int fd = r->fd = ring_create_file(r, &size_bytes);
	if (fd < 0)
		return base_fail_errno(err, errno,
			"cannot make the recorder's buffer (1 MiB or more) in /dev/shm, $TMPDIR or "
			"/tmp");
	size_t nr = size_bytes / RING_BLOCK_BYTES;
	r->nr_blocks = nr < SESSION_RING_BLOCKS_MAX ? (uint32_t)nr : SESSION_RING_BLOCKS_MAX;
	r->size_bytes = head_bytes(r->nr_blocks) + (size_t)r->nr_blocks * RING_BLOCK_BYTES;
	bool in_memory = !strncmp(r->path, "/dev/shm/", 9);
	int refused = ftruncate(fd, (off_t)r->size_bytes) ? errno : 0;
	if (!refused && !in_memory) /* on a disk its space must be there before it is written */
		refused = posix_fallocate(fd, 0, (off_t)r->size_bytes);
	if (!refused) {
		map = mmap(NULL, r->size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		refused = map == MAP_FAILED ? errno : 0;
	}
	/* A process in another pid namespace learns it from this. */
	(void)fcntl(
		fd, F_SETLK, &(struct flock){.l_type = F_RDLCK, .l_whence = SEEK_SET, .l_len = 1});
	if (refused) {
		close(fd);
		status = base_fail_errno(
			err, refused, "cannot make the recorder's buffer %s", r->path);
		goto out;
	}
	r->head = map;
	r->blocks = (uint8_t *)map + head_bytes(r->nr_blocks);
	r->block = base_alloc(r->nr_blocks * sizeof *r->block);
	if (!r->block) {
		status = base_fail(err, BASE_ERR_NOMEM, "no memory for the recorder's buffer");
		goto out;
	}
	init_head(r, stack_depth, tsc_origin);
out:
	if (status != BASE_OK)
		session_ring_destroy(r);
	return status;
}

enum base_status session_ring_open(
	struct session_ring *r, int fd, const char *name, struct base_err *err)
{
	struct ring_head head;
	struct stat st;
	memset(r, 0, sizeof *r);
	r->place.fd = r->place.session_fd = -1;
	if (fstat(fd, &st))
		return base_fail_errno(err, errno, "%s", name);
	if (!S_ISREG(st.st_mode) || pread(fd, &head, sizeof head, 0) != (ssize_t)sizeof head ||
		head.magic != RING_MAGIC)
		return base_fail(err, BASE_ERR_CORRUPT, "%s is no buffer of a recorder", name);
	if (head.version != RING_VERSION)
		return base_fail(err, BASE_ERR_VERSION,
			"%s was left by another version of longpole (layout %u, this one reads %d)",
			name, head.version, (int)RING_VERSION);
	if (!ring_layout_fits(&head, (uint64_t)st.st_size) ||
		head.nr_blocks > SESSION_RING_BLOCKS_MAX)
		return base_fail(err, BASE_ERR_CORRUPT,
			"%s is damaged: its %llu {byte|bytes} are not what its head says", name,
			(unsigned long long)st.st_size);
	r->nr_blocks = head.nr_blocks;
	r->size_bytes = (size_t)st.st_size;
	r->block = base_alloc(r->nr_blocks * sizeof *r->block);
	if (!r->block)
		return base_fail(err, BASE_ERR_NOMEM, "no memory for %s", name);
	void *map = mmap(NULL, r->size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED) {
		int why = errno;
		session_ring_destroy(r);
		return base_fail_errno(err, why, "%s", name);
	}
	r->head = map;
	r->blocks = (uint8_t *)map + head_bytes(r->nr_blocks);
	return BASE_OK;
}

static void warm(struct session_ring *r, uint32_t nr_blocks, uint64_t span_ns)
{
	enum { STEP_BLOCKS = 8 };
	uint64_t begin_ns = os_time_ns(CLOCK_MONOTONIC);
	while (r->nr_warm < nr_blocks && os_time_ns(CLOCK_MONOTONIC) - begin_ns < span_ns) {
		uint32_t left = nr_blocks - r->nr_warm;
		uint32_t step = left < STEP_BLOCKS ? left : STEP_BLOCKS;
		if (madvise(session_ring_block(r, r->nr_warm), (size_t)step * RING_BLOCK_BYTES,
			    MADV_POPULATE_WRITE))  /* before Linux 5.14, or no memory */
			r->nr_warm = r->nr_blocks; /* they come when they are needed */
		else
			r->nr_warm += step;
	}
}

void session_ring_warm_up(struct session_ring *r, uint64_t span_ns)
{
	uint32_t most = SESSION_RING_WARM_BYTES / RING_BLOCK_BYTES;
	warm(r, most < r->nr_blocks / 4 ? most : r->nr_blocks / 4, span_ns);
}

static void look_how_far(struct session_ring *r)
{
	uint32_t nr_words = (r->nr_blocks + 63) / 64;
	for (uint32_t word = r->nr_reached / 64; word < nr_words; word++) {
		uint64_t taken = ~__atomic_load_n(&r->head->free_map[word], __ATOMIC_RELAXED);
		if (!taken)
			return;
		uint32_t end = word * 64 + 64 - (uint32_t)__builtin_clzll(taken);
		end = end < r->nr_blocks ? end : r->nr_blocks; /* what is beyond is no block */
		r->nr_reached = end > r->nr_reached ? end : r->nr_reached;
	}
}

/* The program may take as much again until the next look, and that may come late. */
bool session_ring_warm_ahead(struct session_ring *r, uint64_t span_ns)
{
	uint32_t before = r->nr_reached;
	look_how_far(r);
	uint32_t step = r->nr_reached - before,
		 most = SESSION_RING_AHEAD_MOST_BYTES / RING_BLOCK_BYTES;
	r->step_most = step > r->step_most ? step : r->step_most;
	uint64_t ahead = SESSION_RING_AHEAD_BYTES / RING_BLOCK_BYTES + 2 * (uint64_t)r->step_most;
	uint64_t end = r->nr_reached + (ahead < most ? ahead : most);
	if (r->nr_warm < r->nr_reached) /* the program was there before us */
		r->nr_warm = r->nr_reached;
	end = end < r->nr_blocks ? end : r->nr_blocks;
	warm(r, (uint32_t)end, span_ns);
	return r->nr_warm >= end;
}

bool session_ring_was_cut(const struct session_ring *r)
{
	struct stat st;
	return !stat(r->path, &st) && (uint64_t)st.st_size < r->size_bytes;
}

void session_ring_destroy(struct session_ring *r)
{
	session_place_close(&r->place);
	if (r->head) {
		munmap(r->head, r->size_bytes);
		close(r->fd);
	}
	base_free(r->block);
	base_free(r->listed);
	base_free(r->held);
	memset(r, 0, sizeof *r);
}

struct ring_block *session_ring_block(const struct session_ring *r, uint32_t block)
{
	return (struct ring_block *)(void *)(r->blocks + (size_t)block * RING_BLOCK_BYTES);
}

/* ---- blocks that are kept for a checkpoint --------------------------------------------------- */

/* Blocks are used again: whose this one is. */
static uint32_t tag_of(const struct ring_block *b)
{
	uint64_t h = base_hash_u64(b->thread ^ (uint64_t)b->image << 40);
	return (uint32_t)base_hash_u64(h ^ b->sequence) | 1;
}

uint64_t session_ring_progress(const struct session_ring *r, uint32_t block)
{
	const struct session_block *at = &r->block[block];
	return at->known && at->cursor
		       ? at->cursor | (uint64_t)tag_of(session_ring_block(r, block)) << 32
		       : 0;
}

bool session_ring_hold(struct session_ring *r, void (*many_held)(void *ctx), void *ctx)
{
	r->many_held = many_held;
	r->many_held_ctx = ctx;
	r->held_most = r->nr_blocks / 8 < HELD_MOST ? r->nr_blocks / 8 : HELD_MOST;
	r->held = base_alloc(r->nr_blocks * sizeof *r->held);
	return r->held;
}

/* ---- finding blocks -------------------------------------------------------------------------- */

static bool list_thread(struct session_ring *r, struct record_thread *t)
{
	if (t->listed)
		return true;
	if (base_grow(&r->listed, &r->listed_capacity, r->nr_listed + 1, sizeof(void *)) != BASE_OK)
		return false;
	/* by (image, number): a parent's records before its fork come before its child's */
	size_t at = r->nr_listed++;
	for (; at > 0; at--) {
		const struct record_thread *before = r->listed[at - 1];
		if (before->image->number < t->image->number ||
			(before->image->number == t->image->number && before->number < t->number))
			break;
		r->listed[at] = r->listed[at - 1];
	}
	r->listed[at] = t;
	t->listed = true;
	return true;
}

static void ring_find_block(struct session_ring *r, uint32_t i)
{
	struct ring_block *b = session_ring_block(r, i);
	uint32_t state = __atomic_load_n(&b->state, __ATOMIC_ACQUIRE);
	if (state != RING_BLOCK_ACTIVE && state != RING_BLOCK_DONE)
		return; /* being handed out */
	struct record_thread *t = record_converter_thread_of(
		r->converter, b->image, b->parent_image, b->pid, b->tid, b->ids, b->thread);
	r->block[i] = (struct session_block){.known = true};
	if (r->read_before && tag_of(b) == (uint32_t)(r->read_before[i] >> 32))
		r->block[i].cursor = (uint32_t)r->read_before[i];
	if (!t) {
		r->block[i].skipped = true;
		r->converter->nr_damaged_blocks++;
		return;
	}
	if (base_grow(&t->block, &t->block_capacity, t->nr_blocks + 1, sizeof *t->block) !=
			BASE_OK ||
		!list_thread(r, t)) {
		record_sink_fail(
			&r->converter->sink, BASE_ERR_NOMEM, "no memory for one more block");
		return;
	}
	size_t at = t->nr_blocks++;
	for (; at > 0 && session_ring_block(r, t->block[at - 1])->sequence > b->sequence; at--)
		t->block[at] = t->block[at - 1];
	t->block[at] = i;
}

static bool of_one_image(const struct session_ring *r)
{
	for (size_t i = 1; i < r->nr_listed; i++)
		if (r->listed[i]->image != r->listed[0]->image)
			return false;
	return true;
}

static void find_blocks(struct session_ring *r)
{
	uint32_t used = 0;
	for (uint32_t first = 0; first < r->nr_blocks; first += 64) {
		uint64_t taken = ~__atomic_load_n(&r->head->free_map[first / 64], __ATOMIC_ACQUIRE);
		for (; taken; taken &= taken - 1) {
			uint32_t i = first + (uint32_t)__builtin_ctzll(taken);
			if (i >= r->nr_blocks)
				break;
			used++;
			if (!r->block[i].known)
				ring_find_block(r, i);
		}
	}
	r->nr_used = used;
}

static void ring_give_back(struct session_ring *r, uint32_t i)
{
	struct ring_block *b = session_ring_block(r, i);
	memset(b, 0, RING_BLOCK_BYTES);
	r->block[i] = (struct session_block){0};
	__atomic_store_n(&b->state, RING_BLOCK_FREE, __ATOMIC_RELEASE);
	__atomic_fetch_or(&r->head->free_map[i / 64], 1ull << i % 64, __ATOMIC_RELEASE);
	r->nr_used -= r->nr_used > 0; /* the bitmap is shared */
}

void session_ring_give_back_held(struct session_ring *r)
{
	for (uint32_t i = 0; i < r->nr_held; i++)
		ring_give_back(r, r->held[i]);
	r->nr_held = 0;
}

/* ---- reading --------------------------------------------------------------------------------- */

static bool is_low(const struct session_ring *r)
{
	return r->nr_used > r->nr_blocks - r->nr_blocks / 4;
}

static void forget_first(struct record_thread *t)
{
	t->nr_blocks--;
	memmove(t->block, t->block + 1, t->nr_blocks * sizeof *t->block);
	t->stuck_ticks = 0;
}

/* The block is read to its end, or as far as it makes sense. */
static void finish_block(struct session_ring *r, struct record_thread *t, bool done)
{
	uint32_t i = t->block[0];
	t->next_sequence = session_ring_block(r, i)->sequence + 1;
	forget_first(t);
	/* A block whose owner may still write is never given back; a dead owner's only when they
	 * are few, because who seems dead may be alive in another pid namespace. */
	if (!done && !(t->dead && is_low(r)))
		r->block[i].skipped = true;
	else if (r->held)
		r->held[r->nr_held++] = i;
	else
		ring_give_back(r, i);
}

static bool ring_is_done(const struct session_ring *r, uint32_t i)
{
	return __atomic_load_n(&session_ring_block(r, i)->state, __ATOMIC_ACQUIRE) ==
	       RING_BLOCK_DONE;
}

/* True: the first block is finished, go on with the next one. */
static bool drain_block(struct session_ring *r, struct record_thread *t)
{
	uint32_t i = t->block[0];
	struct session_block *state = &r->block[i];
	struct ring_block *b = session_ring_block(r, i);
	bool done = ring_is_done(r, i), patient = !r->final && t->stuck_ticks < STUCK_TICKS;
	enum record_stop stop;

	if (b->sequence != t->next_sequence && patient) {
		t->stuck_ticks++;
		return false; /* taken after the one before it was, but seen sooner */
	}
	const uint64_t nr_words = __atomic_load_n(&b->nr_words, __ATOMIC_RELAXED); /* once */
	const uint64_t nr = done && nr_words < SESSION_RING_WORDS ? nr_words : SESSION_RING_WORDS;
	state->cursor = (uint32_t)record_convert(
		r->converter, t, b->word, state->cursor, (size_t)nr, r->horizon, r->limit, &stop);
	if (stop == RECORD_STOP_horizon)
		return false;
	if (stop == RECORD_STOP_damaged) {
		r->converter->nr_damaged_blocks++;
	} else if (!done) {
		if (!t->dead && !r->final && (t->nr_blocks < 2 || ++t->stuck_ticks < STUCK_TICKS))
			return false; /* still being filled */
	} else if (stop == RECORD_STOP_zero) {
		/* A record still being written by a frame that a signal interrupted. */
		if (!t->dead && !r->final && (t->nr_blocks < 2 || !ring_is_done(r, t->block[1])))
			return false;
		r->converter->nested_lost++;
	}
	finish_block(r, t, done);
	return true;
}

/* Threads that died without a word: killed, or replaced by an exec. */
static void ring_bury(struct session_ring *r)
{
	uint64_t now_ns = os_time_ns(CLOCK_MONOTONIC);
	if (now_ns < r->bury_ns + BURY_EVERY_NS)
		return;
	r->bury_ns = now_ns;
	for (size_t i = 0; i < r->nr_listed; i++) {
		struct record_thread *t = r->listed[i];
		uint32_t newest = record_world_pid(&r->converter->world, t->pid);
		bool replaced = newest > t->image->number && newest < RECORD_IMAGES_MAX;
		t->dead =
			replaced || (t->tid < RECORD_PIDS_NOBODY && t->pid < RECORD_PIDS_NOBODY &&
					    syscall(SYS_tgkill, (pid_t)t->pid, (pid_t)t->tid, 0) &&
					    errno == ESRCH);
	}
}

static bool look_ahead(void *ctx, struct record_image *image)
{
	struct session_ring *r = ctx;
	if (image->prescan_tick == r->tick)
		return false;
	image->prescan_tick = r->tick;
	for (size_t i = 0; i < r->nr_listed; i++) {
		struct record_thread *t = r->listed[i];
		for (size_t j = 0; t->image == image && j < t->nr_blocks; j++)
			record_convert_introductions(r->converter, image,
				session_ring_block(r, t->block[j])->word,
				r->block[t->block[j]].cursor, SESSION_RING_WORDS);
	}
	return true;
}

/* Each thread that ended has a block, however little it wrote: those are not left lying. */
static bool many_ended(const struct session_ring *r)
{
	uint32_t nr = 0;
	for (size_t i = 0; r->nr_listed > ENDED_MOST && i < r->nr_listed; i++) {
		const struct record_thread *t = r->listed[i];
		nr += t->nr_blocks && ring_is_done(r, t->block[t->nr_blocks - 1]);
	}
	return nr > ENDED_MOST;
}

bool session_ring_can_wait(struct session_ring *r, struct record_converter *c)
{
	r->converter = c;
	find_blocks(r);
	return r->nr_used <= r->nr_blocks / 2 && of_one_image(r) && !many_ended(r);
}

void session_ring_drain(struct session_ring *r, struct record_converter *c, uint64_t horizon,
	uint64_t limit, bool final)
{
	r->converter = c;
	uint64_t read_ns =
		r->horizon == UINT64_MAX ? UINT64_MAX : os_clock_ns(c->clock, r->horizon);
	r->horizon = horizon;
	r->limit = limit;
	r->final = final;
	r->tick++;
	c->world.look_ahead = look_ahead;
	c->world.look_ahead_ctx = r;
	/* Of all threads what was before the last horizon has been read, and its samples, too. */
	record_world_forget_unloaded(&c->world, read_ns);
	ring_bury(r); /* before looking: what they wrote is all there */
	find_blocks(r);
	size_t kept = 0;
	for (size_t i = 0; i < r->nr_listed; i++) {
		struct record_thread *t = r->listed[i];
		while (t->nr_blocks && !record_sink_failed(&c->sink) && drain_block(r, t)) {
			if (r->nr_held > r->held_most)
				r->many_held(r->many_held_ctx);
			if (!final)
				(void)session_ring_warm_ahead(r, WARM_NS);
		}
		t->listed = t->nr_blocks > 0;
	}
	for (size_t i = 0; i < r->nr_listed; i++)
		if (r->listed[i]->listed)
			r->listed[kept++] = r->listed[i];
	r->nr_listed = kept;
	c->world.look_ahead = NULL;
}
