/* SPDX-License-Identifier: GPL-2.0-or-later */
/* spin_out.c - the spin mode's answer: one JSON document, which `longpole spin` reads. */
#include "spin.h"

#include "pub_tool_debuginfo.h"
#include "pub_tool_libcbase.h"
#include "pub_tool_libcfile.h"
#include "pub_tool_libcprint.h"
#include "pub_tool_libcproc.h"
#include "pub_tool_vki.h"

static struct {
	Int fd;
	UInt used;
	Bool failed;
	HChar text[16384];
} out;

static void flush(void)
{
	UInt at = 0;
	while (at < out.used && !out.failed) {
		Int nr = VG_(write)(out.fd, out.text + at, (Int)(out.used - at));
		out.failed = nr <= 0;
		at += nr > 0 ? (UInt)nr : 0;
	}
	out.used = 0;
}

static void add(const HChar *format, ...) PRINTF_CHECK(1, 2);
static void add(const HChar *format, ...)
{
	if (out.used > sizeof out.text - 512)
		flush();
	va_list args;
	va_start(args, format);
	out.used += VG_(vsnprintf)(
		out.text + out.used, (Int)(sizeof out.text - out.used), format, args);
	va_end(args);
}

/* What others have named, as a JSON string; at most 200 bytes of it. */
static void add_text(const HChar *text)
{
	add("\"");
	for (UInt i = 0; text[i] && i < 200; i++) {
		UChar c = (UChar)text[i];
		if (c == '"' || c == '\\')
			add("\\%c", c);
		else if (c < ' ' || c > '~')
			add("?");
		else
			add("%c", c);
	}
	add("\"");
}

static void add_code(const HChar *key, Addr pc)
{
	DiEpoch epoch = VG_(current_DiEpoch)();
	const HChar *text;
	UInt line;
	add("\"%s\": {\"address\": \"0x%lx\"", key, pc);
	if (VG_(get_fnname)(epoch, pc, &text)) {
		add(", \"function\": ");
		add_text(text);
	}
	if (VG_(get_filename_linenum)(epoch, pc, &text, NULL, &line)) {
		add(", \"file\": ");
		add_text(text);
		add(", \"line\": %u", line);
	}
	if (VG_(get_objname)(epoch, pc, &text)) {
		add(", \"object\": ");
		add_text(text);
	}
	add("}");
}

/* Another thread ended a wait. */
static void add_word(Addr address, UInt waiter)
{
	DiEpoch epoch = VG_(current_DiEpoch)();
	const HChar *name;
	PtrdiffT offset;
	const struct watched *w = VG_(HT_lookup)(spin_run.watched, address >> 3);
	add("{\"address\": \"0x%lx\"", address);
	if (VG_(get_datasym_and_offset)(epoch, address, &name, &offset)) {
		add(", \"name\": ");
		add_text(name);
		add(", \"offset_bytes\": %ld", (long)offset);
	}
	if (w && w->own)
		add(", \"own_stack\": true");
	if (w) {
		add(", \"changes\": %llu, \"writers\": [", w->last.changes);
		for (UInt i = 0; i < w->nr_writers; i++)
			add("%s%u", i ? ", " : "", w->writer[i]);
		add("]");
		const struct writer *by =
			w->last.thread == waiter && w->other.changes ? &w->other : &w->last;
		if (by->changes) {
			add(", \"last_writer\": %u, ", by->thread);
			add_code("last_writer_at", by->pc);
		}
	}
	add("}");
}

static void add_loop(const struct loop *l)
{
	add("{\"thread\": %u, ", l->thread);
	add_code("branch", l->bct);
	add(", ");
	add_code("begins", l->first);
	add(", \"spin_iterations\": %llu, \"spin_instructions\": %llu, \"waits\": %llu, "
	    "\"longest_iterations\": %llu, ",
		l->spins, l->spinning, l->episodes, l->most_iterations);
	add("\"counting_iterations\": %llu, \"counting_instructions\": %llu, ", l->phase_iterations,
		l->phase_instructions);
	add("\"more_words\": %s, \"words\": [", l->more_addresses ? "true" : "false");
	for (UInt i = 0; i < l->nr_addresses; i++) {
		add(i ? ", " : "");
		add_word(l->address[i], l->thread);
	}
	add("]}");
}

static void add_thread(const struct thread *t)
{
	const struct spin_counts *c = &t->detector.counts;
	add("{\"thread\": %u, \"parent\": %u, \"instructions\": %llu, ", t->serial, t->parent,
		t->hot.instructions);
	add("\"marked_instructions\": %llu, \"spin_instructions\": %llu, ", t->hot.marked,
		(ULong)c->spinning);
	add("\"counting_instructions\": %llu, \"branches_back\": %llu, \"cycles\": %llu, "
	    "\"spin_iterations\": %llu, \"evictions\": %llu, \"overflows\": %llu}",
		t->phase_instructions, (ULong)c->bcts, (ULong)c->cycles, (ULong)c->spins,
		(ULong)c->evictions, (ULong)c->overflows);
}

void spin_write(const HChar *path)
{
	SysRes r = VG_(open)(path, VKI_O_CREAT | VKI_O_TRUNC | VKI_O_WRONLY, 0666);
	if (sr_isError(r)) {
		VG_(umsg)("cannot write %s\n", path);
		return;
	}
	spin_settle();
	out.fd = (Int)sr_Res(r);
	add("{\"schema\": \"longpole-valgrind/spin/1\", \"pid\": %d, \"sdt\": %lld, \"rub\": %lld, "
	    "\"yield_after\": %lld,\n\"loops_lost\": %llu, \"words_lost\": %llu,\n\"threads\": [",
		VG_(getpid)(), spin_run.nr_sdt, spin_run.nr_rub, spin_run.yield_after,
		spin_run.loops_lost, spin_run.watched_lost);
	for (const struct thread *t = spin_run.thread; t; t = t->next) {
		add(t == spin_run.thread ? "\n" : ",\n");
		add_thread(t);
	}
	add("],\n\"loops\": [");
	VG_(HT_ResetIter)(spin_run.loops);
	Bool first = True;
	for (const struct loop *l; (l = VG_(HT_Next)(spin_run.loops)); first = False) {
		add(first ? "\n" : ",\n");
		add_loop(l);
	}
	add("]}\n");
	flush();
	VG_(close)(out.fd);
	if (out.failed)
		VG_(umsg)("cannot write all of %s\n", path);
}
