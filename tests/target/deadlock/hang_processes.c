/* SPDX-License-Identifier: Apache-2.0 */
/* hang_processes.c - processes that wait for each other for ever: shared memory, pipes, sockets,
 * children, file locks, System V semaphores. */
#include "hang.h"

#include <errno.h>
#include <fcntl.h>
#include <semaphore.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <limits.h>
#include <mqueue.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/file.h>
#include <sched.h>
#include <sys/ipc.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/un.h>

enum { PHILOSOPHERS = 5, BIG = 200000, PIPE_BYTES = 65536 };

/* ---- shared memory --------------------------------------------------------------------------- */

struct table {
	pthread_barrier_t together;
	pthread_mutex_t fork[PHILOSOPHERS];
	volatile long meals;
	sem_t tobacco, paper, matches, order;
};

static struct table *new_table(unsigned nr)
{
	struct table *t = shared_memory(sizeof *t);
	pthread_mutexattr_t mutex;
	pthread_barrierattr_t barrier;
	pthread_mutexattr_init(&mutex);
	pthread_mutexattr_setpshared(&mutex, PTHREAD_PROCESS_SHARED);
	pthread_barrierattr_init(&barrier);
	pthread_barrierattr_setpshared(&barrier, PTHREAD_PROCESS_SHARED);
	pthread_barrier_init(&t->together, &barrier, nr);
	for (int i = 0; i < PHILOSOPHERS; i++)
		pthread_mutex_init(&t->fork[i], &mutex);
	sem_init(&t->tobacco, 1, 0);
	sem_init(&t->paper, 1, 0);
	sem_init(&t->matches, 1, 0);
	sem_init(&t->order, 1, 1);
	return t;
}

static void philosophers(void)
{
	struct table *t = new_table(PHILOSOPHERS + 1);
	for (int i = 0; i < PHILOSOPHERS; i++) {
		if (fork_child() != 0)
			continue;
		pthread_mutex_lock(&t->fork[i]);
		pthread_barrier_wait(&t->together);
		pthread_mutex_lock(&t->fork[(i + 1) % PHILOSOPHERS]);
		t->meals++;
		pthread_mutex_unlock(&t->fork[i]);
		pthread_mutex_unlock(&t->fork[(i + 1) % PHILOSOPHERS]);
		_exit(0);
	}
	pthread_barrier_wait(&t->together);
	ready();
	while (wait(NULL) > 0)
		;
}

static void smoke(struct table *t, int i)
{
	sem_t *needs[3][2] = {
		{&t->tobacco, &t->paper}, {&t->paper, &t->matches}, {&t->matches, &t->tobacco}};
	for (int round = 0;; round++) {
		sem_wait(needs[i][0]);
		if (i != 1 && !round)
			pthread_barrier_wait(&t->together);
		sem_wait(needs[i][1]);
		sem_post(&t->order);
	}
}

static void smokers(void)
{
	struct table *t = new_table(3);
	for (int i = 0; i < 3; i++) {
		if (fork_child() == 0)
			smoke(t, i);
	}
	if (fork_child() == 0) {
		for (int round = 0;; round++) { /* the agent */
			sem_t *all[3] = {&t->tobacco, &t->matches, &t->paper};
			sem_wait(&t->order);
			int not_given = round ? rand() % 3 : 2;
			for (int i = 0; i < 3; i++) {
				if (i != not_given)
					sem_post(all[i]);
			}
		}
	}
	pthread_barrier_wait(&t->together);
	ready();
	while (wait(NULL) > 0)
		;
}

/* ---- pipes and sockets ----------------------------------------------------------------------- */

static char big[BIG];

