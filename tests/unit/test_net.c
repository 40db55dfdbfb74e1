/* SPDX-License-Identifier: Apache-2.0 */
/* The list of hosts: how rules are written, what they cover, and that narrowing never widens. */
#include "unit.h"

#include "policy/net.h"

static void every_way_to_write_a_rule(void **state)
{
	static const struct {
		const char *text, *form;
		cordon_net_kind kind;
	} cases[] = {
		/* clang-format off */
		{ "api.example.com:443",           "api.example.com:443",          CORDON_NET_KIND_NAME },
		{ "api.example.com",               "api.example.com:443",          CORDON_NET_KIND_NAME },
		{ "API.Example.COM:0080",          "api.example.com:80",           CORDON_NET_KIND_NAME },
		{ "registry:5000",                 "registry:5000",                CORDON_NET_KIND_NAME },
		{ "a_b.example.com",               "a_b.example.com:443",          CORDON_NET_KIND_NAME },
		{ "1.2.3.example.com",             "1.2.3.example.com:443",        CORDON_NET_KIND_NAME },
		{ "github.com:22/tcp",             "github.com:22/tcp",            CORDON_NET_KIND_NAME },
		{ "github.com/tcp",                "github.com:443/tcp",           CORDON_NET_KIND_NAME },
		{ "*.example.com:443",             "*.example.com:443",            CORDON_NET_KIND_WILDCARD },
		{ "*.EXAMPLE.com",                 "*.example.com:443",            CORDON_NET_KIND_WILDCARD },
		{ "localhost:5432",                "localhost:5432",               CORDON_NET_KIND_LOCALHOST },
		{ "LocalHost:5432/tcp",            "localhost:5432/tcp",           CORDON_NET_KIND_LOCALHOST },
		{ "192.0.2.7:8080",                "192.0.2.7:8080",               CORDON_NET_KIND_ADDRESS },
		{ "192.0.2.7",                     "192.0.2.7:443",                CORDON_NET_KIND_ADDRESS },
		{ "[2001:db8::1]:443",             "[2001:db8::1]:443",            CORDON_NET_KIND_ADDRESS },
		{ "[2001:DB8:0:0::1]",             "[2001:db8::1]:443",            CORDON_NET_KIND_ADDRESS },
		{ "[::ffff:192.0.2.7]:80",         "192.0.2.7:80",                 CORDON_NET_KIND_ADDRESS },
		{ "[::ffff:c000:0207]:80",         "192.0.2.7:80",                 CORDON_NET_KIND_ADDRESS },
		/* IDNA: what Python, browsers and registries make of these names. */
		{ "bücher.example",                "xn--bcher-kva.example:443",    CORDON_NET_KIND_NAME },
		{ "BÜCHER.example",                "xn--bcher-kva.example:443",    CORDON_NET_KIND_NAME },
		{ "xn--bcher-kva.example",         "xn--bcher-kva.example:443",    CORDON_NET_KIND_NAME },
		{ "faß.de",                        "xn--fa-hia.de:443",            CORDON_NET_KIND_NAME },
		{ "пример.рф:80",                  "xn--e1afmkfd.xn--p1ai:80",     CORDON_NET_KIND_NAME },
		{ "ПРИМЕР.РФ:80",                  "xn--e1afmkfd.xn--p1ai:80",     CORDON_NET_KIND_NAME },
		{ "*.παράδειγμα.gr",               "*.xn--hxajbheg2az3al.gr:443",  CORDON_NET_KIND_WILDCARD },
		{ "例え.テスト",                   "xn--r8jz45g.xn--zckzah:443",   CORDON_NET_KIND_NAME },
		{ "한국.kr",                       "xn--3e0b707e.kr:443",          CORDON_NET_KIND_NAME },
		{ "Łódź.pl",                       "xn--d-uga0v4h.pl:443",         CORDON_NET_KIND_NAME },
		/* clang-format on */
	};
	char text[CORDON_NET_RULE_SIZE];
	struct cordon_net_rule rule, again;
	struct cordon_error err;

	(void)state;
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(cases); i++) {
		err = (struct cordon_error){ 0 };
		if (cordon_net_rule_parse(cases[i].text, strlen(cases[i].text), &rule, &err) < 0)
			fail_msg("%s: %s", cases[i].text, err.message);
		cordon_net_rule_text(&rule, text);
		assert_string_equal(text, cases[i].form);
		assert_int_equal(rule.kind, cases[i].kind);
		/* The form of a rule is a rule with the same form. */
		assert_int_equal(cordon_net_rule_parse(text, strlen(text), &again, NULL), 0);
		assert_memory_equal(&rule, &again, sizeof(rule));
	}
}

