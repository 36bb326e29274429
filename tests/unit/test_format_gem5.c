/* SPDX-License-Identifier: Apache-2.0 */
/* test_format_gem5.c - annotate.bin: bytes made here from the format's layout, not by the encoder;
 * names in every quoting; files cut everywhere; there and back again. */
#include "test.h"

#include <string.h>

#include "format/format.h"
#include "format/gem5.h"
#include "format_memory.h"
#include "trace_file.h"

#define LONGPOLE_DISABLE
#include "longpole/annotate.h"

/* ---- a file by hand -------------------------------------------------------------------------- */

struct file {
	uint8_t bytes[1 << 16];
	size_t nr;
	bool big_endian;
};

static void add(struct file *f, uint64_t v, unsigned nr_bytes)
{
	for (unsigned i = 0; i < nr_bytes; i++)
		f->bytes[f->nr++] = (uint8_t)(v >> 8 * (f->big_endian ? nr_bytes - 1 - i : i));
}

static void header(struct file *f, uint64_t records, uint64_t key_offset, uint32_t key_bytes)
{
	add(f, 0x4D35414E00000101, 8);
	add(f, records, 8);
	add(f, key_offset, 8);
	add(f, key_offset ? key_offset + key_bytes : 0, 8);
	add(f, key_bytes, 4);
	add(f, 0, 4);
}

static void record(struct file *f, uint64_t tick, unsigned op, unsigned machine, unsigned what,
	uint32_t data, unsigned flags)
{
	add(f, tick, 8);
	add(f, data, 4);
	add(f, machine, 2);
	add(f, what, 2);
	add(f, op, 1);
	add(f, flags, 1);
	add(f, op & 1, 1); /* the processor */
}

static const char pipe_key[] =
	"sms = {}\n"
	"sms[\"producer\"] = [\"NULL\", \"make\", \"rest\"]\n"
	"sms[\"consumer\"] = [\"NULL\", \"use\"]\n"
	"\n\n\nsmNum = [\"NULL\", (1, \"producer\", 4096), (2, \"consumer\", "
	"18446744073709551615)]\n"
	"sysNum = [\"NULL\", \"client\", \"server\"]\n"
	"queues = [\"NULL\", (1, \"pipe\", 7), (2, \"pipe\", 7)]\n"
	"smComb = [s for s in [(i,r) for i in xrange(1,len(sysNum)) for r in xrange "
	"(1,len(smNum))]]\n";

enum { PIPE_RECORDS = 16 };

static void pipe_records(struct file *f)
{
	record(f, 1000, 0x01, 1, 1, 0, 0x01); /* begin make, of hardware */
	record(f, 1999, 0x02, 2, 1, 3, 0);    /* wait empty; 1.999 ns: the first tick of 1 ns */
	record(f, 5000, 0x04, 1, 1, 3, 0x04); /* queue, like a stack */
	record(f, 6000, 0x09, 2, 1, 1, 0);    /* peek */
	record(f, 6000, 0x05, 2, 1, UINT32_MAX, 0); /* dequeue all */
	record(f, 6000, 0x01, 2, 1, 0, 0x02);       /* begin use, suspect */
	record(f, 7000, 0x08, 2, 2, 0, 0);          /* size: clear */
	record(f, 7000, 0x04, 2, 2, 5, 0x20);       /* queue after a reset */
	record(f, 8000, 0x03, 1, 2, 9, 0);          /* wait full */
	record(f, 9000, 0x0C, 1, 2, 9, 0);          /* reserve */
	record(f, 9000, 0x0B, 1, 0, 77, 0);         /* identify */
	record(f, 9500, 0x0A, 1, 2, 0, 0);          /* link to the consumer */
	record(f, 9500, 0x0A, 1, 0xFFFF, 0, 0);     /* link that nothing took up */
	record(f, 9600, 0x06, 1, 1, 0, 0);          /* no such operation */
	record(f, 9700, 0x01, 3, 1, 0, 0);          /* no such machine */
	record(f, 9999, 0x01, 1, 2, 0, 0);          /* begin rest */
}

static void pipe_file(struct file *f, bool big_endian)
{
	*f = (struct file){.big_endian = big_endian};
	header(f, PIPE_RECORDS, 40 + PIPE_RECORDS * 19, sizeof pipe_key - 1);
	pipe_records(f);
	memcpy(f->bytes + f->nr, pipe_key, sizeof pipe_key - 1);
	f->nr += sizeof pipe_key - 1;
}

/* ---- import ---------------------------------------------------------------------------------- */

struct imported {
	char *path;
	struct trace_reader *reader;
	struct base_str notes;
	struct base_err err;
};

