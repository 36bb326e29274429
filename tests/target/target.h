/* SPDX-License-Identifier: Apache-2.0 */
/*
 * target.h - what the programs with known answers share: work of a fixed number of instructions,
 * options, progress points.
 *
 * Each program has one section, a function of its own, whose length --section-percent scales:
 * running with 50 or 0 is "the program after the fix", with which a prediction is compared. Lengths
 * vary from item to item, but are the same in each run, so that programs are not trivially
 * periodic. A unit of work is about a microsecond.
 */
#ifndef LONGPOLE_TESTS_TARGET_H
#define LONGPOLE_TESTS_TARGET_H

#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A function that keeps its name and its body, so that samples in it are seen as its own (gcc would
 * fold equal ones into one). */
#ifdef __clang__
#define TARGET_FUNCTION __attribute__((noinline)) static
#else
#define TARGET_FUNCTION __attribute__((noinline, noclone, no_icf)) static
#endif

/* A chain of dependent multiplications. A macro, so that its line is that of the function which
 * works (Coz asks for lines). */
#define TARGET_ITERATIONS_PER_UNIT 950u
/* clang-format off */
#define TARGET_WORK(sum, units) do { uint64_t sum_ = (sum); for (uint64_t i_ = (units) * TARGET_ITERATIONS_PER_UNIT; i_; i_--) sum_ = sum_ * 6364136223846793005u + 1442695040888963407u; (sum) = sum_; } while (0)
/* clang-format on */

/* 70 to 130 % of `units`, differently for each (who, item). */
static inline uint64_t target_vary(uint64_t who, uint64_t item, uint64_t units)
{
	uint64_t x = (who << 32 | (item + 1)) * 0x9e3779b97f4a7c15u;
	x ^= x >> 32;
	x *= 0xd6e8feb86659fd93u;
	x ^= x >> 32;
	return units * (70 + x % 61) / 100;
}

static inline const char *target_text(int argc, char **argv, const char *name, const char *fallback)
{
	size_t len = strlen(name);
	for (int i = 1; i < argc; i++) {
		if (!strncmp(argv[i], name, len) && argv[i][len] == '=')
			return argv[i] + len + 1;
	}
	return fallback;
}

static inline uint64_t target_number(int argc, char **argv, const char *name, uint64_t fallback)
{
	const char *text = target_text(argc, argv, name, NULL);
	if (!text)
		return fallback;
	char *end = NULL;
	uint64_t n = strtoull(text, &end, 10);
	if (end == text || *end) {
		fprintf(stderr, "%s: %s takes a number, not '%s'\n", argv[0], name, text);
		exit(2);
	}
	return n;
}

/* Ends the program when an option is none of `known` ("--a --b"): a driver's typing error must not
 * pass for a measurement. */
static inline void target_check(int argc, char **argv, const char *known)
{
	for (int i = 1; i < argc; i++) {
		size_t len = strcspn(argv[i], "=");
		const char *at = known;
		while ((at = strstr(at, "--")) &&
			(strncmp(at, argv[i], len) || (at[len] && at[len] != ' ')))
			at += 2;
		if (!at || !argv[i][len]) {
			fprintf(stderr,
				"%s: unknown option '%s'; there are: %s (each with =VALUE)\n",
				argv[0], argv[i], known);
			exit(2);
		}
	}
}

static inline uint64_t target_percent(int argc, char **argv)
{
	return target_number(argc, argv, "--section-percent", 100);
}

static inline void target_must(bool ok, const char *what)
{
	if (!ok) {
		perror(what);
		exit(3);
	}
}

static inline void target_print(uint64_t sum)
{
	printf("%016llx\n", (unsigned long long)sum);
}

/* A progress point for Coz when the program runs under it, else nothing: a symbol lookup, no
 * library to link. */
struct target_progress {
	size_t count, backoff;
};
static inline struct target_progress *target_progress_find(const char *name)
{
	struct target_progress *(*find)(int, const char *) = NULL;
	void *symbol = dlsym(RTLD_DEFAULT, "_coz_get_counter");
	memcpy(&find, &symbol, sizeof(find));
	return find ? find(1, name) : NULL;
}
#define TARGET_PROGRESS(name)                                                                      \
	do {                                                                                       \
		static struct target_progress *progress_;                                          \
		static bool known_;                                                                \
		if (!known_) {                                                                     \
			progress_ = target_progress_find(name);                                    \
			known_ = true;                                                             \
		}                                                                                  \
		if (progress_)                                                                     \
			__atomic_add_fetch(&progress_->count, 1, __ATOMIC_RELAXED);                \
	} while (0)

#endif
