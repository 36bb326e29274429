/* SPDX-License-Identifier: Apache-2.0 */
/* defs.c - numbers and definitions of a trace (stream 0). */
#include "record/defs.h"
#include "symbol/symbol.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum base_status record_sink_init(
	struct record_sink *s, struct trace_writer *w, struct base_err *err)
{
	*s = (struct record_sink){.writer = w, .status = BASE_OK, .nr_strings_written = 1};
	s->strings = base_strtab_new();
	if (!s->strings)
		return base_fail(err, BASE_ERR_NOMEM, "no memory for the trace's texts");
	return BASE_OK;
}

void record_sink_fini(struct record_sink *s)
{
	s->strings = base_strtab_free(s->strings);
	base_map_fini(&s->modules);
	base_map_fini(&s->sums);
	base_map_fini(&s->sites);
	base_map_fini(&s->stacks);
	base_free(s->site);
	base_free(s->module);
	base_free(s->object);
	base_free(s->named);
	base_free(s->made);
	base_map_fini(&s->made_of);
	*s = (struct record_sink){.status = BASE_ERR_USAGE};
}

void record_sink_fail(struct record_sink *s, enum base_status status, const char *what)
{
	if (!record_sink_failed(s))
		s->status = base_fail(&s->err, status, "%s", what);
}

/* The next id of a kind, 0 when there is none left. */
static uint32_t next_id(struct record_sink *s, uint32_t *nr)
{
	if (record_sink_failed(s))
		return 0;
	if (*nr >= RECORD_DEFS_LIMIT) {
		record_sink_fail(
			s, BASE_ERR_LIMIT, "the trace has too many definitions of one kind");
		return 0;
	}
	return ++*nr;
}

static void defs_remember(
	struct record_sink *s, struct base_map *m, uint64_t hi, uint64_t lo, uint32_t id)
{
	enum base_status status = base_map_put(m, hi, lo, id);
	if (status != BASE_OK)
		record_sink_fail(s, status, "cannot remember one more definition");
}

uint32_t record_sink_text(struct record_sink *s, const char *text, size_t length)
{
	uint32_t id = 0;
	if (record_sink_failed(s) || !length)
		return 0;
	enum base_status status = base_strtab_intern(s->strings, text, length, &id);
	if (status != BASE_OK) {
		record_sink_fail(s, status, "cannot remember one more text");
		return 0;
	}
	if (id >= s->nr_strings_written) {
		s->nr_strings_written = id + 1;
		struct trace_record r = {.kind = TRACE_string,
			.u.string = {
				.string = id, .text = {.bytes = text, .length = (uint32_t)length}}};
		record_sink_put(s, &r);
	}
	return id;
}

void record_sink_host(struct record_sink *s, const char *name)
{
	char boot[64] = "";
	FILE *f = fopen("/proc/sys/kernel/random/boot_id", "re");
	if (f && fgets(boot, sizeof boot, f))
		boot[strcspn(boot, "\n")] = 0;
	if (f)
		fclose(f);
	struct trace_record r = {.kind = TRACE_host,
		.u.host = {.host = 1,
			.name = record_sink_text(s, name, strlen(name)),
			.boot = record_sink_text(s, boot, strlen(boot))}};
	record_sink_put(s, &r);
}

void record_sink_quota(struct record_sink *s, uint64_t quota_ns, uint64_t period_ns)
{
	struct trace_record r = {.kind = TRACE_quota,
		.u.quota = {.quota = 1, .quota_ns = quota_ns, .period_ns = period_ns}};
	if (quota_ns)
		record_sink_put(s, &r);
}

void record_sink_process_again(struct record_sink *s, uint32_t process, uint32_t parent,
	uint64_t pid, uint32_t name, uint32_t command)
{
	struct trace_record r = {.kind = TRACE_process,
		.u.process = {.process = process,
			.parent = parent,
			.pid = pid,
			.name = name,
			.command = command}};
	record_sink_put(s, &r);
}

uint32_t record_sink_process(
	struct record_sink *s, uint32_t parent, uint64_t pid, uint32_t name, uint32_t command)
{
	uint32_t id = next_id(s, &s->nr_processes);
	if (id)
		record_sink_process_again(s, id, parent, pid, name, command);
	return id;
}

