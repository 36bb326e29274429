/* SPDX-License-Identifier: Apache-2.0 */
/* test_model_files.c - known answers: files, their locks, message queues, pipes in a call. */
#include "model/model.h"
#include "model_fixture.h"

#include <errno.h>

/* Few files of a place have their names; thousands are one thing that takes long. */
static void many_files_are_one_state(void **state)
{
	(void)state;
	for (unsigned nr = 8; nr <= 9; nr++) {
		struct bench b;
		start(&b);
		uint32_t scan = site(&b, "scan"), file[9];
		uint64_t t = 100;
		for (unsigned i = 0; i < nr; i++) {
			char name[32];
			snprintf(name, sizeof name, "file%u", i);
			file[i] = object(&b, TRACE_OBJECT_file, name, 0);
		}
		spawn(&b, 1, scan);
		for (unsigned i = 0; i < nr; i++, t += 20) {
			PUT(&b, t, 1, io_begin, .object = file[i], .op = TRACE_IO_read,
				.site = scan);
			PUT(&b, t + 10, 1, io_end, .object = file[i], .op = TRACE_IO_read,
				.result = 1);
		}
		end(&b, t);
		assert_float_equal(on_path(&b, "read of many files"), nr > 8 ? 90 : 0, 1e-6);
		assert_float_equal(on_path(&b, "read of file file3"), nr > 8 ? 0 : 10, 1e-6);
		finish(&b);
	}
}

/* What a program reads from a signalfd is its children's ends, as far as is seen; what a poll or a
 * timerfd gives when nothing else came is the time. */
static void a_descriptor_tells_of_signals_and_time(void **state)
{
	(void)state;
	struct bench b;
	start(&b);
	uint32_t fn = site(&b, "loop");
	uint32_t p = process_of(&b, "parent", 0, 100), c = process_of(&b, "child", p, 101);
	uint32_t signals = object(&b, TRACE_OBJECT_other, "anon_inode:[signalfd]", 0);
	uint32_t timer = object(&b, TRACE_OBJECT_timerfd, "anon_inode:[timerfd]", 0);
	stream(&b, p);
	stream(&b, c);
	PUT(&b, 0, 1, process_begin, .token = 0);
	PUT(&b, 10, 1, process_fork, .token = 0, .site = fn);
	PUT(&b, 12, 1, poll_begin, .n = 1, .site = fn);
	PUT(&b, 20, 2, process_begin, .token = 0);
	PUT(&b, 400, 2, process_end, .status = 0);
	PUT(&b, 410, 1, poll_end, .object = signals, .result = 1);
	PUT(&b, 420, 1, poll_begin, .n = 1, .site = fn);
	PUT(&b, 421, 1, cpu_out, .processor = 0, .preempted = 0);
	PUT(&b, 479, 1, cpu_in, .processor = 0);
	PUT(&b, 480, 1, poll_end, .result = 0);
	PUT(&b, 490, 1, poll_begin, .n = 1, .site = fn);
	PUT(&b, 491, 1, cpu_out, .processor = 0, .preempted = 0);
	PUT(&b, 599, 1, cpu_in, .processor = 0);
	PUT(&b, 600, 1, poll_end, .object = timer, .result = 1);
	PUT(&b, 601, 1, poll_begin, .n = 1, .site = fn);
	PUT(&b, 602, 1, poll_end, .result = 0); /* only had a look */
	end(&b, 700);
	assert_float_equal(on_path(&b, "sleeping until a time limit"), 60 + 110, 1e-6);
	assert_float_equal(on_path(&b, "waiting for readiness"), 1, 1e-6);
	assert_float_equal(on_path(&b, "waiting for a child"), 0, 1e-6);
	assert_float_equal(on_path(&b, "running from its start"), 10 + 380, 1e-6);
	assert_float_equal(unexplained(&b), 0, 1e-6);
	finish(&b);
}

/* Somebody else has to do something with files before they can be read. */
static void news_of_files_come_from_outside(void **state)
{
	(void)state;
	static const char *const name[] = {"anon_inode:inotify", "anon_inode:[fanotify]"};
	for (size_t i = 0; i < BASE_COUNT(name); i++) {
		struct bench b;
		start(&b);
		uint32_t fn = site(&b, "watch"), news = object(&b, TRACE_OBJECT_other, name[i], 0);
		spawn(&b, 0, fn);
		PUT(&b, 100, 1, io_begin, .object = news, .op = TRACE_IO_read, .site = fn);
		PUT(&b, 400, 1, io_end, .object = news, .op = TRACE_IO_read, .result = 32);
		end(&b, 500);
		struct graph_lane_result l = lane(&b, 0);
		double outside_ns = 0;
		for (size_t k = 0; k < l.nr_states; k++)
			if (model_state(b.model, l.state[k].state)->kind == MODEL_STATE_external)
				outside_ns += l.state[k].path_ns;
		assert_float_equal(outside_ns, 300, 1e-6);
		finish(&b);
	}
}

