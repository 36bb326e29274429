/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_model_callers.c - samples with stacks: each function with all that it calls, and what is said
 * of code that has no name of its own.
 */
#include "model/model.h"
#include "model_fixture.h"

#include <string.h>

enum { PROGRAM = 1, LIBRARY, MODULES_END };

static void modules(struct bench *b)
{
	static const char *const path[] = {"/bin/prog", "/usr/lib/libz.so.1"};
	for (uint32_t i = 0; i < BASE_COUNT(path); i++) {
		uint32_t text = string(b, path[i]);
		PUT(b, 0, 0, module, .module = i + 1, .path = text);
	}
}

static uint32_t code(struct bench *b, uint32_t module, const char *function)
{
	uint32_t id = ++b->nr_sites, text = *function ? string(b, function) : 0;
	PUT(b, 0, 0, site, .site = id, .module = module, .offset = id * 16);
	if (text)
		PUT(b, 0, 0, symbol, .site = id, .function = text);
	return id;
}

/* The call path of sites, outermost first, up to a 0. */
static uint32_t stack_of(struct bench *b, uint32_t *nr_stacks, const uint32_t *where)
{
	uint32_t parent = 0;
	for (; *where; where++) {
		PUT(b, 0, 0, stack, .stack = ++*nr_stacks, .parent = parent, .site = *where);
		parent = *nr_stacks;
	}
	return parent;
}

struct taken {
	uint32_t site, stack;
	unsigned nr;
};

static void take(struct bench *b, const struct taken *t, size_t nr)
{
	uint64_t at = 100;
	for (size_t i = 0; i < nr; i++)
		for (unsigned k = 0; k < t[i].nr; k++)
			PUT(b, at++, 1, sample, .site = t[i].site, .stack = t[i].stack);
	end(b, at + 100);
}

static void begin(struct bench *b)
{
	start(b);
	uint32_t p = process_of(b, "prog", 0, 100);
	stream(b, p);
	modules(b);
	PUT(b, 0, 1, process_begin, .token = 0);
}

/* The state in which all samples are. */
static uint32_t running(const struct bench *b)
{
	size_t nr = 0;
	uint32_t i = 0;
	while (i < graph_nr_states(model_graph(b->model)) && !model_functions(b->model, i, &nr))
		i++;
	assert_true(nr > 0);
	return i;
}

static bool begins_so(void *ctx, const char *function)
{
	return !strncmp(function, ctx, strlen(ctx));
}

static uint64_t share_in(const struct bench *b, const char *begins, bool self)
{
	char text[64];
	snprintf(text, sizeof text, "%s", begins);
	struct model_match match = {.is_it = begins_so, .ctx = text, .self = self};
	struct model_function_share f;
	uint64_t nr[2];
	for (unsigned i = 0; i < 2; i++) { /* it remembers, and says the same */
		bool found = model_share_in(b->model, running(b), &match, &f);
		assert_int_equal(found, f.nr_samples > 0);
		nr[i] = f.nr_samples;
	}
	assert_int_equal(nr[0], nr[1]);
	if (nr[0]) {
		assert_true(f.share_low <= f.share && f.share <= f.share_high + 1e-9);
		assert_float_equal(f.share, (double)nr[0] / 100, 0.11); /* by visits' parts */
	}
	model_match_fini(&match);
	return nr[0];
}

struct summed {
	double all, leaf;
	unsigned nr_stacks;
};

static bool sum_up(void *ctx, const struct model_call_path *p)
{
	struct summed *sum = ctx;
	sum->all += p->share;
	sum->leaf += !strcmp(p->function, "leaf") ? p->share : 0;
	sum->nr_stacks += p->stack > 0;
	return true;
}

static bool stop_at_once(void *ctx, const struct model_call_path *p)
{
	unsigned *nr = ctx;
	(void)p;
	++*nr;
	return false;
}

/* leaf() is called by heavy() 60 times, by light() 20 times, and 20 times by descend(), which calls
 * itself: who is twice in a stack counts once. */
