/* SPDX-License-Identifier: Apache-2.0 */
/* cmd.h - shared by the subcommands; nothing else includes it. */
#ifndef LONGPOLE_CMD_CMD_H
#define LONGPOLE_CMD_CMD_H

#include "base/parameter.h"
#include "report/report.h"
#include "trace/trace.h"

#include <stdio.h>

/* ---- the tables ------------------------------------------------------------------------------ */

enum cmd_exit { CMD_OK = 0, CMD_GATE = 1, CMD_USAGE = 2, CMD_BAD_TRACE = 3, CMD_ENVIRONMENT = 4 };

enum cmd_group {
	CMD_GROUP_RECORD,
	CMD_GROUP_ANALYSE,
	CMD_GROUP_MEMORY,
	CMD_GROUP_NETWORK,
	CMD_GROUP_LOOK,
	CMD_GROUP_HELP,
	CMD_GROUP_NR
};

enum {
	CMD_READS_TRACE = 1 << 0, /* first operand: a trace, or none: the newest *.lpt here */
	CMD_PROGRAM = 1 << 1,     /* from the first operand on all is a program and its arguments */
	CMD_DASHES = 1 << 2, /* "--" is an operand; with CMD_PROGRAM the program comes after it */
	CMD_OR_PROGRAM = 1 << 3, /* "--" is an operand, and a program follows it */
	CMD_RAW = 1 << 4,        /* all arguments are another program's */
	CMD_IMPORTS = 1 << 5,    /* operands: an import format, and a file of it */
	/* options that come with it */
	CMD_PROGRESS = 1 << 6, /* --progress, --quiet */
	CMD_JSON = 1 << 7,     /* --json */
	CMD_MEMORY = 1 << 8,   /* --max-memory */
	CMD_ENDS = 1 << 9,     /* --start, --end, --process, --connection */
	CMD_WINDOW = 1 << 10,  /* --from, --to */
	CMD_SAMPLES =
		1 << 11, /* is about samples of the processor: a trace without any will not do */
	CMD_ANALYSES =
		CMD_READS_TRACE | CMD_PROGRESS | CMD_JSON | CMD_MEMORY | CMD_ENDS | CMD_WINDOW,
};

struct cmd_option {
	const char *name;
	char letter;         /* 0: none */
	const char *value;   /* what --help calls it; NULL: takes none; "[X]": only as --name=X */
	const char *choices; /* for completion and checking: "a b c"; "@file"; NULL: anything */
	const char *doc;     /* NULL: works, but no help shows it */
};
/* Another spelling of an option, of the tool that a command follows: one dash and a word. */
struct cmd_spelling {
	const char *word;   /* "-HPUX" */
	const char *option; /* "hpux" */
};
struct cmd_details {
	const char *usage; /* after "longpole NAME " */
	const char *about; /* for --help; a paragraph */
	const char *gate;  /* what exit status 1 says; NULL: never */
	const struct cmd_option *option;
	size_t nr_options;
	size_t nr_of_program;                /* of these, at the end: only with -- PROG */
	const char *example[4];              /* lines; NULL ends */
	const struct cmd_spelling *spelling; /* ended by a word NULL; NULL: none */
};
struct cmd;
struct cmd_answer;
/* Looks at the options, and answers from the trace. run NULL: only looks at the options. CMD_OK, or
 * CMD_USAGE after a message; of what then goes wrong *a has the status. */
typedef int cmd_section(struct cmd *c, struct report_run *run, struct cmd_answer *a);
struct cmd_spec {
	const char *name, *summary;
	enum cmd_group group;
	unsigned flags;
	const struct cmd_details *details;
	int (*run)(struct cmd *c);
	cmd_section *section; /* of `longpole report`; NULL: none */
};
#define CMD(name, group, flags, summary)                                                           \
	extern const struct cmd_details cmd_details_##name;                                        \
	int cmd_run_##name(struct cmd *c);
#define SECTION(name, run, flags, summary)                                                         \
	extern const struct cmd_details cmd_details_##name;                                        \
	int run(struct cmd *c);                                                                    \
	cmd_section cmd_section_##name;
#include "cmd/commands.def"
/* In the place of commands that this processor has not (elsewhere.c). */
extern const struct cmd_details cmd_details_elsewhere;
int cmd_run_elsewhere(struct cmd *c);

/* ---- sections of `longpole report` (sections.c) ---------------------------------------------- */

