/* SPDX-License-Identifier: GPL-2.0-or-later */
/* spin_state.c - threads, their registers at backward branches, loops, and words that are polled.
 */
#include "spin.h"

#include "pub_tool_libcassert.h"
#include "pub_tool_libcbase.h"
#include "pub_tool_machine.h"
#include "pub_tool_mallocfree.h"
#include "pub_tool_threadstate.h"

struct hot spin_hot;
UChar spin_filter[FILTER_BYTES];
struct spin_run spin_run = {
	.nr_sdt = SPIN_SDT_DEFAULT, .nr_rub = SPIN_RUB_DEFAULT, .yield_after = 8};

static struct thread *current;
static struct thread **of_tid; /* VG_N_THREADS of them */

/* ---- threads --------------------------------------------------------------------------------- */

static struct thread *new_thread(ThreadId tid, UInt parent)
{
	struct thread *t = VG_(calloc)("longpole.thread", 1, sizeof *t);
	uint32_t nr_sdt = (uint32_t)spin_run.nr_sdt, nr_rub = (uint32_t)spin_run.nr_rub;
	SizeT size = spin_detector_size_bytes(nr_sdt, nr_rub);
	t->serial = ++spin_run.nr_threads;
	t->parent = parent;
	t->tid = tid;
	spin_detector_init(&t->detector, VG_(calloc)("longpole.tables", 1, size), nr_sdt, nr_rub);
	t->next = spin_run.thread;
	spin_run.thread = t;
	return t;
}

static struct thread *thread_of(ThreadId tid)
{
	tl_assert(tid < VG_N_THREADS);
	if (!of_tid[tid])
		of_tid[tid] = new_thread(tid, 0);
	return of_tid[tid];
}

void spin_begin(void)
{
	of_tid = VG_(calloc)("longpole.threads", VG_N_THREADS, sizeof *of_tid);
	spin_run.loops = VG_(HT_construct)("longpole.loops");
	spin_run.watched = VG_(HT_construct)("longpole.watched");
}

void spin_settle(void)
{
	if (current)
		current->hot = spin_hot;
}

void spin_switched_to(ThreadId tid)
{
	struct thread *t = thread_of(tid);
	if (t == current)
		return;
	spin_settle();
	current = t;
	spin_hot = t->hot;
}

void spin_created(ThreadId parent, ThreadId child)
{
	/* A number may be used again: it is another thread. */
	of_tid[child] = new_thread(child, parent ? thread_of(parent)->serial : 0);
}

/* The running thread's are in spin_hot. */
static struct hot *hot_of(struct thread *t)
{
	return t == current ? &spin_hot : &t->hot;
}

/* These tell nobody anything: a loop that yields or sleeps between its looks still spins. */
static Bool is_silent(UInt number, const UWord *args)
{
	enum { YIELD = 24, NANOSLEEP = 35, FUTEX = 202, CLOCK_NANOSLEEP = 230 };
	enum { FUTEX_WAIT = 0, FUTEX_WAIT_BITSET = 9, FUTEX_CMD = 127 };
	if (number == FUTEX)
		return (args[1] & FUTEX_CMD) == FUTEX_WAIT ||
		       (args[1] & FUTEX_CMD) == FUTEX_WAIT_BITSET;
	return number == YIELD || number == NANOSLEEP || number == CLOCK_NANOSLEEP;
}

void spin_called_kernel(ThreadId tid, UInt number, const UWord *args, UInt nr_args, SysRes result)
{
	(void)nr_args;
	(void)result;
	struct thread *t = thread_of(tid);
	spin_phase_other(&t->phase);
	if (!is_silent(number, args))
		hot_of(t)->changed = 1;
}

void spin_signalled(ThreadId tid, Int signal)
{
	(void)signal;
	struct thread *t = thread_of(tid);
	spin_phase_other(&t->phase);
	hot_of(t)->changed = 1;
}

/* ---- registers ------------------------------------------------------------------------------- */

/* Parts of the guest's state that a program can read back. RIP is the BCT itself; the thunk that
 * flags are computed from is looked at apart. */
