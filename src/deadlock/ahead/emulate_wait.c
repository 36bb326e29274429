/* SPDX-License-Identifier: Apache-2.0 */
/* emulate_wait.c - system calls that wait, wake, or let time pass. */
#include "deadlock/ahead/emulate.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/sem.h>
#include <sys/syscall.h>
#include <sys/wait.h>

/* ---- futex ----------------------------------------------------------------------------------- */

static void futex_event(struct deadlock_copy *c, uint64_t address, bool is_private)
{
	struct deadlock_key key;
	deadlock_key_of_futex(c->world, c->process, address, is_private, &key);
	deadlock_copy_event(c, &key);
}

static int64_t futex_block(
	struct deadlock_copy *c, uint64_t address, bool is_private, const char *what)
{
	struct deadlock_key key;
	deadlock_key_of_futex(c->world, c->process, address, is_private, &key);
	return deadlock_copy_block(c, &key, what);
}

/* Is it a word of what the original waits for? */
static bool is_awaited_object(const struct deadlock_wait *w, uint64_t address)
{
	return w->call == SYS_futex &&
	       (address == w->word || (w->object && address >= w->object &&
					      address - w->object < w->object_bytes));
}

static int64_t futex_wait(struct deadlock_copy *c, const uint64_t *arg, bool is_private)
{
	uint32_t now = 0;
	if (!deadlock_copy_peek(c, arg[0], &now, sizeof now))
		return -EFAULT;
	if (now != (uint32_t)arg[2])
		return -EAGAIN;
	if (is_awaited_object(c->wait, arg[0]) &&
		deadlock_satisfy_again(c, arg[0], (uint32_t)arg[2]))
		return 0;
	if (arg[3]) /* time goes by at once */
		return -ETIMEDOUT;
	return futex_block(c, arg[0], is_private, "futex");
}

static int64_t futex_lock_pi(
	struct deadlock_copy *c, const uint64_t *arg, bool is_private, bool can_wait)
{
	uint32_t now = 0;
	if (!deadlock_copy_peek(c, arg[0], &now, sizeof now))
		return -EFAULT;
	if (!(now & FUTEX_TID_MASK))
		return deadlock_copy_poke32(c, arg[0], (uint32_t)c->wait->thread.tid) ? 0 : -EFAULT;
	return can_wait ? futex_block(c, arg[0], is_private, "futex") : -EAGAIN;
}

int64_t deadlock_emulate_futex(struct deadlock_copy *c, const uint64_t *arg)
{
	const bool is_private = arg[1] & FUTEX_PRIVATE_FLAG;
	switch ((int)arg[1] & FUTEX_CMD_MASK) {
	case FUTEX_WAKE:
	case FUTEX_WAKE_BITSET:
		futex_event(c, arg[0], is_private);
		return 1;
	case FUTEX_UNLOCK_PI:
		futex_event(c, arg[0], is_private);
		return deadlock_copy_poke32(c, arg[0], 0) ? 0 : -EFAULT;
	case FUTEX_REQUEUE:
	case FUTEX_CMP_REQUEUE:
	case FUTEX_CMP_REQUEUE_PI:
	case FUTEX_WAKE_OP:
		futex_event(c, arg[0], is_private);
		futex_event(c, arg[4], is_private);
		return 1;
	case FUTEX_WAIT:
	case FUTEX_WAIT_BITSET:
	case FUTEX_WAIT_REQUEUE_PI:
		return futex_wait(c, arg, is_private);
	case FUTEX_LOCK_PI:
	case FUTEX_LOCK_PI2:
		return futex_lock_pi(c, arg, is_private, true);
	case FUTEX_TRYLOCK_PI:
		return futex_lock_pi(c, arg, is_private, false);
	default:
		return -ENOSYS;
	}
}

/* ---- poll and the like: what is asked for is there, a few times ------------------------------ */

int64_t deadlock_emulate_sleep(struct deadlock_copy *c, const uint64_t *arg)
{
	(void)c;
	(void)arg;
	return 0;
}

static bool may_be_ready(struct deadlock_copy *c)
{
	return c->polls++ < DEADLOCK_COPY_POLLS_MAX;
}

