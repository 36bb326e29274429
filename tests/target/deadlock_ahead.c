/* SPDX-License-Identifier: Apache-2.0 */
/*
 * deadlock_ahead [--ptrace] [--times=N] [--branch=K] [--spin] PID... - runs a copy of each waiting
 * thread of these processes ahead, and prints a line for each:
 *
 *	TID KIND END "why" calls=N stopped_ns=N events=KIND[space,id,at],... again=KIND[...]
 *		would=FD:"text"
 *
 * With --times=N everything N times, printing the last; then a line of medians and of the longest
 * stop: "times N copies N copy_ns N ghost_ns N stopped_ns N stopped_max_ns N". Exit status 2: no
 * copies here, and why on standard error.
 */
#include "deadlock/ahead/ghost.h"
#include "deadlock/private.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { THREADS_MAX = 4096, KEYS_MAX = 64, SAMPLES_MAX = 1 << 16 };

static void print_key(const struct deadlock_key *k)
{
	static const char *const name[] = {
#define KEY(id, text, met_by_name) #id,
#include "deadlock/facts/keys.def"
	};
	printf("%s[%" PRIu64 ",%" PRIu64 ",%" PRIu64 "]", name[k->kind], k->space, k->id, k->at);
}

static void print_run(const struct deadlock_wait *w, const struct deadlock_run *r)
{
	static const char *const kind[] = {
#define KIND(id, text, noun) #id,
#include "deadlock/facts/kinds.def"
	};
	static const char *const end[] = {
#define END(id, proper, text) #id,
#include "deadlock/facts/ends.def"
	};
	printf("%d %s %s \"%s\" calls=%" PRIu32 " elapsed_ns=%" PRIu64 " stopped_ns=%" PRIu64
	       " events=",
		(int)w->thread.tid, kind[w->kind], end[r->end], r->why, r->nr_calls, r->elapsed_ns,
		r->stopped_ns);
	for (size_t i = 0; i < r->nr_events; i++) {
		printf("%s", i ? "," : "");
		print_key(&r->event[i].key);
	}
	printf(" again=");
	print_key(&r->again);
	printf(" would=%d:\"%s\"\n", r->would_write_fd, r->would_write);
}

static size_t list_threads(pid_t pid, struct deadlock_wait *wait, size_t nr)
{
	char path[32];
	snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
	DIR *dir = opendir(path);
	for (struct dirent *e; dir && nr < THREADS_MAX && (e = readdir(dir));) {
		const pid_t tid = (pid_t)strtol(e->d_name, NULL, 10);
		if (tid <= 0)
			continue;
		wait[nr] = (struct deadlock_wait){.thread = {.pid = pid, .tid = tid}};
		char text[1024];
		struct os_task_stat stat;
		if (os_proc_read_task(pid, tid, "stat", text, sizeof text) <= 0 ||
			!os_parse_stat(text, &stat))
			continue;
		wait[nr].thread.state = stat.state;
		deadlock_runs_of(pid, tid, &wait[nr].thread.runs);
		deadlock_wait_read(&wait[nr]);
		nr++;
	}
	if (dir)
		closedir(dir);
	return nr;
}

struct arguments {
	struct deadlock_ahead_options options;
	unsigned times;
	bool spins;
	pid_t pid[64];
	size_t nr_pids;
};

static void parse(int argc, char **argv, struct arguments *ret)
{
	*ret = (struct arguments){.times = 1};
	for (int i = 1; i < argc; i++)
		if (strcmp(argv[i], "--ptrace") == 0)
			ret->options.snapshot = DEADLOCK_SNAPSHOT_PTRACE;
		else if (strncmp(argv[i], "--times=", 8) == 0)
			ret->times = (unsigned)strtoul(argv[i] + 8, NULL, 10);
		else if (strncmp(argv[i], "--branch=", 9) == 0)
			ret->options.force_branch = (uint32_t)strtoul(argv[i] + 9, NULL, 10);
		else if (strcmp(argv[i], "--spin") == 0)
			ret->spins = true;
		else if (ret->nr_pids < 64)
			ret->pid[ret->nr_pids++] = (pid_t)strtol(argv[i], NULL, 10);
}

/* Running threads that are proven to spin; each is told which words the others poll. */
static enum base_status find_spinners(struct deadlock_ahead *ahead, struct deadlock_wait *wait,
	size_t nr, struct deadlock_key *keys, struct base_err *err)
{
	size_t nr_keys = 0;
	enum base_status status = BASE_OK;
	for (size_t i = 0; status == BASE_OK && i < nr; i++) {
		char why[DEADLOCK_SPIN_WHY_MAX];
		const struct deadlock_thread thread = wait[i].thread;
		if (thread.state != 'R')
			continue;
		status = deadlock_ahead_spin(ahead, &thread, &wait[i], why, err);
		if (wait[i].kind != DEADLOCK_SPIN)
			printf("%d no spinner: %s\n", (int)thread.tid, why);
		for (size_t n = 0; n < wait[i].nr_keys && nr_keys < KEYS_MAX; n++) {
			printf("%d polls ", (int)thread.tid);
			print_key(&wait[i].key[n]);
			printf("\n");
			keys[nr_keys++] = wait[i].key[n];
		}
	}
	deadlock_ahead_watch(ahead, keys, nr_keys);
	return status;
}

