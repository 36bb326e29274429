/* SPDX-License-Identifier: Apache-2.0 */
/*
 * room.h - what control groups leave: processor time, and memory for what stands between a program
 * and its trace. Its pages are charged to whoever writes them first, which is the program: in a
 * container with a limit a buffer that ignores it would have the program killed.
 */
#ifndef LONGPOLE_SESSION_ROOM_H
#define LONGPOLE_SESSION_ROOM_H

#include <stdint.h>

/*
 * Bytes of memory that this process may use at most: the machine's, or the least limit of its
 * control groups and those around them (memory.max; memory.limit_in_bytes of version 1), whichever
 * is less. What cannot be read is no limit. root: "" (tests: a directory with a proc/self/cgroup
 * and a sys/fs/cgroup of its own).
 */
uint64_t session_room_bytes(const char *root);

/* Processor time that all threads of this process's control group may take in each period together,
 * or of one around it, whichever leaves less (cpu.max; cpu.cfs_quota_us of version 1). All 0: as
 * much as there is. */
struct session_quota {
	uint64_t quota_ns, period_ns;
};
struct session_quota session_room_quota(const char *root);

enum {
	SESSION_BUFFER_SHARE = 16, /* of the room */
	SESSION_BUFFER_LEAST_BYTES = 16 << 20,
	SESSION_BUFFER_MOST_BYTES = 1 << 30,
};

/* What --buffer is when it is not given: a 16th of the room, from 16 MiB to 1 GiB. */
uint64_t session_room_buffer_bytes(uint64_t room_bytes);

#endif
