/* SPDX-License-Identifier: Apache-2.0 */
/*
 * samples.c - which function a state's time went to.
 *
 * A sample counts by where it was in its visit of the state: in which sixteenth of the time that
 * the thread executed there, preemptions left out. Each sixteenth is known to be as much of the
 * time as any other, so a function's share is the mean of its shares in each, and not that of all
 * samples together: how many samples chance, or a recorder and a kernel in which none is taken, put
 * into one part of the visits does not matter, and a function that always comes first, or last, is
 * known much better than a count of samples would know it (post-stratification: Holt and Smith
 * 1979, "Post stratification", J. R. Stat. Soc. A 142).
 */
#include "model/model_private.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STRATA = MODEL_STRATA, A_STRATUM = 8, STRATUM_SHIFT = 40 };
enum { VISIT_SAMPLES_MAX = 4096 }; /* of one visit; a longer one counts as several */

/* ---- while records come: samples of a visit whose end is yet to come ------------------------- */

static void count_sample(struct model *m, uint32_t state, uint64_t function, uint64_t stratum)
{
	uint64_t key = stratum << STRATUM_SHIFT | function, n = 0;
	base_map_get(&m->sampled.samples, state, key, &n);
	enum base_status s = base_map_put(&m->sampled.samples, state, key, n + 1);
	if (s != BASE_OK && m->status == BASE_OK)
		m->status = base_fail(m->err, s, "out of memory for samples");
}

static void begin_visit(struct visit *v, uint32_t state, uint64_t time_ns)
{
	v->open = true;
	v->away = false;
	v->state = state;
	v->ran_ns = 0;
	v->since_ns = time_ns;
}

/* A sample lengthens its visit, by about as much before its time stamp as after: without that, a
 * function at the visit's end would seem to begin earlier than it does. */
static void count_visit(struct model *m, struct visit *v, uint64_t time_ns)
{
	double cost_ns = v->nr ? (double)trace_cost_each_ns(m->defs, TRACE_COST_SAMPLES) : 0;
	double ran_ns = (double)(v->ran_ns + (v->away ? 0 : time_ns - v->since_ns)) -
			(double)v->nr * cost_ns;
	for (uint32_t i = 0; i < v->nr; i++) {
		double at_ns = (double)v->sample[i].at_ns - (i + 0.5) * cost_ns;
		double at = at_ns > 0 && ran_ns > 0 ? at_ns / ran_ns : 0;
		uint64_t stratum = at < 1 ? (uint64_t)(at * STRATA) : STRATA - 1;
		count_sample(m, v->state, v->sample[i].function, stratum);
	}
	v->nr = 0;
}

/* It leaves its processor, and will go on with what it does. */
void model_visit_leaves(struct thread *t, uint64_t time_ns)
{
	struct visit *v = &t->visit;
	if (!v->open || v->state != t->graph_state)
		begin_visit(v, t->graph_state, t->entered_ns);
	v->ran_ns += v->away ? 0 : time_ns - v->since_ns;
	v->away = true;
}

/* Called for visits that are open only; state: that it is about to enter. */
void model_visit_enters(struct model *m, struct thread *t, uint32_t state, uint64_t time_ns)
{
	struct visit *v = &t->visit;
	if (v->away && state == v->state) {
		v->away = false;
		v->since_ns = time_ns;
		return;
	}
	if (v->away && t->graph_state == v->state)
		return; /* that of a thread that waits for a processor */
	count_visit(m, v, time_ns);
	v->open = false;
}

static void keep_sample(struct model *m, struct visit *v, uint64_t time_ns, uint64_t function)
{
	if (v->nr == VISIT_SAMPLES_MAX) {
		count_visit(m, v, time_ns);
		begin_visit(v, v->state, time_ns);
	}
	if (base_grow(&v->sample, &v->capacity, v->nr + 1, sizeof *v->sample) != BASE_OK) {
		m->status = base_fail(m->err, BASE_ERR_NOMEM, "out of memory for samples");
		return;
	}
	v->sample[v->nr++] = (struct visit_sample){
		.at_ns = v->ran_ns + (v->away ? 0 : time_ns - v->since_ns), .function = function};
}

static const char *samples_base_name(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash ? slash + 1 : path;
}

/* What the recorder does within the program is not the program's, whatever function it stands for.
 */
