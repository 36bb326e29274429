/* SPDX-License-Identifier: Apache-2.0 */
/* test_memory_live.c - laws: how long a writer takes changes nothing in what is read; and whoever
 * waits for others does not hold them up for ever. */
#include "memory/stream/live.h"
#include "test.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { ACCESS = 1, CALL, BLOCKS, HEADS_AT = 0x10000, INFO_AT = 0x20000, LATE_NS = 300000000 };

/* Block ACCESS loads from the address in its slot; block CALL is a call record. */
static struct memory_block_head head[BLOCKS];
static uint8_t info[16];

static int32_t to_info(unsigned block, size_t at)
{
	return (int32_t)(INFO_AT + at -
			 (HEADS_AT + block * sizeof *head +
				 offsetof(struct memory_block_head, info)));
}

static void put_table(
	struct memory_live *l, enum memory_table_section section, const void *bytes, uint64_t size)
{
	uint8_t chunk[512];
	struct memory_chunk_head of = {.image = 1, .tables = 1};
	struct memory_table_head t = {.section = section,
		.address = section == MEMORY_TABLE_BLOCKS ? HEADS_AT : INFO_AT,
		.bytes = size};
	memory_table_chunk(chunk, sizeof chunk, &of, &t, bytes);
	struct memory_chunk_head h;
	memcpy(&h, chunk, sizeof h);
	assert_int_equal(memory_live_put(l, chunk, h.bytes), BASE_OK);
}

static void put_tables(struct memory_live *l)
{
	const uint8_t description[] = {0, 0, /* of block 0 */
		1, 1, 4, 0, 0, MEMORY_ACCESS_LOAD, 8, 0, 0, 0, 0, 0};
	memcpy(info, description, sizeof description);
	head[0] = (struct memory_block_head){.info = to_info(0, 0)};
	head[ACCESS] =
		(struct memory_block_head){.code = 64, .info = to_info(ACCESS, 2), .nr_slots = 1};
	head[CALL] = (struct memory_block_head){.info = MEMORY_MARK_call,
		.nr_slots = 7,
		.flags = MEMORY_BLOCK_MARK | 2 << MEMORY_BLOCK_TICKS_SHIFT};
	put_table(l, MEMORY_TABLE_BLOCKS, head, sizeof head);
	put_table(l, MEMORY_TABLE_INFO, info, sizeof info);
}

struct to_put {
	uint64_t thread, sequence;
	uint32_t flags, padding_bytes;
	uint16_t address;
	bool ends;     /* a call record: the thread ends */
	uint8_t joins; /* or it joined the thread of this handle */
	uint64_t handle, begins;
	bool other; /* of another process */
};

static void put(struct memory_live *l, struct to_put c)
{
	static uint8_t chunk[MEMORY_CHUNK_MAX_BYTES];
	uint8_t *p = chunk + sizeof(struct memory_chunk_head);
	const uint8_t access[] = {MEMORY_TOKEN_BLOCK, ACCESS, MEMORY_SLOT_LAST << 4 | 2,
		(uint8_t)(c.address << 1), (uint8_t)(c.address >> 7), MEMORY_TOKEN_END};
	const uint8_t end[] = {MEMORY_TOKEN_BLOCK, CALL, MEMORY_SLOT_LAST << 4 | 1,
		MEMORY_CALL_thread_end << 1, 0, 0, 0, 0, 0, 0, MEMORY_TOKEN_END};
	const uint8_t join[] = {MEMORY_TOKEN_BLOCK, CALL, MEMORY_SLOT_LAST << 4 | 1,
		MEMORY_CALL_thread_join << 1, MEMORY_SLOT_LAST << 4 | 1, (uint8_t)(c.joins << 1), 0,
		0, 0, 0, 0, MEMORY_TOKEN_END};
	const uint8_t *tokens = c.ends ? end : c.joins ? join : access;
	size_t nr = c.ends ? sizeof end : c.joins ? sizeof join : sizeof access;
	*p++ = c.ends || c.joins ? 8 : 2; /* words */
	p = memset(p, 0, 3);
	p += 3;
	*p++ = (uint8_t)nr;
	memcpy(p, tokens, nr);
	const struct memory_chunk_head h = {.magic = MEMORY_CHUNK_MAGIC,
		.version = 3, /* all in one plane */
		.type = MEMORY_CHUNK_STREAM,
		.bytes = (uint32_t)((size_t)(p - chunk) + nr + c.padding_bytes),
		.image = c.other ? 2 : 1,
		.tables = 1,
		.thread = c.thread,
		.sequence = c.sequence,
		.fs_base = c.handle,
		.first_ticks = c.begins,
		.last_ticks = c.begins,
		.flags = c.flags};
	memcpy(chunk, &h, sizeof h);
	assert_int_equal(memory_live_put(l, chunk, h.bytes), BASE_OK);
	memory_live_commit(l);
}

