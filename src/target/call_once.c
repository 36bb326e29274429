/* SPDX-License-Identifier: Apache-2.0 */
/* call_once.c - what is done once: later threads find what the first one has made. */
#include "target/target.h"

#include <pthread.h>
#include <threads.h>

#define AT TARGET_STUB

/* A call that is going on. The function has no argument: the innermost call is the thread's. (One
 * that was left by an exception stays, and is never looked at.) */
struct once {
	const void *object;
	void (*make)(void);
	bool made;
};
static __thread struct once *innermost __attribute__((tls_model("initial-exec")));

static TARGET_BETWEEN void call_once_make(void)
{
	struct once *own = innermost;
	own->make();
	own->made = true;
	(void)longpole_target_tells(own->object);
}

int longpole_at_pthread_once(pthread_once_t *object, void (*function)(void));
AT int longpole_at_pthread_once(pthread_once_t *object, void (*function)(void))
{
	TARGET_UNLESS_ATTACHED(pthread_once(object, function));
	struct once own = {object, function, false}, *outer = innermost;
	longpole_target_let_see(true);
	innermost = &own;
	int result = TARGET_CALL(pthread_once(object, call_once_make));
	innermost = outer;
	if (!result && !own.made)
		longpole_target_told(object);
	return result;
}

void longpole_at_call_once(once_flag *object, void (*function)(void));
AT void longpole_at_call_once(once_flag *object, void (*function)(void))
{
	if (!longpole_target_attached()) {
		call_once(object, function);
		return;
	}
	struct once own = {object, function, false}, *outer = innermost;
	longpole_target_let_see(true);
	innermost = &own;
	call_once(object, call_once_make);
	innermost = outer;
	if (!own.made)
		longpole_target_told(object);
}
