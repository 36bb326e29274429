/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recover.h - the trace of a recording whose recorder was killed, up to where its ring
 * goes: what session/keep.h's last checkpoint has, then what the ring still holds, read as the
 * recorder would have read it.
 *
 * The program may still run: nothing that it does from here on is recorded.
 */
#ifndef LONGPOLE_SESSION_RECOVER_H
#define LONGPOLE_SESSION_RECOVER_H

#include "session/place.h"
#include "trace/trace.h"

enum { SESSION_LEFT_NAME = 32, SESSION_LEFT_TEXT = 4096 };

struct session_left_recording {
	char name[SESSION_LEFT_NAME]; /* what users call it: PID-XXXXXX of the recorder */
	char command[SESSION_LEFT_TEXT];
	char trace_path[SESSION_LEFT_TEXT]; /* what it wrote */
	bool trace_is_there;                /* ... and still has that name */
	uint64_t cut_unix_ns;               /* when it was alive last, to a second or so */
	uint64_t ring_bytes;                /* of memory, that it takes until then */
	bool program_runs;
	struct base_err why_not; /* it cannot be recovered: status is not BASE_OK */
};

/* Of this user, the oldest first. base_free(*ret). What holds nothing is removed in passing. */
enum base_status session_left_list(
	struct session_left_recording **ret, size_t *ret_nr, struct base_err *err) BASE_MUST_CHECK;

struct session_recovered {
	uint64_t records, ring_records, trace_bytes;
	uint64_t memory_chunks_left_out; /* of memory streams, which are not recovered */
	uint64_t count[TRACE_DIAG_NR];
};
/* Writes its trace to `path`. What is left stays. ERR_VERSION: another version of longpole has
 * left it; ERR_USAGE: there is none of that name. */
enum base_status session_recover(const char *name, const char *path, struct session_recovered *ret,
	struct base_err *err) BASE_MUST_CHECK;
/* A recording begins, and is about to take the name `path` (NULL: none). What a left one wrote
 * there gets another name beside it, so that it can still be recovered; what holds nothing is
 * removed. */
void session_left_make_way(const char *path);
/* Removes what is left; recording ends, if the program still runs. False: there is none. */
bool session_left_remove(const char *name);

#endif
