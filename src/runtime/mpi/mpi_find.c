/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mpi_find.c - finds the MPI library of a program, and puts our wrappers into its callers' way.
 *
 * We export no MPI function: programs and libraries ask by weak references, and by dlsym(), whether
 * there is an MPI, and one that has none would find us. Instead, when a module has been loaded that
 * has PMPI_Init, what the dynamic linker has bound (or is to bind) in the other modules' tables is
 * set to a wrapper. That also reaches libraries whose MPI only they see (RTLD_LOCAL: mpi4py), and
 * both sides of Fortran's interface, which calls C's. A program without MPI has paid one look at
 * each library's hash table.
 */
#include "preload/processor.h"
#include "preload/table.h"
#include "runtime/mpi/mpi.h"

#ifndef PRELOAD_STATIC

#include <elf.h>
#include <link.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

enum { FORTRAN_MAX = 8 };

/*
 * What differs between libraries. Open MPI: mpi.h of 4.1 (also 5.0): handles are addresses of its
 * symbols, struct ompi_status_public_t. MPICH: mpi.h of 4.0; the ABI initiative's others (Intel MPI,
 * MVAPICH, Cray) have the same numbers.
 */
static const struct mpi_abi mpi_abis[] = {
	{.symbol = "ompi_mpi_comm_world",
		.handle_bytes = 8,
		.status_bytes = 24,
		.source_at = 0,
		.tag_at = 4,
		.bytes_at = 16,
		.status_count_is_wide = 1,
		.any_source = -1,
		.any_tag = -1,
		.proc_null = -2,
		.status_ignore = 0,
		.cart = 1,
		.graph = 2,
		.dist_graph = 3},
	{.symbol = "MPIR_F08_MPI_IN_PLACE",
		.handle_bytes = 4,
		.status_bytes = 20,
		.source_at = 8,
		.tag_at = 12,
		.bytes_at = 0,
		.any_source = -2,
		.any_tag = -1,
		.proc_null = -1,
		.status_ignore = 1,
		.cart = 2,
		.graph = 1,
		.dist_graph = 3,
		.world = 0x44000000,
		.comm_null = 0x04000000,
		.request_null = 0x2c000000,
		.datatype_null = 0x0c000000},
};

static struct {
	uintptr_t begin, nr_bytes;
} mpi_fortran[FORTRAN_MAX];
static uint32_t mpi_nr_fortran;
static uintptr_t mpi_library_bias; /* of the one that was found */
static bool mpi_found;

bool mpi_is_fortran(uintptr_t code)
{
	for (uint32_t i = 0; i < mpi_nr_fortran; i++)
		if (code - mpi_fortran[i].begin < mpi_fortran[i].nr_bytes)
			return true;
	return false;
}

/* ---- a module's tables ----------------------------------------------------------------------- */

struct mpi_module {
	const struct dl_phdr_info *info;
	uintptr_t bias;
	struct preload_table table;
	const ElfW(Rela) * relocation[2]; /* of data, of calls */
	size_t nr_relocations[2];
	uintptr_t relro, relro_end;
};

static bool mpi_describe(const struct dl_phdr_info *info, struct mpi_module *ret)
{
	const ElfW(Dyn) *d = NULL;
	*ret = (struct mpi_module){.info = info, .bias = info->dlpi_addr};
	for (unsigned i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		if (p->p_type == PT_DYNAMIC)
			d = (const void *)(info->dlpi_addr + p->p_vaddr);
		if (p->p_type == PT_GNU_RELRO) {
			ret->relro =
				(info->dlpi_addr + p->p_vaddr) & ~(uintptr_t)(PRELOAD_PAGE - 1);
			ret->relro_end = info->dlpi_addr + p->p_vaddr + p->p_memsz;
		}
	}
	for (; d && d->d_tag != DT_NULL; d++) {
		/* the loader has made addresses of them, where it may write there */
		uintptr_t at =
			d->d_un.d_ptr < ret->bias ? d->d_un.d_ptr + ret->bias : d->d_un.d_ptr;
		if (d->d_tag == DT_RELA)
			ret->relocation[0] = (const void *)at;
		if (d->d_tag == DT_RELASZ)
			ret->nr_relocations[0] = d->d_un.d_val / sizeof(ElfW(Rela));
		if (d->d_tag == DT_JMPREL)
			ret->relocation[1] = (const void *)at;
		if (d->d_tag == DT_PLTRELSZ)
			ret->nr_relocations[1] = d->d_un.d_val / sizeof(ElfW(Rela));
	}
	return preload_table_of(info, &ret->table);
}

