/* SPDX-License-Identifier: Apache-2.0 */
/* Tells the supervisor what was refused, each attempt once, and sees what the kernel refused by itself. While the run
 * is learned from, also what was reached. */
#include <stdio.h>
#include <sys/socket.h>

#include "net/helper.h"

#define TOLD_MAX 1024 /* different attempts that are reported */

static uint64_t told[TOLD_MAX];
static size_t n_told;
static bool limits_told[8];
static uint32_t untold; /* not sent yet */
static int refusals[4]; /* the sockets that see refusals */
static size_t n_refusals;

static bool send_record(const struct cordon_net_record *record)
{
	return send(net.ctl, record, sizeof(*record), MSG_DONTWAIT | MSG_NOSIGNAL) >= 0;
}

static uint64_t hash(uint64_t value, const char *text)
{
	for (; *text; text++)
		value = (value ^ (unsigned char)*text) * 0x100000001b3;
	return value;
}

/* Whether this was reported before; then it is counted. */
static bool is_told(const struct cordon_net_record *record)
{
	uint64_t value = hash(hash(0xcbf29ce484222325 ^ record->reason ^ record->resolve << 8 ^ record->kind << 16,
				   record->text),
			      record->rule);

	for (size_t i = 0; i < n_told; i++)
		if (told[i] == value)
			return true;
	if (n_told == TOLD_MAX) {
		untold += record->kind == CORDON_NET_REFUSED;
		return true;
	}
	told[n_told++] = value;
	return false;
}

static void tell(cordon_reason reason, bool resolve, const char *text, const char *rule)
{
	struct cordon_net_record record = { .kind = CORDON_NET_REFUSED, .reason = reason, .resolve = resolve };

	snprintf(record.text, sizeof(record.text), "%s", text);
	snprintf(record.rule, sizeof(record.rule), "%s", rule ? rule : "");
	if (net.meter)
		cordon_meter_count(&net.meter->net_refused);
	if (!is_told(&record) && !send_record(&record))
		untold++;
}

void net_reports_tick(void)
{
	struct cordon_net_record record = { .kind = CORDON_NET_UNTOLD, .limit = untold };

	if (untold && send_record(&record))
		untold = 0;
}

void net_report(cordon_reason reason, const char *host, uint16_t port, const char *rule)
{
	char text[CORDON_NET_RULE_SIZE];

	if (port)
		net_host_port(host, port, text);
	tell(reason, port == 0, port ? text : host, rule);
}

void net_report_reached(const char *host, uint16_t port)
{
	struct cordon_net_record record = { .kind = CORDON_NET_REACHED };

	if (!net.learning)
		return;
	net_host_port(host, port, record.text);
	if (!is_told(&record))
		(void)send_record(&record);
}

void net_report_limit(const char *name, size_t limit)
{
	struct cordon_net_record record = { .kind = CORDON_NET_LIMIT, .limit = (uint32_t)limit };
	size_t slot = hash(0, name) % CORDON_ARRAY_SIZE(limits_told);

	if (limits_told[slot])
		return;
	limits_told[slot] = true;
	snprintf(record.text, sizeof(record.text), "%s", name);
	(void)send_record(&record);
}

void net_report_failed(const char *what, int code)
{
	struct cordon_net_record record = { .kind = CORDON_NET_FAILED };

	snprintf(record.text, sizeof(record.text), "cannot %s: %s", what, strerror(-code));
	(void)send_record(&record);
}

