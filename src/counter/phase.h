/* SPDX-License-Identifier: Apache-2.0 */
/*
 * phase.h - between `longpole stat` and liblongpole-stat.so (phase.c) in the program: one file in
 * memory, written by all threads of all processes of the program, read by us when they have ended.
 *
 * A slot has one writer, the thread that took it. Names are bytes one after the other, each ended
 * by a zero. What finds no place is counted in `dropped`.
 */
#ifndef LONGPOLE_COUNTER_PHASE_H
#define LONGPOLE_COUNTER_PHASE_H

#include <stdint.h>

enum {
	PHASE_MAGIC = 0x6c707331, /* "lps1" */
	PHASE_EVENTS_MAX = 8,
	PHASE_SLOTS_MAX = 1 << 16,
	PHASE_NAMES_MAX = 256,
	PHASE_NAME_BYTES = 1 << 16,
};

struct phase_slot {
	uint32_t pid, tid;      /* 0: free */
	uint32_t name, entered; /* name: at that byte of the names */
	uint64_t wall_ticks;    /* of the TSC, from entering to leaving, in all */
	uint64_t count[PHASE_EVENTS_MAX];
	uint32_t open, failed; /* open: entered and not left; failed: stays without counts */
	uint32_t counted;      /* bits: these of the header's events were counted */
	uint32_t reserved[3];
};

struct phase_file {
	uint32_t magic, nr_events;
	uint16_t event[PHASE_EVENTS_MAX]; /* enum longpole_event; the first two: see PHASE_EVENT_...
					   */
	uint32_t next_slot, next_name, nr_names, lock;
	uint64_t dropped, marks; /* marks: calls of longpole_phase() and the like */
	uint64_t tick_hz;        /* of the TSC, as the tool measured it */
	char names[PHASE_NAME_BYTES];
	struct phase_slot slot[PHASE_SLOTS_MAX];
};

/* The events that are always asked for come first, in this order. */
enum { PHASE_EVENT_TICKS, PHASE_EVENT_SWITCHES, PHASE_EVENT_RUNQUEUE, PHASE_EVENT_MORE };

#define PHASE_ENVIRONMENT "LONGPOLE_STAT" /* path of the file */
/* It keeps its size, so that nobody who maps it is killed. Linux 3.17; fcntl.h. */
#define PHASE_SEALS (F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW)

#endif
