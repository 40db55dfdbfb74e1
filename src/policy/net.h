/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The list of hosts that a run may reach. Pure: nothing here resolves a name.
 *
 * A rule is `HOST[:PORT][/tcp]`; the port is 443 when none is given. HOST is a name, `*.NAME` (one or more labels in
 * front of NAME, never NAME itself), `localhost` (the loopback of the host), an IPv4 address, or an IPv6 address in
 * brackets. `/tcp` means that the helper does not look for the name in the stream.
 *
 * A list is a set: what any rule of it allows is allowed, and the order of rules never matters.
 */
#ifndef CORDON_POLICY_NET_H
#define CORDON_POLICY_NET_H

#include "base/buf.h"
#include "base/error.h"

#define CORDON_NET_NAME_SIZE 254 /* 253 characters and a NUL */
#define CORDON_NET_PORT 443
#define CORDON_NET_RULES_MAX 1024
#define CORDON_NET_INJECT_MAX 64
/* "*.", a name or a bracketed address, a colon, a port, "/tcp" and a NUL. */
#define CORDON_NET_RULE_SIZE (CORDON_NET_NAME_SIZE + 16)

/* An IPv4 address is stored in the form ::ffff:a.b.c.d, so that the two ways to write one are the same address. */
struct cordon_net_address {
	uint8_t bytes[16];
};
#define CORDON_NET_ADDRESS_SIZE 48 /* of the text */

typedef enum cordon_net_kind {
	CORDON_NET_KIND_NAME,
	CORDON_NET_KIND_WILDCARD,
	CORDON_NET_KIND_LOCALHOST,
	CORDON_NET_KIND_ADDRESS,
} cordon_net_kind;

struct cordon_net_rule {
	cordon_net_kind kind;
	bool tcp; /* the helper relays without a look at the stream */
	uint16_t port;
	/* In lower-case ASCII without a trailing dot; of a wildcard what follows "*."; of an address its text, without
	 * brackets. */
	char name[CORDON_NET_NAME_SIZE];
	struct cordon_net_address address; /* of an address rule */
	/* Of a rule in a list: as cordon_net_rule_text() writes it. */
	char text[CORDON_NET_RULE_SIZE];
	char *where; /* "file:line:column", the option it was given by, or NULL */
};

/* A credential that the helper adds to requests, so that the run itself never has it. */
struct cordon_net_inject {
	char *host; /* a clean name */
	uint16_t port;
	char *header;	    /* name of the header, as written */
	char *prefix;	    /* stands before the value in the header, as in "Bearer "; or "" */
	char *from_env;	    /* variable of the host that holds the value */
	char *base_url_env; /* variable of the run that gets the URL of the endpoint */
	char *path;	    /* ends that URL: "" or "/v1" */
};

struct cordon_net_list {
	bool listed; /* false: there is no list, and nothing is limited; the rest is then empty */
	struct cordon_net_rule *rules;
	size_t n;
	struct cordon_net_inject *inject;
	size_t n_inject;
};

void cordon_net_list_done(struct cordon_net_list *list);

/*
 * ---- names and addresses ----
 */

/* Brings a name that came from a DNS message, a ClientHello or a header into the form that rules have. -EINVAL for
 * everything that is no host name in ASCII: a NUL, a dot at the end, an empty or long label, other bytes than letters,
 * digits, `-` and `_`, an address, and a number in the last label. */
int cordon_net_name_clean(const char *s, size_t n, char ret_name[static CORDON_NET_NAME_SIZE]);
/* The same for a name that a person wrote: letters outside ASCII become Punycode. On failure *ret_column is the
 * character that is wrong (from 1), and *ret_why a text of ours. */
int cordon_net_name_encode(const char *s, size_t n, char ret_name[static CORDON_NET_NAME_SIZE], size_t *ret_column,
			   const char **ret_why);

