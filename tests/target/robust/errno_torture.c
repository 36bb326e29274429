/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every wrapped call that can fail, failing and succeeding: results and errno must be those of the
 * bare run.
 */
#include "errno_torture.h"

#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <aio.h>
#include <mqueue.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/sendfile.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <termios.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>
#include <wchar.h>

static char text[256];
static const struct timespec past = {1, 0}, wrong = {1, 1000000000}, negative = {-1, 0},
			     tick = {0, 1000};
static struct iovec pieces[2000];

static void set_up(void)
{
	for (int i = 0; i < 2000; i++)
		pieces[i] = (struct iovec){text, 1};
}

/* ---- bytes ----------------------------------------------------------------------------------- */

static void plain(int in, int out)
{
	struct iovec bad[1] = {{BAD, 8}};
	SHOW(read(in, text, 8));
	SHOW(write(out, "abcdefgh", 8));
	SHOW(read(in, BAD, 8));
	SHOW(read(in, text, 8));
	SHOW(write(out, BAD, 8));
	SHOW(read(-1, text, 8));
	SHOW(write(-1, text, 8));
	SHOW(read(out, text, 8));
	SHOW(write(in, text, 8));
	SHOW(readv(in, pieces, 2));
	SHOW(writev(out, pieces, 2));
	SHOW(readv(in, pieces, 2));
	SHOW(readv(in, BAD, 1));
	SHOW(writev(out, BAD, 1));
	SHOW(writev(out, bad, 1));
	SHOW(readv(in, pieces, -1));
	SHOW(writev(out, pieces, 2000));
	SHOW(writev(out, pieces, 0x7fffffff));
	SHOW(writev(out, NULL, 1));
	SHOW(readv(-1, pieces, 2));
	SHOW(vmsplice(out, pieces, 2, 0));
	SHOW(vmsplice(-1, pieces, 2, 0));
	SHOW(vmsplice(out, BAD, 1, 0));
	SHOW(tee(in, out, 8, SPLICE_F_NONBLOCK));
	SHOW(tee(in, -1, 8, SPLICE_F_NONBLOCK));
	SHOW(splice(in, NULL, -1, NULL, 8, 0));
	SHOW(splice(-1, NULL, out, NULL, 8, 0));
	SHOW(pread(in, text, 8, 0));
	SHOW(pwrite(out, text, 8, 0));
}

static void files(void)
{
	char name[] = "torture-XXXXXX";
	struct flock lock = {.l_type = F_WRLCK};
	int fd = mkstemp(name);
	int other = open(name, O_RDWR), full = open("/dev/full", O_WRONLY);
	SHOW(pwrite(fd, "abcdefgh", 8, 0));
	SHOW(pread(fd, text, 8, 4));
	SHOW(pread(fd, text, 8, 100));
	SHOW(pread(fd, text, 8, -1));
	SHOW(pwrite(fd, text, 8, -1));
	SHOW(pread(-1, text, 8, 0));
	SHOW(preadv(fd, pieces, 2, 0));
	SHOW(preadv(fd, pieces, 2, -1));
	SHOW(pwritev(fd, pieces, 2, 0));
	SHOW(pwritev(fd, BAD, 2, 0));
	SHOW(preadv2(fd, pieces, 2, 0, 0));
	SHOW(preadv2(fd, pieces, 2, 0, 0x40000000));
	SHOW(pwritev2(fd, pieces, 2, 0, 0));
	SHOW(pwritev2(-1, pieces, 2, 0, 0));
	SHOW(write(full, "x", 1));
	SHOW(fsync(fd));
	SHOW(fsync(-1));
	SHOW(fsync(full));
	SHOW(tcdrain(fd));
	SHOW(tcdrain(-1));
	SHOW(stat("/proc/self/no such file", &(struct stat){0}));
	SHOW(lstat("/", &(struct stat){0}));
	SHOW(fstatat(-1, "no such file", &(struct stat){0}, 0));
	SHOW(statx(AT_FDCWD, "/", 0, STATX_TYPE, &(struct statx){0}));
	SHOW(statx(AT_FDCWD, "/", 0, 1u << 31, &(struct statx){0}));
	SHOW(access("/", R_OK));
	SHOW(access("/no such file", R_OK));
	SHOW(faccessat(AT_FDCWD, "/no such file", R_OK, 0));
	SHOW(readlink("/", text, 1));
	SHOW(readlinkat(AT_FDCWD, "/no such file", text, 1));
	SHOW(chdir("/no such file"));
	SHOW(opendir("/no such directory") != NULL);
	SHOW(fopen("/no such file", "r") != NULL);
	SHOW(msync(text, 1, 99));
	SHOW(msync((void *)0x1000, 4096, MS_SYNC));
	SHOW(fdatasync(fd));
	SHOW(fdatasync(-1));
	SHOW(flock(fd, LOCK_EX));
	SHOW(flock(other, LOCK_EX | LOCK_NB));
	SHOW(flock(fd, LOCK_UN));
	SHOW(flock(fd, 99));
	SHOW(flock(-1, LOCK_EX));
	SHOW(lockf(fd, F_TLOCK, 0));
	SHOW(lockf(fd, F_ULOCK, 0));
	SHOW(lockf(fd, 99, 0));
	SHOW(lockf(-1, F_LOCK, 0));
	SHOW(fcntl(fd, F_SETLKW, &lock));
	SHOW(fcntl(fd, F_SETLKW, BAD));
	SHOW(fcntl(-1, F_SETLKW, &lock));
	SHOW(lockf(fd, F_ULOCK, 0)); /* an open file's lock would wait for the process's */
	SHOW(fcntl(fd, F_OFD_SETLKW, &lock));
	lock.l_pid = 1;
	SHOW(fcntl(fd, F_OFD_SETLKW, &lock));
	SHOW(fcntl(fd, F_DUPFD, 100));
	SHOW(fcntl(fd, F_DUPFD, -1));
	SHOW(fcntl(fd, F_DUPFD_CLOEXEC, 100));
	SHOW(fcntl(-1, F_DUPFD, 0));
	SHOW(fcntl(fd, F_GETFD));
	SHOW(fcntl(fd, 9999));
	SHOW(sendfile(full, fd, NULL, 8));
	SHOW(sendfile(-1, fd, NULL, 8));
	SHOW(sendfile(fd, -1, NULL, 8));
	SHOW(copy_file_range(fd, NULL, other, NULL, 8, 1));
	SHOW(copy_file_range(-1, NULL, other, NULL, 8, 0));
	SHOW(close(100));
	SHOW(close(101));
	SHOW(close(full));
	SHOW(close(other));
	SHOW(close(fd));
	unlink(name);
}

