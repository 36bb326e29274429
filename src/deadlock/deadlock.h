/* SPDX-License-Identifier: Apache-2.0 */
/*
 * deadlock.h - deadlocks of running programs: who waits for what, who could end it, and whether
 * anybody will.
 */
#ifndef LONGPOLE_DEADLOCK_DEADLOCK_H
#define LONGPOLE_DEADLOCK_DEADLOCK_H

#include "deadlock/types.h"

#endif
