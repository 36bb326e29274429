/* SPDX-License-Identifier: Apache-2.0 */
/* sim.c - one simulation: warm up, measure, drain. */
#include "noc/network/sim.h"

#include "noc/network/energy.h"
#include "noc/network/traffic.h"

#include <math.h>

enum { LOOK_CYCLES = 1000, KNOWN = 256 };

/* Sums of the packets made in one batch. */
struct batch {
	double latency, network, class_latency[NOC_CLASSES_MAX];
	uint64_t nr, class_nr[NOC_CLASSES_MAX];
};
struct reply {
	uint64_t due;
	uint32_t from, to;
	uint64_t id;
};
/* Without contention, packets of as many hops and flits take as long, where all links are alike. */
struct known {
	uint32_t hops, size;
	uint64_t zero;
};
struct sim {
	struct noc_config config;
	struct noc_network *network;
	struct noc_traffic *traffic;
	struct noc_result *result;
	struct batch *batch;
	uint64_t *node_flits;
	uint64_t begin, end; /* of what is measured */
	uint64_t nr_measured;
	uint64_t nr_answers; /* replies made while measured */
	double sum, sum_hops, sum_zero, sum_created, sum_answers;
	bool zero_known, same_links;
	struct known known[KNOWN];
	struct reply *reply; /* ring, by due */
	size_t reply_capacity, reply_first, nr_replies;
};

/* ---- replies --------------------------------------------------------------------------------- */

static enum base_status sim_answer(struct sim *s, const struct noc_arrival *a, struct base_err *err)
{
	if (s->nr_replies == s->reply_capacity) {
		/* Growing a ring: its first part moves behind the old end. */
		size_t old = s->reply_capacity;
		enum base_status status =
			base_grow(&s->reply, &s->reply_capacity, old + 1, sizeof *s->reply);
		if (status != BASE_OK)
			return base_fail(err, status, "%zu {reply|replies}", old);
		for (size_t i = 0; i < s->reply_first; i++)
			s->reply[(old + i) % s->reply_capacity] = s->reply[i];
		/* Doubling leaves room for all of them without going round. */
	}
	s->reply[(s->reply_first + s->nr_replies++) % s->reply_capacity] =
		(struct reply){.due = a->arrival_cycle + 1 + s->config.reply_cycles,
			.from = a->destination,
			.to = a->source,
			.id = a->id};
	return BASE_OK;
}

static enum base_status sim_send_due(struct sim *s, struct base_err *err)
{
	uint64_t now = noc_network_now_cycle(s->network);
	while (s->nr_replies && s->reply[s->reply_first].due <= now) {
		const struct reply *r = &s->reply[s->reply_first];
		enum base_status status = noc_network_send(s->network,
			&(struct noc_packet){.id = r->id,
				.source = r->from,
				.destination = r->to,
				.size_flits = (uint32_t)s->config.reply_flits,
				.class = 1},
			err);
		if (status != BASE_OK)
			return status;
		if (now >= s->begin && now < s->end) {
			s->nr_answers++;
			s->sum_answers += (double)now;
		}
		s->reply_first = (s->reply_first + 1) % s->reply_capacity;
		s->nr_replies--;
	}
	return BASE_OK;
}

/* ---- what arrives ---------------------------------------------------------------------------- */

static enum base_status sim_record(struct sim *s, const struct noc_arrival *a, struct base_err *err)
{
	uint64_t latency = a->arrival_cycle - a->created_cycle;
	uint64_t nth = (a->created_cycle - s->begin) * s->config.batches / (s->end - s->begin);
	struct batch *b = &s->batch[nth];
	b->latency += (double)latency;
	b->network += (double)(a->arrival_cycle - a->sent_cycle);
	b->class_latency[a->class] += (double)latency;
	b->class_nr[a->class]++;
	b->nr++;
	s->sum += (double)latency;
	s->sum_hops += a->hops;
	s->sum_created += (double)a->created_cycle;
	s->nr_measured++;
	if (s->zero_known) {
		struct known *k = &s->known[(a->hops * 31 + a->size_flits) % KNOWN];
		if (!s->same_links || k->hops != a->hops || k->size != a->size_flits) {
			k->hops = a->hops;
			k->size = a->size_flits;
			s->zero_known =
				noc_network_zero_load_cycles(s->network, a->source, a->destination,
					a->size_flits, &k->zero, NULL) == BASE_OK;
		}
		s->sum_zero += s->zero_known ? (double)k->zero : 0;
	}
	return base_histogram_add(&s->result->latencies, latency, 1) == BASE_OK
		       ? BASE_OK
		       : base_fail(err, BASE_ERR_NOMEM, "a histogram");
}

