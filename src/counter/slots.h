/* SPDX-License-Identifier: Apache-2.0 */
/* slots.h - the slots that BPF fills, from the reader's side: see slots_abi.h. */
#ifndef LONGPOLE_COUNTER_SLOTS_H
#define LONGPOLE_COUNTER_SLOTS_H

#include <linux/types.h>

#include "counter/slots_abi.h"

/* "PID:FD": the loader, and its descriptor of the map; taken from it by pidfd_getfd. */
#define COUNTER_SLOTS_ENVIRONMENT "LONGPOLE_COUNTER_SLOTS"

#endif
