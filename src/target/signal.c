/* SPDX-License-Identifier: Apache-2.0 */
/*
 * signal.c - the guard behind a full buffer, and the program's own handlers.
 *
 * The guard is a SIGSEGV. So the program's handler of SIGSEGV is kept aside and called for faults
 * that are not ours, SIGSEGV is never blocked, and every handler of the program runs between an
 * entry that gives it a buffer of its own (the interrupted code has a record half written) and an
 * exit that gives the interrupted code its own back.
 */
#include "target/target.h"

#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/ucontext.h>

enum { SIGNALS = 65, MASK_BYTES = 8, NULL_PAGE = 64 * 1024, SA_RESTORER_FLAG = 0x04000000 };
#define SEGV_BIT (UINT64_C(1) << (SIGSEGV - 1))

struct kernel_action {
	void *handler;
	unsigned long flags;
	void (*restorer)(void);
	uint64_t mask;
};

/* The program's wishes. Written before the kernel is told, read by handlers. */
static struct {
	void *handler;
	unsigned long flags;
	uint64_t mask;
} wish[SIGNALS];

/* As glibc's: unwinders and debuggers know these bytes. */
__asm__(".text\n\t.p2align 4\n\t.hidden longpole_target_restorer\n\t.globl "
	"longpole_target_restorer\n\t.type "
	"longpole_target_restorer,@function\nlongpole_target_restorer:\n\tmovq $15, "
	"%rax\n\tsyscall\n\t.size "
	"longpole_target_restorer,.-longpole_target_restorer");
void longpole_target_restorer(void);

static long set_action(int signal, const struct kernel_action *act, struct kernel_action *old)
{
	return longpole_target_syscall(
		SYS_rt_sigaction, signal, (long)act, (long)old, MASK_BYTES, 0, 0);
}

/* ---- the guard ------------------------------------------------------------------------------- */

/* Number of the base register of the store that faulted: recording code stores with mov, vmovdqu or
 * their kin, always base + displacement. */
static unsigned base_register(const uint8_t *at)
{
	unsigned high = 0, i = 0;
	if (at[i] == 0x62) { /* EVEX */
		high = !(at[1] & 0x20);
		i = 5;
	} else if (at[i] == 0xc5) {
		i = 3;
	} else if (at[i] == 0xc4) {
		high = !(at[1] & 0x20);
		i = 4;
	} else {
		if ((at[i] & 0xf0) == 0x40)
			high = at[i++] & 1;
		i++; /* opcode */
	}
	unsigned rm = at[i] & 7u;
	if (rm == 4)
		rm = at[i + 1] & 7u; /* a SIB byte without index */
	return rm | (high ? 8u : 0);
}

static greg_t *general_register(ucontext_t *uc, unsigned number)
{
	static const uint8_t place[16] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP,
		REG_RSI, REG_RDI, REG_R8, REG_R9, REG_R10, REG_R11, REG_R12, REG_R13, REG_R14,
		REG_R15};
	return &uc->uc_mcontext.gregs[place[number]];
}

static const uint8_t *code_at(const ucontext_t *uc)
{
	return (const uint8_t *)(uintptr_t)uc->uc_mcontext.gregs[REG_RIP];
}

/* The first record of a thread: it has no buffer yet. */
static bool first_record(const siginfo_t *info, ucontext_t *uc)
{
	if ((uintptr_t)info->si_addr >= NULL_PAGE || longpole_memory.pointer)
		return false;
	const uint8_t *code = code_at(uc);
	if ((uintptr_t)code < NULL_PAGE)
		return false;
	greg_t *base = general_register(uc, base_register(code));
	if (*base)
		return false;
	struct target_thread *t = longpole_target_attach_thread();
	if (!t)
		return false;
	*base = (greg_t)(uintptr_t)longpole_memory.pointer;
	/* Coming back from a handler sets the stack for handlers again; Valgrind's does not, and
	 * would have no room for them where the program's stack is about to grow. */
	if (t->stack && uc->uc_stack.ss_flags & SS_DISABLE) {
		uc->uc_stack.ss_sp = t->stack;
		uc->uc_stack.ss_size = TARGET_STACK_BYTES;
		uc->uc_stack.ss_flags = 0;
		(void)longpole_target_syscall(SYS_sigaltstack, (long)&uc->uc_stack, 0, 0, 0, 0, 0);
	}
	return true;
}

