/* SPDX-License-Identifier: Apache-2.0 */
/* sqlite.c - a database for questions in SQL (doc/howto/ask-in-sql.md); tables in
 * sqlite_tables.def. The library writes the file, so this is the one format that is given a path.
 */
#include "format/private.h"

#include "config.h"

#if LONGPOLE_SQLITE

#include <inttypes.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

enum { SCHEMA_VERSION = 1 };

enum table {
#define TABLE(name, columns, doc) TABLE_##name,
#include "format/sqlite_tables.def"
	TABLE_NR
};
static const struct {
	const char *name, *columns, *doc;
} table[] = {
#define TABLE(name, columns, doc) {#name, columns, doc},
#include "format/sqlite_tables.def"
};

struct database {
	sqlite3 *db;
	sqlite3_stmt *insert[TABLE_NR];
	const struct format_input *in;
	const struct format_options *opts;
	const struct trace_defs *defs;
	struct base_err *err;
	struct format_threads threads;
	struct base_str label;
	int code; /* the library's first complaint */
};

static enum base_status sqlite_complain(struct database *w)
{
	int code = w->code == SQLITE_OK ? SQLITE_ERROR : w->code;
	enum base_status s = code == SQLITE_NOMEM ? BASE_ERR_NOMEM : BASE_ERR_IO;
	return base_fail(
		w->err, s, "the database: %s", w->db ? sqlite3_errmsg(w->db) : "no memory");
}

static void sqlite_keep(struct database *w, int code)
{
	if (w->code == SQLITE_OK && code != SQLITE_OK && code != SQLITE_DONE)
		w->code = code;
}

static void sqlite_run(struct database *w, const char *sql)
{
	if (w->code == SQLITE_OK)
		sqlite_keep(w, sqlite3_exec(w->db, sql, NULL, NULL, NULL));
}

/* ---- rows ------------------------------------------------------------------------------------ */

/* One row: a letter a column. i: uint64_t, d: double, t: text, 0: NULL. Numbers beyond 63 bits
 * become negative: SQLite has no others. */
static void sqlite_add_row(struct database *w, enum table t, const char *columns, ...)
{
	sqlite3_stmt *s = w->insert[t];
	va_list args;
	if (w->code != SQLITE_OK)
		return;
	va_start(args, columns);
	for (int i = 0; columns[i]; i++)
		switch (columns[i]) {
		case 'i':
			sqlite_keep(w, sqlite3_bind_int64(
					       s, i + 1, (sqlite3_int64)va_arg(args, uint64_t)));
			break;
		case 'd':
			sqlite_keep(w, sqlite3_bind_double(s, i + 1, va_arg(args, double)));
			break;
		case 't':
			sqlite_keep(w, sqlite3_bind_text(s, i + 1, va_arg(args, const char *), -1,
					       SQLITE_TRANSIENT));
			break;
		default:
			sqlite_keep(w, sqlite3_bind_null(s, i + 1));
		}
	va_end(args);
	sqlite_keep(w, sqlite3_step(s));
	sqlite_keep(w, sqlite3_reset(s));
}

static const char *sqlite_clean(struct database *w, const char *text)
{
	base_str_reset(&w->label);
	format_clean_add(&w->label, text);
	sqlite_keep(w, w->label.failed ? SQLITE_NOMEM : SQLITE_OK);
	return base_str_text(&w->label);
}

static int count_columns(const char *columns)
{
	int nr = 1;
	for (const char *p = columns; *p; p++)
		nr += *p == ',';
	return nr;
}

