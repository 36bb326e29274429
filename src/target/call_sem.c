/* SPDX-License-Identifier: Apache-2.0 */
/* call_sem.c - semaphores of System V: call records as the seed has them (004, table 4). */
#include "target/target.h"

#include <errno.h>
#include <sys/ipc.h>
#include <sys/sem.h>

#define AT TARGET_STUB

static void call_sem_record(int id, const struct sembuf *op, uint64_t before, uint64_t after)
{
	longpole_target_call(CALL_semop, before, after, (uint64_t)id, op->sem_num,
		(uint64_t)(int64_t)op->sem_op, (uint64_t)(int64_t)op->sem_flg);
}

/* All of them come at once. What was given could be taken as soon as the call had begun. */
static int did(int result, int id, const struct sembuf *op, size_t nr, uint64_t before)
{
	int saved = errno;
	for (size_t i = 0; !result && i < nr; i++)
		if (op[i].sem_op > 0)
			call_sem_record(id, &op[i], before, before);
	for (size_t i = 0; !result && i < nr; i++)
		if (op[i].sem_op <= 0)
			call_sem_record(id, &op[i], before, target_call_ticks());
	errno = saved;
	return result;
}

int longpole_at_semop(int id, struct sembuf *op, size_t nr);
AT int longpole_at_semop(int id, struct sembuf *op, size_t nr)
{
	TARGET_UNLESS_ATTACHED(semop(id, op, nr));
	longpole_target_let_see(true);
	uint64_t before = target_call_ticks();
	return did(TARGET_CALL(semop(id, op, nr)), id, op, nr, before);
}

int longpole_at_semtimedop(int id, struct sembuf *op, size_t nr, const struct timespec *most);
AT int longpole_at_semtimedop(int id, struct sembuf *op, size_t nr, const struct timespec *most)
{
	TARGET_UNLESS_ATTACHED(semtimedop(id, op, nr, most));
	longpole_target_let_see(true);
	uint64_t before = target_call_ticks();
	return did(TARGET_CALL(semtimedop(id, op, nr, most)), id, op, nr, before);
}

/* (What the last one is depends on the command.) */
int longpole_at_semctl(int id, int number, int command, uint64_t argument);
AT int longpole_at_semctl(int id, int number, int command, uint64_t argument)
{
	int result = semctl(id, number, command, argument);
	uint64_t now = target_call_ticks();
	if (result >= 0 && command == SETVAL)
		longpole_target_call(CALL_semaphore, now, now, MEMORY_OBJECT_SYSTEM_V(id, number),
			(uint32_t)argument, 0, 0);
	return result;
}
