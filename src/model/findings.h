/* SPDX-License-Identifier: Apache-2.0 */
/*
 * findings.h - what is wrong with a program's annotations, each misuse once: its site, queue,
 * actor, how often, and when first (seed 000, sections 4.4 and 5.1.3). Never fatal.
 */
#ifndef LONGPOLE_MODEL_FINDINGS_H
#define LONGPOLE_MODEL_FINDINGS_H

#include "model/model.h"

enum model_severity { MODEL_SEVERITY_error, MODEL_SEVERITY_warning, MODEL_SEVERITY_info };
const char *model_severity_name(enum model_severity s);

enum model_check {
#define FINDING(id, severity, sentence, advice) MODEL_CHECK_##id,
#include "model/findings.def"
	MODEL_CHECK_NR
};
const char *model_check_name(enum model_check c); /* "take_empty" */

enum { MODEL_FINDINGS_MAX = 1000 };
struct model_finding {
	enum model_check check;
	enum model_severity severity;
	const char *sentence, *advice;
	const char *where;         /* "function (file:line)"; "" when not known */
	bool near_by;              /* `where` is the last annotation before it */
	const char *queue, *actor; /* "" when it has none */
	uint64_t count,
		of; /* so often; of so many times that the place was passed (0: not known) */
	uint64_t first_ns;
};
/* Errors first, then by count. *ret_more: distinct ones beyond MODEL_FINDINGS_MAX, not kept. */
const struct model_finding *model_findings(
	const struct model *m, size_t *ret_nr, uint64_t *ret_more);

#endif
