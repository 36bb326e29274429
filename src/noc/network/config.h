/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config.h - a network, its traffic and a simulation, as numbers and words; the table is
 * noc_parameters.def.
 *
 * Set by "key=value" texts (command line) or by an INI file whose sections are ignored. Unknown
 * keys and values out of range are BASE_ERR_USAGE with the nearest key or the limits. What only
 * goes together (VCs and classes, topology and routing) is checked by noc_network_open().
 */
#ifndef LONGPOLE_NOC_CONFIG_H
#define LONGPOLE_NOC_CONFIG_H

#include "base/parameter.h"

enum { NOC_TEXT_MAX = 256 };

enum noc_topology_kind {
#define TOPOLOGY(name, upper, sentence) NOC_TOPOLOGY_##upper,
#include "noc/network/noc_words.def"
	NOC_TOPOLOGY_NR
};
enum noc_routing {
#define ROUTING(name, upper, sentence) NOC_ROUTING_##upper,
#include "noc/network/noc_words.def"
	NOC_ROUTING_NR
};
enum noc_allocator {
#define ALLOCATOR(name, upper, sentence) NOC_ALLOCATOR_##upper,
#include "noc/network/noc_words.def"
	NOC_ALLOCATOR_NR
};
enum noc_pattern {
#define PATTERN(name, upper, sentence) NOC_PATTERN_##upper,
#include "noc/network/noc_words.def"
	NOC_PATTERN_NR
};
enum noc_injection {
#define INJECTION(name, upper, sentence) NOC_INJECTION_##upper,
#include "noc/network/noc_words.def"
	NOC_INJECTION_NR
};

/* Fields are the rows' keys. A word's field has one of the enums above as its value. */
struct noc_config {
#define INTEGER(group, key, preset, least, most, unit, sentence) uint64_t key;
#define REAL(group, key, preset, least, most, unit, sentence)    double key;
#define CHOICE(group, key, preset, words, sentence)              uint64_t key;
#define TEXT(group, key, preset, sentence)                       char key[NOC_TEXT_MAX];
#include "noc/network/noc_parameters.def"
};

struct base_parameters noc_parameters(void);
/* The defaults. */
void noc_config_init(struct noc_config *c);
/* "key=value"; spaces around both are ignored. */
enum base_status noc_config_set(
	struct noc_config *c, const char *setting, struct base_err *err) BASE_MUST_CHECK;
/* A whole INI text; `name` is for messages. */
enum base_status noc_config_parse(struct noc_config *c, const char *text, const char *name,
	struct base_err *err) BASE_MUST_CHECK;

/* The word of a choice: noc_word_name(noc_topology_words, c->topology). */
extern const struct base_word noc_topology_words[], noc_routing_words[], noc_allocator_words[],
	noc_pattern_words[], noc_injection_words[];

#endif
