/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cdat_protocol.c - what a request causes, by the rules of the configured protocol.
 *
 * Directory (seed 004, section 5 and appendix C): a request goes to the home. An uncached line is
 * answered from memory; a shared one, too, after the copies were invalidated when it is to be
 * stored to. A line that is private elsewhere is recalled from its owner, who may have replaced it
 * silently (recall_nack_inv), have it clean (recall_nack_shar), or have it dirty: then it goes
 * straight to the requester (direct) or back through the home. An owner in the requester's own node
 * answers on the node's bus before the home does, and tells the home (update_data).
 *
 * Snooping: a request is seen by all in one order; a dirty owner answers, else memory; copies are
 * invalidated by the request itself.
 */
#include "memory/cdat/cdat_private.h"

#include <string.h>

struct request {
	struct memory_cdat *c;
	struct cdat_line *line;
	uint64_t number; /* of the line */
	uint32_t processor, unit, node, home;
	unsigned code;
	uint32_t version; /* of the data that the requester gets */
};

static enum memory_cdat_status status_of(const struct cdat_line *l)
{
	if (l->owner)
		return l->dirty ? MEMORY_CDAT_DIRTY : MEMORY_CDAT_EXCLUSIVE;
	return l->state == MEMORY_CDAT_SHARED ? MEMORY_CDAT_SHARED : MEMORY_CDAT_IDLE;
}

static bool may_hold(const struct memory_cdat *c, const struct cdat_line *l, uint32_t unit)
{
	return l->owner == unit + 1 || memory_sets_has(&c->sets, l->sharers, unit);
}

/* Messages to and from a unit are those of its first processor. */
static int32_t speaker(const struct memory_cdat *c, uint32_t unit)
{
	return (int32_t)c->unit[unit].first;
}

/* ---- telling --------------------------------------------------------------------------------- */

enum { PRESENT_NONE, PRESENT_LOCAL, PRESENT_HOME, PRESENT_REMOTE };

struct copies {
	unsigned where; /* the farthest */
	uint32_t nr;
	bool elsewhere; /* not all in the requester's node */
};

/* Unit by unit; and the sharing list for the traces. */
static struct copies list_copies(const struct request *r)
{
	struct memory_cdat *c = r->c;
	struct copies found = {.where = PRESENT_NONE};
	memset(c->bits, 0, (c->nr_processors + 63) / 64 * sizeof *c->bits);
	if (!r->line->owner && !r->line->sharers)
		return found;
	for (uint32_t i = 0; i < c->nr_units; i++) {
		const struct cdat_unit *u = &c->unit[i];
		if (!may_hold(c, r->line, i))
			continue;
		unsigned where = u->node == r->node   ? PRESENT_LOCAL
				 : u->node == r->home ? PRESENT_HOME
						      : PRESENT_REMOTE;
		for (uint32_t p = u->first; p < u->first + u->nr; p++)
			c->bits[p / 64] |= UINT64_C(1) << p % 64;
		found.where = where > found.where ? where : found.where;
		found.elsewhere |= where != PRESENT_LOCAL;
		found.nr++;
	}
	return found;
}

/* The same of sets that are masks; a cache that is not to be counted has no number. */
static inline struct copies count_copies(const struct request *r)
{
	const struct memory_cdat *c = r->c;
	uint32_t owner = r->line->owner, all = r->line->sharers;
	all |= owner ? UINT32_C(1) << (owner - 1) : 0;
	uint32_t others = all & ~c->units_of[r->node];
	unsigned where = !all ? PRESENT_NONE : PRESENT_LOCAL;
	if (others)
		where = others & ~c->units_of[r->home] ? PRESENT_REMOTE : PRESENT_HOME;
	return (struct copies){where, others ? memory_sets_size(&c->sets, all) : 0, others != 0};
}

/* Counts of the state table. */
static inline void note_states(const struct request *r, unsigned type, uint64_t nr)
{
	struct memory_cdat *c = r->c;
	struct memory_cdat_state_table *t = &c->open->states;
	struct copies found = c->sets.wide || c->options.general ? list_copies(r) : count_copies(r);
	if (status_of(r->line) == MEMORY_CDAT_SHARED && found.elsewhere) {
		t->remote_shared += nr;
		t->remote_sharers += nr * found.nr;
	}
	t->count[type][r->home != r->node][found.where][status_of(r->line) - 1] += nr;
}

static int32_t requester(const struct request *r)
{
	return r->processor == UINT32_MAX ? -1 - (int32_t)r->node : (int32_t)r->processor;
}

