/* SPDX-License-Identifier: Apache-2.0 */
/* lpt.c - the source that reads memory streams of .lpt files. */
#include "memory/stream/decode.h"
#include "trace/trace.h"

#include <stdlib.h>
#include <string.h>

enum { BATCH_CALLS = 256, MEMORY_PROCESSES_NAMED = 8 };

struct thread {
	uint32_t *chunk; /* numbers in lpt.chunk[] */
	size_t nr_chunks, capacity, next_chunk;
	uint64_t number, fs_base, sequence;
	uint64_t token;            /* what its creator's record calls it; 0: none */
	uint64_t begin_ns, end_ns; /* its first record, and its last */
	uint32_t tid, stream;
	struct memory_decoder *decoder; /* between the first chunk and the last */
	uint8_t *bytes;                 /* of the chunk */
	struct memory_walk walk;
	bool in_piece, in_chunk;
	struct memory_item *item;
	struct memory_call *call;
};

struct lpt {
	struct memory_source source;
	struct trace_reader *reader;
	struct trace_content_chunk *chunk;
	size_t nr_chunks;
	struct memory_tables tables;
	struct memory_clock clock;
	unsigned level;
	uint32_t image;
	struct memory_process *process; /* images, by number */
	size_t nr_processes, processes_capacity;
	bool serial;          /* the recorder ran one thread at a time, and saw all code */
	unsigned chunk_flags; /* of some chunk: enum memory_chunk_flag */
	struct thread *thread;
	size_t nr_threads, threads_capacity;
	struct base_str unseen;
};

unsigned memory_source_lpt_probe(const uint8_t *bytes, size_t size_bytes, const char *path);
enum base_status memory_source_lpt_open(const char *const *paths, size_t nr_paths,
	struct memory_source **ret, struct base_err *err);

unsigned memory_source_lpt_probe(const uint8_t *bytes, size_t size_bytes, const char *path)
{
	(void)path;
	return size_bytes >= 8 && !memcmp(bytes, "longpole", 8) ? 100 : 0;
}

/* ---- reading --------------------------------------------------------------------------------- */

static void lpt_lost(struct lpt *l, struct thread *t)
{
	memory_diag_add(&l->source.diags, MEMORY_DIAG_lost, (uint32_t)(t - l->thread), 0);
}

/* BASE_END: the thread has no more. Damaged chunks are counted and passed over. */
static enum base_status next_chunk(struct lpt *l, struct thread *t, struct base_err *err)
{
	while (t->next_chunk < t->nr_chunks) {
		const struct trace_content_chunk *c = &l->chunk[t->chunk[t->next_chunk++]];
		struct memory_chunk_head head;
		struct base_err why = {0};
		enum base_status status = trace_reader_content(l->reader, c, t->bytes, &why);
		if (status == BASE_OK)
			status = memory_decoder_chunk(t->decoder, t->bytes, c->size_bytes, &why);
		if (status == BASE_ERR_CORRUPT || status == BASE_ERR_TRUNCATED) {
			lpt_lost(l, t);
			t->walk.previous = 0;
			continue;
		}
		if (status != BASE_OK) {
			if (err)
				*err = why;
			return status;
		}
		memcpy(&head, t->bytes, sizeof head);
		if (head.lost || (t->sequence && head.sequence != t->sequence)) {
			lpt_lost(l, t);
			t->walk.previous = 0;
		}
		t->sequence = head.sequence + 1;
		t->walk.fs_base = head.fs_base;
		t->in_chunk = true;
		return BASE_OK;
	}
	return BASE_END;
}

static enum base_status next_piece(struct lpt *l, struct thread *t, struct base_err *err)
{
	for (;;) {
		struct memory_words words;
		struct base_err why = {0};
		if (t->in_chunk) {
			enum base_status status = memory_decoder_piece(t->decoder, &words, &why);
			if (status == BASE_OK) {
				memory_walk_begin(&t->walk, &words);
				t->in_piece = true;
				return BASE_OK;
			}
			t->in_chunk = false;
			if (status != BASE_END) {
				lpt_lost(l, t);
				t->walk.previous = 0;
			}
		}
		enum base_status status = next_chunk(l, t, err);
		if (status != BASE_OK)
			return status;
	}
}

