/* SPDX-License-Identifier: Apache-2.0 */
/* test_session.c - whole recordings of small programs: exit statuses, refusals, signals, a
 * full disk, what is left behind. */
#include "session/doctor.h"
#include "base/installed.h"
#include "os/processor.h"
#include "ring/ring.h"
#include "session/session.h"
#include "test.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BUFFER_BYTES = 4 << 20 };
static char trace_path[] = "/tmp/longpole-session-XXXXXX";
static struct session_result result;
static struct base_err err;

static enum base_status run(char *const *argv)
{
	struct session_options o = session_options_default();
	o.output_path = trace_path;
	o.argv = argv;
	o.buffer_bytes = BUFFER_BYTES;
	memset(&err, 0, sizeof err);
	return session_run(&o, &result, &err);
}
#define RUN(...) run((char *const[]){__VA_ARGS__, NULL})

static unsigned nr_rings(void)
{
	char own[64];
	unsigned nr = 0;
	snprintf(own, sizeof own, "longpole-session-%d-", (int)getpid());
	static const char *const dirs[] = {"/dev/shm", "/tmp"};
	for (size_t i = 0; i < BASE_COUNT(dirs); i++) {
		DIR *d = opendir(dirs[i]);
		for (struct dirent *e; d && (e = readdir(d));)
			nr += !strncmp(e->d_name, own, strlen(own));
		if (d)
			closedir(d);
	}
	return nr;
}

/* How many records of a kind, and the last one of them. */
static size_t find(uint16_t kind, struct trace_record *ret)
{
	struct trace_reader *r;
	struct trace_batch batch;
	size_t nr = 0;
	assert_int_equal(trace_reader_open(trace_path, NULL, &r, NULL), BASE_OK);
	while (trace_reader_next(r, &batch, NULL) == BASE_OK)
		for (size_t i = 0; i < batch.nr; i++)
			if (batch.record[i].kind == kind) {
				*ret = batch.record[i];
				nr++;
			}
	trace_reader_close(r);
	return nr;
}

static void test_exit_status(void **state)
{
	struct trace_record end;
	(void)state;
	assert_int_equal(RUN("/bin/sh", "-c", "exit 7"), BASE_OK);
	assert_int_equal(result.exit_code, 7);
	assert_true(WIFEXITED(result.wait_status));
	assert_true(result.ring_records > 0);
	assert_int_equal(find(TRACE_process_end, &end), 1);
	assert_int_equal(WEXITSTATUS(end.u.process_end.status), 7);
	assert_int_equal(nr_rings(), 0);
}

static const struct trace_cost *cost(const struct trace_defs *d, const char *name)
{
	for (uint32_t i = 1; i < d->nr_costs; i++)
		if (!strcmp(trace_text_of(d, d->costs[i].name), name))
			return &d->costs[i];
	fail_msg("no cost '%s'", name);
	return NULL;
}

static uint64_t nr_of(const struct trace_defs *d, const char *name)
{
	for (uint32_t i = 1; i < d->nr_costs; i++)
		if (!strcmp(trace_text_of(d, d->costs[i].name), name))
			return d->costs[i].n;
	return 0;
}

