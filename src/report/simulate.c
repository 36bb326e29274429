/* SPDX-License-Identifier: Apache-2.0 */
/* simulate.c - several simulations of one log, at once: none changes it, and each is the same
 * whichever thread makes it. */
#include "report/private.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>

enum {
	THREADS_MAX = 16,
	VERBS_A_THREAD = 20000, /* for fewer it is not worth it to start one */
};

struct batch {
	const struct graph_replay *log;
	struct report_simulation *simulation;
	size_t nr;
	atomic_size_t next;
	atomic_bool failed; /* the first that does says why */
	enum base_status status;
	struct base_err *err;
};

static void simulation_failed(struct batch *b, enum base_status status, const struct base_err *why)
{
	if (atomic_exchange(&b->failed, true))
		return;
	b->status = status;
	if (b->err)
		*b->err = *why;
}

static void *simulate_work(void *arg)
{
	struct batch *b = arg;
	struct base_err why;
	for (size_t i; (i = atomic_fetch_add(&b->next, 1)) < b->nr;) {
		struct report_simulation *x = &b->simulation[i];
		enum base_status s = graph_replay_run_as(
			b->log, x->edits, &x->assumed, x->out, &x->result, &why);
		if (s != BASE_OK)
			simulation_failed(b, s, &why);
	}
	return NULL;
}

static size_t nr_threads(const struct batch *b)
{
	long processors = sysconf(_SC_NPROCESSORS_ONLN);
	uint64_t most = graph_replay_nr_verbs(b->log) * b->nr / VERBS_A_THREAD;
	most = most < THREADS_MAX ? most : THREADS_MAX;
	most = processors > 0 && (uint64_t)processors < most ? (uint64_t)processors : most;
	return most < b->nr ? (size_t)most : b->nr;
}

/* Those that cannot be started are done without. Signals are for the program's own threads. */
static unsigned start_others(struct batch *b, pthread_t *thread)
{
	sigset_t all, before;
	unsigned nr = 0;
	sigfillset(&all);
	if (pthread_sigmask(SIG_SETMASK, &all, &before))
		return 0;
	for (size_t i = 1; i < nr_threads(b); i++)
		nr += !pthread_create(&thread[nr], NULL, simulate_work, b);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return nr;
}

enum base_status report_simulate(const struct graph_replay *log, struct report_simulation *x,
	size_t nr, struct base_err *err)
{
	struct batch b = {.log = log, .simulation = x, .nr = nr, .status = BASE_OK, .err = err};
	pthread_t thread[THREADS_MAX];
	unsigned nr_started = start_others(&b, thread);
	simulate_work(&b);
	for (unsigned i = 0; i < nr_started; i++)
		pthread_join(thread[i], NULL);
	if (b.status != BASE_OK)
		return base_cause(err, b.status, "while simulating the run again");
	return BASE_OK;
}
