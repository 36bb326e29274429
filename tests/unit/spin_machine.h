/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spin_machine.h - a tiny computer for tests of the spin detector: programs of an array of
 * instructions, threads that share a memory, every event told to a detector and to an oracle.
 *
 * The oracle is the text's first and simple way (3.4.2): it keeps all registers at each backward
 * branch, in a table without end, and compares.
 */
#ifndef SPIN_MACHINE_H
#define SPIN_MACHINE_H

#include "spin/detect.h"

#include <stdlib.h>
#include <string.h>

enum { MEMORY_WORDS = 256, NR_GENERAL = 8, REG_FLAGS = NR_GENERAL, REG_VECTOR, NR_REGISTERS = 10 };
enum { VECTOR_WORDS = 4, BRANCHES_MAX = 4096, SPUN_MAX = 1 << 21 };

enum op {
	SET,     /* a = imm */
	MOVE,    /* a = b */
	ADD,     /* a += imm */
	SUM,     /* a += b */
	LOAD,    /* a = memory[b + imm] */
	STORE,   /* memory[b + imm] = a */
	SWAP,    /* a <-> memory[b + imm], atomically */
	COUNT,   /* flags and a = memory[b + imm], which then grows by one: a fetch-and-add */
	COMPARE, /* flags = a == imm */
	EQUAL,   /* goto imm if equal */
	DIFFER,  /* goto imm if not */
	GOTO,
	WIDEN, /* the vector's lanes = a, a + 1, ... */
	HALT,
};
struct instruction {
	enum op op;
	unsigned a, b;
	int64_t imm;
};
struct registers {
	uint64_t general[NR_GENERAL], flags, vector[VECTOR_WORDS];
};

/* What the oracle knows of a backward branch. */
struct seen {
	uint64_t pc, instructions;
	struct registers registers;
};
struct thread {
	const struct instruction *program;
	uint64_t pc;
	bool halted;
	struct registers r;
	struct spin_detector *detector;
	struct seen *seen; /* newest last */
	size_t nr_seen;
	bool *spun; /* which of its instructions spun */
	uint64_t instructions, oracle_spinning, oracle_spins;
	struct spin_verdict verdict; /* of the last backward branch */
	bool oracle_verdict, branched;
};
struct machine {
	uint64_t memory[MEMORY_WORDS];
	uint64_t time; /* logical: changes of memory */
};

static inline uint64_t *words_of(struct registers *r, unsigned reg)
{
	return reg < NR_GENERAL ? &r->general[reg] : reg == REG_FLAGS ? &r->flags : r->vector;
}

static inline void write_register(struct thread *t, unsigned reg, const uint64_t *value)
{
	uint32_t words = reg == REG_VECTOR ? VECTOR_WORDS : 1;
	uint64_t *place = words_of(&t->r, reg);
	spin_register(t->detector, reg, words, place, value);
	memcpy(place, value, words * sizeof *place);
}

static inline void store(struct machine *m, struct thread *t, uint64_t address, uint64_t value)
{
	uint64_t *place = &m->memory[address % MEMORY_WORDS];
	if (*place == value)
		return;
	*place = value;
	m->time++;
	spin_changed(t->detector);
	t->nr_seen = 0;
}

static inline void oracle_branch(struct thread *t)
{
	size_t i = t->nr_seen;
	while (i && t->seen[i - 1].pc != t->pc)
		i--;
	t->oracle_verdict = false;
	if (!i) {
		if (t->nr_seen == BRANCHES_MAX)
			abort();
		t->seen[t->nr_seen++] = (struct seen){
			.pc = t->pc, .instructions = t->instructions, .registers = t->r};
		return;
	}
	struct seen *s = &t->seen[i - 1];
	if (!memcmp(&s->registers, &t->r, sizeof t->r)) {
		t->oracle_verdict = true;
		t->oracle_spins++;
		t->nr_seen = i;
		/* instruction by instruction, so that none counts twice */
		for (uint64_t k = s->instructions; k < t->instructions && k < SPUN_MAX; k++) {
			t->oracle_spinning += !t->spun[k];
			t->spun[k] = true;
		}
	}
	s->registers = t->r;
	s->instructions = t->instructions;
}

static inline void go_to(struct machine *m, struct thread *t, uint64_t target)
{
	if (target <= t->pc) {
		t->verdict = spin_branch(t->detector, t->pc, m->time);
		oracle_branch(t);
		t->branched = true;
	}
	t->pc = target;
}

/* One instruction; t->branched: it was a backward branch, and the verdicts are fresh. */
static inline void step(struct machine *m, struct thread *t)
{
	const struct instruction *i = &t->program[t->pc];
	uint64_t a = t->r.general[i->a % NR_GENERAL], b = t->r.general[i->b % NR_GENERAL];
	uint64_t address = b + (uint64_t)i->imm, v;
	t->branched = false;
	if (t->halted)
		return;
	t->instructions++;
	spin_commit(t->detector, 1);
	switch (i->op) {
	case SET:
		v = (uint64_t)i->imm;
		write_register(t, i->a, &v);
		break;
	case MOVE:
		write_register(t, i->a, &b);
		break;
	case ADD:
		v = a + (uint64_t)i->imm;
		write_register(t, i->a, &v);
		break;
	case SUM:
		v = a + b;
		write_register(t, i->a, &v);
		break;
	case LOAD:
		v = m->memory[address % MEMORY_WORDS];
		write_register(t, i->a, &v);
		break;
	case STORE:
		store(m, t, address, a);
		break;
	case SWAP:
		v = m->memory[address % MEMORY_WORDS];
		store(m, t, address, a);
		write_register(t, i->a, &v);
		break;
	case COUNT:
		v = m->memory[address % MEMORY_WORDS];
		store(m, t, address, v + 1);
		write_register(t, i->a, &v);
		break;
	case COMPARE:
		v = a == (uint64_t)i->imm;
		write_register(t, REG_FLAGS, &v);
		break;
	case EQUAL:
	case DIFFER:
		if ((t->r.flags != 0) == (i->op == EQUAL)) {
			go_to(m, t, (uint64_t)i->imm);
			return;
		}
		break;
	case GOTO:
		go_to(m, t, (uint64_t)i->imm);
		return;
	case WIDEN: {
		uint64_t lanes[VECTOR_WORDS] = {a, a + 1, a + 2, a + 3};
		write_register(t, REG_VECTOR, lanes);
		break;
	}
	case HALT:
		t->halted = true;
		return;
	}
	t->pc++;
}

static inline struct thread *thread_new(
	const struct instruction *program, uint32_t nr_sdt, uint32_t nr_rub)
{
	struct thread *t = calloc(1, sizeof *t);
	t->program = program;
	t->seen = calloc(BRANCHES_MAX, sizeof *t->seen);
	t->spun = calloc(SPUN_MAX, 1);
	t->detector = calloc(1, sizeof *t->detector);
	if (!spin_detector_init(t->detector, calloc(1, spin_detector_size_bytes(nr_sdt, nr_rub)),
		    nr_sdt, nr_rub))
		abort();
	return t;
}

static inline void thread_free(struct thread *t)
{
	free(t->detector->sdt);
	free(t->detector);
	free(t->spun);
	free(t->seen);
	free(t);
}

static inline uint64_t random_next(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state * 0x2545f4914f6cdd1du >> 16;
}

#endif
