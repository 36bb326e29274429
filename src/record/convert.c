/* SPDX-License-Identifier: Apache-2.0 */
/* convert.c - ring words to trace records. */
#include "record/convert.h"
#include "record/jit.h"
#include "record/affinity.h"
#define LONGPOLE_DISABLE /* types and flags only */
#include "longpole/annotate.h"

#include <string.h>

enum { RING_KINDS = 256 };
enum role { ROLE_value, ROLE_object, ROLE_site, ROLE_stack, ROLE_pid };

/* 0: not known, or of variable length. */
static const uint8_t words_of[RING_KINDS] = {
#define RING_RECORD(name, n) [TRACE_##name] = (n) + 1,
#include "ring/records.def"
	[RING_unload] = 2,
	[RING_lost] = 2,
	[RING_exit] = 2,
	[RING_lock_call] = 3,
	[RING_lock_return] = 3,
	[RING_made] = 6,
	[RING_verb] = 4,
	[RING_state] = 2,
	[RING_capacity] = 4,
	[RING_code] = 4,
};

/*
 * Programs say the same again and again: the same lock or queue at the same place. What such a
 * record becomes depends on its words, on its image and on the modules there alone, and is
 * remembered (struct record_repeated).
 */
static const bool repeats[RING_KINDS] = {
	[TRACE_lock_wait] = true,
	[TRACE_lock_acquire] = true,
	[TRACE_lock_release] = true,
	[TRACE_lock_fail] = true,
	[TRACE_lock_try] = true,
	[TRACE_shared_wait] = true,
	[TRACE_shared_acquire] = true,
	[TRACE_shared_release] = true,
	[TRACE_cond_signal] = true,
	[TRACE_cond_broadcast] = true,
	[TRACE_barrier_arrive] = true,
	[TRACE_barrier_leave] = true,
	[TRACE_token_give] = true,
	[TRACE_token_take] = true,
	[RING_verb] = true,
	[RING_state] = true,
};

/* ---- tables ---------------------------------------------------------------------------------- */

static enum role convert_role_of(const struct trace_field_desc *f)
{
	if (!strcmp(f->unit, "pid"))
		return ROLE_pid;
	if (f->type != TRACE_FIELD_ID)
		return ROLE_value;
	if (!strcmp(f->unit, "object"))
		return ROLE_object;
	if (!strcmp(f->unit, "site"))
		return ROLE_site;
	return !strcmp(f->unit, "stack") ? ROLE_stack : ROLE_value;
}

static void describe_kind(struct record_kind *k, unsigned kind)
{
	const struct trace_kind_desc *d = trace_kind_find(kind);
	BASE_ASSERT(d && d->nr_fields <= RECORD_FIELDS_MAX);
	k->note = kind >= TRACE_note_begin && kind <= TRACE_note_take_item &&
		  kind != TRACE_note_identify;
	k->nr_fields = (uint8_t)d->nr_fields;
	BASE_ASSERT(k->note || words_of[kind] == d->nr_fields + 1);
	for (unsigned i = 0; i < d->nr_fields; i++) {
		k->field[i].role = (uint8_t)convert_role_of(&d->field[i]);
		k->field[i].wide = d->field[i].type != TRACE_FIELD_ID;
		k->field[i].offset = d->field[i].offset;
	}
}

enum base_status record_converter_init(struct record_converter *c, const struct os_clock *clock,
	struct trace_writer *w, struct base_err *err)
{
	memset(c, 0, sizeof *c);
	c->clock = clock;
	for (unsigned kind = 0; kind < BASE_COUNT(c->kind); kind++)
		if (words_of[kind])
			describe_kind(&c->kind[kind], kind);
	enum base_status status = record_sink_init(&c->sink, w, err);
	c->sink.clock = clock;
	record_world_init(&c->world, &c->sink);
	c->world.introduce_maps = record_converter_introduce_maps;
	c->world.introduce_maps_ctx = c;
	return status;
}

