/* SPDX-License-Identifier: Apache-2.0 */
/*
 * golive.h - a Go program that is started with one function of its runtime led through a few instructions of ours: each change of a
 * goroutine's status is seen, at full speed, and becomes what Go's own execution trace would say of it.
 *
 * Static programs of Go 1.18 and newer, x86-64; those without debug information where the version's structures are known.
 */
#ifndef LONGPOLE_GOLIVE_GOLIVE_H
#define LONGPOLE_GOLIVE_GOLIVE_H

#include "gotrace/gotrace.h"

/* Is it a program that Go's linker made, with no loader to ask for a library? */
bool golive_knows(const char *path);

struct golive_run {
	const char *path;   /* of the program */
	char *const *argv;  /* NULL-terminated */
	uint64_t sample_hz; /* 0: no samples */
	/* Set: */
	int wait_status;     /* as waitpid() has it */
	uint64_t elapsed_ns; /* from its first instruction to its end */
	uint64_t nr_records; /* changes that were seen */
	uint64_t nr_lost;    /* ... for which there was no room any more */
	uint64_t nr_samples;
	char why_no_samples[160]; /* "": there are some, or none were asked for */
	uint64_t unix_ns;         /* when it began */
	uint64_t mono_ns;         /* the same by CLOCK_MONOTONIC_RAW */
};
/*
 * Runs it to its end. ERR_ENV says why it was not started: it is not known how this version's goroutines look, or the function cannot be
 * led through other code. On success the caller frees *ret. The program goes on if we are killed.
 */
enum base_status golive_record(
	struct golive_run *run, struct gotrace **ret, struct base_err *err) BASE_MUST_CHECK;

#endif
