/* SPDX-License-Identifier: Apache-2.0 */
/* live.c - chunks of a program that runs into items. */
#include "memory/stream/live.h"
#include "trace/trace.h"

#include <pthread.h>
#include <string.h>
#include <time.h>

enum { BATCH_CALLS = 256, LOOK_MS = 20, NS_PER_MS = 1000000, MS_PER_S = 1000 };

struct chunk {
	struct chunk *next;
	size_t size_bytes;
	uint8_t bytes[]; /* and padding */
};
struct fifo {
	struct chunk *first, **last;
};

struct thread {
	struct fifo chunks;
	struct chunk *current;
	uint64_t number, fs_base, sequence, token;
	uint64_t begin_ns;
	bool met;    /* its first chunk has come */
	bool waits;  /* its last chunk ends where it waits for others */
	bool quiet;  /* is not waited for until its next chunk comes */
	bool leaves; /* has said so; destructors may still put something */
	bool ended;
	struct memory_decoder *decoder;
	struct memory_walk walk;
	bool in_chunk, in_piece;
	struct memory_item *item;
	struct memory_call *call;
};

struct memory_live {
	struct memory_source source;
	pthread_mutex_t mutex;
	pthread_cond_t changed;
	/* shared, under the mutex */
	struct fifo put, seen;
	uint64_t bytes;     /* put, and not analysed yet */
	uint64_t put_bytes; /* since the beginning */
	bool started, over;
	bool awaits; /* the analysis does a thread's next chunk */
	struct memory_clock clock;
	/* the analysis's */
	struct memory_tables tables;
	struct memory_tables_builder *builder;
	unsigned level;
	uint32_t image, tables_image;
	struct thread *thread;
	uint32_t nr_threads, max_threads; /* thread[0] is for number 1, whenever it comes */
	uint64_t nr_expected;             /* threads that a parallel region has */
	uint64_t nr_late, nr_others;
	bool serial;
};

static void fifo_init(struct fifo *f)
{
	*f = (struct fifo){.last = &f->first};
}

static void fifo_add(struct fifo *f, struct chunk *c)
{
	*f->last = c;
	f->last = &c->next;
	c->next = NULL;
}

static struct chunk *fifo_take(struct fifo *f)
{
	struct chunk *c = f->first;
	if (!c)
		return NULL;
	f->first = c->next;
	if (!f->first)
		f->last = &f->first;
	return c;
}

static void fifo_fini(struct fifo *f)
{
	for (struct chunk *c; (c = fifo_take(f));)
		base_free(c);
}

/* ---- who records ----------------------------------------------------------------------------- */

void memory_live_clock(struct memory_live *l, struct memory_clock clock)
{
	pthread_mutex_lock(&l->mutex);
	l->clock = clock;
	l->started = true;
	pthread_mutex_unlock(&l->mutex);
}

bool memory_live_has_room(struct memory_live *l)
{
	pthread_mutex_lock(&l->mutex);
	bool has = l->bytes < (l->awaits ? 2 : 1) * (uint64_t)MEMORY_LIVE_ROOM_BYTES;
	pthread_mutex_unlock(&l->mutex);
	return has;
}

enum base_status memory_live_put(struct memory_live *l, const uint8_t *chunk, size_t size_bytes)
{
	struct chunk *c = base_alloc(sizeof *c + size_bytes + TRACE_CONTENT_PAD_BYTES);
	if (!c)
		return BASE_ERR_NOMEM;
	c->size_bytes = size_bytes;
	memcpy(c->bytes, chunk, size_bytes);
	pthread_mutex_lock(&l->mutex);
	fifo_add(&l->put, c);
	l->bytes += size_bytes;
	l->put_bytes += size_bytes;
	pthread_mutex_unlock(&l->mutex);
	return BASE_OK;
}

void memory_live_commit(struct memory_live *l)
{
	pthread_mutex_lock(&l->mutex);
	if (l->put.first) {
		*l->seen.last = l->put.first;
		l->seen.last = l->put.last;
		fifo_init(&l->put);
		pthread_cond_broadcast(&l->changed);
	}
	pthread_mutex_unlock(&l->mutex);
}

