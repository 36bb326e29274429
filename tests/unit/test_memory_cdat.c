/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_memory_cdat.c - cdat by hand, against a slow model that knows nothing of directories, and
 * exhaustively on two nodes and one line.
 */
#include "memory/cdat/cdat.h"

#include "cdat_fixture.h"

/* ---- by hand: every sequence of the directory protocols -------------------------------------- */

enum { L = MEMORY_LOAD, S = MEMORY_STORE, F = MEMORY_BLOCK };
struct act {
	unsigned processor, kind;
};
struct script {
	const char *protocol;
	struct act act[4]; /* before the last one: preparation; the last one's transactions */
	size_t nr_acts;
	unsigned code[8]; /* 0 ends */
	uint32_t critical;
	enum memory_cdat_supplier supplier;
};

/* Two nodes of two processors: 0, 1 in node 0; 2, 3 in node 1. The line's home is node 0. */
static const struct script script[] = {
	/* not cached */
	{"dir1", {{0, L}}, 1, {2, 12}, 2, MEMORY_CDAT_FROM_LOCAL_MEMORY},
	{"dir1", {{2, L}}, 1, {2, 12}, 2, MEMORY_CDAT_FROM_REMOTE_MEMORY},
	{"dir2", {{2, L}}, 1, {2, 11}, 2, MEMORY_CDAT_FROM_REMOTE_MEMORY},
	{"dir1", {{0, F}}, 1, {1, 11}, 2, MEMORY_CDAT_FROM_LOCAL_MEMORY},
	{"dir1", {{2, S}}, 1, {3, 12}, 2, MEMORY_CDAT_FROM_REMOTE_MEMORY},
	/* clean, exclusive: silent when stored to, a nack when recalled */
	{"dir1", {{2, L}, {2, S}}, 2, {0}, 0, MEMORY_CDAT_FROM_CACHE},
	{"dir1", {{2, L}, {0, L}}, 2, {2, 32, 54, 11}, 4, MEMORY_CDAT_FROM_LOCAL_MEMORY},
	{"dir1", {{2, L}, {0, S}}, 2, {3, 33, 54, 12}, 4, MEMORY_CDAT_FROM_LOCAL_MEMORY},
	{"dir1", {{2, L}, {0, F}}, 2, {1, 31, 54, 11}, 4, MEMORY_CDAT_FROM_LOCAL_MEMORY},
	/* dirty elsewhere: directly or through the home */
	{"dir1", {{2, S}, {0, L}}, 2, {2, 32, 41, 51}, 3, MEMORY_CDAT_FROM_REMOTE_CACHE},
	{"dir1", {{2, S}, {0, S}}, 2, {3, 33, 43, 52}, 3, MEMORY_CDAT_FROM_REMOTE_CACHE},
	{"dir6", {{2, S}, {0, L}}, 2, {2, 32, 56, 11}, 4, MEMORY_CDAT_FROM_REMOTE_CACHE},
	{"dir6", {{2, S}, {0, S}}, 2, {3, 33, 56, 12}, 4, MEMORY_CDAT_FROM_REMOTE_CACHE},
	{"dir6", {{2, S}, {0, F}}, 2, {1, 31, 56, 11}, 4, MEMORY_CDAT_FROM_REMOTE_CACHE},
	/* dirty in the own node: the bus */
	{"dir2", {{2, S}, {3, L}}, 2, {2, 41, 22}, 2, MEMORY_CDAT_FROM_LOCAL_CACHE},
	{"dir2", {{2, S}, {3, S}}, 2, {3, 43}, 2, MEMORY_CDAT_FROM_LOCAL_CACHE},
	/* shared */
	{"dir3", {{2, L}, {3, L}, {0, L}}, 3, {2, 11}, 2, MEMORY_CDAT_FROM_LOCAL_MEMORY},
	{"dir3", {{2, L}, {3, L}, {0, S}}, 3, {3, 34, 53, 34, 53, 12}, 4,
		MEMORY_CDAT_FROM_LOCAL_MEMORY},
	{"dir3", {{2, L}, {3, L}, {3, S}}, 3, {4, 34, 53, 13}, 4, MEMORY_CDAT_FROM_CACHE},
	{"dir3", {{2, L}, {2, S}}, 2, {4, 13}, 2, MEMORY_CDAT_FROM_CACHE},
	/* snooping */
	{"msi", {{2, L}}, 1, {2, 11}, 2, MEMORY_CDAT_FROM_REMOTE_MEMORY},
	{"mesi", {{2, L}, {2, S}}, 2, {0}, 0, MEMORY_CDAT_FROM_CACHE},
	{"msi", {{2, L}, {2, S}}, 2, {4}, 1, MEMORY_CDAT_FROM_CACHE},
	{"msi", {{2, S}, {0, L}}, 2, {2, 41, 22}, 2, MEMORY_CDAT_FROM_REMOTE_CACHE},
	{"mosi", {{2, S}, {0, L}}, 2, {2, 41}, 2, MEMORY_CDAT_FROM_REMOTE_CACHE},
	{"mosi", {{2, S}, {0, L}, {1, L}}, 3, {2, 41}, 2, MEMORY_CDAT_FROM_REMOTE_CACHE},
	{"mosi", {{2, S}, {0, L}, {2, S}}, 3, {4}, 1, MEMORY_CDAT_FROM_CACHE},
	{"mosi", {{2, S}, {0, L}, {1, S}}, 3, {3, 43}, 2, MEMORY_CDAT_FROM_REMOTE_CACHE},
};

