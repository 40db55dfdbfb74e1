/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The head of an HTTP request as bytes, before libmicrohttpd reads it. That library normalises bare line feeds, glues
 * folded lines to a name, cuts values at a NUL, and takes two lengths; a front that reads such a head otherwise could
 * be made to see other requests than we do. So what is not plainly written is refused here. Pure: it reads bytes and
 * makes no call.
 */
#ifndef CORDON_SERVE_HEAD_H
#define CORDON_SERVE_HEAD_H

#include "base/util.h"

#define CORDON_HEAD_MAX 16384
#define CORDON_HEAD_LINE_MAX 8192
#define CORDON_HEAD_LINES_MAX 64

struct cordon_head {
	size_t size;	   /* bytes up to and including the empty line */
	size_t lines;	   /* headers */
	bool cookie;	   /* there is one, of which libmicrohttpd makes a copy */
	size_t body;	   /* bytes that are to come, SIZE_MAX if the head does not have the length */
	const char *query; /* what stands behind the question mark of the target, or NULL */
	size_t query_size;
	int status; /* of a head that is refused */
	const char *why;
};

/*
 * Returns 0 for a head that is complete and allowed; -EAGAIN when more bytes are needed; -EINVAL with status and why.
 * Allowed are: a method of capital letters, a path that begins with a slash and has no control characters, HTTP/1.0 or
 * 1.1, lines that end in CRLF, names of token characters directly followed by a colon, values without control
 * characters but tabs, exactly one Host, and either one Content-Length of digits or `Transfer-Encoding: chunked`, or
 * neither.
 */
int cordon_head_check(const char *bytes, size_t n, struct cordon_head *ret_head);

#endif
