/* SPDX-License-Identifier: Apache-2.0 */
/*
 * attach.h - what the recorder hands over to the library that it brings into a process that runs
 * already (preload/late.c): no environment, the words are an argument. The caller had to be allowed
 * to trace the process, so it could do anything to it anyhow; they are checked against mistakes.
 */
#ifndef LONGPOLE_RING_ATTACH_H
#define LONGPOLE_RING_ATTACH_H

#include <stdint.h>

/* The library's function: struct ring_attach. Its thread stays in it while the recording lasts. */
#define RING_ATTACH_ENTRY "longpole_preload_attach"
enum { RING_ATTACH_PATH_BYTES = 256 };

struct ring_attach {
	uint32_t version;  /* RING_VERSION */
	uint32_t reserved; /* 0 */
	/* Memory that was mapped for the call's code and words: the library unmaps it. */
	uint64_t scaffold, scaffold_bytes;
	/* The ring's file as the process finds it, of a descriptor of the recorder's:
	 * /proc/PID/fd/N. That this name is the same file says that the recorder lives. */
	char ring[RING_ATTACH_PATH_BYTES];
	/* For programs that it executes: the ring's file by its own name, and the library as LD_PRELOAD can say it. "": it does not have
	 * our files. */
	char named[RING_ATTACH_PATH_BYTES], library[RING_ATTACH_PATH_BYTES];
};

/* ring_head.attach_state: what the library says of it. */
enum ring_attach_state { RING_ATTACH_none, RING_ATTACH_in, RING_ATTACH_out };

/* What the entry returns when nothing was changed; 0 never comes back: its thread has ended. */
enum ring_attach_refusal {
	RING_ATTACH_version = 1, /* the library is of another version */
	RING_ATTACH_busy,        /* it records already, or was there when the program began */
	RING_ATTACH_ring,        /* the ring cannot be opened, or is not to be trusted */
	RING_ATTACH_forbidden    /* the process has forbidden itself calls, or the clock */
};

#endif
