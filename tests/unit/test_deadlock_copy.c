/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_deadlock_copy.c - what a copy of a waiting thread does instead of system calls: results and
 * memory as the kernel would have them, events for others, and how its run ends. Known answers.
 */
#include "deadlock/deadlock.h"
#include "deadlock_copy_calls.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>

static unsigned events(enum deadlock_key_kind kind, uint64_t id)
{
	for (size_t i = 0; i < f.run.nr_events; i++) {
		if (f.run.event[i].key.kind == kind && f.run.event[i].key.id == id)
			return f.run.event[i].count;
	}
	return 0;
}

/* `text` becomes what is behind a descriptor of ours. */
static void put_behind(int fd, const char *text)
{
	const int file = memfd_create("test", MFD_CLOEXEC);
	assert_true(file >= 0);
	assert_int_equal(write(file, text, strlen(text)), strlen(text));
	assert_int_equal(dup2(file, fd), fd);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	close(file);
}

static void put_into_pipe(const char *text)
{
	int fd[2];
	assert_int_equal(pipe(fd), 0);
	assert_int_equal(write(fd[1], text, strlen(text)), strlen(text));
	assert_int_equal(dup2(fd[0], FD_READ), FD_READ);
	assert_int_equal(dup2(fd[1], FD_WRITE), FD_WRITE);
	close(fd[0]);
	close(fd[1]);
}

static void put_pieces(uint64_t address, const struct iovec *piece, size_t nr)
{
	memcpy(memory(address), piece, nr * sizeof *piece);
}

static struct iovec piece(uint64_t address, size_t length)
{
	return (struct iovec){
		(void *)(uintptr_t)address, length}; // NOLINT(performance-no-int-to-ptr)
}

/* ---- files ----------------------------------------------------------------------------------- */

/* What a pipe holds is read once, and stays in it; then there is one byte, then the end. */
static void test_reads_a_pipe(void **state)
{
	char left[8] = "";
	(void)state;
	begin(false);
	put_into_pipe("hello");
	assert_int_equal(DOES(read, FD_READ, AT, 3), 3);
	assert_memory_equal(memory(AT), "hel\0", 4);
	assert_int_equal(DOES(read, FD_READ, AT, 100), 2);
	assert_memory_equal(memory(AT), "lol\0", 4);
	assert_int_equal(DOES(read, FD_READ, AT, 0), 0);
	assert_int_equal(DOES(read, FD_READ, AT, 100), 1);
	assert_int_equal(*(char *)memory(AT), '\n');
	assert_int_equal(DOES(read, FD_READ, AT, 100), 0);
	assert_int_equal(events(DEADLOCK_KEY_PIPE_ROOM, 1), 5);
	assert_int_equal(f.run.nr_events, 1);
	assert_int_equal(DOES(lseek, FD_READ, 0, SEEK_SET), -ESPIPE);
	assert_int_equal(DOES(pread64, FD_READ, AT, 3, 0), -ESPIPE);
	assert_int_equal(read(FD_READ, left, sizeof left), 5);
	close(FD_READ);
	close(FD_WRITE);
}

static void test_reads_a_file(void **state)
{
	(void)state;
	begin(false);
	put_behind(FD_LOCKED, "0123456789");
	assert_int_equal(lseek(FD_LOCKED, 2, SEEK_SET), 2); /* where the process has it */
	assert_int_equal(DOES(read, FD_LOCKED, AT, 3), 3);
	assert_memory_equal(memory(AT), "234", 3);
	assert_int_equal(DOES(lseek, FD_LOCKED, 1, SEEK_CUR), 6);
	assert_int_equal(DOES(read, FD_LOCKED, AT, 100), 4);
	assert_memory_equal(memory(AT), "6789", 4);
	assert_int_equal(DOES(read, FD_LOCKED, AT, 100), 0);
	assert_int_equal(DOES(lseek, FD_LOCKED, 8, SEEK_SET), 8);
	assert_int_equal(DOES(pread64, FD_LOCKED, AT, 3, 5), 3);
	assert_memory_equal(memory(AT), "567", 3);
	assert_int_equal(DOES(read, FD_LOCKED, AT, 100), 2); /* which did not move it */
	assert_int_equal(DOES(lseek, FD_LOCKED, 0, SEEK_SET), 0);
	assert_int_equal(DOES(read, FD_LOCKED, NOWHERE, 3), -EFAULT);
	assert_int_equal(DOES(pread64, FD_LOCKED, NOWHERE, 3, 0), -EFAULT);
	assert_int_equal(lseek(FD_LOCKED, 0, SEEK_CUR), 2); /* and nothing moved in the process */
	assert_null(f.copy.tainted);
	(void)DOES(lseek, FD_LOCKED, 0, SEEK_END);
	assert_non_null(f.copy.tainted);
	close(FD_LOCKED);
}

static void test_reads_in_pieces(void **state)
{
	const struct iovec pieces[] = {piece(AT, 2), piece(AT + 100, 0), piece(AT + 200, 3)};
	struct msghdr message = {
		.msg_iov = piece(MEMORY, 0).iov_base, .msg_iovlen = 3, .msg_controllen = 5};
	(void)state;
	begin(false);
	put_behind(FD_LOCKED, "0123456789");
	put_pieces(MEMORY, pieces, 3);
	memcpy(memory(MEMORY + 256), &message, sizeof message);
	assert_int_equal(DOES(readv, FD_LOCKED, MEMORY, 3), 5);
	assert_memory_equal(memory(AT), "01\0", 3);
	assert_memory_equal(memory(AT + 200), "234\0", 4);
	assert_int_equal(DOES(recvmsg, FD_LOCKED, MEMORY + 256), 5);
	assert_memory_equal(memory(AT), "56\0", 3);
	assert_memory_equal(memory(AT + 200), "789\0", 4);
	memcpy(&message, memory(MEMORY + 256), sizeof message);
	assert_int_equal(message.msg_controllen, 0);
	assert_int_equal(DOES(readv, FD_LOCKED, NOWHERE, 3), -EFAULT);
	assert_int_equal(DOES(recvmsg, FD_LOCKED, NOWHERE), -EFAULT);
	close(FD_LOCKED);
}

