/* SPDX-License-Identifier: Apache-2.0 */
/* layout.c - where things are in the runtime's structures: as the file's debug information says, or as is known of its version. */
#include "golive/private.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <string.h>

struct layout_field {
	const char *type, *member;
};
static const struct layout_field layout_field[] = {
#define FIELD(name, type, member) {type, member},
#define LAYOUT(...)
#include "golive/layout.def"
};
enum { LAYOUT_FIELDS = BASE_COUNT(layout_field) };
_Static_assert(sizeof(struct golive_layout) == LAYOUT_FIELDS * sizeof(uint64_t), "a word a field");

static const struct {
	unsigned version;
	uint64_t offset[LAYOUT_FIELDS];
} layout_known[] = {
#define FIELD(name, type, member)
#define LAYOUT(version, ...) {version, {__VA_ARGS__}},
#include "golive/layout.def"
};

/* Those members of one structure that are asked for; returns how many. */
static unsigned layout_read_type(Dwarf_Die *type, const char *name, uint64_t offset[LAYOUT_FIELDS])
{
	Dwarf_Die member;
	Dwarf_Attribute attribute;
	Dwarf_Word at;
	unsigned nr = 0;
	if (dwarf_child(type, &member))
		return 0;
	do {
		const char *is = dwarf_diename(&member);
		for (size_t i = 0; is && i < LAYOUT_FIELDS; i++)
			if (!strcmp(layout_field[i].type, name) &&
				!strcmp(layout_field[i].member, is) &&
				dwarf_attr(&member, DW_AT_data_member_location, &attribute) &&
				!dwarf_formudata(&attribute, &at)) {
				offset[i] = at;
				nr++;
			}
	} while (!dwarf_siblingof(&member, &member));
	return nr;
}

static bool layout_is_asked_for(const char *name)
{
	for (size_t i = 0; name && i < LAYOUT_FIELDS; i++)
		if (!strcmp(layout_field[i].type, name))
			return true;
	return false;
}

static bool layout_read(Dwarf *debug, uint64_t offset[LAYOUT_FIELDS])
{
	Dwarf_Off at = 0, next;
	size_t head;
	unsigned nr = 0;
	for (; !dwarf_nextcu(debug, at, &next, &head, NULL, NULL, NULL) && nr < LAYOUT_FIELDS;
		at = next) {
		Dwarf_Die unit, die;
		if (!dwarf_offdie(debug, at + head, &unit) || dwarf_child(&unit, &die))
			continue;
		do {
			if (dwarf_tag(&die) == DW_TAG_structure_type &&
				layout_is_asked_for(dwarf_diename(&die)))
				nr += layout_read_type(&die, dwarf_diename(&die), offset);
		} while (!dwarf_siblingof(&die, &die));
	}
	return nr == LAYOUT_FIELDS;
}

enum base_status golive_layout_of(
	struct golive_layout *ret, int fd, unsigned version, struct base_err *err)
{
	uint64_t offset[LAYOUT_FIELDS] = {0};
	Dwarf *debug = dwarf_begin(fd, DWARF_C_READ);
	bool known = debug && layout_read(debug, offset);
	if (debug)
		dwarf_end(debug);
	for (size_t i = 0; !known && i < BASE_COUNT(layout_known); i++)
		if (layout_known[i].version == version) {
			memcpy(offset, layout_known[i].offset, sizeof offset);
			known = true;
		}
	if (!known)
		return base_fail(err, BASE_ERR_ENV,
			"it has no debug information, and how goroutines look in Go 1.%u is not "
			"known here: build it without -s and -w",
			version);
	memcpy(ret, offset, sizeof offset);
	return ret->stack == 0
		       ? BASE_OK
		       : base_fail(err, BASE_ERR_ENV,
				 "its runtime's goroutines are not as expected (Go 1.%u)", version);
}
