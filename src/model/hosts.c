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

uint64_t model_pid_key(const struct model *m, uint32_t stream, uint64_t pid)
{
	return pid ? pid | (uint64_t)model_host_of(m, stream) << 32 : 0;
}

uint64_t model_pid_of(const struct model *m, const struct thread *t)
{
	return model_pid_key(m, t->stream, trace_def_process(m->defs, t->process)->pid);
}

static uint32_t stream_of(const struct model *m, uint32_t process)
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

void model_find_root(struct model *m)
{
	const char *command = m->opts->command;
	for (uint32_t i = 1; !m->root_process && command && *command && i < m->defs->nr_processes;
		i++) {
		const struct trace_process *p = &m->defs->processes[i];
		if (!is_same_command(trace_text_of(m->defs, p->command), command))
			continue;
		m->root_process = i;
		m->root_pid = model_pid_key(m, stream_of(m, i), p->pid);
		m->restarts = !m->opts->from_ns && !m->opts->start && !m->by_connection &&
			      !m->opts->process && !m->opts->turns;
		return;
	}
}
