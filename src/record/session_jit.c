/* SPDX-License-Identifier: Apache-2.0 */
/* session_jit.c - places in code of no file, and the files of programs that name them. */
#include "record/session_jit.h"
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
};

struct record_jit_place {
	uint64_t seen_ns;    /* last, of the trace */
	uint32_t site, next; /* next: of the same image, its index + 1 */
	bool named;
};

struct record_jit {
	uint32_t pid; /* in its own pid namespace */
	uid_t owner;
	int tmp_fd;  /* its /tmp, when that is another one than ours; -1: ours */
	int dump_fd; /* its jitdump; -1: none, or not opened yet */
	char *dump;  /* the path of that one */
	struct {
		uint64_t start, end;
	} * code; /* executable memory, of files or not; sorted */
	size_t nr_code, code_capacity;
	uint32_t first, nr_places; /* first: index + 1 */
	uint64_t read_ns;          /* when that was read; 0: never */
};

static uint64_t monotonic_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* ---- who wrote the files ----------------------------------------------------------------------
 */

/* Its number in its innermost namespace, and its user. False: it is gone. */
static bool read_status(struct record_jit *j, uint32_t pid)
{
	char path[40], line[256];
	unsigned uid;
	snprintf(path, sizeof path, "/proc/%" PRIu32 "/status", pid);
	FILE *f = fopen(path, "re");
	while (f && fgets(line, sizeof line, f)) {
		char *last = strrchr(line, '\t');
		if (sscanf(line, "Uid: %*u %u", &uid) == 1)
			j->owner = uid;
		else if (!strncmp(line, "NSpid:", 6) && last)
			j->pid = (uint32_t)strtoul(last + 1, NULL, 10);
	}
	if (f)
		fclose(f);
	return f != NULL;
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

static struct record_jit *jit_of(struct record_world *w, struct record_image *image)
{
	if (image->jit)
		return image->jit;
	struct record_jit *j = base_alloc(sizeof *j);
	if (!j) {
		record_sink_fail(w->sink, BASE_ERR_NOMEM, "no memory for code of no file");
		return NULL;
	}
	*j = (struct record_jit){
		.pid = image->pid, .owner = geteuid(), .tmp_fd = -1, .dump_fd = -1};
	if (read_status(j, image->pid))
		j->tmp_fd = open_tmp(w, image->pid);
	image->jit = j;
	return j;
}

void record_jit_free(struct record_image *image)
{
	struct record_jit *j = image->jit;
	if (!j)
		return;
	if (j->tmp_fd >= 0)
		close(j->tmp_fd);
	if (j->dump_fd >= 0)
		close(j->dump_fd);
	base_free(j->dump);
	base_free(j->code);
	base_free(j);
	image->jit = NULL;
}

/* "jit-123.dump" */
static bool is_dump(const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	size_t nr_digits = !strncmp(name, "jit-", 4) ? strspn(name + 4, "0123456789") : 0;
	return nr_digits && !strcmp(name + 4 + nr_digits, ".dump");
}

void record_jit_mapped(struct record_world *w, struct record_image *image, const char *path)
{
	char inside[PATH_MAX];
	const char *why;
	struct record_jit *j = is_dump(path) ? jit_of(w, image) : NULL;
	if (!j || (j->dump && !strcmp(j->dump, path)))
		return;
	size_t length = strlen(path);
	char *copy = base_alloc(length + 1);
	if (!copy)
		return;
	memcpy(copy, path, length);
	base_free(j->dump);
	j->dump = copy;
	if (j->dump_fd >= 0 || w->jit.nr_open >= OPEN_MAX)
		return; /* what was mapped first is held; the rest is opened at the end */
	int n = snprintf(inside, sizeof inside, "/proc/%" PRIu32 "/root%s", image->pid, path);
	if (n > 0 && (size_t)n < sizeof inside)
		j->dump_fd = symbol_jit_open(AT_FDCWD, inside, j->owner, &why);
	w->jit.nr_open += j->dump_fd >= 0;
}

/* ---- places -----------------------------------------------------------------------------------
 */

static uint32_t add_place(
	struct record_world *w, struct record_jit *j, uint64_t scope, uint64_t address)
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
			.next = j->first,
			.seen_ns = w->now_ns};
	j->first = (uint32_t)w->jit.nr;
	j->nr_places++;
	if (w->jit.slice_ns && !(w->jit.nr % PLACES_A_SLICE))
		w->jit.slice_ns *= 2;
	return w->jit.place[w->jit.nr - 1].site;
}