/* ---- descriptors ----------------------------------------------------------------------------- */

static void descriptors(void)
{
	int fds[2], fd;
	sigset_t set;
	sigemptyset(&set);
	SHOW(fd = open("/dev/null", O_RDWR));
	SHOW(open("/does/not/exist", O_RDONLY));
	SHOW(open("/dev/null/x", O_RDONLY));
	SHOW(open("/", O_WRONLY));
	SHOW(open(BAD, O_RDONLY));
	SHOW(openat(-1, "x", O_RDONLY));
	SHOW(openat(fd, "x", O_RDONLY));
	SHOW(creat("/does/not/exist", 0600));
	SHOW(creat("/", 0600));
	SHOW(dup(fd));
	SHOW(dup(-1));
	SHOW(dup2(fd, fd));
	SHOW(dup2(-1, fd));
	SHOW(dup2(fd, -1));
	SHOW(dup2(fd, 50));
	SHOW(dup2(fd, 50));
	SHOW(dup3(fd, fd, 0));
	SHOW(dup3(fd, 51, O_CLOEXEC));
	SHOW(dup3(fd, 51, 99));
	SHOW(dup3(-1, 51, 0));
	SHOW(close_range(50, 51, 0));
	SHOW(close_range(51, 50, 0));
	SHOW(close_range(50, 51, 99));
	SHOW(close(50));
	SHOW(close(-1));
	SHOW((closefrom(50), 0));
	SHOW(pipe(fds));
	SHOW(pipe(BAD));
	SHOW(close(fds[0]));
	SHOW(write(fds[1], "x", 1)); /* SIGPIPE is ignored */
	SHOW(close(fds[1]));
	SHOW(close(fds[1]));
	SHOW(pipe2(fds, O_NONBLOCK));
	SHOW(close(fds[1]));
	SHOW(read(fds[0], text, 8));
	SHOW(close(fds[0]));
	SHOW(pipe2(fds, 99));
	SHOW(socket(AF_UNIX, SOCK_STREAM, 0));
	SHOW(socket(999, SOCK_STREAM, 0));
	SHOW(socket(AF_INET, 999, 0));
	SHOW(socketpair(AF_INET, SOCK_STREAM, 0, fds));
	SHOW(socketpair(AF_UNIX, SOCK_STREAM, 99, fds));
	SHOW(socketpair(AF_UNIX, SOCK_STREAM, 0, BAD));
	SHOW(eventfd(3, EFD_NONBLOCK));
	SHOW(eventfd(3, 99));
	SHOW(timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK));
	SHOW(timerfd_create(99, 0));
	SHOW(timerfd_create(CLOCK_MONOTONIC, 99));
	SHOW(signalfd(-1, &set, SFD_NONBLOCK));
	SHOW(signalfd(-1, &set, 99));
	SHOW(signalfd(fd, &set, 0));
	SHOW(memfd_create("torture", 0));
	SHOW(memfd_create("torture", 0x4000));
	SHOW(memfd_create(BAD, 0));
	SHOW(epoll_create(1));
	SHOW(epoll_create(0));
	SHOW(epoll_create1(0));
	SHOW(epoll_create1(99));
	closefrom(fd);
}

/* No descriptor is left: every call that makes one says so. */
static void no_descriptors(void)
{
	struct rlimit limit, none;
	int fds[2], listener, client;
	struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "\0torture-nofile"};
	snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "torture-%d", (int)getpid());
	listener = socket(AF_UNIX, SOCK_STREAM, 0);
	client = socket(AF_UNIX, SOCK_STREAM, 0);
	bind(listener, (struct sockaddr *)&address, sizeof address);
	listen(listener, 4);
	connect(client, (struct sockaddr *)&address, sizeof address);
	getrlimit(RLIMIT_NOFILE, &limit);
	none = limit;
	none.rlim_cur = (rlim_t)client + 1;
	setrlimit(RLIMIT_NOFILE, &none);
	SHOW(accept(listener, NULL, NULL));
	SHOW(accept4(listener, NULL, NULL, SOCK_NONBLOCK));
	SHOW(open("/dev/null", O_RDONLY));
	SHOW(openat(AT_FDCWD, "/dev/null", O_RDONLY));
	SHOW(dup(0));
	SHOW(dup2(0, client + 1));
	SHOW(fcntl(0, F_DUPFD, 0));
	SHOW(pipe(fds));
	SHOW(socket(AF_UNIX, SOCK_STREAM, 0));
	SHOW(socketpair(AF_UNIX, SOCK_STREAM, 0, fds));
	SHOW(eventfd(0, 0));
	SHOW(timerfd_create(CLOCK_MONOTONIC, 0));
	SHOW(memfd_create("torture", 0));
	SHOW(epoll_create1(0));
	SHOW_SIGN(fopen("/dev/null", "r"));
	SHOW_SIGN(popen("true", "r"));
	setrlimit(RLIMIT_NOFILE, &limit);
	closefrom(listener);
}

