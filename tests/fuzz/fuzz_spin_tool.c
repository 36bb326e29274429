/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_spin_tool.c - what claims to be the answer of the tool for Valgrind. */
#include "spin/native.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct spin_answer a = {.arena = base_arena_new(0)};
	struct base_err err = {0};
	if (a.arena && spin_read_tool((const char *)data, size, &a, &err) == BASE_OK) {
		spin_sort(&a);
		for (size_t i = 0; i < a.nr_threads; i++)
			if (a.thread[i].spin_instructions > a.thread[i].instructions)
				__builtin_trap();
	}
	spin_answer_fini(&a);
	return 0;
}
