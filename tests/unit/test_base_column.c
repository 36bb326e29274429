/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_base_column.c - rows described by a table. Laws: every key of the table is in JSON, with the
 * type that the page says; a line is as wide as its columns; the narrower, the fewer.
 */
#include "test.h"

#include <math.h>
#include <string.h>

#include "base/column.h"

struct inner {
	uint64_t nr, total_ns;
};
struct item {
	const char *name;
};
struct row {
	const char *name, *none, *text, *empty;
	char letters[8], *own; /* an array and a pointer are not read alike */
	uint64_t count, zero, big, time_ns;
	uint32_t small;
	int negative;
	double share, unknown, length_ns, speed;
	bool yes;
	struct inner use;
	struct item *item, pair[2];
	const struct inner *behind;
	size_t nr_items;
};

static double half(const void *row, const void *all)
{
	return ((const struct row *)row)->share / 2 + *(const double *)all;
}
static uint64_t doubled(const void *row, const void *all)
{
	(void)all;
	return 2 * ((const struct row *)row)->count;
}
static bool is_many(const void *row, const void *all)
{
	(void)all;
	return ((const struct row *)row)->count > 1;
}
static const char *word(const void *row, const void *all)
{
	(void)row, (void)all;
	return "a word";
}
static json_t *numbers(const void *row, const void *all)
{
	(void)row, (void)all;
	return json_pack("[i, i]", 1, 2);
}
static void cell_own(struct base_str *out, const void *row, const struct base_layout *l)
{
	base_str_addf(out, "<%s%u>", ((const struct row *)row)->name, l->has);
}

#define ROW struct inner
static const struct base_column inner_columns[] = {
	BASE_COLUMN("inner_count", count, nr, "how many", .title = "n", .width = 6, .rank = 2),
	BASE_COLUMN(
		"total_ns", ns, total_ns, "in all", .absence = BASE_OPTIONAL, .when = BASE_AT(nr)),
	BASE_COLUMN(NULL, ns, total_ns, NULL, .per = BASE_AT(nr), .when = BASE_AT(nr),
		.title = "mean", .width = 10, .rank = 3),
};
static const struct base_table inner_table = BASE_TABLE("inner", inner_columns);
#undef ROW
#define ROW struct item
static const struct base_column item_columns[] = {BASE_COLUMN("item", text, name, "its name")};
static const struct base_table item_table = BASE_TABLE("item", item_columns);
#undef ROW
#define ROW struct row
static const struct base_column extra_columns[] = {BASE_COLUMN("extra", count, count, "more")};
static const struct base_table extra_table = BASE_TABLE("extra", extra_columns);
static const struct base_column columns[] = {
	BASE_COLUMN("name", text, name, "its name"),
	BASE_COLUMN("none", text, none, "no text", .absence = BASE_NULL),
	BASE_COLUMN("letters", text, letters, "in the row"),
	BASE_COLUMN("own", text, own, "behind a pointer", .absence = BASE_NULL),
	BASE_COLUMN("count", count, count, "how many", .title = "count", .width = 8, .rank = 1),
	BASE_COLUMN("zero", count, zero, "nothing", .when = BASE_AT(zero), .title = "zero",
		.width = 5, .rank = 4),
	BASE_COLUMN("big", count, big, "beyond"),
	BASE_COLUMN("if_empty", count, count, "never", .when = BASE_AT(empty),
		.absence = BASE_OPTIONAL),
	BASE_COLUMN("if_part", count, count, "where there is a share", .when = BASE_AT(share),
		.absence = BASE_OPTIONAL),
	BASE_COLUMN("at", address, big, "where"),
	BASE_COLUMN("all_digits", exact, share, "part"),
	BASE_COLUMN("any_text", lines, text, "as it is"),
	BASE_COLUMN("small", number, small, "of 32 bits"),
	BASE_COLUMN("negative", number, negative, "below"),
	BASE_COLUMN("time_ns", ns, time_ns, "time", .title = "", .width = 10, .rank = 1),
	BASE_COLUMN("share", share, share, "part", .title = "time and share", .width = 7, .rank = 1,
		.estimated = BASE_AT(yes)),
	BASE_COLUMN("unknown", real, unknown, "no number", .title = "?", .width = 4, .rank = 4),
	BASE_COLUMN("length_ns", ns, length_ns, "rounded"),
	BASE_COLUMN("rate", real, count, "count by small", .per = BASE_AT(small)),
	BASE_COLUMN("no_rate", share, count, "count by zero", .per = BASE_AT(zero)),
	BASE_COLUMN("speed", factor, speed, "how fast", .title = "speed", .width = 8, .rank = 5),
	BASE_COLUMN("yes", flag, yes, "whether", .title = "yes", .width = 5, .rank = 5),
	BASE_COLUMN_OF("half", share, half, "of the share, and all's"),
	BASE_COLUMN_OF("doubled", count, doubled, "twice"),
	BASE_COLUMN_OF("is_many", flag, is_many, "more than one"),
	BASE_COLUMN_OF("word", text, word, "always the same"),
	BASE_COLUMN_OF("numbers", json, numbers, "two", .kind = "[int]"),
	BASE_COLUMN("needed", count, count, "where bit 2 is set", .needs = 2, .title = "needed",
		.width = 9, .rank = 1),
	BASE_COLUMN("inside", object, use, "an object", .rows = &inner_table),
	BASE_COLUMN("items", list, item, "behind a pointer", .rows = &item_table,
		.nr = BASE_AT(nr_items)),
	BASE_COLUMN(
		"pair", array, pair, "in the row", .rows = &item_table, .nr = BASE_AT(nr_items)),
	BASE_COLUMN("behind", object, behind, "by a pointer", .rows = &inner_table,
		.is_behind = true, .absence = BASE_NULL, .unless = BASE_AT(zero)),
	BASE_PART(use, inner_table),
	BASE_PART_SELF(extra_table, .unless = BASE_AT(zero), .when = BASE_AT(yes)),
	{.title = "own", .width = 9, .cell = cell_own, .left = true},
};
static const struct base_table table = BASE_DOCUMENT("test/1", columns, "`a test`");
#undef ROW

