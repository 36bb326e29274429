/* SPDX-License-Identifier: Apache-2.0 */
/* built.c - what a program's file says of how it was built. */
#include "os/built.h"
#include "memory/stream/stream.h"
#include "ring/memory_ring.h"
#include "ring/ring.h"

#include <fcntl.h>
#include <gelf.h>
#include <libelf.h>
#include <string.h>
#include <unistd.h>

enum { LEVEL_MAX = 3 };

/* The next note at *at, which goes on: an object's version and level. */
static bool built_next_note(Elf_Data *data, size_t *at, uint32_t value[static 2])
{
	enum { BYTES = 2 * sizeof *value };
	GElf_Nhdr note;
	size_t name, desc;
	while (data && (*at = gelf_getnote(data, *at, &note, &name, &desc)) > 0) {
		if (note.n_type != MEMORY_NOTE_TYPE || note.n_descsz != BYTES ||
			note.n_namesz != sizeof MEMORY_NOTE_NAME ||
			memcmp((const char *)data->d_buf + name, MEMORY_NOTE_NAME,
				sizeof MEMORY_NOTE_NAME) != 0)
			continue;
		memcpy(value, (const char *)data->d_buf + desc, BYTES);
		return true;
	}
	return false;
}

static unsigned built_level(Elf_Scn *section)
{
	Elf_Data *data = elf_getdata(section, NULL);
	unsigned level = 0;
	size_t at = 0;
	for (uint32_t value[2]; built_next_note(data, &at, value);)
		if (memory_stream_known(value[0]) && value[1] <= LEVEL_MAX &&
			(!level || value[1] < level))
			level = value[1];
	return level;
}

static unsigned built_newer(Elf_Scn *section)
{
	Elf_Data *data = elf_getdata(section, NULL);
	unsigned newest = 0;
	size_t at = 0;
	for (uint32_t value[2]; built_next_note(data, &at, value);)
		if (value[0] > MEMORY_STREAM_VERSION && value[0] > newest)
			newest = value[0];
	return newest;
}

/* What value() says of the section, 0 without one. */
static unsigned built_of_section(const char *path, const char *wanted, unsigned (*value)(Elf_Scn *))
{
	unsigned result = 0;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || elf_version(EV_CURRENT) == EV_NONE) {
		if (fd >= 0)
			close(fd);
		return 0;
	}
	Elf *elf = elf_begin(fd, ELF_C_READ, NULL);
	size_t names = 0;
	if (elf && !elf_getshdrstrndx(elf, &names)) {
		for (Elf_Scn *s = NULL; (s = elf_nextscn(elf, s));) {
			GElf_Shdr header;
			const char *name = gelf_getshdr(s, &header)
						   ? elf_strptr(elf, names, header.sh_name)
						   : NULL;
			if (name && !strcmp(name, wanted))
				result = value(s);
		}
	}
	if (elf)
		elf_end(elf);
	close(fd);
	return result;
}

unsigned os_built_level(const char *path)
{
	return built_of_section(path, MEMORY_NOTE_SECTION, built_level);
}

unsigned os_built_newer(const char *path)
{
	return built_of_section(path, MEMORY_NOTE_SECTION, built_newer);
}

static unsigned built_is_there(Elf_Scn *section)
{
	return section != NULL;
}

bool os_is_wrapped(const char *path)
{
	return built_of_section(path, PRELOAD_WRAP_SECTION, built_is_there) != 0;
}
