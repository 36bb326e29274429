/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_summaries.c - lines of other hosts' `longpole top --json`: whatever they are, the ranking can be
 * written. */
#include "report/top.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct report_merge *m = report_merge_new();
	struct report_style style = {.columns = 80};
	struct base_str text = {0};
	while (m && size) {
		const uint8_t *end = memchr(data, '\n', size);
		size_t length = end ? (size_t)(end - data) : size;
		struct base_err err = {0};
		if (report_merge_add(m, (const char *)data, length, &err) != BASE_OK &&
			err.status == BASE_ERR_NOMEM)
			break;
		length += end != NULL;
		data += length;
		size -= length;
	}
	if (m) {
		report_merge_text(&text, m, 3, &style);
		json_decref(report_merge_json(m, 3));
	}
	base_str_fini(&text);
	report_merge_free(m);
	return 0;
}