static void a_bad_rule_is_an_error_with_its_column(void **state)
{
	static const struct {
		const char *text, *says;
	} cases[] = {
		/* clang-format off */
		{ "nnone",                       "column 1: a name without a dot needs a port" },
		{ "",                            "column 1: it is empty" },
		{ "https://api.example.com/v1",  "column 6: this is a URL" },
		{ "git@github.com:22",           "column 4: a rule has no user" },
		{ "!api.example.com",            "column 1: a list has no exceptions" },
		{ "api.example.com.",            "column 16: a name ends without a dot" },
		{ "api..example.com",            "column 5: a label is empty" },
		{ ".example.com",                "column 1: a label is empty" },
		{ "-a.example.com",              "column 1: a label neither begins nor ends" },
		{ "api.example-.com",            "column 5: a label neither begins nor ends" },
		{ "api example.com",             "column 4: a name has letters" },
		{ "api.example.com:",            "column 17: the port is missing" },
		{ "api.example.com:https",       "column 17: a port is a number" },
		{ "api.example.com:*",           "column 17: a rule has one port" },
		{ "api.example.com:80-90",       "column 19: a rule has one port" },
		{ "api.example.com:0",           "column 17: a port is at least 1" },
		{ "api.example.com:65536",       "column 17: a port is at most 65535" },
		{ "api.example.com:4294967739",  "column 17: a port is at most 65535" },
		{ "api.example.com:443/udp",     "column 20: only TCP is relayed" },
		{ "api.example.com/v1",          "column 16: a rule ends with /tcp" },
		{ "*",                           "column 1: every host is no list" },
		{ "*:443",                       "column 1: every host is no list" },
		{ "*.*.example.com",             "column 3: a star stands for whole labels" },
		{ "api.*.com",                   "column 5: a star stands for whole labels" },
		{ "*api.example.com",            "column 1: a star stands for whole labels" },
		{ "*.localhost",                 "column 1: localhost has no names" },
		{ "db.localhost:80",             "column 1: localhost has no names" },
		{ "2001:db8::1",                 "column 5: there are two colons" },
		{ "[2001:db8::1",                "column 1: the bracket is not closed" },
		{ "[2001:db8::1]443",            "column 14: a colon and a port" },
		{ "[fe80::1%eth0]:443",          "column 2: this is not an IPv6 address" },
		{ "[192.0.2.7]:443",             "column 2: this is not an IPv6 address" },
		{ "192.0.2.256",                 "column 9: a name does not end with a number" },
		{ "127.1",                       "column 5: a name does not end with a number" },
		{ "2130706433:80",               "column 1: a name does not end with a number" },
		{ "0x7f000001:80",               "column 1: a name does not end with a number" },
		{ "192.0.2.0x7",                 "column 9: a name does not end with a number" },
		{ "exam\xff.com",                "column 5: this is not UTF-8" },
		{ "b\u0301cher.example",         "column 2: this character is not taken" },
		{ "example\u3002com",            "column 8: this character is not taken" },
		{ "\uff45xample.com",            "column 1: this character is not taken" },
		{ "b\u00fccher.ex\u200dample",   "column 10: this character is not taken" },
		{ "a123456789b123456789c123456789d123456789e123456789f123456789gggg.com", "column 1: a label has at most 63" },
		/* clang-format on */
	};
	struct cordon_net_rule rule = { .port = 7 };
	char long_name[300];
	struct cordon_error err;

	(void)state;
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(cases); i++) {
		err = (struct cordon_error){ 0 };
		assert_int_equal(cordon_net_rule_parse(cases[i].text, strlen(cases[i].text), &rule, &err), -EINVAL);
		if (!strstr(err.message, cases[i].says))
			fail_msg("%s: %s", cases[i].text, err.message);
		assert_true(err.hint[0]);
		assert_int_equal(rule.port, 7);
	}
	memset(long_name, 'a', sizeof(long_name));
	for (size_t i = 50; i < sizeof(long_name); i += 50)
		long_name[i] = '.';
	assert_int_equal(cordon_net_rule_parse(long_name, 253, &rule, &err), 0);
	assert_int_equal(cordon_net_rule_parse(long_name, 254, &rule, &err), -EINVAL);
	assert_int_equal(cordon_net_rule_parse("a\0b.example.com", 15, &rule, &err), -EINVAL);
	assert_non_null(strstr(err.message, "column 2: there is a NUL"));
}

