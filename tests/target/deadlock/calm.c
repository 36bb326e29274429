/* SPDX-License-Identifier: Apache-2.0 */
/* calm.c - programs that sleep, and look as if they would for ever; all of them can go on. */
#include "hang.h"

#include <mqueue.h>
#include <netinet/in.h>
#include <stddef.h>
#include <sched.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/ptrace.h>
#include <sys/select.h>

enum { WORKERS = 8, LONG_MS = 36000000 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t work = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t together;
static int nr_jobs;
static sem_t jobs;

static int listening(void)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	struct sockaddr_in address = {.sin_family = AF_INET};
	if (bind(fd, (struct sockaddr *)&address, sizeof address) != 0 || listen(fd, 5) != 0)
		exit(9);
	return fd;
}

/* ---- servers --------------------------------------------------------------------------------- */

static void *wait_for_work(void *argument)
{
	for (;;) {
		pthread_mutex_lock(&lock);
		while (!nr_jobs)
			pthread_cond_wait(&work, &lock);
		nr_jobs--;
		pthread_mutex_unlock(&lock);
	}
	return argument;
}

static void pool_behind_epoll(void)
{
	struct epoll_event event = {.events = EPOLLIN};
	int set = epoll_create1(0), fd = listening();
	for (int i = 0; i < WORKERS; i++)
		start(wait_for_work, 0);
	epoll_ctl(set, EPOLL_CTL_ADD, fd, &event);
	ready();
	while (epoll_wait(set, &event, 1, -1) > 0) {
		pthread_mutex_lock(&lock);
		nr_jobs++;
		pthread_cond_signal(&work);
		pthread_mutex_unlock(&lock);
	}
}

static void *wait_for_job(void *argument)
{
	for (;;)
		sem_wait(&jobs);
	return argument;
}

static void pool_behind_signal(void)
{
	sigset_t set;
	int number;
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	sem_init(&jobs, 0, 0);
	for (int i = 0; i < WORKERS; i++)
		start(wait_for_job, 0);
	ready();
	while (sigwait(&set, &number) == 0)
		sem_post(&jobs);
}

static void on_signal(int number)
{
	(void)number;
	sem_post(&jobs);
}

/* The main thread waits for a job itself; a timer's handler gives one now and then. */
static void posted_by_handler(void)
{
	struct sigaction sa = {.sa_handler = on_signal};
	struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
	struct itimerspec time = {.it_value = {.tv_sec = LONG_MS / 1000}};
	timer_t timer;
	sem_init(&jobs, 0, 0);
	sigaction(SIGUSR1, &sa, NULL);
	if (timer_create(CLOCK_MONOTONIC, &event, &timer) != 0 ||
		timer_settime(timer, 0, &time, NULL) != 0)
		exit(9);
	ready();
	wait_for_job(NULL);
}

static void accepts(void)
{
	int fd = listening();
	ready();
	close(accept(fd, NULL, NULL));
}

static void selects(void)
{
	int fd = listening();
	fd_set set;
	FD_ZERO(&set);
	FD_SET(fd, &set);
	ready();
	select(fd + 1, &set, NULL, NULL, NULL);
}

/* ---- those who take their time --------------------------------------------------------------- */

static void sleeps(void)
{
	ready();
	nap_ms(LONG_MS);
}

static void compute(void)
{
	volatile long n = 0;
	(void)!nice(19);
	while (n >= 0)
		n = n + 1 < 1000000000 ? n + 1 : 0;
}

static void *hold_and_compute(void *argument)
{
	pthread_mutex_lock(&lock);
	pthread_barrier_wait(&together);
	compute();
	return argument;
}

static void *hold_and_sleep(void *argument)
{
	pthread_mutex_lock(&lock);
	pthread_barrier_wait(&together);
	nap_ms(LONG_MS);
	pthread_mutex_unlock(&lock);
	return argument;
}

static void *hold_and_read(void *argument)
{
	int p[2];
	char c;
	if (pipe(p) != 0)
		exit(9);
	if (fork_child() == 0) {
		nap_ms(LONG_MS);
		_exit(write(p[1], "x", 1) != 1);
	}
	pthread_mutex_lock(&lock);
	pthread_barrier_wait(&together);
	if (read(p[0], &c, 1) != 1)
		exit(1);
	pthread_mutex_unlock(&lock);
	return argument;
}

