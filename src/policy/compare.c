/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compares two policies by walking the automaton of all their rules.
 *
 * Each alternative of each pattern is a row of nodes, and a state is the set of nodes that a path has reached, together
 * with what the current name looks like so far. The walk is by breadth, so the first path that reaches a state is a
 * shortest one. In a state only those characters are tried that some node tells apart, and one that none does.
 */
#include <stdio.h>

#include "base/path.h"
#include "base/text.h"
#include "policy/compare.h"
#include "policy/pattern_impl.h"
#include "policy/shares.h"

enum node_kind {
	NODE_CHAR, /* value: the character */
	NODE_ANY,
	NODE_CLASS, /* value: its index */
	NODE_STAR,
	NODE_NAME_END, /* a slash or the end of the path must follow */
	NODE_BETWEEN,  /* before a name that `**` may take */
	NODE_WITHIN,   /* in such a name; follows its NODE_BETWEEN */
	NODE_END,      /* matches this path, and nothing below it */
	NODE_COVER,    /* matches this path and everything below it; value: the first node of the row */
};

/* Which of the two policies: owners of a rule, and those that deny everything from here on. */
enum { OF_BEFORE = 1, OF_AFTER = 2, OF_BOTH = 3 };

struct node {
	uint8_t kind;
	uint8_t owners;
	uint32_t value;
	const struct cordon_pattern *pattern;
};

/* What the name at the end of the path is so far: only a path that ends in a real name is one. */
enum phase { PHASE_ROOT, PHASE_SLASH, PHASE_DOT, PHASE_DOTS, PHASE_NAME };

struct state {
	size_t first; /* of its nodes, in `pool` */
	uint32_t n;
	uint32_t from, by; /* the state before, and the character that led from it to here */
	uint16_t len;	   /* bytes of the path */
	uint8_t phase;
	uint8_t shut; /* policies that deny what lies here, whatever follows: their own nodes are left out */
};

/* A pattern whose nodes exist. */
struct row {
	const struct cordon_pattern *pattern;
	size_t first, end; /* its nodes */
};

#define POOL_MAX ((size_t)1 << 26) /* nodes of all states */
#define NO_STATE UINT32_MAX

struct walk {
	const struct cordon_policy *before, *after;
	/* Whether it is only looked for a path that `after` lets through and `before` does not; then the root of `after` is
	 * `prefix` in that of `before`. */
	bool within;
	const char *prefix;
	size_t n_prefix;
	struct cordon_policy_difference freer; /* the first such path; its witness is NULL when there is none */
	size_t n_outer;			       /* with a prefix: nodes of `before`, which come first */
	size_t first_row;		       /* of those that count as there already */
	struct cordon_error *err;
	struct cordon_pattern **own; /* patterns that were compiled for the comparison */
	size_t n_own;
	struct row *rows; /* each pattern is added once */
	uint8_t owner;	  /* whose rules are being added */
	size_t n_rows;
	struct node *nodes;
	size_t n_nodes;
	struct state *states;
	size_t n_states;
	uint32_t *pool;
	size_t n_pool, pool_cap;
	uint32_t *table; /* of states by their hash, open addressing */
	size_t table_size;
	uint8_t shut;	/* of the state that is being made */
	uint32_t *next; /* the nodes of the state that is being made */
	size_t n_next, next_cap;
	uint32_t *marks; /* by node: the last round in which it was added */
	uint32_t round;
	uint32_t *points; /* the characters to try */
	size_t n_points, points_cap;
	struct cordon_policy_differences *found;
	char path[CORDON_PATH_MAX];
};

static int no_memory(struct walk *w)
{
	return cordon_fail_errno(w->err, -ENOMEM, "cannot compare policies");
}

static int too_big(struct walk *w)
{
	cordon_fail(w->err, -E2BIG, CORDON_KIND_LIMIT, "the policies are too large to be compared exactly");
	cordon_error_hint(w->err, "compare smaller parts: fewer patterns with `*` or `?` in the middle of names");
	return -E2BIG;
}

/* Makes room for one more element, doubling. */
static bool grow(void *array, size_t n, size_t *cap, size_t size)
{
	size_t more = *cap ? 2 * *cap : 64;
	void *larger;

	if (n < *cap)
		return true;
	larger = realloc(*(void **)array, more * size);
	if (!larger)
		return false;
	*(void **)array = larger;
	*cap = more;
	return true;
}

/* ---- rows of nodes ---- */

