/* SPDX-License-Identifier: Apache-2.0 */
/*
 * perf_import.c - perf.data (tools/perf/Documentation/perf.data-file-format.txt): samples of
 * tracepoints, and what perf says of threads' names and births.
 *
 * Read straight from the file, a record at a time; nothing in it is trusted. What is not needed is
 * stepped over: the order of the processors' rings is restored by sorting.
 */
#include "format/tracepoint.h"

#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

enum {
	SECTION_BYTES = 16,
	HEADER_BYTES = 8 + 8 + 8 + 3 * SECTION_BYTES + 32,
	FEATURES = 256,
	FEATURE_TRACING_DATA = 1,
	FEATURE_CMDLINE = 11,
	WORDS_MAX = 256,
	COMM_MAX = 15, /* the kernel keeps as much of a name */
	COMMAND_BYTES_MAX = 1 << 16,
	TRACING_BYTES_MAX = 64 << 20,
	ATTR_SIZE_MIN = 64, /* PERF_ATTR_SIZE_VER0 */
	ATTRS_MAX = 1 << 12,
	IDS_MAX = 1 << 16,
	RECORD_BYTES_MAX = 1 << 16,
	CHUNK_BYTES = 1 << 20,
	RECORD_LOST_SAMPLES = 13,
	RECORD_AUXTRACE = 71,
	RECORD_COMPRESSED = 81,
	RECORD_COMPRESSED2 = 83,
	MISC_COMM_EXEC = 1 << 13,
};
static const uint64_t magic = 0x32454c4946524550; /* "PERFILE2" */

struct attr {
	uint64_t sample_type, read_format;
	bool id_all;
};
struct words { /* of perf's own command line */
	const char *word[WORDS_MAX];
	unsigned nr, first; /* first: the program or an option of perf's */
	char *text;
};
struct perf {
	const struct format_source *from;
	const struct format_import_options *opts;
	struct base_err *err;
	struct format_sched *sched;
	struct attr *attr;
	size_t nr_attrs, attr_capacity;
	struct base_map attr_of; /* event id -> index */
	struct format_tracepoint *type;
	size_t nr_types, type_capacity;
	struct base_map type_of; /* tracepoint id -> index + 1 */
	uint64_t data_offset, data_bytes;
	uint8_t features[FEATURES / 8];
	const struct words *looks_for; /* only which of these is executed; NULL: all is imported */
	uint32_t started_pid, started_word;
	uint64_t nr_other, nr_damaged, nr_compressed;
	bool has_fork, has_exec, has_exit, cut;
	ZSTD_DStream *unzstd; /* of perf record -z: one stream through all its records */
	uint8_t *unpacked;    /* CHUNK_BYTES: what no whole record has been made of yet */
	size_t nr_unpacked;
};

static uint64_t perf_import_take(const uint8_t *p, unsigned nr_bytes)
{
	uint64_t v = 0;
	for (unsigned i = 0; i < nr_bytes; i++)
		v |= (uint64_t)p[i] << 8 * i;
	return v;
}

/* False: outside of the file, or it cannot be read. */
static enum base_status perf_import_read_bytes(
	struct perf *f, uint64_t offset, void *to, size_t length)
{
	if (offset > f->from->size_bytes || length > f->from->size_bytes - offset)
		return base_fail(f->err, BASE_ERR_FOREIGN,
			"the file has %llu {byte|bytes}; its header speaks of byte %llu and %zu "
			"more",
			(unsigned long long)f->from->size_bytes, (unsigned long long)offset,
			length);
	return f->from->read(f->from->ctx, offset, to, length, f->err);
}

/* ---- formats of tracepoints ------------------------------------------------------------------ */

struct bytes { /* what is left of a section */
	const uint8_t *p, *end;
	bool failed;
};

static const uint8_t *perf_import_skip(struct bytes *b, uint64_t length)
{
	const uint8_t *p = b->p;
	if (b->failed || length > (uint64_t)(b->end - b->p)) {
		b->failed = true;
		return p;
	}
	b->p += length;
	return p;
}

