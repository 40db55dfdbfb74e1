/* SPDX-License-Identifier: Apache-2.0 */
/* Compiles tokens to alternatives: writes the braces out, and cleans, checks and measures each result. */
#include "base/text.h"
#include "policy/pattern_impl.h"

struct compiler {
	struct cordon_pattern *pattern;
	struct cordon_error *err;
	uint16_t *sequence; /* the current alternative: indices of tokens */
	size_t n;
	size_t total; /* length of all alternatives so far */
	size_t flat_max;
	char *path; /* buffer for a literal path */
};

static int no_memory(struct compiler *c)
{
	return cordon_fail_errno(c->err, -ENOMEM, "cannot compile a pattern");
}

/*
 * Writes out alternative number k. A sequence has as many alternatives as the product of its groups, and a group as
 * many as the sum of its branches. Inside a branch k counts within that branch; `levels` stores where and with which
 * k to continue behind it.
 */
static void write_out(struct compiler *c, size_t k)
{
	const struct token *tokens = c->pattern->tokens;
	struct {
		size_t behind, k;
	} levels[CORDON_BRACE_DEPTH_MAX] = { 0 };
	size_t depth = 0, i = 0;

	c->n = 0;
	while (tokens[i].kind != TOKEN_END) {
		size_t which, end;

		if (tokens[i].kind == TOKEN_COMMA || tokens[i].kind == TOKEN_CLOSE) {
			i = levels[--depth].behind;
			k = levels[depth].k;
			continue;
		}
		if (tokens[i].kind != TOKEN_OPEN) {
			c->sequence[c->n++] = (uint16_t)i++;
			continue;
		}
		which = k % tokens[i].value;
		levels[depth].k = k / tokens[i].value;
		end = tokens[i++].link;
		for (; which >= tokens[end].value; end = tokens[end].link) {
			which -= tokens[end].value;
			i = end + 1;
		}
		while (tokens[end].kind != TOKEN_CLOSE)
			end = tokens[end].link;
		levels[depth++].behind = end + 1;
		k = which;
	}
}

static int add_bytes(struct compiler *c, const char *s, size_t n)
{
	struct cordon_pattern *pattern = c->pattern;

	for (size_t i = 0; i < n; i++) {
		char *bytes = cordon_pattern_grow(pattern->bytes, pattern->n_bytes, 1);

		if (!bytes)
			return no_memory(c);
		pattern->bytes = bytes;
		bytes[pattern->n_bytes++] = s[i];
	}
	return 0;
}

size_t cordon_char_encode(uint32_t ch, char out[static 4])
{
	if (ch >= CORDON_CHAR_INVALID) {
		out[0] = (char)(ch - CORDON_CHAR_INVALID);
		return 1;
	}
	if (ch < 0x80) {
		out[0] = (char)ch;
		return 1;
	}
	if (ch < 0x800) {
		out[0] = (char)(0xc0 | ch >> 6);
		out[1] = (char)(0x80 | (ch & 0x3f));
		return 2;
	}
	if (ch < 0x10000) {
		out[0] = (char)(0xe0 | ch >> 12);
		out[1] = (char)(0x80 | (ch >> 6 & 0x3f));
		out[2] = (char)(0x80 | (ch & 0x3f));
		return 3;
	}
	out[0] = (char)(0xf0 | ch >> 18);
	out[1] = (char)(0x80 | (ch >> 12 & 0x3f));
	out[2] = (char)(0x80 | (ch >> 6 & 0x3f));
	out[3] = (char)(0x80 | (ch & 0x3f));
	return 4;
}

static size_t count_chars(const char *s, size_t n)
{
	size_t count = 0;

	for (size_t i = 0, len; i < n; i += len, count++)
		cordon_char_at(s + i, n - i, &len);
	return count;
}

