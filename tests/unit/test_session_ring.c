/* SPDX-License-Identifier: Apache-2.0 */
/* test_session_ring.c - known answers: what the words of a ring become in the trace. */
#include "session/ring.h"
#include "record/jit.h"
#include "record_fixture.h"

enum { CODE = 0x400000, BIAS = 0x3ff000, RECORDS_MAX = 20000 };

static struct trace_record record[RECORDS_MAX];

static struct fake_thread begin(
	struct fixture *f, uint32_t image, uint32_t pid, uint64_t number, uint32_t block)
{
	struct fake_thread t = {.f = f,
		.image = image,
		.pid = pid,
		.tid = pid + (uint32_t)number - 1,
		.number = number};
	fake_take_block(&t, block);
	if (number == 1) {
		fake_image(&t, 10, 0);
		fake_module(&t, 11, CODE, CODE + 0x10000, BIAS, "/bin/prog");
	}
	return t;
}

/* A connection by a path: accepted and connecting ends are known by the path alone, in their order.
 * A socket is described before it is connected, and again after. */
static void test_connects_late(void **state)
{
	struct fixture f;
	(void)state;
	fixture_open(&f);
	struct fake_thread a = begin(&f, 1, 100, 1, 0), b = begin(&f, 2, 200, 1, 1);
	const struct {
		struct fake_thread *t;
		uint64_t incarnation, ino;
		const char *name;
	} told[] = {{&a, 1, 50, "unix - -"}, {&b, 1, 60, "unix /tmp/s -"},
		{&a, 1, 50, "unix - /tmp/s"}, {&a, 2, 51, "unix - /tmp/s"},
		{&b, 2, 61, "unix /tmp/s -"}, {&a, 3, 52, "tcp 0.0.0.0:0 -"},
		{&b, 3, 62, "tcp 10.0.0.1:1 10.0.0.2:2"}, {&a, 3, 52, "tcp 10.0.0.2:2 10.0.0.1:1"}};
	for (size_t i = 0; i < BASE_COUNT(told); i++)
		fake_descriptor(told[i].t, 100 + i, told[i].incarnation, TRACE_OBJECT_socket,
			told[i].ino, 0, told[i].name);
	for (uint64_t i = 1; i <= 3; i++) {
		FAKE(&a, 200 + i, TRACE_io_begin, fake_object(TRACE_OBJECT_socket, i), 0, 1, CODE);
		FAKE(&b, 300 + i, TRACE_io_begin, fake_object(TRACE_OBJECT_socket, i), 0, 1, CODE);
	}
	fixture_finish(&f);
	assert_int_equal(fixture_records(&f, record, RECORDS_MAX), 6);
	const struct trace_defs *d = fixture_defs(&f);
	for (size_t i = 0; i < 3; i++) {
		const struct trace_object *x = &d->objects[record[i].u.io_begin.object],
					  *y = &d->objects[record[i + 3].u.io_begin.object];
		assert_int_equal(x->address, 50 + i);
		assert_int_equal(y->address, 60 + i);
		assert_int_not_equal(x->pair, 0);
		assert_int_equal(x->pair, y->pair);
		assert_int_equal(x->side + y->side, 1);
	}
	assert_string_equal(
		trace_text_of(d, d->objects[record[0].u.io_begin.object].name), "unix - /tmp/s");
	fixture_close(&f);
}

/* Inodes of connected sockets: of the second one, nobody can tell any more. */
static uint64_t told_peer(void *ctx, uint64_t ino)
{
	static const uint64_t peer[][2] = {
		{60, 52}, {62, 50}, {50, 62}, {63, 54}, {54, 63}, {55, 99}};
	(void)ctx;
	for (size_t i = 0; i < BASE_COUNT(peer); i++)
		if (peer[i][0] == ino)
			return peer[i][1];
	return 0;
}

/* Threads connect at once, and are seen in another order than they are accepted in: the kernel says
 * who is connected to whom. One that it says nothing about is matched by order with one of those.
 */
static void test_crossed_connections(void **state)
{
	static const struct {
		uint64_t ino;
		const char *name;
	} of_a[] = {{50, "unix - /tmp/s"}, {51, "unix - /tmp/s"}, {52, "unix - /tmp/s"},
		{53, "unix - /tmp/s"}, {54, "unix - -"}, {55, "unix - /tmp/s"}},
	  of_b[] = {{60, "unix /tmp/s -"}, {61, "unix /tmp/s -"}, {62, "unix /tmp/s -"},
		  {64, "unix /tmp/s -"}, {63, "unix /tmp/s -"}, {65, "unix /tmp/s -"}};
	static const uint64_t partner[] = {2, 1, 0, 3};
	struct fixture f;
	(void)state;
	fixture_open(&f);
	f.converter.world.peer_of = told_peer;
	struct fake_thread a = begin(&f, 1, 100, 1, 0), b = begin(&f, 2, 200, 1, 1);
	for (uint64_t i = 0; i < BASE_COUNT(of_a); i++) {
		fake_descriptor(
			&a, 100 + i, i + 1, TRACE_OBJECT_socket, of_a[i].ino, 0, of_a[i].name);
		fake_descriptor(
			&b, 100 + i, i + 1, TRACE_OBJECT_socket, of_b[i].ino, 0, of_b[i].name);
	}
	for (uint64_t i = 1; i <= BASE_COUNT(of_a); i++) {
		FAKE(&a, 200 + i, TRACE_io_begin, fake_object(TRACE_OBJECT_socket, i), 0, 1, CODE);
		FAKE(&b, 300 + i, TRACE_io_begin, fake_object(TRACE_OBJECT_socket, i), 0, 1, CODE);
	}
	fixture_finish(&f);
	assert_int_equal(fixture_records(&f, record, RECORDS_MAX), 12);
	const struct trace_defs *d = fixture_defs(&f);
	/* The last one's peer was not recorded: it is nobody else's. */
	assert_int_equal(d->objects[record[5].u.io_begin.object].pair, 0);
	assert_int_equal(d->objects[record[11].u.io_begin.object].pair, 0);
	for (size_t i = 0; i < BASE_COUNT(partner); i++) {
		const struct trace_object
			*x = &d->objects[record[i].u.io_begin.object],
			*y = &d->objects[record[6 + partner[i]].u.io_begin.object];
		assert_int_equal(x->address, 50 + i);
		assert_int_not_equal(x->pair, 0);
		assert_int_equal(x->pair, y->pair);
		assert_int_equal(x->side + y->side, 1);
	}
	fixture_close(&f);
}