static void behind(void *(*body)(void *))
{
	pthread_barrier_init(&together, NULL, 2);
	start(body, 0);
	pthread_barrier_wait(&together);
	ready();
	pthread_mutex_lock(&lock);
}

static void slow_computing(void)
{
	behind(hold_and_compute);
}

static void slow_sleeping(void)
{
	behind(hold_and_sleep);
}

static void slow_reading(void)
{
	behind(hold_and_read);
}

/* Ticks, and is answered: nobody waits for long. */
static sem_t question, answer;

static void *answers(void *argument)
{
	for (;;) {
		sem_wait(&question);
		sem_post(&answer);
		sem_wait(&question);
	}
	return argument;
}

static void ticks_and_is_answered(void)
{
	struct timespec until;
	sem_init(&question, 0, 0);
	sem_init(&answer, 0, 0);
	start(answers, 0);
	ready();
	for (;;) {
		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_sec += 20;
		sem_timedwait(&answer, &until);
		sem_post(&question);
	}
}

/* The acceptor sleeps meanwhile. */
static void full_listener(void)
{
	struct sockaddr_un name = {.sun_family = AF_UNIX};
	const int n = snprintf(
		name.sun_path + 1, sizeof name.sun_path - 1, "longpole-calm-%d", (int)getpid());
	const socklen_t bytes = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + (size_t)n + 1);
	const int s = socket(AF_UNIX, SOCK_STREAM, 0);
	if (bind(s, (struct sockaddr *)&name, bytes) != 0 || listen(s, 0) != 0)
		exit(9);
	const pid_t child = fork_child();
	while (!child) { /* until the queue is full */
		if (connect(socket(AF_UNIX, SOCK_STREAM, 0), (struct sockaddr *)&name, bytes) != 0)
			_exit(1);
	}
	ready();
	nap_ms(LONG_MS);
	close(accept(s, NULL, NULL));
}

static void waits_for_child(void)
{
	pid_t child = fork_child();
	if (child == 0) {
		nap_ms(LONG_MS);
		_exit(0);
	}
	ready();
	waitpid(child, NULL, 0);
}

/* sleep | cat | cat, as a shell waits for it. */
static void pipeline(void)
{
	int a[2], b[2];
	char buf[64];
	ssize_t n;
	if (pipe(a) != 0 || pipe(b) != 0)
		exit(9);
	for (int stage = 0; stage < 3; stage++) {
		if (fork_child() != 0)
			continue;
		int in = stage == 1 ? a[0] : b[0], out = stage == 0 ? a[1] : b[1];
		if (stage != 0)
			close(a[1]);
		if (stage == 2)
			close(b[1]);
		if (stage == 0)
			nap_ms(LONG_MS);
		while (stage && (n = read(in, buf, sizeof buf)) > 0) {
			if (stage == 1 && write(out, buf, (size_t)n) != n)
				_exit(1);
		}
		_exit(0);
	}
	close(a[0]);
	close(a[1]);
	close(b[0]);
	close(b[1]);
	ready();
	while (wait(NULL) > 0)
		;
}

/* The writer waits for room; who would make some computes. */
static void pipeline_computes(void)
{
	static char big[200000];
	int p[2];
	if (pipe(p) != 0)
		exit(9);
	if (fork_child() == 0) {
		close(p[0]);
		_exit(write(p[1], big, sizeof big) < 0);
	}
	close(p[1]);
	ready();
	compute();
}

/* The thread that would post was stopped by a debugger, which waits for its user. */
static void traced(void)
{
	sem_t *s = shared_memory(sizeof *s);
	int fd = listening(), status;
	sem_init(s, 1, 0);
	pid_t posts = fork_child();
	if (posts == 0) {
		nap_ms(LONG_MS);
		_exit(sem_post(s));
	}
	if (fork_child() == 0)
		_exit(sem_wait(s));
	if (ptrace(PTRACE_SEIZE, posts, NULL, NULL) != 0 ||
		ptrace(PTRACE_INTERRUPT, posts, NULL, NULL) != 0 ||
		waitpid(posts, &status, __WALL) != posts)
		exit(9);
	ready();
	close(accept(fd, NULL, NULL));
}

