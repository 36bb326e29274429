/* SPDX-License-Identifier: Apache-2.0 */
/* test_deadlock.c - parsers of /proc, strongly connected parts, the closed world, lack of memory.
 */
#include "deadlock/components.h"
#include "deadlock/facts/peers.h"
#include "deadlock/private.h"
#include "runtime/python/layout.h"
#include "test.h"

#include <fcntl.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/unix_diag.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* ---- parsers --------------------------------------------------------------------------------- */

static void test_stat(void **state)
{
	struct os_task_stat s;
	(void)state;
	assert_true(os_parse_stat("12 (a) b) (c) S 7 12 12 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 "
				  "123456 1 2",
		&s));
	assert_string_equal(s.name, "a) b) (c");
	assert_int_equal(s.parent, 7);
	assert_int_equal(s.state, 'S');
	assert_int_equal(s.flags, 4194560);
	assert_int_equal(s.start_ticks, 123456);
	assert_false(os_parse_stat("12 (a) S 7 12", &s));
	assert_false(os_parse_stat("", &s));
	assert_false(os_parse_stat(")(", &s));
}

static void test_syscall(void **state)
{
	struct deadlock_syscall s;
	(void)state;
	assert_true(deadlock_parse_syscall(
		"202 0x5580 0x80 0x2 0x0 0x0 0xffffffffffffffff 0x7ffd 0x7f00\n", &s));
	assert_int_equal(s.call, 202);
	assert_int_equal(s.arg[2], 2);
	assert_true(s.arg[5] == UINT64_MAX && s.sp == 0x7ffd && s.pc == 0x7f00);
	assert_true(deadlock_parse_syscall("running\n", &s) && s.is_running);
	assert_true(deadlock_parse_syscall("-1 0x7ffd 0x7f00\n", &s) && s.is_none);
	assert_false(deadlock_parse_syscall("202 0x5580\n", &s));
	assert_false(deadlock_parse_syscall("0x1ffffffffffffffff", &s));
}

static void test_maps(void **state)
{
	struct os_region r;
	const char *text = "7f00-7f10 rw-s 00002000 00:01 1034 /dev/shm/a b\n"
			   "8000-9000 r-xp 00000000 fd:02 77 \n"
			   "nonsense\n";
	(void)state;
	assert_true(os_parse_region(&text, &r));
	assert_true(r.start == 0x7f00 && r.end == 0x7f10 && r.offset == 0x2000 && r.inode == 1034);
	assert_true(r.shared && r.writable && !r.executable && r.device == 1);
	assert_int_equal(r.path_length, strlen("/dev/shm/a b"));
	assert_true(os_parse_region(&text, &r));
	assert_true(r.executable && !r.shared && r.device == (0xfdu << 20 | 2) && !r.path_length);
	assert_false(os_parse_region(&text, &r));
}

/* What the kernel tells of shared regions, if it does, beside its text. One is mapped read-only of
 * a file that was opened so: the kernel keeps that apart from other shared ones. */
