/* SPDX-License-Identifier: Apache-2.0 */
/*
 * deadlock_isolation - a deadlocked process of which every thread would do harm if it went on, and
 * a witness.
 *
 * Prints "READY PID", waits for the end of its standard input, then checks that none of the harm
 * was done, prints "LEAK: what" for each that was, and "ISOLATION OK" or "ISOLATION BROKEN". Exit
 * status 0 or 1.
 *
 * main waits for lock B; thread 0 has B and waits for A; main has A; so do all others. Thread i
 * would begin with harm i and go on with those after it.
 */
#include "asleep.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SIZE = 4096 };

static pthread_mutex_t lock_a = PTHREAD_MUTEX_INITIALIZER, lock_b = PTHREAD_MUTEX_INITIALIZER;
static volatile int *shared_memory, *shared_file;
static int event_fd, pipe_fd[2], socket_fd[2], file_fd, semaphores, queue;
static pid_t witness;
static char directory[PATH_MAX], victim_file[PATH_MAX], new_file[PATH_MAX], new_directory[PATH_MAX],
	file[PATH_MAX], touched_file[PATH_MAX], touch[PATH_MAX];
static atomic_int waiting;

/* What would be seen outside. */
static void harm_memory(void)
{
	*shared_memory = 1;
	*shared_file = 1;
	__sync_fetch_and_add(shared_memory + 1, 1);
	msync((void *)shared_file, SIZE, MS_SYNC);
}
static void harm_output(void)
{
	if (write(1, "HARM\n", 5) < 0)
		_exit(1);
}
static void harm_eventfd(void)
{
	eventfd_write(event_fd, 1);
}
static void harm_pipe(void)
{
	if (write(pipe_fd[1], "x", 1) < 0)
		_exit(1);
}
static void harm_socket(void)
{
	send(socket_fd[0], "y", 1, 0);
}
static void harm_file(void)
{
	if (pwrite(file_fd, "H", 1, 0) < 0 || write(file_fd, "H", 1) < 0)
		_exit(1);
}
static void harm_position(void)
{
	lseek(file_fd, 5, SEEK_SET);
}
static void harm_size(void)
{
	if (ftruncate(file_fd, 0))
		_exit(1);
}
static void harm_unlink(void)
{
	unlink(victim_file);
}
static void harm_rename(void)
{
	rename(victim_file, new_file);
}
static void harm_create(void)
{
	close(open(new_file, O_CREAT | O_RDWR, 0600));
}
static void harm_directory(void)
{
	mkdir(new_directory, 0700);
}
static void harm_kill(void)
{
	kill(witness, SIGUSR1);
}
static void harm_fork(void)
{
	if (fork() == 0) {
		*shared_memory = 2;
		kill(witness, SIGUSR1);
		_exit(0);
	}
}
static void harm_system(void)
{
	if (system(touch))
		_exit(1);
}
static void harm_exec(void)
{
	execl("/bin/sh", "sh", "-c", touch, (char *)NULL);
}
static void harm_socket_option(void)
{
	setsockopt(socket_fd[0], SOL_SOCKET, SO_SNDBUF, &(int){4608}, sizeof(int));
}
static void harm_flags(void)
{
	fcntl(pipe_fd[0], F_SETFL, O_NONBLOCK);
}
static void harm_alarm(void)
{
	alarm(1);
}
static void harm_name(void)
{
	prctl(PR_SET_NAME, "harmed");
}
static void harm_semaphore(void)
{
	semop(semaphores, &(struct sembuf){0, 1, 0}, 1);
}
static void harm_queue(void)
{
	msgsnd(queue, &(struct {
		long type;
		char text[1];
	}){1, "z"},
		1, 0);
}
static void harm_limit(void)
{
	setrlimit(RLIMIT_NOFILE, &(struct rlimit){8, 8});
}
static void harm_flock(void)
{
	flock(file_fd, LOCK_UN);
}

