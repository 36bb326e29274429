/* SPDX-License-Identifier: GPL-2.0-or-later */
/* memory_stream.c - blocks that were met, threads, and their words as chunks in the recorder's
 * shared memory (ring/memory_ring.h). */
#include "memory.h"

#include "ring/memory_ring.h"
#include "ring/memory_encode.h"

#include "pub_tool_aspacemgr.h"
#include "pub_tool_debuginfo.h"
#include "pub_tool_hashtable.h"
#include "pub_tool_libcassert.h"
#include "pub_tool_libcbase.h"
#include "pub_tool_libcfile.h"
#include "pub_tool_libcprint.h"
#include "pub_tool_libcproc.h"
#include "pub_tool_machine.h"
#include "pub_tool_mallocfree.h"
#include "pub_tool_options.h"
#include "pub_tool_threadstate.h"
#include "pub_tool_vki.h"

/* Of the core; tools' headers do not have them. */
void VG_(discard_translations)(Addr start, ULong bytes, const HChar *who);
SysRes VG_(am_shared_mmap_file_float_valgrind)(SizeT length, UInt prot, Int fd, Off64T offset);

enum {
	OBJECTS_MAX = 4096,
	MODULES_MAX = 16384, /* as the reader takes */
	INFO_AWAY = 1 << 29, /* where the descriptions seem to be, from the blocks */
	REACH = 1 << 30,
	OPEN_CHUNKS_MAX = 16, /* threads that keep a chunk of the ring while others run */
	WAIT_NS = 20000000,
	WAITING_MAX = 8,                             /* chunks, or who reads does not keep up */
	ENCODED_WORDS_MIN = 16 * MEMORY_PIECE_WORDS, /* before a raw chunk */
	STATES_ROOM = 1 << 14,
	SYSTEM_SIGACTION = 13,
	SYSTEM_EXECVE = 59,
	SYSTEM_KILL = 62,
	SYSTEM_GETTID = 186,
	SYSTEM_FUTEX = 202,
	SYSTEM_EXECVEAT = 322,
};

struct object { /* a file that is mapped, as far as its code can be told by 32 bits */
	HChar *path;
	PtrdiffT bias;
	Addr near;
	struct memory_block *first_new;
	UInt nr_new;
	SizeT new_bytes;
};

struct thread {
	struct thread *next;
	ThreadId tid;
	UInt lwp;
	ULong number, sequence, lost;
	ULong string; /* memory_hot.string while others run */
	struct target_encoder encoder;
	UInt slot_states;
	UChar *chunk;
	UInt chunk_block, chunk_used, chunk_most; /* most: if all of it were encoded badly */
	UInt chunk_words;
	Bool chunk_is_raw;
	Bool begun, ended, joined;
};

struct memory_hot memory_hot;
static ULong buffer[MEMORY_PIECE_WORDS]; /* for words that are to be encoded here */
struct memory_block_head memory_heads[MEMORY_BLOCKS_MAX];
static struct memory_block *block_of_head[MEMORY_BLOCKS_MAX]; /* marks have none */

static struct {
	struct memory_ring_head *ring;
	UInt image;
	Bool off; /* a child of fork, or the recorder is gone */
	VgHashTable *blocks;
	struct object object[OBJECTS_MAX];
	UInt nr_objects, nr_modules, nr_blocks; /* highest index + 1 */
	UInt nr_heads;
	ULong nr_slots;
	UInt *slot_base, slot_base_room;
	struct thread *thread, *current, **of_tid;
	ULong nr_threads;
	UInt ring_blocks; /* as the ring's head said at first: it is shared */
	UInt nr_alive, nr_open;
	ULong *words; /* of the current piece: in the current thread's raw chunk, or in the buffer
		       */
	ULong begin_ticks;
	ULong lost_blocks;
} m;

static const struct memory_block_head marks[MEMORY_MARK_NR] = {
#define MARK(name, slots, ticks)                                                                   \
	{.info = MEMORY_MARK_##name,                                                               \
		.nr_slots = (slots),                                                               \
		.flags = MEMORY_BLOCK_MARK | (ticks) << MEMORY_BLOCK_TICKS_SHIFT},
	MEMORY_MARKS(MARK)
#undef MARK
};

ULong memory_now_ticks(void)
{
	return __builtin_ia32_rdtsc();
}

