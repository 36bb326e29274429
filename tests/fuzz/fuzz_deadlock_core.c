/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_deadlock_core.c - any bytes as the image of a process that was dumped: refused, or threads
 * that are looked at, with what they wait for and where. */
#include "deadlock/facts/core.h"
#include "deadlock/private.h"
#include "fuzz_file.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes)
{
	static struct fuzz_file file = {.fd = -1};
	struct deadlock_core *core;
	struct deadlock_world *world = NULL;
	struct base_err err = {0};
	if (!fuzz_file_put(&file, data, size_bytes) ||
		deadlock_core_open(file.path, &core, &err) != BASE_OK)
		return 0;
	size_t nr;
	const struct deadlock_wait *wait = deadlock_core_waits(core, &nr);
	BASE_ASSERT(nr > 0);
	for (size_t i = 0; i < nr && i < 4; i++) {
		uint8_t bytes[64];
		BASE_ASSERT(deadlock_core_has_thread(core, wait[i].thread.tid));
		(void)deadlock_core_read(core, wait[i].sp, bytes, sizeof bytes);
		(void)deadlock_core_read(core, wait[i].pc, bytes, sizeof bytes);
	}
	if (deadlock_world_open_core(core, &world, &err) == BASE_OK)
		deadlock_world_close(world);
	deadlock_core_close(core);
	return 0;
}
