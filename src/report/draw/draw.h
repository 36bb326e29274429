/* SPDX-License-Identifier: Apache-2.0 */
/*
 * draw.h - how any answer looks: clean texts, columns, bars, human numbers, paragraphs; what each
 * says of its trace, as text and in JSON.
 *
 * Nothing here knows an answer. All append to a base_str and cannot fail but for memory (check
 * `failed` once).
 */
#ifndef LONGPOLE_REPORT_DRAW_H
#define LONGPOLE_REPORT_DRAW_H

#include "base/column.h"
#include "base/json.h"
#include "model/model.h"

#include <jansson.h>

#define REPORT_NONE    UINT32_MAX
#define report_width   base_text_width
#define report_right   base_str_add_right
#define report_percent base_str_add_share

enum { REPORT_LABEL_WIDTH = 11 }; /* of the word before a paragraph */

struct report_style {
	bool utf8, color;
	unsigned columns; /* at least 60 */
	bool full;        /* everything of 1 % and more */
};
/* Sentences that are wider than the style's columns go on in the next line, under their beginning;
 * rows of tables (two blanks between columns) stay as they are. */
void report_fold(struct base_str *text, const struct report_style *st);

/* Moves a finished text into the arena, and frees it; NULL: no memory. */
const char *report_keep(struct base_arena *a, struct base_str *s);
/* In sight of analysers: it never returns BASE_OK. */
static inline enum base_status report_no_memory(struct base_err *err)
{
	base_fail(err, BASE_ERR_NOMEM, "out of memory for the report");
	return BASE_ERR_NOMEM;
}

/* A zeroed array of the arena; NULL: no memory. */
void *report_array(struct base_arena *a, size_t nr, size_t elem_size_bytes);
/* A struct that begins with its arena, zeroed but for that; NULL: no memory. Freed with all that is
 * in the arena; NULL may be freed, too. Returns NULL. */
void *report_answer_new(size_t size_bytes);
void *report_answer_free(void *answer);

/* ---- texts of others ------------------------------------------------------------------------- */

/* Texts of others, made fit: control characters become '?', invalid UTF-8 becomes U+FFFD. */
void report_clean_add(struct base_str *out, const char *text);

/* A text that is wider than `width` code points, with its long names of C++'s and Rust's folded
 * (symbol_short_add_text()); more: ".." or an ellipsis. It is not cut. */
void report_add_elided(struct base_str *out, const char *name, size_t width, const char *more);

/* A name in the midst of text: clean, and elided (with "..") where it is long. */
void report_name_add(struct base_str *out, const char *name);
/* A word of a command line, quoted for a POSIX shell where it needs that. */
void report_shell_word(struct base_str *s, const char *word);
const char *report_clean(struct base_arena *a, const char *text); /* NULL: no memory */

/* ---- text ------------------------------------------------------------------------------------ */

enum report_color {
	REPORT_PLAIN,
	REPORT_BOLD,
	REPORT_DIM,
	REPORT_RED,
	REPORT_YELLOW,
	REPORT_GREEN
};
void report_color_begin(struct base_str *out, const struct report_style *st, enum report_color c);
void report_color_end(struct base_str *out, const struct report_style *st);
void report_heading(struct base_str *out, const struct report_style *st, const char *text);
/* The beginning of a text that is no name, as a command line. */
void report_cut(
	struct base_str *out, const struct report_style *st, const char *text, size_t width);
/* Text shortened (report_add_elided()), then cut to `width` with ".." (or an ellipsis), padded with
 * blanks when `pad`. */
void report_cell(struct base_str *out, const struct report_style *st, const char *text,
	size_t width, bool pad);
/* The same, padded, of a place in the code: its file and line at the end are kept if they can. */
void report_place_cell(
	struct base_str *out, const struct report_style *st, const char *text, size_t width);
/* The same of the name that `nr` have: their number stands behind it, and is never cut off. */
void report_members_cell(struct base_str *out, const struct report_style *st, const char *name,
	uint64_t nr, size_t width);
/* Bar of `share` out of `width` columns, in eighths where the terminal can. Padded. */
void report_bar(struct base_str *out, const struct report_style *st, double share, unsigned width);
/* Lines of a table's rows; name_width and the columns are the layout's. */
size_t report_table_longest(const struct base_table *t, const void *rows, size_t nr);
void report_table_head(
	struct base_str *out, const struct base_layout *l, const struct report_style *st);
void report_table_line(struct base_str *out, const struct base_layout *l, const void *row,
	const struct report_style *st);
/* The head, at most `limit` rows (0: all), how many more there are. */
void report_table_lines(struct base_str *out, const struct base_layout *l, const void *rows,
	size_t nr, size_t limit, const struct report_style *st);

