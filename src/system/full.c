/* SPDX-License-Identifier: Apache-2.0 */
/* full.c - records of what --full sees: system calls, sockets, packets, disks, work, timers.
 */
#include "system/full.h"
#include "system/kernel_names.h"
#include "system/object.h"
#include "trace/syscalls.h"

#include <string.h>

enum {
	FUTEX_PRIVATE = 128,
	SYS_futex_number = 202,
	SYS_clock_nanosleep_number = 230,
	ABSOLUTE = 1, /* its flag */
	SYS_timerfd_settime_number = 286,
	SYS_io_uring_enter_number = 426,
	ENTER_REGISTERED_RING = 16, /* its descriptor is no descriptor */
	TCP_STATE_CLOSE = 7
};

static const struct kernel_address *full_address_of(const struct kernel_slot *s)
{
	return (const struct kernel_address *)(const void *)(s + 1);
}

/* ---- system calls ---------------------------------------------------------------------------- */

/* `own` tasks: the first records wait for their stream, and objects need an image: it may not be
 * there yet. */
static bool is_shared(const struct kernel_slot *s, uint64_t op)
{
	return s->vector == SYS_futex_number && !(op & FUTEX_PRIVATE);
}

static uint32_t call_object(struct system_kernel *k, struct system_kernel_task *t,
	const struct kernel_slot *s, uint64_t word, uint64_t op)
{
	const struct trace_syscall *call = trace_syscall_find(s->vector);
	if (s->vector == SYS_io_uring_enter_number && op & ENTER_REGISTERED_RING)
		return 0;
	if (word >> 63)
		return system_kernel_file(k, t, word);
	if (call->flags & TRACE_SYSCALL_ADDR)
		return system_kernel_futex(k, t, word, is_shared(s, op));
	return 0;
}

static void on_call_begin(
	struct system_kernel *k, const struct kernel_slot *s, unsigned cpu, uint64_t time_ns)
{
	struct system_kernel_task *t = system_kernel_task(k, s->tid);
	uint64_t op = s->b >> 48, n = s->b & ((1ull << 48) - 1);
	(void)cpu;
	if (!t || !system_kernel_stream(k, t))
		return;
	bool futex = (trace_syscall_find(s->vector)->flags & TRACE_SYSCALL_ADDR) != 0;
	t->own_futex = futex && t->own;
	t->call = (struct system_kernel_call){.number = s->vector,
		.op = op,
		.n = n,
		.object = t->own_futex ? 0 : call_object(k, t, s, s->a, op),
		.active = true};
	struct trace_record r = {.time_ns = time_ns,
		.kind = TRACE_call_begin,
		.u.call_begin = {.number = s->vector, .object = t->call.object, .op = op, .n = n}};
	if (t->own_futex) { /* whose word it is will be known when it is written */
		r.u.call_begin.number |= op << RECORD_CALL_OP_SHIFT | RECORD_CALL_FUTEX |
					 (is_shared(s, op) ? RECORD_CALL_SHARED : 0);
		r.u.call_begin.op = s->a;
	}
	system_kernel_put(k, t, &r);
}

/* timerfd_settime() started it, or stopped it. */
static void put_timer(struct system_kernel *k, struct system_kernel_task *t,
	const struct kernel_slot *s, uint64_t time_ns)
{
	const struct system_kernel_call *c = &t->call;
	if (!c->active || c->number != s->vector || c->number != SYS_timerfd_settime_number ||
		s->a || !c->object)
		return;
	struct trace_record r = {.time_ns = time_ns,
		.kind = TRACE_timer_set,
		.u.timer_set = {.object = c->object,
			.first_ns = c->delay_ns > 0 ? (uint64_t)c->delay_ns : 0,
			.period_ns = c->n,
			.armed = c->timed}};
	system_kernel_put(k, t, &r);
}

