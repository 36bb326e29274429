/* SPDX-License-Identifier: Apache-2.0 */
/* python.h - what the files of this room share. Runs inside other people's processes: README.md. */
#ifndef LONGPOLE_RUNTIME_PYTHON_PYTHON_H
#define LONGPOLE_RUNTIME_PYTHON_PYTHON_H

#include "preload/preload.h"
#include "runtime/python/layout.h"

#include <link.h>

/* The Python of this process: set once, before preload_python.any. */
struct python_found {
	struct python_layout layout;
	uintptr_t runtime; /* where _PyRuntime is */
	uint32_t key;      /* of pthread_getspecific() for its thread's state, + 1; 0: not known */
	uint32_t nr_tries; /* to find that */
	/* Of its library's event loops (python_turn.c); 0: it has none that are known. */
	struct python_asyncio {
		uintptr_t bias; /* where its module _asyncio is */
		const void *segment;
		size_t nr_segments;
		/* PyIter_Send, PyObject_VectorcallMethod, PyObject_Vectorcall */
		uintptr_t send, call, call_bound;
		/* types of objects */
		uintptr_t coroutine, generator, built_in, method, function, number;
	} asyncio;
};
extern struct python_found python_found __attribute__((visibility("hidden")));

/* Our own memory, wherever that is: false if not all of it can be read. Asks the kernel. */
bool python_read(uintptr_t address, void *ret, size_t size_bytes);
/* The PyThreadState of this thread; 0: it has none, or none that is known. */
uintptr_t python_thread(void);

/* python_frame.c: the place of a frame with what is known of it (place.h); 0: it has none. */
uint64_t python_frame_place(uintptr_t frame);
/* ... where its function begins. */
uint64_t python_frame_function(uintptr_t frame);
/* The thread's innermost frame; 0: none. */
uintptr_t python_frame_first(void);
/* Is its function of that name? */
bool python_frame_is(uintptr_t frame, const char *name, size_t nr_bytes);
/* python_turn.c: a module of the interpreter's. */
void python_turn_meets(const struct dl_phdr_info *info);

PRELOAD_INLINE uintptr_t python_word(uintptr_t address)
{
	return *(const uintptr_t *)address;
}

#endif