static Word system_call(UWord number, UWord a, UWord b, UWord c, UWord d)
{
	register UWord r10 __asm__("r10") = d;
	Word ret;
	__asm__ volatile("syscall"
			 : "=a"(ret)
			 : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10)
			 : "rcx", "r11", "memory");
	return ret;
}

/* ---- blocks ---------------------------------------------------------------------------------- */

/* Also of code that Valgrind does not count as text: .plt, .init. */
static const DebugInfo *file_of(Addr code)
{
	const DebugInfo *di = VG_(find_DebugInfo)(VG_(current_DiEpoch)(), code);
	const NSegment *s = di ? NULL : VG_(am_find_nsegment)(code);
	const HChar *path = s ? VG_(am_get_filename)(s) : NULL;
	if (di || !path)
		return di;
	for (di = VG_(next_DebugInfo)(NULL); di; di = VG_(next_DebugInfo)(di))
		if (VG_(DebugInfo_get_text_avma)(di) - s->start <= s->end - s->start &&
			!VG_(strcmp)(VG_(DebugInfo_get_filename)(di), path))
			return di;
	return NULL;
}

static struct object *object_of(Addr code)
{
	const DebugInfo *di = file_of(code);
	const HChar *path = di ? VG_(DebugInfo_get_filename)(di) : "";
	PtrdiffT bias = di ? VG_(DebugInfo_get_text_bias)(di) : 0;
	for (UInt i = 0; i < m.nr_objects; i++) {
		struct object *o = &m.object[i];
		if (o->bias == bias && code - o->near + REACH < 2ul * REACH &&
			!VG_(strcmp)(o->path, path))
			return o;
	}
	if (m.nr_objects == OBJECTS_MAX)
		return NULL;
	struct object *o = &m.object[m.nr_objects++];
	*o = (struct object){
		.path = VG_(strdup)("longpole.path", path), .bias = bias, .near = code};
	return o;
}

static Bool is_same(const struct memory_block *b, const struct memory_block_head *head,
	const UChar *info, UInt info_bytes)
{
	return b->info_bytes == info_bytes && b->head->nr_slots == head->nr_slots &&
	       b->head->nr_stack == head->nr_stack && b->head->flags == head->flags &&
	       b->head->terminator == head->terminator && !VG_(memcmp)(b->info, info, info_bytes);
}

struct memory_block *memory_block_of(
	Addr code, const struct memory_block_head *head, const UChar *info, UInt info_bytes)
{
	struct memory_block *b = VG_(HT_lookup)(m.blocks, code);
	for (; b; b = b->next_same)
		if (b->code == code && is_same(b, head, info, info_bytes))
			return b;
	struct object *o = object_of(code);
	if (!o || m.nr_heads + 1 >= MEMORY_BLOCKS_MAX) {
		m.lost_blocks++;
		return NULL;
	}
	b = VG_(malloc)("longpole.block", sizeof *b + info_bytes);
	block_of_head[m.nr_heads] = b;
	memory_heads[m.nr_heads] = *head;
	*b = (struct memory_block){.code = code,
		.head = &memory_heads[m.nr_heads++],
		.next_new = o->first_new,
		.info_bytes = info_bytes,
		.nr_instructions = info[0]};
	VG_(memcpy)(b->info, info, info_bytes);
	VG_(HT_add_node)(m.blocks, b);
	o->first_new = b;
	o->nr_new++;
	o->new_bytes += info_bytes;
	return b;
}

/* ---- the ring -------------------------------------------------------------------------------- */

Bool memory_set_ring(const HChar *path)
{
	SysRes fd = VG_(open)(path, VKI_O_RDWR, 0);
	struct vg_stat st;
	if (sr_isError(fd) || VG_(fstat)((Int)sr_Res(fd), &st)) {
		VG_(fmsg_bad_option)(path, "--ring: cannot be opened\n");
		return True;
	}
	SysRes at = VG_(am_shared_mmap_file_float_valgrind)(
		(SizeT)st.size, VKI_PROT_READ | VKI_PROT_WRITE, (Int)sr_Res(fd), 0);
	VG_(close)((Int)sr_Res(fd));
	struct memory_ring_head *ring =
		sr_isError(at) ? NULL : (struct memory_ring_head *)sr_Res(at);
	if (ring)
		m.ring_blocks = __atomic_load_n(&ring->nr_blocks, __ATOMIC_RELAXED);
	if (!ring || ring->magic != MEMORY_RING_MAGIC || ring->version != MEMORY_RING_VERSION ||
		m.ring_blocks > MEMORY_RING_BLOCKS_MAX ||
		memory_ring_bytes(m.ring_blocks) > (ULong)st.size)
		VG_(fmsg_bad_option)(path, "--ring: not a recorder's shared memory\n");
	m.ring = ring;
	return True;
}