static uint64_t perf_import_number(struct bytes *b, unsigned nr_bytes)
{
	const uint8_t *p = perf_import_skip(b, nr_bytes);
	return b->failed ? 0 : perf_import_take(p, nr_bytes);
}

static void skip_text(struct bytes *b)
{
	const uint8_t *nul = b->failed ? NULL : memchr(b->p, 0, (size_t)(b->end - b->p));
	if (nul)
		b->p = nul + 1;
	else
		b->failed = true;
}

static void skip_counted(struct bytes *b)
{
	uint64_t length = perf_import_number(b, 8);
	(void)perf_import_skip(b, length);
}

static enum base_status perf_import_add_type(struct perf *f, const char *text, size_t length)
{
	struct format_tracepoint t;
	if (!format_tracepoint_parse(&t, text, length))
		return BASE_OK;
	f->has_fork |= !strcmp(t.name, "sched_process_fork");
	f->has_exec |= !strcmp(t.name, "sched_process_exec");
	f->has_exit |= !strcmp(t.name, "sched_process_exit");
	enum base_status s =
		base_grow(&f->type, &f->type_capacity, f->nr_types + 1, sizeof *f->type);
	if (s == BASE_OK)
		s = base_map_put(&f->type_of, 0, t.id, f->nr_types + 1);
	if (s != BASE_OK)
		return base_fail(f->err, s, "out of memory for formats");
	f->type[f->nr_types++] = t;
	return BASE_OK;
}

static enum base_status parse_tracing(struct perf *f, const uint8_t *bytes, size_t length)
{
	struct bytes b = {.p = bytes, .end = bytes + length};
	enum base_status s = BASE_OK;
	const uint8_t *start = perf_import_skip(&b, 10);
	if (b.failed || memcmp(start, "\x17\x08\x44tracing", 10) != 0)
		return base_fail(
			f->err, BASE_ERR_FOREIGN, "its tracing data does not begin as such");
	skip_text(&b);                         /* version */
	(void)perf_import_skip(&b, 1 + 1 + 4); /* byte order, size of long, of a page */
	for (int i = 0; i < 2; i++) {          /* header_page, header_event */
		skip_text(&b);
		skip_counted(&b);
	}
	for (uint64_t nr = perf_import_number(&b, 4); nr && !b.failed; nr--)
		skip_counted(&b); /* ftrace's own */
	for (uint64_t groups = perf_import_number(&b, 4); groups && !b.failed && s == BASE_OK;
		groups--) {
		skip_text(&b);
		for (uint64_t nr = perf_import_number(&b, 4); nr && !b.failed && s == BASE_OK;
			nr--) {
			uint64_t size = perf_import_number(&b, 8);
			const uint8_t *text = perf_import_skip(&b, size);
			if (!b.failed)
				s = perf_import_add_type(f, (const char *)text, (size_t)size);
		}
	}
	f->cut |= b.failed;
	return s;
}

static bool perf_import_has(const struct perf *f, unsigned feature)
{
	return f->features[feature / 8] & 1 << feature % 8;
}

/* The sections of the features that there are stand after the data, in their order. */
static enum base_status perf_import_find_feature(
	struct perf *f, unsigned feature, uint64_t *ret_offset, uint64_t *ret_bytes)
{
	uint8_t section[SECTION_BYTES];
	uint64_t at = f->data_offset + f->data_bytes;
	for (unsigned i = 0; i < feature; i++)
		at += perf_import_has(f, i) ? SECTION_BYTES : 0u;
	enum base_status s = perf_import_read_bytes(f, at, section, sizeof section);
	if (s != BASE_OK)
		return s;
	*ret_offset = perf_import_take(section, 8);
	*ret_bytes = perf_import_take(section + 8, 8);
	return BASE_OK;
}

