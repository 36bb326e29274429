/* SPDX-License-Identifier: Apache-2.0 */
/* launch.c - find, check and start the program. */
#include "os/launch.h"
#include "os/processor.h"
#include "base/installed.h"
#include "config.h"
#include "os/built.h"
#include "ring/memory_ring.h"
#include "ring/ring.h"
#include "ring/yield.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

enum { NR_PHDRS_MAX = 128, HEAD_BYTES = 256 };

/* What is loaded into programs, and where it lies in a build tree. */
static const struct {
	const char *name, *in_build;
} libraries[] = {
	{OS_LIBRARY_PRELOAD, "src/preload"},
	{OS_LIBRARY_HEAP, "src/preload"},
	{OS_LIBRARY_TALLY, "src/tally"},
	{OS_LIBRARY_CALLS, "src/tally"},
	{OS_LIBRARY_QEMU, "qemu"},
	{YIELD_LIBRARY, "src/spin"},
};

/* ---- the preload library --------------------------------------------------------------------- */

static bool launch_is_file(const char *path)
{
	struct stat st;
	return !stat(path, &st) && S_ISREG(st.st_mode) && !access(path, R_OK);
}

static bool launch_installed(const char *name, char found[PATH_MAX])
{
	for (size_t i = 0; i < BASE_COUNT(libraries); i++)
		if (!strcmp(name, libraries[i].name))
			return base_installed_file(libraries[i].in_build, name, found);
	return false;
}

enum base_status os_find_preload(const char *name, char ret_path[PATH_MAX], struct base_err *err)
{
	const char *wanted = getenv("LONGPOLE_PRELOAD");
	char found[PATH_MAX];
	if (wanted && *wanted && !strcmp(name, OS_LIBRARY_PRELOAD)) {
		if (!launch_is_file(wanted) || !realpath(wanted, ret_path))
			return base_fail_errno(err, ENOENT, "$LONGPOLE_PRELOAD: %s", wanted);
		return BASE_OK;
	}
	if (launch_installed(name, found) && realpath(found, ret_path))
		return BASE_OK;
	return base_fail_errno(err, ENOENT,
		"the library that records from inside the program, %s (set LONGPOLE_PRELOAD to it)",
		found);
}

/* 0: it says none, as those of old. */
static uint32_t ring_version_in(const uint8_t *file, size_t size_bytes)
{
	struct ring_tag tag = {.version = 0};
	const uint8_t *at = memmem(file, size_bytes, RING_TAG, sizeof tag.text);
	if (at && (size_t)(file + size_bytes - at) >= sizeof tag)
		memcpy(&tag, at, sizeof tag);
	return tag.version;
}

enum base_status os_check_preload(const char *path, struct base_err *err)
{
	struct stat st = {0};
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	void *file = MAP_FAILED;
	bool is_known = fd >= 0 && !fstat(fd, &st);
	if (is_known && st.st_size > 0)
		file = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	int why = is_known && !st.st_size ? EINVAL : errno;
	if (fd >= 0)
		close(fd);
	if (file == MAP_FAILED)
		return base_fail_errno(err, why, "%s", path);
	uint32_t version = ring_version_in(file, (size_t)st.st_size);
	munmap(file, (size_t)st.st_size);
	if (version == RING_VERSION)
		return BASE_OK;
	return base_fail(err, BASE_ERR_ENV,
		"%s is of %s longpole (its records are of version %u, this one's of %u): nothing "
		"in the program would be recorded. Install both together, or set LONGPOLE_PRELOAD "
		"to the library of this one",
		path, version < RING_VERSION ? "an older" : "a newer", version,
		(unsigned)RING_VERSION);
}

/* ---- the program ----------------------------------------------------------------------------- */

enum elf_kind { ELF_none, ELF_dynamic, ELF_static, ELF_other_machine, ELF_other_libc };

/* Is its loader glibc's? (As preload/suits.c has it, of what the program executes.) */
static bool launch_has_glibc(int fd, const Elf64_Phdr *interpreter)
{
	char path[PATH_MAX] = "";
	size_t bytes =
		interpreter->p_filesz < sizeof path ? interpreter->p_filesz : sizeof path - 1;
	if (pread(fd, path, bytes, (off_t)interpreter->p_offset) <= 0)
		return true;
	const char *slash = strrchr(path, '/');
	return !strncmp(slash ? slash + 1 : path, "ld-linux", strlen("ld-linux"));
}

