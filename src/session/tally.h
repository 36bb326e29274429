/* SPDX-License-Identifier: Apache-2.0 */
/* tally.h - the recorder's side of tally.h: make the tables, read them, write what they
 * say. */
#ifndef LONGPOLE_SESSION_TALLY_H
#define LONGPOLE_SESSION_TALLY_H

#include "session/session.h"
#include "session/ring.h"

/* Appends tables to the ring's file; the program must not run yet. mask: TALLY_EIGHTH, TALLY_NEVER.
 * events: counted with calls; NULL: none.
 */
enum base_status session_tally_create(struct session_ring *r, uint32_t mask,
	const struct system_hardware *events, struct base_err *err) BASE_MUST_CHECK;

/* Those of a ring that was there already; none, if what its head says of them cannot be. */
void session_tally_open(struct session_ring *r);

/* Records of the tables of threads that ended, which are free then; `final`: of all. */
void session_tally_drain(
	struct session_ring *r, struct record_converter *c, uint64_t horizon, bool final);

/* A lock and unlock here, bare and with two time stamps between, in ps: the best of some rounds. */
struct session_lock_floor {
	uint64_t bare_ps, stamps_ps;
};
struct session_lock_floor session_lock_floor_measure(void);
/* Into the first thread's stream. */
void session_lock_floor_write(
	struct record_converter *c, const struct session_lock_floor *floor, const char *mode);

#endif
