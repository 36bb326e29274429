/* SPDX-License-Identifier: Apache-2.0 */
/* test_slack_waits.c - waits that a machine waits anew, in streams made by hand. */
#include "slack/waits.h"
#include "memory_fixture.h"
#include "test.h"

/* Instructions of one byte: FLAG: load, compare, branch. TAS: constant, exchange, branch. */
enum {
	FLAG = 0x100,
	TAS = 0x200,
	GIVE = 0x300, /* store; exchange */
	ADD = 0x400,
	WORD = 0x10000,
	COUNT = 0x20000,
	ROUND = 3,
	LEAST = 2, /* rounds that the detector takes for work */
};

static bool decode(void *ctx, uint64_t code, struct slack_registers *ret)
{
	static const struct slack_registers of[5][3] = {
		[FLAG >> 8] = {{.writes = 1, .loads = true}, {.reads = 1, .writes = 4},
			{.reads = 4}},
		[TAS >> 8] = {{.writes = 1},
			{.reads = 1,
				.writes = 1,
				.stored = 1,
				.loads = true,
				.stores = true,
				.exchanges = true},
			{.reads = 1}},
		[GIVE >> 8] = {{.stores = true}, {.reads = 1,
							 .writes = 1,
							 .loads = true,
							 .stores = true,
							 .exchanges = true}},
		[ADD >> 8] = {{.writes = 1, .loads = true, .stores = true}},
	};
	(void)ctx;
	*ret = of[code >> 8][code & 3];
	ret->length = 1;
	return true;
}

static void put_at(struct fixture *f, uint32_t t, uint64_t ns)
{
	fixture_put(f, t, (struct memory_item){.kind = MEMORY_STAMP, .address = ns});
}

/* A block's instructions without access come after its accesses; so a block of its own. */
static void put_work(struct fixture *f, uint32_t t, uint32_t nr)
{
	for (unsigned i = 0; i < 2; i++)
		fixture_put(f, t,
			(struct memory_item){.kind = MEMORY_BLOCK,
				.address = 0x900 + i,
				.instructions = i ? 0 : nr});
}

static void put_access(
	struct fixture *f, uint32_t t, enum memory_item_kind kind, uint64_t code, uint64_t address)
{
	fixture_put(f, t,
		(struct memory_item){.kind = (uint8_t)kind,
			.address = address,
			.code = code,
			.size_bytes = 4,
			.instructions = 1});
}

static void put_round(struct fixture *f, uint32_t t, uint64_t loop, uint64_t word, bool again)
{
	bool exchange = loop == TAS;
	fixture_put(f, t,
		(struct memory_item){.kind = MEMORY_BLOCK,
			.address = loop,
			.size_bytes = ROUND,
			.count = ROUND,
			.instructions = ROUND - 1});
	put_access(f, t, exchange ? MEMORY_ATOMIC : MEMORY_LOAD, loop + exchange, word);
	if (again)
		fixture_put(f, t,
			(struct memory_item){
				.kind = MEMORY_BRANCH, .code = loop + ROUND - 1, .address = loop});
}

/* In vain so many times, written out or as a loop of items; then not. */
static void put_wait(
	struct fixture *f, uint32_t t, uint64_t loop, uint64_t word, uint64_t vain, bool folded)
{
	if (folded && vain) {
		fixture_put(f, t,
			(struct memory_item){.kind = MEMORY_REPEAT, .address = 3, .count = vain});
		put_round(f, t, loop, word, true);
	}
	for (uint64_t i = 0; i < vain && !folded; i++)
		put_round(f, t, loop, word, true);
	put_round(f, t, loop, word, false);
}

struct ran {
	uint64_t cycles, useful, respun, spinning, forced, instructions;
	uint64_t known, locks, barriers, several, unseen, end[FIXTURE_THREADS];
};

static struct ran run(struct fixture *f, bool anew)
{
	uint32_t nr = f->source.info.nr_threads;
	struct slack_machine_config *k = slack_machine_config_new(nr);
	struct slack_spins *spins;
	struct slack_waits *waits;
	struct slack_machine *m;
	struct base_err err = {0};
	enum base_status s;
	fixture_rewind(&f->source, &err);
	assert_int_equal(slack_spins_find(&f->source, decode, NULL, &spins, &err), BASE_OK);
	assert_int_equal(slack_waits_find(&f->source, spins, decode, NULL, &waits, &err), BASE_OK);
	struct slack_machine_options o = {.spins = spins,
		.spinning = slack_spins_count,
		.spinning_ctx = spins,
		.waits = anew ? waits : NULL};
	assert_int_equal(slack_machine_new(k, &f->source, &o, NULL, &m, &err), BASE_OK);
	while ((s = slack_machine_run(m, 1000, &err)) == BASE_OK)
		;
	assert_int_equal(s, BASE_END);
	const struct slack_machine_result *r = slack_machine_result(m);
	struct ran ran = {.cycles = r->cycles,
		.useful = r->instructions - r->spinning,
		.instructions = r->instructions,
		.respun = r->respun,
		.spinning = r->spinning,
		.forced = r->forced,
		.known = waits->flags,
		.locks = waits->locks,
		.barriers = waits->barriers,
		.several = waits->several,
		.unseen = waits->unseen};
	for (uint32_t i = 0; i < nr; i++)
		ran.end[i] = r->processor[i].end;
	assert_true(r->bad_calls == 0 && r->respun <= r->spinning);
	assert_int_equal(r->respun % ROUND, 0);
	for (uint32_t i = 0; i < nr; i++)
		assert_true(r->processor[i].low_power_cycles <= r->processor[i].spun_cycles);
	slack_machine_free(m);
	slack_waits_free(waits);
	slack_spins_free(spins);
	slack_machine_config_free(k);
	return ran;
}

