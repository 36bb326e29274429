/* SPDX-License-Identifier: Apache-2.0 */
/* emulate.c - the table of emulated system calls, and what its rows have in common. */
#include "deadlock/ahead/emulate.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>

typedef int64_t handler(struct deadlock_copy *c, const uint64_t *arg);

static const struct {
	uint64_t number;
	const char *name;
	handler *emulate; /* NULL: the result is constant */
	int64_t result;
} table[] = {
#define CALL(name, function) {__NR_##name, #name, deadlock_emulate_##function, 0},
#define RESULT(name, value)  {__NR_##name, #name, NULL, value},
#include "deadlock/ahead/emulate.def"
};

/* By number: 1 + the row. Built at compile time would need numbers in order; this is as cheap. */
static size_t emulate_row_of(uint64_t number)
{
	for (size_t i = 0; i < BASE_COUNT(table); i++)
		if (table[i].number == number)
			return i + 1;
	return 0;
}

bool deadlock_emulate_knows(uint64_t number)
{
	return emulate_row_of(number) != 0;
}

const char *deadlock_emulate_name(uint64_t number)
{
	const size_t row = emulate_row_of(number);
	return row ? table[row - 1].name : "";
}

/* A copy that goes round and round learns nothing more. One that gives the same again and again may
 * do something else in the end: it writes a large file, say. */
static bool is_lost(struct deadlock_copy *c, uint64_t number, uint64_t argument)
{
	const uint64_t pc = deadlock_ghost_registers(c->ghost)->rip;
	const bool same =
		c->last.number == number && c->last.pc == pc && c->last.argument == argument;
	c->repeats = same ? c->repeats + 1 : 0;
	c->last.number = number;
	c->last.pc = pc;
	c->last.argument = argument;
	const bool gave = c->gives;
	c->gives = false;
	if (c->repeats > DEADLOCK_COPY_REPEATS_MAX && gave)
		deadlock_copy_end(c, DEADLOCK_END_EVENTS, "%u {time|times} the same %s", c->repeats,
			deadlock_emulate_name(number));
	else if (c->repeats > DEADLOCK_COPY_REPEATS_MAX)
		deadlock_copy_end(c, DEADLOCK_END_LOOPS, "%u {time|times} the same %s", c->repeats,
			deadlock_emulate_name(number));
	else if (++c->calls_without_news > DEADLOCK_COPY_CALLS_MAX)
		deadlock_copy_end(c, DEADLOCK_END_LOOPS,
			"%u system {call|calls} without a new event", c->calls_without_news);
	return c->is_done;
}

int64_t deadlock_emulate(struct deadlock_copy *c, uint64_t number, const uint64_t arg[6])
{
	const size_t row = emulate_row_of(number);
	if (is_lost(c, number, arg[0]))
		return 0;
	if (!row) {
		deadlock_copy_end(c, DEADLOCK_END_CALL, "system call %llu is not emulated",
			(unsigned long long)number);
		return 0;
	}
	return table[row - 1].emulate ? table[row - 1].emulate(c, arg) : table[row - 1].result;
}

/* ---- for the rows ---------------------------------------------------------------------------- */

void deadlock_copy_end(struct deadlock_copy *c, enum deadlock_end end, const char *fmt, ...)
{
	va_list words;
	if (c->is_done)
		return;
	c->is_done = true;
	c->run->end = end;
	if (c->tainted && deadlock_end_is_proper(end)) {
		c->run->end = DEADLOCK_END_CALL;
		(void)snprintf(c->run->why, sizeof c->run->why, "%s", c->tainted);
		return;
	}
	va_start(words, fmt);
	(void)base_vformat(c->run->why, sizeof c->run->why, fmt, words);
	va_end(words);
}

void deadlock_copy_taint(struct deadlock_copy *c, const char *why)
{
	if (!c->tainted)
		c->tainted = why;
}

int64_t deadlock_copy_block(
	struct deadlock_copy *c, const struct deadlock_key *key, const char *what)
{
	if (key)
		c->run->again = *key;
	for (size_t i = 0; key && i < c->wait->nr_keys; i++)
		if (deadlock_key_matches(&c->wait->key[i], key))
			c->run->again_is_same = true;
	deadlock_copy_end(c, DEADLOCK_END_BLOCKED, "in %s", what);
	return 0;
}

void deadlock_copy_event(struct deadlock_copy *c, const struct deadlock_key *key)
{
	struct deadlock_run *run = c->run;
	if (c->is_done)
		return;
	c->gives = true;
	for (size_t i = 0; i < run->nr_events; i++)
		if (deadlock_key_equal(&run->event[i].key, key)) {
			run->event[i].count++;
			return;
		}
	if (run->nr_events == c->events_max) {
		deadlock_copy_end(c, DEADLOCK_END_EVENTS, "%u", c->events_max);
		return;
	}
	run->event[run->nr_events++] = (struct deadlock_event){
		.tid = c->wait->thread.tid,
		.key = *key,
		.count = 1,
		.pc = deadlock_ghost_registers(c->ghost)->rip,
	};
	c->calls_without_news = c->repeats = 0;
}

bool deadlock_copy_peek(struct deadlock_copy *c, uint64_t address, void *buf, size_t size)
{
	return deadlock_ghost_read(c->ghost, address, buf, size);
}

bool deadlock_copy_poke(struct deadlock_copy *c, uint64_t address, const void *buf, size_t size)
{
	return deadlock_ghost_write(c->ghost, address, buf, size);
}

bool deadlock_copy_poke32(struct deadlock_copy *c, uint64_t address, uint32_t value)
{
	return deadlock_ghost_write(c->ghost, address, &value, sizeof value);
}
