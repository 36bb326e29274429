/* SPDX-License-Identifier: Apache-2.0 */
/*
 * otlp_import.c - spans: OTLP's JSON (one document, or one a line as the collector writes), and
 * Jaeger's.
 *
 * A span is a state machine while it lasts. Its parent starts it (a unit of "call NAME"), and waits
 * for it: of children that overlap, for the one that ends last, from when the last of them was
 * started (what CRISP and Jaeger take as the critical path). A child that outlasts its parent was
 * not waited for, nor one that consumes a message or only follows from its parent. Spans of one
 * trace are one connection.
 *
 * A span that was sent twice counts once. Where both ends of a call have the same id (Zipkin's), the
 * inner one is called by the outer one and calls the others (Jaeger's span id uniquifier).
 */
#include "format/json.h"
#include "format/machines.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
	SPANS_MAX = 1 << 24,
	NO_PARENT = -1,
	LANES_MAX = 1 << 10,
	ANCESTORS_MAX = 4096,
	ID_BYTES_MAX = 16,
	SPAN_SERVER = 2,
	SPAN_CONSUMER = 5, /* of a message: nobody waits for it */
};

struct span {
	uint64_t begin_ns, end_ns;
	uint64_t trace;               /* number of its trace, from 1 */
	uint32_t id, parent_id;       /* texts "trace/span"; 0: none */
	uint32_t service, name;       /* texts */
	int64_t parent;               /* index */
	int64_t shift_ns;             /* of its service's clock, within this trace */
	bool shifted;                 /* it is known by how much, which may be nothing */
	bool is_server, is_left;      /* is_left: nobody waits for it */
	uint32_t actor;               /* machine */
	size_t children, nr_children; /* in `order`, by begin */
};
struct said { /* a span as the file has it */
	const char *service, *name;
	const json_t *trace, *id, *parent;
	uint64_t begin_ns, end_ns;
	bool is_server, is_left;
};
struct place { /* a span when sorted */
	uint64_t begin_ns;
	size_t index;
	int64_t parent;
};
struct otlp {
	struct base_strtab *texts;
	struct base_map traces; /* text -> number */
	struct base_map by_id;  /* -> who calls by that id */
	struct base_map
		outer_of; /* id -> the other end of a call, of whose spans by_id has the inner */
	struct span *span;
	size_t nr, capacity;
	struct place *order;
	size_t *by_time;
	uint64_t origin_ns;
	uint64_t nr_traces, nr_damaged, nr_orphans, nr_skewed, nr_shifted, nr_repeated;
	bool failed;
	struct format_machines *machines;
};

static uint32_t otlp_import_text_of(struct otlp *o, const char *text)
{
	uint32_t id = 0;
	o->failed |= base_strtab_intern(o->texts, text, strlen(text), &id) != BASE_OK;
	return id;
}

static int base64_digit(char c)
{
	return c >= 'A' && c <= 'Z'   ? c - 'A'
	       : c >= 'a' && c <= 'z' ? c - 'a' + 26
	       : c >= '0' && c <= '9' ? c - '0' + 52
	       : c == '+' || c == '-' ? 62
	       : c == '/' || c == '_' ? 63
				      : -1;
}

/* What protobuf's own JSON makes of 8 or 16 bytes. */
static bool add_base64(struct base_str *out, const char *text)
{
	size_t length = strcspn(text, "="), padding = strlen(text) - length;
	unsigned bits = 0, nr_bits = 0;
	struct base_str hex = {0};
	if ((length != 11 && length != 22) || padding > 2 || text[length + padding])
		return false;
	bool good = strspn(text + length, "=") == padding;
	for (size_t i = 0; good && i < length; i++) {
		int digit = base64_digit(text[i]);
		good = digit >= 0;
		bits = (bits << 6 | (unsigned)digit) & 0xfff;
		nr_bits += 6;
		if (good && nr_bits >= 8)
			base_str_addf(&hex, "%02x", bits >> (nr_bits -= 8) & 0xff);
	}
	const char *p = base_str_text(&hex);
	if (good)
		base_str_add(out, p + strspn(p, "0"));
	out->failed |= hex.failed;
	base_str_fini(&hex);
	return good;
}