static enum elf_kind elf_kind(int fd, const unsigned char *head, ssize_t n)
{
	Elf64_Ehdr eh;
	if (n < (ssize_t)sizeof eh || memcmp(head, ELFMAG, SELFMAG) != 0)
		return ELF_none;
	memcpy(&eh, head, sizeof eh);
	if (eh.e_ident[EI_CLASS] != ELFCLASS64 || eh.e_machine != OS_MACHINE)
		return ELF_other_machine;
	for (unsigned i = 0; i < eh.e_phnum && i < NR_PHDRS_MAX; i++) {
		Elf64_Phdr ph;
		off_t at = (off_t)(eh.e_phoff + (uint64_t)i * eh.e_phentsize);
		if (pread(fd, &ph, sizeof ph, at) != (ssize_t)sizeof ph)
			break;
		if (ph.p_type == PT_INTERP)
			return launch_has_glibc(fd, &ph) ? ELF_dynamic : ELF_other_libc;
	}
	return ELF_static;
}

bool os_interpreter_of(char *head, ssize_t n, char ret_path[PATH_MAX])
{
	if (n < 3 || head[0] != '#' || head[1] != '!')
		return false;
	head[n] = 0;
	const char *word = head + 2 + strspn(head + 2, " \t");
	size_t length = strcspn(word, " \t\r\n");
	if (!length || length >= PATH_MAX)
		return false;
	memcpy(ret_path, word, length);
	ret_path[length] = 0;
	return true;
}

/* The loader ignores LD_PRELOAD where a program gets rights that its starter has not. */
static bool gains_rights(int fd)
{
	struct stat st;
	if (fstat(fd, &st))
		return false;
	if ((st.st_mode & S_ISUID) && st.st_uid != getuid())
		return true;
	if ((st.st_mode & S_ISGID) && (st.st_mode & S_IXGRP) && st.st_gid != getgid())
		return true;
	return getuid() && fgetxattr(fd, "security.capability", NULL, 0) > 0;
}

/* The hint can be pasted: a prefix may have blanks in it. */
static enum base_status refuse_static(const char *path, struct base_err *err)
{
	char options[PATH_MAX];
	struct base_str hint = {0};
	base_installed_file("src/preload", "wrap.opts", options);
	base_str_add(&hint, "-L");
	base_str_add_quoted(&hint, options, (size_t)(strrchr(options, '/') - options));
	base_str_add(&hint, " @");
	base_str_add_quoted(&hint, options, strlen(options));
	enum base_status status = base_fail(err, BASE_ERR_ENV,
		"%s is statically linked: as root use longpole record --system, or link it with %s",
		path, base_str_text(&hint));
	base_str_fini(&hint);
	return status;
}

enum base_status os_check_program(const char *path, bool rewritten, struct base_err *err)
{
	char head[HEAD_BYTES + 1], interpreter[PATH_MAX];
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return BASE_OK; /* executable but not readable: exec will tell */
	ssize_t n = pread(fd, head, HEAD_BYTES, 0);
	bool rights = gains_rights(fd);
	enum elf_kind kind = elf_kind(fd, (const unsigned char *)head, n);
	close(fd);
	if (kind == ELF_none && os_interpreter_of(head, n, interpreter)) {
		fd = open(interpreter, O_RDONLY | O_CLOEXEC);
		n = fd >= 0 ? pread(fd, head, HEAD_BYTES, 0) : 0;
		kind = fd >= 0 ? elf_kind(fd, (const unsigned char *)head, n) : ELF_none;
		rights = false; /* the kernel ignores them for scripts */
		if (fd >= 0)
			close(fd);
		path = interpreter;
	}
	if (kind == ELF_static && !rewritten && !os_is_wrapped(path))
		return refuse_static(path, err);
	if (kind == ELF_other_machine)
		return base_fail(err, BASE_ERR_ENV,
			"%s cannot be recorded: it is not a " OS_PROCESSOR " program (the memory "
			"accesses of 64-bit ARM and RISC-V programs are, by QEMU: --level 3)",
			path);
	if (kind == ELF_other_libc)
		return base_fail(err, BASE_ERR_ENV,
			"%s cannot be recorded from inside: its C library is not glibc (musl?), "
			"which "
			"longpole's library needs: as root use longpole record --system",
			path);
	if (rights)
		return base_fail(err, BASE_ERR_ENV,
			"%s cannot be recorded: it is setuid or has capabilities; run longpole as "
			"its owner",
			path);
	return BASE_OK;
}

static bool can_execute(const char *path)
{
	struct stat st;
	return !stat(path, &st) && S_ISREG(st.st_mode) && !access(path, X_OK);
}

