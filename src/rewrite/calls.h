/* SPDX-License-Identifier: Apache-2.0 */
/* calls.h - which functions are called through the runtime library. Private to rewrite. */
#ifndef LONGPOLE_REWRITE_CALLS_H
#define LONGPOLE_REWRITE_CALLS_H

#include "rewrite/att.h"

#define REWRITE_CALL_PREFIX "longpole_at_"
bool rewrite_call_is_replaced(struct att_text name);

#endif
