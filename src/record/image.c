/* SPDX-License-Identifier: Apache-2.0 */
/* image.c - program images, their modules, and addresses in them. */
#include "record/image.h"
#include "ring/ring.h"
#include "record/jit.h"
#include "symbol/symbol.h"

#include <string.h>

enum { KERNEL_HALF_SHIFT = 47 }; /* user addresses are below */

void record_world_init(struct record_world *w, struct record_sink *sink)
{
	memset(w, 0, sizeof *w);
	w->sink = sink;
	w->generation = 1;
}

static void image_free(struct record_image *image)
{
	if (!image)
		return;
	base_free(image->range);
	base_free(image->past);
	base_free(image->shared);
	base_free(image->jit.code);
	base_free(image);
}

void record_world_fini(struct record_world *w)
{
	for (size_t i = 0; i < w->nr_images; i++)
		image_free(w->image[i]);
	for (size_t i = 0; i < w->nr_extra; i++)
		image_free(w->extra[i]);
	base_free(w->image);
	base_free(w->extra);
	base_map_fini(&w->pids);
	base_map_fini(&w->addresses);
	base_map_fini(&w->objects);
	base_map_fini(&w->mappings);
	record_jit_fini(w);
	base_map_fini(&w->pairs);
	base_map_fini(&w->pair_sides);
	base_map_fini(&w->peers);
	base_map_fini(&w->places);
	base_map_fini(&w->lines);
	memset(w, 0, sizeof *w);
}

struct record_image *record_world_find(const struct record_world *w, uint32_t number)
{
	if (number < w->nr_images)
		return w->image[number];
	if (number >= RECORD_IMAGES_MAX && number - RECORD_IMAGES_MAX < w->nr_extra)
		return w->extra[number - RECORD_IMAGES_MAX];
	return NULL;
}

uint32_t record_world_pid(const struct record_world *w, uint32_t pid)
{
	uint64_t number;
	return base_map_get(&w->pids, 0, pid, &number) ? (uint32_t)number : 0;
}

static struct record_image *image_new(struct record_world *w, uint32_t number, uint32_t pid)
{
	struct record_image *image = base_alloc(sizeof *image);
	if (!image) {
		record_sink_fail(w->sink, BASE_ERR_NOMEM, "no memory for one more program image");
		return NULL;
	}
	image->number = number;
	image->family = number;
	image->pid = pid;
	enum base_status status = base_map_put(&w->pids, 0, pid, number);
	if (status != BASE_OK)
		record_sink_fail(w->sink, status, "no memory for one more process");
	return image;
}

static uint32_t image_process_of(const struct record_world *w, uint32_t number)
{
	const struct record_image *image = record_world_find(w, number);
	return image ? image->process : 0;
}

struct record_image *record_world_known_image(
	struct record_world *w, uint32_t number, uint32_t parent, uint32_t pid, uint32_t process)
{
	if (!number || number >= RECORD_IMAGES_MAX)
		return NULL;
	enum base_status status =
		base_grow(&w->image, &w->image_capacity, (size_t)number + 1, sizeof *w->image);
	if (status != BASE_OK) {
		record_sink_fail(w->sink, status, "no memory for one more program image");
		return NULL;
	}
	struct record_image *image = image_new(w, number, pid);
	if (!image)
		return NULL;
	if (w->nr_images <= number)
		w->nr_images = (size_t)number + 1;
	w->image[number] = image;
	if (parent != number)
		image->parent = parent;
	image->process = process;
	return image;
}

struct record_image *record_world_image(
	struct record_world *w, uint32_t number, uint32_t parent, uint32_t pid)
{
	struct record_image *image = record_world_find(w, number);
	if (image || number >= RECORD_IMAGES_MAX)
		return number < RECORD_IMAGES_MAX ? image : NULL;
	image = record_world_known_image(w, number, parent, pid, 0);
	if (!image)
		return NULL;
	image->process =
		record_sink_process(w->sink, image_process_of(w, image->parent), pid, 0, 0);
	RECORD_JOURNAL_ADD(w->sink->journal, image, number, image->parent, pid, image->process);
	return image;
}