void record_converter_fini(struct record_converter *c)
{
	record_unwinders_fini(&c->unwinders);
	for (size_t i = 0; i < c->nr_threads; i++) {
		base_free(c->thread[i]->block);
		base_free(c->thread[i]->note);
		base_free(c->thread[i]);
	}
	for (size_t i = 0; i < c->nr_tasks; i++) {
		struct record_task *task = c->task[i];
		for (size_t j = task->first; j < task->nr; j++)
			base_free(task->event[j].frame);
		base_free(task->event);
		base_free(task->map);
		base_free(task);
	}
	base_free(c->thread);
	base_free(c->task);
	base_map_fini(&c->threads);
	base_map_fini(&c->tasks);
	record_pids_fini(&c->pids);
	base_map_fini(&c->names);
	base_map_fini(&c->actors);
	base_map_fini(&c->states);
	base_map_fini(&c->queues);
	record_world_fini(&c->world);
	record_sink_fini(&c->sink);
}

struct base_map *record_converter_map(struct record_converter *c, enum record_map_number map)
{
	static const size_t offset[] = {
		[RECORD_MAP_names] = offsetof(struct record_converter, names),
		[RECORD_MAP_actors] = offsetof(struct record_converter, actors),
		[RECORD_MAP_states] = offsetof(struct record_converter, states),
		[RECORD_MAP_queues] = offsetof(struct record_converter, queues),
	};
	return map < BASE_COUNT(offset) && offset[map]
		       ? (struct base_map *)(void *)((char *)c + offset[map])
		       : record_world_map(&c->world, map);
}

static void convert_put(struct record_converter *c, enum record_map_number map, uint64_t hi,
	uint64_t lo, uint64_t value)
{
	enum base_status status = base_map_put(record_converter_map(c, map), hi, lo, value);
	RECORD_JOURNAL_ADD(c->sink.journal, map, map, hi, lo, value);
	if (status != BASE_OK)
		record_sink_fail(&c->sink, status, "no memory to remember one more name");
}

struct record_thread *record_converter_thread(struct record_converter *c, uint32_t image_number,
	uint32_t parent_image, uint32_t pid, uint32_t tid, uint64_t number)
{
	uint64_t known;
	if (base_map_get(&c->threads, image_number, number, &known))
		return c->thread[known];
	struct record_image *image = record_world_image(&c->world, image_number, parent_image, pid);
	if (!image || !number || record_sink_failed(&c->sink))
		return NULL;
	struct record_thread *t = base_alloc(sizeof *t);
	if (!t ||
		base_grow(&c->thread, &c->thread_capacity, c->nr_threads + 1, sizeof(void *)) !=
			BASE_OK ||
		base_map_put(&c->threads, image_number, number, c->nr_threads) != BASE_OK) {
		base_free(t);
		record_sink_fail(&c->sink, BASE_ERR_NOMEM, "no memory for one more thread");
		return NULL;
	}
	*t = (struct record_thread){.image = image,
		.number = number,
		.pid = pid,
		.tid = tid,
		.own_pid = pid,
		.own_tid = tid};
	c->thread[c->nr_threads++] = t;
	return t;
}

struct record_thread *record_converter_thread_of(struct record_converter *c, uint32_t image,
	uint32_t parent_image, uint32_t pid, uint32_t tid, struct ring_ids ids, uint64_t number)
{
	const uint32_t own_pid = pid, own_tid = tid;
	uint64_t known;
	if (base_map_get(&c->threads, image, number, &known))
		return c->thread[known];
	record_pids_find(&c->pids, image, ids, &pid, &tid);
	struct record_thread *t = record_converter_thread(c, image, parent_image, pid, tid, number);
	if (!t)
		return NULL;
	t->own_pid = own_pid;
	t->own_tid = own_tid;
	t->image->pid_ns = ids.ns;
	return t;
}

/* ---- lengths --------------------------------------------------------------------------------- */

static size_t padded(uint64_t bytes)
{
	return (size_t)(bytes + 7) / 8;
}

static size_t text_length(size_t before, uint64_t bytes)
{
	return bytes <= RING_TEXT_MAX ? before + padded(bytes) : 0;
}

static bool is_queue_verb(unsigned kind)
{
	return kind >= TRACE_note_enqueue && kind <= TRACE_note_assert;
}

