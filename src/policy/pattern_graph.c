/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Matching a pattern whose braces stand for too much to be written out: its tokens are the states of an automaton,
 * and the path is read once, a character at a time. A state is "the next token is i". It carries the best
 * specificity with which it was reached, for a component that is literal so far and for one that is not, because the
 * two are paid differently when the component ends. All steps lead forward, so one ascending pass closes a set.
 *
 * Between components there are three more kinds of states, for what cleaning does to alternatives that were written
 * out: `//` and `/./` mean nothing, and `**` stands for any number of components.
 */
#include "policy/pattern_impl.h"

#define STATES_MAX (CORDON_PATTERN_MAX + 1)

/* A reached state is never 0: a mark, the literal components, and where the first wildcard was met, in half bytes. */
#define VALUE_MARK ((uint32_t)1 << 30)
#define VALUE_COMPONENT ((uint32_t)1 << 14)
#define WHERE_MASK (VALUE_COMPONENT - 1)
#define WHERE_NONE WHERE_MASK /* no wildcard so far */

/* Of the component at hand; between components, of the last one, where `**` is as good as a literal: both cover. */
enum { WILD, LITERAL };

struct set {
	uint64_t bits[STATES_MAX / 64 + 1];
	uint32_t value[STATES_MAX][2]; /* only where the bit is set */
};

struct walk {
	const struct cordon_pattern *pattern;
	const struct token *tokens;
	struct set *name, *next_name; /* within a component */
	struct set start;           /* a component may start */
	struct set dot;             /* it starts with a dot that may be all of it */
	struct set dstar;           /* behind `**`; stays for the rest of the path */
	size_t boundary;            /* offset of the component that starts */
	bool at_end;
	struct graph_answer *answer;
	struct set names[2];
};

static void put(struct set *set, size_t i, int literal, uint32_t value)
{
	uint64_t bit = (uint64_t)1 << (i % 64);

	if (!value)
		return;
	if (!(set->bits[i / 64] & bit)) {
		set->bits[i / 64] |= bit;
		set->value[i][WILD] = set->value[i][LITERAL] = 0;
	}
	if (set->value[i][literal] < value)
		set->value[i][literal] = value;
}

static void put_both(struct set *set, size_t i, const uint32_t value[static 2])
{
	put(set, i, WILD, value[WILD]);
	put(set, i, LITERAL, value[LITERAL]);
}

static void clear(struct set *set)
{
	memset(set->bits, 0, sizeof(set->bits));
}

/* Braces: an opening one leads to all its branches, the end of a branch to the end of the group. */
static bool pass_braces(const struct walk *w, struct set *set, size_t i, const uint32_t value[static 2])
{
	const struct token *tokens = w->tokens;

	switch (tokens[i].kind) {
	case TOKEN_OPEN:
		put_both(set, i + 1, value);
		for (size_t end = tokens[i].link; tokens[end].kind == TOKEN_COMMA; end = tokens[end].link)
			put_both(set, end + 1, value);
		return true;
	case TOKEN_COMMA:
		put_both(set, tokens[i].link, value);
		return true;
	case TOKEN_CLOSE:
		put_both(set, i + 1, value);
		return true;
	default:
		return false;
	}
}

/* The best of both, for a step that makes the difference meaningless. */
static uint32_t best(const uint32_t value[static 2])
{
	return value[WILD] > value[LITERAL] ? value[WILD] : value[LITERAL];
}

static uint32_t first_wildcard(uint32_t value, size_t where)
{
	return (value & WHERE_MASK) == WHERE_NONE ? (value & ~WHERE_MASK) | (uint32_t)where : value;
}

static void accept(struct walk *w, uint32_t value, bool covers)
{
	size_t where = value & WHERE_MASK;
	struct cordon_specificity found = { .literal_components = (value & ~VALUE_MARK) / VALUE_COMPONENT };
	struct cordon_specificity *old = &w->answer->specificity;

	if (!value || !(covers || w->at_end))
		return;
	/* A literal path ends in front of the slash before this boundary, and so does the one in front of a last `**`. */
	if (where == WHERE_NONE)
		where = 2 * w->boundary;
	found.literal_prefix = where % 2 ? where / 2 : where ? where / 2 - 1 : 0;
	if (!w->answer->matches || found.literal_components > old->literal_components ||
	    (found.literal_components == old->literal_components && found.literal_prefix > old->literal_prefix))
		*old = found;
	w->answer->matches = true;
	w->answer->covers |= covers;
	w->answer->leads |= covers;
}

/* Runs `step` for each state in ascending order, those that it adds included; the set is empty afterwards. */
#define FOR_EACH_TAKEN(set, i)                                                                                    \
	for (size_t word_ = 0; word_ < CORDON_ARRAY_SIZE((set)->bits); word_++)                                    \
		for (size_t i; (set)->bits[word_] &&                                                               \
			       (i = 64 * word_ + (size_t)__builtin_ctzll((set)->bits[word_]),                      \
			       (set)->bits[word_] &= (set)->bits[word_] - 1, true);)

/* A component may start with token i. */
static void begin(struct walk *w, size_t i, const uint32_t value[static 2])
{
	const struct token *token = &w->tokens[i];
	uint32_t v;

	if (token->kind == TOKEN_SLASH) {
		put_both(&w->start, i + 1, value);
		return;
	}
	if (token->kind == TOKEN_DSTAR) {
		put(&w->dstar, i + 1, WILD, first_wildcard(best(value), 2 * w->boundary));
		return;
	}
	/* A dot alone is no name: whether one can follow shows behind it. */
	if (token->kind == TOKEN_CHAR && token->value == '.')
		put_both(&w->dot, i + 1, value);
	else
		w->answer->leads |= w->at_end;
	v = best(value);
	/* Behind `a/**` something follows after all, so the slash counts for the prefix. */
	if ((v & WHERE_MASK) != WHERE_NONE)
		v |= 1;
	put(w->name, i, LITERAL, v);
}

