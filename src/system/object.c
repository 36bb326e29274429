/* SPDX-License-Identifier: Apache-2.0 */
/* object.c - objects of the kernel's events, each defined once. */
#include "system/object.h"
#include "ring/ring.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

enum {
	SOCKET = S_IFSOCK >> 12,
	PIPE = S_IFIFO >> 12,
	INCARNATION_BASE_SHIFT = 46, /* above those that the preload library gives out */
	NAME_BYTES = 320,
};
enum key { /* upper word of k->objects */
	KEY_file = 1,
	KEY_socket,
	KEY_flow,
	KEY_netdev,
	KEY_qdisc,
	KEY_disk,
	KEY_lock,
	KEY_ring,
};

static uint64_t high(enum key key, uint64_t rest)
{
	return (uint64_t)key << 56 | (rest & ((1ull << 56) - 1));
}

static bool object_known(const struct system_kernel *k, uint64_t hi, uint64_t lo, uint32_t *ret)
{
	uint64_t value;
	if (!base_map_get(&k->objects, hi, lo, &value))
		return false;
	*ret = (uint32_t)value;
	return true;
}

static uint32_t object_remember(struct system_kernel *k, uint64_t hi, uint64_t lo, uint32_t object)
{
	enum base_status status = base_map_put(&k->objects, hi, lo, object);
	if (status != BASE_OK)
		record_sink_fail(&k->converter->sink, status, "no memory for one more object");
	return object;
}

static uint32_t object_define(
	struct system_kernel *k, enum trace_object_type type, uint64_t address, const char *name)
{
	struct record_sink *sink = &k->converter->sink;
	return record_sink_object(
		sink, (struct trace_object){.type = type,
			      .address = address,
			      .name = record_sink_text(sink, name, strlen(name))});
}

/* ---- descriptors ----------------------------------------------------------------------------- */

static size_t address_text(
	char *out, size_t size, const struct sockaddr_storage *a, socklen_t bytes)
{
	char text[INET6_ADDRSTRLEN];
	union { /* the same bytes, as what they are */
		struct sockaddr_storage any;
		struct sockaddr_in ipv4;
		struct sockaddr_in6 ipv6;
		struct sockaddr_un local;
	} u = {.any = *a};
	int n;
	if (bytes >= sizeof u.ipv4 && a->ss_family == AF_INET) {
		inet_ntop(AF_INET, &u.ipv4.sin_addr, text, sizeof text);
		n = snprintf(out, size, " %s:%u", text, ntohs(u.ipv4.sin_port));
	} else if (bytes >= sizeof u.ipv6 && a->ss_family == AF_INET6) {
		inet_ntop(AF_INET6, &u.ipv6.sin6_addr, text, sizeof text);
		n = snprintf(out, size, " %s:%u", text, ntohs(u.ipv6.sin6_port));
	} else if (bytes > sizeof(sa_family_t) && a->ss_family == AF_UNIX) {
		size_t length = bytes - offsetof(struct sockaddr_un, sun_path);
		const char *path = u.local.sun_path;
		bool abstract = !*path;
		n = snprintf(out, size, " %s%.*s", abstract ? "@" : "",
			(int)(abstract ? length - 1 : strnlen(path, length)), path + abstract);
	} else {
		n = snprintf(out, size, " -");
	}
	return n < 0 ? 0 : (size_t)n < size ? (size_t)n : size - 1;
}

static int object_socket_option(int fd, int option)
{
	int value = 0;
	socklen_t bytes = sizeof value;
	return getsockopt(fd, SOL_SOCKET, option, &value, &bytes) ? 0 : value;
}

