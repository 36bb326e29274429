/* SPDX-License-Identifier: Apache-2.0 */
/* communicator.h - the address of a communicator's `object` record: a number that all its ranks agree
 * on, though nothing is sent to agree on it, and from which recordings of single ranks find out whose
 * communicators are one. Used inside of programs, too: no library. */
#ifndef LONGPOLE_TRACE_COMMUNICATOR_H
#define LONGPOLE_TRACE_COMMUNICATOR_H

#include <stdint.h>

#define TRACE_COMMUNICATOR_ADDRESS ((UINT64_C(1) << 48) - 1)

/* (splitmix64) */
static inline uint64_t trace_communicator_mix(uint64_t x)
{
	x += 0x9e3779b97f4a7c15u;
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
	x = (x ^ x >> 27) * 0x94d049bb133111ebu;
	return x ^ x >> 31;
}

/* Of one that was made of `parent_address`, by the `number`-th call there that makes one, and whose
 * first rank is `first_world_rank` of the world. Its name is a word, which says what it is, and these
 * two. */
#define TRACE_COMMUNICATOR_NAME "%*s %u of world rank %u"
static inline uint64_t trace_communicator_address(
	uint64_t parent_address, uint32_t number, uint32_t first_world_rank)
{
	return trace_communicator_mix(
		       trace_communicator_mix(parent_address + number) + first_world_rank) &
	       TRACE_COMMUNICATOR_ADDRESS;
}

#endif
