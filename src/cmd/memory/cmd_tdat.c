/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_tdat.c - `longpole tdat`: events over time. */
#include "cmd/memory/streams.h"
#include "memory/tdat.h"
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { LINE_MAX_BYTES = 1 << 16, PLOT_ROWS = 10, PLOT_MARGIN = 16 };

static const struct cmd_option option[] = {
	{"bin", 'b', "CLOCKS", NULL, "width of a bin (default 1000; the second operand)"},
	{"processors", 'P', "N", NULL,
		"give rates for one of N processors, too (the third operand)"},
	{"where", 'w', "FIELD=VALUE", NULL,
		"count only records whose field FIELD (the clock is 1) is VALUE"},
	{"weight", 0, "FIELD", NULL, "add that field's value instead of 1"},
	{"time-file", 'o', "FILE", "@file", "write the number of events in each bin to FILE"},
	{"csv", 0, NULL, NULL, "print the bins as CSV instead of text"},
	{"svg", 0, "FILE", "@file", "write a picture to FILE"},
};

const struct cmd_details cmd_details_tdat = {
	.usage = "[OPTIONS] EVENTS [BINS] [CLOCKS [N]]",
	.about = "Time distribution analysis: puts the events of an event trace into bins and says "
		 "how their rate varies: extremes, deviation, density and distribution function, "
		 "with a plot. An event trace comes from 'longpole ciat --events', 'longpole cdat "
		 "--general' or --detailed, or is any text whose lines begin with a clock. The "
		 "bins' numbers of events go to the file BINS.",
	.option = option,
	.nr_options = BASE_COUNT(option),
	.example = {"longpole tdat events 1000 4 > events.freq",
		"longpole tdat events events.time 1000 4 > events.freq",
		"longpole tdat --where=2=1 --svg=raw.svg events 500"},
};

/* The seed's `tdat EVENTS BINS CLOCKS N`: the second operand is a file, not a number. */
static bool names_bins(const struct cmd *c)
{
	return c->nr_operands > 1 && c->operand[1][strspn(c->operand[1], "-+0123456789")];
}

static bool tdat_options(struct cmd *c, struct memory_tdat_options *o)
{
	uint64_t processors = 0, weight = 0;
	const char *where = cmd_value(c, "where"), *end;
	*o = (struct memory_tdat_options){.bin_clocks = 1000};
	if (!cmd_value_count(c, "bin", &o->bin_clocks) ||
		!cmd_value_count(c, "processors", &processors) ||
		!cmd_value_count(c, "weight", &weight))
		return false;
	uint64_t *const positional[] = {&o->bin_clocks, &processors};
	size_t first = names_bins(c) ? 2 : 1;
	if (c->nr_operands > first + BASE_COUNT(positional)) {
		cmd_usage(c, "'%s' is one operand too many", c->operand[c->nr_operands - 1]);
		return false;
	}
	for (size_t i = first; i < c->nr_operands; i++) {
		char *stop;
		errno = 0;
		*positional[i - first] = strtoull(c->operand[i], &stop, 10);
		if (errno || *stop || stop == c->operand[i] || c->operand[i][0] == '-') {
			cmd_usage(c, "'%s' is not a number", c->operand[i]);
			return false;
		}
	}
	o->nr_processors = processors > 1 << 20 ? 1 << 20 : (uint32_t)processors;
	o->weight_field = weight > UINT16_MAX ? UINT16_MAX : (unsigned)weight;
	if (where) {
		char *stop;
		unsigned long field = strtoul(where, &stop, 10);
		o->field = field > UINT16_MAX ? UINT16_MAX : (unsigned)field;
		end = stop;
		if (*end == '=' && field) {
			o->value = strtoll(end + 1, &stop, 10);
			if (stop != end + 1 && !*stop)
				return true;
		}
		cmd_usage(c, "--where=%s: a field's number and a value, as 2=1", where);
		return false;
	}
	return true;
}

/* Lines of a file into the analysis. */
static int read_events(struct cmd *c, const char *path, struct memory_tdat *t)
{
	bool is_stdin = !strcmp(path, "-");
	FILE *f = is_stdin ? stdin : fopen(path, "re");
	char *line = base_alloc(LINE_MAX_BYTES);
	enum base_status s = BASE_OK;
	if (!f || !line)
		s = base_fail_errno(&c->err, line ? errno : ENOMEM, "cannot read %s", path);
	while (s == BASE_OK && f && line && fgets(line, LINE_MAX_BYTES, f)) {
		size_t length = strlen(line);
		bool whole = length && line[length - 1] == '\n';
		s = memory_tdat_line(t, line, length - whole, &c->err);
		for (int ch = 0; !whole && length == LINE_MAX_BYTES - 1 && ch != '\n' && ch != EOF;)
			ch = fgetc(f);
	}
	if (s == BASE_OK && ferror(f))
		s = base_fail_errno(&c->err, errno, "cannot read %s", path);
	if (f && !is_stdin)
		(void)fclose(f);
	base_free(line);
	return s == BASE_OK ? CMD_OK
			    : cmd_fail(c, base_cause(&c->err, s, "while reading %s", path));
}

