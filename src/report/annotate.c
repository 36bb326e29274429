/* SPDX-License-Identifier: Apache-2.0 */
/* annotate.c - samples by line of a function (annotate.h): gathering, and reading the sources. */
#include "report/annotate.h"
#include "report/private.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FRAMES_MAX = 128, AROUND_LINES = 4, NAMED_MAX = 6, LINE_BYTES_MAX = 400 };
#define SOURCE_BYTES_MAX ((size_t)16 << 20)

struct annotate_line { /* of one function in one file */
	uint32_t function, file;
	uint64_t line, nr_own, nr_all;
};
struct annotate_function {
	uint32_t name;
	uint64_t nr_own, nr_all;
};
struct annotate {
	const struct report_run *run;
	struct model *m;
	struct base_strtab *texts;
	struct base_map path_count;  /* (site, stack) -> samples */
	struct base_map line_of;     /* (function and file, line) -> index */
	struct base_map function_of; /* text -> index */
	struct annotate_line *line;
	size_t nr_lines, line_capacity;
	struct annotate_function *function;
	size_t nr_functions, function_capacity;
	uint64_t nr_samples;
	enum base_status status; /* of a walk over a map */
	struct report_annotation *out;
};

/* ---- gathering ------------------------------------------------------------------------------- */

static enum base_status annotate_count_paths(struct annotate *a, struct base_err *err)
{
	const struct report_run *run = a->run;
	struct trace_batch b;
	enum base_status s = trace_reader_rewind(run->reader, err);
	while (s == BASE_OK && (s = trace_reader_next(run->reader, &b, err)) == BASE_OK)
		for (size_t i = 0; s == BASE_OK && i < b.nr; i++) {
			const struct trace_record *r = &b.record[i];
			uint64_t nr = 0;
			if (r->kind != TRACE_sample || r->time_ns < run->from_ns ||
				(run->to_ns && r->time_ns >= run->to_ns))
				continue;
			(void)base_map_get(
				&a->path_count, r->u.sample.site, r->u.sample.stack, &nr);
			if (base_map_put(&a->path_count, r->u.sample.site, r->u.sample.stack,
				    nr + 1) != BASE_OK)
				return report_no_memory(err);
			a->nr_samples++;
		}
	return s == BASE_END ? BASE_OK : s;
}

/* Outermost first; what a sample without a symbol is in has its place for a name. */
static size_t annotate_frames(
	struct annotate *a, uint32_t site, uint32_t stack, struct model_frame *ret)
{
	size_t nr = model_stack_frames(a->m, stack, ret, FRAMES_MAX - MODEL_FRAMES_MAX);
	unsigned own = site ? model_site_frames(a->m, site, ret + nr) : 0;
	if (site && (!own || !*ret[nr].function)) {
		ret[nr] = (struct model_frame){.function = model_site_text(a->m, site), .file = ""};
		own = 1;
	}
	return nr + own;
}

static enum base_status annotate_function_of(struct annotate *a, uint32_t name, size_t *ret)
{
	uint64_t at = a->nr_functions;
	if (base_map_get(&a->function_of, 0, name, &at)) {
		*ret = (size_t)at;
		return BASE_OK;
	}
	enum base_status s = base_grow(
		&a->function, &a->function_capacity, a->nr_functions + 1, sizeof *a->function);
	if (s == BASE_OK)
		s = base_map_put(&a->function_of, 0, name, at);
	if (s == BASE_OK)
		a->function[a->nr_functions++] = (struct annotate_function){.name = name};
	*ret = (size_t)at;
	return s;
}

static enum base_status annotate_line_of(
	struct annotate *a, uint32_t function, uint32_t file, uint64_t line, size_t *ret)
{
	uint64_t at = a->nr_lines, key = (uint64_t)function << 32 | file;
	if (base_map_get(&a->line_of, key, line, &at)) {
		*ret = (size_t)at;
		return BASE_OK;
	}
	enum base_status s =
		base_grow(&a->line, &a->line_capacity, a->nr_lines + 1, sizeof *a->line);
	if (s == BASE_OK)
		s = base_map_put(&a->line_of, key, line, at);
	if (s == BASE_OK)
		a->line[a->nr_lines++] =
			(struct annotate_line){.function = function, .file = file, .line = line};
	*ret = (size_t)at;
	return s;
}

struct annotate_seen { /* of one call path: each function and each line once */
	size_t function[FRAMES_MAX], line[FRAMES_MAX];
	size_t nr_functions, nr_lines;
};

