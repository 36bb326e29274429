/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* system/full.h - the programs that only --full needs. Part of system.bpf.c. */

SEC("?tp_btf/softirq_raise")
int BPF_PROG(on_softirq_raise, unsigned vector)
{
	return emit(
		KERNEL_context_raise, KERNEL_IN_SOFTIRQ | vector << 8, bpf_get_smp_processor_id());
}

enum { IO_URING_ENTER = 426, ENTER_REGISTERED_RING = 16 /* its descriptor is none */ };

/* ---- system calls ---------------------------------------------------------------------------- */

ALWAYS __u64 argument(const struct pt_regs *r, __u32 number)
{
	switch (number) {
	case 1:
		return r->di;
	case 2:
		return r->si;
	case 3:
		return r->dx;
	case 4:
		return r->r10;
	case 5:
		return r->r8;
	case 6:
		return r->r9;
	default:
		return 0;
	}
}

ALWAYS struct file *file_behind(__u64 fd)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct files_struct *files = task->files;
	struct file *file = NULL;

	if (!files)
		return NULL;
	struct fdtable *table = files->fdt;
	if (!table || fd >= table->max_fds)
		return NULL;
	bpf_probe_read_kernel(&file, sizeof file, table->fd + fd);
	return file;
}

ALWAYS __u64 file_word(struct file *file, __u64 fd)
{
	if (!file)
		return 0;
	enum { SOCKET = 12, PIPE = 1 };
	struct inode *inode = BPF_CORE_READ(file, f_inode);
	__u32 type = BPF_CORE_READ(inode, i_mode) >> 12, device = 0;
	if (type && type != SOCKET && type != PIPE) /* all of those are on one device */
		device = BPF_CORE_READ(inode, i_sb, s_dev);
	/* All anonymous inodes (epoll, eventfd, timerfd) are one inode: the file tells them apart.
	 */
	__u64 number = type ? BPF_CORE_READ(inode, i_ino) : (__u64)file >> 4;
	return KERNEL_FILE(number, type, device, fd);
}

/* What a descriptor of the current task stands for; 0: nothing. */
ALWAYS __u64 file_of(__u64 fd)
{
	return file_word(file_behind(fd), fd);
}

/* The address of the ring that the call is about which began just now. */
ALWAYS void tell_ring(__u64 fd)
{
	struct file *file = file_behind(fd);

	if (file)
		emit(KERNEL_ring, (__u64)BPF_CORE_READ(file, private_data), file_word(file, fd));
}

struct kernel_timespec {
	long long seconds, nanoseconds;
};

SEC("?tp_btf/sys_enter")
int BPF_PROG(on_sys_enter, struct pt_regs *regs, long id)
{
	struct writing w;
	__u32 at = (__u32)id & (KERNEL_CALLS_MAX - 1);
	const volatile struct kernel_call *call = &call_table[at];
	__u64 object = 0, op, n;

	if (!call->wanted)
		return 0;
	const struct task_struct *task = bpf_get_current_task_btf();
	if ((__u32)task->tgid == own_tgid)
		return 0;
	if (call->object)
		object = argument(regs, call->object);
	if (call->object && call->is_file)
		object = file_of((__u32)object);
	op = argument(regs, call->op);
	n = argument(regs, call->n);
	if (call->n_is_time) {
		struct kernel_timespec t = {};

		if (n)
			bpf_probe_read_user(&t, sizeof t, (void *)n);
		n = (__u64)t.seconds * 1000000000u + (__u64)t.nanoseconds;
	}
	if (n >> 48)
		n = (1ull << 48) - 1;
	if (reserve(&w, 1))
		commit(&w, (__u32)task->pid, KERNEL_call_begin, 1, at, object, n | op << 48);
	if (at == IO_URING_ENTER && object && !(op & ENTER_REGISTERED_RING))
		tell_ring((__u32)argument(regs, call->object));
	return 0;
}

SEC("?tp_btf/sys_exit")
int BPF_PROG(on_sys_exit, struct pt_regs *regs, long result)
{
	enum { RT_SIGRETURN = 15 }; /* gives back the registers of whoever was interrupted */
	struct writing w;
	__s64 number = (__s64)regs->orig_ax;
	__u32 at = (__u32)(number < 0 ? RT_SIGRETURN : number) & (KERNEL_CALLS_MAX - 1);
	const volatile struct kernel_call *call = &call_table[at];

	if (!call->wanted)
		return 0;
	const struct task_struct *task = bpf_get_current_task_btf();
	if ((__u32)task->tgid == own_tgid)
		return 0;
	__u64 made = call->makes && result >= 0 ? file_of((__u64)result) : 0;
	if (reserve(&w, 1))
		commit(&w, (__u32)task->pid, KERNEL_call_end, 1, at, (__u64)result, made);
	return 0;
}

/* ---- sockets --------------------------------------------------------------------------------- */