/* ---- sockets --------------------------------------------------------------------------------- */

/* Numbers only: nobody is asked. */
static void names(void)
{
	struct addrinfo *found, numeric = {.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV};
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = 0x0100007f};
	struct hostent host, *to = NULL;
	char name[64];
	int error = 0;
	SHOW(getaddrinfo("127.0.0.1", "80", &numeric, &found));
	freeaddrinfo(found);
	SHOW(getaddrinfo("not a number", "80", &numeric, &found));
	SHOW(getaddrinfo(NULL, NULL, &numeric, &found));
	SHOW(getnameinfo((struct sockaddr *)&address, sizeof address, name, sizeof name, NULL, 0,
		NI_NUMERICHOST));
	SHOW(getnameinfo((struct sockaddr *)&address, 1, name, sizeof name, NULL, 0, 0));
	SHOW(gethostbyname("127.0.0.1") != NULL);
	SHOW(gethostbyname2("127.0.0.1", AF_INET) != NULL);
	SHOW(gethostbyname_r("127.0.0.1", &host, text, sizeof text, &to, &error));
	SHOW(gethostbyname_r("127.0.0.1", &host, text, 1, &to, &error));
	SHOW(gethostbyname2_r("127.0.0.1", AF_INET, &host, text, sizeof text, &to, &error));
	SHOW(gethostbyaddr("x", 1, AF_INET) != NULL);
	SHOW(gethostbyaddr_r("x", 1, AF_INET, &host, text, sizeof text, &to, &error));
}

static void list_of_requests(int in, int out)
{
	static char byte[2];
	struct aiocb put = {
		.aio_fildes = out, .aio_buf = byte, .aio_nbytes = 2, .aio_lio_opcode = LIO_WRITE};
	struct aiocb take = {
		.aio_fildes = in, .aio_buf = text, .aio_nbytes = 2, .aio_lio_opcode = LIO_READ};
	struct aiocb nothing = {.aio_fildes = -1, .aio_lio_opcode = LIO_NOP};
	struct aiocb closed = {.aio_fildes = -1, .aio_lio_opcode = LIO_READ};
	struct aiocb *list[] = {NULL, &nothing, &take, &put}, *bad[] = {&closed};
	SHOW(lio_listio(LIO_WAIT, list, 4, NULL));
	SHOW(aio_return(&take));
	SHOW(aio_return(&put));
	SHOW(lio_listio(LIO_WAIT, bad, 1, NULL));
	SHOW(lio_listio(LIO_WAIT, list, -1, NULL));
	SHOW(lio_listio(99, list, 4, NULL));
}

static void messages(int one, int other)
{
	struct msghdr message = {.msg_iov = pieces, .msg_iovlen = 2},
		      bad = {.msg_iov = BAD, .msg_iovlen = 1},
		      many = {.msg_iov = pieces, .msg_iovlen = (size_t)1 << 40};
	struct mmsghdr several[2] = {{.msg_hdr = message}, {.msg_hdr = message}};
	SHOW(recv(one, text, 8, MSG_DONTWAIT));
	SHOW(recv(one, text, 8, MSG_DONTWAIT | MSG_PEEK));
	SHOW(send(other, "abcdefgh", 8, 0));
	SHOW(recv(one, BAD, 8, 0));
	SHOW(send(other, BAD, 8, 0));
	SHOW(recv(one, text, 4, MSG_PEEK));
	SHOW(recv(one, text, 4, 0));
	SHOW(recvfrom(one, text, 4, 0, NULL, NULL));
	SHOW(recvfrom(one, text, 4, MSG_DONTWAIT, NULL, NULL));
	SHOW(sendto(other, "abcd", 4, 0, NULL, 0));
	SHOW(recvmsg(one, &message, 0));
	SHOW(recvmsg(one, &message, MSG_PEEK));
	SHOW(recvmsg(one, &message, 0));
	SHOW(recvmsg(one, &message, MSG_DONTWAIT));
	SHOW(recvmsg(one, BAD, MSG_DONTWAIT));
	SHOW(sendmsg(other, &message, 0));
	SHOW(sendmsg(other, &bad, 0));
	SHOW(sendmsg(other, &many, 0));
	SHOW(sendmsg(other, BAD, 0));
	SHOW(sendmmsg(other, several, 2, 0));
	SHOW(sendmmsg(other, BAD, 2, 0));
	SHOW(recvmmsg(one, several, 2, MSG_DONTWAIT, NULL));
	SHOW(recvmmsg(one, several, 2, MSG_DONTWAIT, NULL));
	SHOW(recvmmsg(one, several, 2, MSG_DONTWAIT, NULL));
	SHOW(recvmmsg(one, BAD, 2, MSG_DONTWAIT, NULL));
	SHOW(send(-1, "x", 1, 0));
	SHOW(send(0, "x", 1, 0));
	SHOW(recv(-1, text, 1, 0));
	SHOW(recv(0, text, 1, 0));
	SHOW(recvmsg(-1, &message, 0));
	SHOW(sendmsg(-1, &message, 0));
	SHOW(sendto(-1, "x", 1, 0, NULL, 0));
	SHOW(sendmmsg(-1, several, 2, 0));
	SHOW(recvmmsg(-1, several, 2, 0, NULL));
	SHOW(shutdown(other, SHUT_WR));
	SHOW(shutdown(other, 99));
	SHOW(shutdown(-1, SHUT_WR));
	SHOW(send(other, "x", 1, 0));
	SHOW(recv(one, text, 8, 0));
	SHOW(close(other));
	SHOW(send(one, "x", 1, MSG_NOSIGNAL));
	SHOW(close(one));
}