/* Two that seem to wait for each other only: a third, that sleeps now, posts for both. */
static void third_posts(void)
{
	sem_t *s = shared_memory(2 * sizeof *s);
	sem_init(&s[0], 1, 0);
	sem_init(&s[1], 1, 0);
	for (int i = 0; i < 3; i++) {
		if (fork_child() != 0)
			continue;
		if (i == 2) {
			nap_ms(LONG_MS);
			sem_post(&s[0]);
			sem_post(&s[1]);
		} else {
			sem_wait(&s[i]);
			sem_post(&s[!i]);
		}
		_exit(0);
	}
	ready();
	while (wait(NULL) > 0)
		;
}

static void *post_both(void *semaphores)
{
	sem_t *s = semaphores;
	nap_ms(LONG_MS);
	sem_post(&s[0]);
	sem_post(&s[1]);
	return NULL;
}

/* One that only another process could end, whose first thread has ended. */
static void main_ended(void)
{
	pthread_t t;
	sem_t *s = shared_memory(2 * sizeof *s);
	sem_init(&s[0], 1, 0);
	sem_init(&s[1], 1, 0);
	if (fork_child() == 0) {
		if (pthread_create(&t, NULL, post_both, s) != 0)
			_exit(9);
		pthread_exit(NULL);
	}
	nap_ms(100); /* it has */
	ready();
	sem_wait(&s[0]);
	sem_wait(&s[1]);
}

/* Two that wait for each other's file, and a third that has both open, too, and unlocks them. */
static void shares_locks(void)
{
	char path[2][40];
	int held[2];
	for (int i = 0; i < 2; i++) {
		held[i] = memfd_create("shared", 0);
		if (held[i] < 0 || flock(held[i], LOCK_EX) != 0)
			exit(1);
		(void)snprintf(path[i], sizeof path[i], "/proc/self/fd/%d", held[i]);
	}
	for (int i = 0; i < 3; i++) {
		if (fork_child() != 0)
			continue;
		if (i == 2) {
			nap_ms(LONG_MS);
			flock(held[0], LOCK_UN);
			flock(held[1], LOCK_UN);
		} else {
			const int other = open(path[!i], O_RDWR); /* its own, of the same file */
			close(held[!i]);
			flock(other, LOCK_EX);
		}
		_exit(0);
	}
	close(held[0]);
	close(held[1]);
	ready();
	while (wait(NULL) > 0)
		;
}

/* Two that wait for each other's semaphore in a memfd. A third has the file open, and may map it. */
static void *memory_of(int fd)
{
	return mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
}

static void wait_in_memory(int fd)
{
	sem_t *s = memory_of(fd);
	const int child = fork_child() == 0;
	close(fd);
	sem_wait(&s[child]);
	sem_post(&s[!child]);
}

static void post_later(int fd)
{
	nap_ms(LONG_MS);
	sem_post(memory_of(fd));
	_exit(0);
}

static int two_in_memory(void)
{
	const int fd = memfd_create("calm", 0);
	if (fd < 0 || ftruncate(fd, 4096) != 0)
		exit(9);
	sem_t *s = memory_of(fd);
	sem_init(&s[0], 1, 0);
	sem_init(&s[1], 1, 0);
	munmap(s, 4096);
	return fd;
}

static void maps_later(void)
{
	const int fd = two_in_memory();
	if (fork_child() == 0)
		post_later(fd);
	ready();
	wait_in_memory(fd);
}

/* Of a descriptor that can only read a new one is made by its name under /proc. */
static void opens_again_later(void)
{
	char name[40];
	const int fd = two_in_memory();
	(void)snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
	if (fork_child() == 0) {
		const int reads = open(name, O_RDONLY);
		close(fd);
		nap_ms(LONG_MS);
		(void)snprintf(name, sizeof name, "/proc/self/fd/%d", reads);
		post_later(open(name, O_RDWR));
	}
	ready();
	wait_in_memory(fd);
}

/* Where names are its own. */
static void maps_in_other_namespace(void)
{
	const int fd = two_in_memory();
	if (fork_child() == 0) {
		(void)unshare(CLONE_NEWNS); /* not everybody may */
		sem_t *s = memory_of(fd);
		close(fd);
		nap_ms(LONG_MS);
		_exit(sem_post(s));
	}
	ready();
	wait_in_memory(fd);
}

