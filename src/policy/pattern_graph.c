/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Matches a pattern whose braces stand for too much to be written out: its tokens are the states of an automaton,
 * and the path is read once, one character at a time. A state is "the next token is i". It carries the best
 * specificity with which it was reached: one value for a component that is literal so far and one for a component
 * that is not, because only a literal component adds to the specificity when it ends. All steps lead forward, so one
 * ascending pass completes a set.
 *
 * Between components there are three more kinds of states, because written-out alternatives are cleaned: `//` and
 * `/./` mean nothing, and `**` stands for any number of components. A walk takes about 170 KiB of stack.
 */
#include "policy/pattern_impl.h"

#define STATES_MAX (CORDON_PATTERN_MAX + 1)

/* The value of a state that was reached is never 0. It consists of a mark, the number of literal components, and the
 * offset of the first wildcard, in half bytes. */
#define VALUE_MARK ((uint32_t)1 << 30)
#define VALUE_COMPONENT ((uint32_t)1 << 14)
#define WHERE_MASK (VALUE_COMPONENT - 1)
#define WHERE_NONE WHERE_MASK /* no wildcard so far */

/* Which value it is: of the current component, or, between components, of the last one. There `**` counts as
 * literal: both cover what lies below. */
enum { WILD, LITERAL };

struct set {
	uint64_t bits[STATES_MAX / 64 + 1];
	uint32_t value[STATES_MAX][2]; /* only where the bit is set */
};

struct walk {
	const struct cordon_pattern *pattern;
	const struct token *tokens;
	size_t words;		      /* words of a set that are in use */
	struct set *name, *next_name; /* states within a component */
	struct set start;	      /* states in which a component may start */
	struct set dot;		      /* the component starts with a dot, and may be only that dot */
	struct set dstar;	      /* states behind `**`; they stay for the rest of the path */
	size_t boundary;	      /* offset at which the next component starts */
	bool at_end;
	struct graph_answer *answer;
	struct set names[2];
};

static bool has(const struct set *set, size_t i)
{
	return set->bits[i / 64] >> (i % 64) & 1;
}

static inline void put_both(struct set *set, size_t i, const uint32_t value[static 2])
{
	uint64_t bit = (uint64_t)1 << (i % 64);
	uint32_t *old = set->value[i];

	if (!(set->bits[i / 64] & bit)) {
		set->bits[i / 64] |= bit;
		old[WILD] = value[WILD];
		old[LITERAL] = value[LITERAL];
		return;
	}
	if (old[WILD] < value[WILD])
		old[WILD] = value[WILD];
	if (old[LITERAL] < value[LITERAL])
		old[LITERAL] = value[LITERAL];
}

static inline void put_wild(struct set *set, size_t i, uint32_t value)
{
	put_both(set, i, (const uint32_t[]){ [WILD] = value, [LITERAL] = 0 });
}

static inline void put_literal(struct set *set, size_t i, uint32_t value)
{
	put_both(set, i, (const uint32_t[]){ [WILD] = 0, [LITERAL] = value });
}

static void clear(struct set *set)
{
	memset(set->bits, 0, sizeof(set->bits));
}

static bool ends_branch(const struct token *token)
{
	return token->kind == TOKEN_COMMA || token->kind == TOKEN_CLOSE;
}

/* The start of the branch behind the separator at `end`; when that branch is empty, what comes behind the group. */
static size_t branch_start(const struct token *tokens, size_t end)
{
	return ends_branch(&tokens[end + 1]) ? tokens[end + 1].next : end + 1;
}

static uint16_t least_of_branches(const struct token *tokens, size_t open)
{
	uint16_t least = tokens[tokens[open].next].least;

	for (size_t end = tokens[open].link; tokens[end].kind == TOKEN_COMMA; end = tokens[end].link) {
		uint16_t other = tokens[branch_start(tokens, end)].least;

		least = other < least ? other : least;
	}
	return least;
}