static enum base_status start_thread(struct lpt *l, struct thread *t, struct base_err *err)
{
	if (t->decoder)
		return BASE_OK;
	t->decoder = memory_decoder_new(&l->tables);
	t->bytes = base_alloc(MEMORY_CHUNK_MAX_BYTES + TRACE_CONTENT_PAD_BYTES);
	t->item = base_alloc(MEMORY_BATCH_MAX * sizeof *t->item);
	t->call = base_alloc(BATCH_CALLS * sizeof *t->call);
	t->walk.tables = &l->tables;
	t->walk.clock = l->clock;
	t->walk.level = l->level;
	if (t->decoder && t->bytes && t->item && t->call)
		return BASE_OK;
	return base_fail(err, BASE_ERR_NOMEM, "no memory to decode a thread's stream");
}

static void stop_thread(struct thread *t)
{
	memory_decoder_free(t->decoder);
	base_free(t->bytes);
	base_free(t->item);
	base_free(t->call);
	t->decoder = NULL;
	t->bytes = NULL;
	t->item = NULL;
	t->call = NULL;
	t->in_chunk = t->in_piece = false;
}

static void settle_counts(struct lpt *l, struct thread *t)
{
	uint32_t n = (uint32_t)(t - l->thread);
	if (t->walk.counts.bad_addresses) {
		memory_diag_add(&l->source.diags, MEMORY_DIAG_bad_address, n, 0);
		l->source.diags.count[MEMORY_DIAG_bad_address] += t->walk.counts.bad_addresses - 1;
		t->walk.counts.bad_addresses = 0;
	}
	if (t->walk.counts.bad_words) {
		memory_diag_add(&l->source.diags, MEMORY_DIAG_bad_record, n, 0);
		t->walk.counts.bad_words = 0;
	}
}

/* Records name a thread that they create by a token, or by its handle, which is where its thread
 * data is; one that they join by its handle. Both become numbers; what cannot be found stays no
 * thread's number. Handles are used again: the first one that began since its creation began is
 * meant. */
static uint64_t find_created(const struct lpt *l, const struct memory_call *c)
{
	uint64_t token = c->argument[0], handle = c->argument[1], best = UINT64_MAX;
	for (size_t i = 0; i < l->nr_threads; i++) {
		const struct thread *t = &l->thread[i];
		if (token && t->token == token)
			return i;
		if (!token && handle && t->fs_base == handle && t->begin_ns >= c->start_ns &&
			(best == UINT64_MAX || t->begin_ns < l->thread[best].begin_ns))
			best = i;
	}
	return best;
}

/* Handles are used again: the last one that began before the join was over is meant. */
static uint64_t find_joined(const struct lpt *l, uint64_t handle, uint64_t end_ns)
{
	uint64_t best = UINT64_MAX;
	for (size_t i = 0; i < l->nr_threads; i++) {
		const struct thread *t = &l->thread[i];
		if (t->fs_base == handle && t->begin_ns <= end_ns &&
			(best == UINT64_MAX || t->begin_ns >= l->thread[best].begin_ns))
			best = i;
	}
	return best;
}

static void lpt_name_threads(const struct lpt *l, struct memory_call *call, size_t nr)
{
	for (size_t i = 0; i < nr; i++) {
		if (call[i].kind == MEMORY_CALL_thread_create)
			call[i].argument[0] = find_created(l, &call[i]);
		else if (call[i].kind == MEMORY_CALL_thread_join)
			call[i].argument[0] =
				l->serial ? find_created(l, &call[i])
					  : find_joined(l, call[i].argument[0], call[i].end_ns);
	}
}