static bool is_recorders(const struct model *m, uint32_t module)
{
	return module && module < m->defs->nr_modules &&
	       !strncmp(samples_base_name(trace_text_of(m->defs, m->defs->modules[module].path)),
		       "liblongpole-", strlen("liblongpole-"));
}

/* In a system call that takes time in the kernel: of the program's own code a sample there only
 * meets the way in and out, however much of the call that is. */
static bool is_beside_the_call(const struct model *m, uint32_t state, uint32_t module)
{
	bool kernels = module && module < m->defs->nr_modules &&
		       !strncmp(trace_text_of(m->defs, m->defs->modules[module].path), "[kernel",
			       strlen("[kernel"));
	return state < m->made.nr_states && m->made.state[state].pub.kind == MODEL_STATE_io &&
	       !kernels;
}

static void samples_count_spin(struct model *m, uint32_t state, uint32_t site)
{
	uint64_t n = 0;
	if (site >= m->defs->nr_wait_loops || !m->defs->wait_loops[site].site)
		return;
	base_map_get(&m->sampled.spins, state, site, &n);
	model_put(m, &m->sampled.spins, state, site, n + 1);
}

void model_rule_sample(struct model *m, struct thread *t, const struct trace_record *r)
{
	uint32_t site = r->u.sample.site;
	uint64_t function = 0;
	uint32_t module = site && site < m->defs->nr_sites ? m->defs->sites[site].module : 0;
	uint32_t chain = model_site_chain(m, site);
	if (is_recorders(m, module))
		function = (uint64_t)MODEL_SAMPLE_module << 32 | module;
	else if (chain)
		function = (uint64_t)MODEL_SAMPLE_chain << 32 | chain;
	else if (site && site < m->defs->nr_symbols && m->defs->symbols[site].function)
		function = m->defs->symbols[site].function;
	else if (site && site < m->defs->nr_sites)
		function = (uint64_t)MODEL_SAMPLE_module << 32 | module;
	uint32_t state = t->mode == MODE_RUNNABLE || t->mode == MODE_BLOCKED ? t->resume_state
									     : t->graph_state;
	struct visit *v = &t->visit;
	if (is_beside_the_call(m, state, module))
		return;
	if (v->open && v->state != state) { /* renamed meanwhile */
		count_visit(m, v, r->time_ns);
		v->open = false;
	}
	if (!v->open)
		begin_visit(v, state, t->entered_ns);
	samples_count_spin(m, state, site);
	if (!is_recorders(m, module)) {
		model_count_line(m, site, r->u.sample.stack);
		function = model_sample_key(m, function, module, r->u.sample.stack);
	}
	keep_sample(m, v, r->time_ns, function);
}

/* Nothing of what was sampled until now counts. */
void model_forget_samples(struct model *m)
{
	base_map_fini(&m->sampled.samples);
	base_map_fini(&m->sampled.spins);
	base_map_fini(&m->sampled.lines);
	for (uint32_t i = 0; i < m->nr_threads; i++)
		m->thread[i].visit.nr = 0;
}

/* ---- all of them: lists of functions --------------------------------------------------------- */

struct sample_pass {
	struct model *m;
	bool failed;
};

static bool add_chain(struct model_function_share *f, uint32_t chain, uint64_t nr_samples)
{
	size_t i = 0;
	while (i < f->nr_inlined && f->inlined[i].chain != chain)
		i++;
	if (i == f->nr_inlined) {
		struct model_inlined_share *grown = base_realloc(f->inlined,
			f->nr_inlined * sizeof *grown, (f->nr_inlined + 1) * sizeof *grown);
		if (!grown)
			return false;
		f->inlined = grown;
		f->inlined[f->nr_inlined++] = (struct model_inlined_share){.chain = chain};
	}
	f->inlined[i].nr_samples += nr_samples;
	return true;
}

