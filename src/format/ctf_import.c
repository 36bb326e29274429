/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ctf_import.c - Common Trace Format through libbabeltrace2: every trace under a directory, muxed,
 * to a sink of ours. The kernel's events by the names that LTTng and tracefs give them.
 *
 * The library reads the files, checks them and brings the clocks to one origin; in a process of its
 * own, for it ends that where it finds what it took for impossible. An event's processor is
 * `cpu_id` of its packet (LTTng) or of the event.
 */
#include "format/apart.h"
#include "format/tracepoint.h"

#include "config.h"

#if LONGPOLE_BABELTRACE

#include <babeltrace2/babeltrace.h>
#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { DIRECTORIES_MAX = 4096, TRACES_MAX = 256, PATH_BYTES = 4096 };

struct ctf_import {
	struct format_sched *sched;
	struct base_err *err;
	enum base_status status;
	bt_message_iterator *messages;
	uint64_t nr_events, nr_other, nr_timeless;
};

/* ---- fields ---------------------------------------------------------------------------------- */

static bool ctf_import_value_of(
	const bt_field *field, int64_t *ret_number, const char **ret_text, size_t *ret_length)
{
	bt_field_class_type type = field ? bt_field_get_class_type(field) : 0;
	if (!field)
		return false;
	if (bt_field_class_type_is(type, BT_FIELD_CLASS_TYPE_UNSIGNED_INTEGER))
		*ret_number = (int64_t)bt_field_integer_unsigned_get_value(field);
	else if (bt_field_class_type_is(type, BT_FIELD_CLASS_TYPE_SIGNED_INTEGER))
		*ret_number = bt_field_integer_signed_get_value(field);
	else if (bt_field_class_type_is(type, BT_FIELD_CLASS_TYPE_STRING)) {
		*ret_text = bt_field_string_get_value(field);
		*ret_length = (size_t)bt_field_string_get_length(field);
	} else {
		return false;
	}
	return true;
}

static const bt_field *ctf_import_member(const bt_field *structure, const char *name)
{
	return structure ? bt_field_structure_borrow_member_field_by_name_const(structure, name)
			 : NULL;
}

static bool ctf_import_get(
	void *ctx, const char *name, int64_t *ret_number, const char **ret_text, size_t *ret_length)
{
	const bt_event *event = ctx;
	return ctf_import_value_of(
		ctf_import_member(bt_event_borrow_payload_field_const(event), name), ret_number,
		ret_text, ret_length);
}

/* Something of the event's surroundings: its packet, its stream's context, its own. */
static bool ctf_import_around(const bt_event *event, const char *name, int64_t *ret_number,
	const char **ret_text, size_t *ret_length)
{
	const bt_stream *stream = bt_event_borrow_stream_const(event);
	const bt_field *place[] = {
		bt_stream_class_supports_packets(bt_stream_borrow_class_const(stream))
			? bt_packet_borrow_context_field_const(bt_event_borrow_packet_const(event))
			: NULL,
		bt_event_borrow_common_context_field_const(event),
		bt_event_borrow_specific_context_field_const(event)};
	for (size_t i = 0; i < BASE_COUNT(place); i++)
		if (ctf_import_value_of(
			    ctf_import_member(place[i], name), ret_number, ret_text, ret_length))
			return true;
	return false;
}

static bool around(const bt_event *event, const char *name, uint32_t *ret)
{
	int64_t number = 0;
	const char *text = NULL;
	size_t length;
	if (!ctf_import_around(event, name, &number, &text, &length) || text)
		return false;
	*ret = (uint32_t)number;
	return true;
}

static uint32_t ctf_import_procname(const struct ctf_import *im, const bt_event *event)
{
	int64_t number;
	const char *text = NULL;
	size_t length = 0;
	return ctf_import_around(event, "procname", &number, &text, &length) && text
		       ? format_sched_name(im->sched, text, length)
		       : 0;
}

/* ---- events ---------------------------------------------------------------------------------- */

/* LTTng-UST's wrapper of pthread_mutex_*: false for all other events. The contexts vtid and vpid
 * tell whose it is. */