static struct ran run_once(struct fixture *f, bool anew)
{
	struct ran r = run(f, anew);
	memory_source_close(&f->source);
	return r;
}

/* Thread 1 waits for a store of thread 0, after so much work of it. */
static struct fixture *flag(uint32_t work, uint64_t vain, bool folded, unsigned nr_stores)
{
	struct fixture *f = fixture_new(2, MEMORY_SOURCE_INSTRUCTIONS);
	fixture_call(f, 0, MEMORY_CALL_thread_create, 1, 0);
	put_work(f, 0, work);
	for (unsigned i = 0; i < nr_stores; i++)
		put_access(f, 0, MEMORY_STORE, GIVE, WORD);
	put_wait(f, 1, FLAG, WORD, vain, folded);
	put_work(f, 1, 1000);
	return f;
}

/* How long it waited when it was recorded plays no part; how long the other works does. */
static void flags(void **state)
{
	enum { WORK = 20000, MORE = 3000 };
	(void)state;
	struct ran base = run_once(flag(WORK, 100, false, 1), true);
	assert_true(base.known == 1 && !base.forced && base.respun > 0 && base.end[1] > WORK);
	assert_int_equal(base.respun, base.spinning);
	for (unsigned i = 0; i < 6; i++) {
		static const uint64_t vain[] = {3, 4, 11, 5000, 1000000, 77};
		struct ran r = run_once(flag(WORK, vain[i], i > 1, 1), true);
		assert_true(r.cycles == base.cycles && r.respun == base.respun);
		assert_int_equal(r.useful, base.useful);
	}
	struct ran more = run_once(flag(WORK + MORE, 100, false, 1), true);
	assert_int_equal(more.useful - base.useful, MORE);
	assert_in_range(more.respun - base.respun, MORE - ROUND, MORE + ROUND);
	/* what the machine makes of it is the recording of this machine */
	uint64_t vain = base.respun / ROUND + LEAST + 1;
	struct ran as_recorded = run_once(flag(WORK, vain, false, 1), false);
	assert_in_range(
		as_recorded.instructions + ROUND, base.instructions, base.instructions + 2 * ROUND);
	assert_in_range(as_recorded.end[1] + 2 * ROUND, base.end[1], base.end[1] + 4 * ROUND);
	/* no round at all was recorded: it waits, too, if the loop is known; here it is not */
	struct ran none = run_once(flag(WORK, 0, false, 1), true);
	assert_true(!none.known && !none.respun && none.end[1] < WORK);
}

/* It cannot be told which store it was, or there is none: as recorded, and said so. */
static void not_known(void **state)
{
	enum { VAIN = 500 };
	(void)state;
	for (unsigned stores = 0; stores < 3; stores += 2) {
		struct ran r = run_once(flag(20000, VAIN, false, stores), true);
		assert_true(!r.known && !r.respun && !r.forced);
		assert_int_equal(r.spinning, (VAIN - LEAST) * ROUND);
		assert_true(r.several == (stores > 0) && r.unseen == !stores);
	}
}

/* Two stores, and times that say which it was. */
static void times_tell(void **state)
{
	(void)state;
	for (unsigned first = 0; first < 2; first++) {
		struct fixture *f = fixture_new(2, MEMORY_SOURCE_INSTRUCTIONS);
		fixture_call(f, 0, MEMORY_CALL_thread_create, 1, 0);
		put_at(f, 0, 100);
		put_work(f, 0, 10000);
		put_access(f, 0, MEMORY_STORE, GIVE, WORD);
		put_at(f, 0, 200);
		put_work(f, 0, 50000);
		put_at(f, 0, 300);
		put_access(f, 0, MEMORY_STORE, GIVE, WORD);
		put_at(f, 0, 400);
		put_at(f, 1, first ? 50 : 250);
		put_wait(f, 1, FLAG, WORD, 50, false);
		put_at(f, 1, first ? 150 : 350);
		struct ran r = run_once(f, true);
		assert_true(r.known == 1 && !r.several && !r.forced);
		assert_true(first ? r.end[1] < 30000 : r.end[1] > 60000);
	}
}