static int add_node(struct walk *w, const struct cordon_pattern *pattern, enum node_kind kind, uint32_t value)
{
	struct node *nodes;

	if (w->n_nodes == CORDON_COMPARE_NODES_MAX)
		return too_big(w);
	nodes = cordon_pattern_grow(w->nodes, w->n_nodes, sizeof(*nodes));
	if (!nodes)
		return no_memory(w);
	w->nodes = nodes;
	nodes[w->n_nodes++] = (struct node){
		.kind = (uint8_t)kind, .owners = w->owner, .value = value, .pattern = pattern
	};
	return 0;
}

static int add_text(struct walk *w, const struct cordon_pattern *pattern, uint32_t first, uint32_t n)
{
	int r = 0;

	for (size_t at = 0, len; r == 0 && at < n; at += len)
		r = add_node(w, pattern, NODE_CHAR, cordon_char_at(pattern->bytes + first + at, n - at, &len));
	return r;
}

static int add_atom(struct walk *w, const struct cordon_pattern *pattern, const struct atom *atom)
{
	switch (atom->kind) {
	case TOKEN_CHAR:
		return add_text(w, pattern, atom->first, atom->n);
	case TOKEN_CLASS:
		return add_node(w, pattern, NODE_CLASS, atom->first);
	default:
		return add_node(w, pattern, atom->kind == TOKEN_STAR ? NODE_STAR : NODE_ANY, 0);
	}
}

static int add_component(struct walk *w, const struct cordon_pattern *pattern, const struct component *component)
{
	int r = 0;

	if (component->kind == COMPONENT_DSTAR) {
		r = add_node(w, pattern, NODE_BETWEEN, 0);
		return r < 0 ? r : add_node(w, pattern, NODE_WITHIN, 0);
	}
	if (component->kind == COMPONENT_LITERAL)
		r = add_text(w, pattern, component->first, component->n);
	else if (component->kind == COMPONENT_ANY)
		r = add_node(w, pattern, NODE_STAR, 0);
	for (uint32_t i = 0; component->kind == COMPONENT_GLOB && r == 0 && i < component->n; i++)
		r = add_atom(w, pattern, &pattern->atoms[component->first + i]);
	return r < 0 ? r : add_node(w, pattern, NODE_NAME_END, 0);
}

static int add_alternative(struct walk *w, const struct cordon_pattern *pattern, const struct alternative *alternative)
{
	const struct component *components = pattern->components + alternative->first;
	bool covers = alternative->covers;
	size_t first = w->n_nodes;
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < alternative->n; i++)
		r = add_component(w, pattern, &components[i]);
	if (alternative->n && components[alternative->n - 1].kind == COMPONENT_DSTAR)
		covers = true;
	return r < 0 ? r : add_node(w, pattern, covers ? NODE_COVER : NODE_END, (uint32_t)first);
}

static bool has_row(struct walk *w, const struct cordon_pattern *pattern)
{
	for (size_t i = w->first_row; i < w->n_rows; i++) {
		const struct row *row = &w->rows[i];

		if (row->pattern->deep != pattern->deep || !cordon_streq(row->pattern->text, pattern->text))
			continue;
		for (size_t id = row->first; id < row->end; id++)
			w->nodes[id].owners |= w->owner;
		return true;
	}
	return false;
}

/* A pattern of our own, with all its alternatives written out. */
static int compile(struct walk *w, const char *text, bool deep, const struct cordon_pattern **ret)
{
	struct cordon_pattern **own = cordon_pattern_grow(w->own, w->n_own, sizeof(struct cordon_pattern *));
	int r;

	if (!own)
		return no_memory(w);
	w->own = own;
	r = cordon_pattern_compile_within(text, CORDON_COMPARE_NODES_MAX, &own[w->n_own], w->err);
	if (r < 0)
		return r;
	if (deep)
		cordon_pattern_deepen(own[w->n_own]);
	*ret = own[w->n_own++];
	return (*ret)->graph ? too_big(w) : 0;
}

static bool is_utf8(const char *text)
{
	return !text || cordon_utf8_valid(text, strlen(text));
}

