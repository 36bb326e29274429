/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ring_cat - runs a program under the preload library alone and prints what it records.
 * Usage: ring_cat [-ck] [-b BLOCKS] [-o FILE] LIBRARY PROGRAM [ARGUMENT]...
 *   -c  print only how many records of each kind there were
 *   -k  keep all blocks until the program has ended: with a small -b the ring is full soon
 * Lines: image.thread(tid) microseconds kind words..., block by block. Exits as the program did
 * (128 + signal); 99 when a block holds something that is no record.
 */
#include "ring_host.h"

#include <inttypes.h>
#include <sys/wait.h>

struct cat {
	struct ring_host host;
	FILE *out;
	bool count_only, keep;
	uint64_t count[256];
	uint64_t nr_broken;
};

static void print_text(FILE *out, const uint64_t *words, uint64_t nr_bytes)
{
	const char *text = (const char *)words;
	putc('"', out);
	for (uint64_t i = 0; i < nr_bytes; i++)
		putc(text[i] >= ' ' ? text[i] : ' ', out);
	putc('"', out);
}

static void print_record(struct cat *cat, const struct ring_block *b, const uint64_t *w, size_t n)
{
	unsigned kind = w[0] & 0xff;
	size_t text_at = 0, text_bytes = 0;
	cat->count[kind == RING_verb ? RING_VERB_KIND(w[1]) : kind]++;
	if (cat->count_only)
		return;
	switch (kind) {
	case RING_module:
		text_at = 8, text_bytes = w[4] & UINT32_MAX;
		break;
	case RING_descriptor:
		text_at = 9, text_bytes = w[8];
		break;
	case RING_name:
		text_at = 5, text_bytes = w[4];
		break;
	case RING_place:
		text_at = 4, text_bytes = (w[3] >> 32) + (w[3] & UINT32_MAX);
		break;
	case RING_thread_name:
		text_at = 2, text_bytes = w[1];
		break;
	case RING_image:
		text_at = 3, text_bytes = w[2];
		break;
	}
	fprintf(cat->out, "%u.%" PRIu64 "(%u) %" PRIu64 " %s", b->image, b->thread, b->tid,
		w[0] >> 8, ring_host_kind_name(kind));
	for (size_t i = 1; i < (text_at ? text_at : n); i++)
		fprintf(cat->out, w[i] < 100000 ? " %" PRIu64 : " %#" PRIx64, w[i]);
	if (text_at) {
		putc(' ', cat->out);
		print_text(cat->out, w + text_at, text_bytes);
	}
	putc('\n', cat->out);
}

static void print_block(struct cat *cat, const struct ring_block *b)
{
	size_t room = (RING_BLOCK_BYTES - sizeof *b) / sizeof(uint64_t), at = 0;
	if (b->state == RING_BLOCK_DONE)
		room = b->nr_words;
	while (at < room && b->word[at]) {
		size_t n = ring_host_words(b->word + at, room - at);
		if (!n) {
			fprintf(stderr,
				"ring_cat: no record at word %zu of a block of %u.%" PRIu64 "\n",
				at, b->image, b->thread);
			cat->nr_broken++;
			return;
		}
		print_record(cat, b, b->word + at, n);
		at += n;
	}
	if (b->state == RING_BLOCK_DONE && at < room) {
		fprintf(stderr, "ring_cat: a hole at word %zu of %zu\n", at, room);
		cat->nr_broken++;
	}
}

static void drain(struct cat *cat, bool all)
{
	for (uint32_t i = 0; i < cat->host.head->nr_blocks; i++) {
		struct ring_block *b = ring_host_block(&cat->host, i);
		uint32_t state = __atomic_load_n(&b->state, __ATOMIC_ACQUIRE);
		if (state != RING_BLOCK_DONE && !(all && state == RING_BLOCK_ACTIVE))
			continue;
		print_block(cat, b);
		ring_host_free(&cat->host, i);
	}
}

int main(int argc, char **argv)
{
	struct cat cat = {.out = stdout};
	uint32_t nr_blocks = 256;
	int option;
	while ((option = getopt(argc, argv, "+ckb:o:")) != -1) {
		if (option == 'c')
			cat.count_only = true;
		else if (option == 'k')
			cat.keep = true;
		else if (option == 'b')
			nr_blocks = (uint32_t)strtoul(optarg, NULL, 10);
		else if (option == 'o')
			cat.out = fopen(optarg, "we");
		else
			return 2;
	}
	if (argc - optind < 2 || !cat.out || !ring_host_open(&cat.host, nr_blocks)) {
		fprintf(stderr, "usage: ring_cat [-ck] [-b BLOCKS] [-o FILE] LIBRARY PROGRAM "
				"[ARGUMENT]...\n");
		return 2;
	}
	pid_t pid = fork();
	if (pid == 0) {
		ring_host_setenv(&cat.host, argv[optind]);
		execvp(argv[optind + 1], argv + optind + 1);
		_exit(127);
	}
	int status = 0;
	while (waitpid(pid, &status, WNOHANG) == 0) {
		if (!cat.keep)
			drain(&cat, false);
		usleep(200);
	}
	drain(&cat, true);
	const struct ring_head *head = cat.host.head;
	for (unsigned kind = 0; kind < 256; kind++)
		if (cat.count_only && cat.count[kind])
			fprintf(cat.out, "%s %" PRIu64 "\n", ring_host_kind_name(kind),
				cat.count[kind]);
	if (cat.count_only)
		fprintf(cat.out, "images %" PRIu64 "\n", head->images_attached);
	if (head->lost_records || head->nested_dropped)
		fprintf(cat.out, "lost %" PRIu64 " nested %" PRIu64 "\n", head->lost_records,
			head->nested_dropped);
	ring_host_close(&cat.host);
	if (cat.nr_broken)
		return 99;
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}
