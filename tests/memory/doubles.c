/* SPDX-License-Identifier: Apache-2.0 */
/*
 * doubles.c [saved|found] - what is in the halves of vector registers after instructions that write
 * only some of their bytes, each after each of several ways to write them before: read at once as a
 * whole and in pieces, and after a jump. With an argument also as signal handlers see them, of
 * system calls and of instructions that fail, in code that ran before there was a handler, too:
 * `saved` by the kernel, which clears them then, or `found` there, as Valgrind leaves them.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

enum { WORDS = 16, PAGE = 4096 };

/* Doubles, singles and integers at once. */
static const double in[8]
	__attribute__((aligned(32))) = {1.5, -2.25, 3e9, 7.125, 1e-3, 6, -8.5, 0.1};
static unsigned long long out[WORDS];

/* xmm0 whole, and its pieces; xmm1; xmm0 and xmm1 in the next block. */
#define LOOK                                                                                       \
	"movupd %%xmm0, (%[out])\n\tmovsd %%xmm0, 16(%[out])\n\tmovhpd %%xmm0, 24(%[out])\n\t"     \
	"movss %%xmm0, 32(%[out])\n\tmovupd %%xmm1, 40(%[out])\n\tjmp 1f\n1:\n\t"                  \
	"movupd %%xmm0, 56(%[out])\n\tmovupd %%xmm1, 72(%[out])\n\t"

#define RUN(how)                                                                                   \
	do {                                                                                       \
		memset(out, 0x55, sizeof out);                                                     \
		__asm__ volatile(how LOOK                                                          \
				 :                                                                 \
				 : [in] "r"(in), [out] "r"(out), [n] "r"(-77ll)                    \
				 : "xmm0", "xmm1", "xmm2", "memory");                              \
		show(how);                                                                         \
	} while (0);

static void show(const char *how)
{
	for (; *how; how++)
		putchar(*how == '\n' ? ';' : *how == '\t' ? ' ' : *how);
	for (int i = 0; i < WORDS; i++)
		printf(" %llx", out[i]);
	putchar('\n');
}

#define ALL(before)                                                                                \
	RUN(before)                                                                                \
	RUN(before "movsd 8(%[in]), %%xmm0\n\t")                                                   \
	RUN(before "movsd %%xmm1, %%xmm0\n\t")                                                     \
	RUN(before "movsd %%xmm0, %%xmm1\n\taddsd %%xmm1, %%xmm0\n\t")                             \
	RUN(before "movss 4(%[in]), %%xmm0\n\t")                                                   \
	RUN(before "movss %%xmm1, %%xmm0\n\t")                                                     \
	RUN(before "movlpd 24(%[in]), %%xmm0\n\t")                                                 \
	RUN(before "movhpd 24(%[in]), %%xmm0\n\t")                                                 \
	RUN(before "movlpd 24(%[in]), %%xmm0\n\tmovhpd 32(%[in]), %%xmm0\n\t")                     \
	RUN(before "movhlps %%xmm1, %%xmm0\n\t")                                                   \
	RUN(before "movlhps %%xmm1, %%xmm0\n\t")                                                   \
	RUN(before "movq %%xmm1, %%xmm0\n\t")                                                      \
	RUN(before "movq %[n], %%xmm0\n\t")                                                        \
	RUN(before "movd %k[n], %%xmm0\n\t")                                                       \
	RUN(before "addsd 40(%[in]), %%xmm0\n\t")                                                  \
	RUN(before "mulsd %%xmm1, %%xmm0\n\tsubsd %%xmm0, %%xmm1\n\t")                             \
	RUN(before "divss 8(%[in]), %%xmm0\n\t")                                                   \
	RUN(before "sqrtsd %%xmm1, %%xmm0\n\t")                                                    \
	RUN(before "minsd 8(%[in]), %%xmm0\n\tcmpltsd %%xmm0, %%xmm1\n\t")                         \
	RUN(before "cvtsi2sd %[n], %%xmm0\n\t")                                                    \
	RUN(before "cvtsi2ss %k[n], %%xmm0\n\tcvtss2sd %%xmm0, %%xmm1\n\t")                        \
	RUN(before "cvtsd2ss %%xmm1, %%xmm0\n\t")                                                  \
	RUN(before "xorpd %%xmm0, %%xmm0\n\tcvtsi2sd %[n], %%xmm0\n\taddpd %%xmm0, %%xmm1\n\t")    \
	RUN(before "unpcklpd %%xmm1, %%xmm0\n\tunpckhpd %%xmm0, %%xmm1\n\t")                       \
	RUN(before "pinsrw $3, %k[n], %%xmm0\n\tmovapd %%xmm0, %%xmm1\n\t")                        \
	RUN(before "movsd %%xmm0, 120(%[out])\n\tmovsd 48(%[in]), %%xmm0\n\tucomisd %%xmm0, "      \
		   "%%xmm1\n\t"                                                                    \
		   "movsd %%xmm0, %%xmm1\n\t")

