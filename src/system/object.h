/* SPDX-License-Identifier: Apache-2.0 */
/*
 * object.h - what the kernel's events are about: files, futex words, sockets, flows,
 * devices.
 *
 * The kernel's side gives numbers (inodes, addresses, interface indices). An object is defined when
 * its number is seen first; what it is called is asked from /proc, from a copy of the descriptor,
 * or told by the event. A socket is one object by its inode: the same as the preload library's.
 */
#ifndef LONGPOLE_SYSTEM_OBJECT_H
#define LONGPOLE_SYSTEM_OBJECT_H

#include "system/convert.h"

/* The object of a call of this task: KERNEL_FILE word, or the address of a futex word (`shared`:
 * processes may share it). 0: none. */
uint32_t system_kernel_file(struct system_kernel *k, struct system_kernel_task *t, uint64_t word);
uint32_t system_kernel_futex(
	struct system_kernel *k, struct system_kernel_task *t, uint64_t address, bool shared);
/* A struct sock; inode 0: not known. */
uint32_t system_kernel_socket(struct system_kernel *k, uint64_t sock, uint32_t inode);
/* Its addresses are known from now; or it is closed, and its address is free for another. */
void system_kernel_socket_named(
	struct system_kernel *k, uint64_t sock, const struct kernel_address *a);
void system_kernel_socket_closed(struct system_kernel *k, uint64_t sock);
uint32_t system_kernel_flow(struct system_kernel *k, const struct kernel_address *a);
uint32_t system_kernel_netdev(struct system_kernel *k, uint32_t net_namespace, uint32_t index);
uint32_t system_kernel_qdisc(
	struct system_kernel *k, uint32_t net_namespace, uint32_t index, uint32_t handle);
uint32_t system_kernel_disk(struct system_kernel *k, uint64_t device);
uint32_t system_kernel_lock(struct system_kernel *k, uint64_t address);

/* One that was seen with a descriptor before; 0: not known. */
uint32_t system_kernel_known_file(const struct system_kernel *k, uint64_t word);

/* An io_uring's address is that object's, known from a descriptor of it. One that nobody has told
 * about is an object without a name. */
void system_kernel_ring_is(struct system_kernel *k, uint64_t ring, uint32_t object);
uint32_t system_kernel_ring(struct system_kernel *k, uint64_t ring);

#endif
