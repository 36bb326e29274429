/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ring.h - memory shared by the recorded program (preload*.c writes) and `longpole record`
 * (session*.c reads).
 *
 *   +------------------+---------+---------+---
 *   | struct ring_head | block 0 | block 1 | ...
 *   +------------------+---------+---------+---
 *
 * One file in a directory of the session's own (session/place.h), named by $LONGPOLE_RING, mapped
 * MAP_SHARED by every recorded process, if ring/handover.h finds nothing wrong with it. It survives
 * crash, _exit, exec, and closing of all descriptors, and the recorder's own end. Neither
 * side trusts the other: counts and offsets of the head are copied once, checked, and the copies
 * used; what a block says is checked whenever it is read. $LONGPOLE_IMAGE (ten decimal digits,
 * zeros in front; the session sets "0000000000") tells an image which image it comes from; the
 * preload library rewrites it.
 *
 * A thread owns one block at a time and is its only writer. Blocks are handed out from a bitmap in
 * the head. A record is 64-bit words: word 0 = (tsc - head.tsc_origin) << 8 | kind, then the words
 * of its kind (table below). Blocks are zero when handed out; a writer reserves words by an
 * unlocked compare-and-exchange on its thread-local cursor (so a signal handler's record nests
 * correctly), fills words 1..n, and stores word 0 LAST: a reader stops at the first zero word.
 * Nothing here takes a lock, allocates, or makes a system call.
 *
 * What orders it for the two sides, on processors that reorder stores, too (64-bit ARM):
 * - Word 0 is stored by release and read by acquire: a reader that sees it sees words 1..n.
 * - A block's pid, tid, image ... are written before its state becomes ACTIVE, nr_words before it
 *   becomes DONE, both by release; the session looks at the state by acquire first.
 * - The session zeroes a block before it sets its bit by release; a writer takes the bit by an
 *   acquire: it finds zeros, and its first word is not seen before them.
 * - The head's tables and counts are written before `magic`, by release, and before a program is
 *   started; `recording` is one word that nothing else depends on.
 * - The cursor is the thread's own: only its signal handlers come between (processor.h).
 *
 * What a reader must expect:
 * - A signal handler's records lie behind the record that it interrupted, though some may be
 *   stamped earlier: order a thread's records by stamp (stable), not by place. stdio's io_begin
 *   and io_end are both written when the call returns, the first with the stamp of its beginning.
 * - A block that is DONE holds nr_words words. A zero word before that is a record still being
 *   written by a frame that a signal interrupted: wait. When it is still zero as the thread's next
 *   block is done or the thread is gone, the handler has left by longjmp: the block's rest is lost.
 * - What introduces a thing (RING_module, RING_name, RING_descriptor, RING_place) is stamped before the thing's
 *   first use, but perhaps in the block of another thread of the image: take all introductions of
 *   an image stamped before a use first.
 * - An image made by fork begins with the modules that its parent had; all other introductions are
 *   made anew.
 * - A posix_spawn's child writes nothing before its exec. A vfork's child, whose parent waits, writes
 *   process_fork as its parent when it calls exec, and process_vfork again when exec has failed.
 */
#ifndef LONGPOLE_RING_RING_H
#define LONGPOLE_RING_RING_H

#include "trace/enums.h"

#include <stdint.h>
#include <string.h>

enum {
#define RING_RECORD(kind, n) RING_NUMBER_OF_##kind,
#include "ring/records.def"
	RING_NR_RECORDS,
	/* Another layout, or one more kind: the two sides do not fit. */
	RING_LAYOUT = 14,
	RING_VERSION = RING_LAYOUT * 1000 + RING_NR_RECORDS,
	RING_BLOCK_BYTES = 32 * 1024
};
#define RING_MAGIC 0x474e495245504c01u

/* In the library's file, so that its host knows before it starts anything. */
struct ring_tag {
	char text[20]; /* RING_TAG */
	uint32_t version;
};
#define RING_TAG "longpole ring layout"

