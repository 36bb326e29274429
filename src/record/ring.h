/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ring.h - the memory shared by the recorded program (preload*.c writes) and `longpole record` (session*.c reads).
 *
 *   +-----------------+---------+---------+----     one file, created by the session in /dev/shm (else $TMPDIR), named by
 *   | struct ring_head| block 0 | block 1 | ...     $LONGPOLE_RING, mapped MAP_SHARED by every recorded process. It survives
 *   +-----------------+---------+---------+----     crash, _exit, exec, chroot and closing of all descriptors.
 *
 * A thread owns one block at a time and is its only writer. Blocks are handed out from a bitmap in the head. A record is
 * 64-bit words: word 0 = (tsc - head.tsc_origin) << 8 | kind, then one word a field, in records.def's order.
 * Blocks are zero when handed out; a writer reserves words by an unlocked xadd on its thread-local
 * cursor (so a signal handler's record nests correctly), fills words 1..n, and stores word 0 LAST: a reader stops at the first
 * zero word. x86-64 only: stores are seen in program order. Nothing here takes a lock, allocates, or makes a system call.
 */
#ifndef LONGPOLE_RECORD_RING_H
#define LONGPOLE_RECORD_RING_H

#include <stdint.h>

enum { RING_VERSION = 1, RING_BLOCK_BYTES = 32 * 1024 };
#define RING_MAGIC 0x474e495245504c01u

/*
 * Field words (kinds below 128 are enum trace_kind, with records.def's fields in order):
 *   object  address or incarnation (48 bits) | type << 48 | RING_OBJECT_SHARED
 *   site    return address
 *   stack   1: the RING_stack record just before, of the same thread, belongs to this record; 0: none
 *   others  the value
 * Kinds of 128 and more exist in the ring only:
 */
#define RING_OBJECT_TYPE_SHIFT 48
#define RING_OBJECT_ADDRESS    ((1ull << 48) - 1)
#define RING_OBJECT_SHARED     (1ull << 63) /* may be used by several processes (pthread pshared, named) */

enum ring_kind {
	RING_stack = 128,  /* w1 = n frames, then n return addresses, innermost first (n <= RING_STACK_MAX) */
	RING_module = 129, /* w1 = start, w2 = end (mapped addresses), w3 = load bias, w4 = build-id bytes (<= 20) << 32 |
	                      path bytes, then build id padded to 24 bytes, then path padded to 8 */
	RING_unload = 130, /* w1 = load bias: the module is gone (dlclose) */
	RING_descriptor = 131, /* describes an incarnation of a descriptor: struct ring_descriptor, then name bytes padded to 8 */
	RING_name = 132,   /* w1 = id (unique in this image), w2 = enum ring_name, w3 = site, w4 = bytes, then text padded to 8:
	                      an annotated name, or a pthread object's name */
	RING_thread_name = 133, /* w1 = bytes, text padded to 8 */
	RING_image = 134,  /* first record of an image: w1 = ppid, w2 = bytes of command line, then it, NUL-separated, padded to 8 */
	RING_lost = 135,   /* w1 = records dropped by this thread since its previous record */
};
enum { RING_STACK_MAX = 16, RING_TEXT_MAX = 4096 };

struct ring_descriptor { /* words 1.. of RING_descriptor */
	uint64_t incarnation; /* unique in this image; fields `object` of io records carry it */
	uint64_t fd;
	uint64_t type; /* enum trace_object_type */
	uint64_t dev, ino;
	uint64_t capacity_bytes; /* pipe size; socket buffer (both ends); 0: not known */
	uint64_t pair_ino;   /* socketpair: the other end's inode; 0: none */
	uint64_t name_bytes; /* path, or "tcp 127.0.0.1:80 127.0.0.1:4242" (local, peer) for sockets */
};

struct ring_head {
	uint64_t magic;
	uint32_t version, block_bytes;
	uint32_t nr_blocks;
	uint32_t recording; /* 0: writers must not record (before start, after Ctrl-C, disk full) */
	uint64_t tsc_origin;
	uint32_t next_image; /* atomic: images number themselves */
	uint32_t next_hint;  /* atomic: where to look for a free block */
	uint32_t stack_depth_max;
	uint32_t reserved;
	uint64_t lost_records;   /* atomic: no free block */
	uint64_t nested_dropped; /* atomic */
	uint64_t images_attached; /* atomic */
	uint64_t free_map[]; /* 1 bit a block: 1 = free; then, page-aligned, the blocks */
};

enum ring_block_state { RING_BLOCK_FREE, RING_BLOCK_ACTIVE, RING_BLOCK_DONE };
struct ring_block {
	uint32_t state;   /* enum ring_block_state; writer: ACTIVE -> DONE; session: DONE -> FREE */
	uint32_t pid;
	uint32_t tid;
	uint32_t image;   /* number of the program image; a fork's child and an exec are new images */
	uint32_t sequence; /* 0, 1, 2 ... among the blocks of one thread: the session reads them in this order */
	uint32_t parent_image; /* image that forked or exec'd this one; 0: none */
	uint64_t thread;  /* unique number of the thread within its image (tids are reused) */
	uint64_t word[];
};

#endif
