/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes of an HTTP head: what is let through to libmicrohttpd, and what is not. */
#include "serve/head.h"
#include "unit.h"

#define GET "GET /mcp HTTP/1.1\r\n"
#define POST "POST /mcp HTTP/1.1\r\nHost: a\r\n"

static int status_of(const char *text, size_t n)
{
	struct cordon_head head;
	int r = cordon_head_check(text, n, &head);

	return r == 0 ? 200 : r == -EAGAIN ? 0 : head.status;
}

#define CHECK(text, status) assert_int_equal(status_of((text), sizeof(text) - 1), status)

static void plain_heads_pass(void **state)
{
	static const char body[] = POST "Content-Length: 5 \r\n\r\nhello";
	static const char chunks[] = POST "Cookie: a=b\r\nTransfer-Encoding: chunked\r\n\r\n";
	struct cordon_head head;

	(void)state;
	CHECK(GET "Host: a\r\n\r\n", 200);
	CHECK(GET "host:a\r\nX-Any:\r\nX-Tab: a\tb\r\n\r\n", 200);
	CHECK("GET /a?b=c%20d HTTP/1.0\r\nHost: a\r\n\r\n", 200);
	CHECK(POST "Content-Length: 5\r\n\r\nhello", 200);
	CHECK(POST "Transfer-Encoding: Chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", 200);
	assert_int_equal(cordon_head_check(body, sizeof(body) - 1, &head), 0);
	assert_int_equal(head.size, sizeof(body) - 1 - strlen("hello"));
	assert_int_equal(head.lines, 2);
	assert_int_equal(head.body, 5);
	assert_false(head.cookie);
	assert_int_equal(cordon_head_check(chunks, sizeof(chunks) - 1, &head), 0);
	assert_int_equal(head.body, SIZE_MAX);
	assert_true(head.cookie);
}

static void what_two_readers_could_read_differently_is_refused(void **state)
{
	(void)state;
	CHECK(POST "Content-Length: 5\r\nContent-Length: 6\r\n\r\n", 400);
	CHECK(POST "Content-Length: 5\r\nContent-Length: 5\r\n\r\n", 400);
	CHECK(POST "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n", 400);
	CHECK(POST "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n", 400);
	CHECK(POST "Transfer-Encoding: xchunked\r\n\r\n", 501);
	CHECK(POST "Transfer-Encoding: gzip, chunked\r\n\r\n", 501);
	CHECK(POST "Transfer-Encoding: chunked;a\r\n\r\n", 501);
	CHECK(POST "Content-Length: +5\r\n\r\n", 400);
	CHECK(POST "Content-Length: 0x5\r\n\r\n", 400);
	CHECK(POST "Content-Length: 5, 5\r\n\r\n", 400);
	CHECK(POST "Content-Length:\r\n\r\n", 400);
	CHECK(POST "Content-Length : 5\r\n\r\n", 400);
	CHECK(POST "Content-Length: 99999999999999999999\r\n\r\n", 400);
	CHECK(POST "Host: b\r\n\r\n", 400);
	CHECK(GET "\r\n", 400);
	CHECK(GET "Host: a\n\r\n", 400);
	CHECK("GET /mcp HTTP/1.1\nHost: a\n\n", 400);
	CHECK(GET "Host: a\r\n folded\r\n\r\n", 400);
	CHECK(GET "Host: a\r\n\tfolded: b\r\n\r\n", 400);
	CHECK(GET "Host: a\0b\r\n\r\n", 400);
	CHECK(GET "Host: a\r\nX: \x01\r\n\r\n", 400);
	CHECK(GET "Host: a\r\nX\x7f: b\r\n\r\n", 400);
	CHECK(GET "Host: a\r\n: b\r\n\r\n", 400);
	CHECK(GET "Host: a\r\nno colon\r\n\r\n", 400);
	CHECK(GET "Host: a\r\r\n\r\n", 400);
	CHECK(GET " Host: a\r\n\r\n", 400);
}

static void request_lines_are_judged(void **state)
{
	(void)state;
	CHECK("\r\n" GET "Host: a\r\n\r\n", 400);
	CHECK("get /mcp HTTP/1.1\r\nHost: a\r\n\r\n", 400);
	CHECK("GET  /mcp HTTP/1.1\r\nHost: a\r\n\r\n", 400);
	CHECK("GET http://evil/mcp HTTP/1.1\r\nHost: a\r\n\r\n", 400);
	CHECK("GET * HTTP/1.1\r\nHost: a\r\n\r\n", 400);
	CHECK("CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n", 400);
	CHECK("GET /mcp%00x HTTP/1.1\r\nHost: a\r\n\r\n", 400);
	CHECK("GET /m\tcp HTTP/1.1\r\nHost: a\r\n\r\n", 400);
	CHECK("GET /mcp HTTP/1.1 \r\nHost: a\r\n\r\n", 400);
	CHECK("GET /mcp HTTP/2.0\r\nHost: a\r\n\r\n", 400);
	CHECK("GET /mcp\r\nHost: a\r\n\r\n", 400);
	CHECK("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400);
	CHECK("\x16\x03\x01\x02\x00\x01\n", 400);
}

/* Every beginning of a good head waits for more, and never passes. */
static void half_a_head_waits(void **state)
{
	static const char text[] = POST "Content-Type: application/json\r\nContent-Length: 2\r\n\r\n";

	(void)state;
	for (size_t n = 0; n < sizeof(text) - 1; n++)
		assert_int_equal(status_of(text, n), 0);
	assert_int_equal(status_of(text, sizeof(text) - 1), 200);
}

static void large_heads_are_refused(void **state)
{
	static const char line[] = "X: y\r\n";
	static char text[2 * CORDON_HEAD_MAX];
	size_t n;

	(void)state;
	memset(text, 'a', sizeof(text));
	memcpy(text, GET "X: ", sizeof(GET "X: ") - 1);
	assert_int_equal(status_of(text, CORDON_HEAD_LINE_MAX + 100), 431);
	/* Many short lines: too many, or too much altogether. */
	n = sizeof(GET "Host: a\r\n") - 1;
	memcpy(text, GET "Host: a\r\n", n);
	for (int i = 0; i < 80; i++, n += sizeof(line) - 1)
		memcpy(text + n, line, sizeof(line) - 1);
	assert_int_equal(status_of(text, n), 431);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(plain_heads_pass),
		cmocka_unit_test(what_two_readers_could_read_differently_is_refused),
		cmocka_unit_test(request_lines_are_judged),
		cmocka_unit_test(half_a_head_waits),
		cmocka_unit_test(large_heads_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