static size_t variable_length(const uint64_t *word, size_t nr)
{
	enum { MODULE_WORDS = 5 + 3, DESCRIPTOR_WORDS = 1 + sizeof(struct ring_descriptor) / 8 };
	if (nr < 2)
		return 0;
	switch (word[0] & 0xff) {
	case RING_stack:
		return word[1] <= RING_STACK_MAX ? 2 + (size_t)word[1] : 0;
	case RING_module:
		return nr < MODULE_WORDS || word[4] >> 32 > 20
			       ? 0
			       : text_length(MODULE_WORDS, word[4] & UINT32_MAX);
	case RING_descriptor:
		return nr < DESCRIPTOR_WORDS ? 0 : text_length(DESCRIPTOR_WORDS, word[8]);
	case RING_name:
		return nr < 5 ? 0 : text_length(5, word[4]);
	case RING_thread_name:
		return text_length(2, word[1]);
	case RING_image:
		return nr < 3 ? 0 : text_length(3, word[2]);
	case RING_place:
		return nr < 4 ? 0 : text_length(4, (word[3] >> 32) + (word[3] & UINT32_MAX));
	case RING_affinity:
		return nr < 4 || word[3] > RING_AFFINITY_MAX ? 0 : text_length(4, word[3]);
	default:
		return 0;
	}
}

/* Words of the ring record at word[0], 0: makes no sense or does not fit `nr`. */
static BASE_INLINE size_t ring_length(const uint64_t *word, size_t nr)
{
	unsigned kind = word[0] & 0xff;
	size_t length = words_of[kind];
	if (!length)
		length = variable_length(word, nr);
	if (length > nr || (kind == RING_verb && !is_queue_verb(RING_VERB_KIND(word[1]))))
		return 0;
	return length;
}

/* ---- introductions --------------------------------------------------------------------------- */

static void read_module(
	struct record_converter *c, struct record_image *image, const uint64_t *word)
{
	static const char digit[] = "0123456789abcdef";
	char hex[40];
	size_t nr_id = (size_t)(word[4] >> 32), nr_path = (size_t)(word[4] & UINT32_MAX);
	const uint8_t *id = (const uint8_t *)(word + 5);
	for (size_t i = 0; i < nr_id; i++) {
		hex[2 * i] = digit[id[i] >> 4];
		hex[2 * i + 1] = digit[id[i] & 15];
	}
	uint32_t path = record_sink_text(&c->sink, (const char *)(word + 8), nr_path);
	const uint64_t begin_ns = os_clock_ns(c->clock, word[0] >> 8);
	uint32_t build_id = nr_id ? record_sink_text(&c->sink, hex, 2 * nr_id)
				  : record_sink_sum(&c->sink, path, begin_ns);
	uint32_t module = record_image_built_as(&c->world, image, word[1], build_id);
	if (!module)
		module = record_sink_module(&c->sink, path, build_id);
	record_image_module(&c->world, image,
		(struct record_range){.start = word[1],
			.end = word[2],
			.bias = word[3],
			.module = module,
			.begin_ns = begin_ns});
}

static void read_descriptor(
	struct record_converter *c, struct record_image *image, const uint64_t *word)
{
	struct ring_descriptor r;
	memcpy(&r, word + 1, sizeof r);
	struct record_descriptor d = {.incarnation = r.incarnation & RING_OBJECT_ADDRESS,
		.type = r.type,
		.dev = r.dev,
		.ino = r.ino,
		.capacity_bytes = r.capacity_bytes,
		.pair_ino = r.pair_ino,
		.name = (const char *)(word + 1 + sizeof r / 8),
		.name_bytes = (size_t)r.name_bytes};
	record_image_descriptor(&c->world, image, &d);
}

static void convert_read_name(
	struct record_converter *c, struct record_image *image, const uint64_t *word)
{
	uint32_t name = record_sink_text(&c->sink, (const char *)(word + 5), (size_t)word[4]);
	if (word[2] == RING_NAME_object) {
		record_image_name_object(&c->world, image, word[1], name);
		return;
	}
	uint32_t site = record_image_site(&c->world, image, word[3]);
	convert_put(c, RECORD_MAP_names, image->number, word[1], (uint64_t)name << 32 | site);
}

static void convert_read_place(
	struct record_converter *c, const struct record_image *image, const uint64_t *word)
{
	const char *text = (const char *)(word + 4);
	size_t function_bytes = (size_t)(word[3] >> 32), file_bytes = word[3] & UINT32_MAX;
	record_image_place(&c->world, image, word[1], text, function_bytes, text + function_bytes,
		file_bytes, word[2]);
}

static void convert_introduce(
	struct record_converter *c, struct record_image *image, const uint64_t *word, unsigned kind)
{
	switch (kind) {
	case RING_module:
		read_module(c, image, word);
		break;
	case RING_descriptor:
		read_descriptor(c, image, word);
		break;
	case RING_name:
		convert_read_name(c, image, word);
		break;
	case RING_place:
		convert_read_place(c, image, word);
		break;
	default:
		break;
	}
}

