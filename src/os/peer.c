/* SPDX-License-Identifier: Apache-2.0 */
/* peer.c - see peer.h. */
#include "os/peer.h"

#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { ANSWER_BYTES = 1024 };

/* (The kernel's macros for these mix signs. All of it is aligned by 4.) */
static const size_t answer_begin = sizeof(struct nlmsghdr) + sizeof(struct unix_diag_msg),
		    value_begin = sizeof(struct nlattr);
_Static_assert(sizeof(struct nlmsghdr) % 4 == 0 && sizeof(struct unix_diag_msg) % 4 == 0 &&
		       sizeof(struct nlattr) == 4,
	"netlink's headers need no padding");

void os_peer_init(struct os_peer *p)
{
	p->fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
}

void os_peer_fini(struct os_peer *p)
{
	if (p->fd >= 0)
		close(p->fd);
	p->fd = -1;
}

static bool peer_ask(int fd, uint32_t ino)
{
	const struct {
		struct nlmsghdr head;
		struct unix_diag_req request;
	} question = {
		.head = {.nlmsg_len = sizeof question,
			.nlmsg_type = SOCK_DIAG_BY_FAMILY,
			.nlmsg_flags = NLM_F_REQUEST},
		.request = {.sdiag_family = AF_UNIX,
			.udiag_states = UINT32_MAX,
			.udiag_ino = ino,
			.udiag_show = UDIAG_SHOW_PEER,
			.udiag_cookie = {UINT32_MAX, UINT32_MAX}},
	};

	return send(fd, &question, sizeof question, 0) == (ssize_t)sizeof question;
}

/* The attribute that names the peer, among those of the answer. */
static uint64_t peer_in(const unsigned char *answer, size_t nr_bytes)
{
	struct nlattr head;
	uint32_t peer;
	size_t at = answer_begin;

	while (at + sizeof head <= nr_bytes) {
		memcpy(&head, answer + at, sizeof head);
		if (head.nla_type == UNIX_DIAG_PEER && at + value_begin + sizeof peer <= nr_bytes) {
			memcpy(&peer, answer + at + value_begin, sizeof peer);
			return peer;
		}
		if (head.nla_len < value_begin)
			return 0;
		at += (head.nla_len + 3u) & ~3u; /* (attributes are aligned by 4) */
	}
	return 0;
}

uint64_t os_peer_of(void *peer, uint64_t ino)
{
	struct os_peer *p = peer;
	unsigned char answer[ANSWER_BYTES];
	struct nlmsghdr head;
	ssize_t nr_bytes;

	if (p->fd < 0 || !ino || ino > UINT32_MAX)
		return 0;
	/* The kernel has answered when send() returns. */
	nr_bytes = peer_ask(p->fd, (uint32_t)ino) ? recv(p->fd, answer, sizeof answer, MSG_DONTWAIT)
						  : -1;
	if (nr_bytes < (ssize_t)sizeof head) {
		os_peer_fini(p);
		return 0;
	}
	memcpy(&head, answer, sizeof head);
	return head.nlmsg_type == SOCK_DIAG_BY_FAMILY ? peer_in(answer, (size_t)nr_bytes) : 0;
}
