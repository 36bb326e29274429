/* SPDX-License-Identifier: Apache-2.0 */
/* peers.c - the kernel's list of sockets (sock_diag), as pairs of inodes. */
#include "deadlock/facts/peers.h"

#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

enum { ANSWER_BYTES = 1 << 16 };

/* ---- parsing --------------------------------------------------------------------------------- */

static void peers_put(struct deadlock_peers *p, uint64_t a, uint64_t b)
{
	if (a && b && base_map_put(&p->peer, 0, a, b) != BASE_OK)
		p->refused = true;
}

static void peers_set(
	struct deadlock_peers *p, struct base_map *m, uint64_t hi, uint64_t lo, uint64_t to)
{
	if (base_map_put(m, hi, lo, to) != BASE_OK)
		p->refused = true;
}

/* A path ends with its NUL, an abstract name with its length. */
static void hash_name(const void *name, size_t bytes, uint64_t *ret_hi, uint64_t *ret_lo)
{
	const uint8_t *at = name;
	uint64_t hi = 1, lo = 2;
	if (bytes && *at)
		bytes = strnlen(name, bytes);
	for (size_t i = 0; i < bytes; i++) {
		hi = base_hash_u64(hi ^ at[i]);
		lo = base_hash_u64(lo + at[i]);
	}
	*ret_hi = hi;
	*ret_lo = lo;
}

/* A socket that a listener has accepted has the listener's name, too. */
static bool has_its_name(const struct unix_diag_msg *m)
{
	return m->udiag_state == TCP_LISTEN || m->udiag_type == SOCK_DGRAM;
}

static void parse_name(
	struct deadlock_peers *p, const struct unix_diag_msg *m, const uint8_t *name, size_t bytes)
{
	uint64_t hi, lo;
	const bool listens = m->udiag_state == TCP_LISTEN;
	hash_name(name, bytes, &hi, &lo);
	if (has_its_name(m))
		peers_set(p, &p->name, hi, lo, m->udiag_ino);
	if (listens || (m->udiag_type == SOCK_DGRAM && m->udiag_state != TCP_ESTABLISHED))
		peers_set(p, &p->role, 0, m->udiag_ino,
			listens ? DEADLOCK_SOCKET_LISTENS : DEADLOCK_SOCKET_OPEN);
}

static void parse_file(struct deadlock_peers *p, const struct unix_diag_msg *m, const uint8_t *at)
{
	struct unix_diag_vfs file;
	memcpy(&file, at, sizeof file);
	if (has_its_name(m))
		peers_set(p, &p->file, file.udiag_vfs_dev, file.udiag_vfs_ino, m->udiag_ino);
}

static void parse_waiting(
	struct deadlock_peers *p, uint64_t listener, const uint8_t *at, size_t bytes)
{
	uint64_t n = 0;
	for (size_t i = 0; i + 4 <= bytes; i += 4) {
		uint32_t client;
		memcpy(&client, at + i, sizeof client);
		if (!client)
			continue;
		peers_set(p, &p->waiting, listener, n++, client);
		peers_put(p, client, listener);
	}
}

static void parse_unix(struct deadlock_peers *p, const uint8_t *at, size_t length)
{
	struct unix_diag_msg m;
	if (length < sizeof m)
		return;
	memcpy(&m, at, sizeof m);
	for (size_t i = NLMSG_ALIGN(sizeof m); i + 4 <= length;) {
		uint16_t attribute[2]; /* length, type */
		uint32_t peer;
		memcpy(attribute, at + i, sizeof attribute);
		if (attribute[0] < 4 || attribute[0] > length - i)
			return;
		const size_t bytes = attribute[0] - 4u;
		if (attribute[1] == UNIX_DIAG_PEER && bytes >= 4) {
			memcpy(&peer, at + i + 4, sizeof peer);
			peers_put(p, m.udiag_ino, peer);
		} else if (attribute[1] == UNIX_DIAG_NAME) {
			parse_name(p, &m, at + i + 4, bytes);
		} else if (attribute[1] == UNIX_DIAG_VFS && bytes >= sizeof(struct unix_diag_vfs)) {
			parse_file(p, &m, at + i + 4);
		} else if (attribute[1] == UNIX_DIAG_ICONS) {
			parse_waiting(p, m.udiag_ino, at + i + 4, bytes);
		}
		i += NLMSG_ALIGN(attribute[0]);
	}
}

