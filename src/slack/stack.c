/* SPDX-License-Identifier: Apache-2.0 */
/* stack.c - see stack.h. */
#include "slack/stack.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void slack_stack_init(struct slack_stack *s, size_t record_bytes, struct slack_budget *budget)
{
	*s = (struct slack_stack){.budget = budget,
		.record_bytes = record_bytes,
		.per_segment = SLACK_STACK_SEGMENT_BYTES / record_bytes,
		.file = -1};
}

static void drop_top(struct slack_stack *s)
{
	char **top = &s->segment[--s->nr_segments];
	if (*top)
		s->budget->left_bytes += SLACK_STACK_SEGMENT_BYTES;
	base_free(*top);
	*top = NULL;
	if (s->lowest > s->nr_segments)
		s->lowest = s->nr_segments;
}

void slack_stack_fini(struct slack_stack *s)
{
	while (s->nr_segments)
		drop_top(s);
	base_free(s->segment);
	if (s->file >= 0)
		close(s->file);
	s->segment = NULL;
	s->file = -1;
}

static enum base_status stack_open_file(struct slack_stack *s, struct base_err *err)
{
	const char *directory = getenv("TMPDIR");
	if (!directory || !*directory)
		directory = "/tmp";
	s->file = open(directory, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (s->file >= 0)
		return BASE_OK;
	int why = errno;
	struct base_str path = {0};
	base_str_addf(&path, "%s/longpole-slack-XXXXXX", directory);
	if (!path.failed) {
		s->file = mkostemp(path.buf, O_CLOEXEC);
		why = s->file < 0 ? errno : 0;
		if (s->file >= 0)
			(void)unlink(path.buf);
	}
	base_str_fini(&path);
	return s->file >= 0 ? BASE_OK
			    : base_fail_errno(err, why ? why : EIO,
				      "no temporary file in %s for kept edges", directory);
}

static enum base_status stack_move_bytes(
	struct slack_stack *s, size_t n, char *segment, bool out, struct base_err *err)
{
	size_t done = 0;
	off_t at = (off_t)n * SLACK_STACK_SEGMENT_BYTES;
	while (done < SLACK_STACK_SEGMENT_BYTES) {
		size_t left = SLACK_STACK_SEGMENT_BYTES - done;
		ssize_t moved = out ? pwrite(s->file, segment + done, left, at + (off_t)done)
				    : pread(s->file, segment + done, left, at + (off_t)done);
		if (moved < 0 && errno == EINTR)
			continue;
		if (moved <= 0)
			return base_fail_errno(
				err, moved ? errno : EIO, "the temporary file of kept edges");
		done += (size_t)moved;
	}
	return BASE_OK;
}

/* Makes room by writing the lowest segment that is in memory. */
static enum base_status spill(struct slack_stack *s, struct base_err *err)
{
	enum base_status status = s->file < 0 ? stack_open_file(s, err) : BASE_OK;
	if (status == BASE_OK)
		status = stack_move_bytes(s, s->lowest, s->segment[s->lowest], true, err);
	if (status != BASE_OK)
		return status;
	base_free(s->segment[s->lowest]);
	s->segment[s->lowest++] = NULL;
	s->budget->left_bytes += SLACK_STACK_SEGMENT_BYTES;
	s->budget->spilled_bytes += SLACK_STACK_SEGMENT_BYTES;
	return BASE_OK;
}

static enum base_status stack_add_segment(struct slack_stack *s, struct base_err *err)
{
	enum base_status status = BASE_OK;
	if (s->budget->left_bytes < SLACK_STACK_SEGMENT_BYTES && s->nr_segments > s->lowest)
		status = spill(s, err);
	if (status == BASE_OK)
		status = base_grow(
			&s->segment, &s->capacity, s->nr_segments + 1, sizeof *s->segment);
	char *segment = status == BASE_OK ? base_alloc(SLACK_STACK_SEGMENT_BYTES) : NULL;
	if (!segment)
		return status == BASE_OK || status == BASE_ERR_NOMEM
			       ? base_fail(err, BASE_ERR_NOMEM, "no memory for kept edges")
			       : status;
	s->segment[s->nr_segments++] = segment;
	s->budget->left_bytes -= s->budget->left_bytes < SLACK_STACK_SEGMENT_BYTES
					 ? s->budget->left_bytes
					 : SLACK_STACK_SEGMENT_BYTES;
	return BASE_OK;
}

enum base_status slack_stack_push(struct slack_stack *s, const void *record, struct base_err *err)
{
	size_t at = (size_t)(s->nr % s->per_segment);
	if (!at && s->nr / s->per_segment == s->nr_segments) {
		enum base_status status = stack_add_segment(s, err);
		if (status != BASE_OK)
			return status;
	}
	memcpy(s->segment[s->nr_segments - 1] + at * s->record_bytes, record, s->record_bytes);
	s->nr++;
	return BASE_OK;
}

static enum base_status bring_back(struct slack_stack *s, struct base_err *err)
{
	char *segment = base_alloc(SLACK_STACK_SEGMENT_BYTES);
	if (!segment)
		return base_fail(err, BASE_ERR_NOMEM, "no memory for kept edges");
	enum base_status status = stack_move_bytes(s, s->nr_segments - 1, segment, false, err);
	if (status != BASE_OK) {
		base_free(segment);
		return status;
	}
	s->segment[s->nr_segments - 1] = segment;
	s->lowest = s->nr_segments - 1;
	s->budget->left_bytes -= s->budget->left_bytes < SLACK_STACK_SEGMENT_BYTES
					 ? s->budget->left_bytes
					 : SLACK_STACK_SEGMENT_BYTES;
	return BASE_OK;
}

enum base_status slack_stack_pop(struct slack_stack *s, void *record, struct base_err *err)
{
	if (!s->nr)
		return BASE_END;
	while (s->nr_segments > (size_t)((s->nr - 1) / s->per_segment) + 1)
		drop_top(s);
	if (!s->segment[s->nr_segments - 1]) {
		enum base_status status = bring_back(s, err);
		if (status != BASE_OK)
			return status;
	}
	s->nr--;
	memcpy(record, s->segment[s->nr_segments - 1] + (s->nr % s->per_segment) * s->record_bytes,
		s->record_bytes);
	return BASE_OK;
}