/* Lengths must not change between check and use: records of variable length are read from a copy.
 */
static const uint64_t *own_copy(struct record_converter *c, const uint64_t *word, size_t length)
{
	if (length > RECORD_OWN_WORDS_MAX)
		return NULL;
	memcpy(c->copy, word, length * sizeof *word);
	return ring_length(c->copy, length) == length ? c->copy : NULL;
}

void record_convert_introductions(struct record_converter *c, struct record_image *image,
	const uint64_t *word, size_t from, size_t nr)
{
	for (size_t i = from; i < nr;) {
		uint64_t head = __atomic_load_n(&word[i], __ATOMIC_ACQUIRE);
		size_t length = head ? ring_length(word + i, nr - i) : 0;
		if (!length)
			return;
		unsigned kind = head & 0xff;
		if (kind == RING_module || kind == RING_descriptor || kind == RING_name ||
			kind == RING_place) {
			uint64_t saved[RECORD_OWN_WORDS_MAX]; /* the caller may be using the copy */
			memcpy(saved, c->copy, sizeof saved);
			const uint64_t *copy = own_copy(c, word + i, length);
			if (copy)
				convert_introduce(c, image, copy, kind);
			memcpy(c->copy, saved, sizeof saved);
		}
		i += length;
	}
}

/* ---- annotations ----------------------------------------------------------------------------- */

static uint64_t convert_name_of(
	struct record_converter *c, const struct record_thread *t, uint64_t name_id)
{
	uint64_t known;
	if (base_map_get(&c->names, t->image->number, name_id, &known))
		return known;
	if (c->world.look_ahead && c->world.look_ahead(c->world.look_ahead_ctx, t->image) &&
		base_map_get(&c->names, t->image->number, name_id, &known))
		return known;
	return 0;
}

static uint32_t convert_actor_of(
	struct record_converter *c, const struct record_thread *t, uint32_t name, uint64_t instance)
{
	uint64_t known, scope = (uint64_t)t->image->number << 32 | name;
	if (base_map_get(&c->actors, scope, instance, &known))
		return (uint32_t)known;
	uint32_t id = record_sink_actor(&c->sink, t->image->name, name, instance);
	convert_put(c, RECORD_MAP_actors, scope, instance, id);
	return id;
}

static uint32_t convert_queue_of(
	struct record_converter *c, const struct record_thread *t, uint32_t name, uint64_t instance)
{
	uint64_t known, scope = (uint64_t)t->image->number << 32 | name;
	if (base_map_get(&c->queues, scope, instance, &known))
		return (uint32_t)known;
	uint32_t id =
		record_sink_object(&c->sink, (struct trace_object){.process = t->image->process,
						     .type = TRACE_OBJECT_queue,
						     .address = instance,
						     .name = name});
	convert_put(c, RECORD_MAP_queues, scope, instance, id);
	return id;
}

static uint32_t convert_state_of(struct record_converter *c, uint64_t name_and_site)
{
	uint64_t known;
	uint32_t name = (uint32_t)(name_and_site >> 32), site = (uint32_t)name_and_site;
	if (base_map_get(&c->states, name, site, &known))
		return (uint32_t)known;
	uint32_t id = record_sink_state(&c->sink, name, site);
	convert_put(c, RECORD_MAP_states, name, site, id);
	return id;
}

enum noted { NOTED_actor = 1, NOTED_state, NOTED_queue };

/* The actor, state or queue that a place's name means with that instance. */
static const struct record_noted *noted_at(struct record_converter *c,
	const struct record_thread *t, enum noted kind, uint64_t name_id, uint64_t instance)
{
	uint32_t image = t->image->number;
	struct record_noted *n = &c->noted[(name_id ^ image << 5) & (RECORD_NOTED - 1)];
	if (BASE_LIKELY(n->name_id == name_id && n->instance == instance && n->image == image &&
			n->kind == kind))
		return n;
	uint64_t named = name_id ? convert_name_of(c, t, name_id) : 0;
	*n = (struct record_noted){.name_id = name_id,
		.instance = instance,
		.image = image,
		.kind = named ? kind : 0, /* it may be introduced yet */
		.name = (uint32_t)(named >> 32)};
	n->id = kind == NOTED_state   ? convert_state_of(c, named)
		: kind == NOTED_queue ? convert_queue_of(c, t, n->name, instance)
				      : convert_actor_of(c, t, n->name, instance);
	return n;
}

