	.file	"exceptions2.cc"
	.text
.Ltext0:
	.file 0 "/src" "tests/memory/exceptions2.cc"
	.p2align 4
	.globl	_Z5otherv
	.type	_Z5otherv, @function
_Z5otherv:
.LFB1021:
	.file 1 "tests/memory/exceptions2.cc"
	.loc 1 5 12 view -0
	.cfi_startproc
	.loc 1 5 14 view .LVU1
.LVL0:
.LBB244:
.LBI244:
	.file 2 "/usr/include/c++/12/bits/allocator.h"
	.loc 2 156 7 view .LVU2
.LBB245:
.LBI245:
	.file 3 "/usr/include/c++/12/bits/new_allocator.h"
	.loc 3 80 7 view .LVU3
	.loc 3 80 7 is_stmt 0 view .LVU4
.LBE245:
.LBE244:
.LBB246:
.LBI246:
	.file 4 "/usr/include/c++/12/bits/stl_vector.h"
	.loc 4 564 7 is_stmt 1 view .LVU5
.LBB247:
.LBI247:
	.loc 4 1902 7 view .LVU6
.LBB248:
.LBI248:
	.loc 2 159 7 view .LVU7
.LBB249:
.LBI249:
	.loc 3 83 7 view .LVU8
	.loc 3 83 7 is_stmt 0 view .LVU9
.LBE249:
.LBE248:
.LBB250:
.LBI250:
	.loc 2 174 7 is_stmt 1 view .LVU10
.LBB251:
.LBI251:
	.loc 3 90 7 view .LVU11
	.loc 3 90 7 is_stmt 0 view .LVU12
.LBE251:
.LBE250:
.LBE247:
.LBB252:
.LBI252:
	.loc 4 330 7 is_stmt 1 view .LVU13
.LBB253:
.LBI253:
	.loc 4 143 2 view .LVU14
.LBB254:
.LBI254:
	.loc 2 159 7 view .LVU15
.LBB255:
.LBI255:
	.loc 3 83 7 view .LVU16
	.loc 3 83 7 is_stmt 0 view .LVU17
.LBE255:
.LBE254:
.LBB256:
.LBI256:
	.loc 4 99 2 is_stmt 1 view .LVU18
	.loc 4 99 2 is_stmt 0 view .LVU19
.LBE256:
.LBE253:
.LBB257:
.LBI257:
	.loc 4 393 7 is_stmt 1 view .LVU20
.LBB258:
.LBI258:
	.loc 4 375 7 view .LVU21
.LBB259:
.LBB260:
.LBI260:
	.file 5 "/usr/include/c++/12/bits/alloc_traits.h"
	.loc 5 463 7 view .LVU22
.LBB261:
.LBI261:
	.loc 3 112 7 view .LVU23
	.loc 3 112 7 is_stmt 0 view .LVU24
.LBE261:
.LBE260:
.LBE259:
.LBE258:
.LBE257:
.LBE252:
.LBE246:
	.loc 1 5 12 view .LVU25
	pushq	%rbx
	.cfi_def_cfa_offset 16
	.cfi_offset 3, -16
.LBB298:
.LBB274:
.LBB272:
.LBB270:
.LBB268:
.LBB266:
.LBB264:
.LBB262:
	.loc 3 137 48 view .LVU26
	movl	$40, %edi
	call	_Znwm@PLT
.LVL1:
	movq	%rax, %rdi
.LVL2:
	.loc 3 137 48 view .LVU27
.LBE262:
.LBE264:
.LBE266:
.LBE268:
.LBE270:
.LBE272:
.LBE274:
.LBB275:
.LBI275:
	.loc 4 1699 7 is_stmt 1 view .LVU28
.LBB276:
.LBI276:
	.file 6 "/usr/include/c++/12/bits/stl_uninitialized.h"
	.loc 6 460 5 view .LVU29
.LBB277:
.LBI277:
	.loc 6 312 5 view .LVU30
.LBB278:
.LBB279:
.LBI279:
	.loc 6 292 9 view .LVU31
.LBB280:
.LBI280:
	.file 7 "/usr/include/c++/12/bits/stl_algobase.h"
	.loc 7 1143 5 view .LVU32
.LBB281:
.LBI281:
	.loc 7 1108 5 view .LVU33
.LBB282:
.LBI282:
	.loc 7 1108 5 view .LVU34
.LBB283:
.LBI283:
	.loc 7 967 5 view .LVU35
.LBB284:
.LBI284:
	.loc 7 917 5 view .LVU36
.LBB285:
	.loc 7 921 22 view .LVU37
	movq	%rax, %rdx
	leaq	40(%rax), %rsi
.LVL3:
	.loc 7 921 22 is_stmt 0 view .LVU38
.LBE285:
.LBE284:
.LBE283:
.LBE282:
.LBE281:
.LBE280:
.LBE279:
.LBE278:
.LBE277:
.LBE276:
.LBE275:
.LBB296:
.LBB273:
.LBB271:
.LBB269:
.LBB267:
.LBB265:
.LBB263:
	.loc 3 137 48 view .LVU39
	movq	%rax, %rcx
	movq	.LC0(%rip), %rax
.LVL4:
.L2:
	.loc 3 137 48 view .LVU40