static enum base_status import(
	struct imported *im, const uint8_t *bytes, size_t nr, uint64_t tick_ps)
{
	/* exactly as large, so that the address sanitizer sees one byte too many */
	uint8_t *copy = malloc(nr ? nr : 1);
	struct memory memory = {copy, nr};
	struct format_source from = memory_source(&memory, "annotate.bin");
	struct format_import_options o = {.tick_ps = tick_ps};
	struct trace_writer *w;
	assert_non_null(copy);
	memcpy(copy, bytes, nr);
	*im = (struct imported){.path = temporary_path()};
	assert_int_equal(trace_writer_open(im->path, &test_info, &w, &im->err), BASE_OK);
	enum base_status s =
		format_import(format_import_find("gem5"), &from, w, &o, &im->notes, &im->err);
	enum base_status closed = trace_writer_close(w, NULL);
	free(copy);
	if (s != BASE_OK)
		return s;
	assert_int_equal(closed, BASE_OK);
	assert_int_equal(trace_reader_open(im->path, NULL, &im->reader, &im->err), BASE_OK);
	return s;
}

static void forget(struct imported *im)
{
	trace_reader_close(im->reader);
	unlink(im->path);
	free(im->path);
	base_str_fini(&im->notes);
}

static void dump(struct trace_reader *r, struct base_str *out)
{
	struct trace_batch b;
	base_str_reset(out);
	assert_int_equal(trace_reader_rewind(r, NULL), BASE_OK);
	while (trace_reader_next(r, &b, NULL) == BASE_OK)
		for (size_t i = 0; i < b.nr; i++) {
			trace_print_text(out, trace_reader_defs(r), &b.record[i]);
			base_str_add(out, "\n");
		}
}

static const char pipe_dump[] =
	"1 1:gem5 note_act actor=1(client/producer#4096)\n"
	"1 1:gem5 note_state state=1(make) flags=0\n"
	"1 1:gem5 note_act actor=2(server/consumer#18446744073709551615)\n"
	"1 1:gem5 note_wait_empty object=1(queue pipe@client) n=3 flags=0 site=0\n"
	"5 1:gem5 note_act actor=1(client/producer#4096)\n"
	"5 1:gem5 note_enqueue object=1(queue pipe@client) n=3 flags=8 site=0\n"
	"6 1:gem5 note_act actor=2(server/consumer#18446744073709551615)\n"
	"6 1:gem5 note_peek object=1(queue pipe@client) n=1 flags=0 site=0\n"
	"6 1:gem5 note_dequeue object=1(queue pipe@client) n=18446744073709551615 flags=0 site=0\n"
	"6 1:gem5 note_state state=2(use) flags=2\n"
	"7 1:gem5 note_resize object=2(queue pipe@server) n=0 flags=0 site=0\n"
	"7 1:gem5 note_enqueue object=2(queue pipe@server) n=5 flags=16 site=0\n"
	"8 1:gem5 note_act actor=1(client/producer#4096)\n"
	"8 1:gem5 note_wait_full object=2(queue pipe@server) n=9 flags=0 site=0\n"
	"9 1:gem5 note_reserve object=2(queue pipe@server) n=9 flags=0 site=0\n"
	"9 1:gem5 note_identify connection=77\n"
	"9 1:gem5 note_link actor=2(server/consumer#18446744073709551615) flags=0\n"
	"9 1:gem5 note_state state=3(rest) flags=0\n";

static void file_by_hand(void **state)
{
	(void)state;
	static struct file f;
	for (unsigned big = 0; big < 2; big++) {
		struct imported im;
		struct base_str text = {0};
		pipe_file(&f, big);
		assert_int_equal(import(&im, f.bytes, f.nr, 0), BASE_OK);
		dump(im.reader, &text);
		assert_string_equal(base_str_text(&text), pipe_dump);
		const struct trace_defs *d = trace_reader_defs(im.reader);
		assert_true(d->actors[1].instance == 4096 && d->actors[2].instance == UINT64_MAX);
		assert_string_equal(trace_text_of(d, d->actors[1].system), "client");
		assert_int_equal(d->objects[2].address, 7);
		const uint64_t *count = trace_reader_health(im.reader)->count;
		assert_int_equal(count[TRACE_DIAG_import_skipped], 2);
		assert_int_equal(count[TRACE_DIAG_import_cut], 0);
		const char *notes = base_str_text(&im.notes);
		assert_non_null(strstr(notes, big ? "big-endian" : "little-endian"));
		assert_non_null(strstr(notes, "1 record of unknown operations"));
		assert_non_null(strstr(notes, "1 record mentions ids"));
		assert_non_null(strstr(notes, "1 link into code without annotations"));
		assert_non_null(strstr(notes, "1 record is of hardware"));
		base_str_fini(&text);
		forget(&im);
	}
}

