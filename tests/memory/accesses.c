/* SPDX-License-Identifier: Apache-2.0 */
/*
 * accesses.c [-j | -J] TRACE THREAD [PROGRAM [silent]] - what a recorded thread accessed, as
 * oracle.c writes it. With PROGRAM, a file that `longpole cc` built: only by its own instructions,
 * of all that Valgrind saw. `silent`: a store that left what was there is written in small letters.
 * -j: also jumps that were taken, by where they are in the file, and how many instructions; with
 * PROGRAM, where a jump leads to is the next instruction of its own, as recording code may come
 * before it. -J: those only, by their addresses.
 */
#include "memory/stream/source.h"
#include "own.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct own own;
static const struct memory_source *source;
static bool with_silent, with_jumps, only_jumps;
static uint64_t nr_instructions, jump_from; /* its own, which has not come to own code yet */

/* Code: how many of its instructions are the program's own, and the first of them. */
struct owned {
	uint64_t code, bytes, nr, first;
};

static void look(struct owned *o)
{
	struct memory_linked l;
	const char *name = source->ops->linked(source, o->code, true, 0, &l) ? l.path : "";
	const char *base = strrchr(name, '/');
	o->nr = 0;
	if (!base || strcmp(base + 1, own.name) != 0)
		return;
	for (uint64_t a = l.address; a < l.address + o->bytes; a++)
		if (own_has(&own, a) && !o->nr++)
			o->first = a;
}

/* The same code comes again and again. */
static const struct owned *owned(uint64_t code, uint64_t bytes)
{
	enum { KNOWN = 1 << 16 };
	static struct owned known[KNOWN];
	struct owned *o = &known[(code ^ bytes << 8) % KNOWN];
	if (o->code != code || o->bytes != bytes) {
		*o = (struct owned){.code = code, .bytes = bytes};
		look(o);
	}
	return o;
}

static bool is_wanted(uint64_t code)
{
	return !own.file || owned(code, 1)->nr;
}

static uint64_t place(uint64_t code)
{
	struct memory_linked l;
	return !only_jumps && source->ops->linked(source, code, true, 0, &l) ? l.address : code;
}

/* Of all that was fetched, what is the program's own. */
static void fetch_own(const struct memory_item *t)
{
	const struct owned *o = owned(t->address, t->size_bytes);
	if (jump_from && o->nr)
		printf("J %" PRIx64 " %" PRIx64 "\n", jump_from, o->first);
	jump_from = o->nr ? 0 : jump_from;
	nr_instructions += o->nr;
}

static void jump_own(const struct memory_item *t)
{
	if (t->kind == MEMORY_BLOCK)
		fetch_own(t);
	else if (t->kind == MEMORY_BRANCH && is_wanted(t->code))
		jump_from = place(t->code);
}

static void print_jump(const struct memory_item *t)
{
	printf("J %" PRIx64 " %" PRIx64 "\n", place(t->code), place(t->address));
}

static void print(const struct memory_item *t, uint64_t i)
{
	uint64_t a = t->address;
	if (own.file && with_jumps)
		jump_own(t);
	else
		nr_instructions += t->instructions;
	if (t->kind == MEMORY_BRANCH && with_jumps && !own.file)
		print_jump(t);
	if (only_jumps)
		return;
	if (t->kind > MEMORY_ATOMIC && t->kind != MEMORY_RANGE_LOAD &&
		t->kind != MEMORY_RANGE_STORE)
		return;
	if (!is_wanted(t->code))
		return;
	switch (t->kind) {
	case MEMORY_LOAD:
	case MEMORY_STORE:
	case MEMORY_ATOMIC:
		a += i * (uint64_t)t->stride_bytes;
		printf("%c %" PRIx64 " %u\n",
			(with_silent && t->flags & MEMORY_ITEM_SILENT ? "lsa" : "LSA")[t->kind], a,
			t->size_bytes);
		break;
	case MEMORY_RANGE_LOAD:
	case MEMORY_RANGE_STORE:
		if (!t->code) /* of a function that is not rewritten */
			break;
		printf("%c %" PRIx64 " %" PRIu64 "\n", t->kind == MEMORY_RANGE_LOAD ? 'R' : 'W', a,
			t->count);
		break;
	default:
		break;
	}
}

int main(int argc, char **argv)
{
	struct memory_source *s;
	struct base_err err = {0};
	struct memory_batch b;
	for (; argc > 1 && argv[1][0] == '-'; argc--, argv++) {
		with_jumps = true;
		only_jumps = argv[1][1] == 'J';
	}
	const char *path[] = {argc > 1 ? argv[1] : ""};
	enum base_status status = memory_source_open("lpt", path, 1, &s, &err);
	if (status != BASE_OK) {
		fprintf(stderr, "%s\n", err.nr_causes ? err.cause[0] : "?");
		return 3;
	}
	int thread = argc > 2 ? atoi(argv[2]) : 0;
	source = s;
	with_silent = argc > 4;
	if (argc > 3 && !own_read(&own, argv[3])) {
		fprintf(stderr, "%s: not built by longpole cc\n", argv[3]);
		return 3;
	}
	while ((status = memory_source_next(s, thread, &b, &err)) == BASE_OK) {
		if (memory_batch_check(&b, &err) != BASE_OK) {
			fprintf(stderr, "%s\n", err.cause[0]);
			return 3;
		}
		for (size_t i = 0; i < b.nr; i++) {
			if (b.item[i].kind != MEMORY_REPEAT) {
				print(&b.item[i], 0);
				continue;
			}
			size_t nr = (size_t)b.item[i].address;
			for (uint64_t n = 0; n < b.item[i].count; n++)
				for (size_t k = 1; k <= nr; k++)
					print(&b.item[i + k], n);
			i += nr;
		}
	}
	if (with_jumps)
		printf("I %" PRIu64 "\n", nr_instructions);
	uint64_t bad = 0;
	for (unsigned d = 0; d < MEMORY_DIAG_NR; d++)
		bad += d == MEMORY_DIAG_killed ? 0 : s->diags.count[d]; /* it was asked for */
	if (bad)
		fprintf(stderr, "%" PRIu64 " problems\n", bad);
	memory_source_close(s);
	return status == BASE_END && !bad ? 0 : 3;
}
