/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sarif.h - SARIF 2.1.0, for code scanning and editors: a writer for commands that have found
 * something in a program (deadlocks, livelocks, misused annotations). Texts are cleaned and quoted
 * here.
 *
 *   format_sarif_begin(&out, "0.1.0", rules, nr);
 *   format_sarif_result(&out, &r);                 for each
 *   format_sarif_end(&out);
 *
 * GitHub shows 5,000 of at most 25,000 results, 1,000 of 10,000 thread flow locations: what is
 * beyond FORMAT_SARIF_* is left out, and format_sarif_end() says how many.
 */
#ifndef LONGPOLE_FORMAT_SARIF_H
#define LONGPOLE_FORMAT_SARIF_H

#include "base/base.h"

enum { FORMAT_SARIF_RESULTS_MAX = 25000, FORMAT_SARIF_STEPS_MAX = 1000 };

struct format_sarif_rule {
	const char *id;   /* stable: "longpole/deadlock" */
	const char *text; /* one sentence */
	const char *help; /* what to do; "" when there is nothing */
};
struct format_sarif_place {
	const char *file; /* "" or NULL: not known */
	uint64_t line;    /* 0: not known */
	const char *text; /* of a step: "waits for mutex b"; else NULL */
	const char *function;
};
struct format_sarif_flow { /* one thread's part in it */
	const char *thread;
	const struct format_sarif_place *step;
	size_t nr_steps;
};
enum format_sarif_level { FORMAT_SARIF_note, FORMAT_SARIF_warning, FORMAT_SARIF_error };
struct format_sarif_result {
	size_t rule; /* index */
	enum format_sarif_level level;
	const char *text;
	const struct format_sarif_place *place; /* where; may be NULL */
	const struct format_sarif_flow *flow;
	size_t nr_flows;
	uint64_t fingerprint; /* equal in every run of the same finding: of names, not of addresses.
			       * Of several equal ones each gets another. */
};
struct format_sarif {
	struct base_str text; /* the document; text.failed: no memory */
	/* A file that stands for places that are not known; NULL: "program". Readers as GitHub
	 * refuse a document with a result that is nowhere. */
	const char *program;
	struct base_map seen; /* fingerprint -> how often */
	const struct format_sarif_rule *rule;
	size_t nr_rules, nr_results, nr_left_out;
};
void format_sarif_begin(struct format_sarif *s, const char *version,
	const struct format_sarif_rule *rule, size_t nr_rules);
void format_sarif_result(struct format_sarif *s, const struct format_sarif_result *r);
void format_sarif_end(struct format_sarif *s);
void format_sarif_fini(struct format_sarif *s);
/* "function (file.c:42)" taken apart into `buf`, which the place then borrows; false: no file in
 * it. */
bool format_sarif_parse_place(
	const char *where, struct base_str *buf, struct format_sarif_place *ret);

#endif
