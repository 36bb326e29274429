/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_gpu.c - `longpole gpu`: what holds a training step back. */
#include "cmd/cmd.h"

#include "report/gpu.h"

enum { LIMIT_DEFAULT = 15 };

static const struct cmd_option option[] = {
	{"step", 0, "NAME", NULL,
		"only steps with NAME in their name (or that match it, with * ? [)"},
	{"limit", 'n', "N", NULL, "show N kernels, calls and operators (default 15)"},
	{"links", 0, "N", NULL, "predict links that are N times as fast (default 2)"},
	{"ranks", 0, "N", NULL, "predict N ranks instead, with as much work each, and sharing it"},
	{"all", 'a', NULL, NULL, "show all of them"},
};

const struct cmd_details cmd_details_gpu = {
	.usage = "[OPTIONS] [TRACE]",
	.about = "Explains a trace that 'longpole import pytorch' made. It splits the critical "
		 "path of each step into kernels, communication that nothing hides, copies, "
		 "launches, gaps of streams, operators of the host, synchronisation and loading of "
		 "data. Then come the kernels, calls and operators on it, and how much faster the "
		 "steps would be after some changes.",
	.option = option,
	.nr_options = BASE_COUNT(option),
	.example = {"longpole import pytorch trace.json.gz && longpole gpu trace.json.lpt",
		"longpole gpu --step='ProfilerStep#3' trace.lpt",
		"longpole gpu --json trace.lpt | jq '.result.all.communication_share'"},
};

int cmd_section_gpu(struct cmd *c, struct report_run *run, struct cmd_answer *a)
{
	struct report_gpu *gpu = NULL;
	uint64_t limit = LIMIT_DEFAULT;
	uint64_t ranks = 0, links = 0;
	if (!cmd_value_count(c, "limit", &limit) || !cmd_value_count(c, "ranks", &ranks) ||
		!cmd_value_count(c, "links", &links))
		return CMD_USAGE;
	if (!run)
		return CMD_OK;
	struct report_gpu_options opts = {.step = cmd_value(c, "step"),
		.links = (double)links,
		.ranks = ranks,
		.limit = cmd_given(c, "all") ? 0 : (size_t)limit};
	cmd_answer_set(c, a, report_gpu_build(run, &opts, &gpu, &c->err));
	if (a->as == CMD_AS_JSON)
		a->json = report_gpu_json(gpu);
	else if (a->as == CMD_AS_TEXT)
		report_gpu_text(&a->text, gpu, &opts, &a->style);
	report_gpu_free(gpu);
	return CMD_OK;
}