static void test_sequences(void **state)
{
	(void)state;
	for (size_t i = 0; i < BASE_COUNT(script); i++) {
		const struct script *t = &script[i];
		char protocol[64] = "protocol=";
		struct codes codes = {.nr = 0};
		struct memory_cdat_outcome o = {0};
		size_t nr = 0;
		uint64_t critical = 0;
		const struct memory_cdat_result *r;
		struct base_err err = {0};
		memcpy(protocol + 9, t->protocol, strlen(t->protocol) + 1);
		struct memory_cdat *c = start(
			MACHINE("nodes=2", "processors=2", "allocation=rr1", protocol), 4, &codes);
		for (size_t k = 0; k < t->nr_acts; k++) {
			codes.nr = 0;
			o = step(c, t->act[k].processor, 0x1000, t->act[k].kind);
			critical += o.critical;
		}
		while (t->code[nr])
			nr++;
		if (codes.nr != nr || memcmp(codes.code, t->code, nr * sizeof *codes.code) != 0 ||
			o.critical != t->critical || o.supplier != t->supplier) {
			for (size_t k = 0; k < codes.nr; k++)
				print_message("%u ", codes.code[k]);
			fail_msg("script %zu (%s): critical %u, supplier %d", i, t->protocol,
				o.critical, (int)o.supplier);
		}
		assert_int_equal(memory_cdat_finish(c, &r, &err), BASE_OK);
		assert_int_equal(r->total.critical, critical);
		memory_cdat_free(c);
	}
}

/* One line per cache, so that a second line replaces the first. */
static void test_replacement(void **state)
{
	(void)state;
	static const struct {
		const char *protocol;
		unsigned first;  /* kind of access to the line that is replaced */
		unsigned code;   /* 0: silent */
		unsigned recall; /* when it is loaded by another then */
	} row[] = {
		{"protocol=dir1", L, 23, 0},
		{"protocol=dir4", L, 0, 55},
		{"protocol=dir1", S, 21, 0},
		{"protocol=dir4", S, 21, 0},
		{"protocol=msi", L, 0, 0},
		{"protocol=moesi", S, 21, 0},
	};
	for (size_t i = 0; i < BASE_COUNT(row); i++) {
		struct codes codes = {.nr = 0};
		struct memory_cdat *c =
			start(MACHINE("nodes=2", "processors=1", "data_bytes=64", row[i].protocol),
				2, &codes);
		step(c, 0, 0x1000, row[i].first);
		codes.nr = 0;
		step(c, 0, 0x2000, L);
		assert_int_equal(codes.nr, row[i].code ? 3 : 2);
		if (row[i].code)
			assert_int_equal(codes.code[2], row[i].code);
		assert_int_equal(memory_cdat_peek(c, 0, 0x1000), 0);
		codes.nr = 0;
		step(c, 1, 0x1000, L);
		assert_int_equal(codes.code[2 * (row[i].recall != 0)],
			row[i].recall ? row[i].recall : MEMORY_CDAT_read_shar_or_priv);
		memory_cdat_free(c);
	}
}

/* ---- exhaustive: two nodes, one line, and one more line to replace it with ------------------- */

/* All sequences of five acts, each on a fresh line: the monitor looks after each act. */
static void test_exhaustive(void **state)
{
	(void)state;
	enum { LENGTH = 5 }; /* of 2 processors x (load, store, fetch, load of another line) */
	size_t nr_protocols;
	const struct memory_cdat_protocol *p = memory_cdat_protocols(&nr_protocols);
	for (size_t i = 0; i < nr_protocols; i++) {
		char protocol[64] = "protocol=";
		memcpy(protocol + 9, p[i].name, strlen(p[i].name) + 1);
		struct memory_cdat *c = start(
			MACHINE("nodes=2", "processors=1", "line_bytes=4096", "data_bytes=4096",
				"code_bytes=4096", "allocation=rr1", protocol),
			2, NULL);
		for (unsigned n = 0; n < 1u << 3 * LENGTH; n++) {
			for (unsigned a = 0; a < LENGTH; a++) {
				static const unsigned kind[] = {L, S, F, L};
				unsigned act = n >> 3 * a & 7, who = act & 1;
				uint64_t at = (n + 1) * 0x2000 + (act >> 1 == 3 ? 0x1000 : 0);
				step(c, who, at, kind[act >> 1]);
				enum memory_cdat_status s = memory_cdat_peek(c, who, at);
				assert_true(s != 0);
				if (act >> 1 == 1) {
					assert_int_equal(s, MEMORY_CDAT_DIRTY);
					assert_int_equal(memory_cdat_peek(c, !who, at), 0);
				}
			}
		}
		memory_cdat_free(c);
	}
}

/* ---- an independent slow model: caches as lists, coherence by definition --------------------- */

enum { SLOW_PROCESSORS = 4, SLOW_SETS = 4, SLOW_WAYS = 2, SLOW_LINES = 24 };

struct slow {
	/* Lines of each set, the latest first; -1: empty. */
	int way[SLOW_PROCESSORS][SLOW_SETS][SLOW_WAYS];
	bool modified[SLOW_PROCESSORS][SLOW_LINES];
	uint64_t hits, misses, write_backs, upgrades;
};

