/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * kernel.h - those fields of the kernel's structs that we read. libbpf moves each access to where
 * the running kernel has the field (CO-RE), so neither a kernel's headers nor its BTF are needed to
 * build. A struct NAME___x is another version's of NAME.
 */
#ifndef LONGPOLE_BPF_KERNEL_H
#define LONGPOLE_BPF_KERNEL_H

typedef unsigned char __u8;
typedef unsigned short __u16;
typedef unsigned int __u32;
typedef unsigned long long __u64;
typedef signed short __s16;
typedef int __s32;
typedef long long __s64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u64 __be64;
typedef __u32 __wsum;
typedef __u16 __sum16;
typedef _Bool bool;
enum { false, true };
#define NULL ((void *)0)

enum { BPF_MAP_TYPE_ARRAY = 2 };
enum { BPF_F_MMAPABLE = 1 << 10 };

#define RELOCATED __attribute__((preserve_access_index))

struct super_block {
	__u32 s_dev;
} RELOCATED;
struct inode {
	__u16 i_mode;
	unsigned long i_ino;
	struct super_block *i_sb;
} RELOCATED;
struct file {
	struct inode *f_inode;
	void *private_data;
} RELOCATED;
struct fdtable {
	unsigned int max_fds;
	struct file **fd;
} RELOCATED;
struct files_struct {
	struct fdtable *fdt;
} RELOCATED;
struct cfs_rq {
	int throttle_count;
} RELOCATED;
struct sched_entity {
	struct cfs_rq *cfs_rq;
} RELOCATED;
struct task_struct {
	int pid, tgid;
	unsigned int __state;
	int exit_code;
	char comm[16];
	struct files_struct *files;
	unsigned in_execve : 1;
	bool throttled; /* since 6.18 */
	struct sched_entity se;
} RELOCATED;
struct linux_binprm;

struct pt_regs {
	unsigned long r10, r9, r8, dx, si, di, orig_ax;
} RELOCATED;

struct irqaction {
	const char *name;
} RELOCATED;

typedef struct {
	int counter;
} atomic_t;
struct in6_addr {
	union {
		__u8 u6_addr8[16];
	} in6_u;
} RELOCATED;
struct sock_common {
	__be32 skc_daddr, skc_rcv_saddr;
	__be16 skc_dport;
	__u16 skc_num;
	unsigned short skc_family;
	volatile unsigned char skc_state;
	struct in6_addr skc_v6_daddr, skc_v6_rcv_saddr;
} RELOCATED;
struct socket {
	struct file *file;
} RELOCATED;
struct sk_backlog {
	atomic_t rmem_alloc;
} RELOCATED;
struct sock {
	struct sock_common __sk_common;
	struct socket *sk_socket;
	__u16 sk_protocol, sk_type;
	int sk_sndbuf, sk_rcvbuf, sk_wmem_queued;
	struct sk_backlog sk_backlog;
} RELOCATED;
struct tcp_sock {
	__u32 snd_cwnd, mss_cache, snd_wnd, rcv_wnd, snd_nxt, snd_una, write_seq, srtt_us;
	__u32 rcv_nxt, copied_seq;
} RELOCATED;
struct ns_common {
	unsigned int inum;
} RELOCATED;
struct net {
	struct ns_common ns;
} RELOCATED;
typedef struct {
	struct net *net;
} possible_net_t;
struct net_device {
	int ifindex;
	possible_net_t nd_net;
} RELOCATED;
struct sk_buff {
	struct net_device *dev;
	struct sock *sk;
	unsigned int len;
	__u16 protocol, network_header, transport_header, mac_header;
	unsigned char *head, *data;
} RELOCATED;
struct Qdisc {
	__u32 handle;
} RELOCATED;
struct netdev_queue;
struct napi_struct {
	struct net_device *dev;
} RELOCATED;

struct gendisk {
	int major, first_minor;
} RELOCATED;
struct request_queue {
	struct gendisk *disk;
} RELOCATED;
struct request {
	struct request_queue *q;
	unsigned int cmd_flags, __data_len;
	unsigned long long __sector;
} RELOCATED;

struct io_cqe {
	__u64 user_data;
	__s32 res;
	int fd;
} RELOCATED;
struct io_kiocb { /* a request of an io_uring's */
	struct file *file;
	__u8 opcode;
	__u32 flags; /* (only the lowest are looked at) */
	struct io_cqe cqe;
	void *ctx;
} RELOCATED;

struct work_struct;
typedef void (*work_func_t)(struct work_struct *);
struct work_struct {
	work_func_t func;
} RELOCATED;
struct pool_workqueue;
struct timer_list {
	unsigned long expires;
	void (*function)(struct timer_list *);
} RELOCATED;
struct timerqueue_node {
	long long expires;
} RELOCATED;
struct hrtimer_clock_base {
	__s64 offset;
} RELOCATED;
struct hrtimer {
	struct timerqueue_node node;
	__s64 _softexpires;
	struct hrtimer_clock_base *base;
	void *function;
} RELOCATED;
#endif
