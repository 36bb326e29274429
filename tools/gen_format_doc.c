/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gen_format_doc.c - writes the format's page and the schema of a dumped record from the tables and
 * from the constants in layout.h, so that neither can say something else than the code does.
 * `layout` is what is committed as doc/format.md, `md` the same with all kinds, which the build
 * makes and installs, as it does `schema` (dump.schema.json).
 */
#include "trace/columns.h"
#include "trace/layout.h"

#include <stdio.h>

static void print_layout(void)
{
	printf("<!-- Made by tools/gen_format_doc.c: do not edit. -->\n"
	       "# The .lpt format, version %d\n"
	       "\n"
	       "This text is normative. All numbers are little endian. `u8`, `u32`, `u64` are "
	       "unsigned "
	       "of that many bits. Other types are:\n"
	       "\n"
	       "- *uvarint*: 7 bits a byte, lowest first, bit 7 set in all bytes but the last; at "
	       "most "
	       "10 bytes, below 2^64.\n"
	       "  It is never longer than needed: its last byte is not 0 unless it is the only "
	       "one.\n"
	       "- *svarint*: the uvarint of `(v << 1) ^ (v >> 63)`\n"
	       "- *short text*: u8 length, then that many bytes\n"
	       "- *hash*: XXH64 with seed 0 unless said otherwise\n"
	       "\n"
	       "    | header | chunk | chunk | ... | footer | tail |\n"
	       "\n"
	       "Every byte lies under exactly one hash (the tail's own numbers are checked against "
	       "the "
	       "file's size and against the footer's hash).\n"
	       "\n",
		(int)TRACE_VERSION);
	printf("## Header\n"
	       "\n"
	       "| offset | type | what |\n"
	       "|---|---|---|\n"
	       "| 0 | 8 bytes | `" TRACE_MAGIC "` |\n"
	       "| 8 | u32 | version; a reader refuses one that is larger than its own. Offsets 0 "
	       "to 15 mean "
	       "the same in all versions |\n"
	       "| 12 | u32 | bytes of the whole header, at most %d |\n"
	       "| 16 | u32 | flags; readers ignore bits that they do not know. Bit 0: synthetic. "
	       "Bit 1: of the whole system, every thread's switches and wakes are there. Bit 2: "
	       "and "
	       "the kernel's doings. Bit 3: made of several recordings. Bit 4: recorded until the "
	       "last process had ended (`--wait-all`), which is where the path ends |\n"
	       "| 20 | u32 | processors of the machine |\n"
	       "| 24 | u64 | CLOCK_MONOTONIC_RAW at time 0, in ns |\n"
	       "| 32 | u64 | wall time then, in ns since 1970 |\n"
	       "| 40 | u64 | ticks a second of the recorder's clock; 0: none |\n"
	       "| 48 | 3 x u32 | bytes of host, command, tool; at most %d each |\n"
	       "| 60 | u32 | bytes of the schema block |\n"
	       "| %d | bytes | host, command, tool (UTF-8, no zero bytes), the schema block |\n"
	       "| end - 8 | u64 | hash of all before |\n"
	       "\n",
		(int)TRACE_HEADER_MAX_BYTES, (int)TRACE_HEADER_TEXT_MAX,
		(int)TRACE_HEADER_FIXED_BYTES);
	printf("### Schema block\n"
	       "\n"
	       "What the writer knew: a reader can name and skip kinds that came after it. A "
	       "reader "
	       "refuses a file in which a kind that it knows has fields of other types.\n"
	       "\n"
	       "1. uvarint number of kinds (at most %d)\n"
	       "2. for each kind, ids ascending: uvarint id (1 to %d), short text name, uvarint "
	       "number of fields (at most %d)\n"
	       "3. after each kind, for each of its fields: u8 type (%d ID, %d U64, %d S64, %d "
	       "TEXT), "
	       "short text name, short text unit\n"
	       "\n",
		(int)TRACE_KINDS_MAX, (int)TRACE_KINDS_MAX - 1, (int)TRACE_FIELDS_MAX,
		(int)TRACE_FIELD_ID, (int)TRACE_FIELD_U64, (int)TRACE_FIELD_S64,
		(int)TRACE_FIELD_TEXT);
	printf("## Chunks\n"
	       "\n"
	       "A chunk belongs to one stream and decodes alone. A stream's chunks are in the "
	       "order "
	       "of time: one's first time is not before the last\n"
	       "of the one before. Stream 0 holds the definitions; a definition stands before "
	       "every "
	       "chunk that mentions its id.\n"
	       "\n"
	       "| offset | type | what |\n"
	       "|---|---|---|\n"
	       "| 0 | u32 | 0x%x (`LPCK`) |\n"
	       "| 4 | u32 | stream, below %d |\n"
	       "| 8 | u32 | records, at least 1; other content: 1 |\n"
	       "| 12 | u32 | bit 0: %d raw, %d one zstd frame. The bits above are the content, at "
	       "most %d: 0 records, 1 a memory stream (`src/memory/stream/stream.h`), 2 records in "
	       "columns "
	       "(since version 2). A reader passes over contents that it does not know |\n"
	       "| 16 | u64 | first record's time in ns; stream 0: 0 |\n"
	       "| 24 | u64 | last record's time in ns; stream 0: 0 |\n"
	       "| 32 | u32 | bytes of the records, at most %d; stream 0: at most %d; in "
	       "columns: at most %d; "
	       "other content: at most "
	       "%d |\n"
	       "| 36 | u32 | bytes as stored: the same when raw, fewer when zstd |\n"
	       "| 40 | u64 | hash of the stored bytes |\n"
	       "| 48 | u64 | hash of bytes 0 to 47 |\n"
	       "| %d | bytes | the records, stored |\n"
	       "\n",
		(unsigned)TRACE_CHUNK_MAGIC, (int)TRACE_STREAM_MAX, (int)TRACE_CODEC_RAW,
		(int)TRACE_CODEC_ZSTD, (int)TRACE_CONTENT_MAX, (int)TRACE_CHUNK_RAW_MAX,
		(int)TRACE_DEFS_CHUNK_RAW_MAX, (int)TRACE_COLUMNS_RAW_MAX,
		(int)TRACE_CONTENT_RAW_MAX, (int)TRACE_CHUNK_HEADER_BYTES);
	printf("### Records\n"
	       "\n"
	       "uvarint kind. Unless the kind is a definition (below %d): uvarint time since the "
	       "record before in this chunk, for the first one since the\n"
	       "chunk's first time, hence 0. Then the fields in the order of the table: ID a "
	       "uvarint "
	       "below 2^32, U64 a uvarint, S64 an svarint,\n"
	       "TEXT a uvarint length and that many bytes. Definitions stand in stream 0 only, all "
	       "others elsewhere only. The encoding is canonical:\n"
	       "there is one for each record.\n"
	       "\n",
		(int)TRACE_FIRST_DATA_KIND);
	printf("### Records in columns\n"
	       "\n"
	       "The same records field by field, never of stream 0: like stands next to like, "
	       "which compresses better.\n"
	       "\n"
	       "1. The head. uvarint number of kinds (1 to %d); the kinds are numbered from 0. "
	       "Each "
	       "kind has: uvarint kind, uvarint number of records\n"
	       "   (at least 1), uvarint bytes of its column of times, uvarint bytes of each "
	       "field's "
	       "column, in the schema block's order.\n"
	       "2. A byte for each record in their order: the number of its kind.\n"
	       "3. The columns, in the order of the head: a value for each record of that kind, in "
	       "their order, encoded as above. A time is since the\n"
	       "   record before in this chunk, of whatever kind.\n"
	       "\n"
	       "Nothing is between these or behind them.\n"
	       "\n",
		(int)TRACE_COLUMNS_KINDS_MAX);
}