static void cdat_protocol_tell(const struct request *r, unsigned code, int32_t from, int32_t to)
{
	struct memory_cdat *c = r->c;
	c->open->transactions[code]++;
	if (!c->options.detailed)
		return;
	struct memory_cdat_transaction t = {.clock = c->clock,
		.line = r->number << c->line_shift,
		.code = code,
		.requester = requester(r),
		.from = from,
		.to = to,
		.bank = (uint32_t)(r->number % c->config.banks),
		.home = r->home};
	c->options.detailed(c->options.trace_ctx, &t);
}

/* A processor's request or return: also in the general trace, with the line's state. */
static void tell_general(const struct request *r, unsigned code, unsigned type, int32_t processor)
{
	struct memory_cdat *c = r->c;
	note_states(r, type, 1);
	if (c->options.general) {
		struct memory_cdat_transaction t = {.clock = c->clock,
			.line = r->number << c->line_shift,
			.code = code,
			.requester = processor,
			.from = processor,
			.bank = (uint32_t)(r->number % c->config.banks),
			.home = r->home,
			.status = status_of(r->line),
			.sharers = c->bits};
		c->options.general(c->options.trace_ctx, processor, &t);
	}
	cdat_protocol_tell(r, code, processor, 0);
}

static void tell_request(const struct request *r, int32_t processor)
{
	r->c->open->requests++;
	tell_general(r, r->code, r->code - 1, processor);
}

/* Transactions one after another; the last one to say it knows best. */
static void critical(const struct request *r, uint32_t transactions)
{
	r->c->outcome->critical = transactions;
}

static void from_memory(const struct request *r)
{
	r->c->outcome->supplier =
		r->home == r->node ? MEMORY_CDAT_FROM_LOCAL_MEMORY : MEMORY_CDAT_FROM_REMOTE_MEMORY;
}

static void from_cache(const struct request *r, uint32_t owner)
{
	r->c->outcome->supplier = r->c->unit[owner].node == r->node ? MEMORY_CDAT_FROM_LOCAL_CACHE
								    : MEMORY_CDAT_FROM_REMOTE_CACHE;
	r->c->outcome->owner = speaker(r->c, owner);
}

/* ---- changing the line's state --------------------------------------------------------------- */

static void drop_interconnect(const struct request *r)
{
	struct memory_cdat *c = r->c;
	uint32_t version;
	for (uint32_t nodes = r->line->interconnect; nodes; nodes &= nodes - 1)
		(void)memory_cdat_cache_drop(
			&c->interconnect[__builtin_ctz(nodes)], r->number, &version);
	r->line->interconnect = 0;
}

static enum base_status add_sharer(const struct request *r, uint32_t unit)
{
	r->line->state = MEMORY_CDAT_SHARED;
	return memory_sets_add(&r->c->sets, &r->line->sharers, unit);
}

static void make_private(const struct request *r, bool dirty)
{
	drop_interconnect(r);
	r->line->sharers = 0;
	r->line->owner = (uint16_t)(r->unit + 1);
	r->line->state = MEMORY_CDAT_EXCLUSIVE;
	r->line->dirty = dirty;
}

/* The owner's copy becomes one of several; its data reached memory if it was dirty. */
static enum base_status make_shared(const struct request *r, uint32_t owner)
{
	struct cdat_line *l = r->line;
	if (l->dirty)
		l->memory_version = l->version;
	memory_cdat_clean(r->c, owner, r->number);
	l->dirty = false;
	l->owner = 0;
	return add_sharer(r, owner);
}

static void respond(struct request *r, unsigned code)
{
	cdat_protocol_tell(r, code, 0, (int32_t)r->processor);
	from_memory(r);
	r->version = r->line->memory_version; /* what memory has, right or not */
}

/* ---- invalidations --------------------------------------------------------------------------- */

/* All copies but the requester's, each asked and answering. How many there were. */
static uint32_t invalidate_others(const struct request *r, bool acknowledged)
{
	struct memory_cdat *c = r->c;
	uint32_t nr = 0;
	if (!r->line->sharers && !r->line->owner)
		return 0;
	for (uint32_t u = 0; u < c->nr_units; u++) {
		if (u == r->unit || !may_hold(c, r->line, u))
			continue;
		nr++;
		if (acknowledged) {
			cdat_protocol_tell(r, MEMORY_CDAT_inv, 0, speaker(c, u));
			cdat_protocol_tell(r, MEMORY_CDAT_inv_done, speaker(c, u), 0);
		}
		memory_cdat_invalidate(c, u, r->number);
	}
	return nr;
}

/* ---- directory ------------------------------------------------------------------------------- */

static bool is_store(const struct request *r)
{
	return r->code == MEMORY_CDAT_read_priv_own;
}

