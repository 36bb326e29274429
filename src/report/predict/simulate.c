/* SPDX-License-Identifier: Apache-2.0 */
/* simulate.c - several simulations of one log, at once: none changes it, and each is the same
 * whichever thread makes it, so that none is made twice. */
#include "report/predict/predictor.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

enum {
	THREADS_MAX = 16,
	VERBS_A_THREAD = 20000, /* for fewer it is not worth it to start one */
};
#define KEY_SEED 0x9e3779b97f4a7c15

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

/* ---- none twice ------------------------------------------------------------------------------ */

struct simulation_key {
	uint64_t hi, lo;
};

static void key_mix(struct simulation_key *k, uint64_t x)
{
	k->hi = base_hash_u64(k->hi ^ x);
	k->lo = base_hash_u64(k->lo + base_hash_u64(x + KEY_SEED));
}

static void key_mix_double(struct simulation_key *k, double x)
{
	uint64_t bits;
	memcpy(&bits, &x, sizeof bits);
	key_mix(k, bits);
}

/* Of all that the result depends on. */
static struct simulation_key key_of(const struct report_simulation *x)
{
	const struct graph_replay_assumed *a = &x->assumed;
	const bool flag[] = {a->as_recorded, a->preempts, a->others_stay, a->any_processor,
		a->unrecorded, a->ticks_otherwise, a->given_at_once, a->late_scales};
	struct simulation_key k = {.hi = KEY_SEED};
	uint64_t flags = 0;
	for (size_t i = 0; i < BASE_COUNT(flag); i++)
		flags |= (uint64_t)flag[i] << i;
	key_mix(&k, flags);
	key_mix_double(&k, a->wake_more);
	key_mix_double(&k, a->late_more);
	key_mix_double(&k, a->recording_more);
	key_mix(&k, a->jitter);
	for (size_t i = 0; x->edits && i < x->edits->nr_edits; i++) {
		const struct graph_edit *e = &x->edits->edit[i];
		key_mix(&k, (uint64_t)e->kind << 32 | e->id);
		key_mix_double(&k, e->factor);
		key_mix(&k, e->units);
	}
	return k;
}

static enum base_status known_add(struct report_simulated *known, const struct simulation_key *key,
	const struct graph_replay_result *result, struct base_err *err)
{
	enum base_status s =
		base_grow(&known->result, &known->capacity, known->nr + 1, sizeof *known->result);
	if (s == BASE_OK)
		s = base_map_put(&known->number, key->hi, key->lo, known->nr);
	if (s != BASE_OK)
		return report_no_memory(err);
	known->result[known->nr++] = *result;
	return BASE_OK;
}

enum base_status report_simulate_once(struct report_simulated *known,
	const struct graph_replay *log, struct report_simulation *x, size_t nr,
	struct base_err *err)
{
	struct simulation_key key[REPORT_SIMULATIONS_MAX];
	struct report_simulation fresh[REPORT_SIMULATIONS_MAX];
	size_t of[REPORT_SIMULATIONS_MAX], nr_fresh = 0;
	BASE_ASSERT(nr <= REPORT_SIMULATIONS_MAX);
	for (size_t i = 0; i < nr; i++) {
		uint64_t number;
		key[i] = key_of(&x[i]);
		if (!x[i].out && base_map_get(&known->number, key[i].hi, key[i].lo, &number)) {
			x[i].result = known->result[number];
			continue;
		}
		of[nr_fresh] = i;
		fresh[nr_fresh++] = x[i];
	}
	enum base_status s = nr_fresh ? report_simulate(log, fresh, nr_fresh, err) : BASE_OK;
	for (size_t i = 0; s == BASE_OK && i < nr_fresh; i++) {
		x[of[i]].result = fresh[i].result;
		if (!fresh[i].out)
			s = known_add(known, &key[of[i]], &fresh[i].result, err);
	}
	return s;
}

void report_simulated_fini(struct report_simulated *known)
{
	base_map_fini(&known->number);
	base_free(known->result);
	*known = (struct report_simulated){0};
}
