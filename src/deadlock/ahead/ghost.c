/* SPDX-License-Identifier: Apache-2.0 */
/* ghost.c - making a ghost, driving it by ptrace, and copying pages into it. */
#include "deadlock/ahead/ghost.h"

#include "deadlock/ahead/ghost_image.h"
#include "deadlock/ahead/source.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE_BITS (~(uint64_t)(DEADLOCK_GHOST_PAGE_BYTES - 1))
/* Where user space ends with four-level page tables; nothing is higher unless it asked for it. */
#define TOP 0x7ffffffff000u
/* Where mappings of our own choice are looked for: above what programs are linked to. */
#define OWN_ADDRESS 0x200000000000u

enum { VDSO_AREAS_MAX = 6, STACK_BYTES = 32768, STACK_GROWS_BYTES = 1 << 20 };

struct range {
	uint64_t lo, hi;
};

struct deadlock_ghost {
	pid_t pid;
	int memory_fd;                 /* /proc/GHOST/mem: writes code, too */
	struct deadlock_source source; /* the copied process's memory */
	bool is_alive, is_dirty;
	struct user_regs_struct registers;
	struct deadlock_image image;
	int signal;
	uint64_t fault_address;

	struct range vdso[VDSO_AREAS_MAX]; /* the kernel's areas, by address, where they are now */
	size_t nr_vdso;

	const struct deadlock_process *process;
	/* What is the ghost's own business by now: copied, mapped or unmapped by itself. Sorted,
	 * apart from each other. */
	struct range known[DEADLOCK_GHOST_RANGES_MAX];
	size_t nr_known;
	uint64_t copied_bytes, own_next;
	bool has_watches;
	bool changed_code; /* by itself, what it has of files may not be as in the process */
	uint32_t nr_chunks;
	uint8_t chunk[DEADLOCK_GHOST_CHUNK_BYTES];
	uint8_t default_xstate[8192];
	size_t default_xstate_size;
};

/* ---- being born ------------------------------------------------------------------------------ */

struct birth {
	int image_fd;
	pid_t parent;
	int error;
};

/* Runs on memory that it shares with us, in a process of its own, until it has become the image. */
static int be_born(void *argument)
{
	struct birth *b = argument;
	char *words[] = {NULL};
	const struct rlimit none = {0, 0},
			    space = {DEADLOCK_GHOST_LIMIT_BYTES, DEADLOCK_GHOST_LIMIT_BYTES};
	const struct timeval tick = {.tv_usec = DEADLOCK_GHOST_TICK_NS / 1000};
	const struct itimerval ticks = {.it_interval = tick, .it_value = tick};
	const struct sigaction by_default = {.sa_handler = SIG_DFL};
	sigset_t ghost_empty;
	for (int i = 1; i < _NSIG; i++)
		(void)sigaction(i, &by_default, NULL);
	(void)sigemptyset(&ghost_empty);
	/* a process group of its own: the terminal's signals are not for it */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) || getppid() != b->parent || setpgid(0, 0) ||
		setrlimit(RLIMIT_CORE, &none) || setrlimit(RLIMIT_FSIZE, &none) ||
		setrlimit(RLIMIT_AS, &space) || setitimer(ITIMER_PROF, &ticks, NULL) ||
		ptrace(PTRACE_TRACEME, 0, NULL, NULL) ||
		syscall(__NR_close_range, 0, ~0u, CLOSE_RANGE_CLOEXEC) ||
		sigprocmask(SIG_SETMASK, &ghost_empty, NULL)) {
		b->error = errno ? errno : ECHILD;
		return 1;
	}
	(void)syscall(SYS_execveat, b->image_fd, "", words, words, AT_EMPTY_PATH);
	b->error = errno;
	return 1;
}

static bool ghost_wait_for(pid_t pid, int *ret_status)
{
	pid_t got;
	do
		got = waitpid(pid, ret_status, __WALL);
	while (got < 0 && errno == EINTR);
	return got == pid && WIFSTOPPED(*ret_status);
}

