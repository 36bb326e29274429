/* SPDX-License-Identifier: Apache-2.0 */
/* perf.c - perf_event buffers of all processors, read in time order. */
#include "system/perf.h"
#include "os/proc.h"
#include "system/perf_own.h"

#include <errno.h>
#include <fcntl.h>
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
	BUFFER_PAGES =
		128, /* 516 KiB a processor with its head page: what users get without privilege */
	BUFFER_PAGES_WIDE = 512, /* for everybody's events, of which there may be many more */
	BUFFER_PAGES_MIN = 4,
	BUFFER_PAGES_FAULTS = 8, /* some 400: of those that wait for a disk */
	CPUS_MAX = 4096,
};

/* What every record that is not a sample ends with: PERF_SAMPLE_TID | TIME | CPU. */
struct sample_id {
	uint32_t pid, tid;
	uint64_t time_ns;
	uint32_t cpu, reserved;
};

/* Of the stack of each sample: what ordinary programs' callers are in; deeper ones are lost. Less
 * where the buffer is small: it is full of these pieces. Each takes 1 us (bench/sample_cost.c). */
enum { STACK_BYTES = 2048, STACK_BYTES_WIDE = 4096, STACK_BYTES_FRAMED = 8 };
#ifdef __x86_64__
/* rbx, rbp, rsp, rip, r10, r12 to r15, by <asm/perf_regs.h>: struct record_user_state's order */
static const uint64_t user_registers = 1u << 1 | 7u << 6 | 1u << 18 | 15u << 20;
#else
static const uint64_t user_registers = 0;
#endif
enum { USER_REGISTERS = 9 };

/* ---- one record ------------------------------------------------------------------------------ */

/* What follows the callers: PERF_SAMPLE_REGS_USER | STACK_USER. */
static void perf_parse_user(const uint8_t *p, const uint8_t *end, struct record_user_state *ret)
{
	uint64_t abi, size, used;
	size_t nr = offsetof(struct record_user_state, stack);
	_Static_assert(offsetof(struct record_user_state, stack) == USER_REGISTERS * 8, "in order");
	if ((size_t)(end - p) < sizeof abi + nr + sizeof size)
		return;
	memcpy(&abi, p, sizeof abi);
	if (abi != PERF_SAMPLE_REGS_ABI_64)
		return; /* of 32 bits, or a thread of the kernel's */
	p += sizeof abi;
	memcpy(ret, p, nr);
	p += nr;
	memcpy(&size, p, sizeof size);
	p += sizeof size;
	if (!size || size > (size_t)(end - p) || (size_t)(end - p) - size < sizeof used)
		return;
	memcpy(&used, p + size, sizeof used);
	ret->stack = p;
	ret->stack_bytes = used < size ? used : size;
}

static void perf_parse_sample(const uint8_t *p, const uint8_t *end, struct system_perf_record *ret)
{
	struct {
		uint64_t ip;
		uint32_t pid, tid;
		uint64_t time_ns;
		uint32_t cpu, reserved;
		uint64_t nr;
	} s;
	struct record_event *e = &ret->event;
	if ((size_t)(end - p) < sizeof s)
		return;
	memcpy(&s, p, sizeof s);
	p += sizeof s;
	if (s.nr > (size_t)(end - p) / 8)
		return;
	*e = (struct record_event){.time_ns = s.time_ns,
		.kind = RECORD_EVENT_sample,
		.pid = s.pid,
		.tid = s.tid,
		.cpu = s.cpu,
		.ip = s.ip};
	bool first = true;
	for (uint64_t i = 0; i < s.nr && e->nr_frames < RECORD_FRAMES_MAX; i++) {
		uint64_t frame;
		memcpy(&frame, p + i * 8, sizeof frame);
		if (frame >= PERF_CONTEXT_MAX)
			continue; /* a mark: what follows is user space (we asked for no other) */
		if (first && frame == s.ip) {
			first = false;
			continue;
		}
		first = false;
		ret->frames[e->nr_frames++] = frame;
	}
	e->frame = e->nr_frames ? ret->frames : NULL;
	perf_parse_user(p + s.nr * 8, end, &ret->user);
}

