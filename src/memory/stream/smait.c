/* SPDX-License-Identifier: Apache-2.0 */
/* smait.c - the source that reads SMAIT's binary traces. */
#include "memory/stream/smait.h"
#include "memory/stream/files.h"

#include <string.h>

enum {
	INSTRUCTION_BYTES = 4,
	BLOCK_MAX_INSTRUCTIONS = 16 * 1024 - 1, /* that a BLOCK's size_bytes holds */
	GAP_MAX_BYTES = 1 << 20, /* no straight-line code is longer; the program counter was lost */
	ITEMS_PER_RECORD = 2,    /* besides the blocks before a branch */
	BATCH_CALLS = MEMORY_BATCH_MAX / 4,
};

struct stream {
	struct memory_file file;
	bool swapped;    /* its byte order is not ours */
	bool has_pc;     /* the program counter is known */
	uint64_t pc;     /* next instruction, as section 3 reconstructs it */
	uint64_t gap_to; /* blocks up to there still go out, then `pending` */
	bool has_pending;
	struct memory_item pending; /* the branch behind a gap */
	uint64_t records;           /* read so far */
	uint32_t last_us;           /* start of the call before */
	uint64_t epoch_us;          /* what wrapping of the 32-bit times adds */
	struct memory_item *item;   /* MEMORY_BATCH_MAX */
	struct memory_call *call;   /* BATCH_CALLS */
};

struct smait {
	struct memory_source source;
	struct stream *stream;
};

struct simple {
	uint32_t a, b;
};

static struct simple load_record(const uint8_t *p, bool swapped)
{
	struct simple r;
	memcpy(&r, p, sizeof r);
	return swapped ? (struct simple){__builtin_bswap32(r.a), __builtin_bswap32(r.b)} : r;
}

/* ---- is it one, and in which byte order ------------------------------------------------------ */

static bool smait_is_access(uint32_t a)
{
	unsigned type = a & 15, size = a >> 4 & 15, reg = a >> 8 & 15;
	return a < 0x1000 && type <= 1 && reg <= 1 && size <= 8 && (size || type);
}

static bool is_call(uint32_t a)
{
	return a >> 12 == 1 && (a & 15) < MEMORY_SMAIT_CALL_RECORDS &&
	       memory_call_find(a >> 4 & 0xff) != NULL;
}

static bool smait_is_code(uint32_t a)
{
	return a >> 28 == 4 || a >> 28 == 8 || a >> 28 == 12;
}

/* Of the whole records here, how many make sense in that order; code records are easily mistaken
 * and count for less. */
static unsigned plausible(const uint8_t *bytes, size_t size_bytes, bool swapped, bool *ret_code)
{
	unsigned score = 0;
	for (size_t i = 0; i + MEMORY_SMAIT_RECORD_BYTES <= size_bytes;
		i += MEMORY_SMAIT_RECORD_BYTES) {
		struct simple r = load_record(bytes + i, swapped);
		score += smait_is_access(r.a) || is_call(r.a) ? 4 : smait_is_code(r.a) ? 3 : 0;
		*ret_code |= smait_is_code(r.a);
	}
	return score;
}

unsigned memory_source_smait_probe(const uint8_t *bytes, size_t size_bytes, const char *path);
unsigned memory_source_smait_probe(const uint8_t *bytes, size_t size_bytes, const char *path)
{
	uint8_t head[MEMORY_PROBE_BYTES];
	struct base_str first = {0};
	base_str_addf(&first, "%s.0", path);
	if (!size_bytes && !first.failed) { /* a stem: look at thread 0 */
		struct memory_file f;
		struct base_err err;
		if (memory_file_open(&f, base_str_text(&first), &err) == BASE_OK) {
			if (memory_file_fill(&f, sizeof head, &size_bytes, &err) != BASE_OK)
				size_bytes = 0;
			size_bytes = size_bytes < sizeof head ? size_bytes : sizeof head;
			memcpy(head, f.buffer, size_bytes);
			bytes = head;
			memory_file_close(&f);
		}
	}
	base_str_fini(&first);
	size_t nr = size_bytes / MEMORY_SMAIT_RECORD_BYTES;
	bool code = false;
	unsigned same = nr ? plausible(bytes, size_bytes, false, &code) : 0;
	unsigned other = nr ? plausible(bytes, size_bytes, true, &code) : 0;
	unsigned best = same > other ? same : other;
	return nr ? (unsigned)(best * 60 / (nr * 4)) >= 40 ? best * 60 / (unsigned)(nr * 4) : 0 : 0;
}