static void sqlite_create(struct database *w)
{
	struct base_str sql = {0};
	sqlite_run(w,
		"PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; BEGIN;"
		"CREATE TABLE documentation (name TEXT PRIMARY KEY, columns TEXT, doc TEXT);");
	for (size_t i = 0; i < TABLE_NR && w->code == SQLITE_OK; i++) {
		base_str_reset(&sql);
		base_str_addf(&sql, "CREATE TABLE %s (%s);", table[i].name, table[i].columns);
		sqlite_run(w, base_str_text(&sql));
		base_str_reset(&sql);
		base_str_addf(&sql, "INSERT INTO %s VALUES (?", table[i].name);
		for (int k = count_columns(table[i].columns); k > 1; k--)
			base_str_add(&sql, ",?");
		base_str_add(&sql, ")");
		if (sql.failed)
			sqlite_keep(w, SQLITE_NOMEM);
		sqlite_keep(
			w, sqlite3_prepare_v2(w->db, base_str_text(&sql), -1, &w->insert[i], NULL));
	}
	base_str_fini(&sql);
	sqlite3_stmt *s = NULL;
	if (w->code == SQLITE_OK)
		sqlite_keep(w, sqlite3_prepare_v2(w->db, "INSERT INTO documentation VALUES (?,?,?)",
				       -1, &s, NULL));
	for (size_t i = 0; i < TABLE_NR && w->code == SQLITE_OK; i++) {
		sqlite_keep(w, sqlite3_bind_text(s, 1, table[i].name, -1, SQLITE_STATIC));
		sqlite_keep(w, sqlite3_bind_text(s, 2, table[i].columns, -1, SQLITE_STATIC));
		sqlite_keep(w, sqlite3_bind_text(s, 3, table[i].doc, -1, SQLITE_STATIC));
		sqlite_keep(w, sqlite3_step(s));
		sqlite_keep(w, sqlite3_reset(s));
	}
	sqlite3_finalize(s);
}

/* ---- definitions ----------------------------------------------------------------------------- */

static void add_meta_number(struct database *w, const char *key, uint64_t value)
{
	char text[24];
	snprintf(text, sizeof text, "%" PRIu64, value);
	sqlite_add_row(w, TABLE_meta, "tt", key, text);
}

static void sqlite_add_meta(struct database *w)
{
	const struct trace_info *info = trace_reader_info(w->in->reader);
	add_meta_number(w, "schema", SCHEMA_VERSION);
	sqlite_add_row(w, TABLE_meta, "tt", "tool", w->in->tool);
	sqlite_add_row(w, TABLE_meta, "tt", "trace", sqlite_clean(w, w->in->name));
	sqlite_add_row(w, TABLE_meta, "tt", "command", sqlite_clean(w, info->command));
	sqlite_add_row(w, TABLE_meta, "tt", "host", sqlite_clean(w, info->host));
	add_meta_number(w, "elapsed_ns", model_last_ns(w->in->model));
	add_meta_number(w, "origin_unix_ns", info->origin_unix_ns);
	add_meta_number(w, "records", model_nr_records(w->in->model));
}

static void add_diagnostics(struct database *w)
{
	static const char *const severity[] = {"info", "data_loss", "error"};
	const struct trace_health *h = model_health(w->in->model);
	struct base_str sentence = {0};
	for (unsigned i = 0; i < TRACE_DIAG_NR; i++) {
		const struct trace_diag_desc *d = trace_diag_describe((enum trace_diag)i);
		base_str_reset(&sentence);
		base_str_add_counted(&sentence, d->sentence, h->count[i]);
		if (h->count[i])
			sqlite_add_row(w, TABLE_diagnostic, "ttit", d->name, severity[d->severity],
				h->count[i], base_str_text(&sentence));
	}
	base_str_fini(&sentence);
}

static void add_definitions(struct database *w)
{
	const struct trace_defs *d = w->defs;
	struct base_str command = {0};
	for (uint32_t i = 1; i < d->nr_processes; i++) {
		const struct trace_process *p = &d->processes[i];
		base_str_reset(&command);
		format_clean_add(&command, trace_text_of(d, p->command));
		if (p->process)
			sqlite_add_row(w, TABLE_process, "iiitt", (uint64_t)i, p->pid,
				(uint64_t)p->parent, sqlite_clean(w, trace_text_of(d, p->name)),
				base_str_text(&command));
	}
	base_str_fini(&command);
	for (uint32_t i = 1; i < d->nr_streams; i++) {
		uint32_t actor = model_stream_actor(w->in->model, i);
		const struct model_actor *a =
			actor == UINT32_MAX ? NULL : model_actor(w->in->model, actor);
		if (!d->streams[i].stream)
			continue;
		base_str_reset(&w->label);
		format_thread_name(&w->label, &w->threads, i);
		sqlite_add_row(w, TABLE_thread, "iiitii", (uint64_t)i,
			(uint64_t)d->streams[i].process, (uint64_t)d->streams[i].tid,
			base_str_text(&w->label), a ? a->begin_ns : UINT64_C(0),
			a ? a->end_ns : UINT64_C(0));
	}
	for (uint32_t i = 1; i < d->nr_objects; i++) {
		const struct trace_object *o = &d->objects[i];
		if (o->object)
			sqlite_add_row(w, TABLE_object, "iitiit", (uint64_t)i, (uint64_t)o->process,
				trace_object_type_text(o->type), o->address, o->capacity,
				sqlite_clean(w, trace_text_of(d, o->name)));
	}
}

