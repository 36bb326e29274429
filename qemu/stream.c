/* SPDX-License-Identifier: GPL-2.0-or-later */
/* stream.c - see stream.h; the ring is that of ring/memory_ring.h. */
#include "stream.h"

#include "ring/handover.h"
#include "ring/memory_ring.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum {
	BUCKETS = 1 << 16,
	BLOCK_WORDS_MAX = 1 + MEMORY_BLOCK_SLOTS_MAX,
	OPEN_CHUNKS_MAX = 16, /* threads that keep a block of the ring */
	WAIT_NS = 20000000,
	INFO_AWAY = 1 << 29, /* where the descriptions seem to be, from the heads */
	MODULES_MAX = 16384, /* as the reader takes */
};

static struct memory_block_head
	heads[MEMORY_BLOCKS_MAX]; /* in the order they were made; marks first */

static struct {
	pthread_mutex_t lock;
	pthread_key_t key;
	struct memory_ring_head *ring;
	uint32_t image, ring_blocks; /* ring_blocks: as its head said at first: it is shared */
	bool off;                    /* a child of fork, or the recorder is gone */
	struct objects objects;
	struct block *bucket[BUCKETS];
	uint32_t nr_heads, nr_indices, nr_modules;
	struct thread *thread;
	uint64_t nr_threads;
	unsigned nr_alive, nr_open, nr_to_join;
} s = {.lock = PTHREAD_MUTEX_INITIALIZER, .nr_indices = 1 /* 0 is none */};

__thread struct thread *stream_self;

static const struct memory_block_head marks[MEMORY_MARK_NR] = {
#define MARK(name, slots, ticks)                                                                   \
	{.info = MEMORY_MARK_##name,                                                               \
		.nr_slots = (slots),                                                               \
		.flags = MEMORY_BLOCK_MARK | (ticks) << MEMORY_BLOCK_TICKS_SHIFT},
	MEMORY_MARKS(MARK)
#undef MARK
};

/* ---- the ring -------------------------------------------------------------------------------- */

static bool recording(void)
{
	return s.ring && !s.off && __atomic_load_n(&s.ring->recording, __ATOMIC_ACQUIRE);
}

static uint8_t *block_at(uint32_t i)
{
	return (uint8_t *)s.ring + MEMORY_RING_HEAD_BYTES + (uint64_t)i * MEMORY_RING_BLOCK_BYTES;
}