/* Number of words, and each with its length. */
static void perf_import_split_words(struct words *w, const uint8_t *bytes, size_t length)
{
	struct bytes b = {.p = bytes, .end = bytes + length};
	uint64_t nr = perf_import_number(&b, 4);
	char *to = w->text;
	for (uint64_t i = 0; i < nr && w->nr < WORDS_MAX; i++) {
		uint64_t size = perf_import_number(&b, 4);
		const uint8_t *text = perf_import_skip(&b, size);
		if (b.failed || !to || !text || !memchr(text, 0, (size_t)size))
			break;
		size_t n = strlen((const char *)text) + 1; /* padding follows */
		w->word[w->nr++] = memcpy(to, text, n);
		to += n;
		if (!strcmp(w->word[w->nr - 1], "--") && !w->first)
			w->first = w->nr;
	}
}

static enum base_status perf_import_read_words(struct perf *f, struct words *w)
{
	uint64_t offset, length;
	if (!perf_import_has(f, FEATURE_CMDLINE))
		return BASE_OK;
	enum base_status s = perf_import_find_feature(f, FEATURE_CMDLINE, &offset, &length);
	if (s != BASE_OK || length > COMMAND_BYTES_MAX)
		return s;
	uint8_t *bytes = base_alloc((size_t)length + 1);
	w->text = base_alloc((size_t)length + 1);
	s = bytes && w->text
		    ? perf_import_read_bytes(f, offset, bytes, (size_t)length)
		    : base_fail(f->err, BASE_ERR_NOMEM, "out of memory for a command line");
	if (s == BASE_OK)
		perf_import_split_words(w, bytes, (size_t)length);
	if (!w->first)
		w->first = 2; /* "perf record" */
	base_free(bytes);
	return s;
}

static enum base_status read_tracing(struct perf *f)
{
	if (!perf_import_has(f, FEATURE_TRACING_DATA))
		return base_fail(f->err, BASE_ERR_FOREIGN,
			"there are no tracepoints in it: record with perf record -a -e "
			"sched:sched_switch,sched:sched_waking");
	uint64_t offset, length;
	enum base_status s = perf_import_find_feature(f, FEATURE_TRACING_DATA, &offset, &length);
	if (s != BASE_OK)
		return s;
	if (length > TRACING_BYTES_MAX)
		return base_fail(f->err, BASE_ERR_FOREIGN, "its tracing data has %llu {byte|bytes}",
			(unsigned long long)length);
	uint8_t *bytes = base_alloc((size_t)length + 1);
	if (!bytes)
		return base_fail(f->err, BASE_ERR_NOMEM, "out of memory for formats");
	s = perf_import_read_bytes(f, offset, bytes, (size_t)length);
	if (s == BASE_OK)
		s = parse_tracing(f, bytes, (size_t)length);
	base_free(bytes);
	return s;
}

/* ---- attributes ------------------------------------------------------------------------------ */

static enum base_status read_ids(struct perf *f, const uint8_t *section, size_t index)
{
	uint64_t offset = perf_import_take(section, 8), nr = perf_import_take(section + 8, 8) / 8;
	enum base_status s = BASE_OK;
	if (nr > IDS_MAX)
		return base_fail(f->err, BASE_ERR_FOREIGN, "an event has %llu {id|ids}",
			(unsigned long long)nr);
	for (uint64_t i = 0; s == BASE_OK && i < nr; i++) {
		uint8_t id[8];
		s = perf_import_read_bytes(f, offset + i * 8, id, sizeof id);
		if (s == BASE_OK &&
			base_map_put(&f->attr_of, 0, perf_import_take(id, 8), index) != BASE_OK)
			s = base_fail(f->err, BASE_ERR_NOMEM, "out of memory for events");
	}
	return s;
}

