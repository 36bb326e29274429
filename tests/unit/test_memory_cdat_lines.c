/* SPDX-License-Identifier: Apache-2.0 */
/* test_memory_cdat_lines.c - levels of caches whose lines have sizes of their own, against a slow
 * model that has them by definition. */
#include "memory/cdat/cdat.h"

#include "cdat_fixture.h"

/* ---- lines of their own sizes, by definition: lists of parts, the latest first --------------- */

enum { PARTS_LEVELS = 3, PARTS_MOST = 8, PARTS_PROCESSORS = 2, PARTS_LINES = 12 };
struct parts_level {
	unsigned sets, ways, bytes; /* bytes of a line; ways 0: there is no such level */
};
struct parts {
	struct parts_level level[PARTS_LEVELS];
	/* Addresses of first bytes. */
	uint64_t list[PARTS_PROCESSORS][PARTS_LEVELS][PARTS_MOST][PARTS_MOST];
	unsigned nr[PARTS_PROCESSORS][PARTS_LEVELS][PARTS_MOST];
	unsigned last;
	bool modified[PARTS_PROCESSORS][PARTS_LINES];
	uint64_t hits[PARTS_LEVELS], misses, upgrades;
};

static unsigned parts_set(const struct parts *m, unsigned k, uint64_t address)
{
	return (unsigned)(address / m->level[k].bytes % m->level[k].sets);
}

/* Takes out the part that has the address; false: it was not there. */
static bool parts_take(struct parts *m, unsigned p, unsigned k, uint64_t address)
{
	unsigned set = parts_set(m, k, address), *nr = &m->nr[p][k][set];
	uint64_t *list = m->list[p][k][set], first = address - address % m->level[k].bytes;
	for (unsigned i = 0; i < *nr; i++)
		if (list[i] == first) {
			memmove(&list[i], &list[i + 1], (*nr - i - 1) * sizeof *list);
			(*nr)--;
			return true;
		}
	return false;
}

static void parts_drop(struct parts *m, unsigned p, unsigned k, uint64_t from, uint64_t bytes)
{
	for (uint64_t at = from; m->level[k].ways && at < from + bytes; at += m->level[k].bytes)
		(void)parts_take(m, p, k, at);
}

static void parts_put(struct parts *m, unsigned p, unsigned k, uint64_t address)
{
	unsigned set = parts_set(m, k, address), *nr = &m->nr[p][k][set];
	uint64_t *list = m->list[p][k][set];
	if (*nr == m->level[k].ways) {
		uint64_t victim = list[--*nr];
		uint64_t whole = k == m->last ? 64 : m->level[k].bytes;
		for (unsigned i = 0; i <= k; i++) /* what the levels before have of it, too */
			parts_drop(m, p, i, victim - victim % whole, whole);
		if (k == m->last)
			m->modified[p][victim / 64] = false;
	}
	memmove(&list[1], list, *nr * sizeof *list);
	list[0] = address - address % m->level[k].bytes;
	(*nr)++;
}

static void parts_access(struct parts *m, unsigned p, uint64_t address, bool store)
{
	unsigned line = (unsigned)(address / 64), found = PARTS_LEVELS;
	/* where the first level has it, those behind hear nothing of it */
	bool is_first = parts_take(m, p, 0, address);
	for (unsigned k = is_first ? 1 : PARTS_LEVELS; k-- > 0;)
		if (is_first || (m->level[k].ways && parts_take(m, p, k, address))) {
			parts_put(m, p, k, address);
			found = k;
		}
	if (found < PARTS_LEVELS)
		m->hits[found]++;
	else
		m->misses++;
	m->upgrades += found < PARTS_LEVELS && store && !m->modified[p][line];
	for (unsigned q = 0; q < PARTS_PROCESSORS; q++) {
		if (q == p)
			continue;
		for (unsigned k = 0; store && k < PARTS_LEVELS; k++)
			parts_drop(m, q, k, (uint64_t)line * 64, 64);
		m->modified[q][line] = m->modified[q][line] && !store && found < PARTS_LEVELS;
	}
	if (found == PARTS_LEVELS)
		for (uint64_t at = 0; at < 64; at += m->level[m->last].bytes)
			parts_put(m, p, m->last, (uint64_t)line * 64 + at);
	for (unsigned k = found < PARTS_LEVELS ? found : m->last; k-- > 0;)
		if (m->level[k].ways)
			parts_put(m, p, k, address);
	if (store)
		m->modified[p][line] = true;
}

