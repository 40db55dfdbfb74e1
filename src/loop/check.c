/* SPDX-License-Identifier: Apache-2.0 */
/* Judges the result of a call by its policy, and starts the check of it in a fresh view. */
#include <fcntl.h>
#include <stdio.h>

#include "audit/audit.h"
#include "loop/hook.h"
#include "loop/internal.h"
#include "view/judge.h"

/* ---- judging ---- */

/* Whether a directory that is there on the host stays what it is: only something in it changed. */
static bool is_on_the_way(const struct cordon_loop *loop, const struct cordon_layer_entry *entry)
{
	struct stat st;

	return S_ISDIR(entry->mode) && !entry->opaque &&
	       fstatat(loop->root.fd, entry->path, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode);
}

/* A scope that is not enforced: what lies outside is told. */
static bool outside_scope(const struct cordon_policy *scope, const char *path, bool dir)
{
	struct cordon_decision decision;

	if (!scope || dir)
		return false;
	cordon_policy_decide(scope, path, CORDON_OP_WRITE, &decision);
	return decision.verdict != CORDON_ALLOW;
}

/* The patterns of a story's fileScope as a policy, when changes are only compared with them; else NULL. */
static int make_scope(const struct cordon_loop *loop, const struct cordon_loop_call *call, struct cordon_policy **ret,
		      struct cordon_error *err)
{
	const struct cordon_prd_story *story = loop->stories[call->story].story;
	int r = 0;

	if (!story->n_scope || loop->options.file_scope == CORDON_FILE_SCOPE_OFF ||
	    cordon_loop_scope_enforced(loop, call->story))
		return 0;
	r = cordon_policy_new_like(call->policy, ret, err);
	for (size_t i = 0; r == 0 && i < story->n_scope; i++)
		r = cordon_policy_add_grant(*ret, story->scope[i], CORDON_ACCESS_WRITE, "fileScope", err);
	return r;
}

/* Finds an entry; the list is sorted. */
static bool layer_has(const struct cordon_layer *layer, const char *path)
{
	size_t low = 0, high = layer->n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		int order = strcmp(layer->items[middle].path, path);

		if (order == 0)
			return true;
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return false;
}

/* Judges the deletions that no entry of the layer names: what lay below a directory that is gone, or was made anew. */
static int judge_deletions(struct cordon_loop_call *call, const struct cordon_policy *policy,
			   const struct cordon_policy *scope, char **ret_why, struct cordon_error *err)
{
	for (size_t i = 0; i < call->changed.n; i++) {
		const struct cordon_delta_change *change = &call->changed.changes[i];
		const char *why;
		bool warned;

		if (change->kind != CORDON_DELTA_DELETED || layer_has(&call->result, change->path))
			continue;
		why = cordon_judge_change(policy, change, call->result.arena, &warned);
		if (why && asprintf(ret_why, "The change of %s was refused: %s.", change->path, why) < 0)
			return cordon_fail_errno(err, -ENOMEM, "the result");
		if (why)
			return 0;
		if (warned || outside_scope(scope, change->path, S_ISDIR(change->old.mode)))
			json_array_append_new(call->outside, cordon_audit_text(change->path));
	}
	return 0;
}

int cordon_loop_judge(struct cordon_loop *loop, struct cordon_loop_call *call, char **ret_why, struct cordon_error *err)
{
	CORDON_CLEANUP(cordon_policy_freep) struct cordon_policy *scope = NULL;
	CORDON_CLEANUP(cordon_policy_freep) struct cordon_policy *policy = NULL;
	autofd int upper = -1;
	int r = cordon_loop_upper(loop, call->view.record.id, &upper, err);

	if (r == 0)
		r = cordon_layer_read(upper, &call->result, err);
	if (r == 0)
		r = cordon_delta_find(&call->view, &call->changed, err);
	if (r == 0)
		r = cordon_view_policy(&call->view, &policy, err); /* without what the repository added for the run */
	if (r == 0)
		r = make_scope(loop, call, &scope, err);
	if (r < 0)
		return r;
	call->outside = json_array();
	for (size_t i = 0; i < call->result.n; i++) {
		struct cordon_layer_entry *entry = &call->result.items[i];
		struct cordon_delta_change change = { .path = entry->path,
						      .kind = entry->mode ? CORDON_DELTA_ADDED : CORDON_DELTA_DELETED,
						      .new.mode = entry->mode };
		const char *why;
		bool warned;

		if (is_on_the_way(loop, entry))
			continue;
		why = cordon_judge_change(policy, &change, call->result.arena, &warned);
		if (why) {
			if (asprintf(ret_why, "The change of %s was refused: %s.", entry->path, why) < 0)
				return cordon_fail_errno(err, -ENOMEM, "the result");
			return 0;
		}
		entry->in_scope = !warned;
		if (warned || outside_scope(scope, entry->path, S_ISDIR(entry->mode)))
			json_array_append_new(call->outside, cordon_audit_text(entry->path));
	}
	return judge_deletions(call, policy, scope, ret_why, err);
}

/* ---- hooks ---- */

/* Whether hooks are told of a change: of every one that apply carries out, but not of a directory in which only something changed. */
static bool is_told(const struct cordon_delta_change *change)
{
	return change->kind != CORDON_DELTA_TOUCHED || !S_ISDIR(change->new.mode);
}

/* The path of a change; that of a directory ends with a slash. */
static char *told_path(const struct cordon_delta_change *change)
{
	bool dir = S_ISDIR(change->kind == CORDON_DELTA_DELETED ? change->old.mode : change->new.mode);
	char *path = NULL;

	return asprintf(&path, "%s%s", change->path, dir ? "/" : "") < 0 ? NULL : path;
}