static void a_name_from_the_wire_is_cleaned_or_refused(void **state)
{
	static const struct {
		const char *bytes;
		size_t n;
		const char *clean;
	} cases[] = {
		/* clang-format off */
		{ "API.example.com",      15, "api.example.com" },
		{ "a",                     1, "a" },
		{ "xn--bcher-kva.example", 21, "xn--bcher-kva.example" },
		{ "api.example.com.",     16, NULL },
		{ "api.example.com\0",    16, NULL },
		{ "api\0.example.com",    16, NULL },
		{ "",                      0, NULL },
		{ ".",                     1, NULL },
		{ "a..b",                  4, NULL },
		{ "b\xc3\xbc" "cher",      7, NULL },
		{ "127.0.0.1",             9, NULL },
		{ "::1",                   3, NULL },
		{ "0x7f.1",                6, NULL },
		{ "a b",                   3, NULL },
		{ "a/b",                   3, NULL },
		/* clang-format on */
	};
	char name[CORDON_NET_NAME_SIZE] = "";

	(void)state;
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(cases); i++) {
		int r = cordon_net_name_clean(cases[i].bytes, cases[i].n, name);

		assert_int_equal(r, cases[i].clean ? 0 : -EINVAL);
		if (cases[i].clean)
			assert_string_equal(name, cases[i].clean);
	}
}

static void allows(const char *list_text, const char *host, uint16_t port, const char *by)
{
	struct cordon_net_list list = { 0 };
	const struct cordon_net_rule *found;
	struct cordon_net_address address;
	char text[CORDON_NET_RULE_SIZE];

	assert_int_equal(cordon_net_list_parse(&list, list_text, "--net", NULL), 0);
	if (cordon_net_address_parse(host, strlen(host), &address) == 0)
		found = cordon_net_list_find_address(&list, &address, port);
	else
		found = cordon_net_list_find(&list, host, port);
	if (found)
		cordon_net_rule_text(found, text);
	if (!found != !by || (found && !cordon_streq(text, by)))
		fail_msg("%s in %s: %s", host, list_text, found ? text : "refused");
	cordon_net_list_done(&list);
}

static void a_list_allows_what_a_rule_of_it_covers(void **state)
{
	(void)state;
	allows("api.example.com", "api.example.com", 443, "api.example.com:443");
	allows("api.example.com", "api.example.com", 80, NULL);
	allows("api.example.com", "x.api.example.com", 443, NULL);
	allows("api.example.com", "example.com", 443, NULL);
	allows("*.example.com", "api.example.com", 443, "*.example.com:443");
	allows("*.example.com", "a.b.example.com", 443, "*.example.com:443");
	allows("*.example.com", "example.com", 443, NULL);
	allows("*.example.com", "evilexample.com", 443, NULL);
	allows("*.example.com", ".example.com", 443, NULL);
	allows("*.example.com, a.example.com:22/tcp ,b.example.com", "a.example.com", 22, "a.example.com:22/tcp");
	allows("*.example.com,a.example.com/tcp", "a.example.com", 443, "a.example.com:443/tcp");
	allows("a.example.com/tcp,*.example.com", "a.example.com", 443, "a.example.com:443/tcp");
	allows("localhost:5432", "localhost", 5432, "localhost:5432");
	allows("localhost:5432", "127.0.0.1", 5432, NULL);
	allows("*.com", "localhost", 443, NULL);
	allows("192.0.2.7:80", "192.0.2.7", 80, "192.0.2.7:80");
	allows("192.0.2.7:80", "::ffff:192.0.2.7", 80, "192.0.2.7:80");
	allows("[::ffff:192.0.2.7]:80", "192.0.2.7", 80, "192.0.2.7:80");
	allows("[2001:db8::1]", "2001:db8:0::1", 443, "[2001:db8::1]:443");
	allows("[2001:db8::1]", "2001:db8::2", 443, NULL);
	allows("", "api.example.com", 443, NULL);
}

static struct cordon_net_list list_of(const char *text)
{
	struct cordon_net_list list = { 0 };

