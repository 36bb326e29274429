/* SPDX-License-Identifier: Apache-2.0 */
/*
 * keep.h - what a recording keeps, beside the ring, so that its trace can be made when the
 * recorder was killed (session/recover.h).
 *
 * At a checkpoint the trace's file holds all that was read from the ring so far. The file `session`
 * then says how long the trace's file was, how much of the file `journal` belongs to it, and how
 * far each block had been read; blocks that were read are given back only after that. Whenever the
 * recorder dies: trace up to there, and the ring from there on, are the whole recording but for
 * what the kernel told since. Two checkpoints take turns, and one number says which one counts: a
 * half-made one never does.
 */
#ifndef LONGPOLE_SESSION_KEEP_H
#define LONGPOLE_SESSION_KEEP_H

#include "os/clock.h"
#include "record/journal.h"
#include "session/ring.h"

#define SESSION_KEEP_MAGIC   0x7065656b5f706c01u
#define SESSION_KEEP_JOURNAL "journal"
enum { SESSION_KEEP_VERSION = 1, SESSION_KEEP_PATH = 4096 };

struct session_keep_point {
	uint64_t trace_bytes, journal_bytes;
	uint64_t time_ns; /* the kernel's events up to here are in the trace, but for those held */
};
struct session_keep_head { /* the file `session`; progress[2][nr_blocks] follows, page-aligned */
	uint64_t magic;
	uint32_t version, nr_blocks;
	uint64_t tsc_origin, raw_origin_ns, unix_origin_ns, tick_hz, factor; /* struct os_clock */
	uint64_t trace_dev, trace_ino; /* a later recording may have taken its name */
	uint32_t pid;                  /* of the program that was started */
	uint32_t is_plain;             /* the trace is not compressed */
	uint32_t broken;               /* why checkpoints ended: an errno; 0: they go on */
	uint32_t turn; /* of the checkpoint that counts: point[turn & 1]; 0: there is none */
	struct session_keep_point point[2];
	char ring[64];                       /* name of its file in this directory */
	char trace_path[SESSION_KEEP_PATH];  /* absolute */
	char trace_other[SESSION_KEEP_PATH]; /* where it was put when its name was taken; "" */
	char command[SESSION_KEEP_PATH];     /* what was recorded; may be cut */
};

struct session_keep {
	struct session_ring *ring;      /* borrowed */
	struct trace_writer *writer;    /* borrowed */
	uint64_t time_ns;               /* the kernel's events are read up to here */
	uint64_t next_ns;               /* CLOCK_MONOTONIC_RAW of the next checkpoint */
	struct session_keep_head *head; /* mapped; NULL: nothing is kept */
	uint64_t *progress[2];
	size_t size_bytes;
	int journal_fd;
	struct record_journal journal;
};

/* Where progress begins in a file for so many blocks, and how long that is. */
static inline size_t session_keep_progress_offset(void)
{
	return (sizeof(struct session_keep_head) + 4095) / 4096 * 4096;
}
static inline size_t session_keep_bytes(uint32_t nr_blocks)
{
	return session_keep_progress_offset() + 2 * (size_t)nr_blocks * sizeof(uint64_t);
}

struct session_keep_what {
	const char *trace_path, *command;
	uint32_t pid;
	bool is_plain;
};
/* Begins to keep: the ring's place gets a journal, and blocks that were read are held. Nothing is
 * kept (head NULL) where there is no room for it. */
void session_keep_open(struct session_keep *k, struct session_ring *ring, struct trace_writer *w,
	const struct os_clock *clock, const struct session_keep_what *what);
/* All that was read before is converted. Makes a checkpoint (what the writer has is written out,
 * blocks are given back) when it is time for one: each second, or more seldom if it takes long. */
void session_keep_look(struct session_keep *k, uint64_t raw_ns, uint64_t time_ns);
void session_keep_close(struct session_keep *k);

#endif
