/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gotrace.h - Go's execution trace, formats of Go 1.11 to 1.21 and of 1.22 and newer, as one list
 * of events in order.
 *
 * Units: ns since the trace's first event. Ids of stacks, frames and texts are dense from 0; 0 is
 * none. Goroutines keep Go's own numbers; 0 is none.
 */
#ifndef LONGPOLE_GOTRACE_H
#define LONGPOLE_GOTRACE_H

#include "base/base.h"

enum { GOTRACE_MAIN = 1 }; /* the main goroutine's number */
enum { GOTRACE_NO_P = UINT32_MAX };

enum gotrace_kind {
	GOTRACE_procs,   /* GOMAXPROCS is `other` from now */
	GOTRACE_exists,  /* g was there when the trace began: `status`; its stack if known */
	GOTRACE_create,  /* g makes goroutine `other`, which begins in new_stack; g 0: nobody's */
	GOTRACE_start,   /* g has P p from now */
	GOTRACE_stop,    /* g gives its P up and could go on: text says why */
	GOTRACE_block,   /* g sleeps: text is Go's wait reason */
	GOTRACE_unblock, /* g makes `other` runnable; g 0: the scheduler does (timer, network) */
	GOTRACE_call_begin,  /* g enters a system call */
	GOTRACE_call_end,    /* and is back, on its P */
	GOTRACE_call_away,   /* its P p was taken from it meanwhile */
	GOTRACE_call_return, /* it is back, and needs a P */
	GOTRACE_end,
	GOTRACE_assist_begin, /* g, which allocates, has to mark for the garbage collector */
	GOTRACE_assist_end,
	GOTRACE_sweep_begin, /* g has to sweep for it */
	GOTRACE_sweep_end,
	GOTRACE_stw_begin, /* the world stops: text says why */
	GOTRACE_stw_end,
	GOTRACE_gc_begin,
	GOTRACE_gc_end,
	GOTRACE_region_begin, /* runtime/trace's region `text` of task `other` */
	GOTRACE_region_end,
	GOTRACE_sample, /* of the processor profile */
	GOTRACE_KIND_NR
};
enum gotrace_status { /* as in the files */
	GOTRACE_STATUS_dead,
	GOTRACE_STATUS_runnable,
	GOTRACE_STATUS_running,
	GOTRACE_STATUS_syscall,
	GOTRACE_STATUS_waiting,
};

struct gotrace_event {
	uint64_t time_ns, g, other;
	uint32_t stack, new_stack, text;
	uint32_t p; /* GOTRACE_NO_P: none, or not known */
	uint8_t kind, status;
	uint32_t
		room; /* block: at the channel `other`, which holds so many items on their way; 0: none, or not known */
};
struct gotrace_frame {
	uint64_t pc;
	uint32_t function, file; /* texts */
	uint32_t line;
};
struct gotrace_stack { /* innermost first: frames of gotrace.stack_frame[] */
	uint32_t first, nr;
};
struct gotrace {
	struct gotrace_event *event;
	size_t nr_events, event_capacity;
	struct gotrace_frame *frame;
	size_t nr_frames, frame_capacity;
	struct gotrace_stack *stack;
	size_t nr_stacks, stack_capacity;
	uint32_t *stack_frame;
	size_t nr_stack_frames, stack_frame_capacity;
	struct base_strtab *texts;
	unsigned version;          /* 26: go 1.26 */
	uint32_t nr_processors;    /* the largest GOMAXPROCS; 0: not said */
	uint64_t nr_disordered;    /* events that came before what they need */
	uint64_t nr_damaged;       /* batches that were left where they could not be read */
	uint64_t nr_texts_missing; /* stacks' and events' texts that the file lacks */
	bool is_cut;
	bool tells_calls; /* system calls have an end each, also those that kept their P */
};

/*
 * The whole file's bytes; they may go away afterwards. ERR_FOREIGN: no such trace, or of Go before
 * 1.11; ERR_LIMIT: too many events; ERR_NOMEM. On success the caller frees *ret.
 */
enum base_status gotrace_read(const uint8_t *bytes, size_t nr_bytes, struct gotrace **ret,
	struct base_err *err) BASE_MUST_CHECK;
/* An empty one, for events from elsewhere; NULL: no memory. */
struct gotrace *gotrace_new(unsigned version);
struct gotrace *gotrace_free(struct gotrace *t);

#endif