/* A file's, or the kernel's for all; not "//anon", which is what the program makes. */
static bool is_code_of_somebody(const char *path)
{
	return (path[0] == '/' && path[1] != '/') || !strcmp(path, RECORD_VDSO);
}

static void parse_map(const uint8_t *p, const uint8_t *end, struct system_perf_record *ret)
{
	struct {
		uint32_t pid, tid;
		uint64_t start, length, file_offset;
		uint8_t id[24];
		uint32_t prot, flags;
	} m;
	if ((size_t)(end - p) <= sizeof m)
		return;
	memcpy(&m, p, sizeof m);
	p += sizeof m;
	size_t length = strnlen((const char *)p, (size_t)(end - p));
	if (!(m.prot & PROT_EXEC) || !m.length || m.start + m.length < m.start ||
		length >= SYSTEM_PERF_TEXT)
		return;
	if (!is_code_of_somebody((const char *)p))
		length = 0;
	ret->event.kind = RECORD_EVENT_map;
	ret->map = (struct record_map_event){.start = m.start,
		.end = m.start + m.length,
		.file_offset = m.file_offset,
		.path = (const char *)p,
		.path_bytes = length};
}

static void parse_comm(
	const uint8_t *p, const uint8_t *end, bool exec, struct system_perf_record *ret)
{
	if (end - p < 9)
		return;
	p += 8; /* pid, tid: as in the sample_id */
	size_t length = strnlen((const char *)p, (size_t)(end - p));
	if (length >= sizeof ret->comm)
		length = sizeof ret->comm - 1;
	memcpy(ret->comm, p, length);
	ret->comm[length] = 0;
	ret->event.kind = exec ? RECORD_EVENT_exec : RECORD_EVENT_comm;
}

/* PERF_RECORD_FORK and EXIT: about whom is in the body, not in the sample_id (fork: the parent's).
 */
static void parse_task(
	const uint8_t *p, const uint8_t *end, bool fork, struct system_perf_record *ret)
{
	struct {
		uint32_t pid, ppid, tid, ptid;
		uint64_t time_ns;
	} t;
	if ((size_t)(end - p) < sizeof t)
		return;
	memcpy(&t, p, sizeof t);
	ret->event.kind = fork ? RECORD_EVENT_fork : RECORD_EVENT_exit;
	ret->event.pid = t.pid;
	ret->event.tid = t.tid;
	ret->event.other = t.ppid;
	ret->event.time_ns = t.time_ns;
}

static void parse_lost(const uint8_t *p, const uint8_t *end, struct system_perf_record *ret)
{
	uint64_t body[2];
	if ((size_t)(end - p) < sizeof body)
		return;
	memcpy(body, p, sizeof body);
	ret->event.kind = RECORD_EVENT_lost;
	ret->event.ip = body[1];
}

static void perf_parse_other(const struct perf_event_header *h, const uint8_t *p,
	const uint8_t *end, struct system_perf_record *ret)
{
	struct sample_id id;
	if ((size_t)(end - p) < sizeof id)
		return;
	end -= sizeof id;
	memcpy(&id, end, sizeof id);
	ret->event = (struct record_event){
		.time_ns = id.time_ns, .pid = id.pid, .tid = id.tid, .cpu = id.cpu};
	switch (h->type) {
	case PERF_RECORD_SWITCH:
	case PERF_RECORD_SWITCH_CPU_WIDE: /* what it has before the sample_id is not needed */
		if (!(h->misc & PERF_RECORD_MISC_SWITCH_OUT))
			ret->event.kind = RECORD_EVENT_in;
		else
			ret->event.kind = h->misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT
						  ? RECORD_EVENT_preempted
						  : RECORD_EVENT_out;
		break;
	case PERF_RECORD_COMM:
		parse_comm(p, end, (h->misc & PERF_RECORD_MISC_COMM_EXEC) != 0, ret);
		break;
	case PERF_RECORD_FORK:
	case PERF_RECORD_EXIT:
		parse_task(p, end, h->type == PERF_RECORD_FORK, ret);
		break;
	case PERF_RECORD_MMAP2:
		parse_map(p, end, ret);
		break;
	case PERF_RECORD_LOST:
		parse_lost(p, end, ret);
		break;
	default:
		break;
	}
}