enum { CMD_SECTIONS_MAX = 16, CMD_SECTION_OPTIONS_MAX = 64 };
/* Those that a command line names, as one command that has the options of all of them. */
struct cmd_sections {
	const struct cmd_spec *section[CMD_SECTIONS_MAX];
	size_t nr;
	struct cmd_spec spec;
	struct cmd_details details;
	struct cmd_option option[CMD_SECTION_OPTIONS_MAX];
};
/* Takes the names of sections out of the words after "report". False: there are none. */
bool cmd_sections_choose(struct cmd_sections *ret, int *argc, char **argv);
/* The operand of `report` is no file, and nearly a section: says so. */
bool cmd_sections_mistyped(struct cmd *c);
/* A line each, with its summary. */
void cmd_add_sections(struct base_str *out);

const struct cmd_spec *cmd_table(size_t *ret_nr);
const struct cmd_spec *cmd_find(const char *name); /* NULL: none */
const char *cmd_nearest(const char *name);         /* NULL: none is like it */
/* run(argc, argv), on a stack of 8 MiB where the shell's limit is less than 2. */
int cmd_on_enough_stack(int (*run)(int argc, char **argv), int argc, char **argv);
/* Commands of two words, as "noc sim"; their first operand is the second word. */
const struct cmd_spec *cmd_verbs(size_t *ret_nr);
bool cmd_is_verb_of(const struct cmd_spec *verb, const struct cmd_spec *command);
const struct cmd_spec *cmd_find_verb(const struct cmd_spec *command, const char *word);
/* A line a verb, with its summary. */
void cmd_add_verbs(struct base_str *out, const struct cmd_spec *command);
/* i-th option of a command: its own, then the common ones; NULL: no more. */
const struct cmd_option *cmd_option_at(const struct cmd_spec *spec, size_t i);
struct cmd_group_text {
	const char *title;
	bool brief; /* the short overview gives its commands' names only */
};
extern const struct cmd_group_text cmd_groups[CMD_GROUP_NR];

/* ---- one invocation -------------------------------------------------------------------------- */

enum { CMD_GIVEN_MAX = 64, CMD_PATH_MAX = 4096 };
enum cmd_when { CMD_AUTO, CMD_ALWAYS, CMD_NEVER };

struct cmd_seen;
struct cmd_trace_name {
	char buf[256];
};
struct cmd_terminal {
	bool color_out, color_err, utf8, err_is_tty, dumb;
	unsigned columns, rows; /* rows 0: not known */
};
struct cmd_progress {
	enum cmd_when when;
	uint64_t began_ns, drawn_ns;
	const char *what;
	bool visible;
};
struct cmd {
	const struct cmd_spec *spec;
	struct {
		const struct cmd_option *option;
		const char *value;
	} given[CMD_GIVEN_MAX];
	size_t nr_given;
	char **operand;
	size_t nr_operands;
	struct cmd_terminal term;
	struct cmd_progress progress;
	struct report_places places; /* of the open trace */
	struct cmd_trace_name found; /* its name, when none was given */
	struct cmd_seen *seen;       /* traces that passed the gate (damage.c) */
	size_t nr_seen, seen_capacity;
	const struct cmd_sections *sections; /* of `report`; NULL: none */
	struct {
		int pid, terminal; /* 0: none runs; where standard output led before */
	} pager;
	bool is_partial;       /* something that belongs to one of them is missing */
	bool answer_on_stderr; /* standard output is the recorded program's */
	struct base_err err;
};

/* How many of these words are options that every command has; they may also stand before its name.
 */
int cmd_leading_words(int argc, char **argv);
/* Parses argv (after the command's name). False: a message was printed; exit with CMD_USAGE. */
bool cmd_parse(struct cmd *c, int argc, char **argv);
bool cmd_given(const struct cmd *c, const char *option);
const char *cmd_value(
	const struct cmd *c, const char *option); /* last one given; NULL: not given */
size_t cmd_values(const struct cmd *c, const char *option, const char **value, size_t max);
bool cmd_value_is_count(const char *text); /* digits alone */
/* Values with units. False: a message was printed. *ret is left alone when not given. */
bool cmd_value_count(struct cmd *c, const char *option, uint64_t *ret);
bool cmd_value_limit(struct cmd *c, size_t *ret); /* --limit; 0 with --all */
bool cmd_value_time(
	struct cmd *c, const char *option, uint64_t *ret_ns); /* 10ms, 1.5s, 250us, 7ns */
