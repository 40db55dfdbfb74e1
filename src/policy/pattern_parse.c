/* SPDX-License-Identifier: Apache-2.0 */
/* Turns the text of a pattern into tokens, and finds every error that shows when the text is read from left to
 * right. */
#include "base/text.h"
#include "policy/pattern_impl.h"

struct group {
	size_t open;	    /* its TOKEN_OPEN */
	size_t separator;   /* the last token that waits for its link */
	size_t before;	    /* alternatives of the sequence the group stands in, so far */
	size_t sum;	    /* alternatives of the branches that are closed */
	size_t text_offset; /* of the text behind the brace */
};

struct parser {
	struct cordon_pattern *pattern;
	const char *text;
	size_t len, pos, column;
	size_t count; /* alternatives of the sequence being read */
	struct group groups[CORDON_BRACE_DEPTH_MAX];
	size_t depth;
	struct cordon_error *err;
};

uint32_t cordon_char_at(const char *s, size_t n, size_t *ret_len)
{
	size_t len = cordon_utf8_char(s, n);

	*ret_len = len ? len : 1;
	return len ? cordon_utf8_decode(s, len) : CORDON_CHAR_INVALID + (unsigned char)*s;
}

void *cordon_pattern_grow(void *array, size_t n, size_t size)
{
	/* Room is 8, then doubles: it runs out exactly when n is 0 or a power of two from 8 on. */
	if (n && (n < 8 || (n & (n - 1))))
		return array;
	return realloc(array, (n ? 2 * n : 8) * size);
}

int cordon_pattern_fail(struct cordon_pattern *pattern, size_t column, const char *message, struct cordon_error *err)
{
	/* Cut a long pattern, so that the message behind it is not cut. */
	int shown = strlen(pattern->text) > 256 ? 253 : 256;

	pattern->fault = column;
	return cordon_fail(err, -EINVAL, CORDON_KIND_USAGE, "bad pattern `%.*s%s` at column %zu: %s", shown,
			   pattern->text, shown == 253 ? "..." : "", column, message);
}

/* Hints say "backslash" in words: one in the text would be escaped and shown as two. */
static int fail(struct parser *p, size_t column, const char *message, const char *hint)
{
	int r = cordon_pattern_fail(p->pattern, column, message, p->err);

	cordon_error_hint(p->err, "%s", hint);
	return r;
}

static int no_memory(struct parser *p)
{
	return cordon_fail_errno(p->err, -ENOMEM, "cannot compile a pattern");
}

static int add_token(struct parser *p, enum token_kind kind, uint32_t value, size_t column)
{
	struct cordon_pattern *pattern = p->pattern;
	struct token *tokens = cordon_pattern_grow(pattern->tokens, pattern->n_tokens, sizeof(*tokens));

	if (!tokens)
		return no_memory(p);
	pattern->tokens = tokens;
	tokens[pattern->n_tokens++] = (struct token){ .kind = (uint8_t)kind, .column = (uint16_t)column, .value = value };
	return 0;
}

static bool at_end(const struct parser *p)
{
	return p->pos >= p->len;
}

/* Takes one character of the text and does not interpret escapes. */
static uint32_t take(struct parser *p)
{
	size_t n;
	uint32_t c = cordon_char_at(p->text + p->pos, p->len - p->pos, &n);

	p->pos += n;
	p->column++;
	return c;
}

static int add_range(struct parser *p, struct char_class *set, uint32_t low, uint32_t high)
{
	struct cordon_pattern *pattern = p->pattern;
	struct class_range *ranges = cordon_pattern_grow(pattern->ranges, pattern->n_ranges, sizeof(*ranges));

	if (!ranges)
		return no_memory(p);
	pattern->ranges = ranges;
	ranges[pattern->n_ranges++] = (struct class_range){ low, high };
	set->n++;
	return 0;
}

/* Takes one character of a bracket and interprets escapes. */
static int take_member(struct parser *p, size_t open_column, uint32_t *ret_char)
{
	size_t column = p->column;
	uint32_t c = take(p);

	if (c == '\\') {
		if (at_end(p))
			return fail(p, open_column, "the bracket is not closed",
				    "put a backslash in front of a literal bracket");
		c = take(p);
	}
	if (c == '/')
		return fail(p, column, "a slash cannot stand in brackets",
			    "brackets match one character of a name; use braces for alternatives with slashes");
	*ret_char = c;
	return 0;
}