static void a_function_has_what_it_calls(void **state)
{
	(void)state;
	struct bench b;
	uint32_t nr = 0;
	begin(&b);
	uint32_t main_ = code(&b, PROGRAM, "main"), heavy = code(&b, PROGRAM, "heavy"),
		 light = code(&b, PROGRAM, "light"), descend = code(&b, PROGRAM, "descend"),
		 leaf = code(&b, PROGRAM, "leaf");
	const struct taken t[] = {
		{leaf, stack_of(&b, &nr, (uint32_t[]){main_, heavy, 0}), 60},
		{leaf, stack_of(&b, &nr, (uint32_t[]){main_, light, 0}), 15},
		{light, stack_of(&b, &nr, (uint32_t[]){main_, 0}), 5},
		{leaf, stack_of(&b, &nr, (uint32_t[]){main_, descend, descend, descend, 0}), 20},
	};
	take(&b, t, BASE_COUNT(t));
	assert_int_equal(share_in(&b, "main", false), 100);
	assert_int_equal(share_in(&b, "leaf", false), 95);
	assert_int_equal(share_in(&b, "heavy", false), 60);
	assert_int_equal(share_in(&b, "light", false), 20);
	assert_int_equal(share_in(&b, "descend", false), 20);
	size_t nr_functions;
	const struct model_function_share *f = model_functions(b.model, running(&b), &nr_functions);
	assert_int_equal(nr_functions, 2); /* what ran itself */
	assert_string_equal(f[0].function, "leaf");
	assert_int_equal(f[0].nr_samples, 95);
	/* by call path it is as much */
	struct summed sum = {0};
	unsigned nr_taken = 0;
	assert_true(model_each_call_path(b.model, running(&b), sum_up, &sum));
	assert_float_equal(sum.all, 1, 1e-9);
	assert_float_equal(sum.leaf, f[0].share, 1e-9);
	assert_true(sum.nr_stacks >= 4);
	assert_false(model_each_call_path(b.model, running(&b), stop_at_once, &nr_taken));
	assert_int_equal(nr_taken, 1);
	assert_int_equal(share_in(&b, "heavy", true), 0);
	assert_int_equal(share_in(&b, "l", false), 100); /* leaf or light: each sample once */
	assert_int_equal(share_in(&b, "light", true), 5);
	assert_int_equal(share_in(&b, "nobody", false), 0);
	finish(&b);
}

/* What is inlined where a caller called, or where it was sampled, counts as a function. */
static void inlined_callers_count(void **state)
{
	(void)state;
	struct bench b;
	uint32_t nr = 0;
	begin(&b);
	uint32_t main_ = code(&b, PROGRAM, "main"), leaf = code(&b, PROGRAM, "leaf");
	uint32_t text[] = {string(&b, "inner"), string(&b, "outer"), string(&b, "small")};
	PUT(&b, 0, 0, inlined, .inlined = 1, .site = main_, .function = text[0]);
	PUT(&b, 0, 0, inlined, .inlined = 2, .site = main_, .function = text[1]);
	PUT(&b, 0, 0, inlined, .inlined = 3, .site = leaf, .function = text[2]);
	const struct taken t[] = {{leaf, stack_of(&b, &nr, (uint32_t[]){main_, 0}), 100}};
	take(&b, t, BASE_COUNT(t));
	static const char *const each[] = {"main", "inner", "outer", "small", "leaf"};
	for (size_t i = 0; i < BASE_COUNT(each); i++) {
		assert_int_equal(share_in(&b, each[i], false), 100);
	}
	assert_int_equal(share_in(&b, "small", true), 100);
	assert_int_equal(share_in(&b, "inner", true), 0);
	finish(&b);
}

static uint32_t line_of(
	struct bench *b, uint32_t module, uint32_t function, uint32_t file, uint32_t line)
{
	uint32_t id = ++b->nr_sites;
	PUT(b, 0, 0, site, .site = id, .module = module, .offset = id * 16);
	PUT(b, 0, 0, symbol, .site = id, .function = function, .file = file, .line = line);
	return id;
}

static void inlined_at(struct bench *b, uint32_t row, uint32_t site, const char *function,
	const char *file, int line)
{
	uint32_t text = string(b, function), path = string(b, file);
	PUT(b, 0, 0, inlined, .inlined = row, .site = site, .function = text, .file = path,
		.line = (uint32_t)line);
}

/* A sample counts for the innermost function of the program's own code and for the line there; one
 * in an installed library for the line that called that, if it is known. */