/* Ids are numbers: hexadecimal in any case and with any zeros before it; else as they stand. */
static void otlp_import_add_id(struct base_str *out, const char *text)
{
	size_t length = strlen(text);
	text += length > 2 && text[0] == '0' && (text[1] == 'x' || text[1] == 'X') ? 2 : 0;
	if (text[strspn(text, "0123456789abcdefABCDEF")]) {
		if (!add_base64(out, text))
			base_str_add(out, text);
		return;
	}
	for (text += strspn(text, "0"); *text; text++) {
		char c = *text >= 'A' && *text <= 'F' ? (char)(*text + 'a' - 'A') : *text;
		base_str_add_bytes(out, &c, 1);
	}
}

/* Of any JSON type; a number's are its digits in hexadecimal. */
static void otlp_import_add_id_of(struct base_str *out, const json_t *v)
{
	uint64_t number;
	if (json_is_string(v))
		otlp_import_add_id(out, json_string_value(v));
	else if (format_json_number(v, &number) && number)
		base_str_addf(out, "%" PRIx64, number);
}

static uint32_t id_text(struct otlp *o, const json_t *v)
{
	struct base_str id = {0};
	otlp_import_add_id_of(&id, v);
	uint32_t number = otlp_import_text_of(o, base_str_text(&id));
	o->failed |= id.failed;
	base_str_fini(&id);
	return number;
}

/* 0: none, which zeros say, too. */
static uint32_t otlp_import_id_of(struct otlp *o, uint32_t trace, const json_t *span)
{
	struct base_str both = {0};
	base_str_addf(&both, "%s/", base_strtab_get(o->texts, trace));
	size_t length = both.length;
	otlp_import_add_id_of(&both, span);
	uint32_t id = both.length > length ? otlp_import_text_of(o, base_str_text(&both)) : 0;
	o->failed |= both.failed;
	base_str_fini(&both);
	return id;
}

/* ---- reading --------------------------------------------------------------------------------- */

/* OTLP's 64-bit integers are texts; some writers make numbers of them. */
static bool otlp_import_number_of(const json_t *v, uint64_t *ret)
{
	return format_json_number(v, ret) && *ret <= INT64_MAX;
}

/* Is the later of two spans of one id the inner end of a call? */
static bool is_inner(const struct span *later, const struct span *earlier)
{
	return later->is_server != earlier->is_server
		       ? later->is_server
		       : later->end_ns - later->begin_ns <= earlier->end_ns - earlier->begin_ns;
}

/* Is that span in the map under the new one's id, sent before? */
static bool is_there(const struct otlp *o, const struct base_map *by_id, const struct span *s)
{
	uint64_t there;
	if (!base_map_get(by_id, 0, s->id, &there))
		return false;
	const struct span *t = &o->span[there];
	return t->begin_ns == s->begin_ns && t->end_ns == s->end_ns && t->name == s->name &&
	       t->service == s->service;
}

/* Keeps the new span's id; false: it is one that is there, sent once more. */
static bool keep_id(struct otlp *o, const struct span *s)
{
	uint64_t there, outer = o->nr, inner = o->nr;
	if (!s->id)
		return true;
	if (is_there(o, &o->by_id, s) || is_there(o, &o->outer_of, s))
		return false;
	if (base_map_get(&o->by_id, 0, s->id, &there)) {
		if (is_inner(s, &o->span[there]))
			outer = there;
		else
			inner = there;
		o->failed |= base_map_put(&o->outer_of, 0, s->id, outer) != BASE_OK;
	}
	o->failed |= base_map_put(&o->by_id, 0, s->id, inner) != BASE_OK;
	return true;
}

static void add_span(struct otlp *o, const struct said *said)
{
	uint64_t number;
	uint32_t trace_text = id_text(o, said->trace);
	if (o->nr >= SPANS_MAX || said->end_ns < said->begin_ns || said->end_ns > INT64_MAX) {
		o->nr_damaged++;
		return;
	}
	if (!base_map_get(&o->traces, 0, trace_text, &number)) {
		number = ++o->nr_traces;
		o->failed |= base_map_put(&o->traces, 0, trace_text, number) != BASE_OK;
	}
	if (base_grow(&o->span, &o->capacity, o->nr + 1, sizeof *o->span) != BASE_OK) {
		o->failed = true;
		return;
	}
	struct span s = {.begin_ns = said->begin_ns,
		.end_ns = said->end_ns,
		.trace = number,
		.id = otlp_import_id_of(o, trace_text, said->id),
		.parent_id = otlp_import_id_of(o, trace_text, said->parent),
		.service = otlp_import_text_of(o, said->service),
		.name = otlp_import_text_of(o, said->name),
		.parent = NO_PARENT,
		.is_server = said->is_server,
		.is_left = said->is_left};
	if (keep_id(o, &s))
		o->span[o->nr++] = s;
	else
		o->nr_repeated++;
}

