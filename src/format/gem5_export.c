/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gem5_export.c - annotations as annotate.bin. The records are gone through twice: once to number
 * machines, states and queues and to count, because the header comes first; once to write.
 *
 * A file of gem5 has no stacks of machines: begin and end become links between them. A thread that
 * is in no machine is one itself. What has no form there is counted, and said.
 */
#include "format/gem5.h"

#define LONGPOLE_DISABLE /* for the flags only */
#include "longpole/annotate.h"

#include <string.h>

enum { IDS_MAX = GEM5_IDS - 2 /* 0: none; 65535: a link left open */, STACK_MAX = 32 };

struct things {                   /* machines or queues of the file, by id - 1 */
	struct gem5_thing *thing; /* texts are string ids of `text` */
	size_t nr, capacity;
};

/* States of the machines of one name. */
struct machine_kind {
	uint32_t name;
	uint32_t *state; /* text, by id - 1 */
	size_t nr, capacity;
};

struct level { /* a machine on a thread's stack */
	uint16_t machine, state;
	bool linked; /* gives control back at its end */
};
struct lane {                          /* a stream of the trace */
	struct level level[STACK_MAX]; /* 0: the thread itself, or the machine that it acts for */
	unsigned nr;                   /* 0: not seen yet */
	bool link_next, acts;
};

struct gem5_export {
	const struct format_input *in;
	const struct trace_defs *defs;
	struct format_out out;
	struct base_err *err;
	bool writing; /* the second pass */

	struct base_strtab *text;
	struct things machines, queues;
	struct base_map machine_of, queue_of; /* (0 or 1, definition or stream) -> id */
	uint32_t *system;                     /* text, by id - 1 */
	size_t nr_systems, system_capacity;
	struct base_map system_of; /* text -> id */
	struct machine_kind *kind;
	size_t nr_kinds, kind_capacity;
	struct base_map kind_of;  /* (0, text) -> index */
	struct base_map state_of; /* (kind, text) -> id */
	struct lane *lane;        /* by stream */
	uint32_t nr_lanes;

	uint64_t nr_records, at_ns;
	uint8_t cpu;
	uint64_t nr_others, nr_items, nr_asserts, nr_flags, nr_long, nr_links_open, nr_misnested;
	uint64_t nr_gone;
	enum base_status status;
};

static void gem5_export_fail_memory(struct gem5_export *ex, enum base_status s)
{
	if (s != BASE_OK && ex->status == BASE_OK)
		ex->status = base_fail(ex->err, s, "out of memory for machines and queues");
}

static void fail_limit(struct gem5_export *ex, const char *what, uint64_t value, uint64_t limit)
{
	if (ex->status == BASE_OK)
		ex->status = base_fail(ex->err, BASE_ERR_LIMIT,
			"annotate.bin cannot hold %s %llu at %llu ns: its largest is %llu", what,
			(unsigned long long)value, (unsigned long long)ex->at_ns,
			(unsigned long long)limit);
}

/* ---- ids ------------------------------------------------------------------------------------- */

static uint32_t text_id(struct gem5_export *ex, const char *text, size_t length)
{
	uint32_t id = 0, before = base_strtab_count(ex->text);
	gem5_export_fail_memory(ex, base_strtab_intern(ex->text, text, length, &id));
	if (id == before && length > GEM5_NAME_MAX)
		ex->nr_long++;
	return id;
}

static uint32_t gem5_export_add_id(struct gem5_export *ex, struct base_map *map, uint64_t hi,
	uint64_t lo, size_t nr, const char *what)
{
	if (nr > IDS_MAX)
		fail_limit(ex, what, nr, IDS_MAX);
	else
		gem5_export_fail_memory(ex, base_map_put(map, hi, lo, nr));
	return (uint32_t)nr;
}

static uint32_t system_id(struct gem5_export *ex, const char *name)
{
	uint64_t id;
	uint32_t text = text_id(ex, name, strlen(name));
	if (!text)
		return 0;
	if (base_map_get(&ex->system_of, 0, text, &id))
		return (uint32_t)id;
	gem5_export_fail_memory(ex, base_grow(&ex->system, &ex->system_capacity, ex->nr_systems + 1,
					    sizeof *ex->system));
	if (ex->status != BASE_OK)
		return 0;
	ex->system[ex->nr_systems++] = text;
	return gem5_export_add_id(
		ex, &ex->system_of, 0, text, ex->nr_systems, "as many systems as");
}

