/* SPDX-License-Identifier: Apache-2.0 */
/* heap.h - what liblongpole-heap.so offers the libraries that record and count. */
#ifndef LONGPOLE_PRELOAD_HEAP_H
#define LONGPOLE_PRELOAD_HEAP_H

#include <stdint.h>

/* The return address of the call that allocated the live block around `address`; 0: not known.
 * Safe in signal handlers. Weak: absent where the library is not loaded. */
__attribute__((weak, visibility("default"))) uint64_t longpole_heap_site(uint64_t address);

/* The live block that begins at `address` was asked for by a call that returns to `site`. Weak. */
__attribute__((weak, visibility("default"))) void longpole_heap_allocated(
	uint64_t address, uint64_t site);

/* For one listener: a block that longpole_heap_site() told of is about to be freed. */
__attribute__((weak, visibility("default"))) extern void (*longpole_heap_freed)(
	uint64_t address, uint64_t size_bytes);

#endif
