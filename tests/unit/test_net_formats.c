/* SPDX-License-Identifier: Apache-2.0 */
/* Tests what cordon-net reads of the agent's bytes: DNS queries, ClientHellos and HTTP requests; and which addresses are
 * public. */
#include "unit.h"

#include "net/dns.h"
#include "net/hello.h"
#include "net/helper.h"

/* ---- DNS ---- */

#define HEAD "\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00"
#define QUERY(name, type) HEAD name "\x00\x00" type "\x00\x01"

static const struct {
	const char *bytes;
	size_t n;
	int result;
	const char *name;
} queries[] = {
#define Q(text, result, name)                                                                                          \
	{                                                                                                              \
		text, sizeof(text) - 1, result, name                                                                   \
	}
	/* clang-format off */
	Q(QUERY("\x01" "a\x07" "example\x03" "com", "\x01"), 0, "a.example.com"),
	Q(QUERY("\x01" "A\x07" "eXample\x03" "COM", "\x1c"), 0, "a.example.com"),
	Q(HEAD "\x00\x00\x01\x00\x01", 0, ""),				   /* the root */
	Q(QUERY("\x09" "a.example\x03" "com", "\x01"), 0, ""),		   /* a dot in a label */
	Q(QUERY("\x02" "a\x00\x07" "example\x03" "com", "\x01"), 0, ""),   /* a NUL in a label */
	Q(QUERY("\x02" "\x00" "a\x07" "example\x03" "com", "\x01"), 0, ""),
	Q(QUERY("\x02" "a \x07" "example\x03" "com", "\x01"), 0, ""),
	Q(QUERY("\x02\xc3\xa9\x03" "com", "\x01"), 0, ""),		   /* not in ASCII */
	Q(QUERY("\x03" "192\x01" "0\x01" "2\x01" "1", "\x01"), 0, ""),	   /* an address */
	Q(HEAD "\x01" "a\x03" "com\x00\x00\x01\x00\x03", 0, ""),	   /* another class */
	Q("\x12\x34\x81\x80\x00\x01\x00\x00\x00\x00\x00\x00\x01" "a\x00\x00\x01\x00\x01", -EBADMSG, NULL), /* an answer */
	Q("\x12\x34\x01", -EBADMSG, NULL),
	Q("\x12\x34\x29\x00\x00\x01\x00\x00\x00\x00\x00\x00\x01" "a\x00\x00\x01\x00\x01", -EOPNOTSUPP, NULL), /* an update */
	Q("\x12\x34\x01\x00\x00\x02\x00\x00\x00\x00\x00\x00\x01" "a\x00\x00\x01\x00\x01", -EINVAL, NULL), /* two questions */
	Q("\x12\x34\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00", -EINVAL, NULL),
	Q(HEAD "\xc0\x0c\x00\x01\x00\x01", -EINVAL, NULL),		   /* a pointer to itself */
	Q(HEAD "\x3f" "a\x00\x00\x01\x00\x01", -EINVAL, NULL),		   /* a label past the end */
	Q(HEAD "\x01" "a\x00\x00\x01", -EINVAL, NULL),
	/* clang-format on */
};

static void test_queries_are_read_or_refused(void **state)
{
	(void)state;
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(queries); i++) {
		struct cordon_dns_query query = { 0 };
		int r = cordon_dns_parse((const uint8_t *)queries[i].bytes, queries[i].n, &query);

		assert_int_equal(r, queries[i].result);
		if (r == 0)
			assert_string_equal(query.name, queries[i].name);
		if (r != -EBADMSG)
			assert_int_equal(query.id, 0x1234);
	}
}