static uint16_t gem5_export_add_thing(struct gem5_export *ex, struct things *t,
	struct base_map *map, uint64_t hi, uint64_t lo, struct gem5_thing thing, const char *what)
{
	gem5_export_fail_memory(
		ex, base_grow(&t->thing, &t->capacity, t->nr + 1, sizeof *t->thing));
	if (ex->status != BASE_OK)
		return 0;
	t->thing[t->nr++] = thing;
	return (uint16_t)gem5_export_add_id(ex, map, hi, lo, t->nr, what);
}

/* A name is never empty there. */
static uint32_t name_id(struct gem5_export *ex, const char *name)
{
	const char *some = *name ? name : "?";
	return text_id(ex, some, strlen(some));
}

static uint16_t machine_id(struct gem5_export *ex, uint32_t def)
{
	uint64_t id;
	if (base_map_get(&ex->machine_of, 0, def, &id))
		return (uint16_t)id;
	const struct trace_actor *a = trace_def_actor(ex->defs, def);
	struct gem5_thing thing = {.system = system_id(ex, trace_text_of(ex->defs, a->system)),
		.name = name_id(ex, trace_text_of(ex->defs, a->name)),
		.instance = a->instance};
	return gem5_export_add_thing(
		ex, &ex->machines, &ex->machine_of, 0, def, thing, "as many state machines as");
}

static uint16_t thread_machine(struct gem5_export *ex, uint32_t stream)
{
	uint64_t id;
	if (base_map_get(&ex->machine_of, 1, stream, &id))
		return (uint16_t)id;
	const struct trace_stream *st = trace_def_stream(ex->defs, stream);
	const struct trace_process *p = trace_def_process(ex->defs, st->process);
	struct base_str name = {0};
	base_str_addf(&name, "thread of %s", trace_text_of(ex->defs, p->name));
	struct gem5_thing thing = {
		.name = name_id(ex, base_str_text(&name)), .instance = st->tid ? st->tid : stream};
	base_str_fini(&name);
	return gem5_export_add_thing(
		ex, &ex->machines, &ex->machine_of, 1, stream, thing, "as many state machines as");
}

/* "queue@system", as the import makes them, when there is such a system; else it is in none. */
static uint16_t queue_id(struct gem5_export *ex, uint32_t def)
{
	uint64_t id;
	if (base_map_get(&ex->queue_of, 0, def, &id))
		return (uint16_t)id;
	const struct trace_object *o = trace_def_object(ex->defs, def);
	const char *name = trace_text_of(ex->defs, o->name), *at = strrchr(name, '@');
	struct gem5_thing thing = {.instance = o->address};
	for (uint32_t a = 1; at && at > name && !thing.system && a < ex->defs->nr_actors; a++) {
		const char *system = trace_text_of(ex->defs, ex->defs->actors[a].system);
		if (*system && !strcmp(system, at + 1))
			thing.system = system_id(ex, system);
	}
	thing.name = thing.system ? text_id(ex, name, (size_t)(at - name)) : name_id(ex, name);
	return gem5_export_add_thing(
		ex, &ex->queues, &ex->queue_of, 0, def, thing, "as many queues as");
}

static struct machine_kind *kind_of(struct gem5_export *ex, uint32_t name)
{
	uint64_t ix;
	if (base_map_get(&ex->kind_of, 0, name, &ix))
		return &ex->kind[ix];
	gem5_export_fail_memory(
		ex, base_grow(&ex->kind, &ex->kind_capacity, ex->nr_kinds + 1, sizeof *ex->kind));
	if (ex->status == BASE_OK)
		gem5_export_fail_memory(ex, base_map_put(&ex->kind_of, 0, name, ex->nr_kinds));
	if (ex->status != BASE_OK)
		return NULL;
	ex->kind[ex->nr_kinds] = (struct machine_kind){.name = name};
	return &ex->kind[ex->nr_kinds++];
}

