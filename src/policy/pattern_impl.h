/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a pattern is stored in memory; private to the pattern_*.c files and decide.c.
 *
 * pattern_parse.c turns the text into tokens, which still contain the braces. pattern_compile.c writes out each
 * alternative that they stand for, checks it and measures it. If there is only one, or all of them together have no
 * more than CORDON_FLAT_MAX tokens, they are kept as lists of components, and pattern_match.c matches them one by
 * one, the most specific first. Otherwise pattern_graph.c walks the tokens themselves as a graph, so that 1,024
 * alternatives of 4 KiB that differ in a few letters cost no more than one.
 */
#ifndef CORDON_POLICY_PATTERN_IMPL_H
#define CORDON_POLICY_PATTERN_IMPL_H

#include "policy/pattern.h"

#define CORDON_FLAT_MAX 1024
#define CORDON_COMPONENTS_MAX (CORDON_PATH_MAX / 2)

/* A byte that is not valid UTF-8 counts as a character of its own, with a number above all real ones. */
#define CORDON_CHAR_INVALID 0x110000u

enum token_kind {
	TOKEN_CHAR,  /* value: the character */
	TOKEN_ANY,   /* ? */
	TOKEN_CLASS, /* value: index of the class */
	TOKEN_STAR,  /* * */
	/* **; for the graph, value: literal components up to the next `**`, when every match must pass that one. */
	TOKEN_DSTAR,
	TOKEN_SLASH,
	TOKEN_OPEN, /* { value: alternatives that the group stands for; link: the first TOKEN_COMMA */
	/* Ends a branch; value: alternatives of the branch; link: the next TOKEN_COMMA, or the TOKEN_CLOSE. */
	TOKEN_COMMA,
	TOKEN_CLOSE, /* ends the last branch; value as for a comma */
	TOKEN_END,
};

struct token {
	uint8_t kind;
	uint16_t link;	 /* for the graph, of a star: the next star, when every match must pass it; else 0 */
	uint16_t next;	 /* for the graph: the token behind this one, ends of branches skipped */
	uint16_t least;	 /* for the graph: characters that a name must still have to get from here to its end */
	uint16_t column; /* in characters, from 1 */
	uint32_t value;
};

struct class_range {
	uint32_t low, high;
};

struct char_class {
	uint64_t ascii[2]; /* the answer for ASCII, negation included */
	bool negated;
	uint32_t first, n; /* ranges */
};

enum component_kind { COMPONENT_LITERAL, COMPONENT_GLOB, COMPONENT_ANY, COMPONENT_DSTAR };

/* LITERAL: n bytes from `first`. GLOB: n atoms from `first`. ANY is a lone `*`. */
struct component {
	uint8_t kind;
	uint32_t first, n;
};

/* STAR, ANY; CHAR: n bytes from `first`; CLASS: its index in `first`. Kinds are those of tokens. */
struct atom {
	uint8_t kind;
	uint32_t first, n;
	uint32_t least; /* bytes that a name must still have from here to its end */
};

#define NO_LITERAL UINT32_MAX

struct alternative {
	struct cordon_specificity specificity;
	struct cordon_edges edges;
	uint32_t first, n; /* components; none when the pattern is walked as a graph */
	uint32_t literal;  /* offset of the unescaped path in `bytes`, or NO_LITERAL when each name must be judged */
	uint32_t literal_len;
	bool covers; /* what lies below a match matches too: the last component is literal, or the pattern is deep */
};

struct cordon_pattern {
	char *text;
	struct cordon_edges edges; /* what the edges of all alternatives have in common */
	struct token *tokens;	   /* ends with TOKEN_END; kept for the graph only */
	size_t n_tokens;
	struct char_class *classes;
	size_t n_classes;
	struct class_range *ranges;
	size_t n_ranges;
	struct alternative *alternatives; /* most specific first */
	size_t n_alternatives;
	struct component *components;
	size_t n_components;
	struct atom *atoms;
	size_t n_atoms;
	char *bytes;
	size_t n_bytes;
	bool graph;
	bool deep;    /* compiled by cordon_pattern_compile_deep() */
	size_t fault; /* the column that an error named, or 0 */
};

/* A path that was split into components, once for all the patterns that match it. */
struct cordon_subject {
	const char *path;
	size_t len;
	uint64_t head, tail; /* first and last 8 bytes, zero where the path is shorter */
	size_t n;
	uint16_t start[CORDON_COMPONENTS_MAX + 2]; /* start[n] is len + 1 */
};

static inline bool cordon_edges_fit(const struct cordon_edges *edges, const struct cordon_subject *subject)
{
	return !(((subject->head ^ edges->head) & edges->head_mask) | ((subject->tail ^ edges->tail) & edges->tail_mask));
}

/* False when the path is not clean and relative, or too long. */
bool cordon_subject_init(struct cordon_subject *subject, const char *path);
bool cordon_pattern_match_subject(const struct cordon_pattern *pattern, const struct cordon_subject *subject,
				  struct cordon_specificity *ret);
/* *ret, when not NULL, is the specificity of the most specific alternative that covers the path, or less. */
bool cordon_pattern_covers_subject(const struct cordon_pattern *pattern, const struct cordon_subject *subject,
				   struct cordon_specificity *ret);
bool cordon_pattern_leads_subject(const struct cordon_pattern *pattern, const struct cordon_subject *subject);

/* The result of a walk of the graph; `specificity` is set when `matches`. */
struct graph_answer {
	bool matches, covers, leads;
	struct cordon_specificity specificity;
};
/* Sets the fields of the tokens that the walk needs. */
void cordon_graph_prepare(struct cordon_pattern *pattern);
void cordon_graph_walk(const struct cordon_pattern *pattern, const struct cordon_subject *subject,
		       struct graph_answer *ret);

/* The character at s[0..n), n > 0; *ret_len is 1 to 4. */
uint32_t cordon_char_at(const char *s, size_t n, size_t *ret_len);
/* The other way round; returns the number of bytes. */
size_t cordon_char_encode(uint32_t ch, char out[static 4]);
bool cordon_class_has(const struct cordon_pattern *pattern, uint32_t index, uint32_t c);

/* Compiles with another bound than CORDON_FLAT_MAX; 0 always makes a graph, even for a single alternative. */
int cordon_pattern_compile_within(const char *text, size_t flat_max, struct cordon_pattern **ret_pattern,
				  struct cordon_error *err);

/* Makes a compiled pattern cover whatever lies below a match. */
void cordon_pattern_deepen(struct cordon_pattern *pattern);

/* Fills tokens, classes and ranges. */
int cordon_pattern_tokenize(struct cordon_pattern *pattern, struct cordon_error *err);
/* Makes room for one more; the array, its length and the size of one element. NULL without memory. */
void *cordon_pattern_grow(void *array, size_t n, size_t size);
/* "bad pattern `...` at column N: message". The hint is set by the caller. */
int cordon_pattern_fail(struct cordon_pattern *pattern, size_t column, const char *message, struct cordon_error *err);

#endif
