/* SPDX-License-Identifier: Apache-2.0 */
/* The tools for changes in views. A person approves an apply and a discard (approval.c). */
#include "base/path.h"
#include "base/text.h"
#include "mcp/tools.h"
#include "policy/folders.h"
#include "view/patch.h"
#include "view/show.h"

#define DIFF_MAX ((size_t)256 << 10) /* bytes of text for a model */
#define PATHS_MAX 1000
#define CHANGES_MAX 1000 /* items of a list for a model */
#define MISSES_MAX 16	 /* patches that are made and do not fit */

/* What the arguments name. */
struct named {
	struct cordon_view view;
	const char *paths[PATHS_MAX];
	size_t n_paths;
	struct cordon_arena *arena;
};

static void named_done(struct named *named)
{
	cordon_view_close(&named->view);
	cordon_arena_free(named->arena);
}

/* clang-format off */
#define NAMED_NONE { .view = CORDON_VIEW_NONE }
/* clang-format on */
#define autonamed CORDON_CLEANUP(named_done)

/* Opens the root that an argument names; -1 when there is none. */
static int open_root(const json_t *args, struct cordon_root *ret_root, struct cordon_error *err)
{
	const char *root = cordon_json_string(args, "root");

	if (!root)
		return 0;
	if (*root != '/')
		return cordon_fail(err, -EINVAL, CORDON_KIND_USAGE, "root must be an absolute path");
	return cordon_root_open(root, ret_root, err);
}

/* Opens the view that a person was asked about, or else the one that the arguments name. */
static int open_named(const struct cordon_mcp_request *request, const json_t *args, struct named *named,
		      struct cordon_error *err)
{
	const struct cordon_home *home = &request->mcp->store->home;
	const char *asked = request->question ? cordon_json_string(request->question->means, "view_id") : NULL;
	const char *text = cordon_json_string(args, "view_id");
	const json_t *paths = json_object_get(args, "paths");
	struct cordon_root root = { .fd = -1 };
	char id[CORDON_ID_SIZE];
	size_t i;
	json_t *path;
	int r = asked ? 0 : open_root(args, &root, err);

	if (r == 0 && !asked && root.fd < 0 && cordon_streq(text, "latest"))
		r = cordon_fail(err, -EINVAL, CORDON_KIND_USAGE, "latest of which root? say root");
	if (r == 0)
		r = asked ? cordon_copy(id, sizeof(id), asked, strlen(asked))
			  : cordon_view_find(home, text, root.fd, id, err);
	cordon_root_done(&root);
	if (r == 0)
		r = cordon_view_open(home, id, &named->view, err);
	if (r == 0 && !(named->arena = cordon_arena_new()))
		r = cordon_fail_errno(err, -ENOMEM, "cannot read the arguments");
	json_array_foreach(paths, i, path) {
		char clean[CORDON_PATH_MAX];

		if (r < 0 || named->n_paths == PATHS_MAX)
			break;
		if (*json_string_value(path) == '/' || strlen(json_string_value(path)) != json_string_length(path) ||
		    cordon_path_clean(json_string_value(path), clean, sizeof(clean)) < 0)
			return cordon_fail(err, -EINVAL, CORDON_KIND_USAGE, "not a path relative to the root: %s",
					   json_string_value(path));
		named->paths[named->n_paths] = cordon_arena_strdup(named->arena, clean);
		if (!named->paths[named->n_paths++])
			r = cordon_fail_errno(err, -ENOMEM, "cannot read the arguments");
	}
	return r;
}

static int changes_list(struct cordon_mcp_request *request, json_t *args, json_t **ret_result, char **ret_text,
			struct cordon_error *err)
{
	autoviewlist struct cordon_view_list list = { 0 };
	struct cordon_list_query query = { 0 };
	struct cordon_root root = { .fd = -1 };
	json_t *views = json_array();
	int r = open_root(args, &root, err);

	(void)ret_text;
	cordon_mcp_list_query(args, &query);
	if (r == 0)
		r = cordon_view_list(&request->mcp->store->home, root.fd, &list, err);
	cordon_root_done(&root);
	for (size_t i = query.offset; r == 0 && i < list.n && json_array_size(views) < query.limit; i++)
		json_array_append_new(views, cordon_view_json(&list.items[i]));
	if (r == 0)
		*ret_result = cordon_mcp_list_result("changes", views, list.n);
	else
		json_decref(views);
	return r;
}

/* Adds the patches until the text is long enough for a model. Returns whether all of them fit. */
static int add_patches(const struct cordon_delta *delta, const struct named *named, struct cordon_buf *text,
		       bool *ret_all, struct cordon_error *err)
{
	autofree size_t *places = NULL;
	size_t n = 0, misses = 0;

	if (cordon_changes_order(delta, named->paths, named->n_paths, &places, &n) < 0)
		return cordon_fail_errno(err, -ENOMEM, "cannot list the changes");
	for (size_t i = 0; i < n && i < CHANGES_MAX && misses < MISSES_MAX; i++) {
		autobuf struct cordon_buf patch = CORDON_BUF(CORDON_PATCH_MAX);
		size_t before = text->len;
		int r = cordon_patch_add(delta, &delta->changes[places[i]], &patch, err);

		if (r < 0)
			return r;
		if (!patch.len || cordon_text_escape_lines(text, patch.data, patch.len) == 0)
			continue;
		/* Half of a patch would be another patch. */
		misses++;
		text->len = before;
		if (text->data)
			text->data[before] = '\0';
	}
	*ret_all = !misses && n <= CHANGES_MAX;
	return 0;
}