static void declare_capacity(struct record_converter *c, const struct record_thread *t,
	uint64_t name_id, uint64_t instance, uint64_t capacity)
{
	uint32_t object = noted_at(c, t, NOTED_queue, name_id, instance)->id;
	if (!object || record_sink_failed(&c->sink) || c->sink.object[object].capacity == capacity)
		return;
	c->sink.object[object].capacity = capacity;
	record_sink_object_again(&c->sink, object);
}

void record_thread_push_note(
	struct record_converter *c, struct record_thread *t, struct record_note note)
{
	if (!t->note)
		t->note = base_alloc(RECORD_NOTES_MAX * sizeof *t->note);
	if (!t->note)
		record_sink_fail(&c->sink, BASE_ERR_NOMEM, "no memory for annotations");
	else if (t->nr_notes < RECORD_NOTES_MAX)
		t->note[t->nr_notes++] = note;
}

static uint32_t end_note(struct record_converter *c, struct record_thread *t, uint32_t name)
{
	if (t->nr_notes && (!name || t->note[t->nr_notes - 1].name == name))
		return t->note[--t->nr_notes].actor;
	return name ? convert_actor_of(c, t, name, 0) : 0; /* misnested: the model says so */
}

/* Queue verbs and links may end the machine that they stand in. */
static void end_by_flag(struct record_thread *t, uint64_t flags)
{
	if ((flags & LONGPOLE_END) && t->nr_notes)
		t->nr_notes--;
}

/* True: these words mean it whenever this image writes them, and nothing else changes by it. */
static bool convert_note(struct record_converter *c, struct record_thread *t, const uint64_t *word,
	struct trace_record *r)
{
	const struct record_noted *n;
	bool again = false;
	switch (r->kind) {
	case TRACE_note_begin:
		n = noted_at(c, t, NOTED_actor, word[1], word[2]);
		r->u.note_begin.actor = n->id;
		r->u.note_begin.flags = word[3];
		record_thread_push_note(
			c, t, (struct record_note){.actor = n->id, .name = n->name});
		break;
	case TRACE_note_end:
		r->u.note_end.actor = end_note(
			c, t, word[1] ? (uint32_t)(convert_name_of(c, t, word[1]) >> 32) : 0);
		break;
	case TRACE_note_state:
		n = word[1] ? noted_at(c, t, NOTED_state, word[1], 0) : NULL; /* none any more */
		again = n && n->kind != 0;
		r->u.note_state.state = n ? n->id : 0;
		r->u.note_state.flags = word[2];
		break;
	case TRACE_note_act: /* instead of all that the thread spoke for */
		n = noted_at(c, t, NOTED_actor, word[1], word[2]);
		r->u.note_act.actor = n->id;
		t->nr_notes = 0;
		record_thread_push_note(
			c, t, (struct record_note){.actor = n->id, .name = n->name});
		break;
	case TRACE_note_put_item:
	case TRACE_note_take_item: /* of one layout */
		r->u.note_put_item.object = noted_at(c, t, NOTED_queue, word[1], word[2])->id;
		r->u.note_put_item.n = word[3];
		r->u.note_put_item.key = word[4];
		r->u.note_put_item.flags = word[5];
		end_by_flag(t, word[5]);
		r->u.note_put_item.site = record_image_site(&c->world, t->image, word[6]);
		break;
	case TRACE_note_link:
		r->u.note_link.actor =
			word[1] ? noted_at(c, t, NOTED_actor, word[1], word[2])->id : 0;
		r->u.note_link.flags = word[3];
		end_by_flag(t, word[3]);
		break;
	default: /* the queue verbs have one layout */
		n = noted_at(c, t, NOTED_queue, word[1], word[2]);
		again = n->kind && !(word[4] & LONGPOLE_END);
		r->u.note_enqueue.object = n->id;
		r->u.note_enqueue.n = word[3];
		r->u.note_enqueue.flags = word[4];
		end_by_flag(t, word[4]);
		r->u.note_enqueue.site = record_image_site(&c->world, t->image, word[5]);
		break;
	}
	return again;
}

/* ---- records --------------------------------------------------------------------------------- */

