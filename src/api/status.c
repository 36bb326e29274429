/* SPDX-License-Identifier: Apache-2.0 */
/* status.c - statuses, errors and sizes of the public headers. */
#include "api/api.h"

#include "config.h"

#include <string.h>

/* What the numbers of base/status.def are called outside; one that is not here does not compile. */
enum {
	PUBLIC_OK = LONGPOLE_STATUS_OK,
	PUBLIC_END = LONGPOLE_STATUS_END,
#define PUBLIC(name) PUBLIC_ERR_##name = LONGPOLE_STATUS_##name
	PUBLIC(NOMEM),
	PUBLIC(LIMIT),
	PUBLIC(IO),
	PUBLIC(CORRUPT),
	PUBLIC(TRUNCATED),
	PUBLIC(VERSION),
	PUBLIC(FORMAT),
	PUBLIC(USAGE),
	PUBLIC(ENV),
	PUBLIC(NOTFOUND),
	PUBLIC(FOREIGN),
	PUBLIC(CLOCK),
	PUBLIC(LACKS),
};
#define STATUS(name, number, line, advice)                                                         \
	_Static_assert((int)PUBLIC_##name == (number), "trace.h: LONGPOLE_STATUS of " #name);
#include "base/status.def"

_Static_assert(LONGPOLE_ERROR_TEXT_BYTES > BASE_ERR_CAUSES_MAX * BASE_ERR_TEXT_MAX,
	"all causes fit into a longpole_error");

const char *longpole_version(void)
{
	return LONGPOLE_VERSION;
}

const char *longpole_status_text(int status)
{
	/* (of the command line, for which the table is, it is said otherwise) */
	if (status == LONGPOLE_STATUS_USAGE)
		return "an argument is wrong";
	return base_status_line((enum base_status)status);
}

static size_t api_size_of(const void *any)
{
	size_t size;
	memcpy(&size, any, sizeof size);
	return size;
}

bool api_take(void *ours, size_t size_bytes, const void *theirs)
{
	static const char zeros[64];
	memset(ours, 0, size_bytes);
	if (!theirs)
		return true;
	size_t size = api_size_of(theirs), common = size < size_bytes ? size : size_bytes;
	if (size < sizeof size)
		return false;
	for (size_t at = size_bytes, n; at < size; at += n) {
		n = size - at < sizeof zeros ? size - at : sizeof zeros;
		if (memcmp((const char *)theirs + at, zeros, n) != 0)
			return false;
	}
	memcpy(ours, theirs, common);
	return true;
}

bool api_give(void *theirs, const void *ours, size_t size_bytes)
{
	size_t size = theirs ? api_size_of(theirs) : 0;
	if (size < sizeof size)
		return false;
	memset((char *)theirs + sizeof size, 0, size - sizeof size);
	memcpy((char *)theirs + sizeof size, (const char *)ours + sizeof size,
		(size < size_bytes ? size : size_bytes) - sizeof size);
	return true;
}

static void api_add_text(char *text, size_t room, size_t *at, const char *add)
{
	size_t length = strlen(add), left = room - 1 - *at;
	memcpy(text + *at, add, length < left ? length : left);
	*at += length < left ? length : left;
	text[*at] = 0;
}

int api_finish(struct longpole_error *to, enum base_status s, const struct base_err *err)
{
	bool failed = s < 0;
	size_t header = offsetof(struct longpole_error, text), at = 0;
	unsigned nr = failed && err ? err->nr_causes : 0;
	if (!to || to->size < header)
		return (int)s;
	to->status = (int32_t)s;
	to->sys_errno = failed && err ? err->sys_errno : 0;
	if (to->size == header)
		return (int)s;
	size_t room = to->size - header;
	to->text[0] = 0;
	for (unsigned i = 0; i < nr; i++) {
		api_add_text(to->text, room, &at, i ? "\n" : "");
		api_add_text(to->text, room, &at, err->cause[i]);
	}
	if (failed && !nr)
		api_add_text(to->text, room, &at, longpole_status_text((int)s));
	return (int)s;
}

int api_refuse(struct longpole_error *to, const char *why)
{
	struct base_err err;
	return api_finish(to, base_fail(&err, BASE_ERR_USAGE, "%s", why), &err);
}

locale_t api_locale_begin(void)
{
	return uselocale(newlocale(LC_ALL_MASK, "C", (locale_t)0));
}

void api_locale_end(locale_t before)
{
	freelocale(uselocale(before));
}