/* More bytes than a call moves are cut, and pieces of less than none refused, as by the kernel. */
static void test_garbage_pieces(void **state)
{
	const struct iovec large[] = {piece(AT, SSIZE_MAX), piece(AT, SSIZE_MAX)},
			   negative[] = {piece(AT, 1), piece(AT, SIZE_MAX)};
	(void)state;
	begin(false);
	put_pieces(MEMORY, large, 2);
	assert_int_equal(DOES(writev, FD_WRITE, MEMORY, 2), 0x7ffff000);
	assert_int_equal(DOES(readv, FD_OTHER, MEMORY, 2), 1);
	put_pieces(MEMORY, negative, 2);
	assert_int_equal(DOES(writev, FD_WRITE, MEMORY, 2), -EINVAL);
	assert_int_equal(DOES(readv, FD_OTHER, MEMORY, 2), -EINVAL);
	assert_int_equal(DOES(readv, FD_OTHER, MEMORY, 0), 0);
}

static void test_reads_other_things(void **state)
{
	uint64_t count;
	(void)state;
	begin(false);
	assert_int_equal(DOES(read, FD_EVENT, AT, 8), 8);
	memcpy(&count, memory(AT), sizeof count);
	assert_int_equal(count, 1);
	assert_int_equal(events(DEADLOCK_KEY_EVENTFD_ROOM, 4), 1);
	assert_int_equal(DOES(recvfrom, FD_SOCKET, AT, 10), 1);
	assert_int_equal(DOES(recvfrom, FD_SOCKET, AT, 10), 0);
	assert_int_equal(events(DEADLOCK_KEY_SOCKET_ROOM, 3), 2);
	assert_int_equal(DOES(read, FD_CLOSED, AT, 10), -EBADF);
	assert_int_equal(DOES(pread64, FD_CLOSED, AT, 10, 0), -EBADF);
	assert_int_equal(DOES(lseek, FD_CLOSED, 0, SEEK_SET), -EBADF);
	/* a message, then its time limit, or it would wait */
	set_word(AT + 100, 7);
	assert_int_equal(DOES(mq_timedreceive, FD_QUEUE, AT, 10, AT + 100, 0), 1);
	assert_int_equal(word(AT + 100), 0);
	assert_int_equal(DOES(mq_timedreceive, FD_QUEUE, AT, 10, 0, AT), -ETIMEDOUT);
	assert_int_equal(events(DEADLOCK_KEY_MQUEUE_ROOM, 5), 2);
	(void)DOES(mq_timedreceive, FD_QUEUE, AT, 10, 0, 0);
	assert_ends(DEADLOCK_END_BLOCKED, "mq_timedreceive");
	assert_int_equal(f.run.again.kind, DEADLOCK_KEY_NONE);
}

static void test_writes(void **state)
{
	const struct iovec pieces[] = {piece(AT, 0), piece(AT + 1, 4), piece(AT, 9)};
	(void)state;
	begin(false);
	memcpy(memory(AT), "Hi,\tyou\n", 8);
	put_pieces(MEMORY, pieces, 3);
	assert_int_equal(DOES(writev, FD_WRITE, MEMORY, 3), 13);
	assert_string_equal(f.run.would_write, "i,.y"); /* what cannot be printed is a point */
	assert_int_equal(f.run.would_write_fd, FD_WRITE);
	assert_int_equal(DOES(write, FD_WRITE, AT, 8), 8); /* the first text is kept */
	assert_int_equal(DOES(pwrite64, FD_SOCKET, AT, 3), 3);
	assert_string_equal(f.run.would_write, "i,.y");
	assert_int_equal(events(DEADLOCK_KEY_PIPE_DATA, 1), 2);
	assert_int_equal(events(DEADLOCK_KEY_SOCKET_DATA, 3), 1);
	assert_int_equal(DOES(mq_timedsend, FD_QUEUE, AT, 8), 0);
	assert_int_equal(events(DEADLOCK_KEY_MQUEUE_DATA, 5), 1);
	assert_int_equal(DOES(mq_timedsend, FD_CLOSED, AT, 8), -EBADF);
	assert_int_equal(DOES(write, FD_EVENT, AT, 8), 8);
	assert_int_equal(events(DEADLOCK_KEY_EVENTFD_DATA, 4), 1);
	assert_int_equal(DOES(sendfile, FD_WRITE, FD_READ, 0, 77), 77);
	assert_int_equal(events(DEADLOCK_KEY_PIPE_ROOM, 1), 1);
	assert_int_equal(events(DEADLOCK_KEY_PIPE_DATA, 1), 3);
	assert_int_equal(DOES(sendfile, FD_WRITE, FD_CLOSED, 0, 77), -EBADF);
	assert_int_equal(DOES(writev, FD_WRITE, NOWHERE, 3), -EFAULT);
	assert_int_equal(DOES(write, FD_OTHER, AT, 8), 8); /* of no meaning for others */
	assert_int_equal(f.run.nr_events, 5);
}