static bool may_load_exclusive(const struct request *r)
{
	const struct memory_cdat_protocol *p = r->c->protocol;
	return r->code == MEMORY_CDAT_read_shar_or_priv && p->exclusive && !r->line->interconnect &&
	       (r->home == r->node || p->remote_exclusive);
}

/* Nobody has it: memory answers. */
static enum base_status serve_idle(struct request *r)
{
	r->line->owner = 0;
	r->line->sharers = 0;
	r->line->dirty = false;
	if (is_store(r) || may_load_exclusive(r)) {
		respond(r, MEMORY_CDAT_data_priv);
		make_private(r, is_store(r));
		return BASE_OK;
	}
	respond(r, MEMORY_CDAT_data_shar);
	return add_sharer(r, r->unit);
}

static enum base_status serve_shared(struct request *r)
{
	if (!is_store(r)) {
		respond(r, MEMORY_CDAT_data_shar);
		critical(r, 2);
		return add_sharer(r, r->unit);
	}
	uint32_t others = invalidate_others(r, true);
	respond(r, MEMORY_CDAT_data_priv);
	make_private(r, true);
	critical(r, others ? 4 : 2);
	return BASE_OK;
}

/* A store takes it from its owner, and, when an owned line has been loaded by others, from those.
 */
static void take_from_owner(struct request *r)
{
	if (invalidate_others(r, r->line->sharers != 0) > 1)
		critical(r, 4);
	make_private(r, true);
}

/* The owner stays the one who answers, but must ask before it stores. */
static enum base_status lend(struct request *r, uint32_t owner)
{
	memory_cdat_clean(r->c, owner, r->number);
	return add_sharer(r, r->unit);
}

/* The owner is in the requester's node and has it: the bus answers. */
static enum base_status serve_by_bus(struct request *r, uint32_t owner)
{
	int32_t from = speaker(r->c, owner), to = (int32_t)r->processor;
	from_cache(r, owner);
	critical(r, 2);
	if (is_store(r)) {
		cdat_protocol_tell(r, MEMORY_CDAT_c2c_data_priv_own, from, to);
		take_from_owner(r);
		return BASE_OK;
	}
	cdat_protocol_tell(r, MEMORY_CDAT_c2c_data_shar, from, to);
	if (r->line->dirty && r->c->protocol->owned)
		return lend(r, owner);
	if (r->line->dirty)
		cdat_protocol_tell(r, MEMORY_CDAT_update_data, from, 0);
	enum base_status s = make_shared(r, owner);
	return s == BASE_OK ? add_sharer(r, r->unit) : s;
}

/* Dirty in another node. */
static enum base_status serve_dirty(struct request *r, uint32_t owner)
{
	int32_t from = speaker(r->c, owner), to = (int32_t)r->processor;
	bool direct = r->c->protocol->direct;
	from_cache(r, owner);
	critical(r, direct ? 3 : 4);
	if (is_store(r)) {
		cdat_protocol_tell(r,
			direct ? MEMORY_CDAT_c2c_data_priv_own : MEMORY_CDAT_recall_data, from,
			direct ? to : 0);
		if (direct)
			cdat_protocol_tell(r, MEMORY_CDAT_recall_c2c_done, from, 0);
		else
			cdat_protocol_tell(r, MEMORY_CDAT_data_priv, 0, to);
		if (!direct)
			r->line->memory_version = r->line->version;
		take_from_owner(r);
		return BASE_OK;
	}
	cdat_protocol_tell(r, direct ? MEMORY_CDAT_c2c_data_shar : MEMORY_CDAT_recall_data, from,
		direct ? to : 0);
	if (direct)
		cdat_protocol_tell(r, MEMORY_CDAT_recall_c2c_data, from, 0);
	else
		cdat_protocol_tell(r, MEMORY_CDAT_data_shar, 0, to);
	if (r->c->protocol->owned)
		return lend(r, owner);
	enum base_status s = make_shared(r, owner);
	return s == BASE_OK ? add_sharer(r, r->unit) : s;
}