static enum base_status ghost_start(struct deadlock_ghost *g, struct base_err *err)
{
	struct birth birth = {.parent = getpid()};
	uint8_t *stack = base_alloc(STACK_BYTES);
	sigset_t all, before;
	if (!stack)
		return base_fail(err, BASE_ERR_NOMEM, "a ghost's first stack");
	birth.image_fd = memfd_create("longpole-ghost", MFD_CLOEXEC);
	if (birth.image_fd < 0 || write(birth.image_fd, g->image.bytes, DEADLOCK_IMAGE_BYTES) !=
					  DEADLOCK_IMAGE_BYTES) {
		base_free(stack);
		return base_fail_errno(err, errno, "a file in memory for the ghost's program");
	}
	(void)sigfillset(&all);
	(void)pthread_sigmask(
		SIG_SETMASK, &all, &before); /* no handler of ours runs in the child */
	g->pid = clone(be_born, stack + STACK_BYTES, CLONE_VM | CLONE_VFORK | SIGCHLD, &birth);
	int error = g->pid < 0 ? errno : birth.error;
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	(void)close(birth.image_fd);
	base_free(stack);
	if (error && g->pid > 0)
		(void)waitpid(g->pid, NULL, __WALL);
	if (error) {
		g->pid = -1;
		return base_fail_errno(err, error, "starting a ghost");
	}
	g->is_alive = true;
	return BASE_OK;
}

static bool get_registers(struct deadlock_ghost *g)
{
	struct iovec io = {&g->registers, sizeof g->registers};
	g->is_dirty = false;
	return ptrace(PTRACE_GETREGSET, g->pid, NT_PRSTATUS, &io) == 0;
}

static bool ghost_set_registers(struct deadlock_ghost *g, const struct user_regs_struct *registers)
{
	struct iovec io = {(void *)registers, sizeof *registers};
	return ptrace(PTRACE_SETREGSET, g->pid, NT_PRSTATUS, &io) == 0;
}

static bool set_xstate(struct deadlock_ghost *g, const void *xstate, size_t size)
{
	struct iovec io = {(void *)xstate, size};
	return ptrace(PTRACE_SETREGSET, g->pid, NT_X86_XSTATE, &io) == 0;
}

/* It is dead, or not to be trusted any more. */
static void ghost_bury(struct deadlock_ghost *g)
{
	if (!g->is_alive)
		return;
	g->is_alive = false;
	(void)kill(g->pid, SIGKILL);
	int status = 0;
	pid_t got;
	do
		got = waitpid(g->pid, &status, __WALL);
	while ((got < 0 && errno == EINTR) || (got == g->pid && WIFSTOPPED(status)));
	g->pid = -1;
}

/* Signals that an instruction of its own may raise. Others come from outside, and do not reach it.
 */
static bool is_own_doing(int signal)
{
	return signal == SIGTRAP || signal == SIGSEGV || signal == SIGBUS || signal == SIGILL ||
	       signal == SIGFPE || signal == SIGSYS;
}

/* Runs it to its next trap, at `rip`. Ticks of its timer are nobody's business here. */
static bool run_to_trap(struct deadlock_ghost *g, uint64_t rip)
{
	int status = 0;
	for (;;) {
		if (ptrace(PTRACE_CONT, g->pid, NULL, NULL) || !ghost_wait_for(g->pid, &status))
			return false;
		if (!is_own_doing(WSTOPSIG(status)))
			continue;
		return WSTOPSIG(status) == SIGTRAP && get_registers(g) && g->registers.rip == rip;
	}
}

/* A system call of the ghost's own. False: it is no more. Its registers stay as they are here. */
static bool call(struct deadlock_ghost *g, long number, const uint64_t arg[6], int64_t *ret)
{
	const struct user_regs_struct before = g->registers;
	struct user_regs_struct r = before;
	r.rip = g->image.call;
	r.rax = (unsigned long long)number;
	r.orig_rax = (unsigned long long)-1; /* the kernel shall restart nothing */
	r.rdi = arg[0];
	r.rsi = arg[1];
	r.rdx = arg[2];
	r.r10 = arg[3];
	r.r8 = arg[4];
	r.r9 = arg[5];
	r.eflags &= ~0x100u; /* no trap flag */
	r.cs = 0x33;
	r.ss = 0x2b;
	if (!g->is_alive || !ghost_set_registers(g, &r) || !run_to_trap(g, g->image.called)) {
		ghost_bury(g);
		*ret = -ESRCH;
		return false;
	}
	*ret = (int64_t)g->registers.rax;
	g->registers = before;
	g->is_dirty = true;
	return true;
}

