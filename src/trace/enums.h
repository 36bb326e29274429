/* SPDX-License-Identifier: Apache-2.0 */
/* enums.h - the values of records' enum fields. Append only: the numbers are in files. */
#ifndef LONGPOLE_TRACE_ENUMS_H
#define LONGPOLE_TRACE_ENUMS_H

/* object.type. object.address of the kernel's: futex: the word's (process 0: shared memory);
 * socket, pipe, file: inode; netdev: interface index; qdisc: (interface index << 32) + handle;
 * disk: major << 20 | minor; kernel_lock: address. System V message queue: its id. */
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
	X(queue, "queue") /* annotated */                                                          \
	X(futex, "futex word")                                                                     \
	X(io_uring, "io_uring")                                                                    \
	X(netdev, "network device")                                                                \
	X(qdisc, "queueing discipline")                                                            \
	X(flow, "packet flow") /* name: PROTOCOL FROM:PORT>TO:PORT */                              \
	X(disk, "disk")                                                                            \
	X(kernel_lock, "kernel lock")                                                              \
	X(message_queue, "message queue") /* POSIX */                                              \
	X(sysv_messages, "System V message queue")                                                 \
	X(team, "OpenMP")                       /* a region's begin and end, its tasks */          \
	X(communicator, "communicator")         /* MPI's; address: what all its ranks agree on */  \
	X(interpreter_lock, "interpreter lock") /* whoever runs the program's language has it */   \
	X(monitor, "monitor")                   /* Java's, of an object */                         \
	X(java_lock, "lock")                    /* of java.util.concurrent */                      \
	X(blocker, "blocker")                   /* what else a thread of Java's waits for */       \
	X(safepoint, "safepoint")               /* at which a Java VM stops its threads */         \
	X(event_loop, "event loop")             /* whoever has its turn has it */                  \
						/* one more type of object: before this line */
enum trace_object_type {
#define X(name, text) TRACE_OBJECT_##name,
	TRACE_OBJECT_TYPES(X)
#undef X
		TRACE_OBJECT_NR
};

/* note_state.flags, beside those of longpole/annotate.h: a runtime says of one of its threads that it
 * does this whenever it runs, from now on (no state: that this is over). */
enum { TRACE_NOTE_KEPT = 1 << 8 };

/* site.offset of a place that is no address of code, but a line of what an interpreter runs, by its
 * number; the module is 0. */
#define TRACE_PLACE_SHIFT      47
#define TRACE_IS_PLACE(offset) ((offset) >> TRACE_PLACE_SHIFT == 1)

/* io_begin.op */
#define TRACE_IO_OPS(X)                                                                            \
	X(read, "read")                                                                            \
	X(write, "write")                                                                          \
	X(accept, "accept")                                                                        \
	X(connect, "connect")                                                                      \
	X(sync, "fsync")                                                                           \
	X(lock, "file lock")                                                                       \
	X(unlink, "unlink")                                                                        \
	X(rename, "rename")                                                                        \
	X(mkdir, "mkdir")                                                                          \
	X(truncate, "truncate")                                                                    \
	X(allocate, "fallocate")                                                                   \
	X(unlock, "file unlock")                                                                   \
	X(aio, "asynchronous I/O")                                                                 \
	X(drain, "tcdrain")                                                                        \
	X(msync, "msync")                                                                          \
	X(sync_all, "sync") /* of all files: of no object, as what follows */                      \
	X(resolve, "name resolution")                                                              \
	X(open, "opening files")                                                                   \
	X(look, "looking files up (stat, readdir)")
enum trace_io {
#define X(name, text) TRACE_IO_##name,
	TRACE_IO_OPS(X)
#undef X
		TRACE_IO_NR
};