/* Adds the literal characters that start at sequence[at]; returns how many there are, or -errno. */
static int add_run(struct compiler *c, size_t at, size_t end, uint32_t *ret_first, uint32_t *ret_n)
{
	const struct token *tokens = c->pattern->tokens;
	size_t first = c->pattern->n_bytes, i;

	for (i = at; i < end && tokens[c->sequence[i]].kind == TOKEN_CHAR; i++) {
		char out[4] = { 0 };
		size_t n = cordon_char_encode(tokens[c->sequence[i]].value, out);
		int r = add_bytes(c, out, n);

		if (r < 0)
			return r;
	}
	*ret_first = (uint32_t)first;
	*ret_n = (uint32_t)(c->pattern->n_bytes - first);
	/* Two bytes that are not characters could form one where a brace ends, which nobody wrote. */
	if (*ret_n && count_chars(c->pattern->bytes + first, *ret_n) != i - at) {
		cordon_pattern_fail(c->pattern, tokens[c->sequence[at]].column, "braces split a character", c->err);
		cordon_error_hint(c->err, "write whole UTF-8 characters in each alternative");
		return -EINVAL;
	}
	return (int)(i - at);
}

static int add_atom(struct compiler *c, enum token_kind kind, uint32_t first, uint32_t n)
{
	struct cordon_pattern *pattern = c->pattern;
	struct atom *atoms = cordon_pattern_grow(pattern->atoms, pattern->n_atoms, sizeof(*atoms));

	if (!atoms)
		return no_memory(c);
	pattern->atoms = atoms;
	atoms[pattern->n_atoms++] = (struct atom){ .kind = (uint8_t)kind, .first = first, .n = n };
	return 0;
}

static int add_component(struct compiler *c, enum component_kind kind, uint32_t first, uint32_t n)
{
	struct cordon_pattern *pattern = c->pattern;
	struct component *components = cordon_pattern_grow(pattern->components, pattern->n_components,
							   sizeof(*components));

	if (!components)
		return no_memory(c);
	pattern->components = components;
	components[pattern->n_components++] = (struct component){ .kind = (uint8_t)kind, .first = first, .n = n };
	return 0;
}

/* Reports a pattern such as `src/**.ts`: what is wrong, and how it was probably meant. */
static int fail_dstar(struct compiler *c, size_t column, bool left, bool right)
{
	const char *text = c->pattern->text;
	size_t offset = 0, len = strlen(text), n;
	int r = cordon_pattern_fail(c->pattern, column, "`**` stands for whole directories only", c->err);

	for (size_t i = 1; i < column; i++, offset += n)
		cordon_char_at(text + offset, len - offset, &n);
	/* The hint would show a backslash as two. */
	if (len < 200 && !strchr(text, '\\'))
		cordon_error_hint(c->err, "did you mean `%.*s%s**%s%s`?", (int)offset, text, left ? "*/" : "",
				  right ? "/*" : "", text + offset + 2);
	else
		cordon_error_hint(c->err, "write `**/*` for files at any depth");
	return r;
}

static int add_glob(struct compiler *c, size_t start, size_t end)
{
	struct cordon_pattern *pattern = c->pattern;
	size_t first = pattern->n_atoms;
	uint32_t least = 0;
	int r;

	for (size_t i = start; i < end;) {
		const struct token *token = &pattern->tokens[c->sequence[i]];
		bool again = pattern->n_atoms > first && pattern->atoms[pattern->n_atoms - 1].kind == TOKEN_STAR;
		uint32_t run, n;

		if (token->kind == TOKEN_CHAR) {
			r = add_run(c, i, end, &run, &n);
			if (r < 0)
				return r;
			i += (size_t)r;
			r = add_atom(c, TOKEN_CHAR, run, n);
		} else {
			i++;
			/* Two stars that meet where a brace ends are one: `{a,*}*` matches no more than `*`. */
			r = token->kind == TOKEN_STAR && again ? 0 : add_atom(c, token->kind, token->value, 0);
		}
		if (r < 0)
			return r;
	}
	if (pattern->n_atoms == first + 1 && pattern->atoms[first].kind == TOKEN_STAR) {
		pattern->n_atoms--;
		return add_component(c, COMPONENT_ANY, 0, 0);
	}
	for (size_t i = pattern->n_atoms; i-- > first;) {
		struct atom *atom = &pattern->atoms[i];

		least += atom->kind == TOKEN_CHAR ? atom->n : atom->kind != TOKEN_STAR;
		atom->least = least;
	}
	return add_component(c, COMPONENT_GLOB, (uint32_t)first, (uint32_t)(pattern->n_atoms - first));
}

static bool all_dots(const struct compiler *c, size_t start, size_t end)
{
	for (size_t i = start; i < end; i++)
		if (c->pattern->tokens[c->sequence[i]].kind != TOKEN_CHAR ||
		    c->pattern->tokens[c->sequence[i]].value != '.')
			return false;
	return true;
}

