/* SPDX-License-Identifier: Apache-2.0 */
/* call_queue.c - message queues, POSIX's and System V's: their units are messages. */
#include "target/target.h"

#include <errno.h>
#include <fcntl.h>
#include <mqueue.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <time.h>

#define AT      TARGET_STUB
#define WORD(p) ((uint64_t)(uintptr_t)(p))

/* A message could be received as soon as the call to send it had begun. object 0: of a queue that
 * is not known. */
static void call_queue_sent(
	uint64_t object, const void *p, size_t bytes, uint64_t file, uint64_t before)
{
	int saved = errno;
	longpole_target_range(false, p, bytes);
	if (object)
		longpole_target_call(CALL_sent, before, before, object, 1, 0, 0);
	longpole_target_call(CALL_write, before, target_call_ticks(), WORD(p), bytes, file, 0);
	errno = saved;
}

static void call_queue_received(
	uint64_t object, const void *p, size_t bytes, uint64_t file, uint64_t before)
{
	int saved = errno;
	uint64_t after = target_call_ticks();
	if (object)
		longpole_target_call(CALL_received, before, after, object, 1, 0, 0);
	longpole_target_call(CALL_read, before, after, WORD(p), bytes, file, 0);
	longpole_target_range(true, p, bytes);
	errno = saved;
}

/* ---- POSIX's: descriptors; each opening of a queue has its own ------------------------------- */

static uint64_t call_queue_object_of(mqd_t queue)
{
	struct target_channel c;
	return longpole_target_channel(queue, &c) ? c.gives : 0;
}

/* (The last two are there only where it is made.) */
mqd_t longpole_at_mq_open(const char *name, int flags, mode_t mode, struct mq_attr *attributes);
AT mqd_t longpole_at_mq_open(const char *name, int flags, mode_t mode, struct mq_attr *attributes)
{
	mqd_t queue = mq_open(name, flags, mode, attributes);
	int saved = errno;
	struct mq_attr is;
	if (queue >= 0 && longpole_target_attached() && !mq_getattr(queue, &is))
		longpole_target_channel_opened(queue, (uint64_t)is.mq_curmsgs);
	errno = saved;
	return queue;
}

#define MQ_SEND(name, parameters, arguments)                                                       \
	TARGET_AFTER(int, name, parameters, arguments, {                                           \
		if (!result)                                                                       \
			call_queue_sent(                                                           \
				call_queue_object_of(queue), p, bytes, (uint64_t)queue, before);   \
	})
#define MQ_RECEIVE(name, parameters, arguments)                                                    \
	TARGET_AFTER(ssize_t, name, parameters, arguments, {                                       \
		if (result >= 0)                                                                   \
			call_queue_received(call_queue_object_of(queue), p, (size_t)result,        \
				(uint64_t)queue, before);                                          \
	})
MQ_SEND(mq_send, (mqd_t queue, const char *p, size_t bytes, unsigned priority),
	(queue, p, bytes, priority))
MQ_SEND(mq_timedsend,
	(mqd_t queue, const char *p, size_t bytes, unsigned priority, const struct timespec *until),
	(queue, p, bytes, priority, until))
MQ_RECEIVE(mq_receive, (mqd_t queue, char *p, size_t bytes, unsigned *priority),
	(queue, p, bytes, priority))
MQ_RECEIVE(mq_timedreceive,
	(mqd_t queue, char *p, size_t bytes, unsigned *priority, const struct timespec *until),
	(queue, p, bytes, priority, until))

/* ---- System V's: a receiver asks for a type, or gets to know it ---------------------------- */

static uint64_t object_of_type(int id, const void *message)
{
	return MEMORY_OBJECT_MESSAGES(id, *(const long *)message);
}

TARGET_AFTER(int, msgsnd, (int id, const void *message, size_t bytes, int flags),
	(id, message, bytes, flags), {
		if (!result)
			call_queue_sent(object_of_type(id, message), message, sizeof(long) + bytes,
				(uint64_t)id, before);
	})
TARGET_AFTER(ssize_t, msgrcv, (int id, void *message, size_t bytes, long type, int flags),
	(id, message, bytes, type, flags), {
		if (result >= 0)
			call_queue_received(flags & MSG_COPY ? 0 : object_of_type(id, message),
				message, sizeof(long) + (size_t)result, (uint64_t)id, before);
	})