static int64_t ghost_unmap(struct deadlock_ghost *g, uint64_t lo, uint64_t hi)
{
	int64_t result = 0;
	if (lo < hi)
		(void)call(g, SYS_munmap, (uint64_t[6]){lo, hi - lo}, &result);
	return result;
}

static bool find_vdso(struct deadlock_ghost *g)
{
	char text[8192];
	const char *rest = text;
	struct os_region region;
	if (os_proc_read(g->pid, "maps", text, sizeof text) <= 0)
		return false;
	while (os_parse_region(&rest, &region))
		if (region.path_length > 2 && region.path[0] == '[' && region.path[1] == 'v' &&
			region.end <= TOP && g->nr_vdso < VDSO_AREAS_MAX)
			g->vdso[g->nr_vdso++] = (struct range){region.start, region.end};
	return true;
}

/* Everything but the image's page, the kernel's areas, and what is kept (sorted). */
static bool empty_but(struct deadlock_ghost *g, const struct range *kept, size_t nr_kept)
{
	uint64_t from = DEADLOCK_IMAGE_ADDRESS + DEADLOCK_IMAGE_BYTES;
	for (size_t k = 0, v = 0; k < nr_kept || v < g->nr_vdso;) {
		const bool is_kept = v == g->nr_vdso || (k < nr_kept && kept[k].lo < g->vdso[v].lo);
		const struct range *next = is_kept ? &kept[k++] : &g->vdso[v++];
		if (ghost_unmap(g, from, next->lo))
			return false;
		from = next->hi;
	}
	return ghost_unmap(g, from, TOP) == 0;
}

static bool ghost_empty(struct deadlock_ghost *g)
{
	return empty_but(g, NULL, 0);
}

static enum base_status ghost_set_up(struct deadlock_ghost *g, struct base_err *err)
{
	int status = 0;
	char path[40];
	if (!ghost_wait_for(g->pid, &status) || WSTOPSIG(status) != SIGTRAP ||
		ptrace(PTRACE_SETOPTIONS, g->pid, NULL,
			(void *)(uintptr_t)(PTRACE_O_EXITKILL | PTRACE_O_TRACESYSGOOD)))
		return base_fail(err, BASE_ERR_ENV, "a ghost does not start (ptrace is refused?)");
	if (!run_to_trap(g, g->image.ready) || g->registers.rax)
		return base_fail(err, BASE_ERR_ENV, "a ghost's seccomp filter is refused");
	(void)snprintf(path, sizeof path, "/proc/%d/mem", (int)g->pid);
	g->memory_fd = open(path, O_RDWR | O_CLOEXEC);
	if (g->memory_fd < 0)
		return base_fail_errno(err, errno, "%s", path);
	struct iovec io = {g->default_xstate, sizeof g->default_xstate};
	if (ptrace(PTRACE_GETREGSET, g->pid, NT_X86_XSTATE, &io) == 0)
		g->default_xstate_size = io.iov_len;
	if (!find_vdso(g) || !ghost_empty(g))
		return base_fail(err, BASE_ERR_ENV, "a ghost's memory cannot be emptied");
	return BASE_OK;
}

enum base_status deadlock_ghost_new(struct deadlock_ghost **ret, struct base_err *err)
{
	struct deadlock_ghost *g = base_alloc(sizeof *g);
	*ret = NULL;
	if (!g)
		return base_fail(err, BASE_ERR_NOMEM, "a ghost");
	g->memory_fd = g->source.pagemap_fd = -1;
	deadlock_image_make(&g->image);
	enum base_status status = ghost_start(g, err);
	if (status == BASE_OK)
		status = ghost_set_up(g, err);
	if (status != BASE_OK)
		g = deadlock_ghost_free(g);
	*ret = g;
	return status;
}

struct deadlock_ghost *deadlock_ghost_free(struct deadlock_ghost *g)
{
	if (!g)
		return NULL;
	ghost_bury(g);
	if (g->memory_fd >= 0)
		(void)close(g->memory_fd);
	deadlock_source_close(&g->source);
	base_free(g);
	return NULL;
}

bool deadlock_ghost_is_alive(const struct deadlock_ghost *g)
{
	return g->is_alive;
}

pid_t deadlock_ghost_pid(const struct deadlock_ghost *g)
{
	return g->pid;
}

/* ---- becoming another process ---------------------------------------------------------------- */

