/* SPDX-License-Identifier: Apache-2.0 */
/*
 * phase.c - liblongpole-stat.so: what longpole_phase() calls when `longpole stat` runs the program.
 * It wraps nothing. A program without marks is left alone.
 */
#include "counter/counter_priv.h"
#include "counter/phase.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static struct phase_file *file;
static uint32_t nr_events; /* as the file said at first: it is shared */
static pthread_key_t thread_end;

/* A name's number (from 1) finds a thread's slot; the slot's index + 1. */
struct phase_thread {
	struct longpole_counter set;
	struct longpole_place *place;
	struct phase_slot *current;
	uint64_t entered_tsc, entered[PHASE_EVENTS_MAX];
	uint32_t slot[PHASE_NAMES_MAX + 1];
	uint32_t counted, nr_counted,
		index[PHASE_EVENTS_MAX]; /* of the set's events in the file's */
	int state;                       /* 0: new, 1: ready, 2: no more */
	int busy, entered_error;
};
static struct phase_thread ended = {.state = 2}; /* (of those without memory, too) */
/* TLS has next to no room for libraries that are loaded late. NULL: in no phase yet. */
static _Thread_local struct phase_thread *self;

/* ---- names ----------------------------------------------------------------------------------- */

/* The place's name in the file, once in a process: its number << 32 | where it begins. */
static uint64_t phase_introduce(struct longpole_place *place)
{
	size_t length = strnlen(place->name, 255) + 1;
	uint64_t id = 0;
	uint32_t number = __atomic_fetch_add(&file->nr_names, 1, __ATOMIC_RELAXED) + 1;
	uint32_t at = 0;
	if (number <= PHASE_NAMES_MAX)
		at = __atomic_fetch_add(&file->next_name, (uint32_t)length, __ATOMIC_RELAXED);
	if (number <= PHASE_NAMES_MAX && at <= PHASE_NAME_BYTES - length) {
		memcpy(file->names + at, place->name, length - 1);
		id = (uint64_t)number << 32 | at;
	} else {
		id = UINT64_MAX; /* no place for it */
	}
	__atomic_store_n(&place->id, id, __ATOMIC_RELEASE);
	return id;
}

static struct phase_slot *phase_slot_of(struct longpole_place *place)
{
	uint64_t id = __atomic_load_n(&place->id, __ATOMIC_ACQUIRE);
	if (!id)
		id = phase_introduce(place);
	if (id == UINT64_MAX || id >> 32 > PHASE_NAMES_MAX)
		return NULL;
	uint32_t *known = &self->slot[id >> 32];
	if (!*known) {
		uint32_t taken = __atomic_fetch_add(&file->next_slot, 1, __ATOMIC_RELAXED);
		if (taken >= PHASE_SLOTS_MAX) {
			__atomic_store_n(&file->next_slot, PHASE_SLOTS_MAX, __ATOMIC_RELAXED);
			return NULL;
		}
		struct phase_slot *slot = &file->slot[taken];
		slot->name = (uint32_t)id;
		slot->counted = self->counted;
		slot->tid = (uint32_t)syscall(SYS_gettid);
		slot->pid = (uint32_t)getpid();
		*known = taken + 1;
	}
	return &file->slot[*known - 1];
}

/* ---- a thread -------------------------------------------------------------------------------- */

/* What cannot be counted is left out, from the last one on. */
static void phase_open_set(void)
{
	enum longpole_event event[PHASE_EVENTS_MAX];
	uint32_t wanted = (1u << nr_events) - 1;
	for (;;) {
		uint32_t nr = 0;
		for (uint32_t i = 0; i < nr_events; i++)
			if (wanted & 1u << i) {
				self->index[nr] = i;
				event[nr++] = (enum longpole_event)file->event[i];
			}
		int error = nr ? longpole_counter_open(&self->set, event, nr, NULL)
			       : LONGPOLE_COUNTER_NOT_COUNTED;
		self->counted = error ? 0 : wanted;
		self->nr_counted = error ? 0 : nr;
		if (error != LONGPOLE_COUNTER_NOT_COUNTED || !nr)
			return;
		for (uint32_t i = 0; i < nr; i++)
			if (!self->set.event[i].backend)
				wanted &= ~(1u << self->index[i]);
	}
}

static void forget_thread(void)
{
	longpole_counter_close(&self->set);
	memset(self->slot, 0, sizeof self->slot);
	self->current = NULL;
	self->place = NULL;
	self->state = 0;
}