/* The last to tell what it was before it was connected does not have the last word. */
static void test_connected_stays(void **state)
{
	struct fixture f;
	(void)state;
	fixture_open(&f);
	struct fake_thread a = begin(&f, 1, 100, 1, 0), b = begin(&f, 2, 200, 1, 1);
	const char *connected = "tcp 10.0.0.2:2 10.0.0.1:1";
	fake_descriptor(&a, 100, 1, TRACE_OBJECT_socket, 50, 0, connected);
	fake_descriptor(&b, 101, 1, TRACE_OBJECT_socket, 50, 0, "tcp 0.0.0.0:0 -");
	FAKE(&b, 200, TRACE_io_begin, fake_object(TRACE_OBJECT_socket, 1), 0, 1, CODE);
	fixture_finish(&f);
	assert_int_equal(fixture_records(&f, record, RECORDS_MAX), 1);
	const struct trace_defs *d = fixture_defs(&f);
	assert_string_equal(
		trace_text_of(d, d->objects[record[0].u.io_begin.object].name), connected);
	fixture_close(&f);
}

static void test_names_each_thing_once(void **state)
{
	struct fixture f;
	uint64_t a = fake_object(TRACE_OBJECT_mutex, 0x7f0000001000);
	(void)state;
	fixture_open(&f);
	struct fake_thread one = begin(&f, 1, 100, 1, 0), two = begin(&f, 1, 100, 2, 1),
			   other = begin(&f, 2, 200, 1, 2);
	FAKE(&one, 20, TRACE_lock_acquire, a, CODE + 0x123);
	FAKE(&two, 30, TRACE_lock_acquire, a, CODE + 0x123);
	FAKE(&two, 31, TRACE_lock_release, a, 0x100); /* outside every module */
	FAKE(&other, 40, TRACE_lock_acquire, a, CODE + 0x123);
	fixture_finish(&f);
	size_t nr = fixture_records(&f, record, RECORDS_MAX);
	const struct trace_defs *d = fixture_defs(&f);
	assert_int_equal(nr, 4);
	const struct trace_record *r = record;
	assert_int_equal(r[0].time_ns, 20);
	assert_int_equal(r[0].u.lock_acquire.object, r[1].u.lock_acquire.object);
	assert_int_not_equal(r[0].u.lock_acquire.object, r[3].u.lock_acquire.object);
	assert_int_equal(r[0].u.lock_acquire.site, r[1].u.lock_acquire.site);
	assert_int_equal(
		r[0].u.lock_acquire.site, r[3].u.lock_acquire.site); /* one file, one site */
	assert_int_not_equal(r[0].stream, r[1].stream);
	const struct trace_site *site = &d->sites[r[0].u.lock_acquire.site];
	assert_int_equal(site->offset, CODE + 0x123 - BIAS);
	assert_string_equal(trace_text_of(d, d->modules[site->module].path), "/bin/prog");
	assert_string_equal(trace_text_of(d, d->modules[site->module].build_id), "cdab");
	site = &d->sites[r[2].u.lock_release.site];
	assert_int_equal(site->module, 0);
	assert_int_equal(site->offset, 0x100);
	const struct trace_object *object = &d->objects[r[3].u.lock_acquire.object];
	assert_int_equal(object->type, TRACE_OBJECT_mutex);
	assert_int_equal(object->address, 0x7f0000001000);
	const struct trace_process *process = &d->processes[d->streams[r[3].stream].process];
	assert_int_equal(process->pid, 200);
	assert_int_equal(object->process, process->process);
	assert_string_equal(trace_text_of(d, process->name), "prog");
	assert_string_equal(trace_text_of(d, process->command), "/bin/prog 'a b'");
	fixture_close(&f);
}

static void test_fork_shares_what_is_shared(void **state)
{
	struct fixture f;
	uint64_t own = fake_object(TRACE_OBJECT_mutex, 0x10000),
		 shared = fake_object(TRACE_OBJECT_mutex, 0x20000) | RING_OBJECT_SHARED;
	(void)state;
	fixture_open(&f);
	struct fake_thread parent = begin(&f, 1, FIXTURE_GONE_PID, 1, 0);
	FAKE(&parent, 20, TRACE_lock_acquire, own, CODE);
	FAKE(&parent, 21, TRACE_lock_acquire, shared, CODE);
	struct fake_thread child = {.f = &f,
		.image = 2,
		.parent = 1,
		.pid = FIXTURE_GONE_PID + 1,
		.tid = FIXTURE_GONE_PID + 1,
		.number = 1};
	fake_take_block(&child, 1);
	fake_image(&child, 30, 77);
	FAKE(&child, 31, TRACE_lock_acquire, own, CODE); /* its modules are its parent's */
	FAKE(&child, 32, TRACE_lock_acquire, shared, CODE);
	fixture_finish(&f);
	size_t nr = fixture_records(&f, record, RECORDS_MAX);
	const struct trace_defs *d = fixture_defs(&f);
	assert_int_equal(nr, 4);
	const struct trace_record *p = record, *c = record + 2;
	assert_int_equal(c[0].time_ns, 31);
	assert_int_not_equal(p[0].u.lock_acquire.object, c[0].u.lock_acquire.object);
	assert_int_equal(p[1].u.lock_acquire.object, c[1].u.lock_acquire.object);
	assert_int_equal(p[0].u.lock_acquire.site, c[0].u.lock_acquire.site);
	assert_int_equal(d->objects[p[1].u.lock_acquire.object].process, 0);
	assert_int_equal(d->processes[d->streams[c[0].stream].process].parent,
		d->streams[p[0].stream].process);
	fixture_close(&f);
}