/* Its definition of that name; NULL: it has none. */
static void *mpi_definition(const struct mpi_module *m, const char *name)
{
	return preload_definition(&m->table, name);
}

/* ---- the library ----------------------------------------------------------------------------- */

static mpi_function *mpi_function_in(const struct mpi_module *m, const char *name)
{
	union {
		void *address;
		mpi_function *function;
	} f = {.address = mpi_definition(m, name)};
	return f.function;
}

static bool mpi_choose_abi(const struct mpi_module *m)
{
	for (size_t i = 0; i < PRELOAD_COUNT(mpi_abis); i++) {
		if (!mpi_definition(m, mpi_abis[i].symbol))
			continue;
		mpi_library.abi = mpi_abis[i];
		return true;
	}
	return false;
}

static bool mpi_is_library(const struct mpi_module *m)
{
	if (!mpi_definition(m, "PMPI_Init") || !mpi_choose_abi(m))
		return false;
	for (unsigned op = 0; op < TRACE_MPI_NR; op++)
		mpi_library.profiled[op] = mpi_function_in(m, mpi_rows[op].name);
	bool complete = true;
#define X(what)                                                                                    \
	mpi_library.ask_##what = mpi_function_in(m, "PMPI_" #what);                                \
	complete = complete && mpi_library.ask_##what;
	MPI_ASKED(X)
#undef X
	mpi_library_bias = m->bias;
	return complete;
}

/* Handles that are addresses: where the program has its copy of the symbol (R_..._COPY), else
 * the library's. */
static void mpi_look_for_handles(const struct mpi_module *m)
{
	struct mpi_abi *abi = &mpi_library.abi;
	const struct {
		uint64_t *handle;
		char symbol[24];
	} handles[] = {{&abi->world, "ompi_mpi_comm_world"},
		{&abi->comm_null, "ompi_mpi_comm_null"}, {&abi->request_null, "ompi_request_null"},
		{&abi->datatype_null, "ompi_mpi_datatype_null"}};
	for (size_t i = 0; i < PRELOAD_COUNT(handles); i++)
		if (!*handles[i].handle)
			*handles[i].handle = (uintptr_t)mpi_definition(m, handles[i].symbol);
}

/* The first that has a function is what its callers reach: a tool's, perhaps. */
static int mpi_look_for_plain(struct dl_phdr_info *info, size_t size, void *unused)
{
	struct mpi_module m;
	(void)size;
	(void)unused;
	if (!mpi_describe(info, &m))
		return 0;
	if (mpi_library.abi.handle_bytes == 8)
		mpi_look_for_handles(&m);
	for (unsigned op = 0; op < TRACE_MPI_NR; op++)
		if (!mpi_library.plain[op])
			mpi_library.plain[op] = mpi_function_in(&m, mpi_rows[op].name + 1);
	return 0;
}

/* ---- who calls it ---------------------------------------------------------------------------- */

/* NULL: not one of ours. */
static mpi_function *mpi_wrapper_of(const char *name)
{
	bool profiled = *name == 'P';
	if (strncmp(name + profiled, "MPI_", 4) != 0)
		return NULL;
	for (unsigned op = 0; op < TRACE_MPI_NR; op++)
		if (mpi_library.profiled[op] && mpi_library.plain[op] &&
			strcmp(name + profiled, mpi_rows[op].name + 1) == 0)
			return mpi_wrapper[op][profiled];
	return NULL;
}

