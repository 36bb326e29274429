/* SPDX-License-Identifier: Apache-2.0 */
/* facts.h - what is: processes, their files and memory, the calls that their threads wait in. */
#ifndef LONGPOLE_DEADLOCK_FACTS_H
#define LONGPOLE_DEADLOCK_FACTS_H

#include "deadlock/facts/monitor.h"
#include "deadlock/facts/peers.h"
#include "os/clock.h"
#include "os/proc.h"

#include <sys/sem.h>

/* ---- /proc: parsers of text (proc.c) and readers of files ------------------------------------ */

enum { PROC_TEXT_MAX = 1 << 16 };

struct deadlock_syscall {         /* /proc/PID/task/TID/syscall */
	bool is_running, is_none; /* none: blocked, but not in a system call */
	int64_t call;
	uint64_t arg[6], sp, pc;
};
bool deadlock_parse_syscall(const char *text, struct deadlock_syscall *ret);
bool deadlock_parse_schedstat(const char *text, uint64_t *ret_runs);

struct deadlock_status { /* /proc/PID/status */
	pid_t tracer;
	uid_t uid;
	uint64_t caught; /* signals with a handler */
	unsigned seccomp;
};
bool deadlock_parse_status(const char *text, struct deadlock_status *ret);

/* One "tfd:" line of an epoll's fdinfo; moves *text on; false: no more. */
struct deadlock_epoll_item {
	int fd;
	uint32_t events;
	uint64_t data;
};
bool deadlock_parse_epoll(const char **text, struct deadlock_epoll_item *ret);

/* Of an open /proc/PID/maps: the first shared region at or above `from`, without its path. */
enum deadlock_shared {
	DEADLOCK_SHARED_FOUND,
	DEADLOCK_SHARED_NONE,
	DEADLOCK_SHARED_REFUSED, /* before Linux 6.11, say: the text tells */
};
enum deadlock_shared deadlock_shared_region(int maps_fd, uint64_t from, struct os_region *ret);

struct deadlock_file_lock {              /* a line of /proc/locks */
	bool is_blocked;                 /* "->": waits for the one before */
	bool is_flock, is_ofd, is_write; /* neither: POSIX */
	pid_t pid;                       /* as the reader sees it; -1: open file description lock */
	uint64_t device, inode, start, end;
};
bool deadlock_parse_file_lock(const char **text, struct deadlock_file_lock *ret);

/* ---- a process, as it was when it was first asked for (process.c) ---------------------------- */

enum deadlock_file_kind {
	DEADLOCK_FILE_NONE, /* not open */
	DEADLOCK_FILE_PIPE, /* and FIFOs */
	DEADLOCK_FILE_SOCKET,
	DEADLOCK_FILE_EVENTFD,
	DEADLOCK_FILE_EPOLL,
	DEADLOCK_FILE_MQUEUE,  /* a POSIX message queue */
	DEADLOCK_FILE_REGULAR, /* and directories */
	DEADLOCK_FILE_OTHER,   /* ttys, devices, timerfd, signalfd, inotify ... */
};
struct deadlock_file {
	enum deadlock_file_kind kind;
	bool can_read, can_write;
	bool is_timer;          /* a timerfd: becomes ready by itself */
	bool is_named;          /* a message queue: somebody may still open it */
	bool has_lock;          /* flock, OFD: it belongs to the open file, to its last close */
	bool has_process_lock;  /* POSIX: gone when the process closes any of the file's */
	bool lock_is_inherited; /* flock: another process took it */
	uint64_t device, inode; /* eventfd: inode is its eventfd-id */
	uint64_t peer;          /* socket: the peer's inode on this machine; 0: none that we know */
};

struct deadlock_open_file {
	int fd;
	struct deadlock_file file;
};

