/* SPDX-License-Identifier: Apache-2.0 */
/*
 * aio.c - waits for POSIX asynchronous I/O, which threads of libc's own do. What comes
 * through a pipe or a socket is waited for as by poll(); of all else the file is known.
 */
#include "preload/preload.h"
#include "preload/real.h"

struct aio_wait {
	struct preload_io io;
	const struct aiocb *request; /* the first that is not done; NULL: none, or nobody records */
	bool polls;
};

/* new: they are about to be asked for. */
static void aio_wait_begins(
	struct aio_wait *w, const struct aiocb *const list[], int n, bool new, uint64_t site)
{
	*w = (struct aio_wait){.request = NULL};
	if (!preload_active() || !preload_is_address(list))
		return;
	for (int i = 0; i < n && !w->request; i++)
		if (list[i] && (new ? list[i]->aio_lio_opcode != LIO_NOP
				    : aio_error(list[i]) == EINPROGRESS))
			w->request = list[i];
	if (!w->request)
		return;
	unsigned type = preload_object_type(preload_fd_object(w->request->aio_fildes));
	w->polls = type == TRACE_OBJECT_pipe || type == TRACE_OBJECT_socket;
	if (w->polls)
		PRELOAD_RECORD(poll_begin, (uint64_t)n, site);
	else
		preload_io_begin(
			&w->io, TRACE_IO_aio, w->request->aio_fildes, w->request->aio_nbytes, site);
}

static void wait_ends(struct aio_wait *w, int result)
{
	int saved_errno = errno;
	if (w->polls)
		PRELOAD_RECORD(poll_end,
			result == 0 && aio_error(w->request) != EINPROGRESS
				? preload_fd_object(w->request->aio_fildes)
				: 0,
			w->request->aio_lio_opcode == LIO_WRITE,
			result == 0             ? 1
			: saved_errno == EAGAIN ? 0
						: (uint64_t)-saved_errno,
			0);
	else if (w->request)
		preload_io_end(&w->io, result);
	errno = saved_errno;
}

PRELOAD_EXPORT int aio_suspend(
	const struct aiocb *const list[], int n, const struct timespec *limit)
{
	struct aio_wait w;
	aio_wait_begins(&w, list, n, false, PRELOAD_SITE);
	int result = PRELOAD_REAL(aio_suspend)(list, n, limit);
	wait_ends(&w, result);
	return result;
}
PRELOAD_ALIAS(aio_suspend64, aio_suspend)

PRELOAD_EXPORT int lio_listio(int mode, struct aiocb *const list[], int n, struct sigevent *event)
{
	struct aio_wait w = {.request = NULL};
	if (mode == LIO_WAIT)
		aio_wait_begins(&w, (const struct aiocb *const *)list, n, true, PRELOAD_SITE);
	int result = PRELOAD_REAL(lio_listio)(mode, list, n, event);
	wait_ends(&w, result);
	return result;
}
PRELOAD_ALIAS(lio_listio64, lio_listio)

/* What was read has left its pipe or socket. */
PRELOAD_EXPORT ssize_t aio_return(struct aiocb *request)
{
	ssize_t result = PRELOAD_REAL(aio_return)(request);
	if (result <= 0 || request->aio_lio_opcode != LIO_READ || !preload_active())
		return result;
	uint64_t object = preload_fd_object(request->aio_fildes);
	unsigned type = preload_object_type(object);
	if (type == TRACE_OBJECT_pipe || type == TRACE_OBJECT_socket)
		preload_io_past(TRACE_IO_read, object, request->aio_nbytes, PRELOAD_SITE,
			preload_now(), result);
	return result;
}
PRELOAD_ALIAS(aio_return64, aio_return)