static void print_rest_of_layout(void)
{
	printf("## Footer and tail\n"
	       "\n"
	       "u32 0x%x (`LPIX`), u32 number of counters (at most %d), u64 number of chunks. Then "
	       "for each chunk in file order: u64 offset, u64 first\n"
	       "time, u64 last time, u32 stream, u32 records. Then for each counter: short text "
	       "name, "
	       "u64 value. A counter that is not named is 0; one\n"
	       "whose name is not known is ignored.\n"
	       "\n"
	       "The tail is the file's last %d bytes: u64 offset of the footer, u64 bytes of the "
	       "footer, u64 hash of the footer with its offset as the\n"
	       "seed, `" TRACE_TAIL_MAGIC
	       "`. Offset and bytes of the footer and the tail end where "
	       "the file ends.\n"
	       "\n"
	       "## What is damaged or missing\n"
	       "\n"
	       "- Header: the file is refused.\n"
	       "- Footer or tail: the chunks are found from the header on, one behind the other. "
	       "Where there is no whole "
	       "chunk with a right header, the next `LPCK` with one is looked for.\n"
	       "- Chunk: left out as a whole when a hash is wrong; from the record on that does "
	       "not decode, otherwise. "
	       "A chunk whose first time is before its predecessor's last is left out.\n"
	       "- Cut: what whole chunks there are is read.\n"
	       "\n"
	       "Each is counted (`chunks_damaged`, `tail_cut`, `index_rebuilt`). Records are "
	       "merged by "
	       "(time, stream, place in the stream).\n"
	       "\n",
		(unsigned)TRACE_INDEX_MAGIC, (int)TRACE_COUNTERS_MAX, (int)TRACE_TAIL_BYTES);
}

static void print_where_kinds_are(void)
{
	printf("## Kinds and counters\n"
	       "\n"
	       "They stand in the page that the build makes of this one (`build/doc/format.md`, "
	       "`share/doc/longpole/format.md`\n"
	       "of an installed longpole), from the tables `src/trace/records.def` and "
	       "`src/trace/diag.def`. `dump.schema.json` beside it is\n"
	       "the JSON Schema of a line of `longpole dump --json`.\n");
}

