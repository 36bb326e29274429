/* SPDX-License-Identifier: Apache-2.0 */
/* streams.c - memory streams for ciat and cdat. */
#include "cmd/memory/streams.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LIST_LIMIT_BYTES = 1 << 20, OUT_CHUNK_BYTES = 1 << 16 };

bool cmd_value_real(struct cmd *c, const char *option, double least, double *ret)
{
	const char *text = cmd_value(c, option);
	if (!text)
		return true;
	char *end;
	double v = strtod(text, &end);
	if (end == text || *end || !(v >= least) || isinf(v)) {
		cmd_usage(c, "--%s=%s: a number of at least %g", option, text, least);
		return false;
	}
	*ret = v;
	return true;
}

/* ---- options --------------------------------------------------------------------------------- */

static bool streams_small_count(struct cmd *c, const char *option, uint64_t most, uint64_t *ret)
{
	if (!cmd_value_count(c, option, ret))
		return false;
	if (*ret <= most)
		return true;
	cmd_usage(c, "--%s: at most %llu", option, (unsigned long long)most);
	return false;
}

/* An option that would change nothing is a mistake. */
static bool order_options_fit(struct cmd *c)
{
	static const struct {
		const char *option, *with;
	} pair[] = {{"affinity", "processors"}, {"rr-interleaving", "processors"},
		{"keep-slices", "processors"}, {"slice", "processors"},
		{"buffered-io", "handle-io"}, {"asynch-io", "handle-io"}, {"dma-bw", "handle-io"},
		{"disk-latency", "handle-io"}};
	for (size_t i = 0; i < BASE_COUNT(pair); i++)
		if (cmd_given(c, pair[i].option) && !cmd_given(c, pair[i].with)) {
			cmd_usage(c, "--%s goes with --%s; without it, it would change nothing",
				pair[i].option, pair[i].with);
			return false;
		}
	return true;
}

static bool order_options(struct cmd *c, struct memory_order_options *o)
{
	uint64_t processors = 0;
	const char *how = cmd_value(c, "order");
	*o = (struct memory_order_options){.disk_latency_ms = -1};
	if (!streams_small_count(c, "processors", MEMORY_THREADS_MAX, &processors) ||
		!streams_small_count(c, "slice", UINT32_MAX, &o->slice_instructions) ||
		!cmd_value_real(c, "dma-bw", 1e-6, &o->dma_mb_per_s) ||
		!cmd_value_real(c, "disk-latency", 0, &o->disk_latency_ms) ||
		!cmd_value_real(c, "ipc", 1e-6, &o->ipc) ||
		!cmd_value_real(c, "mhz", 1e-6, &o->processor_mhz))
		return false;
	o->nr_processors = (uint32_t)processors;
	o->mode = cmd_given(c, "rr-interleaving") ? MEMORY_ORDER_ROUND_ROBIN
		  : cmd_given(c, "processors")    ? MEMORY_ORDER_SLICES
		  : how && !strcmp(how, "time")   ? MEMORY_ORDER_TIME
		  : how                           ? MEMORY_ORDER_PSEUDO
						  : MEMORY_ORDER_DEFAULT;
	o->starts_parallel = cmd_given(c, "parallel");
	o->affinity = cmd_given(c, "affinity");
	o->keep_long_slices = cmd_given(c, "keep-slices");
	o->handle_io = cmd_given(c, "handle-io");
	o->buffered_io = cmd_given(c, "buffered-io");
	o->asynch_io = cmd_given(c, "asynch-io");
	return order_options_fit(c);
}

/* ---- opening --------------------------------------------------------------------------------- */

/* The lines of a list file, without blanks around them; the text stays in *ret_text. Gives their
 * number, of which the first `max` are in name[]. */
