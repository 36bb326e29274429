/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hang_threads.c - threads of one process that wait for each other for ever. Barriers, not sleeps,
 * bring them there: each case hangs each time.
 */
#include "hang.h"

#include <linux/filter.h>
#include <linux/futex.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/epoll.h>
#include <sys/time.h>

enum { PHILOSOPHERS_MAX = 512 };

static pthread_mutex_t first = PTHREAD_MUTEX_INITIALIZER, second = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t together;
static int nr_philosophers = 5;

/* ---- circles of locks ------------------------------------------------------------------------ */

static pthread_mutex_t fork_of[PHILOSOPHERS_MAX];
static volatile long meals;

static void eat(void)
{
	meals++;
}

static void *philosopher(void *argument)
{
	long i = (intptr_t)argument;
	pthread_mutex_t *left = &fork_of[i], *right = &fork_of[(i + 1) % nr_philosophers];
	pthread_mutex_lock(left);
	pthread_barrier_wait(&together);
	pthread_mutex_lock(right);
	eat();
	pthread_mutex_unlock(left);
	pthread_mutex_unlock(right);
	return NULL;
}

static void philosophers(void)
{
	pthread_t t[PHILOSOPHERS_MAX];
	const char *nr = getenv("PHILOSOPHERS");
	if (nr)
		nr_philosophers = (int)strtol(nr, NULL, 10);
	pthread_barrier_init(&together, NULL, (unsigned)nr_philosophers);
	for (int i = 0; i < nr_philosophers; i++)
		pthread_mutex_init(&fork_of[i], NULL);
	for (int i = 0; i < nr_philosophers; i++)
		t[i] = start(philosopher, i);
	ready();
	for (int i = 0; i < nr_philosophers; i++)
		pthread_join(t[i], NULL);
}

static void *take_second_first(void *argument)
{
	pthread_mutex_lock(&second);
	pthread_barrier_wait(&together);
	pthread_mutex_lock(&first);
	pthread_mutex_unlock(&first);
	pthread_mutex_unlock(&second);
	return argument;
}

static void circle(const pthread_mutexattr_t *a)
{
	pthread_mutex_init(&first, a);
	pthread_mutex_init(&second, a);
	pthread_barrier_init(&together, NULL, 2);
	start(take_second_first, 0);
	pthread_mutex_lock(&first);
	pthread_barrier_wait(&together);
	ready();
	pthread_mutex_lock(&second);
	pthread_mutex_unlock(&second);
	pthread_mutex_unlock(&first);
}

static void circle_of_type(int type)
{
	pthread_mutexattr_t a;
	pthread_mutexattr_init(&a);
	pthread_mutexattr_settype(&a, type);
	circle(&a);
}

static void circle_normal(void)
{
	circle_of_type(PTHREAD_MUTEX_NORMAL);
}

static void circle_recursive(void)
{
	circle_of_type(PTHREAD_MUTEX_RECURSIVE);
}

static void circle_errorcheck(void)
{
	circle_of_type(PTHREAD_MUTEX_ERRORCHECK);
}

static void circle_adaptive(void)
{
	circle_of_type(PTHREAD_MUTEX_ADAPTIVE_NP);
}

static void circle_pi(void)
{
	pthread_mutexattr_t a;
	pthread_mutexattr_init(&a);
	pthread_mutexattr_setprotocol(&a, PTHREAD_PRIO_INHERIT);
	circle(&a);
}

static void circle_robust(void)
{
	pthread_mutexattr_t a;
	pthread_mutexattr_init(&a);
	pthread_mutexattr_setrobust(&a, PTHREAD_MUTEX_ROBUST);
	circle(&a);
}

static void self_lock(void)
{
	pthread_mutex_lock(&first);
	ready();
	pthread_mutex_lock(&first);
	pthread_mutex_unlock(&first);
}

static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;

static void *upgrade(void *argument)
{
	pthread_rwlock_rdlock(&rwlock);
	pthread_barrier_wait(&together);
	pthread_rwlock_wrlock(&rwlock);
	pthread_rwlock_unlock(&rwlock);
	pthread_rwlock_unlock(&rwlock);
	return argument;
}

