/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_merge.c - `longpole merge`: recordings of several machines as one trace. */
#include "cmd/directory.h"

#include "config.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct cmd_option option[] = {
	{"output", 'o', "FILE", "@file", "where to (default: merged.lpt)"},
};

const struct cmd_details cmd_details_merge = {
	.usage = "[OPTIONS] TRACE TRACE... | DIR",
	.about =
		"Puts recordings that were made at the same time, on several machines or on one, "
		"into one trace on one clock, so that the critical path crosses the wire. Clocks "
		"are aligned by what passed between the machines: packets (recordings with "
		"--system --full), and bytes of TCP connections whose two ends were recorded. The "
		"path leads to the end of the first trace's program. Of a directory, the traces of "
		"MPI ranks in it are joined, and it is said which ranks have none.",
	.option = option,
	.nr_options = BASE_COUNT(option),
	.example = {"longpole merge -o both.lpt client.lpt server.lpt && longpole report both.lpt",
		"mpirun -n 64 longpole record -o 'run/app.%r.lpt' ./app; longpole report run"},
};

/* ---- the answer ------------------------------------------------------------------------------ */

static void add_signed_ns(struct base_str *out, int64_t ns)
{
	base_str_add(out, ns < 0 ? "-" : "+");
	base_str_add_ns(out, ns < 0 ? -(uint64_t)ns : (uint64_t)ns);
}

static void add_input(struct base_str *out, const struct merge_result *m, size_t i)
{
	const struct merge_input_result *r = &m->input[i];
	base_str_addf(out, "%3zu  %s: %s\n       ", i + 1, r->host, r->command);
	switch (r->how) {
	case MERGE_HOW_first:
		base_str_add(out, "the trace's clock is its clock");
		break;
	case MERGE_HOW_kernel:
		base_str_addf(out, "the same kernel as %u, hence the same clock; error at most ",
			r->through + 1);
		base_str_add_ns(out, r->error_ns);
		break;
	case MERGE_HOW_pairs:
		base_str_add(out, "clock ");
		add_signed_ns(out, r->offset_ns);
		base_str_addf(out, ", %+.3f ppm%s; error at most ", (double)r->drift_ppb / 1000,
			r->bends ? " on average (it bends)" : "");
		base_str_add_ns(out, r->error_ns);
		base_str_add(out, ", by ");
		base_str_add_counted(out, "%s {packet|packets}, ", r->nr_packets);
		base_str_add_counted(out, "%s {read|reads} of TCP data and ", r->nr_bytes);
		base_str_add_counted(out, "%s {message|messages}", r->nr_messages);
		base_str_addf(out, " of MPI between it and %u", r->through + 1);
		break;
	}
	base_str_add(out, "\n");
}

static bool has_one_kernel(const struct merge_result *m)
{
	for (size_t i = 1; i < m->nr_inputs; i++)
		if (m->input[i].how != MERGE_HOW_kernel)
			return false;
	return true;
}

static double matched_share(const struct merge_result *m)
{
	return (double)m->nr_matched /
	       (double)(m->nr_sent < m->nr_received ? m->nr_received : m->nr_sent);
}

/* A line for each job of which ranks have no trace. */
void cmd_merge_add_missing(struct base_str *out, const struct merge_result *m)
{
	for (uint32_t job = 1; job <= m->nr_jobs; job++) {
		uint32_t nr_ranks = 0;
		for (size_t i = 0; i < m->nr_inputs && !nr_ranks; i++)
			nr_ranks = m->input[i].job == job ? m->input[i].nr_ranks : 0;
		bool *recorded = base_alloc(((size_t)nr_ranks + 1) * sizeof *recorded);
		for (size_t i = 0; recorded && i < m->nr_inputs; i++)
			if (m->input[i].job == job && m->input[i].rank < nr_ranks)
				recorded[m->input[i].rank] = true;
		struct base_str text = {0};
		if (recorded)
			report_missing_ranks(&text, recorded, nr_ranks);
		if (text.length)
			base_str_addf(out, "Beware: %s.\n", base_str_text(&text));
		base_str_fini(&text);
		base_free(recorded);
	}
}

