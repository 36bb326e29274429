/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gen_trace.c - lpt-gen: a synthetic trace of any length for benchmarks. The same options make the
 * same records.
 *
 *   lock     K threads take and release L locks; a lock has one owner at a time and is handed on
 *            first come, first served. The hot ones (half of the takes go to an eighth of them)
 *            are contended.
 *   note     a pipeline of K annotated stages with a queue between each two; later stages wait for
 *            earlier ones.
 *   threads  K threads one after the other, each with a lock for half of its life; --records is
 *            not looked at.
 *   commands K commands that a shell starts one after the other: each a fork, a program that reads
 *            a pipe from the shell, takes a lock and ends, and a wait for it.
 *   groups   the same, and each command sends its process group a signal.
 */
#include "trace/trace.h"
#include "trace/enums.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SITES = 48, MAX_THREADS = 1 << 20, MAX_LOCKS = 1 << 20, BEGIN_NS = 1000, END_NS = 500 };

struct generator {
	struct trace_writer *writer;
	struct base_err err;
	uint64_t random, nr_wanted, nr_put;
	uint32_t nr_threads, nr_locks, nr_strings;
	uint32_t nr_workers; /* of these, threads of the first process */
	uint64_t *now_ns;    /* of each thread */
	uint64_t *free_ns;   /* of each lock: when its owner lets it go */
};

static void die(const struct generator *g)
{
	for (unsigned i = 0; i < g->err.nr_causes; i++)
		fprintf(stderr, "lpt-gen: %s\n", g->err.cause[i]);
	exit(4);
}

static uint64_t random_below(struct generator *g, uint64_t limit)
{
	/* splitmix64; the bias of the modulo does not matter here */
	uint64_t x = g->random += 0x9e3779b97f4a7c15u;

	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
	return (x ^ (x >> 31)) % limit;
}

static void put(struct generator *g, const struct trace_record *r)
{
	if (trace_writer_put(g->writer, r, &g->err) != BASE_OK)
		die(g);
	g->nr_put += r->stream != 0;
}

#define PUT(g, stream_, time_, kind_, ...)                                                         \
	put(g, &(struct trace_record){.time_ns = (time_),                                          \
		       .stream = (stream_),                                                        \
		       .kind = TRACE_##kind_,                                                      \
		       .u.kind_ = {__VA_ARGS__}})

/* Streams are 1 + thread number; thread 0 is the main thread, which only creates and joins. */
static uint32_t stream_of(uint32_t thread)
{
	return 1 + thread;
}

static uint32_t define_string(struct generator *g, const char *text)
{
	PUT(g, 0, 0, string, .string = ++g->nr_strings,
		.text = {.bytes = text, .length = (uint32_t)strlen(text)});
	return g->nr_strings;
}

static uint32_t define_numbered(struct generator *g, const char *fmt, unsigned number)
{
	char text[64];

	snprintf(text, sizeof text, "%s%u", fmt, number);
	return define_string(g, text);
}

static void define_common(struct generator *g)
{
	uint32_t name = define_string(g, "synthetic"), source = define_string(g, "synthetic.c");

	PUT(g, 0, 0, process, .process = 1, .pid = 4242, .name = name, .command = name);
	PUT(g, 0, 0, module, .module = 1, .path = define_string(g, "/usr/bin/synthetic"));
	for (uint32_t i = 1; i <= SITES; i++) {
		uint32_t function = define_numbered(g, "function_", i);
		PUT(g, 0, 0, site, .site = i, .module = 1, .offset = 0x1000 + 0x40 * i);
		PUT(g, 0, 0, symbol, .site = i, .function = function, .file = source,
			.line = 10 * i, .function_offset = 0x1000 + 0x40 * i - 12);
	}
	PUT(g, 0, 0, stack, .stack = 1, .site = 1);
	PUT(g, 0, 0, stack, .stack = 2, .parent = 1, .site = 2);
	for (uint32_t i = 0; i <= g->nr_workers; i++) {
		uint32_t thread = i ? define_numbered(g, "worker-", i) : name;
		PUT(g, 0, 0, stream, .stream = stream_of(i), .process = 1, .tid = 4242 + i,
			.name = thread);
	}
}

static void define_locks(struct generator *g)
{
	for (uint32_t i = 1; i <= g->nr_locks; i++)
		PUT(g, 0, 0, object, .object = i, .process = 1, .type = TRACE_OBJECT_mutex,
			.address = 0x404000 + UINT64_C(64) * i,
			.name = i % 4 ? 0 : define_numbered(g, "lock_", i));
}

