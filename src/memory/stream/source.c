/* SPDX-License-Identifier: Apache-2.0 */
/* source.c - tables of call records, problems and source formats; opening; checking a batch. */
#include "memory/stream/source.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const struct memory_call_desc call_table[] = {
#define CALL(name_, number_, class_, line_)                                                        \
	{.number = (number_), .class = MEMORY_CLASS_##class_, .name = #name_, .line = line_},
#include "memory/stream/calls.def"
};

const struct memory_call_desc *memory_call_find(unsigned number)
{
	for (size_t i = 0; i < BASE_COUNT(call_table); i++)
		if (call_table[i].number == number)
			return &call_table[i];
	return NULL;
}

static const struct {
	const char *name, *sentence;
} diag_table[] = {
#define DIAG(name_, sentence_) [MEMORY_DIAG_##name_] = {#name_, sentence_},
#include "memory/stream/diag.def"
};

const char *memory_diag_name(enum memory_diag d)
{
	return diag_table[d].name;
}

const char *memory_diag_sentence(enum memory_diag d)
{
	return diag_table[d].sentence;
}

void memory_diag_add(
	struct memory_diags *d, enum memory_diag what, uint32_t thread, uint64_t record)
{
	if (!d->count[what]++) {
		d->first_record[what] = record;
		d->first_thread[what] = thread;
	}
}

/* ---- opening --------------------------------------------------------------------------------- */

#define SOURCE(name, line)                                                                         \
	unsigned memory_source_##name##_probe(                                                     \
		const uint8_t *bytes, size_t size_bytes, const char *path);                        \
	enum base_status memory_source_##name##_open(const char *const *paths, size_t nr_paths,    \
		struct memory_source **ret, struct base_err *err);
#include "memory/stream/sources.def"

static const struct memory_source_format format_table[] = {
#define SOURCE(name_, line_)                                                                       \
	{.name = #name_,                                                                           \
		.line = line_,                                                                     \
		.probe = memory_source_##name_##_probe,                                            \
		.open = memory_source_##name_##_open},
#include "memory/stream/sources.def"
};

/* The first bytes of the path, for the probes; a path that is no file (the stem of several) has
 * none. */
static size_t read_head(const char *path, uint8_t bytes[MEMORY_PROBE_BYTES])
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	ssize_t got = pread(fd, bytes, MEMORY_PROBE_BYTES, 0);
	(void)close(fd);
	return got > 0 ? (size_t)got : 0;
}

static const struct memory_source_format *guess(const char *path)
{
	uint8_t bytes[MEMORY_PROBE_BYTES];
	size_t size_bytes = read_head(path, bytes);
	const struct memory_source_format *best = NULL;
	unsigned most = 0;
	for (size_t i = 0; i < BASE_COUNT(format_table); i++) {
		unsigned sure = format_table[i].probe(bytes, size_bytes, path);
		if (sure > most) {
			most = sure;
			best = &format_table[i];
		}
	}
	return best;
}

static const struct memory_source_format *find_format(const char *name)
{
	for (size_t i = 0; i < BASE_COUNT(format_table); i++)
		if (!strcmp(format_table[i].name, name))
			return &format_table[i];
	return NULL;
}

static bool source_is_program(const char *path)
{
	char magic[4] = "";
	FILE *f = fopen(path, "re");
	bool is = f && fread(magic, 1, sizeof magic, f) == sizeof magic &&
		  !memcmp(magic, "\177ELF", sizeof magic);
	if (f)
		fclose(f);
	return is;
}

static enum base_status fail_foreign(const char *format, const char *path, struct base_err *err)
{
	struct base_str names = {0};
	for (size_t i = 0; i < BASE_COUNT(format_table); i++) {
		base_str_add(&names, i ? ", " : "");
		base_str_add(&names, format_table[i].name);
	}
	enum base_status s = BASE_ERR_FOREIGN;
	if (format)
		s = base_fail(err, BASE_ERR_USAGE, "no format is called '%s'; there are %s", format,
			base_str_text(&names));
	else if (access(path, F_OK) != 0)
		s = base_fail_errno(err, errno, "cannot open %s", path);
	else
		s = base_fail(err, s, "%s looks like none of: %s%s", path, base_str_text(&names),
			source_is_program(path)
				? " (it is a program: `longpole cc` builds one that "
				  "`longpole record --level 3` makes a trace of)"
				: "");
	base_str_fini(&names);
	return s;
}

enum base_status memory_source_open(const char *format, const char *const *paths, size_t nr_paths,
	struct memory_source **ret, struct base_err *err)
{
	return memory_source_open_process(format, paths, nr_paths, 0, ret, err);
}