/* An IPv4 or IPv6 address without brackets, scope or port, in the forms of inet_pton(). -EINVAL for others. */
int cordon_net_address_parse(const char *s, size_t n, struct cordon_net_address *ret_address);
bool cordon_net_address_is_v4(const struct cordon_net_address *address);
/* Inside a run, the two addresses of the loopback are what `localhost` resolves to. */
bool cordon_net_address_is_localhost(const struct cordon_net_address *address);
void cordon_net_address_text(const struct cordon_net_address *address, char ret[static CORDON_NET_ADDRESS_SIZE]);

/*
 * ---- rules ----
 */

/* Parses all of the `n` bytes. An error names the rule, the column and what was probably meant. `where` stays NULL. */
int cordon_net_rule_parse(const char *s, size_t n, struct cordon_net_rule *ret_rule, struct cordon_error *err);
/* Whether the text is a rule; else *ret_column (from 1) is where the fault is. */
int cordon_net_rule_check(const char *s, size_t *ret_column, struct cordon_error *err);
/* The one way to write a rule: always with its port. */
void cordon_net_rule_text(const struct cordon_net_rule *rule, char ret[static CORDON_NET_RULE_SIZE]);
/* Whether the rule is about this clean name, on its own port; never for an address rule. "localhost" is covered by a
 * localhost rule alone. */
bool cordon_net_rule_covers(const struct cordon_net_rule *rule, const char *name);
/* Whether `inner` allows nothing that `outer` does not allow. */
bool cordon_net_rule_within(const struct cordon_net_rule *inner, const struct cordon_net_rule *outer);

/*
 * ---- lists ----
 */

/* Makes it a list, if it is none yet, and adds a rule; one that is there already counts once. */
int cordon_net_list_add(struct cordon_net_list *list, const struct cordon_net_rule *rule, const char *where,
			struct cordon_error *err);
/* Adds rules that are separated by commas; blanks around them are dropped. "" gives an empty list. On failure the list
 * is unchanged. */
int cordon_net_list_parse(struct cordon_net_list *list, const char *text, const char *where, struct cordon_error *err);
/* Takes over a credential; its strings are copied and checked. */
int cordon_net_list_inject(struct cordon_net_list *list, const struct cordon_net_inject *inject,
			   struct cordon_error *err);
/* Removes the rule with this host and port, whether it has /tcp or not; -ENOENT when the list has none such. */
int cordon_net_list_remove(struct cordon_net_list *list, const struct cordon_net_rule *rule);
int cordon_net_list_copy(struct cordon_net_list *ret_list, const struct cordon_net_list *list);
/* Narrows `list` to what `other` allows, too. A credential stays when the other one is no list or has the same one, and
 * none is added. Where one of them is no list, the rules of the other one count. On failure the list is unchanged. */
int cordon_net_list_narrow(struct cordon_net_list *list, const struct cordon_net_list *other, struct cordon_error *err);
/* 0 when `inner` allows nothing that `outer` does not allow, and has no credential that it does not have; else -EPERM
 * and what is freer. */
int cordon_net_list_within(const struct cordon_net_list *inner, const struct cordon_net_list *outer,
			   struct cordon_error *err);
/* All rules and credentials for which `inner` is not within `outer`. It is no list when `inner` is none. */
int cordon_net_list_excess(const struct cordon_net_list *inner, const struct cordon_net_list *outer,
			   struct cordon_net_list *ret_more);
/* The rules in their one form, joined by commas; "" for an empty list. */
int cordon_net_list_text(const struct cordon_net_list *list, struct cordon_buf *ret_text);

/* The rule that allows a clean name or an address on a port, or NULL. One with /tcp comes before one without. */
const struct cordon_net_rule *cordon_net_list_find(const struct cordon_net_list *list, const char *name, uint16_t port);
const struct cordon_net_rule *cordon_net_list_find_address(const struct cordon_net_list *list,
							   const struct cordon_net_address *address, uint16_t port);
/* Whether nothing can be reached: it is a list without rules and credentials. */
static inline bool cordon_net_list_is_none(const struct cordon_net_list *list)
{
	return list->listed && list->n == 0 && list->n_inject == 0;
}

#endif
