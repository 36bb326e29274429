/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sweep_store.c - answers in an SQLite database: table `runs`, a row a point, a column a parameter
 * and a column a value. Each answer is written when it comes, so a sweep that ends early loses
 * nothing; the next one finds what is there by all parameters together, where it is of this
 * version.
 */
#include "cmd/sweep/sweep.h"

#include "config.h"

#if LONGPOLE_SQLITE

#include <math.h>
#include <sqlite3.h>
#include <string.h>
#include <unistd.h>

struct sweep_store {
	sqlite3 *db;
	sqlite3_stmt *get, *put;
};

static enum base_status sweep_store_complain(const struct sweep_store *t, struct base_err *err)
{
	return base_fail(err, BASE_ERR_IO, "the database: %s",
		t->db ? sqlite3_errmsg(t->db) : "out of memory");
}

static void add_columns(struct base_str *out, bool types)
{
	const struct base_parameters p = noc_parameters();
	static const char *const type[] = {[BASE_INTEGER] = " INTEGER",
		[BASE_REAL] = " REAL",
		[BASE_CHOICE] = " TEXT",
		[BASE_TEXT] = " TEXT"};
	for (size_t i = 0; i < p.nr; i++)
		base_str_addf(out, ", \"%s\"%s", p.row[i].key, types ? type[p.row[i].kind] : "");
	for (size_t i = 0; i < SWEEP_VALUES_NR; i++)
		base_str_addf(out, ", \"%s\"%s", sweep_value_names[i], types ? " REAL" : "");
}

static void add_statements(struct base_str *create, struct base_str *get, struct base_str *put)
{
	const size_t nr = noc_parameters().nr;
	base_str_add(create,
		"CREATE TABLE IF NOT EXISTS runs (point TEXT PRIMARY KEY, section TEXT, "
		"tool TEXT, error TEXT");
	add_columns(create, true);
	base_str_add(create, ") WITHOUT ROWID");
	base_str_add(get, "SELECT error");
	for (size_t i = 0; i < SWEEP_VALUES_NR; i++)
		base_str_addf(get, ", \"%s\"", sweep_value_names[i]);
	base_str_add(get, " FROM runs WHERE point = ? AND tool = 'longpole " LONGPOLE_VERSION "'");
	base_str_add(put, "INSERT OR REPLACE INTO runs (point, section, tool, error");
	add_columns(put, false);
	base_str_add(put, ") VALUES (?, ?, ?, ?");
	for (size_t i = 0; i < nr + SWEEP_VALUES_NR; i++)
		base_str_add(put, ", ?");
	base_str_add(put, ")");
}

/* It is there, and nobody else's. */
static enum base_status sweep_store_own_file(const char *path, struct base_err *err)
{
	struct base_err refused = {0};
	int fd = base_output_continue(path, &refused);
	if (fd >= 0)
		close(fd);
	else if (err)
		*err = refused;
	return fd >= 0 ? BASE_OK : refused.status;
}

enum base_status sweep_store_open(struct sweep_store **ret, const char *path, struct base_err *err)
{
	struct sweep_store *t = base_alloc(sizeof *t);
	struct base_str create = {0}, get = {0}, put = {0};
	if (!t)
		return base_fail(err, BASE_ERR_NOMEM, "a database");
	add_statements(&create, &get, &put);
	enum base_status s = BASE_OK;
	if (create.failed || get.failed || put.failed)
		s = base_fail(err, BASE_ERR_NOMEM, "a database");
	else if ((s = sweep_store_own_file(path, err)) != BASE_OK)
		;
	else if (sqlite3_open_v2(path, &t->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL) !=
			 SQLITE_OK ||
		 sqlite3_busy_timeout(t->db, 10000) != SQLITE_OK ||
		 sqlite3_exec(t->db, base_str_text(&create), NULL, NULL, NULL) != SQLITE_OK ||
		 sqlite3_prepare_v2(t->db, base_str_text(&get), -1, &t->get, NULL) != SQLITE_OK ||
		 sqlite3_prepare_v2(t->db, base_str_text(&put), -1, &t->put, NULL) != SQLITE_OK)
		s = base_cause(err, sweep_store_complain(t, err), "%s", path);
	base_str_fini(&create);
	base_str_fini(&get);
	base_str_fini(&put);
	if (s == BASE_OK)
		*ret = t;
	else
		sweep_store_close(t);
	return s;
}

