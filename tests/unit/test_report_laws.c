/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_report_laws.c - what must hold of predictions whatever the program does, on programs made by
 * chance: threads that compute in a few functions, take locks (one within the other in one order),
 * and pass units through semaphores.
 *   1. The report's table says what whatif says to the same edit.
 *   2. By the path, a state with share x of it gains at most 1 / (1 - x).
 *   3. Less is never slower, and still less never slower than that; by path and in the answer.
 *   4. Without what is nearly all of the path the run is faster.
 */
#include "report/report.h"

#include "report_fixture.h"

enum {
	LAW_THREADS = 4,
	LAW_OPS = 60,
	LAW_LOCKS = 3,
	LAW_SITES = 4,
	LAW_NETS = 24,
	LAW_HANDOVER_US = 3, /* from a wake to the woken thread's record */
};
enum law_op_kind { LAW_RUN, LAW_LOCK, LAW_UNLOCK, LAW_POST, LAW_TAKE };
struct law_op {
	enum law_op_kind kind;
	uint32_t which;
	uint64_t us;
};
struct law_thread {
	struct law_op op[LAW_OPS + 8];
	unsigned nr, pc;
	uint64_t at_us;
	bool blocked, ended;
};
struct law_net {
	struct bench b;
	uint32_t seed;
	struct law_thread thread[LAW_THREADS];
	uint32_t nr_threads;
	uint32_t lock[LAW_LOCKS], semaphore[LAW_THREADS], site[LAW_SITES];
	uint32_t owner[LAW_LOCKS]; /* + 1 */
	uint64_t units[LAW_THREADS];
};

static uint32_t law_dice(struct law_net *w, uint32_t n)
{
	w->seed ^= w->seed << 13;
	w->seed ^= w->seed >> 17;
	w->seed ^= w->seed << 5;
	return w->seed % n;
}

static void law_add(struct law_thread *t, enum law_op_kind kind, uint32_t which, uint64_t us)
{
	t->op[t->nr++] = (struct law_op){.kind = kind, .which = which, .us = us};
}

/* Thread k takes what thread k - 1 posts, as often; a lock's section is left before that. */
static void law_make(struct law_net *w)
{
	unsigned rounds = 3 + law_dice(w, 6);
	w->nr_threads = 2 + law_dice(w, LAW_THREADS - 1);
	bool piped = law_dice(w, 2);
	for (uint32_t k = 0; k < w->nr_threads; k++) {
		struct law_thread *t = &w->thread[k];
		for (unsigned i = 0; i < rounds; i++) {
			uint32_t first = law_dice(w, LAW_LOCKS), second = first + 1;
			bool nested = second < LAW_LOCKS && !law_dice(w, 3);
			if (piped && k)
				law_add(t, LAW_TAKE, k - 1, 0);
			law_add(t, LAW_RUN, law_dice(w, LAW_SITES), 20 + law_dice(w, 400));
			law_add(t, LAW_LOCK, first, 0);
			law_add(t, LAW_RUN, 0, 10 + law_dice(w, 200));
			if (nested) {
				law_add(t, LAW_LOCK, second, 0);
				law_add(t, LAW_RUN, 0, 5 + law_dice(w, 100));
				law_add(t, LAW_UNLOCK, second, 0);
			}
			law_add(t, LAW_UNLOCK, first, 0);
			if (piped && k + 1 < w->nr_threads)
				law_add(t, LAW_POST, k, 0);
		}
	}
}

/* Whoever waited first goes on. */
static void law_wake(struct law_net *w, enum law_op_kind kind, uint32_t which, uint64_t at_us)
{
	struct law_thread *first = NULL;
	for (uint32_t k = 0; k < w->nr_threads; k++) {
		struct law_thread *t = &w->thread[k];
		if (t->blocked && t->op[t->pc].kind == kind && t->op[t->pc].which == which &&
			(!first || t->at_us < first->at_us))
			first = t;
	}
	if (first) {
		first->blocked = false;
		first->at_us = at_us + LAW_HANDOVER_US;
	}
}

static void law_acquire(struct law_net *w, uint32_t k, const struct law_op *op, bool waited)
{
	struct law_thread *t = &w->thread[k];
	if (w->owner[op->which] && w->owner[op->which] != k + 1) {
		if (!waited)
			PUT(&w->b, t->at_us, k + 2, lock_wait, .object = w->lock[op->which],
				.site = w->site[0]);
		t->blocked = true;
		return;
	}
	w->owner[op->which] = k + 1;
	PUT(&w->b, t->at_us, k + 2, lock_acquire, .object = w->lock[op->which], .site = w->site[0]);
	t->pc++;
}

