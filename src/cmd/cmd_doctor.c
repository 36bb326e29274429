/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_doctor.c - `longpole doctor`: what this machine offers, what each missing thing costs. */
#include "cmd/cmd.h"

#include "session/doctor.h"

static const struct cmd_option option[] = {
	{"json", 0, NULL, NULL, "one JSON document instead of text"},
};

const struct cmd_details cmd_details_doctor = {
	.usage = "[OPTIONS]",
	.about = "Probes what a recording needs or could use here: clock, preload library, "
		 "processor "
		 "samples, switches. For each missing thing it says what is lost and what takes "
		 "its place. "
		 "Exit status 1: something is missing without which nothing can be recorded.",
	.gate = "something is missing without which nothing can be recorded",
	.option = option,
	.nr_options = BASE_COUNT(option),
	.example = {"longpole doctor",
		"longpole doctor --json | jq '.result.probes[] | select(.ok | not)'"},
};

static void probe_lines(struct base_str *out, const struct cmd *c, const struct session_probe *p)
{
	const char *mark = p->ok ? "ok     " : p->needed ? "MISSING" : "without";
	const char *color = p->ok ? "\033[32m" : p->needed ? "\033[1;31m" : "\033[33m";
	base_str_addf(out, "%s%s%s  %-28s %s\n", c->term.color_out ? color : "", mark,
		c->term.color_out ? "\033[0m" : "", p->title, p->value);
	if (!p->ok && p->lost && *p->lost)
		base_str_addf(out, "         lost:    %s\n", p->lost);
	if (!p->ok && p->instead && *p->instead)
		base_str_addf(out, "         instead: %s\n", p->instead);
}

int cmd_run_doctor(struct cmd *c)
{
	struct session_probe probe[SESSION_PROBES_MAX];
	if (c->nr_operands)
		return cmd_usage(c, "doctor takes no operands");
	size_t nr = session_doctor(probe);
	bool able = true;
	json_t *list = json_array();
	struct base_str text = {0};
	for (size_t i = 0; i < nr; i++) {
		const struct session_probe *p = &probe[i];
		struct base_str value = {0};
		report_clean_add(&value, p->value);
		able &= p->ok || !p->needed;
		probe_lines(&text, c, p);
		json_array_append_new(
			list, json_pack("{s:s, s:s, s:b, s:b, s:s, s:s, s:s}", "name", p->name,
				      "title", p->title, "ok", p->ok, "needed", p->needed, "value",
				      base_str_text(&value), "lost", p->lost ? p->lost : "",
				      "instead", p->instead ? p->instead : ""));
		base_str_fini(&value);
	}
	base_str_addf(&text, "%s\n",
		able ? "This machine can record."
		     : "This machine cannot record until what is MISSING is there.");
	int exit_status;
	if (cmd_given(c, "json")) {
		base_str_fini(&text);
		exit_status = cmd_write_result(c, "longpole/doctor/1",
			json_pack("{s:b, s:o}", "can_record", able, "probes", list));
	} else {
		json_decref(list);
		exit_status = cmd_write(c, &text);
	}
	return exit_status != CMD_OK ? exit_status : able ? CMD_OK : CMD_GATE;
}
