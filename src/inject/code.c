/* SPDX-License-Identifier: Apache-2.0 */
/*
 * code.c - may a thread that computes be led away where it stands?
 *
 * It may where nothing of libc, of the loader or of another allocator is half done: all that it is in the middle of is
 * the program's own, which neither pthread_create() nor dlopen() needs. So its whole stack is unwound, by .eh_frame
 * alone. The functions at its outer end are libc's, as those of every thread: they began it. What cannot be unwound to
 * its end is refused.
 */
#include "inject/private.h"
#include "symbol/symbol.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { FRAMES_MAX = 4096, STACK_BYTES_MAX = 1 << 20, PATH_BYTES = 4096, FILES_MAX = 1024 };

/* A mapping of code. What it is of is looked up when a frame is in it. */
struct code_map {
	uint64_t start, end;
	uint64_t bias;
	struct symbol_unwinder *unwinder; /* NULL: it cannot be unwound */
	bool is_libc;                     /* ... or the loader, or it has an allocator */
};

static bool code_has(const struct os_region *r, const char *part)
{
	return memmem(r->path, r->path_length, part, strlen(part)) != NULL;
}

/* The file that is mapped, by a path of ours. False: there is another one, or none. */
static bool code_path(pid_t pid, const struct os_region *r, char path[PATH_BYTES])
{
	struct stat st;
	int n = snprintf(
		path, PATH_BYTES, "/proc/%d/root%.*s", (int)pid, (int)r->path_length, r->path);
	return *r->path == '/' && n > 0 && n < PATH_BYTES && !stat(path, &st) &&
	       st.st_ino == r->inode;
}

static void code_look_up(
	const struct inject_memory *m, const struct os_region *r, struct code_map *map)
{
	static const char *const allocators[] = {"malloc", "calloc"};
	uint64_t found[BASE_COUNT(allocators)] = {0};
	struct symbol_extent extent;
	char path[PATH_BYTES];
	*map = (struct code_map){.start = r->start, .end = r->end};
	if (!code_path(m->pid, r, path) || !symbol_elf_extent(path, r->start, r->offset, &extent) ||
		extent.copy || !symbol_elf_dynamic(path, allocators, found, BASE_COUNT(found)))
		return;
	map->is_libc = found[0] || found[1] || code_has(r, "/ld-linux");
	map->bias = extent.bias;
	map->unwinder = symbol_unwinder_open(path);
}

static const struct code_map *code_map_at(struct inject_code *c, uint64_t at)
{
	const char *text = c->memory->maps;
	struct os_region r;
	for (size_t i = 0; i < c->nr; i++)
		if (at >= c->map[i].start && at < c->map[i].end)
			return &c->map[i];
	while (os_parse_region(&text, &r)) {
		if (at < r.start || at >= r.end || !r.executable || c->nr == FILES_MAX ||
			base_grow(&c->map, &c->capacity, c->nr + 1, sizeof *c->map) != BASE_OK)
			continue;
		code_look_up(c->memory, &r, &c->map[c->nr]);
		return &c->map[c->nr++];
	}
	return NULL;
}

bool inject_code_init(struct inject_code *c, const struct inject_memory *m)
{
	*c = (struct inject_code){.memory = m, .stack = base_alloc(STACK_BYTES_MAX)};
	return c->stack != NULL;
}

void inject_code_fini(struct inject_code *c)
{
	for (size_t i = 0; i < c->nr; i++)
		symbol_unwinder_close(c->map[i].unwinder);
	base_free(c->map);
	base_free(c->stack);
	*c = (struct inject_code){0};
}

bool inject_code_take(struct inject_code *c, const struct user_regs_struct *r)
{
	const uint64_t value[SYMBOL_REGISTERS_NR] = {r->rax, r->rdx, r->rcx, r->rbx, r->rsi, r->rdi,
		r->rbp, r->rsp, r->r8, r->r9, r->r10, r->r11, r->r12, r->r13, r->r14, r->r15,
		r->rip};
	uint64_t start, end;
	if (!inject_region(c->memory, r->rsp, &start, &end))
		return false;
	size_t bytes = end - r->rsp < STACK_BYTES_MAX ? (size_t)(end - r->rsp) : STACK_BYTES_MAX;
	c->state = (struct symbol_frame_state){.known = (UINT32_C(1) << SYMBOL_REGISTERS_NR) - 1,
		.stack = c->stack,
		.stack_begin = r->rsp,
		.stack_bytes = bytes};
	memcpy(c->state.value, value, sizeof value);
	return inject_read(c->memory, r->rsp, c->stack, bytes);
}

/* From the inside: the program's functions, libc's that began the thread, and the program's entry. */
bool inject_code_is_own(struct inject_code *c)
{
	enum { INNER, BEGINNING, ENTRY } where = INNER;
	for (unsigned i = 0; i < FRAMES_MAX; i++) {
		uint64_t at = c->state.value[SYMBOL_REGISTER_RIP] - c->state.is_return;
		const struct code_map *map = code_map_at(c, at);
		if (!map || !map->unwinder ||
			(map->is_libc ? i == 0 || where == ENTRY : where == ENTRY))
			return false;
		if (map->is_libc)
			where = BEGINNING;
		else if (where == BEGINNING)
			where = ENTRY;
		switch (symbol_unwinder_step(map->unwinder, map->bias, &c->state)) {
		case SYMBOL_UNWOUND_outermost:
			return where != INNER;
		case SYMBOL_UNWOUND_nothing:
			return false;
		case SYMBOL_UNWOUND_caller:
			break;
		}
	}
	return false;
}