static bool buffer_full(const siginfo_t *info, ucontext_t *uc)
{
	struct target_thread *t = longpole_memory.thread;
	const uint8_t *fault = info->si_addr;
	if (!t)
		return false;
	for (unsigned i = 0; i < TARGET_BUFFERS; i++) {
		struct target_buffer *b = &t->buffer[i];
		const uint8_t *end = (const uint8_t *)b->end;
		if (!b->start || fault < end || fault >= end + TARGET_GUARD_BYTES)
			continue;
		greg_t *base = general_register(uc, base_register(code_at(uc)));
		uint64_t *record = (uint64_t *)(uintptr_t)*base;
		if (record < b->start || record > b->end)
			return false;
		longpole_target_emit(t, b, record, i ? MEMORY_PIECE_HANDLER : 0);
		/* What of this record is written already moves with it. */
		memmove(b->start, record, (size_t)((uint8_t *)b->end - (uint8_t *)record));
		*base = (greg_t)(uintptr_t)b->start;
		longpole_memory.pointer = b->from = b->start;
		return true;
	}
	return false;
}

static void call_wish(int signal, siginfo_t *info, void *context)
{
	void *handler = wish[signal].handler;
	if (wish[signal].flags & SA_SIGINFO)
		((void (*)(int, siginfo_t *, void *))handler)(signal, info, context);
	else
		((void (*)(int))handler)(signal);
}

static void with_buffer(int signal, siginfo_t *info, void *context);

static void guard(int signal, siginfo_t *info, void *context)
{
	int saved = errno;
	if (info->si_code > 0 && (first_record(info, context) || buffer_full(info, context))) {
		errno = saved;
		return;
	}
	void *handler = wish[SIGSEGV].handler;
	if (handler == (void *)SIG_DFL || (handler == (void *)SIG_IGN && info->si_code > 0)) {
		/* The program's end: as without us. The fault comes again. */
		longpole_target_flush_all();
		struct kernel_action none = {.handler = (void *)SIG_DFL,
			.flags = SA_RESTORER_FLAG,
			.restorer = longpole_target_restorer};
		(void)set_action(SIGSEGV, &none, NULL);
		if (info->si_code <= 0)
			(void)longpole_target_syscall(SYS_tgkill,
				longpole_target_syscall(SYS_getpid, 0, 0, 0, 0, 0, 0),
				longpole_target_syscall(SYS_gettid, 0, 0, 0, 0, 0, 0), SIGSEGV, 0,
				0, 0);
		errno = saved;
		return;
	}
	errno = saved;
	if (handler != (void *)SIG_IGN)
		with_buffer(signal, info, context);
}

void longpole_target_install_guard(void)
{
	struct kernel_action act = {.handler = (void *)guard,
		.flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER | SA_RESTORER_FLAG,
		.restorer = longpole_target_restorer,
		.mask = ~UINT64_C(0) & ~SEGV_BIT};
	struct kernel_action old = {0};
	(void)set_action(SIGSEGV, &act, &old);
	wish[SIGSEGV].handler = old.handler;
	wish[SIGSEGV].flags = old.flags;
	wish[SIGSEGV].mask = old.mask;
}

/* ---- handlers of the program ----------------------------------------------------------------- */

/* Buffers whose handler was left by longjmp: what is in them goes out, and they are free again. */
static void reclaim(struct target_thread *t, const void *frame)
{
	for (unsigned i = 0; i < TARGET_BUFFERS; i++) {
		struct target_buffer *b = &t->buffer[i];
		bool current = b->start && longpole_memory.pointer >= b->start &&
			       longpole_memory.pointer <= b->end;
		if (!b->in_use || !b->frame || (const char *)b->frame >= (const char *)frame)
			continue;
		b->frame = NULL; /* no handler's any more */
		for (unsigned k = 0; k < TARGET_BUFFERS; k++) {
			struct target_buffer *left = &t->buffer[k];
			if (!left->in_use || !left->left_at || k == i || left->frame)
				continue;
			longpole_target_emit(t, left, left->left_at, 0);
			left->left_at = NULL;
			left->in_use = current ? false : left->in_use;
		}
		if (!current)
			b->in_use = false;
	}
}

static struct target_buffer *signal_free_buffer(struct target_thread *t)
{
	for (unsigned i = 0; i < TARGET_BUFFERS; i++)
		if (!t->buffer[i].in_use && longpole_target_make_buffer(&t->buffer[i]))
			return &t->buffer[i];
	return NULL;
}

/* How far the interrupted code has written whole records: what it has published, or r10, if that is
 * further on in the same buffer. */
