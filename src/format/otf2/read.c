/* SPDX-License-Identifier: Apache-2.0 */
/*
 * read.c - an OTF2 archive through libotf2: the global definitions, then one location after the other.
 * So one event file is open at a time, and memory does not grow with their number. The library maps a
 * location's own references to the global ones, and corrects its clock.
 */
#include "format/otf2/items.h"

#include "config.h"

#if LONGPOLE_OTF2

#include <otf2/otf2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

_Static_assert((int)OTF2_GROUP_OF_LOCATIONS == (int)OTF2_GROUP_TYPE_COMM_LOCATIONS &&
		       (int)OTF2_GROUP_OF_RANKS == (int)OTF2_GROUP_TYPE_COMM_GROUP &&
		       (int)OTF2_GROUP_HAS_REFERENCES == (int)OTF2_GROUP_FLAG_GLOBAL_MEMBERS &&
		       OTF2_NONE == OTF2_UNDEFINED_UINT32,
	"the library's numbers");

enum { ITEMS_GIVEN = FORMAT_APART_ITEMS_BYTES / sizeof(struct otf2_item) };

struct otf2_read {
	struct format_apart_giver *giver;
	struct base_err *err;
	bool failed; /* nobody takes what is given, or there is no memory */
	OTF2_Reader *reader;
	const char *path;
	bool is_sion; /* many locations in a file */
	OTF2_LocationRef *location;
	size_t nr_locations, capacity;
	uint32_t now; /* the location that is read */
	uint64_t *nr_other;
	struct otf2_item item[ITEMS_GIVEN];
	size_t nr;
};

/* ---- giving ---------------------------------------------------------------------------------- */

static void otf2_read_give(struct otf2_read *r)
{
	if (r->nr && !r->failed)
		r->failed = !format_apart_give_items(r->giver, r->item, r->nr * sizeof *r->item);
	r->nr = 0;
}

static OTF2_CallbackCode otf2_read_add(struct otf2_read *r, const struct otf2_item *i)
{
	r->item[r->nr++] = *i;
	if (r->nr == ITEMS_GIVEN)
		otf2_read_give(r);
	return r->failed ? OTF2_CALLBACK_INTERRUPT : OTF2_CALLBACK_SUCCESS;
}

