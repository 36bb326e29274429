/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stack.h - records that come first in, last out, in bounded memory: what is deeper than the budget
 * lies in an unlinked temporary file. Private to the layer.
 */
#ifndef LONGPOLE_SLACK_STACK_H
#define LONGPOLE_SLACK_STACK_H

#include "base/base.h"

enum { SLACK_STACK_SEGMENT_BYTES = 1 << 18 };

/* Several stacks may share one. */
struct slack_budget {
	uint64_t left_bytes, spilled_bytes;
};
struct slack_stack {
	struct slack_budget *budget;
	size_t record_bytes, per_segment;
	char **segment;                       /* NULL: in the file */
	size_t nr_segments, capacity, lowest; /* the first one that is in memory */
	uint64_t nr;
	int file; /* -1: none yet */
};
void slack_stack_init(struct slack_stack *s, size_t record_bytes, struct slack_budget *budget);
void slack_stack_fini(struct slack_stack *s);
enum base_status slack_stack_push(
	struct slack_stack *s, const void *record, struct base_err *err) BASE_MUST_CHECK;
/* BASE_END: it is empty. */
enum base_status slack_stack_pop(
	struct slack_stack *s, void *record, struct base_err *err) BASE_MUST_CHECK;

#endif