/* The next star, when only single characters stand between the two; else 0. */
static uint16_t later_star(const struct token *tokens, size_t star)
{
	size_t i = tokens[star].next;

	while (tokens[i].kind <= TOKEN_CLASS)
		i = tokens[i].next;
	return tokens[i].kind == TOKEN_STAR ? (uint16_t)i : 0;
}

/* The next `**`, when no brace stands between the two. *ret_literals is at least the number of literal components
 * between them. */
static uint16_t later_dstar(const struct token *tokens, size_t dstar, uint32_t *ret_literals)
{
	size_t i = tokens[dstar].next;
	bool literal = false, wild = false;

	*ret_literals = 0;
	for (; tokens[i].kind <= TOKEN_STAR || tokens[i].kind == TOKEN_SLASH; i = tokens[i].next) {
		if (tokens[i].kind == TOKEN_SLASH) {
			*ret_literals += literal && !wild;
			literal = wild = false;
		}
		literal = literal || tokens[i].kind == TOKEN_CHAR;
		wild = wild || (tokens[i].kind != TOKEN_CHAR && tokens[i].kind != TOKEN_SLASH);
	}
	return tokens[i].kind == TOKEN_DSTAR ? (uint16_t)i : 0;
}

void cordon_graph_prepare(struct cordon_pattern *pattern)
{
	struct token *tokens = pattern->tokens;

	for (size_t i = pattern->n_tokens - 1; i-- > 0;) {
		struct token *token = &tokens[i];
		size_t behind = token->kind == TOKEN_COMMA ? token->link : i + 1;

		token->next = ends_branch(&tokens[behind]) ? tokens[behind].next : (uint16_t)behind;
		if (token->kind <= TOKEN_CLASS) {
			token->least = (uint16_t)(tokens[token->next].least + 1);
		} else if (token->kind == TOKEN_STAR) {
			token->least = tokens[token->next].least;
			token->link = later_star(tokens, i);
		} else if (token->kind == TOKEN_DSTAR) {
			token->link = later_dstar(tokens, i, &token->value);
		} else if (token->kind == TOKEN_OPEN) {
			token->least = least_of_branches(tokens, i);
		}
	}
}

/* An opening brace leads to all its branches; a branch that is empty, to what comes behind the group. */
static bool pass_brace(const struct walk *w, struct set *set, size_t i, const uint32_t value[static 2])
{
	const struct token *tokens = w->tokens;

	if (tokens[i].kind != TOKEN_OPEN)
		return false;
	put_both(set, tokens[i].next, value);
	for (size_t end = tokens[i].link; tokens[end].kind == TOKEN_COMMA; end = tokens[end].link)
		put_both(set, branch_start(tokens, end), value);
	return true;
}

/* The better of the two values, for a step after which the difference no longer matters. */
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
	/* A literal path ends before the slash that precedes this boundary. So does the literal path before a last
	 * `**`. */
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

/* Takes the lowest state out of the set; `word` starts at 0 and is kept between calls. A state that is added
 * meanwhile is always higher, so a later call takes it. */
static inline bool take_lowest(const struct walk *w, struct set *set, size_t *word, size_t *ret_state)
{
	for (; *word < w->words; (*word)++) {
		uint64_t bits = set->bits[*word];

		if (bits) {
			*ret_state = 64 * *word + (size_t)__builtin_ctzll(bits);
			set->bits[*word] = bits & (bits - 1);
			return true;
		}
	}
	return false;
}

/* A component may start with token i. */
static void begin(struct walk *w, size_t i, const uint32_t value[static 2])
{
	const struct token *token = &w->tokens[i];
	uint32_t v;

	if (token->kind == TOKEN_SLASH) {
		put_both(&w->start, token->next, value);
		return;
	}
	if (token->kind == TOKEN_DSTAR) {
		put_wild(&w->dstar, i, first_wildcard(best(value), 2 * w->boundary));
		return;
	}
	/* A dot alone is no name. The next token shows whether a name follows. */
	if (token->kind == TOKEN_CHAR && token->value == '.')
		put_both(&w->dot, token->next, value);
	else
		w->answer->leads |= w->at_end;
	v = best(value);
	/* Something follows behind `a/**`, so the slash counts for the prefix. */
	if ((v & WHERE_MASK) != WHERE_NONE)
		v |= 1;
	put_literal(w->name, i, v);
}

