/* SPDX-License-Identifier: Apache-2.0 */
/* slack_names.c - addresses of a memory stream into names, by the program's own files. */
#include "cmd/memory/slack.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* The same file is opened once; NULL: it is not there or has no symbols. */
static struct symbol_file *slack_names_symbols_of(struct cmd_slack_names *n, const char *path)
{
	for (size_t i = 0; i < n->nr_files; i++)
		if (!strcmp(n->file[i].path, path))
			return n->file[i].symbols;
	struct base_str copy = {0};
	base_str_add(&copy, path);
	if (copy.failed || base_grow(&n->file, &n->files_capacity, n->nr_files + 1,
				   sizeof *n->file) != BASE_OK) {
		base_str_fini(&copy);
		return NULL;
	}
	n->file[n->nr_files].path = copy.buf;
	n->file[n->nr_files].symbols = *path ? symbol_open(path, "") : NULL;
	return n->file[n->nr_files++].symbols;
}

/* Where a module of the stream is; a recorder may tell of the same one in many parts. False: no
 * memory. */
static bool slack_names_add_image(struct cmd_slack_names *n, const char *path, uint64_t bias)
{
	for (size_t i = 0; i < n->nr_images; i++)
		if (n->image[i].bias == bias && !strcmp(n->image[i].path, path))
			return true;
	if (base_grow(&n->image, &n->images_capacity, n->nr_images + 1, sizeof *n->image) !=
		BASE_OK)
		return false;
	n->image[n->nr_images++] = (struct cmd_slack_image){
		.path = path, .bias = bias, .symbols = slack_names_symbols_of(n, path)};
	return true;
}

/* The images of all modules that are known by now. */
static size_t images(struct cmd_slack_names *n)
{
	struct memory_linked at;
	while (n->source->ops->linked &&
		n->source->ops->linked(n->source, 0, false, n->nr_modules, &at) &&
		slack_names_add_image(n, at.path, -at.address))
		n->nr_modules++;
	return n->nr_images;
}

void cmd_slack_names_fini(struct cmd_slack_names *n)
{
	for (size_t i = 0; i < n->nr_files; i++) {
		base_free(n->file[i].path);
		symbol_close(n->file[i].symbols);
	}
	base_free(n->file);
	base_free(n->image);
	cmd_slack_types_fini(n);
	*n = (struct cmd_slack_names){0};
}

struct symbol_file *cmd_slack_symbols(
	struct cmd_slack_names *n, uint64_t code, struct memory_linked *ret)
{
	return n->source->ops->linked && n->source->ops->linked(n->source, code, true, 0, ret)
		       ? slack_names_symbols_of(n, ret->path)
		       : NULL;
}

static void add_file_line(struct base_str *out, const struct symbol_found *s)
{
	const char *slash = strrchr(s->file, '/');
	base_str_addf(out, "%s:%" PRIu64, slash ? slash + 1 : s->file, s->line);
}

/* What has no function, as the linker's stubs, goes by its section: ".plt". */
static bool find_code(struct cmd_slack_names *n, uint64_t address, struct memory_linked *at,
	struct symbol_found *ret)
{
	struct symbol_variable section;
	struct symbol_file *symbols = cmd_slack_symbols(n, address, at);
	if (!symbols)
		return false;
	if (symbol_code(symbols, at->address, ret) && ret->function)
		return true;
	if (!symbol_section(symbols, at->address, &section) || section.offset > at->address)
		return false;
	*ret = (struct symbol_found){
		.function = section.name, .function_offset = section.offset, .exact = true};
	return true;
}

static bool slack_names_name_code(
	struct cmd_slack_names *n, enum cmd_slack_by by, uint64_t address, struct base_str *out)
{
	struct memory_linked at;
	struct symbol_found s;
	if (!find_code(n, address, &at, &s))
		return false;
	bool line = s.file && s.line;
	if (by == CMD_SLACK_LINE && line) {
		add_file_line(out, &s);
		return true;
	}
	if (by == CMD_SLACK_INSTRUCTION && !s.exact) { /* "pigz+0x4a20": another such number */
		const char *plus = strrchr(s.function, '+');
		base_str_add_bytes(
			out, s.function, plus ? (size_t)(plus - s.function) : strlen(s.function));
		base_str_addf(out, "+0x%" PRIx64, at.address);
		return true;
	}
	base_str_add(out, s.function);
	if (by != CMD_SLACK_INSTRUCTION)
		return true;
	base_str_addf(out, "+0x%" PRIx64, at.address - s.function_offset);
	if (line) {
		base_str_add(out, " ");
		add_file_line(out, &s);
	}
	return true;
}

