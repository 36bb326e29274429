/* SPDX-License-Identifier: Apache-2.0 */
/* jit.c - places in code of no file, and the files of programs that name them. */
#include "record/jit.h"
#include "os/proc.h"
#include "os/clock.h"
#include "ring/ring.h"
#include "symbol/jit.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
	OPEN_MAX = 128, /* files and directories that are held for images that may end */
	CODE_MAX = 1 << 14,
	MAPS_AGAIN_NS = 200000000,
	SLICE_FIRST_NS = 50000000,
	PLACES_A_SLICE = 1 << 14, /* with that many more of them slices become twice as long */
	LINE_BYTES = 4096 + 128,
	PARENTS_MAX = 16,
	ROUNDED_S = 2, /* of a time of birth, and of a file's time */
};

struct record_jit_place {
	uint64_t seen_ns;    /* last, of the trace */
	uint32_t site, next; /* next: of the same image, its index + 1 */
	bool named;
};

struct record_jit_code {
	uint64_t start, nr_bytes;
	uint64_t place; /* a RING_place: what it stands for */
	uint32_t site;  /* of that */
};

/* What is known of a process that runs code of no file: read while it lives. */
struct record_jit_process {
	uint32_t pid, inside; /* inside: in its own pid namespace */
	struct symbol_jit_writer writer;
	int tmp_fd;  /* its /tmp, when that is another one than ours; -1: ours */
	int dump_fd; /* its jitdump; -1: none, or not open */
	char *dump;  /* the path of that one */
	struct {
		uint64_t start, end;
	} * code; /* executable memory, of files or not; sorted */
	size_t nr_code, code_capacity;
	uint64_t read_ns; /* when that was read; 0: never */
};

/* ---- who wrote the files --------------------------------------------------------------------- */

/* Its number in its innermost namespace, and its user. False: it is gone. */
static bool read_status(struct record_jit_process *p)
{
	char text[4096];
	uint64_t real_uid, uid;
	const char *at;
	if (os_proc_read((pid_t)p->pid, "status", text, sizeof text) <= 0)
		return false;
	at = strstr(text, "\nUid:");
	at = at ? at + 5 : "";
	if (os_take_number(&at, 10, &real_uid) && os_take_number(&at, 10, &uid))
		p->writer.owner = (uid_t)uid;
	at = strstr(text, "\nNSpid:");
	for (at = at ? at + 7 : ""; os_take_number(&at, 10, &uid);)
		p->inside = (uint32_t)uid;
	return true;
}

/* Since when it lives, in wall time; 0: it is gone. */
static time_t birth_s(uint32_t pid)
{
	char text[512];
	struct os_task_stat stat;
	if (os_proc_read((pid_t)pid, "stat", text, sizeof text) <= 0 || !os_parse_stat(text, &stat))
		return 0;
	return time(NULL) - (time_t)(os_time_ns(CLOCK_BOOTTIME) / 1000000000u) +
	       (time_t)(stat.start_ticks / (uint64_t)sysconf(_SC_CLK_TCK));
}

static int open_tmp(struct record_world *w, uint32_t pid)
{
	char path[40];
	struct stat theirs, ours;
	snprintf(path, sizeof path, "/proc/%" PRIu32 "/root/tmp", pid);
	int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	bool same = !fstat(fd, &theirs) && !stat("/tmp", &ours) && theirs.st_dev == ours.st_dev &&
		    theirs.st_ino == ours.st_ino;
	if (!same && w->jit.nr_open < OPEN_MAX) {
		w->jit.nr_open++;
		return fd;
	}
	close(fd);
	return -1;
}

static uint32_t add_process(struct record_world *w, uint32_t pid)
{
	struct record_jit_process *p = base_alloc(sizeof *p);
	if (!p ||
		base_grow(&w->jit.process, &w->jit.process_capacity, w->jit.nr_processes + 1,
			sizeof(void *)) != BASE_OK ||
		base_map_put(&w->jit.by_pid, 0, pid, w->jit.nr_processes + 1) != BASE_OK) {
		base_free(p);
		record_sink_fail(w->sink, BASE_ERR_NOMEM, "no memory for code of no file");
		return 0;
	}
	*p = (struct record_jit_process){
		.pid = pid, .inside = pid, .writer.owner = geteuid(), .tmp_fd = -1, .dump_fd = -1};
	if (read_status(p))
		p->tmp_fd = open_tmp(w, pid);
	/* (who is gone already has lived shortly, so within the recording) */
	p->writer.born_s = birth_s(pid);
	if (!p->writer.born_s)
		p->writer.born_s = w->jit.begin_s;
	p->writer.born_s -= p->writer.born_s > ROUNDED_S ? ROUNDED_S : 0;
	w->jit.process[w->jit.nr_processes++] = p;
	return (uint32_t)w->jit.nr_processes;
}

