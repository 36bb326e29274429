/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tsan.c - the functions that compilers call before each access with -fsanitize=thread: the
 * interface of ThreadSanitizer (LLVM's tsan_interface.h), in the place of its library. Accesses
 * become words of the thread's stream, as rewritten code writes them; what the calls do besides
 * (atomic operations, copies) is done here. `longpole cc --recorder=tsan`.
 *
 * An atomic operation is done in sequentially consistent order, whatever was asked for, and
 * stamped.
 */
#include "target/site.h"

#include <string.h>

#define HOOK   TARGET_EXPORT
#define CALLER ((uintptr_t)__builtin_return_address(0))

typedef unsigned __int128 word_128;
typedef uint64_t word_64;
typedef uint32_t word_32;
typedef uint16_t word_16;
typedef uint8_t word_8;

/* A record of two words. Whoever finds the buffer's end here (or none: address 0) is the fault's
 * handler: target/signal.c. It must see a mov to a base register, which it sets anew. */
static inline void put_two(uint64_t head, uint64_t slot)
{
	uint64_t *p = longpole_memory.pointer;
	__asm__ volatile("movq\t%1, (%0)\n\tmovq\t%2, 8(%0)"
			 : "+r"(p)
			 : "r"(head), "r"(slot)
			 : "memory");
	longpole_memory.pointer = p + 2;
}

static inline __attribute__((always_inline)) void accessed(const volatile void *address,
	enum memory_direction direction, unsigned size, uintptr_t code)
{
	const struct target_site_entry *table = longpole_target_site_table;
	if (!table)
		return;
	uint64_t head = target_site(table, target_site_key(code, direction, size));
	if (head)
		put_two(head, (uint64_t)(uintptr_t)address);
}

HOOK void __tsan_init(void);
void __tsan_init(void)
{
	(void)longpole_target_make_sites();
}

HOOK void __tsan_func_entry(void *caller);
void __tsan_func_entry(void *caller)
{
	(void)caller;
}
HOOK void __tsan_func_exit(void);
void __tsan_func_exit(void)
{
}

/* ---- accesses -------------------------------------------------------------------------------- */

#define ACCESS(name, direction, size)                                                              \
	HOOK void __tsan_##name(void *address);                                                    \
	void __tsan_##name(void *address)                                                          \
	{                                                                                          \
		accessed(address, MEMORY_ACCESS_##direction, size, CALLER);                        \
	}
#define READ_WRITE(name, size)                                                                     \
	HOOK void __tsan_##name(void *address);                                                    \
	void __tsan_##name(void *address)                                                          \
	{                                                                                          \
		accessed(address, MEMORY_ACCESS_LOAD, size, CALLER);                               \
		accessed(address, MEMORY_ACCESS_STORE, size, CALLER);                              \
	}
#define ACCESSES(size)                                                                             \
	ACCESS(read##size, LOAD, size)                                                             \
	ACCESS(write##size, STORE, size)                                                           \
	ACCESS(volatile_read##size, LOAD, size)                                                    \
	ACCESS(volatile_write##size, STORE, size)                                                  \
	READ_WRITE(read_write##size, size)
#define UNALIGNED(size)                                                                            \
	ACCESS(unaligned_read##size, LOAD, size)                                                   \
	ACCESS(unaligned_write##size, STORE, size)                                                 \
	ACCESS(unaligned_volatile_read##size, LOAD, size)                                          \
	ACCESS(unaligned_volatile_write##size, STORE, size)                                        \
	READ_WRITE(unaligned_read_write##size, size)
ACCESSES(1)
ACCESSES(2)
ACCESSES(4)
ACCESSES(8)
ACCESSES(16)
UNALIGNED(2)
UNALIGNED(4)
UNALIGNED(8)
UNALIGNED(16)
ACCESS(vptr_read, LOAD, 8)

HOOK void __tsan_vptr_update(void **address, void *value);
void __tsan_vptr_update(void **address, void *value)
{
	(void)value;
	accessed(address, MEMORY_ACCESS_STORE, sizeof *address, CALLER);
}

/* ---- ranges ---------------------------------------------------------------------------------- */

HOOK void __tsan_read_range(void *address, size_t bytes);
void __tsan_read_range(void *address, size_t bytes)
{
	longpole_target_range(false, address, bytes);
}
HOOK void __tsan_write_range(void *address, size_t bytes);
void __tsan_write_range(void *address, size_t bytes)
{
	longpole_target_range(true, address, bytes);
}

HOOK void *__tsan_memcpy(void *to, const void *from, size_t n);
void *__tsan_memcpy(void *to, const void *from, size_t n)
{
	longpole_target_range(false, from, n);
	longpole_target_range(true, to, n);
	return memcpy(to, from, n);
}
HOOK void *__tsan_memmove(void *to, const void *from, size_t n);
void *__tsan_memmove(void *to, const void *from, size_t n)
{
	longpole_target_range(false, from, n);
	longpole_target_range(true, to, n);
	return memmove(to, from, n);
}
HOOK void *__tsan_memset(void *to, int c, size_t n);
void *__tsan_memset(void *to, int c, size_t n)
{
	longpole_target_range(true, to, n);
	return memset(to, c, n);
}

/* ---- atomics --------------------------------------------------------------------------------- */

static inline uint64_t tsan_begins(void)
{
	return longpole_target_site_table ? target_ticks() : 0;
}

/* The operation that began then is over. A load has seen what was there at its end at the latest, a
 * store is seen at its beginning at the earliest: so who has read a value comes after its writer.
 */
static inline __attribute__((always_inline)) void operated(uint64_t began,
	const volatile void *address, enum memory_direction direction, unsigned size,
	uintptr_t code)
{
	if (!longpole_target_site_table)
		return;
	__builtin_ia32_lfence();
	uint64_t now = target_ticks();
	bool loaded = direction == MEMORY_ACCESS_LOAD;
	longpole_target_mark(MEMORY_MARK_stamp, loaded ? &now : &began);
	accessed(address, direction, size, code);
	if (!loaded)
		longpole_target_mark(MEMORY_MARK_stamp, &now);
}

#define FETCH(bits, name, operation)                                                               \
	HOOK word_##bits __tsan_atomic##bits##_fetch_##name(                                       \
		volatile word_##bits *a, word_##bits v, int order);                                \
	word_##bits __tsan_atomic##bits##_fetch_##name(                                            \
		volatile word_##bits *a, word_##bits v, int order)                                 \
	{                                                                                          \
		(void)order;                                                                       \
		uint64_t began = tsan_begins();                                                    \
		word_##bits old = operation(bits, name, a, v);                                     \
		operated(began, a, MEMORY_ACCESS_BOTH, bits / 8, CALLER);                          \
		return old;                                                                        \
	}
/* (Compare and exchange: failed, it has only read, but the line was had for writing.) */
#define COMPARE(bits, how)                                                                         \
	HOOK int __tsan_atomic##bits##_compare_exchange_##how(volatile word_##bits *a,             \
		word_##bits *expected, word_##bits v, int order, int failed_order);                \
	int __tsan_atomic##bits##_compare_exchange_##how(volatile word_##bits *a,                  \
		word_##bits *expected, word_##bits v, int order, int failed_order)                 \
	{                                                                                          \
		(void)order;                                                                       \
		(void)failed_order;                                                                \
		uint64_t began = tsan_begins();                                                    \
		word_##bits wanted = *expected, old = __sync_val_compare_and_swap(a, wanted, v);   \
		operated(began, a, MEMORY_ACCESS_BOTH, bits / 8, CALLER);                          \
		if (old == wanted)                                                                 \
			return 1;                                                                  \
		*expected = old;                                                                   \
		return 0;                                                                          \
	}
#define OTHERS(bits)                                                                               \
	HOOK word_##bits __tsan_atomic##bits##_load(const volatile word_##bits *a, int order);     \
	word_##bits __tsan_atomic##bits##_load(const volatile word_##bits *a, int order)           \
	{                                                                                          \
		(void)order;                                                                       \
		uint64_t began = tsan_begins();                                                    \
		word_##bits v = LOAD_##bits(a);                                                    \
		operated(began, a, MEMORY_ACCESS_LOAD, bits / 8, CALLER);                          \
		return v;                                                                          \
	}                                                                                          \
	HOOK void __tsan_atomic##bits##_store(volatile word_##bits *a, word_##bits v, int order);  \
	void __tsan_atomic##bits##_store(volatile word_##bits *a, word_##bits v, int order)        \
	{                                                                                          \
		(void)order;                                                                       \
		uint64_t began = tsan_begins();                                                    \
		(void)EXCHANGE_##bits(bits, exchange, a, v);                                       \
		operated(began, a, MEMORY_ACCESS_STORE, bits / 8, CALLER);                         \
	}                                                                                          \
	HOOK word_##bits __tsan_atomic##bits##_exchange(                                           \
		volatile word_##bits *a, word_##bits v, int order);                                \
	word_##bits __tsan_atomic##bits##_exchange(                                                \
		volatile word_##bits *a, word_##bits v, int order)                                 \
	{                                                                                          \
		(void)order;                                                                       \
		uint64_t began = tsan_begins();                                                    \
		word_##bits old = EXCHANGE_##bits(bits, exchange, a, v);                           \
		operated(began, a, MEMORY_ACCESS_BOTH, bits / 8, CALLER);                          \
		return old;                                                                        \
	}                                                                                          \
	HOOK word_##bits __tsan_atomic##bits##_compare_exchange_val(volatile word_##bits *a,       \
		word_##bits expected, word_##bits v, int order, int failed_order);                 \
	word_##bits __tsan_atomic##bits##_compare_exchange_val(volatile word_##bits *a,            \
		word_##bits expected, word_##bits v, int order, int failed_order)                  \
	{                                                                                          \
		(void)order;                                                                       \
		(void)failed_order;                                                                \
		uint64_t began = tsan_begins();                                                    \
		word_##bits old = __sync_val_compare_and_swap(a, expected, v);                     \
		operated(began, a, MEMORY_ACCESS_BOTH, bits / 8, CALLER);                          \
		return old;                                                                        \
	}                                                                                          \
	COMPARE(bits, strong)                                                                      \
	COMPARE(bits, weak)                                                                        \
	FETCH(bits, add, FETCH_##bits)                                                             \
	FETCH(bits, sub, FETCH_##bits)                                                             \
	FETCH(bits, and, FETCH_##bits)                                                             \
	FETCH(bits, or, FETCH_##bits)                                                              \
	FETCH(bits, xor, FETCH_##bits)                                                             \
	FETCH(bits, nand, FETCH_##bits)

#define ONE_FETCH(bits, name, a, v)    __atomic_fetch_##name(a, v, __ATOMIC_SEQ_CST)
#define ONE_EXCHANGE(bits, name, a, v) __atomic_exchange_n(a, v, __ATOMIC_SEQ_CST)
#define ONE_LOAD(a)                    __atomic_load_n(a, __ATOMIC_SEQ_CST)
#define FETCH_8                        ONE_FETCH
#define FETCH_16                       ONE_FETCH
#define FETCH_32                       ONE_FETCH
#define FETCH_64                       ONE_FETCH
#define EXCHANGE_8                     ONE_EXCHANGE
#define EXCHANGE_16                    ONE_EXCHANGE
#define EXCHANGE_32                    ONE_EXCHANGE
#define EXCHANGE_64                    ONE_EXCHANGE
#define LOAD_8                         ONE_LOAD
#define LOAD_16                        ONE_LOAD
#define LOAD_32                        ONE_LOAD
#define LOAD_64                        ONE_LOAD

/* 16 bytes: cmpxchg16b is all there is. */
#define BY_COMPARING(name, result)                                                                 \
	static word_128 by_comparing_##name(volatile word_128 *a, word_128 v)                      \
	{                                                                                          \
		word_128 old = *a, seen;                                                           \
		while ((seen = __sync_val_compare_and_swap(a, old, result)) != old)                \
			old = seen;                                                                \
		return old;                                                                        \
	}
BY_COMPARING(add, old + v)
BY_COMPARING(sub, old - v)
BY_COMPARING(and, old &v)
BY_COMPARING(or, old | v)
BY_COMPARING(xor, old ^ v)
BY_COMPARING(nand, ~(old &v))
BY_COMPARING(exchange, v)
#define FETCH_128(bits, name, a, v)    by_comparing_##name(a, v)
#define EXCHANGE_128(bits, name, a, v) by_comparing_##name(a, v)
#define LOAD_128(a)                    __sync_val_compare_and_swap((volatile word_128 *)(uintptr_t)(a), 0, 0)

OTHERS(8)
OTHERS(16)
OTHERS(32)
OTHERS(64)
OTHERS(128)

HOOK void __tsan_atomic_thread_fence(int order);
void __tsan_atomic_thread_fence(int order)
{
	(void)order;
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}
HOOK void __tsan_atomic_signal_fence(int order);
void __tsan_atomic_signal_fence(int order)
{
	(void)order;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
}
