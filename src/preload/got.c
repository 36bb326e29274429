/* SPDX-License-Identifier: Apache-2.0 */
/*
 * got.c - in a process that ran already, libc's functions are bound: each module has a
 * table with the addresses that it calls (its GOT). An entry that is libc's function becomes our
 * wrapper of it; whatever else it is (the program's own function, another tool's) stays. An entry
 * that the loader has not bound yet is changed, too, and gets its old value back.
 *
 * An aligned store of eight bytes cannot be seen half done, so no thread has to stop. Libc's and
 * the loader's own tables stay: they call themselves.
 */
#include "preload/got.h"
#include "preload/object.h"
#include "preload/next.h"
#include "preload/preload.h"

#ifndef PRELOAD_STATIC

#include "preload/real.h"
#include "ring/attach.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>

enum {
	GOT_SLOTS = 2048, /* a power of 2, well above the number of our functions */
	GOT_LAZY_MAX = 16384,
	GOT_VERSION_MASK = 0x7fff
};

/* Ours, by name: two where glibc has two implementations. */
struct got_wrapper {
	const char *name;
	uintptr_t real[2], ours[2]; /* [1]: the old one, or 0 */
	bool is_first;              /* the loader finds libc's, and nobody else's, by that name */
};
static struct got_wrapper got_wrappers[GOT_SLOTS];
static bool got_ready;

/* Entries that were not bound: their values. */
static struct got_lazy {
	uintptr_t at, value;
} got_lazy[GOT_LAZY_MAX];
static uint32_t got_nr_lazy;
static unsigned long long got_adds, got_subs;

/* ---- our functions --------------------------------------------------------------------------- */

static uint32_t got_hash(const char *name)
{
	uint32_t hash = 5381;
	for (; *name; name++)
		hash = hash * 33 + (unsigned char)*name;
	return hash;
}

/* The one of that name, or the free slot for it. */
static struct got_wrapper *got_slot(const char *name)
{
	uint32_t i = got_hash(name) * 0x9e3779b1u;
	for (;; i++) {
		struct got_wrapper *w = &got_wrappers[i % GOT_SLOTS];
		if (!w->name || strcmp(w->name, name) == 0)
			return w;
	}
}

/* What a module says of itself, as addresses. */
struct got_module {
	uintptr_t bias;
	const ElfW(Sym) * symbol;
	const char *text;
	const ElfW(Half) * version;
	const ElfW(Verdef) * verdef;
	const uint32_t *hash; /* DT_GNU_HASH */
	const ElfW(Rela) * plt, *rela;
	size_t plt_bytes, rela_bytes;
	uintptr_t relro, relro_end;
	uintptr_t start, end; /* of all its segments */
};

static void got_take(struct got_module *m, const ElfW(Dyn) * d)
{
	/* the loader has made addresses of them, where it may write there */
	uintptr_t at = d->d_un.d_ptr < m->bias ? d->d_un.d_ptr + m->bias : d->d_un.d_ptr;
	switch (d->d_tag) {
	case DT_SYMTAB:
		m->symbol = (const void *)at;
		break;
	case DT_STRTAB:
		m->text = (const void *)at;
		break;
	case DT_VERSYM:
		m->version = (const void *)at;
		break;
	case DT_VERDEF:
		m->verdef = (const void *)at;
		break;
	case DT_GNU_HASH:
		m->hash = (const void *)at;
		break;
	case DT_JMPREL:
		m->plt = (const void *)at;
		break;
	case DT_PLTRELSZ:
		m->plt_bytes = d->d_un.d_val;
		break;
	case DT_RELA:
		m->rela = (const void *)at;
		break;
	case DT_RELASZ:
		m->rela_bytes = d->d_un.d_val;
		break;
	default:
		break;
	}
}

static bool got_describe(
	struct got_module *m, uintptr_t bias, const ElfW(Phdr) * segment, size_t nr)
{
	const ElfW(Dyn) *dynamic = NULL;
	*m = (struct got_module){.bias = bias, .start = UINTPTR_MAX};
	for (size_t i = 0; i < nr; i++) {
		uintptr_t at = bias + segment[i].p_vaddr, end = at + segment[i].p_memsz;
		if (segment[i].p_type == PT_DYNAMIC)
			dynamic = (const void *)at;
		if (segment[i].p_type == PT_GNU_RELRO) {
			m->relro = at / PRELOAD_PAGE * PRELOAD_PAGE;
			m->relro_end = end / PRELOAD_PAGE * PRELOAD_PAGE;
		}
		if (segment[i].p_type != PT_LOAD)
			continue;
		m->start = at < m->start ? at : m->start;
		m->end = end > m->end ? end : m->end;
	}
	for (const ElfW(Dyn) *d = dynamic; d && d->d_tag != DT_NULL; d++)
		got_take(m, d);
	return m->symbol && m->text;
}