uint32_t record_jit_site(struct record_world *w, struct record_image *image, uint64_t address)
{
	struct record_jit *j = jit_of(w, image);
	uint64_t known, scope = image->number;
	if (!j)
		return 0;
	w->jit.sliced = j->dump != NULL;
	if (j->dump) {
		if (!w->jit.slice_ns)
			w->jit.slice_ns = SLICE_FIRST_NS;
		scope |= (w->now_ns / w->jit.slice_ns + 1) << 32;
	}
	if (!base_map_get(&w->jit.known, scope, address, &known))
		return add_place(w, j, scope, address);
	struct record_jit_place *p = &w->jit.place[known];
	if (w->now_ns > p->seen_ns)
		p->seen_ns = w->now_ns;
	return p->site;
}

static void read_code(struct record_image *image)
{
	struct record_jit *j = image->jit;
	char path[40], line[LINE_BYTES];
	snprintf(path, sizeof path, "/proc/%" PRIu32 "/maps", image->pid);
	FILE *f = fopen(path, "re");
	j->read_ns = monotonic_ns();
	if (!f)
		return; /* it has ended: what was read before stays */
	j->nr_code = 0;
	while (fgets(line, sizeof line, f) && j->nr_code < CODE_MAX) {
		uint64_t start, end;
		char perms[8] = "";
		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s", &start, &end, perms) != 3 ||
			perms[2] != 'x')
			continue;
		if (base_grow(&j->code, &j->code_capacity, j->nr_code + 1, sizeof *j->code) !=
			BASE_OK)
			break;
		j->code[j->nr_code].start = start;
		j->code[j->nr_code++].end = end;
	}
	fclose(f);
}

bool record_jit_is_code(struct record_world *w, struct record_image *image, uint64_t address)
{
	struct record_jit *j = image->jit;
	(void)w;
	for (int again = 0; j && again < 2; again++) {
		size_t i = BASE_PARTITION(k, j->nr_code, j->code[k].end <= address);
		if (i < j->nr_code && j->code[i].start <= address)
			return true;
		if (again || (j->read_ns && monotonic_ns() - j->read_ns < MAPS_AGAIN_NS))
			break;
		read_code(image);
	}
	return false;
}

/* ---- names ------------------------------------------------------------------------------------
 */

void record_jit_clock(struct record_world *w, uint64_t trace_ns, uint64_t mono_ns)
{
	unsigned which = w->jit.has_clock;
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

static int open_map(const struct record_jit *j)
{
	char name[48];
	const char *why;
	snprintf(
		name, sizeof name, "%sperf-%" PRIu32 ".map", j->tmp_fd >= 0 ? "" : "/tmp/", j->pid);
	return symbol_jit_open(j->tmp_fd >= 0 ? j->tmp_fd : AT_FDCWD, name, j->owner, &why);
}

static int open_dump(const struct record_jit *j)
{
	const char *why;
	if (j->dump_fd >= 0)
		return fcntl(j->dump_fd, F_DUPFD_CLOEXEC, 0);
	return j->dump ? symbol_jit_open(AT_FDCWD, j->dump, j->owner, &why) : -1;
}

static void read_names(const struct record_jit *j, struct symbol_jit_file file[2],
	struct symbol_jit_place *place, size_t nr)
{
	int fd[2] = {open_dump(j), open_map(j)};
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

static int by_address(const void *a, const void *b)
{
	const struct symbol_jit_place *x = a, *y = b;
	return x->address < y->address ? -1 : x->address > y->address;
}

/* The image's places without a name, by address. */
static size_t unnamed_of(
	const struct record_world *w, const struct record_jit *j, struct symbol_jit_place *place)
{
	size_t nr = 0;
	for (uint32_t i = j->first; i; i = w->jit.place[i - 1].next) {
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
		qsort(place, nr, sizeof *place, by_address);
	return nr;
}

/* What a fork's child runs its parent may have told. */
static void ask_files(struct record_world *w, struct record_image *image,
	struct symbol_jit_place *place, size_t nr)
{
	struct symbol_jit_file file[2] = {0};
	size_t nr_named = 0;
	for (unsigned up = 0; image && up < PARENTS_MAX; up++) {
		const struct record_jit *j = jit_of(w, image);
		if (j)
			read_names(j, file, place, nr);
		for (size_t i = nr_named = 0; i < nr; i++) {
			struct record_jit_place *p = &w->jit.place[place[i].tag];
			if (place[i].function && !p->named)
				put_symbol(w, p, &place[i]);
			nr_named += p->named;
		}
		symbol_jit_unload(&file[0]);
		symbol_jit_unload(&file[1]);
		image = image->forked && nr_named < nr ? record_world_find(w, image->parent) : NULL;
	}
}

uint64_t record_jit_name(struct record_world *w, struct record_image *image)
{
	const struct record_jit *j = image->jit;
	uint64_t nr_named = w->jit.nr_named;
	if (!j || !j->nr_places || record_sink_failed(w->sink))
		return 0;
	struct symbol_jit_place *place = base_alloc(j->nr_places * sizeof *place);
	if (!place) {
		record_sink_fail(w->sink, BASE_ERR_NOMEM, "no memory for names of code");
		return 0;
	}
	size_t nr = unnamed_of(w, j, place);
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
