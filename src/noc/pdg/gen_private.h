/* SPDX-License-Identifier: Apache-2.0 */
/* gen_private.h - what gen.c (open patterns) and gen_closed.c share. */
#ifndef LONGPOLE_NOC_GEN_PRIVATE_H
#define LONGPOLE_NOC_GEN_PRIVATE_H

#include "noc/pdg/draw.h"
#include "noc/pdg/gen.h"

struct noc_gen_state {
	const struct noc_gen_config *config;
	struct noc_pdg *pdg;
	struct noc_draw draw;
	uint32_t nr_nodes, width, height;
};

double noc_gen_exponential(struct noc_gen_state *g, double mean);
uint32_t noc_gen_to_near(struct noc_gen_state *g, uint32_t from);
uint32_t noc_gen_flits(struct noc_gen_state *g);

enum { NOC_GEN_RECEIVERS_MAX = 64 };
/* Appends p with its dependencies, sent to p.destination and to others drawn at random,
 * nr_receivers in all (0 is 1): none is the sender or, NOC_PDG_NONE aside, `except`. */
enum base_status noc_gen_add(struct noc_gen_state *g, struct noc_pdg_packet p,
	uint32_t nr_receivers, uint32_t except, const uint32_t *dependency,
	uint32_t nr_dependencies, struct base_err *err) BASE_MUST_CHECK;
uint32_t noc_gen_other_node(struct noc_gen_state *g, uint32_t from);
enum base_status noc_gen_inval(struct noc_gen_state *g, struct base_err *err) BASE_MUST_CHECK;
enum base_status noc_gen_ball(struct noc_gen_state *g, struct base_err *err) BASE_MUST_CHECK;
enum base_status noc_gen_central(struct noc_gen_state *g, struct base_err *err) BASE_MUST_CHECK;
enum base_status noc_gen_tree(struct noc_gen_state *g, struct base_err *err) BASE_MUST_CHECK;

#endif
