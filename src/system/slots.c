/* SPDX-License-Identifier: Apache-2.0 */
/* slots.c - the loader of bpf/slots.bpf.c. Without libbpf or clang it only says so. */
#include "system/slots.h"

#include "config.h"
#include "counter/counter_priv.h"
#include "counter/slots.h"

#include <stdio.h>

#if !LONGPOLE_BPF

struct system_slots *system_slots_open(char why[SYSTEM_SLOTS_WHY])
{
	snprintf(why, SYSTEM_SLOTS_WHY,
		"longpole was built without BPF (libbpf-dev and clang were missing)");
	return NULL;
}

struct system_slots *system_slots_close(struct system_slots *s)
{
	return s;
}

void system_slots_environment(const struct system_slots *s, char ret[SYSTEM_SLOTS_ENV_BYTES])
{
	(void)s;
	*ret = 0;
}

bool system_slots_register(struct system_slots *s, pid_t tid)
{
	(void)s, (void)tid;
	return false;
}

bool system_slots_take(struct system_slots *s, pid_t tid, uint64_t *ret_kernel_ns,
	uint64_t *ret_calls, uint32_t *ret_lost)
{
	(void)s, (void)tid;
	*ret_kernel_ns = *ret_calls = *ret_lost = 0;
	return false;
}

#else

#include "slots_bpf_code.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PROGRAMS_MAX = 4 };

struct system_slots {
	struct bpf_object *object;
	struct bpf_link *link[PROGRAMS_MAX];
	struct counter_slot *slot;
	int map_fd;
	pid_t pid; /* the thread that has it: not always the one that asks */
};

static bool slots_refuse(char why[SYSTEM_SLOTS_WHY], const char *what, int error)
{
	snprintf(why, SYSTEM_SLOTS_WHY, "%s: %s%s", what, strerror(error < 0 ? -error : error),
		error == -EPERM || error == EPERM ? " (needs root)" : "");
	return false;
}

static bool slots_load(struct system_slots *s, char why[SYSTEM_SLOTS_WHY])
{
	struct bpf_object_open_opts opts = {.sz = sizeof opts, .object_name = "longpole_slots"};
	struct bpf_program *program;
	size_t nr = 0;
	s->object = bpf_object__open_mem(slots_bpf_code, sizeof slots_bpf_code, &opts);
	if (!s->object)
		return slots_refuse(why, "opening the BPF object", errno);
	int error = bpf_object__load(s->object);
	if (error)
		return slots_refuse(why, "loading BPF programs", error);
	const struct bpf_map *map = bpf_object__find_map_by_name(s->object, "slots");
	s->map_fd = map ? bpf_map__fd(map) : -1;
	void *memory = mmap(NULL, (size_t)COUNTER_SLOTS_NR * COUNTER_SLOT_BYTES,
		PROT_READ | PROT_WRITE, MAP_SHARED, s->map_fd, 0);
	if (memory == MAP_FAILED)
		return slots_refuse(why, "mapping the slots", errno);
	s->slot = memory;
	bpf_object__for_each_program(program, s->object)
	{
		struct bpf_link *link = nr < PROGRAMS_MAX ? bpf_program__attach(program) : NULL;
		if (!link)
			return slots_refuse(why, "attaching to tracepoints", errno);
		s->link[nr++] = link;
	}
	return true;
}

struct system_slots *system_slots_open(char why[SYSTEM_SLOTS_WHY])
{
	struct system_slots *s = base_alloc(sizeof *s);
	if (!s) {
		snprintf(why, SYSTEM_SLOTS_WHY, "no memory");
		return NULL;
	}
	s->pid = getpid();
	libbpf_set_print(NULL); /* libraries do not print */
	libbpf_set_strict_mode(LIBBPF_STRICT_ALL);
	if (slots_load(s, why))
		return s;
	return system_slots_close(s);
}

struct system_slots *system_slots_close(struct system_slots *s)
{
	if (!s)
		return NULL;
	for (size_t i = 0; i < PROGRAMS_MAX; i++)
		bpf_link__destroy(s->link[i]);
	if (s->slot)
		munmap(s->slot, (size_t)COUNTER_SLOTS_NR * COUNTER_SLOT_BYTES);
	bpf_object__close(s->object);
	base_free(s);
	return NULL;
}

void system_slots_environment(const struct system_slots *s, char ret[SYSTEM_SLOTS_ENV_BYTES])
{
	snprintf(ret, SYSTEM_SLOTS_ENV_BYTES, "%d:%d", (int)s->pid, s->map_fd);
}

static struct counter_slot *slots_slot_of(const struct system_slots *s, pid_t tid)
{
	return &s->slot[(uint32_t)tid & (COUNTER_SLOTS_NR - 1)];
}

bool system_slots_register(struct system_slots *s, pid_t tid)
{
	struct counter_slot *slot = slots_slot_of(s, tid);
	if (slot->tid && slot->tid != (uint32_t)tid)
		return false;
	*slot = (struct counter_slot){0};
	__atomic_store_n(&slot->tid, (uint32_t)tid, __ATOMIC_RELEASE);
	return true;
}

bool system_slots_take(struct system_slots *s, pid_t tid, uint64_t *ret_kernel_ns,
	uint64_t *ret_calls, uint32_t *ret_lost)
{
	struct counter_slot *slot = slots_slot_of(s, tid);
	*ret_kernel_ns = *ret_calls = *ret_lost = 0;
	if (slot->tid != (uint32_t)tid)
		return false;
	*ret_kernel_ns = slot->kernel_ns;
	*ret_calls = slot->calls;
	*ret_lost = slot->lost;
	__atomic_store_n(&slot->tid, 0, __ATOMIC_RELEASE);
	return true;
}

#endif