static int add_pattern(struct walk *w, const struct cordon_pattern *pattern)
{
	struct row *rows;
	int r = 0;

	if (has_row(w, pattern))
		return 0;
	if (!is_utf8(pattern->text)) {
		cordon_fail(w->err, -EILSEQ, CORDON_KIND_USAGE, "`%s` is not UTF-8, and can't be compared",
			    pattern->text);
		return -EILSEQ;
	}
	if (pattern->graph && (r = compile(w, pattern->text, pattern->deep, &pattern)) < 0)
		return r;
	rows = cordon_pattern_grow(w->rows, w->n_rows, sizeof(*rows));
	if (!rows)
		return no_memory(w);
	w->rows = rows;
	rows[w->n_rows] = (struct row){ .pattern = pattern, .first = w->n_nodes };
	for (size_t i = 0; r == 0 && i < pattern->n_alternatives; i++)
		r = add_alternative(w, pattern, &pattern->alternatives[i]);
	rows[w->n_rows++].end = w->n_nodes;
	return r;
}

/* A path that a rule names without wildcards, with all that lies below it. */
static int add_path(struct walk *w, const char *dir, const char *path)
{
	const struct cordon_pattern *pattern;
	autofree char *quoted = NULL;
	char joined[CORDON_PATH_MAX];
	int r;

	if (!path)
		return 0;
	if (cordon_path_join(dir, path, joined, sizeof(joined)) < 0)
		return 0; /* no path is that long */
	quoted = cordon_pattern_quote(joined);
	if (!quoted)
		return no_memory(w);
	r = compile(w, quoted, false, &pattern);
	return r < 0 ? r : add_pattern(w, pattern);
}

/*
 * A rule with other bytes than UTF-8 that only forbids can be left out where the inner policy has it: what it covers, that
 * policy forbids, and all else is told apart by the other rules. It may be about a name that a run made.
 */
static bool leaves_out_protected(const struct walk *w, const struct cordon_policy *part,
				 const struct cordon_protected *held)
{
	bool there = part == w->after;

	if (!w->within || (is_utf8(held->path) && is_utf8(held->target)))
		return false;
	for (size_t i = 0; !there && !w->n_prefix && i < w->after->n_protected; i++)
		there = cordon_streq(w->after->protected_paths[i].path, held->path);
	return there;
}

static bool leaves_out_grant(const struct walk *w, const struct cordon_policy *part, const struct cordon_grant *grant)
{
	const char *text = cordon_pattern_text(grant->pattern);
	bool there = part == w->after;

	if (!w->within || grant->access != CORDON_ACCESS_NONE || is_utf8(text))
		return false;
	for (size_t i = 0; !there && !w->n_prefix && i < w->after->n_grants; i++)
		there = w->after->grants[i].access == CORDON_ACCESS_NONE &&
			cordon_streq(cordon_pattern_text(w->after->grants[i].pattern), text);
	return there;
}

static int add_rules(struct walk *w, const struct cordon_policy *part, const char *dir)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < part->n_protected; i++) {
		if (leaves_out_protected(w, part, &part->protected_paths[i]))
			continue;
		r = add_path(w, dir, part->protected_paths[i].path);
		if (r == 0)
			r = add_path(w, dir, part->protected_paths[i].target);
	}
	/* In a share everything is granted alike, so its grants tell no two paths apart. */
	for (size_t i = 0; r == 0 && !*dir && i < part->n_grants; i++)
		if (!leaves_out_grant(w, part, &part->grants[i]))
			r = add_pattern(w, part->grants[i].pattern);
	return r;
}

static int add_policy(struct walk *w, const struct cordon_policy *policy)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i <= policy->n_fences; i++)
		r = add_rules(w, cordon_policy_part(policy, i), "");
	for (size_t i = 0; r == 0 && i < policy->n_shares; i++) {
		const struct cordon_policy_share *share = &policy->shares[i];

		if (!share->in_root)
			continue;
		r = add_path(w, "", share->in_root);
		if (r == 0 && share->policy)
			r = add_rules(w, share->policy, share->in_root);
	}
	return r;
}

/* ---- states ---- */

/* Adds a node to the state that is being made, and those that are reached from it without a character. */
static int reach(struct walk *w, uint32_t id)
{
	for (;;) {
		enum node_kind kind = w->nodes[id].kind;

		if (w->marks[id] == w->round || !(w->nodes[id].owners & ~w->shut))
			return 0;
		w->marks[id] = w->round;
		if (!grow(&w->next, w->n_next, &w->next_cap, sizeof(*w->next)))
			return no_memory(w);
		w->next[w->n_next++] = id;
		if (kind == NODE_STAR)
			id += 1;
		else if (kind == NODE_BETWEEN)
			id += 2;
		else
			return 0;
	}
}

