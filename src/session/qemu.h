/* SPDX-License-Identifier: Apache-2.0 */
/* qemu.h - what running a program for another processor under QEMU with our plugin (qemu/) needs.
 */
#ifndef LONGPOLE_SESSION_QEMU_H
#define LONGPOLE_SESSION_QEMU_H

#include "base/base.h"

#include <limits.h>

/* Is `name`, searched in $PATH, an ELF file of a processor that the plugin knows? */
bool session_qemu_knows(const char *name);
/* The emulators that are installed, as "qemu-aarch64 qemu-riscv64"; "": none, or no plugin. */
void session_qemu_installed(struct base_str *ret);
/* What runs `argv`, whose program is at `path`, so that it writes its memory streams into a
 * recorder's shared memory (ring/memory_ring.h). */
struct session_qemu {
	char emulator[PATH_MAX], plugin[3 * PATH_MAX], prefix[64];
	char **argv; /* NULL-terminated; NULL: nothing is ready */
};
enum base_status session_qemu_ready(struct session_qemu *q, const char *ring_path, const char *path,
	char *const *argv, struct base_err *err) BASE_MUST_CHECK;
void session_qemu_done(struct session_qemu *q);

#endif
