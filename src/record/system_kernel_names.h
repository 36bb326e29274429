/* SPDX-License-Identifier: Apache-2.0 */
/* system_kernel_names.h - places in the kernel's code, and what /proc/kallsyms calls them. */
#ifndef LONGPOLE_RECORD_SYSTEM_KERNEL_NAMES_H
#define LONGPOLE_RECORD_SYSTEM_KERNEL_NAMES_H

#include "record/system_convert.h"

/* The definition of an address of the kernel; 0 for 0. */
uint32_t record_kernel_site(struct record_kernel *k, uint64_t address);
uint32_t record_kernel_return_site(struct record_kernel *k, uint64_t address);
/* frame: return addresses, innermost first; the scheduler's own are left out. */
uint32_t record_kernel_stack(struct record_kernel *k, const uint64_t *frame, size_t nr);
/* Is that the function of a timer that nobody waits for (the scheduler's tick, our own sampling)?
 */
bool record_kernel_is_tick(struct record_kernel *k, uint64_t address);
/* At the end: the functions of all sites. Nothing when the kernel hides its addresses. */
void record_kernel_name_sites(struct record_kernel *k);
void record_kernel_names_fini(struct record_kernel *k);

/* Read the text of /proc/kallsyms; kept sorted. Made for record_kernel.names, and for tests. */
struct record_kernel_names {
	struct record_kernel_name {
		uint64_t address;
		uint32_t text; /* in `texts` */
	} * name;
	size_t nr, capacity;
	char *texts;
	size_t texts_bytes, texts_capacity;
	bool loaded;
};
enum base_status record_kernel_names_parse(
	struct record_kernel_names *n, const char *line) BASE_MUST_CHECK;
void record_kernel_names_sort(struct record_kernel_names *n);
/* The function that holds the address, and its start; NULL: none. */
const char *record_kernel_names_find(
	const struct record_kernel_names *n, uint64_t address, uint64_t *ret_start);

#endif
