/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replay_trace.c - replay-trace TRACE [FUNCTION]: the recorded length, the replayed one, and what
 * the path method and replay say of FUNCTION taking half and none of its time. The "quiet" lengths
 * are without the time in which other programs had the processors: on a busy machine these compare
 * between runs, the recorded ones do not.
 */
#include "graph/replay.h"
#include "model/model.h"
#include "trace/reader.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { CASES = 3 };
static const double factor_of[CASES] = {1, 0.5, 0};

static _Noreturn void give_up(const struct base_err *err)
{
	for (unsigned i = 0; i < err->nr_causes; i++)
		fprintf(stderr, "replay-trace: %s\n", err->cause[i]);
	exit(3);
}

static double seconds_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static struct model *run(const char *path, const struct graph_sink *sink,
	const struct graph_scenario *scenario, struct trace_reader **ret_reader)
{
	struct model_options o = {.size = sizeof o, .sink = sink};
	struct base_err err = {0};
	struct model *m;

	if (scenario) {
		o.scenario = scenario;
		o.nr_scenarios = CASES;
	}
	if (trace_reader_open(path, NULL, ret_reader, &err) || model_run(*ret_reader, &o, &m, &err))
		give_up(&err);
	return m;
}

/* C++ names carry their parameters. */
static bool is_function(const char *name, const char *wanted)
{
	const char *at = strstr(name, wanted);
	size_t length = strlen(wanted);

	return at && (at == name || at[-1] == ':') && (!at[length] || at[length] == '(');
}

/* The states' factors when the function takes that share of its time. */
static struct graph_scenario scenario_of(
	const struct model *m, uint32_t nr_states, const char *function, double factor, bool quiet)
{
	struct graph_edit *edit = calloc(nr_states + 1, sizeof *edit);
	struct graph_scenario sc = {.edit = edit};

	for (uint32_t s = 0; edit && s < nr_states; s++) {
		size_t nr;
		const struct model_function_share *f = model_functions(m, s, &nr);
		double share = 0;

		if (quiet && (model_state(m, s)->kind == MODEL_STATE_runnable ||
				     model_state(m, s)->kind == MODEL_STATE_latency))
			edit[sc.nr_edits++] = (struct graph_edit){
				.kind = GRAPH_EDIT_SCALE_STATE, .id = s, .factor = 0};
		for (size_t i = 0; i < nr; i++)
			share += is_function(f[i].function, function) ? f[i].share : 0;
		if (share > 0)
			edit[sc.nr_edits++] = (struct graph_edit){.kind = GRAPH_EDIT_SCALE_STATE,
				.id = s,
				.factor = 1 - (1 - factor) * share};
	}
	return sc;
}

static double replay_ms(const struct graph_replay *r, const struct graph_scenario *edits,
	struct graph_replay_result *res)
{
	struct base_err err = {0};

	if (graph_replay_run(r, edits, NULL, res, &err))
		give_up(&err);
	return (double)(res->end_ns - res->start_ns) / 1e6;
}

int main(int argc, char **argv)
{
	struct graph_replay *r;
	struct graph_replay_result res;
	struct graph_scenario scenario[CASES], quiet[CASES];
	struct graph_lane_result lane;
	struct trace_reader *reader, *again;
	struct base_err err = {0};
	struct model *m, *m2;
	double recorded, replayed, took, quiet_ms = 0, path_ns = 0;
	uint32_t nr_states;

	struct graph_replay_options options = {.size = sizeof options};

	if (argc < 2 || trace_reader_open(argv[1], NULL, &reader, &err))
		return 2;
	options.nr_processors = trace_reader_info(reader)->nr_processors;
	trace_reader_close(reader);
	if (graph_replay_new(&options, &r, &err))
		give_up(&err);
	m = run(argv[1], graph_replay_sink(r), NULL, &reader);
	graph_replay_set_end(r, model_end_actor(m));
	took = -seconds_now();
	replayed = replay_ms(r, NULL, &res);
	took += seconds_now();
	recorded = (double)(res.recorded_end_ns - res.start_ns) / 1e6;
	printf("recorded %.2f replayed %.2f (%+.2f %%)", recorded, replayed,
		(replayed / recorded - 1) * 100);
	printf(" stuck %u new %llu gone %llu unexplained %llu (%.2f ms) rootless %llu",
		res.nr_stuck, (unsigned long long)res.nr_waits_new,
		(unsigned long long)res.nr_waits_gone, (unsigned long long)res.nr_unexplained,
		(double)res.unexplained_ns / 1e6, (unsigned long long)res.nr_rootless);
	printf(" cpus %u waits %llu (%.2f ms)", res.nr_processors,
		(unsigned long long)res.nr_processor_waits, (double)res.processor_wait_ns / 1e6);
	printf(" verbs %llu %.1f M/s %.1f B\n", (unsigned long long)res.nr_verbs,
		(double)res.nr_verbs / took / 1e6,
		(double)graph_replay_memory_bytes(r) / (double)graph_replay_nr_verbs(r));
	if (argc < 3)
		return 0;
	nr_states = graph_nr_states(model_graph(m));
	for (int i = 0; i < CASES; i++) {
		scenario[i] = scenario_of(m, nr_states, argv[2], factor_of[i], false);
		quiet[i] = scenario_of(m, nr_states, argv[2], factor_of[i], true);
	}
	m2 = run(argv[1], NULL, quiet, &again);
	for (int i = 0; i < CASES; i++) {
		double quietly;

		if (graph_lane(model_graph(m2), (unsigned)i + 1, &lane, &err))
			give_up(&err);
		quietly = replay_ms(r, &quiet[i], &res);
		quiet_ms = i ? quiet_ms : quietly;
		path_ns = i ? path_ns : lane.length_ns;
		replayed = replay_ms(r, &scenario[i], &res);
		printf("factor %.1f replay %.3f quiet %.2f ms path %.3f replay %.3f stuck %u new "
		       "%llu gone %llu\n",
			factor_of[i], recorded / replayed, quietly, path_ns / lane.length_ns,
			quiet_ms / quietly, res.nr_stuck, (unsigned long long)res.nr_waits_new,
			(unsigned long long)res.nr_waits_gone);
	}
	return 0;
}