/* The web server's CGI script: it fills its error pipe while the server polls its output. */
static void serve_script(int limit_ms)
{
	int out[2], errors[2];
	char buf[4096];
	ssize_t n;
	if (pipe(out) != 0 || pipe(errors) != 0)
		exit(9);
	if (fork_child() == 0) {
		close(out[0]);
		close(errors[0]);
		n = write(errors[1], big, PIPE_BYTES + 1);
		n = write(out[1], "Content-type: text/html\n\n", 25);
		_exit(n < 0);
	}
	close(out[1]);
	close(errors[1]);
	ready();
	struct pollfd p = {.fd = out[0], .events = POLLIN};
	do {
		poll(&p, 1, limit_ms);
		n = read(out[0], buf, sizeof buf);
	} while (n > 0);
	while (read(errors[0], buf, sizeof buf) > 0)
		;
}

static void cgi(void)
{
	serve_script(-1);
}

/* As the server does: it gives up after five minutes. */
static void cgi_with_limit(void)
{
	serve_script(300000);
}

/* Waiting for a child that writes more than its pipe holds. */
static void wait_full_pipe(void)
{
	int p[2];
	char buf[4096];
	if (pipe(p) != 0)
		exit(9);
	pid_t child = fork_child();
	if (child == 0) {
		close(p[0]);
		_exit(write(p[1], big, BIG) != BIG);
	}
	close(p[1]);
	ready();
	waitpid(child, NULL, 0);
	while (read(p[0], buf, sizeof buf) > 0)
		;
}

/* A filter that answers more than it is asked. */
static void full_pipes(void)
{
	int to[2], from[2];
	char buf[4096];
	ssize_t n;
	if (pipe(to) != 0 || pipe(from) != 0)
		exit(9);
	if (fork_child() == 0) {
		close(to[1]);
		close(from[0]);
		while ((n = read(to[0], buf, sizeof buf)) > 0) {
			for (int i = 0; i < 4; i++) {
				if (write(from[1], buf, (size_t)n) < 0)
					_exit(1);
			}
		}
		_exit(0);
	}
	close(to[0]);
	close(from[1]);
	ready();
	n = write(to[1], big, BIG);
	close(to[1]);
	while (n > 0 && (n = read(from[0], buf, sizeof buf)) > 0)
		;
}

/* Each waits for the other to speak first. */
static void both_read(void)
{
	int s[2];
	char buf[64];
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, s) != 0)
		exit(9);
	int child = fork_child() == 0;
	close(s[!child]);
	if (!child)
		ready();
	if (read(s[child], buf, sizeof buf) >= 0 && write(s[child], "x", 1) < 0)
		exit(1);
}

static void *both_read_there(void *unused)
{
	both_read();
	return unused;
}

