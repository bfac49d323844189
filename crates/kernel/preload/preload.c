/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Loaded into a program by `manypath kernel run` (LD_PRELOAD): its TCP sockets become Multipath TCP sockets, and take the
 * congestion controller that MANYPATH_CC names. Where the kernel refuses, the program gets what it asked for.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#ifndef IPPROTO_MPTCP
#define IPPROTO_MPTCP 262
#endif

/* The type without SOCK_CLOEXEC and SOCK_NONBLOCK. */
#define SOCKET_KIND 0xf

typedef int socket_call(int domain, int type, int protocol);

/* The C library's. */
static socket_call *library_socket(void)
{
	static socket_call *found;

	/* Two threads may both look: they find the same. */
	if (!__atomic_load_n(&found, __ATOMIC_RELAXED))
		__atomic_store_n(&found, (socket_call *)dlsym(RTLD_NEXT, "socket"), __ATOMIC_RELAXED);
	return found;
}

static int is_tcp(int domain, int type, int protocol)
{
	return (domain == AF_INET || domain == AF_INET6) && (type & SOCKET_KIND) == SOCK_STREAM &&
	       (protocol == 0 || protocol == IPPROTO_TCP);
}

static void set_controller(int socket)
{
	const char *name = getenv("MANYPATH_CC");

	/* `manypath kernel run` has checked that there is such a controller; if it has gone meanwhile, the default remains. */
	if (name && *name)
		setsockopt(socket, IPPROTO_TCP, TCP_CONGESTION, name, (socklen_t)strlen(name));
}

__attribute__((visibility("default"))) int socket(int domain, int type, int protocol)
{
	socket_call *next = library_socket();
	int before = errno, made;

	if (!next) {
		errno = ENOSYS;
		return -1;
	}
	if (!is_tcp(domain, type, protocol))
		return next(domain, type, protocol);
	made = next(domain, type, IPPROTO_MPTCP);
	/* No such protocol, not allowed by a filter of system calls, or switched off (net.mptcp.enabled). */
	if (made < 0)
		made = next(domain, type, protocol);
	if (made >= 0) {
		set_controller(made);
		errno = before;
	}
	return made;
}