ALWAYS __u32 socket_inode(struct sock *sk)
{
	struct socket *s = sk->sk_socket;

	if (!s)
		return 0;
	struct file *f = s->file;
	if (!f)
		return 0;
	struct inode *inode = f->f_inode;
	return inode ? (__u32)inode->i_ino : 0;
}

ALWAYS int emit_socket(__u32 type, struct sock *sk, __u32 bytes)
{
	return emit(type, (__u64)sk, bytes | (__u64)socket_inode(sk) << 32);
}

SEC("?tp_btf/sock_send_length")
int BPF_PROG(on_send, struct sock *sk, int result)
{
	return result > 0 ? emit_socket(KERNEL_socket_send, sk, (__u32)result) : 0;
}
SEC("?tp_btf/sock_recv_length")
int BPF_PROG(on_receive, struct sock *sk, int result, int flags)
{
	enum { PEEK = 2 };
	return result > 0 && !(flags & PEEK) ? emit_socket(KERNEL_socket_receive, sk, (__u32)result)
					     : 0;
}
SEC("?tp_btf/sk_data_ready")
int BPF_PROG(on_ready, struct sock *sk)
{
	enum { TCP = 6, LISTEN = 10 };
	__u32 bytes = 0;

	if (sk->sk_protocol == TCP && sk->__sk_common.skc_state != LISTEN) {
		struct tcp_sock *tp = bpf_skc_to_tcp_sock(sk);

		if (tp)
			bytes = tp->rcv_nxt - tp->copied_seq;
	} else {
		bytes = (__u32)sk->sk_backlog.rmem_alloc.counter;
	}
	return emit_socket(KERNEL_socket_ready, sk, bytes);
}

/* ---- disks ----------------------------------------------------------------------------------- */

ALWAYS int emit_disk(__u32 type, struct request *rq, __u32 bytes)
{
	struct writing w;
	struct gendisk *disk = rq->q->disk;

	if (!disk || !reserve(&w, 2))
		return 0;
	struct kernel_slot *more = slot_at(w.cpu, w.at + 1);
	if (more)
		more->time_ns = (__u64)disk->major << 20 | (__u32)disk->first_minor;
	commit(&w, CURRENT_TID, type, 2, context_of(w.control), rq->__sector,
		bytes | (__u64)(rq->cmd_flags & 0xff) << 32);
	return 0;
}
SEC("?tp_btf/block_rq_insert")
int BPF_PROG(on_disk_queue, struct request *rq)
{
	return emit_disk(KERNEL_disk_queue, rq, rq->__data_len);
}
SEC("?tp_btf/block_rq_issue")
int BPF_PROG(on_disk_begin, struct request *rq)
{
	return emit_disk(KERNEL_disk_begin, rq, rq->__data_len);
}
SEC("?tp_btf/block_rq_complete")
int BPF_PROG(on_disk_end, struct request *rq, int error, unsigned bytes)
{
	return emit_disk(KERNEL_disk_end, rq, bytes);
}

/* ---- io_uring ----------------------------------------------------------------------------------
 *
 * A request (struct io_kiocb) is submitted, is perhaps handed to a worker thread or waits until its
 * file is ready, and is completed, by whoever runs then. on_request_*: the loader leaves these out
 * where the tracepoint's first argument is no request (before 5.19).
 */

/* Of these operations the descriptor is none: the kernel leaves the field as it was. */
#define OF_NO_FILE(op)                                                                             \
	((op) < 64 &&                                                                              \
		(1ull << (op) & (1ull << 0 | 1ull << 7 | 3ull << 11 | 3ull << 14 | 15ull << 18 |   \
					1ull << 25 | 3ull << 28 | 3ull << 31 | 31ull << 35 |       \
					1ull << 42 | 3ull << 44 | 15ull << 50 | 1ull << 62)))

ALWAYS int emit_request(__u32 type, struct io_kiocb *req, __u64 file, __s32 result)
{
	struct kernel_request r = {.request = (__u64)req, .file = file, .result = result};
	struct writing w;

	r.op = BPF_CORE_READ(req, opcode);
	if (!reserve(&w, 2))
		return 0;
	struct kernel_slot *more = slot_at(w.cpu, w.at + 1);
	if (more)
		__builtin_memcpy(more, &r, KERNEL_SLOT_BYTES);
	commit(&w, CURRENT_TID, type, 2, context_of(w.control), (__u64)BPF_CORE_READ(req, ctx),
		BPF_CORE_READ(req, cqe.user_data));
	return 0;
}