static void test_lines_of_own_sizes(void **state)
{
	(void)state;
	static const char *const protocol[] = {
		"protocol=msi", "protocol=dir1", "protocol=dir4", "protocol=mesi", "protocol=dir8"};
	/* data, second and third level: sets, ways, bytes of a line of 64 */
	static const struct {
		struct parts_level level[PARTS_LEVELS];
		const char *set[6];
	} shape[] = {
		{{{2, 2, 32}, {2, 4, 64}},
			{"data_bytes=128", "data_ways=2", "data_line_bytes=32", "second_bytes=512",
				"second_ways=4", "second_line_bytes=64"}},
		{{{4, 1, 16}, {2, 2, 32}, {2, 4, 64}},
			{"data_bytes=64", "data_ways=1", "data_line_bytes=16", "second_bytes=128",
				"second_ways=2", "second_line_bytes=32"}},
		{{{2, 2, 16}, {4, 4, 16}},
			{"data_bytes=64", "data_ways=2", "data_line_bytes=16", "second_bytes=256",
				"second_ways=4", "second_line_bytes=16"}},
		{{{4, 2, 32}}, {"data_bytes=256", "data_ways=2", "data_line_bytes=32",
				       "code_line_bytes=8", "code_bytes=64", "code_ways=1"}},
		{{{1, 8, 16}}, {"data_bytes=128", "data_ways=8", "data_line_bytes=16",
				       "code_bytes=0", "banks=1", "banks=2"}},
	};
	uint64_t hits[PARTS_LEVELS] = {0};
	for (uint64_t run = 1; run <= 500; run++) {
		size_t i = run % BASE_COUNT(shape), n = run / 5 % BASE_COUNT(protocol);
		struct parts m = {.last = 0};
		uint64_t seed = run;
		memcpy(m.level, shape[i].level, sizeof m.level);
		while (m.last + 1 < PARTS_LEVELS && m.level[m.last + 1].ways)
			m.last++;
		struct memory_cdat *c =
			start(MACHINE("nodes=2", "processors=1", shape[i].set[0], shape[i].set[1],
				      shape[i].set[2], shape[i].set[3], shape[i].set[4],
				      shape[i].set[5], protocol[n],
				      m.last == 2 ? "third_bytes=512" : "banks=1", "third_ways=4"),
				PARTS_PROCESSORS, NULL);
		for (unsigned k = 0; k < 400; k++) {
			unsigned p = fixture_random(&seed) % PARTS_PROCESSORS;
			uint64_t address = fixture_random(&seed) % (PARTS_LINES * 64);
			bool store = !(fixture_random(&seed) % 4);
			parts_access(&m, p, address, store);
			step(c, p, address, store ? MEMORY_STORE : MEMORY_LOAD);
		}
		const struct memory_cdat_result *r;
		struct base_err err = {0};
		assert_int_equal(memory_cdat_finish(c, &r, &err), BASE_OK);
		const struct memory_cdat_flow *f = &r->total.flow[MEMORY_CDAT_DATA];
		if (f->misses != m.misses || f->second_hits != m.hits[1] ||
			f->third_hits != m.hits[2] || f->hits != m.hits[0] + m.hits[1] + m.hits[2])
			fail_msg("run %llu: %llu misses, %llu second, %llu third; %llu, %llu, %llu "
				 "by definition",
				(unsigned long long)run, (unsigned long long)f->misses,
				(unsigned long long)f->second_hits,
				(unsigned long long)f->third_hits, (unsigned long long)m.misses,
				(unsigned long long)m.hits[1], (unsigned long long)m.hits[2]);
		if (n == 0)
			assert_int_equal(f->upgrades, m.upgrades);
		for (unsigned k = 0; k < PARTS_LEVELS; k++)
			hits[k] += m.hits[k];
		memory_cdat_free(c);
	}
	assert_true(hits[0] > 10000 && hits[1] > 1000 && hits[2] > 1000);
}

/* What lies across two parts is two accesses; fetches are counted by the instruction cache's. */
static void test_parts_by_hand(void **state)
{
	(void)state;
	const struct memory_cdat_result *r;
	struct base_err err = {0};
	struct memory_cdat *c =
		start(MACHINE("nodes=1", "processors=1", "data_bytes=1K", "data_line_bytes=16",
			      "code_bytes=1K", "code_line_bytes=32", "second_bytes=4K"),
			1, NULL);
	struct memory_step steps[] = {
		{.kind = MEMORY_LOAD, .address = 4096 + 12, .size_bytes = 8}, /* two parts */
		{.kind = MEMORY_LOAD, .address = 4096, .size_bytes = 4},      /* the first */
		{.kind = MEMORY_LOAD, .address = 4096 + 48, .size_bytes = 4}, /* second level */
		{.kind = MEMORY_BLOCK, .address = 8192 + 28, .size_bytes = 40, .count = 10},
		{.kind = MEMORY_BLOCK, .address = 8192 + 28, .size_bytes = 40, .count = 10}};
	assert_int_equal(
		memory_cdat_add(
			c, &(struct memory_steps){.step = steps, .nr = BASE_COUNT(steps)}, &err),
		BASE_OK);
	assert_int_equal(memory_cdat_finish(c, &r, &err), BASE_OK);
	const struct memory_cdat_flow *f = r->total.flow;
	assert_int_equal(f[MEMORY_CDAT_DATA].misses, 1);
	assert_int_equal(f[MEMORY_CDAT_DATA].second_hits, 2);
	assert_int_equal(f[MEMORY_CDAT_DATA].hits, 3);
	/* 28 .. 67: parts of 32 bytes 0, 1, and 2, which is another line */
	assert_int_equal(f[MEMORY_CDAT_INSTRUCTIONS].misses, 2);
	assert_int_equal(f[MEMORY_CDAT_INSTRUCTIONS].second_hits, 1);
	assert_int_equal(f[MEMORY_CDAT_INSTRUCTIONS].hits, 20 - 2);
	memory_cdat_free(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lines_of_own_sizes),
		cmocka_unit_test(test_parts_by_hand),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