/* The listener does not block, and nobody is there: EAGAIN, as often as it is asked. */
static void nobody(int listener)
{
	struct sockaddr_storage from;
	socklen_t length = sizeof from;
	struct pollfd p = {listener, POLLIN, 0};
	for (int i = 0; i < 50; i++) {
		SHOW(accept4(
			listener, (struct sockaddr *)&from, &length, SOCK_NONBLOCK | SOCK_CLOEXEC));
		SHOW(accept(listener, NULL, NULL));
	}
	SHOW(accept4(listener, NULL, NULL, 99));
	SHOW(accept(listener, BAD, BAD));
	SHOW(poll(&p, 1, 0));
}

static void connections(int family)
{
	struct sockaddr_storage from;
	union {
		struct sockaddr any;
		struct sockaddr_un local;
		struct sockaddr_in ipv4;
	} address = {.any.sa_family = (sa_family_t)family};
	socklen_t length = family == AF_UNIX ? sizeof address.local : sizeof address.ipv4;
	int listener = socket(family, SOCK_STREAM | SOCK_NONBLOCK, 0), served;
	int client = socket(family, SOCK_STREAM, 0);
	if (family == AF_UNIX)
		snprintf(address.local.sun_path + 1, sizeof address.local.sun_path - 1,
			"torture-listener-%d", (int)getpid());
	else
		address.ipv4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	SHOW(accept(listener, NULL, NULL));
	SHOW(accept4(listener, NULL, NULL, 0));
	bind(listener, &address.any, length);
	getsockname(listener, &address.any, &length);
	SHOW(connect(client, &address.any, length));
	listen(listener, 4);
	nobody(listener);
	if (family == AF_INET) { /* a refused socket may be used again, by POSIX it need not */
		close(client);
		client = socket(family, SOCK_STREAM, 0);
	}
	SHOW(connect(client, &address.any, length));
	SHOW(connect(client, &address.any, length));
	length = sizeof from;
	SHOW(served = accept4(listener, (struct sockaddr *)&from, &length, SOCK_NONBLOCK));
	SHOW(accept4(listener, NULL, NULL, SOCK_NONBLOCK));
	messages(served, client);
	SHOW(connect(-1, &address.any, length));
	SHOW(connect(0, &address.any, length));
	SHOW(connect(listener, BAD, 2));
	SHOW(accept(-1, NULL, NULL));
	SHOW(accept4(-1, NULL, NULL, 0));
	SHOW(accept4(0, NULL, NULL, 0));
	SHOW(close(listener));
	SHOW(accept4(listener, NULL, NULL, 0));
}

/* ---- readiness ------------------------------------------------------------------------------- */

static void watch(fd_set *ins, int in, fd_set *outs, int out)
{
	FD_ZERO(ins);
	FD_ZERO(outs);
	FD_SET(in, ins);
	FD_SET(out, outs);
}