static bool hear_mutex(
	struct ctf_import *im, const bt_event *event, const char *name, struct format_sched_event e)
{
	static const struct {
		const char *name;
		enum format_sched_kind kind;
	} known[] = {{"lock_req", FORMAT_SCHED_lock_wanted}, {"lock_acq", FORMAT_SCHED_lock_taken},
		{"trylock", FORMAT_SCHED_lock_taken}, {"unlock", FORMAT_SCHED_lock_released}};
	static const char provider[] = "lttng_ust_pthread:pthread_mutex_";
	int64_t mutex = 0, status = 0;
	const char *text = NULL;
	size_t length;
	void *of = (void *)(uintptr_t)event;
	if (!name || strncmp(name, provider, sizeof provider - 1) != 0)
		return false;
	for (size_t i = 0; i < BASE_COUNT(known); i++) {
		if (strcmp(name + sizeof provider - 1, known[i].name) != 0 ||
			!ctf_import_get(of, "mutex", &mutex, &text, &length) || text ||
			!around(event, "vtid", &e.actor))
			continue;
		ctf_import_get(of, "status", &status, &text, &length);
		e.kind = (uint8_t)known[i].kind;
		if (status && e.kind == FORMAT_SCHED_lock_taken)
			e.kind = FORMAT_SCHED_lock_failed;
		else if (status)
			return true; /* nothing was done */
		e.value = (uint64_t)mutex;
		e.tid = e.actor;
		around(event, "vpid", &e.pid);
		e.name = ctf_import_procname(im, event);
		im->status = format_sched_add(im->sched, &e, im->err);
		return true;
	}
	return false;
}

static void hear_event(struct ctf_import *im, const bt_message *message)
{
	const bt_event *event = bt_message_event_borrow_event_const(message);
	const char *name = bt_event_class_get_name(bt_event_borrow_class_const(event));
	const bt_stream_class *stream =
		bt_stream_borrow_class_const(bt_event_borrow_stream_const(event));
	int64_t ns = 0;
	im->nr_events++;
	if (!bt_stream_class_borrow_default_clock_class_const(stream) ||
		bt_clock_snapshot_get_ns_from_origin(
			bt_message_event_borrow_default_clock_snapshot_const(message), &ns) !=
			BT_CLOCK_SNAPSHOT_GET_NS_FROM_ORIGIN_STATUS_OK ||
		ns < 0) {
		im->nr_timeless++;
		return;
	}
	struct format_sched_event e = {.time_ns = (uint64_t)ns, .actor = FORMAT_SCHED_UNKNOWN};
	struct format_sched_fields fields = {
		.ctx = (void *)(uintptr_t)event, .get = ctf_import_get};
	uint32_t number;
	if (around(event, "cpu_id", &number))
		e.cpu = (uint16_t)number;
	if (around(event, "tid", &number))
		e.actor = number;
	int64_t flags = 0;
	const char *text = NULL, *colon = name ? strchr(name, ':') : NULL;
	size_t length;
	if (ctf_import_get((void *)(uintptr_t)event, "common_pid", &flags, &text, &length) && !text)
		e.actor = (uint32_t)flags;
	if (hear_mutex(im, event, name, e))
		return;
	/* "sched:sched_switch", as perf data convert writes it */
	if (!name || !format_sched_convert(im->sched, colon ? colon + 1 : name, &fields, &e)) {
		im->nr_other++;
		return;
	}
	if (e.kind != FORMAT_SCHED_context_begin && e.kind != FORMAT_SCHED_context_end &&
		ctf_import_get((void *)(uintptr_t)event, "common_flags", &flags, &text, &length) &&
		!text)
		e.context = (uint8_t)format_tracepoint_flags(flags);
	im->status = format_sched_add(im->sched, &e, im->err);
}

static void hear_lost(struct ctf_import *im, const bt_message *message)
{
	struct format_sched_event e = {
		.kind = FORMAT_SCHED_lost, .time_ns = UINT64_MAX, .actor = FORMAT_SCHED_UNKNOWN};
	if (bt_message_discarded_events_get_count(message, &e.value) ==
			BT_PROPERTY_AVAILABILITY_AVAILABLE &&
		e.value)
		im->status = format_sched_add(im->sched, &e, im->err);
}