static void test_stacks_are_a_tree(void **state)
{
	struct fixture f;
	uint64_t a = fake_object(TRACE_OBJECT_mutex, 0x10000);
	(void)state;
	fixture_open(&f);
	struct fake_thread t = begin(&f, 1, 100, 1, 0);
	FAKE(&t, 20, RING_stack, 3, CODE + 1, CODE + 2, CODE + 3);
	FAKE(&t, 20, TRACE_lock_wait, a, CODE + 9, 1);
	FAKE(&t, 30, RING_stack, 2, CODE + 2, CODE + 3);
	FAKE(&t, 30, TRACE_lock_wait, a, CODE + 9, 1);
	FAKE(&t, 40, TRACE_lock_wait, a, CODE + 9, 0);
	fixture_finish(&f);
	size_t nr = fixture_records(&f, record, RECORDS_MAX);
	const struct trace_defs *d = fixture_defs(&f);
	assert_int_equal(nr, 3);
	uint32_t whole = record[0].u.lock_wait.stack, part = record[1].u.lock_wait.stack;
	assert_int_equal(d->sites[d->stacks[whole].site].offset, CODE + 1 - BIAS);
	assert_int_equal(d->stacks[whole].parent, part);
	assert_int_equal(d->sites[d->stacks[part].site].offset, CODE + 2 - BIAS);
	assert_int_equal(d->stacks[d->stacks[part].parent].parent, 0);
	assert_int_equal(record[2].u.lock_wait.stack, 0);
	fixture_close(&f);
}

static const struct trace_object *io(struct fixture *f, size_t i)
{
	assert_int_equal(record[i].kind, TRACE_io_begin);
	return &fixture_defs(f)->objects[record[i].u.io_begin.object];
}

static void test_descriptors_meet(void **state)
{
	struct fixture f;
	(void)state;
	fixture_open(&f);
	struct fake_thread a = begin(&f, 1, 100, 1, 0), b = begin(&f, 2, 200, 1, 1);
	const struct {
		struct fake_thread *t;
		enum trace_object_type type;
		uint64_t ino, pair_ino;
		const char *name;
	} ends[] = {
		{&a, TRACE_OBJECT_pipe, 50, 0, ""},
		{&b, TRACE_OBJECT_pipe, 50, 0, ""}, /* 1: the same pipe */
		{&a, TRACE_OBJECT_socket, 60, 0, "tcp 127.0.0.1:80 127.0.0.1:4000"},
		{&b, TRACE_OBJECT_socket, 61, 0,
			"tcp 127.0.0.1:4000 127.0.0.1:80"}, /* 3: its peer */
		{&a, TRACE_OBJECT_socket, 62, 0, "tcp 127.0.0.1:80 127.0.0.1:4001"}, /* 4: alone */
		{&a, TRACE_OBJECT_socket, 63, 0,
			"tcp 127.0.0.1:80 127.0.0.1:4000"}, /* 5, 6: the ports again */
		{&b, TRACE_OBJECT_socket, 64, 0, "tcp 127.0.0.1:4000 127.0.0.1:80"},
		{&a, TRACE_OBJECT_socket, 70, 71, "unix"}, /* 7, 8: a socketpair */
		{&a, TRACE_OBJECT_socket, 71, 70, "unix"},
		{&a, TRACE_OBJECT_eventfd, 0, 0, ""}, /* 9, 10: no inode: two things */
		{&b, TRACE_OBJECT_eventfd, 0, 0, ""},
		{&a, TRACE_OBJECT_file, 80, 0, "/tmp/x"}, /* 11, 12: one file */
		{&b, TRACE_OBJECT_file, 80, 0, "/tmp/x"},
		{&b, TRACE_OBJECT_file, 80, 0, "/tmp/y"}, /* 13: its inode again */
	};
	for (size_t i = 0; i < BASE_COUNT(ends); i++) {
		uint64_t time = 100 + i;
		fake_descriptor(ends[i].t, time, i + 1, ends[i].type, ends[i].ino, ends[i].pair_ino,
			ends[i].name);
		FAKE(ends[i].t, time, TRACE_io_begin, fake_object(ends[i].type, i + 1),
			TRACE_IO_read, 10, CODE);
	}
	fixture_finish(&f);
	assert_int_equal(fixture_records(&f, record, RECORDS_MAX), BASE_COUNT(ends));
	const struct trace_object *o[BASE_COUNT(ends)];
	for (size_t i = 0; i < BASE_COUNT(ends); i++)
		o[i] = io(&f, i);
	assert_ptr_equal(o[0], o[1]);
	assert_int_equal(o[0]->process, 0);
	assert_int_equal(o[0]->capacity, 65536);
	assert_int_equal(o[0]->pair, 0);
	assert_ptr_not_equal(o[2], o[3]);
	assert_int_not_equal(o[2]->pair, 0);
	assert_int_equal(o[2]->pair, o[3]->pair);
	assert_int_equal(o[2]->side + o[3]->side, 1);
	assert_int_equal(o[4]->pair, 0); /* whose other end was not recorded */
	assert_int_equal(o[5]->pair, o[6]->pair);
	assert_int_not_equal(o[5]->pair, o[2]->pair);
	assert_int_equal(o[5]->side, o[2]->side);
	assert_int_equal(o[7]->pair, o[8]->pair);
	assert_int_not_equal(o[7]->pair, 0);
	assert_int_equal(o[7]->side + o[8]->side, 1);
	assert_ptr_not_equal(o[9], o[10]);
	assert_ptr_equal(o[11], o[12]);
	assert_ptr_not_equal(o[11], o[13]);
	fixture_close(&f);
}

