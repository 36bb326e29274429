/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_xla.c - any bytes as an XSpace. */
#include "fuzz_import.h"

#include "format/format.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes)
{
	fuzz_import("xla", data, size_bytes);
	return 0;
}