/* mpi_*.op */
#define TRACE_MPI_OPS(X)                                                                           \
	X(Init, "MPI_Init")                                                                        \
	X(Init_thread, "MPI_Init_thread")                                                          \
	X(Finalize, "MPI_Finalize")                                                                \
	X(Send, "MPI_Send")                                                                        \
	X(Ssend, "MPI_Ssend")                                                                      \
	X(Rsend, "MPI_Rsend")                                                                      \
	X(Bsend, "MPI_Bsend")                                                                      \
	X(Recv, "MPI_Recv")                                                                        \
	X(Sendrecv, "MPI_Sendrecv")                                                                \
	X(Sendrecv_replace, "MPI_Sendrecv_replace")                                                \
	X(Isend, "MPI_Isend")                                                                      \
	X(Issend, "MPI_Issend")                                                                    \
	X(Irsend, "MPI_Irsend")                                                                    \
	X(Ibsend, "MPI_Ibsend")                                                                    \
	X(Irecv, "MPI_Irecv")                                                                      \
	X(Send_init, "MPI_Send_init")                                                              \
	X(Ssend_init, "MPI_Ssend_init")                                                            \
	X(Rsend_init, "MPI_Rsend_init")                                                            \
	X(Bsend_init, "MPI_Bsend_init")                                                            \
	X(Recv_init, "MPI_Recv_init")                                                              \
	X(Start, "MPI_Start")                                                                      \
	X(Startall, "MPI_Startall")                                                                \
	X(Wait, "MPI_Wait")                                                                        \
	X(Waitall, "MPI_Waitall")                                                                  \
	X(Waitany, "MPI_Waitany")                                                                  \
	X(Waitsome, "MPI_Waitsome")                                                                \
	X(Test, "MPI_Test")                                                                        \
	X(Testall, "MPI_Testall")                                                                  \
	X(Testany, "MPI_Testany")                                                                  \
	X(Testsome, "MPI_Testsome")                                                                \
	X(Barrier, "MPI_Barrier")                                                                  \
	X(Bcast, "MPI_Bcast")                                                                      \
	X(Reduce, "MPI_Reduce")                                                                    \
	X(Allreduce, "MPI_Allreduce")                                                              \
	X(Alltoall, "MPI_Alltoall")                                                                \
	X(Alltoallv, "MPI_Alltoallv")                                                              \
	X(Alltoallw, "MPI_Alltoallw")                                                              \
	X(Gather, "MPI_Gather")                                                                    \
	X(Gatherv, "MPI_Gatherv")                                                                  \
	X(Scatter, "MPI_Scatter")                                                                  \
	X(Scatterv, "MPI_Scatterv")                                                                \
	X(Allgather, "MPI_Allgather")                                                              \
	X(Allgatherv, "MPI_Allgatherv")                                                            \
	X(Reduce_scatter, "MPI_Reduce_scatter")                                                    \
	X(Reduce_scatter_block, "MPI_Reduce_scatter_block")                                        \
	X(Scan, "MPI_Scan")                                                                        \
	X(Exscan, "MPI_Exscan")                                                                    \
	X(Ibarrier, "MPI_Ibarrier")                                                                \
	X(Ibcast, "MPI_Ibcast")                                                                    \
	X(Ireduce, "MPI_Ireduce")                                                                  \
	X(Iallreduce, "MPI_Iallreduce")                                                            \
	X(Ialltoall, "MPI_Ialltoall")                                                              \
	X(Ialltoallv, "MPI_Ialltoallv")                                                            \
	X(Igather, "MPI_Igather")                                                                  \
	X(Iscatter, "MPI_Iscatter")                                                                \
	X(Iallgather, "MPI_Iallgather")                                                            \
	X(Iallgatherv, "MPI_Iallgatherv")                                                          \
	X(Comm_dup, "MPI_Comm_dup")                                                                \
	X(Comm_dup_with_info, "MPI_Comm_dup_with_info")                                            \
	X(Comm_split, "MPI_Comm_split")                                                            \
	X(Comm_split_type, "MPI_Comm_split_type")                                                  \
	X(Comm_create, "MPI_Comm_create")                                                          \
	X(Cart_create, "MPI_Cart_create")                                                          \
	X(Cart_sub, "MPI_Cart_sub")                                                                \
	X(Graph_create, "MPI_Graph_create")                                                        \
	X(Dist_graph_create, "MPI_Dist_graph_create")                                              \
	X(Dist_graph_create_adjacent, "MPI_Dist_graph_create_adjacent")                            \
	X(Comm_free, "MPI_Comm_free")                                                              \
	X(Win_create, "MPI_Win_create")                                                            \
	X(Win_allocate, "MPI_Win_allocate")                                                        \
	X(Win_allocate_shared, "MPI_Win_allocate_shared")                                          \
	X(Win_create_dynamic, "MPI_Win_create_dynamic")                                            \
	X(Win_fence, "MPI_Win_fence")                                                              \
	X(Win_free, "MPI_Win_free")                                                                \
	X(Abort, "MPI_Abort")                                                                      \
	X(Probe, "MPI_Probe")                                                                      \
	X(Iprobe, "MPI_Iprobe")                                                                    \
	X(Mprobe, "MPI_Mprobe")                                                                    \
	X(Improbe, "MPI_Improbe")                                                                  \
	X(Mrecv, "MPI_Mrecv")                                                                      \
	X(Imrecv, "MPI_Imrecv")                                                                    \
	X(Request_get_status, "MPI_Request_get_status")                                            \
	X(Cancel, "MPI_Cancel")                                                                    \
	X(Neighbor_allgather, "MPI_Neighbor_allgather")                                            \
	X(Neighbor_allgatherv, "MPI_Neighbor_allgatherv")                                          \
	X(Neighbor_alltoall, "MPI_Neighbor_alltoall")                                              \
	X(Neighbor_alltoallv, "MPI_Neighbor_alltoallv")                                            \
	X(Neighbor_alltoallw, "MPI_Neighbor_alltoallw")                                            \
	X(Ineighbor_allgather, "MPI_Ineighbor_allgather")                                          \
	X(Ineighbor_allgatherv, "MPI_Ineighbor_allgatherv")                                        \
	X(Ineighbor_alltoall, "MPI_Ineighbor_alltoall")                                            \
	X(Ineighbor_alltoallv, "MPI_Ineighbor_alltoallv")                                          \
	X(Ineighbor_alltoallw, "MPI_Ineighbor_alltoallw")                                          \
	X(Igatherv, "MPI_Igatherv")                                                                \
	X(Iscatterv, "MPI_Iscatterv")                                                              \
	X(Ialltoallw, "MPI_Ialltoallw")                                                            \
	X(Ireduce_scatter, "MPI_Ireduce_scatter")                                                  \
	X(Ireduce_scatter_block, "MPI_Ireduce_scatter_block")                                      \
	X(Iscan, "MPI_Iscan")                                                                      \
	X(Iexscan, "MPI_Iexscan")                                                                  \
	X(Intercomm_create, "MPI_Intercomm_create")                                                \
	X(Comm_spawn, "MPI_Comm_spawn")                                                            \
	X(Comm_spawn_multiple, "MPI_Comm_spawn_multiple")                                          \
	X(Win_post, "MPI_Win_post")                                                                \
	X(Win_start, "MPI_Win_start")                                                              \
	X(Win_complete, "MPI_Win_complete")                                                        \
	X(Win_wait, "MPI_Win_wait")                                                                \
	X(Win_test, "MPI_Win_test")                                                                \
	X(Win_lock, "MPI_Win_lock")                                                                \
	X(Win_unlock, "MPI_Win_unlock")                                                            \
	X(Win_lock_all, "MPI_Win_lock_all")                                                        \
	X(Win_unlock_all, "MPI_Win_unlock_all")                                                    \
	X(Win_flush, "MPI_Win_flush")                                                              \
	X(Win_flush_all, "MPI_Win_flush_all")                                                      \
	X(Win_flush_local, "MPI_Win_flush_local")                                                  \
	X(Win_flush_local_all, "MPI_Win_flush_local_all")                                          \
	X(File_open, "MPI_File_open")                                                              \
	X(File_close, "MPI_File_close")                                                            \
	X(File_set_view, "MPI_File_set_view")                                                      \
	X(File_set_size, "MPI_File_set_size")                                                      \
	X(File_preallocate, "MPI_File_preallocate")                                                \
	X(File_sync, "MPI_File_sync")                                                              \
	X(File_read_all, "MPI_File_read_all")                                                      \
	X(File_write_all, "MPI_File_write_all")                                                    \
	X(File_read_at_all, "MPI_File_read_at_all")                                                \
	X(File_write_at_all, "MPI_File_write_at_all")                                              \
	X(File_read_ordered, "MPI_File_read_ordered")                                              \
	X(File_write_ordered, "MPI_File_write_ordered")
