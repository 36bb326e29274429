/* SPDX-License-Identifier: Apache-2.0 */
/* qemu.c - where QEMU, its plugin and the other processor's libraries are. */
#include "session/qemu.h"
#include "os/launch.h"

#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct machine {
	unsigned number; /* e_machine */
	unsigned char data;
	const char *name; /* QEMU's */
} machines[] = {
	{EM_AARCH64, ELFDATA2LSB, "aarch64"},
	{EM_RISCV, ELFDATA2LSB, "riscv64"},
};

static const struct machine *machine_of(const char *path)
{
	Elf64_Ehdr h;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd >= 0 ? pread(fd, &h, sizeof h, 0) : 0;
	if (fd >= 0)
		close(fd);
	if (n != (ssize_t)sizeof h || memcmp(h.e_ident, ELFMAG, SELFMAG) != 0 ||
		h.e_ident[EI_CLASS] != ELFCLASS64)
		return NULL;
	for (size_t i = 0; i < BASE_COUNT(machines); i++)
		if (machines[i].number == h.e_machine && machines[i].data == h.e_ident[EI_DATA])
			return &machines[i];
	return NULL;
}

bool session_qemu_knows(const char *name)
{
	char path[PATH_MAX];
	int exit_code;
	return os_find_program(name, path, &exit_code, NULL) == BASE_OK && machine_of(path);
}

void session_qemu_installed(struct base_str *ret)
{
	char name[32], path[PATH_MAX];
	int exit_code;
	if (os_find_preload(OS_LIBRARY_QEMU, path, NULL) != BASE_OK)
		return;
	for (size_t i = 0; i < BASE_COUNT(machines); i++) {
		snprintf(name, sizeof name, "qemu-%s", machines[i].name);
		if (os_find_program(name, path, &exit_code, NULL) == BASE_OK)
			base_str_addf(ret, "%s%s", ret->length ? " " : "", name);
	}
}

/* In an option of QEMU's a comma is two. */
static void qemu_add_path(struct base_str *s, const char *path)
{
	for (; *path; path++)
		base_str_addf(s, *path == ',' ? "%c%c" : "%c", *path, *path);
}

static enum base_status plugin_option(
	struct session_qemu *q, const char *ring_path, struct base_err *err)
{
	char library[PATH_MAX];
	struct base_str s = {0};
	enum base_status status = os_find_preload(OS_LIBRARY_QEMU, library, err);
	if (status != BASE_OK)
		return status;
	qemu_add_path(&s, library);
	base_str_add(&s, ",ring=");
	qemu_add_path(&s, ring_path);
	if (s.failed || s.length >= sizeof q->plugin)
		status = base_fail(err, BASE_ERR_NOMEM, "no room for the option of a plugin");
	else
		memcpy(q->plugin, base_str_text(&s), s.length + 1);
	base_str_fini(&s);
	return status;
}

enum base_status session_qemu_ready(struct session_qemu *q, const char *ring_path, const char *path,
	char *const *argv, struct base_err *err)
{
	const struct machine *m = machine_of(path);
	char name[32];
	size_t nr = 0, to = 0;
	int exit_code;
	if (!m)
		return base_fail(err, BASE_ERR_ENV,
			"--recorder=qemu: %s is not a 64-bit ARM or RISC-V program (of this "
			"machine's programs take --recorder=valgrind, or build with longpole cc)",
			path);
	snprintf(name, sizeof name, "qemu-%s", m->name);
	if (os_find_program(name, q->emulator, &exit_code, NULL) != BASE_OK)
		return base_fail(err, BASE_ERR_ENV,
			"--recorder=qemu: %s is not installed (Debian: qemu-user)", name);
	enum base_status status = plugin_option(q, ring_path, err);
	if (status != BASE_OK)
		return status;
	while (argv[nr])
		nr++;
	q->argv = base_alloc((nr + 9) * sizeof *q->argv);
	if (!q->argv)
		return base_fail(err, BASE_ERR_NOMEM, "no memory for a command");
	q->argv[to++] = q->emulator;
	/* Where Debian's cross packages have that processor's libraries. */
	snprintf(q->prefix, sizeof q->prefix, "/usr/%s-linux-gnu", m->name);
	if (!getenv("QEMU_LD_PREFIX") && !access(q->prefix, X_OK)) {
		q->argv[to++] = (char *)(uintptr_t) "-L";
		q->argv[to++] = q->prefix;
	}
	q->argv[to++] = (char *)(uintptr_t) "-plugin";
	q->argv[to++] = q->plugin;
	q->argv[to++] = (char *)(uintptr_t) "-0";
	q->argv[to++] = argv[0];
	q->argv[to++] = (char *)(uintptr_t)path;
	memcpy(q->argv + to, argv + 1, nr * sizeof *q->argv);
	return BASE_OK;
}

void session_qemu_done(struct session_qemu *q)
{
	base_free(q->argv);
	*q = (struct session_qemu){0};
}