/* A child that ended and was not waited for, and a thread group whose leader has left. */
static void zombies(void)
{
	if (fork_child() == 0)
		_exit(0);
	pthread_barrier_init(&together, NULL, 1);
	start(hold_and_sleep, 0);
	ready();
	pthread_exit(NULL);
}

static void stopped_child(void)
{
	int p[2];
	char c;
	if (pipe(p) != 0)
		exit(9);
	pid_t child = fork_child();
	if (child == 0) {
		raise(SIGSTOP);
		_exit(write(p[1], "x", 1) != 1);
	}
	close(p[1]);
	waitpid(child, NULL, WUNTRACED);
	ready();
	if (read(p[0], &c, 1) < 0)
		exit(1);
}

/* Something is made once, slowly; others wait for it. */
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void make_slowly(void)
{
	nap_ms(LONG_MS);
}

static void *make_once(void *argument)
{
	pthread_once(&once, make_slowly);
	return argument;
}

static void slow_once(void)
{
	for (int i = 0; i < 3; i++)
		start(make_once, i);
	ready();
	make_once(NULL);
}

/* Readers behind a writer behind a reader who takes his time. */
static pthread_rwlock_t fair = PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP;

static void *write_fair(void *argument)
{
	pthread_rwlock_wrlock(&fair);
	pthread_rwlock_unlock(&fair);
	return argument;
}

static void *read_fair(void *argument)
{
	pthread_rwlock_rdlock(&fair);
	pthread_rwlock_unlock(&fair);
	return argument;
}

static void slow_reader(void)
{
	pthread_rwlock_rdlock(&fair);
	start(write_fair, 0);
	nap_ms(50);
	start(read_fair, 0);
	ready();
	nap_ms(LONG_MS);
	pthread_rwlock_unlock(&fair);
}

/* Two wait for each other; who will post computes. */
static sem_t of_one, of_other;

static void *one_for_other(void *argument)
{
	sem_wait(argument ? &of_one : &of_other);
	sem_post(argument ? &of_other : &of_one);
	return NULL;
}

static void third_computes(void)
{
	sem_init(&of_one, 0, 0);
	sem_init(&of_other, 0, 0);
	start(one_for_other, 0);
	start(one_for_other, 1);
	ready();
	for (volatile uint64_t i = 1; i; i++)
		;
	sem_post(&of_one);
}

/* Two wait for each other, and a worker who will give to one of them waits for work. */
static void *work_for_one(void *argument)
{
	sem_wait(&jobs);
	sem_post(&of_one);
	return argument;
}

static void worker_gives(void)
{
	static volatile int has_work;
	sem_init(&of_one, 0, 0);
	sem_init(&of_other, 0, 0);
	sem_init(&jobs, 0, 0);
	start(one_for_other, 0);
	start(one_for_other, 1);
	start(work_for_one, 0);
	ready();
	while (!has_work)
		nap_ms(1000);
	sem_post(&jobs);
}

/* The idle of a pool: each of them, given work, would give the rest of it to the next one. */
static void *split_work(void *argument)
{
	for (;;) {
		sem_wait(&jobs);
		sem_post(&jobs);
	}
	return argument;
}

static void pool_of_semaphores(void)
{
	sem_init(&jobs, 0, 0);
	for (int i = 0; i < 4; i++)
		start(split_work, 0);
	ready();
	for (;;)
		nap_ms(1000);
}

/* The opener of a FIFO waits for anybody; the other one, for a while. */
static void opens_fifo(void)
{
	if (chdir(getenv("TMPDIR")) != 0 || mkfifo("calm", 0600) != 0)
		exit(9);
	const pid_t child = fork_child();
	if (child == 0)
		_exit(open("calm", O_RDONLY) < 0);
	ready();
	waitpid(child, NULL, 0);
}

/* A consumer, whose producers come by name. */
static void receives(void)
{
	char buf[8], name[32];
	struct mq_attr one = {.mq_maxmsg = 1, .mq_msgsize = 8};
	(void)snprintf(name, sizeof name, "/calm-%d", (int)getpid());
	const mqd_t queue = mq_open(name, O_CREAT | O_RDWR, 0600, &one);
	ready();
	while (mq_receive(queue, buf, sizeof buf, NULL) >= 0)
		;
}

