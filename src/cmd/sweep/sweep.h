/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sweep.h - the parts of `longpole sweep`: a specification becomes points, a transport has them
 * simulated, a store keeps the answers.
 */
#ifndef LONGPOLE_CMD_SWEEP_H
#define LONGPOLE_CMD_SWEEP_H

#include "cmd/cmd.h"
#include "noc/network/config.h"

enum { SWEEP_POINTS_MAX = 100000, SWEEP_ERROR_MAX = BASE_ERR_TEXT_MAX, SWEEP_KEY_MAX = 64 };

enum sweep_value {
#define SWEEP_VALUE(column, latency, saturation) SWEEP_##column,
#include "cmd/sweep/sweep_values.def"
	SWEEP_VALUES_NR
};
extern const char *const sweep_value_names[SWEEP_VALUES_NR];

/* One simulation. */
struct sweep_point {
	struct noc_config config;
	uint32_t section; /* index into the specification's */
	bool saturation;  /* search it, instead of a simulation at one load */
};
struct sweep_section {
	char name[SWEEP_KEY_MAX];
};
struct sweep_spec {
	struct sweep_point *point;
	size_t nr_points, capacity;
	struct sweep_section *section;
	size_t nr_sections, section_capacity;
	bool *varied; /* of each parameter: has it more than one value? */
};
enum base_status sweep_spec_parse(struct sweep_spec *s, const char *text, const char *name,
	char *const *setting, size_t nr_settings, struct base_err *err) BASE_MUST_CHECK;
void sweep_spec_fini(struct sweep_spec *s);
/* All parameters, "k=8;load=0.1;...": what makes two points the same. */
void sweep_point_key(struct base_str *out, const struct sweep_point *p);
/* The varied ones but load and seed: "topology=mesh k=8". */
void sweep_point_series(
	struct base_str *out, const struct sweep_spec *s, const struct sweep_point *p);

/* What comes back of a point; has no pointers: it is sent from process to process as it is. */
struct sweep_answer {
	uint32_t point;
	int32_t status;                /* enum base_status */
	double value[SWEEP_VALUES_NR]; /* NAN: none */
	char error[SWEEP_ERROR_MAX];
};
void sweep_simulate(const struct sweep_spec *s, uint32_t point, struct sweep_answer *ret);

/* ---- transports: who simulates --------------------------------------------------------------- */

/* Answers arrive in any order. A callback returns false to stop. */
typedef bool sweep_take(void *ctx, const struct sweep_answer *a);
/* `todo` are points; nr_workers processes of this machine, each of which gets the next one when it
 * is done. */
enum base_status sweep_local(const struct sweep_spec *s, const uint32_t *todo, size_t nr,
	unsigned nr_workers, sweep_take *take, void *ctx, struct base_err *err) BASE_MUST_CHECK;

/* The same over MPI, by a library that is loaded when it is asked for. */
struct sweep_mpi;
enum base_status sweep_mpi_open(struct sweep_mpi **ret, struct base_err *err) BASE_MUST_CHECK;
void sweep_mpi_close(struct sweep_mpi *m);
bool sweep_mpi_leads(const struct sweep_mpi *m); /* rank 0 */
enum base_status sweep_mpi_run(struct sweep_mpi *m, const uint32_t *todo, size_t nr,
	sweep_take *take, void *ctx, struct base_err *err) BASE_MUST_CHECK;
/* Of the other ranks: simulates until rank 0 says that it is over. */
void sweep_mpi_serve(struct sweep_mpi *m, const struct sweep_spec *s);

/* ---- store ----------------------------------------------------------------------------------- */

struct sweep_store;
enum base_status sweep_store_open(
	struct sweep_store **ret, const char *path, struct base_err *err) BASE_MUST_CHECK;
void sweep_store_close(struct sweep_store *t);
/* BASE_END: no answer yet. Failed points count as not answered. */
enum base_status sweep_store_get(struct sweep_store *t, const struct sweep_point *p,
	struct sweep_answer *ret, struct base_err *err) BASE_MUST_CHECK;
enum base_status sweep_store_put(struct sweep_store *t, const struct sweep_spec *s,
	const struct sweep_answer *a, struct base_err *err) BASE_MUST_CHECK;

/* ---- pictures -------------------------------------------------------------------------------- */

/* Latency and accepted flits over load, a line a series. */
void sweep_plot(
	struct base_str *out, const struct sweep_spec *s, const struct sweep_answer *answer);

#endif
