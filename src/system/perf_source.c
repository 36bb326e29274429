/* SPDX-License-Identifier: Apache-2.0 */
/*
 * perf_source.c - tracepoints through perf_event's rings: what is left where BPF is refused.
 *
 * Each processor has one ring for all its tracepoints. A record becomes a slot, as BPF would have
 * written it; what only the kernel's side can find out (the file behind a descriptor, packets,
 * windows) is missing.
 */
#include "system/system.h"
#include "system/format.h"
#include "trace/syscalls.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum {
	PAGE_BYTES = 4096,
	PAGES_MIN = 16,
	FORMAT_BYTES = 1 << 14,
	FLAG_HARDIRQ = 0x08, /* common_flags */
	FLAG_SOFTIRQ = 0x10,
	FLAG_NMI = 0x40,
	COMMON_FLAGS_OFFSET = 2,
	PREEMPTED = 0x100, /* prev_state in the trace: TASK_REPORT_MAX */
};

/* One row a tracepoint: which slot it becomes. */
struct tracepoint {
	const char *group, *name;
	enum kernel_event_type type;
	enum system_level level;
	const char *field[SYSTEM_FORMAT_FIELDS_MAX];
	unsigned short context; /* enum kernel_context of an interrupt's own tracepoint */
	unsigned short vector;  /* ... unless field 0 says it */
};
#define REQUEST_FIELDS                                                                             \
	{                                                                                          \
		"ctx", "user_data", "req", "opcode", "res"                                         \
	}
static const struct tracepoint tracepoints[] = {
	{"sched", "sched_switch", KERNEL_switch, SYSTEM_LEVEL_sched,
		{"prev_pid", "prev_state", "next_pid"}, 0, 0},
	{"sched", "sched_waking", KERNEL_wake, SYSTEM_LEVEL_sched, {"pid"}, 0, 0},
	{"sched", "sched_wakeup_new", KERNEL_wake, SYSTEM_LEVEL_sched, {"pid"}, 0, 0},
	{"irq", "softirq_entry", KERNEL_context_begin, SYSTEM_LEVEL_full, {"vec"},
		KERNEL_IN_SOFTIRQ, 0},
	{"irq", "softirq_exit", KERNEL_context_end, SYSTEM_LEVEL_full, {"vec"}, KERNEL_IN_SOFTIRQ,
		0},
	{"irq", "softirq_raise", KERNEL_context_raise, SYSTEM_LEVEL_full, {"vec"}, 0, 0},
	{"irq", "irq_handler_entry", KERNEL_context_begin, SYSTEM_LEVEL_full, {"irq"},
		KERNEL_IN_IRQ, 0},
	{"irq", "irq_handler_exit", KERNEL_context_end, SYSTEM_LEVEL_full, {"irq"}, KERNEL_IN_IRQ,
		0},
	{"irq_vectors", "local_timer_entry", KERNEL_context_begin, SYSTEM_LEVEL_full, {NULL},
		KERNEL_IN_TIMER, 0},
	{"irq_vectors", "local_timer_exit", KERNEL_context_end, SYSTEM_LEVEL_full, {NULL},
		KERNEL_IN_TIMER, 0},
	{"io_uring", "io_uring_submit_req", KERNEL_ring_submit, SYSTEM_LEVEL_full, REQUEST_FIELDS,
		0, 0},
	{"io_uring", "io_uring_submit_sqe", KERNEL_ring_submit, SYSTEM_LEVEL_full, REQUEST_FIELDS,
		0, 0}, /* its name before 6.4 */
	{"io_uring", "io_uring_queue_async_work", KERNEL_ring_async, SYSTEM_LEVEL_full,
		REQUEST_FIELDS, 0, 0},
	{"io_uring", "io_uring_poll_arm", KERNEL_ring_arm, SYSTEM_LEVEL_full, REQUEST_FIELDS, 0, 0},
	{"io_uring", "io_uring_task_add", KERNEL_ring_ready, SYSTEM_LEVEL_full, REQUEST_FIELDS, 0,
		0},
	{"io_uring", "io_uring_complete", KERNEL_ring_complete, SYSTEM_LEVEL_full, REQUEST_FIELDS,
		0, 0},
	{"io_uring", "io_uring_cqring_wait", KERNEL_ring_wait, SYSTEM_LEVEL_full,
		{"ctx", "min_events"}, 0, 0},
	{"raw_syscalls", "sys_enter", KERNEL_call_begin, SYSTEM_LEVEL_full, {"id", "args"}, 0, 0},
	{"raw_syscalls", "sys_exit", KERNEL_call_end, SYSTEM_LEVEL_full, {"id", "ret"}, 0, 0},
};

