/* SPDX-License-Identifier: Apache-2.0 */
/* slack.c - two runs of the machine, and the backward sweep between them. */
#include "slack/private.h"

#define BUDGET_DEFAULT (UINT64_C(1) << 30)
enum { NODES_AT_ONCE = 1 << 16 };

static uint64_t executed(struct slack_machine *m)
{
	const struct slack_machine_result *r = slack_machine_result(m);
	uint64_t nr = 0;
	for (uint32_t i = 0; i < m->nr_lanes; i++)
		nr += m->lane[i].executed;
	return nr ? nr : r->instructions;
}

static enum base_status run_all(
	struct slack_analysis *a, struct slack_machine *m, unsigned pass, struct base_err *err)
{
	enum base_status s = BASE_OK;
	while (s == BASE_OK) {
		s = slack_machine_run(m, NODES_AT_ONCE, err);
		if (a->options.progress)
			a->options.progress(a->options.ctx, pass, executed(m));
	}
	return s == BASE_END ? BASE_OK : s;
}

/* The machine goes away before its result is used for the last time. */
static enum base_status keep_result(
	struct slack_analysis *a, struct slack_machine *m, struct base_err *err)
{
	const struct slack_machine_result *r = slack_machine_result(m);
	size_t bytes = (a->nr_processors + 1) * sizeof *r->processor;
	struct slack_processor_result *copy = base_alloc(bytes);
	if (!copy)
		return base_fail(err, BASE_ERR_NOMEM, "no memory for the machine's result");
	for (uint32_t i = 0; i < a->nr_processors; i++)
		copy[i] = r->processor[i];
	a->result.machine = *r;
	a->result.machine.processor = copy;
	return BASE_OK;
}

static enum base_status slack_slack_analyse(struct slack_analysis *a,
	const struct slack_machine_config *config, struct memory_source *source,
	struct slack_machine **m, struct base_err *err)
{
	struct slack_sink first = {
		.run = slack_compress_run, .node = slack_compress_node, .ctx = a};
	struct slack_sink second = {.run = slack_profile_run,
		.node = slack_profile_node,
		.allocated = slack_profile_allocated,
		.ctx = a};
	enum base_status s = slack_compress_init(a, err);
	if (s == BASE_OK)
		s = slack_machine_new(config, source, &a->options.machine, &first, m, err);
	if (s == BASE_OK)
		s = run_all(a, *m, 1, err);
	if (s == BASE_OK && !a->begun)
		s = base_fail(err, BASE_ERR_USAGE,
			a->options.from_parallel
				? "no thread is created: the graph cannot begin there"
				: "there is no such marker: the graph cannot begin there");
	if (s == BASE_OK)
		s = keep_result(a, *m, err);
	if (s == BASE_OK)
		s = slack_sweep(a, err);
	if (s == BASE_OK)
		s = slack_machine_again(m, &second, err);
	if (s == BASE_OK)
		s = slack_profile_init(a, err);
	if (s == BASE_OK)
		s = run_all(a, *m, 2, err);
	a->result.counts.spilled_bytes = a->budget.spilled_bytes;
	return s == BASE_OK ? slack_profile_finish(a, err) : s;
}

enum base_status slack_analyse(const struct slack_machine_config *config,
	struct memory_source *source, const struct slack_options *options,
	struct slack_analysis **ret, struct base_err *err)
{
	struct slack_machine *m = NULL;
	*ret = NULL;
	if (options->continuous && options->endpoint >= source->info.nr_threads)
		return base_fail(
			err, BASE_ERR_USAGE, "there is no thread %u to end at", options->endpoint);
	struct slack_analysis *a = base_alloc(sizeof *a);
	if (!a)
		return base_fail(err, BASE_ERR_NOMEM, "no memory for slack");
	a->options = *options;
	a->nr_processors = source->info.nr_threads;
	a->budget.left_bytes = options->memory_bytes ? options->memory_bytes : BUDGET_DEFAULT;
	enum base_status s = slack_slack_analyse(a, config, source, &m, err);
	slack_machine_free(m);
	if (s != BASE_OK) {
		slack_analysis_free(a);
		return s;
	}
	*ret = a;
	return BASE_OK;
}

const struct slack_result *slack_analysis_result(const struct slack_analysis *a)
{
	return &a->result;
}

struct slack_analysis *slack_analysis_free(struct slack_analysis *a)
{
	if (!a)
		return NULL;
	slack_profile_fini(a);
	if (a->edges.budget)
		slack_stack_fini(&a->edges);
	if (a->flights.budget)
		slack_stack_fini(&a->flights);
	for (uint32_t i = 0; a->known && a->path && i < a->nr_processors; i++) {
		if (a->known[i].budget)
			slack_stack_fini(&a->known[i]);
		if (a->path[i].budget)
			slack_stack_fini(&a->path[i]);
	}
	base_free(a->known);
	base_free(a->path);
	base_free(a->at_end);
	base_free(a->earlier);
	base_free(a->last_late);
	base_free(a->seen);
	base_free(a->glances);
	base_free(a->nr_glances);
	base_histogram_fini(&a->result.global);
	base_histogram_fini(&a->result.local);
	base_free(a->result.machine.processor);
	base_free(a->result.processor);
	base_free(a->result.code);
	base_free(a->result.line);
	base_free(a);
	return NULL;
}
