/* SPDX-License-Identifier: Apache-2.0 */
/* trace_json.c - what every answer in JSON has: rounded numbers, and an envelope that says which
 * trace it is about. */
#include "report/draw/draw.h"

#include "config.h"

#include <math.h>

json_t *report_json_share(double share)
{
	return json_real(round(share * 1e6) / 1e6);
}

json_t *report_json_ns(double ns)
{
	return json_integer(ns > 0 ? (json_int_t)llround(ns) : 0);
}

#include "report/draw/trace.def"

json_t *report_envelope(const char *schema, const struct report_trace *t, json_t *result)
{
	return json_pack("{s:s, s:s, s:o, s:o, s:o}", "schema", schema, "tool",
		"longpole " LONGPOLE_VERSION, "trace",
		base_table_json(&report_trace_table, t, NULL, 0), "diagnostics",
		base_table_json_list(&report_diagnostic_table, t->diag, t->nr_diags, NULL, 0),
		"result", result);
}
