/* SPDX-License-Identifier: Apache-2.0 */
/* annotate.c - longpole/annotate.h for languages that cannot include it. */
#include "longpole/annotate.h"

#include "longpole/trace.h"

const struct longpole_hooks *longpole_annotate_hooks(void)
{
	return longpole_hooks_now();
}
