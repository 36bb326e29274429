/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_cc.c - `longpole cc`, `longpole c++` (cxx), `longpole fortran`: the compiler, with our
 * assembler and our runtime library. The compiler does everything else itself, so every option
 * works.
 */
#include "base/installed.h"
#include "cmd/cmd.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { EXTRA_ARGUMENTS = 32, NOT_FOUND = 127, NOT_EXECUTABLE = 126 };

#define ABOUT                                                                                      \
	"Runs the compiler with all the arguments, but lets it find longpole's assembler, "        \
	"which puts recording code into the program, and links longpole's runtime "                \
	"library. `longpole record --level 3` records such a program; without it the "             \
	"program runs a little slower. LONGPOLE_CC_LEVEL=2 leaves out blocks that access "         \
	"no memory; LONGPOLE_CC_VERBOSE=1 says what was done. With --recorder=tsan as the "        \
	"first argument the compiler itself calls the runtime library before each access "         \
	"(ThreadSanitizer's interface): a fallback, for level 2. "

/* For help and completion: arguments are the compiler's, and looked at here. */
static const struct cmd_option own_option[] = {
	{"recorder", 0, "NAME", "rewrite tsan",
		"as the first argument: who calls the recorder, the assembler's work or the "
		"compiler"},
};

const struct cmd_details cmd_details_cc = {
	.usage = "COMPILER-ARGUMENT...",
	.about = ABOUT "The compiler is $LONGPOLE_CC, or gcc; clang works as well.",
	.option = own_option,
	.nr_options = BASE_COUNT(own_option),
	.example = {"longpole cc -O2 -g -o prog prog.c -lpthread", "make CC='longpole cc'",
		"LONGPOLE_CC=clang longpole cc -O2 -c part.c"},
};
const struct cmd_details cmd_details_cxx = {
	.usage = "COMPILER-ARGUMENT...",
	.about = ABOUT "The compiler is $LONGPOLE_CXX, or g++. `longpole c++` is the same.",
	.option = own_option,
	.nr_options = BASE_COUNT(own_option),
	.example = {"longpole c++ -O2 -o prog prog.cc", "cmake -DCMAKE_CXX_COMPILER=g++ -B build",
		"make CXX='longpole c++'"},
};
const struct cmd_details cmd_details_fortran = {
	.usage = "COMPILER-ARGUMENT...",
	.about = ABOUT "The compiler is $LONGPOLE_FC, or gfortran.",
	.option = own_option,
	.nr_options = BASE_COUNT(own_option),
	.example = {"longpole fortran -O2 -fopenmp -o prog prog.f90"},
};

struct link {
	bool pic, shared, static_pie, relocatable, no_link;
};

static bool is(const char *arg, const char *option)
{
	return !strcmp(arg, option);
}

/* The last one counts. */
static struct link cmd_cc_look(char **argv, size_t nr)
{
	struct link l = {0};
	for (size_t i = 0; i < nr; i++) {
		const char *a = argv[i];
		if (is(a, "-fPIC") || is(a, "-fpic"))
			l.pic = true;
		else if (is(a, "-fPIE") || is(a, "-fpie") || is(a, "-fno-pic") ||
			 is(a, "-fno-PIC") || is(a, "-fno-pie") || is(a, "-fno-PIE"))
			l.pic = false;
		else if (is(a, "-shared"))
			l.shared = true;
		else if (is(a, "-static-pie"))
			l.static_pie = true;
		else if (is(a, "-r"))
			l.relocatable = true;
		else if (is(a, "-c") || is(a, "-S") || is(a, "-E") || is(a, "-M") || is(a, "-MM") ||
			 is(a, "-fsyntax-only") || !strncmp(a, "--print", 7) ||
			 !strncmp(a, "-print", 6) || is(a, "--version") || is(a, "-dumpversion") ||
			 is(a, "-dumpmachine") || is(a, "--help"))
			l.no_link = true;
	}
	return l;
}

struct arguments {
	char **argv;
	size_t nr;
	struct base_str text[EXTRA_ARGUMENTS];
	size_t nr_texts;
};

static void cmd_cc_add(struct arguments *a, const char *fmt, const char *value)
{
	struct base_str *s = &a->text[a->nr_texts++];
	base_str_addf(s, "%s%s", fmt, value);
	a->argv[a->nr++] = s->buf;
}

/* The compiler makes the calls of ThreadSanitizer's interface, but does not link its library. */
static bool tsan_arguments(struct cmd *c, struct arguments *a, bool clang)
{
	/* Without these gcc makes small copies of its own, which nobody calls for. */
	static const char *const copies[] = {
		"-fno-builtin-memcpy", "-fno-builtin-memmove", "-fno-builtin-memset"};
	char specs[PATH_MAX];
	if (clang) {
		cmd_cc_add(a, "-Xclang", "");
		cmd_cc_add(a, "-fsanitize=thread", "");
		cmd_cc_add(
			a, "-mllvm", ""); /* else a load before a store of the same is left out */
		cmd_cc_add(a, "-tsan-instrument-read-before-write", "");
		return true;
	}
	if (!base_installed_file("src/target", "tsan.specs", specs)) {
		cmd_usage(c, "cannot find target/tsan.specs: neither beside longpole nor as %s",
			specs);
		return false;
	}
	cmd_cc_add(a, "-specs=", specs);
	for (size_t i = 0; i < BASE_COUNT(copies); i++)
		cmd_cc_add(a, copies[i], "");
	return true;
}

static bool is_clang(const char *compiler)
{
	const char *slash = strrchr(compiler, '/');
	return strstr(slash ? slash + 1 : compiler, "clang") != NULL;
}

