/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scaffold.c - x86-64: the first code of the thread that is begun in a process. It loads the
 * library and calls its entry. Its words lie a page behind it (struct inject_scaffold); rbx points
 * to them. Where something fails it says why, and the thread ends.
 */
#include "inject/private.h"

#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

struct scaffold_code {
	uint8_t *to;
	size_t n;
};

static void scaffold_put(struct scaffold_code *c, const uint8_t *bytes, size_t n)
{
	memcpy(c->to + c->n, bytes, n);
	c->n += n;
}
#define SCAFFOLD_PUT(c, ...)                                                                       \
	scaffold_put(c, (const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__}))

static void scaffold_put_word(struct scaffold_code *c, size_t word)
{
	uint32_t w = (uint32_t)word;
	scaffold_put(c, (const uint8_t *)&w, sizeof w);
}

static void scaffold_call(struct scaffold_code *c, unsigned function)
{
	SCAFFOLD_PUT(c, 0xff, 0x93); /* call *disp(%rbx) */
	scaffold_put_word(c, offsetof(struct inject_scaffold, functions) + 8 * function);
}

/* lea disp(%rbx), %rdi or %rsi */
static void scaffold_address_rdi(struct scaffold_code *c, size_t offset)
{
	SCAFFOLD_PUT(c, 0x48, 0x8d, 0xbb);
	scaffold_put_word(c, offset);
}

static void scaffold_address_rsi(struct scaffold_code *c, size_t offset)
{
	SCAFFOLD_PUT(c, 0x48, 0x8d, 0xb3);
	scaffold_put_word(c, offset);
}

static void scaffold_say(struct scaffold_code *c, enum inject_progress progress)
{
	SCAFFOLD_PUT(c, 0xc7, 0x83); /* movl $progress, disp(%rbx) */
	scaffold_put_word(c, offsetof(struct inject_scaffold, progress));
	scaffold_put_word(c, progress);
}

static void scaffold_end(struct scaffold_code *c)
{
	SCAFFOLD_PUT(c, 0x31, 0xc0, 0x5b, 0xc3); /* xor %eax, %eax; pop %rbx; ret */
}

/* Where the call before gave NULL: the loader's words are copied, said, and the thread ends. */
static void scaffold_give_up(struct scaffold_code *c, enum inject_progress progress)
{
	SCAFFOLD_PUT(c, 0x48, 0x85, 0xc0, 0x75, 0); /* test %rax, %rax; jnz over all this */
	size_t jump = c->n;
	scaffold_call(c, 4);
	SCAFFOLD_PUT(c, 0x48, 0x85, 0xc0, 0x74, 0); /* test; jz: it has no words */
	size_t none = c->n;
	SCAFFOLD_PUT(c, 0x48, 0x89, 0xc6); /* mov %rax, %rsi */
	scaffold_address_rdi(c, offsetof(struct inject_scaffold, why));
	SCAFFOLD_PUT(c, 0xb9); /* mov $n, %ecx */
	scaffold_put_word(c, INJECT_TEXT_BYTES);
	/* lodsb; stosb; test %al, %al; jz out; dec %ecx; jnz again */
	SCAFFOLD_PUT(c, 0xac, 0xaa, 0x84, 0xc0, 0x74, 4, 0xff, 0xc9, 0x75, 0xf6);
	c->to[none - 1] = (uint8_t)(c->n - none);
	scaffold_say(c, progress);
	scaffold_end(c);
	c->to[jump - 1] = (uint8_t)(c->n - jump);
}

size_t inject_scaffold_code(uint8_t to[INJECT_CODE_BYTES])
{
	struct scaffold_code c = {.to = to};
	SCAFFOLD_PUT(&c, 0x53, 0x48, 0x89, 0xfb); /* push %rbx; mov %rdi, %rbx */
	scaffold_call(&c, 5);                     /* gettid() */
	SCAFFOLD_PUT(&c, 0x89, 0x83);             /* mov %eax, tid(%rbx) */
	scaffold_put_word(&c, offsetof(struct inject_scaffold, tid));
	scaffold_say(&c, INJECT_BEGUN);
	scaffold_call(&c, 0);               /* pthread_self() */
	SCAFFOLD_PUT(&c, 0x48, 0x89, 0xc7); /* mov %rax, %rdi */
	scaffold_call(&c, 1);               /* pthread_detach() */
	scaffold_address_rdi(&c, offsetof(struct inject_scaffold, library));
	SCAFFOLD_PUT(&c, 0xbe); /* mov $mode, %esi */
	scaffold_put_word(&c, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
	scaffold_call(&c, 2); /* dlopen() */
	scaffold_give_up(&c, INJECT_NOT_LOADED);
	SCAFFOLD_PUT(&c, 0x48, 0x89, 0xc7);
	scaffold_address_rsi(&c, offsetof(struct inject_scaffold, entry));
	scaffold_call(&c, 3); /* dlsym() */
	scaffold_give_up(&c, INJECT_NO_ENTRY);
	scaffold_address_rdi(&c, offsetof(struct inject_scaffold, argument));
	SCAFFOLD_PUT(&c, 0xff, 0xd0);       /* call *%rax: the entry */
	SCAFFOLD_PUT(&c, 0x48, 0x89, 0x83); /* mov %rax, refused(%rbx) */
	scaffold_put_word(&c, offsetof(struct inject_scaffold, refused));
	scaffold_say(&c, INJECT_REFUSED);
	scaffold_end(&c);
	return c.n;
}