static void sqlite_add_sites(struct database *w)
{
	const struct trace_defs *d = w->defs;
	struct base_str file = {0}, module = {0};
	for (uint32_t i = 1; i < d->nr_sites; i++) {
		const struct trace_symbol *y = i < d->nr_symbols ? &d->symbols[i] : NULL;
		base_str_reset(&file);
		base_str_reset(&module);
		format_clean_add(&file, y ? trace_text_of(d, y->file) : "");
		format_clean_add(
			&module, d->sites[i].module < d->nr_modules
					 ? trace_text_of(d, d->modules[d->sites[i].module].path)
					 : "");
		const char *function = y && y->function ? trace_text_of(d, y->function)
							: model_site_text(w->in->model, i);
		sqlite_add_row(w, TABLE_site, "ittiti", (uint64_t)i, sqlite_clean(w, function),
			base_str_text(&file), y ? y->line : UINT64_C(0), base_str_text(&module),
			d->sites[i].offset);
	}
	base_str_fini(&file);
	base_str_fini(&module);
}

/* Only of sites where something is inlined. */
static void sqlite_add_inlined(struct database *w)
{
	struct model_frame frame[MODEL_FRAMES_MAX];
	struct base_str file = {0};
	for (uint32_t i = 1; i < w->defs->nr_sites; i++) {
		unsigned nr = model_site_frames(w->in->model, i, frame);
		for (unsigned k = 0; nr > 1 && k < nr; k++) {
			base_str_reset(&file);
			format_clean_add(&file, frame[k].file);
			sqlite_add_row(w, TABLE_inlined, "iitti", (uint64_t)i, (uint64_t)k,
				sqlite_clean(w, frame[k].function), base_str_text(&file),
				frame[k].line);
		}
	}
	base_str_fini(&file);
}

/* ---- what happened --------------------------------------------------------------------------- */

static enum base_status sqlite_add_slice(
	void *ctx, const struct format_slice *s, struct base_err *err)
{
	struct database *w = ctx;
	(void)err;
	base_str_reset(&w->label);
	format_slice_label(&w->label, w->defs, s);
	sqlite_add_row(w, TABLE_slice, "iiiittii", (uint64_t)s->stream, s->begin_ns, s->end_ns,
		s->end_ns - s->begin_ns, format_slice_kind_name(s->kind), base_str_text(&w->label),
		(uint64_t)s->object, (uint64_t)s->site);
	return w->code == SQLITE_OK ? BASE_OK : sqlite_complain(w);
}

static enum base_status sqlite_add_path(struct database *w)
{
	struct format_path path;
	struct graph_lane_result lane;
	struct base_str actor = {0}, where = {0};
	enum base_status s = format_path_init(&path, w->in, w->opts, w->err);
	for (size_t i = 0; s == BASE_OK && i < path.nr; i++) {
		const struct format_step *p = &path.step[i];
		const struct model_state *st = model_state(w->in->model, p->state);
		uint32_t stream = model_actor_stream(w->in->model, p->actor);
		base_str_reset(&actor);
		base_str_reset(&where);
		format_clean_add(&actor, model_actor(w->in->model, p->actor)->name);
		format_clean_add(&where, st->where);
		const char *state = sqlite_clean(w, st->name),
			   *kind = model_state_kind_name(st->kind);
		if (stream)
			sqlite_add_row(w, TABLE_path, "iiiiitttt", (uint64_t)i, p->begin_ns,
				p->end_ns, p->end_ns - p->begin_ns, (uint64_t)stream,
				base_str_text(&actor), state, kind, base_str_text(&where));
		else
			sqlite_add_row(w, TABLE_path, "iiii0tttt", (uint64_t)i, p->begin_ns,
				p->end_ns, p->end_ns - p->begin_ns, base_str_text(&actor), state,
				kind, base_str_text(&where));
	}
	format_path_fini(&path);
	if (s == BASE_OK)
		s = graph_lane(model_graph(w->in->model), 0, &lane, w->err);
	for (size_t i = 0; s == BASE_OK && i < lane.nr_states; i++) {
		const struct graph_path_state *p = &lane.state[i];
		const struct model_state *st = model_state(w->in->model, p->state);
		base_str_reset(&actor);
		format_clean_add(&actor, model_actor(w->in->model, p->actor)->name);
		sqlite_add_row(w, TABLE_path_state, "tttdddi", base_str_text(&actor),
			sqlite_clean(w, st->name), model_state_kind_name(st->kind), p->path_ns,
			p->latency_ns, p->unexplained_ns, p->visits);
	}
	base_str_fini(&actor);
	base_str_fini(&where);
	return s;
}

