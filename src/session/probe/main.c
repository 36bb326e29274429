/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probe_program.c - longpole-probe: does one thing so many times and nothing else. Run with and
 * without the recorder's library it says what the library adds to that thing (session/probe.c).
 */
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static void *probe_nothing(void *unused)
{
	return unused;
}

/* Itself, which then does nothing. */
static void probe_starts(unsigned long nr)
{
	char self[4096], name[] = "starts", none[] = "0", *word[] = {self, name, none, NULL};
	ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
	pid_t child;
	self[n > 0 ? n : 0] = 0;
	for (unsigned long i = 0; i < nr; i++)
		if (!posix_spawn(&child, self, NULL, NULL, word, environ))
			waitpid(child, NULL, 0);
}

static void probe_threads(unsigned long nr)
{
	pthread_t thread;
	for (unsigned long i = 0; i < nr; i++)
		if (!pthread_create(&thread, NULL, probe_nothing, NULL))
			pthread_join(thread, NULL);
}

static void probe_forks(unsigned long nr)
{
	for (unsigned long i = 0; i < nr; i++) {
		pid_t child = fork();
		if (!child)
			_exit(0); /* allowed: a child of its own */
		if (child > 0)
			waitpid(child, NULL, 0);
	}
}

enum { LOCKS = 64, LOCKERS = 2 };

struct locker {
	pthread_mutex_t *lock; /* LOCKS */
	unsigned long nr;
	unsigned random;
};

static void *probe_lock(void *arg)
{
	struct locker *l = arg;
	for (unsigned long i = 0; i < l->nr; i++) {
		l->random = l->random * 1103515245 + 12345;
		pthread_mutex_t *lock = &l->lock[l->random >> 16 & (LOCKS - 1)];
		pthread_mutex_lock(lock);
		pthread_mutex_unlock(lock);
	}
	return NULL;
}

/* As programs that lock often do it: threads share many locks, and seldom meet. */
static void probe_locks(unsigned long nr)
{
	pthread_mutex_t lock[LOCKS];
	pthread_t thread[LOCKERS];
	struct locker locker[LOCKERS];
	for (int i = 0; i < LOCKS; i++)
		pthread_mutex_init(&lock[i], NULL);
	for (unsigned i = 0; i < LOCKERS; i++) {
		locker[i] = (struct locker){.lock = lock, .nr = nr / LOCKERS, .random = i * 77};
		if (pthread_create(&thread[i], NULL, probe_lock, &locker[i]))
			_exit(3); /* allowed: our own program */
	}
	for (unsigned i = 0; i < LOCKERS; i++)
		pthread_join(thread[i], NULL);
}

enum { PAGES = 64, PAGE = 4096 };

/* As programs that read and write much do it: from and to one place of a file or another. */
static void probe_calls(unsigned long nr)
{
	static char page[PAGE];
	unsigned random = 77;
	int file = memfd_create("probe", MFD_CLOEXEC);
	for (unsigned i = 0; i < PAGES; i++)
		if (pwrite(file, page, PAGE, (off_t)i * PAGE) != PAGE)
			_exit(3); /* allowed: our own program */
	for (unsigned long i = 0; i < nr; i++) {
		random = random * 1103515245 + 12345;
		off_t at = (off_t)(random >> 16 & (PAGES - 1)) * PAGE;
		if ((i & 1 ? pread(file, page, PAGE, at) : pwrite(file, page, PAGE, at)) != PAGE)
			_exit(3); /* allowed: our own program */
	}
}

/* One that is there is taken, and put back. */
static void probe_tokens(unsigned long nr)
{
	sem_t semaphore;
	sem_init(&semaphore, 0, 1);
	for (unsigned long i = 0; i < nr; i++) {
		sem_wait(&semaphore);
		sem_post(&semaphore);
	}
}

/* For nobody: each says that it may wait. */
static void probe_waits(unsigned long nr)
{
	for (unsigned long i = 0; i < nr; i++)
		(void)waitpid(-1, NULL, WNOHANG);
}

/* A file that is opened is looked at when it is used first. */
static void probe_looks(unsigned long nr)
{
	char byte;
	for (unsigned long i = 0; i < nr; i++) {
		int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
		if (file < 0 || pread(file, &byte, 1, 0) != 1)
			_exit(3); /* allowed: our own program */
		close(file);
	}
}

/* Of numbers that nobody has, as before an exec, and of a file that was never used. */
static void probe_ends(unsigned long nr)
{
	int file = open("/dev/null", O_RDONLY | O_CLOEXEC);
	for (unsigned long i = 0; i < nr; i++)
		close(i & 1 ? dup(file) : 1000 + (int)(i & 0xfff));
}

int main(int nr, char **word)
{
	static const struct {
		const char *name;
		void (*run)(unsigned long nr);
	} probe[] = {{"starts", probe_starts}, {"threads", probe_threads}, {"forks", probe_forks},
		{"locks", probe_locks}, {"calls", probe_calls}, {"tokens", probe_tokens},
		{"waits", probe_waits}, {"looks", probe_looks}, {"ends", probe_ends}};
	for (size_t i = 0; nr == 3 && i < sizeof probe / sizeof *probe; i++)
		if (!strcmp(word[1], probe[i].name)) {
			probe[i].run(strtoul(word[2], NULL, 10));
			return 0;
		}
	return 2;
}
