/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stdio.c - streams. libc's own calls of read and write inside them cannot be intercepted,
 * and most calls only move bytes in the stream's buffer. What the kernel moved is seen in the
 * buffer's pointers: bytes asked for, plus what the buffer held before, less what it holds after.
 * When that is not zero, io_begin and io_end are written when the call is over, the first with the
 * stamp of the call's beginning. A read that cannot be over without the kernel is begun at once: it
 * may last, and what the thread does meanwhile must not be known before it.
 *
 * How much scanf and reads of wide characters consumed nobody says; what came is what lies in the
 * buffer when it was filled anew, that is the last of it where one call filled it several times.
 *
 * Exact for a stream that one thread uses at a time. Not seen: writes of wide characters, and calls
 * that libc makes on streams itself.
 */
#ifndef __NO_INLINE__
#define __NO_INLINE__ 1 /* <stdio.h> shall not define what we define */
#endif
#include "preload/preload.h"
#include "preload/real.h"

#include <ctype.h>
#include <stdio_ext.h>
#include <string.h>
#include <wchar.h>

#undef fread_unlocked
#undef fwrite_unlocked

enum { /* bits of glibc's FILE */
	STREAM_EOF = 0x10,
	STREAM_ERROR = 0x20,
	STREAM_PUTTING = 0x800,
};

#define OUTPUT stdout /* allowed: the program's, which we watch */

struct stream_call {
	FILE *stream;
	uint64_t begin_tsc, site;
	int64_t held; /* in the buffer: unread, or unwritten */
	const char *read_ptr, *read_end;
	int flags;
	bool open, writes;
	bool begun; /* io_begin is written */
	struct preload_io io;
};

static int64_t held_bytes(const FILE *f, bool writes)
{
	if (writes)
		return f->_flags & STREAM_PUTTING ? f->_IO_write_ptr - f->_IO_write_base : 0;
	return f->_flags & STREAM_PUTTING ? 0 : f->_IO_read_end - f->_IO_read_ptr;
}

/* Characters of a wide stream that are not read yet; bytes that no character was made of are in the
 * buffer that others have, too. */
static int64_t held_wide(const FILE *f)
{
	const struct {
		const wchar_t *read_ptr, *read_end;
	} *wide = (const void *)f->_wide_data;
	return f->_mode > 0 && wide ? wide->read_end - wide->read_ptr : 0;
}

/* Can the call of n bytes, or wide characters, be over without the kernel? */
static bool is_in_buffer(const FILE *f, uint64_t n, bool writes)
{
	if (f->_mode > 0)
		return writes || n <= (uint64_t)held_wide(f);
	if (writes)
		return (f->_flags & STREAM_PUTTING) && f->_IO_write_end > f->_IO_write_ptr &&
		       n <= (uint64_t)(f->_IO_write_end - f->_IO_write_ptr);
	return n <= (uint64_t)held_bytes(f, false);
}

static void stream_begin(
	struct stream_call *call, FILE *stream, uint64_t nr_bytes, bool writes, uint64_t site)
{
	call->open = stream && stream->_fileno >= 0 && !is_in_buffer(stream, nr_bytes, writes) &&
		     preload_active();
	if (!call->open)
		return;
	call->stream = stream;
	call->site = site;
	call->writes = writes;
	call->flags = stream->_flags;
	call->held = held_bytes(stream, writes);
	call->read_ptr = stream->_IO_read_ptr;
	call->read_end = stream->_IO_read_end;
	call->begun = !writes && !(call->flags & (STREAM_EOF | STREAM_ERROR | STREAM_PUTTING)) &&
		      ((!call->held && !held_wide(stream)) ||
			      (nr_bytes != UINT64_MAX && stream->_mode <= 0));
	if (call->begun)
		preload_io_begin(&call->io, TRACE_IO_read, stream->_fileno,
			nr_bytes != UINT64_MAX ? nr_bytes : 0, site);
	else
		call->begin_tsc = preload_now();
}

static int64_t filled_bytes(const struct stream_call *call)
{
	const FILE *f = call->stream;
	bool filled = call->begun || f->_IO_read_end != call->read_end ||
		      f->_IO_read_ptr < call->read_ptr;
	return filled ? f->_IO_read_end - f->_IO_read_base : 0;
}