/* A connection or a datagram that the kernel refused, because nobody listens there. */
static void report_address(const struct cordon_net_address *address, uint16_t port, bool udp)
{
	const struct name *name = net_name_of_label(address);
	char text[CORDON_NET_ADDRESS_SIZE], rule[CORDON_NET_RULE_SIZE];
	const char *host = name ? name->text : text;

	/* A program of the run that waits for its own server connects to its loopback again and again. Only where the host has a
	 * service there, the list is what stands between. */
	if (port == 0 || (net_address_is_loopback(address) && !net_host_has(address, port, udp)))
		return;
	cordon_net_address_text(address, text);
	net_host_port(host, port, rule);
	if (udp) {
		char both[CORDON_NET_RULE_SIZE + 4];

		snprintf(both, sizeof(both), "%s/udp", rule);
		tell(CORDON_REASON_NO_HOST, false, both, NULL); /* no rule can allow it */
		return;
	}
	/* A label has no listener for a port that no rule allows; one that the agent took itself can't be named. */
	if (name ? cordon_net_list_find(&net.list, name->text, port) != NULL
		 : cordon_net_list_find_address(&net.list, address, port) != NULL)
		return;
	if (cordon_net_address_is_localhost(address)) {
		if (cordon_net_list_find(&net.list, "localhost", port))
			return;
		net_host_port("localhost", port, rule);
	}
	net_report(CORDON_REASON_NO_HOST, host, port, rule);
}

static void from_v4(const uint8_t *bytes, struct cordon_net_address *ret)
{
	*ret = (struct cordon_net_address){ { [10] = 0xff, [11] = 0xff } };
	memcpy(ret->bytes + 12, bytes, 4);
}

/* A TCP segment whose source refused, or an ICMP message that quotes the datagram, from its IP header on. */
static void read_v4(const uint8_t *p, size_t n)
{
	size_t header = n ? (size_t)(p[0] & 15) * 4 : 0;
	struct cordon_net_address address;

	if (header < 20 || n < header + 8)
		return;
	if (p[9] == IPPROTO_TCP) {
		from_v4(p + 12, &address);
		report_address(&address, (uint16_t)(p[header] << 8 | p[header + 1]), false);
		return;
	}
	p += header + 8;
	n -= header + 8;
	header = n ? (size_t)(p[0] & 15) * 4 : 0;
	if (header < 20 || n < header + 4 || p[9] != IPPROTO_UDP)
		return;
	from_v4(p + 16, &address);
	report_address(&address, (uint16_t)(p[header + 2] << 8 | p[header + 3]), true);
}

/* The same behind the IP header, from this source. */
static void read_v6(const uint8_t *p, size_t n, const struct sockaddr_storage *from, int protocol)
{
	struct cordon_net_address address;
	uint16_t port;

	if (protocol == IPPROTO_TCP && n >= 4) {
		net_address_from(from, &address, &port);
		report_address(&address, (uint16_t)(p[0] << 8 | p[1]), false);
	} else if (protocol != IPPROTO_TCP && n >= 8 + 40 + 4 && p[8 + 6] == IPPROTO_UDP) {
		memcpy(address.bytes, p + 8 + 24, 16);
		report_address(&address, (uint16_t)(p[8 + 40 + 2] << 8 | p[8 + 40 + 3]), true);
	}
}

static void read_refusals(int fd, int most)
{
	int protocol = 0;
	socklen_t size = sizeof(protocol);

	(void)getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &size);
	for (int i = 0; i < most; i++) {
		struct sockaddr_storage from = { 0 };
		socklen_t from_size = sizeof(from);
		uint8_t packet[128];
		ssize_t n = recvfrom(fd, packet, sizeof(packet), MSG_DONTWAIT, (struct sockaddr *)&from, &from_size);

		if (n <= 0)
			return;
		if (from.ss_family == AF_INET)
			read_v4(packet, (size_t)n);
		else
			read_v6(packet, (size_t)n, &from, protocol);
	}
}

static void on_refusals(struct source *source, uint32_t events)
{
	(void)events;
	read_refusals(source->fd, 64);
}

int net_reports_begin(int fd)
{
	int r = n_refusals == CORDON_ARRAY_SIZE(refusals) ? -ENOSPC : net_watch_new(fd, on_refusals);

	if (r == 0)
		refusals[n_refusals++] = fd;
	return r;
}

void net_reports_end(void)
{
	for (size_t i = 0; i < n_refusals; i++)
		read_refusals(refusals[i], 4096);
	net_reports_tick();
}
