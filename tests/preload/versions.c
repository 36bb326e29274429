/* SPDX-License-Identifier: Apache-2.0 */
/*
 * versions - programs and recorders of different ages. A program with this header meets a recorder
 * from before the item verbs: its table ends where the memory does. Compiled as C and as C++.
 */
#include <longpole/annotate.h>

#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

/* What programs that were compiled long ago rely on. */
#define AT(field, bytes) (offsetof(struct longpole_hooks, field) == (bytes))
enum { OLD_BYTES = 64 };
#ifdef __cplusplus
static_assert(AT(begin, 8) && AT(queue, 32) && AT(get_id, 56) && AT(item, OLD_BYTES), "moved");
#else
_Static_assert(AT(begin, 8) && AT(queue, 32) && AT(get_id, 56) && AT(item, OLD_BYTES), "moved");
#endif

static void queue(enum longpole_verb verb, struct longpole_place *place, uint64_t instance,
	uint64_t n, uint64_t flags)
{
	printf("queue %d %s %d %d %d\n", (int)verb, place->name, (int)instance, (int)n, (int)flags);
}

static void item(enum longpole_verb verb, struct longpole_place *place, uint64_t instance,
	uint64_t key, uint64_t n, uint64_t flags)
{
	printf("item %d %s %d %d %d %d\n", (int)verb, place->name, (int)instance, (int)key, (int)n,
		(int)flags);
}

static void state(struct longpole_place *place, uint64_t flags)
{
	printf("state %s %d\n", place->name, (int)flags);
}

static void queue_state(enum longpole_verb verb, struct longpole_place *place, uint64_t instance,
	uint64_t n, uint64_t flags, struct longpole_place *state_place)
{
	printf("queue_state %d %s %d %d %d %s\n", (int)verb, place->name, (int)instance, (int)n,
		(int)flags, state_place->name);
}

static void act(struct longpole_place *place, uint64_t instance)
{
	printf("act %s %d\n", place->name, (int)instance);
}

static void verbs(void)
{
	longpole_enqueue_item("q", 7, 42, 3, LONGPOLE_PRIORITY);
	longpole_dequeue_item("q", 7, 42, 2, LONGPOLE_END);
	longpole_act("fiber", 5);
	longpole_dequeue_state("q", 7, 1, 0, "busy");
}

int main(void)
{
	struct longpole_hooks all;
	size_t page = 4096;
	char *memory = (char *)mmap(
		NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memset(&all, 0, sizeof all);
	all.queue = queue;
	all.item = item;
	all.act = act;
	all.state = state;
	all.queue_state = queue_state;
	all.bytes = OLD_BYTES;
	memcpy(memory + page - OLD_BYTES, &all, OLD_BYTES);
	mprotect(memory + page, page, PROT_NONE);
	verbs(); /* nobody records */
	longpole_hooks_pointer.now = (const struct longpole_hooks *)(memory + page - OLD_BYTES);
	verbs();
	all.bytes = sizeof all;
	longpole_hooks_pointer.now = &all;
	verbs();
	return 0;
}
