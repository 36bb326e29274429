/* SPDX-License-Identifier: Apache-2.0 */
/* stack.c - call paths of calls that block, and of what makes locks. */
#include "preload/preload.h"

#include <string.h>
#include <unwind.h>

enum {
	ALWAYS_TAKEN = 64, /* per thread; then */
	ONE_IN = 16,
};

struct walk {
	struct preload_stack *stack;
	uint64_t site;
	uint64_t depth_max;
};

/*
 * The unwinder is linked into us: gcc 12's finds frames by _dl_find_object(), without locks, and
 * cannot be the program's own that is just at work. Frames above the caller's are ours, and so are
 * stubs (meet.h).
 */
static _Unwind_Reason_Code stack_visit(struct _Unwind_Context *context, void *argument)
{
	struct walk *walk = argument;
	struct preload_stack *stack = walk->stack;
	uint64_t address = _Unwind_GetIP(context);
	if (!address || stack->nr_frames >= walk->depth_max)
		return _URC_END_OF_STACK;
	if (preload_has_python() && stack->nr_frames > 0 && preload_python_is_own(address))
		return _URC_END_OF_STACK; /* the interpreter: its Python frames come next */
	if ((stack->nr_frames > 0 || address == walk->site) && !preload_is_stub(address))
		stack->frame[stack->nr_frames++] = address;
	return _URC_NO_REASON;
}

void preload_stack_walk(struct preload_stack *stack, uint64_t site, uint64_t depth_max)
{
	struct preload_thread *self = preload_own();
	struct walk walk = {.stack = stack, .site = site, .depth_max = depth_max};
	stack->nr_frames = 0;
	if (self->busy || self->ended)
		return;
	if (walk.depth_max > RING_STACK_MAX)
		walk.depth_max = RING_STACK_MAX;
	int saved_errno = errno;
	self->busy = 1;
	PRELOAD_BARRIER();
	if (!RING_IS_PLACE(site))
		_Unwind_Backtrace(stack_visit, &walk);
	PRELOAD_BARRIER();
	self->busy = 0;
	errno = saved_errno;
	if (preload_has_python())
		stack->nr_frames += preload_python_frames(
			stack->frame + stack->nr_frames, walk.depth_max - stack->nr_frames);
}

void preload_stack_take(struct preload_stack *stack, uint64_t site)
{
	const struct ring_head *head = preload_fresh.head;
	uint32_t turn = preload_own()->nr_stacks++;
	stack->nr_frames = 0;
	if (!head || (turn >= ALWAYS_TAKEN && turn % ONE_IN != 0))
		return;
	preload_stack_walk(stack, site, head->stack_depth_max);
	preload_modules_check();
}

/* The unwinder sets up tables at its first use: not in the middle of a lock of the program's. */
void preload_stack_warm_up(void)
{
	struct preload_stack stack = {0};
	struct walk walk = {.stack = &stack, .depth_max = 1};
	_Unwind_Backtrace(stack_visit, &walk);
}

void preload_record_stack_at(uint64_t tsc, unsigned kind, const uint64_t *words, size_t nr_words,
	size_t stack_word, const struct preload_stack *stack)
{
	size_t nr_stack_words = stack->nr_frames ? 2 + stack->nr_frames : 0;
	uint64_t *record = preload_reserve(nr_stack_words + 1 + nr_words);
	if (!record)
		return;
	if (nr_stack_words) {
		memcpy(record + 1, stack, (1 + stack->nr_frames) * sizeof(uint64_t));
		preload_publish(record, RING_stack, tsc);
		record += nr_stack_words;
	}
	memcpy(record + 1, words, nr_words * sizeof *words);
	record[stack_word] = nr_stack_words != 0;
	preload_publish(record, kind, tsc);
}

void preload_record_wait(unsigned kind, uint64_t site, const uint64_t *words, size_t nr_words)
{
	uint64_t tsc = preload_now();
	struct preload_stack stack;
	preload_stack_take(&stack, site);
	preload_record_stack_at(tsc, kind, words, nr_words, nr_words, &stack);
}