static struct memory_live *begin(void)
{
	struct memory_live *l;
	assert_int_equal(memory_live_new(4, 3, false, &l, NULL), BASE_OK);
	memory_live_clock(l, (struct memory_clock){.factor = UINT64_C(1) << 40});
	put_tables(l);
	return l;
}

/* The address of the thread's next access; 0: there is nothing now; UINT64_MAX: no more. */
static uint64_t next(struct memory_live *l, int thread)
{
	struct memory_batch b;
	struct base_err err = {0};
	enum base_status s = memory_source_next(memory_live_source(l), thread, &b, &err);
	if (s == BASE_END)
		return UINT64_MAX;
	if (s != BASE_OK)
		fail_msg("%s", err.cause[0]);
	for (size_t i = 0; i < b.nr; i++)
		if (b.item[i].kind <= MEMORY_ATOMIC)
			return b.item[i].address;
	return 0;
}

struct reader {
	struct memory_live *live;
	uint64_t address;
	bool done; /* atomic */
};

static void *read_of(struct reader *r, int thread)
{
	r->address = next(r->live, thread);
	__atomic_store_n(&r->done, true, __ATOMIC_RELEASE);
	return NULL;
}

static void *read_first(void *ctx)
{
	return read_of(ctx, 0);
}

static void *read_second(void *ctx)
{
	return read_of(ctx, 1);
}

static void test_late(void **state)
{
	struct memory_live *l = begin();
	struct reader r = {.live = l};
	const struct timespec late = {.tv_nsec = LATE_NS};
	pthread_t analysis;
	(void)state;
	put(l, (struct to_put){.thread = 1, .address = 0x1000});
	put(l, (struct to_put){.thread = 2, .address = 0x2000});
	assert_int_equal(next(l, 0), 0x1000);
	assert_int_equal(next(l, 1), 0x2000);
	assert_int_equal(pthread_create(&analysis, NULL, read_second, &r), 0);
	put(l, (struct to_put){.thread = 1, .sequence = 1, .address = 0x1008});
	nanosleep(&late, NULL);
	assert_false(__atomic_load_n(&r.done, __ATOMIC_ACQUIRE));
	put(l, (struct to_put){.thread = 2, .sequence = 1, .address = 0x2008});
	pthread_join(analysis, NULL);
	assert_int_equal(r.address, 0x2008);
	assert_int_equal(next(l, 0), 0x1008);
	assert_int_equal(memory_live_late(l), 0);
	memory_live_end(l);
	assert_int_equal(next(l, 1), UINT64_MAX);
	memory_source_close(memory_live_source(l));
}

/* The second thread says nothing more, and the first one goes on: how many bytes go ahead? */
static uint64_t gone_ahead(uint32_t flags, uint64_t *ret_late)
{
	enum { PADDING = 1 << 19 };
	struct memory_live *l = begin();
	struct reader r = {.live = l};
	const struct timespec moment = {.tv_nsec = 1000000};
	pthread_t analysis;
	uint64_t bytes = 0, sequence = 1;
	put(l, (struct to_put){.thread = 1, .address = 0x1000});
	put(l, (struct to_put){.thread = 2, .flags = flags, .address = 0x2000});
	assert_int_equal(next(l, 1), 0x2000);
	assert_int_equal(pthread_create(&analysis, NULL, read_second, &r), 0);
	while (!__atomic_load_n(&r.done, __ATOMIC_ACQUIRE)) {
		if (!memory_live_has_room(l)) {
			nanosleep(&moment, NULL); /* until it looks */
			continue;
		}
		put(l, (struct to_put){
			       .thread = 1, .sequence = sequence++, .padding_bytes = PADDING});
		nanosleep(&moment, NULL);
		bytes += PADDING;
	}
	pthread_join(analysis, NULL);
	assert_int_equal(r.address, 0);
	*ret_late = memory_live_late(l);
	memory_live_end(l);
	memory_source_close(memory_live_source(l));
	return bytes;
}

static void test_left_behind(void **state)
{
	uint64_t late;
	(void)state;
	assert_true(gone_ahead(0, &late) >= MEMORY_LIVE_AHEAD_BYTES / 2);
	assert_int_equal(late, 1);
	assert_true(gone_ahead(MEMORY_CHUNK_WAITS, &late) >= MEMORY_LIVE_AHEAD_BYTES / 16);
	assert_int_equal(late, 0); /* it was known to wait */
}

