/* SPDX-License-Identifier: Apache-2.0 */
/* system.c - the table of back-ends, and the choice among them. */
#include "record/system.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct record_backend *const backends[] = {&record_backend_bpf, &record_backend_perf};

const char *record_refusal_text(enum record_refusal r)
{
	static const char *const text[] = {
		[RECORD_REFUSAL_none] = "used",
		[RECORD_REFUSAL_not_built] = "not built in",
		[RECORD_REFUSAL_privilege] = "needs privilege",
		[RECORD_REFUSAL_no_feature] = "the kernel cannot do it",
		[RECORD_REFUSAL_resources] = "not enough memory or descriptors",
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

static bool wanted(const struct record_backend *b, const struct record_system_options *o)
{
	return !o->only_backend || !strcmp(o->only_backend, b->name);
}

enum base_status record_source_open(struct record_source *src,
	const struct record_system_options *o,
	struct record_attempt ret_attempt[RECORD_ATTEMPTS_MAX], unsigned *ret_nr_attempts,
	struct base_err *err)
{
	_Static_assert(BASE_COUNT(backends) <= RECORD_ATTEMPTS_MAX, "one attempt each");
	long nr = o->nr_processors ? (long)o->nr_processors : sysconf(_SC_NPROCESSORS_CONF);
	*src = (struct record_source){0};
	*ret_nr_attempts = 0;
	src->nr_processors = nr < 1 ? 1 : nr > KERNEL_CPUS_MAX ? KERNEL_CPUS_MAX : (unsigned)nr;
	enum base_status status = record_order_init(&src->order, src->nr_processors, err);
	if (status != BASE_OK)
		return status;
	if (o->backend) {
		ret_attempt[(*ret_nr_attempts)++] = (struct record_attempt){.backend = o->backend};
		src->backend = o->backend;
		return BASE_OK;
	}
	for (size_t i = 0; i < BASE_COUNT(backends); i++) {
		struct record_attempt *a = &ret_attempt[*ret_nr_attempts];
		if (!wanted(backends[i], o))
			continue;
		*a = (struct record_attempt){.backend = backends[i]};
		++*ret_nr_attempts;
		if (!sees_all_threads()) {
			a->refusal = RECORD_REFUSAL_no_feature;
			snprintf(a->why, sizeof a->why,
				"we are in a container, where threads have other numbers");
			continue;
		}
		if (backends[i]->open(src, o, &a->refusal, a->why)) {
			src->backend = backends[i];
			return BASE_OK;
		}
	}
	record_order_fini(&src->order);
	if (!*ret_nr_attempts)
		return base_fail(err, BASE_ERR_USAGE, "no such source of kernel events: %s",
			o->only_backend);
	return base_fail(err, BASE_ERR_ENV,
		"the kernel does not show us the whole system: %s: %s%s",
		ret_attempt[0].backend->name, ret_attempt[0].why,
		ret_attempt[0].refusal == RECORD_REFUSAL_privilege
			? " (run it as root; to record one program alone, without --system, needs "
			  "no rights)"
			: "");
}

void record_source_start(struct record_source *src)
{
	src->backend->start(src);
}

enum base_status record_source_read(struct record_source *src, uint64_t now_ns)
{
	return src->backend->read(src, now_ns);
}

void record_source_close(struct record_source *src)
{
	if (src->backend)
		src->backend->close(src);
	record_order_fini(&src->order);
	*src = (struct record_source){0};
}
