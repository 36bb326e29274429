/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_sweep.c - `longpole sweep`: many networks, loads and parameters; on all processors, or over
 * MPI. */
#include "cmd/noc/noc.h"
#include "cmd/sweep/sweep.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

enum { SPEC_LIMIT_BYTES = 1 << 20 };

static const struct cmd_option option[] = {
	{"output", 'o', "DATABASE", "@file",
		"answers, an SQLite file; what is there already is not simulated again (default: "
		"sweep.sqlite)"},
	{"jobs", 'j', "N", NULL, "processes (default: as many as processors)"},
	{"mpi", 0, NULL, NULL, "the ranks of this MPI job simulate; rank 0 gives out the work"},
	{"csv", 0, "FILE", "@file", "the answers as CSV, too"},
	{"svg", 0, "FILE", "@file", "diagrams of latency and throughput over load, too"},
	{"dry-run", 'n', NULL, NULL, "only say what would be simulated"},
};

const struct cmd_details cmd_details_sweep = {
	.usage = "[OPTIONS] SPEC [KEY=VALUES...]",
	.about = "Simulates every combination of the values in SPEC, an INI file: networks, "
		 "routings, traffic, loads (see longpole-noc-sim(1) for "
		 "the parameters). Each answer is kept as soon as it is there: what was "
		 "interrupted goes on where it was.",
	.option = option,
	.nr_options = BASE_COUNT(option),
	.example = {"longpole sweep --svg sweep.svg examples/noc/sweep.ini",
		"longpole sweep -o big.sqlite examples/noc/sweep.ini 'load=0.02..0.6/0.02'",
		"mpirun -n 9 longpole sweep --mpi examples/noc/sweep.ini"},
};

struct sweep {
	struct cmd *c;
	struct sweep_spec spec;
	struct sweep_store *store;
	struct sweep_answer *answer; /* of each point; status BASE_END: none yet */
	uint32_t *todo;
	size_t nr_todo, nr_done, nr_failed;
	enum base_status status;
};

static bool cmd_sweep_take(void *ctx, const struct sweep_answer *a)
{
	struct sweep *s = ctx;
	s->answer[a->point] = *a;
	s->nr_done++;
	s->nr_failed += a->status != BASE_OK;
	s->status = sweep_store_put(s->store, &s->spec, a, &s->c->err);
	cmd_progress_show(s->c, "simulating", s->nr_done, s->nr_todo, "simulations");
	return s->status == BASE_OK;
}

/* What the database has, and what is to do. */
static enum base_status cmd_sweep_look(struct sweep *s)
{
	size_t nr = s->spec.nr_points;
	s->answer = base_alloc((nr + 1) * sizeof *s->answer);
	s->todo = base_alloc((nr + 1) * sizeof *s->todo);
	if (!s->answer || !s->todo)
		return base_fail(&s->c->err, BASE_ERR_NOMEM, "%zu {point|points}", nr);
	for (uint32_t i = 0; i < nr; i++) {
		s->answer[i].status = BASE_END;
		enum base_status status = s->store ? sweep_store_get(s->store, &s->spec.point[i],
							     &s->answer[i], &s->c->err)
						   : BASE_END;
		if (status != BASE_OK && status != BASE_END)
			return status;
		if (status == BASE_OK)
			s->answer[i].status = BASE_OK;
		else
			s->todo[s->nr_todo++] = i;
		s->answer[i].point = i;
	}
	return BASE_OK;
}

/* ---- what is printed ------------------------------------------------------------------------- */

/* The highest load at which no series is saturated, and the quickest one there. */
static void cmd_sweep_add_finding(struct base_str *out, const struct sweep *s)
{
	double load = -1, best = INFINITY, half = 0;
	const struct sweep_point *quickest = NULL;
	size_t answered = 0;
	for (size_t i = 0; i < s->spec.nr_points; i++) {
		const struct sweep_answer *a = &s->answer[i];
		double here = s->spec.point[i].config.load;
		answered += a->status == BASE_OK;
		if (a->status != BASE_OK || s->spec.point[i].saturation || here <= load)
			continue;
		bool all = true;
		for (size_t k = 0; k < s->spec.nr_points; k++)
			all &= s->spec.point[k].config.load != here ||
			       s->spec.point[k].saturation || s->answer[k].status != BASE_OK ||
			       !(s->answer[k].value[SWEEP_saturated] > 0);
		load = all ? here : load;
	}
	for (size_t i = 0; i < s->spec.nr_points; i++) {
		const struct sweep_answer *a = &s->answer[i];
		if (a->status == BASE_OK && !s->spec.point[i].saturation &&
			s->spec.point[i].config.load == load &&
			a->value[SWEEP_latency_cycles] < best) {
			best = a->value[SWEEP_latency_cycles];
			half = a->value[SWEEP_latency_half_cycles];
			quickest = &s->spec.point[i];
		}
	}
	base_str_addf(
		out, "%zu of %zu {simulation|simulations} answered", answered, s->spec.nr_points);
	if (quickest) {
		base_str_addf(out, "; at a load of %.4g, where none saturates, quickest is ", load);
		sweep_point_series(out, &s->spec, quickest);
		base_str_addf(out, ": %.2f", best);
		if (!isnan(half))
			base_str_addf(out, " +- %.2f", half);
		base_str_add(out, " cycles");
	}
	base_str_add(out, ".\n");
}

