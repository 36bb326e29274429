/* SPDX-License-Identifier: Apache-2.0 */
/*
 * request - a server and its client as two programs, to be recorded each for itself and merged.
 * `request --as=server --port-file=FILE` serves one client and ends; `--as=client` with the same
 * file asks. Known answer: of the client's time the server's `answer` has about three quarters.
 */
#include <netinet/in.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "target.h"

enum {
	REQUESTS = 150,
	PREPARE_UNITS = 300,
	ANSWER_UNITS = 1000,
	REQUEST_BYTES = 40,
	ANSWER_BYTES = 90
};

TARGET_FUNCTION uint64_t prepare(uint64_t sum, uint64_t units)
{
	TARGET_WORK(sum, units);
	return sum;
}

TARGET_FUNCTION uint64_t answer(uint64_t sum, uint64_t units)
{
	TARGET_WORK(sum, units); /* section */
	return sum;
}

static void take(int fd, size_t nr_bytes)
{
	char bytes[ANSWER_BYTES];
	for (size_t got = 0; got < nr_bytes;) {
		ssize_t n = read(fd, bytes, nr_bytes - got);
		target_must(n > 0, "read");
		got += (size_t)n;
	}
}

static void give(int fd, size_t nr_bytes)
{
	static const char bytes[ANSWER_BYTES];
	target_must(write(fd, bytes, nr_bytes) == (ssize_t)nr_bytes, "write");
}

static uint64_t serve(const char *port_file, uint64_t percent)
{
	struct sockaddr_in address = {
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t nr_bytes = sizeof address;
	char part[512];
	uint64_t sum = 1;
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	target_must(fd >= 0 && !bind(fd, (struct sockaddr *)&address, nr_bytes) && !listen(fd, 4),
		"listen");
	target_must(!getsockname(fd, (struct sockaddr *)&address, &nr_bytes), "getsockname");
	snprintf(part, sizeof part, "%s.part", port_file);
	FILE *f = fopen(part, "w");
	target_must(f && fprintf(f, "%u\n", ntohs(address.sin_port)) > 0 && !fclose(f) &&
			    !rename(part, port_file),
		"port file");
	int client = accept(fd, NULL, NULL);
	target_must(client >= 0, "accept");
	for (uint64_t i = 0; i < REQUESTS; i++) {
		take(client, REQUEST_BYTES);
		sum = answer(sum, target_vary(2, i, ANSWER_UNITS) * percent / 100);
		give(client, ANSWER_BYTES);
	}
	close(client);
	close(fd);
	return sum;
}

static uint64_t ask(const char *port_file)
{
	struct sockaddr_in address = {
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	unsigned port = 0;
	uint64_t sum = 1;
	for (int tries = 0; !port && tries < 3000; tries++) {
		FILE *f = fopen(port_file, "r");
		if (f && fscanf(f, "%u", &port) != 1)
			port = 0;
		if (f)
			fclose(f);
		if (!port)
			nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
	}
	address.sin_port = htons((uint16_t)port);
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	target_must(
		fd >= 0 && !connect(fd, (struct sockaddr *)&address, sizeof address), "connect");
	for (uint64_t i = 0; i < REQUESTS; i++) {
		sum = prepare(sum, target_vary(1, i, PREPARE_UNITS));
		give(fd, REQUEST_BYTES);
		take(fd, ANSWER_BYTES);
	}
	close(fd);
	return sum;
}

int main(int argc, char **argv)
{
	target_check(argc, argv, "--section-percent --as --port-file");
	const char *port_file = target_text(argc, argv, "--port-file", "port");
	bool is_server = !strcmp(target_text(argc, argv, "--as", "client"), "server");
	uint64_t percent = target_percent(argc, argv);
	target_print(is_server ? serve(port_file, percent) : ask(port_file));
	return 0;
}