static enum base_status read_attrs(
	struct perf *f, uint64_t offset, uint64_t size, uint64_t attr_size)
{
	uint8_t bytes[256];
	if (attr_size < ATTR_SIZE_MIN + SECTION_BYTES || attr_size > sizeof bytes ||
		size < attr_size || size / attr_size > ATTRS_MAX)
		return base_fail(f->err, BASE_ERR_FOREIGN,
			"events are described in %llu {byte|bytes} of %llu each",
			(unsigned long long)size, (unsigned long long)attr_size);
	enum base_status s = BASE_OK;
	for (uint64_t i = 0; s == BASE_OK && i < size / attr_size; i++) {
		s = perf_import_read_bytes(f, offset + i * attr_size, bytes, (size_t)attr_size);
		if (s == BASE_OK && base_grow(&f->attr, &f->attr_capacity, f->nr_attrs + 1,
					    sizeof *f->attr) != BASE_OK)
			s = base_fail(f->err, BASE_ERR_NOMEM, "out of memory for events");
		if (s != BASE_OK)
			break;
		/* type, size, config, period, sample_type, read_format, flags */
		f->attr[f->nr_attrs++] =
			(struct attr){.sample_type = perf_import_take(bytes + 24, 8),
				.read_format = perf_import_take(bytes + 32, 8),
				.id_all = perf_import_take(bytes + 40, 8) >> 18 & 1};
		s = read_ids(f, bytes + attr_size - SECTION_BYTES, (size_t)i);
	}
	return s;
}

static enum base_status perf_import_read_header(struct perf *f)
{
	uint8_t h[HEADER_BYTES];
	if (f->from->size_bytes < 16)
		return base_fail(f->err, BASE_ERR_FOREIGN, "%llu {byte|bytes} are no perf.data",
			(unsigned long long)f->from->size_bytes);
	enum base_status s = perf_import_read_bytes(f, 0, h, 16);
	if (s != BASE_OK)
		return s;
	if (perf_import_take(h, 8) != magic)
		return base_fail(f->err, BASE_ERR_FOREIGN,
			"does not begin with PERFILE2 in this machine's byte order");
	if (perf_import_take(h + 8, 8) < sizeof h)
		return base_fail(f->err, BASE_ERR_FOREIGN,
			"was written by perf record -o - to a pipe: record to a file");
	s = perf_import_read_bytes(f, 0, h, sizeof h);
	if (s != BASE_OK)
		return s;
	f->data_offset = perf_import_take(h + 40, 8);
	f->data_bytes = perf_import_take(h + 48, 8);
	uint64_t size = f->from->size_bytes;
	if (f->data_offset > size || f->data_bytes > size - f->data_offset) {
		if (f->data_offset > size)
			return base_fail(f->err, BASE_ERR_FOREIGN, "its data begin after its end");
		return base_fail(f->err, BASE_ERR_FOREIGN,
			"it is cut: the formats of its events stood after its data");
	}
	s = read_attrs(f, perf_import_take(h + 24, 8), perf_import_take(h + 32, 8),
		perf_import_take(h + 16, 8));
	memcpy(f->features, h + 72, sizeof f->features);
	return s == BASE_OK ? read_tracing(f) : s;
}

/* ---- records --------------------------------------------------------------------------------- */

/* Which event's: by its id, which stands at a known place when there are several kinds. */
static const struct attr *attr_of(const struct perf *f, const uint8_t *p, size_t length)
{
	const struct attr *first = f->attr;
	BASE_ASSUME(first != NULL); /* read_attrs() took one at least */
	uint64_t index;
	if (f->nr_attrs == 1 || !(first->sample_type & PERF_SAMPLE_IDENTIFIER) || length < 8)
		return first;
	return base_map_get(&f->attr_of, 0, perf_import_take(p, 8), &index) && index < f->nr_attrs
		       ? &f->attr[index]
		       : first;
}

static void skip_read(struct bytes *b, uint64_t format)
{
	unsigned each =
		1 + (format & PERF_FORMAT_ID ? 1u : 0u) + (format & 16 /* LOST */ ? 1u : 0u);
	unsigned times = (format & PERF_FORMAT_TOTAL_TIME_ENABLED ? 1u : 0u) +
			 (format & PERF_FORMAT_TOTAL_TIME_RUNNING ? 1u : 0u);
	uint64_t nr = format & PERF_FORMAT_GROUP ? perf_import_number(b, 8) : 1;
	(void)perf_import_skip(b, nr > RECORD_BYTES_MAX ? UINT64_MAX : (nr * each + times) * 8);
}

