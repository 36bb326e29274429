/* SPDX-License-Identifier: Apache-2.0 */
/* tally.c - tables that the program's threads counted in become records of their streams.
 */
#include "session/tally.h"
#include "os/clock.h"
#include "ring/calls.h"
#include "ring/tally.h"
#include "trace/enums.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { DISK_TABLES = 128 }; /* on a disk all space must be there before it is written */

/* ---- making ---------------------------------------------------------------------------------- */

/* What the program is told of its events. */
static void tell_events(struct ring_head *head, const struct system_hardware *events)
{
	for (unsigned i = 0; i < events->nr; i++)
		head->event[i] = (struct ring_event){
			.type = events->event[i]->type, .config = events->event[i]->config};
	head->nr_events = events->nr;
	head->event_modes =
		events->has_kernel ? 1u << TALLY_USER | 1u << TALLY_KERNEL : 1u << TALLY_USER;
	head->events_by_call = events->has_two_pmus;
}

/* ... and what the head of a ring says that was left: of events that there are. */
static struct system_hardware events_of(const struct ring_head *copy)
{
	struct system_hardware events = {.has_kernel = copy->event_modes >> TALLY_KERNEL & 1};
	for (uint32_t i = 0; i < copy->nr_events && i < RING_EVENTS; i++) {
		events.event[i] = system_hardware_of(copy->event[i].type, copy->event[i].config);
		if (!events.event[i])
			return (struct system_hardware){.nr = 0};
		events.nr++;
	}
	return events;
}

