/* SPDX-License-Identifier: GPL-2.0-or-later */
/* spin.h - the spin mode's parts: what code does (spin_code.c), what it comes to (spin_state.c),
 * the answer (spin_out.c). */
#ifndef LONGPOLE_VALGRIND_SPIN_H
#define LONGPOLE_VALGRIND_SPIN_H

#include "mode.h"

#include "spin/detect.h"
#include "spin/phase.h"

#include "libvex_guest_amd64.h"
#include "pub_tool_hashtable.h"

enum {
	ADDRESSES = 4,        /* of a loop, that are shown */
	POLLED_MAX = 8,       /* the load address cache: addresses of one iteration (3.5.2.2) */
	LOOPS_MAX = 16384,    /* (thread, BCT) that are told apart */
	WATCHED_MAX = 4096,   /* words whose writers are known */
	FILTER_BYTES = 65536, /* one for each value of a hash of a watched word's address */
	WRITERS = 4,
	RED_ZONE = 128,
	SIZE_SHIFT = 48, /* above all addresses of user space (with 4 levels of page tables) */
};

/* What translated code reads and writes itself: of the thread that runs. */
struct hot {
	ULong instructions;
	ULong marked;   /* of them: in the range of --marked */
	ULong changed;  /* bit 0: memory was changed since the last BCT */
	ULong tracking; /* 1: loads and stores of this iteration are looked at */
	ULong yields;   /* 1: it has spun long enough */
};
extern struct hot spin_hot;
extern UChar spin_filter[FILTER_BYTES];

static inline UWord spin_filter_at(Addr a)
{
	return a >> 3 & (FILTER_BYTES - 1);
}

struct writer {
	UInt thread; /* serial */
	Addr pc;
	ULong changes;
};
struct polled {
	Addr address;
	UInt size;
	Bool own; /* on the thread's own stack */
};
struct watched { /* an aligned word that a loop polls; a hash node */
	struct watched *next;
	UWord word;
	UInt bytes;                /* of it are polled: a bit each */
	Bool own;                  /* on the stack of the thread that polls it */
	struct writer last, other; /* other: last of another thread than `last` */
	UInt writer[WRITERS];      /* threads that changed it while it was watched */
	UInt nr_writers;
};
struct loop { /* a hash node */
	struct loop *next;
	UWord key;
	UInt thread;
	Addr bct, first; /* the branch, and where it goes */
	ULong spins, spinning, episodes, most_iterations;
	ULong phase_iterations, phase_instructions;
	Addr address[ADDRESSES];
	UInt nr_addresses;
	Bool more_addresses;
};
struct thread {
	struct thread *next;
	UInt serial, parent;
	ThreadId tid;
	struct spin_detector detector;
	struct spin_phase phase;
	ULong phase_began; /* instructions */
	ULong phase_instructions, yields;
	struct hot hot;     /* while another runs */
	uint64_t last[128]; /* registers at the last BCT, as spin_state.c lays them out */
	uint64_t flags;
	Bool known;
	Addr last_bct;
	uint64_t general[16]; /* at the last BCT */
	UInt streak;          /* of iterations of last_bct's loop that computed */
	Bool lazy;            /* registers' changes at the last BCTs were not told yet */
	struct polled polled[POLLED_MAX];
	UInt nr_polled;
	Addr watched_bct; /* of the loop whose iteration is looked at; 0: none */
	Bool polled_more;
};

struct spin_run {
	struct thread *thread; /* newest first */
	UInt nr_threads;
	VgHashTable *loops, *watched;
	UInt nr_loops, nr_watched;
	ULong loops_lost, watched_lost;
	Long nr_sdt, nr_rub;
	Long yield_after;            /* iterations; 0: never */
	Addr marked_from, marked_to; /* code whose instructions are counted apart */
};
extern struct spin_run spin_run;

void spin_begin(void);
void spin_switched_to(ThreadId tid);
void spin_created(ThreadId parent, ThreadId child);
void spin_called_kernel(ThreadId tid, UInt number, const UWord *args, UInt nr_args, SysRes result);
void spin_signalled(ThreadId tid, Int signal);
/* The running thread's numbers are brought up to date. */
void spin_settle(void);
IRSB *spin_instrument(IRSB *in, const VexGuestLayout *layout, const VexGuestExtents *extents);
void spin_write(const HChar *path);

/* Called by translated code. */
VG_REGPARM(3) void spin_on_branch(VexGuestAMD64State *state, Addr pc, Addr target);
VG_REGPARM(3) void spin_on_load(Addr address, Addr stack, UWord size);
VG_REGPARM(3) void spin_on_change(Addr address, Addr stack, UWord place); /* pc, and size on top */

#endif
