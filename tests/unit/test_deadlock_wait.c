/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_deadlock_wait.c - what a system call waits for, by its number and arguments, and who could
 * give that: known answers, of this very process and a child of it.
 */
#include "deadlock/private.h"
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static struct deadlock_world *world;
static struct deadlock_wait w;

static uint64_t inode_of(int fd)
{
	struct stat st;
	assert_int_equal(fstat(fd, &st), 0);
	return st.st_ino;
}

static void open_world(void)
{
	struct base_err err;
	assert_int_equal(deadlock_world_open(&world, &err), BASE_OK);
}

#define IN(name, ...) decode(SYS_##name, (const uint64_t[6]){__VA_ARGS__})
#define P(pointer)    ((uint64_t)(uintptr_t)(pointer))

/* As if this process were in that call. */
static void decode(int64_t call, const uint64_t arg[6])
{
	w = (struct deadlock_wait){
		.thread = {.pid = getpid(), .tid = getpid(), .state = 'S'}, .call = call};
	memcpy(w.arg, arg, sizeof w.arg);
	deadlock_wait_decode(world, &w);
}

static bool has_key(enum deadlock_key_kind kind, uint64_t id)
{
	for (size_t i = 0; i < w.nr_keys; i++) {
		if (w.key[i].kind == kind && w.key[i].id == id)
			return true;
	}
	return false;
}

/* It waits for this alone, and nobody else ends it. */
static void assert_waits(enum deadlock_kind kind, enum deadlock_key_kind key, uint64_t id)
{
	assert_int_equal(w.kind, kind);
	assert_int_equal(w.nr_keys, 1);
	assert_int_equal(w.key[0].kind, key);
	assert_int_equal(w.key[0].id, id);
	assert_false(w.is_external);
	assert_false(w.keys_cut);
}