struct part {
	UInt offset, words_each, nr, reg; /* reg: the first one's number */
	Bool general;
};
#define AT(field) offsetof(VexGuestAMD64State, guest_##field)
static const struct part part[] = {
	{AT(RAX), 1, 16, 0, True},
	{AT(DFLAG), 1, 1, 17, False},
	{AT(ACFLAG), 1, 1, 18, False},
	{AT(IDFLAG), 1, 1, 19, False},
	{AT(FS_CONST), 1, 1, 20, False},
	{AT(SSEROUND), 1, 1, 21, False},
	{AT(YMM0), 4, 16, 32, False},
	{AT(FTOP), 1, 1, 48, False}, /* (and padding, which is 0) */
	{AT(FPREG), 1, 8, 49, False},
	{AT(FPTAG), 1, 1, 57, False},
	{AT(FPROUND), 1, 1, 58, False},
	{AT(FC3210), 1, 1, 59, False},
	{AT(GS_CONST), 1, 1, 60, False},
};
enum { REG_FLAGS = 16, THUNK_WORDS = 4, PART_NR = sizeof part / sizeof *part };

static Bool is_same(const uint64_t *a, const uint64_t *b, UInt words)
{
	uint64_t differs = 0;
	for (UInt i = 0; i < words; i++)
		differs |= a[i] ^ b[i];
	return !differs;
}

/* The thunk says the same flags in more than one way. */
static void tell_flags(struct thread *t, const VexGuestAMD64State *state, uint64_t *last)
{
	if (t->known && is_same(last, (const uint64_t *)&state->guest_CC_OP, THUNK_WORDS))
		return;
	VG_(memcpy)(last, &state->guest_CC_OP, THUNK_WORDS * sizeof *last);
	uint64_t flags = LibVEX_GuestAMD64_get_rflags(state);
	spin_register(&t->detector, REG_FLAGS, 1, &t->flags, &flags);
	t->flags = flags;
}

static void tell_part(struct thread *t, const struct part *p, const uint64_t *now, uint64_t *last)
{
	for (UInt i = 0; i < p->nr; i++, now += p->words_each, last += p->words_each) {
		if (is_same(now, last, p->words_each))
			continue;
		spin_register(&t->detector, p->reg + i, p->words_each, last, now);
		if (p->general)
			spin_phase_register(&t->phase, p->reg + i, *last, *now);
		else if (p->reg != 17)
			spin_phase_other(&t->phase);
		VG_(memcpy)(last, now, p->words_each * sizeof *now);
	}
}

static void tell_registers(struct thread *t, const VexGuestAMD64State *state)
{
	uint64_t *last = t->last;
	tell_flags(t, state, last);
	last += THUNK_WORDS;
	for (UInt i = 0; i < PART_NR; i++) {
		UInt words = part[i].words_each * part[i].nr;
		const uint64_t *now = (const uint64_t *)((const UChar *)state + part[i].offset);
		tl_assert(last + words <= t->last + sizeof t->last / sizeof *t->last);
		if (!is_same(now, last, words))
			tell_part(t, &part[i], now, last);
		last += words;
	}
	t->known = True;
}

/* ---- words that are polled ------------------------------------------------------------------- */

static Bool is_own_stack(const struct thread *t, Addr address, Addr stack)
{
	Addr top = VG_(thread_get_stack_max)(t->tid);
	return address >= stack - RED_ZONE && address <= top && top > stack;
}

VG_REGPARM(3) void spin_on_load(Addr address, Addr stack, UWord size)
{
	struct thread *t = current;
	Bool own = is_own_stack(t, address, stack);
	if (!own)
		spin_phase_load(&t->phase, address);
	for (UInt i = 0; i < t->nr_polled; i++)
		if (t->polled[i].address == address)
			return;
	if (t->nr_polled < POLLED_MAX)
		t->polled[t->nr_polled++] = (struct polled){address, (UInt)size, own};
	else
		t->polled_more = True;
}

/* Those of a word's bytes that are in [address, address + size). */
static UInt bytes_of(UWord word, Addr address, UWord size)
{
	UInt bytes = 0;
	for (UInt i = 0; i < 8; i++)
		bytes |= (UInt)(word * 8 + i - address < size) << i;
	return bytes;
}

