/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * slots_abi.h - between bpf/slots.bpf.c, which fills the slots, and their readers: one slot a
 * thread, found by its tid, in memory that both map. Included by BPF code: no headers here.
 */
#ifndef LONGPOLE_COUNTER_SLOTS_ABI_H
#define LONGPOLE_COUNTER_SLOTS_ABI_H

enum { COUNTER_SLOTS_NR = 1 << 15, COUNTER_SLOT_BYTES = 64 };

struct counter_slot {
	__u32 tid; /* the thread that it counts for; 0: free. Others leave it alone. */
	__u32 in_call;
	__u64 kernel_ns; /* with a processor, inside of system calls */
	__u64 calls;     /* system calls that have ended */
	__u64 mark_ns;   /* BPF's: the begin, or the last return to a processor */
	__u32 out;       /* BPF's: has no processor now */
	__u32 lost;      /* calls in which a switch was not seen: their time is left out */
	__u64 unused[3];
};

#endif
