/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_format_pytorch_law.c - programs made by chance for a host and its streams, simulated; what the profiler would have
 * written of them is imported, a change is predicted, and the changed program simulated: both agree within 1 %.
 */
#include "gpu_fixture.h"

#include "format/format.h"

enum { STREAMS = 3, ITEMS = 150, KERNELS = 4, PROGRAMS = 60 };
enum item_kind { HOST, LAUNCH, DEPEND, SYNC_DEVICE, SYNC_STREAM, COPY, ITEM_KINDS };
struct item {
	enum item_kind kind;
	unsigned stream, on, kernel;
	double us; /* of host or kernel */
};
struct change {
	const char *name; /* of the states that it scales */
	double host, call, kernel[KERNELS];
};

static const double CALL_US = 4, WAY_US = 2, BETWEEN_US = 0.2, RETURN_US = 1;

struct machine {
	double now, free[STREAMS], event[STREAMS]; /* event: what the stream must wait for */
	struct gpu_bench *b;                       /* NULL: nobody records */
};

static double later(double a, double b)
{
	return a > b ? a : b;
}

/* A kernel or copy on the stream, there at `there`; when it ends. */
static double work(struct machine *m, const struct item *i, double there, double us,
	int correlation, const char *category)
{
	double begin =
		later(there + WAY_US, later(m->free[i->stream], m->event[i->stream]) + BETWEEN_US);
	char name[8];
	snprintf(name, sizeof name, "k%u", i->kernel);
	if (m->b)
		device_of(m->b, category, name, correlation, (int)i->stream, begin, begin + us);
	m->event[i->stream] = 0;
	m->free[i->stream] = begin + us;
	return begin + us;
}

static void call_until(struct machine *m, const char *name, int correlation, double end)
{
	if (m->b)
		call_of(m->b, MAIN, name, correlation, m->now, end);
	m->now = end;
}

static void simulate_item(struct machine *m, const struct item *i, const struct change *c)
{
	int n = m->b ? (m->b->correlation += 2) : 0;
	double us = i->us * c->kernel[i->kernel], last = 0, issued;
	switch (i->kind) {
	case HOST:
		if (m->b)
			op(m->b, MAIN, "work", m->now, m->now + i->us);
		m->now += i->us * c->host;
		break;
	case LAUNCH:
		call_until(m, "cudaLaunchKernel", n, m->now + CALL_US * c->call);
		work(m, i, m->now, us, n, "kernel");
		break;
	case DEPEND:
		if (i->on == i->stream)
			break;
		call_until(m, "cudaEventRecord", n, m->now + 1);
		if (m->b)
			said(m->b, "Stream Wait Event", n + 1, (int)i->stream, (int)i->on, n);
		call_until(m, "cudaStreamWaitEvent", n + 1, m->now + 1);
		m->event[i->stream] = later(m->event[i->stream], m->free[i->on]);
		break;
	case SYNC_DEVICE:
	case SYNC_STREAM:
		for (unsigned s = 0; s < STREAMS; s++)
			if (i->kind == SYNC_DEVICE || s == i->stream)
				last = later(last, m->free[s]);
		if (m->b && i->kind == SYNC_STREAM)
			said(m->b, "Stream Sync", n, (int)i->stream, -1, -1);
		call_until(m,
			i->kind == SYNC_DEVICE ? "cudaDeviceSynchronize" : "cudaStreamSynchronize",
			n, later(m->now, last) + RETURN_US);
		break;
	case COPY:
		issued = m->now + CALL_US * c->call;
		last = work(m, i, issued, us, n, "gpu_memcpy");
		call_until(m, "cudaMemcpy", n, last + RETURN_US);
		break;
	case ITEM_KINDS:
		break;
	}
}

static double simulate(struct gpu_bench *b, const struct item *item, const struct change *c)
{
	struct machine m = {.b = b};
	double end;
	for (unsigned i = 0; i < ITEMS; i++)
		simulate_item(&m, &item[i], c);
	end = m.now;
	for (unsigned s = 0; s < STREAMS; s++)
		end = later(end, m.free[s]);
	return end;
}

static unsigned pick(unsigned *seed, unsigned nr)
{
	*seed = *seed * 1103515245 + 12345;
	return (*seed >> 16) % nr;
}

/* Mostly launches; some programs are held up by the host, others by streams. */
static void make(struct item *item, unsigned seed)
{
	unsigned slow_host = pick(&seed, 3);
	for (unsigned i = 0; i < ITEMS; i++) {
		static const enum item_kind kinds[] = {HOST, HOST, HOST, LAUNCH, LAUNCH, LAUNCH,
			LAUNCH, LAUNCH, LAUNCH, DEPEND, DEPEND, SYNC_STREAM, COPY};
		enum item_kind kind = kinds[pick(&seed, BASE_COUNT(kinds))];
		item[i] = (struct item){.kind = i % 40 == 39 ? SYNC_DEVICE : kind,
			.stream = pick(&seed, STREAMS),
			.on = pick(&seed, STREAMS),
			.kernel = pick(&seed, KERNELS)};
		item[i].us = kind == HOST ? 5 + pick(&seed, slow_host ? 100 : 20)
					  : 10 + pick(&seed, 150);
	}
}

static void predicted_as_simulated(void **state)
{
	static const struct change as_it_was = {"", 1, 1, {1, 1, 1, 1}};
	static const struct change changes[] = {
		{"k1", 1, 1, {1, 0.5, 1, 1}},
		{"k2", 1, 1, {1, 1, 0, 1}},
		{"k0", 1, 1, {2, 1, 1, 1}},
		{"work", 0.3, 1, {1, 1, 1, 1}},
	};
	static const double factor[] = {0.5, 0, 2, 0.3};
	struct item item[ITEMS];
	double worst = 0;
	unsigned nr_gained = 0;
	(void)state;
	for (unsigned seed = 1; seed <= PROGRAMS; seed++) {
		struct gpu_bench b = {0};
		make(item, seed);
		double was = simulate(&b, item, &as_it_was);
		gpu_bench_run(&b, NULL, 0);
		const char *notes = base_str_text(&b.notes);
		if (strstr(notes, "not taken as a wait"))
			print_message("%s", notes);
		assert_null(strstr(notes, "not taken as a wait"));
		assert_true(fabs(gpu_bench_length(&b, 0) - was) < 0.01);
		for (unsigned i = 0; i < BASE_COUNT(changes); i++) {
			double is = simulate(NULL, item, &changes[i]);
			double said_to_be = gpu_bench_scaled(&b, changes[i].name, factor[i]);
			double error = fabs(said_to_be - is) / is;
			nr_gained += fabs(is - was) > 0.05 * was;
			worst = error > worst ? error : worst;
			if (error > 0.01)
				print_message("program %u, %s: %g, predicted %g, simulated %g\n",
					seed, changes[i].name, was, said_to_be, is);
			assert_true(error <= 0.01);
		}
		gpu_bench_fini(&b);
	}
	assert_true(nr_gained > PROGRAMS); /* the changes change something */
	print_message("worst error %.3f %%\n", 100 * worst);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(predicted_as_simulated),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
