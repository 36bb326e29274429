/* SPDX-License-Identifier: Apache-2.0 */
/*
 * core.c - core files, by libelf. A thread that slept in a system call when it was dumped has the
 * call's number in orig_rax, and in rax that the call is to be started again.
 */
#include "deadlock/facts/core.h"

#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/procfs.h>
#include <unistd.h>

enum { THREADS_MAX = 1 << 20, LOADS_MAX = 1 << 20 };

struct load { /* a part of memory that is in the file */
	uint64_t start, bytes, offset;
};
struct deadlock_core {
	int fd;
	Elf *elf;
	struct load *load;
	size_t load_capacity, nr_loads;
	struct deadlock_wait *wait;
	size_t wait_capacity, nr_waits;
	pid_t pid;
	char name[16];
};

/* ---- notes ----------------------------------------------------------------------------------- */

/* -ERESTARTSYS, -ERESTARTNOINTR, -ERESTARTNOHAND, -ERESTART_RESTARTBLOCK; -EINTR */
static bool was_asleep(const struct user_regs_struct *r)
{
	int64_t result = (int64_t)r->rax;
	return (int64_t)r->orig_rax >= 0 && (result == -512 || result == -513 || result == -514 ||
						    result == -516 || result == -EINTR);
}

bool deadlock_core_parse_thread(const void *note, size_t bytes, struct deadlock_wait *ret)
{
	struct elf_prstatus s;
	*ret = (struct deadlock_wait){.call = -1, .kind = DEADLOCK_RUNNING};
	if (bytes < sizeof s)
		return false;
	memcpy(&s, note, sizeof s);
	memcpy(&ret->registers, s.pr_reg, sizeof ret->registers);
	const struct user_regs_struct *r = &ret->registers;
	ret->registers_source = DEADLOCK_REGISTERS_CORE;
	ret->thread.tid = s.pr_pid;
	ret->thread.state = 'R';
	ret->sp = r->rsp;
	ret->pc = r->rip;
	if (was_asleep(r)) {
		const uint64_t arg[6] = {r->rdi, r->rsi, r->rdx, r->r10, r->r8, r->r9};
		memcpy(ret->arg, arg, sizeof ret->arg);
		ret->call = (int64_t)r->orig_rax;
		ret->kind = DEADLOCK_UNKNOWN;
		ret->thread.state = 'S';
	}
	return true;
}

static void parse_process(struct deadlock_core *c, const void *note, size_t bytes)
{
	struct elf_prpsinfo p;
	if (bytes < sizeof p)
		return;
	memcpy(&p, note, sizeof p);
	c->pid = p.pr_pid;
	memcpy(c->name, p.pr_fname, sizeof c->name - 1);
}

static enum base_status core_add_thread(struct deadlock_core *c, const void *note, size_t bytes)
{
	struct deadlock_wait w;
	if (!deadlock_core_parse_thread(note, bytes, &w) || c->nr_waits == THREADS_MAX)
		return BASE_OK;
	enum base_status s =
		base_grow(&c->wait, &c->wait_capacity, c->nr_waits + 1, sizeof *c->wait);
	if (s == BASE_OK)
		c->wait[c->nr_waits++] = w;
	return s;
}

static enum base_status read_notes(struct deadlock_core *c, const GElf_Phdr *p)
{
	Elf_Data *data =
		elf_getdata_rawchunk(c->elf, (int64_t)p->p_offset, p->p_filesz, ELF_T_NHDR);
	size_t at = 0, name, desc;
	GElf_Nhdr n;
	enum base_status s = BASE_OK;
	while (s == BASE_OK && data && (at = gelf_getnote(data, at, &n, &name, &desc)) > 0) {
		const char *bytes = data->d_buf;
		if (n.n_namesz < 4 || memcmp(bytes + name, "CORE", 4) != 0)
			continue;
		if (n.n_type == NT_PRSTATUS)
			s = core_add_thread(c, bytes + desc, n.n_descsz);
		else if (n.n_type == NT_PRPSINFO)
			parse_process(c, bytes + desc, n.n_descsz);
	}
	return s;
}

/* ---- the file -------------------------------------------------------------------------------- */

static int core_by_start(const void *a, const void *b)
{
	const struct load *x = a, *y = b;
	return (x->start > y->start) - (x->start < y->start);
}

