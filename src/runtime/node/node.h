/* SPDX-License-Identifier: Apache-2.0 */
/* node.h - what the files of this room share. Runs inside other people's processes: README.md. */
#ifndef LONGPOLE_RUNTIME_NODE_NODE_H
#define LONGPOLE_RUNTIME_NODE_NODE_H

#include "preload/preload.h"
#include "runtime/node/v8.h"

typedef void node_code_handler(const struct v8_code_event *event);
typedef void node_gc_callback(void *isolate, int type, int flags, void *data);

/* The V8 of this process: set once, before preload_node. */
struct node_found {
	const volatile int32_t *key; /* not before that is set may V8 be asked; NULL: at any time */
	void *(*current)(void);
	bool (*is_in_context)(void *isolate);
	void (*set_code_handler)(void *isolate, int options, node_code_handler *handler);
	/* NULL: it has none */
	void (*add_gc_prologue)(void *isolate, node_gc_callback *call, void *data, int types);
	void (*add_gc_epilogue)(void *isolate, node_gc_callback *call, void *data, int types);
};
extern struct node_found node_found __attribute__((visibility("hidden")));

/* node_code.c - what V8 compiles. */
void node_code_event(const struct v8_code_event *event);

/* node_own.c - what V8 does itself. */
void node_gc_begins(void *isolate, int type, int flags, void *data);
void node_gc_ends(void *isolate, int type, int flags, void *data);

#endif
