/* SPDX-License-Identifier: Apache-2.0 */
/* test_base_parameter.c - configurations described by a table: limits, words, round trips. */
#include "test.h"

#include <string.h>

#include "base/parameter.h"

struct config {
	uint64_t size_bytes, shape, seed;
	double load;
	char name[8];
	uint64_t other; /* of no table */
};
static const struct base_word shapes[] = {{"ring", "a circle"}, {"mesh", "a grid"}};
static const struct base_parameter rows[] = {
	{.group = "a",
		BASE_NUMBER(
			BASE_INTEGER, struct config, size_bytes, 4096, 64, 1 << 20, "bytes", "s")},
	{.group = "a",
		BASE_FIELD(BASE_CHOICE, struct config, shape, "word", "s"),
		.words = shapes,
		.nr_words = 2},
	{.group = "b",
		BASE_NUMBER(BASE_INTEGER, struct config, seed, 1, 0, 18446744073709551615u,
			"number", "s")},
	{.group = "b", BASE_NUMBER(BASE_REAL, struct config, load, 0.25, 0, 1, "flits", "s")},
	{.group = "b",
		BASE_FIELD(BASE_TEXT, struct config, name, "text", "s"),
		.preset_text = "none"},
};
static const struct base_parameters table = {rows, BASE_COUNT(rows)};

static enum base_status set(struct config *c, const char *assignment, struct base_err *err)
{
	struct base_assignment a;
	enum base_status s = base_assignment_split(&a, assignment, err);
	if (s != BASE_OK)
		return s;
	const struct base_parameter *p = base_parameter_find(table, NULL, a.key, err);
	return p ? base_parameter_set(p, c, a.value, err) : BASE_ERR_USAGE;
}

static void test_presets(void **state)
{
	struct config c = {.other = 7, .load = 9};
	(void)state;
	base_parameters_preset(table, "a", &c);
	assert_true(c.size_bytes == 4096 && c.shape == 0 && c.load == 9 && !*c.name);
	base_parameters_preset(table, NULL, &c);
	assert_true(c.seed == 1 && c.load == 0.25 && c.other == 7);
	assert_string_equal(c.name, "none");
}

static void test_values(void **state)
{
	static const char *const good[] = {"size_bytes=64", "size_bytes = 1M ", "size_bytes=4K",
		"shape=mesh", "seed=18446744073709551615", "load=1", " load = 1e-3", "name=1234567",
		"name="};
	struct config c = {0}, again = {0};
	struct base_err err = {0};
	(void)state;
	base_parameters_preset(table, NULL, &c);
	again = c;
	for (size_t i = 0; i < BASE_COUNT(good); i++) {
		assert_int_equal(set(&c, good[i], &err), BASE_OK);
		/* What is printed is taken again, and says the same. */
		for (size_t k = 0; k < table.nr; k++) {
			struct base_str text = {0};
			base_parameter_add_value(&text, &rows[k], &c);
			assert_int_equal(
				base_parameter_set(&rows[k], &again, base_str_text(&text), &err),
				BASE_OK);
			base_str_fini(&text);
		}
		assert_memory_equal(&again, &c, offsetof(struct config, name));
		assert_string_equal(again.name, c.name);
	}
	assert_true(c.size_bytes == 4096 && c.shape == 1 && c.seed == UINT64_MAX && c.load == 1e-3);
}

static void test_refusals(void **state)
{
	static const struct {
		const char *text, *said;
	} bad[] = {
		{"size_bytes=63", "64 to 1048576 bytes"},
		{"size_bytes=2M", "64 to 1048576 bytes"},
		{"size_bytes=18446744073709551615G", "64 to 1048576 bytes"},
		{"size_bytes=-1", "not a whole number"},
		{"size_bytes=12Kx", "not a whole number"},
		{"size_bytes=", "not a whole number"},
		{"seed=18446744073709551616", "must be from"},
		{"load=nan", "not a number (flits)"},
		{"load=inf", "not a number"},
		{"load=1.01", "0 to 1 flits"},
		{"shape=rnig", "ring, mesh"},
		{"name=12345678", "longer than 7"},
		{"lod=1", "the nearest is 'load'"},
		{"zzzzzzzzzzz=1", "no parameter 'zzzzzzzzzzz'"},
		{"load", "not KEY=VALUE"},
		{"=1", "not KEY=VALUE"},
	};
	struct config c = {0}, before;
	(void)state;
	base_parameters_preset(table, NULL, &c);
	before = c;
	for (size_t i = 0; i < BASE_COUNT(bad); i++) {
		struct base_err err = {0};
		assert_int_equal(set(&c, bad[i].text, &err), BASE_ERR_USAGE);
		assert_non_null(strstr(err.cause[0], bad[i].said));
		assert_memory_equal(&c, &before, sizeof c);
	}
	assert_null(base_parameter_find(table, "a", "load", NULL));
	assert_ptr_equal(base_parameter_find(table, "b", "load", NULL), &rows[3]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_presets),
		cmocka_unit_test(test_values),
		cmocka_unit_test(test_refusals),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
