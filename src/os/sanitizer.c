/* SPDX-License-Identifier: Apache-2.0 */
/* sanitizer.c - which sanitizer a program was built with, by its dynamic strings. */
#include "os/sanitizer.h"

#include "base/base.h"

#include <fcntl.h>
#include <gelf.h>
#include <libelf.h>
#include <string.h>
#include <unistd.h>

/* A function that the compiler calls, or the library that is needed; the first that is there. */
static const struct {
	const char *word;
	struct os_sanitizer is;
} words[] = {
	{"__asan_init", {"AddressSanitizer", true}},
	{"__tsan_init", {"ThreadSanitizer", false}},
	{"__msan_init", {"MemorySanitizer", false}},
	{"__lsan_init", {"LeakSanitizer", true}},
	{"liblsan.so", {"LeakSanitizer", true}},
	{"__lsan_do_leak_check", {"LeakSanitizer", true}},
	{"__ubsan_handle_", {"UndefinedBehaviorSanitizer", false}},
	{"libubsan.so", {"UndefinedBehaviorSanitizer", false}},
	{"__ubsan_default_options", {"UndefinedBehaviorSanitizer", false}},
};

static const struct os_sanitizer *sanitizer_in(const Elf_Data *strings)
{
	for (size_t i = 0; strings && strings->d_buf && i < BASE_COUNT(words); i++)
		if (memmem(strings->d_buf, strings->d_size, words[i].word, strlen(words[i].word)))
			return &words[i].is;
	return NULL;
}

const struct os_sanitizer *os_sanitizer_of(const char *path)
{
	const struct os_sanitizer *found = NULL;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return NULL;
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
	close(fd);
	return found;
}
