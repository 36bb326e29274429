/* SPDX-License-Identifier: Apache-2.0 */
/* link_mpi.c - how long messages take on their way, by size, and the line that fits that (model/link.h). */
#include "model/link.h"
#include "runtime/mpi/rules_mpi.h"

#include <stdlib.h>

/* The first are kept, then one in so many takes the place of another: each has the same chance. */
void model_mpi_note_delay(struct model *m, uint64_t nr_bytes, uint64_t delay_ns)
{
	struct mpi_links *x = &m->known.mpi->links;
	uint32_t i = 0;
	while (i < x->nr_sizes && x->size[i].nr_bytes != nr_bytes)
		i++;
	if (i == MPI_LINK_SIZES)
		return;
	struct mpi_link_size *s = &x->size[i];
	s->nr_bytes = nr_bytes;
	x->nr_sizes += i == x->nr_sizes;
	uint64_t n = s->nr_seen++;
	/* (a multiplicative hash of the message's number: repeatable, and even) */
	uint64_t at = n < MPI_LINK_DELAYS ? n : (n * UINT64_C(0x9e3779b97f4a7c15) >> 32) % (n + 1);
	if (at < MPI_LINK_DELAYS)
		s->delay_ns[at] = (double)(delay_ns ? delay_ns : 1);
}

static int link_order(const void *pa, const void *pb)
{
	const double a = *(const double *)pa, b = *(const double *)pb;
	return (a > b) - (a < b);
}

static double link_median(double *v, size_t nr)
{
	qsort(v, nr, sizeof *v, link_order);
	return nr % 2 ? v[nr / 2] : (v[nr / 2 - 1] + v[nr / 2]) / 2;
}

static uint32_t link_nr_kept(const struct mpi_link_size *s)
{
	return s->nr_seen < MPI_LINK_DELAYS ? (uint32_t)s->nr_seen : MPI_LINK_DELAYS;
}

static double link_median_of(const struct mpi_link_size *s)
{
	double v[MPI_LINK_DELAYS];
	uint32_t nr = link_nr_kept(s);
	for (uint32_t i = 0; i < nr; i++)
		v[i] = s->delay_ns[i];
	return link_median(v, nr);
}

/* Least squares of (latency + n * per_byte) / delay - 1, where neither is below 0. */
static void link_solve(const struct mpi_links *x, struct model_link *ret)
{
	double a = 0, b = 0, c = 0, d = 0,
	       e = 0; /* sums of 1, n, n * n, by delay; of what they make */
	for (uint32_t i = 0; i < x->nr_sizes; i++) {
		double delay = link_median_of(&x->size[i]), n = (double)x->size[i].nr_bytes / delay;
		a += 1 / (delay * delay);
		b += n / delay;
		c += n * n;
		d += 1 / delay;
		e += n;
	}
	double determinant = a * c - b * b;
	bool is_line = x->nr_sizes > 1 && determinant > 1e-12 * a * c;
	ret->latency_ns = is_line ? (d * c - e * b) / determinant : d / a;
	ret->ns_per_byte = is_line ? (a * e - b * d) / determinant : 0;
	if (ret->latency_ns < 0) {
		ret->latency_ns = 0;
		ret->ns_per_byte = e / c;
	} else if (ret->ns_per_byte < 0) {
		ret->latency_ns = d / a;
		ret->ns_per_byte = 0;
	}
}

static double link_error(const struct mpi_links *x, const struct model_link *l)
{
	static const size_t most = (size_t)MPI_LINK_SIZES * MPI_LINK_DELAYS;
	double *off = base_alloc(most * sizeof *off), error;
	size_t nr = 0;
	if (!off)
		return 1;
	for (uint32_t i = 0; i < x->nr_sizes; i++) {
		const struct mpi_link_size *s = &x->size[i];
		double expected = l->latency_ns + l->ns_per_byte * (double)s->nr_bytes;
		for (uint32_t k = 0; k < link_nr_kept(s); k++)
			off[nr++] = (s->delay_ns[k] > expected ? s->delay_ns[k] - expected
							       : expected - s->delay_ns[k]) /
				    s->delay_ns[k];
	}
	error = link_median(off, nr);
	base_free(off);
	return error;
}

bool model_link_fit(const struct model *m, struct model_link *ret)
{
	const struct mpi_links *x = m->known.mpi ? &m->known.mpi->links : NULL;
	*ret = (struct model_link){0};
	if (!x || !x->nr_sizes)
		return false;
	ret->nr_sizes = x->nr_sizes;
	for (uint32_t i = 0; i < x->nr_sizes; i++)
		ret->nr_messages += x->size[i].nr_seen;
	link_solve(x, ret);
	ret->error = link_error(x, ret);
	return true;
}