/*
 * Words of each kind: ring/records.def. Kinds below 128 are enum trace_kind; their words are
 * trace/records.def's fields in order, one word each, read so:
 *
 * - object: address or incarnation (48 bits) | type << 48 | RING_OBJECT_SHARED.
 *   System V semaphores: semid << 16 | index, SHARED; message queues: msqid, SHARED.
 * - site: return address; of thread_begin: address of the start routine.
 * - stack: 1: the RING_stack record just before it in the block belongs to it; 0: none.
 * - handle: pthread_t.
 * - others: the value.
 *
 * Annotations differ: a thing has a name that was introduced by RING_name, and an instance:
 *
 * - note_begin: w1 = name id, w2 = instance, w3 = flags
 * - note_end: w1 = name id (0: whatever is on top; the instance is that of the top)
 * - note_state: w1 = name id, w2 = flags (the state's site is RING_name's)
 * - queue verbs: w1 = name id, w2 = instance, w3 = n, w4 = flags, w5 = site
 * - item verbs: w1 = name id, w2 = instance, w3 = n, w4 = key, w5 = flags, w6 = site
 * - note_act: w1 = name id, w2 = instance
 * - note_link: w1 = name id (0: deferred), w2 = instance, w3 = flags
 * - note_identify: w1 = connection
 *
 * A barrier's parties (0: not known, the first to leave opens it), what a System V message queue
 * holds at most, an eventfd's first value and a POSIX message queue's (unless 0) are token_set
 * records; reads and writes of an eventfd are io records of 8 bytes. A descriptor is described
 * again, with the same incarnation, when a socket has got its peer: the last description counts. A
 * tryjoin or wait that found nothing ends with join_done{handle 0}, child_waited{pid 0}. A timed
 * lock that gave up is lock_wait, lock_fail; a reader's shared_wait, lock_fail. Never in a ring,
 * the session's own: definitions, object_new, process_end, sample, cpu_out, cpu_in, lost.
 */
#define RING_OBJECT_TYPE_SHIFT 48
#define RING_OBJECT_ADDRESS    ((1ull << 48) - 1)
/* pthread pshared, or named: several processes may use it. */
#define RING_OBJECT_SHARED (1ull << 63)

/* Kinds of 128 and more exist in the ring only. Texts are padded to 8 bytes with zeros. */
enum ring_kind {
	/* w1 = n frames (<= RING_STACK_MAX), then n return addresses, innermost first */
	RING_stack = 128,
	/* w1 = start, w2 = end (mapped addresses), w3 = load bias, w4 = build-id bytes (<= 20) <<
	 * 32 | path bytes, build id padded to 24 bytes, path. The path of the program itself is
	 * what /proc/self/exe links to; the vdso's is "[vdso]". */
	RING_module = 129,
	/* w1 = load bias: the module is gone (dlclose) */
	RING_unload = 130,
	/* describes an incarnation of a descriptor: struct ring_descriptor, then its name */
	RING_descriptor = 131,
	/* w1 = id (unique in this image), w2 = enum ring_name, w3 = site, w4 = bytes, text. Each
	 * place in the code that uses a name introduces it, with an id of its own. */
	RING_name = 132,
	/* w1 = bytes, text: this thread's name from now */
	RING_thread_name = 133,
	/* first record of an image: w1 = ppid, w2 = bytes of the command line (cut at
	 * RING_TEXT_MAX), its arguments, each ended by NUL. process_begin, thread_begin and
	 * RING_module ... follow. */
	RING_image = 134,
	/* w1 = records dropped by this thread since its previous record */
	RING_lost = 135,
	/* w1 = wait status (as waitpid) that the process is about to end with */
	RING_exit = 136,
	/* trace's lock_call and lock_return: w1 = object, w2 = site */
	RING_lock_call = 137,
	RING_lock_return = 138,
	/* w1 = object, w2 = site of the call that initialised it, w3 = that of the one that
	 * allocated its memory (0: not known), w4 = 1 when a RING_stack precedes: the call path of
	 * the initialisation, where none is known of this first use; w5 = which of those that were
	 * at this address it is, as far as their makings and ends were seen (0: the first). Again
	 * when that may have changed. */
	RING_made = 139,
	/* A queue verb with small numbers, as most are: w1 = name id | flags (8 bits) << 32 |
	 * trace's kind (8 bits) << 40 | n (16 bits) << 48, w2 = instance, w3 = site */
	RING_verb = 140,
	/* note_state: w1 = name id | flags << 32 */
	RING_state = 141,
	/* an annotated queue's: w1 = name id, w2 = instance, w3 = units that it holds at most */
	RING_capacity = 142,
	/* trace's affinity: w1 = whose, w2 = id, w3 = bytes, text: the processors, as 0-3,8 */
	RING_affinity = 143,
	/* A place in the program that is no address of code, but the program's runtime can name: w1 =
	 * the place (ring_place()), w2 = line, w3 = bytes of the function's name << 32 | bytes of the
	 * file's, the two texts, one behind the other. Sites and frames may be such places. */
	RING_place = 144,
	/* Code that the program made: w1 = address, w2 = bytes, w3 = the place (a RING_place before it)
	 * that it stands for from now on; the address at which that code was told before; or
	 * RING_CODE_INTERPRETS: it is an interpreter's, and stands for what its caller's frame says. */
	RING_code = 145,
};
#define RING_CODE_INTERPRETS 1 /* no code is there */
/* Behind all addresses of a process, within 48 bits. */
#define RING_PLACE_BIT      (1ull << TRACE_PLACE_SHIFT)
#define RING_IS_PLACE(word) TRACE_IS_PLACE(word)
static inline uint64_t ring_place(uint64_t number)
{
	return RING_PLACE_BIT | number;
}
#define RING_VERB_NAME(w1)  ((w1)&UINT32_MAX)
#define RING_VERB_FLAGS(w1) ((w1) >> 32 & 0xff)
#define RING_VERB_KIND(w1)  ((unsigned)((w1) >> 40 & 0xff))
#define RING_VERB_N(w1)     ((w1) >> 48)
static inline uint64_t ring_verb(uint64_t name, uint64_t flags, unsigned kind, uint64_t n)
{
	return name | flags << 32 | (uint64_t)kind << 40 | n << 48;
}
enum ring_name {
	RING_NAME_actor = 1, /* annotated state machine */
	RING_NAME_state,
	RING_NAME_queue,
	RING_NAME_object, /* w1 is not an id but an object word: a named semaphore's name */
};
enum { RING_STACK_MAX = 16, RING_TEXT_MAX = 4096, RING_AFFINITY_MAX = 1024 /* bytes */ };