static void readiness(int in, int out)
{
	struct pollfd p[2] = {{in, POLLIN, 0}, {out, POLLOUT, 0}};
	struct timeval zero = {0, 0}, odd = {-1, 0};
	struct epoll_event event = {.events = EPOLLIN, .data.fd = in}, got[2];
	sigset_t set;
	fd_set ins, outs;
	int epoll = epoll_create1(0), file = open("/", O_RDONLY);
	sigemptyset(&set);
	SHOW(poll(p, 1, 0));
	SHOW(poll(p, 1, 1));
	SHOW(poll(p, 2, 0));
	SHOW(poll(BAD, 1, 0));
	SHOW(poll(p, (nfds_t)-1, 0));
	p[0].fd = 999;
	SHOW(poll(p, 1, 0));
	p[0].fd = in;
	SHOW(ppoll(p, 1, &tick, &set));
	SHOW(ppoll(p, 1, &wrong, NULL));
	SHOW(ppoll(p, 1, &tick, BAD));
	SHOW(ppoll(p, 2, NULL, NULL));
	watch(&ins, in, &outs, out);
	SHOW(select(out + 1, &ins, NULL, NULL, &zero));
	watch(&ins, in, &outs, out);
	SHOW(select(out + 1, &ins, &outs, NULL, NULL));
	watch(&ins, in, &outs, out);
	SHOW(select(-1, &ins, &outs, NULL, NULL));
	SHOW(select(out + 1, &ins, &outs, NULL, &odd));
	FD_SET(999, &ins);
	SHOW(select(1000, &ins, NULL, NULL, &zero));
	SHOW(select(in + 1, BAD, NULL, NULL, NULL));
	watch(&ins, in, &outs, out);
	SHOW(pselect(out + 1, &ins, NULL, NULL, &tick, &set));
	SHOW(pselect(out + 1, &ins, &outs, NULL, NULL, NULL));
	SHOW(pselect(-1, &ins, NULL, NULL, &tick, NULL));
	SHOW(pselect(in + 1, &ins, NULL, NULL, &wrong, NULL));
	SHOW(epoll_ctl(epoll, EPOLL_CTL_ADD, in, &event));
	SHOW(epoll_ctl(epoll, EPOLL_CTL_ADD, in, &event));
	SHOW(epoll_ctl(epoll, EPOLL_CTL_DEL, out, NULL));
	SHOW(epoll_ctl(epoll, EPOLL_CTL_ADD, file, &event));
	SHOW(epoll_ctl(epoll, EPOLL_CTL_ADD, epoll, &event));
	SHOW(epoll_ctl(epoll, 99, out, &event));
	SHOW(epoll_ctl(epoll, EPOLL_CTL_MOD, in, BAD));
	SHOW(epoll_ctl(-1, EPOLL_CTL_ADD, in, &event));
	SHOW(epoll_ctl(epoll, EPOLL_CTL_ADD, -1, &event));
	SHOW(epoll_wait(epoll, got, 2, 0));
	SHOW(epoll_wait(epoll, got, 2, 1));
	SHOW(write(out, "x", 1));
	SHOW(epoll_wait(epoll, got, 2, -1));
	SHOW(epoll_wait(epoll, BAD, 2, -1));
	SHOW(epoll_wait(epoll, got, 0, 0));
	SHOW(epoll_wait(epoll, got, -1, 0));
	SHOW(epoll_wait(in, got, 2, 0));
	SHOW(epoll_wait(-1, got, 2, 0));
	SHOW(epoll_pwait(epoll, got, 2, 0, &set));
	SHOW(epoll_pwait(epoll, got, 2, 0, BAD));
	SHOW(epoll_pwait(-1, got, 2, 0, NULL));
	SHOW(epoll_pwait2(epoll, got, 2, &tick, &set));
	SHOW(epoll_pwait2(epoll, got, 2, &wrong, NULL));
	SHOW(read(in, text, 8));
	close(epoll);
	close(file);
}

static void events(void)
{
	eventfd_t value;
	uint64_t most = UINT64_MAX;
	struct itimerspec soon = {{1, 0}, {1, 0}}, before;
	int fd = eventfd(0, EFD_NONBLOCK), timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
	SHOW(eventfd_read(fd, &value));
	SHOW(eventfd_write(fd, 5));
	SHOW(eventfd_read(fd, &value));
	SHOW(eventfd_write(fd, UINT64_MAX - 1));
	SHOW(eventfd_write(fd, 1));
	SHOW(eventfd_read(-1, &value));
	SHOW(eventfd_write(-1, 1));
	SHOW(write(fd, &most, 8));
	SHOW(read(fd, text, 4));
	SHOW(read(fd, text, 8));
	SHOW(read(fd, text, 8));
	SHOW(read(timer, text, 8));
	SHOW(write(timer, text, 8));
	SHOW(timerfd_settime(timer, 0, &soon, &before));
	SHOW(timerfd_settime(timer, TFD_TIMER_ABSTIME, &soon, NULL));
	SHOW(timerfd_settime(timer, 99, &soon, NULL));
	SHOW(timerfd_settime(timer, 0, BAD, NULL));
	SHOW(timerfd_settime(fd, 0, &soon, NULL));
	SHOW(timerfd_settime(-1, 0, &soon, NULL));
	close(fd);
	close(timer);
}

/* ---- time ------------------------------------------------------------------------------------ */

static void sleeps(void)
{
	SHOW(nanosleep(&tick, NULL));
	SHOW(nanosleep(&wrong, NULL));
	SHOW(nanosleep(&negative, NULL));
	SHOW(nanosleep(BAD, NULL));
	SHOW(clock_nanosleep(CLOCK_MONOTONIC, 0, &tick, NULL));
	SHOW(clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &past, NULL));
	SHOW(clock_nanosleep(CLOCK_MONOTONIC, 0, &wrong, NULL));
	SHOW(clock_nanosleep(CLOCK_MONOTONIC, 0, BAD, NULL));
	SHOW(clock_nanosleep(999, 0, &tick, NULL));
	SHOW(clock_nanosleep(999, TIMER_ABSTIME, &past, NULL));
	SHOW(clock_nanosleep(CLOCK_THREAD_CPUTIME_ID, 0, &tick, NULL));
	SHOW(usleep(1));
	SHOW(usleep(0));
	SHOW(sleep(0));
	SHOW(thrd_sleep(&tick, NULL));
	SHOW(thrd_sleep(&wrong, NULL));
}

/* ---- locks: what the functions return, and that they leave errno alone ----------------------- */

static void *hold(void *barrier)
{
	(void)barrier;
	return NULL;
}

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER, checking, robust;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_spinlock_t spin;
static pthread_barrier_t both;
static mtx_t c11;

static void *owner_dies(void *unused)
{
	pthread_mutex_lock(&robust);
	return unused;
}