/* As execvp searches. 0, or the errno that it would give. */
static int search_path(const char *name, char ret_path[PATH_MAX])
{
	const char *dirs = getenv("PATH");
	int why = ENOENT;
	if (!*name)
		return ENOENT;
	if (strchr(name, '/')) {
		struct stat st;
		if (strlen(name) >= PATH_MAX)
			return ENAMETOOLONG;
		memcpy(ret_path, name, strlen(name) + 1);
		if (can_execute(name))
			return 0;
		if (stat(name, &st))
			return errno;
		return S_ISDIR(st.st_mode) ? EISDIR : EACCES;
	}
	for (const char *dir = dirs ? dirs : "/usr/bin:/bin"; dir;) {
		const char *end = strchrnul(dir, ':');
		int n = end == dir ? snprintf(ret_path, PATH_MAX, "./%s", name)
				   : snprintf(ret_path, PATH_MAX, "%.*s/%s", (int)(end - dir), dir,
					     name);
		if (n > 0 && n < PATH_MAX) {
			if (can_execute(ret_path))
				return 0;
			if (launch_is_file(ret_path))
				why = EACCES;
		}
		dir = *end ? end + 1 : NULL;
	}
	return why;
}

enum base_status os_find_program(
	const char *name, char ret_path[PATH_MAX], int *ret_exit_code, struct base_err *err)
{
	int why = search_path(name, ret_path);
	*ret_exit_code = !why ? 125 : why == ENOENT || why == ENOTDIR ? 127 : 126;
	return why ? base_fail_errno(err, why, "cannot run '%s'", name) : BASE_OK;
}

enum base_status os_find_rewritten(const char *name, unsigned *level, char ret_path[PATH_MAX],
	int *ret_exit_code, struct base_err *err)
{
	unsigned char head[SELFMAG] = {0};
	int why = search_path(name, ret_path);
	if (why) {
		*ret_exit_code = why == ENOENT || why == ENOTDIR ? 127 : 126;
		return base_fail_errno(err, why, "cannot run '%s'", name);
	}
	*ret_exit_code = 125;
	int fd = open(ret_path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		(void)!pread(fd, head, sizeof head, 0);
		close(fd);
	}
	unsigned built = os_built_level(ret_path);
	bool elf = !memcmp(head, ELFMAG, SELFMAG);
	unsigned newer = elf ? os_built_newer(ret_path) : 0;
	if (newer)
		return base_fail(err, BASE_ERR_ENV,
			"%s was built by a newer longpole: its memory streams are of version %u, "
			"this one reads up to %d; record it with that one, or build it again",
			ret_path, newer, MEMORY_STREAM_VERSION);
	if (elf && built && *level > built)
		return base_fail(err, BASE_ERR_ENV,
			"%s was built for level %u: build it with LONGPOLE_CC_LEVEL=%u", ret_path,
			built, *level);
	*level = built;
	return os_check_program(ret_path, built >= 2, err);
}

/* ---- start ----------------------------------------------------------------------------------- */

static char **emulators_environment(
	const struct os_child_environment *e, size_t nr, struct base_str text[OS_ENVIRONMENT_TEXTS])
{
	static const char lib[] = "VALGRIND_LIB=";
	size_t to = 0;
	char **env = base_alloc((nr + 2) * sizeof *env);
	base_str_addf(&text[0], "%s%s", lib, e->valgrind_lib ? e->valgrind_lib : "");
	if (!env || text[0].failed) {
		base_free(env);
		return NULL;
	}
	for (size_t i = 0; i < nr; i++)
		if (strncmp(environ[i], lib, sizeof lib - 1) != 0)
			env[to++] = environ[i];
	if (e->valgrind_lib)
		env[to++] = text[0].buf;
	return env;
}

/* Our environment with LD_PRELOAD (ours first), LONGPOLE_RING, and room for the image's number,
 * which the library writes there for the children that libc itself makes. */
char **os_make_environment(
	const struct os_child_environment *e, struct base_str text[OS_ENVIRONMENT_TEXTS])
{
	static const char preload[] = "LD_PRELOAD=", ring[] = "LONGPOLE_RING=",
			  image[] = "LONGPOLE_IMAGE=", memory[] = MEMORY_RING_VARIABLE "=";
	const char *before = getenv("LD_PRELOAD");
	size_t nr = 0, to = 0;
	while (environ && environ[nr])
		nr++;
	if (!e->preload)
		return emulators_environment(e, nr, text);
	char **env = base_alloc((nr + 5) * sizeof *env);
	base_str_addf(&text[0], "%s%s%s%s", preload, e->preload, before && *before ? ":" : "",
		before ? before : "");
	base_str_addf(&text[1], "%s%s", ring, e->ring);
	base_str_addf(&text[2], "%s0000000000", image);
	base_str_addf(&text[3], "%s%s", memory, e->memory);
	if (!env || text[3].failed || text[0].failed || text[1].failed || text[2].failed) {
		base_free(env);
		return NULL;
	}
	for (size_t i = 0; i < nr; i++)
		if (strncmp(environ[i], preload, sizeof preload - 1) != 0 &&
			strncmp(environ[i], ring, sizeof ring - 1) != 0 &&
			strncmp(environ[i], image, sizeof image - 1) != 0 &&
			strncmp(environ[i], memory, sizeof memory - 1) != 0)
			env[to++] = environ[i];
	env[to++] = text[0].buf;
	env[to++] = text[1].buf;
	env[to++] = text[2].buf;
	if (*e->memory)
		env[to++] = text[3].buf;
	env[to] = NULL;
	return env;
}

