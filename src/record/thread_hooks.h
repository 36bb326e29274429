/* SPDX-License-Identifier: Apache-2.0 */
/*
 * thread_hooks.h - inside a program that both record, the preload library tells the runtime library
 * of `longpole cc` which threads are begun and joined by libraries that were not rewritten (Boost,
 * GLib, TBB), or through a pointer to the function.
 */
#ifndef LONGPOLE_RECORD_THREAD_HOOKS_H
#define LONGPOLE_RECORD_THREAD_HOOKS_H

#include <stdint.h>

#define RECORD_THREAD_HOOKS "longpole_thread_hooks"

/* Both are called when it is done, by the thread that did it; ticks are of the TSC. */
struct record_thread_hooks {
	void (*created)(uint64_t handle, uint64_t before_ticks, uint64_t site);
	void (*joined)(uint64_t handle, uint64_t before_ticks, uint64_t after_ticks);
};
typedef void record_thread_hooks_fn(const struct record_thread_hooks *hooks);

#endif
