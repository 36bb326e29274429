// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
/*
 * slots.bpf.c - the time that registered threads spend inside of system calls, in memory that they
 * can read themselves. A thread writes nothing of its slot but the tid; BPF runs on the thread's
 * own processor, so a slot has one writer at a time.
 */
#include "kernel.h"

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "counter/slots_abi.h"

char LICENSE[] SEC("license") = "GPL";

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, COUNTER_SLOTS_NR);
	__type(key, __u32);
	__type(value, struct counter_slot);
} slots SEC(".maps");

static __always_inline struct counter_slot *slot_of(__u32 tid)
{
	__u32 key = tid & (COUNTER_SLOTS_NR - 1);
	struct counter_slot *slot = bpf_map_lookup_elem(&slots, &key);

	return slot && tid && slot->tid == tid ? slot : NULL;
}

SEC("tp_btf/sys_enter")
int BPF_PROG(on_enter, struct pt_regs *regs, long number)
{
	struct counter_slot *slot = slot_of((__u32)bpf_get_current_pid_tgid());

	if (slot) {
		slot->mark_ns = bpf_ktime_get_ns();
		slot->out = 0;
		slot->in_call = 1;
	}
	return 0;
}

SEC("tp_btf/sys_exit")
int BPF_PROG(on_exit, struct pt_regs *regs, long result)
{
	struct counter_slot *slot = slot_of((__u32)bpf_get_current_pid_tgid());

	if (slot && slot->in_call) {
		if (slot->out) /* it runs: the return to a processor was not delivered */
			slot->lost++;
		else
			slot->kernel_ns += bpf_ktime_get_ns() - slot->mark_ns;
		slot->in_call = 0;
		slot->calls++;
	}
	return 0;
}

SEC("tp_btf/sched_switch")
int BPF_PROG(on_switch, bool preempt, struct task_struct *prev, struct task_struct *next)
{
	struct counter_slot *from = slot_of((__u32)prev->pid), *to = slot_of((__u32)next->pid);
	__u64 now = 0;

	if ((from && from->in_call) || (to && to->in_call))
		now = bpf_ktime_get_ns();
	if (from && from->in_call && !from->out) {
		from->kernel_ns += now - from->mark_ns;
		from->out = 1;
	}
	if (to && to->in_call && to->out) {
		to->mark_ns = now;
		to->out = 0;
	}
	return 0;
}
