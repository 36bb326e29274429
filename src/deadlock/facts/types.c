/* SPDX-License-Identifier: Apache-2.0 */
/* types.c - the tables of types.h, and when an event ends a wait. */
#include "deadlock/facts/types.h"

bool deadlock_key_matches(const struct deadlock_key *awaited, const struct deadlock_key *produced)
{
	return awaited->kind == produced->kind && awaited->kind != DEADLOCK_KEY_NONE &&
	       awaited->space == produced->space && awaited->id == produced->id &&
	       produced->at - awaited->at < (awaited->bytes ? awaited->bytes : 1);
}

bool deadlock_key_equal(const struct deadlock_key *a, const struct deadlock_key *b)
{
	return a->kind == b->kind && a->space == b->space && a->id == b->id && a->at == b->at;
}

struct key_row {
	const char *text, *met_by_name;
};
static const struct key_row keys[] = {
#define KEY(name, text, met_by_name) {text, met_by_name},
#include "deadlock/facts/keys.def"
};

const char *deadlock_key_kind_text(enum deadlock_key_kind kind)
{
	return (unsigned)kind < BASE_COUNT(keys) ? keys[kind].text : "";
}

const char *deadlock_key_met_by_name(const struct deadlock_key *key)
{
	if (!key->is_named || (unsigned)key->kind >= BASE_COUNT(keys))
		return NULL;
	return *keys[key->kind].met_by_name ? keys[key->kind].met_by_name : NULL;
}

struct kind_row {
	const char *text, *noun;
};
static const struct kind_row kinds[] = {
#define KIND(name, text, noun) {text, noun},
#include "deadlock/facts/kinds.def"
};

const char *deadlock_kind_text(enum deadlock_kind kind)
{
	return (unsigned)kind < BASE_COUNT(kinds) ? kinds[kind].text : "";
}

const char *deadlock_kind_noun(enum deadlock_kind kind)
{
	return (unsigned)kind < BASE_COUNT(kinds) ? kinds[kind].noun : "";
}

struct end_row {
	const char *text;
	bool proper;
};
static const struct end_row ends[] = {
#define END(name, proper, text) {text, proper},
#include "deadlock/facts/ends.def"
};

const char *deadlock_end_text(enum deadlock_end end)
{
	return (unsigned)end < BASE_COUNT(ends) ? ends[end].text : "";
}

bool deadlock_end_is_proper(enum deadlock_end end)
{
	return (unsigned)end < BASE_COUNT(ends) && ends[end].proper;
}
