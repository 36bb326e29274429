/* SPDX-License-Identifier: Apache-2.0 */
/* python.h - what the files of this room share. Runs inside other people's processes: README.md. */
#ifndef LONGPOLE_RUNTIME_PYTHON_PYTHON_H
#define LONGPOLE_RUNTIME_PYTHON_PYTHON_H

#include "preload/preload.h"
#include "runtime/python/layout.h"

/* The Python of this process: set once, before preload_python.any. */
struct python_found {
	struct python_layout layout;
	uintptr_t runtime; /* where _PyRuntime is */
	uint32_t key;      /* of pthread_getspecific() for its thread's state, + 1; 0: not known */
	uint32_t nr_tries; /* to find that */
};
extern struct python_found python_found __attribute__((visibility("hidden")));

/* Our own memory, wherever that is: false if not all of it can be read. Asks the kernel. */
bool python_read(uintptr_t address, void *ret, size_t size_bytes);
/* The PyThreadState of this thread; 0: it has none, or none that is known. */
uintptr_t python_thread(void);

PRELOAD_INLINE uintptr_t python_word(uintptr_t address)
{
	return *(const uintptr_t *)address;
}

#endif