static void ticks(void **state)
{
	(void)state;
	static struct file f;
	struct imported im;
	pipe_file(&f, false);
	assert_int_equal(import(&im, f.bytes, f.nr, 500), BASE_OK);
	assert_int_equal(trace_reader_last_ns(im.reader), 4999);
	forget(&im);
}

/* What was there before the cut must come out, and it must be said that there was more. */
static void cut_everywhere(void **state)
{
	(void)state;
	static struct file f;
	pipe_file(&f, false);
	for (size_t nr = 0; nr < f.nr; nr++) {
		struct imported im;
		enum base_status s = import(&im, f.bytes, nr, 0);
		if (nr < 40) {
			assert_int_equal(s, BASE_ERR_FOREIGN);
			assert_true(im.err.nr_causes > 0);
		} else {
			size_t whole = (nr - 40) / 19;
			assert_int_equal(s, BASE_OK);
			const struct trace_health *h = trace_reader_health(im.reader);
			assert_int_equal(h->count[TRACE_DIAG_import_cut], 1);
			/* act records come on top; three records of the last four are refused */
			uint64_t out = trace_reader_record_count(im.reader);
			assert_true(out >= (whole < 12 ? whole : 12) && out <= PIPE_RECORDS + 6);
			assert_true(strstr(base_str_text(&im.notes), "cut after") ||
				    strstr(base_str_text(&im.notes), "as far as they go"));
		}
		forget(&im);
	}
}

/* The simulator was killed: its header was never written again. */
static void run_cut_short(void **state)
{
	(void)state;
	static struct file f;
	struct imported im;
	struct base_str text = {0};
	f = (struct file){0};
	header(&f, 0, 0, 0);
	record(&f, 3000, 0x01, 5, 2, 0, 0);
	record(&f, 4000, 0x04, 5, 9, 1, 0);
	add(&f, 1234, 7);
	assert_int_equal(import(&im, f.bytes, f.nr, 0), BASE_OK);
	dump(im.reader, &text);
	assert_string_equal(base_str_text(&text),
		"3 1:gem5 note_act actor=1(machine 5)\n"
		"3 1:gem5 note_state state=1(state 2) flags=0\n"
		"4 1:gem5 note_enqueue object=1(queue queue 9) n=1 flags=0 site=0\n");
	assert_non_null(strstr(base_str_text(&im.notes), "cut short"));
	assert_non_null(strstr(base_str_text(&im.notes), "the last 7 bytes are no whole record"));
	assert_non_null(strstr(base_str_text(&im.notes), "no key"));
	base_str_fini(&text);
	forget(&im);
}

static void other_files(void **state)
{
	(void)state;
	static struct file f;
	struct imported im;
	pipe_file(&f, false);
	f.bytes[0] ^= 0xff; /* another capability */
	assert_int_equal(import(&im, f.bytes, f.nr, 0), BASE_ERR_FOREIGN);
	assert_non_null(strstr(im.err.cause[0], "0x4d35414e000001fe"));
	forget(&im);
	memset(f.bytes, 'x', 100);
	assert_int_equal(import(&im, f.bytes, 100, 0), BASE_ERR_FOREIGN);
	forget(&im);
}

/* Counts and offsets that contradict the file's size must not lead out of it. */
static void forged_header(void **state)
{
	(void)state;
	static const uint64_t value[] = {1, 39, 40, 41, 344, 345, 1u << 31, UINT32_MAX,
		UINT64_MAX / 19, UINT64_MAX - 1, UINT64_MAX};
	static struct file f;
	for (size_t field = 8; field <= 32; field += 8)
		for (size_t i = 0; i < BASE_COUNT(value); i++) {
			struct imported im;
			pipe_file(&f, false);
			f.nr = field;
			add(&f, value[i], field == 32 ? 4 : 8);
			f.nr = 40 + PIPE_RECORDS * 19 + sizeof pipe_key - 1;
			assert_int_equal(import(&im, f.bytes, f.nr, 0), BASE_OK);
			assert_true(trace_reader_record_count(im.reader) <= 2 * f.nr / 19);
			forget(&im);
		}
}

