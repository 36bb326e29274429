/* SPDX-License-Identifier: Apache-2.0 */
/* test_symbol.c - this very program's functions, lines and variables; and those of a
 * stripped copy. */
#include "symbol/symbol.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <inttypes.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int known_variable[16] = {1};
uintptr_t known_function(void);

static uintptr_t here(void) __attribute__((noinline));
static uintptr_t here(void)
{
	return (uintptr_t)__builtin_return_address(0);
}

enum { KNOWN_LINE = __LINE__ + 4 };
__attribute__((noinline)) uintptr_t known_function(void)
{
	known_variable[1]++;
	uintptr_t address = here();
	known_variable[2]++;
	return address;
}

static int own_bias(struct dl_phdr_info *info, size_t size, void *bias)
{
	(void)size;
	memcpy(bias, &info->dlpi_addr, sizeof info->dlpi_addr);
	return 1; /* the program is the first */
}

static uintptr_t bias(void)
{
	uintptr_t b = 0;
	dl_iterate_phdr(own_bias, &b);
	return b;
}

static void test_function_and_line(void **state)
{
	struct symbol_found found;
	struct symbol_file *s = symbol_open("/proc/self/exe", "");
	(void)state;
	assert_non_null(s);
	assert_true(symbol_code(s, known_function() - bias() - 1, &found));
	assert_string_equal(found.function, "known_function");
	assert_true(found.exact);
	assert_int_equal(found.function_offset, (uintptr_t)known_function - bias());
	assert_non_null(found.file);
	assert_non_null(strstr(found.file, "test_symbol.c"));
	assert_int_equal(found.line, KNOWN_LINE);
	symbol_close(s);
}

static void test_variables(void **state)
{
	struct base_str name = {0};
	struct symbol_file *s = symbol_open("/proc/self/exe", "");
	(void)state;
	assert_true(symbol_data(s, (uintptr_t)known_variable - bias(), &name));
	assert_string_equal(base_str_text(&name), "known_variable");
	base_str_reset(&name);
	assert_true(symbol_data(s, (uintptr_t)&known_variable[10] - bias(), &name));
	assert_string_equal(base_str_text(&name), "known_variable+0x28");
	base_str_reset(&name);
	assert_false(symbol_data(s, (uintptr_t)known_function - bias(), &name));
	base_str_fini(&name);
	symbol_close(s);
}

static void test_other_builds_are_refused(void **state)
{
	(void)state;
	assert_null(symbol_open("/proc/self/exe", "0123456789abcdef"));
	assert_null(symbol_open("/dev/null", ""));
	assert_null(symbol_open("/nonexistent", ""));
}

static void test_bias_of_a_mapping(void **state)
{
	char line[1024], path[512], build_id[SYMBOL_BUILD_ID_TEXT] = "", perms[8];
	uint64_t start, end, offset, found = 1;
	FILE *f = fopen("/proc/self/maps", "r");
	bool seen = false;
	(void)state;
	while (fgets(line, sizeof line, f) && !seen)
		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s %" SCNx64 " %*s %*s %511s", &start,
			    &end, perms, &offset, path) == 5 &&
			start <= (uintptr_t)known_function && (uintptr_t)known_function < end) {
			assert_true(symbol_elf_bias(path, start, offset, &found, build_id));
			seen = true;
		}
	fclose(f);
	assert_true(seen);
	assert_int_equal(found, bias());
}

/* Without names a function is called by where it starts, wherever in it one asks. */
static void test_stripped(void **state)
{
	char path[] = "/tmp/longpole-strip-XXXXXX", command[200], expect[64];
	struct symbol_found found;
	(void)state;
	int fd = mkstemp(path);
	assert_true(fd >= 0);
	close(fd);
	snprintf(command, sizeof command,
		"strip --strip-all -R .gnu_debuglink -o %s /proc/%d/exe 2>/dev/null", path,
		(int)getpid());
	if (system(command)) {
		unlink(path);
		skip();
	}
	struct symbol_file *s = symbol_open(path, "");
	assert_non_null(s);
	uint64_t start = (uintptr_t)known_function - bias();
	snprintf(expect, sizeof expect, "%s+0x%" PRIx64, strrchr(path, '/') + 1, start);
	const uint64_t asked[] = {start, start + 4, known_function() - bias() - 1};
	for (size_t i = 0; i < BASE_COUNT(asked); i++) {
		assert_true(symbol_code(s, asked[i], &found));
		/* -rdynamic builds (sanitizers) keep the name in .dynsym */
		if (!found.exact)
			assert_string_equal(found.function, expect);
		assert_int_equal(found.function_offset, start);
		assert_null(found.file);
	}
	symbol_close(s);
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_function_and_line),
		cmocka_unit_test(test_variables),
		cmocka_unit_test(test_other_builds_are_refused),
		cmocka_unit_test(test_bias_of_a_mapping),
		cmocka_unit_test(test_stripped),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