static void the_line_with_most_samples(void **state)
{
	(void)state;
	struct bench b;
	uint32_t nr = 0;
	begin(&b);
	uint32_t burn = string(&b, "burn"), main_ = string(&b, "main"),
		 a_c = string(&b, "/src/a.c"), vector = string(&b, "/usr/include/c++/12/vector");
	uint32_t few = line_of(&b, PROGRAM, burn, a_c, 7),
		 most = line_of(&b, PROGRAM, burn, a_c, 8),
		 same = line_of(&b, PROGRAM, burn, a_c, 8),
		 deep = line_of(&b, PROGRAM, main_, vector, 90),
		 plain = line_of(&b, PROGRAM, main_, a_c, 30),
		 library = line_of(&b, LIBRARY, string(&b, "deflate"), a_c, 5),
		 sine = line_of(&b, LIBRARY, string(&b, "sin"), a_c, 6),
		 cosine = line_of(&b, LIBRARY, string(&b, "cos"), a_c, 7);
	/* the vector's code in push() at b.h:4, that in main() at a.c:20 */
	inlined_at(&b, 1, deep, "at", "/src/b.h", 4);
	inlined_at(&b, 2, deep, "push", "/src/a.c", 20);
	const struct taken t[] = {{few, stack_of(&b, &nr, (uint32_t[]){plain, 0}), 5}, {most, 0, 3},
		{same, 0, 3}, {deep, 0, 9}, {plain, 0, 1}, {library, 0, 50},
		{library, stack_of(&b, &nr, (uint32_t[]){plain, library, 0}), 2},
		{library, stack_of(&b, &nr, (uint32_t[]){most, library, 0}), 4},
		{sine, stack_of(&b, &nr, (uint32_t[]){few, library, 0}), 5},
		{sine, stack_of(&b, &nr, (uint32_t[]){most, 0}), 4},
		{sine, stack_of(&b, &nr, (uint32_t[]){plain, 0}), 1},
		{cosine, stack_of(&b, &nr, (uint32_t[]){most, 0}), 8},
		{cosine, stack_of(&b, &nr, (uint32_t[]){plain, 0}), 1}};
	take(&b, t, BASE_COUNT(t));
	/* nine of ten, on two lines; eight of nine; most from nobody that is known; its own */
	assert_string_equal(model_function_caller(b.model, "sin"), "burn");
	assert_string_equal(model_function_caller(b.model, "cos"), "");
	assert_string_equal(model_function_caller(b.model, "deflate"), "");
	assert_string_equal(model_function_caller(b.model, "burn"), "");
	assert_string_equal(model_function_line(b.model, "burn"), "a.c:8");
	assert_string_equal(model_function_line(b.model, "push"), "b.h:4");
	assert_string_equal(model_function_line(b.model, "main"), "a.c:30");
	assert_string_equal(model_function_line(b.model, "at"), "");
	assert_string_equal(model_function_line(b.model, "deflate"), "a.c:8");
	assert_string_equal(model_function_line(b.model, "nobody"), "");
	size_t nr_functions, nr_chains = 0;
	const struct model_function_share *f = model_functions(b.model, running(&b), &nr_functions);
	for (size_t i = 0; i < nr_functions; i++)
		for (size_t k = 0; k < f[i].nr_inlined; k++, nr_chains++)
			assert_string_equal(
				model_chain_inner(b.model, f[i].inlined[k].chain), "push");
	assert_int_equal(nr_chains, 1);
	finish(&b);
}

static void is_running(struct bench *b, const char *name)
{
	assert_string_equal(model_state(b->model, running(b))->name, name);
}

