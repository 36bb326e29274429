/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_go.c - any bytes as Go's execution trace, of both formats. */
#include "fuzz_import.h"

#include "format/format.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes)
{
	fuzz_import("go", data, size_bytes);
	return 0;
}
