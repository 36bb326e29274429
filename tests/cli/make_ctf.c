/* SPDX-License-Identifier: Apache-2.0 */
/*
 * make_ctf.c - a kernel's trace as LTTng would lay it out, written by babeltrace2's own writer
 * (sink.ctf.fs): a stream a processor, cpu_id in its packets, sched_switch and sched_waking.
 *
 * A client works 100 us, wakes a server and sleeps; the server runs from 120 us, wakes the client
 * at 620; the client runs from 640 to 700. Usage: make_ctf DIRECTORY
 */
#include <babeltrace2/babeltrace.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CLIENT = 11, SERVER = 12, SWITCH = 0, WAKING = 1, CPUS = 2, MESSAGES_MAX = 64 };

static const struct {
	unsigned us, cpu, kind;
	int prev, next; /* of a waking: next is woken */
	long prev_state;
} events[] = {
	{0, 0, SWITCH, 0, CLIENT, 0},
	{0, 1, SWITCH, 0, SERVER, 0},
	{10, 1, SWITCH, SERVER, 0, 1},
	{100, 0, WAKING, CLIENT, SERVER, 0},
	{105, 0, SWITCH, CLIENT, 0, 1},
	{120, 1, SWITCH, 0, SERVER, 0},
	{620, 1, WAKING, SERVER, CLIENT, 0},
	{630, 1, SWITCH, SERVER, 0, 1},
	{640, 0, SWITCH, 0, CLIENT, 0},
	{700, 0, SWITCH, CLIENT, 0, 1},
};

static bt_stream *stream[CPUS];
static bt_packet *packet[CPUS];
static bt_event_class *event_class[2];

static void must(int ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "make_ctf: %s\n", what);
	exit(1);
}

static void add_member(bt_field_class *s, const char *name, bt_field_class *fc)
{
	must(bt_field_class_structure_append_member(s, name, fc) == 0, name);
	bt_field_class_put_ref(fc);
}

static void add_event_class(bt_stream_class *sc, bt_trace_class *tc, unsigned kind)
{
	bt_field_class *s = bt_field_class_structure_create(tc);
	event_class[kind] = bt_event_class_create(sc);
	bt_event_class_set_name(
		event_class[kind], kind == SWITCH ? "sched_switch" : "sched_waking");
	if (kind == SWITCH) {
		add_member(s, "prev_comm", bt_field_class_string_create(tc));
		add_member(s, "prev_tid", bt_field_class_integer_signed_create(tc));
		add_member(s, "prev_state", bt_field_class_integer_signed_create(tc));
		add_member(s, "next_comm", bt_field_class_string_create(tc));
		add_member(s, "next_tid", bt_field_class_integer_signed_create(tc));
	} else {
		add_member(s, "comm", bt_field_class_string_create(tc));
		add_member(s, "tid", bt_field_class_integer_signed_create(tc));
	}
	bt_event_class_set_payload_field_class(event_class[kind], s);
	bt_field_class_put_ref(s);
}

static bt_component_class_initialize_method_status initialize(bt_self_component_source *self,
	bt_self_component_source_configuration *config, const bt_value *params, void *data)
{
	bt_self_component *own = bt_self_component_source_as_self_component(self);
	bt_trace_class *tc = bt_trace_class_create(own);
	bt_stream_class *sc = bt_stream_class_create(tc);
	bt_clock_class *clock = bt_clock_class_create(own);
	bt_field_class *context = bt_field_class_structure_create(tc);
	(void)config, (void)params, (void)data;
	bt_clock_class_set_frequency(clock, 1000000000);
	bt_stream_class_set_default_clock_class(sc, clock);
	bt_stream_class_set_supports_packets(sc, BT_TRUE, BT_TRUE, BT_TRUE);
	add_member(context, "cpu_id", bt_field_class_integer_unsigned_create(tc));
	bt_stream_class_set_packet_context_field_class(sc, context);
	add_event_class(sc, tc, SWITCH);
	add_event_class(sc, tc, WAKING);
	bt_trace *trace = bt_trace_create(tc);
	for (unsigned i = 0; i < CPUS; i++) {
		stream[i] = bt_stream_create(sc, trace);
		packet[i] = bt_packet_create(stream[i]);
		bt_field *f = bt_field_structure_borrow_member_field_by_name(
			bt_packet_borrow_context_field(packet[i]), "cpu_id");
		bt_field_integer_unsigned_set_value(f, i);
	}
	bt_self_component_source_add_output_port(self, "out", NULL, NULL);
	return BT_COMPONENT_CLASS_INITIALIZE_METHOD_STATUS_OK;
}