void memory_live_end(struct memory_live *l)
{
	memory_live_commit(l);
	pthread_mutex_lock(&l->mutex);
	l->started = l->over = true;
	pthread_cond_broadcast(&l->changed);
	pthread_mutex_unlock(&l->mutex);
}

/* ---- threads --------------------------------------------------------------------------------- */

static void memory_live_lost(struct memory_live *l, struct thread *t)
{
	memory_diag_add(&l->source.diags, MEMORY_DIAG_lost, (uint32_t)(t - l->thread), 0);
	t->walk.previous = 0;
}

static struct thread *new_thread(struct memory_live *l)
{
	if (l->nr_threads == l->max_threads)
		return NULL;
	struct thread *t = &l->thread[l->nr_threads++];
	fifo_init(&t->chunks);
	return t;
}

/* `to` is free, or `from` itself; `from` is free then. */
static void move_thread(struct thread *to, struct thread *from)
{
	struct thread t = *from;
	*from = (struct thread){0};
	fifo_init(&from->chunks);
	*to = t;
	if (!to->chunks.first)
		fifo_init(&to->chunks);
}

/* Its number 1 has not come, though there is so much of others, or all: then the lowest number is
 * the first, as in a file. Nothing of anybody has been analysed yet. */
static void settle_first(struct memory_live *l)
{
	struct thread *lowest = NULL, *first = &l->thread[0];
	if (first->met || (!l->over && l->put_bytes < MEMORY_LIVE_AHEAD_BYTES))
		return;
	for (uint32_t i = 1; i < l->nr_threads; i++)
		if (l->thread[i].met && (!lowest || l->thread[i].number < lowest->number))
			lowest = &l->thread[i];
	if (!lowest)
		return;
	move_thread(first, lowest);
	move_thread(lowest, &l->thread[--l->nr_threads]);
}

static struct thread *with_token(struct memory_live *l, uint64_t token)
{
	for (uint32_t i = 0; token && i < l->nr_threads; i++)
		if (l->thread[i].token == token)
			return &l->thread[i];
	return NULL;
}

static enum base_status too_many(const struct memory_live *l, struct base_err *err)
{
	return base_fail(err, BASE_ERR_LIMIT, "the program has more than %u threads: see --threads",
		l->max_threads);
}

static enum base_status live_start_thread(
	struct memory_live *l, struct thread *t, struct base_err *err)
{
	if (t->decoder)
		return BASE_OK;
	t->decoder = memory_decoder_new(&l->tables);
	t->item = base_alloc(MEMORY_BATCH_MAX * sizeof *t->item);
	t->call = base_alloc(BATCH_CALLS * sizeof *t->call);
	t->walk = (struct memory_walk){.tables = &l->tables, .clock = l->clock, .level = l->level};
	if (t->decoder && t->item && t->call)
		return BASE_OK;
	return base_fail(err, BASE_ERR_NOMEM, "no memory to decode a thread's stream");
}

static void live_stop_thread(struct thread *t)
{
	memory_decoder_free(t->decoder);
	base_free(t->item);
	base_free(t->call);
	base_free(t->current);
	fifo_fini(&t->chunks);
	t->decoder = NULL;
	t->item = NULL;
	t->call = NULL;
	t->current = NULL;
}

/* What its creator called it: in its first record. 0: nothing. */
static enum base_status token_of(
	struct memory_live *l, const struct chunk *c, uint64_t *ret, struct base_err *err)
{
	struct thread t = {0};
	struct memory_words words;
	size_t nr_calls = 0;
	enum base_status s = live_start_thread(l, &t, err);
	*ret = 0;
	if (s == BASE_OK &&
		memory_decoder_chunk(t.decoder, c->bytes, c->size_bytes, NULL) == BASE_OK &&
		memory_decoder_piece(t.decoder, &words, NULL) == BASE_OK) {
		memory_walk_begin(&t.walk, &words);
		(void)memory_walk_items(
			&t.walk, t.item, MEMORY_BATCH_MAX, t.call, BATCH_CALLS, &nr_calls);
		if (nr_calls && t.call[0].kind == MEMORY_CALL_thread_begin)
			*ret = t.call[0].argument[0];
	}
	fifo_init(&t.chunks);
	live_stop_thread(&t);
	return s;
}

