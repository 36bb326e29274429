/* SPDX-License-Identifier: Apache-2.0 */
/* test_symbol.c - this very program's functions, lines and variables; and those of a
 * stripped copy. */
#include "symbol/symbol.h"
#include "test.h"

#include <dlfcn.h>
#include <elfutils/libdwfl.h>
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
	assert_string_equal(base_str_text(&name), "known_variable[0]");
	base_str_reset(&name);
	assert_true(symbol_data(s, (uintptr_t)&known_variable[10] - bias(), &name));
	assert_string_equal(base_str_text(&name), "known_variable[10]");
	base_str_reset(&name);
	assert_false(symbol_data(s, (uintptr_t)known_function - bias(), &name));
	base_str_fini(&name);
	symbol_close(s);
}

/* ---- members: what C says where they are ----------------------------------------------------- */

struct point {
	double x, y;
};
static struct shapes {
	long hits;
	struct {
		int unnamed;
	};
	union {
		struct point centre;
		char bytes[64];
	};
	union {
		float number;
		int bits;
	} word;
	struct point corner[3][2];
	unsigned open : 3, closed : 5, wide : 9;
	struct point *next;
	struct {
		long __value[2];
	} lock;
	short last; /* six bytes that are nobody's follow */
} known_shapes[4] = {{.hits = 1}};

static void test_members(void **state)
{
	static struct {
		size_t offset;
		const char *name;
	} expect[] = {
		{0, "[0].hits"},
		{3, "[0].hits+0x3"},
		{2 * sizeof(struct shapes), "[2].hits"},
		{offsetof(struct shapes, unnamed), "[0].unnamed"},
		{offsetof(struct shapes, centre.y), "[0].centre.y"},
		{offsetof(struct shapes, bytes[40]), "[0].bytes[40]"},
		{offsetof(struct shapes, word), "[0].word.{number|bits}"},
		{offsetof(struct shapes, word) + 1, "[0].word.{number|bits}+0x1"},
		{offsetof(struct shapes, corner[2][1].y), "[0].corner[2][1].y"},
		{offsetof(struct shapes, corner) + sizeof known_shapes->corner,
			"[0].{open|closed}"},
		{offsetof(struct shapes, corner) + sizeof known_shapes->corner + 1, "[0].wide"},
		{offsetof(struct shapes, next), "[0].next"},
		{offsetof(struct shapes, lock), "[0].lock"},
		{offsetof(struct shapes, lock) + 8, "[0].lock+0x8"},
		{offsetof(struct shapes, last) + 2, "[0]+0xda"},
		{3 * sizeof(struct shapes) + offsetof(struct shapes, last), "[3].last"},
	};
	struct symbol_file *s = symbol_open("/proc/self/exe", "");
	struct base_str name = {0}, want = {0};
	(void)state;
	assert_int_equal(offsetof(struct shapes, last) + 2, 0xda);
	for (size_t i = 0; i < BASE_COUNT(expect); i++) {
		base_str_reset(&name);
		base_str_reset(&want);
		base_str_addf(&want, "known_shapes%s", expect[i].name);
		assert_true(
			symbol_data(s, (uintptr_t)known_shapes - bias() + expect[i].offset, &name));
		assert_string_equal(base_str_text(&name), base_str_text(&want));
	}
	base_str_fini(&name);
	base_str_fini(&want);
	symbol_close(s);
}

static void test_sections(void **state)
{
	static int zero[4];
	struct symbol_variable v, first;
	struct symbol_file *s = symbol_open("/proc/self/exe", "");
	uint64_t at = (uintptr_t)known_variable - bias();
	(void)state;
	assert_true(symbol_section(s, at, &v));
	assert_string_equal(v.name, ".data");
	assert_true(v.offset <= at && at + sizeof known_variable <= v.offset + v.size_bytes);
	assert_true(symbol_section(s, (uintptr_t)&zero[known_variable[1] & 3] - bias(), &v));
	assert_string_equal(v.name, ".bss");
	assert_true(symbol_section(s, 0, &first)); /* the next one */
	assert_true(first.offset > 0 && first.offset < v.offset);
	assert_false(symbol_section(s, UINT64_MAX, &v));
	symbol_close(s);
}

