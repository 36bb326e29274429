/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu.h - what accelerators and the threads that feed them did, whatever tool recorded it: slices in lanes. A lane is a
 * thread or a stream. Times are whole nanoseconds since the earliest slice.
 */
#ifndef LONGPOLE_GPU_GPU_H
#define LONGPOLE_GPU_GPU_H

#include "format/machines.h"

#define GPU_NONE UINT32_MAX
enum { GPU_SLICES_MAX = 1 << 25, GPU_DEPTH_MAX = 256 };

enum gpu_kind { GPU_OP, GPU_NOTE, GPU_CALL, GPU_DEVICE, GPU_SYNC /* about a call; no slice */ };
enum { GPU_KERNEL, GPU_COPY, GPU_COLLECTIVE }; /* of GPU_DEVICE */
enum {
	GPU_CALL_OTHER,
	GPU_CALL_DEVICE,     /* waits for all streams of its device */
	GPU_CALL_STREAM,     /* ... for one */
	GPU_CALL_EVENT,      /* ... for what a stream had to do before an event was recorded */
	GPU_CALL_STREAM_WAIT /* makes a stream wait for an event */
};
enum { GPU_NOTE_PLAIN, GPU_NOTE_STEP, GPU_NOTE_DATA };

struct gpu_slice {
	int64_t begin_ns, end_ns;
	int64_t correlation; /* one call and what it started; 0: none */
	uint32_t lane, name;
	uint32_t outer; /* of a call or operator: name of the outermost operator around it; 0:
			  none */
	uint32_t more;  /* index + 1 in the list of what only few have; 0: nothing */
	uint8_t kind, what;
};
struct gpu_lane {
	bool is_stream;
	bool is_meeting; /* of the collectives of one group: neither thread nor stream, no slices */
	bool has_collectives;
	bool is_backward; /* a thread that runs backward operators for the main one */
	uint32_t rank;
	uint32_t name;      /* of a thread; 0: none */
	int64_t pid, tid;   /* of a stream: device, stream */
	size_t first, nr;   /* its slices, when they are sorted */
	int64_t *launch_ns; /* of a stream: when the call of each began */
	int64_t end_ns;     /* when it has done all that counts, and what says so to the end of the
			   run */
	uint64_t end_key;
	uint32_t end_queue;
	uint32_t synced; /* of a stream: index + 1 of its last slice that somebody has waited for */
};
/* Of synchronisation: which stream waits for which other. Of a collective: the ranks that take
 * part. */
struct gpu_more {
	int64_t device, stream, on_stream, record; /* -1: not said; record: the correlation of it */
	uint32_t group, operation;                 /* texts: who meets, what is done; 0: not said */
	int64_t source, target;                    /* of a message, ranks; -1: of a collective */
	int64_t sequence;                          /* of the group's; -1: not said */
	int64_t nr_bytes, nr_ranks; /* that one rank gives or gets, the larger one; 0: not said */
};
/* One process of the job, by the order of files; its lanes have its index. */
struct gpu_rank {
	int64_t number;     /* in the job */
	uint32_t name;      /* text: its file */
	uint32_t main_lane; /* GPU_NONE: it has no thread */
	int64_t shift_ns;   /* added to its times, to be on the clock of the first one */
};
/* One rank came to a meeting, at begin_ns, and waited for the last one. */
struct gpu_met {
	int64_t time_ns; /* when the last one came */
	int64_t waited_ns;
	uint32_t rank, last, operation, group;
};
enum gpu_way { /* of a dependence */
	GPU_WAY_LAUNCH,
	GPU_WAY_SYNC,
	GPU_WAY_ROOM, /* in the queue of a stream's launches */
	GPU_WAY_EVENT,
	GPU_WAY_HAND,
	GPU_WAY_MEET,
	GPU_WAY_END
};
/* `from` made available at from_ns what `to` went on with at to_ns, and had waited for since wait_ns (to_ns: not at all). */
struct gpu_edge {
	int64_t from_ns, wait_ns, to_ns;
	uint32_t from, to; /* lanes */
	uint8_t way;
};
/* Before it is known how long who waits for it: `to` is a slice of a stream. */
struct gpu_need {
	size_t to;
	uint32_t from; /* lane */
	int64_t from_ns;
	uint8_t way;
};
struct gpu_flow { /* forward to backward: begin of the backward operator */
	int64_t id, time_ns;
	uint32_t lane;
	bool is_end;
};
struct gpu_counts {
	uint64_t nr_damaged, nr_negative, nr_duplicate, nr_unlaunched, nr_early, nr_overlap,
		nr_late_sync, nr_late_event, nr_inferred_sync, nr_inferred_event, nr_hand_overs,
		nr_rooms;
	uint64_t nr_meetings, nr_alone, nr_unlike, nr_apart, nr_strangers;
	int64_t shift_ns,
		apart_ns; /* largest shift of a clock; how far from each other nine in ten end */
};
struct gpu_trace {
	struct base_strtab *texts;
	struct gpu_slice *slice;
	size_t nr, capacity;
	struct gpu_lane *lane;
	size_t nr_lanes, lane_capacity;
	struct gpu_more *more;
	size_t nr_more, more_capacity;
	struct gpu_edge *edge;
	size_t nr_edges, edge_capacity;
	struct gpu_need *need;
	size_t nr_needs, need_capacity;
	struct gpu_flow *flow;
	size_t nr_flows, flow_capacity;
	struct base_map by_lane; /* (rank, device or process; stream or thread) -> lane */
	struct base_map calls;   /* (rank, correlation) -> slice */
	struct base_map syncs;   /* (rank, correlation) -> index in `more` */
	struct base_map strings; /* ids of texts in the file -> text */
	int64_t issue_ns;        /* what a call takes that gives work to a stream, usually */
	int64_t begin_ns,
		end_ns; /* end: of the main threads and the streams; of others no more is kept */
	struct gpu_rank *rank;
	size_t rank_capacity;
	uint32_t nr_ranks;
	struct gpu_met *met;
	size_t nr_met, met_capacity;
	uint32_t stranger; /* rank index + 1: it cannot be of the same run as the first one */
	const char *step;  /* pattern of the annotations that are steps; NULL: ProfilerStep#* */
	bool is_one_clock; /* of all ranks */
	bool knows_waits;  /* streams' waits for events are said, not to be inferred */
	bool failed, too_many;
	struct gpu_counts counts;
};

