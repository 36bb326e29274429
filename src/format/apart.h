/* SPDX-License-Identifier: Apache-2.0 */
/*
 * apart.h - libraries that read others' files and may give up on damage by ending the process: they
 * do it in a child, which hands over what it reads. Its death is an error like any other.
 */
#ifndef LONGPOLE_FORMAT_APART_H
#define LONGPOLE_FORMAT_APART_H

#include "format/kernel.h"

enum { FORMAT_APART_COUNTS = 4, FORMAT_APART_WHY_BYTES = 200 };

/* What a reader hands over that does not read events of a kernel: texts and items of its own. */
struct format_apart_giver; /* the child's side */
enum { FORMAT_APART_ITEMS_BYTES = 1 << 16 };
/* At most FORMAT_APART_ITEMS_BYTES a call. False: nobody takes it, and the reader is to give up. */
bool format_apart_give_text(struct format_apart_giver *g, const char *text) BASE_MUST_CHECK;
bool format_apart_give_items(
	struct format_apart_giver *g, const void *items, size_t nr_bytes) BASE_MUST_CHECK;
struct format_apart_items { /* the parent's side: in the order in which they were given */
	enum base_status (*text)(void *ctx, const char *text, size_t length, struct base_err *err);
	enum base_status (*items)(
		void *ctx, const uint8_t *bytes, size_t nr_bytes, struct base_err *err);
	void *ctx;
};

struct format_apart {
	const char *library; /* for messages */
	const char *path;
	/* Runs in the child: gives all to `s` (format_sched_convert(), format_sched_add()). */
	enum base_status (*read)(struct format_sched *s, const char *path,
		uint64_t count[static FORMAT_APART_COUNTS], struct base_err *err);
	/* Instead of it: a reader of items, and who takes them. */
	enum base_status (*read_items)(struct format_apart_giver *g, const char *path,
		uint64_t count[static FORMAT_APART_COUNTS], struct base_err *err);
	const struct format_apart_items *items;
};

/* What it reads goes to `to` (NULL: to a->items); counts are the reader's. ERR_FOREIGN also when the
 * library ended the child: with what it said last, or which signal it was. */
enum base_status format_read_apart(const struct format_apart *a, struct format_sched *to,
	uint64_t count[static FORMAT_APART_COUNTS], struct base_err *err) BASE_MUST_CHECK;

/*
 * The parent's side: takes messages apart. The child's memory may be damaged by what it read, so
 * nothing in them is trusted. Bytes may come in any pieces.
 */
struct format_apart_taker {
	struct format_sched *to;
	const struct format_apart_items *items; /* instead of `to` */
	uint64_t *count;
	struct base_str waiting; /* of the next message */
	uint32_t *name;          /* the child's ids to ours */
	size_t nr_names, name_capacity;
	bool done; /* it has said its last */
	enum base_status said;
};
/* Anything but OK: the child is to be given up. */
enum base_status format_apart_take(struct format_apart_taker *t, const void *bytes, size_t nr,
	struct base_err *err) BASE_MUST_CHECK;
void format_apart_fini(struct format_apart_taker *t);

#endif
