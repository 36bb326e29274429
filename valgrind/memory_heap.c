/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * memory_heap.c - calls that allocate and free memory, as call records (memory/stream/source.h).
 *
 * Functions are known by their names, where they begin; a call is over when a return finds its
 * return address on the stack where the call has put it, whoever returns. What the outermost call
 * asks others for is not said again.
 */
#include "code.h"
#include "memory.h"

#include "libvex_guest_offsets.h"
#include "pub_tool_debuginfo.h"
#include "pub_tool_libcbase.h"
#include "pub_tool_machine.h"
#include "pub_tool_mallocfree.h"
#include "pub_tool_threadstate.h"
#include "pub_tool_vki.h"

enum size { /* which arguments say how much */
	SIZE_NONE,
	SIZE_FIRST,
	SIZE_SECOND,
	SIZE_THIRD,
	SIZE_FIRST_TIMES_SECOND,
	SIZE_SECOND_TIMES_THIRD,
	SIZE_STRING,       /* the first argument's, with its end */
	SIZE_STRING_SECOND /* the same, at most the second argument's */
};
struct function {
	const HChar *name;
	UChar size;
	UChar released; /* SIZE_NONE: all; 0xff: nothing is */
	UChar how;      /* enum memory_allocation */
	Bool prefix;    /* of names */
	Bool indirect;  /* the first argument says where the result goes */
};
enum {
	KEPT = 0xff,
	MAP_DENYWRITE = 0x800, /* mmap(): what the dynamic linker says of files that it loads */
};
static const struct function table[] = {
	{.name = "malloc", .size = SIZE_FIRST, .released = KEPT},
	{.name = "calloc", .size = SIZE_FIRST_TIMES_SECOND, .released = KEPT},
	{.name = "realloc", .size = SIZE_SECOND, .released = SIZE_NONE},
	{.name = "reallocarray", .size = SIZE_SECOND_TIMES_THIRD, .released = SIZE_NONE},
	{.name = "memalign", .size = SIZE_SECOND, .released = KEPT},
	{.name = "aligned_alloc", .size = SIZE_SECOND, .released = KEPT},
	{.name = "posix_memalign", .size = SIZE_THIRD, .released = KEPT, .indirect = True},
	{.name = "valloc", .size = SIZE_FIRST, .released = KEPT},
	{.name = "pvalloc", .size = SIZE_FIRST, .released = KEPT},
	{.name = "free", .size = SIZE_NONE, .released = SIZE_NONE},
	{.name = "cfree", .size = SIZE_NONE, .released = SIZE_NONE},
	{.name = "operator new", .size = SIZE_FIRST, .released = KEPT, .prefix = True},
	{.name = "operator delete", .size = SIZE_NONE, .released = SIZE_NONE, .prefix = True},
	{.name = "strdup", .size = SIZE_STRING, .released = KEPT},
	{.name = "strndup", .size = SIZE_STRING_SECOND, .released = KEPT},
	{.name = "mmap", .size = SIZE_SECOND, .released = KEPT, .how = MEMORY_ALLOCATION_MAPPING},
	{.name = "mmap64", .size = SIZE_SECOND, .released = KEPT, .how = MEMORY_ALLOCATION_MAPPING},
	{.name = "munmap", .size = SIZE_NONE, .released = SIZE_SECOND},
};

struct call {            /* that is under way in a thread */
	Addr returns_at; /* where its return address is; 0: none is */
	Addr code;       /* where it began */
	const struct function *function;
	ULong bytes, began_ticks;
	Addr old, site, indirect;
};
static struct call *call_of; /* by ThreadId */

static const struct function *function_at(Addr code)
{
	const HChar *name;
	if (!VG_(get_fnname_if_entry)(VG_(current_DiEpoch)(), code, &name))
		return NULL;
	while (*name == '_') /* a libc may call them __munmap, __libc_free */
		name++;
	name += VG_(strncmp)(name, "libc_", 5) ? 0 : 5;
	for (UInt i = 0; i < sizeof table / sizeof *table; i++) {
		SizeT n = VG_(strlen)(table[i].name);
		if (!VG_(strncmp)(name, table[i].name, n) &&
			(!name[n] || (table[i].prefix && (name[n] == '(' || name[n] == '['))))
			return &table[i];
	}
	return NULL;
}

static ULong size_of(UChar size, ULong first, ULong second, ULong third)
{
	const ULong by_rule[] = {0, first, second, third, first * second, second * third};
	if (size < SIZE_STRING)
		return by_rule[size];
	ULong n = 0, most = size == SIZE_STRING ? ~0ull : second;
	while (n < most && ((const HChar *)first)[n])
		n++;
	return n + 1;
}