/* ---- records into items ---------------------------------------------------------------------- */

struct output {
	struct memory_batch *batch;
	struct memory_item *item;
	struct memory_call *call;
};

static struct memory_item *add_item(struct output *o, struct memory_item t)
{
	o->item[o->batch->nr] = t;
	return &o->item[o->batch->nr++];
}

/* Instructions [pc, to): one block, or as much as one holds. */
static void smait_add_block(struct output *o, struct stream *st, uint64_t to)
{
	uint64_t nr = (to - st->pc) / INSTRUCTION_BYTES;
	if (nr > BLOCK_MAX_INSTRUCTIONS)
		nr = BLOCK_MAX_INSTRUCTIONS;
	add_item(o, (struct memory_item){.kind = MEMORY_BLOCK,
			    .address = st->pc,
			    .code = st->pc,
			    .count = nr,
			    .size_bytes = (uint16_t)(nr * INSTRUCTION_BYTES)});
	st->pc += nr * INSTRUCTION_BYTES;
}

static void access_record(struct output *o, struct stream *st, struct simple r)
{
	struct memory_item t = {.kind = r.a & 1 ? MEMORY_STORE : MEMORY_LOAD,
		.address = r.b,
		.size_bytes = (uint16_t)(r.a >> 4 & 15),
		.reg = r.a >> 8 & 1 ? MEMORY_REG_FLOAT : MEMORY_REG_INTEGER,
		.instructions = 1};
	if (st->has_pc) {
		t.code = st->pc;
		smait_add_block(o, st, st->pc + INSTRUCTION_BYTES);
	}
	add_item(o, t);
}

/* The instructions between the program counter and a branch go out before it, perhaps over several
 * batches. */
static void branch_record(
	struct smait *m, struct output *o, struct stream *st, struct simple r, uint32_t thread)
{
	uint64_t from = r.a & 0x0fffffff;
	struct memory_item t = {.kind = r.a >> 28 == 8 ? MEMORY_BRANCH : MEMORY_PROC_CALL,
		.code = from >= INSTRUCTION_BYTES ? from - INSTRUCTION_BYTES : 0,
		.address = r.b};
	(void)o;
	if (st->has_pc && (from < st->pc || from - st->pc > GAP_MAX_BYTES)) {
		memory_diag_add(&m->source.diags, MEMORY_DIAG_branch_gap, thread, st->records);
		st->has_pc = false;
	}
	st->gap_to = st->has_pc ? from & ~UINT64_C(3) : 0;
	if (st->has_pc && st->gap_to > st->pc)
		t.instructions = (uint32_t)((st->gap_to - st->pc) / INSTRUCTION_BYTES);
	st->pending = t;
	st->has_pending = true;
}

/* What is left of a branch record; false: the batch is full. */
static bool smait_drain(struct output *o, struct stream *st)
{
	while (st->has_pending) {
		if (o->batch->nr + ITEMS_PER_RECORD > MEMORY_BATCH_MAX)
			return false;
		if (st->has_pc && st->pc < st->gap_to) {
			smait_add_block(o, st, st->gap_to);
			continue;
		}
		add_item(o, st->pending);
		st->has_pc = true;
		st->pc = st->pending.address & ~UINT64_C(3);
		st->has_pending = false;
	}
	return true;
}

static uint64_t unwrap_us(struct stream *st, uint32_t us)
{
	if (us < st->last_us && st->last_us - us > UINT32_C(1) << 31)
		st->epoch_us += UINT64_C(1) << 32;
	return st->epoch_us + us;
}

static void call_record(struct smait *m, struct output *o, struct stream *st,
	const struct simple field[MEMORY_SMAIT_CALL_RECORDS], uint32_t thread)
{
	uint32_t start_us = field[0].b, length_us = field[1].b - start_us;
	struct memory_diags *d = &m->source.diags;
	if (length_us > INT32_MAX) {
		memory_diag_add(d, MEMORY_DIAG_negative_time, thread, st->records);
		length_us = 0;
	}
	if (start_us < st->last_us && st->last_us - start_us <= UINT32_C(1) << 31)
		memory_diag_add(d, MEMORY_DIAG_time_backward, thread, st->records);
	uint64_t at_us = unwrap_us(st, start_us);
	st->last_us = start_us;
	struct memory_call *c = &o->call[o->batch->nr_calls];
	*c = (struct memory_call){.kind = (uint8_t)(field[0].a >> 4 & 0xff),
		.start_ns = at_us * 1000,
		.end_ns = (at_us + length_us) * 1000};
	for (unsigned i = 0; i < BASE_COUNT(c->argument); i++)
		c->argument[i] = field[2 + i].b;
	add_item(o, (struct memory_item){.kind = MEMORY_CALL, .address = o->batch->nr_calls++});
}