static void on_call_end(
	struct system_kernel *k, const struct kernel_slot *s, unsigned cpu, uint64_t time_ns)
{
	struct system_kernel_task *t = system_kernel_task(k, s->tid);
	(void)cpu;
	if (!t || !system_kernel_stream(k, t))
		return;
	uint32_t object = s->b ? system_kernel_file(k, t, s->b) : t->call.object;
	put_timer(k, t, s, time_ns);
	t->call.active = false;
	struct trace_record r = {.time_ns = time_ns,
		.kind = TRACE_call_end,
		.u.call_end = {.number = s->vector | (t->own_futex ? RECORD_CALL_FUTEX : 0),
			.object = object,
			.result = (int64_t)s->a}};
	t->own_futex = false;
	system_kernel_put(k, t, &r);
}

/* ---- sockets --------------------------------------------------------------------------------- */

static void put_socket(struct system_kernel *k, const struct kernel_slot *s, unsigned cpu,
	uint64_t time_ns, unsigned kind)
{
	struct trace_record r = {.time_ns = time_ns,
		.kind = (uint16_t)kind,
		.u.socket_send = {.object = system_kernel_socket(k, s->a, (uint32_t)(s->b >> 32)),
			.n = (uint32_t)s->b}};
	system_kernel_put_actor(k, s, cpu, &r);
}

static void on_socket_send(
	struct system_kernel *k, const struct kernel_slot *s, unsigned cpu, uint64_t time_ns)
{
	put_socket(k, s, cpu, time_ns, TRACE_socket_send);
}

static void on_socket_ready(
	struct system_kernel *k, const struct kernel_slot *s, unsigned cpu, uint64_t time_ns)
{
	put_socket(k, s, cpu, time_ns, TRACE_socket_ready);
}

static void on_socket_receive(
	struct system_kernel *k, const struct kernel_slot *s, unsigned cpu, uint64_t time_ns)
{
	put_socket(k, s, cpu, time_ns, TRACE_socket_receive);
}

static void on_socket_state(
	struct system_kernel *k, const struct kernel_slot *s, unsigned cpu, uint64_t time_ns)
{
	(void)cpu;
	(void)time_ns;
	if (s->b == TCP_STATE_CLOSE)
		system_kernel_socket_closed(k, s->a);
	else
		system_kernel_socket_named(k, s->a, full_address_of(s));
}

/* Limits and fill: when a limit has changed, and now and then. */
static void put_buffers(struct system_kernel *k, const struct kernel_slot *s, unsigned cpu,
	uint64_t time_ns, uint32_t object, const struct kernel_tcp *tcp)
{
	struct trace_record r = {.time_ns = time_ns,
		.kind = TRACE_socket_buffer,
		.u.socket_buffer = {.object = object,
			.send = tcp->send_bytes,
			.send_limit = tcp->send_limit,
			.receive = tcp->receive_bytes,
			.receive_limit = tcp->receive_limit,
			.unsent = tcp->unsent_bytes}};
	uint64_t limits = (uint64_t)tcp->send_limit << 32 | tcp->receive_limit, before = 0;
	bool full = tcp->send_bytes >= tcp->send_limit || tcp->unsent_bytes ||
		    tcp->receive_bytes * 2 >= tcp->receive_limit;
	if (base_map_get(&k->limits, 0, object, &before) && before == limits && !full)
		return;
	enum base_status status = base_map_put(&k->limits, 0, object, limits);
	if (status != BASE_OK)
		record_sink_fail(&k->converter->sink, status, "no memory for one more socket");
	system_kernel_put_actor(k, s, cpu, &r);
}

static void on_tcp_window(
	struct system_kernel *k, const struct kernel_slot *s, unsigned cpu, uint64_t time_ns)
{
	struct kernel_tcp tcp;
	uint32_t object = system_kernel_socket(k, s->a, (uint32_t)(s->b >> 32));
	memcpy(&tcp, s + 1, sizeof tcp);
	struct trace_record r = {.time_ns = time_ns,
		.kind = TRACE_tcp_window,
		.u.tcp_window = {.object = object,
			.congestion = (uint64_t)tcp.congestion_segments * tcp.segment_bytes,
			.peer = tcp.peer_bytes,
			.own = tcp.own_bytes,
			.unacknowledged = tcp.unacknowledged_bytes,
			.srtt_us = tcp.srtt_us}};
	system_kernel_put_actor(k, s, cpu, &r);
	put_buffers(k, s, cpu, time_ns, object, &tcp);
}

