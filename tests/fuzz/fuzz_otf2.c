/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_otf2.c - what the reader of an OTF2 archive hands over, from a child whose memory that archive may have damaged: a
 * text, then items, in turn. Refused, or a trace that can be read and modelled. */
#include "format/otf2/items.h"
#include "fuzz_import.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes)
{
	struct base_err err = {0};
	struct base_str notes = {0};
	enum base_status s = BASE_OK;
	struct fuzz_trace t = fuzz_trace_begin(TRACE_INFO_SYNTHETIC | TRACE_INFO_MERGED);
	struct otf2_import *im = format_otf2_new(t.w, "program");
	BASE_ASSERT(im != NULL);
	const struct format_apart_items *to = format_otf2_items(im);
	/* a byte: so many bytes of text; 0: an item of the shortest form, one byte a value, its kind and location */
	while (s == BASE_OK && size_bytes > OTF2_VALUES + 4) {
		size_t length = *data++;
		size_bytes--;
		if (length) {
			length = length < size_bytes ? length : size_bytes;
			s = to->text(to->ctx, (const char *)data, length, &err);
		} else {
			struct otf2_item i = {
				.kind = data[0], .location = data[1], .ticks = data[2]};
			length = 3 + OTF2_VALUES;
			for (size_t k = 0; k < OTF2_VALUES; k++)
				i.value[k] = data[3 + k] == 0xff ? UINT32_MAX : data[3 + k];
			s = to->items(to->ctx, (const uint8_t *)&i, sizeof i, &err);
		}
		data += length;
		size_bytes -= length;
	}
	if (s == BASE_OK)
		s = format_otf2_close(im, &notes, &err);
	BASE_ASSERT(s == BASE_OK || s == BASE_ERR_FOREIGN || s == BASE_ERR_LIMIT);
	format_otf2_free(im);
	base_str_fini(&notes);
	fuzz_trace_end(&t, s == BASE_OK);
	return 0;
}