enum base_status memory_source_open_process(const char *format, const char *const *paths,
	size_t nr_paths, uint64_t process, struct memory_source **ret, struct base_err *err)
{
	*ret = NULL;
	if (!nr_paths)
		return base_fail(err, BASE_ERR_USAGE, "no trace was given");
	const struct memory_source_format *f = format ? find_format(format) : guess(paths[0]);
	if (!f)
		return fail_foreign(format, paths[0], err);
	if (!process)
		return f->open(paths, nr_paths, ret, err);
	if (f->open != memory_source_lpt_open)
		return base_fail(err, BASE_ERR_USAGE,
			"%s: a trace of format %s does not tell processes apart", paths[0],
			f->name);
	return process == MEMORY_PROCESSES_ALL
		       ? memory_source_lpt_open_all(paths, nr_paths, ret, err)
		       : memory_source_lpt_open_process(paths, nr_paths, process, ret, err);
}

/* ---- checking -------------------------------------------------------------------------------- */

/* What is wrong with an item by itself; NULL: nothing. */
static const char *item_fault(const struct memory_item *t, const struct memory_batch *b)
{
	switch (t->kind) {
	case MEMORY_LOAD:
	case MEMORY_STORE:
	case MEMORY_ATOMIC:
		if (t->size_bytes > MEMORY_ACCESS_MAX_BYTES ||
			(!t->size_bytes && t->kind != MEMORY_STORE))
			return "an access of impossible size";
		if (t->address > MEMORY_ADDRESS_LIMIT - t->size_bytes)
			return "an address at or beyond 2^47";
		return t->reg < MEMORY_REG_KINDS ? NULL : "an unknown register class";
	case MEMORY_BLOCK:
		if (t->address > MEMORY_ADDRESS_LIMIT - t->size_bytes)
			return "code at or beyond 2^47";
		return t->count <= t->size_bytes ? NULL : "more instructions than code bytes";
	case MEMORY_RANGE_LOAD:
	case MEMORY_RANGE_STORE:
		if (t->count > MEMORY_ADDRESS_LIMIT || t->address > MEMORY_ADDRESS_LIMIT - t->count)
			return "a range at or beyond 2^47";
		return NULL;
	case MEMORY_CALL:
		if (t->address >= b->nr_calls)
			return "a call that the batch has not";
		return memory_call_find(b->call[t->address].kind) ? NULL : "an unknown call";
	default:
		return t->kind < MEMORY_ITEM_KINDS ? NULL : "an unknown kind";
	}
}

static bool source_is_access(const struct memory_item *t)
{
	return t->kind <= MEMORY_ATOMIC;
}

/* An item in the body of a loop of `count` iterations. */
static const char *body_fault(
	const struct memory_item *t, uint64_t count, const struct memory_batch *b)
{
	if (t->kind == MEMORY_REPEAT || t->kind == MEMORY_CALL || t->kind == MEMORY_STAMP)
		return "a loop that contains a loop, a call or a stamp";
	const char *fault = item_fault(t, b);
	if (fault || !source_is_access(t))
		return fault;
	int64_t last;
	if (count - 1 > INT64_MAX ||
		__builtin_mul_overflow(t->stride_bytes, (int64_t)(count - 1), &last) ||
		__builtin_add_overflow((int64_t)t->address, last, &last) || last < 0 ||
		(uint64_t)last > MEMORY_ADDRESS_LIMIT - t->size_bytes)
		return "a loop that runs out of the address space";
	return NULL;
}

static enum base_status fail_item(
	const struct memory_batch *b, size_t i, const char *fault, struct base_err *err)
{
	return base_fail(err, BASE_ERR_CORRUPT, "thread %u, item %zu after record %llu: %s",
		b->thread, i + 1, (unsigned long long)b->first_record, fault);
}

enum base_status memory_batch_check(const struct memory_batch *b, struct base_err *err)
{
	if (b->nr > MEMORY_BATCH_MAX || b->thread >= MEMORY_THREADS_MAX)
		return base_fail(err, BASE_ERR_CORRUPT, "a batch of %zu {item|items} of thread %u",
			b->nr, b->thread);
	for (size_t i = 0; i < b->nr; i++) {
		const struct memory_item *t = &b->item[i];
		const char *fault = item_fault(t, b);
		if (fault)
			return fail_item(b, i, fault, err);
		if (t->kind != MEMORY_REPEAT)
			continue;
		if (!t->address || t->address > MEMORY_REPEAT_BODY_MAX || !t->count ||
			t->address > b->nr - i - 1)
			return fail_item(b, i, "a loop without a body or a count", err);
		size_t nr_body = (size_t)t->address;
		for (size_t k = 1; k <= nr_body; k++) {
			fault = body_fault(&b->item[i + k], t->count, b);
			if (fault)
				return fail_item(b, i + k, fault, err);
		}
		i += nr_body;
	}
	return BASE_OK;
}
