/* SPDX-License-Identifier: Apache-2.0 */
/*
 * frames.c - stacks of waiting threads by elfutils, from registers and memory that were read
 * without stopping anybody. Without registers (only sp and pc are known) a stack ends at the first
 * frame whose rules need another one.
 */
#include "deadlock/facts/facts.h"

#include "deadlock/facts/core.h"
#include "symbol/symbol.h"

#include <dwarf.h>
#include <elfutils/libdwfl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STACK_CHUNK = 4096, DWARF_REGISTERS = 17, SHAPES_MAX = 64, SHAPE_BYTES = 1024 };

/* Where on the stack the return addresses of one call path are. A thread that has the same ones
 * at the same places, and the same pc, is on the same path: of a thousand idle workers one is
 * unwound. */
struct shape {
	uint64_t pc, address[DEADLOCK_FRAMES_MAX];
	uint16_t offset[DEADLOCK_FRAMES_MAX];
	size_t nr_frames;
	struct deadlock_frame frame[DEADLOCK_FRAMES_MAX];
};

/* Of all processes that have the same files at the same addresses, as forks of one program have. */
struct unwinder {
	Dwfl *dwfl;
	Dwfl_Callbacks callbacks;
	struct deadlock_world *world;
	struct deadlock_process *process; /* whose stack is read, or code named, now */
	struct deadlock_wait *wait;       /* whose stack is read now */
	uint64_t chunk_at;                /* memory read last */
	bool has_chunk;
	uint8_t chunk[STACK_CHUNK];
	struct shape *shape;
	size_t nr_shapes;
};

/* ---- what elfutils asks ---------------------------------------------------------------------- */

static pid_t next_thread(Dwfl *dwfl, void *arg, void **thread_arg)
{
	struct unwinder *u = arg;
	(void)dwfl;
	if (*thread_arg)
		return 0;
	*thread_arg = u;
	return u->wait->thread.tid;
}

static bool get_thread(Dwfl *dwfl, pid_t tid, void *arg, void **thread_arg)
{
	(void)dwfl, (void)tid;
	*thread_arg = arg;
	return true;
}

static bool frames_read_word(Dwfl *dwfl, Dwarf_Addr address, Dwarf_Word *ret, void *arg)
{
	struct unwinder *u = arg;
	uint64_t at = address & ~(uint64_t)(STACK_CHUNK - 1);
	(void)dwfl;
	if (address - at > STACK_CHUNK - sizeof *ret)
		return deadlock_world_read(u->world, u->process->pid, address, ret, sizeof *ret);
	if (!u->has_chunk || u->chunk_at != at) {
		u->has_chunk = deadlock_world_read(
			u->world, u->process->pid, at, u->chunk, sizeof u->chunk);
		u->chunk_at = at;
	}
	if (!u->has_chunk)
		return false;
	memcpy(ret, u->chunk + (address - at), sizeof *ret);
	return true;
}

static bool frames_set_registers(Dwfl_Thread *thread, void *arg)
{
	const struct unwinder *u = arg;
	const struct deadlock_wait *w = u->wait;
	const struct user_regs_struct *r = &w->registers;
	Dwarf_Word value[DWARF_REGISTERS] = {[7] = w->sp, [16] = w->pc};
	if (w->registers_source != DEADLOCK_REGISTERS_NONE) {
		const Dwarf_Word known[DWARF_REGISTERS] = {r->rax, r->rdx, r->rcx, r->rbx, r->rsi,
			r->rdi, r->rbp, r->rsp, r->r8, r->r9, r->r10, r->r11, r->r12, r->r13,
			r->r14, r->r15, r->rip};
		memcpy(value, known, sizeof value);
	}
	return dwfl_thread_state_registers(thread, 0, DWARF_REGISTERS, value);
}

static const Dwfl_Thread_Callbacks thread_callbacks = {
	.next_thread = next_thread,
	.get_thread = get_thread,
	.memory_read = frames_read_word,
	.set_initial_registers = frames_set_registers,
};

/* ---- one process ----------------------------------------------------------------------------- */

static void close_unwinder(void *p)
{
	struct unwinder *u = p;
	if (u->dwfl)
		dwfl_end(u->dwfl);
	base_free(u->shape);
	base_free(u);
}

static bool report_modules(struct unwinder *u, const struct deadlock_core *core)
{
	return core ? dwfl_core_file_report(u->dwfl, deadlock_core_elf(core), NULL) >= 0
		    : dwfl_linux_proc_report(u->dwfl, deadlock_process_shown_as(u->process)) == 0;
}

static bool is_code_or_data(const struct os_region *r)
{
	return r->inode || !strcmp(r->path, "[vdso]");
}

