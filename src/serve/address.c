/* SPDX-License-Identifier: Apache-2.0 */
/* The sockets on which the server listens: made from addresses, or passed by systemd. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sodium.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "base/io.h"
#include "base/path.h"
#include "serve/internal.h"

#define BIND_TRIES 100 /* for a port that is in use */
#define BIND_RETRY_MS 20
#define BACKLOG 1024
#define FIRST_PASSED_FD 3
#define UNIX "unix:"
#define PLACE "page" /* in state/serve: where the page is */
#define PLACE_SIZE (INET_ADDRSTRLEN + sizeof(":65535"))

static int usage(struct cordon_error *err, const char *text)
{
	cordon_fail(err, -EINVAL, CORDON_KIND_USAGE, "not an address to listen on: %s", text);
	cordon_error_hint(err, "use unix:PATH, 127.0.0.1:PORT or [::1]:PORT");
	return -EINVAL;
}

/* Splits "ADDRESS:PORT" or "[ADDRESS]:PORT". Names are not looked up. */
static int parse_inet(const char *text, struct sockaddr_storage *ret_address, socklen_t *ret_size,
		      struct cordon_error *err)
{
	struct sockaddr_in *four = (struct sockaddr_in *)(void *)ret_address;
	struct sockaddr_in6 *six = (struct sockaddr_in6 *)(void *)ret_address;
	const char *colon = strrchr(text, ':');
	char host[INET6_ADDRSTRLEN];
	size_t n = colon ? (size_t)(colon - text) : 0;
	bool bracket = n > 2 && text[0] == '[' && text[n - 1] == ']';
	uint64_t port;

	*ret_address = (struct sockaddr_storage){ 0 };
	if (!colon || cordon_parse_u64(colon + 1, 0, 65535, &port) < 0 ||
	    cordon_copy(host, sizeof(host), text + bracket, n - 2 * (size_t)bracket) < 0)
		return usage(err, text);
	if (!bracket && inet_pton(AF_INET, host, &four->sin_addr) == 1) {
		four->sin_family = AF_INET;
		four->sin_port = htons((uint16_t)port);
		*ret_size = sizeof(*four);
	} else if (bracket && inet_pton(AF_INET6, host, &six->sin6_addr) == 1) {
		six->sin6_family = AF_INET6;
		six->sin6_port = htons((uint16_t)port);
		*ret_size = sizeof(*six);
	} else {
		return usage(err, text);
	}
	return 0;
}

static bool is_loopback(const struct sockaddr_storage *address)
{
	const struct sockaddr_in *four = (const struct sockaddr_in *)(const void *)address;
	const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)(const void *)address;

	if (address->ss_family == AF_INET)
		return ntohl(four->sin_addr.s_addr) >> 24 == 127;
	return address->ss_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&six->sin6_addr);
}

static void add_host(struct cordon_listener *listener, const char *host, unsigned int port)
{
	char *text = listener->hosts[listener->n_hosts++];

	if (port == 80) /* clients leave it out */
		snprintf(text, CORDON_SERVE_HOST_SIZE, "%s", host);
	else
		snprintf(text, CORDON_SERVE_HOST_SIZE, "%s:%u", host, port);
}

