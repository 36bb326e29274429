/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_ring_inside.c - the recorder's side is hostile: the code that attaches to a ring, takes
 * blocks and tables and gives them back, in a ring of any head, which changes as it goes on. The
 * input: a head before it is checked, one for afterwards, then bytes for bitmap, states and tables.
 * A heap block of the file's size stands for the mapping, so that a step beyond it is seen.
 */
#define preload_tally_end core_tally_end /* of a library that does not count */
#include "preload/preload.c"             // NOLINT(bugprone-suspicious-include)
#undef preload_tally_end
void preload_tally_end(void);
#include "preload/self.c"   // NOLINT(bugprone-suspicious-include)
#include "preload/window.c" // NOLINT(bugprone-suspicious-include)
#include "tally/tally.c"    // NOLINT(bugprone-suspicious-include)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* ---- what the rest of the library would do: nothing ------------------------------------------ */

struct preload_mutex_functions preload_mutex_functions;
struct preload_sandbox preload_sandbox;
void preload_sandbox_ids(uint32_t *ret_pid, uint32_t *ret_tid)
{
	*ret_pid = *ret_tid = 1;
}
bool preload_sandbox_inherited(const char *ring_path)
{
	(void)ring_path;
	return false;
}
void preload_env_forget(void)
{
}
void preload_real_find_all(void)
{
}
void preload_modules_forget(void)
{
}
bool preload_next_is_late(void)
{
	return false;
}
void preload_real_find(void)
{
}
bool preload_env_read(char **environment)
{
	(void)environment;
	return false;
}
const char *preload_env_ring(void)
{
	return "";
}
uint32_t preload_env_parent_image(void)
{
	return 0;
}
void preload_env_set_image(uint32_t image)
{
	(void)image;
}
void preload_modules_scan(void)
{
}
void preload_modules_check(void)
{
}
void preload_stack_warm_up(void)
{
}
void tally_entered(uint64_t key, uint64_t site)
{
	(void)key, (void)site;
}
void tally_left(void)
{
}

/* ---- one ring -------------------------------------------------------------------------------- */

enum { BLOCKS_MAX = 3, TABLES_MAX = 2, THREADS = 4, COUNTS = 40 };

static void attach_to(struct ring_head *head)
{
	memset(&preload_fresh, 0, offsetof(struct preload_fresh, fd));
	preload_fresh.head = head;
	preload_fresh.image = 1;
	preload_fresh.introduced = 1;
	preload_self = &preload_nobody;
	head->recording = RING_on; /* else it has no place */
	preload_own();
}

/* A thread that writes all that it may. */
static void write_block(struct ring_head *head)
{
	bool introduced = false;
	if (!start_block(preload_self, head, &introduced))
		return;
	memset(preload_self->cursor, 1,
		(size_t)((char *)preload_self->end - (char *)preload_self->cursor));
	preload_self->cursor = preload_self->end;
}

static void count(struct ring_head *head, const uint8_t *wild, size_t size)
{
	head->recording = RING_on;
	for (unsigned i = 0; i < COUNTS; i++) {
		struct tally_tag *t = tally_probe(
			preload_object((void *)(0x1000 + (uintptr_t)i * 64), 1, false), i);
		if (t)
			tally_entry_of(t)->n[TALLY_acquired]++;
		if (preload_self->tally && size > i) /* as who else has it mapped might */
			preload_self->tally->nr = (uint32_t)wild[i] << (wild[i] & 24),
			preload_self->tally->before = wild[size - 1 - i];
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const size_t tables_at = ring_blocks_offset(BLOCKS_MAX) + BLOCKS_MAX * RING_BLOCK_BYTES,
		     bytes = tables_at + tally_bytes(TABLES_MAX, RING_EVENTS);
	struct ring_head now, later;
	if (size < 2 * sizeof now)
		return 0;
	memcpy(&now, data, sizeof now);
	memcpy(&later, data + sizeof now, sizeof later);
	data += 2 * sizeof now;
	size -= 2 * sizeof now;
	/* What every such head has: else nothing comes behind it. */
	now.magic = RING_MAGIC;
	now.version = RING_VERSION;
	now.block_bytes = RING_BLOCK_BYTES;
	struct ring_head *head = aligned_alloc(PRELOAD_PAGE, (bytes + 4095) / 4096 * 4096);
	if (!head)
		return 0;
	memset(head, 0, bytes);
	memcpy(head, &now, sizeof now);
	memcpy(head->free_map, data, size < 64 ? size : 64);
	if (layout_of(head, bytes, &preload_ring)) {
		if (preload_ring.nr_tables && size)
			memcpy((char *)head + preload_ring.tables_offset, data,
				size < 256 ? size : 256);
		memcpy(head, &later, sizeof later);
		attach_to(head);
		window[0].start = (char *)head;
		for (unsigned i = 0; i < THREADS; i++) {
			preload_self->number = 0;
			write_block(head);
			if (preload_ring.nr_tables)
				count(head, data, size);
			preload_tally_end();
			preload_block_finish(preload_self);
		}
	}
	preload_fresh.head = NULL;
	free(head);
	return 0;
}