size_t system_perf_parse(const uint8_t *bytes, size_t size, struct system_perf_record *ret)
{
	struct perf_event_header h;
	ret->event = (struct record_event){0};
	ret->user.stack_bytes = 0;
	if (size < sizeof h)
		return 0;
	memcpy(&h, bytes, sizeof h);
	if (h.size < sizeof h || h.size > size)
		return 0;
	if (h.type == PERF_RECORD_SAMPLE)
		perf_parse_sample(bytes + sizeof h, bytes + h.size, ret);
	else
		perf_parse_other(&h, bytes + sizeof h, bytes + h.size, ret);
	return h.size;
}

/* ---- buffers --------------------------------------------------------------------------------- */

struct buffer { /* of one processor */
	int fd, cpu;
	struct perf_event_mmap_page *page;
	size_t data_bytes;   /* a power of 2 */
	uint64_t tail, head; /* of this reading */
	uint64_t next_at;    /* where `next` begins */
	bool has_next;
	bool faults;  /* its samples are page faults' ends */
	bool samples; /* it has some, at a frequency */
	struct system_perf_record next;
	_Alignas(8) uint8_t copy[UINT16_MAX + 1]; /* a record that wraps around, and all others: the
						     kernel may write on */
};

struct system_perf {
	struct buffer **buffer;
	size_t nr, capacity;
	unsigned fill_percent;
	bool wide;  /* events of everybody: `own` says whose are taken */
	int *other; /* of the other threads of a process that ran already, into the same buffers */
	size_t nr_others, others_capacity;
	struct system_perf_own own;
};

/* Samples of all threads, in the kernel, too; times are CLOCK_MONOTONIC. Needs privilege. */
static int open_system_event(int cpu, uint64_t sample_hz)
{
	struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE,
		.size = sizeof attr,
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
			       PERF_SAMPLE_CPU | PERF_SAMPLE_CALLCHAIN,
		.sample_freq = sample_hz,
		.freq = 1,
		.exclude_idle = 1,
		.exclude_hv = 1,
		.sample_id_all = 1,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
		.watermark = 1,
		.wakeup_watermark = UINT32_MAX};
	return (int)syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
}

struct events {                        /* of which process, and what */
	uint32_t pid;                  /* 0: of everybody on a processor */
	uint64_t sample_hz, period_ns; /* a sample each time that it ran so long, when not 0 */
	bool switches;
	bool probe;  /* of that thread alone, only while system_perf_enable() says so */
	bool faults; /* page faults that wait for a disk, and nothing else */
	bool stacks; /* with a piece of each sample's stack */
	bool framed; /* ... of which the top will do */
	bool only_samples;
	bool running; /* from now on, not from its exec on */
};

