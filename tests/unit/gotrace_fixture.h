/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gotrace_fixture.h - Go's execution traces put together from the formats' definitions, by code that
 * shares nothing with the reader. A tick is 1 ns.
 */
#ifndef LONGPOLE_TESTS_GOTRACE_FIXTURE_H
#define LONGPOLE_TESTS_GOTRACE_FIXTURE_H

#include "test.h"

#include <string.h>

struct bytes {
	uint8_t b[1 << 14];
	size_t nr;
};

static inline void byte(struct bytes *o, unsigned v)
{
	assert_true(o->nr < sizeof o->b);
	o->b[o->nr++] = (uint8_t)v;
}

static inline void number(struct bytes *o, uint64_t v)
{
	for (; v >= 0x80; v >>= 7)
		byte(o, (unsigned)(v & 0x7f) | 0x80);
	byte(o, (unsigned)v);
}

static inline void raw(struct bytes *o, const void *p, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		byte(o, ((const uint8_t *)p)[i]);
}

static inline void header(struct bytes *o, const char *text)
{
	char head[16] = {0};
	strncpy(head, text, sizeof head - 1);
	raw(o, head, sizeof head);
}

/* type, then so many numbers */
#define EVENT_OF(o, ...)                                                                           \
	do {                                                                                       \
		const uint64_t args_[] = {__VA_ARGS__};                                            \
		byte((o), (unsigned)args_[0]);                                                     \
		for (size_t i_ = 1; i_ < sizeof args_ / sizeof *args_; i_++)                       \
			number((o), args_[i_]);                                                    \
	} while (0)

/* ---- version 2 ------------------------------------------------------------------------------- */

static inline void batch_v2(
	struct bytes *o, uint64_t generation, uint64_t thread, uint64_t at, const struct bytes *in)
{
	EVENT_OF(o, 1, generation, thread, at);
	/* as Go does: room for the length was kept, and is filled up */
	uint64_t v = in->nr;
	for (int i = 0; i < 4; i++, v >>= 7)
		byte(o, (unsigned)(v & 0x7f) | 0x80);
	byte(o, 0);
	raw(o, in->b, in->nr);
}

static inline void string_v2(struct bytes *o, uint64_t id, const char *text)
{
	EVENT_OF(o, 5, id, strlen(text));
	raw(o, text, strlen(text));
}

enum { CHAN_RECEIVE = 1, MAIN, WORKER, FILE_GO, CHANRECV }; /* strings */
enum { IN_MAIN = 1, IN_WORKER, WORKER_BEGIN };              /* stacks */

static inline void tables_v2(struct bytes *o, uint64_t generation)
{
	struct bytes in = {.nr = 0};
	byte(&in, 4);
	string_v2(&in, CHAN_RECEIVE, "chan receive");
	string_v2(&in, MAIN, "main.main");
	string_v2(&in, WORKER, "example.com/x/y.worker");
	string_v2(&in, FILE_GO, "/src/x.go");
	string_v2(&in, CHANRECV, "runtime.chanrecv1");
	batch_v2(o, generation, UINT64_MAX, 0, &in);
	in.nr = 0;
	byte(&in, 2);
	EVENT_OF(&in, 3, IN_MAIN, 2, 0x500, CHANRECV, FILE_GO, 600, 0x1000, MAIN, FILE_GO, 10);
	EVENT_OF(&in, 3, IN_WORKER, 1, 0x2000, WORKER, FILE_GO, 20);
	EVENT_OF(&in, 3, WORKER_BEGIN, 1, 0x1ff0, WORKER, FILE_GO, 18);
	batch_v2(o, generation, UINT64_MAX, 0, &in);
	in.nr = 0;
	EVENT_OF(&in, 8, 1000000000);
	batch_v2(o, generation, UINT64_MAX, 0, &in);
}

/*
 * Main makes a worker at 100 and waits for it from 200; the worker runs from 150, wakes main at 1000
 * and ends at 1100; main runs from 1010, until 1500. Both lanes' clocks are shifted against each
 * other by `skew`, so that only sequence numbers say who came first.
 */