static void law_take(struct law_net *w, uint32_t k, const struct law_op *op, bool waited)
{
	struct law_thread *t = &w->thread[k];
	uint32_t at = w->site[law_dice(w, LAW_SITES)];
	if (!w->units[op->which]) {
		if (!waited)
			PUT(&w->b, t->at_us, k + 2, token_wait, .object = w->semaphore[op->which],
				.n = 1, .site = at);
		t->blocked = true;
		return;
	}
	w->units[op->which]--;
	PUT(&w->b, t->at_us, k + 2, token_take, .object = w->semaphore[op->which], .n = 1,
		.site = at);
	t->pc++;
}

static void law_step(struct law_net *w, uint32_t k, bool waited)
{
	struct law_thread *t = &w->thread[k];
	const struct law_op *op = &t->op[t->pc];
	if (t->pc == t->nr) {
		t->ended = true;
		PUT(&w->b, t->at_us, k + 2, thread_end);
		return;
	}
	switch (op->kind) {
	case LAW_RUN:
		t->at_us += op->us;
		t->pc++;
		return;
	case LAW_LOCK:
		law_acquire(w, k, op, waited);
		return;
	case LAW_TAKE:
		law_take(w, k, op, waited);
		return;
	case LAW_UNLOCK:
		PUT(&w->b, t->at_us, k + 2, lock_release, .object = w->lock[op->which],
			.site = w->site[op->us % LAW_SITES]);
		w->owner[op->which] = 0;
		t->pc++;
		law_wake(w, LAW_LOCK, op->which, t->at_us);
		return;
	case LAW_POST:
		PUT(&w->b, t->at_us, k + 2, token_give, .object = w->semaphore[op->which], .n = 1,
			.site = w->site[0]);
		w->units[op->which]++;
		t->pc++;
		law_wake(w, LAW_TAKE, op->which, t->at_us);
		return;
	}
}

/* The earliest thread first, so that records come in the order of time. */
static uint64_t law_run(struct law_net *w)
{
	bool waited[LAW_THREADS] = {0};
	uint64_t last_us = 0;
	for (;;) {
		uint32_t next = LAW_THREADS;
		for (uint32_t k = 0; k < w->nr_threads; k++)
			if (!w->thread[k].ended && !w->thread[k].blocked &&
				(next == LAW_THREADS || w->thread[k].at_us < w->thread[next].at_us))
				next = k;
		if (next == LAW_THREADS)
			return last_us;
		last_us = w->thread[next].at_us;
		law_step(w, next, waited[next]);
		waited[next] = w->thread[next].blocked;
	}
}

static void law_record(struct law_net *w, uint32_t seed)
{
	char name[16];
	memset(w, 0, sizeof *w);
	w->seed = seed * 2654435761u + 1;
	start(&w->b);
	struct bench *b = &w->b;
	uint32_t p = process(b, "prog"), from = site(b, "main");
	for (unsigned i = 0; i < LAW_SITES; i++) {
		snprintf(name, sizeof name, "work%u", i);
		w->site[i] = site(b, name);
	}
	for (unsigned i = 0; i < LAW_LOCKS; i++) {
		snprintf(name, sizeof name, "m%u", i);
		w->lock[i] = mutex(b, name);
	}
	law_make(w);
	for (unsigned i = 0; i <= w->nr_threads; i++)
		stream(b, p);
	for (uint32_t i = 0; i < w->nr_threads; i++) {
		w->semaphore[i] = ++b->nr_objects;
		PUT(b, 0, 0, object, .object = w->semaphore[i], .process = p,
			.type = TRACE_OBJECT_semaphore, .address = w->semaphore[i] * 64);
	}
	PUT(b, 0, 1, process_begin, .token = 0);
	PUT(b, 0, 1, thread_begin, .token = 0, .handle = 1000);
	for (uint32_t k = 0; k < w->nr_threads; k++) {
		PUT(b, 1, 1, token_set, .object = w->semaphore[k], .n = 0);
		PUT(b, 1 + k, 1, thread_create, .token = 1 + k, .site = from);
		PUT(b, 2 + k, 2 + k, thread_begin, .token = 1 + k, .handle = 2000 + k,
			.site = w->site[k % LAW_SITES]);
		w->thread[k].at_us = 20;
	}
	PUT(b, 19, 1, join_wait, .handle = 2000);
	uint64_t at_us = law_run(w) + 5;
	for (uint32_t k = 0; k < w->nr_threads; k++) {
		if (k)
			PUT(b, at_us, 1, join_wait, .handle = 2000 + k);
		PUT(b, at_us, 1, join_done, .handle = 2000 + k);
	}
	end(b, at_us + 1);
}