static int perf_open_event(const struct events *of, int cpu)
{
	if (of->pid == SYSTEM_PERF_SYSTEM)
		return open_system_event(cpu, of->sample_hz);
	struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE,
		.size = sizeof attr,
		.config = of->sample_hz || of->period_ns ? PERF_COUNT_SW_CPU_CLOCK
							 : PERF_COUNT_SW_DUMMY,
		.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
			       PERF_SAMPLE_CPU | PERF_SAMPLE_CALLCHAIN,
		.sample_freq = of->period_ns ? of->period_ns : of->sample_hz, /* one field */
		.freq = of->sample_hz && !of->period_ns,
		.disabled = of->pid != 0 && !of->running,
		.inherit = of->pid && !of->probe,
		.exclude_idle = 1,
		.exclude_kernel = 1,
		.exclude_hv = 1,
		.exclude_callchain_kernel = 1,
		.mmap = 1,
		.mmap2 = 1,
		.comm = 1,
		.comm_exec = 1,
		.task = 1,
		.enable_on_exec = of->pid && !of->probe && !of->running,
		.sample_id_all = 1,
		.context_switch = of->switches,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC_RAW,
		.watermark = 1,
		.wakeup_watermark = UINT32_MAX}; /* we poll: nobody has to be woken */
	if (of->only_samples)
		attr.mmap = attr.mmap2 = attr.comm = attr.comm_exec = attr.task =
			attr.context_switch = 0;
	if (of->faults) {
		attr.config = PERF_COUNT_SW_PAGE_FAULTS_MAJ;
		attr.freq = attr.mmap = attr.mmap2 = attr.comm = attr.comm_exec = attr.task = 0;
		attr.context_switch = 0;
		attr.sample_period = 1;
		attr.sample_max_stack = 1;
	} else if (of->stacks && user_registers && attr.config == PERF_COUNT_SW_CPU_CLOCK) {
		attr.sample_type |= PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
		attr.sample_regs_user = user_registers;
		attr.sample_stack_user = of->framed              ? STACK_BYTES_FRAMED
					 : of->pid && !of->probe ? STACK_BYTES
								 : STACK_BYTES_WIDE;
	}
	return (int)syscall(SYS_perf_event_open, &attr, of->pid ? (pid_t)of->pid : -1, cpu, -1,
		PERF_FLAG_FD_CLOEXEC);
}

static struct buffer *buffer_close(struct buffer *b)
{
	if (!b)
		return NULL;
	if (b->page)
		munmap(b->page, PAGE_BYTES + b->data_bytes);
	if (b->fd >= 0)
		close(b->fd);
	base_free(b);
	return NULL;
}

static struct buffer *buffer_open(const struct events *of, int cpu, int *ret_errno)
{
	struct buffer *b = base_alloc(sizeof *b);
	if (!b) {
		*ret_errno = ENOMEM;
		return NULL;
	}
	b->cpu = cpu;
	b->fd = perf_open_event(of, cpu);
	if (b->fd < 0 && of->stacks &&
		(errno == EINVAL || errno == EOPNOTSUPP || errno == ENOSYS)) {
		struct events without = *of;
		without.stacks = false; /* not on every kernel */
		b->fd = perf_open_event(&without, cpu);
	}
	if (b->fd < 0) {
		*ret_errno = errno;
		return buffer_close(b);
	}
	b->faults = of->faults;
	b->samples = !of->faults && (of->sample_hz || of->period_ns);
	bool wide = !of->pid || of->pid == SYSTEM_PERF_SYSTEM;
	size_t pages = of->faults ? BUFFER_PAGES_FAULTS : wide ? BUFFER_PAGES_WIDE : BUFFER_PAGES;
	for (; pages >= BUFFER_PAGES_MIN; pages /= 2) {
		size_t bytes = PAGE_BYTES * (pages + 1);
		void *map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, b->fd, 0);
		if (map != MAP_FAILED) {
			b->page = map;
			b->data_bytes = PAGE_BYTES * pages;
			return b;
		}
		*ret_errno = errno;
		if (errno != EPERM && errno != ENOMEM)
			break;
	}
	return buffer_close(b);
}

static int perf_open_all(struct system_perf *p, struct events of)
{
	long nr = sysconf(_SC_NPROCESSORS_CONF);
	int why = 0;
	for (int cpu = 0; cpu < nr && cpu < CPUS_MAX; cpu++) {
		int refused = 0;
		if (base_grow(&p->buffer, &p->capacity, p->nr + 1, sizeof(void *)) != BASE_OK)
			return ENOMEM;
		struct buffer *b = buffer_open(&of, cpu, &refused);
		if (b)
			p->buffer[p->nr++] = b;
		else if (refused != ENODEV) /* a processor that is off line */
			why = refused;
	}
	return why;
}

static void close_from(struct system_perf *p, size_t first)
{
	while (p->nr > first)
		buffer_close(p->buffer[--p->nr]);
}

