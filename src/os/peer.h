/* SPDX-License-Identifier: Apache-2.0 */
/* peer.h - who is at the other end of a connection between processes of this machine: the kernel
 * knows (sock_diag(7)). */
#ifndef LONGPOLE_OS_PEER_H
#define LONGPOLE_OS_PEER_H

#include <stdint.h>

struct os_peer {
	int fd; /* -1: the kernel does not answer, and is asked no more */
};

/* Never fails: a kernel without such sockets tells no peers. */
void os_peer_init(struct os_peer *p);
void os_peer_fini(struct os_peer *p);

/* The inode of the socket that the unix socket with this inode is connected to. 0: not known; it is
 * closed, not accepted yet, or of another network namespace. */
uint64_t os_peer_of(void *peer /* struct os_peer * */, uint64_t ino);

#endif