/* A request's name in its process is MPI's handle. A call that is several messages is one request with
 * parts: those have its name and a number from 1. A window's requests have its handle and a kind. */
enum { TRACE_REQUEST_KIND_SHIFT = 47, TRACE_REQUEST_PART_SHIFT = 50 };
#define TRACE_REQUEST_PART(request, part) ((request) | (uint64_t)(part) << TRACE_REQUEST_PART_SHIFT)
/* mpi_*.tag from here on: no program's. mpi_done.peer: the request was cancelled. */
enum { TRACE_MPI_TAG_OWN = 0x7ffffff0, TRACE_MPI_CANCELLED = -2 };
enum trace_mpi {
#define X(name, text) TRACE_MPI_##name,
	TRACE_MPI_OPS(X)
#undef X
		TRACE_MPI_NR
};

/* context.type: what runs in a stream that is no thread's */
#define TRACE_CONTEXTS(X)                                                                          \
	X(none, "thread")                                                                          \
	X(irq, "interrupt")                                                                        \
	X(softirq, "softirq")                                                                      \
	X(timer, "timer interrupt")                                                                \
	X(ipi, "inter-processor interrupt")                                                        \
	X(nmi, "non-maskable interrupt")                                                           \
	X(idle, "idle processor")                                                                  \
	X(recorder, "recorder") /* a thread of the recorder itself: noise to every analysis */
