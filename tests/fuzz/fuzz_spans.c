/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_spans.c - any bytes as JSON of spans, and as JSON of slices. */
#include "fuzz_import.h"

#include "format/format.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes)
{
	fuzz_import("otlp", data, size_bytes);
	fuzz_import("chrome", data, size_bytes);
	return 0;
}
