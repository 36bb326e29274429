/* SPDX-License-Identifier: Apache-2.0 */
/* memory.c - memory streams from the target's shared memory into the trace. */
#include "session/memory.h"
#include "ring/ring.h"
#include "record/words.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

enum {
	ENCODED_MAX = 4, /* chunks of a round: the wait for the program's end must not be long */
	WARM_BESIDE = 16 /* blocks that are in use when we encode beside the program */
};

/* ---- the file -------------------------------------------------------------------------------- */

/* (A file system that does not say how large it is has all it needs.) */
static bool memory_fits(int fd, uint64_t bytes)
{
	struct statvfs fs;
	return fstatvfs(fd, &fs) || !fs.f_blocks || fs.f_bavail * fs.f_frsize >= bytes;
}

static int memory_create_file(struct session_memory *m)
{
	const char *dir[SESSION_PLACE_DIRS];
	const uint64_t bytes = memory_ring_bytes(SESSION_MEMORY_BLOCKS);
	session_place_dirs(dir);
	for (size_t i = 0; i < SESSION_PLACE_DIRS; i++) {
		if (!session_place_open(&m->place, dir[i]))
			continue;
		int fd = session_place_file(&m->place, "memory", m->path);
		errno = fd < 0 ? errno : ENOSPC;
		if (fd >= 0 && memory_fits(fd, bytes) && !ftruncate(fd, (off_t)bytes) &&
			!(errno = posix_fallocate(fd, 0, MEMORY_RING_HEAD_BYTES)))
			return fd;
		int why = errno;
		if (fd >= 0)
			close(fd);
		session_place_close(&m->place);
		errno = why;
	}
	m->path[0] = 0;
	return -1;
}

int session_memory_make_pages(const void *memory)
{
	const struct session_memory *m = memory;
	const uint32_t nr =
		m->beside ? WARM_BESIDE : memory_ring_waiting_max(SESSION_MEMORY_BLOCKS);
	int fd = open(m->path, O_RDWR | O_CLOEXEC);
	int why = fd < 0 ? errno
			 : posix_fallocate(fd, 0, (off_t)memory_ring_bytes(SESSION_MEMORY_BLOCKS));
	if (fd >= 0)
		close(fd);
	if (!why && m->head->raw)
		(void)madvise(m->head, memory_ring_bytes(nr), MADV_POPULATE_WRITE);
	return why;
}

enum base_status session_memory_no_room(
	const struct session_memory *m, int why, struct base_err *err)
{
	return base_fail_errno(err, why ? why : ENOSPC,
		"cannot make %llu MiB of shared memory in %s",
		(unsigned long long)memory_ring_bytes(SESSION_MEMORY_BLOCKS) >> 20,
		m->path[0] ? m->path : "/dev/shm, $TMPDIR or /tmp");
}

enum base_status session_memory_create(struct session_memory *m, unsigned level, bool beside,
	unsigned long nr_processors, const struct session_memory_taker *taker, struct base_err *err)
{
	*m = (struct session_memory){.place = {.fd = -1, .session_fd = -1},
		.level = level,
		.beside = beside,
		.encodes = beside,
		.taker = taker};
	m->copy = base_alloc(MEMORY_RING_BLOCK_BYTES);
	m->words = record_words_new();
	if (!m->copy || !m->words)
		return base_fail(err, BASE_ERR_NOMEM, "no memory for memory streams");
	int fd = memory_create_file(m);
	if (fd < 0)
		return session_memory_no_room(m, errno, err);
	void *p = mmap(NULL, memory_ring_bytes(SESSION_MEMORY_BLOCKS), PROT_READ | PROT_WRITE,
		MAP_SHARED, fd, 0);
	int why = errno;
	close(fd);
	if (p == MAP_FAILED)
		return base_fail_errno(err, why, "cannot map %s", m->path);
	m->head = m->mapped = p;
	m->head->version = MEMORY_RING_VERSION;
	m->head->nr_blocks = SESSION_MEMORY_BLOCKS;
	m->head->reader_pid = (uint32_t)getpid();
	m->head->live = taker != NULL;
	/* (To work beside threads that take turns pays if they leave a processor idle.) */
	if (!taker && (!beside || nr_processors > 1))
		m->head->raw = memory_ring_waiting_max(SESSION_MEMORY_BLOCKS);
	m->head->recording = 1;
	__atomic_store_n(&m->head->magic, MEMORY_RING_MAGIC, __ATOMIC_RELEASE);
	return BASE_OK;
}

static void *remove_file(void *arg)
{
	struct session_memory *m = arg;
	if (m->mapped)
		munmap(m->mapped, memory_ring_bytes(SESSION_MEMORY_BLOCKS));
	session_place_close(&m->place);
	return NULL;
}