static uint64_t *live_pointer(const struct target_buffer *b, const ucontext_t *uc)
{
	uint64_t *published = longpole_memory.pointer;
	uint64_t *r10 = (uint64_t *)(uintptr_t)uc->uc_mcontext.gregs[REG_R10];
	return r10 > published && r10 <= b->end ? r10 : published;
}

/* No handler may come between: its own words would want the same encoder. */
static void emit_alone(
	struct target_thread *t, struct target_buffer *b, uint64_t *to, unsigned flags)
{
	uint64_t all = ~UINT64_C(0) & ~SEGV_BIT, old;
	(void)longpole_target_syscall(
		SYS_rt_sigprocmask, SIG_SETMASK, (long)&all, (long)&old, sizeof all, 0, 0);
	longpole_target_emit(t, b, to, flags);
	(void)longpole_target_syscall(
		SYS_rt_sigprocmask, SIG_SETMASK, (long)&old, 0, sizeof old, 0, 0);
}

static void with_buffer(int signal, siginfo_t *info, void *context)
{
	struct target_thread *t = longpole_memory.thread;
	struct target_tls before = longpole_memory;
	struct target_buffer *from = NULL, *own = NULL;
	uint64_t segv = SEGV_BIT;
	/* (A thread in sigsuspend, ppoll and the like may have it blocked.) */
	(void)longpole_target_syscall(
		SYS_rt_sigprocmask, SIG_UNBLOCK, (long)&segv, 0, MASK_BYTES, 0, 0);
	if (t && before.pointer) {
		int saved = errno;
		reclaim(t, &before);
		from = longpole_target_buffer_of(t, before.pointer);
		own = from ? signal_free_buffer(t) : NULL;
		if (own) {
			from->left_at = live_pointer(from, context);
			emit_alone(t, from, from->left_at,
				from == t->buffer ? 0 : MEMORY_PIECE_HANDLER);
			own->in_use = true;
			own->from = own->start;
			own->frame = &before;
			longpole_memory.pointer = own->start;
		}
		errno = saved;
	}
	call_wish(signal, info, context);
	if (!own)
		return;
	int saved = errno;
	emit_alone(t, own, longpole_memory.pointer, MEMORY_PIECE_HANDLER);
	own->in_use = false;
	own->frame = NULL;
	from->left_at = NULL;
	longpole_memory = before;
	errno = saved;
}

/* ---- what the program asks of the kernel ----------------------------------------------------- */

static bool is_function(const void *handler)
{
	return handler != (const void *)SIG_DFL && handler != (const void *)SIG_IGN &&
	       handler != (const void *)SIG_ERR;
}

static int change_action(int signal, const struct sigaction *act, struct sigaction *old)
{
	struct kernel_action k = {0}, was = {0};
	void *old_handler;
	unsigned long old_flags;
	uint64_t old_mask;
	if (signal < 1 || signal >= SIGNALS || signal == 32 || signal == 33) {
		errno = EINVAL;
		return -1;
	}
	old_handler = wish[signal].handler;
	old_flags = wish[signal].flags;
	old_mask = wish[signal].mask;
	if (act) {
		memcpy(&k.mask, &act->sa_mask, sizeof k.mask);
		wish[signal].mask = k.mask;
		wish[signal].flags = (unsigned)act->sa_flags;
		wish[signal].handler = (void *)(uintptr_t)act->sa_sigaction;
		k.mask &= ~SEGV_BIT;
		k.flags = (unsigned)act->sa_flags | SA_RESTORER_FLAG;
		k.restorer = longpole_target_restorer;
		k.handler = (void *)(uintptr_t)act->sa_sigaction;
		if (is_function(k.handler)) {
			k.handler = (void *)with_buffer;
			k.flags |= SA_SIGINFO;
		}
	}
	if (signal != SIGSEGV) {
		long r = set_action(signal, act ? &k : NULL, &was);
		if (r < 0) {
			wish[signal].handler = old_handler;
			wish[signal].flags = old_flags;
			wish[signal].mask = old_mask;
			errno = (int)-r;
			return -1;
		}
		if (was.handler !=
			(void *)with_buffer) { /* set before us, or reset by the kernel */
			old_handler = was.handler;
			old_flags = was.flags;
			old_mask = was.mask;
		}
	}
	if (old) {
		memset(old, 0, sizeof *old);
		old->sa_sigaction = (void (*)(int, siginfo_t *, void *))(uintptr_t)old_handler;
		old->sa_flags = (int)(old_flags & ~(unsigned long)SA_RESTORER_FLAG);
		memcpy(&old->sa_mask, &old_mask, sizeof old_mask);
	}
	return 0;
}

