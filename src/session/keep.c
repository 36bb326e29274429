/* SPDX-License-Identifier: Apache-2.0 */
/* keep.c - checkpoints of a recording. */
#include "session/keep.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
	KEEP_EVERY_NS = 1000000000,
	KEEP_PAUSES = 50, /* as long as a checkpoint takes */
};

static bool keep_map(struct session_keep *k, int fd, uint32_t nr_blocks)
{
	k->size_bytes = session_keep_bytes(nr_blocks);
	/* Its space must be there before it is written: else that is a SIGBUS. */
	if (posix_fallocate(fd, 0, (off_t)k->size_bytes))
		return false;
	void *map = mmap(NULL, k->size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED)
		return false;
	k->head = map;
	k->progress[0] = (uint64_t *)(void *)((char *)map + session_keep_progress_offset());
	k->progress[1] = k->progress[0] + nr_blocks;
	return true;
}

static bool keep_describe_trace(struct session_keep_head *h, const char *path)
{
	struct stat st;
	char *real = realpath(path, NULL);
	bool fits = real && strlen(real) < sizeof h->trace_path && !stat(real, &st) &&
		    S_ISREG(st.st_mode);
	if (fits) {
		memcpy(h->trace_path, real, strlen(real) + 1);
		h->trace_dev = st.st_dev;
		h->trace_ino = st.st_ino;
	}
	free(real); /* allowed: libc's */
	return fits;
}

static void keep_point(void *ctx);

void session_keep_open(struct session_keep *k, struct session_ring *ring, struct trace_writer *w,
	const struct os_clock *clock, const struct session_keep_what *what)
{
	*k = (struct session_keep){.journal_fd = -1, .ring = ring, .writer = w};
	if (!keep_map(k, ring->place.session_fd, ring->nr_blocks))
		return;
	k->journal_fd = openat(ring->place.fd, SESSION_KEEP_JOURNAL,
		O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	struct session_keep_head *h = k->head;
	if (k->journal_fd < 0 || !keep_describe_trace(h, what->trace_path) ||
		!session_ring_hold(ring, keep_point, k)) {
		session_keep_close(k);
		return;
	}
	snprintf(h->ring, sizeof h->ring, "%s", ring->path + strlen(ring->place.path) + 1);
	snprintf(h->command, sizeof h->command, "%s", what->command);
	h->version = SESSION_KEEP_VERSION;
	h->nr_blocks = ring->nr_blocks;
	h->tsc_origin = clock->tsc_origin;
	h->raw_origin_ns = clock->raw_origin_ns;
	h->unix_origin_ns = clock->unix_origin_ns;
	h->tick_hz = clock->tick_hz;
	h->factor = clock->factor;
	h->pid = what->pid;
	h->is_plain = what->is_plain;
	__atomic_store_n(&h->magic, SESSION_KEEP_MAGIC, __ATOMIC_RELEASE);
	keep_point(k);
}

/* 0, or why not. */
static int keep_write(int fd, const uint8_t *bytes, size_t nr)
{
	while (nr) {
		ssize_t n = write(fd, bytes, nr);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n ? errno : ENOSPC;
		bytes += n;
		nr -= (size_t)n;
	}
	return 0;
}

static void keep_point(void *ctx)
{
	struct session_keep *k = ctx;
	struct session_keep_head *h = k->head;
	struct session_ring *ring = k->ring;
	struct trace_writer *w = k->writer;
	struct base_err ignored = {0};
	const uint32_t turn = h->turn + 1;
	struct session_keep_point *to = &h->point[turn & 1];
	const struct session_keep_point *before = &h->point[h->turn & 1];
	/* (The writer's error is met again by its next record, and told then.) */
	int why = (int)h->broken;
	if (!why && trace_writer_flush(w, &ignored) != BASE_OK)
		why = ENOSPC;
	if (!why && k->journal.failed)
		why = ENOMEM;
	if (!why)
		why = keep_write(k->journal_fd, k->journal.bytes, k->journal.nr);
	if (why) {
		h->broken = (uint32_t)why;
	} else {
		*to = (struct session_keep_point){.trace_bytes = trace_writer_bytes(w),
			.journal_bytes = (h->turn ? before->journal_bytes : 0) + k->journal.nr,
			.time_ns = k->time_ns};
		for (uint32_t i = 0; i < h->nr_blocks; i++)
			k->progress[turn & 1][i] = session_ring_progress(ring, i);
		__atomic_store_n(&h->turn, turn, __ATOMIC_RELEASE);
	}
	k->journal.nr = 0;
	session_ring_give_back_held(ring);
}

void session_keep_look(struct session_keep *k, uint64_t raw_ns, uint64_t time_ns)
{
	if (!k->head)
		return;
	k->time_ns = time_ns;
	if (raw_ns < k->next_ns)
		return;
	keep_point(k);
	uint64_t end_ns = os_time_ns(CLOCK_MONOTONIC_RAW);
	uint64_t pause_ns = (end_ns - raw_ns) * KEEP_PAUSES;
	k->next_ns = end_ns + (pause_ns > KEEP_EVERY_NS ? pause_ns : KEEP_EVERY_NS);
}

void session_keep_close(struct session_keep *k)
{
	if (k->head)
		munmap(k->head, k->size_bytes);
	if (k->journal_fd >= 0)
		close(k->journal_fd);
	record_journal_fini(&k->journal);
	*k = (struct session_keep){.journal_fd = -1};
}
