/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sockets.c - which sockets of different inputs are two ends of one connection, by their addresses;
 * which pipes of one machine are the same.
 *
 * Addresses are used again, one connection after the other: the n-th end on one side belongs to the
 * n-th on the other; where one side has more, to the one that was first used at about the same
 * time.
 */
#include "merge/private.h"

#include <stdlib.h>
#include <string.h>

/* Wall clocks of machines differ by less; a port is used again later (TIME_WAIT is a minute). */
#define REUSE_NS INT64_C(20000000000)

/* ---- names ----------------------------------------------------------------------------------- */

struct address {
	const char *text;
	size_t length;
};

static bool sockets_begins_with(struct address a, const char *prefix)
{
	size_t n = strlen(prefix);
	return a.length >= n && !memcmp(a.text, prefix, n);
}

static bool is_local(struct address a)
{
	return sockets_begins_with(a, "127.") || sockets_begins_with(a, "[::1]") ||
	       sockets_begins_with(a, "[0:0:0:0:0:0:0:1]") ||
	       sockets_begins_with(a, "[::ffff:127.") ||
	       sockets_begins_with(a, "[0:0:0:0:0:ffff:7f");
}

static unsigned sockets_hex(const char **text, const char *end)
{
	unsigned v = 0;
	for (; *text < end; ++*text) {
		char c = **text;
		unsigned digit = c >= '0' && c <= '9'   ? (unsigned)(c - '0')
				 : c >= 'a' && c <= 'f' ? (unsigned)(c - 'a') + 10
							: 16;
		if (digit > 15)
			break;
		v = (v << 4 | digit) & 0xffff;
	}
	return v;
}

/* An IPv4 address that one end sees as IPv6 is the same address. */
static void sockets_add_address(struct base_str *out, struct address a)
{
	static const char mapped[] = "[0:0:0:0:0:ffff:";
	if (!sockets_begins_with(a, mapped)) {
		base_str_add_bytes(out, a.text, a.length);
		return;
	}
	const char *p = a.text + sizeof mapped - 1, *end = a.text + a.length;
	unsigned high = sockets_hex(&p, end);
	if (p < end && *p == ':')
		p++;
	unsigned low = sockets_hex(&p, end);
	if (p < end && *p == ']')
		p++;
	base_str_addf(out, "%u.%u.%u.%u", high >> 8, high & 255, low >> 8, low & 255);
	base_str_add_bytes(out, p, (size_t)(end - p));
}

/* "tcp LOCAL PEER" into what both ends have in common; false: not connected, or not TCP. `host` is
 * added when the address means something on one machine only. */
static bool connection_name(
	const char *name, uint32_t host, struct base_str *ret, unsigned *ret_side)
{
	struct address own, peer;
	if (strncmp(name, "tcp ", 4) != 0)
		return false;
	own.text = name + 4;
	const char *space = strchr(own.text, ' ');
	if (!space || !space[1])
		return false;
	own.length = (size_t)(space - own.text);
	peer.text = space + 1;
	peer.length = strlen(peer.text);
	if (own.length < 3 || peer.length < 3)
		return false; /* "-": not connected */
	struct base_str a = {0}, b = {0};
	sockets_add_address(&a, own);
	sockets_add_address(&b, peer);
	int sign = strcmp(base_str_text(&a), base_str_text(&b));
	*ret_side = sign > 0;
	base_str_reset(ret);
	base_str_addf(
		ret, "%s %s", base_str_text(sign > 0 ? &b : &a), base_str_text(sign > 0 ? &a : &b));
	if (is_local(own) || is_local(peer))
		base_str_addf(ret, " on %u", host);
	ret->failed |= a.failed || b.failed;
	base_str_fini(&a);
	base_str_fini(&b);
	return sign != 0; /* else connected to itself */
}

/* ---- names that mean something on one machine only ------------------------------------------- */

