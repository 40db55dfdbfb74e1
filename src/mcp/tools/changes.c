/* SPDX-License-Identifier: Apache-2.0 */
/* The tools for changes in views. A person approves an apply and a discard (approval.c). */
#include "base/path.h"
#include "base/text.h"
#include "mcp/tools.h"
#include "policy/folders.h"
#include "view/patch.h"
#include "view/show.h"

#define REFS_SHOWN 5
#define DIFF_MAX ((size_t)256 << 10) /* bytes of text for a model */
#define PATHS_MAX 1000

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
	const char *root = cordon_mcp_arg(args, "root");

	if (!root)
		return 0;
	if (*root != '/')
		return cordon_fail(err, -EINVAL, CORDON_KIND_USAGE, "root must be an absolute path");
	return cordon_root_open(root, ret_root, err);
}

static int open_named(const struct cordon_store *store, const json_t *args, struct named *named,
		      struct cordon_error *err)
{
	const char *text = cordon_mcp_arg(args, "view_id");
	const json_t *paths = json_object_get(args, "paths");
	struct cordon_root root = { .fd = -1 };
	char id[CORDON_ID_SIZE];
	size_t i;
	json_t *path;
	int r = open_root(args, &root, err);

	if (r == 0 && root.fd < 0 && cordon_streq(text, "latest"))
		r = cordon_fail(err, -EINVAL, CORDON_KIND_USAGE, "latest of which root? say root");
	if (r == 0)
		r = cordon_view_find(&store->home, text, root.fd, id, err);
	cordon_root_done(&root);
	if (r == 0)
		r = cordon_view_open(&store->home, id, &named->view, err);
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
	size_t n = 0;

	*ret_all = true;
	if (cordon_changes_order(delta, named->paths, named->n_paths, &places, &n) < 0)
		return cordon_fail_errno(err, -ENOMEM, "cannot list the changes");
	for (size_t i = 0; i < n; i++) {
		autobuf struct cordon_buf patch = CORDON_BUF(CORDON_PATCH_MAX);
		int r = cordon_patch_add(delta, &delta->changes[places[i]], &patch, err);

		if (r < 0)
			return r;
		if (patch.len && cordon_text_escape_lines(text, patch.data, patch.len) < 0)
			*ret_all = false;
	}
	return 0;
}

static int changes_diff(struct cordon_mcp_request *request, json_t *args, json_t **ret_result, char **ret_text,
			struct cordon_error *err)
{
	autonamed struct named named = NAMED_NONE;
	autodelta struct cordon_delta delta = CORDON_DELTA_NONE;
	autobuf struct cordon_buf text = CORDON_BUF(DIFF_MAX);
	bool all = true;
	int r = open_named(request->mcp->store, args, &named, err);

	(void)ret_text;
	if (r == 0)
		r = cordon_delta_find(&named.view, &delta, err);
	if (r == 0)
		r = add_patches(&delta, &named, &text, &all, err);
	if (r < 0)
		return r;
	*ret_result = cordon_changes_json(&delta, named.paths, named.n_paths, true);
	json_object_set_new(*ret_result, "view_id", json_string(named.view.record.id));
	json_object_set_new(*ret_result, "diff", json_stringn(text.data ? text.data : "", text.len));
	json_object_set_new(*ret_result, "truncated", json_boolean(!all));
	return 0;
}

/*
 * INVARIANT: nothing is applied or discarded that no person was asked about. If no question could be made, because the tool
 * would refuse the call, this mark stands in the arguments, where the schema lets no client put it. What was the reason may
 * be gone by now, so the tool itself looks at the mark.
 */
#define UNASKED "no person was asked"

static bool was_not_asked(const json_t *args)
{
	return json_object_get(args, UNASKED) != NULL;
}

static int fail_unasked(struct cordon_error *err)
{
	return cordon_fail(err, -EAGAIN, CORDON_KIND_CONFLICT,
			   "the view, or the host's tree, has just changed: ask again");
}