static size_t streams_read_list(
	struct cmd *c, const char *path, char **ret_text, const char **name, size_t max)
{
	size_t nr = 0;
	char *rest = NULL, *text = cmd_read_file(c, path, LIST_LIMIT_BYTES);
	*ret_text = text;
	for (char *line = text ? strtok_r(text, "\r\n", &rest) : NULL; line;
		line = strtok_r(NULL, "\r\n", &rest)) {
		line += strspn(line, " \t");
		for (size_t n = strlen(line); n && strchr(" \t", line[n - 1]); n--)
			line[n - 1] = 0;
		if (!*line)
			continue;
		if (nr < max)
			name[nr] = line;
		nr++;
	}
	return nr;
}

/* The traces that an option with a list, or words, mean. */
static int open_some(struct cmd *c, const char *list_option, const char *const *words,
	size_t nr_words, struct memory_source **ret)
{
	const char *list = cmd_value(c, list_option), *name[MEMORY_THREADS_MAX];
	char *text = NULL;
	size_t nr = nr_words;
	if (list) {
		nr = streams_read_list(c, list, &text, name, MEMORY_THREADS_MAX);
		if (!text)
			return cmd_exit_of(c->err.status);
		if (!nr) {
			base_free(text);
			return cmd_usage(c, "%s lists no trace", list);
		}
	} else {
		for (size_t i = 0; i < nr_words && i < MEMORY_THREADS_MAX; i++)
			name[i] = words[i];
	}
	uint64_t process = 0; /* call records are of one process anyway */
	const char *chosen = cmd_value(c, "process");
	if (chosen && !strcmp(chosen, "all"))
		process = strcmp(list_option, "trace-list") ? 0 : MEMORY_PROCESSES_ALL;
	else if (!strcmp(list_option, "trace-list") && !cmd_value_count(c, "process", &process)) {
		base_free(text);
		return CMD_USAGE;
	}
	for (size_t i = 0; list && i < nr && i < MEMORY_THREADS_MAX; i++)
		cmd_check_trace(c, name[i]);
	enum base_status s =
		nr > MEMORY_THREADS_MAX
			? base_fail(&c->err, BASE_ERR_LIMIT, "%zu {trace|traces} are too many", nr)
			: memory_source_open_process(
				  cmd_value(c, "format"), name, nr, process, ret, &c->err);
	base_free(text);
	return s == BASE_OK ? CMD_OK : cmd_fail(c, s);
}

int cmd_streams_open_source(struct cmd *c, size_t last_operands, struct memory_source **ret)
{
	size_t nr = c->nr_operands > last_operands ? c->nr_operands - last_operands : 0;
	*ret = NULL;
	if (!nr == !cmd_given(c, "trace-list"))
		return cmd_usage(c, "give the traces, or --trace-list");
	return open_some(c, "trace-list", (const char *const *)c->operand, nr, ret);
}

/* A path that is no file, and stands for the files PATH.0, PATH.1 ... */
static bool is_stem(const char *path)
{
	struct base_str first = {0};
	base_str_addf(&first, "%s.0", path);
	bool is = !first.failed && access(path, F_OK) != 0 &&
		  access(base_str_text(&first), F_OK) == 0;
	base_str_fini(&first);
	return is;
}

/* The seed's `ciat calls_file.p trace_file.p`: two stems are two recordings of one program, of
 * which the first has the call records. */
static bool are_calls_and_traces(const struct cmd *c, size_t nr)
{
	return nr == 2 && !cmd_streams_are_live(c) && !cmd_given(c, "call-list") &&
	       is_stem(c->operand[0]) && is_stem(c->operand[1]);
}