/* The same, where the first thread of one of them has ended. */
static void main_ended(void)
{
	start(both_read_there, 0);
	pthread_exit(NULL);
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int notes[2];

static void *note_under_lock(void *argument)
{
	pthread_mutex_lock(&lock);
	if (write(notes[1], "x", 1) < 0)
		exit(1);
	pthread_mutex_unlock(&lock);
	return argument;
}

/* One circle through a lock and a pipe: who reads the pipe has the lock that its writer needs. */
static void lock_and_pipe(void)
{
	char c;
	if (pipe(notes) != 0)
		exit(9);
	pthread_mutex_lock(&lock);
	pthread_t t = start(note_under_lock, 0);
	ready();
	if (read(notes[0], &c, 1) != 1)
		exit(1);
	pthread_mutex_unlock(&lock);
	pthread_join(t, NULL);
}

/* ---- locks on files, System V ---------------------------------------------------------------- */

/* Two files of no name any more when both have a lock. */
static void name_files(char name[2][PATH_MAX])
{
	for (int i = 0; i < 2; i++) {
		if ((size_t)snprintf(name[i], PATH_MAX, "%s/hang_%d_%d",
			    getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp", (int)getpid(),
			    i) >= PATH_MAX)
			exit(9);
		close(open(name[i], O_CREAT | O_RDWR, 0600));
	}
}

static void file_locks(void)
{
	char name[2][PATH_MAX];
	int fd[2];
	struct table *t = new_table(2);
	name_files(name);
	int child = fork_child() == 0;
	for (int i = 0; i < 2; i++)
		fd[i] = open(name[i], O_RDWR);
	flock(fd[child], LOCK_EX);
	pthread_barrier_wait(&t->together);
	if (!child) {
		unlink(name[0]);
		unlink(name[1]);
		ready();
	}
	flock(fd[!child], LOCK_EX);
	flock(fd[!child], LOCK_UN);
	if (child)
		close(fd[child]); /* which gives its lock back, too */
	else
		flock(fd[child], LOCK_UN);
}

static void lock_open_file(int fd, short type)
{
	struct flock whole = {.l_type = type, .l_whence = SEEK_SET};
	fcntl(fd, F_OFD_SETLKW, &whole);
}

static int closed_fd[2];

/* The kernel does not say whose an open file's lock is, and of the parent's two threads this one
 * gives it back, by closing: nothing else shows the circle. */
static void *lock_then_close(void *unused)
{
	sem_t never;
	sem_init(&never, 0, 0);
	lock_open_file(closed_fd[1], F_WRLCK);
	close(closed_fd[0]);
	sem_wait(&never);
	return unused;
}

static void lock_and_close(void)
{
	char name[2][PATH_MAX];
	pthread_t t;
	struct table *table = new_table(2);
	name_files(name);
	int child = fork_child() == 0;
	for (int i = 0; i < 2; i++)
		closed_fd[i] = open(name[child ^ i], O_RDWR);
	lock_open_file(closed_fd[0], F_WRLCK);
	pthread_barrier_wait(&table->together);
	if (child) {
		lock_open_file(closed_fd[1], F_WRLCK);
		lock_open_file(closed_fd[0], F_UNLCK);
		return;
	}
	unlink(name[0]);
	unlink(name[1]);
	if (pthread_create(&t, NULL, lock_then_close, NULL) != 0)
		exit(1);
	ready();
	pthread_join(t, NULL);
	pause();
}

/* As flock(1) in a shell: who took the lock is gone, who has the file open has it. */
static void taken_by_others(void)
{
	char name[2][PATH_MAX];
	int fd[2], status;
	struct table *t = new_table(2);
	name_files(name);
	int child = fork_child() == 0;
	for (int i = 0; i < 2; i++)
		fd[i] = open(name[child ^ i], O_RDWR);
	const pid_t taker = fork_child();
	if (taker == 0)
		_exit(flock(fd[0], LOCK_EX) != 0);
	waitpid(taker, &status, 0);
	pthread_barrier_wait(&t->together);
	if (!child) {
		unlink(name[0]);
		unlink(name[1]);
		ready();
	}
	flock(fd[1], LOCK_EX);
}

static void change_with(int id, int number, int by, int flags)
{
	struct sembuf op = {
		.sem_num = (unsigned short)number, .sem_op = (short)by, .sem_flg = (short)flags};
	semop(id, &op, 1);
}

static void change(int id, int number, int by)
{
	change_with(id, number, by, 0);
}

/* Whoever kills us removes them. */
static int two_semaphores(void)
{
	int id = semget(IPC_PRIVATE, 2, 0600 | IPC_CREAT);
	change(id, 0, 1);
	change(id, 1, 1);
	printf("SEMAPHORES %d\n", id);
	fflush(stdout);
	return id;
}

/* Nobody says that he gives them back: the kernel does, at the end of a process. */
static void sysv_undo(void)
{
	struct table *t = new_table(2);
	int id = two_semaphores(), child = fork_child() == 0;
	change_with(id, child, -1, SEM_UNDO);
	pthread_barrier_wait(&t->together);
	if (!child)
		ready();
	change_with(id, !child, -1, SEM_UNDO);
}

/* The holder of the semaphore waits for something else. */
static void sysv_undo_and_pipe(void)
{
	int p[2];
	char c;
	struct table *t = new_table(2);
	int id = two_semaphores();
	if (pipe(p) != 0)
		exit(9);
	if (fork_child() == 0) {
		close(p[0]);
		pthread_barrier_wait(&t->together);
		change_with(id, 0, -1, SEM_UNDO);
		_exit(write(p[1], "x", 1) != 1);
	}
	close(p[1]);
	change_with(id, 0, -1, SEM_UNDO);
	pthread_barrier_wait(&t->together);
	ready();
	_exit(read(p[0], &c, 1) != 1);
}

static void sysv_semaphores(void)
{
	struct table *t = new_table(2);
	int id = two_semaphores(), child = fork_child() == 0;
	change(id, child, -1);
	pthread_barrier_wait(&t->together);
	if (!child)
		ready();
	change(id, !child, -1);
	change(id, !child, 1);
	change(id, child, 1);
	if (!child)
		semctl(id, 0, IPC_RMID);
}

/* FIFOs with names: the end that reads only, the end that writes only. */
static int fifo_open(const char *name, int flags)
{
	int fd;
	if (mkfifo(name, 0600) != 0 && errno != EEXIST)
		exit(9);
	fd = open(name, O_RDWR); /* so that neither open waits */
	const int end = open(name, flags);
	if (fd < 0 || end < 0)
		exit(9);
	close(fd);
	return end;
}

/* Each reads what only the other, or whoever opens the FIFO by its name, would write. */
static void fifos(void)
{
	char buf[8];
	if (chdir(getenv("TMPDIR")) != 0)
		exit(9);
	const int to_read = fifo_open("to-child", O_RDONLY);
	const int to = fifo_open("to-child", O_WRONLY);
	const int from = fifo_open("to-parent", O_RDONLY);
	const int from_write = fifo_open("to-parent", O_WRONLY);
	const int child = fork_child() == 0;
	close(child ? to : to_read);
	close(child ? from : from_write);
	if (!child)
		ready();
	if (read(child ? to_read : from, buf, sizeof buf) >= 0 &&
		write(child ? from_write : to, "x", 1) < 0)
		exit(1);
}

/* Each opens what the other does not open before. */
static void fifo_opens(void)
{
	if (chdir(getenv("TMPDIR")) != 0 || mkfifo("one", 0600) != 0 || mkfifo("two", 0600) != 0)
		exit(9);
	const int child = fork_child() == 0;
	if (!child)
		ready();
	const int to = open(child ? "one" : "two", O_WRONLY);
	const int from = open(child ? "two" : "one", O_RDONLY);
	exit(to < 0 || from < 0);
}

/* By an absolute name, and what is waited for comes after something else. */
static void fifo_open_and_wait(void)
{
	char name[PATH_MAX];
	if ((size_t)snprintf(name, sizeof name, "%s/late", getenv("TMPDIR")) >= sizeof name ||
		mkfifo(name, 0600) != 0)
		exit(9);
	const pid_t child = fork_child();
	if (child == 0)
		_exit(open(name, O_RDONLY) < 0);
	ready();
	waitpid(child, NULL, 0);
	exit(open(name, O_WRONLY) < 0);
}

/* Each waits for the message that the other would send after one. */
static void messages(bool keeps_names)
{
	struct mq_attr one = {.mq_maxmsg = 1, .mq_msgsize = 8};
	mqd_t queue[2];
	char name[2][32], buf[8];
	for (int i = 0; i < 2; i++) {
		(void)snprintf(name[i], sizeof name[i], "/hang-%d-%d", (int)getpid(), i);
		queue[i] = mq_open(name[i], O_CREAT | O_RDWR, 0600, &one);
		if (queue[i] == (mqd_t)-1)
			exit(9);
	}
	const int child = fork_child() == 0;
	if (!child) {
		ready();
		for (int i = 0; i < 2 && !keeps_names; i++)
			mq_unlink(name[i]);
	}
	if (mq_receive(queue[child], buf, sizeof buf, NULL) < 0 ||
		mq_send(queue[!child], buf, 1, 0) != 0)
		exit(1);
}

static void mqueues(void)
{
	messages(false);
}

static void named_mqueues(void)
{
	messages(true);
}

/* Both send more than fits, before they receive. */
static void full_mqueues(void)
{
	struct mq_attr one = {.mq_maxmsg = 1, .mq_msgsize = 8};
	mqd_t queue[2];
	char name[32], buf[8] = "";
	for (int i = 0; i < 2; i++) {
		(void)snprintf(name, sizeof name, "/hang-%d-%d", (int)getpid(), i);
		queue[i] = mq_open(name, O_CREAT | O_RDWR, 0600, &one);
		mq_unlink(name);
		if (queue[i] == (mqd_t)-1)
			exit(9);
	}
	const int child = fork_child() == 0;
	if (!child)
		ready();
	for (int i = 0; i < 2; i++)
		mq_send(queue[child], buf, 1, 0);
	for (int i = 0; i < 2; i++)
		mq_receive(queue[!child], buf, sizeof buf, NULL);
}

/* Both ends write more than fits, before they read. */
static void both_write(int type)
{
	int s[2];
	if (socketpair(AF_UNIX, type, 0, s) != 0)
		exit(9);
	const int child = fork_child() == 0;
	close(s[!child]);
	if (!child)
		ready();
	for (int i = 0; i < 1000; i++) {
		if (write(s[child], big, type == SOCK_STREAM ? sizeof big : 1000) < 0)
			exit(1);
	}
	while (read(s[child], big, sizeof big) > 0)
		;
}

static void both_write_stream(void)
{
	both_write(SOCK_STREAM);
}

static void both_write_datagrams(void)
{
	both_write(SOCK_DGRAM);
}

/* The name of one of two sockets: abstract, or a path. */
static socklen_t name_of_socket(struct sockaddr_un *a, int number, bool is_path)
{
	static int whose; /* the first process's, before it forks */
	whose = whose ? whose : (int)getpid();
	*a = (struct sockaddr_un){.sun_family = AF_UNIX};
	const int n = is_path ? snprintf(a->sun_path, sizeof a->sun_path, "socket-%d", number)
			      : snprintf(a->sun_path + 1, sizeof a->sun_path - 1,
					"longpole-hang-%d-%d", whose, number);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + (size_t)n + 1);
}

