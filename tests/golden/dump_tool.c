/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dump_tool.c - a trace as text for comparison. `dump_tool text|json FILE` prints the header, all
 * records and what is wrong with the file; a refusal is printed, too. `dump_tool schema` prints the
 * record kinds.
 */
#include "trace/trace.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static void print_health(const struct trace_health *h)
{
	for (int d = 0; d < TRACE_DIAG_NR; d++) {
		if (h->count[d])
			printf("# %s %" PRIu64 "\n", trace_diag_describe((enum trace_diag)d)->name,
				h->count[d]);
	}
	printf("# readable %" PRIu64 " of %" PRIu64 " bytes\n", h->readable_bytes, h->file_bytes);
}

static int dump(const char *path, bool json)
{
	const struct trace_reader_options opts = {.size = sizeof opts, .with_definitions = true};
	struct base_err err = {0};
	struct base_str out = {0};
	struct trace_reader *r;
	struct trace_batch batch;
	enum base_status status = trace_reader_open(path, &opts, &r, &err);

	if (status != BASE_OK) {
		printf("# refused: %s\n", base_status_name(status));
		return 0;
	}
	if (!json) {
		const struct trace_info *i = trace_reader_info(r);
		printf("# host=%s command=%s tool=%s mono=%" PRIu64 " unix=%" PRIu64
		       " tick_hz=%" PRIu64 " processors=%u flags=%u\n",
			i->host, i->command, i->tool, i->origin_mono_ns, i->origin_unix_ns,
			i->tick_hz, i->nr_processors, i->flags);
	}
	while ((status = trace_reader_next(r, &batch, &err)) == BASE_OK) {
		for (size_t i = 0; i < batch.nr; i++) {
			base_str_reset(&out);
			if (json)
				trace_print_json(&out, trace_reader_defs(r), &batch.record[i]);
			else
				trace_print_text(&out, trace_reader_defs(r), &batch.record[i]);
			puts(base_str_text(&out));
		}
	}
	if (!json)
		print_health(trace_reader_health(r));
	base_str_fini(&out);
	trace_reader_close(r);
	return status == BASE_END ? 0 : 1;
}

static int schema(void)
{
	static const char *const type[] = {"ID", "U64", "S64", "TEXT"};
	unsigned nr;
	const struct trace_kind_desc *k = trace_kind_table(&nr);

	for (unsigned i = 0; i < nr; i++) {
		printf("%u %s since=%u", k[i].kind, k[i].name, k[i].since);
		for (unsigned f = 0; f < k[i].nr_fields; f++)
			printf(" %s:%s", k[i].field[f].name, type[k[i].field[f].type]);
		putchar('\n');
	}
	for (int d = 0; d < TRACE_DIAG_NR; d++)
		printf("counter %s\n", trace_diag_describe((enum trace_diag)d)->name);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 2 && !strcmp(argv[1], "schema"))
		return schema();
	if (argc == 3 && (!strcmp(argv[1], "text") || !strcmp(argv[1], "json")))
		return dump(argv[2], argv[1][0] == 'j');
	fputs("usage: dump_tool text|json FILE | dump_tool schema\n", stderr);
	return 2;
}
