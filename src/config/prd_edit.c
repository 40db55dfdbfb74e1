/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Edits stories of a PRD by replacing and inserting bytes. The document gives the places of all values; the new text is put
 * between them in the style of its neighbours, and each changed story is parsed again and compared.
 */
#include "base/text.h"
#include "config/prd.h"

#define BLANKS_MAX 256 /* more blanks in a row are not copied: every story would get them */

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

/* One member that a story gets. */
struct member {
	const char *key;
	json_t *value;
	const struct cordon_node *node; /* the member of that name, or NULL */
};

#define MEMBERS_MAX 3

struct edit {
	const struct cordon_document *doc;
	struct cordon_errors *errors;
	struct cordon_buf *out;
	size_t done; /* bytes of the source that are in `out` */
	struct cordon_prd_changes changes;
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

static int put_json(struct edit *edit, const json_t *value)
{
	autofree char *text = json_dumps(value, JSON_ENCODE_ANY);

	return text ? put(edit, text, strlen(text)) : -ENOMEM;
}

/* A list has one entry per line where the members of the story have one line each. */
static int put_value(struct edit *edit, const struct style *style, const json_t *value)
{
	size_t n = json_array_size(value);
	int r = 0;

	if (!json_is_array(value))
		return put_json(edit, value);
	r = put(edit, "[", 1);
	for (size_t i = 0; r == 0 && i < n; i++) {
		if (i)
			r = put(edit, ",", 1);
		if (r == 0)
			r = style->lines ? put_newline(edit, style, true) : put(edit, " ", i && style->indent_len);
		if (r == 0)
			r = put_json(edit, json_array_get(value, i));
	}
	if (r == 0 && n && style->lines)
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

static int replace_value(struct edit *edit, const struct cordon_node *story, const struct member *member)
{
	struct style style;
	int r = copy_until(edit, member->node->start, member->node->end);

	style_of(edit->doc, story, member->node, &style);
	return r < 0 ? r : put_value(edit, &style, member->value);
}

/* Adds members behind the last one. A story has one at least, its id. */
static int insert_members(struct edit *edit, const struct cordon_node *story, const struct member *members, size_t n)
{
	const struct cordon_node *last = story->first;
	struct style style;
	int r = 0;

	if (!last)
		return -EINVAL; /* the reader refuses a story without an id */
	while (last->next)
		last = last->next;
	style_of(edit->doc, story, last, &style);
	if (edit->done < last->end)
		r = copy_until(edit, last->end, last->end);
	for (size_t i = 0; r == 0 && i < n; i++) {
		if (members[i].node)
			continue;
		r = put(edit, ",", 1);
		if (r == 0)
			r = style.lines ? put_newline(edit, &style, false) : put(edit, style.indent, style.indent_len);
		if (r == 0)
			r = cordon_buf_addf(edit->out, "\"%s\"", members[i].key);
		if (r == 0)
			r = put(edit, style.colon, style.colon_len);
		if (r == 0)
			r = put_value(edit, &style, members[i].value);
	}
	return r;
}

/* INVARIANT: the new text of a story parses, has the intended values, and is otherwise equal to the old one. Since one
 * object was put in the place of another and no byte around it changed, this holds for the whole text. */
static int verify(const struct edit *edit, const struct cordon_node *story, size_t from, const struct member *members,
		  size_t n)
{
	json_t *old = json_loadb(edit->doc->source + story->start, story->end - story->start, JSON_REJECT_DUPLICATES,
				 NULL);
	json_t *new = json_loadb(edit->out->data + from, edit->out->len - from, JSON_REJECT_DUPLICATES, NULL);
	bool ok = json_is_object(old) && json_is_object(new);

	for (size_t i = 0; ok && i < n; i++) {
		ok = json_equal(json_object_get(new, members[i].key), members[i].value);
		json_object_del(old, members[i].key);
		json_object_del(new, members[i].key);
	}
	ok = ok && json_equal(old, new);
	json_decref(old);
	json_decref(new);
	return ok ? 0 : -EIO;
}

static const char *id_of(const struct cordon_node *story)
{
	return cordon_node_get(story, "id")->text;
}

/* Gives these members to a story, which is behind all stories that were changed before. */
static int change_story(struct edit *edit, const struct cordon_node *story, struct member *members, size_t n)
{
	size_t from;
	int r = 0;

	if (n == 0)
		return 0;
	for (size_t i = 0; i < n; i++)
		members[i].node = cordon_node_get(story, members[i].key);
	r = copy_until(edit, story->start, story->start);
	from = edit->out->len;
	/* In the order of the file, which is that of the nodes. */
	for (const struct cordon_node *node = story->first; node; node = node->next)
		for (size_t i = 0; r == 0 && i < n; i++)
			if (members[i].node == node)
				r = replace_value(edit, story, &members[i]);
	if (r == 0)
		r = insert_members(edit, story, members, n);
	if (r == 0)
		r = copy_until(edit, story->end, story->end);
	if (r == 0)
		r = verify(edit, story, from, members, n);
	if (r == 0 && !(edit->changes.ids[edit->changes.n] = strdup(id_of(story))))
		r = -ENOMEM;
	edit->changes.n += r == 0;
	return r;
}

/* ---- checks ---- */

static bool is_word(const struct cordon_node *node, const char *word)
{
	return node->type == CORDON_NODE_SCALAR && node->style == CORDON_STYLE_PLAIN && cordon_streq(node->text, word);
}

static bool lacks_scope(const struct cordon_node *scope)
{
	return !scope || (scope->type == CORDON_NODE_SEQUENCE && scope->n == 0) || is_word(scope, "null");
}

/* Reports what is wrong with a story; `i` counts from 0. */
static int check_story(const struct edit *edit, const struct cordon_node *story, size_t i)
{
	const struct cordon_node *id = cordon_node_get(story, "id"), *scope = cordon_node_get(story, "fileScope");
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
				     "the fileScope of userStories[%zu] must be a list, not %s", i,
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

/* ---- the two kinds of edits ---- */

static int add_scopes(struct edit *edit, const struct cordon_node *stories, const json_t *patterns)
{
	json_t *copy = json_deep_copy(patterns);
	struct member member = { .key = "fileScope", .value = copy };
	int r = copy ? 0 : -ENOMEM;

	for (const struct cordon_node *story = stories->first; r == 0 && story; story = story->next)
		if (lacks_scope(cordon_node_get(story, "fileScope")))
			r = change_story(edit, story, &member, 1);
	json_decref(copy);
	return r;
}

/* Whether a member has this value already, however it is written. */
static bool has_value(const struct edit *edit, const struct cordon_node *story, const char *key, const json_t *value)
{
	const struct cordon_node *node = cordon_node_get(story, key);
	json_t *old;
	bool same;

	if (!node)
		return json_is_false(value);
	old = json_loadb(edit->doc->source + node->start, node->end - node->start, JSON_DECODE_ANY, NULL);
	same = json_equal(old, value);
	json_decref(old);
	return same;
}

/* Takes the value. */
static int add_member(const struct edit *edit, const struct cordon_node *story, const char *key, json_t *value,
		      struct member *members, size_t *n)
{
	if (!value)
		return -ENOMEM;
	if (has_value(edit, story, key, value)) {
		json_decref(value);
		return 0;
	}
	members[(*n)++] = (struct member){ .key = key, .value = value };
	return 0;
}

static int edit_story(struct edit *edit, const struct cordon_node *story, const struct cordon_prd_edit *asked)
{
	struct member members[MEMBERS_MAX];
	size_t n = 0;
	int r = 0;

	if (asked->set_passes)
		r = add_member(edit, story, "passes", json_boolean(asked->passes), members, &n);
	if (r == 0 && asked->notes)
		r = add_member(edit, story, "notes", json_string(asked->notes), members, &n);
	if (r == 0 && asked->scope)
		r = add_member(edit, story, "fileScope", json_deep_copy(asked->scope), members, &n);
	if (r == 0)
		r = change_story(edit, story, members, n);
	for (size_t i = 0; i < n; i++)
		json_decref(members[i].value);
	return r;
}

/* Finds the edit of a story, or NULL. */
static const struct cordon_prd_edit *edit_of(const struct cordon_node *story, const struct cordon_prd_edit *edits,
					     size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (cordon_streq(edits[i].id, id_of(story)))
			return &edits[i];
	return NULL;
}

/* Reports edits for ids that no story has, and for ids that two stories have: which of them passed? */
static int check_edits(const struct edit *edit, const struct cordon_node *stories, const struct cordon_prd_edit *edits,
		       size_t n)
{
	int r = 0;

	for (size_t i = 0; i < n; i++) {
		size_t found = 0;

		for (const struct cordon_node *story = stories->first; story; story = story->next) {
			if (!cordon_streq(id_of(story), edits[i].id))
				continue;
			if (found++)
				r = cordon_node_fail(edit->doc, cordon_node_get(story, "id"), edit->errors, NULL,
						     "the id %s is used twice", edits[i].id);
		}
		if (!found)
			r = cordon_node_fail(edit->doc, stories, edit->errors, NULL, "there is no story %s any more",
					     edits[i].id);
		if (edits[i].notes && !cordon_utf8_valid(edits[i].notes, strlen(edits[i].notes)))
			r = cordon_node_fail(edit->doc, stories, edit->errors, NULL,
					     "the notes of story %s are not UTF-8", edits[i].id);
	}
	return r;
}

static int apply_edits(struct edit *edit, const struct cordon_node *stories, const struct cordon_prd_edit *edits,
		       size_t n)
{
	int r = 0;

	for (const struct cordon_node *story = stories->first; r == 0 && story; story = story->next) {
		const struct cordon_prd_edit *asked = edit_of(story, edits, n);

		if (asked)
			r = edit_story(edit, story, asked);
	}
	return r;
}

/* ---- the whole ---- */

static int report(const struct edit *edit, int code)
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

/* `patterns` for the one kind of edit, else `edits`. */
static int edit_text(const char *name, const char *text, size_t len, const json_t *patterns,
		     const struct cordon_prd_edit *edits, size_t n, struct cordon_buf *ret_text,
		     struct cordon_prd_changes *ret_changes, struct cordon_errors *errors)
{
	autodocument struct cordon_document *doc = NULL;
	const struct cordon_node *stories;
	struct edit edit = { .errors = errors, .out = ret_text };
	int r = cordon_document_parse(name, CORDON_FORMAT_JSON, text, len, CORDON_PRD_DEPTH_MAX, &doc, errors);

	if (r < 0)
		return r;
	edit.doc = doc;
	stories = check_prd(&edit);
	if (!stories || check_edits(&edit, stories, edits, n) < 0)
		return -EINVAL;
	edit.changes.ids = calloc(stories->n + 1, sizeof(*edit.changes.ids));
	r = !edit.changes.ids ? -ENOMEM
	    : patterns	      ? add_scopes(&edit, stories, patterns)
			      : apply_edits(&edit, stories, edits, n);
	if (r == 0)
		r = copy_until(&edit, doc->len, doc->len);
	if (r < 0) {
		cordon_prd_changes_done(&edit.changes);
		cordon_buf_reset(ret_text);
		return report(&edit, r);
	}
	*ret_changes = edit.changes;
	return 0;
}

int cordon_prd_edit_text(const char *name, const char *text, size_t len, const struct cordon_prd_edit *edits, size_t n,
			 struct cordon_buf *ret_text, struct cordon_prd_changes *ret_changes,
			 struct cordon_errors *errors)
{
	return edit_text(name, text, len, NULL, edits, n, ret_text, ret_changes, errors);
}

int cordon_prd_edit_scope(const char *name, const char *text, size_t len, const json_t *patterns,
			  struct cordon_buf *ret_text, struct cordon_prd_changes *ret_changes,
			  struct cordon_errors *errors)
{
	return edit_text(name, text, len, patterns, NULL, 0, ret_text, ret_changes, errors);
}
