/* SPDX-License-Identifier: Apache-2.0 */
/*
 * object.c - which object an address or a descriptor is.
 *
 * Private memory: (image, module that lies there, address): one library after another may have
 * different ones at one address. Memory that processes share: (file or anonymous mapping,
 * offset), from /proc/pid/maps; when the process is gone already, (fork family, address).
 * Descriptors: (device, inode), so that a pipe is one object in all its processes; those without an
 * inode of their own (eventfd ...) belong to the image that made them and its forks. Two ends of a
 * connection become a pair when both have been seen, so `pair` says that the peer is recorded, too.
 */
#include "record/image.h"
#include "os/clock.h"
#include "ring/ring.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum scope { /* top byte of an object key's high word; 0 = image number */
	SCOPE_family = 1,
	SCOPE_mapping,
	SCOPE_inode,
	SCOPE_system,
	SCOPE_descriptor, /* incarnation in an image */
};

enum { SHARED_REFRESH_NS = 50000000, FORK_DEPTH_MAX = 64 };
enum { MODULE_SHIFT = 24 }; /* in an object key's high word: above the image's number */
_Static_assert(2 * RECORD_IMAGES_MAX <= 1 << MODULE_SHIFT, "images are below modules");

struct base_map *record_world_map(struct record_world *w, enum record_map_number map)
{
	static const size_t offset[] = {
		[RECORD_MAP_objects] = offsetof(struct record_world, objects),
		[RECORD_MAP_mappings] = offsetof(struct record_world, mappings),
		[RECORD_MAP_pairs] = offsetof(struct record_world, pairs),
		[RECORD_MAP_pair_sides] = offsetof(struct record_world, pair_sides),
		[RECORD_MAP_peers] = offsetof(struct record_world, peers),
		[RECORD_MAP_places] = offsetof(struct record_world, places),
	};
	return map < BASE_COUNT(offset) && offset[map]
		       ? (struct base_map *)(void *)((char *)w + offset[map])
		       : NULL;
}

static uint64_t scope_of(enum scope scope, uint64_t rest)
{
	return (uint64_t)scope << 56 | (rest & ((1ull << 56) - 1));
}

static enum trace_object_type object_type_of(uint64_t word)
{
	uint64_t type = (word & ~RING_OBJECT_SHARED) >> RING_OBJECT_TYPE_SHIFT;
	return type < TRACE_OBJECT_NR ? (enum trace_object_type)type : TRACE_OBJECT_other;
}

static bool is_descriptor(enum trace_object_type type)
{
	return (type >= TRACE_OBJECT_pipe && type <= TRACE_OBJECT_other) ||
	       type == TRACE_OBJECT_io_uring || type == TRACE_OBJECT_message_queue;
}

static bool is_numbered_by_system(enum trace_object_type type)
{
	return type == TRACE_OBJECT_sysv_semaphore || type == TRACE_OBJECT_sysv_messages ||
	       type == TRACE_OBJECT_communicator;
}

static void object_put(struct record_world *w, enum record_map_number map, uint64_t hi, uint64_t lo,
	uint64_t value)
{
	enum base_status status = base_map_put(record_world_map(w, map), hi, lo, value);
	RECORD_JOURNAL_ADD(w->sink->journal, map, map, hi, lo, value);
	if (status != BASE_OK)
		record_sink_fail(w->sink, status, "no memory for one more object");
}

/* ---- memory that processes share ------------------------------------------------------------- */

static void read_shared(struct record_world *w, struct record_image *image)
{
	char path[64], line[512];
	snprintf(path, sizeof path, "/proc/%" PRIu32 "/maps", image->pid);
	FILE *f = fopen(path, "re");
	image->shared_read_ns = os_time_ns(CLOCK_MONOTONIC);
	if (!f)
		return; /* it has ended: what was read before stays */
	const size_t nr_before = image->nr_shared;
	image->nr_shared = 0;
	while (fgets(line, sizeof line, f)) {
		struct record_shared s = {0};
		char perms[8] = "";
		unsigned major = 0, minor = 0;
		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s %" SCNx64 " %x:%x %" SCNu64, &s.start,
			    &s.end, perms, &s.offset, &major, &minor, &s.ino) == 7 &&
			perms[3] == 's') {
			s.dev = (uint64_t)major << 32 | minor;
			if (base_grow(&image->shared, &image->shared_capacity, image->nr_shared + 1,
				    sizeof s) != BASE_OK) {
				record_sink_fail(w->sink, BASE_ERR_NOMEM, "no memory for mappings");
				break;
			}
			bool known = image->nr_shared < nr_before &&
				     !memcmp(&image->shared[image->nr_shared], &s, sizeof s);
			image->shared[image->nr_shared++] = s;
			if (!known)
				RECORD_JOURNAL_ADD(w->sink->journal, shared, image->number, s.start,
					s.end, s.offset, s.dev, s.ino);
		}
		while (!strchr(line, '\n') && fgets(line, sizeof line, f))
			continue; /* the rest of a long path */
	}
	fclose(f);
}