static void test_an_answer_repeats_the_question_and_has_the_address(void **state)
{
	static const char text[] = QUERY("\x01"
					 "a\x07"
					 "eXample\x03"
					 "com",
					 "\x01");
	const struct cordon_net_address address = { { [10] = 0xff, [11] = 0xff, 192, 0, 2, 10 } };
	uint8_t answer[CORDON_DNS_ANSWER_MAX];
	struct cordon_dns_query query;
	size_t n;

	(void)state;
	assert_int_equal(cordon_dns_parse((const uint8_t *)text, sizeof(text) - 1, &query), 0);
	n = cordon_dns_answer((const uint8_t *)text, &query, CORDON_DNS_OK, &address, answer);
	assert_int_equal(n, sizeof(text) - 1 + 16);
	assert_memory_equal(answer, "\x12\x34\x81\x80\x00\x01\x00\x01\x00\x00\x00\x00", 12);
	assert_memory_equal(answer + 12, text + 12, sizeof(text) - 1 - 12);
	assert_memory_equal(answer + n - 4, "\xc0\x00\x02\x0a", 4);
	n = cordon_dns_answer((const uint8_t *)text, &query, CORDON_DNS_NO_NAME, NULL, answer);
	assert_int_equal(n, sizeof(text) - 1);
	assert_int_equal(answer[3], 0x83);
}

static void test_the_longest_name_is_answered(void **state)
{
	static const uint8_t end[] = { 0, 0, 0x1c, 0, 1 };
	uint8_t text[12 + 255 + 4] = HEAD, answer[CORDON_DNS_ANSWER_MAX];
	struct cordon_dns_query query;
	size_t at = 12;

	(void)state;
	for (int i = 0; i < 4; i++) {
		size_t n = i < 3 ? 63 : 61;

		text[at++] = (uint8_t)n;
		memset(text + at, 'a', n);
		at += n;
	}
	memcpy(text + at, end, sizeof(end));
	assert_int_equal(cordon_dns_parse(text, at + sizeof(end), &query), 0);
	assert_int_equal(strlen(query.name), 253);
	assert_int_equal(cordon_dns_answer(text, &query, CORDON_DNS_OK, &(struct cordon_net_address){ 0 }, answer),
			 12 + 259 + 28);
}

/* ---- ClientHello ---- */

struct hello {
	uint8_t bytes[4096];
	size_t n;
};

static void put(struct hello *hello, const void *bytes, size_t n)
{
	memcpy(hello->bytes + hello->n, bytes, n);
	hello->n += n;
}

static void put_number(struct hello *hello, size_t value, size_t bytes)
{
	while (bytes-- > 0)
		hello->bytes[hello->n++] = (uint8_t)(value >> (8 * bytes));
}

/* The message without its record: one server name (NULL: none), `twice` two extensions with it. */
static void make(struct hello *ret, const char *name, size_t len, bool twice)
{
	struct hello extensions = { .n = 0 };

	put(&extensions, "\x00\x0a\x00\x04\x00\x02\x00\x1d", 8);
	for (int i = 0; name && i < 1 + twice; i++) {
		put_number(&extensions, 0, 2);
		put_number(&extensions, len + 5, 2);
		put_number(&extensions, len + 3, 2);
		put_number(&extensions, 0, 1);
		put_number(&extensions, len, 2);
		put(&extensions, name, len);
	}
	*ret = (struct hello){ .n = 0 };
	put_number(ret, 1, 1);
	put_number(ret, 2 + 32 + 1 + 4 + 2 + 2 + extensions.n, 3);
	put_number(ret, 0x0303, 2);
	ret->n += 32;
	put_number(ret, 0, 1);
	put(ret, "\x00\x02\x13\x01", 4);
	put(ret, "\x01\x00", 2);
	put_number(ret, extensions.n, 2);
	put(ret, extensions.bytes, extensions.n);
}

/* Cuts a message into records of `size` bytes. */
static void cut(const struct hello *message, size_t size, struct hello *ret)
{
	*ret = (struct hello){ .n = 0 };
	for (size_t at = 0; at < message->n; at += size) {
		size_t n = message->n - at < size ? message->n - at : size;

		put(ret, "\x16\x03\x01", 3);
		put_number(ret, n, 2);
		put(ret, message->bytes + at, n);
	}
}