static void test_other_builds_are_refused(void **state)
{
	(void)state;
	assert_null(symbol_open("/proc/self/exe", "0123456789abcdef"));
	assert_null(symbol_open("/dev/null", ""));
	assert_null(symbol_open("/nonexistent", ""));
}

static int in_data = 1;

static void test_bias_of_a_mapping(void **state)
{
	char line[1024], path[512], perms[8];
	uint64_t start, end, offset;
	struct symbol_extent found;
	FILE *f = fopen("/proc/self/maps", "r");
	bool seen = false;
	(void)state;
	while (fgets(line, sizeof line, f) && !seen)
		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s %" SCNx64 " %*s %*s %511s", &start,
			    &end, perms, &offset, path) == 5 &&
			start <= (uintptr_t)known_function && (uintptr_t)known_function < end) {
			assert_true(symbol_elf_extent(path, start, offset, &found));
			seen = true;
		}
	fclose(f);
	assert_true(seen);
	assert_int_equal(found.bias, bias());
	/* Data, too, though the code's mapping was asked about. */
	assert_true(found.start <= start && found.end >= end);
	assert_in_range((uintptr_t)&in_data, found.start, found.end - 1);
	assert_false(found.copy);
	/* What begins within the segment, wherever that is, has the same bias less its place. */
	struct symbol_extent part;
	assert_true(end - start > 4096);
	assert_true(symbol_elf_extent(path, start + 4096, offset + 4096, &part));
	assert_true(part.copy);
	assert_int_equal(part.bias, bias());
}

/* ---- inlined frames -------------------------------------------------------------------------- */

enum { INNER_LINE = __LINE__ + 4 };
static inline __attribute__((always_inline)) uintptr_t inner(void)
{
	known_variable[3]++;
	uintptr_t address = here();
	known_variable[4]++;
	return address;
}
enum { MIDDLE_LINE = __LINE__ + 4 };
static inline __attribute__((always_inline)) uintptr_t middle(void)
{
	known_variable[5]++;
	uintptr_t address = inner();
	known_variable[6]++;
	return address;
}
enum { OUTER_LINE = __LINE__ + 4 };
__attribute__((noinline)) uintptr_t outer(void);
uintptr_t outer(void)
{
	uintptr_t address = middle();
	known_variable[7]++;
	return address;
}

static void test_inlined_frames(void **state)
{
	static const struct {
		const char *function;
		uint64_t line;
		bool inlined;
	} expect[] = {{"inner", INNER_LINE, true}, {"middle", MIDDLE_LINE, true},
		{"outer", OUTER_LINE, false}};
	struct symbol_frame frame[8];
	struct symbol_file *s = symbol_open("/proc/self/exe", "");
	(void)state;
	assert_int_equal(symbol_frames(s, outer() - bias() - 1, frame, BASE_COUNT(frame)), 3);
	assert_int_equal(symbol_why(s), SYMBOL_WHY_none);
	for (size_t i = 0; i < 3; i++) {
		assert_string_equal(frame[i].function, expect[i].function);
		assert_non_null(strstr(frame[i].file, "test_symbol.c"));
		assert_int_equal(frame[i].line, expect[i].line);
		assert_int_equal(frame[i].inlined, expect[i].inlined);
	}
	/* A function that nothing is inlined into; room for one frame only. */
	assert_int_equal(symbol_frames(s, known_function() - bias() - 1, frame, 8), 1);
	assert_string_equal(frame[0].function, "known_function");
	assert_int_equal(symbol_frames(s, outer() - bias() - 1, frame, 1), 1);
	assert_string_equal(frame[0].function, "outer");
	symbol_close(s);
}

/* ---- C++ names ------------------------------------------------------------------------------- */

uintptr_t mangled(void) __asm__("_ZN5tents4pole4pushEiPKc");
__attribute__((noinline)) uintptr_t mangled(void)
{
	return here() + (uintptr_t)(known_variable[8]++ < 0);
}

