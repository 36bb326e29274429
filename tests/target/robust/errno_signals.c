/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls that block while signals arrive: EINTR, or not when the handler was installed with
 * SA_RESTART, exactly where the bare run has it. A thread gives what is waited for when nothing
 * else would end the call.
 */
#include "errno_torture.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

enum { EVERY_US = 4000, GIVE_US = 30000 };

static atomic_int nr_signals;
static int in, out, one, other, event, sem_id, held, wants;
static pid_t child;
static sem_t sem;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static char text[1 << 17];

static void handler(int number)
{
	(void)number;
	nr_signals++;
}

static void arrive(bool restart)
{
	struct sigaction action = {.sa_handler = handler, .sa_flags = restart ? SA_RESTART : 0};
	struct itimerval every = {{0, EVERY_US}, {0, EVERY_US}};
	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &every, NULL);
}

static void quiet(void)
{
	struct itimerval never = {{0, 0}, {0, 0}};
	setitimer(ITIMER_REAL, &never, NULL);
}

/* ---- givers ---------------------------------------------------------------------------------- */

static void give_byte(void)
{
	write(out, "x", 1);
}
static void take_bytes(void)
{
	int n = 0;
	while (n < 1 << 16) {
		ssize_t got = read(in, text, 1 << 12);
		n += got > 0 ? (int)got : 1 << 16;
	}
}
static void send_byte(void)
{
	send(other, "x", 1, 0);
}
static void post(void)
{
	sem_post(&sem);
}
static void give_event(void)
{
	eventfd_write(event, 1);
}
static void let_go(void)
{
	flock(held, LOCK_UN);
}
static void kill_child(void)
{
	kill(child, SIGKILL);
}
static void unlock(void)
{
	pthread_mutex_unlock(&mutex);
}
static void wake(void)
{
	pthread_mutex_lock(&mutex);
	pthread_cond_broadcast(&cond);
	pthread_mutex_unlock(&mutex);
}

static void *give_later(void *give)
{
	struct timespec later = {0, GIVE_US * 1000};
	nanosleep(&later, NULL);
	((void (*)(void))give)();
	return NULL;
}

static pthread_t start_giver(void (*give)(void))
{
	pthread_t thread;
	sigset_t alarm, before;
	sigemptyset(&alarm);
	sigaddset(&alarm, SIGALRM);
	pthread_sigmask(SIG_BLOCK, &alarm, &before);
	pthread_create(&thread, NULL, give_later, (void *)give);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return thread;
}

/* ENDS: a signal ends the call in either mode. GIVEN: without SA_RESTART only. NEEDS: never. */
#define ENDS(call)                                                                                 \
	do {                                                                                       \
		arrive(restart);                                                                   \
		SHOW(call);                                                                        \
		quiet();                                                                           \
	} while (0)
#define NEEDS(call, give)                                                                          \
	do {                                                                                       \
		pthread_t giver_ = start_giver(give);                                              \
		arrive(restart);                                                                   \
		SHOW_SIGN(call);                                                                   \
		quiet();                                                                           \
		pthread_join(giver_, NULL);                                                        \
	} while (0)
#define GIVEN(call, give)                                                                          \
	do {                                                                                       \
		if (restart)                                                                       \
			NEEDS(call, give);                                                         \
		else                                                                               \
			ENDS(call);                                                                \
	} while (0)

/* ---- the calls ------------------------------------------------------------------------------- */

static void bytes(bool restart)
{
	struct iovec piece = {text, 8};
	struct msghdr message = {.msg_iov = &piece, .msg_iovlen = 1};
	eventfd_t value;
	GIVEN(read(in, text, 8), give_byte);
	GIVEN(readv(in, &piece, 1), give_byte);
	GIVEN(recv(one, text, 8, 0), send_byte);
	GIVEN(recvfrom(one, text, 8, 0, NULL, NULL), send_byte);
	GIVEN(recvmsg(one, &message, 0), send_byte);
	GIVEN(read(one, text, 8), send_byte);
	GIVEN(eventfd_read(event, &value), give_event);
	fcntl(out, F_SETFL, O_NONBLOCK);
	while (write(out, text, 4096) > 0)
		continue;
	fcntl(out, F_SETFL, 0);
	GIVEN(write(out, text, 4096), take_bytes);
	fcntl(in, F_SETFL, O_NONBLOCK);
	while (read(in, text, sizeof text) > 0)
		continue;
	fcntl(in, F_SETFL, 0);
}

static void stream(bool restart)
{
	FILE *f = fdopen(dup(in), "r");
	setvbuf(f, NULL, _IONBF, 0);
	GIVEN(fread(text, 1, 1, f), give_byte);
	clearerr(f);
	GIVEN(fgetc(f) != EOF, give_byte);
	fclose(f);
}

static void readiness(bool restart)
{
	struct pollfd p = {in, POLLIN, 0};
	struct epoll_event e = {.events = EPOLLIN}, got;
	int epoll = epoll_create1(0);
	fd_set set;
	epoll_ctl(epoll, EPOLL_CTL_ADD, in, &e);
	FD_ZERO(&set);
	FD_SET(in, &set);
	ENDS(poll(&p, 1, -1));
	ENDS(poll(&p, 1, 5000));
	ENDS(ppoll(&p, 1, NULL, NULL));
	ENDS(select(in + 1, &set, NULL, NULL, NULL));
	ENDS(pselect(in + 1, &set, NULL, NULL, NULL, NULL));
	ENDS(epoll_wait(epoll, &got, 1, -1));
	ENDS(epoll_pwait(epoll, &got, 1, 5000, NULL));
	close(epoll);
}