static bool annotate_once(size_t *seen, size_t *nr, size_t what)
{
	for (size_t i = 0; i < *nr; i++)
		if (seen[i] == what)
			return false;
	seen[(*nr)++] = what;
	return true;
}

static enum base_status annotate_add_frame(struct annotate *a, struct annotate_seen *seen,
	const struct model_frame *f, uint64_t nr, bool own)
{
	uint32_t name, file;
	size_t function, line;
	if (!*f->function)
		return BASE_OK;
	enum base_status s = base_strtab_intern(a->texts, f->function, strlen(f->function), &name);
	if (s == BASE_OK)
		s = base_strtab_intern(a->texts, f->file, strlen(f->file), &file);
	if (s == BASE_OK)
		s = annotate_function_of(a, name, &function);
	if (s == BASE_OK)
		s = annotate_line_of(a, name, file, f->line, &line);
	if (s != BASE_OK)
		return s;
	if (annotate_once(seen->function, &seen->nr_functions, function))
		a->function[function].nr_all += nr;
	if (annotate_once(seen->line, &seen->nr_lines, line))
		a->line[line].nr_all += nr;
	a->function[function].nr_own += own ? nr : 0;
	a->line[line].nr_own += own ? nr : 0;
	return BASE_OK;
}

static bool annotate_add_path(void *ctx, uint64_t site, uint64_t stack, uint64_t nr_samples)
{
	struct annotate *a = ctx;
	struct model_frame frame[FRAMES_MAX];
	struct annotate_seen seen = {0};
	size_t nr = annotate_frames(a, (uint32_t)site, (uint32_t)stack, frame);
	for (size_t i = 0; a->status == BASE_OK && i < nr; i++)
		a->status = annotate_add_frame(a, &seen, &frame[i], nr_samples, i + 1 == nr);
	return a->status == BASE_OK;
}

/* ---- which functions ------------------------------------------------------------------------- */

/* 3: the name; 2: but for parameters, or but for what it is in; 1: it contains it; 0: another. */
static int annotate_match(const char *name, const char *want)
{
	size_t length = strlen(want);
	const char *found = want ? strstr(name, want) : NULL;
	if (!strcmp(name, want))
		return 3;
	for (const char *p = found; p; p = strstr(p + 1, want)) {
		bool begins = p == name || p[-1] == ':' || p[-1] == ' ';
		bool ends = !p[length] || p[length] == '(' || p[length] == '<' || p[length] == '[';
		if (begins && ends)
			return 2;
	}
	return found ? 1 : 0;
}

static int annotate_by_samples(const void *x, const void *y)
{
	const struct annotate_function *a = x, *b = y;
	if (a->nr_all != b->nr_all)
		return a->nr_all < b->nr_all ? 1 : -1;
	if (a->nr_own != b->nr_own)
		return a->nr_own < b->nr_own ? 1 : -1;
	return a->name < b->name ? -1 : a->name > b->name;
}

static enum base_status annotate_not_found(
	const struct annotate *a, const char *want, struct base_err *err)
{
	struct base_str known = {0};
	if (!a->nr_samples)
		return base_fail(err, BASE_ERR_NOTFOUND,
			"the trace has no samples of the processor (longpole record takes them "
			"where perf_event is allowed; 'longpole doctor' says why not)");
	for (size_t i = 0; i < a->nr_functions && i < NAMED_MAX; i++) {
		base_str_add(&known, i ? ", " : "");
		report_name_add(&known, base_strtab_get(a->texts, a->function[i].name));
	}
	enum base_status s =
		known.failed ? report_no_memory(err)
			     : base_fail(err, BASE_ERR_NOTFOUND,
				       "no sample is in a function '%s'; those with most are %s",
				       want, base_str_text(&known));
	base_str_fini(&known);
	return s;
}

/* The best kind of match that there is, and of that kind those with most samples: they come first,
 * *ret_nr of them. */
static enum base_status annotate_choose(struct annotate *a,
	const struct report_annotate_options *opts, size_t *ret_nr, struct base_err *err)
{
	int best = 0;
	if (a->nr_functions)
		qsort(a->function, a->nr_functions, sizeof *a->function, annotate_by_samples);
	*ret_nr = 0;
	for (size_t i = 0; opts->function && i < a->nr_functions; i++) {
		int match = annotate_match(
			base_strtab_get(a->texts, a->function[i].name), opts->function);
		best = match > best ? match : best;
	}
	if (opts->function ? !best : !a->nr_functions)
		return annotate_not_found(a, opts->function ? opts->function : "", err);
	for (size_t i = 0; i < a->nr_functions && *ret_nr < opts->nr_functions; i++)
		if (!opts->function ||
			annotate_match(base_strtab_get(a->texts, a->function[i].name),
				opts->function) == best)
			a->function[(*ret_nr)++] = a->function[i];
	return BASE_OK;
}