/* Private at another processor, as far as the home knows. */
static enum base_status serve_private(struct request *r, uint32_t owner)
{
	struct memory_cdat *c = r->c;
	bool there = memory_cdat_holds(c, owner, r->number, &r->version);
	static const unsigned recall[] = {[MEMORY_CDAT_read_shar] = MEMORY_CDAT_recall_shar,
		[MEMORY_CDAT_read_shar_or_priv] = MEMORY_CDAT_recall_shar_or_priv,
		[MEMORY_CDAT_read_priv_own] = MEMORY_CDAT_recall_priv_own};
	enum base_status s = BASE_OK;
	if (there && c->unit[owner].node == r->node)
		return serve_by_bus(r, owner);
	cdat_protocol_tell(r, recall[r->code], 0, speaker(c, owner));
	if (there && r->line->dirty)
		return serve_dirty(r, owner);
	cdat_protocol_tell(r, there ? MEMORY_CDAT_recall_nack_shar : MEMORY_CDAT_recall_nack_inv,
		speaker(c, owner), 0);
	if (!there) {
		s = serve_idle(r);
	} else if (is_store(r)) {
		memory_cdat_invalidate(c, owner, r->number);
		respond(r, MEMORY_CDAT_data_priv);
		make_private(r, true);
	} else {
		s = make_shared(r, owner);
		respond(r, MEMORY_CDAT_data_shar);
		if (s == BASE_OK)
			s = add_sharer(r, r->unit);
	}
	critical(r, 4);
	return s;
}

static enum base_status serve_directory(struct request *r)
{
	uint32_t owner = r->line->owner;
	critical(r, 2);
	if (owner && owner != r->unit + 1)
		return serve_private(r, owner - 1);
	if (!owner && r->line->state == MEMORY_CDAT_SHARED)
		return serve_shared(r);
	return serve_idle(r); /* or the requester has dropped it without a word */
}

/* ---- snooping -------------------------------------------------------------------------------- */

/* The caches that still have a copy; on a bus silence is seen at once. */
static enum base_status forget_dropped(struct request *r)
{
	struct memory_cdat *c = r->c;
	uint32_t version;
	enum base_status s = BASE_OK;
	uint32_t owner = r->line->owner;
	if (owner && !memory_cdat_holds(c, owner - 1, r->number, &version))
		r->line->owner = 0;
	for (uint32_t u = 0; r->line->sharers && u < c->nr_units && s == BASE_OK; u++)
		if (memory_sets_has(&c->sets, r->line->sharers, u) &&
			!memory_cdat_holds(c, u, r->number, &version))
			s = memory_sets_remove(&c->sets, &r->line->sharers, u);
	r->line->state = r->line->sharers ? MEMORY_CDAT_SHARED
			 : r->line->owner ? MEMORY_CDAT_EXCLUSIVE
					  : MEMORY_CDAT_IDLE;
	return s;
}

static enum base_status snoop_load_from_owner(struct request *r, uint32_t owner)
{
	struct memory_cdat *c = r->c;
	struct cdat_line *l = r->line;
	int32_t from = speaker(r->c, owner), to = (int32_t)r->processor;
	enum base_status s;
	(void)memory_cdat_holds(c, owner, r->number, &r->version);
	if (!l->dirty) {
		s = make_shared(r, owner);
		respond(r, MEMORY_CDAT_data_shar);
	} else {
		from_cache(r, owner);
		cdat_protocol_tell(r, MEMORY_CDAT_c2c_data_shar, from, to);
		if (c->protocol->owned) {
			memory_cdat_clean(c, owner, r->number);
			s = BASE_OK;
		} else {
			cdat_protocol_tell(r, MEMORY_CDAT_update_data, from, 0);
			s = make_shared(r, owner);
		}
	}
	return s == BASE_OK ? add_sharer(r, r->unit) : s;
}

static enum base_status serve_snooping(struct request *r)
{
	enum base_status s = forget_dropped(r);
	uint32_t owner = r->line->owner;
	critical(r, 2);
	if (s != BASE_OK)
		return s;
	if (!is_store(r)) {
		if (owner)
			return snoop_load_from_owner(r, owner - 1);
		return r->line->state == MEMORY_CDAT_SHARED ? serve_shared(r) : serve_idle(r);
	}
	if (owner && r->line->dirty) {
		(void)memory_cdat_holds(r->c, owner - 1, r->number, &r->version);
		from_cache(r, owner - 1);
		cdat_protocol_tell(r, MEMORY_CDAT_c2c_data_priv_own, speaker(r->c, owner - 1),
			(int32_t)r->processor);
	} else {
		respond(r, MEMORY_CDAT_data_priv);
	}
	(void)invalidate_others(r, false);
	make_private(r, true);
	return BASE_OK;
}

/* ---- requests -------------------------------------------------------------------------------- */

static enum base_status begin_request(struct memory_cdat *c, uint32_t processor, uint64_t line,
	unsigned code, struct request *ret)
{
	uint32_t node = c->processor[processor].node;
	*ret = (struct request){.c = c,
		.number = line,
		.processor = processor,
		.unit = c->processor[processor].unit,
		.node = node,
		.code = code};
	ret->line = memory_cdat_line(c, node, line, code >= MEMORY_CDAT_read_priv_own, &ret->home);
	if (ret->line)
		return BASE_OK;
	return c->used_bytes + CHUNK_BYTES > c->options.memory_limit_bytes ? BASE_ERR_LIMIT
									   : BASE_ERR_NOMEM;
}

