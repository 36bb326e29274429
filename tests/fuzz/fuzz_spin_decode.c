/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_spin_decode.c - bytes that claim to be an instruction about to be stepped. */
#include "spin/decode.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct user_regs_struct regs = {.rip = 4096, .rsp = 65536};
	struct spin_instruction i;
	for (; size; data++, size--) {
		if (!spin_decode(data, size < SPIN_CODE_MAX ? size : SPIN_CODE_MAX, &i))
			continue;
		if (!i.length || i.length > size || i.nr_accesses > SPIN_ACCESSES)
			__builtin_trap();
		for (unsigned k = 0; k < i.nr_accesses; k++) {
			if (i.access[k].size_bytes > SPIN_ACCESS_MAX)
				__builtin_trap();
			(void)spin_address(&i, &i.access[k], &regs);
		}
	}
	return 0;
}