static bool is_vdso(const struct os_region *r)
{
	return r->path_length > 2 && r->path[0] == '[' && r->path[1] == 'v';
}

/* Where the next region begins, or `hi`: from an address that is in none. */
static uint64_t gap_end(const struct deadlock_process *p, uint64_t address, uint64_t hi)
{
	size_t low = BASE_PARTITION(i, p->nr_regions, p->region[i].start <= address);
	return low < p->nr_regions && p->region[low].start < hi ? p->region[low].start : hi;
}

static bool move_vdso(struct deadlock_ghost *g, uint64_t to)
{
	const uint64_t from = g->vdso[0].lo;
	for (size_t i = 0; i < g->nr_vdso; i++) {
		struct range *r = &g->vdso[i];
		const uint64_t size = r->hi - r->lo, target = to + (r->lo - from);
		int64_t result = 0;
		if (!call(g, SYS_mremap,
			    (uint64_t[6]){r->lo, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, target},
			    &result) ||
			result != (int64_t)target)
			return false;
		*r = (struct range){target, target + size};
	}
	return true;
}

/* The kernel's code for reading clocks goes to where the process has it. It is the same code. */
static bool place_vdso(struct deadlock_ghost *g)
{
	uint64_t to = 0;
	for (size_t i = 0; i < g->process->nr_regions && !to; i++)
		if (is_vdso(&g->process->region[i]))
			to = g->process->region[i].start;
	if (!g->nr_vdso || !to || to > TOP || g->vdso[0].lo == to)
		return true;
	const uint64_t from = g->vdso[0].lo, size = g->vdso[g->nr_vdso - 1].hi - from;
	if (to < from + size && from < to + size && !move_vdso(g, OWN_ADDRESS))
		return false;
	/* a kernel that seals it lets no clock be read, which is better than no copy */
	return move_vdso(g, to) || g->vdso[0].lo == from;
}

/* Code and constants of files: the same in every copy of a process. */
static bool is_lasting(const struct os_region *r)
{
	return r && r->inode && !r->writable && !r->shared;
}

/* The thread that was copied before. */
struct former {
	const struct deadlock_process *process;
	struct deadlock_source source;
};

/* Is what the ghost has of [lo, hi) of this region also what the process has there? Another process
 * must have the same file there, and neither may have changed its pages. */
static bool lasts(const struct deadlock_ghost *g, const struct former *f, const struct os_region *r,
	uint64_t lo, uint64_t hi)
{
	if (!is_lasting(r) || f->process == g->process)
		return is_lasting(r);
	const struct os_region *old = deadlock_region_at(f->process, lo);
	return is_lasting(old) && old->start == r->start && old->end == r->end &&
	       old->offset == r->offset && old->device == r->device && old->inode == r->inode &&
	       old->readable == r->readable && old->executable == r->executable &&
	       deadlock_source_is_file(&f->source, lo, hi) &&
	       deadlock_source_is_file(&g->source, lo, hi);
}

/* What it knows and the process has just so. */
static size_t find_lasting(
	const struct deadlock_ghost *g, const struct former *f, struct range *kept)
{
	size_t nr = 0;
	for (size_t i = 0; i < g->nr_known; i++) {
		const struct range *known = &g->known[i];
		for (uint64_t at = known->lo, end; at < known->hi; at = end) {
			const struct os_region *r = deadlock_region_at(g->process, at);
			end = r ? r->end : gap_end(g->process, at, known->hi);
			end = end < known->hi ? end : known->hi;
			if (nr < DEADLOCK_GHOST_RANGES_MAX && lasts(g, f, r, at, end))
				kept[nr++] = (struct range){at, end};
		}
	}
	return nr;
}

/* All that it knew and that may have changed, for a new copy. */
static bool ghost_forget(struct deadlock_ghost *g, const struct former *f)
{
	struct range *kept = g->changed_code ? NULL : base_alloc(sizeof g->known);
	const size_t nr_kept = kept ? find_lasting(g, f, kept) : 0;
	const bool good = empty_but(g, kept, nr_kept);
	if (kept)
		memcpy(g->known, kept, nr_kept * sizeof *kept);
	g->nr_known = good ? nr_kept : 0;
	base_free(kept);
	return good;
}