static void print_kinds(void)
{
	static const char *const type[] = {"ID", "U64", "S64", "TEXT"};
	unsigned nr;
	const struct trace_kind_desc *k = trace_kind_table(&nr);

	printf("## Kinds\n"
	       "\n"
	       "An ID is a number of the table that its unit names; 0: none. Ids of kinds are for "
	       "ever, and a kind's "
	       "fields never change.\n"
	       "\n"
	       "| id | kind | since | field | type | unit | meaning |\n"
	       "|---|---|---|---|---|---|---|\n");
	for (unsigned i = 0; i < nr; i++, k++) {
		printf("| %u | **%s** | %u | | | | %s |\n", k->kind, k->name, k->since, k->doc);
		for (unsigned f = 0; f < k->nr_fields; f++)
			printf("| | | | %s | %s | %s | %s |\n", k->field[f].name,
				type[k->field[f].type], k->field[f].unit, k->field[f].doc);
	}
	printf("\n"
	       "## Counters\n"
	       "\n"
	       "| name | severity | source | sentence |\n"
	       "|---|---|---|---|\n");
	for (int d = 0; d < TRACE_DIAG_NR; d++) {
		static const char *const severity[] = {"info", "data loss", "error"};
		const struct trace_diag_desc *row = trace_diag_describe((enum trace_diag)d);
		struct base_str sentence = {0};
		base_str_add_sentence(&sentence, row->sentence, "N", false);
		printf("| %s | %s | %s | %s |\n", row->name, severity[row->severity], row->source,
			base_str_text(&sentence));
		base_str_fini(&sentence);
	}
}

static void print_schema_field(const struct trace_field_desc *f)
{
	static const char *const range[] = {
		"\"type\": \"integer\", \"minimum\": 0, \"maximum\": 4294967295",
		"\"type\": \"integer\", \"minimum\": 0, \"maximum\": 18446744073709551615",
		("\"type\": \"integer\", \"minimum\": -9223372036854775808, \"maximum\": "
		 "9223372036854775807"),
		"\"type\": \"string\"",
	};

	printf(",\n      \"%s\": {%s, \"description\": \"%s (%s)\"}", f->name, range[f->type],
		f->doc, f->unit);
	if (f->type != TRACE_FIELD_TEXT)
		printf(",\n      \"%s_text\": {\"type\": \"string\"}", f->name);
}

static void print_schema_kind(const struct trace_kind_desc *k)
{
	bool is_data = k->kind >= TRACE_FIRST_DATA_KIND;

	printf("    {\"description\": \"%s\",\n     \"properties\": {\n      \"kind\": {\"const\": "
	       "\"%s\"}",
		k->doc, k->name);
	if (is_data)
		printf(",\n      \"time_ns\": {\"type\": \"integer\", \"minimum\": 0}"
		       ",\n      \"stream\": {\"type\": \"integer\", \"minimum\": 1}");
	for (unsigned f = 0; f < k->nr_fields; f++)
		print_schema_field(&k->field[f]);
	printf("},\n     \"required\": [\"kind\"%s", is_data ? ", \"time_ns\", \"stream\"" : "");
	for (unsigned f = 0; f < k->nr_fields; f++)
		printf(", \"%s\"", k->field[f].name);
	printf("]}");
}

/* One line of `longpole dump --json`. */
static void print_schema(void)
{
	unsigned nr;
	const struct trace_kind_desc *k = trace_kind_table(&nr);

	printf("{\n  \"$schema\": \"https://json-schema.org/draft/2020-12/schema\",\n"
	       "  \"title\": \"one line of longpole dump --json, format version %d\",\n"
	       "  \"$comment\": \"Made by tools/gen_format_doc.c: do not edit. Keys are only "
	       "ever "
	       "added.\",\n"
	       "  \"type\": \"object\",\n  \"required\": [\"kind\"],\n  \"oneOf\": [\n",
		(int)TRACE_VERSION);
	for (unsigned i = 0; i < nr; i++) {
		print_schema_kind(&k[i]);
		printf(i + 1 < nr ? ",\n" : "\n");
	}
	printf("  ]\n}\n");
}

int main(int argc, char **argv)
{
	if (argc == 2 && !strcmp(argv[1], "layout")) {
		print_layout();
		print_rest_of_layout();
		print_where_kinds_are();
		return 0;
	}
	if (argc == 2 && !strcmp(argv[1], "md")) {
		print_layout();
		print_rest_of_layout();
		print_kinds();
		return 0;
	}
	if (argc == 2 && !strcmp(argv[1], "schema")) {
		print_schema();
		return 0;
	}
	fputs("usage: gen-format-doc layout|md|schema\n", stderr);
	return 2;
}