static bool add_to_list(struct function_list *l, const struct sampled *of, uint64_t nr_samples)
{
	const char *name = of->name, *where = of->where;
	size_t i = 0;
	while (i < l->nr && (strcmp(l->function[i].function, name) != 0 ||
				    strcmp(l->function[i].where, where) != 0))
		i++;
	if (i == l->nr) {
		struct model_function_share *grown = base_realloc(
			l->function, l->nr * sizeof *grown, (l->nr + 1) * sizeof *grown);
		if (!grown)
			return false;
		l->function = grown;
		struct strata *strata = base_realloc(
			l->strata, l->nr * sizeof *strata, (l->nr + 1) * sizeof *strata);
		if (!strata)
			return false;
		l->strata = strata;
		l->strata[l->nr] = (struct strata){0};
		l->function[l->nr++] =
			(struct model_function_share){.function = name, .where = where};
	}
	l->function[i].nr_samples += nr_samples;
	l->strata[i].nr[of->stratum] += nr_samples;
	l->all.nr[of->stratum] += nr_samples;
	l->nr_samples += nr_samples;
	return !of->chain || add_chain(&l->function[i], of->chain, nr_samples);
}

/* The list that all threads of a role share for one place: for those that have few samples of their
 * own. */
static struct function_list *pool_of(struct sample_pass *p, struct state_info *st)
{
	struct model *m = p->m;
	uint64_t ix;
	if (!base_map_get(&m->sampled.pools, st->role, st->pub.site, &ix)) {
		ix = m->sampled.nr_pools;
		if (base_grow(&m->sampled.pool, &m->sampled.pool_capacity, ix + 1,
			    sizeof *m->sampled.pool) != BASE_OK ||
			base_map_put(&m->sampled.pools, st->role, st->pub.site, ix) != BASE_OK)
			return NULL;
		m->sampled.pool[m->sampled.nr_pools++] = (struct function_list){0};
	}
	return &m->sampled.pool[ix];
}

struct sampled model_sampled_of(const struct model *m, const struct sample_row *row)
{
	uint64_t function = model_sample_function(m, row->function);
	uint32_t id = (uint32_t)function;
	struct sampled of = {.name = "", .where = "", .stratum = row->stratum};
	switch (function >> 32) {
	case MODEL_SAMPLE_chain:
		of.chain = id;
		of.name = trace_text_of(m->defs, model_chain_function(m, id));
		break;
	case MODEL_SAMPLE_module:
		of.where = is_recorders(m, id) ? "longpole's recorder"
			   : id && id < m->defs->nr_modules
				   ? samples_base_name(
					     trace_text_of(m->defs, m->defs->modules[id].path))
				   : "code of no file (made at run time)";
		break;
	case MODEL_SAMPLE_inside:
		of.name = m->sampled.inside[id];
		break;
	default:
		of.name = trace_text_of(m->defs, id);
	}
	return of;
}

static bool samples_add_row(struct function_list *l, const struct sample_row *row)
{
	if (base_grow(&l->row, &l->row_capacity, l->nr_rows + 1, sizeof *row) != BASE_OK)
		return false;
	l->row[l->nr_rows++] = *row;
	return true;
}

static bool samples_add_sample(void *ctx, uint64_t state, uint64_t key, uint64_t count)
{
	struct sample_pass *p = ctx;
	struct model *m = p->m;
	if (state >= m->made.nr_states)
		return true;
	struct state_info *st = &m->made.state[state];
	struct sample_row row = {.function = key & ((UINT64_C(1) << STRATUM_SHIFT) - 1),
		.nr = count,
		.stratum = (uint32_t)(key >> STRATUM_SHIFT)};
	struct sampled of = model_sampled_of(m, &row);
	p->failed |= !add_to_list(&st->own, &of, count) || !samples_add_row(&st->own, &row);
	if (st->pub.kind == MODEL_STATE_run) {
		struct function_list *pool = pool_of(p, st);
		p->failed |=
			!pool || !add_to_list(pool, &of, count) || !samples_add_row(pool, &row);
	}
	return !p->failed;
}

static int by_samples(const void *a, const void *b)
{
	const struct model_function_share *x = a, *y = b;
	if (x->nr_samples != y->nr_samples)
		return x->nr_samples < y->nr_samples ? 1 : -1;
	int c = strcmp(x->function, y->function);
	return c ? c : strcmp(x->where, y->where);
}

static int chains_by_samples(const void *a, const void *b)
{
	const struct model_inlined_share *x = a, *y = b;
	if (x->nr_samples != y->nr_samples)
		return x->nr_samples < y->nr_samples ? 1 : -1;
	return x->chain < y->chain ? -1 : x->chain > y->chain;
}

