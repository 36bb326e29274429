// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
/*
 * system.bpf.c - the kernel side of `longpole record --system`: tracepoints to per-processor slots.
 *
 * The loader (src/system/bpf.c) loads only the programs that a recording needs. Every
 * program does the least: it writes down numbers that the kernel has at hand. What they mean
 * (names, objects, order, lost switches) is found out by the reader. A program runs with interrupts
 * on or off, and may be interrupted by another; only `reserve()` and the two context words are
 * shared, see there.
 */
#include "kernel.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "system/abi.h"

char LICENSE[] SEC("license") = "GPL";

const volatile __u32 slot_mask = 0;     /* slots of a processor - 1 */
const volatile __u32 nr_processors = 0; /* that have slots */
const volatile __u32 own_tgid = 0;      /* the recorder: only its switches and wakes are written */
const volatile bool with_contexts = false; /* interrupts and softirqs are records, too */
const volatile struct kernel_call call_table[KERNEL_CALLS_MAX] = {};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1); /* set by the loader: processors * slots */
	__type(key, __u32);
	__type(value, struct kernel_slot);
} slots SEC(".maps");

struct kernel_control control[KERNEL_CPUS_MAX]; /* .bss: mapped by the reader */

/* Loads instead of a helper's call. */
#define CURRENT_TID ((__u32)bpf_get_current_task_btf()->pid)
#define ALWAYS      static __always_inline

/* ---- slots ----------------------------------------------------------------------------------- */

struct writing {
	struct kernel_control *control;
	struct kernel_slot *slot;
	__u64 at; /* the slot's number */
	__u32 cpu;
};

ALWAYS struct kernel_slot *slot_at(__u32 cpu, __u64 at)
{
	__u32 key = cpu * (slot_mask + 1) + ((__u32)at & slot_mask);

	return bpf_map_lookup_elem(&slots, &key);
}

/* Takes nr slots. An interrupt between the addition and the time's writing takes later slots with
 * earlier times: the reader sorts. */
ALWAYS bool reserve(struct writing *w, __u32 nr)
{
	w->cpu = bpf_get_smp_processor_id();
	struct kernel_control *c = &control[w->cpu & (KERNEL_CPUS_MAX - 1)];

	/* (numbers of processors may have holes) */
	if (w->cpu >= nr_processors) {
		__sync_fetch_and_add(&control[0].dropped, 1);
		return false;
	}
	if (c->head - *(volatile __u64 *)&c->tail > slot_mask + 1 - KERNEL_SLOTS_SPARE) {
		__sync_fetch_and_add(&c->dropped, 1);
		return false;
	}
	w->control = c;
	w->at = __sync_fetch_and_add(&c->head, nr);
	w->slot = slot_at(w->cpu, w->at);
	return w->slot;
}

/* The interrupt that runs here, else the softirq, else the current task. */
ALWAYS __u32 context_of(const struct kernel_control *c)
{
	__u32 hard = *(volatile __u32 *)&c->hard;

	return hard ? hard : *(volatile __u32 *)&c->soft;
}

ALWAYS void commit(
	struct writing *w, __u32 tid, __u32 type, __u32 nr, __u32 context, __u64 a, __u64 b)
{
	struct kernel_slot *s = w->slot;

	s->tid = tid;
	s->type = (__u8)type;
	s->shape = (__u8)(nr << 4 | context >> 16);
	s->vector = (__u16)context;
	s->a = a;
	s->b = b;
	barrier();
	*(volatile __u64 *)&s->time_ns = bpf_ktime_get_ns();
}

ALWAYS int emit(__u32 type, __u64 a, __u64 b)
{
	struct writing w;

	if (reserve(&w, 1))
		commit(&w, CURRENT_TID, type, 1, context_of(w.control), a, b);
	return 0;
}

ALWAYS int emit_comm(__u32 type, __u64 a, __u64 b, const struct task_struct *named)
{
	struct writing w;

	if (!reserve(&w, 2))
		return 0;
	struct kernel_slot *more = slot_at(w.cpu, w.at + 1);
	if (more)
		bpf_probe_read_kernel(more, KERNEL_COMM_BYTES, named->comm);
	commit(&w, CURRENT_TID, type, 2, context_of(w.control), a, b);
	return 0;
}