static int by_number(const void *a, const void *b)
{
	const uint32_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* Sorts the nodes, and drops those of a row that covers everything from here on. */
static void tidy(struct walk *w)
{
	uint32_t least = UINT32_MAX;
	size_t kept = w->n_next;

	if (!w->n_next)
		return;
	qsort(w->next, w->n_next, sizeof(*w->next), by_number);
	for (size_t i = w->n_next; i-- > 0;) {
		const struct node *node = &w->nodes[w->next[i]];

		if (node->kind == NODE_COVER)
			least = node->value;
		else if (w->next[i] >= least)
			continue;
		w->next[--kept] = w->next[i];
	}
	w->n_next -= kept;
	memmove(w->next, w->next + kept, w->n_next * sizeof(*w->next));
}

static size_t hash(const uint32_t *ids, size_t n, enum phase phase)
{
	uint64_t sum = 0xcbf29ce484222325ULL + phase;

	for (size_t i = 0; i < n; i++)
		sum = (sum ^ ids[i]) * 0x100000001b3ULL;
	return (size_t)(sum ^ sum >> 29);
}

static bool is_state(const struct walk *w, const struct state *state, enum phase phase)
{
	if (state->phase != phase || state->shut != w->shut || state->n != w->n_next)
		return false;
	return !w->n_next || memcmp(w->pool + state->first, w->next, w->n_next * sizeof(*w->next)) == 0;
}

/* Keeps the state that was made, unless it is there already. */
static int keep(struct walk *w, enum phase phase, uint32_t from, uint32_t by, size_t len)
{
	size_t at = hash(w->next, w->n_next, phase) & (w->table_size - 1);
	struct state *state;

	for (; w->table[at] != NO_STATE; at = (at + 1) & (w->table_size - 1))
		if (is_state(w, &w->states[w->table[at]], phase))
			return 0;
	if (w->n_states == CORDON_COMPARE_STATES_MAX || w->n_pool + w->n_next > POOL_MAX)
		return too_big(w);
	while (w->n_pool + w->n_next > w->pool_cap)
		if (!grow(&w->pool, w->pool_cap, &w->pool_cap, sizeof(*w->pool)))
			return no_memory(w);
	w->table[at] = (uint32_t)w->n_states;
	state = &w->states[w->n_states++];
	*state = (struct state){ .first = w->n_pool, .n = (uint32_t)w->n_next, .from = from, .by = by };
	state->len = (uint16_t)len;
	state->phase = (uint8_t)phase;
	state->shut = w->shut;
	if (w->n_next)
		memcpy(w->pool + w->n_pool, w->next, w->n_next * sizeof(*w->next));
	w->n_pool += w->n_next;
	return 0;
}

static void begin_state(struct walk *w)
{
	w->round++;
	w->n_next = 0;
}

/* The node that is reached from `id` by a character, or 0 and false. */
static bool follow(const struct walk *w, uint32_t id, uint32_t c, uint32_t *ret)
{
	const struct node *node = &w->nodes[id];
	bool slash = c == '/';

	*ret = id;
	switch ((enum node_kind)node->kind) {
	case NODE_CHAR:
		*ret = id + 1;
		return !slash && node->value == c;
	case NODE_ANY:
		*ret = id + 1;
		return !slash;
	case NODE_CLASS:
		*ret = id + 1;
		return !slash && cordon_class_has(node->pattern, node->value, c);
	case NODE_STAR:
		return !slash;
	case NODE_NAME_END:
		*ret = id + 1;
		return slash;
	case NODE_BETWEEN:
		*ret = id + 1;
		return !slash;
	case NODE_WITHIN:
		*ret = slash ? id - 1 : id;
		return true;
	case NODE_END:
		return false;
	case NODE_COVER:
		break;
	}
	return true;
}

static enum phase phase_after(enum phase phase, uint32_t c)
{
	if (c == '/')
		return PHASE_SLASH;
	if (c == '.' && phase <= PHASE_SLASH)
		return PHASE_DOT;
	return c == '.' && phase == PHASE_DOT ? PHASE_DOTS : PHASE_NAME;
}

static int step(struct walk *w, uint32_t from, uint32_t c, uint8_t shut)
{
	struct state state = w->states[from];
	enum phase phase = phase_after(state.phase, c);
	char bytes[4];
	size_t len = state.len + cordon_char_encode(c, bytes);
	int r = 0;

	if (len + w->n_prefix + 1 >= CORDON_PATH_MAX)
		return 0; /* every policy refuses a path of that length */
	begin_state(w);
	w->shut = shut;
	for (uint32_t i = 0; r == 0 && i < state.n; i++) {
		uint32_t next;

		if (follow(w, w->pool[state.first + i], c, &next))
			r = reach(w, next);
	}
	if (r < 0)
		return r;
	tidy(w);
	return keep(w, phase, from, c, len);
}

/* ---- which characters to try ---- */

static int add_point(struct walk *w, uint32_t c)
{
	if (!grow(&w->points, w->n_points, &w->points_cap, sizeof(*w->points)))
		return no_memory(w);
	w->points[w->n_points++] = c;
	return 0;
}

/* Sorts the points, and drops repeated ones. */
static void sort_points(struct walk *w)
{
	size_t n = 0;

	if (!w->n_points)
		return;
	qsort(w->points, w->n_points, sizeof(*w->points), by_number);
	for (size_t i = 0; i < w->n_points; i++)
		if (n == 0 || w->points[n - 1] != w->points[i])
			w->points[n++] = w->points[i];
	w->n_points = n;
}

static bool is_point(const struct walk *w, uint32_t c)
{
	return w->n_points && bsearch(&c, w->points, w->n_points, sizeof(c), by_number);
}

/* The character of [low, high) that reads best in a witness. */
static uint32_t pick(uint32_t low, uint32_t high)
{
	static const char good[] = "abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_-";

	for (const char *c = good; *c; c++)
		if ((uint32_t)*c >= low && (uint32_t)*c < high)
			return (uint32_t)*c;
	return low;
}

/* One that is none of the points; there is always one, because characters are many and nodes are few. */
static uint32_t another(const struct walk *w)
{
	static const char good[] = "abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_-";
	uint32_t c = 0xa1;

	for (const char *good_one = good; *good_one; good_one++)
		if (!is_point(w, (uint32_t)*good_one))
			return (uint32_t)*good_one;
	while (is_point(w, c))
		c++;
	return c;
}

static int add_ranges(struct walk *w, const struct node *node)
{
	const struct char_class *class = &node->pattern->classes[node->value];
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < class->n; i++) {
		const struct class_range *range = &node->pattern->ranges[class->first + i];

		r = add_point(w, range->low);
		if (r == 0)
			r = add_point(w, range->high + 1);
	}
	return r;
}