int cmd_streams_open(
	struct cmd *c, size_t last_operands, uint32_t max_threads, struct cmd_streams *ret)
{
	struct memory_order_options options;
	const char *calls = cmd_value(c, "calls");
	size_t nr = c->nr_operands > last_operands ? c->nr_operands - last_operands : 0;
	*ret = (struct cmd_streams){.is_program = cmd_streams_are_live(c)};
	if (ret->is_program && cmd_given(c, "process"))
		return cmd_usage(c, "--process chooses from a recording: record the program first");
	if (!order_options(c, &options))
		return CMD_USAGE;
	ret->name = nr ? c->operand[0] : cmd_value(c, "trace-list");
	ret->word = c->operand;
	ret->nr_words = nr;
	if (!calls && are_calls_and_traces(c, nr)) {
		calls = c->operand[0];
		c->operand++;
		c->nr_operands--;
		ret->name = c->operand[0];
		ret->word = c->operand;
		ret->nr_words = nr - 1;
	}
	int status = ret->is_program ? cmd_streams_open_live(c, max_threads, ret)
				     : cmd_streams_open_source(c, last_operands, &ret->source);
	if (status == CMD_OK && (calls || cmd_given(c, "call-list")))
		status = open_some(c, "call-list", &calls, calls != NULL, &ret->calls);
	if (status != CMD_OK) {
		cmd_streams_close(ret);
		return status;
	}
	enum base_status s =
		memory_order_new(ret->source, ret->calls, &options, &ret->order, &c->err);
	if (s == BASE_OK)
		return CMD_OK;
	cmd_streams_close(ret);
	return cmd_fail(c, s);
}

void cmd_streams_close(struct cmd_streams *s)
{
	memory_order_free(s->order);
	memory_source_close(s->source);
	memory_source_close(s->calls);
	*s = (struct cmd_streams){0};
}

uint32_t cmd_streams_threads(const struct cmd_streams *s)
{
	uint32_t nr = s->live ? memory_live_threads(s->live) : memory_order_threads(s->order);
	return nr ? nr : 1;
}

int cmd_streams_run(struct cmd *c, struct cmd_streams *s, cmd_streams_add *add, void *ctx)
{
	if (s->live)
		return cmd_streams_run_live(c, s, add, ctx);
	enum base_status status = BASE_OK;
	cmd_progress_reset(c);
	for (uint64_t batch = 0; status == BASE_OK; batch++) {
		struct memory_steps steps;
		status = memory_order_next(s->order, &steps, &c->err);
		if (status != BASE_OK)
			break;
		s->nr_steps += steps.nr;
		status = add(ctx, &steps, &c->err);
		if (!(batch % 256))
			cmd_progress_show(c, "analysing", s->nr_steps, 0, "steps");
	}
	cmd_progress_clear(c);
	if (status == BASE_END)
		return CMD_OK;
	return cmd_fail(c, base_cause(&c->err, status, "while analysing %s", s->name));
}

static void live_caveats(const struct cmd_streams *s, struct base_str *out)
{
	base_str_add(out, "\nHow it knows: the program was watched while it ran, for ");
	base_str_add_ns(out, s->elapsed_ns);
	base_str_add(out, ", of which its threads together waited ");
	base_str_add_ns(out, s->wait_ns);
	base_str_addf(out, " for the analysis; %s.\n", memory_order_sentence(s->order));
	if (memory_live_late(s->live))
		base_str_addf(out,
			"Caution: %llu {time|times} a running thread had told nothing while others "
			"told "
			"much, and they went before it.\n",
			(unsigned long long)memory_live_late(s->live));
	if (memory_live_others(s->live))
		base_str_addf(out,
			"Caution: left out: %llu {chunk|chunks} of other processes than the first, "
			"after a fork or an exec: record a trace to see them.\n",
			(unsigned long long)memory_live_others(s->live));
	if (s->lost_chunks)
		base_str_addf(out, "Caution: %llu {chunk was|chunks were} lost: no memory.\n",
			(unsigned long long)s->lost_chunks);
}

void cmd_streams_caveats(const struct cmd_streams *s, struct base_str *out)
{
	if (s->live)
		live_caveats(s, out);
	else
		base_str_addf(out, "\nHow it knows: from a trace of format %s; %s.\n",
			s->source->info.format, memory_order_sentence(s->order));
	cmd_streams_source_caveats(s, out);
}