/* "GLIBC_2.3.2", of a symbol of ours that has a version; NULL: it has none. */
static const char *got_version_of(const struct got_module *m, uint32_t index)
{
	unsigned wanted = m->version ? m->version[index] & GOT_VERSION_MASK : 0;
	const ElfW(Verdef) *v = m->verdef;
	while (v && wanted > 1) {
		if ((v->vd_ndx & GOT_VERSION_MASK) == wanted)
			return m->text +
			       ((const ElfW(Verdaux) *)((const char *)v + v->vd_aux))->vda_name;
		if (!v->vd_next)
			break;
		v = (const ElfW(Verdef) *)((const char *)v + v->vd_next);
	}
	return NULL;
}

static bool got_is_libc(uintptr_t code)
{
	struct dl_find_object found;
	return code && !preload_find_object((void *)code, &found) &&
	       found.dlfo_link_map == preload_next_libc();
}

static void got_add(const struct got_module *ours, uint32_t index)
{
	const ElfW(Sym) *s = &ours->symbol[index];
	const char *name = ours->text + s->st_name, *version = got_version_of(ours, index);
	if (ELF64_ST_TYPE(s->st_info) != STT_FUNC || s->st_shndx == SHN_UNDEF ||
		strcmp(name, RING_ATTACH_ENTRY) == 0)
		return;
	bool old = version && strcmp(version, "GLIBC_2.2.5") == 0;
	uintptr_t real = (uintptr_t)(version ? preload_real_find_version(name, version)
					     : preload_next_function(name));
	if (!got_is_libc(real))
		return;
	struct got_wrapper *w = got_slot(name);
	w->name = name;
	w->real[old] = real;
	w->ours[old] = ours->bias + s->st_value;
	if (!old)
		w->is_first = (uintptr_t)dlsym(RTLD_DEFAULT, name) == real;
}

/* All symbols that others may find: those in the hash's chains. */
static void got_add_all(const struct got_module *ours)
{
	const uint32_t nr_buckets = ours->hash[0], first = ours->hash[1], nr_filter = ours->hash[2];
	const uint32_t *bucket = ours->hash + 4 + 2 * (size_t)nr_filter;
	const uint32_t *chain = bucket + nr_buckets;
	for (uint32_t i = 0; i < nr_buckets; i++) {
		uint32_t index = bucket[i];
		if (index < first)
			continue;
		do
			got_add(ours, index);
		while (!(chain[index++ - first] & 1));
	}
}

static int got_find_ours(struct dl_phdr_info *info, size_t size, void *argument)
{
	struct got_module *ours = argument;
	(void)size;
	return got_describe(ours, info->dlpi_addr, info->dlpi_phdr, info->dlpi_phnum) &&
	       (uintptr_t)got_wrappers >= ours->start && (uintptr_t)got_wrappers < ours->end;
}

/* ---- others' tables -------------------------------------------------------------------------- */

static bool got_was_lazy(uintptr_t at, uintptr_t *ret)
{
	for (uint32_t i = got_nr_lazy; i-- > 0;)
		if (got_lazy[i].at == at) {
			*ret = got_lazy[i].value;
			return true;
		}
	return false;
}

/* (A module that was there before may have lain at the same place.) */
static void got_forget_lazy(uintptr_t at)
{
	for (uint32_t i = 0; i < got_nr_lazy; i++)
		if (got_lazy[i].at == at)
			got_lazy[i].at = 0;
}

static bool got_keep_lazy(uintptr_t at, uintptr_t value)
{
	if (got_nr_lazy == GOT_LAZY_MAX)
		return false;
	got_lazy[got_nr_lazy++] = (struct got_lazy){at, value};
	return true;
}

/* What the entry at `at` is to become; 0: it stays. */
static uintptr_t got_value_in(const struct got_module *m, const struct got_wrapper *w, uintptr_t at,
	uintptr_t value, bool can_be_lazy)
{
	for (unsigned i = 0; i < 2; i++)
		if (w->real[i] && value == w->real[i]) {
			got_forget_lazy(at);
			return w->ours[i];
		}
	bool is_lazy = can_be_lazy && w->is_first && value >= m->start && value < m->end;
	return is_lazy && got_keep_lazy(at, value) ? w->ours[0] : 0;
}