static bool compiler_arguments(struct cmd *c, struct arguments *a, const char *compiler, bool tsan)
{
	char as[PATH_MAX];
	bool clang = is_clang(compiler);
	if (!base_installed_file("src/cmd", "as/as", as)) {
		cmd_usage(c, "cannot find longpole's assembler: neither beside longpole nor as %s",
			as);
		return false;
	}
	as[strlen(as) - strlen("as")] = 0;
	cmd_cc_add(a, "-B", as);
	if (clang) {
		cmd_cc_add(a, "-fno-integrated-as", "");
		cmd_cc_add(a, "-Wno-unused-command-line-argument", "");
	} else if (!tsan) {
		cmd_cc_add(a, "-ffixed-r10", "");
		cmd_cc_add(a, "-ffixed-r11", "");
	}
	return !tsan || tsan_arguments(c, a, clang);
}

static bool link_arguments(struct cmd *c, struct arguments *a, const struct link *l, bool tsan)
{
	static const char *const name[] = {"liblongpole-memory-module.a",
		"liblongpole-memory-calls.a", "liblongpole-memory-tsan.a", "liblongpole-memory.a"};
	enum { MODULE, CALLS, TSAN, MEMORY };
	char path[BASE_COUNT(name)][PATH_MAX];
	for (size_t i = 0; i < BASE_COUNT(name); i++)
		if (!base_installed_file("src/target", name[i], path[i])) {
			cmd_usage(c, "cannot find %s: neither beside longpole nor as %s", name[i],
				path[i]);
			return false;
		}
	/* (paths by themselves: -Wl, takes them apart at commas) */
	cmd_cc_add(a, "-Wl,--whole-archive", "");
	cmd_cc_add(a, "", path[MODULE]);
	cmd_cc_add(a, "-Wl,--no-whole-archive", "");
	cmd_cc_add(a, "", path[CALLS]);
	if (l->shared) {
		/* The program has the runtime library; -Wl,-z,defs is not meant against it. */
		cmd_cc_add(a, "-Wl,--unresolved-symbols=ignore-all", "");
	} else {
		if (tsan) {
			cmd_cc_add(a, "-Wl,--whole-archive", "");
			cmd_cc_add(a, "", path[TSAN]);
			cmd_cc_add(a, "-Wl,--no-whole-archive", "");
		}
		cmd_cc_add(a, "", path[MEMORY]);
		/* For modules; glibc 2.36's -static-pie, without any, relocates thread data that is
		 * exported before it has room for it. */
		if (!l->static_pie)
			cmd_cc_add(a, "-Wl,--export-dynamic-symbol=longpole_memory*,",
				"--export-dynamic-symbol=longpole_target_*");
		if (tsan && !l->static_pie)
			cmd_cc_add(a, "-Wl,--export-dynamic-symbol=__tsan_*", "");
	}
	return true;
}

static int cmd_cc_run(struct cmd *c, const char *variable, const char *otherwise)
{
	const char *given = getenv(variable), *compiler = given && *given ? given : otherwise;
	struct arguments a = {0};
	if (!c->nr_operands)
		return cmd_usage(c, "no argument for the compiler given");
	struct link l = cmd_cc_look(c->operand, c->nr_operands);
	static const char option[] = "--recorder=";
	const char *chosen = getenv("LONGPOLE_CC_RECORDER");
	size_t first = !strncmp(c->operand[0], option, sizeof option - 1);
	if (first)
		chosen = c->operand[0] + sizeof option - 1;
	bool tsan = chosen && is(chosen, "tsan");
	if (chosen && *chosen && !tsan && !is(chosen, "rewrite"))
		return cmd_usage(c, "'%s' is no recorder: rewrite or tsan", chosen);
	a.argv = base_alloc((c->nr_operands + EXTRA_ARGUMENTS + 2) * sizeof *a.argv);
	if (!a.argv)
		return cmd_fail(c, base_fail(&c->err, BASE_ERR_NOMEM, "no memory for arguments"));
	a.argv[a.nr++] = (char *)compiler;
	int status = CMD_ENVIRONMENT;
	if (!compiler_arguments(c, &a, compiler, tsan))
		goto done;
	for (size_t i = first; i < c->nr_operands; i++)
		a.argv[a.nr++] = c->operand[i];
	if (is_clang(compiler) && !tsan) /* its linker would assemble by itself */
		cmd_cc_add(&a, "-fno-lto", "");
	if (!l.no_link && !l.relocatable && !link_arguments(c, &a, &l, tsan))
		goto done;
	bool good = true;
	for (size_t i = 0; i < a.nr_texts; i++)
		good = good && !a.text[i].failed;
	if (good)
		good = !setenv("LONGPOLE_CC_PIC", l.pic ? "1" : "0", 1) &&
		       !setenv("LONGPOLE_CC_RECORDER", tsan ? "tsan" : "rewrite", 1);
	if (!good) {
		status = cmd_fail(c, base_fail(&c->err, BASE_ERR_NOMEM, "no memory for arguments"));
		goto done;
	}
	execvp(compiler, a.argv);
	status = errno == ENOENT ? NOT_FOUND : NOT_EXECUTABLE;
	(void)cmd_fail(
		c, base_fail_errno(&c->err, errno, "cannot run the compiler, '%s'", compiler));
done:
	for (size_t i = 0; i < a.nr_texts; i++)
		base_str_fini(&a.text[i]);
	base_free(a.argv);
	return status;
}

int cmd_run_cc(struct cmd *c)
{
	return cmd_cc_run(c, "LONGPOLE_CC", "gcc");
}

int cmd_run_cxx(struct cmd *c)
{
	return cmd_cc_run(c, "LONGPOLE_CXX", "g++");
}

int cmd_run_fortran(struct cmd *c)
{
	return cmd_cc_run(c, "LONGPOLE_FC", "gfortran");
}