static enum base_status sim_take(struct sim *s, const struct noc_arrival *a, struct base_err *err)
{
	if (a->arrival_cycle >= s->begin && a->arrival_cycle < s->end)
		s->node_flits[a->destination] += a->size_flits;
	if (s->config.reply && !a->class) {
		enum base_status status = sim_answer(s, a, err);
		if (status != BASE_OK)
			return status;
	}
	return a->created_cycle >= s->begin && a->created_cycle < s->end ? sim_record(s, a, err)
									 : BASE_OK;
}

/* Simulates until that cycle, or a little beyond. */
static enum base_status sim_run_until(struct sim *s, uint64_t until, struct base_err *err)
{
	while (noc_network_now_cycle(s->network) < until) {
		uint64_t stop = until;
		if (s->nr_replies && s->reply[s->reply_first].due < stop)
			stop = s->reply[s->reply_first].due;
		const struct noc_arrival *arrival;
		size_t nr;
		enum base_status status = noc_network_run(s->network, stop, &arrival, &nr, err);
		for (size_t i = 0; status == BASE_OK && i < nr; i++)
			status = sim_take(s, &arrival[i], err);
		if (status == BASE_OK)
			status = sim_send_due(s, err);
		if (status != BASE_OK)
			return status;
	}
	return BASE_OK;
}

/* ---- statistics ------------------------------------------------------------------------------ */

/* 97.5 % quantile of Student's distribution: within 0.002 for all degrees (Abramowitz and
 * Stegun 26.7.5). */
static double student(unsigned degrees)
{
	static const double small[] = {12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306};
	if (degrees <= BASE_COUNT(small))
		return small[degrees - 1];
	double z = 1.959964, v = degrees;
	return z + (z * z * z + z) / (4 * v) +
	       (5 * pow(z, 5) + 16 * z * z * z + 3 * z) / (96 * v * v);
}

enum { OF_LATENCY, OF_NETWORK, OF_CLASS };
static void sim_value(
	const struct batch *b, unsigned what, unsigned class, double *sum, uint64_t *nr)
{
	*sum = what == OF_LATENCY   ? b->latency
	       : what == OF_NETWORK ? b->network
				    : b->class_latency[class];
	*nr = what == OF_CLASS ? b->class_nr[class] : b->nr;
}

static struct noc_mean mean_of(const struct sim *s, unsigned what, unsigned class)
{
	double sum = 0, means = 0, squares = 0, part;
	uint64_t nr = 0, part_nr;
	unsigned batches = 0;
	for (uint64_t i = 0; i < s->config.batches; i++) {
		sim_value(&s->batch[i], what, class, &part, &part_nr);
		if (!part_nr)
			continue;
		sum += part;
		nr += part_nr;
		means += part / (double)part_nr;
		squares += part / (double)part_nr * (part / (double)part_nr);
		batches++;
	}
	struct noc_mean m = {.mean = nr ? sum / (double)nr : NAN, .half = -1};
	if (batches > 1) {
		double variance = (squares - means * means / batches) / (batches - 1);
		m.half = student(batches - 1) * sqrt(fmax(variance, 0) / batches);
	}
	return m;
}

double noc_link_busy(const struct noc_result *r, size_t i)
{
	const struct noc_link *l = &r->link[i];
	return (double)l->flits * l->flit_cycles / l->flits_cycle /
	       (double)r->config.measure_cycles;
}

static enum base_status links(struct sim *s, struct base_err *err)
{
	struct noc_result *r = s->result;
	size_t nr = noc_network_links(s->network);
	r->link = base_alloc((nr + 1) * sizeof *r->link);
	if (!r->link)
		return base_fail(err, BASE_ERR_NOMEM, "%zu {link|links}", nr);
	noc_network_each_link(s->network, r->link);
	for (size_t i = 0; i < nr; i++)
		if (r->link[i].to_router != UINT32_MAX)
			r->link[r->nr_links++] = r->link[i];
	for (size_t i = 0; i < r->nr_links; i++) {
		double busy = noc_link_busy(r, i);
		r->link_busy_mean += busy / (double)r->nr_links;
		if (busy > r->link_busy_most) {
			r->link_busy_most = busy;
			r->busiest_from = r->link[i].from_router;
			r->busiest_to = r->link[i].to_router;
		}
	}
	return BASE_OK;
}