static bool try_take(uint32_t *ret)
{
	for (uint32_t i = 0; i < s.ring_blocks; i++) {
		uint32_t free = MEMORY_RING_FREE;
		if (__atomic_load_n(&s.ring->state[i], __ATOMIC_RELAXED) == MEMORY_RING_FREE &&
			__atomic_compare_exchange_n(&s.ring->state[i], &free, MEMORY_RING_ACTIVE,
				false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
			*ret = i;
			return true;
		}
	}
	return false;
}

/* Waits for one; false: there will be none. */
static bool take_block(uint32_t *ret)
{
	uint64_t began = stream_now_ticks();
	for (bool waited = false; recording(); waited = true) {
		uint32_t freed = __atomic_load_n(&s.ring->freed, __ATOMIC_ACQUIRE);
		if (try_take(ret)) {
			if (waited)
				__atomic_fetch_add(&s.ring->wait_ticks, stream_now_ticks() - began,
					__ATOMIC_RELAXED);
			return true;
		}
		struct timespec ts = {.tv_nsec = WAIT_NS};
		__atomic_fetch_add(&s.ring->waiters, 1, __ATOMIC_ACQ_REL);
		(void)syscall(SYS_futex, &s.ring->freed, FUTEX_WAIT, freed, &ts, NULL, 0);
		__atomic_fetch_sub(&s.ring->waiters, 1, __ATOMIC_ACQ_REL);
		if (kill((pid_t)s.ring->reader_pid, 0) && errno == ESRCH)
			s.off = true;
	}
	return false;
}

static void publish(uint32_t block)
{
	__atomic_store_n(&s.ring->state[block], MEMORY_RING_DONE, __ATOMIC_RELEASE);
}

/* ---- tables ---------------------------------------------------------------------------------- */

struct module {
	const struct object *object;
	uint32_t number, first_index;
	uint64_t heads; /* where they seem to be */
};

/* A section, in as many chunks as it takes. */
static void send_section(const struct module *to, enum memory_table_section section,
	const void *bytes, uint64_t size_bytes)
{
	struct memory_table_head table = {.module = to->number,
		.section = section,
		.address = section == MEMORY_TABLE_BLOCKS ? to->heads
			   : section == MEMORY_TABLE_INFO ? to->heads + INFO_AWAY
							  : 0,
		.bytes = size_bytes,
		.load_bias = to->object ? to->object->bias : 0,
		.first_index = to->first_index,
		.flags = MEMORY_TABLE_IN_PLACE | MEMORY_TABLE_PLACED};
	uint32_t block;
	while (table.offset < size_bytes && take_block(&block)) {
		struct memory_chunk_head head = {.image = s.image,
			.pid = (uint32_t)getpid(),
			.first_ticks = stream_now_ticks(),
			.tables = s.image};
		memory_table_chunk(block_at(block), MEMORY_RING_BLOCK_BYTES, &head, &table, bytes);
		publish(block);
	}
}

static void send_marks(void)
{
	struct memory_block_head head[MEMORY_MARK_NR];
	struct module module = {
		.number = s.nr_modules++, .first_index = s.nr_indices, .heads = (uintptr_t)heads};
	for (; s.nr_heads < MEMORY_MARK_NR; s.nr_heads++, s.nr_indices++) {
		head[s.nr_heads] = heads[s.nr_heads] = marks[s.nr_heads];
		head[s.nr_heads].index = s.nr_heads;
	}
	send_section(&module, MEMORY_TABLE_BLOCKS, head, sizeof head);
}

/* An object's new shapes, as a module of their own. */
static void send_new(struct object *o)
{
	struct module module = {.object = o,
		.number = s.nr_modules++,
		.first_index = s.nr_indices,
		.heads = o->near};
	struct memory_block_head *head = malloc(o->nr_new * sizeof *head);
	uint8_t *info = malloc(o->new_bytes);
	size_t at = 0, i = 0;
	for (struct block_shape *b = head && info ? o->first_new : NULL; b; b = b->next_new, i++) {
		uint64_t seems = module.heads + i * sizeof *head;
		s.nr_indices++;
		head[i] = *b->head;
		head[i].index = (uint32_t)(b->head - heads);
		head[i].code = (int32_t)(b->block->code - seems);
		head[i].info = (int32_t)(module.heads + INFO_AWAY + at - (seems + 4));
		memcpy(info + at, b->info, b->info_bytes);
		at += b->info_bytes;
	}
	send_section(&module, MEMORY_TABLE_PATH, o->path, strlen(o->path) + 1);
	send_section(&module, MEMORY_TABLE_INFO, info, at);
	send_section(&module, MEMORY_TABLE_BLOCKS, head, i * sizeof *head);
	free(head);
	free(info);
	o->first_new = NULL;
	o->nr_new = 0;
	o->new_bytes = 0;
}

static void send_tables(void)
{
	for (size_t i = 0; i < s.objects.nr; i++)
		if (s.objects.object[i]->nr_new && s.nr_modules < MODULES_MAX)
			send_new(s.objects.object[i]);
}

/* ---- blocks ---------------------------------------------------------------------------------- */

/* The shape of such an execution. NULL: its words are lost. */
static struct block_shape *shape_of(struct block *b, const struct block_seen *seen, unsigned nr)
{
	struct memory_block_head *head = &heads[s.nr_heads];
	struct block_shape *shape =
		s.nr_heads < MEMORY_BLOCKS_MAX ? block_shape_of(b, seen, nr, head) : NULL;
	if (!shape || shape->head != head)
		return shape;
	s.nr_heads++;
	shape->next_new = b->object->first_new;
	b->object->first_new = shape;
	b->object->nr_new++;
	b->object->new_bytes += shape->info_bytes;
	return shape;
}

static bool same_code(const struct block *a, const struct block *b)
{
	return a->code == b->code && a->nr_instructions == b->nr_instructions &&
	       !memcmp(a->row, b->row, a->nr_instructions * sizeof(struct isa_row *)) &&
	       !memcmp(a->length, b->length, a->nr_instructions);
}

static struct block *find_or_add(const struct block *like, const void *host)
{
	struct block **bucket = &s.bucket[(like->code >> 1) % BUCKETS];
	for (struct block *b = *bucket; b; b = b->next_same)
		if (same_code(b, like))
			return b;
	struct object *o = object_of(&s.objects, like->code, host);
	struct block *b = o ? malloc(sizeof *b) : NULL;
	if (!b)
		return NULL;
	*b = *like;
	b->object = o;
	b->likely = shape_of(b, NULL, 0);
	if (!b->likely) {
		free(b);
		return NULL;
	}
	b->next_same = *bucket;
	*bucket = b;
	return b;
}

struct block *stream_block(const struct block *like, const void *host)
{
	pthread_mutex_lock(&s.lock);
	struct block *b = find_or_add(like, host);
	pthread_mutex_unlock(&s.lock);
	return b;
}

void stream_maps(void)
{
	pthread_mutex_lock(&s.lock);
	object_forget_places(&s.objects);
	pthread_mutex_unlock(&s.lock);
}

/* ---- pieces ---------------------------------------------------------------------------------- */

static void close_chunk(struct thread *t)
{
	if (!t->chunk)
		return;
	publish(t->chunk_block);
	t->chunk = NULL;
	s.nr_open--;
}

static bool open_chunk(struct thread *t, uint64_t first_ticks)
{
	if (!take_block(&t->chunk_block))
		return false;
	s.nr_open++;
	t->chunk = block_at(t->chunk_block);
	t->chunk_used = t->chunk_most = sizeof(struct memory_chunk_head);
	struct memory_chunk_head head = {.magic = MEMORY_CHUNK_MAGIC,
		.version = MEMORY_STREAM_VERSION,
		.type = (uint16_t)MEMORY_RING_RAW,
		.bytes = t->chunk_used,
		.image = s.image,
		.pid = (uint32_t)getpid(),
		.tid = t->tid,
		.thread = t->number,
		.sequence = t->sequence++,
		.first_ticks = first_ticks,
		.last_ticks = first_ticks,
		.fs_base = t->tid, /* a handle that is like no other one */
		.lost = t->lost,
		.tables = s.image,
		.flags = MEMORY_CHUNK_EMULATED};
	memcpy(t->chunk, &head, sizeof head);
	t->lost = 0;
	return true;
}

/* Of `words` words, if all of them were encoded badly. */
static uint32_t room_for(size_t words)
{
	return (uint32_t)(sizeof(struct memory_ring_piece) + words * 10 + 256);
}

static void add_piece(struct thread *t, uint64_t end_ticks, bool waits)
{
	size_t nr = (size_t)(t->next - t->words);
	if (!nr || !recording())
		return;
	send_tables();
	if (t->chunk && t->chunk_most + room_for(nr) > MEMORY_RING_BLOCK_BYTES)
		close_chunk(t);
	if (!t->chunk && !open_chunk(t, t->begin_ticks)) {
		t->lost += nr;
		return;
	}
	struct memory_chunk_head *head = (struct memory_chunk_head *)t->chunk;
	struct memory_ring_piece piece = {.words = nr,
		.begin_ticks = t->begin_ticks - head->first_ticks,
		.lasted_ticks = end_ticks - t->begin_ticks};
	memcpy(t->chunk + t->chunk_used, &piece, sizeof piece);
	memcpy(t->chunk + t->chunk_used + sizeof piece, t->words, nr * sizeof *t->words);
	t->chunk_used += (uint32_t)(sizeof piece + nr * sizeof *t->words);
	t->chunk_most += room_for(nr);
	head->last_ticks = end_ticks;
	head->flags |= waits ? (uint32_t)MEMORY_CHUNK_WAITS : 0;
	__atomic_store_n(&head->bytes, t->chunk_used, __ATOMIC_RELEASE);
	__atomic_fetch_add(&s.ring->words, nr, __ATOMIC_RELAXED);
	__atomic_fetch_add(&s.ring->pieces, 1, __ATOMIC_RELAXED);
	if (s.nr_open > OPEN_CHUNKS_MAX || s.ring->live)
		close_chunk(t);
}

static void cut(struct thread *t, uint64_t end_ticks, bool waits)
{
	pthread_mutex_lock(&s.lock);
	add_piece(t, end_ticks > t->begin_ticks ? end_ticks : t->begin_ticks, waits);
	pthread_mutex_unlock(&s.lock);
	t->next = t->words;
	t->begin_ticks = stream_now_ticks();
}

void stream_cut(struct thread *t, uint64_t end_ticks)
{
	cut(t, end_ticks, false);
}

void stream_waits(struct thread *t)
{
	if (s.ring && s.ring->live)
		cut(t, stream_now_ticks(), true);
}

/* ---- blocks as they are executed ------------------------------------------------------------- */

/* No access is like it. */
static const struct block_expected nothing = {.key = {.instruction = UINT32_MAX}};

/* What is taken down of the block so far, from the words. */
static void take_down(struct thread *t)
{
	const struct block_expected *upto = t->expected;
	const uint64_t *word = t->next + 1;
	t->nr_seen = 0;
	for (const struct block_expected *e = t->shape->expected; e < upto; e++)
		t->seen[t->nr_seen++] = (struct block_seen){.key = e->key,
			.address = e->slot != BLOCK_NO_SLOT
					   ? word[e->slot]
					   : word[e->base] + (uint64_t)(int64_t)e->disp};
	t->strays = true;
	t->expected = &nothing;
}

void stream_stray(struct thread *t, struct block_key key, uint64_t address)
{
	if (!t->block || key.instruction >= t->block->nr_instructions)
		return; /* of code that there was no memory for */
	if (!t->strays)
		take_down(t);
	if (t->nr_seen == BLOCK_ACCESSES_MAX)
		t->lost++;
	else
		t->seen[t->nr_seen++] = (struct block_seen){.key = key, .address = address};
}

/* It was not as expected: its shape from what is taken down, and its words. */
static void end_stray(struct thread *t)
{
	pthread_mutex_lock(&s.lock);
	struct block_shape *shape = shape_of(t->block, t->seen, t->nr_seen);
	pthread_mutex_unlock(&s.lock);
	if (!shape) {
		t->lost += 1 + t->nr_seen;
		return;
	}
	uint64_t *word = t->next + 1, now = stream_now_ticks();
	for (unsigned i = 0; i < t->nr_seen; i++) {
		const struct block_expected *e = &shape->expected[i];
		if (e->slot != BLOCK_NO_SLOT)
			word[e->slot] = t->seen[i].address;
		if (e->ticks)
			word[e->ticks] = now;
	}
	t->next[0] = (uintptr_t)shape->head;
	t->next += 1 + shape->nr_slots;
	__atomic_store_n(&t->block->likely, shape, __ATOMIC_RELEASE);
}

void stream_end_block(struct thread *t)
{
	if (!t->block)
		return;
	if (!t->strays && t->expected != t->shape->expected + t->shape->nr)
		take_down(t);
	if (t->strays) {
		end_stray(t);
	} else {
		t->next[0] = (uintptr_t)t->shape->head;
		t->next += 1 + t->shape->nr_slots;
	}
	t->block = NULL;
	t->strays = false;
	t->expected = &nothing;
}

void stream_begin(struct thread *t, struct block *b)
{
	stream_end_block(t);
	if (t->next > t->limit) {
		stream_cut(t, stream_now_ticks());
		stream_join_ended(t);
	}
	t->block = b;
	t->shape = __atomic_load_n(&b->likely, __ATOMIC_ACQUIRE);
	t->expected = t->shape->expected;
}

/* ---- marks ----------------------------------------------------------------------------------- */

static void mark(struct thread *t, enum memory_mark what, const uint64_t *slot)
{
	stream_end_block(t);
	if (t->next > t->limit)
		stream_cut(t, stream_now_ticks());
	*t->next++ = (uintptr_t)&heads[what];
	for (unsigned i = 0; i < marks[what].nr_slots; i++)
		*t->next++ = slot[i];
}

void stream_mark_range(struct thread *t, bool store, uint64_t address, uint64_t bytes)
{
	mark(t, store ? MEMORY_MARK_store : MEMORY_MARK_load, (const uint64_t[]){address, bytes});
}

void stream_mark_call(struct thread *t, enum memory_call_kind kind, uint64_t began_ticks,
	const uint64_t argument[4])
{
	mark(t, MEMORY_MARK_call,
		(const uint64_t[]){kind, argument[0], argument[1], argument[2], argument[3],
			began_ticks, stream_now_ticks()});
}

static void mark_call(struct thread *t, enum memory_call_kind kind, uint64_t argument)
{
	stream_mark_call(t, kind, stream_now_ticks(), (const uint64_t[4]){argument});
}

/* ---- threads --------------------------------------------------------------------------------- */

static struct thread *new_thread(void)
{
	struct thread *t = calloc(1, sizeof *t);
	if (!t)
		return NULL;
	t->words = malloc(MEMORY_PIECE_WORDS * sizeof *t->words);
	t->seen = malloc(BLOCK_ACCESSES_MAX * sizeof *t->seen);
	if (!t->words || !t->seen) {
		free(t->words);
		free(t->seen);
		free(t);
		return NULL;
	}
	t->expected = &nothing;
	t->next = t->words;
	t->limit = t->words + MEMORY_PIECE_WORDS - BLOCK_WORDS_MAX;
	t->tid = (uint32_t)syscall(SYS_gettid);
	t->begin_ticks = stream_now_ticks();
	pthread_mutex_lock(&s.lock);
	t->number = ++s.nr_threads;
	t->next_thread = s.thread;
	s.thread = t;
	__atomic_fetch_add(&s.nr_alive, 1, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&s.lock);
	return t;
}

struct thread *stream_new_thread(void)
{
	struct thread *t = stream_self = new_thread();
	if (!t)
		return NULL;
	(void)pthread_setspecific(s.key, t);
	mark_call(t, MEMORY_CALL_thread_begin, 0);
	return t;
}

void stream_join_ended(struct thread *t)
{
	if (!__atomic_load_n(&s.nr_to_join, __ATOMIC_RELAXED) ||
		__atomic_load_n(&s.nr_alive, __ATOMIC_RELAXED) > 1)
		return;
	for (;;) {
		struct thread *e;
		pthread_mutex_lock(&s.lock);
		for (e = s.thread; e && (!e->ended || e->joined);)
			e = e->next_thread;
		if (e) {
			e->joined = true;
			s.nr_to_join--;
		}
		pthread_mutex_unlock(&s.lock);
		if (!e)
			return;
		mark_call(t, MEMORY_CALL_thread_join, e->tid);
	}
}

void stream_end_thread(struct thread *t)
{
	if (t->ended)
		return;
	mark_call(t, MEMORY_CALL_thread_end, 0);
	pthread_mutex_lock(&s.lock);
	add_piece(t, stream_now_ticks(), s.ring && s.ring->live);
	if (s.ring)
		close_chunk(t);
	t->ended = true;
	s.nr_to_join++;
	__atomic_fetch_sub(&s.nr_alive, 1, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&s.lock);
	free(t->words);
	free(t->seen);
	t->words = NULL;
	t->seen = NULL;
	stream_self = NULL;
}

static void at_thread_exit(void *thread)
{
	stream_end_thread(thread);
}

/* ---- beginning and end ----------------------------------------------------------------------- */

/* The child's words are not wanted: its chunks are the parent's. */
static void in_child(void)
{
	s.off = true;
	s.ring = NULL;
	pthread_mutex_unlock(&s.lock);
}

static void before_fork(void)
{
	pthread_mutex_lock(&s.lock);
}

static void in_parent(void)
{
	pthread_mutex_unlock(&s.lock);
}

static long call(long number, long a, long b, long c, long d, long e, long f)
{
	long result = syscall(number, a, b, c, d, e, f);
	return result < 0 ? -errno : result;
}

/* NULL: it cannot be trusted, or is not there. */
static struct memory_ring_head *map_ring(const char *path)
{
	uint64_t size_bytes = 0;
	struct memory_ring_head copy = {0};
	int fd = (int)handover_open(call, path, &size_bytes);
	void *at = MAP_FAILED;
	if (fd < 0)
		return NULL;
	if (pread(fd, &copy, sizeof copy, 0) == (ssize_t)sizeof copy &&
		memory_ring_fits(&copy, size_bytes))
		at = mmap(NULL, (size_t)size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	s.ring_blocks = copy.nr_blocks;
	return at == MAP_FAILED ? NULL : at;
}

bool stream_open(const char *ring_path)
{
	struct memory_ring_head *ring = map_ring(ring_path);
	if (!ring) {
		fprintf(stderr, "longpole: %s is not this recorder's shared memory\n", ring_path);
		return false;
	}
	s.ring = ring;
	if (pthread_key_create(&s.key, at_thread_exit) ||
		pthread_atfork(before_fork, in_parent, in_child))
		return false;
	s.image = __atomic_add_fetch(&ring->next_image, 1, __ATOMIC_RELAXED);
	__atomic_fetch_add(&ring->attached, 1, __ATOMIC_RELAXED);
	send_marks();
	return true;
}

/* Others may be in the middle of a block, which is lost; those in a system call are not. */
void stream_close(void)
{
	struct thread *own = stream_self;
	if (own && !own->ended)
		stream_end_block(own);
	pthread_mutex_lock(&s.lock);
	for (struct thread *t = s.thread; t && s.ring; t = t->next_thread) {
		if (t->ended)
			continue;
		if (t == own || __atomic_load_n(&t->in_call, __ATOMIC_ACQUIRE))
			add_piece(t, stream_now_ticks(), false);
		else
			t->lost += (uint64_t)(t->next - t->words);
		__atomic_fetch_add(&s.ring->lost_words, t->lost, __ATOMIC_RELAXED);
		close_chunk(t);
	}
	s.off = true;
	pthread_mutex_unlock(&s.lock);
}
