/* SPDX-License-Identifier: Apache-2.0 */
/*
 * preload_omp.h - gcc's OpenMP runtime, as the caller of a function of it would have found it.
 *
 * Nothing of it is ours to link, and a process may have several: wheels of Python bring one each,
 * which only their own modules see. A call goes on to the one that it would have reached without
 * us.
 */
#ifndef LONGPOLE_RECORD_PRELOAD_OMP_H
#define LONGPOLE_RECORD_PRELOAD_OMP_H

#include "record/preload.h"

struct preload_omp {
#define OMP(result, name, parameters) result(*name) parameters;
#include "record/preload_omp.def"
};

/* The library for a call that returns to `caller`. Never NULL: who called us found the name there.
 */
const struct preload_omp *preload_omp_of(uintptr_t caller);

#endif
