/* SPDX-License-Identifier: GPL-2.0-or-later */
/* object.h - which file code is of. All of it is called under one lock: stream.h. */
#ifndef LONGPOLE_QEMU_OBJECT_H
#define LONGPOLE_QEMU_OBJECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct block_shape;

/* A file that is mapped, as far as its code can be told by 32 bits. Never freed. */
struct object {
	char *path;    /* "": of no file */
	uint64_t bias; /* mapped minus linked addresses */
	uint64_t near;
	uint64_t *entry; /* linked addresses of its procedures, ascending */
	size_t nr_entries;
	/* Shapes that are not in a table yet (stream.c). */
	struct block_shape *first_new;
	uint32_t nr_new;
	size_t new_bytes;
};
enum { OBJECT_PLACES = 32 };
struct objects {
	struct object **object;
	size_t nr;
	/* What is mapped where, as far as it was looked up: host addresses. */
	struct {
		uint64_t start, end;
		struct object *object;
	} place[OBJECT_PLACES];
	unsigned nr_places;
};

/* Of the code at `address`, which is at `code` in QEMU's memory. NULL: no memory. */
struct object *object_of(struct objects *all, uint64_t address, const void *code);
/* The program maps something: look again. */
void object_forget_places(struct objects *all);
bool object_is_entry(const struct object *o, uint64_t address);

#endif