static struct item items[] = {{"a"}, {"b\033"}};
static struct row known_row(void)
{
	static const struct inner nothing;
	static char own[] = "mine";
	return (struct row){.name = "row",
		.behind = &nothing,
		.letters = "abc",
		.own = own,
		.text = "a\nb\033",
		.empty = "",
		.count = 1234,
		.big = UINT64_MAX,
		.time_ns = 1500,
		.small = 100,
		.negative = -3,
		.share = 0.1234567,
		.unknown = NAN,
		.length_ns = 2.5,
		.speed = 1.5,
		.yes = true,
		.use = {.nr = 3, .total_ns = 1000},
		.item = items,
		.pair = {{"c"}, {"d"}},
		.nr_items = 2};
}
static const double all = 0.25;

static void test_values(void **state)
{
	struct row r = known_row();
	static const char text[] =
		"{\"name\": \"row\", \"none\": null, \"letters\": \"abc\", \"own\": \"mine\", "
		"\"count\": 1234, \"zero\": 0,"
		" \"big\": 9223372036854775807, \"small\": 100, \"negative\": -3, \"time_ns\": "
		"1500, \"share\": 0.123457,"
		" \"unknown\": null, \"length_ns\": 3, \"rate\": 12.34, \"no_rate\": 0.0, "
		"\"speed\": 1.5, \"yes\": true,"
		" \"half\": 0.311728, \"doubled\": 2468, \"is_many\": true, \"word\": \"a word\", "
		"\"numbers\": [1, 2],"
		" \"at\": \"0xffffffffffffffff\", \"all_digits\": 0.1234567, \"any_text\": "
		"\"a\\nb\\u001b\","
		" \"if_part\": 1234, \"needed\": 1234, \"inside\": {\"inner_count\": 3, "
		"\"total_ns\": 1000},"
		" \"items\": [{\"item\": \"a\"}, {\"item\": \"b?\"}], \"pair\": [{\"item\": "
		"\"c\"}, {\"item\": \"d\"}],"
		" \"behind\": {\"inner_count\": 0}, \"inner_count\": 3, \"total_ns\": 1000, "
		"\"extra\": 1234}";
	json_t *j = base_table_json(&table, &r, &all, 2), *want = json_loads(text, 0, NULL);
	(void)state;
	assert_non_null(want);
	assert_true(json_equal(j, want));
	json_decref(j);
	json_decref(want);
}