static int bound_socket(int type, int number, bool is_path)
{
	struct sockaddr_un a;
	const int s = socket(AF_UNIX, type, 0);
	const socklen_t bytes = name_of_socket(&a, number, is_path);
	if (s < 0 || bind(s, (struct sockaddr *)&a, bytes) != 0 ||
		(type == SOCK_STREAM && listen(s, 4) != 0))
		exit(9);
	return s;
}

/* Each answers a datagram that nobody sends first. */
static void datagrams(bool is_path)
{
	char buf[8] = "";
	struct sockaddr_un other;
	int s[2];
	if (chdir(getenv("TMPDIR")) != 0)
		exit(9);
	for (int i = 0; i < 2; i++)
		s[i] = bound_socket(SOCK_DGRAM, i, is_path);
	const int child = fork_child() == 0;
	close(s[!child]);
	if (!child)
		ready();
	const socklen_t bytes = name_of_socket(&other, !child, is_path);
	if (recv(s[child], buf, sizeof buf, 0) < 0)
		exit(1);
	sendto(s[child], buf, 1, 0, (struct sockaddr *)&other, bytes);
}

static void abstract_datagrams(void)
{
	datagrams(false);
}

static void datagrams_to_paths(void)
{
	datagrams(true);
}

/* Each accepts before it connects. */
static void accept_first(void)
{
	struct sockaddr_un other;
	int s[2];
	for (int i = 0; i < 2; i++)
		s[i] = bound_socket(SOCK_STREAM, i, false);
	const int child = fork_child() == 0;
	close(s[!child]);
	if (!child)
		ready();
	const socklen_t bytes = name_of_socket(&other, !child, false);
	const int to = socket(AF_UNIX, SOCK_STREAM, 0);
	if (accept(s[child], NULL, NULL) < 0 || connect(to, (struct sockaddr *)&other, bytes) != 0)
		exit(1);
}

