/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_dump.c - `longpole dump`: the trace's records, as they are. */
#include "cmd/cmd.h"

#include <errno.h>
#include <string.h>

enum { KINDS_MAX = 64, FLUSH_BYTES = 1 << 16, KIND_LIMIT = 256 };

static const struct cmd_option option[] = {
	{"kind", 'k', "KIND", NULL, "only records of this kind (may be given again)"},
	{"stream", 's', "ID", NULL, "only this stream's records"},
	{"from", 0, "TIME", NULL, "only records at TIME (as 1.5s, 20ms, 300us) and later"},
	{"to", 0, "TIME", NULL, "only records before TIME"},
	{"definitions", 'd', NULL, NULL,
		"also what the trace defines: processes, sites, objects, names"},
	{"stats", 0, NULL, NULL,
		"no records: how many of each kind, and how many bytes each needs"},
	{"json", 0, NULL, NULL, "one JSON object a line (with --stats: one document)"},
};

const struct cmd_details cmd_details_dump = {
	.usage = "[OPTIONS] [TRACE]",
	.about = "Prints records in the order of time: time, stream, kind, and the fields with "
		 "their names resolved. Kinds are those of share/doc/longpole/format.md.",
	.option = option,
	.nr_options = BASE_COUNT(option),
	.example = {"longpole dump --kind=lock_wait server.lpt", "longpole dump --stats server.lpt",
		"longpole dump --json --from=1s --to=1.1s server.lpt | jq -r .kind | sort | uniq "
		"-c"},
};

struct kind_stats {
	uint64_t nr, bytes;
};
struct dump {
	struct cmd *c;
	struct trace_reader *reader;
	const char *path;
	bool wanted[KIND_LIMIT], all_kinds;
	bool one_stream, json;
	uint64_t stream;
	struct trace_codec_state *codec; /* by stream: what the last record's time was */
	struct kind_stats kind[KIND_LIMIT];
	uint8_t *coded; /* TRACE_CHUNK_RAW_MAX: one record */
};

static const char *next_kind(const void *ctx, size_t i)
{
	unsigned nr;
	const struct trace_kind_desc *table = trace_kind_table(&nr);
	(void)ctx;
	return i < nr ? table[i].name : NULL;
}