static ULong guest_register(Int offset)
{
	ULong v = 0;
	VG_(get_shadow_regs_area)
	(VG_(get_running_tid)(), (UChar *)&v, 0, (PtrdiffT)offset, sizeof v);
	return v;
}

/* The dynamic linker maps a file's segments, and zeroes behind them, where they belong: variables
 * of that file, not allocated memory. */
static Bool maps_image(const struct function *f, Addr site)
{
	if (f->how != MEMORY_ALLOCATION_MAPPING || f->released != KEPT)
		return False;
	const DebugInfo *di = VG_(find_DebugInfo)(VG_(current_DiEpoch)(), site);
	const HChar *name = di ? VG_(DebugInfo_get_soname)(di) : NULL;
	ULong flags = guest_register(OFFSET_amd64_RCX);
	return name && !VG_(strncmp)(name, "ld-linux", 8) &&
	       (flags & (VKI_MAP_FIXED | MAP_DENYWRITE)) != 0;
}

/* Called by translated code where such a function begins. */
static void entered(
	const struct function *f, Addr code, Addr sp, ULong first, ULong second, ULong third)
{
	struct call *c = &call_of[VG_(get_running_tid)()];
	Addr site = *(const Addr *)sp;
	/* One that it makes; one that it ends with, by a jump. (Otherwise it was left by longjmp()
	 * or an exception.) */
	if (c->returns_at &&
		(sp < c->returns_at || (sp == c->returns_at && site == c->site && code != c->code)))
		return;
	if (maps_image(f, site))
		return;
	*c = (struct call){.returns_at = sp,
		.code = code,
		.function = f,
		.bytes = size_of(f->size, first, second, third),
		.began_ticks = memory_now_ticks(),
		.old = f->released == KEPT ? 0 : first,
		.site = site,
		.indirect = f->indirect ? first : 0};
	memory_hot.returns_at = sp;
	if (c->old)
		memory_mark_call(MEMORY_CALL_release, c->began_ticks,
			(const ULong[4]){c->old, size_of(f->released, first, second, third)});
}

static void returned(ULong result, Addr to)
{
	struct call *c = &call_of[VG_(get_running_tid)()];
	c->returns_at = memory_hot.returns_at = 0;
	if (to != c->site || c->function->size == SIZE_NONE) /* (another: this one has thrown) */
		return;
	Addr block = c->indirect ? (result ? 0 : *(const Addr *)c->indirect) : result;
	if (block && block < (Addr)-4096) /* (after a failed realloc the old one is not known) */
		memory_mark_call(MEMORY_CALL_allocate, c->began_ticks,
			(const ULong[4]){block, c->bytes, c->site, c->function->how});
}

void memory_heap_switched(ThreadId tid)
{
	if (!call_of)
		call_of = VG_(calloc)("longpole.calls", VG_N_THREADS, sizeof *call_of);
	memory_hot.returns_at = call_of[tid].returns_at;
}

void memory_heap_exits(ThreadId tid)
{
	if (call_of)
		call_of[tid].returns_at = 0;
}

/* ---- what is put into the program's code ----------------------------------------------------- */

static IRExpr *get(IRSB *out, Int offset)
{
	return code_assign(out, Ity_I64, IRExpr_Get(offset, Ity_I64));
}

void memory_heap_begin_code(IRSB *out, Addr code)
{
	const struct function *f = function_at(code);
	if (!f)
		return;
	IRExpr **args = mkIRExprVec_6(code_u64((Addr)f), code_u64(code), get(out, OFFSET_amd64_RSP),
		get(out, OFFSET_amd64_RDI), get(out, OFFSET_amd64_RSI), get(out, OFFSET_amd64_RDX));
	addStmtToIRSB(out, IRStmt_Dirty(unsafeIRDirty_0_N(
				   0, "entered", VG_(fnptr_to_fnentry)((void *)entered), args)));
}

void memory_heap_end_code(IRSB *out)
{
	if (out->jumpkind != Ijk_Ret)
		return;
	IRExpr *popped = code_binary(
		out, Ity_I64, Iop_Sub64, get(out, OFFSET_amd64_RSP), code_u64(sizeof(Addr)));
	IRDirty *d = unsafeIRDirty_0_N(0, "returned", VG_(fnptr_to_fnentry)((void *)returned),
		mkIRExprVec_2(get(out, OFFSET_amd64_RAX), out->next));
	d->guard = code_binary(
		out, Ity_I1, Iop_CmpEQ64, popped, code_load_global(out, &memory_hot.returns_at));
	addStmtToIRSB(out, IRStmt_Dirty(d));
}
