/* SPDX-License-Identifier: Apache-2.0 */
/* rules_mpi.h - what the model knows of MPI: shared by the rules and the names. */
#ifndef LONGPOLE_RUNTIME_MPI_RULES_MPI_H
#define LONGPOLE_RUNTIME_MPI_RULES_MPI_H

#include "model/model_private.h"

/* Detail of a state in MPI: the function, and above it the rank + 1 that it is about; 0: not known. */
enum { MPI_DETAIL_OP_BITS = 8, MPI_DETAIL_RANK_MAX = (1 << (32 - MPI_DETAIL_OP_BITS)) - 1 };
_Static_assert(TRACE_MPI_NR <= 1 << MPI_DETAIL_OP_BITS, "a function has room in a state's detail");

/* Which ranks have to come before which may leave. */
enum mpi_needs {
	MPI_NEEDS_all,   /* all: everybody */
	MPI_NEEDS_root,  /* the root: the others */
	MPI_NEEDS_rest,  /* the others: the root */
	MPI_NEEDS_lower, /* each rank: the lower ones */
};

struct mpi_pair { /* one way between two ranks of a communicator; queues NONE until first used */
	uint32_t messages, receivers;
	uint32_t object, source, destination;
	struct model_mpi_traffic traffic;
};
struct mpi_channel { /* ... with one tag: what is sent and received there, in order */
	uint32_t pair, tag;
	uint32_t object, source, destination;
	uint32_t nr_sent, nr_asked;
	uint32_t nr_kept; /* were looked at by MPI_Mprobe, and nobody has asked for them yet */
};
struct mpi_meeting {     /* one collective operation */
	uint64_t number; /* among those of its communicator, from 1 */
	uint64_t complete_ns;
	uint32_t size, arrived, left, queue;
	uint32_t last; /* the last rank to come of those that are waited for */
	/* Where each needs those below it: when each came (0: has not), then of each rank the one
	 * that came last of those up to it; so many from rank 0 on have come. NULL: no such. */
	uint64_t *come;
	uint32_t prefix;
	bool complete;
};
struct mpi_member { /* a process in a communicator */
	uint32_t rank, size;
	uint64_t nr_meetings;
};
struct mpi_ending { /* of a rank's process */
	uint64_t time_ns;
	int64_t status;      /* as waitpid has it; -1: not known */
	uint32_t abort_site; /* it called MPI_Abort there; NONE: it did not */
	bool ended, finalized;
};
enum mpi_request_kind {
	MPI_REQUEST_none,
	MPI_REQUEST_send,
	MPI_REQUEST_receive,
	MPI_REQUEST_meeting
};
struct mpi_request {
	enum mpi_request_kind kind;
	bool is_active, is_wild, is_last; /* is_last: came last to the meeting; waits for nobody */
	uint32_t channel, number, meeting;
	uint32_t nr_parts;
	uint32_t object, site, op;
	uint32_t rank; /* of the process */
	int64_t peer, tag;
	uint64_t n;
};
struct mpi_needed { /* something that a call was for, and has got */
	uint32_t queue;
	uint64_t key, available_ns;
	uint32_t peer;     /* rank + 1; 0: not known */
	uint32_t pair;     /* + 1; 0: a meeting */
	uint64_t nr_bytes; /* of a message, or given to a meeting */
	uint32_t nr_alike; /* so many wait for the same: of a meeting, with the last; of a message
			     0 */
	bool sends;
};
struct mpi_thread {
	bool is_in_call, waits;
	bool lacks;      /* something that it was for came from a rank that was not recorded */
	bool is_library; /* begun while MPI was: one of its own */
	uint64_t begin_ns;
	uint32_t object, site, op;
	uint32_t state;
	struct mpi_request own; /* of a call that waits itself */
	uint64_t *awaited;      /* requests */
	struct mpi_needed *needed;
	size_t nr_awaited, awaited_capacity, nr_needed, needed_capacity;
};
struct mpi_passive { /* a call about a window's memory at a rank that calls nothing for it */
	uint32_t stream, object, target;
	bool is_outside; /* that rank was in no call as this one began, and has come to none
			    since */
	bool is_given;   /* another has unlocked there since */
	struct mpi_needed needed;
};
enum { MPI_LINK_SIZES = 32, MPI_LINK_DELAYS = 64 };
struct mpi_link_size { /* messages of as many bytes that were waited for (link_mpi.c) */
	uint64_t nr_bytes, nr_seen;
	double delay_ns[MPI_LINK_DELAYS]; /* from their sending; some of them */
};
struct mpi_link_moved { /* what was on its way in one state, with as many bytes */
	uint32_t state;
	uint32_t ago; /* bits of how long ago it had been sent as the call for it began; 0: it had
			not */
	uint64_t nr_bytes, nr, total_ns;
};
struct mpi_links {
	uint32_t nr_sizes;
	struct mpi_link_size size[MPI_LINK_SIZES]; /* the first that there were */
	struct mpi_link_size send; /* calls that waited for nobody: how long each took */
	struct base_map moved_of;  /* (state and ago, bytes) -> index */
	struct mpi_link_moved *moved;
	size_t nr_moved, moved_capacity;
};
struct mpi_passives {
	struct mpi_passive *call; /* that go on */
	size_t nr, capacity;
	uint64_t nr_given; /* items */
};
struct mpi_items {              /* messages, by channel and number */
	struct base_map bytes;  /* how many; as long as in sent */
	struct base_map probed; /* when; was looked at and not received */
	struct base_map sent;   /* when; until it is received */
	struct base_map asked;  /* ... when a receive was posted; until its sender is told */
	struct base_map gone;   /* ... sends that were complete before that */
};
struct model_mpi {
	struct base_map ranks;    /* (process, 0) -> rank + 1 in its world */
	struct base_map members;  /* (process, communicator) -> member */
	struct base_map pairs;    /* (communicator, ranks) -> pair */
	struct base_map channels; /* (communicator and source, destination and tag) -> channel */
	struct base_map requests; /* (process, request) -> request */
	struct base_map meetings; /* (communicator, number) -> meeting */
	struct mpi_items message;
	struct base_map eager;   /* (process, 0) -> bytes that a send needed no receiver for */
	struct base_map queues;  /* (communicator, 0) -> queue of its meetings */
	struct base_map present; /* (communicator, rank) -> process that was recorded */
	struct base_map endings; /* (process, 0) -> ending */
	struct mpi_ending *ending;
	struct model_mpi_world *world;
	size_t nr_endings, ending_capacity, nr_worlds, world_capacity;
	struct mpi_member *member;
	struct mpi_pair *pair;
	struct mpi_channel *channel;
	struct mpi_request *request;
	struct mpi_meeting *meeting;
	struct mpi_thread *thread; /* by stream */
	size_t nr_members, member_capacity, nr_pairs, pair_capacity, nr_channels, channel_capacity;
	size_t nr_requests, request_capacity, nr_meetings, meeting_capacity, nr_threads,
		thread_capacity;
	struct mpi_passives passive;
	struct mpi_links links;
	bool is_launched; /* by a program that is there for that, and was recorded from its start */
	uint32_t free_meeting; /* + 1, linked by .size; 0: none */
};