/* ---- scheduler ------------------------------------------------------------------------------- */

/* Where it falls asleep, when no system call says so: on a disk, a page, a lock of the kernel. */
ALWAYS void emit_stack(void *ctx, __u32 tid)
{
	enum { FRAMES_OF_TRACING = 3, WORDS = KERNEL_SLOT_BYTES / 8 };
	struct writing w;
	__u64 frame[KERNEL_FRAMES_MAX] = {};
	long bytes = bpf_get_stack(ctx, frame, sizeof frame, FRAMES_OF_TRACING);

	if (bytes <= 0 || !reserve(&w, 4))
		return;
	for (__u32 i = 0; i < KERNEL_FRAMES_MAX / WORDS; i++) {
		struct kernel_slot *more = slot_at(w.cpu, w.at + 1 + i);
		if (more)
			__builtin_memcpy(more, frame + i * WORDS, KERNEL_SLOT_BYTES);
	}
	commit(&w, tid, KERNEL_stack, 4, 0, (__u64)bytes / 8, 0);
}

/* Still runnable, and its cgroup's quota is used up. */
ALWAYS bool is_throttled(struct task_struct *t)
{
	if (bpf_core_field_exists(t->throttled))
		return t->throttled;
	if (!bpf_core_field_exists(struct sched_entity, cfs_rq) ||
		!bpf_core_field_exists(struct cfs_rq, throttle_count))
		return false;
	struct cfs_rq *queue = t->se.cfs_rq;
	return queue && queue->throttle_count;
}

SEC("tp_btf/sched_switch")
int BPF_PROG(
	on_switch, bool preempt, struct task_struct *prev, struct task_struct *next, unsigned state)
{
	enum { UNINTERRUPTIBLE = 2, NO_LOAD = 0x400 };
	struct writing w;
	bool runnable = preempt || !state;
	__u64 left = runnable ? KERNEL_LEFT_RUNNABLE : 0;

	if (runnable && prev->pid && is_throttled(prev))
		left = KERNEL_LEFT_THROTTLED;
	if (with_contexts && !preempt && (state & (UNINTERRUPTIBLE | NO_LOAD)) == UNINTERRUPTIBLE)
		emit_stack(ctx, (__u32)prev->pid);
	if (reserve(&w, 1))
		commit(&w, (__u32)prev->pid, KERNEL_switch, 1, 0, (__u32)next->pid,
			(__u64)state | left << 32);
	return 0;
}

SEC("tp_btf/sched_waking")
int BPF_PROG(on_waking, struct task_struct *p)
{
	return emit(KERNEL_wake, (__u32)p->pid, 0);
}

SEC("tp_btf/sched_wakeup_new")
int BPF_PROG(on_wakeup_new, struct task_struct *p)
{
	return emit(KERNEL_wake, (__u32)p->pid, 0);
}

SEC("tp_btf/sched_process_fork")
int BPF_PROG(on_fork, struct task_struct *parent, struct task_struct *child)
{
	return emit_comm(KERNEL_fork, (__u32)child->pid | (__u64)(__u32)child->tgid << 32,
		(__u32)parent->tgid, child);
}

