/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image.h - program images: which code and which objects an address means.
 *
 * An image is one run of one program in one address space: a fork's child and an exec are new ones.
 * Addresses mean nothing outside their image; only objects that are shared by the operating system
 * (pipes, shared mappings) are one object in several.
 */
#ifndef LONGPOLE_RECORD_IMAGE_H
#define LONGPOLE_RECORD_IMAGE_H

#include "record/defs.h"

enum {
	RECORD_IMAGES_MAX = 1 << 20,
	RECORD_RANGES_MAX = 1 << 14, /* mapped modules of one image */
	RECORD_SITE_CACHE = 1 << 12, /* entries, a power of 2 */
	RECORD_OBJECT_CACHE = 1 << 12,
};

#define RECORD_VDSO "[vdso]" /* the kernel's name for it; the preload library's, too */

struct record_range {
	uint64_t start, end, bias;
	uint32_t module;
	bool by_kernel; /* that it is there the image has not said itself */
	bool gone; /* unloaded, at end_ns; kept for records of before then that are still to come */
	uint64_t begin_ns; /* when the image said so; 0: not known, or always there */
	uint64_t end_ns;
};

struct record_shared { /* a MAP_SHARED mapping */
	uint64_t start, end, offset, dev, ino;
};

struct record_image {
	uint32_t number; /* 0: unused; the ring's, or RECORD_IMAGES_MAX and up: seen by perf only */
	uint32_t parent; /* image number, 0: none */
	uint32_t family; /* number of the image from which all forks since the last exec came */
	uint32_t pid;    /* ours */
	uint64_t pid_ns; /* as in struct ring_ids */
	uint32_t process;       /* definition; 0: not yet */
	uint32_t name, command; /* texts */
	bool exits;             /* said so itself, with exit_status (as waitpid) */
	uint64_t exit_status;
	bool begun, ended; /* its process_begin, process_end were written */
	bool any_gone;     /* some range is */
	bool forked;       /* came by fork: inherits its parent's modules, objects, texts */
	uint64_t prescan_tick;
	struct record_range *range; /* sorted by start, no overlaps */
	size_t nr_ranges, range_capacity;
	struct record_range *past; /* others that were at addresses of those, by end_ns */
	size_t nr_past, past_capacity;
	size_t nr_introduced; /* of the mappings that the kernel showed since that many execs */
	uint32_t nr_execs;
	struct record_shared *shared;
	size_t nr_shared, shared_capacity;
	uint64_t shared_read_ns; /* when /proc/pid/maps was read; 0: never */
	uint64_t maps_read_ns;   /* when it was read for code, by system/sample.c */
	struct {                 /* record/jit.c: its places in code of no file */
		uint32_t process, first, nr_places;
		struct record_jit_code *code; /* that it told of, as it did */
		size_t nr_code, code_capacity;
		uint64_t interpreter, interpreter_end; /* told, too */
	} jit;
};

/* What the ring says about a descriptor; texts are borrowed. */
struct record_descriptor {
	uint64_t incarnation, type, dev, ino, capacity_bytes, pair_ino;
	const char *name;
	size_t name_bytes;
};

struct record_world {
	struct record_sink *sink;
	struct record_image **image; /* by number; entries may be NULL */
	size_t nr_images, image_capacity;
	struct record_image **extra; /* images that perf alone saw: number - RECORD_IMAGES_MAX */
	size_t nr_extra, extra_capacity;
	struct base_map pids;      /* pid -> number of its newest image */
	struct base_map addresses; /* (image, address) -> site id, of this generation */
	uint32_t generation;       /* counts changes of any image's modules */
	bool any_gone;             /* some image has ranges that are */
	struct base_map objects;   /* (scope, key) -> object id; see record/object.c */
	struct base_map mappings;  /* (dev, ino) -> dense number */
	uint64_t nr_mappings;
	struct base_map places; /* (image, RING_place's word) -> site id */
	struct base_map lines;  /* (function << 32 | file, line) -> site id: of those */
	uint64_t now_ns;        /* time of the record that is being converted */
	struct {                /* record/jit.c */
		struct record_jit_place *place;
		size_t nr, capacity, nr_open, nr_asked;
		uint64_t nr_named;
		struct record_jit_process **process;
		size_t nr_processes, process_capacity;
		struct base_map by_pid; /* -> index + 1 */
		struct base_map known;  /* (image, slice), address -> index */
		struct base_map told;   /* image, start -> index + 1 in what the image told */
		uint64_t slice_ns;
		uint64_t trace_ns[2], mono_ns[2]; /* first and last reading of both clocks */
		int64_t begin_s;                  /* wall time of the first */
		char refused[160];
		bool has_clock;
		bool sliced; /* what was asked for last is so at that time only */
	} jit;
	struct base_map pairs;      /* (tuple, turn) -> pair id */
	struct base_map pair_sides; /* (tuple, side) -> connections seen so far */
	struct base_map peers; /* who is connected to whom, as the kernel says; record/object.c */
	struct {
		uint64_t address;
		uint32_t image, generation;
		uint32_t site;
	} site_cache[RECORD_SITE_CACHE];
	struct {
		uint64_t word;
		uint32_t image, generation;
		uint32_t object;
	} object_cache[RECORD_OBJECT_CACHE];
	/* Asked when an address or descriptor is unknown: look ahead in the image's unread records.
	 */
	bool (*look_ahead)(void *ctx, struct record_image *image);
	void *look_ahead_ctx;
	/* Asked when that did not help. */
	bool (*introduce_maps)(void *ctx, struct record_image *image);
	void *introduce_maps_ctx;
	/* Asked for the inode of the unix socket that the one with this inode is connected to; 0:
	 * not known. NULL: nobody can be asked. */
	uint64_t (*peer_of)(void *ctx, uint64_t ino);
	void *peer_of_ctx;
	bool is_past; /* its processes may be gone, and others have their numbers */
	/* Hears of each image that attached and has said who it is; may be NULL. */
	void (*described)(void *ctx, const struct record_image *image);
	void *described_ctx;
};