static void define_pipeline(struct generator *g)
{
	for (uint32_t i = 1; i <= g->nr_threads; i++) {
		uint32_t stage = define_numbered(g, "stage-", i);
		PUT(g, 0, 0, actor, .actor = i, .name = stage);
		PUT(g, 0, 0, object, .object = i, .process = 1, .type = TRACE_OBJECT_queue,
			.name = define_numbered(g, "queue-", i));
	}
	PUT(g, 0, 0, state, .state = 1, .name = define_string(g, "receive"), .site = 1);
	PUT(g, 0, 0, state, .state = 2, .name = define_string(g, "work"), .site = 2);
}

static void begin_threads(struct generator *g)
{
	PUT(g, 1, 0, process_begin, 0);
	PUT(g, 1, 0, thread_begin, 0);
	for (uint32_t i = 1; i <= g->nr_threads; i++) {
		PUT(g, 1, BEGIN_NS * (uint64_t)i - 500, thread_create, .token = i, .site = 3);
		g->now_ns[i] = BEGIN_NS * (uint64_t)i;
		PUT(g, stream_of(i), g->now_ns[i], thread_begin, .token = i, .handle = i,
			.site = 4);
	}
}

static void end_threads(struct generator *g)
{
	uint64_t now_ns = BEGIN_NS * (uint64_t)g->nr_threads;

	for (uint32_t i = 1; i <= g->nr_threads; i++) {
		g->now_ns[i] += END_NS;
		PUT(g, stream_of(i), g->now_ns[i], thread_end);
		PUT(g, 1, now_ns, join_wait, .handle = i, .site = 5);
		if (now_ns < g->now_ns[i] + END_NS)
			now_ns = g->now_ns[i] + END_NS;
		PUT(g, 1, now_ns, join_done, .handle = i);
	}
	PUT(g, 1, now_ns + END_NS, thread_end);
	PUT(g, 1, now_ns + END_NS, process_end, 0);
}

/* The threads in a heap by their clocks: who asks first is served first. */
static void sift_down(const struct generator *g, uint32_t *heap, uint32_t nr)
{
	uint32_t thread = heap[0], at = 0;

	for (uint32_t child; (child = 2 * at + 1) < nr; at = child) {
		if (child + 1 < nr && g->now_ns[heap[child + 1]] < g->now_ns[heap[child]])
			child++;
		if (g->now_ns[thread] <= g->now_ns[heap[child]])
			break;
		heap[at] = heap[child];
	}
	heap[at] = thread;
}

static void run_locks(struct generator *g)
{
	uint32_t *heap = calloc(g->nr_threads, sizeof *heap);
	uint32_t nr_hot = (g->nr_locks + 7) / 8;

	if (!heap)
		exit(4);
	for (uint32_t i = 0; i < g->nr_threads; i++)
		heap[i] = i + 1; /* their clocks ascend */
	while (g->nr_put < g->nr_wanted) {
		uint32_t thread = heap[0], stream = stream_of(thread);
		uint64_t dice = random_below(g, UINT64_C(1) << 32), now_ns = g->now_ns[thread];
		uint32_t lock = 1 + (uint32_t)random_below(g, dice & 1 ? nr_hot : g->nr_locks);
		uint32_t site = 6 + (uint32_t)(lock * 5 + (dice >> 1 & 1)) % (SITES - 6);

		if (g->free_ns[lock] > now_ns) {
			PUT(g, stream, now_ns, lock_wait, .object = lock, .site = site,
				.stack = dice & 2 ? 2 : 0);
			now_ns = g->free_ns[lock];
		}
		PUT(g, stream, now_ns, lock_acquire, .object = lock, .site = site);
		now_ns += 30 + (dice >> 8) % 120;
		PUT(g, stream, now_ns, lock_release, .object = lock, .site = site + 1);
		g->free_ns[lock] = now_ns;
		g->now_ns[thread] = now_ns + 50 + (dice >> 20) % 700;
		sift_down(g, heap, g->nr_threads);
	}
	free(heap);
}

