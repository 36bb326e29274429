/* SPDX-License-Identifier: Apache-2.0 */
/* session_tally.h - the recorder's side of tally.h: make the tables, read them, write what they
 * say. */
#ifndef LONGPOLE_RECORD_SESSION_TALLY_H
#define LONGPOLE_RECORD_SESSION_TALLY_H

#include "record/session.h"
#include "record/session_ring.h"

/* Appends tables to the ring's file; the program must not run yet. mask: TALLY_EIGHTH, TALLY_NEVER.
 * events: counted with calls; NULL: none.
 */
enum base_status record_tally_create(struct record_ring *r, uint32_t mask,
	const struct record_hardware *events, struct base_err *err) BASE_MUST_CHECK;

/* Those of a ring that was there already; none, if what its head says of them cannot be. */
void record_tally_open(struct record_ring *r);

/* Records of the tables of threads that ended, which are free then; `final`: of all. */
void record_tally_drain(
	struct record_ring *r, struct record_converter *c, uint64_t horizon, bool final);

/* A lock and unlock here, bare and with two time stamps between, in ps: the best of some rounds. */
struct record_lock_floor {
	uint64_t bare_ps, stamps_ps;
};
struct record_lock_floor record_lock_floor_measure(void);
/* Into the first thread's stream. */
void record_lock_floor_write(
	struct record_converter *c, const struct record_lock_floor *floor, const char *mode);

#endif