/* Finds out what the socket is and under which names it may be addressed. */
static int describe(struct cordon_listener *listener, bool any, struct cordon_error *err)
{
	union {
		struct sockaddr_storage any;
		struct sockaddr_in four;
		struct sockaddr_in6 six;
		struct sockaddr_un local;
	} address = { 0 };
	socklen_t size = sizeof(address);
	char host[INET6_ADDRSTRLEN], shown[INET6_ADDRSTRLEN + 2];
	unsigned int port;

	if (getsockname(listener->fd, (struct sockaddr *)&address, &size) < 0)
		return cordon_fail_errno(err, -errno, "cannot use the socket");
	listener->local = address.any.ss_family == AF_UNIX;
	if (listener->local) {
		snprintf(listener->text, sizeof(listener->text), UNIX "%.200s", address.local.sun_path);
		snprintf(listener->hosts[listener->n_hosts++], CORDON_SERVE_HOST_SIZE, "localhost");
		return 0;
	}
	if (address.any.ss_family == AF_INET)
		inet_ntop(AF_INET, &address.four.sin_addr, host, sizeof(host));
	else if (address.any.ss_family == AF_INET6)
		inet_ntop(AF_INET6, &address.six.sin6_addr, host, sizeof(host));
	else
		return cordon_fail(err, -EAFNOSUPPORT, CORDON_KIND_USAGE, "a socket was passed that is of no use here");
	port = ntohs(address.any.ss_family == AF_INET ? address.four.sin_port : address.six.sin6_port);
	if (!is_loopback(&address.any) && !any) {
		cordon_fail(err, -EPERM, CORDON_KIND_USAGE, "%s is not an address of this machine alone", host);
		cordon_error_hint(
			err, "listen on 127.0.0.1 or [::1], or say --insecure-any; then put a front with TLS before it");
		return -EPERM;
	}
	listener->port = port;
	snprintf(shown, sizeof(shown), address.any.ss_family == AF_INET6 ? "[%s]" : "%s", host);
	snprintf(listener->text, sizeof(listener->text), "http://%s:%u/mcp", shown, port);
	add_host(listener, shown, port);
	if (is_loopback(&address.any)) {
		add_host(listener, "localhost", port);
		if (!cordon_streq(shown, "127.0.0.1"))
			add_host(listener, "127.0.0.1", port);
		if (!cordon_streq(shown, "[::1]"))
			add_host(listener, "[::1]", port);
	}
	return 0;
}

static int open_inet(const char *text, bool any, struct cordon_listener *listener, struct cordon_error *err)
{
	struct sockaddr_storage address;
	socklen_t size;
	int on = 1, tries = BIND_TRIES, r = parse_inet(text, &address, &size, err);

	if (r < 0)
		return r;
	listener->fd = socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (listener->fd < 0)
		return cordon_fail_errno(err, -errno, "cannot listen on %s", text);
	setsockopt(listener->fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (address.ss_family == AF_INET6)
		setsockopt(listener->fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on));
	/* A child of a server that was killed just now has not closed what it inherited yet. */
	while ((r = bind(listener->fd, (struct sockaddr *)&address, size) < 0 ? -errno : 0) == -EADDRINUSE && tries-- > 0)
		poll(NULL, 0, BIND_RETRY_MS);
	if (r < 0)
		return cordon_fail_errno(err, r, "cannot listen on %s", text);
	r = describe(listener, any, err);
	if (r == 0 && listen(listener->fd, BACKLOG) < 0)
		r = cordon_fail_errno(err, -errno, "cannot listen on %s", text);
	return r;
}

/* A socket that a killed server left is in the way; one that somebody serves is not touched. */
static int clear_way(const struct sockaddr_un *address, struct cordon_error *err)
{
	autofd int fd = -1;
	struct stat st;

	if (lstat(address->sun_path, &st) < 0)
		return errno == ENOENT ? 0 : cordon_fail_errno(err, -errno, "cannot use %s", address->sun_path);
	if (!S_ISSOCK(st.st_mode) || st.st_uid != geteuid())
		return cordon_fail(err, -EEXIST, CORDON_KIND_CONFLICT, "%s is in the way: it is no socket of ours",
				   address->sun_path);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return cordon_fail_errno(err, -errno, "socket");
	if (connect(fd, (const struct sockaddr *)address, sizeof(*address)) == 0 || errno == EAGAIN)
		return cordon_fail(err, -EADDRINUSE, CORDON_KIND_CONFLICT, "a server listens on %s already",
				   address->sun_path);
	if (unlink(address->sun_path) < 0 && errno != ENOENT)
		return cordon_fail_errno(err, -errno, "cannot remove %s", address->sun_path);
	return 0;
}

