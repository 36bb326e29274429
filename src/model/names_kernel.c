/* SPDX-License-Identifier: Apache-2.0 */
/* names_kernel.c - what system calls, waits in the kernel, interrupts and devices are called. */
#include "model/model_private.h"
#include "trace/syscalls.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

void model_add_call(struct base_str *s, uint32_t call)
{
	const char *name = call ? trace_syscall_find(call - 1)->name : NULL;
	if (name)
		base_str_add(s, name);
	else if (call)
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
void model_add_waker(const struct model *m, struct base_str *s, uint32_t waker)
{
	if (!waker || waker > m->kernel.nr_wakers)
		return;
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
	const struct waker *c = &m->kernel.waker[waker - 1];
	const char *name = trace_text_of(m->defs, c->name);
	for (size_t i = 0; i < BASE_COUNT(known) && c->type == TRACE_CONTEXT_softirq; i++)
		if (!strcmp(known[i].softirq, name)) {
			base_str_add(s, known[i].text);
			return;
		}
	if (c->timed)
		base_str_addf(s, "%s, which a timer had woken", name);
	else if (c->type == TRACE_CONTEXT_none)
		base_str_addf(s, "kernel thread %.*s",
			(int)(model_kind_length(name) ? model_kind_length(name) : strlen(name)),
			name);
	else if (c->type == TRACE_CONTEXT_timer)
		base_str_add(s, "a timer");
	else if (*name)
		base_str_addf(s, "%s %s", context_word(c->type), name);
	else
		base_str_addf(s, "an %s", context_word(c->type));
}

const char *model_disk_text(uint32_t op)
{
	static const char *const word[] = {
#define X(name, text) text,
		TRACE_DISK_OPS(X)
#undef X
	};
	return op < TRACE_DISK_NR ? word[op] : "other";
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
	if (ro->host)
		base_str_addf(
			s, "%s:", trace_text_of(m->defs, trace_def_host(m->defs, ro->host)->name));
	if (ro->context != TRACE_CONTEXT_none) {
		base_str_addf(s, "%s%s%s", context_word(ro->context), *name ? " " : "", name);
		return;
	}
	if (ro->recorder)
		base_str_addf(s, "the recorder (%s)", *name ? name : "longpole");
	else if (length)
		base_str_add_bytes(s, name, length);
	else
		base_str_add(s, *name ? name : "program");
}

/* ---- which objects are spoken of as one ------------------------------------------------------ */

enum { EPHEMERAL_PORT = 32768 };

/* The name's hash (FNV-1a): two names that share one would share a row of a table. */
static uint64_t hash(const char *text)
{
	uint64_t h = 14695981039346656037u;
	for (; *text; text++)
		h = (h ^ (unsigned char)*text) * 1099511628211u;
	return h;
}

static const char *port_of(const char *address)
{
	const char *end = strchr(address, ' '), *colon = NULL;
	for (const char *p = address; *p && p != end; p++)
		if (*p == ':')
			colon = p;
	return colon;
}

/* "tcp 10.0.0.1:80 10.0.0.2:40112": both ends, and all such connections, are the service's at
 * 10.0.0.1:80: the address whose port is not one of those that callers get. "unix - /run/x": the
 * address that there is. */
static void add_service(struct base_str *s, const char *name)
{
	const char *local = strchr(name, ' '), *peer = local ? strchr(local + 1, ' ') : NULL;
	const char *local_port = local ? port_of(local + 1) : NULL,
		   *peer_port = peer ? port_of(peer + 1) : NULL;
	const char *best = local ? local + 1 : name;
	if (peer && !strncmp(best, "- ", 2))
		best = peer + 1;
	else if (local_port && peer_port && strtoul(peer_port + 1, NULL, 10) < EPHEMERAL_PORT &&
		 strtoul(peer_port + 1, NULL, 10) < strtoul(local_port + 1, NULL, 10))
		best = peer + 1;
	if (local)
		base_str_add_bytes(s, name, (size_t)(local - name) + 1);
	base_str_add_bytes(s, best, strcspn(best, " "));
}

static const char *kept(struct model *m, struct base_str *s, uint64_t *lo)
{
	const char *text = model_keep_text(m, s);
	*lo = hash(text);
	return text;
}

enum { BY_OBJECT = 4, BY_TEXT, ALL };

void model_service_class(
	struct model *m, uint32_t object, uint64_t *hi, uint64_t *lo, const char **text)
{
	struct base_str s = {0};
	*hi = (uint64_t)TRACE_OBJECT_socket << 32 | BY_TEXT;
	base_str_add(&s, "socket ");
	add_service(&s, trace_text_of(m->defs, m->defs->objects[object].name));
	*text = kept(m, &s, lo);
}

void model_kernel_class(
	struct model *m, uint32_t object, uint64_t *hi, uint64_t *lo, const char **text)
{
	const struct trace_object *def = &m->defs->objects[object];
	const char *name = trace_text_of(m->defs, def->name);
	struct base_str s = {0};
	uint64_t type = def->type << 32, ix;
	switch (def->type) {
	case TRACE_OBJECT_socket:
	case TRACE_OBJECT_listener:
		if (!*name || !strchr(name, ' ')) {
			*hi = type | ALL;
			*lo = hash(name);
			break;
		}
		model_service_class(m, object, hi, lo, text);
		break;
	case TRACE_OBJECT_file: /* a compiler reads thousands */
		if (*name && base_map_get(&m->made.classes, *hi, *lo, &ix))
			return;
		if (*name && m->naming.nr_named_classes < MODEL_NAMED_CLASSES_MAX) {
			m->naming.nr_named_classes++;
			return;
		}
		*hi = type | ALL;
		*lo = 0;
		*text = "files";
		break;
	case TRACE_OBJECT_futex: {
		const char *program =
			trace_text_of(m->defs, trace_def_process(m->defs, def->process)->name);
		*hi = type | BY_TEXT;
		base_str_addf(&s, "futex words of %s", *program ? program : "several programs");
		*text = kept(m, &s, lo);
		break;
	}
	case TRACE_OBJECT_pipe:
	case TRACE_OBJECT_eventfd:
	case TRACE_OBJECT_epoll:
	case TRACE_OBJECT_timerfd:
	case TRACE_OBJECT_io_uring:
		if (*name)
			return;
		*hi = type |
		      (m->naming.nr_named_classes < MODEL_NAMED_CLASSES_MAX ? BY_OBJECT : ALL);
		*lo = m->naming.nr_named_classes < MODEL_NAMED_CLASSES_MAX ? object : 0;
		break;
	default:
		return;
	}
	m->naming.nr_named_classes += !base_map_get(&m->made.classes, *hi, *lo, &ix);
}