/* A time since the recording's start, or a share of its length, as 20%. */
bool cmd_value_moment(struct cmd *c, const char *option, uint64_t length_ns, uint64_t *ret_ns);
bool cmd_value_size(struct cmd *c, const char *option, uint64_t *ret_bytes); /* 512, 64K, 2G */
/* --list-parameters: "key = default", unit, sentence, limits and words; NAME stands after the names
 * of groups that a user makes several of (NULL: none). */
void cmd_add_parameters(struct base_str *out, struct base_parameters p, const char *single_group);
/* The same as JSON; `more` (NULL: nothing) stands beside under that key and is taken over. */
int cmd_write_parameters(struct cmd *c, struct base_parameters p, const char *key, json_t *more);

/* Its value may be left out, and then is "". */
static inline bool cmd_value_is_optional(const struct cmd_option *o)
{
	return o->value && *o->value == '[';
}

/* ---- terminal -------------------------------------------------------------------------------- */

void cmd_terminal_init(struct cmd_terminal *t, enum cmd_when color);
/* How large it is now; `fd` leads to it. */
void cmd_terminal_measure(struct cmd_terminal *t, int fd);
struct report_style cmd_style(const struct cmd *c);
/* Messages to standard error, cleaned. */
void cmd_note(struct cmd *c, const char *fmt, ...) BASE_PRINTF(2, 3);
void cmd_warn(struct cmd *c, const char *fmt, ...) BASE_PRINTF(2, 3); /* also with --quiet */
void cmd_note_lines(struct cmd *c, const struct base_str *lines);     /* one message each */
int cmd_usage(struct cmd *c, const char *fmt, ...) BASE_PRINTF(2, 3); /* returns CMD_USAGE */
/* A word that is none of those that "a b c" lists; says the nearest. */
int cmd_usage_choice(struct cmd *c, const char *what, const char *value, const char *choices);
/* Prints c->err and returns the exit status that goes with it. */
int cmd_fail(struct cmd *c, enum base_status s);
int cmd_exit_of(enum base_status s);
/* From here on standard output leads to a pager, where it is a terminal and one is wanted (pager.c);
 * and no more. */
void cmd_pager_begin(struct cmd *c);
void cmd_pager_end(struct cmd *c);
/* As execvp will find it: a name in $PATH. */
bool cmd_is_in_path(const char *name);
/* Writes a finished answer (and frees it), without what may not be shown (base_shown): CMD_OK or
 * the exit status after a message. */
int cmd_write(struct cmd *c, struct base_str *text);
int cmd_write_prose(
	struct cmd *c, struct base_str *text); /* the same of sentences: report_fold() */
int cmd_write_bytes(struct cmd *c, struct base_str *text); /* the same of what is no text */
int cmd_write_json(struct cmd *c, json_t *json);
/* {"schema": "longpole/COMMAND/1", "tool", "result"}; of a trace: report_envelope(). */
json_t *cmd_result_json(const char *schema, json_t *result /* taken over */);
int cmd_write_result(struct cmd *c, const char *schema, json_t *result);
/* As cmd_write(), but into --output's file where one is given. */
int cmd_write_output(struct cmd *c, struct base_str *text);
void cmd_fold(const struct cmd *c, struct base_str *text); /* report_fold() */
/* The table of a document, "longpole/path/1"; NULL: it has none. */
const struct base_table *cmd_document(const char *schema);
/* A document of it, or one line, newline included; frees it. NULL: out->failed. */
void cmd_add_json(struct base_str *out, json_t *json);
void cmd_add_json_line(struct base_str *out, json_t *json);

void cmd_progress_reset(struct cmd *c);
void cmd_progress_show(
	struct cmd *c, const char *what, uint64_t done, uint64_t all, const char *unit);
void cmd_progress_text(struct cmd *c, const char *text);
void cmd_progress_clear(struct cmd *c);
uint64_t cmd_now_ns(void);

/* ---- traces ---------------------------------------------------------------------------------- */

/* The gate (damage.c). What is no trace passes it in silence: its own reader says more. */
void cmd_check_trace(struct cmd *c, const char *path);
/* All that the command line names, before the command runs. */
void cmd_check_operands(struct cmd *c);
/* What reading found out beyond that, of a trace that passed the gate. */
void cmd_tell_health(struct cmd *c, const char *path, const struct trace_health *h);
/* CMD_OK, or CMD_BAD_TRACE after a message: what `gate` asks cannot be said of a partial trace. */
int cmd_gate_partial(struct cmd *c, const char *gate);
void cmd_seen_fini(struct cmd *c);