struct record_image *record_world_extra(struct record_world *w, uint32_t pid)
{
	enum base_status status =
		base_grow(&w->extra, &w->extra_capacity, w->nr_extra + 1, sizeof *w->extra);
	if (status != BASE_OK || w->nr_extra >= RECORD_IMAGES_MAX) {
		record_sink_fail(w->sink, BASE_ERR_LIMIT, "too many program images");
		return NULL;
	}
	struct record_image *image = image_new(w, RECORD_IMAGES_MAX + (uint32_t)w->nr_extra, pid);
	if (!image)
		return NULL;
	w->extra[w->nr_extra++] = image;
	image->process = record_sink_process(w->sink, 0, pid, 0, 0);
	return image;
}

/* ---- names ----------------------------------------------------------------------------------- */

static void write_process(struct record_world *w, struct record_image *image)
{
	record_sink_process_again(w->sink, image->process, image_process_of(w, image->parent),
		image->pid, image->name, image->command);
}

void record_image_describe(
	struct record_world *w, struct record_image *image, const char *command, size_t length)
{
	struct base_str quoted = {0};
	const char *end = command + length;
	for (const char *word = command; word < end;) {
		size_t n = strnlen(word, (size_t)(end - word));
		if (word > command)
			base_str_add(&quoted, " ");
		base_str_add_quoted(&quoted, word, n);
		word += n + 1;
	}
	size_t first = strnlen(command, length);
	/* What setproctitle() and its kin write: "nginx: worker process". */
	const char *colon = memmem(command, first, ": ", 2);
	if (colon && colon > command)
		first = (size_t)(colon - command);
	const char *slash = memrchr(command, '/', first);
	const char *name = slash ? slash + 1 : command;
	image->name = record_sink_text(w->sink, name, first - (size_t)(name - command));
	image->command = record_sink_text(w->sink, base_str_text(&quoted), quoted.length);
	base_str_fini(&quoted);
	write_process(w, image);
}

void record_image_rename(
	struct record_world *w, struct record_image *image, const char *name, size_t length)
{
	uint32_t text = record_sink_text(w->sink, name, length);
	if (text == image->name)
		return;
	image->name = text;
	write_process(w, image);
}

void record_image_set_forked(struct record_world *w, struct record_image *image)
{
	struct record_image *parent = record_world_find(w, image->parent);
	if (image->forked || !parent || parent == image)
		return;
	image->forked = true;
	image->family = parent->family;
	RECORD_JOURNAL_ADD(w->sink->journal, forked, image->number);
	/* What the child has told itself counts more: the parent's first, then its own over them.
	 */
	struct record_range *own = image->range;
	size_t nr_own = image->nr_ranges;
	image->range = NULL;
	image->nr_ranges = image->range_capacity = 0;
	for (size_t i = 0; i < parent->nr_ranges; i++)
		record_image_module(w, image, parent->range[i]);
	for (size_t i = 0; i < nr_own; i++)
		record_image_module(w, image, own[i]);
	base_free(own);
	if (!image->command) {
		image->name = parent->name;
		image->command = parent->command;
		write_process(w, image);
	}
}

/* ---- modules and addresses ------------------------------------------------------------------- */

/* Index of the first range that ends after `address`. */
static size_t range_after(const struct record_image *image, uint64_t address)
{
	return BASE_PARTITION(i, image->nr_ranges, image->range[i].end <= address);
}

const struct record_range *record_image_range(const struct record_image *image, uint64_t address)
{
	size_t i = range_after(image, address);
	return i < image->nr_ranges && image->range[i].start <= address ? &image->range[i] : NULL;
}

static bool same_range(const struct record_range *a, const struct record_range *b)
{
	return a->start == b->start && a->end == b->end && a->bias == b->bias &&
	       a->module == b->module;
}

/* `range` was there until end_ns, before others. */
static void keep_past(struct record_world *w, struct record_image *image, struct record_range range,
	uint64_t end_ns)
{
	range.end_ns = range.gone && range.end_ns < end_ns ? range.end_ns : end_ns;
	range.gone = true;
	for (size_t i = 0; i < image->nr_past; i++)
		if (same_range(&image->past[i], &range) &&
			image->past[i].begin_ns == range.begin_ns)
			return; /* introduced again: looked at before it is converted */
	if (range.begin_ns >= range.end_ns || image->nr_past >= RECORD_RANGES_MAX)
		return;
	if (base_grow(&image->past, &image->past_capacity, image->nr_past + 1,
		    sizeof *image->past) != BASE_OK) {
		record_sink_fail(w->sink, BASE_ERR_NOMEM, "no memory for one more mapped module");
		return;
	}
	size_t at = image->nr_past++;
	for (; at && image->past[at - 1].end_ns > range.end_ns; at--)
		image->past[at] = image->past[at - 1];
	image->past[at] = range;
	image->any_gone = w->any_gone = true;
	w->generation++;
}