static uint64_t peers_fold(const uint32_t address[4], uint16_t port)
{
	uint64_t h = port;
	for (int i = 0; i < 4; i++)
		h = base_hash_u64(h ^ address[i]);
	return h;
}

/* Two sockets with each other's addresses are a pair. Half of a 128-bit key a side: no collision
 * worth a thought. */
static void parse_inet(
	struct deadlock_peers *p, struct base_map *ends, const uint8_t *at, size_t length)
{
	struct inet_diag_msg m;
	uint64_t other;
	if (length < sizeof m)
		return;
	memcpy(&m, at, sizeof m);
	uint64_t here = peers_fold(m.id.idiag_src, m.id.idiag_sport);
	uint64_t there = peers_fold(m.id.idiag_dst, m.id.idiag_dport);
	if (m.idiag_state == TCP_LISTEN && m.idiag_rqueue > m.idiag_wqueue) {
		peers_set(p, &p->full, 0, here, m.idiag_inode);
		peers_set(p, &p->full, 1, m.idiag_inode, m.idiag_inode);
	}
	if (!m.id.idiag_dport || !m.idiag_inode)
		return;
	if (base_map_get(ends, there, here, &other)) {
		peers_put(p, m.idiag_inode, other);
		peers_put(p, other, m.idiag_inode);
	} else if (base_map_put(ends, here, there, m.idiag_inode) != BASE_OK) {
		p->refused = true;
	}
}

bool deadlock_peers_parse(
	struct deadlock_peers *p, struct base_map *ends, const void *buf, size_t length)
{
	const uint8_t *at = buf;
	while (length >= sizeof(struct nlmsghdr)) {
		struct nlmsghdr h;
		memcpy(&h, at, sizeof h);
		if (h.nlmsg_len < sizeof h || h.nlmsg_len > length)
			return false;
		if (h.nlmsg_type == NLMSG_DONE)
			return false;
		if (h.nlmsg_type == NLMSG_ERROR) {
			p->refused = true;
			return false;
		}
		size_t body = h.nlmsg_len - NLMSG_HDRLEN;
		if (body > 0 && at[NLMSG_HDRLEN] == AF_UNIX)
			parse_unix(p, at + NLMSG_HDRLEN, body);
		else if (body > 0)
			parse_inet(p, ends, at + NLMSG_HDRLEN, body);
		size_t step = NLMSG_ALIGN(h.nlmsg_len);
		if (step >= length)
			break;
		at += step;
		length -= step;
	}
	return true;
}

/* ---- asking ---------------------------------------------------------------------------------- */

static bool peers_ask(struct deadlock_peers *p, int fd, const void *request, size_t bytes,
	struct base_map *ends, void *buf)
{
	if (send(fd, request, bytes, 0) != (ssize_t)bytes)
		return false;
	for (;;) {
		ssize_t n = recv(fd, buf, ANSWER_BYTES, 0);
		if (n <= 0)
			return false;
		if (!deadlock_peers_parse(p, ends, buf, (size_t)n))
			return true;
	}
}

static bool ask_inet(
	struct deadlock_peers *p, int fd, uint8_t family, struct base_map *ends, void *buf)
{
	struct {
		struct nlmsghdr h;
		struct inet_diag_req_v2 r;
	} q = {.h = {.nlmsg_len = sizeof q,
		       .nlmsg_type = SOCK_DIAG_BY_FAMILY,
		       .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP},
		.r = {.sdiag_family = family,
			.sdiag_protocol = IPPROTO_TCP,
			.idiag_states = 1u << TCP_LISTEN | 1u << TCP_ESTABLISHED |
					1u << TCP_CLOSE_WAIT | 1u << TCP_FIN_WAIT1 |
					1u << TCP_FIN_WAIT2}};
	return peers_ask(p, fd, &q, sizeof q, ends, buf);
}

