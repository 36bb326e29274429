/* SPDX-License-Identifier: Apache-2.0 */
/* peer.h - who is at the other end of a connection between processes of this machine: the kernel
 * knows (sock_diag(7)). */
#ifndef LONGPOLE_RECORD_PEER_H
#define LONGPOLE_RECORD_PEER_H

#include <stdint.h>

struct record_peer {
	int fd; /* -1: the kernel does not answer, and is asked no more */
};

/* Never fails: a kernel without such sockets tells no peers. */
void record_peer_init(struct record_peer *p);
void record_peer_fini(struct record_peer *p);

/* The inode of the socket that the unix socket with this inode is connected to. 0: not known; it is
 * closed, not accepted yet, or of another network namespace. */
uint64_t record_peer_of(void *peer /* struct record_peer * */, uint64_t ino);

#endif