/* Of which process the thread is that was on the processor. */
static enum base_status perf_import_add_process(struct perf *f, uint32_t pid, uint32_t actor)
{
	struct format_sched_event of = {.time_ns = UINT64_MAX,
		.kind = FORMAT_SCHED_name,
		.actor = FORMAT_SCHED_UNKNOWN,
		.tid = actor,
		.pid = pid};
	uint64_t known;
	if (base_map_get(&f->attr_of, 1, actor, &known) && known == pid)
		return BASE_OK;
	if (base_map_put(&f->attr_of, 1, actor, pid) != BASE_OK)
		return base_fail(f->err, BASE_ERR_NOMEM, "out of memory for threads");
	return format_sched_add(f->sched, &of, f->err);
}

static enum base_status perf_import_add_sample(struct perf *f, const uint8_t *p, size_t length)
{
	const struct attr *a = attr_of(f, p, length);
	uint64_t t = a->sample_type, index;
	struct bytes b = {.p = p, .end = p + length};
	struct format_sched_event e = {.actor = FORMAT_SCHED_UNKNOWN};
	uint64_t need = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU | PERF_SAMPLE_RAW;
	if ((t & need) != need) {
		f->nr_other++;
		return BASE_OK;
	}
	(void)perf_import_skip(
		&b, (t & PERF_SAMPLE_IDENTIFIER ? 8u : 0u) + (t & PERF_SAMPLE_IP ? 8u : 0u));
	uint32_t pid = (uint32_t)perf_import_number(&b, 4);
	e.actor = (uint32_t)perf_import_number(&b, 4);
	e.time_ns = perf_import_number(&b, 8);
	(void)perf_import_skip(&b, (t & PERF_SAMPLE_ADDR ? 8u : 0u) +
					   (t & PERF_SAMPLE_ID ? 8u : 0u) +
					   (t & PERF_SAMPLE_STREAM_ID ? 8u : 0u));
	uint64_t cpu = perf_import_number(&b, 8);
	e.cpu = (uint16_t)cpu;
	(void)perf_import_skip(&b, t & PERF_SAMPLE_PERIOD ? 8u : 0u);
	if (t & PERF_SAMPLE_READ)
		skip_read(&b, a->read_format);
	if (t & PERF_SAMPLE_CALLCHAIN) {
		uint64_t nr = perf_import_number(&b, 8);
		(void)perf_import_skip(&b, nr > RECORD_BYTES_MAX ? UINT64_MAX : nr * 8);
	}
	uint64_t size = perf_import_number(&b, 4);
	const uint8_t *raw = perf_import_skip(&b, size);
	if (b.failed || size < 8) {
		f->nr_damaged++;
		return BASE_OK;
	}
	if (!base_map_get(&f->type_of, 0, perf_import_take(raw, 2), &index)) {
		f->nr_other++;
		return BASE_OK;
	}
	struct format_tracepoint_event event = {
		.type = &f->type[index - 1], .bytes = raw, .size_bytes = (size_t)size};
	struct format_sched_fields fields = {.ctx = &event, .get = format_tracepoint_get};
	uint32_t actor = e.actor;
	if (!format_sched_convert(f->sched, event.type->name, &fields, &e)) {
		f->nr_other++;
		return BASE_OK;
	}
	if (e.kind != FORMAT_SCHED_context_begin && e.kind != FORMAT_SCHED_context_end)
		e.context = (uint8_t)format_tracepoint_context(&event);
	enum base_status s = format_sched_add(f->sched, &e, f->err);
	if (s != BASE_OK || !pid || actor == FORMAT_SCHED_UNKNOWN)
		return s;
	return perf_import_add_process(f, pid, actor);
}

/* The time in what follows a record that is no sample; 0: from before the recording. */
static uint64_t perf_import_time_of(const struct perf *f, const uint8_t *p, size_t length)
{
	BASE_ASSUME(f->attr != NULL);
	uint64_t t = f->attr[0].sample_type;
	size_t after = (t & PERF_SAMPLE_ID ? 8u : 0) + (t & PERF_SAMPLE_STREAM_ID ? 8u : 0) +
		       (t & PERF_SAMPLE_CPU ? 8u : 0) + (t & PERF_SAMPLE_IDENTIFIER ? 8u : 0);
	if (!f->attr[0].id_all || !(t & PERF_SAMPLE_TIME) || length < after + 8)
		return 0;
	return perf_import_take(p + length - after - 8, 8);
}