struct ring { /* of one processor */
	int fd[BASE_COUNT(tracepoints)];
	struct perf_event_mmap_page *page;
	size_t data_bytes;
	uint32_t hard, soft; /* kernel_context << 16 | vector */
};

struct perf_state {
	struct system_format format[BASE_COUNT(tracepoints)]; /* id 0: not wanted, or not there */
	struct ring *ring;
	unsigned nr_rings;
	uint64_t nr_lost;
	uint32_t own_pid;
	uint8_t copy[UINT16_MAX + 1];
};

/* ---- one record ------------------------------------------------------------------------------ */

struct sample { /* PERF_SAMPLE_TID | TIME | CPU | RAW */
	uint32_t pid, tid;
	uint64_t time_ns;
	uint32_t cpu, reserved;
	uint32_t raw_bytes;
};

static uint32_t perf_source_context_of(const struct ring *r, uint8_t flags)
{
	if (flags & FLAG_NMI)
		return KERNEL_IN_NMI << 16 | KERNEL_VECTOR_UNKNOWN;
	if (flags & FLAG_HARDIRQ)
		return r->hard ? r->hard : KERNEL_IN_IRQ << 16 | KERNEL_VECTOR_UNKNOWN;
	if (flags & FLAG_SOFTIRQ)
		return r->soft ? r->soft : KERNEL_IN_SOFTIRQ << 16 | KERNEL_VECTOR_UNKNOWN;
	return 0;
}

static void set_context(struct kernel_slot *s, uint32_t context)
{
	s->shape = (unsigned char)(1 << 4 | context >> 16);
	s->vector = (unsigned short)context;
}

/* A record that begins or ends a context is the context's own. */
static void follow_context(
	struct ring *r, const struct tracepoint *tp, struct kernel_slot *s, uint64_t vector)
{
	uint32_t context = (uint32_t)tp->context << 16 |
			   (tp->field[0] ? (uint32_t)vector & 0xffff : tp->vector);
	uint32_t *where = tp->context == KERNEL_IN_SOFTIRQ ? &r->soft : &r->hard;
	set_context(s, context);
	s->a = tp->type == KERNEL_context_begin && where == &r->hard ? r->soft : 0;
	*where = tp->type == KERNEL_context_begin ? context : 0;
}

static uint64_t perf_source_argument(
	const struct system_format *f, const uint8_t *raw, size_t size, unsigned number)
{
	struct system_format at = *f;
	at.field[1].offset += (number - 1) * 8;
	at.field[1].size = number ? 8 : 0;
	return system_format_get(&at, 1, raw, size);
}

/* Which file a descriptor is cannot be known from here; times are not read from the program. */
static void fill_call(
	const struct system_format *f, const uint8_t *raw, size_t size, struct kernel_slot *s)
{
	const struct trace_syscall *c = trace_syscall_find(s->vector);
	uint64_t n = c->flags & TRACE_SYSCALL_TIME ? 0 : perf_source_argument(f, raw, size, c->n);
	if (c->flags & TRACE_SYSCALL_ADDR)
		s->a = perf_source_argument(f, raw, size, c->object);
	if (n >> 48)
		n = (1ull << 48) - 1;
	s->b = n | perf_source_argument(f, raw, size, c->op) << 48;
}

