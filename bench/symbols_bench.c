/* SPDX-License-Identifier: Apache-2.0 */
/*
 * symbols_bench.c - functions, lines and inlined frames of the addresses on standard input
 * (hexadecimal, as linked), as longpole finds them. Usage: symbols-bench FILE [--print]
 *
 * One line of JSON: addresses, named, with_line, frames, open_ns, lookup_ns. --print: as addr2line
 * -f -i -a does instead, to compare.
 */
#include "symbol/symbol.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { FRAMES_MAX = 64 };

static uint64_t now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void print_frames(uint64_t address, const struct symbol_frame *frame, size_t nr)
{
	printf("0x%016" PRIx64 "\n", address);
	for (size_t i = 0; i < nr; i++)
		printf("%s\n%s:%" PRIu64 "\n", frame[i].function ? frame[i].function : "??",
			frame[i].file ? frame[i].file : "??", frame[i].line);
	if (!nr)
		printf("??\n??:0\n");
}

int main(int argc, char **argv)
{
	char line[64];
	uint64_t nr = 0, nr_named = 0, nr_lines = 0, nr_frames = 0;
	if (argc < 2)
		return 2;
	uint64_t begin_ns = now_ns();
	enum symbol_why why;
	struct symbol_file *f = symbol_open_with(argv[1], "", NULL, &why);
	if (!f) {
		fprintf(stderr, "symbols-bench: %s: %s\n", argv[1], symbol_why_line(why));
		return 4;
	}
	uint64_t opened_ns = now_ns();
	while (fgets(line, sizeof line, stdin)) {
		struct symbol_frame frame[FRAMES_MAX];
		uint64_t address = strtoull(line, NULL, 16);
		size_t n = symbol_frames(f, address, frame, FRAMES_MAX);
		nr++;
		nr_named += n > 0 && symbol_why(f) != SYMBOL_WHY_stripped;
		nr_lines += n > 0 && frame[0].line > 0;
		nr_frames += n;
		if (argc > 2)
			print_frames(address, frame, n);
	}
	uint64_t end_ns = now_ns();
	if (argc == 2)
		printf("{\"addresses\": %" PRIu64 ", \"named\": %" PRIu64
		       ", \"with_line\": %" PRIu64 ", \"frames\": %" PRIu64
		       ", \"open_ns\": %" PRIu64 ", \"lookup_ns\": %" PRIu64 "}\n",
			nr, nr_named, nr_lines, nr_frames, opened_ns - begin_ns,
			end_ns - opened_ns);
	symbol_close(f);
	return 0;
}