static enum base_status lpt_next(
	struct memory_source *s, int thread, struct memory_batch *ret, struct base_err *err)
{
	struct lpt *l = (struct lpt *)s;
	*ret = (struct memory_batch){0};
	if (thread < 0 || (size_t)thread >= l->nr_threads)
		return base_fail(
			err, BASE_ERR_USAGE, "there is no thread %d, or no total order", thread);
	struct thread *t = &l->thread[thread];
	if (t->next_chunk == t->nr_chunks && !t->in_chunk && !t->in_piece)
		return BASE_END;
	enum base_status status = start_thread(l, t, err);
	while (status == BASE_OK) {
		if (t->in_piece) {
			size_t nr_calls;
			size_t nr = memory_walk_items(&t->walk, t->item, MEMORY_BATCH_MAX, t->call,
				BATCH_CALLS, &nr_calls);
			if (nr) {
				lpt_name_threads(l, t->call, nr_calls);
				*ret = (struct memory_batch){.item = t->item,
					.nr = nr,
					.call = t->call,
					.nr_calls = nr_calls,
					.thread = (uint32_t)thread};
				return BASE_OK;
			}
			t->in_piece = false;
			settle_counts(l, t);
		}
		status = next_piece(l, t, err);
	}
	if (status == BASE_END)
		stop_thread(t);
	return status;
}

static enum base_status lpt_rewind(struct memory_source *s, struct base_err *err)
{
	struct lpt *l = (struct lpt *)s;
	(void)err;
	for (size_t i = 0; i < l->nr_threads; i++) {
		struct thread *t = &l->thread[i];
		stop_thread(t);
		t->next_chunk = 0;
		t->sequence = 0;
		t->walk = (struct memory_walk){0};
	}
	return BASE_OK;
}

static bool lpt_linked(const struct memory_source *s, uint64_t address, bool code, size_t candidate,
	struct memory_linked *ret)
{
	return memory_tables_place(&((const struct lpt *)s)->tables, address, code, candidate, ret);
}

static void lpt_silent(const struct memory_source *s, uint32_t thread, struct memory_silent *ret)
{
	const struct lpt *l = (const struct lpt *)s;
	*ret = thread < l->nr_threads ? l->thread[thread].walk.counts.silent
				      : (struct memory_silent){0};
}

static bool lpt_life(const struct memory_source *s, uint32_t thread, struct memory_life *ret)
{
	const struct lpt *l = (const struct lpt *)s;
	if (thread >= l->nr_threads)
		return false;
	const struct thread *t = &l->thread[thread];
	*ret = (struct memory_life){t->begin_ns, t->end_ns, t->fs_base};
	return true;
}

static bool lpt_on_stack(
	const struct memory_source *s, uint32_t thread, uint64_t address, uint64_t bytes)
{
	const struct lpt *l = (const struct lpt *)s;
	return thread < l->nr_threads &&
	       memory_stacks_have(&l->thread[thread].walk.stacks, address, bytes);
}

static void lpt_close(struct memory_source *s)
{
	struct lpt *l = (struct lpt *)s;
	for (size_t i = 0; i < l->nr_threads; i++) {
		stop_thread(&l->thread[i]);
		base_free(l->thread[i].chunk);
	}
	base_free(l->thread);
	base_free(l->chunk);
	base_free(l->process);
	memory_tables_fini(&l->tables);
	trace_reader_close(l->reader);
	base_str_fini(&l->unseen);
	base_free(l);
}

/* ---- opening --------------------------------------------------------------------------------- */

/* A stream's first chunk says whose it is. */
static enum base_status lpt_look_at(struct lpt *l, const struct trace_content_chunk *c,
	uint8_t *bytes, struct memory_chunk_head *ret, struct base_err *err)
{
	enum base_status status = trace_reader_content(l->reader, c, bytes, err);
	if (status != BASE_OK)
		return status;
	if (c->size_bytes < sizeof *ret)
		return base_fail(err, BASE_ERR_CORRUPT, "a chunk of a memory stream is too short");
	BASE_ASSERT(bytes);
	memcpy(ret, bytes, sizeof *ret);
	return BASE_OK;
}