/* As the preload library describes it: the two must be one object. */
static void object_describe_socket(int fd, struct record_descriptor *d, char name[NAME_BYTES])
{
	struct sockaddr_storage own = {0}, peer = {0};
	socklen_t own_bytes = sizeof own, peer_bytes = sizeof peer;
	int family = object_socket_option(fd, SO_DOMAIN);
	bool stream = object_socket_option(fd, SO_TYPE) == SOCK_STREAM;
	d->type = object_socket_option(fd, SO_ACCEPTCONN) ? TRACE_OBJECT_listener
							  : TRACE_OBJECT_socket;
	d->capacity_bytes = (uint64_t)object_socket_option(fd, SO_SNDBUF);
	if (getsockname(fd, (struct sockaddr *)&own, &own_bytes))
		own_bytes = 0;
	if (getpeername(fd, (struct sockaddr *)&peer, &peer_bytes))
		peer_bytes = 0;
	bool inet = family == AF_INET || family == AF_INET6;
	size_t n = (size_t)snprintf(name, NAME_BYTES, "%s",
		family == AF_UNIX ? "unix"
		: stream          ? "tcp"
		: inet            ? "udp"
				  : "socket");
	n += address_text(name + n, NAME_BYTES - n, &own, own_bytes);
	n += address_text(name + n, NAME_BYTES - n, &peer, peer_bytes);
	d->name_bytes = n;
}

/* A copy of somebody's descriptor; -1: refused, or gone. */
static int copy_descriptor(uint32_t pid, unsigned fd)
{
	int process = (int)syscall(SYS_pidfd_open, pid, 0);
	int copy = process >= 0 ? (int)syscall(__NR_pidfd_getfd, process, (int)fd, 0) : -1;
	if (process >= 0)
		close(process);
	return copy;
}

static void describe_link(
	struct record_descriptor *d, unsigned type, const char *path, char name[NAME_BYTES])
{
	static const struct {
		const char *name;
		enum trace_object_type type;
	} anonymous[] = {
		{"anon_inode:[eventfd]", TRACE_OBJECT_eventfd},
		{"anon_inode:[eventpoll]", TRACE_OBJECT_epoll},
		{"anon_inode:[timerfd]", TRACE_OBJECT_timerfd},
		{"anon_inode:[io_uring]", TRACE_OBJECT_io_uring},
	};
	ssize_t n = readlink(path, name, NAME_BYTES - 1);
	name[n > 0 ? n : 0] = 0;
	d->name_bytes = n > 0 ? (size_t)n : 0;
	d->type = type == S_IFREG >> 12 || type == S_IFDIR >> 12 || type == S_IFBLK >> 12
			  ? TRACE_OBJECT_file
			  : TRACE_OBJECT_other;
	if (type == S_IFCHR >> 12 &&
		(!strncmp(name, "/dev/pts/", 9) || !strncmp(name, "/dev/tty", 8)))
		d->type = TRACE_OBJECT_terminal;
	for (size_t i = 0; !type && i < BASE_COUNT(anonymous); i++)
		if (!strcmp(name, anonymous[i].name))
			d->type = anonymous[i].type;
}

/* What the descriptor is now, if it still is what the event was about. */
static void object_describe(
	uint32_t pid, uint64_t word, struct record_descriptor *d, char name[NAME_BYTES])
{
	unsigned type = KERNEL_FILE_TYPE(word), fd = KERNEL_FILE_FD(word);
	char path[48];
	struct stat st;
	d->type = type == SOCKET ? TRACE_OBJECT_socket
		  : type == PIPE ? TRACE_OBJECT_pipe
		  : type         ? TRACE_OBJECT_file
				 : TRACE_OBJECT_other;
	snprintf(path, sizeof path, "/proc/%u/fd/%u", pid, fd);
	d->ino = type ? (uint32_t)word : 0;
	if (stat(path, &st) || (type && (uint32_t)st.st_ino != (uint32_t)word) ||
		(st.st_mode & S_IFMT) >> 12 != type)
		return; /* closed already */
	d->dev = st.st_dev;
	d->ino = type ? st.st_ino : 0;
	if (type != SOCKET && type != PIPE) {
		describe_link(d, type, path, name);
		return;
	}
	int copy = copy_descriptor(pid, fd);
	if (copy < 0)
		return;
	if (type == SOCKET) {
		object_describe_socket(copy, d, name);
	} else {
		int bytes = fcntl(copy, F_GETPIPE_SZ);
		d->capacity_bytes = bytes > 0 ? (uint64_t)bytes : 0;
	}
	close(copy);
}