/* ---- sources --------------------------------------------------------------------------------- */

static const char *annotate_why(struct annotate *a, const char *path, const char *why)
{
	struct base_str s = {0};
	base_str_addf(&s, "%s: %s", path, why);
	const char *text = report_clean(a->out->arena, base_str_text(&s));
	base_str_fini(&s);
	return text;
}

/* A trace may come from anywhere: it makes nobody print (or mail, in a page) what is no source. */
static bool annotate_is_source(const char *path)
{
	static const char *const suffixes[] = {".c", ".cc", ".cpp", ".cxx", ".c++", ".C", ".h",
		".hh", ".hpp", ".hxx", ".inl", ".inc", ".ipp", ".tcc", ".tpp", ".def", ".rs", ".go",
		".s", ".S", ".asm", ".f", ".f90", ".f95", ".f03", ".f08", ".F", ".F90", ".d",
		".zig", ".nim", ".swift", ".m", ".mm", ".cu", ".cuh", ".cl", ".ml", ".hs", ".java",
		".kt", ".py", ".pyx", ".js", ".ts", ".adb", ".ads", ".pas", ".cr", ".v", ".y", ".l",
		".re", ".rl"};
	static const char headers[] = "/usr/include/"; /* C++'s have no suffix */
	const char *dot = strrchr(path, '.'), *slash = strrchr(path, '/');
	if (!strncmp(path, headers, sizeof headers - 1) && !strstr(path, "/../"))
		return true;
	for (size_t i = 0; dot && (!slash || dot > slash) && i < BASE_COUNT(suffixes); i++)
		if (!strcmp(dot, suffixes[i]))
			return true;
	return false;
}

/* What was opened, not the link to it that a trace may name. */
static bool annotate_is_source_open(int fd)
{
	char link[32], path[4096];
	snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
	ssize_t length = readlink(link, path, sizeof path - 1);
	if (length <= 0)
		return false;
	path[length] = 0;
	return annotate_is_source(path);
}

/* A regular file of text, whole; NULL: *why says why not. */
static char *annotate_read(
	const char *path, size_t *ret_length, bool *newer, uint64_t unix_ns, const char **why)
{
	struct stat st;
	char *bytes = NULL;
	if (!annotate_is_source(path)) {
		*why = "its name is not that of a source file";
		return NULL;
	}
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	*why = fd < 0 ? strerror(errno) : NULL;
	if (fd < 0)
		return NULL;
	if (!annotate_is_source_open(fd))
		*why = "it leads to a file whose name is not that of a source file";
	else if (fstat(fd, &st) || !S_ISREG(st.st_mode))
		*why = "it is no file";
	else if ((uint64_t)st.st_size > SOURCE_BYTES_MAX)
		*why = "it is larger than 16 MiB";
	else
		bytes = base_alloc((size_t)st.st_size + 1);
	ssize_t length = bytes ? pread(fd, bytes, (size_t)st.st_size, 0) : -1;
	close(fd);
	if (length < 0) {
		*why = *why ? *why : "it could not be read";
		base_free(bytes);
		return NULL;
	}
	*ret_length = (size_t)length;
	*newer = unix_ns && (uint64_t)st.st_mtim.tv_sec > unix_ns / 1000000000u;
	return bytes;
}

static bool annotate_keep_lines(struct annotate *a, struct report_annotated_file *f,
	const char *bytes, size_t length, size_t last)
{
	f->text = report_array(a->out->arena, last, sizeof *f->text);
	if (!f->text)
		return false;
	for (size_t at = 0; at < length && f->nr_text < last;) {
		const char *end = memchr(bytes + at, '\n', length - at);
		size_t n = end ? (size_t)(end - bytes) - at : length - at;
		struct base_str line = {0};
		for (size_t i = 0; i < n && i < LINE_BYTES_MAX; i++)
			base_str_add_bytes(&line, bytes[at + i] == '\t' ? "    " : &bytes[at + i],
				bytes[at + i] == '\t' ? 4 : 1);
		const char *text =
			line.failed ? NULL : report_clean(a->out->arena, base_str_text(&line));
		base_str_fini(&line);
		if (!text)
			return false;
		f->text[f->nr_text++] = text;
		at += n + 1;
	}
	return true;
}