struct stream { /* of chunks, in the trace */
	uint32_t stream, first;
	uint64_t bytes;
	struct memory_chunk_head head;
	bool known;
};

static struct stream *find_stream(struct stream *s, size_t nr, uint32_t stream)
{
	for (size_t i = nr; i-- > 0;)
		if (s[i].stream == stream)
			return &s[i];
	return NULL;
}

static bool lpt_is_newer(const struct memory_chunk_head *h)
{
	return h->magic == MEMORY_CHUNK_MAGIC && h->version > MEMORY_STREAM_VERSION;
}

static enum base_status list_streams(
	struct lpt *l, struct stream **ret, size_t *ret_nr, uint8_t *bytes, struct base_err *err)
{
	size_t capacity = 0;
	for (size_t i = 0; i < l->nr_chunks; i++) {
		struct stream *s = find_stream(*ret, *ret_nr, l->chunk[i].stream);
		if (!s) {
			if (base_grow(ret, &capacity, *ret_nr + 1, sizeof **ret) != BASE_OK)
				return base_fail(err, BASE_ERR_NOMEM, "no memory for the streams");
			s = &(*ret)[(*ret_nr)++];
			*s = (struct stream){.stream = l->chunk[i].stream, .first = (uint32_t)i};
		}
		s->bytes += l->chunk[i].size_bytes;
		if (s->known)
			continue;
		enum base_status status = lpt_look_at(l, &l->chunk[i], bytes, &s->head, NULL);
		if (status == BASE_ERR_NOMEM)
			return base_fail(err, status, "no memory for a chunk");
		s->known = status == BASE_OK;
		if (s->known && lpt_is_newer(&s->head))
			return base_fail(err, BASE_ERR_VERSION,
				"the memory streams' version is %u, this longpole reads up to %d",
				s->head.version, MEMORY_STREAM_VERSION);
	}
	return BASE_OK;
}

static struct memory_process *find_process(struct lpt *l, uint32_t number)
{
	for (size_t i = 0; i < l->nr_processes; i++)
		if (l->process[i].number == number)
			return &l->process[i];
	return NULL;
}

static int by_process(const void *a, const void *b)
{
	const struct memory_process *x = a, *y = b;
	return x->number < y->number ? -1 : x->number > y->number;
}

static enum base_status list_processes(
	struct lpt *l, const struct stream *s, size_t nr, struct base_err *err)
{
	for (size_t i = 0; i < nr; i++) {
		if (!s[i].known || s[i].head.type != MEMORY_CHUNK_STREAM)
			continue;
		struct memory_process *p = find_process(l, s[i].head.image);
		if (!p) {
			if (base_grow(&l->process, &l->processes_capacity, l->nr_processes + 1,
				    sizeof *l->process) != BASE_OK)
				return base_fail(
					err, BASE_ERR_NOMEM, "no memory for the processes");
			p = &l->process[l->nr_processes++];
			*p = (struct memory_process){.number = s[i].head.image,
				.pid = s[i].head.pid,
				.tables = s[i].head.tables};
		}
		p->nr_threads++;
		p->stream_bytes += s[i].bytes;
	}
	if (l->nr_processes)
		qsort(l->process, l->nr_processes, sizeof *l->process, by_process);
	return BASE_OK;
}

static enum base_status fail_process(const struct lpt *l, uint64_t wanted, struct base_err *err)
{
	struct base_str all = {0};
	for (size_t i = 0; i < l->nr_processes && i < MEMORY_PROCESSES_NAMED; i++)
		base_str_addf(&all, "%s%u (pid %u)", i ? ", " : "", l->process[i].number,
			l->process[i].pid);
	enum base_status s = base_fail(err, BASE_ERR_USAGE,
		"no process is, or more than one are, %llu; the trace has %zu: %s%s",
		(unsigned long long)wanted, l->nr_processes, base_str_text(&all),
		l->nr_processes > MEMORY_PROCESSES_NAMED ? " ..." : "");
	base_str_fini(&all);
	return s;
}