/* A plot averages seeds; a list tells them apart. */
static void cmd_sweep_add_name(
	struct base_str *out, const struct sweep *s, const struct sweep_point *p)
{
	const struct base_parameters q = noc_parameters();
	sweep_point_series(out, &s->spec, p);
	for (size_t i = 0; i < q.nr; i++)
		if (s->spec.varied[i] && !strcmp(q.row[i].key, "seed"))
			base_str_addf(out, " seed=%llu", (unsigned long long)p->config.seed);
}

static void cmd_sweep_add_latency(struct base_str *out, double load, double cycles, double half)
{
	base_str_addf(out, "%7.4f  %9.2f cycles", load, cycles);
	if (!isnan(half))
		base_str_addf(out, " +- %.2f", half);
	base_str_add(out, "\n");
}

static void add_point(struct base_str *out, const struct sweep *s, size_t i)
{
	const struct sweep_point *p = &s->spec.point[i];
	const struct sweep_answer *a = &s->answer[i];
	struct base_str series = {0};
	cmd_sweep_add_name(&series, s, p);
	base_str_addf(out, "  %-40s ", base_str_text(&series));
	base_str_fini(&series);
	if (a->status != BASE_OK)
		base_str_addf(out, "%s\n", *a->error ? a->error : "no answer");
	else if (p->saturation)
		base_str_addf(out, "saturates at %.2f; beyond it %.4f\n",
			a->value[SWEEP_saturation_load_flits_node_cycle],
			a->value[SWEEP_accepted_flits_node_cycle]);
	else if (a->value[SWEEP_saturated] > 0)
		base_str_addf(out, "%7.4f  saturated; accepted %.4f\n", p->config.load,
			a->value[SWEEP_accepted_flits_node_cycle]);
	else if (isnan(a->value[SWEEP_latency_cycles]))
		base_str_addf(out, "%7.4f  %9s no packet was measured\n", p->config.load, "-");
	else
		cmd_sweep_add_latency(out, p->config.load, a->value[SWEEP_latency_cycles],
			a->value[SWEEP_latency_half_cycles]);
}

static json_t *cmd_sweep_point_json(const struct sweep *s, size_t i)
{
	const struct sweep_point *p = &s->spec.point[i];
	const struct sweep_answer *a = &s->answer[i];
	const struct base_parameters q = noc_parameters();
	json_t *varied = json_object(), *value = json_object();
	for (size_t k = 0; k < q.nr; k++) {
		struct base_str text = {0};
		if (!s->spec.varied[k])
			continue;
		base_parameter_add_value(&text, &q.row[k], &p->config);
		json_object_set_new(varied, q.row[k].key, json_string(base_str_text(&text)));
		base_str_fini(&text);
	}
	for (size_t k = 0; k < SWEEP_VALUES_NR; k++)
		if (a->status == BASE_OK && !isnan(a->value[k]))
			json_object_set_new(value, sweep_value_names[k], json_real(a->value[k]));
	return json_pack("{s:s, s:s, s:s?, s:o, s:o}", "section", s->spec.section[p->section].name,
		"measure", p->saturation ? "saturation" : "latency", "error",
		a->status == BASE_OK ? NULL : a->error, "parameters", varied, "values", value);
}

static void add_csv(struct base_str *out, const struct sweep *s)
{
	const struct base_parameters q = noc_parameters();
	base_str_add(out, "section,measure");
	for (size_t k = 0; k < q.nr; k++)
		base_str_addf(out, ",%s", q.row[k].key);
	for (size_t k = 0; k < SWEEP_VALUES_NR; k++)
		base_str_addf(out, ",%s", sweep_value_names[k]);
	base_str_add(out, "\n");
	for (size_t i = 0; i < s->spec.nr_points; i++) {
		const struct sweep_point *p = &s->spec.point[i];
		const struct sweep_answer *a = &s->answer[i];
		base_str_addf(out, "%s,%s", s->spec.section[p->section].name,
			p->saturation ? "saturation" : "latency");
		for (size_t k = 0; k < q.nr; k++) {
			bool quoted = q.row[k].kind == BASE_TEXT;
			base_str_add(out, quoted ? ",\"" : ",");
			base_parameter_add_value(out, &q.row[k], &p->config);
			base_str_add(out, quoted ? "\"" : "");
		}
		for (size_t k = 0; k < SWEEP_VALUES_NR; k++) {
			if (a->status == BASE_OK && !isnan(a->value[k]))
				base_str_addf(out, ",%.10g", a->value[k]);
			else
				base_str_add(out, ",");
		}
		base_str_add(out, "\n");
	}
}

