/* SPDX-License-Identifier: Apache-2.0 */
/*
 * order.h - the streams of a source become one sequence of steps, the order in which analyses see
 * them (seed 004, section 3).
 *
 * PSEUDO: one pseudo clock a thread, which counts its instructions; the thread with the smallest
 * clock goes next, equal clocks in the threads' order; clocks are set to the largest at the end of
 * a phase and after a barrier. A lock is one thread's at a time, and what is taken was given before
 * (order_units.c). Where no other record says that a thread waited, recorded times do:
 * on a condition variable, or for a thread that nobody joins (order_holds.c). TIME: pieces between
 * two recorded times go in the order of their beginning. ROUND_ROBIN and SLICES run T traces on p
 * processors (appendix B). A source whose batches come in the true order (TOTAL_ORDER) keeps it;
 * one whose threads ran one at a time (SERIAL) has it by TIME, and what they would share side by
 * side by PSEUDO.
 *
 * Phases: serial until a spawn, parallel until its join, user-defined from a marker of thread 0
 * with command 0, or a `phase` call, to the next one or the end of the phase around it.
 */
#ifndef LONGPOLE_MEMORY_ORDER_H
#define LONGPOLE_MEMORY_ORDER_H

#include "memory/stream/source.h"

enum memory_order_mode {
	MEMORY_ORDER_DEFAULT, /* PSEUDO; of a SERIAL source TIME, of one with a TOTAL_ORDER that */
	MEMORY_ORDER_PSEUDO,
	MEMORY_ORDER_TIME,
	MEMORY_ORDER_SLICES,
	MEMORY_ORDER_ROUND_ROBIN
};

struct memory_order_options {
	enum memory_order_mode mode;
	bool starts_parallel;        /* -p: spawn and join are not in the trace */
	uint32_t nr_processors;      /* -i: SLICES, ROUND_ROBIN */
	bool affinity;               /* -a: a process stays on its first processor */
	bool keep_long_slices;       /* -k */
	uint64_t slice_instructions; /* -s; 0: the default */
	bool handle_io;              /* -handle_io: reads and writes move data */
	bool buffered_io;            /* through a buffer of the system, copied by the processor */
	bool asynch_io;              /* a process does not wait for it */
	double dma_mb_per_s;         /* -dma_bw; 0: the default */
	double disk_latency_ms;      /* -disk_latency; negative: the default */
	double ipc;                  /* -ipc; 0: the default */
	double processor_mhz;        /* what turns milliseconds into instructions; 0: the default */
};
#define MEMORY_SLICE_INSTRUCTIONS 20000
#define MEMORY_DMA_MB_PER_S       20.0
#define MEMORY_DISK_LATENCY_MS    10.0
#define MEMORY_IPC                2.0
#define MEMORY_PROCESSOR_MHZ      120.0 /* PA-7200 of the seed's SPP-1600 */
/* Where buffered I/O puts the system's buffers: one window per thread above this. */
#define MEMORY_SYSTEM_BUFFERS      (UINT64_C(0x7f) << 40)
#define MEMORY_SYSTEM_BUFFER_BYTES (UINT64_C(1) << 20)

enum memory_phase_kind { MEMORY_PHASE_SERIAL, MEMORY_PHASE_PARALLEL, MEMORY_PHASE_USER };

/* Kinds of steps: those of items (enum memory_item_kind) without STAMP and REPEAT, and these. */
enum memory_step_kind {
	MEMORY_STEP_PHASE_BEGIN = MEMORY_ITEM_KINDS, /* address: enum memory_phase_kind; count: the
							region's or marker's number */
	MEMORY_STEP_PHASE_END,
	MEMORY_STEP_ACTIVE,  /* thread starts to run */
	MEMORY_STEP_IDLE,    /* has nothing to run */
	MEMORY_STEP_DMA_IN,  /* a disk read puts count bytes at address (for thread) */
	MEMORY_STEP_DMA_OUT, /* a disk write takes them */
};