/* Thread 2's record is read before thread 3's introduction of what it mentions. */
static void test_looks_ahead_for_introductions(void **state)
{
	struct fixture f;
	(void)state;
	fixture_open(&f);
	struct fake_thread one = begin(&f, 1, 100, 1, 0), two = begin(&f, 1, 100, 2, 1),
			   three = begin(&f, 1, 100, 3, 2);
	(void)one;
	fake_module(&three, 20, 0x900000, 0x901000, 0x900000, "/lib/new.so");
	fake_descriptor(&three, 21, 5, TRACE_OBJECT_pipe, 99, 0, "");
	FAKE(&two, 30, TRACE_io_begin, fake_object(TRACE_OBJECT_pipe, 5), TRACE_IO_write, 1,
		0x900010);
	fixture_finish(&f);
	fixture_records(&f, record, RECORDS_MAX);
	const struct trace_defs *d = fixture_defs(&f);
	const struct trace_site *site = &d->sites[record[0].u.io_begin.site];
	assert_string_equal(trace_text_of(d, d->modules[site->module].path), "/lib/new.so");
	assert_int_equal(d->objects[record[0].u.io_begin.object].address, 99);
	fixture_close(&f);
}

/* Threads are read one after another: a library that one has unloaded was there for the others
 * before, and is not when all have been read. */
static void test_unloaded_when_all_are_read(void **state)
{
	struct fixture f;
	uint64_t a = fake_object(TRACE_OBJECT_mutex, 0x7f0000001000);
	(void)state;
	fixture_open(&f);
	struct fake_thread one = begin(&f, 1, 100, 1, 0), two = begin(&f, 1, 100, 2, 1);
	fake_module(&one, 20, 0x900000, 0x901000, 0x900000, "/lib/plugin.so");
	FAKE(&two, 30, TRACE_lock_acquire, a, 0x900010);
	FAKE(&one, 40, RING_unload, 0x900000);
	fixture_drain(&f, 100);
	FAKE(&two, 200, TRACE_lock_release, a, 0x900010);
	fixture_finish(&f);
	assert_int_equal(fixture_records(&f, record, RECORDS_MAX), 2);
	const struct trace_defs *d = fixture_defs(&f);
	const struct trace_site *site = &d->sites[record[0].u.lock_acquire.site];
	assert_string_equal(trace_text_of(d, d->modules[site->module].path), "/lib/plugin.so");
	assert_int_equal(d->sites[record[1].u.lock_release.site].module, 0);
	fixture_close(&f);
}

/* One library after the other at one address, read thread by thread: what was where depends on the
 * time. A mutex is another one in another library, and the same one in the same. */
static void test_one_address_after_another(void **state)
{
	enum { BASE = 0x900000, NR_USES = 8 };
	static const char *const library[] = {"/lib/a.so", "/lib/b.so"};
	for (int nr_drains = 1; nr_drains <= 9; nr_drains++) {
		for (int said = 0; said < 2; said++) {
			struct fixture f;
			(void)state;
			fixture_open(&f);
			struct fake_thread one = begin(&f, 1, 100, 1, 0),
					   two = begin(&f, 1, 100, 2, 1),
					   three = begin(&f, 1, 100, 3, 2);
			for (uint64_t i = 0; i < NR_USES; i++) {
				struct fake_thread *use = i % 3 ? &two : &three;
				fake_module(&one, 100 * i + 10, BASE, BASE + 0x1000, BASE,
					library[i % 2]);
				FAKE(use, 100 * i + 20, TRACE_lock_acquire,
					fake_object(TRACE_OBJECT_mutex, BASE + 0x800), BASE + 0x10);
				if (said)
					FAKE(&one, 100 * i + 30, RING_unload, BASE);
			}
			for (int i = 1; i < nr_drains; i++)
				fixture_drain(&f, (uint64_t)i * 1000 / (uint64_t)nr_drains);
			fixture_finish(&f);
			assert_int_equal(fixture_records(&f, record, RECORDS_MAX), NR_USES);
			const struct trace_defs *d = fixture_defs(&f);
			for (size_t i = 0; i < NR_USES; i++) {
				const struct trace_lock_acquire *r = &record[i].u.lock_acquire;
				uint32_t module = d->sites[r->site].module;
				assert_string_equal(
					trace_text_of(d, d->modules[module].path), library[i % 2]);
				assert_int_equal(d->sites[r->site].offset, 0x10);
				assert_int_equal(r->object, record[i % 2].u.lock_acquire.object);
			}
			assert_int_not_equal(
				record[0].u.lock_acquire.object, record[1].u.lock_acquire.object);
			fixture_close(&f);
		}
	}
}

static void test_blocks_in_sequence_and_back(void **state)
{
	struct fixture f;
	uint64_t a = fake_object(TRACE_OBJECT_mutex, 0x10000), time = 100;
	(void)state;
	fixture_open(&f);
	struct fake_thread t = begin(&f, 1, 100, 1, 9);
	const uint32_t blocks[] = {7, 8, 3, 20};
	size_t expect = 0;
	for (size_t i = 0; i <= BASE_COUNT(blocks); i++) {
		for (int k = 0; k < 1000; k++, expect++)
			FAKE(&t, time++, TRACE_lock_acquire, a, CODE + 4 * (uint64_t)(k % 7));
		if (i < BASE_COUNT(blocks)) {
			fake_done(&t);
			fake_take_block(&t, blocks[i]);
		}
	}
	uint64_t unpublished = t.block->word[t.used - 3];
	t.block->word[t.used - 3] = 0; /* the last record is still being written */
	fixture_drain(&f, 1000000);
	for (size_t i = 0; i < 3; i++) { /* the done ones are free, and clean */
		assert_true(f.ring.head->free_map[0] >> blocks[i] & 1);
		const uint64_t *words = (const uint64_t *)session_ring_block(&f.ring, blocks[i]);
		for (size_t k = 0; k < RING_BLOCK_BYTES / 8; k++)
			assert_int_equal(words[k], 0);
	}
	assert_false(f.ring.head->free_map[0] >> 20 & 1);
	assert_int_equal(record_converter_nr_ring(&f.converter),
		expect); /* process_begin, and all but one */
	t.block->word[t.used - 3] = unpublished;
	struct fake_thread again = begin(&f, 1, 100, 2, 7); /* a block is used again */
	FAKE(&again, time, TRACE_lock_release, a, CODE);
	fixture_finish(&f);
	assert_int_equal(fixture_records(&f, record, RECORDS_MAX), expect + 1);
	for (size_t i = 1; i < expect; i++)
		assert_int_equal(record[i].time_ns, record[i - 1].time_ns + 1);
	fixture_close(&f);
}