/* So many strata are a part: it has about A_STRATUM samples. */
static unsigned strata_a_part(uint64_t nr_samples)
{
	unsigned width = 1;
	while (width < STRATA && nr_samples < (uint64_t)(STRATA / width) * A_STRATUM)
		width *= 2;
	return width;
}

static uint64_t in_part(const struct strata *s, unsigned part, unsigned width)
{
	uint64_t sum = 0;
	for (unsigned k = part * width; k < (part + 1) * width; k++)
		sum += s->nr[k];
	return sum;
}

/*
 * The mean of a function's shares in each part of the visits; *ret_variance: its variance, of
 * shares that are drawn a little to the middle, since none of a few samples is not never.
 */
static double mean_share(
	const struct strata *f, const struct strata *all, uint64_t nr_samples, double *ret_variance)
{
	unsigned width = strata_a_part(nr_samples), nr_seen = 0;
	double sum = 0, variance = 0;
	for (unsigned k = 0; k < STRATA / width; k++) {
		double n = (double)in_part(all, k, width), own = (double)in_part(f, k, width);
		double likely = (own + 0.5) / (n + 1);
		if (n <= 0)
			continue;
		nr_seen++;
		sum += own / n;
		variance += likely * (1 - likely) / n;
	}
	*ret_variance = variance / nr_seen / nr_seen;
	return sum / nr_seen;
}

/* What mean_share() adds for one row's samples. */
double model_row_share(const struct function_list *l, const struct sample_row *row)
{
	unsigned width = strata_a_part(l->nr_samples), nr_seen = 0;
	for (unsigned k = 0; k < STRATA / width; k++)
		nr_seen += in_part(&l->all, k, width) > 0;
	uint64_t n = in_part(&l->all, row->stratum / width, width);
	return n && nr_seen ? (double)row->nr / (double)n / nr_seen : 0;
}

/* Wilson's interval for a share (Wilson 1927), 95 %, of as many samples as would have the share's
 * variance if they were taken from all visits' time alike. */
static void set_share(struct model_function_share *f, double p, double variance, double nr_samples)
{
	const double z = 1.96;
	double all = fmax(nr_samples, p * (1 - p) / variance), d = 1 + z * z / all;
	double mid = (p + z * z / (2 * all)) / d;
	double half = z * sqrt(p * (1 - p) / all + z * z / (4 * all * all)) / d;
	f->share = p;
	f->share_low = mid > half ? mid - half : 0;
	f->share_high = mid + half < 1 ? mid + half : 1;
	for (size_t k = 0; k < f->nr_inlined; k++)
		f->inlined[k].share = p * (double)f->inlined[k].nr_samples / (double)f->nr_samples;
	if (f->nr_inlined)
		qsort(f->inlined, f->nr_inlined, sizeof *f->inlined, chains_by_samples);
}

void model_share_of(
	const struct function_list *l, const struct strata *s, struct model_function_share *ret)
{
	double variance, p = mean_share(s, &l->all, l->nr_samples, &variance);
	set_share(ret, p, variance, (double)l->nr_samples);
}

static void set_shares(struct function_list *l)
{
	for (size_t i = 0; i < l->nr; i++)
		model_share_of(l, &l->strata[i], &l->function[i]);
	if (l->nr)
		qsort(l->function, l->nr, sizeof *l->function, by_samples);
	base_free(l->strata);
	l->strata = NULL;
}

const struct function_list *model_function_list(const struct model *m, uint32_t state)
{
	const struct state_info *st = state < m->made.nr_states ? &m->made.state[state] : NULL;
	uint64_t pool;
	if (!st || (st->own.nr_samples >= MODEL_ENOUGH_SAMPLES && !st->like_role) ||
		st->pub.kind != MODEL_STATE_run ||
		!base_map_get(&m->sampled.pools, st->role, st->pub.site, &pool))
		return st ? &st->own : NULL;
	return &m->sampled.pool[pool];
}

/*
 * Pearson's chi-square: are a thread's samples as those of all threads of its role? Then these say
 * with less error what it did. Functions of fewer than five expected samples count together.
 */
