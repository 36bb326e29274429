/* SPDX-License-Identifier: Apache-2.0 */
/* write.c - the merged trace: header, definitions of each input, all records on one clock. */
#include "merge/private.h"

#include <string.h>

enum { TELL_EVERY = 1 << 14 };

struct output {
	struct merge *m;
	struct trace_writer *w;
	struct base_strtab *strings;
	uint32_t nr_strings;    /* written */
	struct base_map shared; /* (host, inode of a pipe), (0, communicator) -> object */
	struct base_str name;
	int64_t first_ns; /* by the first input's clock: the merged trace's 0 */
};

static enum base_status merge_write_put(struct output *o, const struct trace_record *r)
{
	return trace_writer_put(o->w, r, o->m->err);
}

/* ---- texts ----------------------------------------------------------------------------------- */

static enum base_status merge_write_text(struct output *o, const char *s, uint32_t *ret)
{
	size_t length = strlen(s);
	enum base_status status = base_strtab_intern(o->strings, s, length, ret);
	if (status != BASE_OK)
		return base_fail(o->m->err, status, "cannot remember one more text");
	if (*ret < o->nr_strings)
		return BASE_OK;
	o->nr_strings = *ret + 1;
	struct trace_record r = {.kind = TRACE_string,
		.u.string = {.string = *ret, .text = {.bytes = s, .length = (uint32_t)length}}};
	return merge_write_put(o, &r);
}

static enum base_status put_texts(struct output *o, struct merge_input *in)
{
	enum base_status status = BASE_OK;
	for (uint32_t i = 1; i < in->defs->nr_texts && status == BASE_OK; i++)
		status = merge_write_text(o, trace_text_of(in->defs, i), &in->string[i]);
	return status;
}

/* ---- definitions ----------------------------------------------------------------------------- */

/* The same pipe in two recordings of one machine is one object, and so is a communicator in the
 * recordings of its ranks; *ret: it was written already. */
static enum base_status same_object(
	struct output *o, struct merge_input *in, uint32_t object, bool *ret)
{
	const struct trace_object *d = &in->defs->objects[object];
	struct merge_object *known = &in->object[object];
	const bool is_pipe = d->type == TRACE_OBJECT_pipe && !d->process && d->address && *in->boot;
	const uint64_t group = is_pipe ? in->host_number : 0,
		       member = is_pipe ? d->address : known->communicator;
	uint64_t id;
	*ret = false;
	if (!is_pipe && !known->communicator)
		return BASE_OK;
	*ret = base_map_get(&o->shared, group, member, &id);
	if (*ret) {
		known->id = (uint32_t)id;
		return BASE_OK;
	}
	enum base_status status =
		base_map_put(&o->shared, group, member, in->base[MERGE_TABLE_object] + object);
	return status == BASE_OK ? status
				 : base_fail(o->m->err, status, "no memory for shared objects");
}

static enum base_status put_object(struct output *o, struct merge_input *in, uint32_t object)
{
	const struct merge_object *known = &in->object[object];
	struct trace_record r = {.kind = TRACE_object, .u.object = in->defs->objects[object]};
	bool written;
	enum base_status status = same_object(o, in, object, &written);
	if (status != BASE_OK || written)
		return status;
	merge_rename(o->m, in, &r);
	if (known->pair) {
		r.u.object.pair = known->pair;
		r.u.object.side = known->side;
	}
	if (o->m->nr_hosts > 1 && merge_local_name(o->m, in, object, &o->name))
		status = o->name.failed
				 ? base_fail(o->m->err, BASE_ERR_NOMEM, "no memory for a name")
				 : merge_write_text(o, base_str_text(&o->name), &r.u.object.name);
	return status == BASE_OK ? merge_write_put(o, &r) : status;
}

static enum base_status put_actor(struct output *o, struct merge_input *in, uint32_t actor)
{
	struct trace_record r = {.kind = TRACE_actor, .u.actor = in->defs->actors[actor]};
	enum base_status status = BASE_OK;
	merge_rename(o->m, in, &r);
	if (!r.u.actor.system && o->m->nr_hosts > 1) /* else alike on all hosts */
		status = merge_write_text(o, in->host, &r.u.actor.system);
	return status == BASE_OK ? merge_write_put(o, &r) : status;
}

static enum base_status put_host(struct output *o, struct merge_input *in, uint32_t unused)
{
	(void)o;
	(void)in;
	(void)unused;
	return BASE_OK; /* put_hosts() knows more */
}

