/* SPDX-License-Identifier: Apache-2.0 */
/*
 * deadlock_harm - 24 kinds of blocking calls that check that nothing which they can see changes
 * while they are looked at.
 *
 * Prints "READY PID"; works until its standard input ends; then prints a line for each kind and
 * "ERRORS N". Exit status 1 when there were errors. An error is a result that a program without a
 * debugger never gets: EINTR without a signal, a short transfer, damaged data, a timeout that comes
 * early, a register that changed, a child that it does not know.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/msg.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { TIMEOUT_MS = 150, BIG_BYTES = 300000, PERIOD = 251 };

struct kind {
	const char *name;
	void (*round)(struct kind *k); /* again and again; NULL name: it feeds another */
	long rounds, errors;
	char what[80];
};

static atomic_bool stops;

#define BAD(k, ...)                                                                                \
	do {                                                                                       \
		(k)->errors++;                                                                     \
		snprintf((k)->what, sizeof(k)->what, __VA_ARGS__);                                 \
	} while (0)

static void sleep_ms(int ms)
{
	const struct timespec t = {ms / 1000, ms % 1000 * 1000000L};
	syscall(SYS_nanosleep, &t, NULL);
}

static double now_ms(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static struct timespec in_150_ms(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t); /* the other one may be set meanwhile */
	t.tv_nsec += TIMEOUT_MS * 1000000L;
	if (t.tv_nsec >= 1000000000) {
		t.tv_nsec -= 1000000000;
		t.tv_sec++;
	}
	return t;
}

/* Late is nobody's fault; early is. */
static void timed_out(struct kind *k, double begin_ms, long result, long wanted)
{
	const double early_ms = TIMEOUT_MS - (now_ms() - begin_ms);
	if (result != wanted)
		BAD(k, "result %ld, errno %d", result, errno);
	if (early_ms > 1.5)
		BAD(k, "%.1f ms early", early_ms);
}

static int quiet_pipe(void)
{
	static _Thread_local int end[2];
	if (!end[1] && pipe(end))
		exit(2);
	return end[0];
}

static const struct timespec relative = {0, TIMEOUT_MS * 1000000L};

static void kind_nanosleep(struct kind *k)
{
	const double begin = now_ms();
	timed_out(k, begin, nanosleep(&relative, NULL), 0);
}
static void kind_poll(struct kind *k)
{
	struct pollfd f = {quiet_pipe(), POLLIN, 0};
	const double begin = now_ms();
	timed_out(k, begin, poll(&f, 1, TIMEOUT_MS), 0);
}
static void kind_ppoll(struct kind *k)
{
	struct pollfd f = {quiet_pipe(), POLLIN, 0};
	const double begin = now_ms();
	timed_out(k, begin, ppoll(&f, 1, &relative, NULL), 0);
}
static void kind_select(struct kind *k)
{
	const int fd = quiet_pipe();
	struct timeval t = {0, TIMEOUT_MS * 1000};
	fd_set set;
	FD_ZERO(&set);
	FD_SET(fd, &set);
	const double begin = now_ms();
	timed_out(k, begin, select(fd + 1, &set, NULL, NULL, &t), 0);
}
static void kind_epoll_timed(struct kind *k)
{
	static int set;
	struct epoll_event event = {EPOLLIN, {0}};
	if (!set) {
		set = epoll_create1(0);
		epoll_ctl(set, EPOLL_CTL_ADD, quiet_pipe(), &event);
	}
	const double begin = now_ms();
	timed_out(k, begin, epoll_wait(set, &event, 1, TIMEOUT_MS), 0);
}

static int event_fd;
static void kind_epoll(struct kind *k)
{
	static int set;
	struct epoll_event event = {EPOLLIN, {0}};
	eventfd_t count;
	if (!set) {
		set = epoll_create1(0);
		epoll_ctl(set, EPOLL_CTL_ADD, event_fd, &event);
	}
	const int result = epoll_wait(set, &event, 1, -1);
	if (result != 1)
		BAD(k, "result %d, errno %d", result, errno);
	else
		eventfd_read(event_fd, &count);
}
static void feed_epoll(struct kind *k)
{
	(void)k;
	sleep_ms(130);
	eventfd_write(event_fd, 1);
}

