/* SPDX-License-Identifier: Apache-2.0 */
/* The names that the run asked for, their addresses on the host's side, and their labels inside. */
#include <strings.h>

#include "net/helper.h"

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
		net_name_resolved(name, NULL, 0, NET_FRESH_MS / 1000, false);
	else
		net_resolve(name);
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

void net_name_resolved(struct name *name, const struct cordon_net_address *addresses, size_t n, unsigned int ttl,
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
