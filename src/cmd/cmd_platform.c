/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_platform.c - `longpole platform`: simulate networked computers. */
#include "cmd/cmd.h"
#include "platform/platform.h"

#include <string.h>

enum { SETTINGS_MAX = 48, FILE_LIMIT_BYTES = 1 << 20, SEED_TEXT_MAX = 64 };

static const struct cmd_option option[] = {
	{"output", 'o', "TRACE", "@file", "write what every part does into that trace"},
	{"set", 's', "NAME.KEY=VALUE", NULL,
		"one parameter of the section NAME (may be given again)"},
	{"seed", 0, "N", NULL, "start of the random numbers"},
	{"list-parameters", 'l', NULL, NULL,
		"no simulation: every parameter with unit, default, limits and source"},
};

const struct cmd_details cmd_details_platform = {
	.usage = "[OPTIONS] CONFIG",
	.about = "Simulates two computers and the link between them, as CONFIG describes them: "
		 "applications, "
		 "system calls, sockets, UDP, TCP, IP, driver, network card, I/O bus, interrupts, "
		 "copy "
		 "engine. With --output every part's states and queues become a trace, to be "
		 "analysed like "
		 "a recorded one. The same configuration and seed give the same trace.",
	.option = option,
	.nr_options = BASE_COUNT(option),
	.example = {"longpole platform -o tcp.lpt examples/platform/tcp-1.conf",
		"longpole platform --set=l0.rate_gbps=10 --json examples/platform/tcp-1.conf",
		"longpole platform --list-parameters"},
};

/* ---- parameters ------------------------------------------------------------------------------ */

static int cmd_platform_list_parameters(struct cmd *c)
{
	struct base_str text = {0};
	if (cmd_given(c, "json"))
		return cmd_write_parameters(c, platform_parameters(), NULL, NULL);
	cmd_add_parameters(&text, platform_parameters(), "simulation");
	return cmd_write(c, &text);
}

/* ---- one run --------------------------------------------------------------------------------- */

static double mbps(uint64_t bytes, uint64_t ns)
{
	return ns ? (double)bytes * 8e3 / (double)ns : 0;
}

static uint64_t lasted_ns(
	const struct platform_result *r, const struct platform_connection_result *n)
{
	return n->end_ns ? n->end_ns : r->simulated_ns;
}

static json_t *both_ways(const uint64_t way[2])
{
	return json_pack("[I, I]", (json_int_t)way[0], (json_int_t)way[1]);
}

struct cmd_platform_answer {
	const struct platform_result *result;
	const char *trace_path; /* NULL: none */
	uint64_t wall_ns;
};

#include "cmd/platform.def"

static void add_connection(struct base_str *text, const struct platform_result *r, size_t i)
{
	const struct platform_connection_result *n = &r->connection[i];
	base_str_addf(text, "  %s %llu: %.0f Mb/s, ", n->app, (unsigned long long)n->connection,
		mbps(n->received_bytes, lasted_ns(r, n)));
	base_str_add_size(text, n->received_bytes);
	base_str_add(text, " in ");
	base_str_add_ns(text, lasted_ns(r, n));
	if (n->nr_responses)
		base_str_addf(text, ", %llu {file|files}", (unsigned long long)n->nr_responses);
	if (n->dropped_bytes) {
		base_str_add(text, ", lost ");
		base_str_add_size(text, n->dropped_bytes);
	}
	base_str_add(text, "\n");
}

static void add_result(struct base_str *text, const struct platform_result *r,
	const char *trace_path, uint64_t wall_ns)
{
	base_str_addf(text, "%.0f Mb/s of user data over %zu {connection|connections} in ",
		r->goodput_mbps, r->nr_connections);
	base_str_add_ns(text, r->simulated_ns);
	base_str_add(text, " of simulated time.\n");
	for (size_t i = 0; i < r->nr_connections; i++)
		add_connection(text, r, i);
	if (r->dropped_packets)
		base_str_addf(text,
			"  %llu {packet or datagram was|packets or datagrams were} lost\n",
			(unsigned long long)r->dropped_packets);
	if (r->resent_packets)
		base_str_addf(text, "  %llu {segment was|segments were} sent again\n",
			(unsigned long long)r->resent_packets);
	base_str_add(text, "  ");
	base_str_add_counted(text, "%s {machine|machines}, ", r->nr_actors);
	base_str_add_counted(text, "%s {queue|queues}, ", r->nr_queues);
	base_str_add_counted(text, "%s {event|events}, ", r->nr_events);
	base_str_add_counted(text, "%s {verb|verbs}", r->nr_verbs);
	base_str_addf(text, "; %.1f M verbs a second\n",
		wall_ns ? (double)r->nr_verbs * 1e3 / (double)wall_ns : 0);
	if (!trace_path)
		return;
	base_str_addf(text, "  wrote %s, ", trace_path);
	base_str_add_size(text, r->trace_bytes);
	base_str_addf(text, "\nNEXT  longpole report %s\n", trace_path);
}

static enum base_status settings(struct cmd *c, struct platform_config *config)
{
	const char *setting[SETTINGS_MAX], *seed = cmd_value(c, "seed");
	size_t nr = cmd_values(c, "set", setting, SETTINGS_MAX);
	enum base_status s = BASE_OK;
	for (size_t i = 0; i < nr && s == BASE_OK; i++)
		s = platform_config_set(config, setting[i], &c->err);
	if (seed && s == BASE_OK) {
		struct base_str text = {0};
		base_str_addf(&text, "simulation.seed=%s", seed);
		s = platform_config_set(config, base_str_text(&text), &c->err);
		base_str_fini(&text);
	}
	return s;
}

static int cmd_platform_run(struct cmd *c, const struct platform_config *config)
{
	const char *trace_path = cmd_value(c, "output");
	struct platform_result *r = NULL;
	uint64_t begin_ns = cmd_now_ns();
	enum base_status s = platform_run(config, trace_path, &r, &c->err);
	uint64_t wall_ns = cmd_now_ns() - begin_ns;
	int exit_status;
	if (s != BASE_OK)
		return cmd_fail(c, base_cause(&c->err, s, "while simulating %s", c->operand[0]));
	if (cmd_given(c, "json")) {
		struct cmd_platform_answer a = {r, trace_path, wall_ns};
		exit_status = cmd_write_result(c, cmd_platform_document.name,
			base_table_json(&cmd_platform_document, &a, &a, 0));
	} else {
		struct base_str text = {0};
		add_result(&text, r, trace_path, wall_ns);
		exit_status = cmd_write_prose(c, &text);
	}
	platform_result_free(r);
	return exit_status;
}

int cmd_run_platform(struct cmd *c)
{
	if (cmd_given(c, "list-parameters"))
		return cmd_platform_list_parameters(c);
	if (c->nr_operands != 1)
		return cmd_usage(c, "give one configuration, such as examples/platform/tcp-1.conf");
	char *text = cmd_read_file(c, c->operand[0], FILE_LIMIT_BYTES);
	if (!text)
		return cmd_exit_of(c->err.status);
	struct platform_config *config = platform_config_new();
	enum base_status s =
		config ? BASE_OK
		       : base_fail(&c->err, BASE_ERR_NOMEM, "out of memory for the configuration");
	if (s == BASE_OK)
		s = platform_config_read(config, text, c->operand[0], &c->err);
	base_free(text);
	if (s == BASE_OK)
		s = settings(c, config);
	int exit_status = s == BASE_OK ? cmd_platform_run(c, config) : cmd_fail(c, s);
	platform_config_free(config);
	return exit_status;
}
