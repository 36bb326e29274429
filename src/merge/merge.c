/* SPDX-License-Identifier: Apache-2.0 */
/* merge.c - the passes, one after the other. */
#include "merge/private.h"

#include <string.h>

static enum base_status name_results(struct merge *m, struct base_arena *names)
{
	for (uint32_t i = 0; i < m->nr_inputs; i++) {
		const struct merge_input *in = &m->input[i];
		struct merge_input_result *r = &m->result->input[i];
		const char *command = in->info->command ? in->info->command : "";
		r->path = in->path;
		r->host = base_arena_strndup(names, in->host, strlen(in->host));
		r->command = base_arena_strndup(names, command, strlen(command));
		if (!r->host || !r->command)
			return base_fail(m->err, BASE_ERR_NOMEM, "no memory for names");
	}
	m->result->nr_inputs = m->nr_inputs;
	m->result->nr_hosts = m->nr_hosts;
	return BASE_OK;
}

/* Two inputs that are ranks of different jobs. */
static enum base_status merge_refuse_jobs(const struct merge *m)
{
	uint32_t a = 0, b;
	while (a < m->nr_inputs && m->result->input[a].job != 1)
		a++;
	for (b = a; b < m->nr_inputs && m->result->input[b].job <= 1;)
		b++;
	return base_fail(m->err, BASE_ERR_USAGE,
		"%s and %s are of different MPI jobs: 'longpole merge' with the names of one job's "
		"traces joins these",
		m->input[a].path, m->input[b < m->nr_inputs ? b : a].path);
}

static enum base_status merge_merge_run(
	struct merge *m, const char *const *path, const char *output, struct base_arena *names)
{
	enum base_status status = merge_open(m, path);
	if (status == BASE_OK)
		status = name_results(m, names);
	if (status == BASE_OK) {
		m->messages = merge_messages_new(m);
		status = m->messages ? merge_find_links(m)
				     : base_fail(m->err, BASE_ERR_NOMEM, "no memory for messages");
	}
	if (status == BASE_OK && m->opts->one_job && m->result->nr_jobs > 1)
		status = merge_refuse_jobs(m);
	if (status == BASE_OK)
		status = merge_find_pairs(m);
	if (status == BASE_OK)
		status = merge_align(m);
	if (status == BASE_OK)
		status = merge_place_tables(m);
	return status == BASE_OK ? merge_write(m, output) : status;
}

enum base_status merge_run(const char *const *path, size_t nr_paths, const char *output,
	const struct merge_options *opts, struct merge_result *ret, struct base_arena **ret_names,
	struct base_err *err)
{
	static const struct merge_options plain = {0};
	struct base_err own;
	struct merge m = {.opts = opts ? opts : &plain, .result = ret, .err = err ? err : &own};
	*ret = (struct merge_result){0};
	*ret_names = NULL;
	if (nr_paths < 2 || nr_paths > MERGE_INPUTS_MAX)
		return base_fail(err, BASE_ERR_USAGE,
			"%zu {trace|traces} (2 to MERGE_INPUTS_MAX, %d)", nr_paths,
			(int)MERGE_INPUTS_MAX);
	m.nr_inputs = (uint32_t)nr_paths;
	m.input = base_alloc(nr_paths * sizeof *m.input);
	m.queue = base_alloc(nr_paths * sizeof *m.queue);
	*ret_names = base_arena_new(0);
	enum base_status status = m.input && m.queue && *ret_names
					  ? merge_merge_run(&m, path, output, *ret_names)
					  : base_fail(err, BASE_ERR_NOMEM,
						    "no memory for %zu {trace|traces}", nr_paths);
	merge_messages_free(m.messages);
	merge_close(&m);
	merge_pairs_free(&m);
	base_free(m.queue);
	base_free(m.link);
	base_free(m.plan);
	base_map_fini(&m.listeners);
	if (status != BASE_OK)
		*ret_names = base_arena_free(*ret_names);
	return status;
}