#define ALL_AVX(before)                                                                            \
	RUN(before "vmovsd 8(%[in]), %%xmm0\n\t")                                                  \
	RUN(before "vmovsd %%xmm1, %%xmm0, %%xmm0\n\tvaddsd %%xmm0, %%xmm1, %%xmm1\n\t")           \
	RUN(before "movsd 8(%[in]), %%xmm0\n\tvextractf128 $1, %%ymm0, %%xmm1\n\t")                \
	RUN(before "vmovsd 8(%[in]), %%xmm0\n\tvextractf128 $1, %%ymm0, %%xmm1\n\t")               \
	RUN(before "movsd %%xmm1, %%xmm0\n\tvaddpd %%ymm0, %%ymm0, %%ymm2\n\t"                     \
		   "vextractf128 $1, %%ymm2, %%xmm1\n\t")                                          \
	RUN(before "vcvtsi2sd %[n], %%xmm1, %%xmm0\n\t")                                           \
	RUN(before "vmovhpd 16(%[in]), %%xmm1, %%xmm0\n\tvmovlpd 16(%[in]), %%xmm1, %%xmm1\n\t")

__attribute__((target("avx"))) static void avx(void)
{
	ALL_AVX("vmovupd 32(%[in]), %%ymm0\n\tvmovupd (%[in]), %%ymm1\n\t")
	ALL_AVX("vmovsd 32(%[in]), %%xmm0\n\tvmovupd (%[in]), %%ymm1\n\t")
}

static void sse(void)
{
	ALL("movupd 32(%[in]), %%xmm0\n\tmovupd 8(%[in]), %%xmm1\n\t")
	ALL("movupd 32(%[in]), %%xmm0\n\tmovupd 8(%[in]), %%xmm1\n\tjmp 2f\n2:\n\t")
	ALL("movsd 32(%[in]), %%xmm0\n\tmovsd 8(%[in]), %%xmm1\n\t")
	ALL("movss 36(%[in]), %%xmm0\n\tmovupd 8(%[in]), %%xmm1\n\tmovlpd 48(%[in]), %%xmm1\n\t")
	ALL("xorpd %%xmm0, %%xmm0\n\tpcmpeqd %%xmm1, %%xmm1\n\t")
	ALL("movupd (%[in]), %%xmm0\n\tmovapd %%xmm0, %%xmm1\n\tmovhpd 40(%[in]), %%xmm1\n\t")
}

/* ---- signals --------------------------------------------------------------------------------- */

static char *page;
static bool has_saved; /* the kernel's copy of the registers */
static unsigned found[12];

static void say(int signal, siginfo_t *info, void *context)
{
	const ucontext_t *c = context;
	const unsigned *saved = (const unsigned *)c->uc_mcontext.fpregs->_xmm;
	(void)info;
	printf("signal %d:", signal);
	for (int i = 0; i < 12; i++)
		printf(" %08x", has_saved ? saved[i] : found[i]);
	putchar('\n');
	if (signal == SIGSEGV)
		mprotect(page, PAGE, PROT_READ);
	if (signal == SIGFPE)
		((ucontext_t *)context)->uc_mcontext.gregs[REG_RCX] = 1;
}

/* The registers, as they were; goes on behind, or where it now works. */
__attribute__((target("general-regs-only"))) static void handler(
	int signal, siginfo_t *info, void *context)
{
	__asm__ volatile("movupd %%xmm0, (%0)\n\tmovupd %%xmm1, 16(%0)\n\tmovupd %%xmm2, 32(%0)"
			 :
			 : "r"(found)
			 : "memory");
	say(signal, info, context);
}

