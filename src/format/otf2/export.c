/* SPDX-License-Identifier: Apache-2.0 */
/*
 * export.c - what ranks of MPI did as an OTF2 archive, as Score-P would write it: a location a rank,
 * a region a function of MPI and a function that calls it or a state that the program named.
 *
 * The library keeps at least EVENTS_CHUNK bytes for each location that is being written, so the trace is
 * read once for LOCATIONS_AT_ONCE of them. Other threads' records, locks and samples have no place in it.
 */
#include "format/private.h"

#include "config.h"

#if LONGPOLE_OTF2

#include <otf2/otf2.h>
#include <string.h>

enum { LOCATIONS_AT_ONCE = 2048, EVENTS_CHUNK = 1 << 18, DEFINITIONS_CHUNK = 1 << 20 };
#define EXPORT_NONE UINT32_MAX

/* A request that is begun, under its name in its process. */
struct export_request {
	uint16_t kind; /* enum trace_kind of the record that it began with */
	bool is_template;
	uint32_t object;
	uint64_t number, n, op;
	int64_t peer, tag;
};
struct export_rank { /* a stream that calls MPI */
	uint32_t stream, process, world_rank;
	OTF2_EvtWriter *writer; /* NULL: not one of those that are written now */
	uint64_t nr_events;
	uint64_t call_op;
	uint32_t call_site;
	bool is_in_call, is_within; /* is_within: of the state that goes on */
	struct export_request own;  /* of a call that waits itself */
	uint32_t state;             /* named by the program, and going on; 0: none */
};
struct export_comm {
	uint32_t object, size;
	bool is_world;
	uint32_t *rank; /* by rank of it: index of the rank's stream; EXPORT_NONE: not recorded */
};
struct otf2_export {
	const struct format_input *in;
	const struct trace_defs *defs;
	struct base_err *err;
	OTF2_Archive *archive;
	struct export_rank *rank;
	struct export_comm *comm;
	struct export_request *request;
	struct base_map rank_of, comm_of; /* (0, stream), (0, object) -> index */
	struct base_map request_of;       /* (process, name) -> index */
	struct base_map text_of, region_of;
	size_t nr_ranks, rank_capacity, nr_comms, comm_capacity, nr_requests, request_capacity;
	uint64_t last_ns, nr_left_out, next_request;
	const char **text; /* strings' references */
	uint64_t *region;  /* key of each */
	size_t nr_texts, text_capacity, nr_regions, region_capacity;
	OTF2_ErrorCode code; /* the library's first complaint */
	bool no_memory;
};

static void export_keep(struct otf2_export *x, OTF2_ErrorCode code)
{
	x->code = x->code == OTF2_SUCCESS ? code : x->code;
}

/* ---- texts and regions ----------------------------------------------------------------------- */

static uint32_t export_text(struct otf2_export *x, const char *text)
{
	uint64_t hash = 14695981039346656037u, i;
	for (const char *p = text; *p; p++)
		hash = (hash ^ (uint8_t)*p) * 1099511628211u;
	for (uint64_t nth = 0; base_map_get(&x->text_of, nth, hash, &i); nth++)
		if (!strcmp(x->text[i], text))
			return (uint32_t)i;
	uint64_t nth = 0;
	while (base_map_get(&x->text_of, nth, hash, &i))
		nth++;
	if (base_grow(&x->text, &x->text_capacity, x->nr_texts + 1, sizeof *x->text) != BASE_OK ||
		base_map_put(&x->text_of, nth, hash, x->nr_texts) != BASE_OK) {
		x->no_memory = true;
		return 0;
	}
	x->text[x->nr_texts] = text;
	return (uint32_t)x->nr_texts++;
}

/* Regions are functions of MPI, functions by their sites, and states. */
enum export_region_kind { REGION_op, REGION_function, REGION_state };
static uint32_t export_region(struct otf2_export *x, enum export_region_kind kind, uint64_t id)
{
	const struct trace_symbol *symbol = trace_def_symbol(x->defs, (uint32_t)id);
	uint64_t lo = kind == REGION_function ? (uint64_t)symbol->function << 32 | symbol->file
					      : id,
		 i;
	if (kind == REGION_function && !symbol->function)
		return EXPORT_NONE;
	if (base_map_get(&x->region_of, kind, lo, &i))
		return (uint32_t)i;
	if (base_grow(&x->region, &x->region_capacity, x->nr_regions + 1, sizeof *x->region) !=
			BASE_OK ||
		base_map_put(&x->region_of, kind, lo, x->nr_regions) != BASE_OK) {
		x->no_memory = true;
		return EXPORT_NONE;
	}
	x->region[x->nr_regions] = (uint64_t)kind << 32 | (uint32_t)id;
	return (uint32_t)x->nr_regions++;
}

