/* SPDX-License-Identifier: Apache-2.0 */
/*
 * message.c - queues of messages: POSIX and System V. Each call is tried without waiting
 * first, to know whether there is a wait.
 */
#include "preload/preload.h"
#include "preload/lock.h"
#include "preload/real.h"

#include <fcntl.h>
#include <sys/syscall.h>

struct message_call {
	uint64_t object, site;
};

static void message_wait_begins(const struct message_call *call, bool full)
{
	PRELOAD_RECORD_WAIT(message_wait, call->site, call->object, full);
}

/* A taker makes room from when it calls: a thread that waits for that may be back before it is. */
static void receive_begins(const struct message_call *call, uint64_t wanted)
{
	PRELOAD_RECORD(message_receive, call->object, wanted, call->site);
}

static void message_received(const struct message_call *call, uint64_t nr_units, uint64_t key)
{
	PRELOAD_RECORD(message_received, call->object, nr_units, key);
}

/* ---- POSIX: descriptors ---------------------------------------------------------------------- */

/* A limit that is no time is refused by the kernel, whatever is in the queue. */
static bool has_limit(const struct timespec *until)
{
	return !until || (preload_is_address(until) && until->tv_sec >= 0 &&
				 preload_has_time(CLOCK_REALTIME, until));
}

static bool posix_call(struct message_call *call, mqd_t queue, uint64_t site)
{
	*call = (struct message_call){.object = preload_fd_object(queue), .site = site};
	return preload_object_type(call->object) == TRACE_OBJECT_message_queue;
}

/* What is in it already, others put there before they were recorded. */
static mqd_t posix_opened(mqd_t queue)
{
	struct mq_attr now = {0};
	if (queue < 0 || !preload_active())
		return queue;
	preload_fd_forget(queue);
	uint64_t object = preload_fd_object(queue);
	if (preload_syscall(SYS_mq_getsetattr, queue, 0, (long)&now, 0, 0, 0) == 0 &&
		now.mq_curmsgs)
		PRELOAD_RECORD(token_set, object, (uint64_t)now.mq_curmsgs);
	return queue;
}

PRELOAD_EXPORT mqd_t mq_open(const char *name, int flags, ...)
{
	va_list list;
	va_start(list, flags);
	mode_t mode = flags & O_CREAT ? va_arg(list, mode_t) : 0;
	struct mq_attr *attributes = flags & O_CREAT ? va_arg(list, struct mq_attr *) : NULL;
	va_end(list);
	return posix_opened(PRELOAD_REAL(mq_open)(name, flags, mode, attributes));
}

mqd_t __mq_open_2(const char *name, int flags);
PRELOAD_EXPORT mqd_t __mq_open_2(const char *name, int flags)
{
	return posix_opened(PRELOAD_REAL(__mq_open_2)(name, flags));
}

PRELOAD_EXPORT int mq_close(mqd_t queue)
{
	preload_fd_forget(queue);
	return PRELOAD_REAL(mq_close)(queue);
}

static const struct timespec past;

#define MQ_SEND(name, parameters, arguments, limit)                                                \
	PRELOAD_EXPORT int name(                                                                   \
		mqd_t queue, const char *text, size_t n, unsigned priority parameters)             \
	{                                                                                          \
		struct message_call call;                                                          \
		if (!preload_active() || !(limit) || !posix_call(&call, queue, PRELOAD_SITE))      \
			return PRELOAD_REAL(name)(queue, text, n, priority arguments);             \
		int saved_errno = errno;                                                           \
		PRELOAD_RECORD(message_send, call.object, 1, priority, call.site);                 \
		int result = PRELOAD_REAL(mq_timedsend)(queue, text, n, priority, &past);          \
		if (result != 0 && errno == ETIMEDOUT) {                                           \
			errno = saved_errno;                                                       \
			message_wait_begins(&call, true);                                          \
			result = PRELOAD_REAL(name)(queue, text, n, priority arguments);           \
		}                                                                                  \
		PRELOAD_RECORD(message_sent, call.object, result == 0);                            \
		return result;                                                                     \
	}
MQ_SEND(mq_send, NOTHING, NOTHING, true)
MQ_SEND(mq_timedsend, UNTIL, A_UNTIL, has_limit(until))