static void write_word(UWord word, UInt bytes, const struct thread *by, Addr pc)
{
	struct watched *w = VG_(HT_lookup)(spin_run.watched, word);
	if (!w || !(w->bytes & bytes))
		return;
	UInt i = 0;
	if (w->last.changes && w->last.thread != by->serial)
		w->other = w->last;
	w->last = (struct writer){by->serial, pc, w->last.changes + 1};
	while (i < w->nr_writers && w->writer[i] != by->serial)
		i++;
	if (i == w->nr_writers && i < WRITERS)
		w->writer[w->nr_writers++] = by->serial;
}

VG_REGPARM(3) void spin_on_change(Addr address, Addr stack, UWord place)
{
	struct thread *t = current;
	Addr pc = place & (((UWord)1 << SIZE_SHIFT) - 1);
	UWord size = place >> SIZE_SHIFT;
	if (!is_own_stack(t, address, stack))
		spin_phase_other(&t->phase);
	if (spin_filter[spin_filter_at(address)])
		for (UWord word = address >> 3; word <= (address + size - 1) >> 3; word++)
			write_word(word, bytes_of(word, address, size), t, pc);
}

/* (Of what crosses two words, the first.) */
static void watch(const struct polled *p)
{
	UWord word = p->address >> 3;
	UInt bytes = bytes_of(word, p->address, p->size);
	struct watched *w = VG_(HT_lookup)(spin_run.watched, word);
	if (w) {
		w->bytes |= bytes;
		return;
	}
	if (spin_run.nr_watched == WATCHED_MAX) {
		spin_run.watched_lost++;
		return;
	}
	w = VG_(calloc)("longpole.watched", 1, sizeof *w);
	w->word = word;
	w->bytes = bytes;
	w->own = p->own;
	VG_(HT_add_node)(spin_run.watched, w);
	spin_run.nr_watched++;
	spin_filter[spin_filter_at(p->address)] = 1;
}

/* ---- loops ----------------------------------------------------------------------------------- */

static struct loop *loop_of(const struct thread *t, Addr bct, Addr first)
{
	UWord key = bct ^ (UWord)t->serial << 48;
	struct loop *l = VG_(HT_lookup)(spin_run.loops, key);
	if (l)
		return l;
	if (spin_run.nr_loops == LOOPS_MAX) {
		spin_run.loops_lost++;
		return NULL;
	}
	l = VG_(calloc)("longpole.loop", 1, sizeof *l);
	*l = (struct loop){.key = key, .thread = t->serial, .bct = bct, .first = first};
	VG_(HT_add_node)(spin_run.loops, l);
	spin_run.nr_loops++;
	return l;
}

static void add_address(struct loop *l, const struct polled *p)
{
	Addr address = p->address;
	watch(p);
	for (UInt i = 0; i < l->nr_addresses; i++)
		if (l->address[i] == address)
			return;
	if (l->nr_addresses < ADDRESSES)
		l->address[l->nr_addresses++] = address;
	else
		l->more_addresses = True;
}

static void harvest(struct thread *t, struct loop *l)
{
	/* Words on its own stack count if there are no others: a node of a queue may lie there. */
	Bool others = False;
	for (UInt i = 0; i < t->nr_polled; i++)
		others |= !t->polled[i].own;
	for (UInt i = 0; i < t->nr_polled; i++)
		if (!others || !t->polled[i].own)
			add_address(l, &t->polled[i]);
	l->more_addresses |= t->polled_more;
}

static void spun(struct thread *t, const struct spin_verdict *v, Addr pc, Addr target)
{
	struct loop *l = loop_of(t, pc, target);
	if (!l)
		return;
	l->spins++;
	l->spinning += v->instructions;
	l->episodes += v->iterations == 1;
	if (v->iterations > l->most_iterations)
		l->most_iterations = v->iterations;
	if (v->iterations == 2) /* the second one was looked at */
		harvest(t, l);
}

static void waited(struct thread *t, ULong instructions, Addr pc, Addr target)
{
	struct loop *l = loop_of(t, pc, target);
	t->phase_instructions += instructions;
	if (!l)
		return;
	if (!l->phase_iterations)
		harvest(t, l);
	l->phase_iterations++;
	l->phase_instructions += instructions;
}