static int core_by_tid(const void *a, const void *b)
{
	const struct deadlock_wait *x = a, *y = b;
	return (x->thread.tid > y->thread.tid) - (x->thread.tid < y->thread.tid);
}

static enum base_status read_segments(struct deadlock_core *c)
{
	size_t nr = 0;
	enum base_status s = BASE_OK;
	if (elf_getphdrnum(c->elf, &nr) != 0)
		return BASE_ERR_CORRUPT;
	for (size_t i = 0; s == BASE_OK && i < nr && i < LOADS_MAX; i++) {
		GElf_Phdr p;
		if (!gelf_getphdr(c->elf, (int)i, &p))
			return BASE_ERR_CORRUPT;
		if (p.p_type == PT_NOTE)
			s = read_notes(c, &p);
		if (p.p_type != PT_LOAD || !p.p_filesz)
			continue;
		s = base_grow(&c->load, &c->load_capacity, c->nr_loads + 1, sizeof *c->load);
		if (s == BASE_OK)
			c->load[c->nr_loads++] = (struct load){
				.start = p.p_vaddr, .bytes = p.p_filesz, .offset = p.p_offset};
	}
	if (c->nr_loads)
		qsort(c->load, c->nr_loads, sizeof *c->load, core_by_start);
	return s;
}

static bool is_core(Elf *elf)
{
	GElf_Ehdr h;
	return elf && elf_kind(elf) == ELF_K_ELF && gelf_getehdr(elf, &h) && h.e_type == ET_CORE &&
	       h.e_machine == EM_X86_64;
}

enum base_status deadlock_core_open(
	const char *path, struct deadlock_core **ret, struct base_err *err)
{
	struct deadlock_core *c = base_alloc(sizeof *c);
	enum base_status s = BASE_OK;
	*ret = NULL;
	if (!c)
		return base_fail(err, BASE_ERR_NOMEM, "out of memory for %s", path);
	c->fd = open(path, O_RDONLY | O_CLOEXEC);
	if (c->fd < 0) {
		s = base_fail_errno(err, errno, "%s", path);
	} else {
		(void)elf_version(EV_CURRENT);
		c->elf = elf_begin(c->fd, ELF_C_READ_MMAP, NULL);
		s = is_core(c->elf) ? read_segments(c) : BASE_ERR_FOREIGN;
		if (s == BASE_OK && !c->nr_waits)
			s = BASE_ERR_CORRUPT;
		if (s != BASE_OK)
			(void)base_fail(err, s, "%s: not a whole core file of x86-64", path);
	}
	if (s != BASE_OK) {
		deadlock_core_close(c);
		return s;
	}
	qsort(c->wait, c->nr_waits, sizeof *c->wait, core_by_tid);
	for (size_t i = 0; i < c->nr_waits; i++) {
		c->wait[i].thread.pid = c->pid ? c->pid : c->wait[0].thread.tid;
		memcpy(c->wait[i].thread.name, c->name, sizeof c->name);
	}
	*ret = c;
	return BASE_OK;
}

struct deadlock_core *deadlock_core_close(struct deadlock_core *c)
{
	if (!c)
		return NULL;
	if (c->elf)
		elf_end(c->elf);
	if (c->fd >= 0)
		close(c->fd);
	base_free(c->load);
	base_free(c->wait);
	base_free(c);
	return NULL;
}

const struct deadlock_wait *deadlock_core_waits(const struct deadlock_core *c, size_t *ret_nr)
{
	*ret_nr = c->nr_waits;
	return c->wait;
}

bool deadlock_core_read(const struct deadlock_core *c, uint64_t address, void *buf, size_t size)
{
	size_t low = BASE_PARTITION(i, c->nr_loads, c->load[i].start <= address);
	if (!low)
		return false;
	const struct load *l = &c->load[low - 1];
	uint64_t into = address - l->start;
	return into < l->bytes && size <= l->bytes - into &&
	       pread(c->fd, buf, size, (off_t)(l->offset + into)) == (ssize_t)size;
}

bool deadlock_core_has_thread(const struct deadlock_core *c, pid_t tid)
{
	for (size_t i = 0; i < c->nr_waits; i++) {
		if (c->wait[i].thread.tid == tid)
			return true;
	}
	return false;
}

void *deadlock_core_elf(const struct deadlock_core *c)
{
	return c->elf;
}