/* [:alpha:], [=a=] and [.a.] inside brackets; the position is behind the inner bracket. */
static bool is_posix_class(const struct parser *p)
{
	const char *s = p->text + p->pos;
	const char *end = *s == ':' || *s == '=' || *s == '.' ? strchr(s + 1, ']') : NULL;

	return end && end > s + 1 && end[-1] == *s;
}

static int parse_member(struct parser *p, struct char_class *set, size_t open_column)
{
	size_t column = p->column;
	bool bracket = p->text[p->pos] == '[';
	uint32_t low = 0, high;
	int r = take_member(p, open_column, &low);

	if (r < 0)
		return r;
	if (bracket && is_posix_class(p))
		return fail(p, column, "named character classes are not part of the grammar",
			    "write the characters out, as in [a-zA-Z0-9]");
	high = low;
	if (p->pos + 1 < p->len && p->text[p->pos] == '-' && p->text[p->pos + 1] != ']') {
		take(p);
		r = take_member(p, open_column, &high);
		if (r < 0)
			return r;
		if (high < low)
			return fail(p, column, "the range is backwards", "write the lower end first, as in [a-z]");
		if ((low >= CORDON_CHAR_INVALID) != (high >= CORDON_CHAR_INVALID))
			return fail(p, column, "the range mixes a character with a byte that is none", "use two ranges");
	}
	return add_range(p, set, low, high);
}

static bool in_ranges(const struct class_range *ranges, size_t n, uint32_t c)
{
	for (size_t i = 0; i < n; i++)
		if (c >= ranges[i].low && c <= ranges[i].high)
			return true;
	return false;
}

bool cordon_class_has(const struct cordon_pattern *pattern, uint32_t index, uint32_t c)
{
	const struct char_class *set = &pattern->classes[index];

	if (c < 128)
		return set->ascii[c / 64] >> (c % 64) & 1;
	return in_ranges(pattern->ranges + set->first, set->n, c) != set->negated;
}

/* Parses a bracket; the position is behind the opening bracket. */
static int parse_class(struct parser *p, size_t column)
{
	struct cordon_pattern *pattern = p->pattern;
	struct char_class set = { .first = (uint32_t)pattern->n_ranges };
	struct char_class *classes;
	bool first = true;
	int r;

	if (!at_end(p) && (p->text[p->pos] == '!' || p->text[p->pos] == '^')) {
		set.negated = true;
		take(p);
	}
	for (;; first = false) {
		if (at_end(p))
			return fail(p, column, "the bracket is not closed",
				    "put a backslash in front of a literal bracket");
		if (p->text[p->pos] == ']' && !first)
			break;
		r = parse_member(p, &set, column);
		if (r < 0)
			return r;
	}
	take(p);
	for (uint32_t c = 0; c < 128; c++)
		if (in_ranges(pattern->ranges + set.first, set.n, c) != set.negated)
			set.ascii[c / 64] |= (uint64_t)1 << (c % 64);
	classes = cordon_pattern_grow(pattern->classes, pattern->n_classes, sizeof(*classes));
	if (!classes)
		return no_memory(p);
	pattern->classes = classes;
	classes[pattern->n_classes++] = set;
	return add_token(p, TOKEN_CLASS, (uint32_t)pattern->n_classes - 1, column);
}

static int open_group(struct parser *p, size_t column)
{
	if (p->depth == CORDON_BRACE_DEPTH_MAX)
		return fail(p, column, "braces are nested more than 10 levels deep", "split it into several patterns");
	p->groups[p->depth++] = (struct group){
		.open = p->pattern->n_tokens,
		.separator = p->pattern->n_tokens,
		.before = p->count,
		.text_offset = p->pos,
	};
	p->count = 1;
	return add_token(p, TOKEN_OPEN, 0, column);
}