bool format_gpu_trace_init(struct gpu_trace *g);
void format_gpu_trace_fini(struct gpu_trace *g);
uint32_t format_gpu_text(struct gpu_trace *g, const char *text);
uint32_t format_gpu_lane(
	struct gpu_trace *g, bool is_stream, uint32_t rank, int64_t pid, int64_t tid);
/* Of the meetings of a group: a new one. */
uint32_t format_gpu_lane_meeting(struct gpu_trace *g, uint32_t group);
/* One more process; its index is that of the lanes to come. */
void format_gpu_add_rank(struct gpu_trace *g, int64_t number, const char *file);
/* GPU_NONE: there is none. */
uint32_t format_gpu_lane_find(
	const struct gpu_trace *g, bool is_stream, uint32_t rank, int64_t pid, int64_t tid);
void format_gpu_add(struct gpu_trace *g, struct gpu_slice s);
uint32_t format_gpu_add_more(struct gpu_trace *g, struct gpu_more m); /* index + 1; 0: no memory */
void format_gpu_add_edge(struct gpu_trace *g, struct gpu_edge e);
/* What a runtime's function does. */
uint8_t format_gpu_call_of(const char *name);
/* Is a kernel of this name a collective operation of a library? */
bool format_gpu_is_collective(const char *name);
/* Is an annotation a step, loading of data, or neither? */
uint8_t format_gpu_note_of(const struct gpu_trace *g, const char *name);
/* Orders what was gathered, and writes it with its notes: the end of an import. */
enum base_status format_gpu_convert(struct gpu_trace *g, const char *name, struct trace_writer *to,
	struct base_str *notes, struct base_err *err) BASE_MUST_CHECK;

void format_gpu_add_need(struct gpu_trace *g, struct gpu_need n);
/* Sorts slices into lanes; then who waited for whom (order.c). */
void format_gpu_order(struct gpu_trace *g);
/* ... of streams: launches, events (streams.c); of threads: synchronisation, blocking copies, backward passes (threads.c). */
void format_gpu_order_streams(struct gpu_trace *g);
void format_gpu_order_threads(struct gpu_trace *g);
/* Clocks of ranks become one (clocks.c says how); then who waits for whom at collectives (meet.c). */
void format_gpu_meet(struct gpu_trace *g);
void format_gpu_add_meetings(struct gpu_trace *g);
/* When the call had given this piece of work to its stream. */
int64_t format_gpu_issued(
	const struct gpu_trace *g, const struct gpu_slice *work, const struct gpu_slice *call);
/* The slice of the call with this correlation; NULL: there is none. */
const struct gpu_slice *format_gpu_call(
	const struct gpu_trace *g, uint32_t rank, int64_t correlation);
/* What is said of a call beside it; NULL: nothing. */
const struct gpu_more *format_gpu_said(
	const struct gpu_trace *g, uint32_t rank, int64_t correlation);
/* Index + 1 of the last slice of a stream whose call had begun before; 0: none. */
size_t format_gpu_last_launched(
	const struct gpu_trace *g, const struct gpu_lane *l, int64_t before_ns);
/* Machines of lanes, and who hands what to whom (write.c). */
void format_gpu_write(struct gpu_trace *g, struct format_machines *m);
/* What is to be known of the file (write.c). */
void format_gpu_notes(const struct gpu_trace *g, struct base_str *notes);

#endif
