/* SPDX-License-Identifier: Apache-2.0 */
/* html.c - the page of a trace, in a file: for `report --html` and `view`. */
#include "cmd/cmd.h"

#include "format/format.h"
#include "report/page/html.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static enum base_status html_keep(void *ctx, const void *bytes, size_t length, struct base_err *err)
{
	struct base_str *text = ctx;
	base_str_add_bytes(text, bytes, length);
	return text->failed ? base_fail(err, BASE_ERR_NOMEM, "out of memory for call paths")
			    : BASE_OK;
}

/* All waiting by call path, as `longpole export --format=collapsed --weight=wait` has it. */
static enum base_status waits_by_call_path(
	const struct report_run *run, struct model *m, struct base_str *ret, struct base_err *err)
{
	struct format_input in = {
		.reader = run->reader, .model = m, .name = run->trace_path, .tool = "longpole"};
	struct format_options fo = {
		.from_ns = run->from_ns, .to_ns = run->to_ns, .weight = FORMAT_WEIGHT_wait};
	struct format_sink sink = {.write = html_keep, .ctx = ret};
	const struct format_desc *f = format_find("collapsed");
	BASE_ASSERT(f != NULL);
	return format_export(f, &in, &fo, &sink, err);
}

bool cmd_may_replace(const char *path)
{
	struct stat link, file;
	if (lstat(path, &link))
		return true;
	bool system = !strncmp(path, "/dev/", 5) || !strncmp(path, "/proc/", 6);
	return !stat(path, &file) && (S_ISREG(file.st_mode) || S_ISDIR(file.st_mode)) &&
	       !(S_ISLNK(link.st_mode) && system);
}

/* A file appears whole or not at all: a name of its own first. */
int cmd_write_file_bytes(struct cmd *c, const struct base_str *bytes, const char *path)
{
	struct base_str part = {0};
	struct stat there;
	struct base_str name = {0};
	enum base_status s = base_output_name(path, &name, &c->err);
	if (s != BASE_OK) {
		base_str_fini(&name);
		return cmd_fail(c, s);
	}
	path = name.buf;
	/* A pipe, or what /dev/stdout leads to, is written to; only a file is replaced. */
	bool replace = lstat(path, &there) || S_ISREG(there.st_mode);
	base_str_addf(&part, replace ? "%s.part" : "%s", path);
	if (bytes->failed || part.failed) {
		base_str_fini(&part);
		base_str_fini(&name);
		return cmd_fail(c, base_fail(&c->err, BASE_ERR_NOMEM, "out of memory"));
	}
	const char *temporary = base_str_text(&part);
	if (replace)
		unlink(temporary); /* of a run that was killed, or a link: it is not followed */
	FILE *f = base_output_stream(temporary, BASE_OUTPUT_PRIVATE, &c->err);
	s = f ? BASE_OK : c->err.status;
	if (f && fwrite(bytes->buf, 1, bytes->length, f) != bytes->length)
		s = base_fail_errno(&c->err, errno, "%s: writing", path);
	if (f && fclose(f) && s == BASE_OK)
		s = base_fail_errno(&c->err, errno, "%s: writing", path);
	if (s == BASE_OK && replace && rename(temporary, path))
		s = base_fail_errno(&c->err, errno, "%s: renaming", path);
	if (f && s != BASE_OK && replace)
		unlink(temporary);
	base_str_fini(&part);
	base_str_fini(&name);
	return s == BASE_OK ? CMD_OK : cmd_fail(c, s);
}

int cmd_write_file(struct cmd *c, struct base_str *text, const char *path)
{
	base_str_make_shown(text, BASE_SHOWN_LINES);
	return cmd_write_file_bytes(c, text, path);
}

static int make_page(
	struct cmd *c, const char *trace, const char *path, json_t *const *with, size_t nr_with)
{
	struct report_run run;
	struct report_html *h = NULL;
	struct base_str page = {0};
	int exit_status = cmd_open_threads(c, trace, &run);
	if (exit_status != CMD_OK)
		return exit_status;
	struct report_html_options opts = {
		.waits_by_call_path = waits_by_call_path, .attached = with, .nr_attached = nr_with};
	enum base_status s = report_html_build(&run, &opts, &h, &c->err);
	if (s == BASE_OK) {
		report_html_page(&page, h);
		cmd_progress_clear(c);
		exit_status = cmd_write_file(c, &page, path);
	} else {
		exit_status =
			cmd_fail(c, base_cause(&c->err, s, "while making a page of %s", trace));
	}
	if (exit_status == CMD_OK)
		cmd_note(c, "wrote %s (%.1f MB)", path, (double)page.length / 1e6);
	report_html_free(h);
	base_str_fini(&page);
	cmd_close(c, &run);
	return exit_status;
}

enum { ATTACHED_MAX = 8 };
#define ATTACHED_BYTES_MAX ((size_t)4 << 20) /* each: the page's data have to fit as well */

struct attached {
	json_t *document[ATTACHED_MAX];
	size_t nr;
};

static void attached_free(struct attached *a)
{
	for (size_t i = 0; i < a->nr; i++)
		json_decref(a->document[i]);
}

static int html_attach(struct cmd *c, struct attached *a, const char *path)
{
	json_error_t why;
	const char *name;
	char *text = cmd_read_file(c, path, ATTACHED_BYTES_MAX);
	if (!text)
		return CMD_ENVIRONMENT;
	json_t *document = json_loads(text, 0, &why);
	base_free(text);
	if (!document)
		return cmd_usage(c, "--with=%s: line %d: %s", path, why.line, why.text);
	if (!report_html_attachable(document, &name)) {
		json_decref(document);
		return cmd_usage(c,
			"--with=%s: no answer of longpole ciat, deadlock or noc sim (with --json)",
			path);
	}
	a->document[a->nr++] = document;
	return CMD_OK;
}

static int html_attach_all(struct cmd *c, struct attached *a)
{
	const char *path[ATTACHED_MAX];
	size_t nr = cmd_values(c, "with", path, BASE_COUNT(path));
	int exit_status = CMD_OK;
	for (size_t i = 0; exit_status == CMD_OK && i < nr; i++)
		exit_status = html_attach(c, a, path[i]);
	return exit_status;
}

int cmd_html_trace(struct cmd *c, const char *trace, const char *path)
{
	struct attached with = {0};
	int exit_status = html_attach_all(c, &with);
	if (exit_status == CMD_OK)
		exit_status = make_page(c, trace, path, with.document, with.nr);
	attached_free(&with);
	return exit_status;
}