static uint16_t state_id(struct gem5_export *ex, uint16_t machine, const char *name)
{
	if (!machine || machine > ex->machines.nr)
		return 0;
	uint32_t of = ex->machines.thing[machine - 1].name, text = name_id(ex, name);
	uint64_t id;
	if (base_map_get(&ex->state_of, of, text, &id))
		return (uint16_t)id;
	struct machine_kind *k = kind_of(ex, of);
	if (!k)
		return 0;
	gem5_export_fail_memory(
		ex, base_grow(&k->state, &k->capacity, k->nr + 1, sizeof *k->state));
	if (ex->status != BASE_OK)
		return 0;
	k->state[k->nr++] = text;
	return (uint16_t)gem5_export_add_id(
		ex, &ex->state_of, of, text, k->nr, "as many states of one machine as");
}

/* ---- records --------------------------------------------------------------------------------- */

static void gem5_export_add_bytes(struct base_str *out, uint64_t v, unsigned nr_bytes)
{
	uint8_t b[8];
	for (unsigned i = 0; i < nr_bytes; i++)
		b[i] = (uint8_t)(v >> 8 * i);
	base_str_add_bytes(out, b, nr_bytes);
}

static void gem5_export_emit(struct gem5_export *ex, enum gem5_op op, uint16_t machine,
	uint16_t what, uint64_t data, unsigned flags)
{
	uint64_t tick;
	if (data > UINT32_MAX)
		fail_limit(
			ex, op == GEM5_IDENT ? "connection" : "a count of", data, UINT32_MAX - 1);
	if (__builtin_mul_overflow(ex->at_ns, 1000 / GEM5_TICK_PS, &tick))
		fail_limit(ex, "the time in ns", ex->at_ns, UINT64_MAX / (1000 / GEM5_TICK_PS));
	if (ex->status != BASE_OK)
		return;
	ex->nr_records++;
	if (!ex->writing)
		return;
	struct base_str *out = &ex->out.text;
	gem5_export_add_bytes(out, tick, 8);
	gem5_export_add_bytes(out, data, 4);
	gem5_export_add_bytes(out, machine, 2);
	gem5_export_add_bytes(out, what, 2);
	gem5_export_add_bytes(out, op, 1);
	gem5_export_add_bytes(out, flags, 1);
	gem5_export_add_bytes(out, ex->cpu, 1);
	format_out_check(&ex->out);
}

static struct level *top(struct lane *l)
{
	return &l->level[l->nr - 1];
}

static void begin_state(struct gem5_export *ex, struct level *l, const char *name, unsigned flags)
{
	l->state = state_id(ex, l->machine, name);
	gem5_export_emit(ex, GEM5_BEGIN, l->machine, l->state, 0, flags);
}

/* The actor of this stream; a thread that has not been seen begins to run. */
static struct level *acting(struct gem5_export *ex, uint32_t stream)
{
	struct lane *l = &ex->lane[stream];
	if (!l->nr) {
		l->level[0] = (struct level){.machine = thread_machine(ex, stream)};
		l->nr = 1;
		begin_state(ex, top(l), "running", 0);
	}
	return top(l);
}

static void begin_machine(struct gem5_export *ex, uint32_t stream, const struct trace_note_begin *b)
{
	struct lane *l = &ex->lane[stream];
	const struct level *from = acting(ex, stream);
	if (l->nr == STACK_MAX) {
		ex->nr_misnested++;
		return;
	}
	struct level to = {.machine = machine_id(ex, b->actor),
		.linked = l->nr == 1 || b->flags & LONGPOLE_LINK || l->link_next};
	l->link_next = false;
	if (to.linked)
		gem5_export_emit(ex, GEM5_LINK, from->machine, to.machine, 0, 0);
	begin_state(ex, &to, "begun", 0);
	l->level[l->nr++] = to;
}

static void gem5_export_end_machine(struct gem5_export *ex, uint32_t stream)
{
	struct lane *l = &ex->lane[stream];
	if (l->nr < 2) {
		ex->nr_misnested++;
		return;
	}
	struct level ended = l->level[--l->nr];
	if (ended.linked)
		gem5_export_emit(ex, GEM5_LINK, ended.machine, top(l)->machine, 0, 0);
	if (top(l)->state)
		gem5_export_emit(ex, GEM5_BEGIN, top(l)->machine, top(l)->state, 0, 0);
	ex->nr_gone++;
}

