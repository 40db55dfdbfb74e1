/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of hosts: building, narrowing and comparing them, and the question whether one allows a host. */
#include "base/text.h"
#include "policy/net.h"

static void inject_done(struct cordon_net_inject *inject)
{
	free(inject->host);
	free(inject->header);
	free(inject->prefix);
	free(inject->from_env);
	free(inject->base_url_env);
	free(inject->path);
}

void cordon_net_list_done(struct cordon_net_list *list)
{
	for (size_t i = 0; i < list->n; i++)
		free(list->rules[i].where);
	for (size_t i = 0; i < list->n_inject; i++)
		inject_done(&list->inject[i]);
	free(list->rules);
	free(list->inject);
	*list = (struct cordon_net_list){ 0 };
}

static bool same_host(const struct cordon_net_rule *a, const struct cordon_net_rule *b)
{
	return a->kind == b->kind && a->port == b->port && cordon_streq(a->name, b->name);
}

int cordon_net_list_add(struct cordon_net_list *list, const struct cordon_net_rule *rule, const char *where,
			struct cordon_error *err)
{
	struct cordon_net_rule *rules;
	char *copy = NULL;

	for (size_t i = 0; i < list->n; i++)
		if (same_host(&list->rules[i], rule)) {
			list->rules[i].tcp |= rule->tcp;
			cordon_net_rule_text(&list->rules[i], list->rules[i].text);
			return 0;
		}
	if (list->n == CORDON_NET_RULES_MAX)
		return cordon_fail(err, -E2BIG, CORDON_KIND_LIMIT, "a list has at most %d hosts", CORDON_NET_RULES_MAX);
	if (where && !(copy = strdup(where)))
		return cordon_fail_errno(err, -ENOMEM, "a list of hosts");
	rules = reallocarray(list->rules, list->n + 1, sizeof(*rules));
	if (!rules) {
		free(copy);
		return cordon_fail_errno(err, -ENOMEM, "a list of hosts");
	}
	list->rules = rules;
	list->rules[list->n] = *rule;
	list->rules[list->n].where = copy;
	cordon_net_rule_text(rule, list->rules[list->n++].text);
	list->listed = true;
	return 0;
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

/* Adds each entry to a list that is thrown away when one is wrong. */
static int parse_into(struct cordon_net_list *list, const char *text, const char *where, struct cordon_error *err)
{
	struct cordon_net_rule rule;
	int r = 0;

	for (const char *p = text, *end; r == 0 && p; p = *end ? end + 1 : NULL) {
		size_t n;

		end = p + strcspn(p, ",");
		while (is_blank(*p))
			p++;
		n = (size_t)(end - p);
		while (n && is_blank(p[n - 1]))
			n--;
		r = cordon_net_rule_parse(p, n, &rule, err);
		if (r == 0)
			r = cordon_net_list_add(list, &rule, where, err);
	}
	return r;
}

int cordon_net_list_parse(struct cordon_net_list *list, const char *text, const char *where, struct cordon_error *err)
{
	struct cordon_net_list copy = { 0 };
	int r = cordon_net_list_copy(&copy, list);

	if (r < 0)
		return cordon_fail_errno(err, r, "a list of hosts");
	copy.listed = true;
	if (*text)
		r = parse_into(&copy, text, where, err);
	if (r == 0) {
		cordon_net_list_done(list);
		*list = copy;
	} else {
		cordon_net_list_done(&copy);
	}
	return r;
}

static bool is_token(const char *s)
{
	for (const char *p = s; *p; p++)
		if (!((*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') || (*p >= '0' && *p <= '9') ||
		      strchr("!#$%&'*+-.^_`|~", *p)))
			return false;
	return *s;
}

static bool is_variable(const char *s)
{
	for (const char *p = s; *p; p++)
		if (!((*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') || *p == '_' ||
		      (p > s && *p >= '0' && *p <= '9')))
			return false;
	return *s;
}

/* Whether the text may stand in a header or in a URL as it is. */
static bool is_printable(const char *s)
{
	for (; *s; s++)
		if (*s < ' ' || *s > '~')
			return false;
	return true;
}

static int check_inject(const struct cordon_net_inject *inject, struct cordon_error *err)
{
	static const char *const ours[] = { "host",    "connection", "content-length", "transfer-encoding",   "upgrade",
					    "trailer", "keep-alive", "expect",	       "proxy-authorization", NULL };

	if (!is_token(inject->header))
		return cordon_fail(err, -EINVAL, CORDON_KIND_CONFIG, "'%s' is not the name of a header", inject->header);
	for (size_t i = 0; ours[i]; i++)
		if (strcasecmp(ours[i], inject->header) == 0)
			return cordon_fail(err, -EINVAL, CORDON_KIND_CONFIG, "header '%s' can't carry a credential",
					   inject->header);
	if (!is_variable(inject->from_env))
		return cordon_fail(err, -EINVAL, CORDON_KIND_CONFIG, "'%s' is not the name of a variable",
				   inject->from_env);
	if (!is_variable(inject->base_url_env))
		return cordon_fail(err, -EINVAL, CORDON_KIND_CONFIG, "'%s' is not the name of a variable",
				   inject->base_url_env);
	if (cordon_streq(inject->from_env, inject->base_url_env))
		return cordon_fail(err, -EINVAL, CORDON_KIND_CONFIG, "from_env and base_url_env are the same variable");
	if (!is_printable(inject->prefix))
		return cordon_fail(err, -EINVAL, CORDON_KIND_CONFIG, "a prefix has printable characters of ASCII only");
	if (*inject->path && (*inject->path != '/' || !is_printable(inject->path) || strpbrk(inject->path, " ?#")))
		return cordon_fail(err, -EINVAL, CORDON_KIND_CONFIG, "'%s' is not the path of a URL", inject->path);
	return 0;
}

static bool same_inject(const struct cordon_net_inject *a, const struct cordon_net_inject *b)
{
	return cordon_streq(a->host, b->host) && a->port == b->port && strcasecmp(a->header, b->header) == 0 &&
	       cordon_streq(a->prefix, b->prefix) && cordon_streq(a->from_env, b->from_env) &&
	       cordon_streq(a->base_url_env, b->base_url_env) && cordon_streq(a->path, b->path);
}

static int append_inject(struct cordon_net_list *list, const struct cordon_net_inject *inject)
{
	struct cordon_net_inject *all = reallocarray(list->inject, list->n_inject + 1, sizeof(*all)), copy;

	if (!all)
		return -ENOMEM;
	list->inject = all;
	copy = (struct cordon_net_inject){
		.host = strdup(inject->host),
		.port = inject->port,
		.header = strdup(inject->header),
		.prefix = strdup(inject->prefix),
		.from_env = strdup(inject->from_env),
		.base_url_env = strdup(inject->base_url_env),
		.path = strdup(inject->path),
	};
	if (!copy.host || !copy.header || !copy.prefix || !copy.from_env || !copy.base_url_env || !copy.path) {
		inject_done(&copy);
		return -ENOMEM;
	}
	list->inject[list->n_inject++] = copy;
	list->listed = true;
	return 0;
}

int cordon_net_list_inject(struct cordon_net_list *list, const struct cordon_net_inject *inject,
			   struct cordon_error *err)
{
	int r = check_inject(inject, err);

	if (r < 0)
		return r;
	for (size_t i = 0; i < list->n_inject; i++) {
		if (same_inject(&list->inject[i], inject))
			return 0;
		if (cordon_streq(list->inject[i].base_url_env, inject->base_url_env))
			return cordon_fail(err, -EINVAL, CORDON_KIND_CONFIG,
					   "two endpoints would share the variable %s", inject->base_url_env);
	}
	if (list->n_inject == CORDON_NET_INJECT_MAX)
		return cordon_fail(err, -E2BIG, CORDON_KIND_LIMIT, "a list has at most %d credentials",
				   CORDON_NET_INJECT_MAX);
	r = append_inject(list, inject);
	return r < 0 ? cordon_fail_errno(err, r, "a list of hosts") : 0;
}

int cordon_net_list_remove(struct cordon_net_list *list, const struct cordon_net_rule *rule)
{
	for (size_t i = 0; i < list->n; i++) {
		if (!same_host(&list->rules[i], rule))
			continue;
		free(list->rules[i].where);
		memmove(&list->rules[i], &list->rules[i + 1], (list->n - i - 1) * sizeof(*list->rules));
		list->n--;
		return 0;
	}
	return -ENOENT;
}

static int copy_rules(struct cordon_net_list *to, const struct cordon_net_list *from)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < from->n; i++)
		r = cordon_net_list_add(to, &from->rules[i], from->rules[i].where, NULL);
	return r;
}

int cordon_net_list_copy(struct cordon_net_list *ret_list, const struct cordon_net_list *list)
{
	struct cordon_net_list copy = { .listed = list->listed };
	int r = copy_rules(&copy, list);

	for (size_t i = 0; r == 0 && i < list->n_inject; i++)
		r = append_inject(&copy, &list->inject[i]);
	if (r < 0)
		cordon_net_list_done(&copy);
	else
		*ret_list = copy;
	return r;
}

/* What two rules allow both: the narrower one, without a free ride for the stream unless both give it. */
static bool common(const struct cordon_net_rule *a, const struct cordon_net_rule *b, struct cordon_net_rule *ret)
{
	struct cordon_net_rule x = *a, y = *b;

	x.tcp = y.tcp = a->tcp && b->tcp;
	if (cordon_net_rule_within(&x, &y))
		*ret = x;
	else if (cordon_net_rule_within(&y, &x))
		*ret = y;
	else
		return false;
	return true;
}

static int intersect(struct cordon_net_list *ret, const struct cordon_net_list *a, const struct cordon_net_list *b,
		     struct cordon_error *err)
{
	struct cordon_net_rule rule;
	int r = 0;