static int changes_diff(struct cordon_mcp_request *request, json_t *args, json_t **ret_result, char **ret_text,
			struct cordon_error *err)
{
	autonamed struct named named = NAMED_NONE;
	autodelta struct cordon_delta delta = CORDON_DELTA_NONE;
	autobuf struct cordon_buf text = CORDON_BUF(DIFF_MAX);
	bool all = true;
	int r = open_named(request, args, &named, err);

	(void)ret_text;
	if (r == 0)
		r = cordon_delta_find(&named.view, &delta, err);
	if (r == 0)
		r = add_patches(&delta, &named, &text, &all, err);
	if (r < 0)
		return r;
	*ret_result = cordon_changes_json(&delta, named.paths, named.n_paths, true, CHANGES_MAX);
	json_object_set_new(*ret_result, "view_id", json_string(named.view.record.id));
	json_object_set_new(*ret_result, "diff", json_stringn(text.data ? text.data : "", text.len));
	if (!all)
		json_object_set_new(*ret_result, "truncated", json_true());
	return 0;
}

/* An error of a tool is text; it names the first few. */
static int name_others(const struct cordon_apply_result *result, int r, struct cordon_error *err)
{
	const struct cordon_apply_items *items = result->refused.n ? &result->refused : &result->conflicts;

	for (size_t i = 1; i < items->n && i < 6; i++)
		cordon_error_hint(err, "%s%s%s", err->hint, *err->hint ? "; also " : "also ", items->item[i].path);
	return r;
}

static int changes_apply(struct cordon_mcp_request *request, json_t *args, json_t **ret_result, char **ret_text,
			 struct cordon_error *err)
{
	const struct cordon_home *home = &request->mcp->store->home;
	autonamed struct named named = NAMED_NONE;
	autoapply struct cordon_apply_result result = { 0 };
	struct cordon_apply_request wanted = { 0 };
	int r = open_named(request, args, &named, err);

	(void)ret_text;
	if (r < 0)
		return r;
	wanted.paths = named.paths;
	wanted.n_paths = named.n_paths;
	wanted.shown = cordon_json_string(request->question->means, "shown");
	r = cordon_view_apply(&named.view, &wanted, &result, err);
	cordon_view_audit(home, &named.view, "apply", &result, r < 0 ? err : NULL);
	if (r < 0)
		return name_others(&result, r, err);
	*ret_result = cordon_apply_json(&result, CHANGES_MAX);
	json_object_set_new(*ret_result, "view_id", json_string(named.view.record.id));
	return 0;
}

static int changes_discard(struct cordon_mcp_request *request, json_t *args, json_t **ret_result, char **ret_text,
			   struct cordon_error *err)
{
	autonamed struct named named = NAMED_NONE;
	char id[CORDON_ID_SIZE];
	int r = open_named(request, args, &named, err);

	(void)ret_text;
	if (r < 0)
		return r;
	memcpy(id, named.view.record.id, sizeof(id));
	r = cordon_view_discard(&request->mcp->store->home, &named.view, err);
	if (r == 0)
		*ret_result = json_pack("{s:s, s:b}", "view_id", id, "discarded", 1);
	return r;
}

/* Adds to the question what a person must know: how much, what goes, and all that the host would execute. Nothing is cut: a question
 * that is too long is refused, and the client names paths. */
static void describe(const struct cordon_apply_result *result, struct cordon_buf *question)
{
	size_t files = 0, deleted = 0, shown = 0, executed = 0;

	for (size_t i = 0; i < result->applied.n; i++) {
		files += !result->applied.item[i].dir;
		deleted += result->applied.item[i].letter == 'D' && !result->applied.item[i].dir;
		executed += result->applied.item[i].who != NULL;
	}
	cordon_buf_addf(question, " %zu files change, %zu of them are deleted.", files, deleted);
	if (executed)
		cordon_buf_addf(question, " The host would execute %zu of them:", executed);
	for (size_t i = 0; i < result->applied.n; i++) {
		const struct cordon_apply_item *item = &result->applied.item[i];

		if (!item->who)
			continue;
		cordon_buf_adds(question, shown++ ? ", " : " ");
		cordon_text_quote(question, item->path, strlen(item->path));
		cordon_buf_addf(question, " (%s)", item->who);
	}
	if (executed)
		cordon_buf_adds(question, ".");
}