/* ---- who takes part -------------------------------------------------------------------------- */

static struct export_rank *export_rank_of(struct otf2_export *x, uint32_t stream)
{
	uint64_t i;
	return base_map_get(&x->rank_of, 0, stream, &i) ? &x->rank[i] : NULL;
}

static uint32_t export_comm_of(const struct otf2_export *x, uint32_t object)
{
	uint64_t i;
	return base_map_get(&x->comm_of, 0, object, &i) ? (uint32_t)i : EXPORT_NONE;
}

static bool export_add_rank(struct otf2_export *x, uint32_t stream)
{
	if (base_grow(&x->rank, &x->rank_capacity, x->nr_ranks + 1, sizeof *x->rank) != BASE_OK ||
		base_map_put(&x->rank_of, 0, stream, x->nr_ranks) != BASE_OK)
		return false;
	x->rank[x->nr_ranks++] = (struct export_rank){
		.stream = stream, .process = trace_def_stream(x->defs, stream)->process};
	return true;
}

static bool export_add_comm(struct otf2_export *x, const struct trace_mpi_comm *c)
{
	struct export_comm *comm;
	if (base_grow(&x->comm, &x->comm_capacity, x->nr_comms + 1, sizeof *x->comm) != BASE_OK ||
		base_map_put(&x->comm_of, 0, c->object, x->nr_comms) != BASE_OK)
		return false;
	comm = &x->comm[x->nr_comms++];
	*comm = (struct export_comm){.object = c->object,
		.size = (uint32_t)c->size,
		.is_world = c->world == 1,
		.rank = base_alloc((size_t)c->size * sizeof *comm->rank)};
	for (uint32_t i = 0; comm->rank && i < comm->size; i++)
		comm->rank[i] = EXPORT_NONE;
	return comm->rank != NULL;
}

/* (A communicator of more ranks than there can be is damage.) */
static void export_meet(struct otf2_export *x, const struct trace_record *r)
{
	const struct trace_mpi_comm *c = &r->u.mpi_comm;
	if (c->rank >= c->size || c->size > 1u << 24)
		return;
	bool good = export_rank_of(x, r->stream) || export_add_rank(x, r->stream);
	good = good && (export_comm_of(x, c->object) != EXPORT_NONE || export_add_comm(x, c));
	uint32_t i = export_comm_of(x, c->object);
	if (!good || i == EXPORT_NONE)
		x->no_memory = true;
	else if (c->rank < x->comm[i].size)
		x->comm[i].rank[c->rank] = (uint32_t)(export_rank_of(x, r->stream) - x->rank);
	if (good && c->world)
		export_rank_of(x, r->stream)->world_rank = (uint32_t)c->rank;
}

static bool export_is_told(unsigned kind)
{
	return (kind >= TRACE_mpi_comm && kind <= TRACE_mpi_start) || kind == TRACE_note_state ||
	       kind == TRACE_process_begin || kind == TRACE_process_end ||
	       kind == TRACE_thread_begin || kind == TRACE_thread_end;
}

static void export_look(void *ctx, const struct trace_record *r)
{
	struct otf2_export *x = ctx;
	x->last_ns = r->time_ns > x->last_ns ? r->time_ns : x->last_ns;
	x->nr_left_out += !export_is_told(r->kind);
	if (r->kind == TRACE_mpi_comm)
		export_meet(x, r);
}

/* ---- events ---------------------------------------------------------------------------------- */

