/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_inject.c - what is read of a process before anything is done to it: the first byte says what the rest is. M: the text of
 * its mappings; P: its program; L: libc as it lies in its memory; S: a thread's stack; U: a file by whose .eh_frame that is unwound.
 */
#include "fuzz_file.h"
#include "inject/private.h"

#include <string.h>

enum {
	LIBC_AT = 4096,
	REGISTERS = SYMBOL_REGISTERS_NR,
	STEPS = 64,
	STACK_AT = 0x7f0000000000,
	CODE_STEPS = 32
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* libelf 0.188 forgets what it made of a section of names that is damaged (elf_strptr()). */
const char *__lsan_default_suppressions(void); /* NOLINT(bugprone-reserved-identifier) */
const char *__lsan_default_suppressions(void)
{
	return "leak:libelf.so\n";
}

static struct fuzz_file file = {.fd = -1};

static void read_maps(const uint8_t *data, size_t size)
{
	struct inject_memory m = {.fd = -1, .maps = base_alloc(size + 1)};
	uint64_t start = 0, end = 0;
	if (!m.maps)
		return;
	memcpy(m.maps, data, size);
	inject_find_libc(&m);
	BASE_ASSERT(!m.code || (m.libc && m.code < m.code_end));
	(void)inject_has_path(m.maps, "/libc.so.6");
	if (inject_region(&m, m.libc, &start, &end))
		BASE_ASSERT(start <= m.libc && m.libc < end);
	inject_memory_close(&m);
}

static void read_program(const uint8_t *data, size_t size)
{
	Elf64_Ehdr head;
	char loader[INJECT_LOADER_BYTES];
	if (fuzz_file_put(&file, data, size) && inject_read_program(file.fd, &head, loader))
		BASE_ASSERT(memchr(loader, '\0', sizeof loader));
}

static void read_libc(const uint8_t *data, size_t size)
{
	static const char *const name[] = {"pthread_create", "dlopen"};
	if (!fuzz_file_put(&file, NULL, 0) || pwrite(file.fd, data, size, LIBC_AT) != (ssize_t)size)
		return;
	const struct inject_memory m = {
		.fd = file.fd, .libc = LIBC_AT, .code = LIBC_AT, .code_end = LIBC_AT + size};
	for (size_t i = 0; i < BASE_COUNT(name); i++) {
		uint64_t at = inject_function(&m, name[i]);
		BASE_ASSERT(!at || (at >= m.code && at < m.code_end));
	}
}

/* What a signal interrupted is read in the same bytes. */
static void read_stack(const uint8_t *data, size_t size)
{
	uint64_t restorer = 0;
	struct inject_interrupted interrupted;
	if (!fuzz_file_put(&file, data, size))
		return;
	const struct inject_memory m = {.fd = file.fd, .code_end = size};
	if (size >= sizeof restorer)
		memcpy(&restorer, data, sizeof restorer);
	for (size_t i = 0; i < size; i += sizeof restorer)
		if (inject_is_frame(data + i, size - i, restorer, &interrupted))
			(void)inject_was_safe(&m, &interrupted);
}

/* Its registers, and its stack, are the file's last bytes. */
static void unwind(const uint8_t *data, size_t size)
{
	struct symbol_frame_state s = {.known = (1u << REGISTERS) - 1, .stack_begin = STACK_AT};
	struct symbol_unwinder *u = NULL;
	if (size < sizeof s.value || !fuzz_file_put(&file, data, size) ||
		!(u = symbol_unwinder_open(file.path)))
		return;
	for (uint64_t step = 0; step < CODE_STEPS; step++) {
		memcpy(s.value, data + size - sizeof s.value, sizeof s.value);
		s.value[SYMBOL_REGISTER_RIP] += step * 16;
		s.value[SYMBOL_REGISTER_RSP] = STACK_AT;
		s.stack = data;
		s.stack_bytes = size;
		for (unsigned i = 0;
			i < STEPS && symbol_unwinder_step(u, 0, &s) == SYMBOL_UNWOUND_caller; i++)
			continue;
	}
	symbol_unwinder_close(u);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct {
		char which;
		void (*reads)(const uint8_t *, size_t);
	} kind[] = {{'M', read_maps}, {'P', read_program}, {'L', read_libc}, {'S', read_stack},
		{'U', unwind}};
	for (size_t i = 0; size && i < BASE_COUNT(kind); i++)
		if (*data == (uint8_t)kind[i].which)
			kind[i].reads(data + 1, size - 1);
	return 0;
}
