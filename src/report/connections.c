/* SPDX-License-Identifier: Apache-2.0 */
/* connections.c - one critical path per connection, and who serves which (seed 000 section 5.6). */
#include "report/private.h"

#include <stdlib.h>
#include <string.h>

/* ---- building -------------------------------------------------------------------------------- */

/* The largest topics, which are taken out of topic_ns. */
static enum base_status take_largest(struct report_connection_state *state, size_t *nr,
	struct base_arena *a, struct model *m, const struct report_index *ix, double *topic_ns,
	double path_ns, struct base_err *err)
{
	for (*nr = 0; *nr < REPORT_CONNECTION_STATES; ++*nr) {
		uint32_t topic = report_largest_topic(topic_ns, ix, REPORT_NONE);
		if (topic == REPORT_NONE)
			break;
		state[*nr].name = report_clean(a, model_state(m, ix->first_state[topic])->name);
		state[*nr].share = path_ns > 0 ? topic_ns[topic] / path_ns : 0;
		topic_ns[topic] = 0;
		if (!state[*nr].name)
			return report_no_memory(err);
	}
	return BASE_OK;
}

struct topics { /* path time by topic, of one connection and of all */
	const struct report_index *ix;
	double *one_ns, *all_ns, *length_ns;
};

static enum base_status connections_fill_path(struct report_connection *c,
	struct report_connections *out, struct model *m, const struct topics *t,
	struct base_err *err)
{
	struct graph_lane_result lane;
	enum base_status s = graph_lane_of(model_graph(m), c->end, 0, &lane, err);
	if (s != BASE_OK || !lane.found)
		return s;
	for (size_t i = 0; i < lane.nr_states; i++) {
		uint32_t topic = t->ix->topic_of[lane.state[i].state];
		t->one_ns[topic] += lane.state[i].path_ns;
		t->all_ns[topic] += lane.state[i].path_ns;
		c->unexplained_ns += lane.state[i].unexplained_ns;
	}
	c->found = true;
	c->start_ns = lane.start_ns;
	c->end_ns = lane.end_ns;
	c->path_ns = lane.length_ns;
	out->sum.total_ns += c->path_ns;
	t->length_ns[out->sum.nr_paths++] = c->path_ns;
	s = take_largest(c->state, &c->nr_states, out->arena, m, t->ix, t->one_ns, c->path_ns, err);
	for (size_t i = 0; i < lane.nr_states; i++)
		t->one_ns[t->ix->topic_of[lane.state[i].state]] = 0;
	return s;
}

static int connections_ascending(const void *a, const void *b)
{
	const double *x = a, *y = b;
	return (*x > *y) - (*x < *y);
}

static enum base_status fill_sum(struct report_connections *out, struct model *m,
	const struct topics *t, struct base_err *err)
{
	struct report_connections_sum *sum = &out->sum;
	size_t nr = sum->nr_paths;
	if (!nr)
		return BASE_OK;
	qsort(t->length_ns, nr, sizeof *t->length_ns, connections_ascending);
	sum->median_ns = t->length_ns[nr / 2];
	sum->p90_ns = t->length_ns[nr - 1 - nr / 10];
	sum->max_ns = t->length_ns[nr - 1];
	return take_largest(
		sum->state, &sum->nr_states, out->arena, m, t->ix, t->all_ns, sum->total_ns, err);
}

/* What one row is of: the members of a group that served the same connections. */
static enum base_status find_server(struct report_connections *out, struct base_strtab *rows,
	const struct model_actor *a, const uint32_t *served, size_t nr_served,
	struct report_server **ret, struct base_err *err)
{
	uint32_t id;
	struct base_str key = {0};
	base_str_addf(&key, "%u", a->group_text);
	for (size_t i = 0; i < nr_served; i++)
		base_str_addf(&key, "\n%u", served[i]);
	bool failed = key.failed ||
		      base_strtab_intern(rows, base_str_text(&key), key.length, &id) != BASE_OK;
	base_str_fini(&key);
	if (failed)
		return report_no_memory(err);
	*ret = &out->server[id];
	return BASE_OK;
}

static enum base_status add_server(struct report_server *s, struct report_connections *out,
	struct model *m, const struct model_actor *a, const uint32_t *served, size_t nr_served,
	struct base_err *err)
{
	if (s->nr_members++)
		return BASE_OK;
	s->name = report_clean(out->arena, a->name);
	s->group = report_clean(out->arena, a->group);
	s->connection = report_array(out->arena, nr_served, sizeof *s->connection);
	if (!s->name || !s->group || !s->connection)
		return report_no_memory(err);
	for (size_t i = 0; i < nr_served; i++)
		s->connection[i] = model_connection(m, served[i])->id;
	s->nr_connections = nr_served;
	return BASE_OK;
}

