/* SPDX-License-Identifier: Apache-2.0 */
/* machine_spin.c - while processors spin: how long a load address cache would let them sleep (T. Li
 * 2005, section 3.5.2.2). */
#include "slack/machine_private.h"
#include "slack/spins.h"

struct slack_spinner {  /* of a lane */
	size_t next;    /* of its thread's spins */
	uint64_t last;  /* the current one's end, in instructions */
	uint64_t round; /* instructions of one */
	uint64_t word[SLACK_SPINS_WORDS];
	uint32_t nr_words;
	bool more_words, spins;
	uint64_t began, asleep; /* cycles: it spins; it could be in low power */
};

enum base_status slack_spin_init(struct slack_machine *m)
{
	if (!m->options.spins)
		return BASE_OK;
	m->spinner = base_alloc((m->nr_lanes + 1) * sizeof *m->spinner);
	return m->spinner ? BASE_OK : BASE_ERR_NOMEM;
}

/* Asleep up to `at`, but after each timer interrupt it has to see two rounds again. */
static void count_sleep(
	struct slack_machine *m, const struct lane *l, const struct slack_spinner *p, uint64_t at)
{
	struct slack_processor_result *r = &m->result.processor[l - m->lane];
	uint64_t timer = m->config.timer_cycles, awake = 2 * p->round;
	if (at <= p->asleep)
		return;
	uint64_t ticks = timer ? at / timer - p->asleep / timer : 0;
	uint64_t cycles = at - p->asleep, lost = ticks * (awake < timer ? awake : timer);
	r->low_power_cycles += cycles > lost ? cycles - lost : 0;
}

static void end_spin(
	struct slack_machine *m, const struct lane *l, struct slack_spinner *p, uint64_t at)
{
	count_sleep(m, l, p, at);
	m->result.processor[l - m->lane].spun_cycles += at - p->began;
	p->spins = false;
	m->nr_spinning--;
}

static void begin_spin(
	struct slack_machine *m, struct slack_spinner *p, uint64_t round, uint64_t at)
{
	p->round = round;
	p->nr_words = 0;
	p->more_words = false;
	p->spins = true;
	p->began = at;
	p->asleep = at + 2 * round;
	m->nr_spinning++;
}

/* Spins begin and end with the branch of their loop. */
void slack_spin_branched(struct slack_machine *m, const struct lane *l)
{
	struct slack_spinner *p = &m->spinner[l - m->lane];
	const struct slack_spins *all = m->options.spins;
	const struct slack_spin_thread *t = &all->thread[l - m->lane];
	uint64_t position = l->executed + l->ahead + l->tail, now = l->issue + l->tail;
	if (p->spins && position >= p->last)
		end_spin(m, l, p, now);
	while (p->next < t->nr && t->spin[p->next].first < position)
		p->next++;
	if (p->spins || p->next == t->nr || t->spin[p->next].first != position)
		return;
	const struct slack_spin_loop *loop = &all->loop[t->spin[p->next].loop];
	if (m->waiter && slack_wait_skips(m, l))
		return;
	p->last = t->spin[p->next].last;
	begin_spin(m, p, loop->rounds ? loop->instructions / loop->rounds : 1, now);
}

void slack_spin_entered(
	struct slack_machine *m, const struct lane *l, uint64_t address, uint64_t round)
{
	struct slack_spinner *p = &m->spinner[l - m->lane];
	if (p->spins)
		end_spin(m, l, p, l->issue);
	begin_spin(m, p, round, l->issue);
	p->last = UINT64_MAX;
	p->word[p->nr_words++] = address;
}

void slack_spin_left(struct slack_machine *m, const struct lane *l)
{
	slack_spin_ended(m, l);
}

void slack_spin_ended(struct slack_machine *m, const struct lane *l)
{
	struct slack_spinner *p = &m->spinner[l - m->lane];
	if (p->spins)
		end_spin(m, l, p, l->issue);
}

void slack_spin_loaded(struct slack_machine *m, const struct lane *l, uint64_t address)
{
	struct slack_spinner *p = &m->spinner[l - m->lane];
	if (!p->spins)
		return;
	for (uint32_t i = 0; i < p->nr_words; i++)
		if (p->word[i] == address)
			return;
	if (p->nr_words < SLACK_SPINS_WORDS)
		p->word[p->nr_words++] = address;
	else
		p->more_words = true;
}

/* A store to a line that it polls wakes it; it sleeps again when it has seen two rounds. */
static void stored_to(struct slack_machine *m, const struct lane *l, struct slack_spinner *p,
	uint64_t address, uint64_t bytes, uint64_t at)
{
	uint64_t mask = ~((UINT64_C(1) << m->line_shift) - 1);
	bool line = p->more_words || p->nr_words > m->config.lac_entries, word = false;
	for (uint32_t i = 0; i < p->nr_words; i++) {
		uint64_t place = p->word[i] & ~(uint64_t)((1u << PLACE_SHIFT) - 1);
		line |= (p->word[i] & mask) >= (address & mask) &&
			(p->word[i] & mask) <= ((address + bytes - 1) & mask);
		word |= place + (1u << PLACE_SHIFT) > address && place < address + bytes;
	}
	if (!line)
		return;
	struct slack_processor_result *r = &m->result.processor[l - m->lane];
	if (at > p->asleep) {
		count_sleep(m, l, p, at);
		r->low_power_ends++;
		r->low_power_false += !word;
	}
	p->asleep = at + 2 * p->round;
}

void slack_spin_stored(struct slack_machine *m, uint64_t address, uint64_t bytes,
	const struct slack_producer *writer)
{
	for (uint32_t i = 0; i < m->nr_lanes; i++)
		if (m->spinner[i].spins && i != writer->processor)
			stored_to(m, &m->lane[i], &m->spinner[i], address, bytes, writer->complete);
}