/* With classes: the points cut all characters into intervals in which nothing tells two characters apart. Puts one
 * character of each in their place. */
static int intervals_to_points(struct walk *w)
{
	static const uint32_t cuts[] = { 1, '/', '/' + 1, 0xd800, 0xe000, CORDON_CHAR_INVALID };
	size_t n = w->n_points, kept = 0;
	int r = 0;

	for (size_t i = 0; r == 0 && i < n; i++)
		r = add_point(w, w->points[i] + 1); /* of a range twice, which does no harm */
	for (size_t i = 0; r == 0 && i < CORDON_ARRAY_SIZE(cuts); i++)
		r = add_point(w, cuts[i]);
	if (r < 0)
		return r;
	sort_points(w);
	for (size_t i = 0; i < w->n_points; i++) {
		uint32_t low = w->points[i], high = i + 1 < w->n_points ? w->points[i + 1] : low + 1;

		if (low == 0 || low == '/' || (low >= 0xd800 && low < 0xe000))
			continue;
		if (low >= CORDON_CHAR_INVALID) { /* a byte that is part of no character; rules have none */
			w->points[kept++] = CORDON_CHAR_INVALID + 0xff;
			break;
		}
		w->points[kept++] = pick(low, high);
	}
	w->n_points = kept;
	return 0;
}

static int find_points(struct walk *w, const struct state *state)
{
	bool classes = false;
	int r = state->phase <= PHASE_DOT ? add_point(w, '.') : 0;

	for (uint32_t i = 0; r == 0 && i < state->n; i++) {
		const struct node *node = &w->nodes[w->pool[state->first + i]];

		if (node->kind == NODE_CHAR)
			r = add_point(w, node->value);
		if (node->kind == NODE_CLASS)
			r = add_ranges(w, node);
		classes |= node->kind == NODE_CLASS;
	}
	if (r < 0)
		return r;
	if (classes)
		return intervals_to_points(w);
	sort_points(w);
	return add_point(w, another(w));
}

/* ---- the answers ---- */

static struct cordon_answer answer_of(const struct cordon_decision *decision)
{
	return (struct cordon_answer){ .verdict = decision->verdict,
				       .reason = decision->reason,
				       .rule = decision->rule,
				       .rule_where = decision->rule_where,
				       .fence = decision->fence };
}

static bool same_answer(const struct cordon_answer *a, const struct cordon_answer *b)
{
	return a->verdict == b->verdict && a->reason == b->reason && a->rule == b->rule && a->fence == b->fence;
}