struct deadlock_process {
	pid_t pid, parent;
	pid_t shown_as; /* see deadlock_shown_as(); 0: not asked for, then pid */
	uint64_t start_ticks;
	struct deadlock_status status;
	bool has_timers;                /* POSIX timers */
	bool is_gone;                   /* could not be read at all */
	const struct os_region *region; /* sorted; paths are the world's */
	size_t nr_regions;
	bool has_regions, has_files;
	struct deadlock_open_file *file; /* all, sorted by fd: see deadlock_process_files() */
	size_t nr_files;
	bool has_python;
	const struct deadlock_python *python;   /* python.c; NULL: it is none */
	void *unwinder;                         /* frames.c; may be another process's */
	void (*close_unwinder)(void *unwinder); /* NULL: it is */
};

/* Everything that was read for one look. Threads of control: one. */
struct deadlock_world;
enum base_status deadlock_world_open(
	struct deadlock_world **ret, struct base_err *err) BASE_MUST_CHECK;
struct deadlock_world *deadlock_world_close(struct deadlock_world *w);
struct base_arena *deadlock_world_arena(struct deadlock_world *w);
struct base_map *deadlock_world_places(struct deadlock_world *w);
struct base_map *deadlock_world_layouts(struct deadlock_world *w);
/* All processes and their parents, sorted by pid; read once. */
struct deadlock_listed {
	pid_t pid, parent;
};
const struct deadlock_listed *deadlock_world_list(struct deadlock_world *w, size_t *ret_nr);
/* BPF shall be asked rather than /proc, where it can: for the list, of which the pass that found
 * `s` (sorted by tid) saw the parents, and for open files. */
struct deadlock_tasks;
void deadlock_world_use_tasks(struct deadlock_world *w, struct deadlock_tasks *tasks,
	const struct deadlock_sleeper *s, size_t nr);
struct deadlock_tasks *deadlock_world_tasks(const struct deadlock_world *w); /* NULL: none */
/* Processes that are one memory (memory.c), as they were when they were first asked for: pid -> the
 * smallest pid among them, which names the memory; of those alone with theirs there is none. */
const struct base_map *deadlock_world_memories(struct deadlock_world *w);
pid_t deadlock_world_memory_of(struct deadlock_world *w, pid_t pid);
/* False: they could not be had, for lack of memory of ours. */
bool deadlock_world_has_memories(const struct deadlock_world *w);
/* For deadlock_world_memories(): fills `first`. */
enum base_status deadlock_memories_read(
	struct deadlock_world *w, struct base_map *first) BASE_MUST_CHECK;
/* Does the kernel tell us whose memory that task has? */
bool deadlock_memory_is_told(pid_t task);
/* Could they be one memory, of which the kernel does not tell us? */
bool deadlock_memory_may_be_shared(pid_t a, pid_t b);
/* The process, or a thread of it that lives on after the first: /proc/TASK has the process's memory
 * and files. 0: nobody has; it is a kernel's thread, or ended. */
pid_t deadlock_task_of_memory(pid_t pid);
bool deadlock_task_has_memory(pid_t task);
/* The kernel's list of sockets, as it was when it was first asked for. */
const struct deadlock_peers *deadlock_world_peers(struct deadlock_world *w);
/* /proc/locks as it was when it was first asked for; "": unreadable. One read takes milliseconds on
 * some machines: the kernel waits for all processors. */
const char *deadlock_world_locks(struct deadlock_world *w);
/* Sets of System V semaphores of which somebody was seen to take one with SEM_UNDO: programs do so
 * always or never. The kernel does not tell whose such a semaphore is, but it tells which process
 * changed it last. */
enum { DEADLOCK_UNDO_SETS_MAX = 16 };
void deadlock_world_note_undo(
	struct deadlock_world *w, int set, const struct sembuf *op, size_t nr);
const int *deadlock_world_undo_sets(const struct deadlock_world *w, size_t *ret_nr);
/* NULL: no memory. A process that is gone has is_gone. */
struct deadlock_process *deadlock_world_process(struct deadlock_world *w, pid_t pid);
/* NULL: the address is in none of the regions read so far. */
const struct os_region *deadlock_region_at(const struct deadlock_process *p, uint64_t address);
const struct os_region *deadlock_process_region(
	struct deadlock_world *w, struct deadlock_process *p, uint64_t address);
