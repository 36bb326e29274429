/* SPDX-License-Identifier: Apache-2.0 */
/* test_spin.c - the spin detector against the text's figures, laws and a naive detector. */
#include "spin/detect.h"
#include "spin/phase.h"

#include "spin_machine.h"
#include "test.h"

/* ---- figure 3-4 ------------------------------------------------------------------------------ */

/* I0: r1 += 1; I1: a silent store; I2: r1 -= 1; I3: branch back to I0; I4: the same. */
static void figure_3_4(void **state)
{
	(void)state;
	enum { I3 = 3, I4 = 4, R1 = 1 };
	uint64_t memory[128], zero = 0, one = 1;
	struct spin_detector d;
	assert_true(spin_detector_size_bytes(2, 2) <= sizeof memory);
	memset(memory, 0, sizeof memory);
	assert_true(spin_detector_init(&d, memory, 2, 2));

	/* (a) I3 is not taken, I4 is */
	spin_commit(&d, 5);
	assert_false(spin_branch(&d, I4, 0).cycle);
	assert_int_equal(d.used, 1);
	uint32_t entry0 = d.top;
	assert_int_equal(d.sdt[entry0].pc, I4);
	assert_int_equal(d.rub_end, 0);
	/* (b) r1's old value comes in, for entry 0 */
	spin_commit(&d, 1);
	spin_register(&d, R1, 1, &zero, &one);
	assert_int_equal(d.rub_end, 1);
	assert_int_equal(d.rub[0].reg, R1);
	assert_int_equal(d.rub[0].value[0], 0);
	assert_int_equal(d.mask[0], 1 << entry0);
	/* (c) it is what it was: out again */
	spin_commit(&d, 2);
	spin_register(&d, R1, 1, &one, &zero);
	assert_int_equal(d.mask[0], 0);
	/* (d) I3 is taken, and goes on top: top = (top - 1 + size) mod size */
	spin_commit(&d, 1);
	assert_false(spin_branch(&d, I3, 0).cycle);
	assert_int_equal(d.used, 2);
	assert_int_equal(d.top, (entry0 + 1) % 2);
	assert_int_equal(d.sdt[d.top].pc, I3);
	/* (e) r1 again: one entry, for both */
	spin_commit(&d, 1);
	spin_register(&d, R1, 1, &zero, &one);
	assert_int_equal(d.mask[0], 3);
	assert_int_equal(d.mask[1], 0);
	/* and I3 again: it spun, as in (d) */
	spin_commit(&d, 2);
	spin_register(&d, R1, 1, &one, &zero);
	spin_commit(&d, 1);
	struct spin_verdict v = spin_branch(&d, I3, 0);
	assert_true(v.cycle && v.spinning);
	assert_int_equal(v.instructions, 4);
	assert_int_equal(v.iterations, 1);
	assert_int_equal(d.used, 2);
	assert_int_equal(d.mask[0], 0);
	/* I4's counter lost what I3 has counted: 4 instructions of (b) to (d), and 5 now. */
	spin_commit(&d, 5);
	v = spin_branch(&d, I4, 0);
	assert_true(v.spinning);
	assert_int_equal(v.instructions, 4 + 5);
	assert_int_equal(d.used, 1); /* I3 was above it */
	assert_int_equal(d.counts.spinning, 4 + 9);
	assert_int_equal(d.counts.instructions, 5 + 4 + 4 + 5);
	assert_int_equal(d.counts.evictions + d.counts.overflows, 0);
}

/* ---- figure 3-3's lock, for x86 -------------------------------------------------------------- */

enum { LOCK = 16, DATA = 17 };
/* test: mov (lock), r1; cmp $0, r1; jne test (BCT 1); mov $255, r1; xchg r1, (lock); cmp $255, r1;
 * je test (BCT 2); critical section; unlock; again, r7 times */
static const struct instruction nested_lock[] = {
	{SET, 0, 0, LOCK},
	/* 1: */ {LOAD, 1, 0, 0},
	{COMPARE, 1, 0, 0},
	{DIFFER, 0, 0, 1},
	{SET, 1, 0, 255},
	{SWAP, 1, 0, 0},
	{COMPARE, 1, 0, 255},
	{EQUAL, 0, 0, 1},
	{LOAD, 2, 0, 1},
	{ADD, 2, 0, 1},
	{STORE, 2, 0, 1},
	{SET, 1, 0, 0},
	{STORE, 1, 0, 0},
	{ADD, 7, 0, -1},
	{COMPARE, 7, 0, 0},
	{DIFFER, 0, 0, 1},
	{HALT, 0, 0, 0},
};