/* However many of its insides were sampled: one thing, by its caller. */
static void a_library_without_names(void **state)
{
	(void)state;
	struct bench b;
	uint32_t nr = 0;
	begin(&b);
	uint32_t main_ = code(&b, PROGRAM, "main"),
		 thread = code(&b, PROGRAM, "std::thread::_State_impl<F>::_M_run()"),
		 compress = code(&b, PROGRAM, "compress_thread"),
		 deflate = code(&b, LIBRARY, "deflate"),
		 inside = code(&b, LIBRARY, "libz.so.1+0x5d80"),
		 leaf[] = {code(&b, LIBRARY, "libz.so.1+0x4970"),
			 code(&b, LIBRARY, "libz.so.1+0x4100"), code(&b, LIBRARY, "")};
	uint32_t of[] = {
		stack_of(&b, &nr, (uint32_t[]){main_, compress, thread, deflate, inside, 0}),
		stack_of(&b, &nr, (uint32_t[]){main_, compress, deflate, 0})};
	const struct taken t[] = {{leaf[0], of[0], 40}, {leaf[1], of[1], 30}, {leaf[2], of[0], 30}};
	take(&b, t, BASE_COUNT(t));
	is_running(&b, "running libz, called from deflate() < compress_thread()");
	assert_int_equal(share_in(&b, "deflate", false), 100);
	assert_int_equal(share_in(&b, "compress_thread", false), 100);
	assert_int_equal(share_in(&b, "libz.so.1+0x5d80", false), 0); /* nobody would ask for it */
	assert_int_equal(share_in(&b, "libz, called", true), 100);
	finish(&b);
}

/* Called right from the program; and by nobody that has a name. A program's own is all there is. */
static void what_has_fewer_names(void **state)
{
	(void)state;
	static const struct {
		const char *caller, *leaf, *name;
		uint32_t module;
	} given[] = {
		{"main", "libz.so.1+0x4970", "running libz, called from main()", LIBRARY},
		{"libz.so.1+0x10", "libz.so.1+0x4970", "running libz", LIBRARY},
		{"main", "prog+0x4a20", "running prog+0x4a20", PROGRAM},
		{"main", "inflate", "running inflate", LIBRARY},
	};
	for (size_t i = 0; i < BASE_COUNT(given); i++) {
		struct bench b;
		uint32_t nr = 0;
		begin(&b);
		uint32_t caller = code(&b, strchr(given[i].caller, '+') ? LIBRARY : PROGRAM,
				 given[i].caller),
			 leaf = code(&b, given[i].module, given[i].leaf);
		const struct taken t[] = {{leaf, stack_of(&b, &nr, (uint32_t[]){caller, 0}), 50},
			{leaf, stack_of(&b, &nr, (uint32_t[]){caller, 0}), 50}};
		take(&b, t, BASE_COUNT(t));
		is_running(&b, given[i].name);
		finish(&b);
	}
}

/* What only calls others is not what a state is called after. */
static void plumbing_is_passed_over(void **state)
{
	(void)state;
	struct bench b;
	uint32_t nr = 0;
	begin(&b);
	uint32_t render = code(&b, PROGRAM, "render"),
		 handler = code(&b, PROGRAM, "std::function<int (int)>::operator()(int) const"),
		 leaf = code(&b, PROGRAM, "int std::__invoke_impl<int, int (*&)(int), int>(int)");
	const struct taken t[] = {{leaf, stack_of(&b, &nr, (uint32_t[]){render, handler, 0}), 100}};
	take(&b, t, BASE_COUNT(t));
	is_running(&b, "running render");
	finish(&b);
}

/* A stack of itself, or of what is not defined, ends. */
static void stacks_that_lie(void **state)
{
	(void)state;
	struct bench b;
	begin(&b);
	uint32_t main_ = code(&b, PROGRAM, "main"), leaf = code(&b, LIBRARY, "libz.so.1+0x4970");
	PUT(&b, 0, 0, stack, .stack = 1, .parent = 1, .site = main_);
	PUT(&b, 0, 0, stack, .stack = 2, .parent = 7, .site = 900);
	const struct taken t[] = {{leaf, 1, 50}, {leaf, 2, 25}, {leaf, 1000000, 25}};
	take(&b, t, BASE_COUNT(t));
	assert_int_equal(share_in(&b, "main", false), 50);
	finish(&b);
}

/* ---- places ---------------------------------------------------------------------------------- */