static void test_demangled(void **state)
{
	struct symbol_found found;
	struct symbol_file *s = symbol_open("/proc/self/exe", "");
	(void)state;
	uint64_t at = mangled() - bias() - 1;
	assert_true(symbol_code(s, at, &found));
	assert_string_equal(found.function, "tents::pole::push(int, char const*)");
	assert_int_equal(found.function_offset, (uintptr_t)mangled - bias());
	symbol_close(s);
}

/* Both ways in which rustc writes names (RFC 2603's example of the new one), and what compilers add. */
static void test_names_as_one_reads_them(void **state)
{
	static const struct {
		const char *mangled, *readable;
	} name[] = {
		{"_ZN3std6thread4park17h994df55765ebabf3E", "std::thread::park"},
		{"_RNvMNtNtNtNtCsjrHSEGnQ3l9_3std3sys4sync5mutex5futexNtB2_5Mutex14lock_contended",
			"<std::sys::sync::mutex::futex::Mutex>::lock_contended"},
		{"_RNvNtCs1234_7mycrate3foo3bar", "mycrate::foo::bar"},
		{"_Remove", "_Remove"},
		{"read@@GLIBC_2.2.5", "read"},
		{"work.constprop.0", "work"},
		{"work.part.0.isra.12.cold", "work"},
		{"_ZN5tents4pole4pushEiPKc.constprop.0", "tents::pole::push(int, char const*)"},
		{"_ZN3std6thread4park17h994df55765ebabf3E.llvm.123456", "std::thread::park"},
		{"main.partial.0", "main.partial.0"},
		{".part.0", ".part.0"},
		{"f.cold.fish", "f.cold.fish"},
	};
	(void)state;
	for (size_t i = 0; i < BASE_COUNT(name); i++) {
		char *text = symbol_readable(name[i].mangled);
		assert_string_equal(text, name[i].readable);
		free(text);
	}
}

/* ---- an independent reference: libdwfl's own search, symbol by symbol ------------------------ */

static void test_as_libdwfl_finds(void **state)
{
	static const Dwfl_Callbacks callbacks = {.find_elf = dwfl_build_id_find_elf,
		.find_debuginfo = dwfl_standard_find_debuginfo,
		.section_address = dwfl_offline_section_address};
	struct symbol_file *s = symbol_open("/proc/self/exe", "");
	Dwfl *dwfl = dwfl_begin(&callbacks);
	Dwfl_Module *module = dwfl_report_offline(dwfl, "self", "/proc/self/exe", -1);
	GElf_Addr shift;
	(void)state;
	dwfl_report_end(dwfl, NULL, NULL);
	assert_non_null(dwfl_module_getelf(module, &shift));
	uint64_t first = (uintptr_t)here - bias(), nr = 0, nr_lines = 0;
	for (uint64_t at = first; at < first + 8192; at += 7) {
		struct symbol_found found;
		GElf_Off in_symbol;
		GElf_Sym sym;
		const char *name = dwfl_module_addrinfo(
			module, at + shift, &in_symbol, &sym, NULL, NULL, NULL);
		if (!name || in_symbol >= sym.st_size)
			continue;
		assert_true(symbol_code(s, at, &found));
		assert_int_equal(found.function_offset, at - in_symbol);
		if (found.function[0] == name[0] && !strchr(name, '@') && name[0] != '_')
			assert_string_equal(found.function, name);
		Dwfl_Line *line = dwfl_module_getsrc(module, at + shift);
		int number = 0;
		const char *file =
			line ? dwfl_lineinfo(line, NULL, &number, NULL, NULL, NULL) : NULL;
		if (file) {
			assert_string_equal(found.file, file);
			assert_int_equal(found.line, number);
			nr_lines++;
		}
		nr++;
	}
	assert_true(nr > 500);
#ifndef __clang__ /* which writes no .debug_aranges: libdwfl finds no line */
	assert_true(nr_lines > 200);
#endif
	dwfl_end(dwfl);
	symbol_close(s);
}

/* ---- by build id ----------------------------------------------------------------------------- */

