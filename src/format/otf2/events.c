/* SPDX-License-Identifier: Apache-2.0 */
/*
 * events.c - events of one location as records of one stream: what happens within a function of MPI is
 * a call, regions are states.
 *
 * OTF2 says whom a message is from when it has come, and which operation ranks meet in when they have
 * met; a recording says so first. So records are kept until no receive of theirs is open.
 * Regions that last no longer than the call in them are only where the call is made.
 */
#include "format/otf2/private.h"

#include <string.h>

enum {
	RECORDS_KEPT = 4096,
	LOOKS_APART_NS = 1000, /* calls that find nothing and follow each other at once: one wait */
	REQUEST_BITS = 44,
};

#define NOW_PUT(im, err, time, kind_, ...)                                                         \
	now_put(im, err,                                                                           \
		&(struct trace_record){                                                            \
			.time_ns = (time), .kind = TRACE_##kind_, .u.kind_ = {__VA_ARGS__}})

void format_otf2_now_fini(struct otf2_now *n)
{
	base_map_fini(&n->pending);
	base_free(n->stack);
	base_free(n->item);
	base_free(n->record);
	*n = (struct otf2_now){0};
}

static enum base_status now_no_memory(struct base_err *err)
{
	return base_fail(err, BASE_ERR_NOMEM, "out of memory for events");
}

static uint64_t otf2_event_ns(const struct otf2_import *im, uint64_t ticks)
{
	if (ticks <= im->first_tick)
		return 0;
	unsigned __int128 ns = (unsigned __int128)(ticks - im->first_tick) * 1000000000;
	ns /= im->ticks_a_second;
	return ns < INT64_MAX ? (uint64_t)ns : INT64_MAX;
}

/* ---- records --------------------------------------------------------------------------------- */

/* A receive whose message never came says nothing: it has no communicator. */
static bool now_is_open(const struct trace_record *r)
{
	return (r->kind == TRACE_mpi_receive && !r->u.mpi_receive.object) ||
	       (r->kind == TRACE_mpi_collective && !r->u.mpi_collective.object);
}

static enum base_status now_write(struct otf2_import *im, struct base_err *err)
{
	struct otf2_now *n = &im->now;
	enum base_status s = BASE_OK;
	for (size_t i = 0; s == BASE_OK && i < n->nr_records; i++) {
		struct trace_record *r = &n->record[i];
		r->stream = im->location[n->location].stream;
		if (now_is_open(r))
			im->nr_open++;
		else
			s = trace_writer_put(im->to, r, err);
	}
	n->nr_written += n->nr_records;
	n->nr_records = 0;
	return s;
}

static enum base_status now_put(
	struct otf2_import *im, struct base_err *err, const struct trace_record *r)
{
	struct otf2_now *n = &im->now;
	if (n->nr_records >= RECORDS_KEPT && !n->nr_pending) {
		enum base_status s = now_write(im, err);
		if (s != BASE_OK)
			return s;
	}
	if (base_grow(&n->record, &n->record_capacity, n->nr_records + 1, sizeof *n->record) !=
		BASE_OK)
		return now_no_memory(err);
	n->record[n->nr_records++] = *r;
	return BASE_OK;
}

/* The record that the request with that number began with; NULL: it is not open. */
static struct trace_record *now_pending(struct otf2_import *im, uint64_t request)
{
	struct otf2_now *n = &im->now;
	uint64_t at;
	if (!base_map_get(&n->pending, 0, request, &at) || at < n->nr_written)
		return NULL;
	base_map_remove(&n->pending, 0, request);
	n->nr_pending--;
	return &n->record[at - n->nr_written];
}

static enum base_status now_begin_pending(struct otf2_import *im, uint64_t request,
	const struct trace_record *r, struct base_err *err)
{
	struct otf2_now *n = &im->now;
	(void)now_pending(im, request); /* (of one that never was complete) */
	n->nr_pending++;
	enum base_status s = now_put(im, err, r);
	if (s == BASE_OK &&
		base_map_put(&n->pending, 0, request, n->nr_written + n->nr_records - 1) != BASE_OK)
		s = now_no_memory(err);
	return s;
}

/* ---- states ---------------------------------------------------------------------------------- */

/* The innermost region that is none of MPI's: index + 1; 0: there is none. */
static uint32_t now_region(const struct otf2_import *im)
{
	for (size_t i = im->now.nr_stack; i--;)
		if (im->now.stack[i] < im->nr_regions && !im->region[im->now.stack[i]].is_mpi)
			return im->now.stack[i] + 1;
	return 0;
}

/* What it has been doing until `time_ns`, if that took time. */
static enum base_status now_keep(struct otf2_import *im, uint64_t time_ns, struct base_err *err)
{
	struct otf2_now *n = &im->now;
	if (n->kept == n->wanted || n->wanted_ns >= time_ns)
		return BASE_OK;
	n->kept = n->wanted;
	return NOW_PUT(
		im, err, n->wanted_ns, note_state, .state = n->kept, .flags = TRACE_NOTE_KEPT);
}

static enum base_status now_regions_change(
	struct otf2_import *im, uint64_t time_ns, struct base_err *err)
{
	struct otf2_now *n = &im->now;
	enum base_status s = now_keep(im, time_ns, err);
	n->wanted = now_region(im);
	n->wanted_ns = time_ns;
	n->look_ns = 0;
	return s;
}

/* ---- a call ---------------------------------------------------------------------------------- */

static bool op_looks(uint32_t op)
{
	return (op >= TRACE_MPI_Test && op <= TRACE_MPI_Testsome) || op == TRACE_MPI_Iprobe ||
	       op == TRACE_MPI_Improbe || op == TRACE_MPI_Request_get_status ||
	       op == TRACE_MPI_Win_test;
}

/* Of calls that the archive has no event for, those that may take long. */
static bool op_is_told_alone(uint32_t op)
{
	return op <= TRACE_MPI_Finalize || op == TRACE_MPI_Abort || op == TRACE_MPI_Probe ||
	       op == TRACE_MPI_Mprobe;
}

/* The operations of OTF2_CollectiveOp, in its order. */
static uint32_t op_of_collective(uint64_t operation)
{
	static const uint8_t op[] = {TRACE_MPI_Barrier, TRACE_MPI_Bcast, TRACE_MPI_Gather,
		TRACE_MPI_Gatherv, TRACE_MPI_Scatter, TRACE_MPI_Scatterv, TRACE_MPI_Allgather,
		TRACE_MPI_Allgatherv, TRACE_MPI_Alltoall, TRACE_MPI_Alltoallv, TRACE_MPI_Alltoallw,
		TRACE_MPI_Allreduce, TRACE_MPI_Reduce, TRACE_MPI_Reduce_scatter, TRACE_MPI_Scan,
		TRACE_MPI_Exscan, TRACE_MPI_Reduce_scatter_block, TRACE_MPI_Comm_split,
		TRACE_MPI_Comm_free, TRACE_MPI_Win_allocate, TRACE_MPI_Win_free,
		TRACE_MPI_Win_create, TRACE_MPI_Win_free};
	_Static_assert(TRACE_MPI_NR <= UINT8_MAX, "a number has room");
	return operation < sizeof op ? op[operation] : TRACE_MPI_Barrier;
}

/* What an event is of that stands in no function of MPI. */
static uint32_t op_of_item(const struct otf2_item *i)
{
	static const uint8_t op[OTF2_KIND_NR] = {
		[OTF2_send_ITEM] = TRACE_MPI_Send,
		[OTF2_receive_ITEM] = TRACE_MPI_Recv,
		[OTF2_send_begins_ITEM] = TRACE_MPI_Isend,
		[OTF2_receive_begins_ITEM] = TRACE_MPI_Irecv,
		[OTF2_sent_ITEM] = TRACE_MPI_Wait,
		[OTF2_received_ITEM] = TRACE_MPI_Wait,
		[OTF2_cancelled_ITEM] = TRACE_MPI_Wait,
		[OTF2_collective_begins_ITEM] = TRACE_MPI_Ibarrier,
		[OTF2_collective_ends_ITEM] = TRACE_MPI_Wait,
	};
	return i->kind == OTF2_collective_ITEM || i->kind == OTF2_window_collective_ITEM
		       ? op_of_collective(i->value[0])
		       : op[i->kind];
}

static uint64_t now_request(uint64_t request)
{
	return (request & ((UINT64_C(1) << REQUEST_BITS) - 1)) << 2 | 3;
}

/* The n-th part of a call that does several things at once. */
static uint64_t now_own_request(const struct otf2_import *im, size_t n)
{
	return UINT64_C(1) << (REQUEST_BITS + 2) | (n & 0xfff) << 32 |
	       im->location[im->now.location].stream;
}

/* The object that a reference of a communicator is; 0: not one of several ranks. */
static uint32_t now_object(struct otf2_import *im, uint64_t reference)
{
	uint32_t c = otf2_find(im, OTF2_comm_ITEM, reference);
	if (c != OTF2_NONE && im->comm[c].is_used)
		return c + 1;
	im->nr_unknown++;
	return 0;
}

static uint32_t now_collective_object(struct otf2_import *im, const struct otf2_item *i)
{
	uint64_t reference = i->value[1];
	if (i->kind == OTF2_window_collective_ITEM) {
		uint32_t w = otf2_find(im, OTF2_window_ITEM, reference);
		reference = w == OTF2_NONE ? OTF2_NONE : im->window[w];
	}
	return now_object(im, reference);
}

static int64_t now_root(uint64_t root)
{
	return root <= OTF2_ROOT_MAX ? (int64_t)root : -1;
}

struct now_call {
	uint64_t begin_ns, end_ns;
	uint32_t op, site;
	size_t nr_own; /* sends and receives that are parts of it, each with a request of its own */
	size_t nr_done;
	bool is_told; /* there is something that mpi_return ends */
};

static bool item_is_message(const struct otf2_item *i)
{
	return i->kind == OTF2_send_ITEM || i->kind == OTF2_receive_ITEM;
}

static bool item_completes(const struct otf2_item *i)
{
	return i->kind == OTF2_sent_ITEM || i->kind == OTF2_received_ITEM ||
	       i->kind == OTF2_cancelled_ITEM || i->kind == OTF2_collective_ends_ITEM;
}

/* A send or receive that the call waits for itself (request 0), or as one of several. */
static enum base_status call_message(struct otf2_import *im, struct now_call *c,
	const struct otf2_item *i, uint64_t request, struct base_err *err)
{
	const uint64_t *v = i->value;
	uint32_t object = now_object(im, v[1]);
	if (!object)
		return BASE_OK;
	c->is_told = true;
	if (i->kind == OTF2_send_ITEM)
		return NOW_PUT(im, err, c->begin_ns, mpi_send, .object = object, .site = c->site,
			.peer = (int64_t)v[0], .tag = (int64_t)v[2], .n = v[3], .request = request,
			.op = c->op);
	return NOW_PUT(im, err, c->begin_ns, mpi_receive, .object = object, .site = c->site,
		.peer = (int64_t)v[0], .tag = (int64_t)v[2], .n = v[3], .request = request,
		.op = c->op);
}

static enum base_status call_begins(struct otf2_import *im, const struct now_call *c,
	const struct otf2_item *i, struct base_err *err)
{
	const uint64_t *v = i->value;
	if (i->kind == OTF2_send_begins_ITEM) {
		uint32_t object = now_object(im, v[1]);
		return !object ? BASE_OK
			       : NOW_PUT(im, err, c->begin_ns, mpi_send, .object = object,
					 .site = c->site, .peer = (int64_t)v[0],
					 .tag = (int64_t)v[2], .n = v[3],
					 .request = now_request(v[4]), .op = c->op);
	}
	struct trace_record r = {.time_ns = c->begin_ns};
	if (i->kind == OTF2_receive_begins_ITEM) {
		r.kind = TRACE_mpi_receive;
		r.u.mpi_receive = (struct trace_mpi_receive){
			.site = c->site, .request = now_request(v[0]), .op = c->op};
	} else {
		r.kind = TRACE_mpi_collective;
		r.u.mpi_collective = (struct trace_mpi_collective){
			.site = c->site, .request = now_request(v[0]), .op = c->op};
	}
	return now_begin_pending(im, v[0], &r, err);
}

static enum base_status call_collective(
	struct otf2_import *im, struct now_call *c, const struct otf2_item *i, struct base_err *err)
{
	uint32_t object = now_collective_object(im, i);
	if (!object)
		return BASE_OK;
	c->is_told = true;
	return NOW_PUT(im, err, c->begin_ns, mpi_collective, .object = object, .site = c->site,
		.op = c->op, .root = now_root(i->value[2]), .n = i->value[3]);
}

/* What a request that is complete was begun for. */
static void call_tell_pending(struct otf2_import *im, const struct otf2_item *i)
{
	const uint64_t *v = i->value;
	bool receives = i->kind == OTF2_received_ITEM, meets = i->kind == OTF2_collective_ends_ITEM;
	struct trace_record *r = receives || meets                ? now_pending(im, v[4])
				 : i->kind == OTF2_cancelled_ITEM ? now_pending(im, v[0])
								  : NULL;
	if (r && receives && r->kind == TRACE_mpi_receive) {
		struct trace_mpi_receive *m = &r->u.mpi_receive;
		m->object = now_object(im, v[1]);
		m->peer = (int64_t)v[0];
		m->tag = (int64_t)v[2];
		m->n = v[3];
	} else if (r && meets && r->kind == TRACE_mpi_collective) {
		struct trace_mpi_collective *m = &r->u.mpi_collective;
		m->object = now_collective_object(im, i);
		m->root = now_root(v[2]);
		m->n = v[3];
	}
}

/* Requests that the call waits for, in one go. */
static enum base_status call_waits(
	struct otf2_import *im, const struct now_call *c, struct base_err *err)
{
	struct otf2_now *n = &im->now;
	enum base_status s = BASE_OK;
	size_t left = c->nr_own + c->nr_done, own = 0;
	for (size_t i = 0; s == BASE_OK && i < n->nr_items; i++) {
		const struct otf2_item *e = &n->item[i];
		bool is_own = c->nr_own && item_is_message(e);
		if (!is_own && !item_completes(e))
			continue;
		bool last = e->kind == OTF2_received_ITEM || e->kind == OTF2_collective_ends_ITEM;
		uint64_t request =
			is_own ? now_own_request(im, own++) : now_request(e->value[last ? 4 : 0]);
		s = NOW_PUT(im, err, c->begin_ns, mpi_wait, .op = c->op, .request = request,
			.more = --left > 0, .site = c->site);
	}
	return s;
}

static enum base_status call_done(
	struct otf2_import *im, const struct now_call *c, struct base_err *err)
{
	struct otf2_now *n = &im->now;
	enum base_status s = BASE_OK;
	size_t own = 0;
	for (size_t i = 0; s == BASE_OK && i < n->nr_items; i++) {
		const struct otf2_item *e = &n->item[i];
		const uint64_t *v = e->value;
		bool is_own = c->nr_own && item_is_message(e);
		if (is_own && e->kind == OTF2_receive_ITEM)
			s = NOW_PUT(im, err, c->end_ns, mpi_done,
				.request = now_own_request(im, own++), .peer = (int64_t)v[0],
				.tag = (int64_t)v[2], .n = v[3]);
		else if (is_own)
			s = NOW_PUT(im, err, c->end_ns, mpi_done,
				.request = now_own_request(im, own++), .peer = -1, .tag = -1);
		else if (e->kind == OTF2_received_ITEM)
			s = NOW_PUT(im, err, c->end_ns, mpi_done, .request = now_request(v[4]),
				.peer = (int64_t)v[0], .tag = (int64_t)v[2], .n = v[3]);
		else if (item_completes(e))
			s = NOW_PUT(im, err, c->end_ns, mpi_done,
				.request = now_request(
					v[e->kind == OTF2_collective_ends_ITEM ? 4 : 0]),
				.peer = e->kind == OTF2_cancelled_ITEM ? TRACE_MPI_CANCELLED : -1,
				.tag = -1);
	}
	return s;
}

/* A call that looked and found nothing: the first of several is when the wait began. */
static void call_found_nothing(struct otf2_now *n, const struct now_call *c)
{
	uint64_t apart = c->begin_ns - n->last_look_ns, inside = c->end_ns - c->begin_ns;
	if (!n->look_ns || (apart > LOOKS_APART_NS && apart > inside))
		n->look_ns = c->begin_ns;
	n->last_look_ns = c->end_ns;
}

static void call_begins_with_looks(struct otf2_now *n, struct now_call *c)
{
	uint64_t apart = c->begin_ns - n->last_look_ns, inside = c->end_ns - c->begin_ns;
	if (op_looks(c->op) && n->look_ns && (apart <= LOOKS_APART_NS || apart <= inside))
		c->begin_ns = n->look_ns;
	n->look_ns = 0;
}

static enum base_status call_items(struct otf2_import *im, struct now_call *c, struct base_err *err)
{
	struct otf2_now *n = &im->now;
	enum base_status s = BASE_OK;
	size_t own = 0;
	for (size_t i = 0; s == BASE_OK && i < n->nr_items; i++) {
		const struct otf2_item e = n->item[i];
		if (item_is_message(&e))
			s = call_message(
				im, c, &e, c->nr_own ? now_own_request(im, own++) : 0, err);
		else if (item_completes(&e))
			call_tell_pending(im, &e);
		else if (e.kind == OTF2_collective_ITEM || e.kind == OTF2_window_collective_ITEM)
			s = call_collective(im, c, &e, err);
		else
			s = call_begins(im, c, &e, err);
	}
	return s;
}

static enum base_status now_call(struct otf2_import *im, uint32_t op, uint64_t begin_ns,
	uint64_t end_ns, bool is_over, struct base_err *err)
{
	struct otf2_now *n = &im->now;
	struct now_call c = {.begin_ns = begin_ns,
		.end_ns = end_ns,
		.op = op == OTF2_NONE ? TRACE_MPI_Wait : op,
		.site = now_region(im)};
	size_t nr_messages = 0;
	for (size_t i = 0; i < n->nr_items; i++) {
		nr_messages += item_is_message(&n->item[i]);
		c.nr_done += item_completes(&n->item[i]);
	}
	if (!n->nr_items && op_looks(c.op)) {
		call_found_nothing(n, &c);
		return BASE_OK;
	}
	call_begins_with_looks(n, &c);
	c.nr_own = nr_messages > 1 || c.nr_done ? nr_messages : 0;
	enum base_status s = now_keep(im, c.begin_ns, err);
	bool alone = op_is_told_alone(c.op) && !nr_messages && !c.nr_done;
	if (s == BASE_OK && (alone || (!is_over && !n->nr_items && op != OTF2_NONE))) {
		c.is_told = true;
		s = NOW_PUT(im, err, c.begin_ns, mpi_wait, .op = c.op, .site = c.site);
	}
	if (s == BASE_OK)
		s = call_items(im, &c, err);
	if (s == BASE_OK && c.nr_own + c.nr_done) {
		c.is_told = true;
		s = call_waits(im, &c, err);
	}
	if (s == BASE_OK && is_over)
		s = call_done(im, &c, err);
	if (s == BASE_OK && c.is_told && is_over)
		s = NOW_PUT(im, err, c.end_ns, mpi_return, .op = c.op, .site = c.site);
	n->nr_items = 0;
	return s;
}

/* ---- events ---------------------------------------------------------------------------------- */

static enum base_status now_begin(struct otf2_import *im, uint32_t location)
{
	struct otf2_now *n = &im->now;
	n->is_open = true;
	n->has_begun = false;
	n->location = location;
	n->last_ns = 0;
	n->nr_stack = n->call_depth = n->nr_items = n->nr_records = n->nr_pending = 0;
	n->nr_written = 0;
	base_map_fini(&n->pending);
	n->kept = n->wanted = 0;
	n->look_ns = n->last_look_ns = 0;
	return BASE_OK;
}

static enum base_status now_first(struct otf2_import *im, uint64_t time_ns, struct base_err *err)
{
	const struct otf2_location *l = &im->location[im->now.location];
	enum base_status s = BASE_OK;
	im->now.has_begun = true;
	if (l->is_first)
		s = NOW_PUT(im, err, time_ns, process_begin, 0);
	if (s == BASE_OK)
		s = NOW_PUT(im, err, time_ns, thread_begin, 0);
	for (uint32_t i = 0; s == BASE_OK && i < l->nr_members; i++) {
		const struct otf2_member *m = &im->member[l->first_member + i];
		s = NOW_PUT(im, err, time_ns, mpi_comm, .object = m->comm + 1, .rank = m->rank,
			.size = m->size, .world = im->comm[m->comm].is_world);
	}
	return s;
}

static enum base_status now_enter(
	struct otf2_import *im, uint64_t reference, uint64_t time_ns, struct base_err *err)
{
	struct otf2_now *n = &im->now;
	uint32_t region = otf2_find(im, OTF2_region_ITEM, reference);
	if (base_grow(&n->stack, &n->stack_capacity, n->nr_stack + 1, sizeof *n->stack) != BASE_OK)
		return now_no_memory(err);
	bool is_mpi = region != OTF2_NONE && im->region[region].is_mpi;
	n->stack[n->nr_stack++] = region;
	if (n->call_depth)
		return BASE_OK; /* what MPI does within is MPI's */
	if (!is_mpi)
		return now_regions_change(im, time_ns, err);
	n->call_depth = n->nr_stack;
	n->call_ns = time_ns;
	n->nr_items = 0;
	return BASE_OK;
}

/* (Of a region that was not entered nothing is left.) */
static enum base_status now_leave(struct otf2_import *im, uint64_t time_ns, struct base_err *err)
{
	struct otf2_now *n = &im->now;
	enum base_status s = BASE_OK;
	if (!n->nr_stack)
		return BASE_OK;
	if (n->call_depth == n->nr_stack) {
		uint32_t region = n->stack[n->nr_stack - 1];
		n->call_depth = 0;
		s = now_call(im, region < im->nr_regions ? im->region[region].op : OTF2_NONE,
			n->call_ns, time_ns, true, err);
		n->nr_stack--;
		n->wanted_ns = time_ns;
		return s;
	}
	n->nr_stack--;
	return n->call_depth ? BASE_OK : now_regions_change(im, time_ns, err);
}

static enum base_status now_add(
	struct otf2_import *im, const struct otf2_item *i, uint64_t time_ns, struct base_err *err)
{
	struct otf2_now *n = &im->now;
	if (base_grow(&n->item, &n->item_capacity, n->nr_items + 1, sizeof *n->item) != BASE_OK)
		return now_no_memory(err);
	n->item[n->nr_items++] = *i;
	return n->call_depth ? BASE_OK : now_call(im, op_of_item(i), time_ns, time_ns, true, err);
}

enum base_status format_otf2_end_location(struct otf2_import *im, bool is_cut, struct base_err *err)
{
	struct otf2_now *n = &im->now;
	enum base_status s = BASE_OK;
	if (!n->is_open)
		return BASE_OK;
	if (n->call_depth) {
		uint32_t region = n->stack[n->call_depth - 1];
		s = now_call(im, region < im->nr_regions ? im->region[region].op : OTF2_NONE,
			n->call_ns, n->last_ns, false, err);
	} else if (n->has_begun) {
		s = now_keep(im, n->last_ns, err);
	}
	if (s == BASE_OK && n->has_begun && !is_cut && !n->call_depth) {
		s = NOW_PUT(im, err, n->last_ns, thread_end);
		if (s == BASE_OK && im->location[n->location].is_first)
			s = NOW_PUT(im, err, n->last_ns, process_end, 0);
	}
	n->nr_pending = 0;
	if (s == BASE_OK)
		s = now_write(im, err);
	if (s == BASE_OK)
		s = trace_writer_flush(im->to, err);
	n->is_open = false;
	return s;
}

enum base_status format_otf2_take_event(
	struct otf2_import *im, const struct otf2_item *i, struct base_err *err)
{
	struct otf2_now *n = &im->now;
	enum base_status s = BASE_OK;
	if (i->kind == OTF2_begin_ITEM) {
		s = format_otf2_end_location(im, true, err);
		return s == BASE_OK ? now_begin(im, i->location) : s;
	}
	if (!n->is_open || n->location != i->location)
		return base_fail(
			err, BASE_ERR_FOREIGN, "events of a thread that its reader did not begin");
	if (i->kind == OTF2_end_ITEM)
		return format_otf2_end_location(im, i->value[0] != 0, err);
	uint64_t time_ns = otf2_event_ns(im, i->ticks);
	im->nr_back += time_ns < n->last_ns;
	n->last_ns = time_ns = time_ns > n->last_ns ? time_ns : n->last_ns;
	if (!n->has_begun)
		s = now_first(im, time_ns, err);
	if (s != BASE_OK || i->kind == OTF2_program_ITEM)
		return s;
	if (i->kind == OTF2_enter_ITEM)
		return now_enter(im, i->value[0], time_ns, err);
	if (i->kind == OTF2_leave_ITEM)
		return now_leave(im, time_ns, err);
	return now_add(im, i, time_ns, err);
}