/* `moved`: between the program and the stream; NOT_KNOWN: see filled_bytes(). */
#define NOT_KNOWN INT64_MIN
static void stream_end(struct stream_call *call, int64_t moved)
{
	if (!call->open)
		return;
	const FILE *f = call->stream;
	int64_t left = held_bytes(f, call->writes), result;
	int news = f->_flags & ~call->flags, saved_errno = errno;
	result = moved == NOT_KNOWN ? filled_bytes(call)
		 : call->writes     ? moved + call->held - left
				    : moved + left - call->held;
	if (result < 0)
		result = 0;
	if (news & STREAM_ERROR)
		result = -1;
	if (call->begun)
		preload_io_end(&call->io, result);
	else if (result != 0 || (!call->writes && (news & STREAM_EOF)))
		preload_io_past(call->writes ? TRACE_IO_write : TRACE_IO_read,
			preload_fd_object(f->_fileno), result > 0 ? (uint64_t)result : 0,
			call->site, call->begin_tsc, result);
	errno = saved_errno;
}

/*
 * STREAM: name, result type, parameters, arguments, stream, what it does, bytes known before
 * (UNKNOWN: never skip), expression of `result` for bytes moved.
 */
#define READS   false
#define WRITES  true
#define UNKNOWN UINT64_MAX
#define STREAM(name, result_type, parameters, arguments, stream, direction, nr_bytes, moved)       \
	PRELOAD_EXPORT result_type name parameters                                                 \
	{                                                                                          \
		struct stream_call call;                                                           \
		stream_begin(&call, stream, nr_bytes, direction, PRELOAD_SITE);                    \
		result_type result = PRELOAD_REAL(name) arguments;                                 \
		stream_end(&call, (int64_t)(moved));                                               \
		return result;                                                                     \
	}

/* With arguments as a format has them. */
#define FORMATTED(name, last, parameters, call)                                                    \
	PRELOAD_EXPORT int name parameters;                                                        \
	int name parameters                                                                        \
	{                                                                                          \
		va_list list;                                                                      \
		va_start(list, last);                                                              \
		int result = call;                                                                 \
		va_end(list);                                                                      \
		return result;                                                                     \
	}

/* ---- reading --------------------------------------------------------------------------------- */

int __uflow(FILE *f);
int __overflow(FILE *f, int c);
STREAM(fread, size_t, (void *to, size_t size, size_t n, FILE *f), (to, size, n, f), f, READS,
	size *n, size *result)
STREAM(fread_unlocked, size_t, (void *to, size_t size, size_t n, FILE *f), (to, size, n, f), f,
	READS, size *n, size *result)
STREAM(fgets, char *, (char *to, int n, FILE *f), (to, n, f), f, READS, UNKNOWN,
	result ? strlen(result) : 0)
STREAM(fgets_unlocked, char *, (char *to, int n, FILE *f), (to, n, f), f, READS, UNKNOWN,
	result ? strlen(result) : 0)
STREAM(getdelim, ssize_t, (char **to, size_t *n, int end, FILE *f), (to, n, end, f), f, READS,
	UNKNOWN, result > 0 ? result : 0)
STREAM(fgetc, int, (FILE * f), (f), f, READS, 1, result != EOF)
STREAM(__uflow, int, (FILE * f), (f), f, READS, 1, result != EOF)
PRELOAD_ALIAS(__getdelim, getdelim)
PRELOAD_ALIAS(getc, fgetc)
PRELOAD_ALIAS(_IO_getc, fgetc)

PRELOAD_EXPORT ssize_t getline(char **to, size_t *n, FILE *f)
{
	struct stream_call call;
	stream_begin(&call, f, UNKNOWN, READS, PRELOAD_SITE);
	ssize_t result = PRELOAD_REAL(getdelim)(to, n, '\n', f);
	stream_end(&call, result > 0 ? result : 0);
	return result;
}

PRELOAD_EXPORT int getchar(void)
{
	struct stream_call call;
	stream_begin(&call, stdin, 1, READS, PRELOAD_SITE);
	int result = PRELOAD_REAL(fgetc)(stdin);
	stream_end(&call, result != EOF);
	return result;
}

STREAM(fgetwc, wint_t, (FILE * f), (f), f, READS, 1, NOT_KNOWN)
STREAM(fgetwc_unlocked, wint_t, (FILE * f), (f), f, READS, 1, NOT_KNOWN)
STREAM(fgetws, wchar_t *, (wchar_t * to, int n, FILE *f), (to, n, f), f, READS, UNKNOWN, NOT_KNOWN)
STREAM(fgetws_unlocked, wchar_t *, (wchar_t * to, int n, FILE *f), (to, n, f), f, READS, UNKNOWN,
	NOT_KNOWN)
PRELOAD_ALIAS(getwc, fgetwc)
PRELOAD_ALIAS(getwc_unlocked, fgetwc_unlocked)

PRELOAD_EXPORT wint_t getwchar(void)
{
	struct stream_call call;
	stream_begin(&call, stdin, 1, READS, PRELOAD_SITE);
	wint_t result = PRELOAD_REAL(fgetwc)(stdin);
	stream_end(&call, NOT_KNOWN);
	return result;
}