/* Commits come with the files. */
static void describe_commits(const struct cordon_git_take *take, struct cordon_buf *question)
{
	if (!take || take->state != CORDON_GIT_READY)
		return;
	cordon_buf_addf(question, " %zu new commits are taken over", take->n_commits);
	for (size_t i = 0; i < take->n_refs; i++) {
		const struct cordon_git_ref *ref = &take->refs[i];

		cordon_buf_adds(question, i ? ", " : ": ");
		cordon_text_quote(question, ref->name, strlen(ref->name));
		cordon_buf_adds(question, ref->forced ? " is rewritten" : *ref->old ? " moves" : " is new");
	}
	cordon_buf_adds(question, ".");
}

/* Names the view and its root. INVARIANT: the tool then takes this view, and not what the arguments mean by then. */
static int begin_question(const struct named *named, const char *before, const char *between,
			  struct cordon_mcp_question *question, struct cordon_error *err)
{
	const char *root = named->view.record.root;

	question->means = json_pack("{s:s}", "view_id", named->view.record.id);
	if (!question->means ||
	    cordon_buf_addf(&question->text, "%s %s %s ", before, named->view.record.id, between) < 0 ||
	    cordon_text_quote(&question->text, root, strlen(root)) < 0 || cordon_buf_adds(&question->text, "?") < 0)
		return cordon_fail(err, -ENOMEM, CORDON_KIND_LIMIT, "out of memory");
	return 0;
}

static int ask_discard(const struct cordon_mcp_request *request, const json_t *args,
		       struct cordon_mcp_question *question, struct cordon_error *err)
{
	autonamed struct named named = NAMED_NONE;
	int r = open_named(request, args, &named, err);

	return r < 0 ? r : begin_question(&named, "Discard the changes of view", "of", question, err);
}

static int ask_apply(const struct cordon_mcp_request *request, const json_t *args, struct cordon_mcp_question *question,
		     struct cordon_error *err)
{
	autonamed struct named named = NAMED_NONE;
	autoapply struct cordon_apply_result result = { 0 };
	struct cordon_apply_request wanted = { .only_judge = true };
	int r = open_named(request, args, &named, err);

	if (r == 0)
		r = begin_question(&named, "Apply the changes of view", "to", question, err);
	if (r < 0 || cordon_mcp_may(request)) /* nobody will read more */
		return r;
	wanted.paths = named.paths;
	wanted.n_paths = named.n_paths;
	r = cordon_view_apply(&named.view, &wanted, &result, err);
	if (r < 0) {
		cordon_view_audit(&request->mcp->store->home, &named.view, "apply", &result, err);
		return name_others(&result, r, err);
	}
	describe(&result, &question->text);
	describe_commits(result.git, &question->text);
	/* The numbers may be the same and the files others. */
	return json_object_set_new(question->means, "shown", json_string(result.shown)) < 0
		       ? cordon_fail(err, -ENOMEM, CORDON_KIND_LIMIT, "out of memory")
		       : 0;
}

const struct cordon_mcp_tool cordon_mcp_changes_list = {
	.name = "changes_list",
	.title = "List changes",
	.apart = true,
	.description =
		"List the copy-on-write views, oldest first: what runs changed and nobody has applied yet, and what was applied.",
	.input = CORDON_INPUT_CHANGES_LIST,
	.output = CORDON_OUTPUT_CHANGES_LIST,
	.always = CORDON_ALWAYS_CHANGES_LIST,
	.read_only = true,
	.idempotent = true,
	.call = changes_list,
};

const struct cordon_mcp_tool cordon_mcp_changes_diff = {
	.name = "changes_diff",
	.title = "Show changes",
	.apart = true,
	.description = "Show what a view changed: a list, and a diff in git's format. What the host would execute later comes first. If "
		       "truncated, name paths.",
	.input = CORDON_INPUT_CHANGES_DIFF,
	.output = CORDON_OUTPUT_CHANGES_DIFF,
	.always = CORDON_ALWAYS_CHANGES_DIFF,
	.read_only = true,
	.idempotent = true,
	.call = changes_diff,
};

const struct cordon_mcp_tool cordon_mcp_changes_apply = {
	.name = "changes_apply",
	.title = "Apply changes",
	.apart = true,
	.description = "Bring the changes of a view into the host's tree, all or nothing. Needs a person's approval. Paths that the policy of "
		       "the run does not allow, and conflicts with the host's own changes, are named.",
	.input = CORDON_INPUT_CHANGES_APPLY,
	.output = CORDON_OUTPUT_CHANGES_APPLY,
	.always = CORDON_ALWAYS_CHANGES_APPLY,
	.destructive = true,
	.ask = ask_apply,
	.call = changes_apply,
};

const struct cordon_mcp_tool cordon_mcp_changes_discard = {
	.name = "changes_discard",
	.title = "Discard changes",
	.apart = true,
	.description = "Remove a view with its changes. Needs a person's approval. What was applied stays.",
	.input = CORDON_INPUT_CHANGES_DISCARD,
	.output = CORDON_OUTPUT_CHANGES_DISCARD,
	.always = CORDON_ALWAYS_CHANGES_DISCARD,
	.destructive = true,
	.ask = ask_discard,
	.call = changes_discard,
};