/* Handles state i, which is in or behind `**`, at this boundary. */
static void pass_dstar(struct walk *w, size_t i)
{
	const struct token *token = &w->tokens[i];
	uint32_t value = w->dstar.value[i][WILD];

	w->answer->leads |= w->at_end;
	if (token->kind == TOKEN_DSTAR) {
		/* As with stars in a name: a later `**` that was reached with at least this value replaces the
		 * earlier one. */
		if (token->link && has(&w->dstar, token->link) &&
		    w->dstar.value[token->link][WILD] >= value + token->value * VALUE_COMPONENT) {
			w->dstar.bits[i / 64] &= ~((uint64_t)1 << (i % 64));
			return;
		}
		i = token->next;
		token = &w->tokens[i];
	}
	if (token->kind == TOKEN_SLASH)
		put_literal(&w->start, token->next, value);
	else if (token->kind == TOKEN_END)
		accept(w, value, true);
	else
		pass_brace(w, &w->dstar, i, (const uint32_t[]){ [WILD] = value, [LITERAL] = 0 });
}

static void pass_dot(struct walk *w, size_t i)
{
	const struct token *token = &w->tokens[i];
	const uint32_t *value = w->dot.value[i];

	if (token->kind == TOKEN_SLASH)
		put_both(&w->start, token->next, value);
	else if (token->kind == TOKEN_END)
		put_both(&w->start, i, value);
	else if (!pass_brace(w, &w->dot, i, value))
		w->answer->leads |= w->at_end;
}

static void pass_start(struct walk *w, size_t i)
{
	const uint32_t *value = w->start.value[i];

	if (w->tokens[i].kind == TOKEN_END) {
		accept(w, value[LITERAL], true);
		accept(w, value[WILD], w->pattern->deep);
	} else if (!pass_brace(w, &w->start, i, value)) {
		begin(w, i, value);
	}
}

/* Completes the sets at a boundary; they add to each other, but always forward. What may start here goes to w->name. */
static void close_boundary(struct walk *w)
{
	for (size_t i = 0; i < w->pattern->n_tokens; i++) {
		uint64_t some = w->start.bits[i / 64] | w->dot.bits[i / 64] | w->dstar.bits[i / 64];

		if (!(some >> (i % 64))) {
			i |= 63;
			continue;
		}
		i += (size_t)__builtin_ctzll(some >> (i % 64));
		/* The order matters: the first adds to the second, and the second to the third, also at the same
		 * token. */
		if (has(&w->dot, i))
			pass_dot(w, i);
		if (has(&w->start, i))
			pass_start(w, i);
		if (has(&w->dstar, i))
			pass_dstar(w, i);
	}
}

/* Steps a star over character c at offset `pos`. */
static inline void step_star(struct walk *w, size_t i, uint32_t c, size_t pos)
{
	const struct token *token = &w->tokens[i];
	const struct token *behind = &w->tokens[token->next];
	uint32_t wild = first_wildcard(best(w->name->value[i]), 2 * pos + 1);
	size_t later = token->link;

	/* Whatever this star could still reach, the later star that was already reached can reach as well. */
	if (later && has(w->name, later) && w->name->value[later][WILD] >= wild)
		return;
	put_wild(w->next_name, i, wild);
	/* Handle the most common case at once, without a visit of the next state. */
	if (behind->kind != TOKEN_CHAR)
		put_wild(w->name, token->next, wild);
	else if (behind->value == c)
		put_wild(w->next_name, behind->next, wild);
}

