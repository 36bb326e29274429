/* SPDX-License-Identifier: Apache-2.0 */
/*
 * roles.h - what the programs for the system recorder share. Each is one wake-up of one kind, again
 * and again, between a few roles. A role is a thread or process that carries its name (comm), so
 * that a recorder that knows nothing of the program but what the kernel says can be asked about it.
 * The main thread is always the role `waiter`: the path that ends with it is the one to judge.
 * Only raw system calls make roles wait for each other: libc's own calls would be seen by the
 * preload library, too.
 */
#ifndef LONGPOLE_TESTS_SYSTEM_ROLES_H
#define LONGPOLE_TESTS_SYSTEM_ROLES_H

#include <arpa/inet.h>
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../target.h"

enum { ROLE_SKIP = 77 }; /* exit status: this machine cannot do it; why is on standard error */

static inline void role_is(const char *name)
{
	target_must(!pthread_setname_np(pthread_self(), name), "pthread_setname_np");
}

static inline void role_work(uint64_t us)
{
	volatile uint64_t keep;
	uint64_t sum = us;
	TARGET_WORK(sum, us);
	keep = sum;
	(void)keep;
}

/* Runs `run` as a process of its own. */
static inline pid_t role_process(const char *name, void (*run)(void))
{
	pid_t pid = fork();
	target_must(pid >= 0, "fork");
	if (pid)
		return pid;
	role_is(name);
	run();
	_exit(0);
}

static inline void role_reap(pid_t pid)
{
	int status = 0;
	target_must(waitpid(pid, &status, 0) == pid && !status, "waitpid");
}

static inline void role_pin(size_t processor)
{
	cpu_set_t set;
	CPU_ZERO(&set);
	CPU_SET(processor, &set);
	target_must(!sched_setaffinity(0, sizeof(set), &set), "sched_setaffinity");
}

/* Memory that forked processes share. */
static inline void *role_shared(size_t size_bytes)
{
	void *p = mmap(NULL, size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	target_must(p != MAP_FAILED, "mmap");
	return p;
}

static inline void role_sleep(long us)
{
	struct timespec t = {.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000};
	while (syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &t, &t))
		;
}

/* Until *word is other than `value`. */
static inline void role_futex_wait(uint32_t *word, uint32_t value)
{
	while (__atomic_load_n(word, __ATOMIC_ACQUIRE) == value)
		syscall(SYS_futex, word, FUTEX_WAIT, value, NULL, NULL, 0);
}

static inline void role_futex_set(uint32_t *word, uint32_t value)
{
	__atomic_store_n(word, value, __ATOMIC_RELEASE);
	syscall(SYS_futex, word, FUTEX_WAKE, 1, NULL, NULL, 0);
}

/* ---- asking a worker ------------------------------------------------------------------------- */

/* A unit through a descriptor of whichever kind: raw, eight bytes. */
static inline void role_give(int fd)
{
	uint64_t one = 1;
	target_must(syscall(SYS_write, fd, &one, sizeof(one)) == sizeof(one), "write");
}

static inline void role_take(int fd)
{
	uint64_t got = 0;
	target_must(syscall(SYS_read, fd, &got, sizeof(got)) == sizeof(got), "read");
}

/* A connection over the loopback device. */
static inline void role_tcp_pair(int ret[2])
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t length = sizeof(at);
	int listener = socket(AF_INET, SOCK_STREAM, 0);
	ret[0] = socket(AF_INET, SOCK_STREAM, 0);
	target_must(!bind(listener, (struct sockaddr *)&at, sizeof(at)), "bind");
	target_must(!listen(listener, 1), "listen");
	target_must(!getsockname(listener, (struct sockaddr *)&at, &length), "getsockname");
	target_must(!connect(ret[0], (struct sockaddr *)&at, sizeof(at)), "connect");
	ret[1] = accept(listener, NULL, NULL);
	target_must(ret[1] >= 0, "accept");
	close(listener);
}

/* What all programs that ask are told. */
struct role_ask {
	uint64_t rounds, work_us;
};

/* argv must be allowed to have "--rounds --work-us" as well. */
static inline struct role_ask role_waiter(int argc, char **argv)
{
	role_is("waiter");
	return (struct role_ask){.rounds = target_number(argc, argv, "--rounds", 200),
		.work_us = target_number(argc, argv, "--work-us", 1000)};
}

#endif
