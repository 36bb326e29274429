/* SPDX-License-Identifier: Apache-2.0 */
/* cdat_text.c - appendix C's trace records, the tagged report, JSON. */
#include "memory/cdat/cdat.h"
#include "base/column.h"
#include "base/json.h"

#include <inttypes.h>

static const struct {
	const char *name, *line;
	enum memory_cdat_class class;
} code_table[MEMORY_CDAT_CODES] = {
#define TRANSACTION(name_, code_, class_, line_)                                                   \
	[(code_)] = {.name = #name_, .line = line_, .class = MEMORY_CDAT_##class_},
#include "memory/cdat/cdat_transactions.def"
};

const char *memory_cdat_code_name(unsigned code)
{
	return code < MEMORY_CDAT_CODES ? code_table[code].name : NULL;
}

enum memory_cdat_class memory_cdat_code_class(unsigned code)
{
	return code_table[code].class;
}

double memory_cdat_average_latency(const struct memory_cdat_phase *p)
{
	return p->requests ? (double)p->critical / (double)p->requests : 0;
}

/* ---- traces ---------------------------------------------------------------------------------- */

/* Number in its node, and node; of I/O processors their number is -1 - node, as in the seed. */
static void cdat_text_add_processor(struct base_str *out, int32_t processor, uint32_t per_node)
{
	if (processor < 0)
		base_str_addf(out, " %" PRId32 " %" PRId32, processor, -1 - processor);
	else
		base_str_addf(out, " %u %u", (uint32_t)processor % per_node,
			(uint32_t)processor / per_node);
}

void memory_cdat_general_line(struct base_str *out, const struct memory_cdat_transaction *t,
	uint32_t processors_per_node, uint32_t nr_processors)
{
	base_str_addf(out, "%" PRIu64 " %" PRIu64 " %u", t->clock, t->line, t->code);
	cdat_text_add_processor(out, t->from, processors_per_node);
	base_str_addf(out, " %u %u %u", t->bank, t->home, (unsigned)t->status);
	for (uint32_t p = 0; p < nr_processors; p++)
		base_str_add(out, t->sharers[p / 64] >> p % 64 & 1 ? " 1" : " 0");
	base_str_add(out, " -1\n");
}

void memory_cdat_detailed_line(
	struct base_str *out, const struct memory_cdat_transaction *t, uint32_t processors_per_node)
{
	base_str_addf(out, "%" PRIu64 " %" PRIu64 " %u", t->clock, t->line, t->code);
	switch (memory_cdat_code_class(t->code)) {
	case MEMORY_CDAT_RESPONSE:
	case MEMORY_CDAT_RECALL:
		base_str_addf(out, " %u %u", t->bank, t->home);
		cdat_text_add_processor(out, t->to, processors_per_node);
		break;
	case MEMORY_CDAT_CACHE:
		cdat_text_add_processor(out, t->from, processors_per_node);
		cdat_text_add_processor(out, t->to, processors_per_node);
		break;
	default:
		cdat_text_add_processor(out, t->from, processors_per_node);
		base_str_addf(out, " %u %u", t->bank, t->home);
		break;
	}
	base_str_add(out, "\n");
}

/* ---- the tagged report ----------------------------------------------------------------------- */

static const char *const stream_name[] = {"data", "instruction", "I/O"};
static const char *const type_name[MEMORY_CDAT_TYPES] = {"read_shar", "read_shar_or_priv",
	"read_priv_own", "req_inv", "read_current", "write_purge", "write_back", "update_tag", ""};
static const char *const home_name[] = {"local", "remote"};
static const char *const copies_name[] = {"none", "local", "home", "remote"};
static const char *const status_name[] = {"idle", "shared", "exclusive", "dirty"};

static uint64_t all_transactions(const struct memory_cdat_phase *p)
{
	uint64_t sum = 0;
	for (unsigned i = 0; i < MEMORY_CDAT_CODES; i++)
		sum += p->transactions[i];
	return sum;
}

static json_t *by_type_json(const struct memory_cdat_phase *p)
{
	json_t *o = json_object();
	for (unsigned i = 0; i < MEMORY_CDAT_CODES; i++)
		if (p->transactions[i])
			json_object_set_new(
				o, code_table[i].name, base_json_u64(p->transactions[i]));
	return o;
}

struct cdat_state {
	const char *type, *home, *copies, *status;
	uint64_t count;
};
static json_t *cdat_text_states_json(
	const struct memory_cdat_state_table *t, const struct base_table *table)
{
	json_t *list = json_array();
	for (unsigned type = 0; type < MEMORY_CDAT_TYPES; type++)
		for (unsigned h = 0; h < 2; h++)
			for (unsigned c = 0; c < 4; c++)
				for (unsigned s = 0; s < 4; s++) {
					struct cdat_state state = {type_name[type], home_name[h],
						copies_name[c], status_name[s],
						t->count[type][h][c][s]};
					if (state.count)
						json_array_append_new(list,
							base_table_json(table, &state, NULL, 0));
				}
	return list;
}

struct cdat_processor {
	uint64_t active_cycles, idle_cycles, time_ps;
};
static json_t *processors_json(const struct memory_cdat_result *r,
	const struct memory_cdat_phase *p, const struct base_table *table)
{
	json_t *list = json_array();
	uint64_t length = p->end_clock - p->begin_clock;
	for (uint32_t i = 0; i < r->nr_processors; i++) {
		struct cdat_processor x = {p->active[i],
			length > p->active[i] ? length - p->active[i] : 0, p->time_ps[i]};
		json_array_append_new(list, base_table_json(table, &x, NULL, 0));
	}
	return list;
}

static json_t *machine_json(const struct memory_cdat_config *config)
{
	static const char *const allocation[] = {"rr1", "rr2", "oracle", "first_touch"};
	json_t *machine = json_object();
#define PARAM(key, preset, least, most, unit, sentence)                                            \
	json_object_set_new(machine, #key, base_json_u64(config->key));
#include "memory/cdat/cdat_parameters.def"
	json_object_set_new(machine, "protocol", json_string(config->protocol->name));
	json_object_set_new(machine, "allocation", json_string(allocation[config->allocation]));
	return machine;
}

enum { CDAT_OF_PHASES = 1 }; /* in .needs: not of the whole run */
struct cdat_document {
	const struct memory_cdat_result *result;
	const struct memory_cdat_config *config;
};
#include "memory/cdat/cdat.def"

static void add_tag(struct base_str *out, int64_t phase, int64_t processor, unsigned kind)
{
	base_str_add(out, "R");
	if (phase < 0)
		base_str_add(out, "x");
	else
		base_str_addf(out, "%" PRId64, phase);
	if (processor < 0)
		base_str_addf(out, "TxL%02u: ", kind);
	else
		base_str_addf(out, "T%" PRId64 "L%02u: ", processor, kind);
}

static void flow_lines(struct base_str *out, const struct memory_cdat_phase *p, int64_t phase)
{
	for (unsigned s = 0; s < MEMORY_CDAT_STREAMS; s++) {
		uint64_t all = p->flow[s].hits + p->flow[s].misses;
		for (unsigned i = 0; all && i < BASE_COUNT(cdat_flow_columns); i++) {
			uint64_t n = base_row_integer(&cdat_flow_columns[i], &p->flow[s]);
			add_tag(out, phase, -1, 10 + 20 * s + i + 1);
			base_str_addf(out, "%s %s %" PRIu64 " %.3f%%\n", stream_name[s],
				cdat_flow_columns[i].title, n, base_percent(n, all));
		}
	}
}

static void transaction_lines(
	struct base_str *out, const struct memory_cdat_phase *p, int64_t phase)
{
	add_tag(out, phase, -1, 1);
	base_str_addf(out, "transactions %" PRIu64 "\n", all_transactions(p));
	add_tag(out, phase, -1, 2);
	base_str_addf(out, "processor requests %" PRIu64 "\n", p->requests);
	add_tag(out, phase, -1, 3);
	base_str_addf(out, "average latency %.3f transactions\n", memory_cdat_average_latency(p));
	for (unsigned i = 0; i < MEMORY_CDAT_CODES; i++) {
		if (!p->transactions[i])
			continue;
		add_tag(out, phase, -1, 4);
		base_str_addf(
			out, "%02u %s %" PRIu64 "\n", i, code_table[i].name, p->transactions[i]);
	}
}

static void state_lines(struct base_str *out, const struct memory_cdat_phase *p, int64_t phase)
{
	for (unsigned h = 0; h < 2; h++)
		for (unsigned c = 0; c < 4; c++)
			for (unsigned s = 0; s < 4; s++)
				for (unsigned t = 0; t < MEMORY_CDAT_TYPES; t++) {
					uint64_t n = p->states.count[t][h][c][s];
					if (!n)
						continue;
					add_tag(out, phase, -1, 80);
					base_str_addf(out,
						"%s: home %s, copies %s, %s %" PRIu64 "\n",
						type_name[t], home_name[h], copies_name[c],
						status_name[s], n);
				}
	if (p->states.remote_shared) {
		add_tag(out, phase, -1, 81);
		base_str_addf(out, "average sharing degree of remotely shared lines %.3f\n",
			(double)p->states.remote_sharers / (double)p->states.remote_shared);
	}
}

static void cdat_text_phase_lines(struct base_str *out, const struct memory_cdat_result *r,
	const struct memory_cdat_phase *p, int64_t phase)
{
	uint64_t length = p->end_clock - p->begin_clock;
	add_tag(out, phase, -1, 0);
	if (phase < 0)
		base_str_add(out, "all phases");
	else
		base_str_addf(out, "%s phase %" PRIu64, memory_phase_name(p->kind), p->number);
	base_str_addf(out, ", clock %" PRIu64 " to %" PRIu64 "\n", p->begin_clock, p->end_clock);
	transaction_lines(out, p, phase);
	flow_lines(out, p, phase);
	state_lines(out, p, phase);
	for (uint32_t i = 0; i < r->nr_processors; i++) {
		if (!p->active[i])
			continue;
		add_tag(out, phase, i, 90);
		base_str_addf(out,
			"active cycles %" PRIu64 ", idle cycles %" PRIu64 ", utilization %.2f%%\n",
			p->active[i], length > p->active[i] ? length - p->active[i] : 0,
			base_percent(p->active[i], length));
		if (p->time_ps[i]) {
			add_tag(out, phase, i, 91);
			base_str_addf(out, "time %" PRIu64 " ps\n", p->time_ps[i]);
		}
	}
}

void memory_cdat_tags(struct base_str *out, const struct memory_cdat_result *r)
{
	for (size_t i = 0; i < r->nr_phases; i++)
		cdat_text_phase_lines(out, r, &r->phase[i], (int64_t)i);
	cdat_text_phase_lines(out, r, &r->total, -1);
}

json_t *memory_cdat_json(
	const struct memory_cdat_result *r, const struct memory_cdat_config *config)
{
	struct cdat_document d = {r, config};
	return base_table_json(&memory_cdat_document, &d, r, 0);
}