static bool slow_has(const struct slow *m, unsigned p, int line, unsigned *ret_at)
{
	for (unsigned i = 0; i < SLOW_WAYS; i++)
		if (m->way[p][line % SLOW_SETS][i] == line) {
			*ret_at = i;
			return true;
		}
	return false;
}

static void slow_drop(struct slow *m, unsigned p, int line)
{
	unsigned at;
	if (slow_has(m, p, line, &at))
		m->way[p][line % SLOW_SETS][at] = -1;
	m->modified[p][line] = false;
}

/* MSI semantics: whoever stores is alone; whoever loads makes a modified copy elsewhere clean. */
static void slow_access(struct slow *m, unsigned p, int line, bool store)
{
	int *set = m->way[p][line % SLOW_SETS];
	unsigned at = 0;
	bool had = slow_has(m, p, line, &at);
	m->hits += had;
	m->misses += !had;
	m->upgrades += had && store && !m->modified[p][line];
	for (unsigned q = 0; q < SLOW_PROCESSORS; q++) {
		if (q == p)
			continue;
		if (store)
			slow_drop(m, q, line);
		else
			m->modified[q][line] = m->modified[q][line] && had;
	}
	if (!had) {
		/* An empty way first, the first of them; else the one used longest ago. */
		for (at = 0; at < SLOW_WAYS - 1 && set[at] >= 0; at++)
			;
		if (set[at] >= 0) {
			m->write_backs += m->modified[p][set[at]];
			m->modified[p][set[at]] = false;
		}
	}
	memmove(set + 1, set, at * sizeof *set);
	set[0] = line;
	if (store)
		m->modified[p][line] = true;
}

static void one_random_run(uint64_t seed, const char *protocol)
{
	struct slow m = {.hits = 0};
	memset(m.way, 0xff, sizeof m.way);
	struct memory_cdat *c = start(MACHINE("nodes=2", "processors=2", "data_bytes=512",
					      "data_ways=2", "allocation=rr1", protocol),
		SLOW_PROCESSORS, NULL);
	const struct memory_cdat_result *r;
	struct base_err err = {0};
	for (unsigned i = 0; i < 200; i++) {
		unsigned p = fixture_random(&seed) % SLOW_PROCESSORS;
		int line = (int)(fixture_random(&seed) % SLOW_LINES);
		bool store = !(fixture_random(&seed) % 3);
		slow_access(&m, p, line, store);
		step(c, p, (uint64_t)line * 64, store ? S : L);
	}
	assert_int_equal(memory_cdat_finish(c, &r, &err), BASE_OK);
	const struct memory_cdat_flow *f = &r->total.flow[MEMORY_CDAT_DATA];
	assert_int_equal(f->hits, m.hits);
	assert_int_equal(f->misses, m.misses);
	assert_int_equal(f->local + f->remote, m.misses);
	assert_int_equal(f->local_memory + f->local_cache, f->local);
	assert_int_equal(f->remote_memory + f->remote_cache, f->remote);
	assert_int_equal(r->total.transactions[MEMORY_CDAT_write_back], m.write_backs);
	if (!strcmp(protocol, "protocol=msi"))
		assert_int_equal(f->upgrades, m.upgrades);
	assert_true(r->checks >= 200);
	memory_cdat_free(c);
}

static void test_slow_model(void **state)
{
	(void)state;
	static const char *const protocol[] = {"protocol=dir1", "protocol=dir2", "protocol=dir3",
		"protocol=dir4", "protocol=dir5", "protocol=dir6", "protocol=dir7", "protocol=dir8",
		"protocol=msi", "protocol=mesi"};
	for (uint64_t seed = 1; seed <= 1000; seed++)
		one_random_run(seed, protocol[seed % BASE_COUNT(protocol)]);
}

/* Random traces through everything at once: no monitor may object, and a hierarchy without limits
 * misses as often as one level of the same size. */
static void test_hierarchies(void **state)
{
	(void)state;
	size_t nr_protocols;
	const struct memory_cdat_protocol *p = memory_cdat_protocols(&nr_protocols);
	static const char *const inclusive[] = {"inclusive=0", "inclusive=1"};
	static const char *const replacement[] = {
		"replacement=lru", "replacement=fifo", "replacement=random"};
	for (uint64_t seed = 1; seed <= 72; seed++) {
		char protocol[64] = "protocol=";
		const char *name = p[seed % nr_protocols].name;
		memcpy(protocol + 9, name, strlen(name) + 1);
		bool wide = seed % 9 == 0; /* more than 32 processors: sets are interned */
		struct memory_cdat *c =
			start(MACHINE(wide ? "nodes=5" : "nodes=2",
				      wide ? "processors=8" : "processors=2", "data_bytes=256",
				      "data_ways=2", "code_bytes=256", "second_bytes=512",
				      "second_ways=4", "third_bytes=1K", "third_ways=4",
				      seed & 8 ? "interconnect_bytes=512" : "banks=4",
				      seed & 16 ? "migrate_after=4" : "banks=2",
				      seed & 32 ? "replicate_after=2" : "banks=1",
				      inclusive[seed & 1], replacement[seed % 3],
				      seed & 4 ? "third_shared=2" : "third_shared=1", protocol),
				wide ? 40 : 4, NULL);
		uint64_t random = seed;
		const struct memory_cdat_result *r;
		struct base_err err = {0};
		for (unsigned i = 0; i < 1500; i++) {
			static const unsigned kind[] = {L, L, S, F};
			uint32_t who = fixture_random(&random) % (wide ? 40 : 4);
			uint64_t at = 64 * (fixture_random(&random) % 40);
			step(c, who, at * 16, kind[fixture_random(&random) % 4]);
		}
		assert_int_equal(memory_cdat_finish(c, &r, &err), BASE_OK);
		memory_cdat_free(c);
	}
}

