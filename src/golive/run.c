/* SPDX-License-Identifier: Apache-2.0 */
/* run.c - a Go program from its start to its end: led through our code, and what that has written. */
#include "golive/private.h"
#include "inject/inject.h"
#include "os/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
	RUN_RECORDS_MAX = 1 << 21,
	RUN_CALIBRATE_NS = 20000000,
	RUN_READ_NS = 20000000,
	RUN_PAIR_TRIES = 3
};

struct run_state {
	struct golive_run *run;
	struct golive_image image;
	struct golive_layout layout;
	struct golive_head *ring;
	size_t ring_bytes, file_bytes;
	void *file;
	int fd, ring_fd;
	struct os_clock clock;
	struct golive_samples samples;
	uint64_t begin_ticks, end_ticks;
};

static void run_close(struct run_state *s)
{
	golive_samples_fini(&s->samples);
	if (s->file)
		munmap(s->file, s->file_bytes);
	if (s->ring)
		munmap(s->ring, s->ring_bytes);
	if (s->fd >= 0)
		close(s->fd);
	if (s->ring_fd >= 0)
		close(s->ring_fd);
}

static enum base_status run_read_file(struct run_state *s, const char *path, struct base_err *err)
{
	struct stat st;
	s->fd = open(path, O_RDONLY | O_CLOEXEC);
	if (s->fd < 0 || fstat(s->fd, &st))
		return base_fail_errno(err, errno, "%s", path);
	s->file_bytes = (size_t)st.st_size;
	void *file = s->file_bytes ? mmap(NULL, s->file_bytes, PROT_READ, MAP_PRIVATE, s->fd, 0)
				   : MAP_FAILED;
	if (file == MAP_FAILED)
		return base_fail_errno(err, errno, "%s", path);
	s->file = file;
	return golive_image_read(&s->image, file, s->file_bytes, err);
}

bool golive_knows(const char *path)
{
	struct base_err ignored = {0};
	struct run_state s = {.fd = -1, .ring_fd = -1};
	bool knows = run_read_file(&s, path, &ignored) == BASE_OK && s.image.is_static;
	run_close(&s);
	return knows;
}

/* Its descriptor is the program's, too, until it is mapped there. */
static enum base_status run_make_ring(struct run_state *s, struct base_err *err)
{
	s->ring_bytes = GOLIVE_HEAD_BYTES + RUN_RECORDS_MAX * sizeof(struct golive_record);
	s->ring_fd = memfd_create("longpole-go", 0);
	if (s->ring_fd < 0 || ftruncate(s->ring_fd, (off_t)s->ring_bytes))
		return base_fail_errno(err, errno, "memory for what a Go program does");
	void *ring = mmap(NULL, s->ring_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, s->ring_fd, 0);
	if (ring == MAP_FAILED)
		return base_fail_errno(err, errno, "memory for what a Go program does");
	s->ring = ring;
	s->ring->capacity = RUN_RECORDS_MAX;
	return BASE_OK;
}

static enum base_status run_hand_over(
	struct run_state *s, struct inject_started *child, uint64_t *ret_ring, struct base_err *err)
{
	const uint64_t map[6] = {
		0, s->ring_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, (uint64_t)s->ring_fd, 0};
	const uint64_t leave[6] = {(uint64_t)s->ring_fd};
	int64_t at = 0, closed = 0;
	enum base_status status = inject_start_syscall(child, SYS_mmap, map, &at, err);
	if (status == BASE_OK && at < 0)
		status = base_fail_errno(err, (int)-at, "no memory in program %s", child->path);
	*ret_ring = (uint64_t)at;
	return status == BASE_OK ? inject_start_syscall(child, SYS_close, leave, &closed, err)
				 : status;
}

static enum base_status run_lead(
	struct run_state *s, struct inject_started *child, uint64_t function, struct base_err *err)
{
	uint8_t code[GOLIVE_CODE_BYTES];
	uint64_t ring = 0, entry = 0;
	struct inject_lead lead = {.function = function, .code = code};
	enum base_status status = run_hand_over(s, child, &ring, err);
	if (status == BASE_OK)
		status = inject_start_page(child, &lead.page, err);
	if (status != BASE_OK)
		return status;
	lead.nr_bytes = golive_code(code, &s->image, &s->layout, ring, &entry);
	lead.entry = entry;
	return inject_start_lead(child, &lead, err);
}