/* A comma or a closing brace ends a branch of the innermost group. */
static int end_branch(struct parser *p, enum token_kind kind, size_t column)
{
	struct group *group = &p->groups[p->depth - 1];
	struct token *tokens = p->pattern->tokens;
	size_t open_column = tokens[group->open].column;
	int r = 0;

	group->sum += p->count;
	tokens[group->separator].link = (uint16_t)p->pattern->n_tokens;
	group->separator = p->pattern->n_tokens;
	r = add_token(p, kind, (uint32_t)p->count, column);
	p->count = 1;
	if (r < 0 || kind == TOKEN_COMMA)
		return r;
	if (group->sum == 1) {
		const char *inside = p->text + group->text_offset;
		bool range = memmem(inside, p->pos - 1 - group->text_offset, "..", 2);

		return range ? fail(p, open_column, "ranges in braces are not part of the grammar",
				    "write the values out, as in {1,2,3}")
			     : fail(p, open_column, "braces without a comma",
				    "put a backslash in front of literal braces");
	}
	p->pattern->tokens[group->open].value = (uint32_t)group->sum;
	p->count = group->before * group->sum;
	p->depth--;
	if (p->count > CORDON_ALTERNATIVES_MAX)
		return fail(p, open_column, "braces stand for more than 1024 alternatives",
			    "split it into several patterns");
	return 0;
}

static int parse_stars(struct parser *p, size_t column)
{
	size_t n = 1 + strspn(p->text + p->pos, "*");

	if (n > 2)
		return fail(p, column, "more than two stars in a row",
			    "** stands for any number of directories, * for any part of one name");
	if (n == 2)
		take(p);
	return add_token(p, n == 2 ? TOKEN_DSTAR : TOKEN_STAR, 0, column);
}

/* `@(a|b)` and similar forms mean something in shells and nothing here. They are an error, because a deny that
 * silently matches nothing would be a hole. */
static bool is_extended_glob(const struct parser *p, uint32_t c)
{
	const char *s = p->text + p->pos;
	size_t n;

	if (*s != '(' || (c != '?' && c != '*' && c != '+' && c != '@' && c != '!'))
		return false;
	n = strcspn(s, ")/");
	return s[n] == ')' && memchr(s, '|', n);
}

static int parse_one(struct parser *p)
{
	size_t column = p->column;
	uint32_t c = take(p);

	if (is_extended_glob(p, c))
		return fail(p, column, "`(a|b)` is not part of the grammar",
			    "use {a,b}, or put a backslash in front of the parenthesis");
	switch (c) {
	case '\\':
		if (at_end(p))
			return fail(p, column, "nothing follows the backslash", "write a literal backslash twice");
		c = take(p);
		return add_token(p, c == '/' ? TOKEN_SLASH : TOKEN_CHAR, c, column);
	case '/':
		return add_token(p, TOKEN_SLASH, c, column);
	case '?':
		return add_token(p, TOKEN_ANY, 0, column);
	case '*':
		return parse_stars(p, column);
	case '[':
		return parse_class(p, column);
	case '{':
		return open_group(p, column);
	case '}':
		if (p->depth == 0)
			return fail(p, column, "the brace was never opened",
				    "put a backslash in front of a literal brace");
		return end_branch(p, TOKEN_CLOSE, column);
	case ',':
		if (p->depth > 0)
			return end_branch(p, TOKEN_COMMA, column);
		return add_token(p, TOKEN_CHAR, c, column);
	default:
		return add_token(p, TOKEN_CHAR, c, column);
	}
}

int cordon_pattern_tokenize(struct cordon_pattern *pattern, struct cordon_error *err)
{
	struct parser p = {
		.pattern = pattern,
		.text = pattern->text,
		.len = strlen(pattern->text),
		.column = 1,
		.count = 1,
		.err = err,
	};
	int r = 0;

	if (p.len == 0)
		return fail(&p, 1, "it is empty", "the whole tree is `**`");
	if (p.len > CORDON_PATTERN_MAX)
		return fail(&p, CORDON_PATTERN_MAX + 1, "it is longer than 4096 bytes",
			    "split it into several patterns");
	if (p.text[0] == '!')
		return fail(&p, 1, "a pattern cannot be negated",
			    "use deny for what is to be left out, or put a backslash in front of a literal !");
	while (!at_end(&p) && r == 0)
		r = parse_one(&p);
	if (r < 0)
		return r;
	if (p.depth > 0)
		return fail(&p, pattern->tokens[p.groups[p.depth - 1].open].column, "the brace is not closed",
			    "put a backslash in front of a literal brace");
	pattern->n_alternatives = p.count;
	return add_token(&p, TOKEN_END, 0, p.column);
}