static unsigned queue_flags(struct gem5_export *ex, uint64_t flags)
{
	ex->nr_flags += (flags & ~(uint64_t)(LONGPOLE_LIFO | LONGPOLE_RESET | LONGPOLE_END)) != 0;
	return (flags & LONGPOLE_LIFO ? GEM5_FL_QOPP : 0u) |
	       (flags & LONGPOLE_RESET ? GEM5_FL_RESET : 0u);
}

static void queue_verb(struct gem5_export *ex, const struct trace_record *r, enum gem5_op op)
{
	const struct trace_note_enqueue *q = &r->u.note_enqueue; /* all of one shape */
	bool may_be_all = op == GEM5_DEQUEUE || op == GEM5_PEEK;
	uint64_t n = q->n;
	if (may_be_all && n == LONGPOLE_ALL)
		n = GEM5_ALL;
	else if (may_be_all && n == GEM5_ALL)
		n = LONGPOLE_ALL; /* it would be taken for all: refused */
	gem5_export_emit(ex, op, acting(ex, r->stream)->machine, queue_id(ex, q->object), n,
		queue_flags(ex, q->flags));
	if (q->flags & LONGPOLE_END)
		gem5_export_end_machine(ex, r->stream);
}

static void gem5_export_act(struct gem5_export *ex, uint32_t stream, uint32_t actor)
{
	struct lane *l = &ex->lane[stream];
	uint16_t machine = machine_id(ex, actor);
	if (l->acts && l->level[0].machine == machine && l->nr == 1)
		return;
	l->level[0] = (struct level){.machine = machine};
	l->nr = 1;
	l->acts = true;
}

static void link(struct gem5_export *ex, uint32_t stream, const struct trace_note_link *n)
{
	struct lane *l = &ex->lane[stream];
	uint16_t from = acting(ex, stream)->machine;
	if (!n->actor) {
		l->link_next = true; /* until the next begin */
		ex->nr_links_open += l->acts;
		return;
	}
	gem5_export_emit(ex, GEM5_LINK, from, machine_id(ex, n->actor), 0, 0);
	if (n->flags & LONGPOLE_END)
		gem5_export_end_machine(ex, stream);
}

static void gem5_export_convert(struct gem5_export *ex, const struct trace_record *r)
{
	if (!r->stream || r->stream >= ex->nr_lanes) {
		ex->nr_others++;
		return;
	}
	ex->at_ns = r->time_ns;
	ex->cpu = (uint8_t)(r->stream - 1);
	switch (r->kind) {
	case TRACE_note_begin:
		begin_machine(ex, r->stream, &r->u.note_begin);
		break;
	case TRACE_note_end:
		gem5_export_end_machine(ex, r->stream);
		break;
	case TRACE_note_state:
		begin_state(ex, acting(ex, r->stream),
			trace_text_of(
				ex->defs, trace_def_state(ex->defs, r->u.note_state.state)->name),
			r->u.note_state.flags & LONGPOLE_SUSPECT ? GEM5_FL_BAD : 0);
		break;
	case TRACE_note_enqueue:
		queue_verb(ex, r, GEM5_QUEUE);
		break;
	case TRACE_note_dequeue:
		queue_verb(ex, r, GEM5_DEQUEUE);
		break;
	case TRACE_note_peek:
		queue_verb(ex, r, GEM5_PEEK);
		break;
	case TRACE_note_reserve:
		queue_verb(ex, r, GEM5_RESERVE);
		break;
	case TRACE_note_resize:
		queue_verb(ex, r, GEM5_SIZE_QUEUE);
		break;
	case TRACE_note_wait_empty:
		queue_verb(ex, r, GEM5_WAIT_EMPTY);
		break;
	case TRACE_note_wait_full:
		queue_verb(ex, r, GEM5_WAIT_FULL);
		break;
	case TRACE_note_link:
		link(ex, r->stream, &r->u.note_link);
		break;
	case TRACE_note_identify:
		gem5_export_emit(ex, GEM5_IDENT, acting(ex, r->stream)->machine, 0,
			r->u.note_identify.connection, 0);
		break;
	case TRACE_note_act:
		gem5_export_act(ex, r->stream, r->u.note_act.actor);
		break;
	case TRACE_note_assert:
		ex->nr_asserts++;
		break;
	case TRACE_note_put_item:
	case TRACE_note_take_item:
		ex->nr_items++;
		break;
	default:
		ex->nr_others++;
	}
}