/* At the end of what is measured: what was counted meanwhile. */
static enum base_status sim_count(struct sim *s, struct base_err *err)
{
	struct noc_result *r = s->result;
	double cycles = (double)(s->end - s->begin), all = 0;
	r->least_accepted_flits = INFINITY;
	for (uint32_t i = 0; i < r->nodes; i++) {
		double rate = (double)s->node_flits[i] / cycles;
		all += rate;
		r->least_accepted_flits = fmin(r->least_accepted_flits, rate);
	}
	r->accepted_flits = all / r->nodes;
	noc_network_counts(s->network, &r->counts);
	r->energy_pj_flit =
		r->counts.ejected ? noc_energy_pj(&r->counts) / (double)r->counts.ejected : NAN;
	return links(s, err);
}

/* Mean latency of the measured packets that have arrived, and ages of those that have not. */
static bool is_saturated(const struct sim *s)
{
	double now = (double)noc_network_now_cycle(s->network), sum;
	uint64_t made;
	noc_traffic_made(s->traffic, &made, &sum);
	made += s->nr_answers;
	double missing = (double)(made - s->nr_measured);
	double ages = missing * now - (sum + s->sum_answers - s->sum_created);
	return made && (s->sum + ages) / (double)made > (double)s->config.latency_limit_cycles;
}

static void sim_finish(struct sim *s)
{
	struct noc_result *r = s->result;
	double nr = (double)s->nr_measured;
	r->cycles = noc_network_now_cycle(s->network);
	r->packets = s->nr_measured;
	r->latency_cycles = mean_of(s, OF_LATENCY, 0);
	r->network_cycles = mean_of(s, OF_NETWORK, 0);
	for (unsigned c = 0; c < s->config.classes; c++)
		r->class_cycles[c] = mean_of(s, OF_CLASS, c);
	r->hops = s->nr_measured ? s->sum_hops / nr : NAN;
	/* What is accepted includes the replies, so what is offered does, too. */
	r->offered_flits = s->config.load;
	if (s->config.reply)
		r->offered_flits *=
			1 + (double)s->config.reply_flits / noc_traffic_mean_flits(&s->config);
	r->zero_load_cycles = s->zero_known && s->nr_measured ? s->sum_zero / nr : -1;
	if (r->latency_cycles.mean > (double)s->config.latency_limit_cycles)
		r->saturated = true;
}

/* ---- the course of it ------------------------------------------------------------------------ */

/* Every node is past the end, and all that was made before it has arrived. */
static bool sim_is_done(const struct sim *s)
{
	uint64_t made;
	double sum;
	noc_traffic_made(s->traffic, &made, &sum);
	if (noc_traffic_behind(s->traffic, s->end) || made + s->nr_answers != s->nr_measured)
		return false;
	/* Requests of before the end may still be answered, but those answers are not measured. */
	return true;
}

static enum base_status course(
	struct sim *s, noc_progress *progress, void *ctx, struct base_err *err)
{
	enum base_status status = BASE_OK;
	uint64_t all = s->end + (s->end - s->begin) / 10;
	for (;;) {
		uint64_t now = noc_network_now_cycle(s->network), until = now + LOOK_CYCLES;
		if (now < s->begin && until > s->begin)
			until = s->begin;
		else if (now < s->end && until > s->end)
			until = s->end;
		status = sim_run_until(s, until, err);
		if (status != BASE_OK)
			return status;
		now = noc_network_now_cycle(s->network);
		if (now == s->begin)
			noc_network_count_reset(s->network);
		if (now == s->end)
			status = sim_count(s, err);
		if (status != BASE_OK)
			return status;
		if (progress && !progress(ctx, now, now > all ? now : all))
			return base_fail(err, BASE_END, "interrupted");
		if (now < s->end)
			continue;
		if (is_saturated(s)) {
			s->result->saturated = true;
			return BASE_OK;
		}
		if (sim_is_done(s))
			return BASE_OK;
	}
}

