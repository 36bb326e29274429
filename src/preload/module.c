/* SPDX-License-Identifier: Apache-2.0 */
/*
 * module.c - which files are loaded where; and the annotations in them
 * (longpole/annotate.h), which are connected to us here.
 */
#include "preload/preload.h"
#include "preload/next.h"
#include "preload/processor.h"
#include "preload/real.h"
#define LONGPOLE_DISABLE /* types and flags only */
#include "longpole/annotate.h"

#include <elf.h>
#include <link.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/syscall.h>

enum {
	MODULES_MAX = 4096,       /* those beyond are recorded again at every scan */
	CHECKS_AFTER_DLOPEN = 64, /* see preload_modules_check() */
	BUILD_ID_BYTES_MAX = 20,
	BUILD_ID_WORDS = 3,
};

/* What has been recorded. Guarded by `scanning`: a thread that finds it taken leaves it to the
 * other. */
static struct {
	uint64_t bias, seen_in; /* the last scan that saw it */
} modules[MODULES_MAX];
static size_t nr_modules PRELOAD_EARLY;
static uint64_t nr_scans PRELOAD_EARLY, seen_adds PRELOAD_EARLY, seen_subs PRELOAD_EARLY;
static uint32_t scanning PRELOAD_EARLY;
static uint32_t checks_left;

struct note_walk {
	const char *build_id;
	size_t build_id_bytes;
};

/* One PT_NOTE segment. All of it is in memory; lengths are checked all the same. */
static void module_walk_notes(struct note_walk *walk, uintptr_t at, uintptr_t end)
{
	while (end - at >= sizeof(ElfW(Nhdr)) && end > at) {
		const ElfW(Nhdr) *note = (const void *)at;
		uintptr_t name = at + sizeof *note;
		uintptr_t value = name + ((note->n_namesz + 3u) & ~3u);
		uintptr_t next = value + ((note->n_descsz + 3u) & ~3u);
		if (next > end || next < at)
			return;
		if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == 4 &&
			memcmp((const void *)name, "GNU", 4) == 0) {
			walk->build_id = (const char *)value;
			walk->build_id_bytes = note->n_descsz < BUILD_ID_BYTES_MAX
						       ? note->n_descsz
						       : BUILD_ID_BYTES_MAX;
		}
		if (note->n_type == LONGPOLE_NOTE_POINTER && note->n_descsz == 4 &&
			note->n_namesz == sizeof LONGPOLE_NOTE_OWNER &&
			memcmp((const void *)name, LONGPOLE_NOTE_OWNER, note->n_namesz) == 0) {
			int32_t distance;
			memcpy(&distance, (const void *)value, sizeof distance);
			const struct longpole_hooks **pointer =
				(void *)(value + (uintptr_t)(intptr_t)distance);
			__atomic_store_n(pointer, &preload_hooks, __ATOMIC_RELEASE);
		}
		at = next;
	}
}

static bool module_is_known(uint64_t bias)
{
	for (size_t i = 0; i < nr_modules; i++)
		if (modules[i].bias == bias) {
			modules[i].seen_in = nr_scans;
			return true;
		}
	if (nr_modules < MODULES_MAX) {
		modules[nr_modules].seen_in = nr_scans;
		modules[nr_modules++].bias = bias;
	}
	return false;
}

static void record_module(const struct dl_phdr_info *info, const struct note_walk *notes,
	uint64_t start, uint64_t end)
{
	char link[RING_TEXT_MAX];
	const char *path = info->dlpi_name;
	size_t nr_bytes = path ? strnlen(path, RING_TEXT_MAX) : 0;
	unsigned long vdso = getauxval(AT_SYSINFO_EHDR);
	if (vdso >= start && vdso < end) {
		path = "[vdso]";
		nr_bytes = strlen(path);
	} else if (nr_bytes == 0) {
		long n = preload_syscall(SYS_readlinkat, AT_FDCWD, (long)"/proc/self/exe",
			(long)link, sizeof link, 0, 0);
		path = link;
		nr_bytes = n > 0 ? (size_t)n : 0;
	}
	uint64_t words[4 + BUILD_ID_WORDS] = {
		start, end, info->dlpi_addr, (uint64_t)notes->build_id_bytes << 32 | nr_bytes};
	if (notes->build_id_bytes)
		memcpy(words + 4, notes->build_id, notes->build_id_bytes);
	preload_record_text(RING_module, words, PRELOAD_COUNT(words), path, nr_bytes);
}

/* LLVM's, or Intel's, also with a version in its name (libomp5.so, libomp-1a2b.so). */
static bool module_is_openmp(const char *path)
{
	const char *slash = path ? strrchr(path, '/') : NULL;
	const char *name = slash ? slash + 1 : "";
	size_t length = strncmp(name, "libiomp", 7) == 0  ? 7
			: strncmp(name, "libomp", 6) == 0 ? 6
							  : 0;
	return length && name[length] && strchr("-.0123456789", name[length]);
}