static enum base_status pass(struct gem5_export *ex, bool writing)
{
	struct trace_batch b;
	ex->writing = writing;
	ex->nr_records = 0;
	ex->nr_others = ex->nr_items = ex->nr_asserts = ex->nr_flags = 0;
	ex->nr_links_open = ex->nr_misnested = ex->nr_gone = 0;
	memset(ex->lane, 0, ex->nr_lanes * sizeof *ex->lane);
	enum base_status s = trace_reader_rewind(ex->in->reader, ex->err);
	while (s == BASE_OK && ex->status == BASE_OK && ex->out.status == BASE_OK) {
		s = trace_reader_next(ex->in->reader, &b, ex->err);
		for (size_t i = 0; s == BASE_OK && i < b.nr && ex->status == BASE_OK; i++)
			gem5_export_convert(ex, &b.record[i]);
	}
	return ex->status != BASE_OK ? ex->status : s == BASE_END ? BASE_OK : s;
}

/* ---- the file -------------------------------------------------------------------------------- */

static void gem5_export_add_text(struct gem5_export *ex, struct base_str *key, uint32_t id)
{
	format_gem5_key_quote(key, base_strtab_get(ex->text, id));
}

static void add_things(
	struct gem5_export *ex, struct base_str *key, const char *name, const struct things *t)
{
	base_str_addf(key, "%s = [\"NULL\"", name);
	for (size_t i = 0; i < t->nr; i++) {
		base_str_addf(key, ", (%llu, ", (unsigned long long)t->thing[i].system);
		gem5_export_add_text(ex, key, t->thing[i].name);
		base_str_addf(key, ", %llu)", (unsigned long long)t->thing[i].instance);
	}
	base_str_add(key, "]\n");
}

static void make_key(struct gem5_export *ex, struct base_str *key)
{
	base_str_add(key, "sms = {}\n");
	for (size_t k = 0; k < ex->nr_kinds; k++) {
		base_str_add(key, "sms[");
		gem5_export_add_text(ex, key, ex->kind[k].name);
		base_str_add(key, "] = [\"NULL\"");
		for (size_t i = 0; i < ex->kind[k].nr; i++) {
			base_str_add(key, ", ");
			gem5_export_add_text(ex, key, ex->kind[k].state[i]);
		}
		base_str_add(key, "]\n");
	}
	add_things(ex, key, "smNum", &ex->machines);
	base_str_add(key, "sysNum = [\"NULL\"");
	for (size_t i = 0; i < ex->nr_systems; i++) {
		base_str_add(key, ", ");
		gem5_export_add_text(ex, key, ex->system[i]);
	}
	base_str_add(key, "]\n");
	add_things(ex, key, "queues", &ex->queues);
	base_str_add(key, "smComb = [s for s in [(i,r) for i in xrange(1,len(sysNum)) for r in "
			  "xrange (1,len(smNum))]]\n");
}

static void add_header(struct gem5_export *ex, size_t key_bytes)
{
	uint64_t key_offset = GEM5_HEADER_BYTES + ex->nr_records * GEM5_RECORD_BYTES;
	struct base_str *out = &ex->out.text;
	gem5_export_add_bytes(out, GEM5_VERSION, 8);
	gem5_export_add_bytes(out, ex->nr_records, 8);
	gem5_export_add_bytes(out, key_offset, 8);
	gem5_export_add_bytes(out, key_offset + key_bytes, 8);
	gem5_export_add_bytes(out, key_bytes, 4);
	gem5_export_add_bytes(out, ex->nr_records / GEM5_INDEX_EVERY * 8, 4);
}

static void gem5_export_add_index(struct gem5_export *ex)
{
	for (uint64_t k = GEM5_INDEX_EVERY; k <= ex->nr_records; k += GEM5_INDEX_EVERY) {
		gem5_export_add_bytes(
			&ex->out.text, GEM5_HEADER_BYTES + (k - 1) * GEM5_RECORD_BYTES, 8);
		format_out_check(&ex->out);
	}
}