static enum base_status open_sim(struct sim *s, struct base_err *err)
{
	struct noc_config *c = &s->config;
	if (c->topology == NOC_TOPOLOGY_IDEAL)
		return base_fail(err, BASE_ERR_USAGE,
			"topology = ideal has no load to measure: all packets take ideal_cycles");
	if (c->reply)
		c->classes = c->classes < 2 ? 2 : c->classes;
	enum base_status status = noc_network_open(&s->network, c, err);
	if (status != BASE_OK)
		return status;
	s->config.routing = noc_network_routing(s->network);
	s->result->config = s->config;
	s->result->nodes = noc_network_nodes(s->network);
	s->result->routers = noc_network_routers(s->network);
	s->begin = c->warmup_cycles;
	s->end = c->warmup_cycles + c->measure_cycles;
	s->zero_known = true;
	s->same_links = c->topology != NOC_TOPOLOGY_GRAPH;
	s->batch = base_alloc(c->batches * sizeof *s->batch);
	s->node_flits = base_alloc(s->result->nodes * sizeof *s->node_flits);
	if (!s->batch || !s->node_flits)
		return base_fail(
			err, BASE_ERR_NOMEM, "statistics of %u {node|nodes}", s->result->nodes);
	status = noc_traffic_open(&s->traffic, s->network, c, err);
	if (status != BASE_OK)
		return status;
	noc_traffic_window(s->traffic, s->begin, s->end);
	struct noc_source source = noc_traffic_source(s->traffic);
	return noc_network_set_source(s->network, &source, 1, err);
}

enum base_status noc_simulate(const struct noc_config *c, struct noc_result *ret,
	noc_progress *progress, void *ctx, struct base_err *err)
{
	*ret = (struct noc_result){.config = *c};
	struct sim s = {.config = *c, .result = ret};
	enum base_status status = open_sim(&s, err);
	if (status == BASE_OK)
		status = course(&s, progress, ctx, err);
	if (status == BASE_OK)
		sim_finish(&s);
	base_free(s.batch);
	base_free(s.node_flits);
	base_free(s.reply);
	noc_traffic_close(s.traffic);
	noc_network_close(s.network);
	return status;
}

void noc_result_fini(struct noc_result *r)
{
	base_histogram_fini(&r->latencies);
	base_free(r->link);
	r->link = NULL;
}

/* ---- saturation ------------------------------------------------------------------------------ */

struct search {
	struct noc_config config;
	unsigned *nr;
	noc_progress *progress;
	void *ctx;
};

static bool search_progress(void *ctx, uint64_t done, uint64_t all)
{
	struct search *s = ctx;
	if (!s->progress)
		return true;
	/* About ten simulations in all. */
	uint64_t one = all ? all : 1;
	return s->progress(s->ctx, *s->nr * one + done, (*s->nr > 9 ? *s->nr + 1 : 10) * one);
}

static enum base_status at_load(
	struct search *s, double load, double limit, struct noc_result *ret, struct base_err *err)
{
	s->config.load = load;
	s->config.latency_limit_cycles = (uint64_t)ceil(limit);
	enum base_status status = noc_simulate(&s->config, ret, search_progress, s, err);
	noc_result_fini(ret);
	++*s->nr;
	if (status == BASE_OK && !ret->packets && !ret->saturated)
		return base_fail(err, BASE_ERR_USAGE,
			"no packet was measured at a load of %g, so there is no latency to "
			"compare with: measure longer (measure_cycles=)",
			load);
	return status;
}

enum base_status noc_saturation(const struct noc_config *c, struct noc_saturation *ret,
	noc_progress *progress, void *ctx, struct base_err *err)
{
	*ret = (struct noc_saturation){0};
	struct search s = {.config = *c, .nr = &ret->simulations, .progress = progress, .ctx = ctx};
	struct noc_result r;
	double most = fmin((double)c->node_flits, noc_traffic_mean_flits(c));
	enum base_status status = at_load(&s, 0.005, 1e9, &r, err);
	if (status != BASE_OK)
		return status;
	ret->zero_load_cycles = r.latency_cycles.mean;
	ret->latency_cycles = r.latency_cycles.mean;
	status = at_load(&s, most, 1, &r, err);
	if (status != BASE_OK)
		return status;
	ret->accepted_flits = r.accepted_flits;
	ret->least_accepted_flits = r.least_accepted_flits;
	unsigned low = 0, high = (unsigned)ceil(most * 100);
	while (status == BASE_OK && high - low > 1) {
		unsigned middle = (low + high) / 2;
		status = at_load(&s, middle / 100.0, 3 * ret->zero_load_cycles, &r, err);
		if (!r.saturated && r.latency_cycles.mean <= 3 * ret->zero_load_cycles) {
			low = middle;
			ret->latency_cycles = r.latency_cycles.mean;
		} else {
			high = middle;
		}
	}
	ret->load = low / 100.0;
	return status;
}