bool deadlock_ghost_begin(
	struct deadlock_ghost *g, const struct deadlock_process *p, const char **why)
{
	struct former former = {g->process, g->source};
	g->process = p;
	deadlock_source_open(&g->source, p->pid);
	*why = "the ghost's memory cannot be emptied";
	const bool is_empty = g->is_alive && (!former.process || ghost_forget(g, &former));
	deadlock_source_close(&former.source);
	if (!is_empty)
		return false;
	g->copied_bytes = g->nr_chunks = 0;
	g->own_next = OWN_ADDRESS + (1u << 20);
	g->changed_code = false;
	*why = "the process has something where the ghost's own page is";
	if (deadlock_region_at(p, DEADLOCK_IMAGE_ADDRESS))
		return false;
	*why = "the kernel's page for clocks cannot be moved";
	if (!place_vdso(g))
		return false;
	for (unsigned i = 0; g->has_watches && i < DEADLOCK_GHOST_WATCHES; i++)
		(void)deadlock_ghost_watch(g, i, 0, 0);
	g->has_watches = false;
	(void)set_xstate(g, g->default_xstate, g->default_xstate_size);
	*why = "";
	return true;
}

/* ---- which addresses are the ghost's own business -------------------------------------------- */

/* The first range that ends after `address`. */
static size_t known_after(const struct deadlock_ghost *g, uint64_t address)
{
	size_t lo = 0, hi = g->nr_known;
	while (lo < hi) {
		size_t middle = lo + (hi - lo) / 2;
		if (g->known[middle].hi <= address)
			lo = middle + 1;
		else
			hi = middle;
	}
	return lo;
}

static bool ghost_is_known(const struct deadlock_ghost *g, uint64_t address)
{
	size_t i = known_after(g, address);
	return i < g->nr_known && g->known[i].lo <= address;
}

/* [*lo, *hi) around `address`, which is not known, becomes the part of it that is not known. */
static void clip_to_unknown(
	const struct deadlock_ghost *g, uint64_t address, uint64_t *lo, uint64_t *hi)
{
	size_t i = known_after(g, address);
	if (i < g->nr_known && g->known[i].lo < *hi)
		*hi = g->known[i].lo;
	if (i && g->known[i - 1].hi > *lo)
		*lo = g->known[i - 1].hi;
}

static bool know(struct deadlock_ghost *g, uint64_t lo, uint64_t hi)
{
	/* all ranges that touch [lo, hi) become one */
	size_t first = known_after(g, lo ? lo - 1 : 0), last = first;
	while (last < g->nr_known && g->known[last].lo <= hi) {
		lo = g->known[last].lo < lo ? g->known[last].lo : lo;
		hi = g->known[last].hi > hi ? g->known[last].hi : hi;
		last++;
	}
	if (first == last && g->nr_known == DEADLOCK_GHOST_RANGES_MAX)
		return false;
	memmove(&g->known[first + 1], &g->known[last], (g->nr_known - last) * sizeof *g->known);
	g->nr_known = g->nr_known - (last - first) + 1;
	g->known[first] = (struct range){lo, hi};
	return true;
}

/* ---- copying pages --------------------------------------------------------------------------- */

/* What was read of a chunk goes into the ghost. */
static bool write_pages(struct deadlock_ghost *g, uint64_t lo, uint32_t pages)
{
	for (unsigned i = 0; pages >> i;) {
		unsigned n = 0;
		while (pages >> (i + n) & 1)
			n++;
		const size_t from = (size_t)i * DEADLOCK_GHOST_PAGE_BYTES,
			     size = (size_t)n * DEADLOCK_GHOST_PAGE_BYTES;
		if (n && pwrite(g->memory_fd, g->chunk + from, size, (off_t)(lo + from)) !=
				 (ssize_t)size)
			return false;
		i += n ? n : 1;
	}
	return true;
}

static bool is_device(const struct os_region *r)
{
	static const char device[] = "/dev/", shm[] = "/dev/shm/", zero[] = "/dev/zero";
	return r->path_length >= sizeof device - 1 &&
	       memcmp(r->path, device, sizeof device - 1) == 0 &&
	       (r->path_length < sizeof shm - 1 || memcmp(r->path, shm, sizeof shm - 1) != 0) &&
	       (r->path_length < sizeof zero - 1 || memcmp(r->path, zero, sizeof zero - 1) != 0);
}