static void gem5_export_note_all(const struct gem5_export *ex)
{
	struct base_str *n = ex->in->notes;
	format_note_count(n, ex->nr_others,
		"%s {record has|records have} no form in annotate.bin, which knows annotations "
		"only (threads, "
		"locks, descriptors, samples)");
	format_note_count(n, ex->nr_items,
		"%s {put or take of items by key was|puts or takes of items by key were} left out");
	format_note_count(n, ex->nr_asserts, "%s asserted {size was|sizes were} left out");
	format_note_count(n, ex->nr_flags,
		"%s queue {operation|operations} lost a flag (pool, priority, anonymous)");
	format_note_count(n, ex->nr_links_open,
		"%s {link without a target was|links without a target were} left out");
	format_note_count(n, ex->nr_misnested,
		"%s {begin or end does|begins or ends do} not nest and were left out");
	format_note_count(n, ex->nr_gone,
		"%s {end of a state machine|ends of state machines} became links and states: the "
		"file has no word for "
		"a "
		"machine that is nowhere");
	format_note_count(n, ex->nr_long,
		"%s {name is|names are} longer than the 49 bytes that gem5 itself kept");
}

static enum base_status write_file(struct gem5_export *ex)
{
	struct base_str key = {0};
	make_key(ex, &key);
	if (key.failed || key.length > UINT32_MAX) {
		base_str_fini(&key);
		return base_fail(
			ex->err, BASE_ERR_LIMIT, "the key has more than %u bytes", UINT32_MAX);
	}
	if (ex->nr_records / GEM5_INDEX_EVERY > UINT32_MAX / 8) {
		base_str_fini(&key);
		return base_fail(ex->err, BASE_ERR_LIMIT,
			"%llu {record|records} are more than annotate.bin's index can hold",
			(unsigned long long)ex->nr_records);
	}
	add_header(ex, key.length);
	enum base_status s = pass(ex, true);
	base_str_add_bytes(&ex->out.text, base_str_text(&key), key.length);
	base_str_fini(&key);
	if (s == BASE_OK)
		gem5_export_add_index(ex);
	return s;
}

static enum base_status gem5_export_run(struct gem5_export *ex)
{
	ex->defs = trace_reader_defs(ex->in->reader);
	ex->nr_lanes = ex->defs->nr_streams;
	ex->text = base_strtab_new();
	ex->lane = base_alloc((ex->nr_lanes + 1) * sizeof *ex->lane);
	if (!ex->text || !ex->lane)
		return format_no_memory(ex->err);
	enum base_status s = pass(ex, false);
	if (s == BASE_OK && !ex->nr_records)
		s = base_fail(ex->err, BASE_ERR_NOTFOUND,
			"the trace has no annotations (include/longpole/annotate.h), and "
			"annotate.bin "
			"holds nothing else");
	return s == BASE_OK ? write_file(ex) : s;
}

enum base_status format_export_gem5(const struct format_input *in,
	const struct format_options *opts, const struct format_sink *sink, struct base_err *err)
{
	struct gem5_export ex = {.in = in, .out = {.sink = sink, .err = err}, .err = err};
	(void)opts;
	enum base_status s = gem5_export_run(&ex), closed = BASE_OK;
	if (s == BASE_OK) {
		gem5_export_note_all(&ex);
		closed = format_out_close(&ex.out);
	} else {
		base_str_fini(&ex.out.text);
	}
	base_strtab_free(ex.text);
	base_free(ex.machines.thing);
	base_free(ex.queues.thing);
	base_free(ex.system);
	for (size_t k = 0; k < ex.nr_kinds; k++)
		base_free(ex.kind[k].state);
	base_free(ex.kind);
	base_free(ex.lane);
	struct base_map *maps[] = {
		&ex.machine_of, &ex.queue_of, &ex.system_of, &ex.kind_of, &ex.state_of};
	for (size_t i = 0; i < BASE_COUNT(maps); i++)
		base_map_fini(maps[i]);
	return s == BASE_OK ? closed : s;
}
