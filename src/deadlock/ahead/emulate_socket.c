/* SPDX-License-Identifier: Apache-2.0 */
/* emulate_socket.c - connections and datagrams to those who are known by a name. */
#include "deadlock/ahead/emulate.h"

#include <errno.h>
#include <sys/socket.h>

static struct deadlock_file socket_to(uint64_t peer)
{
	return (struct deadlock_file){
		.kind = DEADLOCK_FILE_SOCKET, .peer = peer, .can_read = true, .can_write = true};
}

/* Those who wait to be accepted come first; then, once, somebody whom nobody knows. */
int64_t deadlock_emulate_accept(struct deadlock_copy *c, const uint64_t *arg)
{
	struct deadlock_file listener;
	if (!deadlock_copy_file(c, (int)arg[0], &listener))
		return -EBADF;
	const struct deadlock_key key = {.kind = DEADLOCK_KEY_SOCKET_PEER, .id = listener.inode};
	const struct deadlock_key room = {
		.kind = DEADLOCK_KEY_SOCKET_BACKLOG, .id = listener.inode};
	const struct deadlock_peers *peers = deadlock_world_peers(c->world);
	const struct deadlock_file client =
		socket_to(deadlock_peers_waiting(peers, listener.inode, c->accepts));
	const bool is_full = deadlock_peers_is_full(peers, listener.inode);
	if (!client.peer && (c->accepts || !(c->is_first || is_full)))
		return deadlock_copy_block(c, &key, "accept");
	c->accepts++;
	if (client.peer || is_full)
		deadlock_copy_event(c, &room);
	return deadlock_copy_invent(c, &client);
}

static bool emulate_socket_read_copy(void *ctx, uint64_t address, void *buf, size_t size)
{
	return deadlock_copy_peek(ctx, address, buf, size);
}

static uint64_t named_socket(struct deadlock_copy *c, uint64_t address, uint64_t bytes)
{
	return deadlock_socket_named(
		c->world, c->process->pid, emulate_socket_read_copy, c, address, bytes);
}

static void give_datagram(struct deadlock_copy *c, uint64_t address, uint64_t bytes)
{
	const struct deadlock_key key = {
		.kind = DEADLOCK_KEY_SOCKET_DATA, .id = named_socket(c, address, bytes)};
	if (key.id)
		deadlock_copy_event(c, &key);
}

int64_t deadlock_emulate_sendto(struct deadlock_copy *c, const uint64_t *arg)
{
	give_datagram(c, arg[4], arg[5]);
	return deadlock_emulate_write(c, arg);
}

int64_t deadlock_emulate_sendmsg(struct deadlock_copy *c, const uint64_t *arg)
{
	struct msghdr message;
	if (!deadlock_copy_peek(c, arg[1], &message, sizeof message))
		return -EFAULT;
	give_datagram(c, (uint64_t)(uintptr_t)message.msg_name, message.msg_namelen);
	const uint64_t as_writev[6] = {
		arg[0], (uint64_t)(uintptr_t)message.msg_iov, message.msg_iovlen};
	return deadlock_emulate_writev(c, as_writev);
}

int64_t deadlock_emulate_connect(struct deadlock_copy *c, const uint64_t *arg)
{
	const struct deadlock_file other = socket_to(named_socket(c, arg[1], arg[2]));
	const struct deadlock_key key = {.kind = DEADLOCK_KEY_SOCKET_PEER, .id = other.peer};
	if (!other.peer) {
		if (!c->is_first)
			deadlock_copy_taint(c, "it connected to somebody");
		return 0;
	}
	deadlock_copy_event(c, &key);
	deadlock_copy_liken(c, (int)arg[0], &other);
	return 0;
}
