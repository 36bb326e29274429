/* SPDX-License-Identifier: Apache-2.0 */
/* phase.c - loops that wait and count. */
#include "spin/phase.h"

bool spin_phase_branch(struct spin_phase *p, uint64_t pc)
{
	bool may = pc == p->pc && !p->other && p->nr_polls && p->nr_changes &&
		   p->nr_changes <= SPIN_PHASE_CHANGES;
	bool alike =
		may && p->nr_alike && p->polls == p->last_polls && p->changes == p->last_changes;
	uint32_t nr_alike = alike ? p->nr_alike + (p->nr_alike < SPIN_PHASE_ALIKE) : may;
	*p = (struct spin_phase){
		.pc = pc, .last_polls = p->polls, .last_changes = p->changes, .nr_alike = nr_alike};
	return nr_alike >= SPIN_PHASE_ALIKE;
}