/* A clean copy for the node, when the home is elsewhere. */
static void keep_in_interconnect(const struct request *r)
{
	struct memory_cdat *c = r->c;
	uint64_t victim;
	uint32_t ignored, home;
	struct cdat_cache *k = c->interconnect ? &c->interconnect[r->node] : NULL;
	if (!k || r->home == r->node || r->line->owner || cdat_has(k, r->number))
		return;
	memory_cdat_cache_put(c, k, r->number, r->version, &victim, &ignored);
	r->line->interconnect |= UINT32_C(1) << r->node;
	if (victim == UINT64_MAX)
		return;
	struct cdat_line *l = memory_cdat_line(c, r->node, victim, false, &home);
	if (l)
		l->interconnect &= ~(UINT32_C(1) << r->node);
}

static bool in_interconnect(struct request *r)
{
	struct memory_cdat *c = r->c;
	struct cdat_cache *k = c->interconnect ? &c->interconnect[r->node] : NULL;
	uint32_t way = k && !r->line->owner ? cdat_find(k, r->number) : 0;
	if (!k || r->line->owner || way >= k->ways)
		return false;
	r->version = k->version ? (k->version + (cdat_set(k, r->number) - k->way))[way] : 0;
	memory_cdat_cache_use(k, r->number, way);
	c->outcome->supplier = MEMORY_CDAT_FROM_LOCAL_CACHE;
	c->open->flow[r->code == MEMORY_CDAT_read_shar ? MEMORY_CDAT_INSTRUCTIONS
						       : MEMORY_CDAT_DATA]
		.interconnect_hits++;
	return true;
}

static enum base_status serve(struct request *r)
{
	return r->c->protocol->network == MEMORY_CDAT_DIRECTORY ? serve_directory(r)
								: serve_snooping(r);
}

/* ---- the monitor ----------------------------------------------------------------------------- */

/* What is wrong with a copy in a cache of the unit; NULL: nothing. */
static const char *part_fault(const struct memory_cdat *c, const struct cdat_line *l, uint32_t unit,
	const struct cdat_cache *k, uint64_t part)
{
	uint32_t way = cdat_find(k, part);
	if (way >= k->ways)
		return NULL;
	const uint64_t *w = cdat_set(k, part);
	if (!may_hold(c, l, unit))
		return "has a copy that the directory does not know of";
	if ((k->version + (w - k->way))[way] != l->version)
		return "has a stale copy";
	if (l->state == MEMORY_CDAT_EXCLUSIVE && l->owner != unit + 1)
		return "has a copy of a line that is private elsewhere";
	if (w[way] & CDAT_MAY_STORE &&
		(l->owner != unit + 1 || !l->dirty || l->state != MEMORY_CDAT_EXCLUSIVE))
		return "would store without asking";
	return NULL;
}

static const char *copy_fault(const struct memory_cdat *c, const struct cdat_line *l, uint32_t unit,
	const struct cdat_cache *k, uint64_t line)
{
	const char *fault = NULL;
	uint64_t nr = 0;
	for (uint64_t i = 0; k->ways && i < cdat_nr_parts(k) && !fault; i++) {
		uint64_t part = (line << k->part_shift) + i;
		fault = part_fault(c, l, unit, k, part);
		nr += cdat_has(k, part);
	}
	return fault                                       ? fault
	       : k->is_last && nr && nr < cdat_nr_parts(k) ? "has only parts of a line"
							   : NULL;
}

static bool may_store_some(const struct cdat_cache *k, uint64_t line)
{
	bool some = false;
	for (uint64_t i = 0; i < cdat_nr_parts(k); i++) {
		uint64_t part = (line << k->part_shift) + i;
		uint32_t way = cdat_find(k, part);
		some |= way < k->ways && cdat_set(k, part)[way] & CDAT_MAY_STORE;
	}
	return some;
}

/* Inside of a unit: a cache that may store without asking is alone, and none has what an inclusive
 * last level has not. */
static const char *unit_fault(
	const struct memory_cdat *c, const struct cdat_unit *u, uint64_t line, uint32_t *ret_at)
{
	uint32_t nr = 0, alone = 0, version;
	for (uint32_t p = u->first; p < u->first + u->nr; p++) {
		bool has = memory_cdat_holds_alone(&c->processor[p], line, &version);
		*ret_at = has ? p : *ret_at;
		nr += has;
		alone += may_store_some(&c->processor[p].data, line);
	}
	if (alone && nr > 1)
		return "has a copy of a line that another one beside it would store to without "
		       "asking";
	if (nr && u->third.ways && c->config.inclusive &&
		!memory_cdat_cache_has(&u->third, line, &version))
		return "has a copy that the inclusive last level has not";
	return NULL;
}