static void test_shared_regions(void **state)
{
	enum { BYTES = 4096, TEXT = 1 << 20 };
	(void)state;
	void *anonymous = mmap(NULL, BYTES, PROT_READ, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	const int self = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	void *file = mmap(NULL, BYTES, PROT_READ, MAP_SHARED, self, 0);
	assert_true(anonymous != MAP_FAILED && self >= 0 && file != MAP_FAILED);
	char *text = malloc(TEXT);
	assert_non_null(text);
	assert_true(os_proc_read(getpid(), "maps", text, TEXT) > 0);
	const int maps = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	assert_true(maps >= 0);
	struct os_region r, told;
	const char *rest = text;
	uint64_t from = 0;
	unsigned nr = 0;
	enum deadlock_shared answer = deadlock_shared_region(maps, from, &told);
	while (answer != DEADLOCK_SHARED_REFUSED && os_parse_region(&rest, &r)) {
		if (!r.shared)
			continue;
		assert_int_equal(deadlock_shared_region(maps, from, &told), DEADLOCK_SHARED_FOUND);
		assert_true(told.start == r.start && told.end == r.end && told.shared);
		assert_true(told.device == r.device && told.inode == r.inode);
		assert_true(told.offset == r.offset && told.writable == r.writable);
		from = r.end;
		nr++;
	}
	if (answer != DEADLOCK_SHARED_REFUSED) {
		assert_true(nr >= 2);
		assert_int_equal(deadlock_shared_region(maps, from, &told), DEADLOCK_SHARED_NONE);
	}
	free(text);
	(void)close(maps);
	(void)close(self);
	(void)munmap(anonymous, BYTES);
	(void)munmap(file, BYTES);
}

static void test_locks(void **state)
{
	struct deadlock_file_lock l;
	const char *text = "1: FLOCK  ADVISORY  WRITE 71 fd:01:5678 0 EOF\n"
			   "1: -> FLOCK  ADVISORY  WRITE 72 fd:01:5678 0 EOF\n"
			   "2: LEASE  ACTIVE    READ  9 00:01:1 0 EOF\n"
			   "3: OFDLCK ADVISORY  READ  -1 00:2d:9 5 10\n";
	(void)state;
	assert_true(deadlock_parse_file_lock(&text, &l));
	assert_true(!l.is_blocked && l.is_flock && l.is_write && l.pid == 71 && l.inode == 5678);
	assert_true(l.device == (0xfdu << 20 | 1) && l.end == UINT64_MAX);
	assert_true(deadlock_parse_file_lock(&text, &l));
	assert_true(l.is_blocked && l.pid == 72);
	assert_true(deadlock_parse_file_lock(&text, &l)); /* the lease is left out */
	assert_true(!l.is_flock && !l.is_write && l.pid == -1 && l.start == 5 && l.end == 10);
	assert_false(deadlock_parse_file_lock(&text, &l));
}

static void test_epoll(void **state)
{
	struct deadlock_epoll_item i;
	const char *text =
		"pos:\t0\nflags:\t02\n"
		"tfd:        4 events:       19 data:     7f12345678  pos:0 ino:1 sdev:9\n";
	(void)state;
	assert_true(deadlock_parse_epoll(&text, &i));
	assert_true(i.fd == 4 && i.events == 0x19 && i.data == 0x7f12345678);
	assert_false(deadlock_parse_epoll(&text, &i));
}

static void test_status(void **state)
{
	struct deadlock_status s;
	uint64_t n;
	const char *text = "Name:\tx\nTracerPid:\t5\nUid:\t1000\t1000\t1000\t1000\nSeccomp:\t2\n"
			   "SigCgt:\t0000000180000002\n";
	(void)state;
	assert_true(deadlock_parse_status(text, &s));
	assert_true(s.tracer == 5 && s.uid == 1000 && s.seccomp == 2 && s.caught == 0x180000002);
	assert_false(deadlock_parse_status("Uid:\t0\n", &s));
	assert_true(os_parse_field("flags:\t0100001\n", "flags", 8, &n) && n == 0100001);
	assert_false(os_parse_field("xflags:\t1\n", "flags", 8, &n));
}

/* Numbers of PID namespaces, from ours inwards. */
static void test_innermost_pid(void **state)
{
	pid_t pid;
	(void)state;
	assert_true(deadlock_parse_innermost_pid(
		"Name:\tx\nNSpid:\t812\t17\t1\nNSpgid:\t812\t9\n", &pid));
	assert_int_equal(pid, 1);
	assert_true(deadlock_parse_innermost_pid("Name:\tx\nNSpid:\t812", &pid) && pid == 812);
	assert_false(deadlock_parse_innermost_pid("Name:\tx\nNSpid:\t\n", &pid));
	assert_false(deadlock_parse_innermost_pid("Name:\tx\nNSpid:\t99999999999\n", &pid));
	assert_false(deadlock_parse_innermost_pid("Name:\tNSpid:\t5\n", &pid));
}

/* The kernel's answer about two sockets of a pair, in one buffer. */
static void test_peers(void **state)
{
	struct {
		struct nlmsghdr h;
		struct unix_diag_msg m;
		struct {
			uint16_t length, type;
			uint32_t peer;
		} a;
	} answer[2] = {{.h = {.nlmsg_len = sizeof *answer}}};
	struct deadlock_peers p = {0};
	struct base_map ends = {0};
	(void)state;
	for (uint32_t i = 0; i < 2; i++) {
		answer[i].h.nlmsg_len = sizeof *answer;
		answer[i].m.udiag_family = AF_UNIX;
		answer[i].m.udiag_ino = 100 + i;
		answer[i].a.length = 8;
		answer[i].a.type = UNIX_DIAG_PEER;
		answer[i].a.peer = 101 - i;
	}
	assert_true(deadlock_peers_parse(&p, &ends, answer, sizeof answer));
	assert_int_equal(deadlock_peers_get(&p, 100), 101);
	assert_int_equal(deadlock_peers_get(&p, 101), 100);
	assert_int_equal(deadlock_peers_get(&p, 102), 0);
	assert_false(deadlock_peers_parse(&p, &ends, answer, sizeof answer - 1) &&
		     deadlock_peers_get(&p, 102)); /* cut short: what is whole counts */
	deadlock_peers_fini(&p);
	base_map_fini(&ends);
}

/* A listening socket with a name, at which two wait; a name that is the beginning of another. */
static void test_named_sockets(void **state)
{
	enum { LISTENS = 10, UNCONNECTED = 7 };
	struct {
		struct nlmsghdr h;
		struct unix_diag_msg m;
		struct {
			uint16_t length, type;
			char text[4];
		} name;
		struct {
			uint16_t length, type;
			uint32_t client[3];
		} waiting;
		struct {
			uint16_t length, type;
			struct unix_diag_vfs at;
		} file;
	} answer[2] = {{.name.text = "ab"}, {.name = {.text = {0, 'a', 'b', 0}}}};
	struct deadlock_peers p = {0};
	struct base_map ends = {0};
	(void)state;
	for (uint32_t i = 0; i < 2; i++) {
		answer[i].h.nlmsg_len = sizeof *answer;
		answer[i].m.udiag_family = AF_UNIX;
		answer[i].m.udiag_type = i ? SOCK_DGRAM : SOCK_STREAM;
		answer[i].m.udiag_state = i ? UNCONNECTED : LISTENS;
		answer[i].m.udiag_ino = 100 + i;
		answer[i].name.length = i ? 8 : 7;
		answer[i].name.type = UNIX_DIAG_NAME;
		answer[i].waiting.length = i ? 4 : 16;
		answer[i].waiting.type = UNIX_DIAG_ICONS;
		answer[i].waiting.client[0] = 200;
		answer[i].waiting.client[2] = 202; /* [1]: of another namespace */
		answer[i].file.length = 12;
		answer[i].file.type = UNIX_DIAG_VFS;
		answer[i].file.at =
			(struct unix_diag_vfs){.udiag_vfs_dev = 5, .udiag_vfs_ino = 50 + i};
	}
	assert_true(deadlock_peers_parse(&p, &ends, answer, sizeof answer));
	assert_int_equal(deadlock_peers_named(&p, "ab", 3), 100);
	assert_int_equal(deadlock_peers_named(&p, "ab", 2), 100);
	assert_int_equal(deadlock_peers_named(&p, "a", 2), 0);
	assert_int_equal(deadlock_peers_named(&p, "\0ab", 4), 101); /* abstract: all bytes */
	assert_int_equal(deadlock_peers_named(&p, "\0ab", 3), 0);
	assert_int_equal(deadlock_peers_at(&p, 5, 50), 100);
	assert_int_equal(deadlock_peers_at(&p, 6, 50), 0);
	answer[0].m.udiag_state = 1; /* who was accepted is not who accepts */
	answer[0].m.udiag_ino = 300;
	answer[0].waiting.type = 99;
	assert_true(deadlock_peers_parse(&p, &ends, answer, sizeof *answer));
	assert_int_equal(deadlock_peers_named(&p, "ab", 3), 100);
	assert_int_equal(deadlock_peers_at(&p, 5, 50), 100);
	assert_int_equal(deadlock_peers_role(&p, 100), DEADLOCK_SOCKET_LISTENS);
	assert_int_equal(deadlock_peers_role(&p, 101), DEADLOCK_SOCKET_OPEN);
	assert_int_equal(deadlock_peers_role(&p, 200), DEADLOCK_SOCKET_NAMELESS);
	assert_int_equal(deadlock_peers_waiting(&p, 100, 0), 200);
	assert_int_equal(deadlock_peers_waiting(&p, 100, 1), 202);
	assert_int_equal(deadlock_peers_waiting(&p, 100, 2), 0);
	assert_int_equal(deadlock_peers_get(&p, 202), 100);
	deadlock_peers_fini(&p);
	base_map_fini(&ends);
}

/* Listeners whose queue is full, or not, by the addresses that lead to them. */
static void test_full_listeners(void **state)
{
	enum { LISTENS = 10, FULL = 300 };
	static const struct {
		uint8_t family;
		uint32_t address, waiting, room;
		uint16_t port;
	} row[] = {{AF_INET, 0, 2, 1, 80}, {AF_INET, 0x0a000001, 6, 5, 81}, {AF_INET, 0, 5, 5, 82},
		{AF_INET6, 0, 1, 0, 83}};
	struct {
		struct nlmsghdr h;
		struct inet_diag_msg m;
	} answer[BASE_COUNT(row)] = {{.h = {0}}};
	struct deadlock_peers p = {0};
	struct base_map ends = {0};
	(void)state;
	for (uint32_t i = 0; i < BASE_COUNT(row); i++) {
		answer[i].h.nlmsg_len = sizeof *answer;
		answer[i].m = (struct inet_diag_msg){.idiag_family = row[i].family,
			.idiag_state = LISTENS,
			.idiag_rqueue = row[i].waiting,
			.idiag_wqueue = row[i].room,
			.idiag_inode = FULL + i,
			.id = {.idiag_sport = htons(row[i].port),
				.idiag_src = {htonl(row[i].address)}}};
	}
	assert_true(deadlock_peers_parse(&p, &ends, answer, sizeof answer));
	static const struct {
		uint32_t address;
		uint16_t port;
		uint64_t inode;
	} to[] = {{0x7f000001, 80, FULL}, {0x0a000001, 81, FULL + 1}, {0x7f000001, 81, 0},
		{0x7f000001, 82, 0}, {0x0a000002, 80, 0}, {0x7f000001, 83, FULL + 3},
		{0x7f000001, 0, 0}};
	for (size_t i = 0; i < BASE_COUNT(to); i++) {
		const struct sockaddr_in in = {.sin_family = AF_INET,
			.sin_port = htons(to[i].port),
			.sin_addr = {htonl(to[i].address)}};
		assert_int_equal(
			deadlock_peers_full(&p, (const struct sockaddr *)&in), to[i].inode);
	}
	const struct sockaddr_in6 in6 = {.sin6_family = AF_INET6,
		.sin6_port = htons(80),
		.sin6_addr = IN6ADDR_LOOPBACK_INIT};
	assert_int_equal(deadlock_peers_full(&p, (const struct sockaddr *)&in6), FULL);
	assert_true(deadlock_peers_is_full(&p, FULL) && !deadlock_peers_is_full(&p, FULL + 2));
	deadlock_peers_fini(&p);
	base_map_fini(&ends);
}

/* ---- components: against reachability by hand ------------------------------------------------ */

enum { NODES = 9, ARCS = 14, TRIALS = 3000 };

static void close_over(bool reach[NODES][NODES])
{
	for (int k = 0; k < NODES; k++) {
		for (int i = 0; i < NODES; i++) {
			for (int j = 0; j < NODES; j++)
				reach[i][j] |= reach[i][k] && reach[k][j];
		}
	}
}

static void check_components(const struct deadlock_arc *arc, size_t nr)
{
	bool reach[NODES][NODES] = {{false}}, loop[NODES] = {false};
	struct deadlock_components c;
	size_t part[NODES];
	for (size_t i = 0; i < nr; i++) {
		reach[arc[i].from][arc[i].to] = true;
		loop[arc[i].from] |= arc[i].from == arc[i].to;
	}
	close_over(reach);
	assert_int_equal(deadlock_components_find(NODES, arc, nr, &c), BASE_OK);
	assert_int_equal(c.first[c.nr], NODES);
	for (size_t i = 0; i < c.nr; i++) {
		bool has_loop = false;
		for (uint32_t m = c.first[i]; m < c.first[i + 1]; m++) {
			part[c.member[m]] = i;
			has_loop |= loop[c.member[m]];
		}
		assert_int_equal(has_loop, c.has_loop[i]);
	}
	for (int i = 0; i < NODES; i++) {
		for (int j = 0; j < NODES; j++)
			assert_int_equal(
				part[i] == part[j], i == j || (reach[i][j] && reach[j][i]));
	}
	deadlock_components_fini(&c);
}

static void test_components(void **state)
{
	uint64_t seed = 1;
	(void)state;
	for (int trial = 0; trial < TRIALS; trial++) {
		struct deadlock_arc arc[ARCS];
		for (int i = 0; i < ARCS; i++) {
			seed = base_hash_u64(seed + 1);
			arc[i] = (struct deadlock_arc){
				(uint32_t)(seed % NODES), (uint32_t)(seed / NODES % NODES)};
		}
		check_components(arc, (size_t)(seed % (ARCS + 1)));
	}
}

/* ---- the closed world, by hand --------------------------------------------------------------- */

enum { PID = 1 << 29, WAITS = 6 }; /* no such process */

static struct deadlock_wait mutex_wait(pid_t tid, uint64_t mutex, pid_t owner)
{
	return (struct deadlock_wait){.thread = {.pid = PID, .tid = tid, .state = 'S'},
		.kind = DEADLOCK_MUTEX,
		.call = 202,
		.object = mutex,
		.owner = owner,
		.owner_is_exact = true,
		.nr_keys = 1,
		.key = {{.kind = DEADLOCK_KEY_FUTEX, .space = PID, .at = mutex, .bytes = 40}}};
}

struct by_hand {
	struct deadlock_answer a;
	struct deadlock_wait wait[WAITS];
	enum deadlock_hope hope[WAITS];
};

static void judge(struct by_hand *h, size_t nr)
{
	struct deadlock_accesses accesses = {0};
	struct base_err err;
	h->a.wait = h->wait;
	h->a.hope = h->hope;
	h->a.nr_waits = nr;
	assert_int_equal(deadlock_world_open(&h->a.world, &err), BASE_OK);
	assert_int_equal(deadlock_accesses_find(h->a.world, h->wait, nr, &accesses, &err), BASE_OK);
	assert_int_equal(deadlock_close_world(&h->a, &accesses, &err), BASE_OK);
	assert_int_equal(deadlock_judge(&h->a, &accesses, &err), BASE_OK);
}

static void finish(struct by_hand *h)
{
	base_free(h->a.edge);
	base_free(h->a.finding);
	deadlock_world_close(h->a.world);
}

static void test_circle_and_who_waits_behind(void **state)
{
	struct by_hand h = {
		.wait = {mutex_wait(PID + 1, 0x100, PID + 2), mutex_wait(PID + 2, 0x200, PID + 3),
			mutex_wait(PID + 3, 0x300, PID + 1), mutex_wait(PID + 4, 0x100, PID + 2),
			mutex_wait(PID + 5, 0x400, PID + 6),
			{.thread = {.pid = PID, .tid = PID + 6, .state = 'R'}}}};
	(void)state;
	judge(&h, 6);
	assert_int_equal(h.a.nr_findings, 1);
	const struct deadlock_finding *f = h.a.finding;
	assert_int_equal(f->kind, DEADLOCK_FINDING_CYCLE);
	assert_int_equal(f->sure, DEADLOCK_CERTAIN);
	assert_true(f->is_simple && f->is_knot);
	assert_int_equal(f->nr_members, 3);
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(f->member[i], i); /* round the circle */
	assert_int_equal(f->nr_behind, 1);
	assert_int_equal(h.hope[4], DEADLOCK_LIVE); /* its owner runs */
	finish(&h);
}

static void test_time_breaks_a_circle(void **state)
{
	struct by_hand h = {
		.wait = {mutex_wait(PID + 1, 0x100, PID + 2), mutex_wait(PID + 2, 0x200, PID + 1)}};
	uint64_t left_ns;
	(void)state;
	h.a.now_ns = 30;
	judge(&h, 2);
	assert_false(deadlock_finding_left_ns(&h.a, h.a.finding, &left_ns));
	finish(&h);
	h = (struct by_hand){.wait = {h.wait[0], h.wait[1]}};
	h.wait[0].is_timed = h.wait[1].is_timed = true;
	h.wait[0].limit_ns = 100;
	h.wait[0].blocked_since_ns = 10;
	h.wait[1].limit_ns = 85;
	h.wait[1].limit_is_left = true;
	h.a.now_ns = 30;
	judge(&h, 2);
	assert_int_equal(h.a.nr_findings, 1);
	assert_int_equal(h.a.finding[0].sure, DEADLOCK_PROBABLE);
	assert_true(deadlock_finding_left_ns(&h.a, h.a.finding, &left_ns));
	assert_int_equal(left_ns, 80); /* 20 of 100 are over */
	finish(&h);
}

/* An owner is needed; what anybody may give is waited for, for a while. */
static void test_patience(void **state)
{
	const uint64_t minute_ns = UINT64_C(60000000000);
	struct deadlock_wait w = mutex_wait(PID + 1, 0x100, PID + 2);
	(void)state;
	assert_false(deadlock_wait_is_patient(&w));
	w.is_timed = true;
	assert_true(deadlock_wait_is_patient(&w));
	w.owner_is_exact = false;
	w.limit_ns = minute_ns - 1;
	assert_false(deadlock_wait_is_patient(&w));
	w.limit_ns = minute_ns;
	assert_true(deadlock_wait_is_patient(&w));
	w.limit_is_left = true;
	w.limit_ns = minute_ns / 2;
	assert_true(deadlock_wait_is_patient(&w));
	w.limit_ns--;
	assert_false(deadlock_wait_is_patient(&w));
}

/* A thread that spins is seen to do so now: what it holds up may be over. */
static void test_spinners_are_not_certain(void **state)
{
	struct by_hand h = {
		.wait = {mutex_wait(PID + 1, 0x100, PID + 3), mutex_wait(PID + 2, 0x200, PID + 1),
			mutex_wait(PID + 3, 0x300, 0)}};
	(void)state;
	h.wait[2].kind = DEADLOCK_SPIN;
	h.wait[2].owner_is_exact = false;
	h.wait[2].key[0].kind = DEADLOCK_KEY_SPIN;
	judge(&h, 3);
	for (size_t i = 0; i < h.a.nr_findings; i++)
		assert_int_equal(h.a.finding[i].sure, DEADLOCK_PROBABLE);
	assert_int_equal(h.a.nr_findings, 1);
	finish(&h);
	h = (struct by_hand){.wait = {mutex_wait(PID + 1, 0x100, PID + 2),
				     mutex_wait(PID + 2, 0x200, PID + 1), h.wait[2]}};
	judge(&h, 3); /* what owners tell holds without it */
	assert_true(h.a.nr_findings >= 1);
	assert_int_equal(h.a.finding[0].kind, DEADLOCK_FINDING_CYCLE);
	assert_int_equal(h.a.finding[0].sure, DEADLOCK_CERTAIN);
	finish(&h);
}

static void test_somebody_may_signal(void **state)
{
	struct by_hand h = {.wait = {mutex_wait(PID + 1, 0x100, 0), mutex_wait(PID + 2, 0x200, 0)}};
	(void)state;
	for (int i = 0; i < 2; i++) {
		h.wait[i].kind = DEADLOCK_SEMAPHORE;
		h.wait[i].owner_is_exact = false;
	}
	h.wait[1].kind = DEADLOCK_RUNNING;
	judge(&h, 2);
	assert_int_equal(h.a.nr_findings, 0);
	finish(&h);
	h = (struct by_hand){.wait = {h.wait[0], h.wait[0]}};
	h.wait[1].thread.tid++;
	judge(&h, 2); /* now both wait for each other to post: nobody is left */
	assert_int_equal(h.a.nr_findings, 1);
	assert_int_equal(h.a.finding[0].kind, DEADLOCK_FINDING_STUCK);
	assert_int_equal(h.a.finding[0].nr_members, 2);
	finish(&h);
}

static void test_keys(void **state)
{
	struct deadlock_key condition = {
		.kind = DEADLOCK_KEY_FUTEX, .space = 5, .at = 0x100, .bytes = 48};
	struct deadlock_key word = {.kind = DEADLOCK_KEY_FUTEX, .space = 5, .at = 0x12c};
	(void)state;
	assert_true(deadlock_key_matches(&condition, &word));
	word.at = 0x130;
	assert_false(deadlock_key_matches(&condition, &word));
	word.at = 0xff;
	assert_false(deadlock_key_matches(&condition, &word));
	word.at = 0x100;
	word.space = 6;
	assert_false(deadlock_key_matches(&condition, &word));
	word = (struct deadlock_key){0};
	assert_false(deadlock_key_matches(&word, &word));
}

/* ---- a whole look, and every allocation of it failing ---------------------------------------- */

static void *lock_twice(void *mutex)
{
	pthread_mutex_lock(mutex);
	pthread_mutex_lock(mutex);
	return mutex;
}

static pid_t start_hanging(void)
{
	pid_t pid = fork();
	if (pid == 0) {
		pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
		lock_twice(&mutex);
		_exit(0);
	}
	return pid;
}

static enum base_status watch(struct deadlock_monitor **ret, struct base_err *err)
{
	enum base_status s = deadlock_monitor_open(false, ret, err);
	if (s == BASE_OK)
		s = deadlock_monitor_pass(*ret, 0, err);
	if (s == BASE_OK)
		s = deadlock_monitor_pass(*ret, 1, err);
	return s;
}

static enum base_status look_at(
	struct deadlock_monitor *m, pid_t pid, size_t *ret_nr_findings, struct base_err *err)
{
	struct deadlock_look_options o = {
		.pid = &pid, .nr_pids = 1, .now_ns = 2, .threshold_ns = 1, .is_static = true};
	struct deadlock_answer *a = NULL;
	struct base_str text = {0};
	*ret_nr_findings = 0;
	enum base_status s = deadlock_look(m, &o, &a, err);
	if (s == BASE_OK) {
		*ret_nr_findings = a->nr_findings;
		deadlock_text(&text, a);
		deadlock_dot(&text, a);
		if (text.failed)
			s = BASE_ERR_NOMEM;
	}
	base_str_fini(&text);
	deadlock_answer_free(a);
	return s;
}

static void test_look_without_memory(void **state)
{
	enum { TRIES = 5000, ALLOCATIONS_MAX = 100000 };
	struct base_err err;
	struct deadlock_monitor *m = NULL;
	const pid_t pid = start_hanging();
	size_t nr = 0;
	(void)state;
	for (int i = 0; i < TRIES && !nr; i++) { /* until it hangs */
		deadlock_monitor_close(m);
		assert_int_equal(watch(&m, &err), BASE_OK);
		assert_int_equal(look_at(m, pid, &nr, &err), BASE_OK);
		nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
	}
	assert_int_equal(nr, 1);
	bool done = false;
	for (uint64_t n = 1; n < ALLOCATIONS_MAX && !done; n++) {
		const enum base_status s = WITHOUT_NTH(n, look_at(m, pid, &nr, &err));
		done = s == BASE_OK && nr == 1 && n > 200;
	}
	assert_true(done);
	deadlock_monitor_close(m);
	done = false; /* a pass reads all of /proc, and has few kinds of allocations */
	for (uint64_t n = 1; n < ALLOCATIONS_MAX && !done; n += 1 + n / 8) {
		const enum base_status s = WITHOUT_NTH(n, watch(&m, &err));
		deadlock_monitor_close(m);
		done = s == BASE_OK;
	}
	assert_true(done);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* ---- lines of Python ------------------------------------------------------------------------- */

/* What Python 3.11 made of a function of all kinds of entries, and what it says itself of it. */
static void test_python_lines(void **state)
{
	static const uint8_t table[] = "\x80\x00\xe0\x09\x0a\xd8\x06\x07\xf1\x03\x01\x0a\x08\x80"
				       "\x41\xf0\x68\x01\x00\x05\x12"
				       "\x80\x4d\x80\x4d\xf0\x02\x01\x0e\x0a\xf0\x00\x02\x05\x0d"
				       "\xf0\x00\x02\x05\x0d\x88\x01"
				       "\xdd\x0b\x10\x90\x11\xd8\x0a\x0b\xf1\x03\x01\x0c\x0d\xf4"
				       "\x00\x01\x0c\x0d\xf0\x00\x01"
				       "\x0c\x0d\xf0\x00\x01\x0c\x0d\xe0\x0b\x0c\x80\x48";
	static const uint8_t line[] = {1, 3, 4, 3, 3, 3, 55, 55, 55, 56, 56, 56, 56, 57, 57, 57, 57,
		57, 57, 57, 58, 57, 57, 57, 57, 57, 57, 57, 57, 57, 59, 59};
	(void)state;
	for (size_t i = 0; i < sizeof line; i++)
		assert_int_equal(python_line(table, sizeof table - 1, 1, i), line[i]);
	assert_int_equal(python_line(table, sizeof table - 1, 1, sizeof line), 0);
	/* without columns, forwards and backwards; nowhere; cut short */
	assert_int_equal(python_line((const uint8_t *)"\xe8\x06", 2, 10, 0), 13);
	assert_int_equal(python_line((const uint8_t *)"\xe8\x07", 2, 10, 0), 7);
	assert_int_equal(python_line((const uint8_t *)"\xf8", 1, 10, 0), 0);
	assert_int_equal(python_line((const uint8_t *)"\xf0\x7f\x7f", 3, 10, 9), 0);
	assert_int_equal(python_line(NULL, 0, 10, 0), 0);
}

/* ---- who runs: three sources, one answer ----------------------------------------------------- */

enum { SLEEPERS = 8, TRIES = 2000 };

static void *sleep_on(void *mutex)
{
	pthread_mutex_lock(mutex);
	pthread_mutex_unlock(mutex);
	return NULL;
}

/* Our own threads that sleep, of a pass. False: not all of them sleep yet. */
static bool own_threads(struct deadlock_monitor *m, struct deadlock_thread *ret)
{
	struct base_err err;
	size_t nr, found = 0;
	assert_int_equal(deadlock_monitor_pass(m, 1, &err), BASE_OK);
	const struct deadlock_sleeper *s = deadlock_monitor_threads(m, &nr);
	for (size_t i = 0; i < nr; i++) {
		assert_true(!i || s[i - 1].thread.tid < s[i].thread.tid);
		if (s[i].thread.pid == getpid() && s[i].thread.tid != getpid() &&
			s[i].thread.state == 'S' && found < SLEEPERS)
			ret[found++] = s[i].thread;
	}
	return found == SLEEPERS;
}

static bool agree(struct deadlock_monitor *m, const struct deadlock_thread *wanted)
{
	struct deadlock_thread got[SLEEPERS];
	bool same = own_threads(m, got);
	for (size_t i = 0; same && i < SLEEPERS; i++)
		same = got[i].tid == wanted[i].tid && got[i].runs == wanted[i].runs &&
		       got[i].start_ticks == wanted[i].start_ticks &&
		       strcmp(got[i].name, wanted[i].name) == 0;
	return same;
}

static void test_three_sources(void **state)
{
	struct base_err err;
	struct deadlock_monitor *proc = NULL, *bpf = NULL;
	struct deadlock_thread wanted[SLEEPERS];
	pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
	pthread_t t[SLEEPERS];
	bool walked = false, iterated = false;
	(void)state;
	assert_int_equal(deadlock_monitor_open(true, &bpf, &err), BASE_OK);
	if (deadlock_monitor_without_bpf(bpf)) {
		print_message("skip: %s\n", deadlock_monitor_without_bpf(bpf));
		deadlock_monitor_close(bpf);
		skip();
	}
	assert_int_equal(deadlock_monitor_open(false, &proc, &err), BASE_OK);
	pthread_mutex_lock(&mutex);
	for (size_t i = 0; i < SLEEPERS; i++)
		assert_int_equal(pthread_create(&t[i], NULL, sleep_on, &mutex), 0);
	/* until all of them sleep, and go on doing so */
	for (int i = 0; i < TRIES && !walked; i++)
		walked = own_threads(proc, wanted) && agree(bpf, wanted);
	deadlock_tasks_forget_walk(deadlock_monitor_tasks(bpf));
	for (int i = 0; i < TRIES && !iterated; i++)
		iterated = own_threads(proc, wanted) && agree(bpf, wanted);
	pthread_mutex_unlock(&mutex);
	for (size_t i = 0; i < SLEEPERS; i++)
		pthread_join(t[i], NULL);
	deadlock_monitor_close(bpf);
	deadlock_monitor_close(proc);
	assert_true(walked);
	assert_true(iterated);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_stat),
		cmocka_unit_test(test_syscall),
		cmocka_unit_test(test_maps),
		cmocka_unit_test(test_shared_regions),
		cmocka_unit_test(test_locks),
		cmocka_unit_test(test_epoll),
		cmocka_unit_test(test_status),
		cmocka_unit_test(test_innermost_pid),
		cmocka_unit_test(test_peers),
		cmocka_unit_test(test_named_sockets),
		cmocka_unit_test(test_full_listeners),
		cmocka_unit_test(test_components),
		cmocka_unit_test(test_circle_and_who_waits_behind),
		cmocka_unit_test(test_time_breaks_a_circle),
		cmocka_unit_test(test_patience),
		cmocka_unit_test(test_spinners_are_not_certain),
		cmocka_unit_test(test_somebody_may_signal),
		cmocka_unit_test(test_keys),
		cmocka_unit_test(test_look_without_memory),
		cmocka_unit_test(test_python_lines),
		cmocka_unit_test(test_three_sources),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