void record_sink_stream_again(
	struct record_sink *s, uint32_t stream, uint32_t process, uint64_t tid, uint32_t name)
{
	struct trace_record r = {.kind = TRACE_stream,
		.u.stream = {.stream = stream, .process = process, .tid = tid, .name = name}};
	record_sink_put(s, &r);
}

uint32_t record_sink_stream(struct record_sink *s, uint32_t process, uint64_t tid, uint32_t name)
{
	uint32_t id = next_id(s, &s->nr_streams);
	if (id)
		record_sink_stream_again(s, id, process, tid, name);
	return id;
}

/* A file's times are of the kernel's coarse clock, which is behind: never later than it was. */
static bool changed_since(const struct record_sink *s, const struct stat *st, uint64_t time_ns)
{
	const uint64_t changed_ns =
		(uint64_t)st->st_ctim.tv_sec * 1000000000u + (uint64_t)st->st_ctim.tv_nsec;
	return s->clock && s->clock->unix_origin_ns &&
	       changed_ns > s->clock->unix_origin_ns + time_ns;
}

uint32_t record_sink_sum(struct record_sink *s, uint32_t path, uint64_t time_ns)
{
	char text[SYMBOL_BUILD_ID_TEXT] = SYMBOL_SUM_CHANGED;
	const char *name = base_strtab_get(s->strings, path);
	struct stat st;
	uint64_t known;
	if (*name != '/' || stat(name, &st))
		return 0;
	if (changed_since(s, &st, time_ns))
		return record_sink_text(s, text, strlen(text));
	const uint64_t version = (uint64_t)st.st_dev << 48 ^ st.st_ino << 20 ^
				 (uint64_t)st.st_size ^ (uint64_t)st.st_ctim.tv_sec << 30 ^
				 (uint64_t)st.st_ctim.tv_nsec;
	if (base_map_get(&s->sums, path, version, &known))
		return (uint32_t)known;
	uint32_t sum =
		symbol_build_of_file(name, text) ? record_sink_text(s, text, strlen(text)) : 0;
	defs_remember(s, &s->sums, path, version, sum);
	return sum;
}

uint32_t record_sink_module(struct record_sink *s, uint32_t path, uint32_t build_id)
{
	uint64_t known;
	if (base_map_get(&s->modules, path, build_id, &known))
		return (uint32_t)known;
	uint32_t id = next_id(s, &s->nr_modules);
	if (!id)
		return 0;
	enum base_status status =
		base_grow(&s->module, &s->module_capacity, (size_t)id + 1, sizeof *s->module);
	if (status != BASE_OK) {
		record_sink_fail(s, status, "no memory for one more module");
		return 0;
	}
	s->module[id] = (struct record_module){.path = path, .build_id = build_id};
	defs_remember(s, &s->modules, path, build_id, id);
	struct trace_record r = {.kind = TRACE_module,
		.u.module = {.module = id, .path = path, .build_id = build_id}};
	record_sink_put(s, &r);
	return id;
}

static uint32_t new_site(struct record_sink *s, uint32_t module, uint64_t offset)
{
	uint32_t id = next_id(s, &s->nr_sites);
	if (!id)
		return 0;
	enum base_status status =
		base_grow(&s->site, &s->site_capacity, (size_t)id + 1, sizeof *s->site);
	if (status != BASE_OK) {
		record_sink_fail(s, status, "no memory for one more site");
		return 0;
	}
	s->site[id] = (struct record_site){.module = module, .offset = offset};
	struct trace_record r = {
		.kind = TRACE_site, .u.site = {.site = id, .module = module, .offset = offset}};
	record_sink_put(s, &r);
	return id;
}

uint32_t record_sink_site(struct record_sink *s, uint32_t module, uint64_t offset)
{
	uint64_t known;
	if (base_map_get(&s->sites, module, offset, &known))
		return (uint32_t)known;
	uint32_t id = new_site(s, module, offset);
	if (id)
		defs_remember(s, &s->sites, module, offset, id);
	return id;
}

uint32_t record_sink_site_of_no_file(struct record_sink *s, uint64_t address)
{
	return new_site(s, 0, address);
}