static void mutexes(void)
{
	pthread_mutexattr_t a;
	pthread_t thread;
	pthread_mutexattr_init(&a);
	pthread_mutexattr_settype(&a, PTHREAD_MUTEX_ERRORCHECK);
	pthread_mutex_init(&checking, &a);
	pthread_mutexattr_setrobust(&a, PTHREAD_MUTEX_ROBUST);
	pthread_mutex_init(&robust, &a);
	pthread_create(&thread, NULL, owner_dies, NULL);
	pthread_join(thread, NULL);
	SHOW(pthread_mutex_lock(&robust));
	SHOW(pthread_mutex_unlock(&robust)); /* not made consistent */
	SHOW(pthread_mutex_lock(&robust));   /* after a trylock glibc 2.36 would say EDEADLK */
	SHOW(pthread_mutex_lock(&checking));
	SHOW(pthread_mutex_lock(&checking));
	SHOW(pthread_mutex_trylock(&checking));
	SHOW(pthread_mutex_timedlock(&checking, &past));
	SHOW(pthread_mutex_unlock(&checking));
	SHOW(pthread_mutex_unlock(&checking));
	SHOW(pthread_mutex_timedlock(&mutex, &wrong));
	SHOW(pthread_mutex_unlock(&mutex));
	SHOW(pthread_mutex_timedlock(&mutex, &negative));
	SHOW(pthread_mutex_trylock(&mutex));
	SHOW(pthread_mutex_timedlock(&mutex, &past));
	SHOW(pthread_mutex_timedlock(&mutex, &wrong));
	SHOW(pthread_mutex_timedlock(&mutex, &negative));
	SHOW(pthread_mutex_clocklock(&mutex, CLOCK_MONOTONIC, &past));
	SHOW(pthread_mutex_clocklock(&mutex, CLOCK_MONOTONIC, &wrong));
	SHOW(pthread_mutex_clocklock(&mutex, CLOCK_PROCESS_CPUTIME_ID, &past));
	SHOW(pthread_mutex_unlock(&mutex));
	SHOW(pthread_mutex_clocklock(&mutex, CLOCK_PROCESS_CPUTIME_ID, &past));
	SHOW(pthread_mutex_clocklock(&mutex, 999, &past));
	SHOW(pthread_mutex_trylock(&mutex));
	SHOW(pthread_mutex_unlock(&mutex));
	mtx_init(&c11, mtx_timed);
	SHOW(mtx_lock(&c11));
	SHOW(mtx_trylock(&c11));
	SHOW(mtx_timedlock(&c11, &past));
	SHOW(mtx_timedlock(&c11, &wrong));
	SHOW(mtx_unlock(&c11));
	SHOW(mtx_timedlock(&c11, &wrong));
}

static void rwlocks(void)
{
	SHOW(pthread_rwlock_timedrdlock(&rwlock, &wrong));
	SHOW(pthread_rwlock_timedwrlock(&rwlock, &wrong));
	SHOW(pthread_rwlock_clockrdlock(&rwlock, 999, &past));
	SHOW(pthread_rwlock_clockwrlock(&rwlock, 999, &past));
	SHOW(pthread_rwlock_timedrdlock(&rwlock, &past));
	SHOW(pthread_rwlock_timedrdlock(&rwlock, &negative));
	SHOW(pthread_rwlock_trywrlock(&rwlock));
	SHOW(pthread_rwlock_timedwrlock(&rwlock, &past));
	SHOW(pthread_rwlock_timedwrlock(&rwlock, &negative));
	SHOW(pthread_rwlock_clockwrlock(&rwlock, CLOCK_MONOTONIC, &past));
	SHOW(pthread_rwlock_tryrdlock(&rwlock));
	SHOW(pthread_rwlock_unlock(&rwlock));
	SHOW(pthread_rwlock_unlock(&rwlock));
	SHOW(pthread_rwlock_unlock(&rwlock));
	SHOW(pthread_rwlock_wrlock(&rwlock));
	SHOW(pthread_rwlock_wrlock(&rwlock));
	SHOW(pthread_rwlock_rdlock(&rwlock));
	SHOW(pthread_rwlock_timedrdlock(&rwlock, &past));
	SHOW(pthread_rwlock_clockrdlock(&rwlock, CLOCK_MONOTONIC, &past));
	SHOW(pthread_rwlock_tryrdlock(&rwlock));
	SHOW(pthread_rwlock_unlock(&rwlock));
	pthread_spin_init(&spin, 0);
	SHOW(pthread_spin_lock(&spin));
	SHOW(pthread_spin_trylock(&spin));
	SHOW(pthread_spin_unlock(&spin));
}

static void conditions(void)
{
	pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
	cnd_t c11_cond;
	sem_t sem;
	cnd_init(&c11_cond);
	SHOW(pthread_mutex_lock(&mutex));
	SHOW(pthread_cond_timedwait(&cond, &mutex, &past));
	SHOW(pthread_cond_timedwait(&cond, &mutex, &wrong));
	SHOW(pthread_cond_timedwait(&cond, &mutex, &negative));
	SHOW(pthread_cond_clockwait(&cond, &mutex, CLOCK_MONOTONIC, &past));
	SHOW(pthread_cond_clockwait(&cond, &mutex, 999, &past));
	SHOW(pthread_cond_signal(&cond));
	SHOW(pthread_cond_broadcast(&cond));
	SHOW(pthread_mutex_unlock(&mutex));
	SHOW(mtx_trylock(&c11));
	SHOW(cnd_timedwait(&c11_cond, &c11, &past));
	SHOW(cnd_timedwait(&c11_cond, &c11, &wrong));
	SHOW(cnd_signal(&c11_cond));
	SHOW(cnd_broadcast(&c11_cond));
	SHOW(mtx_unlock(&c11));
	SHOW(pthread_barrier_init(&both, NULL, 0));
	SHOW(pthread_barrier_init(&both, NULL, 1));
	SHOW(pthread_barrier_wait(&both));
	SHOW(sem_init(&sem, 0, 0x80000000u));
	SHOW(sem_init(&sem, 0, 1));
	SHOW(sem_timedwait(&sem, &wrong));
	SHOW(sem_clockwait(&sem, 999, &past));
	SHOW(sem_clockwait(&sem, CLOCK_PROCESS_CPUTIME_ID, &past));
	SHOW(sem_wait(&sem));
	SHOW(sem_trywait(&sem));
	SHOW(sem_timedwait(&sem, &past));
	SHOW(sem_timedwait(&sem, &wrong));
	SHOW(sem_timedwait(&sem, &negative));
	SHOW(sem_clockwait(&sem, CLOCK_MONOTONIC, &past));
	SHOW(sem_clockwait(&sem, 999, &past));
	SHOW(sem_post(&sem));
	SHOW(sem_timedwait(&sem, &past));
	SHOW(sem_init(&sem, 0, 0x7fffffff));
	SHOW(sem_post(&sem));
	SHOW_SIGN(sem_open("/longpole-no-such-semaphore", 0));
	SHOW_SIGN(sem_open("/longpole/no", O_CREAT, 0600, 1));
}

