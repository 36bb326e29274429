/* SPDX-License-Identifier: Apache-2.0 */
/*
 * text.c - sources of one record a line: Valgrind's lackey (lackey/lk_main.c, --trace-mem=yes),
 * dinero's .din (Dinero IV, formats d and D), DynamoRIO's drmemtrace view tool (its documentation,
 * "Trace view").
 *
 * All are one sequence, in the true order of accesses as their recorder saw it.
 */
#include "memory/stream/files.h"

#include <string.h>

enum { LINE_MAX_BYTES = 4096, TOKENS_MAX = 16, DIN_SIZE_BYTES = 4, ITEMS_PER_LINE = 4 };

struct token {
	const char *text;
	size_t length;
};
struct line {
	struct token token[TOKENS_MAX];
	size_t nr;
};

struct record {    /* what a line says */
	char what; /* i fetch, r read, w write, m read and write of one instruction; 0: nothing */
	uint64_t address, size_bytes, code, tid;
};
/* False: not a line of this format. */
typedef bool (*parse_line)(const struct line *l, struct record *ret);

struct text {
	struct memory_source source;
	struct memory_file file;
	parse_line parse;
	bool has_code;    /* lines of instructions come before their accesses */
	uint64_t records; /* lines read */
	uint64_t tid[MEMORY_THREADS_MAX];
	uint64_t fetched_to[MEMORY_THREADS_MAX]; /* end of the last instruction; 0: none */
	uint32_t last_thread;
	struct record ahead; /* of another thread: begins the next batch */
	uint32_t ahead_thread;
	bool has_ahead;
	struct memory_item item[MEMORY_BATCH_MAX];
};

/* ---- words and numbers ----------------------------------------------------------------------- */

static bool text_is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

static void text_split(const char *text, size_t length, struct line *ret)
{
	ret->nr = 0;
	for (size_t i = 0; i < length && ret->nr < TOKENS_MAX;) {
		while (i < length && text_is_blank(text[i]))
			i++;
		size_t begin = i;
		while (i < length && !text_is_blank(text[i]))
			i++;
		if (i > begin)
			ret->token[ret->nr++] = (struct token){text + begin, i - begin};
	}
}

static unsigned digit(char c)
{
	if (c >= '0' && c <= '9')
		return (unsigned)(c - '0');
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? (unsigned)(c - 'a') + 10 : 16;
}

/* The whole of text is a number of that base. */
static bool text_number(const char *text, size_t length, unsigned base, uint64_t *ret)
{
	if (base == 16 && length > 2 && text[0] == '0' && (text[1] | 0x20) == 'x') {
		text += 2;
		length -= 2;
	}
	*ret = 0;
	for (size_t i = 0; i < length; i++) {
		unsigned d = digit(text[i]);
		if (d >= base || __builtin_mul_overflow(*ret, base, ret) ||
			__builtin_add_overflow(*ret, d, ret))
			return false;
	}
	return length > 0;
}

static bool word_is(const struct token *t, const char *word)
{
	return t->length == strlen(word) && !memcmp(t->text, word, t->length);
}

/* ---- the formats ----------------------------------------------------------------------------- */

/* "I  04016b80,3", " S 1ffefff9f8,8", " L ...", " M ..."; other lines are Valgrind's remarks. */
static bool parse_lackey(const struct line *l, struct record *ret)
{
	static const char from[] = "ILSM", to[] = "irwm";
	ret->what = 0;
	if (l->nr != 2 || l->token[0].length != 1 || !strchr(from, l->token[0].text[0]))
		return l->nr && l->token[0].length > 1 && l->token[0].text[0] == '=';
	const struct token *t = &l->token[1];
	const char *comma = memchr(t->text, ',', t->length);
	if (!comma || !text_number(t->text, (size_t)(comma - t->text), 16, &ret->address) ||
		!text_number(
			comma + 1, t->length - (size_t)(comma + 1 - t->text), 10, &ret->size_bytes))
		return false;
	ret->what = to[strchr(from, l->token[0].text[0]) - from];
	return true;
}

static bool parse_din(const struct line *l, struct record *ret)
{
	static const char from[] = "012rwi", to[] = "rwirwi";
	ret->what = 0;
	if (l->nr < 2 || l->token[0].length != 1 || !strchr(from, l->token[0].text[0]) ||
		!text_number(l->token[1].text, l->token[1].length, 16, &ret->address))
		return false;
	ret->size_bytes = DIN_SIZE_BYTES;
	if (l->nr > 2 && !text_number(l->token[2].text, l->token[2].length, 10, &ret->size_bytes))
		ret->size_bytes = DIN_SIZE_BYTES; /* format d: what follows is a remark */
	ret->what = to[strchr(from, l->token[0].text[0]) - from];
	return true;
}

