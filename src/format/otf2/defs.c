/* SPDX-License-Identifier: Apache-2.0 */
/*
 * defs.c - definitions of an OTF2 archive as those of a trace: a location group is a process, a location a
 * stream, a region a site and a state, a communicator an object, a node of the system's tree a host.
 */
#include "format/otf2/private.h"

#include "trace/communicator.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define OTF2_PUT(im, err, kind_, ...)                                                              \
	trace_writer_put((im)->to,                                                                 \
		&(struct trace_record){.kind = TRACE_##kind_, .u.kind_ = {__VA_ARGS__}}, err)

static enum base_status defs_no_memory(struct base_err *err)
{
	base_fail(err, BASE_ERR_NOMEM, "out of memory for definitions");
	return BASE_ERR_NOMEM; /* in sight of analysers */
}

static const char *defs_text(const struct otf2_import *im, uint32_t text)
{
	return text == OTF2_NONE ? "" : base_strtab_get(im->text, text);
}

static uint32_t defs_string(const struct otf2_import *im, uint64_t reference)
{
	uint32_t text = otf2_find(im, OTF2_string_ITEM, reference);
	return text == OTF2_NONE ? 0 : text;
}

/* ---- taking ---------------------------------------------------------------------------------- */

/* "MPI_Send" as the model's number; NONE: it is no row of TRACE_MPI_OPS. */
static uint32_t defs_op_of(const char *name)
{
	static const char *const text[TRACE_MPI_NR] = {
#define X(name, text) text,
		TRACE_MPI_OPS(X)
#undef X
	};
	name += !strncmp(name, "PMPI_", 5);
	for (uint32_t i = 0; i < TRACE_MPI_NR && !strncasecmp(name, "MPI_", 4); i++)
		if (!strcasecmp(text[i], name)) /* (Fortran's names are in any case) */
			return i;
	return OTF2_NONE;
}

static uint32_t defs_reference(uint64_t value)
{
	return value < OTF2_NONE ? (uint32_t)value : OTF2_NONE;
}

/* Makes room for one more of `array`, known by its reference; of two with one the later. */
#define DEFS_ADD(im, array, nr, capacity, kind, reference)                                         \
	(base_grow(&(im)->array, &(im)->capacity, (im)->nr + 1, sizeof *(im)->array) == BASE_OK && \
		base_map_put(&(im)->ids, kind, reference, (im)->nr) == BASE_OK)

static bool defs_take_node(struct otf2_import *im, const struct otf2_item *i)
{
	if (!DEFS_ADD(im, node, nr_nodes, node_capacity, OTF2_node_ITEM, i->value[0]))
		return false;
	im->node[im->nr_nodes++] = (struct otf2_node){.name = defs_string(im, i->value[1]),
		.class_ = defs_string(im, i->value[2]),
		.parent = defs_reference(i->value[3])};
	return true;
}

static bool defs_take_process(struct otf2_import *im, const struct otf2_item *i)
{
	if (!DEFS_ADD(im, process, nr_processes, process_capacity, OTF2_process_ITEM, i->value[0]))
		return false;
	im->process[im->nr_processes++] =
		(struct otf2_process){.name = defs_string(im, i->value[1]),
			.node = defs_reference(i->value[2]),
			.host = 1,
			.rank = OTF2_NONE};
	return true;
}

static bool defs_take_location(struct otf2_import *im, const struct otf2_item *i)
{
	uint32_t process = otf2_find(im, OTF2_process_ITEM, i->value[2]);
	if (!DEFS_ADD(
		    im, location, nr_locations, location_capacity, OTF2_location_ITEM, i->value[0]))
		return false;
	im->location[im->nr_locations++] =
		(struct otf2_location){.name = defs_string(im, i->value[1]),
			.process = process,
			.reference = i->value[0],
			.rank = OTF2_NONE};
	return true;
}

static bool defs_take_region(struct otf2_import *im, const struct otf2_item *i)
{
	uint32_t name = defs_string(im, i->value[1]);
	const char *text = defs_text(im, name);
	if (!DEFS_ADD(im, region, nr_regions, region_capacity, OTF2_region_ITEM, i->value[0]))
		return false;
	im->region[im->nr_regions++] = (struct otf2_region){.name = name,
		.file = defs_string(im, i->value[3]),
		.line = i->value[4],
		.op = defs_op_of(text),
		.is_mpi = i->value[2] == 1 || !strncasecmp(text, "MPI_", 4)};
	return true;
}

static bool defs_take_group(struct otf2_import *im, const struct otf2_item *i)
{
	if (!DEFS_ADD(im, group, nr_groups, group_capacity, OTF2_group_ITEM, i->value[0]))
		return false;
	im->group[im->nr_groups++] = (struct otf2_group){
		.type = i->value[1], .flags = i->value[2], .first = im->nr_group_members};
	im->group[im->nr_groups - 1].nr = i->value[3];
	return true;
}

static bool defs_take_members(struct otf2_import *im, const struct otf2_item *i)
{
	struct otf2_group *g = im->nr_groups ? &im->group[im->nr_groups - 1] : NULL;
	if (!g)
		return true;
	if (base_grow(&im->group_member, &im->group_member_capacity,
		    im->nr_group_members + OTF2_VALUES, sizeof *im->group_member) != BASE_OK)
		return false;
	for (unsigned k = 0; k < OTF2_VALUES && im->nr_group_members < g->first + g->nr; k++)
		im->group_member[im->nr_group_members++] = i->value[k];
	return true;
}

static bool defs_take_comm(struct otf2_import *im, const struct otf2_item *i)
{
	if (!DEFS_ADD(im, comm, nr_comms, comm_capacity, OTF2_comm_ITEM, i->value[0]))
		return false;
	im->comm[im->nr_comms++] = (struct otf2_comm){.name = defs_string(im, i->value[1]),
		.group = otf2_find(im, OTF2_group_ITEM, i->value[2]),
		.parent = defs_reference(i->value[3])};
	return true;
}

static bool defs_take_window(struct otf2_import *im, const struct otf2_item *i)
{
	if (!DEFS_ADD(im, window, nr_windows, window_capacity, OTF2_window_ITEM, i->value[0]))
		return false;
	im->window[im->nr_windows++] = defs_reference(i->value[1]);
	return true;
}

static bool defs_take_string(struct otf2_import *im, const struct otf2_item *i)
{
	return base_map_put(&im->ids, OTF2_string_ITEM, i->value[0], im->said) == BASE_OK;
}

static bool defs_take_clock(struct otf2_import *im, const struct otf2_item *i)
{
	im->ticks_a_second = i->value[0];
	im->first_tick = i->value[1];
	return true;
}

enum base_status format_otf2_take_definition(
	struct otf2_import *im, const struct otf2_item *i, struct base_err *err)
{
	static bool (*const take[OTF2_begin_ITEM])(
		struct otf2_import * im, const struct otf2_item *i) = {
		[OTF2_clock_ITEM] = defs_take_clock,
		[OTF2_string_ITEM] = defs_take_string,
		[OTF2_node_ITEM] = defs_take_node,
		[OTF2_process_ITEM] = defs_take_process,
		[OTF2_location_ITEM] = defs_take_location,
		[OTF2_region_ITEM] = defs_take_region,
		[OTF2_group_ITEM] = defs_take_group,
		[OTF2_members_ITEM] = defs_take_members,
		[OTF2_comm_ITEM] = defs_take_comm,
		[OTF2_window_ITEM] = defs_take_window,
	};
	return take[i->kind](im, i) ? BASE_OK : defs_no_memory(err);
}

/* ---- who is where ---------------------------------------------------------------------------- */

/* The machine that a node of the tree is, or lies in: NONE, if the tree does not say. (A tree that is
 * a ring by damage is left after as many steps as it has nodes.) */
static uint32_t defs_machine_of(const struct otf2_import *im, uint32_t reference)
{
	uint32_t i = otf2_find(im, OTF2_node_ITEM, reference);
	for (size_t n = 0; i != OTF2_NONE && n < im->nr_nodes; n++) {
		if (!strcmp(defs_text(im, im->node[i].class_), "node"))
			return i;
		i = otf2_find(im, OTF2_node_ITEM, im->node[i].parent);
	}
	return OTF2_NONE;
}

/* Machines are numbered as their first processes come. Their number; 0: no memory. */
static uint32_t defs_number_hosts(struct otf2_import *im, uint32_t **ret_node)
{
	uint32_t *number = base_alloc((im->nr_nodes + 1) * sizeof *number), nr = 0;
	*ret_node = base_alloc((im->nr_nodes + 2) * sizeof **ret_node);
	if (*ret_node)
		(*ret_node)[1] = OTF2_NONE;
	for (size_t i = 0; number && *ret_node && i < im->nr_processes; i++) {
		uint32_t node = defs_machine_of(im, im->process[i].node);
		size_t at = node == OTF2_NONE ? im->nr_nodes : node;
		if (!number[at]) {
			number[at] = ++nr;
			(*ret_node)[nr] = node;
		}
		im->process[i].host = number[at];
	}
	nr = number && *ret_node && !nr ? 1 : number && *ret_node ? nr : 0;
	base_free(number);
	return nr;
}

/* The location that a member of a group stands for; NONE: there is no such. */
static uint32_t defs_location_of(const struct otf2_import *im, const struct otf2_group *g,
	const struct otf2_group *ranks, size_t i)
{
	uint64_t member = im->group_member[g->first + i];
	if (g->type == OTF2_GROUP_OF_RANKS && !(g->flags & OTF2_GROUP_HAS_REFERENCES)) {
		if (!ranks || member >= ranks->nr)
			return OTF2_NONE;
		member = im->group_member[ranks->first + member];
	}
	return otf2_find(im, OTF2_location_ITEM, member);
}

static const struct otf2_group *defs_ranks(const struct otf2_import *im)
{
	for (size_t i = 0; i < im->nr_groups; i++)
		if (im->group[i].type == OTF2_GROUP_OF_LOCATIONS)
			return &im->group[i];
	return NULL;
}

/* (A group that was cut has fewer members than it says.) */
static void defs_mend_groups(struct otf2_import *im)
{
	for (size_t i = 0; i < im->nr_groups; i++) {
		size_t end = i + 1 < im->nr_groups ? im->group[i + 1].first : im->nr_group_members;
		im->group[i].nr = end - im->group[i].first;
	}
}

/* The world is the communicator that was made of no other and has all ranks. */
static void defs_find_world(struct otf2_import *im, const struct otf2_group *ranks)
{
	struct otf2_comm *world = NULL;
	for (size_t i = 0; i < im->nr_comms; i++) {
		struct otf2_comm *c = &im->comm[i];
		if (c->group == OTF2_NONE)
			continue;
		bool has_all = ranks && im->group[c->group].nr == ranks->nr,
		     is_named = !strcmp(defs_text(im, c->name), "MPI_COMM_WORLD");
		c->is_used = true;
		if (is_named || (!world && has_all && c->parent == OTF2_NONE))
			world = c;
	}
	if (world)
		world->is_world = true;
}

/* The members that each location meets, in one array, by location. */
static bool defs_list_members(struct otf2_import *im, const struct otf2_group *ranks)
{
	for (unsigned pass = 0; pass < 2; pass++) {
		size_t nr = 0;
		for (size_t i = 0; i < im->nr_locations; i++) {
			im->location[i].first_member = (uint32_t)nr;
			nr += im->location[i].nr_members;
			im->location[i].nr_members = 0;
		}
		if (nr >= OTF2_NONE)
			return false;
		im->member = pass ? base_alloc((nr + 1) * sizeof *im->member) : NULL;
		im->nr_members = nr;
		if (pass && !im->member)
			return false;
		for (size_t c = 0; c < im->nr_comms; c++) {
			const struct otf2_group *g =
				im->comm[c].is_used ? &im->group[im->comm[c].group] : NULL;
			for (size_t i = 0; g && i < g->nr; i++) {
				uint32_t at = defs_location_of(im, g, ranks, i);
				if (at == OTF2_NONE)
					continue;
				struct otf2_location *l = &im->location[at];
				if (pass)
					im->member[l->first_member + l->nr_members] =
						(struct otf2_member){
							(uint32_t)c, (uint32_t)i, (uint32_t)g->nr};
				l->nr_members++;
				if (im->comm[c].is_world && l->process != OTF2_NONE)
					im->process[l->process].rank = (uint32_t)i;
			}
		}
	}
	return true;
}

/* ---- writing --------------------------------------------------------------------------------- */

/* "MPI Rank 3" says no more than the rank; of "app rank 3" the program is app. */
static uint32_t defs_program_of(const struct otf2_import *im, const struct otf2_process *p)
{
	static const char mark[] = " rank ";
	const char *name = defs_text(im, p->name), *at = NULL;
	for (const char *s = name; *s; s++)
		if (!strncasecmp(s, mark, sizeof mark - 1) && s[sizeof mark - 1] &&
			!s[sizeof mark - 1 + strspn(s + sizeof mark - 1, "0123456789")])
			at = s;
	size_t length = at ? (size_t)(at - name) : strlen(name);
	bool says_nothing = !length || (at && length == 3 && !strncasecmp(name, "MPI", 3)) ||
			    !strncmp(name, "Process", 7) || !strncmp(name, "Master", 6);
	uint32_t id = 0;
	const char *text = says_nothing ? im->program : name;
	if (base_strtab_intern(im->text, text, says_nothing ? strlen(text) : length, &id) !=
		BASE_OK)
		return 0;
	return id;
}

struct defs_order { /* streams stand by host, then by process */
	uint32_t host, process, location;
};

static int defs_by_host(const void *pa, const void *pb)
{
	const struct defs_order *a = pa, *b = pb;
	if (a->host != b->host)
		return a->host < b->host ? -1 : 1;
	if (a->process != b->process)
		return a->process < b->process ? -1 : 1;
	return a->location < b->location ? -1 : a->location > b->location;
}

/* Names that are made of others are there before all are written. */
static enum base_status defs_write_texts(
	struct otf2_import *im, uint32_t **ret_program, struct base_err *err)
{
	uint32_t *program = *ret_program =
		base_alloc((im->nr_processes + 1) * sizeof **ret_program);
	enum base_status s = program ? BASE_OK : defs_no_memory(err);
	for (size_t i = 0; s == BASE_OK && i < im->nr_processes; i++)
		program[i] = defs_program_of(im, &im->process[i]);
	for (uint32_t i = 1; s == BASE_OK && i < base_strtab_count(im->text); i++) {
		const char *text = base_strtab_get(im->text, i);
		s = OTF2_PUT(im, err, string, .string = i,
			.text = {.bytes = text, .length = (uint32_t)strlen(text)});
	}
	return s;
}

static enum base_status defs_write_streams(struct otf2_import *im, const uint32_t *program,
	const struct defs_order *order, uint32_t last_of_host[], struct base_err *err)
{
	enum base_status s = BASE_OK;
	uint32_t nr_processes = 0;
	for (uint32_t i = 0; s == BASE_OK && i < im->nr_locations; i++) {
		struct otf2_location *l = &im->location[order[i].location];
		l->stream = i + 1;
		last_of_host[order[i].host] = l->stream;
		l->is_first = !i || order[i].process == OTF2_NONE ||
			      order[i].process != order[i - 1].process;
		if (l->is_first) {
			uint32_t name = l->process == OTF2_NONE ? 0 : program[l->process];
			nr_processes++;
			s = OTF2_PUT(im, err, process, .process = nr_processes, .pid = nr_processes,
				.name = name, .command = name);
		}
		if (l->process != OTF2_NONE)
			im->process[l->process].id = nr_processes;
		if (s == BASE_OK)
			s = OTF2_PUT(im, err, stream, .stream = l->stream, .process = nr_processes,
				.tid = l->stream, .name = l->is_first ? 0 : l->name);
	}
	return s;
}

static enum base_status defs_write_hosts(struct otf2_import *im, const uint32_t node_of_host[],
	const uint32_t last_of_host[], uint32_t nr_hosts, struct base_err *err)
{
	enum base_status s = BASE_OK;
	for (uint32_t i = 1, last = 0; s == BASE_OK && i <= nr_hosts; i++) {
		uint32_t node = node_of_host[i];
		last = last_of_host[i] > last ? last_of_host[i] : last;
		s = OTF2_PUT(im, err, host, .host = i,
			.name = node < im->nr_nodes ? im->node[node].name : 0, .last_stream = last);
	}
	return s;
}

/* (A place is of no module, and has no address: its number stands for that.) */
static enum base_status defs_write_places(struct otf2_import *im, struct base_err *err)
{
	enum base_status s = OTF2_PUT(im, err, module, .module = 1);
	for (uint32_t i = 0; s == BASE_OK && i < im->nr_regions; i++) {
		const struct otf2_region *r = &im->region[i];
		uint64_t offset = (uint64_t)(i + 1) << 4;
		s = OTF2_PUT(im, err, site, .site = i + 1, .module = 1, .offset = offset);
		if (s == BASE_OK)
			s = OTF2_PUT(im, err, symbol, .site = i + 1, .function = r->name,
				.file = r->file, .line = r->line == OTF2_NONE ? 0 : r->line,
				.function_offset = offset);
		if (s == BASE_OK && !r->is_mpi)
			s = OTF2_PUT(
				im, err, state, .state = i + 1, .name = r->name, .site = i + 1);
	}
	for (uint32_t i = 0; s == BASE_OK && i < im->nr_comms; i++)
		s = OTF2_PUT(im, err, object, .object = i + 1, .type = TRACE_OBJECT_communicator,
			.address = trace_communicator_mix(i + UINT64_C(1)) &
				   TRACE_COMMUNICATOR_ADDRESS,
			.name = im->comm[i].name);
	return s;
}

static enum base_status defs_write(struct otf2_import *im, struct base_err *err)
{
	uint32_t *program = NULL, *node_of_host = NULL, *last_of_host = NULL;
	struct defs_order *order = base_alloc((im->nr_locations + 1) * sizeof *order);
	uint32_t nr_hosts = defs_number_hosts(im, &node_of_host);
	last_of_host = base_alloc((nr_hosts + 1) * sizeof *last_of_host);
	enum base_status s = order && nr_hosts && last_of_host ? BASE_OK : defs_no_memory(err);
	for (uint32_t i = 0; s == BASE_OK && i < im->nr_locations; i++) {
		uint32_t process = im->location[i].process;
		order[i] = (struct defs_order){
			process == OTF2_NONE ? 1 : im->process[process].host, process, i};
	}
	if (s == BASE_OK) {
		qsort(order, im->nr_locations, sizeof *order, defs_by_host);
		s = defs_write_texts(im, &program, err);
	}
	if (s == BASE_OK)
		s = defs_write_streams(im, program, order, last_of_host, err);
	if (s == BASE_OK)
		s = defs_write_hosts(im, node_of_host, last_of_host, nr_hosts, err);
	if (s == BASE_OK)
		s = defs_write_places(im, err);
	base_free(program);
	base_free(node_of_host);
	base_free(last_of_host);
	base_free(order);
	return s;
}

enum base_status format_otf2_settle(struct otf2_import *im, struct base_err *err)
{
	im->is_settled = true;
	defs_mend_groups(im);
	const struct otf2_group *ranks = defs_ranks(im);
	if (!im->nr_locations)
		return base_fail(err, BASE_ERR_FOREIGN, "no thread is defined in it");
	if (!im->ticks_a_second)
		return base_fail(err, BASE_ERR_FOREIGN, "it does not say how fast its clock is");
	defs_find_world(im, ranks);
	if (!defs_list_members(im, ranks))
		return defs_no_memory(err);
	return defs_write(im, err);
}