static enum base_status fill_server(struct report_connections *out, struct base_strtab *rows,
	struct model *m, uint32_t actor, struct base_err *err)
{
	size_t nr;
	const uint32_t *served = model_actor_connections(m, actor, &nr); /* ascending */
	if (!nr)
		return BASE_OK;
	struct report_server *row = NULL;
	const struct model_actor *a = model_actor(m, actor);
	enum base_status s = find_server(out, rows, a, served, nr, &row, err);
	return s == BASE_OK ? add_server(row, out, m, a, served, nr, err) : s;
}

static enum base_status fill_servers(
	struct report_connections *out, struct model *m, struct base_err *err)
{
	uint32_t nr = graph_nr_actors(model_graph(m));
	struct base_strtab *rows = base_strtab_new();
	enum base_status s = BASE_OK;
	out->server = report_array(out->arena, (size_t)nr + 1, sizeof *out->server);
	if (!rows || !out->server)
		s = report_no_memory(err);
	for (uint32_t i = 0; s == BASE_OK && i < nr; i++)
		s = fill_server(out, rows, m, i, err);
	out->nr_servers = rows ? base_strtab_count(rows) : 0;
	for (size_t i = 0; i < out->nr_servers && s == BASE_OK; i++)
		if (out->server[i].nr_members > 1)
			out->server[i].name = out->server[i].group;
	base_strtab_free(rows);
	return s;
}

static enum base_status fill_connections(struct report_connections *out, struct model *m,
	const struct report_index *ix, struct base_err *err)
{
	uint32_t nr = model_nr_connections(m);
	struct topics t = {
		.ix = ix,
		.one_ns = report_array(out->arena, ix->nr_topics, sizeof *t.one_ns),
		.all_ns = report_array(out->arena, ix->nr_topics, sizeof *t.all_ns),
		.length_ns = report_array(out->arena, nr, sizeof *t.length_ns),
	};
	enum base_status s = BASE_OK;
	out->connection = report_array(out->arena, nr, sizeof *out->connection);
	if (!t.one_ns || !t.all_ns || !t.length_ns || !out->connection)
		return report_no_memory(err);
	out->nr_connections = nr;
	out->nr_not_followed = model_nr_connections_not_followed(m);
	for (uint32_t i = 0; s == BASE_OK && i < nr; i++) {
		const struct model_connection *c = model_connection(m, i);
		out->connection[i] = (struct report_connection){
			.id = c->id, .end = c->end, .nr_actors = c->nr_actors};
		s = connections_fill_path(&out->connection[i], out, m, &t, err);
	}
	return s == BASE_OK ? fill_sum(out, m, &t, err) : s;
}

static enum base_status connections_fill(
	struct report_connections *out, struct model *m, struct base_err *err)
{
	struct report_index ix = {0};
	enum base_status s = report_index_init(&ix, m, err);
	if (s == BASE_OK)
		s = fill_connections(out, m, &ix, err);
	if (s == BASE_OK)
		s = fill_servers(out, m, err);
	report_index_fini(&ix);
	return s;
}

enum base_status report_connections_build(
	const struct report_run *run, struct report_connections **ret, struct base_err *err)
{
	struct report_pass_options opts = {.connections = true};
	struct report_connections *out = report_answer_new(sizeof *out);
	struct model *m = NULL;
	if (!out)
		return report_no_memory(err);
	enum base_status s = report_pass(run, "following each connection", &opts, &m, err);
	if (s == BASE_OK)
		s = report_fill_trace(&out->trace, out->arena, run, m, err);
	if (s == BASE_OK)
		s = connections_fill(out, m, err);
	if (s == BASE_OK && !out->nr_connections)
		s = base_fail(err, BASE_ERR_NOTFOUND,
			"no connection is identified in this trace: a program says whom it serves "
			"with longpole_get_id() and longpole_identify() (longpole/annotate.h)");
	model_free(m);
	if (s != BASE_OK)
		report_connections_free(out);
	else
		*ret = out;
	return s;
}

struct report_connections *report_connections_free(struct report_connections *c)
{
	return report_answer_free(c);
}

/* ---- text ------------------------------------------------------------------------------------ */

static void state_list(struct base_str *out, const struct report_connection_state *state, size_t nr)
{
	for (size_t i = 0; i < nr; i++) {
		base_str_add(out, i ? ", " : "");
		report_percent(out, state[i].share);
		base_str_addf(out, " %s", state[i].name);
	}
}

static void connections_finding(struct base_str *out, const struct report_connections *c)
{
	const struct report_connections_sum *sum = &c->sum;
	base_str_addf(out, "%zu {connection|connections}", c->nr_connections);
	if (sum->nr_paths) {
		base_str_add(out, ", path ");
		report_ns(out, sum->median_ns);
		base_str_add(out, " in the median, ");
		report_ns(out, sum->p90_ns);
		base_str_add(out, " at 90 %, at most ");
		report_ns(out, sum->max_ns);
		base_str_add(out, "; of all together ");
		state_list(out, sum->state, sum->nr_states);
	}
	base_str_add(out, " (observed).\n\n");
}