static void test_a_server_name_is_found_however_the_hello_is_cut(void **state)
{
	struct hello message, stream;
	char name[CORDON_NET_NAME_SIZE];

	(void)state;
	make(&message, "A.Example.com", 13, false);
	for (size_t size = 1; size <= message.n; size++) {
		cut(&message, size, &stream);
		for (size_t n = 0; n < stream.n; n++)
			assert_int_equal(cordon_hello_name(stream.bytes, n, name), 0);
		assert_int_equal(cordon_hello_name(stream.bytes, stream.n, name), stream.n);
		stream.bytes[stream.n] = 0x17; /* what follows is not counted */
		assert_int_equal(cordon_hello_name(stream.bytes, stream.n + 1, name), stream.n);
		assert_string_equal(name, "a.example.com");
	}
}

static int result_of(const char *name, size_t len, bool twice)
{
	struct hello message, stream;
	char found[CORDON_NET_NAME_SIZE];

	make(&message, name, len, twice);
	cut(&message, message.n, &stream);
	return (int)cordon_hello_name(stream.bytes, stream.n, found);
}

static void test_a_hello_that_could_be_read_in_two_ways_is_refused(void **state)
{
	struct hello message, stream;
	char name[CORDON_NET_NAME_SIZE];

	(void)state;
	assert_int_equal(result_of(NULL, 0, false), -ENOENT);
	assert_int_equal(result_of("", 0, false), -EBADMSG);
	assert_int_equal(result_of("a.example.com", 13, true), -EBADMSG);
	assert_int_equal(result_of("a.example.com.", 14, false), -EBADMSG);
	assert_int_equal(result_of("a.example.com\0", 14, false), -EBADMSG);
	assert_int_equal(result_of("a.example.com\0.b.example.com", 28, false), -EBADMSG);
	assert_int_equal(result_of("192.0.2.1", 9, false), -EBADMSG);
	assert_int_equal(result_of("::1", 3, false), -EBADMSG);
	assert_int_equal(result_of("b\xc3\xbc"
				   "cher.example.com",
				   17, false),
			 -EBADMSG);
	make(&message, "a.example.com", 13, false);
	put(&message, "\x01\x00\x00\x00", 4); /* another message in the same record */
	cut(&message, message.n, &stream);
	assert_int_equal(cordon_hello_name(stream.bytes, stream.n, name), -EBADMSG);
	make(&message, "a.example.com", 13, false);
	memcpy(message.bytes + 4 + 2 + 32 + 1 + 4 + 2 + 2, "\xfe\x0d", 2); /* its first extension is an encrypted hello */
	cut(&message, message.n, &stream);
	assert_int_equal(cordon_hello_name(stream.bytes, stream.n, name), -EPROTONOSUPPORT);
	make(&message, "a.example.com", 13, false);
	message.bytes[3]++; /* a byte behind the extensions */
	message.n++;
	cut(&message, message.n, &stream);
	assert_int_equal(cordon_hello_name(stream.bytes, stream.n, name), -EBADMSG);
	assert_int_equal(cordon_hello_name((const uint8_t *)"\x16\x03\x01\x00\x00", 5, name), -EBADMSG);
	assert_int_equal(cordon_hello_name((const uint8_t *)"\x16\x03\x01\xff\xff", 5, name), -EBADMSG);
	assert_int_equal(cordon_hello_name((const uint8_t *)"\x17", 1, name), -EBADMSG);
	assert_int_equal(cordon_hello_name((const uint8_t *)"\x16\x03\x01\x00\x04\x02\x00\x00\x00", 9, name), -EBADMSG);
	/* A megabyte is announced. */
	assert_int_equal(cordon_hello_name((const uint8_t *)"\x16\x03\x01\x00\x04\x01\x10\x00\x00", 9, name), -EMSGSIZE);
}

/* ---- HTTP ---- */

#define OK_HOST "Host: a.example.com\r\n"