void record_world_init(struct record_world *w, struct record_sink *sink);
void record_world_fini(struct record_world *w);
/* NULL: it is none of the world's. */
struct base_map *record_world_map(struct record_world *w, enum record_map_number map);

/* An image that a recording before knew: with that process, of which no definition is written.
 * NULL: as below. */
struct record_image *record_world_known_image(
	struct record_world *w, uint32_t number, uint32_t parent, uint32_t pid, uint32_t process);
/* The image with that number, made on first use; NULL: number out of bounds or no memory. */
struct record_image *record_world_image(
	struct record_world *w, uint32_t number, uint32_t parent, uint32_t pid);
struct record_image *record_world_find(const struct record_world *w, uint32_t number);
/* A new image for a process that never attached. */
struct record_image *record_world_extra(struct record_world *w, uint32_t pid);
/* The newest image of a process, 0: none. */
uint32_t record_world_pid(const struct record_world *w, uint32_t pid);

/* It came by fork, not exec: copy the parent's modules. */
void record_image_set_forked(struct record_world *w, struct record_image *image);
void record_image_describe(struct record_world *w, struct record_image *image, const char *command,
	size_t length); /* NUL-separated */
void record_image_rename(
	struct record_world *w, struct record_image *image, const char *name, size_t length);
/* The module of a file of which one mapping is known; none, if it is no ELF file. */
void record_image_file(struct record_world *w, struct record_image *image, const char *path,
	uint64_t map_start, uint64_t map_end, uint64_t file_offset);
/* The module that the kernel said is there, under whichever of its names; 0: none with that build
 * id.
 */
uint32_t record_image_built_as(const struct record_world *w, const struct record_image *image,
	uint64_t address, uint32_t build_id);
void record_image_module(
	struct record_world *w, struct record_image *image, struct record_range range);
/*
 * From now on no code is there. It stays known until record_world_forget_unloaded(): each thread
 * tells for itself, and what others did in it before is read after this one's word that it is gone.
 */
void record_image_unload(
	struct record_world *w, struct record_image *image, uint64_t bias, uint64_t time_ns);
/* All records of before then are converted. */
void record_world_forget_unloaded(struct record_world *w, uint64_t before_ns);
const struct record_range *record_image_range(const struct record_image *image, uint64_t address);
/* Which module is at that address depends on the time. */
bool record_image_is_reused(const struct record_image *image, uint64_t address);
/* What is there at the time of the record that is converted; asks the kernel's mappings when it is
 * in none. */
const struct record_range *record_image_find_range(
	struct record_world *w, struct record_image *image, uint64_t address);

/* The image says what a place is called (RING_place): such words are sites from then on. */
void record_image_place(struct record_world *w, const struct record_image *image, uint64_t place,
	const char *function, size_t function_bytes, const char *file, size_t file_bytes,
	uint64_t line);
/* Definition ids; 0 for address 0. */
uint32_t record_image_site_slow(
	struct record_world *w, struct record_image *image, uint64_t address);
uint32_t record_image_object_slow(
	struct record_world *w, struct record_image *image, uint64_t word);

uint32_t record_place_site(struct record_world *w, struct record_image *image, uint64_t place);

static inline uint32_t record_image_site(
	struct record_world *w, struct record_image *image, uint64_t address)
{
	size_t i = (size_t)(address ^ address >> 12 ^ (uint64_t)image->number << 5) &
		   (RECORD_SITE_CACHE - 1);
	if (BASE_LIKELY(w->site_cache[i].address == address &&
			w->site_cache[i].image == image->number &&
			w->site_cache[i].generation == w->generation))
		return w->site_cache[i].site;
	return record_image_site_slow(w, image, address);
}

static inline uint32_t record_image_object(
	struct record_world *w, struct record_image *image, uint64_t word)
{
	size_t i = (size_t)(word >> 3 ^ word >> 15 ^ (uint64_t)image->number << 4) &
		   (RECORD_OBJECT_CACHE - 1);
	if (BASE_LIKELY(w->object_cache[i].word == word &&
			w->object_cache[i].image == image->number &&
			w->object_cache[i].generation == w->generation))
		return w->object_cache[i].object;
	return record_image_object_slow(w, image, word);
}

/* frames: return addresses, innermost first. Frames outside every module end the stack when
 * `strict`. */
uint32_t record_image_stack(struct record_world *w, struct record_image *image,
	const uint64_t *frame, size_t nr, bool strict);

void record_image_descriptor(
	struct record_world *w, struct record_image *image, const struct record_descriptor *d);
/* The object that word stands for has this name, or this capacity. */
void record_image_name_object(
	struct record_world *w, struct record_image *image, uint64_t word, uint32_t name);
void record_image_size_object(
	struct record_world *w, struct record_image *image, uint64_t word, uint64_t capacity);

#endif