.LBE263:
.LBE265:
.LBE267:
.LBE269:
.LBE271:
.LBE273:
.LBE296:
.LBB297:
.LBB295:
.LBB294:
.LBB293:
.LBB292:
.LBB291:
.LBB290:
.LBB289:
.LBB288:
.LBB287:
.LBB286:
	.loc 7 922 11 view .LVU41
	movq	%rax, (%rcx)
	.loc 7 921 7 is_stmt 1 view .LVU42
	.loc 7 921 22 view .LVU43
	addq	$8, %rcx
	cmpq	%rcx, %rsi
	jne	.L2
.LBE286:
.LBE287:
.LBE288:
.LBE289:
.LBE290:
.LBE291:
.LBE292:
.LBE293:
.LBE294:
.LBE295:
.LBE297:
.LBE298:
	.loc 1 5 44 is_stmt 0 view .LVU44
	xorl	%ebx, %ebx
.LVL5:
	.p2align 4,,10
	.p2align 3
.L3:
.LBB299:
	.loc 1 5 63 is_stmt 1 view .LVU45
	.loc 1 5 64 is_stmt 0 view .LVU46
	addl	(%rdx), %ebx
.LVL6:
	.loc 1 5 49 is_stmt 1 view .LVU47
	.loc 1 5 60 view .LVU48
	addq	$4, %rdx
.LVL7:
	.loc 1 5 60 is_stmt 0 view .LVU49
	cmpq	%rdx, %rsi
	jne	.L3
.LVL8:
	.loc 1 5 60 view .LVU50
.LBE299:
	.loc 1 5 69 is_stmt 1 discriminator 4 view .LVU51
.LBB300:
.LBI300:
	.loc 4 728 7 discriminator 4 view .LVU52
.LBB301:
.LBI301:
	.loc 4 298 7 discriminator 4 view .LVU53
	.loc 4 298 7 is_stmt 0 discriminator 4 view .LVU54
.LBE301:
.LBB302:
.LBI302:
	.loc 5 847 5 is_stmt 1 discriminator 4 view .LVU55
	.loc 5 847 5 is_stmt 0 discriminator 4 view .LVU56
.LBE302:
.LBB303:
.LBI303:
	.loc 4 364 7 is_stmt 1 discriminator 4 view .LVU57
.LBB304:
.LBI304:
	.loc 4 383 7 discriminator 4 view .LVU58
.LBB305:
.LBB306:
.LBI306:
	.loc 4 383 7 discriminator 4 view .LVU59
.LBB307:
.LBB308:
.LBI308:
	.loc 5 495 7 discriminator 4 view .LVU60
.LBB309:
.LBI309:
	.loc 3 142 7 discriminator 4 view .LVU61
.LBB310:
	.loc 3 158 26 is_stmt 0 discriminator 4 view .LVU62
	movl	$40, %esi
	call	_ZdlPvm@PLT
.LVL9:
	.loc 3 158 26 discriminator 4 view .LVU63
.LBE310:
.LBE309:
.LBE308:
.LBE307:
.LBE306:
.LBE305:
.LBE304:
.LBB311:
.LBI311:
	.loc 4 133 14 is_stmt 1 discriminator 4 view .LVU64
.LBB312:
.LBI312:
	.loc 2 174 7 discriminator 4 view .LVU65
.LBB313:
.LBI313:
	.loc 3 90 7 discriminator 4 view .LVU66
	.loc 3 90 7 is_stmt 0 discriminator 4 view .LVU67
.LBE313:
.LBE312:
.LBE311:
.LBE303:
.LBE300:
	.loc 1 5 79 discriminator 4 view .LVU68
	movl	%ebx, %eax
	popq	%rbx
	.cfi_def_cfa_offset 8
	ret
	.cfi_endproc
.LFE1021:
	.size	_Z5otherv, .-_Z5otherv
	.section	.rodata.cst8,"aM",@progbits,8
	.align 8
.LC0:
	.long	3
	.long	3
	.text
.Letext0:
	.file 8 "/usr/include/c++/12/type_traits"
	.file 9 "/usr/include/x86_64-linux-gnu/c++/12/bits/c++config.h"
	.file 10 "/usr/include/c++/12/bits/stl_iterator_base_types.h"
	.file 11 "/usr/include/c++/12/debug/debug.h"
	.file 12 "/usr/include/c++/12/bits/stl_construct.h"
	.file 13 "/usr/include/c++/12/bits/vector.tcc"
	.file 14 "/usr/include/c++/12/initializer_list"
	.file 15 "/usr/include/c++/12/bits/functexcept.h"
	.file 16 "/usr/include/c++/12/bits/predefined_ops.h"
	.file 17 "/usr/include/c++/12/ext/alloc_traits.h"
	.file 18 "/usr/include/c++/12/bits/stl_iterator.h"
	.file 19 "/usr/include/c++/12/new"
	.section	.debug_info,"",@progbits
.Ldebug_info0:
	.long	0x2f07
	.value	0x5
	.byte	0x1
	.byte	0x8
	.long	.Ldebug_abbrev0
	.uleb128 0x44
	.long	.LASF389
	.byte	0x21
	.long	.LASF0
	.long	.LASF1
	.long	.LLRL57
	.quad	0
	.long	.Ldebug_line0
	.uleb128 0x45
	.string