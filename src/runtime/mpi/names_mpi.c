/* SPDX-License-Identifier: Apache-2.0 */
/* names_mpi.c - arguments of causes: what functions, ranks and communicators of MPI are called. */
#include "runtime/mpi/rules_mpi.h"

void model_add_mpi_call(struct base_str *s, uint32_t detail)
{
	static const char *const text[] = {
#define X(name, t) t,
		TRACE_MPI_OPS(X)
#undef X
	};
	uint32_t op = detail % (1u << MPI_DETAIL_OP_BITS);
	base_str_add(s, op < TRACE_MPI_NR ? text[op] : "MPI");
}

void model_add_mpi_rank(struct base_str *s, uint32_t detail)
{
	uint32_t rank = detail >> MPI_DETAIL_OP_BITS;
	if (rank)
		base_str_addf(s, "rank %u", rank - 1);
}

void model_add_communicator(const struct model *m, struct base_str *s, uint32_t class_ix)
{
	const char *name = class_ix < m->made.nr_classes
				   ? trace_text_of(m->defs, m->made.class_[class_ix].name)
				   : "";
	base_str_add(s, *name ? name : "a communicator");
}
