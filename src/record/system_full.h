/* SPDX-License-Identifier: Apache-2.0 */
/* system_full.h - the events that only RECORD_LEVEL_full has: a handler of each. */
#ifndef LONGPOLE_RECORD_SYSTEM_FULL_H
#define LONGPOLE_RECORD_SYSTEM_FULL_H

#include "record/system_convert.h"

/* NULL: not one of them. */
record_kernel_handler *record_full_handler(unsigned type);

#endif
