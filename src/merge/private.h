/* SPDX-License-Identifier: Apache-2.0 */
/* private.h - what the files that read and write traces share. Private to merge. */
#ifndef LONGPOLE_MERGE_PRIVATE_H
#define LONGPOLE_MERGE_PRIVATE_H

#include "merge/merge.h"
#include "trace/enums.h"

/* The tables whose ids are made new. */
enum merge_table {
#define DEF_TABLE(kind, plural) MERGE_TABLE_##kind,
#include "trace/defs.def"
#undef DEF_TABLE
	MERGE_TABLE_string,
	MERGE_TABLE_connection,
	MERGE_TABLE_NR
};

struct merge_object {      /* an object of one input, as far as it is a socket that was used */
	uint64_t first_ns; /* UINT64_MAX: never */
	uint64_t written_bytes, read_bytes;
	uint32_t link;         /* index in merge.link + 1; 0: its other end is in no other input */
	uint32_t pair;         /* in the merged trace; 0: none */
	uint32_t id;           /* in the merged trace */
	uint32_t communicator; /* which of all inputs'; 0: it is none */
	uint8_t side;
};
struct merge_input {
	const char *path;
	struct trace_reader *reader;
	const struct trace_info *info;
	const struct trace_defs *defs;
	const char *boot, *host; /* borrowed from defs and info; boot "": not known */
	uint32_t host_number;
	int64_t last_ns;
	bool lost;      /* records are missing */
	uint32_t world; /* of messages.c: its member of MPI's world, index + 1; 0: none */
	struct merge_object *object;
	uint32_t *string;              /* merged ids; 0: not written yet */
	uint32_t base[MERGE_TABLE_NR]; /* added to ids */
	uint32_t end[MERGE_TABLE_NR];  /* ids from here on are undefined: 0 */
	uint32_t first_processor, nr_processors;
	/* the tree of clocks */
	uint32_t parent;
	uint32_t near_pairs; /* index in merge.pairs + 1 of the first with it; 0: none */
	uint32_t at_host;    /* where it is in merge.by_host */
	enum merge_how how;
	struct merge_clock clock; /* its own to the parent's */
	uint64_t error_ns;        /* to the root's */
	int64_t from_ns, to_ns;   /* of its clock, that its children need, too */
	/* reading all inputs in the order of time */
	struct trace_batch batch;
	size_t at;
	int64_t head_ns; /* of the next record, as merge_next() orders them */
	bool has_head, at_end;
};

struct merge_end { /* of a connection */
	uint32_t input, object;
};
/* What a pair is of. */
enum merge_source {
	MERGE_SOURCE_packets,
	MERGE_SOURCE_bytes,
	MERGE_SOURCE_messages,
	MERGE_SOURCE_NR
};
struct merge_span { /* what follows the previous end, up to this one, was sent at or after at_ns */
	uint64_t end;
	uint64_t at_ns;
};
struct merge_fifo {
	struct merge_span *span;
	size_t first, nr, capacity;
};
struct merge_flow { /* what goes one way, in order */
	struct merge_end from, to;
	enum merge_source source;
	uint64_t nr_sent, nr_received;
	uint64_t nr_open, open_ns; /* writes under way; when the first of these began */
	struct merge_fifo sent, received;
};
struct merge_link { /* a connection between inputs */
	struct merge_end end[2];
	struct merge_flow flow[2]; /* from end[i] to the other */
	bool usable;
};

struct merge_pairs {                /* of input a < b; there: a -> b */
	uint32_t input[2], next[2]; /* next: of these inputs, as merge_input.near_pairs */
	struct merge_pair_set set;
	uint64_t nr[MERGE_SOURCE_NR];
};

/* What is to be done with the fields of one kind: found out once, from the kinds' table. */
enum merge_change { MERGE_CHANGE_id, MERGE_CHANGE_token, MERGE_CHANGE_processor };
enum { MERGE_FIELDS_MAX = 8, MERGE_KINDS = 256 };
struct merge_plan {
	struct merge_field {
		uint16_t offset;
		uint8_t change, table;
	} field[MERGE_FIELDS_MAX];
	unsigned nr;
};

struct merge {
	struct merge_plan *plan; /* by kind */
	const struct merge_options *opts;
	struct merge_result *result;
	struct merge_input *input;
	uint32_t nr_inputs, nr_hosts;
	struct base_map boots;              /* (0, boot id's number) -> host */
	uint32_t by_host[MERGE_INPUTS_MAX]; /* inputs, those of one host together */
	struct merge_pairs **pairs;         /* of inputs that something passed between */
	size_t nr_pairs, pairs_capacity;
	struct base_map by_inputs; /* (0, a << 32 | b) -> pairs */
	/* merge_next(): inputs by the time of their next record, the earliest first (a heap); whose
	 * record was given last is asked for its next one when that is needed */
	uint32_t *queue;
	uint32_t nr_queued;
	bool is_queued;
	struct merge_link *link;
	size_t nr_links, link_capacity;
	uint32_t nr_new_pairs;
	uint32_t nr_communicators; /* numbers given out */
	struct merge_messages *messages;
	struct base_map
		listeners; /* (hash of a listener's name at all addresses) -> host; 0: several */
	uint64_t all_records, done_records;
	struct base_err *err;
};

