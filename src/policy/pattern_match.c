/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Matches alternatives that are lists of components. When a match fails behind a star, within a name or between
 * names, only the last star before is tried again: whatever an earlier star could still match, the later one can
 * match as well. So the time is bounded by pattern × path, and nothing is allocated.
 */
#include "base/text.h"
#include "policy/pattern_impl.h"

bool cordon_subject_init(struct cordon_subject *subject, const char *path)
{
	size_t len = strnlen(path, CORDON_PATH_MAX), n = 0, tail = len < 8 ? len : 8;

	if (len >= CORDON_PATH_MAX)
		return false;
	for (size_t start = 0; start < len;) {
		const char *name = path + start;
		const char *slash = memchr(name, '/', len - start);
		size_t size = slash ? (size_t)(slash - name) : len - start;

		if (size == 0 || (size == 1 && name[0] == '.') || (size == 2 && name[0] == '.' && name[1] == '.'))
			return false;
		subject->start[n++] = (uint16_t)start;
		start += size + 1;
		if (slash && start == len)
			return false;
	}
	subject->path = path;
	subject->len = len;
	subject->n = n;
	subject->start[n] = (uint16_t)(len + 1);
	subject->head = subject->tail = 0;
	memcpy(&subject->head, path, tail);
	memcpy((char *)&subject->tail + 8 - tail, path + len - tail, tail);
	return true;
}

/* Whether a character of the name starts or ends at `pos`. */
static inline bool on_boundary(const char *s, size_t len, size_t pos)
{
	if (pos == len || ((unsigned char)s[pos] & 0xc0) != 0x80)
		return true;
	for (size_t back = 1; back <= 3 && back <= pos; back++)
		if (cordon_utf8_char(s + pos - back, len - pos + back) > back)
			return false;
	return true;
}

static inline size_t char_len(const char *s, size_t n)
{
	size_t len = (unsigned char)*s < 0x80 ? 1 : cordon_utf8_char(s, n);

	return len ? len : 1;
}

/* How many bytes the atom, no star, takes at s + pos, or 0 when it does not match there. */
static inline size_t take_atom(const struct cordon_pattern *pattern, const struct atom *atom, const char *s, size_t len,
			       size_t pos)
{
	size_t n = len - pos;
	uint32_t c;

	if (n == 0)
		return 0;
	if (atom->kind == TOKEN_CHAR) {
		const char *run = pattern->bytes + atom->first;

		if (s[pos] != run[0] || n < atom->n || (atom->n > 1 && memcmp(s + pos, run, atom->n) != 0))
			return 0;
		return on_boundary(s, len, pos + atom->n) ? atom->n : 0;
	}
	if (atom->kind == TOKEN_ANY)
		return char_len(s + pos, n);
	c = cordon_char_at(s + pos, n, &n);
	return cordon_class_has(pattern, atom->first, c) ? n : 0;
}

/* The next place behind `pos` where what follows a star could start; len + 1 when there is none. */
static inline size_t next_start(const struct cordon_pattern *pattern, const struct atom *atom, const char *s,
				size_t len, size_t pos)
{
	const char *found;

	if (pos == len)
		return len + 1;
	pos += char_len(s + pos, len - pos);
	while (atom->kind == TOKEN_CHAR && atom->least <= len - pos) {
		found = memchr(s + pos, pattern->bytes[atom->first], len - pos);
		if (!found)
			return len + 1;
		pos = (size_t)(found - s);
		if (on_boundary(s, len, pos))
			break;
		pos++;
	}
	return atom->least <= len - pos ? pos : len + 1;
}

static bool match_glob(const struct cordon_pattern *pattern, const struct component *component, const char *s,
		       size_t len)
{
	const struct atom *atom = pattern->atoms + component->first;
	const struct atom *end = atom + component->n;
	const struct atom *behind_star = NULL;
	size_t pos = 0, star_pos = 0;

	if (atom->least > len)
		return false;
	for (;;) {
		size_t n = 0;

		if (atom == end && pos == len)
			return true;
		if (atom != end && atom->kind == TOKEN_STAR) {
			behind_star = ++atom;
			star_pos = pos;
			if (atom == end)
				return true;
			continue;
		}
		if (atom != end)
			n = take_atom(pattern, atom, s, len, pos);
		if (n) {
			atom++;
			pos += n;
			continue;
		}
		if (!behind_star)
			return false;
		star_pos = next_start(pattern, behind_star, s, len, star_pos);
		if (star_pos > len)
			return false;
		pos = star_pos;
		atom = behind_star;
	}
}

/* One component of the pattern, not `**`, against component j of the path. */
static bool match_name(const struct cordon_pattern *pattern, const struct component *component,
		       const struct cordon_subject *subject, size_t j)
{
	const char *name = subject->path + subject->start[j];
	size_t len = (size_t)subject->start[j + 1] - subject->start[j] - 1;

	if (component->kind == COMPONENT_LITERAL)
		return len == component->n && memcmp(name, pattern->bytes + component->first, len) == 0;
	return component->kind == COMPONENT_ANY || match_glob(pattern, component, name, len);
}

