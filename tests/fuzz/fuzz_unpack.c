/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_unpack.c - any bytes as a compressed file, and what comes of it (or they themselves) as
 * others' JSON: what is mended is valid, or refused by the parser; numbers are whole. */
#include "format/json.h"
#include "format/unpack.h"
#include "../unit/format_memory.h"

enum { JSON_BYTES_MAX = 1 << 16 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes);

static void read_json(const char *text, size_t length)
{
	struct base_str mended = {0}, again = {0};
	format_json_mend(&mended, text, length);
	BASE_ASSERT(!mended.failed);
	json_error_t e;
	json_t *v = json_loadb(base_str_text(&mended), mended.length,
		JSON_DECODE_ANY | JSON_DISABLE_EOF_CHECK | JSON_ALLOW_NUL, &e);
	/* nothing is left to mend */
	char *own = base_alloc(mended.length + 1);
	BASE_ASSERT(own != NULL);
	memcpy(own, base_str_text(&mended), mended.length);
	format_json_mend(&again, own, mended.length);
	BASE_ASSERT(!v || (again.length == mended.length &&
				  !memcmp(base_str_text(&again), own, mended.length)));
	base_free(own);
	const char *key;
	json_t *member;
	uint64_t number;
	(void)format_json_number(v, &number);
	json_object_foreach(v, key, member)(void) format_json_number(member, &number);
	json_decref(v);
	base_str_fini(&mended);
	base_str_fini(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes)
{
	struct memory memory = {data, size_bytes};
	struct format_source from = memory_source(&memory, "input");
	struct format_unpacked u;
	struct base_err err = {0};
	enum base_status s = format_unpack(&from, &u, &err);
	BASE_ASSERT(s == BASE_OK || s == BASE_ERR_FOREIGN || s == BASE_ERR_LIMIT);
	size_t nr = s == BASE_OK && u.source.size_bytes < JSON_BYTES_MAX
			    ? (size_t)u.source.size_bytes
			    : 0;
	char *text = base_alloc(nr + 1);
	BASE_ASSERT(text != NULL);
	if (nr)
		s = u.source.read(u.source.ctx, 0, text, nr, &err);
	if (s == BASE_OK)
		read_json(text, nr);
	base_free(text);
	format_unpack_fini(&u);
	return 0;
}
