/* SPDX-License-Identifier: Apache-2.0 */
/* input.h - the bytes of a foreign trace: of a file, compressed with bzip2 or not, or in memory. */
#ifndef LONGPOLE_NOC_INPUT_H
#define LONGPOLE_NOC_INPUT_H

#include "base/base.h"

struct noc_input;
enum base_status noc_input_open(
	const char *path, struct noc_input **ret, struct base_err *err) BASE_MUST_CHECK;
/* Bytes as they are, the caller's until close. NULL: no memory. */
struct noc_input *noc_input_of_memory(const void *bytes, size_t size_bytes);
void noc_input_close(struct noc_input *in); /* NULL-safe */
/* *ret_nr of `nr` bytes; fewer at the end only. */
enum base_status noc_input_read(struct noc_input *in, void *to, size_t nr, size_t *ret_nr,
	struct base_err *err) BASE_MUST_CHECK;
/* A line without its end ("\n" or "\r\n"), terminated; valid until the next call. BASE_END;
 * ERR_LIMIT: a line of more than NOC_INPUT_LINE_MAX bytes. */
enum { NOC_INPUT_LINE_MAX = 1 << 20 };
enum base_status noc_input_line(
	struct noc_input *in, char **ret, struct base_err *err) BASE_MUST_CHECK;
uint64_t noc_input_offset(const struct noc_input *in); /* bytes read, decompressed */

#endif
