/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sqlite_locks - a load for SQLite's locks, of which study C compares versions: threads that write
 * and read tables of their own in one database, half of them through one connection that they
 * share. The same work in each version. Usage: sqlite_locks [ROWS]
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "sqlite3.h"

enum { THREADS = 4, ROWS = 4000 };

static int nr_rows = ROWS;
static sqlite3 *shared;

static void must(int result, sqlite3 *db, int wanted)
{
	if (result == wanted)
		return;
	fprintf(stderr, "sqlite_locks: %s\n", sqlite3_errmsg(db));
	exit(1);
}

static void one_by_one(sqlite3 *db, int number, int rows)
{
	char text[200];
	sqlite3_stmt *put, *get;
	snprintf(text, sizeof text, "CREATE TABLE t%d(id INTEGER PRIMARY KEY, word TEXT)", number);
	must(sqlite3_exec(db, text, NULL, NULL, NULL), db, SQLITE_OK);
	snprintf(text, sizeof text, "INSERT INTO t%d VALUES(?, 'a word of some length')", number);
	must(sqlite3_prepare_v2(db, text, -1, &put, NULL), db, SQLITE_OK);
	snprintf(text, sizeof text, "SELECT word FROM t%d WHERE id = ?", number);
	must(sqlite3_prepare_v2(db, text, -1, &get, NULL), db, SQLITE_OK);
	for (int i = 0; i < rows; i++) {
		must(sqlite3_bind_int(put, 1, i), db, SQLITE_OK);
		must(sqlite3_step(put), db, SQLITE_DONE);
		must(sqlite3_reset(put), db, SQLITE_OK);
		must(sqlite3_bind_int(get, 1, i), db, SQLITE_OK);
		must(sqlite3_step(get), db, SQLITE_ROW);
		must(sqlite3_reset(get), db, SQLITE_OK);
	}
	sqlite3_finalize(put);
	sqlite3_finalize(get);
}

static void *work(void *number_)
{
	int number = *(int *)number_;
	sqlite3 *db = shared;
	if (number % 2)
		must(sqlite3_open(":memory:", &db), db, SQLITE_OK);
	one_by_one(db, number, nr_rows);
	if (db != shared)
		sqlite3_close(db);
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t thread[THREADS];
	int number[THREADS];
	if (argc > 1)
		nr_rows = atoi(argv[1]);
	must(sqlite3_open(":memory:", &shared), shared, SQLITE_OK);
	for (int i = 0; i < THREADS; i++) {
		number[i] = i;
		if (pthread_create(&thread[i], NULL, work, &number[i]))
			return 1;
	}
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	sqlite3_close(shared);
	puts(sqlite3_libversion());
	return 0;
}