/* The trace says what the session knows. */
static void test_cost_is_in_the_trace(void **state)
{
	struct trace_reader *r;
	(void)state;
	assert_int_equal(RUN("/bin/sh", "-c", "exit 0"), BASE_OK);
	assert_int_equal(trace_reader_open(trace_path, NULL, &r, NULL), BASE_OK);
	const struct trace_defs *d = trace_reader_defs(r);
	const struct trace_cost *records = cost(d, "records"), *samples = cost(d, "samples");
	const struct trace_cost *switches = cost(d, "processor switches");
	const struct trace_cost *reading = cost(d, "reading and writing the trace");
	uint64_t nr = nr_of(d, TRACE_COST_LOCKS) + nr_of(d, TRACE_COST_CALLS);
	assert_int_equal(records->n + nr, result.ring_records);
	/* not less than what one takes with warm caches */
	assert_true(records->total_ns + 1 >= records->n * result.session_write_ns_x100 / 100);
	const struct trace_cost *starts = cost(d, TRACE_COST_STARTS);
	assert_int_equal(starts->n, 1);
	assert_in_range(starts->total_ns, 10000, 5000000);
	const struct trace_cost *before = cost(d, TRACE_COST_BEFORE);
	assert_true(before->beside);
	assert_int_equal(before->total_ns, result.before_cpu_ns);
	assert_in_range(before->total_ns, 1000000, UINT64_MAX); /* the clock alone takes that */
	assert_int_equal(records->target_cpu_ns, result.target_cpu_ns);
	assert_int_equal(samples->total_ns, samples->n * result.sample_ns);
	assert_int_equal(switches->total_ns, switches->n * result.switch_ns);
	const struct trace_cost *after =
		cost(d, "reading and writing the trace, after the program's end");
	assert_true(reading->beside && after->beside);
	assert_in_range(reading->total_ns + after->total_ns, 1, result.recorder_cpu_ns);
	trace_reader_close(r);
}

/* What is in no record of its own is counted, too: looking at descriptors, asking at their ends, and
 * call paths, of which a thread's first 64 are taken, and then one in 16. */
static void test_cost_beside_records(void **state)
{
	static const struct {
		const char *does, *times, *cost;
		uint64_t least, most;
	} row[] = {{"ends", "3000", "closes of unknown descriptors", 3000, 3020},
		{"ends", "2", "closes of unknown descriptors", 1, 20},
		{"looks", "700", "descriptors looked at", 700, 720},
		{"waits", "1600", "call paths", 160, 164}, {"waits", "64", "call paths", 64, 68}};
	char probe[PATH_MAX];
	(void)state;
	assert_true(base_installed_file("src/session", "longpole-probe", probe));
	for (size_t i = 0; i < BASE_COUNT(row); i++) {
		struct trace_reader *r;
		assert_int_equal(
			RUN(probe, (char *)(uintptr_t)row[i].does, (char *)(uintptr_t)row[i].times),
			BASE_OK);
		assert_int_equal(result.exit_code, 0);
		assert_int_equal(trace_reader_open(trace_path, NULL, &r, NULL), BASE_OK);
		const struct trace_cost *c = cost(trace_reader_defs(r), row[i].cost);
		assert_in_range(c->n, row[i].least, row[i].most);
		assert_in_range(c->total_ns / c->n, 20, 1000000);
		assert_true(result.added_ns >= c->total_ns);
		trace_reader_close(r);
	}
}

/* Forty starts, forks and threads are counted; starts are enough to be measured, and are more than
 * all records. What is measured leaves nothing in the trace. */
static void test_cost_of_starts(void **state)
{
	struct trace_reader *r;
	(void)state;
	assert_int_equal(
		RUN("/bin/sh", "-c",
			"i=0; while [ $i -lt 40 ]; do /bin/true; i=$((i+1)); done; exit 0"),
		BASE_OK);
	assert_int_equal(trace_reader_open(trace_path, NULL, &r, NULL), BASE_OK);
	const struct trace_defs *d = trace_reader_defs(r);
	const struct trace_cost *starts = cost(d, TRACE_COST_STARTS);
	assert_int_equal(starts->n, 41);
	/* (how much that is, is the machine's business) */
	assert_true(starts->total_ns > cost(d, "records")->total_ns);
	assert_in_range(starts->total_ns / starts->n, 1, 5000000);
	assert_true(result.added_ns >= starts->total_ns);
	assert_true(result.overhead_share > 0);
	for (uint32_t i = 1; i < d->nr_processes; i++)
		assert_null(strstr(trace_text_of(d, d->processes[i].name), "probe"));
	trace_reader_close(r);
}