/* ---- packets --------------------------------------------------------------------------------- */

static const uint16_t packet_kind[KERNEL_EVENT_NR] = {
	[KERNEL_packet_queue] = TRACE_packet_queue,
	[KERNEL_packet_transmit] = TRACE_packet_transmit,
	[KERNEL_packet_receive] = TRACE_packet_receive,
	[KERNEL_packet_drop] = TRACE_packet_drop,
	[KERNEL_qdisc_enqueue] = TRACE_qdisc_enqueue,
	[KERNEL_qdisc_dequeue] = TRACE_qdisc_dequeue,
};

static void on_packet(
	struct system_kernel *k, const struct kernel_slot *s, unsigned cpu, uint64_t time_ns)
{
	const struct kernel_address *a = full_address_of(s);
	bool qdisc = s->type == KERNEL_qdisc_enqueue || s->type == KERNEL_qdisc_dequeue;
	uint32_t index = (uint32_t)s->a;
	struct trace_record r = {.time_ns = time_ns,
		.kind = packet_kind[s->type],
		.u.packet_queue = {
			.object = qdisc ? system_kernel_qdisc(k, a->net_namespace, index, a->extra)
					: system_kernel_netdev(k, a->net_namespace, index),
			.flow = system_kernel_flow(k, a),
			.seq = a->seq,
			.ack = a->ack,
			.payload = a->payload,
			.n = s->a >> 32,
			.socket = s->b ? system_kernel_socket(k, s->b, a->inode) : 0}};
	system_kernel_put_actor(k, s, cpu, &r);
}

static void on_napi_poll(
	struct system_kernel *k, const struct kernel_slot *s, unsigned cpu, uint64_t time_ns)
{
	struct trace_record r = {.time_ns = time_ns,
		.kind = TRACE_napi_poll,
		.u.napi_poll = {
			.object = system_kernel_netdev(k, (uint32_t)(s->b >> 32), (uint32_t)s->a),
			.n = s->b & 0xffff,
			.budget = s->b >> 16 & 0xffff}};
	system_kernel_put_actor(k, s, cpu, &r);
}

/* ---- disks, work, timers, locks -------------------------------------------------------------- */

static const uint16_t plain_kind[KERNEL_EVENT_NR] = {
	[KERNEL_disk_queue] = TRACE_disk_queue,
	[KERNEL_disk_begin] = TRACE_disk_begin,
	[KERNEL_disk_end] = TRACE_disk_end,
	[KERNEL_work_queue] = TRACE_work_queue,
	[KERNEL_work_begin] = TRACE_work_begin,
	[KERNEL_work_end] = TRACE_work_end,
	[KERNEL_timer_fire] = TRACE_timer_fire,
	[KERNEL_lock_wait] = TRACE_kernel_lock_wait,
	[KERNEL_lock_acquire] = TRACE_kernel_lock_acquire,
};

static void on_disk(
	struct system_kernel *k, const struct kernel_slot *s, unsigned cpu, uint64_t time_ns)
{
	static const uint8_t op[] = {
		TRACE_DISK_read, TRACE_DISK_write, TRACE_DISK_flush, TRACE_DISK_discard};
	uint64_t asked = s->b >> 32;
	struct trace_record r = {.time_ns = time_ns,
		.kind = plain_kind[s->type],
		.u.disk_begin = {.object = system_kernel_disk(k, s[1].time_ns),
			.op = asked < BASE_COUNT(op) ? op[asked] : TRACE_DISK_other,
			.key = s->a,
			.n = (uint32_t)s->b}};
	system_kernel_put_actor(k, s, cpu, &r);
}

/* Small numbers instead of addresses: they pair records just as well, and say nothing about the
 * kernel's memory. */
static uint64_t full_key_of(struct system_kernel *k, uint64_t address)
{
	uint64_t key;
	if (base_map_get(&k->keys, 0, address, &key))
		return key;
	key = ++k->nr_keys;
	enum base_status status = base_map_put(&k->keys, 0, address, key);
	if (status != BASE_OK)
		record_sink_fail(&k->converter->sink, status, "no memory for one more timer");
	return key;
}