static void threads(void)
{
	pthread_attr_t huge;
	pthread_t thread;
	void *value;
	pthread_attr_init(&huge);
	pthread_attr_setstacksize(&huge, (size_t)1 << 46);
	SHOW(pthread_create(&thread, &huge, hold, NULL));
	SHOW(pthread_mutex_lock(&mutex));
	SHOW(pthread_create(&thread, NULL, hold, NULL));
	SHOW(pthread_join(thread, &value));
	SHOW(pthread_join(pthread_self(), &value));
	SHOW(pthread_tryjoin_np(pthread_self(), &value));
	SHOW(pthread_setname_np(pthread_self(), "a name that is too long"));
	SHOW(pthread_setname_np(pthread_self(), "torture"));
	SHOW(pthread_mutex_unlock(&mutex));
}

static void *waits(void *fd)
{
	char c;
	return (void *)(intptr_t)read(*(int *)fd, &c, 1);
}

static void join_late(int in, int out)
{
	pthread_t thread;
	void *value;
	pthread_create(&thread, NULL, waits, &in);
	SHOW(pthread_tryjoin_np(thread, &value));
	SHOW(pthread_timedjoin_np(thread, &value, &past));
	SHOW(pthread_clockjoin_np(thread, &value, CLOCK_MONOTONIC, &past));
	SHOW(write(out, "x", 1));
	SHOW(pthread_join(thread, &value));
}

/* ---- System V, message queues ---------------------------------------------------------------- */

static void system_v(void)
{
	struct sembuf up = {0, 1, 0}, down = {0, -1, IPC_NOWAIT}, waits_down = {0, -1, 0},
		      zero = {0, 0, IPC_NOWAIT}, far = {99, 1, 0}, many[600] = {{0}};
	struct {
		long type;
		char text[8];
	} message = {1, "hello"};
	int id = semget(IPC_PRIVATE, 1, 0600), queue = msgget(IPC_PRIVATE, 0600);
	semctl(id, 0, SETVAL, 0);
	SHOW(semop(id, &down, 1));
	SHOW(semop(id, &up, 1));
	SHOW(semop(id, &zero, 1));
	SHOW(semtimedop(id, &waits_down, 1, &wrong));
	SHOW(semtimedop(id, &waits_down, 1, &negative));
	SHOW(semtimedop(id, &waits_down, 1, BAD));
	SHOW(semop(id, &waits_down, 1));
	SHOW(semop(id, &zero, 1));
	SHOW(semtimedop(id, &waits_down, 1, &tick));
	SHOW(semtimedop(id, &waits_down, 1, &wrong));
	SHOW(semop(id, &far, 1));
	SHOW(semop(id, many, 600));
	SHOW(semop(id, many, (size_t)1 << 40));
	SHOW(semop(id, many, 0));
	SHOW(semop(id, NULL, 1));
	SHOW(semop(id, BAD, 1));
	SHOW(semop(-1, &down, 1));
	SHOW(semtimedop(-1, &down, 1, &tick));
	semctl(id, 0, IPC_RMID);
	SHOW(semop(id, &down, 1));
	SHOW(msgrcv(queue, &message, 8, 0, IPC_NOWAIT));
	SHOW(msgsnd(queue, &message, 8, 0));
	SHOW(msgrcv(queue, &message, 4, 0, 0));
	SHOW(msgrcv(queue, &message, 8, 0, 0));
	SHOW(msgsnd(-1, &message, 8, 0));
	msgctl(queue, IPC_RMID, NULL);
	SHOW(msgsnd(queue, &message, 8, 0));
	SHOW(mq_open("/longpole-no-such-queue", O_RDONLY));
	SHOW(mq_send((mqd_t)-1, "x", 1, 0));
	SHOW(mq_receive((mqd_t)-1, text, 8, NULL));
}

/* ---- processes ------------------------------------------------------------------------------- */

