/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_golive.c - any bytes as a Go program's file. Every question has an answer, or none. */
#include "golive/private.h"

#include <string.h>

enum { PLACES = 8, CODE_STEPS = 64, REASONS = 8 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void ask_for_place(const struct golive_image *im, uint64_t pc)
{
	struct golive_place place[PLACES];
	size_t nr = golive_image_places(im, pc, place, PLACES);
	BASE_ASSERT(nr <= PLACES);
	for (size_t i = 0; i < nr; i++)
		BASE_ASSERT(place[i].function && place[i].file && place[i].entry <= pc);
	(void)golive_image_wrapped(im, pc);
}

/* Records and samples at places of the file: a goroutine is born, runs, and falls asleep. */
static void ask_for_events(const struct golive_image *im)
{
	const struct os_clock clock = {.factor = UINT64_C(1) << OS_CLOCK_FACTOR_SHIFT};
	struct golive_record record[] = {
		{.ticks = 1, .g = 8, .before = 6, .after = 1, .goid = 1, .what = im->text},
		{.ticks = 2, .g = 8, .before = 1, .after = 2, .goid = 1, .tid = 7},
		{.ticks = 5,
			.g = 8,
			.before = 2,
			.after = 4,
			.goid = 1,
			.reason = 2,
			.by = 8,
			.tid = 7,
			.room = UINT32_MAX,
			.pc = {im->text + 1, im->text + 17}},
	};
	uint64_t pc[] = {im->text + 2, im->text + 33};
	struct golive_sample sample[] = {
		{.time_ns = 3, .tid = 7, .nr = BASE_COUNT(pc), .top = im->text + 17},
		{.time_ns = 4, .tid = 7, .nr = 1}};
	const struct golive_samples samples = {.clock = &clock,
		.sample = sample,
		.nr = BASE_COUNT(sample),
		.pc = pc,
		.nr_pcs = BASE_COUNT(pc)};
	const struct golive_seen seen = {.image = im,
		.record = record,
		.nr_records = BASE_COUNT(record),
		.samples = &samples,
		.clock = &clock};
	struct base_err err = {0};
	struct gotrace *t = NULL;
	if (golive_events(&seen, &t, &err) == BASE_OK)
		BASE_ASSERT(t->nr_events > 0);
	gotrace_free(t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct golive_image im;
	struct base_err err = {0};
	char text[64];
	if (golive_image_read(&im, data, size, &err) != BASE_OK)
		return 0;
	(void)golive_image_function(&im, "runtime.casgstatus");
	for (uint64_t i = 0; i < CODE_STEPS; i++)
		ask_for_place(&im, im.text + i * 8);
	uint64_t reasons = golive_image_reasons(&im);
	for (uint32_t i = 0; i < REASONS; i++)
		if (golive_image_reason(&im, reasons, i, text, sizeof text))
			BASE_ASSERT(strlen(text) < sizeof text);
	ask_for_events(&im);
	return 0;
}
