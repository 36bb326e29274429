/* SPDX-License-Identifier: Apache-2.0 */
/* import.c - the table of import formats. */
#include "format/unpack.h"

#include <string.h>

static const struct format_import_desc imports[] = {
#define IMPORT(name, flags, started, doc) {#name, doc, flags, format_import_##name, started},
#include "format/imports.def"
};

const struct format_import_desc *format_import_table(size_t *ret_nr)
{
	*ret_nr = BASE_COUNT(imports);
	return imports;
}

const struct format_import_desc *format_import_find(const char *name)
{
	for (size_t i = 0; i < BASE_COUNT(imports); i++)
		if (!strcmp(imports[i].name, name))
			return &imports[i];
	return NULL;
}

enum base_status format_import_started(const struct format_import_desc *f,
	const struct format_source *from, struct format_started *ret, struct base_err *err)
{
	struct format_unpacked u;
	*ret = (struct format_started){0};
	if (!f->started)
		return BASE_OK;
	enum base_status s = format_unpack(from, &u, err);
	if (s == BASE_OK)
		s = f->started(&u.source, ret, err);
	format_unpack_fini(&u);
	if (s == BASE_OK && ret->command.failed)
		s = base_fail(err, BASE_ERR_NOMEM, "out of memory for a command line");
	if (s != BASE_OK)
		ret->pid = 0;
	return s == BASE_ERR_NOMEM ? s : BASE_OK;
}

enum base_status format_import(const struct format_import_desc *f, const struct format_source *from,
	struct trace_writer *to, const struct format_import_options *opts, struct base_str *notes,
	struct base_err *err)
{
	struct base_str unread = {0};
	struct format_unpacked u;
	bool is_one = !(f->flags & FORMAT_IMPORT_MANY);
	enum base_status s = BASE_OK;
	u = (struct format_unpacked){.source = *from};
	if (is_one)
		s = format_unpack(from, &u, err);
	if (s == BASE_OK)
		s = f->import(is_one ? &u.source : from, to, opts, notes ? notes : &unread, err);
	if (s == BASE_OK && u.cut) {
		base_str_add(notes ? notes : &unread,
			"the compressed file is cut or damaged: imported as far as it goes\n");
		trace_writer_count(to, TRACE_DIAG_import_cut, 1);
	}
	format_unpack_fini(&u);
	base_str_fini(&unread);
	return s == BASE_OK ? s
			    : base_cause(err, s, "while importing %s as %s", from->name, f->name);
}

void format_note_count(struct base_str *notes, uint64_t n, const char *fmt)
{
	if (!n || !notes)
		return;
	base_str_add_counted(notes, fmt, n);
	base_str_add(notes, "\n");
}
