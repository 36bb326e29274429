/* SPDX-License-Identifier: Apache-2.0 */
/* unpack.h - files that are compressed as a whole, known by their first bytes. */
#ifndef LONGPOLE_FORMAT_UNPACK_H
#define LONGPOLE_FORMAT_UNPACK_H

#include "format/private.h"

/* More than this is not unpacked: a small file may claim to be any size. */
enum { FORMAT_UNPACKED_BYTES_MAX = 1 << 29 };

struct format_unpacked {
	struct format_source source; /* the bytes to import: its own, or those of `from` */
	const struct format_source *from;
	uint8_t *bytes; /* NULL: it was not compressed */
	size_t nr, capacity;
	bool cut; /* the compressed file ends early, or goes on with something else */
};

/*
 * `from` as it is, or what it unpacks to when it is gzip or zstd. It must outlive the result, which
 * format_unpack_fini() frees in any case.
 * ERR_FOREIGN: damaged from the start, or a compression that is not read; ERR_LIMIT: too large.
 */
enum base_status format_unpack(const struct format_source *from, struct format_unpacked *ret,
	struct base_err *err) BASE_MUST_CHECK;
void format_unpack_fini(struct format_unpacked *u);

#endif
