/* SPDX-License-Identifier: Apache-2.0 */
/* bpf.c - loads bpf/system.bpf.c and reads its slots. Absent without libbpf or clang. */
#include "system/system.h"

#include "config.h"

#include <stdio.h>

#if !LONGPOLE_BPF

static bool refuse_open(struct system_source *src, const struct system_options *o,
	enum system_refusal *ret_refusal, char why[SYSTEM_WHY])
{
	(void)src;
	(void)o;
	*ret_refusal = SYSTEM_REFUSAL_not_built;
	snprintf(why, SYSTEM_WHY,
		"longpole was built without it (libbpf-dev and clang were missing)");
	return false;
}

const struct system_backend system_backend_bpf = {.name = "bpf", .open = refuse_open};

#else

#include "system_bpf_code.h"
#include "trace/syscalls.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { SLOTS_MIN = 1 << 12, SLOTS_MAX = 1 << 20, PAGE_BYTES = 4096, LOG_BYTES = 1 << 16 };

struct bpf_state {
	struct bpf_object *object;
	struct bpf_link **link;
	size_t nr_links, link_capacity;
	struct kernel_control *control; /* of all processors */
	size_t control_bytes;
	struct kernel_slot *slots; /* processor * (mask + 1) */
	size_t slots_bytes;
	uint32_t mask;
	uint64_t nr_before;  /* dropped before the start */
	char log[LOG_BYTES]; /* the verifier's */
};

/* The last line of the verifier's log that says something. */
static const char *last_line(char *log)
{
	char *end = log + strlen(log), *line;
	while (end > log) {
		while (end > log && end[-1] == '\n')
			*--end = 0;
		line = strrchr(log, '\n');
		line = line ? line + 1 : log;
		if (*line && strncmp(line, "processed ", 10) != 0)
			return line;
		end = line;
		*end = 0;
	}
	return "";
}

static bool bpf_refuse(struct bpf_state *s, int error, const char *what,
	enum system_refusal *ret_refusal, char why[SYSTEM_WHY])
{
	error = error < 0 ? -error : error;
	*ret_refusal = error == EPERM || error == EACCES    ? SYSTEM_REFUSAL_privilege
		       : error == ENOMEM || error == EMFILE ? SYSTEM_REFUSAL_resources
							    : SYSTEM_REFUSAL_no_feature;
	const char *log = last_line(s->log);
	snprintf(why, SYSTEM_WHY, "%.40s: %.40s%s%.90s", what, strerror(error), *log ? ": " : "",
		log);
	return false;
}

/* Is a tracepoint's first argument a request of an io_uring's? (Before it is the programs' own.) */
static bool is_about_request(const struct btf *btf, int tracepoint)
{
	const struct btf_type *t = btf__type_by_id(btf, (uint32_t)tracepoint);
	t = btf__type_by_id(btf, t->type);            /* the typedef's pointer, */
	t = t ? btf__type_by_id(btf, t->type) : NULL; /* to a function */
	if (!t || !btf_is_func_proto(t) || btf_vlen(t) < 2)
		return false;
	t = btf__type_by_id(btf, btf_params(t)[1].type);
	while (t && (btf_is_ptr(t) || btf_is_mod(t)))
		t = btf__type_by_id(btf, t->type);
	return t && btf_is_struct(t) && !strcmp(btf__name_by_offset(btf, t->name_off), "io_kiocb");
}

/* Tracepoints that this kernel does not have are left out; those of --full alone are not loaded
 * unless we say so (SEC("?...")). */
static void choose_programs(struct bpf_state *s, enum system_level level)
{
	struct btf *btf = btf__load_vmlinux_btf();
	struct bpf_program *p;
	bpf_object__for_each_program(p, s->object)
	{
		char type[128];
		const char *event = strrchr(bpf_program__section_name(p), '/');
		bool wanted = level == SYSTEM_LEVEL_full || bpf_program__autoload(p);
		snprintf(type, sizeof type, "btf_trace_%s", event ? event + 1 : "");
		int id = btf ? btf__find_by_name_kind(btf, type, BTF_KIND_TYPEDEF) : 0;
		bool there = id > 0 && (strncmp(bpf_program__name(p), "on_request", 10) != 0 ||
					       is_about_request(btf, id));
		bpf_program__set_autoload(p, wanted && there);
	}
	btf__free(btf);
}