/* Its number, from 1; 0: no memory. */
static uint32_t jit_process_of(struct record_world *w, uint32_t pid)
{
	uint64_t known;
	return base_map_get(&w->jit.by_pid, 0, pid, &known) ? (uint32_t)known : add_process(w, pid);
}

void record_jit_forget(struct record_world *w, uint32_t pid)
{
	(void)base_map_remove(&w->jit.by_pid, 0, pid);
}

static struct record_jit_process *of_image(struct record_world *w, struct record_image *image)
{
	if (!image->jit.process)
		image->jit.process = jit_process_of(w, image->pid);
	return image->jit.process ? w->jit.process[image->jit.process - 1] : NULL;
}

void record_jit_fini(struct record_world *w)
{
	for (size_t i = 0; i < w->jit.nr_processes; i++) {
		struct record_jit_process *p = w->jit.process[i];
		if (p->tmp_fd >= 0)
			close(p->tmp_fd);
		if (p->dump_fd >= 0)
			close(p->dump_fd);
		base_free(p->dump);
		base_free(p->code);
		base_free(p);
	}
	base_free(w->jit.process);
	base_free(w->jit.place);
	base_map_fini(&w->jit.by_pid);
	base_map_fini(&w->jit.known);
	base_map_fini(&w->jit.told);
}

/* ---- what it has mapped ---------------------------------------------------------------------- */

/* "jit-123.dump" */
static bool is_dump(const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	size_t nr_digits = !strncmp(name, "jit-", 4) ? strspn(name + 4, "0123456789") : 0;
	return nr_digits && !strcmp(name + 4 + nr_digits, ".dump");
}

void record_jit_mapped(struct record_world *w, uint32_t pid, const char *path)
{
	char inside[PATH_MAX];
	const char *why;
	uint32_t number = is_dump(path) ? jit_process_of(w, pid) : 0;
	struct record_jit_process *p = number ? w->jit.process[number - 1] : NULL;
	if (!p || p->dump)
		return; /* one a process */
	size_t length = strlen(path);
	p->dump = base_alloc(length + 1);
	if (!p->dump)
		return;
	memcpy(p->dump, path, length);
	int n = snprintf(inside, sizeof inside, "/proc/%" PRIu32 "/root%s", pid, path);
	if (w->jit.nr_open < OPEN_MAX && n > 0 && (size_t)n < sizeof inside)
		p->dump_fd = symbol_jit_open(AT_FDCWD, inside, &p->writer, &why);
	w->jit.nr_open += p->dump_fd >= 0;
}

static void jit_read_code(struct record_jit_process *p)
{
	char path[40], line[LINE_BYTES];
	snprintf(path, sizeof path, "/proc/%" PRIu32 "/maps", p->pid);
	FILE *f = fopen(path, "re");
	p->read_ns = os_time_ns(CLOCK_MONOTONIC);
	if (!f)
		return; /* it has ended: what was read before stays */
	p->nr_code = 0;
	while (fgets(line, sizeof line, f) && p->nr_code < CODE_MAX) {
		uint64_t start, end;
		char perms[8] = "";
		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s", &start, &end, perms) != 3 ||
			perms[2] != 'x')
			continue;
		if (base_grow(&p->code, &p->code_capacity, p->nr_code + 1, sizeof *p->code) !=
			BASE_OK)
			break;
		p->code[p->nr_code].start = start;
		p->code[p->nr_code++].end = end;
	}
	fclose(f);
}

static bool is_mapped(const struct record_jit_process *p, uint64_t address)
{
	size_t i = BASE_PARTITION(k, p->nr_code, p->code[k].end <= address);
	return i < p->nr_code && p->code[i].start <= address;
}

