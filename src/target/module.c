/* SPDX-License-Identifier: Apache-2.0 */
/* module.c - in each module that has rewritten code: tells the runtime library its tables.
 */
#include "memory/stream/stream.h"

#include <stddef.h>

#define EDGE extern __attribute__((weak, visibility("hidden")))
EDGE struct memory_block_head __start_longpole_blocks[], __stop_longpole_blocks[];
EDGE const uint8_t __start_longpole_info[], __stop_longpole_info[];
EDGE const struct memory_maybe __start_longpole_maybe[], __stop_longpole_maybe[];
EDGE const char __start_longpole_at[], __stop_longpole_at[];

void longpole_target_stubs(const char *from, const char *to);
void longpole_memory_register(struct memory_block_head *heads, struct memory_block_head *heads_end,
	const uint8_t *info, const uint8_t *info_end, const struct memory_maybe *maybe,
	const struct memory_maybe *maybe_end);

__attribute__((constructor(101))) static void tell(void)
{
	if (__start_longpole_at)
		longpole_target_stubs(__start_longpole_at, __stop_longpole_at);
	if (__start_longpole_blocks)
		longpole_memory_register(__start_longpole_blocks, __stop_longpole_blocks,
			__start_longpole_info, __stop_longpole_info, __start_longpole_maybe,
			__stop_longpole_maybe);
}