/* Adds one component of the alternative, the tokens [start, end) of the sequence; `base` is its first component. */
static int add_piece(struct compiler *c, size_t base, size_t start, size_t end)
{
	struct cordon_pattern *pattern = c->pattern;
	bool literal = true;
	uint32_t first, n;
	int r;

	if (end - start <= 1 && all_dots(c, start, end))
		return 0;
	if (end - start == 2 && all_dots(c, start, end)) {
		r = cordon_pattern_fail(pattern, pattern->tokens[c->sequence[start]].column,
					"`..` would lead out of the root", c->err);
		cordon_error_hint(c->err, "patterns are relative to the root; name the place below it");
		return r;
	}
	for (size_t i = start; i < end; i++) {
		const struct token *token = &pattern->tokens[c->sequence[i]];

		if (token->kind == TOKEN_DSTAR && end - start > 1)
			return fail_dstar(c, token->column, i > start, i + 1 < end);
		literal = literal && token->kind == TOKEN_CHAR;
	}
	if (pattern->tokens[c->sequence[start]].kind == TOKEN_DSTAR) {
		bool again = pattern->n_components > base &&
			     pattern->components[pattern->n_components - 1].kind == COMPONENT_DSTAR;

		return again ? 0 : add_component(c, COMPONENT_DSTAR, 0, 0);
	}
	if (!literal)
		return add_glob(c, start, end);
	r = add_run(c, start, end, &first, &n);
	return r < 0 ? r : add_component(c, COMPONENT_LITERAL, first, n);
}

/* Writes the literal text before the first wildcard to c->path. `a/**` means the same as `a`, so it counts as that. */
static size_t literal_prefix(struct compiler *c, const struct alternative *alternative, bool *ret_subtree)
{
	const struct cordon_pattern *pattern = c->pattern;
	size_t len = 0;

	for (uint32_t i = 0; i < alternative->n; i++) {
		const struct component *component = &pattern->components[alternative->first + i];
		uint32_t first = component->first, n = component->n;

		*ret_subtree = component->kind == COMPONENT_DSTAR && i + 1 == alternative->n;
		if (*ret_subtree)
			return len;
		if (len)
			c->path[len++] = '/';
		if (component->kind == COMPONENT_GLOB && pattern->atoms[first].kind == TOKEN_CHAR) {
			n = pattern->atoms[first].n;
			first = pattern->atoms[first].first;
		} else if (component->kind != COMPONENT_LITERAL) {
			n = 0;
		}
		if (n)
			memcpy(c->path + len, pattern->bytes + first, n);
		len += n;
		if (component->kind != COMPONENT_LITERAL)
			return len;
	}
	*ret_subtree = true;
	return len;
}

static void set_edges(struct compiler *c, struct alternative *alternative, size_t prefix)
{
	const struct cordon_pattern *pattern = c->pattern;
	struct cordon_edges *edges = &alternative->edges;
	const struct component *last;
	const struct atom *atom;
	size_t n = prefix < 8 ? prefix : 8;

	memcpy(&edges->head, c->path, n);
	memset(&edges->head_mask, 0xff, n);
	if (!alternative->n)
		return;
	last = &pattern->components[alternative->first + alternative->n - 1];
	if (last->kind != COMPONENT_GLOB)
		return;
	atom = &pattern->atoms[last->first + last->n - 1];
	if (atom->kind != TOKEN_CHAR)
		return;
	n = atom->n < 8 ? atom->n : 8;
	memcpy((char *)&edges->tail + 8 - n, pattern->bytes + atom->first + atom->n - n, n);
	memset((char *)&edges->tail_mask + 8 - n, 0xff, n);
}

/* Keeps only the bits that both have and that are equal. */
static void join_edges(struct cordon_edges *edges, const struct cordon_edges *other)
{
	edges->head_mask &= other->head_mask & ~(edges->head ^ other->head);
	edges->tail_mask &= other->tail_mask & ~(edges->tail ^ other->tail);
}

