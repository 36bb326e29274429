/* SPDX-License-Identifier: Apache-2.0 */
/* test_format_nsys.c - databases as Nsight Systems exports them, made by hand, of several versions; answers by hand. */
#include "gpu_fixture.h"

#include "format/format.h"

#include "config.h"

#if LONGPOLE_SQLITE
#include <sqlite3.h>

#define PID(n) ((int64_t)(n) << 24)

static const char
	strings[] = "CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT NOT NULL);"
		    "INSERT INTO StringIds VALUES (1, 'cudaLaunchKernel_v7000'), (2, 'void "
		    "gemm<float>()'), (3, 'gemm'), "
		    "(4, 'cudaStreamSynchronize_v3020'), (5, 'main'), (6, 'forward'), (7, "
		    "'cudaStreamWaitEvent_v3020'), "
		    "(8, 'cudaEventRecord_v3020'), (9, 'step 1');",
	kernels[] = "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INT, end INT, deviceId INT, "
		    "contextId INT, streamId INT, "
		    "correlationId INT, globalPid INT, demangledName INT, shortName INT);",
	calls[] = "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INT, end INT, eventClass INT, "
		  "globalTid INT, correlationId INT, nameId INT, returnValue INT);",
	syncs[] = "CREATE TABLE CUPTI_ACTIVITY_KIND_SYNCHRONIZATION (start INT, end INT, deviceId "
		  "INT, contextId INT, "
		  "streamId INT, correlationId INT, globalPid INT, syncType INT, eventId INT, "
		  "eventSyncId INT);",
	events[] = "CREATE TABLE CUPTI_ACTIVITY_KIND_CUDA_EVENT (deviceId INT, contextId INT, "
		   "streamId INT, correlationId INT, "
		   "globalPid INT, eventId INT, eventSyncId INT);",
	ranges[] = "CREATE TABLE NVTX_EVENTS (start INT, end INT, eventType INT, text TEXT, "
		   "globalTid INT, textId INT);";

struct database {
	sqlite3 *db;
	char path[32], trace[32];
	struct gpu_bench b;
};

static void run(struct database *d, const char *sql)
{
	char *why = NULL;
	if (sqlite3_exec(d->db, sql, NULL, NULL, &why) != SQLITE_OK)
		fail_msg("%s: %s", sql, why);
}

static void begin(struct database *d, const char *const *sql)
{
	*d = (struct database){
		.path = "/tmp/longpole-nsys-XXXXXX", .trace = "/tmp/longpole-gpu-XXXXXX"};
	close(mkstemp(d->path));
	close(mkstemp(d->trace));
	assert_int_equal(sqlite3_open(d->path, &d->db), SQLITE_OK);
	for (; *sql; sql++)
		run(d, *sql);
}

static void add_call(struct database *d, int name, int correlation, int from_us, int to_us)
{
	char sql[300];
	snprintf(sql, sizeof sql,
		"INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (%d000, %d000, 0, %lld, %d, %d, 0)",
		from_us, to_us, (long long)(PID(7) | 100), correlation, name);
	run(d, sql);
}

static void add_kernel(struct database *d, int stream, int correlation, int from_us, int to_us)
{
	char sql[300];
	snprintf(sql, sizeof sql,
		"INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (%d000, %d000, 0, 1, %d, %d, %lld, "
		"2, 3)",
		from_us, to_us, stream, correlation, (long long)PID(7));
	run(d, sql);
}

static enum base_status import(struct database *d)
{
	sqlite3_close(d->db);
	d->db = NULL;
	struct format_source from = {.name = "input", .path = d->path};
	return gpu_bench_import_from(&d->b, "nsys", &from, d->trace);
}

static void path_is(struct database *d, const char *path)
{
	enum base_status s = import(d);
	if (s != BASE_OK)
		print_message("%s\n", d->b.err.cause[0]);
	assert_int_equal(s, BASE_OK);
	gpu_bench_model(&d->b, d->trace, NULL, 0);
	assert_string_equal(gpu_bench_path(&d->b), path);
}

static void end(struct database *d)
{
	sqlite3_close(d->db);
	gpu_bench_fini(&d->b);
	unlink(d->path);
	unlink(d->trace);
}

static bool is_said(const struct database *d, const char *text)
{
	bool found = strstr(base_str_text(&d->b.notes), text);
	if (!found)
		print_message("not said: %s\n%s", text, base_str_text(&d->b.notes));
	return found;
}

/* A launch, its kernel, a synchronisation with its stream, in a range of NVTX. */
static void kernel_and_synchronisation(void **state)
{
	static const char *const sql[] = {strings, kernels, calls, syncs, ranges,
		"INSERT INTO NVTX_EVENTS VALUES (0, 120000, 59, NULL, 117440612, 6)", NULL};
	struct database d;
	(void)state;
	begin(&d, sql);
	add_call(&d, 1, 5, 10, 20);
	add_kernel(&d, 13, 5, 24, 84);
	add_call(&d, 4, 6, 25, 90);
	run(&d, "INSERT INTO CUPTI_ACTIVITY_KIND_SYNCHRONIZATION VALUES (25000, 90000, 0, 1, 13, "
		"6, 117440512, 3, 0, 0)");
	path_is(&d,
		"forward 10 | cudaLaunchKernel 10 | "
		"hand-off of queue launches for stream 13 of device 0 4 | void gemm<float>() 60 | "
		"hand-off of queue work of stream 13 of device 0 6 | forward 30");
	end(&d);
}

