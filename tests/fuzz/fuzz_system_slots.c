/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_system_slots.c - whatever the kernel's side may have written, converted. */
#include "system/convert.h"
#include "fuzz_converter.h"

enum { CPUS = 2, NOBODY = 0x3ffff0 };

static struct {
	const uint8_t *data;
	size_t size;
} input;

static void fake_start(struct system_source *src)
{
	(void)src;
}

/* No thread of this machine is meant. */
static uint32_t nobody(uint64_t tid)
{
	return tid ? NOBODY + (uint32_t)(tid & 7) : 0;
}

static enum base_status fake_read(struct system_source *src, uint64_t now_ns)
{
	enum base_status status = BASE_OK;
	(void)now_ns;
	while (input.size >= KERNEL_SLOT_BYTES && status == BASE_OK) {
		struct kernel_slot s[KERNEL_SLOTS_OF_EVENT_MAX] = {0};
		memcpy(&s[0], input.data, KERNEL_SLOT_BYTES);
		unsigned nr = s[0].shape >> 4, cpu = s[0].tid >> 31;
		if (!nr || nr > KERNEL_SLOTS_OF_EVENT_MAX ||
			input.size < nr * (size_t)KERNEL_SLOT_BYTES)
			nr = 1;
		memcpy(s, input.data, nr * (size_t)KERNEL_SLOT_BYTES);
		input.data += nr * (size_t)KERNEL_SLOT_BYTES;
		input.size -= nr * (size_t)KERNEL_SLOT_BYTES;
		s[0].shape = (unsigned char)(nr << 4 | (s[0].shape & 15));
		s[0].tid = nobody(s[0].tid);
		if (s[0].type == KERNEL_switch || s[0].type == KERNEL_wake ||
			s[0].type == KERNEL_comm)
			s[0].a = nobody(s[0].a);
		if (s[0].type == KERNEL_fork)
			s[0].a = nobody(s[0].a) | (uint64_t)nobody(s[0].a >> 32) << 32;
		status = system_order_push(&src->order, cpu, s, nr);
	}
	return status;
}

static void fake_close(struct system_source *src)
{
	(void)src;
}

static void convert(struct record_converter *c, void *ctx)
{
	(void)ctx;
	static const struct system_backend fake = {
		.name = "fake", .start = fake_start, .read = fake_read, .close = fake_close};
	struct system_options o = {
		.level = SYSTEM_LEVEL_full, .backend = &fake, .nr_processors = CPUS, .alone = true};
	struct system_kernel *k = base_alloc(sizeof *k);
	if (k && system_kernel_open(k, &o, NULL) == BASE_OK) {
		system_kernel_start(k, c);
		k->line_mono_ns = k->line_time_ns = 1ull << 62;
		k->from_mono_ns = 0;
		system_kernel_read(k, true);
		system_kernel_finish(k);
		system_kernel_close(k);
	}
	base_free(k);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	input.data = data;
	input.size = size;
	fuzz_converter(convert, NULL);
	return 0;
}