static void out_of_memory(void **state)
{
	(void)state;
	static struct file f;
	pipe_file(&f, false);
	for (uint64_t nth = 1, done = 0; !done; nth++) {
		struct memory memory = {f.bytes, f.nr};
		struct format_source from = {.read = read_memory,
			.ctx = &memory,
			.size_bytes = f.nr,
			.name = "annotate.bin"};
		struct format_import_options o = {0};
		struct base_err err = {0};
		struct base_str notes = {0};
		struct trace_writer *w;
		char *path = temporary_path();
		assert_int_equal(trace_writer_open(path, &test_info, &w, &err), BASE_OK);
		enum base_status s = WITHOUT_NTH(
			nth, format_import(format_import_find("gem5"), &from, w, &o, &notes, &err));
		done = s == BASE_OK && !notes.failed;
		assert_true(nth < 500);
		if (trace_writer_close(w, NULL) != BASE_OK)
			assert_int_equal(s, BASE_ERR_NOMEM);
		base_str_fini(&notes);
		unlink(path);
		free(path);
	}
}

/* ---- names ----------------------------------------------------------------------------------- */

static struct gem5_key parse(const char *text)
{
	struct gem5_key k;
	size_t length = strlen(text);
	char *copy = malloc(length ? length : 1);
	assert_non_null(copy);
	for (size_t i = 0; i < length; i++) /* without its end: nobody may look for one */
		copy[i] = text[i];
	assert_int_equal(format_gem5_key_parse(&k, copy, length, NULL), BASE_OK);
	free(copy);
	return k;
}

/* The second state of machine "m" by this literal; NULL: damaged. */
static const char *literal(struct gem5_key *k, const char *python)
{
	struct base_str s = {0};
	uint32_t m;
	uint64_t id;
	base_str_addf(&s, "sms['m'] = ['NULL', %s]\nsysNum = ['NULL', 'here']", python);
	*k = parse(base_str_text(&s));
	base_str_fini(&s);
	/* what follows is read in any case */
	assert_int_equal(k->nr_systems, 2);
	assert_int_equal(base_strtab_intern(k->text, "m", 1, &m), BASE_OK);
	return base_map_get(&k->states, m, 1, &id) ? base_strtab_get(k->text, (uint32_t)id) : NULL;
}

static void quoting(void **state)
{
	(void)state;
	static const struct {
		const char *python, *is;
	} row[] = {
		{"\"plain\"", "plain"},
		{"'single'", "single"},
		{"\"it's\"", "it's"},
		{"'say \"so\"'", "say \"so\""},
		{"\"a \\\"quoted\\\" word\"", "a \"quoted\" word"},
		{"\"back\\\\slash\"", "back\\slash"},
		{"\"ends in \\\\\"", "ends in \\"},
		{"\"tab\\tnewline\\n\"", "tab\tnewline\n"},
		{"\"\\x41\\x7a\\101\\60x\"", "AzA0x"},
		{"\"\\xff\\xe2\\x82\\xac\"", "\xff\xe2\x82\xac"},
		{"\"\\xg\\q\"", "\\xg\\q"}, /* unknown escapes stay */
		{"\"\\x4\"", "\\x4"},
		{"\"two \\\nlines\"", "two lines"},
		{"\"[(1, 'x')] # ;\"", "[(1, 'x')] # ;"},
		{"\"\"", ""},
		{"\n  \"next line\" # says so\n  ,\n", "next line"},
		{"\"not closed", NULL},
		{"\"bad\\", NULL},
		{"\"a\"b\"", "a"}, /* quotes as they were: damaged after it */
		{"17", NULL},
		{"(1, 'x', 2)", NULL},
		{"['nested']", NULL},
		{"__import__('os').system('true')", NULL},
	};
	for (size_t i = 0; i < BASE_COUNT(row); i++) {
		struct gem5_key k;
		const char *is = literal(&k, row[i].python);
		if (row[i].is)
			assert_non_null(is);
		else
			assert_null(is);
		if (is)
			assert_string_equal(is, row[i].is);
		bool damaged = !is || !strcmp(row[i].python, "\"a\"b\"");
		assert_int_equal(k.nr_damaged != 0, damaged);
		assert_int_equal(k.damage.length != 0, damaged);
		format_gem5_key_fini(&k);
	}
}