static void rwlock_upgrade(void)
{
	pthread_barrier_init(&together, NULL, 2);
	pthread_t t = start(upgrade, 0), u = start(upgrade, 0);
	ready();
	pthread_join(t, NULL);
	pthread_join(u, NULL);
}

/* One holds the rwlock and wants the mutex, the other the reverse. */
static void *write_then_lock(void *argument)
{
	pthread_rwlock_wrlock(&rwlock);
	pthread_barrier_wait(&together);
	pthread_mutex_lock(&first);
	pthread_mutex_unlock(&first);
	pthread_rwlock_unlock(&rwlock);
	return argument;
}

static void rwlock_circle(void)
{
	pthread_barrier_init(&together, NULL, 2);
	start(write_then_lock, 0);
	pthread_mutex_lock(&first);
	pthread_barrier_wait(&together);
	ready();
	pthread_rwlock_rdlock(&rwlock);
	pthread_rwlock_unlock(&rwlock);
	pthread_mutex_unlock(&first);
}

/* Readers of a lock that lets writers go first: a read lock inside of a read lock, behind a writer.
 */
static struct {
	long stands_before;
	pthread_rwlock_t lock;
} fair = {0, PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP};

static void *write_fair(void *argument)
{
	pthread_rwlock_wrlock(&fair.lock);
	pthread_rwlock_unlock(&fair.lock);
	return argument;
}

static void read_fair(void)
{
	pthread_rwlock_rdlock(&fair.lock);
	pthread_rwlock_unlock(&fair.lock);
}

/* Until a writer is at the lock: then who reads waits behind it. */
static void start_writer_of_fair(void)
{
	start(write_fair, 0);
	while (pthread_rwlock_tryrdlock(&fair.lock) == 0) {
		pthread_rwlock_unlock(&fair.lock);
		nap_ms(1);
	}
}

static void rwlock_nested(void)
{
	pthread_rwlock_rdlock(&fair.lock);
	start_writer_of_fair();
	ready();
	read_fair();
	pthread_rwlock_unlock(&fair.lock);
}

/* The reader before the writer wants what the reader behind it has. */
static void *read_then_lock(void *argument)
{
	pthread_rwlock_rdlock(&fair.lock);
	pthread_barrier_wait(&together);
	pthread_mutex_lock(&first);
	pthread_mutex_unlock(&first);
	pthread_rwlock_unlock(&fair.lock);
	return argument;
}

static void rwlock_behind_writer(void)
{
	pthread_barrier_init(&together, NULL, 2);
	pthread_mutex_lock(&first);
	start(read_then_lock, 0);
	pthread_barrier_wait(&together);
	start_writer_of_fair();
	ready();
	read_fair();
	pthread_mutex_unlock(&first);
}

/* ---- what is done once ----------------------------------------------------------------------- */

static pthread_once_t once_first = PTHREAD_ONCE_INIT, once_second = PTHREAD_ONCE_INIT;

static void make_second(void);
static void make_first(void)
{
	pthread_barrier_wait(&together);
	pthread_once(&once_second, make_second);
}

static void make_second(void)
{
	pthread_barrier_wait(&together);
	pthread_once(&once_first, make_first);
}

static void *once_other(void *argument)
{
	pthread_once(&once_second, make_second);
	return argument;
}

static void once_circle(void)
{
	pthread_barrier_init(&together, NULL, 2);
	start(once_other, 0);
	ready();
	pthread_once(&once_first, make_first);
}

static void make_itself(void)
{
	pthread_once(&once_first, make_itself);
}

static void once_self(void)
{
	ready();
	pthread_once(&once_first, make_itself);
}

static void make_with_lock(void)
{
	pthread_barrier_wait(&together);
	pthread_mutex_lock(&first);
	pthread_mutex_unlock(&first);
}

static void *once_with_lock(void *argument)
{
	pthread_once(&once_first, make_with_lock);
	return argument;
}

static void once_and_lock(void)
{
	pthread_barrier_init(&together, NULL, 2);
	pthread_mutex_lock(&first);
	start(once_with_lock, 0);
	pthread_barrier_wait(&together);
	ready();
	pthread_once(&once_first, make_with_lock);
}

/* ---- locks that nobody will give back -------------------------------------------------------- */

static void *lock_and_leave(void *argument)
{
	pthread_mutex_lock(&first);
	return argument;
}

