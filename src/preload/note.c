/* SPDX-License-Identifier: Apache-2.0 */
/* note.c - what the verbs of longpole/annotate.h call. */
#include "preload/preload.h"
#define LONGPOLE_DISABLE /* types and flags only */
#include "longpole/annotate.h"

#include <string.h>

/*
 * A place's id is image << 32 | number: a fork's child names its places anew. Two threads may name
 * one place at the same time; then it has two ids, which mean the same.
 */
static PRELOAD_COLD uint64_t note_introduce(
	struct longpole_place *place, uint64_t type, uint64_t site)
{
	uint64_t number = __atomic_add_fetch(&preload_fresh.next_name, 1, __ATOMIC_RELAXED);
	size_t nr_bytes = strnlen(place->name, RING_TEXT_MAX);
	preload_record_text(RING_name, (const uint64_t[]){number, type, site, nr_bytes}, 4,
		place->name, nr_bytes);
	__atomic_store_n(
		&place->id, (uint64_t)preload_fresh.image << 32 | number, __ATOMIC_RELEASE);
	return number;
}

PRELOAD_INLINE uint64_t name_of(struct longpole_place *place, uint64_t type, uint64_t site)
{
	uint64_t id = __atomic_load_n(&place->id, __ATOMIC_ACQUIRE);
	if (PRELOAD_LIKELY(id >> 32 == preload_fresh.image))
		return id & UINT32_MAX;
	return note_introduce(place, type, site);
}

static void note_begin(struct longpole_place *place, uint64_t instance, uint64_t flags)
{
	if (preload_on())
		PRELOAD_RECORD(
			note_begin, name_of(place, RING_NAME_actor, PRELOAD_SITE), instance, flags);
}

static void note_end(struct longpole_place *place)
{
	if (preload_on())
		PRELOAD_RECORD(note_end, name_of(place, RING_NAME_actor, PRELOAD_SITE));
}

static void note_state(struct longpole_place *place, uint64_t flags)
{
	if (!preload_on())
		return;
	uint64_t name = name_of(place, RING_NAME_state, PRELOAD_SITE);
	preload_record_at(preload_now(), RING_state, PRELOAD_WORDS(name | flags << 32));
}

static void note_queue(enum longpole_verb verb, struct longpole_place *place, uint64_t instance,
	uint64_t n, uint64_t flags)
{
	uint64_t site = PRELOAD_SITE;
	if (!preload_on())
		return;
	uint64_t name = name_of(place, RING_NAME_queue, site);
	if (PRELOAD_LIKELY(n <= UINT16_MAX && flags <= UINT8_MAX))
		preload_record_at(preload_now(), RING_verb,
			PRELOAD_WORDS(ring_verb(name, flags, verb, n), instance, site));
	else
		preload_record_at(
			preload_now(), verb, PRELOAD_WORDS(name, instance, n, flags, site));
}

/* Both in one piece of the ring: one time stamp, which is most of what a verb costs. */
static void note_queue_state(enum longpole_verb verb, struct longpole_place *place,
	uint64_t instance, uint64_t n, uint64_t flags, struct longpole_place *state)
{
	enum { VERB_WORDS = 4, STATE_WORDS = 2 };
	uint64_t site = PRELOAD_SITE;
	if (!preload_on())
		return;
	if (PRELOAD_RARE(n > UINT16_MAX || flags > UINT8_MAX)) {
		note_queue(verb, place, instance, n, flags);
		note_state(state, 0);
		return;
	}
	uint64_t name = name_of(place, RING_NAME_queue, site);
	uint64_t state_name = name_of(state, RING_NAME_state, site);
	uint64_t tsc = preload_now(), *record = preload_reserve(VERB_WORDS + STATE_WORDS);
	if (PRELOAD_RARE(!record))
		return;
	record[1] = ring_verb(name, flags, verb, n);
	record[2] = instance;
	record[3] = site;
	preload_publish(record, RING_verb, tsc);
	record[VERB_WORDS + 1] = state_name;
	preload_publish(record + VERB_WORDS, RING_state, tsc);
}

static void note_capacity(struct longpole_place *place, uint64_t instance, uint64_t n)
{
	uint64_t site = PRELOAD_SITE;
	if (!preload_on())
		return;
	uint64_t name = name_of(place, RING_NAME_queue, site);
	preload_record_at(preload_now(), RING_capacity, PRELOAD_WORDS(name, instance, n));
}

static void note_item(enum longpole_verb verb, struct longpole_place *place, uint64_t instance,
	uint64_t key, uint64_t n, uint64_t flags)
{
	uint64_t site = PRELOAD_SITE;
	if (!preload_on())
		return;
	uint64_t name = name_of(place, RING_NAME_queue, site);
	preload_record_at(preload_now(), verb, PRELOAD_WORDS(name, instance, n, key, flags, site));
}

static void note_act(struct longpole_place *place, uint64_t instance)
{
	if (preload_on())
		PRELOAD_RECORD(note_act, name_of(place, RING_NAME_actor, PRELOAD_SITE), instance);
}

static void note_link(struct longpole_place *place, uint64_t instance, uint64_t flags)
{
	if (preload_on())
		PRELOAD_RECORD(note_link, place ? name_of(place, RING_NAME_actor, PRELOAD_SITE) : 0,
			instance, flags);
}

static void note_identify(uint64_t connection)
{
	if (preload_on())
		PRELOAD_RECORD(note_identify, connection);
}

static uint64_t note_get_id(void)
{
	if (!preload_on())
		return 0;
	uint64_t count = __atomic_add_fetch(&preload_fresh.next_connection, 1, __ATOMIC_RELAXED);
	/* 1, 2, 3, ... in the first process; unique in all of them */
	uint64_t connection = (uint64_t)(uint32_t)(preload_fresh.image - 1) << 32 | count;
	PRELOAD_RECORD(note_identify, connection);
	return connection;
}

const struct longpole_hooks preload_hooks = {
	.bytes = sizeof preload_hooks,
	.begin = note_begin,
	.end = note_end,
	.state = note_state,
	.queue = note_queue,
	.link = note_link,
	.identify = note_identify,
	.get_id = note_get_id,
	.item = note_item,
	.act = note_act,
	.queue_state = note_queue_state,
	.capacity = note_capacity,
};