#define EXPORT_EVENT(x, k, time, kind, ...)                                                        \
	((k)->nr_events++,                                                                         \
		export_keep(x, OTF2_EvtWriter_##kind((k)->writer, NULL, time, __VA_ARGS__)))

static void export_enter(struct otf2_export *x, struct export_rank *k, uint64_t time_ns,
	enum export_region_kind kind, uint64_t id)
{
	uint32_t region = export_region(x, kind, id);
	if (region != EXPORT_NONE)
		EXPORT_EVENT(x, k, time_ns, Enter, region);
}

static void export_leave(struct otf2_export *x, struct export_rank *k, uint64_t time_ns,
	enum export_region_kind kind, uint64_t id)
{
	uint32_t region = export_region(x, kind, id);
	if (region != EXPORT_NONE)
		EXPORT_EVENT(x, k, time_ns, Leave, region);
}

static uint32_t export_function(const struct otf2_export *x, uint32_t site)
{
	return trace_def_symbol(x->defs, site)->function;
}

/* A call is made in the function that its site is in: that one is entered with it, unless the state
 * that goes on is of that function. */
static void export_call_begins(
	struct otf2_export *x, struct export_rank *k, uint64_t time_ns, uint64_t op, uint32_t site)
{
	if (k->is_in_call)
		return;
	k->is_in_call = true;
	k->call_op = op < TRACE_MPI_NR ? op : TRACE_MPI_Wait;
	k->call_site = site;
	k->own = (struct export_request){.kind = 0};
	k->is_within = k->state && export_function(x, trace_def_state(x->defs, k->state)->site) ==
					   export_function(x, site);
	if (k->state && !k->is_within)
		export_leave(x, k, time_ns, REGION_state, k->state);
	if (!k->is_within)
		export_enter(x, k, time_ns, REGION_function, site);
	export_enter(x, k, time_ns, REGION_op, k->call_op);
}

static void export_call_ends(struct otf2_export *x, struct export_rank *k, uint64_t time_ns)
{
	if (!k->is_in_call)
		return;
	export_leave(x, k, time_ns, REGION_op, k->call_op);
	if (!k->is_within)
		export_leave(x, k, time_ns, REGION_function, k->call_site);
	if (k->state && !k->is_within)
		export_enter(x, k, time_ns, REGION_state, k->state);
	k->is_in_call = false;
}

static struct export_request *export_request_at(
	struct otf2_export *x, uint32_t process, uint64_t name, bool makes)
{
	uint64_t i;
	if (base_map_get(&x->request_of, process, name, &i))
		return &x->request[i];
	if (!makes)
		return NULL;
	if (base_grow(&x->request, &x->request_capacity, x->nr_requests + 1, sizeof *x->request) !=
			BASE_OK ||
		base_map_put(&x->request_of, process, name, x->nr_requests) != BASE_OK) {
		x->no_memory = true;
		return NULL;
	}
	return &x->request[x->nr_requests++];
}

static uint32_t export_number(int64_t n)
{
	return n < 0 || n >= EXPORT_NONE ? EXPORT_NONE : (uint32_t)n;
}

/* What a request begins with is an event in a call of no length, or in the one that goes on. */
static void export_request_begins(struct otf2_export *x, struct export_rank *k, uint64_t time_ns,
	const struct export_request *q, uint64_t op, uint32_t site)
{
	bool is_own_call = !k->is_in_call;
	if (is_own_call)
		export_call_begins(x, k, time_ns, op, site);
	if (q->kind == TRACE_mpi_send)
		EXPORT_EVENT(x, k, time_ns, MpiIsend, export_number(q->peer),
			export_comm_of(x, q->object), export_number(q->tag), q->n, q->number);
	else if (q->kind == TRACE_mpi_receive)
		EXPORT_EVENT(x, k, time_ns, MpiIrecvRequest, q->number);
	else
		EXPORT_EVENT(x, k, time_ns, NonBlockingCollectiveRequest, q->number);
	if (is_own_call && op != TRACE_MPI_Sendrecv && op != TRACE_MPI_Sendrecv_replace)
		export_call_ends(x, k, time_ns);
}

static bool export_is_template(uint64_t op)
{
	return op == TRACE_MPI_Send_init || op == TRACE_MPI_Ssend_init ||
	       op == TRACE_MPI_Rsend_init || op == TRACE_MPI_Bsend_init ||
	       op == TRACE_MPI_Recv_init;
}

/* A send, a receive or a collective operation: the call itself waits, or it is a request. */
static void export_begins(struct otf2_export *x, struct export_rank *k, uint64_t time_ns,
	const struct export_request *asked, uint64_t name, uint32_t site)
{
	if (export_comm_of(x, asked->object) == EXPORT_NONE)
		return;
	if (!name) {
		export_call_begins(x, k, time_ns, asked->op, site);
		k->own = *asked;
		if (asked->kind == TRACE_mpi_send)
			EXPORT_EVENT(x, k, time_ns, MpiSend, export_number(asked->peer),
				export_comm_of(x, asked->object), export_number(asked->tag),
				asked->n);
		else if (asked->kind == TRACE_mpi_collective) {
			k->nr_events++;
			export_keep(x, OTF2_EvtWriter_MpiCollectiveBegin(k->writer, NULL, time_ns));
		}
		return;
	}
	struct export_request *q = export_request_at(x, k->process, name, true);
	if (!q)
		return;
	*q = *asked;
	q->number = x->next_request++;
	q->is_template = export_is_template(asked->op);
	if (!q->is_template)
		export_request_begins(x, k, time_ns, q, asked->op, site);
}

static OTF2_CollectiveOp export_operation(uint64_t op)
{
	static const struct {
		uint8_t op, operation;
	} row[] = {
#define ROW(name, operation) {TRACE_MPI_##name, OTF2_COLLECTIVE_OP_##operation},
		ROW(Barrier, BARRIER) ROW(Ibarrier, BARRIER) ROW(Bcast, BCAST) ROW(
			Ibcast, BCAST) ROW(Gather, GATHER) ROW(Igather, GATHER) ROW(Gatherv,
			GATHERV) ROW(Igatherv, GATHERV) ROW(Scatter, SCATTER) ROW(Iscatter,
			SCATTER) ROW(Scatterv, SCATTERV) ROW(Iscatterv, SCATTERV) ROW(Allgather,
			ALLGATHER) ROW(Iallgather, ALLGATHER) ROW(Allgatherv,
			ALLGATHERV) ROW(Iallgatherv, ALLGATHERV) ROW(Alltoall,
			ALLTOALL) ROW(Ialltoall, ALLTOALL) ROW(Alltoallv, ALLTOALLV) ROW(Ialltoallv,
			ALLTOALLV) ROW(Alltoallw, ALLTOALLW) ROW(Ialltoallw,
			ALLTOALLW) ROW(Allreduce, ALLREDUCE) ROW(Iallreduce, ALLREDUCE) ROW(Reduce,
			REDUCE) ROW(Ireduce, REDUCE) ROW(Reduce_scatter, REDUCE_SCATTER)
			ROW(Ireduce_scatter, REDUCE_SCATTER) ROW(Scan, SCAN) ROW(Iscan, SCAN)
				ROW(Exscan, EXSCAN) ROW(Iexscan, EXSCAN) ROW(Reduce_scatter_block,
					REDUCE_SCATTER_BLOCK) ROW(Ireduce_scatter_block,
					REDUCE_SCATTER_BLOCK) ROW(Comm_free, DESTROY_HANDLE)
					ROW(Comm_dup, CREATE_HANDLE) ROW(Comm_split, CREATE_HANDLE)
						ROW(Comm_create, CREATE_HANDLE)
							ROW(Cart_create, CREATE_HANDLE)
#undef ROW
	};
	for (size_t i = 0; i < BASE_COUNT(row); i++)
		if (row[i].op == op)
			return row[i].operation;
	return OTF2_COLLECTIVE_OP_BARRIER;
}

static uint32_t export_root(int64_t root)
{
	return root < 0 ? OTF2_COLLECTIVE_ROOT_NONE : (uint32_t)root;
}

/* A request is complete: of a receive it is known by now whom it is from. */
static void export_done(struct otf2_export *x, struct export_rank *k, uint64_t time_ns,
	const struct trace_mpi_done *d)
{
	struct export_request *q =
		d->request ? export_request_at(x, k->process, d->request, false) : &k->own;
	if (!q || !q->kind)
		return;
	int64_t peer = d->peer >= 0 ? d->peer : q->peer, tag = d->tag >= 0 ? d->tag : q->tag;
	if (!d->request) { /* told before the call returns */
		k->own.peer = peer;
		k->own.tag = tag;
		k->own.n = d->n ? d->n : k->own.n;
		return;
	}
	uint32_t comm = export_comm_of(x, q->object);
	if (d->peer == TRACE_MPI_CANCELLED)
		EXPORT_EVENT(x, k, time_ns, MpiRequestCancelled, q->number);
	else if (q->kind == TRACE_mpi_send)
		EXPORT_EVENT(x, k, time_ns, MpiIsendComplete, q->number);
	else if (q->kind == TRACE_mpi_collective)
		EXPORT_EVENT(x, k, time_ns, NonBlockingCollectiveComplete, export_operation(q->op),
			comm, export_root(q->peer), q->n, q->n, q->number);
	else
		EXPORT_EVENT(x, k, time_ns, MpiIrecv, export_number(peer), comm, export_number(tag),
			d->n ? d->n : q->n, q->number);
	if (!q->is_template)
		q->kind = 0;
}

static void export_returns(struct otf2_export *x, struct export_rank *k, uint64_t time_ns)
{
	const struct export_request *q = &k->own;
	if (k->is_in_call && q->kind == TRACE_mpi_receive)
		EXPORT_EVENT(x, k, time_ns, MpiRecv, export_number(q->peer),
			export_comm_of(x, q->object), export_number(q->tag), q->n);
	else if (k->is_in_call && q->kind == TRACE_mpi_collective)
		EXPORT_EVENT(x, k, time_ns, MpiCollectiveEnd, export_operation(q->op),
			export_comm_of(x, q->object), export_root(q->peer), q->n, q->n);
	export_call_ends(x, k, time_ns);
}

static void export_state(
	struct otf2_export *x, struct export_rank *k, uint64_t time_ns, uint32_t to)
{
	if (k->is_in_call)
		return;
	if (k->state)
		export_leave(x, k, time_ns, REGION_state, k->state);
	k->state = to;
	if (to)
		export_enter(x, k, time_ns, REGION_state, to);
}

static void export_starts(struct otf2_export *x, struct export_rank *k, uint64_t time_ns,
	const struct trace_mpi_start *s)
{
	struct export_request *q = export_request_at(x, k->process, s->request, false);
	if (!q || !q->kind)
		return;
	q->number = x->next_request++;
	export_request_begins(x, k, time_ns, q, TRACE_MPI_Start, s->site);
}

static void export_ends(struct otf2_export *x, struct export_rank *k, uint64_t time_ns)
{
	export_call_ends(x, k, time_ns);
	export_state(x, k, time_ns, 0);
	EXPORT_EVENT(x, k, time_ns, ProgramEnd, 0);
}

static void export_record(void *ctx, const struct trace_record *r)
{
	struct otf2_export *x = ctx;
	struct export_rank *k = export_rank_of(x, r->stream);
	const struct trace_mpi_send *m = &r->u.mpi_send; /* (a receive is of its shape) */
	const struct trace_mpi_collective *c = &r->u.mpi_collective;
	const struct trace_mpi_wait *w = &r->u.mpi_wait;
	if (!k || !k->writer)
		return;
	switch (r->kind) {
	case TRACE_thread_begin:
		EXPORT_EVENT(x, k, r->time_ns, ProgramBegin,
			export_text(x, trace_text_of(x->defs,
					       trace_def_process(x->defs, k->process)->name)),
			0, NULL);
		break;
	case TRACE_thread_end:
		export_ends(x, k, r->time_ns);
		break;
	case TRACE_note_state:
		export_state(x, k, r->time_ns, r->u.note_state.state);
		break;
	case TRACE_mpi_send:
	case TRACE_mpi_receive:
		export_begins(x, k, r->time_ns,
			&(struct export_request){.kind = r->kind,
				.object = m->object,
				.n = m->n,
				.op = m->op,
				.peer = m->peer,
				.tag = m->tag},
			m->request, m->site);
		break;
	case TRACE_mpi_collective:
		export_begins(x, k, r->time_ns,
			&(struct export_request){.kind = r->kind,
				.object = c->object,
				.n = c->n,
				.op = c->op,
				.peer = c->root},
			c->request, c->site);
		break;
	case TRACE_mpi_wait:
		export_call_begins(x, k, r->time_ns, w->op, w->site);
		break;
	case TRACE_mpi_done:
		if (!k->is_in_call) /* a look that found it at once: its function is in the return */
			export_call_begins(x, k, r->time_ns, TRACE_MPI_Test, 0);
		export_done(x, k, r->time_ns, &r->u.mpi_done);
		break;
	case TRACE_mpi_return:
		export_returns(x, k, r->time_ns);
		break;
	case TRACE_mpi_start:
		export_starts(x, k, r->time_ns, &r->u.mpi_start);
		break;
	default:
		break;
	}
}

/* ---- passes ---------------------------------------------------------------------------------- */

static enum base_status export_pass(
	struct otf2_export *x, trace_visit_fn *visit, struct base_err *err)
{
	size_t nr;
	enum base_status s = trace_reader_rewind(x->in->reader, err);
	while (s == BASE_OK)
		s = trace_reader_visit(x->in->reader, visit, x, &nr, err);
	return s == BASE_END ? BASE_OK : s;
}

static enum base_status export_write_some(
	struct otf2_export *x, size_t first, size_t end, struct base_err *err)
{
	for (size_t i = first; i < end; i++) {
		x->rank[i].writer = OTF2_Archive_GetEvtWriter(x->archive, i);
		if (!x->rank[i].writer)
			return base_fail(err, BASE_ERR_IO, "libotf2 cannot write events");
	}
	enum base_status s = export_pass(x, export_record, err);
	for (size_t i = first; i < end; i++) {
		struct export_rank *k = &x->rank[i];
		export_call_ends(x, k, x->last_ns);
		export_state(x, k, x->last_ns, 0);
		export_keep(x, OTF2_Archive_CloseEvtWriter(x->archive, k->writer));
		k->writer = NULL;
	}
	base_map_fini(&x->request_of); /* of these ranks */
	x->nr_requests = 0;
	return s;
}

/* ---- definitions ----------------------------------------------------------------------------- */

static void export_write_text(
	struct otf2_export *x, OTF2_GlobalDefWriter *d, uint32_t at, const char *text)
{
	struct base_str clean = {0};
	format_clean_add(&clean, text);
	x->no_memory |= clean.failed;
	export_keep(x, OTF2_GlobalDefWriter_WriteString(d, at, base_str_text(&clean)));
	base_str_fini(&clean);
}

/* Writes the regions; without a writer only their texts, which have to be written before them. */
static void export_write_regions(struct otf2_export *x, OTF2_GlobalDefWriter *d)
{
	static const char *const op[TRACE_MPI_NR] = {
#define X(name, text) text,
		TRACE_MPI_OPS(X)
#undef X
	};
	uint32_t none = export_text(x, "");
	for (uint32_t i = 0; i < x->nr_regions; i++) {
		uint32_t id = (uint32_t)x->region[i], kind = (uint32_t)(x->region[i] >> 32);
		uint32_t site = kind == REGION_state ? trace_def_state(x->defs, id)->site : id;
		const struct trace_symbol *symbol =
			trace_def_symbol(x->defs, kind == REGION_op ? 0 : site);
		const char *name =
			kind == REGION_op ? op[id]
			: kind == REGION_state
				? trace_text_of(x->defs, trace_def_state(x->defs, id)->name)
				: trace_text_of(x->defs, symbol->function);
		uint32_t text = export_text(x, name),
			 file = export_text(x, trace_text_of(x->defs, symbol->file));
		if (d)
			export_keep(x, OTF2_GlobalDefWriter_WriteRegion(d, i, text, text, none,
					       OTF2_REGION_ROLE_FUNCTION,
					       kind == REGION_op ? OTF2_PARADIGM_MPI
								 : OTF2_PARADIGM_COMPILER,
					       OTF2_REGION_FLAG_NONE, file, (uint32_t)symbol->line,
					       OTF2_UNDEFINED_UINT32));
	}
}

static uint32_t export_comm_text(struct otf2_export *x, const struct export_comm *c)
{
	return export_text(x, trace_text_of(x->defs, trace_def_object(x->defs, c->object)->name));
}

static uint32_t export_host_text(struct otf2_export *x, uint32_t i)
{
	const char *of_all = trace_reader_info(x->in->reader)->host;
	return export_text(
		x, i ? trace_text_of(x->defs, trace_def_host(x->defs, i)->name) : of_all);
}

/* Of a rank that has no trace nothing is known: its place in a group is nobody's. */
static void export_write_comms(struct otf2_export *x, OTF2_GlobalDefWriter *d)
{
	uint32_t none = export_text(x, "");
	size_t most = x->nr_ranks;
	for (size_t i = 0; i < x->nr_comms; i++)
		most = x->comm[i].size > most ? x->comm[i].size : most;
	uint64_t *member = base_alloc((most + 1) * sizeof *member);
	x->no_memory |= !member;
	for (size_t i = 0; member && i < x->nr_ranks; i++)
		member[i] = i;
	if (!member)
		return;
	export_keep(
		x, OTF2_GlobalDefWriter_WriteGroup(d, 0, none, OTF2_GROUP_TYPE_COMM_LOCATIONS,
			   OTF2_PARADIGM_MPI, OTF2_GROUP_FLAG_NONE, (uint32_t)x->nr_ranks, member));
	for (uint32_t i = 0; i < x->nr_comms; i++) {
		const struct export_comm *c = &x->comm[i];
		for (uint32_t n = 0; n < c->size; n++)
			member[n] = c->rank[n] == EXPORT_NONE ? x->nr_ranks : c->rank[n];
		export_keep(x,
			OTF2_GlobalDefWriter_WriteGroup(d, 1 + i, none, OTF2_GROUP_TYPE_COMM_GROUP,
				OTF2_PARADIGM_MPI, OTF2_GROUP_FLAG_NONE, c->size, member));
		export_keep(x, OTF2_GlobalDefWriter_WriteComm(d, i, export_comm_text(x, c), 1 + i,
				       OTF2_UNDEFINED_COMM, OTF2_COMM_FLAG_NONE));
	}
	base_free(member);
}

static uint32_t export_host_of(const struct otf2_export *x, uint32_t stream)
{
	for (uint32_t i = 1; i < x->defs->nr_hosts; i++)
		if (stream <= x->defs->hosts[i].last_stream || !x->defs->hosts[i].last_stream)
			return i;
	return 0;
}

/* "app rank 3" */
static void export_write_rank_text(
	struct otf2_export *x, OTF2_GlobalDefWriter *d, uint32_t i, uint32_t text)
{
	const struct export_rank *k = &x->rank[i];
	struct base_str name = {0};
	base_str_addf(&name, "%s rank %u",
		trace_text_of(x->defs, trace_def_process(x->defs, k->process)->name),
		k->world_rank);
	x->no_memory |= name.failed;
	export_write_text(x, d, text, base_str_text(&name));
	base_str_fini(&name);
}

static void export_write_rank(
	struct otf2_export *x, OTF2_GlobalDefWriter *d, uint32_t i, uint32_t text, uint32_t thread)
{
	const struct export_rank *k = &x->rank[i];
	export_keep(x, OTF2_GlobalDefWriter_WriteLocationGroup(d, i, text,
			       OTF2_LOCATION_GROUP_TYPE_PROCESS, export_host_of(x, k->stream),
			       OTF2_UNDEFINED_LOCATION_GROUP));
	export_keep(x, OTF2_GlobalDefWriter_WriteLocation(
			       d, i, thread, OTF2_LOCATION_TYPE_CPU_THREAD, k->nr_events, i));
}

static enum base_status export_definitions(struct otf2_export *x, struct base_err *err)
{
	OTF2_GlobalDefWriter *d = OTF2_Archive_GetGlobalDefWriter(x->archive);
	const struct trace_info *info = trace_reader_info(x->in->reader);
	if (!d)
		return base_fail(err, BASE_ERR_IO, "libotf2 cannot write definitions");
	uint32_t node = export_text(x, "node"), machine = export_text(x, "machine"),
		 thread = export_text(x, "Master thread"), mpi = export_text(x, "MPI");
	export_write_regions(x, NULL);
	for (size_t i = 0; i < x->nr_comms; i++)
		export_comm_text(x, &x->comm[i]);
	for (uint32_t i = 0; i < x->defs->nr_hosts || !i; i++)
		export_host_text(x, i);
	for (uint32_t i = 0; i < x->nr_texts; i++)
		export_write_text(x, d, i, x->text[i]);
	for (uint32_t i = 0; i < x->nr_ranks; i++)
		export_write_rank_text(x, d, i, (uint32_t)x->nr_texts + i);
	export_keep(x, OTF2_GlobalDefWriter_WriteClockProperties(
			       d, 1000000000, 0, x->last_ns + 1, info->origin_unix_ns));
	export_keep(x, OTF2_GlobalDefWriter_WriteParadigm(
			       d, OTF2_PARADIGM_MPI, mpi, OTF2_PARADIGM_CLASS_PROCESS));
	export_write_regions(x, d);
	for (uint32_t i = 0; i < x->defs->nr_hosts || !i; i++)
		export_keep(
			x, OTF2_GlobalDefWriter_WriteSystemTreeNode(d, i, export_host_text(x, i),
				   i || x->defs->nr_hosts < 2 ? node : machine,
				   i ? 0 : OTF2_UNDEFINED_SYSTEM_TREE_NODE));
	for (uint32_t i = 0; i < x->nr_ranks; i++)
		export_write_rank(x, d, i, (uint32_t)x->nr_texts + i, thread);
	export_write_comms(x, d);
	export_keep(x, OTF2_Archive_CloseGlobalDefWriter(x->archive, d));
	return BASE_OK;
}

/* Each location has a file of its own definitions, or readers complain; there are none. */
static enum base_status export_own_definitions(struct otf2_export *x, struct base_err *err)
{
	export_keep(x, OTF2_Archive_OpenDefFiles(x->archive));
	for (size_t i = 0; i < x->nr_ranks; i++) {
		OTF2_DefWriter *d = OTF2_Archive_GetDefWriter(x->archive, i);
		if (!d)
			return base_fail(err, BASE_ERR_IO, "libotf2 cannot write definitions");
		export_keep(x, OTF2_Archive_CloseDefWriter(x->archive, d));
	}
	export_keep(x, OTF2_Archive_CloseDefFiles(x->archive));
	return BASE_OK;
}

/* ---- all of it ------------------------------------------------------------------------------- */

static OTF2_FlushType export_flush(
	void *ctx, OTF2_FileType type, OTF2_LocationRef location, void *caller, bool final)
{
	(void)ctx, (void)type, (void)location, (void)caller, (void) final;
	return OTF2_FLUSH;
}

/* (Messages of ours say what is wrong.) */
static OTF2_ErrorCode export_complaint(void *ctx, const char *file, uint64_t line,
	const char *function, OTF2_ErrorCode code, const char *format, va_list args)
{
	(void)ctx, (void)file, (void)line, (void)function, (void)format, (void)args;
	return code;
}

static enum base_status export_write(struct otf2_export *x, const char *path, struct base_err *err)
{
	static const OTF2_FlushCallbacks flush = {.otf2_pre_flush = export_flush};
	OTF2_ErrorCallback before = OTF2_Error_RegisterCallback(export_complaint, NULL);
	enum base_status s = BASE_OK;
	x->archive = OTF2_Archive_Open(path, "traces", OTF2_FILEMODE_WRITE, EVENTS_CHUNK,
		DEFINITIONS_CHUNK, OTF2_SUBSTRATE_POSIX, OTF2_COMPRESSION_NONE);
	if (!x->archive)
		s = base_fail(err, BASE_ERR_IO, "libotf2 cannot make an archive in %s", path);
	if (s == BASE_OK) {
		export_keep(x, OTF2_Archive_SetFlushCallbacks(x->archive, &flush, NULL));
		export_keep(x, OTF2_Archive_SetSerialCollectiveCallbacks(x->archive));
		export_keep(x, OTF2_Archive_OpenEvtFiles(x->archive));
	}
	for (size_t i = 0; s == BASE_OK && i < x->nr_ranks; i += LOCATIONS_AT_ONCE) {
		size_t end = i + LOCATIONS_AT_ONCE;
		s = export_write_some(x, i, end < x->nr_ranks ? end : x->nr_ranks, err);
	}
	if (x->archive)
		export_keep(x, OTF2_Archive_CloseEvtFiles(x->archive));
	if (s == BASE_OK)
		s = export_own_definitions(x, err);
	if (s == BASE_OK)
		s = export_definitions(x, err);
	if (x->archive)
		export_keep(x, OTF2_Archive_Close(x->archive));
	OTF2_Error_RegisterCallback(before, NULL);
	if (s == BASE_OK && x->no_memory)
		s = format_no_memory(err);
	if (s == BASE_OK && x->code != OTF2_SUCCESS)
		s = base_fail(err, BASE_ERR_IO, "libotf2: %s", OTF2_Error_GetDescription(x->code));
	return s;
}

static void export_fini(struct otf2_export *x)
{
	for (size_t i = 0; i < x->nr_comms; i++)
		base_free(x->comm[i].rank);
	struct base_map *maps[] = {
		&x->rank_of, &x->comm_of, &x->request_of, &x->text_of, &x->region_of};
	for (size_t i = 0; i < BASE_COUNT(maps); i++)
		base_map_fini(maps[i]);
	void *owned[] = {x->rank, x->comm, x->request, x->text, x->region};
	for (size_t i = 0; i < BASE_COUNT(owned); i++)
		base_free(owned[i]);
}

enum base_status format_export_otf2(const struct format_input *in,
	const struct format_options *opts, const struct format_sink *sink, struct base_err *err)
{
	struct otf2_export x = {.in = in, .defs = trace_reader_defs(in->reader), .err = err};
	(void)opts;
	enum base_status s = export_pass(&x, export_look, err);
	if (s == BASE_OK && x.no_memory)
		s = format_no_memory(err);
	if (s == BASE_OK && !x.nr_ranks)
		s = base_fail(err, BASE_ERR_NOTFOUND,
			"no rank of MPI is in the trace, and OTF2 here is of nothing else");
	if (s == BASE_OK)
		s = export_write(&x, sink->path, err);
	if (s == BASE_OK)
		format_note_count(in->notes, x.nr_left_out,
			"%s {record of other things than MPI is|records of other things than MPI "
			"(processors, samples, locks) are} left out");
	export_fini(&x);
	return s;
}

#else

enum base_status format_export_otf2(const struct format_input *in,
	const struct format_options *opts, const struct format_sink *sink, struct base_err *err)
{
	(void)in, (void)opts, (void)sink;
	return base_fail(err, BASE_ERR_ENV,
		"this longpole was built without libotf2: install it (Debian: libotf2-trace-dev) "
		"and build again");
}

#endif
