/* SPDX-License-Identifier: Apache-2.0 */
/* analysis.h - what analysis.c and predict.c share. */
#ifndef LONGPOLE_API_ANALYSIS_H
#define LONGPOLE_API_ANALYSIS_H

#include "longpole/analysis.h"
#include "report/report.h"

struct report_run *api_run(struct longpole_analysis *analysis);
uint64_t api_ns(double ns); /* rounded; less than nothing is nothing */
struct longpole_gain api_gain(const struct report_best *best);

#endif