/* The last end of a pipe that is closed is the end of its data; before, it is nothing. */
static void test_closes(void **state)
{
	(void)state;
	for (int has_twins = 0; has_twins < 2; has_twins++) {
		begin(has_twins);
		assert_int_equal(DOES(close, FD_WRITE), 0);
		assert_int_equal(DOES(close, FD_WRITE), -EBADF);
		assert_int_equal(DOES(write, FD_WRITE, AT, 1), -EBADF);
		assert_int_equal(events(DEADLOCK_KEY_PIPE_DATA, 1), !has_twins);
		assert_int_equal(events(DEADLOCK_KEY_PIPE_ROOM, 1), 0);
		assert_int_equal(DOES(close, FD_READ), 0);
		assert_int_equal(events(DEADLOCK_KEY_PIPE_ROOM, 1), !has_twins);
		assert_int_equal(DOES(close, FD_EVENT), 0); /* nobody waits for that */
		assert_int_equal(events(DEADLOCK_KEY_EVENTFD_DATA, 4), 0);
		/* flock: by the last; POSIX: by any */
		assert_int_equal(DOES(close, FD_LOCKED), 0);
		assert_int_equal(events(DEADLOCK_KEY_FILE_LOCK, 9), !has_twins);
		assert_int_equal(DOES(close, FD_OWN), 0);
		assert_int_equal(events(DEADLOCK_KEY_FILE_LOCK, 6), 1);
		if (has_twins) {
			assert_int_equal(DOES(close_range, FD_TWINS, ~0u), 0);
			assert_int_equal(events(DEADLOCK_KEY_PIPE_DATA, 1), 1);
			assert_int_equal(events(DEADLOCK_KEY_PIPE_ROOM, 1), 1);
			assert_int_equal(events(DEADLOCK_KEY_FILE_LOCK, 9), 1);
			assert_int_equal(DOES(read, FD_SOCKET, AT, 1), 1);
			assert_int_equal(DOES(read, FD_TWINS + 3, AT, 1), -EBADF);
		}
	}
}

static void test_shuts_down(void **state)
{
	(void)state;
	begin(false);
	assert_int_equal(DOES(shutdown, FD_SOCKET, SHUT_WR), 0);
	assert_int_equal(events(DEADLOCK_KEY_SOCKET_DATA, 3), 1);
	assert_int_equal(events(DEADLOCK_KEY_SOCKET_ROOM, 3), 0);
	assert_int_equal(DOES(shutdown, FD_SOCKET, SHUT_RD), 0);
	assert_int_equal(events(DEADLOCK_KEY_SOCKET_DATA, 3), 1);
	assert_int_equal(events(DEADLOCK_KEY_SOCKET_ROOM, 3), 1);
	assert_int_equal(DOES(shutdown, FD_SOCKET, SHUT_RDWR), 0);
	assert_int_equal(events(DEADLOCK_KEY_SOCKET_DATA, 3), 2);
	assert_int_equal(events(DEADLOCK_KEY_SOCKET_ROOM, 3), 2);
	assert_int_equal(DOES(shutdown, FD_CLOSED, SHUT_RDWR), -EBADF);
}

/* Another number for the same file; of its own inventions the copy reads nothing. */
static void test_other_descriptors(void **state)
{
	struct stat st;
	(void)state;
	begin(false);
	put_behind(FD_LOCKED, "0123456789");
	const int64_t copy = DOES(dup, FD_LOCKED);
	assert_true(copy >= DEADLOCK_COPY_FAKE_FD);
	assert_int_equal(DOES(read, (uint64_t)copy, AT, 4), 4);
	assert_memory_equal(memory(AT), "0123", 4);
	assert_int_equal(DOES(dup2, FD_SOCKET, FD_CLOSED), FD_CLOSED);
	assert_int_equal(DOES(dup2, FD_SOCKET, FD_SOCKET), FD_SOCKET);
	assert_int_equal(DOES(write, FD_CLOSED, AT, 1), 1);
	assert_int_equal(events(DEADLOCK_KEY_SOCKET_DATA, 3), 1);
	assert_int_equal(DOES(dup2, FD_SOCKET, FD_WRITE), FD_WRITE); /* which closes it */
	assert_int_equal(events(DEADLOCK_KEY_PIPE_DATA, 1), 1);
	assert_int_equal(DOES(dup, FD_TWINS), -EBADF);
	assert_int_equal(DOES(dup2, FD_TWINS, 7), -EBADF);
	const int64_t other = DOES(fcntl, FD_OTHER, F_DUPFD_CLOEXEC);
	assert_true(other > copy);
	assert_int_equal(DOES(pipe2, AT), 0);
	assert_true(word(AT) > (uint64_t)other && word(AT + 4) == word(AT) + 1);
	assert_int_equal(DOES(socketpair, 0, 0, 0, AT + 8), 0);
	assert_int_equal(word(AT + 8), word(AT + 4) + 1);
	assert_int_equal(DOES(read, word(AT), ELSEWHERE, 9), 1); /* somebody may have written */
	assert_int_equal(DOES(fstat, word(AT), ELSEWHERE), 0);
	memcpy(&st, memory(ELSEWHERE), sizeof st);
	assert_true(S_ISREG(st.st_mode) && st.st_size == 0);
	assert_int_equal(DOES(fstat, FD_LOCKED, ELSEWHERE), 0);
	memcpy(&st, memory(ELSEWHERE), sizeof st);
	assert_true(S_ISREG(st.st_mode) && st.st_size == 10);
	assert_int_equal(DOES(newfstatat, FD_LOCKED, ELSEWHERE + 900, ELSEWHERE, AT_EMPTY_PATH), 0);
	assert_int_equal(DOES(fstat, FD_TWINS, ELSEWHERE), -EBADF);
	assert_int_equal(DOES(fstat, FD_LOCKED, NOWHERE), -EFAULT);
	assert_null(f.copy.tainted);
	assert_int_equal(DOES(newfstatat, FD_LOCKED, ELSEWHERE + 900, ELSEWHERE, 0), -ENOENT);
	assert_non_null(f.copy.tainted);
	close(FD_LOCKED);
}

static void test_asks_of_files(void **state)
{
	(void)state;
	begin(false);
	assert_int_equal(DOES(fcntl, FD_SOCKET, F_GETFL), O_RDWR);
	assert_int_equal(DOES(fcntl, FD_READ, F_GETFL), O_RDONLY);
	assert_int_equal(DOES(fcntl, FD_WRITE, F_GETFL), O_WRONLY);
	assert_int_equal(DOES(fcntl, FD_CLOSED, F_GETFL), -EBADF);
	assert_int_equal(DOES(fcntl, FD_WRITE, F_GETFD), 0);
	assert_int_equal(DOES(fcntl, FD_CLOSED, F_SETFD), -EBADF);
	assert_int_equal(DOES(ioctl, FD_OTHER, FIONBIO), 0);
	assert_int_equal(DOES(ioctl, FD_OTHER, TCGETS), -ENOTTY);
	assert_null(f.copy.tainted);
	assert_int_equal(DOES(ioctl, FD_OTHER, FIONREAD), -ENOTTY);
	assert_non_null(f.copy.tainted);
	(void)DOES(fcntl, FD_OTHER, F_SETPIPE_SZ);
	assert_ends(DEADLOCK_END_CALL, "fcntl");
}