static uintptr_t got_value_out(const struct got_wrapper *w, uintptr_t at, uintptr_t value)
{
	for (unsigned i = 0; i < 2; i++)
		if (w->ours[i] && value == w->ours[i])
			return got_was_lazy(at, &value) ? value : w->real[i];
	return 0;
}

struct got_walk {
	bool in;
	uint32_t nr_ours;
};

static bool got_unlock(const struct got_module *m, uintptr_t at, bool *open)
{
	if (*open || at < m->relro || at >= m->relro_end)
		return true;
	*open = preload_syscall(SYS_mprotect, (long)m->relro, (long)(m->relro_end - m->relro),
			PROT_READ | PROT_WRITE, 0, 0, 0) == 0;
	return *open;
}

static void got_lock_again(const struct got_module *m, bool open)
{
	if (open)
		(void)preload_syscall(SYS_mprotect, (long)m->relro, (long)(m->relro_end - m->relro),
			PROT_READ, 0, 0, 0);
}

static void got_walk_table(struct got_walk *walk, const struct got_module *m,
	const ElfW(Rela) * rela, size_t bytes, bool *open)
{
	for (size_t i = 0; rela && i < bytes / sizeof *rela; i++) {
		unsigned type = ELF64_R_TYPE(rela[i].r_info);
		if (type != R_X86_64_JUMP_SLOT && type != R_X86_64_GLOB_DAT)
			continue;
		const ElfW(Sym) *s = &m->symbol[ELF64_R_SYM(rela[i].r_info)];
		const struct got_wrapper *w = got_slot(m->text + s->st_name);
		uintptr_t at = m->bias + rela[i].r_offset;
		if (!w->name || at % sizeof at || at < m->start || at >= m->end)
			continue;
		uintptr_t value = __atomic_load_n((uintptr_t *)at, __ATOMIC_RELAXED);
		bool can_be_lazy = type == R_X86_64_JUMP_SLOT && s->st_shndx == SHN_UNDEF;
		uintptr_t new = walk->in ? got_value_in(m, w, at, value, can_be_lazy)
					 : got_value_out(w, at, value);
		if (new &&got_unlock(m, at, open)) {
			__atomic_store_n((uintptr_t *)at, new, __ATOMIC_RELEASE);
			value = new;
		}
		walk->nr_ours += value == w->ours[0] || (w->ours[1] && value == w->ours[1]);
	}
}

/* The loader's own, in every glibc. */
extern void *__tls_get_addr(void *);

static bool got_is_exempt(const struct got_module *m)
{
	const struct link_map *libc = preload_next_libc();
	uintptr_t ours = (uintptr_t)got_wrappers, loader = (uintptr_t)__tls_get_addr;
	bool is_libc = libc && (uintptr_t)libc->l_ld >= m->start && (uintptr_t)libc->l_ld < m->end;
	return is_libc || (ours >= m->start && ours < m->end) ||
	       (loader >= m->start && loader < m->end);
}

static int got_visit(struct dl_phdr_info *info, size_t size, void *argument)
{
	struct got_walk *walk = argument;
	struct got_module m;
	bool open = false;
	(void)size;
	got_adds = info->dlpi_adds;
	got_subs = info->dlpi_subs;
	if (!got_describe(&m, info->dlpi_addr, info->dlpi_phdr, info->dlpi_phnum) ||
		got_is_exempt(&m))
		return 0;
	got_walk_table(walk, &m, m.plt, m.plt_bytes, &open);
	got_walk_table(walk, &m, m.rela, m.rela_bytes, &open);
	got_lock_again(&m, open);
	return 0;
}

/*
 * A module is in the loader's list before it is relocated and its table made read-only, so while
 * one is loaded nothing may be changed. The loader has a lock for that, which only its own functions
 * take. dlsym() is one: it holds the lock while it asks a function that chooses among
 * implementations (STT_GNU_IFUNC) for its choice. So the walk is such a function of ours, and is
 * asked for by name.
 */
static struct got_walk
	*volatile got_wanted; /* NULL: nobody walks. Read where no compiler sees a call */

static void got_nothing(void)
{
}

__attribute__((used)) static void (*got_choose(void))(void)
{
	if (got_wanted)
		dl_iterate_phdr(got_visit, got_wanted);
	got_wanted = NULL;
	return got_nothing;
}
PRELOAD_EXPORT void longpole_preload_walk(void) __attribute__((ifunc("got_choose")));

static void got_walk_all(struct got_walk *walk)
{
	got_wanted = walk;
	(void)dlsym(RTLD_DEFAULT, "longpole_preload_walk");
	got_wanted = NULL;
}

