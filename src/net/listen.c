/* SPDX-License-Identifier: Apache-2.0 */
/* The listeners inside: on the labels of names, and on what rules grant without a name. */
#include <sys/socket.h>

#include "net/helper.h"

#define ACCEPTS 64 /* in one turn */

static struct listener *fixed;

static void on_listener(struct source *source, uint32_t events)
{
	struct listener *listener = (struct listener *)source;

	(void)events;
	for (int i = 0; i < ACCEPTS && source->fd >= 0; i++) {
		int fd = accept4(source->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

		if (fd < 0 && errno != ECONNABORTED && errno != EINTR)
			return;
		if (fd >= 0)
			net_conn_accept(listener, fd);
	}
}

static void end_listener(struct listener *listener)
{
	net_unwatch(&listener->source);
	net_free_later(listener);
}

/* Takes the descriptor when it succeeds. */
static int add_listener(struct listener **list, int fd, struct name *name, const struct cordon_net_address *address,
			uint16_t port, int inject)
{
	struct listener *listener = calloc(1, sizeof(*listener));
	int r;

	if (!listener)
		return -ENOMEM;
	*listener = (struct listener){ .source = { .on = on_listener, .fd = fd },
				       .next = *list,
				       .name = name,
				       .address = *address,
				       .port = port,
				       .inject = inject };
	r = net_watch(&listener->source, EPOLLIN);
	if (r < 0) {
		free(listener);
		return r;
	}
	*list = listener;
	return 0;
}

static bool has_listener(const struct listener *list, const struct cordon_net_address *address, uint16_t port)
{
	while (list && (list->port != port || !net_address_equal(&list->address, address)))
		list = list->next;
	return list != NULL;
}

/* Makes a listener with a new socket. When the agent has taken the address, it only keeps it from itself. */
static void make_listener(struct listener **list, struct name *name, const struct cordon_net_address *address,
			  uint16_t port)
{
	int fd;

	if (has_listener(*list, address, port))
		return;
	fd = net_socket_take(cordon_net_address_is_v4(address) ? AF_INET : AF_INET6);
	if (fd >= 0 && (net_socket_bind(fd, address, port) < 0 || add_listener(list, fd, name, address, port, -1) < 0))
		close(fd);
}

int net_listen_fixed(int fd)
{
	struct sockaddr_storage bound = { 0 };
	struct cordon_net_address address, any = { 0 };
	socklen_t n = sizeof(bound);
	int inject = -1;
	uint16_t port;

	if (getsockname(fd, (struct sockaddr *)&bound, &n) < 0)
		return -errno;
	net_address_from(&bound, &address, &port);
	if (cordon_net_address_is_v4(&address))
		any.bytes[10] = any.bytes[11] = 0xff;
	if (net_address_equal(&address, &any))
		return net_dns_begin_tcp(fd);
	if (net_address_is_loopback(&address) && cordon_net_address_is_v4(&address) && port >= CORDON_NET_INJECT_PORT &&
	    port < CORDON_NET_INJECT_PORT + net.n_credentials)
		inject = port - CORDON_NET_INJECT_PORT;
	return add_listener(&fixed, fd, NULL, &address, port, inject);
}

void net_listen_name(struct name *name)
{
	for (struct listener **at = &name->listeners; *at;) {
		struct listener *listener = *at;

		if (cordon_net_list_find(&net.list, name->text, listener->port)) {
			at = &listener->next;
			continue;
		}
		*at = listener->next;
		end_listener(listener);
	}
	for (size_t i = 0; i < net.list.n; i++)
		for (unsigned int family = 0; family < 2; family++)
			if (name->has_label[family] && cordon_net_rule_covers(&net.list.rules[i], name->text))
				make_listener(&name->listeners, name, &name->labels[family], net.list.rules[i].port);
}

static bool is_fixed_allowed(const struct listener *listener)
{
	return listener->inject >= 0 || net_address_granted(&net.list, &listener->address, listener->port);
}

void net_listen_apply(void)
{
	static const struct cordon_net_address home4 = { { [10] = 0xff, [11] = 0xff, [12] = 127, [15] = 1 } };
	static const struct cordon_net_address home6 = { { [15] = 1 } };

	for (struct listener **at = &fixed; *at;) {
		struct listener *listener = *at;

		if (is_fixed_allowed(listener)) {
			at = &listener->next;
			continue;
		}
		*at = listener->next;
		end_listener(listener);
	}
	for (size_t i = 0; i < net.list.n; i++) {
		const struct cordon_net_rule *rule = &net.list.rules[i];

		if (rule->kind == CORDON_NET_KIND_LOCALHOST) {
			make_listener(&fixed, NULL, &home4, rule->port);
			make_listener(&fixed, NULL, &home6, rule->port);
		} else if (rule->kind == CORDON_NET_KIND_ADDRESS) {
			make_listener(&fixed, NULL, &rule->address, rule->port);
		}
	}
}
