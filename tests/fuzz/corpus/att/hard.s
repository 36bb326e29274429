	.file	"hard.c"
	.text
	.p2align 4
	.type	handler, @function
handler:
.LFB22:
	.cfi_startproc
	movd	%edi, %xmm2
	leaq	table(%rip), %rax
	pshufd	$0, %xmm2, %xmm1
	leaq	80(%rax), %rdx
.L2:
	movdqa	(%rax), %xmm0
	addq	$16, %rax
	paddd	%xmm1, %xmm0
	movaps	%xmm0, -16(%rax)
	cmpq	%rax, %rdx
	jne	.L2
	movl	hits(%rip), %eax
	addl	$1, %eax
	movl	%eax, hits(%rip)
	ret
	.cfi_endproc
.LFE22:
	.size	handler, .-handler
	.p2align 4
	.type	add.0, @function
add.0:
.LFB25:
	.cfi_startproc
	movl	(%r10), %eax
	addl	%edi, %eax
	movl	%eax, (%r10)
	ret
	.cfi_endproc
.LFE25:
	.size	add.0, .-add.0
	.p2align 4
	.type	bits.constprop.0, @function
bits.constprop.0:
.LFB34:
	.cfi_startproc
#APP
# 92 "tests/memory/hard.c" 1
	btsl $5,(%rdi)
# 0 "" 2
#NO_APP
	movl	(%rdi), %eax
	ret
	.cfi_endproc
.LFE34:
	.size	bits.constprop.0, .-bits.constprop.0
	.p2align 4
	.type	pushmem.constprop.0, @function
pushmem.constprop.0:
.LFB35:
	.cfi_startproc
#APP
# 84 "tests/memory/hard.c" 1
	lea -128(%rsp),%rsp; pushq (%rdi); popq %rax; lea 128(%rsp),%rsp
# 0 "" 2
#NO_APP
	ret
	.cfi_endproc
.LFE35:
	.size	pushmem.constprop.0, .-pushmem.constprop.0
	.p2align 4
	.type	loopasm.constprop.0, @function
loopasm.constprop.0:
.LFB36:
	.cfi_startproc
	xorl	%eax, %eax
	movl	$9, %edx
#APP
# 78 "tests/memory/hard.c" 1
	1: addl %edx,%eax; decl %edx; jnz 1b
# 0 "" 2
#NO_APP
	ret
	.cfi_endproc
.LFE36:
	.size	loopasm.constprop.0, .-loopasm.constprop.0
	.p2align 4
	.type	cmp3.constprop.0, @function
cmp3.constprop.0:
.LFB37:
	.cfi_startproc
	movl	$-1, %eax
	cmpq	$1, %rdi
	jle	.L9
	xorl	%eax, %eax
	cmpq	$2, %rdi
	setne	%al
.L9:
	ret
	.cfi_endproc
.LFE37:
	.size	cmp3.constprop.0, .-cmp3.constprop.0
	.p2align 4
	.type	realign.constprop.0, @function
realign.constprop.0:
.LFB38:
	.cfi_startproc
	movsd	.LC0(%rip), %xmm0
	ret
	.cfi_endproc
.LFE38:
	.size	realign.constprop.0, .-realign.constprop.0
	.p2align 4
	.type	nest.constprop.0, @function
nest.constprop.0:
.LFB39:
	.cfi_startproc
	pushq	%rbp
	.cfi_def_cfa_offset 16
	.cfi_offset 6, -16
	movl	$-17591, %edx
	movl	$-17847, %ecx
	pushq	%rbx
	.cfi_def_cfa_offset 24
	.cfi_offset 3, -24
	xorl	%ebx, %ebx
	subq	$56, %rsp
	.cfi_def_cfa_offset 80
	leaq	80(%rsp), %rax
	movw	%dx, 4(%rsp)
	leaq	add.0(%rip), %rdx
	movq	%rax, 32(%rsp)
	movq	%rsp, %rax
	leaq	4(%rsp), %rbp
	movq	%rdx, 6(%rsp)
	movw	%cx, 14(%rsp)
	movq	%rax, 16(%rsp)
	movl	$-1864106167, 24(%rsp)
	movl	$0, (%rsp)
	.p2align 4,,10
	.p2align 3
.L14:
	movl	%ebx, %edi
	addl	$1, %ebx
	call	*%rbp
	cmpl	$9, %ebx
	jne	.L14
	movl	(%rsp), %eax
	addq	$56, %rsp
	.cfi_def_cfa_offset 24
	popq	%rbx
	.cfi_def_cfa_offset 16
	popq	%rbp
	.cfi_def_cfa_offset 8
	ret
	.cfi_endproc