void record_jit_sampled(struct record_world *w, uint32_t pid, uint64_t address)
{
	uint32_t number = jit_process_of(w, pid);
	struct record_jit_process *p = number ? w->jit.process[number - 1] : NULL;
	if (p && !is_mapped(p, address) &&
		(!p->read_ns || os_time_ns(CLOCK_MONOTONIC) - p->read_ns >= MAPS_AGAIN_NS))
		jit_read_code(p);
}

bool record_jit_is_code(
	const struct record_world *w, const struct record_image *image, uint64_t address)
{
	uint64_t known = image->jit.process;
	return (known || base_map_get(&w->jit.by_pid, 0, image->pid, &known)) &&
	       is_mapped(w->jit.process[known - 1], address);
}

/* ---- places ---------------------------------------------------------------------------------- */

static uint32_t jit_add_place(
	struct record_world *w, struct record_image *image, uint64_t scope, uint64_t address)
{
	enum base_status status =
		base_grow(&w->jit.place, &w->jit.capacity, w->jit.nr + 1, sizeof *w->jit.place);
	if (status == BASE_OK)
		status = base_map_put(&w->jit.known, scope, address, w->jit.nr);
	if (status != BASE_OK) {
		record_sink_fail(w->sink, status, "no memory for one more place");
		return 0;
	}
	w->jit.place[w->jit.nr++] =
		(struct record_jit_place){.site = record_sink_site_of_no_file(w->sink, address),
			.next = image->jit.first,
			.seen_ns = w->now_ns};
	image->jit.first = (uint32_t)w->jit.nr;
	image->jit.nr_places++;
	if (w->jit.slice_ns && !(w->jit.nr % PLACES_A_SLICE))
		w->jit.slice_ns *= 2;
	return w->jit.place[w->jit.nr - 1].site;
}

uint32_t record_jit_site(struct record_world *w, struct record_image *image, uint64_t address)
{
	const struct record_jit_process *process = of_image(w, image);
	uint64_t known, scope = image->number;
	if (!process)
		return 0;
	w->jit.sliced = process->dump != NULL;
	if (process->dump) {
		if (!w->jit.slice_ns)
			w->jit.slice_ns = SLICE_FIRST_NS;
		scope |= (w->now_ns / w->jit.slice_ns + 1) << 32;
	}
	if (!base_map_get(&w->jit.known, scope, address, &known))
		return jit_add_place(w, image, scope, address);
	struct record_jit_place *p = &w->jit.place[known];
	if (w->now_ns > p->seen_ns)
		p->seen_ns = w->now_ns;
	return p->site;
}

/* ---- names ----------------------------------------------------------------------------------- */

void record_jit_clock(struct record_world *w, uint64_t trace_ns, uint64_t mono_ns)
{
	unsigned which = w->jit.has_clock;
	if (!w->jit.has_clock)
		w->jit.begin_s = time(NULL);
	w->jit.trace_ns[which] = trace_ns;
	w->jit.mono_ns[which] = mono_ns;
	w->jit.has_clock = true;
}

/* CLOCK_MONOTONIC is steered, the trace's clock is not: so by the pace of the whole recording. */
static uint64_t mono_of(const struct record_world *w, uint64_t trace_ns)
{
	const uint64_t *trace = w->jit.trace_ns, *mono = w->jit.mono_ns;
	int64_t since = (int64_t)(trace_ns - trace[0]);
	if (trace[1] > trace[0] && mono[1] > mono[0])
		since = (int64_t)((__int128)since * (int64_t)(mono[1] - mono[0]) /
				  (int64_t)(trace[1] - trace[0]));
	return mono[0] + (uint64_t)since;
}

/* Why a file that is there names nothing: the last one's is told. */
static int refused(struct record_world *w, const char *path, const char *why)
{
	if (why)
		snprintf(w->jit.refused, sizeof w->jit.refused, "%.100s: %s", path, why);
	return -1;
}

static int open_map(struct record_world *w, const struct record_jit_process *p)
{
	char name[48];
	const char *why;
	bool ours = p->tmp_fd < 0;
	snprintf(name, sizeof name, "%sperf-%" PRIu32 ".map", ours ? "/tmp/" : "", p->inside);
	int fd = symbol_jit_open(ours ? AT_FDCWD : p->tmp_fd, name, &p->writer, &why);
	return fd >= 0 ? fd : refused(w, name, why);
}

