/* SPDX-License-Identifier: Apache-2.0 */
/*
 * relay - a wire between two network namespaces that takes time: packets of a TUN device in each
 * are handed to the other after a delay, in order, without loss (where the kernel has no netem).
 *
 *   relay NAMESPACE_A DEVICE_A NAMESPACE_B DEVICE_B DELAY_US
 *
 * Namespaces as `ip netns` names them. Makes the devices, prints "ready", ends at the end of its
 * input or when killed; the devices end with it.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <poll.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

enum { PACKET_BYTES = 2048, WAITING = 1 << 14 };

struct way { /* one direction: a ring of packets under way */
	int from, to;
	unsigned first, nr;
	uint64_t nr_dropped;
	struct packet {
		uint64_t due_ns;
		uint32_t nr_bytes;
		char bytes[PACKET_BYTES];
	} * packet;
};

static void must(bool good, const char *what)
{
	if (good)
		return;
	fprintf(stderr, "relay: %s: %s\n", what, strerror(errno));
	exit(1);
}

static uint64_t now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static int open_device(const char *name_space, const char *device)
{
	char path[256];
	struct ifreq request = {.ifr_flags = IFF_TUN | IFF_NO_PI};
	snprintf(path, sizeof path, "/run/netns/%s", name_space);
	int there = open(path, O_RDONLY | O_CLOEXEC);
	must(there >= 0, path);
	must(!setns(there, CLONE_NEWNET), "setns");
	close(there);
	int fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
	must(fd >= 0, "/dev/net/tun");
	snprintf(request.ifr_name, sizeof request.ifr_name, "%s", device);
	must(!ioctl(fd, TUNSETIFF, &request), "TUNSETIFF");
	return fd;
}

static void take(struct way *w, uint64_t delay_ns)
{
	for (;;) {
		struct packet *p = &w->packet[(w->first + w->nr) % WAITING], spill;
		if (w->nr == WAITING)
			p = &spill;
		ssize_t n = read(w->from, p->bytes, sizeof p->bytes);
		if (n <= 0)
			return;
		if (p == &spill) {
			w->nr_dropped++;
			continue;
		}
		p->due_ns = now_ns() + delay_ns;
		p->nr_bytes = (uint32_t)n;
		w->nr++;
	}
}

/* Hands over what is due; when the next one is, or UINT64_MAX. */
static uint64_t give(struct way *w)
{
	while (w->nr) {
		const struct packet *p = &w->packet[w->first];
		if (p->due_ns > now_ns())
			return p->due_ns;
		if (write(w->to, p->bytes, p->nr_bytes) < 0 && errno == EAGAIN)
			return now_ns() + 1000;
		w->first = (w->first + 1) % WAITING;
		w->nr--;
	}
	return UINT64_MAX;
}

int main(int argc, char **argv)
{
	if (argc != 6) {
		fprintf(stderr,
			"usage: relay NAMESPACE_A DEVICE_A NAMESPACE_B DEVICE_B DELAY_US\n");
		return 2;
	}
	uint64_t delay_ns = strtoull(argv[5], NULL, 10) * 1000;
	int a = open_device(argv[1], argv[2]), b = open_device(argv[3], argv[4]);
	struct way there = {.from = a, .to = b}, back = {.from = b, .to = a};
	there.packet = calloc(WAITING, sizeof *there.packet);
	back.packet = calloc(WAITING, sizeof *back.packet);
	must(there.packet && back.packet, "memory");
	prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
	puts("ready");
	fflush(stdout);
	struct pollfd fds[] = {{.fd = a, .events = POLLIN}, {.fd = b, .events = POLLIN},
		{.fd = 0, .events = POLLIN}};
	while (!fds[2].revents) {
		uint64_t due_there = give(&there), due_back = give(&back),
			 due = due_there < due_back ? due_there : due_back, now = now_ns(),
			 left = due > now ? due - now : 0;
		struct timespec wait = {.tv_sec = (time_t)(left / 1000000000u),
			.tv_nsec = (long)(left % 1000000000u)};
		must(ppoll(fds, 3, due == UINT64_MAX ? NULL : &wait, NULL) >= 0 || errno == EINTR,
			"ppoll");
		take(&there, delay_ns);
		take(&back, delay_ns);
	}
	if (there.nr_dropped + back.nr_dropped)
		fprintf(stderr, "relay: %llu packets found no room\n",
			(unsigned long long)(there.nr_dropped + back.nr_dropped));
	return 0;
}