static void set_field(struct trace_record *r, uint16_t offset, bool wide, uint64_t value)
{
	uint8_t *p = (uint8_t *)r + offset;
	if (wide)
		memcpy(p, &value, sizeof value);
	else
		memcpy(p, &(uint32_t){(uint32_t)value}, sizeof(uint32_t));
}

static uint32_t take_stack(struct record_converter *c, struct record_thread *t)
{
	uint32_t nr = t->nr_frames;
	t->nr_frames = 0;
	return record_image_stack(&c->world, t->image, t->frame, nr, false);
}

static void object_made(
	struct record_converter *c, struct record_thread *t, const uint64_t *word, uint64_t time_ns)
{
	struct record_made made = {.object = record_image_object(&c->world, t->image, word[1]),
		.init_site = record_image_site(&c->world, t->image, word[2]),
		.heap_site = record_image_site(&c->world, t->image, word[3])};
	for (uint32_t i = 0; word[4] && i < t->nr_frames && i < RECORD_MADE_PATH; i++) {
		uint32_t site = record_image_site(&c->world, t->image, t->frame[i]);
		if (!site)
			break;
		made.path[made.nr_path++] = site;
	}
	t->nr_frames = 0;
	record_sink_object_made(&c->sink, &made);
	struct trace_record r = {.time_ns = time_ns,
		.kind = TRACE_object_new,
		.u.object_new = {.object = made.object, .life = word[5], .site = made.init_site}};
	if (word[5])
		record_thread_put(c, t, &r);
}

/* True: as convert_note(). */
static bool convert_fields(struct record_converter *c, struct record_thread *t,
	const struct record_kind *k, const uint64_t *word, struct trace_record *r)
{
	bool again = true;
	for (unsigned i = 0; i < k->nr_fields; i++) {
		uint64_t value = word[i + 1];
		switch (k->field[i].role) {
		case ROLE_object:
			value = record_image_object(&c->world, t->image, value);
			break;
		case ROLE_site:
			value = record_image_site(&c->world, t->image, value);
			break;
		case ROLE_pid: /* in the namespace of the process that says it */
			if (t->image->pid_ns && value)
				value = record_pids_process(&c->pids, t->image->pid_ns, value);
			again = again && !t->image->pid_ns;
			break;
		case ROLE_stack:
			again = again && !value;
			value = value ? take_stack(c, t) : 0;
			break;
		default:
			break;
		}
		set_field(r, k->field[i].offset, k->field[i].wide, value);
	}
	return again;
}

/* Of these a token_set says how many there may be. */
static bool is_size(uint64_t object)
{
	uint64_t type = (object & ~RING_OBJECT_SHARED) >> RING_OBJECT_TYPE_SHIFT;
	return type == TRACE_OBJECT_barrier || type == TRACE_OBJECT_sysv_messages;
}

/* What some records say about their thread's image and objects. */
static void convert_learn(
	struct record_converter *c, struct record_thread *t, const uint64_t *word, unsigned kind)
{
	if (kind == TRACE_thread_begin) {
		c->nr_threads_begun++;
	} else if (kind == TRACE_process_begin) {
		t->image->begun = true;
		c->nr_forked += word[1] != 0;
		if (word[1])
			record_image_set_forked(&c->world, t->image);
	} else if (kind == TRACE_token_set && is_size(word[1])) {
		record_image_size_object(&c->world, t->image, word[1], word[2]);
	}
}

static void put_affinity(struct record_converter *c, struct record_thread *t, uint64_t time_ns,
	enum trace_whose whose, uint64_t id, const char *list, size_t list_bytes)
{
	struct trace_record r = {.time_ns = time_ns, .kind = TRACE_affinity};
	r.u.affinity.whose = whose;
	r.u.affinity.id = id;
	r.u.affinity.processors = record_sink_text(&c->sink, list, list_bytes);
	record_thread_put(c, t, &r);
}

/* Of a new image, from outside: its starter may have limited it by ways that nobody wraps. The
 * first one began with its starter's, if it has ended before we look. */
static void look_at_affinity(struct record_converter *c, struct record_thread *t, uint64_t time_ns)
{
	char list[RING_AFFINITY_MAX];
	size_t bytes = record_affinity_of(t->pid, t->tid, list);
	if (!bytes && !t->image->parent && c->starter)
		bytes = record_affinity_of(c->starter, c->starter, list);
	if (bytes)
		put_affinity(c, t, time_ns, TRACE_WHOSE_own, 0, list, bytes);
}