static int jit_open_dump(struct record_world *w, const struct record_jit_process *p)
{
	const char *why;
	if (p->dump_fd >= 0)
		return fcntl(p->dump_fd, F_DUPFD_CLOEXEC, 0);
	if (!p->dump)
		return -1;
	int fd = symbol_jit_open(AT_FDCWD, p->dump, &p->writer, &why);
	return fd >= 0 ? fd : refused(w, p->dump, why);
}

static void jit_read_names(struct record_world *w, const struct record_jit_process *p,
	struct symbol_jit_file file[2], struct symbol_jit_place *place, size_t nr)
{
	int fd[2] = {jit_open_dump(w, p), open_map(w, p)};
	for (size_t i = 0; i < 2; i++) {
		if (fd[i] < 0)
			continue;
		if (symbol_jit_load(&file[i], fd[i]))
			(void)(i ? symbol_jit_read_map : symbol_jit_read_dump)(&file[i], place, nr);
		close(fd[i]);
	}
}

static void put_symbol(
	struct record_world *w, struct record_jit_place *to, const struct symbol_jit_place *from)
{
	struct record_sink *s = w->sink;
	struct trace_record r = {.kind = TRACE_symbol,
		.u.symbol = {.site = to->site,
			.function = record_sink_text(s, from->function, from->function_bytes),
			.file = from->file ? record_sink_text(s, from->file, from->file_bytes) : 0,
			.line = from->line,
			.function_offset = from->start}};
	record_sink_put(s, &r);
	to->named = true;
	w->jit.nr_named++;
}

static int jit_by_address(const void *a, const void *b)
{
	const struct symbol_jit_place *x = a, *y = b;
	return x->address < y->address ? -1 : x->address > y->address;
}

/* The image's places without a name, by address. */
static size_t unnamed_of(
	const struct record_world *w, uint32_t first, struct symbol_jit_place *place)
{
	size_t nr = 0;
	for (uint32_t i = first; i; i = w->jit.place[i - 1].next) {
		const struct record_jit_place *p = &w->jit.place[i - 1];
		if (p->named || !p->site)
			continue;
		const struct record_site *site = &w->sink->site[p->site];
		/* A return address may be the next function's first byte: the call is before it. */
		place[nr++] = (struct symbol_jit_place){.address = site->offset - !site->exact,
			.seen_ns = mono_of(w, p->seen_ns),
			.tag = i - 1};
	}
	if (nr)
		qsort(place, nr, sizeof *place, jit_by_address);
	return nr;
}

/* ---- what the image told itself -------------------------------------------------------------- */

enum { TOLD_MAX = 1 << 22 };

uint64_t record_jit_place_at(
	const struct record_world *w, const struct record_image *image, uint64_t start)
{
	uint64_t known;
	return image->jit.nr_code && base_map_get(&w->jit.told, image->number, start, &known)
		       ? image->jit.code[known - 1].place
		       : 0;
}

/* (Its pieces lie side by side.) */
static void jit_interprets(struct record_image *image, uint64_t address, uint64_t nr_bytes)
{
	const uint64_t end = address + nr_bytes;
	if (!image->jit.interpreter_end || address < image->jit.interpreter)
		image->jit.interpreter = address;
	if (end > image->jit.interpreter_end)
		image->jit.interpreter_end = end;
}

void record_jit_told(struct record_world *w, struct record_image *image, uint64_t address,
	uint64_t nr_bytes, uint64_t stands_for)
{
	if (stands_for == RING_CODE_INTERPRETS) {
		jit_interprets(image, address, nr_bytes);
		return;
	}
	const uint64_t place =
		RING_IS_PLACE(stands_for) ? stands_for : record_jit_place_at(w, image, stands_for);
	const uint32_t site = record_place_site(w, image, place);
	if (!site || !nr_bytes || address + nr_bytes < address || image->jit.nr_code >= TOLD_MAX)
		return;
	if (base_grow(&image->jit.code, &image->jit.code_capacity, image->jit.nr_code + 1,
		    sizeof *image->jit.code) != BASE_OK) {
		record_sink_fail(w->sink, BASE_ERR_NOMEM, "no memory for code that was made");
		return;
	}
	image->jit.code[image->jit.nr_code++] = (struct record_jit_code){
		.start = address, .nr_bytes = nr_bytes, .place = place, .site = site};
	if (base_map_put(&w->jit.told, image->number, address, image->jit.nr_code) != BASE_OK)
		record_sink_fail(w->sink, BASE_ERR_NOMEM, "no memory for code that was made");
}