/* A call record's six parts; those that do not belong together are left out one by one. */
static enum base_status smait_read_call(
	struct smait *m, struct output *o, struct stream *st, uint32_t thread, struct base_err *err)
{
	struct simple field[MEMORY_SMAIT_CALL_RECORDS];
	size_t unread;
	enum base_status s = memory_file_fill(&st->file, sizeof field, &unread, err);
	if (s != BASE_OK)
		return s;
	const uint8_t *p = st->file.buffer + st->file.at;
	unsigned nr = 0;
	for (; nr < MEMORY_SMAIT_CALL_RECORDS && (nr + 1) * sizeof *field <= unread; nr++) {
		field[nr] = load_record(p + nr * sizeof *field, st->swapped);
		if (field[nr].a != (field[0].a & ~UINT32_C(15)) + nr)
			break;
	}
	if (nr == MEMORY_SMAIT_CALL_RECORDS) {
		st->file.at += sizeof field;
		st->records += MEMORY_SMAIT_CALL_RECORDS;
		call_record(m, o, st, field, thread);
		return BASE_OK;
	}
	unsigned skipped = nr ? nr : 1;
	st->file.at += skipped * sizeof *field;
	st->records += skipped;
	memory_diag_add(&m->source.diags, MEMORY_DIAG_cut_call, thread, st->records);
	return BASE_OK;
}

/* One record; BASE_END at the file's end. */
static enum base_status smait_read_record(
	struct smait *m, struct output *o, struct stream *st, uint32_t thread, struct base_err *err)
{
	size_t unread = st->file.filled - st->file.at;
	if (BASE_UNLIKELY(unread < MEMORY_SMAIT_RECORD_BYTES)) {
		enum base_status s =
			memory_file_fill(&st->file, MEMORY_SMAIT_RECORD_BYTES, &unread, err);
		if (s != BASE_OK)
			return s;
		if (unread < MEMORY_SMAIT_RECORD_BYTES) {
			if (unread)
				memory_diag_add(&m->source.diags, MEMORY_DIAG_truncated, thread,
					st->records + 1);
			st->file.at = st->file.filled;
			return BASE_END;
		}
	}
	struct simple r = load_record(st->file.buffer + st->file.at, st->swapped);
	if (is_call(r.a))
		return smait_read_call(m, o, st, thread, err);
	st->file.at += MEMORY_SMAIT_RECORD_BYTES;
	st->records++;
	if (smait_is_access(r.a)) {
		access_record(o, st, r);
	} else if (r.a >> 28 == 4) {
		st->has_pc = true;
		st->pc = r.b & ~UINT32_C(3);
		add_item(o, (struct memory_item){.kind = MEMORY_PROC_START, .address = r.b});
	} else if (smait_is_code(r.a)) {
		branch_record(m, o, st, r, thread);
	} else {
		memory_diag_add(&m->source.diags, MEMORY_DIAG_bad_record, thread, st->records);
	}
	return BASE_OK;
}

static enum base_status smait_next(
	struct memory_source *source, int thread, struct memory_batch *ret, struct base_err *err)
{
	struct smait *m = (struct smait *)source;
	if (thread < 0 || (uint32_t)thread >= source->info.nr_threads)
		return base_fail(
			err, BASE_ERR_USAGE, "thread %d of %u", thread, source->info.nr_threads);
	struct stream *st = &m->stream[thread];
	if (!st->item)
		st->item = base_alloc(MEMORY_BATCH_MAX * sizeof *st->item);
	if (!st->call)
		st->call = base_alloc(BATCH_CALLS * sizeof *st->call);
	if (!st->item || !st->call)
		return base_fail(err, BASE_ERR_NOMEM, "no memory to read thread %d", thread);
	*ret = (struct memory_batch){.item = st->item,
		.call = st->call,
		.thread = (uint32_t)thread,
		.first_record = st->records + 1};
	struct output o = {.batch = ret, .item = st->item, .call = st->call};
	enum base_status s = BASE_OK;
	while (smait_drain(&o, st) && ret->nr + ITEMS_PER_RECORD <= MEMORY_BATCH_MAX &&
		ret->nr_calls < BATCH_CALLS) {
		s = smait_read_record(m, &o, st, (uint32_t)thread, err);
		if (s != BASE_OK)
			break;
	}
	return s == BASE_END && (ret->nr || st->has_pending) ? BASE_OK : s;
}