/* What the view tool prints beside records: its head, its sums, lines of dashes. */
static bool drmemtrace_remark(const struct line *l)
{
	static const char *const first[] = {"Output", "<--record#->", "View", "T<", "Trace", "::"};
	const struct token *t = l->token;
	uint64_t n;
	for (size_t i = 0; i < BASE_COUNT(first) && l->nr; i++)
		if (word_is(t, first[i]))
			return true;
	return !l->nr || t[0].text[0] == '-' ||
	       (l->nr >= 3 && t[1].length == 1 && t[1].text[0] == ':' &&
		       text_number(t[0].text, t[0].length, 10, &n));
}

/* Words of records that are no access of the program (its documentation, "Trace view"); any other
 * is one that we do not know, and is told of. Prefetches and flushes ask for a line, but nothing is
 * read or written by them. */
static bool drmemtrace_no_access(const struct token *word)
{
	static const char *const known[] = {"<marker:", "<thread", "<header", "<footer",
		"<encoding", "<---", "<window", "iflush", "dflush", "pref", "pref-r-L1",
		"pref-r-L2", "pref-r-L3", "pref-w-L1", "pref-w-L2", "pref-w-L3", "pref-i-L1",
		"pref-i-L2", "pref-i-L3", "header", "footer", "marker", "thread", "pid",
		"encoding"};
	for (size_t i = 0; i < BASE_COUNT(known); i++)
		if (word_is(word, known[i]))
			return true;
	return false;
}

/* "  16   1:   3256418 ifetch   3 byte(s) @ 0x401026 ...", "read 8 byte(s) @ 0x7ff8 by PC 0x401" */
static bool parse_drmemtrace(const struct line *l, struct record *ret)
{
	const struct token *t = l->token;
	ret->what = 0;
	if (l->nr < 4 || t[1].text[t[1].length - 1] != ':' ||
		!text_number(t[2].text, t[2].length, 10, &ret->tid))
		return drmemtrace_remark(l);
	if (word_is(&t[3], "ifetch"))
		ret->what = 'i';
	else if (word_is(&t[3], "read"))
		ret->what = 'r';
	else if (word_is(&t[3], "write"))
		ret->what = 'w';
	else
		return drmemtrace_no_access(&t[3]);
	if (l->nr < 8 || !text_number(t[4].text, t[4].length, 10, &ret->size_bytes) ||
		!word_is(&t[5], "byte(s)") || !word_is(&t[6], "@") ||
		!text_number(t[7].text, t[7].length, 16, &ret->address))
		return false;
	if (l->nr > 10 && word_is(&t[9], "PC"))
		(void)text_number(t[10].text, t[10].length, 16, &ret->code);
	return true;
}

/* ---- lines into items ------------------------------------------------------------------------ */

/* The next line without its end; BASE_END. A line longer than the buffer's half is cut. */
static enum base_status text_next_line(
	struct text *x, const char **ret, size_t *ret_length, struct base_err *err)
{
	size_t unread = x->file.filled - x->file.at;
	const char *p = (const char *)x->file.buffer + x->file.at;
	const char *end = unread ? memchr(p, '\n', unread) : NULL;
	if (!end) {
		enum base_status s = memory_file_fill(&x->file, LINE_MAX_BYTES, &unread, err);
		if (s != BASE_OK)
			return s;
		if (!unread)
			return BASE_END;
		p = (const char *)x->file.buffer + x->file.at;
		end = memchr(p, '\n', unread);
	}
	*ret = p;
	*ret_length = end ? (size_t)(end - p) : unread;
	x->file.at += *ret_length + (end != NULL);
	x->records++;
	return BASE_OK;
}

static uint32_t text_find_thread(struct text *x, uint64_t tid)
{
	uint32_t nr = x->source.info.nr_threads;
	if (x->last_thread < nr && x->tid[x->last_thread] == tid)
		return x->last_thread;
	for (uint32_t i = 0; i < nr; i++)
		if (x->tid[i] == tid)
			return x->last_thread = i;
	return MEMORY_THREADS_MAX;
}

