/* SPDX-License-Identifier: Apache-2.0 */
/*
 * directory.c - `longpole report DIR` and its like: the traces of MPI ranks in a directory are
 * joined into DIR/merged.lpt, which then is the trace. It is made anew each time, since what lies
 * there may be of another run.
 */
#include "cmd/directory.h"

#include "session/recover.h"

#include <dirent.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

#define DIRECTORY_JOINED "merged.lpt"
enum {
	FILES_BESIDE = 64, /* that are open beside the traces */
	MAPPING_BYTES = 128 << 10,
};

bool cmd_is_directory(const char *path)
{
	struct stat st;
	return !stat(path, &st) && S_ISDIR(st.st_mode);
}

/* ---- which files ----------------------------------------------------------------------------- */

/* "rank-10" comes after "rank-9". */
static int directory_order(const void *pa, const void *pb)
{
	return strverscmp(*(char *const *)pa, *(char *const *)pb);
}

/* Of a rank: it names a communicator. What cannot be read is kept, for its reader says why. */
static bool directory_is_rank(const char *path, bool *ret_merged)
{
	struct trace_reader *r;
	bool found = false;
	*ret_merged = false;
	if (trace_reader_open(path, NULL, &r, NULL) != BASE_OK)
		return true;
	const struct trace_defs *d = trace_reader_defs(r);
	*ret_merged = trace_reader_info(r)->flags & TRACE_INFO_MERGED;
	for (uint32_t i = 1; i < d->nr_objects && !found; i++)
		found = d->objects[i].type == TRACE_OBJECT_communicator;
	trace_reader_close(r);
	return found;
}

static bool directory_add(struct cmd_ranks *r, const char *directory, const char *name)
{
	struct base_str path = {0};
	base_str_addf(&path, "%s/%s", directory, name);
	if (path.failed ||
		base_grow(&r->path, &r->capacity, r->nr + 1, sizeof *r->path) != BASE_OK) {
		base_str_fini(&path);
		return false;
	}
	r->path[r->nr++] = path.buf;
	return true;
}

static bool directory_is_trace(const char *name)
{
	static const char suffix[] = ".lpt";
	size_t length = strlen(name);
	return *name != '.' && length > sizeof suffix - 1 &&
	       !strcmp(name + length - (sizeof suffix - 1), suffix);
}

struct directory_left { /* recordings whose recorders were killed: they have more to tell */
	struct session_left_recording *recording;
	size_t nr;
};

static void directory_tell_left(struct cmd *c, const struct directory_left *left, const char *path)
{
	struct stat a, b;
	for (size_t i = 0; i < left->nr; i++)
		if (left->recording[i].trace_is_there && !stat(path, &a) &&
			!stat(left->recording[i].trace_path, &b) && a.st_dev == b.st_dev &&
			a.st_ino == b.st_ino)
			cmd_warn(c,
				"%s: its recorder was killed; 'longpole recover %s' brings what it "
				"had not written yet",
				path, left->recording[i].name);
}

/* Keeps ranks, and says what else there is. */
static void directory_choose(struct cmd *c, struct cmd_ranks *r)
{
	struct directory_left left = {0};
	size_t nr = 0;
	if (session_left_list(&left.recording, &left.nr, NULL) != BASE_OK)
		left = (struct directory_left){0};
	for (size_t i = 0; i < r->nr; i++) {
		bool merged, keep = directory_is_rank(r->path[i], &merged) && !merged;
		if (!merged)
			directory_tell_left(c, &left, r->path[i]);
		if (!merged && !keep)
			cmd_warn(c, "%s is left out: no rank of MPI is in it", r->path[i]);
		if (keep)
			r->path[nr++] = r->path[i];
		else
			base_free(r->path[i]);
	}
	r->nr = nr;
	base_free(left.recording);
}

void cmd_ranks_fini(struct cmd_ranks *r)
{
	for (size_t i = 0; i < r->nr; i++)
		base_free(r->path[i]);
	base_free(r->path);
	*r = (struct cmd_ranks){0};
}

