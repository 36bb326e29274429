/* SPDX-License-Identifier: Apache-2.0 */
/* energy.h - an estimate of dynamic energy: counts times a table. Neither leakage nor clock is in
 * it, and no technology is yours. */
#ifndef LONGPOLE_NOC_ENERGY_H
#define LONGPOLE_NOC_ENERGY_H

#include "noc/network/network.h"

static inline double noc_energy_pj(const struct noc_counts *c)
{
	double sum = 0;
#define ENERGY(count, pj, what) sum += (pj) * (double)c->count;
#include "noc/network/energy.def"
	return sum;
}

#endif