/* INVARIANT: only the owner can connect: the socket has the mode 0600 from the instant at which it exists. */
static int open_unix(const char *path, struct cordon_listener *listener, struct cordon_error *err)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	mode_t before;
	int r;

	if (*path != '/')
		return cordon_fail(err, -EINVAL, CORDON_KIND_USAGE, "a Unix socket needs an absolute path, not %s",
				   path);
	if (cordon_copy(address.sun_path, sizeof(address.sun_path), path, strlen(path)) < 0)
		return cordon_fail(err, -ENAMETOOLONG, CORDON_KIND_USAGE,
				   "the path of a Unix socket has at most %zu bytes", sizeof(address.sun_path) - 1);
	r = clear_way(&address, err);
	if (r < 0)
		return r;
	listener->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (listener->fd < 0)
		return cordon_fail_errno(err, -errno, "socket");
	before = umask(0177);
	r = bind(listener->fd, (struct sockaddr *)&address, sizeof(address)) < 0 ? -errno : 0;
	umask(before);
	if (r < 0)
		return cordon_fail_errno(err, r, "cannot listen on %s", path);
	cordon_copy(listener->path, sizeof(listener->path), path, strlen(path));
	r = describe(listener, false, err);
	if (r == 0 && listen(listener->fd, BACKLOG) < 0)
		r = cordon_fail_errno(err, -errno, "cannot listen on %s", path);
	return r;
}

int cordon_listener_control(int serve_fd, struct cordon_listener *ret_listener, struct cordon_error *err)
{
	struct cordon_listener listener = { .fd = -1, .control = true };
	char path[CORDON_FD_PATH_SIZE + sizeof("/" CORDON_SERVE_CONTROL)], dir[CORDON_FD_PATH_SIZE];
	int r;

	/* By descriptor, because the path of a home may be longer than that of a socket. */
	snprintf(path, sizeof(path), "%s/" CORDON_SERVE_CONTROL, cordon_fd_path(serve_fd, dir));
	r = open_unix(path, &listener, err);
	if (r < 0)
		cordon_closep(&listener.fd);
	else
		*ret_listener = listener;
	return r;
}

/* Reads where the page was. */
static int read_place(int serve_fd, char ret_place[static PLACE_SIZE])
{
	autobuf struct cordon_buf text = CORDON_BUF(PLACE_SIZE);
	struct sockaddr_storage address;
	socklen_t size;
	int r = cordon_read_file(serve_fd, PLACE, O_NOFOLLOW, &text, NULL);

	if (r == 0)
		r = text.data ? cordon_copy(ret_place, PLACE_SIZE, text.data, strcspn(text.data, "\n")) : -ENOENT;
	if (r == 0)
		r = parse_inet(ret_place, &address, &size, NULL);
	return r == 0 && !is_loopback(&address) ? -EINVAL : r;
}

static int open_place(const char *place, struct cordon_listener *ret_listener, struct cordon_error *err)
{
	struct cordon_listener listener = { .fd = -1, .page = true };
	int r = open_inet(place, false, &listener, err);

	if (r < 0) {
		cordon_closep(&listener.fd);
		return r;
	}
	listener.n_hosts = 1; /* a browser finds other servers under the other names of this machine */
	snprintf(listener.text, sizeof(listener.text), "http://%.200s/", listener.hosts[0]);
	*ret_listener = listener;
	return 0;
}

int cordon_listener_page(int serve_fd, bool again, struct cordon_listener *ret_listener, bool *ret_moved,
			 struct cordon_error *err)
{
	char place[PLACE_SIZE] = "";
	bool kept = read_place(serve_fd, place) == 0;
	int r = kept ? open_place(place, ret_listener, err) : -ENOENT;

	if (r == 0 || (again && !kept))
		return r;
	/* Browsers send a cookie to all ports of a host, so to every server that an agent or another user starts on
	 * 127.0.0.1 and that the person looks at. The whole of 127.0.0.0/8 is this machine; an address of its own keeps
	 * the cookie where it belongs. */
	snprintf(place, sizeof(place), "127.%u.%u.%u:0", 1 + randombytes_uniform(254), 1 + randombytes_uniform(254),
		 1 + randombytes_uniform(254));
	r = open_place(place, ret_listener, err);
	if (r < 0)
		return r;
	/* INVARIANT: a place that somebody else had is never taken again, because that one may have got cookies of the
	 * page. */
	r = cordon_write_file(serve_fd, PLACE, 0600, ret_listener->hosts[0], strlen(ret_listener->hosts[0]), err);
	if (r < 0)
		cordon_closep(&ret_listener->fd);
	else
		*ret_moved = kept;
	return r;
}