/* All of it is right (its length), or an error comes when all that is right before is taken away. */
static const struct {
	const char *text;
	int result; /* 1: all is right; 0: more is needed */
} requests[] = {
	/* clang-format off */
	{ "GET / HTTP/1.1\r\n" OK_HOST "\r\n", 1 },
	{ "GET /x?y HTTP/1.0\r\nhost:a.EXAMPLE.com:80\r\nA: b\r\n\r\n", 1 },
	{ "OPTIONS * HTTP/1.1\r\n" OK_HOST "\r\n", 1 },
	{ "GET / HTTP/1.1\r\n" OK_HOST "\r\nGET /2 HTTP/1.1\r\n" OK_HOST "\r\n", 1 },
	{ "POST / HTTP/1.1\r\n" OK_HOST "Content-Length: 3\r\n\r\nabcGET / HTTP/1.1\r\n" OK_HOST "\r\n", 1 },
	{ "POST / HTTP/1.1\r\n" OK_HOST "Transfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n0\r\nT: r\r\n\r\nGET / HTTP/1.1\r\n" OK_HOST "\r\n", 1 },
	{ "GET / HTTP/1.1\r\n" OK_HOST, 0 },
	{ "GET / HTTP/1.1\r\nHost: b.example.com\r\n\r\n", -EXDEV },
	{ "GET / HTTP/1.1\r\nHost: a.example.com:81\r\n\r\n", -EXDEV },
	{ "GET / HTTP/1.1\r\nHost: a.example.com.\r\n\r\n", -EXDEV },
	{ "GET / HTTP/1.1\r\nHost: a.example.com@b.example.com\r\n\r\n", -EXDEV },
	{ "GET / HTTP/1.1\r\n" OK_HOST "Host: b.example.com\r\n\r\n", -EBADMSG },
	{ "GET / HTTP/1.1\r\n" OK_HOST OK_HOST "\r\n", -EBADMSG },
	{ "GET / HTTP/1.1\r\n\r\n", -EBADMSG },
	{ "GET http://b.example.com/ HTTP/1.1\r\n" OK_HOST "\r\n", -EBADMSG },
	{ "CONNECT b.example.com:443 HTTP/1.1\r\n" OK_HOST "\r\n", -EBADMSG },
	{ "CONNECT / HTTP/1.1\r\n" OK_HOST "\r\n", -EBADMSG },
	{ "GET /\r\n" OK_HOST "\r\n", -EBADMSG },
	{ "GET / HTTP/2.0\r\n" OK_HOST "\r\n", -EBADMSG },
	{ "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", -EBADMSG },
	{ "GET / a HTTP/1.1\r\n" OK_HOST "\r\n", -EBADMSG },
	{ "GET / HTTP/1.1\n" OK_HOST "\r\n", -EBADMSG },
	{ "GET / HTTP/1.1\r\nHost : a.example.com\r\n\r\n", -EBADMSG },
	{ "GET / HTTP/1.1\r\nX: y\r\n z\r\n" OK_HOST "\r\n", -EBADMSG },
	{ "GET / HTTP/1.1\r\n Host: b.example.com\r\n" OK_HOST "\r\n", -EBADMSG },
	{ "GET / HTTP/1.1\r\n" OK_HOST "X: a\x01\r\n\r\n", -EBADMSG },
	{ "POST / HTTP/1.1\r\n" OK_HOST "Content-Length: 3\r\nContent-Length: 3\r\n\r\nabc", -EBADMSG },
	{ "POST / HTTP/1.1\r\n" OK_HOST "Content-Length: +3\r\n\r\nabc", -EBADMSG },
	{ "POST / HTTP/1.1\r\n" OK_HOST "Content-Length: 99999999999999999999\r\n\r\nabc", -EBADMSG },
	{ "POST / HTTP/1.1\r\n" OK_HOST "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n", -EBADMSG },
	{ "POST / HTTP/1.0\r\n" OK_HOST "Transfer-Encoding: chunked\r\n\r\n", -EBADMSG },
	{ "POST / HTTP/1.1\r\n" OK_HOST "Transfer-Encoding: gzip, chunked\r\n\r\n", -EBADMSG },
	{ "POST / HTTP/1.1\r\n" OK_HOST "Transfer-Encoding: chunked\r\n\r\n-1\r\n", -EBADMSG },
	{ "POST / HTTP/1.1\r\n" OK_HOST "Transfer-Encoding: chunked\r\n\r\n1\r\nabc", -EBADMSG },
	{ "POST / HTTP/1.1\r\n" OK_HOST "Transfer-Encoding: chunked\r\n\r\n1\n", -EBADMSG },
	{ "GET / HTTP/1.1\r\n" OK_HOST "\r\nGET / HTTP/1.1\r\nHost: b.example.com\r\n\r\n", -EXDEV },
	/* clang-format on */
};

