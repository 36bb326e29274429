/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_pytorch.c - any bytes as files of PyTorch's profiler: "~" at the begin of a line parts two ranks. */
#include "fuzz_import.h"

#include "format/format.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes)
{
	const uint8_t *second = memmem(data, size_bytes, "\n~", 2);
	size_t first = second ? (size_t)(second - data) : size_bytes;
	struct memory memory[2] = {{data, first}};
	struct format_source other, from = memory_source(&memory[0], "one");
	if (second) {
		memory[1] = (struct memory){second + 2, size_bytes - first - 2};
		other = memory_source(&memory[1], "other");
		from.next = &other;
	}
	fuzz_import_from("pytorch", from);
	return 0;
}