/* What waits is read later: not when more than half of the blocks wait, nor of two images. */
static void test_what_can_wait(void **state)
{
	struct fixture f;
	uint64_t a = fake_object(TRACE_OBJECT_mutex, 0x10000), time = 100, expect = 0;
	(void)state;
	fixture_open(&f);
	assert_true(session_ring_can_wait(&f.ring, &f.converter));
	struct fake_thread t = begin(&f, 1, (uint32_t)getpid(), 1, 0); /* it lives */
	for (uint32_t i = 1;; i++) {
		FAKE(&t, time++, TRACE_lock_acquire, a, CODE);
		expect++;
		assert_int_equal(
			session_ring_can_wait(&f.ring, &f.converter), i <= f.ring.nr_blocks / 2);
		if (i > f.ring.nr_blocks / 2)
			break;
		fake_done(&t);
		fake_take_block(&t, i);
	}
	assert_int_equal(record_converter_nr_ring(&f.converter), 0);
	fixture_drain(&f, 1000);
	assert_true(session_ring_can_wait(&f.ring, &f.converter));
	struct fake_thread child = begin(&f, 2, 200, 1, f.ring.nr_blocks - 1);
	assert_false(session_ring_can_wait(&f.ring, &f.converter));
	FAKE(&child, 1000, TRACE_lock_acquire, a, CODE);
	expect++;
	fixture_finish(&f);
	size_t nr = fixture_records(&f, record, RECORDS_MAX);
	for (size_t i = 0; i < nr; i++)
		expect -= record[i].kind == TRACE_lock_acquire;
	assert_int_equal(expect, 0);
	fixture_close(&f);
}

static void test_horizon(void **state)
{
	struct fixture f;
	uint64_t a = fake_object(TRACE_OBJECT_mutex, 0x10000);
	(void)state;
	fixture_open(&f);
	struct fake_thread t = begin(&f, 1, 100, 1, 0);
	FAKE(&t, 100, TRACE_lock_acquire, a, CODE);
	FAKE(&t, 200, TRACE_lock_release, a, CODE);
	fake_done(&t);
	fixture_drain(&f, 150);
	assert_int_equal(record_converter_nr_ring(&f.converter), 2);
	fixture_drain(&f, 250);
	assert_int_equal(record_converter_nr_ring(&f.converter), 3);
	assert_true(f.ring.head->free_map[0] & 1);
	fixture_finish(&f);
	fixture_close(&f);
}

static void test_lost_and_damaged(void **state)
{
	struct fixture f;
	uint64_t a = fake_object(TRACE_OBJECT_mutex, 0x10000);
	(void)state;
	fixture_open(&f);
	struct fake_thread t = begin(&f, 1, 100, 1, 0), bad = begin(&f, 1, 100, 2, 1);
	FAKE(&t, 100, TRACE_lock_acquire, a, CODE);
	FAKE(&t, 150, RING_lost, 42);
	FAKE(&t, 200, TRACE_lock_release, a, CODE);
	FAKE(&bad, 100, TRACE_lock_acquire, a, CODE);
	FAKE(&bad, 110, RING_stack, 1ull << 60); /* more frames than there can be */
	FAKE(&bad, 120, TRACE_lock_acquire, a, CODE);
	fake_done(&bad);
	fixture_finish(&f);
	assert_int_equal(fixture_records(&f, record, RECORDS_MAX), 2 + 1 + 1);
	assert_int_equal(f.converter.nr_damaged_blocks, 1);
	bool found = false;
	for (size_t i = 0; i < 4; i++)
		if (record[i].kind == TRACE_lost) {
			assert_int_equal(record[i].time_ns, 150);
			assert_int_equal(record[i].u.lost.n, 42);
			found = true;
		}
	assert_true(found);
	fixture_close(&f);
}

static void test_annotations(void **state)
{
	struct fixture f;
	enum { LINK = 1, END = 4 };
	(void)state;
	fixture_open(&f);
	struct fake_thread t = begin(&f, 1, 100, 1, 0);
	static const struct {
		uint64_t id, what;
		const char *text;
	} names[] = {{1, RING_NAME_actor, "encoder"}, {2, RING_NAME_state, "compress"},
		{3, RING_NAME_queue, "frames"}, {4, RING_NAME_actor, "encoder"}};
	for (size_t i = 0; i < BASE_COUNT(names); i++)
		fake_text(&t, 50, RING_name,
			FAKE_WORDS(names[i].id, names[i].what, CODE + i, strlen(names[i].text)),
			names[i].text, strlen(names[i].text));
	FAKE(&t, 100, TRACE_note_begin, 1, 77, LINK);
	FAKE(&t, 101, TRACE_note_state, 2, 0);
	FAKE(&t, 102, TRACE_note_enqueue, 3, 0xbeef, 5, 0, CODE + 0x40);
	FAKE(&t, 103, TRACE_note_end, 4); /* by another place's id of the same name */
	FAKE(&t, 104, TRACE_note_begin, 1, 78, 0);
	FAKE(&t, 105, TRACE_note_end, 0);
	FAKE(&t, 106, TRACE_note_identify, 9);
	fixture_finish(&f);
	fixture_records(&f, record, RECORDS_MAX);
	const struct trace_defs *d = fixture_defs(&f);
	const struct trace_record *r = record;
	const struct trace_actor *actor = &d->actors[r[0].u.note_begin.actor];
	assert_string_equal(trace_text_of(d, actor->name), "encoder");
	assert_int_equal(actor->instance, 77);
	assert_int_equal(r[0].u.note_begin.flags, LINK);
	const struct trace_state *s = &d->states[r[1].u.note_state.state];
	assert_string_equal(trace_text_of(d, s->name), "compress");
	assert_int_equal(d->sites[s->site].offset, CODE + 1 - BIAS);
	const struct trace_object *queue = &d->objects[r[2].u.note_enqueue.object];
	assert_int_equal(queue->type, TRACE_OBJECT_queue);
	assert_int_equal(queue->address, 0xbeef);
	assert_string_equal(trace_text_of(d, queue->name), "frames");
	assert_int_equal(r[2].u.note_enqueue.n, 5);
	assert_int_equal(r[3].u.note_end.actor, r[0].u.note_begin.actor);
	assert_int_not_equal(r[4].u.note_begin.actor, r[0].u.note_begin.actor);
	assert_int_equal(r[5].u.note_end.actor, r[4].u.note_begin.actor);
	assert_int_equal(r[6].u.note_identify.connection, 9);
	fixture_close(&f);
}