static bool ask_unix(struct deadlock_peers *p, int fd, struct base_map *ends, void *buf)
{
	struct {
		struct nlmsghdr h;
		struct unix_diag_req r;
	} q = {.h = {.nlmsg_len = sizeof q,
		       .nlmsg_type = SOCK_DIAG_BY_FAMILY,
		       .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP},
		.r = {.sdiag_family = AF_UNIX,
			.udiag_states = ~0u,
			.udiag_show = UDIAG_SHOW_PEER | UDIAG_SHOW_NAME | UDIAG_SHOW_VFS |
				      UDIAG_SHOW_ICONS}};
	return peers_ask(p, fd, &q, sizeof q, ends, buf);
}

void deadlock_peers_read(struct deadlock_peers *p)
{
	struct timeval patience = {.tv_sec = 1};
	struct base_map ends = {0};
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
	void *buf = base_alloc(ANSWER_BYTES);
	if (fd < 0 || !buf) {
		p->refused = true;
	} else {
		(void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
		if (!ask_unix(p, fd, &ends, buf) || !ask_inet(p, fd, AF_INET, &ends, buf) ||
			!ask_inet(p, fd, AF_INET6, &ends, buf))
			p->refused = true;
	}
	if (fd >= 0)
		close(fd);
	base_free(buf);
	base_map_fini(&ends);
}

uint64_t deadlock_peers_get(const struct deadlock_peers *p, uint64_t inode)
{
	uint64_t peer = 0;
	return base_map_get(&p->peer, 0, inode, &peer) ? peer : 0;
}

enum deadlock_socket_role deadlock_peers_role(const struct deadlock_peers *p, uint64_t inode)
{
	uint64_t role = DEADLOCK_SOCKET_NAMELESS;
	(void)base_map_get(&p->role, 0, inode, &role);
	return (enum deadlock_socket_role)role;
}

uint64_t deadlock_peers_named(const struct deadlock_peers *p, const void *name, size_t bytes)
{
	uint64_t hi, lo, inode = 0;
	hash_name(name, bytes, &hi, &lo);
	return base_map_get(&p->name, hi, lo, &inode) ? inode : 0;
}

uint64_t deadlock_peers_at(const struct deadlock_peers *p, uint64_t device, uint64_t file)
{
	uint64_t inode = 0;
	return base_map_get(&p->file, device, (uint32_t)file, &inode) ? inode : 0;
}

/* Whoever listens at all of a machine's addresses has none in the list, of either family. */
uint64_t deadlock_peers_full(const struct deadlock_peers *p, const struct sockaddr *to)
{
	uint32_t address[4] = {0};
	static const uint32_t any[4];
	uint16_t port = 0;
	bool is_loopback = false;
	uint64_t inode = 0;
	if (to->sa_family == AF_INET) {
		struct sockaddr_in in;
		memcpy(&in, to, sizeof in);
		address[0] = in.sin_addr.s_addr;
		port = in.sin_port;
		is_loopback = ntohl(address[0]) >> 24 == IN_LOOPBACKNET;
	} else if (to->sa_family == AF_INET6) {
		struct sockaddr_in6 in6;
		memcpy(&in6, to, sizeof in6);
		memcpy(address, &in6.sin6_addr, sizeof address);
		port = in6.sin6_port;
		is_loopback = IN6_IS_ADDR_LOOPBACK(&in6.sin6_addr);
	}
	if (!port)
		return 0;
	(void)(base_map_get(&p->full, 0, peers_fold(address, port), &inode) ||
		(is_loopback && base_map_get(&p->full, 0, peers_fold(any, port), &inode)));
	return inode;
}

bool deadlock_peers_is_full(const struct deadlock_peers *p, uint64_t inode)
{
	uint64_t unused;
	return base_map_get(&p->full, 1, inode, &unused);
}

uint64_t deadlock_peers_waiting(const struct deadlock_peers *p, uint64_t listener, uint64_t n)
{
	uint64_t client = 0;
	return base_map_get(&p->waiting, listener, n, &client) ? client : 0;
}

void deadlock_peers_fini(struct deadlock_peers *p)
{
	base_map_fini(&p->name);
	base_map_fini(&p->file);
	base_map_fini(&p->role);
	base_map_fini(&p->full);
	base_map_fini(&p->waiting);
	base_map_fini(&p->peer);
}