/* Threads take a lock, work, give it back; waits were recorded in one of them. */
static struct fixture *lock(uint32_t threads, unsigned times, uint32_t work, bool by_exchange)
{
	struct fixture *f = fixture_new(threads, MEMORY_SOURCE_INSTRUCTIONS);
	for (uint32_t t = 1; t < threads; t++)
		fixture_call(f, 0, MEMORY_CALL_thread_create, t, 0);
	for (uint32_t t = 0; t < threads; t++)
		for (unsigned i = 0; i < times; i++) {
			put_wait(f, t, TAS, WORD, t == 0 && i == 1 ? 60 : 0, false);
			put_work(f, t, work);
			put_access(f, t, by_exchange ? MEMORY_ATOMIC : MEMORY_STORE,
				by_exchange ? GIVE + 1 : GIVE, WORD);
			put_work(f, t, 10);
		}
	return f;
}

static void locks(void **state)
{
	enum { TIMES = 5, WORK = 2000 };
	uint64_t useful = 0;
	(void)state;
	for (uint32_t threads = 1; threads <= 16; threads *= 2) {
		struct ran r = run_once(lock(threads, TIMES, WORK, threads % 3 == 2), true);
		assert_int_equal(r.locks, (uint64_t)threads * TIMES);
		assert_true(!r.forced && !r.several && !r.unseen);
		assert_true(r.cycles >= (uint64_t)threads * TIMES * WORK); /* one at a time */
		assert_true(threads == 1 || r.respun > (threads - 1) * WORK);
		/* a thread's work is the same, however many there are */
		uint64_t each = r.useful - LEAST * ROUND;
		assert_true(each % threads == 0 && (!useful || each / threads == useful));
		useful = each / threads;
	}
}

/* All add to a counter; who came last when it was recorded lets the others go. */
static void barriers(void **state)
{
	enum { WORK = 40000, THREADS = 4 };
	(void)state;
	for (uint32_t slow = 0; slow < THREADS; slow++) {
		struct fixture *f = fixture_new(THREADS, MEMORY_SOURCE_INSTRUCTIONS);
		for (uint32_t t = 1; t < THREADS; t++)
			fixture_call(f, 0, MEMORY_CALL_thread_create, t, 0);
		for (uint32_t t = 0; t < THREADS; t++) {
			bool last = t == 2;
			put_work(f, t, t == slow ? WORK : 100);
			put_at(f, t, last ? 500 : 100 + t);
			put_access(f, t, MEMORY_ATOMIC, ADD, COUNT);
			if (last)
				put_access(f, t, MEMORY_STORE, GIVE, WORD);
			else
				put_wait(f, t, FLAG, WORD, 20 + t, false);
			put_work(f, t, 10);
		}
		struct ran r = run_once(f, true);
		assert_true(r.known == THREADS - 1 && r.barriers == THREADS - 1 && !r.forced);
		for (uint32_t t = 0; t < THREADS; t++)
			assert_true(r.end[t] > WORK);
		assert_true(r.respun > (THREADS - 2) * WORK);
	}
}

/* What can never come is not waited for: each waits for what the other does later. */
static void nobody_comes(void **state)
{
	(void)state;
	struct fixture *f = fixture_new(2, MEMORY_SOURCE_INSTRUCTIONS);
	fixture_call(f, 0, MEMORY_CALL_thread_create, 1, 0);
	for (uint32_t t = 0; t < 2; t++) {
		put_wait(f, t, FLAG, WORD + t * 64, 20, false);
		put_access(f, t, MEMORY_STORE, GIVE, WORD + 64 - t * 64);
	}
	struct ran r = run_once(f, true);
	assert_true(r.known == 2 && r.forced >= 1);
}

static void no_memory(void **state)
{
	struct base_err err = {0};
	(void)state;
	struct fixture *f = lock(2, 3, 10, false);
	struct slack_spins *spins;
	struct slack_waits *waits = NULL;
	assert_int_equal(slack_spins_find(&f->source, decode, NULL, &spins, &err), BASE_OK);
	enum base_status s = BASE_ERR_NOMEM;
	for (unsigned nth = 1; s != BASE_OK; nth++) {
		assert_true(nth < 1000);
		fixture_rewind(&f->source, &err);
		s = WITHOUT_NTH(
			nth, slack_waits_find(&f->source, spins, decode, NULL, &waits, &err));
		assert_true(s == BASE_OK || !waits);
	}
	struct slack_machine_config *k = slack_machine_config_new(2);
	struct slack_machine_options o = {.waits = waits};
	s = BASE_ERR_NOMEM;
	for (unsigned nth = 1; s != BASE_OK; nth++) {
		struct slack_machine *m;
		fixture_rewind(&f->source, &err);
		s = WITHOUT_NTH(nth, slack_machine_new(k, &f->source, &o, NULL, &m, &err));
		assert_true(s == BASE_OK || !m);
		slack_machine_free(m);
	}
	slack_machine_config_free(k);
	slack_waits_free(waits);
	slack_spins_free(spins);
	memory_source_close(&f->source);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(flags),
		cmocka_unit_test(not_known),
		cmocka_unit_test(times_tell),
		cmocka_unit_test(locks),
		cmocka_unit_test(barriers),
		cmocka_unit_test(nobody_comes),
		cmocka_unit_test(no_memory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
