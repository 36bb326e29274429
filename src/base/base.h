/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base.h - what every layer of longpole stands on. Needs nothing of longpole.
 *
 * Statuses and the caller-owned error, memory (one allocation gate, arenas), growable strings,
 * a 64/128-bit-keyed map, a string table, canonical varints. Nothing here prints or exits.
 */
#ifndef LONGPOLE_BASE_H
#define LONGPOLE_BASE_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define BASE_MUST_CHECK   __attribute__((warn_unused_result))
#define BASE_PRINTF(f, a) __attribute__((format(printf, f, a)))
#define BASE_LIKELY(x)    __builtin_expect(!!(x), 1)
#define BASE_UNLIKELY(x)  __builtin_expect(!!(x), 0)
#define BASE_COUNT(a)     (sizeof(a) / sizeof *(a))
/* For inner loops. Not with sanitizers: their checks in a thousand copies take minutes to compile.
 */
#ifdef BASE_SANITIZED
#define BASE_INLINE inline
#else
#define BASE_INLINE inline __attribute__((always_inline))
#endif

/* ---- statuses and errors --------------------------------------------------------------------- */

/* One row a status in status.def: number for ever, name, one line, what the user can do. */
enum base_status {
#define STATUS(name, number, line, advice) BASE_##name = (number),
#include "status.def"
};

const char *base_status_name(enum base_status s);   /* "ERR_CORRUPT" */
const char *base_status_line(enum base_status s);   /* "the file's contents are damaged" */
const char *base_status_advice(enum base_status s); /* what to try; "" when there is nothing */

/* One row of refusal.def: an errno, where it most likely comes from, what the user can do. */
struct base_refusal {
	int sys_errno;
	enum base_status status;
	const char *cause, *advice; /* advice "": the cause says it */
};
const struct base_refusal *base_refusal_of(int sys_errno); /* NULL: it has no row */

enum { BASE_ERR_CAUSES_MAX = 8, BASE_ERR_TEXT_MAX = 400 };

/*
 * struct base_err - what went wrong, innermost cause first. Owned by the caller (on its stack),
 * never allocates; causes beyond the eighth and text beyond BASE_ERR_TEXT_MAX are cut with "...".
 * Every function takes it last; NULL is allowed everywhere and loses the details only.
 */
struct base_err {
	enum base_status status;
	int sys_errno; /* 0 unless the environment refused something */
	unsigned nr_causes;
	char cause[BASE_ERR_CAUSES_MAX][BASE_ERR_TEXT_MAX];
};

/* base_fail() - start a new error and return its status: `return base_fail(err, ..., "...");`. */
enum base_status base_fail(struct base_err *err, enum base_status s, const char *fmt, ...)
	BASE_PRINTF(3, 4);
/* base_fail_errno() - the same for a refused system call; appends strerror(sys_errno). The status
 * is that of sys_errno's row in refusal.def, BASE_ERR_IO without one. */
enum base_status base_fail_errno(struct base_err *err, int sys_errno, const char *fmt, ...)
	BASE_PRINTF(3, 4);
/* base_cause() - add what we were doing when a callee failed; returns err->status. */
enum base_status base_cause(struct base_err *err, enum base_status s, const char *fmt, ...)
	BASE_PRINTF(3, 4);

/*
 * BASE_PARTITION() - how many of the indices 0 .. nr - 1 are `before` a point, found by halves; so
 * also the first that is not. `before` is a condition on the index `i`: true up to some place and
 * false from there on, as in a sorted array. In `size_t n = BASE_PARTITION(i, nr, a[i] <= x)`, the
 * last element up to x is a[n - 1], if n is not 0; the first beyond is a[n], if n < nr.
 */
#define BASE_PARTITION(i, nr, before)                                                              \
	({                                                                                         \
		size_t low_ = 0, high_ = (nr);                                                     \
		while (low_ < high_) {                                                             \
			const size_t i = low_ + (high_ - low_) / 2;                                \
			if (before)                                                                \
				low_ = i + 1;                                                      \
			else                                                                       \
				high_ = i;                                                         \
		}                                                                                  \
		low_;                                                                              \
	})