/* Each has connected, and waits to be greeted before it accepts the other. */
static void greet_before_accept(void)
{
	char buf[8];
	struct table *t = new_table(2);
	struct sockaddr_un other;
	int s[2];
	for (int i = 0; i < 2; i++)
		s[i] = bound_socket(SOCK_STREAM, i, false);
	const int child = fork_child() == 0;
	close(s[!child]);
	const socklen_t bytes = name_of_socket(&other, !child, false);
	const int to = socket(AF_UNIX, SOCK_STREAM, 0);
	if (connect(to, (struct sockaddr *)&other, bytes) != 0)
		exit(9);
	pthread_barrier_wait(&t->together);
	if (!child)
		ready();
	if (read(to, buf, sizeof buf) < 0)
		exit(1);
	const int from = accept(s[child], NULL, NULL);
	exit(from < 0 || write(from, "hello", 5) != 5);
}

static void connect_to(int number)
{
	struct sockaddr_un other;
	const socklen_t bytes = name_of_socket(&other, number, false);
	if (connect(socket(AF_UNIX, SOCK_STREAM, 0), (struct sockaddr *)&other, bytes) != 0)
		exit(1);
}

/* A queue for one: the second who connects waits for room. */
static int listening_for_one(int number)
{
	const int s = bound_socket(SOCK_STREAM, number, false);
	if (listen(s, 0) != 0)
		exit(9);
	return s;
}