	for (size_t i = 0; i < a->n; i++)
		for (size_t j = 0; r == 0 && j < b->n; j++)
			if (common(&a->rules[i], &b->rules[j], &rule))
				r = cordon_net_list_add(ret, &rule, rule.where, err);
	for (size_t i = 0; i < a->n_inject; i++)
		for (size_t j = 0; r == 0 && j < b->n_inject; j++)
			if (same_inject(&a->inject[i], &b->inject[j]))
				r = append_inject(ret, &a->inject[i]);
	return r;
}

int cordon_net_list_narrow(struct cordon_net_list *list, const struct cordon_net_list *other, struct cordon_error *err)
{
	struct cordon_net_list both = { .listed = true };
	int r;

	if (!other->listed)
		return 0;
	/* INVARIANT: narrowing never adds a credential. */
	r = list->listed ? intersect(&both, list, other, err) : copy_rules(&both, other);
	if (r < 0) {
		cordon_net_list_done(&both);
		return r == -ENOMEM ? cordon_fail_errno(err, r, "a list of hosts") : r;
	}
	cordon_net_list_done(list);
	*list = both;
	return 0;
}

static int freer(struct cordon_error *err, const char *what)
{
	return cordon_fail(err, -EPERM, CORDON_KIND_POLICY_DENIED, "it would reach more of the network%s%s",
			   *what ? ": " : "", what);
}

static bool allows_rule(const struct cordon_net_list *list, const struct cordon_net_rule *rule)
{
	for (size_t i = 0; list->listed && i < list->n; i++)
		if (cordon_net_rule_within(rule, &list->rules[i]))
			return true;
	return !list->listed;
}

static bool has_inject(const struct cordon_net_list *list, const struct cordon_net_inject *inject)
{
	for (size_t i = 0; i < list->n_inject; i++)
		if (same_inject(inject, &list->inject[i]))
			return true;
	return false;
}

int cordon_net_list_within(const struct cordon_net_list *inner, const struct cordon_net_list *outer,
			   struct cordon_error *err)
{
	if (outer->listed && !inner->listed)
		return freer(err, "");
	for (size_t i = 0; i < inner->n; i++)
		if (!allows_rule(outer, &inner->rules[i]))
			return freer(err, inner->rules[i].text);
	for (size_t i = 0; i < inner->n_inject; i++)
		if (!has_inject(outer, &inner->inject[i]))
			return cordon_fail(err, -EPERM, CORDON_KIND_POLICY_DENIED,
					   "it would use more credentials: %s at %s", inner->inject[i].from_env,
					   inner->inject[i].host);
	return 0;
}

int cordon_net_list_excess(const struct cordon_net_list *inner, const struct cordon_net_list *outer,
			   struct cordon_net_list *ret_more)
{
	struct cordon_net_list more = { .listed = inner->listed };
	int r = 0;