enum trace_context_type {
#define X(name, text) TRACE_CONTEXT_##name,
	TRACE_CONTEXTS(X)
#undef X
		TRACE_CONTEXT_NR
};

/* work.type: what an accelerator, or the thread that feeds it, is busy with */
#define TRACE_WORKS(X)                                                                             \
	X(other, "other")                                                                          \
	X(compute, "compute")                                                                      \
	X(communication, "communication") /* a collective operation, or a message, of ranks */     \
	X(copy, "copy")                                                                            \
	X(launch,                                                                                  \
		"launch") /* a call that gives work to a stream; the way from it to the device */  \
	X(gap, "gap")     /* a stream between two pieces of work that both are there */            \
	X(host, "host")   /* a thread in an operator, or between operators */                      \
	X(sync, "synchronisation")                                                                 \
	X(data, "data loading")                                                                    \
	X(peer, "waiting for a rank") /* of a collective operation: until the last has come */     \
	X(idle, "idle")                                                                            \
	/* one more kind of work: before this line */
enum trace_work_type {
#define X(name, text) TRACE_WORK_##name,
	TRACE_WORKS(X)
#undef X
		TRACE_WORK_NR
};

/* wait_at.state */
#define TRACE_SLEEPS(X)                                                                            \
	X(interruptible, "interruptible")                                                          \
	X(uninterruptible, "uninterruptible") /* disk, page, kernel lock */                        \
	X(stopped, "stopped or traced")                                                            \
	X(dead, "dead")                                                                            \
	X(idle, "idle kernel thread")
enum trace_sleep {
#define X(name, text) TRACE_SLEEP_##name,
	TRACE_SLEEPS(X)
#undef X
		TRACE_SLEEP_NR
};

/* cpu_out.preempted: how the thread left the processor */
enum trace_left {
	TRACE_LEFT_asleep,
	TRACE_LEFT_runnable,
	TRACE_LEFT_unseen,    /* not known, nor when exactly: its leaving was not shown */
	TRACE_LEFT_throttled, /* runnable, but its cgroup's quota was used up */
	TRACE_LEFT_in_fault,  /* waits, in a page fault, for a disk */
	TRACE_LEFT_in_loader, /* waits while exec and the dynamic loader load its program */
	TRACE_LEFT_NR
};

/* task_wait.how */
#define TRACE_TASKS(X)                                                                             \
	X(wait, "another task")                                                                    \
	X(meeting, "another task, which could not go on before this one had come")                 \
	X(sleep, "a time")                                                                         \
	X(outside, "the network or a device")                                                      \
	X(call, "a system call")
enum trace_task {
#define X(name, text) TRACE_TASK_##name,
	TRACE_TASKS(X)
#undef X
		TRACE_TASK_NR
};

/* turn_end.how */
#define TRACE_TURNS(X)                                                                             \
	X(waits, "waits")                                                                          \
	X(ends, "has ended")
enum trace_turn {
#define X(name, text) TRACE_TURN_##name,
	TRACE_TURNS(X)
#undef X
		TRACE_TURN_NR
};

/* disk_begin.op */
#define TRACE_DISK_OPS(X)                                                                          \
	X(read, "read")                                                                            \
	X(write, "write")                                                                          \
	X(flush, "flush")                                                                          \
	X(discard, "discard")                                                                      \
	X(other, "other")
