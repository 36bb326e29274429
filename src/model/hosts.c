/* SPDX-License-Identifier: Apache-2.0 */
/* hosts.c - merged traces: what each machine numbers for itself, and whose program the path is of.
 */
#include "model/model_private.h"

#include <string.h>

uint32_t model_host_of(const struct model *m, uint32_t stream)
{
	const struct trace_defs *d = m->defs;
	if (d->nr_hosts <= 2)
		return 0;
	for (uint32_t i = 1; i < d->nr_hosts; i++)
		if (stream <= d->hosts[i].last_stream)
			return i;
	return 0;
}

uint64_t model_first_processor(const struct model *m, uint32_t stream)
{
	uint32_t host = model_host_of(m, stream);
	return host > 1 ? m->defs->hosts[host - 1].end_processor : 0;
}

uint64_t model_pid_key(const struct model *m, uint32_t stream, uint64_t pid)
{
	return pid ? pid | (uint64_t)model_host_of(m, stream) << 32 : 0;
}

uint64_t model_pid_of(const struct model *m, const struct thread *t)
{
	return model_pid_key(m, t->stream, trace_def_process(m->defs, t->process)->pid);
}

static uint32_t hosts_stream_of(const struct model *m, uint32_t process)
{
	for (uint32_t i = 1; i < m->defs->nr_streams; i++)
		if (m->defs->streams[i].process == process)
			return i;
	return 0;
}

/* However each was quoted. */
static bool is_same_command(const char *a, const char *b)
{
	static const char quotes[] = "'\"\\";
	for (;; a++, b++) {
		a += strspn(a, quotes);
		b += strspn(b, quotes);
		if (*a != *b || !*a)
			return *a == *b;
	}
}

/* An interpreter with it: "/bin/sh ./build.sh" for "./build.sh"? */
static bool runs_command(const char *line, const char *command)
{
	size_t nr_line = strlen(line), nr = strlen(command);
	if (nr_line <= nr)
		return false;
	const char *tail = line + nr_line - nr;
	return (tail[-1] == ' ' || tail[-1] == '/') && !strcmp(tail, command);
}

/* The process whose command line has the program's, too. */
static bool is_the_recorder(const struct model *m, uint32_t process)
{
	for (uint32_t i = 1; i < m->defs->nr_contexts; i++)
		if (m->defs->contexts[i].type == TRACE_CONTEXT_recorder &&
			trace_def_stream(m->defs, i)->process == process)
			return true;
	return false;
}

static uint32_t process_of_command(
	const struct model *m, const char *command, bool (*fits)(const char *, const char *))
{
	for (uint32_t i = 1; i < m->defs->nr_processes; i++)
		if (fits(trace_text_of(m->defs, m->defs->processes[i].command), command) &&
			!is_the_recorder(m, i))
			return i;
	return 0;
}

void model_find_root(struct model *m)
{
	const char *command = m->opts->command;
	if (m->run.root_process || !command || !*command)
		return;
	m->run.root_process = process_of_command(m, command, is_same_command);
	if (!m->run.root_process)
		m->run.root_process = process_of_command(m, command, runs_command);
	if (!m->run.root_process)
		return;
	m->run.root_pid = model_pid_key(m, hosts_stream_of(m, m->run.root_process),
		m->defs->processes[m->run.root_process].pid);
	m->part.restarts = !m->opts->from_ns && !m->opts->start && !m->follow.by_connection &&
			   !m->opts->process && !m->opts->turns;
}