	for (size_t i = 0; r == 0 && i < inner->n; i++)
		if (!allows_rule(outer, &inner->rules[i]))
			r = cordon_net_list_add(&more, &inner->rules[i], inner->rules[i].where, NULL);
	for (size_t i = 0; r == 0 && i < inner->n_inject; i++)
		if (!has_inject(outer, &inner->inject[i]))
			r = append_inject(&more, &inner->inject[i]);
	if (r < 0)
		cordon_net_list_done(&more);
	else
		*ret_more = more;
	return r;
}

int cordon_net_list_text(const struct cordon_net_list *list, struct cordon_buf *ret_text)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < list->n; i++) {
		r = i ? cordon_buf_addc(ret_text, ',') : 0;
		if (r == 0)
			r = cordon_buf_adds(ret_text, list->rules[i].text);
	}
	return r;
}

/* Of two rules that allow the same, the one without a look at the stream. */
static const struct cordon_net_rule *freest(const struct cordon_net_rule *a, const struct cordon_net_rule *b)
{
	return a && (a->tcp || !b->tcp) ? a : b;
}

const struct cordon_net_rule *cordon_net_list_find(const struct cordon_net_list *list, const char *name, uint16_t port)
{
	const struct cordon_net_rule *found = NULL;

	for (size_t i = 0; i < list->n; i++)
		if (list->rules[i].port == port && cordon_net_rule_covers(&list->rules[i], name))
			found = freest(found, &list->rules[i]);
	return found;
}

const struct cordon_net_rule *cordon_net_list_find_address(const struct cordon_net_list *list,
							   const struct cordon_net_address *address, uint16_t port)
{
	const struct cordon_net_rule *found = NULL;

	for (size_t i = 0; i < list->n; i++)
		if (list->rules[i].port == port && list->rules[i].kind == CORDON_NET_KIND_ADDRESS &&
		    memcmp(&list->rules[i].address, address, sizeof(*address)) == 0)
			found = freest(found, &list->rules[i]);
	return found;
}
