/* SPDX-License-Identifier: Apache-2.0 */
/* One rule of the list of hosts: its text, and what it covers. */
#include "base/text.h"
#include "policy/net.h"

struct parser {
	const char *text;
	size_t len;
	struct cordon_error *err;
	size_t *column; /* where the fault is told, or NULL */
};

/* The column of a byte, counted in characters from 1. */
static size_t column_of(const struct parser *p, size_t at)
{
	size_t column = 1;

	for (size_t i = 0, n; i < at; i += n, column++) {
		n = cordon_utf8_char(p->text + i, p->len - i);
		if (!n)
			n = 1;
	}
	return column;
}

static int fail_at(const struct parser *p, size_t column, const char *why, const char *hint)
{
	int shown = p->len > 256 ? 253 : (int)p->len;

	if (p->column)
		*p->column = column;
	cordon_fail(p->err, -EINVAL, CORDON_KIND_USAGE, "bad host `%.*s%s` at column %zu: %s", shown, p->text,
		    shown == 253 && p->len > 256 ? "..." : "", column, why);
	cordon_error_hint(p->err, "%s", hint ? hint : "write NAME:PORT, *.NAME:PORT, ADDRESS:PORT or [IPV6]:PORT");
	return -EINVAL;
}

static int fail(const struct parser *p, size_t at, const char *why, const char *hint)
{
	return fail_at(p, column_of(p, at), why, hint);
}

static bool begins(const struct parser *p, const char *with)
{
	return p->len >= strlen(with) && memcmp(p->text, with, strlen(with)) == 0;
}

/* What a person may have pasted that is no rule. */
static int check_shape(const struct parser *p)
{
	const char *scheme = memmem(p->text, p->len, "://", 3), *at;
	const char *nul = memchr(p->text, '\0', p->len);

	if (nul)
		return fail(p, (size_t)(nul - p->text), "there is a NUL in it", NULL);
	if (p->len == 0)
		return fail(p, 0, "it is empty", NULL);
	if (scheme)
		return fail(p, (size_t)(scheme - p->text), "this is a URL",
			    "leave out the scheme and the path: a rule is HOST:PORT");
	at = memchr(p->text, '@', p->len);
	if (at)
		return fail(p, (size_t)(at - p->text), "a rule has no user", "leave out what stands before the @");
	if (begins(p, "!"))
		return fail(p, 0, "a list has no exceptions", "name the hosts that are allowed, and no others");
	return 0;
}

static int parse_port(const struct parser *p, size_t at, size_t end, uint16_t *ret_port)
{
	unsigned int port = 0;

	if (at == end)
		return fail(p, at, "the port is missing", "leave out the colon for port 443");
	for (size_t i = at; i < end; i++) {
		if (p->text[i] == '*' || p->text[i] == '-')
			return fail(p, i, "a rule has one port", "write a rule for each port");
		if (p->text[i] < '0' || p->text[i] > '9')
			return fail(p, i, "a port is a number", "write HOST:443, or HOST:22/tcp");
		port = port * 10 + (unsigned int)(p->text[i] - '0');
		if (port > 65535)
			return fail(p, at, "a port is at most 65535", NULL);
	}
	if (port == 0)
		return fail(p, at, "a port is at least 1", NULL);
	*ret_port = (uint16_t)port;
	return 0;
}

/* The part behind the last slash, which may only be "tcp". *ret_end is where the rest ends. */
static int parse_protocol(const struct parser *p, struct cordon_net_rule *rule, size_t *ret_end)
{
	const char *slash = memchr(p->text, '/', p->len);
	size_t at = slash ? (size_t)(slash - p->text) : p->len;

	*ret_end = at;
	if (!slash)
		return 0;
	rule->tcp = p->len - at == 4 && memcmp(slash, "/tcp", 4) == 0;
	if (rule->tcp)
		return 0;
	if (p->len - at == 4 && memcmp(slash, "/udp", 4) == 0)
		return fail(p, at, "only TCP is relayed", "leave out /udp; DNS needs no rule");
	return fail(p, at, "a rule ends with /tcp or without a slash",
		    "leave out the path: a rule is HOST:PORT or HOST:PORT/tcp");
}

static int parse_address(const struct parser *p, size_t at, size_t end, struct cordon_net_rule *rule)
{
	if (cordon_net_address_parse(p->text + at, end - at, &rule->address) < 0)
		return -EINVAL;
	rule->kind = CORDON_NET_KIND_ADDRESS;
	cordon_net_address_text(&rule->address, rule->name);
	return 0;
}

static int parse_bracketed(const struct parser *p, size_t end, struct cordon_net_rule *rule)
{
	const char *close = memchr(p->text, ']', end);
	size_t at = close ? (size_t)(close - p->text) : 0;

	if (!close)
		return fail(p, 0, "the bracket is not closed", "write [2001:db8::1]:443");
	if (!memchr(p->text, ':', at) || parse_address(p, 1, at, rule) < 0)
		return fail(p, 1, "this is not an IPv6 address", "write [2001:db8::1]:443, without a scope");
	if (at + 1 == end)
		return 0;
	if (p->text[at + 1] != ':')
		return fail(p, at + 1, "a colon and a port follow the bracket", "write [2001:db8::1]:443");
	return parse_port(p, at + 2, end, &rule->port);
}

