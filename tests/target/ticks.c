/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ticks.c MODE - the main thread sleeps 20 times for 10 ms while something else ticks, every 50 ms,
 * until told to end. Half the sleep is half the run, whatever ticks and however it is told:
 *
 *	eventfd   a thread in poll(); the event ends it
 *	epoll     ... in epoll_wait() of two files
 *	signal    ... in select(); a signal ends it
 *	cond      ... in pthread_cond_timedwait(); a signal of the condition ends it
 *	sem       ... in sem_timedwait(); a post ends it
 *	child     the main thread itself, in select() until its child, which sleeps, has ended
 *	waitpid   ... in waitpid(), which a timer's signal breaks off every 20 ms
 *	alarm     nobody ticks: such a signal ends each of the main thread's sleeps, of 900 ms
 *	stopped   nobody ticks: it sleeps while its children are stopped, which nothing tells
 *	killed    a process in usleep(); SIGTERM ends it
 *	group     ... that SIGTERM for its process group ends
 *	sleep     ... in usleep(), until a flag is set
 *	broken    ... in nanosleep(); a signal breaks it off
 *	timerfd   ... in read() of a periodic timerfd, until a flag is set
 *	busy      as cond, but between two ticks of 20 ms it does something for as long: whether
 *                that is work that must be done or not, no record says
 *	naps      no ticker: cond_timedwait() for the naps that the work needs, 10 ms each, then a
 *                real wait (nothing is to be cut)
 *	polls     a thread sleeps and sets a flag; the main thread looks for it every 2 ms, in usleep()
 *	limits    ... in pthread_cond_timedwait(), which nobody signals
 *	box       nobody ticks: it sleeps again and again until a timer's signal ends the run
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/select.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { TICK_MS = 50, SHORT_TICK_MS = 20, LOOK_MS = 2, ROUNDS = 20, SLEEP_US = 10000 };

static const char *mode;
static volatile sig_atomic_t stop;
static int event[2], set, timer;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static sem_t sem;
static int item;

static int is(const char *name)
{
	return !strcmp(mode, name);
}

static void on_signal(int number)
{
	(void)number;
}

static struct timespec in_ms(long ms)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	t.tv_nsec += ms * 1000000;
	t.tv_sec += t.tv_nsec / 1000000000;
	t.tv_nsec %= 1000000000;
	return t;
}

static void tick(void)
{
	struct timespec until = in_ms(is("busy") ? SHORT_TICK_MS : TICK_MS);
	struct timeval limit = {0, TICK_MS * 1000};
	struct epoll_event got;
	uint64_t expired;
	struct pollfd p = {event[0], POLLIN, 0};

	if (is("eventfd")) {
		poll(&p, 1, TICK_MS);
	} else if (is("epoll")) {
		epoll_wait(set, &got, 1, TICK_MS);
	} else if (is("signal") || is("child")) {
		select(0, NULL, NULL, NULL, &limit);
	} else if (is("sleep")) {
		usleep(SHORT_TICK_MS * 1000);
	} else if (is("broken")) {
		nanosleep(&(struct timespec){.tv_nsec = SHORT_TICK_MS * 1000000}, NULL);
	} else if (is("timerfd")) {
		if (read(timer, &expired, sizeof expired) < 0)
			abort();
	} else if (is("sem")) {
		sem_timedwait(&sem, &until);
	} else {
		pthread_mutex_lock(&mutex);
		if (!stop)
			pthread_cond_timedwait(&cond, &mutex, &until);
		pthread_mutex_unlock(&mutex);
		if (is("busy") && !stop)
			usleep(SHORT_TICK_MS * 1000);
	}
}

static void *ticker(void *arg)
{
	while (!stop)
		tick();
	return arg;
}

static void work(void)
{
	for (int i = 0; i < ROUNDS; i++)
		usleep(SLEEP_US);
}

static void end_ticker(pthread_t thread)
{
	uint64_t one = 1;

	pthread_mutex_lock(&mutex);
	stop = 1;
	pthread_cond_signal(&cond);
	pthread_mutex_unlock(&mutex);
	sem_post(&sem);
	if (is("signal") || is("broken"))
		pthread_kill(thread, SIGUSR1);
	if (write(event[0], &one, sizeof one) < 0)
		abort();
}