static void numbers(void **state)
{
	(void)state;
	struct gem5_key k =
		parse("queues = ['NULL', (0, 'q', 0), (1, 'q', 18446744073709551615), "
		      "(2, 'q', 0x1FfL), (3, 'q', 0755), (4, 'q', 0o17), (5, 'q', 09L), "
		      "(6, 'q', 18446744073709551616)]");
	static const uint64_t instance[] = {0, 0, UINT64_MAX, 0x1ff, 0755, 017};
	assert_int_equal(k.nr_damaged, 1); /* 09 is no number of Python's */
	assert_int_equal(k.queues.nr, BASE_COUNT(instance));
	for (size_t i = 0; i < k.queues.nr; i++)
		assert_true(k.queues.thing[i].instance == instance[i]);
	format_gem5_key_fini(&k);
	k = parse("smNum = [(1, 'a', 18446744073709551616)]\nsmNum = ['NULL', (1, 'b', 2)]");
	assert_int_equal(k.nr_damaged, 1);
	assert_int_equal(k.machines.nr, 2);
	format_gem5_key_fini(&k);
}

static void odd_keys(void **state)
{
	(void)state;
	static const char *const text[] = {"", "\n\n", "sms", "sms[", "sms['m'",
		"sms['m'] =", "sms['m'] = [", "smNum", "smNum =", "smNum = [(", "smNum = [(1",
		"smNum = [(1,", "smNum = [(1, 'x'", "smNum = [(1, 'x', 2", "smNum = [(1, 'x', 2)",
		"queues = ]", "sysNum = ['a' 'b']", "sysNum = {'a': 'b'}", ")]}", "\\", "\"", "#",
		"sysNum = [,]"};
	for (size_t i = 0; i < BASE_COUNT(text); i++) {
		struct gem5_key k = parse(text[i]);
		format_gem5_key_fini(&k);
	}
	/* a broken statement ends with its line, whatever was open in it */
	struct gem5_key k =
		parse("queues = ['NULL', (1, \"say \"so\"\", 2)]\nsysNum = ['NULL', 'x']");
	assert_int_equal(k.nr_damaged, 1);
	assert_non_null(strstr(base_str_text(&k.damage), "line 1"));
	assert_int_equal(k.nr_systems, 2);
	format_gem5_key_fini(&k);
}

/* ---- there and back -------------------------------------------------------------------------- */

struct generator {
	struct trace_writer *w;
	uint32_t nr_strings, nr_actors;
	uint64_t seed;
};

enum { GEN_ACTORS = 5, GEN_QUEUES = 6, GEN_STATES = 7 };

static uint64_t draw(struct generator *g, uint64_t below)
{
	g->seed = base_hash_u64(g->seed + 0x9e3779b97f4a7c15);
	return g->seed % below;
}

static void put(struct generator *g, struct trace_record r)
{
	assert_int_equal(trace_writer_put(g->w, &r, NULL), BASE_OK);
}

#define PUT(g, at, by, what, ...)                                                                  \
	put(g, (struct trace_record){.time_ns = (at),                                              \
		       .stream = (by),                                                             \
		       .kind = TRACE_##what,                                                       \
		       .u.what = {__VA_ARGS__}})

static uint32_t string(struct generator *g, const char *fmt, unsigned i)
{
	char text[64];
	uint32_t id = ++g->nr_strings;
	snprintf(text, sizeof text, fmt, i);
	PUT(g, 0, 0, string, .string = id, .text = {text, (uint32_t)strlen(text)});
	return id;
}

