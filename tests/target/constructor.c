/* SPDX-License-Identifier: Apache-2.0 */
/*
 * constructor - loads a library whose constructor computes under a lock, then computes for a tenth
 * of that. Known answer: the path is the lock of the library that is not loaded yet, as far as
 * dlopen()'s caller knows, and `make_tables` in it. --by=name: by its name alone, which the loader
 * searches for.
 */
#include <dlfcn.h>
#include <libgen.h>
#include <limits.h>
#include <unistd.h>

#include "target.h"

TARGET_FUNCTION uint64_t conclude(uint64_t sum, uint64_t units)
{
	TARGET_WORK(sum, units);
	return sum;
}

int main(int argc, char **argv)
{
	target_check(argc, argv, "--section-percent --by --units");
	uint64_t units = target_number(argc, argv, "--units", 300000);
	bool by_name = !strcmp(target_text(argc, argv, "--by", "path"), "name");
	char self[PATH_MAX], path[PATH_MAX + 64], text[32];
	ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
	target_must(n > 0, "/proc/self/exe");
	self[n] = 0;
	snprintf(path, sizeof path, "%s/libconstructor.so", dirname(self));
	snprintf(text, sizeof text, "%llu",
		(unsigned long long)(units * target_percent(argc, argv) / 100));
	setenv("CONSTRUCTOR_UNITS", text, 1);
	/* (the program's own RPATH is $ORIGIN) */
	void *library = dlopen(by_name ? "libconstructor.so" : path, RTLD_NOW);
	if (!library)
		fprintf(stderr, "%s\n", dlerror());
	target_must(library, "dlopen");
	const uint64_t *sum = dlsym(library, "constructor_sum");
	target_must(sum, "dlsym");
	target_print(conclude(*sum, units / 10));
	return 0;
}
