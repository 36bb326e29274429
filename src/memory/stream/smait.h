/* SPDX-License-Identifier: Apache-2.0 */
/*
 * smait.h - SMAIT's binary traces (seed 004, appendix A): one file a thread, of simple records of
 * two 32-bit unsigned integers.
 *
 *	field 1          field 2       what
 *	0000 0RST        address       access: T 0 load, 1 store; S bytes (0 for the store that
 *	                               touches none); R 0 fixed, 1 floating register
 *	0000 1xxN        a field       call record of kind xx, N = 0 .. 5: start and end in
 *	                               microseconds, four arguments
 *	4... ....        address       procedure starts
 *	8aaa aaaa        target        branch taken; aaaaaaa = the instruction after it
 *	Caaa aaaa        target        procedure called
 *
 * The seed's machines are big-endian; both orders are read, the likelier one is found from the
 * first records. Figure 4 of the seed (the digits R, S, T) is lost; what stands here is what its
 * two examples and section 4.1's list of kinds allow. Instructions are four bytes; the stream of
 * them is put together as section 3 says.
 */
#ifndef LONGPOLE_MEMORY_SMAIT_H
#define LONGPOLE_MEMORY_SMAIT_H

#include "memory/stream/source.h"

enum { MEMORY_SMAIT_RECORD_BYTES = 8, MEMORY_SMAIT_CALL_RECORDS = 6 };

/*
 * Writes STEM.0, STEM.1, ... Wider accesses become several of at most 8 bytes. Addresses that 32
 * bits (code: 28) cannot hold are moved page by page into such as can, in the order of first use,
 * so that what lay together in a page still does; how many is counted. Atomics become a load and a
 * store. Threads that are created and joined one by one become parallel regions (spawn, join),
 * locks critical sections with the lock's address as first argument. Ranges, and call kinds that
 * are not the seed's, are left out and counted.
 */
struct memory_smait_writer;
struct memory_smait_loss {
	uint64_t moved_pages, ranges, other_calls;
	uint64_t nested_calls; /* threads created or joined by another thread than 0 */
	uint64_t shared_locks; /* of readers: written as if each was alone */
	uint64_t left_out;     /* there was no room to move to */
};
enum base_status memory_smait_writer_open(const char *stem, uint32_t nr_threads, bool big_endian,
	struct memory_smait_writer **ret, struct base_err *err) BASE_MUST_CHECK;
/* All items of a batch; loops are written out. */
enum base_status memory_smait_writer_put(struct memory_smait_writer *w,
	const struct memory_batch *b, struct base_err *err) BASE_MUST_CHECK;
/* Always frees w. ret_loss may be NULL. */
enum base_status memory_smait_writer_close(struct memory_smait_writer *w,
	struct memory_smait_loss *ret_loss, struct base_err *err) BASE_MUST_CHECK;

#endif