static void on_keyed(
	struct system_kernel *k, const struct kernel_slot *s, unsigned cpu, uint64_t time_ns)
{
	struct trace_record r = {.time_ns = time_ns,
		.kind = plain_kind[s->type],
		.u.work_queue = {.key = full_key_of(k, s->a), .site = system_kernel_site(k, s->b)}};
	system_kernel_put_actor(k, s, cpu, &r);
}

/* The call's own timer is the first that it starts. Of an absolute one that is the deadline. */
static void put_deadline(
	struct system_kernel *k, struct system_kernel_task *t, int64_t delay_ns, uint64_t time_ns)
{
	struct system_kernel_call *c = t ? &t->call : NULL;
	if (!c || !c->active || c->timed)
		return;
	c->timed = true;
	c->delay_ns = delay_ns;
	if (c->number != SYS_clock_nanosleep_number || !(c->op & ABSOLUTE))
		return;
	struct trace_record r = {.time_ns = time_ns,
		.kind = TRACE_sleep_until,
		.u.sleep_until = {.remaining_ns = delay_ns,
			.deadline_ns = (uint64_t)((int64_t)k->event_mono_ns + delay_ns)}};
	system_kernel_put(k, t, &r);
}

static void on_timer_start(
	struct system_kernel *k, const struct kernel_slot *s, unsigned cpu, uint64_t time_ns)
{
	if (system_kernel_is_tick(k, s->b))
		return;
	int64_t delay_ns = s->shape >> 4 > 1 ? (int64_t)s[1].time_ns : 0;
	struct trace_record r = {.time_ns = time_ns,
		.kind = TRACE_timer_start,
		.u.timer_start = {.key = full_key_of(k, s->a),
			.site = system_kernel_site(k, s->b),
			.delay_ns = delay_ns > 0 ? (uint64_t)delay_ns : 0}};
	system_kernel_put_actor(k, s, cpu, &r);
	if ((s->shape & 15) == KERNEL_IN_TASK && s->shape >> 4 > 1)
		put_deadline(k, system_kernel_task(k, s->tid), delay_ns, time_ns);
}

static void on_timer_fire(
	struct system_kernel *k, const struct kernel_slot *s, unsigned cpu, uint64_t time_ns)
{
	if (!system_kernel_is_tick(k, s->b))
		on_keyed(k, s, cpu, time_ns);
}

static void on_lock(
	struct system_kernel *k, const struct kernel_slot *s, unsigned cpu, uint64_t time_ns)
{
	struct trace_record r = {.time_ns = time_ns,
		.kind = plain_kind[s->type],
		.u.kernel_lock_wait.object = system_kernel_lock(k, s->a)};
	system_kernel_put_actor(k, s, cpu, &r);
}

/* ---- io_uring -------------------------------------------------------------------------------- */

static void on_ring(
	struct system_kernel *k, const struct kernel_slot *s, unsigned cpu, uint64_t time_ns)
{
	struct system_kernel_task *t = system_kernel_task(k, s->tid);
	(void)cpu;
	(void)time_ns;
	if (t && s->b && system_kernel_stream(k, t))
		system_kernel_ring_is(k, s->a, system_kernel_file(k, t, s->b));
}