/* The next line that is a record, with its thread; BASE_END. */
static enum base_status text_next_record(
	struct text *x, struct record *ret, uint32_t *ret_thread, struct base_err *err)
{
	for (;;) {
		const char *text;
		size_t length;
		struct line l;
		enum base_status s = text_next_line(x, &text, &length, err);
		if (s != BASE_OK)
			return s;
		text_split(text, length, &l);
		*ret = (struct record){0};
		if (!l.nr)
			continue;
		if (!x->parse(&l, ret)) {
			memory_diag_add(&x->source.diags, MEMORY_DIAG_bad_record, 0, x->records);
			continue;
		}
		if (!ret->what)
			continue;
		*ret_thread = text_find_thread(x, ret->tid);
		enum memory_diag bad = MEMORY_DIAG_NR;
		if (*ret_thread == MEMORY_THREADS_MAX)
			bad = MEMORY_DIAG_bad_thread;
		else if (!ret->size_bytes || ret->size_bytes > UINT16_MAX)
			bad = MEMORY_DIAG_bad_size;
		else if (ret->address >= MEMORY_ADDRESS_LIMIT - ret->size_bytes)
			bad = MEMORY_DIAG_bad_address;
		if (bad == MEMORY_DIAG_NR)
			return BASE_OK;
		memory_diag_add(&x->source.diags, bad, *ret_thread, x->records);
	}
}

static void add_fetch(struct text *x, const struct record *r, uint32_t thread, size_t *nr)
{
	if (x->fetched_to[thread] && x->fetched_to[thread] != r->address)
		x->item[(*nr)++] = (struct memory_item){.kind = MEMORY_BRANCH,
			.address = r->address,
			.code = x->fetched_to[thread] - 1};
	x->fetched_to[thread] = r->address + r->size_bytes;
	x->item[(*nr)++] = (struct memory_item){.kind = MEMORY_BLOCK,
		.address = r->address,
		.code = r->address,
		.count = 1,
		.size_bytes = (uint16_t)r->size_bytes,
		.instructions = 1};
}

/* One access, or several when it is wider than an item may be (fxsave and the like). */
static void text_add_access(struct text *x, const struct record *r, enum memory_item_kind kind,
	uint64_t code, size_t *nr)
{
	for (uint64_t done = 0; done < r->size_bytes && *nr < MEMORY_BATCH_MAX;) {
		uint64_t part = r->size_bytes - done;
		part = part < MEMORY_ACCESS_MAX_BYTES ? part : MEMORY_ACCESS_MAX_BYTES;
		x->item[(*nr)++] = (struct memory_item){.kind = (uint8_t)kind,
			.address = r->address + done,
			.code = code,
			.size_bytes = (uint16_t)part,
			.instructions = !x->has_code && !done};
		done += part;
	}
}

static void text_add_record(struct text *x, const struct record *r, uint32_t thread, size_t *nr)
{
	if (r->what == 'i') {
		add_fetch(x, r, thread, nr);
		return;
	}
	uint64_t code = r->code;
	if (!code && *nr && x->item[*nr - 1].kind <= MEMORY_BLOCK)
		code = x->item[*nr - 1].code;
	if (r->what != 'w')
		text_add_access(x, r, MEMORY_LOAD, code, nr);
	if (r->what != 'r')
		text_add_access(x, r, MEMORY_STORE, code, nr);
}

/* How much room one line may need. */
static size_t text_room(const struct record *r)
{
	return ITEMS_PER_LINE + 2 * r->size_bytes / MEMORY_ACCESS_MAX_BYTES;
}

static enum base_status text_next(
	struct memory_source *source, int thread, struct memory_batch *ret, struct base_err *err)
{
	struct text *x = (struct text *)source;
	size_t nr = 0;
	enum base_status s = BASE_OK;
	if (thread > 0)
		return base_fail(err, BASE_ERR_USAGE, "this trace is one sequence");
	*ret = (struct memory_batch){.item = x->item, .first_record = x->records + 1};
	for (bool first = true;; first = false) {
		if (!x->has_ahead)
			s = text_next_record(x, &x->ahead, &x->ahead_thread, err);
		if (s != BASE_OK)
			break;
		x->has_ahead = true;
		if (first)
			ret->thread = x->ahead_thread;
		if (x->ahead_thread != ret->thread || nr + text_room(&x->ahead) > MEMORY_BATCH_MAX)
			break;
		x->has_ahead = false;
		text_add_record(x, &x->ahead, ret->thread, &nr);
	}
	ret->nr = nr;
	return s == BASE_END && nr ? BASE_OK : s;
}

static enum base_status text_rewind(struct memory_source *source, struct base_err *err)
{
	struct text *x = (struct text *)source;
	source->diags = (struct memory_diags){0};
	x->records = 0;
	x->has_ahead = false;
	memset(x->fetched_to, 0, sizeof x->fetched_to);
	return memory_file_rewind(&x->file, err);
}

static void text_close(struct memory_source *source)
{
	struct text *x = (struct text *)source;
	memory_file_close(&x->file);
	base_free(x);
}

static const struct memory_source_ops text_ops = {
	.next = text_next, .rewind = text_rewind, .close = text_close};

/* ---- opening --------------------------------------------------------------------------------- */

