/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nsys_import.c - `import nsys`: the SQLite file that `nsys export --type=sqlite` writes, as slices in lanes. A process is a rank.
 * Its tables are described in "SQLite Export Schema Reference" of NVIDIA's Nsight Systems; they differ between versions.
 */
#include "runtime/gpu/gpu.h"

#include "config.h"

#include <inttypes.h>
#include <string.h>

#if LONGPOLE_SQLITE
#include <sqlite3.h>

enum nsys_table {
#define TABLE(name, names, without) NSYS_##name,
#define TABLE_END
#include "runtime/gpu/nsys_tables.def"
	NSYS_TABLES
};
enum { NSYS_COLUMNS_MAX = 8, NSYS_TID_BITS = 24 };
enum { /* of a synchronisation: CUpti_ActivitySynchronizationType */
	NSYS_SYNC_EVENT = 1,
	NSYS_SYNC_STREAM_WAIT = 2,
	NSYS_SYNC_STREAM = 3,
};

struct nsys {
	struct gpu_trace g;
	sqlite3 *db;
	struct base_map ranks;   /* process -> index */
	struct base_map records; /* (rank, event) -> index in g.more of its last record */
	struct base_str text;
	uint64_t nr_rows;
	const char *missing; /* a column that must be there and is not */
	bool has[NSYS_TABLES];
	struct base_err *err;
	enum base_status status;
};

static const struct {
	const char *names, *without;
	struct {
		const char *names;
		bool must;
	} column[NSYS_COLUMNS_MAX];
} nsys_tables[] = {
#define TABLE(name, names, without) [NSYS_##name] = {names, without, {
#define COLUMN(names, must)         {names, must},
#define TABLE_END                                                                                  \
	}                                                                                          \
	}                                                                                          \
	,
#include "runtime/gpu/nsys_tables.def"
};

/* ---- the database ------------------------------------------------------------------------------ */

static void nsys_complain(struct nsys *n)
{
	int code = sqlite3_errcode(n->db);
	if (n->status == BASE_OK)
		n->status =
			base_fail(n->err, code == SQLITE_NOMEM ? BASE_ERR_NOMEM : BASE_ERR_FOREIGN,
				"reading the database: %s", sqlite3_errmsg(n->db));
}

/* The row of a query with one text, or none. */
static bool nsys_ask(struct nsys *n, const char *sql, const char *first, const char *second)
{
	sqlite3_stmt *q = NULL;
	bool found = false;
	if (sqlite3_prepare_v2(n->db, sql, -1, &q, NULL) != SQLITE_OK) {
		nsys_complain(n);
		return false;
	}
	sqlite3_bind_text(q, 1, first, -1, SQLITE_STATIC);
	if (second)
		sqlite3_bind_text(q, 2, second, -1, SQLITE_STATIC);
	int code = sqlite3_step(q);
	found = code == SQLITE_ROW;
	if (code != SQLITE_ROW && code != SQLITE_DONE)
		nsys_complain(n);
	sqlite3_finalize(q);
	return found;
}

/* The first of "a|b" that is a table, or a column of `table`. It is put behind what is in `out`. */
static bool nsys_find(struct nsys *n, const char *names, const char *table, struct base_str *out)
{
	const char *end;
	for (const char *p = names; *p; p = *end ? end + 1 : end) {
		char name[64];
		end = strchrnul(p, '|');
		base_format(name, sizeof name, "%.*s", (int)(end - p), p);
		bool found =
			table ? nsys_ask(n, "SELECT 1 FROM pragma_table_info(?1) WHERE name = ?2",
					table, name)
			      : nsys_ask(n,
					"SELECT 1 FROM sqlite_master WHERE type IN ('table', "
					"'view') AND name = ?1",
					name, NULL);
		if (found) {
			base_str_add(out, name);
			return true;
		}
	}
	return false;
}

