/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pipeline - a small log processor: three processes joined by pipes, as `reader | parser | counter`
 * in a shell.
 *
 *   reader   makes the lines of a web server's log, as if it read them from a file
 *   parser   finds the fields of each line: address, path, status, bytes
 *   counter  adds up requests and bytes per path
 *
 * The parser is slow: it finds the path in a table by comparing with each one in turn. --fixed
 * looks it up by hash: that is the fix whose gain `longpole whatif` predicts before it is made.
 * Both count the same, and print it.
 *
 *   cc -O2 -g -o pipeline pipeline.c
 *   longpole record -o slow.lpt ./pipeline && longpole report slow.lpt
 *   longpole whatif slow.lpt remove find_path
 */
#define _GNU_SOURCE
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PATHS = 120, BATCH = 64, LINE_MAX_BYTES = 112, HASH_SLOTS = 2048 };

struct batch { /* of lines, as they go through the first pipe */
	uint32_t nr;
	char line[BATCH][LINE_MAX_BYTES];
};
struct request { /* what the parser passes on */
	uint32_t path, status, nr_bytes;
};
struct requests {
	uint32_t nr;
	struct request request[BATCH];
};

static char path_name[PATHS][40];
static uint16_t path_slot[HASH_SLOTS]; /* path + 1 */