/* ---- read.c ---------------------------------------------------------------------------------- */

/* Opens all; finds out hosts. */
enum base_status merge_open(struct merge *m, const char *const *path) BASE_MUST_CHECK;
void merge_close(struct merge *m);
enum base_status merge_rewind(struct merge *m) BASE_MUST_CHECK;
/* The next record of all inputs by time(input, record's time). BASE_END at the end. */
typedef int64_t merge_time_fn(
	const struct merge *m, const struct merge_input *in, uint64_t time_ns);
enum base_status merge_next(struct merge *m, merge_time_fn *time, uint32_t *ret_input,
	const struct trace_record **ret) BASE_MUST_CHECK;
/* By the wall clocks: near enough to have both ends of a packet in sight. */
int64_t merge_wall_time(const struct merge *m, const struct merge_input *in, uint64_t time_ns);
/* Of the same kernel: its clock is one. */
static inline bool merge_same_boot(const struct merge_input *a, const struct merge_input *b)
{
	return a->host_number == b->host_number;
}

/* ---- sockets.c ------------------------------------------------------------------------------- */

/* A pass over the records, then: which sockets are two ends of one connection, which pipes one. */
enum base_status merge_find_links(struct merge *m) BASE_MUST_CHECK;

/* The name of an object whose address means something on its own machine only (loopback, Unix
 * sockets, a listener at all addresses when another host has one at that port, too): with "@HOST"
 * behind the addresses. False: it stays as it is. Call only when there are several hosts. */
bool merge_local_name(
	const struct merge *m, const struct merge_input *in, uint32_t object, struct base_str *ret);

/* ---- flow.c ---------------------------------------------------------------------------------- */

/* `n` more went into it, or came out of it. */
enum base_status merge_flow_sent(
	struct merge *m, struct merge_flow *f, uint64_t n, uint64_t at_ns) BASE_MUST_CHECK;
enum base_status merge_flow_received(
	struct merge *m, struct merge_flow *f, uint64_t n, uint64_t at_ns) BASE_MUST_CHECK;
void merge_flow_fini(struct merge_flow *f);

/* ---- pairs.c, packets.c, bytes.c, messages.c ------------------------------------------------- */

/* A pass that fills m->pairs, from all sources. */
enum base_status merge_find_pairs(struct merge *m) BASE_MUST_CHECK;
enum base_status merge_add_pair(struct merge *m, struct merge_end from, uint64_t sent_ns,
	struct merge_end to, uint64_t received_ns, enum merge_source source) BASE_MUST_CHECK;
/* NULL: nothing is known to have passed between them. */
struct merge_pairs *merge_pairs_of(const struct merge *m, uint32_t a, uint32_t b);
void merge_pairs_free(struct merge *m);
struct merge_packets;
struct merge_packets *merge_packets_new(struct merge *m);
enum base_status merge_packets_record(
	struct merge_packets *p, uint32_t input, const struct trace_record *r) BASE_MUST_CHECK;
void merge_packets_count(const struct merge_packets *p, struct merge_result *ret);
struct merge_packets *merge_packets_free(struct merge_packets *p);
struct merge_messages;
struct merge_messages *merge_messages_new(struct merge *m);
/* Of a first pass, which counts; merge_messages_counted(); of a second, which finds pairs. */
enum base_status merge_messages_record(
	struct merge_messages *x, uint32_t input, const struct trace_record *r) BASE_MUST_CHECK;
/* Communicators have their numbers then. */
enum base_status merge_messages_counted(struct merge_messages *x) BASE_MUST_CHECK;
struct merge_messages *merge_messages_free(struct merge_messages *x);
struct merge_bytes;
struct merge_bytes *merge_bytes_new(struct merge *m);
enum base_status merge_bytes_record(
	struct merge_bytes *b, uint32_t input, const struct trace_record *r) BASE_MUST_CHECK;
struct merge_bytes *merge_bytes_free(struct merge_bytes *b);

/* ---- hosts.c --------------------------------------------------------------------------------- */

/* Every input's clock: a spanning tree of the least errors. */
enum base_status merge_align(struct merge *m) BASE_MUST_CHECK;
/* A time of that input by the first input's clock; may be negative. */
int64_t merge_first_time(const struct merge *m, const struct merge_input *in, int64_t time_ns);

/* ---- rename.c -------------------------------------------------------------------------------- */

/* Where each table of each input begins. */
enum base_status merge_place_tables(struct merge *m) BASE_MUST_CHECK;
void merge_rename(const struct merge *m, const struct merge_input *in, struct trace_record *r);
/* For the header. */
uint32_t merge_nr_processors(const struct merge *m);

/* ---- write.c --------------------------------------------------------------------------------- */

enum base_status merge_write(struct merge *m, const char *path) BASE_MUST_CHECK;

#endif