/* Makes [lo, hi) of the ghost zeroed private memory. */
static bool map_at(struct deadlock_ghost *g, uint64_t lo, uint64_t hi, int prot)
{
	int64_t result = 0;
	const uint64_t flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE;
	if (lo < DEADLOCK_IMAGE_ADDRESS + DEADLOCK_IMAGE_BYTES || hi > TOP || lo >= hi)
		return false;
	return call(g, SYS_mmap, (uint64_t[6]){lo, hi - lo, (uint64_t)prot, flags, (uint64_t)-1, 0},
		       &result) &&
	       result == (int64_t)lo && know(g, lo, hi);
}

/* The main thread's stack grows when it is touched below its end. */
static bool grow_stack(struct deadlock_ghost *g, uint64_t address)
{
	const struct os_region *r = deadlock_region_at(g->process, address + STACK_GROWS_BYTES);
	if (!r || r->path_length != 7 || memcmp(r->path, "[stack]", 7) != 0 || address >= r->start)
		return false;
	return map_at(g, address & PAGE_BITS, (address & PAGE_BITS) + DEADLOCK_GHOST_PAGE_BYTES,
		PROT_READ | PROT_WRITE);
}

/* Copies what is around `address`. False: nothing is there, or it cannot be had. */
static bool page_in(struct deadlock_ghost *g, uint64_t address)
{
	const struct os_region *r = deadlock_region_at(g->process, address);
	if (!g->is_alive || ghost_is_known(g, address))
		return false;
	if (!r)
		return grow_stack(g, address);
	if (is_vdso(r) || is_device(r) || g->copied_bytes >= DEADLOCK_GHOST_COPIED_MAX_BYTES)
		return false;
	uint64_t lo = address & ~(uint64_t)(DEADLOCK_GHOST_CHUNK_BYTES - 1),
		 hi = lo + DEADLOCK_GHOST_CHUNK_BYTES;
	lo = lo < r->start ? r->start : lo;
	hi = hi > r->end ? r->end : hi;
	clip_to_unknown(g, address, &lo, &hi);
	const int prot = (r->readable ? PROT_READ : 0) | (r->writable ? PROT_WRITE : 0) |
			 (r->executable ? PROT_EXEC : 0);
	const unsigned nr_pages = (unsigned)((hi - lo) / DEADLOCK_GHOST_PAGE_BYTES);
	uint32_t filled = 0, bad = 0;
	deadlock_source_read(&g->source, r, lo, nr_pages, g->chunk, &filled, &bad);
	const unsigned wanted = (unsigned)((address - lo) / DEADLOCK_GHOST_PAGE_BYTES);
	if (bad >> wanted & 1)
		return false;
	/* a part that cannot be read (behind a file's end, say) stays unknown, and ends the chunk
	 */
	unsigned first = wanted, last = wanted;
	while (first && !(bad >> (first - 1) & 1))
		first--;
	while (last + 1 < nr_pages && !(bad >> (last + 1) & 1))
		last++;
	const uint64_t from = lo + (uint64_t)first * DEADLOCK_GHOST_PAGE_BYTES,
		       to = lo + (uint64_t)(last + 1) * DEADLOCK_GHOST_PAGE_BYTES;
	if (!map_at(g, from, to, prot))
		return false;
	g->nr_chunks++;
	g->copied_bytes += to - from;
	return write_pages(g, lo, filled & ((2u << last) - (1u << first)));
}

static bool page_in_all(struct deadlock_ghost *g, uint64_t address, uint64_t size)
{
	if (size > DEADLOCK_GHOST_COPIED_MAX_BYTES || address + size < address)
		return false;
	for (uint64_t at = address & PAGE_BITS; at < address + size;
		at += DEADLOCK_GHOST_PAGE_BYTES)
		if (!ghost_is_known(g, at) && !page_in(g, at))
			return false;
	return true;
}

/* The ghost, or we, change what is there: code and constants of files, too? */
static void note_change(struct deadlock_ghost *g, uint64_t lo, uint64_t hi)
{
	for (uint64_t at = lo; at < hi && !g->changed_code;) {
		const struct os_region *r = deadlock_region_at(g->process, at);
		g->changed_code = is_lasting(r);
		at = r ? r->end : gap_end(g->process, at, hi);
	}
}

bool deadlock_ghost_read(struct deadlock_ghost *g, uint64_t address, void *buf, size_t size)
{
	return size == 0 ||
	       (page_in_all(g, address, size) &&
		       pread(g->memory_fd, buf, size, (off_t)address) == (ssize_t)size);
}

