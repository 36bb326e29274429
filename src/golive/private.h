/* SPDX-License-Identifier: Apache-2.0 */
/* private.h - shared by the files of golive/, not beyond. */
#ifndef LONGPOLE_GOLIVE_PRIVATE_H
#define LONGPOLE_GOLIVE_PRIVATE_H

#include "golive/golive.h"
#include "os/clock.h"

#include <sys/types.h>

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
/* Is its return address on top of the stack there? */
bool golive_image_is_frameless(const struct golive_image *im, uint64_t pc);
/* The function that the one at `entry` only calls, if it is such a wrapper; else `entry`. */
uint64_t golive_image_wrapped(const struct golive_image *im, uint64_t entry);
/* What the file has for an address of the running program; NULL: not so many bytes. */
const uint8_t *golive_image_at(const struct golive_image *im, uint64_t address, size_t nr_bytes);
/* The text of a wait reason, into `to`; false: there is none of that number. */
bool golive_image_reason(
	const struct golive_image *im, uint64_t table, uint32_t number, char *to, size_t size);
/* The number of that text; UINT64_MAX: there is none. */
uint64_t golive_image_reason_number(const struct golive_image *im, const char *text);
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
	uint16_t before, after; /* statuses */
	uint16_t reason;
	int16_t p;     /* the thread's; -1: none */
	uint64_t goid; /* 0: not numbered yet */
	uint64_t by;   /* goroutine whose thread it is; 0: the scheduler's */
	uint64_t what; /* of a sleeper: the lock that it leaves; else where it begins */
	uint32_t tid;  /* the thread */
	uint32_t room; /* sleeping at a channel: the items that it holds; else UINT32_MAX */
	uint64_t pc[GOLIVE_PCS]; /* return addresses of sleeper or waker; 0 from the end on */
};
_Static_assert(sizeof(struct golive_record) == 256, "as the code has it");
/* The code for a ring at that address, to lie at the beginning of a page; returns its bytes, and where it is entered. What was displaced comes
 * behind it. */
size_t golive_code(uint8_t to[GOLIVE_CODE_BYTES], const struct golive_image *im,
	const struct golive_layout *l, uint64_t ring, uint64_t *ret_entry);

/* ---- samples.c: where its threads were found ---------------------------------------------------- */

struct golive_sample {
	uint64_t time_ns;
	uint32_t tid, nr;
	size_t first; /* of its places: where it was, then return addresses of functions with
			 frames */
	uint64_t top; /* of its stack; 0: not known */
};
struct golive_samples {
	struct system_perf *perf; /* NULL: none are taken */
	const struct os_clock *clock;
	struct golive_sample *sample;
	size_t nr, capacity;
	uint64_t *pc;
	size_t nr_pcs, pcs_capacity;
	bool failed; /* no memory for all of them */
};
/* Of the child from now on, at that rate (0: none). Where the kernel refuses there are none, and why_not says why. */
void golive_samples_begin(struct golive_samples *s, pid_t pid, uint64_t hz,
	const struct os_clock *clock, char *why_not, size_t size);
/* What is there by now. at_end: nothing more comes. */
void golive_samples_read(struct golive_samples *s, bool at_end);
void golive_samples_fini(struct golive_samples *s);

/* ---- events.c: records as Go's events ---------------------------------------------------------- */

struct golive_seen {
	const struct golive_image *image;
	struct golive_record *record; /* come in order */
	size_t nr_records;
	const struct golive_samples *samples;
	const struct os_clock *clock;
};
enum base_status golive_events(
	const struct golive_seen *seen, struct gotrace **ret, struct base_err *err) BASE_MUST_CHECK;

#endif
