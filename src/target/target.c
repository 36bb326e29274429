/* SPDX-License-Identifier: Apache-2.0 */
/* target.c - the runtime library of rewritten programs: modules, threads, buffers, chunks. */
#include "ring/handover.h"
#include "ring/processor.h"
#include "target/target.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <linux/futex.h>
#include <pthread.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
	WAIT_NS = 20000000,     /* between two looks whether the reader lives */
	HELD_MAX = 50,          /* such looks, while no block can come back */
	TABLES_FIRST = 1 << 14, /* states of blocks and slots that a thread has room for at first */
	ATTACH_DESTRUCTORS = 4,
	NEARLY_NONE = 4,  /* blocks that wait for the reader */
	COSTLY_TICKS = 4, /* to encode a word: more than to leave it to the reader */
};

struct module {
	struct memory_block_head *heads, *heads_end;
	const uint8_t *info, *info_end;
	uint64_t load_bias;
	uint32_t first_index;
	char path[TARGET_PATH_BYTES];
};

__thread struct target_tls longpole_memory;

static struct {
	struct memory_ring_head *ring;
	uint32_t ring_blocks;   /* as its head said when it was checked: it is shared */
	uint32_t image, tables; /* numbers: ours; whose tables we sent */
	uint32_t pid;
	uint64_t next_thread; /* atomic */
	int attached;         /* 0 not yet, 1 under way, 2 done */
	int stopped;          /* detail is off for all */
	struct target_thread *threads;
	struct module module[TARGET_MODULES_MAX];
	uint32_t nr_modules, nr_blocks; /* highest index + 1 */
	uint64_t nr_slots;
	uint32_t *slot_base;
	uint64_t slot_base_room;
	pthread_key_t key;
	bool has_key, avx2;
	const struct record_preload_side *beside; /* NULL: nobody */
} self;

/* ---- system calls, errno kept ---------------------------------------------------------------- */

long longpole_target_syscall(long number, long a, long b, long c, long d, long e, long f)
{
	return processor_syscall(number, a, b, c, d, e, f);
}

