/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_deadlock_python.c - any bytes as the memory of a Python interpreter: its threads' frames are
 * texts, or there are none. The first byte chooses the version; the rest is memory at MEMORY, where
 * _PyRuntime is.
 */
#include "deadlock/facts/python.c" // NOLINT(bugprone-suspicious-include)

enum { MEMORY = 0x10000 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes);

/* ---- what the rest would do: the world is the input ------------------------------------------ */

struct deadlock_world {
	struct base_arena *arena;
	const uint8_t *bytes;
	size_t nr;
	uint8_t minor;
};

struct base_arena *deadlock_world_arena(struct deadlock_world *w)
{
	return w->arena;
}

bool deadlock_world_read(
	const struct deadlock_world *w, pid_t pid, uint64_t address, void *buf, size_t size)
{
	const uint64_t version = (uint64_t)0x0300 << 16 | (uint64_t)w->minor << 16;
	(void)pid;
	if (address == 1 && size == sizeof version) { /* Py_Version */
		memcpy(buf, &version, sizeof version);
		return true;
	}
	if (address < MEMORY || address - MEMORY > w->nr || size > w->nr - (address - MEMORY))
		return false;
	memcpy(buf, w->bytes + (address - MEMORY), size);
	return true;
}

bool deadlock_symbol_of(struct deadlock_world *w, struct deadlock_process *p, const char *name,
	const char *symbol, uint64_t *ret)
{
	(void)w, (void)p, (void)name;
	*ret = !strcmp(symbol, "_PyRuntime") ? MEMORY : 1;
	return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes)
{
	if (!size_bytes)
		return 0;
	struct deadlock_world w = {.arena = base_arena_new(1 << 24),
		.bytes = data + 1,
		.nr = size_bytes - 1,
		.minor = (uint8_t)(11 + *data % 4)};
	struct deadlock_process p = {.pid = 1};
	struct deadlock_wait wait = {.thread = {.tid = 7}};
	BASE_ASSERT(w.arena != NULL);
	deadlock_python_frames(&w, &p, &wait);
	for (size_t i = 0; i < wait.nr_python; i++)
		BASE_ASSERT(*wait.python[i].function && *wait.python[i].file);
	base_arena_free(w.arena);
	return 0;
}
