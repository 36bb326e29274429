/* SPDX-License-Identifier: GPL-2.0-or-later */
/* main.c - longpole's tool for Valgrind: options, and the mode that does the work. See README.md.
 */
#include "mode.h"

#include "pub_tool_libcassert.h"
#include "pub_tool_libcbase.h"
#include "pub_tool_libcprint.h"
#include "pub_tool_options.h"

static const struct mode *const mode_table[] = {&mode_spin, &mode_memory};
enum { NR_MODES = sizeof mode_table / sizeof *mode_table };

static const struct mode *mode = &mode_spin;
static const HChar *out_path = "longpole.%p.json";

/* Valgrind reads the source lines of each file that is mapped, of libc's debug package above all:
 * the larger part of what its start takes, and no option is against it. meson.build links calls of
 * the core's reader to this one, which goes on there, whatever it hands over, or returns. */
UChar lines_are_read __attribute__((visibility("hidden"))) = 1;
__asm__(".text\n"
	".globl __wrap_vgModuleLocal_read_debuginfo_dwarf3\n"
	"__wrap_vgModuleLocal_read_debuginfo_dwarf3:\n"
	"	cmpb $0, lines_are_read(%rip)\n"
	"	jne __real_vgModuleLocal_read_debuginfo_dwarf3\n"
	"	ret\n");

static Bool set_mode(const HChar *name)
{
	for (Int i = 0; i < NR_MODES; i++)
		if (!VG_(strcmp)(mode_table[i]->name, name)) {
			mode = mode_table[i];
			lines_are_read = !mode->no_lines;
			return True;
		}
	VG_(fmsg_bad_option)(name, "--mode: there is no such mode\n");
	return True;
}

static Bool process_option(const HChar *arg)
{
	const HChar *name = NULL;
	if (VG_STR_CLO(arg, "--mode", name))
		return set_mode(name);
	if (VG_STR_CLO(arg, "--out", out_path))
		return True;
	return mode->option && mode->option(arg);
}

static void print_usage(void)
{
	VG_(printf)
	("    --out=FILE                what was found, %%p is the process [longpole.%%p.json]\n");
	for (Int i = 0; i < NR_MODES; i++) {
		VG_(printf)
		("    --mode=%-18s %s%s\n", mode_table[i]->name, mode_table[i]->about,
			i ? "" : " [default]");
		if (mode_table[i]->usage)
			mode_table[i]->usage();
	}
}

static void print_debug_usage(void)
{
	VG_(printf)("    (none)\n");
}

static void after_options(void)
{
	if (mode->begin)
		mode->begin();
}

static IRSB *instrument(VgCallbackClosure *closure, IRSB *in, const VexGuestLayout *layout,
	const VexGuestExtents *extents, const VexArchInfo *arch, IRType guest_word,
	IRType host_word)
{
	(void)closure;
	(void)arch;
	tl_assert(guest_word == host_word && guest_word == Ity_I64);
	return mode->instrument(in, layout, extents);
}

static void finish(Int exit_code)
{
	(void)exit_code;
	if (!mode->end)
		return;
	HChar *path = VG_(expand_file_name)("--out", out_path);
	mode->end(path);
}

/* ---- what the core tells --------------------------------------------------------------------- */

static void on_switch(ThreadId tid, ULong blocks)
{
	(void)blocks;
	if (mode->switched_to)
		mode->switched_to(tid);
}

static void on_create(ThreadId parent, ThreadId child)
{
	if (mode->created)
		mode->created(parent, child);
}

static void before_syscall(ThreadId tid, UInt number, UWord *args, UInt nr_args)
{
	(void)args;
	(void)nr_args;
	if (mode->calls_kernel)
		mode->calls_kernel(tid, number);
}

static void after_syscall(ThreadId tid, UInt number, UWord *args, UInt nr_args, SysRes result)
{
	if (mode->called_kernel)
		mode->called_kernel(tid, number, args, nr_args, result);
}

static void on_signal(ThreadId tid, Int signal, Bool alt_stack)
{
	(void)alt_stack;
	if (mode->signalled)
		mode->signalled(tid, signal);
}

static void on_exit(ThreadId tid)
{
	if (mode->exits)
		mode->exits(tid);
}

static void on_kernel_reads(
	CorePart part, ThreadId tid, const HChar *what, Addr address, SizeT bytes)
{
	(void)what;
	if (mode->accessed && part == Vg_CoreSysCall)
		mode->accessed(tid, False, address, bytes);
}

static void on_kernel_reads_text(CorePart part, ThreadId tid, const HChar *what, Addr address)
{
	on_kernel_reads(part, tid, what, address, VG_(strlen)((const HChar *)address) + 1);
}

static void on_kernel_wrote(CorePart part, ThreadId tid, Addr address, SizeT bytes)
{
	if (mode->accessed && part == Vg_CoreSysCall)
		mode->accessed(tid, True, address, bytes);
}

static void before_options(void)
{
	VG_(details_name)("longpole");
	VG_(details_version)(NULL);
	VG_(details_description)("what a program executes, for longpole");
	VG_(details_copyright_author)("Free software, GPL version 2 or later.");
	VG_(details_bug_reports_to)("longpole's maintainers");
	VG_(details_avg_translation_sizeB)(600);
	VG_(basic_tool_funcs)(after_options, instrument, finish);
	VG_(needs_command_line_options)(process_option, print_usage, print_debug_usage);
	VG_(needs_syscall_wrapper)(before_syscall, after_syscall);
	VG_(track_start_client_code)(on_switch);
	VG_(track_pre_thread_ll_create)(on_create);
	VG_(track_pre_thread_ll_exit)(on_exit);
	VG_(track_pre_deliver_signal)(on_signal);
	VG_(track_pre_mem_read)(on_kernel_reads);
	VG_(track_pre_mem_read_asciiz)(on_kernel_reads_text);
	VG_(track_post_mem_write)(on_kernel_wrote);
}

VG_DETERMINE_INTERFACE_VERSION(before_options)