static void *map(size_t bytes, long flags)
{
	long p = longpole_target_syscall(SYS_mmap, 0, (long)bytes, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
	return p < 0 && p > -4096 ? NULL : (void *)p;
}

static void target_unmap(void *p, size_t bytes)
{
	if (p)
		(void)longpole_target_syscall(SYS_munmap, (long)p, (long)bytes, 0, 0, 0, 0);
}

/* ---- the ring -------------------------------------------------------------------------------- */

bool longpole_target_attached(void)
{
	return self.ring && __atomic_load_n(&self.ring->recording, __ATOMIC_ACQUIRE);
}

bool longpole_target_on(void)
{
	return longpole_target_attached() && !__atomic_load_n(&self.stopped, __ATOMIC_RELAXED);
}

/* A module may need what the program, which has the only copy, does not. */
__attribute__((used)) static void (*const for_modules[])(void) = {
	(void (*)(void))longpole_target_took, (void (*)(void))longpole_target_channel};

void longpole_target_tell_allocated(const void *p, uint64_t site)
{
	if (self.beside && self.beside->allocated)
		self.beside->allocated((uintptr_t)p, site);
}

static uint8_t *target_block_at(uint32_t i)
{
	return (uint8_t *)self.ring + MEMORY_RING_HEAD_BYTES +
	       (uint64_t)i * MEMORY_RING_BLOCK_BYTES;
}

static bool reader_lives(void)
{
	return longpole_target_syscall(SYS_kill, (long)self.ring->reader_pid, 0, 0, 0, 0, 0) !=
	       -ESRCH;
}

static bool try_take(uint32_t *ret)
{
	for (uint32_t i = 0; i < self.ring_blocks; i++) {
		uint32_t free = MEMORY_RING_FREE;
		if (__atomic_load_n(&self.ring->state[i], __ATOMIC_RELAXED) == MEMORY_RING_FREE &&
			__atomic_compare_exchange_n(&self.ring->state[i], &free, MEMORY_RING_ACTIVE,
				false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
			__atomic_fetch_add(&self.ring->active, 1, __ATOMIC_RELAXED);
			*ret = i;
			return true;
		}
	}
	return false;
}

/* Threads have all blocks open: the reader can give none back. */
static bool all_are_active(void)
{
	for (uint32_t i = 0; i < self.ring_blocks; i++)
		if (__atomic_load_n(&self.ring->state[i], __ATOMIC_RELAXED) != MEMORY_RING_ACTIVE)
			return false;
	return true;
}

/* Waits for a block; false: there will be none, or all are held by threads that wait for something
 * that is not seen here, for us maybe. */
static bool target_take_block(uint32_t *ret)
{
	struct memory_ring_head *ring = self.ring;
	uint64_t began = target_ticks();
	bool waited = false;
	for (unsigned held = 0; longpole_target_attached() && held < HELD_MAX;
		held = all_are_active() ? held + 1 : 0) {
		uint32_t freed = __atomic_load_n(&ring->freed, __ATOMIC_ACQUIRE);
		if (try_take(ret)) {
			if (waited)
				__atomic_fetch_add(&ring->wait_ticks, target_ticks() - began,
					__ATOMIC_RELAXED);
			return true;
		}
		waited = true;
		struct timespec ts = {.tv_nsec = WAIT_NS};
		__atomic_fetch_add(&ring->waiters, 1, __ATOMIC_ACQ_REL);
		(void)longpole_target_syscall(
			SYS_futex, (long)&ring->freed, FUTEX_WAIT, freed, (long)&ts, 0, 0);
		__atomic_fetch_sub(&ring->waiters, 1, __ATOMIC_ACQ_REL);
		if (!reader_lives())
			return false;
	}
	return false;
}

static struct memory_chunk_head *chunk_head(uint8_t *chunk)
{
	return (struct memory_chunk_head *)(void *)chunk;
}

static void publish(uint32_t block)
{
	__atomic_fetch_sub(&self.ring->active, 1, __ATOMIC_RELAXED);
	__atomic_store_n(&self.ring->state[block], MEMORY_RING_DONE, __ATOMIC_RELEASE);
}

/* ---- tables ---------------------------------------------------------------------------------- */

/* A section, in as many chunks as it takes. `of` says all but which one, and where it is. */
static void send_section(const struct memory_table_head *of, enum memory_table_section section,
	uint64_t address, const void *bytes, uint64_t size_bytes)
{
	struct memory_table_head table = *of;
	uint32_t block;
	table.section = section;
	table.address = address;
	table.bytes = size_bytes;
	while (table.offset < size_bytes && target_take_block(&block)) {
		struct memory_chunk_head head = {.image = self.image,
			.pid = self.pid,
			.first_ticks = target_ticks(),
			.tables = self.image};
		memory_table_chunk(
			target_block_at(block), MEMORY_RING_BLOCK_BYTES, &head, &table, bytes);
		publish(block);
	}
}

void longpole_target_send_table(const struct target_table *t)
{
	if (!longpole_target_attached())
		return;
	/* The reader takes a module as known when it has the blocks: so these come last. */
	send_section(&t->head, MEMORY_TABLE_PATH, 0, t->path, strlen(t->path) + 1);
	send_section(&t->head, MEMORY_TABLE_INFO, t->info_at, t->info, t->info_bytes);
	send_section(&t->head, MEMORY_TABLE_BLOCKS, t->heads_at, t->heads,
		t->nr_heads * sizeof *t->heads);
}

static void send_tables(uint32_t number)
{
	const struct module *m = &self.module[number];
	struct target_table t = {.head = {.module = number,
					 .load_bias = m->load_bias,
					 .first_index = m->first_index},
		.path = m->path,
		.heads = m->heads,
		.nr_heads = (size_t)(m->heads_end - m->heads),
		.heads_at = (uint64_t)(uintptr_t)m->heads,
		.info = m->info,
		.info_bytes = (size_t)(m->info_end - m->info),
		.info_at = (uint64_t)(uintptr_t)m->info};
	longpole_target_send_table(&t);
}

/* ---- modules --------------------------------------------------------------------------------- */

static struct memory_block_head mark_head[MEMORY_MARK_NR] = {
#define MARK(name, slots, ticks)                                                                   \
	{.info = MEMORY_MARK_##name,                                                               \
		.nr_slots = (slots),                                                               \
		.flags = MEMORY_BLOCK_MARK | (ticks) << MEMORY_BLOCK_TICKS_SHIFT},
	MEMORY_MARKS(MARK)
#undef MARK
};

/* Those of the module where the thread is now. */
static const struct memory_block_head *target_find_head(struct target_encoder *e, uintptr_t address)
{
	uint32_t nr = __atomic_load_n(&self.nr_modules, __ATOMIC_ACQUIRE);
	uintptr_t nr_sites = 0;
	const struct memory_block_head *sites =
		longpole_target_has_sites() ? longpole_target_sites(&nr_sites) : NULL;
	for (uint32_t i = 0; i <= nr; i++) {
		const struct memory_block_head *heads = i < nr ? self.module[i].heads : sites;
		const uintptr_t at = address - (uintptr_t)heads,
				nr_heads = i < nr ? (uintptr_t)(self.module[i].heads_end - heads)
						  : nr_sites;
		if (at >= nr_heads * sizeof *heads)
			continue;
		if (at % sizeof *heads)
			return NULL;
		if (i) { /* (0: the marks) */
			e->head = heads;
			e->heads = (uintptr_t)heads;
			e->nr_heads = nr_heads;
		}
		return heads + at / sizeof *heads;
	}
	return NULL;
}

/* Accesses through the global offset table that the linker has made away are none. */
static void target_settle(const struct memory_maybe *m, const struct memory_maybe *target_end)
{
	for (; m < target_end; m++) {
		uint8_t *access = (uint8_t *)(uintptr_t)&m->access + m->access;
		const uint8_t *at = (const uint8_t *)&m->instruction + m->instruction;
		bool same = m->length <= sizeof m->bytes && m->disp_at + 4 <= m->length;
		for (unsigned i = 0; same && i < m->length; i++)
			same = (i >= m->disp_at && i < m->disp_at + 4u) || at[i] == m->bytes[i];
		int32_t disp, relative;
		if (!same) {
			access[1] = (uint8_t)((access[1] & 15) | MEMORY_FORM_NEVER << 4);
			continue;
		}
		memcpy(&disp, at + m->disp_at, sizeof disp);
		relative = (int32_t)(at + m->length + disp - (access + 4));
		memcpy(access + 4, &relative, sizeof relative);
	}
}

static int target_find_module(struct dl_phdr_info *info, size_t size, void *ctx)
{
	struct target_place *m = ctx;
	uintptr_t at = m->address;
	(void)size;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		if (p->p_type != PT_LOAD || at - (info->dlpi_addr + p->p_vaddr) >= p->p_memsz)
			continue;
		m->load_bias = info->dlpi_addr;
		m->low = info->dlpi_addr + p->p_vaddr;
		m->high = m->low + p->p_memsz;
		size_t n = info->dlpi_name ? strlen(info->dlpi_name) : 0;
		if (n && n < sizeof m->path)
			memcpy(m->path, info->dlpi_name, n + 1);
		return 1;
	}
	return 0;
}

void longpole_target_find_place(uintptr_t address, struct target_place *ret)
{
	*ret = (struct target_place){.address = address};
	(void)dl_iterate_phdr(target_find_module, ret);
	if (ret->path[0])
		return;
	long n = longpole_target_syscall(SYS_readlink, (long)"/proc/self/exe", (long)ret->path,
		sizeof ret->path - 1, 0, 0, 0);
	ret->path[n > 0 ? n : 0] = 0;
}

static bool room_for_slot_bases(uint64_t nr)
{
	if (nr <= self.slot_base_room)
		return true;
	uint64_t room = self.slot_base_room ? self.slot_base_room * 2 : TABLES_FIRST;
	while (room < nr)
		room *= 2;
	uint32_t *grown = map(room * sizeof *grown, MAP_NORESERVE);
	if (!grown)
		return false;
	if (self.slot_base)
		memcpy(grown, self.slot_base, self.nr_blocks * sizeof *grown);
	self.slot_base = grown; /* the old one may still be read; it is small */
	self.slot_base_room = room;
	return true;
}

bool longpole_target_number(struct memory_block_head *head)
{
	if (self.nr_blocks >= MEMORY_BLOCKS_MAX || !room_for_slot_bases(self.nr_blocks + 1ul))
		return false;
	self.slot_base[self.nr_blocks] = (uint32_t)self.nr_slots;
	head->index = self.nr_blocks;
	self.nr_slots += head->nr_slots;
	self.nr_blocks++;
	return true;
}

uint32_t longpole_target_nr_blocks(void)
{
	return self.nr_blocks;
}

static void add_module(struct memory_block_head *heads, struct memory_block_head *heads_end,
	const uint8_t *info, const uint8_t *info_end)
{
	uint64_t nr = (uint64_t)(heads_end - heads);
	if (self.nr_modules == TARGET_MODULES_MAX || self.nr_blocks + nr > MEMORY_BLOCKS_MAX ||
		!room_for_slot_bases(self.nr_blocks + nr))
		return;
	struct module *m = &self.module[self.nr_modules];
	*m = (struct module){.heads = heads,
		.heads_end = heads_end,
		.info = info,
		.info_end = info_end,
		.first_index = self.nr_blocks};
	if (self.nr_modules) {
		struct target_place place;
		longpole_target_find_place((uintptr_t)heads, &place);
		m->load_bias = place.load_bias;
		memcpy(m->path, place.path, sizeof m->path);
	}
	for (uint64_t i = 0; i < nr; i++)
		(void)longpole_target_number(&heads[i]);
	__atomic_store_n(&self.nr_modules, self.nr_modules + 1, __ATOMIC_RELEASE);
	send_tables(self.nr_modules - 1);
}

/* ---- encoder states -------------------------------------------------------------------------- */

static bool target_grow(void *array /* T ** */, uint64_t old, uint64_t room, size_t size)
{
	void *p = map(room * size, MAP_NORESERVE), *before;
	if (!p)
		return false;
	memcpy(&before, array, sizeof before);
	if (before) {
		memcpy(p, before, old * size);
		target_unmap(before, old * size);
	}
	memcpy(array, &p, sizeof p);
	return true;
}

static bool target_room_for_states(struct target_thread *t)
{
	struct target_encoder *e = &t->encoder;
	e->slot_base = self.slot_base;
	if (self.nr_blocks > e->nr_blocks) {
		uint64_t room = self.nr_blocks + TABLES_FIRST;
		if (!target_grow(&e->block, e->nr_blocks, room, sizeof *e->block))
			return false;
		e->nr_blocks = (uint32_t)room;
	}
	if (self.nr_slots > t->nr_slot_states) {
		uint64_t room = self.nr_slots + TABLES_FIRST;
		if (!target_grow(&e->slot, t->nr_slot_states, room, sizeof *e->slot))
			return false;
		t->nr_slot_states = room;
	}
	if (!e->room)
		e->room = map(sizeof *e->room, 0);
	return e->room != NULL;
}

/* ---- chunks ---------------------------------------------------------------------------------- */

static void close_chunk(struct target_thread *t)
{
	if (!t->chunk)
		return;
	publish(t->chunk_block);
	t->chunk = NULL;
}

/* The reader is about to have nothing left to do. */
static bool has_caught_up(void)
{
	unsigned nr = 0;
	for (uint32_t i = 0; i < self.ring_blocks; i++)
		nr += __atomic_load_n(&self.ring->state[i], __ATOMIC_RELAXED) == MEMORY_RING_DONE;
	return nr < NEARLY_NONE;
}

/* Shall the reader encode these words? (Of sites it knows no heads.) */
static bool leaves_raw(const struct target_thread *t, const uint64_t *words, size_t nr)
{
	const struct memory_ring_head *ring = self.ring;
	return __atomic_load_n(&ring->raw, __ATOMIC_RELAXED) && !ring->live &&
	       !(t->chunk && t->encodes_chunk && !has_caught_up()) &&
	       !longpole_target_has_sites() && (t->is_costly || !longpole_target_loops(words, nr));
}

/* Blocks are taken from the first on: there are many raw ones when we get one beyond. Then this
 * chunk is encoded here, and the reader catches up meanwhile. */
static bool open_chunk(struct target_thread *t, bool raw)
{
	uint32_t block;
	if (!target_take_block(&block))
		return false;
	t->chunk = target_block_at(block);
	t->chunk_block = block;
	t->encodes_chunk = block >= __atomic_load_n(&self.ring->raw, __ATOMIC_RELAXED);
	t->chunk_is_raw = raw && !t->encodes_chunk;
	t->chunk_used = t->chunk_most = sizeof(struct memory_chunk_head);
	t->chunk_pieces = 0;
	struct memory_chunk_head head = {.magic = MEMORY_CHUNK_MAGIC,
		.version = MEMORY_STREAM_VERSION,
		.type = t->chunk_is_raw ? (uint16_t)MEMORY_RING_RAW : (uint16_t)MEMORY_CHUNK_STREAM,
		.bytes = t->chunk_used,
		.image = self.image,
		.pid = self.pid,
		.tid = t->tid,
		.thread = t->number,
		.sequence = t->sequence++,
		.first_ticks = t->begin_ticks,
		.last_ticks = t->begin_ticks,
		.fs_base = t->fs_base,
		.lost = t->lost,
		.tables = self.tables,
		.flags = longpole_target_has_sites() ? (uint32_t)MEMORY_CHUNK_INTERFACE : 0};
	memcpy(t->chunk, &head, sizeof head);
	t->lost = 0;
	if (t->chunk_is_raw)
		return true;
	if (!target_room_for_states(t)) {
		close_chunk(t);
		return false;
	}
	longpole_target_encode_start(&t->encoder, t->begin_ticks);
	return true;
}

/* As it is. Reading maps a block's pages many at a time, writing one by one. */
static size_t copy_piece(const struct target_piece *piece, uint8_t *out)
{
	enum { MAPPED_BYTES = 64 * 1024 };
	struct memory_ring_piece head = {.words = piece->nr,
		.flags = piece->flags,
		.begin_ticks = piece->begin_ticks,
		.lasted_ticks = piece->lasted_ticks};
	size_t words_bytes = piece->nr * sizeof *piece->words, bytes = sizeof head + words_bytes;
	for (size_t i = 0; i < bytes; i += MAPPED_BYTES)
		(void)*(volatile uint8_t *)(out + i);
	(void)*(volatile uint8_t *)(out + bytes - 1);
	memcpy(out, &head, sizeof head);
	memcpy(out + sizeof head, piece->words, words_bytes);
	return bytes;
}

static void put_piece(struct target_thread *t, struct target_piece *piece)
{
	uint8_t *out = t->chunk + t->chunk_used;
	if (t->chunk_is_raw) {
		piece->done = piece->nr;
		t->chunk_used += (uint32_t)copy_piece(piece, out);
		t->chunk_most += (uint32_t)target_piece_bound(piece->nr);
		return;
	}
	uint8_t *target_end = longpole_target_encode_piece(&t->encoder, piece, out);
	t->chunk_used = t->chunk_most = (uint32_t)(target_end - t->chunk);
}

/* The words [from, to) as a piece of the thread's chunk. */
static void add_piece(struct target_thread *t, uint64_t *from, size_t nr, unsigned flags)
{
	struct memory_ring_head *ring = self.ring;
	uint64_t began = target_ticks();
	longpole_target_send_sites();
	bool raw = leaves_raw(t, from, nr);
	if (t->chunk && (MEMORY_RING_BLOCK_BYTES - t->chunk_most < target_piece_bound(nr) ||
				t->chunk_is_raw != raw))
		close_chunk(t);
	if ((!t->chunk && !open_chunk(t, raw)) ||
		(!t->chunk_is_raw && !target_room_for_states(t))) {
		t->lost += nr;
		return;
	}
	struct memory_chunk_head *head = chunk_head(t->chunk);
	struct target_piece piece = {.words = from,
		.nr = nr,
		.flags = flags,
		.begin_ticks = t->begin_ticks - head->first_ticks,
		.lasted_ticks = began - t->begin_ticks};
	put_piece(t, &piece);
	t->lost += nr - piece.done;
	head->last_ticks = began;
	__atomic_store_n(&head->bytes, t->chunk_used, __ATOMIC_RELEASE);
	__atomic_fetch_add(&ring->words, piece.done, __ATOMIC_RELAXED);
	__atomic_fetch_add(&ring->pieces, 1, __ATOMIC_RELAXED);
	if (ring->live && ++t->chunk_pieces == TARGET_LIVE_PIECES)
		close_chunk(t);
	t->begin_ticks = target_ticks();
	if (!t->chunk || !t->chunk_is_raw)
		t->is_costly = t->begin_ticks - began > nr * COSTLY_TICKS;
	__atomic_fetch_add(&ring->encode_ticks, t->begin_ticks - began, __ATOMIC_RELAXED);
}

void longpole_target_emit(
	struct target_thread *t, struct target_buffer *b, uint64_t *to, unsigned flags)
{
	int idle = 0;
	if (to <= b->from)
		return;
	/* At the process's end another thread may be at it: then it takes these words as well. */
	if (!__atomic_compare_exchange_n(
		    &t->flushing, &idle, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
		return;
	if (longpole_target_attached() && !t->stopped &&
		!__atomic_load_n(&self.stopped, __ATOMIC_RELAXED))
		add_piece(t, b->from, (size_t)(to - b->from), flags);
	else
		t->begin_ticks = target_ticks();
	b->from = to;
	__atomic_store_n(&t->flushing, 0, __ATOMIC_RELEASE);
}

/* ---- threads --------------------------------------------------------------------------------- */

bool longpole_target_make_buffer(struct target_buffer *b)
{
	if (b->start)
		return true;
	uint8_t *p = map(TARGET_BUFFER_BYTES + TARGET_GUARD_BYTES, MAP_POPULATE);
	if (!p)
		return false;
	(void)longpole_target_syscall(SYS_mprotect, (long)(p + TARGET_BUFFER_BYTES),
		TARGET_GUARD_BYTES, PROT_NONE, 0, 0, 0);
	b->end = (uint64_t *)(void *)(p + TARGET_BUFFER_BYTES);
	b->start = b->from = (uint64_t *)(void *)p;
	return true;
}

struct target_buffer *longpole_target_buffer_of(struct target_thread *t, const uint64_t *p)
{
	for (unsigned i = 0; i < TARGET_BUFFERS; i++)
		if (t->buffer[i].start && p >= t->buffer[i].start && p <= t->buffer[i].end)
			return &t->buffer[i];
	return NULL;
}

/* One that has ended, or a new one. */
static struct target_thread *target_find_thread(void)
{
	for (struct target_thread *t = __atomic_load_n(&self.threads, __ATOMIC_ACQUIRE); t;
		t = t->next) {
		int dead = 0;
		if (!__atomic_load_n(&t->alive, __ATOMIC_RELAXED) &&
			__atomic_compare_exchange_n(
				&t->alive, &dead, 1, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
			return t;
	}
	struct target_thread *t = map(sizeof *t, 0);
	if (!t)
		return NULL;
	t->alive = 1;
	t->next = __atomic_load_n(&self.threads, __ATOMIC_RELAXED);
	while (!__atomic_compare_exchange_n(
		&self.threads, &t->next, t, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
		continue;
	return t;
}

static uint64_t fs_base(void)
{
	uint64_t base;
	__asm__("movq %%fs:0, %0" : "=r"(base)); /* the thread control block begins with itself */
	return base;
}

struct target_thread *longpole_target_attach_thread(void)
{
	struct target_thread *t = target_find_thread();
	if (!t || !longpole_target_make_buffer(&t->buffer[0]))
		return NULL;
	if (!t->stack)
		t->stack = map(TARGET_STACK_BYTES, 0);
	t->number = __atomic_add_fetch(&self.next_thread, 1, __ATOMIC_RELAXED);
	t->sequence = t->lost = 0;
	t->stopped = 0;
	t->is_costly = false;
	t->tid = (uint32_t)longpole_target_syscall(SYS_gettid, 0, 0, 0, 0, 0, 0);
	t->fs_base = fs_base();
	t->begin_ticks = target_ticks();
	t->tls = &longpole_memory;
	t->encoder.avx2 = self.avx2;
	t->encoder.find = target_find_head;
	t->encoder.nr_heads = 0;
	for (unsigned i = 0; i < TARGET_BUFFERS; i++) {
		t->buffer[i].in_use = false;
		t->buffer[i].from = t->buffer[i].start;
	}
	t->buffer[0].in_use = true;
	t->buffer[0].left_at = NULL;
	longpole_memory.thread = t;
	longpole_memory.pointer = t->buffer[0].start;
	longpole_memory.stamps = self.beside ? self.beside->lock_stamps() : NULL;
	if (self.has_key)
		(void)pthread_setspecific(self.key, (void *)(uintptr_t)1);
	return t;
}

void longpole_target_block_signals(uint64_t *ret_old)
{
	uint64_t all = ~UINT64_C(0);
	all &= ~(UINT64_C(1) << (SIGSEGV - 1));
	(void)longpole_target_syscall(
		SYS_rt_sigprocmask, SIG_SETMASK, (long)&all, (long)ret_old, sizeof all, 0, 0);
}

void longpole_target_restore_signals(const uint64_t *old)
{
	(void)longpole_target_syscall(
		SYS_rt_sigprocmask, SIG_SETMASK, (long)old, 0, sizeof *old, 0, 0);
}

/* Make this thread's words so far a piece; before exec, at a thread's end. */
static void target_flush(void)
{
	struct target_thread *t = longpole_memory.thread;
	uint64_t old;
	if (!t || !longpole_memory.pointer)
		return;
	longpole_target_block_signals(&old);
	struct target_buffer *b = longpole_target_buffer_of(t, longpole_memory.pointer);
	if (b) {
		longpole_target_emit(
			t, b, longpole_memory.pointer, b == t->buffer ? 0 : MEMORY_PIECE_HANDLER);
		longpole_memory.pointer = b->from = b->start;
	}
	longpole_target_restore_signals(&old);
}

static void end_chunk(bool waits)
{
	struct target_thread *t = longpole_memory.thread;
	target_flush();
	if (!t || !t->chunk)
		return;
	if (waits)
		chunk_head(t->chunk)->flags |= MEMORY_CHUNK_WAITS;
	close_chunk(t);
}

void longpole_target_let_see(bool waits)
{
	if (self.ring && self.ring->live)
		end_chunk(waits);
	else
		longpole_target_let_go();
}

/* Of the lower half any number may be held by threads that wait, of the upper one a quarter of all:
 * however many do, the others find blocks. */
void longpole_target_let_go(void)
{
	struct target_thread *t = longpole_memory.thread;
	if (self.ring && t && t->chunk && t->chunk_block >= self.ring_blocks / 2 &&
		__atomic_load_n(&self.ring->active, __ATOMIC_RELAXED) > self.ring_blocks / 4)
		end_chunk(true);
}

void longpole_target_thread_end(void)
{
	end_chunk(true);
}

/* Comes again after other destructors, which may be rewritten code, up to the last round. */
static void target_thread_ends(void *round)
{
	uintptr_t n = (uintptr_t)round;
	longpole_target_thread_end();
	if (n < ATTACH_DESTRUCTORS) {
		(void)pthread_setspecific(self.key, (void *)(n + 1));
		return;
	}
	struct target_thread *t = longpole_memory.thread;
	longpole_memory.thread = NULL;
	longpole_memory.pointer = NULL;
	if (t)
		__atomic_store_n(&t->alive, 0, __ATOMIC_RELEASE);
}

void longpole_target_flush_all(void)
{
	longpole_target_thread_end();
	for (struct target_thread *t = __atomic_load_n(&self.threads, __ATOMIC_ACQUIRE); t;
		t = t->next) {
		if (!__atomic_load_n(&t->alive, __ATOMIC_ACQUIRE) || t == longpole_memory.thread)
			continue;
		/* It may go on; what it has published is whole. */
		uint64_t *to = __atomic_load_n(&t->tls->pointer, __ATOMIC_ACQUIRE);
		struct target_buffer *b = to ? longpole_target_buffer_of(t, to) : NULL;
		if (b)
			longpole_target_emit(t, b, to, 0);
		if (t->chunk)
			close_chunk(t);
	}
}

/* ---- marks ----------------------------------------------------------------------------------- */

void longpole_target_mark(enum memory_mark mark, const uint64_t *slot)
{
	if (!longpole_target_on())
		return;
	if (!longpole_memory.pointer && !longpole_target_attach_thread())
		return;
	const struct memory_block_head *h = &mark_head[mark];
	struct target_buffer *b =
		longpole_target_buffer_of(longpole_memory.thread, longpole_memory.pointer);
	if (!b)
		return;
	if (b->end - longpole_memory.pointer < TARGET_RECORD_WORDS_MAX)
		target_flush();
	uint64_t *p = longpole_memory.pointer;
	if (!p)
		return;
	*p++ = (uint64_t)(uintptr_t)h;
	for (unsigned i = 0; i < h->nr_slots; i++) /* which the caller gives */
		*p++ = slot[i]; // NOLINT(clang-analyzer-core.uninitialized.Assign)
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	longpole_memory.pointer = p;
}

void longpole_target_call(unsigned kind, uint64_t before, uint64_t after, uint64_t a0, uint64_t a1,
	uint64_t a2, uint64_t a3)
{
	uint64_t slot[] = {kind, a0, a1, a2, a3, before, after};
	longpole_target_mark(MEMORY_MARK_call, slot);
}

void longpole_target_range(bool store, const void *address, size_t bytes)
{
	uint64_t slot[] = {(uint64_t)(uintptr_t)address, bytes};
	if (bytes)
		longpole_target_mark(store ? MEMORY_MARK_store : MEMORY_MARK_load, slot);
}

/* ---- markers (include/longpole/memory.h) ----------------------------------------------------- */

TARGET_EXPORT void longpole_memory_marker(int command, int number);
void longpole_memory_marker(int command, int number)
{
	enum { THREAD_OFF = 1, THREAD_ON, ALL_OFF, ALL_ON };
	struct target_thread *t = longpole_memory.thread;
	uint64_t now = target_ticks();
	if (command == ALL_ON) {
		if (t && self.stopped)
			t->stopped = 1; /* what is in its buffer came while it was off */
		__atomic_store_n(&self.stopped, 0, __ATOMIC_RELEASE);
	}
	if (t && (command == THREAD_ON || command == ALL_ON)) {
		struct target_buffer *b = longpole_target_buffer_of(t, longpole_memory.pointer);
		if (b && t->stopped) {
			target_flush(); /* drops it while stopped */
			t->stopped = 0;
		}
	}
	longpole_target_call(
		CALL_marker, now, now, (uint64_t)(int64_t)command, (uint64_t)(int64_t)number, 0, 0);
	if (command == THREAD_OFF || command == ALL_OFF) {
		uint64_t gap[] = {MEMORY_GAP_MARKER, now};
		longpole_target_mark(MEMORY_MARK_gap, gap);
		target_flush();
		t = longpole_memory.thread;
		if (command == ALL_OFF)
			__atomic_store_n(&self.stopped, 1, __ATOMIC_RELEASE);
		else if (t)
			t->stopped = 1;
	}
}

/* ---- start, fork, end ------------------------------------------------------------------------ */

static const char *variable(char **environment, const char *name)
{
	size_t n = strlen(name);
	for (char **e = environment; e && *e; e++)
		if (!strncmp(*e, name, n) && (*e)[n] == '=')
			return *e + n + 1;
	return NULL;
}

static void attach_ring(char **environment)
{
	const char *path = variable(environment, MEMORY_RING_VARIABLE);
	if (!path || !*path)
		return;
	uint64_t size_bytes;
	long fd = handover_open(longpole_target_syscall, path, &size_bytes);
	if (fd < 0)
		return;
	struct memory_ring_head head;
	head.magic = 0; /* (no analyser sees what the kernel writes) */
	long n = longpole_target_syscall(SYS_pread64, fd, (long)&head, sizeof head, 0, 0, 0);
	if (n == (long)sizeof head && memory_ring_fits(&head, size_bytes)) {
		long p = longpole_target_syscall(SYS_mmap, 0,
			(long)memory_ring_bytes(head.nr_blocks), PROT_READ | PROT_WRITE, MAP_SHARED,
			fd, 0);
		if (p > 0 || p < -4096) {
			self.ring = (struct memory_ring_head *)p;
			self.ring_blocks = head.nr_blocks;
		}
	}
	(void)longpole_target_syscall(SYS_close, fd, 0, 0, 0, 0, 0);
	if (!self.ring)
		return;
	self.image = __atomic_add_fetch(&self.ring->next_image, 1, __ATOMIC_RELAXED);
	self.tables = self.image;
	__atomic_fetch_add(&self.ring->attached, 1, __ATOMIC_RELAXED);
}

/* Only this thread is left, and its words so far are the parent's. */
static void in_child(void)
{
	struct target_thread *own = longpole_memory.thread;
	self.pid = (uint32_t)longpole_target_syscall(SYS_getpid, 0, 0, 0, 0, 0, 0);
	self.next_thread = 0;
	for (struct target_thread *t = self.threads; t; t = t->next) {
		t->chunk = NULL;
		t->flushing = 0;
		t->alive = t == own;
	}
	if (self.ring) {
		self.image = __atomic_add_fetch(&self.ring->next_image, 1, __ATOMIC_RELAXED);
		__atomic_fetch_add(&self.ring->attached, 1, __ATOMIC_RELAXED);
	}
	if (longpole_target_has_sites()) { /* the parent's tables go on to grow without us */
		self.tables = self.image;
		for (uint32_t i = 0; i < self.nr_modules; i++)
			send_tables(i);
		longpole_target_sites_forked();
	}
	if (!own)
		return;
	own->number = __atomic_add_fetch(&self.next_thread, 1, __ATOMIC_RELAXED);
	own->sequence = own->lost = 0;
	own->tid = self.pid;
	own->begin_ticks = target_ticks();
	struct target_buffer *b = longpole_target_buffer_of(own, longpole_memory.pointer);
	if (b)
		longpole_memory.pointer = b->from = b->start;
}

static void target_attach(char **environment)
{
	int idle = 0;
	if (!__atomic_compare_exchange_n(
		    &self.attached, &idle, 1, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
		return;
	__builtin_cpu_init();
	self.avx2 = __builtin_cpu_supports("avx2");
	self.pid = (uint32_t)longpole_target_syscall(SYS_getpid, 0, 0, 0, 0, 0, 0);
	self.nr_blocks = 1; /* index 0 is none */
	attach_ring(environment);
	add_module(mark_head, mark_head + MEMORY_MARK_NR, (const uint8_t *)"", (const uint8_t *)"");
	longpole_target_install_guard();
	self.beside = self.ring ? longpole_target_meet() : NULL;
	self.has_key = !pthread_key_create(&self.key, target_thread_ends);
	(void)pthread_atfork(NULL, NULL, in_child);
	__atomic_store_n(&self.attached, 2, __ATOMIC_RELEASE);
}

/* Of each module that has rewritten code: target/module.c. */
TARGET_EXPORT void longpole_memory_register(struct memory_block_head *heads,
	struct memory_block_head *heads_end, const uint8_t *info, const uint8_t *info_end,
	const struct memory_maybe *maybe, const struct memory_maybe *maybe_end);
void longpole_memory_register(struct memory_block_head *heads, struct memory_block_head *heads_end,
	const uint8_t *info, const uint8_t *info_end, const struct memory_maybe *maybe,
	const struct memory_maybe *maybe_end)
{
	target_attach(environ);
	target_settle(maybe, maybe_end);
	add_module(heads, heads_end, info, info_end);
}

static void target_end(void)
{
	longpole_target_flush_all();
}

static void target_start(int argc, char **argv, char **environment)
{
	(void)argc;
	(void)argv;
	target_attach(environment);
}

/* Before any constructor, of whatever module. */
__attribute__((section(".preinit_array"), used)) static void (*const start_early)(
	int, char **, char **) = target_start;
__attribute__((destructor(101), used)) static void end_late(void)
{
	target_end();
}
