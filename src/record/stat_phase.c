/* SPDX-License-Identifier: Apache-2.0 */
/* stat_phase.c - what threads said of their phases: the file in memory that they write. */
#include "counter/counter_priv.h"
#include "counter/phase.h"
#include "record/stat.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { NS_PER_S = 1000000000 };

struct phase_file *record_stat_phases_make(const struct record_stat_options *options, int *ret_fd)
{
	struct phase_file *file = MAP_FAILED;
	int fd = memfd_create("longpole-phases", MFD_CLOEXEC); /* others open /proc/PID/fd */
	if (fd >= 0 && !ftruncate(fd, sizeof *file))
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

void record_stat_phases_free(struct phase_file *file, int fd)
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

enum base_status record_stat_phases_read(
	const struct phase_file *file, struct record_stat *s, struct base_err *err)
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
		struct record_stat_phase *phase = &s->phase[s->nr_phases++];
		size_t room = PHASE_NAME_BYTES - slot.name;
		size_t length = strnlen(file->names + slot.name,
			room < RECORD_STAT_NAME - 1 ? room : RECORD_STAT_NAME - 1);
		*phase = (struct record_stat_phase){
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
	return BASE_OK;
}
