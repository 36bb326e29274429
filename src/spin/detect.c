/* SPDX-License-Identifier: Apache-2.0 */
/* detect.c - the spin detection table and the register update buffer. */
#include "spin/detect.h"

static bool sizes_are_good(uint32_t nr_sdt, uint32_t nr_rub)
{
	return nr_sdt && nr_rub && nr_sdt <= SPIN_SDT_MAX && nr_rub <= SPIN_RUB_MAX;
}

static uint32_t mask_words_of(uint32_t nr_sdt)
{
	return (nr_sdt + 63) / 64;
}

size_t spin_detector_size_bytes(uint32_t nr_sdt, uint32_t nr_rub)
{
	if (!sizes_are_good(nr_sdt, nr_rub))
		return 0;
	return nr_sdt * sizeof(struct spin_sdt) + nr_rub * sizeof(struct spin_rub) +
	       (size_t)nr_rub * mask_words_of(nr_sdt) * sizeof(uint64_t);
}

bool spin_detector_init(struct spin_detector *d, void *memory, uint32_t nr_sdt, uint32_t nr_rub)
{
	if (!sizes_are_good(nr_sdt, nr_rub))
		return false;
	struct spin_sdt *sdt = memory;
	struct spin_rub *rub = (struct spin_rub *)(sdt + nr_sdt);
	*d = (struct spin_detector){.nr_sdt = nr_sdt,
		.nr_rub = nr_rub,
		.mask_words = mask_words_of(nr_sdt),
		.sdt = sdt,
		.rub = rub,
		.mask = (uint64_t *)(rub + nr_rub)};
	return true;
}

/* ---- masks: which SDT entries a RUB entry belongs to ----------------------------------------- */

static uint64_t *mask_of(const struct spin_detector *d, uint32_t rub)
{
	return d->mask + (size_t)rub * d->mask_words;
}

static bool detect_is_empty(const struct spin_detector *d, const uint64_t *mask)
{
	uint64_t any = 0;
	for (uint32_t i = 0; i < d->mask_words; i++)
		any |= mask[i];
	return !any;
}

static bool detect_has(const uint64_t *mask, uint32_t entry)
{
	return mask[entry / 64] >> (entry % 64) & 1;
}

static void detect_add(uint64_t *mask, uint32_t entry)
{
	mask[entry / 64] |= UINT64_C(1) << (entry % 64);
}

/* Takes an SDT entry out of all RUB entries, which frees those that have no other. */
static void detect_release(struct spin_detector *d, uint32_t entry)
{
	const uint64_t keep = ~(UINT64_C(1) << (entry % 64));
	for (uint32_t i = 0; i < d->rub_end; i++)
		mask_of(d, i)[entry / 64] &= keep;
	while (d->rub_end && detect_is_empty(d, mask_of(d, d->rub_end - 1)))
		d->rub_end--;
}

/* ---- the SDT --------------------------------------------------------------------------------- */

/* Entry i from the top. */
static uint32_t detect_slot_of(const struct spin_detector *d, uint32_t i)
{
	uint32_t slot = d->top + i;
	return slot < d->nr_sdt ? slot : slot - d->nr_sdt;
}

static void detect_pop(struct spin_detector *d)
{
	detect_release(d, d->top);
	d->top = detect_slot_of(d, 1);
	d->used--;
}

static uint32_t detect_push(struct spin_detector *d)
{
	if (d->used == d->nr_sdt) {
		detect_release(d, detect_slot_of(d, d->used - 1));
		d->used--;
		d->counts.evictions++;
	}
	d->top = d->top ? d->top - 1 : d->nr_sdt - 1;
	d->used++;
	return d->top;
}

void spin_changed(struct spin_detector *d)
{
	d->counts.changing_stores++;
	if (!d->used)
		return;
	d->top = d->used = 0;
	for (size_t i = 0; i < (size_t)d->rub_end * d->mask_words; i++)
		d->mask[i] = 0;
	d->rub_end = 0;
}

/* ---- the RUB --------------------------------------------------------------------------------- */

static bool detect_is_same(const uint64_t *a, const uint64_t *b, uint32_t words)
{
	uint64_t differs = 0;
	for (uint32_t i = 0; i < words; i++)
		differs |= a[i] ^ b[i];
	return !differs;
}

/* A free RUB entry for (reg, value), or nr_rub. */
static uint32_t detect_place(
	struct spin_detector *d, uint32_t reg, uint32_t words, const uint64_t *value)
{
	uint32_t i = 0;
	while (i < d->rub_end && !detect_is_empty(d, mask_of(d, i)))
		i++;
	if (i == d->nr_rub)
		return i;
	if (i == d->rub_end)
		d->rub_end++;
	struct spin_rub *r = &d->rub[i];
	r->reg = reg;
	r->words = words;
	for (uint32_t w = 0; w < words; w++)
		r->value[w] = value[w];
	return i;
}

/* No room: these SDT entries' iterations will not count as spinning. */
static void overflow(struct spin_detector *d, const uint64_t *entries)
{
	for (uint32_t i = 0; i < d->used; i++) {
		uint32_t slot = detect_slot_of(d, i);
		if (detect_has(entries, slot) && !d->sdt[slot].overflow) {
			d->sdt[slot].overflow = true;
			d->counts.overflows++;
			detect_release(d, slot);
		}
	}
}