static uint64_t sockets_hash_text(const char *text)
{
	uint64_t h = 0;
	for (; *text; text++)
		h = base_hash_u64(h ^ (unsigned char)*text);
	return h;
}

static bool is_at_all_addresses(const struct trace_object *o, const char *name)
{
	return o->type == TRACE_OBJECT_listener &&
	       (!strncmp(name, "tcp 0.0.0.0:", 12) || !strncmp(name, "tcp [0:0:0:0:0:0:0:0]:", 22));
}

static enum base_status find_listeners(struct merge *m)
{
	enum base_status status = BASE_OK;
	for (uint32_t i = 0; i < m->nr_inputs && m->nr_hosts > 1; i++) {
		const struct merge_input *in = &m->input[i];
		for (uint32_t n = 1; n < in->defs->nr_objects && status == BASE_OK; n++) {
			const struct trace_object *o = &in->defs->objects[n];
			const char *name = trace_text_of(in->defs, o->name);
			uint64_t host = in->host_number, known;
			if (!is_at_all_addresses(o, name))
				continue;
			if (base_map_get(&m->listeners, 0, sockets_hash_text(name), &known) &&
				known != host)
				host = 0;
			status = base_map_put(&m->listeners, 0, sockets_hash_text(name), host);
		}
	}
	return status;
}

static bool is_of_one_machine(const struct merge *m, const struct trace_object *o, const char *name)
{
	uint64_t host = 0;
	const char *own = strchr(name, ' '), *peer = own ? strchr(own + 1, ' ') : NULL;
	if (!own || (o->type != TRACE_OBJECT_socket && o->type != TRACE_OBJECT_listener))
		return false;
	if (!strncmp(name, "unix ", 5))
		return true;
	struct address a = {own + 1, strlen(own + 1)}, b = {peer ? peer + 1 : "", 0};
	b.length = strlen(b.text);
	return is_local(a) || is_local(b) ||
	       (is_at_all_addresses(o, name) &&
		       base_map_get(&m->listeners, 0, sockets_hash_text(name), &host) && !host);
}

bool merge_local_name(
	const struct merge *m, const struct merge_input *in, uint32_t object, struct base_str *ret)
{
	const struct trace_object *o = &in->defs->objects[object];
	const char *name = trace_text_of(in->defs, o->name), *at = name;
	if (!is_of_one_machine(m, o, name))
		return false;
	base_str_reset(ret);
	for (bool is_address = false; *at; is_address = true) {
		size_t n = strcspn(at, " ");
		base_str_add_bytes(ret, at, n);
		if (is_address && !(n == 1 && *at == '-'))
			base_str_addf(ret, "@%s", in->host);
		at += n;
		if (*at) {
			base_str_add(ret, " ");
			at++;
		}
	}
	return true;
}

/* ---- what was done with them ----------------------------------------------------------------- */

static void tally(struct merge_input *in, const struct trace_record *r)
{
	uint32_t object = r->kind == TRACE_io_begin ? r->u.io_begin.object
			  : r->kind == TRACE_io_end ? r->u.io_end.object
						    : 0;
	if (!object || object >= in->defs->nr_objects)
		return;
	struct merge_object *o = &in->object[object];
	if (o->first_ns == UINT64_MAX)
		o->first_ns = r->time_ns;
	if (r->kind != TRACE_io_end || r->u.io_end.result <= 0)
		return;
	if (r->u.io_end.op == TRACE_IO_write)
		o->written_bytes += (uint64_t)r->u.io_end.result;
	if (r->u.io_end.op == TRACE_IO_read)
		o->read_bytes += (uint64_t)r->u.io_end.result;
}

static enum base_status sockets_look_at_batch(struct merge *m, uint32_t input)
{
	struct merge_input *in = &m->input[input];
	for (size_t n = 0; n < in->batch.nr; n++) {
		const struct trace_record *r = &in->batch.record[n];
		in->lost |= r->kind == TRACE_lost;
		tally(in, r);
		enum base_status status = merge_messages_record(m->messages, input, r);
		if (status != BASE_OK)
			return base_fail(m->err, status, "no memory for messages");
	}
	m->done_records += in->batch.nr;
	return BASE_OK;
}

