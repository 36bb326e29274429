/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_short.c - any text as a name, and as a text with names: what is said is not longer than a
 * little more than it, and not nothing. */
#include "symbol/symbol.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes)
{
	char *text = base_alloc(size_bytes + 1);
	if (!text)
		return 0;
	memcpy(text, data, size_bytes);
	for (int utf8 = 0; utf8 < 2; utf8++) {
		struct base_str name = {0}, all = {0};
		symbol_short_add(&name, text, utf8);
		symbol_short_add_text(&all, text, utf8);
		BASE_ASSERT(!*text == !name.length && name.length <= 2 * strlen(text) + 16);
		BASE_ASSERT(!*text == !all.length && all.length <= 2 * strlen(text) + 16);
		base_str_fini(&name);
		base_str_fini(&all);
	}
	(void)symbol_is_plumbing(text);
	base_free(text);
	return 0;
}
