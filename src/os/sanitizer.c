/* SPDX-License-Identifier: Apache-2.0 */
/* sanitizer.c - which sanitizer a program was built with, by its dynamic strings. */
#include "os/sanitizer.h"
#include "os/launch.h"

#include "base/base.h"

#include <fcntl.h>
#include <gelf.h>
#include <libelf.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

static const struct {
	const char *word;
	struct os_sanitizer is;
} words[] = {
#define SANITIZER(word, name, no_ptrace) {word, {name, no_ptrace}},
#include "ring/sanitizer.def"
};

static const struct os_sanitizer *sanitizer_in(const Elf_Data *strings)
{
	for (size_t i = 0; strings && strings->d_buf && i < BASE_COUNT(words); i++)
		if (memmem(strings->d_buf, strings->d_size, words[i].word, strlen(words[i].word)))
			return &words[i].is;
	return NULL;
}

static const struct os_sanitizer *sanitizer_of_file(int fd)
{
	const struct os_sanitizer *found = NULL;
	elf_version(EV_CURRENT);
	Elf *elf = elf_begin(fd, ELF_C_READ, NULL);
	for (Elf_Scn *section = NULL; elf && !found && (section = elf_nextscn(elf, section));) {
		GElf_Shdr head;
		if (!gelf_getshdr(section, &head) || head.sh_type != SHT_DYNSYM)
			continue;
		Elf_Scn *names = elf_getscn(elf, head.sh_link);
		found = names ? sanitizer_in(elf_getdata(names, NULL)) : NULL;
	}
	elf_end(elf);
	return found;
}

const struct os_sanitizer *os_sanitizer_of(const char *path)
{
	enum { SCRIPTS_MAX = 4, HEAD_BYTES = 256 }; /* the kernel's */
	const struct os_sanitizer *found = NULL;
	char interpreter[PATH_MAX], head[HEAD_BYTES + 1];
	for (int i = 0; path && i < SCRIPTS_MAX; i++) {
		int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
		if (fd < 0)
			return NULL;
		ssize_t n = pread(fd, head, HEAD_BYTES, 0);
		path = os_interpreter_of(head, n, interpreter) ? interpreter : NULL;
		if (!path)
			found = sanitizer_of_file(fd);
		close(fd);
	}
	return found;
}
