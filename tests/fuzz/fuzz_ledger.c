/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_ledger.c - any bytes as a ledger of predictions: what is no entry is counted, what is one
 * has sane numbers. */
#include "report/ledger.h"

#include <math.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes)
{
	struct base_err err = {0};
	struct report_ledger l = {0};
	char *text = base_alloc(size_bytes + 1);
	BASE_ASSERT(text != NULL);
	if (size_bytes)
		memcpy(text, data, size_bytes);
	enum base_status s = report_ledger_read(&l, text, &err);
	BASE_ASSERT(s == BASE_OK);
	for (size_t i = 0; i < l.nr; i++) {
		const struct report_history *h = &l.history[i];
		BASE_ASSERT(h->kind && *h->kind);
		BASE_ASSERT(h->nr_path + h->nr_replay + h->nr_best > 0);
		BASE_ASSERT(!isnan(h->best_factor) && h->best_factor >= 0);
		BASE_ASSERT(!h->nr_path || h->path_median <= h->path_worst);
		BASE_ASSERT(!h->nr_replay || h->replay_median <= h->replay_worst);
	}
	report_ledger_fini(&l);
	base_free(text);
	return 0;
}