/* Is nothing but space in the buffer, and the format passes over space? */
static bool scans_beyond(const FILE *f, const char *format)
{
	bool skips = isspace((unsigned char)*format) != 0;
	if (*format == '%') {
		format += 1 + strspn(format + 1, "*0123456789hlLjztqm");
		skips = !strchr("c[n%C", *format);
	}
	for (const char *c = f->_IO_read_ptr; skips && c < f->_IO_read_end; c++)
		skips = isspace((unsigned char)*c) != 0;
	return skips;
}

/* The end of a line is left behind when its number is read: the next call waits for more. */
static void scan_begin(struct stream_call *call, FILE *f, const char *format, uint64_t site)
{
	enum { NO_MORE = STREAM_EOF | STREAM_ERROR | STREAM_PUTTING };
	stream_begin(call, f, UNKNOWN, READS, site);
	if (!call->open || call->begun || call->flags & NO_MORE || !scans_beyond(f, format))
		return;
	call->begun = true;
	preload_io_begin(&call->io, TRACE_IO_read, f->_fileno, 0, site);
}

/* What %a means is the only difference between those of C99 and the older ones, and <stdio.h> gives
 * to both the same names. */
#define SCAN(kind, symbol)                                                                         \
	static int scan_##kind(FILE *f, const char *format, va_list list, uint64_t site)           \
	{                                                                                          \
		struct stream_call call;                                                           \
		scan_begin(&call, f, format, site);                                                \
		int result = PRELOAD_REAL(symbol##vfscanf)(f, format, list);                       \
		stream_end(&call, NOT_KNOWN);                                                      \
		return result;                                                                     \
	}                                                                                          \
	int scanf_##kind(const char *format, ...) __asm__(#symbol "scanf");                        \
	int fscanf_##kind(FILE *f, const char *format, ...) __asm__(#symbol "fscanf");             \
	int vscanf_##kind(const char *format, va_list list) __asm__(#symbol "vscanf");             \
	int vfscanf_##kind(FILE *f, const char *format, va_list list) __asm__(#symbol "vfscanf");  \
	FORMATTED(scanf_##kind, format, (const char *format, ...),                                 \
		scan_##kind(stdin, format, list, PRELOAD_SITE))                                    \
	FORMATTED(fscanf_##kind, format, (FILE * f, const char *format, ...),                      \
		scan_##kind(f, format, list, PRELOAD_SITE))                                        \
	PRELOAD_EXPORT int vscanf_##kind(const char *format, va_list list)                         \
	{                                                                                          \
		return scan_##kind(stdin, format, list, PRELOAD_SITE);                             \
	}                                                                                          \
	PRELOAD_EXPORT int vfscanf_##kind(FILE *f, const char *format, va_list list)               \
	{                                                                                          \
		return scan_##kind(f, format, list, PRELOAD_SITE);                                 \
	}
SCAN(gnu, )
SCAN(c99, __isoc99_)

/* ---- writing --------------------------------------------------------------------------------- */

STREAM(fwrite, size_t, (const void *from, size_t size, size_t n, FILE *f), (from, size, n, f), f,
	WRITES, size *n, size *result)
STREAM(fwrite_unlocked, size_t, (const void *from, size_t size, size_t n, FILE *f),
	(from, size, n, f), f, WRITES, size *n, size *result)
STREAM(fputs, int, (const char *from, FILE *f), (from, f), f, WRITES, UNKNOWN,
	result >= 0 ? strlen(from) : 0)
STREAM(fputs_unlocked, int, (const char *from, FILE *f), (from, f), f, WRITES, UNKNOWN,
	result >= 0 ? strlen(from) : 0)
STREAM(puts, int, (const char *from), (from), OUTPUT, WRITES, UNKNOWN,
	result >= 0 ? strlen(from) + 1 : 0)
STREAM(fputc, int, (int c, FILE *f), (c, f), f, WRITES, 1, result != EOF)
STREAM(putchar, int, (int c), (c), OUTPUT, WRITES, 1, result != EOF)
STREAM(__overflow, int, (FILE * f, int c), (f, c), f, WRITES, UNKNOWN, c != EOF && result != EOF)
STREAM(fflush, int, (FILE * f), (f), f ? f : OUTPUT, WRITES, UNKNOWN, 0 * result)
STREAM(fflush_unlocked, int, (FILE * f), (f), f ? f : OUTPUT, WRITES, UNKNOWN, 0 * result)
PRELOAD_ALIAS(putc, fputc)
PRELOAD_ALIAS(_IO_putc, fputc)

static int stdio_print(FILE *f, const char *format, va_list list, uint64_t site)
{
	struct stream_call call;
	stream_begin(&call, f, UNKNOWN, WRITES, site);
	int result = PRELOAD_REAL(vfprintf)(f, format, list);
	stream_end(&call, result > 0 ? result : 0);
	return result;
}

static int print_checked(FILE *f, int flag, const char *format, va_list list, uint64_t site)
{
	struct stream_call call;
	stream_begin(&call, f, UNKNOWN, WRITES, site);
	int result = PRELOAD_REAL(__vfprintf_chk)(f, flag, format, list);
	stream_end(&call, result > 0 ? result : 0);
	return result;
}

FORMATTED(
	printf, format, (const char *format, ...), stdio_print(OUTPUT, format, list, PRELOAD_SITE))
FORMATTED(fprintf, format, (FILE * f, const char *format, ...),
	stdio_print(f, format, list, PRELOAD_SITE))
FORMATTED(__printf_chk, format, (int flag, const char *format, ...),
	print_checked(OUTPUT, flag, format, list, PRELOAD_SITE))
FORMATTED(__fprintf_chk, format, (FILE * f, int flag, const char *format, ...),
	print_checked(f, flag, format, list, PRELOAD_SITE))

PRELOAD_EXPORT int vprintf(const char *format, va_list list)
{
	return stdio_print(OUTPUT, format, list, PRELOAD_SITE);
}

PRELOAD_EXPORT int vfprintf(FILE *f, const char *format, va_list list)
{
	return stdio_print(f, format, list, PRELOAD_SITE);
}

PRELOAD_EXPORT int __vprintf_chk(int flag, const char *format, va_list list);
int __vprintf_chk(int flag, const char *format, va_list list)
{
	return print_checked(OUTPUT, flag, format, list, PRELOAD_SITE);
}

PRELOAD_EXPORT int __vfprintf_chk(FILE *f, int flag, const char *format, va_list list);
int __vfprintf_chk(FILE *f, int flag, const char *format, va_list list)
{
	return print_checked(f, flag, format, list, PRELOAD_SITE);
}

/* ---- opening and closing --------------------------------------------------------------------- */

PRELOAD_EXPORT FILE *fopen(const char *path, const char *mode)
{
	uint64_t begin_tsc = preload_now_if(preload_active());
	FILE *f = PRELOAD_REAL(fopen)(path, mode);
	if (f)
		preload_fd_opened(f->_fileno);
	if (begin_tsc)
		preload_io_lasted(TRACE_IO_open, PRELOAD_SITE, begin_tsc, f ? 0 : -1);
	return f;
}
PRELOAD_ALIAS(fopen64, fopen)

PRELOAD_EXPORT FILE *freopen(const char *path, const char *mode, FILE *f)
{
	preload_fd_close(f->_fileno, PRELOAD_SITE);
	FILE *result = PRELOAD_REAL(freopen)(path, mode, f);
	if (result)
		preload_fd_opened(result->_fileno);
	return result;
}
PRELOAD_ALIAS(freopen64, freopen)

/* After the call there is neither a stream nor a descriptor to look at, and it is not known before
 * whether it will write. Whoever reads may see the end of file before the call returns, so the
 * closing is stamped as its beginning, after that of the write. */
PRELOAD_EXPORT int fclose(FILE *f)
{
	uint64_t begin_tsc = preload_now_if(preload_active()), object = 0;
	int64_t held = f->_mode <= 0 && preload_active() ? held_bytes(f, true) : 0;
	if (held > 0 && f->_fileno >= 0)
		object = preload_fd_object(f->_fileno);
	struct preload_close end = preload_fd_look_at_end(f->_fileno);
	preload_fd_forget(f->_fileno);
	int result = PRELOAD_REAL(fclose)(f), saved_errno = errno;
	if (object)
		PRELOAD_RECORD_AT(
			begin_tsc, io_begin, object, TRACE_IO_write, (uint64_t)held, PRELOAD_SITE);
	preload_record_close(&end, begin_tsc, PRELOAD_SITE);
	errno = saved_errno;
	if (object) {
		struct preload_io io = {.object = object,
			.begin_tsc = begin_tsc,
			.site = PRELOAD_SITE,
			.op = TRACE_IO_write,
			.open = true};
		preload_io_end(&io, result == 0 ? held : -1);
	}
	return result;
}

/* LeakSanitizer may end the program before libc flushes: then the output is lost without us, too. */
extern void __lsan_do_leak_check(void) __attribute__((weak));

/* Not locked: libc's own flush at exit is not either, for a thread that is being stopped may hold
 * the lock. */
void preload_flush_stdout(void)
{
	if (preload_active() && !__lsan_do_leak_check && __fpending(OUTPUT) > 0)
		fflush_unlocked(OUTPUT);
}
