/* SPDX-License-Identifier: Apache-2.0 */
/* env.c - our environment variables, and how they reach programs that this one executes. */
#include "ring/attach.h"
#include "ring/handover.h"
#include "preload/preload.h"
#include "preload/env.h"

#include <string.h>

enum { TEXT_MAX = 8192, IMAGE_DIGITS = 10, STACK_ENTRIES_MAX = 1024 };

static const char library_name[] = "liblongpole-";
static const char prefix_ours[] = "LONGPOLE_", prefix_preload[] = "LD_PRELOAD=",
		  prefix_image[] = "LONGPOLE_IMAGE=", prefix_ring[] = "LONGPOLE_RING=";

/* Copied at the start, for the program may overwrite or free its environment. */
static struct {
	size_t nr_bytes;
	char *variable[PRELOAD_ENV_OURS_MAX]; /* "NAME=value" in text; LD_PRELOAD is not among them
					       */
	unsigned nr_variables;
	char *ring;           /* value */
	char *ring_inherited; /* the same in the process's first environment */
	char *library;        /* our own path, as in LD_PRELOAD */
	/* Where we came later: "LONGPOLE_RING=value", and a path; room for any. */
	char *joined, *joined_library;
	char *image;           /* value, digits in text */
	char *image_inherited; /* digits in the process's first environment: what libc's own execs
				  pass on */
	char text[TEXT_MAX];
} env PRELOAD_EARLY;

static bool has_prefix(const char *text, const char *prefix)
{
	return strncmp(text, prefix, strlen(prefix)) == 0;
}

static char *env_keep(const char *text, size_t nr_bytes)
{
	if (nr_bytes >= sizeof env.text - env.nr_bytes)
		return NULL;
	char *copy = env.text + env.nr_bytes;
	memcpy(copy, text, nr_bytes);
	copy[nr_bytes] = '\0';
	env.nr_bytes += nr_bytes + 1;
	return copy;
}

static bool is_between(char c)
{
	return c == ':' || c == ' ';
}

static bool is_of_longpole(const char *path, size_t length)
{
	for (size_t i = 0; i + sizeof library_name - 1 <= length; i++)
		if (memcmp(path + i, library_name, sizeof library_name - 1) == 0)
			return true;
	return false;
}

/* The first word of LD_PRELOAD that is a library of ours. */
static void keep_library(const char *list)
{
	while (*list) {
		size_t length =
			0; /* (libc's functions for it are on pages that nobody else needs) */
		while (list[length] && !is_between(list[length]))
			length++;
		if (!env.library && is_of_longpole(list, length))
			env.library = env_keep(list, length);
		list += length;
		while (is_between(*list))
			list++;
	}
}

static void env_number_images(void)
{
	if (env.image || env.nr_variables == PRELOAD_ENV_OURS_MAX)
		return;
	env.variable[env.nr_variables] = env_keep("LONGPOLE_IMAGE=0000000000", 25);
	if (env.variable[env.nr_variables])
		env.image = env.variable[env.nr_variables++] + strlen(prefix_image);
}

bool preload_env_read(char **environment)
{
	if (!handover_allowed())
		return false;
	for (char **e = environment; *e; e++) {
		if (has_prefix(*e, prefix_preload))
			keep_library(*e + strlen(prefix_preload));
		if (!has_prefix(*e, prefix_ours) || env.nr_variables == PRELOAD_ENV_OURS_MAX)
			continue;
		char *copy = env_keep(*e, strlen(*e));
		if (!copy)
			continue;
		env.variable[env.nr_variables++] = copy;
		if (has_prefix(copy, prefix_ring))
			env.ring = copy + strlen(prefix_ring),
			env.ring_inherited = *e + strlen(prefix_ring);
		if (has_prefix(copy, prefix_image) &&
			strlen(copy) == strlen(prefix_image) + IMAGE_DIGITS) {
			env.image = copy + strlen(prefix_image);
			env.image_inherited = *e + strlen(prefix_image);
		}
	}
	env_number_images();
	return env.ring && *env.ring;
}

const char *preload_env_ring(void)
{
	return env.ring;
}

const char *preload_env_library(void)
{
	return env.library;
}

void preload_env_forget(void)
{
	if (env.ring)
		env.ring[0] = '\0';
	if (env.ring_inherited)
		env.ring_inherited[0] = '\0';
}

static char *env_room(char *room, const char *prefix)
{
	char empty[sizeof prefix_ring + RING_ATTACH_PATH_BYTES] = "";
	stpcpy(empty, prefix);
	return room ? room : env_keep(empty, sizeof empty);
}

