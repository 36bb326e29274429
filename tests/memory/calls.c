/* SPDX-License-Identifier: Apache-2.0 */
/*
 * calls.c TRACE PROGRAM - the call records of all threads, a line each: thread, kind, arguments.
 * Addresses of code are "PROGRAM+offset" in hexadecimal, or "-" elsewhere; addresses of data are
 * left out, but a release says which allocation of its thread it ends ("#n", or "-" of none).
 */
#include "memory/order/cursor.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { BLOCKS = 4096 };
static uint64_t block[BLOCKS]; /* of the thread's n-th allocation; 0: released */
static size_t nr_blocks;

static void print_code(const struct memory_source *s, uint64_t code, const char *program)
{
	struct memory_linked l;
	const char *path = s->ops->linked(s, code, true, 0, &l) ? l.path : "";
	const char *base = strrchr(path, '/');
	if (base && !strcmp(base + 1, program))
		printf(" %s+%" PRIx64, program, l.address);
	else
		printf(" -");
}

static void print_release(uint64_t address)
{
	for (size_t i = nr_blocks; i-- > 0;)
		if (block[i] == address) {
			block[i] = 0;
			printf(" #%zu", i);
			return;
		}
	printf(" -");
}

static void print(const struct memory_source *s, uint32_t thread, const struct memory_call *c,
	const char *program)
{
	const struct memory_call_desc *d = memory_call_find(c->kind);
	printf("%u %s", thread, d ? d->name : "?");
	switch (c->kind) {
	case MEMORY_CALL_allocate:
		printf(" %" PRIu64, c->argument[1]);
		print_code(s, c->argument[2], program);
		printf("%s", c->argument[3] == MEMORY_ALLOCATION_MAPPING ? " mapping" : "");
		if (nr_blocks < BLOCKS)
			block[nr_blocks++] = c->argument[0];
		break;
	case MEMORY_CALL_release:
		print_release(c->argument[0]);
		break;
	case MEMORY_CALL_spawn:
	case MEMORY_CALL_barrier:
		printf(" %" PRIu64, c->argument[1]);
		break;
	default:
		break;
	}
	printf("\n");
}

int main(int argc, char **argv)
{
	struct memory_source *s;
	struct base_err err = {0};
	const char *path[] = {argc > 1 ? argv[1] : ""};
	if (memory_source_open("lpt", path, 1, &s, &err) != BASE_OK) {
		fprintf(stderr, "%s\n", err.nr_causes ? err.cause[0] : "?");
		return 3;
	}
	for (uint32_t thread = 0; thread < s->info.nr_threads; thread++) {
		struct memory_cursor c = {0};
		const struct memory_item *t;
		nr_blocks = 0;
		while (memory_cursor_peek(&c, s, (int)thread, &t, &err) == BASE_OK && t) {
			if (t->kind == MEMORY_CALL)
				print(s, thread, &c.batch.call[t->address],
					argc > 2 ? argv[2] : "");
			memory_cursor_advance(&c);
		}
	}
	memory_source_close(s);
	return 0;
}