static inline char lower_of(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static uint32_t hash_of(const char *text, size_t length)
{
	uint32_t h = 2166136261u;
	for (size_t i = 0; i < length; i++)
		h = (h ^ (unsigned char)lower_of(text[i])) * 16777619u;
	return h;
}

static void name_paths(void)
{
	for (uint32_t i = 0; i < PATHS; i++) {
		snprintf(path_name[i], sizeof(path_name[i]),
			"/shop/catalogue/section/item-%03u.html", (unsigned)i);
		uint32_t slot = hash_of(path_name[i], strlen(path_name[i])) % HASH_SLOTS;
		while (path_slot[slot])
			slot = (slot + 1) % HASH_SLOTS;
		path_slot[slot] = (uint16_t)(i + 1);
	}
}

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

/* Writes or reads all of it; false at the end of the input. */
static bool transfer(bool writes, int fd, void *buffer, size_t size)
{
	for (size_t done = 0; done < size;) {
		char *at = (char *)buffer + done;
		ssize_t n = writes ? write(fd, at, size - done) : read(fd, at, size - done);
		if (n < 0 || (writes && !n))
			fail(writes ? "write" : "read");
		if (!n)
			return false;
		done += (size_t)n;
	}
	return true;
}

/* ---- reader ---------------------------------------------------------------------------------- */

__attribute__((noinline)) static void make_lines(struct batch *b, uint64_t *seed)
{
	b->nr = BATCH;
	for (uint32_t i = 0; i < BATCH; i++) {
		*seed = *seed * 6364136223846793005u + 1442695040888963407u;
		uint32_t dice = (uint32_t)(*seed >> 33);
		snprintf(b->line[i], LINE_MAX_BYTES, "10.0.%u.%u - - \"GET %s\" %u %u",
			dice >> 8 & 255, dice & 255, path_name[dice % PATHS],
			dice % 50 ? 200u : 404u, 500 + dice % 9000);
	}
}

static void run_reader(int out, uint64_t nr_batches)
{
	struct batch b;
	uint64_t seed = 42;
	memset(&b, 0, sizeof(b));
	for (uint64_t i = 0; i < nr_batches; i++) {
		make_lines(&b, &seed);
		transfer(true, out, &b, sizeof(b));
	}
}

/* ---- parser ---------------------------------------------------------------------------------- */

/* Case does not matter in this shop's paths. */
static inline bool same_path(const char *name, const char *text, size_t length)
{
	size_t i = 0;
	while (i < length && name[i] == lower_of(text[i]))
		i++;
	return i == length && !name[i];
}

__attribute__((noinline)) static uint32_t find_path(const char *text, size_t length)
{
	for (uint32_t i = 0; i < PATHS; i++) {
		if (same_path(path_name[i], text, length))
			return i;
	}
	return PATHS;
}

__attribute__((noinline)) static uint32_t find_path_by_hash(const char *text, size_t length)
{
	for (uint32_t slot = hash_of(text, length) % HASH_SLOTS; path_slot[slot];
		slot = (slot + 1) % HASH_SLOTS) {
		if (same_path(path_name[path_slot[slot] - 1], text, length))
			return path_slot[slot] - 1u;
	}
	return PATHS;
}

__attribute__((noinline)) static bool parse_line(const char *line, bool fixed, struct request *r)
{
	const char *path = strstr(line, "GET ");
	const char *end = path ? strchr(path + 4, '"') : NULL;
	if (!end)
		return false;
	path += 4;
	char *rest = NULL;
	r->path = fixed ? find_path_by_hash(path, (size_t)(end - path))
			: find_path(path, (size_t)(end - path));
	r->status = (uint32_t)strtoul(end + 1, &rest, 10);
	r->nr_bytes = (uint32_t)strtoul(rest, NULL, 10);
	return r->path < PATHS;
}

static void run_parser(int in, int out, bool fixed)
{
	struct batch b;
	struct requests parsed;
	while (transfer(false, in, &b, sizeof(b))) {
		memset(&parsed, 0, sizeof(parsed));
		for (uint32_t i = 0; i < b.nr; i++)
			parsed.nr += parse_line(b.line[i], fixed, &parsed.request[parsed.nr]);
		transfer(true, out, &parsed, sizeof(parsed));
	}
}

/* ---- counter --------------------------------------------------------------------------------- */

static void run_counter(int in)
{
	static uint64_t nr_requests[PATHS], nr_bytes[PATHS];
	uint64_t nr_failed = 0;
	struct requests parsed;
	while (transfer(false, in, &parsed, sizeof(parsed))) {
		for (uint32_t i = 0; i < parsed.nr; i++) {
			const struct request *r = &parsed.request[i];
			nr_requests[r->path]++;
			nr_bytes[r->path] += r->nr_bytes;
			nr_failed += r->status >= 400;
		}
	}
	uint32_t most = 0;
	uint64_t all = 0;
	for (uint32_t i = 0; i < PATHS; i++) {
		all += nr_requests[i];
		if (nr_bytes[i] > nr_bytes[most])
			most = i;
	}
	printf("%llu requests, %llu failed; most bytes: %s, %llu\n", (unsigned long long)all,
		(unsigned long long)nr_failed, path_name[most], (unsigned long long)nr_bytes[most]);
}

int main(int argc, char **argv)
{
	bool fixed = false;
	uint64_t nr_batches = 12000;
	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--fixed")) {
			fixed = true;
		} else if (!strncmp(argv[i], "--batches=", 10)) {
			nr_batches = strtoull(argv[i] + 10, NULL, 10);
		} else {
			fprintf(stderr, "usage: pipeline [--fixed] [--batches=N]\n");
			return 2;
		}
	}
	int lines[2], requests[2];
	if (pipe(lines) || pipe(requests))
		fail("pipe");
	name_paths();
	pid_t child[3];
	for (int stage = 0; stage < 3; stage++) {
		child[stage] = fork();
		if (child[stage] < 0)
			fail("fork");
		if (child[stage])
			continue;
		/* Each keeps only the ends that it uses, so that the end of the input is seen. */
		if (stage != 1)
			close(stage == 0 ? lines[0] : lines[1]);
		if (stage == 0) {
			close(requests[0]);
			close(requests[1]);
			run_reader(lines[1], nr_batches);
		} else if (stage == 1) {
			close(lines[1]);
			close(requests[0]);
			run_parser(lines[0], requests[1], fixed);
		} else {
			close(lines[0]);
			close(requests[1]);
			run_counter(requests[0]);
		}
		return 0;
	}
	close(lines[0]);
	close(lines[1]);
	close(requests[0]);
	close(requests[1]);
	int failed = 0;
	for (int stage = 0; stage < 3; stage++) {
		int status = 0;
		if (waitpid(child[stage], &status, 0) < 0)
			fail("waitpid");
		failed |= status;
	}
	return failed != 0;
}
