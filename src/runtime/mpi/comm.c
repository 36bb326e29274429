/* SPDX-License-Identifier: Apache-2.0 */
/*
 * comm.c - communicators, and an identity of each that all its ranks agree on.
 *
 * Nothing is sent for it: a program that is not recorded in all of its ranks would wait for ever.
 * MPI_COMM_WORLD is called after the job, as the launcher names it to its ranks; what is made of a
 * communicator, by a call that all its ranks make in the same order, after that one, the number of
 * such calls, and the first of the new one's ranks: of the communicators that one call makes
 * (MPI_Comm_split) no two have the same.
 */
#include "runtime/mpi/mpi.h"

#include "trace/communicator.h"

#ifndef PRELOAD_STATIC

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

enum { COMM_SLOTS = 1024, COMM_FREE = 0, COMM_USED = 1, COMM_TAKEN = 2, COMM_ANCESTORS = 8 };

static struct mpi_comm comm_table[COMM_SLOTS];

static uint64_t comm_object(uint64_t identity)
{
	return (identity & RING_OBJECT_ADDRESS) | (uint64_t)TRACE_OBJECT_communicator
							  << RING_OBJECT_TYPE_SHIFT;
}

static uint64_t comm_hash_text(const char *text)
{
	uint64_t h = 0;
	for (; *text; text++)
		h = trace_communicator_mix(h ^ (unsigned char)*text);
	return h;
}

/* Of a process: its parent, and whether it is Hydra's, which starts MPICH's ranks. */
static long comm_parent_of(long pid, bool *ret_is_hydra)
{
	char path[32] = "/proc/", text[256];
	char digits[12];
	size_t n = sizeof digits, at = 6;
	for (long rest = pid; rest && n; rest /= 10)
		digits[--n] = (char)('0' + rest % 10);
	memcpy(path + at, digits + n, sizeof digits - n);
	at += sizeof digits - n;
	memcpy(path + at, "/stat", 6);
	long fd = preload_syscall(SYS_openat, AT_FDCWD, (long)path, O_RDONLY | O_CLOEXEC, 0, 0, 0);
	long got =
		fd < 0 ? fd : preload_syscall(SYS_read, fd, (long)text, sizeof text - 1, 0, 0, 0);
	if (fd >= 0)
		preload_syscall(SYS_close, fd, 0, 0, 0, 0, 0);
	text[got > 0 ? got : 0] = '\0';
	*ret_is_hydra = strstr(text, "(hydra") != NULL;
	const char *at_parent = strrchr(text, ')'); /* ") S PPID" */
	long parent = 0;
	if (!at_parent || strlen(at_parent) < 5)
		return 0;
	for (at_parent += 4; *at_parent >= '0' && *at_parent <= '9' && parent < INT32_MAX;
		at_parent++)
		parent = parent * 10 + (*at_parent - '0');
	return parent;
}

/* What the launcher calls the job, the same for all its ranks. Hydra tells its ranks no name: then
 * it is the process that started them. */
static uint64_t comm_job(void)
{
	static const char *const names[] = {
		"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid", "PMI_JOBID", "SLURM_STEP_ID"};
	bool is_hydra;
	for (size_t i = 0; i < PRELOAD_COUNT(names); i++) {
		const char *value = getenv(names[i]);
		if (value && *value)
			return comm_hash_text(value);
	}
	long parent = preload_syscall(SYS_getppid, 0, 0, 0, 0, 0, 0), pid = parent;
	for (int i = 0; i < COMM_ANCESTORS && pid > 1; i++) {
		long next = comm_parent_of(pid, &is_hydra);
		if (is_hydra)
			return trace_communicator_mix((uint64_t)pid);
		pid = next;
	}
	return trace_communicator_mix((uint64_t)parent);
}

/* ---- the table ------------------------------------------------------------------------------- */

static struct mpi_comm *comm_slot(uint64_t handle, uint32_t i)
{
	return &comm_table[(trace_communicator_mix(handle) + i) % COMM_SLOTS];
}

static struct mpi_comm *comm_find(uint64_t handle)
{
	for (uint32_t i = 0; i < COMM_SLOTS; i++) {
		struct mpi_comm *c = comm_slot(handle, i);
		uint64_t is = __atomic_load_n(&c->handle, __ATOMIC_ACQUIRE);
		if (is == handle)
			return c;
		if (is == COMM_FREE)
			break;
	}
	return NULL;
}

static void comm_tell(struct mpi_comm *c, const char *name)
{
	size_t nr_bytes = strlen(name);
	c->image = preload_fresh.image;
	preload_record_text(RING_name, (const uint64_t[]){c->object, RING_NAME_object, 0, nr_bytes},
		4, name, nr_bytes);
	PRELOAD_RECORD(mpi_comm, c->object, c->rank, c->size, !strcmp(name, "MPI_COMM_WORLD"));
}