/* /proc/locks tells that another process has the file of FD_LOCKED. */
static void test_locks_files(void **state)
{
	struct flock lock = {.l_type = F_WRLCK};
	(void)state;
	begin(false);
	assert_int_equal(DOES(flock, FD_OWN, LOCK_EX), 0);
	assert_int_equal(DOES(flock, FD_LOCKED, LOCK_EX | LOCK_NB), -EAGAIN);
	memcpy(memory(AT), &lock, sizeof lock);
	assert_int_equal(DOES(fcntl, FD_LOCKED, F_SETLK, AT), -EAGAIN);
	assert_int_equal(DOES(fcntl, FD_LOCKED, F_SETLK, NOWHERE), -EFAULT);
	assert_int_equal(f.run.nr_events, 0);
	lock.l_type = F_UNLCK;
	memcpy(memory(AT), &lock, sizeof lock);
	assert_int_equal(DOES(fcntl, FD_LOCKED, F_SETLK, AT), 0);
	assert_int_equal(events(DEADLOCK_KEY_FILE_LOCK, 9), 1);
	assert_int_equal(DOES(flock, FD_OWN, LOCK_UN), 0);
	assert_int_equal(events(DEADLOCK_KEY_FILE_LOCK, 6), 1);
	assert_int_equal(DOES(flock, FD_CLOSED, LOCK_UN), -EBADF);
	(void)DOES(flock, FD_LOCKED, LOCK_EX);
	assert_ends(DEADLOCK_END_BLOCKED, "lock of a file");
	assert_int_equal(f.run.again.kind, DEADLOCK_KEY_FILE_LOCK);
	assert_int_equal(f.run.again.id, 9);
	begin(false); /* the wait for it is over */
	f.wait.call = SYS_fcntl;
	f.copy.is_first = true;
	lock.l_type = F_WRLCK;
	memcpy(memory(AT), &lock, sizeof lock);
	assert_int_equal(DOES(fcntl, FD_LOCKED, F_SETLKW, AT), 0);
	f.copy.is_first = false;
	(void)DOES(fcntl, FD_LOCKED, F_OFD_SETLKW, AT);
	assert_ends(DEADLOCK_END_BLOCKED, "lock of a file");
}

/* ---- ends ------------------------------------------------------------------------------------ */

static void test_exits(void **state)
{
	(void)state;
	begin(true);
	assert_int_equal(DOES(exit_group, 0), 0);
	assert_ends(DEADLOCK_END_EXITED, "its process");
	assert_int_equal(events(DEADLOCK_KEY_PROCESS_EXIT, (uint64_t)getpid()), 1);
	assert_int_equal(events(DEADLOCK_KEY_PIPE_DATA, 1), 2); /* with all its files */
	assert_int_equal(events(DEADLOCK_KEY_FILE_LOCK, 9), 2);
	(void)DOES(write, FD_WRITE, AT, 1); /* it is over */
	assert_int_equal(events(DEADLOCK_KEY_PIPE_DATA, 1), 2);
	begin(true);
	assert_int_equal(DOES(kill, 0, SIGKILL), 0);
	assert_ends(DEADLOCK_END_EXITED, "its process");
	begin(true); /* (this program has one thread) */
	assert_int_equal(DOES(exit, 0), 0);
	assert_ends(DEADLOCK_END_EXITED, "its thread");
	assert_int_equal(events(DEADLOCK_KEY_THREAD_EXIT, (uint64_t)getpid() + 1), 1);
	assert_int_equal(events(DEADLOCK_KEY_PROCESS_EXIT, (uint64_t)getpid()), 1);
	copy_begin(&f, 1 << 29, true); /* of which nobody knows how many it has */
	assert_int_equal(DOES(exit, 0), 0);
	assert_int_equal(f.run.nr_events, 1);
}

static void test_ends_without_a_proof(void **state)
{
	(void)state;
	begin(false);
	strcpy(memory(AT), "/etc/hostname");
	const int64_t fd = DOES(openat, (uint64_t)AT_FDCWD, AT, O_WRONLY);
	assert_true(fd >= DEADLOCK_COPY_FAKE_FD);
	assert_null(f.copy.tainted);
	assert_int_equal(DOES(read, (uint64_t)fd, AT, 5), 0); /* empty */
	assert_true(DOES(open, AT, O_RDONLY) > fd);
	assert_int_equal(DOES(exit_group), 0);
	assert_ends(DEADLOCK_END_CALL, "it opened a file");
	begin(false);
	assert_int_equal(DOES(clone, 0), DEADLOCK_COPY_FAKE_PID);
	assert_int_equal(DOES(fork, 0), DEADLOCK_COPY_FAKE_PID + 1);
	assert_int_equal(
		DOES(wait4, DEADLOCK_COPY_FAKE_PID + 1, AT, 0), DEADLOCK_COPY_FAKE_PID + 1);
	assert_int_equal(DOES(exit_group), 0);
	assert_ends(DEADLOCK_END_CALL, "it made a process");
	begin(false);
	assert_int_equal(DOES(reboot), 0);
	assert_ends(DEADLOCK_END_CALL, "not emulated");
	assert_false(deadlock_emulate_knows(SYS_reboot));
	assert_true(deadlock_emulate_knows(SYS_read));
	assert_string_equal(deadlock_emulate_name(SYS_read), "read");
}