static void on_request(
	struct system_kernel *k, const struct kernel_slot *s, unsigned cpu, uint64_t time_ns)
{
	static const uint16_t kind[KERNEL_EVENT_NR] = {
		[KERNEL_ring_async] = TRACE_ring_async,
		[KERNEL_ring_arm] = TRACE_ring_arm,
		[KERNEL_ring_ready] = TRACE_ring_ready,
	};
	struct kernel_request q;
	struct system_kernel_task *t = system_kernel_task(k, s->tid);
	memcpy(&q, s + 1, sizeof q);
	uint32_t ring = system_kernel_ring(k, s->a);
	uint64_t key = q.request ? full_key_of(k, q.request) : 0;
	struct trace_record r = {.time_ns = time_ns};
	if (s->type == KERNEL_ring_submit) {
		r.kind = TRACE_ring_submit;
		r.u.ring_submit = (struct trace_ring_submit){.object = ring,
			.key = key,
			.user = s->b,
			.op = q.op,
			.file = t && system_kernel_stream(k, t) ? system_kernel_file(k, t, q.file)
								: 0};
	} else if (s->type == KERNEL_ring_complete) {
		r.kind = TRACE_ring_complete;
		r.u.ring_complete = (struct trace_ring_complete){.object = ring,
			.key = key,
			.user = s->b,
			.op = q.op,
			.file = system_kernel_known_file(k, q.file),
			.result = q.result};
	} else {
		r.kind = kind[s->type];
		r.u.ring_async = (struct trace_ring_async){.object = ring, .key = key};
	}
	system_kernel_put_actor(k, s, cpu, &r);
}

static void on_ring_wait(
	struct system_kernel *k, const struct kernel_slot *s, unsigned cpu, uint64_t time_ns)
{
	struct trace_record r = {.time_ns = time_ns,
		.kind = TRACE_ring_wait,
		.u.ring_wait = {.object = system_kernel_ring(k, s->a), .n = s->b}};
	system_kernel_put_actor(k, s, cpu, &r);
}

static void on_stack(
	struct system_kernel *k, const struct kernel_slot *s, unsigned cpu, uint64_t time_ns)
{
	uint64_t frame[KERNEL_FRAMES_MAX];
	struct system_kernel_task *t = system_kernel_task(k, s->tid);
	(void)cpu;
	if (!t)
		return;
	memcpy(frame, s + 1, sizeof frame);
	size_t nr = s->a < KERNEL_FRAMES_MAX ? (size_t)s->a : KERNEL_FRAMES_MAX;
	struct trace_record r = {.time_ns = time_ns,
		.kind = TRACE_wait_at,
		.u.wait_at = {.state = TRACE_SLEEP_uninterruptible,
			.stack = system_kernel_stack(k, frame, nr)}};
	system_kernel_put(k, t, &r);
}

system_kernel_handler *system_full_handler(unsigned type)
{
	static system_kernel_handler *const table[KERNEL_EVENT_NR] = {
		[KERNEL_call_begin] = on_call_begin,
		[KERNEL_call_end] = on_call_end,
		[KERNEL_socket_send] = on_socket_send,
		[KERNEL_socket_ready] = on_socket_ready,
		[KERNEL_socket_receive] = on_socket_receive,
		[KERNEL_socket_state] = on_socket_state,
		[KERNEL_tcp_window] = on_tcp_window,
		[KERNEL_packet_queue] = on_packet,
		[KERNEL_packet_transmit] = on_packet,
		[KERNEL_packet_receive] = on_packet,
		[KERNEL_packet_drop] = on_packet,
		[KERNEL_qdisc_enqueue] = on_packet,
		[KERNEL_qdisc_dequeue] = on_packet,
		[KERNEL_napi_poll] = on_napi_poll,
		[KERNEL_disk_queue] = on_disk,
		[KERNEL_disk_begin] = on_disk,
		[KERNEL_disk_end] = on_disk,
		[KERNEL_work_queue] = on_keyed,
		[KERNEL_work_begin] = on_keyed,
		[KERNEL_work_end] = on_keyed,
		[KERNEL_timer_start] = on_timer_start,
		[KERNEL_timer_fire] = on_timer_fire,
		[KERNEL_lock_wait] = on_lock,
		[KERNEL_lock_acquire] = on_lock,
		[KERNEL_stack] = on_stack,
		[KERNEL_ring] = on_ring,
		[KERNEL_ring_submit] = on_request,
		[KERNEL_ring_async] = on_request,
		[KERNEL_ring_arm] = on_request,
		[KERNEL_ring_ready] = on_request,
		[KERNEL_ring_complete] = on_request,
		[KERNEL_ring_wait] = on_ring_wait,
	};
	return type < KERNEL_EVENT_NR ? table[type] : NULL;
}
