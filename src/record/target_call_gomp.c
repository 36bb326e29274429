/* SPDX-License-Identifier: Apache-2.0 */
/* target_call_gomp.c - OpenMP, as gcc calls libgomp: a parallel region is a spawn and a join. */
#include "record/target.h"

enum {
	CALL_SPAWN = 0x01,
	CALL_JOIN = 0x02,
	CALL_BARRIER = 0x03,
	CALL_BEGIN_CRITICAL = 0x06,
	CALL_END_CRITICAL = 0x07
};

#define AT   TARGET_EXPORT __attribute__((noinline))
#define WEAK __attribute__((weak))

void GOMP_parallel(void (*f)(void *), void *data, unsigned nr_threads, unsigned flags) WEAK;
void GOMP_barrier(void) WEAK;
void GOMP_critical_start(void) WEAK;
void GOMP_critical_end(void) WEAK;
int omp_get_max_threads(void) WEAK;
int omp_get_num_threads(void) WEAK;
int omp_get_level(void) WEAK;
int omp_get_thread_num(void) WEAK;

struct region {
	void (*f)(void *);
	void *data;
	uint64_t number;
};

/* Its workers come to the join as well: what they do afterwards is of another region. */
static void work(void *argument)
{
	const struct region *r = argument;
	uint64_t number = r->number; /* the join may be over before we are */
	r->f(r->data);
	if (!omp_get_thread_num || !omp_get_thread_num())
		return;
	longpole_target_call(CALL_JOIN, target_call_ticks(), target_call_ticks(), number, 0, 0, 0);
	longpole_target_let_see(true);
}

void longpole_at_GOMP_parallel(void (*f)(void *), void *data, unsigned nr_threads, unsigned flags);
AT void longpole_at_GOMP_parallel(
	void (*f)(void *), void *data, unsigned nr_threads, unsigned flags)
{
	uint64_t now = target_call_ticks(), region = (uint64_t)(uintptr_t)f;
	bool outer = !omp_get_level || omp_get_level() == 0;
	uint64_t nr = nr_threads            ? nr_threads
		      : omp_get_max_threads ? (uint64_t)omp_get_max_threads()
					    : 0;
	if (!outer) {
		GOMP_parallel(f, data, nr_threads, flags);
		return;
	}
	struct region own = {f, data, region};
	longpole_target_call(CALL_SPAWN, now, now, region, nr, 0, 0);
	longpole_target_let_see(false);
	GOMP_parallel(work, &own, nr_threads, flags);
	longpole_target_call(CALL_JOIN, target_call_ticks(), target_call_ticks(), region, nr, 0, 0);
}

void longpole_at_GOMP_barrier(void);
AT void longpole_at_GOMP_barrier(void)
{
	longpole_target_let_see(true);
	uint64_t before = target_call_ticks();
	GOMP_barrier();
	longpole_target_call(CALL_BARRIER, before, target_call_ticks(), 0,
		omp_get_num_threads ? (uint64_t)omp_get_num_threads() : 0, 0, 0);
}

void longpole_at_GOMP_critical_start(void);
AT void longpole_at_GOMP_critical_start(void)
{
	uint64_t before = target_call_ticks();
	GOMP_critical_start();
	longpole_target_call(CALL_BEGIN_CRITICAL, before, target_call_ticks(), 0, 0, 0, 0);
}

void longpole_at_GOMP_critical_end(void);
AT void longpole_at_GOMP_critical_end(void)
{
	uint64_t now = target_call_ticks();
	longpole_target_call(CALL_END_CRITICAL, now, now, 0, 0, 0, 0);
	GOMP_critical_end();
}