uint32_t record_sink_stack(struct record_sink *s, uint32_t parent, uint32_t site)
{
	uint64_t known;
	if (base_map_get(&s->stacks, parent, site, &known))
		return (uint32_t)known;
	uint32_t id = next_id(s, &s->nr_stacks);
	if (!id)
		return 0;
	defs_remember(s, &s->stacks, parent, site, id);
	struct trace_record r = {
		.kind = TRACE_stack, .u.stack = {.stack = id, .parent = parent, .site = site}};
	record_sink_put(s, &r);
	return id;
}

void record_sink_object_again(struct record_sink *s, uint32_t object)
{
	if (!object || object > s->nr_objects || record_sink_failed(s))
		return;
	struct trace_record r = {.kind = TRACE_object, .u.object = s->object[object]};
	record_sink_put(s, &r);
}

uint32_t record_sink_object(struct record_sink *s, struct trace_object o)
{
	o.object = next_id(s, &s->nr_objects);
	if (!o.object)
		return 0;
	enum base_status status =
		base_grow(&s->object, &s->object_capacity, (size_t)o.object + 1, sizeof *s->object);
	if (status != BASE_OK) {
		record_sink_fail(s, status, "no memory for one more object");
		return 0;
	}
	s->object[o.object] = o;
	record_sink_object_again(s, o.object);
	return o.object;
}

void record_sink_object_at(struct record_sink *s, uint32_t object, uint32_t module, uint64_t offset)
{
	if (!object || record_sink_failed(s))
		return;
	enum base_status status =
		base_grow(&s->named, &s->named_capacity, s->nr_named + 1, sizeof *s->named);
	if (status != BASE_OK) {
		record_sink_fail(s, status, "no memory for one more object");
		return;
	}
	RECORD_JOURNAL_ADD(s->journal, named, object, module, offset);
	s->named[s->nr_named++] =
		(struct record_named){.object = object, .module = module, .offset = offset};
}

static void note_made(struct record_sink *s, const struct record_made *made)
{
	uint64_t word[3 + RECORD_MADE_PATH] = {made->object, made->init_site, made->heap_site};
	for (uint32_t i = 0; i < made->nr_path; i++)
		word[3 + i] = made->path[i];
	record_journal_add(s->journal, RECORD_JOURNAL_made, word, 3 + made->nr_path);
}

void record_sink_object_made(struct record_sink *s, const struct record_made *made)
{
	uint64_t known;
	if (!made->object || record_sink_failed(s) || (!made->init_site && !made->heap_site))
		return;
	if (base_map_get(&s->made_of, 0, made->object, &known)) {
		struct record_made *m = &s->made[known];
		bool differs = m->init_site != made->init_site || m->heap_site != made->heap_site;
		if (differs && !m->several)
			note_made(s, made);
		m->several |= differs;
		return;
	}
	enum base_status status =
		base_grow(&s->made, &s->made_capacity, s->nr_made + 1, sizeof *s->made);
	if (status != BASE_OK) {
		record_sink_fail(s, status, "no memory for one more object");
		return;
	}
	defs_remember(s, &s->made_of, 0, made->object, (uint32_t)s->nr_made);
	s->made[s->nr_made++] = *made;
	note_made(s, made);
	s->site[made->init_site].wanted = true;
	s->site[made->heap_site].wanted = true;
	for (uint32_t i = 0; i < made->nr_path; i++)
		s->site[made->path[i]].wanted = true;
}

uint32_t record_sink_actor(struct record_sink *s, uint32_t system, uint32_t name, uint64_t instance)
{
	uint32_t id = next_id(s, &s->nr_actors);
	if (!id)
		return 0;
	struct trace_record r = {.kind = TRACE_actor,
		.u.actor = {.actor = id, .system = system, .name = name, .instance = instance}};
	record_sink_put(s, &r);
	return id;
}

uint32_t record_sink_state(struct record_sink *s, uint32_t name, uint32_t site)
{
	uint32_t id = next_id(s, &s->nr_states);
	if (!id)
		return 0;
	struct trace_record r = {
		.kind = TRACE_state, .u.state = {.state = id, .name = name, .site = site}};
	record_sink_put(s, &r);
	return id;
}
