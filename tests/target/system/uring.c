/* SPDX-License-Identifier: Apache-2.0 */
/*
 * uring - the waiter asks an io_uring for one thing and waits for its completion, 200 times. --how=
 *   poll     eight bytes from a pipe, which `worker`, another process, writes after 1 ms of work:
 *            the kernel waits for the pipe's readiness, and the waiter itself reads in the end
 *   async    the same, but a worker thread of the kernel reads, asleep in the pipe
 *   socket   the same from a TCP socket, of which `worker` is the peer
 *   timeout  5 ms
 *   disk     4 KiB to the disk --file, past the page cache; read: from it
 * --registered=1: the ring is no descriptor but a number that the kernel keeps.
 * Known answer: the path is the worker's work; the timer; the disk. Which context completes the
 * request makes no difference.
 */
#include <fcntl.h>
#include <linux/io_uring.h>
#include <stdlib.h>

#include "roles.h"

enum { ENTRIES = 4, BLOCK_BYTES = 4096, TIMEOUT_MS = 5 };

static struct uring {
	int fd;
	unsigned flags; /* of each io_uring_enter() */
	unsigned *sq_tail, *sq_mask, *sq_array, *cq_head, *cq_tail, *cq_mask;
	struct io_uring_sqe *sqe;
	struct io_uring_cqe *cqe;
} ring;
static const char *how;
static struct role_ask all;
static int ask[2], tell[2];

static bool is(const char *name)
{
	return !strcmp(how, name);
}

static void *map(size_t size, off_t offset)
{
	void *p = mmap(
		NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring.fd, offset);
	target_must(p != MAP_FAILED, "mmap");
	return p;
}

static void open_ring(void)
{
	struct io_uring_params p = {0};
	ring.fd = (int)syscall(SYS_io_uring_setup, ENTRIES, &p);
	if (ring.fd < 0) {
		fprintf(stderr, "io_uring_setup: %s\n", strerror(errno));
		exit(ROLE_SKIP);
	}
	char *sq = map(p.sq_off.array + p.sq_entries * sizeof(unsigned), IORING_OFF_SQ_RING);
	char *cq =
		map(p.cq_off.cqes + p.cq_entries * sizeof(struct io_uring_cqe), IORING_OFF_CQ_RING);
	ring.sqe = map(p.sq_entries * sizeof(struct io_uring_sqe), IORING_OFF_SQES);
	ring.flags = IORING_ENTER_GETEVENTS;
	ring.sq_tail = (unsigned *)(void *)(sq + p.sq_off.tail);
	ring.sq_mask = (unsigned *)(void *)(sq + p.sq_off.ring_mask);
	ring.sq_array = (unsigned *)(void *)(sq + p.sq_off.array);
	ring.cq_head = (unsigned *)(void *)(cq + p.cq_off.head);
	ring.cq_tail = (unsigned *)(void *)(cq + p.cq_off.tail);
	ring.cq_mask = (unsigned *)(void *)(cq + p.cq_off.ring_mask);
	ring.cqe = (struct io_uring_cqe *)(void *)(cq + p.cq_off.cqes);
}

/* Submits one, waits for one; its result. */
static int ask_ring(const struct io_uring_sqe *what)
{
	unsigned tail = *ring.sq_tail, at = tail & *ring.sq_mask;
	ring.sqe[at] = *what;
	ring.sq_array[at] = at;
	__atomic_store_n(ring.sq_tail, tail + 1, __ATOMIC_RELEASE);
	unsigned submit = 1, head = *ring.cq_head;
	while (submit || __atomic_load_n(ring.cq_tail, __ATOMIC_ACQUIRE) == head) {
		long done = syscall(SYS_io_uring_enter, ring.fd, submit, 1, ring.flags, NULL, 0);
		target_must(done >= 0 || errno == EINTR, "io_uring_enter");
		submit -= done > 0 ? (unsigned)done : 0;
	}
	int result = ring.cqe[head & *ring.cq_mask].res;
	__atomic_store_n(ring.cq_head, head + 1, __ATOMIC_RELEASE);
	return result;
}

static void register_ring(void)
{
	struct io_uring_rsrc_update update = {.offset = UINT32_MAX, .data = (__u64)ring.fd};
	if (syscall(SYS_io_uring_register, ring.fd, IORING_REGISTER_RING_FDS, &update, 1) != 1) {
		fprintf(stderr, "IORING_REGISTER_RING_FDS: %s\n", strerror(errno));
		exit(ROLE_SKIP);
	}
	ring.fd = (int)update.offset;
	ring.flags |= IORING_ENTER_REGISTERED_RING;
}

static void run_worker(void)
{
	for (uint64_t i = 0; i < all.rounds; i++) {
		role_take(ask[0]);
		role_work(all.work_us);
		role_give(tell[1]);
	}
}

static void hear_worker(void)
{
	uint64_t unit = 0;
	struct io_uring_sqe sqe = {.opcode = IORING_OP_READ,
		.flags = is("async") ? IOSQE_ASYNC : 0,
		.addr = (uintptr_t)&unit,
		.len = sizeof(unit)};
	target_must(!pipe(ask) && !pipe(tell), "pipe");
	if (is("socket"))
		role_tcp_pair(tell);
	sqe.fd = tell[0];
	pid_t worker = role_process("worker", run_worker);
	for (uint64_t i = 0; i < all.rounds; i++) {
		role_give(ask[1]);
		target_must(ask_ring(&sqe) == sizeof(unit), "reading through the ring");
	}
	role_reap(worker);
}

static void let_time_pass(void)
{
	struct __kernel_timespec time = {.tv_nsec = TIMEOUT_MS * 1000000L};
	const struct io_uring_sqe sqe = {
		.opcode = IORING_OP_TIMEOUT, .addr = (uintptr_t)&time, .len = 1};
	for (uint64_t i = 0; i < all.rounds; i++)
		target_must(ask_ring(&sqe) == -ETIME, "a timeout");
}

static void use_disk(const char *path)
{
	void *block = NULL;
	target_must(!posix_memalign(&block, BLOCK_BYTES, BLOCK_BYTES), "posix_memalign");
	memset(block, 1, BLOCK_BYTES);
	int fd = open(path, O_RDWR | O_DIRECT);
	target_must(fd >= 0, "open");
	for (uint64_t i = 0; i < all.rounds; i++) {
		const struct io_uring_sqe sqe = {
			.opcode = is("read") ? IORING_OP_READ : IORING_OP_WRITE,
			.fd = fd,
			.off = i * BLOCK_BYTES,
			.addr = (uintptr_t)block,
			.len = BLOCK_BYTES};
		target_must(ask_ring(&sqe) == BLOCK_BYTES, "a block through the ring");
	}
	close(fd);
	free(block);
}

int main(int argc, char **argv)
{
	target_check(argc, argv, "--how --rounds --work-us --file --registered");
	how = target_text(argc, argv, "--how", "poll");
	all = role_waiter(argc, argv);
	open_ring();
	if (target_number(argc, argv, "--registered", 0))
		register_ring();
	if (is("timeout"))
		let_time_pass();
	else if (is("disk") || is("read"))
		use_disk(target_text(argc, argv, "--file", "disk.img"));
	else
		hear_worker();
	return 0;
}
