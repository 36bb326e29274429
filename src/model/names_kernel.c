/* SPDX-License-Identifier: Apache-2.0 */
/* names_kernel.c - what system calls, waits in the kernel, interrupts and devices are called. */
#include "model/model_private.h"

#include <ctype.h>
#include <string.h>

const char *model_call_name(uint64_t number)
{
	static const char *const name[] = {
#define CALL(nr, text) [nr] = #text,
#include "model/calls.def"
	};
	return number < BASE_COUNT(name) ? name[number] : NULL;
}

static void add_call(struct base_str *s, uint32_t call)
{
	const char *name = model_call_name(call - 1);
	if (name)
		base_str_add(s, name);
	else
		base_str_addf(s, "system call %u", call - 1);
}

static const char *context_word(enum trace_context_type type)
{
	static const char *const word[] = {
#define X(name, text) text,
		TRACE_CONTEXTS(X)
#undef X
	};
	return type < TRACE_CONTEXT_NR ? word[type] : "context";
}

/* "a timer", "the network", "interrupt nvme0q1" */
static void add_cause(const struct model *m, struct base_str *s, uint32_t cause)
{
	static const struct {
		const char *softirq, *text;
	} known[] = {
		{"TIMER", "a timer"},
		{"HRTIMER", "a timer"},
		{"NET_RX", "the network"},
		{"NET_TX", "the network to send"},
		{"BLOCK", "a disk"},
		{"RCU", "the kernel's RCU grace period"},
	};
	const struct cause *c = &m->cause[cause - 1];
	const char *name = trace_text_of(m->defs, c->name);
	for (size_t i = 0; i < BASE_COUNT(known) && c->type == TRACE_CONTEXT_softirq; i++)
		if (!strcmp(known[i].softirq, name)) {
			base_str_add(s, known[i].text);
			return;
		}
	if (c->type == TRACE_CONTEXT_timer)
		base_str_add(s, "a timer");
	else if (*name)
		base_str_addf(s, "%s %s", context_word(c->type), name);
	else
		base_str_addf(s, "an %s", context_word(c->type));
}

bool model_add_kernel_state(struct model *m, struct base_str *s, const struct state_info *st)
{
	if (st->aux == NONE || !(st->aux & AUX_CALL))
		return false;
	uint32_t call = st->aux >> AUX_CALL_SHIFT & AUX_CALL_MASK, cause = st->aux & AUX_CALL_MASK;
	if (st->pub.kind == MODEL_STATE_io) {
		add_call(s, call);
	} else {
		if (cause && cause <= m->nr_causes) {
			base_str_add(s, "waiting for ");
			add_cause(m, s, cause);
		} else {
			base_str_add(s, call ? "waiting" : "asleep, not seen in what");
		}
		if (call) {
			base_str_add(s, " in ");
			add_call(s, call);
		}
	}
	if (st->class_ix != NONE && st->class_ix < m->nr_classes) {
		base_str_add(s, " of ");
		model_add_class(m, s, st->class_ix);
	}
	return true;
}

void model_add_runnable(struct model *m, struct base_str *s, const struct state_info *st)
{
	if (st->role != NONE && st->role < m->nr_roles)
		base_str_addf(s, "waiting for a processor that %s had", m->role[st->role].name);
	else if (st->aux == AUX_IDLE)
		base_str_add(s, "waking up on an idle processor");
	else if (st->aux == AUX_QUOTA)
		base_str_add(s, "kept from an idle processor by its cgroup's quota");
	else if (m->is_system)
		base_str_add(s, "waiting for a processor");
	else /* what ours had is followed to them: this is the rest */
		base_str_add(s, "waiting for a processor that other programs had");
}

size_t model_kind_length(const char *name)
{
	const char *slash = strchr(name, '/');
	if (!slash || (!isdigit((unsigned char)slash[1]) && strncmp(name, "kworker/", 8) != 0))
		return 0;
	return (size_t)(slash - name);
}

void model_add_program(const struct model *m, struct base_str *s, const struct role *ro)
{
	const char *name = trace_text_of(m->defs, ro->process_name);
	size_t length = m->is_system ? model_kind_length(name) : 0;
	if (ro->context != TRACE_CONTEXT_none) {
		base_str_addf(s, "%s%s%s", context_word(ro->context), *name ? " " : "", name);
		return;
	}
	if (length)
		base_str_add_bytes(s, name, length);
	else
		base_str_add(s, *name ? name : "program");
}
