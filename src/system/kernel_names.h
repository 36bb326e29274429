/* SPDX-License-Identifier: Apache-2.0 */
/* kernel_names.h - places in the kernel's code, and what /proc/kallsyms calls them. */
#ifndef LONGPOLE_SYSTEM_KERNEL_NAMES_H
#define LONGPOLE_SYSTEM_KERNEL_NAMES_H

#include "system/convert.h"

/* The definition of an address of the kernel; 0 for 0. */
uint32_t system_kernel_site(struct system_kernel *k, uint64_t address);
uint32_t system_kernel_return_site(struct system_kernel *k, uint64_t address);
/* frame: return addresses, innermost first; the scheduler's own are left out. */
uint32_t system_kernel_stack(struct system_kernel *k, const uint64_t *frame, size_t nr);
/* Is that the function of a timer that nobody waits for (the scheduler's tick, our own sampling)?
 */
bool system_kernel_is_tick(struct system_kernel *k, uint64_t address);
/* At the end: the functions of all sites. Nothing when the kernel hides its addresses. */
void system_kernel_name_sites(struct system_kernel *k);
void system_kernel_names_fini(struct system_kernel *k);

/* Read the text of /proc/kallsyms; kept sorted. Made for system_kernel.names, and for tests. */
struct system_kernel_names {
	struct system_kernel_name {
		uint64_t address;
		uint32_t text; /* in `texts` */
	} * name;
	size_t nr, capacity;
	char *texts;
	size_t texts_bytes, texts_capacity;
	bool loaded;
};
enum base_status system_kernel_names_parse(
	struct system_kernel_names *n, const char *line) BASE_MUST_CHECK;
void system_kernel_names_sort(struct system_kernel_names *n);
/* The function that holds the address, and its start; NULL: none. */
const char *system_kernel_names_find(
	const struct system_kernel_names *n, uint64_t address, uint64_t *ret_start);

#endif