/* Descriptors that we describe need an image that they are of: the kernel. */
static uint32_t put_descriptor(struct system_kernel *k, struct record_descriptor *d)
{
	struct record_world *w = &k->converter->world;
	if (!k->image) {
		k->image = record_world_extra(w, 0);
		if (!k->image)
			return 0;
		record_image_rename(w, k->image, "kernel", 6);
	}
	d->incarnation = 1ull << INCARNATION_BASE_SHIFT | ++k->nr_descriptors;
	record_image_descriptor(w, k->image, d);
	return record_image_object(w, k->image, d->incarnation | d->type << RING_OBJECT_TYPE_SHIFT);
}

/* A socket that an interrupt saw first: now there is a descriptor to ask. Once. */
static bool object_is_nameless(struct system_kernel *k, uint32_t object, uint64_t key)
{
	const struct record_sink *sink = &k->converter->sink;
	uint32_t asked;
	if (record_sink_failed(sink) || !object || sink->object[object].name ||
		sink->object[object].type != TRACE_OBJECT_socket ||
		object_known(k, high(KEY_file, 1), key, &asked))
		return false;
	object_remember(k, high(KEY_file, 1), key, 1);
	return true;
}

uint32_t system_kernel_file(struct system_kernel *k, struct system_kernel_task *t, uint64_t word)
{
	uint64_t hi = high(KEY_file, 0), lo = KERNEL_FILE_KEY(word);
	char name[NAME_BYTES] = "";
	struct record_descriptor d = {.name = name};
	uint32_t object;
	if (!word)
		return 0;
	if (object_known(k, hi, lo, &object) && !object_is_nameless(k, object, lo))
		return object;
	if (!t->pid)
		(void)system_kernel_stream(k, t);
	object_describe(t->pid, word, &d, name);
	return object_remember(k, hi, lo, put_descriptor(k, &d));
}

uint32_t system_kernel_known_file(const struct system_kernel *k, uint64_t word)
{
	uint32_t object;
	return word && object_known(k, high(KEY_file, 0), KERNEL_FILE_KEY(word), &object) ? object
											  : 0;
}

uint32_t system_kernel_futex(
	struct system_kernel *k, struct system_kernel_task *t, uint64_t address, bool shared)
{
	struct record_image *image = system_kernel_image(k, t);
	if (!address || address > RING_OBJECT_ADDRESS || !image)
		return 0;
	return record_image_object(&k->converter->world, image,
		address | (uint64_t)TRACE_OBJECT_futex << RING_OBJECT_TYPE_SHIFT |
			(shared ? RING_OBJECT_SHARED : 0));
}

/* ---- sockets --------------------------------------------------------------------------------- */

/* All sockets are on one device. */
static uint64_t socket_device(struct system_kernel *k)
{
	struct stat st;
	if (k->socket_device)
		return k->socket_device;
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd >= 0 && !fstat(fd, &st))
		k->socket_device = st.st_dev;
	if (fd >= 0)
		close(fd);
	return k->socket_device;
}

static void one_address(const struct kernel_address *a, const unsigned char *ip, unsigned port,
	const char *open, char *out, size_t size)
{
	char text[INET6_ADDRSTRLEN] = "?";
	inet_ntop(a->family == AF_INET ? AF_INET : AF_INET6, ip, text, sizeof text);
	snprintf(out, size, "%s%s:%u", open, text, port);
}

static const char *protocol_name(unsigned protocol)
{
	return protocol == IPPROTO_TCP    ? "tcp"
	       : protocol == IPPROTO_UDP  ? "udp"
	       : protocol == IPPROTO_ICMP ? "icmp"
					  : "ip";
}

static uint32_t socket_by_inode(struct system_kernel *k, uint32_t inode, const char *name)
{
	uint64_t hi = high(KEY_file, 0), lo = KERNEL_FILE_KEY(KERNEL_FILE(inode, SOCKET, 0, 0));
	struct record_descriptor d = {.type = TRACE_OBJECT_socket,
		.dev = socket_device(k),
		.ino = inode,
		.name = name,
		.name_bytes = strlen(name)};
	uint32_t object;
	if (!*name && object_known(k, hi, lo, &object))
		return object;
	return object_remember(k, hi, lo, put_descriptor(k, &d));
}