static bt_graph_simple_sink_component_consume_func_status consume(
	bt_message_iterator *messages, void *ctx)
{
	struct ctf_import *im = ctx;
	bt_message_array_const array;
	uint64_t nr = 0;
	bt_message_iterator_next_status next = bt_message_iterator_next(messages, &array, &nr);
	if (next == BT_MESSAGE_ITERATOR_NEXT_STATUS_END)
		return BT_GRAPH_SIMPLE_SINK_COMPONENT_CONSUME_FUNC_STATUS_END;
	if (next == BT_MESSAGE_ITERATOR_NEXT_STATUS_AGAIN)
		return BT_GRAPH_SIMPLE_SINK_COMPONENT_CONSUME_FUNC_STATUS_AGAIN;
	if (next != BT_MESSAGE_ITERATOR_NEXT_STATUS_OK)
		return BT_GRAPH_SIMPLE_SINK_COMPONENT_CONSUME_FUNC_STATUS_ERROR;
	for (uint64_t i = 0; i < nr; i++) {
		if (im->status == BASE_OK && bt_message_get_type(array[i]) == BT_MESSAGE_TYPE_EVENT)
			hear_event(im, array[i]);
		else if (im->status == BASE_OK &&
			 bt_message_get_type(array[i]) == BT_MESSAGE_TYPE_DISCARDED_EVENTS)
			hear_lost(im, array[i]);
		bt_message_put_ref(array[i]);
	}
	return im->status == BASE_OK ? BT_GRAPH_SIMPLE_SINK_COMPONENT_CONSUME_FUNC_STATUS_OK
				     : BT_GRAPH_SIMPLE_SINK_COMPONENT_CONSUME_FUNC_STATUS_END;
}

/* ---- the library's graph --------------------------------------------------------------------- */

/* What the library has to say, innermost cause first. */
static enum base_status ctf_import_complain(struct base_err *err, const char *what)
{
	const bt_error *error = bt_current_thread_take_error();
	enum base_status s = base_fail(err, BASE_ERR_FOREIGN, "libbabeltrace2: %s", what);
	for (uint64_t i = 0; error && i < bt_error_get_cause_count(error) && i < 3; i++)
		s = base_cause(err, s, "%s",
			bt_error_cause_get_message(bt_error_borrow_cause_by_index(error, i)));
	if (error)
		bt_error_release(error);
	return s;
}

struct sources {
	bt_graph *graph;
	const bt_component_class_source *fs;
	const bt_component_filter *muxer;
	struct base_err *err;
	unsigned nr;
	uint64_t nr_ports;
};

static enum base_status add_source(struct sources *g, const char *directory)
{
	char name[32];
	const bt_component_source *source = NULL;
	bt_value *parameters = bt_value_map_create(), *inputs = NULL;
	enum base_status s = BASE_OK;
	snprintf(name, sizeof name, "source %u", g->nr++);
	if (!parameters ||
		bt_value_map_insert_empty_array_entry(parameters, "inputs", &inputs) !=
			BT_VALUE_MAP_INSERT_ENTRY_STATUS_OK ||
		bt_value_array_append_string_element(inputs, directory) !=
			BT_VALUE_ARRAY_APPEND_ELEMENT_STATUS_OK ||
		bt_graph_add_source_component(g->graph, g->fs, name, parameters,
			BT_LOGGING_LEVEL_NONE, &source) != BT_GRAPH_ADD_COMPONENT_STATUS_OK)
		s = ctf_import_complain(g->err, "cannot open the trace");
	bt_value_put_ref(parameters);
	uint64_t nr = s == BASE_OK ? bt_component_source_get_output_port_count(source) : 0;
	for (uint64_t i = 0; s == BASE_OK && i < nr; i++) {
		const bt_port_output *out =
			bt_component_source_borrow_output_port_by_index_const(source, i);
		const bt_port_input *in = bt_component_filter_borrow_input_port_by_index_const(
			g->muxer, g->nr_ports++);
		if (bt_graph_connect_ports(g->graph, out, in, NULL) !=
			BT_GRAPH_CONNECT_PORTS_STATUS_OK)
			s = ctf_import_complain(g->err, "cannot mux the trace");
	}
	return s;
}

/* Is there a file `metadata` in it? */
static bool is_trace(const char *directory)
{
	char path[PATH_BYTES];
	struct stat st;
	int n = snprintf(path, sizeof path, "%s/metadata", directory);
	return n > 0 && (size_t)n < sizeof path && !stat(path, &st) && S_ISREG(st.st_mode);
}

