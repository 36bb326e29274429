/* SPDX-License-Identifier: Apache-2.0 */
/* kernel_events.c - the kernel's events by name and fields. */
#include "format/kernel.h"

#include "trace/syscalls.h"

#include <string.h>

enum { WORD_BYTES = 64, PREEMPTED_BITS = 0x100 | 0x80000000 };

static const struct {
	const char *event;
	enum format_sched_kind kind;
	const char *tid, *pid, *actor, *number, *name;
} events[] = {
#define EVENT(event, kind, tid, pid, actor, number, name)                                          \
	{#event, FORMAT_SCHED_##kind, tid, pid, actor, number, name},
#include "format/kernel_events.def"
};

/* The first of these fields that there is. */
static bool kernel_events_find(const struct format_sched_fields *f, const char *words,
	int64_t *ret_number, const char **ret_text, size_t *ret_length)
{
	while (*words) {
		char word[WORD_BYTES];
		size_t length = strcspn(words, " ");
		BASE_ASSERT(length < sizeof word);
		memcpy(word, words, length);
		word[length] = '\0';
		*ret_text = NULL;
		if (f->get(f->ctx, word, ret_number, ret_text, ret_length))
			return true;
		words += length + (words[length] == ' ');
	}
	return false;
}

static uint32_t kernel_events_number_of(
	const struct format_sched_fields *f, const char *words, uint32_t otherwise)
{
	int64_t number;
	const char *text;
	size_t length;
	return kernel_events_find(f, words, &number, &text, &length) && !text && number >= 0 &&
			       number < FORMAT_SCHED_UNKNOWN
		       ? (uint32_t)number
		       : otherwise;
}

static uint32_t kernel_events_name_of(
	struct format_sched *s, const struct format_sched_fields *f, const char *words)
{
	int64_t number;
	const char *text;
	size_t length;
	return kernel_events_find(f, words, &number, &text, &length) && text
		       ? format_sched_name(s, text, length)
		       : 0;
}

/* prev_state: a number of the kernel, or the letters that ftrace prints: R and R+ may run. */
static bool is_runnable(const struct format_sched_fields *f)
{
	int64_t number;
	const char *text;
	size_t length;
	if (!kernel_events_find(f, "prev_state", &number, &text, &length))
		return false;
	if (text)
		return length > 0 && (text[0] == 'R' || memchr(text, '+', length));
	return !number || number & PREEMPTED_BITS;
}

static enum trace_context_type kernel_events_context_of(const char *event)
{
	return strstr(event, "softirq") ? TRACE_CONTEXT_softirq
	       : strstr(event, "timer") ? TRACE_CONTEXT_timer
					: TRACE_CONTEXT_irq;
}

/* "syscall_entry_read" (LTTng), "sys_enter_read" (tracefs): the call is in the name. */
static bool convert_call(
	const char *event, const struct format_sched_fields *f, struct format_sched_event *e)
{
	static const struct {
		const char *prefix;
		enum format_sched_kind kind;
	} form[] = {{"syscall_entry_", FORMAT_SCHED_call_begin},
		{"syscall_exit_", FORMAT_SCHED_call_end}, {"sys_enter_", FORMAT_SCHED_call_begin},
		{"sys_exit_", FORMAT_SCHED_call_end}};
	for (size_t i = 0; i < BASE_COUNT(form); i++) {
		size_t length = strlen(form[i].prefix);
		if (strncmp(event, form[i].prefix, length) != 0)
			continue;
		for (unsigned nr = 0; nr < TRACE_SYSCALLS_MAX; nr++) {
			const char *name = trace_syscall_find(nr)->name;
			if (!name || strcmp(name, event + length) != 0)
				continue;
			e->kind = (uint8_t)form[i].kind;
			e->number = (uint16_t)nr;
			e->value = kernel_events_number_of(f, "ret", 0);
			return true;
		}
	}
	return false;
}

bool format_sched_convert(struct format_sched *s, const char *event,
	const struct format_sched_fields *f, struct format_sched_event *e)
{
	for (size_t i = 0; i < BASE_COUNT(events); i++) {
		if (strcmp(events[i].event, event) != 0)
			continue;
		uint32_t number = kernel_events_number_of(f, events[i].number, 0);
		e->kind = (uint8_t)events[i].kind;
		e->tid = kernel_events_number_of(f, events[i].tid, FORMAT_SCHED_UNKNOWN);
		e->pid = kernel_events_number_of(f, events[i].pid, 0);
		e->actor = kernel_events_number_of(f, events[i].actor, e->actor);
		e->number = (uint16_t)(number > UINT16_MAX ? UINT16_MAX : number);
		e->name = kernel_events_name_of(s, f, events[i].name);
		if (events[i].kind == FORMAT_SCHED_fork &&
			kernel_events_number_of(f, "child_tid", 0))
			e->pid = kernel_events_number_of(
				f, "child_pid", 0); /* LTTng's; ftrace's is a thread */
		if (events[i].kind == FORMAT_SCHED_switch) {
			e->actor_name = kernel_events_name_of(s, f, "prev_comm");
			e->runnable = is_runnable(f);
		} else if (events[i].kind == FORMAT_SCHED_context_begin ||
			   events[i].kind == FORMAT_SCHED_context_end) {
			e->context = (uint8_t)kernel_events_context_of(event);
		} else if (events[i].kind == FORMAT_SCHED_call_end) {
			e->value = kernel_events_number_of(f, "ret", 0);
		}
		return events[i].tid[0] == '\0' || e->tid != FORMAT_SCHED_UNKNOWN;
	}
	return convert_call(event, f, e);
}