static void add_evidence(struct base_str *out, const struct merge_result *m)
{
	base_str_add(out, "\n");
	if (m->nr_received) {
		base_str_addf(out, "Packets: %.2f %% matched (", 100 * matched_share(m));
		base_str_add_count(out, m->nr_sent);
		base_str_add(out, " seen leaving, ");
		base_str_add_count(out, m->nr_received);
		base_str_add(out, " arriving, of flows seen at both ends).\n");
	}
	base_str_add(out, "Connections between the recordings: ");
	base_str_add_count(out, m->nr_connections);
	base_str_add(out, !m->nr_connections && m->nr_matched && has_one_kernel(m)
				  ? " (recordings of one kernel have both ends of each).\n"
				  : ".\n");
	if (m->nr_unusable)
		base_str_addf(out,
			"Of %llu of them more was read than was written, as far as was recorded: "
			"they "
			"were not used for the clocks.\n",
			(unsigned long long)m->nr_unusable);
	if (m->nr_communicators) {
		base_str_add(out, "MPI: ");
		base_str_add_counted(out,
			"%s communicator{|s} {has|have} ranks in several of the recordings",
			m->nr_communicators);
		base_str_add(out, ".\n");
	}
	cmd_merge_add_missing(out, m);
	if (m->nr_ways_unusable) {
		base_str_add_counted(out,
			"Between %s {pair|pairs} of ranks more messages were received than were "
			"sent, as far as was recorded",
			m->nr_ways_unusable);
		base_str_add(out, ": they were not used for the clocks.\n");
	}
	if (m->clock_contradicted)
		base_str_add(out,
			"Recordings with the same boot id have different clocks, says what "
			"passed between them (a time namespace?): they were aligned.\n");
	if (!m->nr_connections && !m->nr_matched && !m->nr_communicators)
		base_str_add(out,
			"Nothing that joins them was found: each recording has a path of its "
			"own.\n");
}

static int print_text(struct cmd *c, const struct merge_result *m, const char *path)
{
	struct base_str out = {0};
	base_str_addf(&out,
		"Merged %zu {recording|recordings} of %u {machine|machines} into %s: clock error "
		"at most ",
		m->nr_inputs, m->nr_hosts, path);
	base_str_add_ns(&out, m->error_ns);
	base_str_add(&out, " between any two.\n\n");
	for (size_t i = 0; i < m->nr_inputs; i++)
		add_input(&out, m, i);
	add_evidence(&out, m);
	base_str_add(&out,
		"\nThe bounds hold if clocks run evenly (where they visibly do not: if they "
		"differ by at most 500 ppm).\n");
	base_str_addf(&out, "next: longpole report %s\n", path);
	return cmd_write_prose(c, &out);
}

static json_t *input_json(const struct merge_result *m, size_t i)
{
	static const char *const how[] = {
		[MERGE_HOW_first] = "first",
		[MERGE_HOW_kernel] = "same kernel",
		[MERGE_HOW_pairs] = "aligned",
	};
	const struct merge_input_result *r = &m->input[i];
	json_t *json = json_pack(
		"{s:s, s:s, s:s, s:I, s:s, s:I, s:I, s:I, s:I, s:b, s:I, s:I, s:I, s:I}", "path",
		r->path, "host", r->host, "command", r->command, "host_number",
		(json_int_t)r->host_number, "clock", how[r->how], "aligned_with_input",
		(json_int_t)(r->how == MERGE_HOW_first ? 0 : r->through + 1), "offset_ns",
		(json_int_t)r->offset_ns, "drift_ppb", (json_int_t)r->drift_ppb, "error_max_ns",
		(json_int_t)r->error_ns, "bends", r->bends, "packet_pairs",
		(json_int_t)r->nr_packets, "byte_pairs", (json_int_t)r->nr_bytes, "message_pairs",
		(json_int_t)r->nr_messages, "records", (json_int_t)r->nr_records);
	if (r->job) {
		json_object_set_new(json, "rank", json_integer((json_int_t)r->rank));
		json_object_set_new(json, "ranks", json_integer((json_int_t)r->nr_ranks));
		json_object_set_new(json, "job", json_integer((json_int_t)r->job));
	}
	return json;
}