static void test_files(void **state)
{
	int end[2], pair[2];
	const struct itimerspec soon = {.it_value.tv_sec = 1000};
	(void)state;
	open_world();
	assert_int_equal(pipe(end), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	const int event = eventfd(0, 0), timer = timerfd_create(CLOCK_MONOTONIC, 0),
		  nothing = open("/dev/null", O_RDWR);
	assert_int_equal(timerfd_settime(timer, 0, &soon, NULL), 0);
	IN(read, (uint64_t)end[0], 0, 1);
	assert_waits(DEADLOCK_READ, DEADLOCK_KEY_PIPE_DATA, inode_of(end[0]));
	assert_false(w.key[0].is_named || w.is_timed || w.is_by_name);
	IN(writev, (uint64_t)end[1], 0, 1);
	assert_waits(DEADLOCK_WRITE, DEADLOCK_KEY_PIPE_ROOM, inode_of(end[0]));
	IN(recvfrom, (uint64_t)pair[0]);
	assert_waits(DEADLOCK_READ, DEADLOCK_KEY_SOCKET_DATA, inode_of(pair[0]));
	IN(sendmsg, (uint64_t)pair[1]);
	assert_waits(DEADLOCK_WRITE, DEADLOCK_KEY_SOCKET_ROOM, inode_of(pair[1]));
	IN(read, (uint64_t)event);
	assert_int_equal(w.nr_keys, 1);
	assert_int_equal(w.key[0].kind, DEADLOCK_KEY_EVENTFD_DATA);
	IN(write, (uint64_t)event);
	assert_int_equal(w.key[0].kind, DEADLOCK_KEY_EVENTFD_ROOM);
	IN(read, (uint64_t)timer);
	assert_true(w.is_timed && !w.nr_keys && !w.is_external);
	IN(read, (uint64_t)nothing);
	assert_true(w.is_external && !w.nr_keys);
	IN(read, 9999);
	assert_true(w.is_external && !w.nr_keys);
	IN(splice, (uint64_t)end[0], 0, (uint64_t)pair[1]);
	assert_int_equal(w.nr_keys, 2);
	assert_true(has_key(DEADLOCK_KEY_PIPE_DATA, inode_of(end[0])) &&
		    has_key(DEADLOCK_KEY_SOCKET_ROOM, inode_of(pair[1])));
	IN(tee, (uint64_t)end[0], (uint64_t)end[1]);
	assert_int_equal(w.nr_keys, 2);
	assert_true(has_key(DEADLOCK_KEY_PIPE_ROOM, inode_of(end[0])));
	IN(reboot, 0);
	assert_true(w.kind == DEADLOCK_UNKNOWN && w.is_external);
	IN(connect, (uint64_t)pair[0]);
	assert_true(w.kind == DEADLOCK_CONNECT && w.is_external);
	IN(accept, (uint64_t)pair[0]);
	assert_true(w.kind == DEADLOCK_ACCEPT && w.is_external);
	assert_true(has_key(DEADLOCK_KEY_SOCKET_PEER, inode_of(pair[0])));
	for (int i = 0; i < 2; i++) {
		close(end[i]);
		close(pair[i]);
	}
	close(event);
	close(timer);
	close(nothing);
	world = deadlock_world_close(world);
}

/* Any of several files; limits in milliseconds, or as a time. */
static void test_polls(void **state)
{
	int end[2], other[2];
	fd_set reads, writes;
	const struct timespec limit = {.tv_sec = 77};
	(void)state;
	open_world();
	assert_int_equal(pipe(end), 0);
	assert_int_equal(pipe(other), 0);
	struct pollfd set[] = {{end[0], POLLIN, 0}, {-1, POLLIN, 0}, {other[1], POLLOUT, 0}};
	IN(poll, P(set), 3, (uint64_t)-1);
	assert_int_equal(w.kind, DEADLOCK_POLL);
	assert_int_equal(w.nr_keys, 2);
	assert_true(has_key(DEADLOCK_KEY_PIPE_DATA, inode_of(end[0])) &&
		    has_key(DEADLOCK_KEY_PIPE_ROOM, inode_of(other[0])));
	assert_false(w.is_timed || w.is_external);
	IN(poll, P(set), 3, 1500);
	assert_true(w.is_timed && w.limit_ns == 1500000000);
	IN(ppoll, P(set), 3, 0);
	assert_false(w.is_timed);
	IN(ppoll, P(set), 3, P(&limit));
	assert_true(w.is_timed && w.limit_ns == 77000000000);
	IN(poll, P(set), 1, (uint64_t)-1);
	assert_waits(DEADLOCK_POLL, DEADLOCK_KEY_PIPE_DATA, inode_of(end[0]));
	IN(poll, P(set + 1), 1, (uint64_t)-1); /* for nothing: until a signal */
	assert_true(w.is_external && !w.nr_keys);
	IN(poll, P(set), 0, (uint64_t)-1);
	assert_true(w.is_external);
	IN(poll, 16, 1, (uint64_t)-1);
	assert_true(w.is_external);
	FD_ZERO(&reads);
	FD_ZERO(&writes);
	FD_SET(end[0], &reads);
	FD_SET(other[1], &writes);
	IN(select, (uint64_t)other[1] + 1, P(&reads), P(&writes));
	assert_int_equal(w.nr_keys, 2);
	assert_true(has_key(DEADLOCK_KEY_PIPE_DATA, inode_of(end[0])) &&
		    has_key(DEADLOCK_KEY_PIPE_ROOM, inode_of(other[0])));
	assert_false(w.is_timed || w.is_external);
	IN(select, (uint64_t)other[1], P(&reads), P(&writes), 0, P(&limit));
	assert_true(w.nr_keys == 1 && w.is_timed && w.limit_ns == 77000000000);
	IN(select, (uint64_t)other[1] + 1, 0, 0, P(&reads)); /* exceptions count as data */
	assert_waits(DEADLOCK_POLL, DEADLOCK_KEY_PIPE_DATA, inode_of(end[0]));
	IN(select, 0, P(&reads));
	assert_true(w.is_external);
	IN(select, (uint64_t)end[0], P(&reads));
	assert_true(w.is_external && !w.nr_keys);
	for (int i = 0; i < 2; i++) {
		close(end[i]);
		close(other[i]);
	}
	world = deadlock_world_close(world);
}

/* Sets, also in sets. */
static void test_epoll(void **state)
{
	int end[2];
	struct epoll_event event = {.events = EPOLLIN};
	(void)state;
	open_world();
	assert_int_equal(pipe(end), 0);
	const int inner = epoll_create1(0), outer = epoll_create1(0), other = epoll_create1(0);
	assert_int_equal(epoll_ctl(inner, EPOLL_CTL_ADD, end[0], &event), 0);
	assert_int_equal(epoll_ctl(outer, EPOLL_CTL_ADD, inner, &event), 0);
	event.events = EPOLLOUT;
	assert_int_equal(epoll_ctl(other, EPOLL_CTL_ADD, end[1], &event), 0);
	struct pollfd set = {other, POLLIN, 0};
	IN(epoll_wait, (uint64_t)outer, 0, 1, (uint64_t)-1);
	assert_waits(DEADLOCK_EPOLL, DEADLOCK_KEY_PIPE_DATA, inode_of(end[0]));
	IN(epoll_wait, (uint64_t)inner, 0, 1, 100);
	assert_waits(DEADLOCK_EPOLL, DEADLOCK_KEY_PIPE_DATA, inode_of(end[0]));
	assert_true(w.is_timed && w.limit_ns == 100000000);
	IN(poll, P(&set), 1, (uint64_t)-1);
	assert_waits(DEADLOCK_POLL, DEADLOCK_KEY_PIPE_ROOM, inode_of(end[0]));
	assert_int_equal(epoll_ctl(inner, EPOLL_CTL_DEL, end[0], NULL), 0);
	IN(epoll_wait, (uint64_t)outer, 0, 1, (uint64_t)-1);
	assert_true(w.is_external && !w.nr_keys);
	close(inner);
	close(outer);
	close(other);
	close(end[0]);
	close(end[1]);
	world = deadlock_world_close(world);
}

static void test_other_calls(void **state)
{
	struct sembuf op[] = {{3, -1, 0}, {4, 1, 0}, {5, 0, 0}};
	const struct timespec limit = {.tv_sec = 1};
	size_t nr;
	(void)state;
	open_world();
	IN(semop, 42, P(op), 3);
	assert_int_equal(w.kind, DEADLOCK_SYSV_SEM);
	assert_int_equal(w.nr_keys, 2); /* nobody waits for giving */
	assert_true(w.key[0].id == 42 && w.key[0].at == 3 && w.key[1].at == 5);
	assert_true(w.key[0].is_named && !w.is_timed);
	(void)deadlock_world_undo_sets(world, &nr);
	assert_int_equal(nr, 0);
	op[1].sem_flg = SEM_UNDO;
	IN(semtimedop, 42, P(op), 3, P(&limit));
	assert_true(w.is_timed);
	assert_int_equal(*deadlock_world_undo_sets(world, &nr), 42);
	assert_int_equal(nr, 1);
	IN(semop, 42, 16, 3);
	assert_true(w.is_external && !w.nr_keys);
	IN(semop, 42, P(op), 0);
	assert_true(w.is_external);
	IN(msgrcv, 7);
	assert_waits(DEADLOCK_SYSV_QUEUE, DEADLOCK_KEY_SYSV_QUEUE, 7);
	IN(pause, 0);
	assert_true(w.kind == DEADLOCK_SIGNAL && w.is_external && !w.is_timed);
	assert_int_equal(w.key[0].space, getpid());
	IN(rt_sigtimedwait, 0, 0, P(&limit));
	assert_true(w.is_timed);
	IN(clock_nanosleep, 0, 0, P(&limit));
	assert_true(w.kind == DEADLOCK_SLEEP && w.is_timed);
	IN(fcntl, 0, F_SETFL);
	assert_true(w.is_external);
	struct {
		uint64_t value, address;
		uint32_t flags, reserved;
	} item[] = {{5, P(&op), 128, 0}, {6, P(&op) + 4, 128, 0}};
	IN(futex_waitv, P(item), 2, 0, 0);
	assert_int_equal(w.kind, DEADLOCK_FUTEX);
	assert_true(w.nr_keys == 2 && w.word == P(&op) && w.expected == 5 && !w.is_timed);
	assert_true(w.key[1].kind == DEADLOCK_KEY_FUTEX && w.key[1].at == P(&op) + 4);
	assert_int_equal(w.key[1].bytes, 4);
	IN(futex_waitv, P(item), 0);
	assert_true(w.is_external);
	world = deadlock_world_close(world);
}

static void test_opens(void **state)
{
	char path[] = "/tmp/longpole-test-fifo-XXXXXX";
	struct stat st;
	(void)state;
	open_world();
	assert_non_null(mkdtemp(path));
	char name[sizeof path + 8];
	snprintf(name, sizeof name, "%s/fifo", path);
	assert_int_equal(mkfifo(name, 0600), 0);
	assert_int_equal(stat(name, &st), 0);
	IN(open, P(name), O_RDONLY);
	if (w.kind == DEADLOCK_OPEN) { /* (the kernel may have forgotten the name) */
		assert_waits(DEADLOCK_OPEN, DEADLOCK_KEY_FIFO_WRITER, st.st_ino);
		assert_true(w.key[0].is_named);
		IN(openat, (uint64_t)AT_FDCWD, P(name), O_WRONLY);
		assert_waits(DEADLOCK_OPEN, DEADLOCK_KEY_FIFO_READER, st.st_ino);
		IN(open, P(name), O_RDWR);
		assert_true(w.is_external && !w.nr_keys);
	}
	IN(open, P("/dev/null"), O_RDONLY);
	assert_true(w.is_external && w.kind == DEADLOCK_UNKNOWN);
	unlink(name);
	rmdir(path);
	world = deadlock_world_close(world);
}

/* ---- who could give it ----------------------------------------------------------------------- */

/* A child that does nothing until we end; its descriptors but one are closed. */
static pid_t child_with(int fd)
{
	const pid_t parent = getpid(), pid = fork();
	if (pid)
		return pid;
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (int i = 3; i < 64; i++) {
		if (i != fd)
			close(i);
	}
	while (getppid() == parent)
		(void)raise(SIGSTOP);
	_exit(0);
}

static void wait_until_it_stops(pid_t pid)
{
	int status;
	assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
	assert_true(WIFSTOPPED(status));
}

static void end_child(pid_t pid)
{
	(void)kill(pid, SIGKILL);
	(void)waitpid(pid, NULL, 0);
}

/* The processes with access to what w waits for: these, and no others. Pids of 0 are nobody. */
static void assert_access(pid_t first, pid_t second)
{
	struct deadlock_accesses a = {0};
	struct base_err err;
	assert_int_equal(w.nr_keys, 1);
	assert_int_equal(deadlock_accesses_find(world, &w, 1, &a, &err), BASE_OK);
	const struct deadlock_access *x = deadlock_accesses_get(&a, &w.key[0]);
	assert_non_null(x);
	assert_int_equal(x->nr_pids, (first != 0) + (second != 0));
	if (second && second < first) {
		const pid_t swap = first;
		first = second;
		second = swap;
	}
	if (first)
		assert_int_equal(x->pid[0], first);
	if (second)
		assert_int_equal(x->pid[1], second);
	/* what is known is not searched again, and is still there */
	assert_int_equal(deadlock_accesses_find(world, &w, 1, &a, &err), BASE_OK);
	x = deadlock_accesses_get(&a, &w.key[0]);
	assert_true(x && x->is_known && x->nr_pids == (size_t)((first != 0) + (second != 0)));
}

static void test_access_to_files(void **state)
{
	int end[2], pair[2];
	(void)state;
	open_world();
	assert_int_equal(pipe(end), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	const int event = eventfd(0, 0);
	const int file = memfd_create("locked", MFD_CLOEXEC);
	assert_int_equal(flock(file, LOCK_EX), 0);
	const pid_t writer = child_with(end[1]), peer = child_with(pair[1]),
		    counter = child_with(event), locker = child_with(file);
	wait_until_it_stops(writer);
	wait_until_it_stops(peer);
	wait_until_it_stops(counter);
	wait_until_it_stops(locker);
	IN(read, (uint64_t)end[0]);
	assert_access(getpid(), writer);
	IN(write, (uint64_t)end[1]);
	assert_access(getpid(), 0); /* the child cannot read */
	IN(recvfrom, (uint64_t)pair[0]);
	assert_access(getpid(), peer);
	IN(recvfrom, (uint64_t)pair[1]);
	assert_access(getpid(), 0);
	IN(read, (uint64_t)event);
	assert_access(getpid(), counter);
	IN(flock, (uint64_t)file, LOCK_EX);
	assert_access(getpid(), locker); /* who inherited it has it, too */
	close(end[1]);
	close(pair[1]);
	IN(read, (uint64_t)end[0]);
	assert_access(writer, 0);
	IN(recvfrom, (uint64_t)pair[0]);
	assert_access(peer, 0);
	end_child(writer);
	IN(read, (uint64_t)end[0]);
	assert_access(0, 0);
	end_child(peer);
	end_child(counter);
	end_child(locker);
	close(end[0]);
	close(pair[0]);
	close(event);
	close(file);
	world = deadlock_world_close(world);
}

static void test_access_to_memory(void **state)
{
	(void)state;
	open_world();
	uint32_t *shared =
		mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	uint32_t *other =
		mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	const pid_t child = child_with(-1);
	wait_until_it_stops(child);
	uint32_t *later =
		mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(shared != MAP_FAILED && other != MAP_FAILED && later != MAP_FAILED);
	struct {
		uint64_t value, address;
		uint32_t flags, reserved;
	} item = {0, P(shared), 0, 0};
	IN(futex_waitv, P(&item), 1, 0, 0);
	assert_int_equal(w.key[0].kind, DEADLOCK_KEY_FUTEX_SHARED);
	assert_false(w.key[0].is_named);
	assert_access(getpid(), child);
	item.address = P(later);
	IN(futex_waitv, P(&item), 1, 0, 0);
	assert_access(getpid(), 0); /* made after the fork */
	item.address = P(&item);    /* shared in name only */
	IN(futex_waitv, P(&item), 1, 0, 0);
	assert_int_equal(w.key[0].kind, DEADLOCK_KEY_FUTEX);
	assert_access(getpid(), 0);
	end_child(child);
	munmap(shared, 4096);
	munmap(other, 4096);
	munmap(later, 4096);
	world = deadlock_world_close(world);
}

/* A child: by its number, or any. */
static void test_children(void **state)
{
	(void)state;
	open_world();
	IN(wait4, (uint64_t)-1);
	assert_true(w.kind == DEADLOCK_WAIT_CHILD && w.is_external && !w.nr_keys);
	world = deadlock_world_close(world);
	open_world();
	const pid_t child = child_with(-1), second = child_with(-1);
	wait_until_it_stops(child);
	wait_until_it_stops(second);
	IN(wait4, (uint64_t)child);
	assert_waits(DEADLOCK_WAIT_CHILD, DEADLOCK_KEY_PROCESS_EXIT, (uint64_t)child);
	assert_access(child, 0);
	IN(waitid, P_PID, (uint64_t)second);
	assert_waits(DEADLOCK_WAIT_CHILD, DEADLOCK_KEY_PROCESS_EXIT, (uint64_t)second);
	IN(wait4, (uint64_t)-1);
	assert_int_equal(w.nr_keys, 2);
	assert_false(w.is_external);
	assert_true(has_key(DEADLOCK_KEY_PROCESS_EXIT, (uint64_t)child) &&
		    has_key(DEADLOCK_KEY_PROCESS_EXIT, (uint64_t)second));
	const int fd = (int)syscall(SYS_pidfd_open, second, 0);
	if (fd >= 0) {
		IN(waitid, P_PIDFD, (uint64_t)fd);
		assert_waits(DEADLOCK_WAIT_CHILD, DEADLOCK_KEY_PROCESS_EXIT, (uint64_t)second);
		close(fd);
	}
	IN(waitid, P_PIDFD, 9999);
	assert_true(w.is_external && !w.nr_keys);
	end_child(child);
	end_child(second);
	world = deadlock_world_close(world);
}

/* A lock of one process alone is its own: then who has it is known. */
static void test_owner_of_a_lock(void **state)
{
	struct base_err err;
	(void)state;
	open_world();
	const int file = memfd_create("locked", MFD_CLOEXEC);
	assert_int_equal(flock(file, LOCK_EX), 0);
	struct deadlock_accesses a = {0};
	IN(flock, (uint64_t)file, LOCK_EX);
	assert_int_equal(w.kind, DEADLOCK_FILE_LOCK);
	assert_int_equal(w.owner, 0);
	deadlock_accesses_own(&a, &w);
	assert_int_equal(w.owner, 0);
	assert_int_equal(deadlock_accesses_find(world, &w, 1, &a, &err), BASE_OK);
	deadlock_accesses_own(&a, &w);
	assert_int_equal(w.owner, getpid());
	assert_true(w.owner_is_exact && w.owner_is_process);
	close(file);
	world = deadlock_world_close(world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_files),
		cmocka_unit_test(test_polls),
		cmocka_unit_test(test_epoll),
		cmocka_unit_test(test_other_calls),
		cmocka_unit_test(test_opens),
		cmocka_unit_test(test_access_to_files),
		cmocka_unit_test(test_access_to_memory),
		cmocka_unit_test(test_children),
		cmocka_unit_test(test_owner_of_a_lock),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