/* The image that is asked for, by its number or pid; else the one whose threads have most to say.
 */
static enum base_status choose_image(struct lpt *l, uint64_t wanted, struct base_err *err)
{
	struct memory_process *chosen =
		wanted > UINT32_MAX ? NULL : find_process(l, (uint32_t)wanted);
	size_t nr_pids = 0;
	for (size_t i = 0; i < l->nr_processes && !wanted; i++)
		if (!chosen || l->process[i].stream_bytes > chosen->stream_bytes)
			chosen = &l->process[i];
	for (size_t i = 0; i < l->nr_processes && wanted && !(chosen && !nr_pids); i++)
		if (l->process[i].pid == wanted) {
			chosen = &l->process[i];
			nr_pids++;
		}
	if (wanted && (!chosen || nr_pids > 1))
		return fail_process(l, wanted, err);
	if (chosen) {
		l->image = chosen->number;
		chosen->shown = true;
	}
	return BASE_OK;
}

static enum base_status load_tables(struct lpt *l, const struct stream *s, size_t nr,
	uint32_t image, uint8_t *bytes, struct base_err *err)
{
	struct memory_tables_builder *b = memory_tables_begin(image);
	enum base_status status =
		b ? BASE_OK : base_fail(err, BASE_ERR_NOMEM, "no memory for the tables");
	for (size_t i = 0; status == BASE_OK && i < l->nr_chunks; i++) {
		const struct stream *of =
			find_stream((struct stream *)(uintptr_t)s, nr, l->chunk[i].stream);
		if (!of || !of->known || of->head.type != MEMORY_CHUNK_TABLE ||
			of->head.image != image)
			continue;
		struct base_err why = {0};
		status = trace_reader_content(l->reader, &l->chunk[i], bytes, &why);
		if (status == BASE_ERR_CORRUPT || status == BASE_ERR_TRUNCATED)
			status = BASE_OK; /* its module's blocks are not known */
		else if (status == BASE_OK)
			status = memory_tables_add(b, bytes, l->chunk[i].size_bytes, err);
		else if (err)
			*err = why;
	}
	if (status != BASE_OK) {
		memory_tables_free(b);
		return status;
	}
	return memory_tables_end(b, l->level, &l->tables, err);
}

static int lpt_by_number(const void *a, const void *b)
{
	const struct thread *x = a, *y = b;
	return x->number < y->number ? -1 : x->number > y->number;
}

static enum base_status list_threads(
	struct lpt *l, const struct stream *s, size_t nr, struct base_err *err)
{
	for (size_t i = 0; i < nr; i++) {
		if (!s[i].known || s[i].head.type != MEMORY_CHUNK_STREAM ||
			s[i].head.image != l->image)
			continue;
		l->chunk_flags = s[i].head.flags;
		l->serial = l->chunk_flags & MEMORY_CHUNK_SERIAL;
		if (l->nr_threads == MEMORY_THREADS_MAX)
			return base_fail(err, BASE_ERR_LIMIT, "more than %d threads",
				(int)MEMORY_THREADS_MAX);
		if (base_grow(&l->thread, &l->threads_capacity, l->nr_threads + 1,
			    sizeof *l->thread) != BASE_OK)
			return base_fail(err, BASE_ERR_NOMEM, "no memory for the threads");
		l->thread[l->nr_threads++] = (struct thread){
			.number = s[i].head.thread, .tid = s[i].head.tid, .stream = s[i].stream};
	}
	qsort(l->thread, l->nr_threads, sizeof *l->thread, lpt_by_number);
	for (size_t i = 0; i < l->nr_chunks; i++)
		for (size_t k = 0; k < l->nr_threads; k++) {
			struct thread *t = &l->thread[k];
			if (t->stream != l->chunk[i].stream)
				continue;
			if (base_grow(&t->chunk, &t->capacity, t->nr_chunks + 1,
				    sizeof *t->chunk) != BASE_OK)
				return base_fail(err, BASE_ERR_NOMEM, "no memory for the chunks");
			t->chunk[t->nr_chunks++] = (uint32_t)i;
		}
	return BASE_OK;
}

