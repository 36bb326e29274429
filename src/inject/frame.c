/* SPDX-License-Identifier: Apache-2.0 */
/*
 * frame.c - x86-64: a signal's frame, as the kernel makes one before it calls a handler, and which
 * calls of the kernel a thread may be led away from.
 *
 * Source: arch/x86/include/uapi/asm/sigcontext.h and ucontext.h, arch/x86/kernel/signal.c of Linux;
 * the vector state as of "XSAVE-managed components" in Intel's manual, volume 1, chapter 13.
 */
#include "inject/private.h"

#include <errno.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/syscall.h>

enum {
	RED_ZONE_BYTES = 128,
	FLAG_VECTORS = 1,
	FLAG_SS = 2,
	FLAG_STRICT_SS = 4,
	SOFTWARE_AT = 464, /* in the vector state: what it holds, where the kernel says so itself */
	LEGACY_BYTES = 512,
	HEADER_BYTES = 64,
	NO_ALTERNATE_STACK = 0x7fff, /* no valid flags: the kernel leaves the thread's as it is */
	ERESTARTSYS = 512,
	ERESTARTNOINTR = 513,
	ERESTARTNOHAND = 514,
	ERESTART_RESTARTBLOCK = 516,
	USER_CODE = 0x33, /* the code segment of 64-bit programs */
};
#define MAGIC_BEGIN 0x46505853u
#define MAGIC_END   0x46505845u
#define TILES       (UINT64_C(3) << 17) /* AMX's, which a thread has only if it asked for them */

struct frame_software { /* struct _fpx_sw_bytes */
	uint32_t magic, whole_bytes;
	uint64_t features;
	uint32_t bytes, padding[7];
};
_Static_assert(SOFTWARE_AT + sizeof(struct frame_software) == LEGACY_BYTES, "as the kernel's");

struct frame_context { /* struct sigcontext_64 */
	uint64_t r8, r9, r10, r11, r12, r13, r14, r15, di, si, bp, bx, dx, ax, cx, sp, ip, flags;
	uint16_t cs, gs, fs, ss;
	uint64_t error, trap, old_mask, fault, vectors, reserved[8];
};

struct frame { /* struct rt_sigframe */
	uint64_t restorer;
	uint64_t uc_flags, uc_link, stack_sp;
	uint32_t stack_flags, stack_padding;
	uint64_t stack_bytes;
	struct frame_context context;
	uint64_t blocked;
	uint8_t info[128];
};
_Static_assert(sizeof(struct frame) == 440, "as the kernel's");

/* Its restorer alone is no sign of a frame: sigaction() leaves it on the stack, too. */
bool inject_is_frame(
	const void *at, size_t bytes, uint64_t restorer, struct inject_interrupted *ret)
{
	struct frame frame;
	if (bytes < sizeof frame)
		return false;
	memcpy(&frame, at, sizeof frame);
	const struct frame_context *c = &frame.context;
	*ret = (struct inject_interrupted){
		.pc = c->ip, .argument = {c->di, c->si, c->dx, c->r10, c->r8, c->r9}};
	return frame.restorer == restorer && c->cs == USER_CODE && c->vectors % 16 == 0;
}

/* The kernel has its code pointer behind the call, or before it where the call is to be made again. */
bool inject_was_safe(const struct inject_memory *m, const struct inject_interrupted *i)
{
	enum { CALL_BYTES = 2 };
	for (uint64_t pc = i->pc; pc <= i->pc + CALL_BYTES; pc += CALL_BYTES) {
		uint64_t number = inject_number_at(m, pc);
		if (pc >= m->code && pc < m->code_end && number != SYS_restart_syscall)
			return inject_is_safe_call(number, i->argument);
	}
	return false;
}

static bool frame_was_interrupted(const struct user_regs_struct *r)
{
	int64_t result = (int64_t)r->rax;
	return (int64_t)r->orig_rax >= 0 &&
	       (result == -EINTR || result == -ERESTARTSYS || result == -ERESTARTNOINTR ||
		       result == -ERESTARTNOHAND || result == -ERESTART_RESTARTBLOCK);
}

static struct frame_context frame_context_of(const struct inject_state *s, uint64_t vectors)
{
	const struct user_regs_struct *r = &s->regs;
	bool again = frame_was_interrupted(r);
	return (struct frame_context){.r8 = r->r8,
		.r9 = r->r9,
		.r10 = r->r10,
		.r11 = r->r11,
		.r12 = r->r12,
		.r13 = r->r13,
		.r14 = r->r14,
		.r15 = r->r15,
		.di = r->rdi,
		.si = r->rsi,
		.bp = r->rbp,
		.bx = r->rbx,
		.dx = r->rdx,
		.ax = again ? s->number : r->rax,
		.cx = r->rcx,
		.sp = r->rsp,
		.ip = again ? r->rip - 2 : r->rip,
		.flags = r->eflags,
		.cs = (uint16_t)r->cs,
		.ss = (uint16_t)r->ss,
		.vectors = vectors};
}