#define MQ_RECEIVE(name, parameters, arguments, limit)                                             \
	PRELOAD_EXPORT ssize_t name(                                                               \
		mqd_t queue, char *text, size_t n, unsigned *priority parameters)                  \
	{                                                                                          \
		struct message_call call;                                                          \
		unsigned own = 0, *key = priority ? priority : &own;                               \
		if (!preload_active() || !(limit) || !posix_call(&call, queue, PRELOAD_SITE))      \
			return PRELOAD_REAL(name)(queue, text, n, priority arguments);             \
		int saved_errno = errno;                                                           \
		receive_begins(&call, 0);                                                          \
		ssize_t result = PRELOAD_REAL(mq_timedreceive)(queue, text, n, key, &past);        \
		if (result < 0 && errno == ETIMEDOUT) {                                            \
			errno = saved_errno;                                                       \
			message_wait_begins(&call, false);                                         \
			result = PRELOAD_REAL(name)(queue, text, n, key arguments);                \
		}                                                                                  \
		message_received(&call, result >= 0, result >= 0 ? *key : 0);                      \
		return result;                                                                     \
	}
MQ_RECEIVE(mq_receive, NOTHING, NOTHING, true)
MQ_RECEIVE(mq_timedreceive, UNTIL, A_UNTIL, has_limit(until))

/* ---- System V: numbers that processes share -------------------------------------------------- */

static uint64_t message_sysv_object(int id)
{
	return (uint32_t)id | (uint64_t)TRACE_OBJECT_sysv_messages << RING_OBJECT_TYPE_SHIFT |
	       RING_OBJECT_SHARED;
}

/* As ipcs(1) writes it. */
static size_t message_add_key(char *text, uint32_t key)
{
	size_t n = 0;
	text[n++] = '0';
	text[n++] = 'x';
	for (int shift = 28; shift >= 0; shift -= 4)
		text[n++] = "0123456789abcdef"[key >> shift & 0xf];
	return n;
}

static void record_size(int id)
{
	struct msqid_ds now = {0};
	if (preload_syscall(SYS_msgctl, id, IPC_STAT, (long)&now, 0, 0, 0) == 0)
		PRELOAD_RECORD(token_set, message_sysv_object(id), now.msg_qbytes);
}

PRELOAD_EXPORT int msgget(key_t key, int flags)
{
	int id = PRELOAD_REAL(msgget)(key, flags);
	char name[16];
	if (id < 0 || !preload_on())
		return id;
	if (key != IPC_PRIVATE) {
		size_t n = message_add_key(name, (uint32_t)key);
		preload_record_text(RING_name,
			(const uint64_t[]){
				message_sysv_object(id), RING_NAME_object, PRELOAD_SITE, n},
			4, name, n);
	}
	record_size(id);
	return id;
}

PRELOAD_EXPORT int msgctl(int id, int command, struct msqid_ds *queue)
{
	int result = PRELOAD_REAL(msgctl)(id, command, queue);
	if (result == 0 && command == IPC_SET && preload_on())
		record_size(id);
	return result;
}

static uint64_t message_units_of(size_t nr_bytes)
{
	return nr_bytes ? nr_bytes : 1;
}

PRELOAD_EXPORT int msgsnd(int id, const void *message, size_t n, int flags)
{
	if (!preload_on() || !preload_is_address(message))
		return PRELOAD_REAL(msgsnd)(id, message, n, flags);
	struct message_call call = {message_sysv_object(id), PRELOAD_SITE};
	int saved_errno = errno;
	PRELOAD_RECORD(message_send, call.object, message_units_of(n),
		(uint64_t)((const struct msgbuf *)message)->mtype, call.site);
	int result = PRELOAD_REAL(msgsnd)(id, message, n, flags | IPC_NOWAIT);
	if (result != 0 && errno == EAGAIN && !(flags & IPC_NOWAIT)) {
		errno = saved_errno;
		message_wait_begins(&call, true);
		result = PRELOAD_REAL(msgsnd)(id, message, n, flags);
	}
	PRELOAD_RECORD(message_sent, call.object, result == 0 ? message_units_of(n) : 0);
	return result;
}

/* MSG_COPY leaves the message where it is. */
PRELOAD_EXPORT ssize_t msgrcv(int id, void *message, size_t n, long type, int flags)
{
	if (!preload_on() || !preload_is_address(message) || flags & MSG_COPY)
		return PRELOAD_REAL(msgrcv)(id, message, n, type, flags);
	struct message_call call = {message_sysv_object(id), PRELOAD_SITE};
	int saved_errno = errno;
	receive_begins(&call, type >= 0 && !(flags & MSG_EXCEPT) ? (uint64_t)type : UINT64_MAX);
	ssize_t result = PRELOAD_REAL(msgrcv)(id, message, n, type, flags | IPC_NOWAIT);
	if (result < 0 && errno == ENOMSG && !(flags & IPC_NOWAIT)) {
		errno = saved_errno;
		message_wait_begins(&call, false);
		result = PRELOAD_REAL(msgrcv)(id, message, n, type, flags);
	}
	if (result < 0)
		message_received(&call, 0, 0);
	else
		message_received(&call, message_units_of((size_t)result),
			(uint64_t)((const struct msgbuf *)message)->mtype);
	return result;
}