/* A file's lock comes from whoever unlocks or closes it, or ends. */
static void a_file_lock_comes_from_its_holder(void **state)
{
	(void)state;
	for (unsigned how = 0; how < 3; how++) {
		struct bench b;
		start(&b);
		uint32_t fn = site(&b, "hold"), main_fn = site(&b, "main");
		uint32_t file = object(&b, TRACE_OBJECT_file, "/lock", 0);
		uint32_t p = process_of(&b, "parent", 0, 100), c = process_of(&b, "child", p, 101);
		stream(&b, p);
		stream(&b, c);
		PUT(&b, 0, 1, process_begin, .token = 0);
		PUT(&b, 10, 1, process_fork, .token = 0, .site = main_fn);
		PUT(&b, 20, 2, process_begin, .token = 0);
		PUT(&b, 30, 2, io_begin, .object = file, .op = TRACE_IO_lock, .site = fn);
		PUT(&b, 31, 2, io_end, .object = file, .op = TRACE_IO_lock);
		PUT(&b, 40, 1, io_begin, .object = file, .op = TRACE_IO_lock, .site = main_fn);
		if (how == 0)
			PUT(&b, 400, 2, io_begin, .object = file, .op = TRACE_IO_unlock,
				.site = fn);
		else if (how == 1)
			PUT(&b, 400, 2, io_close, .object = file, .ends = 4, .site = fn);
		else
			PUT(&b, 400, 2, process_end, .status = 0);
		PUT(&b, 410, 1, io_end, .object = file, .op = TRACE_IO_lock);
		end(&b, 500);
		assert_float_equal(on_path(&b, "file lock of"), 1, 1e-6);
		assert_float_equal(on_path(&b, "hand-off of file /lock"), 10, 1e-6);
		assert_float_equal(on_path_of(&b, "child", "running"), 400 - 20 - 1, 1e-6);
		assert_float_equal(unexplained(&b), 0, 1e-6);
		finish(&b);
	}
}

/* Of two messages the more urgent one, or the one of the type asked for, though it came later. */
static void a_message_comes_from_its_sender(void **state)
{
	(void)state;
	for (unsigned sysv = 0; sysv < 2; sysv++) {
		struct bench b;
		start(&b);
		uint32_t fn = site(&b, "worker");
		uint32_t queue =
			object(&b, sysv ? TRACE_OBJECT_sysv_messages : TRACE_OBJECT_message_queue,
				sysv ? "0x00001234" : "/jobs", sysv ? 16384 : 10);
		uint64_t units = sysv ? 8 : 1;
		spawn(&b, 2, fn);
		PUT(&b, 40, 1, message_receive, .object = queue, .site = fn);
		PUT(&b, 50, 1, message_wait, .object = queue, .full = 0, .site = fn);
		PUT(&b, 300, 2, message_send, .object = queue, .n = units, .key = 1, .site = fn);
		PUT(&b, 303, 2, message_sent, .object = queue, .n = units);
		PUT(&b, 305, 3, message_send, .object = queue, .n = units, .key = 9, .site = fn);
		PUT(&b, 308, 3, message_sent, .object = queue, .n = units);
		PUT(&b, 320, 1, message_received, .object = queue, .n = units, .key = 9);
		PUT(&b, 330, 1, message_receive, .object = queue, .key = sysv, .site = fn);
		PUT(&b, 331, 1, message_received, .object = queue, .n = units, .key = 1);
		end(&b, 400);
		assert_float_equal(
			on_path(&b, sysv ? "hand-off of System V message queue 0x00001234"
					 : "hand-off of message queue /jobs"),
			320 - 305, 1e-6);
		assert_float_equal(on_path(&b, "waiting for a message in"), 0, 1e-6);
		assert_float_equal(unexplained(&b), 0, 1e-6);
		finish(&b);
	}
}

/* Two writers sleep since a pipe is full, and what each wrote is not there before it wakes: the
 * reader, which finds nothing, waits for the one that had space but no processor. Before, that one
 * had woken for nothing: its sleep is no reason why the reader waited for the processor. */