/* How much of the vector state goes into the frame. */
static size_t frame_vector_bytes(const struct inject_state *s, uint64_t *ret_features)
{
	uint64_t features;
	memcpy(&features, s->vector + SOFTWARE_AT, sizeof features);
	*ret_features = features & ~TILES;
	size_t bytes = s->vector_bytes;
	if (features & TILES) { /* they come last: up to where they begin */
		uint32_t a = 0xd, b, c = 17, d;
		__asm__("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d));
		bytes = b && b < bytes ? b : bytes;
	}
	return bytes;
}

size_t inject_frame(
	const struct inject_state *s, uint64_t restorer, uint8_t *to, size_t size, uint64_t *ret_at)
{
	uint64_t features;
	size_t bytes = frame_vector_bytes(s, &features);
	uint64_t vectors =
		(s->regs.rsp - RED_ZONE_BYTES - bytes - sizeof(uint32_t)) & ~UINT64_C(63);
	/* As at a function's first instruction: 8 bytes below a multiple of 16. */
	uint64_t at = ((vectors - sizeof(struct frame)) & ~UINT64_C(15)) - 8;
	size_t whole = (size_t)(vectors - at) + bytes + sizeof(uint32_t);
	if (bytes < LEGACY_BYTES + HEADER_BYTES || whole > size)
		return 0;
	const struct frame frame = {.restorer = restorer,
		.uc_flags = FLAG_VECTORS | FLAG_SS | FLAG_STRICT_SS,
		.stack_flags = NO_ALTERNATE_STACK,
		.context = frame_context_of(s, vectors),
		.blocked = s->blocked};
	const struct frame_software software = {.magic = MAGIC_BEGIN,
		.whole_bytes = (uint32_t)(bytes + sizeof(uint32_t)),
		.features = features,
		.bytes = (uint32_t)bytes};
	const uint32_t end = MAGIC_END;
	uint8_t *vector = to + (vectors - at);
	memset(to, 0, whole);
	memcpy(to, &frame, sizeof frame);
	memcpy(vector, s->vector, bytes);
	memcpy(vector + SOFTWARE_AT, &software, sizeof software);
	memcpy(vector + bytes, &end, sizeof end);
	*ret_at = at;
	return whole;
}

struct user_regs_struct inject_registers(
	const struct inject_state *s, uint64_t frame, uint64_t function, const uint64_t argument[6])
{
	struct user_regs_struct r = s->regs;
	r.rip = function;
	r.rsp = frame;
	r.rdi = argument[0];
	r.rsi = argument[1];
	r.rdx = argument[2];
	r.rcx = r.r10 = argument[3];
	r.r8 = argument[4];
	r.r9 = argument[5];
	r.rax = 0;
	r.rbp = 0;
	r.orig_rax = UINT64_MAX;      /* there is no call of the kernel to be made again */
	r.eflags &= ~UINT64_C(0x500); /* neither single steps nor strings backwards */
	return r;
}

bool inject_is_delicate_call(uint64_t number)
{
	return number == SYS_nanosleep || number == SYS_clock_nanosleep || number == SYS_poll ||
	       number == SYS_restart_syscall || number == SYS_epoll_wait ||
	       number == SYS_epoll_pwait;
}

/* "mov $number, %eax; syscall", as libc makes its calls; for number 0 "xor %eax, %eax; syscall". */
uint64_t inject_number_at(const struct inject_memory *m, uint64_t pc)
{
	static const uint8_t zero[] = {0x31, 0xc0, 0x0f, 0x05};
	uint8_t code[7];
	uint32_t number;
	if (!inject_read(m, pc - sizeof code, code, sizeof code) || code[5] != 0x0f ||
		code[6] != 0x05)
		return SYS_restart_syscall;
	if (!memcmp(code + sizeof code - sizeof zero, zero, sizeof zero))
		return 0;
	memcpy(&number, code + 1, sizeof number);
	return code[0] == 0xb8 ? number : SYS_restart_syscall;
}

bool inject_is_safe_call(uint64_t number, const uint64_t argument[6])
{
	static const uint16_t safe[] = {SYS_read, SYS_readv, SYS_recvfrom, SYS_recvmsg, SYS_accept,
		SYS_accept4, SYS_poll, SYS_ppoll, SYS_select, SYS_pselect6, SYS_epoll_wait,
		SYS_epoll_pwait, SYS_wait4, SYS_waitid, SYS_nanosleep, SYS_clock_nanosleep,
		SYS_pause, SYS_rt_sigsuspend};
	for (size_t i = 0; i < BASE_COUNT(safe); i++)
		if (number == safe[i])
			return true;
	/* Condition variables, semaphores, joins. Locks, which allocators have, too, wait with
	 * FUTEX_WAIT. */
	return number == SYS_futex && (argument[1] & 0x7f) == FUTEX_WAIT_BITSET;
}