/* A stripped copy gets its names back from a debuginfod server; here a directory is one. */
static void test_fetched_by_build_id(void **state)
{
	char dir[] = "/tmp/longpole-fetch-XXXXXX", command[2048], path[128],
	     id[SYMBOL_BUILD_ID_TEXT];
	struct symbol_found found;
	struct symbol_extent self;
	enum symbol_why why;
	(void)state;
	assert_non_null(mkdtemp(dir));
	if (!symbol_elf_extent("/proc/self/exe", 0, 0, &self) || !*self.build_id ||
		access("/usr/bin/objcopy", X_OK))
		skip();
	snprintf(id, sizeof id, "%s", self.build_id);
	snprintf(command, sizeof command,
		"cd %s && mkdir -p buildid/%s cache && cp /proc/%d/exe whole && "
		"objcopy --only-keep-debug whole buildid/%s/debuginfo && "
		"objcopy --strip-all -R .gnu_debuglink whole stripped",
		dir, id, (int)getpid(), id);
	assert_int_equal(system(command), 0);
	snprintf(path, sizeof path, "%s/stripped", dir);
	uint64_t at = known_function() - bias() - 1;

	struct symbol_file *s = symbol_open_with(path, id, NULL, &why);
	assert_int_equal(why, SYMBOL_WHY_none);
	assert_true(symbol_code(s, at, &found));
	assert_null(found.file);
	assert_int_equal(symbol_why(s), found.exact ? SYMBOL_WHY_no_lines : SYMBOL_WHY_stripped);
	symbol_close(s);

	snprintf(command, sizeof command, "file://%s", dir);
	setenv("DEBUGINFOD_URLS", command, 1);
	snprintf(command, sizeof command, "%s/cache", dir);
	setenv("DEBUGINFOD_CACHE_PATH", command, 1);
	s = symbol_open_with(path, id,
		&(struct symbol_options){.size = sizeof(struct symbol_options), .fetch = true},
		&why);
	assert_true(symbol_code(s, at, &found));
	void *library = dlopen("libdebuginfod.so.1", RTLD_LAZY);
	if (library) {
		assert_string_equal(found.function, "known_function");
		assert_int_equal(found.line, KNOWN_LINE);
		dlclose(library);
	}
	symbol_close(s);
	unsetenv("DEBUGINFOD_URLS");
	snprintf(command, sizeof command, "rm -rf %s", dir);
	assert_int_equal(system(command), 0);
}

/* The debug file that a link names counts only when it is of this build. */
static void test_debug_link(void **state)
{
	static const struct {
		const char *make; /* what becomes of `debug` after the link to it was made */
		bool is_true;
	} cases[] = {
		{":", true},
		{"objcopy --remove-section .note.gnu.build-id debug", false}, /* the sum differs */
		{"cp /bin/true debug", false},
		{"printf x >debug", false},
		{"rm debug && mkfifo debug", false},
		{"rm debug && ln -s /dev/zero debug", false},
		{"rm debug && ln -s /dev/tty debug", false},
		{"rm debug && truncate -s 1T debug", false},
		/* (not summed, which would take half a minute: it is no ELF file) */
		{"rm debug && truncate -s 15G debug", false},
	};
	(void)state;
	if (access("/usr/bin/objcopy", X_OK))
		skip();
	uint64_t at = known_function() - bias() - 1;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char dir[] = "/tmp/longpole-link-XXXXXX", command[1024], path[128];
		struct symbol_found found = {0};
		enum symbol_why why;
		assert_non_null(mkdtemp(dir));
		snprintf(command, sizeof command,
			"cd %s && cp /proc/%d/exe whole && objcopy --only-keep-debug whole debug "
			"&& "
			"objcopy --strip-all --add-gnu-debuglink=debug whole stripped && rm whole "
			"&& "
			"{ %s; } 2>/dev/null",
			dir, (int)getpid(), cases[i].make);
		assert_int_equal(system(command), 0);
		snprintf(path, sizeof path, "%s/stripped", dir);
		struct symbol_file *f = symbol_open_with(path, "", NULL, &why);
		assert_non_null(f);
		assert_true(symbol_code(f, at, &found));
		assert_int_equal(found.file && found.line == KNOWN_LINE, cases[i].is_true);
		symbol_close(f);
		snprintf(command, sizeof command, "rm -rf %s", dir);
		assert_int_equal(system(command), 0);
	}
}