/* Closes the sets of a boundary: what may start here goes to w->name. */
static void close_boundary(struct walk *w)
{
	/* The three sets feed each other, always forward: token by token, all three at once. */
	for (size_t i = 0; i < w->pattern->n_tokens; i++) {
		uint64_t bit = (uint64_t)1 << (i % 64);
		size_t word = i / 64;
		uint64_t some = w->start.bits[word] | w->dot.bits[word] | w->dstar.bits[word];
		enum token_kind kind = w->tokens[i].kind;

		if (!(some >> (i % 64))) {
			i |= 63;
			continue;
		}
		if (w->dstar.bits[word] & bit) {
			const uint32_t *value = w->dstar.value[i];

			w->answer->leads |= w->at_end;
			if (kind == TOKEN_SLASH)
				put(&w->start, i + 1, LITERAL, value[WILD]);
			else if (kind == TOKEN_END)
				accept(w, value[WILD], true);
			else
				pass_braces(w, &w->dstar, i, value);
		}
		if (w->dot.bits[word] & bit) {
			const uint32_t *value = w->dot.value[i];

			if (kind == TOKEN_SLASH)
				put_both(&w->start, i + 1, value);
			else if (kind == TOKEN_END)
				put_both(&w->start, i, value);
			else if (!pass_braces(w, &w->dot, i, value))
				w->answer->leads |= w->at_end;
		}
		if (w->start.bits[word] & bit) {
			const uint32_t *value = w->start.value[i];

			if (kind == TOKEN_END) {
				accept(w, value[LITERAL], true);
				accept(w, value[WILD], false);
			} else if (!pass_braces(w, &w->start, i, value)) {
				begin(w, i, value);
			}
		}
	}
}

/* One state inside a name, before character c at offset `pos`. */
static void step(struct walk *w, size_t i, uint32_t c, size_t pos)
{
	const struct token *token = &w->tokens[i];
	const uint32_t *value = w->name->value[i];
	uint32_t wild;

	switch (token->kind) {
	case TOKEN_CHAR:
		if (token->value == c)
			put_both(w->next_name, i + 1, value);
		return;
	case TOKEN_SLASH:
	case TOKEN_END:
	case TOKEN_DSTAR:
		return;
	case TOKEN_OPEN:
	case TOKEN_COMMA:
	case TOKEN_CLOSE:
		pass_braces(w, w->name, i, value);
		return;
	default:
		break;
	}
	wild = first_wildcard(best(value), 2 * pos + 1);
	if (token->kind == TOKEN_STAR) {
		put(w->next_name, i, WILD, wild);
		/* The commonest case without a visit of its own. */
		if (token[1].kind != TOKEN_CHAR)
			put(w->name, i + 1, WILD, wild);
		else if (token[1].value == c)
			put(w->next_name, i + 2, WILD, wild);
	} else if (token->kind == TOKEN_ANY || cordon_class_has(w->pattern, token->value, c)) {
		put(w->next_name, i + 1, WILD, wild);
	}
}

/* One state at the end of a name at offset `pos`; a literal component is paid now. */
static void finish(struct walk *w, size_t i, size_t pos)
{
	const struct token *token = &w->tokens[i];
	const uint32_t *value = w->name->value[i];
	uint32_t paid[2] = { value[WILD], value[LITERAL] ? value[LITERAL] + VALUE_COMPONENT : 0 };

	if (token->kind == TOKEN_STAR)
		put(w->name, i + 1, WILD, first_wildcard(best(value), 2 * pos + 1));
	else if (token->kind == TOKEN_SLASH)
		put_both(&w->start, i + 1, paid);
	else if (token->kind == TOKEN_END)
		put_both(&w->start, i, paid);
	else
		pass_braces(w, w->name, i, value);
}

static bool is_empty(const struct set *set)
{
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(set->bits); i++)
		if (set->bits[i])
			return false;
	return true;
}

/* Reads one name; false when nothing is left that could match. */
static bool read_name(struct walk *w, const struct cordon_subject *subject, size_t j)
{
	size_t end = (size_t)subject->start[j + 1] - 1, n;

	for (size_t pos = subject->start[j]; pos < end; pos += n) {
		uint32_t c = cordon_char_at(subject->path + pos, end - pos, &n);
		struct set *read = w->name;

		FOR_EACH_TAKEN(w->name, i)
			step(w, i, c, pos);
		w->name = w->next_name;
		w->next_name = read;
		if (is_empty(w->name))
			break;
	}
	FOR_EACH_TAKEN(w->name, i)
		finish(w, i, end);
	return !is_empty(&w->start) || !is_empty(&w->dstar);
}

void cordon_graph_walk(const struct cordon_pattern *pattern, const struct cordon_subject *subject,
		       struct graph_answer *ret)
{
	CORDON_UNCLEARED struct walk w;

	*ret = (struct graph_answer){ 0 };
	w.pattern = pattern;
	w.tokens = pattern->tokens;
	w.answer = ret;
	w.name = &w.names[0];
	w.next_name = &w.names[1];
	clear(w.name);
	clear(w.next_name);
	clear(&w.start);
	clear(&w.dot);
	clear(&w.dstar);
	put(&w.start, 0, LITERAL, VALUE_MARK | WHERE_NONE);
	for (size_t j = 0;; j++) {
		w.boundary = j ? subject->start[j] : 0;
		w.at_end = j == subject->n;
		close_boundary(&w);
		clear(&w.start);
		clear(&w.dot);
		if (w.at_end || !read_name(&w, subject, j))
			return;
	}
}
