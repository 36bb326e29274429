/* SPDX-License-Identifier: Apache-2.0 */
/* session_restore.h - a converter that knows what the one of a killed recorder knew: from the
 * records of its trace, then from its journal. */
#ifndef LONGPOLE_RECORD_SESSION_RESTORE_H
#define LONGPOLE_RECORD_SESSION_RESTORE_H

#include "record/session_convert.h"

struct record_restored;
/* NULL: no memory. c is borrowed, and nothing was converted with it. */
struct record_restored *record_restored_new(struct record_converter *c);
void record_restored_free(struct record_restored *r);
/* The next record of the trace, definitions among them; it is written to c's trace by the caller.
 */
enum base_status record_restore_record(struct record_restored *r, const struct trace_record *record,
	struct base_err *err) BASE_MUST_CHECK;
/* The same of bytes that are there already. */
enum base_status record_restore_entries(struct record_restored *r, const uint8_t *bytes, size_t nr,
	struct base_err *err) BASE_MUST_CHECK;
/* After all records: the journal's first size_bytes bytes. ERR_CORRUPT: they do not fit to them. */
enum base_status record_restore_journal(struct record_restored *r, int dir_fd, const char *name,
	uint64_t size_bytes, struct base_err *err) BASE_MUST_CHECK;

#endif