static void connections_states(struct base_str *out, const void *row, const struct base_layout *l)
{
	const struct report_connection *c = row;
	(void)l;
	state_list(out, c->state, c->nr_states);
}

static json_t *connections_ids_json(const struct report_server *s)
{
	json_t *ids = json_array();
	for (size_t i = 0; i < s->nr_connections; i++)
		json_array_append_new(ids, base_json_u64(s->connection[i]));
	return ids;
}

static json_t *connections_servers_json(
	const struct report_connections *c, const struct base_table *server)
{
	json_t *list = json_array();
	for (size_t i = 0; i < c->nr_servers; i++)
		if (c->server[i].nr_connections)
			json_array_append_new(list, base_table_json(server, &c->server[i], c, 0));
	return list;
}

#include "report/connections.def"

static void connection_line(
	struct base_str *out, const struct base_layout *l, const struct report_connection *c)
{
	if (c->found)
		base_layout_cells(out, l, c);
	else
		base_str_addf(out,
			"%10llu   no path: it was identified, and nothing followed from it",
			(unsigned long long)c->id);
	base_str_add(out, "\n");
}

/* As they came; of more than are shown, the longest. */
static int connections_longest_first(const void *a, const void *b)
{
	const struct report_connection *x = a, *y = b;
	if (x->path_ns != y->path_ns)
		return x->path_ns > y->path_ns ? -1 : 1;
	return (x->id > y->id) - (x->id < y->id);
}

static void connection_lines(struct base_str *out, const struct report_connections *c, size_t limit)
{
	struct base_layout l = {.table = &connections_connection};
	size_t nr = c->nr_connections;
	struct report_connection *list = base_alloc((nr + 1) * sizeof *list);
	if (!list) {
		out->failed = true;
		return;
	}
	memcpy(list, c->connection, nr * sizeof *list);
	if (limit && nr > limit)
		qsort(list, nr, sizeof *list, connections_longest_first);
	base_layout_titles(out, &l);
	base_str_add(out, "\n");
	for (size_t i = 0; i < nr && (!limit || i < limit); i++)
		connection_line(out, &l, &list[i]);
	if (limit && nr > limit)
		base_str_addf(out, "and %zu shorter {one|ones} (see --all)\n", nr - limit);
	base_free(list);
}

enum { LISTED = 8 };

static void server_line(struct base_str *out, const struct report_style *st,
	const struct report_connections *c, const struct report_server *s)
{
	struct base_str name = {0};
	base_str_add(&name, s->name);
	if (s->nr_members > 1)
		base_str_addf(
			&name, " %s%llu", report_times(st), (unsigned long long)s->nr_members);
	base_str_add(out, "  ");
	report_cell(out, st, base_str_text(&name), 36, true);
	base_str_fini(&name);
	if (s->nr_connections == c->nr_connections && c->nr_connections > 1)
		base_str_addf(out, " all %zu", c->nr_connections);
	else
		for (size_t i = 0; i < s->nr_connections && i < LISTED; i++)
			base_str_addf(
				out, "%s %llu", i ? "," : "", (unsigned long long)s->connection[i]);
	if (s->nr_connections != c->nr_connections && s->nr_connections > LISTED)
		base_str_addf(out, ", ... (%zu)", s->nr_connections);
	base_str_add(out, "\n");
}

static void server_lines(struct base_str *out, const struct report_style *st,
	const struct report_connections *c, bool shared, size_t limit)
{
	size_t nr = 0;
	for (size_t i = 0; i < c->nr_servers; i++) {
		const struct report_server *s = &c->server[i];
		if (!s->nr_connections || (s->nr_connections > 1) != shared)
			continue;
		if (!nr++)
			base_str_addf(out, "%s\n",
				shared ? "SHARED between connections" : "OF ONE CONNECTION");
		if (!limit || nr <= limit)
			server_line(out, st, c, s);
	}
	if (limit && nr > limit)
		base_str_addf(out, "  and %zu more (see --all)\n", nr - limit);
}

void report_connections_text(struct base_str *out, const struct report_connections *c, size_t limit,
	const struct report_style *style)
{
	connections_finding(out, c);
	connection_lines(out, c, limit);
	base_str_add(out, "\n");
	server_lines(out, style, c, true, limit);
	server_lines(out, style, c, false, limit);
	if (c->nr_not_followed)
		base_str_addf(out,
			"CAVEATS    more than %d connections: %llu {later one was|later ones were} "
			"not followed\n",
			MODEL_CONNECTIONS_MAX, (unsigned long long)c->nr_not_followed);
	report_trace_text_caveats(out, &c->trace, style);
	base_str_addf(out, "NEXT       longpole report --connection=%llu %s\n",
		(unsigned long long)c->connection[0].id, c->trace.path);
}

json_t *report_connections_json(const struct report_connections *c)
{
	return report_envelope(report_connections_document.name, &c->trace,
		base_table_json(&report_connections_document, c, c, 0));
}
