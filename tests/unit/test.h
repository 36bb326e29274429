/* SPDX-License-Identifier: Apache-2.0 */
/* test.h - cmocka, with what it wants before it. */
#ifndef LONGPOLE_TESTS_TEST_H
#define LONGPOLE_TESTS_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#endif
