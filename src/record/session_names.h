/* SPDX-License-Identifier: Apache-2.0 */
/* session_names.h - names for all that a trace mentions, when everything is known. */
#ifndef LONGPOLE_RECORD_SESSION_NAMES_H
#define LONGPOLE_RECORD_SESSION_NAMES_H

#include "record/session_defs.h"

/* Write a symbol for each site whose module can be read, and names of objects in static memory.
 * Returns how many sites. */
uint64_t record_sink_name_all(struct record_sink *s);

#endif