static void convert_own(struct record_converter *c, struct record_thread *t, const uint64_t *word,
	unsigned kind, uint64_t time_ns)
{
	struct trace_record r = {.time_ns = time_ns, .kind = TRACE_lost};
	if (kind == RING_stack || kind == RING_descriptor)
		c->nr_of_kind[kind]++;
	switch (kind) {
	case RING_stack:
		t->nr_frames = (uint32_t)word[1];
		memcpy(t->frame, word + 2, t->nr_frames * sizeof *t->frame);
		break;
	case RING_unload:
		record_image_unload(&c->world, t->image, word[1], time_ns);
		break;
	case RING_thread_name:
		t->name = record_sink_text(&c->sink, (const char *)(word + 2), (size_t)word[1]);
		record_sink_stream_again(&c->sink, t->stream, t->image->process, t->tid, t->name);
		break;
	case RING_image:
		record_image_describe(
			&c->world, t->image, (const char *)(word + 3), (size_t)word[2]);
		if (c->world.described && t->image->process)
			c->world.described(c->world.described_ctx, t->image);
		break;
	case RING_affinity:
		put_affinity(c, t, time_ns,
			word[1] < TRACE_WHOSE_NR ? (enum trace_whose)word[1] : TRACE_WHOSE_own,
			word[2], (const char *)(word + 4), (size_t)word[3]);
		break;
	case RING_made:
		object_made(c, t, word, time_ns);
		break;
	case RING_code:
		record_jit_told(&c->world, t->image, word[1], word[2], word[3]);
		break;
	case RING_capacity:
		declare_capacity(c, t, word[1], word[2], word[3]);
		break;
	case RING_exit:
		t->image->exits = true;
		t->image->exit_status = word[1] & 0xff00; /* others end it by a signal */
		break;
	case RING_lost:
		r.u.lost.n = word[1];
		record_thread_put(c, t, &r);
		break;
	case RING_lock_call:
	case RING_lock_return: /* of one layout */
		r.kind = kind == RING_lock_call ? TRACE_lock_call : TRACE_lock_return;
		r.u.lock_call.object = record_image_object(&c->world, t->image, word[1]);
		r.u.lock_call.site = record_image_site(&c->world, t->image, word[2]);
		c->nr_of_kind[r.kind]++;
		record_thread_put(c, t, &r);
		break;
	default:
		convert_introduce(c, t->image, word, kind);
		break;
	}
}

/* A short annotation as the long one of its kind; returns the kind. Each word is read once. */
static unsigned unpack(const uint64_t *word, unsigned kind, uint64_t ret[6])
{
	uint64_t packed = word[1];
	ret[1] = RING_VERB_NAME(packed);
	if (kind == RING_state) {
		ret[2] = packed >> 32;
		return TRACE_note_state;
	}
	ret[2] = word[2];
	ret[3] = RING_VERB_N(packed);
	ret[4] = RING_VERB_FLAGS(packed);
	ret[5] = word[3];
	return RING_VERB_KIND(packed);
}

static bool convert_fixed(struct record_converter *c, struct record_thread *t, const uint64_t *word,
	unsigned kind, struct trace_record *r)
{
	r->kind = (uint16_t)kind;
	if (c->kind[kind].note)
		return convert_note(c, t, word, r);
	convert_learn(c, t, word, kind);
	bool again = convert_fields(c, t, &c->kind[kind], word, r);
	if (kind == TRACE_thread_begin)
		record_sink_site_is_exact(&c->sink, r->u.thread_begin.site);
	return again;
}

/* (apart, like convert_any(): else the loop keeps its numbers in memory) */
static __attribute__((noinline)) void convert_first(struct record_converter *c,
	struct record_thread *t, const uint64_t word[4], unsigned kind, uint64_t time_ns,
	struct record_repeated *remember)
{
	uint64_t whole[6];
	struct trace_record r;
	bool is_short = kind == RING_verb || kind == RING_state;
	unsigned long_kind = is_short ? unpack(word, kind, whole) : kind;
	if (kind == RING_verb && !is_queue_verb(long_kind))
		return; /* changed under our eyes */
	r.time_ns = c->world.now_ns = time_ns;
	c->world.jit.sliced = false;
	bool again = convert_fixed(c, t, is_short ? whole : word, long_kind, &r);
	if (again && !c->world.jit.sliced && c->sink.writer &&
		trace_form_make(&remember->form, &r)) {
		memcpy(remember->word, word + 1, sizeof remember->word);
		remember->image = t->image->number;
		remember->generation = c->world.generation;
		remember->kind = (uint8_t)kind;
	}
	record_thread_put(c, t, &r);
}