/* Does everybody agree on this line? */
static enum base_status verify(struct memory_cdat *c, uint64_t line, uint32_t node)
{
	uint32_t home;
	const struct cdat_line *l = memory_cdat_line(c, node, line, false, &home);
	const char *fault = NULL;
	uint32_t at = 0;
	if (!l)
		return BASE_ERR_NOMEM;
	bool replicated = memory_cdat_is_replicated(c, line);
	c->result.checks++;
	for (uint32_t i = 0; i < c->nr_units && !fault; i++) {
		const struct cdat_unit *u = &c->unit[i];
		/* Copies of replicated code belong to their own node's entry. */
		if (replicated && u->node != node)
			continue;
		fault = unit_fault(c, u, line, &at);
		for (uint32_t p = u->first; p < u->first + u->nr && !fault; p++) {
			const struct cdat_processor *k = &c->processor[p];
			at = p;
			fault = copy_fault(c, l, i, &k->data, line);
			fault = fault ? fault : copy_fault(c, l, i, &k->code, line);
			fault = fault ? fault : copy_fault(c, l, i, &k->second, line);
		}
		fault = fault ? fault : copy_fault(c, l, i, &u->third, line);
	}
	if (!fault && !l->dirty && l->memory_version != l->version)
		fault = "is the last to have held a line that memory has not";
	if (!fault)
		return BASE_OK;
	return base_fail(c->err, BASE_ERR_CORRUPT, "%s, clock %llu, line 0x%llx: processor %u %s",
		c->protocol->name, (unsigned long long)c->clock,
		(unsigned long long)line << c->line_shift, at, fault);
}

static enum base_status finish_request(struct request *r)
{
	struct memory_cdat *c = r->c;
	bool missed = c->outcome->supplier >= MEMORY_CDAT_FROM_LOCAL_MEMORY;
	bool remote = c->outcome->supplier >= MEMORY_CDAT_FROM_REMOTE_MEMORY;
	c->open->critical += c->outcome->critical;
	if (c->config.migrate_after && missed && (remote || r->home == r->node))
		memory_cdat_count_miss(c, r->node, r->number);
	if (c->config.replicate_after && r->home != r->node &&
		r->code <= MEMORY_CDAT_read_shar_or_priv)
		memory_cdat_count_remote_load(c, r->node, r->number);
	return c->options.check ? verify(c, r->number, r->node) : BASE_OK;
}

enum base_status memory_cdat_load_miss(
	struct memory_cdat *c, uint32_t processor, uint64_t line, bool code)
{
	struct request r;
	enum base_status s = begin_request(c, processor, line,
		code ? MEMORY_CDAT_read_shar : MEMORY_CDAT_read_shar_or_priv, &r);
	if (s != BASE_OK)
		return s;
	c->outcome->home = r.home;
	if (in_interconnect(&r)) {
		s = add_sharer(&r, r.unit);
	} else {
		tell_request(&r, (int32_t)processor);
		s = serve(&r);
		if (s == BASE_OK)
			keep_in_interconnect(&r);
	}
	if (s == BASE_OK)
		s = memory_cdat_fill(c, processor, line, code, r.version);
	return s == BASE_OK ? finish_request(&r) : s;
}

/* So many loads in a row that memory answers, of lines that are shared as this one. */
static inline void count_plainly(
	struct memory_cdat *c, uint32_t processor, struct cdat_line *l, uint32_t home, uint64_t nr)
{
	struct cdat_processor *p = &c->processor[processor];
	const struct request r = {.c = c,
		.line = l,
		.processor = processor,
		.unit = p->unit,
		.node = p->node,
		.home = home};
	struct memory_cdat_phase *open = c->open;
	struct memory_cdat_flow *f = &open->flow[MEMORY_CDAT_DATA];
	bool local = r.home == r.node;
	note_states(&r, MEMORY_CDAT_read_shar_or_priv - 1, nr);
	open->requests += nr;
	open->transactions[MEMORY_CDAT_read_shar_or_priv] += nr;
	open->transactions[MEMORY_CDAT_data_shar] += nr;
	open->critical += 2 * nr;
	f->misses += nr;
	*(local ? &f->local : &f->remote) += nr;
	*(local ? &f->local_memory : &f->remote_memory) += nr;
	if (c->config.cycle_ps)
		p->time_ps += nr * (local ? c->config.local_memory_ps : c->config.remote_memory_ps);
}