uint32_t system_kernel_socket(struct system_kernel *k, uint64_t sock, uint32_t inode)
{
	uint64_t hi = high(KEY_socket, 0);
	uint32_t object;
	bool seen = object_known(k, hi, sock, &object);
	if (!sock)
		return 0;
	if (seen && (!inode || k->converter->sink.object[object].address))
		return object;
	if (inode) /* accepted since: from now on it is the one that programs know */
		return object_remember(k, hi, sock, socket_by_inode(k, inode, ""));
	return object_remember(k, hi, sock, object_define(k, TRACE_OBJECT_socket, 0, ""));
}

void system_kernel_socket_named(
	struct system_kernel *k, uint64_t sock, const struct kernel_address *a)
{
	char name[NAME_BYTES];
	uint64_t hi = high(KEY_socket, 0);
	size_t n = (size_t)snprintf(name, sizeof name, "%s", protocol_name(a->protocol));
	one_address(a, a->from, a->from_port, " ", name + n, sizeof name - n);
	n = strlen(name);
	one_address(a, a->to, a->to_port, " ", name + n, sizeof name - n);
	if (a->inode)
		object_remember(k, hi, sock, socket_by_inode(k, a->inode, name));
	else
		object_remember(k, hi, sock, object_define(k, TRACE_OBJECT_socket, 0, name));
}

void system_kernel_socket_closed(struct system_kernel *k, uint64_t sock)
{
	base_map_remove(&k->objects, high(KEY_socket, 0), sock);
}

uint32_t system_kernel_flow(struct system_kernel *k, const struct kernel_address *a)
{
	char name[NAME_BYTES];
	uint64_t word[4],
		hash = (uint64_t)a->from_port << 32 | (uint64_t)a->to_port << 16 | a->protocol;
	uint32_t object;
	memcpy(word, a->from, sizeof word);
	uint64_t other = ~hash;
	for (int i = 0; i < 4; i++) {
		hash = base_hash_u64(hash ^ word[i]);
		other = base_hash_u64(other + word[i]);
	}
	if (object_known(k, high(KEY_flow, other), hash, &object))
		return object;
	size_t n = (size_t)snprintf(name, sizeof name, "%s", protocol_name(a->protocol));
	one_address(a, a->from, a->from_port, " ", name + n, sizeof name - n);
	n = strlen(name);
	one_address(a, a->to, a->to_port, ">", name + n, sizeof name - n);
	return object_remember(
		k, high(KEY_flow, other), hash, object_define(k, TRACE_OBJECT_flow, 0, name));
}

/* ---- devices --------------------------------------------------------------------------------- */

/* A file of that network namespace: one that `ip netns` made, or some process's. -1: none. */
static int open_namespace(uint32_t inode)
{
	static const struct {
		const char *dir, *suffix;
	} place[] = {{"/run/netns", ""}, {"/proc", "/ns/net"}};
	char path[320];
	int found = -1;
	for (size_t i = 0; found < 0 && i < BASE_COUNT(place); i++) {
		DIR *d = opendir(place[i].dir);
		for (struct dirent *e; d && found < 0 && (e = readdir(d));) {
			struct stat st;
			if (i == 1 && (*e->d_name < '0' || *e->d_name > '9'))
				continue;
			snprintf(path, sizeof path, "%s/%s%s", place[i].dir, e->d_name,
				place[i].suffix);
			if (!stat(path, &st) && (uint32_t)st.st_ino == inode)
				found = open(path, O_RDONLY | O_CLOEXEC);
		}
		if (d)
			closedir(d);
	}
	return found;
}