static bool is_like_role(const struct function_list *own, const struct function_list *pool)
{
	const double least = 5, share = (double)own->nr_samples / (double)pool->nr_samples;
	double sum = 0, rest = (double)own->nr_samples, rest_expected = rest, nr = -1;
	for (size_t i = 0; i < pool->nr; i++) {
		const struct model_function_share *f = &pool->function[i];
		double expected = (double)f->nr_samples * share, seen = 0;
		if (expected < least)
			continue;
		for (size_t k = 0; k < own->nr; k++)
			if (!strcmp(own->function[k].function, f->function) &&
				!strcmp(own->function[k].where, f->where))
				seen += (double)own->function[k].nr_samples;
		sum += (seen - expected) * (seen - expected) / expected;
		rest -= seen;
		rest_expected -= expected;
		nr++;
	}
	if (rest_expected >= least) {
		sum += (rest - rest_expected) * (rest - rest_expected) / rest_expected;
		nr++;
	}
	return sum <= nr + 3 * sqrt(2 * nr); /* mean and three standard deviations */
}

void model_empty_list(struct function_list *l)
{
	for (size_t i = 0; i < l->nr; i++)
		base_free(l->function[i].inlined);
	base_free(l->function);
	base_free(l->strata);
	base_free(l->row);
	*l = (struct function_list){0};
}

/* What was sampled in the visit so far. */
void model_count_visit(struct model *m, struct thread *t)
{
	struct visit *v = &t->visit;
	if (!v->open)
		return;
	count_visit(m, v, t->life.end_ns);
	if (!v->away)
		begin_visit(v, v->state, t->life.end_ns);
}

/* ---- where no sample can be taken: in the kernel, of a program that is recorded itself ------- */

/* Of each running thread, as the recorder said; 0: not known, or not when it ran. */
static double samples_a_second(const struct model *m)
{
	unsigned long long hz = 0;
	bool switches = false;
	for (uint32_t i = 1; i < m->defs->nr_costs; i++) {
		const struct trace_cost *c = &m->defs->costs[i];
		const char *name = trace_text_of(m->defs, c->name);
		switches |= c->n && !strcmp(name, TRACE_COST_SWITCHES);
		if (!strcmp(name, TRACE_COST_SAMPLES) &&
			sscanf(trace_text_of(m->defs, c->method), TRACE_COST_SAMPLES_METHOD, &hz) !=
				1)
			hz = 0;
	}
	return switches ? (double)hz : 0;
}

/* Fewer than half of the samples that so much time should have: the rest of it was in the kernel.
 * (Fewer, but not so few, may also be for a virtual machine's host, which took the processor.) */
static bool add_kernel(struct function_list *l, double expected)
{
	const double sure = 3, least = 0.5;
	double missing = expected - (double)l->nr_samples;
	struct sampled kernel = {.name = "", .where = MODEL_KERNEL_NOT_SAMPLED};
	if (missing < sure * sqrt(expected) || missing < least * expected)
		return true;
	uint64_t nr = (uint64_t)missing;
	for (kernel.stratum = 0; kernel.stratum < STRATA; kernel.stratum++) {
		uint64_t n = nr * (kernel.stratum + 1) / STRATA - nr * kernel.stratum / STRATA;
		if (n && !add_to_list(l, &kernel, n))
			return false;
	}
	return true;
}

/* How many samples each state and each pool should have. */
static enum base_status expect_samples(struct model *m, double hz, double *own, double *pool)
{
	const struct graph_state_totals *total;
	size_t nr;
	enum base_status s = graph_totals(m->graph, &total, &nr, m->err);
	for (size_t i = 0; s == BASE_OK && i < nr; i++) {
		const struct state_info *st = &m->made.state[total[i].state];
		double expected = (double)(total[i].total_ns - total[i].waiting_ns) * hz / 1e9;
		uint64_t ix;
		if (st->pub.kind == MODEL_STATE_run || st->pub.kind == MODEL_STATE_hold)
			own[total[i].state] += expected;
		if (st->pub.kind == MODEL_STATE_run &&
			base_map_get(&m->sampled.pools, st->role, st->pub.site, &ix))
			pool[ix] += expected;
	}
	return s;
}

