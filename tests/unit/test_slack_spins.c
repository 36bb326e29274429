/* SPDX-License-Identifier: Apache-2.0 */
/* test_slack_spins.c - rounds that only wait, in streams made by hand. */
#include "slack/spins.h"
#include "memory_fixture.h"
#include "test.h"

/* Instructions of one byte: what they do is told by their address. Registers: bits 0 to 3. */
enum {
	FLAG = 0x100,  /* load to 0; compare; branch */
	TAS = 0x200,   /* 0 = constant; exchange 0 with memory; branch */
	SWAP = 0x300,  /* exchange 0 with memory, again and again; branch */
	SUM = 0x400,   /* load to 0; 1 += 0; branch */
	COUNT = 0x500, /* load to 0; 0 += 1; exchange 0 with memory; branch */
	STAMP = 0x600, /* load to 0; time to 0; branch */
	SCAN = 0x700,  /* outer: 1 = 0; inner: load by 1; 1 += 1; branch; outer's branch */
	PHASE = 0x800, /* load to 0; compare; 3 += 1; compare; branch */
	LEAK = 0x900,  /* the same, and 3 is stored nowhere but goes to 1 */
	DARK = 0xa00,  /* cannot be decoded */
	WORD = 0x10000,
};

static bool decode(void *ctx, uint64_t code, struct slack_registers *ret)
{
	const struct slack_registers load = {.writes = 1, .loads = true}, branch = {.reads = 4},
				     set = {.writes = 1},
				     exchange = {.reads = 1,
					     .writes = 1,
					     .stored = 1,
					     .loads = true,
					     .stores = true,
					     .exchanges = true},
				     compare = {.reads = 1, .writes = 4, .compares = true},
				     step = {.reads = 8, .writes = 12, .steps = 8},
				     limit = {.reads = 8, .writes = 4, .compares = true};
	const struct slack_registers of[DARK >> 8][5] = {[FLAG >> 8] = {load, compare, branch},
		[TAS >> 8] = {set, exchange, compare, branch},
		[SWAP >> 8] = {exchange, compare, branch},
		[SUM >> 8] = {load, {.reads = 3, .writes = 2}, compare, branch},
		[COUNT >> 8] = {load, {.reads = 1, .writes = 1}, exchange, branch},
		[STAMP >> 8] = {load, {.writes = 1, .outside = true}, compare, branch},
		[SCAN >> 8] = {{.writes = 2}, {.reads = 2, .writes = 1, .loads = true},
			{.reads = 2, .writes = 6}, branch},
		[PHASE >> 8] = {load, compare, step, limit, branch},
		[LEAK >> 8] = {load, {.reads = 8, .writes = 2}, step, limit, branch}};
	(void)ctx;
	if (code >= DARK)
		return false;
	*ret = of[code >> 8][code & 7];
	ret->length = 1;
	return true;
}

static void put_block(struct fixture *f, uint64_t address, uint64_t count, uint32_t instructions)
{
	fixture_put(f, 0,
		(struct memory_item){.kind = MEMORY_BLOCK,
			.address = address,
			.size_bytes = (uint16_t)count,
			.count = count,
			.instructions = instructions});
}

static void put_round(struct fixture *f, uint64_t address, uint64_t count)
{
	static const uint8_t kind[DARK >> 8] = {
		[TAS >> 8] = MEMORY_ATOMIC, [SWAP >> 8] = MEMORY_ATOMIC};
	put_block(f, address, count, (uint32_t)count - 1);
	fixture_put(f, 0,
		(struct memory_item){.kind = address < DARK ? kind[address >> 8] : MEMORY_LOAD,
			.address = WORD,
			.code = address,
			.size_bytes = 4,
			.instructions = 1});
	fixture_put(f, 0,
		(struct memory_item){
			.kind = MEMORY_BRANCH, .code = address + count - 1, .address = address});
}

static void put_store(struct fixture *f)
{
	fixture_put(f, 0,
		(struct memory_item){.kind = MEMORY_STORE,
			.address = WORD + 64,
			.size_bytes = 4,
			.instructions = 1});
}

static struct slack_spins *find(struct fixture *f)
{
	struct slack_spins *s;
	struct base_err err = {0};
	assert_int_equal(slack_spins_find(&f->source, decode, NULL, &s, &err), BASE_OK);
	return s;
}

