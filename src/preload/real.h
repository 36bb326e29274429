/* SPDX-License-Identifier: Apache-2.0 */
/*
 * real.h - the functions that we wrap, as the next library in the search order defines
 * them. PRELOAD_REAL(read)(fd, buffer, n) calls one.
 */
#ifndef LONGPOLE_PRELOAD_REAL_H
#define LONGPOLE_PRELOAD_REAL_H

#include "preload/preload.h"

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
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <threads.h>
#include <time.h>
#include <wchar.h>

struct preload_real {
#define REAL(result, name, parameters) result(*name) parameters;
#include "preload/real.def"
};
extern struct preload_real preload_real;

void preload_real_find(void); /* those that cannot be found later */
void preload_real_find_all(void);
/* What comes next; where that is libc's, its implementation of that version. */
void *preload_real_find_version(const char *symbol, const char *version);
void preload_real_find_at(size_t offset); /* the one at that offset of struct preload_real */

/* Found when called first, wherever that is: even before our constructor, or inside dlsym(). */
#define PRELOAD_REAL(name)                                                                         \
	(*({                                                                                       \
		if (PRELOAD_RARE(!preload_real.name))                                              \
			preload_real_find_at(offsetof(struct preload_real, name));                 \
		preload_real.name;                                                                 \
	}))

/*
 * The hottest ones: in a static program bound by the linker, else one indirect call. Never by a
 * global name: the program, or a sanitizer that is linked into it, may have functions of glibc's
 * inner names, which call pthread_mutex_lock() again.
 */
#ifdef PRELOAD_STATIC
int preload_real_mutex_lock(pthread_mutex_t *mutex) __asm__("__real_pthread_mutex_lock");
int preload_real_mutex_trylock(pthread_mutex_t *mutex) __asm__("__real_pthread_mutex_trylock");
int preload_real_mutex_unlock(pthread_mutex_t *mutex) __asm__("__real_pthread_mutex_unlock");
enum { preload_mutex_is_wrapped = 0 };
#else
struct preload_mutex_functions {
	int (*lock)(pthread_mutex_t *), (*trylock)(pthread_mutex_t *), (*unlock)(pthread_mutex_t *);
	bool wrapped; /* not libc's own: each lock is to pass there, not only one that waits */
};
/* At first what finds them. (hidden: an extern declaration is reached by way of the GOT else) */
extern struct preload_mutex_functions preload_mutex_functions __attribute__((visibility("hidden")));
#define preload_real_mutex_lock    (*preload_mutex_functions.lock)
#define preload_real_mutex_trylock (*preload_mutex_functions.trylock)
#define preload_real_mutex_unlock  (*preload_mutex_functions.unlock)
#define preload_mutex_is_wrapped   preload_mutex_functions.wrapped
#endif

#endif