/* Of those that `is_met` with that handle, or not: the first that began, or was created, since. */
static struct thread *with_handle(
	struct memory_live *l, uint64_t handle, uint64_t since_ns, bool is_met)
{
	struct thread *best = NULL;
	for (uint32_t i = 0; handle && i < l->nr_threads; i++) {
		struct thread *t = &l->thread[i];
		if (t->fs_base == handle && t->met == is_met &&
			(!is_met || (t->begin_ns >= since_ns &&
					    (!best || t->begin_ns < best->begin_ns))))
			best = t;
	}
	return best;
}

/* The thread of a chunk: its creator may have named it already, with its own thread's first words
 * to come. */
static enum base_status live_thread_of(struct memory_live *l, const struct chunk *c,
	const struct memory_chunk_head *h, struct thread **ret, struct base_err *err)
{
	uint64_t token;
	for (uint32_t i = 0; i < l->nr_threads; i++)
		if (l->thread[i].met && l->thread[i].number == h->thread) {
			*ret = &l->thread[i];
			return BASE_OK;
		}
	enum base_status s = token_of(l, c, &token, err);
	if (s != BASE_OK)
		return s;
	struct thread *t = token ? with_token(l, token) : with_handle(l, h->fs_base, 0, false);
	if (h->thread == 1 && !l->thread[0].met)
		t = &l->thread[0];
	else if (!t || t->met)
		t = new_thread(l);
	if (!t)
		return too_many(l, err);
	t->met = true;
	t->token = token;
	t->number = h->thread;
	t->fs_base = h->fs_base;
	t->begin_ns = memory_clock_ns(&l->clock, h->first_ticks);
	*ret = t;
	return BASE_OK;
}

/* ---- chunks that have come ------------------------------------------------------------------- */

static enum base_status live_take_stream(struct memory_live *l, struct chunk *c,
	const struct memory_chunk_head *h, struct base_err *err)
{
	struct thread *t = NULL;
	if (!l->image)
		l->image = h->image;
	if (h->image != l->image) { /* after fork or exec */
		l->nr_others++;
		l->bytes -= c->size_bytes;
		base_free(c);
		return BASE_OK;
	}
	enum base_status s = live_thread_of(l, c, h, &t, err);
	if (s != BASE_OK) {
		base_free(c);
		return s;
	}
	BASE_ASSUME(t);
	if (h->flags & MEMORY_CHUNK_INTERFACE) {
		l->source.info.unseen = memory_stream_unseen(h->flags);
		l->source.info.flags &= ~(unsigned)MEMORY_SOURCE_REGISTERS;
	}
	if (h->flags & MEMORY_CHUNK_EMULATED)
		l->source.info.unseen = memory_stream_unseen(h->flags);
	t->waits = h->flags & MEMORY_CHUNK_WAITS;
	t->quiet = false;
	fifo_add(&t->chunks, c);
	return BASE_OK;
}

static enum base_status take_table(struct memory_live *l, struct chunk *c,
	const struct memory_chunk_head *h, struct base_err *err)
{
	if (!l->tables_image)
		l->tables_image = h->image;
	enum base_status s = BASE_OK;
	if (!l->builder)
		l->builder = memory_tables_begin(h->image);
	if (!l->builder)
		s = base_fail(err, BASE_ERR_NOMEM, "no memory for the tables");
	else if (h->image == l->tables_image)
		s = memory_tables_add(l->builder, c->bytes, c->size_bytes, err);
	l->bytes -= c->size_bytes;
	base_free(c);
	return s;
}

/* With the mutex held: all that was committed. Tables first: chunks need them; then the first
 * thread's, which is to be the analysis's first. */