bool cmd_slack_data_at(struct cmd_slack_names *n, uint64_t address, struct base_str *out)
{
	for (size_t i = 0, nr = images(n); i < nr; i++) {
		const struct cmd_slack_image *image = &n->image[i];
		if (image->symbols && symbol_data(image->symbols, address - image->bias, out))
			return true;
	}
	return false;
}

/* Without the place in it. */
static bool name_data(struct cmd_slack_names *n, uint64_t address, struct base_str *out)
{
	struct symbol_variable v;
	bool found = cmd_slack_variable(n, address, &v) && v.offset <= address;
	if (found)
		base_str_add(out, v.name);
	return found;
}

void cmd_slack_name(
	struct cmd_slack_names *n, enum cmd_slack_by by, uint64_t address, struct base_str *out)
{
	struct memory_place p = {.name = "", .file = ""};
	bool data = by == CMD_SLACK_DATA;
	bool (*find)(const struct memory_source *, uint64_t, struct memory_place *) =
		data ? n->source->ops->data_place : n->source->ops->code_place;
	if (find && find(n->source, address, &p))
		base_str_add(out, p.name);
	else if (!address && !data)
		base_str_add(out, "(threads and unseen code)");
	else if (!(data ? name_data(n, address, out) : slack_names_name_code(n, by, address, out)))
		/* Neighbours on one page of a heap or stack go together. */
		base_str_addf(out, "0x%" PRIx64, data ? address & ~UINT64_C(4095) : address);
}

typedef bool find_first(struct symbol_file *, uint64_t, struct symbol_variable *);

/* Of what find() has in any image the first that ends behind `address`, as mapped; its image. */
static const struct cmd_slack_image *slack_names_first_behind(
	struct cmd_slack_names *n, uint64_t address, find_first *find, struct symbol_variable *ret)
{
	const struct cmd_slack_image *found = NULL;
	for (size_t i = 0, nr = images(n); i < nr; i++) {
		const struct cmd_slack_image *image = &n->image[i];
		struct symbol_variable v;
		uint64_t offset = address > image->bias ? address - image->bias : 0;
		if (!image->symbols || !find(image->symbols, offset, &v))
			continue;
		v.offset += image->bias;
		if (found && v.offset >= ret->offset)
			continue;
		*ret = v;
		found = image;
	}
	return found;
}

bool cmd_slack_variable(struct cmd_slack_names *n, uint64_t address, struct symbol_variable *ret)
{
	return slack_names_first_behind(n, address, symbol_variable, ret) != NULL;
}

bool cmd_slack_section(struct cmd_slack_names *n, uint64_t address, struct symbol_variable *ret,
	const char **ret_path)
{
	const struct cmd_slack_image *image =
		slack_names_first_behind(n, address, symbol_section, ret);
	*ret_path = image ? image->path : "";
	return image != NULL;
}

void cmd_slack_section_name(struct base_str *out, const char *path, const char *section)
{
	const char *slash = strrchr(path, '/');
	base_str_addf(out, "%s %s", slash ? slash + 1 : path, section);
}

bool cmd_slack_place(void *names, uint64_t address, bool code, struct memory_place *ret)
{
	struct cmd_slack_names *n = names;
	struct symbol_variable v;
	struct symbol_found s;
	struct memory_linked at;
	*ret = (struct memory_place){.name = "", .file = ""};
	if (!code) {
		if (!cmd_slack_variable(n, address, &v) || v.offset > address)
			return false;
		ret->name = v.name;
		ret->start = v.offset;
		ret->size_bytes = v.size_bytes;
		return true;
	}
	if (!find_code(n, address, &at, &s))
		return false;
	ret->name = s.function;
	ret->file = s.file ? s.file : "";
	ret->line = (uint32_t)s.line;
	return true;
}