/* (A terminal's Ctrl-C is the program's, which may end in order; what it wrote is there in any case.) */
static void run_pass(int signal)
{
	(void)signal;
}

/* Until it has ended; what it was found at is taken from the kernel's buffers meanwhile. */
static void run_wait(struct run_state *s, pid_t pid)
{
	const struct timespec pause = {.tv_nsec = RUN_READ_NS};
	struct os_clock_pair pair;
	int fd = (int)syscall(SYS_pidfd_open, pid, 0);
	bool ends = fd < 0;
	while (!ends) {
		ends = ppoll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1,
			       s->samples.perf ? &pause : NULL, NULL) > 0;
		os_clock_read_pair(RUN_PAIR_TRIES, &pair);
		os_clock_add_pair(&s->clock, pair);
		golive_samples_read(&s->samples, false);
	}
	if (fd >= 0)
		close(fd);
	while (waitpid(pid, &s->run->wait_status, 0) < 0 && errno == EINTR)
		continue;
	golive_samples_read(&s->samples, true);
}

static enum base_status run_program(struct run_state *s, uint64_t function, struct base_err *err)
{
	static const int passed[] = {SIGINT, SIGQUIT};
	struct inject_started child;
	struct sigaction before[BASE_COUNT(passed)];
	enum base_status status = inject_start(&child, s->run->path, s->run->argv, err);
	if (status != BASE_OK)
		return status;
	os_clock_start(&s->clock);
	status = run_lead(s, &child, function, err);
	if (status == BASE_OK)
		status = os_clock_finish(&s->clock, RUN_CALIBRATE_NS, err);
	if (status != BASE_OK) {
		inject_start_give_up(&child);
		return status;
	}
	golive_samples_begin(&s->samples, child.pid, s->run->sample_hz, &s->clock,
		s->run->why_no_samples, sizeof s->run->why_no_samples);
	for (size_t i = 0; i < BASE_COUNT(passed); i++)
		sigaction(passed[i], &(struct sigaction){.sa_handler = run_pass}, &before[i]);
	s->begin_ticks = os_tsc();
	status = inject_start_go(&child, err);
	if (status == BASE_OK)
		run_wait(s, child.pid);
	s->end_ticks = os_tsc();
	for (size_t i = 0; i < BASE_COUNT(passed); i++)
		sigaction(passed[i], &before[i], NULL);
	return status;
}

static enum base_status run_convert(struct run_state *s, struct gotrace **ret, struct base_err *err)
{
	struct golive_run *run = s->run;
	uint64_t nr = s->ring->next;
	run->nr_lost = nr > RUN_RECORDS_MAX ? nr - RUN_RECORDS_MAX : 0;
	run->nr_records = nr - run->nr_lost;
	run->nr_samples = s->samples.nr;
	run->elapsed_ns = os_clock_ns(&s->clock, s->end_ticks - s->begin_ticks);
	run->unix_ns = s->clock.unix_origin_ns;
	run->mono_ns = s->clock.raw_origin_ns;
	const struct golive_seen seen = {.image = &s->image,
		.record = (struct golive_record *)((uint8_t *)s->ring + GOLIVE_HEAD_BYTES),
		.nr_records = (size_t)run->nr_records,
		.samples = &s->samples,
		.clock = &s->clock};
	return golive_events(&seen, ret, err);
}

enum base_status golive_record(struct golive_run *run, struct gotrace **ret, struct base_err *err)
{
	struct run_state s = {.run = run, .fd = -1, .ring_fd = -1};
	uint64_t function = 0;
	*ret = NULL;
	enum base_status status = run_read_file(&s, run->path, err);
	if (status == BASE_OK)
		status = golive_layout_of(&s.layout, s.fd, s.image.version, err);
	if (status == BASE_OK &&
		!(function = golive_image_function(&s.image, "runtime.casgstatus")))
		status = base_fail(err, BASE_ERR_ENV,
			"its runtime has no function casgstatus (Go 1.%u)", s.image.version);
	if (status == BASE_OK)
		status = run_make_ring(&s, err);
	if (status == BASE_OK)
		status = run_program(&s, function, err);
	if (status == BASE_OK)
		status = run_convert(&s, ret, err);
	run_close(&s);
	return status == BASE_OK ? status : base_cause(err, status, "%s", run->path);
}
