/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A naive matcher: braces written out as text, then plain backtracking. It shares no code with the engine beyond the
 * length of a UTF-8 character, is exponential, and is right by being obvious. For tests and fuzzers with short input.
 */
#ifndef CORDON_TESTS_ORACLE_H
#define CORDON_TESTS_ORACLE_H

#include "base/text.h"
#include "policy/pattern.h"

/* Stands where a brace was, so that stars of two alternatives that meet are not taken for `**`. */
#define ORACLE_JOINT '\x01'
#define ORACLE_TEXT_MAX 1024
#define ORACLE_NAMES_MAX 128

struct oracle_answer {
	bool matches;
	struct cordon_specificity specificity;
	size_t alternatives;
};

struct oracle_name {
	char text[ORACLE_TEXT_MAX];
};

/* The index behind the item that starts at i: an escape, a bracket, or one character. */
static inline size_t oracle_skip(const char *s, size_t i)
{
	size_t n;

	if (s[i] == '\\')
		return i + 1 + (cordon_utf8_char(s + i + 1, strlen(s + i + 1)) ?: 1);
	if (s[i] == '[') {
		i++;
		if (s[i] == '!' || s[i] == '^')
			i++;
		if (s[i] == ']')
			i++;
		while (s[i] != ']')
			i += s[i] == '\\' ? 2 : 1;
		return i + 1;
	}
	n = cordon_utf8_char(s + i, strlen(s + i));
	return i + (n ? n : 1);
}

static inline size_t oracle_char_len(const char *s)
{
	size_t n = cordon_utf8_char(s, strlen(s));

	return n ? n : 1;
}

/* Characters compared as numbers for ranges: valid ones by code point, bytes that are none behind all of them. */
static inline unsigned long oracle_code(const char *s)
{
	size_t n = cordon_utf8_char(s, strlen(s));
	unsigned long code = (unsigned char)s[0];

	if (n == 0)
		return 0x200000ul + code;
	if (n > 1)
		code &= 0xfful >> (n + 1);
	for (size_t i = 1; i < n; i++)
		code = code << 6 | ((unsigned char)s[i] & 0x3f);
	return code;
}

static inline bool oracle_class(const char *set, const char *path)
{
	bool negated = set[1] == '!' || set[1] == '^', found = false;
	const char *s = set + 1 + negated;
	unsigned long code = oracle_code(path);

	for (bool first = true; first || *s != ']'; first = false) {
		unsigned long low, high;

		if (*s == '\\')
			s++;
		low = high = oracle_code(s);
		s += oracle_char_len(s);
		if (s[0] == '-' && s[1] != ']') {
			s++;
			if (*s == '\\')
				s++;
			high = oracle_code(s);
			s += oracle_char_len(s);
		}
		found = found || (code >= low && code <= high);
	}
	return found != negated;
}

static inline bool oracle_match_name(const char *pattern, const char *name)
{
	size_t n;

	if (!*pattern)
		return !*name;
	if (*pattern == ORACLE_JOINT)
		return oracle_match_name(pattern + 1, name);
	if (*pattern == '*')
		return oracle_match_name(pattern + 1, name) ||
		       (*name && oracle_match_name(pattern, name + oracle_char_len(name)));
	if (!*name)
		return false;
	n = oracle_char_len(name);
	if (*pattern == '?')
		return oracle_match_name(pattern + 1, name + n);
	if (*pattern == '[')
		return oracle_class(pattern, name) && oracle_match_name(pattern + oracle_skip(pattern, 0), name + n);
	if (*pattern == '\\')
		pattern++;
	return oracle_code(pattern) == oracle_code(name) &&
	       oracle_match_name(pattern + oracle_char_len(pattern), name + n);
}

static inline bool oracle_is_dstar(const char *name)
{
	name += strspn(name, "\x01");
	return name[0] == '*' && name[1] == '*' && !name[2 + strspn(name + 2, "\x01")];
}

static inline bool oracle_match_names(const struct oracle_name *pattern, size_t n, const struct oracle_name *path,
				      size_t m, bool covers)
{
	if (n == 0)
		return m == 0 || covers;
	if (oracle_is_dstar(pattern->text))
		return oracle_match_names(pattern + 1, n - 1, path, m, covers) ||
		       (m && oracle_match_names(pattern, n, path + 1, m - 1, covers));
	return m && oracle_match_name(pattern->text, path->text) &&
	       oracle_match_names(pattern + 1, n - 1, path + 1, m - 1, covers);
}