/* A server at a socket with a name, and its workers. */
static void accepts_by_name(void)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	(void)snprintf(a.sun_path + 1, sizeof a.sun_path - 1, "longpole-calm-%d", (int)getpid());
	const int s = socket(AF_UNIX, SOCK_STREAM, 0);
	if (bind(s, (struct sockaddr *)&a, sizeof a) != 0 || listen(s, 4) != 0)
		exit(9);
	sem_init(&jobs, 0, 0);
	for (int i = 0; i < 4; i++)
		start(split_work, 0);
	ready();
	while (accept(s, NULL, NULL) >= 0)
		sem_post(&jobs);
}

/* Two that wait for each other, in a memory that is another process's, too, which will post. */
static int post_for_one(void *unused)
{
	(void)unused;
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	nap_ms(LONG_MS);
	sem_post(&of_one);
	return 0;
}

static void clone_memory(int (*body)(void *))
{
	enum { STACK = 1 << 18 };
	char *stack = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (clone(body, stack + STACK, CLONE_VM | SIGCHLD, NULL) < 0)
		exit(9);
}

static void two_of_one_memory(void)
{
	sem_init(&of_one, 0, 0);
	sem_init(&of_other, 0, 0);
	start(one_for_other, 0);
	start(one_for_other, 1);
}

static void clone_posts(void)
{
	two_of_one_memory();
	clone_memory(post_for_one);
	ready();
	one_for_other(&of_one);
}

/* Its child, in turn. */
static int clone_again(void *unused)
{
	clone_memory(post_for_one);
	for (;;)
		pause();
	return unused != NULL;
}

static void clone_of_clone_posts(void)
{
	two_of_one_memory();
	clone_memory(clone_again);
	ready();
	one_for_other(&of_one);
}

/* The caller of vfork() sleeps until its child is done; a thread beside it waits for that. */
static void *vforks(void *unused)
{
	const pid_t child = vfork();
	if (child == 0) {
		nap_ms(LONG_MS);
		sem_post(&of_one);
		_exit(0);
	}
	return unused;
}

static void vfork_posts(void)
{
	two_of_one_memory();
	start(vforks, 0);
	ready();
	one_for_other(&of_one);
}

/* The first thread of the process that will write has ended. */
static void *write_later(void *to)
{
	nap_ms(LONG_MS);
	return (void *)(intptr_t)write((int)(intptr_t)to, "x", 1);
}

static void writes_without_first_thread(void)
{
	int p[2];
	char c;
	if (pipe(p) != 0)
		exit(9);
	if (fork_child() == 0) {
		start(write_later, p[1]);
		pthread_exit(NULL);
	}
	ready();
	exit(read(p[0], &c, 1) != 1);
}

static const struct hang_case cases[] = {
	{"clone-posts", clone_posts},
	{"clone-of-clone-posts", clone_of_clone_posts},
	{"vfork-posts", vfork_posts},
	{"writes-without-first-thread", writes_without_first_thread},
	{"pool-behind-epoll", pool_behind_epoll},
	{"pool-behind-signal", pool_behind_signal},
	{"posted-by-handler", posted_by_handler},
	{"accepts", accepts},
	{"selects", selects},
	{"sleeps", sleeps},
	{"slow-computing", slow_computing},
	{"slow-sleeping", slow_sleeping},
	{"slow-reading", slow_reading},
	{"full-listener", full_listener},
	{"ticks-and-is-answered", ticks_and_is_answered},
	{"waits-for-child", waits_for_child},
	{"pipeline", pipeline},
	{"pipeline-computes", pipeline_computes},
	{"traced", traced},
	{"third-posts", third_posts},
	{"main-ended", main_ended},
	{"shares-locks", shares_locks},
	{"maps-later", maps_later},
	{"opens-again-later", opens_again_later},
	{"maps-in-other-namespace", maps_in_other_namespace},
	{"zombies", zombies},
	{"slow-once", slow_once},
	{"accepts-by-name", accepts_by_name},
	{"opens-fifo", opens_fifo},
	{"receives", receives},
	{"third-computes", third_computes},
	{"worker-gives", worker_gives},
	{"pool-of-semaphores", pool_of_semaphores},
	{"slow-reader", slow_reader},
	{"stopped-child", stopped_child},
};

int main(int argc, char **argv)
{
	return hang_main(argc, argv, cases, sizeof cases / sizeof *cases);
}
