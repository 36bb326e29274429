/* SPDX-License-Identifier: Apache-2.0 */
/* v8.h - what of V8's public interface is called: no V8 is needed to build. Its functions are found
 * by their names in C++, which are those of every V8 since 2020 (Node 14). */
#ifndef LONGPOLE_RUNTIME_NODE_V8_H
#define LONGPOLE_RUNTIME_NODE_V8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { /* v8::JitCodeEventOptions */
	V8_CODE_ENUMERATES = 1,
};
enum v8_event { /* v8::JitCodeEvent::EventType */
	V8_CODE_ADDED,
	V8_CODE_MOVED,
	V8_CODE_REMOVED,
	V8_CODE_LINE,
	V8_CODE_LINES_BEGIN,
	V8_CODE_LINES_END,
};
enum { V8_GC_ALL = 0x1f }; /* v8::GCType */

struct v8_code_event { /* v8::JitCodeEvent */
	int32_t event, type;
	uintptr_t start;
	size_t nr_bytes;
	void *script;
	void *data;
	void *wasm;
	union {
		struct {
			const char *text;
			size_t nr_bytes;
		} name; /* V8_CODE_ADDED */
		struct {
			size_t offset, position;
			int32_t kind;
		} line;              /* V8_CODE_LINE */
		uintptr_t new_start; /* V8_CODE_MOVED */
	};
	void *isolate;
};

#define V8_TRY_GET_CURRENT "_ZN2v87Isolate13TryGetCurrentEv"
#define V8_GET_CURRENT     "_ZN2v87Isolate10GetCurrentEv" /* where there is none of the former */
/* Of versions before 2022: a key of pthread's, 0 before V8 has made it */
#define V8_ISOLATE_KEY "_ZN2v88internal7Isolate12isolate_key_E"
#define V8_IN_CONTEXT  "_ZN2v87Isolate9InContextEv"
#define V8_SET_CODE_HANDLER                                                                        \
	"_ZN2v87Isolate22SetJitCodeEventHandlerENS_19JitCodeEventOptionsEPFvPKNS_12JitCodeEventEE"
#define V8_ADD_GC_PROLOGUE                                                                         \
	"_ZN2v87Isolate21AddGCPrologueCallbackEPFvPS0_NS_6GCTypeENS_15GCCallbackFlagsEPvES4_S2_"
#define V8_ADD_GC_EPILOGUE                                                                         \
	"_ZN2v87Isolate21AddGCEpilogueCallbackEPFvPS0_NS_6GCTypeENS_15GCCallbackFlagsEPvES4_S2_"

#endif