/* ---- a last level that processors share ------------------------------------------------------ */

/* Worked out by hand: processors 0 and 1 share one, 2 and 3 the other; one node. */
static void test_shared_by_hand(void **state)
{
	(void)state;
	static const struct {
		uint32_t processor;
		unsigned kind;
		enum memory_cdat_supplier msi, mesi;
		bool msi_upgrade, mesi_upgrade;
	} act[] = {
		{0, L, MEMORY_CDAT_FROM_LOCAL_MEMORY, MEMORY_CDAT_FROM_LOCAL_MEMORY, 0, 0},
		{1, L, MEMORY_CDAT_FROM_THIRD, MEMORY_CDAT_FROM_THIRD, 0, 0},
		{1, S, MEMORY_CDAT_FROM_CACHE, MEMORY_CDAT_FROM_CACHE, 1, 0}, /* both have E */
		{0, L, MEMORY_CDAT_FROM_THIRD, MEMORY_CDAT_FROM_THIRD, 0, 0}, /* 1's own */
		{0, S, MEMORY_CDAT_FROM_CACHE, MEMORY_CDAT_FROM_CACHE, 0, 0}, /* both have M */
		{2, L, MEMORY_CDAT_FROM_LOCAL_CACHE, MEMORY_CDAT_FROM_LOCAL_CACHE, 0, 0},
		{3, L, MEMORY_CDAT_FROM_THIRD, MEMORY_CDAT_FROM_THIRD, 0, 0},
		{0, L, MEMORY_CDAT_FROM_CACHE, MEMORY_CDAT_FROM_CACHE, 0, 0},
		{3, S, MEMORY_CDAT_FROM_CACHE, MEMORY_CDAT_FROM_CACHE, 1, 1},
		{2, L, MEMORY_CDAT_FROM_THIRD, MEMORY_CDAT_FROM_THIRD, 0, 0},
		{1, L, MEMORY_CDAT_FROM_LOCAL_CACHE, MEMORY_CDAT_FROM_LOCAL_CACHE, 0, 0},
	};
	for (unsigned i = 0; i < 4; i++) {
		bool mesi = i & 1;
		struct memory_cdat *c =
			start(MACHINE("processors=4", "data_bytes=256", "second_bytes=512",
				      "third_bytes=1K", "third_shared=2",
				      i & 2 ? "inclusive=1" : "inclusive=0",
				      mesi ? "protocol=mesi" : "protocol=msi"),
				4, NULL);
		for (size_t k = 0; k < BASE_COUNT(act); k++) {
			struct memory_cdat_outcome o =
				step(c, act[k].processor, 0x4000, act[k].kind);
			if (o.supplier != (mesi ? act[k].mesi : act[k].msi) ||
				o.upgrade != (mesi ? act[k].mesi_upgrade : act[k].msi_upgrade))
				fail_msg("machine %u, act %zu: supplier %u, upgrade %d", i, k,
					(unsigned)o.supplier, o.upgrade);
		}
		memory_cdat_free(c);
	}
}

/* Four lines of one set, of which the last level has two ways: an inclusive one takes back what
 * processor 0 has, the other one does not know of it. */
static void test_shared_inclusion(void **state)
{
	(void)state;
	for (unsigned inclusive = 0; inclusive < 2; inclusive++) {
		struct memory_cdat *c = start(
			MACHINE("processors=2", "data_bytes=256", "data_ways=4", "second_bytes=256",
				"second_ways=4", "third_bytes=256", "third_ways=2",
				"third_shared=2", inclusive ? "inclusive=1" : "inclusive=0"),
			2, NULL);
		step(c, 0, 0, S);
		step(c, 1, 0x1000, L);
		step(c, 1, 0x2000, L);
		struct memory_cdat_outcome o = step(c, 0, 0, L);
		assert_int_equal(o.supplier,
			inclusive ? MEMORY_CDAT_FROM_LOCAL_MEMORY : MEMORY_CDAT_FROM_CACHE);
		memory_cdat_free(c);
	}
}