static void orphan(void)
{
	pthread_join(start(lock_and_leave, 0), NULL);
	ready();
	pthread_mutex_lock(&first);
}

static void *lock_and_sleep(void *argument)
{
	pthread_mutex_lock(&first);
	pthread_barrier_wait(&together);
	nap_ms(36000000);
	pthread_mutex_unlock(&first);
	return argument;
}

static void fork_with_lock(void)
{
	pthread_barrier_init(&together, NULL, 2);
	start(lock_and_sleep, 0);
	pthread_barrier_wait(&together);
	pid_t child = fork_child();
	if (child == 0) {
		pthread_mutex_lock(&first);
		_exit(0);
	}
	ready();
	waitpid(child, NULL, 0);
}

/* ---- barriers, joins, conditions ------------------------------------------------------------- */

static pthread_barrier_t three;

static void *arrive_with_lock(void *argument)
{
	pthread_mutex_lock(&first);
	pthread_barrier_wait(&together);
	pthread_barrier_wait(&three);
	pthread_mutex_unlock(&first);
	return argument;
}

static void *arrive(void *argument)
{
	pthread_barrier_wait(&three);
	return argument;
}

static void barrier(void)
{
	pthread_barrier_init(&together, NULL, 2);
	pthread_barrier_init(&three, NULL, 3);
	start(arrive_with_lock, 0);
	start(arrive, 0);
	pthread_barrier_wait(&together);
	ready();
	pthread_mutex_lock(&first);
	pthread_mutex_unlock(&first);
	pthread_barrier_wait(&three);
}

static pthread_t joined[3];

static void *join_next(void *argument)
{
	long i = (intptr_t)argument;
	pthread_barrier_wait(&together);
	pthread_join(joined[(i + 1) % 3], NULL);
	return NULL;
}

static void join_circle(void)
{
	pthread_barrier_init(&together, NULL, 4);
	for (long i = 0; i < 3; i++)
		joined[i] = start(join_next, i);
	pthread_barrier_wait(&together);
	ready();
	pause();
}

static void *want_first(void *argument)
{
	pthread_mutex_lock(&first);
	pthread_mutex_unlock(&first);
	return argument;
}

static void join_with_lock(void)
{
	pthread_mutex_lock(&first);
	pthread_t t = start(want_first, 0);
	ready();
	pthread_join(t, NULL);
	pthread_mutex_unlock(&first);
}

static pthread_cond_t condition = PTHREAD_COND_INITIALIZER, other = PTHREAD_COND_INITIALIZER;
static int has_one, has_other;

/* The inner monitor's wait gives back the inner lock only. */
static void *wait_inside(void *argument)
{
	pthread_mutex_lock(&first);
	pthread_mutex_lock(&second);
	pthread_barrier_wait(&together);
	pthread_cond_wait(&condition, &second);
	pthread_mutex_unlock(&second);
	pthread_mutex_unlock(&first);
	return argument;
}

static void nested_monitors(void)
{
	pthread_barrier_init(&together, NULL, 2);
	start(wait_inside, 0);
	pthread_barrier_wait(&together);
	ready();
	pthread_mutex_lock(&first);
	pthread_mutex_lock(&second);
	pthread_cond_signal(&condition);
	pthread_mutex_unlock(&second);
	pthread_mutex_unlock(&first);
}

static void *wait_too_late(void *argument)
{
	pthread_mutex_lock(&first);
	pthread_cond_wait(&condition, &first);
	pthread_mutex_unlock(&first);
	return argument;
}

static void lost_wakeup(void)
{
	pthread_cond_signal(&condition);
	pthread_t t = start(wait_too_late, 0);
	ready();
	pthread_join(t, NULL);
}

static void *one_then_other(void *argument)
{
	pthread_mutex_lock(&first);
	while (!has_one)
		pthread_cond_wait(&condition, &first);
	has_other = 1;
	pthread_cond_signal(&other);
	pthread_mutex_unlock(&first);
	return argument;
}

static void *other_then_one(void *argument)
{
	pthread_mutex_lock(&first);
	while (!has_other)
		pthread_cond_wait(&other, &first);
	has_one = 1;
	pthread_cond_signal(&condition);
	pthread_mutex_unlock(&first);
	return argument;
}

