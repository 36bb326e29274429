/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_journal.c - what a killed recorder kept, restored into a converter that knows a few
 * definitions, and used: a ring record is converted after it. The input is the journal.
 */
#include "session/restore.h"
#include "fuzz_converter.h"

#include <stdlib.h>

static void restore_definitions(struct session_restored *r)
{
	struct trace_record definition[] = {
		{.kind = TRACE_string, .u.string = {.string = 1, .text = {"a", 1}}},
		{.kind = TRACE_process, .u.process = {.process = 2}},
		{.kind = TRACE_stream, .u.stream = {.stream = 3, .process = 1}},
		{.kind = TRACE_module, .u.module = {.module = 1, .path = 1}},
		{.kind = TRACE_site, .u.site = {.site = 2, .module = 1, .offset = 16}},
		{.kind = TRACE_object, .u.object = {.object = 3, .process = 1}},
		{.kind = TRACE_actor, .u.actor = {.actor = 1, .name = 1}},
		{.kind = TRACE_state, .u.state = {.state = 1, .name = 1}},
	};
	for (size_t i = 0; i < BASE_COUNT(definition); i++)
		if (session_restore_record(r, &definition[i], NULL) != BASE_OK)
			abort();
}

struct input {
	const uint8_t *bytes;
	size_t nr;
};

static void use(struct record_converter *c, void *ctx)
{
	const struct input *in = ctx;
	struct session_restored *r = session_restored_new(c);
	enum record_stop stop;
	if (!r)
		return;
	restore_definitions(r);
	if (session_restore_entries(r, in->bytes, in->nr, NULL) == BASE_OK) {
		struct record_thread *t =
			record_converter_thread(c, 1, 0, 0x7ffffff0, 0x7ffffff0, 1);
		const uint64_t word[] = {100 << 8 | TRACE_lock_acquire,
			(uint64_t)TRACE_OBJECT_mutex << RING_OBJECT_TYPE_SHIFT | 0x1000, 0x400010,
			200 << 8 | TRACE_note_end, 0};
		if (t)
			(void)record_convert(c, t, word, 0, BASE_COUNT(word), END, END, &stop);
	}
	session_restored_free(r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	fuzz_converter(use, &(struct input){data, size});
	return 0;
}
