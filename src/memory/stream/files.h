/* SPDX-License-Identifier: Apache-2.0 */
/* files.h - what sources that read files have in common. Private to the layer. */
#ifndef LONGPOLE_MEMORY_FILES_H
#define LONGPOLE_MEMORY_FILES_H

#include "memory/stream/source.h"

enum { MEMORY_FILE_BUFFER_BYTES = 64 * 1024 };

/* struct memory_file - a file or pipe, read forwards in whole buffers. */
struct memory_file {
	const char *path; /* owned */
	int fd;           /* -1: not open */
	bool ended;
	uint8_t *buffer; /* MEMORY_FILE_BUFFER_BYTES; from the first fill on */
	size_t at, filled;
	uint64_t offset; /* of buffer[0] in the file */
};

enum base_status memory_file_open(
	struct memory_file *f, const char *path, struct base_err *err) BASE_MUST_CHECK;
void memory_file_close(struct memory_file *f);
/* Moves what is unread to the front and reads more. *ret_unread: bytes at buffer + at. Fewer than
 * asked for only at the file's end. */
enum base_status memory_file_fill(struct memory_file *f, size_t want_bytes, size_t *ret_unread,
	struct base_err *err) BASE_MUST_CHECK;
/* From the start again; BASE_ERR_ENV for a pipe. */
enum base_status memory_file_rewind(struct memory_file *f, struct base_err *err) BASE_MUST_CHECK;

/* The files that a list of paths means: a path P that is no file, while P.0 is one, means P.0, P.1
 * ... as many as there are (the seed's naming, section 2). base_free() each and the list. */
enum base_status memory_file_names(const char *const *paths, size_t nr_paths, char ***ret,
	size_t *ret_nr, struct base_err *err) BASE_MUST_CHECK;
void memory_file_names_free(char **names, size_t nr);

#endif