static sem_t never, ping, pong;
static void kind_sem_timed(struct kind *k)
{
	const double begin = now_ms();
	const struct timespec until = in_150_ms();
	const int result = sem_clockwait(&never, CLOCK_MONOTONIC, &until);
	if (result == 0 || errno != ETIMEDOUT)
		BAD(k, "result %d, errno %d", result, errno);
	timed_out(k, begin, result, -1);
}
static void kind_ping(struct kind *k)
{
	int value;
	sem_post(&pong);
	if (sem_wait(&ping))
		BAD(k, "errno %d", errno);
	sem_getvalue(&ping, &value);
	if (value)
		BAD(k, "%d posts too many", value);
}
static void kind_pong(struct kind *k)
{
	if (sem_wait(&pong))
		BAD(k, "errno %d", errno);
	sleep_ms(90);
	sem_post(&ping);
}

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER,
		       condition_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static volatile long shared;
static void kind_mutex(struct kind *k)
{
	pthread_mutex_lock(&mutex);
	const long mine = ++shared;
	sleep_ms(40);
	if (shared != mine)
		BAD(k, "two had the mutex");
	pthread_mutex_unlock(&mutex);
	sleep_ms(1);
}
static void kind_condition(struct kind *k)
{
	pthread_mutex_lock(&condition_mutex);
	const double begin = now_ms();
	const struct timespec until = in_150_ms();
	timed_out(k, begin,
		pthread_cond_clockwait(&condition, &condition_mutex, CLOCK_MONOTONIC, &until),
		ETIMEDOUT);
	pthread_mutex_unlock(&condition_mutex);
}

static int read_pipe[2], write_pipe[2], stream[2];
static void kind_read(struct kind *k)
{
	static unsigned char want;
	unsigned char bytes[64];
	const ssize_t got = read(read_pipe[0], bytes, sizeof bytes);
	if (got <= 0)
		BAD(k, "result %zd, errno %d", got, errno);
	for (ssize_t i = 0; i < got; i++)
		if (bytes[i] != want++)
			BAD(k, "damaged data");
}
static void feed_read(struct kind *k)
{
	static unsigned char next;
	(void)k;
	sleep_ms(70);
	if (write(read_pipe[1], &next, 1) == 1)
		next++;
}
/* More than the pipe holds: a part is written while it waits. */
static void kind_write(struct kind *k)
{
	static char *bytes;
	for (int i = 0; !bytes || bytes[BIG_BYTES - 1] != (char)((BIG_BYTES - 1) % PERIOD); i++) {
		if (!bytes && !(bytes = malloc(BIG_BYTES)))
			exit(2);
		bytes[i] = (char)(i % PERIOD);
	}
	const ssize_t got = write(write_pipe[1], bytes, BIG_BYTES);
	if (got != BIG_BYTES)
		BAD(k, "%zd of %d bytes, errno %d", got, BIG_BYTES, errno);
}
static void kind_drain(struct kind *k)
{
	static long at;
	static unsigned char bytes[16384];
	sleep_ms(60);
	const ssize_t got = read(write_pipe[0], bytes, sizeof bytes);
	for (ssize_t i = 0; i < got; i++, at++)
		if (bytes[i] != at % BIG_BYTES % PERIOD) {
			BAD(k, "the stream is damaged at %ld", at);
			break;
		}
}
static void kind_recv(struct kind *k)
{
	static int want;
	int value;
	const ssize_t got = recv(stream[0], &value, sizeof value, MSG_WAITALL);
	if (got != sizeof value)
		BAD(k, "result %zd, errno %d", got, errno);
	else if (value != want++)
		BAD(k, "damaged data");
}
static void feed_recv(struct kind *k)
{
	static int next;
	(void)k;
	if (write(stream[1], &next, 2) != 2)
		exit(2);
	sleep_ms(60);
	if (write(stream[1], (char *)&next + 2, 2) != 2)
		exit(2);
	next++;
	sleep_ms(20);
}

static int listener;
static void kind_accept(struct kind *k)
{
	const int fd = accept(listener, NULL, NULL);
	if (fd < 0)
		BAD(k, "errno %d", errno);
	else
		close(fd);
}
static void feed_accept(struct kind *k)
{
	struct sockaddr_in a;
	socklen_t size = sizeof a;
	(void)k;
	getsockname(listener, (struct sockaddr *)&a, &size);
	sleep_ms(80);
	const int fd = socket(AF_INET, SOCK_STREAM, 0);
	if (connect(fd, (struct sockaddr *)&a, size) && errno != EINTR)
		exit(2);
	close(fd);
}

