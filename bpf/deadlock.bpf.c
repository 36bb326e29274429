// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
/*
 * deadlock.bpf.c - the threads of the machine, and the registers with which those that wait will
 * go on, without stopping any of them. Read only; nothing is attached to any event.
 */
#include "kernel.h"

#include <bpf/bpf_helpers.h>

#include "deadlock/task_abi.h"

char LICENSE[] SEC("license") = "GPL";

enum { KERNEL_THREAD = 0x00200000 };

struct seq_file;
struct bpf_iter_meta {
	struct seq_file *seq;
} RELOCATED;

struct sched_info {
	unsigned long pcount;
} RELOCATED;
struct thread_struct {
	unsigned long fsbase, gsbase;
} RELOCATED;
struct task_struct___deadlock {
	int pid, tgid, exit_state;
	unsigned int __state, flags;
	__u64 start_boottime;
	char comm[16];
	struct sched_info sched_info;
	struct thread_struct thread;
} RELOCATED;
struct bpf_iter__task {
	struct bpf_iter_meta *meta;
	struct task_struct___deadlock *task;
};

SEC("iter/task")
int threads(struct bpf_iter__task *ctx)
{
	struct task_struct___deadlock *t = ctx->task;
	struct deadlock_task out = {};

	if (!t || t->flags & KERNEL_THREAD)
		return 0;
	out.pid = (__u32)t->tgid;
	out.tid = (__u32)t->pid;
	out.state = t->__state;
	out.exit_state = (__u32)t->exit_state;
	out.runs = t->sched_info.pcount;
	out.start_ns = t->start_boottime;
	bpf_probe_read_kernel(out.name, sizeof out.name, &t->comm);
	bpf_seq_write(ctx->meta->seq, &out, sizeof out);
	return 0;
}

SEC("iter/task")
int registers(struct bpf_iter__task *ctx)
{
	struct task_struct___deadlock *t = ctx->task;
	struct deadlock_task_registers out = {};

	if (!t || t->flags & KERNEL_THREAD || !t->__state)
		return 0;
	out.pid = (__u32)t->tgid;
	out.tid = (__u32)t->pid;
	out.state = t->__state;
	out.runs = t->sched_info.pcount;
	out.fs_base = t->thread.fsbase;
	out.gs_base = t->thread.gsbase;
	void *saved = (void *)bpf_task_pt_regs((void *)t);
	if (!saved || bpf_probe_read_kernel(out.value, sizeof out.value, saved))
		return 0;
	bpf_seq_write(ctx->meta->seq, &out, sizeof out);
	return 0;
}
