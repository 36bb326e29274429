/* SPDX-License-Identifier: Apache-2.0 */
/* call_memory.c - functions of libc that move or look at memory: ranges. */
#include "target/target.h"

#include <string.h>
#include <unistd.h>

#define AT TARGET_STUB

/* The results are libc's; the records come before the call that writes and so may be read by others
 * at once. Names are those of rewrite/calls.def. */
void *longpole_at_memcpy(void *to, const void *from, size_t n);
AT void *longpole_at_memcpy(void *to, const void *from, size_t n)
{
	longpole_target_range(false, from, n);
	longpole_target_range(true, to, n);
	return memcpy(to, from, n);
}

void *longpole_at_memmove(void *to, const void *from, size_t n);
AT void *longpole_at_memmove(void *to, const void *from, size_t n)
{
	longpole_target_range(false, from, n);
	longpole_target_range(true, to, n);
	return memmove(to, from, n);
}

void *longpole_at_mempcpy(void *to, const void *from, size_t n);
AT void *longpole_at_mempcpy(void *to, const void *from, size_t n)
{
	longpole_target_range(false, from, n);
	longpole_target_range(true, to, n);
	return mempcpy(to, from, n);
}

void *longpole_at_memset(void *to, int c, size_t n);
AT void *longpole_at_memset(void *to, int c, size_t n)
{
	longpole_target_range(true, to, n);
	return memset(to, c, n);
}

void *longpole_at___memcpy_chk(void *to, const void *from, size_t n, size_t room);
void *__memcpy_chk(void *to, const void *from, size_t n, size_t room);
AT void *longpole_at___memcpy_chk(void *to, const void *from, size_t n, size_t room)
{
	longpole_target_range(false, from, n);
	longpole_target_range(true, to, n);
	return __memcpy_chk(to, from, n, room);
}

void *longpole_at___memmove_chk(void *to, const void *from, size_t n, size_t room);
void *__memmove_chk(void *to, const void *from, size_t n, size_t room);
AT void *longpole_at___memmove_chk(void *to, const void *from, size_t n, size_t room)
{
	longpole_target_range(false, from, n);
	longpole_target_range(true, to, n);
	return __memmove_chk(to, from, n, room);
}

void *longpole_at___memset_chk(void *to, int c, size_t n, size_t room);
void *__memset_chk(void *to, int c, size_t n, size_t room);
AT void *longpole_at___memset_chk(void *to, int c, size_t n, size_t room)
{
	longpole_target_range(true, to, n);
	return __memset_chk(to, c, n, room);
}

size_t longpole_at_strlen(const char *s);
AT size_t longpole_at_strlen(const char *s)
{
	size_t n = strlen(s);
	longpole_target_range(false, s, n + 1);
	return n;
}

char *longpole_at_strcpy(char *to, const char *from);
AT char *longpole_at_strcpy(char *to, const char *from)
{
	size_t n = strlen(from) + 1;
	longpole_target_range(false, from, n);
	longpole_target_range(true, to, n);
	return memcpy(to, from, n);
}

/* How much of both is read: up to the difference. */
static size_t compared(const unsigned char *a, const unsigned char *b, size_t n, bool text)
{
	size_t i = 0;
	while (i < n && a[i] == b[i] && (!text || a[i]))
		i++;
	return i < n ? i + 1 : n;
}

int longpole_at_memcmp(const void *a, const void *b, size_t n);
AT int longpole_at_memcmp(const void *a, const void *b, size_t n)
{
	size_t read = compared(a, b, n, false);
	longpole_target_range(false, a, read);
	longpole_target_range(false, b, read);
	return memcmp(a, b, n);
}

int longpole_at_strcmp(const char *a, const char *b);
AT int longpole_at_strcmp(const char *a, const char *b)
{
	size_t read = compared((const unsigned char *)a, (const unsigned char *)b, SIZE_MAX, true);
	longpole_target_range(false, a, read);
	longpole_target_range(false, b, read);
	return strcmp(a, b);
}

int longpole_at_strncmp(const char *a, const char *b, size_t n);
AT int longpole_at_strncmp(const char *a, const char *b, size_t n)
{
	size_t read = compared((const unsigned char *)a, (const unsigned char *)b, n, true);
	longpole_target_range(false, a, read);
	longpole_target_range(false, b, read);
	return strncmp(a, b, n);
}
