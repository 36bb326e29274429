/* SPDX-License-Identifier: Apache-2.0 */
/*
 * silent.h - how many stores wrote what was there already: a table for ciat's report. Only stores
 * that the recorder could compare count: single ones of up to 32 bytes, indivisible ones; not
 * string instructions, ranges, or what the kernel writes.
 */
#ifndef LONGPOLE_MEMORY_SILENT_H
#define LONGPOLE_MEMORY_SILENT_H

#include "memory/stream/source.h"

#include <jansson.h>

/* Nothing, when the source does not know. */
void memory_silent_text(struct base_str *out, const struct memory_source *s, uint32_t nr_threads);
/* NULL, when the source does not know. */
json_t *memory_silent_json(const struct memory_source *s, uint32_t nr_threads);

#endif
