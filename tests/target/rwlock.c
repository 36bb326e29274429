/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rwlock - threads that look a table up under a read lock, change it under the write lock, and work
 * on their own. Known answer: --dominant=writer: the write sections exclude each other and are the
 * path; --dominant=reader: the reads, although shared, are the longest part of each thread's own
 * way.
 */
#include <pthread.h>

#include "target.h"

enum { THREADS_MAX = 16 };

static pthread_rwlock_t table_lock = PTHREAD_RWLOCK_INITIALIZER;
static uint64_t table;

struct user {
	pthread_t thread;
	uint64_t number, rounds, read_units, write_units, own_units, read_percent, write_percent,
		sum;
};

TARGET_FUNCTION uint64_t read_section(uint64_t sum, uint64_t units)
{
	sum += table;
	TARGET_WORK(sum, units); /* section reader */
	return sum;
}

TARGET_FUNCTION void write_section(uint64_t units)
{
	TARGET_WORK(table, units); /* section writer */
}

TARGET_FUNCTION uint64_t own_work(uint64_t sum, uint64_t units)
{
	TARGET_WORK(sum, units);
	return sum;
}

static void *run(void *arg)
{
	struct user *u = arg;
	for (uint64_t i = 0; i < u->rounds; i++) {
		uint64_t read_units =
			target_vary(u->number, 3 * i, u->read_units) * u->read_percent / 100;
		uint64_t write_units =
			target_vary(u->number, 3 * i + 1, u->write_units) * u->write_percent / 100;
		pthread_rwlock_rdlock(&table_lock);
		u->sum ^= read_section(u->number, read_units) &
			  1; /* what is read depends on the order */
		pthread_rwlock_unlock(&table_lock);
		pthread_rwlock_wrlock(&table_lock);
		write_section(write_units);
		pthread_rwlock_unlock(&table_lock);
		u->sum +=
			own_work(u->number, target_vary(u->number, 3 * i + 2, u->own_units)) & ~1u;
		TARGET_PROGRESS("round");
	}
	return NULL;
}

int main(int argc, char **argv)
{
	target_check(argc, argv,
		"--section-percent --dominant --threads --rounds --read-units --write-units "
		"--own-units");
	bool readers = !strcmp(target_text(argc, argv, "--dominant", "writer"), "reader");
	uint64_t nr_threads = target_number(argc, argv, "--threads", 2);
	uint64_t percent = target_percent(argc, argv);
	if (!nr_threads || nr_threads > THREADS_MAX)
		return 2;
	struct user user[THREADS_MAX] = {0};
	for (uint64_t i = 0; i < nr_threads; i++) {
		struct user *u = &user[i];
		u->number = i;
		u->rounds =
			target_number(argc, argv, "--rounds", readers ? 1300 : 2600) / nr_threads;
		u->read_units = target_number(argc, argv, "--read-units", readers ? 600 : 40);
		u->write_units = target_number(argc, argv, "--write-units", readers ? 40 : 220);
		u->own_units = target_number(argc, argv, "--own-units", readers ? 200 : 90);
		u->read_percent = readers ? percent : 100;
		u->write_percent = readers ? 100 : percent;
		target_must(!pthread_create(&u->thread, NULL, run, u), "pthread_create");
	}
	uint64_t sum = 0;
	for (uint64_t i = 0; i < nr_threads; i++) {
		pthread_join(user[i].thread, NULL);
		sum += user[i].sum & ~1u;
	}
	target_print(sum + table);
	return 0;
}