static void perf_close_all(struct system_perf *p)
{
	close_from(p, 0);
}

/* What the disk keeps waiting without a call. Where that is refused (locked memory is limited)
 * these waits have no name, as all that are in no call. */
static void open_faults(struct system_perf *p, struct events of)
{
	size_t nr = p->nr;
	of.faults = true;
	if (of.switches && perf_open_all(p, of))
		close_from(p, nr);
}

static void perf_explain(char text[SYSTEM_PERF_WHY], int why)
{
	const char *hint = why == EACCES || why == EPERM
				   ? " (/proc/sys/kernel/perf_event_paranoid above 2, or a "
				     "container's seccomp filter)"
			   : why == ENOENT || why == ENOSYS || why == EOPNOTSUPP
				   ? " (the kernel has no perf_event)"
				   : "";
	snprintf(text, SYSTEM_PERF_WHY, "perf_event_open: %s%s", strerror(why), hint);
}

/* Events of the processors, if we may see everybody's: an event of each thread would be taken from
 * the processor and put back at each switch, and with it the timer of the samples. */
static bool open_wide(struct system_perf *p, struct events of)
{
	uint32_t pid = of.pid;
	of.pid = 0;
	/* Samples fill a buffer of their own, with their stacks: no switch is lost for them. */
	struct events apart = of, samples = of;
	apart.sample_hz = 0;
	samples.only_samples = true;
	if (perf_open_all(p, apart) || (of.sample_hz && perf_open_all(p, samples))) {
		perf_close_all(p);
		return false;
	}
	open_faults(p, of);
	system_perf_own_init(&p->own, pid);
	p->wide = true;
	return true;
}

struct system_perf *system_perf_open(uint32_t pid, uint64_t sample_hz, bool switches,
	char why_no_samples[SYSTEM_PERF_WHY], char why_no_switches[SYSTEM_PERF_WHY])
{
	snprintf(why_no_samples, SYSTEM_PERF_WHY, "%s", sample_hz ? "" : "not asked for");
	snprintf(why_no_switches, SYSTEM_PERF_WHY, "%s", switches ? "" : "not asked for");
	/* Births and deaths are wanted in any case. */
	struct system_perf *p = base_alloc(sizeof *p);
	struct events of = {
		.pid = pid, .sample_hz = sample_hz, .switches = switches, .stacks = true};
	if (p && open_wide(p, of))
		return p;
	int why = p ? perf_open_all(p, of) : ENOMEM;
	if (p && why && sample_hz) { /* switches alone? */
		perf_explain(why_no_samples, why);
		perf_close_all(p);
		of.sample_hz = 0;
		why = perf_open_all(p, of);
	}
	if (!why) {
		open_faults(p, of);
		return p;
	}
	if (switches)
		perf_explain(why_no_switches, why);
	return system_perf_close(p);
}

/* Of a thread beside the first: its children inherit it, as those of the first do. */
static int perf_open_other(struct system_perf *p, struct events of)
{
	for (size_t i = 0; i < p->nr; i++) {
		if (base_grow(&p->other, &p->others_capacity, p->nr_others + 1, sizeof(int)) !=
			BASE_OK)
			return ENOMEM;
		int fd = perf_open_event(&of, p->buffer[i]->cpu);
		if (fd < 0)
			return errno == ESRCH ? 0 : errno; /* it has ended meanwhile */
		p->other[p->nr_others++] = fd;
		if (ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, p->buffer[i]->fd))
			return errno;
	}
	return 0;
}

/* What the recorder itself began there is among them no more. */
static int perf_open_threads(
	struct system_perf *p, struct events of, const pid_t *tid, size_t nr_tids)
{
	uint32_t pid = of.pid;
	int why = perf_open_all(p, of);
	for (size_t i = 0; i < nr_tids && !why; i++) {
		of.pid = (uint32_t)tid[i];
		if (of.pid != pid)
			why = perf_open_other(p, of);
	}
	return why;
}