void session_memory_remove(struct session_memory *m)
{
	if (!m->head)
		return;
	__atomic_store_n(&m->head->recording, 0, __ATOMIC_RELEASE);
	m->head = NULL;
	m->removes = !pthread_create(&m->remover, NULL, remove_file, m);
}

void session_memory_destroy(struct session_memory *m)
{
	session_memory_remove(m);
	if (m->removes)
		pthread_join(m->remover, NULL);
	else
		(void)remove_file(m);
	base_free(m->stream);
	base_free(m->copy);
	for (unsigned i = 0; i < SESSION_MEMORY_GROWING; i++)
		record_coder_free(m->growing[i].coder);
	record_words_free(m->words);
	*m = (struct session_memory){0};
}

/* ---- streams --------------------------------------------------------------------------------- */

static const struct record_thread *records_of(
	const struct record_converter *c, uint32_t pid, uint32_t tid)
{
	for (size_t i = c->nr_threads; i-- > 0;)
		if (c->thread[i]->own_pid == pid && c->thread[i]->own_tid == tid &&
			c->thread[i]->stream)
			return c->thread[i];
	return NULL;
}

static void memory_define(struct session_memory *m, struct record_converter *c,
	struct session_memory_stream *s, bool again)
{
	const struct record_thread *t = s->thread ? records_of(c, s->pid, s->tid) : NULL;
	if (again && (!t || s->linked))
		return;
	s->linked = t != NULL;
	record_sink_put(&c->sink, &(struct trace_record){.kind = TRACE_memory_stream,
					  .u.memory_stream = {.memory_stream = s->definition,
						  .stream = s->stream,
						  .thread = t ? t->stream : 0,
						  .level = m->level,
						  .origin_ticks = c->clock->tsc_origin,
						  .factor = c->clock->factor}});
}

static struct session_memory_stream *memory_stream_of(
	struct session_memory *m, struct record_converter *c, const struct memory_chunk_head *h)
{
	for (size_t i = m->nr_streams; i-- > 0;)
		if (m->stream[i].image == h->image && m->stream[i].thread == h->thread)
			return &m->stream[i];
	if (base_grow(&m->stream, &m->streams_capacity, m->nr_streams + 1, sizeof *m->stream) !=
		BASE_OK)
		return NULL;
	struct session_memory_stream *s = &m->stream[m->nr_streams];
	*s = (struct session_memory_stream){.image = h->image,
		.thread = h->thread,
		.pid = h->pid,
		.tid = h->tid,
		.definition = ++m->nr_definitions,
		.stream = record_sink_stream(&c->sink, 0, h->tid, 0)};
	if (!s->stream)
		return NULL;
	m->nr_streams++;
	memory_define(m, c, s, false);
	return s;
}

/* ---- chunks ---------------------------------------------------------------------------------- */

static const uint8_t *memory_block_at(const struct session_memory *m, uint32_t i)
{
	return (const uint8_t *)m->head + MEMORY_RING_HEAD_BYTES +
	       (uint64_t)i * MEMORY_RING_BLOCK_BYTES;
}

static bool head_makes_sense(const struct memory_chunk_head *h)
{
	bool known = h->type == MEMORY_CHUNK_TABLE || h->type == MEMORY_CHUNK_STREAM ||
		     h->type == MEMORY_RING_RAW;
	return h->magic == MEMORY_CHUNK_MAGIC && memory_stream_known(h->version) && known &&
	       h->bytes >= sizeof *h && h->bytes <= MEMORY_RING_BLOCK_BYTES &&
	       h->last_ticks >= h->first_ticks;
}

static uint64_t memory_ns_of(const struct record_converter *c, uint64_t ticks)
{
	uint64_t origin = c->clock->tsc_origin;
	return ticks > origin ? os_clock_ns(c->clock, ticks - origin) : 0;
}