struct ring_descriptor {      /* words 1.. of RING_descriptor */
	uint64_t incarnation; /* unique in this image; fields `object` of io records carry it */
	uint64_t fd;
	uint64_t type; /* enum trace_object_type */
	uint64_t dev, ino;
	uint64_t capacity_bytes; /* pipe size; socket buffer (both ends); 0: not known. Of a message
				    queue: messages */
	uint64_t pair_ino;       /* socketpair: the other end's inode; 0: none */
	uint64_t name_bytes; /* path; sockets: "tcp 127.0.0.1:80 127.0.0.1:4242" (local, peer) */
};

enum ring_recording {
	RING_off, /* before the start, after Ctrl-C, disk full */
	RING_on,
	RING_full, /* also when lock functions are called and unlock functions return */
};
/* An event that perf counts, as perf_event_open() knows it (tally/events.h). */
enum { RING_EVENTS = 4 };
struct ring_event {
	uint32_t type, unused;
	uint64_t config;
};

struct ring_head {
	uint64_t magic;
	uint32_t version, block_bytes;
	uint32_t nr_blocks; /* the file is ring_blocks_offset() + nr_blocks * block_bytes long */
	uint32_t recording; /* enum ring_recording */
	uint64_t tsc_origin;
	uint32_t next_image; /* atomic: images number themselves */
	uint32_t filters;    /* of system calls, that the recorder itself is under */
	uint32_t stack_depth_max;
	uint32_t stamp_ticks;    /* of the TSC: what a duration has of its own two stamps, at least;
				    set    before the program starts */
	uint64_t lost_records;   /* atomic: no free block */
	uint64_t nested_dropped; /* atomic */
	uint64_t images_attached; /* atomic */
	uint64_t deepbound;       /* atomic: libraries loaded with RTLD_DEEPBIND */
	uint64_t unsuited; /* atomic: programs that were executed without the library (calls) */
	/* atomic: OpenMP runtimes whose regions are not told: OMP_TOOL says so; another tool's */
	uint64_t omp_disabled, omp_other_tool;
	/* tally.h: after the blocks; nr_tables 0: none */
	uint64_t tables_offset;
	uint64_t ns_per_tick_32; /* << 32; set before the program starts */
	uint32_t nr_tables, tally_mask;
	/* The recorder's pid namespace, and the device of its /proc: a process that sees others
	 * says so. */
	uint64_t pid_ns, proc_dev;
	/* Of an affinity mask the kernel reads so many bytes, however many the program says that it
	 * has: no more are looked at. 0: not known, none are. */
	uint64_t affinity_bytes;
	/* With counted calls: these events of the thread, too. Modes: 1 in user space, 2 in the
	 * kernel. By call: not by rdpmc, which would be a fault on some of the cores. */
	uint32_t nr_events, event_modes, events_by_call, unused;
	struct ring_event event[RING_EVENTS];
	/* atomic, and away from what every call reads: how often the kernel was asked what a
	 * descriptor is, at its end; the rest of its cache line */
	_Alignas(64) uint64_t nr_ends_asked;
	/* Of a process that ran already (attach.h): enum ring_attach_state, how many entries of its
	 * tables lead to the library, the id of the library's own thread; and, a futex, the recorder's
	 * wish that it goes out. */
	uint32_t attach_state, attach_entries, attach_thread, attach_end;
	uint64_t line_rest[5];
	uint64_t free_map[]; /* 1 bit a block: 1 = free; then, page-aligned, the blocks */
};
/* How many filters of system calls (seccomp) a process is under; of its /proc/PID/status. 0 where
 * that is not said. (Kernels before 5.9 say only whether there is one.) */
