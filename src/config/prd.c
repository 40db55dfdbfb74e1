/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Adds fileScope to the stories of a PRD by inserting bytes. The document gives the places of all values; the new
 * text is put between them in the style of its neighbours, and the result is parsed again and compared.
 */
#include "config/prd.h"
#include "config/document.h"

#define PRD_DEPTH_MAX 2048 /* the limit of jansson */
#define BLANKS_MAX 256	   /* more blanks in a row are not copied: every story would get them */
#define FIELD "fileScope"

/* How a member of a story is written; pointers into the source. */
struct style {
	bool lines; /* one member per line, so one pattern per line */
	bool crlf;
	const char *indent; /* of a member that has its own line; else the blanks before a member */
	size_t indent_len;
	const char *unit; /* one level of indentation more */
	size_t unit_len;
	const char *colon; /* the text between key and value */
	size_t colon_len;
};

struct edit {
	const struct cordon_document *doc;
	const json_t *patterns;
	struct cordon_errors *errors;
	struct cordon_buf *out;
	size_t done; /* bytes of the source that are in `out` */
	struct cordon_prd_changes changes;
	size_t *indices; /* of the changed stories */
};

void cordon_prd_changes_done(struct cordon_prd_changes *changes)
{
	for (size_t i = 0; i < changes->n; i++)
		free(changes->ids[i]);
	free(changes->ids);
	*changes = (struct cordon_prd_changes){ 0 };
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* Finds the blanks at the start of the line of `at`. */
static size_t line_indent(const char *source, size_t at, const char **ret_indent)
{
	size_t start = at, end;

	while (start > 0 && source[start - 1] != '\n')
		start--;
	for (end = start; source[end] == ' ' || source[end] == '\t'; end++)
		;
	*ret_indent = source + start;
	return end - start;
}

/* Finds the style of a member on a line of its own: its indentation, and how much deeper it is than its story. */
static void style_of_line(const char *source, const struct cordon_node *story, const struct cordon_node *member,
			  const char *newline, struct style *ret)
{
	const char *outer;
	size_t outer_len = line_indent(source, story->start, &outer);

	ret->lines = true;
	ret->crlf = newline > source && newline[-1] == '\r';
	ret->indent = newline + 1;
	ret->indent_len = (size_t)(source + member->key->start - ret->indent);
	ret->unit = "  ";
	ret->unit_len = 2;
	if (ret->indent_len > outer_len && memcmp(ret->indent, outer, outer_len) == 0) {
		ret->unit = ret->indent + outer_len;
		ret->unit_len = ret->indent_len - outer_len;
	}
}

static void style_of(const struct cordon_document *doc, const struct cordon_node *story,
		     const struct cordon_node *member, struct style *ret)
{
	const char *source = doc->source, *key = source + member->key->start, *lead = key;
	const char *colon = source + member->key->end;
	size_t colon_len = member->start - member->key->end;
	bool simple = colon_len <= BLANKS_MAX && !memchr(colon, '\n', colon_len);

	while (is_blank(lead[-1]))
		lead--;
	*ret = (struct style){ .colon = simple ? colon : ": ", .colon_len = simple ? colon_len : 2 };
	if (key - lead > BLANKS_MAX) {
		ret->indent = " ";
		ret->indent_len = 1;
	} else if (memchr(lead, '\n', (size_t)(key - lead))) {
		style_of_line(source, story, member, memrchr(lead, '\n', (size_t)(key - lead)), ret);
	} else {
		/* A single member does not show what stands between two members; the blanks behind its colon do. */
		bool single = story->n == 1 && lead == key;

		ret->indent = single && colon_len > 1 ? " " : lead;
		ret->indent_len = single ? colon_len > 1 : (size_t)(key - lead);
	}
}

static int put(struct edit *edit, const char *bytes, size_t n)
{
	return cordon_buf_add(edit->out, bytes, n);
}

static int put_newline(struct edit *edit, const struct style *style, bool deeper)
{
	int r = cordon_buf_adds(edit->out, style->crlf ? "\r\n" : "\n");

	if (r == 0)
		r = put(edit, style->indent, style->indent_len);
	return r == 0 && deeper ? put(edit, style->unit, style->unit_len) : r;
}

static int put_patterns(struct edit *edit, const struct style *style)
{
	size_t n = json_array_size(edit->patterns);
	int r = put(edit, "[", 1);

	for (size_t i = 0; r == 0 && i < n; i++) {
		autofree char *text = json_dumps(json_array_get(edit->patterns, i), JSON_ENCODE_ANY);

		if (!text)
			return -ENOMEM;
		if (i)
			r = put(edit, ",", 1);
		if (r == 0)
			r = style->lines ? put_newline(edit, style, true) : put(edit, " ", i && style->indent_len);
		if (r == 0)
			r = put(edit, text, strlen(text));
	}
	if (r == 0 && style->lines)
		r = put_newline(edit, style, false);
	return r < 0 ? r : put(edit, "]", 1);
}

/* Copies the source up to `to`, and skips the part between that and `resume`. */
static int copy_until(struct edit *edit, size_t to, size_t resume)
{
	int r = put(edit, edit->doc->source + edit->done, to - edit->done);

	edit->done = resume;
	return r;
}

static int replace_value(struct edit *edit, const struct cordon_node *story, const struct cordon_node *scope)
{
	struct style style;
	int r = copy_until(edit, scope->start, scope->end);

	style_of(edit->doc, story, scope, &style);
	return r < 0 ? r : put_patterns(edit, &style);
}

static int insert_member(struct edit *edit, const struct cordon_node *story)
{
	const struct cordon_node *last = story->first;
	struct style style;
	int r;

	while (last->next)
		last = last->next;
	style_of(edit->doc, story, last, &style);
	r = copy_until(edit, last->end, last->end);
	if (r == 0)
		r = put(edit, ",", 1);
	if (r == 0)
		r = style.lines ? put_newline(edit, &style, false) : put(edit, style.indent, style.indent_len);
	if (r == 0)
		r = put(edit, "\"" FIELD "\"", sizeof(FIELD) + 1);
	if (r == 0)
		r = put(edit, style.colon, style.colon_len);
	return r < 0 ? r : put_patterns(edit, &style);
}

static bool lacks_scope(const struct cordon_node *scope)
{
	if (!scope || (scope->type == CORDON_NODE_SEQUENCE && scope->n == 0))
		return true;
	return scope->type == CORDON_NODE_SCALAR && scope->style == CORDON_STYLE_PLAIN &&
	       cordon_streq(scope->text, "null");
}

/* Reports what is wrong with a story; `i` counts from 0. */
static int check_story(const struct edit *edit, const struct cordon_node *story, size_t i)
{
	const struct cordon_node *id = cordon_node_get(story, "id"), *scope = cordon_node_get(story, FIELD);
	const struct cordon_document *doc = edit->doc;
	int r = 0;

	if (story->type != CORDON_NODE_MAPPING)
		return cordon_node_fail(doc, story, edit->errors, NULL, "userStories[%zu] must be an object, not %s", i,
					cordon_node_describe(doc, story));
	if (!id)
		r = cordon_node_fail(doc, story, edit->errors, "add \"id\": \"US-001\"", "userStories[%zu] has no id",
				     i);
	else if (id->type != CORDON_NODE_SCALAR || id->style == CORDON_STYLE_PLAIN || id->len == 0)
		r = cordon_node_fail(doc, id, edit->errors, "write it as \"US-001\"",
				     "the id of userStories[%zu] must be text that is not empty", i);
	if (!lacks_scope(scope) && scope->type != CORDON_NODE_SEQUENCE)
		r = cordon_node_fail(doc, scope, edit->errors, "write a list of patterns, or null",
				     "the " FIELD " of userStories[%zu] must be a list, not %s", i,
				     cordon_node_describe(doc, scope));
	return r;
}

/* Returns the stories, or NULL when something is wrong, which it has reported. */
static const struct cordon_node *check_prd(const struct edit *edit)
{
	const struct cordon_document *doc = edit->doc;
	const struct cordon_node *stories = cordon_node_get(doc->root, "userStories");
	bool ok = false;
	size_t i = 0;

	if (doc->root->type != CORDON_NODE_MAPPING)
		cordon_node_fail(doc, doc->root, edit->errors, NULL, "a PRD must be an object, not %s",
				 cordon_node_describe(doc, doc->root));
	else if (!stories)
		cordon_node_fail(doc, doc->root, edit->errors, "add \"userStories\": [...]",
				 "the PRD has no userStories");
	else if (stories->type != CORDON_NODE_SEQUENCE)
		cordon_node_fail(doc, stories, edit->errors, NULL, "userStories must be a list, not %s",
				 cordon_node_describe(doc, stories));
	else
		ok = true;
	for (const struct cordon_node *story = ok ? stories->first : NULL; story; story = story->next)
		if (check_story(edit, story, i++) < 0)
			ok = false;
	return ok ? stories : NULL;
}

static int splice(struct edit *edit, const struct cordon_node *stories)
{
	size_t i = 0;
	int r = 0;

	edit->changes.ids = calloc(stories->n + 1, sizeof(*edit->changes.ids));
	edit->indices = calloc(stories->n + 1, sizeof(*edit->indices));
	if (!edit->changes.ids || !edit->indices)
		return -ENOMEM;
	for (const struct cordon_node *story = stories->first; r == 0 && story; story = story->next, i++) {
		const struct cordon_node *scope = cordon_node_get(story, FIELD);

		if (!lacks_scope(scope))
			continue;
		edit->changes.ids[edit->changes.n] = strdup(cordon_node_get(story, "id")->text);
		if (!edit->changes.ids[edit->changes.n])
			return -ENOMEM;
		edit->indices[edit->changes.n++] = i;
		r = scope ? replace_value(edit, story, scope) : insert_member(edit, story);
	}
	return r < 0 ? r : copy_until(edit, edit->doc->len, edit->doc->len);
}

static json_t *parse(const char *text, size_t len)
{
	json_error_t problem;

	return json_loadb(text, len, JSON_REJECT_DUPLICATES, &problem);
}

/* INVARIANT: what is written parses, has the patterns in the intended stories, and is otherwise equal to the old
 * text. */
static bool equal_otherwise(const struct edit *edit, json_t *old, json_t *new)
{
	json_t *old_stories = json_object_get(old, "userStories"), *new_stories = json_object_get(new, "userStories");

	for (size_t i = 0; i < edit->changes.n; i++) {
		json_t *old_story = json_array_get(old_stories, edit->indices[i]);
		json_t *new_story = json_array_get(new_stories, edit->indices[i]);

		if (!json_equal(json_object_get(new_story, FIELD), edit->patterns))
			return false;
		json_object_del(new_story, FIELD);
		json_object_del(old_story, FIELD);
	}
	return json_equal(old, new);
}

static int verify(const struct edit *edit)
{
	json_t *old = parse(edit->doc->source, edit->doc->len), *new = parse(edit->out->data, edit->out->len);
	bool ok = old && new &&equal_otherwise(edit, old, new);

	json_decref(old);
	json_decref(new);
	return ok ? 0 : -EIO;
}

static int report(struct edit *edit, int code)
{
	struct cordon_error err;

	if (code == -E2BIG)
		cordon_fail(&err, code, CORDON_KIND_LIMIT, "%s would become larger than %zu bytes", edit->doc->name,
			    edit->out->max);
	else if (code == -EIO)
		cordon_fail(&err, code, CORDON_KIND_INTERNAL, "the edit of %s changes more than it should; not written",
			    edit->doc->name);
	else
		cordon_fail_errno(&err, code, "cannot edit %s", edit->doc->name);
	return cordon_errors_add(edit->errors, &err, NULL, 0, 0);
}

int cordon_prd_edit_scope(const char *name, const char *text, size_t len, const json_t *patterns,
			  struct cordon_buf *ret_text, struct cordon_prd_changes *ret_changes,
			  struct cordon_errors *errors)
{
	autodocument struct cordon_document *doc = NULL;
	const struct cordon_node *stories;
	struct edit edit = { .patterns = patterns, .errors = errors, .out = ret_text };
	int r = cordon_document_parse(name, CORDON_FORMAT_JSON, text, len, PRD_DEPTH_MAX, &doc, errors);

	if (r < 0)
		return r;
	edit.doc = doc;
	stories = check_prd(&edit);
	if (!stories)
		return -EINVAL;
	r = splice(&edit, stories);
	if (r == 0)
		r = verify(&edit);
	free(edit.indices);
	if (r < 0) {
		cordon_prd_changes_done(&edit.changes);
		cordon_buf_reset(ret_text);
		return report(&edit, r);
	}
	*ret_changes = edit.changes;
	return 0;
}