static const char *otlp_import_text_in(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));
	return text ? text : "";
}

/* A member under protobuf's JSON name, or the field's own, which writers may keep. */
static const json_t *otlp_import_member(const json_t *object, const char *key, const char *field)
{
	const json_t *v = json_object_get(object, key);
	return v ? v : json_object_get(object, field);
}

static const char *member_text(const json_t *object, const char *key, const char *field)
{
	const char *text = json_string_value(otlp_import_member(object, key, field));
	return text ? text : "";
}

static bool otlp_import_is_of_kind(const json_t *span, unsigned kind, const char *name)
{
	const json_t *said = json_object_get(span, "kind");
	uint64_t number = 0;
	return (format_json_number(said, &number) && number == kind) ||
	       !strcmp(otlp_import_text_in(span, "kind"), name);
}

static const char *service_of(const json_t *resource)
{
	const json_t *attributes = json_object_get(resource, "attributes"), *a;
	size_t i;
	json_array_foreach(attributes, i, a)
	{
		if (!strcmp(otlp_import_text_in(a, "key"), "service.name"))
			return member_text(
				json_object_get(a, "value"), "stringValue", "string_value");
	}
	return "";
}

static void read_otlp_spans(struct otlp *o, const char *service, const json_t *spans)
{
	const json_t *s;
	size_t i;
	json_array_foreach(spans, i, s)
	{
		struct said said = {.service = service,
			.name = otlp_import_text_in(s, "name"),
			.trace = otlp_import_member(s, "traceId", "trace_id"),
			.id = otlp_import_member(s, "spanId", "span_id"),
			.parent = otlp_import_member(s, "parentSpanId", "parent_span_id"),
			.is_server = otlp_import_is_of_kind(s, SPAN_SERVER, "SPAN_KIND_SERVER"),
			.is_left = otlp_import_is_of_kind(s, SPAN_CONSUMER, "SPAN_KIND_CONSUMER")};
		if (otlp_import_number_of(
			    otlp_import_member(s, "startTimeUnixNano", "start_time_unix_nano"),
			    &said.begin_ns) &&
			otlp_import_number_of(
				otlp_import_member(s, "endTimeUnixNano", "end_time_unix_nano"),
				&said.end_ns))
			add_span(o, &said);
		else
			o->nr_damaged++;
	}
}

static void read_otlp(struct otlp *o, const json_t *resources)
{
	const json_t *r, *scope;
	size_t i, k;
	json_array_foreach(resources, i, r)
	{
		const char *service = service_of(json_object_get(r, "resource"));
		const json_t *scopes = otlp_import_member(r, "scopeSpans", "scope_spans");
		if (!scopes) /* before OTLP 0.15 */
			scopes = json_object_get(r, "instrumentationLibrarySpans");
		json_array_foreach(scopes, k, scope)
		{
			read_otlp_spans(o, service, json_object_get(scope, "spans"));
		}
	}
}

/* The span that a span refers to so; NULL: none. */
static const json_t *jaeger_reference(const json_t *span, const char *type)
{
	const json_t *references = json_object_get(span, "references"), *r;
	size_t i;
	json_array_foreach(references, i, r)
	{
		if (!strcmp(otlp_import_text_in(r, "refType"), type))
			return json_object_get(r, "spanID");
	}
	return NULL;
}

/* Of what only follows from another one, that one (Jaeger's own rule); nobody waits for it. */
static void read_jaeger_parent(struct said *said, const json_t *span)
{
	said->parent = jaeger_reference(span, "CHILD_OF");
	if (!said->parent)
		said->parent = json_object_get(span, "parentSpanID");
	if (said->parent)
		return;
	said->parent = jaeger_reference(span, "FOLLOWS_FROM");
	said->is_left = said->parent != NULL;
}

