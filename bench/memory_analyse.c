/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory_analyse.c - accesses a second of the memory analyses on generated streams: regular (the
 * inner loop of a matrix multiplication, as runs), irregular (random places in 64 MiB of memory, of
 * which a sixteenth is shared), both of four threads. Prints one line a run: NAME SECONDS ACCESSES
 * STATE_BYTES TOUCHED_BYTES.
 *
 *	memory_analyse ciat|cdat regular|irregular ACCESSES [CONFIG]
 */
#include "memory/cdat/cdat.h"
#include "memory/ciat/ciat.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { THREADS = 4, BODY = 3, RUN = 256, IRREGULAR_BATCH = 1024 };

struct generator {
	struct memory_source source;
	struct memory_item item[THREADS][IRREGULAR_BATCH];
	uint64_t made[THREADS], wanted, seed[THREADS];
	bool regular;
};

static size_t regular_batch(struct generator *g, unsigned t)
{
	uint64_t n = g->made[t] / (2 * RUN), row = n / RUN % RUN, column = n % RUN;
	struct memory_item *i = g->item[t];
	i[0] = (struct memory_item){.kind = MEMORY_REPEAT, .address = 2, .count = RUN};
	i[1] = (struct memory_item){.kind = MEMORY_LOAD,
		.address = 0x10000000 + (t * RUN / THREADS + row % (RUN / THREADS)) * RUN * 8,
		.stride_bytes = 8,
		.size_bytes = 8,
		.instructions = 2};
	i[2] = (struct memory_item){.kind = MEMORY_LOAD,
		.address = 0x20000000 + column * 8,
		.stride_bytes = RUN * 8,
		.size_bytes = 8,
		.instructions = 3};
	g->made[t] += 2 * RUN;
	return BODY;
}

static size_t irregular_batch(struct generator *g, unsigned t)
{
	for (unsigned k = 0; k < IRREGULAR_BATCH; k++) {
		uint64_t r = g->seed[t] = g->seed[t] * UINT64_C(6364136223846793005) + 1;
		uint64_t at = (r >> 20) % (15 << 20);
		bool shared = !(r >> 60);
		g->item[t][k] =
			(struct memory_item){.kind = (r >> 40) % 4 ? MEMORY_LOAD : MEMORY_STORE,
				.address = (shared ? 0x30000000 + at % (4 << 20)
						   : 0x40000000 + ((uint64_t)t << 24) + at) &
					   ~UINT64_C(7),
				.size_bytes = 8,
				.instructions = 3};
	}
	g->made[t] += IRREGULAR_BATCH;
	return IRREGULAR_BATCH;
}

static enum base_status next(
	struct memory_source *s, int thread, struct memory_batch *ret, struct base_err *err)
{
	struct generator *g = (struct generator *)s;
	unsigned t = (unsigned)thread;
	(void)err;
	if (g->made[t] >= g->wanted / THREADS)
		return BASE_END;
	*ret = (struct memory_batch){.item = g->item[t], .thread = t};
	ret->nr = g->regular ? regular_batch(g, t) : irregular_batch(g, t);
	return BASE_OK;
}

static void close_generator(struct memory_source *s)
{
	free(s);
}

static double seconds(void)
{
	struct timespec t;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void die(const struct base_err *err)
{
	fprintf(stderr, "memory_analyse: %s\n", err->nr_causes ? err->cause[0] : "failed");
	exit(1);
}

/* All steps through `add`; NULL: the order alone. */
static void run(struct memory_order *o,
	enum base_status (*add)(void *, const struct memory_steps *, struct base_err *), void *ctx)
{
	struct base_err err = {0};
	enum base_status s = BASE_OK;
	while (s == BASE_OK) {
		struct memory_steps steps;
		s = memory_order_next(o, &steps, &err);
		if (s == BASE_OK && add)
			s = add(ctx, &steps, &err);
	}
	if (s != BASE_END)
		die(&err);
}

static enum base_status add_ciat(void *ctx, const struct memory_steps *steps, struct base_err *err)
{
	return memory_ciat_add(ctx, steps, err);
}

static enum base_status add_cdat(void *ctx, const struct memory_steps *steps, struct base_err *err)
{
	return memory_cdat_add(ctx, steps, err);
}

static void bench_ciat(struct memory_order *o, uint64_t accesses, const char *name)
{
	struct memory_ciat *c;
	struct base_err err = {0};
	struct memory_ciat_options options = {0};
	const struct memory_ciat_result *r;
	if (memory_ciat_new(THREADS, &options, &c, &err) != BASE_OK ||
		memory_order_allow_runs(o, &err) != BASE_OK)
		die(&err);
	double begin = seconds();
	run(o, add_ciat, c);
	double took = seconds() - begin;
	if (memory_ciat_finish(c, 0, &r, &err) != BASE_OK)
		die(&err);
	printf("ciat-%s %.6f %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", name, took, accesses,
		r->memory_bytes, r->usage.touched_bytes);
	memory_ciat_free(c);
}

static void bench_cdat(struct memory_order *o, uint64_t accesses, const char *name)
{
	struct memory_cdat_config *config = memory_cdat_config_new();
	struct memory_cdat *c = NULL;
	struct base_err err = {0};
	struct memory_cdat_options options = {0};
	const struct memory_cdat_result *r;
	if (!config || memory_cdat_config_set(config, "nodes=2", &err) != BASE_OK ||
		memory_cdat_config_set(config, "processors=2", &err) != BASE_OK ||
		memory_cdat_new(config, THREADS, &options, &c, &err) != BASE_OK)
		die(&err);
	double begin = seconds();
	run(o, add_cdat, c);
	double took = seconds() - begin;
	if (memory_cdat_finish(c, &r, &err) != BASE_OK)
		die(&err);
	printf("cdat-%s %.6f %" PRIu64 " %" PRIu64 " 0\n", name, took, accesses, r->memory_bytes);
	memory_cdat_free(c);
	memory_cdat_config_free(config);
}

int main(int argc, char **argv)
{
	static const struct memory_source_ops ops = {.next = next, .close = close_generator};
	static const struct memory_order_options plain = {.disk_latency_ms = -1};
	struct memory_order *o;
	struct base_err err = {0};
	if (argc < 4)
		return 2;
	struct generator *g = calloc(1, sizeof *g);
	if (!g)
		return 1;
	g->source.ops = &ops;
	g->source.info =
		(struct memory_source_info){.nr_threads = THREADS, .format = "made", .unseen = ""};
	g->regular = !strcmp(argv[2], "regular");
	g->wanted = strtoull(argv[3], NULL, 10);
	for (unsigned t = 0; t < THREADS; t++)
		g->seed[t] = t + 1;
	if (memory_order_new(&g->source, NULL, &plain, &o, &err) != BASE_OK)
		die(&err);
	if (!strcmp(argv[1], "ciat")) {
		bench_ciat(o, g->wanted, argv[2]);
	} else if (!strcmp(argv[1], "cdat")) {
		bench_cdat(o, g->wanted, argv[2]);
	} else {
		double begin = seconds();
		run(o, NULL, NULL);
		printf("order-%s %.6f %" PRIu64 " 0 0\n", argv[2], seconds() - begin, g->wanted);
	}
	memory_order_free(o);
	memory_source_close(&g->source);
	return 0;
}