static void test_shared_exhaustive(void **state)
{
	(void)state;
	enum { LENGTH = 3 }; /* of 4 processors x (load, store, fetch, load of another line) */
	size_t nr_protocols;
	const struct memory_cdat_protocol *p = memory_cdat_protocols(&nr_protocols);
	for (size_t i = 0; i < 2 * nr_protocols; i++) {
		char protocol[64] = "protocol=";
		const char *name = p[i / 2].name;
		memcpy(protocol + 9, name, strlen(name) + 1);
		struct memory_cdat *c = start(
			MACHINE("nodes=2", "processors=2", "third_shared=2", "line_bytes=4096",
				"data_bytes=4096", "code_bytes=4096", "second_bytes=4096",
				"third_bytes=4096", i & 1 ? "inclusive=1" : "inclusive=0",
				"allocation=rr1", protocol),
			4, NULL);
		for (unsigned n = 0; n < 1u << 4 * LENGTH; n++) {
			for (unsigned a = 0; a < LENGTH; a++) {
				static const unsigned kind[] = {L, S, F, L};
				unsigned act = n >> 4 * a & 15, who = act & 3;
				uint64_t at = (n + 1) * 0x2000 + (act >> 2 == 3 ? 0x1000 : 0);
				step(c, who, at, kind[act >> 2]);
				assert_true(memory_cdat_peek(c, who, at) != 0);
				if (act >> 2 == 1) {
					assert_int_equal(
						memory_cdat_peek(c, who, at), MEMORY_CDAT_DIRTY);
					assert_int_equal(memory_cdat_peek(c, who ^ 2, at), 0);
				}
			}
		}
		memory_cdat_free(c);
	}
}

/* Three levels by definition: lists of lines, the latest first. `level` 0 and 1 are each
 * processor's, 2 is that of a pair; a pair has a line modified, or not. */
enum { LIST_SETS = 4, LIST_WAYS = 4, LIST_LINES = 40 };
struct list {
	int sets, ways, way[LIST_SETS][LIST_WAYS];
};
struct pairs {
	struct list level[3][SLOW_PROCESSORS];
	bool modified[2][LIST_LINES], inclusive;
	uint64_t hits[3], misses, write_backs, upgrades;
};

static int list_find(const struct list *k, int line)
{
	for (int i = 0; i < k->ways; i++)
		if (k->way[line % k->sets][i] == line)
			return i;
	return -1;
}

static void list_use(struct list *k, int line, int at)
{
	int *w = k->way[line % k->sets];
	memmove(w + 1, w, (size_t)at * sizeof *w);
	w[0] = line;
}

static void list_drop(struct list *k, int line)
{
	int at = list_find(k, line);
	if (at >= 0)
		k->way[line % k->sets][at] = -1;
}

/* Returns what had to go; -1: nothing. */
static int list_put(struct list *k, int line)
{
	int *w = k->way[line % k->sets], at = 0;
	while (at < k->ways - 1 && w[at] >= 0)
		at++;
	int victim = w[at];
	list_use(k, line, at);
	return victim;
}

static bool pair_has(const struct pairs *m, unsigned pair, int line)
{
	return list_find(&m->level[2][pair], line) >= 0 ||
	       list_find(&m->level[0][2 * pair], line) >= 0 ||
	       list_find(&m->level[1][2 * pair], line) >= 0 ||
	       list_find(&m->level[0][2 * pair + 1], line) >= 0 ||
	       list_find(&m->level[1][2 * pair + 1], line) >= 0;
}

static void pair_gave_up(struct pairs *m, unsigned pair, int line)
{
	if (line < 0 || pair_has(m, pair, line))
		return;
	m->write_backs += m->modified[pair][line];
	m->modified[pair][line] = false;
}

static void drop_own(struct pairs *m, unsigned p, int line)
{
	list_drop(&m->level[0][p], line);
	list_drop(&m->level[1][p], line);
}

static void pair_fill(struct pairs *m, unsigned p, int line)
{
	unsigned pair = p / 2;
	struct list *first = &m->level[0][p], *second = &m->level[1][p], *last = &m->level[2][pair];
	if (!m->inclusive) {
		int gone = list_put(first, line);
		if (gone >= 0)
			gone = list_put(second, gone);
		if (gone >= 0 && list_find(last, gone) < 0)
			pair_gave_up(m, pair, list_put(last, gone));
		return;
	}
	if (list_find(last, line) < 0) {
		int gone = list_put(last, line);
		if (gone >= 0) {
			drop_own(m, 2 * pair, gone);
			drop_own(m, 2 * pair + 1, gone);
		}
		pair_gave_up(m, pair, gone);
	}
	if (list_find(second, line) < 0) {
		int gone = list_put(second, line);
		if (gone >= 0)
			list_drop(first, gone);
	}
	(void)list_put(first, line);
}

static void pairs_access(struct pairs *m, unsigned p, int line, bool store)
{
	unsigned pair = p / 2, other = !pair;
	int at = list_find(&m->level[0][p], line), second = list_find(&m->level[1][p], line);
	bool had = pair_has(m, pair, line);
	if (at >= 0) {
		m->hits[0]++;
		list_use(&m->level[0][p], line, at);
	} else {
		int last = list_find(&m->level[2][pair], line);
		m->hits[1] += second >= 0;
		m->hits[2] += second < 0 && had;
		m->misses += !had;
		if (second >= 0 && m->inclusive)
			list_use(&m->level[1][p], line, second);
		else if (second >= 0)
			list_drop(&m->level[1][p], line);
		if (last >= 0)
			list_use(&m->level[2][pair], line, last);
		pair_fill(m, p, line);
	}
	if (!store) {
		m->modified[other][line] = m->modified[other][line] && had;
		return;
	}
	m->upgrades += had && !m->modified[pair][line];
	drop_own(m, 2 * other, line);
	drop_own(m, 2 * other + 1, line);
	list_drop(&m->level[2][other], line);
	m->modified[other][line] = false;
	drop_own(m, p ^ 1, line);
	m->modified[pair][line] = true;
}