/* Of n rounds, the first one (and one that the second is compared with) are work. */
static void known_loops(void **state)
{
	static const struct {
		uint64_t address, count;
		bool waits, exchanges, counts;
	} loop[] = {{FLAG, 3, true, false, false}, {TAS, 4, true, true, false},
		{SWAP, 3, false, false, false}, {SUM, 4, false, false, false},
		{COUNT, 4, false, false, false}, {STAMP, 4, false, false, false},
		{PHASE, 5, false, false, true}, {LEAK, 5, false, false, false},
		{DARK, 3, false, false, false}};
	enum { ROUNDS = 50 };
	(void)state;
	for (size_t i = 0; i < BASE_COUNT(loop); i++) {
		struct fixture *f = fixture_new(1, MEMORY_SOURCE_INSTRUCTIONS);
		for (unsigned wait = 0; wait < 2; wait++) {
			for (unsigned n = 0; n < ROUNDS; n++)
				put_round(f, loop[i].address, loop[i].count);
			put_store(f);
		}
		struct slack_spins *s = find(f);
		uint64_t spun = loop[i].waits ? 2 * (ROUNDS - 2) * loop[i].count : 0;
		assert_int_equal(s->spinning, spun);
		assert_int_equal(s->instructions, 2 * ROUNDS * loop[i].count + 2);
		uint64_t counted = loop[i].counts ? 2 * (ROUNDS - 2) * loop[i].count : 0;
		assert_int_equal(s->counting, counted);
		assert_int_equal(s->nr_loops, loop[i].waits || loop[i].counts);
		assert_true(!loop[i].counts || s->loop[0].counts);
		assert_int_equal(s->unknown > 0, loop[i].address == DARK);
		if (loop[i].waits) {
			const struct slack_spin_loop *l = &s->loop[0];
			assert_true(l->waits == 2 && l->longest_rounds == ROUNDS - 2);
			assert_true(l->begins == loop[i].address && l->nr_words == 1 &&
				    l->word[0] == WORD && l->exchanges == loop[i].exchanges);
			/* where they are */
			uint64_t from = 2 * loop[i].count, all = s->instructions;
			assert_int_equal(slack_spins_count(s, 0, 0, from), 0);
			assert_int_equal(slack_spins_count(s, 0, from, 7), 7);
			assert_int_equal(slack_spins_count(s, 0, 0, all), spun);
			for (uint64_t at = 0, sum = 0; at < all; at++) {
				sum += slack_spins_count(s, 0, at, 1);
				assert_true(at + 1 < all || sum == spun);
			}
		}
		slack_spins_free(s);
		memory_source_close(&f->source);
	}
}

/* The inner loop counts, the outer one begins anew: an idle loop. */
static void nested(void **state)
{
	enum { ROUNDS = 10, INNER = 30, INSTRUCTIONS = INNER * 3 + 1 };
	(void)state;
	struct fixture *f = fixture_new(1, MEMORY_SOURCE_INSTRUCTIONS);
	for (unsigned n = 0; n < ROUNDS; n++) {
		put_block(f, SCAN, 1, 1);
		for (unsigned k = 0; k < INNER; k++) {
			put_block(f, SCAN + 1, 3, 2);
			fixture_put(f, 0,
				(struct memory_item){.kind = MEMORY_LOAD,
					.address = WORD + k * 64,
					.code = SCAN + 1,
					.size_bytes = 4,
					.instructions = 1});
			fixture_put(f, 0,
				(struct memory_item){.kind = MEMORY_BRANCH,
					.code = SCAN + (k + 1 < INNER ? 3 : 4),
					.address = SCAN + (k + 1 < INNER)});
		}
	}
	struct slack_spins *s = find(f);
	assert_int_equal(s->instructions, ROUNDS * INSTRUCTIONS);
	assert_int_equal(s->spinning, (ROUNDS - 2) * INSTRUCTIONS);
	assert_true(s->nr_loops == 1 && s->loop[0].branch == SCAN + 4 && s->loop[0].waits == 1);
	slack_spins_free(s);
	memory_source_close(&f->source);
}

/* A loop of items says the same as its iterations written out. */
static void loops_of_items(void **state)
{
	static const uint64_t code[] = {FLAG, SUM, COUNT, PHASE};
	uint64_t seed = 5;
	(void)state;
	for (unsigned round = 0; round < 200; round++) {
		struct fixture *whole = fixture_new(1, MEMORY_SOURCE_INSTRUCTIONS);
		struct fixture *folded = fixture_new(1, MEMORY_SOURCE_INSTRUCTIONS);
		for (unsigned k = 0; k < 6; k++) {
			uint64_t address = code[fixture_random(&seed) % 4];
			uint64_t count = address == FLAG ? 3 : address == PHASE ? 5 : 4;
			uint64_t times = 1 + fixture_random(&seed) % 3000;
			bool stores = fixture_random(&seed) % 3 == 0;
			for (uint64_t n = 0; n < times; n++) {
				put_round(whole, address, count);
				if (stores)
					put_store(whole);
			}
			fixture_put(folded, 0,
				(struct memory_item){.kind = MEMORY_REPEAT,
					.address = stores ? 4 : 3,
					.count = times});
			put_round(folded, address, count);
			if (stores)
				put_store(folded);
		}
		struct slack_spins *a = find(whole), *b = find(folded);
		assert_true(a->spinning == b->spinning && a->counting == b->counting &&
			    a->instructions == b->instructions);
		assert_true(a->nr_loops == b->nr_loops && a->thread[0].nr == b->thread[0].nr);
		for (size_t i = 0; i < a->nr_loops; i++) {
			const struct slack_spin_loop *x = &a->loop[i], *y = &b->loop[i];
			assert_true(x->branch == y->branch && x->begins == y->begins &&
				    x->rounds == y->rounds && x->waits == y->waits);
			assert_true(x->instructions == y->instructions &&
				    x->longest_rounds == y->longest_rounds);
		}
		for (size_t i = 0; i < a->thread[0].nr; i++) {
			const struct slack_spin *x = &a->thread[0].spin[i],
						*y = &b->thread[0].spin[i];
			assert_true(
				x->first == y->first && x->last == y->last && x->loop == y->loop);
		}
		slack_spins_free(a);
		slack_spins_free(b);
		memory_source_close(&whole->source);
		memory_source_close(&folded->source);
	}
}