enum trace_disk {
#define X(name, text) TRACE_DISK_##name,
	TRACE_DISK_OPS(X)
#undef X
		TRACE_DISK_NR
};

/* ring_submit.op: the kernel's numbers (IORING_OP_*) */
#define TRACE_RING_OPS(X)                                                                          \
	X(nop, "nop")                                                                              \
	X(readv, "readv")                                                                          \
	X(writev, "writev")                                                                        \
	X(fsync, "fsync")                                                                          \
	X(read_fixed, "read_fixed")                                                                \
	X(write_fixed, "write_fixed")                                                              \
	X(poll_add, "poll_add")                                                                    \
	X(poll_remove, "poll_remove")                                                              \
	X(sync_file_range, "sync_file_range")                                                      \
	X(sendmsg, "sendmsg")                                                                      \
	X(recvmsg, "recvmsg")                                                                      \
	X(timeout, "timeout")                                                                      \
	X(timeout_remove, "timeout_remove")                                                        \
	X(accept, "accept")                                                                        \
	X(async_cancel, "async_cancel")                                                            \
	X(link_timeout, "link_timeout")                                                            \
	X(connect, "connect")                                                                      \
	X(fallocate, "fallocate")                                                                  \
	X(openat, "openat")                                                                        \
	X(close, "close")                                                                          \
	X(files_update, "files_update")                                                            \
	X(statx, "statx")                                                                          \
	X(read, "read")                                                                            \
	X(write, "write")                                                                          \
	X(fadvise, "fadvise")                                                                      \
	X(madvise, "madvise")                                                                      \
	X(send, "send")                                                                            \
	X(recv, "recv")                                                                            \
	X(openat2, "openat2")                                                                      \
	X(epoll_ctl, "epoll_ctl")                                                                  \
	X(splice, "splice")                                                                        \
	X(provide_buffers, "provide_buffers")                                                      \
	X(remove_buffers, "remove_buffers")                                                        \
	X(tee, "tee")                                                                              \
	X(shutdown, "shutdown")                                                                    \
	X(renameat, "renameat")                                                                    \
	X(unlinkat, "unlinkat")                                                                    \
	X(mkdirat, "mkdirat")                                                                      \
	X(symlinkat, "symlinkat")                                                                  \
	X(linkat, "linkat")                                                                        \
	X(msg_ring, "msg_ring")                                                                    \
	X(fsetxattr, "fsetxattr")                                                                  \
	X(setxattr, "setxattr")                                                                    \
	X(fgetxattr, "fgetxattr")                                                                  \
	X(getxattr, "getxattr")                                                                    \
	X(socket, "socket")                                                                        \
	X(uring_cmd, "uring_cmd")                                                                  \
	X(send_zc, "send_zc")                                                                      \
	X(sendmsg_zc, "sendmsg_zc")                                                                \
	X(read_multishot, "read_multishot")                                                        \
	X(waitid, "waitid")                                                                        \
	X(futex_wait, "futex_wait")                                                                \
	X(futex_wake, "futex_wake")                                                                \
	X(futex_waitv, "futex_waitv")                                                              \
	X(fixed_fd_install, "fixed_fd_install")                                                    \
	X(ftruncate, "ftruncate")                                                                  \
	X(bind, "bind")                                                                            \
	X(listen, "listen")                                                                        \
	X(recv_zc, "recv_zc")                                                                      \
	X(epoll_wait, "epoll_wait")                                                                \
	X(readv_fixed, "readv_fixed")                                                              \
	X(writev_fixed, "writev_fixed")                                                            \
	X(pipe, "pipe")
enum trace_ring_op {
#define X(name, text) TRACE_RING_##name,
	TRACE_RING_OPS(X)
#undef X
		TRACE_RING_NR
};

/* affinity.whose */
#define TRACE_WHOSE(X)                                                                             \
	X(own, "this thread's")                                                                    \
	X(tid, "thread of that number")                                                            \
	X(handle, "thread of that pthread_t")                                                      \
	X(token, "thread to be created with that token")
enum trace_whose {
#define X(name, text) TRACE_WHOSE_##name,
	TRACE_WHOSE(X)
#undef X
		TRACE_WHOSE_NR
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
