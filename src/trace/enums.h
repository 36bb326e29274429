/* SPDX-License-Identifier: Apache-2.0 */
/* enums.h - the values of records' enum fields. Append only: the numbers are in files. */
#ifndef LONGPOLE_TRACE_ENUMS_H
#define LONGPOLE_TRACE_ENUMS_H

/* object.type */
#define TRACE_OBJECT_TYPES(X)                                                                      \
	X(none, "nothing")                                                                         \
	X(mutex, "mutex")                                                                          \
	X(rwlock, "rwlock")                                                                        \
	X(spin, "spin lock")                                                                       \
	X(once, "once")                                                                            \
	X(cond, "condition variable")                                                              \
	X(barrier, "barrier")                                                                      \
	X(semaphore, "semaphore")                                                                  \
	X(sysv_semaphore, "System V semaphore")                                                    \
	X(pipe, "pipe")                                                                            \
	X(socket, "socket")                                                                        \
	X(listener, "listening socket")                                                            \
	X(eventfd, "eventfd")                                                                      \
	X(timerfd, "timerfd")                                                                      \
	X(epoll, "epoll set")                                                                      \
	X(file, "file")                                                                            \
	X(terminal, "terminal")                                                                    \
	X(other, "descriptor")                                                                     \
	X(queue, "queue") /* annotated */
enum trace_object_type {
#define X(name, text) TRACE_OBJECT_##name,
	TRACE_OBJECT_TYPES(X)
#undef X
		TRACE_OBJECT_NR
};

/* io_begin.op */
#define TRACE_IO_OPS(X)                                                                            \
	X(read, "read")                                                                            \
	X(write, "write")                                                                          \
	X(accept, "accept")                                                                        \
	X(connect, "connect")                                                                      \
	X(sync, "fsync")                                                                           \
	X(lock, "file lock")
enum trace_io {
#define X(name, text) TRACE_IO_##name,
	TRACE_IO_OPS(X)
#undef X
		TRACE_IO_NR
};

/* call_count.category */
#define TRACE_CALLS(X)                                                                             \
	X(io, "I/O")                                                                               \
	X(memory, "memory")                                                                        \
	X(string, "strings")                                                                       \
	X(pthreads, "pthreads")                                                                    \
	X(math, "math")                                                                            \
	X(other, "other")
enum trace_call {
#define X(name, text) TRACE_CALL_##name,
	TRACE_CALLS(X)
#undef X
		TRACE_CALL_NR
};

#endif
