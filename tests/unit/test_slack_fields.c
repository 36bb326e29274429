/* SPDX-License-Identifier: Apache-2.0 */
/* test_slack_fields.c - the out-of-order graph: by hand, and the law of slack on random programs.
 */
#include "slack/fields.h"
#include "memory_fixture.h"
#include "test.h"

enum { CODE_AT = 0x1000, DATA_AT = 0x100000 };

/* What instructions do: `code` is 4 bytes long; its number says what it reads and writes. */
struct meaning {
	struct slack_registers at[16];
};
static bool decode(void *ctx, uint64_t code, struct slack_registers *ret)
{
	const struct meaning *m = ctx;
	if (!m || code < CODE_AT)
		return false;
	*ret = m->at[(code - CODE_AT) / 4 % 16];
	ret->length = 4;
	return true;
}

static void block(struct fixture *f, uint32_t t, uint32_t first, uint32_t nr, uint32_t plain)
{
	fixture_put(f, t,
		(struct memory_item){.kind = MEMORY_BLOCK,
			.address = CODE_AT + first * 4,
			.size_bytes = (uint16_t)(nr * 4),
			.count = nr,
			.instructions = plain});
}

static void access_at(struct fixture *f, uint32_t t, enum memory_item_kind kind, uint64_t address)
{
	fixture_put(f, t,
		(struct memory_item){.kind = (uint8_t)kind,
			.address = address,
			.code = CODE_AT,
			.size_bytes = 8,
			.instructions = 1});
}

static struct slack_fields *fields_of(
	struct fixture *f, struct slack_core core, const char *setting)
{
	struct slack_machine_config *c = slack_machine_config_new(f->source.info.nr_threads);
	struct slack_options o = {0};
	struct slack_fields *ret;
	struct base_err err = {0};
	assert_int_equal(slack_machine_config_set(c, "code_bytes=0", NULL), BASE_OK);
	assert_int_equal(slack_machine_config_set(c, setting, NULL), BASE_OK);
	if (slack_fields_new(c, &f->source, &o, &core, &ret, &err) != BASE_OK)
		fail_msg("%s", err.cause[0]);
	slack_machine_config_free(c);
	f->source.ops->rewind(&f->source, NULL);
	return ret;
}

static uint64_t cycles_of(struct fixture *f, struct slack_core core)
{
	struct slack_fields *x = fields_of(f, core, "contention=0");
	uint64_t cycles = slack_fields_result(x)->cycles, sum = 0;
	for (unsigned i = 0; i < SLACK_CAUSES; i++)
		sum += slack_fields_result(x)->cause_cycles[i];
	assert_int_equal(sum, cycles);
	slack_fields_free(x);
	return cycles;
}

/* Two loads that miss (721 cycles each). Independent: side by side, but for a window of one. The
 * second one's address from the first one: one after the other. */
static void test_misses(void **state)
{
	struct meaning free_of = {{{.writes = 1}, {.writes = 2}}},
		       chained = {{{.writes = 1}, {.reads = 1, .writes = 2}}};
	struct fixture *f = fixture_new(1, MEMORY_SOURCE_INSTRUCTIONS);
	(void)state;
	block(f, 0, 0, 2, 0);
	access_at(f, 0, MEMORY_LOAD, DATA_AT);
	access_at(f, 0, MEMORY_LOAD, DATA_AT + 4096);
	struct slack_core core = {
		.window = 16, .width = 3, .decode = decode, .decode_ctx = &free_of};
	/* D 0, E 1, C 722; the thread's end, a third op, waits for both. */
	assert_int_equal(cycles_of(f, core), 722);
	core.width = 1; /* they commit at 722, 723, 724 */
	assert_int_equal(cycles_of(f, core), 724);
	core.window = 1; /* D 722, C 1444; the end: D 1444, E 1445 */
	assert_int_equal(cycles_of(f, core), 2 * 722 + 1);
	core = (struct slack_core){
		.window = 16, .width = 3, .decode = decode, .decode_ctx = &chained};
	assert_int_equal(cycles_of(f, core), 1 + 2 * 721);
	memory_source_close(&f->source);
}

/* A branch that depends on a miss: when it is mispredicted, what follows waits for it. */
static void test_branch(void **state)
{
	struct meaning m = {{{.writes = 1}, {.reads = 1, .branch = SLACK_BRANCH_CONDITIONAL},
		[2] = {.writes = 4}, [3] = {.writes = 8}}};
	(void)state;
	for (unsigned taken = 0; taken < 2; taken++) {
		struct fixture *f = fixture_new(1, MEMORY_SOURCE_INSTRUCTIONS);
		block(f, 0, 0, 2, 1);
		access_at(f, 0, MEMORY_LOAD, DATA_AT);
		block(f, 0, taken ? 3 : 2, 1, 0); /* counters begin with "not taken" */
		access_at(f, 0, MEMORY_LOAD, DATA_AT + 4096);
		struct slack_core core = {.window = 16,
			.width = 4,
			.penalty_cycles = 11,
			.decode = decode,
			.decode_ctx = &m};
		struct slack_fields *x = fields_of(f, core, "contention=0");
		const struct slack_fields_result *r = slack_fields_result(x);
		assert_int_equal(r->branches, 1);
		assert_int_equal(r->mispredicted, taken);
		/* load C 722, branch E 722 C 723; then D 734, E 735, C 1456 */
		assert_int_equal(r->cycles, taken ? 723 + 11 + 1 + 721 : 723);
		assert_int_equal(r->cause_cycles[SLACK_CAUSE_branch], taken ? 12 : 0);
		slack_fields_free(x);
		core.perfect_branches = true;
		assert_int_equal(cycles_of(f, core), 723);
		memory_source_close(&f->source);
	}
}

