/* SPDX-License-Identifier: Apache-2.0 */
/* pdg_file.h - the parts of reading and writing graphs, for callers that do not hold all of one. */
#ifndef LONGPOLE_NOC_PDG_FILE_H
#define LONGPOLE_NOC_PDG_FILE_H

#include "noc/pdg/pdg.h"
#include "trace/trace.h"

/* A trace of so many packets to come; head: its nodes, what it has, its origin. The caller closes
 * the writer. */
enum base_status noc_pdg_write_begin(const struct noc_pdg *head, uint64_t nr_packets,
	const char *path, struct trace_writer **ret, struct base_err *err) BASE_MUST_CHECK;
/* Packets [from, to) of g, of which the first has number `number_of_first` in the trace. A node's
 * times must not be earlier than those written before. */
enum base_status noc_pdg_write_packets(const struct noc_pdg *g, uint32_t from, uint32_t to,
	uint64_t number_of_first, struct trace_writer *w, struct base_err *err) BASE_MUST_CHECK;

/* Was the trace written by noc_pdg_write_begin()? Then it has packets, and no threads. */
bool noc_pdg_is_trace(const struct trace_info *info);

/* A noc_graph record: a graph without packets, and their number. *ret NULL before. */
enum base_status noc_pdg_read_header(const struct trace_record *r, const struct trace_defs *defs,
	struct noc_pdg **ret, uint64_t *ret_packets, struct base_err *err) BASE_MUST_CHECK;
/* A noc_packet record, checked. */
enum base_status noc_pdg_read_packet(const struct trace_record *r, uint32_t nr_nodes,
	uint64_t nr_packets, struct noc_pdg_packet *ret, struct base_err *err) BASE_MUST_CHECK;

/* A noc_receiver record, checked; before: the packet or copy that the record follows, NULL: none.
 */
enum base_status noc_pdg_read_receiver(const struct trace_record *r, uint32_t nr_nodes,
	uint64_t nr_packets, const struct noc_pdg_packet *before, struct noc_pdg_packet *ret,
	struct base_err *err) BASE_MUST_CHECK;

#endif
