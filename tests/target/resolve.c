/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resolve - computes, then asks a name server that never answers, for a second. Known answer: the
 * path is the name's resolution. The server is a socket of the program's own, whatever
 * /etc/resolv.conf and /etc/nsswitch.conf say.
 */
#include <arpa/inet.h>
#include <netdb.h>
#include <resolv.h>
#include <sys/socket.h>
#include <unistd.h>

#include "target.h"

int __nss_configure_lookup(const char *database, const char *services);

TARGET_FUNCTION uint64_t prepare(uint64_t sum, uint64_t units)
{
	TARGET_WORK(sum, units); /* section */
	return sum;
}

static void ask_only(const struct sockaddr_in *server)
{
	target_must(!res_init(), "res_init");
	_res.nscount = 1;
	_res.nsaddr_list[0] = *server;
	_res.retrans = 1;
	_res.retry = 1;
	_res.options &= ~(unsigned long)(RES_DNSRCH | RES_DEFNAMES);
	target_must(!__nss_configure_lookup("hosts", "dns"), "__nss_configure_lookup");
}

int main(int argc, char **argv)
{
	target_check(argc, argv, "--section-percent --by --units");
	uint64_t units = target_number(argc, argv, "--units", 100000);
	const char *by = target_text(argc, argv, "--by", "getaddrinfo");
	struct sockaddr_in server = {
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t length = sizeof server;
	struct addrinfo hints = {.ai_family = AF_INET}, *found = NULL;
	int fd = socket(AF_INET, SOCK_DGRAM, 0);
	target_must(fd >= 0 && !bind(fd, (struct sockaddr *)&server, length), "bind");
	target_must(!getsockname(fd, (struct sockaddr *)&server, &length), "getsockname");
	ask_only(&server);
	target_print(prepare(1, units * target_percent(argc, argv) / 100));
	if (!strcmp(by, "gethostbyname"))
		target_must(!gethostbyname("nobody.example."), "an answer");
	else
		target_must(getaddrinfo("nobody.example.", NULL, &hints, &found), "an answer");
	close(fd);
	return 0;
}