static void convert_repeated(struct record_converter *c, struct record_thread *t,
	const uint64_t *word, unsigned kind, uint64_t time_ns)
{
	unsigned nr = words_of[kind];
	c->nr_of_kind[kind]++;
	uint32_t image = t->image->number;
	/* Each is read once: the program may write there. */
	const uint64_t w1 = word[1], w2 = nr > 2 ? word[2] : 0, w3 = nr > 3 ? word[3] : 0;
	uint64_t h = w1 ^ (w2 << 20 | w2 >> 44) ^ (w3 << 40 | w3 >> 24) ^ kind;
	h = (h ^ (uint64_t)image << 8) * 0x9e3779b97f4a7c15u;
	struct record_repeated *known = &c->repeated[h >> 32 & (RECORD_REPEATED - 1)];
	if (BASE_LIKELY(known->word[0] == w1 && known->word[1] == w2 && known->word[2] == w3 &&
			known->kind == kind && known->image == image &&
			known->generation == c->world.generation))
		record_thread_put_form(c, t, time_ns, &known->form);
	else
		convert_first(c, t, (const uint64_t[]){0, w1, w2, w3}, kind, time_ns, known);
}

static __attribute__((noinline)) void convert_any(struct record_converter *c,
	struct record_thread *t, const uint64_t *word, size_t length, unsigned kind,
	uint64_t time_ns)
{
	if (kind < BASE_COUNT(c->kind)) {
		struct trace_record r;
		r.time_ns = c->world.now_ns = time_ns;
		c->nr_of_kind[kind]++;
		(void)convert_fixed(c, t, word, kind, &r);
		record_thread_put(c, t, &r);
		if (kind == TRACE_process_begin)
			look_at_affinity(c, t, time_ns);
		return;
	}
	const uint64_t *copy = own_copy(c, word, length);
	c->world.now_ns = time_ns;
	if (copy)
		convert_own(c, t, copy, kind, time_ns);
}

static void convert_one(struct record_converter *c, struct record_thread *t, const uint64_t *word,
	size_t length, unsigned kind, uint64_t time_ns)
{
	if (BASE_UNLIKELY(!t->started))
		record_thread_start(c, t, time_ns);
	/* (a descriptor is introduced when it is needed: that may be after a call of stdio, before
	 * its records, which have the earlier stamp of its beginning) */
	if (BASE_UNLIKELY(record_thread_next_event_ns(t) <= time_ns) && kind != RING_descriptor)
		record_thread_events(c, t, time_ns);
	if (repeats[kind])
		convert_repeated(c, t, word, kind, time_ns);
	else
		convert_any(c, t, word, length, kind, time_ns);
}

size_t record_convert(struct record_converter *c, struct record_thread *t, const uint64_t *word,
	size_t from, size_t nr, uint64_t horizon, uint64_t limit, enum record_stop *ret_stop)
{
	size_t i = from;
	*ret_stop = RECORD_STOP_end;
	while (i < nr && !record_sink_failed(&c->sink)) {
		uint64_t head = __atomic_load_n(&word[i], __ATOMIC_ACQUIRE);
		uint64_t ticks = head >> 8;
		if (!head) {
			*ret_stop = RECORD_STOP_zero;
			break;
		}
		size_t length = ring_length(word + i, nr - i);
		if (BASE_UNLIKELY(!length || ticks > limit)) {
			*ret_stop = RECORD_STOP_damaged;
			break;
		}
		if (ticks > horizon) {
			*ret_stop = RECORD_STOP_horizon;
			break;
		}
		convert_one(c, t, word + i, length, head & 0xff, os_clock_ns(c->clock, ticks));
		i += length;
	}
	return i;
}

uint64_t record_converter_nr_ring(const struct record_converter *c)
{
	uint64_t nr = 0;
	for (size_t kind = 0; kind < BASE_COUNT(c->nr_of_kind); kind++)
		if (kind != RING_stack && kind != RING_descriptor)
			nr += c->nr_of_kind[kind];
	return nr;
}
