/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jit.c - makes code at run time and tells perf its names.
 *
 * `outer` calls `inner`, which runs for about MS; then, as `jit dump`, other code is put in the
 * same place for another time as long. How it tells: map, dump (written at the end only, by stdio),
 * fork (a child runs what its parent has told), link (the map is a symbolic link), old (the map is
 * older than the process, as if another one had had its number), foreign (it is another user's).
 */
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MS = 300, INNER = 0, OUTER = 256 };

static const uint8_t inner[] = {0x55, 0x48, 0x89, 0xe5, /* push rbp; mov rbp, rsp */
	0x48, 0x89, 0xf9, 0x48, 0x6b, 0xc0, 0x03,       /* mov rcx, rdi; 1: imul rax, rax, 3 */
	0x48, 0xff, 0xc9, 0x75, 0xf7, 0x5d, 0xc3};      /* dec rcx; jnz 1b; pop rbp; ret */
static const uint8_t outer[] = {0x55, 0x48, 0x89, 0xe5, /* push rbp; mov rbp, rsp */
	0xff, 0xd6, 0x5d, 0xc3};                        /* call rsi; pop rbp; ret */

static uint64_t now_ns(clockid_t clock)
{
	struct timespec t;
	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void run(uint8_t *code)
{
	uint64_t begin_ns = now_ns(CLOCK_THREAD_CPUTIME_ID);
	while (now_ns(CLOCK_THREAD_CPUTIME_ID) - begin_ns < MS * UINT64_C(1000000))
		((void (*)(long, void *))(uintptr_t)(code + OUTER))(10000000, code + INNER);
}

struct load {
	uint32_t id, size;
	uint64_t time_ns;
	uint32_t pid, tid;
	uint64_t vma, address, bytes, index;
};

static void load(FILE *f, uint8_t *code, size_t at, size_t bytes, uint64_t index, const char *name)
{
	size_t nr_name = strlen(name) + 1;
	struct load l = {.size = (uint32_t)(sizeof l + nr_name + bytes),
		.time_ns = now_ns(CLOCK_MONOTONIC),
		.pid = (uint32_t)getpid(),
		.tid = (uint32_t)getpid(),
		.vma = (uintptr_t)code + at,
		.address = (uintptr_t)code + at,
		.bytes = bytes,
		.index = index};
	fwrite(&l, sizeof l, 1, f);
	fwrite(name, nr_name, 1, f);
	fwrite(code + at, bytes, 1, f);
}

static FILE *begin_dump(void)
{
	struct {
		uint32_t magic, version, bytes, machine, pad, pid;
		uint64_t time_ns, flags;
	} h = {0x4a695444, 1, sizeof h, 62, 0, (uint32_t)getpid(), now_ns(CLOCK_MONOTONIC), 0};
	char name[64];
	snprintf(name, sizeof name, "jit-%d.dump", (int)getpid());
	int fd = open(name, O_CREAT | O_TRUNC | O_RDWR, 0600);
	/* how perf hears of it */
	if (fd < 0 || mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) == MAP_FAILED)
		exit(2);
	FILE *f = fdopen(fd, "w");
	setvbuf(f, NULL, _IOFBF, 1 << 20);
	fwrite(&h, sizeof h, 1, f);
	return f;
}

static void dump(uint8_t *code)
{
	FILE *f = begin_dump();
	load(f, code, INNER, sizeof inner, 1, "jit::first");
	load(f, code, OUTER, sizeof outer, 2, "jit::outer");
	run(code);
	load(f, code, INNER, sizeof inner, 3, "jit::second");
	run(code);
	fclose(f);
}

static void map(const uint8_t *code, const char *how)
{
	bool link = !strcmp(how, "link");
	char name[64], hidden[80];
	snprintf(name, sizeof name, "/tmp/perf-%d.map", (int)getpid());
	snprintf(hidden, sizeof hidden, "%s.hidden", name);
	unlink(name);
	FILE *f = fopen(link ? hidden : name, "w");
	fprintf(f, "%lx %zx old\n", (unsigned long)code, sizeof inner);
	fprintf(f, "%lx %zx jit::inner(int, char) [v1]\n", (unsigned long)code, sizeof inner);
	fprintf(f, "%lx %zx jit::outer\n", (unsigned long)code + OUTER, sizeof outer);
	fclose(f);
	if (link && symlink(hidden, name))
		exit(2);
	if (!strcmp(how, "old") && utimensat(AT_FDCWD, name, (struct timespec[2]){{0}, {0}}, 0))
		exit(2);
	if (!strcmp(how, "foreign") && chown(name, 12345, 12345))
		exit(2);
	puts(name);
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "";
	uint8_t *code = mmap(
		NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memcpy(code + INNER, inner, sizeof inner);
	memcpy(code + OUTER, outer, sizeof outer);
	if (!strcmp(how, "dump")) {
		dump(code);
		return 0;
	}
	map(code, how);
	fflush(stdout);
	if (!strcmp(how, "fork") && fork()) {
		wait(NULL);
		return 0;
	}
	run(code);
	return 0;
}
