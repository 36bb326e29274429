/* SPDX-License-Identifier: Apache-2.0 */
/* peers.h - who is at the other end of a socket, by its inode; only sockets of this machine. */
#ifndef LONGPOLE_DEADLOCK_PEERS_H
#define LONGPOLE_DEADLOCK_PEERS_H

#include "base/base.h"

#include <sys/socket.h>

struct deadlock_peers {
	struct base_map peer; /* inode -> inode */
	struct base_map name; /* hash of a UNIX socket's name -> inode */
	struct base_map
		file; /* (device, inode) of a file that a UNIX socket is bound to -> inode */
	struct base_map role; /* inode of a UNIX socket with a name -> enum deadlock_socket_role */
	struct base_map full; /* (0, hash of an address) and (1, inode) -> inode of the listening
				 TCP socket that has it and whose queue is full */
	struct base_map waiting; /* (listening inode, n) -> inode of the nth that is not accepted */
	bool refused;            /* something could not be read: some peers are unknown */
};

/* Sockets that a process which was not seen may reach by their name. */
enum deadlock_socket_role {
	DEADLOCK_SOCKET_NAMELESS,
	DEADLOCK_SOCKET_LISTENS, /* anybody may connect */
	DEADLOCK_SOCKET_OPEN,    /* datagrams, of no peer: anybody may send */
};

/* Asks the kernel for all UNIX sockets and all TCP sockets with a peer (sock_diag); those of our
 * network namespace. */
void deadlock_peers_read(struct deadlock_peers *p);
uint64_t deadlock_peers_get(const struct deadlock_peers *p, uint64_t inode); /* 0: none */
enum deadlock_socket_role deadlock_peers_role(const struct deadlock_peers *p, uint64_t inode);
/* Of the socket that has this name (sun_path; the first byte of an abstract one is 0). 0: none. */
uint64_t deadlock_peers_named(const struct deadlock_peers *p, const void *name, size_t bytes);
/* The same by the file: device as major << 20 | minor. (The kernel's list has 32 bits of the
 * number.) */
uint64_t deadlock_peers_at(const struct deadlock_peers *p, uint64_t device, uint64_t file);
/* Of the listening TCP socket that a connection to this address finds full: nothing answers then.
 * 0: none on this machine, or there is room. */
uint64_t deadlock_peers_full(const struct deadlock_peers *p, const struct sockaddr *to);
bool deadlock_peers_is_full(const struct deadlock_peers *p, uint64_t inode);
/* The nth socket that has connected to a listening socket and is not accepted yet; 0: no more. The
 * accepting socket will be its peer; until then the listening socket is. */
uint64_t deadlock_peers_waiting(const struct deadlock_peers *p, uint64_t listener, uint64_t n);
void deadlock_peers_fini(struct deadlock_peers *p);

/* One answer of the kernel, `length` bytes. True: there may be more. `ends`: TCP sockets by their
 * addresses, to find pairs. For tests. */
bool deadlock_peers_parse(
	struct deadlock_peers *p, struct base_map *ends, const void *buf, size_t length);

#endif
