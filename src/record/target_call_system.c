/* SPDX-License-Identifier: Apache-2.0 */
/* target_call_system.c - reads, writes, and calls after which this image is no more. */
#include "record/target.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CALL_READ = 0x11, CALL_WRITE = 0x12, CALL_SENT = 0x2d, CALL_RECEIVED = 0x2e };

#define AT      TARGET_STUB
#define WORD(p) ((uint64_t)(uintptr_t)(p))

static void moved(bool into_memory, const void *p, size_t bytes, uint64_t file, uint64_t before)
{
	int saved = errno;
	longpole_target_call(into_memory ? CALL_READ : CALL_WRITE, before, target_call_ticks(),
		WORD(p), bytes, file, 0);
	longpole_target_range(into_memory, p, bytes);
	errno = saved;
}

static uint64_t units(const struct target_channel *c, const void *p, size_t bytes)
{
	uint64_t value = bytes;
	if (c->counts && bytes == sizeof value)
		memcpy(&value, p, sizeof value);
	return value;
}

/* Who reads has waited until it was there, and writes to its memory then. */
static ssize_t received(int fd, const void *p, ssize_t r, uint64_t before)
{
	int saved = errno;
	struct target_channel c;
	if (r > 0 && longpole_target_channel(fd, &c) && c.takes)
		longpole_target_call(CALL_RECEIVED, before, target_call_ticks(), c.takes,
			units(&c, p, (size_t)r), 0, 0);
	if (r > 0)
		moved(true, p, (size_t)r, (uint64_t)fd, before);
	errno = saved;
	return r;
}

/* What was written could be read as soon as the call had begun; after it nobody waits for it. */
static ssize_t sent(int fd, const void *p, ssize_t r, uint64_t before)
{
	int saved = errno;
	struct target_channel c;
	if (r > 0 && longpole_target_channel(fd, &c) && c.gives) {
		longpole_target_range(false, p, (size_t)r);
		longpole_target_call(
			CALL_SENT, before, before, c.gives, units(&c, p, (size_t)r), 0, 0);
		longpole_target_call(CALL_WRITE, before, target_call_ticks(), WORD(p), (uint64_t)r,
			(uint64_t)fd, 0);
	} else if (r > 0) {
		moved(false, p, (size_t)r, (uint64_t)fd, before);
	}
	errno = saved;
	return r;
}

ssize_t longpole_at_read(int fd, void *p, size_t n);
AT ssize_t longpole_at_read(int fd, void *p, size_t n)
{
	TARGET_UNLESS_ATTACHED(read(fd, p, n));
	uint64_t before = target_call_ticks();
	return received(fd, p, TARGET_CALL(read(fd, p, n)), before);
}

ssize_t longpole_at_write(int fd, const void *p, size_t n);
AT ssize_t longpole_at_write(int fd, const void *p, size_t n)
{
	TARGET_UNLESS_ATTACHED(write(fd, p, n));
	uint64_t before = target_call_ticks();
	return sent(fd, p, TARGET_CALL(write(fd, p, n)), before);
}

ssize_t longpole_at_pread(int fd, void *p, size_t n, off_t at);
AT ssize_t longpole_at_pread(int fd, void *p, size_t n, off_t at)
{
	TARGET_UNLESS_ATTACHED(pread(fd, p, n, at));
	uint64_t before = target_call_ticks();
	ssize_t r = TARGET_CALL(pread(fd, p, n, at));
	if (r > 0)
		moved(true, p, (size_t)r, (uint64_t)fd, before);
	return r;
}

ssize_t longpole_at_pwrite(int fd, const void *p, size_t n, off_t at);
AT ssize_t longpole_at_pwrite(int fd, const void *p, size_t n, off_t at)
{
	TARGET_UNLESS_ATTACHED(pwrite(fd, p, n, at));
	uint64_t before = target_call_ticks();
	ssize_t r = TARGET_CALL(pwrite(fd, p, n, at));
	if (r > 0)
		moved(false, p, (size_t)r, (uint64_t)fd, before);
	return r;
}

size_t longpole_at_fread(void *p, size_t size, size_t nr, FILE *f);
AT size_t longpole_at_fread(void *p, size_t size, size_t nr, FILE *f)
{
	TARGET_UNLESS_ATTACHED(fread(p, size, nr, f));
	uint64_t before = target_call_ticks();
	size_t r = TARGET_CALL(fread(p, size, nr, f));
	if (r)
		moved(true, p, r * size, WORD(f), before);
	return r;
}

size_t longpole_at_fwrite(const void *p, size_t size, size_t nr, FILE *f);
AT size_t longpole_at_fwrite(const void *p, size_t size, size_t nr, FILE *f)
{
	TARGET_UNLESS_ATTACHED(fwrite(p, size, nr, f));
	uint64_t before = target_call_ticks();
	size_t r = TARGET_CALL(fwrite(p, size, nr, f));
	if (r)
		moved(false, p, r * size, WORD(f), before);
	return r;
}

/* ---- the image's end ----------------------------------------------------------------------- */

_Noreturn void longpole_at__exit(int status);
AT _Noreturn void longpole_at__exit(int status)
{
	longpole_target_flush_all();
	_exit(status); /* allowed: the program's own call */
}

_Noreturn void longpole_at__Exit(int status);
AT _Noreturn void longpole_at__Exit(int status)
{
	longpole_target_flush_all();
	_exit(status); /* allowed: the program's own call */
}

_Noreturn void longpole_at_abort(void);
AT _Noreturn void longpole_at_abort(void)
{
	longpole_target_flush_all();
	abort(); /* allowed: the program's own call */
}

int longpole_at_execve(const char *path, char *const *argv, char *const *envp);
AT int longpole_at_execve(const char *path, char *const *argv, char *const *envp)
{
	longpole_target_flush_all();
	return execve(path, argv, envp);
}

int longpole_at_execv(const char *path, char *const *argv);
AT int longpole_at_execv(const char *path, char *const *argv)
{
	longpole_target_flush_all();
	return execv(path, argv);
}

int longpole_at_execvp(const char *file, char *const *argv);
AT int longpole_at_execvp(const char *file, char *const *argv)
{
	longpole_target_flush_all();
	return execvp(file, argv);
}