/* Keeps a difference, unless the same rules differ about a shorter witness already. */
static int differ(struct walk *w, cordon_compared_op op, const struct cordon_decision *before,
		  const struct cordon_decision *after, const char *witness)
{
	struct cordon_policy_difference one = { .op = op, .before = answer_of(before), .after = answer_of(after) };
	struct cordon_policy_difference *items;

	if (before->verdict == after->verdict)
		return 0;
	for (size_t i = 0; i < w->found->n; i++)
		if (w->found->items[i].op == op && same_answer(&w->found->items[i].before, &one.before) &&
		    same_answer(&w->found->items[i].after, &one.after))
			return 0;
	if (w->found->n == CORDON_DIFFERENCES_MAX)
		return too_big(w);
	items = cordon_pattern_grow(w->found->items, w->found->n, sizeof(*items));
	if (!items)
		return no_memory(w);
	w->found->items = items;
	one.witness = strdup(witness);
	if (!one.witness)
		return no_memory(w);
	items[w->found->n++] = one;
	return 0;
}

/* The path that led to a state. */
static void write_path(struct walk *w, uint32_t at)
{
	size_t end = w->states[at].len;

	w->path[end] = '\0';
	for (; w->states[at].len; at = w->states[at].from) {
		char bytes[4];
		size_t n = cordon_char_encode(w->states[at].by, bytes);

		end -= n;
		memcpy(w->path + end, bytes, n);
	}
}

static uint8_t denials(const struct cordon_decision *before, const struct cordon_decision *after)
{
	return (before->reason == CORDON_REASON_DENY ? OF_BEFORE : 0) |
	       (after->reason == CORDON_REASON_DENY ? OF_AFTER : 0);
}

/* Asks whether the inner policy lets the path of a state through and the outer one does not. What the inner one shows there
 * of another place is compared by that place, and what the outer one hides by such a place it does not reach. */
static int ask_within(struct walk *w, uint8_t *ret_shut)
{
	CORDON_UNCLEARED struct cordon_decision outer, inner;
	char path[CORDON_PATH_MAX];
	const char *rest;

	if (cordon_path_join(w->prefix, w->path, path, sizeof(path)) < 0 ||
	    (w->after->n_shares && cordon_share_at(w->after, w->path, &rest)))
		return 0;
	*ret_shut = OF_BOTH;
	for (cordon_op op = CORDON_OP_READ; !w->freer.witness && op <= CORDON_OP_WRITE; op++) {
		cordon_policy_decide(w->after, w->path, op, &inner);
		cordon_policy_decide(w->before, path, op, &outer);
		if (w->before->n_shares && cordon_share_at(w->before, path, &rest))
			outer = (struct cordon_decision){ .verdict = CORDON_DENY, .reason = CORDON_REASON_NO_GRANT };
		*ret_shut &= denials(&outer, &inner);
		if (inner.verdict == CORDON_DENY || outer.verdict != CORDON_DENY)
			continue;
		w->freer = (struct cordon_policy_difference){
			.op = op == CORDON_OP_READ ? CORDON_COMPARED_READ : CORDON_COMPARED_WRITE,
			.before = answer_of(&outer),
			.after = answer_of(&inner),
			.witness = strdup(w->path),
		};
		if (!w->freer.witness)
			return no_memory(w);
	}
	return 0;
}

/* Asks both policies about the path of a state. *ret_shut: those that deny it by a rule, and so everything below it. */
static int ask(struct walk *w, uint32_t at, uint8_t *ret_shut)
{
	CORDON_UNCLEARED struct cordon_decision before, after;
	int r = 0;

	write_path(w, at);
	if (w->within)
		return ask_within(w, ret_shut);
	*ret_shut = OF_BOTH;
	for (cordon_op op = CORDON_OP_READ; r == 0 && op <= CORDON_OP_WRITE; op++) {
		cordon_policy_decide(w->before, w->path, op, &before);
		cordon_policy_decide(w->after, w->path, op, &after);
		*ret_shut &= denials(&before, &after);
		r = differ(w, op == CORDON_OP_READ ? CORDON_COMPARED_READ : CORDON_COMPARED_WRITE, &before, &after,
			   w->path);
	}
	return r;
}

/* Whether what follows can still make a difference: not when every node that is left covers everything. */
static bool is_open(const struct walk *w, const struct state *state)
{
	for (uint32_t i = 0; i < state->n; i++)
		if (w->nodes[w->pool[state->first + i]].kind != NODE_COVER)
			return true;
	return false;
}

