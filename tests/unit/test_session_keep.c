/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_session_keep.c - laws of recovery: wherever a recorder is cut off, its trace and the ring
 * together say what an uncut recording of the same program says, each record once.
 */
#include "session/keep.h"
#include "session/recover.h"
#include "record_fixture.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

enum {
	CODE = 0x400000,
	BIAS = 0x3ff000,
	STEPS = 60,
	THREADS = 4, /* 0 and 1 of image 1; 2 of image 2, forked from it; 3 of image 1, late */
	LATE = 20,   /* the step in which threads 2 and 3 begin */
	SILENT = 40, /* ... and in which image 2 falls silent: it ends with its last record */
	LINES_MAX = 1024,
	LINE_BYTES = 160,
	NAME_ACTOR = 1,
};

/* ---- a program ------------------------------------------------------------------------------- */

struct program {
	struct fixture f;
	struct session_keep keep;
	struct fake_thread thread[THREADS];
	bool began[THREADS];
	uint32_t capacity;
};

static uint32_t free_block(const struct program *p)
{
	uint32_t i = 0;
	while (session_ring_block(&p->f.ring, i)->state != RING_BLOCK_FREE)
		i++;
	assert_true(i < p->f.ring.nr_blocks);
	return i;
}

static void begin_thread(struct program *p, unsigned nr, uint64_t now)
{
	struct fake_thread *t = &p->thread[nr];
	*t = (struct fake_thread){.f = &p->f,
		.image = nr == 2 ? 2 : 1,
		.parent = nr == 2 ? 1 : 0,
		.pid = FIXTURE_GONE_PID + (nr == 2),
		.tid = FIXTURE_GONE_PID + nr,
		.number = nr == 2   ? 1
			  : nr == 3 ? 3
				    : nr + 1};
	p->began[nr] = true;
	fake_take_block(t, free_block(p));
	if (nr == 0 || nr == 2)
		fake_image(t, now, nr == 2 ? 77 : 0);
	if (nr == 0) {
		fake_module(t, now, CODE, CODE + 0x10000, BIAS, "/bin/prog");
		fake_descriptor(t, now, 5, TRACE_OBJECT_pipe, 99, 0, "a pipe");
		fake_text(t, now, RING_name, FAKE_WORDS(NAME_ACTOR, RING_NAME_actor, CODE, 1), "a",
			1);
		FAKE(t, now, TRACE_note_begin, NAME_ACTOR, 42, 0);
	}
}

/* What a thread does in a step: each says something else that the recorder has to remember. */
static void act(struct program *p, unsigned nr, unsigned step, uint64_t now)
{
	struct fake_thread *t = &p->thread[nr];
	uint64_t mutex = fake_object(TRACE_OBJECT_mutex, CODE + 0x100 * (1 + step % 3));
	FAKE(t, now, TRACE_lock_acquire, mutex, CODE + 16 * (step % 5));
	FAKE(t, now + 1, TRACE_lock_release, mutex, CODE + 8);
	FAKE(t, now + 2, TRACE_io_begin, fake_object(TRACE_OBJECT_pipe, 5), 0, 1, CODE);
	FAKE(t, now + 3, TRACE_io_end, fake_object(TRACE_OBJECT_pipe, 5), 0, 1, 0);
	if (nr == 1 && step % 7 == 0) { /* a library comes, and is used at once */
		uint64_t base = 0x10000000ull + 0x100000ull * step;
		fake_module(t, now + 4, base, base + 0x1000, base, "/lib/x.so");
		FAKE(t, now + 5, TRACE_lock_acquire, mutex, base + 0x10);
		FAKE(t, now + 6, TRACE_lock_release, mutex, base + 0x20);
	}
	if (nr == 0 && step == STEPS - 2) /* of the machine that began at the start */
		FAKE(t, now + 7, TRACE_note_end, NAME_ACTOR);
	if (step % 11 == nr) { /* its block is full */
		fake_done(t);
		fake_take_block(t, free_block(p));
	}
}