static void test_shared_slow_model(void **state)
{
	(void)state;
	static const char *const protocol[] = {"protocol=msi", "protocol=mesi", "protocol=dir1",
		"protocol=dir2", "protocol=dir3", "protocol=dir4", "protocol=dir5", "protocol=dir6",
		"protocol=dir7", "protocol=dir8"};
	static const int sets[] = {2, 2, 4}, ways[] = {2, 4, 4};
	uint64_t shared_hits = 0, write_backs = 0;
	for (uint64_t run = 1; run <= 1000; run++) {
		struct pairs m = {.inclusive = run & 1};
		uint64_t seed = run;
		for (unsigned k = 0; k < 3; k++)
			for (unsigned p = 0; p < SLOW_PROCESSORS; p++) {
				memset(&m.level[k][p], 0xff, sizeof m.level[k][p]);
				m.level[k][p].sets = sets[k];
				m.level[k][p].ways = ways[k];
			}
		struct memory_cdat *c =
			start(MACHINE("nodes=2", "processors=2", "data_bytes=256", "data_ways=2",
				      "second_bytes=512", "second_ways=4", "third_bytes=1K",
				      "third_ways=4", "third_shared=2", "allocation=rr1",
				      m.inclusive ? "inclusive=1" : "inclusive=0",
				      protocol[run % BASE_COUNT(protocol)]),
				SLOW_PROCESSORS, NULL);
		for (unsigned i = 0; i < 300; i++) {
			unsigned p = fixture_random(&seed) % SLOW_PROCESSORS;
			int line = (int)(fixture_random(&seed) % LIST_LINES);
			bool store = !(fixture_random(&seed) % 3);
			pairs_access(&m, p, line, store);
			step(c, p, (uint64_t)line * 64, store ? S : L);
		}
		const struct memory_cdat_result *r;
		struct base_err err = {0};
		assert_int_equal(memory_cdat_finish(c, &r, &err), BASE_OK);
		const struct memory_cdat_flow *f = &r->total.flow[MEMORY_CDAT_DATA];
		if (f->misses != m.misses || f->third_hits != m.hits[2] ||
			f->second_hits != m.hits[1] ||
			f->hits != m.hits[0] + m.hits[1] + m.hits[2] ||
			r->total.transactions[MEMORY_CDAT_write_back] != m.write_backs)
			fail_msg("run %llu: %llu misses, %llu third, %llu second, %llu written "
				 "back; %llu, %llu, %llu, %llu by definition",
				(unsigned long long)run, (unsigned long long)f->misses,
				(unsigned long long)f->third_hits,
				(unsigned long long)f->second_hits,
				(unsigned long long)r->total.transactions[MEMORY_CDAT_write_back],
				(unsigned long long)m.misses, (unsigned long long)m.hits[2],
				(unsigned long long)m.hits[1], (unsigned long long)m.write_backs);
		if (run % BASE_COUNT(protocol) == 0)
			assert_int_equal(f->upgrades, m.upgrades);
		shared_hits += m.hits[2];
		write_backs += m.write_backs;
		memory_cdat_free(c);
	}
	assert_true(shared_hits > 50000 && write_backs > 1000);
}

/* ---- allocation ------------------------------------------------------------------------------ */

static void test_allocation(void **state)
{
	(void)state;
	static const struct memory_ciat_page usage[] = {
		{.page = 1, .owner = 1},
		{.page = 2, .owner = -1, .code_bytes = 64},
		{.page = 3, .owner = -1},
	};
	static const struct {
		const char *allocation;
		unsigned local[3]; /* of pages 1, 2, 3 touched by processor 1 (node 1), in that
				      order */
	} row[] = {
		{"allocation=rr1", {0, 1, 0}}, /* nodes 0, 1, 0 */
		{"allocation=rr2", {0, 1, 1}}, /* page 2 is everywhere and takes no turn */
		{"allocation=oracle",
			{1, 1, 0}}, /* page 1 is thread 1's own, 3 the first in turn */
		{"allocation=first_touch", {1, 1, 1}},
	};
	for (size_t i = 0; i < BASE_COUNT(row); i++) {
		struct memory_cdat_config *k =
			MACHINE("nodes=2", "processors=1", row[i].allocation);
		struct memory_cdat_options o = {.check = true, .usage = usage, .nr_usage = 3};
		struct memory_cdat *c;
		struct base_err err = {0};
		assert_int_equal(memory_cdat_new(k, 2, &o, &c, &err), BASE_OK);
		assert_int_equal(memory_cdat_begin(c, &err), BASE_OK);
		for (unsigned page = 1; page <= 3; page++) {
			struct memory_cdat_outcome out = step(c, 1, page * 4096, page == 2 ? F : L);
			bool local = out.supplier == MEMORY_CDAT_FROM_LOCAL_MEMORY;
			bool want = row[i].local[page - 1];
			if (local != want)
				fail_msg("%s: page %u", row[i].allocation, page);
		}
		if (i == 1 || i == 2) { /* replicated: local to the other node, too */
			assert_int_equal(
				step(c, 0, 2 * 4096, F).supplier, MEMORY_CDAT_FROM_LOCAL_MEMORY);
			step(c, 0, 2 * 4096, S); /* and united by a store */
			assert_int_equal(memory_cdat_peek(c, 1, 2 * 4096), 0);
		}
		memory_cdat_free(c);
		memory_cdat_config_free(k);
	}
}

