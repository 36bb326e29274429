/* SPDX-License-Identifier: Apache-2.0 */
/*
 * processor.h - what the code of a recorded program asks of its processor, for each one that
 * longpole runs on: the clock, instructions that a signal's handler cannot come into, system calls.
 * Everything else in these rooms is C, or in the one other header of a room that has assembly of
 * its own (preload/processor.h).
 *
 * What orders the memory of two threads is never here: that is __atomic_..., and on ARM costs what
 * it must. "Cannot be split" means here: by a handler in the same thread, which is the only other
 * writer. So there is no `lock` on x86-64, and no acquire or release on ARM.
 */
#ifndef LONGPOLE_RING_PROCESSOR_H
#define LONGPOLE_RING_PROCESSOR_H

#include <stdbool.h>
#include <stdint.h>

#define PROCESSOR_INLINE static inline __attribute__((always_inline))

#if defined(__x86_64__)

enum { PROCESSOR_IS_X86_64 = 1 };

/* The time stamp counter. */
PROCESSOR_INLINE uint64_t processor_ticks(void)
{
	uint32_t low, high;
	__asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
	return (uint64_t)high << 32 | low;
}

/* Around what is so short that nothing of before or after may come between: at its begin, its end.
 */
PROCESSOR_INLINE uint64_t processor_begin_ticks(void)
{
	uint32_t low, high;
	__asm__ volatile("lfence\n\trdtsc\n\tlfence" : "=a"(low), "=d"(high)::"memory");
	return (uint64_t)high << 32 | low;
}
PROCESSOR_INLINE uint64_t processor_end_ticks(void)
{
	uint32_t low, high;
	__asm__ volatile("lfence\n\trdtsc" : "=a"(low), "=d"(high)::"memory");
	return (uint64_t)high << 32 | low;
}

/* That line is soon written to: bring it. */
PROCESSOR_INLINE void processor_ask_to_write(const void *at)
{
	__asm__ volatile("prefetchw %0" : : "m"(*(const char *)at));
}

/* *at becomes `now` if it is `*was`; else *was becomes what it is, and the answer is false. */
#define PROCESSOR_REPLACE(at, was, now)                                                            \
	({                                                                                         \
		bool processor_done_;                                                              \
		__asm__ volatile("cmpxchgq %[to], %[word]"                                         \
				 : "=@ccz"(processor_done_), [word] "+m"(*(at)), "+a"(*(was))      \
				 : [to] "r"(now)                                                   \
				 : "memory");                                                      \
		processor_done_;                                                                   \
	})

/* Counters of 64, 32 and 8 bits. */
#define PROCESSOR_ADD(counter, amount)                                                             \
	__asm__ volatile("addq %1, %0" : "+m"(counter) : "er"((uint64_t)(amount)) : "cc")
#define PROCESSOR_INC(counter)   __asm__ volatile("incq %0" : "+m"(counter) : : "cc")
#define PROCESSOR_INC32(counter) __asm__ volatile("incl %0" : "+m"(counter) : : "cc")
#define PROCESSOR_INC8(counter)  __asm__ volatile("incb %0" : "+m"(counter) : : "cc")
#define PROCESSOR_DEC8(counter)  __asm__ volatile("decb %0" : "+m"(counter) : : "cc")
/* One less, of 32 bits: is it 0 now? */
#define PROCESSOR_DEC32_IS_0(counter)                                                              \
	({                                                                                         \
		bool processor_zero_;                                                              \
		__asm__ volatile("decl %0" : "+m"(counter), "=@ccz"(processor_zero_));             \
		processor_zero_;                                                                   \
	})

static inline bool processor_has_avx2(void)
{
	__builtin_cpu_init();
	return __builtin_cpu_supports("avx2");
}

/* Copies, without calling memcpy(); returns where the copy ends. */
PROCESSOR_INLINE uint8_t *processor_copy(uint8_t *to, const uint8_t *from, uint64_t nr_bytes)
{
	__asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(nr_bytes) : : "memory");
	return to;
}

/* The kernel's answer: what it returns, or minus an errno. errno stays. */
PROCESSOR_INLINE long processor_syscall(long number, long a, long b, long c, long d, long e, long f)
{
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;
	long result;
	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return result;
}

#elif defined(__aarch64__)

enum { PROCESSOR_IS_X86_64 = 0 };

