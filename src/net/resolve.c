/* SPDX-License-Identifier: Apache-2.0 */
/* Resolves names with the host's name servers (c-ares) and its /etc/hosts, which is read once. */
#include <ares.h>
#include <ctype.h>
#include <fcntl.h>

#include "base/io.h"
#include "net/helper.h"

#define HOSTS_MAX ((size_t)1 << 20)
#define SOURCES_MAX 64
#define TIMEOUT_MS 2500
#define TRIES 3

struct known {
	char *name;
	struct cordon_net_address address;
};
static struct known *hosts;
static size_t n_hosts;
static ares_channel channel;
static struct source sources[SOURCES_MAX];

static void on_ares(struct source *source, uint32_t events)
{
	int fd = source->fd;

	ares_process_fd(channel, events & (EPOLLIN | EPOLLHUP | EPOLLERR) ? fd : ARES_SOCKET_BAD,
			events & EPOLLOUT ? fd : ARES_SOCKET_BAD);
}

/* c-ares waits for something else on one of its sockets; for nothing before it closes it. */
static void on_socket(void *data, ares_socket_t fd, int readable, int writable)
{
	uint32_t events = (readable ? EPOLLIN : 0) | (writable ? EPOLLOUT : 0);
	struct source *mine = NULL, *empty = NULL;

	(void)data;
	for (size_t i = 0; i < SOURCES_MAX; i++)
		if (sources[i].on && sources[i].fd == fd)
			mine = &sources[i];
		else if (!sources[i].on)
			empty = &sources[i];
	if (mine && events) {
		net_change(mine, events);
	} else if (mine) {
		(void)epoll_ctl(net.epoll, EPOLL_CTL_DEL, fd, NULL);
		*mine = (struct source){ .fd = -1 };
	} else if (events && empty) {
		*empty = (struct source){ .on = on_ares, .fd = fd };
		if (net_watch(empty, events) < 0)
			*empty = (struct source){ .fd = -1 };
	}
}

static void add_host(const char *text, size_t n, const struct cordon_net_address *address)
{
	char name[CORDON_NET_NAME_SIZE];
	struct known *more;

	if (cordon_net_name_clean(text, n, name) < 0)
		return;
	more = realloc(hosts, (n_hosts + 1) * sizeof(*hosts));
	if (!more)
		return;
	hosts = more;
	hosts[n_hosts].name = strdup(name);
	hosts[n_hosts].address = *address;
	n_hosts += hosts[n_hosts].name != NULL;
}

/* The administrator's file; what can't be read there is left out. */
static void read_hosts(void)
{
	autobuf struct cordon_buf text = CORDON_BUF(HOSTS_MAX);
	const char *line, *next;

	if (cordon_read_file(AT_FDCWD, "/etc/hosts", 0, &text, NULL) < 0 || !text.data)
		return;
	for (line = text.data; *line; line = next) {
		size_t n = strcspn(line, "#\n"), at = strspn(line, " \t"), word = strcspn(line + at, " \t\r#\n");
		struct cordon_net_address address;

		next = line + strcspn(line, "\n");
		next += *next == '\n';
		if (cordon_net_address_parse(line + at, word, &address) < 0)
			continue;
		for (at += word; at < n; at += word) {
			at += strspn(line + at, " \t\r");
			word = strcspn(line + at, " \t\r#\n");
			if (!word)
				break;
			add_host(line + at, word, &address);
		}
	}
}

int net_resolve_begin(const char **ret_what)
{
	char lookups[] = "b";
	struct ares_options options = { .flags = ARES_FLAG_NOSEARCH | ARES_FLAG_NOALIASES,
					.timeout = TIMEOUT_MS,
					.tries = TRIES,
					.sock_state_cb = on_socket,
					.lookups = lookups };

	*ret_what = "read how this machine resolves names";
	read_hosts();
	if (ares_library_init(ARES_LIB_INIT_ALL) != ARES_SUCCESS ||
	    ares_init_options(&channel, &options,
			      ARES_OPT_FLAGS | ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES | ARES_OPT_SOCK_STATE_CB |
				      ARES_OPT_LOOKUPS) != ARES_SUCCESS)
		return -EIO;
	return 0;
}

static void on_answer(void *data, int status, int timeouts, struct ares_addrinfo *info)
{
	struct cordon_net_address addresses[NET_ADDRESSES_MAX];
	struct name *name = data;
	unsigned int ttl = NET_FRESH_MS / 1000;
	size_t n = 0;

	(void)timeouts;
	for (const struct ares_addrinfo_node *node = info ? info->nodes : NULL; node && n < NET_ADDRESSES_MAX;
	     node = node->ai_next) {
		struct sockaddr_storage from = { 0 };
		uint16_t port;

		if (node->ai_addrlen > sizeof(from) || (node->ai_family != AF_INET && node->ai_family != AF_INET6))
			continue;
		memcpy(&from, node->ai_addr, node->ai_addrlen);
		net_address_from(&from, &addresses[n++], &port);
		if (node->ai_ttl >= 0 && (unsigned int)node->ai_ttl < ttl)
			ttl = (unsigned int)node->ai_ttl;
	}
	if (info)
		ares_freeaddrinfo(info);
	net_name_resolved(name, addresses, n, ttl,
			  n == 0 && status != ARES_ENOTFOUND && status != ARES_ENODATA && status != ARES_SUCCESS);
}

void net_resolve(struct name *name)
{
	struct ares_addrinfo_hints hints = { .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM };
	struct cordon_net_address addresses[NET_ADDRESSES_MAX];
	size_t n = 0;

	for (size_t i = 0; i < n_hosts && n < NET_ADDRESSES_MAX; i++)
		if (cordon_streq(hosts[i].name, name->text))
			addresses[n++] = hosts[i].address;
	if (n)
		net_name_resolved(name, addresses, n, NET_FRESH_MS / 1000, false);
	else
		ares_getaddrinfo(channel, name->text, NULL, &hints, on_answer, name);
}

int net_resolve_wait(int most)
{
	struct timeval tv, *left = ares_timeout(channel, NULL, &tv);
	int64_t ms = left ? (int64_t)left->tv_sec * 1000 + left->tv_usec / 1000 + 1 : -1;

	return ms < 0 || (most >= 0 && most < ms) ? most : (int)ms;
}

void net_resolve_tick(void)
{
	struct timeval tv;

	if (ares_timeout(channel, NULL, &tv))
		ares_process_fd(channel, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
}
