/* SPDX-License-Identifier: Apache-2.0 */
/* files.c - reading files forwards; which files a path means. */
#include "memory/stream/files.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

enum base_status memory_file_open(struct memory_file *f, const char *path, struct base_err *err)
{
	*f = (struct memory_file){.fd = open(path, O_RDONLY | O_CLOEXEC)};
	if (f->fd < 0)
		return base_fail_errno(err, errno, "cannot open %s", path);
	size_t length = strlen(path) + 1;
	char *copy = base_alloc(length);
	f->path = copy;
	f->buffer = base_alloc(MEMORY_FILE_BUFFER_BYTES);
	if (!copy || !f->buffer) {
		memory_file_close(f);
		return base_fail(err, BASE_ERR_NOMEM, "no memory to read %s", path);
	}
	memcpy(copy, path, length);
	return BASE_OK;
}

void memory_file_close(struct memory_file *f)
{
	if (f->fd >= 0)
		(void)close(f->fd);
	base_free((char *)f->path);
	base_free(f->buffer);
	*f = (struct memory_file){.fd = -1};
}

enum base_status memory_file_fill(
	struct memory_file *f, size_t want_bytes, size_t *ret_unread, struct base_err *err)
{
	size_t unread = f->filled - f->at;
	if (unread < want_bytes && !f->ended) {
		memmove(f->buffer, f->buffer + f->at, unread);
		f->offset += f->at;
		f->at = 0;
		f->filled = unread;
	}
	while (f->filled - f->at < want_bytes && !f->ended) {
		ssize_t got =
			read(f->fd, f->buffer + f->filled, MEMORY_FILE_BUFFER_BYTES - f->filled);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return base_fail_errno(err, errno, "cannot read %s at byte %llu", f->path,
				(unsigned long long)f->offset + f->filled);
		f->ended = got == 0;
		f->filled += (size_t)got;
	}
	*ret_unread = f->filled - f->at;
	return BASE_OK;
}

enum base_status memory_file_rewind(struct memory_file *f, struct base_err *err)
{
	if (lseek(f->fd, 0, SEEK_SET) < 0)
		return base_fail(
			err, BASE_ERR_ENV, "%s cannot be read twice (it is a pipe)", f->path);
	f->at = f->filled = 0;
	f->offset = 0;
	f->ended = false;
	return BASE_OK;
}

/* ---- names ----------------------------------------------------------------------------------- */

struct names {
	char **name;
	size_t nr, capacity;
};

static enum base_status files_add_name(struct names *n, const char *text)
{
	size_t length = strlen(text) + 1;
	enum base_status s = base_grow(&n->name, &n->capacity, n->nr + 1, sizeof *n->name);
	if (s != BASE_OK)
		return s;
	char *copy = base_alloc(length);
	if (!copy)
		return BASE_ERR_NOMEM;
	memcpy(copy, text, length);
	n->name[n->nr++] = copy;
	return BASE_OK;
}

/* path.0, path.1 ... while they exist. */
static enum base_status add_numbered(struct names *n, const char *path)
{
	for (unsigned i = 0; i < MEMORY_THREADS_MAX; i++) {
		struct base_str name = {0};
		base_str_addf(&name, "%s.%u", path, i);
		bool is = !name.failed && access(base_str_text(&name), F_OK) == 0;
		enum base_status s = name.failed ? BASE_ERR_NOMEM
				     : is        ? files_add_name(n, base_str_text(&name))
						 : BASE_END;
		base_str_fini(&name);
		if (s != BASE_OK)
			return s == BASE_END ? BASE_OK : s;
	}
	return BASE_OK;
}

enum base_status memory_file_names(const char *const *paths, size_t nr_paths, char ***ret,
	size_t *ret_nr, struct base_err *err)
{
	struct names n = {0};
	enum base_status s = BASE_OK;
	for (size_t i = 0; i < nr_paths && s == BASE_OK; i++) {
		size_t before = n.nr;
		if (access(paths[i], F_OK) != 0)
			s = add_numbered(&n, paths[i]);
		if (s == BASE_OK && n.nr == before)
			s = files_add_name(&n, paths[i]);
	}
	if (s == BASE_OK && n.nr > MEMORY_THREADS_MAX)
		s = base_fail(err, BASE_ERR_LIMIT, "%zu {file|files} are more than %d threads",
			n.nr, MEMORY_THREADS_MAX);
	else if (s != BASE_OK)
		s = base_fail(err, s, "no memory for the names of the trace's files");
	if (s != BASE_OK) {
		memory_file_names_free(n.name, n.nr);
		return s;
	}
	*ret = n.name;
	*ret_nr = n.nr;
	return BASE_OK;
}

void memory_file_names_free(char **names, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		base_free(names[i]);
	base_free(names);
}