#define OTF2_DEFINITION(r, kind_, ...)                                                             \
	otf2_read_add(r, &(struct otf2_item){.kind = OTF2_##kind_##_ITEM, .value = {__VA_ARGS__}})
#define OTF2_EVENT(r, time, kind_, ...)                                                            \
	otf2_read_add(r, &(struct otf2_item){.ticks = (time),                                      \
				 .location = ((struct otf2_read *)(r))->now,                       \
				 .kind = OTF2_##kind_##_ITEM,                                      \
				 .value = {__VA_ARGS__}})

/* ---- definitions ----------------------------------------------------------------------------- */

static OTF2_CallbackCode otf2_read_clock(
	void *ctx, uint64_t resolution, uint64_t offset, uint64_t length, uint64_t real)
{
	(void)real;
	return OTF2_DEFINITION(ctx, clock, resolution, offset, length);
}

static OTF2_CallbackCode otf2_read_string(void *ctx, OTF2_StringRef self, const char *text)
{
	struct otf2_read *r = ctx;
	otf2_read_give(r); /* the text is the one before its item */
	r->failed = r->failed || !format_apart_give_text(r->giver, text);
	return OTF2_DEFINITION(r, string, self);
}

static OTF2_CallbackCode otf2_read_node(void *ctx, OTF2_SystemTreeNodeRef self, OTF2_StringRef name,
	OTF2_StringRef class_, OTF2_SystemTreeNodeRef parent)
{
	return OTF2_DEFINITION(ctx, node, self, name, class_, parent);
}

static OTF2_CallbackCode otf2_read_process(void *ctx, OTF2_LocationGroupRef self,
	OTF2_StringRef name, OTF2_LocationGroupType type, OTF2_SystemTreeNodeRef node,
	OTF2_LocationGroupRef creator)
{
	(void)type, (void)creator;
	return OTF2_DEFINITION(ctx, process, self, name, node);
}

/* Accelerators' streams and metrics are no threads. */
static OTF2_CallbackCode otf2_read_location(void *ctx, OTF2_LocationRef self, OTF2_StringRef name,
	OTF2_LocationType type, uint64_t nr_events, OTF2_LocationGroupRef process)
{
	struct otf2_read *r = ctx;
	if (type != OTF2_LOCATION_TYPE_CPU_THREAD) {
		*r->nr_other += nr_events;
		return OTF2_CALLBACK_SUCCESS;
	}
	if (base_grow(&r->location, &r->capacity, r->nr_locations + 1, sizeof *r->location) !=
		BASE_OK) {
		r->failed = true;
		return OTF2_CALLBACK_INTERRUPT;
	}
	r->location[r->nr_locations] = self;
	return otf2_read_add(r, &(struct otf2_item){.kind = OTF2_location_ITEM,
					.location = (uint32_t)r->nr_locations++,
					.value = {self, name, process}});
}

static OTF2_CallbackCode otf2_read_region(void *ctx, OTF2_RegionRef self, OTF2_StringRef name,
	OTF2_StringRef canonical, OTF2_StringRef description, OTF2_RegionRole role,
	OTF2_Paradigm paradigm, OTF2_RegionFlag flags, OTF2_StringRef file, uint32_t begin,
	uint32_t end)
{
	(void)canonical, (void)description, (void)role, (void)flags, (void)end;
	return OTF2_DEFINITION(ctx, region, self, name, paradigm == OTF2_PARADIGM_MPI, file, begin);
}

static OTF2_CallbackCode otf2_read_group(void *ctx, OTF2_GroupRef self, OTF2_StringRef name,
	OTF2_GroupType type, OTF2_Paradigm paradigm, OTF2_GroupFlag flags, uint32_t nr,
	const uint64_t *member)
{
	(void)name;
	if (paradigm != OTF2_PARADIGM_MPI ||
		(type != OTF2_GROUP_TYPE_COMM_LOCATIONS && type != OTF2_GROUP_TYPE_COMM_GROUP))
		return OTF2_CALLBACK_SUCCESS;
	OTF2_CallbackCode code = OTF2_DEFINITION(ctx, group, self, type, flags, nr);
	for (uint32_t i = 0; i < nr && code == OTF2_CALLBACK_SUCCESS; i += OTF2_VALUES) {
		struct otf2_item some = {.kind = OTF2_members_ITEM};
		for (uint32_t k = 0; k < OTF2_VALUES && i + k < nr; k++)
			some.value[k] = member[i + k];
		code = otf2_read_add(ctx, &some);
	}
	return code;
}

static OTF2_CallbackCode otf2_read_comm(void *ctx, OTF2_CommRef self, OTF2_StringRef name,
	OTF2_GroupRef group, OTF2_CommRef parent, OTF2_CommFlag flags)
{
	(void)flags;
	return OTF2_DEFINITION(ctx, comm, self, name, group, parent);
}

static OTF2_CallbackCode otf2_read_window(void *ctx, OTF2_RmaWinRef self, OTF2_StringRef name,
	OTF2_CommRef comm, OTF2_RmaWinFlag flags)
{
	(void)name, (void)flags;
	return OTF2_DEFINITION(ctx, window, self, comm);
}

static void otf2_read_definitions(struct otf2_read *r, uint64_t *ret_nr)
{
	OTF2_GlobalDefReader *d = OTF2_Reader_GetGlobalDefReader(r->reader);
	OTF2_GlobalDefReaderCallbacks *c = OTF2_GlobalDefReaderCallbacks_New();
	OTF2_GlobalDefReaderCallbacks_SetClockPropertiesCallback(c, otf2_read_clock);
	OTF2_GlobalDefReaderCallbacks_SetStringCallback(c, otf2_read_string);
	OTF2_GlobalDefReaderCallbacks_SetSystemTreeNodeCallback(c, otf2_read_node);
	OTF2_GlobalDefReaderCallbacks_SetLocationGroupCallback(c, otf2_read_process);
	OTF2_GlobalDefReaderCallbacks_SetLocationCallback(c, otf2_read_location);
	OTF2_GlobalDefReaderCallbacks_SetRegionCallback(c, otf2_read_region);
	OTF2_GlobalDefReaderCallbacks_SetGroupCallback(c, otf2_read_group);
	OTF2_GlobalDefReaderCallbacks_SetCommCallback(c, otf2_read_comm);
	OTF2_GlobalDefReaderCallbacks_SetRmaWinCallback(c, otf2_read_window);
	OTF2_Reader_RegisterGlobalDefCallbacks(r->reader, d, c, r);
	OTF2_GlobalDefReaderCallbacks_Delete(c);
	OTF2_Reader_ReadAllGlobalDefinitions(r->reader, d, ret_nr);
	OTF2_Reader_CloseGlobalDefReader(r->reader, d);
}

/* ---- events ---------------------------------------------------------------------------------- */

/* What all callbacks of events get before the event's own. */
#define OTF2_CALL                                                                                  \
	OTF2_LocationRef location, OTF2_TimeStamp time, uint64_t position, void *ctx,              \
		OTF2_AttributeList *attributes
#define OTF2_UNUSED ((void)location, (void)position, (void)attributes)

static OTF2_CallbackCode otf2_read_program_begins(
	OTF2_CALL, OTF2_StringRef name, uint32_t nr, const OTF2_StringRef *argument)
{
	OTF2_UNUSED, (void)name, (void)nr, (void)argument;
	return OTF2_EVENT(ctx, time, program, 0);
}

static OTF2_CallbackCode otf2_read_program_ends(OTF2_CALL, int64_t status)
{
	OTF2_UNUSED, (void)status;
	return OTF2_EVENT(ctx, time, program, 0);
}

static OTF2_CallbackCode otf2_read_enter(OTF2_CALL, OTF2_RegionRef region)
{
	OTF2_UNUSED;
	return OTF2_EVENT(ctx, time, enter, region);
}

static OTF2_CallbackCode otf2_read_leave(OTF2_CALL, OTF2_RegionRef region)
{
	OTF2_UNUSED;
	return OTF2_EVENT(ctx, time, leave, region);
}

static OTF2_CallbackCode otf2_read_send(
	OTF2_CALL, uint32_t receiver, OTF2_CommRef comm, uint32_t tag, uint64_t nr_bytes)
{
	OTF2_UNUSED;
	return OTF2_EVENT(ctx, time, send, receiver, comm, tag, nr_bytes);
}

static OTF2_CallbackCode otf2_read_receive(
	OTF2_CALL, uint32_t sender, OTF2_CommRef comm, uint32_t tag, uint64_t nr_bytes)
{
	OTF2_UNUSED;
	return OTF2_EVENT(ctx, time, receive, sender, comm, tag, nr_bytes);
}

static OTF2_CallbackCode otf2_read_send_begins(OTF2_CALL, uint32_t receiver, OTF2_CommRef comm,
	uint32_t tag, uint64_t nr_bytes, uint64_t request)
{
	OTF2_UNUSED;
	return OTF2_EVENT(ctx, time, send_begins, receiver, comm, tag, nr_bytes, request);
}

static OTF2_CallbackCode otf2_read_receive_begins(OTF2_CALL, uint64_t request)
{
	OTF2_UNUSED;
	return OTF2_EVENT(ctx, time, receive_begins, request);
}

static OTF2_CallbackCode otf2_read_sent(OTF2_CALL, uint64_t request)
{
	OTF2_UNUSED;
	return OTF2_EVENT(ctx, time, sent, request);
}

static OTF2_CallbackCode otf2_read_received(OTF2_CALL, uint32_t sender, OTF2_CommRef comm,
	uint32_t tag, uint64_t nr_bytes, uint64_t request)
{
	OTF2_UNUSED;
	return OTF2_EVENT(ctx, time, received, sender, comm, tag, nr_bytes, request);
}

static OTF2_CallbackCode otf2_read_cancelled(OTF2_CALL, uint64_t request)
{
	OTF2_UNUSED;
	return OTF2_EVENT(ctx, time, cancelled, request);
}

static OTF2_CallbackCode otf2_read_collective(OTF2_CALL, OTF2_CollectiveOp op, OTF2_CommRef comm,
	uint32_t root, uint64_t sent, uint64_t received)
{
	OTF2_UNUSED;
	return OTF2_EVENT(ctx, time, collective, op, comm, root, sent ? sent : received);
}

static OTF2_CallbackCode otf2_read_collective_begins(OTF2_CALL, uint64_t request)
{
	OTF2_UNUSED;
	return OTF2_EVENT(ctx, time, collective_begins, request);
}

static OTF2_CallbackCode otf2_read_collective_ends(OTF2_CALL, OTF2_CollectiveOp op,
	OTF2_CommRef comm, uint32_t root, uint64_t sent, uint64_t received, uint64_t request)
{
	OTF2_UNUSED;
	return OTF2_EVENT(
		ctx, time, collective_ends, op, comm, root, sent ? sent : received, request);
}

static OTF2_CallbackCode otf2_read_window_collective(OTF2_CALL, OTF2_CollectiveOp op,
	OTF2_RmaSyncLevel level, OTF2_RmaWinRef window, uint32_t root, uint64_t sent,
	uint64_t received)
{
	OTF2_UNUSED, (void)level;
	return OTF2_EVENT(ctx, time, window_collective, op, window, root, sent ? sent : received);
}

static OTF2_EvtReaderCallbacks *otf2_read_callbacks(void)
{
	OTF2_EvtReaderCallbacks *c = OTF2_EvtReaderCallbacks_New();
	OTF2_EvtReaderCallbacks_SetProgramBeginCallback(c, otf2_read_program_begins);
	OTF2_EvtReaderCallbacks_SetProgramEndCallback(c, otf2_read_program_ends);
	OTF2_EvtReaderCallbacks_SetEnterCallback(c, otf2_read_enter);
	OTF2_EvtReaderCallbacks_SetLeaveCallback(c, otf2_read_leave);
	OTF2_EvtReaderCallbacks_SetMpiSendCallback(c, otf2_read_send);
	OTF2_EvtReaderCallbacks_SetMpiRecvCallback(c, otf2_read_receive);
	OTF2_EvtReaderCallbacks_SetMpiIsendCallback(c, otf2_read_send_begins);
	OTF2_EvtReaderCallbacks_SetMpiIrecvRequestCallback(c, otf2_read_receive_begins);
	OTF2_EvtReaderCallbacks_SetMpiIsendCompleteCallback(c, otf2_read_sent);
	OTF2_EvtReaderCallbacks_SetMpiIrecvCallback(c, otf2_read_received);
	OTF2_EvtReaderCallbacks_SetMpiRequestCancelledCallback(c, otf2_read_cancelled);
	OTF2_EvtReaderCallbacks_SetMpiCollectiveEndCallback(c, otf2_read_collective);
	OTF2_EvtReaderCallbacks_SetNonBlockingCollectiveRequestCallback(
		c, otf2_read_collective_begins);
	OTF2_EvtReaderCallbacks_SetNonBlockingCollectiveCompleteCallback(
		c, otf2_read_collective_ends);
	OTF2_EvtReaderCallbacks_SetRmaCollectiveEndCallback(c, otf2_read_window_collective);
	return c;
}

/* (The memory that the library takes for a file that is not there it does not give back.) */
static bool otf2_read_has_file(
	const struct otf2_read *r, OTF2_LocationRef location, const char *what)
{
	struct base_str name = {0};
	size_t length = strlen(r->path);
	if (length > 5 && !strcmp(r->path + length - 5, ".otf2"))
		length -= 5;
	base_str_addf(
		&name, "%.*s/%llu.%s", (int)length, r->path, (unsigned long long)location, what);
	bool is_there = r->is_sion || !access(base_str_text(&name), F_OK);
	base_str_fini(&name);
	return is_there;
}

/* A location's own definitions have the mapping of its references, and its clock's corrections; a
 * trace need not have them. */
static void otf2_read_own_definitions(struct otf2_read *r, OTF2_LocationRef location)
{
	if (!otf2_read_has_file(r, location, "def"))
		return;
	OTF2_DefReader *d = OTF2_Reader_GetDefReader(r->reader, location);
	uint64_t nr = 0;
	if (!d)
		return;
	OTF2_Reader_ReadAllLocalDefinitions(r->reader, d, &nr);
	OTF2_Reader_CloseDefReader(r->reader, d);
}

/* False: its file is not there, cut or damaged. */
static bool otf2_read_location_events(
	struct otf2_read *r, OTF2_LocationRef location, const OTF2_EvtReaderCallbacks *c)
{
	uint64_t nr = 0;
	OTF2_EvtReader *e = otf2_read_has_file(r, location, "evt")
				    ? OTF2_Reader_GetEvtReader(r->reader, location)
				    : NULL;
	if (!e)
		return false;
	bool good = OTF2_Reader_RegisterEvtCallbacks(r->reader, e, c, r) == OTF2_SUCCESS &&
		    OTF2_Reader_ReadAllLocalEvents(r->reader, e, &nr) == OTF2_SUCCESS;
	OTF2_Reader_CloseEvtReader(r->reader, e);
	return good;
}

static void otf2_read_events(struct otf2_read *r, uint64_t *nr_cut)
{
	OTF2_EvtReaderCallbacks *c = otf2_read_callbacks();
	bool has_own = OTF2_Reader_OpenDefFiles(r->reader) == OTF2_SUCCESS,
	     has_events = OTF2_Reader_OpenEvtFiles(r->reader) == OTF2_SUCCESS;
	for (size_t i = 0; i < r->nr_locations && !r->failed; i++) {
		r->now = (uint32_t)i;
		if (has_own)
			otf2_read_own_definitions(r, r->location[i]);
		OTF2_EVENT(r, 0, begin, 0);
		bool good = has_events && otf2_read_location_events(r, r->location[i], c);
		*nr_cut += !good;
		OTF2_EVENT(r, 0, end, !good);
	}
	OTF2_EvtReaderCallbacks_Delete(c);
	if (has_events)
		OTF2_Reader_CloseEvtFiles(r->reader);
	if (has_own)
		OTF2_Reader_CloseDefFiles(r->reader);
}

/* ---- all of it ------------------------------------------------------------------------------- */

/* The library's own words: the first are for a message. */
static OTF2_ErrorCode otf2_read_complaint(void *ctx, const char *file, uint64_t line,
	const char *function, OTF2_ErrorCode code, const char *format, va_list args)
{
	struct base_str *said = ctx;
	char text[256];
	(void)file, (void)line, (void)function;
	if (said->length)
		return code;
	vsnprintf(text, sizeof text, format, args);
	base_str_addf(said, "%s%s%s", OTF2_Error_GetDescription(code), *text ? ": " : "", text);
	return code;
}

static enum base_status otf2_read_archive(
	struct otf2_read *r, uint64_t *nr_cut, const struct base_str *said)
{
	uint64_t nr_definitions = 0;
	OTF2_FileSubstrate substrate = OTF2_SUBSTRATE_UNDEFINED;
	r->is_sion = OTF2_Reader_GetFileSubstrate(r->reader, &substrate) == OTF2_SUCCESS &&
		     substrate == OTF2_SUBSTRATE_SION;
	OTF2_Reader_SetSerialCollectiveCallbacks(r->reader);
	otf2_read_definitions(r, &nr_definitions);
	if (!r->failed && !r->nr_locations)
		return base_fail(r->err, BASE_ERR_FOREIGN,
			"no thread is defined in it: its .def file is missing, empty or "
			"damaged%s%s",
			said->length ? ": " : "", base_str_text(said));
	if (said->length)
		(*nr_cut)++;
	/* (those that are not selected have no files, for the library) */
	for (size_t i = 0; i < r->nr_locations; i++)
		OTF2_Reader_SelectLocation(r->reader, r->location[i]);
	otf2_read_events(r, nr_cut);
	otf2_read_give(r);
	return r->failed ? base_fail(r->err, BASE_ERR_IO, "nobody takes the events") : BASE_OK;
}

enum base_status format_otf2_read(struct format_apart_giver *g, const char *path,
	uint64_t count[static FORMAT_APART_COUNTS], struct base_err *err)
{
	struct base_str said = {0};
	struct otf2_read *r = base_alloc(sizeof *r);
	enum base_status s;
	if (!r)
		return base_fail(err, BASE_ERR_NOMEM, "out of memory for events");
	*r = (struct otf2_read){
		.giver = g, .err = err, .path = path, .nr_other = &count[OTF2_COUNT_OTHER]};
	OTF2_Error_RegisterCallback(otf2_read_complaint, &said);
	r->reader = OTF2_Reader_Open(path);
	if (r->reader) {
		s = otf2_read_archive(r, &count[OTF2_COUNT_CUT], &said);
		OTF2_Reader_Close(r->reader);
	} else {
		s = base_fail(err, BASE_ERR_FOREIGN, "libotf2 cannot read it as an anchor file%s%s",
			said.length ? ": " : "", base_str_text(&said));
	}
	base_str_fini(&said);
	base_free(r->location);
	base_free(r);
	return s;
}

#endif
