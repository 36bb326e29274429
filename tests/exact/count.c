/* SPDX-License-Identifier: Apache-2.0 */
/*
 * count.c - one way of locking a run (argv[1]): what a counting recorder says must be what this
 * says. `count list` prints the ways.
 */
#include "count.h"

#include <dlfcn.h>
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <threads.h>
#include <time.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char *self;
static char *const *environment;

/* Before main, and before the constructors of most libraries. */
__attribute__((constructor(101))) static void early(void)
{
	if (!getenv("COUNT_EARLY"))
		return;
	for (int i = 0; i < 50; i++) {
		LOCK(&lock);
		UNLOCK(&lock);
	}
}

static void times(int n)
{
	for (int i = 0; i < n; i++) {
		LOCK(&lock);
		UNLOCK(&lock);
	}
}

static void *some(void *n)
{
	times((int)(intptr_t)n);
	return NULL;
}

static void in_threads(int nr, int n)
{
	pthread_t t[16];
	for (int i = 0; i < nr; i++)
		pthread_create(&t[i], NULL, some, (void *)(intptr_t)n);
	for (int i = 0; i < nr; i++)
		pthread_join(t[i], NULL);
}

static void wait_for(pid_t pid)
{
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		continue;
}

static void plain(void)
{
	times(1000);
}

static void threads(void)
{
	in_threads(8, 20000);
}

static void recursive(void)
{
	pthread_mutexattr_t a;
	pthread_mutex_t m;
	pthread_mutexattr_init(&a);
	pthread_mutexattr_settype(&a, PTHREAD_MUTEX_RECURSIVE);
	pthread_mutex_init(&m, &a);
	for (int i = 0; i < 100; i++) {
		for (int k = 0; k < 5; k++)
			LOCK(&m);
		for (int k = 0; k < 5; k++)
			UNLOCK(&m);
	}
}

static void *try_often(void *unused)
{
	for (int i = 0; i < 5000; i++)
		if (pthread_mutex_trylock(&lock) == 0) {
			counted();
			UNLOCK(&lock);
		}
	return unused;
}

static void trylock(void)
{
	pthread_t t;
	pthread_create(&t, NULL, try_often, NULL);
	try_often(NULL);
	pthread_join(t, NULL);
}

static void *timed_often(void *unused)
{
	for (int i = 0; i < 200; i++) {
		struct timespec until;
		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_nsec += 50000;
		until.tv_sec += until.tv_nsec >= 1000000000;
		until.tv_nsec %= 1000000000;
		if (pthread_mutex_timedlock(&lock, &until) == 0) {
			counted();
			usleep(60);
			UNLOCK(&lock);
		}
	}
	return unused;
}

static void timed(void)
{
	pthread_t t;
	pthread_create(&t, NULL, timed_often, NULL);
	timed_often(NULL);
	pthread_join(t, NULL);
}

static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static void *read_and_write(void *unused)
{
	for (int i = 0; i < 3000; i++) {
		(void)(i % 4 ? pthread_rwlock_rdlock(&rwlock) : pthread_rwlock_wrlock(&rwlock));
		counted();
		pthread_rwlock_unlock(&rwlock);
		if (pthread_rwlock_tryrdlock(&rwlock) == 0) {
			counted();
			pthread_rwlock_unlock(&rwlock);
		}
	}
	return unused;
}

static void rwlocks(void)
{
	pthread_t t;
	pthread_create(&t, NULL, read_and_write, NULL);
	read_and_write(NULL);
	pthread_join(t, NULL);
}

static void spin(void)
{
	pthread_spinlock_t s;
	pthread_spin_init(&s, 0);
	for (int i = 0; i < 1000; i++) {
		pthread_spin_lock(&s);
		counted();
		if (pthread_spin_trylock(&s) == 0)
			abort();
		pthread_spin_unlock(&s);
	}
}

static void c11(void)
{
	mtx_t m;
	mtx_init(&m, mtx_timed);
	for (int i = 0; i < 300; i++) {
		mtx_lock(&m);
		counted();
		mtx_unlock(&m);
		if (mtx_trylock(&m) == thrd_success)
			counted();
		mtx_unlock(&m);
	}
}

/* Both implementations of condition variables: what a wait takes again is no call of ours. */
int old_wait(void *cond, pthread_mutex_t *mutex);
int old_signal(void *cond);
__asm__(".symver old_wait, pthread_cond_wait@GLIBC_2.2.5\n"
	".symver old_signal, pthread_cond_signal@GLIBC_2.2.5\n");
