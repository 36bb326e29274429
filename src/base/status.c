/* SPDX-License-Identifier: Apache-2.0 */
/* status.c - the table of statuses, the caller-owned error, assertions. */
#include "base/base.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct status_row {
	enum base_status status;
	const char *name, *line, *advice;
};

static const struct status_row rows[] = {
#define STATUS(name, number, line, advice) {BASE_##name, #name, line, advice},
#include "base/status.def"
};

static const struct status_row *status_find_row(enum base_status s)
{
	static const struct status_row unknown = {BASE_OK, "UNKNOWN", "unknown status", ""};

	for (size_t i = 0; i < BASE_COUNT(rows); i++) {
		if (rows[i].status == s)
			return &rows[i];
	}
	return &unknown;
}

const char *base_status_name(enum base_status s)
{
	return status_find_row(s)->name;
}

const char *base_status_line(enum base_status s)
{
	return status_find_row(s)->line;
}

const char *base_status_advice(enum base_status s)
{
	return status_find_row(s)->advice;
}

/* Ends `text` with "...", over its last characters when there is no room behind them. */
static void mark_cut(char text[BASE_ERR_TEXT_MAX])
{
	static const char mark[] = "...";
	size_t at = strlen(text);

	if (at >= sizeof mark - 1 && !strcmp(text + at - (sizeof mark - 1), mark))
		return;
	if (at > BASE_ERR_TEXT_MAX - sizeof mark)
		at = BASE_ERR_TEXT_MAX - sizeof mark;
	memcpy(text + at, mark, sizeof mark);
}

static void append_errno(char text[BASE_ERR_TEXT_MAX], int sys_errno)
{
	char buf[128];
	const char *why = strerror_r(sys_errno, buf, sizeof buf);
	size_t at = strlen(text);
	int n = snprintf(text + at, BASE_ERR_TEXT_MAX - at, ": %s", why);

	if (n < 0 || (size_t)n >= BASE_ERR_TEXT_MAX - at)
		mark_cut(text);
}

static void status_start(struct base_err *err, enum base_status s, int sys_errno)
{
	err->status = s;
	err->sys_errno = sys_errno;
	err->nr_causes = 0;
}

/* Callers may pass an old cause as an argument: never format into the error itself. */
static void push_cause(struct base_err *err, const char *fmt, va_list ap)
{
	char text[BASE_ERR_TEXT_MAX];
	int n = base_vformat(text, sizeof text, fmt, ap);

	if (n < 0)
		memcpy(text, "...", sizeof "...");
	else if (n >= BASE_ERR_TEXT_MAX)
		mark_cut(text);
	if (err->nr_causes >= BASE_ERR_CAUSES_MAX)
		mark_cut(err->cause[BASE_ERR_CAUSES_MAX - 1]);
	else
		memcpy(err->cause[err->nr_causes++], text, BASE_ERR_TEXT_MAX);
}

enum base_status base_fail(struct base_err *err, enum base_status s, const char *fmt, ...)
{
	va_list ap;

	if (!err)
		return s;
	status_start(err, s, 0);
	va_start(ap, fmt);
	push_cause(err, fmt, ap);
	va_end(ap);
	return s;
}

const struct base_refusal *base_refusal_of(int sys_errno)
{
	static const struct base_refusal refusals[] = {
#define REFUSAL(sys_errno, status, cause, advice) {sys_errno, BASE_ERR_##status, cause, advice},
#include "base/refusal.def"
	};

	for (size_t i = 0; i < BASE_COUNT(refusals); i++) {
		if (refusals[i].sys_errno == sys_errno)
			return &refusals[i];
	}
	return NULL;
}

enum base_status base_fail_errno(struct base_err *err, int sys_errno, const char *fmt, ...)
{
	const struct base_refusal *refusal = base_refusal_of(sys_errno);
	enum base_status s = refusal ? refusal->status : BASE_ERR_IO;
	va_list ap;

	if (!err)
		return s;
	status_start(err, s, sys_errno);
	va_start(ap, fmt);
	push_cause(err, fmt, ap);
	va_end(ap);
	append_errno(err->cause[0], sys_errno);
	return s;
}

enum base_status base_cause(struct base_err *err, enum base_status s, const char *fmt, ...)
{
	va_list ap;

	if (!err)
		return s;
	/* A callee that takes no error (base_grow) leaves ours empty: this cause is then the first.
	 */
	if (err->status == BASE_OK)
		status_start(err, s, 0);
	va_start(ap, fmt);
	push_cause(err, fmt, ap);
	va_end(ap);
	return err->status;
}

_Noreturn void base_assert_failed(const char *cond, const char *file, int line)
{
	char text[512];
	int n = snprintf(text, sizeof text,
		"longpole: broken promise at %s:%d: %s\nThis is a bug in longpole; please report "
		"this line.\n",
		file, line, cond);
	size_t length = n < 0 ? 0 : (size_t)n < sizeof text ? (size_t)n : sizeof text - 1;

	/* write(2): stdio may be what is broken. Nothing can be done when this fails too. */
	if (write(STDERR_FILENO, text, length) < 0)
		abort();
	abort();
}