static void put_told(struct record_world *w, struct record_jit_place *to, uint32_t site,
	uint64_t function_offset)
{
	const struct record_site *from = &w->sink->site[site];
	struct trace_record r = {.kind = TRACE_symbol,
		.u.symbol = {.site = to->site,
			.function = from->function,
			.file = from->file,
			.line = from->line,
			.function_offset = function_offset}};
	record_sink_put(w->sink, &r);
	to->named = true;
	w->jit.nr_named++;
}

/* What was told last of an address is what ran there, nearly always: compilers seldom throw code
 * away that runs. */
static void ask_image(struct record_world *w, const struct record_image *image,
	const struct symbol_jit_place *place, size_t nr)
{
	for (size_t k = image->jit.nr_code; k-- > 0;) {
		const struct record_jit_code *code = &image->jit.code[k];
		size_t i = BASE_PARTITION(p, nr, place[p].address < code->start);
		for (; i < nr && place[i].address - code->start < code->nr_bytes; i++) {
			struct record_jit_place *to = &w->jit.place[place[i].tag];
			if (!to->named)
				put_told(w, to, code->site, code->start);
		}
	}
}

/* What a fork's child runs its parent may have told. */
static void ask_files(struct record_world *w, struct record_image *image,
	struct symbol_jit_place *place, size_t nr)
{
	struct symbol_jit_file file[2] = {0};
	size_t nr_named = 0;
	for (unsigned up = 0; image && up < PARENTS_MAX; up++) {
		const struct record_jit_process *p = of_image(w, image);
		if (p)
			jit_read_names(w, p, file, place, nr);
		for (size_t i = nr_named = 0; i < nr; i++) {
			struct record_jit_place *to = &w->jit.place[place[i].tag];
			if (place[i].function && !to->named)
				put_symbol(w, to, &place[i]);
			nr_named += to->named;
		}
		symbol_jit_unload(&file[0]);
		symbol_jit_unload(&file[1]);
		image = image->forked && nr_named < nr ? record_world_find(w, image->parent) : NULL;
	}
}

uint64_t record_jit_name(struct record_world *w, struct record_image *image)
{
	uint64_t nr_named = w->jit.nr_named;
	if (!image->jit.nr_places || record_sink_failed(w->sink))
		return 0;
	struct symbol_jit_place *place = base_alloc(image->jit.nr_places * sizeof *place);
	if (!place) {
		record_sink_fail(w->sink, BASE_ERR_NOMEM, "no memory for names of code");
		return 0;
	}
	size_t nr = unnamed_of(w, image->jit.first, place);
	if (image->jit.nr_code)
		ask_image(w, image, place, nr);
	nr = image->jit.nr_code ? unnamed_of(w, image->jit.first, place) : nr;
	if (nr)
		ask_files(w, image, place, nr);
	base_free(place);
	return w->jit.nr_named - nr_named;
}

uint64_t record_jit_name_all(struct record_world *w)
{
	uint64_t nr = 0;
	for (size_t i = 0; i < w->nr_images; i++)
		nr += w->image[i] ? record_jit_name(w, w->image[i]) : 0;
	for (size_t i = 0; i < w->nr_extra; i++)
		nr += record_jit_name(w, w->extra[i]);
	return nr;
}

uint64_t record_jit_name_new(struct record_world *w)
{
	bool any = w->jit.nr != w->jit.nr_asked;
	w->jit.nr_asked = w->jit.nr;
	return any ? record_jit_name_all(w) : 0;
}

bool record_jit_say_unnamed(
	const struct record_world *w, uint64_t nr_others, char *text, size_t text_bytes)
{
	uint64_t nr = w->jit.nr - w->jit.nr_named;
	if (nr <= nr_others)
		return false;
	(void)base_format(text, text_bytes,
		"%llu {place is|places are} in code that was made at run time and {has|have} no "
		"name, of %u: %s",
		(unsigned long long)nr, w->sink->nr_sites,
		*w->jit.refused ? w->jit.refused
				: "the program told perf none (/tmp/perf-PID.map, jitdump)");
	return true;
}
