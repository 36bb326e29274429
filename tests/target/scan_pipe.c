/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scan_pipe scanf|fgetws|fgetwc - reads numbers, one a line, that a child makes, one each 2 ms: the
 * reader waits for each. Known answer: what is read is what was written, LINES lines.
 */
#include <locale.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <wchar.h>

enum { LINES = 50, PAUSE_US = 2000 };

static int make(int to)
{
	for (int i = 0; i < LINES; i++) {
		char line[32];
		int n = snprintf(line, sizeof line, "%d\n", 1000 * i);
		usleep(PAUSE_US);
		if (write(to, line, (size_t)n) != n)
			return 1;
	}
	return 0;
}

static int by_scanf(FILE *in)
{
	int number, nr = 0;
	while (fscanf(in, "%d", &number) == 1)
		nr++;
	return nr;
}

static int by_fgetws(FILE *in)
{
	wchar_t line[32];
	int nr = 0;
	while (fgetws(line, 32, in))
		nr++;
	return nr;
}

static int by_fgetwc(FILE *in)
{
	wint_t c;
	int nr = 0;
	while ((c = fgetwc(in)) != WEOF)
		nr += c == L'\n';
	return nr;
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		int (*read)(FILE *in);
	} ways[] = {{"scanf", by_scanf}, {"fgetws", by_fgetws}, {"fgetwc", by_fgetwc}};
	int end[2], status = 1, nr = 0;
	setlocale(LC_ALL, "C.UTF-8");
	if (argc != 2 || pipe(end))
		return 1;
	pid_t child = fork();
	if (child < 0)
		return 1;
	if (!child) {
		close(end[0]);
		_exit(make(end[1]));
	}
	close(end[1]);
	FILE *in = fdopen(end[0], "r");
	for (unsigned i = 0; in && i < sizeof ways / sizeof *ways; i++)
		if (!strcmp(argv[1], ways[i].name))
			nr = ways[i].read(in);
	if (waitpid(child, &status, 0) != child || status || nr != LINES)
		return 1;
	return 0;
}