/* A file without a build id is known by its bytes: another one of that name gives no names. */
static void test_builds_without_an_id(void **state)
{
	static const struct {
		const char *change;
		bool is_same;
	} cases[] = {
		{":", true},
		{"touch -d 2001-01-01 file", true},
		{"cp file again && mv again file", true},
		{"printf x >>file", false},
		{"printf x | dd of=file bs=1 seek=5000 conv=notrunc status=none", false},
		{"cp /bin/true file", false},
		/* both ends of a large one */
		{"truncate -s 80M file", false},
		{"printf x | dd of=large bs=1 seek=83000000 conv=notrunc status=none; mv large "
		 "file",
			false},
	};
	(void)state;
	if (access("/usr/bin/objcopy", X_OK))
		skip();
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char dir[] = "/tmp/longpole-sum-XXXXXX", command[1024], path[128];
		char id[SYMBOL_BUILD_ID_TEXT];
		enum symbol_why why;
		assert_non_null(mkdtemp(dir));
		snprintf(command, sizeof command,
			"cd %s && objcopy --remove-section .note.gnu.build-id /proc/%d/exe file && "
			"cp file large && truncate -s 83000100 large && { [ %zu != 7 ] || "
			"cp large file; }",
			dir, (int)getpid(), i);
		assert_int_equal(system(command), 0);
		snprintf(path, sizeof path, "%s/file", dir);
		assert_true(symbol_build_of_file(path, id));
		assert_memory_equal(id, "crc32:", 6);
		snprintf(command, sizeof command, "cd %s && { %s; }", dir, cases[i].change);
		assert_int_equal(system(command), 0);
		struct symbol_file *f = symbol_open_with(path, id, NULL, &why);
		assert_int_equal(f != NULL, cases[i].is_same);
		assert_int_equal(why, cases[i].is_same ? SYMBOL_WHY_none : SYMBOL_WHY_other_build);
		symbol_close(f);
		snprintf(command, sizeof command, "rm -rf %s", dir);
		assert_int_equal(system(command), 0);
	}
	char id[SYMBOL_BUILD_ID_TEXT] = "x";
	assert_false(symbol_build_of_file("/dev/null", id));
	assert_string_equal(id, "");
}

/* The common file of dwz is a FIFO, or not there: fewer lines, no waiting. */
static void test_common_debug_file(void **state)
{
	static const char *const cases[] = {":", "rm common", "rm common && mkfifo common",
		"rm common && ln -s /dev/zero common", "printf x >common"};
	(void)state;
	if (access("/usr/bin/dwz", X_OK) || access("/usr/bin/gcc", X_OK))
		skip();
	for (size_t i = 0; i < 2 * (sizeof cases / sizeof *cases); i++) {
		char dir[] = "/tmp/longpole-dwz-XXXXXX", command[1024], path[128];
		struct symbol_found found = {0};
		uint64_t start = 0;
		const char *name = "common_to_both";
		assert_non_null(mkdtemp(dir));
		snprintf(command, sizeof command,
			"cd %s && printf 'struct rather_long_name { int a, b, c, d; };\n"
			"int common_to_both(struct rather_long_name *x)\n{\n return x->a + "
			"x->b;\n}\n"
			"int main(void)\n{ struct rather_long_name x = {0}; return "
			"common_to_both(&x);\n}\n' >a.c && "
			"gcc -g -O0 -rdynamic -o a a.c && cp a b && "
			"dwz -m common a b && { %s; }",
			dir, cases[i / 2]);
		assert_int_equal(system(command), 0);
		snprintf(path, sizeof path, "%s/a", dir);
		assert_true(symbol_elf_dynamic(path, &name, &start, 1));
		if (i % 2)
			setenv("DEBUGINFOD_URLS", "http://127.0.0.1:1/", 1);
		alarm(120);
		struct symbol_file *f = symbol_open_with(path, "",
			&(struct symbol_options){
				.size = sizeof(struct symbol_options), .fetch = true},
			NULL);
		assert_true(symbol_code(f, start + 8, &found));
		assert_string_equal(found.function, name);
		if (i < 2)
			assert_in_range(found.line, 2, 4);
		symbol_close(f);
		alarm(0);
		unsetenv("DEBUGINFOD_URLS");
		snprintf(command, sizeof command, "rm -rf %s", dir);
		assert_int_equal(system(command), 0);
	}
}