/* The same call from the same place 41 times is a loop, if it gives nothing; so are 401 calls. */
static void test_goes_round(void **state)
{
	(void)state;
	for (int gives = 0; gives < 2; gives++) {
		begin(false);
		for (unsigned i = 0; i < DEADLOCK_COPY_REPEATS_MAX; i++) {
			(void)deadlock_emulate(&f.copy, SYS_write,
				(const uint64_t[6]){gives ? FD_WRITE : FD_OTHER, AT, 1});
			assert_false(f.copy.is_done);
		}
		for (unsigned i = 0; i < 3; i++)
			(void)deadlock_emulate(&f.copy, SYS_write,
				(const uint64_t[6]){gives ? FD_WRITE : FD_OTHER, AT, 1});
		assert_ends(
			gives ? DEADLOCK_END_EVENTS : DEADLOCK_END_LOOPS, "times the same write");
	}
	begin(false);
	for (unsigned i = 0; i < DEADLOCK_COPY_CALLS_MAX; i++)
		assert_int_equal(DOES(close, FD_CLOSED), -EBADF);
	assert_false(f.copy.is_done);
	(void)DOES(close, FD_CLOSED);
	assert_ends(DEADLOCK_END_LOOPS, "without a new event");
	begin(false); /* what is new counts from the beginning */
	for (unsigned i = 0; i < 2 * DEADLOCK_COPY_CALLS_MAX - 2; i++) {
		if (i == DEADLOCK_COPY_CALLS_MAX - 1)
			(void)DOES(write, FD_WRITE, AT, 1);
		assert_int_equal(DOES(close, FD_CLOSED), -EBADF);
	}
	assert_false(f.copy.is_done);
}

static void test_events_are_counted(void **state)
{
	(void)state;
	begin(false);
	f.copy.events_max = 2;
	for (uint64_t i = 0; i < 3; i++) {
		assert_int_equal(DOES(msgsnd, 1), 0);
		assert_int_equal(DOES(msgsnd, 2), 0);
	}
	assert_int_equal(events(DEADLOCK_KEY_SYSV_QUEUE, 2), 3);
	assert_false(f.copy.is_done);
	(void)DOES(msgsnd, 3);
	assert_ends(DEADLOCK_END_EVENTS, "2");
	assert_int_equal(f.run.nr_events, 2);
	assert_int_equal(f.run.event[1].tid, getpid() + 1);
	assert_int_equal(f.run.event[1].pc, 2);
}

/* ---- waiting --------------------------------------------------------------------------------- */

static void test_futex(void **state)
{
	(void)state;
	begin(false);
	f.copy.no_more_hypotheses = true;
	set_word(AT, 5);
	assert_int_equal(DOES(futex, AT, FUTEX_WAIT_PRIVATE, 6), -EAGAIN);
	assert_int_equal(DOES(futex, AT, FUTEX_WAIT_PRIVATE, 5, AT), -ETIMEDOUT);
	assert_int_equal(DOES(futex, NOWHERE, FUTEX_WAIT_PRIVATE, 5, AT), -EFAULT);
	assert_int_equal(DOES(futex, AT, FUTEX_WAKE_PRIVATE, 1), 1);
	assert_int_equal(f.run.event[0].key.kind, DEADLOCK_KEY_FUTEX);
	assert_int_equal(f.run.event[0].key.at, AT);
	/* of shared memory: the place in the file */
	assert_int_equal(DOES(futex, MEMORY + 2048 + 12, FUTEX_WAKE, 1), 1);
	assert_int_equal(f.run.event[1].key.kind, DEADLOCK_KEY_FUTEX_SHARED);
	assert_int_equal(f.run.event[1].key.at, 12);
	assert_false(f.run.event[1].key.is_named); /* a memfd */
	assert_int_equal(DOES(futex, AT, FUTEX_CMP_REQUEUE_PRIVATE, 1, 1, AT + 8), 1);
	assert_int_equal(f.run.event[0].count, 2);
	assert_int_equal(f.run.event[2].key.at, AT + 8);
	/* priority inheritance: the word is whose it is */
	assert_int_equal(DOES(futex, AT, FUTEX_TRYLOCK_PI | FUTEX_PRIVATE_FLAG), -EAGAIN);
	assert_int_equal(DOES(futex, AT, FUTEX_UNLOCK_PI | FUTEX_PRIVATE_FLAG), 0);
	assert_int_equal(word(AT), 0);
	assert_int_equal(DOES(futex, AT, FUTEX_TRYLOCK_PI | FUTEX_PRIVATE_FLAG), 0);
	assert_int_equal(word(AT), getpid() + 1);
	assert_int_equal(DOES(futex, AT, 99), -ENOSYS);
	(void)DOES(futex, AT, FUTEX_LOCK_PI | FUTEX_PRIVATE_FLAG);
	assert_ends(DEADLOCK_END_BLOCKED, "futex");
	assert_int_equal(f.run.again.at, AT);
	assert_false(f.run.again_is_same);
	begin(false); /* back to what it waited for, and nothing can be faked */
	f.copy.no_more_hypotheses = true;
	(void)DOES(futex, f.wait.word, FUTEX_WAIT_PRIVATE, 0);
	assert_ends(DEADLOCK_END_BLOCKED, "futex");
	assert_true(f.run.again_is_same);
}

