/* SPDX-License-Identifier: Apache-2.0 */
/*
 * channel.c - descriptors by which threads of this process may wait for each other: pipes,
 * pairs of sockets, eventfds, message queues. Each direction has a number, and units: bytes, or
 * what an eventfd counts. Only those that the program has made itself: what others write into
 * theirs is not seen.
 */
#include "target/target.h"

#include <sys/stat.h>
#include <sys/syscall.h>

enum { DESCRIPTORS = 1024 };

static struct {
	struct target_channel channel;
	uint64_t device, inode; /* what it was: the descriptor may be another's by now */
} made[DESCRIPTORS];
static uint64_t nr_numbers; /* atomic */

static bool channel_look(int fd, uint64_t *ret_device, uint64_t *ret_inode)
{
	struct stat s;
	if (longpole_target_syscall(SYS_fstat, fd, (long)&s, 0, 0, 0, 0))
		return false;
	*ret_device = s.st_dev;
	*ret_inode = s.st_ino;
	return true;
}

uint64_t longpole_target_channel_number(uint64_t units)
{
	uint64_t now = target_call_ticks();
	uint64_t number =
		MEMORY_OBJECT_CHANNEL(__atomic_add_fetch(&nr_numbers, 1, __ATOMIC_RELAXED));
	longpole_target_call(CALL_semaphore, now, now, number, units, 0, 0);
	return number;
}

void longpole_target_channel_made(int fd, const struct target_channel *c)
{
	if (fd < 0 || fd >= DESCRIPTORS)
		return;
	made[fd].channel = (struct target_channel){0};
	if (channel_look(fd, &made[fd].device, &made[fd].inode))
		made[fd].channel = *c;
}

void longpole_target_channel_opened(int fd, uint64_t units)
{
	uint64_t device, inode;
	struct target_channel c = {0};
	if (!channel_look(fd, &device, &inode))
		return;
	for (int i = 0; i < DESCRIPTORS && !c.gives; i++)
		if (made[i].inode == inode && made[i].device == device)
			c = made[i].channel;
	if (!c.gives)
		c.gives = c.takes = longpole_target_channel_number(units);
	longpole_target_channel_made(fd, &c);
}

bool longpole_target_channel(int fd, struct target_channel *ret)
{
	uint64_t device, inode;
	if (fd < 0 || fd >= DESCRIPTORS || !(made[fd].channel.takes | made[fd].channel.gives))
		return false;
	*ret = made[fd].channel;
	return channel_look(fd, &device, &inode) && device == made[fd].device &&
	       inode == made[fd].inode;
}