static void do_step(struct program *p, unsigned step)
{
	uint64_t now = 1000 + 1000 * step;
	for (unsigned nr = 0; nr < THREADS; nr++) {
		bool late = nr >= 2;
		if (step < (late ? LATE : 0) || (nr == 2 && step >= SILENT))
			continue;
		if (!p->began[nr])
			begin_thread(p, nr, now);
		act(p, nr, step, now + 100 * (1 + nr));
	}
}

static void open_program(struct program *p, bool keeps)
{
	memset(p, 0, sizeof *p);
	p->keep.journal_fd = -1;
	fixture_open(&p->f);
	if (!keeps)
		return;
	session_keep_open(&p->keep, &p->f.ring, p->f.writer, &p->f.clock,
		&(struct session_keep_what){.trace_path = p->f.path, .command = "prog a 'b c'"});
	assert_non_null(p->keep.head);
	p->f.converter.sink.journal = &p->keep.journal;
}

/* Without a word, in the middle of whatever it does; the place stays. */
static void die(struct program *p)
{
	session_keep_close(&p->keep);
	session_place_leave(&p->f.ring.place);
	record_converter_fini(&p->f.converter);
	session_ring_destroy(&p->f.ring);
}

/* ---- what a trace says, without the numbers that it gives to things -------------------------- */

static char line[2][LINES_MAX][LINE_BYTES];

static void add_site(struct base_str *out, const struct trace_defs *d, uint32_t id)
{
	const struct trace_site *s = trace_def_site(d, id);
	base_str_addf(out, "%s+%llx", trace_text_of(d, trace_def_module(d, s->module)->path),
		(unsigned long long)s->offset);
}

static void add_field(struct base_str *out, const struct trace_defs *d,
	const struct trace_record *r, const struct trace_field_desc *f)
{
	const void *at = (const char *)r + f->offset;
	uint64_t value = f->type == TRACE_FIELD_ID ? *(const uint32_t *)at : *(const uint64_t *)at;
	base_str_addf(out, " %s=", f->name);
	if (!strcmp(f->unit, "object")) {
		const struct trace_object *o = trace_def_object(d, (uint32_t)value);
		base_str_addf(out, "%llu:%llx:%s", (unsigned long long)o->type,
			(unsigned long long)o->address, trace_text_of(d, o->name));
	} else if (!strcmp(f->unit, "site")) {
		add_site(out, d, (uint32_t)value);
	} else if (!strcmp(f->unit, "actor")) {
		const struct trace_actor *a = trace_def_actor(d, (uint32_t)value);
		base_str_addf(
			out, "%s.%llu", trace_text_of(d, a->name), (unsigned long long)a->instance);
	} else {
		base_str_addf(out, "%llu", (unsigned long long)value);
	}
}

static void describe(struct base_str *out, const struct trace_defs *d, const struct trace_record *r)
{
	const struct trace_kind_desc *k = trace_kind_find(r->kind);
	const struct trace_stream *s = trace_def_stream(d, r->stream);
	base_str_addf(out, "%llu %llu/%llu %s", (unsigned long long)r->time_ns,
		(unsigned long long)trace_def_process(d, s->process)->pid,
		(unsigned long long)s->tid, k->name);
	for (unsigned i = 0; i < k->nr_fields; i++)
		add_field(out, d, r, &k->field[i]);
}

static int by_text(const void *a, const void *b)
{
	return strcmp(a, b);
}