static void run_pipeline(struct generator *g)
{
	for (uint32_t i = 1; i <= g->nr_threads; i++)
		PUT(g, stream_of(i), g->now_ns[i], note_begin, .actor = i);
	while (g->nr_put < g->nr_wanted) {
		uint64_t ready_ns = 0;
		for (uint32_t i = 1; i <= g->nr_threads; i++) {
			uint64_t now_ns = g->now_ns[i];
			if (i > 1) {
				PUT(g, stream_of(i), now_ns, note_state, .state = 1);
				if (ready_ns > now_ns) {
					PUT(g, stream_of(i), now_ns, note_wait_empty,
						.object = i - 1, .n = 1, .site = 2 * i % SITES);
					now_ns = ready_ns;
				}
				PUT(g, stream_of(i), now_ns, note_dequeue, .object = i - 1, .n = 1,
					.site = (2 * i + 1) % SITES);
			}
			PUT(g, stream_of(i), now_ns, note_state, .state = 2);
			now_ns += 200 + random_below(g, 400);
			if (i < g->nr_threads)
				PUT(g, stream_of(i), now_ns, note_enqueue, .object = i, .n = 1,
					.site = (2 * i + 2) % SITES);
			ready_ns = g->now_ns[i] = now_ns;
		}
	}
	for (uint32_t i = 1; i <= g->nr_threads; i++)
		PUT(g, stream_of(i), g->now_ns[i], note_end, .actor = i);
}

static void run_short_threads(struct generator *g)
{
	uint64_t now_ns = BEGIN_NS;

	PUT(g, 1, 0, process_begin, 0);
	PUT(g, 1, 0, thread_begin, 0);
	for (uint32_t i = 1; i <= g->nr_threads; i++) {
		uint32_t stream = stream_of(i), lock = 1 + i % g->nr_locks;
		PUT(g, 1, now_ns, thread_create, .token = i, .site = 3);
		PUT(g, 1, now_ns + 10, join_wait, .handle = i, .site = 5);
		PUT(g, stream, now_ns + 100, thread_begin, .token = i, .handle = i, .site = 4);
		PUT(g, stream, now_ns + 1000, lock_acquire, .object = lock, .site = 6);
		PUT(g, stream, now_ns + 2000, lock_release, .object = lock, .site = 7);
		PUT(g, stream, now_ns + 2100, thread_end);
		now_ns += 2200;
		PUT(g, 1, now_ns, join_done, .handle = i);
		now_ns += 100;
	}
	PUT(g, 1, now_ns, thread_end);
	PUT(g, 1, now_ns, process_end, 0);
}

/* Of command i: its process before and after the exec; its pipe. */
static uint32_t forked_of(uint32_t i)
{
	return 2 * i;
}

static void define_commands(struct generator *g)
{
	uint32_t name = define_string(g, "command");
	for (uint32_t i = 1; i <= g->nr_threads; i++) {
		uint32_t child = forked_of(i), image = child + 1;
		PUT(g, 0, 0, process, .process = child, .parent = 1, .pid = 5000 + i, .name = name,
			.command = name);
		PUT(g, 0, 0, process, .process = image, .parent = child, .pid = 5000 + i,
			.name = name, .command = name);
		PUT(g, 0, 0, stream, .stream = child, .process = child, .tid = 5000 + i);
		PUT(g, 0, 0, stream, .stream = image, .process = image, .tid = 5000 + i);
		PUT(g, 0, 0, object, .object = g->nr_locks + 2 * i - 1, .process = image,
			.type = TRACE_OBJECT_mutex, .address = 0x404000);
		PUT(g, 0, 0, object, .object = g->nr_locks + 2 * i, .type = TRACE_OBJECT_pipe,
			.address = 0x10000 + i, .capacity = 65536);
	}
}

static void run_command(struct generator *g, uint32_t i, uint64_t now_ns, bool signals)
{
	uint32_t child = forked_of(i), image = child + 1;
	uint32_t lock = g->nr_locks + 2 * i - 1, pipe = g->nr_locks + 2 * i;
	PUT(g, 1, now_ns, process_fork, .token = i, .site = 3);
	PUT(g, 1, now_ns + 10, io_begin, .object = pipe, .op = TRACE_IO_write, .site = 4);
	PUT(g, 1, now_ns + 20, io_end, .object = pipe, .op = TRACE_IO_write, .result = 100);
	PUT(g, 1, now_ns + 30, child_wait, .site = 5);
	PUT(g, child, now_ns + 200, process_begin, .token = i);
	PUT(g, child, now_ns + 300, process_exec, .site = 6);
	PUT(g, image, now_ns + 1000, process_begin, 0);
	PUT(g, image, now_ns + 1001, thread_begin, 0);
	PUT(g, image, now_ns + 1100, io_begin, .object = pipe, .op = TRACE_IO_read, .site = 7);
	PUT(g, image, now_ns + 1200, io_end, .object = pipe, .op = TRACE_IO_read, .result = 100);
	PUT(g, image, now_ns + 1500, lock_acquire, .object = lock, .site = 8);
	PUT(g, image, now_ns + 1600, lock_release, .object = lock, .site = 9);
	if (signals)
		PUT(g, image, now_ns + 1700, signal_send, .site = 10);
	PUT(g, image, now_ns + 2000, process_end, 0);
	PUT(g, 1, now_ns + 2200, child_waited, .pid = 5000 + i);
}

