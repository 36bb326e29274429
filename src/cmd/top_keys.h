/* SPDX-License-Identifier: Apache-2.0 */
/* top_keys.h - the keys of `longpole top` on a terminal. */
#ifndef LONGPOLE_CMD_TOP_KEYS_H
#define LONGPOLE_CMD_TOP_KEYS_H

#include "report/top.h"

#include <termios.h>

struct top_keys {
	bool on; /* the terminal gives single keys */
	bool quit, paused;
	size_t order; /* of the rows: an index; 0: by the path */
	struct termios before;
};
/* Where standard input is our terminal. */
void top_keys_begin(struct top_keys *k);
void top_keys_end(struct top_keys *k);
/* Takes what was pressed since; was anything? Does not wait. */
bool top_keys_look(struct top_keys *k);
/* A window in the order that was chosen, and what the keys are. */
void top_keys_text(struct base_str *out, const struct top_keys *k, const struct live_window *w,
	const struct report_top_head *head, const struct report_style *style);
/* How many rows of a screen of `columns` a text takes; what of it is beyond all rows but the last (0: any number) is cut off. */
unsigned top_keys_rows(const char *text, unsigned columns);
void top_keys_cut(struct base_str *s, unsigned columns, unsigned rows);

#endif
