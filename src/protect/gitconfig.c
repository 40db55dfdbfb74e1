/* SPDX-License-Identifier: Apache-2.0 */
/* A small reader of git configuration files; the grammar is git-config(1), "SYNTAX". */
#include "protect/gitconfig.h"

/* Keys whose value is a command, in any section; so is every key of `alias` and `pager`. */
static const char *const command_keys[] = {
	"alternaterefscommand",
	"askpass",
	"clean",
	"cmd",
	"command",
	"defaultkeycommand",
	"difffilter",
	"driver",
	"editor",
	"external",
	"fsmonitor",
	"gitproxy",
	"headercmd",
	"helper",
	"packobjectshook",
	"pager",
	"process",
	"program",
	"receivepack",
	"recentobjectshook",
	"sendmailcmd",
	"smudge",
	"sshcommand",
	"textconv",
	"tocmd",
	"tunnel",
	"update",
	"uploadpack",
};

/* Sections in which `path` is the program of a tool. */
static const char *const tool_sections[] = { "browser", "difftool", "lfs", "man", "mergetool" };

bool cordon_gitconfig_is_command(const struct cordon_gitconfig_entry *entry)
{
	if (cordon_streq(entry->section, "alias") || cordon_streq(entry->section, "pager"))
		return true;
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(tool_sections); i++)
		if (cordon_streq(entry->key, "path") && cordon_streq(entry->section, tool_sections[i]))
			return true;
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(command_keys); i++)
		if (cordon_streq(entry->key, command_keys[i]))
			return true;
	return false;
}

struct reader {
	const char *at, *end;
	char section[CORDON_GITCONFIG_NAME_MAX];
	char subsection[CORDON_GITCONFIG_NAME_MAX];
	char key[CORDON_GITCONFIG_NAME_MAX];
	char value[CORDON_PATH_MAX];
	bool fits; /* the names of the current section are not too long */
};

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f';
}

static bool is_name(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-';
}

static char lower(char c)
{
	if (c >= 'A' && c <= 'Z')
		return "abcdefghijklmnopqrstuvwxyz"[c - 'A'];
	return c;
}

static void skip_blanks(struct reader *r)
{
	while (r->at < r->end && is_blank(*r->at))
		r->at++;
}

static void skip_line(struct reader *r)
{
	while (r->at < r->end && *r->at != '\n')
		r->at++;
}

/* Takes characters of a name into `ret`; false when it is too long. */
static bool take_name(struct reader *r, bool dots, char *ret, size_t size)
{
	size_t n = 0;

	while (r->at < r->end && (is_name(*r->at) || (dots && *r->at == '.'))) {
		if (n + 1 < size)
			ret[n] = lower(*r->at);
		n++;
		r->at++;
	}
	ret[n < size ? n : size - 1] = '\0';
	return n < size;
}

/* Takes the quoted part of [section "sub"]; the opening quote is already read. A backslash takes the next character
 * as it is. */
static bool take_quoted(struct reader *r, char *ret, size_t size)
{
	size_t n = 0;

	while (r->at < r->end && *r->at != '"' && *r->at != '\n') {
		if (*r->at == '\\' && r->at + 1 < r->end && r->at[1] != '\n')
			r->at++;
		if (n + 1 < size)
			ret[n] = *r->at;
		n++;
		r->at++;
	}
	if (r->at < r->end && *r->at == '"')
		r->at++;
	ret[n < size ? n : size - 1] = '\0';
	return n < size;
}

static void take_section(struct reader *r)
{
	char *dot;

	r->at++; /* [ */
	r->subsection[0] = '\0';
	skip_blanks(r);
	r->fits = take_name(r, true, r->section, sizeof(r->section));
	/* The old form [section.sub]. */
	dot = strchr(r->section, '.');
	if (dot) {
		cordon_copy(r->subsection, sizeof(r->subsection), dot + 1, strlen(dot + 1));
		*dot = '\0';
	}
	skip_blanks(r);
	if (r->at < r->end && *r->at == '"') {
		r->at++;
		r->fits &= take_quoted(r, r->subsection, sizeof(r->subsection));
	}
	skip_blanks(r);
	/* More may follow on the same line. */
	if (r->at < r->end && *r->at == ']')
		r->at++;
	else
		skip_line(r);
}

static char unescaped(char c)
{
	switch (c) {
	case 'n':
		return '\n';
	case 't':
		return '\t';
	case 'b':
		return '\b';
	default:
		return c; /* a quote, a backslash; git refuses anything else */
	}
}

/* Takes a value up to the end of the line: removes quotes, stops at a comment, drops blanks at the end. A backslash
 * at the end of the line continues it. */
static void take_value(struct reader *r)
{
	size_t n = 0, kept = 0;
	bool quoted = false;

	skip_blanks(r);
	for (; r->at < r->end && *r->at != '\n'; r->at++) {
		char c = *r->at;
		bool literal = quoted;

		if (!quoted && (c == '#' || c == ';')) {
			skip_line(r);
			break;
		}
		if (c == '"') {
			quoted = !quoted;
			kept = n; /* blanks inside quotes count */
			continue;
		}
		if (c == '\\' && r->at + 1 < r->end) {
			r->at++;
			if (*r->at == '\r' && r->at + 1 < r->end && r->at[1] == '\n')
				r->at++;
			if (*r->at == '\n')
				continue;
			c = unescaped(*r->at);
			literal = true;
		}
		if (n + 1 < sizeof(r->value))
			r->value[n++] = c;
		if (literal || !is_blank(c))
			kept = n;
	}
	r->value[kept] = '\0';
}

static int take_entry(struct reader *r, cordon_gitconfig_fn found, void *data)
{
	struct cordon_gitconfig_entry entry = { r->section, r->subsection, r->key, NULL };
	bool fits = take_name(r, false, r->key, sizeof(r->key)) && r->fits;

	skip_blanks(r);
	if (r->at < r->end && *r->at == '=') {
		r->at++;
		take_value(r);
		entry.value = r->value;
	} else {
		skip_line(r);
	}
	return fits ? found(&entry, data) : 0;
}

int cordon_gitconfig_parse(const char *text, size_t n, cordon_gitconfig_fn found, void *data)
{
	static const char bom[] = "\xef\xbb\xbf";
	struct reader r = { .at = text, .end = text + n };
	int result = 0;

	if (n >= 3 && memcmp(text, bom, 3) == 0)
		r.at += 3;
	while (result == 0 && r.at < r.end) {
		char c = *r.at;

		if (is_blank(c) || c == '\n')
			r.at++;
		else if (c == '[')
			take_section(&r);
		else if (is_name(c))
			result = take_entry(&r, found, data);
		else
			skip_line(&r); /* a comment, or something that git does not accept */
	}
	return result;
}
