/* SPDX-License-Identifier: Apache-2.0 */
/* column_schema.c - what a table describes, as JSON Schema (draft 2020-12): for programs what the page of documents is for people. */
#include "base/column_private.h"

#include <stdio.h>
#include <string.h>

/* In JSON Schema, what the page calls "int"; NULL: rows, or what a function makes. */
static const char *schema_type_of(const struct base_column *c)
{
	static const char *const name[][2] = {
		{"int", "integer"}, {"real", "number"}, {"string", "string"}, {"bool", "boolean"}};
	const char *kind = base_unit_of[c->unit].kind;
	/* (a member that is no integer is written as it is) */
	bool is_real =
		c->per.type || c->at.type == BASE_MEMBER_real || c->at.type == BASE_MEMBER_real_of;
	for (size_t i = 0; kind && i < BASE_COUNT(name); i++)
		if (!strcmp(kind, name[i][0]))
			return is_real && !i ? "number" : name[i][1];
	return NULL;
}

static bool schema_may_be_null(const struct base_column *c)
{
	return c->absence == BASE_NULL || c->unit == BASE_UNIT_object ||
	       (c->at.type == BASE_MEMBER_text || c->at.type == BASE_MEMBER_text_of) ||
	       c->at.type == BASE_MEMBER_real ||
	       c->at.type == BASE_MEMBER_real_of; /* (not known: NAN) */
}

/* Of "queues queue", "queues_queue": a reference is a URI, which has no blanks. */
struct schema_key {
	char text[128];
};
static struct schema_key schema_key_of(const struct base_table *t)
{
	struct schema_key key;
	(void)snprintf(key.text, sizeof key.text, "%s", t->name);
	for (char *c = key.text; *c; c++)
		*c = *c == ' ' || *c == '/' ? '_' : *c;
	return key;
}

static json_t *schema_reference(const struct base_table *t)
{
	return json_pack("{s:o}", "$ref", json_sprintf("#/$defs/%s", schema_key_of(t).text));
}

static json_t *schema_of_value(const struct base_column *c)
{
	const char *type = schema_type_of(c);
	if (c->rows && c->unit == BASE_UNIT_object)
		return json_pack(
			"{s:[o, {s:s}]}", "anyOf", schema_reference(c->rows), "type", "null");
	if (c->rows && c->unit != BASE_UNIT_json)
		return json_pack("{s:s, s:o}", "type", "array", "items", schema_reference(c->rows));
	if (!type) /* its kind is in its description */
		return json_object();
	json_t *j = schema_may_be_null(c) ? json_pack("{s:[s, s]}", "type", type, "null")
					  : json_pack("{s:s}", "type", type);
	if (c->unit == BASE_UNIT_address)
		json_object_set_new(j, "pattern", json_string("^0x[0-9a-f]+$"));
	return j;
}

/* NOLINTBEGIN(misc-no-recursion): as deep as tables stand in tables, which are constants */

static void schema_add_columns(
	json_t *properties, json_t *required, const struct base_table *t, bool is_optional)
{
	for (size_t i = 0; i < t->nr_columns; i++) {
		const struct base_column *c = &t->column[i];
		bool may_lack = is_optional || c->needs || c->absence == BASE_OPTIONAL;
		if (c->unit == BASE_UNIT_part)
			schema_add_columns(properties, required, c->rows,
				may_lack || c->when.type || c->unless.type);
		if (!c->key)
			continue;
		json_t *value = schema_of_value(c);
		json_object_set_new(value, "description",
			c->kind ? json_sprintf("%s: %s", c->kind, c->doc) : json_string(c->doc));
		json_object_set_new(properties, c->key, value);
		if (!may_lack)
			json_array_append_new(required, json_string(c->key));
	}
}

static json_t *schema_of_table(const struct base_table *t)
{
	json_t *properties = json_object(), *required = json_array();
	schema_add_columns(properties, required, t, false);
	return json_pack("{s:s, s:o, s:o}", "type", "object", "properties", properties, "required",
		required);
}

/* Those that its columns refer to, and theirs. */
static void schema_add_tables(json_t *defs, const struct base_table *t)
{
	for (size_t i = 0; i < t->nr_columns; i++) {
		const struct base_table *rows = t->column[i].rows;
		if (!rows || json_object_get(defs, schema_key_of(rows).text))
			continue;
		if (t->column[i].unit != BASE_UNIT_part)
			json_object_set_new(defs, schema_key_of(rows).text, schema_of_table(rows));
		schema_add_tables(defs, rows);
	}
}

/* NOLINTEND(misc-no-recursion) */

json_t *base_table_schema(const struct base_table *document)
{
	json_t *defs = json_object();
	json_object_set_new(defs, "result", schema_of_table(document));
	schema_add_tables(defs, document);
	return json_pack("{s:s, s:s, s:s, s:{s:{s:s}, s:{s:s}, s:{s:s}}, s:[s, s, s], s:o}",
		"$schema", "https://json-schema.org/draft/2020-12/schema", "title", document->name,
		"type", "object", "properties", "schema", "const", document->name, "tool", "type",
		"string", "result", "$ref", "#/$defs/result", "required", "schema", "tool",
		"result", "$defs", defs);
}
