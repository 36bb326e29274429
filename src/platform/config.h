/* SPDX-License-Identifier: Apache-2.0 */
/* config.h - a configuration as the rest of the layer sees it. Private to the layer. */
#ifndef LONGPOLE_PLATFORM_CONFIG_H
#define LONGPOLE_PLATFORM_CONFIG_H

#include "platform/platform.h"

enum { PLATFORM_NAME_MAX = 32, PLATFORM_SYSTEMS_MAX = 8, PLATFORM_APPS_MAX = 16 };

/* The parameters of each kind of section, by name. */
struct platform_simulation_parameters {
#define PARAM_simulation(key) double key;
#define PARAM_system(key)
#define PARAM_link(key)
#define PARAM_app(key)
#define PARAM(section, key, preset, least, most, unit, sentence, source) PARAM_##section(key)
#include "platform/parameters.def"
#undef PARAM_simulation
#undef PARAM_system
};
struct platform_system_parameters {
#define PARAM_simulation(key)
#define PARAM_system(key)                                                double key;
#define PARAM(section, key, preset, least, most, unit, sentence, source) PARAM_##section(key)
#include "platform/parameters.def"
#undef PARAM_system
#undef PARAM_link
};
struct platform_link_parameters {
#define PARAM_system(key)
#define PARAM_link(key)                                                  double key;
#define PARAM(section, key, preset, least, most, unit, sentence, source) PARAM_##section(key)
#include "platform/parameters.def"
#undef PARAM_link
#undef PARAM_app
};
struct platform_app_parameters {
#define PARAM_link(key)
#define PARAM_app(key)                                                   double key;
#define PARAM(section, key, preset, least, most, unit, sentence, source) PARAM_##section(key)
#include "platform/parameters.def"
#undef PARAM_simulation
#undef PARAM_system
#undef PARAM_link
#undef PARAM_app
};

enum platform_app_kind {
	PLATFORM_APP_none,
	PLATFORM_APP_tcp_stream,
	PLATFORM_APP_udp_stream,
	PLATFORM_APP_web
};

struct platform_system_config {
	char name[PLATFORM_NAME_MAX];
	struct platform_system_parameters p;
};
struct platform_link_config {
	char name[PLATFORM_NAME_MAX], a[PLATFORM_NAME_MAX], b[PLATFORM_NAME_MAX];
	struct platform_link_parameters p;
};
struct platform_app_config {
	char name[PLATFORM_NAME_MAX], from[PLATFORM_NAME_MAX], to[PLATFORM_NAME_MAX];
	enum platform_app_kind kind;
	struct platform_app_parameters p;
};
struct platform_config {
	struct platform_simulation_parameters simulation;
	struct platform_system_config system[PLATFORM_SYSTEMS_MAX];
	struct platform_link_config link[1];
	struct platform_app_config app[PLATFORM_APPS_MAX];
	size_t nr_systems, nr_links, nr_apps;
};

#endif