static enum base_status sockets_look(struct merge *m)
{
	for (uint32_t i = 0; i < m->nr_inputs; i++) {
		struct merge_input *in = &m->input[i];
		enum base_status status = BASE_OK;
		while (status == BASE_OK) {
			status = trace_reader_next(in->reader, &in->batch, m->err);
			if (status == BASE_OK)
				status = sockets_look_at_batch(m, i);
			if (m->opts->progress)
				m->opts->progress(m->opts->progress_ctx, "looking at connections",
					m->done_records, m->all_records);
		}
		if (status != BASE_END)
			return status;
		const uint64_t *count = trace_reader_health(in->reader)->count;
		in->lost |= count[TRACE_DIAG_records_lost] || count[TRACE_DIAG_chunks_damaged] ||
			    count[TRACE_DIAG_tail_cut] || count[TRACE_DIAG_ring_damaged];
	}
	enum base_status status = merge_messages_counted(m->messages);
	return status == BASE_OK ? merge_rewind(m)
				 : base_fail(m->err, status, "no memory for messages");
}

/* ---- ends ------------------------------------------------------------------------------------ */

struct candidate {
	uint32_t name;
	unsigned side;
	int64_t first_ns; /* by the wall clock; INT64_MAX: never used */
	struct merge_end end;
};
struct candidates {
	struct candidate *row;
	size_t nr, capacity;
	struct base_strtab *names;
};

static int sockets_in_order(const void *pa, const void *pb)
{
	const struct candidate *a = pa, *b = pb;
	if (a->name != b->name)
		return a->name < b->name ? -1 : 1;
	if (a->side != b->side)
		return a->side < b->side ? -1 : 1;
	if (a->first_ns != b->first_ns)
		return a->first_ns < b->first_ns ? -1 : 1;
	if (a->end.input != b->end.input)
		return a->end.input < b->end.input ? -1 : 1;
	return (a->end.object > b->end.object) - (a->end.object < b->end.object);
}

static enum base_status sockets_gather(struct merge *m, struct candidates *c)
{
	struct base_str name = {0};
	enum base_status status = BASE_OK;
	for (uint32_t i = 0; i < m->nr_inputs && status == BASE_OK; i++) {
		const struct merge_input *in = &m->input[i];
		for (uint32_t n = 1; n < in->defs->nr_objects && status == BASE_OK; n++) {
			const struct trace_object *o = &in->defs->objects[n];
			struct candidate row = {.end = {i, n}, .first_ns = INT64_MAX};
			if (o->type != TRACE_OBJECT_socket || o->pair ||
				!connection_name(trace_text_of(in->defs, o->name), in->host_number,
					&name, &row.side))
				continue;
			if (name.failed) {
				status = BASE_ERR_NOMEM;
				break;
			}
			if (in->object[n].first_ns != UINT64_MAX)
				row.first_ns = merge_wall_time(m, in, in->object[n].first_ns);
			status = base_strtab_intern(
				c->names, base_str_text(&name), name.length, &row.name);
			if (status == BASE_OK)
				status =
					base_grow(&c->row, &c->capacity, c->nr + 1, sizeof *c->row);
			if (status == BASE_OK)
				c->row[c->nr++] = row;
		}
	}
	base_str_fini(&name);
	return status;
}

static bool adds_up(const struct merge *m, struct merge_end from, struct merge_end to)
{
	uint64_t written = m->input[from.input].object[from.object].written_bytes,
		 read = m->input[to.input].object[to.object].read_bytes;
	bool lost = m->input[from.input].lost || m->input[to.input].lost;
	return lost ? read == written : read <= written;
}

