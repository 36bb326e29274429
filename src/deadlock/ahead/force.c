/* SPDX-License-Identifier: Apache-2.0 */
/*
 * force.c - predicates. A thread that waits for a condition variable looks, after it was woken,
 * whether what it waits for has come, and waits again when not. In the copy it never has. So the
 * copy is stepped to the first (kth) conditional jump that the application itself makes after the
 * wait, and takes the side that it would not have taken. What it then produces is weaker evidence
 * (is_forced).
 */
#include "deadlock/ahead/decode.h"
#include "deadlock/ahead/emulate.h"

#include <string.h>

enum { STEPS_MAX = 20000 };

static bool is_application(struct deadlock_copy *c, uint64_t pc)
{
	const struct os_region *r = deadlock_process_region(c->world, c->process, pc);
	const char *slash = r ? strrchr(r->path, '/') : NULL;
	return r && !deadlock_module_is_runtime(slash ? slash + 1 : r->path);
}

/* The jump was made: undoes the choice. */
static void take_other_side(
	struct deadlock_copy *c, const struct deadlock_instruction *i, uint64_t behind)
{
	struct user_regs_struct *r = deadlock_ghost_registers(c->ghost);
	r->rip = r->rip == i->target ? behind : i->target;
	c->no_more_hypotheses = true;
	c->run->is_forced = true;
}

void deadlock_copy_force(struct deadlock_copy *c, uint32_t k)
{
	uint32_t seen = 0;
	for (unsigned steps = 0; !c->is_done && steps < STEPS_MAX; steps++) {
		const uint64_t pc = deadlock_ghost_registers(c->ghost)->rip;
		struct deadlock_instruction i = {0};
		const bool counts = is_application(c, pc) && deadlock_decode_next(c->ghost, &i) &&
				    i.is_conditional_jump;
		const enum deadlock_stop stop = deadlock_ghost_go(c->ghost, true);
		if (stop != DEADLOCK_STOP_TRAP) {
			deadlock_copy_at_stop(c, stop);
			continue;
		}
		if (counts && ++seen == k) {
			take_other_side(c, &i, pc + i.length);
			return;
		}
	}
	deadlock_copy_end(c, DEADLOCK_END_FAILED, "it makes no decision after the wait");
}