/* A broken promise of our own (never bad input): prints the id and aborts. */
#define BASE_ASSERT(cond)                                                                          \
	do {                                                                                       \
		if (BASE_UNLIKELY(!(cond)))                                                        \
			base_assert_failed(#cond, __FILE__, __LINE__);                             \
	} while (0)
_Noreturn void base_assert_failed(const char *cond, const char *file, int line);
/* What holds by construction, where a test would cost: said to the analyser only. */
#ifdef __clang_analyzer__
#define BASE_ASSUME(cond) BASE_ASSERT(cond)
#else
#define BASE_ASSUME(cond) ((void)0)
#endif

/* ---- memory ---------------------------------------------------------------------------------- */

/* The only gate to malloc in longpole. NULL when out of memory (never aborts); zeroed. */
void *base_alloc(size_t size_bytes);
void *base_realloc(void *p, size_t old_size_bytes, size_t size_bytes); /* the new tail is zeroed */
void base_free(void *p);                                               /* NULL-safe */
/* Tests: let the n-th allocation from now (1 = next) fail, once; 0 switches it off. Returns how many were
 * still to come until one asked for before would have failed. */
uint64_t base_alloc_fail_nth(uint64_t n);

/* base_grow() - make room for `need` elements in a growable array. *data and *capacity are updated
 * together (capacity doubles, at least 16); on BASE_ERR_NOMEM both are untouched. */
enum base_status base_grow(void *data /* T ** */, size_t *capacity, size_t need,
	size_t elem_size_bytes) BASE_MUST_CHECK;

/* struct base_arena - bump allocation for everything with one lifetime. Freed whole. */
struct base_arena;
struct base_arena *base_arena_new(size_t limit_bytes); /* 0: no limit; NULL: no memory */
struct base_arena *base_arena_free(struct base_arena *a);
void *base_arena_alloc(struct base_arena *a, size_t size_bytes); /* 16-aligned, zeroed; NULL */
char *base_arena_strndup(struct base_arena *a, const char *s, size_t length);
size_t base_arena_used_bytes(const struct base_arena *a);

/* ---- strings --------------------------------------------------------------------------------- */

/* struct base_str - growable, always NUL-terminated text. `{0}` is a valid empty string whose
 * buf is NULL until something is added; base_str_text() is never NULL. An allocation that fails
 * sets `failed` and leaves the text as it was: check once, at the end. */
struct base_str {
	char *buf;
	size_t length, capacity;
	bool failed;
};
enum { BASE_STR_LIMIT_BYTES = 1 << 30 }; /* beyond it `failed` is set, too */

void base_str_fini(struct base_str *s);
void base_str_reset(struct base_str *s);
void base_str_add(struct base_str *s, const char *text);
void base_str_add_bytes(struct base_str *s, const void *p, size_t length);
void base_str_addf(struct base_str *s, const char *fmt, ...) BASE_PRINTF(2, 3);
const char *base_str_text(const struct base_str *s);

/* ---- texts of others: names in a trace, arguments of a program (shown.c) --------------------- */

/* Length of the UTF-8 sequence at p, which has so many bytes, and its code; 0 when it is none: no
 * overlong forms, no surrogates. */
size_t base_utf8_decode(const unsigned char *p, size_t nr_bytes, uint32_t *ret_code);
/* No control character (C0, C1), nothing that turns directions, ends lines or annotates. */
bool base_is_shown(uint32_t code);
enum base_shown {
	BASE_SHOWN_NAME,  /* on a line of ours: "?" for what is not shown, U+FFFD for no UTF-8 */
	BASE_SHOWN_LINES, /* a whole answer: the same, but its lines, tabs and colours stay */
	BASE_SHOWN_JSON,  /* a whole document: escapes, a lone surrogate for no UTF-8 */
};
void base_str_add_shown(struct base_str *s, const char *text, size_t nr_bytes, enum base_shown how);
void base_str_make_shown(struct base_str *s, enum base_shown how);
void base_str_add_escape(struct base_str *s, uint32_t code); /* as JSON has it */
/* A word of a command line, quoted for a shell where that is needed; a command line of them. */
void base_str_add_quoted(struct base_str *s, const char *word, size_t length);
void base_str_add_command(struct base_str *s, char *const *argv);

/* Human numbers into the string: "1.23 ms", "4.1 MiB", "12,345". */
void base_str_add_ns(struct base_str *s, uint64_t duration_ns);
void base_str_add_size(struct base_str *s, uint64_t size_bytes);
void base_str_add_count(struct base_str *s, uint64_t n);

/* ---- one and many (counted.c) ----------------------------------------------------------------- */

/* vsnprintf() of a format that may count: "%zu {trace|traces}" becomes "1 trace" or "2 traces", by
 * the nearest argument before it that is a count (%d, %i, %u, or a "%s" of digits and commas). So do
 * the formats of base_str_addf(), of base_fail() and of a command's messages. */
int base_vformat(char *ret, size_t size_bytes, const char *fmt, va_list ap);
int base_format(char *ret, size_t size_bytes, const char *fmt, ...) BASE_PRINTF(3, 4);
/* A table's sentence about n things: the count for its "%s"; of "{was|were}" the first for one. */
void base_str_add_counted(struct base_str *s, const char *sentence, uint64_t n);
/* The same with the count as a text. */
void base_str_add_sentence(struct base_str *s, const char *sentence, const char *count, bool one);

/* ---- files that are written ------------------------------------------------------------------ */

/* How every output is opened. The file is a new one with a name of its own first (O_EXCL), which
 * then takes the wanted name: what had that before, be it another user's file or a link to one, is
 * neither followed nor truncated, whatever the system's settings protect. A symbolic link is
 * followed if this user or root has made it, else refused; pipes and devices are written to as they
 * are, /dev/stdout and /dev/fd/N are the descriptors. PRIVATE: mode 0600, for what has command
 * lines, addresses or names of files in it. */
enum base_output_mode { BASE_OUTPUT_PRIVATE, BASE_OUTPUT_PLAIN };
int base_output_open(const char *path, enum base_output_mode mode,
	struct base_err *err) BASE_MUST_CHECK; /* a descriptor; -1: err says why */
FILE *base_output_stream(const char *path, enum base_output_mode mode,
	struct base_err *err) BASE_MUST_CHECK; /* NULL: err says why */
/* To read and append (fdopen(fd, "a")): made with mode 0600, or there and this user's. */
int base_output_continue(const char *path, struct base_err *err) BASE_MUST_CHECK;
/* The name behind a link that is followed, else the name: for callers that rename to it at the
 * end. */
enum base_status base_output_name(
	const char *path, struct base_str *ret, struct base_err *err) BASE_MUST_CHECK;

/* struct base_strtab - each distinct text once; ids are dense from 0; id 0 is always "". */
struct base_strtab;
/* Beyond these base_strtab_intern() returns BASE_ERR_LIMIT. */
enum { BASE_STRTAB_LIMIT_TEXTS = 1 << 24, BASE_STRTAB_LIMIT_BYTES = 1 << 30 };

struct base_strtab *base_strtab_new(void);
struct base_strtab *base_strtab_free(struct base_strtab *t);
enum base_status base_strtab_intern(
	struct base_strtab *t, const char *s, size_t length, uint32_t *ret_id) BASE_MUST_CHECK;
const char *base_strtab_get(const struct base_strtab *t, uint32_t id); /* "" when unknown */
uint32_t base_strtab_count(const struct base_strtab *t);

/* ---- map ------------------------------------------------------------------------------------- */

/* struct base_map - (u64, u64) -> u64, open addressing, no promise of an order. `{0}` is empty. */
struct base_map {
	struct base_map_slot *slot;
	size_t nr_used, capacity;
};
struct base_map_slot {
	uint64_t key_hi, key_lo, value;
	bool used;
};
/* A map with that many entries does not grow: base_map_put() returns BASE_ERR_LIMIT. */
enum { BASE_MAP_LIMIT_ENTRIES = 1 << 28 };

void base_map_fini(struct base_map *m);
bool base_map_get(const struct base_map *m, uint64_t key_hi, uint64_t key_lo, uint64_t *ret_value);
enum base_status base_map_put(
	struct base_map *m, uint64_t key_hi, uint64_t key_lo, uint64_t value) BASE_MUST_CHECK;
bool base_map_remove(struct base_map *m, uint64_t key_hi, uint64_t key_lo);
/* Visit every entry; return false from `visit` to stop. Order is that of the table. */
void base_map_each(const struct base_map *m,
	bool (*visit)(void *ctx, uint64_t key_hi, uint64_t key_lo, uint64_t value), void *ctx);

/* Of nothing: 0. */
static inline double base_percent(uint64_t n, uint64_t of)
{
	return of ? 100 * (double)n / (double)of : 0;
}

static inline uint64_t base_hash_u64(uint64_t x)
{
	x ^= x >> 32;
	x *= 0xd6e8feb86659fd93u;
	x ^= x >> 32;
	return x * 0xd6e8feb86659fd93u;
}

/* ---- varints: canonical little-endian base 128 (no overlong forms) --------------------------- */

enum { BASE_VARINT_MAX = 10 };

/* Writes at most BASE_VARINT_MAX bytes at p, returns the end. */
static inline uint8_t *base_put_uvarint(uint8_t *p, uint64_t v)
{
	while (v >= 0x80) {
		*p++ = (uint8_t)(v | 0x80);
		v >>= 7;
	}
	*p++ = (uint8_t)v;
	return p;
}

/* Reads one varint of [p, end); returns the byte after it, NULL when short, overlong or too big. */
static inline const uint8_t *base_get_uvarint(const uint8_t *p, const uint8_t *end, uint64_t *ret)
{
	if (BASE_LIKELY(p < end && !(*p & 0x80))) {
		*ret = *p;
		return p + 1;
	}
	uint64_t v = 0;
	for (unsigned shift = 0; shift < 64; shift += 7) {
		if (p >= end)
			return NULL;
		uint8_t b = *p++;
		if (shift == 63 && b > 1)
			return NULL;
		v |= (uint64_t)(b & 0x7f) << shift;
		if (!(b & 0x80)) {
			if (shift && !b)
				return NULL;
			*ret = v;
			return p;
		}
	}
	return NULL;
}

static inline uint64_t base_zigzag(int64_t v)
{
	return ((uint64_t)v << 1) ^ (uint64_t)(v >> 63);
}

static inline int64_t base_unzigzag(uint64_t v)
{
	return (int64_t)(v >> 1) ^ -(int64_t)(v & 1);
}

#endif
