/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_sweep_spec.c - any bytes as the specification of a sweep: refused, or points that have a
 * section and a key each. (The command itself is no library: its parser is seen as one with this.)
 */
#include "cmd/sweep/sweep_spec.c" // NOLINT(bugprone-suspicious-include)
#include "noc/network/config.h"

enum { BYTES_MAX = 2048 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes)
{
	char text[BYTES_MAX + 1];
	char setting[] = "load=0.1 0.2";
	char *const settings[] = {setting};
	struct sweep_spec spec = {0};
	struct base_err err = {0};
	if (size_bytes > BYTES_MAX)
		return 0;
	memcpy(text, size_bytes ? (const void *)data : "", size_bytes);
	text[size_bytes] = 0;
	enum base_status s = sweep_spec_parse(
		&spec, text, "fuzz", settings, size_bytes % 2 ? BASE_COUNT(settings) : 0, &err);
	BASE_ASSERT(s == BASE_OK || s == BASE_ERR_USAGE || s == BASE_ERR_LIMIT);
	for (size_t i = 0; s == BASE_OK && i < spec.nr_points && i < 4; i++) {
		struct base_str key = {0}, series = {0};
		BASE_ASSERT(spec.point[i].section < spec.nr_sections);
		sweep_point_key(&key, &spec.point[i]);
		sweep_point_series(&series, &spec, &spec.point[i]);
		BASE_ASSERT(key.length && !key.failed && !series.failed);
		base_str_fini(&key);
		base_str_fini(&series);
	}
	sweep_spec_fini(&spec);
	return 0;
}