static enum base_status add_kernels(struct sample_pass *p)
{
	struct model *m = p->m;
	double hz = samples_a_second(m);
	bool part = m->opts->from_ns || m->opts->turns || m->follow.by_connection ||
		    (m->opts->to_ns && m->opts->to_ns != UINT64_MAX);
	if (hz <= 0 || m->is_system || m->run.is_merged || part)
		return BASE_OK;
	double *own = base_alloc((m->made.nr_states + 1) * sizeof *own),
	       *pool = base_alloc((m->sampled.nr_pools + 1) * sizeof *pool);
	if (!own || !pool) {
		base_free(own);
		base_free(pool);
		return base_fail(m->err, BASE_ERR_NOMEM, "out of memory for samples");
	}
	enum base_status s = expect_samples(m, hz, own, pool);
	for (uint32_t i = 0; s == BASE_OK && i < m->made.nr_states; i++)
		p->failed |= !add_kernel(&m->made.state[i].own, own[i]);
	for (size_t i = 0; s == BASE_OK && i < m->sampled.nr_pools; i++)
		p->failed |= !add_kernel(&m->sampled.pool[i], pool[i]);
	base_free(own);
	base_free(pool);
	return s;
}

static bool samples_add_spin(void *ctx, uint64_t state, uint64_t site, uint64_t count)
{
	struct sample_pass *p = ctx;
	struct state_info *st = state < p->m->made.nr_states ? &p->m->made.state[state] : NULL;
	if (!st || (st->pub.kind != MODEL_STATE_run && st->pub.kind != MODEL_STATE_hold))
		return true;
	st->nr_spins += count;
	if (count > st->nr_most_spins ||
		(count == st->nr_most_spins && (uint32_t)site < st->spin_site)) {
		st->nr_most_spins = count;
		st->spin_site = (uint32_t)site;
	}
	return true;
}

static void list_spins(struct sample_pass *pass)
{
	struct model *m = pass->m;
	for (uint32_t i = 0; i < m->made.nr_states; i++) {
		m->made.state[i].nr_program_samples = m->made.state[i].own.nr_samples;
		m->made.state[i].nr_spins = m->made.state[i].nr_most_spins = 0;
	}
	base_map_each(&m->sampled.spins, samples_add_spin, pass);
}

/* (Of a loop that yields most samples are missing: it is in the kernel.) */
struct model_spin model_state_spin(const struct model *m, uint32_t state)
{
	const struct state_info *st = state < m->made.nr_states ? &m->made.state[state] : NULL;
	if (!st || !st->nr_spins || !st->nr_program_samples)
		return (struct model_spin){0};
	return (struct model_spin){
		.share = fmin(1, (double)st->nr_spins / (double)st->nr_program_samples),
		.site = st->spin_site,
		.word = trace_text_of(m->defs, m->defs->wait_loops[st->spin_site].word)};
}

/* Anew, of all samples so far; `ended`: there will be no more. */
enum base_status model_list_samples(struct model *m, bool ended)
{
	struct sample_pass pass = {.m = m};
	for (size_t i = 0; i < m->sampled.nr_pools; i++)
		model_empty_list(&m->sampled.pool[i]);
	for (uint32_t i = 0; i < m->made.nr_states; i++)
		model_empty_list(&m->made.state[i].own);
	for (uint32_t i = 0; i < m->nr_threads; i++)
		model_count_visit(m, &m->thread[i]);
	if (m->status != BASE_OK)
		return m->status;
	base_map_each(&m->sampled.samples, samples_add_sample, &pass);
	list_spins(&pass);
	enum base_status s = ended && !pass.failed ? add_kernels(&pass) : BASE_OK;
	if (s != BASE_OK)
		return s;
	if (pass.failed)
		return base_fail(m->err, BASE_ERR_NOMEM, "out of memory for samples");
	for (size_t i = 0; i < m->sampled.nr_pools; i++)
		set_shares(&m->sampled.pool[i]);
	for (uint32_t i = 0; i < m->made.nr_states; i++)
		set_shares(&m->made.state[i].own);
	for (uint32_t i = 0; i < m->made.nr_states; i++) {
		struct state_info *st = &m->made.state[i];
		uint64_t pool;
		st->like_role = st->own.nr_samples && st->pub.kind == MODEL_STATE_run &&
				base_map_get(&m->sampled.pools, st->role, st->pub.site, &pool) &&
				is_like_role(&st->own, &m->sampled.pool[pool]);
	}
	return model_find_lines(m);
}