/* One owner who does not let go: everything is spinning, inner and outer loop alike. */
static void nested_lock_held(void **state)
{
	(void)state;
	struct machine m = {.memory = {[LOCK] = 255}};
	struct thread *t = thread_new(nested_lock, SPIN_SDT_DEFAULT, SPIN_RUB_DEFAULT);
	t->r.general[7] = 1;
	/* The inner loop: 3 instructions. The first time round is the first that can be known. */
	for (int i = 0; i < 1 + 3 * 100; i++)
		step(&m, t);
	assert_int_equal(t->detector->counts.spinning, 3 * 99);
	/* The test sees it free, the swap does not: the outer loop, again and again. */
	uint64_t before = t->detector->counts.spinning;
	for (int i = 0; i < 100; i++) {
		m.memory[LOCK] = 0;
		for (int k = 0; k < 3; k++)
			step(&m, t);
		m.memory[LOCK] = 255;
		for (int k = 0; k < 4; k++)
			step(&m, t);
		assert_true(t->branched);
		assert_int_equal(t->pc, 1);
	}
	assert_int_equal(t->detector->counts.spinning - before, 7 * 99);
	/* It gets the lock, and that is work. */
	before = t->detector->counts.spinning;
	m.memory[LOCK] = 0;
	while (!t->halted)
		step(&m, t);
	assert_int_equal(t->detector->counts.spinning, before);
	assert_int_equal(m.memory[DATA], 1);
	assert_int_equal(t->oracle_spinning, before);
	thread_free(t);
}

/* Section 3.6.2.1's contended lock: totals grow with the threads, useful instructions do not. */
static void contended_lock(void **state)
{
	(void)state;
	enum { ALL = 3200 };
	double useful_of_one = 0;
	uint64_t total_before = 0;
	for (unsigned nr = 1; nr <= 16; nr *= 2) {
		struct machine m = {0};
		struct thread *t[16];
		uint64_t useful = 0, total = 0, random = 7 + nr;
		for (unsigned i = 0; i < nr; i++) {
			t[i] = thread_new(nested_lock, SPIN_SDT_DEFAULT, SPIN_RUB_DEFAULT);
			t[i]->r.general[7] = ALL / nr;
		}
		for (unsigned running = nr; running;) {
			running = 0;
			for (unsigned i = 0; i < nr; i++) {
				/* (no processor is exactly as fast as another) */
				if (random_next(&random) % 4)
					step(&m, t[i]);
				running += !t[i]->halted;
			}
		}
		for (unsigned i = 0; i < nr; i++) {
			total += t[i]->instructions;
			useful += t[i]->instructions - t[i]->detector->counts.spinning;
			assert_int_equal(t[i]->detector->counts.spinning, t[i]->oracle_spinning);
			thread_free(t[i]);
		}
		assert_int_equal(m.memory[DATA], ALL);
		if (nr == 1) {
			assert_int_equal(useful, total);
			useful_of_one = (double)useful;
		}
		assert_true(total > total_before);
		total_before = total;
		/* 15 instructions are work; a wait's first iteration, and a swap that comes too
		 * late, are not known to be spinning. contended_lock_long has the bound. */
		assert_true((double)useful < 2.5 * useful_of_one);
		if (nr == 16)
			assert_true((double)total > 4 * (double)useful);
	}
}

/* The 2 % of the seed's figure 3-5: waits that are long against one iteration. */
static void contended_lock_long(void **state)
{
	(void)state;
	/* The critical section is a loop of 8,000 instructions. */
	static const struct instruction program[] = {
		{SET, 0, 0, LOCK},
		/* 1: */ {LOAD, 1, 0, 0},
		{COMPARE, 1, 0, 0},
		{DIFFER, 0, 0, 1},
		{SET, 1, 0, 255},
		{SWAP, 1, 0, 0},
		{COMPARE, 1, 0, 255},
		{EQUAL, 0, 0, 1},
		{SET, 3, 0, 8000 / 3},
		/* 9: */ {ADD, 3, 0, -1},
		{COMPARE, 3, 0, 0},
		{DIFFER, 0, 0, 9},
		{SET, 1, 0, 0},
		{STORE, 1, 0, 0},
		{ADD, 7, 0, -1},
		{COMPARE, 7, 0, 0},
		{DIFFER, 0, 0, 1},
		{HALT, 0, 0, 0},
	};
	double one = 0;
	for (unsigned nr = 1; nr <= 16; nr *= 2) {
		struct machine m = {0};
		struct thread *t[16];
		uint64_t useful = 0, random = 99;
		for (unsigned i = 0; i < nr; i++) {
			t[i] = thread_new(program, SPIN_SDT_DEFAULT, SPIN_RUB_DEFAULT);
			t[i]->r.general[7] = 64 / nr;
		}
		for (unsigned running = nr; running;) {
			running = 0;
			for (unsigned i = 0; i < nr; i++) {
				if (random_next(&random) % 4)
					step(&m, t[i]);
				running += !t[i]->halted;
			}
		}
		for (unsigned i = 0; i < nr; i++) {
			useful += t[i]->instructions - t[i]->detector->counts.spinning;
			thread_free(t[i]);
		}
		if (nr == 1)
			one = (double)useful;
		assert_true((double)useful >= one * 0.98 && (double)useful <= one * 1.02);
	}
}