static const struct record_shared *shared_at(
	struct record_world *w, struct record_image *image, uint64_t address)
{
	for (int again = 0; again < 2; again++) {
		for (size_t i = 0; i < image->nr_shared; i++)
			if (image->shared[i].start <= address && address < image->shared[i].end)
				return &image->shared[i];
		if (w->is_past)
			return NULL;
		if (image->shared_read_ns &&
			os_time_ns(CLOCK_MONOTONIC) - image->shared_read_ns < SHARED_REFRESH_NS)
			return NULL;
		read_shared(w, image);
	}
	return NULL;
}

static uint64_t mapping_number(struct record_world *w, const struct record_shared *s)
{
	uint64_t number;
	if (base_map_get(&w->mappings, s->dev, s->ino, &number))
		return number;
	number = ++w->nr_mappings;
	object_put(w, RECORD_MAP_mappings, s->dev, s->ino, number);
	return number;
}

/* ---- memory ---------------------------------------------------------------------------------- */

static uint32_t memory_object(struct record_world *w, struct record_image *image, uint64_t word)
{
	enum trace_object_type type = object_type_of(word);
	uint64_t address = word & RING_OBJECT_ADDRESS, known;
	uint64_t scope = image->number, key = word & ~RING_OBJECT_SHARED;
	bool shared = (word & RING_OBJECT_SHARED) != 0;

	if (is_numbered_by_system(type)) {
		scope = scope_of(SCOPE_system, type);
		shared = true;
	} else if (shared) {
		const struct record_shared *s = shared_at(w, image, address);
		if (s) {
			scope = scope_of(SCOPE_mapping, mapping_number(w, s));
			key = (address - s->start + s->offset) | (uint64_t)type
									 << RING_OBJECT_TYPE_SHIFT;
		} else {
			scope = scope_of(SCOPE_family, image->family);
		}
	}
	const struct record_range *range =
		shared ? NULL : record_image_find_range(w, image, address);
	if (range)
		scope |= (uint64_t)range->module << MODULE_SHIFT;
	if (base_map_get(&w->objects, scope, key, &known))
		return (uint32_t)known;

	uint32_t object = record_sink_object(w->sink,
		(struct trace_object){
			.process = shared ? 0 : image->process, .type = type, .address = address});
	object_put(w, RECORD_MAP_objects, scope, key, object);
	if (range)
		record_sink_object_at(w->sink, object, range->module, address - range->bias);
	return object;
}

/* ---- descriptors ----------------------------------------------------------------------------- */

static uint64_t object_hash_text(const char *text, size_t length)
{
	uint64_t h = length;
	for (size_t i = 0; i < length; i++)
		h = base_hash_u64(h ^ (unsigned char)text[i]);
	return h;
}

/* "tcp LOCAL PEER" -> a number for the unordered pair of addresses, and which of the two is local.
 */
static bool tuple_of(const struct record_descriptor *d, uint64_t *ret_tuple, unsigned *ret_side)
{
	if (d->pair_ino) {
		uint64_t low = d->ino < d->pair_ino ? d->ino : d->pair_ino;
		*ret_side = d->ino > d->pair_ino;
		*ret_tuple = base_hash_u64(low) ^ base_hash_u64(~(d->ino ^ d->pair_ino ^ low));
		return d->ino != d->pair_ino;
	}
	const char *end = d->name + d->name_bytes;
	const char *local = memchr(d->name, ' ', d->name_bytes);
	if (!local)
		return false;
	local++;
	const char *space = memchr(local, ' ', (size_t)(end - local));
	if (!space || space == local || space + 1 == end)
		return false;
	const char *peer = space + 1;
	size_t nr_local = (size_t)(space - local), nr_peer = (size_t)(end - peer);
	bool has_local = nr_local > 1 || *local != '-', has_peer = nr_peer > 1 || *peer != '-';
	if (!strncmp(d->name, "unix ", 5) && has_local != has_peer) {
		/* Only the listener has a name: the n-th accepted is the n-th connected.
		 */
		*ret_side = has_peer;
		*ret_tuple = has_local ? object_hash_text(local, nr_local)
				       : object_hash_text(peer, nr_peer);
		return true;
	}
	if (!has_local || !has_peer)
		return false; /* not connected yet */
	size_t common = nr_local < nr_peer ? nr_local : nr_peer;
	int order = memcmp(local, peer, common);
	if (!order)
		order = (nr_local > nr_peer) - (nr_local < nr_peer);
	if (!order)
		return false; /* connected to itself */
	*ret_side = order > 0;
	uint64_t a = object_hash_text(local, nr_local), b = object_hash_text(peer, nr_peer);
	*ret_tuple = (order < 0 ? base_hash_u64(a) ^ b : base_hash_u64(b) ^ a) ^
		     object_hash_text(d->name, (size_t)(local - d->name));
	return true;
}