/* What is asked for is there, four times. */
static void test_polls(void **state)
{
	struct pollfd item[] = {{1, POLLIN, 0}, {-1, POLLIN, 0}, {2, POLLOUT | POLLPRI, 0}};
	fd_set set;
	(void)state;
	for (int limit = -1; limit < 1; limit++) {
		begin(false);
		for (unsigned i = 0; i < DEADLOCK_COPY_POLLS_MAX; i++) {
			memcpy(memory(AT), item, sizeof item);
			assert_int_equal(DOES(poll, AT, 3, (uint64_t)limit), 2);
			struct pollfd got[3];
			memcpy(got, memory(AT), sizeof got);
			assert_int_equal(got[0].revents, POLLIN);
			assert_int_equal(got[1].revents, 0);
			assert_int_equal(got[2].revents, POLLOUT);
		}
		assert_int_equal(DOES(poll, AT, 3, (uint64_t)limit), 0);
		if (limit < 0)
			assert_ends(DEADLOCK_END_BLOCKED, "poll");
		else
			assert_false(f.copy.is_done);
	}
	for (int limit = 0; limit < 2; limit++) {
		begin(false);
		memset(memory(AT), 0, sizeof item); /* for nothing */
		assert_int_equal(DOES(ppoll, AT, 1, limit ? AT : 0), 0);
		assert_int_equal(f.copy.is_done, !limit);
	}
	begin(false);
	FD_ZERO(&set);
	FD_SET(3, &set);
	FD_SET(70, &set);
	for (unsigned i = 0; i < DEADLOCK_COPY_POLLS_MAX; i++) {
		memcpy(memory(AT), &set, sizeof set);
		memcpy(memory(AT + 128), &set, sizeof set);
		assert_int_equal(DOES(select, 71, AT, 0, AT + 128, 0), 2);
		assert_memory_equal(memory(AT), &set, 16);
		assert_int_equal(word(AT + 128), 0); /* nothing exceptional */
	}
	assert_int_equal(DOES(select, 71, AT, 0, 0, AT + 256), 0); /* a time limit */
	assert_int_equal(word(AT), 0);
	assert_int_equal(DOES(select, 71, NOWHERE, 0, 0, AT), -EFAULT);
	(void)DOES(select, 71, AT, 0, 0, 0);
	assert_ends(DEADLOCK_END_BLOCKED, "select");
	begin(false); /* an epoll set of which nothing is known */
	assert_int_equal(DOES(epoll_wait, FD_EPOLL, AT, 1, 0), 0);
	assert_int_equal(DOES(epoll_pwait2, FD_EPOLL, AT, 1, AT), 0);
	(void)DOES(epoll_wait, FD_EPOLL, AT, 1, (uint64_t)-1);
	assert_ends(DEADLOCK_END_BLOCKED, "epoll_wait");
}

static void test_children(void **state)
{
	siginfo_t info;
	(void)state;
	begin(false);
	set_word(AT, 9);
	assert_int_equal(DOES(wait4, (uint64_t)-1, AT, WNOHANG), 0);
	assert_int_equal(word(AT), 9);
	f.copy.is_first = true; /* the child that it waited for has ended */
	assert_int_equal(DOES(wait4, 4711, AT, 0), 4711);
	assert_int_equal(word(AT), 0);
	assert_int_equal(DOES(wait4, 4711, NOWHERE, 0), -EFAULT);
	f.wait.key[0] = (struct deadlock_key){.kind = DEADLOCK_KEY_PROCESS_EXIT, .id = 815};
	assert_int_equal(DOES(wait4, (uint64_t)-1, 0, 0), 815);
	assert_int_equal(DOES(waitid, P_ALL, 0, AT, 0), 0);
	memcpy(&info, memory(AT), sizeof info);
	assert_true(info.si_pid == 815 && info.si_code == CLD_EXITED && info.si_signo == SIGCHLD);
	assert_int_equal(DOES(waitid, P_PID, 4711, AT, 0), 0);
	memcpy(&info, memory(AT), sizeof info);
	assert_int_equal(info.si_pid, 4711);
	f.copy.is_first = false;
	assert_int_equal(DOES(waitid, P_ALL, 0, AT, WNOHANG), 0);
	memcpy(&info, memory(AT), sizeof info);
	assert_int_equal(info.si_pid, 0);
	(void)DOES(wait4, (uint64_t)-1, 0, 0);
	assert_ends(DEADLOCK_END_BLOCKED, "wait4");
	begin(false);
	(void)DOES(waitid, P_ALL, 0, AT, 0);
	assert_ends(DEADLOCK_END_BLOCKED, "waitid");
}

static void test_signals(void **state)
{
	uint64_t set = 1 << 4;
	(void)state;
	begin(false);
	memcpy(memory(AT), &set, sizeof set);
	assert_int_equal(DOES(rt_sigprocmask, SIG_BLOCK, AT, 0), 0);
	set = 1 << 7;
	memcpy(memory(AT), &set, sizeof set);
	assert_int_equal(DOES(rt_sigprocmask, SIG_BLOCK, AT, AT + 8), 0);
	assert_int_equal(word(AT + 8), 1 << 4);
	assert_int_equal(DOES(rt_sigprocmask, SIG_UNBLOCK, AT, AT + 8), 0);
	assert_int_equal(word(AT + 8), 1 << 4 | 1 << 7);
	assert_int_equal(DOES(rt_sigprocmask, SIG_BLOCK, 0, AT + 8), 0);
	assert_int_equal(word(AT + 8), 1 << 4);
	assert_int_equal(DOES(rt_sigprocmask, SIG_SETMASK, AT, 0), 0);
	assert_int_equal(f.copy.signal_mask, 1 << 7);
	assert_int_equal(DOES(rt_sigprocmask, SIG_SETMASK, NOWHERE, 0), -EFAULT);
	assert_int_equal(DOES(rt_sigprocmask, SIG_SETMASK, 0, NOWHERE), -EFAULT);
	assert_int_equal(DOES(rt_sigaction, SIGINT, 0, AT), 0);
	assert_int_equal(DOES(rt_sigaction, SIGINT, 0, NOWHERE), -EFAULT);
	assert_int_equal(DOES(kill, 4711, 0), 0); /* is it there? */
	assert_int_equal(f.run.nr_events, 0);
	assert_int_equal(DOES(kill, 4711, SIGUSR1), 0);
	assert_int_equal(DOES(kill, (uint64_t)-4711, SIGUSR1), 0); /* its group */
	assert_int_equal(DOES(tgkill, 4711, 4712, SIGUSR1), 0);
	assert_int_equal(f.run.nr_events, 1);
	assert_int_equal(f.run.event[0].count, 3);
	assert_int_equal(f.run.event[0].key.kind, DEADLOCK_KEY_SIGNAL);
	assert_int_equal(f.run.event[0].key.space, 4711);
	assert_int_equal(DOES(rt_sigtimedwait, AT, 0, AT), -EAGAIN);
	(void)DOES(rt_sigtimedwait, AT, 0, 0);
	assert_ends(DEADLOCK_END_BLOCKED, "signals");
	assert_int_equal(f.run.again.space, getpid());
	begin(false);
	(void)DOES(pause);
	assert_ends(DEADLOCK_END_BLOCKED, "signals");
}