static void test_why(void **state)
{
	enum symbol_why why = SYMBOL_WHY_none;
	(void)state;
	assert_null(symbol_open_with("/nonexistent", "", NULL, &why));
	assert_int_equal(why, SYMBOL_WHY_no_file);
	assert_null(symbol_open_with("/proc/self/exe", "0123456789abcdef", NULL, &why));
	assert_int_equal(why, SYMBOL_WHY_other_build);
	assert_null(symbol_open_with("/dev/null", "", NULL, &why));
	assert_int_equal(why, SYMBOL_WHY_not_elf);
	for (unsigned i = 0; i < SYMBOL_WHY_NR; i++)
		assert_true(strlen(symbol_why_line((enum symbol_why)i)) > 5);
	struct symbol_file *s = symbol_open("/proc/self/exe", "");
	struct symbol_found found;
	assert_false(symbol_code(s, 1, &found));
	assert_int_not_equal(symbol_why(s), SYMBOL_WHY_none);
	symbol_close(s);
}

/* The n-th allocation fails: less is known, nothing breaks. */
static void test_no_memory(void **state)
{
	struct symbol_frame frame[8];
	uint64_t at = outer() - bias() - 1;
	bool whole = false;
	(void)state;
	for (uint64_t n = 1; !whole && n < 400; n++) {
		base_alloc_fail_nth(n);
		struct symbol_file *s = symbol_open("/proc/self/exe", "");
		size_t nr = s ? symbol_frames(s, at, frame, BASE_COUNT(frame)) : 0;
		whole = nr == 3 && frame[0].function && frame[1].function;
		if (s && nr < 3)
			assert_true(nr <= 1);
		symbol_close(s);
	}
	base_alloc_fail_nth(0);
	assert_true(whole);
}

/* Without names a function is called by where it starts, wherever in it one asks. */
static void test_stripped(void **state)
{
	char path[TEMPORARY_PATH], command[200], expect[64];
	struct symbol_found found;
	(void)state;
	temporary_file(path, NULL, 0);
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

/* A file's name and an address is no name; an operator, and what a library was called from, are. */
static void test_made_up(void **state)
{
	(void)state;
	static const struct {
		const char *name;
		size_t file_bytes;
	} given[] = {
		{"pigz+0x4a20", 4},
		{"libstdc++.so.6+0xd4490", 14},
		{"+0x12", 0},
		{"pigz+0x", 0},
		{"pigz+0x4a20 ", 0},
		{"operator+", 0},
		{"operator+(int)", 0},
		{"libz, called from inflate() < git+0x2949f0", 0},
		{"", 0},
	};
	for (size_t i = 0; i < BASE_COUNT(given); i++)
		assert_int_equal(symbol_made_up(given[i].name), given[i].file_bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_made_up),
		cmocka_unit_test(test_function_and_line),
		cmocka_unit_test(test_variables),
		cmocka_unit_test(test_members),
		cmocka_unit_test(test_sections),
		cmocka_unit_test(test_other_builds_are_refused),
		cmocka_unit_test(test_bias_of_a_mapping),
		cmocka_unit_test(test_inlined_frames),
		cmocka_unit_test(test_demangled),
		cmocka_unit_test(test_names_as_one_reads_them),
		cmocka_unit_test(test_as_libdwfl_finds),
		cmocka_unit_test(test_fetched_by_build_id),
		cmocka_unit_test(test_why),
		cmocka_unit_test(test_debug_link),
		cmocka_unit_test(test_builds_without_an_id),
		cmocka_unit_test(test_common_debug_file),
		cmocka_unit_test(test_no_memory),
		cmocka_unit_test(test_stripped),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
