/* SPDX-License-Identifier: Apache-2.0 */
/* private.h - shared by the files of golive/, not beyond. */
#ifndef LONGPOLE_GOLIVE_PRIVATE_H
#define LONGPOLE_GOLIVE_PRIVATE_H

#include "golive/golive.h"

/* ---- image.c: a Go program's file; nothing in it is trusted ------------------------------------ */

struct golive_image {
	const uint8_t *bytes; /* the file: borrowed */
	size_t nr_bytes;
	const uint8_t *table; /* .gopclntab */
	size_t table_bytes;
	unsigned version; /* 19: Go 1.19; 0: not said */
	uint64_t text;    /* functions' places count from there */
	uint64_t nr_functions, names, units, files, codes, functions;
	uint64_t table_address,
		inlined; /* inlined: what inlined calls are described in; 0: nothing */
	unsigned code_unit;
	bool is_new;          /* as since 1.20 */
	uint8_t wrapper_kind; /* of functions that only call another one; 0: not known */
	bool is_static;
};
struct golive_place {
	const char *function, *file; /* in the image; "": not known */
	uint64_t entry;
	uint32_t line;
	bool is_wrapper; /* made by the compiler, to call another one */
};
/* ERR_FOREIGN: no program of Go's, or before 1.18. */
enum base_status golive_image_read(struct golive_image *im, const uint8_t *bytes, size_t nr_bytes,
	struct base_err *err) BASE_MUST_CHECK;
/* Where the function of that name begins; 0: there is none. */
uint64_t golive_image_function(const struct golive_image *im, const char *name);
/* The function and those that were inlined there, innermost first. Returns how many. */
size_t golive_image_places(
	const struct golive_image *im, uint64_t pc, struct golive_place *ret, size_t max);
/* The function that the one at `entry` only calls, if it is such a wrapper; else `entry`. */
uint64_t golive_image_wrapped(const struct golive_image *im, uint64_t entry);
/* What the file has for an address of the running program; NULL: not so many bytes. */
const uint8_t *golive_image_at(const struct golive_image *im, uint64_t address, size_t nr_bytes);
/* The text of a wait reason, into `to`; false: there is none of that number. */
bool golive_image_reason(
	const struct golive_image *im, uint64_t table, uint32_t number, char *to, size_t size);
/* Where the table of these texts is; 0: not found. */
uint64_t golive_image_reasons(const struct golive_image *im);

/* ---- layout.c: where things are in the runtime's structures ------------------------------------ */

struct golive_layout {
#define FIELD(name, type, member) uint64_t name;
#define LAYOUT(...)
#include "golive/layout.def"
};
/* By the file's debug information, else by the table of versions. */
enum base_status golive_layout_of(
	struct golive_layout *ret, int fd, unsigned version, struct base_err *err) BASE_MUST_CHECK;

/* ---- code.c: what runs inside ------------------------------------------------------------------ */

enum { GOLIVE_PCS = 25, GOLIVE_HEAD_BYTES = 4096, GOLIVE_CODE_BYTES = 1024 };
struct golive_head {       /* the ring's first page */
	uint64_t next;     /* records that were begun */
	uint64_t capacity; /* more find no room */
};
struct golive_record {
	uint64_t ticks;         /* written last; 0: not whole */
	uint64_t g;             /* its address */
	uint32_t before, after; /* statuses */
	uint64_t goid;          /* 0: not numbered yet */
	uint32_t reason;
	int32_t p;               /* the thread's; -1: none */
	uint64_t by;             /* goroutine whose thread it is; 0: the scheduler's */
	uint64_t start;          /* where it begins */
	uint64_t pc[GOLIVE_PCS]; /* return addresses of who sleeps, or wakes; 0 from the end on */
};
_Static_assert(sizeof(struct golive_record) == 256, "as the code has it");
/* The code for a ring at that address, to lie at the beginning of a page; returns its bytes, and where it is entered. What was displaced comes
 * behind it. */
size_t golive_code(uint8_t to[GOLIVE_CODE_BYTES], const struct golive_layout *l, uint64_t ring,
	uint64_t *ret_entry);

/* ---- events.c: records as Go's events ---------------------------------------------------------- */

struct golive_clock {
	uint64_t origin_ticks;
	double ns_per_tick;
};
/* Puts the records in order. */
enum base_status golive_events(const struct golive_image *im, struct golive_record *r, size_t nr,
	const struct golive_clock *clock, struct gotrace **ret,
	struct base_err *err) BASE_MUST_CHECK;

#endif