static enum base_status live_take_all(struct memory_live *l, struct base_err *err)
{
	struct fifo of_first, of_others;
	struct memory_chunk_head h;
	enum base_status s = BASE_OK;
	bool tables = false;
	fifo_init(&of_first);
	fifo_init(&of_others);
	for (struct chunk *c; (c = fifo_take(&l->seen));) {
		memcpy(&h, c->bytes, sizeof h);
		if (h.type == MEMORY_CHUNK_STREAM) {
			fifo_add(h.thread == 1 ? &of_first : &of_others, c);
			continue;
		}
		enum base_status taken = take_table(l, c, &h, err);
		s = s == BASE_OK ? taken : s;
		tables = true;
	}
	if (s == BASE_OK && tables)
		s = memory_tables_extend(l->builder, l->level, &l->tables, err);
	l->source.info.flags |= l->tables.has_silent ? (unsigned)MEMORY_SOURCE_SILENT : 0u;
	for (struct chunk *c; (c = fifo_take(&of_first)) || (c = fifo_take(&of_others));) {
		memcpy(&h, c->bytes, sizeof h);
		if (s == BASE_OK)
			s = live_take_stream(l, c, &h, err);
		else
			base_free(c);
	}
	return s;
}

static void wait_ms(struct memory_live *l, uint64_t ms)
{
	struct timespec until;
	clock_gettime(CLOCK_MONOTONIC, &until);
	uint64_t ns = (uint64_t)until.tv_nsec + ms * NS_PER_MS;
	until.tv_sec += (time_t)(ns / ((uint64_t)MS_PER_S * NS_PER_MS));
	until.tv_nsec = (long)(ns % ((uint64_t)MS_PER_S * NS_PER_MS));
	(void)pthread_cond_timedwait(&l->changed, &l->mutex, &until);
}

void memory_live_wait(struct memory_live *l)
{
	pthread_mutex_lock(&l->mutex);
	if (!l->seen.first && !l->over)
		wait_ms(l, LOOK_MS);
	pthread_mutex_unlock(&l->mutex);
}

/* With the mutex held: will it put more, as far as is known? */
static bool is_to_come(const struct memory_live *l, const struct thread *t)
{
	bool known = t->met || t->token || t->fs_base || t == l->thread ||
		     (uint64_t)(t - l->thread) < l->nr_expected;
	return l->started && known && !t->quiet && !t->leaves && !l->serial;
}

/* With the mutex held: others have gone so far ahead, since they had put `since_bytes`, that it
 * does not run; or there is no room for what they do. */
static bool is_left_behind(
	const struct memory_live *l, const struct thread *t, uint64_t since_bytes)
{
	uint64_t ahead = t->waits ? MEMORY_LIVE_AHEAD_BYTES / 8 : MEMORY_LIVE_AHEAD_BYTES;
	return l->put_bytes - since_bytes >= ahead || l->bytes >= 2ull * MEMORY_LIVE_ROOM_BYTES;
}

/* BASE_OK with no current chunk: there is none now. BASE_END: there will be none. */
static enum base_status live_next_chunk(
	struct memory_live *l, struct thread *t, struct base_err *err)
{
	enum base_status s;
	pthread_mutex_lock(&l->mutex);
	if (t->current)
		l->bytes -= t->current->size_bytes;
	base_free(t->current);
	t->current = NULL;
	for (const uint64_t since_bytes = l->put_bytes;;
		pthread_cond_wait(&l->changed, &l->mutex)) {
		s = live_take_all(l, err);
		settle_first(l);
		t->current = s == BASE_OK ? fifo_take(&t->chunks) : NULL;
		if (s != BASE_OK || t->current)
			break;
		if (t->ended || l->over) {
			s = BASE_END;
			break;
		}
		if (!is_to_come(l, t))
			break;
		if (is_left_behind(l, t, since_bytes)) {
			t->quiet = true;
			l->nr_late += !t->waits;
			break;
		}
		l->awaits = true;
	}
	l->awaits = false;
	pthread_mutex_unlock(&l->mutex);
	return s;
}

static void begin_chunk(struct memory_live *l, struct thread *t)
{
	struct memory_chunk_head h;
	struct base_err why = {0};
	memcpy(&h, t->current->bytes, sizeof h);
	t->in_chunk = memory_decoder_chunk(t->decoder, t->current->bytes, t->current->size_bytes,
			      &why) == BASE_OK;
	if (!t->in_chunk || h.lost || (t->sequence && h.sequence != t->sequence))
		memory_live_lost(l, t);
	t->sequence = h.sequence + 1;
	t->walk.fs_base = h.fs_base;
}