/* Sets the specificity, the edges and the literal path; `mark` is where the bytes of this alternative start. */
static int measure(struct compiler *c, struct alternative *alternative, size_t mark)
{
	struct cordon_pattern *pattern = c->pattern;
	const struct component *components = alternative->n ? pattern->components + alternative->first : NULL;
	bool subtree = false;
	size_t prefix = literal_prefix(c, alternative, &subtree);

	for (uint32_t i = 0; i < alternative->n; i++)
		if (components[i].kind == COMPONENT_LITERAL)
			alternative->specificity.literal_components++;
	alternative->specificity.literal_prefix = prefix;
	alternative->covers = alternative->n == 0 || components[alternative->n - 1].kind == COMPONENT_LITERAL;
	set_edges(c, alternative, prefix);
	alternative->literal = NO_LITERAL;
	if (c->total > c->flat_max && (pattern->n_alternatives > 1 || c->flat_max == 0)) {
		/* Too long to keep: the graph matches instead, and only literal paths are still needed. */
		pattern->graph = true;
		pattern->n_components = pattern->n_atoms = 0;
		pattern->n_bytes = mark;
	}
	if (!subtree)
		return 0;
	c->path[prefix] = '\0';
	alternative->literal = (uint32_t)pattern->n_bytes;
	alternative->literal_len = (uint32_t)prefix;
	return add_bytes(c, c->path, prefix + 1);
}

static int add_alternative(struct compiler *c, size_t k, struct alternative *ret)
{
	struct cordon_pattern *pattern = c->pattern;
	size_t mark = pattern->n_bytes, base = pattern->n_components;
	struct alternative alternative = { .first = (uint32_t)base };
	int r = 0;

	write_out(c, k);
	c->total += c->n;
	if (c->n == 0) {
		cordon_pattern_fail(pattern, 1, "an alternative of the braces leaves nothing", c->err);
		cordon_error_hint(c->err, "the whole tree is `**`");
		return -EINVAL;
	}
	if (pattern->tokens[c->sequence[0]].kind == TOKEN_SLASH) {
		cordon_pattern_fail(pattern, pattern->tokens[c->sequence[0]].column, "it is an absolute path", c->err);
		cordon_error_hint(c->err, "patterns are relative to the root; leave out the leading slash");
		return -EINVAL;
	}
	for (size_t start = 0, i = 0; i <= c->n && r == 0; i++) {
		if (i < c->n && pattern->tokens[c->sequence[i]].kind != TOKEN_SLASH)
			continue;
		r = add_piece(c, base, start, i);
		start = i + 1;
	}
	if (r < 0)
		return r;
	alternative.n = (uint32_t)(pattern->n_components - base);
	*ret = alternative;
	return measure(c, ret, mark);
}

static int more_specific_first(const void *a, const void *b)
{
	const struct cordon_specificity *x = &((const struct alternative *)a)->specificity;
	const struct cordon_specificity *y = &((const struct alternative *)b)->specificity;

	if (x->literal_components != y->literal_components)
		return x->literal_components > y->literal_components ? -1 : 1;
	return (x->literal_prefix < y->literal_prefix) - (x->literal_prefix > y->literal_prefix);
}

static int add_alternatives(struct compiler *c)
{
	struct cordon_pattern *pattern = c->pattern;

	c->sequence = calloc(pattern->n_tokens, sizeof(*c->sequence));
	c->path = malloc(CORDON_PATTERN_MAX + 2);
	pattern->alternatives = calloc(pattern->n_alternatives, sizeof(*pattern->alternatives));
	/* Never NULL, although the pattern `.` has no components: an offset is added to it. */
	pattern->components = cordon_pattern_grow(NULL, 0, sizeof(*pattern->components));
	if (!c->sequence || !c->path || !pattern->alternatives || !pattern->components)
		return no_memory(c);
	for (size_t k = 0; k < pattern->n_alternatives; k++) {
		int r = add_alternative(c, k, &pattern->alternatives[k]);

		if (r < 0)
			return r;
		if (k == 0)
			pattern->edges = pattern->alternatives[0].edges;
		join_edges(&pattern->edges, &pattern->alternatives[k].edges);
	}
	return 0;
}

static int compile(struct cordon_pattern *pattern, size_t flat_max, struct cordon_error *err)
{
	struct compiler c = { .pattern = pattern, .flat_max = flat_max, .err = err };
	int r = cordon_pattern_tokenize(pattern, err);

	if (r < 0)
		return r;
	r = add_alternatives(&c);
	free(c.sequence);
	free(c.path);
	if (r < 0)
		return r;
	qsort(pattern->alternatives, pattern->n_alternatives, sizeof(*pattern->alternatives), more_specific_first);
	if (pattern->graph) {
		cordon_graph_prepare(pattern);
	} else {
		free(pattern->tokens);
		pattern->tokens = NULL;
	}
	return 0;
}

