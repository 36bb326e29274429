/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_deadlock_copy.c - a copy of a waiting thread that makes any system calls with any arguments:
 * what they do instead stays inside of the copy, and its run says how it ended. The first byte
 * chooses what it waits for, the second how many calls it makes; each call is a number's byte and
 * six arguments (`take_argument`); the rest is the copy's memory at MEMORY.
 */
#include "../unit/deadlock_copy.h"
#include "deadlock/deadlock.h"

enum {
	PID = 1 << 29, /* no such process */
	NUMBERS = 470, /* of system calls */
	KINDS = DEADLOCK_KIND_NR,
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes);

struct bytes {
	const uint8_t *at, *end;
};

static uint8_t take(struct bytes *b)
{
	return b->at < b->end ? *b->at++ : 0;
}

/* Small, a place in memory, or eight bytes of anything. */
static uint64_t take_argument(struct bytes *b)
{
	const uint8_t code = take(b);
	uint64_t all = 0;
	if (code < 0x60)
		return code;
	if (code < 0xf0)
		return MEMORY + (uint64_t)(code - 0x60) * 24;
	if (code < 0xf4)
		return DEADLOCK_COPY_FAKE_FD + code - 0xf0;
	if (code < 0xf8)
		return (uint64_t)-1 - (code - 0xf4);
	for (int i = 0; i < 8; i++)
		all = all << 8 | take(b);
	return all;
}

static void make_wait(struct deadlock_wait *w, uint8_t dice, struct bytes *b)
{
	w->kind = (enum deadlock_kind)(dice % KINDS);
	w->word = w->object + 4u * (dice / KINDS);
	if (!(dice & 0x80))
		return;
	w->call = (int)(take_argument(b) % NUMBERS);
	for (size_t i = 0; i < BASE_COUNT(w->arg); i++)
		w->arg[i] = take_argument(b);
}

static void check_run(const struct deadlock_copy *c)
{
	const struct deadlock_run *run = c->run;
	BASE_ASSERT(run->nr_events <= c->events_max && c->events_max <= DEADLOCK_EVENTS_MAX);
	BASE_ASSERT(c->nr_files <= DEADLOCK_COPY_FILES_MAX);
	BASE_ASSERT(c->mapped_bytes <= DEADLOCK_COPY_MAPPED_MAX);
	BASE_ASSERT(c->is_done == (run->end != DEADLOCK_END_NONE));
	/* what proves something was not guessed */
	BASE_ASSERT(!c->tainted || !deadlock_end_is_proper(run->end));
	BASE_ASSERT(strnlen(run->why, sizeof run->why) < sizeof run->why);
	BASE_ASSERT(strnlen(run->would_write, sizeof run->would_write) < sizeof run->would_write);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes)
{
	static struct copy_fixture f;
	struct bytes b = {data, data + size_bytes};
	const uint8_t kind = take(&b), nr_calls = take(&b);
	copy_begin(&f, PID, true);
	make_wait(&f.wait, kind, &b);
	const struct bytes calls = b;
	for (unsigned i = 0; i < nr_calls; i++) { /* over them, to what is behind */
		(void)take(&b), (void)take(&b);
		for (int a = 0; a < 6; a++)
			(void)take_argument(&b);
	}
	const size_t left = (size_t)(b.end - b.at);
	memcpy(f.ghost.memory, b.at, left < MEMORY_BYTES ? left : MEMORY_BYTES);
	b = calls;
	(void)deadlock_satisfy(&f.copy);
	check_run(&f.copy);
	for (unsigned i = 0; i < nr_calls && !f.copy.is_done; i++) {
		uint64_t arg[6];
		const uint64_t number = take(&b) | (uint64_t)take(&b) << 8;
		for (int a = 0; a < 6; a++)
			arg[a] = take_argument(&b);
		f.ghost.registers.rip = number;
		deadlock_satisfy_look(&f.copy);
		(void)deadlock_emulate(&f.copy, number % NUMBERS, arg);
		check_run(&f.copy);
	}
	return 0;
}
