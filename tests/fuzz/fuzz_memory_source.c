/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_memory_source.c - any bytes as a memory trace of any format, through ciat and cdat: batches
 * keep their promises, analyses end, the coherence monitor has nothing to object. */
#include "memory/cdat/cdat.h"
#include "memory/ciat/ciat.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { STEPS_MAX = 1 << 14 };

static struct memory_source *open_bytes(const char *format, const char *path)
{
	struct memory_source *s;
	struct base_err err = {0};
	enum base_status status = memory_source_open(format, &path, 1, &s, &err);
	if (status != BASE_OK && !err.nr_causes)
		abort();
	return status == BASE_OK ? s : NULL;
}

static void check_batches(struct memory_source *s)
{
	bool total = s->info.flags & MEMORY_SOURCE_TOTAL_ORDER;
	for (uint32_t t = 0; t < (total ? 1 : s->info.nr_threads); t++) {
		struct memory_batch b;
		struct base_err err = {0};
		while (memory_source_next(s, total ? MEMORY_ANY_THREAD : (int)t, &b, &err) ==
			BASE_OK)
			if (memory_batch_check(&b, &err) != BASE_OK)
				abort();
	}
}

static void analyse(struct memory_source *s, uint8_t how)
{
	struct memory_order_options order = {.disk_latency_ms = -1,
		.mode = (enum memory_order_mode)(how & 3),
		.nr_processors = 2,
		.handle_io = how & 4,
		.buffered_io = how & 8};
	struct memory_ciat_options ciat = {
		.with_reuse = true, .with_functions = true, .memory_limit_bytes = 8 << 20};
	struct memory_cdat_options cdat = {.check = true, .memory_limit_bytes = 8 << 20};
	struct memory_order *o = NULL;
	struct memory_ciat *a = NULL;
	struct memory_cdat *b = NULL;
	struct memory_cdat_config *k = memory_cdat_config_new();
	struct base_err err = {0};
	size_t nr_protocols, nr_steps = 0;
	if (!k)
		abort();
	k->protocol = memory_cdat_protocols(&nr_protocols) + how % 12;
	k->nodes = 2;
	k->processors = s->info.nr_threads / 2 + 1;
	k->data_bytes = 256;
	k->code_bytes = 256;
	k->second_bytes = how & 16 ? 512 : 0;
	k->inclusive = how >> 5 & 1;
	enum base_status status = memory_order_new(s, NULL, &order, &o, &err);
	if (status == BASE_OK)
		status = memory_ciat_new(memory_order_threads(o), &ciat, &a, &err);
	if (status == BASE_OK)
		status = memory_cdat_new(k, memory_order_threads(o), &cdat, &b, &err);
	while (status == BASE_OK && nr_steps < STEPS_MAX) {
		struct memory_steps steps;
		status = memory_order_next(o, &steps, &err);
		nr_steps += steps.nr;
		if (status == BASE_OK)
			status = memory_ciat_add(a, &steps, &err);
		if (status == BASE_OK)
			status = memory_cdat_add(b, &steps, &err);
	}
	if (status == BASE_ERR_CORRUPT) /* the monitor's word */
		abort();
	const struct memory_ciat_result *r;
	if (status == BASE_END && memory_ciat_finish(a, 0, &r, &err) == BASE_OK) {
		struct base_str text = {0};
		memory_ciat_tags(&text, r);
		memory_ciat_usage_file(&text, r);
		json_decref(memory_ciat_json(r, s, NULL));
		base_str_fini(&text);
	}
	memory_cdat_free(b);
	memory_ciat_free(a);
	memory_order_free(o);
	memory_cdat_config_free(k);
}

/* First byte: options; the rest is the file. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const format[] = {"smait", "lackey", "din", "drmemtrace"};
	char path[64];
	if (!size)
		return 0;
	int fd = memfd_create("trace", MFD_CLOEXEC);
	if (fd < 0 || write(fd, data + 1, size - 1) != (ssize_t)(size - 1))
		abort();
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	for (size_t i = 0; i < sizeof format / sizeof *format; i++) {
		struct memory_source *s = open_bytes(format[i], path);
		if (!s)
			continue;
		check_batches(s);
		struct base_err err = {0};
		if (s->ops->rewind(s, &err) != BASE_OK)
			abort();
		analyse(s, data[0]);
		memory_source_close(s);
	}
	close(fd);
	return 0;
}