static void predicates(void)
{
	pthread_t t = start(one_then_other, 0), u = start(other_then_one, 0);
	ready();
	pthread_join(t, NULL);
	pthread_join(u, NULL);
}

/* ---- semaphores: the source's figure 4-8 ----------------------------------------------------- */

static sem_t tobacco, paper, matches, order;
static volatile long smoked;

static void *smoker(void *argument)
{
	sem_t *needs[3][2] = {{&tobacco, &paper}, {&paper, &matches}, {&matches, &tobacco}};
	long i = (intptr_t)argument;
	for (;;) {
		sem_wait(needs[i][0]);
		if (i != 1 && smoked == 0)
			pthread_barrier_wait(&together);
		sem_wait(needs[i][1]);
		smoked++;
		sem_post(&order);
	}
	return NULL;
}

static void *agent(void *argument)
{
	sem_t *all[3] = {&tobacco, &matches, &paper};
	for (int round = 0;; round++) {
		sem_wait(&order);
		int not_given = round ? rand() % 3 : 2; /* first tobacco and matches */
		for (int i = 0; i < 3; i++) {
			if (i != not_given)
				sem_post(all[i]);
		}
	}
	return argument;
}

static void smokers(void)
{
	sem_init(&tobacco, 0, 0);
	sem_init(&paper, 0, 0);
	sem_init(&matches, 0, 0);
	sem_init(&order, 0, 1);
	pthread_barrier_init(&together, NULL, 3);
	for (long i = 0; i < 3; i++)
		start(smoker, i);
	pthread_t t = start(agent, 0);
	pthread_barrier_wait(&together);
	ready();
	pthread_join(t, NULL);
}

/* ---- without the C library's locks ----------------------------------------------------------- */

static atomic_int raw_first, raw_second; /* 0 free, 1 taken, 2 with waiters: as Rust's std has it */

static void raw_lock(atomic_int *word)
{
	int expected = 0;
	if (atomic_compare_exchange_strong(word, &expected, 1))
		return;
	while (atomic_exchange(word, 2) != 0)
		syscall(SYS_futex, word, FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG, 2, NULL, NULL,
			~0u);
}

static void raw_unlock(atomic_int *word)
{
	if (atomic_exchange(word, 0) == 2)
		syscall(SYS_futex, word, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, 1, NULL, NULL, 0);
}

static void *raw_other(void *argument)
{
	raw_lock(&raw_second);
	pthread_barrier_wait(&together);
	raw_lock(&raw_first);
	raw_unlock(&raw_first);
	raw_unlock(&raw_second);
	return argument;
}

static void raw_futex(void)
{
	pthread_barrier_init(&together, NULL, 2);
	pthread_t t = start(raw_other, 0);
	raw_lock(&raw_first);
	pthread_barrier_wait(&together);
	ready();
	raw_lock(&raw_second);
	raw_unlock(&raw_second);
	raw_unlock(&raw_first);
	pthread_join(t, NULL);
}

static sem_t one_sem, other_sem;

static void *one_for_other(void *argument)
{
	sem_t *mine = argument ? &one_sem : &other_sem, *its = argument ? &other_sem : &one_sem;
	sem_wait(mine);
	sem_post(its);
	return argument;
}

/* Somebody alive could post; none does. */
static void doubtful(void)
{
	sem_init(&one_sem, 0, 0);
	sem_init(&other_sem, 0, 0);
	start(one_for_other, 0);
	start(one_for_other, 1);
	ready();
	for (;;)
		nap_ms(1000);
}

/* Three in a circle, of whom a fourth stands at the same place as one of them and gives another
 * thing: what one would do is not what the other would. */
static sem_t needs_of[2], gives_of[4];

static void wait_and_give(sem_t *needed, sem_t *given)
{
	sem_wait(needed);
	sem_post(given);
}

static void *lock_and_give(void *argument)
{
	pthread_mutex_lock(&first);
	sem_post(argument);
	pthread_mutex_unlock(&first);
	return NULL;
}

static void *give_second(void *argument)
{
	wait_and_give(&needs_of[0], &needs_of[1]);
	return argument;
}

static void *have_lock(void *argument)
{
	pthread_mutex_lock(&first);
	pthread_barrier_wait(&together);
	sem_wait(&needs_of[1]);
	pthread_mutex_unlock(&first);
	return argument;
}