/* A query of all rows of the table, with what there is of its columns; NULL: there is no such table. */
static sqlite3_stmt *nsys_open_table(struct nsys *n, enum nsys_table t)
{
	struct base_str table = {0}, sql = {0};
	sqlite3_stmt *q = NULL;
	if (nsys_find(n, nsys_tables[t].names, NULL, &table)) {
		base_str_add(&sql, "SELECT ");
		for (unsigned i = 0; i < NSYS_COLUMNS_MAX && nsys_tables[t].column[i].names; i++) {
			base_str_add(&sql, i ? ", \"" : "\"");
			size_t before = sql.length;
			if (!nsys_find(n, nsys_tables[t].column[i].names, base_str_text(&table),
				    &sql)) {
				sql.length = before - 1;
				base_str_add(&sql, "NULL");
				if (nsys_tables[t].column[i].must && !n->missing)
					n->missing = nsys_tables[t].column[i].names;
			} else {
				base_str_add(&sql, "\"");
			}
		}
		base_str_addf(&sql, " FROM \"%s\"", base_str_text(&table));
		n->g.failed |= table.failed || sql.failed;
		if (n->missing && !n->g.failed && n->status == BASE_OK)
			n->status = base_fail(n->err, BASE_ERR_FOREIGN,
				"the table %s has no column %s: this version's export is not known",
				base_str_text(&table), n->missing);
		else if (n->status == BASE_OK && !n->g.failed &&
			 sqlite3_prepare_v2(n->db, base_str_text(&sql), -1, &q, NULL) != SQLITE_OK)
			nsys_complain(n);
	}
	n->has[t] = q != NULL;
	base_str_fini(&table);
	base_str_fini(&sql);
	return q;
}

/* ---- rows ------------------------------------------------------------------------------------- */

static const char *nsys_text(sqlite3_stmt *q, int column)
{
	const char *text = (const char *)sqlite3_column_text(q, column);
	return text ? text : "";
}

static int64_t nsys_number(sqlite3_stmt *q, int column, int64_t otherwise)
{
	return sqlite3_column_type(q, column) == SQLITE_NULL ? otherwise
							     : sqlite3_column_int64(q, column);
}

/* A process is named by the upper bits of all that belongs to it. */
static uint32_t nsys_rank(struct nsys *n, int64_t global)
{
	uint64_t process = (uint64_t)global >> NSYS_TID_BITS, known;
	if (base_map_get(&n->ranks, 0, process, &known))
		return (uint32_t)known;
	char name[40];
	base_format(name, sizeof name, "process %" PRIu64, process & ((1 << NSYS_TID_BITS) - 1));
	uint32_t rank = n->g.nr_ranks;
	format_gpu_add_rank(&n->g, rank, name);
	n->g.failed |= base_map_put(&n->ranks, 0, process, rank) != BASE_OK;
	return rank;
}

/* Of a table without processes: the first one's. */
static uint32_t nsys_rank_of_device(struct nsys *n, sqlite3_stmt *q, int column)
{
	bool is_said = sqlite3_column_type(q, column) != SQLITE_NULL;
	return is_said || !n->g.nr_ranks ? nsys_rank(n, sqlite3_column_int64(q, column)) : 0;
}

static uint32_t nsys_thread(struct nsys *n, int64_t global)
{
	uint32_t rank = nsys_rank(n, global);
	return format_gpu_lane(&n->g, false, rank, 0, global & ((1 << NSYS_TID_BITS) - 1));
}

/* False: it has no sensible times, and is left out. */
static bool nsys_times(struct nsys *n, sqlite3_stmt *q, struct gpu_slice *s)
{
	s->begin_ns = sqlite3_column_int64(q, 0);
	s->end_ns = sqlite3_column_int64(q, 1);
	if (sqlite3_column_type(q, 0) != SQLITE_INTEGER ||
		sqlite3_column_type(q, 1) != SQLITE_INTEGER || s->begin_ns < 0) {
		n->g.counts.nr_damaged++;
		return false;
	}
	n->g.counts.nr_negative += s->end_ns < s->begin_ns;
	return s->end_ns >= s->begin_ns;
}

