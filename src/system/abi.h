/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * abi.h - what bpf/system.bpf.c, inside the kernel, and system/bpf.c agree upon.
 *
 * One array of slots a processor. The kernel side takes the next slots by one atomic addition (an
 * interrupt may come in between) and writes the time last; the reader reads up to the first slot
 * without a time, makes all that it has read zero again, and moves `tail`. Nobody waits, nobody is
 * woken. What does not fit is counted. Included by both sides: no other header is.
 */
#ifndef LONGPOLE_SYSTEM_ABI_H
#define LONGPOLE_SYSTEM_ABI_H

enum {
	KERNEL_CPUS_MAX = 1024,
	KERNEL_CALLS_MAX = 512,
	KERNEL_SLOTS_SPARE = 64, /* reservations that are under way never overrun the tail */
	KERNEL_COMM_BYTES = 16,
	KERNEL_FRAMES_MAX = 12,
};

/*
 * What happened, in `a`, `b` and the words of the slots that follow. In all: vector: of the
 * context; `tid`: of the current task. call_*: the vector is the call's number.
 */
#define KERNEL_EVENTS(X)                                                                           \
	X(none)                                                                                    \
	X(switch) /* tid leaves; a: enters; b: task state | enum kernel_left << 32 */              \
	X(wake)   /* a: woken tid */                                                               \
	X(fork)   /* a: child's tid | tgid << 32; b: parent's tgid; then comm */                   \
	X(exec)   /* a: tid before; b: tgid; then comm */                                          \
	X(exit)   /* a: exit code; b: tgid */                                                      \
	X(comm)   /* a: tid; b: tgid; then comm */                                                 \
	X(context_begin)                                                                           \
	X(context_end)                                                                             \
	X(context_raise) /* a: kernel_context | vector << 8; b: processor */                       \
	X(call_begin)    /* a: object, see KERNEL_FILE; b: n | op << 48 */                         \
	X(call_end)      /* a: result; b: object that the call has made */                         \
	X(socket_send)   /* a: struct sock; b: bytes | inode << 32 */                              \
	X(socket_ready)                                                                            \
	X(socket_receive)                                                                          \
	X(socket_state) /* a: struct sock; b: new state; then struct kernel_address */             \
	X(tcp_window)   /* a: struct sock; b: inode << 32; then struct kernel_tcp */               \
	X(packet_queue) /* a: device | bytes << 32; b: sock; then struct kernel_packet */          \
	X(packet_transmit)                                                                         \
	X(packet_receive)                                                                          \
	X(packet_drop)                                                                             \
	X(qdisc_enqueue)                                                                           \
	X(qdisc_dequeue)                                                                           \
	X(napi_poll)  /* a: device; b: packets | budget << 16 | namespace << 32 */                 \
	X(disk_queue) /* a: sector; b: bytes | op << 32; then the device's number */               \
	X(disk_begin)                                                                              \
	X(disk_end)                                                                                \
	X(work_queue) /* a: work; b: function */                                                   \
	X(work_begin)                                                                              \
	X(work_end)                                                                                \
	X(timer_start) /* a: timer; b: function; then delay_ns, below 0: it has been due */        \
	X(timer_fire)                                                                              \
	X(lock_wait) /* a: lock */                                                                 \
	X(lock_acquire)                                                                            \
	X(stack)       /* of the switch that follows; a: frames; then addresses */                 \
	X(ring)        /* a: io_uring; b: its descriptor's file, see KERNEL_FILE */                \
	X(ring_submit) /* a: io_uring; b: user_data; then struct kernel_request */                 \
	X(ring_async)                                                                              \
	X(ring_arm)                                                                                \
	X(ring_ready)                                                                              \
	X(ring_complete)                                                                           \
	X(ring_wait) /* a: io_uring; b: completions */
enum kernel_event_type {
#define X(name) KERNEL_##name,
	KERNEL_EVENTS(X)
#undef X
		KERNEL_EVENT_NR
};

/* Why a task leaves its processor. */
enum kernel_left { KERNEL_LEFT_ASLEEP, KERNEL_LEFT_RUNNABLE, KERNEL_LEFT_THROTTLED };