/*
 * The generic timer's virtual counter. It is the same on all processors, but coarse: 10 to 50 MHz
 * on most machines (a tick of 20 to 100 ns), 1 GHz from ARMv8.6 on; cntfrq_el0 says which. So a
 * hold shorter than a tick has the length 0 or one tick, right on the average only.
 *
 * `isb`: without it the counter may be read before what comes before it in the program has been
 * done: the architecture allows it. Then who takes a lock could be stamped before who gave it. Taking
 * ends in a branch on the word that was read, and nothing after a branch and an `isb` is done before
 * that word is known. The kernel's own clock in user space does the same. Nothing is needed behind
 * it: what a thread gives is given by a store, and others see a store only after the instructions
 * before it have been done.
 */
PROCESSOR_INLINE uint64_t processor_ticks(void)
{
	uint64_t ticks;
	__asm__ volatile("isb\n\tmrs %0, cntvct_el0" : "=r"(ticks) : : "memory");
	return ticks;
}

PROCESSOR_INLINE uint64_t processor_begin_ticks(void)
{
	uint64_t ticks;
	__asm__ volatile("isb\n\tmrs %0, cntvct_el0\n\tisb" : "=r"(ticks) : : "memory");
	return ticks;
}
PROCESSOR_INLINE uint64_t processor_end_ticks(void)
{
	return processor_ticks();
}

PROCESSOR_INLINE void processor_ask_to_write(const void *at)
{
	__builtin_prefetch(at, 1, 3);
}

/*
 * ARM has no such instruction on memory without an order for others, but one by which others are
 * not ordered: `ldxr`, `stxr` (or `cas`, where there are large-system extensions). An exception
 * between the two, and so a signal's handler, makes `stxr` fail, and the compiler's code goes round
 * again. Relaxed is enough: of another thread nothing is read, and for it nothing is published; a
 * record is published by preload_publish()'s release. The fence is the compiler's only, as the
 * "memory" of the x86-64 instruction above.
 */
#define PROCESSOR_REPLACE(at, was, now)                                                            \
	({                                                                                         \
		bool processor_done_ = __atomic_compare_exchange_n(                                \
			at, was, now, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);                  \
		__atomic_signal_fence(__ATOMIC_SEQ_CST);                                           \
		processor_done_;                                                                   \
	})

/* The same way: one writer, whose handlers may come between; a reader takes each counter by itself
 * while the program runs. */
#define PROCESSOR_ADD(counter, amount)                                                             \
	((void)__atomic_fetch_add(&(counter), (uint64_t)(amount), __ATOMIC_RELAXED))
#define PROCESSOR_INC(counter)        ((void)__atomic_fetch_add(&(counter), 1, __ATOMIC_RELAXED))
#define PROCESSOR_INC32(counter)      PROCESSOR_INC(counter)
#define PROCESSOR_INC8(counter)       PROCESSOR_INC(counter)
#define PROCESSOR_DEC8(counter)       ((void)__atomic_fetch_sub(&(counter), 1, __ATOMIC_RELAXED))
#define PROCESSOR_DEC32_IS_0(counter) (__atomic_sub_fetch(&(counter), 1, __ATOMIC_RELAXED) == 0)

static inline bool processor_has_avx2(void)
{
	return false;
}

PROCESSOR_INLINE uint8_t *processor_copy(uint8_t *to, const uint8_t *from, uint64_t nr_bytes)
{
	uint64_t word;
	for (; nr_bytes >= 8; nr_bytes -= 8, to += 8, from += 8) {
		__builtin_memcpy(&word, from, 8);
		__builtin_memcpy(to, &word, 8);
	}
	while (nr_bytes--)
		*to++ = *from++;
	return to;
}

PROCESSOR_INLINE long processor_syscall(long number, long a, long b, long c, long d, long e, long f)
{
	register long x8 __asm__("x8") = number;
	register long x0 __asm__("x0") = a;
	register long x1 __asm__("x1") = b;
	register long x2 __asm__("x2") = c;
	register long x3 __asm__("x3") = d;
	register long x4 __asm__("x4") = e;
	register long x5 __asm__("x5") = f;
	__asm__ volatile("svc #0"
			 : "+r"(x0)
			 : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
			 : "memory", "cc");
	return x0;
}

#else
#error "processor.h has no part for this processor yet"
#endif

#endif
