/* SPDX-License-Identifier: Apache-2.0 */
/* recover.c - a killed recorder's trace, from its last checkpoint and its ring. */
#include "session/recover.h"
#include "os/bus.h"
#include "session/keep.h"
#include "record/names.h"
#include "session/restore.h"
#include "session/tally.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
	FUTURE_NS = 1000000000, /* a stamp that much ahead is damage */
	SETTLE_NS = 5000000,    /* a record that is being written is complete by then */
};

/* ---- what is left ---------------------------------------------------------------------------- */

/* All of a left recording that is open. */
struct left {
	struct session_place place;
	struct session_keep_head *head; /* a copy, with texts that end; NULL: there is none */
};

static void left_close(struct left *l)
{
	base_free(l->head);
	session_place_leave(&l->place);
	l->head = NULL;
}

static void left_end_texts(struct session_keep_head *h)
{
	h->ring[sizeof h->ring - 1] = 0;
	h->trace_path[sizeof h->trace_path - 1] = 0;
	h->trace_other[sizeof h->trace_other - 1] = 0;
	h->command[sizeof h->command - 1] = 0;
}

/* BASE_END: it holds nothing, its recorder died before the program began. */
static enum base_status left_read(struct left *l, struct base_err *err)
{
	l->head = base_alloc(sizeof *l->head);
	if (!l->head)
		return base_fail(err, BASE_ERR_NOMEM, "no memory for %s", l->place.path);
	struct session_keep_head *h = l->head;
	ssize_t n = l->place.session_fd < 0 ? 0 : pread(l->place.session_fd, h, sizeof *h, 0);
	left_end_texts(h);
	if (n < (ssize_t)(2 * sizeof(uint64_t)) || h->magic != SESSION_KEEP_MAGIC)
		return BASE_END;
	if (h->version != SESSION_KEEP_VERSION)
		return base_fail(err, BASE_ERR_VERSION,
			"%s was left by another version of longpole (its number is %u, this one "
			"knows %d): recover it with that one, or remove it",
			l->place.path, h->version, (int)SESSION_KEEP_VERSION);
	if (n != (ssize_t)sizeof *h || strchr(h->ring, '/'))
		return base_fail(err, BASE_ERR_CORRUPT, "%s/%s is damaged", l->place.path,
			SESSION_PLACE_SESSION);
	return h->turn ? BASE_OK : BASE_END;
}

static const char *recover_name_of(const struct session_place *p)
{
	const char *slash = strrchr(p->path, '/');
	return (slash ? slash + 1 : p->path) + sizeof SESSION_PLACE_PREFIX - 1;
}

/* The header of the file says that it was begun by the recording. */
static bool recover_begun_by(const struct session_keep_head *h, int fd, size_t size_bytes)
{
	enum { HEADER_BYTES_MAX = 1 << 20 };
	size_t nr = size_bytes < HEADER_BYTES_MAX ? size_bytes : HEADER_BYTES_MAX;
	struct trace_reader_options o = {.size = sizeof o, .ahead = TRACE_AHEAD_NEVER};
	struct trace_reader *reader = NULL;
	void *map = nr ? mmap(NULL, nr, PROT_READ, MAP_PRIVATE, fd, 0) : MAP_FAILED;
	if (map == MAP_FAILED)
		return false;
	bool is = trace_reader_open_memory(map, nr, &o, &reader, NULL) == BASE_OK &&
		  trace_reader_info(reader)->origin_mono_ns == h->raw_origin_ns &&
		  trace_reader_info(reader)->origin_unix_ns == h->unix_origin_ns;
	trace_reader_close(reader);
	munmap(map, nr);
	return is;
}

/* Opens the recording's trace there; -1: it is not there. (A file that was removed leaves its number
 * to the next one, which may be another recording's of that name.) */
static int recover_open_trace(const struct session_keep_head *h, const char *path, struct stat *ret)
{
	int fd = *path ? open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC) : -1;
	if (fd < 0)
		return -1;
	if (!fstat(fd, ret) && S_ISREG(ret->st_mode) && ret->st_dev == h->trace_dev &&
		ret->st_ino == h->trace_ino && recover_begun_by(h, fd, (size_t)ret->st_size))
		return fd;
	close(fd);
	return -1;
}