#define FULL "movupd 32(%[in]), %%xmm0\n\tmovupd 8(%[in]), %%xmm1\n\tmovupd 24(%[in]), %%xmm2\n\t"

/* (Where a scalar load fails, VEX has cleared its register already: it is one that nobody looks
 * at.) */
__attribute__((noinline)) static void loads(const char *at)
{
	RUN(FULL "movsd (%[in]), %%xmm0\n\tmulsd %%xmm0, %%xmm1\n\tmovsd %%xmm1, %%xmm2\n\t"
		 "addsd 40(%[in]), %%xmm2\n\tmovsd 48(%[in]), %%xmm0\n\tmovapd %%xmm0, %%xmm1\n\t")
#define FAILS(instruction)                                                                         \
	memset(out, 0x55, sizeof out);                                                             \
	__asm__ volatile(FULL "movsd (%[in]), %%xmm1\n\taddsd %%xmm1, %%xmm0\n\t" instruction      \
			      "movsd 16(%[in]), %%xmm1\n\tmovapd %%xmm1, %%xmm2\n\t" LOOK          \
			 :                                                                         \
			 : [in] "r"(in), [out] "r"(out), [n] "r"(at)                               \
			 : "xmm0", "xmm1", "xmm2", "xmm3", "memory");                              \
	show(instruction);
	FAILS("movsd (%[n]), %%xmm3\n\tmovapd %%xmm3, %%xmm0\n\t")
	if (at != (const char *)in)
		mprotect(page, PAGE, PROT_NONE);
	FAILS("movlpd (%[n]), %%xmm1\n\tmovhpd 8(%[n]), %%xmm1\n\t")
	if (at != (const char *)in)
		mprotect(page, PAGE, PROT_NONE);
	FAILS("movss (%[n]), %%xmm3\n\tmovsd %%xmm3, %%xmm0\n\t")
}

__attribute__((noinline)) static void divides(long by)
{
	long quotient = 1000, rest = 0;
	memset(out, 0x55, sizeof out);
	__asm__ volatile(FULL "movsd (%[in]), %%xmm1\n\taddsd %%xmm1, %%xmm0\n\tidivq %%rcx\n\t"
			      "movsd 16(%[in]), %%xmm1\n\tmovsd %%xmm1, %%xmm0\n\t" LOOK
			 : "+a"(quotient), "+d"(rest), "+c"(by)
			 : [in] "r"(in), [out] "r"(out)
			 : "xmm0", "xmm1", "xmm2", "memory");
	show("idivq");
}

__attribute__((noinline)) static void calls(void)
{
	long ret = SYS_kill;
	memset(out, 0x55, sizeof out);
	__asm__ volatile(FULL "movsd (%[in]), %%xmm1\n\taddsd %%xmm1, %%xmm0\n\tsyscall\n\t"
			      "movsd %%xmm1, %%xmm0\n\t" LOOK
			 : "+a"(ret)
			 : [in] "r"(in), [out] "r"(out), "D"((long)getpid()), "S"((long)SIGUSR1)
			 : "rcx", "r11", "xmm0", "xmm1", "xmm2", "memory");
	show("kill");
}

/* An instruction that Valgrind leaves to a function writes xmm0. */
static void helped(void)
{
	RUN("movsd (%[in]), %%xmm0\n\tmovupd 8(%[in]), %%xmm1\n\tpcmpistrm $0x40, %%xmm1, "
	    "%%xmm1\n\t"
	    "movapd %%xmm0, %%xmm2\n\tmovsd 8(%[in]), %%xmm0\n\tmovapd %%xmm2, %%xmm1\n\t")
}

static void signals(void)
{
	struct sigaction a = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO};
	page = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	for (int i = 0; i < 2; i++) {
		loads((const char *)in);
		divides(7);
	}
	sigaction(SIGUSR1, &a, NULL);
	calls();
	sigaction(SIGSEGV, &a, NULL);
	sigaction(SIGFPE, &a, NULL);
	mprotect(page, PAGE, PROT_NONE);
	loads(page);
	divides(0);
	calls();
}

int main(int argc, char **argv)
{
	sse();
	if (__builtin_cpu_supports("avx"))
		avx();
	has_saved = argc > 1 && !strcmp(argv[1], "saved");
	if (argc > 1) {
		if (__builtin_cpu_supports("sse4.2"))
			helped();
		signals();
	}
	return 0;
}