static Bool recording(void)
{
	return m.ring && !m.off && __atomic_load_n(&m.ring->recording, __ATOMIC_ACQUIRE);
}

static UChar *block_at(UInt i)
{
	return (UChar *)m.ring + MEMORY_RING_HEAD_BYTES + (ULong)i * MEMORY_RING_BLOCK_BYTES;
}

static Bool try_take(UInt *ret)
{
	for (UInt i = 0; i < m.ring_blocks; i++) {
		UInt free = MEMORY_RING_FREE;
		if (__atomic_load_n(&m.ring->state[i], __ATOMIC_RELAXED) == MEMORY_RING_FREE &&
			__atomic_compare_exchange_n(&m.ring->state[i], &free, MEMORY_RING_ACTIVE,
				False, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
			*ret = i;
			return True;
		}
	}
	return False;
}

/* Waits for a block; false: there will be none. */
static Bool take_block(UInt *ret)
{
	ULong began = memory_now_ticks();
	Bool waited = False;
	while (recording()) {
		UInt freed = __atomic_load_n(&m.ring->freed, __ATOMIC_ACQUIRE);
		if (try_take(ret)) {
			if (waited)
				__atomic_fetch_add(&m.ring->wait_ticks, memory_now_ticks() - began,
					__ATOMIC_RELAXED);
			return True;
		}
		waited = True;
		struct vki_timespec ts = {.tv_nsec = WAIT_NS};
		__atomic_fetch_add(&m.ring->waiters, 1, __ATOMIC_ACQ_REL);
		(void)system_call(SYSTEM_FUTEX, (UWord)&m.ring->freed, 0, freed, (UWord)&ts);
		__atomic_fetch_sub(&m.ring->waiters, 1, __ATOMIC_ACQ_REL);
		if (system_call(SYSTEM_KILL, m.ring->reader_pid, 0, 0, 0) == -VKI_ESRCH)
			m.off = True;
	}
	return False;
}

static void publish(UInt block)
{
	__atomic_store_n(&m.ring->state[block], MEMORY_RING_DONE, __ATOMIC_RELEASE);
}

/* ---- tables ---------------------------------------------------------------------------------- */

struct module {
	const struct object *object;
	UInt number, first_index;
	Addr heads; /* where they seem to be */
};

/* A section, in as many chunks as it takes. */
static void send_section(const struct module *to, enum memory_table_section section,
	const void *bytes, ULong size_bytes)
{
	struct memory_table_head table = {.module = to->number,
		.section = section,
		.address = section == MEMORY_TABLE_BLOCKS ? to->heads
			   : section == MEMORY_TABLE_INFO ? to->heads + INFO_AWAY
							  : 0,
		.bytes = size_bytes,
		.load_bias = to->object ? (ULong)to->object->bias : 0,
		.first_index = to->first_index,
		.flags = MEMORY_TABLE_IN_PLACE | MEMORY_TABLE_PLACED};
	UInt block;
	while (table.offset < size_bytes && take_block(&block)) {
		struct memory_chunk_head head = {.image = m.image,
			.pid = (UInt)VG_(getpid)(),
			.first_ticks = memory_now_ticks(),
			.tables = m.image,
			.flags = MEMORY_CHUNK_SERIAL};
		memory_table_chunk(block_at(block), MEMORY_RING_BLOCK_BYTES, &head, &table, bytes);
		publish(block);
	}
}

static Bool room_for_slot_bases(UInt nr)
{
	if (nr <= m.slot_base_room)
		return True;
	UInt room = m.slot_base_room ? m.slot_base_room : STATES_ROOM;
	while (room < nr)
		room *= 2;
	m.slot_base = VG_(realloc)("longpole.slots", m.slot_base, room * sizeof *m.slot_base);
	m.slot_base_room = room;
	return m.slot_base != NULL;
}

static void number(struct memory_block_head *head)
{
	room_for_slot_bases(m.nr_blocks + 1);
	head->index = m.nr_blocks;
	m.slot_base[m.nr_blocks++] = (UInt)m.nr_slots;
	m.nr_slots += head->nr_slots;
}

static void send_marks(void)
{
	struct memory_block_head heads[MEMORY_MARK_NR];
	struct module module = {
		.number = m.nr_modules++, .first_index = m.nr_blocks, .heads = (Addr)memory_heads};
	for (; m.nr_heads < MEMORY_MARK_NR; m.nr_heads++) {
		heads[m.nr_heads] = memory_heads[m.nr_heads] = marks[m.nr_heads];
		heads[m.nr_heads].index = m.nr_heads;
		number(&memory_heads[m.nr_heads]);
	}
	send_section(&module, MEMORY_TABLE_BLOCKS, heads, sizeof heads);
}

/* An object's new blocks, as a module of their own. */
static void send_new(struct object *o)
{
	struct module module = {.object = o,
		.number = m.nr_modules++,
		.first_index = m.nr_blocks,
		.heads = o->near};
	struct memory_block_head *heads = VG_(malloc)("longpole.heads", o->nr_new * sizeof *heads);
	UChar *info = VG_(malloc)("longpole.info", o->new_bytes);
	UInt at = 0, i = 0;
	for (struct memory_block *b = o->first_new; b; b = b->next_new, i++) {
		Addr seems = module.heads + i * sizeof *heads;
		number(b->head);
		heads[i] = *b->head;
		heads[i].index = (UInt)(b->head - memory_heads);
		heads[i].code = (Int)(b->code - seems);
		heads[i].info = (Int)(module.heads + INFO_AWAY + at - (seems + 4));
		VG_(memcpy)(info + at, b->info, b->info_bytes);
		at += b->info_bytes;
	}
	send_section(&module, MEMORY_TABLE_PATH, o->path, VG_(strlen)(o->path) + 1);
	send_section(&module, MEMORY_TABLE_INFO, info, at);
	send_section(&module, MEMORY_TABLE_BLOCKS, heads, o->nr_new * sizeof *heads);
	VG_(free)(heads);
	VG_(free)(info);
	o->first_new = NULL;
	o->nr_new = 0;
	o->new_bytes = 0;
}

/* The blocks that the words of the buffer need. */
static void send_tables(void)
{
	for (UInt i = 0; i < m.nr_objects; i++)
		if (m.object[i].nr_new && m.nr_modules < MODULES_MAX)
			send_new(&m.object[i]);
}

/* ---- chunks ---------------------------------------------------------------------------------- */

static void room_for_states(struct thread *t)
{
	struct target_encoder *e = &t->encoder;
	e->slot_base = m.slot_base;
	if (m.nr_blocks > e->nr_blocks) {
		UInt room = m.nr_blocks + m.nr_blocks / 2 + STATES_ROOM;
		e->block = VG_(realloc)("longpole.states", e->block, room * sizeof *e->block);
		VG_(memset)(e->block + e->nr_blocks, 0, (room - e->nr_blocks) * sizeof *e->block);
		e->nr_blocks = room;
	}
	if (m.nr_slots > t->slot_states) {
		UInt room = (UInt)(m.nr_slots + m.nr_slots / 2 + STATES_ROOM);
		e->slot = VG_(realloc)("longpole.states", e->slot, room * sizeof *e->slot);
		t->slot_states = room;
	}
	if (!e->room)
		e->room = VG_(malloc)("longpole.room", sizeof *e->room);
}

static void close_chunk(struct thread *t)
{
	if (!t->chunk)
		return;
	publish(t->chunk_block);
	t->chunk = NULL;
	m.nr_open--;
}

/* The reader need not wait for a thread that does not run. */
static void let_see(struct thread *t)
{
	if (!t || !t->chunk || !m.ring || !m.ring->live)
		return;
	((struct memory_chunk_head *)t->chunk)->flags |= MEMORY_CHUNK_WAITS;
	close_chunk(t);
}

/* Shall who reads encode what comes? It does so beside the program, as long as it keeps up. */
static Bool leaves_raw(void)
{
	UInt nr_waiting = 0;
	if (!__atomic_load_n(&m.ring->raw, __ATOMIC_RELAXED))
		return False;
	for (UInt i = 0; i < m.ring_blocks; i++)
		nr_waiting +=
			__atomic_load_n(&m.ring->state[i], __ATOMIC_RELAXED) == MEMORY_RING_DONE;
	return nr_waiting < WAITING_MAX;
}

static Bool open_chunk(struct thread *t, Bool raw)
{
	UInt block;
	if (!take_block(&block))
		return False;
	m.nr_open++;
	t->chunk = block_at(block);
	t->chunk_block = block;
	t->chunk_used = t->chunk_most = sizeof(struct memory_chunk_head);
	t->chunk_words = 0;
	t->chunk_is_raw = raw;
	struct memory_chunk_head head = {.magic = MEMORY_CHUNK_MAGIC,
		.version = MEMORY_STREAM_VERSION,
		.type = t->chunk_is_raw ? (UShort)MEMORY_RING_RAW : (UShort)MEMORY_CHUNK_STREAM,
		.bytes = t->chunk_used,
		.image = m.image,
		.pid = (UInt)VG_(getpid)(),
		.tid = t->lwp,
		.thread = t->number,
		.sequence = t->sequence++,
		.first_ticks = m.begin_ticks,
		.last_ticks = m.begin_ticks,
		.lost = t->lost,
		.tables = m.image,
		.flags = MEMORY_CHUNK_SERIAL};
	VG_(memcpy)(t->chunk, &head, sizeof head);
	t->lost = 0;
	if (!t->chunk_is_raw)
		longpole_target_encode_start(&t->encoder, m.begin_ticks);
	return True;
}

static Bool has_room(const struct thread *t, SizeT nr)
{
	return MEMORY_RING_BLOCK_BYTES - t->chunk_most >= target_piece_bound(nr);
}

/* Its words are where they belong. */
static void put_raw(struct thread *t, const struct target_piece *piece)
{
	struct memory_ring_piece head = {.words = piece->nr,
		.begin_ticks = piece->begin_ticks,
		.lasted_ticks = piece->lasted_ticks};
	VG_(memcpy)((UChar *)piece->words - sizeof head, &head, sizeof head);
	t->chunk_used += (UInt)(sizeof head + piece->nr * sizeof *piece->words);
	t->chunk_most += (UInt)target_piece_bound(piece->nr);
}

static void put_encoded(struct thread *t, struct target_piece *piece)
{
	UChar *end = longpole_target_encode_piece(&t->encoder, piece, t->chunk + t->chunk_used);
	t->chunk_used = t->chunk_most = (UInt)(end - t->chunk);
	t->lost += piece->nr - piece->done;
}

static void add_piece(struct thread *t, ULong *words, SizeT nr)
{
	ULong began = memory_now_ticks();
	Bool raw = words != buffer;
	send_tables();
	if (!raw) {
		room_for_states(t);
		if (t->chunk && (t->chunk_is_raw || !has_room(t, nr)))
			close_chunk(t);
		if (!t->chunk && !open_chunk(t, False)) {
			t->lost += nr;
			return;
		}
	}
	struct memory_chunk_head *head = (struct memory_chunk_head *)t->chunk;
	struct target_piece piece = {.words = (uint64_t *)words,
		.nr = nr,
		.done = nr,
		.begin_ticks = m.begin_ticks - head->first_ticks,
		.lasted_ticks = began - m.begin_ticks};
	if (raw)
		put_raw(t, &piece);
	else
		put_encoded(t, &piece);
	t->chunk_words += (UInt)nr;
	head->last_ticks = began;
	__atomic_store_n(&head->bytes, t->chunk_used, __ATOMIC_RELEASE);
	__atomic_fetch_add(&m.ring->words, piece.done, __ATOMIC_RELAXED);
	__atomic_fetch_add(&m.ring->pieces, 1, __ATOMIC_RELAXED);
	__atomic_fetch_add(&m.ring->encode_ticks, memory_now_ticks() - began, __ATOMIC_RELAXED);
}

static void write_to(ULong *words)
{
	m.words = memory_hot.next = words;
	memory_hot.limit = words + MEMORY_PIECE_WORDS - MEMORY_SUPERBLOCK_WORDS;
}

static void end_piece(void)
{
	SizeT nr = (SizeT)(memory_hot.next - m.words);
	if (nr && m.current && recording())
		add_piece(m.current, m.words, nr);
	write_to(buffer);
}

/* A raw chunk with room for a piece is open. (One that is encoded ends only when it has many words:
 * each begins without knowing anything.) */
static Bool has_raw_chunk(struct thread *t)
{
	if (t->chunk && t->chunk_is_raw && has_room(t, MEMORY_PIECE_WORDS))
		return True;
	if ((t->chunk && !t->chunk_is_raw && t->chunk_words < ENCODED_WORDS_MIN) || !leaves_raw())
		return False;
	close_chunk(t);
	return open_chunk(t, True);
}

static void begin_piece(void)
{
	struct thread *t = m.current;
	m.begin_ticks = memory_now_ticks();
	if (t && recording() && has_raw_chunk(t))
		write_to((ULong *)(t->chunk + t->chunk_used + sizeof(struct memory_ring_piece)));
	else
		write_to(buffer);
}

static void flush(void)
{
	end_piece();
	begin_piece();
}

void memory_on_full(void)
{
	flush();
}

/* ---- marks ----------------------------------------------------------------------------------- */

static void mark(enum memory_mark what, const ULong *slot)
{
	UInt nr = marks[what].nr_slots;
	if (memory_hot.next > memory_hot.limit)
		flush();
	*memory_hot.next++ = (ULong)&memory_heads[what];
	for (UInt i = 0; i < nr; i++)
		*memory_hot.next++ = slot[i];
}

void memory_mark_call(enum memory_call_kind kind, ULong began_ticks, const ULong argument[4])
{
	mark(MEMORY_MARK_call, (const ULong[]){kind, argument[0], argument[1], argument[2],
				       argument[3], began_ticks, memory_now_ticks()});
}

static void mark_call(enum memory_call_kind kind, ULong argument)
{
	memory_mark_call(kind, memory_now_ticks(), (const ULong[4]){argument});
}

void memory_accessed(ThreadId tid, Bool store, Addr address, SizeT bytes)
{
	if (bytes && m.current && m.current->tid == tid)
		mark(store ? MEMORY_MARK_store : MEMORY_MARK_load, (const ULong[]){address, bytes});
}

/* ---- threads --------------------------------------------------------------------------------- */

static struct thread *new_thread(ThreadId tid)
{
	struct thread *t = VG_(calloc)("longpole.thread", 1, sizeof *t);
	t->tid = tid;
	t->number = ++m.nr_threads;
	t->encoder.head = memory_heads; /* all words are ours */
	t->encoder.heads = (Addr)memory_heads;
	t->encoder.nr_heads = MEMORY_BLOCKS_MAX;
	t->encoder.avx2 = __builtin_cpu_supports("avx2");
	t->next = m.thread;
	m.thread = t;
	m.of_tid[tid] = t;
	m.nr_alive++;
	return t;
}

static void free_states(struct thread *t)
{
	VG_(free)(t->encoder.block);
	VG_(free)(t->encoder.slot);
	VG_(free)(t->encoder.room);
	t->encoder.room = NULL;
	t->encoder.block = NULL;
	t->encoder.slot = NULL;
	t->encoder.nr_blocks = t->slot_states = 0;
}

/* The one that goes on alone has them behind it. */
static void join_all(void)
{
	for (struct thread *t = m.thread; t; t = t->next)
		if (t->ended && !t->joined) {
			t->joined = True;
			mark_call(MEMORY_CALL_thread_join, t->number);
		}
}

void memory_switched_to(ThreadId tid)
{
	struct thread *t = m.of_tid[tid];
	if (t && t == m.current && m.nr_alive > 1)
		return;
	if (!t)
		t = new_thread(tid);
	if (!t->begun)
		t->lwp = (UInt)system_call(SYSTEM_GETTID, 0, 0, 0, 0);
	if (t != m.current) {
		end_piece();
		if (m.current) {
			m.current->string = memory_hot.string;
			let_see(m.current);
			if (m.nr_open > OPEN_CHUNKS_MAX)
				close_chunk(m.current);
		}
		m.current = t;
		memory_hot.string = t->string;
		begin_piece();
	}
	memory_heap_switched(tid);
	if (!t->begun) {
		t->begun = True;
		mark_call(MEMORY_CALL_thread_begin, t->number);
	}
	if (m.nr_alive == 1)
		join_all();
}

void memory_created(ThreadId parent, ThreadId child)
{
	struct thread *t = new_thread(child);
	if (parent && m.current)
		mark_call(MEMORY_CALL_thread_create, t->number);
}

void memory_exits(ThreadId tid)
{
	struct thread *t = m.of_tid[tid];
	if (!t)
		return;
	if (t == m.current) {
		mark_call(MEMORY_CALL_thread_end, 0);
		end_piece();
		let_see(t);
		m.current = NULL;
	}
	if (m.ring)
		close_chunk(t);
	free_states(t);
	memory_heap_exits(tid);
	t->ended = True;
	m.of_tid[tid] = NULL;
	m.nr_alive--;
}

static const struct memory_block_head *head_at(const ULong *p)
{
	return (const struct memory_block_head *)memory_word_head(*p);
}

/* An instruction that failed, in the middle of a block: the block ends before it. */
static void cut_last(Addr pc)
{
	ULong *p = m.words, *last = NULL;
	while (p < memory_hot.next) {
		last = p;
		p += 1 + head_at(p)->nr_slots;
	}
	if (!last || head_at(last)->flags & MEMORY_BLOCK_MARK)
		return;
	const struct memory_block *b = block_of_head[head_at(last) - memory_heads];
	Addr end = b->code;
	for (UInt i = 0; i < b->nr_instructions; i++)
		end += b->info[2 + 2 * i];
	if (pc < b->code || pc >= end)
		return;
	const struct memory_block *before = memory_block_before(b, pc);
	if (before)
		*last += (ULong)before->head - (ULong)b->head;
	else
		memory_hot.next = last;
}

static Bool fails(UWord signal)
{
	return signal == VKI_SIGSEGV || signal == VKI_SIGBUS || signal == VKI_SIGFPE ||
	       signal == VKI_SIGILL || signal == VKI_SIGTRAP;
}

void memory_signalled(ThreadId tid, Int signal)
{
	memory_hot.string = 0;
	if (m.current && m.current->tid == tid && fails((UWord)signal))
		cut_last(VG_(get_IP)(tid));
}

/* After an exec nothing of us is left. */
void memory_calls_kernel(ThreadId tid, UInt number)
{
	(void)tid;
	if (number == SYSTEM_EXECVE || number == SYSTEM_EXECVEAT)
		flush();
}

/* The program has a handler of failing instructions: from now on it sees all registers as they were
 * there, and what was translated before is translated again. */
void memory_called_kernel(ThreadId tid, UInt number, const UWord *args, UInt nr_args, SysRes result)
{
	(void)tid;
	if (number != SYSTEM_SIGACTION || nr_args < 2 || sr_isError(result) || !args[1] ||
		VG_(clo_px_file_backed) == VexRegUpdAllregsAtMemAccess)
		return;
	UWord signal = args[0], handler = *(const UWord *)args[1];
	if (handler > 1 && fails(signal)) {
		VG_(clo_px_file_backed) = VexRegUpdAllregsAtMemAccess;
		VG_(discard_translations)(0, ~0ull, "longpole: a handler");
	}
}

/* ---- beginning and end ----------------------------------------------------------------------- */

/* The child's words are not wanted: its chunks are the parent's, who goes on to write there. */
static void in_child(ThreadId tid)
{
	(void)tid;
	m.off = True;
	m.ring = NULL;
	begin_piece();
}

void memory_begin(void)
{
	__builtin_cpu_init();
	m.of_tid = VG_(calloc)("longpole.threads", VG_N_THREADS, sizeof *m.of_tid);
	m.blocks = VG_(HT_construct)("longpole.blocks");
	m.nr_blocks = 1; /* index 0 is none */
	begin_piece();
	VG_(atfork)(NULL, NULL, in_child);
	if (!m.ring)
		VG_(fmsg_bad_option)
	("--mode=memory", "needs --ring: see `longpole record --help`\n");
	m.image = __atomic_add_fetch(&m.ring->next_image, 1, __ATOMIC_RELAXED);
	__atomic_fetch_add(&m.ring->attached, 1, __ATOMIC_RELAXED);
	send_marks();
}

void memory_end(const HChar *path)
{
	(void)path;
	end_piece();
	if (!m.ring)
		return;
	for (struct thread *t = m.thread; t; t = t->next)
		close_chunk(t);
	__atomic_fetch_add(&m.ring->lost_words, m.lost_blocks, __ATOMIC_RELAXED);
}