void record_image_module(
	struct record_world *w, struct record_image *image, struct record_range range)
{
	if (range.start >= range.end || !range.module)
		return;
	size_t first = range_after(image, range.start), last = first;
	while (last < image->nr_ranges && image->range[last].start < range.end)
		last++;
	for (size_t i = first; i < last; i++) {
		struct record_range *old = &image->range[i];
		if (old->begin_ns <= range.begin_ns)
			continue;
		keep_past(w, image, range, old->begin_ns); /* its introduction comes late */
		return;
	}
	if (image->range && last == first + 1 && same_range(&image->range[first], &range)) {
		if (range.begin_ns >= image->range[first].end_ns)
			image->range[first].gone = false; /* known; perhaps loaded again */
		return;
	}
	if (image->nr_ranges >= RECORD_RANGES_MAX)
		return;
	enum base_status status = base_grow(
		&image->range, &image->range_capacity, image->nr_ranges + 1, sizeof *image->range);
	if (status != BASE_OK) {
		record_sink_fail(w->sink, status, "no memory for one more mapped module");
		return;
	}
	/* Those that it overlaps are gone, whether their unloading was seen or not. */
	for (size_t i = first; i < last; i++)
		keep_past(w, image, image->range[i], range.begin_ns);
	memmove(image->range + first + 1, image->range + last,
		(image->nr_ranges - last) * sizeof *image->range);
	image->range[first] = range;
	RECORD_JOURNAL_ADD(w->sink->journal, range, image->number, range.start, range.end,
		range.bias, range.module, range.by_kernel);
	image->nr_ranges = image->nr_ranges + 1 - (last - first);
	w->generation++;
}

void record_image_file(struct record_world *w, struct record_image *image, const char *path,
	uint64_t map_start, uint64_t map_end, uint64_t file_offset)
{
	struct symbol_extent at;
	if (!strcmp(path, RECORD_VDSO)) {
		uint32_t vdso = record_sink_text(w->sink, path, strlen(path));
		record_image_module(w, image,
			(struct record_range){.start = map_start,
				.end = map_end,
				.bias = map_start,
				.by_kernel = true,
				.module = record_sink_module(w->sink, vdso, 0)});
		return;
	}
	if (*path != '/')
		return;
	if (!symbol_elf_extent(path, map_start, file_offset, &at)) {
		record_jit_mapped(w, image->pid, path);
		return;
	}
	uint32_t name = record_sink_text(w->sink, path, strlen(path));
	uint32_t id = *at.build_id ? record_sink_text(w->sink, at.build_id, strlen(at.build_id))
				   : record_sink_sum(w->sink, name, w->now_ns);
	record_image_module(w, image,
		(struct record_range){.start = at.copy ? map_start : at.start,
			.end = at.copy ? map_end : at.end,
			.bias = at.bias,
			.by_kernel = true,
			.module = record_sink_module(w->sink, name, id)});
}

uint32_t record_image_built_as(const struct record_world *w, const struct record_image *image,
	uint64_t address, uint32_t build_id)
{
	const struct record_range *range = record_image_range(image, address);
	return range && range->by_kernel && build_id &&
			       w->sink->module[range->module].build_id == build_id
		       ? range->module
		       : 0;
}

void record_image_unload(
	struct record_world *w, struct record_image *image, uint64_t bias, uint64_t time_ns)
{
	RECORD_JOURNAL_ADD(w->sink->journal, unload, image->number, bias);
	for (size_t i = 0; i < image->nr_past; i++) {
		struct record_range *range = &image->past[i];
		if (range->bias == bias && range->begin_ns <= time_ns && time_ns < range->end_ns)
			range->end_ns = time_ns;
	}
	for (size_t i = 0; i < image->nr_ranges; i++) {
		struct record_range *range = &image->range[i];
		if (range->bias != bias || range->begin_ns > time_ns)
			continue;
		range->gone = true;
		range->end_ns = time_ns;
		image->any_gone = w->any_gone = true;
	}
}

/* How many of them are left, the others behind them. */
static size_t forget_ranges(struct record_range *range, size_t nr, uint64_t before_ns)
{
	size_t kept = 0;
	for (size_t i = 0; i < nr; i++)
		if (!range[i].gone || range[i].end_ns > before_ns)
			range[kept++] = range[i];
	return kept;
}