	/* "host" stands for no list at all. */
	if (!cordon_streq(text, "host"))
		assert_int_equal(cordon_net_list_parse(&list, text, NULL, NULL), 0);
	return list;
}

static void narrowing_gives_what_both_lists_allow(void **state)
{
	static const struct {
		const char *a, *b, *both;
	} cases[] = {
		/* clang-format off */
		{ "host",                           "a.example.com",           "a.example.com:443" },
		{ "a.example.com",                  "host",                    "a.example.com:443" },
		{ "host",                           "",                        "" },
		{ "",                               "a.example.com",           "" },
		{ "a.example.com,b.example.com",    "b.example.com,c.org",     "b.example.com:443" },
		{ "a.example.com",                  "a.example.com:80",        "" },
		{ "a.example.com/tcp",              "a.example.com",           "a.example.com:443" },
		{ "a.example.com:22/tcp",           "a.example.com:22/tcp",    "a.example.com:22/tcp" },
		{ "*.example.com",                  "a.example.com,evil.com",  "a.example.com:443" },
		{ "a.example.com/tcp",              "*.example.com",           "a.example.com:443" },
		{ "*.example.com",                  "*.a.example.com",         "*.a.example.com:443" },
		{ "*.example.com",                  "*.com",                   "*.example.com:443" },
		{ "*.example.com",                  "example.com",             "" },
		{ "*.example.com",                  "*.example.org",           "" },
		{ "localhost:80,192.0.2.7:80",      "192.0.2.7:80",            "192.0.2.7:80" },
		{ "*.example.com,a.example.com/tcp", "a.example.com/tcp",      "a.example.com:443/tcp" },
		/* clang-format on */
	};

	(void)state;
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(cases); i++)
		for (int swap = 0; swap < 2; swap++) {
			struct cordon_net_list a = list_of(swap ? cases[i].b : cases[i].a);
			struct cordon_net_list b = list_of(swap ? cases[i].a : cases[i].b);
			struct cordon_net_list old = list_of(swap ? cases[i].b : cases[i].a);
			autobuf struct cordon_buf text = CORDON_BUF(4096);

			assert_int_equal(cordon_net_list_narrow(&a, &b, NULL), 0);
			assert_true(a.listed);
			assert_int_equal(cordon_net_list_text(&a, &text), 0);
			if (!cordon_streq(text.data ? text.data : "", cases[i].both))
				fail_msg("%s and %s: %s", cases[i].a, cases[i].b, text.data ? text.data : "");
			/* What came out lies within both. */
			assert_int_equal(cordon_net_list_within(&a, &old, NULL), 0);
			assert_int_equal(cordon_net_list_within(&a, &b, NULL), 0);
			cordon_net_list_done(&a);
			cordon_net_list_done(&b);
			cordon_net_list_done(&old);
		}
}

static void a_freer_list_is_told_from_a_narrower_one(void **state)
{
	static const struct {
		const char *inner, *outer, *freer;
	} cases[] = {
		/* clang-format off */
		{ "host",               "host",                "" },
		{ "a.example.com",      "host",                "" },
		{ "",                   "",                    "" },
		{ "host",               "",                    "reach more of the network" },
		{ "host",               "a.example.com",       "reach more of the network" },
		{ "a.example.com",      "",                    "a.example.com:443" },
		{ "a.example.com",      "*.example.com",       "" },
		{ "*.example.com",      "a.example.com",       "*.example.com:443" },
		{ "a.example.com/tcp",  "a.example.com",       "a.example.com:443/tcp" },
		{ "a.example.com",      "a.example.com/tcp",   "" },
		{ "a.example.com:80",   "*.example.com",       "a.example.com:80" },
		{ "192.0.2.7:80",       "192.0.2.8:80",        "192.0.2.7:80" },
		/* clang-format on */
	};

	(void)state;
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(cases); i++) {
		struct cordon_net_list inner = list_of(cases[i].inner), outer = list_of(cases[i].outer);
		struct cordon_error err = { 0 };
		int r = cordon_net_list_within(&inner, &outer, &err);

		assert_int_equal(r, *cases[i].freer ? -EPERM : 0);
		if (*cases[i].freer && !strstr(err.message, cases[i].freer))
			fail_msg("%s", err.message);
		cordon_net_list_done(&inner);
		cordon_net_list_done(&outer);
	}
}

