/* SPDX-License-Identifier: Apache-2.0 */
/* private.h - parts of an injection; nothing outside of this directory includes it. */
#ifndef LONGPOLE_INJECT_PRIVATE_H
#define LONGPOLE_INJECT_PRIVATE_H

#include "inject/inject.h"
#include "os/proc.h"
#include "symbol/unwind.h"

#include <elf.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/user.h>

/* ---- memory.c: a process's memory, as its mappings and libc's own tables say ------------------- */

struct inject_memory {
	pid_t pid;
	int fd;                       /* /proc/PID/mem */
	char *maps;                   /* /proc/PID/maps */
	uint64_t libc;                /* where it begins; 0: there is none */
	uint64_t code, code_end;      /* its code */
	uint64_t restorer, syscaller; /* "mov $15, %rax; syscall", "syscall; ret" in it */
};
enum base_status inject_memory_open(
	struct inject_memory *m, pid_t pid, struct base_err *err) BASE_MUST_CHECK;
void inject_memory_close(struct inject_memory *m);
bool inject_read(const struct inject_memory *m, uint64_t at, void *to, size_t bytes);
bool inject_write(const struct inject_memory *m, uint64_t at, const void *from, size_t bytes);
/* Address of a function that libc offers; 0: it has none. */
uint64_t inject_function(const struct inject_memory *m, const char *name);
/* The mapping that `at` is in, as it was when the memory was opened. */
bool inject_region(
	const struct inject_memory *m, uint64_t at, uint64_t *ret_start, uint64_t *ret_end);
/* Does a mapped file's path have that in it? */
bool inject_has_path(const char *maps, const char *part);
/* Where its libc and libc's code are; 0: there is none. */
void inject_find_libc(struct inject_memory *m);
/* The text of the maps, to be freed; NULL: they cannot be read. */
char *inject_maps(pid_t pid);

/* ---- check.c ----------------------------------------------------------------------------------- */

enum { INJECT_LOADER_BYTES = 256 };
/* A program's head, and the loader that it asks for; "": none. False: it cannot be read, or is no program. */
bool inject_read_program(int fd, Elf64_Ehdr *head, char loader[INJECT_LOADER_BYTES]);

/* ---- frame.c: what differs between processors -------------------------------------------------- */

enum { INJECT_VECTOR_BYTES = 16384, INJECT_FRAME_BYTES = 512 };
struct inject_state { /* of a stopped thread */
	struct user_regs_struct regs;
	uint64_t blocked; /* signals */
	uint64_t number;  /* of the system call that it sleeps in */
	size_t vector_bytes;
	_Alignas(64) uint8_t vector[INJECT_VECTOR_BYTES]; /* as PTRACE_GETREGSET has it */
};
/* A signal's frame from which rt_sigreturn() makes that state, to lie at *ret_at; returns its bytes.
 * A system call that was interrupted is made again. */
size_t inject_frame(const struct inject_state *s, uint64_t restorer, uint8_t *to, size_t size,
	uint64_t *ret_at);
struct inject_interrupted { /* by a signal: where, and a call's arguments if it was in one */
	uint64_t pc, argument[6];
};
/* Does such a frame, of anybody's, begin there? What is not whole in `bytes` is none. */
bool inject_is_frame(
	const void *at, size_t bytes, uint64_t restorer, struct inject_interrupted *ret);
/* Was that in a system call in which a thread may be led away, too? */
bool inject_was_safe(const struct inject_memory *m, const struct inject_interrupted *i);
/* The registers of a call of `function` with that frame as its caller. */
struct user_regs_struct inject_registers(const struct inject_state *s, uint64_t frame,
	uint64_t function, const uint64_t argument[6]);
/* Is it a system call of which only the kernel knows how much of it is left, or which it ends with EINTR: threads that
 * are in another one are better. */
bool inject_is_delicate_call(uint64_t number);
/* The call that libc makes at `pc`, where the kernel only says that it goes on (restart_syscall). */
uint64_t inject_number_at(const struct inject_memory *m, uint64_t pc);
/* May it be interrupted, and is nothing of libc's half done after it where libc made it? `number` and
 * arguments as /proc/PID/syscall has them. */
bool inject_is_safe_call(uint64_t number, const uint64_t argument[6]);

/* ---- code.c: where a thread that computes stands ----------------------------------------------- */

struct code_map;
struct inject_code {
	const struct inject_memory *memory; /* borrowed */
	struct code_map *map;               /* those that were met */
	size_t nr, capacity;
	uint8_t *stack;
	struct symbol_frame_state state;
};
/* False: no memory. */
bool inject_code_init(struct inject_code *c, const struct inject_memory *m) BASE_MUST_CHECK;
void inject_code_fini(struct inject_code *c);
/* Copies the stack of a thread that stands still. False: it has none that is known. */
bool inject_code_take(struct inject_code *c, const struct user_regs_struct *r) BASE_MUST_CHECK;
/* Is all that it was in the middle of the program's own, nothing libc's, the loader's or an allocator's? The thread may
 * run again meanwhile. What was met once costs little the next time. */
bool inject_code_is_own(struct inject_code *c);

/* ---- thread.c: one thread, stopped and led somewhere else -------------------------------------- */

struct inject_thread {
	const struct inject_memory *memory;
	pid_t tid;
	struct inject_state state;
	uint64_t frame, begin_ns;
	uint64_t stopped_ns; /* of one that was let go */
	bool led;            /* it has been led to a function */
	bool at_return;      /* ... and is about to return from there */
	bool gone;           /* nobody traces it any more */
	int64_t result;      /* of the last system call that was made there */
};
/* Finds one at a safe point, and stops it. */
enum base_status inject_thread_stop(struct inject_thread *t, const struct inject_memory *m,
	struct base_err *err) BASE_MUST_CHECK;
/* Has it call `function`, which is to return within a second. Where a sleep need not be measured
 * again it is gone after that, and returns by itself. The last thing that it is led to. */
enum base_status inject_thread_call(struct inject_thread *t, uint64_t function,
	const uint64_t argument[6], struct base_err *err) BASE_MUST_CHECK;
/* The same for a system call: its result is t->result. */
enum base_status inject_thread_syscall(struct inject_thread *t, long number,
	const uint64_t argument[6], struct base_err *err) BASE_MUST_CHECK;
/* It goes on as if nothing had been. */
void inject_thread_go(struct inject_thread *t);

/* ---- scaffold.c: code and words of the thread that is begun ------------------------------------ */

enum { INJECT_SCAFFOLD_BYTES = 8192, INJECT_CODE_BYTES = 4096 };
enum inject_progress {
	INJECT_WAITS,
	INJECT_BEGUN,
	INJECT_NOT_LOADED,
	INJECT_NO_ENTRY,
	INJECT_REFUSED
};
struct inject_scaffold {       /* what lies behind the code */
	uint64_t functions[6]; /* pthread_self, pthread_detach, dlopen, dlsym, dlerror, gettid */
	uint64_t thread;
	uint64_t refused;
	uint32_t progress; /* enum inject_progress */
	uint32_t tid;      /* of the thread; 0: it has not begun */
	char why[INJECT_TEXT_BYTES + 16];
	char library[256], entry[64];
	uint8_t argument[1024];
};
/* The code; returns its bytes. */
size_t inject_scaffold_code(uint8_t to[INJECT_CODE_BYTES]);

#endif
