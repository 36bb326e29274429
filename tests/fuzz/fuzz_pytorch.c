/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_pytorch.c - any bytes as a file of PyTorch's profiler. */
#include "fuzz_import.h"

#include "format/format.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes)
{
	fuzz_import("pytorch", data, size_bytes);
	return 0;
}