/* Every key is there but those that may not be. */
static void test_every_key_is_in_json(void **state)
{
	struct row r = known_row(), none = {.name = "", .text = "\xff"};
	json_t *j = base_table_json(&table, &r, &all, 2),
	       *nothing = base_table_json(&table, &none, &all, 0);
	(void)state;
	for (size_t i = 0; i < table.nr_columns; i++) {
		const struct base_column *c = &columns[i];
		if (!c->key)
			continue;
		assert_int_equal(!json_object_get(j, c->key), !strcmp(c->key, "if_empty"));
		assert_true(!json_object_get(nothing, c->key) ==
			    (c->needs != 0 || c->absence == BASE_OPTIONAL));
		assert_true(c->doc && *c->doc);
	}
	assert_null(json_object_get(nothing, "total_ns"));
	assert_null(json_object_get(nothing, "extra"));
	assert_true(json_is_null(json_object_get(nothing, "behind")));
	assert_string_equal(
		json_string_value(json_object_get(nothing, "any_text")), "\xef\xbf\xbd");
	assert_true(json_is_null(json_object_get(nothing, "none")));
	json_decref(j);
	json_decref(nothing);
}

static void test_line(void **state)
{
	struct row r = known_row();
	struct base_layout l = {.table = &table, .all = &all, .has = 2, .rank_max = 9};
	struct base_str s = {0};
	(void)state;
	base_layout_titles(&s, &l);
	assert_string_equal(base_str_text(&s), "   count zero   time and share   ?   speed  yes   "
					       "needed     n      mean  own    ");
	assert_int_equal(s.length, base_layout_width(&l));
	base_str_reset(&s);
	base_layout_cells(&s, &l, &r);
	assert_string_equal(base_str_text(&s), "   1,234    -   1.50 us  ~12 %   -   1.50x  yes    "
					       "1,234     3    333 ns  <row2> ");
	assert_int_equal(s.length, base_layout_width(&l));
	l.utf8 = true;
	l.has = 0;
	r.use = (struct inner){0};
	r.yes = false;
	base_str_reset(&s);
	base_layout_cells(&s, &l, &r);
	assert_string_equal(base_str_text(&s),
		"   1,234    -   1.50 us   12 %   -   1.50\xc3\x97    -     0         -  <row0> ");
	assert_int_equal(base_text_width(base_str_text(&s)), base_layout_width(&l));
	r.count = 123456789; /* what is too wide moves the rest, and touches nothing */
	r.time_ns = 0;
	r.use.nr = 12345; /* as wide as its column */
	base_str_reset(&s);
	base_layout_cells(&s, &l, &r);
	assert_memory_equal(base_str_text(&s), " 123,456,789    -      0 ns", 27);
	assert_non_null(strstr(base_str_text(&s), "- 12,345 "));
	base_str_fini(&s);
}