/* Loops that are computation are looked at less and less: a table by the BCT, where one takes
 * another's place. */
static struct {
	Addr pc;
	UInt skip, skipped;
} patience[1024];

static Bool has_patience(Addr pc, Bool found)
{
	UWord at = (pc ^ pc >> 10) % (sizeof patience / sizeof *patience);
	if (patience[at].pc != pc || found) {
		patience[at].pc = pc;
		patience[at].skip = patience[at].skipped = 1;
	}
	if (++patience[at].skipped < patience[at].skip)
		return False; /* (found: it was 1, and is 2 from here) */
	patience[at].skipped = 0;
	if (patience[at].skip < 1024)
		patience[at].skip *= 2;
	return True;
}

/* Are the next iteration's loads and changes to be looked at? That of a loop that has just spun for
 * the first time is, up to its own branch: inner loops' branches come first. */
static Bool looks(struct thread *t, const struct spin_verdict *v, Bool phase, Bool again)
{
	if (v->spinning) {
		t->watched_bct = v->iterations == 1 ? t->last_bct : 0;
		return v->iterations == 1;
	}
	if (t->watched_bct)
		return True;
	if (phase)
		return has_patience(t->last_bct, True);
	if (again && spin_hot.tracking && t->phase.nr_alike) /* it may be one */
		return True;
	return again && has_patience(t->last_bct, False);
}

/* ---- backward branches ------------------------------------------------------------------------
 *
 * Hot loops that compute change a general register or memory in each iteration. After some of these
 * in a row the detector is told so, and the registers' changes when another branch comes, or
 * nothing has changed: all other registers need no look until then. At that moment the loop's
 * current iteration is given up.
 */

enum { HOT = 8, GENERAL = 16 };

static Bool computes(struct thread *t, const VexGuestAMD64State *state, Addr pc)
{
	const uint64_t *general = (const uint64_t *)&state->guest_RAX;
	Bool does =
		pc == t->last_bct && (spin_hot.changed || !is_same(t->general, general, GENERAL));
	t->streak = does ? t->streak + 1 : 0;
	for (UInt i = 0; i < GENERAL; i++)
		t->general[i] = general[i];
	return does;
}

/* True: that was all. */
static Bool is_hot(struct thread *t, Addr pc)
{
	if (t->streak < HOT || spin_hot.tracking || has_patience(pc, False))
		return False;
	if (spin_hot.changed)
		spin_changed(&t->detector);
	if (!spin_branch_changed(&t->detector, pc, 0))
		spin_branch(&t->detector, pc, 0);
	spin_hot.changed = 0;
	t->lazy = True;
	return True;
}

VG_REGPARM(3) void spin_on_branch(VexGuestAMD64State *state, Addr pc, Addr target)
{
	struct thread *t = current;
	struct spin_detector *d = &t->detector;
	Bool again = pc == t->last_bct;
	spin_commit(d, spin_hot.instructions - d->counts.instructions);
	if (computes(t, state, pc) && is_hot(t, pc))
		return;
	if (t->lazy)
		spin_distrust(d, t->last_bct);
	if (spin_hot.changed) {
		spin_changed(d);
		t->watched_bct = 0;
	}
	tell_registers(t, state);
	struct spin_verdict v = spin_branch(d, pc, 0);
	if (!spin_hot.tracking || t->lazy)
		spin_phase_other(&t->phase);
	t->lazy = False;
	Bool phase = spin_phase_branch(&t->phase, pc);
	ULong instructions = spin_hot.instructions - t->phase_began;
	if (v.spinning)
		spun(t, &v, pc, target);
	else if (phase)
		waited(t, instructions, pc, target);
	t->last_bct = pc;
	/* Valgrind runs one thread at a time: the others wait for this one, which waits for them.
	 */
	spin_hot.yields = spin_run.yield_after && v.iterations >= (uint64_t)spin_run.yield_after;
	t->yields += spin_hot.yields;
	spin_hot.tracking = looks(t, &v, phase, again);
	spin_hot.changed = 0;
	t->phase_began = spin_hot.instructions;
	if (!t->watched_bct || t->watched_bct == pc) {
		t->nr_polled = 0;
		t->polled_more = False;
	}
}