struct module_news {
	bool has_mpi, has_omp;
};

static int module_visit(struct dl_phdr_info *info, size_t size, void *argument)
{
	struct note_walk notes = {0};
	uint64_t start = UINT64_MAX, end = 0;
	struct module_news *news = argument;
	(void)size;
	seen_adds = info->dlpi_adds;
	seen_subs = info->dlpi_subs;
	for (unsigned i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
		uint64_t at = info->dlpi_addr + segment->p_vaddr;
		if (segment->p_type == PT_LOAD) {
			start = at < start ? at : start;
			end = at + segment->p_memsz > end ? at + segment->p_memsz : end;
		}
		if (segment->p_type == PT_NOTE)
			module_walk_notes(&notes, at, at + segment->p_memsz);
	}
	if (start < end && !module_is_known(info->dlpi_addr)) {
		record_module(info, &notes, start, end);
		preload_python_meets(info);
		if (preload_next_is_late()) /* theirs are in use already */
			return 0;
		news->has_mpi |= preload_mpi_meets(info);
		preload_java_meets(info);
		preload_node_meets(info);
		news->has_omp |= module_is_openmp(info->dlpi_name);
	}
	return 0;
}

static void record_gone(void)
{
	for (size_t i = 0; i < nr_modules;) {
		if (modules[i].seen_in == nr_scans) {
			i++;
			continue;
		}
		preload_record_at(preload_now(), RING_unload, PRELOAD_WORDS(modules[i].bias));
		modules[i] = modules[--nr_modules];
	}
}

void preload_modules_scan(void)
{
	if (!preload_active() || __atomic_exchange_n(&scanning, 1, __ATOMIC_ACQUIRE))
		return;
	int saved_errno = errno;
	struct module_news news = {0};
	nr_scans++;
	dl_iterate_phdr(module_visit, &news);
	record_gone();
	if (news.has_omp) /* (not in dl_iterate_phdr: it asks the dynamic linker) */
		preload_omp_loaded();
	if (news.has_mpi)
		preload_mpi_loaded();
	errno = saved_errno;
	__atomic_store_n(&scanning, 0, __ATOMIC_RELEASE);
}

void preload_modules_forget(void)
{
	nr_modules = 0;
}

/*
 * dlopen() looks at its return address to know whose search path to use, so the real one must be
 * jumped to when that matters: then we cannot see when it is done. Calls that are slow anyway look
 * at the loader's counters for a while.
 */
static int look_at_counters(struct dl_phdr_info *info, size_t size, void *argument)
{
	bool *changed = argument;
	(void)size;
	*changed = info->dlpi_adds != seen_adds || info->dlpi_subs != seen_subs;
	return 1;
}

void preload_modules_check(void)
{
	bool changed = false;
	if (PRELOAD_LIKELY(!__atomic_load_n(&checks_left, __ATOMIC_RELAXED)))
		return;
	__atomic_sub_fetch(&checks_left, 1, __ATOMIC_RELAXED);
	dl_iterate_phdr(look_at_counters, &changed);
	if (changed)
		preload_modules_scan();
}

/* ---- dlopen, dlclose ------------------------------------------------------------------------- */

/* The real function for dlopen's wrapper to jump to, or NULL: preload_dlopen() is to call it. */
void *preload_dlopen_before(const char *file, int mode);
__attribute__((used)) void *preload_dlopen_before(const char *file, int mode)
{
	if (file && mode & RTLD_DEEPBIND && preload_on()) /* it will call libc past our wrappers */
		__atomic_fetch_add(&preload_fresh.head->deepbound, 1, __ATOMIC_RELAXED);
	if (file) /* its constructors run before it returns */
		__atomic_store_n(&checks_left, CHECKS_AFTER_DLOPEN, __ATOMIC_RELAXED);
	if (!file || (strchr(file, '/') && !strchr(file, '$')))
		return NULL;
	return (void *)PRELOAD_REAL(dlopen);
}

void *preload_dlopen(const char *file, int mode);
__attribute__((used)) void *preload_dlopen(const char *file, int mode)
{
	void *handle = PRELOAD_REAL(dlopen)(file, mode);
	if (handle && file)
		preload_modules_scan();
	return handle;
}

TRAMPOLINE_OF_TWO("dlopen", "preload_dlopen_before", "preload_dlopen");

PRELOAD_EXPORT int dlclose(void *handle)
{
	int result = PRELOAD_REAL(dlclose)(handle);
	preload_modules_scan();
	return result;
}