void memory_cdat_count_plainly(
	struct memory_cdat *c, uint32_t processor, uint32_t sharers, uint32_t home, uint64_t nr)
{
	struct cdat_line l = {.state = MEMORY_CDAT_SHARED, .sharers = sharers};
	count_plainly(c, processor, &l, home, nr);
}

bool memory_cdat_load_plainly(
	struct memory_cdat *c, uint32_t processor, uint64_t line, enum base_status *ret)
{
	struct cdat_chunk *k = c->plain ? cdat_chunk_at(c, line << c->line_shift) : NULL;
	if (!k || k->has_code)
		return false;
	struct cdat_processor *p = &c->processor[processor];
	struct cdat_line *l = &k->line[cdat_line_index(c, line)];
	if (l->owner || l->state != MEMORY_CDAT_SHARED)
		return false;
	count_plainly(c, processor, l, k->node, 1);
	*ret = memory_sets_add(&c->sets, &l->sharers, p->unit);
	uint64_t last = cdat_push(cdat_set(&p->data, line), p->data.ways, line);
	if (!last || last & CDAT_SILENT || *ret != BASE_OK)
		return true;
	uint64_t victim = cdat_line_of(last);
	k = cdat_chunk_at(c, victim << c->line_shift);
	BASE_ASSUME(k);
	if (k->has_code || k->line[cdat_line_index(c, victim)].owner == p->unit + 1)
		*ret = memory_cdat_left(c, p->unit, victim);
	return true; /* else a shared copy goes in silence */
}

static void make_newest(struct cdat_cache *k, uint64_t line, uint32_t version)
{
	for (uint64_t i = 0; k->ways && i < cdat_nr_parts(k); i++) {
		uint64_t part = (line << k->part_shift) + i;
		uint32_t way = cdat_find(k, part);
		if (way < k->ways)
			(k->version + (cdat_set(k, part) - k->way))[way] = version;
	}
}

/* The processor may store now: its copy is the only one, and newer than all. Its own instruction
 * cache must not keep the old one; the levels behind are taken to be written through. */
static void stored(struct request *r)
{
	struct cdat_processor *p = &r->c->processor[r->processor];
	struct cdat_cache *level[] = {&p->data, &p->second, &r->c->unit[r->unit].third};
	uint64_t part = cdat_part(r->c, &p->data, r->number);
	uint32_t way = cdat_find(&p->data, part);
	memory_cdat_alone(r->c, r->processor, r->number);
	r->line->version++;
	r->line->dirty = true;
	memory_cdat_cache_drop_parts(&p->code, r->number);
	if (way < p->data.ways)
		cdat_set(&p->data, part)[way] = cdat_tag(part) | CDAT_MAY_STORE;
	for (size_t i = 0; p->data.version && i < BASE_COUNT(level); i++)
		make_newest(level[i], r->number, r->line->version);
}

static enum base_status upgrade(struct request *r)
{
	bool snooping = r->c->protocol->network == MEMORY_CDAT_SNOOPING;
	r->code = MEMORY_CDAT_req_inv;
	r->c->outcome->upgrade = true;
	tell_request(r, (int32_t)r->processor);
	uint32_t others = invalidate_others(r, !snooping);
	if (!snooping)
		cdat_protocol_tell(r, MEMORY_CDAT_alloc_done, 0, (int32_t)r->processor);
	critical(r, snooping ? 1 : others ? 4 : 2);
	make_private(r, true);
	return BASE_OK;
}

enum base_status memory_cdat_store(
	struct memory_cdat *c, uint32_t processor, uint64_t line, bool hit)
{
	struct request r;
	enum base_status s = begin_request(c, processor, line, MEMORY_CDAT_read_priv_own, &r);
	if (s != BASE_OK)
		return s;
	c->outcome->home = r.home;
	if (hit && !memory_cdat_holds_alone(&c->processor[processor], line, &r.version))
		hit = false; /* uniting a replicated page took it away */
	if (!hit) {
		tell_request(&r, (int32_t)processor);
		s = serve(&r);
		if (s == BASE_OK)
			s = memory_cdat_fill(c, processor, line, false, r.version);
		if (s == BASE_OK && r.version != r.line->version && c->options.check)
			return base_fail(c->err, BASE_ERR_CORRUPT,
				"%s: processor %u was given version %u of line 0x%llx for a store, "
				"not %u",
				c->protocol->name, processor, r.version,
				(unsigned long long)line << c->line_shift, r.line->version);
	} else if (r.line->owner != r.unit + 1 || r.line->state != MEMORY_CDAT_EXCLUSIVE) {
		s = upgrade(&r);
	}
	if (s != BASE_OK)
		return s;
	stored(&r);
	return finish_request(&r);
}

/* ---- returns --------------------------------------------------------------------------------- */

