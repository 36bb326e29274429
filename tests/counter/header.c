/* SPDX-License-Identifier: Apache-2.0 */
/* header.c - counter.h as C11 and as C++17, with every warning, linked either way. */
#include <longpole/counter.h>
#include <longpole/annotate.h>

static int use(struct longpole_counter *c)
{
	struct longpole_counter_sums sums = {{0}, 0, 0};
	uint64_t value[2], taken[2];
	int error = longpole_counter_read(c, value);
	{
		LONGPOLE_COUNTED(c, &sums);
		LONGPOLE_PHASE("phase");
		longpole_phase("another");
		longpole_phase_end();
	}
#ifdef __cplusplus
	{
		longpole::scope counted(*c, sums);
		longpole::phase inside(LONGPOLE_NAME("inside"));
	}
	if (sums.entered != 2)
		return 1;
#else
	if (sums.entered != 1)
		return 1;
#endif
	return error || sums.failed || longpole_counter_take(c, taken) || taken[0] < value[0] ||
	       !sums.count[0];
}

int main(void)
{
	const enum longpole_event event[] = {LONGPOLE_TICKS, LONGPOLE_SWITCHES};
	struct longpole_counter c;
	int error = longpole_counter_open(&c, event, 2, 0);
	error = error || use(&c);
	longpole_counter_close(&c);
	return error;
}