/* In a fork's child all of it is the parent's: begin again, in no phase. */
static int read_set(uint64_t *value)
{
	int error = self->nr_counted ? longpole_counter_read(&self->set, value) : 0;
	if (error == LONGPOLE_COUNTER_FORKED) {
		forget_thread();
		phase_open_set();
		self->state = 1;
		error = self->nr_counted ? longpole_counter_read(&self->set, value) : 0;
	}
	return error;
}

static void phase_leave(const uint64_t *value, uint64_t tsc, int error)
{
	struct phase_slot *slot = self->current;
	slot->wall_ticks += tsc - self->entered_tsc;
	if (error || self->entered_error)
		slot->failed++;
	else
		for (uint32_t i = 0; i < self->nr_counted; i++)
			slot->count[self->index[i]] += value[i] - self->entered[i];
	slot->open = 0;
	self->current = NULL;
}

static struct longpole_place *phase_enter(struct longpole_place *place)
{
	uint64_t value[PHASE_EVENTS_MAX];
	struct longpole_place *before;
	if (!self->state) {
		phase_open_set();
		self->state = 1;
		pthread_setspecific(thread_end, self);
	}
	int error = read_set(value);
	uint64_t tsc = longpole_rdtsc();
	if (self->current)
		phase_leave(value, tsc, error);
	before = self->place;
	self->place = place;
	self->current = place ? phase_slot_of(place) : NULL;
	if (place && !self->current)
		__atomic_fetch_add(&file->dropped, 1, __ATOMIC_RELAXED);
	if (!self->current)
		return before;
	self->current->entered++;
	self->current->open = 1;
	memcpy(self->entered, value, sizeof self->entered);
	self->entered_error = error;
	self->entered_tsc = tsc;
	return before;
}

