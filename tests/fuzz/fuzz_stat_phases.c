/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_stat_phases.c - the file that a program writes its phases to: whatever is in it, rows or an
 * error. */
#include "counter/phase.h"
#include "stat/stat.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	enum { SLOTS = 64 };
	const struct stat_options options = {.by_thread = true};
	struct stat_result s = {0};
	int fd;
	struct phase_file *file = stat_phases_make(&options, &fd);
	if (!file)
		return 0;
	size_t slots = size < SLOTS * sizeof *file->slot ? size : SLOTS * sizeof *file->slot;
	size_t names = size < sizeof file->names ? size : sizeof file->names;
	memcpy(file->names, data, names);
	memcpy(file->slot, data, slots);
	file->next_slot = size > 3 && data[3] == 0xff ? UINT32_MAX : SLOTS;
	file->tick_hz = size > 8 ? (uint64_t)data[8] << data[7] % 57 : 0;
	if (stat_phases_read(file, &s, NULL) == BASE_OK)
		for (size_t i = 0; i < s.nr_phases; i++)
			BASE_ASSERT(strlen(s.phase[i].name) < STAT_NAME);
	stat_fini(&s);
	stat_phases_free(file, fd);
	return 0;
}