/* NULL: the table is full. */
static struct mpi_comm *comm_add(
	uint64_t handle, uint64_t object, uint32_t rank, uint32_t size, const char *name)
{
	for (uint32_t i = 0; i < COMM_SLOTS; i++) {
		struct mpi_comm *c = comm_slot(handle, i);
		uint64_t is = __atomic_load_n(&c->handle, __ATOMIC_RELAXED);
		if (is > COMM_USED || !__atomic_compare_exchange_n(&c->handle, &is, COMM_TAKEN,
					      false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
			continue;
		c->object = object;
		c->rank = rank;
		c->size = size;
		c->nr_children = 0;
		comm_tell(c, name);
		__atomic_store_n(&c->handle, handle, __ATOMIC_RELEASE);
		return c;
	}
	return NULL;
}

/* NULL: the table is full, or it has no ranks. */
static struct mpi_comm *comm_ask(uint64_t handle, uint64_t object, const char *name)
{
	int rank = -1, size = 0;
	if (mpi_library.ask_Comm_rank((long)handle, (long)&rank, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0) ||
		mpi_library.ask_Comm_size(
			(long)handle, (long)&size, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0) ||
		rank < 0 || size <= 0)
		return NULL;
	return comm_add(handle, object, (uint32_t)rank, (uint32_t)size, name);
}

struct mpi_comm *mpi_comm_of(uint64_t handle)
{
	struct mpi_comm *c = comm_find(handle);
	if (PRELOAD_LIKELY(c != NULL))
		return c->image == preload_fresh.image ? c : NULL;
	if (handle != mpi_library.abi.world || !handle)
		return NULL;
	return comm_ask(handle, comm_object(comm_job()), "MPI_COMM_WORLD");
}

void mpi_comm_freed(uint64_t handle)
{
	struct mpi_comm *c = comm_find(handle);
	if (c && handle != mpi_library.abi.world)
		__atomic_store_n(&c->handle, COMM_USED, __ATOMIC_RELEASE);
}

/* ---- made of others -------------------------------------------------------------------------- */

/* Which rank of MPI_COMM_WORLD is the first of that communicator's; below 0: none. */
static int comm_first_rank(uint64_t handle)
{
	const struct mpi_library *l = &mpi_library;
	uint64_t group = 0, all = 0;
	int first = 0, rank = -1;
	if (l->ask_Comm_group((long)handle, (long)&group, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0))
		return -1;
	if (l->ask_Comm_group((long)l->abi.world, (long)&all, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0) == 0) {
		l->ask_Group_translate_ranks(
			(long)group, 1, (long)&first, (long)all, (long)&rank, 0, 0, 0, 0, 0, 0, 0);
		l->ask_Group_free((long)&all, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
	}
	l->ask_Group_free((long)&group, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
	return rank;
}

static void comm_add_number(char *text, size_t *at, uint64_t n)
{
	char digits[20];
	size_t i = sizeof digits;
	do {
		digits[--i] = (char)('0' + n % 10);
		n /= 10;
	} while (n);
	memcpy(text + *at, digits + i, sizeof digits - i);
	*at += sizeof digits - i;
	text[*at] = '\0';
}

/* "WHAT 3 of world rank 0" (TRACE_COMMUNICATOR_NAME). */
static void comm_name(char *text, uint32_t number, unsigned first)
{
	static const char of[] = " of world rank ";
	size_t at = strlen(text);
	comm_add_number(text, &at, number);
	memcpy(text + at, of, sizeof of);
	at += sizeof of - 1;
	comm_add_number(text, &at, first);
}

static uint64_t comm_child(const struct mpi_comm *parent, uint32_t number, unsigned first)
{
	return comm_object(
		trace_communicator_address(parent->object & RING_OBJECT_ADDRESS, number, first));
}

void mpi_comm_made(struct mpi_comm *parent, uint64_t handle)
{
	char name[80] = "communicator ";
	int is_between = 0;
	uint32_t number = ++parent->nr_children;
	if (!handle || handle == mpi_library.abi.comm_null)
		return;
	mpi_library.ask_Comm_test_inter(
		(long)handle, (long)&is_between, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
	int first = is_between ? -1 : comm_first_rank(handle);
	if (first < 0)
		return;
	comm_name(name, number, (unsigned)first);
	comm_ask(handle, comm_child(parent, number, (unsigned)first), name);
}

static void comm_made_like(struct mpi_comm *parent, uint64_t handle, char name[80])
{
	uint32_t number = ++parent->nr_children;
	int first = handle ? comm_first_rank(parent->handle) : -1;
	if (first < 0)
		return;
	comm_name(name, number, (unsigned)first);
	comm_add(handle, comm_child(parent, number, (unsigned)first), parent->rank, parent->size,
		name);
}

void mpi_window_made(struct mpi_comm *parent, uint64_t handle)
{
	char name[80] = "window ";
	comm_made_like(parent, handle, name);
}

void mpi_file_made(struct mpi_comm *parent, uint64_t handle)
{
	char name[80] = "file ";
	comm_made_like(parent, handle, name);
}

#endif
