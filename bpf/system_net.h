/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* system_net.h - TCP, packets, queueing disciplines, polling of devices. Part of system.bpf.c. */

enum {
	FAMILY_INET = 2,
	FAMILY_INET6 = 10,
	PROTOCOL_TCP = 6,
	PROTOCOL_UDP = 17,
	ETHER_IPV4 = 0x0008, /* in the network's order */
	ETHER_IPV6 = 0xdd86,
};
#define HOST16(v) __builtin_bswap16(v)
#define HOST32(v) __builtin_bswap32(v)

/* ---- TCP ------------------------------------------------------------------------------------- */

SEC("?tp_btf/tcp_probe")
int BPF_PROG(on_tcp_probe, struct sock *sk, struct sk_buff *skb)
{
	struct writing w;
	struct tcp_sock *tp = bpf_skc_to_tcp_sock(sk);

	if (!tp || !reserve(&w, 3))
		return 0;
	struct kernel_slot *first = slot_at(w.cpu, w.at + 1), *second = slot_at(w.cpu, w.at + 2);
	if (first && second) {
		struct kernel_tcp t = {
			.congestion_segments = tp->snd_cwnd,
			.segment_bytes = tp->mss_cache,
			.peer_bytes = tp->snd_wnd,
			.own_bytes = tp->rcv_wnd,
			.unacknowledged_bytes = tp->snd_nxt - tp->snd_una,
			.unsent_bytes = tp->write_seq - tp->snd_nxt,
			.srtt_us = tp->srtt_us >> 3,
			.send_bytes = (__u32)sk->sk_wmem_queued,
			.send_limit = (__u32)sk->sk_sndbuf,
			.receive_bytes = (__u32)sk->sk_backlog.rmem_alloc.counter,
			.receive_limit = (__u32)sk->sk_rcvbuf,
		};
		__builtin_memcpy(first, &t, KERNEL_SLOT_BYTES);
		__builtin_memcpy(second, (char *)&t + KERNEL_SLOT_BYTES, KERNEL_SLOT_BYTES);
	}
	commit(&w, CURRENT_TID, KERNEL_tcp_window, 3, context_of(w.control), (__u64)sk,
		(__u64)socket_inode(sk) << 32);
	return 0;
}

ALWAYS void copy_address(struct writing *w, const struct kernel_address *a)
{
	struct kernel_slot *first = slot_at(w->cpu, w->at + 1),
			   *second = slot_at(w->cpu, w->at + 2);

	if (!first || !second)
		return;
	__builtin_memcpy(first, a, KERNEL_SLOT_BYTES);
	__builtin_memcpy(second, (const char *)a + KERNEL_SLOT_BYTES, KERNEL_SLOT_BYTES);
}

SEC("?tp_btf/inet_sock_set_state")
int BPF_PROG(on_socket_state, struct sock *sk, int before, int state)
{
	enum { ESTABLISHED = 1, CLOSE = 7, LISTEN = 10 };
	struct kernel_address a = {};
	struct writing w;

	if (state != ESTABLISHED && state != CLOSE && state != LISTEN)
		return 0;
	a.family = sk->__sk_common.skc_family;
	a.protocol = sk->sk_protocol;
	a.from_port = sk->__sk_common.skc_num;
	a.to_port = HOST16(sk->__sk_common.skc_dport);
	a.inode = socket_inode(sk);
	if (a.family == FAMILY_INET) {
		*(__u32 *)a.from = sk->__sk_common.skc_rcv_saddr;
		*(__u32 *)a.to = sk->__sk_common.skc_daddr;
	} else if (bpf_core_field_exists(sk->__sk_common.skc_v6_daddr)) {
		bpf_probe_read_kernel(a.from, 16, &sk->__sk_common.skc_v6_rcv_saddr);
		bpf_probe_read_kernel(a.to, 16, &sk->__sk_common.skc_v6_daddr);
	}
	if (!reserve(&w, 3))
		return 0;
	copy_address(&w, &a);
	commit(&w, CURRENT_TID, KERNEL_socket_state, 3, context_of(w.control), (__u64)sk,
		(__u32)state);
	return 0;
}

/* ---- packets --------------------------------------------------------------------------------- */

struct ports { /* the beginning of TCP and of UDP */
	__be16 from, to;
	__be32 seq, ack;
	__u8 header_words; /* upper half: of four bytes */
	__u8 rest[7];
};
struct ipv4 {
	__u8 version_words, service;
	__be16 length, id, fragment;
	__u8 lives, protocol;
	__sum16 sum;
	__be32 from, to;
};
struct ipv6 {
	__be32 flow;
	__be16 length;
	__u8 protocol, lives;
	__u8 from[16], to[16];
};

