/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session_keep.h - what a recording keeps, beside the ring, so that its trace can be made when the
 * recorder was killed (session_recover.h).
 *
 * At a checkpoint the trace's file holds all that was read from the ring so far. The file `session`
 * then says how long the trace's file was, how much of the file `journal` belongs to it, and how
 * far each block had been read; blocks that were read are given back only after that. Whenever the
 * recorder dies: trace up to there, and the ring from there on, are the whole recording but for
 * what the kernel told since. Two checkpoints take turns, and one number says which one counts: a
 * half-made one never does.
 */
#ifndef LONGPOLE_RECORD_SESSION_KEEP_H
#define LONGPOLE_RECORD_SESSION_KEEP_H

#include "record/clock.h"
#include "record/session_journal.h"
#include "record/session_ring.h"

#define RECORD_KEEP_MAGIC   0x7065656b5f706c01u
#define RECORD_KEEP_JOURNAL "journal"
enum { RECORD_KEEP_VERSION = 1, RECORD_KEEP_PATH = 4096 };

struct record_keep_point {
	uint64_t trace_bytes, journal_bytes;
	uint64_t time_ns; /* the kernel's events up to here are in the trace, but for those held */
};
struct record_keep_head { /* the file `session`; progress[2][nr_blocks] follows, page-aligned */
	uint64_t magic;
	uint32_t version, nr_blocks;
	uint64_t tsc_origin, raw_origin_ns, unix_origin_ns, tick_hz,
		factor;                /* struct record_clock */
	uint64_t trace_dev, trace_ino; /* a later recording may have taken its name */
	uint32_t pid;                  /* of the program that was started */
	uint32_t is_plain;             /* the trace is not compressed */
	uint32_t broken;               /* why checkpoints ended: an errno; 0: they go on */
	uint32_t turn; /* of the checkpoint that counts: point[turn & 1]; 0: there is none */
	struct record_keep_point point[2];
	char ring[64];                      /* name of its file in this directory */
	char trace_path[RECORD_KEEP_PATH];  /* absolute */
	char trace_other[RECORD_KEEP_PATH]; /* where it was put when its name was taken; "" */
	char command[RECORD_KEEP_PATH];     /* what was recorded; may be cut */
};

struct record_keep {
	struct record_ring *ring;      /* borrowed */
	struct trace_writer *writer;   /* borrowed */
	uint64_t time_ns;              /* the kernel's events are read up to here */
	uint64_t next_ns;              /* CLOCK_MONOTONIC_RAW of the next checkpoint */
	struct record_keep_head *head; /* mapped; NULL: nothing is kept */
	uint64_t *progress[2];
	size_t size_bytes;
	int journal_fd;
	struct record_journal journal;
};

/* Where progress begins in a file for so many blocks, and how long that is. */
static inline size_t record_keep_progress_offset(void)
{
	return (sizeof(struct record_keep_head) + 4095) / 4096 * 4096;
}
static inline size_t record_keep_bytes(uint32_t nr_blocks)
{
	return record_keep_progress_offset() + 2 * (size_t)nr_blocks * sizeof(uint64_t);
}

struct record_keep_what {
	const char *trace_path, *command;
	uint32_t pid;
	bool is_plain;
};
/* Begins to keep: the ring's place gets a journal, and blocks that were read are held. Nothing is
 * kept (head NULL) where there is no room for it. */
void record_keep_open(struct record_keep *k, struct record_ring *ring, struct trace_writer *w,
	const struct record_clock *clock, const struct record_keep_what *what);
/* All that was read before is converted. Makes a checkpoint (what the writer has is written out,
 * blocks are given back) when it is time for one: each second, or more seldom if it takes long. */
void record_keep_look(struct record_keep *k, uint64_t raw_ns, uint64_t time_ns);
void record_keep_close(struct record_keep *k);

#endif