/* Its directories go to the end of the list. */
static enum base_status list_directories(struct base_strtab *list, const char *directory)
{
	DIR *d = opendir(directory);
	enum base_status s = BASE_OK;
	for (struct dirent *e; d && s == BASE_OK && (e = readdir(d));) {
		char path[PATH_BYTES];
		struct stat st;
		uint32_t id;
		int n = snprintf(path, sizeof path, "%s/%s", directory, e->d_name);
		if (e->d_name[0] != '.' && n > 0 && (size_t)n < sizeof path && !lstat(path, &st) &&
			S_ISDIR(st.st_mode))
			s = base_strtab_intern(list, path, (size_t)n, &id);
	}
	if (d)
		closedir(d);
	return s;
}

/* Directories with a file `metadata` are traces; their parents are how LTTng keeps several. */
static enum base_status add_sources(struct sources *g, const char *directory)
{
	struct base_strtab *list = base_strtab_new();
	uint32_t id;
	enum base_status s =
		list ? base_strtab_intern(list, directory, strlen(directory), &id) : BASE_ERR_NOMEM;
	for (uint32_t i = 1; s == BASE_OK && i < base_strtab_count(list); i++) {
		const char *path = base_strtab_get(list, i);
		if (i > DIRECTORIES_MAX || g->nr >= TRACES_MAX)
			break;
		if (!is_trace(path)) {
			s = list_directories(list, path);
			continue;
		}
		enum base_status added = add_source(g, path);
		if (added != BASE_OK) {
			base_strtab_free(list);
			return added;
		}
	}
	base_strtab_free(list);
	return s == BASE_OK ? s : base_fail(g->err, s, "out of memory for directories");
}

static enum base_status ctf_import_build(struct sources *g, struct ctf_import *im,
	const char *directory, const bt_plugin *ctf, const bt_plugin *utils)
{
	const bt_component_sink *sink = NULL;
	const bt_component_class_filter *muxer =
		bt_plugin_borrow_filter_component_class_by_name_const(utils, "muxer");
	g->fs = bt_plugin_borrow_source_component_class_by_name_const(ctf, "fs");
	if (!g->fs || !muxer ||
		bt_graph_add_filter_component(g->graph, muxer, "muxer", NULL, BT_LOGGING_LEVEL_NONE,
			&g->muxer) != BT_GRAPH_ADD_COMPONENT_STATUS_OK ||
		bt_graph_add_simple_sink_component(g->graph, "longpole", NULL, consume, NULL, im,
			&sink) != BT_GRAPH_ADD_COMPONENT_STATUS_OK)
		return ctf_import_complain(g->err, "its plugins cannot be used");
	enum base_status s = add_sources(g, directory);
	if (s != BASE_OK)
		return s;
	if (!g->nr)
		return base_fail(g->err, BASE_ERR_FOREIGN,
			"neither it nor a directory in it has a file named metadata");
	if (bt_graph_connect_ports(g->graph,
		    bt_component_filter_borrow_output_port_by_index_const(g->muxer, 0),
		    bt_component_sink_borrow_input_port_by_index_const(sink, 0),
		    NULL) != BT_GRAPH_CONNECT_PORTS_STATUS_OK)
		return ctf_import_complain(g->err, "its ports cannot be connected");
	return BASE_OK;
}

static enum base_status read_traces(struct ctf_import *im, const char *directory)
{
	const bt_plugin *ctf = NULL, *utils = NULL;
	struct sources g = {.graph = bt_graph_create(0), .err = im->err};
	enum base_status s = BASE_OK;
	if (!g.graph ||
		bt_plugin_find("ctf", BT_TRUE, BT_TRUE, BT_TRUE, BT_TRUE, BT_FALSE, &ctf) !=
			BT_PLUGIN_FIND_STATUS_OK ||
		bt_plugin_find("utils", BT_TRUE, BT_TRUE, BT_TRUE, BT_TRUE, BT_FALSE, &utils) !=
			BT_PLUGIN_FIND_STATUS_OK)
		s = ctf_import_complain(im->err, "its plugins ctf and utils are not there");
	if (s == BASE_OK)
		s = ctf_import_build(&g, im, directory, ctf, utils);
	bt_graph_run_status run = s == BASE_OK ? bt_graph_run(g.graph) : BT_GRAPH_RUN_STATUS_OK;
	while (run == BT_GRAPH_RUN_STATUS_AGAIN)
		run = bt_graph_run(g.graph);
	if (s == BASE_OK)
		s = im->status;
	if (s == BASE_OK && run != BT_GRAPH_RUN_STATUS_OK)
		s = ctf_import_complain(im->err, "reading failed");
	bt_graph_put_ref(g.graph);
	bt_plugin_put_ref(ctf);
	bt_plugin_put_ref(utils);
	return s;
}