enum base_status session_tally_create(struct session_ring *r, uint32_t mask,
	const struct system_hardware *events, struct base_err *err)
{
	if (events)
		r->events = *events;
	bool in_memory = !strncmp(r->path, "/dev/shm/", 9);
	uint32_t nr = in_memory ? TALLY_TABLES : DISK_TABLES;
	size_t before = r->size_bytes, size_bytes = before + (size_t)tally_bytes(nr, r->events.nr);
	int fd = open(r->path, O_RDWR | O_CLOEXEC);
	int refused = fd < 0 ? errno : 0;
	if (!refused && ftruncate(fd, (off_t)size_bytes))
		refused = errno;
	if (!refused && !in_memory)
		refused = posix_fallocate(fd, 0, (off_t)size_bytes);
	void *map = MAP_FAILED;
	if (!refused) {
		map = mmap(NULL, size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		refused = map == MAP_FAILED ? errno : 0;
	}
	if (fd >= 0)
		close(fd);
	if (refused)
		return base_fail_errno(err, refused, "cannot make tables in %s", r->path);
	size_t blocks = (size_t)(r->blocks - (uint8_t *)r->head);
	munmap(r->head, before);
	r->head = map;
	r->blocks = (uint8_t *)map + blocks;
	r->size_bytes = size_bytes;
	r->head->tables_offset = before;
	r->head->tally_mask = mask;
	r->all_held = mask == TALLY_ALL;
	tell_events(r->head, &r->events);
	r->head->nr_tables = nr;
	r->nr_tables = nr;
	r->tables_offset = before;
	return BASE_OK;
}

void session_tally_open(struct session_ring *r)
{
	struct ring_head copy = *r->head;
	if (!copy.nr_tables || !tally_layout_fits(&copy, r->size_bytes))
		return;
	r->tables_offset = copy.tables_offset;
	r->nr_tables = copy.nr_tables;
	r->all_held = copy.tally_mask == TALLY_ALL;
	r->events = events_of(&copy);
}

/* ---- reading: the program may have written anything ------------------------------------------ */

struct reader {
	struct record_converter *c;
	struct record_thread *t;
	bool has_kernel;
	const struct system_hardware *events;
};

static void tally_put(const struct reader *r, struct trace_record rec)
{
	rec.time_ns = r->t->last_ns;
	record_thread_put(r->c, r->t, &rec);
}

/* Standard deviation of the sample, greater by as much as weights make a mean less sure. */
static uint64_t deviation(const struct tally_entry *e)
{
	double nr = (double)e->n[TALLY_hold_nr];
	if (nr < 1 || !isfinite(e->squares))
		return 0;
	double mean = (double)e->n[TALLY_hold_ns] / nr, variance = e->squares / nr - mean * mean;
	variance *= (double)e->weight_squares / nr;
	return variance > 0 && variance < 1e36 ? (uint64_t)llround(sqrt(variance)) : 0;
}

static void put_cond(const struct reader *r, const struct tally_entry *e)
{
	uint32_t object = record_image_object(&r->c->world, r->t->image, e->key);
	tally_put(r, (struct trace_record){.kind = TRACE_cond_count,
			     .u.cond_count = {.object = object,
				     .waits = e->n[TALLY_waits],
				     .timeouts = e->n[TALLY_timeouts],
				     .signals = e->n[TALLY_signals],
				     .broadcasts = e->n[TALLY_broadcasts],
				     .wait_ns = e->n[TALLY_cond_wait_ns]}});
	if (e->site)
		tally_put(r, (struct trace_record){.kind = TRACE_cond_site,
				     .u.cond_site = {.object = object,
					     .site = record_image_site(
						     &r->c->world, r->t->image, e->site)}});
}

/* Of functions that take next to nothing: less the clock's own time. */
static uint64_t not_negative(uint64_t sum)
{
	return (int64_t)sum > 0 ? sum : 0;
}

static uint32_t event_name(const struct reader *r, unsigned i)
{
	const char *name = r->events->event[i]->name;
	return record_sink_text(&r->c->sink, name, strlen(name));
}

static void put_lock_events(
	const struct reader *r, uint32_t object, uint32_t site, const struct tally_events *of)
{
	const struct tally_event_sums *sums[] = {&of->sampled, &of->special};
	for (unsigned taking = 0; taking < BASE_COUNT(sums); taking++)
		for (unsigned mode = 0; mode < TALLY_MODES; mode++) {
			uint64_t nr = sums[taking]->nr[mode];
			for (unsigned i = 0; nr && i < r->events->nr; i++)
				tally_put(
					r, (struct trace_record){.kind = TRACE_lock_event,
						   .u.lock_event = {.object = object,
							   .site = site,
							   .event = event_name(r, i),
							   .in_kernel = mode,
							   .taking = taking,
							   .nr = nr,
							   .count = not_negative(
								   sums[taking]->count[mode][i])}});
		}
}

static void tally_put_lock(
	const struct reader *r, const struct tally_entry *e, const struct tally_events *events)
{
	uint32_t object = record_image_object(&r->c->world, r->t->image, e->key);
	uint32_t site = record_image_site(&r->c->world, r->t->image, e->site);
	tally_put(r, (struct trace_record){.kind = TRACE_lock_count,
			     .u.lock_count = {.object = object,
				     .site = site,
				     .acquired = e->n[TALLY_acquired],
				     .shared = e->n[TALLY_shared],
				     .retaken = e->n[TALLY_retaken],
				     .contended = e->n[TALLY_contended],
				     .failed = e->n[TALLY_failed]}});
	if (e->n[TALLY_wait_nr])
		tally_put(r, (struct trace_record){.kind = TRACE_lock_waits,
				     .u.lock_waits = {.object = object,
					     .site = site,
					     .nr = e->n[TALLY_wait_nr],
					     .total_ns = e->n[TALLY_wait_ns],
					     .max_ns = e->n[TALLY_wait_max_ns]}});
	if (e->n[TALLY_hold_nr])
		tally_put(r, (struct trace_record){.kind = TRACE_lock_holds,
				     .u.lock_holds = {.object = object,
					     .site = site,
					     .nr = e->n[TALLY_hold_nr],
					     .total_ns = e->n[TALLY_hold_ns],
					     .max_ns = e->n[TALLY_hold_max_ns],
					     .deviation_ns = deviation(e)}});
	if (events)
		put_lock_events(r, object, site, events);
}

/* ---- library calls --------------------------------------------------------------------------- */

static const struct {
	const char *name;
	enum trace_call category;
	enum calls_timing timing;
} functions[CALLS_NR] = {
	[CALLS_none] = {"", TRACE_CALL_other, TIMING_often},
#define CALL(category, timing, result, name, parameters, arguments, bytes)                         \
	[CALLS_##name] = {#name, TRACE_CALL_##category, TIMING_##timing},
#define CALL_VOID(category, timing, name, parameters, arguments)                                   \
	[CALLS_##name] = {#name, TRACE_CALL_##category, TIMING_##timing},
#define CALL_OWN(category, timing, name)                                                           \
	[CALLS_##name] = {#name, TRACE_CALL_##category, TIMING_##timing},
#include "ring/calls.def"
};

static void put_call_events(
	const struct reader *r, uint32_t function, const struct tally_events *of)
{
	for (unsigned mode = 0; mode < TALLY_MODES; mode++) {
		uint64_t nr = of->sampled.nr[mode], special = of->special.nr[mode];
		for (unsigned i = 0; (nr || special) && i < r->events->nr; i++)
			tally_put(r,
				(struct trace_record){.kind = TRACE_call_event,
					.u.call_event = {.function = function,
						.event = event_name(r, i),
						.in_kernel = mode,
						.nr = nr,
						.count = not_negative(of->sampled.count[mode][i]),
						.special_nr = special,
						.special_count =
							not_negative(of->special.count[mode][i])}});
	}
}

/* (A thread's tables each have what there was until they were left: the greatest counts.) */
static void put_thread_events(const struct reader *r, const struct tally_table *t)
{
	for (unsigned mode = 0; mode < TALLY_MODES; mode++)
		for (unsigned i = 0; t->running_ns[mode] && i < r->events->nr; i++)
			tally_put(r, (struct trace_record){.kind = TRACE_thread_event,
					     .u.thread_event = {.event = event_name(r, i),
						     .in_kernel = mode,
						     .count = t->event_count[mode][i],
						     .enabled_ns = t->enabled_ns[mode],
						     .running_ns = t->running_ns[mode]}});
}

static void tally_put_call(
	const struct reader *r, const struct tally_entry *e, const struct tally_events *events)
{
	struct record_sink *sink = &r->c->sink;
	unsigned function = CALLS_FUNCTION(e->key), inside = CALLS_CALLER(e->key);
	if (!function || function >= CALLS_NR || inside >= CALLS_NR)
		return;
	const char *name = functions[function].name, *outer = functions[inside].name;
	uint32_t id = record_sink_text(sink, name, strlen(name));
	bool may_sleep = functions[function].timing & (CALLS_LOCK | CALLS_STREAM);
	tally_put(r,
		(struct trace_record){.kind = TRACE_call_count,
			.u.call_count = {.function = id,
				.inside = inside ? record_sink_text(sink, outer, strlen(outer)) : 0,
				.site = record_image_site(&r->c->world, r->t->image, e->site),
				.category = functions[function].category,
				.calls = e->n[TALLY_calls],
				.bytes = e->n[TALLY_bytes]}});
	if (e->failed)
		tally_put(r,
			(struct trace_record){.kind = TRACE_call_failed,
				.u.call_failed = {
					.function = id, .nr = e->failed, .error = e->last_error}});
	if (e->n[TALLY_timed])
		tally_put(r, (struct trace_record){.kind = TRACE_call_time,
				     .u.call_time = {.function = id,
					     .nr = e->n[TALLY_timed],
					     .total_ns = not_negative(e->n[TALLY_timed_ns]),
					     .max_ns = e->n[TALLY_call_max_ns],
					     .cpu_nr = may_sleep ? 0 : e->n[TALLY_cpu_nr],
					     .cpu_ns = may_sleep ? 0 : e->n[TALLY_cpu_ns]}});
	if (e->n[TALLY_special_nr])
		tally_put(r, (struct trace_record){.kind = TRACE_call_special,
				     .u.call_special = {.function = id,
					     .nr = e->n[TALLY_special_nr],
					     .total_ns = e->n[TALLY_special_ns],
					     .waits = may_sleep}});
	if (may_sleep && e->n[TALLY_cpu_nr])
		tally_put(r, (struct trace_record){.kind = TRACE_call_special_cpu,
				     .u.call_special_cpu = {.function = id,
					     .nr = e->n[TALLY_cpu_nr],
					     .cpu_ns = e->n[TALLY_cpu_ns]}});
	if (r->has_kernel && (e->n[TALLY_timed] || e->n[TALLY_special_nr]))
		tally_put(r, (struct trace_record){.kind = TRACE_call_kernel,
				     .u.call_kernel = {.function = id,
					     .nr = e->n[TALLY_timed],
					     .kernel_ns = e->n[TALLY_kernel_ns],
					     .special_nr = e->n[TALLY_special_nr],
					     .special_kernel_ns = e->n[TALLY_special_kernel_ns]}});
	if (events)
		put_call_events(r, id, events);
}

static void put_bins(const struct reader *r, uint64_t what, const uint64_t *bin)
{
	for (unsigned i = 0; i < TALLY_BINS; i++)
		if (bin[i])
			tally_put(r, (struct trace_record){.kind = TRACE_lock_bin,
					     .u.lock_bin = {.what = what, .bin = i, .n = bin[i]}});
}

static bool is_used(const struct tally_entry *e)
{
	for (unsigned i = 0; i < TALLY_LOCK_FIELDS; i++)
		if (e->n[i])
			return true;
	return false;
}

/* What is beside the tag (TALLY_ALL): of a lock whose holds were all timed nobody has to estimate
 * how far they were from their mean. */
static void add_held(
	struct tally_entry *e, const struct tally_held *held, const struct os_clock *clock)
{
	uint64_t max_ns = os_clock_ns(clock, held->max_ticks);
	e->n[TALLY_hold_nr] += held->nr;
	e->n[TALLY_hold_ns] += os_clock_ns(clock, held->ticks);
	if (max_ns > e->n[TALLY_hold_max_ns])
		e->n[TALLY_hold_max_ns] = max_ns;
	e->squares = 0;
}

static void read_table(struct record_converter *c, const struct tally_table *table,
	const struct tally_tag *tag, const struct tally_entry *entry,
	const struct tally_events *events, const struct session_ring *ring, uint64_t now_ns)
{
	bool all_held = ring->all_held;
	struct tally_table head = *table;
	if (!head.image)
		return;
	struct reader r = {c,
		record_converter_thread_of(c, head.image, head.parent_image, head.pid, head.tid,
			head.ids, head.thread),
		head.has_kernel != 0, &ring->events};
	if (!r.t)
		return;
	if (!r.t->started)
		record_thread_start(c, r.t, now_ns);
	for (size_t i = 0; i < TALLY_ENTRIES; i++) {
		struct tally_entry e = entry[i];
		uint64_t type = (e.key & ~RING_OBJECT_SHARED) >> RING_OBJECT_TYPE_SHIFT;
		bool is_lock = type == TRACE_OBJECT_mutex || type == TRACE_OBJECT_rwlock ||
			       type == TRACE_OBJECT_spin;
		if (is_lock)
			e.n[TALLY_acquired] = tally_acquired(e.n[TALLY_acquired], tag[i].turn);
		if (is_lock && all_held && i + 1 < TALLY_ENTRIES) {
			struct tally_held held;
			memcpy(&held, &tag[i + 1], sizeof held);
			add_held(&e, &held, c->clock);
		}
		if (!e.key || !is_used(&e))
			continue;
		if (e.key & CALLS_KEY && !type)
			tally_put_call(&r, &e, events ? &events[i] : NULL);
		else if (type == TRACE_OBJECT_cond || type == TRACE_OBJECT_semaphore)
			put_cond(&r, &e);
		else if (is_lock)
			tally_put_lock(&r, &e, events ? &events[i] : NULL);
	}
	put_thread_events(&r, &head);
	put_bins(&r, 0, head.wait_bin);
	put_bins(&r, 1, head.hold_bin);
	if (all_held)
		tally_put(&r, (struct trace_record){.kind = TRACE_lock_held,
				      .u.lock_held = {
					      .held_ns = os_clock_ns(c->clock, head.held_ticks)}});
	if (head.full)
		tally_put(&r, (struct trace_record){
				      .kind = TRACE_lock_full, .u.lock_full = {.n = head.full}});
}

/* Its pages, and with them what it says. */
static void tally_clear(void *page, size_t bytes)
{
	if (madvise(page, bytes, MADV_REMOVE))
		memset(page, 0, bytes);
}

void session_tally_drain(
	struct session_ring *r, struct record_converter *c, uint64_t horizon, bool final)
{
	uint8_t *tables = (uint8_t *)r->head + r->tables_offset;
	uint32_t *state = (uint32_t *)(void *)tables;
	for (uint32_t i = 0; i < r->nr_tables && !record_sink_failed(&c->sink); i++) {
		uint32_t is = __atomic_load_n(&state[i], __ATOMIC_ACQUIRE);
		struct tally_table *table = (void *)(tables + tally_table_offset(r->nr_tables, i));
		struct tally_tag *tag = (void *)(tables + tally_tags_offset(r->nr_tables, i));
		struct tally_entry *entry =
			(void *)(tables + tally_entries_offset(r->nr_tables, i));
		struct tally_events *events =
			r->events.nr ? (void *)(tables + tally_events_offset(r->nr_tables, i))
				     : NULL;
		if (is == TALLY_FREE || (is != TALLY_DONE && !final))
			continue;
		if (!final && table->end_tsc - c->clock->tsc_origin > horizon)
			continue;
		/* (what lies at an address is asked for then) */
		uint64_t end_tsc = table->end_tsc;
		c->world.now_ns = end_tsc > c->clock->tsc_origin
					  ? os_clock_ns(c->clock, end_tsc - c->clock->tsc_origin)
					  : UINT64_MAX;
		read_table(c, table, tag, entry, events, r, os_clock_ns(c->clock, horizon));
		if (final)
			continue;
		tally_clear(table, sizeof *table);
		tally_clear(tag, TALLY_TAG_BYTES);
		tally_clear(entry, TALLY_ENTRY_BYTES);
		if (events)
			tally_clear(events, TALLY_EVENT_BYTES);
		__atomic_store_n(&state[i], TALLY_FREE, __ATOMIC_RELEASE);
	}
}

/* ---- the floor ------------------------------------------------------------------------------- */

enum { FLOOR_ROUNDS = 12, FLOOR_TIMES = 1000 };

/* In a thread of its own: glibc takes locks without atomic operations before there is a second one.
 */
static void *measure_floor(void *floor_)
{
	struct session_lock_floor *floor = floor_;
	pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	uint64_t bare = UINT64_MAX, stamps = UINT64_MAX;
	volatile uint64_t stamp;
	for (unsigned round = 0; round < FLOOR_ROUNDS; round++) {
		uint64_t begin = os_time_ns(CLOCK_MONOTONIC_RAW);
		for (unsigned i = 0; i < FLOOR_TIMES; i++) {
			pthread_mutex_lock(&lock);
			pthread_mutex_unlock(&lock);
		}
		uint64_t middle = os_time_ns(CLOCK_MONOTONIC_RAW);
		for (unsigned i = 0; i < FLOOR_TIMES; i++) {
			pthread_mutex_lock(&lock);
			stamp = os_tsc();
			stamp = os_tsc();
			pthread_mutex_unlock(&lock);
		}
		uint64_t end = os_time_ns(CLOCK_MONOTONIC_RAW);
		bare = middle - begin < bare ? middle - begin : bare;
		stamps = end - middle < stamps ? end - middle : stamps;
	}
	(void)stamp;
	*floor =
		(struct session_lock_floor){bare * 1000 / FLOOR_TIMES, stamps * 1000 / FLOOR_TIMES};
	return NULL;
}

struct session_lock_floor session_lock_floor_measure(void)
{
	struct session_lock_floor floor = {0};
	pthread_t thread;
	if (!pthread_create(&thread, NULL, measure_floor, &floor))
		pthread_join(thread, NULL);
	return floor;
}

void session_lock_floor_write(
	struct record_converter *c, const struct session_lock_floor *floor, const char *mode)
{
	for (size_t i = 0; i < c->nr_threads; i++) {
		struct reader r = {.c = c, .t = c->thread[i]};
		if (!r.t->started)
			continue;
		tally_put(&r, (struct trace_record){.kind = TRACE_lock_floor,
				      .u.lock_floor = {.mode = record_sink_text(
							       &c->sink, mode, strlen(mode)),
					      .bare_ps = floor->bare_ps,
					      .stamps_ps = floor->stamps_ps}});
		return;
	}
}
