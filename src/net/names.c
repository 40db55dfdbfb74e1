/* SPDX-License-Identifier: Apache-2.0 */
/* The names that the run asked for, their addresses on the host's side, and their labels inside. */
#include <ares.h>
#include <ctype.h>
#include <fcntl.h>
#include <strings.h>

#include "base/io.h"
#include "net/helper.h"

/* ---- the resolver ---- */

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

static void name_resolved(struct name *name, const struct cordon_net_address *addresses, size_t n, unsigned int ttl,
			  bool failed);

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
	name_resolved(name, addresses, n, ttl,
		      n == 0 && status != ARES_ENOTFOUND && status != ARES_ENODATA && status != ARES_SUCCESS);
}

static void resolve(struct name *name)
{
	struct ares_addrinfo_hints hints = { .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM };
	struct cordon_net_address addresses[NET_ADDRESSES_MAX];
	size_t n = 0;

	for (size_t i = 0; i < n_hosts && n < NET_ADDRESSES_MAX; i++)
		if (cordon_streq(hosts[i].name, name->text))
			addresses[n++] = hosts[i].address;
	if (n)
		name_resolved(name, addresses, n, NET_FRESH_MS / 1000, false);
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

/* ---- names ---- */

#define BUCKETS 1024

static struct name *buckets[BUCKETS];
static size_t n_resolving, n_waiting;
static uint32_t made_labels[2]; /* that are no address of their name */
/* How many new names wildcards may let through now, in thousandths. */
static int64_t allowance = (int64_t)NET_NAMES_BURST * 1000, allowance_at;

static struct name **bucket_of(const char *text)
{
	uint32_t hash = 2166136261u;

	for (; *text; text++)
		hash = (hash ^ (unsigned char)*text) * 16777619u;
	return &buckets[hash % BUCKETS];
}

/* 2: a rule names it; 1: one with a wildcard covers it; 0: none. */
static int allowed(const char *text)
{
	int best = 0;

	for (size_t i = 0; i < net.list.n && best < 2; i++)
		if (cordon_net_rule_covers(&net.list.rules[i], text))
			best = net.list.rules[i].kind == CORDON_NET_KIND_NAME ? 2 : 1;
	return best;
}

/* Names that a wildcard allows are chosen by the agent, and each is asked for outside: so they are few. */
static bool may_count(void)
{
	allowance += (net.now - allowance_at) * NET_NAMES_PER_SECOND;
	allowance_at = net.now;
	if (allowance > (int64_t)NET_NAMES_BURST * 1000)
		allowance = (int64_t)NET_NAMES_BURST * 1000;
	if (net.n_counted >= NET_NAMES_MAX || allowance < 1000)
		return false;
	allowance -= 1000;
	net.n_counted++;
	return true;
}

struct name *net_name_find(const char *text, bool *ret_limited)
{
	struct name **bucket = bucket_of(text), *name = *bucket;
	int how = allowed(text);

	*ret_limited = false;
	while (name && !cordon_streq(name->text, text))
		name = name->next;
	if (name || !how)
		return how ? name : NULL;
	if (how == 1 && !may_count()) {
		*ret_limited = true;
		return NULL;
	}
	name = calloc(1, sizeof(*name));
	if (!name) {
		*ret_limited = true;
		return NULL;
	}
	cordon_copy(name->text, sizeof(name->text), text, strlen(text));
	name->counted = how == 1;
	name->next = *bucket;
	*bucket = name;
	return name;
}

bool net_name_by_proxy(const struct name *name)
{
	const char *text = name->text, *at = net.proxy.except;

	if (!net.proxy.used || name->direct)
		return false;
	/* Names, each with everything below it, and "*"; addresses do not concern names. */
	while (at && *at) {
		size_t n, text_len = strlen(text);

		at += strspn(at, ", ");
		n = strcspn(at, ", ");
		if (n == 1 && *at == '*')
			return false;
		while (n && *at == '.')
			at++, n--;
		if (n && text_len >= n && strncasecmp(text + text_len - n, at, n) == 0 &&
		    (text_len == n || text[text_len - n - 1] == '.'))
			return false;
		at += n;
	}
	return true;
}

static void call_waiters(struct name *name)
{
	struct waiter *waiter = name->waiters;

	name->waiters = NULL;
	while (waiter) {
		struct waiter *next = waiter->next;

		n_waiting--;
		waiter->next = NULL;
		waiter->resolved(waiter);
		waiter = next;
	}
}

int net_name_resolve(struct name *name, struct waiter *waiter)
{
	if (name->known && net.now < name->fresh) {
		waiter->resolved(waiter);
		return 0;
	}
	if (n_waiting >= NET_WAITING_MAX || (!name->resolving && n_resolving >= NET_RESOLVING_MAX))
		return -EAGAIN;
	n_waiting++;
	waiter->next = name->waiters;
	name->waiters = waiter;
	if (name->resolving)
		return 0;
	name->resolving = true;
	n_resolving++;
	if (net_name_by_proxy(name))
		name_resolved(name, NULL, 0, NET_FRESH_MS / 1000, false);
	else
		resolve(name);
	return 0;
}

void net_name_forget(struct name *name, struct waiter *waiter)
{
	for (struct waiter **at = &name->waiters; *at; at = &(*at)->next)
		if (*at == waiter) {
			*at = waiter->next;
			n_waiting--;
			return;
		}
}

static void name_resolved(struct name *name, const struct cordon_net_address *addresses, size_t n, unsigned int ttl,
			  bool failed)
{
	int64_t ms = failed ? 2000 : n ? (int64_t)ttl * 1000 : 5000;

	name->resolving = false;
	n_resolving--;
	name->known = true;
	name->failed = failed;
	name->n = n < NET_ADDRESSES_MAX ? n : NET_ADDRESSES_MAX;
	if (name->n)
		memcpy(name->addresses, addresses, name->n * sizeof(addresses[0]));
	if (net_name_by_proxy(name) || ms > NET_FRESH_MS)
		ms = NET_FRESH_MS;
	name->fresh = net.now + (ms < 1000 ? 1000 : ms);
	call_waiters(name);
}

size_t net_name_dialable(const struct name *name, uint16_t port, struct cordon_net_address ret[static NET_ADDRESSES_MAX])
{
	size_t n = 0;

	for (size_t i = 0; i < name->n; i++)
		if (net_address_is_public(&name->addresses[i]) ||
		    net_address_granted(&net.list, &name->addresses[i], port))
			ret[n++] = name->addresses[i];
	return n;
}

struct name *net_name_of_label(const struct cordon_net_address *label)
{
	unsigned int family = cordon_net_address_is_v4(label) ? 0 : 1;

	for (size_t i = 0; i < BUCKETS; i++)
		for (struct name *name = buckets[i]; name; name = name->next)
			if (name->has_label[family] && net_address_equal(&name->labels[family], label))
				return name;
	return NULL;
}

static bool is_granted_anywhere(const struct cordon_net_address *address)
{
	for (size_t i = 0; i < net.list.n; i++)
		if (net.list.rules[i].kind == CORDON_NET_KIND_ADDRESS &&
		    net_address_equal(&net.list.rules[i].address, address))
			return true;
	return false;
}

/* 198.18.0.0/15 and 2001:2::/48 are for measurements; nobody has them. */
static struct cordon_net_address make_label(unsigned int family)
{
	struct cordon_net_address v4 = { { [10] = 0xff, [11] = 0xff, [12] = 198, [13] = 18 } };
	struct cordon_net_address v6 = { { 0x20, 0x01, 0x00, 0x02 } };
	struct cordon_net_address *label = family == 0 ? &v4 : &v6;
	uint32_t number = ++made_labels[family];

	label->bytes[13] = (uint8_t)(label->bytes[13] + (family == 0 ? number >> 16 & 1 : number >> 16));
	label->bytes[14] = (uint8_t)(number >> 8);
	label->bytes[15] = (uint8_t)number;
	return *label;
}

static bool has_dialable(const struct name *name, unsigned int family)
{
	struct cordon_net_address addresses[NET_ADDRESSES_MAX];

	if (net_name_by_proxy(name))
		return family == 0;
	for (size_t i = 0; i < net.list.n; i++) {
		size_t n;

		if (!cordon_net_rule_covers(&net.list.rules[i], name->text))
			continue;
		n = net_name_dialable(name, net.list.rules[i].port, addresses);
		while (n-- > 0)
			if (cordon_net_address_is_v4(&addresses[n]) == (family == 0))
				return true;
	}
	return false;
}

const struct cordon_net_address *net_name_label(struct name *name, unsigned int family)
{
	if ((family == 1 && !net.v6) || !has_dialable(name, family))
		return NULL;
	for (size_t i = 0; !name->has_label[family] && i < name->n; i++) {
		const struct cordon_net_address *address = &name->addresses[i];

		if (cordon_net_address_is_v4(address) != (family == 0) || !net_address_is_public(address) ||
		    is_granted_anywhere(address) || net_name_of_label(address))
			continue;
		name->labels[family] = *address;
		name->has_label[family] = true;
	}
	if (!name->has_label[family]) {
		name->labels[family] = make_label(family);
		name->has_label[family] = true;
	}
	return &name->labels[family];
}

void net_names_apply(void)
{
	for (size_t i = 0; i < BUCKETS; i++)
		for (struct name *name = buckets[i]; name; name = name->next)
			net_listen_name(name);
}
