/* SPDX-License-Identifier: Apache-2.0 */
/* Writing HTML: escaping, and a small printf whose strings are always escaped. */
#include "page/html.h"

#include <stdio.h>

#include "base/text.h"

static void add(struct cordon_html *html, const char *bytes, size_t n)
{
	if (cordon_buf_add(&html->out, bytes, n) < 0)
		html->failed = true;
}

static void adds(struct cordon_html *html, const char *text)
{
	add(html, text, strlen(text));
}

/* Text that is safe for a terminal already: only the characters of markup are left. */
static void add_markup_escaped(struct cordon_html *html, const char *text, size_t n)
{
	size_t plain = 0;

	for (size_t i = 0; i < n; i++) {
		const char *entity = text[i] == '&'    ? "&amp;"
				     : text[i] == '<'  ? "&lt;"
				     : text[i] == '>'  ? "&gt;"
				     : text[i] == '"'  ? "&quot;"
				     : text[i] == '\'' ? "&#39;"
						       : NULL;

		if (!entity)
			continue;
		add(html, text + plain, i - plain);
		adds(html, entity);
		plain = i + 1;
	}
	add(html, text + plain, n - plain);
}

void cordon_html_text(struct cordon_html *html, const char *text, size_t n)
{
	autobuf struct cordon_buf shown = CORDON_BUF(html->out.max);

	if (cordon_text_escape_lines(&shown, text, n) < 0)
		html->failed = true;
	else if (shown.len)
		add_markup_escaped(html, shown.data, shown.len);
}

/* Cuts at a whole character. */
static size_t cut(const char *text, size_t n, size_t max)
{
	if (n <= max)
		return n;
	while (max > 0 && ((unsigned char)text[max] & 0xc0) == 0x80)
		max--;
	return max;
}

static void add_string(struct cordon_html *html, const char *text)
{
	size_t n = text ? strlen(text) : 0, shown = text ? cut(text, n, CORDON_HTML_TEXT_MAX) : 0;

	if (shown)
		cordon_html_text(html, text, shown);
	if (shown < n)
		adds(html, "\u2026");
}

/* Returns the length of a conversion that begins at `at`, behind the percent sign. */
static size_t add_conversion(struct cordon_html *html, const char *at, va_list *args)
{
	char digits[64];
	size_t n = 1;

	if (strncmp(at, "s", 1) == 0) {
		add_string(html, va_arg(*args, const char *));
		return n;
	}
	if (strncmp(at, "d", 1) == 0) {
		snprintf(digits, sizeof(digits), "%d", va_arg(*args, int));
	} else if (strncmp(at, "u", 1) == 0) {
		snprintf(digits, sizeof(digits), "%u", va_arg(*args, unsigned int));
	} else if (strncmp(at, "zu", 2) == 0) {
		snprintf(digits, sizeof(digits), "%zu", va_arg(*args, size_t));
		n = 2;
	} else if (strncmp(at, "lld", 3) == 0) {
		snprintf(digits, sizeof(digits), "%lld", va_arg(*args, long long));
		n = 3;
	} else if (strncmp(at, "llu", 3) == 0) {
		snprintf(digits, sizeof(digits), "%llu", va_arg(*args, unsigned long long));
		n = 3;
	} else if (strncmp(at, ".1f", 3) == 0) {
		snprintf(digits, sizeof(digits), "%.1f", va_arg(*args, double));
		n = 3;
	} else if (*at == '%') {
		snprintf(digits, sizeof(digits), "%%");
	} else {
		html->failed = true; /* A fault of the caller: nothing after it could be trusted. */
		return strlen(at);
	}
	adds(html, digits);
	return n;
}

void cordon_html(struct cordon_html *html, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	for (const char *at = format; *at;) {
		size_t plain = strcspn(at, "%");

		add(html, at, plain);
		at += plain;
		if (*at)
			at += 1 + add_conversion(html, at + 1, &args);
	}
	va_end(args);
}

void cordon_html_url(struct cordon_html *html, const char *text)
{
	static const char hex[] = "0123456789ABCDEF";

	for (; *text; text++) {
		unsigned char c = (unsigned char)*text;
		bool safe = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
			    c == '_' || c == '.' || c == '~';
		char code[] = { '%', hex[c >> 4], hex[c & 15] };

		if (safe)
			add(html, text, 1);
		else
			add(html, code, sizeof(code));
	}
}

