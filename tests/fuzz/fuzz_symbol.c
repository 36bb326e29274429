/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_symbol.c - any bytes as an ELF file with DWARF, and, behind the length that the first four
 * bytes are, as the debug file that it links to ("input.debug" beside it). Every question has an
 * answer, or none.
 */
#include "symbol/symbol.h"

#include <stdio.h>
#include <string.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <stdlib.h>
#include <unistd.h>

enum { BYTES_MAX = 1 << 16, OFFSETS = 24, FRAMES = 8 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes);

/* A directory in memory, of this process; made once. */
static const char *directory(void)
{
	static char path[64];
	if (!*path) {
		snprintf(path, sizeof path, "/dev/shm/longpole-fuzz-symbol-%d", (int)getpid());
		if (mkdir(path, 0700))
			return NULL;
	}
	return path;
}

static bool put(const char *path, const uint8_t *bytes, size_t nr)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	bool good = fd >= 0 && write(fd, bytes, nr) == (ssize_t)nr;
	if (fd >= 0)
		close(fd);
	return good;
}

static void ask(struct symbol_file *f, uint64_t offset)
{
	struct symbol_found found;
	struct symbol_frame frame[FRAMES];
	struct symbol_variable variable;
	struct symbol_type type;
	struct base_str name = {0};
	struct symbol_holder holder = {.kind = SYMBOL_IN_REGISTER, .value = offset % 17};
	if (symbol_code(f, offset, &found))
		BASE_ASSERT(found.function != NULL);
	BASE_ASSERT(symbol_why(f) < SYMBOL_WHY_NR);
	size_t nr = symbol_frames(f, offset, frame, FRAMES);
	BASE_ASSERT(nr <= FRAMES);
	(void)symbol_data(f, offset, &name);
	if (symbol_variable(f, offset, &variable))
		BASE_ASSERT(variable.name && variable.offset + variable.size_bytes > offset);
	(void)symbol_section(f, offset, &variable);
	if (symbol_pointee(f, offset, &holder, &type))
		symbol_type_member(f, &type, offset % 64, &name);
	base_str_fini(&name);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes)
{
	char path[128], debug[136];
	const char *dir = directory();
	uint32_t first = 0;
	enum symbol_why why;
	if (!dir || size_bytes < sizeof first || size_bytes > BYTES_MAX)
		return 0;
	memcpy(&first, data, sizeof first);
	data += sizeof first;
	size_bytes -= sizeof first;
	first = first < size_bytes ? first : (uint32_t)size_bytes;
	snprintf(path, sizeof path, "%s/input", dir);
	snprintf(debug, sizeof debug, "%s.debug", path);
	if (!put(path, data, first) || !put(debug, data + first, size_bytes - first))
		return 0;
	struct symbol_extent extent;
	(void)symbol_elf_extent(path, 0x400000, 0, &extent);
	struct symbol_file *f = symbol_open_with(path, "", NULL, &why);
	BASE_ASSERT(f || why != SYMBOL_WHY_none);
	for (size_t i = 0; f && i < OFFSETS; i++) /* sections of the seeds begin at whole KiB */
		ask(f, i < OFFSETS - 1 ? i / 6 * 0x1000 + i % 6 * 9 : UINT64_MAX);
	symbol_close(f);
	unlink(path);
	unlink(debug);
	return 0;
}
