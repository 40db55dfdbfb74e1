/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writing HTML. The format of cordon_html() is a literal with markup, and every %s in it is escaped, both for text and
 * for a quoted attribute. Control characters, bidi controls and invalid bytes are shown as \xNN or \u{NNNN}.
 *
 *     cordon_html(page, "<td><a href=\"/session/%s\">%s</a></td>", id, name);
 */
#ifndef CORDON_PAGE_HTML_H
#define CORDON_PAGE_HTML_H

#include "base/buf.h"

#define CORDON_HTML_TEXT_MAX 2000 /* bytes of one %s; what is longer is cut, with an ellipsis */
#define CORDON_HTML_LINE_MAX 2000 /* bytes of one line of output or of a diff */

struct cordon_html {
	struct cordon_buf out;
	bool failed; /* no memory, or too long */
};

/* Takes %s, %d, %u, %zu, %lld, %llu, %.1f and %%; NULL for %s is empty. Attributes must be quoted. */
void cordon_html(struct cordon_html *html, const char *format, ...) CORDON_PRINTF(2, 3);
/* Escaped text of any length and any bytes; newlines stay. */
void cordon_html_text(struct cordon_html *html, const char *text, size_t n);
/* One component of a path or a value of a query, percent-encoded. */
void cordon_html_url(struct cordon_html *html, const char *text);
/* What a program wrote: ANSI colours become spans of a fixed set of classes, other escape sequences vanish, long lines
 * are cut and say so. The spans are closed at the end. */
void cordon_html_output(struct cordon_html *html, const char *text, size_t n);

#endif