static int changes_apply(struct cordon_mcp_request *request, json_t *args, json_t **ret_result, char **ret_text,
			 struct cordon_error *err)
{
	const struct cordon_home *home = &request->mcp->store->home;
	autonamed struct named named = NAMED_NONE;
	autoapply struct cordon_apply_result result = { 0 };
	struct cordon_apply_request wanted = { 0 };
	int r = open_named(request->mcp->store, args, &named, err);

	(void)ret_text;
	if (r < 0)
		return r;
	wanted.paths = named.paths;
	wanted.n_paths = named.n_paths;
	wanted.only_judge = was_not_asked(args);
	r = cordon_view_apply(&named.view, &wanted, &result, err);
	if (r == 0 && wanted.only_judge)
		return fail_unasked(err);
	cordon_view_audit(home, &named.view, "apply", &result, r < 0 ? err : NULL);
	if (r < 0) {
		const struct cordon_apply_items *named_items = result.refused.n ? &result.refused : &result.conflicts;

		/* An error of a tool is text; it names the first few. */
		for (size_t i = 1; i < named_items->n && i < 6; i++)
			cordon_error_hint(err, "%s%s%s", err->hint, *err->hint ? "; also " : "also ",
					  named_items->item[i].path);
		return r;
	}
	*ret_result = cordon_apply_json(&result);
	json_object_set_new(*ret_result, "view_id", json_string(named.view.record.id));
	return 0;
}

static int changes_discard(struct cordon_mcp_request *request, json_t *args, json_t **ret_result, char **ret_text,
			   struct cordon_error *err)
{
	autonamed struct named named = NAMED_NONE;
	char id[CORDON_ID_SIZE];
	int r = open_named(request->mcp->store, args, &named, err);

	(void)ret_text;
	if (r < 0)
		return r;
	if (was_not_asked(args))
		return fail_unasked(err);
	memcpy(id, named.view.record.id, sizeof(id));
	r = cordon_view_discard(&request->mcp->store->home, &named.view, err);
	if (r == 0)
		*ret_result = json_pack("{s:s, s:b}", "view_id", id, "discarded", 1);
	return r;
}

/* Adds to the question what a person must know: how much, what goes, and what the host would execute. */
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
	for (size_t i = 0; i < result->applied.n && shown < 10; i++) {
		const struct cordon_apply_item *item = &result->applied.item[i];

		if (!item->who)
			continue;
		cordon_buf_adds(question, shown++ ? ", " : " ");
		cordon_text_escape(question, item->path, strlen(item->path));
		cordon_buf_addf(question, " (%s)", item->who);
	}
}

/* Commits come with the files. */
static void describe_commits(const struct cordon_git_take *take, struct cordon_buf *question)
{
	if (!take || take->state != CORDON_GIT_READY)
		return;
	cordon_buf_addf(question, " %zu new commits are taken over", take->n_commits);
	for (size_t i = 0; i < take->n_refs && i < REFS_SHOWN; i++) {
		const struct cordon_git_ref *ref = &take->refs[i];

		cordon_buf_adds(question, i ? ", " : ": ");
		cordon_text_escape(question, ref->name, strlen(ref->name));
		cordon_buf_adds(question, ref->forced ? " is rewritten" : *ref->old ? " moves" : " is new");
	}
	if (take->n_refs > REFS_SHOWN)
		cordon_buf_addf(question, " and %zu refs more", take->n_refs - REFS_SHOWN);
	cordon_buf_adds(question, ".");
}

static void make_question(const struct cordon_mcp_request *request, const char *tool, const json_t *args,
			  struct cordon_buf *ret_question)
{
	autonamed struct named named = NAMED_NONE;
	autoapply struct cordon_apply_result result = { 0 };
	struct cordon_apply_request wanted = { .only_judge = true };
	autobuf struct cordon_buf root = CORDON_BUF(8 * CORDON_PATH_MAX);