/* ---- random programs ------------------------------------------------------------------------- */

static struct fixture *random_program(uint32_t nr_threads, uint64_t seed)
{
	struct fixture *f = fixture_new(nr_threads, MEMORY_SOURCE_INSTRUCTIONS);
	for (uint32_t t = 1; t < nr_threads; t++)
		fixture_call(f, 0, MEMORY_CALL_thread_create, t, 0);
	for (uint32_t t = 0; t < nr_threads; t++)
		for (unsigned i = 0; i < 40; i++) {
			uint32_t r = fixture_random(&seed), nr = r % 3;
			block(f, t, (r >> 4) % 12, nr + 2, 2);
			for (uint32_t k = 0; k < nr; k++) {
				uint32_t q = fixture_random(&seed);
				access_at(f, t,
					q % 13 == 0  ? MEMORY_ATOMIC
					: q % 3 == 0 ? MEMORY_STORE
						     : MEMORY_LOAD,
					DATA_AT + q / 16 % 30 * 24);
			}
			if (i == 20)
				fixture_call(f, t, MEMORY_CALL_barrier, 0x9000, nr_threads);
		}
	for (uint32_t t = 1; t < nr_threads; t++)
		fixture_call(f, 0, MEMORY_CALL_thread_join, t, 0);
	return f;
}

static uint64_t few_bits(uint64_t *seed)
{
	uint64_t some = fixture_random(seed);
	return some & fixture_random(seed) & 0xff;
}

static struct meaning random_meaning(uint64_t seed)
{
	struct meaning m;
	for (unsigned i = 0; i < 16; i++)
		m.at[i] = (struct slack_registers){.reads = few_bits(&seed),
			.writes = few_bits(&seed),
			.branch = (uint8_t)(fixture_random(&seed) % 4)};
	return m;
}

static void test_law(void **state)
{
	uint64_t seed = 11;
	(void)state;
	for (unsigned k = 0; k < 60; k++) {
		struct fixture *f = random_program(1 + k % 4, k);
		struct meaning m = random_meaning(k);
		struct slack_core core = {.window = 1 + fixture_random(&seed) % 40,
			.width = 1 + fixture_random(&seed) % 4,
			.penalty_cycles = fixture_random(&seed) % 20,
			.decode = decode,
			.decode_ctx = &m};
		struct slack_fields *x = fields_of(f, core, "protocol=dirmosi");
		const struct slack_fields_result *r = slack_fields_result(x);
		uint64_t end = r->cycles, slack, sum = 0, ignored;
		for (unsigned i = 0; i < SLACK_CAUSES; i++)
			sum += r->cause_cycles[i];
		assert_int_equal(sum, end);
		assert_int_equal(r->unknown, 0);
		for (unsigned i = 0; i < 30; i++) {
			uint64_t op = fixture_random(&seed) % r->ops;
			(void)slack_fields_again(x, op, 0, &slack);
			assert_int_equal(slack_fields_again(x, op, slack, &ignored), end);
			assert_int_equal(slack_fields_again(x, op, slack + 1, &ignored), end + 1);
		}
		slack_fields_free(x);
		core.window += 1 + fixture_random(&seed) % 20; /* more is never slower */
		uint64_t wider = cycles_of(f, core);
		core.window = 1000000;
		assert_true(cycles_of(f, core) <= wider);
		core.perfect_branches = true;
		assert_true(cycles_of(f, core) <= wider);
		core.decode = NULL;
		assert_true(cycles_of(f, core) <= wider);
		memory_source_close(&f->source);
	}
}

/* The first instructions only; a width and a window of nothing. */
static void test_limits(void **state)
{
	(void)state;
	struct fixture *f = random_program(3, 4);
	struct slack_core core = {.window = 64, .width = 4, .most = 50};
	struct slack_fields *x = fields_of(f, core, "contention=1");
	assert_true(slack_fields_result(x)->cut);
	assert_int_equal(slack_fields_result(x)->instructions, 50);
	slack_fields_free(x);
	struct slack_machine_config *c = slack_machine_config_new(3);
	struct slack_options o = {0};
	core.window = 0;
	assert_int_equal(slack_fields_new(c, &f->source, &o, &core, &x, NULL), BASE_ERR_USAGE);
	core.window = 1;
	enum base_status s = BASE_ERR_NOMEM;
	unsigned n = 1;
	for (; s == BASE_ERR_NOMEM || s == BASE_ERR_LIMIT; n++) {
		base_alloc_fail_nth(n);
		s = slack_fields_new(c, &f->source, &o, &core, &x, NULL);
		base_alloc_fail_nth(0);
		slack_fields_free(x);
		f->source.ops->rewind(&f->source, NULL);
	}
	assert_int_equal(s, BASE_OK);
	assert_true(n > 50);
	slack_machine_config_free(c);
	memory_source_close(&f->source);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_misses),
		cmocka_unit_test(test_branch),
		cmocka_unit_test(test_law),
		cmocka_unit_test(test_limits),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
