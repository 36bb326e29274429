/* SPDX-License-Identifier: Apache-2.0 */
/* restore.h - a converter that knows what the one of a killed recorder knew: from the
 * records of its trace, then from its journal. */
#ifndef LONGPOLE_SESSION_RESTORE_H
#define LONGPOLE_SESSION_RESTORE_H

#include "record/convert.h"

struct session_restored;
/* NULL: no memory. c is borrowed, and nothing was converted with it. */
struct session_restored *session_restored_new(struct record_converter *c);
void session_restored_free(struct session_restored *r);
/* The next record of the trace, definitions among them; it is written to c's trace by the caller.
 */
enum base_status session_restore_record(struct session_restored *r,
	const struct trace_record *record, struct base_err *err) BASE_MUST_CHECK;
/* The same of bytes that are there already. */
enum base_status session_restore_entries(struct session_restored *r, const uint8_t *bytes,
	size_t nr, struct base_err *err) BASE_MUST_CHECK;
/* After all records: the journal's first size_bytes bytes. ERR_CORRUPT: they do not fit to them. */
enum base_status session_restore_journal(struct session_restored *r, int dir_fd, const char *name,
	uint64_t size_bytes, struct base_err *err) BASE_MUST_CHECK;

#endif