/* Section 3.6.2.1's idle loop: a round looks at 50 words, and an inner loop's counter changes all
 * the while. Only the outer branch sees that all is as it was. */
static void idle_loop(void **state)
{
	(void)state;
	static const struct instruction program[] = {
		{SET, 0, 0, 0},
		/* 1: */ {LOAD, 1, 0, 100},
		{COMPARE, 1, 0, 0},
		{DIFFER, 0, 0, 8},
		{ADD, 0, 0, 1},
		{COMPARE, 0, 0, 50},
		{DIFFER, 0, 0, 1},
		{GOTO, 0, 0, 0},
		/* 8: */ {HALT, 0, 0, 0},
	};
	struct machine m = {0};
	struct thread *t = thread_new(program, SPIN_SDT_DEFAULT, SPIN_RUB_DEFAULT);
	uint64_t round = 1 + 50 * 6 + 1;
	for (uint64_t i = 0; i < 100 * round; i++)
		step(&m, t);
	/* In the first round the registers were not yet what they are at a round's end. */
	assert_int_equal(t->detector->counts.spinning, 99 * round);
	assert_int_equal(t->oracle_spinning, 99 * round);
	m.memory[120] = 1;
	while (!t->halted)
		step(&m, t);
	assert_int_equal(t->detector->counts.spinning, 99 * round);
	thread_free(t);
}

/* ---- laws on random programs ----------------------------------------------------------------- */

struct builder {
	struct instruction code[512];
	unsigned nr;
	uint64_t random;
};

static void emit(struct builder *b, enum op op, unsigned a, unsigned x, int64_t imm)
{
	assert_true(b->nr < 512);
	b->code[b->nr++] = (struct instruction){op, a, x, imm};
}

static uint64_t pick(struct builder *b, uint64_t below)
{
	return random_next(&b->random) % below;
}

/* Straight computation on r0 to r2. */
static void emit_work(struct builder *b)
{
	static const enum op op[] = {SET, MOVE, ADD, SUM, LOAD, STORE, SWAP, COUNT, COMPARE, WIDEN};
	for (uint64_t i = 1 + pick(b, 6); i; i--)
		emit(b, op[pick(b, sizeof op / sizeof *op)], (unsigned)pick(b, 3),
			(unsigned)pick(b, 3), (int64_t)pick(b, 40));
}

/* Loops that end by themselves, up to three deep, with counters in r3 to r5. */
/* NOLINTNEXTLINE(misc-no-recursion): three deep */
static void emit_finite(struct builder *b, unsigned depth)
{
	for (uint64_t i = 1 + pick(b, 3); i; i--) {
		emit_work(b);
		if (depth == 3)
			continue;
		unsigned counter = 3 + depth;
		switch (pick(b, 4)) {
		case 0: /* so many times */
			emit(b, SET, counter, 0, 1 + (int64_t)pick(b, 9));
			{
				int64_t top = b->nr;
				emit_finite(b, depth + 1);
				emit(b, ADD, counter, 0, -1);
				emit(b, COMPARE, counter, 0, 0);
				emit(b, DIFFER, 0, 0, top);
			}
			break;
		case 1: /* a string scan: up to a word that is set just before */
			emit(b, SET, 6, 0, 77777);
			emit(b, SET, 7, 0, 200);
			emit(b, STORE, 6, 7, (int64_t)pick(b, 50));
			{
				int64_t top = b->nr;
				emit(b, LOAD, 6, 7, 0);
				emit(b, ADD, 7, 0, 1);
				emit(b, COMPARE, 6, 0, 77777);
				emit(b, DIFFER, 0, 0, top);
			}
			break;
		case 2: /* polling with a changing counter */
			emit(b, SET, counter, 0, 1 + (int64_t)pick(b, 30));
			{
				int64_t top = b->nr;
				emit(b, LOAD, 6, 7, 3);
				emit(b, ADD, counter, 0, -1);
				emit(b, COMPARE, counter, 0, 0);
				emit(b, DIFFER, 0, 0, top);
			}
			break;
		default:
			break;
		}
	}
}

