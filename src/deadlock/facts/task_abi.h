/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* task_abi.h - what bpf/deadlock.bpf.c writes for each thread; tasks.c reads it. */
#ifndef LONGPOLE_DEADLOCK_TASK_ABI_H
#define LONGPOLE_DEADLOCK_TASK_ABI_H

struct deadlock_task { /* the programs `walk` and `threads` */
	__u32 pid, tid;
	__u32 state;          /* the kernel's bits; 0: running or about to */
	__u32 parent;         /* the process's; of its first thread only */
	__u64 runs, start_ns; /* start_ns: since boot */
	char name[16];
	__u64 task, switches; /* `walk`'s own: the task seen there, and its switches */
};

enum { DEADLOCK_TASK_DEAD = 0x80 }; /* in `state` */

/* Of `walk`, which does not give way to others meanwhile: some 4 ms for a list that is full. */
enum { DEADLOCK_TASK_LIST_MAX = 16384 };
struct deadlock_task_list {
	__u32 nr, is_cut; /* cut: there are more */
	struct deadlock_task task[DEADLOCK_TASK_LIST_MAX];
};

/* The order of struct pt_regs. */
enum {
	DEADLOCK_R15,
	DEADLOCK_R14,
	DEADLOCK_R13,
	DEADLOCK_R12,
	DEADLOCK_BP,
	DEADLOCK_BX,
	DEADLOCK_R11,
	DEADLOCK_R10,
	DEADLOCK_R9,
	DEADLOCK_R8,
	DEADLOCK_AX,
	DEADLOCK_CX,
	DEADLOCK_DX,
	DEADLOCK_SI,
	DEADLOCK_DI,
	DEADLOCK_ORIG_AX,
	DEADLOCK_IP,
	DEADLOCK_CS,
	DEADLOCK_FLAGS,
	DEADLOCK_SP,
	DEADLOCK_SS,
	DEADLOCK_PT_REGS,
};
struct deadlock_task_registers { /* the program `registers` */
	__u32 pid, tid;
	__u32 state, pad;
	__u64 runs, fs_base, gs_base;
	__u64 value[DEADLOCK_PT_REGS];
};

struct deadlock_task_file { /* the program `files` */
	__u32 pid, fd, mode, pad;
	__u64 inode; /* the kernel's own number: some file systems tell users another */
};

#endif