/* Pages of 8 KiB of which the usage file knows halves. */
static void test_large_pages(void **state)
{
	(void)state;
	static const struct memory_ciat_page usage[] = {
		{.page = 2, .owner = 1},
		{.page = 3, .owner = 1},
		{.page = 4, .owner = 0},
		{.page = 5, .owner = 1},                  /* two owners: shared */
		{.page = 6, .owner = 0, .code_bytes = 8}, /* half is code */
		{.page = 7, .owner = 0},
	};
	struct memory_cdat_config *k =
		MACHINE("nodes=2", "processors=1", "allocation=oracle", "page_bytes=8192");
	struct memory_cdat_options o = {.check = true, .usage = usage, .nr_usage = 6};
	struct memory_cdat *c;
	struct base_err err = {0};
	assert_int_equal(memory_cdat_new(k, 2, &o, &c, &err), BASE_OK);
	assert_int_equal(memory_cdat_begin(c, &err), BASE_OK);
	assert_int_equal(step(c, 0, 2 * 4096, L).supplier, MEMORY_CDAT_FROM_REMOTE_MEMORY);
	assert_int_equal(step(c, 1, 3 * 4096, L).supplier, MEMORY_CDAT_FROM_LOCAL_MEMORY);
	assert_int_equal(step(c, 1, 4 * 4096, L).supplier, MEMORY_CDAT_FROM_REMOTE_MEMORY);
	assert_int_equal(step(c, 0, 5 * 4096, L).supplier, MEMORY_CDAT_FROM_LOCAL_MEMORY);
	assert_int_equal(step(c, 0, 6 * 4096, F).supplier, MEMORY_CDAT_FROM_LOCAL_MEMORY);
	assert_int_equal(step(c, 1, 7 * 4096, L).supplier, MEMORY_CDAT_FROM_LOCAL_MEMORY);
	memory_cdat_free(c);
	memory_cdat_config_free(k);
}

static void test_migration(void **state)
{
	(void)state;
	struct memory_cdat *c = start(MACHINE("nodes=2", "processors=1", "data_bytes=64",
					      "allocation=rr1", "migrate_after=3"),
		2, NULL);
	const struct memory_cdat_result *r;
	struct base_err err = {0};
	for (unsigned i = 0; i < 10; i++)
		assert_int_equal(step(c, 1, 64 * i, L).supplier,
			i < 3 ? MEMORY_CDAT_FROM_REMOTE_MEMORY : MEMORY_CDAT_FROM_LOCAL_MEMORY);
	assert_int_equal(memory_cdat_finish(c, &r, &err), BASE_OK);
	assert_int_equal(r->total.migrations, 1);
	memory_cdat_free(c);
}

/* Three nodes; a cache is one line, so each load of another one misses. Page 4 lives in node 0. */
static void test_replication(void **state)
{
	(void)state;
	enum { PAGE = 4 * 4096 };
	static const struct {
		uint32_t processor;
		unsigned kind, line;
		enum memory_cdat_supplier from;
	} act[] = {
		{0, L, 0, MEMORY_CDAT_FROM_LOCAL_MEMORY}, /* loads in its own node do not count */
		{1, S, 9, MEMORY_CDAT_FROM_REMOTE_MEMORY},
		{1, L, 1, MEMORY_CDAT_FROM_REMOTE_MEMORY}, /* line 9 is written back: one */
		{2, L, 2, MEMORY_CDAT_FROM_REMOTE_MEMORY},
		{0, S, 3, MEMORY_CDAT_FROM_LOCAL_MEMORY}, /* a store: none */
		{2, L, 4, MEMORY_CDAT_FROM_REMOTE_MEMORY},
		{2, L, 5, MEMORY_CDAT_FROM_REMOTE_MEMORY},
		{1, L, 4, MEMORY_CDAT_FROM_REMOTE_MEMORY}, /* three: line 3, dirty in 0, goes too */
		{1, L, 4, MEMORY_CDAT_FROM_LOCAL_MEMORY},
		{2, L, 3, MEMORY_CDAT_FROM_LOCAL_MEMORY},
		{2, L, 3, MEMORY_CDAT_FROM_CACHE},
		{0, L, 9, MEMORY_CDAT_FROM_LOCAL_MEMORY},
		{2, S, 3, MEMORY_CDAT_FROM_REMOTE_MEMORY}, /* one page again */
		{1, L, 4, MEMORY_CDAT_FROM_REMOTE_MEMORY},
		{0, L, 3, MEMORY_CDAT_FROM_REMOTE_CACHE},
		{1, L, 5, MEMORY_CDAT_FROM_REMOTE_MEMORY},
		{1, L, 4, MEMORY_CDAT_FROM_REMOTE_MEMORY}, /* a second time */
		{1, L, 3, MEMORY_CDAT_FROM_LOCAL_MEMORY},
	};
	struct memory_cdat *c =
		start(MACHINE("nodes=3", "processors=1", "data_bytes=64", "protocol=dir3",
			      "allocation=first_touch", "replicate_after=3"),
			3, NULL);
	const struct memory_cdat_result *r;
	struct base_err err = {0};
	for (size_t i = 0; i < BASE_COUNT(act); i++) {
		struct memory_cdat_outcome o =
			step(c, act[i].processor, PAGE + 64 * act[i].line, act[i].kind);
		if (o.supplier != act[i].from)
			fail_msg("act %zu: supplier %u", i, (unsigned)o.supplier);
	}
	assert_int_equal(memory_cdat_finish(c, &r, &err), BASE_OK);
	assert_int_equal(r->total.replications, 2);
	assert_int_equal(r->total.collapses, 1);
	assert_int_equal(r->total.transactions[MEMORY_CDAT_write_back], 2);
	memory_cdat_free(c);
}