/* Of which file a request is cannot be known from here. */
static unsigned fill_request(
	const struct system_format *f, const uint8_t *raw, size_t size, struct kernel_slot *s)
{
	struct kernel_request q = {.request = system_format_get(f, 2, raw, size),
		.op = f->field[3].size ? (unsigned)system_format_get(f, 3, raw, size)
				       : KERNEL_REQUEST_OP_UNKNOWN,
		.result = (int)system_format_get(f, 4, raw, size)};
	s->a = system_format_get(f, 0, raw, size);
	s->b = system_format_get(f, 1, raw, size);
	s->shape = (unsigned char)(2 << 4 | (s->shape & 15));
	memcpy(s + 1, &q, sizeof q);
	return 2;
}

/* Slots; 0: of no use. */
static unsigned perf_source_fill(struct ring *r, const struct tracepoint *tp,
	const struct system_format *f, const uint8_t *raw, size_t size, const struct sample *sample,
	struct kernel_slot *s)
{
	uint64_t value[3];
	for (unsigned i = 0; i < BASE_COUNT(value); i++)
		value[i] = system_format_get(f, i, raw, size);
	set_context(s, perf_source_context_of(r, raw[COMMON_FLAGS_OFFSET]));
	switch (tp->type) {
	case KERNEL_switch: {
		uint64_t state = value[1];
		set_context(s, 0);
		s->tid = (uint32_t)value[0];
		s->a = (uint32_t)value[2];
		s->b = (state & (PREEMPTED - 1)) | (uint64_t)(!state || (state & PREEMPTED)) << 32;
		return 1;
	}
	case KERNEL_wake:
		s->a = (uint32_t)value[0];
		return 1;
	case KERNEL_context_begin:
	case KERNEL_context_end:
		follow_context(r, tp, s, value[0]);
		return 1;
	case KERNEL_context_raise:
		s->a = KERNEL_IN_SOFTIRQ | value[0] << 8;
		s->b = sample->cpu;
		return 1;
	case KERNEL_call_begin:
	case KERNEL_call_end:
		s->vector = (unsigned short)(value[0] & (KERNEL_CALLS_MAX - 1));
		s->shape = 1 << 4;
		if (trace_syscall_find(s->vector)->flags & TRACE_SYSCALL_SKIP)
			return 0;
		if (tp->type == KERNEL_call_begin)
			fill_call(f, raw, size, s);
		else
			s->a = value[1];
		return 1;
	case KERNEL_ring_submit:
	case KERNEL_ring_async:
	case KERNEL_ring_arm:
	case KERNEL_ring_ready:
	case KERNEL_ring_complete:
		return fill_request(f, raw, size, s);
	case KERNEL_ring_wait:
		s->a = value[0];
		s->b = value[1];
		return 1;
	default:
		return 0;
	}
}

/* Slots of a sample; 0: of no use. */
static unsigned perf_source_parse_sample(
	struct perf_state *p, struct ring *r, const uint8_t *at, size_t size, struct kernel_slot *s)
{
	struct sample sample;
	uint16_t id;
	if (size < sizeof sample)
		return 0;
	memcpy(&sample, at, sizeof sample);
	at += offsetof(struct sample, raw_bytes) + sizeof sample.raw_bytes;
	size -= offsetof(struct sample, raw_bytes) + sizeof sample.raw_bytes;
	if (sample.raw_bytes > size || sample.raw_bytes < 8)
		return 0;
	memcpy(&id, at, sizeof id);
	for (size_t i = 0; i < BASE_COUNT(tracepoints); i++) {
		if (p->format[i].id != id || !id)
			continue;
		*s = (struct kernel_slot){.time_ns = sample.time_ns,
			.tid = sample.tid,
			.type = (unsigned char)tracepoints[i].type};
		bool own = sample.pid == p->own_pid && tracepoints[i].type >= KERNEL_call_begin;
		return own ? 0
			   : perf_source_fill(r, &tracepoints[i], &p->format[i], at,
				     sample.raw_bytes, &sample, s);
	}
	return 0;
}

