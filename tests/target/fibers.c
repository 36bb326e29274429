/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fibers - two coroutines on one thread, one parses jobs and one draws them, latest deadline last.
 * To a recorder it is one thread that computes; the annotations say which machine it speaks for and
 * that the two take turns on the thread. Known answer: the machine `drawer` in its state `draw`.
 */
#include <pthread.h>
#include <ucontext.h>

#include "longpole/annotate.h"
#include "target.h"

enum { JOBS = 8, STACK_BYTES = 256 * 1024, PARSE_UNITS = 12, DRAW_UNITS = 60 };

static ucontext_t carrier, parser, drawer;
static uint64_t nr_rounds, percent, total;
static bool over;

TARGET_FUNCTION uint64_t parse(uint64_t job, uint64_t units)
{
	TARGET_WORK(job, units);
	return job;
}

TARGET_FUNCTION uint64_t draw(uint64_t job, uint64_t units)
{
	TARGET_WORK(job, units); /* section */
	return job;
}

/* The thread is a token: who leaves it gives it back, who wants it waits for it. */
static void leave_for(ucontext_t *from, ucontext_t *to)
{
	longpole_enqueue("carrier", 0, 1, LONGPOLE_POOL);
	longpole_wait_empty("carrier", 0, 1, LONGPOLE_POOL);
	swapcontext(from, to);
}

static uint64_t deadline_of(uint64_t round, uint64_t job)
{
	return round * JOBS + job * 5 % JOBS;
}

static void run_parser(void)
{
	longpole_act("parser", 0);
	longpole_dequeue("carrier", 0, 1, LONGPOLE_POOL);
	for (uint64_t round = 0; round < nr_rounds; round++) {
		for (uint64_t job = 0; job < JOBS; job++) {
			longpole_state("parse", 0);
			total += parse(job, target_vary(1, round * JOBS + job, PARSE_UNITS));
			longpole_enqueue_item(
				"jobs", 0, deadline_of(round, job), 1, LONGPOLE_PRIORITY);
		}
		leave_for(&parser, &drawer);
		longpole_act("parser", 0);
		longpole_dequeue("carrier", 0, 1, LONGPOLE_POOL);
	}
	over = true;
	leave_for(&parser, &drawer);
	longpole_act("parser", 0);
	longpole_dequeue("carrier", 0, 1, LONGPOLE_POOL);
	longpole_end("parser");
	setcontext(&carrier);
}

static void run_drawer(void)
{
	longpole_act("drawer", 0);
	longpole_wait_empty("carrier", 0, 1, LONGPOLE_POOL);
	longpole_dequeue("carrier", 0, 1, LONGPOLE_POOL);
	for (uint64_t round = 0; !over; round++) {
		for (uint64_t job = 0; job < JOBS; job++) {
			longpole_dequeue_item("jobs", 0, round * JOBS + job, 1, LONGPOLE_PRIORITY);
			longpole_state("draw", 0);
			total += draw(job,
				target_vary(2, round * JOBS + job, DRAW_UNITS) * percent / 100);
			TARGET_PROGRESS("job");
		}
		leave_for(&drawer, &parser);
		longpole_act("drawer", 0);
		longpole_dequeue("carrier", 0, 1, LONGPOLE_POOL);
	}
	leave_for(&drawer, &parser);
}

static void prepare(ucontext_t *fiber, void (*run)(void))
{
	target_must(getcontext(fiber) == 0, "getcontext");
	fiber->uc_stack.ss_sp = malloc(STACK_BYTES);
	fiber->uc_stack.ss_size = STACK_BYTES;
	target_must(fiber->uc_stack.ss_sp, "malloc");
	makecontext(fiber, run, 0);
}

static void *carry(void *unused)
{
	prepare(&parser, run_parser);
	prepare(&drawer, run_drawer);
	longpole_enqueue("carrier", 0, 1, LONGPOLE_POOL);
	swapcontext(&carrier, &parser);
	return unused;
}

int main(int argc, char **argv)
{
	pthread_t thread;
	target_check(argc, argv, "--section-percent --rounds");
	nr_rounds = target_number(argc, argv, "--rounds", 500);
	percent = target_percent(argc, argv);
	target_must(pthread_create(&thread, NULL, carry, NULL) == 0, "pthread_create");
	target_must(pthread_join(thread, NULL) == 0, "pthread_join");
	target_print(total);
	return 0;
}