/* Where a command's trace is a directory, its ranks' traces become one, which `keep` holds the name
 * of (directory.c). CMD_OK, or an exit status after a message. */
int cmd_join_directory(struct cmd *c, struct base_str *keep);
bool cmd_is_directory(const char *path);
/* The one operand, else the newest *.lpt of the directory; NULL: a message was printed. */
const char *cmd_trace_path(struct cmd *c);
/* --output, else the trace's name with another ending: server.lpt -> server.pftrace. NULL: a
 * message was printed. */
const char *cmd_output_path(
	struct cmd *c, const char *trace, const char *suffix, char buf[CMD_PATH_MAX]);
/* Opens it and fills a report_run with progress. CMD_OK, or an exit status after a message. */
int cmd_open(struct cmd *c, const char *path, struct report_run *ret);
/* The same for commands that need threads: refuses a trace of packets, and says which command reads
 * that. */
int cmd_open_threads(struct cmd *c, const char *path, struct report_run *ret);
/* cmd_open_threads() of cmd_trace_path(). */
int cmd_open_operand(struct cmd *c, struct report_run *ret);
void cmd_close(struct cmd *c, struct report_run *run);

/* What was found in a trace, in the form that was asked for. Between _begin and _end its caller
 * fills `text` or `json`, as `as` says. */
struct cmd_answer {
	enum { CMD_AS_NOTHING, CMD_AS_TEXT, CMD_AS_JSON } as; /* nothing: status is no success */
	enum base_status status;                              /* of the analysis */
	struct report_style style;
	struct base_str text;
	json_t *json; /* _end takes it over */
};
/* The value of an option that says what is meant by its name, or by its number in the report, "#2";
 * *ret is NULL where it was not given. `keep` holds it. Failures are the answer's. */
enum base_status cmd_pattern(struct cmd *c, const struct report_run *run, const char *option,
	struct base_str *keep, const char **ret);
struct cmd_answer cmd_answer_begin(const struct cmd *c, enum base_status s);
/* The same for a section. */
void cmd_answer_set(const struct cmd *c, struct cmd_answer *a, enum base_status s);
/* Writes it, or says what failed, and closes the trace. The exit status. */
int cmd_answer_end(struct cmd *c, struct cmd_answer *a, struct report_run *run);
/* Reads a file of at most limit bytes; NULL: a message was printed. base_free() it. */
char *cmd_read_file(struct cmd *c, const char *path, size_t limit_bytes);

/* A picture of a graph in the DOT language, by graphviz's dot; format as dot names it. Added to
 * ret. */
enum base_status cmd_layout(const struct base_str *dot, const char *format, struct base_str *ret,
	struct base_err *err) BASE_MUST_CHECK;

/* Writes a finished text into a file, which appears whole or not at all; or into a pipe or device.
 * CMD_OK, or an exit status after a message; the text stays the caller's, as it was written
 * (base_shown). What is no text is written as it is by cmd_write_file_bytes(). */
int cmd_write_file(struct cmd *c, struct base_str *text, const char *path);
int cmd_write_file_bytes(struct cmd *c, const struct base_str *bytes, const char *path);
/* False: there is a device, a pipe or the like (also /dev/stdout), which no file may replace. */
bool cmd_may_replace(const char *path);
/* The page of a trace into a file; says so on standard error. */
int cmd_html_trace(struct cmd *c, const char *trace, const char *path);

/* What `report` prints for a trace; also the second half of `longpole PROG`. */
int cmd_report_trace(struct cmd *c, const char *path);
/* Is it a trace of `longpole noc`: packets, no threads? */
bool cmd_is_packets(const char *path);
/* Such a trace's report (packets.c). */
int cmd_report_packets(struct cmd *c, const char *path);
extern const struct cmd_spec cmd_default_spec;
void cmd_help_text(
	struct base_str *out, const struct cmd_spec *spec, const struct report_style *st);
/* An option's sentence, and its choices where that does not say them. */
void cmd_add_option_doc(struct base_str *out, const struct cmd_option *o);
/* The man page, in scdoc's language; written: doc/man/PAGE.scd. False: that has no EXAMPLES. */
bool cmd_manual_page(struct base_str *out, const struct cmd_spec *spec, const char *written);
/* all: with a line for every command. */
void cmd_help_overview(struct base_str *out, const struct report_style *st, bool all);

#endif
