/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ahead.c - a thread that goes through the merge ahead of the reader of its batches.
 *
 * While it runs, all that merge.c and chunk.c change is its own; what it hands over is a batch with
 * its status and the health as it was then. It ends by itself after an error or the last batch.
 * Then, and when it was stopped, the reader stands where the synchronous one would.
 */
#include "trace/reader.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>

enum { FEW_RECORDS = 1 << 17 /* are read sooner than another thread is awake */ };

struct ahead_batch {
	struct trace_record *record; /* TRACE_BATCH_MAX */
	size_t nr;
	enum base_status status;
	struct base_err err;
	struct trace_health health;
};

struct trace_ahead {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t filled, emptied;
	/* under the lock; a ring: [first, first + nr) are the consumer's, the rest the thread's */
	unsigned first, nr;
	bool stop;
	bool holds_first; /* the consumer's: it has been given that batch */
	struct ahead_batch batch[TRACE_AHEAD_BATCHES];
};

/* ---- the thread ------------------------------------------------------------------------------ */

/* Where the next batch goes; NULL: no more are wanted. */
static struct ahead_batch *wait_for_room(struct trace_ahead *a)
{
	struct ahead_batch *b = NULL;

	pthread_mutex_lock(&a->lock);
	while (a->nr == TRACE_AHEAD_BATCHES && !a->stop)
		pthread_cond_wait(&a->emptied, &a->lock);
	if (!a->stop)
		b = &a->batch[(a->first + a->nr) % TRACE_AHEAD_BATCHES];
	pthread_mutex_unlock(&a->lock);
	return b;
}

static void *decode_ahead(void *reader)
{
	struct trace_reader *r = reader;
	struct trace_ahead *a = r->ahead;
	enum base_status status = BASE_OK;
	struct ahead_batch *b;

	while (status == BASE_OK && (b = wait_for_room(a))) {
		pthread_mutex_lock(&r->decoding);
		status = b->status = trace_merge_next(r, b->record, &b->nr, &b->err);
		b->health = r->health;
		pthread_mutex_unlock(&r->decoding);
		pthread_mutex_lock(&a->lock);
		a->nr++;
		pthread_cond_signal(&a->filled);
		pthread_mutex_unlock(&a->lock);
	}
	return NULL;
}

/* ---- the consumer ---------------------------------------------------------------------------- */

bool trace_ahead_wanted(const struct trace_reader *r)
{
	cpu_set_t set;

	if (r->options.ahead != TRACE_AHEAD_AUTO)
		return r->options.ahead == TRACE_AHEAD_ALWAYS;
	/* (EINVAL: more processors than the set has room for) */
	return r->nr_records >= FEW_RECORDS &&
	       (sched_getaffinity(0, sizeof set, &set) || CPU_COUNT(&set) > 1);
}

static void free_ahead(struct trace_ahead *a)
{
	for (unsigned i = 0; i < TRACE_AHEAD_BATCHES; i++)
		base_free(a->batch[i].record);
	pthread_cond_destroy(&a->emptied);
	pthread_cond_destroy(&a->filled);
	pthread_mutex_destroy(&a->lock);
	base_free(a);
}

/* Signals are for the program's own threads. */
static bool ahead_start_thread(struct trace_reader *r)
{
	sigset_t all, before;

	sigfillset(&all);
	if (pthread_sigmask(SIG_SETMASK, &all, &before))
		return false;
	bool is_started = !pthread_create(&r->ahead->thread, NULL, decode_ahead, r);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return is_started;
}

enum base_status trace_ahead_start(struct trace_reader *r, struct base_err *err)
{
	struct trace_ahead *a = base_alloc(sizeof *a);
	bool is_whole = a;

	if (!a)
		return base_fail(err, BASE_ERR_NOMEM, "no memory to read ahead");
	pthread_mutex_init(&a->lock, NULL);
	pthread_cond_init(&a->filled, NULL);
	pthread_cond_init(&a->emptied, NULL);
	for (unsigned i = 0; i < TRACE_AHEAD_BATCHES && is_whole; i++) {
		a->batch[i].record = base_alloc(TRACE_BATCH_MAX * sizeof(struct trace_record));
		is_whole = a->batch[i].record;
	}
	if (!is_whole) {
		free_ahead(a);
		return base_fail(err, BASE_ERR_NOMEM, "no memory to read ahead");
	}
	r->ahead = a;
	if (!ahead_start_thread(r)) { /* there may be no more threads: without one, then */
		free_ahead(a);
		r->ahead = NULL;
		r->reads_ahead = false;
	}
	return BASE_OK;
}

void trace_ahead_stop(struct trace_reader *r)
{
	struct trace_ahead *a = r->ahead;

	if (!a)
		return;
	pthread_mutex_lock(&a->lock);
	a->stop = true;
	pthread_cond_signal(&a->emptied);
	pthread_mutex_unlock(&a->lock);
	pthread_join(a->thread, NULL);
	free_ahead(a);
	r->ahead = NULL;
}

enum base_status trace_ahead_next(
	struct trace_reader *r, struct trace_batch *ret, struct base_err *err)
{
	struct trace_ahead *a = r->ahead;

	pthread_mutex_lock(&a->lock);
	if (a->holds_first) {
		a->first = (a->first + 1) % TRACE_AHEAD_BATCHES;
		/* Half of them at once: to wake the thread for each would cost more than it
		   saves. */
		if (--a->nr == TRACE_AHEAD_BATCHES / 2)
			pthread_cond_signal(&a->emptied);
	}
	while (!a->nr)
		pthread_cond_wait(&a->filled, &a->lock);
	a->holds_first = true;
	pthread_mutex_unlock(&a->lock);

	const struct ahead_batch *b = &a->batch[a->first];
	enum base_status status = b->status;
	ret->record = b->record;
	ret->nr = b->nr;
	r->health_told = b->health;
	if (status == BASE_OK)
		return BASE_OK;
	if (status != BASE_END && err)
		*err = b->err;
	*ret = (struct trace_batch){.record = r->batch};
	trace_ahead_stop(r); /* it has ended: the next call is told the same, by a new one */
	return status;
}
