/* SPDX-License-Identifier: Apache-2.0 */
/* top_merge.c - many hosts' windows as one ranking: the same state of the same program is one row,
 * which says on which host it weighs most. */
#include "report/private.h"
#include "report/top.h"

#include "config.h"

#include <stdlib.h>
#include <string.h>

enum { TABLE_states, TABLE_processes, TABLE_connections, TABLES };

struct merge_row {
	struct live_row row; /* but for texts */
	uint32_t process, name;
	uint32_t host, nr_hosts; /* where it weighs most */
	double host_ns;
};
struct table {
	struct merge_row *row;
	size_t nr, capacity;
	struct base_map by_key;
	struct live_row *shown;
	size_t shown_capacity;
};
struct report_merge {
	struct base_strtab *texts, *hosts;
	struct base_arena *arena;
	struct table table[TABLES];
	struct base_map by_host; /* (table << 32 | row, host) -> ns */
	double path_ns, unexplained_ns;
	uint64_t nr_lines, nr_records;
	enum base_status status;
};

struct report_merge *report_merge_new(void)
{
	struct report_merge *m = base_alloc(sizeof *m);
	if (!m)
		return NULL;
	m->texts = base_strtab_new();
	m->hosts = base_strtab_new();
	m->arena = base_arena_new(0);
	return m->texts && m->hosts && m->arena ? m : report_merge_free(m);
}

struct report_merge *report_merge_free(struct report_merge *m)
{
	if (!m)
		return NULL;
	for (unsigned t = 0; t < TABLES; t++) {
		base_free(m->table[t].row);
		base_free(m->table[t].shown);
		base_map_fini(&m->table[t].by_key);
	}
	base_map_fini(&m->by_host);
	base_strtab_free(m->texts);
	base_strtab_free(m->hosts);
	base_arena_free(m->arena);
	base_free(m);
	return NULL;
}

/* ---- reading --------------------------------------------------------------------------------- */

static void top_merge_keep(struct report_merge *m, enum base_status s)
{
	if (s != BASE_OK && m->status == BASE_OK)
		m->status = s;
}

static uint32_t top_merge_intern(struct report_merge *m, struct base_strtab *t, const char *text)
{
	uint32_t id = 0;
	top_merge_keep(m, base_strtab_intern(t, text, strlen(text), &id));
	return id;
}

static const char *top_merge_text_in(const json_t *j, const char *key)
{
	const char *text = json_string_value(json_object_get(j, key));
	return text ? text : "";
}

/* Of a key that should be a time or a number; nothing below 0. */
/* At most what still is a whole number of 64 bits: no time and no count is more. */
static double top_merge_number_in(const json_t *j, const char *key)
{
	static const double most = 1e18;
	double n = json_number_value(json_object_get(j, key));
	return n < 0 ? 0 : n < most ? n : most;
}

static enum model_state_kind kind_in(const json_t *j)
{
	const char *text = top_merge_text_in(j, "kind");
	unsigned k = 0;
	while (k < MODEL_STATE_NR - 1 &&
		strcmp(model_state_kind_name((enum model_state_kind)k), text) != 0)
		k++;
	return (enum model_state_kind)k;
}

static struct merge_row *top_merge_row_of(
	struct report_merge *m, unsigned table, uint32_t process, uint32_t name, unsigned kind)
{
	struct table *t = &m->table[table];
	uint64_t hi = (uint64_t)process << 32 | name, at;
	if (base_map_get(&t->by_key, hi, kind, &at))
		return &t->row[at];
	top_merge_keep(m, base_grow(&t->row, &t->capacity, t->nr + 1, sizeof *t->row));
	if (m->status == BASE_OK)
		top_merge_keep(m, base_map_put(&t->by_key, hi, kind, t->nr));
	if (m->status != BASE_OK)
		return NULL;
	t->row[t->nr] = (struct merge_row){.process = process, .name = name};
	return &t->row[t->nr++];
}

static void note_host(
	struct report_merge *m, unsigned table, struct merge_row *r, uint32_t host, double ns)
{
	uint64_t key = (uint64_t)table << 32 | (uint64_t)(r - m->table[table].row), sum = 0;
	if (!base_map_get(&m->by_host, key, host, &sum))
		r->nr_hosts++;
	sum += (uint64_t)ns;
	top_merge_keep(m, base_map_put(&m->by_host, key, host, sum));
	if ((double)sum > r->host_ns || r->host_ns <= 0) {
		r->host_ns = (double)sum;
		r->host = host;
	}
}

static void top_merge_add_row(
	struct report_merge *m, unsigned table, const json_t *j, uint32_t host)
{
	static const char *const name_key[TABLES] = {"state", "", "connection"};
	uint32_t process = table == TABLE_connections
				   ? 0
				   : top_merge_intern(m, m->texts, top_merge_text_in(j, "process"));
	uint32_t name = table == TABLE_processes ? 0
						 : top_merge_intern(m, m->texts,
							   top_merge_text_in(j, name_key[table]));
	enum model_state_kind kind = table == TABLE_states ? kind_in(j) : (enum model_state_kind)0;
	struct merge_row *r = top_merge_row_of(m, table, process, name, (unsigned)kind);
	if (!r)
		return;
	double path_ns = top_merge_number_in(j, "path_ns");
	r->row.kind = kind;
	r->row.had = base_strtab_get(
		m->texts, top_merge_intern(m, m->texts, top_merge_text_in(j, "processor_had_by")));
	r->row.path_ns += path_ns;
	r->row.waiting_ns += top_merge_number_in(j, "waiting_ns");
	r->row.unexplained_ns += top_merge_number_in(j, "unexplained_ns");
	r->row.visits += (uint64_t)top_merge_number_in(j, "visits");
	note_host(m, table, r, host, path_ns);
}