static int parse_name(const struct parser *p, size_t end, struct cordon_net_rule *rule)
{
	size_t at = 0, column;
	const char *why, *star;

	if (parse_address(p, 0, end, rule) == 0)
		return 0;
	if (end == 1 && p->text[0] == '*')
		return fail(p, 0, "every host is no list",
			    "use host for the network of the host, or name a domain: *.example.com");
	if (begins(p, "*.")) {
		rule->kind = CORDON_NET_KIND_WILDCARD;
		at = 2;
	}
	star = memchr(p->text + at, '*', end - at);
	if (star)
		return fail(p, (size_t)(star - p->text), "a star stands for whole labels at the beginning only",
			    "write *.example.com");
	if (cordon_net_name_encode(p->text + at, end - at, rule->name, &column, &why) < 0)
		return fail_at(p, column_of(p, at) + column - 1, why, NULL);
	if (cordon_streq(rule->name, "localhost")) {
		if (at)
			return fail(p, 0, "localhost has no names below it", "write localhost:PORT");
		rule->kind = CORDON_NET_KIND_LOCALHOST;
	} else if (strlen(rule->name) > 10 && cordon_streq(rule->name + strlen(rule->name) - 10, ".localhost")) {
		return fail(p, at, "localhost has no names below it", "write localhost:PORT");
	} else if (rule->kind == CORDON_NET_KIND_NAME && !strchr(rule->name, '.') && end == p->len) {
		/* More often a wrong spelling of one of those words than a host. */
		return fail(p, 0, "a name without a dot needs a port", "write none, host, profile, or NAME:PORT");
	}
	return 0;
}

static int parse(const struct parser *p, struct cordon_net_rule *ret_rule)
{
	const char *s = p->text;
	struct cordon_net_rule rule = { .kind = CORDON_NET_KIND_NAME, .port = CORDON_NET_PORT };
	const char *colon;
	size_t end = 0;
	int r = check_shape(p);

	if (r == 0)
		r = parse_protocol(p, &rule, &end);
	if (r < 0)
		return r;
	if (s[0] == '[') {
		r = parse_bracketed(p, end, &rule);
	} else {
		colon = memchr(s, ':', end);
		if (colon && memchr(colon + 1, ':', (size_t)(s + end - colon - 1)))
			return fail(p, (size_t)(colon - s), "there are two colons",
				    "an IPv6 address stands in brackets: [2001:db8::1]:443");
		if (colon)
			r = parse_port(p, (size_t)(colon - s) + 1, end, &rule.port);
		if (r == 0)
			r = parse_name(p, colon ? (size_t)(colon - s) : end, &rule);
	}
	if (r < 0)
		return r;
	*ret_rule = rule;
	return 0;
}

int cordon_net_rule_parse(const char *s, size_t n, struct cordon_net_rule *ret_rule, struct cordon_error *err)
{
	const struct parser p = { .text = s, .len = n, .err = err };

	return parse(&p, ret_rule);
}

int cordon_net_rule_check(const char *s, size_t *ret_column, struct cordon_error *err)
{
	const struct parser p = { .text = s, .len = strlen(s), .err = err, .column = ret_column };
	struct cordon_net_rule rule;

	return parse(&p, &rule);
}

void cordon_net_rule_text(const struct cordon_net_rule *rule, char ret[static CORDON_NET_RULE_SIZE])
{
	char port[CORDON_DIGITS_SIZE];
	bool v6 = rule->kind == CORDON_NET_KIND_ADDRESS && strchr(rule->name, ':');

	cordon_concat(ret, CORDON_NET_RULE_SIZE,
		      rule->kind == CORDON_NET_KIND_WILDCARD ? "*."
		      : v6				     ? "["
							     : "",
		      rule->name, v6 ? "]:" : ":", cordon_digits(rule->port, port), rule->tcp ? "/tcp" : "",
		      (char *)NULL);
}

/* Whether a name is one or more labels in front of `domain`. */
static bool is_below(const char *name, const char *domain)
{
	size_t n = strlen(name), d = strlen(domain);

	return n > d + 1 && name[n - d - 1] == '.' && cordon_streq(name + n - d, domain);
}

bool cordon_net_rule_covers(const struct cordon_net_rule *rule, const char *name)
{
	switch (rule->kind) {
	case CORDON_NET_KIND_NAME:
	case CORDON_NET_KIND_LOCALHOST:
		return cordon_streq(rule->name, name);
	case CORDON_NET_KIND_WILDCARD:
		return is_below(name, rule->name);
	case CORDON_NET_KIND_ADDRESS:
	default:
		return false;
	}
}

bool cordon_net_rule_within(const struct cordon_net_rule *inner, const struct cordon_net_rule *outer)
{
	if (inner->port != outer->port || (inner->tcp && !outer->tcp))
		return false;
	if (outer->kind == CORDON_NET_KIND_WILDCARD)
		return (inner->kind == CORDON_NET_KIND_NAME || inner->kind == CORDON_NET_KIND_WILDCARD) &&
		       (is_below(inner->name, outer->name) ||
			(inner->kind == outer->kind && cordon_streq(inner->name, outer->name)));
	return inner->kind == outer->kind && cordon_streq(inner->name, outer->name);
}