static void set_calls(struct kernel_call *table)
{
	for (unsigned i = 0; i < KERNEL_CALLS_MAX; i++) {
		const struct trace_syscall *c = trace_syscall_find(i);
		table[i] = (struct kernel_call){.object = c->object,
			.is_file = (c->flags & TRACE_SYSCALL_DESC) != 0,
			.op = c->op,
			.n = c->n,
			.n_is_time = (c->flags & TRACE_SYSCALL_TIME) != 0,
			.makes = (c->flags & TRACE_SYSCALL_MAKES) != 0,
			.wanted = !(c->flags & TRACE_SYSCALL_SKIP)};
	}
}

/* The constants of the object, found by their names. */
static bool set_constants(struct bpf_state *s, const struct system_options *o,
	uint32_t nr_processors, struct bpf_map *rodata)
{
	size_t size;
	uint8_t *bytes = (uint8_t *)(uintptr_t)bpf_map__initial_value(rodata, &size);
	const struct btf *btf = bpf_object__btf(s->object);
	int id = btf ? btf__find_by_name_kind(btf, ".rodata", BTF_KIND_DATASEC) : -1;
	const struct btf_type *section = id > 0 ? btf__type_by_id(btf, (uint32_t)id) : NULL;
	struct kernel_call calls[KERNEL_CALLS_MAX];
	uint32_t own_tgid = (uint32_t)getpid();
	uint8_t with_contexts = o->level == SYSTEM_LEVEL_full;
	const struct {
		const char *name;
		const void *value;
		size_t size;
	} constant[] = {
		{"slot_mask", &s->mask, sizeof s->mask},
		{"nr_processors", &nr_processors, sizeof nr_processors},
		{"own_tgid", &own_tgid, sizeof own_tgid},
		{"with_contexts", &with_contexts, sizeof with_contexts},
		{"call_table", calls, sizeof calls},
	};
	size_t nr_set = 0;
	if (!bytes || !section)
		return false;
	set_calls(calls);
	const struct btf_var_secinfo *v = btf_var_secinfos(section);
	for (unsigned i = 0; i < btf_vlen(section); i++, v++) {
		const char *name =
			btf__name_by_offset(btf, btf__type_by_id(btf, v->type)->name_off);
		for (size_t k = 0; k < BASE_COUNT(constant); k++) {
			if (strcmp(name, constant[k].name) != 0 || v->size != constant[k].size ||
				v->offset + v->size > size)
				continue;
			memcpy(bytes + v->offset, constant[k].value, constant[k].size);
			nr_set++;
		}
	}
	return nr_set == BASE_COUNT(constant);
}

static struct bpf_map *find_map(struct bpf_state *s, const char *suffix)
{
	struct bpf_map *m;
	size_t n = strlen(suffix);
	bpf_object__for_each_map(m, s->object)
	{
		size_t length = strlen(bpf_map__name(m));
		if (length >= n && !strcmp(bpf_map__name(m) + length - n, suffix))
			return m;
	}
	return NULL;
}

static void *map_shared(const struct bpf_map *m, size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, bpf_map__fd(m), 0);
	return p == MAP_FAILED ? NULL : p;
}

static uint32_t slots_a_processor(const struct system_options *o, unsigned nr_processors)
{
	uint64_t bytes = o->buffer_bytes ? o->buffer_bytes : SYSTEM_BUFFER_BYTES;
	uint64_t wanted = bytes / nr_processors / KERNEL_SLOT_BYTES, nr = SLOTS_MIN;
	while (nr * 2 <= wanted && nr < SLOTS_MAX)
		nr *= 2;
	return (uint32_t)nr;
}

static int bpf_attach_all(struct bpf_state *s)
{
	struct bpf_program *p;
	bpf_object__for_each_program(p, s->object)
	{
		if (!bpf_program__autoload(p))
			continue;
		if (base_grow(&s->link, &s->link_capacity, s->nr_links + 1, sizeof(void *)) !=
			BASE_OK)
			return ENOMEM;
		struct bpf_link *link = bpf_program__attach(p);
		if (!link)
			return errno;
		s->link[s->nr_links++] = link;
	}
	return 0;
}

static void bpf_close(struct system_source *src)
{
	struct bpf_state *s = src->state;
	if (!s)
		return;
	while (s->nr_links)
		bpf_link__destroy(s->link[--s->nr_links]);
	if (s->slots)
		munmap(s->slots, s->slots_bytes);
	if (s->control)
		munmap(s->control, s->control_bytes);
	bpf_object__close(s->object);
	base_free(s->link);
	base_free(s);
	src->state = NULL;
}

