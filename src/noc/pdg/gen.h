/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gen.h - reference graphs: packet dependency graphs whose dependencies are known because they were
 * drawn (seed 002, section 5.1). The seed names ten patterns and gives no parameters (inval is not
 * of the seed: the multicast that coherence protocols need); all of ours are in gen_parameters.def
 * and go into the graph's origin.
 *
 * Open patterns (rand, nn, tor, trans, inv, hot, ned): a node transmits after gaps of exponential
 * length; a transmit depends on some of the last receptions of its node, or on its previous
 * transmit. Closed patterns (ball, central, tree, inval): every transmit is the consequence of
 * receptions. The same parameters give the same graph. Times are those of a fully connected network
 * of one cycle.
 */
#ifndef LONGPOLE_NOC_GEN_H
#define LONGPOLE_NOC_GEN_H

#include "base/parameter.h"
#include "noc/pdg/pdg.h"

struct noc_gen_pattern {
	const char *name, *line;
};
const struct noc_gen_pattern *noc_gen_patterns(size_t *ret_nr);

struct base_parameters noc_gen_parameters(void);

struct noc_gen_config {
	unsigned pattern; /* index into noc_gen_patterns() */
#define PARAM(key, preset, least, most, unit, sentence) double key;
#include "noc/pdg/gen_parameters.def"
};
void noc_gen_config_init(struct noc_gen_config *c);
/* "pattern=NAME" or "KEY=NUMBER". ERR_USAGE: no such key, or beyond its limits. */
enum base_status noc_gen_config_set(
	struct noc_gen_config *c, const char *assignment, struct base_err *err) BASE_MUST_CHECK;

enum base_status noc_gen(
	const struct noc_gen_config *c, struct noc_pdg **ret, struct base_err *err) BASE_MUST_CHECK;

#endif