static struct phase_thread *phase_begin_thread(void)
{
	int saved_errno = errno;
	void *memory = mmap(
		NULL, sizeof *self, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct phase_thread *none = NULL, *own = memory == MAP_FAILED ? &ended : memory;
	if (!__atomic_compare_exchange_n(
		    &self, &none, own, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED) &&
		own != &ended)
		munmap(own, sizeof *own); /* a signal handler was faster */
	errno = saved_errno;
	return self;
}

/* A handler's mark inside of another mark is dropped. */
static struct longpole_place *phase(struct longpole_place *place)
{
	struct phase_thread *own = self ? self : phase_begin_thread();
	struct longpole_place *before = own->place;
	if (own->state == 2)
		return NULL;
	if (self->busy) {
		__atomic_fetch_add(&file->dropped, 1, __ATOMIC_RELAXED);
		return before;
	}
	int saved_errno = errno;
	self->busy = 1;
	__atomic_fetch_add(&file->marks, 1, __ATOMIC_RELAXED);
	before = phase_enter(place);
	self->busy = 0;
	errno = saved_errno;
	return before;
}

static void phase_end_thread(void *argument)
{
	struct phase_thread *own = argument;
	if (own->state == 1)
		phase(NULL);
	own->state = 2;
	longpole_counter_close(&own->set);
	self = &ended;
	munmap(own, sizeof *own);
}

/* ---- loading --------------------------------------------------------------------------------- */

static const struct longpole_hooks hooks;
static void no_begin(struct longpole_place *place, uint64_t instance, uint64_t flags)
{
	(void)place, (void)instance, (void)flags;
}
static void no_end(struct longpole_place *place)
{
	(void)place;
}
static void no_state(struct longpole_place *place, uint64_t flags)
{
	(void)place, (void)flags;
}
static void no_queue(enum longpole_verb verb, struct longpole_place *place, uint64_t instance,
	uint64_t n, uint64_t flags)
{
	(void)verb, (void)place, (void)instance, (void)n, (void)flags;
}
static void no_identify(uint64_t connection)
{
	(void)connection;
}
static uint64_t no_id(void)
{
	return 0;
}
static void no_item(enum longpole_verb verb, struct longpole_place *place, uint64_t instance,
	uint64_t key, uint64_t n, uint64_t flags)
{
	(void)verb, (void)place, (void)instance, (void)key, (void)n, (void)flags;
}
static void no_queue_state(enum longpole_verb verb, struct longpole_place *place, uint64_t instance,
	uint64_t n, uint64_t flags, struct longpole_place *state)
{
	(void)verb, (void)place, (void)instance, (void)n, (void)flags, (void)state;
}
static void no_act(struct longpole_place *place, uint64_t instance)
{
	(void)place, (void)instance;
}

/* The annotations' verbs are there, and do nothing: we count. */
static const struct longpole_hooks hooks = {
	.bytes = sizeof hooks,
	.begin = no_begin,
	.end = no_end,
	.state = no_state,
	.queue = no_queue,
	.link = no_begin,
	.identify = no_identify,
	.get_id = no_id,
	.item = no_item,
	.act = no_act,
	.phase = phase,
	.queue_state = no_queue_state,
};

static bool phase_is_ours(const ElfW(Nhdr) * note, uintptr_t name)
{
	return note->n_type == LONGPOLE_NOTE_POINTER && note->n_descsz == 4 &&
	       note->n_namesz == sizeof LONGPOLE_NOTE_OWNER &&
	       memcmp((const void *)name, LONGPOLE_NOTE_OWNER, note->n_namesz) == 0;
}

/* One PT_NOTE segment: how many pointers to hooks it has; they are set when `set`. */
static int phase_walk_notes(uintptr_t at, uintptr_t end, bool set)
{
	int nr = 0;
	while (end > at && end - at >= sizeof(ElfW(Nhdr))) {
		const ElfW(Nhdr) *note = (const void *)at;
		uintptr_t name = at + sizeof *note;
		uintptr_t value = name + ((note->n_namesz + 3u) & ~3u);
		uintptr_t next = value + ((note->n_descsz + 3u) & ~3u);
		if (next > end || next < at)
			break;
		if (phase_is_ours(note, name)) {
			int32_t distance;
			memcpy(&distance, (const void *)value, sizeof distance);
			const struct longpole_hooks **pointer =
				(void *)(value + (uintptr_t)(intptr_t)distance);
			if (set)
				__atomic_store_n(pointer, &hooks, __ATOMIC_RELEASE);
			nr++;
		}
		at = next;
	}
	return nr;
}

struct visit {
	bool set;
	int nr;
};

static int phase_visit(struct dl_phdr_info *info, size_t size, void *argument)
{
	struct visit *v = argument;
	(void)size;
	for (unsigned i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
		uintptr_t at = info->dlpi_addr + segment->p_vaddr;
		if (segment->p_type == PT_NOTE)
			v->nr += phase_walk_notes(at, at + segment->p_memsz, v->set);
	}
	return 0;
}

static struct phase_file *phase_map_file(void)
{
	const char *path = secure_getenv(PHASE_ENVIRONMENT);
	int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
	struct stat st;
	if (fd < 0)
		return NULL;
	void *memory = MAP_FAILED;
	/* The recorder's number may be another program's by now, of another user. */
	if (!fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_uid == geteuid() &&
		fcntl(fd, F_GET_SEALS) == PHASE_SEALS &&
		st.st_size == (off_t)sizeof(struct phase_file))
		memory = mmap(
			NULL, sizeof(struct phase_file), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (memory == MAP_FAILED)
		return NULL;
	struct phase_file *mapped = memory;
	nr_events = __atomic_load_n(&mapped->nr_events, __ATOMIC_RELAXED);
	if (mapped->magic == PHASE_MAGIC && nr_events && nr_events <= PHASE_EVENTS_MAX)
		return mapped;
	munmap(memory, sizeof(struct phase_file));
	return NULL;
}

__attribute__((constructor)) static void begin(void)
{
	struct visit found = {false, 0};
	int saved_errno = errno;
	dl_iterate_phdr(phase_visit, &found);
	if (found.nr && !pthread_key_create(&thread_end, phase_end_thread)) {
		file = phase_map_file();
		found.set = true;
		if (file) {
			counter_clock_adopt(file->tick_hz);
			dl_iterate_phdr(phase_visit, &found);
		}
	}
	errno = saved_errno;
}

__attribute__((destructor)) static void end(void)
{
	if (file && self && self->state == 1)
		phase_end_thread(self);
}

/* AddressSanitizer as a library refuses to start behind another one. It bears us: we replace no
 * allocation. (A program's own function of this name is asked instead.) */
const char *__asan_default_options(void);
__attribute__((visibility("default"))) const char *__asan_default_options(void)
{
	return "verify_asan_link_order=0";
}