/* Full RELRO: the linker has closed its tables. What cannot be opened stays as it is. */
static void mpi_set_slot(const struct mpi_module *m, uintptr_t at, mpi_function *wrapper)
{
	uintptr_t page = at & ~(uintptr_t)(PRELOAD_PAGE - 1);
	bool is_closed = at >= m->relro && at < m->relro_end;
	if (__atomic_load_n((uintptr_t *)at, __ATOMIC_RELAXED) == (uintptr_t)wrapper)
		return;
	if (is_closed && preload_syscall(SYS_mprotect, (long)page, PRELOAD_PAGE,
				 PROT_READ | PROT_WRITE, 0, 0, 0))
		return;
	__atomic_store_n((uintptr_t *)at, (uintptr_t)wrapper, __ATOMIC_RELEASE);
	if (is_closed)
		preload_syscall(SYS_mprotect, (long)page, PRELOAD_PAGE, PROT_READ, 0, 0, 0);
}

static void mpi_patch(const struct mpi_module *m)
{
	for (unsigned k = 0; k < 2; k++)
		for (size_t i = 0; m->relocation[k] && i < m->nr_relocations[k]; i++) {
			const ElfW(Rela) *r = &m->relocation[k][i];
			unsigned type = ELF64_R_TYPE(r->r_info);
			if (type != PRELOAD_RELOCATION_SLOT && type != PRELOAD_RELOCATION_DATA &&
				type != PRELOAD_RELOCATION_WORD)
				continue;
			const ElfW(Sym) *s = &m->table.symbol[ELF64_R_SYM(r->r_info)];
			mpi_function *wrapper =
				r->r_addend ? NULL : mpi_wrapper_of(m->table.text + s->st_name);
			if (wrapper)
				mpi_set_slot(m, m->bias + r->r_offset, wrapper);
		}
}

static void mpi_note_fortran(const struct mpi_module *m)
{
	uintptr_t begin = UINTPTR_MAX, end = 0;
	if (mpi_nr_fortran == FORTRAN_MAX || !mpi_definition(m, "mpi_send_") ||
		mpi_is_fortran(m->bias))
		return;
	for (unsigned i = 0; i < m->info->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &m->info->dlpi_phdr[i];
		uintptr_t at = m->bias + segment->p_vaddr;
		if (segment->p_type != PT_LOAD)
			continue;
		begin = at < begin ? at : begin;
		end = at + segment->p_memsz > end ? at + segment->p_memsz : end;
	}
	if (begin >= end)
		return;
	mpi_fortran[mpi_nr_fortran].begin = begin;
	mpi_fortran[mpi_nr_fortran].nr_bytes = end - begin;
	mpi_nr_fortran++;
}

static int mpi_patch_module(struct dl_phdr_info *info, size_t size, void *unused)
{
	struct mpi_module m;
	(void)size;
	(void)unused;
	if (!mpi_describe(info, &m) || m.bias == mpi_library_bias)
		return 0;
	mpi_note_fortran(&m);
	mpi_patch(&m);
	return 0;
}

/* (one at a time, as what follows: preload_modules_scan()) */
bool preload_mpi_meets(struct dl_phdr_info *info)
{
	struct mpi_module m;
	if (mpi_found)
		mpi_patch_module(info, sizeof *info, NULL);
	else if (mpi_describe(info, &m))
		return mpi_is_library(&m);
	return false;
}

/* Its callers are there already, and those that come later are met. */
void preload_mpi_loaded(void)
{
	if (mpi_found)
		return;
	dl_iterate_phdr(mpi_look_for_plain, NULL);
	mpi_found = true;
	dl_iterate_phdr(mpi_patch_module, NULL);
}

#endif
