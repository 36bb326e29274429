/* SPDX-License-Identifier: Apache-2.0 */
/*
 * preload_real.h - the functions that we wrap, as the next library in the search order defines
 * them. PRELOAD_REAL(read)(fd, buffer, n) calls one.
 */
#ifndef LONGPOLE_RECORD_PRELOAD_REAL_H
#define LONGPOLE_RECORD_PRELOAD_REAL_H

#include "record/preload.h"

#include <aio.h>
#include <dirent.h>
#include <mqueue.h>
#include <netdb.h>
#include <poll.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/msg.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <threads.h>
#include <time.h>
#include <wchar.h>

struct preload_real {
#define REAL(result, name, parameters) result(*name) parameters;
#include "record/preload_real.def"
};
extern struct preload_real preload_real;

void preload_real_find(void);             /* all of them */
void preload_real_find_at(size_t offset); /* the one at that offset of struct preload_real */

/* Usually found by the constructor; a wrapper may be called before, even from inside dlsym(). */
#define PRELOAD_REAL(name)                                                                         \
	(*({                                                                                       \
		if (PRELOAD_RARE(!preload_real.name))                                              \
			preload_real_find_at(offsetof(struct preload_real, name));                 \
		preload_real.name;                                                                 \
	}))

/*
 * The hottest ones are bound by the linker to names of glibc that nobody interposes: one indirect
 * call, and there is nothing to find before the first use.
 */
#ifdef PRELOAD_STATIC
#define PRELOAD_BOUND(name) __asm__("__real_pthread_" #name)
#else
#define PRELOAD_BOUND(name)
#endif
int preload_real_mutex_lock(pthread_mutex_t *mutex) PRELOAD_BOUND(mutex_lock);
int preload_real_mutex_trylock(pthread_mutex_t *mutex) PRELOAD_BOUND(mutex_trylock);
int preload_real_mutex_unlock(pthread_mutex_t *mutex) PRELOAD_BOUND(mutex_unlock);
#ifndef PRELOAD_STATIC
__asm__(".symver preload_real_mutex_lock, __pthread_mutex_lock@GLIBC_2.2.5\n"
	".symver preload_real_mutex_trylock, __pthread_mutex_trylock@GLIBC_2.2.5\n"
	".symver preload_real_mutex_unlock, __pthread_mutex_unlock@GLIBC_2.2.5\n");
#endif

#endif
