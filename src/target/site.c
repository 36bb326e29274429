/* SPDX-License-Identifier: Apache-2.0 */
/* site.c - blocks that are made while the program runs, and their tables. */
#include "target/site.h"

#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>

enum {
	OBJECTS_MAX = 256,
	MODULES_MAX = 16384, /* as the reader takes */
	BATCH = 2048,        /* sites of a table */
	INFO_BYTES = 14,     /* of a site, at most */
	INFO_AWAY = 1 << 29, /* where the descriptions seem to be, from the blocks */
};

struct site {
	struct memory_block_head head;
	uint64_t code; /* behind the call that said it */
	uint16_t object;
	uint8_t direction, size;
};
struct arena { /* mapped once */
	struct target_site_entry table[1 << TARGET_SITE_BITS];
	struct site site[TARGET_SITES_MAX];
	struct target_place object[OBJECTS_MAX];
	struct memory_block_head heads[BATCH];
	uint8_t info[BATCH * INFO_BYTES];
};

struct target_site_entry *longpole_target_site_table;
static struct {
	struct arena *arena;
	uint32_t nr, nr_sent; /* atomic; changed with the lock */
	uint32_t nr_objects, nr_modules;
	int locked;
} self;

static void site_lock(uint64_t *ret_signals)
{
	longpole_target_block_signals(ret_signals);
	while (__atomic_exchange_n(&self.locked, 1, __ATOMIC_ACQUIRE))
		(void)longpole_target_syscall(SYS_sched_yield, 0, 0, 0, 0, 0, 0);
}

static void site_unlock(const uint64_t *signals)
{
	__atomic_store_n(&self.locked, 0, __ATOMIC_RELEASE);
	longpole_target_restore_signals(signals);
}

bool longpole_target_make_sites(void)
{
	if (self.arena || !longpole_target_on())
		return self.arena;
	long p = longpole_target_syscall(SYS_mmap, 0, sizeof *self.arena, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (p < 0 && p > -4096)
		return false;
	self.arena = (struct arena *)p;
	longpole_target_site_table = self.arena->table;
	return true;
}

bool longpole_target_has_sites(void)
{
	return self.arena;
}

const struct memory_block_head *longpole_target_sites(uintptr_t *ret_nr)
{
	*ret_nr = TARGET_SITES_MAX * (sizeof(struct site) / sizeof(struct memory_block_head));
	return &self.arena->site[0].head;
}

void longpole_target_sites_forked(void)
{
	self.locked = 0;
	self.nr_sent = 0;
}

/* ---- making ---------------------------------------------------------------------------------- */

static bool site_find_object(uintptr_t code, uint16_t *ret)
{
	struct target_place *o = self.arena->object;
	for (uint32_t i = 0; i < self.nr_objects; i++)
		if (code - o[i].low < o[i].high - o[i].low) {
			*ret = (uint16_t)i;
			return true;
		}
	if (self.nr_objects == OBJECTS_MAX)
		return false;
	longpole_target_find_place(code, &o[self.nr_objects]);
	*ret = (uint16_t)self.nr_objects++;
	return true;
}

static uint64_t site_make(uint64_t key)
{
	size_t i = target_site_hash(key);
	for (; self.arena->table[i].key; i = (i + 1) % (1u << TARGET_SITE_BITS))
		if (self.arena->table[i].key == key)
			return self.arena->table[i].head;
	struct site *s = &self.arena->site[self.nr];
	s->code = key >> 8;
	s->direction = key >> 5 & 3;
	s->size = key & 31;
	if (self.nr == TARGET_SITES_MAX || !site_find_object(s->code, &s->object))
		return 0;
	if (s->direction == TARGET_SITE_CALLS)
		s->head.terminator = MEMORY_TERM_CALL;
	else
		s->head.nr_slots = 1;
	__atomic_store_n(&self.nr, self.nr + 1, __ATOMIC_RELEASE);
	self.arena->table[i].head = (uint64_t)(uintptr_t)&s->head;
	__atomic_store_n(&self.arena->table[i].key, key, __ATOMIC_RELEASE);
	return self.arena->table[i].head;
}

uint64_t longpole_target_make_site(uint64_t key)
{
	uint64_t signals;
	site_lock(&signals);
	uint64_t head = site_make(key);
	site_unlock(&signals);
	return head;
}

void longpole_target_called(uintptr_t code)
{
	if (self.arena)
		(void)target_site(
			longpole_target_site_table, target_site_key(code, TARGET_SITE_CALLS, 0));
}

/* ---- sending --------------------------------------------------------------------------------- */

/* As in memory/stream/stream.h: one instruction, of which nothing is known, and its access. */
static size_t put_info(uint8_t *p, const struct site *s)
{
	enum { NONE = 255 };
	bool accesses = s->direction != TARGET_SITE_CALLS;
	const uint8_t info[INFO_BYTES] = {1, accesses, 1, 0, 0, s->direction, s->size, 0, 0, 0, 0,
		0, NONE, NONE}; /* no ticks: stamps are around it */
	size_t n = s->direction == MEMORY_ACCESS_BOTH ? sizeof info : sizeof info - 2;
	for (size_t i = 0; i < n; i++)
		p[i] = info[i];
	return n;
}

/* Those of one object among [from, to). */
static void site_send(uint16_t object, uint32_t from, uint32_t to)
{
	struct arena *a = self.arena;
	const struct target_place *o = &a->object[object];
	struct target_table t = {.head = {.module = TARGET_MODULES_MAX + self.nr_modules,
					 .load_bias = o->load_bias,
					 .first_index = longpole_target_nr_blocks(),
					 .flags = MEMORY_TABLE_IN_PLACE},
		.path = o->path,
		.heads = a->heads,
		.info = a->info,
		.heads_at = o->low,
		.info_at = o->low + INFO_AWAY};
	if (t.head.module >= MODULES_MAX)
		return;
	for (uint32_t i = from; i < to; i++) {
		struct site *s = &a->site[i];
		if (s->object != object || !longpole_target_number(&s->head))
			continue;
		uint64_t at = t.heads_at + t.nr_heads * sizeof *a->heads;
		a->heads[t.nr_heads++] =
			(struct memory_block_head){.code = (int32_t)(int64_t)(s->code - 1 - at),
				.info = (int32_t)(int64_t)(t.info_at + t.info_bytes -
							   (at + sizeof(int32_t))),
				.nr_slots = s->head.nr_slots,
				.terminator = s->head.terminator};
		t.info_bytes += put_info(a->info + t.info_bytes, s);
	}
	if (!t.nr_heads)
		return;
	self.nr_modules++;
	longpole_target_send_table(&t);
}

void longpole_target_send_sites(void)
{
	uint64_t signals;
	if (__atomic_load_n(&self.nr_sent, __ATOMIC_ACQUIRE) ==
		__atomic_load_n(&self.nr, __ATOMIC_ACQUIRE))
		return;
	site_lock(&signals);
	while (self.nr_sent < self.nr) {
		uint32_t to = self.nr - self.nr_sent > BATCH ? self.nr_sent + BATCH : self.nr;
		for (uint32_t i = 0; i < self.nr_objects; i++)
			site_send((uint16_t)i, self.nr_sent, to);
		__atomic_store_n(&self.nr_sent, to, __ATOMIC_RELEASE);
	}
	site_unlock(&signals);
}