enum { TYPE_WRITE_BACK = 6, TYPE_UPDATE_TAG = 7 };

enum base_status memory_cdat_replaced(struct memory_cdat *c, uint32_t unit, uint64_t line)
{
	struct request r;
	int32_t from = speaker(c, unit);
	const struct cdat_chunk *k = cdat_chunk_at(c, line << c->line_shift);
	if (k && !c->homes.home[k->home].replicated &&
		k->line[cdat_line_index(c, line)].owner != unit + 1)
		return BASE_OK; /* a shared copy goes in silence: most do */
	enum base_status s = begin_request(c, (uint32_t)from, line, MEMORY_CDAT_read_shar, &r);
	if (s != BASE_OK || r.line->owner != unit + 1)
		return s;
	if (r.line->dirty) {
		tell_general(&r, MEMORY_CDAT_write_back, TYPE_WRITE_BACK, from);
		r.line->memory_version = r.line->version;
	} else if (c->protocol->network == MEMORY_CDAT_DIRECTORY && c->protocol->announced) {
		tell_general(&r, MEMORY_CDAT_update_tag, TYPE_UPDATE_TAG, from);
	} else {
		return BASE_OK; /* the home goes on believing it is there */
	}
	r.line->dirty = false;
	r.line->owner = 0;
	s = memory_sets_remove(&c->sets, &r.line->sharers, unit);
	r.line->state = r.line->sharers ? MEMORY_CDAT_SHARED : MEMORY_CDAT_IDLE;
	return s;
}

void memory_cdat_flush(struct memory_cdat *c, struct cdat_line *l, uint64_t line, uint32_t home)
{
	struct request r = {.c = c,
		.line = l,
		.number = line,
		.unit = UINT32_MAX,
		.home = home,
		.code = MEMORY_CDAT_write_back};
	if (l->owner && l->dirty) {
		r.processor = c->unit[l->owner - 1].first;
		r.node = c->unit[l->owner - 1].node;
		tell_general(&r, MEMORY_CDAT_write_back, TYPE_WRITE_BACK, (int32_t)r.processor);
	}
	(void)invalidate_others(&r, false);
	drop_interconnect(&r);
	*l = (struct cdat_line){
		.state = MEMORY_CDAT_IDLE, .version = l->version, .memory_version = l->version};
}

/* ---- I/O processors -------------------------------------------------------------------------- */

enum base_status memory_cdat_dma(struct memory_cdat *c, uint32_t node, uint64_t line, bool in)
{
	struct request r = {.c = c,
		.number = line,
		.processor = UINT32_MAX,
		.unit = UINT32_MAX,
		.node = node,
		.code = in ? MEMORY_CDAT_write_purge : MEMORY_CDAT_read_current};
	int32_t io = -1 - (int32_t)node;
	r.line = memory_cdat_line(c, node, line, in, &r.home);
	if (!r.line)
		return BASE_ERR_NOMEM;
	struct cdat_line *l = r.line;
	uint32_t owner = l->owner;
	tell_request(&r, io);
	critical(&r, 2);
	from_memory(&r);
	if (in) {
		bool acknowledged = c->protocol->network == MEMORY_CDAT_DIRECTORY;
		if (invalidate_others(&r, acknowledged) && acknowledged)
			critical(&r, 4);
		drop_interconnect(&r);
		*l = (struct cdat_line){.state = MEMORY_CDAT_IDLE,
			.version = l->version + 1,
			.memory_version = l->version + 1};
		cdat_protocol_tell(&r, MEMORY_CDAT_write_purge_done, 0, io);
		c->open->critical += c->outcome->critical;
		return c->options.check ? verify(c, line, node) : BASE_OK;
	}
	if (owner && l->dirty) { /* memory gets it, the owner keeps it, clean */
		if (c->protocol->network == MEMORY_CDAT_DIRECTORY) {
			cdat_protocol_tell(&r, MEMORY_CDAT_recall_shar, 0, speaker(c, owner - 1));
			critical(&r, 4);
		}
		cdat_protocol_tell(&r, MEMORY_CDAT_recall_data, speaker(c, owner - 1), 0);
		memory_cdat_clean(c, owner - 1, line);
		l->memory_version = l->version;
		l->dirty = false;
		from_cache(&r, owner - 1);
		if (l->state == MEMORY_CDAT_SHARED || !c->protocol->exclusive) {
			l->owner = 0;
			enum base_status s = add_sharer(&r, owner - 1);
			if (s != BASE_OK)
				return s;
		}
	}
	cdat_protocol_tell(&r, MEMORY_CDAT_data_shar, 0, io);
	c->open->critical += c->outcome->critical;
	return c->options.check ? verify(c, line, node) : BASE_OK;
}
