/* SPDX-License-Identifier: Apache-2.0 */
/* test_os_peer.c - the kernel knows who is connected to whom; beside real sockets. */
#include "os/peer.h"
#include "test.h"

#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { NR_CLIENTS = 2 };

static uint64_t inode_of(int fd)
{
	struct stat file;
	assert_int_equal(fstat(fd, &file), 0);
	return file.st_ino;
}

static int socket_new(void)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_true(fd >= 0);
	return fd;
}

static void test_says_who(void **state)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int listener = socket_new(), client[NR_CLIENTS], server[NR_CLIENTS];
	struct os_peer peer;

	(void)state;
	os_peer_init(&peer);
	/* (a name without a file: it ends with the socket) */
	snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "longpole-peer-%d", getpid());
	assert_int_equal(bind(listener, (struct sockaddr *)&address, sizeof address), 0);
	assert_int_equal(listen(listener, NR_CLIENTS), 0);
	for (int i = 0; i < NR_CLIENTS; i++) {
		client[i] = socket_new();
		assert_int_equal(os_peer_of(&peer, inode_of(client[i])), 0);
		assert_int_equal(
			connect(client[i], (struct sockaddr *)&address, sizeof address), 0);
	}
	assert_int_equal(os_peer_of(&peer, inode_of(client[0])), 0); /* not accepted */
	for (int i = 0; i < NR_CLIENTS; i++) {
		server[i] = accept(listener, NULL, NULL);
		assert_true(server[i] >= 0);
	}
	if (peer.fd < 0) {
		print_message("skipped: this kernel does not tell peers\n");
		skip();
	}
	for (int i = 0; i < NR_CLIENTS; i++) {
		assert_int_equal(os_peer_of(&peer, inode_of(client[i])), inode_of(server[i]));
		assert_int_equal(os_peer_of(&peer, inode_of(server[i])), inode_of(client[i]));
	}
	close(client[0]);
	assert_int_equal(os_peer_of(&peer, inode_of(server[0])), 0);
	assert_int_equal(os_peer_of(&peer, 0), 0);
	assert_int_equal(os_peer_of(&peer, UINT64_MAX), 0);
	assert_true(peer.fd >= 0);
	os_peer_fini(&peer);
	assert_int_equal(os_peer_of(&peer, inode_of(server[1])), 0);
	close(client[1]);
	for (int i = 0; i < NR_CLIENTS; i++)
		close(server[i]);
	close(listener);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_says_who),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