static int open_default(struct cordon_listener *listener, struct cordon_error *err)
{
	const char *runtime = getenv("XDG_RUNTIME_DIR");
	char path[CORDON_PATH_MAX];

	if (!runtime || *runtime != '/') {
		cordon_fail(err, -ENOENT, CORDON_KIND_USAGE,
			    "XDG_RUNTIME_DIR is not set, so there is no place for a socket");
		cordon_error_hint(err, "say --listen unix:PATH or --listen 127.0.0.1:PORT");
		return -ENOENT;
	}
	if (cordon_concat(path, sizeof(path), runtime, "/cordon", (char *)NULL) < 0)
		return usage(err, runtime);
	if (mkdir(path, 0700) < 0 && errno != EEXIST)
		return cordon_fail_errno(err, -errno, "cannot make %s", path);
	if (cordon_concat(path, sizeof(path), runtime, "/cordon/mcp.sock", (char *)NULL) < 0)
		return usage(err, runtime);
	return open_unix(path, listener, err);
}

/* Takes the sockets that systemd passed, if it passed some to this process. */
static int take_passed(struct cordon_listener *listeners, size_t *n, bool any, struct cordon_error *err)
{
	const char *pid = getenv("LISTEN_PID"), *count = getenv("LISTEN_FDS");
	uint64_t number, passed = 0;
	int r = 0;

	if (pid && count && cordon_parse_u64(pid, 1, INT32_MAX, &number) == 0 && (pid_t)number == getpid() &&
	    cordon_parse_u64(count, 0, CORDON_SERVE_LISTENERS_MAX, &passed) < 0)
		r = cordon_fail(err, -E2BIG, CORDON_KIND_USAGE, "at most %d sockets can be passed",
				CORDON_SERVE_LISTENERS_MAX);
	unsetenv("LISTEN_PID");
	unsetenv("LISTEN_FDS");
	unsetenv("LISTEN_FDNAMES");
	for (int i = 0; r == 0 && i < (int)passed; i++) {
		struct cordon_listener *listener = &listeners[(*n)++];

		listener->fd = FIRST_PASSED_FD + i;
		if (fcntl(listener->fd, F_SETFD, FD_CLOEXEC) < 0 || fcntl(listener->fd, F_SETFL, O_NONBLOCK) < 0)
			return cordon_fail_errno(err, -errno, "the socket that was passed");
		r = describe(listener, any, err);
	}
	return r;
}

int cordon_listeners_open(const struct cordon_serve_options *options,
			  struct cordon_listener ret_listeners[static CORDON_SERVE_LISTENERS_MAX], size_t *ret_n,
			  struct cordon_error *err)
{
	size_t n = 0;
	int r = take_passed(ret_listeners, &n, options->n_any > 0, err);

	for (size_t i = 0; r == 0 && i < options->n_listen + options->n_any; i++) {
		bool any = i >= options->n_listen;
		const char *text = any ? options->any[i - options->n_listen] : options->listen[i];

		if (n == CORDON_SERVE_LISTENERS_MAX) {
			r = cordon_fail(err, -E2BIG, CORDON_KIND_USAGE, "at most %d addresses",
					CORDON_SERVE_LISTENERS_MAX);
			break;
		}
		ret_listeners[n] = (struct cordon_listener){ .fd = -1 };
		if (!any && strncmp(text, UNIX, strlen(UNIX)) == 0)
			r = open_unix(text + strlen(UNIX), &ret_listeners[n++], err);
		else
			r = open_inet(text, any, &ret_listeners[n++], err);
	}
	if (r == 0 && n == 0) {
		ret_listeners[n] = (struct cordon_listener){ .fd = -1 };
		r = open_default(&ret_listeners[n++], err);
		/* The page needs no more than the control socket, through which it gets a port. */
		if (r < 0 && options->page) {
			cordon_listeners_close(ret_listeners, n);
			n = 0;
			r = 0;
		}
	}
	if (r < 0)
		cordon_listeners_close(ret_listeners, n);
	else
		*ret_n = n;
	return r;
}

void cordon_listeners_close(struct cordon_listener *listeners, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (*listeners[i].path)
			unlink(listeners[i].path);
		cordon_closep(&listeners[i].fd);
	}
}