/* Everything that annotate.bin can say, in the form that the import gives it. */
static void generate(const char *path, uint64_t seed, unsigned nr_records)
{
	struct generator g = {.seed = seed};
	assert_int_equal(trace_writer_open(path, &test_info, &g.w, NULL), BASE_OK);
	uint32_t program = string(&g, "gem5", 0), system[2] = {0, string(&g, "host \"%u\"", 1)};
	PUT(&g, 0, 0, process, .process = 1, .name = program, .command = program);
	PUT(&g, 0, 0, stream, .stream = 1, .process = 1, .name = program);
	for (uint32_t i = 1; i <= GEN_ACTORS; i++)
		PUT(&g, 0, 0, actor, .actor = i, .system = system[i & 1],
			.name = string(&g, "machine \\ '%u'", i / 2),
			.instance = i * 0x123456789abc);
	for (uint32_t i = 1; i <= GEN_QUEUES; i++)
		PUT(&g, 0, 0, object, .object = i, .type = TRACE_OBJECT_queue, .address = i,
			.name = string(&g,
				"q\xc3\xbc"
				"@%u",
				i));
	for (uint32_t i = 1; i <= GEN_STATES; i++)
		PUT(&g, 0, 0, state, .state = i, .name = string(&g, "state %u", i));
	uint64_t at = 0;
	uint32_t acting = 0;
	for (unsigned i = 0; i < nr_records; i++) {
		uint32_t actor = 1 + (uint32_t)draw(&g, GEN_ACTORS);
		at += draw(&g, 4) * draw(&g, 1u << 30);
		if (actor != acting)
			PUT(&g, at, 1, note_act, .actor = actor);
		acting = actor;
		uint32_t o = 1 + (uint32_t)draw(&g, GEN_QUEUES);
		uint64_t n = draw(&g, 3) ? draw(&g, 10) : draw(&g, UINT32_MAX);
		uint64_t all = draw(&g, 5) ? n : LONGPOLE_ALL;
		uint64_t flags = draw(&g, 4) ? 0 : draw(&g, 4) * LONGPOLE_LIFO;
		switch (draw(&g, 10)) {
		case 0:
			PUT(&g, at, 1, note_state, .state = 1 + (uint32_t)draw(&g, GEN_STATES),
				.flags = draw(&g, 2) * LONGPOLE_SUSPECT);
			break;
		case 1:
			PUT(&g, at, 1, note_link, .actor = 1 + (uint32_t)draw(&g, GEN_ACTORS));
			break;
		case 2:
			PUT(&g, at, 1, note_identify, .connection = n);
			break;
		case 3:
			PUT(&g, at, 1, note_enqueue, .object = o, .n = n, .flags = flags);
			break;
		case 4:
			PUT(&g, at, 1, note_dequeue, .object = o, .n = all, .flags = flags);
			break;
		case 5:
			PUT(&g, at, 1, note_peek, .object = o, .n = all, .flags = flags);
			break;
		case 6:
			PUT(&g, at, 1, note_reserve, .object = o, .n = n, .flags = flags);
			break;
		case 7:
			PUT(&g, at, 1, note_resize, .object = o, .n = n, .flags = flags);
			break;
		case 8:
			PUT(&g, at, 1, note_wait_empty, .object = o, .n = n, .flags = flags);
			break;
		default:
			PUT(&g, at, 1, note_wait_full, .object = o, .n = n, .flags = flags);
		}
	}
	assert_int_equal(trace_writer_close(g.w, NULL), BASE_OK);
}

static enum base_status keep(void *ctx, const void *bytes, size_t length, struct base_err *err)
{
	(void)err;
	base_str_add_bytes(ctx, bytes, length);
	return BASE_OK;
}

static enum base_status export(
	const char *path, struct base_str *out, struct base_str *notes, struct base_err *err) {
	struct format_input in = {.name = path, .tool = "test", .notes = notes};
	struct format_options o = {0};
	struct format_sink sink = {.write = keep, .ctx = out};
	assert_int_equal(trace_reader_open(path, NULL, &in.reader, NULL), BASE_OK);
	enum base_status s = format_export(format_find("gem5"), &in, &o, &sink, err);
	trace_reader_close(in.reader);
	return s;
}

/* A record with names in place of ids, which are numbered anew on the way. */
static void describe(struct base_str *out, const struct trace_defs *d, const struct trace_record *r)
{
	base_str_addf(out, "%llu %u %u", (unsigned long long)r->time_ns, r->stream, r->kind);
	if (r->kind == TRACE_note_act || r->kind == TRACE_note_link) {
		const struct trace_actor *a = trace_def_actor(d, r->u.note_act.actor);
		base_str_addf(out, " %s|%s|%llx", trace_text_of(d, a->system),
			trace_text_of(d, a->name), (unsigned long long)a->instance);
	} else if (r->kind == TRACE_note_state) {
		base_str_addf(out, " %s %llu",
			trace_text_of(d, trace_def_state(d, r->u.note_state.state)->name),
			(unsigned long long)r->u.note_state.flags);
	} else if (r->kind == TRACE_note_identify) {
		base_str_addf(out, " %llu", (unsigned long long)r->u.note_identify.connection);
	} else {
		const struct trace_note_enqueue *q = &r->u.note_enqueue;
		const struct trace_object *o = trace_def_object(d, q->object);
		base_str_addf(out, " %s|%llu %llu %llu", trace_text_of(d, o->name),
			(unsigned long long)o->address, (unsigned long long)q->n,
			(unsigned long long)q->flags);
	}
	base_str_add(out, "\n");
}

static void describe_all(struct trace_reader *r, struct base_str *out)
{
	struct trace_batch b;
	while (trace_reader_next(r, &b, NULL) == BASE_OK)
		for (size_t i = 0; i < b.nr; i++)
			describe(out, trace_reader_defs(r), &b.record[i]);
}