/* Steps an opening brace over character c. Branches that start with another character are skipped. */
static inline void step_brace(struct walk *w, size_t i, uint32_t c)
{
	const struct token *tokens = w->tokens;
	const uint32_t *value = w->name->value[i];
	size_t start = tokens[i].next;

	for (size_t end = tokens[i].link;; end = tokens[end].link) {
		if (tokens[start].kind != TOKEN_CHAR)
			put_both(w->name, start, value);
		else if (tokens[start].value == c)
			put_both(w->next_name, tokens[start].next, value);
		if (tokens[end].kind != TOKEN_COMMA)
			return;
		start = branch_start(tokens, end);
	}
}

/* Steps one state inside a name over character c at offset `pos`, `left` bytes before the end of the name. */
static inline void step(struct walk *w, size_t i, uint32_t c, size_t pos, size_t left)
{
	const struct token *token = &w->tokens[i];
	const uint32_t *value = w->name->value[i];

	if (token->least > left)
		return;
	switch (token->kind) {
	case TOKEN_CHAR:
		if (token->value == c)
			put_both(w->next_name, token->next, value);
		return;
	case TOKEN_CLASS:
		if (!cordon_class_has(w->pattern, token->value, c))
			return;
		/* fall through */
	case TOKEN_ANY:
		put_wild(w->next_name, token->next, first_wildcard(best(value), 2 * pos + 1));
		return;
	case TOKEN_STAR:
		step_star(w, i, c, pos);
		return;
	case TOKEN_OPEN:
		step_brace(w, i, c);
		return;
	default: /* the name continues where the pattern ends it */
		return;
	}
}

/* Handles one state at the end of a name at offset `pos`. A literal component is counted now. */
static void finish(struct walk *w, size_t i, size_t pos)
{
	const struct token *token = &w->tokens[i];
	const uint32_t *value = w->name->value[i];
	uint32_t paid[2] = { value[WILD], value[LITERAL] ? value[LITERAL] + VALUE_COMPONENT : 0 };

	if (token->kind == TOKEN_STAR)
		put_wild(w->name, token->next, first_wildcard(best(value), 2 * pos + 1));
	else if (token->kind == TOKEN_SLASH)
		put_both(&w->start, token->next, paid);
	else if (token->kind == TOKEN_END)
		put_both(&w->start, i, paid);
	else
		pass_brace(w, w->name, i, value);
}

static bool is_empty(const struct walk *w, const struct set *set)
{
	for (size_t i = 0; i < w->words; i++)
		if (set->bits[i])
			return false;
	return true;
}

/* Reads one name; false when no state is left that could match. */
static bool read_name(struct walk *w, const struct cordon_subject *subject, size_t j)
{
	size_t end = (size_t)subject->start[j + 1] - 1, n;

	for (size_t pos = subject->start[j]; pos < end; pos += n) {
		uint32_t c = cordon_char_at(subject->path + pos, end - pos, &n);
		struct set *read = w->name;

		for (size_t word = 0, i; take_lowest(w, w->name, &word, &i);)
			step(w, i, c, pos, end - pos);
		w->name = w->next_name;
		w->next_name = read;
		if (is_empty(w, w->name))
			break;
	}
	for (size_t word = 0, i; take_lowest(w, w->name, &word, &i);)
		finish(w, i, end);
	return !is_empty(w, &w->start) || !is_empty(w, &w->dstar);
}

void cordon_graph_walk(const struct cordon_pattern *pattern, const struct cordon_subject *subject,
		       struct graph_answer *ret)
{
	CORDON_UNCLEARED struct walk w;

	*ret = (struct graph_answer){ 0 };
	w.pattern = pattern;
	w.tokens = pattern->tokens;
	w.words = (pattern->n_tokens + 63) / 64;
	w.answer = ret;
	w.name = &w.names[0];
	w.next_name = &w.names[1];
	clear(w.name);
	clear(w.next_name);
	clear(&w.start);
	clear(&w.dot);
	clear(&w.dstar);
	put_literal(&w.start, 0, VALUE_MARK | WHERE_NONE);
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