static uint64_t inode_scope(const struct record_descriptor *d)
{
	uint64_t type = d->type < TRACE_OBJECT_NR ? d->type : TRACE_OBJECT_other;

	return scope_of(SCOPE_inode, type << 48 | (d->dev & ((1ull << 48) - 1)));
}

enum { PEER_of_inode, PEER_told };

/* The object at the other end, as the kernel says it. *ret_told: it does, though that one may not
 * have been seen yet. */
static uint32_t told_peer(
	struct record_world *w, const struct record_descriptor *d, uint32_t object, bool *ret_told)
{
	bool unix_socket = d->name_bytes > 5 && !memcmp(d->name, "unix ", 5);
	uint64_t known = 0, peer = 0;

	if (unix_socket && d->ino && w->peer_of)
		peer = w->peer_of(w->peer_of_ctx, d->ino);
	if (peer) {
		object_put(w, RECORD_MAP_peers, PEER_of_inode, peer, object);
		object_put(w, RECORD_MAP_peers, PEER_told, object, peer);
		(void)!base_map_get(&w->objects, inode_scope(d), peer, &known);
	} else if (d->ino) {
		(void)!base_map_get(&w->peers, PEER_of_inode, d->ino, &known);
	}
	*ret_told = peer || known;
	return known != object && known <= w->sink->nr_objects ? (uint32_t)known : 0;
}

/* Of its tuple it is the n-th on its side; the n-th on the other. 0: not seen yet. */
static uint32_t same_turn(struct record_world *w, uint64_t tuple, unsigned side, uint32_t object)
{
	uint64_t turn = 0, waiting;

	(void)!base_map_get(&w->pair_sides, tuple, side, &turn);
	if (turn && base_map_get(&w->pairs, tuple, (turn - 1) << 1 | side, &waiting) &&
		waiting == object)
		return 0; /* described once more */
	object_put(w, RECORD_MAP_pair_sides, tuple, side, turn + 1);
	object_put(w, RECORD_MAP_pairs, tuple, turn << 1 | side, object);
	if (!base_map_get(&w->pairs, tuple, turn << 1 | !side, &waiting) ||
		waiting > w->sink->nr_objects)
		return 0;
	return (uint32_t)waiting;
}

/*
 * Addresses are used again, one connection after the other: where the kernel does not say who is
 * connected to whom, the n-th end on one side belongs to the n-th on the other. A pair gets its
 * number when its second end is seen.
 */
static void match_pair(struct record_world *w, const struct record_descriptor *d, uint32_t object)
{
	uint64_t tuple;
	unsigned side;
	uint32_t other, next;
	bool told;
	struct record_sink *sink = w->sink;

	if (d->type != TRACE_OBJECT_socket || !tuple_of(d, &tuple, &side))
		return;
	other = told_peer(w, d, object, &told);
	next = same_turn(w, tuple, side, object);
	if (record_sink_failed(sink))
		return;
	sink->object[object].side = side;
	if (!told && !base_map_get(&w->peers, PEER_told, next, &tuple))
		other = next;
	if (!other || (sink->object[other].pair && !told))
		return;
	sink->nr_pairs++;
	sink->object[object].pair = sink->object[other].pair = sink->nr_pairs;
	record_sink_object_again(sink, object);
	record_sink_object_again(sink, other);
}

static bool still_the_same(const struct record_world *w, uint32_t object, uint32_t name)
{
	if (record_sink_failed(w->sink) || !object || object > w->sink->nr_objects)
		return true;
	const struct trace_object *o = &w->sink->object[object];
	/* An inode number is used again after its file was removed. */
	return o->type != TRACE_OBJECT_file || !name || o->name == name;
}

/* "tcp 0.0.0.0:0 -": nobody is at the other end. */
static bool is_unconnected(const struct record_descriptor *d)
{
	return d->type == TRACE_OBJECT_socket && d->name_bytes > 4 && !memcmp(d->name, "tcp ", 4) &&
	       !memcmp(d->name + d->name_bytes - 2, " -", 2);
}

/* Described a second time: a socket that was not connected the first time, or the same (seen when
 * looking ahead). */