/* The texts stay when it is left: a thread may be about to execute something. Only a name that differs is written over the next time. */
void preload_env_join(const char *library, const char *ring)
{
	if (!*ring)
		return;
	env_number_images();
	bool is_new = !env.joined;
	env.joined = env_room(env.joined, prefix_ring);
	env.joined_library = env_room(env.joined_library, "");
	if (!env.joined || !env.joined_library)
		return;
	if (is_new && env.nr_variables < PRELOAD_ENV_OURS_MAX)
		env.variable[env.nr_variables++] = env.joined;
	if (strcmp(env.joined_library, library) != 0)
		stpcpy(env.joined_library, library);
	env.library = env.joined_library;
	stpcpy(env.joined + strlen(prefix_ring), ring);
	__atomic_store_n(&env.ring, env.joined + strlen(prefix_ring), __ATOMIC_RELEASE);
}

void preload_env_leave(void)
{
	__atomic_store_n(&env.ring, NULL, __ATOMIC_RELEASE);
}

uint32_t preload_env_parent_image(void)
{
	uint32_t image = 0;
	for (unsigned i = 0; env.image && i < IMAGE_DIGITS; i++)
		image = image * 10 + (uint32_t)(env.image[i] - '0');
	return image;
}

void preload_env_set_image(uint32_t image)
{
	if (!env.image)
		return;
	for (unsigned i = IMAGE_DIGITS; i-- > 0; image /= 10)
		env.image[i] = (char)('0' + image % 10);
	if (env.image_inherited)
		memcpy(env.image_inherited, env.image, IMAGE_DIGITS);
}

/* ---- for exec -------------------------------------------------------------------------------- */

static size_t env_count(char *const *list)
{
	size_t n = 0;
	while (list && list[n])
		n++;
	return n;
}

static bool names_library(const char *list)
{
	const char *found = list;
	size_t length = strlen(env.library);
	while ((found = strstr(found, env.library))) {
		bool starts = found == list || found[-1] == ':' || found[-1] == ' ';
		char next = found[length];
		if (starts && (next == '\0' || next == ':' || next == ' '))
			return true;
		found += length;
	}
	return false;
}

size_t preload_env_bytes(char *const *environment)
{
	const char *preload = "";
	if (!env.ring || !env.library)
		return 0;
	for (char *const *e = environment; e && *e; e++)
		if (has_prefix(*e, prefix_preload))
			preload = *e;
	return (env_count(environment) + PRELOAD_ENV_OURS_MAX + 2) * sizeof(char *) +
	       strlen(preload) + sizeof prefix_preload + strlen(env.library) + 2;
}

char **preload_env_build(void *memory, char *const *environment)
{
	char **list = memory;
	char *text = (char *)(list + env_count(environment) + PRELOAD_ENV_OURS_MAX + 2);
	size_t n = 0;
	bool has_library = false;
	for (char *const *e = environment; e && *e; e++) {
		if (has_prefix(*e, prefix_ours))
			continue;
		list[n++] = *e;
		if (!has_prefix(*e, prefix_preload) || has_library)
			continue;
		has_library = true;
		const char *value = *e + strlen(prefix_preload);
		if (names_library(value))
			continue;
		list[n - 1] = text;
		text = stpcpy(stpcpy(stpcpy(text, prefix_preload), env.library), *value ? ":" : "");
		text = stpcpy(text, value) + 1;
	}
	if (!has_library) {
		list[n++] = text;
		stpcpy(stpcpy(text, prefix_preload), env.library);
	}
	for (unsigned i = 0; i < env.nr_variables; i++)
		list[n++] = env.variable[i];
	list[n] = NULL;
	return list;
}

/* A list of libraries as LD_PRELOAD has it, but for longpole's. */
static void copy_without_library(char *to, const char *list)
{
	size_t nr = 0;
	while (*list) {
		size_t length = 0;
		while (list[length] && !is_between(list[length]))
			length++;
		if (length && !is_of_longpole(list, length)) {
			if (nr++)
				*to++ = ':';
			memcpy(to, list, length);
			to += length;
		}
		list += length + (list[length] != '\0');
	}
	*to = '\0';
}

char **preload_env_without(void *memory, char *const *environment)
{
	char **list = memory;
	char *text = (char *)(list + env_count(environment) + PRELOAD_ENV_OURS_MAX + 2);
	size_t n = 0;
	bool had_library = false;
	for (char *const *e = environment; e && *e; e++) {
		if (has_prefix(*e, prefix_ours))
			continue;
		list[n++] = *e;
		if (!has_prefix(*e, prefix_preload) || had_library)
			continue;
		had_library = true;
		list[n - 1] = text;
		copy_without_library(stpcpy(text, prefix_preload), *e + strlen(prefix_preload));
	}
	list[n] = NULL;
	return list;
}