bool deadlock_ghost_write(struct deadlock_ghost *g, uint64_t address, const void *buf, size_t size)
{
	note_change(g, address, address + size);
	return size == 0 ||
	       (page_in_all(g, address, size) &&
		       pwrite(g->memory_fd, buf, size, (off_t)address) == (ssize_t)size);
}

/* ---- its own mappings ------------------------------------------------------------------------ */

/* Nothing of the process, of the ghost or of the kernel is in [lo, hi). */
static bool is_free(const struct deadlock_ghost *g, uint64_t lo, uint64_t hi)
{
	for (size_t i = 0; i < g->nr_vdso; i++)
		if (g->vdso[i].lo < hi && lo < g->vdso[i].hi)
			return false;
	for (size_t i = 0; i < g->process->nr_regions; i++)
		if (g->process->region[i].start < hi && lo < g->process->region[i].end)
			return false;
	const size_t i = known_after(g, lo);
	return i == g->nr_known || g->known[i].lo >= hi;
}

int64_t deadlock_ghost_map(struct deadlock_ghost *g, uint64_t address, uint64_t size, int prot)
{
	size = (size + DEADLOCK_GHOST_PAGE_BYTES - 1) & PAGE_BITS;
	if (!size || size > DEADLOCK_GHOST_LIMIT_BYTES)
		return -ENOMEM;
	if (!address) {
		while (!is_free(g, g->own_next, g->own_next + size) && g->own_next < TOP / 2)
			g->own_next += size;
		address = g->own_next;
		g->own_next += size + DEADLOCK_GHOST_PAGE_BYTES;
	}
	note_change(g, address, address + size);
	return map_at(g, address, address + size, prot) ? (int64_t)address : -ENOMEM;
}

int64_t deadlock_ghost_unmap(struct deadlock_ghost *g, uint64_t address, uint64_t size)
{
	const uint64_t end = (address + size + DEADLOCK_GHOST_PAGE_BYTES - 1) & PAGE_BITS;
	if (address & ~PAGE_BITS || end <= address || end > TOP ||
		address < DEADLOCK_IMAGE_ADDRESS + DEADLOCK_IMAGE_BYTES)
		return -EINVAL;
	for (size_t i = 0; i < g->nr_vdso; i++)
		if (g->vdso[i].lo < end && address < g->vdso[i].hi)
			return -EPERM;
	note_change(g, address, end);
	const int64_t result = ghost_unmap(g, address, end);
	return result == 0 && !know(g, address, end) ? -ENOMEM : result;
}

int64_t deadlock_ghost_protect(struct deadlock_ghost *g, uint64_t address, uint64_t size, int prot)
{
	int64_t result = 0;
	if (address + size < address)
		return -ENOMEM;
	note_change(g, address, address + size);
	if (!page_in_all(g, address, size) ||
		!call(g, SYS_mprotect, (uint64_t[6]){address, size, (uint64_t)prot}, &result))
		return -ENOMEM;
	return result;
}

/* ---- going on -------------------------------------------------------------------------------- */

struct user_regs_struct *deadlock_ghost_registers(struct deadlock_ghost *g)
{
	g->is_dirty = true;
	return &g->registers;
}

bool deadlock_ghost_set_xstate(struct deadlock_ghost *g, const void *xstate, size_t size)
{
	return set_xstate(g, xstate, size);
}

size_t deadlock_ghost_get_xstate(struct deadlock_ghost *g, void *xstate, size_t size)
{
	struct iovec io = {xstate, size};
	return ptrace(PTRACE_GETREGSET, g->pid, NT_X86_XSTATE, &io) == 0 ? io.iov_len : 0;
}

/* Is the SIGSEGV at hand one for a page that has not been copied yet? Then it is now. */
static bool cure_fault(struct deadlock_ghost *g)
{
	siginfo_t info;
	if (ptrace(PTRACE_GETSIGINFO, g->pid, NULL, &info))
		return false;
	g->fault_address = (uint64_t)(uintptr_t)info.si_addr;
	return info.si_code == SEGV_MAPERR && page_in(g, g->fault_address);
}

