/* SPDX-License-Identifier: Apache-2.0 */
/* Judges the bytes of a request's head. */
#include "serve/head.h"

#include <strings.h>

/* What must not come twice, or not together. */
struct seen {
	unsigned int hosts, lengths, encodings;
};

static int refuse(struct cordon_head *head, int status, const char *why)
{
	head->status = status;
	head->why = why;
	return -EINVAL;
}

static bool is_token(unsigned char c)
{
	return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
	       (c && strchr("!#$%&'*+-.^_`|~", c));
}

static bool is_called(const char *line, size_t n, const char *name)
{
	return n == strlen(name) && strncasecmp(line, name, n) == 0;
}

static int check_request_line(const char *line, size_t n, struct cordon_head *head)
{
	size_t method = 0, at;

	while (method < n && line[method] >= 'A' && line[method] <= 'Z')
		method++;
	if (!method || method > 16 || method == n || line[method] != ' ')
		return refuse(head, 400, "the method is not one of HTTP");
	at = method + 1;
	if (at == n || line[at] != '/')
		return refuse(head, 400, "the target is no path");
	for (; at < n && line[at] != ' '; at++) {
		if ((unsigned char)line[at] < 0x21 || (unsigned char)line[at] > 0x7e)
			return refuse(head, 400, "the path has a character that must be encoded");
		if (line[at] == '%' && at + 2 < n && line[at + 1] == '0' && line[at + 2] == '0')
			return refuse(head, 400, "the path has a NUL");
		if (line[at] == '?' && !head->query)
			head->query = line + at + 1;
	}
	if (head->query)
		head->query_size = (size_t)(line + at - head->query);
	if (n - at != strlen(" HTTP/1.1") ||
	    (memcmp(line + at, " HTTP/1.1", n - at) != 0 && memcmp(line + at, " HTTP/1.0", n - at) != 0))
		return refuse(head, 400, "the version is neither HTTP/1.1 nor HTTP/1.0");
	return 0;
}

/* A length of digits only: some readers take "+5", "0x5" or "5, 5" for a number. */
static bool is_length(const char *value, size_t n)
{
	if (!n || n > 18)
		return false;
	for (size_t i = 0; i < n; i++)
		if (value[i] < '0' || value[i] > '9')
			return false;
	return true;
}

static int check_header(const char *line, size_t n, struct seen *seen, struct cordon_head *head)
{
	size_t name = 0, begin, end = n;

	while (name < n && is_token((unsigned char)line[name]))
		name++;
	if (!name || name == n || line[name] != ':')
		return refuse(head, 400, "a header has no name of allowed characters directly before its colon");
	for (size_t i = name + 1; i < n; i++)
		if (((unsigned char)line[i] < 0x20 && line[i] != '\t') || line[i] == 0x7f)
			return refuse(head, 400, "a header has a control character");
	begin = name + 1;
	while (begin < end && (line[begin] == ' ' || line[begin] == '\t'))
		begin++;
	while (end > begin && (line[end - 1] == ' ' || line[end - 1] == '\t'))
		end--;
	if (is_called(line, name, "Host"))
		seen->hosts++;
	if (is_called(line, name, "Cookie"))
		head->cookie = true;
	if (is_called(line, name, "Content-Length")) {
		seen->lengths++;
		if (!is_length(line + begin, end - begin))
			return refuse(head, 400, "Content-Length is no number");
		head->body = 0;
		for (size_t i = begin; i < end; i++)
			head->body = 10 * head->body + (size_t)(line[i] - '0');
	}
	if (is_called(line, name, "Transfer-Encoding")) {
		seen->encodings++;
		head->body = SIZE_MAX;
		if (!is_called(line + begin, end - begin, "chunked"))
			return refuse(head, 501, "the only transfer coding is chunked");
	}
	return 0;
}

static int check_seen(const struct seen *seen, struct cordon_head *head)
{
	if (seen->hosts != 1)
		return refuse(head, 400, "there must be one Host");
	if (seen->lengths > 1 || seen->encodings > 1 || (seen->lengths && seen->encodings))
		return refuse(head, 400, "the length of the body is given twice");
	return 0;
}

int cordon_head_check(const char *bytes, size_t n, struct cordon_head *ret_head)
{
	struct seen seen = { 0 };
	size_t at = 0;

	*ret_head = (struct cordon_head){ 0 };
	for (size_t line = 0;; line++) {
		const char *end = memchr(bytes + at, '\n', n - at);
		size_t size = end ? (size_t)(end - (bytes + at)) : n - at;
		int r;

		if (size > CORDON_HEAD_LINE_MAX || at + size >= CORDON_HEAD_MAX || line > CORDON_HEAD_LINES_MAX)
			return refuse(ret_head, 431, "the head is too large");
		if (memchr(bytes + at, '\0', size))
			return refuse(ret_head, 400, "the head has a NUL");
		if (!end)
			return -EAGAIN;
		if (!size || bytes[at + size - 1] != '\r')
			return refuse(ret_head, 400, "a line does not end in CRLF");
		size--;
		if (memchr(bytes + at, '\r', size))
			return refuse(ret_head, 400, "a line has a carriage return in it");
		if (line == 0)
			r = check_request_line(bytes + at, size, ret_head);
		else if (size)
			r = check_header(bytes + at, size, &seen, ret_head);
		else
			r = check_seen(&seen, ret_head);
		if (r < 0)
			return r;
		at += size + 2;
		if (line && !size) {
			ret_head->size = at;
			ret_head->lines = line - 1;
			return 0;
		}
	}
}
