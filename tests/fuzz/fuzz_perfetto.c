/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_perfetto.c - any bytes as a Perfetto trace. */
#include "fuzz_import.h"

#include "format/format.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes)
{
	fuzz_import("perfetto", data, size_bytes);
	return 0;
}
