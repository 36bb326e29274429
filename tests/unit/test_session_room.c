/* SPDX-License-Identifier: Apache-2.0 */
/* test_session_room.c - how large the recorder's buffer may be, and what quota a
 * program has: machine and control groups. */
#include "session/room.h"
#include "test.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MIB (1ull << 20)

static char root[] = "/tmp/longpole-room-XXXXXX";

/* A file below root, with the directories that lead to it. */
static void put(const char *name, const char *text)
{
	char path[256];

	snprintf(path, sizeof path, "%s/%s", root, name);
	for (char *slash = path + strlen(root); (slash = strchr(slash + 1, '/'));) {
		*slash = 0;
		mkdir(path, 0700);
		*slash = '/';
	}
	FILE *f = fopen(path, "we");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static void least_limit_of_all_groups_around(void **unused)
{
	uint64_t machine = session_room_bytes(root); /* (nothing in it yet) */

	(void)unused;
	assert_true(machine == (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE));
	put("proc/self/cgroup", "0::/pod/inner\n");
	put("sys/fs/cgroup/pod/inner/memory.max", "max\n");
	assert_true(session_room_bytes(root) == machine);
	put("sys/fs/cgroup/pod/memory.max", "67108864\n");
	assert_true(session_room_bytes(root) == 64 * MIB);
	put("sys/fs/cgroup/memory.max",
		"50331648\n"); /* a container sees its own group as the root */
	assert_true(session_room_bytes(root) == 48 * MIB);
	put("sys/fs/cgroup/pod/inner/memory.max", "33554432\n");
	assert_true(session_room_bytes(root) == 32 * MIB);
}

static void version_1(void **unused)
{
	(void)unused;
	put("proc/self/cgroup",
		"9:cpu,cpuacct:/a\n8:memory:/a\nnonsense\n1:name=systemd:/\n0::/gone\n");
	put("sys/fs/cgroup/memory/a/memory.limit_in_bytes", "25165824\n");
	put("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
	put("sys/fs/cgroup/memory.max", "max\n");
	assert_true(session_room_bytes(root) == 24 * MIB);
}

static void share(void **unused)
{
	(void)unused;
	assert_true(session_room_buffer_bytes(64 * MIB) == 16 * MIB);
	assert_true(session_room_buffer_bytes(4096 * MIB) == 256 * MIB);
	assert_true(session_room_buffer_bytes(UINT64_MAX) == 1024 * MIB);
}

static void quota_is(uint64_t quota_ms, uint64_t period_ms)
{
	struct session_quota q = session_room_quota(root);

	assert_int_equal(q.quota_ns, quota_ms * 1000000);
	assert_int_equal(q.period_ns, period_ms * 1000000);
}

/* The group or one around it, whichever leaves less a period; in either version, and beside one
 * another. */
static void quota(void **unused)
{
	(void)unused;
	put("proc/self/cgroup", "0::/pod/inner\n");
	quota_is(0, 0);
	put("sys/fs/cgroup/pod/inner/cpu.max", "max 100000\n");
	quota_is(0, 0);
	put("sys/fs/cgroup/pod/cpu.max", "150000 100000\n");
	quota_is(150, 100);
	put("sys/fs/cgroup/pod/inner/cpu.max", "40000 20000\n"); /* two processors */
	quota_is(150, 100);
	put("sys/fs/cgroup/cpu.max", "5000 10000\n");
	quota_is(5, 10);
	put("sys/fs/cgroup/cpu.max", "99999999999999999999999 0\n");
	quota_is(150, 100);
	put("proc/self/cgroup", "7:cpu,cpuacct:/a/b\n6:cpuset:/a\n0::/gone\n");
	put("sys/fs/cgroup/cpu.max", "max 100000\n");
	quota_is(0, 0);
	put("sys/fs/cgroup/cpu,cpuacct/a/b/cpu.cfs_quota_us", "-1\n");
	put("sys/fs/cgroup/cpu,cpuacct/a/b/cpu.cfs_period_us", "100000\n");
	put("sys/fs/cgroup/cpuset/a/cpu.cfs_quota_us", "1\n");
	put("sys/fs/cgroup/cpuset/a/cpu.cfs_period_us", "100000\n");
	quota_is(0, 0);
	put("sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_quota_us", "75000\n");
	put("sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_period_us", "50000\n");
	quota_is(75, 50);
}

static int make_root(void **unused)
{
	(void)unused;
	return mkdtemp(root) ? 0 : -1;
}

static int remove_root(void **unused)
{
	char command[64];

	(void)unused;
	snprintf(command, sizeof command, "rm -rf %s", root);
	return system(command);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(least_limit_of_all_groups_around),
		cmocka_unit_test(version_1),
		cmocka_unit_test(quota),
		cmocka_unit_test(share),
	};

	return cmocka_run_group_tests(tests, make_root, remove_root);
}