void spin_register(struct spin_detector *d, uint32_t reg, uint32_t words, const uint64_t *before,
	const uint64_t *after)
{
	if (!d->used || words > SPIN_VALUE_WORDS || detect_is_same(before, after, words))
		return;
	/* Of the SDT entries: those that have the register, as it was for each, in the RUB. */
	uint64_t known[(SPIN_SDT_MAX + 63) / 64] = {0}, fresh[(SPIN_SDT_MAX + 63) / 64] = {0};
	uint32_t match = d->nr_rub; /* what has `before` as its value */
	for (uint32_t i = 0; i < d->rub_end; i++) {
		uint64_t *mask = mask_of(d, i);
		if (d->rub[i].reg != reg || detect_is_empty(d, mask))
			continue;
		for (uint32_t w = 0; w < d->mask_words; w++)
			known[w] |= mask[w];
		if (detect_is_same(d->rub[i].value, after, words)) /* it is again what it was */
			for (uint32_t w = 0; w < d->mask_words; w++)
				mask[w] = 0;
		else if (detect_is_same(d->rub[i].value, before, words))
			match = i;
	}
	for (uint32_t i = 0; i < d->used; i++) {
		uint32_t slot = detect_slot_of(d, i);
		if (!detect_has(known, slot) && !d->sdt[slot].overflow)
			detect_add(fresh, slot);
	}
	if (detect_is_empty(d, fresh))
		return;
	if (match == d->nr_rub)
		match = detect_place(d, reg, words, before);
	if (match == d->nr_rub) {
		overflow(d, fresh);
		return;
	}
	for (uint32_t w = 0; w < d->mask_words; w++)
		mask_of(d, match)[w] |= fresh[w];
}

/* ---- backward control transfers -------------------------------------------------------------- */

static bool is_as_it_was(const struct spin_detector *d, uint32_t slot)
{
	if (d->sdt[slot].overflow)
		return false;
	uint64_t any = 0;
	for (uint32_t i = 0; i < d->rub_end; i++)
		any |= mask_of(d, i)[slot / 64] >> (slot % 64) & 1;
	return !any;
}

/* The top has spun. Nested spins count once: what other loops have counted of these instructions,
 * as their own so far, is not theirs any more. */
static void detect_count_spin(struct spin_detector *d, uint64_t instructions)
{
	d->counts.spins++;
	d->counts.spinning += instructions;
	for (uint32_t i = 1; i < d->used; i++) {
		struct spin_sdt *e = &d->sdt[detect_slot_of(d, i)];
		uint64_t own = d->counts.instructions - e->began_instructions;
		e->began_instructions += own < instructions ? own : instructions;
	}
}

/* Its place from the top; `used`: it is not there. */
static uint32_t detect_find(const struct spin_detector *d, uint64_t pc)
{
	uint32_t i = 0;
	while (i < d->used && d->sdt[detect_slot_of(d, i)].pc != pc)
		i++;
	return i;
}

static void begin_iteration(struct spin_detector *d, uint32_t slot)
{
	d->sdt[slot].overflow = false;
	d->sdt[slot].began_instructions = d->counts.instructions;
}

static void did_not_spin(struct spin_detector *d, uint32_t slot, uint64_t now)
{
	d->sdt[slot].iterations = 0;
	d->sdt[slot].since = now;
	detect_release(d, slot);
}

struct spin_verdict spin_branch(struct spin_detector *d, uint64_t pc, uint64_t now)
{
	struct spin_verdict v = {0};
	uint32_t i = detect_find(d, pc);
	d->counts.bcts++;
	if (i == d->used) {
		uint32_t slot = detect_push(d);
		d->sdt[slot] = (struct spin_sdt){.pc = pc, .since = now};
		begin_iteration(d, slot);
		return v;
	}
	uint32_t slot = detect_slot_of(d, i);
	const struct spin_sdt *e = &d->sdt[slot];
	d->counts.cycles++;
	v.cycle = true;
	v.spinning = is_as_it_was(d, slot);
	v.instructions = d->counts.instructions - e->began_instructions;
	if (v.spinning) {
		while (i--)
			detect_pop(d);
		detect_count_spin(d, v.instructions);
		v.iterations = ++d->sdt[slot].iterations;
		v.since = e->since;
	} else {
		did_not_spin(d, slot, now);
	}
	begin_iteration(d, slot);
	return v;
}

bool spin_branch_changed(struct spin_detector *d, uint64_t pc, uint64_t now)
{
	uint32_t i = detect_find(d, pc);
	if (i == d->used)
		return false;
	d->counts.bcts++;
	d->counts.cycles++;
	did_not_spin(d, detect_slot_of(d, i), now);
	begin_iteration(d, detect_slot_of(d, i));
	return true;
}

void spin_distrust(struct spin_detector *d, uint64_t pc)
{
	uint32_t i = detect_find(d, pc);
	if (i == d->used)
		return;
	detect_release(d, detect_slot_of(d, i));
	d->sdt[detect_slot_of(d, i)].overflow = true;
}
