/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_perf_data.c - any bytes as a perf.data. */
#include "fuzz_import.h"

#include "format/format.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes)
{
	fuzz_import("perf", data, size_bytes);
	return 0;
}