/* Stream 14 waits for what stream 13 had before the record of event 77: the second record of it does not count. */
static void stream_waits_for_event(void **state)
{
	static const char *const sql[] = {strings, kernels, calls, syncs, events,
		("INSERT INTO CUPTI_ACTIVITY_KIND_CUDA_EVENT VALUES (0, 1, 13, 90, 117440512, 77, "
		 "1001), "
		 "(0, 1, 13, 92, 117440512, 77, 1002)"),
		("INSERT INTO CUPTI_ACTIVITY_KIND_SYNCHRONIZATION VALUES (7000, 8000, 0, 1, 14, "
		 "91, "
		 "117440512, 2, 77, 1001)"),
		NULL};
	struct database d;
	(void)state;
	begin(&d, sql);
	add_call(&d, 1, 1, 0, 5);
	add_kernel(&d, 13, 1, 8, 108);
	add_call(&d, 8, 90, 6, 7);
	add_call(&d, 7, 91, 7, 8);
	add_call(&d, 1, 2, 9, 14);
	add_kernel(&d, 14, 2, 112, 152);
	add_call(&d, 1, 3, 15, 20);
	add_kernel(&d, 13, 3, 109, 150);
	add_call(&d, 8, 92, 21, 22);
	path_is(&d,
		"cudaLaunchKernel 5 | hand-off of queue launches for stream 13 of device 0 3 | "
		"void gemm<float>() 100 | "
		"hand-off of queue event of stream 13 of device 0 for stream 14 of device 0 4 | "
		"void gemm<float>() 40");
	assert_true(is_said(&d, "no table of ranges of NVTX"));
	end(&d);
}

/* An older version: kernels without processes and demangled names, no synchronisation. What lacks is said. */
static void older_version(void **state)
{
	static const char *const sql[] = {strings, calls,
		("CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INT, end INT, deviceId INT, "
		 "contextId INT, streamId INT, "
		 "correlationId INT, shortName INT)"),
		("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (24000, 84000, 0, 1, 13, 5, 3), "
		 "(90000, 80000, 0, 1, 13, 0, 3)"),
		NULL};
	struct database d;
	(void)state;
	begin(&d, sql);
	add_call(&d, 1, 5, 10, 20);
	path_is(&d, "cudaLaunchKernel 10 | hand-off of queue launches for stream 13 of device 0 4 "
		    "| gemm 60");
	assert_true(is_said(&d, "there is no table of synchronisation"));
	assert_true(is_said(&d, "1 event has a negative duration"));
	end(&d);
}

static void refused(const char *const *sql, const char *why)
{
	struct database d;
	begin(&d, sql);
	assert_int_equal(import(&d), BASE_ERR_FOREIGN);
	if (!strstr(d.b.err.cause[0], why))
		print_message("says: %s\n", d.b.err.cause[0]);
	assert_non_null(strstr(d.b.err.cause[0], why));
	end(&d);
}

static void what_is_no_such_database(void **state)
{
	static const char *const other[] = {"CREATE TABLE x (y INT)", NULL},
				 *const empty[] = {strings, kernels, NULL},
				 *const unknown[] = {strings,
					 "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (begin INT)",
					 NULL};
	(void)state;
	refused(other, "has no table StringIds");
	refused(empty, "has no call and no kernel in it");
	refused(unknown, "has no column start");
	struct database d;
	begin(&d, other);
	FILE *f = fopen(d.path, "w");
	assert_non_null(f);
	fputs("no database at all, and long enough to have a header of one hundred bytes: "
	      ".......................................",
		f);
	fclose(f);
	assert_int_equal(import(&d), BASE_ERR_FOREIGN);
	assert_non_null(strstr(d.b.err.cause[0], "reading the database: file is not a database"));
	end(&d);
}

/* Cut or damaged anywhere: refused, or what is there. */
static void damaged(void **state)
{
	static const char *const sql[] = {strings, kernels, calls, syncs, ranges, NULL};
	struct database d;
	char bytes[1 << 16];
	(void)state;
	begin(&d, sql);
	add_call(&d, 1, 5, 10, 20);
	add_kernel(&d, 13, 5, 24, 84);
	assert_int_equal(import(&d), BASE_OK);
	FILE *f = fopen(d.path, "r");
	size_t nr = fread(bytes, 1, sizeof bytes, f);
	fclose(f);
	for (size_t at = 0; at < nr; at += 509) {
		for (unsigned cut = 0; cut < 2; cut++) {
			f = fopen(d.path, "w");
			char was = bytes[at];
			bytes[at] = (char)~was;
			assert_int_equal(fwrite(bytes, 1, cut ? at : nr, f), cut ? at : nr);
			bytes[at] = was;
			fclose(f);
			base_str_reset(&d.b.notes);
			enum base_status s = import(&d);
			assert_true(s == BASE_OK || s == BASE_ERR_FOREIGN);
		}
	}
	end(&d);
}

static void without_memory(void **state)
{
	static const char *const sql[] = {strings, kernels, calls, syncs, events, ranges, NULL};
	struct database d;
	(void)state;
	begin(&d, sql);
	add_call(&d, 1, 5, 10, 20);
	add_kernel(&d, 13, 5, 24, 84);
	assert_int_equal(import(&d), BASE_OK);
	struct format_source from = {.name = "input", .path = d.path};
	gpu_bench_without_memory("nsys", &from);
	end(&d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(kernel_and_synchronisation),
		cmocka_unit_test(stream_waits_for_event),
		cmocka_unit_test(older_version),
		cmocka_unit_test(what_is_no_such_database),
		cmocka_unit_test(damaged),
		cmocka_unit_test(without_memory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
#else
int main(void)
{
	return 77; /* skipped: built without SQLite's library */
}
#endif