/* As the tag span.kind says. */
static bool is_jaeger_server(const json_t *span)
{
	const json_t *tags = json_object_get(span, "tags"), *t;
	size_t i;
	json_array_foreach(tags, i, t)
	{
		if (!strcmp(otlp_import_text_in(t, "key"), "span.kind"))
			return !strcmp(otlp_import_text_in(t, "value"), "server");
	}
	return false;
}

static void read_jaeger(struct otlp *o, const json_t *data)
{
	const json_t *trace, *s;
	size_t i, k;
	json_array_foreach(data, i, trace)
	{
		const json_t *processes = json_object_get(trace, "processes");
		json_array_foreach(json_object_get(trace, "spans"), k, s)
		{
			uint64_t begin_us, us;
			const json_t *process =
				json_object_get(processes, otlp_import_text_in(s, "processID"));
			if (!otlp_import_number_of(json_object_get(s, "startTime"), &begin_us) ||
				!otlp_import_number_of(json_object_get(s, "duration"), &us) ||
				begin_us > UINT64_MAX / 2000 || us > UINT64_MAX / 2000) {
				o->nr_damaged++;
				continue;
			}
			struct said said = {.service = otlp_import_text_in(process, "serviceName"),
				.name = otlp_import_text_in(s, "operationName"),
				.trace = json_object_get(s, "traceID"),
				.id = json_object_get(s, "spanID"),
				.begin_ns = begin_us * 1000,
				.end_ns = (begin_us + us) * 1000,
				.is_server = is_jaeger_server(s)};
			read_jaeger_parent(&said, s);
			add_span(o, &said);
		}
	}
}

/* One JSON document after the other, from a text that is mended once when it must be. */
static enum base_status read_documents(
	struct otlp *o, const char *text, size_t length, bool *ret_cut, struct base_err *err)
{
	const size_t flags = JSON_DISABLE_EOF_CHECK | JSON_ALLOW_NUL;
	struct base_str mended = {0};
	enum base_status s = BASE_OK;
	size_t at = format_json_mark_bytes(text, length);
	while (at < length && s == BASE_OK) {
		json_error_t why, ignored;
		if (text[at] && strchr(" \t\r\n", text[at])) {
			at++;
			continue;
		}
		json_t *j = json_loadb(text + at, length - at, flags, &why);
		if (!j && !mended.buf) {
			format_json_mend(&mended, text + at, length - at);
			o->failed |= mended.failed;
			text = base_str_text(&mended);
			length = mended.failed ? 0 : mended.length;
			at = 0;
			j = json_loadb(text, length, flags, &ignored);
			why.position = ignored.position;
		}
		if (!j) {
			*ret_cut = o->nr > 0;
			if (!o->nr && !o->failed)
				s = base_fail(err, BASE_ERR_FOREIGN,
					"is no JSON: line %d: %s (OTLP's binary form is not read)",
					why.line, why.text);
			break;
		}
		const json_t *otlp = otlp_import_member(j, "resourceSpans", "resource_spans"),
			     *jaeger = json_object_get(j, "data");
		bool known = json_is_array(otlp) || json_is_array(jaeger);
		if (json_is_array(otlp))
			read_otlp(o, otlp);
		else if (json_is_array(jaeger))
			read_jaeger(o, jaeger);
		json_decref(j);
		if (!known && !o->nr)
			s = base_fail(err, BASE_ERR_FOREIGN,
				"has neither resourceSpans (OTLP) nor data (Jaeger)");
		at += why.position > 0 ? (size_t)why.position : length;
	}
	base_str_fini(&mended);
	return s;
}

/* ---- spans as machines ----------------------------------------------------------------------- */

static int by_parent(const void *a, const void *b)
{
	const struct place *x = a, *y = b;
	if (x->parent != y->parent)
		return x->parent < y->parent ? -1 : 1;
	if (x->begin_ns != y->begin_ns)
		return x->begin_ns < y->begin_ns ? -1 : 1;
	return x->index < y->index ? -1 : x->index > y->index;
}