static int semaphores, queue;
struct message {
	long type;
	int value;
};
static void kind_semop(struct kind *k)
{
	const int result = semop(semaphores, &(struct sembuf){0, -1, 0}, 1);
	if (result)
		BAD(k, "errno %d", errno);
}
static void feed_semop(struct kind *k)
{
	(void)k;
	sleep_ms(75);
	semop(semaphores, &(struct sembuf){0, 1, 0}, 1);
}
static void kind_msgrcv(struct kind *k)
{
	struct message m;
	const ssize_t got = msgrcv(queue, &m, sizeof m.value, 0, 0);
	if (got != sizeof m.value || m.value != 2)
		BAD(k, "result %zd, errno %d", got, errno);
}
static void feed_msgrcv(struct kind *k)
{
	(void)k;
	sleep_ms(75);
	msgsnd(queue, &(struct message){1, 2}, sizeof(int), 0);
}
static void kind_sigtimedwait(struct kind *k)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	const double begin = now_ms();
	const int result = sigtimedwait(&set, NULL, &relative);
	if (result == -1 && errno != EAGAIN)
		BAD(k, "errno %d", errno);
	timed_out(k, begin, result, -1);
}
static void kind_wait(struct kind *k)
{
	int status = 0;
	const pid_t child = fork();
	if (child == 0) {
		sleep_ms(100);
		_exit(7);
	}
	const pid_t got = waitpid(child, &status, 0);
	if (got != child || WEXITSTATUS(status) != 7)
		BAD(k, "result %d, status 0x%x, errno %d", got, status, errno);
	const pid_t other = waitpid(-1, &status, __WALL | WNOHANG);
	if (other > 0)
		BAD(k, "unknown child %d", other);
}

/* Those that the kernel keeps, and the vector registers, across a wait of 20 ms. */
static void kind_registers(struct kind *k)
{
	static struct {
		uint64_t in[6], out[7];
		uint64_t word;
		struct timespec time;
		unsigned char vector_in[64], vector_out[64];
	} c __attribute__((aligned(16)));
	c.time = (struct timespec){0, 20000000};
	for (unsigned i = 0; i < 6; i++)
		c.in[i] = (uint64_t)0x0123456789abcdef * (i + 1) + (uint64_t)k->rounds;
	for (unsigned i = 0; i < sizeof c.vector_in; i++)
		c.vector_in[i] = (unsigned char)(i * 7 + (unsigned)k->rounds);
	/* all addresses are made from r9, which the kernel keeps */
	__asm__ volatile(/* in 0, out 48, word 104, time 112, vectors 128 and 192 */
		"push %%rbp\n push %%rbx\n push %%r12\n push %%r13\n push %%r14\n push %%r15\n"
		"mov %%rax, %%r9\n"
		"mov 0(%%r9), %%rbx\n mov 8(%%r9), %%r12\n mov 16(%%r9), %%r13\n mov 24(%%r9), "
		"%%r14\n"
		"mov 32(%%r9), %%r15\n mov 40(%%r9), %%rbp\n"
		"movdqu 128(%%r9), %%xmm0\n movdqu 144(%%r9), %%xmm5\n"
		"movdqu 160(%%r9), %%xmm10\n movdqu 176(%%r9), %%xmm15\n"
		"lea 104(%%r9), %%rdi\n mov $128, %%esi\n xor %%edx, %%edx\n lea 112(%%r9), %%r10\n"
		"mov $202, %%eax\n syscall\n"
		"mov %%rbx, 48(%%r9)\n mov %%r12, 56(%%r9)\n mov %%r13, 64(%%r9)\n mov %%r14, "
		"72(%%r9)\n"
		"mov %%r15, 80(%%r9)\n mov %%rbp, 88(%%r9)\n mov %%rax, 96(%%r9)\n"
		"movdqu %%xmm0, 192(%%r9)\n movdqu %%xmm5, 208(%%r9)\n"
		"movdqu %%xmm10, 224(%%r9)\n movdqu %%xmm15, 240(%%r9)\n"
		"pop %%r15\n pop %%r14\n pop %%r13\n pop %%r12\n pop %%rbx\n pop %%rbp\n"
		:
		: "a"(&c)
		: "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "xmm0", "xmm5", "xmm10",
		"xmm15", "memory");
	if ((int64_t)c.out[6] != -ETIMEDOUT)
		BAD(k, "result %ld", (long)c.out[6]);
	if (memcmp(c.in, c.out, sizeof c.in) != 0)
		BAD(k, "a general register changed");
	if (memcmp(c.vector_in, c.vector_out, sizeof c.vector_in) != 0)
		BAD(k, "a vector register changed");
}

