/* SPDX-License-Identifier: Apache-2.0 */
/* sweep_local.c - simulations in processes of this machine. */
#include "cmd/sweep/sweep.h"
#include "noc/network/sim.h"

#include <errno.h>
#include <math.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WORKERS_MAX = 1024 };

const char *const sweep_value_names[SWEEP_VALUES_NR] = {
#define SWEEP_VALUE(column, latency, saturation) #column,
#include "cmd/sweep/sweep_values.def"
};

/* What the simulator does not know is less than 0. */
static double sweep_known(double x)
{
	return x < 0 ? NAN : x;
}

/* ---- one simulation -------------------------------------------------------------------------- */

static enum base_status sweep_local_measure(
	const struct sweep_point *p, struct sweep_answer *ret, struct base_err *err)
{
	struct noc_result result;
	const struct noc_result *r = &result;
	enum base_status status = noc_simulate(&p->config, &result, NULL, NULL, err);
	if (status == BASE_OK) {
#define SWEEP_VALUE(column, latency, saturation) ret->value[SWEEP_##column] = (latency);
#include "cmd/sweep/sweep_values.def"
	}
	noc_result_fini(&result);
	return status;
}

static enum base_status sweep_local_search(
	const struct sweep_point *p, struct sweep_answer *ret, struct base_err *err)
{
	struct noc_saturation found;
	const struct noc_saturation *s = &found;
	enum base_status status = noc_saturation(&p->config, &found, NULL, NULL, err);
	if (status == BASE_OK) {
#define SWEEP_VALUE(column, latency, saturation) ret->value[SWEEP_##column] = (saturation);
#include "cmd/sweep/sweep_values.def"
	}
	return status;
}

void sweep_simulate(const struct sweep_spec *s, uint32_t point, struct sweep_answer *ret)
{
	struct base_err err = {0};
	const struct sweep_point *p = &s->point[point];
	*ret = (struct sweep_answer){.point = point};
	ret->status = p->saturation ? sweep_local_search(p, ret, &err)
				    : sweep_local_measure(p, ret, &err);
	if (ret->status != BASE_OK)
		snprintf(ret->error, sizeof ret->error, "%s", err.cause[0]);
}

/* ---- workers --------------------------------------------------------------------------------- */

struct worker {
	pid_t pid;
	int to, from; /* pipes: point numbers, answers */
};

static bool sweep_local_write_all(int fd, const void *p, size_t size)
{
	for (size_t done = 0; done < size;) {
		ssize_t n = write(fd, (const char *)p + done, size - done);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		done += (size_t)n;
	}
	return true;
}

static bool sweep_local_read_all(int fd, void *p, size_t size)
{
	for (size_t done = 0; done < size;) {
		ssize_t n = read(fd, (char *)p + done, size - done);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		done += (size_t)n;
	}
	return true;
}

static _Noreturn void sweep_local_work(const struct sweep_spec *s, int from, int to)
{
	uint32_t point;
	struct sweep_answer a;
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	while (sweep_local_read_all(from, &point, sizeof point)) {
		sweep_simulate(s, point, &a);
		if (!sweep_local_write_all(to, &a, sizeof a))
			break;
	}
	_exit(0);
}

static enum base_status sweep_local_start(
	struct worker *list, unsigned nr, const struct sweep_spec *s, struct base_err *err)
{
	struct worker *w = &list[nr];
	int to[2], from[2];
	*w = (struct worker){.pid = -1, .to = -1, .from = -1};
	if (pipe2(to, O_CLOEXEC))
		return base_fail_errno(err, errno, "pipe");
	if (pipe2(from, O_CLOEXEC)) {
		close(to[0]);
		close(to[1]);
		return base_fail_errno(err, errno, "pipe");
	}
	w->pid = fork();
	if (!w->pid) {
		/* Ends of others' pipes that stay open would keep them from seeing the end. */
		for (unsigned i = 0; i < nr; i++) {
			close(list[i].to);
			close(list[i].from);
		}
		close(to[1]);
		close(from[0]);
		sweep_local_work(s, to[0], from[1]);
	}
	close(to[0]);
	close(from[1]);
	w->to = to[1];
	w->from = from[0];
	return w->pid < 0 ? base_fail_errno(err, errno, "fork") : BASE_OK;
}

static enum base_status sweep_local_distribute(struct worker *w, unsigned nr_workers,
	const uint32_t *todo, size_t nr, sweep_take *take, void *ctx, struct base_err *err)
{
	size_t given = 0, taken = 0;
	for (unsigned i = 0; i < nr_workers && given < nr; i++)
		if (!sweep_local_write_all(w[i].to, &todo[given++], sizeof *todo))
			return base_fail(err, BASE_ERR_ENV, "a worker has gone");
	while (taken < nr) {
		struct pollfd p[WORKERS_MAX];
		for (unsigned i = 0; i < nr_workers; i++)
			p[i] = (struct pollfd){.fd = w[i].from, .events = POLLIN};
		if (poll(p, nr_workers, -1) < 0) {
			if (errno == EINTR)
				continue;
			return base_fail_errno(err, errno, "poll");
		}
		for (unsigned i = 0; i < nr_workers; i++) {
			struct sweep_answer a;
			if (!p[i].revents)
				continue;
			if (!sweep_local_read_all(w[i].from, &a, sizeof a))
				return base_fail(err, BASE_ERR_ENV,
					"a worker has gone; what was answered is kept, start "
					"again");
			taken++;
			if (!take(ctx, &a))
				return BASE_END;
			if (given < nr &&
				!sweep_local_write_all(w[i].to, &todo[given++], sizeof *todo))
				return base_fail(err, BASE_ERR_ENV, "a worker has gone");
		}
	}
	return BASE_OK;
}

enum base_status sweep_local(const struct sweep_spec *s, const uint32_t *todo, size_t nr,
	unsigned nr_workers, sweep_take *take, void *ctx, struct base_err *err)
{
	struct worker w[WORKERS_MAX] = {{0}};
	enum base_status status = BASE_OK;
	unsigned started = 0;
	nr_workers = nr_workers > WORKERS_MAX ? WORKERS_MAX : nr_workers;
	nr_workers = nr_workers > nr ? (unsigned)nr : nr_workers;
	void (*before)(int) = signal(SIGPIPE, SIG_IGN);
	for (; started < nr_workers && status == BASE_OK; started++)
		status = sweep_local_start(w, started, s, err);
	if (status == BASE_OK)
		status = sweep_local_distribute(w, started, todo, nr, take, ctx, err);
	for (unsigned i = 0; i < started; i++) {
		if (w[i].to < 0)
			continue;
		close(w[i].to);
		close(w[i].from);
	}
	for (unsigned i = 0; i < started; i++) {
		if (w[i].pid > 0 && status != BASE_OK)
			kill(w[i].pid, SIGTERM);
		while (w[i].pid > 0 && waitpid(w[i].pid, NULL, 0) < 0 && errno == EINTR) {
		}
	}
	signal(SIGPIPE, before);
	return status;
}