struct memory_step {
	/* As in struct memory_item, in its order. */
	uint64_t address, code;
	uint64_t count; /* BLOCK: instructions; RANGE, DMA: bytes */
	union {
		uint32_t instructions;
		uint32_t call; /* CALL: index into the batch's calls */
	};
	uint16_t size_bytes;
	uint8_t kind;
	uint8_t reg : 4;
	uint8_t flags : 4;
	uint64_t clock;  /* of the instruction, from 0 */
	uint16_t thread; /* or processor, in the modes that have them */
	uint16_t stream; /* of the source */
};

/*
 * A part of one thread's loop (MEMORY_REPEAT): from item begin_item of iteration `begin` up to, not
 * including, item end_item of iteration `end`. So item i happens in the iterations from
 * memory_piece_begin() on, below memory_piece_end().
 */
struct memory_piece {
	const struct memory_item *item; /* the loop's body: no ranges, no calls */
	uint32_t nr_items, begin_item, end_item;
	uint16_t thread, stream;
	uint64_t begin, end;
	uint64_t clock;         /* at the beginning of iteration 0 (modulo 2^64) */
	uint64_t per_iteration; /* instructions */
};

struct memory_steps {
	const struct memory_step *step; /* borrowed until the next call */
	size_t nr;
	const struct memory_call *call;
	size_t nr_calls;
	/* With memory_order_set_runs(): after these steps come those of the pieces, all that are
	 * due before the clock `until`, interleaved like any others. A consumer that does not care
	 * which of them comes first takes them by memory_order_take(); else they come as steps. */
	const struct memory_piece *piece;
	size_t nr_pieces;
	uint64_t until;
	struct memory_order *order;
};
enum { MEMORY_STEPS_MAX = 4096 };

struct memory_order;
/* calls: a second recording of call records alone, whose times replace those of `source` (the
 * seed's call traces); may be NULL. Both stay the caller's. */
enum base_status memory_order_new(struct memory_source *source, struct memory_source *calls,
	const struct memory_order_options *options, struct memory_order **ret,
	struct base_err *err) BASE_MUST_CHECK;
struct memory_order *memory_order_free(struct memory_order *o);
/* BASE_OK with nr 0: a live source has nothing now. BASE_END: all is done. The first step is a
 * PHASE_BEGIN, the last one a PHASE_END. */
enum base_status memory_order_next(
	struct memory_order *o, struct memory_steps *ret, struct base_err *err) BASE_MUST_CHECK;
/* Loops that threads run at the same time are offered as pieces from now on. */
enum base_status memory_order_allow_runs(
	struct memory_order *o, struct base_err *err) BASE_MUST_CHECK;
/* What is due before `until` (at most steps.until) was, or will be, done by the caller: cuts the
 * pieces that were offered last to it; they stay as they are until the next call of
 * memory_order_next(), which goes on behind them. */
void memory_order_take(struct memory_order *o, uint64_t until);

static inline uint64_t memory_piece_begin(const struct memory_piece *p, uint32_t item)
{
	return p->begin + (item < p->begin_item);
}

static inline uint64_t memory_piece_end(const struct memory_piece *p, uint32_t item)
{
	return p->end + (item < p->end_item);
}

/* The clock of the instruction that an item belongs to, `after` being the thread's clock behind it:
 * of its last one; without any, a block is of the next instruction, anything else of the one
 * before. */
static inline uint64_t memory_item_due(const struct memory_item *t, uint64_t after)
{
	return after && (t->instructions || t->kind != MEMORY_BLOCK) ? after - 1 : after;
}

/* The threads that may appear as step.thread: 0 .. this - 1. */
uint32_t memory_order_threads(const struct memory_order *o);
/* One sentence: how the threads were interleaved. */
const char *memory_order_sentence(const struct memory_order *o);

#endif