static inline void hand_over_v2(struct bytes *o, uint64_t skew)
{
	struct bytes m = {.nr = 0}, w = {.nr = 0};
	header(o, "go 1.22 trace");
	EVENT_OF(&m, 9, 0, 2, 0);      /* GOMAXPROCS 2 */
	EVENT_OF(&m, 13, 0, 0, 1);     /* P 0 runs here */
	EVENT_OF(&m, 25, 0, 1, 10, 2); /* goroutine 1 runs on thread 10 */
	EVENT_OF(&m, 13, 0, 1, 2);     /* P 1 is idle */
	EVENT_OF(&m, 14, 100, 2, WORKER_BEGIN, IN_MAIN);
	EVENT_OF(&m, 20, 100, CHAN_RECEIVE, IN_MAIN);
	EVENT_OF(&m, 16, 810, 1, 2);         /* main's second number: its wake was the first */
	EVENT_OF(&m, 39, 490, CHAN_RECEIVE); /* a label */
	EVENT_OF(&w, 10, 0, 1, 1);
	EVENT_OF(&w, 16, 0, 2, 1);
	EVENT_OF(&w, 21, 850, 1, 1, IN_WORKER);
	EVENT_OF(&w, 17, 100);
	tables_v2(o, 1); /* (anywhere in their generation) */
	batch_v2(o, 1, 11, 150 + 5000 - skew, &w);
	batch_v2(o, 1, 10, 5000, &m);
}

/* ---- version 1 ------------------------------------------------------------------------------- */

/* The same as hand_over_v2(): by P. */
static inline void hand_over_v1(struct bytes *o, uint64_t skew)
{
	static const struct {
		unsigned id;
		const char *text;
	} texts[] = {{MAIN, "main.main"}, {WORKER, "example.com/x/y.worker"},
		{FILE_GO, "/src/x.go"}, {CHANRECV, "runtime.chanrecv1"}};
	struct bytes args;
	header(o, "go 1.19 trace");
	EVENT_OF(o, 1 | 1 << 6, 0, 5000); /* P 0 */
	EVENT_OF(o, 4 | 2 << 6, 0, 2, 0); /* GOMAXPROCS 2 */
	args = (struct bytes){.nr = 0};
	EVENT_OF(&args, 0, 1, 0, 0); /* goroutine 1 is there */
	EVENT_OF(o, 13 | 3 << 6, args.nr);
	raw(o, args.b, args.nr);
	EVENT_OF(o, 38 | 1 << 6, 0, 1); /* and runs */
	args = (struct bytes){.nr = 0};
	EVENT_OF(&args, 100, 2, WORKER_BEGIN, IN_MAIN);
	EVENT_OF(o, 13 | 3 << 6, args.nr);
	raw(o, args.b, args.nr);
	EVENT_OF(o, 23 | 1 << 6, 100, IN_MAIN); /* waits to receive */
	EVENT_OF(o, 14 | 2 << 6, 810, 1, 3);
	EVENT_OF(o, 33 | 1 << 6, 490, 4096);
	EVENT_OF(o, 1 | 1 << 6, 1, 150 + 5000 - skew); /* P 1 */
	EVENT_OF(o, 14 | 2 << 6, 0, 2, 1);
	args = (struct bytes){.nr = 0};
	number(&args, 850);
	EVENT_OF(&args, 1, 2, IN_WORKER);
	EVENT_OF(o, 21 | 3 << 6, args.nr);
	raw(o, args.b, args.nr);
	EVENT_OF(o, 15, 100);
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		EVENT_OF(o, 37, texts[i].id, strlen(texts[i].text));
		raw(o, texts[i].text, strlen(texts[i].text));
	}
	args = (struct bytes){.nr = 0};
	EVENT_OF(&args, IN_MAIN, 2, 0x500, CHANRECV, FILE_GO, 600, 0x1000, MAIN, FILE_GO, 10);
	EVENT_OF(o, 3 | 3 << 6, args.nr);
	raw(o, args.b, args.nr);
	args = (struct bytes){.nr = 0};
	EVENT_OF(&args, IN_WORKER, 1, 0x2000, WORKER, FILE_GO, 20);
	EVENT_OF(o, 3 | 3 << 6, args.nr);
	raw(o, args.b, args.nr);
	args = (struct bytes){.nr = 0};
	EVENT_OF(&args, WORKER_BEGIN, 1, 0x1ff0, WORKER, FILE_GO, 18);
	EVENT_OF(o, 3 | 3 << 6, args.nr);
	raw(o, args.b, args.nr);
	EVENT_OF(o, 2, 1000000000);
}

#endif