/* As sorted lines: at one time streams may stand in another order. */
static size_t read_lines(const char *path, char (*ret)[LINE_BYTES])
{
	struct trace_reader *reader = NULL;
	struct trace_batch batch;
	size_t nr = 0;
	assert_int_equal(trace_reader_open(path, NULL, &reader, NULL), BASE_OK);
	while (trace_reader_next(reader, &batch, NULL) == BASE_OK)
		for (size_t i = 0; i < batch.nr; i++) {
			struct base_str text = {0};
			describe(&text, trace_reader_defs(reader), &batch.record[i]);
			assert_true(nr < LINES_MAX && text.length < LINE_BYTES);
			memcpy(ret[nr++], base_str_text(&text), text.length + 1);
			base_str_fini(&text);
		}
	const struct trace_health *h = trace_reader_health(reader);
	assert_int_equal(h->count[TRACE_DIAG_index_rebuilt], 0);
	assert_int_equal(h->count[TRACE_DIAG_time_raised], 0);
	assert_int_equal(h->count[TRACE_DIAG_ids_unknown], 0);
	trace_reader_close(reader);
	qsort(ret, nr, LINE_BYTES, by_text);
	return nr;
}

static void expect_same(size_t nr_want, size_t nr, unsigned cut)
{
	for (size_t i = 0; i < nr_want && i < nr; i++)
		if (strcmp(line[0][i], line[1][i]) != 0)
			fail_msg("cut off at step %u: '%s' instead of '%s'", cut, line[1][i],
				line[0][i]);
	assert_int_equal(nr, nr_want);
}

/* ---- tests ----------------------------------------------------------------------------------- */

/* The one that this process has left. */
static struct session_left_recording the_left(void)
{
	struct session_left_recording *left, ret = {.name = ""};
	char own[32];
	size_t nr;
	snprintf(own, sizeof own, "%d-", (int)getpid());
	assert_int_equal(session_left_list(&left, &nr, NULL), BASE_OK);
	for (size_t i = 0; i < nr; i++)
		if (!strncmp(left[i].name, own, strlen(own))) {
			assert_string_equal(ret.name, "");
			ret = left[i];
		}
	base_free(left);
	return ret;
}

static size_t uncut(void)
{
	struct program p;
	open_program(&p, false);
	for (unsigned step = 0; step < STEPS; step++)
		do_step(&p, step);
	fixture_finish(&p.f);
	size_t nr = read_lines(p.f.path, line[0]);
	fixture_close(&p.f);
	return nr;
}

/* A look of the recorder every third step, a checkpoint every `every` looks. */
static void run_to(struct program *p, unsigned cut, unsigned every)
{
	for (unsigned step = 0; step < cut; step++) {
		do_step(p, step);
		if (step % 3)
			continue;
		uint64_t now = 1000 + 1000 * step + 500; /* in the middle of the step's records */
		fixture_drain(&p->f, now);
		if (step % (3 * every) == 0) {
			p->keep.next_ns = 0;
			session_keep_look(&p->keep, now, now);
		}
	}
}

static void has_each_record_once(void **state)
{
	(void)state;
	size_t nr_want = uncut();
	static const unsigned every[] = {1, 2, 100};
	for (size_t e = 0; e < BASE_COUNT(every); e++)
		for (unsigned cut = 0; cut <= STEPS; cut += 3 - (unsigned)e) {
			struct program p;
			struct session_recovered r;
			open_program(&p, true);
			run_to(&p, cut, every[e]);
			for (unsigned step = cut; step < STEPS; step++) /* it goes on */
				do_step(&p, step);
			die(&p);
			assert_int_equal(trace_writer_close(p.f.writer, NULL), BASE_OK);
			struct session_left_recording left = the_left();
			assert_string_equal(left.command, "prog a 'b c'");
			assert_true(left.trace_is_there);
			assert_int_equal(left.why_not.status, BASE_OK);
			struct base_err err = {0};
			if (session_recover(left.name, p.f.path, &r, &err) != BASE_OK)
				fail_msg("cut off at step %u: %s", cut, err.cause[0]);
			assert_int_equal(r.count[TRACE_DIAG_recorder_killed], 1);
			assert_int_equal(r.count[TRACE_DIAG_ring_damaged], 0);
			expect_same(nr_want, read_lines(p.f.path, line[1]), cut);
			assert_true(session_left_remove(left.name));
			assert_false(session_left_remove(left.name));
			unlink(p.f.path);
		}
}