static pthread_cond_t today = PTHREAD_COND_INITIALIZER;
static void *old_cond;
static int turn;

static void *other_turn(void *unused)
{
	for (int i = 0; i < 500; i++) {
		LOCK(&lock);
		while (turn != 1)
			pthread_cond_wait(&today, &lock);
		turn = 0;
		old_signal(&old_cond);
		UNLOCK(&lock);
	}
	return unused;
}

static void conditions(void)
{
	pthread_t t;
	pthread_create(&t, NULL, other_turn, NULL);
	for (int i = 0; i < 500; i++) {
		LOCK(&lock);
		turn = 1;
		pthread_cond_signal(&today);
		while (turn != 0)
			old_wait(&old_cond, &lock);
		UNLOCK(&lock);
	}
	pthread_join(t, NULL);
}

static pthread_mutex_t of_handler = PTHREAD_MUTEX_INITIALIZER;
static void handler(int number)
{
	(void)number;
	if (pthread_mutex_trylock(&of_handler) == 0) {
		counted();
		UNLOCK(&of_handler);
	}
}

static void signals(void)
{
	struct sigaction a = {.sa_handler = handler, .sa_flags = SA_RESTART};
	struct itimerval timer = {{0, 50}, {0, 50}};
	sigaction(SIGALRM, &a, NULL);
	setitimer(ITIMER_REAL, &timer, NULL);
	in_threads(2, 300000);
	setitimer(ITIMER_REAL, &(struct itimerval){{0, 0}, {0, 0}}, NULL);
}

static void forks(void)
{
	times(100);
	for (int i = 0; i < 8; i++) {
		LOCK(&lock); /* held over the fork, given up by both */
		pid_t pid = fork();
		UNLOCK(&lock);
		if (!pid) {
			times(10);
			in_threads(2, 10);
			_exit(0);
		}
		wait_for(pid);
	}
}

static void fork_and_end(void (*end)(void))
{
	for (int i = 0; i < 4; i++) {
		pid_t pid = fork();
		if (!pid) {
			times(25);
			end();
		}
		wait_for(pid);
	}
}

static void end_by_exit(void)
{
	exit(0);
}
static void end_by_kill(void)
{
	kill(getpid(), SIGKILL);
	pause();
}
static void end_by_abort(void)
{
	signal(SIGABRT, SIG_DFL);
	abort();
}
static void exits(void)
{
	fork_and_end(end_by_exit);
}
static void kills(void)
{
	fork_and_end(end_by_kill);
}
static void aborts(void)
{
	fork_and_end(end_by_abort);
}

static void execs(void)
{
	times(10);
	pid_t pid = fork();
	if (!pid) {
		times(3);
		execl(self, self, "chain", (char *)NULL);
		_exit(127);
	}
	wait_for(pid);
}

static void chain(void) /* of execs */
{
	const char *left = getenv("COUNT_LEFT");
	int n = left ? atoi(left) : 5;
	times(7);
	if (n) {
		char text[8];
		snprintf(text, sizeof text, "%d", n - 1);
		setenv("COUNT_LEFT", text, 1);
		execl(self, self, "chain", (char *)NULL);
	}
	exit(0);
}

static void spawns(void)
{
	times(10);
	for (int i = 0; i < 3; i++) {
		char *arguments[] = {self, (char *)"worker", NULL};
		pid_t pid;
		if (posix_spawn(&pid, self, NULL, NULL, arguments, environ) == 0)
			wait_for(pid);
		pid = vfork();
		if (!pid) {
			execve(self, arguments, environ);
			_exit(127);
		}
		wait_for(pid);
	}
}

static void worker(void)
{
	times(11);
	exit(0);
}

static void *until_cancelled(void *unused)
{
	for (;;) {
		LOCK(&lock);
		UNLOCK(&lock);
		pthread_testcancel();
	}
	return unused;
}

static void unlock_it(void *mutex)
{
	UNLOCK(mutex);
}

static void *wait_for_ever(void *unused)
{
	LOCK(&of_handler);
	pthread_cleanup_push(unlock_it, &of_handler);
	for (;;)
		pthread_cond_wait(&today, &of_handler);
	pthread_cleanup_pop(0);
	return unused;
}

static void cancellation(void)
{
	for (int i = 0; i < 20; i++) {
		pthread_t t[2];
		pthread_create(&t[0], NULL, until_cancelled, NULL);
		pthread_create(&t[1], NULL, wait_for_ever, NULL);
		usleep(500);
		for (int k = 0; k < 2; k++) {
			pthread_cancel(t[k]);
			pthread_join(t[k], NULL);
		}
	}
}