static bool is_the_trace(const struct session_keep_head *h, const char *path)
{
	struct stat st;
	int fd = recover_open_trace(h, path, &st);
	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

static void left_describe(struct left *l, struct session_left_recording *ret)
{
	*ret = (struct session_left_recording){.why_not = {.status = BASE_OK}};
	snprintf(ret->name, sizeof ret->name, "%s", recover_name_of(&l->place));
	ret->why_not.status = left_read(l, &ret->why_not);
	const struct session_keep_head *h = l->head;
	if (!h || ret->why_not.status == BASE_ERR_VERSION)
		return;
	snprintf(ret->command, sizeof ret->command, "%s", h->command);
	snprintf(ret->trace_path, sizeof ret->trace_path, "%s", h->trace_path);
	ret->trace_is_there = is_the_trace(h, h->trace_path);
	ret->cut_unix_ns = h->unix_origin_ns + h->point[h->turn & 1].time_ns;
	ret->program_runs = h->pid && record_process_lives(h->pid);
	struct stat st;
	if (!fstatat(l->place.fd, h->ring, &st, AT_SYMLINK_NOFOLLOW))
		ret->ring_bytes = (uint64_t)st.st_blocks * 512;
}

struct listing {
	struct session_left_recording *left;
	size_t nr, capacity;
	bool failed;
};

static bool list_one(void *ctx, struct session_left *found)
{
	struct listing *list = ctx;
	struct left l = {.place = found->place};
	if (base_grow(&list->left, &list->capacity, list->nr + 1, sizeof *list->left) != BASE_OK) {
		list->failed = true;
		left_close(&l);
		return false;
	}
	struct session_left_recording *to = &list->left[list->nr];
	left_describe(&l, to);
	if (to->why_not.status == BASE_END)
		session_place_close(&l.place);
	else
		list->nr++;
	left_close(&l);
	return true;
}

static int recover_by_time(const void *a, const void *b)
{
	const struct session_left_recording *x = a, *y = b;
	return x->cut_unix_ns != y->cut_unix_ns ? (x->cut_unix_ns > y->cut_unix_ns ? 1 : -1)
						: strcmp(x->name, y->name);
}

enum base_status session_left_list(
	struct session_left_recording **ret, size_t *ret_nr, struct base_err *err)
{
	struct listing list = {.nr = 0};
	session_place_each_left(true, list_one, &list);
	*ret = list.left;
	*ret_nr = list.nr;
	if (list.failed)
		return base_fail(err, BASE_ERR_NOMEM, "no memory for a list of recordings");
	if (list.nr)
		qsort(list.left, list.nr, sizeof *list.left, recover_by_time);
	return BASE_OK;
}

struct search {
	const char *name;
	struct left found;
	bool any;
};

static bool search_one(void *ctx, struct session_left *left)
{
	struct search *s = ctx;
	if (strcmp(recover_name_of(&left->place), s->name) != 0) {
		session_place_leave(&left->place);
		return true;
	}
	s->found.place = left->place;
	s->any = true;
	return false;
}

static bool left_find(const char *name, struct left *ret)
{
	struct search s = {.name = name};
	session_place_each_left(true, search_one, &s);
	*ret = s.found;
	return s.any;
}

/* ---- recovery -------------------------------------------------------------------------------- */

struct recovery {
	struct left left;
	struct session_ring ring;
	struct os_clock clock;
	struct record_converter converter;
	struct trace_writer *writer;
	uint64_t *progress;
	void *trace; /* what the checkpoint has of it, mapped */
	size_t trace_bytes;
	bool converting;
	struct session_recovered *ret;
};

static const struct session_keep_point *point_of(const struct recovery *r)
{
	const struct session_keep_head *h = r->left.head;
	return &h->point[h->turn & 1];
}

static enum base_status recover_open_ring(struct recovery *r, struct base_err *err)
{
	const struct session_keep_head *h = r->left.head;
	int fd = openat(r->left.place.fd, h->ring, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return base_fail_errno(err, errno, "%s/%s", r->left.place.path, h->ring);
	enum base_status status = session_ring_open(&r->ring, fd, r->left.place.path, err);
	close(fd);
	if (status != BASE_OK)
		return status;
	size_t nr_bytes = r->ring.nr_blocks * sizeof *r->progress;
	r->progress = base_alloc(nr_bytes);
	if (!r->progress)
		return base_fail(err, BASE_ERR_NOMEM, "no memory to recover a recording");
	off_t at = (off_t)(session_keep_progress_offset() + (h->turn & 1) * nr_bytes);
	if (h->nr_blocks != r->ring.nr_blocks ||
		pread(r->left.place.session_fd, r->progress, nr_bytes, at) != (ssize_t)nr_bytes)
		return base_fail(err, BASE_ERR_CORRUPT, "%s/%s is damaged", r->left.place.path,
			SESSION_PLACE_SESSION);
	for (uint32_t i = 0; i < r->ring.nr_blocks; i++)
		if ((uint32_t)r->progress[i] > SESSION_RING_WORDS)
			r->progress[i] = 0;
	r->ring.read_before = r->progress;
	session_tally_open(&r->ring);
	return BASE_OK;
}

/* The file as it was at the checkpoint. */
static enum base_status map_trace(struct recovery *r, struct base_err *err)
{
	const struct session_keep_head *h = r->left.head;
	struct stat st;
	const char *path = h->trace_path;
	int fd = recover_open_trace(h, path, &st);
	if (fd < 0)
		fd = recover_open_trace(h, path = h->trace_other, &st);
	if (fd < 0)
		return base_fail(err, BASE_ERR_ENV,
			"%s is gone, which has what was recorded before the last second: it was "
			"removed, or replaced by another file",
			h->trace_path);
	uint64_t want = point_of(r)->trace_bytes;
	r->trace_bytes = (size_t)(want < (uint64_t)st.st_size ? want : (uint64_t)st.st_size);
	void *map = r->trace_bytes ? mmap(NULL, r->trace_bytes, PROT_READ, MAP_PRIVATE, fd, 0)
				   : MAP_FAILED;
	int why = r->trace_bytes ? errno : ENODATA;
	close(fd);
	if (map == MAP_FAILED)
		return base_fail_errno(err, why, "%s", path);
	r->trace = map;
	return BASE_OK;
}

static enum base_status copy_records(
	struct recovery *r, struct trace_reader *reader, struct base_err *err)
{
	struct session_restored *to = session_restored_new(&r->converter);
	enum base_status status = to ? BASE_OK : BASE_ERR_NOMEM;
	struct trace_batch batch;
	while (status == BASE_OK && (status = trace_reader_next(reader, &batch, err)) == BASE_OK)
		for (size_t i = 0; status == BASE_OK && i < batch.nr; i++) {
			status = trace_writer_put(r->writer, &batch.record[i], err);
			if (status == BASE_OK)
				status = session_restore_record(to, &batch.record[i], err);
		}
	if (status == BASE_END)
		status = session_restore_journal(to, r->left.place.fd, SESSION_KEEP_JOURNAL,
			point_of(r)->journal_bytes, err);
	session_restored_free(to);
	return status == BASE_ERR_NOMEM && !to
		       ? base_fail(err, status, "no memory to recover a recording")
		       : status;
}

/* The owner of memory streams, and what was not encoded yet, are not kept. */
static enum base_status count_memory_chunks(
	struct recovery *r, struct trace_reader *reader, struct base_err *err)
{
	struct trace_content_chunk *chunk = NULL;
	size_t nr = 0;
	enum base_status status =
		trace_reader_contents(reader, TRACE_CONTENT_MEMORY, &chunk, &nr, err);
	r->ret->memory_chunks_left_out = nr;
	base_free(chunk);
	return status;
}

static enum base_status copy_trace(struct recovery *r, const char *path, struct base_err *err)
{
	struct trace_reader *reader = NULL;
	struct trace_reader_options o = {
		.size = sizeof o, .with_definitions = true, .ahead = TRACE_AHEAD_NEVER};
	const struct session_keep_head *h = r->left.head;
	enum base_status status =
		trace_reader_open_memory(r->trace, r->trace_bytes, &o, &reader, err);
	if (status != BASE_OK)
		return status;
	status = trace_writer_open(path, trace_reader_info(reader), &r->writer, err);
	if (status != BASE_OK)
		goto out;
	if (h->is_plain)
		trace_writer_set_plain(r->writer);
	status = record_converter_init(&r->converter, &r->clock, r->writer, err);
	r->converting = true;
	if (status == BASE_OK)
		status = copy_records(r, reader, err);
	if (status == BASE_OK)
		status = count_memory_chunks(r, reader, err);
	trace_writer_count(r->writer, TRACE_DIAG_chunks_damaged,
		trace_reader_health(reader)->count[TRACE_DIAG_chunks_damaged]);
out:
	trace_reader_close(reader);
	return status;
}

/* Stamps beyond are damage. (After a restart of the machine its counter began anew.) */
static uint64_t recover_limit_of(const struct recovery *r)
{
	struct os_clock_pair now;
	os_clock_read_pair(3, &now);
	if (now.raw_ns < r->clock.raw_origin_ns || now.tsc < r->clock.tsc_origin)
		return UINT64_MAX >> 8;
	return now.tsc - r->clock.tsc_origin +
	       (uint64_t)((unsigned __int128)FUTURE_NS * r->clock.tick_hz / 1000000000u);
}

static enum base_status recover_read_ring(struct recovery *r, struct base_err *err)
{
	struct record_converter *c = &r->converter;
	uint64_t limit = recover_limit_of(r);
	session_ring_drain(&r->ring, c, limit, limit, true);
	session_tally_drain(&r->ring, c, limit, true);
	/* Nobody was there to see how the program ended. */
	record_converter_finish(c, -1, 0, record_process_lives);
	struct record_unnamed unnamed;
	record_sink_name_all(&c->sink, &unnamed);
	if (!record_sink_failed(&c->sink))
		return BASE_OK;
	if (err)
		*err = c->sink.err;
	return c->sink.status;
}

static void recover_count(struct recovery *r, enum trace_diag diag, uint64_t n)
{
	r->ret->count[diag] += n;
	trace_writer_count(r->writer, diag, n);
}

static void recover_count_losses(struct recovery *r)
{
	const struct ring_head *head = r->ring.head;
	const struct record_converter *c = &r->converter;
	recover_count(r, TRACE_DIAG_recorder_killed, 1);
	recover_count(
		r, TRACE_DIAG_records_lost, __atomic_load_n(&head->lost_records, __ATOMIC_RELAXED));
	recover_count(r, TRACE_DIAG_nested_dropped,
		__atomic_load_n(&head->nested_dropped, __ATOMIC_RELAXED) + c->nested_lost);
	recover_count(r, TRACE_DIAG_deepbound, __atomic_load_n(&head->deepbound, __ATOMIC_RELAXED));
	recover_count(r, TRACE_DIAG_unsuited, __atomic_load_n(&head->unsuited, __ATOMIC_RELAXED));
	recover_count(
		r, TRACE_DIAG_omp_disabled, __atomic_load_n(&head->omp_disabled, __ATOMIC_RELAXED));
	recover_count(r, TRACE_DIAG_omp_other_tool,
		__atomic_load_n(&head->omp_other_tool, __ATOMIC_RELAXED));
	recover_count(r, TRACE_DIAG_ring_damaged, c->nr_damaged_blocks);
	r->ret->ring_records = record_converter_nr_ring(c);
	r->ret->records = trace_writer_records(r->writer);
}

static enum base_status recover_recover(struct recovery *r, const char *path, struct base_err *err)
{
	const struct session_keep_head *h = r->left.head;
	r->clock = (struct os_clock){.tsc_origin = h->tsc_origin,
		.raw_origin_ns = h->raw_origin_ns,
		.unix_origin_ns = h->unix_origin_ns,
		.tick_hz = h->tick_hz,
		.factor = h->factor};
	enum base_status status = recover_open_ring(r, err);
	if (status == BASE_OK)
		status = map_trace(r, err);
	if (status != BASE_OK)
		return status;
	__atomic_store_n(&r->ring.head->recording, RING_off, __ATOMIC_RELEASE);
	nanosleep(&(struct timespec){.tv_nsec = SETTLE_NS}, NULL);
	status = copy_trace(r, path, err);
	if (status == BASE_OK)
		status = recover_read_ring(r, err);
	if (status != BASE_OK)
		return status;
	recover_count_losses(r);
	r->ret->trace_bytes = trace_writer_bytes(r->writer);
	status = trace_writer_close(r->writer, err);
	r->writer = NULL;
	return status;
}

/* The place itself stays as it is. */
static void recovery_end(struct recovery *r)
{
	if (r->writer)
		(void)!trace_writer_close(r->writer, NULL);
	if (r->converting)
		record_converter_fini(&r->converter);
	r->ring.place.path[0] = 0;
	session_ring_destroy(&r->ring);
	if (r->trace)
		munmap(r->trace, r->trace_bytes);
	base_free(r->progress);
	left_close(&r->left);
}

enum base_status session_recover(
	const char *name, const char *path, struct session_recovered *ret, struct base_err *err)
{
	struct base_str partial = {0};
	struct sigaction bus;
	*ret = (struct session_recovered){.records = 0};
	struct recovery *r = base_alloc(sizeof *r);
	if (!r)
		return base_fail(err, BASE_ERR_NOMEM, "no memory to recover a recording");
	r->ret = ret;
	os_bus_guard(&bus);
	enum base_status status =
		left_find(name, &r->left)
			? left_read(&r->left, err)
			: base_fail(err, BASE_ERR_USAGE, "no recording '%s' was cut off", name);
	if (status == BASE_END)
		status = base_fail(err, BASE_ERR_USAGE, "recording '%s' had not begun", name);
	base_str_addf(&partial, "%s.part", path);
	if (status == BASE_OK && partial.failed)
		status = base_fail(err, BASE_ERR_NOMEM, "no memory for a name");
	if (status == BASE_OK) {
		status = recover_recover(r, partial.buf, err);
		if (status == BASE_OK && rename(partial.buf, path))
			status = base_fail_errno(err, errno, "cannot name the trace %s", path);
		if (status != BASE_OK)
			unlink(partial.buf);
	}
	recovery_end(r);
	sigaction(SIGBUS, &bus, NULL);
	base_str_fini(&partial);
	base_free(r);
	return status;
}

static bool make_way(void *ctx, struct session_left *found)
{
	const char *path = ctx;
	struct left l = {.place = found->place};
	char other[SESSION_KEEP_PATH];
	enum base_status status = left_read(&l, NULL);
	if (status == BASE_END) {
		session_place_close(&l.place);
	} else if (status == BASE_OK && path && !*l.head->trace_other &&
		   is_the_trace(l.head, path)) {
		int n = snprintf(other, sizeof other, "%s.%s", l.head->trace_path,
			recover_name_of(&l.place));
		off_t at = offsetof(struct session_keep_head, trace_other);
		if (n > 0 && (size_t)n < sizeof other && !link(l.head->trace_path, other) &&
			pwrite(l.place.session_fd, other, (size_t)n + 1, at) != n + 1)
			unlink(other);
	}
	left_close(&l);
	return true;
}

void session_left_make_way(const char *path)
{
	session_place_each_left(false, make_way, (void *)(uintptr_t)path);
}

bool session_left_remove(const char *name)
{
	struct left l;
	struct session_ring ring;
	if (!left_find(name, &l))
		return false;
	int fd = left_read(&l, NULL) == BASE_OK
			 ? openat(l.place.fd, l.head->ring, O_RDWR | O_NOFOLLOW | O_CLOEXEC)
			 : -1;
	if (fd >= 0 && session_ring_open(&ring, fd, l.place.path, NULL) == BASE_OK) {
		__atomic_store_n(&ring.head->recording, RING_off, __ATOMIC_RELEASE);
		session_ring_destroy(&ring);
	}
	if (fd >= 0)
		close(fd);
	if (l.head && *l.head->trace_other && is_the_trace(l.head, l.head->trace_other))
		unlink(l.head->trace_other);
	session_place_close(&l.place);
	left_close(&l);
	return true;
}