static void same_place(void)
{
	pthread_t t;
	for (int i = 0; i < 4; i++)
		sem_init(&gives_of[i], 0, 0);
	sem_init(&needs_of[0], 0, 0);
	sem_init(&needs_of[1], 0, 0);
	pthread_barrier_init(&together, NULL, 2);
	t = start(have_lock, 0);
	pthread_barrier_wait(&together);
	for (int i = 0; i < 3; i++)
		start(lock_and_give, (long)(intptr_t)&gives_of[i]);
	start(lock_and_give, (long)(intptr_t)&needs_of[0]);
	start(give_second, 0);
	ready();
	pthread_join(t, NULL);
}

static void ignore(int number)
{
	(void)number;
}

static void same_place_with_handler(void)
{
	signal(SIGUSR1, ignore);
	same_place();
}

/* Circles in programs that live: somebody alive sleeps for a time, or waits for a timed word. */
static void *nap_for_ever(void *argument)
{
	for (;;)
		nap_ms(1000);
	return argument;
}

static void *look_now_and_then(void *argument)
{
	struct timespec until;
	for (;;) {
		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_sec += 100;
		if (sem_timedwait(&tobacco, &until) == 0)
			sem_post(&paper);
	}
	return argument;
}

static void one_and_other(void)
{
	sem_init(&one_sem, 0, 0);
	sem_init(&other_sem, 0, 0);
	start(one_for_other, 0);
	start(one_for_other, 1);
}

static void timed_beside(void)
{
	sem_init(&tobacco, 0, 0);
	sem_init(&paper, 0, 0);
	one_and_other();
	start(look_now_and_then, 0);
	start(nap_for_ever, 0);
	ready();
	pause();
}

static void *lock_then_wait(void *argument)
{
	pthread_mutex_lock(&first);
	pthread_barrier_wait(&together);
	sem_wait(&one_sem);
	pthread_mutex_unlock(&first);
	return argument;
}

static void lock_and_semaphore_beside(void)
{
	sem_init(&one_sem, 0, 0);
	pthread_barrier_init(&together, NULL, 2);
	start(nap_for_ever, 0);
	start(lock_then_wait, 0);
	pthread_barrier_wait(&together);
	ready();
	pthread_mutex_lock(&first);
	sem_post(&one_sem);
	pthread_mutex_unlock(&first);
}

static void rwlock_beside(void)
{
	start(nap_for_ever, 0);
	rwlock_nested();
}

/* A circle of locks, and one that somebody could end. */
static void two_circles(void)
{
	one_and_other();
	start(nap_for_ever, 0);
	circle_normal();
}

static void once_beside(void)
{
	start(nap_for_ever, 0);
	once_circle();
}

/* ---- signal handlers: they may jump out of any wait ------------------------------------------ */

static void handle_info(int number, siginfo_t *info, void *context)
{
	(void)number, (void)info, (void)context;
}

/* Handlers are the process's, whoever sets them. */
static void *set_handler(void *number)
{
	struct sigaction sa = {.sa_sigaction = handle_info, .sa_flags = SA_SIGINFO};
	sigaction((int)(intptr_t)number, &sa, NULL);
	return NULL;
}

static void handle_by_another(int number)
{
	pthread_join(start(set_handler, number), NULL);
}

static void circle_with_handler(void)
{
	handle_by_another(SIGTERM);
	circle_normal();
}

static void circle_with_alarm(void)
{
	signal(SIGALRM, ignore);
	alarm(36000);
	circle_normal();
}

static void circle_with_itimer(void)
{
	const struct itimerval time = {.it_value = {.tv_sec = 36000}};
	signal(SIGPROF, ignore);
	setitimer(ITIMER_PROF, &time, NULL);
	circle_normal();
}

static void start_timer(void)
{
	struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN};
	const struct itimerspec time = {.it_value = {.tv_sec = 36000}};
	timer_t timer;
	if (timer_create(CLOCK_MONOTONIC, &event, &timer) != 0 ||
		timer_settime(timer, 0, &time, NULL) != 0)
		exit(9);
}

static void circle_with_timer(void)
{
	handle_by_another(SIGRTMIN);
	start_timer();
	circle_normal();
}