static void early_constructors(void)
{
	char *arguments[] = {self, (char *)"worker", NULL};
	pid_t pid;
	setenv("COUNT_EARLY", "1", 1);
	times(5);
	if (posix_spawn(&pid, self, NULL, NULL, arguments, environ) == 0)
		wait_for(pid);
}

static void at_exit(void)
{
	times(9);
}

static void late_functions(void)
{
	pid_t pid = fork();
	if (!pid) {
		atexit(at_exit);
		exit(0);
	}
	wait_for(pid);
}

static void destroy_key(void *unused)
{
	(void)unused;
	times(2);
}
static pthread_key_t key;
static void *with_key(void *unused)
{
	pthread_setspecific(key, &key);
	times(3);
	return unused;
}

static void key_destructors(void)
{
	pthread_key_create(&key, destroy_key);
	for (int i = 0; i < 10; i++) {
		pthread_t t;
		pthread_create(&t, NULL, with_key, NULL);
		pthread_join(t, NULL);
	}
}

static void loaded_late(void)
{
	char path[4096];
	snprintf(path, sizeof path, "%s.so", self);
	for (int i = 0; i < 3; i++) {
		void *library = dlopen(path, RTLD_NOW);
		void (*lock_often)(int) =
			library ? (void (*)(int))dlsym(library, "lock_often") : NULL;
		if (!lock_often)
			exit(1);
		lock_often(40);
		dlclose(library);
	}
}

static jmp_buf away;
static void leave(int number)
{
	(void)number;
	LOCK(&of_handler);
	UNLOCK(&of_handler);
	siglongjmp(away, 1);
}

static void jumps(void)
{
	struct sigaction a = {.sa_handler = leave, .sa_flags = SA_NODEFER};
	sigaction(SIGUSR1, &a, NULL);
	for (volatile int i = 0; i < 200; i++)
		if (!sigsetjmp(away, 1)) {
			times(3);
			raise(SIGUSR1);
		}
}

static void many_locks(void)
{
	enum { NR = 6000 };
	pthread_mutex_t *m = calloc(NR, sizeof *m);
	for (int i = 0; i < NR; i++)
		pthread_mutex_init(&m[i], NULL);
	for (int round = 0; round < 3; round++)
		for (int i = 0; i < NR; i++) {
			LOCK(&m[i]);
			UNLOCK(&m[i]);
		}
	free(m);
}

static void two_thousand_threads(void)
{
	enum { NR = 2000, AT_ONCE = 50 };
	pthread_attr_t small;
	pthread_t t[AT_ONCE];
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 64 * 1024);
	for (int i = 0; i < NR; i += AT_ONCE) {
		for (int k = 0; k < AT_ONCE; k++)
			pthread_create(&t[k], &small, some, (void *)(intptr_t)7);
		for (int k = 0; k < AT_ONCE; k++)
			pthread_join(t[k], NULL);
	}
}

static const struct {
	const char *name;
	void (*run)(void);
} way[] = {
	{"plain", plain},
	{"threads", threads},
	{"recursive", recursive},
	{"trylock", trylock},
	{"timed", timed},
	{"rwlocks", rwlocks},
	{"spin", spin},
	{"c11", c11},
	{"conditions", conditions},
	{"signals", signals},
	{"forks", forks},
	{"exits", exits},
	{"kills", kills},
	{"aborts", aborts},
	{"execs", execs},
	{"spawns", spawns},
	{"cancellation", cancellation},
	{"early_constructors", early_constructors},
	{"late_functions", late_functions},
	{"key_destructors", key_destructors},
	{"loaded_late", loaded_late},
	{"jumps", jumps},
	{"many_locks", many_locks},
	{"two_thousand_threads", two_thousand_threads},
	/* parts of others */
	{"chain", chain},
	{"worker", worker},
};

int main(int argc, char **argv, char **envp)
{
	self = argv[0];
	environment = envp;
	count_of_all(); /* before there are children */
	for (size_t i = 0; argc > 1 && i < sizeof way / sizeof *way; i++) {
		if (!strcmp(argv[1], "list") && way[i].run != chain && way[i].run != worker)
			puts(way[i].name);
		if (strcmp(argv[1], way[i].name) != 0)
			continue;
		way[i].run();
		return report();
	}
	return 0;
}