ALWAYS void read_ports(struct kernel_address *a, const unsigned char *at, __u32 bytes)
{
	struct ports p = {};

	if (a->protocol != PROTOCOL_TCP && a->protocol != PROTOCOL_UDP)
		return;
	bpf_probe_read_kernel(&p, sizeof p, at);
	a->from_port = HOST16(p.from);
	a->to_port = HOST16(p.to);
	if (a->protocol != PROTOCOL_TCP)
		return;
	a->seq = HOST32(p.seq);
	a->ack = HOST32(p.ack);
	__u32 header = (__u32)(p.header_words >> 4) * 4;
	a->payload = bytes > header ? bytes - header : 0;
}

/* What the packet's headers say; returns its length from the IP header on, 0: no IP packet. */
ALWAYS __u32 read_packet(
	struct kernel_address *a, __u16 ether, const unsigned char *at, __u32 bytes)
{
	if (ether == ETHER_IPV4) {
		struct ipv4 ip = {};

		bpf_probe_read_kernel(&ip, sizeof ip, at);
		__u32 header = (ip.version_words & 15) * 4;
		if (ip.length) /* else longer than 64 KiB (GSO); a short frame is padded */
			bytes = HOST16(ip.length);
		a->family = FAMILY_INET;
		a->protocol = ip.protocol;
		a->seq = HOST16(ip.id);
		*(__u32 *)a->from = ip.from;
		*(__u32 *)a->to = ip.to;
		if (!(ip.fragment & HOST16(0x1fff)))
			read_ports(a, at + header, bytes - header);
		return bytes;
	}
	if (ether == ETHER_IPV6) {
		struct ipv6 ip = {};

		bpf_probe_read_kernel(&ip, sizeof ip, at);
		if (ip.length)
			bytes = HOST16(ip.length) + sizeof ip;
		a->family = FAMILY_INET6;
		a->protocol = ip.protocol;
		__builtin_memcpy(a->from, ip.from, 16);
		__builtin_memcpy(a->to, ip.to, 16);
		read_ports(a, at + sizeof ip, bytes - sizeof ip);
		return bytes;
	}
	return 0;
}

ALWAYS __u32 namespace_of(const struct net_device *dev)
{
	struct net *net = dev->nd_net.net;

	return net ? net->ns.inum : 0;
}

ALWAYS int emit_packet(
	__u32 type, struct sk_buff *skb, const struct net_device *dev, bool received, __u32 extra)
{
	struct kernel_address a = {};
	struct writing w;
	/* A received packet's data begin with the IP header; its network_header is set later. */
	const unsigned char *at = received ? skb->data : skb->head + skb->network_header;
	__u32 bytes = skb->len - (__u32)(at - skb->data);

	bytes = read_packet(&a, skb->protocol, at, bytes);
	if (!bytes)
		return 0;
	a.extra = extra;
	a.net_namespace = namespace_of(dev);
	struct sock *sk = received ? NULL : skb->sk;
	if (!reserve(&w, 3))
		return 0;
	copy_address(&w, &a);
	commit(&w, CURRENT_TID, type, 3, context_of(w.control),
		(__u32)dev->ifindex | (__u64)bytes << 32, (__u64)sk);
	return 0;
}

SEC("?tp_btf/net_dev_queue")
int BPF_PROG(on_packet_queue, struct sk_buff *skb)
{
	return emit_packet(KERNEL_packet_queue, skb, skb->dev, false, 0);
}
SEC("?tp_btf/net_dev_start_xmit")
int BPF_PROG(on_packet_transmit, struct sk_buff *skb, struct net_device *dev)
{
	return emit_packet(KERNEL_packet_transmit, skb, dev, false, 0);
}
SEC("?tp_btf/netif_receive_skb")
int BPF_PROG(on_packet_receive, struct sk_buff *skb)
{
	return emit_packet(KERNEL_packet_receive, skb, skb->dev, true, 0);
}
SEC("?tp_btf/qdisc_enqueue")
int BPF_PROG(on_qdisc_enqueue, struct Qdisc *q, struct netdev_queue *txq, struct sk_buff *skb)
{
	return emit_packet(KERNEL_qdisc_enqueue, skb, skb->dev, false, q->handle);
}
SEC("?tp_btf/qdisc_dequeue")
int BPF_PROG(on_qdisc_dequeue, struct Qdisc *q, struct netdev_queue *txq, int packets,
	struct sk_buff *skb)
{
	if (packets <= 0 || !skb)
		return 0;
	return emit_packet(KERNEL_qdisc_dequeue, skb, skb->dev, false, q->handle);
}
SEC("?tp_btf/kfree_skb")
int BPF_PROG(on_packet_drop, struct sk_buff *skb, void *location, int reason)
{
	struct net_device *dev = skb->dev;

	if (!dev || !skb->network_header)
		return 0;
	return emit_packet(KERNEL_packet_drop, skb, dev, false, (__u32)reason);
}
SEC("?tp_btf/napi_poll")
int BPF_PROG(on_napi_poll, struct napi_struct *napi, int work, int budget)
{
	struct net_device *dev = napi->dev;

	if (!dev)
		return 0;
	return emit(KERNEL_napi_poll, (__u32)dev->ifindex,
		((__u32)work & 0xffff) | (__u64)(budget & 0xffff) << 16 |
			(__u64)namespace_of(dev) << 32);
}