/* ---- items ----------------------------------------------------------------------------------- */

/* As find_joined() of lpt.c: a thread that was joined has put all it had, and the thread that has
 * its handle now may have come, too. */
static struct thread *live_joined(struct memory_live *l, const struct memory_call *c)
{
	struct thread *best = l->serial ? with_token(l, c->argument[0]) : NULL;
	for (uint32_t i = 0; !l->serial && i < l->nr_threads; i++) {
		struct thread *t = &l->thread[i];
		if (t->met && t->fs_base == c->argument[0] && t->begin_ns <= c->end_ns &&
			(!best || t->begin_ns >= best->begin_ns))
			best = t;
	}
	return best;
}

/* The thread that had that handle, and never put anything, is over. */
static void live_forget(struct memory_live *l, uint64_t handle)
{
	struct thread *t = with_handle(l, handle, 0, false);
	if (!t)
		return;
	t->fs_base = 0;
	t->ended = true;
}

/* As find_created() of lpt.c, but it may be still to come. NULL: too many. */
static struct thread *live_created(struct memory_live *l, const struct memory_call *c)
{
	uint64_t token = c->argument[0], handle = c->argument[1];
	struct thread *t = token ? with_token(l, token) : with_handle(l, handle, c->start_ns, true);
	if (!t) {
		live_forget(l, token ? 0 : handle);
		t = new_thread(l);
	}
	if (!t || t->met)
		return t;
	t->token = token;
	t->fs_base = handle;
	return t;
}

static enum base_status live_name_threads(struct memory_live *l, struct thread *of,
	struct memory_call *call, size_t nr, struct base_err *err)
{
	for (size_t i = 0; i < nr; i++) {
		struct thread *t = NULL;
		if (call[i].kind == MEMORY_CALL_thread_create) {
			t = live_created(l, &call[i]);
			if (!t)
				return too_many(l, err);
		} else if (call[i].kind == MEMORY_CALL_thread_join) {
			t = live_joined(l, &call[i]);
			if (t)
				t->ended = true;
			else
				live_forget(l, call[i].argument[0]);
		} else if (call[i].kind == MEMORY_CALL_thread_end) {
			of->leaves = true;
			continue;
		} else {
			if (call[i].kind == MEMORY_CALL_spawn &&
				call[i].argument[1] > l->nr_expected)
				l->nr_expected = call[i].argument[1];
			continue;
		}
		call[i].argument[0] = t ? (uint64_t)(t - l->thread) : UINT64_MAX;
	}
	return BASE_OK;
}

static bool live_next_piece(struct memory_live *l, struct thread *t)
{
	struct memory_words words;
	struct base_err why = {0};
	enum base_status s = memory_decoder_piece(t->decoder, &words, &why);
	t->in_chunk = t->in_piece = s == BASE_OK;
	if (s == BASE_OK)
		memory_walk_begin(&t->walk, &words);
	else if (s != BASE_END)
		memory_live_lost(l, t);
	return s == BASE_OK;
}

static enum base_status live_next(
	struct memory_source *s, int thread, struct memory_batch *ret, struct base_err *err)
{
	struct memory_live *l = (struct memory_live *)s;
	*ret = (struct memory_batch){0};
	if (thread < 0 || (uint32_t)thread >= l->max_threads)
		return base_fail(err, BASE_ERR_USAGE, "there is no thread %d", thread);
	struct thread *t = &l->thread[thread];
	for (;;) {
		size_t nr_calls;
		if (t->in_piece) {
			size_t nr = memory_walk_items(&t->walk, t->item, MEMORY_BATCH_MAX, t->call,
				BATCH_CALLS, &nr_calls);
			*ret = (struct memory_batch){.item = t->item,
				.nr = nr,
				.call = t->call,
				.nr_calls = nr_calls,
				.thread = (uint32_t)thread};
			if (nr)
				return live_name_threads(l, t, t->call, nr_calls, err);
			t->in_piece = false;
		}
		if (t->in_chunk && live_next_piece(l, t))
			continue;
		enum base_status status = live_next_chunk(l, t, err);
		if (status != BASE_OK || !t->current)
			return status;
		status = live_start_thread(l, t, err);
		if (status != BASE_OK)
			return status;
		begin_chunk(l, t);
	}
}

