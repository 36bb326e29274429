/* SPDX-License-Identifier: Apache-2.0 */
/* module.h - what `longpole sweep --mpi` needs of MPI. longpole itself is not linked with it: the
 * module is loaded when it is asked for. */
#ifndef LONGPOLE_CMD_MPI_MODULE_H
#define LONGPOLE_CMD_MPI_MODULE_H

#include <stdbool.h>
#include <stddef.h>

struct longpole_mpi {
	bool (*init)(void);
	int (*rank)(void);
	int (*size)(void);
	bool (*send)(int to, const void *p, size_t size_bytes);
	bool (*receive)(
		int from, void *p, size_t size_bytes, int *ret_from); /* from < 0: anybody */
	void (*finalize)(void);
};
/* The module's one symbol. */
#define LONGPOLE_MPI_SYMBOL "longpole_mpi"

#endif