static bool match_components(const struct cordon_pattern *pattern, const struct alternative *alternative,
			     const struct cordon_subject *subject)
{
	const struct component *component = pattern->components + alternative->first;
	const struct component *end = component + alternative->n;
	const struct component *behind_dstar = NULL;
	size_t j = 0, dstar_j = 0;

	for (;;) {
		if (component == end && (j == subject->n || alternative->covers))
			return true;
		if (component != end && component->kind == COMPONENT_DSTAR) {
			behind_dstar = ++component;
			dstar_j = j;
			if (component == end)
				return true;
			continue;
		}
		if (component != end && j < subject->n && match_name(pattern, component, subject, j)) {
			component++;
			j++;
			continue;
		}
		if (!behind_dstar || dstar_j == subject->n)
			return false;
		j = ++dstar_j;
		component = behind_dstar;
	}
}

static bool match_alternative(const struct cordon_pattern *pattern, const struct alternative *alternative,
			      const struct cordon_subject *subject)
{
	size_t len = alternative->literal_len;

	if (!cordon_edges_fit(&alternative->edges, subject))
		return false;
	if (alternative->literal == NO_LITERAL)
		return match_components(pattern, alternative, subject);
	return len <= subject->len && memcmp(subject->path, pattern->bytes + alternative->literal, len) == 0 &&
	       (len == 0 || len == subject->len || subject->path[len] == '/');
}

bool cordon_pattern_match_subject(const struct cordon_pattern *pattern, const struct cordon_subject *subject,
				  struct cordon_specificity *ret)
{
	struct graph_answer answer;

	if (!cordon_edges_fit(&pattern->edges, subject))
		return false;
	if (pattern->graph) {
		cordon_graph_walk(pattern, subject, &answer);
		if (answer.matches && ret)
			*ret = answer.specificity;
		return answer.matches;
	}
	for (size_t i = 0; i < pattern->n_alternatives; i++) {
		if (match_alternative(pattern, &pattern->alternatives[i], subject)) {
			if (ret)
				*ret = pattern->alternatives[i].specificity;
			return true;
		}
	}
	return false;
}

bool cordon_pattern_covers_subject(const struct cordon_pattern *pattern, const struct cordon_subject *subject,
				   struct cordon_specificity *ret)
{
	struct graph_answer answer;

	if (pattern->graph) {
		cordon_graph_walk(pattern, subject, &answer);
		/* It is not known which alternative covers the path, so we return the least specificity. */
		if (answer.covers && ret)
			*ret = pattern->alternatives[pattern->n_alternatives - 1].specificity;
		return answer.covers;
	}
	for (size_t i = 0; i < pattern->n_alternatives; i++) {
		const struct alternative *alternative = &pattern->alternatives[i];
		bool open = alternative->covers ||
			    pattern->components[alternative->first + alternative->n - 1].kind == COMPONENT_DSTAR;

		if (open && match_alternative(pattern, alternative, subject)) {
			if (ret)
				*ret = alternative->specificity;
			return true;
		}
	}
	return false;
}

/* Whether the path can be continued to a match: the components before the first `**` decide. */
static bool leads_alternative(const struct cordon_pattern *pattern, const struct alternative *alternative,
			      const struct cordon_subject *subject)
{
	const struct component *component = pattern->components + alternative->first;

	for (size_t j = 0; j < alternative->n; j++) {
		if (j == subject->n || component[j].kind == COMPONENT_DSTAR)
			return true;
		if (!match_name(pattern, &component[j], subject, j))
			return false;
	}
	return alternative->covers;
}

bool cordon_pattern_leads_subject(const struct cordon_pattern *pattern, const struct cordon_subject *subject)
{
	struct graph_answer answer;

	if (pattern->graph) {
		cordon_graph_walk(pattern, subject, &answer);
		return answer.leads;
	}
	for (size_t i = 0; i < pattern->n_alternatives; i++)
		if (leads_alternative(pattern, &pattern->alternatives[i], subject))
			return true;
	return false;
}

static bool is_beyond(const struct cordon_specificity *a, const struct cordon_specificity *bar)
{
	if (a->literal_components != bar->literal_components)
		return a->literal_components > bar->literal_components;
	return a->literal_prefix > bar->literal_prefix;
}

bool cordon_pattern_leads_beyond(const struct cordon_pattern *pattern, const char *dir,
				 const struct cordon_specificity *bar)
{
	CORDON_UNCLEARED struct cordon_subject subject;

	if (!cordon_subject_init(&subject, dir))
		return false;
	/* A graph has no list of alternatives. "Leads there at all" is the wider answer. */
	if (pattern->graph)
		return cordon_pattern_leads_subject(pattern, &subject);
	for (size_t i = 0; i < pattern->n_alternatives; i++)
		if (is_beyond(&pattern->alternatives[i].specificity, bar) &&
		    leads_alternative(pattern, &pattern->alternatives[i], &subject))
			return true;
	return false;
}

bool cordon_pattern_match(const struct cordon_pattern *pattern, const char *path, struct cordon_specificity *ret)
{
	CORDON_UNCLEARED struct cordon_subject subject;

	return cordon_subject_init(&subject, path) && cordon_pattern_match_subject(pattern, &subject, ret);
}

bool cordon_pattern_covers(const struct cordon_pattern *pattern, const char *dir)
{
	CORDON_UNCLEARED struct cordon_subject subject;

	return cordon_subject_init(&subject, dir) && cordon_pattern_covers_subject(pattern, &subject, NULL);
}

bool cordon_pattern_leads(const struct cordon_pattern *pattern, const char *dir)
{
	CORDON_UNCLEARED struct cordon_subject subject;

	return cordon_subject_init(&subject, dir) && cordon_pattern_leads_subject(pattern, &subject);
}