/* Names of a driver's functions end in versions: cudaLaunchKernel_v7000. */
static uint32_t nsys_call_name(struct nsys *n, const char *name)
{
	const char *version = strstr(name, "_v");
	size_t length = version && version[2] >= '0' && version[2] <= '9' ? (size_t)(version - name)
									  : strlen(name);
	base_str_reset(&n->text);
	base_str_add_bytes(&n->text, name, length);
	n->g.failed |= n->text.failed;
	return format_gpu_text(&n->g, base_str_text(&n->text));
}

static const char *nsys_string(struct nsys *n, sqlite3_stmt *q, int column)
{
	uint64_t id;
	if (sqlite3_column_type(q, column) == SQLITE_TEXT)
		return nsys_text(q, column);
	return base_map_get(&n->g.strings, 0, (uint64_t)sqlite3_column_int64(q, column), &id)
		       ? base_strtab_get(n->g.texts, (uint32_t)id)
		       : "?";
}

static void nsys_on_runtime(struct nsys *n, sqlite3_stmt *q)
{
	struct gpu_slice s = {.kind = GPU_CALL};
	if (!nsys_times(n, q, &s))
		return;
	s.correlation = sqlite3_column_int64(q, 2);
	s.lane = nsys_thread(n, sqlite3_column_int64(q, 3));
	s.name = nsys_call_name(n, nsys_string(n, q, 4));
	s.what = format_gpu_call_of(base_strtab_get(n->g.texts, s.name));
	format_gpu_add(&n->g, s);
}

static void nsys_add_device(struct nsys *n, sqlite3_stmt *q, uint8_t what, const char *name)
{
	struct gpu_slice s = {.kind = GPU_DEVICE, .what = what};
	if (!nsys_times(n, q, &s))
		return;
	s.correlation = sqlite3_column_int64(q, 2);
	s.lane = format_gpu_lane(&n->g, true, nsys_rank_of_device(n, q, 6),
		sqlite3_column_int64(q, 3), sqlite3_column_int64(q, 4));
	s.name = format_gpu_text(&n->g, name);
	if (format_gpu_is_collective(name)) {
		s.what = GPU_COLLECTIVE;
		s.more = format_gpu_add_more(&n->g,
			(struct gpu_more){
				.operation = s.name, .source = -1, .target = -1, .sequence = -1});
	}
	format_gpu_add(&n->g, s);
}

static void nsys_on_kernel(struct nsys *n, sqlite3_stmt *q)
{
	nsys_add_device(n, q, GPU_KERNEL, nsys_string(n, q, 5));
}

static void nsys_on_memcpy(struct nsys *n, sqlite3_stmt *q)
{
	static const char *const kind[] = {"Memcpy", "Memcpy HtoD", "Memcpy DtoH", "Memcpy HtoA",
		"Memcpy AtoH", "Memcpy AtoA", "Memcpy AtoD", "Memcpy DtoA", "Memcpy DtoD",
		"Memcpy HtoH", "Memcpy PtoP"};
	uint64_t k = (uint64_t)nsys_number(q, 5, 0);
	nsys_add_device(n, q, GPU_COPY, kind[k < BASE_COUNT(kind) ? k : 0]);
}

static void nsys_on_memset(struct nsys *n, sqlite3_stmt *q)
{
	nsys_add_device(n, q, GPU_COPY, "Memset");
}

