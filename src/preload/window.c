/* SPDX-License-Identifier: Apache-2.0 */
/*
 * window.c - where the ring lies in this process.
 *
 * What we map counts as the program's: against a limit of its address space, and mlockall() keeps
 * all of it in memory. So the head and the first blocks are mapped, which are those that are handed
 * out first; the next ones, as many again as there are, when one of them is handed out. That needs
 * neither a descriptor nor the ring's name, which a chroot or another user may have put out of
 * reach: the kernel maps what lies behind a page that is mapped. A ring with tables is mapped whole.
 */
#include "preload/preload.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/syscall.h>

enum {
	WINDOW_BLOCKS = 64, /* of the first one; of the second, too, then twice as many each */
	WINDOWS_MAX = 27,   /* for all that a head can say */
};

/* A window's block n lies behind `skip` bytes. `bytes` stay ours for ever once a late recording had
 * them, for a thread may look there. */
static struct window {
	char *start;    /* NULL: not mapped (now) */
	char *reserved; /* zeros, of a recording that is over */
	uint64_t bytes;
} window[WINDOWS_MAX] PRELOAD_EARLY;

static unsigned window_of_block(uint32_t block)
{
	return block < WINDOW_BLOCKS ? 0 : 32 - (unsigned)__builtin_clz(block / WINDOW_BLOCKS);
}

static uint32_t window_first(unsigned nr)
{
	return nr ? (uint32_t)WINDOW_BLOCKS << (nr - 1) : 0;
}

/* What precedes a window's first block: the head, or the last page of the window before. */
static uint64_t window_skip(unsigned nr)
{
	return nr ? PRELOAD_PAGE : ring_blocks_offset(preload_ring.nr_blocks);
}

static uint64_t window_size_bytes(unsigned nr)
{
	uint32_t first = window_first(nr), left = preload_ring.nr_blocks - first;
	uint32_t blocks = nr ? first : WINDOW_BLOCKS;
	return window_skip(nr) + (uint64_t)(blocks < left ? blocks : left) * RING_BLOCK_BYTES;
}

static bool window_failed(long address)
{
	return address < 0 && address >= -PRELOAD_PAGE;
}

struct ring_head *preload_window_begin(long fd, uint64_t file_bytes)
{
	uint64_t bytes = preload_ring.nr_tables ? file_bytes : window_size_bytes(0);
	for (unsigned i = 0; i < WINDOWS_MAX; i++)
		if (window[i].start)
			window[i].reserved = window[i].start, window[i].start = NULL;
	bool again = window[0].reserved && bytes <= window[0].bytes;
	long address = preload_syscall(SYS_mmap, again ? (long)window[0].reserved : 0, (long)bytes,
		PROT_READ | PROT_WRITE, MAP_SHARED | (again ? MAP_FIXED : 0), fd, 0);
	if (window_failed(address))
		return NULL;
	window[0].start = (char *)address;
	window[0].bytes = again ? window[0].bytes : bytes;
	return (struct ring_head *)address;
}

/* From a mapping of a page more is mapped, if the file has it: old size 0. */
static bool window_open(unsigned nr)
{
	struct window *w = &window[nr];
	char *none = NULL, *page = window[nr - 1].start + window_size_bytes(nr - 1) - PRELOAD_PAGE;
	uint64_t bytes = window_size_bytes(nr);
	bool again = w->reserved && bytes <= w->bytes;
	long address = preload_syscall(SYS_mremap, (long)page, 0, (long)bytes,
		MREMAP_MAYMOVE | (again ? MREMAP_FIXED : 0), again ? (long)w->reserved : 0, 0);
	if (window_failed(address))
		return false;
	if (__atomic_compare_exchange_n(
		    &w->start, &none, (char *)address, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
		w->bytes = again ? w->bytes : bytes;
	else if (!again) /* another thread was as fast */
		preload_syscall(SYS_munmap, address, (long)bytes, 0, 0, 0, 0);
	return true;
}

struct ring_block *preload_window_block(uint32_t block)
{
	unsigned nr = preload_ring.nr_tables ? 0 : window_of_block(block), i = nr;
	while (i && !__atomic_load_n(&window[i].start, __ATOMIC_ACQUIRE))
		i--;
	if (!window[i].start)
		return NULL;
	for (; i < nr; i++)
		if (preload_sandbox.no_calls || !window_open(i + 1))
			return NULL;
	return (void *)(window[nr].start + window_skip(nr) +
			(uint64_t)(block - window_first(nr)) * RING_BLOCK_BYTES);
}

void preload_window_open_all(void)
{
	if (preload_ring.nr_blocks)
		preload_window_block(preload_ring.nr_blocks - 1);
}

void preload_window_end(void)
{
	for (unsigned i = 0; i < WINDOWS_MAX; i++) {
		struct window *w = &window[i];
		if (w->start)
			(void)preload_syscall(SYS_mmap, (long)w->start, (long)w->bytes,
				PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
	}
}