static void sqlite_add_events(struct database *w)
{
	const struct format_events *e = w->in->events;
	for (size_t i = 0; e && i < e->nr_dependences; i++) {
		const struct format_dependence *d = &e->dependence[i];
		uint32_t from, to;
		if (!format_dependence_wanted(w->in, w->opts, d, &from, &to))
			continue;
		base_str_reset(&w->label);
		format_dependence_label(&w->label, w->in, d);
		sqlite_add_row(w, TABLE_dependence, "iiiiit", (uint64_t)from, (uint64_t)to,
			d->available_ns, d->begin_ns, d->end_ns, base_str_text(&w->label));
	}
	for (size_t i = 0; e && i < e->nr_levels; i++)
		if (format_level_wanted(w->in, w->opts, &e->level[i]))
			sqlite_add_row(w, TABLE_queue_level, "tii",
				sqlite_clean(w, model_queue(w->in->model, e->level[i].queue)->name),
				e->level[i].time_ns, e->level[i].units);
	format_events_note(w->in);
}

static enum base_status sqlite_add_samples(struct database *w)
{
	enum base_status s = trace_reader_rewind(w->in->reader, w->err);
	struct trace_batch b;
	while (s == BASE_OK && (s = trace_reader_next(w->in->reader, &b, w->err)) == BASE_OK)
		for (size_t i = 0; i < b.nr; i++) {
			const struct trace_record *r = &b.record[i];
			if (r->kind == TRACE_sample && r->time_ns >= w->opts->from_ns &&
				(!w->opts->to_ns || r->time_ns < w->opts->to_ns))
				sqlite_add_row(w, TABLE_sample, "iii", (uint64_t)r->stream,
					r->time_ns, (uint64_t)r->u.sample.site);
		}
	return s == BASE_END ? BASE_OK : s;
}

static enum base_status sqlite_fill(struct database *w)
{
	sqlite_create(w);
	sqlite_add_meta(w);
	add_diagnostics(w);
	add_definitions(w);
	sqlite_add_sites(w);
	sqlite_add_inlined(w);
	enum base_status s = w->code == SQLITE_OK ? sqlite_add_path(w) : sqlite_complain(w);
	if (s == BASE_OK)
		s = format_timeline(w->in, w->opts, sqlite_add_slice, w, w->err);
	if (s == BASE_OK)
		s = sqlite_add_samples(w);
	if (s != BASE_OK)
		return s;
	sqlite_add_events(w);
	sqlite_run(w, "CREATE INDEX slice_thread ON slice (thread, begin_ns);"
		      "CREATE INDEX slice_object ON slice (object);"
		      "CREATE INDEX dependence_to ON dependence (to_thread, end_ns);"
		      "COMMIT;");
	return w->code == SQLITE_OK ? BASE_OK : sqlite_complain(w);
}

enum base_status format_export_sqlite(const struct format_input *in,
	const struct format_options *opts, const struct format_sink *sink, struct base_err *err)
{
	struct database w = {
		.in = in, .opts = opts, .defs = trace_reader_defs(in->reader), .err = err};
	BASE_ASSERT(sink->path != NULL);
	enum base_status s = format_threads_init(&w.threads, in, err);
	if (s == BASE_OK) {
		w.code = sqlite3_open_v2(sink->path, &w.db,
			SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOFOLLOW, NULL);
		s = w.code == SQLITE_OK ? sqlite_fill(&w) : sqlite_complain(&w);
	}
	for (size_t i = 0; i < TABLE_NR; i++)
		sqlite3_finalize(w.insert[i]);
	if (sqlite3_close(w.db) != SQLITE_OK && s == BASE_OK)
		s = base_fail(err, BASE_ERR_IO, "the database cannot be closed");
	format_threads_fini(&w.threads);
	base_str_fini(&w.label);
	return s;
}

#else

enum base_status format_export_sqlite(const struct format_input *in,
	const struct format_options *opts, const struct format_sink *sink, struct base_err *err)
{
	(void)in, (void)opts, (void)sink;
	return base_fail(err, BASE_ERR_ENV,
		"this longpole was built without libsqlite3 (libsqlite3-dev); --format=csv needs "
		"nothing");
}

#endif
