/* SPDX-License-Identifier: Apache-2.0 */
/*
 * misuse - uses annotations wrongly, each mistake on a line that says so, a known number of times;
 * `longpole coach` has to find each once, on that line. coached.py reads the comments:
 * MISUSE: the check's name and how often.
 */
#include <pthread.h>
#include <time.h>

#include "longpole/annotate.h"
#include "target.h"

/* Longer than what may pass between a look at a queue and the word about it. */
static void pause_a_while(void)
{
	nanosleep(&(struct timespec){.tv_nsec = 1000 * 1000}, NULL);
}

static void take_what_is_not_there(int times)
{
	for (int i = 0; i < times; i++)
		longpole_dequeue("orders", 0, 2, 0); /* MISUSE: take_empty 5 */
	longpole_peek("orders", 0, 1, 0);            /* MISUSE: peek_empty 1 */
}

static void wait_without_need(int times)
{
	longpole_enqueue("parcels", 0, 3, 0);
	pause_a_while();
	for (int i = 0; i < times; i++) {
		longpole_wait_empty("parcels", 0, 1, 0); /* MISUSE: wait_has_units 2 */
		longpole_dequeue("parcels", 0, 1, 0);
		pause_a_while();
	}
	longpole_dequeue_all("parcels", 0, 0);
	pause_a_while();
	longpole_wait_full("parcels", 0, 1, 0); /* MISUSE: wait_has_space 1 */
	longpole_enqueue("parcels", 0, 1, 0);
}

static void wait_again_and_again(int times)
{
	for (int i = 0; i < times; i++)
		longpole_wait_empty("letters", 0, 1, 0); /* MISUSE: wait_twice 3 */
	longpole_state("give up", 0);
	longpole_wait_empty("stamps", 0, 1, 0); /* MISUSE: wait_not_taken 1 */
}

static void *deliver(void *arg)
{
	longpole_enqueue("stamps", 0, 1, 0);
	return arg;
}

static void nest_wrongly(void)
{
	longpole_begin("outer", 0, 0);
	longpole_begin("inner", 0, 0);
	longpole_state("in both", 0);
	longpole_end("outer"); /* MISUSE: end_other 1 */
	longpole_end("inner");
	longpole_end("outer");
	longpole_state("in none", 0);
	longpole_end("outer"); /* MISUSE: end_without_begin 1 */
}

int main(int argc, char **argv)
{
	pthread_t courier;
	target_check(argc, argv, "");
	take_what_is_not_there(5);
	wait_without_need(2);
	longpole_assert_size("parcels", 0, 9); /* MISUSE: assert_failed 1 */
	wait_again_and_again(4);
	target_must(!pthread_create(&courier, NULL, deliver, NULL), "pthread_create");
	pthread_join(courier, NULL);
	longpole_state("go on", 0);
	for (int i = 0; i < 2; i++)
		longpole_state("lost", LONGPOLE_SUSPECT); /* MISUSE: suspect_state 2 */
	nest_wrongly();
	target_print(0);
	return 0;
}
