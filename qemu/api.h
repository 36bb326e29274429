/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * api.h - QEMU's plugin interface, version 1 (QEMU 4.2 and later; system calls: 7.1), as far as it
 * is used. Source: QEMU's documentation, "QEMU TCG Plugins". Everything that QEMU hands out lives
 * as long as the callback that got it.
 */
#ifndef LONGPOLE_QEMU_API_H
#define LONGPOLE_QEMU_API_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef uint64_t qemu_plugin_id_t;
struct qemu_plugin_tb;
struct qemu_plugin_insn;
typedef uint32_t qemu_plugin_meminfo_t;

struct qemu_info { /* qemu_info_t: what is here of it, every version has */
	const char *target_name;
};

enum { QEMU_PLUGIN_CB_NO_REGS };
enum { QEMU_PLUGIN_MEM_RW = 3 };

typedef void qemu_trans_fn(qemu_plugin_id_t, struct qemu_plugin_tb *);
typedef void qemu_vcpu_fn(qemu_plugin_id_t, unsigned vcpu);
typedef void qemu_exec_fn(unsigned vcpu, void *data);
typedef void qemu_mem_fn(unsigned vcpu, qemu_plugin_meminfo_t, uint64_t address, void *data);
typedef void qemu_exit_fn(qemu_plugin_id_t, void *data);
typedef void qemu_syscall_fn(qemu_plugin_id_t, unsigned vcpu, int64_t number, uint64_t, uint64_t,
	uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t);
typedef void qemu_syscall_ret_fn(qemu_plugin_id_t, unsigned vcpu, int64_t number, int64_t result);

void qemu_plugin_register_vcpu_exit_cb(qemu_plugin_id_t, qemu_vcpu_fn *);
void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t, qemu_trans_fn *);
void qemu_plugin_register_vcpu_syscall_cb(qemu_plugin_id_t, qemu_syscall_fn *);
void qemu_plugin_register_vcpu_syscall_ret_cb(qemu_plugin_id_t, qemu_syscall_ret_fn *);
void qemu_plugin_register_atexit_cb(qemu_plugin_id_t, qemu_exit_fn *, void *data);
void qemu_plugin_register_vcpu_insn_exec_cb(
	struct qemu_plugin_insn *, qemu_exec_fn *, int regs, void *data);
void qemu_plugin_register_vcpu_mem_cb(
	struct qemu_plugin_insn *, qemu_mem_fn *, int regs, int which, void *data);

size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *, size_t);
uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *);
size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *);
const void *qemu_plugin_insn_data(const struct qemu_plugin_insn *);
void *qemu_plugin_insn_haddr(const struct qemu_plugin_insn *); /* where it is in QEMU's memory */

unsigned qemu_plugin_mem_size_shift(qemu_plugin_meminfo_t);
bool qemu_plugin_mem_is_store(qemu_plugin_meminfo_t);

/* What QEMU looks for in a plugin. */
extern int qemu_plugin_version;
int qemu_plugin_install(
	qemu_plugin_id_t, const struct qemu_info *, int nr_arguments, char **argument);

#endif
