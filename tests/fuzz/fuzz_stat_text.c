/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_stat_text.c - /proc's texts of a thread: any bytes give counts or false. */
#include "stat/stat.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct stat_counts counts = {0};
	char comm[STAT_COMM];
	uint64_t migrations;
	char *text = base_alloc(size + 1);
	if (!text)
		return 0;
	if (size)
		memcpy(text, data, size);
	if (stat_parse_stat(text, &counts, comm))
		BASE_ASSERT(strlen(comm) < STAT_COMM);
	(void)stat_parse_schedstat(text, &counts);
	(void)stat_parse_status(text, &counts);
	(void)stat_parse_sched(text, &migrations);
	base_free(text);
	return 0;
}