/* How children end they say themselves; a killed one cannot. */
static void test_children_say_how_they_end(void **state)
{
	(void)state;
	assert_int_equal(RUN("/bin/sh", "-c",
				 "(exit 3); /bin/sh -c 'exit 4'; (kill -KILL $(sh -c 'echo "
				 "$PPID')); exit 5"),
		BASE_OK);
	bool seen[256] = {0}, unknown = false;
	struct trace_reader *r;
	struct trace_batch batch;
	assert_int_equal(trace_reader_open(trace_path, NULL, &r, NULL), BASE_OK);
	while (trace_reader_next(r, &batch, NULL) == BASE_OK)
		for (size_t i = 0; i < batch.nr; i++) {
			const struct trace_record *one = &batch.record[i];
			if (one->kind != TRACE_process_end)
				continue;
			if (one->u.process_end.status < 0)
				unknown = true;
			else
				seen[WEXITSTATUS(one->u.process_end.status)] = true;
		}
	trace_reader_close(r);
	assert_true(seen[3] && seen[4] && seen[5]);
	assert_true(unknown);
}

/* The program writes over the ring: a block that says it is done, with a record of no kind. */
static void test_damaged_ring(void **state)
{
	enum { BLOCK = 3, NO_KIND = 0xff };
	struct ring_block block = {.state = RING_BLOCK_DONE,
		.pid = 1,
		.tid = 1,
		.image = 1,
		.thread = 77,
		.nr_words = 2};
	uint64_t word[2] = {1 << 8 | NO_KIND, 1};
	char command[512], path[] = "/tmp/longpole-test-XXXXXX";
	int fd = mkstemp(path);
	(void)state;
	assert_true(write(fd, &block, sizeof block) == sizeof block);
	assert_true(write(fd, word, sizeof word) == sizeof word);
	close(fd);
	/* all of the first blocks are taken, and one of them is ours */
	snprintf(command, sizeof command,
		"dd if=/dev/zero of=$LONGPOLE_RING bs=1 count=8 seek=%zu conv=notrunc && "
		"dd if=%s of=$LONGPOLE_RING bs=1 seek=%zu conv=notrunc",
		offsetof(struct ring_head, free_map), path,
		(size_t)ring_blocks_offset(BUFFER_BYTES / RING_BLOCK_BYTES) +
			BLOCK * (size_t)RING_BLOCK_BYTES);
	assert_int_equal(RUN("/bin/sh", "-c", command), BASE_OK);
	assert_int_equal(result.exit_code, 0);
	assert_int_equal(result.count[TRACE_DIAG_ring_damaged], 1);
	unlink(path);
}

/* A child that libc makes by itself (awk's system()) has its parent. */
static void test_libc_makes_a_child(void **state)
{
	struct trace_reader *r;
	(void)state;
	assert_int_equal(RUN("/usr/bin/awk", "BEGIN { exit system(\"exit 3\") != 3 }"), BASE_OK);
	assert_int_equal(result.exit_code, 0);
	assert_int_equal(trace_reader_open(trace_path, NULL, &r, NULL), BASE_OK);
	const struct trace_defs *d = trace_reader_defs(r);
	assert_int_equal(d->nr_processes, 1 + 2);
	assert_int_equal(d->processes[2].parent, 1);
	trace_reader_close(r);
}

static void test_signal(void **state)
{
	struct trace_record end;
	(void)state;
	assert_int_equal(RUN("/bin/sh", "-c", "kill -TERM $$"), BASE_OK);
	assert_int_equal(result.exit_code, 128 + SIGTERM);
	assert_int_equal(result.count[TRACE_DIAG_killed], 1);
	assert_int_equal(find(TRACE_process_end, &end), 1);
	assert_int_equal(WTERMSIG(end.u.process_end.status), SIGTERM);
}

static void test_children(void **state)
{
	struct trace_record r;
	(void)state;
	assert_int_equal(RUN("/bin/sh", "-c", "/bin/true; /bin/true & wait"), BASE_OK);
	assert_int_equal(result.exit_code, 0);
	/* sh, two execs, and the forks that were no vforks */
	assert_in_range(find(TRACE_process_begin, &r), 3, 5);
	assert_true(result.target_cpu_ns > 0);
}