struct system_perf *system_perf_open_running(uint32_t pid, uint64_t sample_hz, bool switches,
	char why_no_samples[SYSTEM_PERF_WHY], char why_no_switches[SYSTEM_PERF_WHY])
{
	enum { TASKS_MAX = 4096 };
	pid_t tid[TASKS_MAX];
	size_t nr = os_list_tasks((pid_t)pid, tid, TASKS_MAX);
	struct system_perf *p = base_alloc(sizeof *p);
	struct events of = {.pid = pid,
		.sample_hz = sample_hz,
		.switches = switches,
		.stacks = true,
		.running = true};
	snprintf(why_no_samples, SYSTEM_PERF_WHY, "%s", sample_hz ? "" : "not asked for");
	snprintf(why_no_switches, SYSTEM_PERF_WHY, "%s", switches ? "" : "not asked for");
	if (p && open_wide(p, of)) {
		system_perf_own_init(&p->own, 0);
		if (base_map_put(&p->own.tasks, 0, pid, nr) == BASE_OK)
			return p;
	}
	int why = p ? perf_open_threads(p, of, tid, nr) : ENOMEM;
	if (!why)
		return p;
	if (sample_hz)
		perf_explain(why_no_samples, why);
	if (switches)
		perf_explain(why_no_switches, why);
	return system_perf_close(p);
}

static struct system_perf *perf_open_samples(struct events of, char why_not[SYSTEM_PERF_WHY])
{
	struct system_perf *p = base_alloc(sizeof *p);
	int why = p ? perf_open_all(p, of) : ENOMEM;
	if (!why)
		return p;
	perf_explain(why_not, why);
	return system_perf_close(p);
}

struct system_perf *system_perf_open_framed(
	uint32_t pid, uint64_t sample_hz, char why_not[SYSTEM_PERF_WHY])
{
	return perf_open_samples((struct events){.pid = pid,
					 .sample_hz = sample_hz,
					 .only_samples = true,
					 .stacks = true,
					 .framed = true,
					 .running = true},
		why_not);
}

struct system_perf *system_perf_open_system(uint64_t sample_hz, char why_not[SYSTEM_PERF_WHY])
{
	return perf_open_samples(
		(struct events){.pid = SYSTEM_PERF_SYSTEM, .sample_hz = sample_hz}, why_not);
}

struct system_perf *system_perf_open_probe(
	uint32_t tid, uint64_t sample_hz, uint64_t period_ns, bool switches)
{
	struct events of = {.pid = tid,
		.sample_hz = sample_hz,
		.period_ns = period_ns,
		.switches = switches,
		.probe = true,
		.stacks = true};
	struct system_perf *p = base_alloc(sizeof *p);
	if (!p || perf_open_all(p, of))
		return system_perf_close(p);
	open_faults(p, of);
	return p;
}

bool system_perf_is_wide(const struct system_perf *p)
{
	return p->wide;
}

void system_perf_enable(const struct system_perf *p, bool on)
{
	for (size_t i = 0; i < p->nr; i++)
		(void)ioctl(
			p->buffer[i]->fd, on ? PERF_EVENT_IOC_ENABLE : PERF_EVENT_IOC_DISABLE, 0);
}

bool system_perf_set_sample_hz(const struct system_perf *p, uint64_t sample_hz)
{
	/* The kernel has made a period of the clock's frequency when it opened the event. */
	uint64_t period_ns = 1000000000 / sample_hz;
	bool all = true;
	for (size_t i = 0; p && i < p->nr; i++)
		if (p->buffer[i]->samples)
			all &= !ioctl(p->buffer[i]->fd, PERF_EVENT_IOC_PERIOD, &period_ns);
	return all;
}

struct system_perf *system_perf_close(struct system_perf *p)
{
	if (!p)
		return NULL;
	while (p->nr_others)
		close(p->other[--p->nr_others]);
	perf_close_all(p);
	system_perf_own_fini(&p->own);
	base_free(p->other);
	base_free(p->buffer);
	base_free(p);
	return NULL;
}