/* The narrower the line, the fewer columns; the name has what it wants while there are any. */
static void test_ranks(void **state)
{
	struct base_layout l = {.table = &table, .all = &all, .has = 2}, before = {0};
	static const struct {
		size_t line, width, name;
		unsigned rank_max;
	} known[] = {/* In all 81; without rank 5 68; without 4 59; without 3 49; without 2 43. */
		{120, 81, 39, 5}, {111, 81, 30, 5}, {110, 68, 40, 4}, {98, 68, 30, 4},
		{97, 59, 38, 3}, {80, 49, 31, 2}, {79, 49, 30, 2}, {78, 43, 35, 1}, {60, 43, 17, 1},
		{20, 43, 10, 1}};
	(void)state;
	for (size_t i = 0; i < BASE_COUNT(known); i++) {
		base_layout_fit(&l, known[i].line, 40, 30, 10);
		assert_int_equal(base_layout_width(&l), known[i].width);
		assert_int_equal(l.name_width, known[i].name);
		assert_int_equal(l.rank_max, known[i].rank_max);
	}
	for (size_t line = 0; line < 200; line++) {
		base_layout_fit(&l, line, 40, 30, 10);
		assert_true(l.rank_max >= before.rank_max);
		assert_true(l.rank_max == 1 || l.name_width >= 30);
		before = l;
	}
	base_layout_fit(&l, 200, 5, 30, 10); /* no name is so long */
	assert_int_equal(l.name_width, 10);
}

static void test_page(void **state)
{
	struct base_str s = {0};
	(void)state;
	base_str_add(&s, "text\n");
	base_table_page(&s, &table);
	base_table_page(&s, &table); /* it is there */
	static const char *const has[] = {"text\n\n## test/1\n\n`a test`\n\n| key | type | |\n",
		"| `none` | string or null | no text |\n", "| `zero` | int | nothing |\n",
		"| `needed` ? | int | where bit 2 is set |\n", "| `share` | real | part |\n",
		"| `inside` | inner | an object |\n", "| `items` | [item] | behind a pointer |\n",
		"| `extra` ? | int | more |\n", "| `behind` | inner or null | by a pointer |\n",
		"| `numbers` | [int] | two |\n", "| `yes` | bool | whether |\n",
		"| `inner_count` | int | how many |\n| `total_ns` ? | int | in all |\n",
		"\n### item\n\n| key | type | |\n|---|---|---|\n| `item` | string | its name |\n"};
	for (size_t i = 0; i < BASE_COUNT(has); i++)
		assert_non_null(strstr(base_str_text(&s), has[i]));
	static const char *const once[] = {"\n## test/1\n", "\n### item\n", "\n### inner\n"};
	for (size_t i = 0; i < BASE_COUNT(once); i++)
		assert_null(strstr(strstr(base_str_text(&s), once[i]) + 1, once[i]));
	assert_null(strstr(base_str_text(&s), "mean"));
	base_str_fini(&s);
}

static void test_shares(void **state)
{
	static const struct {
		double share;
		const char *text;
	} known[] = {{0, "0 %"}, {-1, "0 %"}, {1, "100 %"}, {0.0995, "10 %"}, {0.0994, "9.9 %"},
		{0.001, "0.1 %"}, {0.0009, "<0.1 %"}};
	(void)state;
	for (size_t i = 0; i < BASE_COUNT(known); i++) {
		struct base_str s = {0};
		base_str_add_share(&s, known[i].share);
		assert_string_equal(base_str_text(&s), known[i].text);
		base_str_fini(&s);
	}
}

static void test_survives_lack_of_memory(void **state)
{
	struct row r = known_row();
	struct base_layout l = {.table = &table, .all = &all, .has = 2, .rank_max = 9};
	(void)state;
	for (unsigned n = 1;; n++) {
		struct base_str s = {0};
		assert_true(n < 10000);
		base_alloc_fail_nth(n);
		base_layout_titles(&s, &l);
		base_layout_cells(&s, &l, &r);
		base_table_page(&s, &table);
		json_t *j = base_table_json(&table, &r, &all, 2);
		base_alloc_fail_nth(0);
		bool ok = !s.failed && j;
		base_str_fini(&s);
		json_decref(j);
		if (ok)
			break;
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_values),
		cmocka_unit_test(test_every_key_is_in_json),
		cmocka_unit_test(test_line),
		cmocka_unit_test(test_ranks),
		cmocka_unit_test(test_page),
		cmocka_unit_test(test_shares),
		cmocka_unit_test(test_survives_lack_of_memory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