static int cmd_sweep_print(struct sweep *s, const char *database)
{
	struct cmd *c = s->c;
	struct base_str text = {0};
	int status = CMD_OK;
	if (cmd_value(c, "csv")) {
		add_csv(&text, s);
		status = cmd_write_file(c, &text, cmd_value(c, "csv"));
		base_str_reset(&text);
	}
	if (status == CMD_OK && cmd_value(c, "svg")) {
		sweep_plot(&text, &s->spec, s->answer);
		status = cmd_write_file(c, &text, cmd_value(c, "svg"));
		base_str_reset(&text);
	}
	if (status != CMD_OK) {
		base_str_fini(&text);
		return status;
	}
	size_t kept = s->spec.nr_points - s->nr_todo;
	if (cmd_given(c, "json")) {
		json_t *list = json_array();
		for (size_t i = 0; i < s->spec.nr_points; i++)
			json_array_append_new(list, cmd_sweep_point_json(s, i));
		return cmd_write_result(c, "longpole/sweep/1",
			json_pack("{s:s, s:I, s:I, s:I, s:o}", "database", database, "simulated",
				(json_int_t)s->nr_done, "known", (json_int_t)kept, "failed",
				(json_int_t)s->nr_failed, "points", list));
	}
	cmd_sweep_add_finding(&text, s);
	for (size_t i = 0; i < s->spec.nr_points; i++)
		add_point(&text, s, i);
	if (kept)
		base_str_addf(
			&text, "  %zu {answer was|answers were} in %s already\n", kept, database);
	if (s->nr_failed)
		base_str_addf(&text,
			"  %zu {point|points} could not be simulated; they are tried again next "
			"time\n",
			s->nr_failed);
	base_str_addf(&text, "NEXT  sqlite3 %s 'SELECT topology, load, latency_cycles FROM runs'\n",
		database);
	return cmd_write(c, &text);
}

/* ---- the course of it ------------------------------------------------------------------------ */

static int cmd_sweep_say_what(struct sweep *s)
{
	struct base_str text = {0};
	base_str_addf(&text, "%zu {simulation|simulations}, %zu of them to do.\n",
		s->spec.nr_points, s->nr_todo);
	for (size_t i = 0; i < s->nr_todo; i++) {
		const struct sweep_point *p = &s->spec.point[s->todo[i]];
		base_str_add(&text, "  ");
		cmd_sweep_add_name(&text, s, p);
		base_str_addf(
			&text, p->saturation ? " saturation\n" : " load=%.4g\n", p->config.load);
	}
	return cmd_write(s->c, &text);
}

static int lead(struct sweep *s, struct sweep_mpi *m)
{
	struct cmd *c = s->c;
	const char *database = cmd_value(c, "output") ? cmd_value(c, "output") : "sweep.sqlite";
	long processors = sysconf(_SC_NPROCESSORS_ONLN);
	uint64_t jobs = processors > 0 ? (uint64_t)processors : 1;
	if (!cmd_value_count(c, "jobs", &jobs))
		return CMD_USAGE;
	if (!jobs || jobs > 1024)
		return cmd_usage(c, "--jobs: 1 to 1024");
	bool dry = cmd_given(c, "dry-run");
	enum base_status status = dry && access(database, F_OK)
					  ? BASE_OK /* and makes none */
					  : sweep_store_open(&s->store, database, &c->err);
	if (status == BASE_OK)
		status = cmd_sweep_look(s);
	if (status == BASE_OK && dry)
		return cmd_sweep_say_what(s);
	if (status == BASE_OK && s->nr_todo) {
		cmd_progress_reset(c);
		status = m ? sweep_mpi_run(m, s->todo, s->nr_todo, cmd_sweep_take, s, &c->err)
			   : sweep_local(&s->spec, s->todo, s->nr_todo, (unsigned)jobs,
				     cmd_sweep_take, s, &c->err);
		cmd_progress_clear(c);
	}
	if (s->status != BASE_OK)
		status = s->status;
	return status == BASE_OK ? cmd_sweep_print(s, database) : cmd_fail(c, status);
}

int cmd_run_sweep(struct cmd *c)
{
	struct sweep s = {.c = c};
	struct sweep_mpi *m = NULL;
	if (!c->nr_operands)
		return cmd_usage(c, "sweep: the specification is missing");
	char *text = cmd_read_file(c, c->operand[0], SPEC_LIMIT_BYTES);
	if (!text)
		return CMD_ENVIRONMENT;
	enum base_status status = sweep_spec_parse(
		&s.spec, text, c->operand[0], c->operand + 1, c->nr_operands - 1, &c->err);
	base_free(text);
	if (status == BASE_OK && cmd_given(c, "mpi"))
		status = sweep_mpi_open(&m, &c->err);
	int exit_status = CMD_OK;
	if (status != BASE_OK)
		exit_status = cmd_fail(c, status);
	else if (m && !sweep_mpi_leads(m))
		sweep_mpi_serve(m, &s.spec);
	else
		exit_status = lead(&s, m);
	sweep_mpi_close(m);
	sweep_store_close(s.store);
	sweep_spec_fini(&s.spec);
	base_free(s.answer);
	base_free(s.todo);
	return exit_status;
}