/* A thread alone that gets to its end never was twice in one state: no spin may be reported. */
static void nothing_in_computation(void **state)
{
	(void)state;
	uint64_t bcts = 0, cycles = 0;
	for (uint64_t seed = 1; seed <= 500; seed++) {
		struct builder b = {.random = seed * 0x9e3779b97f4a7c15u};
		emit_finite(&b, 0);
		emit(&b, HALT, 0, 0, 0);
		struct machine m = {0};
		struct thread *t = thread_new(b.code, SPIN_SDT_DEFAULT, SPIN_RUB_DEFAULT);
		for (int i = 0; i < 200000 && !t->halted; i++) {
			step(&m, t);
			assert_false(t->branched && t->verdict.spinning);
			t->nr_seen = 0; /* (the oracle has nothing to say here) */
		}
		assert_true(t->halted);
		assert_int_equal(t->detector->counts.spinning, 0);
		bcts += t->detector->counts.bcts;
		cycles += t->detector->counts.cycles;
		thread_free(t);
	}
	assert_true(bcts > 50000 && cycles > 20000); /* loops there were */
}

/* Any jumps at all, memory that others change: as the oracle says, branch by branch. */
static void as_the_oracle_says(void **state)
{
	(void)state;
	uint64_t spins = 0, missed = 0, lost = 0, lazily = 0;
	for (uint64_t seed = 1; seed <= 500; seed++) {
		struct builder b = {.random = seed * 0xd1342543de82ef95u};
		for (int i = 0; i < 40; i++) {
			emit_work(&b);
			static const enum op jump[] = {EQUAL, DIFFER, GOTO, EQUAL, DIFFER};
			if (pick(&b, 2))
				emit(&b, jump[pick(&b, 5)], 0, 0, (int64_t)pick(&b, 60));
		}
		emit(&b, GOTO, 0, 0, 0);
		struct machine m[4] = {0};
		/* unbounded; as usual; far too small; told late */
		struct thread *t[4] = {thread_new(b.code, SPIN_SDT_MAX, SPIN_RUB_MAX),
			thread_new(b.code, SPIN_SDT_DEFAULT, SPIN_RUB_DEFAULT),
			thread_new(b.code, 2, 2), thread_new(b.code, SPIN_SDT_MAX, SPIN_RUB_MAX)};
		t[3]->lazily = true;
		for (int i = 0; i < 2000; i++) {
			for (int k = 0; k < 4; k++) {
				step(&m[k], t[k]);
				if (!t[k]->branched)
					continue;
				/* none is made up; and none is missed but where the tables say so
				 */
				if (t[k]->verdict.spinning)
					assert_true(t[k]->oracle_verdict);
				if (!k)
					assert_int_equal(
						t[k]->verdict.spinning, t[k]->oracle_verdict);
				if (k < 3 && t[k]->oracle_verdict && !t[k]->verdict.spinning) {
					assert_true(t[k]->detector->counts.evictions +
							    t[k]->detector->counts.overflows >
						    0);
					missed++;
				}
			}
			if (!pick(&b, 50)) { /* somebody else */
				uint64_t where = pick(&b, 64), what = pick(&b, 3);
				for (int k = 0; k < 4; k++)
					m[k].memory[where] = what;
			}
		}
		spins += t[0]->oracle_spins;
		assert_int_equal(t[0]->detector->counts.spinning, t[0]->oracle_spinning);
		assert_int_equal(t[0]->detector->counts.evictions, 0);
		assert_int_equal(t[0]->detector->counts.overflows, 0);
		assert_true(t[0]->oracle_spinning <= t[0]->instructions);
		lazily += t[3]->detector->counts.spins;
		assert_true(t[3]->detector->counts.spinning <= t[0]->oracle_spinning);
		lost += t[2]->detector->counts.evictions + t[2]->detector->counts.overflows;
		for (int k = 0; k < 4; k++)
			thread_free(t[k]);
	}
	assert_true(spins > 1000); /* they do spin */
	/* told late: none made up, few missed */
	assert_true(lazily <= spins && lazily * 10 > spins * 9);
	assert_true(lost > 100 && missed > 100); /* and two entries are not enough */
}

/* ---- overflow, eviction, sizes --------------------------------------------------------------- */