static enum base_status add_comm(struct perf *f, const uint8_t *p, size_t length, unsigned misc)
{
	if (length < 9) {
		f->nr_damaged++;
		return BASE_OK;
	}
	bool exec = misc & MISC_COMM_EXEC && !f->has_exec;
	uint64_t time_ns = perf_import_time_of(f, p, length);
	struct format_sched_event e = {.time_ns = exec && time_ns ? time_ns : UINT64_MAX,
		.kind = exec && time_ns ? FORMAT_SCHED_exec : FORMAT_SCHED_name,
		.actor = exec && time_ns ? (uint32_t)perf_import_take(p + 4, 4)
					 : FORMAT_SCHED_UNKNOWN,
		.tid = (uint32_t)perf_import_take(p + 4, 4),
		.pid = (uint32_t)perf_import_take(p, 4),
		.name = format_sched_name(f->sched, (const char *)p + 8, length - 8)};
	if (misc & MISC_COMM_EXEC && f->has_exec)
		e.name = 0; /* not its first name */
	return format_sched_add(f->sched, &e, f->err);
}

/* fork and exit: pid, ppid, tid, ptid, time */
static enum base_status add_task(struct perf *f, const uint8_t *p, size_t length, bool is_fork)
{
	if (length < 24) {
		f->nr_damaged++;
		return BASE_OK;
	}
	uint64_t time_ns = perf_import_take(p + 16, 8);
	bool seen = is_fork ? f->has_fork : f->has_exit;
	struct format_sched_event e = {.time_ns = seen || !time_ns ? UINT64_MAX : time_ns,
		.kind = seen || !time_ns ? FORMAT_SCHED_name
			: is_fork        ? FORMAT_SCHED_fork
					 : FORMAT_SCHED_exit,
		.tid = (uint32_t)perf_import_take(p + 8, 4),
		.pid = (uint32_t)perf_import_take(p, 4)};
	e.actor = seen || !time_ns ? FORMAT_SCHED_UNKNOWN
		  : is_fork        ? (uint32_t)perf_import_take(p + 12, 4)
				   : e.tid;
	return format_sched_add(f->sched, &e, f->err);
}

/* What perf's child becomes by exec, which is called perf-exec until then: BASE_END when it is one of
 * the words. */
static enum base_status perf_import_look(
	struct perf *f, const uint8_t *p, size_t length, unsigned misc)
{
	const struct words *w = f->looks_for;
	if (length < 9 || !memchr(p + 8, 0, length - 8))
		return BASE_OK;
	const char *name = (const char *)p + 8;
	uint32_t pid = (uint32_t)perf_import_take(p, 4);
	if (!strcmp(name, "perf-exec"))
		f->started_pid = pid;
	if (!(misc & MISC_COMM_EXEC) || !pid || pid != f->started_pid)
		return BASE_OK;
	for (unsigned i = w->first; *name && i < w->nr; i++) {
		const char *slash = strrchr(w->word[i], '/');
		if (*w->word[i] == '-' ||
			strncmp(slash ? slash + 1 : w->word[i], name, COMM_MAX) != 0)
			continue;
		f->started_word = i;
		return BASE_END;
	}
	return BASE_OK;
}

