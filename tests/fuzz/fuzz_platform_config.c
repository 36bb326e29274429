/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_platform_config.c - any bytes as a platform's configuration: read or refused with a cause,
 * never worse. */
#include "platform/platform.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct base_err err = {0};
	struct platform_config *c = platform_config_new();
	char *text = malloc(size + 1);
	if (!c || !text)
		abort();
	memcpy(text, data, size);
	text[size] = '\0';
	enum base_status s = platform_config_read(c, text, "fuzz", &err);
	if (s == BASE_OK)
		s = platform_config_check(c, &err);
	if (s != BASE_OK && !err.nr_causes)
		abort();
	(void)!platform_config_set(c, text, &err);
	free(text);
	platform_config_free(c);
	return 0;
}