static bool parse_kinds(struct dump *d)
{
	const char *given[KINDS_MAX];
	size_t nr_given = cmd_values(d->c, "kind", given, KINDS_MAX);
	unsigned nr;
	const struct trace_kind_desc *table = trace_kind_table(&nr);
	d->all_kinds = !nr_given;
	for (size_t i = 0; i < nr_given; i++) {
		unsigned k = 0;
		while (k < nr && strcmp(table[k].name, given[i]) != 0)
			k++;
		if (k == nr) {
			const char *near = base_nearest(given[i], next_kind, NULL);
			cmd_usage(d->c, "--kind: no kind '%s'%s%s%s", given[i],
				near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
			return false;
		}
		if (table[k].kind < KIND_LIMIT)
			d->wanted[table[k].kind] = true;
	}
	return true;
}

static bool cmd_dump_is_wanted(const struct dump *d, const struct trace_record *r)
{
	return (d->all_kinds || (r->kind < KIND_LIMIT && d->wanted[r->kind])) &&
	       (!d->one_stream || r->stream == d->stream);
}

static int cmd_dump_flush(struct cmd *c, struct base_str *out)
{
	size_t length = out->length;
	cmd_pager_begin(c);
	if (out->failed)
		return cmd_fail(
			c, base_fail(&c->err, BASE_ERR_NOMEM, "out of memory for the text"));
	if (fwrite(base_str_text(out), 1, length, stdout) != length)
		return cmd_fail(c, base_fail_errno(&c->err, errno, "standard output: writing"));
	base_str_reset(out);
	return CMD_OK;
}

static void print_record(struct dump *d, struct base_str *out, const struct trace_record *r)
{
	const struct trace_defs *defs = trace_reader_defs(d->reader);
	if (d->json)
		trace_print_json(out, defs, r);
	else
		trace_print_text(out, defs, r);
	if (!out->length || out->buf[out->length - 1] != '\n')
		base_str_add(out, "\n");
}

/* The coded size, before compression: that is what a kind's fields cost. */
static void count_record(struct dump *d, const struct trace_record *r)
{
	uint8_t *bytes = d->coded;
	if (r->kind >= KIND_LIMIT)
		return;
	d->kind[r->kind].nr++;
	if (r->stream > trace_reader_defs(d->reader)->nr_streams)
		return;
	const uint8_t *end =
		trace_encode(bytes, bytes + TRACE_CHUNK_RAW_MAX, &d->codec[r->stream], r);
	if (end)
		d->kind[r->kind].bytes += (uint64_t)(end - bytes);
}

/* Every wanted record goes to print_record() or count_record(). */
static int cmd_dump_read_all(struct dump *d, bool stats)
{
	struct base_str out = {0};
	int exit_status = CMD_OK;
	while (exit_status == CMD_OK) {
		struct trace_batch b;
		enum base_status s = trace_reader_next(d->reader, &b, &d->c->err);
		if (s == BASE_END)
			break;
		if (s != BASE_OK) {
			exit_status = cmd_fail(d->c, s);
			break;
		}
		for (size_t i = 0; exit_status == CMD_OK && i < b.nr; i++) {
			if (!cmd_dump_is_wanted(d, &b.record[i]))
				continue;
			if (stats)
				count_record(d, &b.record[i]);
			else
				print_record(d, &out, &b.record[i]);
			if (out.length > FLUSH_BYTES)
				exit_status = cmd_dump_flush(d->c, &out);
		}
	}
	/* What came before a failure is still worth having. */
	int last = cmd_dump_flush(d->c, &out);
	base_str_fini(&out);
	return exit_status != CMD_OK ? exit_status : last;
}

static void stats_line(struct base_str *out, const char *name, uint64_t nr, uint64_t bytes)
{
	struct base_str n = {0};
	base_str_add_count(&n, nr);
	base_str_addf(out, "%-18s %14s", name, base_str_text(&n));
	base_str_reset(&n);
	base_str_add_size(&n, bytes);
	base_str_addf(
		out, " %11s %11.2f\n", base_str_text(&n), nr ? (double)bytes / (double)nr : 0.0);
	base_str_fini(&n);
}

static int print_stats(struct dump *d)
{
	const struct trace_health *h = trace_reader_health(d->reader);
	struct kind_stats all = {0};
	struct base_str out = {0};
	json_t *kinds = json_array();
	unsigned nr;
	const struct trace_kind_desc *table = trace_kind_table(&nr);
	base_str_addf(&out, "%-18s %14s %11s %11s\n", "kind", "records", "coded", "B/record");
	for (unsigned i = 0; i < nr; i++) {
		const struct kind_stats *k = &d->kind[table[i].kind % KIND_LIMIT];
		if (!k->nr)
			continue;
		stats_line(&out, table[i].name, k->nr, k->bytes);
		json_array_append_new(
			kinds, json_pack("{s:s, s:I, s:I}", "kind", table[i].name, "records",
				       (json_int_t)k->nr, "coded_bytes", (json_int_t)k->bytes));
		all.nr += k->nr;
		all.bytes += k->bytes;
	}
	stats_line(&out, "all", all.nr, all.bytes);
	base_str_add(&out, "file               ");
	base_str_addf(&out, "%14s %8.1f KiB %11.2f\n", "", (double)h->file_bytes / 1024,
		all.nr ? (double)h->file_bytes / (double)all.nr : 0.0);
	if (!d->json) {
		json_decref(kinds);
		return cmd_write(d->c, &out);
	}
	base_str_fini(&out);
	return cmd_write_result(d->c, "longpole/dump-stats/1",
		json_pack("{s:I, s:I, s:I, s:o}", "records", (json_int_t)all.nr, "coded_bytes",
			(json_int_t)all.bytes, "file_bytes", (json_int_t)h->file_bytes, "kinds",
			kinds));
}

int cmd_run_dump(struct cmd *c)
{
	struct dump d = {
		.c = c, .json = cmd_given(c, "json"), .one_stream = cmd_given(c, "stream")};
	bool stats = cmd_given(c, "stats");
	struct trace_reader_options ro = {
		.size = sizeof ro, .with_definitions = stats || cmd_given(c, "definitions")};
	if (!parse_kinds(&d) || !cmd_value_count(c, "stream", &d.stream) ||
		!cmd_value_time(c, "from", &ro.from_ns) || !cmd_value_time(c, "to", &ro.to_ns))
		return CMD_USAGE;
	d.path = cmd_trace_path(c);
	if (!d.path)
		return CMD_USAGE;
	/* Asking for a kind of definition means to see it. */
	for (unsigned k = 0; k < TRACE_process_begin; k++)
		ro.with_definitions |= d.wanted[k];
	enum base_status s = trace_reader_open(d.path, &ro, &d.reader, &c->err);
	if (s != BASE_OK)
		return cmd_fail(c, s);
	d.codec =
		base_alloc(((size_t)trace_reader_defs(d.reader)->nr_streams + 1) * sizeof *d.codec);
	d.coded = base_alloc(TRACE_CHUNK_RAW_MAX);
	int exit_status =
		d.codec && d.coded
			? cmd_dump_read_all(&d, stats)
			: cmd_fail(c, base_fail(&c->err, BASE_ERR_NOMEM, "out of memory"));
	if (exit_status == CMD_OK && stats)
		exit_status = print_stats(&d);
	if (exit_status == CMD_OK && fflush(stdout))
		exit_status =
			cmd_fail(c, base_fail_errno(&c->err, errno, "standard output: writing"));
	cmd_tell_health(c, d.path, trace_reader_health(d.reader));
	trace_reader_close(d.reader);
	base_free(d.codec);
	base_free(d.coded);
	return exit_status;
}
