/* SPDX-License-Identifier: Apache-2.0 */
/* kernel_names.c - /proc/kallsyms, read once and when it is first needed. */
#include "system/kernel_names.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINE_MAX_BYTES = 1024, FUNCTION_MAX_BYTES = 1 << 20 };
static const char module_path[] = "[kernel]";

enum base_status system_kernel_names_parse(struct system_kernel_names *n, const char *line)
{
	char *end;
	uint64_t address = strtoull(line, &end, 16);
	if (end == line || *end != ' ' || !address || !strchr("tTwW", end[1]) || !end[1] ||
		end[2] != ' ')
		return BASE_OK; /* data, or hidden */
	const char *text = end + 3;
	size_t length = strcspn(text, " \t\n");
	if (!length)
		return BASE_OK;
	enum base_status status = base_grow(&n->name, &n->capacity, n->nr + 1, sizeof *n->name);
	if (status == BASE_OK)
		status = base_grow(&n->texts, &n->texts_capacity, n->texts_bytes + length + 1, 1);
	if (status != BASE_OK)
		return status;
	n->name[n->nr++] =
		(struct system_kernel_name){.address = address, .text = (uint32_t)n->texts_bytes};
	memcpy(n->texts + n->texts_bytes, text, length);
	n->texts[n->texts_bytes + length] = 0;
	n->texts_bytes += length + 1;
	return BASE_OK;
}

static int kernel_names_by_address(const void *a, const void *b)
{
	const struct system_kernel_name *x = a, *y = b;
	return (x->address > y->address) - (x->address < y->address);
}

void system_kernel_names_sort(struct system_kernel_names *n)
{
	if (n->nr)
		qsort(n->name, n->nr, sizeof *n->name, kernel_names_by_address);
}

const char *system_kernel_names_find(
	const struct system_kernel_names *n, uint64_t address, uint64_t *ret_start)
{
	size_t low = BASE_PARTITION(i, n->nr, n->name[i].address <= address);
	if (!low || address - n->name[low - 1].address > FUNCTION_MAX_BYTES)
		return NULL;
	*ret_start = n->name[low - 1].address;
	return n->texts + n->name[low - 1].text;
}

static struct system_kernel_names *kernel_names_load(struct system_kernel *k)
{
	char line[LINE_MAX_BYTES];
	if (!k->names)
		k->names = base_alloc(sizeof *k->names);
	struct system_kernel_names *n = k->names;
	if (!n || n->loaded)
		return n;
	n->loaded = true;
	FILE *f = k->alone ? NULL : fopen("/proc/kallsyms", "re");
	while (f && fgets(line, sizeof line, f))
		if (system_kernel_names_parse(n, line) != BASE_OK)
			break; /* no memory: fewer names */
	if (f)
		fclose(f);
	system_kernel_names_sort(n);
	return n;
}

static uint32_t kernel_module(struct system_kernel *k)
{
	struct record_sink *sink = &k->converter->sink;
	if (!k->module)
		k->module = record_sink_module(
			sink, record_sink_text(sink, module_path, sizeof module_path - 1), 0);
	return k->module;
}

uint32_t system_kernel_site(struct system_kernel *k, uint64_t address)
{
	if (!address)
		return 0;
	uint32_t site = record_sink_site(&k->converter->sink, kernel_module(k), address);
	record_sink_site_is_exact(&k->converter->sink, site);
	return site;
}

uint32_t system_kernel_return_site(struct system_kernel *k, uint64_t address)
{
	return record_sink_site(&k->converter->sink, kernel_module(k), address);
}

/* How every task leaves its processor: says nothing. */
static bool is_scheduler(const char *name)
{
	static const char *const names[] = {"__schedule", "schedule", "schedule_timeout",
		"io_schedule", "io_schedule_timeout", "schedule_preempt_disabled",
		"__traceiter_sched_switch", "__bpf_trace_sched_switch", "bpf_trace_run4"};
	for (size_t i = 0; name && i < BASE_COUNT(names); i++)
		if (!strcmp(name, names[i]))
			return true;
	return name && !strncmp(name, "bpf_prog_", 9);
}

uint32_t system_kernel_stack(struct system_kernel *k, const uint64_t *frame, size_t nr)
{
	struct record_sink *sink = &k->converter->sink;
	const struct system_kernel_names *names = kernel_names_load(k);
	size_t first = 0;
	uint32_t stack = 0;
	uint64_t start;
	for (size_t i = 0; names && i < nr; i++)
		if (is_scheduler(system_kernel_names_find(names, frame[i], &start)))
			first = i + 1;
	for (size_t i = nr; i > first; i--)
		if (frame[i - 1])
			stack = record_sink_stack(
				sink, stack, system_kernel_return_site(k, frame[i - 1]));
	return stack;
}

/* Timers that start themselves anew each time: the scheduler's tick, and our own sampling. */
static void find_ticks(struct system_kernel *k)
{
	static const char *const names[SYSTEM_KERNEL_TICKS] = {
		"tick_nohz_handler", "tick_sched_timer", "perf_swevent_hrtimer"};
	const struct system_kernel_names *n = kernel_names_load(k);
	k->ticks_known = true;
	for (size_t i = 0; n && i < n->nr; i++)
		for (size_t j = 0; j < BASE_COUNT(names); j++)
			if (!strcmp(n->texts + n->name[i].text, names[j]))
				k->tick[j] = n->name[i].address;
}

bool system_kernel_is_tick(struct system_kernel *k, uint64_t address)
{
	if (!k->ticks_known)
		find_ticks(k);
	for (size_t i = 0; i < BASE_COUNT(k->tick); i++)
		if (address && address == k->tick[i])
			return true;
	return false;
}

void system_kernel_name_sites(struct system_kernel *k)
{
	struct record_sink *sink = &k->converter->sink;
	const struct system_kernel_names *names = k->module ? kernel_names_load(k) : NULL;
	for (uint32_t site = 1; names && site <= sink->nr_sites && !record_sink_failed(sink);
		site++) {
		const struct record_site *at = &sink->site[site];
		uint64_t start;
		if (at->module != k->module)
			continue;
		const char *name = system_kernel_names_find(
			names, at->exact ? at->offset : at->offset - 1, &start);
		if (!name)
			continue;
		struct trace_record r = {.kind = TRACE_symbol,
			.u.symbol = {.site = site,
				.function = record_sink_text(sink, name, strlen(name)),
				.function_offset = start}};
		record_sink_put(sink, &r);
	}
}

void system_kernel_names_fini(struct system_kernel *k)
{
	if (!k->names)
		return;
	base_free(k->names->name);
	base_free(k->names->texts);
	base_free(k->names);
	k->names = NULL;
}
