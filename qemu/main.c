/* SPDX-License-Identifier: GPL-2.0-or-later */
/* main.c - what QEMU tells: code that it translates, what is executed and accessed, system calls.
 */
#include "api.h"
#include "isa.h"
#include "stream.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

enum { IS_THREAD = 0x10000 /* CLONE_THREAD */, CALL_LASTED_TICKS = 50000 };

EXPORT int qemu_plugin_version = 1;
static const struct isa *isa; /* set once, before the program begins */

/* ---- code ------------------------------------------------------------------------------------ */

static void on_block(unsigned vcpu, void *block)
{
	struct thread *t = stream_thread();
	(void)vcpu;
	if (t)
		stream_begin(t, block);
}

static void on_access(unsigned vcpu, qemu_plugin_meminfo_t info, uint64_t address, void *data)
{
	struct thread *t = stream_self;
	(void)vcpu;
	if (t)
		stream_access(t,
			(struct block_key){.info = info, .instruction = (uint32_t)(uintptr_t)data},
			address);
}

/* QEMU's block, as some of ours. */
static void on_translate(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
	size_t nr = qemu_plugin_tb_n_insns(tb);
	(void)id;
	for (size_t at = 0; at < nr;) {
		struct qemu_plugin_insn *first = qemu_plugin_tb_get_insn(tb, at);
		struct block like = {.code = qemu_plugin_insn_vaddr(first)};
		for (; at < nr && like.nr_instructions < BLOCK_INSTRUCTIONS_MAX; at++) {
			struct qemu_plugin_insn *i = qemu_plugin_tb_get_insn(tb, at);
			unsigned n = like.nr_instructions++;
			like.length[n] = (uint8_t)qemu_plugin_insn_size(i);
			like.row[n] =
				isa_row_of(isa, qemu_plugin_insn_data(i), qemu_plugin_insn_size(i));
			qemu_plugin_register_vcpu_mem_cb(i, on_access, QEMU_PLUGIN_CB_NO_REGS,
				QEMU_PLUGIN_MEM_RW, (void *)(uintptr_t)n);
		}
		struct block *b = stream_block(&like, qemu_plugin_insn_haddr(first));
		if (b)
			qemu_plugin_register_vcpu_insn_exec_cb(
				first, on_block, QEMU_PLUGIN_CB_NO_REGS, b);
	}
}

/* ---- system calls ---------------------------------------------------------------------------- */

static void on_call(qemu_plugin_id_t id, unsigned vcpu, int64_t number, uint64_t a0, uint64_t a1,
	uint64_t a2, uint64_t a3, uint64_t a4, uint64_t a5, uint64_t a6, uint64_t a7)
{
	struct thread *t = stream_thread();
	(void)id, (void)vcpu, (void)a2, (void)a3, (void)a4, (void)a5, (void)a6, (void)a7;
	if (!t)
		return;
	stream_end_block(t);
	const struct isa_call *call = isa_call_of(isa, number);
	if (call && call->kind == ISA_CALL_EXIT) {
		stream_end_thread(t);
		return;
	}
	if (call && call->kind == ISA_CALL_EXEC)
		stream_cut(t, stream_now_ticks());
	t->argument[0] = a0;
	t->argument[1] = a1;
	t->call_ticks = stream_now_ticks();
	stream_waits(t);
	__atomic_store_n(&t->in_call, true, __ATOMIC_RELEASE);
}

static void note(struct thread *t, const struct isa_call *call, uint64_t result)
{
	uint64_t began = t->call_ticks;
	switch (call->kind) {
	case ISA_CALL_STORES:
	case ISA_CALL_LOADS:
		if (result)
			stream_mark_range(t, call->kind == ISA_CALL_STORES,
				t->argument[call->buffer], result);
		break;
	case ISA_CALL_MAP:
		stream_maps();
		stream_mark_call(t, MEMORY_CALL_allocate, began,
			(const uint64_t[4]){result, t->argument[1], 0, MEMORY_ALLOCATION_MAPPING});
		break;
	case ISA_CALL_UNMAP:
		stream_maps();
		stream_mark_call(t, MEMORY_CALL_release, began,
			(const uint64_t[4]){t->argument[0], t->argument[1]});
		break;
	case ISA_CALL_EXIT:
	case ISA_CALL_EXEC:
		break;
	case ISA_CALL_CLONE:
		if (t->argument[0] & IS_THREAD)
			stream_mark_call(t, MEMORY_CALL_thread_create, began,
				(const uint64_t[4]){0, result}); /* by its handle */
		break;
	}
}

static void on_called(qemu_plugin_id_t id, unsigned vcpu, int64_t number, int64_t result)
{
	struct thread *t = stream_thread();
	(void)id, (void)vcpu;
	if (!t || !t->in_call)
		return;
	__atomic_store_n(&t->in_call, false, __ATOMIC_RELEASE);
	/* What others did meanwhile comes between what it did before and after. */
	if (stream_now_ticks() - t->call_ticks > CALL_LASTED_TICKS)
		stream_cut(t, t->call_ticks);
	const struct isa_call *call = isa_call_of(isa, number);
	if (call && result >= 0)
		note(t, call, (uint64_t)result);
	stream_join_ended(t);
}

/* ---- beginning and end ----------------------------------------------------------------------- */

static void on_exit(qemu_plugin_id_t id, void *data)
{
	(void)id, (void)data;
	stream_close();
}

EXPORT int qemu_plugin_install(
	qemu_plugin_id_t id, const struct qemu_info *info, int nr_arguments, char **argument)
{
	static const char ring[] = "ring=";
	isa = isa_find(info->target_name);
	if (!isa) {
		fprintf(stderr, "longpole: no table of %s's instructions (qemu/isa.c)\n",
			info->target_name);
		return -1;
	}
	if (nr_arguments != 1 || strncmp(argument[0], ring, sizeof ring - 1) != 0 ||
		!stream_open(argument[0] + sizeof ring - 1))
		return -1;
	qemu_plugin_register_vcpu_tb_trans_cb(id, on_translate);
	qemu_plugin_register_vcpu_syscall_cb(id, on_call);
	qemu_plugin_register_vcpu_syscall_ret_cb(id, on_called);
	qemu_plugin_register_atexit_cb(id, on_exit, NULL);
	return 0;
}
