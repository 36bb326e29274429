/* SPDX-License-Identifier: Apache-2.0 */
/* waits_private.h - accesses to polled words, collected and then matched. Private to the layer. */
#ifndef LONGPOLE_SLACK_WAITS_PRIVATE_H
#define LONGPOLE_SLACK_WAITS_PRIVATE_H

#include "memory/order/cursor.h"
#include "slack/waits.h"

enum seen_kind {
	SEEN_STORE,
	SEEN_EXCHANGE,
	SEEN_UPDATE, /* any other indivisible access */
	SEEN_RANGE,  /* by unseen code */
	SEEN_POLL,   /* the last one of a wait, or the only one */
};
struct indivisible { /* a thread's last one, to any word */
	uint64_t position, address, ns;
};
struct seen { /* an access to a polled word */
	uint64_t position, address, code;
	uint64_t from_ns, to_ns; /* when */
	uint64_t vain_ns;        /* POLL: not before then its last poll in vain was */
	struct indivisible before;
	uint32_t thread, word, post;
	uint32_t gap;   /* POLL: of the thread's spins, plus 1; 0: none */
	uint32_t index; /* in the word's list of stores */
	uint8_t kind;
	bool vain; /* POLL: there was one */
};
struct seen_list {
	struct seen *seen;
	size_t nr, capacity;
};

struct collector {
	struct slack_waits *result;
	struct seen_list *list; /* by thread */
};

/* ---- waits.c */
enum base_status slack_waits_no_memory(struct base_err *err);
/* ---- waits_match.c: from accesses to events */
enum base_status slack_waits_match(struct collector *c, const struct slack_spins *spins,
	bool serial, struct base_err *err) BASE_MUST_CHECK;

#endif
