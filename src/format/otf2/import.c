/* SPDX-License-Identifier: Apache-2.0 */
/* import.c - an OTF2 archive (Score-P's, and its kin's) as a trace: what the reader hands over, taken. */
#include "format/otf2/private.h"

#include "config.h"

#include <string.h>
#include <sys/stat.h>

enum { OTF2_TEXT_BYTES_MAX = 4096 };

static enum base_status otf2_take_text(
	void *ctx, const char *text, size_t length, struct base_err *err)
{
	struct otf2_import *im = ctx;
	length = strnlen(text, length < OTF2_TEXT_BYTES_MAX ? length : OTF2_TEXT_BYTES_MAX);
	if (base_strtab_intern(im->text, text, length, &im->said) != BASE_OK)
		return base_fail(err, BASE_ERR_NOMEM, "out of memory for names");
	return BASE_OK;
}

static enum base_status otf2_take_item(
	struct otf2_import *im, const struct otf2_item *i, struct base_err *err)
{
	enum base_status s = BASE_OK;
	bool is_definition = i->kind < OTF2_begin_ITEM;
	if (i->kind >= OTF2_KIND_NR || (is_definition && im->is_settled) ||
		(!is_definition && i->location >= im->nr_locations))
		return base_fail(err, BASE_ERR_FOREIGN,
			"what its reader hands over makes no sense any more");
	if (is_definition)
		return format_otf2_take_definition(im, i, err);
	if (!im->is_settled)
		s = format_otf2_settle(im, err);
	return s == BASE_OK ? format_otf2_take_event(im, i, err) : s;
}

static enum base_status otf2_take_items(
	void *ctx, const uint8_t *bytes, size_t nr_bytes, struct base_err *err)
{
	enum base_status s = BASE_OK;
	struct otf2_item i;
	if (nr_bytes % sizeof i)
		return base_fail(err, BASE_ERR_FOREIGN,
			"what its reader hands over makes no sense any more");
	for (const uint8_t *end = bytes + nr_bytes; s == BASE_OK && bytes < end;
		bytes += sizeof i) {
		memcpy(&i, bytes, sizeof i);
		s = otf2_take_item(ctx, &i, err);
	}
	return s;
}

struct otf2_import *format_otf2_new(struct trace_writer *to, const char *program)
{
	struct otf2_import *im = base_alloc(sizeof *im);
	if (!im)
		return NULL;
	*im = (struct otf2_import){.to = to,
		.program = program,
		.text = base_strtab_new(),
		.items = {.text = otf2_take_text, .items = otf2_take_items, .ctx = im}};
	return im->text ? im : format_otf2_free(im);
}

struct otf2_import *format_otf2_free(struct otf2_import *im)
{
	if (!im)
		return NULL;
	void *owned[] = {im->node, im->process, im->location, im->region, im->group, im->comm,
		im->member, im->group_member, im->window};
	for (size_t i = 0; i < BASE_COUNT(owned); i++)
		base_free(owned[i]);
	base_map_fini(&im->ids);
	base_strtab_free(im->text);
	format_otf2_now_fini(&im->now);
	base_free(im);
	return NULL;
}

const struct format_apart_items *format_otf2_items(struct otf2_import *im)
{
	return &im->items;
}

enum base_status format_otf2_close(
	struct otf2_import *im, struct base_str *notes, struct base_err *err)
{
	enum base_status s = format_otf2_end_location(im, true, err);
	if (s == BASE_OK && !im->is_settled)
		s = format_otf2_settle(im, err);
	format_note_count(notes, im->nr_unknown,
		"%s {event is|events are} of a communicator that is not several ranks' (of one "
		"rank, or of two groups): left out");
	format_note_count(notes, im->nr_open,
		"%s {receive or collective operation was|receives and collective operations were} "
		"never complete: left out");
	format_note_count(notes, im->nr_back,
		"%s {event is|events are} earlier than the one before: taken as at the same time");
	trace_writer_count(im->to, TRACE_DIAG_import_skipped, im->nr_open);
	trace_writer_count(im->to, TRACE_DIAG_time_raised, im->nr_back);
	return s;
}

#if LONGPOLE_OTF2

/* The archive's directory is called after the program, if the program's user called it so. */
static void otf2_program(const char *path, struct base_str *ret)
{
	const char *slash = strrchr(path, '/'), *begin;
	if (!slash || slash == path) {
		base_str_add(ret, "program");
		return;
	}
	while (slash > path && slash[-1] == '/') /* DIR//traces.otf2 */
		slash--;
	begin = slash;
	while (begin > path && begin[-1] != '/')
		begin--;
	base_str_add_bytes(ret, begin, (size_t)(slash - begin));
}

enum base_status format_import_otf2(const struct format_source *from, struct trace_writer *to,
	const struct format_import_options *opts, struct base_str *notes, struct base_err *err)
{
	uint64_t count[FORMAT_APART_COUNTS] = {0};
	struct base_str program = {0}, anchor = {0};
	struct stat st;
	(void)opts;
	base_str_add(&anchor, from->path);
	if (!stat(from->path, &st) && S_ISDIR(st.st_mode))
		base_str_add(&anchor, "/traces.otf2"); /* as Score-P calls it */
	otf2_program(base_str_text(&anchor), &program);
	struct otf2_import *im = format_otf2_new(to, base_str_text(&program));
	const struct format_apart a = {.library = "libotf2",
		.path = base_str_text(&anchor),
		.read_items = format_otf2_read,
		.items = im ? format_otf2_items(im) : NULL};
	enum base_status s = BASE_ERR_NOMEM;
	if (im)
		s = format_read_apart(&a, NULL, count, err);
	else
		base_fail(err, s, "out of memory for events");
	if (s == BASE_OK)
		s = format_otf2_close(im, notes, err);
	if (s == BASE_OK) {
		format_note_count(notes, count[OTF2_COUNT_OTHER],
			"%s {event is|events are} of accelerators or metrics: left out");
		format_note_count(notes, count[OTF2_COUNT_CUT],
			"of %s {thread|threads} the events are missing, cut or damaged: imported "
			"as far as they go");
		trace_writer_count(to, TRACE_DIAG_import_cut, count[OTF2_COUNT_CUT] > 0);
	}
	format_otf2_free(im);
	base_str_fini(&program);
	base_str_fini(&anchor);
	return s;
}

#else

enum base_status format_import_otf2(const struct format_source *from, struct trace_writer *to,
	const struct format_import_options *opts, struct base_str *notes, struct base_err *err)
{
	(void)from, (void)to, (void)opts, (void)notes;
	return base_fail(err, BASE_ERR_ENV,
		"this longpole was built without libotf2: install it (Debian: libotf2-trace-dev) "
		"and build again");
}

#endif