/* Bytes of literal text in front of the first wildcard; *ret_whole when there is none. */
static inline size_t oracle_literal(const char *name, bool *ret_whole)
{
	size_t len = 0;

	for (; *name; name++) {
		if (*name == ORACLE_JOINT)
			continue;
		if (strchr("*?[", *name)) {
			*ret_whole = false;
			return len;
		}
		if (*name == '\\')
			name++;
		len++;
	}
	*ret_whole = true;
	return len;
}

/* Splits at slashes, escaped or not, and drops what means nothing. */
static inline size_t oracle_split(const char *text, struct oracle_name *names)
{
	size_t count = 0, len = 0, i = 0;

	for (;;) {
		bool slash = text[i] == '/' || (text[i] == '\\' && text[i + 1] == '/');
		size_t next;

		if (!text[i] || slash) {
			char plain[4] = "";
			size_t k = 0;

			names[count].text[len] = '\0';
			for (size_t j = 0; j < len && k < 3; j++) {
				if (names[count].text[j] == ORACLE_JOINT)
					continue;
				if (names[count].text[j] == '\\')
					j++;
				plain[k++] = names[count].text[j];
			}
			if (k && !(k == 1 && plain[0] == '.'))
				count++;
			if (!text[i])
				return count;
			len = 0;
			i += text[i] == '/' ? 1 : 2;
			continue;
		}
		next = oracle_skip(text, i);
		while (i < next)
			names[count].text[len++] = text[i++];
	}
}

static inline void oracle_try(const char *alternative, const struct oracle_name *path, size_t m,
			      struct oracle_answer *answer)
{
	static struct oracle_name names[ORACLE_NAMES_MAX];
	size_t n = oracle_split(alternative, names), kept = 0;
	struct cordon_specificity s = { 0 };
	bool covers, prefix = true;

	for (size_t i = 0; i < n; i++)
		if (!(kept && oracle_is_dstar(names[i].text) && oracle_is_dstar(names[kept - 1].text)))
			names[kept++] = names[i];
	n = kept;
	answer->alternatives++;
	for (size_t i = 0; i < n; i++) {
		bool whole;
		size_t len = oracle_literal(names[i].text, &whole);

		s.literal_components += whole;
		if (prefix && !(i + 1 == n && oracle_is_dstar(names[i].text)))
			s.literal_prefix += (s.literal_prefix ? 1 : 0) + len;
		prefix = prefix && whole;
	}
	covers = n == 0;
	if (n)
		oracle_literal(names[n - 1].text, &covers);
	if (!oracle_match_names(names, n, path, m, covers))
		return;
	if (!answer->matches || s.literal_components > answer->specificity.literal_components ||
	    (s.literal_components == answer->specificity.literal_components &&
	     s.literal_prefix > answer->specificity.literal_prefix))
		answer->specificity = s;
	answer->matches = true;
}

/* Writes out the first brace and goes on with each result. */
static inline void oracle_expand(const char *text, const struct oracle_name *path, size_t m,
				 struct oracle_answer *answer)
{
	char out[ORACLE_TEXT_MAX];
	size_t open = 0, close, depth = 0, start;

	while (text[open] && text[open] != '{')
		open = oracle_skip(text, open);
	if (!text[open]) {
		oracle_try(text, path, m, answer);
		return;
	}
	for (close = open;; close = oracle_skip(text, close)) {
		depth += text[close] == '{';
		if (text[close] == '}' && --depth == 0)
			break;
	}
	start = open + 1;
	for (size_t i = start; i <= close; i = oracle_skip(text, i)) {
		if (i == close || (depth == 0 && text[i] == ',')) {
			snprintf(out, sizeof(out), "%.*s\x01%.*s\x01%s", (int)open, text, (int)(i - start),
				 text + start, text + close + 1);
			oracle_expand(out, path, m, answer);
			start = i + 1;
		}
		depth += text[i] == '{';
		depth -= i < close && text[i] == '}';
	}
}

/* `pattern` must be one that compiles, both short; neither may hold ORACLE_JOINT. */
static inline struct oracle_answer oracle_match(const char *pattern, const char *path)
{
	static struct oracle_name names[ORACLE_NAMES_MAX];
	struct oracle_answer answer = { 0 };
	size_t m = 0;

	for (const char *p = path; *p; m++) {
		size_t n = strcspn(p, "/");

		memcpy(names[m].text, p, n);
		names[m].text[n] = '\0';
		p += n + (p[n] == '/');
	}
	oracle_expand(pattern, names, m, &answer);
	return answer;
}

#endif
