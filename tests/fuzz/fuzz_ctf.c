/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_ctf.c - a directory of CTF: behind two bytes of its length `metadata`, the rest a stream.
 * The library reads it in a child, so what goes on there does not guide the fuzzer. */
#include "format/format.h"
#include "fuzz_import.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

static bool put(const char *dir, const char *name, const uint8_t *bytes, size_t nr)
{
	char path[96];
	snprintf(path, sizeof path, "%s/%s", dir, name);
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	bool good = fd >= 0 && write(fd, bytes, nr) == (ssize_t)nr;
	if (fd >= 0)
		close(fd);
	return good;
}

static void take_away(const char *dir)
{
	static const char *const name[] = {"metadata", "stream"};
	for (size_t i = 0; i < BASE_COUNT(name); i++) {
		char path[96];
		snprintf(path, sizeof path, "%s/%s", dir, name[i]);
		unlink(path);
	}
	rmdir(dir);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes)
{
	char dir[] = "/dev/shm/longpole-fuzz-ctf-XXXXXX";
	if (size_bytes < 2 || !mkdtemp(dir))
		return 0;
	size_t first = (size_t)data[0] | (size_t)data[1] << 8;
	data += 2;
	size_bytes -= 2;
	first = first < size_bytes ? first : size_bytes;
	if (put(dir, "metadata", data, first) &&
		put(dir, "stream", data + first, size_bytes - first))
		fuzz_import_from("ctf", (struct format_source){.name = "input", .path = dir});
	take_away(dir);
	return 0;
}