/* A parent that is its own ancestor is none. */
static void find_parents(struct otlp *o)
{
	for (size_t i = 0; i < o->nr; i++) {
		struct span *s = &o->span[i];
		uint64_t found, outer;
		if (s->id && base_map_get(&o->by_id, 0, s->id, &found) && found == i &&
			base_map_get(&o->outer_of, 0, s->id, &outer)) {
			s->parent = (int64_t)outer;
			continue;
		}
		if (!s->parent_id)
			continue;
		if (!base_map_get(&o->by_id, 0, s->parent_id, &found) || found == i) {
			o->nr_orphans++;
			continue;
		}
		s->parent = (int64_t)found;
	}
	for (size_t i = 0; i < o->nr; i++) { /* cut cycles: at most nr steps up */
		size_t steps = 0;
		for (int64_t p = o->span[i].parent; p != NO_PARENT; p = o->span[p].parent)
			if ((size_t)p == i || ++steps > ANCESTORS_MAX) {
				o->span[i].parent = NO_PARENT;
				o->nr_orphans++;
				break;
			}
	}
}

/* By how much a span of another service than its parent's is early (Jaeger's clock skew
 * adjuster): what is longer than its parent begins with it; what is shorter and not within it
 * gets as much time for the way there as for the way back. */
static int64_t skew_of(const struct span *child, const struct span *parent)
{
	int64_t begin = (int64_t)child->begin_ns, parent_begin = (int64_t)parent->begin_ns;
	uint64_t ns = child->end_ns - child->begin_ns,
		 parent_ns = parent->end_ns - parent->begin_ns;
	if (ns > parent_ns)
		return begin < parent_begin ? parent_begin - begin : 0;
	if (begin >= parent_begin && (child->end_ns <= parent->end_ns || child->is_left))
		return 0;
	return parent_begin + (int64_t)((parent_ns - ns) / 2) - begin;
}

/* Its parent is where it belongs; a span of its parent's service has its parent's clock. */
static void shift_span(struct otlp *o, struct span *s)
{
	const struct span *parent = s->parent == NO_PARENT ? NULL : &o->span[s->parent];
	if (parent)
		s->shift_ns = s->service == parent->service ? parent->shift_ns : skew_of(s, parent);
	s->shifted = true;
	int64_t ns = (int64_t)(s->end_ns - s->begin_ns), begin;
	if (__builtin_add_overflow((int64_t)s->begin_ns, s->shift_ns, &begin) || begin < 0 ||
		begin > INT64_MAX - ns)
		s->shift_ns = 0, begin = (int64_t)s->begin_ns;
	o->nr_shifted += s->shift_ns != 0;
	s->begin_ns = (uint64_t)begin;
	s->end_ns = (uint64_t)(begin + ns);
}

/* Parents first. */
static void shift_clocks(struct otlp *o)
{
	size_t way[ANCESTORS_MAX + 2];
	for (size_t i = 0; i < o->nr; i++) {
		size_t nr = 0;
		for (int64_t p = (int64_t)i;
			p != NO_PARENT && !o->span[p].shifted && nr < BASE_COUNT(way);
			p = o->span[p].parent)
			way[nr++] = (size_t)p;
		while (nr)
			shift_span(o, &o->span[way[--nr]]);
	}
}

/* All spans by time (when grouped is false), or by parent and time. */
static void sort_spans(struct otlp *o, bool grouped)
{
	for (size_t i = 0; i < o->nr; i++)
		o->order[i] = (struct place){.begin_ns = o->span[i].begin_ns,
			.index = i,
			.parent = grouped ? o->span[i].parent : NO_PARENT};
	if (o->nr)
		qsort(o->order, o->nr, sizeof *o->order, by_parent);
}

static void order_children(struct otlp *o)
{
	sort_spans(o, true);
	for (size_t i = 0; i < o->nr; i++) {
		if (o->order[i].parent == NO_PARENT)
			continue;
		struct span *p = &o->span[o->order[i].parent];
		if (!p->nr_children)
			p->children = i;
		p->nr_children++;
	}
}

