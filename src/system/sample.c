/* SPDX-License-Identifier: Apache-2.0 */
/* sample.c - what the processors were doing: samples of all tasks but the program's own. */
#include "system/perf.h"
#include "symbol/symbol.h"
#include "record/jit.h"
#include "system/convert.h"
#include "system/kernel_names.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { LINE_BYTES = 4096 + 128, SAMPLES_MAX = 1 << 16, MAPS_AGAIN_NS = 200000000 };

struct sample {
	uint64_t mono_ns, ip;
	uint32_t pid, tid, cpu;
	size_t first_frame, nr_frames; /* in `frame` */
};

struct system_samples {
	struct system_perf *perf;
	struct sample *sample; /* in time order; [first, nr) wait */
	size_t first, nr, capacity;
	uint64_t *frame;
	size_t nr_frames, frame_capacity;
	uint64_t nr_dropped;
};

void system_samples_open(struct system_kernel *k, uint64_t sample_hz)
{
	_Static_assert(sizeof k->no_samples_why >= SYSTEM_PERF_WHY, "the reason fits");
	struct system_samples *s = base_alloc(sizeof *s);
	if (!s)
		return;
	s->perf = system_perf_open_system(sample_hz, k->no_samples_why);
	if (s->perf)
		k->samples = s;
	else
		base_free(s);
}

bool system_samples_set_hz(struct system_kernel *k, uint64_t sample_hz)
{
	return !k->samples || system_perf_set_sample_hz(k->samples->perf, sample_hz);
}

void system_samples_close(struct system_kernel *k)
{
	struct system_samples *s = k->samples;
	if (!s)
		return;
	system_perf_close(s->perf);
	base_free(s->sample);
	base_free(s->frame);
	base_free(s);
	k->samples = NULL;
}

static void sample_keep(void *ctx, struct system_perf_record *r)
{
	struct system_samples *s = ctx;
	const struct record_event *e = &r->event;
	if (e->kind != RECORD_EVENT_sample || !e->tid)
		return; /* lost ones are counted by perf.c's other user; idle is no task */
	if (s->nr - s->first >= SAMPLES_MAX ||
		base_grow(&s->sample, &s->capacity, s->nr + 1, sizeof *s->sample) != BASE_OK ||
		base_grow(&s->frame, &s->frame_capacity, s->nr_frames + e->nr_frames,
			sizeof *s->frame) != BASE_OK) {
		s->nr_dropped++;
		return;
	}
	s->sample[s->nr++] = (struct sample){.mono_ns = e->time_ns,
		.ip = e->ip,
		.pid = e->pid,
		.tid = e->tid,
		.cpu = e->cpu,
		.first_frame = s->nr_frames,
		.nr_frames = e->nr_frames};
	if (e->nr_frames)
		memcpy(s->frame + s->nr_frames, r->frames, e->nr_frames * sizeof *s->frame);
	s->nr_frames += e->nr_frames;
}

void system_samples_read(struct system_kernel *k)
{
	struct system_samples *s = k->samples;
	if (!s)
		return;
	if (s->first == s->nr)
		s->first = s->nr = s->nr_frames = 0;
	system_perf_each(s->perf, UINT64_MAX, sample_keep, s);
}

/* ---- places ---------------------------------------------------------------------------------- */

/* The code that a process has mapped: read when it is sampled first, and again where it runs at an
 * address that was not there yet. */
static void sample_read_maps(struct system_kernel *k, struct record_image *image)
{
	char path[40], line[LINE_BYTES];
	snprintf(path, sizeof path, "/proc/%" PRIu32 "/maps", image->pid);
	FILE *f = fopen(path, "re");
	while (f && fgets(line, sizeof line, f)) {
		uint64_t start, end, offset;
		char perms[8] = "";
		int at = 0;
		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s %" SCNx64 " %*s %*s %n", &start, &end,
			    perms, &offset, &at) < 4 ||
			perms[2] != 'x' || record_image_range(image, start))
			continue;
		char *file = line + at;
		file[strcspn(file, "\n")] = 0;
		record_image_file(&k->converter->world, image, file, start, end, offset);
	}
	if (f)
		fclose(f);
}

static uint32_t sample_site_of(
	struct system_kernel *k, struct record_image *image, uint64_t address)
{
	if (address >> 63)
		return system_kernel_site(k, address);
	return record_image_site(&k->converter->world, image, address);
}

/* Frames, innermost first: the kernel's, then those of the program. */
static uint32_t sample_stack_of(
	struct system_kernel *k, struct record_image *image, const uint64_t *frame, size_t nr)
{
	struct record_sink *sink = &k->converter->sink;
	size_t nr_kernel = 0;
	while (nr_kernel < nr && frame[nr_kernel] >> 63)
		nr_kernel++;
	uint32_t stack = nr_kernel < nr ? record_image_stack(&k->converter->world, image,
						  frame + nr_kernel, nr - nr_kernel, true)
					: 0;
	for (size_t i = nr_kernel; i; i--)
		stack = record_sink_stack(sink, stack, system_kernel_return_site(k, frame[i - 1]));
	return stack;
}

static void sample_look_at_code(
	struct system_kernel *k, struct record_image *image, const struct sample *sample)
{
	if (sample->ip >> 63 || record_image_range(image, sample->ip))
		return;
	if (!image->maps_read_ns || sample->mono_ns > image->maps_read_ns + MAPS_AGAIN_NS) {
		image->maps_read_ns = sample->mono_ns;
		sample_read_maps(k, image);
	}
	if (!record_image_range(image, sample->ip))
		record_jit_sampled(&k->converter->world, image->pid, sample->ip);
}

static void sample_put(struct system_kernel *k, const struct sample *sample)
{
	const struct system_samples *s = k->samples;
	struct system_kernel_task *t = system_kernel_task(k, sample->tid);
	if (!t || t->own || sample->cpu >= k->source.nr_processors ||
		sample->mono_ns < k->from_mono_ns)
		return; /* the program's own: perf.c has them */
	if (!t->pid)
		t->pid = sample->pid;
	if (!system_kernel_stream(k, t))
		return;
	struct record_image *image = system_kernel_image(k, t);
	if (!image)
		return;
	sample_look_at_code(k, image, sample);
	struct trace_record r = {
		.time_ns = system_kernel_time(k, sample->mono_ns), .kind = TRACE_sample};
	k->converter->world.now_ns = r.time_ns;
	r.u.sample.site = sample_site_of(k, image, sample->ip);
	record_sink_site_is_exact(&k->converter->sink, r.u.sample.site);
	r.u.sample.stack =
		sample_stack_of(k, image, s->frame + sample->first_frame, sample->nr_frames);
	/* A softirq ran on top of it: then that one's. Interrupts do not see this clock: it is one.
	 */
	r.stream = k->cpu[sample->cpu].soft;
	if (r.stream)
		record_sink_put(&k->converter->sink, &r);
	else
		system_kernel_put(k, t, &r);
}

void system_samples_put(struct system_kernel *k, uint64_t mono_ns)
{
	struct system_samples *s = k->samples;
	while (s->first < s->nr && s->sample[s->first].mono_ns <= mono_ns)
		sample_put(k, &s->sample[s->first++]);
}
