/* SPDX-License-Identifier: Apache-2.0 */
/*
 * annotated - two stages that hand items over in shared memory, spinning: no call that a recorder
 * could see. The annotations say who waits on which queue. Known answer: the machine `encoder` in
 * its state `encode`.
 */
#include <pthread.h>
#include <sched.h>

#include "longpole/annotate.h"
#include "target.h"

enum { SLOTS = 8 };

static struct slots {
	_Atomic uint64_t nr_put, nr_taken;
	uint64_t item[SLOTS];
} frames;

static uint64_t nr_items, capture_units, encode_units, percent, total;

TARGET_FUNCTION uint64_t capture(uint64_t item, uint64_t units)
{
	TARGET_WORK(item, units);
	return item;
}

TARGET_FUNCTION uint64_t encode(uint64_t item, uint64_t units)
{
	TARGET_WORK(item, units); /* section */
	return item;
}

static bool is_full(void)
{
	return frames.nr_put - frames.nr_taken == SLOTS;
}

static void put_frame(uint64_t item)
{
	if (is_full())
		longpole_wait_full("frames", 0, 1, 0);
	while (is_full())
		sched_yield();
	frames.item[frames.nr_put % SLOTS] = item;
	longpole_enqueue("frames", 0, 1, 0);
	frames.nr_put++;
}

static uint64_t take_frame(void)
{
	if (frames.nr_put == frames.nr_taken)
		longpole_wait_empty("frames", 0, 1, 0);
	while (frames.nr_put == frames.nr_taken)
		sched_yield();
	longpole_dequeue("frames", 0, 1, 0);
	uint64_t item = frames.item[frames.nr_taken % SLOTS];
	frames.nr_taken++;
	return item;
}

static void *run_encoder(void *arg)
{
	longpole_begin("encoder", 0, 0);
	for (uint64_t i = 0; i < nr_items; i++) {
		uint64_t item = take_frame();
		longpole_state("encode", 0);
		total += encode(item, target_vary(2, i, encode_units) * percent / 100);
		TARGET_PROGRESS("item");
	}
	longpole_end("encoder");
	return arg;
}

int main(int argc, char **argv)
{
	target_check(argc, argv, "--section-percent --items --capture-units --encode-units");
	nr_items = target_number(argc, argv, "--items", 2500);
	capture_units = target_number(argc, argv, "--capture-units", 90);
	encode_units = target_number(argc, argv, "--encode-units", 220);
	percent = target_percent(argc, argv);
	pthread_t encoder;
	target_must(!pthread_create(&encoder, NULL, run_encoder, NULL), "pthread_create");
	longpole_begin("camera", 0, 0);
	for (uint64_t i = 0; i < nr_items; i++) {
		longpole_state("capture", 0);
		uint64_t item = capture(i, target_vary(1, i, capture_units));
		longpole_state("store frame", 0);
		put_frame(item);
	}
	longpole_end("camera");
	pthread_join(encoder, NULL);
	target_print(total);
	return 0;
}
