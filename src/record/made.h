/* SPDX-License-Identifier: Apache-2.0 */
/* made.h - names of locks that have no symbol: after who made them. */
#ifndef LONGPOLE_RECORD_MADE_H
#define LONGPOLE_RECORD_MADE_H

#include "record/defs.h"

/* Names the objects from number `from` of s->made on, those that have no name yet. The functions of
 * the sites in question are known. */
void record_sink_name_made(struct record_sink *s, size_t from);

#endif