static void test_system_v(void **state)
{
	struct sembuf give[] = {{0, 1, 0}, {1, 0, 0}}, take = {0, -1, 0}, may = {0, -1, IPC_NOWAIT};
	uint64_t type;
	(void)state;
	begin(false); /* (a set that does not exist: its semaphores are below 0) */
	memcpy(memory(AT), give, sizeof give);
	assert_int_equal(DOES(semop, 1 << 30, AT, 2), 0);
	assert_int_equal(f.run.nr_events, 1); /* waiting for zero changes nothing */
	assert_int_equal(events(DEADLOCK_KEY_SYSV_SEM, 1 << 30), 1);
	memcpy(memory(AT), &may, sizeof may);
	assert_int_equal(DOES(semop, 1 << 30, AT, 1), 0);
	assert_int_equal(DOES(semop, 1 << 30, NOWHERE, 1), -EFAULT);
	memcpy(memory(AT), &take, sizeof take);
	(void)DOES(semop, 1 << 30, AT, 1);
	assert_ends(DEADLOCK_END_BLOCKED, "semop");
	assert_int_equal(f.run.again.id, 1 << 30);
	begin(false);
	f.copy.is_first = true; /* a message of that type has come */
	memset(memory(AT), 0xff, 64);
	assert_int_equal(DOES(msgrcv, 3, AT, 5, 77), 5);
	memcpy(&type, memory(AT), sizeof type);
	assert_int_equal(type, 77);
	assert_memory_equal(memory(AT + 8), "\0\0\0\0\0\xff", 6);
	assert_int_equal(DOES(msgrcv, 3, AT, 5, (uint64_t)-2), 5);
	memcpy(&type, memory(AT), sizeof type);
	assert_int_equal(type, 1);
	assert_int_equal(DOES(msgrcv, 3, NOWHERE, 5, 1), -EFAULT);
	assert_int_equal(events(DEADLOCK_KEY_SYSV_QUEUE, 3), 2);
	f.copy.is_first = false;
	(void)DOES(msgrcv, 3, AT, 5, 77);
	assert_ends(DEADLOCK_END_BLOCKED, "msgrcv");
}

/* ---- memory, and who it is ------------------------------------------------------------------- */

static void test_maps_memory(void **state)
{
	const uint64_t anonymous = MAP_PRIVATE | MAP_ANONYMOUS, heap_end = MEMORY + 2048;
	(void)state;
	begin(false);
	assert_int_equal(DOES(mmap, 0, 4096, PROT_READ, anonymous), MEMORY);
	assert_int_equal(DOES(mmap, 0x7000000, 4096, PROT_READ, anonymous | MAP_FIXED), 0x7000000);
	assert_int_equal(DOES(mmap, 0x7000001, 4096, PROT_READ, anonymous), -ENOMEM);
	assert_int_equal(DOES(mmap, 0, DEADLOCK_COPY_MAPPED_MAX - 8191, 0, anonymous), -ENOMEM);
	assert_int_equal(DOES(mmap, 0, DEADLOCK_COPY_MAPPED_MAX - 8192, 0, anonymous), MEMORY);
	assert_int_equal(DOES(mmap, 0, 1, 0, anonymous), -ENOMEM);
	assert_int_equal(DOES(mprotect, MEMORY + 1, 4096, PROT_READ), -EINVAL);
	assert_int_equal(DOES(mprotect, MEMORY, 4096, PROT_READ), 0);
	assert_int_equal(DOES(munmap, MEMORY, 4096), 0);
	begin(false);
	assert_int_equal(DOES(brk, 0), heap_end);
	assert_int_equal(DOES(brk, heap_end + 1), heap_end); /* something is in the way */
	copy_regions[1].start += 1 << 20, copy_regions[1].end += 1 << 20;
	assert_int_equal(DOES(brk, heap_end + 1), heap_end + 1);
	assert_int_equal(DOES(brk, 0), (heap_end + 1 + 4095) / 4096 * 4096);
	assert_int_equal(DOES(brk, heap_end + DEADLOCK_COPY_MAPPED_MAX + (1 << 20)),
		(heap_end + 1 + 4095) / 4096 * 4096);
	copy_regions[1].start -= 1 << 20, copy_regions[1].end -= 1 << 20;
	/* memory given up: private only, within its region */
	const uint64_t before = f.ghost.mapped_bytes;
	assert_int_equal(DOES(madvise, MEMORY, 2048, MADV_WILLNEED), 0);
	assert_int_equal(DOES(madvise, MEMORY, 2049, MADV_DONTNEED), 0);
	assert_int_equal(DOES(madvise, MEMORY + 4096, 1, MADV_DONTNEED), 0);
	assert_int_equal(f.ghost.mapped_bytes, before);
	assert_int_equal(DOES(madvise, MEMORY, 2048, MADV_DONTNEED), 0);
	assert_int_equal(f.ghost.mapped_bytes, before + 2048);
	(void)DOES(mmap, 0, 4096, PROT_READ, MAP_SHARED | MAP_ANONYMOUS);
	assert_ends(DEADLOCK_END_CALL, "shared memory");
	begin(false);
	(void)DOES(mmap, 0, 4096, PROT_READ, MAP_PRIVATE);
	assert_ends(DEADLOCK_END_CALL, "a file");
}

