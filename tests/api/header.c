/* SPDX-License-Identifier: Apache-2.0 */
/*
 * header.c - the public library as a stranger's program has it, in C11 and in C++17: writes a trace,
 * reads it again, asks it. What must not happen is its exit status.
 */
#include <longpole/analysis.h>
#include <longpole/annotate.h>
#include <longpole/counter.h>
#include <longpole/trace.h>

#include <stdio.h>
#include <string.h>

#define CHECK(condition)                                                                           \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			fprintf(stderr, "line %d: %s\n", __LINE__, #condition);                    \
			return 1;                                                                  \
		}                                                                                  \
	} while (0)
/* As C and C++ both have it. */
#define SIZED(type, name)                                                                          \
	struct type name;                                                                          \
	memset(&name, 0, sizeof name);                                                             \
	name.size = sizeof name

enum { ROUNDS = 50, PERIOD_NS = 1000 };

/* A producer that takes PERIOD_NS for a unit, and a consumer that waits for it. */
static int write_trace(const char *path)
{
	SIZED(longpole_error, error);
	SIZED(longpole_writer_options, options);
	struct longpole_writer *w = NULL;
	options.program = "factory";
	options.command = "factory --fast";
	CHECK(longpole_writer_open(path, &options, &w, &error) == LONGPOLE_STATUS_OK);
	uint32_t producer = longpole_writer_new_actor(w, "plant", "producer", 0);
	uint32_t consumer = longpole_writer_new_actor(w, NULL, "consumer", 7);
	uint32_t queue = longpole_writer_new_queue(w, "parts", 0, 0);
	uint32_t make = longpole_writer_new_state(w, "make"),
		 use = longpole_writer_new_state(w, "use");
	CHECK(producer && consumer && queue && make && use);
	longpole_writer_enter(w, 0, producer, make);
	longpole_writer_enter(w, 0, consumer, use);
	for (uint64_t i = 0; i < ROUNDS; i++) {
		uint64_t now_ns = (i + 1) * PERIOD_NS;
		longpole_writer_queue(
			w, i * PERIOD_NS + 1, consumer, LONGPOLE_WAIT_EMPTY, queue, 1, 0);
		longpole_writer_queue(w, now_ns, producer, LONGPOLE_ENQUEUE, queue, 1, 0);
		longpole_writer_queue(w, now_ns, consumer, LONGPOLE_DEQUEUE, queue, 1, 0);
	}
	CHECK(!longpole_writer_close(w, ROUNDS * PERIOD_NS, &error));
	return 0;
}

static int read_trace(const char *path)
{
	SIZED(longpole_error, error);
	SIZED(longpole_record, record);
	SIZED(longpole_trace_info, info);
	SIZED(longpole_value, value);
	struct longpole_trace *trace = NULL;
	unsigned nr_dequeues = 0;
	int status;
	CHECK(!longpole_trace_open(path, NULL, &trace, &error));
	CHECK(!longpole_trace_get_info(trace, &info));
	CHECK(!strcmp(info.command, "factory --fast") && info.is_synthetic && !info.is_partial);
	while ((status = longpole_trace_next(trace, &record, &error)) == LONGPOLE_STATUS_OK) {
		if (record.kind != LONGPOLE_DEQUEUE)
			continue;
		CHECK(!longpole_trace_field(trace, 0, &value));
		CHECK(value.type == LONGPOLE_FIELD_ID && !strcmp(value.text, "queue parts"));
		CHECK(record.time_ns == (uint64_t)++nr_dequeues * PERIOD_NS);
	}
	CHECK(status == LONGPOLE_STATUS_END && nr_dequeues == ROUNDS);
	longpole_trace_close(trace);
	return 0;
}

static int ask(const char *path)
{
	SIZED(longpole_error, error);
	SIZED(longpole_answer, answer);
	SIZED(longpole_part, part);
	SIZED(longpole_prediction, prediction);
	struct longpole_analysis *analysis = NULL;
	struct longpole_predictions *predictions = NULL;
	CHECK(!longpole_analysis_open(path, NULL, &analysis, &error));
	CHECK(!longpole_analysis_answer(analysis, &answer));
	CHECK(answer.elapsed_ns == ROUNDS * PERIOD_NS);
	CHECK(!longpole_analysis_part(analysis, 0, &part));
	CHECK(!strcmp(part.name, "producer: make") && part.path_ns == answer.elapsed_ns);
	CHECK(!longpole_predictions_new(
		analysis, "scale 'producer: make'=-50%", NULL, &predictions, &error));
	CHECK(!longpole_predictions_prediction(predictions, 0, &prediction));
	CHECK(prediction.gain.speedup > 1.9 && prediction.gain.speedup < 2.1);
	longpole_predictions_free(predictions);
	longpole_analysis_close(analysis);
	CHECK(longpole_analysis_open("/nonexistent", NULL, &analysis, &error) < 0);
	CHECK(!analysis && strstr(error.text, "/nonexistent"));
	return 0;
}

int main(int argc, char **argv)
{
	if (argc != 2)
		return 2;
	return write_trace(argv[1]) || read_trace(argv[1]) || ask(argv[1]);
}
