/* SPDX-License-Identifier: Apache-2.0 */
/* gen_states_doc.c - writes the source of the manual page longpole-states(7) from the table of
 * causes, so that it has every state and says what the code does. */
#include "model/model.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

static const struct {
	const char *lead, *phrase, *sentence;
	enum model_state_kind kind;
} cause[] = {
#define STATE(name, kind, lead, phrase, sentence) {lead, phrase, sentence, MODEL_STATE_##kind},
#include "model/states.def"
#undef STATE
};

static const struct {
	const char *name, *text;
	bool waits;
} kind[] = {
#define X(name, waits, text) {#name, text, waits},
	MODEL_STATE_KINDS(X)
#undef X
};

/* A text as scdoc takes it: arguments in italics. */
static void print_text(const char *text)
{
	bool in_argument = false;
	for (; *text; text++) {
		bool brace = *text == '{' || *text == '}';
		in_argument ^= brace;
		if (!in_argument && strchr("[]*<>_", *text))
			putchar('\\');
		putchar(brace ? '_' : *text == '_' && in_argument ? ' ' : *text);
	}
}

static void print_kind(unsigned k)
{
	printf("\n# ");
	for (const char *c = kind[k].text; *c; c++)
		putchar(toupper((unsigned char)*c));
	printf("\n\nKind _%s_%s.\n\n", kind[k].name,
		kind[k].waits ? ", without executing: it counts as waiting" : "");
	for (size_t i = 0; i < BASE_COUNT(cause); i++) {
		if (cause[i].kind != (enum model_state_kind)k)
			continue;
		print_text(cause[i].lead);
		print_text(cause[i].phrase);
		printf("\n\t%c", toupper((unsigned char)cause[i].sentence[0]));
		print_text(cause[i].sentence + 1);
		printf(".\n");
	}
}

int main(void)
{
	printf("longpole-states(7)\n"
	       "\n"
	       "# NAME\n"
	       "\n"
	       "longpole-states - what a thread, a state machine or a device can be in\n"
	       "\n"
	       "# DESCRIPTION\n"
	       "\n"
	       "At any time a thread, an annotated state machine or a device is in one state. "
	       "*longpole-report*(1) and the other commands call it by these names. What is in "
	       "_italics_ stands for what the state is about; what is in brackets is there if it "
	       "is known. Documents of *--json* have the kind of each state.\n");
	for (unsigned k = 0; k < MODEL_STATE_NR; k++)
		print_kind(k);
	printf("\n# SEE ALSO\n\n*longpole*(1), *longpole-report*(1), *longpole-path*(1)\n");
	return 0;
}