/* How a program wants its text to look, from a fixed set. */
struct look {
	bool bold, underline;
	int front, back; /* 1 to 16, or 0 */
};

static void open_span(struct cordon_html *html, const struct look *look)
{
	if (!look->bold && !look->underline && !look->front && !look->back)
		return;
	adds(html, "<span class=\"a");
	if (look->bold)
		adds(html, " b");
	if (look->underline)
		adds(html, " u");
	if (look->front)
		cordon_html(html, " f%d", look->front);
	if (look->back)
		cordon_html(html, " k%d", look->back);
	adds(html, "\">");
}

static void close_span(struct cordon_html *html, const struct look *look)
{
	if (look->bold || look->underline || look->front || look->back)
		adds(html, "</span>");
}

static void apply_number(struct look *look, unsigned int number)
{
	if (number == 0)
		*look = (struct look){ 0 };
	else if (number == 1)
		look->bold = true;
	else if (number == 22)
		look->bold = false;
	else if (number == 4)
		look->underline = true;
	else if (number == 24)
		look->underline = false;
	else if (number >= 30 && number <= 37)
		look->front = (int)number - 29;
	else if (number >= 90 && number <= 97)
		look->front = (int)number - 81;
	else if (number == 39)
		look->front = 0;
	else if (number >= 40 && number <= 47)
		look->back = (int)number - 39;
	else if (number >= 100 && number <= 107)
		look->back = (int)number - 91;
	else if (number == 49)
		look->back = 0;
}

/* The numbers of "ESC [ 1 ; 31 m". Colours of larger sets (38 and 48) are left out with their parameters. */
static void apply_numbers(struct look *look, const char *text, size_t n)
{
	unsigned int number = 0;

	for (size_t i = 0; i <= n; i++) {
		if (i < n && text[i] >= '0' && text[i] <= '9') {
			number = number < 1000 ? number * 10 + (unsigned int)(text[i] - '0') : number;
			continue;
		}
		if (number == 38 || number == 48)
			return;
		apply_number(look, number);
		number = 0;
	}
}

/* Returns the length of the escape sequence at `text`, at least 1, and changes the look if it is about that. */
static size_t read_escape(const char *text, size_t n, struct look *look)
{
	size_t i = 2;

	if (n < 2)
		return n;
	if (text[1] == '[') { /* CSI: parameters, then one final byte */
		while (i < n && (unsigned char)text[i] >= 0x20 && (unsigned char)text[i] <= 0x3f)
			i++;
		if (i < n && text[i] == 'm')
			apply_numbers(look, text + 2, i - 2);
		return i < n ? i + 1 : n;
	}
	if (text[1] == ']' || text[1] == 'P' || text[1] == '_' || text[1] == '^') { /* a string, to BEL or ST */
		while (i < n && text[i] != '\a' && text[i] != '\n' &&
		       !(text[i] == '\033' && i + 1 < n && text[i + 1] == '\\'))
			i++;
		if (i < n && text[i] == '\033')
			return i + 2;
		return i < n && text[i] == '\a' ? i + 1 : i;
	}
	return 2;
}

void cordon_html_output(struct cordon_html *html, const char *text, size_t n)
{
	struct look look = { 0 };
	size_t line = 0, left_out = 0;

	for (size_t i = 0; i < n;) {
		size_t end = i, room;

		if (text[i] == '\033') {
			struct look next = look;

			i += read_escape(text + i, n - i, &next);
			close_span(html, &look);
			look = next;
			open_span(html, &look);
			continue;
		}
		if (text[i] == '\n' || text[i] == '\r') {
			if (left_out)
				cordon_html(html, "\u2026 %zu bytes more", left_out);
			line = left_out = 0;
			/* A carriage return alone begins a line anew on a terminal; here it is a line of its own. */
			if (text[i] == '\n' || i + 1 == n || text[i + 1] != '\n')
				adds(html, "\n");
			i++;
			continue;
		}
		while (end < n && text[end] != '\033' && text[end] != '\n' && text[end] != '\r')
			end++;
		room = CORDON_HTML_LINE_MAX - line;
		room = cut(text + i, end - i, room);
		if (room)
			cordon_html_text(html, text + i, room);
		line += room;
		left_out += end - i - room;
		if (left_out)
			line = CORDON_HTML_LINE_MAX;
		i = end;
	}
	if (left_out)
		cordon_html(html, "\u2026 %zu bytes more", left_out);
	close_span(html, &look);
}
