/* SPDX-License-Identifier: Apache-2.0 */
/*
 * listeners.c - which listening socket a connecting one calls: by the address in their names
 * ("tcp LOCAL PEER", as the recorder writes them). All listeners at one address share a queue: they
 * are one after the other, or the kernel chooses among them.
 */
#include "model/model_private.h"

#include <string.h>

enum { ADDRESS_BYTES_MAX = 512 };

struct addresses { /* text -> the first listener there */
	struct base_strtab *texts;
	uint32_t *listener; /* by id of text */
	size_t capacity;
};

/* The protocol and one of the two addresses of "tcp LOCAL PEER"; 0: there is none. */
static size_t listeners_address_in(const char *name, bool peer, char text[ADDRESS_BYTES_MAX])
{
	const char *local = strchr(name, ' '), *second = local ? strchr(local + 1, ' ') : NULL;
	if (!second)
		return 0;
	const char *from = peer ? second : local, *to = peer ? second + strlen(second) : second;
	size_t nr_protocol = (size_t)(local - name), nr_address = (size_t)(to - from);
	if (nr_protocol + nr_address >= ADDRESS_BYTES_MAX || nr_address <= 1 ||
		(nr_address == 2 && from[1] == '-'))
		return 0;
	memcpy(text, name, nr_protocol);
	memcpy(text + nr_protocol, from, nr_address);
	text[nr_protocol + nr_address] = 0;
	return nr_protocol + nr_address;
}

static enum base_status listeners_place_of(struct addresses *a, const char *text, uint32_t **ret)
{
	uint32_t id;
	enum base_status s = base_strtab_intern(a->texts, text, strlen(text), &id);
	if (s == BASE_OK)
		s = base_grow(&a->listener, &a->capacity, (size_t)id + 1, sizeof *a->listener);
	if (s != BASE_OK)
		return s;
	*ret = &a->listener[id];
	return BASE_OK;
}

static enum base_status add_listener(struct model *m, struct addresses *a, uint32_t object)
{
	char text[ADDRESS_BYTES_MAX];
	uint32_t *first;
	m->listener[object] = object;
	if (!listeners_address_in(
		    trace_text_of(m->defs, m->defs->objects[object].name), false, text))
		return BASE_OK;
	enum base_status s = listeners_place_of(a, text, &first);
	if (s != BASE_OK)
		return s;
	if (!*first)
		*first = object;
	m->listener[object] = *first;
	return BASE_OK;
}

/* By the address called, else by a listener at all addresses of that port. */
static enum base_status add_caller(struct model *m, struct addresses *a, uint32_t object)
{
	static const char *const any[] = {"tcp 0.0.0.0", "tcp [0:0:0:0:0:0:0:0]"};
	char text[ADDRESS_BYTES_MAX], wild[ADDRESS_BYTES_MAX];
	uint32_t *first;
	size_t length = listeners_address_in(
		trace_text_of(m->defs, m->defs->objects[object].name), true, text);
	const char *port = length ? strrchr(text, ':') : NULL;
	enum base_status s = length ? listeners_place_of(a, text, &first) : BASE_OK;
	if (s != BASE_OK || !length)
		return s;
	m->listener[object] = *first;
	for (size_t i = 0; port && !strncmp(text, "tcp ", 4) && i < BASE_COUNT(any); i++) {
		size_t nr_any = strlen(any[i]), nr_port = strlen(port);
		if (m->listener[object] || nr_any + nr_port >= sizeof wild)
			break;
		memcpy(wild, any[i], nr_any);
		memcpy(wild + nr_any, port, nr_port + 1);
		s = listeners_place_of(a, wild, &first);
		if (s != BASE_OK)
			return s;
		m->listener[object] = *first;
	}
	if (m->listener[object])
		m->object[m->listener[object]].bytes.called = true;
	return BASE_OK;
}

enum base_status model_find_listeners(struct model *m)
{
	struct addresses a = {.texts = base_strtab_new()};
	enum base_status s = a.texts ? BASE_OK : BASE_ERR_NOMEM;
	for (int callers = 0; callers < 2; callers++)
		for (uint32_t i = 1; i < m->nr_objects && s == BASE_OK; i++) {
			uint64_t type = m->defs->objects[i].type;
			if (type == TRACE_OBJECT_listener && !callers)
				s = add_listener(m, &a, i);
			else if (type == TRACE_OBJECT_socket && callers)
				s = add_caller(m, &a, i);
		}
	base_free(a.listener);
	base_strtab_free(a.texts);
	if (s != BASE_OK)
		return base_fail(m->err, s, "out of memory for the addresses of sockets");
	return BASE_OK;
}