/* None of the circle takes the signal: a thread beside them does. */
static void circle_beside_handler(void)
{
	sigset_t all;
	handle_by_another(SIGTERM);
	handle_by_another(SIGRTMIN);
	start_timer();
	start(nap_for_ever, 0);
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, NULL);
	circle_normal();
}

/* Nobody waits for the handlers of faults. */
static void circle_with_fault_handler(void)
{
	handle_by_another(SIGSEGV);
	circle_normal();
}

static void join_with_handler(void)
{
	handle_by_another(SIGTERM);
	join_with_lock();
}

/* ---- part of a program that lives ------------------------------------------------------------ */

static void *serve(void *argument)
{
	for (;;)
		nap_ms(5);
	return argument;
}

static void partial(void)
{
	pthread_barrier_init(&together, NULL, 2);
	for (int i = 0; i < 6; i++)
		start(serve, 0);
	start(take_second_first, 0);
	pthread_mutex_lock(&first);
	pthread_barrier_wait(&together);
	ready();
	pthread_mutex_lock(&second);
}

/* A filter that kills for what an intruder would have to call; all signals blocked. */
#define KILL_FOR(call)                                                                             \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (call), 0, 1),                                         \
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)

static void seccomp(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		KILL_FOR(SYS_clone),
		KILL_FOR(SYS_fork),
		KILL_FOR(SYS_wait4),
		KILL_FOR(SYS_mmap),
		KILL_FOR(SYS_clone3),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
	sigset_t all;
	sigfillset(&all);
	pthread_barrier_init(&together, NULL, 2);
	pthread_sigmask(SIG_BLOCK, &all, NULL);
	start(take_second_first, 0);
	pthread_mutex_lock(&first);
	pthread_barrier_wait(&together);
	(void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) != 0)
		exit(9);
	ready();
	pthread_mutex_lock(&second);
}

/* ---- who ends before the others ---------------------------------------------------------------- */

static void *circle_there(void *unused)
{
	circle_normal();
	return unused;
}

/* Under its own number /proc shows nothing of a process whose first thread has ended. */
static void main_ended(void)
{
	start(circle_there, 0);
	pthread_exit(NULL);
}

static const struct hang_case cases[] = {
	{"philosophers", philosophers},
	{"circle-normal", circle_normal},
	{"circle-recursive", circle_recursive},
	{"main-ended", main_ended},
	{"circle-errorcheck", circle_errorcheck},
	{"circle-adaptive", circle_adaptive},
	{"circle-pi", circle_pi},
	{"circle-robust", circle_robust},
	{"self-lock", self_lock},
	{"rwlock-upgrade", rwlock_upgrade},
	{"rwlock-circle", rwlock_circle},
	{"rwlock-nested", rwlock_nested},
	{"rwlock-behind-writer", rwlock_behind_writer},
	{"once-circle", once_circle},
	{"once-self", once_self},
	{"once-and-lock", once_and_lock},
	{"orphan", orphan},
	{"fork-with-lock", fork_with_lock},
	{"barrier", barrier},
	{"join-circle", join_circle},
	{"join-with-lock", join_with_lock},
	{"nested-monitors", nested_monitors},
	{"lost-wakeup", lost_wakeup},
	{"predicates", predicates},
	{"smokers", smokers},
	{"raw-futex", raw_futex},
	{"doubtful", doubtful},
	{"same-place", same_place},
	{"circle-with-handler", circle_with_handler},
	{"circle-with-alarm", circle_with_alarm},
	{"circle-with-itimer", circle_with_itimer},
	{"circle-with-timer", circle_with_timer},
	{"circle-beside-handler", circle_beside_handler},
	{"circle-with-fault-handler", circle_with_fault_handler},
	{"join-with-handler", join_with_handler},
	{"same-place-with-handler", same_place_with_handler},
	{"timed-beside", timed_beside},
	{"lock-and-semaphore-beside", lock_and_semaphore_beside},
	{"once-beside", once_beside},
	{"rwlock-beside", rwlock_beside},
	{"two-circles", two_circles},
	{"partial", partial},
	{"seccomp", seccomp},
};

int main(int argc, char **argv)
{
	return hang_main(argc, argv, cases, sizeof cases / sizeof *cases);
}
