/* SPDX-License-Identifier: Apache-2.0 */
/*
 * barnes.c [THREADS [BODIES]] - Barnes-Hut in two dimensions: all threads put bodies into one tree,
 * whose cells have locks; thread 0 sums it up; all compute forces and move.
 */
#include "kernel.h"

#include <math.h>

enum { STEPS = 2, LOCKS = 64, DEPTH_MAX = 40 };
static const long kernel_default_size = 512;
#define OPEN 0.7

struct node {
	double x, y, mass;
	double vx, vy;          /* of a body */
	double left, low, side; /* of a cell */
	struct node *child[4];
	int is_body;
};
static struct node *body, *cell;
static long nr_cells, cells_max, visited[KERNEL_THREADS_MAX][8];
static struct kernel_lock lock[LOCKS];

static void kernel_setup(void)
{
	unsigned seed = 3;
	cells_max = 8 * kernel_size + 1024;
	body = calloc((size_t)kernel_size, sizeof *body);
	cell = calloc((size_t)cells_max, sizeof *cell);
	if (!body || !cell)
		exit(1);
	for (int i = 0; i < LOCKS; i++)
		kernel_lock_init(&lock[i]);
	for (long i = 0; i < kernel_size; i++) {
		body[i].is_body = 1;
		body[i].mass = 1.0 / (double)kernel_size;
		body[i].x = kernel_random(&seed) % 1000003 / 1000003.0;
		body[i].y = kernel_random(&seed) % 1000003 / 1000003.0;
	}
}

static struct node *new_cell(double left, double low, double side)
{
	long i = __atomic_fetch_add(&nr_cells, 1, __ATOMIC_RELAXED);
	if (i >= cells_max)
		exit(3);
	cell[i] = (struct node){.left = left, .low = low, .side = side};
	return &cell[i];
}

static int quarter(const struct node *c, const struct node *b)
{
	return (b->x >= c->left + c->side / 2) + 2 * (b->y >= c->low + c->side / 2);
}

static struct node *below(const struct node *c, int q)
{
	double half = c->side / 2;
	return new_cell(c->left + (q & 1 ? half : 0), c->low + (q & 2 ? half : 0), half);
}

/* Two bodies of one quarter: cells until they are apart, not yet seen by others. */
static struct node *apart(const struct node *c, int q, struct node *one, struct node *two)
{
	struct node *top = below(c, q), *at = top;
	for (int depth = 0; depth < DEPTH_MAX; depth++) {
		int p = quarter(at, one), r = quarter(at, two);
		if (p != r) {
			at->child[p] = one;
			at->child[r] = two;
			return top;
		}
		at = at->child[p] = below(at, p);
	}
	at->child[0] = one; /* as good as in one place: one of them stands for both */
	return top;
}

static void insert(struct node *b)
{
	struct node *at = cell;
	for (;;) {
		int q = quarter(at, b);
		struct node *next = __atomic_load_n(&at->child[q], __ATOMIC_ACQUIRE);
		if (next && !next->is_body) {
			at = next;
			continue;
		}
		struct kernel_lock *l = &lock[(at - cell) % LOCKS];
		kernel_lock(l);
		next = at->child[q];
		if (!next)
			__atomic_store_n(&at->child[q], b, __ATOMIC_RELEASE);
		else if (next->is_body)
			__atomic_store_n(&at->child[q], apart(at, q, next, b), __ATOMIC_RELEASE);
		kernel_unlock(l);
		if (!next || next->is_body)
			return;
	}
}

static void sum_up(struct node *c)
{
	double x = 0, y = 0, mass = 0;
	for (int q = 0; q < 4; q++) {
		struct node *k = c->child[q];
		if (!k)
			continue;
		if (!k->is_body)
			sum_up(k);
		mass += k->mass;
		x += k->mass * k->x;
		y += k->mass * k->y;
	}
	c->mass = mass;
	c->x = x / mass;
	c->y = y / mass;
}

static void pull(const struct node *k, struct node *b, double *fx, double *fy, long *nr)
{
	double dx = k->x - b->x, dy = k->y - b->y, d2 = dx * dx + dy * dy + 1e-6;
	++*nr;
	if (!k->is_body && k->side * k->side > OPEN * OPEN * d2) {
		for (int q = 0; q < 4; q++)
			if (k->child[q] && k->child[q] != b)
				pull(k->child[q], b, fx, fy, nr);
		return;
	}
	double f = k->mass / (d2 * sqrt(d2));
	*fx += f * dx;
	*fy += f * dy;
}

static void kernel_work(int id)
{
	long from = kernel_from(id, kernel_size), to = kernel_from(id + 1, kernel_size);
	for (int step = 0; step < STEPS; step++) {
		if (id == 0) {
			nr_cells = 0;
			(void)new_cell(-1, -1, 3);
		}
		kernel_barrier();
		for (long i = from; i < to; i++)
			insert(&body[i]);
		kernel_barrier();
		if (id == 0)
			sum_up(cell);
		kernel_barrier();
		for (long i = from; i < to; i++) {
			double fx = 0, fy = 0;
			pull(cell, &body[i], &fx, &fy, &visited[id][0]);
			body[i].vx += fx * 1e-4;
			body[i].vy += fy * 1e-4;
		}
		kernel_barrier();
		for (long i = from; i < to; i++) {
			body[i].x += body[i].vx * 1e-4;
			body[i].y += body[i].vy * 1e-4;
		}
		kernel_barrier();
	}
}

/* The tree had all the mass; forces nearly cancel. */
static int kernel_check(void)
{
	double px = 0, py = 0;
	for (long i = 0; i < kernel_size; i++) {
		px += body[i].mass * body[i].vx;
		py += body[i].mass * body[i].vy;
	}
	return fabs(cell->mass - 1) < 1e-9 && fabs(px) < 1e-3 && fabs(py) < 1e-3;
}
