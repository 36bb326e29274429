/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_memory_text.c - any text as a machine's configuration, a memory usage file, an event trace.
 */
#include "memory/cdat/cdat.h"
#include "memory/tdat.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void fuzz_machine(const char *text)
{
	struct base_err err = {0};
	struct memory_cdat_config *k = memory_cdat_config_new();
	if (!k)
		abort();
	enum base_status s = memory_cdat_config_read(k, text, "fuzz", &err);
	if (s == BASE_OK)
		s = memory_cdat_config_check(k, &err);
	if (s != BASE_OK && !err.nr_causes)
		abort();
	(void)!memory_cdat_config_set(k, text, &err);
	memory_cdat_config_free(k);
}

static void fuzz_usage(const char *text)
{
	struct base_err err = {0};
	struct memory_ciat_page *page;
	size_t nr;
	if (memory_ciat_usage_read(text, "fuzz", &page, &nr, &err) != BASE_OK && !err.nr_causes)
		abort();
	base_free(page);
}

static void fuzz_events(const char *text, size_t size)
{
	struct memory_tdat_options o = {.bin_clocks = 1 << 16, .field = 2, .value = 1};
	struct memory_tdat *t;
	const struct memory_tdat_result *r;
	struct base_err err = {0};
	if (memory_tdat_new(&o, &t, &err) != BASE_OK)
		abort();
	const char *end = text + size;
	while (text < end) {
		const char *stop = memchr(text, '\n', (size_t)(end - text));
		stop = stop ? stop : end;
		if (stop - text < 20) /* clocks of 10^19 need many bins, and much time here */
			(void)!memory_tdat_line(t, text, (size_t)(stop - text), &err);
		text = stop + 1;
	}
	if (memory_tdat_finish(t, &r, &err) == BASE_OK && r->nr_bins < 1 << 16) {
		struct base_str out = {0};
		memory_tdat_plot(&out, r, 80, 10, true);
		memory_tdat_svg(&out, r, "fuzz");
		base_str_fini(&out);
	}
	memory_tdat_free(t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);
	if (!text)
		abort();
	memcpy(text, data, size);
	text[size] = '\0';
	fuzz_machine(text);
	fuzz_usage(text);
	fuzz_events(text, size);
	free(text);
	return 0;
}