static uint64_t lpt_end_of(struct lpt *l, struct thread *t)
{
	struct memory_chunk_head head = {0};
	const struct trace_content_chunk *last = &l->chunk[t->chunk[t->nr_chunks - 1]];
	return lpt_look_at(l, last, t->bytes, &head, NULL) == BASE_OK
		       ? memory_clock_ns(&l->clock, head.last_ticks)
		       : UINT64_MAX;
}

/* What a thread's first words say: its own token; and when it ended. */
static enum base_status meet_thread(struct lpt *l, struct thread *t, struct base_err *err)
{
	enum base_status status = start_thread(l, t, err);
	struct base_err why = {0};
	if (status == BASE_OK)
		status = next_piece(l, t, &why);
	if (status == BASE_OK) {
		size_t nr_calls;
		(void)memory_walk_items(
			&t->walk, t->item, MEMORY_BATCH_MAX, t->call, BATCH_CALLS, &nr_calls);
		t->fs_base = t->walk.fs_base;
		t->begin_ns = memory_clock_ns(&l->clock, t->walk.words.begin_ticks);
		if (nr_calls && t->call[0].kind == MEMORY_CALL_thread_begin)
			t->token = t->call[0].argument[0];
	} else if (status != BASE_END && err) {
		*err = why;
	}
	if (status == BASE_OK)
		t->end_ns = lpt_end_of(l, t);
	return status == BASE_END ? BASE_OK : status;
}

static enum base_status meet_threads(struct lpt *l, struct base_err *err)
{
	enum base_status status = BASE_OK;
	for (size_t i = 0; i < l->nr_threads && status == BASE_OK; i++)
		status = meet_thread(l, &l->thread[i], err);
	l->source.diags = (struct memory_diags){0};
	return status == BASE_OK ? lpt_rewind(&l->source, err) : status;
}

static void lpt_describe(struct lpt *l)
{
	base_str_add(&l->unseen, memory_stream_unseen(l->chunk_flags));
	for (size_t i = 0, nr = 0; i < l->nr_processes && l->nr_processes > 1; i++) {
		const struct memory_process *p = &l->process[i];
		if (p->shown)
			continue;
		if (!nr++)
			base_str_addf(&l->unseen,
				"; of the trace's %zu {process|processes} (after fork or exec) "
				"this is %u, "
				"the others are",
				l->nr_processes, l->image);
		if (nr <= MEMORY_PROCESSES_NAMED)
			base_str_addf(&l->unseen, "%s --process=%u (pid %u, %llu {byte|bytes})",
				nr > 1 ? "," : "", p->number, p->pid,
				(unsigned long long)p->stream_bytes);
		else if (nr == MEMORY_PROCESSES_NAMED + 1)
			base_str_add(&l->unseen, " ...");
	}
	l->source.info = (struct memory_source_info){.nr_threads = (uint32_t)l->nr_threads,
		.flags = MEMORY_SOURCE_TIMES | MEMORY_SOURCE_THREADS |
			 (l->chunk_flags & MEMORY_CHUNK_INTERFACE
					 ? 0u
					 : (unsigned)MEMORY_SOURCE_REGISTERS) |
			 (l->serial ? (unsigned)MEMORY_SOURCE_SERIAL : 0u) |
			 (l->tables.has_silent ? (unsigned)MEMORY_SOURCE_SILENT : 0u) |
			 (l->level == 2 ? 0u : (unsigned)MEMORY_SOURCE_INSTRUCTIONS),
		.format = "lpt",
		.process = l->process,
		.nr_processes = l->nr_processes,
		.unseen = base_str_text(&l->unseen)};
}