static enum base_status annotate_read_source(
	struct annotate *a, struct report_annotated_file *f, struct base_err *err)
{
	uint64_t last = f->nr_sampled ? f->sampled[f->nr_sampled - 1].line : 0;
	const char *why = NULL;
	size_t length = 0;
	if (!*f->path || !last) {
		f->why = "the binary has no line information here (compile with -g, or install "
			 "its debug symbols)";
		return BASE_OK;
	}
	char *bytes = annotate_read(f->path, &length, &f->newer,
		trace_reader_info(a->run->reader)->origin_unix_ns, &why);
	if (!bytes) {
		f->why = annotate_why(a, f->path, why);
		return f->why ? BASE_OK : report_no_memory(err);
	}
	uint64_t lines = last + AROUND_LINES < length + 1 ? last + AROUND_LINES : length + 1;
	bool kept = annotate_keep_lines(a, f, bytes, length, (size_t)lines);
	base_free(bytes);
	if (kept && f->nr_text < last)
		f->newer = true; /* it has not even so many lines */
	return kept ? BASE_OK : report_no_memory(err);
}

/* ---- the answer ------------------------------------------------------------------------------ */

static int annotate_by_place(const void *x, const void *y)
{
	const struct annotate_line *a = x, *b = y;
	if (a->function != b->function)
		return a->function < b->function ? -1 : 1;
	if (a->file != b->file)
		return a->file < b->file ? -1 : 1;
	return a->line < b->line ? -1 : a->line > b->line;
}

static uint64_t annotate_file_samples(const struct report_annotated_file *f)
{
	uint64_t nr = 0;
	for (size_t i = 0; i < f->nr_sampled; i++)
		nr += f->sampled[i].nr_all;
	return nr;
}

static int annotate_by_file(const void *x, const void *y)
{
	const struct report_annotated_file *a = x, *b = y;
	uint64_t of_a = annotate_file_samples(a), of_b = annotate_file_samples(b);
	if (of_a != of_b)
		return of_a < of_b ? 1 : -1;
	return strcmp(a->path, b->path);
}

/* [first, end) of the lines are of one file. */
static enum base_status annotate_fill_file(struct annotate *a, struct report_annotated_file *f,
	size_t first, size_t end, struct base_err *err)
{
	f->path = report_clean(a->out->arena, base_strtab_get(a->texts, a->line[first].file));
	f->sampled = report_array(a->out->arena, end - first, sizeof *f->sampled);
	if (!f->path || !f->sampled)
		return report_no_memory(err);
	for (size_t i = first; i < end; i++)
		f->sampled[f->nr_sampled++] = (struct report_annotated_line){
			a->line[i].line, a->line[i].nr_own, a->line[i].nr_all};
	return annotate_read_source(a, f, err);
}

static enum base_status annotate_fill_function(struct annotate *a, struct report_annotated *out,
	const struct annotate_function *of, struct base_err *err)
{
	size_t first = 0, end, nr = 0;
	while (first < a->nr_lines && a->line[first].function != of->name)
		first++;
	for (end = first; end < a->nr_lines && a->line[end].function == of->name; end++)
		nr += end == first || a->line[end].file != a->line[end - 1].file;
	*out = (struct report_annotated){
		.function = report_clean(a->out->arena, base_strtab_get(a->texts, of->name)),
		.nr_own = of->nr_own,
		.nr_all = of->nr_all,
		.file = report_array(a->out->arena, nr, sizeof *out->file)};
	if (!out->function || !out->file)
		return report_no_memory(err);
	enum base_status s = BASE_OK;
	for (size_t i = first; s == BASE_OK && i < end;) {
		size_t next = i + 1;
		while (next < end && a->line[next].file == a->line[i].file)
			next++;
		s = annotate_fill_file(a, &out->file[out->nr_files++], i, next, err);
		i = next;
	}
	if (s == BASE_OK && out->nr_files)
		qsort(out->file, out->nr_files, sizeof *out->file, annotate_by_file);
	return s;
}

/* ---- instructions ---------------------------------------------------------------------------- */

struct annotate_places {
	struct annotate *a;
	struct report_annotated *out;
	uint32_t name;
	size_t capacity;
	struct report_annotated_place *place;
	size_t nr;
};