static void add_caution(struct base_str *out, const struct memory_tdat_result *r)
{
	uint64_t rest = r->nr_records ? r->last_record_clock % r->bin_clocks + 1 : r->bin_clocks;
	if (rest < r->bin_clocks && r->nr_bins > 1)
		base_str_addf(out,
			"\nThe last bin counts as full, but the last record came after %" PRIu64
			" of its %" PRIu64 " {clock|clocks}%s.\n",
			rest, r->bin_clocks,
			r->least_at + 1 == r->nr_bins ? "; it is the bin with the fewest events"
						      : "");
	if (r->bad_records) {
		base_str_add_counted(out,
			"\nCaution: %s {line was no such record|lines were no such records} and "
			"left out ",
			r->bad_records);
		base_str_addf(out, "(first: line %" PRIu64 ").\n", r->first_bad_record);
	}
}

static void cmd_tdat_add_text(
	struct base_str *out, struct cmd *c, const struct memory_tdat_result *r)
{
	if (!r->nr_events) {
		base_str_add(out, "There are no events: nothing is distributed over time.\n");
		add_caution(out, r);
		return;
	}
	base_str_add_counted(out, "%s {event|events}", r->nr_events);
	base_str_addf(out,
		": %.4g a clock on average, from %.4g to %.4g in bins of %" PRIu64
		" {clock|clocks}; the standard deviation is %.0f%% of the mean.\n\n",
		r->rate, r->least_rate, r->most_rate, r->bin_clocks,
		r->mean > 0 ? 100 * r->deviation / r->mean : 0);
	if (r->nr_processors > 1)
		base_str_addf(out, "  A processor of %u: %.4g events a clock\n", r->nr_processors,
			r->rate / r->nr_processors);
	base_str_addf(out,
		"  Bins %zu, events a bin: mean %.4g, deviation %.4g, least %" PRIu64
		" (first at clock %" PRIu64 "), most %" PRIu64 " (at %" PRIu64 ")\n\n",
		r->nr_bins, r->mean, r->deviation, r->least, r->least_at * r->bin_clocks, r->most,
		r->most_at * r->bin_clocks);
	unsigned columns = c->term.columns > PLOT_MARGIN + 20 ? c->term.columns - PLOT_MARGIN : 64;
	if (r->nr_bins)
		memory_tdat_plot(out, r, columns, PLOT_ROWS, c->term.utf8);
	base_str_add(out, "\n  events a bin             density  distribution\n");
	for (size_t i = 0; i < r->nr_classes; i++) {
		if (r->class[i].density <= 0)
			continue;
		base_str_addf(out, "  %9" PRIu64 " to %9" PRIu64 " %9.4f %13.4f\n",
			r->class[i].from, r->class[i].to, r->class[i].density,
			r->class[i].distribution);
	}
	add_caution(out, r);
}

static int cmd_tdat_write_files(struct cmd *c, const struct memory_tdat_result *r)
{
	struct cmd_out bins, picture;
	bool named = names_bins(c) && !cmd_given(c, "time-file");
	if (!(named ? cmd_out_open_path(c, c->operand[1], &bins)
		    : cmd_out_open(c, "time-file", &bins)))
		return cmd_exit_of(c->err.status);
	if (bins.file)
		memory_tdat_bins(&bins.pending, r, ' ');
	int status = cmd_out_close(c, &bins);
	if (status != CMD_OK)
		return status;
	if (!cmd_out_open(c, "svg", &picture))
		return cmd_exit_of(c->err.status);
	if (picture.file)
		memory_tdat_svg(&picture.pending, r, c->operand[0]);
	return cmd_out_close(c, &picture);
}

static int cmd_tdat_answer(struct cmd *c, const struct memory_tdat_result *r)
{
	struct base_str text = {0};
	if (cmd_given(c, "json"))
		return cmd_write_json(
			c, json_pack("{s:s, s:s, s:s, s:o}", "schema", "longpole/tdat/1", "tool",
				   "longpole " LONGPOLE_VERSION, "trace", c->operand[0], "result",
				   memory_tdat_json(r)));
	if (cmd_given(c, "csv")) {
		memory_tdat_bins(&text, r, ',');
		return cmd_write(c, &text);
	}
	cmd_tdat_add_text(&text, c, r);
	return cmd_write_prose(c, &text);
}

int cmd_run_tdat(struct cmd *c)
{
	struct memory_tdat_options o;
	struct memory_tdat *t = NULL;
	const struct memory_tdat_result *r = NULL;
	if (!c->nr_operands || c->nr_operands > 4)
		return cmd_usage(c, "give an event trace, and perhaps a bin's width and the number "
				    "of processors");
	if (!tdat_options(c, &o))
		return CMD_USAGE;
	enum base_status s = memory_tdat_new(&o, &t, &c->err);
	int status = s == BASE_OK ? read_events(c, c->operand[0], t) : cmd_fail(c, s);
	if (status == CMD_OK) {
		s = memory_tdat_finish(t, &r, &c->err);
		status = s == BASE_OK ? cmd_tdat_write_files(c, r)
				      : cmd_fail(c, base_cause(&c->err, s, "while reading %s",
							    c->operand[0]));
	}
	if (status == CMD_OK)
		status = cmd_tdat_answer(c, r);
	memory_tdat_free(t);
	return status;
}