#define DEF_TABLE(name, plural)                                                                    \
	static __attribute__((unused)) enum base_status put_plain_##name(                          \
		struct output *o, struct merge_input *in, uint32_t id)                             \
	{                                                                                          \
		struct trace_record r = {.kind = TRACE_##name, .u.name = in->defs->plural[id]};    \
                                                                                                   \
		merge_rename(o->m, in, &r);                                                        \
		return merge_write_put(o, &r);                                                     \
	}
#include "trace/defs.def"
#undef DEF_TABLE

static enum base_status write_put_definitions(struct output *o, struct merge_input *in)
{
	enum base_status (*const writer[])(struct output *, struct merge_input *, uint32_t) = {
#define DEF_TABLE(name, plural) [MERGE_TABLE_##name] = put_plain_##name,
#include "trace/defs.def"
#undef DEF_TABLE
	};
	enum base_status status = put_texts(o, in);
#define DEF_TABLE(name, plural)                                                                    \
	for (uint32_t i = 1; i < in->defs->nr_##plural && status == BASE_OK; i++) {                \
		uint32_t id;                                                                       \
		memcpy(&id, &in->defs->plural[i], sizeof id);                                      \
		if (!id)                                                                           \
			continue; /* a gap */                                                      \
		status = MERGE_TABLE_##name == MERGE_TABLE_object  ? put_object(o, in, i)          \
			 : MERGE_TABLE_##name == MERGE_TABLE_actor ? put_actor(o, in, i)           \
			 : MERGE_TABLE_##name == MERGE_TABLE_host                                  \
				 ? put_host(o, in, i)                                              \
				 : writer[MERGE_TABLE_##name](o, in, i);                           \
	}
#include "trace/defs.def"
#undef DEF_TABLE
	return status;
}

/* ---- hosts ----------------------------------------------------------------------------------- */

static int64_t add_signed(int64_t a, int64_t b)
{
	__int128 sum = (__int128)a + b;
	return sum > INT64_MAX ? INT64_MAX : sum < INT64_MIN ? INT64_MIN : (int64_t)sum;
}

/* What an input's clock needs, at its beginning, to show the first one's, and in a second more. */
static void describe_clock(
	const struct merge *m, const struct merge_input *in, struct merge_input_result *ret)
{
	int64_t at_begin = merge_first_time(m, in, 0), length = in->last_ns > 0 ? in->last_ns : 1,
		at_end = merge_first_time(m, in, length);
	int64_t apart = (int64_t)(m->input->info->origin_mono_ns - in->info->origin_mono_ns);
	ret->offset_ns = add_signed(at_begin, apart);
	ret->drift_ppb = (int64_t)(((__int128)at_end - at_begin - length) * 1000000000 / length);
	ret->error_ns = in->error_ns;
	ret->bends = in->clock.bends;
	ret->how = in == m->input ? MERGE_HOW_first : in->how;
	ret->through = in->parent;
	ret->host_number = in->host_number;
	ret->nr_records = trace_reader_record_count(in->reader);
	uint32_t own = (uint32_t)(in - m->input);
	const struct merge_pairs *p = own == 0 ? NULL : merge_pairs_of(m, own, in->parent);
	if (p) {
		ret->nr_packets = p->nr[MERGE_SOURCE_packets];
		ret->nr_bytes = p->nr[MERGE_SOURCE_bytes];
		ret->nr_messages = p->nr[MERGE_SOURCE_messages];
	}
}

/* One row a host; its recordings stand one after the other. */
static enum base_status put_hosts(struct output *o)
{
	const struct merge *m = o->m;
	enum base_status status = BASE_OK;
	for (uint32_t n = 0; n < m->nr_inputs && status == BASE_OK;) {
		const struct merge_input *first = &m->input[m->by_host[n]], *last = first;
		const struct merge_input_result *clock = &m->result->input[m->by_host[n]];
		struct trace_record r = {.kind = TRACE_host,
			.u.host = {.host = first->host_number,
				.offset_ns = clock->offset_ns,
				.drift_ppb = clock->drift_ppb}};
		for (; n < m->nr_inputs; n++) {
			const struct merge_input *in = &m->input[m->by_host[n]];
			if (in->host_number != first->host_number)
				break;
			last = in;
			uint32_t end = in->first_processor + in->nr_processors;
			if (end > r.u.host.end_processor)
				r.u.host.end_processor = end;
			if (in->error_ns > r.u.host.error_ns)
				r.u.host.error_ns = in->error_ns;
		}
		r.u.host.last_stream =
			last->base[MERGE_TABLE_stream] + last->end[MERGE_TABLE_stream];
		r.u.host.last_stream -= last->end[MERGE_TABLE_stream] > 0;
		status = merge_write_text(o, first->host, &r.u.host.name);
		if (status == BASE_OK)
			status = merge_write_text(o, first->boot, &r.u.host.boot);
		if (status == BASE_OK)
			status = merge_write_put(o, &r);
	}
	return status;
}

/* ---- records --------------------------------------------------------------------------------- */

static int64_t first_clock(const struct merge *m, const struct merge_input *in, uint64_t time_ns)
{
	return merge_first_time(
		m, in, (int64_t)(time_ns < MERGE_TIME_MAX_NS ? time_ns : MERGE_TIME_MAX_NS));
}

static enum base_status put_records(struct output *o)
{
	struct merge *m = o->m;
	enum base_status status = BASE_OK;
	while (status == BASE_OK) {
		const struct trace_record *from;
		uint32_t input;
		status = merge_next(m, first_clock, &input, &from);
		if (status != BASE_OK)
			break;
		const struct merge_input *in = &m->input[input];
		struct trace_record r = *from;
		__int128 at_ns = (__int128)first_clock(m, in, r.time_ns) - o->first_ns;
		merge_rename(m, in, &r);
		r.time_ns = at_ns < 0 ? 0 : (uint64_t)at_ns;
		if (!r.stream) { /* of a stream that is not defined */
			trace_writer_count(o->w, TRACE_DIAG_ids_unknown, 1);
			continue;
		}
		m->result->nr_records++;
		status = merge_write_put(o, &r);
		if (m->opts->progress && m->done_records % TELL_EVERY == 0)
			m->opts->progress(
				m->opts->progress_ctx, "merging", m->done_records, m->all_records);
	}
	return status == BASE_END ? BASE_OK : status;
}

static void write_count_losses(struct output *o)
{
	const struct merge *m = o->m;
	bool aligned = false;
	for (uint32_t i = 0; i < m->nr_inputs; i++) {
		const struct trace_health *h = trace_reader_health(m->input[i].reader);
		for (unsigned d = 0; d < TRACE_DIAG_NR; d++)
			trace_writer_count(o->w, (enum trace_diag)d, h->count[d]);
		aligned |= i && m->input[i].how == MERGE_HOW_pairs;
	}
	if (aligned)
		trace_writer_count(o->w, TRACE_DIAG_clock_error_ns, m->result->error_ns);
	trace_writer_count(o->w, TRACE_DIAG_packets_unmatched,
		m->result->nr_sent + m->result->nr_received - 2 * m->result->nr_matched);
}

/* ---- header ---------------------------------------------------------------------------------- */

/* The process whose end the path leads to: the first recording's program, as its process row has
 * it. */
static const char *root_command(const struct merge_input *in)
{
	const char *command = in->info->command ? in->info->command : "";
	bool is_system = in->info->flags & TRACE_INFO_SYSTEM;
	const char *first = trace_text_of(in->defs, trace_def_process(in->defs, 1)->command);
	return is_system || !*first ? command : first;
}

/* (They have their numbers in the order of their first inputs.) */
static void join_hosts(const struct merge *m, struct base_str *hosts)
{
	uint32_t nr_known = 0;
	for (uint32_t n = 0; n < m->nr_inputs; n++) {
		bool is_known = m->input[n].host_number <= nr_known;
		if (!is_known)
			base_str_addf(hosts, "%s%s", n ? " + " : "", m->input[n].host);
		nr_known += !is_known;
	}
}

static enum base_status write_open_output(struct output *o, const char *path)
{
	const struct merge *m = o->m;
	const struct trace_info *first = m->input->info;
	struct base_str hosts = {0};
	struct trace_info info = {.size = sizeof info,
		.tool = m->opts->tool ? m->opts->tool : "longpole merge",
		.command = root_command(m->input),
		.flags = TRACE_INFO_MERGED,
		.origin_mono_ns = first->origin_mono_ns + (uint64_t)o->first_ns,
		.origin_unix_ns = first->origin_unix_ns + (uint64_t)o->first_ns,
		.tick_hz = first->tick_hz,
		.nr_processors = merge_nr_processors(m)};
	for (uint32_t i = 0; i < m->nr_inputs; i++)
		info.flags |= m->input[i].info->flags & ~(uint32_t)TRACE_INFO_WAIT_ALL;
	/* whose last process ends the run is a matter of the program whose run it is */
	info.flags |= first->flags & TRACE_INFO_WAIT_ALL;
	join_hosts(m, &hosts);
	info.host = base_str_text(&hosts);
	enum base_status status =
		hosts.failed ? base_fail(m->err, BASE_ERR_NOMEM, "no memory for the header")
			     : trace_writer_open(path, &info, &o->w, m->err);
	base_str_fini(&hosts);
	return status;
}

enum base_status merge_write(struct merge *m, const char *path)
{
	struct output o = {.m = m, .nr_strings = 1, .first_ns = INT64_MAX};
	for (uint32_t i = 0; i < m->nr_inputs; i++) {
		int64_t begin = merge_first_time(m, &m->input[i], 0);
		o.first_ns = begin < o.first_ns ? begin : o.first_ns;
		describe_clock(m, &m->input[i], &m->result->input[i]);
	}
	o.strings = base_strtab_new();
	enum base_status status =
		o.strings ? write_open_output(&o, path)
			  : base_fail(m->err, BASE_ERR_NOMEM, "no memory for the texts");
	if (status == BASE_OK)
		status = put_hosts(&o);
	for (uint32_t n = 0; n < m->nr_inputs && status == BASE_OK; n++)
		status = write_put_definitions(&o, &m->input[m->by_host[n]]);
	if (status == BASE_OK)
		status = put_records(&o);
	if (o.w) {
		if (status == BASE_OK)
			write_count_losses(&o);
		enum base_status closed =
			trace_writer_close(o.w, status == BASE_OK ? m->err : NULL);
		status = status == BASE_OK ? closed : status;
	}
	base_map_fini(&o.shared);
	base_str_fini(&o.name);
	base_strtab_free(o.strings);
	return status;
}