/* Programs and recorders that were killed: what there is, is not all. */
static void look_at_health(struct lpt *l)
{
	const struct trace_health *h = trace_reader_health(l->reader);
	l->source.diags.count[MEMORY_DIAG_killed] = h->count[TRACE_DIAG_killed];
	l->source.diags.count[MEMORY_DIAG_no_end] = h->count[TRACE_DIAG_index_rebuilt] != 0;
}

static enum base_status lpt_load(
	struct lpt *l, const char *path, uint64_t process, struct base_err *err)
{
	struct stream *stream = NULL;
	size_t nr = 0;
	uint8_t *bytes = base_alloc(TRACE_CONTENT_RAW_MAX + TRACE_CONTENT_PAD_BYTES);
	enum base_status status =
		bytes ? trace_reader_open(path, NULL, &l->reader, err)
		      : base_fail(err, BASE_ERR_NOMEM, "no memory to read %s", path);
	if (status == BASE_OK)
		status = trace_reader_contents(
			l->reader, TRACE_CONTENT_MEMORY, &l->chunk, &l->nr_chunks, err);
	if (status == BASE_OK && !l->nr_chunks)
		status = base_fail(err, BASE_ERR_LACKS,
			"%s has no memory streams: record with --level 2 or 3 a program that "
			"`longpole cc` built",
			path);
	if (status == BASE_OK)
		status = list_streams(l, &stream, &nr, bytes, err);
	if (status == BASE_OK)
		status = list_processes(l, stream, nr, err);
	if (status == BASE_OK)
		status = choose_image(l, process, err);
	if (status == BASE_OK) {
		const struct trace_defs *d = trace_reader_defs(l->reader);
		uint32_t tables = l->image;
		for (size_t i = 0; i < nr; i++)
			if (stream[i].known && stream[i].head.type == MEMORY_CHUNK_STREAM &&
				stream[i].head.image == l->image)
				tables = stream[i].head.tables;
		if (d->nr_memory_streams > 1) {
			const struct trace_memory_stream *m =
				trace_def_memory_stream(d, d->nr_memory_streams - 1);
			l->level = m->level == 2 ? 2 : 3;
			l->clock = (struct memory_clock){m->origin_ticks, m->factor};
		}
		status = load_tables(l, stream, nr, tables, bytes, err);
	}
	if (status == BASE_OK)
		status = list_threads(l, stream, nr, err);
	if (status == BASE_OK && !l->nr_threads)
		status = base_fail(err, BASE_ERR_LACKS,
			"%s has memory streams of no thread: no code that `longpole cc` built ran",
			path);
	if (status == BASE_OK)
		status = meet_threads(l, err);
	base_free(stream);
	base_free(bytes);
	if (status == BASE_OK) {
		look_at_health(l);
		lpt_describe(l);
	}
	return status;
}

enum base_status memory_source_lpt_open(
	const char *const *paths, size_t nr_paths, struct memory_source **ret, struct base_err *err)
{
	return memory_source_lpt_open_process(paths, nr_paths, 0, ret, err);
}

enum base_status memory_source_lpt_open_process(const char *const *paths, size_t nr_paths,
	uint64_t process, struct memory_source **ret, struct base_err *err)
{
	static const struct memory_source_ops ops = {.next = lpt_next,
		.rewind = lpt_rewind,
		.linked = lpt_linked,
		.silent = lpt_silent,
		.life = lpt_life,
		.on_stack = lpt_on_stack,
		.close = lpt_close};
	*ret = NULL;
	if (nr_paths != 1)
		return base_fail(err, BASE_ERR_USAGE, "one .lpt file has all threads");
	struct lpt *l = base_alloc(sizeof *l);
	if (!l)
		return base_fail(err, BASE_ERR_NOMEM, "no memory to read %s", paths[0]);
	l->source.ops = &ops;
	l->level = 3;
	enum base_status status = lpt_load(l, paths[0], process, err);
	if (status != BASE_OK) {
		lpt_close(&l->source);
		return status;
	}
	*ret = &l->source;
	return BASE_OK;
}
