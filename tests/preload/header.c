/* SPDX-License-Identifier: Apache-2.0 */
/* header - annotate.h compiles by itself, every verb, with all warnings. */
#include <longpole/annotate.h>

uint64_t every_verb(void *pointer, int number);
uint64_t every_verb(void *pointer, int number)
{
	longpole_begin("machine", pointer, LONGPOLE_LINK);
	longpole_begin("machine", number, 0);
	longpole_state("state", LONGPOLE_SUSPECT);
	longpole_enqueue("queue", pointer, 1, 0);
	longpole_enqueue("queue", number, number, LONGPOLE_LIFO | LONGPOLE_RESET);
	longpole_dequeue("queue", 7u, 1, LONGPOLE_END);
	longpole_dequeue_all("queue", pointer, 0);
	longpole_dequeue_state("queue", pointer, number, LONGPOLE_POOL, "state");
	longpole_peek("queue", pointer, LONGPOLE_ALL, 0);
	longpole_reserve("queue", pointer, 1, 0);
	longpole_resize("queue", pointer, 10, 0);
	longpole_wait_empty("queue", pointer, 1, LONGPOLE_END);
	longpole_wait_full("queue", pointer, 1, 0);
	longpole_assert_size("queue", pointer, 0);
	longpole_enqueue_item("queue", pointer, number, 1, LONGPOLE_PRIORITY);
	longpole_enqueue_item("queue", pointer, pointer, number, LONGPOLE_ANONYMOUS);
	longpole_dequeue_item("queue", pointer, 5u, 1, LONGPOLE_PRIORITY | LONGPOLE_END);
	longpole_enqueue("tokens", 0, 1, LONGPOLE_POOL);
	longpole_act("fiber", pointer);
	longpole_act("fiber", number);
	longpole_link("other", pointer, LONGPOLE_END);
	longpole_link_call();
	if (number)
		longpole_end("machine");
	else
		longpole_identify(0);
	return longpole_get_id();
}