static unsigned perf_source_named(struct kernel_slot *s, const uint8_t *text, size_t size)
{
	size_t n = strnlen((const char *)text, size);
	s[1] = (struct kernel_slot){0};
	memcpy(&s[1], text, n < KERNEL_COMM_BYTES ? n : KERNEL_COMM_BYTES - 1);
	s->shape = 2 << 4;
	return 2;
}

/* Births, deaths and names: perf has records of its own for them. */
static unsigned perf_source_parse_other(struct perf_state *p, const struct perf_event_header *h,
	const uint8_t *at, size_t size, struct kernel_slot *s, uint64_t *ret_lost_ns)
{
	struct {
		uint32_t pid, tid;
		uint64_t time_ns;
		uint32_t cpu, reserved;
	} id;
	uint32_t word[4]; /* pid, parent's pid, tid, parent's tid; of comm: pid, tid */
	uint64_t lost[2];
	if (size < sizeof id + sizeof word)
		return 0;
	size -= sizeof id;
	memcpy(&id, at + size, sizeof id);
	memcpy(word, at, sizeof word);
	memcpy(lost, at, sizeof lost);
	*s = (struct kernel_slot){.time_ns = id.time_ns, .tid = id.tid, .shape = 1 << 4};
	switch (h->type) {
	case PERF_RECORD_FORK:
		s->type = KERNEL_fork;
		s->tid = word[3];
		s->a = word[2] | (uint64_t)word[0] << 32;
		s->b = word[1];
		return perf_source_named(s, (const uint8_t *)"", 0);
	case PERF_RECORD_EXIT:
		s->type = KERNEL_exit;
		s->tid = word[2];
		s->a = UINT64_MAX; /* not known */
		s->b = word[0];
		return 1;
	case PERF_RECORD_COMM:
		s->type = h->misc & PERF_RECORD_MISC_COMM_EXEC ? KERNEL_exec : KERNEL_comm;
		s->a = s->tid = word[1];
		s->b = word[0];
		return perf_source_named(s, at + 8, size - 8);
	case PERF_RECORD_LOST:
		p->nr_lost += lost[1];
		*ret_lost_ns = id.time_ns;
		return 0;
	default:
		return 0;
	}
}

/* ---- rings ----------------------------------------------------------------------------------- */

static void perf_source_copy_out(const struct ring *r, uint64_t from, void *to, size_t size)
{
	const uint8_t *data = (const uint8_t *)r->page + PAGE_BYTES;
	size_t at = (size_t)(from & (r->data_bytes - 1)), first = r->data_bytes - at;
	if (first > size)
		first = size;
	memcpy(to, data + at, first);
	memcpy((uint8_t *)to + first, data, size - first);
}

static enum base_status perf_source_read_ring(struct system_source *src, unsigned cpu)
{
	struct perf_state *p = src->state;
	struct ring *r = &p->ring[cpu];
	if (!r->page)
		return BASE_OK;
	uint64_t tail = r->page->data_tail,
		 head = __atomic_load_n(&r->page->data_head, __ATOMIC_ACQUIRE);
	enum base_status status = BASE_OK;
	unsigned percent = (unsigned)((head - tail) * 100 / r->data_bytes);
	if (percent > src->used_percent)
		src->used_percent = percent;
	system_order_compact(&src->order, cpu);
	while (status == BASE_OK && head - tail >= sizeof(struct perf_event_header)) {
		struct perf_event_header h;
		struct kernel_slot s[KERNEL_SLOTS_OF_EVENT_MAX];
		uint64_t lost_ns = 0;
		perf_source_copy_out(r, tail, &h, sizeof h);
		if (h.size < sizeof h || h.size > head - tail) {
			tail = head; /* cannot happen; do not loop */
			break;
		}
		perf_source_copy_out(r, tail + sizeof h, p->copy, h.size - sizeof h);
		tail += h.size;
		unsigned nr =
			h.type == PERF_RECORD_SAMPLE
				? perf_source_parse_sample(p, r, p->copy, h.size - sizeof h, s)
				: perf_source_parse_other(
					  p, &h, p->copy, h.size - sizeof h, s, &lost_ns);
		if (lost_ns) /* since the last that fitted */
			system_order_gap(&src->order, src->order.queue[cpu].newest_ns, lost_ns);
		if (nr)
			status = system_order_push(&src->order, cpu, s, nr);
	}
	__atomic_store_n(&r->page->data_tail, tail, __ATOMIC_RELEASE);
	return status;
}