static void run_commands(struct generator *g, bool signals)
{
	uint64_t now_ns = BEGIN_NS;

	define_commands(g);
	PUT(g, 1, 0, process_begin, 0);
	PUT(g, 1, 0, thread_begin, 0);
	for (uint32_t i = 1; i <= g->nr_threads; i++, now_ns += 2300)
		run_command(g, i, now_ns, signals);
	PUT(g, 1, now_ns, thread_end);
	PUT(g, 1, now_ns, process_end, 0);
}

static bool is_of_commands(const char *kind)
{
	return !strcmp(kind, "commands") || !strcmp(kind, "groups");
}

static void run(struct generator *g, const char *kind)
{
	if (is_of_commands(kind)) {
		run_commands(g, !strcmp(kind, "groups"));
		return;
	}
	if (!strcmp(kind, "note"))
		define_pipeline(g);
	else
		define_locks(g);
	if (!strcmp(kind, "threads")) {
		run_short_threads(g);
		return;
	}
	begin_threads(g);
	if (!strcmp(kind, "note"))
		run_pipeline(g);
	else
		run_locks(g);
	end_threads(g);
}

static bool is_kind(const char *text)
{
	return !strcmp(text, "lock") || !strcmp(text, "note") || !strcmp(text, "threads") ||
	       is_of_commands(text);
}

static uint64_t number(const char *name, const char *text, uint64_t least, uint64_t most)
{
	char *end;
	uint64_t v = strtoull(text, &end, 10);

	if (*end || end == text || v < least || v > most) {
		fprintf(stderr, "lpt-gen: --%s takes %" PRIu64 " to %" PRIu64 "\n", name, least,
			most);
		exit(2);
	}
	return v;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{"records", required_argument, NULL, 'r'},
		{"threads", required_argument, NULL, 't'},
		{"locks", required_argument, NULL, 'l'},
		{"kind", required_argument, NULL, 'k'},
		{"seed", required_argument, NULL, 's'},
		{0},
	};
	static const char usage[] =
		"usage: lpt-gen [--records N] [--threads K] [--locks L] "
		"[--kind lock|note|threads|commands|groups] [--seed S] OUT.lpt\n";
	struct generator g = {.nr_wanted = 1000000, .nr_threads = 4, .nr_locks = 64, .random = 1};
	const char *kind = "lock";

	for (int c; (c = getopt_long(argc, argv, "", options, NULL)) != -1;) {
		if (c == 'r')
			g.nr_wanted = number("records", optarg, 1, UINT64_C(1) << 40);
		else if (c == 't')
			g.nr_threads = (uint32_t)number("threads", optarg, 1, MAX_THREADS);
		else if (c == 'l')
			g.nr_locks = (uint32_t)number("locks", optarg, 1, MAX_LOCKS);
		else if (c == 's')
			g.random = number("seed", optarg, 0, UINT64_MAX);
		else if (c == 'k' && is_kind(optarg))
			kind = optarg;
		else {
			fputs(usage, stderr);
			return 2;
		}
	}
	if (optind + 1 != argc) {
		fputs(usage, stderr);
		return 2;
	}
	struct trace_info info = {
		.size = sizeof info,
		.host = "synthetic",
		.command = "synthetic",
		.tool = "lpt-gen",
		.tick_hz = 1000000000,
		.nr_processors = g.nr_threads + 1,
		.flags = TRACE_INFO_SYNTHETIC,
	};
	g.now_ns = calloc(g.nr_threads + 1, sizeof *g.now_ns);
	g.free_ns = calloc(g.nr_locks + 1, sizeof *g.free_ns);
	if (!g.now_ns || !g.free_ns)
		return 4;
	if (trace_writer_open(argv[optind], &info, &g.writer, &g.err) != BASE_OK)
		die(&g);
	g.nr_workers = is_of_commands(kind) ? 0 : g.nr_threads;
	define_common(&g);
	run(&g, kind);
	if (trace_writer_flush(g.writer, &g.err) != BASE_OK)
		die(&g);
	uint64_t bytes = trace_writer_bytes(g.writer);
	if (trace_writer_close(g.writer, &g.err) != BASE_OK)
		die(&g);
	printf("%" PRIu64 " records, %" PRIu64 " bytes, %.2f bytes a record\n", g.nr_put, bytes,
		(double)bytes / (double)g.nr_put);
	free(g.now_ns);
	free(g.free_ns);
	return 0;
}