static void memory_give_back(struct session_memory *m, uint32_t block)
{
	__atomic_store_n(&m->head->state[block], MEMORY_RING_FREE, __ATOMIC_RELEASE);
	__atomic_fetch_add(&m->head->freed, 1, __ATOMIC_ACQ_REL);
	if (__atomic_load_n(&m->head->waiters, __ATOMIC_ACQUIRE))
		(void)syscall(SYS_futex, &m->head->freed, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

/* (A reader beside us gives all back at once: memory_pass_on().) */
static void give_back_now(struct session_memory *m, uint32_t block)
{
	if (!m->taker)
		memory_give_back(m, block);
}

/* All tables that are there: code that has run by now is in them. */
static void look_at_tables(struct session_memory *m)
{
	struct memory_chunk_head h;
	for (uint32_t i = 0; i < SESSION_MEMORY_BLOCKS; i++) {
		if (__atomic_load_n(&m->head->state[i], __ATOMIC_ACQUIRE) != MEMORY_RING_DONE)
			continue;
		memcpy(&h, memory_block_at(m, i), sizeof h);
		if (head_makes_sense(&h) && h.type == MEMORY_CHUNK_TABLE)
			record_words_learn(m->words, memory_block_at(m, i), h.bytes);
	}
}

/* A chunk of the stream, to the trace, or to the reader beside us. */
static void memory_put(struct session_memory *m, struct record_converter *c,
	struct session_memory_stream *s, const uint8_t *chunk)
{
	struct memory_chunk_head h;
	memcpy(&h, chunk, sizeof h);
	m->nr_chunks++;
	m->nr_bytes += h.bytes;
	if (m->taker) {
		m->taker->put(m->taker->ctx, c->clock, chunk, h.bytes);
		return;
	}
	if (record_sink_failed(&c->sink))
		return;
	uint64_t first_ns = memory_ns_of(c, h.first_ticks), last_ns = memory_ns_of(c, h.last_ticks);
	first_ns = first_ns < s->last_ns ? s->last_ns : first_ns;
	s->last_ns = last_ns < first_ns ? first_ns : last_ns;
	c->sink.status = trace_writer_put_content(c->sink.writer, TRACE_CONTENT_MEMORY, s->stream,
		first_ns, s->last_ns, chunk, h.bytes, &c->sink.err);
}

/* ---- raw chunks ------------------------------------------------------------------------------ */

static void put_growing(
	struct session_memory *m, struct record_converter *c, struct session_memory_growing *g)
{
	size_t size_bytes;
	const uint8_t *chunk = g->coder ? record_coder_take(g->coder, &size_bytes) : NULL;
	if (chunk)
		memory_put(m, c, &m->stream[g->definition - 1], chunk);
	g->definition = 0;
}

/* What is there of the stream comes before its next chunk. */
static void put_growing_of(
	struct session_memory *m, struct record_converter *c, const struct session_memory_stream *s)
{
	for (unsigned i = 0; i < SESSION_MEMORY_GROWING; i++)
		if (m->growing[i].definition == s->definition)
			put_growing(m, c, &m->growing[i]);
}

/* The stream's, or one that is free, or has been used least lately. NULL: no memory. */
static struct session_memory_growing *growing_of(
	struct session_memory *m, struct record_converter *c, const struct session_memory_stream *s)
{
	struct session_memory_growing *found = NULL;
	for (unsigned i = 0; i < SESSION_MEMORY_GROWING; i++) {
		struct session_memory_growing *g = &m->growing[i];
		if (g->definition == s->definition) {
			found = g;
			break;
		}
		if (!found || (found->definition && (!g->definition || g->used < found->used)))
			found = g;
	}
	if (found->definition != s->definition)
		put_growing(m, c, found);
	if (!found->coder && !(found->coder = record_coder_new()))
		return NULL;
	found->definition = s->definition;
	found->used = ++m->nr_encoded_ever;
	return found;
}

/* A thread's chunks are put together: raw ones have few words. */
static void memory_encode(struct session_memory *m, struct record_converter *c,
	struct session_memory_stream *s, const struct memory_chunk_head *h, const uint8_t *chunk)
{
	struct record_raw raw = {.chunk = chunk, .head = *h};
	struct session_memory_growing *g = growing_of(m, c, s);
	if (!g) {
		record_sink_fail(&c->sink, BASE_ERR_NOMEM, "no memory to encode a thread's words");
		return;
	}
	look_at_tables(m);
	m->nr_encoded++;
	while (!record_words_encode(m->words, g->coder, &raw)) {
		put_growing(m, c, g);
		g->definition = s->definition;
	}
	s->nr_joined += !raw.begun;
	m->nr_encoded_words += raw.nr_words;
	m->lost_words += raw.nr_lost;
	if (m->taker)
		put_growing(m, c, g);
}

/* false: not its turn. */
static bool memory_take(
	struct session_memory *m, struct record_converter *c, uint32_t block, bool final)
{
	struct memory_chunk_head h;
	memcpy(&h, memory_block_at(m, block), sizeof h);
	if (!head_makes_sense(&h)) {
		m->nr_damaged += !final;
		give_back_now(m, block);
		return true;
	}
	struct session_memory_stream *s = memory_stream_of(m, c, &h);
	if (s && h.type != MEMORY_CHUNK_TABLE && h.sequence != s->sequence && !final)
		return false;
	if (h.type == MEMORY_RING_RAW && !m->encodes)
		return false;
	if (!s || record_sink_failed(&c->sink)) {
		if (!s)
			record_sink_fail(&c->sink, BASE_ERR_NOMEM, "no memory for one more thread");
		give_back_now(m, block);
		return true;
	}
	s->sequence = h.sequence + 1;
	h.sequence -= s->nr_joined;
	m->lost_words += h.lost;
	if (h.type == MEMORY_RING_RAW) {
		memory_encode(m, c, s, &h, memory_block_at(m, block));
		give_back_now(m, block);
		return true;
	}
	memcpy(m->copy, &h, sizeof h);
	memcpy(m->copy + sizeof h, memory_block_at(m, block) + sizeof h, h.bytes - sizeof h);
	give_back_now(m, block);
	if (h.type == MEMORY_CHUNK_TABLE)
		record_words_learn(m->words, m->copy, h.bytes);
	put_growing_of(m, c, s);
	memory_put(m, c, s, m->copy);
	return true;
}

/* To who reads along: what is there now, until there is no more of it; the blocks are given back
 * only then, so it has an end. So whatever was done before something that is taken is taken, too.
 */
static unsigned memory_pass_on(struct session_memory *m, struct record_converter *c, bool final)
{
	bool taken[SESSION_MEMORY_BLOCKS] = {false}, again = m->taker->has_room(m->taker->ctx);
	unsigned nr = 0;
	again |= final;
	for (bool last = false; again || (final && !last);) {
		last = !again;
		again = false;
		for (uint32_t i = 0; i < SESSION_MEMORY_BLOCKS; i++) {
			uint32_t state = __atomic_load_n(&m->head->state[i], __ATOMIC_ACQUIRE);
			if (taken[i] || state == MEMORY_RING_FREE ||
				(state != MEMORY_RING_DONE && !last) || !memory_take(m, c, i, last))
				continue;
			taken[i] = again = true;
			nr++;
		}
	}
	m->taker->commit(m->taker->ctx);
	for (uint32_t i = 0; i < SESSION_MEMORY_BLOCKS; i++)
		if (taken[i])
			memory_give_back(m, i);
	return nr;
}

bool session_memory_can_wait(const struct session_memory *m)
{
	unsigned nr_taken = 0;
	if (m->beside && m->head && m->head->raw)
		return false;
	for (uint32_t i = 0; m->head && i < SESSION_MEMORY_BLOCKS; i++)
		nr_taken +=
			__atomic_load_n(&m->head->state[i], __ATOMIC_RELAXED) != MEMORY_RING_FREE;
	return nr_taken < memory_ring_waiting_max(SESSION_MEMORY_BLOCKS);
}

/* What the program leaves raw is encoded by us, at once on a processor that nobody else
 * needs, else in the end. When there is no room to leave it for the end, the program does, with all
 * its threads, but for what a spare processor of later can do. */
static void share_work(struct session_memory *m, bool has_spare, bool final)
{
	if (m->beside)
		return;
	m->overflowed = m->overflowed || !session_memory_can_wait(m);
	m->encodes = has_spare || final || m->overflowed;
	__atomic_store_n(&m->head->raw,
		has_spare        ? memory_ring_beside_max(SESSION_MEMORY_BLOCKS)
		: !m->overflowed ? memory_ring_waiting_max(SESSION_MEMORY_BLOCKS)
				 : 0,
		__ATOMIC_RELAXED);
}

/* In the order of each thread's numbers, which need not be that of the blocks. */
unsigned session_memory_drain(
	struct session_memory *m, struct record_converter *c, bool has_spare, bool final)
{
	unsigned nr = 0;
	bool again = m->head != NULL;
	if (m->head && m->taker)
		return memory_pass_on(m, c, final);
	if (m->head)
		share_work(m, has_spare, final);
	m->nr_encoded = 0;
	while (again) {
		again = false;
		for (uint32_t i = 0; i < SESSION_MEMORY_BLOCKS; i++) {
			if (m->nr_encoded >= ENCODED_MAX && !final)
				return nr;
			uint32_t state = __atomic_load_n(&m->head->state[i], __ATOMIC_ACQUIRE);
			if (state != MEMORY_RING_DONE)
				continue;
			bool taken = memory_take(m, c, i, false);
			nr += taken;
			again |= taken;
		}
	}
	/* What is left in order of place: chunks of threads that are gone, or stopped halfway. */
	for (uint32_t i = 0; final && m->head && i < SESSION_MEMORY_BLOCKS; i++)
		if (__atomic_load_n(&m->head->state[i], __ATOMIC_ACQUIRE) != MEMORY_RING_FREE)
			nr += memory_take(m, c, i, true);
	for (unsigned i = 0; final && i < SESSION_MEMORY_GROWING; i++)
		put_growing(m, c, &m->growing[i]);
	return nr;
}

void session_memory_finish(struct session_memory *m, struct record_converter *c)
{
	for (size_t i = 0; i < m->nr_streams; i++)
		memory_define(m, c, &m->stream[i], true);
	if (m->head)
		m->lost_words += __atomic_load_n(&m->head->lost_words, __ATOMIC_RELAXED);
}