static int compile_text(const char *text, size_t flat_max, struct cordon_pattern **ret_pattern, size_t *ret_column,
			struct cordon_error *err)
{
	struct cordon_pattern *pattern = calloc(1, sizeof(*pattern));
	int r;

	if (pattern)
		pattern->text = strdup(text);
	if (!pattern || !pattern->text) {
		cordon_pattern_free(pattern);
		return cordon_fail_errno(err, -ENOMEM, "cannot compile a pattern");
	}
	r = compile(pattern, flat_max, err);
	if (r < 0) {
		*ret_column = pattern->fault;
		cordon_pattern_free(pattern);
		return r;
	}
	*ret_pattern = pattern;
	return 0;
}

int cordon_pattern_compile_within(const char *text, size_t flat_max, struct cordon_pattern **ret_pattern,
				  struct cordon_error *err)
{
	size_t column = 0;

	return compile_text(text, flat_max, ret_pattern, &column, err);
}

int cordon_pattern_check(const char *text, size_t *ret_column, struct cordon_error *err)
{
	struct cordon_pattern *pattern = NULL;
	size_t column = 0;
	int r = compile_text(text, CORDON_FLAT_MAX, &pattern, &column, err);

	cordon_pattern_free(pattern);
	if (r < 0)
		*ret_column = column;
	return r;
}

int cordon_pattern_compile(const char *text, struct cordon_pattern **ret_pattern, struct cordon_error *err)
{
	return cordon_pattern_compile_within(text, CORDON_FLAT_MAX, ret_pattern, err);
}

void cordon_pattern_deepen(struct cordon_pattern *pattern)
{
	pattern->deep = true;
	/* The end of a path is no test any more: the path may end far below the name that matches. */
	pattern->edges.tail_mask = 0;
	for (size_t i = 0; i < pattern->n_alternatives; i++) {
		pattern->alternatives[i].covers = true;
		pattern->alternatives[i].edges.tail_mask = 0;
	}
}

int cordon_pattern_compile_deep(const char *text, struct cordon_pattern **ret_pattern, struct cordon_error *err)
{
	int r = cordon_pattern_compile(text, ret_pattern, err);

	if (r == 0)
		cordon_pattern_deepen(*ret_pattern);
	return r;
}

struct cordon_pattern *cordon_pattern_free(struct cordon_pattern *pattern)
{
	if (!pattern)
		return NULL;
	free(pattern->text);
	free(pattern->tokens);
	free(pattern->classes);
	free(pattern->ranges);
	free(pattern->alternatives);
	free(pattern->components);
	free(pattern->atoms);
	free(pattern->bytes);
	free(pattern);
	return NULL;
}

const char *cordon_pattern_text(const struct cordon_pattern *pattern)
{
	return pattern->text;
}

const struct cordon_edges *cordon_pattern_edges(const struct cordon_pattern *pattern)
{
	return &pattern->edges;
}

size_t cordon_pattern_alternatives(const struct cordon_pattern *pattern)
{
	return pattern->n_alternatives;
}

const char *cordon_pattern_literal(const struct cordon_pattern *pattern, size_t i)
{
	uint32_t literal = i < pattern->n_alternatives ? pattern->alternatives[i].literal : NO_LITERAL;

	return literal == NO_LITERAL ? NULL : pattern->bytes + literal;
}

char *cordon_pattern_quote(const char *path)
{
	size_t len = strlen(path), at = 0;
	char *quoted;

	if (len == 0)
		return strdup(".");
	quoted = malloc(2 * len + 1);
	if (!quoted)
		return NULL;
	for (size_t i = 0; i < len; i++) {
		bool first_bang = i == 0 && path[0] == '!';
		bool extended = i > 0 && path[i] == '(' && strchr("+@!", path[i - 1]);

		if (first_bang || extended || strchr("*?[]{}\\", path[i]))
			quoted[at++] = '\\';
		quoted[at++] = path[i];
	}
	quoted[at] = '\0';
	return quoted;
}