/* ---- configuration --------------------------------------------------------------------------- */

static void test_config(void **state)
{
	(void)state;
	static const char *const bad[] = {"nodes=0", "nodes=33", "nodes=two", "protocol=dir9",
		"colour=red", "mapping=0:", "mapping=", "allocation=best", "data_bytes=-1",
		"nodes"};
	struct memory_cdat_config *k = memory_cdat_config_new();
	for (size_t i = 0; i < BASE_COUNT(bad); i++) {
		struct base_err err = {0};
		assert_int_equal(memory_cdat_config_set(k, bad[i], &err), BASE_ERR_USAGE);
		assert_true(err.nr_causes >= 1);
	}
	struct base_err err = {0};
	assert_int_equal(
		memory_cdat_config_read(k,
			"[machine]\nmapping = 1:0 0:0\nnodes = 2\n; a remark\nline_bytes = "
			"128\ndata_bytes = 64K\n",
			"x", &err),
		BASE_OK);
	assert_int_equal(k->data_bytes, 65536);
	assert_int_equal(memory_cdat_config_check(k, &err), BASE_OK);
	struct memory_cdat *c = start(k, 2, NULL);
	memory_cdat_free(c);
}

/* A cache is as large as was said, or refused; more ways than lines are full associativity. */
static void test_geometry(void **state)
{
	(void)state;
	static const struct {
		const char *set[3];
		enum base_status status;
		const char *says;
	} row[] = {{{"data_bytes=100000", "data_ways=8"}, BASE_ERR_USAGE, "is 99840"},
		{{"data_bytes=100", "data_ways=8"}, BASE_ERR_USAGE, "sets of 64 bytes"},
		{{"data_bytes=32", "data_ways=8"}, BASE_ERR_USAGE, "less than a line"},
		{{"code_bytes=8K", "code_ways=3"}, BASE_ERR_USAGE, "code_ways = 3"},
		{{"second_bytes=65600", "second_ways=8"}, BASE_ERR_USAGE, "is 65536"},
		{{"interconnect_bytes=1025", "nodes=2"}, BASE_ERR_USAGE, "interconnect_ways = 4"},
		{{"data_line_bytes=128"}, BASE_ERR_USAGE, "8 to the 64 bytes"},
		{{"data_line_bytes=48"}, BASE_ERR_USAGE, "a power of two"},
		{{"code_line_bytes=4"}, BASE_ERR_USAGE, "code_line_bytes = 4"},
		{{"second_bytes=64K", "second_line_bytes=32"}, BASE_OK, NULL},
		{{"code_line_bytes=64", "second_bytes=64K", "second_line_bytes=32"}, BASE_ERR_USAGE,
			"code_line_bytes = 64"},
		{{"data_line_bytes=32", "inclusive=0"}, BASE_ERR_USAGE, "of one size"},
		{{"data_line_bytes=32", "replacement=random"}, BASE_ERR_USAGE, "last level"},
		{{"data_line_bytes=32", "data_bytes=32"}, BASE_ERR_USAGE, "less than a line"},
		{{"data_line_bytes=32", "code_line_bytes=16"}, BASE_OK, NULL},
		{{"third_line_bytes=16"}, BASE_OK, NULL}, /* there is no such level */
		{{"data_bytes=48K", "data_ways=12"}, BASE_OK, NULL},
		{{"data_bytes=192", "data_ways=8"}, BASE_OK, NULL}};
	for (size_t i = 0; i < BASE_COUNT(row); i++) {
		struct base_err err = {0};
		struct memory_cdat_config *k = machine(row[i].set, row[i].set[2]   ? 3
								   : row[i].set[1] ? 2
										   : 1);
		assert_int_equal(memory_cdat_config_check(k, &err), row[i].status);
		if (row[i].says && !strstr(err.cause[0], row[i].says))
			fail_msg("'%s' does not say '%s'", err.cause[0], row[i].says);
		memory_cdat_config_free(k);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sequences),
		cmocka_unit_test(test_replacement),
		cmocka_unit_test(test_exhaustive),
		cmocka_unit_test(test_slow_model),
		cmocka_unit_test(test_hierarchies),
		cmocka_unit_test(test_shared_by_hand),
		cmocka_unit_test(test_shared_inclusion),
		cmocka_unit_test(test_shared_exhaustive),
		cmocka_unit_test(test_shared_slow_model),
		cmocka_unit_test(test_allocation),
		cmocka_unit_test(test_large_pages),
		cmocka_unit_test(test_migration),
		cmocka_unit_test(test_replication),
		cmocka_unit_test(test_config),
		cmocka_unit_test(test_geometry),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