static enum base_status perf_import_add_record(
	struct perf *f, uint32_t type, unsigned misc, const uint8_t *p, size_t length)
{
	struct format_sched_event lost = {
		.kind = FORMAT_SCHED_lost, .time_ns = UINT64_MAX, .actor = FORMAT_SCHED_UNKNOWN};
	if (f->looks_for)
		return type == PERF_RECORD_COMM ? perf_import_look(f, p, length, misc) : BASE_OK;
	switch (type) {
	case PERF_RECORD_SAMPLE:
		return perf_import_add_sample(f, p, length);
	case PERF_RECORD_COMM:
		return add_comm(f, p, length, misc);
	case PERF_RECORD_FORK:
		return add_task(f, p, length, true);
	case PERF_RECORD_EXIT:
		return add_task(f, p, length, false);
	case PERF_RECORD_LOST:
	case RECORD_LOST_SAMPLES:
		if (length < 16)
			return BASE_OK;
		lost.value = perf_import_take(p + (type == PERF_RECORD_LOST ? 8u : 0u), 8);
		return lost.value ? format_sched_add(f->sched, &lost, f->err) : BASE_OK;
	default:
		return BASE_OK;
	}
}

/* The whole records of what is unpacked; a part of one waits for the next piece. */
static enum base_status add_unpacked(struct perf *f)
{
	size_t used = 0;
	enum base_status s = BASE_OK;
	while (s == BASE_OK && f->nr_unpacked - used >= 8) {
		const uint8_t *p = f->unpacked + used;
		size_t size = (size_t)perf_import_take(p + 6, 2);
		if (size < 8) {
			f->nr_damaged++;
			used = f->nr_unpacked;
			break;
		}
		if (size > f->nr_unpacked - used)
			break;
		s = perf_import_add_record(f, (uint32_t)perf_import_take(p, 4),
			(unsigned)perf_import_take(p + 4, 2), p + 8, size - 8);
		used += size;
	}
	f->nr_unpacked -= used;
	memmove(f->unpacked, f->unpacked + used, f->nr_unpacked);
	return s;
}

/* A piece of perf record -z: the next bytes of one zstd stream. */
static enum base_status add_compressed(struct perf *f, const uint8_t *p, size_t length)
{
	if (!f->unzstd) {
		f->unzstd = ZSTD_createDStream();
		f->unpacked = base_alloc(CHUNK_BYTES);
	}
	if (!f->unzstd || !f->unpacked)
		return base_fail(f->err, BASE_ERR_NOMEM, "out of memory for unpacking");
	ZSTD_inBuffer in = {p, length, 0};
	enum base_status s = BASE_OK;
	for (bool full = true; s == BASE_OK && (in.pos < in.size || full);) {
		ZSTD_outBuffer out = {f->unpacked, CHUNK_BYTES, f->nr_unpacked};
		size_t before = in.pos, r = ZSTD_decompressStream(f->unzstd, &out, &in);
		if (ZSTD_isError(r) || (in.pos == before && out.pos == f->nr_unpacked)) {
			f->nr_compressed += in.pos < in.size || ZSTD_isError(r);
			break;
		}
		full = out.pos == out.size;
		f->nr_unpacked = out.pos;
		s = add_unpacked(f);
	}
	return s;
}

static enum base_status add_any(
	struct perf *f, uint32_t type, unsigned misc, const uint8_t *p, size_t length)
{
	if (type == RECORD_COMPRESSED)
		return add_compressed(f, p, length);
	if (type != RECORD_COMPRESSED2)
		return perf_import_add_record(f, type, misc, p, length);
	uint64_t size = length >= 8 ? perf_import_take(p, 8) : UINT64_MAX; /* the rest is padding */
	if (size <= length - 8)
		return add_compressed(f, p + 8, (size_t)size);
	f->nr_damaged++;
	return BASE_OK;
}