static void forget_unloaded(struct record_world *w, struct record_image *image, uint64_t before_ns)
{
	size_t nr_before = image->nr_ranges + image->nr_past;
	image->nr_ranges = forget_ranges(image->range, image->nr_ranges, before_ns);
	image->nr_past = forget_ranges(image->past, image->nr_past, before_ns);
	if (image->nr_ranges + image->nr_past != nr_before)
		w->generation++;
	image->any_gone = image->nr_past > 0;
	for (size_t i = 0; i < image->nr_ranges; i++)
		image->any_gone |= image->range[i].gone;
}

void record_world_forget_unloaded(struct record_world *w, uint64_t before_ns)
{
	bool any = w->any_gone;
	w->any_gone = false;
	for (size_t i = 0; any && i < w->nr_images; i++) {
		if (!w->image[i] || !w->image[i]->any_gone)
			continue;
		forget_unloaded(w, w->image[i], before_ns);
		w->any_gone |= w->image[i]->any_gone;
	}
}

static bool range_holds(const struct record_range *range, uint64_t address)
{
	return range->start <= address && address < range->end;
}

bool record_image_is_reused(const struct record_image *image, uint64_t address)
{
	for (size_t i = 0; i < image->nr_past; i++)
		if (range_holds(&image->past[i], address))
			return true;
	return false;
}

static const struct record_range *range_then(
	const struct record_image *image, uint64_t address, uint64_t time_ns)
{
	const struct record_range *range = record_image_range(image, address);
	if (range && range->begin_ns <= time_ns)
		return range;
	for (size_t i = image->nr_past; i-- > 0;)
		if (range_holds(&image->past[i], address) && image->past[i].begin_ns <= time_ns &&
			time_ns <= image->past[i].end_ns)
			return &image->past[i];
	return range;
}

const struct record_range *record_image_find_range(
	struct record_world *w, struct record_image *image, uint64_t address)
{
	const struct record_range *range = range_then(image, address, w->now_ns);
	if (!range && w->introduce_maps && w->introduce_maps(w->introduce_maps_ctx, image))
		range = range_then(image, address, w->now_ns);
	return range;
}

uint32_t record_image_site_slow(
	struct record_world *w, struct record_image *image, uint64_t address)
{
	uint64_t known, scope = (uint64_t)w->generation << 32 | image->number;
	uint32_t site;
	if (RING_IS_PLACE(address))
		return record_place_site(w, image, address);
	if (!address || address >> KERNEL_HALF_SHIFT)
		return 0;
	if (base_map_get(&w->addresses, scope, address, &known)) {
		site = (uint32_t)known;
	} else {
		const struct record_range *range = record_image_range(image, address);
		if (!range && w->look_ahead)
			w->look_ahead(w->look_ahead_ctx, image);
		range = record_image_find_range(w, image, address);
		if (!range)
			return record_jit_site(w, image, address);
		site = record_sink_site(w->sink, range->module, address - range->bias);
		if (record_image_is_reused(image, address)) {
			w->jit.sliced = true;
			return site;
		}
		scope = (uint64_t)w->generation << 32 | image->number; /* may have changed */
		enum base_status status = base_map_put(&w->addresses, scope, address, site);
		if (status != BASE_OK)
			record_sink_fail(w->sink, status, "no memory for one more address");
	}
	size_t i = (size_t)(address ^ address >> 12 ^ (uint64_t)image->number << 5) &
		   (RECORD_SITE_CACHE - 1);
	w->site_cache[i].address = address;
	w->site_cache[i].image = image->number;
	w->site_cache[i].generation = w->generation;
	w->site_cache[i].site = site;
	return site;
}

uint32_t record_image_stack(struct record_world *w, struct record_image *image,
	const uint64_t *frame, size_t nr, bool strict)
{
	if (strict) { /* frame-pointer chains of code without frame pointers end in garbage */
		size_t good = 0;
		while (good < nr && (RING_IS_PLACE(frame[good]) ||
					    record_image_find_range(w, image, frame[good]) ||
					    record_jit_is_code(w, image, frame[good])))
			good++;
		nr = good;
	}
	uint32_t stack = 0;
	while (nr-- > 0) {
		uint32_t site = record_image_site(w, image, frame[nr]);
		if (site)
			stack = record_sink_stack(w->sink, stack, site);
	}
	return stack;
}