static void there_and_back(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 20; seed++) {
		char *path = temporary_path();
		struct base_str bytes = {0}, again = {0}, notes = {0}, want = {0}, is = {0};
		struct trace_reader *r;
		struct imported im;
		generate(path, seed, seed == 20 ? 250000 : 40 * (unsigned)seed);
		assert_int_equal(export(path, &bytes, &notes, NULL), BASE_OK);
		assert_string_equal(base_str_text(&notes), ""); /* all of it has a form */
		assert_int_equal(import(&im, (const uint8_t *)bytes.buf, bytes.length, 0), BASE_OK);
		assert_int_equal(trace_reader_open(path, NULL, &r, NULL), BASE_OK);
		describe_all(r, &want);
		describe_all(im.reader, &is);
		assert_true(want.length > 100);
		assert_int_equal(want.length, is.length);
		assert_memory_equal(want.buf, is.buf, want.length);
		/* and what came back gives the same file */
		assert_int_equal(export(im.path, &again, NULL, NULL), BASE_OK);
		assert_int_equal(again.length, bytes.length);
		assert_memory_equal(again.buf, bytes.buf, bytes.length);
		trace_reader_close(r);
		forget(&im);
		unlink(path);
		free(path);
		struct base_str *all[] = {&bytes, &again, &notes, &want, &is};
		for (size_t i = 0; i < BASE_COUNT(all); i++)
			base_str_fini(all[i]);
	}
}

/* The index says where every 100,000th record ends up. */
static void index_points_at_records(void **state)
{
	(void)state;
	char *path = temporary_path();
	struct base_str bytes = {0};
	uint64_t records, index, offset;
	uint32_t index_bytes;
	generate(path, 99, 250000);
	assert_int_equal(export(path, &bytes, NULL, NULL), BASE_OK);
	memcpy(&records, bytes.buf + 8, 8);
	memcpy(&index, bytes.buf + 24, 8);
	memcpy(&index_bytes, bytes.buf + 36, 4);
	assert_int_equal(records, 250000);
	assert_int_equal(index_bytes, 16);
	assert_int_equal(index + index_bytes, bytes.length);
	memcpy(&offset, bytes.buf + index + 8, 8);
	assert_int_equal(offset, 40 + (2 * 100000 - 1) * 19);
	base_str_fini(&bytes);
	unlink(path);
	free(path);
}

/* One record that does not fit: refused, with what and how much. */
static void refused(struct trace_record r, const char *says)
{
	char *path = temporary_path();
	struct base_str bytes = {0};
	struct base_err err = {0};
	struct generator g = {0};
	assert_int_equal(trace_writer_open(path, &test_info, &g.w, NULL), BASE_OK);
	uint32_t name = string(&g, "x", 0);
	PUT(&g, 0, 0, process, .process = 1, .name = name);
	PUT(&g, 0, 0, stream, .stream = 1, .process = 1, .name = name);
	PUT(&g, 0, 0, actor, .actor = 1, .name = name);
	PUT(&g, 0, 0, object, .object = 1, .type = TRACE_OBJECT_queue, .name = name);
	PUT(&g, 0, 1, note_act, .actor = 1);
	put(&g, r);
	assert_int_equal(trace_writer_close(g.w, NULL), BASE_OK);
	assert_int_equal(export(path, &bytes, NULL, &err), BASE_ERR_LIMIT);
	assert_non_null(strstr(err.cause[0], says));
	base_str_fini(&bytes);
	unlink(path);
	free(path);
}

static void limits(void **state)
{
	(void)state;
	refused((struct trace_record){.time_ns = 5,
			.stream = 1,
			.kind = TRACE_note_enqueue,
			.u.note_enqueue = {.object = 1, .n = UINT64_C(1) << 32}},
		"4294967296 at 5 ns");
	refused((struct trace_record){.stream = 1,
			.kind = TRACE_note_dequeue,
			.u.note_dequeue = {.object = 1, .n = UINT32_MAX}},
		"a count of");
	refused((struct trace_record){.stream = 1,
			.kind = TRACE_note_identify,
			.u.note_identify = {.connection = UINT64_MAX}},
		"connection");
	refused((struct trace_record){.time_ns = UINT64_MAX / 2,
			.stream = 1,
			.kind = TRACE_note_state,
			.u.note_state = {0}},
		"the time in ns");
}