enum deadlock_stop deadlock_ghost_go(struct deadlock_ghost *g, bool step)
{
	int status = 0;
	while (g->is_alive) {
		if ((g->is_dirty && !ghost_set_registers(g, &g->registers)) ||
			ptrace(step ? PTRACE_SYSEMU_SINGLESTEP : PTRACE_SYSEMU, g->pid, NULL,
				NULL) ||
			!ghost_wait_for(g->pid, &status) || !get_registers(g))
			break;
		switch (WSTOPSIG(status)) {
		case SIGTRAP | 0x80:
			return DEADLOCK_STOP_CALL;
		case SIGTRAP:
			return DEADLOCK_STOP_TRAP;
		case SIGPROF:
			return DEADLOCK_STOP_TICK;
		case SIGSEGV:
			if (!cure_fault(g))
				return DEADLOCK_STOP_FAULT;
			break;
		default:
			if (!is_own_doing(WSTOPSIG(status)))
				break;
			g->signal = WSTOPSIG(status);
			return DEADLOCK_STOP_SIGNAL;
		}
	}
	ghost_bury(g);
	return DEADLOCK_STOP_GONE;
}

uint64_t deadlock_ghost_fault_address(const struct deadlock_ghost *g)
{
	return g->fault_address;
}

int deadlock_ghost_signal(const struct deadlock_ghost *g)
{
	return g->signal;
}

uint32_t deadlock_ghost_chunks(const struct deadlock_ghost *g)
{
	return g->nr_chunks;
}

/* ---- watched words: the debug registers ------------------------------------------------------ */

static bool poke_debug_of(pid_t pid, unsigned nr, uint64_t value)
{
	return ptrace(PTRACE_POKEUSER, pid,
		       (void *)(offsetof(struct user, u_debugreg) + nr * sizeof(uint64_t)),
		       (void *)(uintptr_t)value) == 0;
}

static bool poke_debug(const struct deadlock_ghost *g, unsigned nr, uint64_t value)
{
	return poke_debug_of(g->pid, nr, value);
}

static uint64_t peek_debug(const struct deadlock_ghost *g, unsigned nr)
{
	return (uint64_t)ptrace(PTRACE_PEEKUSER, g->pid,
		(void *)(offsetof(struct user, u_debugreg) + nr * sizeof(uint64_t)), NULL);
}

/* Is stopped, writes a word, and ends. */
static void be_watched(volatile uint32_t *word)
{
	if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) == 0 && raise(SIGSTOP) == 0)
		*word = 1;
	_exit(0); /* allowed: a child that only tries something */
}

bool deadlock_ghost_can_watch(void)
{
	const uint64_t four_bytes_written = 1 | (uint64_t)(1 | 3 << 2) << 16;
	volatile uint32_t word = 0;
	int status;
	const pid_t pid = fork();
	if (pid == 0)
		be_watched(&word);
	if (pid < 0 || waitpid(pid, &status, __WALL) != pid)
		return false;
	bool is_hit = WIFSTOPPED(status) && poke_debug_of(pid, 0, (uintptr_t)&word) &&
		      poke_debug_of(pid, 7, four_bytes_written) &&
		      ptrace(PTRACE_CONT, pid, NULL, NULL) == 0 &&
		      waitpid(pid, &status, __WALL) == pid && WIFSTOPPED(status) &&
		      WSTOPSIG(status) == SIGTRAP;
	if (WIFSTOPPED(status)) {
		kill(pid, SIGKILL);
		(void)waitpid(pid, &status, __WALL);
	}
	return is_hit;
}

bool deadlock_ghost_watch(struct deadlock_ghost *g, unsigned nr, uint64_t address, unsigned size)
{
	const uint64_t length = size == 8 ? 2 : size == 4 ? 3 : size == 2 ? 1 : 0;
	const uint64_t mine = 3u << (2 * nr) | (uint64_t)15 << (16 + 4 * nr);
	const uint64_t control = peek_debug(g, 7);
	if (!poke_debug(g, 7, control & ~mine) || !size)
		return size == 0;
	g->has_watches = true;
	return poke_debug(g, nr, address) &&
	       poke_debug(g, 7,
		       (control & ~mine) | 1u << (2 * nr) | (1 | length << 2) << (16 + 4 * nr));
}

unsigned deadlock_ghost_written(struct deadlock_ghost *g)
{
	const unsigned hit = (unsigned)peek_debug(g, 6) & ((1u << DEADLOCK_GHOST_WATCHES) - 1);
	if (hit)
		(void)poke_debug(g, 6, 0);
	return hit;
}
