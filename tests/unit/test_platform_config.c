/* SPDX-License-Identifier: Apache-2.0 */
/* test_platform_config.c - the INI file: what is read, and what a mistake is told. */
#include "platform/platform.h"

#include "platform_fixture.h"

/* Reads text; the first cause must have every one of the words. */
static void expect_refusal(const char *text, const char *const word[])
{
	struct base_err err = {0};
	struct platform_config *c = platform_config_new();
	enum base_status s = platform_config_read(c, text, "p.conf", &err);
	if (s == BASE_OK)
		s = platform_config_check(c, &err);
	assert_int_equal(s, BASE_ERR_USAGE);
	struct base_str said = {0};
	for (unsigned i = 0; i < err.nr_causes; i++)
		base_str_addf(&said, "%s\n", err.cause[i]);
	for (size_t i = 0; word[i]; i++)
		if (!strstr(base_str_text(&said), word[i]))
			fail_msg("'%s' is not in: %s", word[i], base_str_text(&said));
	base_str_fini(&said);
	platform_config_free(c);
}
#define REFUSED(text, ...) expect_refusal(text, (const char *const[]){__VA_ARGS__, NULL})

static void test_mistakes(void **state)
{
	(void)state;
	REFUSED("[system tx]\nbus_gpbs = 2\n", "p.conf:2", "bus_gpbs", "'bus_gbps'");
	REFUSED("# comment\n\n[system tx]\n\nmtu_byte = 2\n", "p.conf:5", "'mtu_bytes'");
	REFUSED("[link l]\nfrom = tx\n", "p.conf:2", "link", "from");
	REFUSED("[system tx]\nbus_gbps = fast\n", "p.conf:2", "bus_gbps", "fast", "Gb/s");
	REFUSED("[system tx]\nbus_gbps = 2x\n", "2x");
	REFUSED("[system tx]\nbus_gbps =\n", "bus_gbps");
	REFUSED("[system tx]\nbus_gbps = nan\n", "nan");
	REFUSED("[system tx]\nbus_gbps = 0\n", "must be from");
	REFUSED("[system tx]\nmtu_bytes = 67\n", "68 to 65535 bytes");
	REFUSED("[sytem tx]\na = 1\n", "[sytem tx]", "[system NAME]");
	REFUSED("[system]\nmtu_bytes = 1500\n", "[system]", "no name");
	REFUSED("mtu_bytes = 1500\n", "p.conf:1", "before the first section");
	REFUSED("[system tx]\nwhat is this\n", "p.conf:2");
	REFUSED("[system tx]\nmtu_bytes=1500\n[link tx]\nrate_gbps=1\n", "p.conf:3",
		"name of a system");
	REFUSED("[link a]\nrate_gbps=1\n[link b]\nrate_gbps=1\n", "p.conf:3", "more than 1");
	REFUSED("[system a-name-that-is-much-too-long-for-us]\nmtu_bytes=1500\n", "31");
	REFUSED("[app s]\nkind = sctp\n", "sctp", "tcp_stream");
}

static void test_missing_parts(void **state)
{
	(void)state;
	REFUSED("", "two [system NAME]");
	REFUSED("[system tx]\nmtu_bytes=1500\n[system rx]\nmtu_bytes=1500\n", "[app NAME]");
	REFUSED(TWO_SYSTEMS "[app s]\nfrom = tx\nto = rx\n", "[app s]", "kind");
	REFUSED(TWO_SYSTEMS "[app s]\nkind = web\nto = rx\n", "[app s]", "from");
	REFUSED(TWO_SYSTEMS "[app s]\nkind = web\nfrom = tx\nto = xr\n", "'xr'", "[system xr]");
	REFUSED(TWO_SYSTEMS "[app s]\nkind = web\nfrom = tx\nto = tx\n", "the same system");
}