SEC("tp_btf/sched_process_exec")
int BPF_PROG(on_exec, struct task_struct *p, int old_pid, struct linux_binprm *bprm)
{
	return emit_comm(KERNEL_exec, (__u32)old_pid, (__u32)p->tgid, p);
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(on_exit, struct task_struct *p)
{
	return emit(KERNEL_exit, (__u32)p->exit_code, (__u32)p->tgid);
}

/* Called before the name is set: it comes as an argument. */
SEC("tp_btf/task_rename")
int BPF_PROG(on_rename, struct task_struct *task, const char *comm)
{
	struct writing w;

	/* An exec gives the new name to what is still the old image; on_exec tells it in time. */
	if (bpf_core_field_exists(task->in_execve) && BPF_CORE_READ_BITFIELD(task, in_execve))
		return 0;
	if (!reserve(&w, 2))
		return 0;
	struct kernel_slot *more = slot_at(w.cpu, w.at + 1);
	if (more)
		bpf_probe_read_kernel_str(more, KERNEL_COMM_BYTES, comm);
	commit(&w, CURRENT_TID, KERNEL_comm, 2, context_of(w.control), (__u32)task->pid,
		(__u32)task->tgid);
	return 0;
}

/* ---- interrupts and softirqs: who it is that wakes ----------------------------------------------
 *
 * `hard` and `soft` are written by their own processor alone, and what interrupts puts back 0
 * before it returns, so plain stores are enough. Interrupts do not nest, nor do softirqs.
 */

ALWAYS int context_begin(bool soft, __u32 type, __u32 vector)
{
	struct kernel_control *c = &control[bpf_get_smp_processor_id() & (KERNEL_CPUS_MAX - 1)];
	__u32 context = type << 16 | (vector & 0xffff);

	*(volatile __u32 *)(soft ? &c->soft : &c->hard) = context;
	if (with_contexts)
		emit(KERNEL_context_begin, soft ? 0 : *(volatile __u32 *)&c->soft, 0);
	return 0;
}

ALWAYS int context_end(bool soft)
{
	struct kernel_control *c = &control[bpf_get_smp_processor_id() & (KERNEL_CPUS_MAX - 1)];

	if (with_contexts)
		emit(KERNEL_context_end, 0, 0);
	*(volatile __u32 *)(soft ? &c->soft : &c->hard) = 0;
	return 0;
}

SEC("tp_btf/softirq_entry")
int BPF_PROG(on_softirq_entry, unsigned vector)
{
	return context_begin(true, KERNEL_IN_SOFTIRQ, vector);
}
SEC("tp_btf/softirq_exit")
int BPF_PROG(on_softirq_exit, unsigned vector)
{
	return context_end(true);
}
SEC("tp_btf/irq_handler_entry")
int BPF_PROG(on_irq_entry, int irq)
{
	return context_begin(false, KERNEL_IN_IRQ, (__u32)irq);
}
SEC("tp_btf/irq_handler_exit")
int BPF_PROG(on_irq_exit, int irq)
{
	return context_end(false);
}
#define INTERRUPT(event, type, vector)                                                             \
	SEC("tp_btf/" #event "_entry")                                                             \
	int BPF_PROG(on_##event##_entry, int number)                                               \
	{                                                                                          \
		return context_begin(false, type, vector);                                         \
	}                                                                                          \
	SEC("tp_btf/" #event "_exit")                                                              \
	int BPF_PROG(on_##event##_exit, int number)                                                \
	{                                                                                          \
		return context_end(false);                                                         \
	}
INTERRUPT(local_timer, KERNEL_IN_TIMER, 0)
INTERRUPT(reschedule, KERNEL_IN_IPI, KERNEL_IPI_reschedule)
INTERRUPT(call_function, KERNEL_IN_IPI, KERNEL_IPI_call)
INTERRUPT(call_function_single, KERNEL_IN_IPI, KERNEL_IPI_call_single)
INTERRUPT(irq_work, KERNEL_IN_IPI, KERNEL_IPI_irq_work)

/*
 * Locks of the kernel's that are waited for. A sleeper for one is woken by its last holder, by
 * chance: without this the path would go on there. Those that are spun for are of interest to
 * --full only.
 */
SEC("tp_btf/contention_begin")
int BPF_PROG(on_contention_begin, void *lock, unsigned int flags)
{
	enum { SPINS = 1 };

	if (!with_contexts && flags & SPINS)
		return 0;
	return emit(KERNEL_lock_wait, (__u64)lock, 0);
}

SEC("tp_btf/contention_end")
int BPF_PROG(on_contention_end, void *lock)
{
	return emit(KERNEL_lock_acquire, (__u64)lock, 0);
}

#include "system_full.h"
#include "system_net.h"