/* Machines of one service and name: as many as overlap. */
static enum base_status choose_actors(struct otlp *o, struct base_err *err)
{
	struct base_map free_at = {0}; /* (service, name), instance -> when it is free */
	struct base_map instances = {0};
	enum base_status s = BASE_OK;
	sort_spans(o, false);
	o->origin_ns = o->nr ? o->order[0].begin_ns : 0;
	for (size_t i = 0; s == BASE_OK && i < o->nr; i++) {
		o->by_time[i] = o->order[i].index;
		struct span *p = &o->span[o->order[i].index];
		uint64_t hi = (uint64_t)p->service << 32 | p->name, nr = 0, at = 0, k = 0;
		(void)base_map_get(&instances, 0, hi, &nr);
		while (k < nr && k < LANES_MAX &&
			(!base_map_get(&free_at, hi, k, &at) || at > p->begin_ns))
			k++;
		if (k == nr)
			s = base_map_put(&instances, 0, hi, nr + 1);
		if (s == BASE_OK)
			s = base_map_put(&free_at, hi, k, p->end_ns + 1);
		p->actor = format_machines_actor(o->machines, base_strtab_get(o->texts, p->service),
			base_strtab_get(o->texts, p->name), k + 1);
	}
	base_map_fini(&free_at);
	base_map_fini(&instances);
	return s == BASE_OK ? s : base_fail(err, s, "out of memory for spans");
}

static uint32_t otlp_import_queue_of(struct otlp *o, const char *what, const struct span *s)
{
	struct base_str name = {0};
	const char *service = base_strtab_get(o->texts, s->service);
	base_str_addf(&name, "%s %s%s%s", what, service, *service ? ": " : "",
		base_strtab_get(o->texts, s->name));
	uint32_t id = format_machines_queue(o->machines, base_str_text(&name));
	o->failed |= name.failed;
	base_str_fini(&name);
	return id;
}

static uint64_t clamp(uint64_t t, uint64_t low, uint64_t high)
{
	return t < low ? low : t > high ? high : t;
}

/* What the span does about its children, in the order of time. */
static void otlp_import_add_children(struct otlp *o, const struct span *s, uint32_t state)
{
	struct format_machines *m = o->machines;
	for (size_t i = 0, next; i < s->nr_children; i = next) {
		/* children that overlap; of those that end in time the one that ends last */
		const struct place *first = &o->order[s->children + i];
		uint64_t reach = o->span[first->index].end_ns, last_start = 0;
		size_t last = SIZE_MAX;
		for (next = i; next < s->nr_children; next++) {
			size_t index = o->order[s->children + next].index;
			const struct span *c = &o->span[index];
			if (next > i && c->begin_ns >= reach)
				break;
			reach = c->end_ns > reach ? c->end_ns : reach;
			uint64_t start_ns = clamp(c->begin_ns, s->begin_ns, s->end_ns);
			o->nr_skewed += c->begin_ns < s->begin_ns;
			format_machines_add(m, start_ns, s->actor, FORMAT_MACHINE_put,
				otlp_import_queue_of(o, "call", c), index);
			last_start = start_ns;
			if (!c->is_left && c->end_ns <= s->end_ns &&
				(last == SIZE_MAX || c->end_ns >= o->span[last].end_ns))
				last = index;
		}
		if (last == SIZE_MAX || o->span[last].end_ns < last_start)
			continue;
		uint32_t queue = otlp_import_queue_of(o, "return", &o->span[last]);
		format_machines_add(m, last_start, s->actor, FORMAT_MACHINE_wait, queue, 0);
		format_machines_add(
			m, o->span[last].end_ns, s->actor, FORMAT_MACHINE_take, queue, last);
		format_machines_add(
			m, o->span[last].end_ns, s->actor, FORMAT_MACHINE_state, state, 0);
	}
}

/* Until it is called, a machine waits for that. */
static void await_call(struct otlp *o, const struct span *s, uint64_t since_ns, uint32_t between)
{
	struct format_machines *m = o->machines;
	if (since_ns == o->origin_ns)
		format_machines_add(m, since_ns, s->actor, FORMAT_MACHINE_state, between, 0);
	format_machines_add(
		m, since_ns, s->actor, FORMAT_MACHINE_wait, otlp_import_queue_of(o, "call", s), 0);
}

