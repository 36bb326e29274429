/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_tracecmd.c - any bytes as a trace.dat; the library reads it in a child, as with CTF. */
#include "format/format.h"
#include "fuzz_file.h"
#include "fuzz_import.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes)
{
	static struct fuzz_file file = {.fd = -1};
	if (fuzz_file_put(&file, data, size_bytes))
		fuzz_import_from(
			"tracecmd", (struct format_source){.name = "input", .path = file.path});
	return 0;
}