void cmd_streams_source_caveats(const struct cmd_streams *s, struct base_str *out)
{
	if (s->source->info.unseen[0])
		base_str_addf(out, "Not seen: %s.\n", s->source->info.unseen);
	for (unsigned d = 0; d < MEMORY_DIAG_NR; d++) {
		uint64_t n = s->source->diags.count[d];
		if (!n)
			continue;
		base_str_add(out, "Caution: ");
		base_str_add_counted(out, memory_diag_sentence(d), n);
		if (s->source->diags.first_record[d])
			base_str_addf(out, " (first: thread %u, record %llu)",
				s->source->diags.first_thread[d],
				(unsigned long long)s->source->diags.first_record[d]);
		base_str_add(out, ".\n");
	}
}

void cmd_streams_again(struct base_str *out, const struct cmd_streams *s)
{
	if (s->recorder)
		base_str_addf(out, "--recorder=%s ", s->recorder);
	base_str_add(out, s->is_program ? "--" : s->nr_words ? "" : "--trace-list ");
	if (!s->nr_words)
		report_shell_word(out, s->name);
	for (size_t i = 0; i < s->nr_words; i++) {
		base_str_add(out, i || s->is_program ? " " : "");
		report_shell_word(out, s->word[i]);
	}
	base_str_add(out, "\n");
}

json_t *cmd_streams_json(const struct cmd_streams *s)
{
	json_t *list = json_array();
	for (unsigned d = 0; d < MEMORY_DIAG_NR; d++)
		if (s->source->diags.count[d])
			json_array_append_new(
				list, json_pack("{s:s, s:I, s:I, s:I}", "name", memory_diag_name(d),
					      "count", (json_int_t)s->source->diags.count[d],
					      "first_record",
					      (json_int_t)s->source->diags.first_record[d],
					      "first_thread",
					      (json_int_t)s->source->diags.first_thread[d]));
	json_t *processes = json_array();
	for (size_t i = 0; i < s->source->info.nr_processes; i++) {
		const struct memory_process *p = &s->source->info.process[i];
		json_array_append_new(processes,
			json_pack("{s:I, s:I, s:I, s:I, s:b}", "process", (json_int_t)p->number,
				"pid", (json_int_t)p->pid, "threads", (json_int_t)p->nr_threads,
				"stream_bytes", (json_int_t)p->stream_bytes, "shown", p->shown));
	}
	return json_pack("{s:s, s:s, s:s, s:s, s:o, s:o}", "trace", s->name, "format",
		s->source->info.format, "order", memory_order_sentence(s->order), "not_seen",
		s->source->info.unseen, "diagnostics", list, "processes", processes);
}

/* ---- files beside the answer ----------------------------------------------------------------- */

bool cmd_out_open(struct cmd *c, const char *option, struct cmd_out *ret)
{
	*ret = (struct cmd_out){0};
	return !cmd_given(c, option) || cmd_out_open_path(c, cmd_value(c, option), ret);
}

bool cmd_out_open_path(struct cmd *c, const char *path, struct cmd_out *ret)
{
	*ret = (struct cmd_out){.path = path};
	ret->file = base_output_stream(ret->path, BASE_OUTPUT_PRIVATE, &c->err);
	if (!ret->file)
		cmd_fail(c, c->err.status);
	return ret->file != NULL;
}

static void out_write(struct cmd_out *o)
{
	o->failed |= o->pending.failed || fwrite(base_str_text(&o->pending), 1, o->pending.length,
						  o->file) != o->pending.length;
	base_str_reset(&o->pending);
}

void cmd_out_add(struct cmd_out *o)
{
	if (o->pending.length >= OUT_CHUNK_BYTES)
		out_write(o);
}

int cmd_out_close(struct cmd *c, struct cmd_out *o)
{
	if (!o->file)
		return CMD_OK;
	out_write(o);
	o->failed |= fclose(o->file) != 0;
	base_str_fini(&o->pending);
	o->file = NULL;
	if (!o->failed)
		return CMD_OK;
	return cmd_fail(c, base_fail_errno(&c->err, errno ? errno : EIO, "writing %s", o->path));
}
