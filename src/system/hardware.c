/* SPDX-License-Identifier: Apache-2.0 */
/* hardware.c - events of the processor and of the kernel that are counted with calls. */
#include "system/hardware.h"
#include "base/names.h"

#include "ring/tally.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static const struct system_hardware_event hardware[] = {
#define EVENT(name, text, unit, how, type, config) HARDWARE_##how(text, type, config)
#define HARDWARE_COUNTER_PMU(text, type, config)   {text, type, config},
#define HARDWARE_COUNTER_CLOCK(text, type, config)
#define HARDWARE_COUNTER_AT_SWITCH(text, type, config)
#define HARDWARE_COUNTER_USAGE(text, type, config)
#define HARDWARE_COUNTER_SLOT(text, type, config)
#include "counter/events.def"
	/* the kernel counts these, where there is no PMU, too */
	{"page-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS},
	{"minor-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS_MIN},
	{"major-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS_MAJ},
};

const struct system_hardware_event *system_hardware_at(unsigned i)
{
	return i < BASE_COUNT(hardware) ? &hardware[i] : NULL;
}

const struct system_hardware_event *system_hardware_find(const char *name)
{
	for (size_t i = 0; i < BASE_COUNT(hardware); i++)
		if (!strcmp(hardware[i].name, name))
			return &hardware[i];
	return NULL;
}

const struct system_hardware_event *system_hardware_of(uint32_t type, uint64_t config)
{
	for (size_t i = 0; i < BASE_COUNT(hardware); i++)
		if (hardware[i].type == type && hardware[i].config == config)
			return &hardware[i];
	return NULL;
}

bool system_hardware_parse(const char *list, struct system_hardware *ret, char ret_bad[64])
{
	*ret = (struct system_hardware){.nr = 0};
	ret_bad[0] = '\0';
	while (*list) {
		char name[64];
		size_t length = strcspn(list, ",");
		snprintf(name, sizeof name, "%.*s", (int)length, list);
		const struct system_hardware_event *found = system_hardware_find(name);
		if (!found)
			memcpy(ret_bad, name, sizeof name);
		if (!found || ret->nr == RING_EVENTS)
			return false;
		ret->event[ret->nr++] = found;
		list += length + (list[length] == ',');
	}
	return ret->nr > 0;
}

static bool has_two_pmus(void)
{
	return !access("/sys/bus/event_source/devices/cpu_core/type", F_OK) &&
	       !access("/sys/bus/event_source/devices/cpu_atom/type", F_OK);
}

/* The whole group at once, as the program's threads will: 0, or errno and which event it was. */
static int try_group(const struct system_hardware *h, enum tally_mode mode, unsigned *ret_which)
{
	int fd[RING_EVENTS], why = 0;
	unsigned nr = 0;
	for (; nr < h->nr; nr++) {
		struct perf_event_attr attr = {.type = h->event[nr]->type,
			.size = sizeof attr,
			.config = h->event[nr]->config,
			.exclude_kernel = mode == TALLY_USER,
			.exclude_user = mode == TALLY_KERNEL,
			.exclude_hv = 1};
		fd[nr] = (int)syscall(
			SYS_perf_event_open, &attr, 0, -1, nr ? fd[0] : -1, PERF_FLAG_FD_CLOEXEC);
		if (fd[nr] < 0) {
			why = errno;
			break;
		}
	}
	*ret_which = nr;
	while (nr > 0)
		close(fd[--nr]);
	return why;
}

static const char *hardware_why(int why)
{
	switch (why) {
	case ENOENT:
	case EOPNOTSUPP:
	case ENODEV:
		return "there is no such counter here: no PMU, as in most virtual machines, or "
		       "not this event (page-faults is counted everywhere)";
	case EACCES:
	case EPERM:
		return "not allowed: /proc/sys/kernel/perf_event_paranoid, or a container's "
		       "seccomp filter";
	case EINVAL:
	case ENOSPC:
		return "the processor has not enough counters for these events together: ask for "
		       "fewer";
	default:
		return strerror(why);
	}
}

enum base_status system_hardware_try(
	struct system_hardware *h, char *why_no_kernel, size_t size, struct base_err *err)
{
	unsigned which;
	int why = try_group(h, TALLY_USER, &which);
	if (why)
		return base_fail(err, BASE_ERR_ENV, "%s cannot be counted: %s (%s)",
			h->event[which]->name, hardware_why(why), base_errno_name(why));
	why = try_group(h, TALLY_KERNEL, &which);
	h->has_kernel = !why;
	h->has_two_pmus = has_two_pmus();
	snprintf(why_no_kernel, size, "%s%s%s", why ? h->event[which]->name : "", why ? ": " : "",
		why ? hardware_why(why) : "");
	return BASE_OK;
}