static enum base_status perf_source_perf_read(struct system_source *src, uint64_t now_ns)
{
	struct perf_state *p = src->state;
	(void)now_ns;
	src->used_percent = 0;
	for (unsigned cpu = 0; cpu < p->nr_rings; cpu++) {
		enum base_status status = perf_source_read_ring(src, cpu);
		if (status != BASE_OK)
			return status;
	}
	src->nr_dropped = p->nr_lost;
	return BASE_OK;
}

/* ---- open ------------------------------------------------------------------------------------ */

static void perf_source_perf_close(struct system_source *src)
{
	struct perf_state *p = src->state;
	if (!p)
		return;
	for (unsigned i = 0; i < p->nr_rings; i++) {
		struct ring *r = &p->ring[i];
		if (r->page)
			munmap(r->page, PAGE_BYTES + r->data_bytes);
		for (size_t e = 0; e < BASE_COUNT(tracepoints); e++)
			if (r->fd[e] > 0)
				close(r->fd[e]);
	}
	base_free(p->ring);
	base_free(p);
	src->state = NULL;
}

/* The directory of tracefs; where it is not mounted, a mount of our own that nobody else sees. */
static int open_tracefs(void)
{
	static const char *const places[] = {"/sys/kernel/tracing", "/sys/kernel/debug/tracing"};
	for (size_t i = 0; i < BASE_COUNT(places); i++) {
		int fd = open(places[i], O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (fd >= 0 && !faccessat(fd, "events", F_OK, 0))
			return fd;
		if (fd >= 0)
			close(fd);
	}
	int fs = (int)syscall(SYS_fsopen, "tracefs", FSOPEN_CLOEXEC), mount = -1;
	if (fs >= 0 && !syscall(SYS_fsconfig, fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0))
		mount = (int)syscall(SYS_fsmount, fs, FSMOUNT_CLOEXEC, 0);
	if (fs >= 0)
		close(fs);
	return mount;
}

static bool read_format(int tracefs, const struct tracepoint *tp, struct system_format *ret)
{
	char path[128], text[FORMAT_BYTES];
	unsigned nr = 0;
	while (nr < SYSTEM_FORMAT_FIELDS_MAX && tp->field[nr])
		nr++;
	snprintf(path, sizeof path, "events/%s/%s/format", tp->group, tp->name);
	int fd = openat(tracefs, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	ssize_t n = read(fd, text, sizeof text - 1);
	close(fd);
	text[n > 0 ? n : 0] = 0;
	return system_format_parse(text, tp->field, nr, ret);
}

static int perf_source_open_event(uint32_t id, int cpu, bool leader)
{
	struct perf_event_attr attr = {.type = PERF_TYPE_TRACEPOINT,
		.size = sizeof attr,
		.config = id,
		.sample_type =
			PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU | PERF_SAMPLE_RAW,
		.sample_period = 1,
		.disabled = 1,
		.sample_id_all = 1,
		.task = leader,
		.comm = leader,
		.comm_exec = leader,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
		.watermark = 1,
		.wakeup_watermark = UINT32_MAX}; /* we poll */
	return (int)syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
}

/* 0, or errno. */
static int perf_source_open_ring(struct perf_state *p, struct ring *r, int cpu, uint64_t bytes)
{
	int leader = -1;
	for (size_t e = 0; e < BASE_COUNT(tracepoints); e++) {
		if (!p->format[e].id)
			continue;
		r->fd[e] = perf_source_open_event(p->format[e].id, cpu, leader < 0);
		if (r->fd[e] < 0)
			return errno;
		if (leader >= 0) {
			if (ioctl(r->fd[e], PERF_EVENT_IOC_SET_OUTPUT, leader))
				return errno;
			continue;
		}
		leader = r->fd[e];
		for (size_t pages = bytes / PAGE_BYTES; pages >= PAGES_MIN; pages /= 2) {
			void *map = mmap(NULL, PAGE_BYTES * (pages + 1), PROT_READ | PROT_WRITE,
				MAP_SHARED, leader, 0);
			if (map == MAP_FAILED)
				continue;
			r->page = map;
			r->data_bytes = PAGE_BYTES * pages;
			break;
		}
		if (!r->page)
			return ENOMEM;
	}
	return 0;
}

static bool perf_source_refuse(
	int error, const char *what, enum system_refusal *ret_refusal, char why[SYSTEM_WHY])
{
	*ret_refusal = error == EPERM || error == EACCES    ? SYSTEM_REFUSAL_privilege
		       : error == ENOMEM || error == EMFILE ? SYSTEM_REFUSAL_resources
							    : SYSTEM_REFUSAL_no_feature;
	snprintf(why, SYSTEM_WHY, "%s: %s", what, strerror(error));
	return false;
}

static bool perf_source_open_all(struct system_source *src, struct perf_state *p,
	const struct system_options *o, enum system_refusal *ret_refusal, char why[SYSTEM_WHY])
{
	uint64_t bytes = o->buffer_bytes ? o->buffer_bytes : SYSTEM_BUFFER_BYTES, size = PAGE_BYTES;
	while (size * 2 <= bytes / src->nr_processors)
		size *= 2;
	int tracefs = open_tracefs();
	for (size_t e = 0; tracefs >= 0 && e < BASE_COUNT(tracepoints); e++) {
		bool there = tracepoints[e].level <= o->level &&
			     read_format(tracefs, &tracepoints[e], &p->format[e]);
		if (!there)
			p->format[e].id = 0;
	}
	if (tracefs >= 0)
		close(tracefs);
	if (!p->format[0].id) {
		int error = geteuid() ? EACCES : ENOENT;
		return perf_source_refuse(
			error, "tracefs (events/sched/sched_switch)", ret_refusal, why);
	}
	for (unsigned cpu = 0; cpu < p->nr_rings; cpu++) {
		int error = perf_source_open_ring(p, &p->ring[cpu], (int)cpu, size);
		if (error && error != ENODEV) /* a processor that is off line */
			return perf_source_refuse(
				error, "perf_event_open of tracepoints", ret_refusal, why);
	}
	return true;
}

static void perf_start(struct system_source *src)
{
	struct perf_state *p = src->state;
	for (unsigned cpu = 0; cpu < p->nr_rings; cpu++)
		for (size_t e = 0; e < BASE_COUNT(tracepoints); e++)
			if (p->ring[cpu].fd[e] > 0)
				ioctl(p->ring[cpu].fd[e], PERF_EVENT_IOC_ENABLE, 0);
}

static bool perf_source_perf_open(struct system_source *src, const struct system_options *o,
	enum system_refusal *ret_refusal, char why[SYSTEM_WHY])
{
	struct perf_state *p = base_alloc(sizeof *p);
	if (p)
		p->ring = base_alloc(src->nr_processors * sizeof *p->ring);
	if (!p || !p->ring) {
		base_free(p);
		return perf_source_refuse(ENOMEM, "tracepoints", ret_refusal, why);
	}
	p->nr_rings = src->nr_processors;
	p->own_pid = (uint32_t)getpid();
	src->state = p;
	if (perf_source_open_all(src, p, o, ret_refusal, why))
		return true;
	perf_source_perf_close(src);
	return false;
}

const struct system_backend system_backend_perf = {.name = "perf",
	.open = perf_source_perf_open,
	.start = perf_start,
	.read = perf_source_perf_read,
	.close = perf_source_perf_close};