/* A section without a key is one, with all its defaults. */
static void test_bare_sections(void **state)
{
	(void)state;
	struct platform_config *c =
		read_config("[system tx]\n[system rx] ; here\n[link l]\na = tx\nb = rx\n"
			    "[app s]\nkind = udp_stream\nfrom = tx\nto = rx\n"
			    "transfer_bytes = 5000\n");
	struct platform_result *r = run_config(c, NULL);
	assert_int_equal(r->connection[0].received_bytes, 5000);
	platform_result_free(r);
	platform_config_free(c);
}

static void test_settings(void **state)
{
	struct base_err err = {0};
	struct platform_config *c = read_config(UDP_STREAM "transfer_bytes = 5000\n");
	(void)state;
	set(c, "s.transfer_bytes=7000");
	set(c, "simulation.seed=9");
	struct platform_result *r = run_config(c, NULL);
	assert_int_equal(r->connection[0].received_bytes, 7000);
	platform_result_free(r);
	static const char *const bad[] = {"s", "s.=1", ".x=1", "s.transfer_bytes", "", "=", "x.y=1",
		"s.transfer_bytes=", "s.nothing=1", "s=1.5"};
	for (size_t i = 0; i < BASE_COUNT(bad); i++)
		assert_int_equal(platform_config_set(c, bad[i], &err), BASE_ERR_USAGE);
	assert_int_equal(platform_config_set(c, "s.kind=tcp_stream", &err), BASE_OK);
	platform_config_free(c);
}

/* Every prefix of a good file is read or refused, never more. */
static void test_cut_files(void **state)
{
	static const char text[] = "[simulation]\nseed = 3\n" TCP_STREAM "transfer_bytes = 9\n";
	(void)state;
	for (size_t n = 0; n < sizeof text; n++) {
		char *cut = strndup(text, n);
		struct base_err err = {0};
		struct platform_config *c = platform_config_new();
		enum base_status s = platform_config_read(c, cut, "cut", &err);
		assert_true(s == BASE_OK || s == BASE_ERR_USAGE);
		platform_config_free(c);
		free(cut);
	}
}

static void test_long_lines(void **state)
{
	char text[600] = "[system tx]\n";
	(void)state;
	memset(text + 12, 'x', 500);
	REFUSED(text, "p.conf:2", "longer than");
	text[12] = ';'; /* a comment, too, is cut by others: refused as well */
	REFUSED(text, "p.conf:2");
}

/* The presets are within their own limits, and everything is explained. */
static void test_table(void **state)
{
	const struct base_parameters table = platform_parameters();
	const struct base_parameter *p = table.row;
	(void)state;
	assert_true(table.nr > 50);
	for (size_t i = 0; i < table.nr; i++) {
		assert_true(p[i].least <= p[i].preset && p[i].preset <= p[i].most);
		assert_true(*p[i].unit && *p[i].sentence && *p[i].source);
		for (size_t k = 0; k < i; k++)
			assert_true(strcmp(p[i].key, p[k].key) != 0 ||
				    strcmp(p[i].group, p[k].group) != 0);
	}
}

static void test_sizes_that_cannot_work(void **state)
{
	static const char *const bad[] = {
		"tx.sndbuf_bytes=1000", "rx.rcvbuf_bytes=2000", "tx.tx_fifo_bytes=1600"};
	(void)state;
	for (size_t i = 0; i < BASE_COUNT(bad); i++) {
		struct base_err err = {0};
		struct platform_result *r = NULL;
		struct platform_config *c = read_config(TCP_STREAM);
		set(c, bad[i]);
		if (i == 2)
			set(c, "tx.mtu_bytes=9000");
		assert_int_equal(platform_run(c, NULL, &r, &err), BASE_ERR_USAGE);
		assert_non_null(strstr(err.cause[0], "_bytes"));
		platform_config_free(c);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_mistakes),
		cmocka_unit_test(test_missing_parts),
		cmocka_unit_test(test_bare_sections),
		cmocka_unit_test(test_settings),
		cmocka_unit_test(test_cut_files),
		cmocka_unit_test(test_long_lines),
		cmocka_unit_test(test_table),
		cmocka_unit_test(test_sizes_that_cannot_work),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