/* These stand in libc's place, for whoever calls them. */
TARGET_EXPORT int sigaction(int signal, const struct sigaction *act, struct sigaction *old)
{
	return change_action(signal, act, old);
}

static __sighandler_t signal_simple(int signal, __sighandler_t handler, int flags)
{
	struct sigaction act = {.sa_flags = flags}, old;
	act.sa_handler = handler;
	if (!((unsigned)flags & (unsigned)SA_RESETHAND))
		sigaddset(&act.sa_mask, signal);
	return change_action(signal, &act, &old) ? SIG_ERR : old.sa_handler;
}

TARGET_EXPORT __sighandler_t signal(int number, __sighandler_t handler)
{
	return signal_simple(number, handler, SA_RESTART);
}

__sighandler_t bsd_signal(int number, __sighandler_t handler);
TARGET_EXPORT __sighandler_t bsd_signal(int number, __sighandler_t handler)
{
	return signal_simple(number, handler, SA_RESTART);
}

__sighandler_t sysv_signal(int number, __sighandler_t handler);
TARGET_EXPORT __sighandler_t sysv_signal(int number, __sighandler_t handler)
{
	return signal_simple(number, handler, (int)(SA_RESETHAND | SA_NODEFER));
}

/* What `signal` is in strict C. */
__sighandler_t __sysv_signal(int number, __sighandler_t handler);
TARGET_EXPORT __sighandler_t __sysv_signal(int number, __sighandler_t handler)
{
	return sysv_signal(number, handler);
}

static long change_mask(int how, const sigset_t *set, sigset_t *old)
{
	uint64_t mask = 0;
	if (set) {
		memcpy(&mask, set, sizeof mask);
		if (how != SIG_UNBLOCK)
			mask &= ~(SEGV_BIT | UINT64_C(3) << 31); /* and glibc's own two */
	}
	return longpole_target_syscall(
		SYS_rt_sigprocmask, how, set ? (long)&mask : 0, (long)old, MASK_BYTES, 0, 0);
}

TARGET_EXPORT int sigprocmask(int how, const sigset_t *set, sigset_t *old)
{
	long r = change_mask(how, set, old);
	if (r < 0)
		errno = (int)-r;
	return r < 0 ? -1 : 0;
}

TARGET_EXPORT int pthread_sigmask(int how, const sigset_t *set, sigset_t *old)
{
	long r = change_mask(how, set, old);
	return r < 0 ? (int)-r : 0;
}

/* ---- the same, as old programs ask for it ---------------------------------------------------- */

/* Blocks or lets through one signal. Was it blocked? Negative: it is none, and errno says so. */
static int signal_hold(int how, int signal)
{
	sigset_t one, old;
	sigemptyset(&one);
	if (sigaddset(&one, signal) || sigprocmask(how, &one, &old))
		return -1;
	return sigismember(&old, signal);
}

TARGET_EXPORT int sighold(int signal)
{
	return signal_hold(SIG_BLOCK, signal) < 0 ? -1 : 0;
}

TARGET_EXPORT int sigignore(int number)
{
	struct sigaction act = {.sa_handler = SIG_IGN};
	return change_action(number, &act, NULL);
}

TARGET_EXPORT __sighandler_t sigset(int number, __sighandler_t handler)
{
	struct sigaction act = {.sa_handler = handler}, old;
	bool holds = handler == SIG_HOLD;
	if (change_action(number, holds ? NULL : &act, &old))
		return SIG_ERR;
	int was_held = signal_hold(holds ? SIG_BLOCK : SIG_UNBLOCK, number);
	return was_held < 0 ? SIG_ERR : was_held ? SIG_HOLD : old.sa_handler;
}

static int change_low_mask(int how, int mask)
{
	sigset_t set = {0}, old = {0};
	memcpy(&set, &mask, sizeof mask);
	(void)change_mask(how, &set, &old);
	memcpy(&mask, &old, sizeof mask);
	return mask;
}

int sigblock(int mask);
TARGET_EXPORT int sigblock(int mask)
{
	return change_low_mask(SIG_BLOCK, mask);
}

int sigsetmask(int mask);
TARGET_EXPORT int sigsetmask(int mask)
{
	return change_low_mask(SIG_SETMASK, mask);
}