/* Of a sample whose function, without what is inlined in it, is the one. */
static bool annotate_add_place(void *ctx, uint64_t site, uint64_t stack, uint64_t nr_samples)
{
	struct annotate_places *p = ctx;
	const struct trace_defs *d = trace_reader_defs(p->a->run->reader);
	(void)stack;
	if (!site || site >= d->nr_symbols || site >= d->nr_sites ||
		strcmp(trace_text_of(d, d->symbols[site].function),
			base_strtab_get(p->a->texts, p->name)) != 0)
		return true;
	uint32_t module = d->sites[site].module;
	if (!module || module >= d->nr_modules)
		return true;
	p->a->status = base_grow(&p->place, &p->capacity, p->nr + 1, sizeof *p->place);
	if (p->a->status != BASE_OK)
		return false;
	const struct trace_module *of = &d->modules[module];
	p->place[p->nr++] = (struct report_annotated_place){.module = trace_text_of(d, of->path),
		.build_id = trace_text_of(d, of->build_id),
		.offset = d->sites[site].offset,
		.function_offset = d->symbols[site].function_offset,
		.nr_own = nr_samples};
	return true;
}

static int annotate_by_offset(const void *x, const void *y)
{
	const struct report_annotated_place *a = x, *b = y;
	int c = strcmp(a->module, b->module);
	return c ? c : a->offset < b->offset ? -1 : a->offset > b->offset;
}

/* In order, and each instruction once: several call paths lead to it. */
static enum base_status annotate_fill_places(struct annotate *a, struct report_annotated *out,
	const struct annotate_function *of, struct base_err *err)
{
	struct annotate_places p = {.a = a, .out = out, .name = of->name};
	base_map_each(&a->path_count, annotate_add_place, &p);
	if (p.nr)
		qsort(p.place, p.nr, sizeof *p.place, annotate_by_offset);
	out->place = report_array(a->out->arena, p.nr, sizeof *out->place);
	for (size_t i = 0; out->place && i < p.nr; i++) {
		struct report_annotated_place *last =
			out->nr_places ? &out->place[out->nr_places - 1] : NULL;
		if (last && !annotate_by_offset(last, &p.place[i])) {
			last->nr_own += p.place[i].nr_own;
			continue;
		}
		out->place[out->nr_places] = p.place[i];
		struct report_annotated_place *to = &out->place[out->nr_places++];
		to->module = report_clean(a->out->arena, to->module);
		to->build_id = report_clean(a->out->arena, to->build_id);
		if (!to->module || !to->build_id)
			a->status = BASE_ERR_NOMEM;
	}
	base_free(p.place);
	return a->status == BASE_OK && out->place ? BASE_OK : report_no_memory(err);
}

static enum base_status annotate_fill(
	struct annotate *a, const struct report_annotate_options *opts, struct base_err *err)
{
	struct report_pass_options plain = {0};
	size_t nr = 0;
	enum base_status s = report_pass(a->run, "naming places", &plain, &a->m, err);
	if (s == BASE_OK)
		s = report_fill_trace(&a->out->trace, a->out->arena, a->run, a->m, err);
	if (s == BASE_OK)
		s = annotate_count_paths(a, err);
	if (s == BASE_OK) {
		base_map_each(&a->path_count, annotate_add_path, a);
		s = a->status == BASE_OK ? BASE_OK : report_no_memory(err);
	}
	if (s == BASE_OK)
		s = annotate_choose(a, opts, &nr, err);
	if (s != BASE_OK)
		return s;
	if (a->nr_lines)
		qsort(a->line, a->nr_lines, sizeof *a->line, annotate_by_place);
	a->out->nr_samples = a->nr_samples;
	a->out->function = report_array(a->out->arena, nr, sizeof *a->out->function);
	if (!a->out->function)
		return report_no_memory(err);
	for (size_t i = 0; s == BASE_OK && i < nr; i++) {
		struct report_annotated *out = &a->out->function[a->out->nr_functions++];
		s = annotate_fill_function(a, out, &a->function[i], err);
		if (s == BASE_OK)
			s = annotate_fill_places(a, out, &a->function[i], err);
	}
	return s;
}

enum base_status report_annotate_build(const struct report_run *run,
	const struct report_annotate_options *opts, struct report_annotation **ret,
	struct base_err *err)
{
	struct annotate a = {
		.run = run, .texts = base_strtab_new(), .out = report_answer_new(sizeof *a.out)};
	enum base_status s = a.texts && a.out ? BASE_OK : report_no_memory(err);
	if (s == BASE_OK)
		s = annotate_fill(&a, opts, err);
	model_free(a.m);
	base_strtab_free(a.texts);
	base_map_fini(&a.path_count);
	base_map_fini(&a.line_of);
	base_map_fini(&a.function_of);
	base_free(a.line);
	base_free(a.function);
	if (s == BASE_OK)
		*ret = a.out;
	else
		report_annotation_free(a.out);
	return s;
}

struct report_annotation *report_annotation_free(struct report_annotation *a)
{
	return report_answer_free(a);
}