/* A record of an event: on which stream, by which call. What waits for it names the event, or this record of it. */
static void nsys_on_event(struct nsys *n, sqlite3_stmt *q)
{
	uint32_t rank = nsys_rank_of_device(n, q, 4);
	int64_t event = sqlite3_column_type(q, 3) != SQLITE_NULL ? sqlite3_column_int64(q, 3)
								 : sqlite3_column_int64(q, 2);
	uint32_t more =
		format_gpu_add_more(&n->g, (struct gpu_more){.record = sqlite3_column_int64(q, 0),
						   .on_stream = sqlite3_column_int64(q, 1)});
	if (more)
		n->g.failed |=
			base_map_put(&n->records, rank, (uint64_t)event, more - 1) != BASE_OK;
}

static void nsys_on_synchronization(struct nsys *n, sqlite3_stmt *q)
{
	uint32_t rank = nsys_rank_of_device(n, q, 6);
	int64_t type = sqlite3_column_int64(q, 3), correlation = sqlite3_column_int64(q, 0);
	int64_t event = nsys_number(q, 5, nsys_number(q, 4, -1));
	struct gpu_more m = {
		.device = nsys_number(q, 1, 0), .stream = -1, .on_stream = -1, .record = -1};
	uint64_t known;
	if (type == NSYS_SYNC_STREAM || type == NSYS_SYNC_STREAM_WAIT)
		m.stream = sqlite3_column_int64(q, 2);
	if ((type == NSYS_SYNC_EVENT || type == NSYS_SYNC_STREAM_WAIT) && n->has[NSYS_event] &&
		base_map_get(&n->records, rank, (uint64_t)event, &known)) {
		m.on_stream = n->g.more[known].on_stream;
		m.record = n->g.more[known].record;
	}
	uint32_t more = format_gpu_add_more(&n->g, m);
	if (more && correlation)
		n->g.failed |=
			base_map_put(&n->g.syncs, rank, (uint64_t)correlation, more - 1) != BASE_OK;
	n->g.knows_waits |= type == NSYS_SYNC_STREAM_WAIT && m.record >= 0;
}

static void nsys_on_nvtx(struct nsys *n, sqlite3_stmt *q)
{
	struct gpu_slice s = {.kind = GPU_NOTE};
	if (sqlite3_column_type(q, 1) == SQLITE_NULL) /* a mark, or it never ended */
		return;
	if (!nsys_times(n, q, &s))
		return;
	const char *name =
		sqlite3_column_type(q, 3) == SQLITE_TEXT ? nsys_text(q, 3) : nsys_string(n, q, 4);
	s.lane = nsys_thread(n, sqlite3_column_int64(q, 2));
	s.name = format_gpu_text(&n->g, name);
	s.what = format_gpu_note_of(&n->g, name);
	format_gpu_add(&n->g, s);
}

static void nsys_on_thread(struct nsys *n, sqlite3_stmt *q)
{
	uint32_t lane = nsys_thread(n, sqlite3_column_int64(q, 0));
	if (lane != GPU_NONE)
		n->g.lane[lane].name = format_gpu_text(&n->g, nsys_string(n, q, 1));
}

/* Events before what waits for them, calls before all: processes are numbered by them. */
static const struct {
	enum nsys_table table;
	void (*row)(struct nsys *n, sqlite3_stmt *q);
} nsys_readers[] = {
	{NSYS_runtime, nsys_on_runtime},
	{NSYS_kernel, nsys_on_kernel},
	{NSYS_memcpy, nsys_on_memcpy},
	{NSYS_memset, nsys_on_memset},
	{NSYS_event, nsys_on_event},
	{NSYS_synchronization, nsys_on_synchronization},
	{NSYS_nvtx, nsys_on_nvtx},
	{NSYS_thread, nsys_on_thread},
};

static void nsys_rows(struct nsys *n, sqlite3_stmt *q, void (*row)(struct nsys *n, sqlite3_stmt *q))
{
	int code = SQLITE_DONE;
	while (n->status == BASE_OK && !n->g.failed && !n->g.too_many &&
		(code = sqlite3_step(q)) == SQLITE_ROW) {
		row(n, q);
		n->nr_rows++;
	}
	if (code != SQLITE_ROW && code != SQLITE_DONE)
		nsys_complain(n);
}

