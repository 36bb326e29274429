// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
/*
 * deadlock.bpf.c - the threads of the machine, and the registers with which those that wait will
 * go on, without stopping any of them. Read only; nothing is attached to any event.
 *
 * What a pass over thousands of threads costs is cache misses. `walk` goes from task to task (Linux
 * 6.7), and of one that has not run since the last pass it reads nothing but who it is and that.
 * `threads`, for older kernels and longer lists, is an iterator that goes by pids: three times
 * that.
 */
#include "kernel.h"

#include <bpf/bpf_helpers.h>

#include "deadlock/facts/task_abi.h"

char LICENSE[] SEC("license") = "GPL";

enum { KERNEL_THREAD = 0x00200000, ALL_THREADS = 1 };

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
	struct task_struct___deadlock *real_parent;
	unsigned int __state, flags;
	__u64 start_boottime;
	unsigned long nvcsw, nivcsw;
	char comm[16];
	struct sched_info sched_info;
	struct thread_struct thread;
} RELOCATED;
struct bpf_iter__task {
	struct bpf_iter_meta *meta;
	struct task_struct___deadlock *task;
};

struct bpf_iter__task_file {
	struct bpf_iter_meta *meta;
	struct task_struct___deadlock *task;
	__u32 fd;
	struct file *file;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, struct deadlock_task_list);
} tasks SEC(".maps");

/* kernel/bpf/task_iter.c; weak: older kernels do not have them, and `walk` is not loaded there. */
struct bpf_iter_task {
	__u64 opaque[3];
} __attribute__((aligned(8)));
extern int bpf_iter_task_new(
	struct bpf_iter_task *it, struct task_struct *from, unsigned int flags) __weak __ksym;
extern struct task_struct *bpf_iter_task_next(struct bpf_iter_task *it) __weak __ksym;
extern void bpf_iter_task_destroy(struct bpf_iter_task *it) __weak __ksym;

static void fill(struct deadlock_task *out, struct task_struct___deadlock *t)
{
	out->state = t->__state;
	out->pid = (__u32)t->tgid;
	out->tid = (__u32)t->pid;
	out->parent = out->pid == out->tid ? (__u32)t->real_parent->tgid : 0;
	out->runs = t->sched_info.pcount;
	out->start_ns = t->start_boottime;
	bpf_probe_read_kernel(out->name, sizeof out->name, &t->comm);
}

/*
 * A row stays where it was as long as nobody before it came or went. A task that sleeps and was
 * switched out as often as at the last pass has not run since; that, and whether it is still the
 * same thread, stands in one line of its cache (pid and times run are in others). A process may get
 * another parent while it sleeps.
 */
static void put(struct deadlock_task_list *list, struct task_struct___deadlock *t)
{
	__u32 nr = list->nr;
	if (nr >= DEADLOCK_TASK_LIST_MAX) {
		list->is_cut = 1;
		return;
	}
	struct deadlock_task *row = &list->task[nr];
	list->nr = nr + 1;
	const __u32 state = t->__state;
	const __u64 switches = t->nvcsw + t->nivcsw, start_ns = t->start_boottime;
	if (state && row->state == state && row->task == (__u64)t && row->start_ns == start_ns &&
		row->switches == switches) {
		if (row->pid == row->tid)
			row->parent = (__u32)t->real_parent->tgid;
		return;
	}
	fill(row, t);
	row->task = (__u64)t;
	row->switches = switches;
}

SEC("raw_tp")
int walk(void *ctx)
{
	__u32 zero = 0;
	struct deadlock_task_list *list = bpf_map_lookup_elem(&tasks, &zero);
	struct task_struct___deadlock *t;
	struct bpf_iter_task it;
	if (!list)
		return 0;
	list->nr = list->is_cut = 0;
	bpf_iter_task_new(&it, NULL, ALL_THREADS);
	while ((t = (void *)bpf_iter_task_next(&it)) && !list->is_cut)
		if (!(t->flags & KERNEL_THREAD))
			put(list, t);
	bpf_iter_task_destroy(&it);
	return 0;
}

SEC("iter/task")
int threads(struct bpf_iter__task *ctx)
{
	struct task_struct___deadlock *t = ctx->task;
	struct deadlock_task out = {};

	if (!t || t->flags & KERNEL_THREAD)
		return 0;
	fill(&out, t);
	if (t->exit_state)
		out.state |= DEADLOCK_TASK_DEAD;
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

SEC("iter/task_file")
int files(struct bpf_iter__task_file *ctx)
{
	struct task_struct___deadlock *t = ctx->task;
	struct file *file = ctx->file;
	struct deadlock_task_file out = {};

	if (!t || !file || t->flags & KERNEL_THREAD)
		return 0;
	out.pid = (__u32)t->tgid;
	out.fd = ctx->fd;
	out.mode = file->f_inode->i_mode;
	out.inode = file->f_inode->i_ino;
	bpf_seq_write(ctx->meta->seq, &out, sizeof out);
	return 0;
}
