/* SPDX-License-Identifier: Apache-2.0 */
/* input.c - bytes of a file through a buffer, decompressed when they are bzip2's. */
#include "noc/pdg/input.h"

#include <bzlib.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

enum { BUFFER = 1 << 16 };

struct noc_input {
	int fd;     /* -1: memory */
	BZFILE *bz; /* NULL: not compressed */
	const uint8_t *memory;
	size_t memory_left;
	uint64_t offset;
	uint8_t buffer[BUFFER];
	size_t from, to; /* what is in it */
	char *line;
	size_t line_capacity;
	bool ended;
};

/* Is it bzip2's? Its first bytes are "BZh" and a digit. */
static bool is_bzip2(int fd)
{
	uint8_t magic[4];
	return pread(fd, magic, sizeof magic, 0) == sizeof magic && !memcmp(magic, "BZh", 3) &&
	       magic[3] >= '1' && magic[3] <= '9';
}

enum base_status noc_input_open(const char *path, struct noc_input **ret, struct base_err *err)
{
	struct noc_input *in = base_alloc(sizeof *in);
	*ret = NULL;
	if (!in)
		return base_fail(err, BASE_ERR_NOMEM, "no memory to read %s", path);
	in->fd = open(path, O_RDONLY | O_CLOEXEC);
	if (in->fd < 0) {
		base_free(in);
		return base_fail_errno(err, errno, "cannot open %s", path);
	}
	if (is_bzip2(in->fd)) {
		in->bz = BZ2_bzdopen(in->fd, "r");
		if (!in->bz) {
			close(in->fd);
			base_free(in);
			return base_fail(err, BASE_ERR_NOMEM, "no memory to decompress %s", path);
		}
	}
	*ret = in;
	return BASE_OK;
}

struct noc_input *noc_input_of_memory(const void *bytes, size_t size_bytes)
{
	struct noc_input *in = base_alloc(sizeof *in);
	if (in) {
		in->fd = -1;
		in->memory = bytes;
		in->memory_left = size_bytes;
	}
	return in;
}

void noc_input_close(struct noc_input *in)
{
	if (!in)
		return;
	if (in->bz)
		BZ2_bzclose(in->bz); /* the descriptor, too */
	else if (in->fd >= 0)
		close(in->fd);
	base_free(in->line);
	base_free(in);
}

static enum base_status input_fill(struct noc_input *in, struct base_err *err)
{
	ssize_t nr = 0;
	in->from = in->to = 0;
	if (in->ended)
		return BASE_OK;
	if (in->fd < 0) {
		nr = (ssize_t)(in->memory_left < BUFFER ? in->memory_left : BUFFER);
		if (nr)
			memcpy(in->buffer, in->memory, (size_t)nr);
		in->memory += nr;
		in->memory_left -= (size_t)nr;
	} else if (in->bz) {
		nr = BZ2_bzread(in->bz, in->buffer, BUFFER);
		if (nr < 0)
			return base_fail(err, BASE_ERR_CORRUPT,
				"damaged bzip2 data after byte %llu of what it holds",
				(unsigned long long)in->offset);
	} else {
		do
			nr = read(in->fd, in->buffer, BUFFER);
		while (nr < 0 && errno == EINTR);
		if (nr < 0)
			return base_fail_errno(err, errno, "cannot read");
	}
	in->to = (size_t)nr;
	in->ended = !nr;
	return BASE_OK;
}

enum base_status noc_input_read(
	struct noc_input *in, void *to, size_t nr, size_t *ret_nr, struct base_err *err)
{
	size_t done = 0;
	while (done < nr) {
		if (in->from == in->to) {
			enum base_status s = input_fill(in, err);
			if (s != BASE_OK)
				return s;
			if (in->ended)
				break;
		}
		size_t part = in->to - in->from < nr - done ? in->to - in->from : nr - done;
		memcpy((char *)to + done, in->buffer + in->from, part);
		in->from += part;
		in->offset += part;
		done += part;
	}
	*ret_nr = done;
	return BASE_OK;
}

static enum base_status input_add_part(
	struct noc_input *in, size_t length, size_t part, struct base_err *err)
{
	if (length + part >= NOC_INPUT_LINE_MAX)
		return base_fail(
			err, BASE_ERR_LIMIT, "a line of more than %d bytes", NOC_INPUT_LINE_MAX);
	enum base_status s = base_grow(&in->line, &in->line_capacity, length + part + 1, 1);
	if (s != BASE_OK)
		return base_fail(err, s, "no memory for a line");
	if (part)
		memcpy(in->line + length, in->buffer + in->from, part);
	in->from += part;
	in->offset += part;
	return BASE_OK;
}

enum base_status noc_input_line(struct noc_input *in, char **ret, struct base_err *err)
{
	size_t length = 0;
	for (bool whole = false; !whole;) {
		if (in->from == in->to) {
			enum base_status s = input_fill(in, err);
			if (s != BASE_OK)
				return s;
			if (in->ended && !length)
				return BASE_END;
			if (in->ended)
				break;
		}
		const uint8_t *end = memchr(in->buffer + in->from, '\n', in->to - in->from);
		size_t part = end ? (size_t)(end - in->buffer) - in->from : in->to - in->from;
		enum base_status s = input_add_part(in, length, part, err);
		if (s != BASE_OK)
			return s;
		length += part;
		whole = end != NULL;
		if (whole) {
			in->from++;
			in->offset++;
		}
	}
	if (length && in->line[length - 1] == '\r')
		length--;
	in->line[length] = '\0';
	*ret = in->line;
	return BASE_OK;
}

uint64_t noc_input_offset(const struct noc_input *in)
{
	return in->offset;
}
