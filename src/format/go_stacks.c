/* SPDX-License-Identifier: Apache-2.0 */
/* go_stacks.c - goroutines' stacks: the function that they speak of, what they wait for. */
#include "format/go.h"

#include <string.h>

/* Packages of Go's own that are called to wait or to do I/O: whose functions say how, not where. A
 * name that ends in '/' stands for all packages below it. */
static const char *const go_plumbing[] = {"runtime", "runtime/", "sync", "sync/", "internal/",
	"syscall", "os", "net", "io", "bufio", "time", "context", "reflect"};

/* "internal/poll.(*FD).Read" is of package internal/poll. */
static bool go_is_of(const char *function, const char *package)
{
	size_t length = strlen(package);
	if (strncmp(function, package, length) != 0)
		return false;
	return package[length - 1] == '/' || function[length] == '.';
}

bool format_go_is_plumbing(const char *function)
{
	if (!strcmp(function, "runtime.main") || !strcmp(function, "runtime.gcBgMarkWorker"))
		return false;
	for (size_t i = 0; i < BASE_COUNT(go_plumbing); i++)
		if (go_is_of(function, go_plumbing[i]))
			return true;
	return false;
}

const struct gotrace_frame *format_go_frame(const struct gotrace *t, uint32_t stack, uint32_t i)
{
	if (stack >= t->nr_stacks || i >= t->stack[stack].nr)
		return NULL;
	uint32_t frame = t->stack_frame[t->stack[stack].first + i];
	return frame < t->nr_frames ? &t->frame[frame] : NULL;
}

const char *format_go_function(const struct gotrace *t, uint32_t stack, uint32_t i)
{
	const struct gotrace_frame *f = format_go_frame(t, stack, i);
	return f ? base_strtab_get(t->texts, f->function) : "";
}

static uint32_t go_depth(const struct gotrace *t, uint32_t stack)
{
	return stack < t->nr_stacks ? t->stack[stack].nr : 0;
}

uint32_t format_go_innermost(const struct gotrace *t, uint32_t stack)
{
	uint32_t nr = go_depth(t, stack), i = 0;
	while (i < nr && format_go_is_plumbing(format_go_function(t, stack, i)))
		i++;
	return i < nr ? i : 0;
}

uint32_t format_go_outermost(const struct gotrace *t, uint32_t stack)
{
	uint32_t nr = go_depth(t, stack), i = nr;
	while (i > 0) {
		const char *function = format_go_function(t, stack, i - 1);
		if (!format_go_is_plumbing(function) && strcmp(function, "runtime.main") != 0)
			return i - 1;
		i--;
	}
	return nr ? nr - 1 : 0;
}

const char *format_go_short(const char *function)
{
	const char *begin = function;
	for (const char *c = function; *c && *c != '(' && *c != '['; c++)
		if (*c == '/')
			begin = c + 1;
	return begin;
}

/* From the outermost frame inwards as long as both are in the same function, and have come there by
 * the same calls. */
uint32_t format_go_common(const struct gotrace *t, uint32_t before, uint32_t after)
{
	uint32_t nr_a = go_depth(t, before), nr_b = go_depth(t, after);
	uint32_t a = format_go_innermost(t, before), b = format_go_innermost(t, after);
	uint32_t found = UINT32_MAX;
	for (uint32_t k = 1; k <= nr_a - a && k <= nr_b - b; k++) {
		const struct gotrace_frame *x = format_go_frame(t, before, nr_a - k);
		const struct gotrace_frame *y = format_go_frame(t, after, nr_b - k);
		if (!x || !y || x->function != y->function)
			break;
		found = nr_a - k;
		if (x->pc != y->pc)
			break;
	}
	return found;
}

bool format_go_selects(const struct gotrace *t, uint32_t stack)
{
	uint32_t i = 0, nr = go_depth(t, stack);
	for (; i < nr && format_go_is_plumbing(format_go_function(t, stack, i)); i++)
		if (!strcmp(format_go_function(t, stack, i), "runtime.selectgo"))
			return true;
	return false;
}

static bool go_begins(const char *text, const char *with)
{
	return !strncmp(text, with, strlen(with));
}

static const struct format_go_wait go_wait[] = {
#define WAIT(reason, function, how, text) {reason, function, text, TRACE_TASK_##how},
#include "format/go_waits.def"
};

const struct format_go_wait *format_go_wait_of(
	const struct gotrace *t, const char *reason, uint32_t stack)
{
	const struct format_go_wait *found = NULL;
	uint32_t at = 0, nr = go_depth(t, stack);
	for (size_t i = 0; i < BASE_COUNT(go_wait); i++) {
		const struct format_go_wait *w = &go_wait[i];
		if (!go_begins(reason, w->reason))
			continue;
		if (!*w->function && !found)
			return w;
		for (uint32_t k = 0; *w->function && k < nr; k++) {
			const char *function = format_go_function(t, stack, k);
			if (go_begins(function, w->function) && (!found || k > at)) {
				found = w;
				at = k;
			}
			if (!format_go_is_plumbing(function))
				break;
		}
		if (!*w->function)
			break;
	}
	return found ? found : &go_wait[BASE_COUNT(go_wait) - 1];
}