/* The trace says where its path is to end. */
static void test_wait_all_is_in_the_trace(void **state)
{
	(void)state;
	for (int all = 0; all < 2; all++) {
		struct session_options o = session_options_default();
		struct trace_reader *r;
		o.output_path = trace_path;
		o.argv = (char *const[]){"/bin/true", NULL};
		o.buffer_bytes = BUFFER_BYTES;
		o.wait_all = all;
		assert_int_equal(session_run(&o, &result, &err), BASE_OK);
		assert_int_equal(trace_reader_open(trace_path, NULL, &r, NULL), BASE_OK);
		assert_int_equal(trace_reader_info(r)->flags, all ? TRACE_INFO_WAIT_ALL : 0);
		trace_reader_close(r);
	}
}

static void test_cannot_run(void **state)
{
	(void)state;
	assert_int_equal(RUN("/nonexistent/program"), BASE_ERR_ENV);
	assert_int_equal(result.exit_code, 127);
	assert_int_equal(RUN("longpole-no-such-program"), BASE_ERR_ENV);
	assert_int_equal(result.exit_code, 127);
	assert_int_not_equal(RUN("/tmp"), BASE_OK);
	assert_int_equal(result.exit_code, 126);
	assert_int_equal(RUN("/dev/null"), BASE_ERR_ENV);
	assert_int_equal(result.exit_code, 126);
	assert_int_equal(nr_rings(), 0);
}

/* The least ELF file that is not loaded by ld.so. */
static void test_static_program(void **state)
{
	char path[] = "/tmp/longpole-static-XXXXXX";
	int fd = mkstemp(path);
	unsigned char elf[64] = {
		0x7f, 'E', 'L', 'F', 2, 1, 1, [16] = 2, [18] = OS_MACHINE, [54] = 56};
	(void)state;
	assert_int_equal(write(fd, elf, sizeof elf), sizeof elf);
	fchmod(fd, 0700);
	close(fd);
	assert_int_equal(RUN(path), BASE_ERR_ENV);
	assert_int_equal(result.exit_code, 125);
	assert_non_null(strstr(err.cause[0], "statically linked"));
	unlink(path);
}

static void test_environment_and_descriptors(void **state)
{
	(void)state;
	/* Nothing of ours is open in the program but what it had; its variables are all there. */
	setenv("LONGPOLE_TEST_KEPT", "yes", 1);
	assert_int_equal(RUN("/bin/sh", "-c",
				 "test $LONGPOLE_TEST_KEPT = yes && for fd in 3 4 5 6 7 8 9; do "
				 "test ! -e /proc/$$/fd/$fd || exit 9; done"),
		BASE_OK);
	assert_int_equal(result.exit_code, 0);
	unsetenv("LONGPOLE_TEST_KEPT");
}

static void test_signals_are_passed_on(void **state)
{
	(void)state;
	/* The program signals us, its parent, by kill: we hand it on. */
	assert_int_equal(
		RUN("/bin/bash", "-c", "trap 'exit 5' TERM; kill -TERM $PPID; sleep 10 & wait"),
		BASE_OK);
	assert_int_equal(result.exit_code, 5);
}

static void test_full_disk(void **state)
{
	struct rlimit before, small;
	(void)state;
	getrlimit(RLIMIT_FSIZE, &before);
	/* The ring needs to be larger, so the limit is set when it exists: by the program, for us.
	 */
	small = before;
	char command[200];
	snprintf(command, sizeof command,
		"command -v prlimit >/dev/null || exit 77; prlimit --pid $PPID --fsize=2000:%lld; "
		"i=0; while test $i -lt 400; do /bin/true; i=$((i+1)); done; exit 3",
		(long long)before.rlim_max);
	assert_int_equal(RUN("/bin/sh", "-c", command), BASE_OK);
	setrlimit(RLIMIT_FSIZE, &small);
	if (result.exit_code == 77)
		skip();
	assert_int_equal(result.exit_code, 3); /* undisturbed */
	assert_int_equal(result.count[TRACE_DIAG_disk_full], 1);
	struct trace_reader *r;
	assert_int_equal(trace_reader_open(trace_path, NULL, &r, NULL), BASE_OK);
	trace_reader_close(r);
}