static inline uint32_t ring_filters_in(const char *status)
{
	static const char mode_is[] = "\nSeccomp:\t", filters_are[] = "\nSeccomp_filters:\t";
	const char *mode = strstr(status, mode_is), *at = strstr(status, filters_are);
	uint32_t n = 0;
	if (!mode || mode[sizeof mode_is - 1] == '0')
		return 0;
	for (at = at ? at + sizeof filters_are - 1 : "1"; *at >= '0' && *at <= '9'; at++)
		n = n * 10 + (uint32_t)(*at - '0');
	return n;
}

static inline uint64_t ring_blocks_offset(uint32_t nr_blocks)
{
	uint64_t head = sizeof(struct ring_head) + ((uint64_t)nr_blocks + 63) / 64 * 8;
	return (head + 4095) / 4096 * 4096;
}

/* Is that the head of a file of so many bytes? To be asked of a copy. */
static inline int ring_layout_fits(const struct ring_head *copy, uint64_t file_bytes)
{
	return copy->magic == RING_MAGIC && copy->version == RING_VERSION &&
	       copy->block_bytes == RING_BLOCK_BYTES && copy->nr_blocks > 0 &&
	       ring_blocks_offset(copy->nr_blocks) + (uint64_t)copy->nr_blocks * RING_BLOCK_BYTES <=
		       file_bytes;
}

/* Section of static programs that were linked with liblongpole-wrap.a: they record themselves. */
#define PRELOAD_WRAP_SECTION ".longpole_wrap"

/* pid and tid are those that the process itself knows. In another pid namespace than the recorder's
 * they mean somebody else outside: then `ns` is not 0, but that namespace's inode. outer_pid and
 * outer_tid are the recorder's numbers, where the process could see them (its /proc is still the
 * recorder's), else 0: the recorder looks for them. */
struct ring_ids {
	uint64_t ns;
	uint32_t outer_pid, outer_tid;
};

enum ring_block_state { RING_BLOCK_FREE, RING_BLOCK_ACTIVE, RING_BLOCK_DONE };
struct ring_block {
	uint32_t state; /* enum ring_block_state; writer: ACTIVE -> DONE; session: DONE -> FREE */
	uint32_t pid;
	uint32_t tid;
	uint32_t image;    /* number of the program image, from 1: new after fork and exec */
	uint32_t sequence; /* 0, 1, 2 ... among the blocks of one thread: the order to read in */
	uint32_t parent_image; /* image that forked or exec'd this one; 0: none */
	uint64_t thread; /* number of the thread within its image (tids are reused); 1: the first */
	uint64_t nr_words; /* written before state becomes DONE: how many of word[] are used */
	struct ring_ids ids;
	uint64_t word[];
};

#endif