static void sleeps(bool restart)
{
	struct timespec second = {1, 0};
	ENDS(nanosleep(&second, NULL));
	ENDS(clock_nanosleep(CLOCK_MONOTONIC, 0, &second, NULL));
	ENDS(usleep(900000));
	ENDS(sleep(2));
	ENDS(thrd_sleep(&second, NULL));
}

static void tokens(bool restart)
{
	struct timespec until;
	struct sembuf down = {0, -1, 0};
	struct {
		long type;
		char text[8];
	} message;
	int queue = msgget(IPC_PRIVATE, 0600);
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += 50;
	GIVEN(sem_wait(&sem), post);
	GIVEN(sem_timedwait(&sem, &until), post);
	ENDS(semop(sem_id, &down, 1));
	ENDS(semtimedop(sem_id, &down, 1, &(struct timespec){50, 0}));
	ENDS(msgrcv(queue, &message, 8, 0, 0));
	msgctl(queue, IPC_RMID, NULL);
	while (sem_trywait(&sem) == 0)
		continue;
}

static void file_locks(bool restart)
{
	struct flock whole = {.l_type = F_WRLCK};
	flock(held, LOCK_EX);
	GIVEN(flock(wants, LOCK_EX), let_go);
	flock(wants, LOCK_UN);
	flock(held, LOCK_UN);
	fflush(stdout);
	int ready[2];
	pipe(ready);
	if (!(child = fork())) {
		fcntl(held, F_SETLKW, &whole);
		write(ready[1], "x", 1);
		pause();
	}
	read(ready[0], text, 1);
	GIVEN(fcntl(wants, F_SETLKW, &whole), kill_child);
	if (!restart) {
		ENDS(lockf(wants, F_LOCK, 0));
		ENDS(waitpid(child, NULL, 0));
		ENDS(wait(NULL));
		ENDS(wait4(-1, NULL, 0, NULL));
		ENDS(waitid(P_PID, (id_t)child, NULL, WEXITED));
		kill_child();
	}
	waitpid(child, NULL, 0);
	lockf(wants, F_ULOCK, 0);
	if (restart) {
		fflush(stdout);
		if (!(child = fork())) {
			pause();
			_exit(0);
		}
		NEEDS(waitpid(child, NULL, 0), kill_child);
	}
	close(ready[0]);
	close(ready[1]);
}

static struct sockaddr_un address = {.sun_family = AF_UNIX};

static void connect_late(void)
{
	int client = socket(AF_UNIX, SOCK_STREAM, 0);
	connect(client, (struct sockaddr *)&address, sizeof address);
	close(client);
}

static void connections(bool restart)
{
	int listener = socket(AF_UNIX, SOCK_STREAM, 0), client[8], served;
	snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "torture-signals-%d-%d",
		(int)getpid(), restart);
	bind(listener, (struct sockaddr *)&address, sizeof address);
	listen(listener, 0);
	GIVEN(served = accept(listener, NULL, NULL), connect_late);
	if (restart)
		close(served);
	GIVEN(served = accept4(listener, NULL, NULL, SOCK_NONBLOCK), connect_late);
	if (restart)
		close(served);
	if (!restart) { /* nobody accepts: the queue is full soon */
		for (int i = 0; i < 3; i++) {
			client[i] = socket(AF_UNIX, SOCK_STREAM, 0);
			arrive(false);
			SHOW(connect(client[i], (struct sockaddr *)&address, sizeof address));
			quiet();
		}
		for (int i = 0; i < 3; i++)
			close(client[i]);
	}
	close(listener);
}

static void *unlocks_later(void *unused)
{
	struct timespec later = {0, GIVE_US * 1000};
	pthread_mutex_lock(&mutex);
	post();
	nanosleep(&later, NULL);
	unlock();
	return unused;
}

static void locks(bool restart)
{
	pthread_t thread;
	sigset_t alarm;
	sigemptyset(&alarm);
	sigaddset(&alarm, SIGALRM);
	pthread_sigmask(SIG_BLOCK, &alarm, NULL);
	pthread_create(&thread, NULL, unlocks_later, NULL);
	pthread_sigmask(SIG_UNBLOCK, &alarm, NULL);
	while (sem_wait(&sem) != 0)
		continue;
	ENDS(pthread_mutex_lock(&mutex));
	NEEDS(pthread_cond_wait(&cond, &mutex), wake);
	pthread_mutex_unlock(&mutex);
	ENDS(pthread_join(thread, NULL));
}

int main(void)
{
	int fds[2];
	char name[] = "signals-XXXXXX";
	pipe(fds);
	in = fds[0], out = fds[1];
	socketpair(AF_UNIX, SOCK_STREAM, 0, fds);
	one = fds[0], other = fds[1];
	event = eventfd(0, 0);
	sem_init(&sem, 0, 0);
	sem_id = semget(IPC_PRIVATE, 1, 0600);
	semctl(sem_id, 0, SETVAL, 0);
	held = mkstemp(name);
	wants = open(name, O_RDWR);
	unlink(name);
	for (int restart = 0; restart < 2; restart++) {
		bytes(restart);
		stream(restart);
		readiness(restart);
		sleeps(restart);
		tokens(restart);
		file_locks(restart);
		connections(restart);
		locks(restart);
	}
	semctl(sem_id, 0, IPC_RMID);
	printf("signals: %d\n", nr_signals > 50);
	return 0;
}
