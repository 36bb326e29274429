/* SPDX-License-Identifier: Apache-2.0 */
/* names.h - names for all that a trace mentions, when everything is known. */
#ifndef LONGPOLE_RECORD_NAMES_H
#define LONGPOLE_RECORD_NAMES_H

#include "record/defs.h"
#include "symbol/symbol.h"

/* Places in the code that have no function's name: all, and the module with most of them. */
struct record_unnamed {
	uint64_t nr, nr_most;
	uint32_t module;
	enum symbol_why why, opened; /* opened: of the module just looked at */
};

/* Write a symbol for each site whose module can be read, and names of objects in static memory: at
 * the end, one file at a time; debug
 * files are fetched where debuginfod is configured. Returns how many sites. */
uint64_t record_sink_name_all(struct record_sink *s, struct record_unnamed *ret);
/* Then, where operations were only counted: condition variables and semaphores in static memory
 * that still have no name get "FILE+0xOFFSET". No place is counted with them that could tell whose
 * they are, and their addresses are others in each run. */
void record_sink_name_placeless(struct record_sink *s);

/* How far the naming of a recording without an end has come; {0} at first. Keeps the files open
 * that it has read. */
struct record_namer {
	struct symbol_file **module; /* by id; NULL: not looked at, or cannot be read */
	bool *looked_at;
	size_t module_capacity, looked_capacity;
	uint32_t nr_sites; /* those up to here have been looked at */
	size_t nr_named, nr_made;
};

/* The same for what is new. */
uint64_t record_namer_look(struct record_namer *n, struct record_sink *s);
void record_namer_fini(struct record_namer *n);

#endif
