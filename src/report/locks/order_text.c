/* SPDX-License-Identifier: Apache-2.0 */
/* order_text.c - potential deadlocks, as text and as JSON. */
#include "base/column.h"
#include "report/locks/order_private.h"

#include "config.h"

#include <inttypes.h>

static void order_text_add_step(struct base_str *out, const struct report_order_step *p)
{
	base_str_addf(out, "  %s has %s%s, taken in %s\n", p->thread, p->has,
		p->has_shared ? " as a reader" : "", p->has_where);
	base_str_addf(out, "      and takes %s%s in %s (", p->takes,
		p->takes_shared ? " as a reader" : "", p->takes_where);
	base_str_add_counted(out, "%s {time|times})\n", p->times);
}

static void add_headline(struct base_str *out, const struct report_order *o)
{
	if (!o->nr_cycles) {
		base_str_add(out,
			"No potential deadlock: no two threads took locks in opposite order "
			"where they could have met.\n");
		return;
	}
	base_str_add_counted(out, "%s potential {deadlock|deadlocks}: ", o->nr_cycles);
	base_str_addf(out,
		"%zu {thread|threads} took %zu {lock|locks} in a circle, and nothing kept them "
		"from doing so at "
		"the "
		"same time.\n",
		o->cycle[0].nr_steps, o->cycle[0].nr_steps);
}

void report_order_text(struct base_str *out, const struct report_order *o)
{
	add_headline(out, o);
	for (size_t i = 0; i < o->nr_cycles; i++) {
		const struct report_order_cycle *c = &o->cycle[i];
		base_str_addf(out, "\n%zu. a circle of %zu\n", i + 1, c->nr_steps);
		for (size_t k = 0; k < c->nr_steps; k++)
			order_text_add_step(out, &c->step[k]);
	}
	base_str_add(out, "\nHOW IT IS KNOWN\n  Observed: ");
	base_str_add_counted(out, "%s {acquisition|acquisitions} of ", o->nr_acquired);
	base_str_add_counted(out, "%s {lock|locks} by ", o->nr_locks);
	base_str_add_counted(out, "%s {thread|threads}; ", o->nr_threads);
	base_str_add_counted(out, "%s different {order|orders}. Left out: ", o->nr_edges);
	base_str_add_counted(
		out, "%s {acquisition|acquisitions} that could not wait for ever, ", o->nr_tried);
	base_str_add_counted(out, "%s {circle|circles} that another lock guards, ", o->nr_gated);
	base_str_add_counted(
		out, "%s whose threads follow each other by creation and join.\n", o->nr_ordered);
	base_str_add(out,
		"CAVEATS\n  Only what this run took in this order is seen. That other things than "
		"locks, creations and joins keep the threads apart (a queue, a flag) is not "
		"known. What lies in memory that was freed and used again is another lock if the "
		"recording has allocations (--heap). What lies on a stack is one lock, whichever "
		"function "
		"is there, unless a call initialises or destroys it.\n");
	if (o->cut)
		base_str_add(out, "  There are more circles than are shown.\n");
	if (o->nr_lost)
		base_str_addf(out,
			"  %" PRIu64 " {acquisition or thread was|acquisitions or threads were} "
			"beyond the limits.\n",
			o->nr_lost);
}

#include "report/locks/order.def"

json_t *report_order_json(const struct report_order *o)
{
	json_t *path = json_string(o->trace_path);
	return json_pack("{s:s, s:s, s:{s:o}, s:o}", "schema", report_order_document.name, "tool",
		"longpole " LONGPOLE_VERSION, "trace", "path", path ? path : json_string("?"),
		"result", base_table_json(&report_order_document, o, NULL, 0));
}