static int expand(struct walk *w, uint32_t at)
{
	const struct state state = w->states[at];
	uint8_t shut = 0; /* a longer name may still be open: `a` is denied, `ab` is not */
	int r = 0;

	if (state.phase == PHASE_ROOT || state.phase == PHASE_NAME)
		r = ask(w, at, &shut);
	if (r < 0 || (!is_open(w, &state) && state.phase != PHASE_ROOT))
		return r;
	w->n_points = 0;
	r = find_points(w, &state);
	for (size_t i = 0; r == 0 && i < w->n_points; i++)
		r = step(w, at, w->points[i], state.shut);
	shut |= state.shut;
	if (r == 0 && state.phase == PHASE_NAME && shut != OF_BOTH && !(w->within && (shut & OF_AFTER)))
		r = step(w, at, '/', shut);
	return r;
}

/* Begins with the first node of each row of [from, to). */
static int begin_rows(struct walk *w, size_t from, size_t to)
{
	int r = 0;

	for (size_t id = from; r == 0 && id < to; id++)
		if (id == 0 || w->nodes[id - 1].kind == NODE_END || w->nodes[id - 1].kind == NODE_COVER)
			r = reach(w, (uint32_t)id);
	return r;
}

/* Goes on by one character from the nodes that are reached, without keeping a state. */
static int pass(struct walk *w, uint32_t c)
{
	size_t n = w->n_next;
	autofree uint32_t *old = malloc((n + 1) * sizeof(*old));
	int r = 0;

	if (!old)
		return no_memory(w);
	if (n)
		memcpy(old, w->next, n * sizeof(*old));
	begin_state(w);
	for (size_t i = 0; r == 0 && i < n; i++) {
		uint32_t next;

		if (follow(w, old[i], c, &next))
			r = reach(w, next);
	}
	return r;
}

/* The first state: the outer policy has read the prefix and a slash by then. */
static int begin_walk(struct walk *w)
{
	int r;

	begin_state(w);
	if (!w->n_prefix) {
		r = begin_rows(w, 0, w->n_nodes);
	} else {
		r = begin_rows(w, 0, w->n_outer);
		for (size_t at = 0, len; r == 0 && at < w->n_prefix; at += len)
			r = pass(w, cordon_char_at(w->prefix + at, w->n_prefix - at, &len));
		if (r == 0)
			r = pass(w, '/');
		if (r == 0)
			r = begin_rows(w, w->n_outer, w->n_nodes);
	}
	if (r < 0)
		return r;
	tidy(w);
	return keep(w, PHASE_ROOT, 0, 0, 0);
}

static int walk_paths(struct walk *w)
{
	size_t table_size = 1;
	int r;

	while (table_size < 2 * (size_t)CORDON_COMPARE_STATES_MAX)
		table_size *= 2;
	w->table_size = table_size;
	w->table = malloc(table_size * sizeof(*w->table));
	w->states = malloc(CORDON_COMPARE_STATES_MAX * sizeof(*w->states));
	w->marks = calloc(w->n_nodes + 1, sizeof(*w->marks));
	if (!w->table || !w->states || !w->marks)
		return no_memory(w);
	memset(w->table, 0xff, table_size * sizeof(*w->table));
	r = begin_walk(w);
	for (uint32_t at = 0; r == 0 && !w->freer.witness && at < w->n_states; at++)
		r = expand(w, at);
	return r;
}

/* ---- hosts ---- */

static int ask_host(struct walk *w, const char *host)
{
	struct cordon_decision before, after;

	/* A name that a rule makes too long is no name, and nobody can ask for it. */
	if (cordon_policy_check_host(w->before, host, &before, NULL) < 0 ||
	    cordon_policy_check_host(w->after, host, &after, NULL) < 0)
		return 0;
	return differ(w, CORDON_COMPARED_CONNECT, &before, &after, before.resolved);
}

/* Asks about a host on each port that some rule has, and on one that none has. */
static int ask_ports(struct walk *w, const char *host, bool address)
{
	const struct cordon_net_list *lists[] = { &w->before->net, &w->after->net };
	char text[CORDON_NET_RULE_SIZE + 8];
	uint16_t free_port = 443;
	int r = 0;

	for (bool again = true; again;) {
		again = false;
		for (size_t l = 0; l < 2; l++)
			for (size_t i = 0; i < lists[l]->n; i++)
				if (lists[l]->rules[i].port == free_port)
					free_port = free_port == 443 ? 1 : (uint16_t)(free_port + 1), again = true;
	}
	for (size_t l = 0; l < 2; l++)
		for (size_t i = 0; r == 0 && i < lists[l]->n; i++) {
			snprintf(text, sizeof(text), address ? "[%s]:%u" : "%s:%u", host, lists[l]->rules[i].port);
			r = ask_host(w, text);
		}
	snprintf(text, sizeof(text), address ? "[%s]:%u" : "%s:%u", host, free_port);
	return r < 0 ? r : ask_host(w, text);
}