/* ---- the laws -------------------------------------------------------------------------------- */

static const unsigned law_percent[] = {5, 10, 25, 40, 50, 75, 90, 100};
enum { LAW_POINTS = BASE_COUNT(law_percent) };

static struct report_whatif *law_ask(struct law_net *w, const char *state)
{
	static char next[] = "--", scale[] = "scale";
	char text[LAW_POINTS][128];
	char *word[LAW_POINTS * 3];
	size_t nr = 0;
	for (unsigned i = 0; i < LAW_POINTS; i++) {
		if (i)
			word[nr++] = next;
		snprintf(text[i], sizeof text[i], "%s=-%u%%", state, law_percent[i]);
		word[nr++] = scale;
		word[nr++] = text[i];
	}
	struct report_run run = {.reader = w->b.reader, .trace_path = "t.lpt"};
	struct report_scenarios s = {0};
	struct report_whatif *out = NULL;
	assert_int_equal(report_scenarios_words(&s, word, nr, &w->b.err), BASE_OK);
	enum base_status status = report_whatif_build(&run, &s, 0, &out, &w->b.err);
	if (status != BASE_OK)
		print_message("%s: %s\n", state, w->b.err.cause[0]);
	assert_int_equal(status, BASE_OK);
	report_scenarios_fini(&s);
	return out;
}

static void law_check(
	struct law_net *w, uint32_t seed, const struct report_opportunity *o, double elapsed_ns)
{
	struct report_whatif *a = law_ask(w, o->state);
	double before = 1, path_before = 1;
	for (unsigned i = 0; i < LAW_POINTS; i++) {
		const struct report_prediction *p = &a->prediction[i];
		struct report_best best = report_best_of(a, p);
		double share = o->path_ns / elapsed_ns * law_percent[i] / 100;
		bool good = best.speedup >= before - 1e-9 && p->speedup >= path_before - 1e-9 &&
			    p->speedup * (1 - share) <= 1 + 1e-6 && best.low <= best.speedup &&
			    best.speedup <= best.high;
		for (unsigned k = 0; k < REPORT_LEVELS; k++)
			good &= report_level_percent[k] != law_percent[i] ||
				fabs(o->speedup[k] / best.speedup - 1) < 1e-6;
		if (!good)
			print_message("net %u, %s (%.3f of the path) -%u %%: path %.4f after "
				      "%.4f, answer %.4f (%.4f to %.4f) after %.4f, replay %.4f\n",
				seed, o->state, o->path_ns / elapsed_ns, law_percent[i], p->speedup,
				path_before, best.speedup, best.low, best.high, before,
				p->replay.speedup);
		assert_true(good);
		before = best.speedup;
		path_before = p->speedup;
	}
	assert_true(o->path_ns < 0.9 * elapsed_ns || before > 1.5);
	report_whatif_free(a);
}

static void laws_of_predictions(void **state)
{
	(void)state;
	static struct law_net w;
	const char *nets = getenv("REPORT_LAW_NETS");
	unsigned nr = nets ? (unsigned)strtoul(nets, NULL, 10) : LAW_NETS;
	for (uint32_t seed = 1; seed <= nr; seed++) {
		law_record(&w, seed);
		struct report_run run = {.reader = w.b.reader, .trace_path = "t.lpt"};
		struct report *r = NULL;
		struct report_options opts = {.nr_opportunities_max = 6};
		assert_int_equal(report_build(&run, &opts, &r, &w.b.err), BASE_OK);
		assert_true(r->nr_opportunities);
		for (size_t i = 0; i < r->nr_opportunities; i++)
			law_check(&w, seed, &r->opportunity[i], r->elapsed_ns);
		report_free(r);
		finish(&w.b);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(laws_of_predictions)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
