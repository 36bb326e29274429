/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * mode.h - what this tool can do to a program: one struct a mode. A mode decides what is put into
 * the program's code, and writes a file when the program ends.
 */
#ifndef LONGPOLE_VALGRIND_MODE_H
#define LONGPOLE_VALGRIND_MODE_H

#include "pub_tool_basics.h"

#include "pub_tool_machine.h"
#include "pub_tool_tooliface.h"

struct mode {
	const HChar *name;  /* --mode=NAME */
	const HChar *about; /* for --help */
	Bool no_lines;      /* names of functions are enough: source lines need not be read */
	/* All may be NULL but instrument. */
	Bool (*option)(const HChar *arg);
	void (*usage)(void);
	void (*begin)(void);
	IRSB *(*instrument)(IRSB *in, const VexGuestLayout *layout, const VexGuestExtents *extents);
	void (*switched_to)(ThreadId tid); /* from now on this thread runs */
	void (*created)(ThreadId parent, ThreadId child);
	void (*calls_kernel)(ThreadId tid, UInt number);
	void (*called_kernel)(
		ThreadId tid, UInt number, const UWord *args, UInt nr_args, SysRes result);
	void (*signalled)(ThreadId tid, Int signal);
	void (*exits)(ThreadId tid);
	/* A system call reads or writes memory. */
	void (*accessed)(ThreadId tid, Bool store, Addr address, SizeT bytes);
	void (*end)(const HChar *path);
};

extern const struct mode mode_spin, mode_memory;

#endif