_Noreturn static void run_child(const char *path, char *const *argv, char **env, int go_fd,
	int fail_fd, const struct os_signals *before)
{
	char byte;
	ssize_t n;
	do
		n = read(go_fd, &byte, 1);
	while (n < 0 && errno == EINTR);
	if (n != 1)
		_exit(125); /* allowed: the child that becomes the program */
	sigaction(SIGXFSZ, &before->file_too_large, NULL);
	sigaction(SIGBUS, &before->bus, NULL);
	sigprocmask(SIG_SETMASK, &before->blocked, NULL);
	execve(path, argv, env);
	int why = errno;
	if (why == ENOEXEC) { /* a script without #!, as execvp does it */
		size_t nr = 0;
		while (argv[nr])
			nr++;
		char **shell = base_alloc((nr + 2) * sizeof *shell);
		if (shell) {
			shell[0] = (char *)"/bin/sh";
			shell[1] = (char *)path;
			for (size_t i = 1; i < nr; i++)
				shell[i + 1] = argv[i];
			execve(shell[0], shell, env);
		}
	}
	(void)!write(fail_fd, &why, sizeof why);
	_exit(why == ENOENT || why == ENOTDIR ? 127 : 126); /* allowed: the same child */
}

enum base_status os_child_start(struct os_child *child, const char *path, char *const *argv,
	const struct os_child_environment *environment, const struct os_signals *before,
	struct base_err *err)
{
	enum base_status status = BASE_OK;
	struct base_str text[OS_ENVIRONMENT_TEXTS] = {{0}};
	int go[2] = {-1, -1}, fail[2] = {-1, -1};
	char **env = os_make_environment(environment, text);
	child->pid = -1;
	if (!env) {
		status = base_fail(err, BASE_ERR_NOMEM, "no memory for the program's environment");
		goto out;
	}
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, go) || pipe2(fail, O_CLOEXEC)) {
		status = base_fail_errno(err, errno, "cannot make a pipe");
		goto out;
	}
	child->pid = fork();
	if (child->pid < 0) {
		status = base_fail_errno(err, errno, "cannot fork");
		goto out;
	}
	if (!child->pid) {
		close(go[1]);
		int why = environment->prepare ? environment->prepare(environment->prepare_ctx) : 0;
		(void)!write(go[0], &why, sizeof why);
		run_child(path, argv, env, go[0], fail[1], before);
	}
	child->go_fd = go[1];
	child->fail_fd = fail[0];
	go[1] = fail[0] = -1;
out:
	for (int i = 0; i < 2; i++) {
		if (go[i] >= 0)
			close(go[i]);
		if (fail[i] >= 0)
			close(fail[i]);
	}
	base_free(env);
	base_str_fini(&text[0]);
	base_str_fini(&text[1]);
	base_str_fini(&text[2]);
	base_str_fini(&text[3]);
	return status;
}

int os_child_ready(const struct os_child *child)
{
	int why = 0;
	ssize_t n;
	do
		n = read(child->go_fd, &why, sizeof why);
	while (n < 0 && errno == EINTR);
	return n == (ssize_t)sizeof why ? why : ENOMEM; /* killed, while it made pages */
}

int os_child_go(struct os_child *child)
{
	int why = 0;
	ssize_t n;
	(void)!send(child->go_fd, "", 1, MSG_NOSIGNAL);
	close(child->go_fd);
	do
		n = read(child->fail_fd, &why, sizeof why);
	while (n < 0 && errno == EINTR);
	close(child->fail_fd);
	return n == (ssize_t)sizeof why ? why : 0;
}

void os_child_cancel(struct os_child *child)
{
	close(child->go_fd);
	close(child->fail_fd);
	while (waitpid(child->pid, NULL, 0) < 0 && errno == EINTR)
		continue;
}
