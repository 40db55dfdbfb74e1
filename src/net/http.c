/* SPDX-License-Identifier: Apache-2.0 */
/* Follows the requests of an HTTP/1 client through its stream. */
#include <strings.h>

#include "net/http.h"

#define LINE_MAX_BYTES 4096 /* of a chunk's size, or of a line behind the last chunk */

static bool is_token(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       (c != '\0' && strchr("!#$%&'*+-.^_`|~", c));
}

static bool is_text(char c)
{
	return c == '\t' || ((unsigned char)c >= 0x20 && c != 0x7f);
}

/* The length of a line with its CR LF, 0 when it is not complete, -EBADMSG when it ends in any other way. */
static ssize_t line_length(const char *bytes, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (is_text(bytes[i]))
			continue;
		if (bytes[i] != '\r')
			return -EBADMSG;
		if (i + 1 == n)
			return 0;
		return bytes[i + 1] == '\n' ? (ssize_t)(i + 2) : -EBADMSG;
	}
	return 0;
}

/* The length of a complete head with its empty line, 0 when more bytes are needed, -EMSGSIZE, or -EBADMSG when it holds
 * a character that no head has. */
static ssize_t http_head_length(const char *bytes, size_t n)
{
	size_t at = 0;

	for (;;) {
		ssize_t line = line_length(bytes + at, n - at);

		if (line < 0)
			return line;
		if (line == 0 || at + (size_t)line > CORDON_HTTP_HEAD_MAX)
			return line != 0 || n >= CORDON_HTTP_HEAD_MAX ? -EMSGSIZE : 0;
		at += (size_t)line;
		if (line == 2)
			return (ssize_t)at;
	}
}

int cordon_http_field_next(const char **at, const char *end, struct cordon_http_field *ret_field)
{
	struct cordon_http_field field = { .name = *at };
	const char *p = *at, *stop = p;

	while (stop < end && *stop != '\r')
		stop++;
	if (stop == p)
		return 0;
	while (p < stop && is_token(*p))
		p++;
	field.name_len = (size_t)(p - field.name);
	/* A blank before the colon, and a line that continues the one before, are read in different ways by different
	 * servers. */
	if (!field.name_len || p == stop || *p != ':')
		return -EBADMSG;
	*at = stop + 2 < end ? stop + 2 : end;
	for (p++; p < stop && (*p == ' ' || *p == '\t'); p++)
		;
	while (stop > p && (stop[-1] == ' ' || stop[-1] == '\t'))
		stop--;
	field.value = p;
	field.value_len = (size_t)(stop - p);
	*ret_field = field;
	return 1;
}

bool cordon_http_field_is(const struct cordon_http_field *field, const char *name)
{
	return field->name_len == strlen(name) && strncasecmp(field->name, name, field->name_len) == 0;
}

static bool value_is(const struct cordon_http_field *field, const char *value)
{
	return field->value_len == strlen(value) && strncasecmp(field->value, value, field->value_len) == 0;
}

static int parse_number(const char *s, size_t n, unsigned int base, uint64_t *ret)
{
	uint64_t value = 0;

	if (n == 0 || n > 15)
		return -EBADMSG;
	for (size_t i = 0; i < n; i++) {
		unsigned int digit = s[i] >= '0' && s[i] <= '9'			? (unsigned int)(s[i] - '0')
				     : base == 16 && s[i] >= 'a' && s[i] <= 'f' ? (unsigned int)(s[i] - 'a' + 10)
				     : base == 16 && s[i] >= 'A' && s[i] <= 'F' ? (unsigned int)(s[i] - 'A' + 10)
										: 16u;

		if (digit >= base)
			return -EBADMSG;
		value = value * base + digit;
	}
	*ret = value;
	return 0;
}

/* "METHOD /path HTTP/1.x". An absolute URI would name another host, and CONNECT asks for a tunnel. */
static int judge_request_line(const char *line, size_t n)
{
	static const char versions[][10] = { " HTTP/1.1", " HTTP/1.0" };
	size_t at = 0;

	while (at < n && is_token(line[at]))
		at++;
	if (at == 0 || at == n || line[at] != ' ' || (at == 7 && memcmp(line, "CONNECT", 7) == 0))
		return -EBADMSG;
	line += at + 1;
	n -= at + 1;
	if (n < 10 || (memcmp(line + n - 9, versions[0], 9) != 0 && memcmp(line + n - 9, versions[1], 9) != 0))
		return -EBADMSG;
	n -= 9;
	if (memchr(line, ' ', n) || memchr(line, '\t', n))
		return -EBADMSG;
	return line[0] == '/' || (n == 1 && line[0] == '*') ? 0 : -EBADMSG;
}