static void test_ends(void **state)
{
	struct memory_live *l = begin();
	(void)state;
	put(l, (struct to_put){.thread = 1, .address = 0x1000});
	put(l, (struct to_put){.thread = 2, .ends = true});
	assert_int_equal(next(l, 1), 0); /* its call */
	assert_int_equal(next(l, 1), 0); /* and nobody waits for more */
	assert_int_equal(memory_live_late(l), 0);
	memory_live_end(l);
	memory_source_close(memory_live_source(l));
}

/* A handle is another thread's after the join; that one may be here before the join is read. */
static void test_handle_is_used_again(void **state)
{
	struct memory_live *l = begin();
	struct memory_batch b;
	(void)state;
	put(l, (struct to_put){.thread = 1, .joins = 17, .begins = 1 << 16});
	put(l, (struct to_put){.thread = 2, .address = 0x2000, .handle = 17, .begins = 1 << 14});
	put(l, (struct to_put){.thread = 3, .address = 0x3000, .handle = 17, .begins = 1 << 18});
	assert_int_equal(memory_source_next(memory_live_source(l), 0, &b, NULL), BASE_OK);
	assert_int_equal(b.nr_calls, 1);
	assert_int_equal(b.call[0].kind, MEMORY_CALL_thread_join);
	assert_int_equal(b.call[0].argument[0], 1);
	assert_int_equal(next(l, 1), 0x2000);
	assert_int_equal(next(l, 1), UINT64_MAX);
	assert_int_equal(next(l, 2), 0x3000);
	memory_source_close(memory_live_source(l));
}

/* On a busy machine the first thread's words may come after those of a thread that it created. */
static void test_first_comes_late(void **state)
{
	struct memory_live *l = begin();
	struct reader r = {.live = l};
	const struct timespec late = {.tv_nsec = LATE_NS};
	pthread_t analysis;
	(void)state;
	put(l, (struct to_put){.thread = 2, .address = 0x2000});
	assert_int_equal(pthread_create(&analysis, NULL, read_first, &r), 0);
	nanosleep(&late, NULL);
	assert_false(__atomic_load_n(&r.done, __ATOMIC_ACQUIRE));
	put(l, (struct to_put){.thread = 1, .address = 0x1000});
	assert_int_equal(pthread_join(analysis, NULL), 0);
	assert_int_equal(r.address, 0x1000);
	assert_int_equal(next(l, 1), 0x2000);
	assert_int_equal(memory_live_threads(l), 2);
	memory_live_end(l);
	memory_source_close(memory_live_source(l));
}

/* Or never, if it is a library's: the lowest number is the first then, as in a file. */
static void test_first_never_comes(void **state)
{
	(void)state;
	for (int how = 0; how < 2; how++) {
		struct memory_live *l = begin();
		put(l, (struct to_put){.thread = 3, .address = 0x3000});
		put(l, (struct to_put){.thread = 2, .address = 0x2000});
		uint64_t sequence = 1;
		for (uint64_t bytes = 0; how && bytes < MEMORY_LIVE_AHEAD_BYTES;
			bytes += MEMORY_CHUNK_MAX_BYTES / 2)
			put(l, (struct to_put){.thread = 3,
				       .sequence = sequence++,
				       .address = 0x3008,
				       .padding_bytes = MEMORY_CHUNK_MAX_BYTES / 2});
		if (!how)
			memory_live_end(l);
		assert_int_equal(next(l, 0), 0x2000);
		assert_int_equal(next(l, 1), 0x3000);
		assert_int_equal(memory_live_threads(l), 2);
		memory_live_end(l);
		memory_source_close(memory_live_source(l));
	}
}

static void test_others_are_left_out(void **state)
{
	struct memory_live *l = begin();
	(void)state;
	put(l, (struct to_put){.thread = 1, .address = 0x1000});
	put(l, (struct to_put){.thread = 1, .address = 0x2000, .other = true});
	memory_live_end(l);
	assert_int_equal(next(l, 0), 0x1000);
	assert_int_equal(next(l, 0), UINT64_MAX);
	assert_int_equal(memory_live_others(l), 1);
	memory_source_close(memory_live_source(l));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_late),
		cmocka_unit_test(test_left_behind),
		cmocka_unit_test(test_ends),
		cmocka_unit_test(test_handle_is_used_again),
		cmocka_unit_test(test_first_comes_late),
		cmocka_unit_test(test_first_never_comes),
		cmocka_unit_test(test_others_are_left_out),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
