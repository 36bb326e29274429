/* SPDX-License-Identifier: Apache-2.0 */
/*
 * csv.h - packets as text.
 *
 * CSV: a first line that names the columns, in any order; others are passed over.
 *   cycle         of the transmit (must be there, as source and destination)
 *   source, destination
 *   flits         1 when it is not there
 *   type, address
 *   receive       cycle of the reception; else one after the transmit
 *   delay         intrinsic delay        } with these two it is a graph
 *   dependencies  packets, by their line from 0, separated by ';'
 *   previous      1: the node's previous transmit is an input, too
 *   packet        its number, where numbers are kept: from 0 on, each once
 * Lines are in the order of their cycles, and are numbered so, or by `packet`. Numbers are decimal;
 * no quotes.
 *
 * BookSim: what the workload "trace" of BookSim 2's branch `classes` reads: "DELAY SOURCE
 * DESTINATION TYPE" a line, the delay being the cycles since the line before; a type is the place
 * of its size in a list of sizes (types other than those are of the last). No dependencies.
 */
#ifndef LONGPOLE_NOC_CSV_H
#define LONGPOLE_NOC_CSV_H

#include "noc/pdg/input.h"
#include "noc/pdg/pdg.h"

/* ERR_FOREIGN with the line's number: not such a file. */
enum base_status noc_csv_read(struct noc_input *in, bool keep_numbers, struct noc_pdg **ret,
	struct base_err *err) BASE_MUST_CHECK;
enum base_status noc_csv_write(
	const struct noc_pdg *g, const char *path, struct base_err *err) BASE_MUST_CHECK;

enum { NOC_BOOKSIM_SIZES_MAX = 16 };
struct noc_booksim_sizes {
	uint32_t flits[NOC_BOOKSIM_SIZES_MAX];
	unsigned nr;
};
enum base_status noc_booksim_read(struct noc_input *in, const struct noc_booksim_sizes *sizes,
	struct noc_pdg **ret, struct base_err *err) BASE_MUST_CHECK;
/* *ret_sizes: the list to give to BookSim. ERR_LIMIT: more sizes than that. */
enum base_status noc_booksim_write(const struct noc_pdg *g, const char *path,
	struct noc_booksim_sizes *ret_sizes, struct base_err *err) BASE_MUST_CHECK;

#endif