/* Does the trace's metadata say that it is of this domain of LTTng's? */
static bool ctf_import_is_of(const char *directory, const char *domain)
{
	enum { HEAD_BYTES = 1 << 14 };
	char path[PATH_BYTES], head[HEAD_BYTES];
	int n = snprintf(path, sizeof path, "%s/metadata", directory);
	FILE *f = n > 0 && (size_t)n < sizeof path ? fopen(path, "re") : NULL;
	size_t nr = f ? fread(head, 1, sizeof head, f) : 0;
	if (f)
		fclose(f);
	return nr && memmem(head, nr, domain, strlen(domain));
}

/* A program's trace, with no kernel's beside it, is no recording of a system. */
enum base_status format_started_ctf(
	const struct format_source *from, struct format_started *ret, struct base_err *err)
{
	struct base_strtab *list = base_strtab_new();
	uint32_t id, nr_programs = 0, nr_others = 0;
	enum base_status s = list ? base_strtab_intern(list, from->path, strlen(from->path), &id)
				  : BASE_ERR_NOMEM;
	for (uint32_t i = 1; s == BASE_OK && i < base_strtab_count(list) && i <= DIRECTORIES_MAX;
		i++) {
		const char *path = base_strtab_get(list, i);
		if (!is_trace(path))
			s = list_directories(list, path);
		else if (ctf_import_is_of(path, "domain = \"ust\""))
			nr_programs++;
		else
			nr_others++;
	}
	base_strtab_free(list);
	ret->is_program = nr_programs && !nr_others;
	return s == BASE_OK ? s : base_fail(err, s, "out of memory for directories");
}

enum { COUNT_OTHER, COUNT_TIMELESS };

static enum base_status read_ctf(struct format_sched *to, const char *path,
	uint64_t count[static FORMAT_APART_COUNTS], struct base_err *err)
{
	struct ctf_import im = {.sched = to, .err = err};
	enum base_status s = read_traces(&im, path);
	count[COUNT_OTHER] = im.nr_other;
	count[COUNT_TIMELESS] = im.nr_timeless;
	return s;
}

enum base_status format_import_ctf(const struct format_source *from, struct trace_writer *to,
	const struct format_import_options *opts, struct base_str *notes, struct base_err *err)
{
	uint64_t count[FORMAT_APART_COUNTS] = {0};
	struct format_sched *sched = format_sched_new();
	const struct format_apart a = {
		.library = "libbabeltrace2", .path = from->path, .read = read_ctf};
	(void)opts;
	enum base_status s = sched ? format_read_apart(&a, sched, count, err)
				   : base_fail(err, BASE_ERR_NOMEM, "out of memory for events");
	if (s == BASE_OK)
		s = format_sched_write(sched, to, notes, err);
	if (s == BASE_OK) {
		format_note_count(notes, count[COUNT_OTHER],
			"%s {event says|events say} nothing of scheduling: left out");
		format_note_count(notes, count[COUNT_TIMELESS],
			"%s {event has|events have} no time: left out");
		trace_writer_count(to, TRACE_DIAG_import_skipped, count[COUNT_TIMELESS]);
	}
	format_sched_free(sched);
	return s;
}

#else

enum base_status format_started_ctf(
	const struct format_source *from, struct format_started *ret, struct base_err *err)
{
	(void)from, (void)ret, (void)err;
	return BASE_OK;
}

enum base_status format_import_ctf(const struct format_source *from, struct trace_writer *to,
	const struct format_import_options *opts, struct base_str *notes, struct base_err *err)
{
	(void)from, (void)to, (void)opts, (void)notes;
	return base_fail(err, BASE_ERR_ENV,
		"this longpole was built without libbabeltrace2 (libbabeltrace2-dev)");
}

#endif