static void set_text(bt_field *payload, const char *member, int tid)
{
	bt_field *f = bt_field_structure_borrow_member_field_by_name(payload, member);
	bt_field_string_set_value(f, tid == CLIENT   ? "client"
				     : tid == SERVER ? "server"
						     : "swapper");
}

static void set_number(bt_field *payload, const char *member, long value)
{
	bt_field *f = bt_field_structure_borrow_member_field_by_name(payload, member);
	bt_field_integer_signed_set_value(f, value);
}

static const bt_message *event_message(bt_self_message_iterator *it, size_t i)
{
	bt_message *m = bt_message_event_create_with_packet_and_default_clock_snapshot(
		it, event_class[events[i].kind], packet[events[i].cpu], events[i].us * 1000ul);
	bt_field *payload = bt_event_borrow_payload_field(bt_message_event_borrow_event(m));
	if (events[i].kind == SWITCH) {
		set_text(payload, "prev_comm", events[i].prev);
		set_number(payload, "prev_tid", events[i].prev);
		set_number(payload, "prev_state", events[i].prev_state);
		set_text(payload, "next_comm", events[i].next);
		set_number(payload, "next_tid", events[i].next);
	} else {
		set_text(payload, "comm", events[i].next);
		set_number(payload, "tid", events[i].next);
	}
	return m;
}

static bt_message_iterator_class_next_method_status next(bt_self_message_iterator *it,
	bt_message_array_const array, uint64_t capacity, uint64_t *count)
{
	static unsigned done; /* a message a call: this is a program with one iterator */
	const unsigned nr = sizeof events / sizeof *events;
	const bt_message *m;
	(void)capacity;
	if (done == nr + 4 * CPUS)
		return BT_MESSAGE_ITERATOR_CLASS_NEXT_METHOD_STATUS_END;
	if (done < CPUS)
		m = bt_message_stream_beginning_create(it, stream[done]);
	else if (done < 2 * CPUS)
		m = bt_message_packet_beginning_create_with_default_clock_snapshot(
			it, packet[done - CPUS], 0);
	else if (done < 2 * CPUS + nr)
		m = event_message(it, done - 2 * CPUS);
	else if (done < 3 * CPUS + nr)
		m = bt_message_packet_end_create_with_default_clock_snapshot(
			it, packet[done - 2 * CPUS - nr], 700000);
	else
		m = bt_message_stream_end_create(it, stream[done - 3 * CPUS - nr]);
	done++;
	array[0] = m;
	*count = 1;
	return BT_MESSAGE_ITERATOR_CLASS_NEXT_METHOD_STATUS_OK;
}

int main(int argc, char **argv)
{
	const bt_plugin *ctf = NULL;
	const bt_component_source *source;
	const bt_component_sink *sink;
	bt_value *params = bt_value_map_create();
	must(argc == 2, "give a directory");
	bt_value_map_insert_string_entry(params, "path", argv[1]);
	bt_value_map_insert_bool_entry(params, "assume-single-trace", BT_TRUE);
	bt_value_map_insert_bool_entry(params, "quiet", BT_TRUE);
	bt_message_iterator_class *messages = bt_message_iterator_class_create(next);
	bt_component_class_source *class = bt_component_class_source_create("kernel", messages);
	bt_component_class_source_set_initialize_method(class, initialize);
	bt_graph *graph = bt_graph_create(0);
	must(bt_plugin_find("ctf", BT_TRUE, BT_TRUE, BT_TRUE, BT_TRUE, BT_FALSE, &ctf) == 0,
		"plugin ctf");
	must(bt_graph_add_source_component(
		     graph, class, "kernel", NULL, BT_LOGGING_LEVEL_NONE, &source) == 0,
		"source");
	must(bt_graph_add_sink_component(graph,
		     bt_plugin_borrow_sink_component_class_by_name_const(ctf, "fs"), "fs", params,
		     BT_LOGGING_LEVEL_WARNING, &sink) == 0,
		"sink");
	must(bt_graph_connect_ports(graph,
		     bt_component_source_borrow_output_port_by_index_const(source, 0),
		     bt_component_sink_borrow_input_port_by_index_const(sink, 0), NULL) == 0,
		"ports");
	must(bt_graph_run(graph) == 0, "run");
	bt_graph_put_ref(graph);
	return 0;
}