/* Short annotations mean what the long ones mean, said once more, too; a kind that is none is
 * damage. */
static void test_short_annotations(void **state)
{
	struct fixture f;
	enum { END = 4, SUSPECT = 2, TIMES = 3 };
	(void)state;
	fixture_open(&f);
	struct fake_thread t = begin(&f, 1, 100, 1, 0);
	fake_text(&t, 50, RING_name, FAKE_WORDS(1, RING_NAME_actor, CODE, 1), "a", 1);
	fake_text(&t, 50, RING_name, FAKE_WORDS(2, RING_NAME_state, CODE, 1), "s", 1);
	fake_text(&t, 50, RING_name, FAKE_WORDS(3, RING_NAME_queue, CODE, 1), "q", 1);
	for (uint64_t i = 0, at = 100; i < TIMES; i++, at += 100) {
		FAKE(&t, at, TRACE_note_begin, 1, 77, 0);
		for (unsigned kind = TRACE_note_enqueue; kind <= TRACE_note_assert; kind++) {
			uint64_t n = 0x1000 * (kind - TRACE_note_enqueue), flags = kind * 3 & 0x7b;
			if (i)
				FAKE(&t, at + 1, RING_verb, ring_verb(3, flags, kind, n), 0xbeef,
					CODE + 0x40);
			else
				FAKE(&t, at + 1, kind, 3, 0xbeef, n, flags, CODE + 0x40);
		}
		if (i)
			FAKE(&t, at + 2, RING_state, 2 | (uint64_t)SUSPECT << 32);
		else
			FAKE(&t, at + 2, TRACE_note_state, 2, SUSPECT);
		if (i)
			FAKE(&t, at + 3, RING_verb, ring_verb(3, END, TRACE_note_dequeue, 65535), 1,
				CODE);
		else
			FAKE(&t, at + 3, TRACE_note_dequeue, 3, 1, 65535, END, CODE);
		FAKE(&t, at + 4, TRACE_note_end, 0); /* nobody: it has ended */
	}
	FAKE(&t, 400, RING_verb, ring_verb(3, 0, TRACE_note_link, 1), 1, CODE);
	fixture_finish(&f);
	size_t nr = fixture_records(&f, record, RECORDS_MAX), nr_once = nr / TIMES;
	assert_int_equal(nr, TIMES * (1 + 8 + 3));
	assert_int_equal(f.converter.nr_damaged_blocks, 1);
	for (size_t i = nr_once; i < nr; i++) {
		const struct trace_record *a = &record[i % nr_once], *b = &record[i];
		assert_int_equal(a->kind, b->kind);
		if (a->kind == TRACE_note_state) {
			assert_int_equal(a->u.note_state.state, b->u.note_state.state);
			assert_int_equal(a->u.note_state.flags, b->u.note_state.flags);
		} else if (a->kind >= TRACE_note_enqueue && a->kind <= TRACE_note_assert) {
			assert_int_equal(a->u.note_enqueue.object, b->u.note_enqueue.object);
			assert_int_equal(a->u.note_enqueue.n, b->u.note_enqueue.n);
			assert_int_equal(a->u.note_enqueue.flags, b->u.note_enqueue.flags);
			assert_int_equal(a->u.note_enqueue.site, b->u.note_enqueue.site);
		}
	}
	fixture_close(&f);
}

/* The same words again mean the same, but not in another image, nor in another module's code, nor
 * with another call path; one that comes late is raised. */
static void test_same_words(void **state)
{
	struct fixture f;
	uint64_t a = fake_object(TRACE_OBJECT_mutex, 0x7f0000001000);
	(void)state;
	fixture_open(&f);
	struct fake_thread t = begin(&f, 1, 100, 1, 0), other = begin(&f, 2, 200, 1, 1);
	for (uint64_t i = 0; i < 3; i++)
		FAKE(&t, 20 + i, TRACE_lock_wait, a, CODE + 0x10, 0);
	for (uint64_t i = 0; i < 3; i++) {
		FAKE(&t, 30 + i, RING_stack, 1, CODE + 0x100 + i);
		FAKE(&t, 30 + i, TRACE_lock_wait, a, CODE + 0x10, 1);
	}
	FAKE(&t, 40, RING_unload, BIAS);
	fake_module(&t, 41, CODE, CODE + 0x10000, BIAS, "/lib/other.so");
	FAKE(&t, 50, TRACE_lock_wait, a, CODE + 0x10, 0);
	FAKE(&t, 49, TRACE_lock_wait, a, CODE + 0x10, 0);
	FAKE(&other, 60, TRACE_lock_wait, a, CODE + 0x10, 0);
	fixture_finish(&f);
	assert_int_equal(fixture_records(&f, record, RECORDS_MAX), 9);
	assert_int_equal(f.converter.nr_late, 1);
	const struct trace_defs *d = fixture_defs(&f);
	const struct trace_lock_wait *first = &record[0].u.lock_wait;
	for (size_t i = 1; i < 9; i++) {
		const struct trace_lock_wait *w = &record[i].u.lock_wait;
		const struct trace_site *site = &d->sites[w->site];
		bool elsewhere = i == 6 || i == 7, with_path = i >= 3 && i < 6;
		assert_int_equal(record[i].kind, TRACE_lock_wait);
		assert_int_equal(w->object == first->object, i < 8);
		assert_string_equal(trace_text_of(d, d->modules[site->module].path),
			elsewhere ? "/lib/other.so" : "/bin/prog");
		assert_int_equal(w->stack != 0, with_path);
		if (with_path)
			assert_int_equal(d->sites[d->stacks[w->stack].site].offset,
				CODE + 0x100 + i - 3 - BIAS);
	}
	assert_int_equal(record[7].time_ns, 50);
	fixture_close(&f);
}

