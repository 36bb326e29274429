/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jit.c - perf's two ways for a program to name the code that it makes: perf-PID.map and jitdump
 * (linux: tools/perf/Documentation/jit-interface.txt, jitdump-specification.txt).
 */
#include "symbol/jit.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	DUMP_MAGIC = 0x4a695444,
	DUMP_HEADER_BYTES = 40,
	DUMP_ARCH_TIMESTAMP = 1,
	RECORD_HEADER_BYTES = 16,
	LOAD_BYTES = 40,
	MOVE_BYTES = 48,
	DEBUG_BYTES = 16,
	DEBUG_ENTRY_BYTES = 16,
	ELF_HEADER_BYTES = 64,
	RECORD_LOAD = 0,
	RECORD_MOVE = 1,
	RECORD_DEBUG_INFO = 2,
};

int symbol_jit_open(
	int dir_fd, const char *path, const struct symbol_jit_writer *writer, const char **ret_why)
{
	struct stat st;
	/* neither a link, a FIFO nor a device of somebody else may lead or hold us up */
	int fd = openat(dir_fd, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	*ret_why = fd >= 0 || errno == ENOENT ? NULL
		   : errno == ELOOP           ? "it is a symbolic link"
					      : "it cannot be opened";
	if (fd < 0)
		return -1;
	if (fstat(fd, &st) || !S_ISREG(st.st_mode))
		*ret_why = "it is no regular file";
	else if (st.st_uid && st.st_uid != writer->owner)
		*ret_why = "it belongs neither to the process' user nor to root";
	else if (st.st_mtime < writer->born_s)
		*ret_why = "it is older than the process";
	else if (st.st_size > SYMBOL_JIT_FILE_BYTES_MAX)
		*ret_why = "it is larger than 256 MiB";
	else
		return fd;
	close(fd);
	return -1;
}

bool symbol_jit_load(struct symbol_jit_file *f, int fd)
{
	struct stat st;
	*f = (struct symbol_jit_file){0};
	if (fstat(fd, &st) || st.st_size < 0 || st.st_size > SYMBOL_JIT_FILE_BYTES_MAX)
		return false;
	size_t size = (size_t)st.st_size;
	f->bytes = base_alloc(size + 1);
	if (!f->bytes)
		return false;
	/* (it may become shorter meanwhile, or longer) */
	for (ssize_t n = 1; n > 0 && f->nr_bytes<size; f->nr_bytes += n> 0 ? (size_t)n : 0)
		n = pread(fd, f->bytes + f->nr_bytes, size - f->nr_bytes, (off_t)f->nr_bytes);
	return true;
}

void symbol_jit_unload(struct symbol_jit_file *f)
{
	base_free(f->bytes);
	*f = (struct symbol_jit_file){0};
}

/* ---- code and places ------------------------------------------------------------------------- */

struct code { /* what the file says of some bytes of code */
	uint64_t start, size, loaded_ns;
	const char *name;
	size_t name_bytes;
	const uint8_t *debug; /* of jitdump: its entries; NULL: none */
	size_t debug_bytes;
};

struct reading {
	struct symbol_jit_place *place;
	size_t nr_places;
	uint64_t steps;
	uint64_t lines_before; /* of a jitdump: its lines count that much more than the code */
	bool *found;           /* by place: in this file */
};

static uint64_t jit_take(const uint8_t *p, unsigned nr_bytes)
{
	uint64_t v = 0;
	memcpy(&v, p, nr_bytes); /* of this machine's byte order */
	return v;
}

/* The last entry that is not behind the address. */
static void find_line(struct symbol_jit_place *p, const struct code *c, uint64_t lines_before)
{
	const uint8_t *at = c->debug, *end = at + c->debug_bytes;
	const char *file = NULL;
	size_t file_bytes = 0;
	while ((size_t)(end - at) > DEBUG_ENTRY_BYTES) {
		uint64_t address = jit_take(at, 8) - lines_before, line = jit_take(at + 8, 4);
		const char *name = (const char *)at + DEBUG_ENTRY_BYTES;
		size_t length = strnlen(name, (size_t)(end - at) - DEBUG_ENTRY_BYTES);
		/* 0xff: that of the entry before */
		if (length != 1 || (uint8_t)*name != 0xff) {
			file = name;
			file_bytes = length;
		}
		if (address > p->address)
			return;
		p->file = file_bytes ? file : NULL;
		p->file_bytes = (uint32_t)file_bytes;
		p->line = p->file ? line : 0;
		at += DEBUG_ENTRY_BYTES + length;
		at += at < end;
	}
}

/* Gives it to the places in it that have no later one. False: too many steps. */
static bool give(struct reading *r, const struct code *c)
{
	size_t i = BASE_PARTITION(k, r->nr_places, r->place[k].address < c->start);
	size_t name_bytes = c->name_bytes < SYMBOL_JIT_NAME_BYTES_MAX ? c->name_bytes
								      : SYMBOL_JIT_NAME_BYTES_MAX;
	for (; i < r->nr_places && r->place[i].address - c->start < c->size; i++) {
		struct symbol_jit_place *p = &r->place[i];
		if (++r->steps > SYMBOL_JIT_STEPS_MAX)
			return false;
		if (c->loaded_ns > p->seen_ns || (p->function && !r->found[i]) ||
			(r->found[i] && c->loaded_ns < p->loaded_ns))
			continue;
		r->found[i] = true;
		p->function = c->name;
		p->function_bytes = (uint32_t)name_bytes;
		p->start = c->start;
		p->loaded_ns = c->loaded_ns;
		p->file = NULL;
		p->line = 0;
		r->steps += c->debug_bytes / DEBUG_ENTRY_BYTES;
		if (c->debug)
			find_line(p, c, r->lines_before);
	}
	return true;
}

static bool jit_begin(struct reading *r, struct symbol_jit_place *place, size_t nr_places)
{
	*r = (struct reading){.place = place, .nr_places = nr_places};
	r->found = base_alloc(nr_places + 1);
	return r->found != NULL;
}

/* What was found in a file that makes no sense does not count. */
static bool end(struct reading *r, bool good)
{
	for (size_t i = 0; r->found && !good && i < r->nr_places; i++)
		if (r->found[i])
			r->place[i].function = r->place[i].file = NULL;
	base_free(r->found);
	return good;
}

/* ---- perf-PID.map ---------------------------------------------------------------------------- */

/* A number in hexadecimal digits, with 0x or without, and the blanks behind it. */
static bool hex(const char **at, const char *line_end, uint64_t *ret)
{
	const char *p = *at;
	unsigned nr_digits = 0;
	*ret = 0;
	if (line_end - p > 2 && p[0] == '0' && (p[1] | 0x20) == 'x')
		p += 2;
	for (; p < line_end; p++, nr_digits++) {
		unsigned c = (unsigned char)*p, lower = c | 0x20;
		unsigned digit = c - '0' < 10 ? c - '0' : lower - 'a' < 6 ? lower - 'a' + 10 : 16;
		if (digit > 15)
			break;
		*ret = *ret << 4 | digit;
	}
	if (!nr_digits || nr_digits > 16 || p == line_end || (*p != ' ' && *p != '\t'))
		return false;
	while (p < line_end && (*p == ' ' || *p == '\t'))
		p++;
	*at = p;
	return true;
}

static bool parse_line(const char *p, const char *line_end, struct code *ret)
{
	*ret = (struct code){0};
	if (line_end > p && line_end[-1] == '\r')
		line_end--;
	if (!hex(&p, line_end, &ret->start) || !hex(&p, line_end, &ret->size) || p == line_end)
		return false;
	ret->name = p;
	ret->name_bytes = (size_t)(line_end - p);
	return memchr(p, 0, ret->name_bytes) == NULL;
}

bool symbol_jit_read_map(
	const struct symbol_jit_file *f, struct symbol_jit_place *place, size_t nr_places)
{
	struct reading r;
	struct code c;
	const char *p = (const char *)f->bytes, *text_end = p + f->nr_bytes;
	bool good = jit_begin(&r, place, nr_places);
	/* a line without its end is being written, or its size has been cut */
	for (const char *nl; good && p < text_end; p = nl + 1) {
		nl = memchr(p, '\n', (size_t)(text_end - p));
		if (!nl)
			break;
		if (parse_line(p, nl, &c))
			good = give(&r, &c);
	}
	return end(&r, good);
}

/* ---- jitdump --------------------------------------------------------------------------------- */

struct dump {
	const uint8_t *p, *end;   /* what is left */
	struct base_map by_index; /* code index -> offset of its load's body + 1 */
	const uint8_t *base;
	bool timed; /* by CLOCK_MONOTONIC */
};

struct dump_record {
	uint32_t kind;
	uint64_t time_ns;
	const uint8_t *body;
	size_t nr_bytes;
};

static bool next_record(struct dump *d, struct dump_record *ret)
{
	if ((size_t)(d->end - d->p) < RECORD_HEADER_BYTES)
		return false;
	size_t size = jit_take(d->p + 4, 4);
	if (size < RECORD_HEADER_BYTES || size > (size_t)(d->end - d->p))
		return false; /* being written, or nonsense from here on */
	*ret = (struct dump_record){.kind = (uint32_t)jit_take(d->p, 4),
		.time_ns = d->timed ? jit_take(d->p + 8, 8) : 0,
		.body = d->p + RECORD_HEADER_BYTES,
		.nr_bytes = size - RECORD_HEADER_BYTES};
	d->p += size;
	return true;
}

static bool parse_load(const uint8_t *body, size_t nr_bytes, struct code *ret)
{
	if (nr_bytes <= LOAD_BYTES)
		return false;
	ret->start = jit_take(body + 16, 8);
	ret->size = jit_take(body + 24, 8);
	ret->name = (const char *)body + LOAD_BYTES;
	ret->name_bytes = strnlen(ret->name, nr_bytes - LOAD_BYTES);
	return ret->name_bytes > 0 && ret->name_bytes < nr_bytes - LOAD_BYTES;
}

/* The code of that number is elsewhere now. */
static bool parse_move(const struct dump *d, const struct dump_record *m, struct code *ret)
{
	uint64_t at;
	if (m->nr_bytes < MOVE_BYTES ||
		!base_map_get(&d->by_index, 0, jit_take(m->body + 40, 8), &at))
		return false;
	const uint8_t *load = d->base + at;
	size_t nr_bytes = jit_take(load - RECORD_HEADER_BYTES + 4, 4) - RECORD_HEADER_BYTES;
	if (!parse_load(load, nr_bytes, ret))
		return false;
	ret->start = jit_take(m->body + 24, 8);
	ret->size = jit_take(m->body + 32, 8);
	return true;
}

static bool read_record(struct reading *r, struct dump *d, const struct dump_record *record,
	struct dump_record *debug)
{
	struct code c = {.loaded_ns = record->time_ns};
	if (record->kind == RECORD_DEBUG_INFO) {
		*debug = *record; /* of the load that follows */
		return true;
	}
	if (record->kind == RECORD_MOVE)
		return !parse_move(d, record, &c) || give(r, &c);
	if (record->kind != RECORD_LOAD || !parse_load(record->body, record->nr_bytes, &c))
		return true;
	if (debug->nr_bytes > DEBUG_BYTES && jit_take(debug->body, 8) == c.start) {
		c.debug = debug->body + DEBUG_BYTES;
		c.debug_bytes = debug->nr_bytes - DEBUG_BYTES;
	}
	debug->nr_bytes = 0;
	uint64_t index = jit_take(record->body + 32, 8);
	return base_map_put(&d->by_index, 0, index, (uint64_t)(record->body - d->base)) ==
		       BASE_OK &&
	       give(r, &c);
}

static bool open_dump(struct dump *d, const struct symbol_jit_file *f)
{
	*d = (struct dump){.base = f->bytes};
	if (f->nr_bytes < DUMP_HEADER_BYTES || jit_take(f->bytes, 4) != DUMP_MAGIC)
		return false;
	size_t header = jit_take(f->bytes + 8, 4);
	if (header < DUMP_HEADER_BYTES || header > f->nr_bytes)
		return false;
	d->p = f->bytes + header;
	d->end = f->bytes + f->nr_bytes;
	d->timed = !(jit_take(f->bytes + 32, 8) & DUMP_ARCH_TIMESTAMP);
	return true;
}

/*
 * Some (V8) count a line's place from the ELF header that `perf inject` puts before the code: then
 * no line of the whole file is nearer to its code's start than that.
 */
static uint64_t lines_before(struct dump d)
{
	bool any = false;
	for (struct dump_record r; next_record(&d, &r);) {
		if (r.kind != RECORD_DEBUG_INFO || r.nr_bytes < DEBUG_BYTES + DEBUG_ENTRY_BYTES)
			continue;
		any = true;
		if (jit_take(r.body + DEBUG_BYTES, 8) - jit_take(r.body, 8) < ELF_HEADER_BYTES)
			return 0;
	}
	return any ? ELF_HEADER_BYTES : 0;
}

bool symbol_jit_read_dump(
	const struct symbol_jit_file *f, struct symbol_jit_place *place, size_t nr_places)
{
	struct reading r;
	struct dump d;
	struct dump_record record, debug = {0};
	if (!open_dump(&d, f))
		return false;
	bool good = jit_begin(&r, place, nr_places);
	r.lines_before = lines_before(d);
	while (good && next_record(&d, &record))
		good = read_record(&r, &d, &record, &debug);
	base_map_fini(&d.by_index);
	return end(&r, good);
}
