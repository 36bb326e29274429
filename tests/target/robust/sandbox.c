/* SPDX-License-Identifier: Apache-2.0 */
/* What processes forbid themselves: system calls by a filter (prctl, syscall), nearly all of them,
 * the time stamp counter; a filter that is not installed after all; programs that begin in a
 * sandbox. */
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int count;

static void *work(void *unused)
{
	for (int i = 0; i < 10000; i++) {
		pthread_mutex_lock(&lock);
		count++;
		pthread_mutex_unlock(&lock);
	}
	return unused;
}

static int with_threads(void)
{
	pthread_t thread[3];
	for (int i = 0; i < 3; i++)
		pthread_create(&thread[i], NULL, work, NULL);
	for (int i = 0; i < 3; i++)
		pthread_join(thread[i], NULL);
	return count == 30000 ? 0 : 1;
}

/* Past all libraries. */
static long kernel(long number, long a, long b, long c, long d, long e)
{
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	long result;
	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8)
			 : "rcx", "r11", "memory");
	return result;
}

/* Ends the process at what longpole might ask and this program does not; unseen: by the kernel's
 * own call, and what the next program's loader needs is allowed. */
enum way { BY_PRCTL, BY_SYSCALL, UNSEEN };
static void forbid(enum way how)
{
	static const int call[] = {SYS_getpid, SYS_gettid, SYS_getppid, SYS_clock_gettime, SYS_open,
		SYS_readlink, SYS_fcntl, SYS_stat, SYS_getsockopt, SYS_geteuid, SYS_openat};
	const unsigned nr = sizeof call / sizeof *call - (how == UNSEEN);
	struct sock_filter filter[2 * sizeof call / sizeof *call + 2];
	unsigned n = 0;
	filter[n++] = (struct sock_filter)BPF_STMT(
		BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
	for (unsigned i = 0; i < nr; i++) {
		filter[n++] = (struct sock_filter)BPF_JUMP(
			BPF_JMP | BPF_JEQ | BPF_K, (unsigned)call[i], 0, 1);
		filter[n++] =
			(struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
	}
	filter[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	struct sock_fprog program = {(unsigned short)n, filter};
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	if (how == UNSEEN ? kernel(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, (long)&program, 0, 0)
		: how == BY_SYSCALL ? syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program)
				    : prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		_exit(2);
}

static int by_prctl(void)
{
	forbid(BY_PRCTL);
	return with_threads();
}

static int by_syscall(void)
{
	forbid(BY_SYSCALL);
	int ends[2];
	char c = 1;
	if (pipe(ends) || write(ends[1], &c, 1) != 1 || read(ends[0], &c, 1) != 1)
		return 1;
	return with_threads();
}

static int forks(void)
{
	int status = 1;
	forbid(BY_PRCTL);
	pid_t child = fork();
	if (child == 0)
		_exit(with_threads());
	waitpid(child, &status, 0);
	return status;
}

/* The program that it becomes finds the filter. */
static int begins(void)
{
	static char name[] = "sandbox", inner[] = "inner";
	char *arguments[] = {name, inner, NULL};
	forbid(UNSEEN);
	kernel(SYS_execve, (long)"/proc/self/exe", (long)arguments, (long)environ, 0, 0);
	return 4;
}

static int strict(void)
{
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT))
		return 2;
	work(NULL);
	syscall(SYS_exit, count == 10000 ? 0 : 1);
	return 1;
}

/* Calls whose durations a recorder wants, each for once. */
static int various(void)
{
	struct timespec tick = {0, 1000};
	struct timeval none = {0};
	struct flock whole = {.l_type = F_WRLCK};
	pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
	pthread_rwlock_t both = PTHREAD_RWLOCK_INITIALIZER;
	sem_t empty;
	int ends[2];
	char text[8] = "text";
	FILE *f = tmpfile();
	struct pollfd ready = {.events = POLLIN};
	if (!f || pipe(ends))
		return 1;
	ready.fd = ends[0];
	sem_init(&empty, 0, 0);
	sem_timedwait(&empty, &tick);
	pthread_mutex_lock(&lock);
	pthread_cond_timedwait(&changed, &lock, &tick);
	pthread_mutex_unlock(&lock);
	pthread_rwlock_rdlock(&both);
	pthread_rwlock_unlock(&both);
	poll(&ready, 1, 0);
	select(0, NULL, NULL, NULL, &none);
	nanosleep(&tick, NULL);
	fcntl(fileno(f), F_SETLK, &whole);
	fwrite(text, 1, 4, f);
	fflush(f);
	fsync(fileno(f));
	int written = write(ends[1], text, 4), got = read(ends[0], text, 8);
	fclose(f);
	return written != 4 || got != 4 || access("/", R_OK) || waitpid(-1, NULL, WNOHANG) != -1;
}

static int no_clock(void)
{
	work(NULL); /* (so that this thread is known) */
	count = 0;
	prctl(PR_SET_TSC, PR_TSC_SIGSEGV);
	if (various())
		return 3;
	pid_t child = fork();
	if (child == 0)
		_exit(with_threads());
	int status = 1;
	waitpid(child, &status, 0);
	return status ? status : with_threads();
}

static int refused(void)
{
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, NULL) == 0 || with_threads();
}

int main(int argc, char **argv)
{
	(void)argv;
	if (argc > 1)
		return with_threads();
	static int (*const way[])(void) = {
		by_prctl, by_syscall, forks, strict, no_clock, refused, begins};
	for (unsigned i = 0; i < sizeof way / sizeof *way; i++) {
		int status = -1;
		pid_t child = fork();
		if (child == 0)
			_exit(way[i]());
		waitpid(child, &status, 0);
		printf("%u: %x\n", i, (unsigned)status);
	}
	return 0;
}
