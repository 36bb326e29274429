/* SPDX-License-Identifier: Apache-2.0 */
/*
 * platform.h - simulate networked computer systems, described in an INI file, and write what every
 * part does as annotation records. README.md says what is modelled; parameters.def has every
 * number. Nothing here prints.
 */
#ifndef LONGPOLE_PLATFORM_PLATFORM_H
#define LONGPOLE_PLATFORM_PLATFORM_H

#include "base/parameter.h"

/* ---- parameters ------------------------------------------------------------------------------ */

struct base_parameters platform_parameters(void);

/* ---- configuration --------------------------------------------------------------------------- */

struct platform_config;
/* A new one without sections. NULL: no memory. */
struct platform_config *platform_config_new(void);
struct platform_config *platform_config_free(struct platform_config *c);
/* Reads an INI file's text; `path` is for messages. BASE_ERR_USAGE says path, line, key, and the
 * nearest valid key. */
enum base_status platform_config_read(struct platform_config *c, const char *text, const char *path,
	struct base_err *err) BASE_MUST_CHECK;
/* "section.key=value", section being a system's, link's or app's name, or "simulation". */
enum base_status platform_config_set(
	struct platform_config *c, const char *assignment, struct base_err *err) BASE_MUST_CHECK;
/* Are all sections there that are spoken of? platform_run() asks, too. */
enum base_status platform_config_check(
	const struct platform_config *c, struct base_err *err) BASE_MUST_CHECK;

/* ---- runs ------------------------------------------------------------------------------------ */

struct platform_connection_result {
	uint64_t connection;     /* as in note_identify */
	const char *app;         /* name of its section */
	uint64_t sent_bytes;     /* handed to the socket by the sending application */
	uint64_t received_bytes; /* by the receiving application */
	uint64_t dropped_bytes;  /* payload of lost datagrams (UDP only) */
	uint64_t inside_bytes;   /* in buffers and on the cable at the end */
	uint64_t nr_responses;   /* web: whole files */
	uint64_t end_ns;         /* when the last byte came */
};
struct platform_link_result {
	const char *name;
	uint64_t payload_bytes[2], frames[2]; /* from a to b, from b to a */
};
struct platform_result {
	struct platform_connection_result *connection;
	size_t nr_connections;
	struct platform_link_result *link;
	size_t nr_links;
	uint64_t simulated_ns, nr_events, nr_verbs, trace_bytes;
	uint64_t nr_actors, nr_queues, dropped_packets;
	uint64_t resent_packets; /* of TCP: lost ones, and those that were thought to be */
	double goodput_mbps;     /* of all connections, over simulated_ns */
};
/* trace_path NULL: writes none. BASE_ERR_USAGE: the configuration makes no platform, or the run
 * came to a halt (says which limit to raise). */
enum base_status platform_run(const struct platform_config *c, const char *trace_path,
	struct platform_result **ret, struct base_err *err) BASE_MUST_CHECK;
struct platform_result *platform_result_free(struct platform_result *r);

#endif