void deadlock_process_regions(struct deadlock_world *w, struct deadlock_process *p);
void deadlock_process_files(struct deadlock_world *w, struct deadlock_process *p);
/* What fd is; also for a descriptor opened after deadlock_process_files(). */
void deadlock_file_of(
	struct deadlock_world *w, struct deadlock_process *p, int fd, struct deadlock_file *ret);
/* Its kind and inode only: a call or two less. Without paths: a file that has one is OTHER. */
void deadlock_file_kind_of(struct deadlock_world *w, struct deadlock_process *p, int fd,
	bool with_paths, struct deadlock_file *ret);
/* The FIFO that a process would open by this name (fifo.c). False: it is none, or to know that one
 * would have to ask a file system. */
bool deadlock_fifo_named(pid_t pid, int directory_fd, const char *name, struct deadlock_file *ret);
/* A text that ends with a NUL, out of some memory. False: it is not all there, or too long. */
typedef bool deadlock_memory_fn(void *ctx, uint64_t address, void *buf, size_t size);
bool deadlock_read_text(
	deadlock_memory_fn *read_memory, void *ctx, uint64_t address, char *text, size_t size);
/* The socket that a process would reach by the address in that memory (fifo.c): of a UNIX one
 * whoever has the name, of TCP whoever listens there and has no room. 0: none that we know. */
uint64_t deadlock_socket_named(struct deadlock_world *w, pid_t pid, deadlock_memory_fn *read_memory,
	void *ctx, uint64_t address, uint64_t bytes);
/* The time that a socket's option lets each call wait; 0: any, or not to be known. */
uint64_t deadlock_socket_limit_ns(pid_t pid, int fd, bool reads);
/* Are there messages with descriptors in a UNIX socket's queue? (Linux 5.11 on tells.) */
bool deadlock_socket_has_descriptors(pid_t pid, int fd);
/* What opening a FIFO with these flags gives to those who wait in opening it: up to two keys. */
size_t deadlock_keys_of_opening(
	const struct deadlock_file *f, uint64_t flags, struct deadlock_key ret[2]);
/* The key of a futex word: shared ones are known by file and offset, at any address. */
void deadlock_key_of_futex(struct deadlock_world *w, struct deadlock_process *p, uint64_t address,
	bool is_private, struct deadlock_key *ret);
/* What reading (writing) this file produces for others: room (data). False: nothing for threads. */
bool deadlock_key_of_reading(const struct deadlock_file *f, struct deadlock_key *ret);
bool deadlock_key_of_writing(const struct deadlock_file *f, struct deadlock_key *ret);
struct deadlock_core;
/* A world of one process that was dumped. The core must outlive it. */
enum base_status deadlock_world_open_core(const struct deadlock_core *core,
	struct deadlock_world **ret, struct base_err *err) BASE_MUST_CHECK;
const struct deadlock_core *deadlock_world_core(const struct deadlock_world *w); /* NULL: live */
/* Memory of a process, alive or dumped; whether it has such a thread. */
bool deadlock_world_read(
	const struct deadlock_world *w, pid_t pid, uint64_t address, void *buf, size_t size);
bool deadlock_world_has_thread(const struct deadlock_world *w, pid_t pid, pid_t tid);
/* Does `pid` live in another PID namespace than we (namespace.c)? */
bool deadlock_world_is_foreign(const struct deadlock_world *w, pid_t pid);
/* Our number of the thread that is `inner` in the PID namespace of `pid`; the same number where
 * that is ours. 0: not a number of a thread, or no thread that we see has it. */
pid_t deadlock_world_thread_of(struct deadlock_world *w, pid_t pid, pid_t inner);
/* The last number of "NSpid:" in /proc/PID/task/TID/status; false: none. */
bool deadlock_parse_innermost_pid(const char *status, pid_t *ret);
/* The number under which /proc and os_read_memory() show what the threads of a process share, its
 * memory and files: its own, or, where its first thread has ended, that of one which lives. */