/* if_indextoname() in a namespace: this thread goes there and comes back. */
static void device_name(const struct system_kernel *k, uint32_t net_namespace, uint32_t index,
	char name[IF_NAMESIZE])
{
	struct stat st;
	snprintf(name, IF_NAMESIZE, "if%u", index);
	if (k->alone)
		return;
	bool ours = !stat("/proc/self/ns/net", &st) && (uint32_t)st.st_ino == net_namespace;
	if (ours || !net_namespace) {
		if_indextoname(index, name);
		return;
	}
	int there = open_namespace(net_namespace),
	    back = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	if (there >= 0 && back >= 0 && !setns(there, CLONE_NEWNET)) {
		if_indextoname(index, name);
		(void)!setns(back, CLONE_NEWNET);
	}
	if (there >= 0)
		close(there);
	if (back >= 0)
		close(back);
}

uint32_t system_kernel_netdev(struct system_kernel *k, uint32_t net_namespace, uint32_t index)
{
	uint64_t hi = high(KEY_netdev, net_namespace);
	char name[IF_NAMESIZE], full[64];
	uint32_t object;
	if (object_known(k, hi, index, &object))
		return object;
	device_name(k, net_namespace, index, name);
	snprintf(full, sizeof full, "%s in %u", name, net_namespace);
	return object_remember(k, hi, index, object_define(k, TRACE_OBJECT_netdev, index, full));
}

uint32_t system_kernel_qdisc(
	struct system_kernel *k, uint32_t net_namespace, uint32_t index, uint32_t handle)
{
	uint64_t hi = high(KEY_qdisc, net_namespace), lo = (uint64_t)index << 32 | handle;
	char name[IF_NAMESIZE], full[64];
	uint32_t object;
	if (object_known(k, hi, lo, &object))
		return object;
	device_name(k, net_namespace, index, name);
	snprintf(full, sizeof full, "%x: of %s in %u", handle >> 16, name, net_namespace);
	return object_remember(k, hi, lo, object_define(k, TRACE_OBJECT_qdisc, lo, full));
}

uint32_t system_kernel_disk(struct system_kernel *k, uint64_t device)
{
	char path[64], target[256];
	uint32_t object;
	if (object_known(k, high(KEY_disk, 0), device, &object))
		return object;
	snprintf(path, sizeof path, "/sys/dev/block/%u:%u", (unsigned)(device >> 20),
		(unsigned)device & 0xfffff);
	ssize_t n = readlink(path, target, sizeof target - 1);
	target[n > 0 ? n : 0] = 0;
	const char *slash = strrchr(target, '/');
	return object_remember(k, high(KEY_disk, 0), device,
		object_define(k, TRACE_OBJECT_disk, device, slash ? slash + 1 : path + 15));
}

uint32_t system_kernel_lock(struct system_kernel *k, uint64_t address)
{
	uint32_t object;
	if (object_known(k, high(KEY_lock, 0), address, &object))
		return object;
	return object_remember(k, high(KEY_lock, 0), address,
		object_define(k, TRACE_OBJECT_kernel_lock, address, ""));
}

/* ---- io_uring -------------------------------------------------------------------------------- */

/* Whoever waits at it knows that it is one, though its process had ended before we could look. */
static void be_ring(struct record_sink *sink, uint32_t object)
{
	struct trace_object *o = record_sink_failed(sink) ? NULL : &sink->object[object];
	if (!o || o->type != TRACE_OBJECT_other)
		return;
	o->type = TRACE_OBJECT_io_uring;
	record_sink_object_again(sink, object);
}

void system_kernel_ring_is(struct system_kernel *k, uint64_t ring, uint32_t object)
{
	uint32_t before;
	if (object_known(k, high(KEY_ring, 0), ring, &before) && before == object)
		return;
	be_ring(&k->converter->sink, object);
	(void)object_remember(k, high(KEY_ring, 0), ring, object);
}

uint32_t system_kernel_ring(struct system_kernel *k, uint64_t ring)
{
	uint32_t object;
	if (object_known(k, high(KEY_ring, 0), ring, &object))
		return object;
	return object_remember(
		k, high(KEY_ring, 0), ring, object_define(k, TRACE_OBJECT_io_uring, 0, ""));
}
