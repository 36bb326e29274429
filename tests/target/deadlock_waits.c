/* SPDX-License-Identifier: Apache-2.0 */
/*
 * deadlock_waits [spin] - threads that wait, each in another way, and that know what they would do
 * next.
 *
 * Prints for each "TID NAME WOULD EVENT" (the event as deadlock_ahead writes it), then "READY PID",
 * and waits for the end of its standard input. With `spin` two threads spin for a lock that the
 * other has.
 */
#include "asleep.h"

#include <linux/futex.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/syscall.h>
#include <unistd.h>

static pthread_mutex_t first = PTHREAD_MUTEX_INITIALIZER, second = PTHREAD_MUTEX_INITIALIZER,
		       guard = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_barrier_t barrier;
static sem_t semaphore, last_semaphore;
static pthread_t never_ends;
static int greeting[2], end[2], empty[2], full[2], event_fd, semaphores, queue, file_fd;
static volatile int has_come;
static atomic_int word, waiting;
static pthread_spinlock_t spin_a, spin_b;

static void would(const char *name, const char *format, ...)
{
	va_list words;
	va_start(words, format);
	flockfile(stdout);
	printf("%d %s ", (int)syscall(SYS_gettid), name);
	vprintf(format, words);
	putchar('\n');
	funlockfile(stdout);
	va_end(words);
	waiting++;
}

static unsigned long long inode_of(int fd)
{
	struct stat s;
	fstat(fd, &s);
	return s.st_ino;
}

static unsigned long long futex_of(const void *p)
{
	return (unsigned long long)(uintptr_t)p;
}

static void *for_mutex(void *x)
{
	pthread_mutex_lock(&second);
	would("MUTEX", "FUTEX[%d,0,%llu]", getpid(), futex_of(&second));
	pthread_mutex_lock(&first); /* main has it */
	pthread_mutex_unlock(&second);
	pause();
	return x;
}
static void *behind_mutex(void *x)
{
	would("MUTEX", "PIPE_DATA[0,%llu,0]", inode_of(greeting[1]));
	pthread_mutex_lock(&second);
	if (write(greeting[1], "hello", 5) != 5)
		exit(2);
	pause();
	return x;
}
static void *for_semaphore(void *x)
{
	would("SEMAPHORE", "FUTEX[%d,0,%llu]", getpid(), futex_of(&last_semaphore));
	sem_wait(&semaphore);
	sem_post(&last_semaphore);
	pause();
	return x;
}
static void *behind_semaphore(void *x)
{
	would("SEMAPHORE", "THREAD_EXIT[%d,%d,0]", getpid(), (int)syscall(SYS_gettid));
	sem_wait(&last_semaphore);
	return x;
}
static void *for_condition(void *x)
{
	would("CONDITION", "forced EVENTFD_DATA");
	pthread_mutex_lock(&guard);
	while (!has_come)
		pthread_cond_wait(&condition, &guard);
	eventfd_write(event_fd, 1);
	pause();
	return x;
}
static void *for_rwlock(void *x)
{
	would("RWLOCK_READ", "PIPE_DATA[0,%llu,0]", inode_of(end[1]));
	pthread_rwlock_rdlock(&rwlock); /* main writes */
	close(end[1]);
	pause();
	return x;
}
static void *for_barrier(void *x)
{
	would("BARRIER", "SYSV_SEM[0,%d,0]", semaphores);
	pthread_barrier_wait(&barrier);
	semop(semaphores, &(struct sembuf){0, 1, 0}, 1);
	pause();
	return x;
}
static void *for_join(void *x)
{
	would("JOIN", "SIGNAL[%d,0,0]", getpid());
	pthread_join(never_ends, NULL);
	kill(getpid(), SIGUSR2);
	pause();
	return x;
}
static void *for_data(void *x)
{
	char byte;
	would("READ", "SYSV_QUEUE[0,%d,0]", queue);
	if (read(empty[0], &byte, 1) == 1)
		msgsnd(queue, &(long[2]){1, 1}, 4, 0);
	pause();
	return x;
}
static void *for_room(void *x)
{
	static char much[1 << 17];
	struct stat s;
	fstat(file_fd, &s);
	would("WRITE", "FILE_LOCK[%u,%llu,0]", major(s.st_dev) << 20 | minor(s.st_dev),
		(unsigned long long)s.st_ino);
	if (write(full[1], much, sizeof much) == sizeof much)
		flock(file_fd, LOCK_UN);
	pause();
	return x;
}
static void *for_word(void *x)
{
	would("FUTEX", "PROCESS_EXIT[0,%d,0]", getpid());
	while (!word)
		syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
	_exit(0);
	return x;
}
static void *that_never_ends(void *x)
{
	pause();
	return x;
}

static void *spins(void *x)
{
	pthread_spin_lock(&spin_b);
	would("SPIN", "SPIN[%d,0,%llu]", getpid(), futex_of((void *)&spin_b));
	while (waiting < 2)
		;
	pthread_spin_lock(&spin_a);
	pthread_spin_unlock(&spin_a);
	pthread_spin_unlock(&spin_b);
	return x;
}
static void *spins_too(void *x)
{
	pthread_spin_lock(&spin_a);
	would("SPIN", "SPIN[%d,0,%llu]", getpid(), futex_of((void *)&spin_a));
	while (waiting < 2)
		;
	pthread_spin_lock(&spin_b);
	pthread_spin_unlock(&spin_b);
	pthread_spin_unlock(&spin_a);
	return x;
}

static void start(void *(*run)(void *))
{
	pthread_t t;
	const int before = waiting;
	pthread_create(&t, NULL, run, NULL);
	while (waiting == before)
		usleep(1000);
	if (run != spins && run != spins_too)
		until_others_sleep(); /* the next one waits behind this one */
}

int main(int argc, char **argv)
{
	char byte, path[] = "/tmp/deadlock-waits-XXXXXX";
	(void)argv;
	pthread_spin_init(&spin_a, 0);
	pthread_spin_init(&spin_b, 0);
	pthread_barrier_init(&barrier, NULL, 2);
	sem_init(&semaphore, 0, 0);
	sem_init(&last_semaphore, 0, 0);
	pthread_mutex_lock(&first);
	pthread_rwlock_wrlock(&rwlock);
	event_fd = eventfd(0, 0);
	semaphores = semget(IPC_PRIVATE, 1, 0600);
	semctl(semaphores, 0, SETVAL, 0);
	queue = msgget(IPC_PRIVATE, 0600);
	file_fd = mkstemp(path);
	if (pipe(greeting) || pipe(end) || pipe(empty) || pipe(full) || file_fd < 0 ||
		flock(file_fd, LOCK_EX))
		return 2;
	unlink(path);
	if (argc > 1) {
		start(spins);
		start(spins_too);
	} else {
		void *(*const waits[])(void *) = {for_mutex, behind_mutex, for_semaphore,
			behind_semaphore, for_condition, for_rwlock, for_barrier, for_join,
			for_data, for_room, for_word};
		pthread_create(&never_ends, NULL, that_never_ends, NULL);
		for (size_t i = 0; i < sizeof waits / sizeof *waits; i++)
			start(waits[i]);
	}
	printf("READY %d\n", getpid());
	fflush(stdout);
	while (read(0, &byte, 1) > 0)
		;
	semctl(semaphores, 0, IPC_RMID);
	msgctl(queue, IPC_RMID, NULL);
	_exit(0);
}