/* A processor that spins on one word; another one stores to its neighbour, then to it. */
static void low_power(void **state)
{
	enum { ROUNDS = 200000, WORK = 20000, ROUND = 3 };
	(void)state;
	struct fixture *f = fixture_new(2, MEMORY_SOURCE_INSTRUCTIONS);
	fixture_call(f, 0, MEMORY_CALL_thread_create, 1, 0);
	for (unsigned word = 0; word < 2; word++) {
		put_block(f, FLAG, 3, WORK);
		put_block(f, FLAG, 3, 2);
		fixture_put(f, 0,
			(struct memory_item){.kind = MEMORY_STORE,
				.address = WORD + 4 - 4 * word,
				.size_bytes = 4,
				.instructions = 1});
	}
	/* the second thread's rounds are made as the first one's, and moved */
	struct fixture_thread own = f->thread[0];
	f->thread[0] = (struct fixture_thread){0};
	fixture_put(
		f, 0, (struct memory_item){.kind = MEMORY_REPEAT, .address = 3, .count = ROUNDS});
	put_round(f, FLAG, ROUND);
	f->thread[1] = f->thread[0];
	f->thread[0] = own;
	struct slack_spins *spins = find(f);
	assert_int_equal(spins->spinning, (ROUNDS - 2) * ROUND);
	struct slack_machine_config *k = slack_machine_config_new(2);
	struct base_err err = {0};
	assert_non_null(k);
	assert_int_equal(slack_machine_config_set(k, "timer_cycles=0", &err), BASE_OK);
	for (unsigned entries = 0; entries < 2; entries++) {
		struct slack_machine_options o = {
			.spins = spins, .spinning = slack_spins_count, .spinning_ctx = spins};
		struct slack_machine *m;
		enum base_status s;
		assert_int_equal(slack_machine_config_set(
					 k, entries ? "lac_entries=1" : "lac_entries=0", &err),
			BASE_OK);
		assert_int_equal(fixture_rewind(&f->source, &err), BASE_OK);
		assert_int_equal(slack_machine_new(k, &f->source, &o, NULL, &m, &err), BASE_OK);
		while ((s = slack_machine_run(m, 1000, &err)) == BASE_OK)
			;
		assert_int_equal(s, BASE_END);
		const struct slack_processor_result *p = &slack_machine_result(m)->processor[1];
		assert_int_equal(p->spinning, spins->spinning);
		assert_true(p->spun_cycles >= p->spinning);
		/* two rounds at its beginning, and after each store that wakes it */
		assert_int_equal(p->spun_cycles - p->low_power_cycles, 3 * 2 * ROUND);
		assert_true(p->low_power_ends == 2 && p->low_power_false == 1);
		assert_int_equal(slack_machine_result(m)->processor[0].spun_cycles, 0);
		slack_machine_free(m);
	}
	slack_machine_config_free(k);
	slack_spins_free(spins);
	memory_source_close(&f->source);
}

static void no_memory(void **state)
{
	(void)state;
	struct fixture *f = fixture_new(1, MEMORY_SOURCE_INSTRUCTIONS);
	for (unsigned n = 0; n < 20; n++)
		put_round(f, FLAG, 3);
	enum base_status s = BASE_ERR_NOMEM;
	for (unsigned nth = 1; s != BASE_OK; nth++) {
		struct slack_spins *spins;
		struct base_err err = {0};
		assert_true(nth < 1000);
		fixture_rewind(&f->source, &err);
		s = WITHOUT_NTH(nth, slack_spins_find(&f->source, decode, NULL, &spins, &err));
		assert_true(s == BASE_OK || !spins);
		slack_spins_free(spins);
	}
	memory_source_close(&f->source);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(known_loops),
		cmocka_unit_test(nested),
		cmocka_unit_test(loops_of_items),
		cmocka_unit_test(low_power),
		cmocka_unit_test(no_memory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