int64_t deadlock_emulate_poll(struct deadlock_copy *c, const uint64_t *arg)
{
	struct pollfd item[DEADLOCK_COPY_VECTOR_MAX];
	const bool is_timed = c->last.number == SYS_poll ? (int)arg[2] >= 0 : arg[2] != 0;
	const size_t nr = arg[1] < BASE_COUNT(item) ? (size_t)arg[1] : BASE_COUNT(item);
	int64_t ready = 0;
	if (!deadlock_copy_peek(c, arg[0], item, nr * sizeof *item))
		return -EFAULT;
	const bool may = may_be_ready(c);
	for (size_t i = 0; i < nr; i++) {
		item[i].revents = may && item[i].fd >= 0 ? item[i].events & (POLLIN | POLLOUT) : 0;
		ready += item[i].revents != 0;
	}
	if (!ready && !is_timed)
		return deadlock_copy_block(c, NULL, "poll");
	return deadlock_copy_poke(c, arg[0], item, nr * sizeof *item) ? ready : -EFAULT;
}

/* The sets that were asked for are the answer, too. */
int64_t deadlock_emulate_select(struct deadlock_copy *c, const uint64_t *arg)
{
	uint64_t set[FD_SETSIZE / 64];
	const size_t nr_words = arg[0] < FD_SETSIZE ? ((size_t)arg[0] + 63) / 64 : FD_SETSIZE / 64;
	int64_t ready = 0;
	const bool may = may_be_ready(c);
	for (unsigned which = 1; which <= 3; which++) {
		if (!arg[which])
			continue;
		if (!deadlock_copy_peek(c, arg[which], set, nr_words * sizeof *set))
			return -EFAULT;
		for (size_t i = 0; may && which < 3 && i < nr_words; i++)
			ready += __builtin_popcountll(set[i]);
		if (!may || which == 3)
			memset(set, 0, sizeof set);
		if (!deadlock_copy_poke(c, arg[which], set, nr_words * sizeof *set))
			return -EFAULT;
	}
	return ready || arg[4] ? ready : deadlock_copy_block(c, NULL, "select");
}

/* The first file of the set that is asked for, with the word that the program put beside it. */
int64_t deadlock_emulate_epoll(struct deadlock_copy *c, const uint64_t *arg)
{
	char text[PROC_TEXT_MAX], name[32];
	const char *rest = text;
	struct deadlock_epoll_item item;
	(void)snprintf(name, sizeof name, "fdinfo/%d", (int)arg[0]);
	if (may_be_ready(c) &&
		os_proc_read(deadlock_process_shown_as(c->process), name, text, sizeof text) > 0)
		while (deadlock_parse_epoll(&rest, &item)) {
			const struct epoll_event event = {
				.events = item.events & (EPOLLIN | EPOLLOUT),
				.data = {.u64 = item.data},
			};
			if (event.events)
				return deadlock_copy_poke(c, arg[1], &event, sizeof event)
					       ? 1
					       : -EFAULT;
		}
	if (c->last.number == __NR_epoll_pwait2 ? arg[3] != 0 : (int)arg[3] >= 0)
		return 0;
	return deadlock_copy_block(c, NULL, "epoll_wait");
}

/* ---- children -------------------------------------------------------------------------------- */

/* The child that is said to have ended: the awaited one, or one that the copy believes to have
 * made. */
static int64_t ended_child(struct deadlock_copy *c, int64_t wanted)
{
	if (wanted >= DEADLOCK_COPY_FAKE_PID || (wanted <= 0 && c->fakes))
		return wanted > 0 ? wanted : DEADLOCK_COPY_FAKE_PID;
	if (!c->is_first)
		return 0;
	if (wanted > 0)
		return wanted;
	for (size_t i = 0; i < c->wait->nr_keys; i++)
		if (c->wait->key[i].kind == DEADLOCK_KEY_PROCESS_EXIT)
			return (int64_t)c->wait->key[i].id;
	return 0;
}

int64_t deadlock_emulate_wait4(struct deadlock_copy *c, const uint64_t *arg)
{
	const int64_t child = ended_child(c, (int)arg[0]);
	if (child && arg[1] && !deadlock_copy_poke32(c, arg[1], 0))
		return -EFAULT;
	if (child || arg[2] & WNOHANG)
		return child;
	return deadlock_copy_block(c, NULL, "wait4");
}