/* A tail that is far away makes the kernel's side take the buffer for full. */
static void close_buffers(const struct system_source *src, struct bpf_state *s)
{
	for (unsigned cpu = 0; cpu < src->nr_processors; cpu++)
		s->control[cpu].tail = 1ull << 63;
}

static void bpf_start(struct system_source *src)
{
	struct bpf_state *s = src->state;
	for (unsigned cpu = 0; cpu < src->nr_processors; cpu++) {
		struct kernel_control *c = &s->control[cpu];
		__atomic_store_n(&c->tail, 0, __ATOMIC_RELEASE);
		uint64_t before = __atomic_load_n(&c->dropped, __ATOMIC_RELAXED);
		s->nr_before += before;
		src->order.queue[cpu].nr_dropped = before;
	}
}

static bool open_object(struct system_source *src, struct bpf_state *s,
	const struct system_options *o, enum system_refusal *ret_refusal, char why[SYSTEM_WHY])
{
	struct bpf_object_open_opts opts = {.sz = sizeof opts,
		.object_name = "longpole",
		.kernel_log_buf = s->log,
		.kernel_log_size = sizeof s->log};
	s->object = bpf_object__open_mem(system_bpf_code, sizeof system_bpf_code, &opts);
	if (!s->object)
		return bpf_refuse(s, errno, "opening the BPF object", ret_refusal, why);
	struct bpf_map *slots = find_map(s, "slots"), *rodata = find_map(s, ".rodata"),
		       *bss = find_map(s, ".bss");
	s->mask = slots_a_processor(o, src->nr_processors) - 1;
	if (!slots || !rodata || !bss || !set_constants(s, o, src->nr_processors, rodata))
		return bpf_refuse(s, EINVAL, "the BPF object is not ours", ret_refusal, why);
	int error = bpf_map__set_max_entries(slots, src->nr_processors * (s->mask + 1));
	choose_programs(s, o->level);
	if (!error)
		error = bpf_object__load(s->object);
	if (error)
		return bpf_refuse(s, error, "loading BPF programs", ret_refusal, why);
	s->slots_bytes = (size_t)src->nr_processors * (s->mask + 1) * KERNEL_SLOT_BYTES;
	s->slots = map_shared(slots, s->slots_bytes);
	s->control_bytes = (bpf_map__value_size(bss) + PAGE_BYTES - 1) & ~(size_t)(PAGE_BYTES - 1);
	s->control = map_shared(bss, s->control_bytes);
	if (!s->slots || !s->control)
		return bpf_refuse(s, errno, "mapping the buffers", ret_refusal, why);
	close_buffers(src, s);
	error = bpf_attach_all(s);
	if (error)
		return bpf_refuse(s, error, "attaching to tracepoints", ret_refusal, why);
	return true;
}

static bool bpf_open(struct system_source *src, const struct system_options *o,
	enum system_refusal *ret_refusal, char why[SYSTEM_WHY])
{
	struct bpf_state *s = base_alloc(sizeof *s);
	if (!s) {
		*ret_refusal = SYSTEM_REFUSAL_resources;
		snprintf(why, SYSTEM_WHY, "no memory");
		return false;
	}
	src->state = s;
	libbpf_set_print(NULL); /* libraries do not print */
	libbpf_set_strict_mode(LIBBPF_STRICT_ALL);
	if (open_object(src, s, o, ret_refusal, why))
		return true;
	bpf_close(src);
	return false;
}

static enum base_status bpf_read(struct system_source *src, uint64_t now_ns)
{
	struct bpf_state *s = src->state;
	src->used_percent = 0;
	src->nr_dropped = 0;
	for (unsigned cpu = 0; cpu < src->nr_processors; cpu++) {
		struct kernel_control *c = &s->control[cpu];
		uint64_t used;
		enum base_status status = system_slots_read(&src->order, cpu, c,
			s->slots + (size_t)cpu * (s->mask + 1), s->mask, now_ns, &used);
		if (status != BASE_OK)
			return status;
		unsigned percent = (unsigned)(used * 100 / (s->mask + 1));
		if (percent > src->used_percent)
			src->used_percent = percent;
		src->nr_dropped += __atomic_load_n(&c->dropped, __ATOMIC_RELAXED);
	}
	src->nr_dropped -= s->nr_before;
	return BASE_OK;
}

const struct system_backend system_backend_bpf = {
	.name = "bpf", .open = bpf_open, .start = bpf_start, .read = bpf_read, .close = bpf_close};

#endif