static void nsys_on_string(struct nsys *n, sqlite3_stmt *q)
{
	uint32_t id = format_gpu_text(&n->g, nsys_text(q, 1));
	n->g.failed |=
		base_map_put(&n->g.strings, 0, (uint64_t)sqlite3_column_int64(q, 0), id) != BASE_OK;
}

static void nsys_read(struct nsys *n)
{
	sqlite3_stmt *q = NULL;
	if (!nsys_ask(n, "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?1",
		    "StringIds", NULL)) {
		if (n->status == BASE_OK)
			n->status = base_fail(n->err, BASE_ERR_FOREIGN,
				"has no table StringIds: it is not what 'nsys export "
				"--type=sqlite' writes");
		return;
	}
	if (sqlite3_prepare_v2(n->db, "SELECT id, value FROM StringIds", -1, &q, NULL) != SQLITE_OK)
		nsys_complain(n);
	else
		nsys_rows(n, q, nsys_on_string);
	sqlite3_finalize(q);
	n->nr_rows = 0;
	for (size_t i = 0; i < BASE_COUNT(nsys_readers) && n->status == BASE_OK; i++) {
		q = nsys_open_table(n, nsys_readers[i].table);
		if (q)
			nsys_rows(n, q, nsys_readers[i].row);
		sqlite3_finalize(q);
	}
}

/* ---- the import -------------------------------------------------------------------------------- */

static void nsys_notes(const struct nsys *n, struct base_str *notes)
{
	for (size_t i = 0; i < NSYS_TABLES; i++)
		if (!n->has[i] && nsys_tables[i].without)
			base_str_addf(notes, "there is no table of %s\n", nsys_tables[i].without);
}

enum base_status format_import_nsys(const struct format_source *from, struct trace_writer *to,
	const struct format_import_options *opts, struct base_str *notes, struct base_err *err)
{
	struct nsys n = {.err = err};
	if (!format_gpu_trace_init(&n.g))
		n.status = base_fail(err, BASE_ERR_NOMEM, "out of memory");
	n.g.is_one_clock = true;
	n.g.step = opts->step;
	if (n.status == BASE_OK &&
		sqlite3_open_v2(from->path, &n.db, SQLITE_OPEN_READONLY, NULL) != SQLITE_OK)
		n.status = base_fail(err, BASE_ERR_FOREIGN, "cannot be opened as a database: %s",
			n.db ? sqlite3_errmsg(n.db) : "out of memory");
	if (n.status == BASE_OK) {
		sqlite3_db_config(n.db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
		sqlite3_db_config(n.db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
		nsys_read(&n);
	}
	sqlite3_close(n.db);
	if (n.status == BASE_OK && !n.g.failed && !n.g.nr)
		n.status = base_fail(err, BASE_ERR_FOREIGN,
			"has no call and no kernel in it: record with 'nsys profile "
			"--trace=cuda,nvtx'");
	if (n.status == BASE_OK)
		n.status = format_gpu_convert(&n.g, from->name, to, notes, err);
	if (n.status == BASE_OK) {
		nsys_notes(&n, notes);
		trace_writer_count(to, TRACE_DIAG_import_skipped,
			n.g.counts.nr_damaged + n.g.counts.nr_negative);
	}
	base_map_fini(&n.ranks);
	base_map_fini(&n.records);
	base_str_fini(&n.text);
	format_gpu_trace_fini(&n.g);
	return n.status;
}
#else
enum base_status format_import_nsys(const struct format_source *from, struct trace_writer *to,
	const struct format_import_options *opts, struct base_str *notes, struct base_err *err)
{
	(void)from, (void)to, (void)opts, (void)notes;
	return base_fail(err, BASE_ERR_ENV,
		"this longpole was built without SQLite's library (libsqlite3-dev)");
}
#endif