static bool live_linked(const struct memory_source *s, uint64_t address, bool code,
	size_t candidate, struct memory_linked *ret)
{
	return memory_tables_place(
		&((const struct memory_live *)s)->tables, address, code, candidate, ret);
}

static void live_silent(const struct memory_source *s, uint32_t thread, struct memory_silent *ret)
{
	const struct memory_live *l = (const struct memory_live *)s;
	*ret = thread < l->nr_threads ? l->thread[thread].walk.counts.silent
				      : (struct memory_silent){0};
}

/* Where it ends is not known before it does; that its stack is another's says the same. */
static bool live_life(const struct memory_source *s, uint32_t thread, struct memory_life *ret)
{
	const struct memory_live *l = (const struct memory_live *)s;
	if (thread >= l->nr_threads || !l->thread[thread].met)
		return false;
	const struct thread *t = &l->thread[thread];
	*ret = (struct memory_life){t->begin_ns, UINT64_MAX, t->fs_base};
	return true;
}

static bool live_on_stack(
	const struct memory_source *s, uint32_t thread, uint64_t address, uint64_t bytes)
{
	const struct memory_live *l = (const struct memory_live *)s;
	return thread < l->nr_threads &&
	       memory_stacks_have(&l->thread[thread].walk.stacks, address, bytes);
}

/* ---- life ------------------------------------------------------------------------------------ */

static void live_close(struct memory_source *s)
{
	struct memory_live *l = (struct memory_live *)s;
	for (uint32_t i = 0; i < l->nr_threads; i++)
		live_stop_thread(&l->thread[i]);
	fifo_fini(&l->put);
	fifo_fini(&l->seen);
	memory_tables_fini(&l->tables);
	memory_tables_free(l->builder);
	pthread_cond_destroy(&l->changed);
	pthread_mutex_destroy(&l->mutex);
	base_free(l->thread);
	base_free(l);
}

enum base_status memory_live_new(uint32_t max_threads, unsigned level, bool serial,
	struct memory_live **ret, struct base_err *err)
{
	static const struct memory_source_ops ops = {.next = live_next,
		.linked = live_linked,
		.silent = live_silent,
		.life = live_life,
		.on_stack = live_on_stack,
		.close = live_close};
	struct memory_live *l = base_alloc(sizeof *l);
	*ret = NULL;
	if (l)
		l->thread = base_alloc(max_threads * sizeof *l->thread);
	if (!l || !l->thread) {
		base_free(l);
		return base_fail(err, BASE_ERR_NOMEM, "no memory to analyse while recording");
	}
	pthread_condattr_t monotonic;
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&l->changed, &monotonic);
	pthread_condattr_destroy(&monotonic);
	pthread_mutex_init(&l->mutex, NULL);
	fifo_init(&l->put);
	fifo_init(&l->seen);
	for (uint32_t i = 0; i < max_threads; i++)
		fifo_init(&l->thread[i].chunks);
	l->nr_threads = 1;
	l->max_threads = max_threads;
	l->level = level;
	l->serial = serial;
	l->source = (struct memory_source){.ops = &ops,
		.info = {.nr_threads = max_threads,
			.flags = MEMORY_SOURCE_LIVE | MEMORY_SOURCE_TIMES |
				 MEMORY_SOURCE_REGISTERS | MEMORY_SOURCE_THREADS |
				 (serial ? (unsigned)MEMORY_SOURCE_SERIAL : 0u) |
				 (level == 2 ? 0u : (unsigned)MEMORY_SOURCE_INSTRUCTIONS),
			.format = "live",
			.unseen =
				memory_stream_unseen(serial ? (unsigned)MEMORY_CHUNK_SERIAL : 0u)}};
	*ret = l;
	return BASE_OK;
}

struct memory_source *memory_live_source(struct memory_live *l)
{
	return &l->source;
}

uint32_t memory_live_threads(const struct memory_live *l)
{
	return l->nr_threads;
}

uint64_t memory_live_late(const struct memory_live *l)
{
	return l->nr_late;
}

uint64_t memory_live_others(const struct memory_live *l)
{
	return l->nr_others;
}