/* The acceptor waits for the end of the process that connects. */
static void full_listener(void)
{
	const int s = listening_for_one(0);
	const pid_t child = fork_child();
	if (child == 0) {
		close(s);
		connect_to(0);
		connect_to(0);
		_exit(0);
	}
	ready();
	waitpid(child, NULL, 0);
	close(accept(s, NULL, NULL));
}

/* Each connects to the other before it accepts. */
static void full_listeners(void)
{
	struct table *t = new_table(2);
	const int s[2] = {listening_for_one(0), listening_for_one(1)};
	const int child = fork_child() == 0;
	close(s[!child]);
	pthread_barrier_wait(&t->together);
	if (!child)
		ready();
	connect_to(!child);
	connect_to(!child);
	close(accept(s[child], NULL, NULL));
}

/* By a path that is written in another way than where it is bound. */
static void full_listener_by_path(void)
{
	struct sockaddr_un name = {.sun_family = AF_UNIX};
	if (chdir(getenv("TMPDIR")) != 0)
		exit(9);
	const int s = bound_socket(SOCK_STREAM, 7, true);
	if (listen(s, 0) != 0)
		exit(9);
	const pid_t child = fork_child();
	if (child == 0) {
		close(s);
		(void)snprintf(name.sun_path, sizeof name.sun_path, ".///socket-7");
		for (int i = 0; i < 2; i++) {
			if (connect(socket(AF_UNIX, SOCK_STREAM, 0), (struct sockaddr *)&name,
				    sizeof name) != 0)
				_exit(1);
		}
		_exit(0);
	}
	ready();
	waitpid(child, NULL, 0);
	close(accept(s, NULL, NULL));
}

/* To itself, and it would close what it listens at. */
static void full_own_listener(void)
{
	const int s = listening_for_one(0);
	ready();
	connect_to(0);
	connect_to(0);
	close(s);
}

