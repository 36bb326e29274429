/* SPDX-License-Identifier: Apache-2.0 */
/* top_keys.c - the keys of `longpole top` on a terminal, and the order of rows that they choose. */
#include "cmd/top_keys.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- orders ---------------------------------------------------------------------------------- */

static int top_keys_by_path(const void *a, const void *b)
{
	const struct live_row *x = a, *y = b;
	return x->path_ns != y->path_ns ? (x->path_ns > y->path_ns ? -1 : 1) : 0;
}

static int top_keys_by_waiting(const void *a, const void *b)
{
	const struct live_row *x = a, *y = b;
	return x->waiting_ns != y->waiting_ns ? (x->waiting_ns > y->waiting_ns ? -1 : 1)
					      : top_keys_by_path(a, b);
}

static int top_keys_by_visits(const void *a, const void *b)
{
	const struct live_row *x = a, *y = b;
	return x->visits != y->visits ? (x->visits > y->visits ? -1 : 1) : top_keys_by_path(a, b);
}

static int top_keys_by_name(const void *a, const void *b)
{
	const struct live_row *x = a, *y = b;
	int by_process = strcmp(x->process, y->process);
	return by_process ? by_process : strcmp(x->name, y->name);
}

static const struct {
	char key;
	const char *name;
	int (*compare)(const void *a, const void *b);
} order[] = {
	{'p', "path", top_keys_by_path}, /* as they come */
	{'w', "waiting", top_keys_by_waiting},
	{'v', "visits", top_keys_by_visits},
	{'n', "name", top_keys_by_name},
};

static struct live_row *top_keys_sorted(
	const struct top_keys *k, const struct live_row *row, size_t nr)
{
	struct live_row *sorted = nr ? base_alloc(nr * sizeof *sorted) : NULL;
	if (!sorted)
		return NULL;
	memcpy(sorted, row, nr * sizeof *sorted);
	qsort(sorted, nr, sizeof *sorted, order[k->order].compare);
	return sorted;
}

void top_keys_text(struct base_str *out, const struct top_keys *k, const struct live_window *w,
	const struct report_top_head *head, const struct report_style *style)
{
	struct live_row *state = NULL, *process = NULL, *connection = NULL;
	struct live_window sorted = *w;
	if (k->order) {
		state = top_keys_sorted(k, w->state, w->nr_states);
		process = top_keys_sorted(k, w->process, w->nr_processes);
		connection = top_keys_sorted(k, w->connection, w->nr_connections);
		/* (what there is no memory for stays as it is) */
		sorted.state = state ? state : w->state;
		sorted.process = process ? process : w->process;
		sorted.connection = connection ? connection : w->connection;
	}
	report_top_text(out, &sorted, head, style);
	base_free(state);
	base_free(process);
	base_free(connection);
	if (!k->on)
		return;
	base_str_addf(out, "by %s   q quit, space pause; order:", order[k->order].name);
	for (size_t i = 0; i < BASE_COUNT(order); i++)
		base_str_addf(out, " %c %s", order[i].key, order[i].name);
	base_str_add(out, "\n");
}

/* ---- what fits a screen ---------------------------------------------------------------------- */

/* The end of the screen's row that begins at `p` (its line's end, or after `columns` characters; colours have no width). */
static const char *top_keys_row_end(const char *p, unsigned columns)
{
	unsigned width = 0;
	for (; *p && *p != '\n'; p++) {
		if (*p == '\033')
			p += strcspn(p, "m\n");
		else if (((unsigned char)*p & 0xc0) != 0x80 && ++width > columns)
			return p;
		if (!*p || *p == '\n')
			break;
	}
	return p;
}

unsigned top_keys_rows(const char *text, unsigned columns)
{
	unsigned rows = 0;
	for (const char *p = text; *p; rows++) {
		p = top_keys_row_end(p, columns);
		p += *p == '\n';
	}
	return rows;
}

void top_keys_cut(struct base_str *s, unsigned columns, unsigned rows)
{
	const char *text = base_str_text(s), *p = text;
	if (!rows || top_keys_rows(text, columns) < rows)
		return;
	for (unsigned i = 0; i + 1 < rows; i++) {
		p = top_keys_row_end(p, columns);
		p += *p == '\n';
	}
	s->length = (size_t)(p - text);
	s->buf[s->length] = 0;
}

/* ---- keys ------------------------------------------------------------------------------------ */

void top_keys_begin(struct top_keys *k)
{
	struct termios t;
	/* (in the background, to ask a terminal for keys would stop us) */
	if (!isatty(STDIN_FILENO) || tcgetpgrp(STDIN_FILENO) != getpgrp() ||
		tcgetattr(STDIN_FILENO, &k->before))
		return;
	t = k->before;
	t.c_lflag &= ~(tcflag_t)(ICANON | ECHO); /* ISIG stays: Ctrl-C is what it was */
	t.c_cc[VMIN] = 1;
	t.c_cc[VTIME] = 0;
	k->on = !tcsetattr(STDIN_FILENO, TCSANOW, &t);
}

void top_keys_end(struct top_keys *k)
{
	if (k->on)
		tcsetattr(STDIN_FILENO, TCSANOW, &k->before);
	k->on = false;
}

static void top_keys_press(struct top_keys *k, char key)
{
	if (key == 'q' || key == 'Q')
		k->quit = true;
	else if (key == ' ')
		k->paused = !k->paused;
	for (size_t i = 0; i < BASE_COUNT(order); i++)
		if (order[i].key == key)
			k->order = i;
}

bool top_keys_look(struct top_keys *k)
{
	struct pollfd p = {.fd = STDIN_FILENO, .events = POLLIN};
	bool any = false;
	char key;
	while (k->on && poll(&p, 1, 0) > 0 && p.revents & POLLIN) {
		if (read(STDIN_FILENO, &key, 1) != 1) {
			top_keys_end(k); /* the terminal is gone */
			break;
		}
		top_keys_press(k, key);
		any = true;
	}
	return any;
}