pid_t deadlock_shown_as(pid_t pid);
/* The same; false: there is nothing (a kernel thread, or it ended), and *ret is pid. */
bool deadlock_is_shown(pid_t pid, pid_t *ret);
pid_t deadlock_process_shown_as(const struct deadlock_process *p);
/* Memory of a live process; false unless all of it could be read. Never writes. */
bool deadlock_read(pid_t pid, uint64_t address, void *buf, size_t size);
/* How often the thread was put on a processor. False: it is gone. */
bool deadlock_runs_of(pid_t pid, pid_t tid, uint64_t *ret_runs);

/* ---- stacks and names (frames.c) ------------------------------------------------------------- */

/* Fills frame and nr_frames; needs sp and pc, does better with registers. */
void deadlock_frames_of(
	struct deadlock_world *world, struct deadlock_process *p, struct deadlock_wait *w);
/* The address of a symbol of the modules whose names begin with "NAME" or "libNAME". */
bool deadlock_symbol_of(struct deadlock_world *w, struct deadlock_process *p, const char *name,
	const char *symbol, uint64_t *ret);
/* libc.so.6 and the like: not the application's own. A file's name without its directory. */
bool deadlock_module_is_runtime(const char *module);
/* "table_lock", "forks+0x28", "0x7f... (allocated memory)". */
void deadlock_name_of_data(struct deadlock_world *w, struct deadlock_process *p, uint64_t address,
	struct base_str *ret);

/* ---- decoding waits (wait.c, futex.c) -------------------------------------------------------- */

/* Of a thread: the call that it is in. kind RUNNING or DISK: none; else UNKNOWN until it is
 * decoded. */
void deadlock_wait_read(struct deadlock_wait *w);
/* Decodes the call. Of futexes by the frames, if there are any. */
void deadlock_wait_decode(struct deadlock_world *world, struct deadlock_wait *w);
void deadlock_wait_decode_futex(
	struct deadlock_world *world, struct deadlock_process *p, struct deadlock_wait *w);
void deadlock_wait_add_key(struct deadlock_wait *w, const struct deadlock_key *key);

/* ---- registers without stopping anybody (tasks.c, bpf/deadlock.bpf.c) ------------------------ */

struct deadlock_tasks; /* the loaded iterator, kept for the life of a session */
enum { DEADLOCK_WHY_MAX = 160 };
/* NULL: not here, and why. */
struct deadlock_tasks *deadlock_tasks_open(char why[DEADLOCK_WHY_MAX]);
struct deadlock_tasks *deadlock_tasks_close(struct deadlock_tasks *t);
/* For tests: as on a kernel before 6.7. */
void deadlock_tasks_forget_walk(struct deadlock_tasks *t);
/* All user threads, sorted by tid. */
enum base_status deadlock_tasks_threads(struct deadlock_tasks *t, struct deadlock_thread **thread,
	size_t *capacity, size_t *nr, struct base_err *err) BASE_MUST_CHECK;
/* Fills registers and registers_source of those waits whose thread is still in the same call (same
 * sp and pc). A pass over the threads of their processes; where these are many, the machine's. */
enum base_status deadlock_tasks_registers(struct deadlock_tasks *t, struct deadlock_wait *wait,
	size_t nr_waits, struct base_err *err) BASE_MUST_CHECK;

/* All open files of the machine: a tenth of what /proc/PID/fd costs. `inode` is the kernel's
 * number, which is not what stat() tells on some file systems. Ends with the first status that is
 * not OK. */
typedef enum base_status deadlock_file_fn(
	void *ctx, pid_t pid, int fd, mode_t mode, uint64_t inode);
enum base_status deadlock_tasks_files(
	struct deadlock_tasks *t, deadlock_file_fn *each, void *ctx, struct base_err *err);
struct deadlock_tasks *deadlock_monitor_tasks(const struct deadlock_monitor *m);

#endif