static int judge_host(const struct cordon_http *http, const struct cordon_http_field *field)
{
	const char *colon = memchr(field->value, ':', field->value_len);
	size_t n = colon ? (size_t)(colon - field->value) : field->value_len;
	char name[CORDON_NET_NAME_SIZE];
	uint64_t port = http->port;

	if (colon && parse_number(colon + 1, field->value_len - n - 1, 10, &port) < 0)
		return -EBADMSG;
	if (!http->name)
		return 0;
	if (cordon_net_name_clean(field->value, n, name) < 0 || !cordon_streq(name, http->name) || port != http->port)
		return -EXDEV;
	return 0;
}

struct framing {
	bool host, length, chunked, upgrades, websocket;
	uint64_t bytes;
};

static int judge_field(const struct cordon_http *http, const struct cordon_http_field *field, struct framing *framing)
{
	int r = 0;

	if (cordon_http_field_is(field, "Host")) {
		r = framing->host ? -EBADMSG : judge_host(http, field);
		framing->host = true;
	} else if (cordon_http_field_is(field, "Content-Length")) {
		r = framing->length ? -EBADMSG : parse_number(field->value, field->value_len, 10, &framing->bytes);
		framing->length = true;
	} else if (cordon_http_field_is(field, "Transfer-Encoding")) {
		r = framing->chunked || !value_is(field, "chunked") ? -EBADMSG : 0;
		framing->chunked = true;
	} else if (cordon_http_field_is(field, "Upgrade")) {
		framing->websocket = !framing->upgrades && value_is(field, "websocket");
		framing->upgrades = true;
	}
	return r;
}

/* Whether the request line ends with HTTP/1.0; it was judged before. */
static bool is_old(const char *head, size_t n)
{
	return ((const char *)memchr(head, '\r', n))[-1] == '0';
}

static int judge_head(struct cordon_http *http, const char *head, size_t n)
{
	const char *end = head + n, *at = head + line_length(head, n);
	struct framing framing = { 0 };
	struct cordon_http_field field;
	int r = judge_request_line(head, (size_t)(at - head) - 2);

	while (r == 0 && (r = cordon_http_field_next(&at, end, &field)) == 1)
		r = judge_field(http, &field, &framing);
	if (r < 0)
		return r;
	/* A server of the older version does not know chunks, and would take them for requests. */
	if (!framing.host || (framing.chunked && (framing.length || is_old(head, n))))
		return -EBADMSG;
	http->websocket = framing.websocket && !framing.chunked && !framing.bytes;
	http->state = framing.chunked ? CORDON_HTTP_CHUNK_SIZE : framing.bytes ? CORDON_HTTP_BODY : CORDON_HTTP_HEAD;
	http->left = framing.bytes;
	http->requests++;
	return 0;
}

static int judge_chunk_size(struct cordon_http *http, const char *line, size_t n)
{
	size_t digits = 0;
	uint64_t size;

	while (digits < n && line[digits] != ';')
		digits++;
	if (parse_number(line, digits, 16, &size) < 0)
		return -EBADMSG;
	http->left = size;
	http->state = size ? CORDON_HTTP_CHUNK : CORDON_HTTP_TRAILER;
	return 0;
}

ssize_t cordon_http_step(struct cordon_http *http, const char *bytes, size_t n)
{
	ssize_t len;
	int r = 0;

	switch (http->state) {
	case CORDON_HTTP_HEAD:
		len = http_head_length(bytes, n);
		if (len > 0)
			r = judge_head(http, bytes, (size_t)len);
		return r < 0 ? r : len;
	case CORDON_HTTP_BODY:
	case CORDON_HTTP_CHUNK:
		len = http->left < n ? (ssize_t)http->left : (ssize_t)n;
		http->left -= (uint64_t)len;
		if (!http->left)
			http->state = http->state == CORDON_HTTP_BODY ? CORDON_HTTP_HEAD : CORDON_HTTP_CHUNK_END;
		return len;
	case CORDON_HTTP_CHUNK_SIZE:
	case CORDON_HTTP_CHUNK_END:
	case CORDON_HTTP_TRAILER:
		break;
	}
	if (http->state == CORDON_HTTP_CHUNK_END && bytes[0] != '\r')
		return -EBADMSG;
	len = line_length(bytes, n);
	if (len <= 0)
		return len == 0 && n > LINE_MAX_BYTES ? -EMSGSIZE : len;
	if (http->state == CORDON_HTTP_CHUNK_SIZE)
		r = judge_chunk_size(http, bytes, (size_t)len - 2);
	else if (http->state == CORDON_HTTP_CHUNK_END)
		http->state = CORDON_HTTP_CHUNK_SIZE;
	else if (len == 2)
		http->state = CORDON_HTTP_HEAD;
	return r < 0 ? r : len;
}

ssize_t cordon_http_look(struct cordon_http *http, const char *bytes, size_t n)
{
	size_t at = 0;

	while (at < n) {
		ssize_t len = cordon_http_step(http, bytes + at, n - at);

		/* What was right before is sent on; the caller comes back with the rest. */
		if (len < 0)
			return at > 0 ? (ssize_t)at : len;
		if (len == 0)
			break;
		at += (size_t)len;
		if (http->websocket)
			break; /* what follows depends on the server's answer */
	}
	return (ssize_t)at;
}