ALWAYS int submit(struct io_kiocb *req)
{
	enum { FIXED_FILE = 1 }; /* a number in the ring's own table */
	__u8 op = BPF_CORE_READ(req, opcode);
	bool has_descriptor = !OF_NO_FILE(op) && !(BPF_CORE_READ(req, flags) & FIXED_FILE);

	return emit_request(KERNEL_ring_submit, req,
		has_descriptor ? file_of((__u32)BPF_CORE_READ(req, cqe.fd)) : 0, 0);
}
SEC("?tp_btf/io_uring_submit_req")
int BPF_PROG(on_request_submit, struct io_kiocb *req)
{
	return submit(req);
}
SEC("?tp_btf/io_uring_submit_sqe") /* its name before 6.4 */
int BPF_PROG(on_request_submit_entry, struct io_kiocb *req)
{
	return submit(req);
}
SEC("?tp_btf/io_uring_queue_async_work")
int BPF_PROG(on_request_async, struct io_kiocb *req)
{
	return emit_request(KERNEL_ring_async, req, 0, 0);
}
SEC("?tp_btf/io_uring_poll_arm")
int BPF_PROG(on_request_arm, struct io_kiocb *req)
{
	return emit_request(KERNEL_ring_arm, req, 0, 0);
}
SEC("?tp_btf/io_uring_task_add")
int BPF_PROG(on_request_ready, struct io_kiocb *req)
{
	return emit_request(KERNEL_ring_ready, req, 0, 0);
}
/* Without a request: one of several completions of the same. */
SEC("?tp_btf/io_uring_complete")
int BPF_PROG(on_ring_complete, void *ring, struct io_kiocb *req)
{
	enum { NO_DESCRIPTOR = 0xfffff };
	struct kernel_request none = {.op = KERNEL_REQUEST_OP_UNKNOWN};
	struct writing w;

	if (req)
		return emit_request(KERNEL_ring_complete, req,
			file_word(BPF_CORE_READ(req, file), NO_DESCRIPTOR),
			BPF_CORE_READ(req, cqe.res));
	if (!reserve(&w, 2))
		return 0;
	struct kernel_slot *more = slot_at(w.cpu, w.at + 1);
	if (more)
		__builtin_memcpy(more, &none, KERNEL_SLOT_BYTES);
	commit(&w, CURRENT_TID, KERNEL_ring_complete, 2, context_of(w.control), (__u64)ring, 0);
	return 0;
}
SEC("?tp_btf/io_uring_cqring_wait")
int BPF_PROG(on_ring_wait, void *ring, int completions)
{
	return emit(KERNEL_ring_wait, (__u64)ring, (__u32)completions);
}
SEC("?tp_btf/io_uring_create")
int BPF_PROG(on_ring_create, int fd, void *ring, __u32 submissions, __u32 completions, __u32 flags)
{
	enum { REGISTERED_ONLY = 1 << 15 }; /* no descriptor */

	if (fd < 0 || flags & REGISTERED_ONLY)
		return 0;
	return emit(KERNEL_ring, (__u64)ring, file_of((__u32)fd));
}

/* ---- work items, timers ---------------------------------------------------------------------- */

SEC("?tp_btf/workqueue_queue_work")
int BPF_PROG(on_work_queue, int cpu, struct pool_workqueue *pwq, struct work_struct *work)
{
	return emit(KERNEL_work_queue, (__u64)work, (__u64)work->func);
}
SEC("?tp_btf/workqueue_execute_start")
int BPF_PROG(on_work_begin, struct work_struct *work)
{
	return emit(KERNEL_work_begin, (__u64)work, (__u64)work->func);
}
/* The item may be gone already: its function comes as an argument (which a tp_btf may not read). */
SEC("?raw_tp/workqueue_execute_end")
int BPF_PROG(on_work_end, struct work_struct *work, work_func_t function)
{
	return emit(KERNEL_work_end, (__u64)work, (__u64)function);
}

/* In jiffies, which we do not know: without a delay. */
SEC("?tp_btf/timer_start")
int BPF_PROG(on_timer_start, struct timer_list *timer)
{
	return emit(KERNEL_timer_start, (__u64)timer, (__u64)timer->function);
}
SEC("?tp_btf/timer_expire_entry")
int BPF_PROG(on_timer_fire, struct timer_list *timer)
{
	return emit(KERNEL_timer_fire, (__u64)timer, (__u64)timer->function);
}
SEC("?tp_btf/hrtimer_start")
int BPF_PROG(on_hrtimer_start, struct hrtimer *timer)
{
	struct writing w;
	/* as asked for, whatever else is due soon afterwards; of its clock, which is so far ahead
	 */
	__s64 due_ns = timer->_softexpires - timer->base->offset;

	if (!reserve(&w, 2))
		return 0;
	struct kernel_slot *more = slot_at(w.cpu, w.at + 1);
	if (more)
		more->time_ns = (__u64)(due_ns - (__s64)bpf_ktime_get_ns());
	commit(&w, CURRENT_TID, KERNEL_timer_start, 2, context_of(w.control), (__u64)timer,
		(__u64)timer->function);
	return 0;
}
SEC("?tp_btf/hrtimer_expire_entry")
int BPF_PROG(on_hrtimer_fire, struct hrtimer *timer)
{
	return emit(KERNEL_timer_fire, (__u64)timer, (__u64)timer->function);
}