/* A program's files are said from where all of its sources lie; others' by their last part. */
static void files_are_said_from_their_tree(void **state)
{
	(void)state;
	static const struct {
		const char *module, *file, *inlined, *text;
	} given[][3] = {
		{{"/home/u/p/build/server", "/home/u/p/src/net/server.c", "",
			 "f (src/net/server.c:7)"},
			{"/home/u/p/build/server", "/home/u/p/src/main.c", "/home/u/p/include/q.h",
				"g (src/main.c:7), inlined in f"},
			{"/usr/lib/libz.so.1", "/build/zlib/deflate.c", "", "f (deflate.c:7)"}},
		/* one directory has them all */
		{{"/home/u/server", "/home/u/server.c", "", "f (server.c:7)"},
			{"/home/u/server", "/home/u/pool.c", "", "f (pool.c:7)"},
			{"/home/u/server", "/usr/include/c++/12/mutex", "", "f (mutex:7)"}},
		/* names that begin alike are no directory */
		{{"/home/u/server", "/home/u/proj/a.c", "", "f (proj/a.c:7)"},
			{"/home/u/server", "/home/u/project/b.c", "", "f (project/b.c:7)"},
			{"/home/u/server", "/home/u/.cargo/registry/src/x/lib.rs", "",
				"f (lib.rs:7)"}},
		/* as the compiler was called; nothing in common */
		{{"/bin/tool", "../src/a.c", "", "f (src/a.c:7)"},
			{"/bin/tool", "../lib/b.c", "", "f (lib/b.c:7)"},
			{"/usr/lib/libz.so.1", "./zlib/deflate.c", "", "f (deflate.c:7)"}},
		{{"/bin/tool", "/srv/a/a.c", "", "f (a.c:7)"},
			{"/bin/tool", "/home/b.c", "", "f (b.c:7)"},
			{"/bin/tool", "c.c", "", "f (c.c:7)"}},
	};
	for (size_t i = 0; i < BASE_COUNT(given); i++) {
		struct bench b;
		start(&b);
		stream(&b, process_of(&b, "prog", 0, 100));
		uint32_t f = string(&b, "f"), g = string(&b, "g"), site[3];
		for (uint32_t k = 0; k < 3; k++) {
			uint32_t module = string(&b, given[i][k].module),
				 file = string(&b, given[i][k].file);
			PUT(&b, 0, 0, module, .module = k + 1, .path = module);
			site[k] = ++b.nr_sites;
			PUT(&b, 0, 0, site, .site = site[k], .module = k + 1, .offset = 16);
			PUT(&b, 0, 0, symbol, .site = site[k], .function = f, .file = file,
				.line = 7);
			if (*given[i][k].inlined) {
				uint32_t where = string(&b, given[i][k].inlined);
				PUT(&b, 0, 0, inlined, .inlined = 1, .site = site[k], .function = g,
					.file = where, .line = 9);
			}
		}
		PUT(&b, 0, 1, process_begin, .token = 0);
		end(&b, 100);
		for (uint32_t k = 0; k < 3; k++)
			assert_string_equal(model_site_text(b.model, site[k]), given[i][k].text);
		finish(&b);
	}
}

static void survives_lack_of_memory(void **state)
{
	(void)state;
	struct bench b;
	uint32_t nr = 0;
	begin(&b);
	uint32_t main_ = code(&b, PROGRAM, "main"), leaf = code(&b, LIBRARY, "libz.so.1+0x4970");
	const struct taken t[] = {{leaf, stack_of(&b, &nr, (uint32_t[]){main_, main_, 0}), 20}};
	take(&b, t, BASE_COUNT(t));
	enum base_status s = BASE_ERR_NOMEM;
	for (uint64_t n = 1; s != BASE_OK; n++) {
		struct model *m = NULL;
		assert_int_equal(trace_reader_rewind(b.reader, &b.err), BASE_OK);
		base_alloc_fail_nth(n);
		s = model_run(b.reader, &b.options, &m, &b.err);
		base_alloc_fail_nth(0);
		assert_true(s == BASE_OK || s == BASE_ERR_NOMEM);
		model_free(m);
	}
	finish(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_function_has_what_it_calls),
		cmocka_unit_test(inlined_callers_count),
		cmocka_unit_test(the_line_with_most_samples),
		cmocka_unit_test(a_library_without_names),
		cmocka_unit_test(what_has_fewer_names),
		cmocka_unit_test(plumbing_is_passed_over),
		cmocka_unit_test(stacks_that_lie),
		cmocka_unit_test(files_are_said_from_their_tree),
		cmocka_unit_test(survives_lack_of_memory),
	};
	return cmocka_run_group_tests_name("model_callers", tests, NULL, NULL);
}
