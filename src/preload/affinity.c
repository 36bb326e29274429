/* SPDX-License-Identifier: Apache-2.0 */
/*
 * affinity.c - processors that a program limits its threads to. What it began with, and
 * what others do to it, the session sees from outside.
 */
#include "preload/preload.h"
#include "preload/affinity.h"
#include "preload/real.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/syscall.h>

enum { AFFINITY_NUMBERS = 4096, NUMBER_DIGITS = 5 };

struct affinity_list {
	char text[RING_AFFINITY_MAX];
	size_t bytes;
	bool full;
};

static void affinity_put(struct affinity_list *list, const char *text, size_t bytes)
{
	if (list->bytes + bytes > sizeof list->text) {
		list->full = true;
		return;
	}
	memcpy(list->text + list->bytes, text, bytes);
	list->bytes += bytes;
}

static void affinity_put_number(struct affinity_list *list, size_t number)
{
	char digits[NUMBER_DIGITS];
	size_t at = sizeof digits;
	do {
		digits[--at] = (char)('0' + number % 10);
		number /= 10;
	} while (number && at);
	affinity_put(list, digits + at, sizeof digits - at);
}

static bool affinity_has(const unsigned char *mask, size_t bytes, size_t number)
{
	return number / 8 < bytes && mask[number / 8] >> number % 8 & 1;
}

/* As the kernel writes it: "0-3,8". */
static void affinity_list(struct affinity_list *list, const void *mask, size_t bytes)
{
	list->bytes = 0;
	list->full = false;
	for (size_t first = 0; first < AFFINITY_NUMBERS && first < bytes * 8; first++) {
		size_t last = first;
		if (!affinity_has(mask, bytes, first))
			continue;
		while (last + 1 < AFFINITY_NUMBERS && affinity_has(mask, bytes, last + 1))
			last++;
		if (list->bytes)
			affinity_put(list, ",", 1);
		affinity_put_number(list, first);
		if (last > first) {
			affinity_put(list, "-", 1);
			affinity_put_number(list, last);
		}
		first = last;
	}
}

/* A list that is too long for a record is not told: nothing is then known of that thread. */
static void affinity_tell(unsigned whose, uint64_t id, const void *mask, size_t bytes)
{
	struct affinity_list list;
	int saved_errno = errno;
	uint64_t most = preload_ring.affinity_bytes;
	affinity_list(&list, mask, bytes < most ? bytes : (size_t)most);
	if (list.full)
		list.bytes = 0;
	preload_record_text(
		RING_affinity, (const uint64_t[]){whose, id, list.bytes}, 3, list.text, list.bytes);
	errno = saved_errno;
}

void preload_affinity_of_new(const pthread_attr_t *attributes, uint64_t token)
{
	cpu_set_t mask;
	if (!attributes || !preload_active() ||
		PRELOAD_REAL(pthread_attr_getaffinity_np)(attributes, sizeof mask, &mask))
		return;
	/* (libc says "all" of attributes that say nothing) */
	for (size_t i = 0; i < sizeof mask; i++) {
		if (((const unsigned char *)&mask)[i] != 0xff) {
			affinity_tell(TRACE_WHOSE_token, token, &mask, sizeof mask);
			return;
		}
	}
}

/* What a thread has now: a mask is cut to the processors that its cpuset has. Where that cannot be
 * asked for it is what the program said. */
static void affinity_tell_rest(
	unsigned whose, uint64_t id, long nr_left, const void *left, const void *mask, size_t bytes)
{
	if (nr_left > 0)
		affinity_tell(whose, id, left, (size_t)nr_left);
	else
		affinity_tell(whose, id, mask, bytes);
}

static void affinity_tell_of(long tid, const void *mask, size_t bytes)
{
	uint64_t left[RING_AFFINITY_MAX / sizeof(uint64_t)];
	long nr_left =
		preload_syscall(SYS_sched_getaffinity, tid, sizeof left, (long)left, 0, 0, 0);
	affinity_tell_rest(
		tid ? TRACE_WHOSE_tid : TRACE_WHOSE_own, (uint64_t)tid, nr_left, left, mask, bytes);
}

static void affinity_tell_thread(pthread_t thread, const void *mask, size_t bytes)
{
	cpu_set_t left;
	int saved_errno = errno;
	bool known = !preload_sandbox.no_calls &&
		     pthread_getaffinity_np(thread, sizeof left, &left) == 0;
	affinity_tell_rest(TRACE_WHOSE_handle, (uint64_t)thread, known ? (long)sizeof left : 0,
		&left, mask, bytes);
	errno = saved_errno;
}

PRELOAD_EXPORT int sched_setaffinity(pid_t tid, size_t bytes, const cpu_set_t *mask)
{
	int result = PRELOAD_REAL(sched_setaffinity)(tid, bytes, mask);
	if (result == 0 && preload_active())
		affinity_tell_of(tid, mask, bytes);
	return result;
}

PRELOAD_EXPORT int pthread_setaffinity_np(pthread_t thread, size_t bytes, const cpu_set_t *mask)
{
	int result = PRELOAD_REAL(pthread_setaffinity_np)(thread, bytes, mask);
	if (result == 0 && preload_active())
		affinity_tell_thread(thread, mask, bytes);
	return result;
}

/* Called in the place of syscall(SYS_sched_setaffinity, ...): libnuma does. */
long preload_affinity_call(long number, long tid, long bytes, long mask)
{
	long result = preload_syscall_of_program(number, tid, bytes, mask, 0, 0, 0);
	if (result < 0) {
		errno = (int)-result;
		return -1;
	}
	if (preload_active())
		affinity_tell_of(tid, (const void *)mask, (size_t)bytes);
	return result;
}
