/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_nsys.c - any bytes as a database of Nsight Systems. */
#include "fuzz_import.h"

#include "format/format.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes)
{
	char path[] = "/dev/shm/longpole-fuzz-nsys-XXXXXX";
	int fd = mkstemp(path);
	if (fd < 0)
		return 0;
	bool good = write(fd, data, size_bytes) == (ssize_t)size_bytes;
	close(fd);
	if (good)
		fuzz_import_from("nsys", (struct format_source){.name = "input", .path = path});
	unlink(path);
	return 0;
}
