/* SPDX-License-Identifier: Apache-2.0 */
/*
 * longpole/memory.h - say in the program which part of its memory streams to record. For programs
 * that `longpole cc` builds; in all others the calls do nothing. C99, C++11; needs no library.
 */
#ifndef LONGPOLE_MEMORY_PUBLIC_H
#define LONGPOLE_MEMORY_PUBLIC_H

#ifdef __cplusplus
extern "C" {
#endif

enum longpole_memory_command {
	LONGPOLE_MEMORY_NOTE = 0,       /* only a marker in the stream: a phase begins */
	LONGPOLE_MEMORY_THREAD_OFF = 1, /* no detail of this thread from now */
	LONGPOLE_MEMORY_THREAD_ON = 2,
	LONGPOLE_MEMORY_ALL_OFF = 3, /* of all threads; each stops at the end of its buffer */
	LONGPOLE_MEMORY_ALL_ON = 4
};

extern void longpole_memory_marker(int command, int number) __attribute__((weak));

/* number: any, to tell markers apart. Thread-safe. */
static inline void longpole_memory_mark(enum longpole_memory_command command, int number)
{
	if (longpole_memory_marker)
		longpole_memory_marker((int)command, number);
}

#ifdef __cplusplus
}
#endif

#endif
