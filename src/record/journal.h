/* SPDX-License-Identifier: Apache-2.0 */
/*
 * journal.h - what the recorder has learned and the ring does not have any more: which
 * thread writes which stream, what is mapped where, which object an address is.
 *
 * An entry is a kind, a number of words, and the words, all as varints. Entries are gathered here
 * and written to a file of the session's directory at each checkpoint (session/keep.h).
 */
#ifndef LONGPOLE_RECORD_JOURNAL_H
#define LONGPOLE_RECORD_JOURNAL_H

#include "base/base.h"

enum { RECORD_JOURNAL_WORDS_MAX = 16 };

/* JOURNAL(kind, its words): also what session/recover.c has a function for. */
#define RECORD_JOURNAL(JOURNAL)                                                                    \
	JOURNAL(map, "which map, the key's two words, the value")                                  \
	JOURNAL(image, "number, parent, pid, process")                                             \
	JOURNAL(range, "image, start, end, bias, module, whether the kernel said so")              \
	JOURNAL(unload, "image, bias")                                                             \
	JOURNAL(forked, "image")                                                                   \
	JOURNAL(shared, "image, start, end, offset, device, inode")                                \
	JOURNAL(thread,                                                                            \
		"image, number, pid, tid, its own pid, its own tid, stream, pid namespace")        \
	JOURNAL(named, "object, module, offset")                                                   \
	JOURNAL(made, "object, site of init, site of allocation, path ...")

enum record_journal_kind {
#define JOURNAL(kind, words) RECORD_JOURNAL_##kind,
	RECORD_JOURNAL(JOURNAL)
#undef JOURNAL
		RECORD_JOURNAL_NR
};

/* The maps whose entries are noted; the numbers are in files. */
enum record_map_number {
	RECORD_MAP_none, /* not noted */
	RECORD_MAP_objects,
	RECORD_MAP_mappings,
	RECORD_MAP_pairs,
	RECORD_MAP_pair_sides,
	RECORD_MAP_peers,
	RECORD_MAP_names,
	RECORD_MAP_actors,
	RECORD_MAP_states,
	RECORD_MAP_queues,
	RECORD_MAP_places,
	RECORD_MAP_NR
};

struct record_journal {
	uint8_t *bytes; /* since the last checkpoint */
	size_t nr, capacity;
	bool failed; /* no memory: from here on it is of no use */
};

/* j NULL: nobody wants it. */
void record_journal_add(
	struct record_journal *j, enum record_journal_kind kind, const uint64_t *word, size_t nr);
#define RECORD_JOURNAL_ADD(j, kind, ...)                                                           \
	record_journal_add((j), RECORD_JOURNAL_##kind, (const uint64_t[]){__VA_ARGS__},            \
		sizeof((const uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t))
void record_journal_fini(struct record_journal *j);

struct record_journal_entry {
	enum record_journal_kind kind;
	uint64_t word[RECORD_JOURNAL_WORDS_MAX]; /* those that are not there are 0 */
	size_t nr;
};
/* The entry at p; returns where it ends, NULL: that is none. */
const uint8_t *record_journal_read(
	const uint8_t *p, const uint8_t *end, struct record_journal_entry *ret);

#endif