/* ---- rules_mpi.c: what the other rules need. Pointers are valid until the next of a kind is made;
 * NULL, NONE: no memory, or not known. */
struct mpi_thread *model_mpi_thread_of(struct model *m, const struct thread *t);
struct mpi_member *model_mpi_member_of(struct model *m, const struct thread *t, uint32_t object);
uint32_t model_mpi_make_queue(struct model *m, uint32_t object);
struct mpi_request *model_mpi_request_new(
	struct model *m, struct thread *t, uint64_t name, const struct mpi_request *q);
void model_mpi_put(struct model *m, struct thread *t, uint64_t time_ns, uint32_t queue,
	uint64_t key, int64_t n);
void model_mpi_need(struct model *m, struct mpi_thread *k, struct mpi_needed what);
/* A call begins; from now it waits for that, or is at work in MPI. */
void model_mpi_begin(struct model *m, struct thread *t, struct mpi_thread *k, uint64_t time_ns,
	uint32_t object, uint32_t site, uint64_t op);
void model_mpi_call_begins(struct model *m, struct thread *t, struct mpi_thread *k,
	uint64_t time_ns, bool waits, const struct mpi_needed *what);
void model_mpi_own_call_begins(
	struct model *m, struct thread *t, struct mpi_thread *k, uint64_t time_ns);
/* ---- meetings_mpi.c: may it leave? It leaves. */
bool model_mpi_has_met(const struct model *m, const struct mpi_request *q);
void model_mpi_leave_meeting(struct model *m, struct mpi_thread *k, const struct mpi_request *q);
/* ---- passive_mpi.c: calls about a window's memory at a rank, which that rank does not answer. */
bool model_mpi_is_passive(uint64_t op);
void model_mpi_passive_begins(struct model *m, struct thread *t, struct mpi_thread *k,
	uint64_t time_ns, uint32_t rank, int64_t target);
void model_mpi_passive_ends(
	struct model *m, const struct thread *t, struct mpi_thread *k, uint64_t time_ns);
/* That thread comes to a call: MPI goes on at its rank. */
void model_mpi_target_enters(struct model *m, struct thread *t, uint64_t time_ns);

/* link_mpi.c: a message of so many bytes was there so long after it was sent; a message or a meeting was
 * on its way so long in that state, of a message that was sent ago_ns before its receiver came (0:
 * later), and of a meeting by one of those who meet (all wait for the same); a send that waited for
 * nobody took so long. */
void model_mpi_note_delay(struct model *m, uint64_t nr_bytes, uint64_t delay_ns);
void model_mpi_note_moved(
	struct model *m, uint32_t state, uint64_t nr_bytes, uint64_t ago_ns, uint64_t delay_ns);
void model_mpi_note_send(struct model *m, uint64_t lasted_ns);

/* A rank's process is in its world (ranks_mpi.c). */
void model_mpi_in_world(struct model *m, const struct trace_mpi_comm *c);
/* Of that process; NULL: no memory. */
struct mpi_ending *model_mpi_ending_of(struct model *m, uint32_t process);

#endif
