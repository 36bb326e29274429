/* SPDX-License-Identifier: Apache-2.0 */
/* peers.h - who is at the other end of a socket, by its inode; only sockets of this machine. */
#ifndef LONGPOLE_DEADLOCK_PEERS_H
#define LONGPOLE_DEADLOCK_PEERS_H

#include "base/base.h"

struct deadlock_peers {
	struct base_map peer; /* inode -> inode */
	bool refused;         /* something could not be read: some peers are unknown */
};

/* Asks the kernel for all UNIX sockets and all TCP sockets with a peer (sock_diag); those of our
 * network namespace. */
void deadlock_peers_read(struct deadlock_peers *p);
uint64_t deadlock_peers_get(const struct deadlock_peers *p, uint64_t inode); /* 0: none */
void deadlock_peers_fini(struct deadlock_peers *p);

/* One answer of the kernel, `length` bytes. True: there may be more. `ends`: TCP sockets by their
 * addresses, to find pairs. For tests. */
bool deadlock_peers_parse(
	struct deadlock_peers *p, struct base_map *ends, const void *buf, size_t length);

#endif
