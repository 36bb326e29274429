/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_att.c - any bytes as assembly text: split, scanned, written with labels, split again; and as
 * machine code. */
#include "rewrite/att.h"
#include "rewrite/machine.h"
#include "rewrite/rewrite.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes);

static void look_at(const struct att_statement *s)
{
	struct att_text part[8];
	struct rewrite_att_memory m;
	size_t nr = rewrite_att_parts(rewrite_att_rest(s), part, BASE_COUNT(part));
	for (size_t i = 0; i < nr && i < BASE_COUNT(part); i++)
		if (rewrite_att_memory(part[i], &m))
			BASE_ASSERT(m.symbol.length <= part[i].length &&
				    m.inside.length <= part[i].length);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes)
{
	const char *text = (const char *)data;
	struct rewrite_options o = {.size = sizeof o, .level = 3};
	struct rewrite *w;
	struct att_file f, again;
	struct machine_instruction m;
	if (rewrite_decode(data, size_bytes, &m))
		BASE_ASSERT(m.length && m.length <= size_bytes &&
			    m.nr_accesses <= MACHINE_ACCESSES_MAX);
	(void)rewrite_is_compiled(text, size_bytes);
	if (rewrite_att_split(text, size_bytes, &f, NULL) != BASE_OK)
		return 0;
	for (size_t i = 0; i < f.nr; i++)
		look_at(&f.statement[i]);
	if (rewrite_new(text, size_bytes, &o, &w, NULL) == BASE_OK) {
		struct base_str out = {0};
		rewrite_labelled(w, &out);
		/* The labels are all that was added. */
		if (!out.failed && rewrite_att_split(out.buf ? out.buf : "", out.length, &again,
					   NULL) == BASE_OK) {
			BASE_ASSERT(again.nr >= f.nr || size_bytes);
			rewrite_att_file_fini(&again);
		}
		base_str_fini(&out);
		rewrite_free(w);
	}
	rewrite_att_file_fini(&f);
	return 0;
}