static void too_small(void **state)
{
	(void)state;
	uint64_t memory[128], v[4] = {0, 1, 2, 3};
	struct spin_detector d;
	memset(memory, 0, sizeof memory);
	assert_true(spin_detector_init(&d, memory, 2, 2));
	spin_branch(&d, 10, 0);
	spin_register(&d, 1, 1, &v[0], &v[1]);
	spin_register(&d, 2, 1, &v[0], &v[1]);
	spin_register(
		&d, 3, 1, &v[0], &v[1]); /* no place: the entry is given up, and its place free */
	assert_int_equal(d.counts.overflows, 1);
	assert_int_equal(d.rub_end, 0);
	for (unsigned r = 1; r <= 3; r++)
		spin_register(&d, r, 1, &v[1], &v[0]);
	assert_false(spin_branch(&d, 10, 0).spinning); /* all is as it was, but that is not known */
	assert_true(spin_branch(&d, 10, 0).spinning);  /* a new iteration */
	/* three loops for two entries: the oldest goes */
	spin_branch(&d, 20, 0);
	spin_branch(&d, 30, 0);
	assert_int_equal(d.counts.evictions, 1);
	assert_false(spin_branch(&d, 10, 0).cycle);
	/* wide registers compare whole; the last word differs */
	uint64_t wide[SPIN_VALUE_WORDS] = {0},
		 other[SPIN_VALUE_WORDS] = {[SPIN_VALUE_WORDS - 1] = 1};
	spin_register(&d, 9, SPIN_VALUE_WORDS, wide, other);
	assert_false(spin_branch(&d, 10, 0).spinning);
	spin_register(&d, 9, SPIN_VALUE_WORDS, other, wide);
	spin_register(&d, 9, SPIN_VALUE_WORDS, wide, other);
	assert_true(spin_branch(&d, 10, 0).spinning);
	spin_changed(&d);
	assert_false(spin_branch(&d, 10, 0).cycle);
	assert_int_equal(spin_detector_size_bytes(0, 1), 0);
	assert_int_equal(spin_detector_size_bytes(1, 0), 0);
	assert_int_equal(spin_detector_size_bytes(SPIN_SDT_MAX + 1, 1), 0);
	assert_false(spin_detector_init(&d, memory, 1, SPIN_RUB_MAX + 1));
}

/* ---- loops that count ------------------------------------------------------------------------ */

static unsigned phase_iterations(
	unsigned nr, uint64_t stride, uint64_t scan, bool store, unsigned nr_counters)
{
	struct spin_phase p = {0};
	unsigned found = 0;
	uint64_t counter = 100;
	for (unsigned i = 0; i < nr; i++) {
		spin_phase_load(&p, 4096 + scan * i);
		for (unsigned k = 0; k < nr_counters; k++)
			spin_phase_register(&p, k, counter, counter + stride);
		counter += stride;
		if (store && i % 2)
			spin_phase_other(&p);
		found += spin_phase_branch(&p, 77);
	}
	return found;
}

static void two_phase_loops(void **state)
{
	(void)state;
	/* the iteration before the first BCT is not seen whole, and three must be alike */
	assert_int_equal(phase_iterations(100, 1, 0, false, 1), 100 - 3);
	assert_int_equal(phase_iterations(100, (uint64_t)-8, 0, false, 2), 100 - 3);
	assert_int_equal(phase_iterations(100, 1, 8, false, 1), 0); /* a scan */
	assert_int_equal(phase_iterations(100, 0, 0, false, 1), 0); /* that is spinning proper */
	assert_int_equal(phase_iterations(100, 1, 0, true, 1), 0);  /* it tells somebody */
	assert_int_equal(phase_iterations(100, 1, 0, false, SPIN_PHASE_CHANGES + 1), 0);
	/* strides that differ are computation; as are other loops in between */
	struct spin_phase p = {0};
	for (uint64_t i = 0; i < 50; i++) {
		spin_phase_load(&p, 4096);
		spin_phase_register(&p, 1, i * i, (i + 1) * (i + 1));
		assert_false(spin_phase_branch(&p, 77));
	}
	for (uint64_t i = 0; i < 50; i++) {
		spin_phase_load(&p, 4096);
		spin_phase_register(&p, 1, i, i + 1);
		assert_false(spin_phase_branch(&p, 77 + i % 2));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(figure_3_4),
		cmocka_unit_test(nested_lock_held),
		cmocka_unit_test(contended_lock),
		cmocka_unit_test(contended_lock_long),
		cmocka_unit_test(idle_loop),
		cmocka_unit_test(nothing_in_computation),
		cmocka_unit_test(as_the_oracle_says),
		cmocka_unit_test(too_small),
		cmocka_unit_test(two_phase_loops),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
