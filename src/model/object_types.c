/* SPDX-License-Identifier: Apache-2.0 */
/* object_types.c - what is known of each type of object: asks the table. */
#include "model/model_private.h"

bool model_object_is(enum trace_object_type type, enum model_trait trait)
{
	static const unsigned traits[MODEL_TYPE_NR] = {
#define OBJECT(type, discipline, traits) [TRACE_OBJECT_##type] = (traits),
#define NAMELESS(type, traits, handover, queue)
#include "model/object_types.def"
#define OBJECT(type, discipline, traits)
#define NAMELESS(type, traits, handover, queue) [type] = (traits),
#include "model/object_types.def"
	};
	return (unsigned)type < MODEL_TYPE_NR && traits[type] & (unsigned)trait;
}

bool model_state_about(const struct model *m, uint32_t state, enum model_trait trait)
{
	const struct model_state *st = model_state(m, state);
	return st->object && st->object < m->defs->nr_objects &&
	       model_object_is((enum trace_object_type)m->defs->objects[st->object].type, trait);
}

enum graph_discipline model_object_discipline(enum trace_object_type type)
{
	static const enum graph_discipline discipline[TRACE_OBJECT_NR] = {
#define OBJECT(type, discipline, traits) [TRACE_OBJECT_##type] = GRAPH_##discipline,
#define NAMELESS(type, traits, handover, queue)
#include "model/object_types.def"
	};
	return (unsigned)type < TRACE_OBJECT_NR ? discipline[type] : GRAPH_FIFO;
}

const struct model_nameless *model_nameless(enum trace_object_type type)
{
	static const struct model_nameless nameless[] = {
#define OBJECT(type, discipline, traits)
#define NAMELESS(type, traits, handover, queue) {type, MODEL_CAUSE_##handover, queue},
#include "model/object_types.def"
	};
	size_t i = 0;
	while (i < BASE_COUNT(nameless) - 1 && nameless[i].type != type)
		i++;
	return &nameless[i];
}