/* ---- opening --------------------------------------------------------------------------------- */

static void smait_close(struct memory_source *source)
{
	struct smait *m = (struct smait *)source;
	for (uint32_t i = 0; m->stream && i < source->info.nr_threads; i++) {
		memory_file_close(&m->stream[i].file);
		base_free(m->stream[i].item);
		base_free(m->stream[i].call);
	}
	base_free(m->stream);
	base_free(m);
}

static enum base_status smait_rewind(struct memory_source *source, struct base_err *err)
{
	struct smait *m = (struct smait *)source;
	source->diags = (struct memory_diags){0};
	for (uint32_t i = 0; i < source->info.nr_threads; i++) {
		struct stream *st = &m->stream[i];
		enum base_status s = memory_file_rewind(&st->file, err);
		if (s != BASE_OK)
			return s;
		*st = (struct stream){.file = st->file,
			.swapped = st->swapped,
			.item = st->item,
			.call = st->call};
	}
	return BASE_OK;
}

static const struct memory_source_ops smait_ops = {
	.next = smait_next, .rewind = smait_rewind, .close = smait_close};

/* Opens thread i's file and finds its byte order; *ret_code: it has records of code. */
static enum base_status open_stream(
	struct stream *st, const char *name, bool *ret_code, struct base_err *err)
{
	enum base_status s = memory_file_open(&st->file, name, err);
	size_t unread;
	if (s == BASE_OK)
		s = memory_file_fill(&st->file, MEMORY_FILE_BUFFER_BYTES / 2, &unread, err);
	if (s != BASE_OK)
		return s;
	bool code_same = false, code_swapped = false;
	unsigned same = plausible(st->file.buffer, unread, false, &code_same);
	unsigned swapped = plausible(st->file.buffer, unread, true, &code_swapped);
	if (unread >= MEMORY_SMAIT_RECORD_BYTES && !same && !swapped)
		return base_fail(err, BASE_ERR_FOREIGN,
			"%s: none of its first records is one of SMAIT's", name);
	st->swapped = swapped > same;
	*ret_code |= st->swapped ? code_swapped : code_same;
	return BASE_OK;
}

enum base_status memory_source_smait_open(const char *const *paths, size_t nr_paths,
	struct memory_source **ret, struct base_err *err);
enum base_status memory_source_smait_open(
	const char *const *paths, size_t nr_paths, struct memory_source **ret, struct base_err *err)
{
	char **name = NULL;
	size_t nr = 0;
	bool code = false;
	*ret = NULL;
	enum base_status s = memory_file_names(paths, nr_paths, &name, &nr, err);
	if (s != BASE_OK)
		return s;
	struct smait *m = base_alloc(sizeof *m);
	if (m)
		m->stream = base_alloc(nr * sizeof *m->stream);
	if (!m || !m->stream) {
		base_free(m);
		memory_file_names_free(name, nr);
		return base_fail(err, BASE_ERR_NOMEM, "no memory for %zu {stream|streams}", nr);
	}
	m->source.ops = &smait_ops;
	for (size_t i = 0; i < nr; i++)
		m->stream[i].file.fd = -1;
	m->source.info = (struct memory_source_info){.nr_threads = (uint32_t)nr,
		.instruction_bytes = INSTRUCTION_BYTES,
		.format = "smait",
		.unseen = "what ran in libraries, in the kernel and in other untraced code"};
	for (size_t i = 0; i < nr && s == BASE_OK; i++)
		s = open_stream(&m->stream[i], name[i], &code, err);
	m->source.info.flags = MEMORY_SOURCE_THREADS | MEMORY_SOURCE_TIMES |
			       MEMORY_SOURCE_REGISTERS | (code ? MEMORY_SOURCE_INSTRUCTIONS : 0);
	memory_file_names_free(name, nr);
	if (s != BASE_OK) {
		smait_close(&m->source);
		return s;
	}
	*ret = &m->source;
	return BASE_OK;
}