static void test_doctor(void **state)
{
	struct session_probe probe[SESSION_PROBES_MAX];
	(void)state;
	size_t nr = session_doctor(probe);
	assert_in_range(nr, 5, SESSION_PROBES_MAX);
	for (size_t i = 0; i < nr; i++) {
		assert_true(
			*probe[i].name && *probe[i].title && *probe[i].lost && *probe[i].instead);
		assert_true(*probe[i].value);
	}
}

/* The library says what it is; of another version it is refused before anything is started. */
static void test_library_of_another_version(void **state)
{
	static const uint32_t other[] = {RING_VERSION - 1, RING_VERSION + 1, 0};
	static const char *const says[] = {"an older", "a newer", "an older"};
	const char *right = getenv("LONGPOLE_PRELOAD");
	char path[] = "/tmp/longpole-library-XXXXXX", keep[4096];
	static uint8_t file[4 << 20];
	(void)state;
	snprintf(keep, sizeof keep, "%s", right);
	int from = open(right, O_RDONLY | O_CLOEXEC), to = mkstemp(path);
	ssize_t n = read(from, file, sizeof file);
	assert_in_range(n, 1, sizeof file - 1);
	uint8_t *tag = memmem(file, (size_t)n, RING_TAG, strlen(RING_TAG));
	assert_non_null(tag);
	for (size_t i = 0; i < BASE_COUNT(other); i++) {
		memcpy(tag + strlen(RING_TAG), &other[i], sizeof *other);
		if (!other[i])
			*tag = 0; /* older than the tag itself */
		assert_int_equal(pwrite(to, file, (size_t)n, 0), n);
		setenv("LONGPOLE_PRELOAD", path, 1);
		assert_int_equal(RUN("/bin/true"), BASE_ERR_ENV);
		assert_int_equal(result.exit_code, 125);
		assert_non_null(strstr(err.cause[0], path));
		assert_non_null(strstr(err.cause[0], says[i]));
		assert_int_equal(nr_rings(), 0);
	}
	setenv("LONGPOLE_PRELOAD", keep, 1);
	close(from);
	close(to);
	unlink(path);
}

static int set_up(void **state)
{
	char preload[4096];
	const char *build = getenv("LONGPOLE_BUILD");
	(void)state;
	snprintf(preload, sizeof preload, "%s/src/preload/liblongpole-preload.so",
		build ? build : ".");
	setenv("LONGPOLE_PRELOAD", preload, 1);
	int fd = mkstemp(trace_path);
	close(fd);
	return fd < 0;
}

static int clean_up(void **state)
{
	(void)state;
	return unlink(trace_path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_exit_status),
		cmocka_unit_test(test_cost_is_in_the_trace),
		cmocka_unit_test(test_cost_beside_records),
		cmocka_unit_test(test_cost_of_starts),
		cmocka_unit_test(test_children_say_how_they_end),
		cmocka_unit_test(test_damaged_ring),
		cmocka_unit_test(test_libc_makes_a_child),
		cmocka_unit_test(test_signal),
		cmocka_unit_test(test_children),
		cmocka_unit_test(test_wait_all_is_in_the_trace),
		cmocka_unit_test(test_cannot_run),
		cmocka_unit_test(test_static_program),
		cmocka_unit_test(test_library_of_another_version),
		cmocka_unit_test(test_environment_and_descriptors),
		cmocka_unit_test(test_signals_are_passed_on),
		cmocka_unit_test(test_full_disk),
		cmocka_unit_test(test_doctor),
	};
	return cmocka_run_group_tests(tests, set_up, clean_up);
}
