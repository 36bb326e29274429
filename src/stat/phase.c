/* SPDX-License-Identifier: Apache-2.0 */
/* phase.c - what threads said of their phases: the file in memory that they write. */
#include "counter/counter_priv.h"
#include "counter/phase.h"
#include "stat/stat.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { NS_PER_S = 1000000000 };

struct phase_file *stat_phases_make(const struct stat_options *options, int *ret_fd)
{
	struct phase_file *file = MAP_FAILED;
	int fd = memfd_create(
		"longpole-phases", MFD_CLOEXEC | MFD_ALLOW_SEALING); /* others open /proc/PID/fd */
	if (fd >= 0 && !ftruncate(fd, sizeof *file) && !fcntl(fd, F_ADD_SEALS, PHASE_SEALS))
		file = mmap(NULL, sizeof *file, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (file == MAP_FAILED) {
		if (fd >= 0)
			close(fd);
		*ret_fd = -1;
		return NULL;
	}
	file->magic = PHASE_MAGIC;
	file->event[PHASE_EVENT_TICKS] = LONGPOLE_TICKS;
	file->event[PHASE_EVENT_SWITCHES] = LONGPOLE_SWITCHES;
	file->event[PHASE_EVENT_RUNQUEUE] = LONGPOLE_RUNQUEUE_NS;
	file->tick_hz = longpole_counter_tick_hz();
	file->nr_events = PHASE_EVENT_MORE;
	for (size_t i = 0; i < options->nr_events; i++)
		file->event[file->nr_events++] = options->event[i];
	if (options->kernel_time && file->nr_events < PHASE_EVENTS_MAX)
		file->event[file->nr_events++] = LONGPOLE_KERNEL_NS;
	*ret_fd = fd;
	return file;
}

void stat_phases_free(struct phase_file *file, int fd)
{
	if (file)
		munmap(file, sizeof *file);
	if (fd >= 0)
		close(fd);
}

static uint64_t to_ns(uint64_t ticks, uint64_t tick_hz)
{
	return tick_hz ? (uint64_t)((unsigned __int128)ticks * NS_PER_S / tick_hz) : 0;
}

static uint64_t phase_rest(uint64_t all, uint64_t less)
{
	return all > less ? all - less : 0;
}

/* So that the phases of a thread are in sum what it did: before its first mark, at its end, in a
 * stay without an end. */
static enum base_status add_rest(
	struct stat_result *s, const struct stat_thread *t, size_t nr_marked, struct base_err *err)
{
	struct stat_phase sum = {0};
	for (size_t i = 0; i < nr_marked; i++) {
		const struct stat_phase *p = &s->phase[i];
		if (p->pid != t->pid || p->tid != t->tid)
			continue;
		sum.entered += p->entered;
		sum.wall_ns += p->wall_ns;
		sum.task_ns += p->task_ns;
		for (size_t k = 0; k < BASE_COUNT(sum.count); k++)
			sum.count[k] += p->count[k];
	}
	if (!sum.entered || t->missed)
		return BASE_OK;
	if (base_grow(&s->phase, &s->phases_capacity, s->nr_phases + 1, sizeof *s->phase) !=
		BASE_OK)
		return base_fail(err, BASE_ERR_NOMEM, "out of memory for phases");
	struct stat_phase *p = &s->phase[s->nr_phases++];
	*p = (struct stat_phase){.pid = t->pid,
		.tid = t->tid,
		.name = "(in no phase)",
		.rest = true,
		.wall_ns = phase_rest(t->end_ns - t->begin_ns, sum.wall_ns),
		.task_ns = phase_rest(t->counts.task_ns, sum.task_ns),
		.counted = 1u << PHASE_EVENT_TICKS | 1u << PHASE_EVENT_SWITCHES |
			   1u << PHASE_EVENT_RUNQUEUE};
	p->count[PHASE_EVENT_SWITCHES] =
		phase_rest(t->counts.voluntary + t->counts.forced, sum.count[PHASE_EVENT_SWITCHES]);
	p->count[PHASE_EVENT_RUNQUEUE] =
		phase_rest(t->counts.runqueue_ns, sum.count[PHASE_EVENT_RUNQUEUE]);
	return BASE_OK;
}

enum base_status stat_phases_read(
	const struct phase_file *file, struct stat_result *s, struct base_err *err)
{
	uint32_t nr = file->next_slot < PHASE_SLOTS_MAX ? file->next_slot : PHASE_SLOTS_MAX;
	s->marks = file->marks;
	s->dropped_marks = file->dropped;
	for (uint32_t i = 0; i < nr; i++) {
		struct phase_slot slot;
		memcpy(&slot, &file->slot[i], sizeof slot);
		if (!slot.pid || slot.name >= PHASE_NAME_BYTES || !slot.entered)
			continue;
		if (base_grow(&s->phase, &s->phases_capacity, s->nr_phases + 1, sizeof *s->phase) !=
			BASE_OK)
			return base_fail(err, BASE_ERR_NOMEM, "out of memory for phases");
		struct stat_phase *phase = &s->phase[s->nr_phases++];
		size_t room = PHASE_NAME_BYTES - slot.name;
		size_t length = strnlen(
			file->names + slot.name, room < STAT_NAME - 1 ? room : STAT_NAME - 1);
		*phase = (struct stat_phase){
			.pid = (pid_t)slot.pid,
			.tid = (pid_t)slot.tid,
			.entered = slot.entered,
			.wall_ns = to_ns(slot.wall_ticks, file->tick_hz),
			.task_ns = to_ns(slot.count[PHASE_EVENT_TICKS], file->tick_hz),
			.counted = slot.counted,
			.open = slot.open != 0,
			.failed = slot.failed != 0,
		};
		memcpy(phase->name, file->names + slot.name, length);
		memcpy(phase->count, slot.count, sizeof phase->count);
	}
	enum base_status status = BASE_OK;
	size_t nr_marked = s->nr_phases;
	for (size_t i = 0; status == BASE_OK && i < s->nr_threads && nr_marked; i++)
		status = add_rest(s, &s->thread[i], nr_marked, err);
	return status;
}
