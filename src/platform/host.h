/* SPDX-License-Identifier: Apache-2.0 */
/* host.h - computers, their cards, and the ends of connections. Private to the layer. */
#ifndef LONGPOLE_PLATFORM_HOST_H
#define LONGPOLE_PLATFORM_HOST_H

#include "platform/config.h"
#include "platform/ip.h"
#include "platform/machine.h"
#include "platform/tcp.h"

#include <math.h>

struct platform_system;
struct platform_app;

/* A machine of a system's hardware or kernel. */
struct platform_part {
	struct platform_machine machine;
	struct platform_system *system;
};

/* One packet's place on the cable. */
struct platform_slot {
	struct platform_machine machine;
	struct platform_system *from;
	struct platform_queue queue; /* items: the packet that comes */
	struct platform_slot *next_free;
};

struct platform_system {
	const struct platform_system_config *config;
	const char *name;
	const struct platform_link_config *link;
	struct platform_system *peer; /* at the other end of the link */

	struct platform_queue processors; /* pool: those that run applications */
	struct platform_processor *irq_processor;
	struct platform_queue softirq; /* pool of one: what works in interrupts */
	struct platform_queue bus;     /* pool of one: the I/O bus */
	struct platform_part interrupt, driver;

	/* sending, in a packet's order; what is counted only has its packets in the list */
	struct platform_queue qdisc; /* items */
	struct {
		struct platform_queue free, ring, cache, fifo, done, clean, pending;
		struct platform_packets ring_packets, done_packets;
		struct platform_part fetch, dma, line, write_back, timer;
		uint64_t nr_to_write_back,
			nr_charged; /* nr_charged: datagrams' packets that are not cleaned */
	} tx;
	struct platform_slot *slot, *free_slot, *last_free_slot;
	uint64_t nr_slots;
	bool driver_busy;

	struct { /* receiving */
		struct platform_queue fifo, free, cache, done, ring;
		struct platform_packets landed_packets;
		struct platform_part fetch, dma, write_back;
		struct platform_queue irq;
		bool irq_raised, polling;
		uint64_t nr_polled, next_irq_ns;
		struct platform_packet *received; /* what the interrupt works on */
	} rx;

	struct { /* copy engine */
		struct platform_queue ring, done;
		uint64_t *bytes; /* of the jobs in the ring */
		size_t first, nr;
		struct platform_part engine;
	} copy;
	struct platform_queue disk_queue, disk_done;
	struct platform_part disk;

	uint64_t sent_payload_bytes, sent_frames, dropped_packets, resent_packets;
};

/* One end of a connection. */
struct platform_end {
	struct platform_system *system;
	struct platform_end *peer;
	struct platform_app *app;
	uint64_t connection;
	bool is_udp;
	struct platform_tcp tcp;
	struct platform_queue sndbuf, unsent, window, rcvbuf, ack_later, ack_owed;
	struct platform_machine output, ack_timer;
	bool output_busy, timer_runs, owes_ack;
	uint64_t nr_owed;
	/* losses */
	struct platform_queue resend_later, lost;
	struct platform_machine resend_timer;
	bool has_lost, resend_timer_runs;
	uint64_t nr_lost, nr_lost_heard_of, resend_seq;
	uint64_t unacked_since_ns;
	/* for conservation: of this direction (packet_bytes: of datagrams) */
	uint64_t written_bytes, in_hand_bytes, packet_bytes, dropped_bytes, read_bytes;
	uint64_t just_read;                   /* by the receiver, for the window */
	uint64_t assembling, assembled_bytes; /* UDP: of the datagram that is being put together */
	struct {                              /* web server's view: see web.c */
		bool is_ready, waits_for_space;
		uint64_t response_left;             /* of the file that is being sent */
		uint64_t request_bytes, file_bytes; /* what the client wants next */
		struct platform_queue *ready;       /* where readiness is told; NULL: nobody asks */
	} web;
};

/* ---- nic.c, link.c --------------------------------------------------------------------------- */

/* The machine of that part begins to step. */
void platform_part_start(struct platform_sim *s, struct platform_system *y,
	struct platform_part *part, const char *name,
	bool (*step)(struct platform_sim *s, struct platform_machine *m));
void platform_nic_init(struct platform_sim *s, struct platform_system *y);
void platform_link_init(struct platform_sim *s, struct platform_system *y, uint64_t nr_slots);
void platform_link_fini(struct platform_system *y);
/* m puts the packet on the cable. */
void platform_link_send(struct platform_sim *s, struct platform_machine *m,
	struct platform_system *y, struct platform_packet *p);