static void a_list_with_one_bad_rule_stays_as_it_was(void **state)
{
	struct cordon_net_list list = list_of("a.example.com");
	struct cordon_error err;

	(void)state;
	assert_int_equal(cordon_net_list_parse(&list, "b.example.com,c..example.com", NULL, &err), -EINVAL);
	assert_int_equal(list.n, 1);
	assert_int_equal(cordon_net_list_parse(&list, "b.example.com,", NULL, &err), -EINVAL);
	assert_int_equal(list.n, 1);
	assert_int_equal(cordon_net_list_parse(&list, "A.example.com:443", NULL, &err), 0);
	assert_int_equal(list.n, 1);
	cordon_net_list_done(&list);
}

static void a_revoked_host_is_out_of_the_list(void **state)
{
	struct cordon_net_list list = list_of("a.example.com,b.example.com/tcp,*.example.org");
	struct cordon_net_rule rule;

	(void)state;
	assert_int_equal(cordon_net_rule_parse("b.example.com", 13, &rule, NULL), 0);
	assert_int_equal(cordon_net_list_remove(&list, &rule), 0);
	assert_int_equal(cordon_net_list_remove(&list, &rule), -ENOENT);
	assert_null(cordon_net_list_find(&list, "b.example.com", 443));
	assert_non_null(cordon_net_list_find(&list, "x.example.org", 443));
	assert_int_equal(list.n, 2);
	cordon_net_list_done(&list);
}

static void a_credential_is_checked_and_never_shared_by_accident(void **state)
{
	char host[] = "api.example.com", header[] = "x-api-key", from[] = "API_KEY", url[] = "API_URL", none[] = "";
	char bad_header[] = "x key", framing[] = "Content-Length", bad_name[] = "API-KEY", bad_path[] = "v1";
	char split[] = "a\r\nb: ";
	struct cordon_net_inject good = { .host = host,
					  .port = 443,
					  .header = header,
					  .prefix = none,
					  .from_env = from,
					  .base_url_env = url,
					  .path = none };
	struct cordon_net_inject bad;
	struct cordon_net_list list = { 0 }, other = list_of("api.example.com"), nothing = { 0 };
	struct cordon_error err;

	(void)state;
#define REFUSED(field, value)                                                                                          \
	do {                                                                                                           \
		bad = good;                                                                                            \
		bad.field = (value);                                                                                   \
		assert_int_equal(cordon_net_list_inject(&list, &bad, &err), -EINVAL);                                  \
	} while (0)
	REFUSED(header, bad_header);
	REFUSED(header, framing);
	REFUSED(header, none);
	REFUSED(from_env, bad_name);
	REFUSED(from_env, url);
	REFUSED(base_url_env, none);
	REFUSED(path, bad_path);
	REFUSED(prefix, split);
	assert_false(list.listed);
	assert_int_equal(cordon_net_list_inject(&list, &good, &err), 0);
	assert_int_equal(cordon_net_list_inject(&list, &good, &err), 0);
	assert_int_equal(list.n_inject, 1);
	REFUSED(header, url);
#undef REFUSED
	assert_false(cordon_net_list_is_none(&list));
	assert_int_equal(cordon_net_list_within(&list, &other, &err), -EPERM);
	assert_int_equal(cordon_net_list_within(&list, &nothing, &err), -EPERM);
	assert_int_equal(cordon_net_list_narrow(&nothing, &list, &err), 0);
	assert_true(nothing.listed && nothing.n_inject == 0);
	assert_int_equal(cordon_net_list_narrow(&list, &other, &err), 0);
	assert_int_equal(list.n_inject, 0);
	assert_true(cordon_net_list_is_none(&list));
	cordon_net_list_done(&list);
	cordon_net_list_done(&other);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_way_to_write_a_rule),
		cmocka_unit_test(a_bad_rule_is_an_error_with_its_column),
		cmocka_unit_test(a_name_from_the_wire_is_cleaned_or_refused),
		cmocka_unit_test(a_list_allows_what_a_rule_of_it_covers),
		cmocka_unit_test(narrowing_gives_what_both_lists_allow),
		cmocka_unit_test(a_freer_list_is_told_from_a_narrower_one),
		cmocka_unit_test(a_list_with_one_bad_rule_stays_as_it_was),
		cmocka_unit_test(a_revoked_host_is_out_of_the_list),
		cmocka_unit_test(a_credential_is_checked_and_never_shared_by_accident),
	};

	return cmocka_run_group_tests_name("net", tests, NULL, NULL);
}