/* ---- reading --------------------------------------------------------------------------------- */

static void perf_copy_out(const struct buffer *b, uint64_t from, void *to, size_t size)
{
	const uint8_t *data = (const uint8_t *)b->page + PAGE_BYTES;
	size_t at = (size_t)(from & (b->data_bytes - 1)), first = b->data_bytes - at;
	if (first > size)
		first = size;
	memcpy(to, data + at, first);
	memcpy((uint8_t *)to + first, data, size - first);
}

/* Parse records until one is of use. */
static void perf_advance(struct buffer *b)
{
	struct perf_event_header h;
	b->has_next = false;
	while (!b->has_next && b->head - b->tail >= sizeof h) {
		perf_copy_out(b, b->tail, &h, sizeof h);
		if (h.size < sizeof h || h.size > b->head - b->tail) {
			b->tail = b->head; /* cannot happen; do not loop */
			return;
		}
		perf_copy_out(b, b->tail, b->copy, h.size);
		b->next_at = b->tail;
		b->tail += h.size;
		if (!system_perf_parse(b->copy, h.size, &b->next))
			continue;
		if (b->faults && b->next.event.kind == RECORD_EVENT_sample)
			b->next.event.kind = RECORD_EVENT_fault;
		b->has_next = b->next.event.kind != RECORD_EVENT_none;
	}
}

struct reader {
	struct system_perf *perf;
	struct record_converter *converter;
};

static void perf_hand_over(void *ctx, struct system_perf_record *r)
{
	const struct reader *to = ctx;
	struct record_converter *c = to->converter;
	if (system_perf_own_outlives(&to->perf->own, r))
		return;
	if (to->perf->wide && !system_perf_own_takes(&to->perf->own, r))
		return;
	struct record_event e = r->event;
	e.time_ns = os_clock_from_raw(c->clock, e.time_ns);
	if (r->user.stack_bytes)
		e.nr_frames = record_converter_unwind(c, e.pid, &r->user, r->frames, e.nr_frames);
	e.frame = NULL; /* (the record's own) */
	if (e.nr_frames) {
		e.frame = base_alloc(e.nr_frames * sizeof *e.frame);
		if (e.frame)
			memcpy(e.frame, r->frames, e.nr_frames * sizeof *e.frame);
		else
			e.nr_frames = 0;
	}
	record_converter_event(c, &e, &r->map, r->comm);
}

void system_perf_read(struct system_perf *p, struct record_converter *c, uint64_t until_ns)
{
	system_perf_each(p, until_ns, perf_hand_over, &(struct reader){.perf = p, .converter = c});
}

void system_perf_each(struct system_perf *p, uint64_t until_ns,
	void (*take)(void *ctx, struct system_perf_record *r), void *ctx)
{
	p->fill_percent = 0;
	for (size_t i = 0; i < p->nr; i++) {
		struct buffer *b = p->buffer[i];
		b->tail = b->page->data_tail;
		b->head = __atomic_load_n(&b->page->data_head, __ATOMIC_ACQUIRE);
		unsigned fill = (unsigned)((b->head - b->tail) * 100 / b->data_bytes);
		if (fill > p->fill_percent)
			p->fill_percent = fill;
		perf_advance(b);
	}
	for (;;) {
		struct buffer *first = NULL;
		for (size_t i = 0; i < p->nr; i++) {
			struct buffer *b = p->buffer[i];
			if (b->has_next &&
				(!first || b->next.event.time_ns < first->next.event.time_ns))
				first = b;
		}
		if (!first || first->next.event.time_ns > until_ns)
			break;
		take(ctx, &first->next);
		perf_advance(first);
	}
	for (size_t i = 0; i < p->nr; i++) {
		const struct buffer *b = p->buffer[i];
		__atomic_store_n(
			&b->page->data_tail, b->has_next ? b->next_at : b->tail, __ATOMIC_RELEASE);
	}
}

unsigned system_perf_fill_percent(const struct system_perf *p)
{
	return p ? p->fill_percent : 0;
}