void sweep_store_close(struct sweep_store *t)
{
	if (!t)
		return;
	sqlite3_finalize(t->get);
	sqlite3_finalize(t->put);
	sqlite3_close(t->db);
	base_free(t);
}

enum base_status sweep_store_get(struct sweep_store *t, const struct sweep_point *p,
	struct sweep_answer *ret, struct base_err *err)
{
	struct base_str key = {0};
	enum base_status s = BASE_END;
	sweep_point_key(&key, p);
	if (key.failed)
		return base_fail(err, BASE_ERR_NOMEM, "a point");
	sqlite3_bind_text(t->get, 1, base_str_text(&key), -1, SQLITE_STATIC);
	int code = sqlite3_step(t->get);
	if (code == SQLITE_ROW && sqlite3_column_type(t->get, 0) == SQLITE_NULL) {
		s = BASE_OK;
		for (int i = 0; i < SWEEP_VALUES_NR; i++)
			ret->value[i] = sqlite3_column_type(t->get, i + 1) == SQLITE_NULL
						? (double)NAN
						: sqlite3_column_double(t->get, i + 1);
	} else if (code != SQLITE_ROW && code != SQLITE_DONE) {
		s = sweep_store_complain(t, err);
	}
	sqlite3_reset(t->get);
	base_str_fini(&key);
	return s;
}

enum base_status sweep_store_put(struct sweep_store *t, const struct sweep_spec *s,
	const struct sweep_answer *a, struct base_err *err)
{
	const struct sweep_point *p = &s->point[a->point];
	struct base_str key = {0};
	const struct base_parameters q = noc_parameters();
	int at = 1;
	sweep_point_key(&key, p);
	sqlite3_bind_text(t->put, at++, base_str_text(&key), -1, SQLITE_TRANSIENT);
	sqlite3_bind_text(t->put, at++, s->section[p->section].name, -1, SQLITE_TRANSIENT);
	sqlite3_bind_text(t->put, at++, "longpole " LONGPOLE_VERSION, -1, SQLITE_STATIC);
	if (a->status == BASE_OK)
		sqlite3_bind_null(t->put, at++);
	else
		sqlite3_bind_text(t->put, at++, a->error, -1, SQLITE_TRANSIENT);
	for (size_t i = 0; i < q.nr; i++) {
		struct base_str value = {0};
		base_parameter_add_value(&value, &q.row[i], &p->config);
		sqlite3_bind_text(t->put, at++, base_str_text(&value), -1, SQLITE_TRANSIENT);
		base_str_fini(&value);
	}
	for (int i = 0; i < SWEEP_VALUES_NR; i++) {
		if (isnan(a->value[i]) || a->status != BASE_OK)
			sqlite3_bind_null(t->put, at++);
		else
			sqlite3_bind_double(t->put, at++, a->value[i]);
	}
	int code = sqlite3_step(t->put);
	enum base_status status = code == SQLITE_DONE ? BASE_OK : sweep_store_complain(t, err);
	sqlite3_reset(t->put);
	base_str_fini(&key);
	return status;
}

#else

enum base_status sweep_store_open(struct sweep_store **ret, const char *path, struct base_err *err)
{
	(void)ret;
	return base_fail(err, BASE_ERR_ENV,
		"%s: this longpole was built without SQLite (Debian package libsqlite3-dev)", path);
}

void sweep_store_close(struct sweep_store *t)
{
	(void)t;
}

enum base_status sweep_store_get(struct sweep_store *t, const struct sweep_point *p,
	struct sweep_answer *ret, struct base_err *err)
{
	(void)t;
	(void)p;
	(void)ret;
	(void)err;
	return BASE_END;
}

enum base_status sweep_store_put(struct sweep_store *t, const struct sweep_spec *s,
	const struct sweep_answer *a, struct base_err *err)
{
	(void)t;
	(void)s;
	(void)a;
	(void)err;
	return BASE_OK;
}

#endif