static void connect_to_port(in_port_t port)
{
	const struct sockaddr_in to = {
		.sin_family = AF_INET, .sin_port = port, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	(void)connect(socket(AF_INET, SOCK_STREAM, 0), (const struct sockaddr *)&to, sizeof to);
}

static void full_tcp_listeners(void)
{
	struct table *t = new_table(2);
	struct sockaddr_in address[2] = {{0}};
	int s[2];
	for (int i = 0; i < 2; i++) {
		socklen_t bytes = sizeof address[i];
		address[i] = (struct sockaddr_in){.sin_family = AF_INET};
		s[i] = socket(AF_INET, SOCK_STREAM, 0);
		if (bind(s[i], (struct sockaddr *)&address[i], bytes) != 0 ||
			listen(s[i], 0) != 0 ||
			getsockname(s[i], (struct sockaddr *)&address[i], &bytes) != 0)
			exit(9);
	}
	const int child = fork_child() == 0;
	close(s[!child]);
	pthread_barrier_wait(&t->together);
	if (!child)
		ready();
	for (int i = 0; i < 3; i++)
		connect_to_port(address[!child].sin_port);
	close(accept(s[child], NULL, NULL));
}

/* Each reads what the other does not write before, for a time that an option of the socket sets. */
static void both_read_for(long seconds)
{
	const struct timeval limit = {.tv_sec = seconds};
	int s[2];
	char buf[64];
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, s) != 0)
		exit(9);
	int child = fork_child() == 0;
	close(s[!child]);
	setsockopt(s[child], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
	if (!child)
		ready();
	if (read(s[child], buf, sizeof buf) >= 0 && write(s[child], "x", 1) < 0)
		exit(1);
}

static void both_read_for_minutes(void)
{
	both_read_for(300);
}

static void both_read_for_a_while(void)
{
	both_read_for(45);
}

/* A semaphore each, in a file that has a name. */
static void named_semaphores(void)
{
	if (chdir(getenv("TMPDIR")) != 0)
		exit(9);
	const int fd = open("semaphores", O_RDWR | O_CREAT, 0600);
	if (fd < 0 || ftruncate(fd, 4096) != 0)
		exit(9);
	sem_t *s = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (s == MAP_FAILED || sem_init(&s[0], 1, 0) != 0 || sem_init(&s[1], 1, 0) != 0)
		exit(9);
	const int child = fork_child() == 0;
	if (!child)
		ready();
	sem_wait(&s[child]);
	sem_post(&s[!child]);
}

/* Two that wait for each other's semaphore; of the memory a descriptor is in a socket's queue. */
static int send_descriptor(int to, int fd)
{
	char control[CMSG_SPACE(sizeof fd)] = "";
	struct iovec byte = {(char[]){"x"}, 1};
	struct msghdr m = {.msg_iov = &byte,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof control};
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof fd);
	memcpy(CMSG_DATA(c), &fd, sizeof fd);
	return sendmsg(to, &m, 0) == 1 ? 0 : -1;
}

static void semaphores_in_memfd(bool is_sent)
{
	int s[2];
	const int fd = memfd_create("hang", 0);
	if (fd < 0 || ftruncate(fd, 4096) != 0 || socketpair(AF_UNIX, SOCK_STREAM, 0, s) != 0)
		exit(9);
	sem_t *sem = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (sem == MAP_FAILED || sem_init(&sem[0], 1, 0) != 0 || sem_init(&sem[1], 1, 0) != 0 ||
		(is_sent && send_descriptor(s[0], fd) != 0))
		exit(9);
	close(fd);
	close(s[0]);
	if (is_sent && fork_child() == 0) { /* it has not received it yet */
		munmap(sem, 4096);
		nap_ms(36000000);
		_exit(0);
	}
	const int child = fork_child() == 0;
	close(s[1]);
	if (!child)
		ready();
	sem_wait(&sem[child]);
	sem_post(&sem[!child]);
}

static void memfd_semaphores(void)
{
	semaphores_in_memfd(false);
}

static void memfd_in_a_message(void)
{
	semaphores_in_memfd(true);
}