static void with_thread(void)
{
	struct epoll_event e = {.events = EPOLLIN};
	struct sigaction action = {.sa_handler = on_signal};
	pthread_t thread;

	sigaction(SIGUSR1, &action, NULL);
	event[0] = eventfd(0, 0);
	event[1] = eventfd(0, 0);
	set = epoll_create1(0);
	for (int i = 0; i < 2; i++) {
		e.data.fd = event[i];
		if (epoll_ctl(set, EPOLL_CTL_ADD, event[i], &e))
			abort();
	}
	timer = timerfd_create(CLOCK_MONOTONIC, 0);
	timerfd_settime(timer, 0,
		&(struct itimerspec){.it_interval.tv_nsec = SHORT_TICK_MS * 1000000,
			.it_value.tv_nsec = SHORT_TICK_MS * 1000000},
		NULL);
	sem_init(&sem, 0, 0);
	if (pthread_create(&thread, NULL, ticker, NULL))
		abort();
	work();
	end_ticker(thread);
	pthread_join(thread, NULL);
}

static void with_process(void)
{
	struct sigaction action = {.sa_handler = on_signal};
	pid_t child;

	sigaction(SIGCHLD, &action, NULL);
	child = fork();
	if (!child && is("group"))
		setpgid(0, 0);
	if (!child && (is("killed") || is("group")))
		for (;;)
			usleep(TICK_MS * 1000);
	if (!child) {
		usleep(ROUNDS * SLEEP_US);
		_exit(0);
	}
	if (is("killed") || is("group")) {
		work();
		kill(is("group") ? -child : child, SIGTERM);
		waitpid(child, NULL, 0);
		return;
	}
	while (!waitpid(child, NULL, WNOHANG))
		tick();
}

/* The child sleeps; a timer's signal breaks the wait for it off, which begins again. Or there is no
 * child, and the signal ends sleeps. */
static void with_timer(void)
{
	struct sigaction action = {.sa_handler = on_signal};
	struct itimerval every = {.it_interval.tv_usec = SHORT_TICK_MS * 1000,
		.it_value.tv_usec = SHORT_TICK_MS * 1000};
	pid_t child = is("alarm") ? -1 : fork();

	if (!child) {
		usleep(ROUNDS * SLEEP_US);
		_exit(0);
	}
	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &every, NULL);
	for (int i = 0; child < 0 && i < ROUNDS / 2; i++)
		usleep(900000);
	while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
		;
}

/* Each child stops itself, until the main thread, which sleeps, lets it go on. */
static void with_stopped(void)
{
	for (int i = 0; i < ROUNDS; i++) {
		pid_t child = fork();

		if (!child) {
			raise(SIGSTOP);
			_exit(0);
		}
		waitpid(child, NULL, WUNTRACED);
		usleep(SLEEP_US);
		kill(child, SIGCONT);
		waitpid(child, NULL, 0);
	}
}

static void *napper(void *arg)
{
	for (int i = 0; i < ROUNDS; i++) {
		struct timespec until = in_ms(SLEEP_US / 1000);

		pthread_mutex_lock(&mutex);
		pthread_cond_timedwait(&cond, &mutex, &until);
		pthread_mutex_unlock(&mutex);
	}
	sem_post(&sem);
	pthread_mutex_lock(&mutex);
	while (!item)
		pthread_cond_wait(&cond, &mutex);
	pthread_mutex_unlock(&mutex);
	return arg;
}

static void with_naps(void)
{
	pthread_t thread;

	sem_init(&sem, 0, 0);
	if (pthread_create(&thread, NULL, napper, NULL))
		abort();
	sem_wait(&sem);
	usleep(SLEEP_US);
	pthread_mutex_lock(&mutex);
	item = 1;
	pthread_cond_signal(&cond);
	pthread_mutex_unlock(&mutex);
	pthread_join(thread, NULL);
}

static void *work_and_tell(void *arg)
{
	work();
	stop = 1;
	return arg;
}

static void look(void)
{
	if (is("polls")) {
		usleep(LOOK_MS * 1000);
		return;
	}
	struct timespec until = in_ms(LOOK_MS);

	pthread_mutex_lock(&mutex);
	pthread_cond_timedwait(&cond, &mutex, &until);
	pthread_mutex_unlock(&mutex);
}

static void with_flag(void)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, work_and_tell, NULL))
		abort();
	while (!stop)
		look();
}

static void on_end(int number)
{
	(void)number;
	stop = 1;
}

static void with_box(void)
{
	struct sigaction action = {.sa_handler = on_end, .sa_flags = SA_RESTART};
	struct itimerval once = {.it_value.tv_usec = ROUNDS * SLEEP_US};

	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &once, NULL);
	while (!stop)
		usleep(SLEEP_US);
}

int main(int argc, char **argv)
{
	mode = argc > 1 ? argv[1] : "eventfd";
	if (is("child") || is("killed") || is("group"))
		with_process();
	else if (is("naps"))
		with_naps();
	else if (is("polls") || is("limits"))
		with_flag();
	else if (is("box"))
		with_box();
	else if (is("stopped"))
		with_stopped();
	else if (is("waitpid") || is("alarm"))
		with_timer();
	else
		with_thread();
	return 0;
}