static int cmd_merge_print_json(struct cmd *c, const struct merge_result *m, const char *path)
{
	json_t *inputs = json_array();
	for (size_t i = 0; i < m->nr_inputs; i++)
		json_array_append_new(inputs, input_json(m, i));
	return cmd_write_result(c, "longpole/merge/1",
		json_pack("{s:s, s:I, s:I, s:o, s:{s:I, s:I, s:I}, s:I, s:I, s:I, s:b, s:I}",
			"path", path, "hosts", (json_int_t)m->nr_hosts, "error_max_ns",
			(json_int_t)m->error_ns, "inputs", inputs, "packets", "sent",
			(json_int_t)m->nr_sent, "received", (json_int_t)m->nr_received, "matched",
			(json_int_t)m->nr_matched, "connections", (json_int_t)m->nr_connections,
			"connections_unusable", (json_int_t)m->nr_unusable, "communicators",
			(json_int_t)m->nr_communicators, "clock_contradicted",
			m->clock_contradicted, "records", (json_int_t)m->nr_records));
}

/* ---- the work -------------------------------------------------------------------------------- */

static void cmd_merge_progress(
	void *ctx, const char *what, uint64_t done_records, uint64_t all_records)
{
	cmd_progress_show(ctx, what, done_records, all_records, "records");
}

static bool is_input(struct cmd *c, const struct cmd_join *j)
{
	const char *path = j->output;
	struct stat there, st;
	if (stat(path, &there))
		return false;
	for (size_t i = 0; i < j->nr; i++)
		if (!stat(j->input[i], &st) && st.st_dev == there.st_dev &&
			st.st_ino == there.st_ino) {
			cmd_usage(c, "%s would overwrite what is merged; use -o", path);
			return true;
		}
	return false;
}

/* The trace appears whole or not at all: a name of its own first. */
int cmd_merge_into(struct cmd *c, const struct cmd_join *j)
{
	struct base_str part = {0};
	const struct merge_options o = {.tool = "longpole " LONGPOLE_VERSION " merge",
		.one_job = j->one_job,
		.progress = cmd_merge_progress,
		.progress_ctx = c};
	if (j->nr > MERGE_INPUTS_MAX)
		return cmd_usage(c, "%d traces at most", MERGE_INPUTS_MAX);
	if (is_input(c, j))
		return CMD_USAGE;
	if (!cmd_may_replace(j->output))
		return cmd_usage(c, "%s is no file", j->output);
	struct base_str real = {0};
	enum base_status s = base_output_name(j->output, &real, &c->err);
	base_str_addf(&part, "%s.part", base_str_text(&real));
	if (s == BASE_OK && !part.failed) /* of a run that was killed, or a link */
		unlink(base_str_text(&part));
	if (s == BASE_OK)
		s = part.failed ? base_fail(&c->err, BASE_ERR_NOMEM, "out of memory for a name")
				: merge_run(j->input, j->nr, base_str_text(&part), &o, j->result,
					  j->names, &c->err);
	if (s == BASE_OK && rename(base_str_text(&part), real.buf))
		s = base_fail_errno(&c->err, errno, "%s: renaming", j->output);
	if (s != BASE_OK && real.length)
		unlink(base_str_text(&part));
	base_str_fini(&real);
	base_str_fini(&part);
	cmd_progress_clear(c);
	return s == BASE_OK ? CMD_OK : cmd_fail(c, s);
}

int cmd_run_merge(struct cmd *c)
{
	const char *given = cmd_value(c, "output"), *path = given ? given : "merged.lpt";
	struct merge_result *result = base_alloc(sizeof *result);
	struct base_arena *names = NULL;
	struct cmd_ranks ranks = {0};
	struct cmd_join j = {.input = (const char *const *)c->operand,
		.nr = c->nr_operands,
		.output = path,
		.result = result,
		.names = &names};
	int exit_status = CMD_OK;
	if (!result)
		return cmd_fail(c, base_fail(&c->err, BASE_ERR_NOMEM, "out of memory"));
	if (c->nr_operands == 1 && cmd_is_directory(c->operand[0])) {
		exit_status = cmd_ranks_find(c, c->operand[0], &ranks);
		j.input = (const char *const *)ranks.path;
		j.nr = ranks.nr;
		j.one_job = true;
	} else if (c->nr_operands < 2) {
		exit_status = cmd_usage(c, "give two traces or more, or a directory of them");
	}
	cmd_progress_reset(c);
	if (exit_status == CMD_OK)
		exit_status = cmd_merge_into(c, &j);
	if (exit_status == CMD_OK)
		exit_status = cmd_given(c, "json") ? cmd_merge_print_json(c, result, path)
						   : print_text(c, result, path);
	base_arena_free(names);
	base_free(result);
	cmd_ranks_fini(&ranks);
	return exit_status;
}