/* The next region that elfutils would know, from the i-th on. */
static const struct os_region *next_module(const struct deadlock_process *p, size_t *i)
{
	while (*i < p->nr_regions && !is_code_or_data(&p->region[*i]))
		++*i;
	return *i < p->nr_regions ? &p->region[(*i)++] : NULL;
}

static bool is_same_module(const struct os_region *a, const struct os_region *b)
{
	return a->start == b->start && a->end == b->end && a->offset == b->offset &&
	       a->device == b->device && a->inode == b->inode && a->executable == b->executable &&
	       !strcmp(a->path, b->path);
}

static bool has_same_modules(const struct deadlock_process *a, const struct deadlock_process *b)
{
	const struct os_region *x, *y;
	size_t i = 0, j = 0;
	do {
		x = next_module(a, &i);
		y = next_module(b, &j);
	} while (x && y && is_same_module(x, y));
	return !x && !y;
}

static uint64_t hash_of_modules(const struct deadlock_process *p)
{
	uint64_t hash = 0;
	const struct os_region *r;
	for (size_t i = 0; (r = next_module(p, &i));)
		hash = base_hash_u64(base_hash_u64(hash ^ r->start) ^ r->inode);
	return hash;
}

/* The unwinder of the process, or of one that is laid out like it. */
static struct unwinder *find_unwinder(struct deadlock_world *w, struct deadlock_process *p)
{
	uint64_t value;
	deadlock_process_regions(w, p);
	if (p->unwinder || !base_map_get(deadlock_world_layouts(w), 0, hash_of_modules(p), &value))
		return p->unwinder;
	const struct deadlock_process *like = (const struct deadlock_process *)(uintptr_t)value;
	if (has_same_modules(p, like))
		p->unwinder = like->unwinder; /* which closes it */
	return p->unwinder;
}

static struct unwinder *open_unwinder(struct deadlock_world *w, struct deadlock_process *p)
{
	struct unwinder *u = base_alloc(sizeof *u);
	if (!u)
		return NULL;
	const struct deadlock_core *core = deadlock_world_core(w);
	u->callbacks = (Dwfl_Callbacks){
		.find_elf = core ? dwfl_build_id_find_elf : dwfl_linux_proc_find_elf,
		.find_debuginfo = dwfl_build_id_find_debuginfo};
	u->world = w;
	u->process = p;
	u->dwfl = dwfl_begin(&u->callbacks);
	if (u->dwfl && (!report_modules(u, core) || dwfl_report_end(u->dwfl, NULL, NULL) != 0)) {
		dwfl_end(u->dwfl);
		u->dwfl = NULL;
	}
	u->shape = base_alloc(SHAPES_MAX * sizeof *u->shape);
	p->unwinder = u;
	p->close_unwinder = close_unwinder;
	if (p->nr_regions && u->dwfl &&
		base_map_put(deadlock_world_layouts(w), 0, hash_of_modules(p), (uintptr_t)p) !=
			BASE_OK)
		return u; /* others open their own */
	return u;
}

static struct unwinder *unwinder_of(struct deadlock_world *w, struct deadlock_process *p)
{
	struct unwinder *u = find_unwinder(w, p);
	if (!u)
		u = open_unwinder(w, p);
	if (u && u->process != p) {
		u->process = p;
		u->has_chunk = false;
	}
	return u;
}

static const char *frames_copy_text(struct deadlock_world *w, const char *text, size_t length)
{
	const char *copy = base_arena_strndup(deadlock_world_arena(w), text, length);
	return copy ? copy : "";
}

static const char *frames_readable(struct unwinder *u, const char *name)
{
	char *text = symbol_readable(name);
	const char *copy = text ? frames_copy_text(u->world, text, strlen(text)) : "";
	free(text); /* allowed: the demangler's */
	return copy;
}

static const char *frames_base_name(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash ? slash + 1 : path;
}

bool deadlock_module_is_runtime(const char *module)
{
	static const char *const prefix[] = {"libc.so", "libc-", "ld-linux", "ld-2", "ld-musl",
		"libpthread", "libstdc++.so", "libc++.so", "libc++abi.so", "libm.so", "[vdso"};
	for (size_t i = 0; i < BASE_COUNT(prefix); i++) {
		if (!strncmp(module, prefix[i], strlen(prefix[i])))
			return true;
	}
	return false;
}

static void fill_line(struct unwinder *u, Dwfl_Module *module, struct deadlock_frame *f)
{
	int number = 0;
	Dwfl_Line *line = f->is_runtime ? NULL : dwfl_module_getsrc(module, f->pc);
	const char *file = line ? dwfl_lineinfo(line, NULL, &number, NULL, NULL, NULL) : NULL;
	if (file && number > 0) {
		f->file = frames_copy_text(u->world, file, strlen(file));
		f->line = (uint32_t)number;
	}
}