static void connected(
	struct record_world *w, const struct record_descriptor *d, uint32_t object, uint32_t name)
{
	if (record_sink_failed(w->sink) || !object || object > w->sink->nr_objects)
		return;
	struct trace_object *o = &w->sink->object[object];
	if (o->type != TRACE_OBJECT_socket || o->pair || !name || o->name == name)
		return;
	o->name = name;
	record_sink_object_again(w->sink, object);
	match_pair(w, d, object);
}

void record_image_descriptor(
	struct record_world *w, struct record_image *image, const struct record_descriptor *d)
{
	uint64_t known, type = d->type < TRACE_OBJECT_NR ? d->type : TRACE_OBJECT_other;
	uint64_t own = scope_of(SCOPE_descriptor, image->number);
	uint32_t name = record_sink_text(w->sink, d->name, d->name_bytes), object = 0;
	if (base_map_get(&w->objects, own, d->incarnation, &known)) {
		connected(w, d, (uint32_t)known, name);
		return;
	}
	uint64_t scope = inode_scope(d);
	if (d->ino && base_map_get(&w->objects, scope, d->ino, &known) &&
		still_the_same(w, (uint32_t)known, name)) {
		object = (uint32_t)known;
	} else {
		object = record_sink_object(
			w->sink, (struct trace_object){.process = d->ino ? 0 : image->process,
					 .type = type,
					 .address = d->ino ? d->ino : d->incarnation,
					 .capacity = d->capacity_bytes,
					 .name = name});
		if (d->ino)
			object_put(w, RECORD_MAP_objects, scope, d->ino, object);
	}
	if (!object)
		return;
	object_put(w, RECORD_MAP_objects, own, d->incarnation, object);
	if (record_sink_failed(w->sink))
		return;
	/* A socket is often described before it is connected, and again after; which of the two
	 * comes first here depends on who describes it. */
	struct trace_object *o = &w->sink->object[object];
	if (d->ino && name && o->name != name && (!o->name || !is_unconnected(d))) {
		o->name = name;
		record_sink_object_again(w->sink, object);
	}
	if (!o->pair)
		match_pair(w, d, object);
}

/* Described by this image, or, inherited, by one that it was forked from. */
static uint32_t descriptor_object(
	const struct record_world *w, const struct record_image *image, uint64_t incarnation)
{
	uint64_t known;
	for (int depth = 0; image && depth < FORK_DEPTH_MAX; depth++) {
		if (base_map_get(&w->objects, scope_of(SCOPE_descriptor, image->number),
			    incarnation, &known))
			return (uint32_t)known;
		image = image->forked ? record_world_find(w, image->parent) : NULL;
	}
	return 0;
}

uint32_t record_image_object_slow(struct record_world *w, struct record_image *image, uint64_t word)
{
	uint32_t object;
	if (!(word & RING_OBJECT_ADDRESS) && !is_numbered_by_system(object_type_of(word)))
		return 0;
	if (is_descriptor(object_type_of(word))) {
		uint64_t incarnation = word & RING_OBJECT_ADDRESS;
		object = descriptor_object(w, image, incarnation);
		if (!object && w->look_ahead && w->look_ahead(w->look_ahead_ctx, image))
			object = descriptor_object(w, image, incarnation);
		if (!object) {
			struct record_descriptor d = {.incarnation = incarnation,
				.type = object_type_of(word),
				.name = ""};
			record_image_descriptor(w, image, &d);
			object = descriptor_object(w, image, incarnation);
		}
	} else {
		object = memory_object(w, image, word);
		if (record_image_is_reused(image, word & RING_OBJECT_ADDRESS)) {
			w->jit.sliced = true;
			return object;
		}
	}
	size_t i = (size_t)(word >> 3 ^ word >> 15 ^ (uint64_t)image->number << 4) &
		   (RECORD_OBJECT_CACHE - 1);
	w->object_cache[i].word = word;
	w->object_cache[i].image = image->number;
	w->object_cache[i].generation = w->generation;
	w->object_cache[i].object = object;
	return object;
}

void record_image_name_object(
	struct record_world *w, struct record_image *image, uint64_t word, uint32_t name)
{
	uint32_t object = record_image_object(w, image, word);
	if (!object || record_sink_failed(w->sink) || w->sink->object[object].name == name)
		return;
	w->sink->object[object].name = name;
	record_sink_object_again(w->sink, object);
}

void record_image_size_object(
	struct record_world *w, struct record_image *image, uint64_t word, uint64_t capacity)
{
	uint32_t object = record_image_object(w, image, word);
	if (!object || record_sink_failed(w->sink) || w->sink->object[object].capacity == capacity)
		return;
	w->sink->object[object].capacity = capacity;
	record_sink_object_again(w->sink, object);
}