void report_ns(struct base_str *out, double ns);
/* "xN" with a multiplication sign where it can be shown. */
const char *report_times(const struct report_style *st);
/* "1.25x"; of what leaves next to nothing of the run: ">999x". */
void report_speedup(struct base_str *out, const struct report_style *st, double speedup);
/* A paragraph: words wrapped to the style's columns, continuation lines indented. */
void report_wrap(struct base_str *out, const struct report_style *st, const char *label,
	size_t indent, const char *text);
const char *report_more(const struct report_style *st);  /* of what is cut off */
const char *report_arrow(const struct report_style *st); /* of what becomes what */
const char *report_dot(const struct report_style *st);

/* ---- the trace ------------------------------------------------------------------------------- */

/* Which trace, by whom, and how well it was recorded and read. */
struct report_diag {
	const char *name, *severity, *source, *text; /* text: sentence with the count in it */
	uint64_t count;
};
struct report_cost { /* a part of what recording took */
	const char *name, *method;
	uint64_t n, total_ns;
	bool beside; /* not in the program's time */
};
struct report_unseen {            /* waits of one kind of which nobody was seen to end them */
	const char *wait, *place; /* place: in the kernel; "": not known */
	bool several;             /* and others: there were too many kinds */
	uint64_t nr, total_ns;
	uint64_t longest_ns, longest_begin_ns; /* an example */
	const char *longest_actor;
};
/* What of a world of MPI is not in the trace. Sentences; "": there is nothing to say. */
struct report_world {
	uint32_t nr_ranks, nr_recorded;
	uint32_t
		first_ended; /* the rank that ended badly before all others; UINT32_MAX: none did */
	const char *missing, *unfinished, *ended;
};
struct report_ranks {
	struct report_world *world;
	size_t nr;
};
struct report_trace {
	struct report_ranks ranks; /* of MPI */
	const char *path, *host, *command, *tool;
	uint64_t file_bytes, readable_bytes, nr_records, nr_processors;
	uint64_t quota_ns, quota_period_ns; /* of its control group; 0: none, or not all threads' */
	uint64_t last_ns;                   /* of any record, since the recording's start */
	uint64_t from_ns, to_ns;            /* of it was analysed; 0, 0: all */
	const char *start_text, *end_text,
		*process_text; /* whose path, as the user said it; NULL */
	uint64_t connection;   /* 0: of all */
	uint64_t nr_actors;
	const char *process; /* a whole system: whose path it is; NULL: one program's recording */
	bool switches_only;  /* a whole system, recorded without --full */
	bool of_goroutines;  /* its actors are tasks of a language's runtime: Go's */
	uint64_t pid;
	struct model_waits waits;     /* of all threads of the system */
	struct report_unseen *unseen; /* of them; most frequent first */
	size_t nr_unseen;
	struct report_diag *diag;
	size_t nr_diags;
	struct report_cost *cost; /* none: the recorder did not say */
	size_t nr_costs;
	uint64_t target_cpu_ns;
	double cost_share; /* of all parts in the program's time, of target_cpu_ns; 0: not known */
	/* The same at least and at most, since they are estimates: true within a third and a half.
	 */
	double cost_share_low, cost_share_high;
	uint64_t own_cpu_ns; /* what longpole itself took beside the program */
};

void report_trace_text_caveats(
	struct base_str *out, const struct report_trace *t, const struct report_style *style);
/* What of it to be careful about, a paragraph each; the first has that label, and "" is the label
 * of the next one. */
void report_trace_caveats(struct base_str *out, const struct report_trace *t,
	const struct report_style *st, const char **label);
/* One more paragraph, if there is anything to say; returns whether. What recording cost; */
bool report_cost_caveat(struct base_str *out, const struct report_trace *t,
	const struct report_style *st, const char *label);
/* fewer processors than the machine has; */
bool report_quota_caveat(struct base_str *out, const struct report_trace *t,
	const struct report_style *st, const char *label);
/* of how many waits of a whole system it is known what ended them. */
void report_blocked_caveat(struct base_str *out, const struct report_trace *t,
	const struct report_style *st, const char *label);
/* "its control group may use 1.5 processors ..." */
void report_quota_words(struct base_str *out, uint64_t quota_ns, uint64_t period_ns);
/* "NEXT  longpole COMMAND TRACE [EDIT]"; edit: quoted for a shell, or NULL */
void report_next_line(struct base_str *out, const struct report_style *st, const char *label,
	const char *command, const struct report_trace *t, const char *edit);

/* ---- JSON ------------------------------------------------------------------------------------ */

json_t *report_json_share(double share); /* rounded to six places */
json_t *report_json_ns(double ns);       /* rounded to an integer */
json_t *report_envelope(
	const char *schema, const struct report_trace *t, json_t *result /* stolen */);

/* ---- events.c: what a processor counted ------------------------------------------------------ */

/* A column's head for an event. */
const char *report_event_short(const char *event);
/* Its place among the names; -1: it was not counted. */
int report_event_place(const char *const *name, unsigned nr, const char *event);
/* "0.50", "12.3"; '-' where per is 0. */
void report_event_ratio(struct base_str *out, double count, double per, size_t width);

#endif
