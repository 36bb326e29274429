/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_noc_config.c - any bytes as a network's parameters: refused, or every value can be said
 * again. */
#include "noc/network/config.h"

#include <string.h>

enum { BYTES_MAX = 4096 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes)
{
	char text[BYTES_MAX + 1];
	struct noc_config c, again;
	struct base_err err = {0};
	const struct base_parameters p = noc_parameters();
	if (size_bytes > BYTES_MAX)
		return 0;
	memcpy(text, size_bytes ? (const void *)data : "", size_bytes);
	text[size_bytes] = 0;
	noc_config_init(&c);
	noc_config_init(&again);
	enum base_status s = noc_config_parse(&c, text, "fuzz", &err);
	BASE_ASSERT(s == BASE_OK || s == BASE_ERR_USAGE || s == BASE_ERR_NOMEM);
	for (size_t i = 0; i < p.nr; i++) {
		struct base_str said = {0}, twice = {0};
		base_str_addf(&said, "%s=", p.row[i].key);
		base_parameter_add_value(&said, &p.row[i], &c);
		s = noc_config_set(&again, base_str_text(&said), &err);
		BASE_ASSERT(s == BASE_OK);
		base_str_addf(&twice, "%s=", p.row[i].key);
		base_parameter_add_value(&twice, &p.row[i], &again);
		/* Spaces at the ends of a text are not part of it. */
		BASE_ASSERT(p.row[i].kind == BASE_TEXT ||
			    !strcmp(base_str_text(&said), base_str_text(&twice)));
		base_str_fini(&said);
		base_str_fini(&twice);
	}
	return 0;
}