static void too_many_machines(void **state)
{
	(void)state;
	char *path = temporary_path();
	struct base_str bytes = {0};
	struct base_err err = {0};
	struct generator g = {0};
	assert_int_equal(trace_writer_open(path, &test_info, &g.w, NULL), BASE_OK);
	uint32_t name = string(&g, "x", 0);
	PUT(&g, 0, 0, process, .process = 1, .name = name);
	PUT(&g, 0, 0, stream, .stream = 1, .process = 1, .name = name);
	for (uint32_t i = 1; i < 1 << 16; i++)
		PUT(&g, 0, 0, actor, .actor = i, .name = name, .instance = i);
	for (uint32_t i = 1; i < 1 << 16; i++) {
		PUT(&g, i, 1, note_act, .actor = i);
		PUT(&g, i, 1, note_identify, .connection = i);
	}
	assert_int_equal(trace_writer_close(g.w, NULL), BASE_OK);
	assert_int_equal(export(path, &bytes, NULL, &err), BASE_ERR_LIMIT);
	assert_non_null(strstr(err.cause[0], "state machines as 65535"));
	base_str_fini(&bytes);
	unlink(path);
	free(path);
}

/* Stacks of machines, threads, and what has no form. */
static void stacks_become_links(void **state)
{
	(void)state;
	char *path = temporary_path();
	struct base_str bytes = {0}, notes = {0}, text = {0};
	struct generator g = {0};
	struct imported im;
	assert_int_equal(trace_writer_open(path, &test_info, &g.w, NULL), BASE_OK);
	uint32_t name = string(&g, "prog", 0), m = string(&g, "parser", 0), q = string(&g, "in", 0);
	uint32_t s = string(&g, "a state with a name that is longer than gem5 keeps %u", 1);
	PUT(&g, 0, 0, process, .process = 1, .name = name);
	PUT(&g, 0, 0, stream, .stream = 1, .process = 1, .tid = 42);
	PUT(&g, 0, 0, actor, .actor = 1, .name = m, .instance = 3);
	PUT(&g, 0, 0, object, .object = 1, .type = TRACE_OBJECT_queue, .name = q);
	PUT(&g, 0, 0, state, .state = 1, .name = s);
	PUT(&g, 1, 1, thread_begin, 0);
	PUT(&g, 2, 1, note_begin, .actor = 1);
	PUT(&g, 3, 1, note_state, .state = 1);
	PUT(&g, 4, 1, note_assert, .object = 1);
	PUT(&g, 5, 1, note_dequeue, .object = 1, .n = 2, .flags = LONGPOLE_END | LONGPOLE_POOL);
	PUT(&g, 6, 1, note_end, 0);
	assert_int_equal(trace_writer_close(g.w, NULL), BASE_OK);
	assert_int_equal(export(path, &bytes, &notes, NULL), BASE_OK);
	assert_int_equal(import(&im, (const uint8_t *)bytes.buf, bytes.length, 0), BASE_OK);
	dump(im.reader, &text);
	assert_string_equal(base_str_text(&text),
		"2 1:gem5 note_act actor=1(thread of prog#42)\n"
		"2 1:gem5 note_state state=1(running) flags=0\n"
		"2 1:gem5 note_link actor=2(parser#3) flags=0\n"
		"2 1:gem5 note_act actor=2(parser#3)\n"
		"2 1:gem5 note_state state=2(begun) flags=0\n"
		"3 1:gem5 note_state state=3(a state with a name that is longer than gem5 keeps 1) "
		"flags=0\n"
		"5 1:gem5 note_dequeue object=1(queue in) n=2 flags=0 site=0\n"
		"5 1:gem5 note_link actor=1(thread of prog#42) flags=0\n"
		"5 1:gem5 note_act actor=1(thread of prog#42)\n"
		"5 1:gem5 note_state state=1(running) flags=0\n");
	assert_string_equal(base_str_text(&notes),
		"1 record has no form in annotate.bin, which knows annotations only (threads, "
		"locks, "
		"descriptors, samples)\n"
		"1 asserted size was left out\n"
		"1 queue operation lost a flag (pool, priority, anonymous)\n"
		"1 begin or end does not nest and were left out\n"
		"1 end of a state machine became links and states: the file has no word for a "
		"machine "
		"that is nowhere\n"
		"1 name is longer than the 49 bytes that gem5 itself kept\n");
	base_str_fini(&bytes);
	base_str_fini(&notes);
	base_str_fini(&text);
	forget(&im);
	unlink(path);
	free(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(file_by_hand),
		cmocka_unit_test(ticks),
		cmocka_unit_test(cut_everywhere),
		cmocka_unit_test(run_cut_short),
		cmocka_unit_test(other_files),
		cmocka_unit_test(forged_header),
		cmocka_unit_test(out_of_memory),
		cmocka_unit_test(quoting),
		cmocka_unit_test(numbers),
		cmocka_unit_test(odd_keys),
		cmocka_unit_test(there_and_back),
		cmocka_unit_test(index_points_at_records),
		cmocka_unit_test(limits),
		cmocka_unit_test(too_many_machines),
		cmocka_unit_test(stacks_become_links),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