/* Feeds the text in pieces of `size` bytes, as a stream brings them. */
static int feed(const char *text, size_t size)
{
	struct cordon_http http = { .name = "a.example.com", .port = 80 };
	char bytes[1024];
	size_t have = 0, n = strlen(text);

	for (size_t at = 0; at < n; at += size) {
		size_t more = n - at < size ? n - at : size;
		ssize_t r = 0;

		memcpy(bytes + have, text + at, more);
		have += more;
		while (have && (r = cordon_http_look(&http, bytes, have)) > 0) {
			have -= (size_t)r;
			memmove(bytes, bytes + r, have);
		}
		if (r < 0)
			return (int)r;
	}
	return have == 0;
}

static void test_requests_name_their_host_in_one_way_only(void **state)
{
	(void)state;
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(requests); i++)
		for (size_t size = 1; size <= strlen(requests[i].text); size++)
			assert_int_equal(feed(requests[i].text, size), requests[i].result);
}

static void test_a_head_has_an_end(void **state)
{
	static char text[CORDON_HTTP_HEAD_MAX + 64] = "GET / HTTP/1.1\r\nX: ";
	struct cordon_http http = { .name = "a.example.com", .port = 80 };

	(void)state;
	memset(text + strlen(text), 'x', sizeof(text) - strlen(text));
	assert_int_equal(cordon_http_look(&http, text, CORDON_HTTP_HEAD_MAX - 1), 0);
	assert_int_equal(cordon_http_look(&http, text, sizeof(text)), -EMSGSIZE);
}

/* ---- addresses ---- */

static void test_addresses_of_machines_nobody_meant_are_not_public(void **state)
{
	static const char *const public[] = { "192.0.2.1",   "198.51.100.7", "203.0.113.9",
					      "8.8.8.8",     "172.32.0.1",   "100.128.0.1",
					      "2001:db8::1", "2600::1",	     "64:ff9b::808:808" };
	static const char *const not_public[] = {
		"0.0.0.0",
		"10.1.2.3",
		"100.64.0.1",
		"100.100.100.200",
		"127.0.0.1",
		"127.255.255.255",
		"169.254.169.254",
		"172.16.0.1",
		"172.31.0.1",
		"192.0.0.192",
		"192.168.1.1",
		"198.18.0.1",
		"198.19.255.255",
		"168.63.129.16",
		"224.0.0.1",
		"255.255.255.255",
		"::",
		"::1",
		"::ffff:127.0.0.1",
		"::ffff:10.0.0.1",
		"::127.0.0.1",
		"fe80::1",
		"fd00:ec2::254",
		"ff02::1",
		"2002:7f00:1::",
		"2001::1",
		"2001:2::1",
		"64:ff9b::7f00:1",
		"64:ff9b:1::1",
	};
	struct cordon_net_address address;

	(void)state;
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(public); i++) {
		assert_int_equal(cordon_net_address_parse(public[i], strlen(public[i]), &address), 0);
		assert_true(net_address_is_public(&address));
	}
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(not_public); i++) {
		assert_int_equal(cordon_net_address_parse(not_public[i], strlen(not_public[i]), &address), 0);
		assert_false(net_address_is_public(&address));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_queries_are_read_or_refused),
		cmocka_unit_test(test_an_answer_repeats_the_question_and_has_the_address),
		cmocka_unit_test(test_the_longest_name_is_answered),
		cmocka_unit_test(test_a_server_name_is_found_however_the_hello_is_cut),
		cmocka_unit_test(test_a_hello_that_could_be_read_in_two_ways_is_refused),
		cmocka_unit_test(test_requests_name_their_host_in_one_way_only),
		cmocka_unit_test(test_a_head_has_an_end),
		cmocka_unit_test(test_addresses_of_machines_nobody_meant_are_not_public),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
