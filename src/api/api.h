/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api.h - shared by the files of api/, not beyond: how the public headers' rules are kept. Structs
 * of the public headers begin with their size; errors of ours become errors of theirs.
 */
#ifndef LONGPOLE_API_API_H
#define LONGPOLE_API_API_H

#include "base/base.h"
#include "longpole/trace.h"

#include <locale.h>

struct trace_health;
struct trace_reader;
struct longpole_trace;

/* Makes the caller's error of ours (NULL allowed for both), and returns the status. Every public
 * function that takes an error ends with it, also after a success. */
int api_finish(struct longpole_error *to, enum base_status s, const struct base_err *err);
/* LONGPOLE_STATUS_USAGE with that text. */
int api_refuse(struct longpole_error *to, const char *why);

/* Copies what the caller gave into a struct of this library, whose size is size_bytes: what he left
 * out is 0. False: he did not set the size, or wants something that this library does not know. */
bool api_take(void *ours, size_t size_bytes, const void *theirs);
/* The other way round: as much as the caller has room for, whose size stays as he set it; what this
 * library does not know becomes 0. False: he gave no room, or did not set the size. */
bool api_give(void *theirs, const void *ours, size_t size_bytes);
/* A struct for the caller, by its members; the status. */
#define API_GIVE(ret, ...)                                                                         \
	(api_give((ret), &(__typeof__(*(ret))){__VA_ARGS__}, sizeof *(ret))                        \
			? LONGPOLE_STATUS_OK                                                       \
			: LONGPOLE_STATUS_USAGE)

/* Numbers in answers and in scenarios are as C has them, whatever the program's locale is: for this
 * thread, from _begin, which gives what it was before, to _end. */
locale_t api_locale_begin(void);
void api_locale_end(locale_t before);

/* ---- trace.c --------------------------------------------------------------------------------- */

/* For who reads it from its start; then nobody has a record of it any more. NULL: it was opened for a
 * part of its time. */
struct trace_reader *api_reader(struct longpole_trace *trace);
const char *api_path(const struct longpole_trace *trace); /* for texts */
bool api_is_partial(const struct trace_health *health);

#endif