static int futex_word;
static void kind_futex(struct kind *k)
{
	errno = 0;
	const long result = syscall(SYS_futex, &futex_word, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
	if (result)
		BAD(k, "result %ld, errno %d", result, errno);
}
static void feed_futex(struct kind *k)
{
	(void)k;
	sleep_ms(55);
	syscall(SYS_futex, &futex_word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

/* A signal must still interrupt. */
static _Atomic(pthread_t) interrupted;
static void on_signal(int number)
{
	(void)number;
}
static void kind_interrupted(struct kind *k)
{
	char byte;
	const int fd = quiet_pipe();
	interrupted = pthread_self();
	errno = 0;
	const ssize_t got = read(fd, &byte, 1);
	if (got != -1 || errno != EINTR)
		BAD(k, "result %zd, errno %d", got, errno);
}
static void feed_interrupted(struct kind *k)
{
	(void)k;
	sleep_ms(85);
	if (interrupted)
		pthread_kill(interrupted, SIGUSR1);
}

static struct kind kinds[] = {
	{"nanosleep", kind_nanosleep, 0, 0, ""},
	{"poll", kind_poll, 0, 0, ""},
	{"ppoll", kind_ppoll, 0, 0, ""},
	{"select", kind_select, 0, 0, ""},
	{"epoll_wait with timeout", kind_epoll_timed, 0, 0, ""},
	{"epoll_wait", kind_epoll, 0, 0, ""},
	{NULL, feed_epoll, 0, 0, ""},
	{"sem_timedwait", kind_sem_timed, 0, 0, ""},
	{"sem_wait, one", kind_ping, 0, 0, ""},
	{"sem_wait, other", kind_pong, 0, 0, ""},
	{"mutex, one", kind_mutex, 0, 0, ""},
	{"mutex, other", kind_mutex, 0, 0, ""},
	{"cond_timedwait", kind_condition, 0, 0, ""},
	{"read", kind_read, 0, 0, ""},
	{NULL, feed_read, 0, 0, ""},
	{"write of 300,000 bytes", kind_write, 0, 0, ""},
	{"stream written", kind_drain, 0, 0, ""},
	{"recv MSG_WAITALL", kind_recv, 0, 0, ""},
	{NULL, feed_recv, 0, 0, ""},
	{"accept", kind_accept, 0, 0, ""},
	{NULL, feed_accept, 0, 0, ""},
	{"semop", kind_semop, 0, 0, ""},
	{NULL, feed_semop, 0, 0, ""},
	{"msgrcv", kind_msgrcv, 0, 0, ""},
	{NULL, feed_msgrcv, 0, 0, ""},
	{"sigtimedwait", kind_sigtimedwait, 0, 0, ""},
	{"waitpid", kind_wait, 0, 0, ""},
	{"registers", kind_registers, 0, 0, ""},
	{"futex", kind_futex, 0, 0, ""},
	{NULL, feed_futex, 0, 0, ""},
	{"read with a signal", kind_interrupted, 0, 0, ""},
	{NULL, feed_interrupted, 0, 0, ""},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

static void *work(void *argument)
{
	struct kind *k = argument;
	while (!stops) {
		k->round(k);
		if (!stops)
			k->rounds++;
	}
	return NULL;
}

static void make_things(void)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	signal(SIGPIPE, SIG_IGN);
	sigaction(SIGUSR1, &(struct sigaction){.sa_handler = on_signal}, NULL);
	sem_init(&never, 0, 0);
	sem_init(&ping, 0, 0);
	sem_init(&pong, 0, 0);
	event_fd = eventfd(0, 0);
	listener = socket(AF_INET, SOCK_STREAM, 0);
	semaphores = semget(IPC_PRIVATE, 1, 0600);
	semctl(semaphores, 0, SETVAL, 0);
	queue = msgget(IPC_PRIVATE, 0600);
	if (pipe(read_pipe) || pipe(write_pipe) || socketpair(AF_UNIX, SOCK_STREAM, 0, stream) ||
		bind(listener, (struct sockaddr *)&a, sizeof a) || listen(listener, 9))
		exit(2);
}

int main(void)
{
	pthread_t t;
	char byte;
	long errors = 0;
	make_things();
	for (int i = 0; i < KINDS; i++)
		pthread_create(&t, NULL, work, &kinds[i]);
	printf("READY %d\n", getpid());
	fflush(stdout);
	while (read(0, &byte, 1) > 0)
		;
	/* what is counted is counted before the others are told to stop */
	for (int i = 0; i < KINDS; i++) {
		const struct kind *k = &kinds[i];
		if (k->name)
			printf("%-24s rounds %ld errors %ld %s\n", k->name, k->rounds, k->errors,
				k->what);
		errors += k->errors;
	}
	stops = true;
	semctl(semaphores, 0, IPC_RMID);
	msgctl(queue, IPC_RMID, NULL);
	printf("ERRORS %ld\n", errors);
	fflush(stdout);
	_exit(errors != 0);
}