/* What a rule is about, and what lies just beside it: below a name, one or two labels deep. */
static int ask_about(struct walk *w, const struct cordon_net_rule *rule)
{
	char text[CORDON_NET_NAME_SIZE + 8];
	int r;

	if (rule->kind == CORDON_NET_KIND_ADDRESS)
		return ask_ports(w, rule->name, strchr(rule->name, ':') != NULL);
	r = ask_ports(w, rule->name, false);
	snprintf(text, sizeof(text), "a.%s", rule->name);
	if (r == 0)
		r = ask_ports(w, text, false);
	snprintf(text, sizeof(text), "a.b.%s", rule->name);
	return r < 0 ? r : ask_ports(w, text, false);
}

/* Rules name a host, or all below one: so these hosts, those just below them, the loopback, and a name and an address
 * that no rule has are all there is to tell apart. */
static int walk_hosts(struct walk *w)
{
	const struct cordon_net_list *lists[] = { &w->before->net, &w->after->net };
	int r = 0;

	for (size_t l = 0; l < 2; l++)
		for (size_t i = 0; r == 0 && i < lists[l]->n; i++)
			r = ask_about(w, &lists[l]->rules[i]);
	if (r == 0)
		r = ask_ports(w, "any-other.invalid", false);
	if (r == 0)
		r = ask_ports(w, "localhost", false);
	if (r == 0)
		r = ask_ports(w, "127.0.0.1", false);
	if (r == 0)
		r = ask_ports(w, "::1", true);
	return r < 0 ? r : ask_ports(w, "192.0.2.254", false);
}

void cordon_policy_differences_done(struct cordon_policy_differences *differences)
{
	for (size_t i = 0; i < differences->n; i++)
		free(differences->items[i].witness);
	free(differences->items);
	*differences = (struct cordon_policy_differences){ 0 };
}

static void walk_done(struct walk *w)
{
	for (size_t i = 0; i < w->n_own; i++)
		cordon_pattern_free(w->own[i]);
	free(w->own);
	free(w->rows);
	free(w->nodes);
	free(w->states);
	free(w->pool);
	free(w->table);
	free(w->next);
	free(w->marks);
	free(w->points);
}

int cordon_policy_compare(const struct cordon_policy *before, const struct cordon_policy *after,
			  struct cordon_policy_differences *ret, struct cordon_error *err)
{
	struct cordon_policy_differences found = { 0 };
	struct walk w = { .before = before, .after = after, .err = err, .found = &found, .prefix = "" };
	int r;

	w.owner = OF_BEFORE;
	r = add_policy(&w, before);
	w.owner = OF_AFTER;
	if (r == 0)
		r = add_policy(&w, after);
	if (r == 0)
		r = walk_paths(&w);
	found.n_states = w.n_states;
	if (r == 0)
		r = walk_hosts(&w);
	walk_done(&w);
	if (r < 0)
		cordon_policy_differences_done(&found);
	else
		*ret = found;
	return r;
}

int cordon_policy_find_freer(const struct cordon_policy *inner, const struct cordon_policy *outer, const char *prefix,
			     struct cordon_policy_difference *ret, struct cordon_error *err)
{
	struct walk w = {
		.before = outer, .after = inner, .err = err, .within = true, .prefix = prefix, .n_prefix = strlen(prefix)
	};
	int r;

	w.owner = OF_BEFORE;
	r = add_policy(&w, outer);
	w.owner = OF_AFTER;
	if (w.n_prefix) { /* a rule of the inner policy begins elsewhere than the same text of the outer one */
		w.n_outer = w.n_nodes;
		w.first_row = w.n_rows;
	}
	if (r == 0 && !is_utf8(prefix))
		r = cordon_fail(err, -EILSEQ, CORDON_KIND_USAGE,
				"the path of the root is not UTF-8, and can't be compared");
	if (r == 0)
		r = add_policy(&w, inner);
	if (r == 0)
		r = walk_paths(&w);
	walk_done(&w);
	*ret = w.freer;
	return r;
}