static void who_sleeps_in_a_write_has_put_nothing(void **state)
{
	(void)state;
	struct bench b;
	start(&b);
	uint32_t fn = site(&b, "send"), r = site(&b, "digest");
	uint32_t file = object(&b, TRACE_OBJECT_pipe, "", 0);
	spawn(&b, 3, fn);
	for (unsigned i = 0; i < 2; i++) { /* the second is one too many */
		PUT(&b, 120 + 10 * i, 2, io_begin, .object = file, .op = TRACE_IO_write, .n = 10,
			.site = fn);
		if (!i)
			PUT(&b, 122, 2, io_end, .object = file, .op = TRACE_IO_write, .result = 10);
	}
	PUT(&b, 131, 2, cpu_out, .processor = 0, .preempted = 0);
	PUT(&b, 140, 3, io_begin, .object = file, .op = TRACE_IO_write, .n = 10, .site = fn);
	PUT(&b, 141, 3, cpu_out, .processor = 0, .preempted = 0);
	PUT(&b, 145, 1, cpu_out, .processor = 0, .preempted = 1);
	PUT(&b, 150, 3, cpu_in, .processor = 0); /* for nothing */
	PUT(&b, 151, 3, cpu_out, .processor = 0, .preempted = 0);
	PUT(&b, 153, 1, cpu_in, .processor = 0);
	PUT(&b, 200, 1, io_begin, .object = file, .op = TRACE_IO_read, .n = 10, .site = r);
	PUT(&b, 202, 1, io_end, .object = file, .op = TRACE_IO_read, .result = 10);
	PUT(&b, 203, 1, cpu_out, .processor = 0, .preempted = 1);
	PUT(&b, 205, 2, cpu_in, .processor = 1); /* has the space */
	PUT(&b, 206, 2, io_end, .object = file, .op = TRACE_IO_write, .result = 10);
	PUT(&b, 207, 3, cpu_in, .processor = 0); /* too late */
	PUT(&b, 208, 3, cpu_out, .processor = 0, .preempted = 0);
	PUT(&b, 208, 1, cpu_in, .processor = 0);
	PUT(&b, 210, 1, io_begin, .object = file, .op = TRACE_IO_read, .n = 10, .site = r);
	PUT(&b, 212, 1, io_end, .object = file, .op = TRACE_IO_read, .result = 10);
	PUT(&b, 220, 1, io_begin, .object = file, .op = TRACE_IO_read, .n = 10, .site = r);
	PUT(&b, 221, 1, cpu_out, .processor = 1, .preempted = 0);
	PUT(&b, 300, 3, cpu_in, .processor = 0);
	PUT(&b, 304, 1, cpu_in, .processor = 1);
	PUT(&b, 306, 1, io_end, .object = file, .op = TRACE_IO_read, .result = 10);
	PUT(&b, 310, 3, io_end, .object = file, .op = TRACE_IO_write, .result = 10);
	b.is_otherwise_in_replay = true;
	end(&b, 500);
	assert_float_equal(on_path(&b, "waiting for space"), 0, 1e-6);
	assert_float_equal(on_path(&b, "waiting for data"), 0, 1e-6);
	assert_float_equal(on_path(&b, "hand-off of pipe"), 300 - 212 + 306 - 300, 1e-6);
	assert_float_equal(unexplained(&b), 0, 1e-6);
	finish(&b);
}

/* Room comes from the receiver, from when it calls, also when the sender is back first: the
 * receiver was preempted in its call, or is only slow to say so. */
static void room_for_a_message_comes_from_its_receiver(void **state)
{
	(void)state;
	for (unsigned how = 0; how < 3; how++) {
		struct bench b;
		start(&b);
		uint32_t fn = site(&b, "worker");
		uint32_t queue = object(&b, TRACE_OBJECT_message_queue, "/jobs", 1);
		spawn(&b, 1, fn);
		PUT(&b, 100, 1, message_send, .object = queue, .n = 1, .key = 3, .site = fn);
		PUT(&b, 101, 1, message_sent, .object = queue, .n = 1);
		PUT(&b, 110, 1, message_send, .object = queue, .n = 1, .key = 5, .site = fn);
		PUT(&b, 112, 1, message_wait, .object = queue, .full = 1, .site = fn);
		PUT(&b, 400, 2, message_receive, .object = queue, .site = fn);
		if (how == 0)
			PUT(&b, 402, 2, message_received, .object = queue, .n = 1, .key = 3);
		if (how == 1)
			PUT(&b, 404, 2, cpu_out, .processor = 0, .preempted = 1);
		PUT(&b, 405, 1, message_sent, .object = queue, .n = 1);
		if (how == 1)
			PUT(&b, 410, 2, cpu_in, .processor = 0);
		if (how != 0)
			PUT(&b, 412, 2, message_received, .object = queue, .n = 1, .key = 3);
		PUT(&b, 420, 2, message_receive, .object = queue, .site = fn);
		PUT(&b, 421, 2, message_received, .object = queue, .n = 1, .key = 5);
		end(&b, 500);
		assert_float_equal(
			on_path(&b, "waiting for space in message queue /jobs"), 0, 1e-6);
		assert_float_equal(on_path_of(&b, "worker", "running"), 400 - 15, 1e-6);
		assert_float_equal(on_path(&b, "hand-off of message queue"), 5, 1e-6);
		assert_float_equal(unexplained(&b), 0, 1e-6);
		finish(&b);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(many_files_are_one_state),
		cmocka_unit_test(a_descriptor_tells_of_signals_and_time),
		cmocka_unit_test(news_of_files_come_from_outside),
		cmocka_unit_test(a_file_lock_comes_from_its_holder),
		cmocka_unit_test(a_message_comes_from_its_sender),
		cmocka_unit_test(who_sleeps_in_a_write_has_put_nothing),
		cmocka_unit_test(room_for_a_message_comes_from_its_receiver),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