/* A third, that has given up its share of their memory, lets nobody but root look at it. */
static void beside_unreadable(void)
{
	sem_t *sem = shared_memory(2 * sizeof *sem);
	if (sem_init(&sem[0], 1, 0) != 0 || sem_init(&sem[1], 1, 0) != 0)
		exit(9);
	if (fork_child() == 0) {
		munmap(sem, 2 * sizeof *sem);
		(void)prctl(PR_SET_DUMPABLE, 0);
		nap_ms(36000000);
		_exit(0);
	}
	const int child = fork_child() == 0;
	if (!child)
		ready();
	sem_wait(&sem[child]);
	sem_post(&sem[!child]);
}

/* A segment that has no key, but a number. */
static void segment_semaphores(void)
{
	const int id = shmget(IPC_PRIVATE, 4096, 0600 | IPC_CREAT);
	sem_t *sem = shmat(id, NULL, 0);
	shmctl(id, IPC_RMID, NULL);
	if (sem_init(&sem[0], 1, 0) != 0 || sem_init(&sem[1], 1, 0) != 0)
		exit(9);
	const int child = fork_child() == 0;
	if (!child)
		ready();
	sem_wait(&sem[child]);
	sem_post(&sem[!child]);
}

/* A process that is one memory with the first waits for what the first would give, and the first for it. */
static sem_t of_clone, of_first;

static int wait_for_first(void *unused)
{
	(void)unused;
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	sem_wait(&of_clone);
	sem_post(&of_first);
	return 0;
}

static void one_memory(void)
{
	enum { STACK = 1 << 18 };
	char *stack = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	sem_init(&of_clone, 0, 0);
	sem_init(&of_first, 0, 0);
	if (clone(wait_for_first, stack + STACK, CLONE_VM | SIGCHLD, NULL) < 0)
		exit(9);
	ready();
	sem_wait(&of_first);
	sem_post(&of_clone);
}

static const struct hang_case cases[] = {
	{"one-memory", one_memory},
	{"memfd-semaphores", memfd_semaphores},
	{"memfd-in-a-message", memfd_in_a_message},
	{"beside-unreadable", beside_unreadable},
	{"segment-semaphores", segment_semaphores},
	{"fifos", fifos},
	{"named-semaphores", named_semaphores},
	{"philosophers", philosophers},
	{"smokers", smokers},
	{"cgi", cgi},
	{"cgi-with-limit", cgi_with_limit},
	{"fifo-opens", fifo_opens},
	{"fifo-open-and-wait", fifo_open_and_wait},
	{"abstract-datagrams", abstract_datagrams},
	{"datagrams-to-paths", datagrams_to_paths},
	{"accept-first", accept_first},
	{"greet-before-accept", greet_before_accept},
	{"full-listener", full_listener},
	{"full-listeners", full_listeners},
	{"full-listener-by-path", full_listener_by_path},
	{"full-own-listener", full_own_listener},
	{"full-tcp-listeners", full_tcp_listeners},
	{"both-read-for-minutes", both_read_for_minutes},
	{"both-read-for-a-while", both_read_for_a_while},
	{"mqueues", mqueues},
	{"named-mqueues", named_mqueues},
	{"full-mqueues", full_mqueues},
	{"both-write-stream", both_write_stream},
	{"both-write-datagrams", both_write_datagrams},
	{"wait-full-pipe", wait_full_pipe},
	{"full-pipes", full_pipes},
	{"both-read", both_read},
	{"main-ended", main_ended},
	{"lock-and-pipe", lock_and_pipe},
	{"file-locks", file_locks},
	{"lock-and-close", lock_and_close},
	{"taken-by-others", taken_by_others},
	{"sysv-semaphores", sysv_semaphores},
	{"sysv-undo", sysv_undo},
	{"sysv-undo-and-pipe", sysv_undo_and_pipe},
};

int main(int argc, char **argv)
{
	return hang_main(argc, argv, cases, sizeof cases / sizeof *cases);
}