static void otlp_import_convert(struct otlp *o)
{
	struct format_machines *m = o->machines;
	struct base_map free_since = {0}; /* by machine */
	uint32_t between = format_machines_state(m, "between spans");
	for (size_t k = 0; k < o->nr; k++) {
		size_t i = o->by_time[k];
		const struct span *s = &o->span[i];
		uint32_t state = format_machines_state(m, base_strtab_get(o->texts, s->name));
		uint64_t begin_ns = s->begin_ns, since_ns = o->origin_ns;
		bool called = s->parent != NO_PARENT;
		if (called && begin_ns < o->span[s->parent].begin_ns)
			begin_ns = o->span[s->parent].begin_ns; /* clocks differ */
		if (begin_ns > s->end_ns)
			begin_ns = s->end_ns;
		(void)base_map_get(&free_since, 0, s->actor, &since_ns);
		if (called && since_ns < begin_ns)
			await_call(o, s, since_ns, between);
		format_machines_add(m, begin_ns, s->actor, FORMAT_MACHINE_identify, 0, s->trace);
		if (called)
			format_machines_add(m, begin_ns, s->actor, FORMAT_MACHINE_take,
				otlp_import_queue_of(o, "call", s), i);
		format_machines_add(m, begin_ns, s->actor, FORMAT_MACHINE_state, state, 0);
		otlp_import_add_children(o, s, state);
		if (called)
			format_machines_add(m, s->end_ns, s->actor, FORMAT_MACHINE_put,
				otlp_import_queue_of(o, "return", s), i);
		format_machines_add(m, s->end_ns, s->actor, FORMAT_MACHINE_state, between, 0);
		o->failed |= base_map_put(&free_since, 0, s->actor, s->end_ns) != BASE_OK;
	}
	base_map_fini(&free_since);
}

enum base_status format_import_otlp(const struct format_source *from, struct trace_writer *to,
	const struct format_import_options *opts, struct base_str *notes, struct base_err *err)
{
	struct otlp o = {.texts = base_strtab_new(), .machines = format_machines_new()};
	char *text = NULL;
	size_t length = 0;
	bool cut = false;
	(void)opts;
	enum base_status s = o.texts && o.machines
				     ? format_read_all(from, &text, &length, err)
				     : base_fail(err, BASE_ERR_NOMEM, "out of memory");
	if (s == BASE_OK)
		s = read_documents(&o, text, length, &cut, err);
	base_free(text);
	if (s == BASE_OK && !o.nr && o.nr_damaged)
		s = base_fail(err, BASE_ERR_FOREIGN, "none of its spans has sensible times");
	if (s == BASE_OK) {
		o.order = base_alloc((o.nr + 1) * sizeof *o.order);
		o.by_time = base_alloc((o.nr + 1) * sizeof *o.by_time);
		o.failed |= !o.order || !o.by_time;
	}
	if (s == BASE_OK && !o.failed) {
		find_parents(&o);
		shift_clocks(&o);
		s = choose_actors(&o, err);
	}
	if (s == BASE_OK && !o.failed) {
		order_children(&o);
		otlp_import_convert(&o);
	}
	if (s == BASE_OK && o.failed)
		s = base_fail(err, BASE_ERR_NOMEM, "out of memory for spans");
	if (s == BASE_OK)
		s = format_machines_write(o.machines, from->name, to, err);
	if (s == BASE_OK) {
		base_str_addf(notes, "%zu {span|spans} of %llu {trace|traces}\n", o.nr,
			(unsigned long long)o.nr_traces);
		format_note_count(notes, o.nr_damaged,
			"%s {span has|spans have} no sensible times: left out");
		format_note_count(notes, o.nr_repeated,
			"%s {span is|spans are} there more than once: counted once");
		format_note_count(
			notes, o.nr_orphans, "%s {span has|spans have} a parent that is not there");
		format_note_count(notes, o.nr_skewed,
			"%s {span begins|spans begin} before {its parent|their parents}: clocks "
			"differ, so {it begins|they begin} with {it|them}");
		format_note_count(notes, o.nr_shifted,
			"%s {span was|spans were} outside of their parents on another service: "
			"clocks differ, "
			"they and what they called are shifted as Jaeger does it");
		trace_writer_count(to, TRACE_DIAG_import_skipped, o.nr_damaged);
		trace_writer_count(to, TRACE_DIAG_import_cut, cut);
	}
	base_free(o.span);
	base_free(o.order);
	base_free(o.by_time);
	base_strtab_free(o.texts);
	base_map_fini(&o.traces);
	base_map_fini(&o.by_id);
	base_map_fini(&o.outer_of);
	format_machines_free(o.machines);
	return s;
}