/* What would harm the one who looks. */
static void harm_by_crash(void)
{
	volatile uintptr_t nowhere = 8;
	*(volatile int *)nowhere = 1;
}
static void harm_by_loop(void)
{
	for (volatile int i = 0;; i++)
		;
}
static volatile bool for_ever = true;
static int recurse(volatile char *from)
{
	volatile char frame[65536];
	frame[0] = *from;
	return for_ever ? recurse(frame) + frame[0] : 0;
}
static void harm_by_stack(void)
{
	volatile char c = 1;
	recurse(&c);
}
static void harm_by_memory(void)
{
	for (;;) {
		char *p = mmap(
			NULL, 64 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (p == MAP_FAILED)
			break;
		memset(p, 1, 64 << 20);
	}
	for (;;)
		if (!malloc(1 << 20))
			break;
}
static void harm_by_forks(void)
{
	for (int i = 0; i < 100; i++)
		if (fork() == 0)
			for (;;)
				fork();
}
static void harm_by_calls(void)
{
	for (;;)
		getppid();
}
static void harm_by_old_call(void)
{
	int pid = 20; /* getpid of 32-bit code */
	__asm__ volatile("int $0x80" : "+a"(pid) : : "memory", "r8", "r9", "r10", "r11");
}
static void harm_by_ptrace(void)
{
	ptrace(PTRACE_TRACEME, 0, NULL, NULL);
	raise(SIGSTOP);
}
static void harm_by_signal(void)
{
	raise(SIGKILL);
}
static void harm_by_breakpoint(void)
{
	__asm__ volatile("int3");
}

static void (*const harms[])(void) = {
	harm_memory,
	harm_output,
	harm_eventfd,
	harm_pipe,
	harm_socket,
	harm_file,
	harm_position,
	harm_size,
	harm_unlink,
	harm_rename,
	harm_create,
	harm_directory,
	harm_kill,
	harm_fork,
	harm_system,
	harm_exec,
	harm_socket_option,
	harm_flags,
	harm_alarm,
	harm_name,
	harm_semaphore,
	harm_queue,
	harm_limit,
	harm_flock,
	harm_by_crash,
	harm_by_loop,
	harm_by_stack,
	harm_by_memory,
	harm_by_forks,
	harm_by_calls,
	harm_by_old_call,
	harm_by_ptrace,
	harm_by_signal,
	harm_by_breakpoint,
};
enum { HARMS = sizeof harms / sizeof *harms };

static void *thread(void *argument)
{
	const size_t first = (size_t)argument;
	if (first == 0)
		pthread_mutex_lock(&lock_b);
	waiting++;
	pthread_mutex_lock(&lock_a);
	for (size_t i = 0; i < HARMS; i++)
		harms[(first + i) % HARMS]();
	return NULL;
}

static _Noreturn void deadlocked(void)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	pthread_mutex_lock(&lock_a);
	for (size_t i = 0; i < HARMS; i++) {
		pthread_t t;
		pthread_create(&t, NULL, thread, (void *)i);
	}
	while (waiting < HARMS)
		usleep(1000);
	until_others_sleep();
	printf("READY %d\n", getpid());
	fflush(stdout);
	pthread_mutex_lock(&lock_b);
	for (size_t i = 0; i < HARMS; i++)
		harms[i]();
	_exit(1);
}

static volatile sig_atomic_t got_signal;
static void on_signal(int number)
{
	(void)number;
	got_signal = 1;
}

static int leaks;
static void check(int leaked, const char *what)
{
	if (!leaked)
		return;
	leaks++;
	printf("LEAK: %s\n", what);
}

static int lines_of(const char *path)
{
	char text[4096];
	int n = 0, fd = open(path, O_RDONLY);
	const ssize_t got = fd < 0 ? 0 : read(fd, text, sizeof text);
	if (fd >= 0)
		close(fd);
	for (ssize_t i = 0; i < got; i++)
		n += text[i] == ' ';
	return n;
}

