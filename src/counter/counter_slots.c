/* SPDX-License-Identifier: Apache-2.0 */
/* counter_slots.c - what BPF counts for a thread (bpf/slots.bpf.c), when a longpole with root's
 * rights has loaded it. While a thread is in user mode nothing of its slot changes: a plain load
 * reads it. */
#include "counter/counter_priv.h"
#include "counter/slots.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* All threads of the process read the same memory. */
static struct counter_slot *counter_slots_map;

/* Memory of BPF keeps its size. The loader's number may be another program's by now, whose file of
 * that number is anything. */
static bool counter_slots_is_bpf_map(int fd)
{
	static const char wanted[] = "anon_inode:bpf-map";
	char path[40], text[sizeof wanted] = "";
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	return readlink(path, text, sizeof text) == (ssize_t)sizeof wanted - 1 &&
	       !memcmp(text, wanted, sizeof wanted - 1);
}

static struct counter_slot *map_slots(struct counter_refusal *ret)
{
	const char *place = secure_getenv(COUNTER_SLOTS_ENVIRONMENT);
	char *end = NULL;
	long pid = place ? strtol(place, &end, 10) : 0;
	long fd = end && *end == ':' ? strtol(end + 1, NULL, 10) : -1;
	*ret = (struct counter_refusal){COUNTER_REASON_no_slots, 0};
	if (pid <= 0 || fd < 0)
		return NULL;
	int loader = (int)syscall(SYS_pidfd_open, pid, 0);
	int map = loader >= 0 ? (int)syscall(__NR_pidfd_getfd, loader, fd, 0) : -1;
	void *memory = MAP_FAILED;
	if (map >= 0 && counter_slots_is_bpf_map(map))
		memory = mmap(NULL, (size_t)COUNTER_SLOTS_NR * COUNTER_SLOT_BYTES,
			PROT_READ | PROT_WRITE, MAP_SHARED, map, 0);
	if (memory == MAP_FAILED)
		*ret = (struct counter_refusal){COUNTER_REASON_slots_refused, errno};
	if (map >= 0)
		close(map);
	if (loader >= 0)
		close(loader);
	return memory == MAP_FAILED ? NULL : memory;
}

static struct counter_slot *all_slots(struct counter_refusal *ret)
{
	struct counter_slot *known = __atomic_load_n(&counter_slots_map, __ATOMIC_ACQUIRE);
	if (known)
		return known;
	struct counter_slot *mapped = map_slots(ret);
	if (mapped && !__atomic_compare_exchange_n(&counter_slots_map, &known, mapped, false,
			      __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
		munmap(mapped, (size_t)COUNTER_SLOTS_NR * COUNTER_SLOT_BYTES);
		mapped = known;
	}
	return mapped;
}

const uint64_t *counter_slot_value(bool calls, struct counter_refusal *ret)
{
	uint32_t tid = (uint32_t)syscall(SYS_gettid), none = 0;
	struct counter_slot *slot = all_slots(ret);
	if (!slot)
		return NULL;
	slot += tid & (COUNTER_SLOTS_NR - 1);
	if (!__atomic_compare_exchange_n(
		    &slot->tid, &none, tid, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE) &&
		none != tid) {
		*ret = (struct counter_refusal){COUNTER_REASON_slot_taken, 0};
		return NULL;
	}
	/* two types of 64 bits: the kernel's name and libc's */
	return (const uint64_t *)(const void *)(calls ? &slot->calls : &slot->kernel_ns);
}