int64_t deadlock_emulate_waitid(struct deadlock_copy *c, const uint64_t *arg)
{
	const int64_t child = ended_child(c, arg[0] == P_PID ? (int)arg[1] : -1);
	siginfo_t info;
	memset(&info, 0, sizeof info);
	if (child) {
		info.si_signo = SIGCHLD;
		info.si_code = CLD_EXITED;
		info.si_pid = (pid_t)child;
	}
	if (!child && !(arg[3] & WNOHANG))
		return deadlock_copy_block(c, NULL, "waitid");
	return arg[2] && !deadlock_copy_poke(c, arg[2], &info, sizeof info) ? -EFAULT : 0;
}

/* ---- signals --------------------------------------------------------------------------------- */

static int64_t wait_for_signal(struct deadlock_copy *c)
{
	const struct deadlock_key key = {
		.kind = DEADLOCK_KEY_SIGNAL, .space = (uint64_t)c->process->pid};
	return deadlock_copy_block(c, &key, "a wait for signals");
}

int64_t deadlock_emulate_pause(struct deadlock_copy *c, const uint64_t *arg)
{
	(void)arg;
	return wait_for_signal(c);
}

int64_t deadlock_emulate_sigwait(struct deadlock_copy *c, const uint64_t *arg)
{
	return arg[2] ? -EAGAIN : wait_for_signal(c);
}

/* ---- System V and file locks ----------------------------------------------------------------- */

int64_t deadlock_emulate_semop(struct deadlock_copy *c, const uint64_t *arg)
{
	struct sembuf op[DEADLOCK_COPY_VECTOR_MAX];
	struct deadlock_key awaited = {.kind = DEADLOCK_KEY_SYSV_SEM, .id = arg[0]};
	const size_t nr = arg[2] < BASE_COUNT(op) ? (size_t)arg[2] : BASE_COUNT(op);
	bool would_wait = false;
	if (!deadlock_copy_peek(c, arg[1], op, nr * sizeof *op))
		return -EFAULT;
	deadlock_world_note_undo(c->world, (int)arg[0], op, nr);
	for (size_t i = 0; i < nr; i++) {
		const int value = semctl((int)arg[0], op[i].sem_num, GETVAL);
		if (op[i].sem_op < 0 && value < -op[i].sem_op && !(op[i].sem_flg & IPC_NOWAIT)) {
			would_wait = true;
			awaited.at = op[i].sem_num;
		}
	}
	if (would_wait)
		return deadlock_copy_block(c, &awaited, "semop");
	for (size_t i = 0; i < nr; i++) {
		awaited.at = op[i].sem_num;
		if (op[i].sem_op) /* less may end a wait for zero */
			deadlock_copy_event(c, &awaited);
	}
	return 0;
}

int64_t deadlock_emulate_msgsnd(struct deadlock_copy *c, const uint64_t *arg)
{
	const struct deadlock_key key = {.kind = DEADLOCK_KEY_SYSV_QUEUE, .id = arg[0]};
	deadlock_copy_event(c, &key);
	return 0;
}

/* A made-up message of one zero byte and the type that was asked for. */
int64_t deadlock_emulate_msgrcv(struct deadlock_copy *c, const uint64_t *arg)
{
	const struct deadlock_key key = {.kind = DEADLOCK_KEY_SYSV_QUEUE, .id = arg[0]};
	const int64_t wanted = (int64_t)arg[3], type = wanted > 0 ? wanted : 1;
	if (!c->is_first)
		return deadlock_copy_block(c, &key, "msgrcv");
	memset(c->io, 0, DEADLOCK_COPY_IO_MAX);
	const size_t size = arg[2] < DEADLOCK_COPY_IO_MAX ? (size_t)arg[2] : DEADLOCK_COPY_IO_MAX;
	if (!deadlock_copy_poke(c, arg[1], &type, sizeof type) ||
		!deadlock_copy_poke(c, arg[1] + sizeof type, c->io, size))
		return -EFAULT;
	deadlock_copy_event(c, &key); /* room for a thread that waits to send */
	return (int64_t)size;
}