/* One that was cut off, to be spoiled; the name is what it is called. */
static struct session_left_recording cut_off(struct program *p)
{
	open_program(p, true);
	run_to(p, 30, 2);
	die(p);
	assert_int_equal(trace_writer_close(p->f.writer, NULL), BASE_OK);
	return the_left();
}

static void write_at(const struct session_left_recording *left, size_t offset, uint32_t value)
{
	char path[256];
	snprintf(path, sizeof path, "/dev/shm/longpole-session-%s/session", left->name);
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(pwrite(fd, &value, sizeof value, (off_t)offset), sizeof value);
	close(fd);
}

/* What cannot be recovered says why, and can be removed. */
static void refuses_what_it_cannot_read(void **state)
{
	(void)state;
	struct program p;
	struct session_recovered r;
	struct base_err err = {0};
	char out[128];
	struct session_left_recording left = cut_off(&p);
	snprintf(out, sizeof out, "%s.out", p.f.path);
	write_at(&left, offsetof(struct session_keep_head, version), 99);
	left = the_left();
	assert_int_equal(left.why_not.status, BASE_ERR_VERSION);
	assert_int_equal(session_recover(left.name, out, &r, &err), BASE_ERR_VERSION);
	assert_non_null(strstr(err.cause[0], "another version"));
	write_at(&left, offsetof(struct session_keep_head, version), SESSION_KEEP_VERSION);
	write_at(&left, offsetof(struct session_keep_head, nr_blocks), 7);
	assert_int_equal(session_recover(left.name, out, &r, &err), BASE_ERR_CORRUPT);
	assert_true(session_left_remove(left.name));
	assert_int_equal(session_recover(left.name, out, &r, &err), BASE_ERR_USAGE);
	unlink(p.f.path);
	left = cut_off(&p);
	unlink(p.f.path);
	assert_int_equal(session_recover(left.name, out, &r, &err), BASE_ERR_ENV);
	assert_true(session_left_remove(left.name));
	assert_int_not_equal(access(out, F_OK), 0);
}

/* Its name was taken by a later recording: what it wrote has another one. */
static void a_later_recording_makes_way(void **state)
{
	(void)state;
	struct program p;
	struct session_recovered r;
	char out[128];
	struct session_left_recording left = cut_off(&p);
	snprintf(out, sizeof out, "%s.out", p.f.path);
	session_left_make_way(p.f.path);
	unlink(p.f.path);
	struct base_err err = {0};
	if (session_recover(left.name, out, &r, &err) != BASE_OK)
		fail_msg("%s", err.cause[0]);
	assert_true(r.records > 100);
	snprintf(out, sizeof out, "%s.%s", p.f.path, left.name);
	assert_int_equal(access(out, F_OK), 0);
	assert_true(session_left_remove(left.name));
	assert_int_not_equal(access(out, F_OK), 0);
	snprintf(out, sizeof out, "%s.out", p.f.path);
	unlink(out);
}

/* Without memory there is an error or a whole trace, and what is left stays. */
static void survives_lack_of_memory(void **state)
{
	(void)state;
	struct program p;
	struct session_recovered r;
	struct session_left_recording left = cut_off(&p);
	char out[128];
	snprintf(out, sizeof out, "%s.out", p.f.path);
	bool done = false;
	for (uint64_t nth = 1; !done; nth++) {
		base_alloc_fail_nth(nth);
		done = session_recover(left.name, out, &r, NULL) == BASE_OK;
		base_alloc_fail_nth(0);
		assert_true(nth < 2000);
	}
	assert_true(r.records > 100);
	unlink(out);
	unlink(p.f.path);
	assert_true(session_left_remove(left.name));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(has_each_record_once),
		cmocka_unit_test(refuses_what_it_cannot_read),
		cmocka_unit_test(a_later_recording_makes_way),
		cmocka_unit_test(survives_lack_of_memory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