static void check_all(pid_t child)
{
	char byte, path[64], name[32] = "";
	eventfd_t count;
	struct stat s;
	int size;
	socklen_t length = sizeof size;
	fstat(file_fd, &s);
	check(shared_memory[0] || shared_memory[1], "shared memory was written");
	check(shared_file[0], "a mapped file was written");
	check(eventfd_read(event_fd, &count) == 0, "the eventfd was written");
	check(fcntl(pipe_fd[0], F_GETFL) & O_NONBLOCK, "flags of the pipe were changed");
	fcntl(pipe_fd[0], F_SETFL, O_NONBLOCK);
	check(read(pipe_fd[0], &byte, 1) == 1, "the pipe was written");
	check(recv(socket_fd[1], &byte, 1, MSG_DONTWAIT) == 1, "the socket was written");
	check(s.st_size != SIZE, "the file's size was changed");
	check(lseek(file_fd, 0, SEEK_CUR) != 0, "the file's position was changed");
	check(access(victim_file, F_OK) != 0, "a file was removed");
	check(access(new_file, F_OK) == 0, "a file was created");
	check(access(new_directory, F_OK) == 0, "a directory was created");
	check(access(touched_file, F_OK) == 0, "a program was started");
	check(got_signal, "a signal was sent");
	getsockopt(socket_fd[0], SOL_SOCKET, SO_SNDBUF, &size, &length);
	check(size < 20000, "a socket option was set");
	check(semctl(semaphores, 0, GETVAL) != 0, "the semaphore was changed");
	check(msgrcv(queue, &(struct {
		long type;
		char text[1];
	}){0},
		      1, 0, IPC_NOWAIT) >= 0,
		"a message was sent");
	snprintf(path, sizeof path, "/proc/%d/comm", child);
	int fd = open(path, O_RDONLY);
	check(fd < 0 || read(fd, name, sizeof name - 1) <= 0 || strncmp(name, "harmed", 6) == 0,
		"the thread's name was changed");
	if (fd >= 0)
		close(fd);
	snprintf(path, sizeof path, "/proc/%d/task/%d/children", child, child);
	check(lines_of(path) != 0, "the process has a child");
	check(waitpid(child, NULL, WNOHANG) != 0, "the process ended");
}

/* All paths have room for PATH_MAX. */
__attribute__((format(printf, 2, 3))) static void print(char *path, const char *format, ...)
{
	va_list words;
	va_start(words, format);
	const int n = vsnprintf(path, PATH_MAX, format, words);
	va_end(words);
	if (n < 0 || n >= PATH_MAX)
		exit(2);
}

static void make_things(void)
{
	const char *tmp = getenv("TMPDIR");
	print(directory, "%s/isolation-XXXXXX", tmp ? tmp : "/tmp");
	if (!mkdtemp(directory))
		exit(2);
	print(victim_file, "%s/victim", directory);
	print(new_file, "%s/new", directory);
	print(new_directory, "%s/newdir", directory);
	print(touched_file, "%s/system", directory);
	print(touch, "touch '%s'", touched_file);
	print(file, "%s/file", directory);
	close(open(victim_file, O_CREAT | O_RDWR, 0600));
	file_fd = open(file, O_CREAT | O_RDWR, 0600);
	if (ftruncate(file_fd, SIZE) || pipe(pipe_fd) ||
		socketpair(AF_UNIX, SOCK_STREAM, 0, socket_fd))
		exit(2);
	shared_memory = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	shared_file = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, file_fd, 0);
	event_fd = eventfd(0, EFD_NONBLOCK);
	semaphores = semget(IPC_PRIVATE, 1, 0600);
	semctl(semaphores, 0, SETVAL, 0);
	queue = msgget(IPC_PRIVATE, 0600);
}

static void remove_things(void)
{
	const char *const files[] = {victim_file, new_file, touched_file, file};
	semctl(semaphores, 0, IPC_RMID);
	msgctl(queue, IPC_RMID, NULL);
	for (size_t i = 0; i < sizeof files / sizeof *files; i++)
		(void)unlink(files[i]);
	(void)rmdir(new_directory);
	check(rmdir(directory) != 0, "a file was created");
}

int main(void)
{
	char byte;
	witness = getpid();
	make_things();
	sigaction(SIGUSR1, &(struct sigaction){.sa_handler = on_signal}, NULL);
	const pid_t child = fork();
	if (child == 0)
		deadlocked();
	while (read(0, &byte, 1) > 0 || errno == EINTR)
		errno = 0;
	check_all(child);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	remove_things();
	printf(leaks ? "ISOLATION BROKEN\n" : "ISOLATION OK\n");
	return leaks != 0;
}