static void top_merge_add_line(struct report_merge *m, const json_t *j)
{
	static const char *const key[TABLES] = {"states", "processes", "connections"};
	const char *name = top_merge_text_in(j, "host");
	uint32_t host = top_merge_intern(m, m->hosts, *name ? name : "?");
	m->nr_lines++;
	m->path_ns += top_merge_number_in(j, "path_ns");
	m->unexplained_ns += top_merge_number_in(j, "unexplained_ns");
	m->nr_records += (uint64_t)top_merge_number_in(j, "records");
	for (unsigned t = 0; t < TABLES; t++) {
		const json_t *list = json_object_get(j, key[t]);
		for (size_t i = 0; i < json_array_size(list) && m->status == BASE_OK; i++)
			top_merge_add_row(m, t, json_array_get(list, i), host);
	}
}

enum base_status report_merge_add(
	struct report_merge *m, const char *line, size_t length, struct base_err *err)
{
	json_error_t why;
	json_t *j = json_loadb(line, length, 0, &why);
	if (!j)
		return base_fail(err, BASE_ERR_FORMAT, "not a line of JSON: %s", why.text);
	if (strcmp(top_merge_text_in(j, "schema"), "longpole/top/1") != 0) {
		json_decref(j);
		return base_fail(err, BASE_ERR_FORMAT,
			"not of `longpole top --json`: schema is not longpole/top/1");
	}
	top_merge_add_line(m, j);
	json_decref(j);
	return m->status == BASE_OK ? BASE_OK : base_fail(err, m->status, "out of memory");
}

/* ---- the ranking ----------------------------------------------------------------------------- */

static int top_merge_longest_first(const void *pa, const void *pb)
{
	const struct live_row *a = pa, *b = pb;
	if (a->path_ns != b->path_ns)
		return a->path_ns > b->path_ns ? -1 : 1;
	int c = strcmp(a->process, b->process);
	return c ? c : strcmp(a->name, b->name);
}

/* "web3 (61 % of 4)" */
static const char *host_text(struct report_merge *m, const struct merge_row *r)
{
	struct base_str s = {0};
	base_str_add(&s, base_strtab_get(m->hosts, r->host));
	if (r->nr_hosts > 1) {
		base_str_add(&s, " (");
		report_percent(&s, r->row.path_ns > 0 ? r->host_ns / r->row.path_ns : 0);
		base_str_addf(&s, " of %u)", r->nr_hosts);
	}
	const char *text = report_keep(m->arena, &s);
	return text ? text : "?";
}

static const struct live_row *top_merge_rank(struct report_merge *m, unsigned table)
{
	struct table *t = &m->table[table];
	if (base_grow(&t->shown, &t->shown_capacity, t->nr + 1, sizeof *t->shown) != BASE_OK)
		return NULL;
	for (size_t i = 0; i < t->nr; i++) {
		t->shown[i] = t->row[i].row;
		t->shown[i].process = base_strtab_get(m->texts, t->row[i].process);
		t->shown[i].name = base_strtab_get(m->texts, t->row[i].name);
		t->shown[i].where = host_text(m, &t->row[i]);
	}
	if (t->nr)
		qsort(t->shown, t->nr, sizeof *t->shown, top_merge_longest_first);
	return t->shown;
}

/* As if it were one window. False: no memory. */
static bool as_window(struct report_merge *m, struct live_window *w)
{
	*w = (struct live_window){.path_ns = m->path_ns,
		.unexplained_ns = m->unexplained_ns,
		.nr_records = m->nr_records,
		.nr_paths = 2, /* several */
		.state = top_merge_rank(m, TABLE_states),
		.nr_states = m->table[TABLE_states].nr,
		.process = top_merge_rank(m, TABLE_processes),
		.nr_processes = m->table[TABLE_processes].nr,
		.connection = top_merge_rank(m, TABLE_connections),
		.nr_connections = m->table[TABLE_connections].nr};
	return w->state && w->process && w->connection;
}

static unsigned nr_hosts(const struct report_merge *m)
{
	return base_strtab_count(m->hosts) - 1;
}

void report_merge_text(
	struct base_str *out, struct report_merge *m, size_t limit, const struct report_style *st)
{
	struct live_window w;
	if (!as_window(m, &w)) {
		out->failed = true;
		return;
	}
	report_top_finding(out, &w);
	base_str_addf(out, "\n%u {host|hosts}, %llu {window|windows}\n", nr_hosts(m),
		(unsigned long long)m->nr_lines);
	report_top_tables(out, &w, limit, st);
}

json_t *report_merge_json(struct report_merge *m, size_t limit)
{
	struct live_window w;
	struct base_str finding = {0};
	if (!as_window(m, &w))
		return NULL;
	report_top_finding(&finding, &w);
	json_t *hosts = json_array();
	for (uint32_t i = 1; i <= nr_hosts(m); i++)
		json_array_append_new(hosts, json_string(base_strtab_get(m->hosts, i)));
	json_t *j = json_pack("{s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:o}", "schema",
		"longpole/top-merge/1", "tool", "longpole " LONGPOLE_VERSION, "finding",
		json_string(base_str_text(&finding)), "hosts", hosts, "windows",
		base_json_u64(m->nr_lines), "path_ns", report_json_ns(m->path_ns), "unexplained_ns",
		report_json_ns(m->unexplained_ns), "records", base_json_u64(m->nr_records));
	base_str_fini(&finding);
	if (j)
		report_top_json_tables(j, &w, limit, true);
	return j;
}