/* One pass to learn who there is. */
static enum base_status find_threads(struct text *x, struct base_err *err)
{
	for (;;) {
		const char *text;
		size_t length;
		struct line l;
		struct record r = {0};
		uint32_t *nr = &x->source.info.nr_threads;
		enum base_status s = text_next_line(x, &text, &length, err);
		if (s == BASE_END)
			break;
		if (s != BASE_OK)
			return s;
		text_split(text, length, &l);
		if (l.nr && x->parse(&l, &r) && r.what &&
			text_find_thread(x, r.tid) == MEMORY_THREADS_MAX &&
			*nr < MEMORY_THREADS_MAX)
			x->tid[(*nr)++] = r.tid;
	}
	if (!x->source.info.nr_threads)
		x->source.info.nr_threads = 1;
	return text_rewind(&x->source, err);
}

static enum base_status open_text(const char *const *paths, size_t nr_paths, parse_line parse,
	const char *format, bool threads, struct memory_source **ret, struct base_err *err)
{
	*ret = NULL;
	if (nr_paths != 1)
		return base_fail(err, BASE_ERR_USAGE, "a trace of format %s is one file", format);
	struct text *x = base_alloc(sizeof *x);
	if (!x)
		return base_fail(err, BASE_ERR_NOMEM, "no memory to read %s", paths[0]);
	*x = (struct text){.source = {.ops = &text_ops,
				   .info = {.nr_threads = threads ? 0 : 1,
					   .flags = MEMORY_SOURCE_TOTAL_ORDER,
					   .format = format,
					   .unseen = "what ran in the kernel"}},
		.file = {.fd = -1},
		.parse = parse};
	size_t unread;
	enum base_status s = memory_file_open(&x->file, paths[0], err);
	if (s == BASE_OK && threads)
		s = find_threads(x, err);
	if (s == BASE_OK)
		s = memory_file_fill(&x->file, MEMORY_FILE_BUFFER_BYTES / 2, &unread, err);
	for (size_t at = 0, lines = 0; s == BASE_OK && at < unread && lines < 1000; lines++) {
		const char *p = (const char *)x->file.buffer + at;
		const char *end = memchr(p, '\n', unread - at);
		struct line l;
		struct record r = {0};
		text_split(p, end ? (size_t)(end - p) : unread - at, &l);
		x->has_code |= l.nr && parse(&l, &r) && r.what == 'i';
		at = end ? (size_t)(end - (const char *)x->file.buffer) + 1 : unread;
	}
	if (x->has_code)
		x->source.info.flags |= MEMORY_SOURCE_INSTRUCTIONS;
	if (s != BASE_OK) {
		text_close(&x->source);
		return s;
	}
	*ret = &x->source;
	return BASE_OK;
}

/* Of the first lines, the share that parses and says something, in percent; the format's own mark
 * counts for certain. */
static unsigned text_share(const uint8_t *bytes, size_t size_bytes, parse_line parse)
{
	unsigned lines = 0, good = 0;
	const char *text = (const char *)bytes, *end = text + size_bytes;
	while (text < end) {
		const char *stop = memchr(text, '\n', (size_t)(end - text));
		if (!stop)
			break;
		struct line l;
		struct record r = {0};
		text_split(text, (size_t)(stop - text), &l);
		lines += l.nr != 0;
		good += l.nr && parse(&l, &r) && r.what;
		text = stop + 1;
	}
	return lines ? good * 80 / lines : 0;
}

#define TEXT_SOURCE(name, threads, mark)                                                           \
	unsigned memory_source_##name##_probe(                                                     \
		const uint8_t *bytes, size_t size_bytes, const char *path);                        \
	unsigned memory_source_##name##_probe(                                                     \
		const uint8_t *bytes, size_t size_bytes, const char *path)                         \
	{                                                                                          \
		(void)path;                                                                        \
		unsigned sure = text_share(bytes, size_bytes, parse_##name);                       \
		if (size_bytes > sizeof(mark) - 1 &&                                               \
			memmem(bytes, size_bytes, mark, sizeof(mark) - 1))                         \
			sure = sure > 90 ? sure : 90;                                              \
		return sure;                                                                       \
	}                                                                                          \
	enum base_status memory_source_##name##_open(const char *const *paths, size_t nr_paths,    \
		struct memory_source **ret, struct base_err *err);                                 \
	enum base_status memory_source_##name##_open(const char *const *paths, size_t nr_paths,    \
		struct memory_source **ret, struct base_err *err)                                  \
	{                                                                                          \
		return open_text(paths, nr_paths, parse_##name, #name, threads, ret, err);         \
	}
TEXT_SOURCE(lackey, false, "Lackey, an example Valgrind tool")
TEXT_SOURCE(din, false, "\0din has no mark")
TEXT_SOURCE(drmemtrace, true, "<--record#-> <--instr#->:")