void cmd_slack_heap(struct cmd_slack_names *n, uint64_t site, struct base_str *out)
{
	base_str_add(out, "heap block from ");
	if (!site) {
		base_str_add(out, "code that was not seen");
		return;
	}
	struct base_str function = {0}, line = {0};
	cmd_slack_name(n, CMD_SLACK_FUNCTION, site, &function);
	cmd_slack_name(n, CMD_SLACK_LINE, site, &line);
	if (strcmp(base_str_text(&function), base_str_text(&line)) != 0)
		base_str_addf(out, "%s %s", base_str_text(&function), base_str_text(&line));
	else /* without lines; a function may have several such calls */
		cmd_slack_name(n, CMD_SLACK_INSTRUCTION, site, out);
	base_str_fini(&function);
	base_str_fini(&line);
}

static int by_critical(const void *x, const void *y)
{
	const struct cmd_slack_named *a = x, *b = y;
	if (a->critical_cycles != b->critical_cycles)
		return a->critical_cycles < b->critical_cycles ? 1 : -1;
	return strcmp(a->name, b->name);
}

static struct cmd_slack_named *find_name(struct cmd_slack_named **g, size_t *nr, size_t *capacity,
	struct base_strtab *texts, struct base_map *index, const char *name)
{
	uint32_t id;
	uint64_t at;
	if (base_strtab_intern(texts, name, strlen(name), &id) != BASE_OK)
		return NULL;
	if (base_map_get(index, 0, id, &at))
		return &(*g)[at];
	struct base_str copy = {0};
	base_str_add(&copy, name);
	if (copy.failed || base_grow(g, capacity, *nr + 1, sizeof **g) != BASE_OK ||
		base_map_put(index, 0, id, *nr) != BASE_OK) {
		base_str_fini(&copy);
		return NULL;
	}
	(*g)[*nr] = (struct cmd_slack_named){.name = copy.buf, .least = UINT64_MAX};
	return &(*g)[(*nr)++];
}

static void slack_names_add_static(struct cmd_slack_named *to, const struct slack_static *c)
{
	to->critical_cycles += c->critical_cycles;
	to->executed += c->executed - c->outside;
	to->alike += c->alike;
	to->sum += c->sum;
	to->least = c->least < to->least ? c->least : to->least;
	to->taut_cycles = c->taut_cycles > to->taut_cycles ? c->taut_cycles : to->taut_cycles;
}

struct cmd_slack_named *cmd_slack_group(struct cmd_slack_names *n, const struct slack_result *r,
	enum cmd_slack_by by, size_t *ret_nr)
{
	struct cmd_slack_named *g = NULL;
	struct base_strtab *texts = base_strtab_new();
	struct base_map index = {0};
	struct base_str name = {0};
	size_t nr = 0, capacity = 0, all = by == CMD_SLACK_DATA ? r->nr_lines : r->nr_code;
	bool failed = !texts;
	for (size_t i = 0; i < all && !failed; i++) {
		base_str_reset(&name);
		if (by == CMD_SLACK_DATA && r->line[i].site)
			cmd_slack_heap(n, r->line[i].site, &name);
		else
			cmd_slack_name(n, by,
				by == CMD_SLACK_DATA ? r->line[i].address : r->code[i].code, &name);
		struct cmd_slack_named *to = name.failed ? NULL
							 : find_name(&g, &nr, &capacity, texts,
								   &index, base_str_text(&name));
		failed = !to;
		if (to && by != CMD_SLACK_DATA) {
			slack_names_add_static(to, &r->code[i]);
		} else if (to) {
			to->critical_cycles += r->line[i].critical_cycles;
			to->executed += r->line[i].times;
		}
	}
	base_str_fini(&name);
	base_map_fini(&index);
	base_strtab_free(texts);
	if (failed) {
		cmd_slack_group_free(g, nr);
		g = NULL;
		nr = 0;
	}
	if (nr)
		qsort(g, nr, sizeof *g, by_critical);
	*ret_nr = nr;
	return g;
}

void cmd_slack_group_free(struct cmd_slack_named *g, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		base_free(g[i].name);
	base_free(g);
}
