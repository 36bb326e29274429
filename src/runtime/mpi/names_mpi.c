/* SPDX-License-Identifier: Apache-2.0 */
/* names_mpi.c - what states in MPI, and ranks, are called. */
#include "runtime/mpi/rules_mpi.h"

static const char *mpi_text(uint32_t op)
{
	static const char *const text[] = {
#define X(name, t) t,
		TRACE_MPI_OPS(X)
#undef X
	};
	return op < TRACE_MPI_NR ? text[op] : "MPI";
}

static bool mpi_is_between_two(uint32_t op)
{
	return (op >= TRACE_MPI_Send && op <= TRACE_MPI_Testsome);
}

static void mpi_add_comm(const struct model *m, struct base_str *s, uint32_t class_ix)
{
	const char *name = class_ix < m->made.nr_classes
				   ? trace_text_of(m->defs, m->made.class_[class_ix].name)
				   : "";
	base_str_add(s, *name ? name : "a communicator");
}

static void mpi_add_wait(struct model *m, struct base_str *s, const struct state_info *st,
	uint32_t op, uint32_t peer)
{
	if (op <= TRACE_MPI_Init_thread || (op == TRACE_MPI_Finalize && !peer)) {
		base_str_addf(s, "%s MPI (%s)", op == TRACE_MPI_Finalize ? "ending" : "starting",
			mpi_text(op));
	} else if (!mpi_is_between_two(op)) {
		base_str_addf(s, "waiting at %s of ", mpi_text(op));
		mpi_add_comm(m, s, st->class_ix);
		if (peer)
			base_str_addf(s, " for rank %u", peer - 1);
	} else if (peer && st->aux & MPI_AUX_SENDS) {
		base_str_addf(s, "waiting for rank %u to receive (%s)", peer - 1, mpi_text(op));
	} else if (peer) {
		base_str_addf(s, "waiting for message from rank %u (%s)", peer - 1, mpi_text(op));
	} else {
		base_str_addf(s, "waiting for messages (%s)", mpi_text(op));
	}
}

/* False: it is another's. */
bool model_add_mpi_state(struct model *m, struct base_str *s, const struct state_info *st)
{
	uint32_t op = (st->aux & MPI_AUX_OP_MASK) >> MPI_AUX_OP_SHIFT,
		 peer = st->aux & MPI_AUX_PEER_MASK;
	if (st->pub.kind == MODEL_STATE_latency && st->class_ix < m->made.nr_classes &&
		m->made.class_[st->class_ix].type == TRACE_OBJECT_communicator) {
		base_str_add(s, "communication in ");
		mpi_add_comm(m, s, st->class_ix);
		return true;
	}
	if (st->aux >> 30 != 1 ||
		(st->pub.kind != MODEL_STATE_wait && st->pub.kind != MODEL_STATE_io))
		return false;
	if (st->pub.kind == MODEL_STATE_wait)
		mpi_add_wait(m, s, st, op, peer);
	else
		base_str_addf(s, "in %s", mpi_text(op));
	return true;
}