/* Times, of which the first SAMPLES_MAX give the median. */
struct sample {
	uint64_t ns[SAMPLES_MAX], max_ns;
	size_t nr;
};

struct samples {
	struct sample copy, ghost, stopped;
};

static uint64_t clock_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void add_sample(struct sample *s, uint64_t ns)
{
	if (s->nr < SAMPLES_MAX)
		s->ns[s->nr++] = ns;
	s->max_ns = ns > s->max_ns ? ns : s->max_ns;
}

static int by_size(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return (x > y) - (x < y);
}

static uint64_t median(struct sample *s)
{
	if (!s->nr)
		return 0;
	qsort(s->ns, s->nr, sizeof *s->ns, by_size);
	return s->ns[s->nr / 2];
}

static enum base_status look(const struct arguments *args, struct deadlock_tasks *tasks,
	bool prints, struct samples *samples, struct base_err *err)
{
	struct deadlock_world *world = NULL;
	struct deadlock_ahead *ahead = NULL;
	struct deadlock_key keys[KEYS_MAX];
	struct deadlock_wait *wait = calloc(THREADS_MAX, sizeof *wait);
	size_t nr = 0;
	enum base_status status = wait ? deadlock_world_open(&world, err) : BASE_ERR_NOMEM;
	for (size_t i = 0; status == BASE_OK && i < args->nr_pids; i++)
		nr = list_threads(args->pid[i], wait, nr);
	if (status == BASE_OK && tasks)
		status = deadlock_tasks_registers(tasks, wait, nr, err);
	const uint64_t begin_ns = clock_ns();
	if (status == BASE_OK)
		status = deadlock_ahead_open(world, &ahead, err);
	add_sample(&samples->ghost, clock_ns() - begin_ns);
	if (status == BASE_OK && args->spins)
		status = find_spinners(ahead, wait, nr, keys, err);
	for (size_t i = 0; status == BASE_OK && i < nr; i++) {
		struct deadlock_run run;
		struct deadlock_process *p = deadlock_world_process(world, wait[i].thread.pid);
		if (!p || wait[i].kind == DEADLOCK_RUNNING)
			continue;
		if (wait[i].kind != DEADLOCK_SPIN) {
			deadlock_frames_of(world, p, &wait[i]);
			deadlock_wait_decode(world, &wait[i]);
		}
		status = deadlock_ahead_run(ahead, &wait[i], &args->options, &run, err);
		if (run.end != DEADLOCK_END_MOVED && run.end != DEADLOCK_END_REFUSED) {
			add_sample(&samples->copy, run.elapsed_ns);
			add_sample(&samples->stopped, run.stopped_ns);
		}
		if (status == BASE_OK && prints)
			print_run(&wait[i], &run);
	}
	deadlock_ahead_close(ahead);
	deadlock_world_close(world);
	free(wait);
	return status;
}

int main(int argc, char **argv)
{
	if (argc == 2 && strcmp(argv[1], "--can-watch") == 0)
		return deadlock_ghost_can_watch() ? 0 : 2;
	struct arguments args;
	struct base_err err = {0};
	char why[DEADLOCK_WHY_MAX];
	static struct samples samples;
	enum base_status status = BASE_OK;
	parse(argc, argv, &args);
	struct deadlock_tasks *tasks =
		args.options.snapshot == DEADLOCK_SNAPSHOT_PTRACE ? NULL : deadlock_tasks_open(why);
	if (tasks)
		args.options.snapshot =
			DEADLOCK_SNAPSHOT_BPF; /* as a look does: nobody is stopped */
	else if (args.options.snapshot != DEADLOCK_SNAPSHOT_PTRACE)
		fprintf(stderr, "without BPF: %s\n", why);
	for (unsigned i = 1; status == BASE_OK && i <= args.times; i++)
		status = look(&args, tasks, i == args.times, &samples, &err);
	deadlock_tasks_close(tasks);
	if (status != BASE_OK) {
		fprintf(stderr, "%s: %s\n", base_status_name(status),
			err.nr_causes ? err.cause[0] : "");
		return 2;
	}
	if (args.times > 1)
		printf("times %u copies %zu copy_ns %" PRIu64 " ghost_ns %" PRIu64
		       " stopped_ns %" PRIu64 " stopped_max_ns %" PRIu64 "\n",
			args.times, samples.copy.nr, median(&samples.copy), median(&samples.ghost),
			median(&samples.stopped), samples.stopped.max_ns);
	return 0;
}