static enum base_status read_data(struct perf *f)
{
	uint64_t at = f->data_offset, end = at + f->data_bytes, told = 0;
	uint8_t *chunk = base_alloc(CHUNK_BYTES);
	size_t have = 0, used = 0;
	enum base_status s = BASE_OK;
	if (!chunk)
		return base_fail(f->err, BASE_ERR_NOMEM, "out of memory for records");
	while (s == BASE_OK && at < end) {
		if (have - used < RECORD_BYTES_MAX && at + (have - used) < end) {
			memmove(chunk, chunk + used, have - used);
			have -= used;
			used = 0;
			uint64_t more = end - at - have;
			size_t room = CHUNK_BYTES - have;
			size_t nr = more < room ? (size_t)more : room;
			s = perf_import_read_bytes(f, at + have, chunk + have, nr);
			have += s == BASE_OK ? nr : 0;
			continue;
		}
		const uint8_t *p = chunk + used;
		size_t left = have - used;
		uint32_t type = left >= 8 ? (uint32_t)perf_import_take(p, 4) : 0;
		size_t size = left >= 8 ? (size_t)perf_import_take(p + 6, 2) : 0;
		if (size < 8 || size > left) {
			f->cut = true;
			break;
		}
		s = add_any(f, type, (unsigned)perf_import_take(p + 4, 2), p + 8, size - 8);
		at += size;
		used += size;
		if (type == RECORD_AUXTRACE && size >= 16) { /* its bytes follow it */
			uint64_t extra = perf_import_take(p + 8, 8);
			at = extra > end - at ? end : at + extra;
			have = used = 0;
		}
		if (f->opts->progress && at - told > CHUNK_BYTES) {
			told = at;
			f->opts->progress(f->opts->progress_ctx, at, f->from->size_bytes);
		}
	}
	base_free(chunk);
	return s;
}

static void perf_import_note(struct perf *f, struct trace_writer *to, struct base_str *notes)
{
	format_note_count(
		notes, f->nr_other, "%s {sample says|samples say} nothing of scheduling: left out");
	format_note_count(notes, f->nr_damaged, "%s {record is|records are} damaged: left out");
	format_note_count(notes, f->nr_compressed,
		"%s compressed {piece|pieces} cannot be unpacked: left out; record without -z");
	if (f->cut)
		base_str_add(notes,
			"the file ends in the middle of a record: imported as far as it goes\n");
	trace_writer_count(to, TRACE_DIAG_import_skipped, f->nr_damaged + f->nr_compressed);
	trace_writer_count(to, TRACE_DIAG_import_cut, f->cut);
}

static void perf_import_fini(struct perf *f)
{
	format_sched_free(f->sched);
	ZSTD_freeDStream(f->unzstd);
	base_free(f->unpacked);
	base_free(f->attr);
	base_free(f->type);
	base_map_fini(&f->attr_of);
	base_map_fini(&f->type_of);
}

/* The program among the words of perf's command line, whose options only perf knows: the one that
 * its child becomes. */
enum base_status format_started_perf(
	const struct format_source *from, struct format_started *ret, struct base_err *err)
{
	struct words w = {0};
	struct format_import_options none = {0};
	struct perf f = {.from = from, .opts = &none, .err = err, .looks_for = &w};
	enum base_status s = perf_import_read_header(&f);
	if (s == BASE_OK)
		s = perf_import_read_words(&f, &w);
	if (s == BASE_OK && w.nr)
		s = read_data(&f);
	if (s == BASE_END) {
		char *word[WORDS_MAX + 1] = {0};
		for (uint32_t i = f.started_word; i < w.nr; i++)
			word[i - f.started_word] = (char *)(uintptr_t)w.word[i];
		base_str_add_command(&ret->command, word);
		ret->pid = f.started_pid;
		s = BASE_OK;
	}
	base_free(w.text);
	perf_import_fini(&f);
	return s;
}

enum base_status format_import_perf(const struct format_source *from, struct trace_writer *to,
	const struct format_import_options *opts, struct base_str *notes, struct base_err *err)
{
	struct perf f = {.from = from, .opts = opts, .err = err, .sched = format_sched_new()};
	enum base_status s = f.sched ? perf_import_read_header(&f)
				     : base_fail(err, BASE_ERR_NOMEM, "out of memory for events");
	if (s == BASE_OK) {
		format_sched_started(f.sched, opts->started);
		s = read_data(&f);
	}
	if (s == BASE_OK)
		s = format_sched_write(f.sched, to, notes, err);
	if (s == BASE_ERR_FOREIGN && f.nr_compressed)
		s = base_fail(err, BASE_ERR_FOREIGN,
			"its events are compressed (perf record -z): and cannot be "
			"unpacked: record without -z");
	if (s == BASE_OK)
		perf_import_note(&f, to, notes);
	perf_import_fini(&f);
	return s;
}