/* A thread that speaks for two machines in turn, and items with keys. */
static void test_acts_and_items(void **state)
{
	struct fixture f;
	enum { END = 4, PRIORITY = 64 };
	(void)state;
	fixture_open(&f);
	struct fake_thread t = begin(&f, 1, 100, 1, 0);
	fake_text(&t, 50, RING_name, FAKE_WORDS(1, RING_NAME_actor, CODE, 5), "fiber", 5);
	fake_text(&t, 50, RING_name, FAKE_WORDS(2, RING_NAME_queue, CODE, 4), "jobs", 4);
	FAKE(&t, 100, TRACE_note_begin, 1, 70, 0);
	FAKE(&t, 101, TRACE_note_begin, 1, 71, 0);
	FAKE(&t, 102, TRACE_note_act, 1, 72); /* both stay behind */
	FAKE(&t, 103, TRACE_note_put_item, 2, 0xbeef, 5, 1234, PRIORITY, CODE + 0x40);
	FAKE(&t, 104, TRACE_note_act, 1, 73);
	FAKE(&t, 105, TRACE_note_take_item, 2, 0xbeef, 4, 1234, PRIORITY | END, CODE + 0x50);
	FAKE(&t, 106, TRACE_note_act, 1, 72); /* the same machine as before */
	FAKE(&t, 107, TRACE_note_end, 0);
	FAKE(&t, 108, TRACE_note_end, 0); /* nobody is left */
	fixture_finish(&f);
	assert_int_equal(fixture_records(&f, record, RECORDS_MAX), 9);
	const struct trace_defs *d = fixture_defs(&f);
	const struct trace_record *r = record;
	assert_int_equal(d->actors[r[2].u.note_act.actor].instance, 72);
	assert_int_equal(d->actors[r[4].u.note_act.actor].instance, 73);
	assert_int_equal(r[6].u.note_act.actor, r[2].u.note_act.actor);
	const struct trace_note_put_item *put = &r[3].u.note_put_item;
	const struct trace_note_take_item *take = &r[5].u.note_take_item;
	assert_int_equal(d->objects[put->object].address, 0xbeef);
	assert_string_equal(trace_text_of(d, d->objects[put->object].name), "jobs");
	assert_int_equal(put->n, 5);
	assert_int_equal(put->key, 1234);
	assert_int_equal(put->flags, PRIORITY);
	assert_int_equal(d->sites[put->site].offset, CODE + 0x40 - BIAS);
	assert_int_equal(take->object, put->object);
	assert_int_equal(take->n, 4);
	assert_int_equal(take->key, 1234);
	assert_int_equal(take->flags, PRIORITY | END);
	assert_int_equal(r[7].u.note_end.actor, r[2].u.note_act.actor);
	assert_int_equal(r[8].u.note_end.actor, 0);
	fixture_close(&f);
}

/* Code that the program made is called after the place that it says it stands for; of an address the
 * last word counts, and code that nobody told of has no name. */
static void test_code_that_the_program_names(void **state)
{
	enum { MADE = 0x500000, NR_BYTES = 0x100, INNER = 0x40, INNER_BYTES = 0x20 };
	static const char outer[] = "Main.runMain.java", inner[] = "Main.addMain.java";
	struct fixture f;
	(void)state;
	fixture_open(&f);
	struct fake_thread t = begin(&f, 1, FIXTURE_GONE_PID, 1, 0);
	fake_text(&t, 20, RING_place, FAKE_WORDS(ring_place(7), 12, 8ull << 32 | 9), outer,
		sizeof outer - 1);
	FAKE(&t, 21, RING_code, MADE, NR_BYTES, ring_place(7));
	fake_text(&t, 22, RING_place, FAKE_WORDS(ring_place(8), 30, 8ull << 32 | 9), inner,
		sizeof inner - 1);
	FAKE(&t, 23, RING_code, MADE + INNER, INNER_BYTES, ring_place(8));
	FAKE(&t, 24, RING_code, MADE + NR_BYTES, NR_BYTES, ring_place(9)); /* no such place */
	fixture_drain(&f, 100);
	struct record_world *w = &f.converter.world;
	struct record_image *image = record_world_find(w, 1);
	const uint64_t at[] = {MADE + 1, MADE + INNER, MADE + INNER + 1, MADE + INNER + INNER_BYTES,
		MADE + INNER + INNER_BYTES + 1, MADE + NR_BYTES + 1};
	static const uint32_t line[] = {12, 12, 30, 30, 12, 0};
	uint32_t site[BASE_COUNT(at)];
	for (size_t i = 0; i < BASE_COUNT(at); i++)
		site[i] = record_jit_site(w, image, at[i]);
	assert_int_equal(record_jit_name(w, image), 5);
	fixture_finish(&f);
	const struct trace_defs *d = fixture_defs(&f);
	for (size_t i = 0; i < BASE_COUNT(at); i++) {
		const struct trace_symbol *s = trace_def_symbol(d, site[i]);
		assert_int_equal(s->line, line[i]);
		assert_string_equal(trace_text_of(d, s->function), line[i] == 12   ? "Main.run"
								   : line[i] == 30 ? "Main.add"
										   : "");
		assert_string_equal(trace_text_of(d, s->file), line[i] ? "Main.java" : "");
	}
	fixture_close(&f);
}