	/* The tool itself answers when something is wrong. */
	if (open_named(request->mcp->store, args, &named, NULL) < 0 ||
	    cordon_text_escape(&root, named.view.record.root, strlen(named.view.record.root)) < 0)
		return;
	if (cordon_streq(tool, "changes_discard")) {
		cordon_buf_addf(ret_question, "Discard the changes of view %s of %s?", named.view.record.id, root.data);
		return;
	}
	wanted.paths = named.paths;
	wanted.n_paths = named.n_paths;
	if (cordon_view_apply(&named.view, &wanted, &result, NULL) < 0)
		return;
	cordon_buf_addf(ret_question, "Apply the changes of view %s to %s?", named.view.record.id, root.data);
	describe(&result, ret_question);
	describe_commits(result.git, ret_question);
}

void cordon_mcp_changes_question(const struct cordon_mcp_request *request, const char *tool, json_t *args,
				 struct cordon_buf *ret_question)
{
	make_question(request, tool, args, ret_question);
	if (!ret_question->len)
		json_object_set_new(args, UNASKED, json_true());
}

#define VIEW                                                                                                                      \
	"\"view_id\": {\"type\": \"string\", \"description\": \"An id, its first characters, or latest (then root is needed)\"}," \
	"\"root\": {\"type\": \"string\", \"description\": \"Absolute path of the root\"}"
#define PATHS                                                                                                          \
	"\"paths\": {\"type\": \"array\", \"maxItems\": 1000, \"items\": {\"type\": \"string\"}, \"description\": \"Relative to the root; default: all\"}"
#define LIST(key) "\"" key "\": {\"type\": \"array\", \"items\": {\"type\": \"object\"}}"

const struct cordon_mcp_tool cordon_mcp_changes_list = {
	.name = "changes_list",
	.title = "List changes",
	.apart = true,
	.description =
		"List the copy-on-write views, oldest first: what runs changed and nobody has applied yet, and what was applied.",
	.input = "{\"type\": \"object\", \"additionalProperties\": false, \"properties\": {"
		 "\"root\": {\"type\": \"string\", \"description\": \"Absolute path; default: views of every root\"}, " CORDON_MCP_LIST_INPUT
		 "}}",
	.output = "{" LIST("changes") ", \"total\": {\"type\": \"integer\"}}",
	.always = "[\"changes\", \"total\"]",
	.read_only = true,
	.idempotent = true,
	.call = changes_list,
};

const struct cordon_mcp_tool cordon_mcp_changes_diff = {
	.name = "changes_diff",
	.title = "Show changes",
	.apart = true,
	.description =
		"Show what a view changed: a list, and a diff in git's format. What the host would execute later comes first.",
	.input = "{\"type\": \"object\", \"additionalProperties\": false, \"required\": [\"view_id\"], \"properties\": {" VIEW
		 "," PATHS "}}",
	.output = "{\"view_id\": {\"type\": \"string\"}, " LIST("changes") ", " LIST(
		"left_out") ", \"diff\": {\"type\": \"string\"},"
			    "\"truncated\": {\"type\": \"boolean\"}}",
	.always = "[\"view_id\", \"changes\", \"left_out\", \"diff\", \"truncated\"]",
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
	.input = "{\"type\": \"object\", \"additionalProperties\": false, \"required\": [\"view_id\"], \"properties\": {" VIEW
		 "," PATHS "}}",
	.output = "{\"view_id\": {\"type\": \"string\"}, " LIST("changed") ", " LIST("conflicts") ", " LIST("refused") ", " LIST(
		"left_out") ", \"git\": {\"type\": \"object\", \"description\": \"What became of its commits\"}}",
	.always = "[\"view_id\", \"changed\", \"left_out\"]",
	.destructive = true,
	.call = changes_apply,
};

const struct cordon_mcp_tool cordon_mcp_changes_discard = {
	.name = "changes_discard",
	.title = "Discard changes",
	.apart = true,
	.description = "Remove a view with its changes. Needs a person's approval. What was applied stays.",
	.input = "{\"type\": \"object\", \"additionalProperties\": false, \"required\": [\"view_id\"], \"properties\": {" VIEW
		 "}}",
	.output = "{\"view_id\": {\"type\": \"string\"}, \"discarded\": {\"type\": \"boolean\"}}",
	.always = "[\"view_id\", \"discarded\"]",
	.destructive = true,
	.call = changes_discard,
};
