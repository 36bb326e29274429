/* SPDX-License-Identifier: GPL-2.0-or-later */
/* lean.h - a superblock that does the same in less time. */
#ifndef LONGPOLE_VALGRIND_LEAN_H
#define LONGPOLE_VALGRIND_LEAN_H

#include "pub_tool_basics.h"

#include "pub_tool_tooliface.h"

/* Of flat code. The same accesses in the same order; `exact`: the vector registers are right at
 * each access that may fail, as if it had been translated by VexRegUpdAllregsAtMemAccess. */
IRSB *lean(IRSB *in, Bool exact);

#endif