/* The actor: the current task, or what interrupts it. The numbers are trace_context_type's. */
enum kernel_context {
	KERNEL_IN_TASK,
	KERNEL_IN_IRQ,
	KERNEL_IN_SOFTIRQ,
	KERNEL_IN_TIMER,
	KERNEL_IN_IPI,
	KERNEL_IN_NMI,
	KERNEL_CONTEXT_NR
};
enum { KERNEL_VECTOR_UNKNOWN = 0xffff };
enum { KERNEL_IPI_reschedule, KERNEL_IPI_call, KERNEL_IPI_call_single, KERNEL_IPI_irq_work };

struct kernel_slot {
	unsigned long long time_ns; /* CLOCK_MONOTONIC; 0: not written yet */
	unsigned int tid;           /* of the current task; 0: idle */
	unsigned char type;         /* enum kernel_event_type */
	unsigned char shape;        /* slots, with this one, << 4 | enum kernel_context */
	unsigned short vector;
	unsigned long long a, b;
};
enum { KERNEL_SLOT_BYTES = 32, KERNEL_SLOTS_OF_EVENT_MAX = 4 };

/* The file behind a descriptor, in one word: inode's low 32 bits (of an anonymous inode: the
 * address of the struct file >> 4), file type (S_IFMT >> 12), a hash of the device, the descriptor.
 */
#define KERNEL_FILE(inode, type, device, fd)                                                       \
	((unsigned long long)(unsigned int)(inode) | (unsigned long long)(type) << 32 |            \
		(unsigned long long)(((device) ^ (device) >> 7 ^ (device) >> 20) & 0x7f) << 36 |   \
		((unsigned long long)(fd)&0xfffff) << 43 | 1ull << 63)
#define KERNEL_FILE_KEY(word)  ((word) & ((1ull << 43) - 1))
#define KERNEL_FILE_TYPE(word) ((unsigned)((word) >> 32) & 15)
#define KERNEL_FILE_FD(word)   ((unsigned)((word) >> 43) & 0xfffff)
/* The top bit tells a file from a user address (futex). */

struct kernel_address { /* of a socket or packet, in the sender's direction; two slots */
	unsigned char from[16], to[16];    /* IPv4: the first four */
	unsigned short from_port, to_port; /* host's order */
	unsigned short family;
	unsigned short protocol;
	unsigned int inode;
	unsigned int seq, ack, payload; /* packets only */
	unsigned int net_namespace;     /* of the device */
	unsigned int extra;             /* of a qdisc: its handle; of a drop: the reason */
};

struct kernel_tcp { /* two slots */
	unsigned int congestion_segments, segment_bytes;
	unsigned int peer_bytes, own_bytes, unacknowledged_bytes, unsent_bytes;
	unsigned int srtt_us;
	unsigned int send_bytes, send_limit, receive_bytes, receive_limit;
	unsigned int spare[5];
};

enum { KERNEL_REQUEST_OP_UNKNOWN = 0xff };
struct kernel_request {             /* of an io_uring's; one slot */
	unsigned long long request; /* 0: none, a further completion */
	unsigned long long file;    /* KERNEL_FILE; 0: none, or not known */
	int result;                 /* of ring_complete */
	unsigned int op;
	unsigned long long spare;
};

/* Of one processor: the kernel's side and the reader's on lines of their own. */
struct kernel_control {
	unsigned long long head, dropped;
	unsigned int hard, soft; /* kernel_context << 16 | vector of what runs; 0: nothing */
	unsigned char pad[40];
	unsigned long long tail;
	unsigned char pad_reader[56];
};

/* What a system call's arguments mean; numbers of arguments from 1, 0: none. */
struct kernel_call {
	unsigned char object, is_file; /* the argument is a descriptor; else an address */
	unsigned char op, n;
	unsigned char n_is_time; /* n points to a struct timespec: ns */
	unsigned char makes;     /* returns a descriptor */
	unsigned char wanted;    /* 0: not recorded */
	unsigned char spare;
};
#endif