.LFE39:
	.size	nest.constprop.0, .-nest.constprop.0
	.section	.rodata.str1.1,"aMS",@progbits,1
.LC1:
	.string	"hello world"
.LC2:
	.string	"abcdefgh"
.LC3:
	.string	"abcdEfgh"
	.text
	.p2align 4
	.type	strings.constprop.0, @function
strings.constprop.0:
.LFB40:
	.cfi_startproc
	movl	$33, %ecx
#APP
# 24 "tests/memory/hard.c" 1
	cld; rep movsb
# 0 "" 2
#NO_APP
	movq	$-1, %rdx
	leaq	.LC1(%rip), %rdi
	xorl	%eax, %eax
	movq	%rdx, %rcx
#APP
# 27 "tests/memory/hard.c" 1
	repne scasb
# 0 "" 2
#NO_APP
	leaq	.LC2(%rip), %rdi
	movq	%rcx, %rdx
	leaq	.LC3(%rip), %rsi
	movl	$8, %ecx
#APP
# 31 "tests/memory/hard.c" 1
	repe cmpsb
# 0 "" 2
#NO_APP
	leaq	(%rdx,%rcx), %rax
	ret
	.cfi_endproc
.LFE40:
	.size	strings.constprop.0, .-strings.constprop.0
	.p2align 4
	.type	jump.constprop.0.isra.0, @function
jump.constprop.0.isra.0:
.LFB42:
	.cfi_startproc
	subq	$8, %rsp
	.cfi_def_cfa_offset 16
	leaq	table(%rip), %rax
	movdqa	.LC4(%rip), %xmm1
	movdqa	.LC5(%rip), %xmm2
	leaq	-48(%rax), %rdx
.L19:
	movdqa	%xmm1, %xmm0
	subq	$16, %rax
	paddd	%xmm2, %xmm1
	pshufd	$27, %xmm0, %xmm0
	movups	%xmm0, 52(%rax)
	cmpq	%rdx, %rax
	jne	.L19
	movl	$7, %esi
	leaq	jb(%rip), %rdi
	call	longjmp@PLT
	.cfi_endproc
.LFE42:
	.size	jump.constprop.0.isra.0, .-jump.constprop.0.isra.0
	.section	.rodata.str1.1
.LC14:
	.string	"%ld %d %d\n"
	.section	.text.startup,"ax",@progbits
	.p2align 4
	.globl	main
	.type	main, @function
main:
.LFB33:
	.cfi_startproc
	pushq	%r12
	.cfi_def_cfa_offset 16
	.cfi_offset 12, -16
	pxor	%xmm0, %xmm0
	pushq	%rbp
	.cfi_def_cfa_offset 24
	.cfi_offset 6, -24
	pushq	%rbx
	.cfi_def_cfa_offset 32
	.cfi_offset 3, -32
	subq	$176, %rsp
	.cfi_def_cfa_offset 208
	movdqa	.LC6(%rip), %xmm3
	movdqa	.LC7(%rip), %xmm9
	movdqa	.LC8(%rip), %xmm8
	movdqa	.LC9(%rip), %xmm7
	movaps	%xmm0, 48(%rsp)
	leaq	112(%rsp), %rax
	movdqa	.LC10(%rip), %xmm6
	movdqa	.LC11(%rip), %xmm5
	movaps	%xmm0, 64(%rsp)
	leaq	176(%rsp), %rdx
	movaps	%xmm0, 80(%rsp)
	movaps	%xmm0, 96(%rsp)
.L23:
	movdqa	%xmm3, %xmm2
	addq	$16, %rax
	paddd	%xmm9, %xmm3
	movdqa	%xmm2, %xmm4
	movdqa	%xmm2, %xmm1
	movdqa	%xmm2, %xmm0
	paddd	%xmm8, %xmm4
	punpcklwd	%xmm4, %xmm1
	punpckhwd	%xmm4, %xmm0
	movdqa	%xmm1, %xmm4
	punpcklwd	%xmm0, %xmm1
	punpckhwd	%xmm0, %xmm4
	movdqa	%xmm2, %xmm0
	paddd	%xmm6, %xmm2
	paddd	%xmm7, %xmm0
	punpcklwd	%xmm4, %xmm1
	movdqa	%xmm0, %xmm4
	punpcklwd	%xmm2, %xmm0
	pand	%xmm5, %xmm1
	pu