/* SPDX-License-Identifier: Apache-2.0 */
/* roles.c - actors that do the same: of one program and start routine, or one kind of context, on
 * one host. */
#include "model/model_private.h"

#include <string.h>

/* A kernel thread of every processor is one role: "kworker/0:1" and "kworker/u8:3". */
static bool is_same_kind(const struct model *m, uint32_t a, uint32_t b)
{
	size_t nr_a = model_kind_length(trace_text_of(m->defs, a)),
	       nr_b = model_kind_length(trace_text_of(m->defs, b));
	return nr_a && nr_a == nr_b &&
	       !memcmp(trace_text_of(m->defs, a), trace_text_of(m->defs, b), nr_a);
}

uint32_t model_role_of(struct model *m, uint32_t host, uint32_t process, uint32_t site)
{
	uint32_t name = process < m->defs->nr_processes ? m->defs->processes[process].name : 0;
	uint64_t ix, key = (uint64_t)host << 32 | name;
	if (base_map_get(&m->made.roles, key, site, &ix))
		return (uint32_t)ix;
	if (m->is_system && model_kind_length(trace_text_of(m->defs, name)))
		for (ix = 0; ix < m->made.nr_roles; ix++)
			if (m->made.role[ix].context == TRACE_CONTEXT_none &&
				m->made.role[ix].site == site && m->made.role[ix].host == host &&
				is_same_kind(m, name, m->made.role[ix].process_name)) {
				model_put(m, &m->made.roles, key, site, ix);
				return (uint32_t)ix;
			}
	if (!model_grow(m, &m->made.role, &m->made.role_capacity, m->made.nr_roles + 1,
		    sizeof *m->made.role))
		return 0;
	ix = m->made.nr_roles++;
	m->made.role[ix] = (struct role){
		.host = host, .process_name = name, .site = site, .group_ix = (uint32_t)ix};
	model_put(m, &m->made.roles, key, site, ix);
	return (uint32_t)ix;
}

/* All of one kind are one role, on whatever processor. */
uint32_t model_role_of_context(
	struct model *m, uint32_t host, enum trace_context_type type, uint32_t name)
{
	uint64_t kind = UINT64_C(1) << 32 | type, key = (uint64_t)host << 32 | name, ix;
	if (base_map_get(&m->made.roles, key, kind, &ix))
		return (uint32_t)ix;
	if (!model_grow(m, &m->made.role, &m->made.role_capacity, m->made.nr_roles + 1,
		    sizeof *m->made.role))
		return 0;
	ix = m->made.nr_roles++;
	bool recorder = type == TRACE_CONTEXT_recorder; /* threads as others are */
	m->made.role[ix] = (struct role){.host = host,
		.process_name = name,
		.group_ix = (uint32_t)ix,
		.context = recorder ? TRACE_CONTEXT_none : type,
		.recorder = recorder};
	model_put(m, &m->made.roles, key, kind, ix);
	return (uint32_t)ix;
}
