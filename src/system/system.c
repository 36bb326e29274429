/* SPDX-License-Identifier: Apache-2.0 */
/* system.c - the table of back-ends, and the choice among them. */
#include "system/system.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct system_backend *const backends[] = {&system_backend_bpf, &system_backend_perf};

const char *system_refusal_text(enum system_refusal r)
{
	static const char *const text[] = {
		[SYSTEM_REFUSAL_none] = "used",
		[SYSTEM_REFUSAL_not_built] = "not built in",
		[SYSTEM_REFUSAL_privilege] = "needs privilege",
		[SYSTEM_REFUSAL_no_feature] = "the kernel cannot do it",
		[SYSTEM_REFUSAL_resources] = "not enough memory or descriptors",
	};
	return text[r];
}

/* Events have the machine's thread numbers; in a container /proc has others. */
static bool sees_all_threads(void)
{
	enum { PROC_PID_INIT_INO = 0xEFFFFFFC };
	struct stat st;
	return stat("/proc/self/ns/pid", &st) || st.st_ino == (unsigned)PROC_PID_INIT_INO;
}

static bool system_wanted(const struct system_backend *b, const struct system_options *o)
{
	return !o->only_backend || !strcmp(o->only_backend, b->name);
}

enum base_status system_source_open(struct system_source *src, const struct system_options *o,
	struct system_attempt ret_attempt[SYSTEM_ATTEMPTS_MAX], unsigned *ret_nr_attempts,
	struct base_err *err)
{
	_Static_assert(BASE_COUNT(backends) <= SYSTEM_ATTEMPTS_MAX, "one attempt each");
	long nr = o->nr_processors ? (long)o->nr_processors : sysconf(_SC_NPROCESSORS_CONF);
	*src = (struct system_source){0};
	*ret_nr_attempts = 0;
	src->nr_processors = nr < 1 ? 1 : nr > KERNEL_CPUS_MAX ? KERNEL_CPUS_MAX : (unsigned)nr;
	enum base_status status = system_order_init(&src->order, src->nr_processors, err);
	if (status != BASE_OK)
		return status;
	if (o->backend) {
		ret_attempt[(*ret_nr_attempts)++] = (struct system_attempt){.backend = o->backend};
		src->backend = o->backend;
		return BASE_OK;
	}
	for (size_t i = 0; i < BASE_COUNT(backends); i++) {
		struct system_attempt *a = &ret_attempt[*ret_nr_attempts];
		if (!system_wanted(backends[i], o))
			continue;
		*a = (struct system_attempt){.backend = backends[i]};
		++*ret_nr_attempts;
		if (!sees_all_threads()) {
			a->refusal = SYSTEM_REFUSAL_no_feature;
			snprintf(a->why, sizeof a->why,
				"we are in a container, where threads have other numbers");
			continue;
		}
		if (backends[i]->open(src, o, &a->refusal, a->why)) {
			src->backend = backends[i];
			return BASE_OK;
		}
	}
	system_order_fini(&src->order);
	if (!*ret_nr_attempts)
		return base_fail(err, BASE_ERR_USAGE, "no such source of kernel events: %s",
			o->only_backend);
	return base_fail(err, BASE_ERR_ENV,
		"the kernel does not show us the whole system: %s: %s%s",
		ret_attempt[0].backend->name, ret_attempt[0].why,
		ret_attempt[0].refusal == SYSTEM_REFUSAL_privilege
			? " (run it as root; to record one program alone, without --system, needs "
			  "no rights)"
			: "");
}

void system_source_start(struct system_source *src)
{
	src->backend->start(src);
}

enum base_status system_source_read(struct system_source *src, uint64_t now_ns)
{
	return src->backend->read(src, now_ns);
}

void system_source_close(struct system_source *src)
{
	if (src->backend)
		src->backend->close(src);
	system_order_fini(&src->order);
	*src = (struct system_source){0};
}