static void name_frame(struct unwinder *u, struct deadlock_frame *f)
{
	Dwfl_Module *module = dwfl_addrmodule(u->dwfl, f->pc);
	if (!module)
		return;
	const char *path = dwfl_module_info(module, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
	const char *name = frames_base_name(path ? path : "");
	f->module = frames_copy_text(u->world, name, strlen(name));
	f->is_runtime = deadlock_module_is_runtime(name);
	GElf_Off offset = 0;
	GElf_Sym symbol;
	name = dwfl_module_addrinfo(module, f->pc, &offset, &symbol, NULL, NULL, NULL);
	if (name && (symbol.st_size == 0 || offset < symbol.st_size)) {
		f->function = frames_readable(u, name);
		f->offset = offset;
	}
	fill_line(u, module, f);
}

/* A place in a file has one name in all processes. To find it takes elfutils a walk through all
 * symbols of the file, once a process. */
struct place {
	uint64_t device;
	struct deadlock_frame frame;
};

static void fill_frame(struct unwinder *u, uint64_t pc, struct deadlock_frame *f)
{
	const struct os_region *r = deadlock_process_region(u->world, u->process, pc);
	struct base_map *places = deadlock_world_places(u->world);
	const uint64_t inode = r ? r->inode : 0, at = r ? pc - r->start + r->offset : 0;
	uint64_t value;
	*f = (struct deadlock_frame){.pc = pc, .function = "", .module = "", .file = ""};
	if (inode && base_map_get(places, inode, at, &value)) {
		const struct place *known = (const struct place *)(uintptr_t)value;
		if (known->device == r->device) {
			*f = known->frame;
			f->pc = pc;
			return;
		}
	}
	name_frame(u, f);
	struct place *place =
		inode ? base_arena_alloc(deadlock_world_arena(u->world), sizeof *place) : NULL;
	if (!place)
		return;
	*place = (struct place){.device = r->device, .frame = *f};
	if (base_map_put(places, inode, at, (uintptr_t)place) != BASE_OK)
		return; /* it is looked up again */
}

static int on_frame(Dwfl_Frame *frame, void *arg)
{
	struct unwinder *u = arg;
	struct deadlock_wait *w = u->wait;
	Dwarf_Addr pc;
	bool is_activation;
	if (w->nr_frames == DEADLOCK_FRAMES_MAX || !dwfl_frame_pc(frame, &pc, &is_activation))
		return DWARF_CB_ABORT;
	/* all frames are behind their call; the innermost is behind `syscall` */
	fill_frame(u, pc - 1, &w->frame[w->nr_frames++]);
	return DWARF_CB_OK;
}

/* ---- call paths that were met before --------------------------------------------------------- */

static bool frames_fits(const struct shape *s, const struct deadlock_wait *w, const uint8_t *stack)
{
	uint64_t address;
	if (s->pc != w->pc)
		return false;
	for (size_t i = 1; i < s->nr_frames; i++) {
		memcpy(&address, stack + s->offset[i], sizeof address);
		if (address != s->address[i])
			return false;
	}
	return true;
}

static bool copy_shape(const struct unwinder *u, const uint8_t *stack, struct deadlock_wait *w)
{
	for (size_t i = 0; i < u->nr_shapes; i++) {
		if (!frames_fits(&u->shape[i], w, stack))
			continue;
		memcpy(w->frame, u->shape[i].frame, sizeof w->frame);
		w->nr_frames = u->shape[i].nr_frames;
		return true;
	}
	return false;
}

/* Only if every return address was seen on the stack. */
static void keep_shape(struct unwinder *u, const uint8_t *stack, const struct deadlock_wait *w)
{
	if (!u->shape || u->nr_shapes == SHAPES_MAX || w->nr_frames < 2)
		return;
	struct shape *s = &u->shape[u->nr_shapes];
	size_t at = 0;
	*s = (struct shape){.pc = w->pc, .nr_frames = w->nr_frames};
	for (size_t i = 1; i < w->nr_frames; i++) {
		uint64_t address = 0;
		for (; at + sizeof address <= SHAPE_BYTES && address != w->frame[i].pc + 1; at += 8)
			memcpy(&address, stack + at, sizeof address);
		if (address != w->frame[i].pc + 1)
			return;
		s->address[i] = address;
		s->offset[i] = (uint16_t)(at - 8);
	}
	memcpy(s->frame, w->frame, sizeof s->frame);
	u->nr_shapes++;
}

void deadlock_frames_of(
	struct deadlock_world *world, struct deadlock_process *p, struct deadlock_wait *w)
{
	struct unwinder *u = unwinder_of(world, p);
	w->nr_frames = 0;
	if (!u || !u->dwfl)
		return;
	uint8_t stack[SHAPE_BYTES];
	bool has_stack = deadlock_world_read(world, p->pid, w->sp, stack, sizeof stack);
	if (has_stack && copy_shape(u, stack, w))
		return;
	u->wait = w;
	u->has_chunk = false;
	/* fails where it was attached before: that is what we want */
	(void)dwfl_attach_state(u->dwfl, NULL, p->pid, &thread_callbacks, u);
	(void)dwfl_getthread_frames(u->dwfl, w->thread.tid, on_frame, u);
	if (has_stack)
		keep_shape(u, stack, w);
	if (!w->nr_frames && w->pc)
		fill_frame(u, w->pc - 1, &w->frame[w->nr_frames++]);
}

/* ---- symbols of modules ---------------------------------------------------------------------- */

struct wanted_symbol {
	const char *module, *symbol;
	uint64_t address;
};

static int look_in_module(
	Dwfl_Module *module, void **userdata, const char *path, Dwarf_Addr base, void *arg)
{
	struct wanted_symbol *w = arg;
	const char *name = frames_base_name(path ? path : "");
	(void)userdata, (void)base;
	name += strncmp(name, "lib", 3) ? 0 : 3;
	if (strncmp(name, w->module, strlen(w->module)) != 0)
		return DWARF_CB_OK;
	const int nr = dwfl_module_getsymtab(module);
	for (int i = 1; i < nr; i++) {
		GElf_Sym symbol;
		GElf_Addr address = 0;
		const char *found =
			dwfl_module_getsym_info(module, i, &symbol, &address, NULL, NULL, NULL);
		if (found && symbol.st_shndx != SHN_UNDEF && !strcmp(found, w->symbol)) {
			w->address = address;
			return DWARF_CB_ABORT;
		}
	}
	return DWARF_CB_OK;
}

bool deadlock_symbol_of(struct deadlock_world *w, struct deadlock_process *p, const char *name,
	const char *symbol, uint64_t *ret)
{
	struct unwinder *u = unwinder_of(w, p);
	struct wanted_symbol wanted = {.module = name, .symbol = symbol};
	if (u && u->dwfl)
		(void)dwfl_getmodules(u->dwfl, look_in_module, &wanted, 0);
	*ret = wanted.address;
	return wanted.address != 0;
}

/* ---- variables ------------------------------------------------------------------------------- */

/* What a file leaves to be zero lies behind what is mapped of it, in memory without a name. */
static Dwfl_Module *frames_module_of(struct unwinder *u, uint64_t address)
{
	Dwfl_Module *module = dwfl_addrmodule(u->dwfl, address);
	const struct os_region *r = deadlock_process_region(u->world, u->process, address);
	return !module && r && !*r->path && r > u->process->region && r[-1].end == r->start
		       ? dwfl_addrmodule(u->dwfl, r->start - 1)
		       : module;
}

/* The guard of a static object in a function: the object's own name tells more. */
static const char *name_of_symbol(struct unwinder *u, const char *name)
{
	static const char guard[] = "guard variable for ";
	name = frames_readable(u, name);
	return strncmp(name, guard, sizeof guard - 1) ? name : name + sizeof guard - 1;
}

static bool name_variable(struct unwinder *u, uint64_t address, struct base_str *ret)
{
	GElf_Off offset = 0;
	GElf_Sym symbol;
	Dwfl_Module *module = u && u->dwfl ? frames_module_of(u, address) : NULL;
	const char *name =
		module ? dwfl_module_addrinfo(module, address, &offset, &symbol, NULL, NULL, NULL)
		       : NULL;
	if (!name || GELF_ST_TYPE(symbol.st_info) != STT_OBJECT || offset >= symbol.st_size)
		return false;
	base_str_add(ret, name_of_symbol(u, name));
	if (offset)
		base_str_addf(ret, "+0x%" PRIx64, (uint64_t)offset);
	return true;
}

void deadlock_name_of_data(struct deadlock_world *w, struct deadlock_process *p, uint64_t address,
	struct base_str *ret)
{
	const struct os_region *r = deadlock_process_region(w, p, address);
	if (name_variable(unwinder_of(w, p), address, ret))
		return;
	base_str_addf(ret, "0x%" PRIx64, address);
	if (!r)
		return;
	if (!strcmp(r->path, "[heap]") || (!*r->path && !r->shared))
		base_str_add(ret, " (allocated memory)");
	else if (!strncmp(r->path, "[stack", 6))
		base_str_add(ret, " (on the main thread's stack)");
	else if (r->shared)
		base_str_addf(ret, " (shared memory%s%s)", *r->path ? " " : "", r->path);
	else
		base_str_addf(ret, " (in %s)", frames_base_name(r->path));
}
