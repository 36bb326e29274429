/* SPDX-License-Identifier: Apache-2.0 */
/* full.h - the events that only SYSTEM_LEVEL_full has: a handler of each. */
#ifndef LONGPOLE_SYSTEM_FULL_H
#define LONGPOLE_SYSTEM_FULL_H

#include "system/convert.h"

/* NULL: not one of them. */
system_kernel_handler *system_full_handler(unsigned type);

#endif