/* Bytecode that an interpreter runs: frames with its object behind them are of what was told of its
 * first byte, wherever that has moved to; and of those, what the interpreter's own code did. */
static void test_bytecode_that_the_program_names(void **state)
{
	enum { FIRST = 0x500036, MOVED = 0x600036, NR_BYTES = 0x20, HANDLER = 0x1000 };
	static const char run[] = "runapp.js", call[] = "callapp.js";
	const uint64_t object = 1ull << 62 | (MOVED - 0x36 + 1), other = object + 0x1000,
		       caller = 1ull << 62 | 0x700001;
	struct fixture f;
	(void)state;
	fixture_open(&f);
	struct fake_thread t = begin(&f, 1, FIXTURE_GONE_PID, 1, 0);
	fake_text(&t, 20, RING_place, FAKE_WORDS(ring_place(7), 12, 3ull << 32 | 6), run,
		sizeof run - 1);
	fake_text(&t, 20, RING_place, FAKE_WORDS(ring_place(8), 30, 4ull << 32 | 6), call,
		sizeof call - 1);
	FAKE(&t, 21, RING_code, HANDLER + 0x40, 0x40, RING_CODE_INTERPRETS);
	FAKE(&t, 21, RING_code, HANDLER, 0x40, RING_CODE_INTERPRETS);
	FAKE(&t, 22, RING_code, FIRST, NR_BYTES, ring_place(7));
	FAKE(&t, 23, RING_code, MOVED, NR_BYTES, FIRST);
	FAKE(&t, 24, RING_code, MOVED + 0x1000, NR_BYTES,
		FIRST + 2); /* of which nothing was told */
	FAKE(&t, 25, RING_code, 0x700000 + 60, NR_BYTES, ring_place(8));
	fixture_drain(&f, 100);
	const struct record_world *w = &f.converter.world;
	const struct record_image *image = record_world_find(w, 1);
	const struct {
		uint64_t ip, frame[5], ret_ip, ret_frame[4];
		uint32_t nr, nr_left;
	} cases[] = {
		/* its own code, without a frame and with one */
		{0x9000, {object, 0x9100}, ring_place(7), {0x9100}, 2, 1},
		{HANDLER, {0x9000, object, 0x9100}, ring_place(7), {0x9100}, 3, 1},
		{HANDLER + 0x7f, {0x9000, object}, ring_place(7), {0}, 2, 0},
		/* what it calls keeps its name */
		{HANDLER + 0x80, {0x9000, object}, HANDLER + 0x80, {ring_place(7)}, 2, 1},
		{0x8000, {HANDLER, 0x9000, object, 0x9100, caller}, 0x8000,
			{ring_place(7), ring_place(8)}, 5, 2},
		/* the kernel's */
		{~0xfffull, {~0xffull, 0x9000, object}, ~0xfffull, {~0xffull, ring_place(7)}, 3, 2},
		/* what looks like one */
		{HANDLER, {other, 0x9000, other}, HANDLER, {0x9000}, 3, 1},
	};
	for (size_t i = 0; i < BASE_COUNT(cases); i++) {
		uint64_t frame[5];
		struct record_event e = {
			.ip = cases[i].ip, .frame = frame, .nr_frames = cases[i].nr};
		memcpy(frame, cases[i].frame, sizeof frame);
		record_unwind_interpret(w, image, &e);
		assert_int_equal(e.ip, cases[i].ret_ip);
		assert_int_equal(e.nr_frames, cases[i].nr_left);
		assert_memory_equal(frame, cases[i].ret_frame, e.nr_frames * sizeof *frame);
	}
	fixture_finish(&f);
	fixture_close(&f);
}

/* A state that a runtime keeps to ends where it says none. */
static void test_no_state_any_more(void **state)
{
	const uint64_t kept = (uint64_t)TRACE_NOTE_KEPT << 32;
	struct fixture f;
	(void)state;
	fixture_open(&f);
	struct fake_thread t = begin(&f, 1, FIXTURE_GONE_PID, 1, 0);
	fake_text(&t, 20, RING_name, FAKE_WORDS(5, RING_NAME_state, 0, 10), "collecting", 10);
	FAKE(&t, 21, RING_state, 5 | kept);
	FAKE(&t, 22, RING_state, kept);
	fixture_finish(&f);
	assert_int_equal(fixture_records(&f, record, RECORDS_MAX), 2);
	assert_true(record[0].u.note_state.state);
	assert_int_equal(record[1].u.note_state.state, 0);
	assert_int_equal(record[1].u.note_state.flags, TRACE_NOTE_KEPT);
	fixture_close(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names_each_thing_once),
		cmocka_unit_test(test_fork_shares_what_is_shared),
		cmocka_unit_test(test_stacks_are_a_tree),
		cmocka_unit_test(test_descriptors_meet),
		cmocka_unit_test(test_connects_late),
		cmocka_unit_test(test_crossed_connections),
		cmocka_unit_test(test_connected_stays),
		cmocka_unit_test(test_looks_ahead_for_introductions),
		cmocka_unit_test(test_unloaded_when_all_are_read),
		cmocka_unit_test(test_one_address_after_another),
		cmocka_unit_test(test_blocks_in_sequence_and_back),
		cmocka_unit_test(test_what_can_wait),
		cmocka_unit_test(test_horizon),
		cmocka_unit_test(test_lost_and_damaged),
		cmocka_unit_test(test_annotations),
		cmocka_unit_test(test_short_annotations),
		cmocka_unit_test(test_same_words),
		cmocka_unit_test(test_acts_and_items),
		cmocka_unit_test(test_code_that_the_program_names),
		cmocka_unit_test(test_bytecode_that_the_program_names),
		cmocka_unit_test(test_no_state_any_more),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