/* As the process itself would be told. */
static void test_who_it_is(void **state)
{
	struct timespec now, then;
	struct utsname ours, its;
	struct rlimit limit, own;
	char path[512];
	(void)state;
	begin(false);
	f.wait.thread.tid = getpid();
	f.process.status.uid = 1234;
	assert_int_equal(DOES(getpid), getpid());
	assert_int_equal(DOES(gettid), getpid());
	assert_int_equal(DOES(getppid), 1);
	assert_int_equal(DOES(getuid), 1234);
	assert_int_equal(DOES(getgid), getgid());
	cpu_set_t processors;
	assert_int_equal(sched_getaffinity(0, sizeof processors, &processors), 0);
	assert_int_equal(DOES(sched_getaffinity, 0, sizeof processors, AT), sizeof processors);
	assert_memory_equal(memory(AT), &processors, sizeof processors);
	assert_int_equal(DOES(sched_getaffinity, 0, 4 * sizeof processors, AT), sizeof processors);
	set_word(AT + 8, 77);
	assert_int_equal(DOES(sched_getaffinity, 0, 8, AT), 8);
	assert_int_equal(word(AT + 8), 77);
	assert_int_equal(DOES(sched_getaffinity, 0, 8, NOWHERE), -EFAULT);
	assert_int_equal(DOES(getpgid), getpgid(0));
	assert_int_equal(DOES(getsid), getsid(0));
	assert_int_equal(DOES(uname, AT), 0);
	memcpy(&its, memory(AT), sizeof its);
	uname(&ours);
	assert_memory_equal(&ours, &its, sizeof its);
	assert_int_equal(DOES(getrlimit, RLIMIT_NOFILE, AT), 0);
	memcpy(&limit, memory(AT), sizeof limit);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &own), 0);
	assert_true(limit.rlim_cur == own.rlim_cur && limit.rlim_max == own.rlim_max);
	assert_int_equal(DOES(prlimit64, 0, RLIMIT_NOFILE, 0, AT), 0);
	assert_int_equal(DOES(prlimit64, 0, RLIMIT_NOFILE, 0, NOWHERE), -EFAULT);
	assert_int_equal(DOES(prlimit64, 0, 999, 0, AT), -EINVAL);
	assert_int_equal(clock_gettime(CLOCK_MONOTONIC, &now), 0);
	assert_int_equal(DOES(clock_gettime, CLOCK_PROCESS_CPUTIME_ID, AT), 0);
	memcpy(&then, memory(AT), sizeof then);
	assert_true(then.tv_sec >= now.tv_sec && then.tv_sec <= now.tv_sec + 600);
	assert_int_equal(DOES(clock_gettime, 999, AT), -EINVAL);
	assert_int_equal(DOES(clock_gettime, CLOCK_REALTIME, NOWHERE), -EFAULT);
	assert_int_equal(DOES(gettimeofday, AT), 0);
	assert_true(DOES(time, 0) >= (int64_t)word(AT));
	assert_int_equal(DOES(time, NOWHERE), -EFAULT);
	assert_int_equal(DOES(getrandom, AT, 16), 16);
	assert_int_equal(DOES(getrandom, AT + 16, 16), 16);
	assert_memory_equal(memory(AT), memory(AT + 16), 16); /* the same again */
	assert_int_not_equal(word(AT), word(AT + 4));
	assert_int_equal(DOES(getrandom, NOWHERE, 16), -EFAULT);
	assert_non_null(getcwd(path, sizeof path));
	assert_int_equal(DOES(getcwd, AT, 600), (int64_t)strlen(path) + 1);
	assert_string_equal(memory(AT), path);
	assert_int_equal(DOES(getcwd, AT, strlen(path)), -ERANGE);
	assert_int_equal(DOES(getcwd, NOWHERE, 600), -EFAULT);
	assert_null(f.copy.tainted);
	assert_int_equal(f.run.nr_events, 0);
}

/* ---- sockets that are known by a name -------------------------------------------------------- */

static void test_accepts(void **state)
{
	(void)state;
	begin(false);
	f.copy.is_first = true; /* somebody whom nobody knows has come, once */
	const int64_t fd = DOES(accept, FD_SOCKET);
	assert_true(fd >= DEADLOCK_COPY_FAKE_FD);
	assert_int_equal(DOES(read, (uint64_t)fd, AT, 9), 1);
	assert_int_equal(DOES(accept, FD_CLOSED), -EBADF);
	assert_int_equal(DOES(connect, FD_SOCKET, 0, 0), 0);
	assert_null(f.copy.tainted);
	f.copy.is_first = false;
	assert_int_equal(DOES(connect, FD_SOCKET, 0, 0), 0);
	assert_non_null(f.copy.tainted); /* nobody knows whom */
	f.copy.tainted = NULL;
	f.copy.is_first = true;
	(void)DOES(accept, FD_SOCKET);
	assert_ends(DEADLOCK_END_BLOCKED, "accept");
	assert_int_equal(f.run.again.kind, DEADLOCK_KEY_SOCKET_PEER);
	assert_int_equal(f.run.again.id, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reads_a_pipe),
		cmocka_unit_test(test_reads_a_file),
		cmocka_unit_test(test_reads_in_pieces),
		cmocka_unit_test(test_garbage_pieces),
		cmocka_unit_test(test_reads_other_things),
		cmocka_unit_test(test_writes),
		cmocka_unit_test(test_closes),
		cmocka_unit_test(test_shuts_down),
		cmocka_unit_test(test_other_descriptors),
		cmocka_unit_test(test_asks_of_files),
		cmocka_unit_test(test_locks_files),
		cmocka_unit_test(test_exits),
		cmocka_unit_test(test_ends_without_a_proof),
		cmocka_unit_test(test_goes_round),
		cmocka_unit_test(test_events_are_counted),
		cmocka_unit_test(test_futex),
		cmocka_unit_test(test_polls),
		cmocka_unit_test(test_children),
		cmocka_unit_test(test_signals),
		cmocka_unit_test(test_system_v),
		cmocka_unit_test(test_maps_memory),
		cmocka_unit_test(test_who_it_is),
		cmocka_unit_test(test_accepts),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
