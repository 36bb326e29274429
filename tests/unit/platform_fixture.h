/* SPDX-License-Identifier: Apache-2.0 */
/* platform_fixture.h - small platforms for tests, and what their traces say. */
#ifndef LONGPOLE_TESTS_PLATFORM_FIXTURE_H
#define LONGPOLE_TESTS_PLATFORM_FIXTURE_H

#include "platform/platform.h"
#include "trace/trace.h"
#include "test.h"

#include <string.h>

#include "trace_file.h"

/* Two systems, a link of 10 Gb/s and 100 us, 10 microseconds of nothing else. */
#define TWO_SYSTEMS                                                                                \
	"[system tx]\nbus_gbps = 8\n[system rx]\nbus_gbps = 32\ncopy_gbps = 64\n"                  \
	"[link l0]\na = tx\nb = rx\nrate_gbps = 10\ndelay_us = 100\n"
#define TCP_STREAM TWO_SYSTEMS "[app s]\nkind = tcp_stream\nfrom = tx\nto = rx\n"
#define UDP_STREAM TWO_SYSTEMS "[app s]\nkind = udp_stream\nfrom = tx\nto = rx\n"

static inline struct platform_config *read_config(const char *text)
{
	struct base_err err = {0};
	struct platform_config *c = platform_config_new();
	assert_non_null(c);
	if (platform_config_read(c, text, "test.conf", &err) != BASE_OK)
		fail_msg("%s", err.cause[0]);
	return c;
}

static inline void set(struct platform_config *c, const char *assignment)
{
	struct base_err err = {0};
	if (platform_config_set(c, assignment, &err) != BASE_OK)
		fail_msg("%s", err.cause[0]);
}

/* With trace_path NULL without a trace. */
static inline struct platform_result *run_config(struct platform_config *c, const char *trace_path)
{
	struct base_err err = {0};
	struct platform_result *r = NULL;
	if (platform_run(c, trace_path, &r, &err) != BASE_OK)
		fail_msg("%s", err.cause[0]);
	return r;
}

/* text: the configuration; then assignments, NULL ends. */
static inline struct platform_result *run_with(const char *text, const char *trace_path, ...)
{
	struct platform_config *c = read_config(text);
	va_list list;
	va_start(list, trace_path);
	for (const char *a; (a = va_arg(list, const char *));)
		set(c, a);
	va_end(list);
	struct platform_result *r = run_config(c, trace_path);
	platform_config_free(c);
	return r;
}

/* Every verb of a trace, with the names of its actor and its object. */
struct heard {
	uint64_t time_ns;
	unsigned kind;
	const char *actor, *object; /* object: queue or state; "" */
	uint64_t instance, n;       /* instance: the actor's */
};
typedef void heard_fn(void *ctx, const struct heard *h);

static inline void hear(const char *trace_path, heard_fn *fn, void *ctx)
{
	struct trace_reader *reader = NULL;
	struct trace_batch b;
	enum base_status s;
	uint32_t actor = 0;
	assert_int_equal(trace_reader_open(trace_path, NULL, &reader, NULL), BASE_OK);
	const struct trace_defs *d = trace_reader_defs(reader);
	while ((s = trace_reader_next(reader, &b, NULL)) == BASE_OK) {
		for (size_t i = 0; i < b.nr; i++) {
			const struct trace_record *r = &b.record[i];
			if (r->kind == TRACE_note_act) {
				actor = r->u.note_act.actor;
				continue;
			}
			const struct trace_actor *a = trace_def_actor(d, actor);
			struct heard h = {.time_ns = r->time_ns,
				.kind = r->kind,
				.actor = trace_text_of(d, a->name),
				.instance = a->instance,
				.object = ""};
			if (r->kind == TRACE_note_state) {
				h.object = trace_text_of(
					d, trace_def_state(d, r->u.note_state.state)->name);
			} else if (r->kind >= TRACE_note_enqueue && r->kind <= TRACE_note_assert) {
				h.object = trace_text_of(
					d, trace_def_object(d, r->u.note_enqueue.object)->name);
				h.n = r->u.note_enqueue.n;
			} else {
				continue;
			}
			fn(ctx, &h);
		}
	}
	assert_int_equal(s, BASE_END);
	trace_reader_close(reader);
}

#endif
