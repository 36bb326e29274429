/* SPDX-License-Identifier: Apache-2.0 */
/* say.h - threads, objects and events in words, as text.c, json.c and dot.c print them. */
#ifndef LONGPOLE_DEADLOCK_SAY_H
#define LONGPOLE_DEADLOCK_SAY_H

#include "deadlock/deadlock.h"

/* "philosophers (pid 123)" */
void deadlock_say_process(struct base_str *out, const struct deadlock_answer *a, pid_t pid);
/* "thread 124", "process 123" where it has one thread */
void deadlock_say_tid(char *buf, size_t size, const struct deadlock_answer *a, size_t wait);
/* What a wait's key is: "mutex forks+0x28". */
void deadlock_say_object(
	struct base_str *out, const struct deadlock_answer *a, size_t wait, size_t key);
/* An event as `wait`'s process sees it. */
void deadlock_say_key(struct base_str *out, const struct deadlock_answer *a, size_t wait,
	const struct deadlock_key *key);
void deadlock_say_frame(struct base_str *out, const struct deadlock_frame *f);
/* format has one %s */
void deadlock_say_with(struct base_str *out, const char *format, const char *what);
void deadlock_say_finding(
	struct base_str *out, const struct deadlock_answer *a, const struct deadlock_finding *f);
void deadlock_say_headline(struct base_str *out, const struct deadlock_answer *a);
const char *deadlock_finding_name(enum deadlock_finding_kind kind); /* "cycle" */
const char *deadlock_sure_name(enum deadlock_sure sure);
const char *deadlock_edge_name(enum deadlock_edge_why why);

#endif