/* All are open at once. Each has room for a batch of records, of which most need little: what was
 * never written to is no memory as long as it is a mapping of its own. (glibc makes fewer of them
 * after a large block was freed.) */
static void directory_make_room(size_t nr)
{
	struct rlimit limit;
	mallopt(M_MMAP_THRESHOLD, MAPPING_BYTES);
	if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur >= nr + FILES_BESIDE)
		return;
	limit.rlim_cur = limit.rlim_max < nr + FILES_BESIDE ? limit.rlim_max : nr + FILES_BESIDE;
	setrlimit(RLIMIT_NOFILE, &limit);
}

int cmd_ranks_find(struct cmd *c, const char *directory, struct cmd_ranks *ret)
{
	const struct dirent *e;
	bool room = true;
	DIR *dir = opendir(directory);
	if (!dir)
		return cmd_usage(c, "%s: cannot be read", directory);
	while (room && (e = readdir(dir)))
		if (directory_is_trace(e->d_name))
			room = directory_add(ret, directory, e->d_name);
	closedir(dir);
	if (!room)
		return cmd_fail(c, base_fail(&c->err, BASE_ERR_NOMEM, "%s: no memory for its names",
					   directory));
	if (ret->nr)
		qsort(ret->path, ret->nr, sizeof *ret->path, directory_order);
	directory_choose(c, ret);
	directory_make_room(ret->nr);
	return ret->nr ? CMD_OK
		       : cmd_usage(c,
				 "%s: no trace of an MPI rank is in it ('mpirun -n 4 longpole "
				 "record "
				 "-o \'%s/app.%%r.lpt\' ./app' makes some)",
				 directory, directory);
}

/* ---- one trace of them ----------------------------------------------------------------------- */

static int directory_join_ranks(
	struct cmd *c, const char *directory, const struct cmd_ranks *ranks, const char *output)
{
	struct merge_result *result = base_alloc(sizeof *result);
	struct base_arena *names = NULL;
	struct base_str error = {0};
	if (!result)
		return cmd_fail(c, base_fail(&c->err, BASE_ERR_NOMEM, "out of memory"));
	cmd_progress_reset(c);
	int exit_status =
		cmd_merge_into(c, &(struct cmd_join){.input = (const char *const *)ranks->path,
					  .nr = ranks->nr,
					  .output = output,
					  .one_job = true,
					  .result = result,
					  .names = &names});
	if (exit_status == CMD_OK) {
		base_str_add_ns(&error, result->error_ns);
		cmd_note(c, "joined %zu {trace|traces} of %s in %s (clock error at most %s)",
			ranks->nr, directory, output, base_str_text(&error));
	}
	base_str_fini(&error);
	base_arena_free(names);
	base_free(result);
	return exit_status;
}

/* The one trace is itself. */
int cmd_join_directory(struct cmd *c, struct base_str *keep)
{
	struct cmd_ranks ranks = {0};
	char *directory = c->nr_operands ? c->operand[0] : NULL;
	if (!(c->spec->flags & CMD_READS_TRACE) || !directory || !cmd_is_directory(directory))
		return CMD_OK;
	int exit_status = cmd_ranks_find(c, directory, &ranks);
	if (exit_status == CMD_OK && ranks.nr == 1)
		base_str_add(keep, ranks.path[0]);
	else if (exit_status == CMD_OK)
		base_str_addf(keep, "%s/" DIRECTORY_JOINED, directory);
	if (exit_status == CMD_OK && keep->failed)
		exit_status = cmd_fail(c, base_fail(&c->err, BASE_ERR_NOMEM, "out of memory"));
	if (exit_status == CMD_OK && ranks.nr > 1)
		exit_status = directory_join_ranks(c, directory, &ranks, keep->buf);
	if (exit_status == CMD_OK)
		c->operand[0] = keep->buf;
	cmd_ranks_fini(&ranks);
	return exit_status;
}