void preload_got_lead_in(uint32_t *entries)
{
	struct got_walk walk = {.in = true};
	if (!got_ready) { /* (the loader is asked, which must not be while it walks) */
		struct got_module ours;
		if (dl_iterate_phdr(got_find_ours, &ours) && ours.hash)
			got_add_all(&ours);
		got_ready = true;
	}
	got_walk_all(&walk);
	*entries = walk.nr_ours;
}

/* ---- what one module calls ------------------------------------------------------------------- */

enum { GOT_LED_MAX = 16 };
static struct got_led {
	uintptr_t at, value, ours; /* value: as it was */
} got_led[GOT_LED_MAX];
static uint32_t got_nr_led;

/* What is to be read-only can still be written: the loader is not done with the module. */
static bool got_is_loading(const struct got_module *m, uintptr_t at)
{
	uintptr_t value = __atomic_load_n((uintptr_t *)at, __ATOMIC_RELAXED);
	struct iovec from = {&value, sizeof value}, to = {(void *)at, sizeof value};
	return at >= m->relro && at < m->relro_end &&
	       preload_syscall(SYS_process_vm_writev, preload_self->pid, (long)&from, 1, (long)&to,
		       1, 0) > 0;
}

static bool got_lead_entry(
	const struct got_module *m, uintptr_t at, const struct preload_got_name *n, bool *open)
{
	const uintptr_t value = __atomic_load_n((uintptr_t *)at, __ATOMIC_RELAXED);
	const bool is_lazy = value >= m->start && value < m->end;
	if (value == n->ours)
		return true;
	if (got_nr_led == GOT_LED_MAX || !(value == n->real || is_lazy) ||
		(!*open && got_is_loading(m, at)) || !got_unlock(m, at, open))
		return false;
	got_led[got_nr_led++] = (struct got_led){at, is_lazy ? n->real : value, n->ours};
	__atomic_store_n((uintptr_t *)at, n->ours, __ATOMIC_RELEASE);
	return true;
}

static unsigned got_lead_table(const struct got_module *m, const ElfW(Rela) * rela, size_t bytes,
	const struct preload_got_name *names, size_t nr_names, bool *open)
{
	unsigned nr_led = 0;
	for (size_t i = 0; rela && i < bytes / sizeof *rela; i++) {
		const unsigned type = ELF64_R_TYPE(rela[i].r_info);
		const uintptr_t at = m->bias + rela[i].r_offset;
		if ((type != R_X86_64_JUMP_SLOT && type != R_X86_64_GLOB_DAT) || at % sizeof at ||
			at < m->start || at >= m->end)
			continue;
		const char *name = m->text + m->symbol[ELF64_R_SYM(rela[i].r_info)].st_name;
		for (size_t k = 0; k < nr_names; k++)
			if (strcmp(name, names[k].name) == 0)
				nr_led += got_lead_entry(m, at, &names[k], open);
	}
	return nr_led;
}

bool preload_got_lead_names(uintptr_t bias, const ElfW(Phdr) * segment, size_t nr_segments,
	const struct preload_got_name *names, size_t nr_names)
{
	struct got_module m;
	bool open = false;
	unsigned nr_led = 0;
	if (!got_describe(&m, bias, segment, nr_segments))
		return false;
	nr_led += got_lead_table(&m, m.plt, m.plt_bytes, names, nr_names, &open);
	nr_led += got_lead_table(&m, m.rela, m.rela_bytes, names, nr_names, &open);
	got_lock_again(&m, open);
	return nr_led != 0;
}

/* (Such modules are never unloaded. One whose table is read-only calls us on: we stay.) */
static void got_lead_names_out(void)
{
	for (uint32_t i = 0; i < got_nr_led; i++) {
		struct iovec to = {&got_led[i].value, sizeof(uintptr_t)},
			     from = {(void *)got_led[i].at, sizeof(uintptr_t)};
		if (__atomic_load_n((uintptr_t *)got_led[i].at, __ATOMIC_RELAXED) ==
			got_led[i].ours)
			(void)preload_syscall(SYS_process_vm_writev, preload_self->pid, (long)&to,
				1, (long)&from, 1, 0);
	}
	got_nr_led = 0;
}

void preload_got_lead_out(void)
{
	struct got_walk walk = {.in = false};
	got_walk_all(&walk);
	got_nr_lazy = 0;
	got_lead_names_out();
}

static int got_look_at_counters(struct dl_phdr_info *info, size_t size, void *argument)
{
	bool *old = argument;
	(void)size;
	*old = info->dlpi_adds != got_adds || info->dlpi_subs != got_subs;
	return 1;
}

bool preload_got_is_old(void)
{
	bool old = false;
	dl_iterate_phdr(got_look_at_counters, &old);
	return old;
}

#endif
