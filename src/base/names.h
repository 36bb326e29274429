/* SPDX-License-Identifier: Apache-2.0 */
/* names.h - names of signals and errors. (glibc has them from 2.32 on, and we run on 2.31.) */
#ifndef LONGPOLE_BASE_NAMES_H
#define LONGPOLE_BASE_NAMES_H

/* "SEGV", static. NULL: no such signal, or one of the real-time ones, which have no names. */
const char *base_signal_name(int number);
/* "EAGAIN", static. NULL: no such error of Linux. 0 is "0". */
const char *base_errno_name(int number);

#endif
