/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_system_format.c - a tracefs format file, and a record read by it; /proc/kallsyms. */
#include "system/format.h"
#include "system/kernel_names.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const names[] = {"prev_pid", "prev_state", "args", "pid"};
	struct system_kernel_names kernel = {0};
	struct system_format f;
	uint64_t start;
	char *text = base_alloc(size + 1);
	if (!text)
		return 0;
	memcpy(text, data, size);
	text[size] = 0;
	if (system_format_parse(text, names, BASE_COUNT(names), &f))
		for (unsigned i = 0; i < BASE_COUNT(names); i++)
			(void)system_format_get(&f, i, data, size);
	for (char *line = text; line && *line;
		line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL)
		(void)!system_kernel_names_parse(&kernel, line);
	system_kernel_names_sort(&kernel);
	for (uint64_t a = 1; a; a <<= 1)
		(void)system_kernel_names_find(&kernel, a, &start);
	base_free(kernel.name);
	base_free(kernel.texts);
	base_free(text);
	return 0;
}