static enum base_status sockets_join(struct merge *m, struct merge_end a, struct merge_end b)
{
	enum base_status status =
		base_grow(&m->link, &m->link_capacity, m->nr_links + 1, sizeof *m->link);
	if (status != BASE_OK)
		return status;
	m->link[m->nr_links] =
		(struct merge_link){.end = {a, b}, .usable = adds_up(m, a, b) && adds_up(m, b, a)};
	for (unsigned from = 0; from < 2; from++)
		m->link[m->nr_links].flow[from] = (struct merge_flow){
			.from = from ? b : a, .to = from ? a : b, .source = MERGE_SOURCE_bytes};
	m->result->nr_connections++;
	m->result->nr_unusable += !m->link[m->nr_links].usable;
	m->nr_links++;
	m->nr_new_pairs++;
	for (uint8_t side = 0; side < 2; side++) {
		struct merge_end e = side ? b : a;
		struct merge_object *o = &m->input[e.input].object[e.object];
		o->link = (uint32_t)m->nr_links;
		o->pair = m->nr_new_pairs; /* of the new ones; merge_place_tables() adds the rest */
		o->side = side;
	}
	return BASE_OK;
}

static int64_t apart(const struct candidate *a, const struct candidate *b)
{
	if (a->first_ns == b->first_ns)
		return 0;
	if (a->first_ns == INT64_MAX || b->first_ns == INT64_MAX)
		return REUSE_NS;
	return a->first_ns > b->first_ns ? a->first_ns - b->first_ns : b->first_ns - a->first_ns;
}

/* few <= many, both in the order of time. */
static enum base_status join_sides(struct merge *m, const struct candidate *few, size_t nr_few,
	const struct candidate *many, size_t nr_many)
{
	size_t next = 0;
	for (size_t i = 0; i < nr_few; i++) {
		size_t best = nr_few == nr_many ? i : next;
		if (nr_few != nr_many) {
			for (size_t k = next; k + (nr_few - i) <= nr_many; k++)
				if (apart(&few[i], &many[k]) < apart(&few[i], &many[best]))
					best = k;
			if (apart(&few[i], &many[best]) > REUSE_NS)
				continue;
			next = best + 1;
		}
		if (few[i].end.input == many[best].end.input)
			continue;
		bool first = few[i].side == 0;
		enum base_status status = sockets_join(m, first ? few[i].end : many[best].end,
			first ? many[best].end : few[i].end);
		if (status != BASE_OK)
			return status;
	}
	return BASE_OK;
}

static enum base_status join_all(struct merge *m, const struct candidates *c)
{
	enum base_status status = BASE_OK;
	for (size_t i = 0; i < c->nr && status == BASE_OK;) {
		size_t sides[2] = {0, 0}, end = i;
		for (; end < c->nr && c->row[end].name == c->row[i].name; end++)
			sides[c->row[end].side]++;
		const struct candidate *low = &c->row[i], *high = low + sides[0];
		status = sides[0] <= sides[1] ? join_sides(m, low, sides[0], high, sides[1])
					      : join_sides(m, high, sides[1], low, sides[0]);
		i = end;
	}
	return status;
}

enum base_status merge_find_links(struct merge *m)
{
	struct candidates c = {.names = base_strtab_new()};
	enum base_status status = sockets_look(m);
	if (status == BASE_OK && !c.names)
		status = BASE_ERR_NOMEM;
	if (status == BASE_OK) {
		status = sockets_gather(m, &c);
		if (c.nr)
			qsort(c.row, c.nr, sizeof *c.row, sockets_in_order);
		if (status == BASE_OK)
			status = join_all(m, &c);
		if (status == BASE_OK)
			status = find_listeners(m);
		if (status != BASE_OK)
			base_fail(m->err, status, "no memory for the connections");
	} else if (!c.names) {
		status = base_fail(m->err, BASE_ERR_NOMEM, "no memory for the connections");
	}
	base_free(c.row);
	base_strtab_free(c.names);
	return status;
}