static int run_hooks(const struct cordon_loop *loop, struct cordon_hook_ask *ask, const struct cordon_delta *changed,
		     struct cordon_error *err)
{
	autofree char **paths = calloc(changed->n + 1, sizeof(*paths));
	size_t n = 0;
	int r = paths ? 0 : -ENOMEM;

	for (size_t i = 0; r == 0 && i < changed->n; i++)
		if (is_told(&changed->changes[i]) && !(paths[n++] = told_path(&changed->changes[i])))
			r = -ENOMEM;
	ask->paths = (const char *const *)paths;
	ask->n_paths = n;
	r = r < 0 ? cordon_fail_errno(err, r, "hooks") : cordon_hooks_run(loop->options.settings, ask, err);
	for (size_t i = 0; i < n; i++)
		free(paths[i]);
	return r;
}

int cordon_loop_hooks(const struct cordon_loop *loop, cordon_hook_event event, size_t story,
		      const struct cordon_delta *changed, struct cordon_error *err)
{
	const struct cordon_loop_story *one = &loop->stories[story];
	const struct cordon_loop_prd *prd = &loop->options.prds[one->prd];
	struct cordon_hook_ask ask = { .event = event,
				       .root = &loop->root,
				       .folders = prd->items,
				       .n_folders = prd->n_items,
				       .mode = prd->mode,
				       .paths = one->story->scope,
				       .n_paths = one->story->n_scope };
	int r;

	if (!loop->options.settings || !cordon_hooks_have(loop->options.settings, event))
		return 0;
	r = changed ? run_hooks(loop, &ask, changed, err) : cordon_hooks_run(loop->options.settings, &ask, err);
	return r == -EPERM ? 1 : r;
}

/* ---- the check ---- */

static bool all_in_scope(const struct cordon_layer *layer)
{
	for (size_t i = 0; i < layer->n; i++)
		if (!layer->items[i].in_scope)
			return false;
	return true;
}

/* A view of its own with the part of the result that is in scope; everything else comes from the base. */
static int make_part(struct cordon_loop *loop, struct cordon_loop_call *call, struct cordon_error *err)
{
	struct cordon_view_request request = { .policy = call->check_policy, .argv = call->check_argv };
	autofd int from = -1, to = -1;
	int r = cordon_view_create(loop->home, &request, &call->check_result, err);

	if (r == 0)
		r = cordon_loop_upper(loop, call->view.record.id, &from, err);
	if (r == 0)
		r = cordon_loop_upper(loop, call->check_result.record.id, &to, err);
	return r < 0 ? r : cordon_layer_copy(from, &call->result, to, err);
}

/* The result becomes the topmost layer. */
static int put_on_top(const struct cordon_loop *loop, struct cordon_loop_call *call, const char *view,
		      struct cordon_error *err)
{
	CORDON_UNCLEARED char path[CORDON_PATH_MAX];
	char *top;

	if (cordon_concat(path, sizeof(path), loop->home->path, "/state/views/", view, "/" CORDON_VIEW_UPPER,
			  (char *)NULL) < 0 ||
	    !(top = strdup(path)))
		return cordon_fail_errno(err, -ENOMEM, "layers");
	memmove(call->layers + 1, call->layers, call->n_layers * sizeof(*call->layers));
	call->layers[0] = top;
	call->n_layers++;
	return 0;
}

static int make_view(struct cordon_loop *loop, struct cordon_loop_call *call, struct cordon_error *err)
{
	struct cordon_view_request request = { .policy = call->check_policy, .argv = call->check_argv };
	bool whole = all_in_scope(&call->result);
	int r = whole ? 0 : make_part(loop, call, err);

	if (r == 0)
		r = put_on_top(loop, call, whole ? call->view.record.id : call->check_result.record.id, err);
	return r < 0 ? r : cordon_view_create(loop->home, &request, &call->check_view, err);
}

int cordon_loop_check(struct cordon_loop *loop, struct cordon_loop_call *call, struct cordon_error *err)
{
	static char shell[] = "sh", option[] = "-c";
	struct cordon_loop_scope scope = { 0 };
	char name[CORDON_CREW_NAME_MAX + 1];
	struct cordon_job_spec job = { .name = name, .run = loop->options.spec };
	json_t *event;
	int r;

	call->check_argv[0] = shell;
	call->check_argv[1] = option;
	call->check_argv[2] = strdup(loop->options.verify);
	if (!call->check_argv[2])
		return cordon_fail_errno(err, -ENOMEM, "the check");
	r = loop->options.observer.policy(loop->options.observer.maker, &scope, &call->check_policy, err);
	if (r == 0)
		r = cordon_loop_protect(loop, call->check_policy, err);
	if (r == 0 && call->view.dir_fd >= 0)
		r = make_view(loop, call, err);
	if (r < 0)
		return r;
	snprintf(name, sizeof(name), "check.%llu", (unsigned long long)call->n);
	job.run.policy = call->check_policy;
	job.run.argv = call->check_argv;
	job.run.env = call->env;
	job.run.n_env = call->n_env;
	job.run.cwd = loop->root.path;
	job.run.fail_on_violation = false;
	job.run.view = call->check_view.dir_fd >= 0 ? call->check_view.path : NULL;
	job.run.view_layers = call->layers;
	job.run.n_view_layers = call->n_layers;
	call->checking = true;
	cordon_loop_set(loop, call->story, CORDON_STORY_CHECKING);
	event = cordon_loop_event(loop, "check", call->n, call->story);
	json_object_set_new(event, "job", json_integer((json_int_t)cordon_crew_count(loop->crew))); /* the next one */
	r = cordon_loop_say(loop, event, false, err);
	return r < 0 ? r : cordon_crew_add(loop->crew, &job, &call->job, err);
}