static void children(void)
{
	int status = 0;
	siginfo_t info = {0};
	pid_t pid, other;
	char *arguments[] = {"no-such-program", NULL}, *exits[] = {"sh", "-c", "exit 7", NULL};
	fflush(stdout);
	SHOW_SIGN(wait(&status));
	SHOW_SIGN(waitpid(-1, &status, 0));
	SHOW_SIGN(waitpid(-1, &status, 0x1000000));
	SHOW_SIGN(wait3(&status, 0, NULL));
	SHOW_SIGN(wait4(-1, &status, 0, NULL));
	SHOW(waitid(P_ALL, 0, &info, WEXITED));
	SHOW(waitid(P_ALL, 0, NULL, 0));
	fflush(stdout);
	if (!(pid = fork())) {
		pause();
		_exit(1);
	}
	SHOW_SIGN(waitpid(pid, &status, WNOHANG));
	SHOW(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG));
	SHOW(kill(pid, 0));
	SHOW(kill(pid, 999));
	SHOW(kill(0x7ffffffe, 0));
	SHOW(killpg(0x7ffffffe, SIGTERM));
	SHOW(killpg(-1, SIGTERM));
	SHOW(tgkill(pid, pid, 999));
	SHOW(tgkill(0x7ffffffe, 0x7ffffffe, SIGTERM));
	SHOW(raise(999));
	SHOW(raise(SIGCHLD));
	SHOW(kill(pid, SIGKILL));
	SHOW_SIGN(waitpid(pid, &status, 0));
	SHOW(status);
	SHOW(kill(pid, 0));
	SHOW_SIGN(posix_spawn(&other, "/does/not/exist", NULL, NULL, arguments, NULL));
	SHOW_SIGN(posix_spawnp(&other, "no-such-program", NULL, NULL, arguments, NULL));
	SHOW_SIGN(posix_spawnp(&other, "sh", NULL, NULL, exits, NULL));
	SHOW_SIGN(wait(&status));
	SHOW(status);
	SHOW(execve("/does/not/exist", arguments, NULL));
	SHOW(execve("/dev/null", arguments, NULL));
	SHOW(execv("/does/not/exist", arguments));
	SHOW(execvp("no-such-program", arguments));
	SHOW(execvpe("no-such-program", arguments, NULL));
	SHOW(execl("/does/not/exist", "x", NULL));
	SHOW(execlp("no-such-program", "x", NULL));
	SHOW(execle("/does/not/exist", "x", NULL, NULL));
	SHOW(fexecve(-1, arguments, NULL));
	SHOW(execveat(-1, "x", arguments, NULL, 0));
	SHOW(system(NULL));
	SHOW(system("exit 3"));
	SHOW(system("kill -9 $$"));
	signal(SIGCHLD, SIG_IGN);
	SHOW(system("exit 3"));
	signal(SIGCHLD, SIG_DFL);
	SHOW_SIGN(dlopen("no-such-library.so", RTLD_NOW));
	SHOW_SIGN(dlopen("/dev/null", RTLD_NOW));
	SHOW_SIGN(dlopen(NULL, RTLD_NOW));
}

/* ---- streams --------------------------------------------------------------------------------- */

static void streams(void)
{
	char *line = NULL;
	size_t room = 0;
	FILE *in = fopen("/dev/null", "r"), *full = fopen("/dev/full", "w"), *f;
	setvbuf(full, NULL, _IONBF, 0);
	SHOW_SIGN(fopen("/does/not/exist", "r"));
	SHOW_SIGN(fopen("/dev/null", "?"));
	SHOW(fread(text, 1, 8, in));
	SHOW_SIGN(fgets(text, 8, in));
	SHOW(fgetc(in));
	SHOW(getline(&line, &room, in));
	SHOW(getdelim(&line, &room, 0, in));
	SHOW(fscanf(in, "%7s", text));
	SHOW(fwrite("x", 1, 1, in));
	SHOW(fputs("x", in));
	SHOW(fputc('x', in));
	SHOW(fwrite("x", 1, 1, full));
	SHOW(fputs("x", full));
	SHOW(fputc('x', full));
	SHOW(fprintf(full, "%d", 5));
	SHOW(fread(text, 1, 1, full));
	SHOW(fflush(full));
	SHOW(fclose(full));
	full = fopen("/dev/full", "w");
	SHOW(fwrite("x", 1, 1, full));
	SHOW(fflush(full));
	SHOW(fwrite("x", 1, 1, full));
	SHOW(fclose(full));
	SHOW_SIGN(freopen("/does/not/exist", "r", in));
	in = fopen("/dev/null", "r");
	SHOW((int)fgetwc(in)); /* WEOF is -1 then */
	SHOW_SIGN(fgetws((wchar_t[8]){0}, 8, in));
	SHOW_SIGN(f = popen("exit 5", "r"));
	SHOW(fread(text, 1, 8, f));
	SHOW(pclose(f));
	SHOW_SIGN(popen("true", "?"));
	SHOW_SIGN(f = popen("exit 5", "w"));
	usleep(50000);
	SHOW(fwrite("x", 1, 1, f));
	SHOW(pclose(f));
	free(line);
}

int main(void)
{
	int fds[2], slow[2];
	signal(SIGPIPE, SIG_IGN);
	set_up();
	pipe2(fds, O_NONBLOCK);
	pipe(slow);
	plain(fds[0], fds[1]);
	close(fds[0]);
	close(fds[1]);
	files();
	pipe2(fds, O_NONBLOCK);
	readiness(fds[0], fds[1]);
	join_late(slow[0], slow[1]);
	list_of_requests(slow[0], slow[1]);
	names();
	descriptors();
	connections(AF_UNIX);
	connections(AF_INET);
	events();
	sleeps();
	mutexes();
	rwlocks();
	conditions();
	threads();
	system_v();
	children();
	streams();
	no_descriptors();
	return 0;
}