/* When descriptors that are written back need cleaning: the timer for that interrupt. */
void platform_nic_delay_interrupt(
	struct platform_sim *s, struct platform_machine *m, struct platform_system *y);
/* Transfer of bytes over the I/O bus, once it is owned. */
uint64_t platform_bus_ns(const struct platform_system *y, uint64_t bytes);

/* ---- net.c ----------------------------------------------------------------------------------- */

void platform_net_init(struct platform_sim *s, struct platform_system *y);
/* Opens both ends; data flows from a to b, and with is_udp false also back. */
void platform_net_connect(struct platform_sim *s, struct platform_end *a, struct platform_end *b,
	uint64_t connection, bool is_udp);
/* Level 2: n bytes that lie in the sending buffer are sent, or left to the output machine. */
bool platform_net_push(
	struct platform_sim *s, struct platform_machine *m, struct platform_end *e, uint32_t n);
/* Level 2: a datagram. */
bool platform_net_send_datagram(
	struct platform_sim *s, struct platform_machine *m, struct platform_end *e, uint32_t n);
/* Level 3: an acknowledgement without data. */
bool platform_net_send_ack(
	struct platform_sim *s, struct platform_machine *m, struct platform_end *e);
/* The packet is lost in the system `at`, on its way out or in. */
void platform_net_lose(struct platform_sim *s, struct platform_machine *m,
	struct platform_system *at, struct platform_packet *p);
/* Fragments of a datagram that is not whole are given up (RFC 791: reassembly ends some time). */
void platform_net_discard(struct platform_sim *s, struct platform_end *e);
uint32_t platform_net_mss(const struct platform_end *e);

/* ---- app.c, web.c ---------------------------------------------------------------------------- */

struct platform_thread { /* of an application */
	struct platform_machine machine;
	struct platform_app *app;
	struct platform_end *end;
	uint64_t left, call_left, got, n, chunk, copies, nr_requests;
	struct platform_queue *ready;
	bool ended;
};
static inline struct platform_thread *platform_thread_of(struct platform_machine *m)
{
	return (struct platform_thread *)m;
}
static inline const struct platform_system_parameters *platform_parameters_at(
	const struct platform_end *e)
{
	return &e->system->config->p;
}

struct platform_app {
	const struct platform_app_config *config;
	struct platform_system *from, *to;
	struct platform_end *client, *server; /* of `from`, of `to`: an array of connections */
	size_t nr_connections;
	struct platform_thread *thread;
	size_t nr_threads, nr_ended;
	uint64_t *nr_responses, *end_ns; /* by connection */
	struct platform_queue *ready;    /* of each server process */
	size_t nr_ready;
	size_t *nr_running_apps;
};
/* What a call into the kernel takes at e's system, and a copy between kernel and user. */
#define SYSTEM_CALL(s, m, e)                                                                       \
	WORK(s, m, system_call, platform_cost((s), platform_parameters_at(e)->syscall_ns))
#define COPY(s, m, e, state, bytes)                                                                \
	WORK(s, m, state,                                                                          \
		platform_cost((s),                                                                 \
			(double)platform_bytes_ns((bytes), platform_parameters_at(e)->copy_gbps)))

void platform_app_init(struct platform_sim *s, struct platform_app *a, uint64_t first_connection);
void platform_web_init(struct platform_sim *s, struct platform_app *a);
/* Named after its system and `what` it is. */
void platform_thread_start(struct platform_sim *s, struct platform_thread *t,
	const struct platform_system *y, const char *what, uint64_t instance,
	bool (*step)(struct platform_sim *s, struct platform_machine *m));
/* One more connection of the application has all its bytes. */
void platform_app_connection_ended(
	struct platform_sim *s, struct platform_app *a, size_t connection);
/* A datagram, or part of one, was lost. */
void platform_app_lost(struct platform_sim *s, struct platform_end *sender);
void platform_engine_init(struct platform_sim *s, struct platform_system *y);
void platform_disk_init(struct platform_sim *s, struct platform_system *y);
/* Level 1: n bytes of the thread's end go to the user, by processor or engine. */
bool platform_copy_out(
	struct platform_sim *s, struct platform_machine *m, struct platform_thread *t);
/* The connection can be read, or written again: tells whoever asked. */
void platform_web_ready(struct platform_sim *s, struct platform_machine *m, struct platform_end *e);

#endif
