/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Brings accepted results to the host: into its tree, as commits, and as "passes" in the PRD, in this order. A loop that is
 * killed on the way does the rest when it is started again: each part finds out whether it was done.
 */
#include <stdio.h>

#include "loop/internal.h"
#include "view/apply.h"
#include "view/journal.h"

/* ---- views ---- */

/* Opens a view and locks it. A killed apply is ended first. The loop makes the commits, and not apply. */
static int open_view(const struct cordon_loop *loop, const char *id, struct cordon_view *ret_view,
		     struct cordon_error *err)
{
	size_t ended;
	int r = cordon_view_open(loop->home, id, ret_view, err);

	if (r == 0)
		r = cordon_view_lock(ret_view, err);
	if (r == 0)
		r = cordon_apply_journal_recover(ret_view, &ended, err);
	ret_view->record.git = CORDON_VIEW_GIT_NONE;
	return r;
}

static void remove_views(const struct cordon_loop *loop, const char *keep)
{
	for (size_t i = 0; i < loop->n_stack; i++)
		if (*loop->stack[i].view && !cordon_streq(loop->stack[i].view, keep))
			cordon_loop_remove_view(loop, loop->stack[i].view);
}

static bool is_earlier(const struct cordon_view_time *a, const struct cordon_view_time *b)
{
	return a->sec != b->sec ? a->sec < b->sec : a->nsec < b->nsec;
}

/* ---- results that go back ---- */

/* The host changed the same files: the result and all that were accepted after it go back to be done again. */
static int give_back(struct cordon_loop *loop, size_t from, const char *why, struct cordon_error *err)
{
	int r = 0;

	for (size_t i = from; r == 0 && i < loop->n_stack; i++) {
		const struct cordon_loop_accepted *item = &loop->stack[i];
		json_t *event = cordon_loop_event(loop, "failed", item->n, item->story);
		char note[1024];

		snprintf(note, sizeof(note), "%s: %.700s",
			 i == from ? "The result conflicts with what was changed on the host meanwhile"
				   : "The result was built on one that could not be taken over",
			 why);
		loop->summary.conflicts++;
		cordon_loop_note(loop, item->story, loop->stories[item->story].calls, note);
		cordon_loop_set(loop, item->story, CORDON_STORY_WAITING);
		json_object_set_new(event, "counts", json_false());
		json_object_set_new(event, "note", json_string(note));
		r = cordon_loop_say(loop, event, false, err);
		if (*item->view)
			cordon_loop_remove_view(loop, item->view);
	}
	cordon_loop_pop(loop, from);
	loop->git.has_parent = false;
	loop->gave_back = true;
	return r;
}

/* ---- one result ---- */

/* `commit`: its commit is to be made before. */
static int apply_one(struct cordon_loop *loop, const char *id, bool commit, struct cordon_error *err)
{
	autoview struct cordon_view view = CORDON_VIEW_NONE;
	autoapply struct cordon_apply_result result = { 0 };
	struct cordon_apply_request request = { 0 };
	int r = open_view(loop, id, &view, err);

	if (r == 0 && view.record.state != CORDON_VIEW_APPLIED && commit)
		r = cordon_loop_git_commit(loop, err);
	if (r < 0 || view.record.state == CORDON_VIEW_APPLIED)
		return r;
	r = cordon_view_apply(&view, &request, &result, err);
	if (r == 0)
		cordon_view_audit(loop->home, &view, "apply", &result, NULL);
	return r;
}

/* ---- several results ---- */

/* The first result that meets a change of the host's; *ret_n is how many can be brought over before it. */
static int find_conflict(struct cordon_loop *loop, const struct cordon_view_time *since, size_t *ret_n,
			 struct cordon_error *ret_why, struct cordon_error *err)
{
	for (size_t i = 0; i < loop->n_stack; i++) {
		autoview struct cordon_view view = CORDON_VIEW_NONE;
		autoapply struct cordon_apply_result result = { 0 };
		struct cordon_apply_request request = { .only_judge = true };
		int r;

		if (!*loop->stack[i].view)
			continue;
		r = open_view(loop, loop->stack[i].view, &view, err);
		if (r < 0)
			return r;
		json_array_clear(view.record.layers); /* what lies below it comes over with it */
		view.record.started.sec = since->sec;
		view.record.started.nsec = since->nsec;
		r = cordon_view_apply(&view, &request, &result, ret_why);
		if (r == -EEXIST || r == -EPERM) {
			*ret_n = i;
			return 0;
		}
		if (r < 0) {
			if (err)
				*err = *ret_why;
			return r;
		}
	}
	*ret_n = loop->n_stack;
	return 0;
}

static int find_start(const struct cordon_loop *loop, struct cordon_view_time *ret_start, struct cordon_error *err)
{
	bool found = false;

	for (size_t i = 0; i < loop->n_stack; i++) {
		autoview struct cordon_view view = CORDON_VIEW_NONE;
		int r = *loop->stack[i].view ? cordon_view_open(loop->home, loop->stack[i].view, &view, err) : 0;

		if (r < 0)
			return r;
		if (!*loop->stack[i].view || (found && !is_earlier(&view.record.started, ret_start)))
			continue;
		ret_start->sec = view.record.started.sec;
		ret_start->nsec = view.record.started.nsec;
		found = true;
	}
	return 0;
}

static int say_landing(struct cordon_loop *loop, const char *view, struct cordon_error *err)
{
	json_t *calls = json_array();

	for (size_t i = 0; i < loop->n_stack; i++)
		json_array_append_new(calls, json_integer((json_int_t)loop->stack[i].n));
	cordon_copy(loop->landing, sizeof(loop->landing), view, strlen(view));
	return cordon_loop_say(loop, json_pack("{s:s, s:o, s:s}", "event", "landing", "calls", calls, "view", view),
			       true, err);
}

/* Makes a view for all results together: it began when the first of them did. */
static int make_whole(struct cordon_loop *loop, struct cordon_view *ret_view, struct cordon_error *err)
{
	static char name[] = "cordon", verb[] = "loop";
	char *argv[] = { name, verb, NULL };
	CORDON_CLEANUP(cordon_policy_freep) struct cordon_policy *policy = NULL;
	struct cordon_loop_scope scope = { 0 };
	struct cordon_view_request request = { .argv = argv };
	struct cordon_view_time start = { 0 };
	struct cordon_error why = { 0 };
	size_t n = 0;
	int r = find_start(loop, &start, err);

	if (r == 0)
		r = find_conflict(loop, &start, &n, &why, err);
	if (r == 0 && n < loop->n_stack)
		return give_back(loop, n, why.message, err);
	if (r == 0)
		r = loop->options.observer.policy(loop->options.observer.maker, &scope, &policy, err);
	request.policy = policy;
	if (r == 0)
		r = cordon_view_create(loop->home, &request, ret_view, err);
	if (r < 0)
		return r;
	ret_view->record.started.sec = start.sec;
	ret_view->record.started.nsec = start.nsec;
	ret_view->record.state = CORDON_VIEW_ENDED;
	r = cordon_view_save(ret_view, err);
	if (r == 0)
		r = cordon_loop_git_commit(loop, err);
	return r < 0 ? r : say_landing(loop, ret_view->record.id, err);
}

/* Moves the layers of all results into one, from the oldest to the newest. */
static int merge_into(struct cordon_loop *loop, const char *id, struct cordon_error *err)
{
	autofd int to = -1;
	int r = cordon_loop_upper(loop, id, &to, err);

	for (size_t i = 0; r == 0 && i < loop->n_stack; i++) {
		autofd int from = -1;

		if (!*loop->stack[i].view)
			continue;
		r = cordon_loop_upper(loop, loop->stack[i].view, &from, err);
		if (r == 0)
			r = cordon_layer_merge(from, to, err);
	}
	return r;
}

static int apply_several(struct cordon_loop *loop, struct cordon_error *err)
{
	autoview struct cordon_view view = CORDON_VIEW_NONE;
	int r;

	if (!*loop->landing) {
		r = make_whole(loop, &view, err);
		cordon_view_close(&view);
		if (r < 0 || !*loop->landing)
			return r; /* results went back */
	}
	r = merge_into(loop, loop->landing, err);
	return r < 0 ? r : apply_one(loop, loop->landing, false, err);
}

/* The checkout stays as it is: the results go to the layer that stands for the branch. */
static int write_base(struct cordon_loop *loop, struct cordon_error *err)
{
	int r = 0;

	if (!*loop->landing) {
		r = cordon_loop_git_commit(loop, err);
		if (r == 0)
			r = say_landing(loop, loop->git.base, err);
	}
	return r < 0 ? r : merge_into(loop, loop->git.base, err);
}

/* ---- all of it ---- */

/* The host's tree gets the results. Those that conflict with the host go back, and then it is tried with the rest. */
static int write_once(struct cordon_loop *loop, struct cordon_error *err)
{
	struct cordon_error why = { 0 };
	size_t n = 0, only = 0;
	int r;

	for (size_t i = 0; i < loop->n_stack; i++)
		if (*loop->stack[i].view) {
			only = i;
			n++;
		}
	if (!n)
		return 0;
	if (loop->git.active && !loop->git.checked_out)
		return write_base(loop, err);
	r = n == 1 && !*loop->landing ? apply_one(loop, loop->stack[only].view, !loop->git.has_parent, &why)
				      : apply_several(loop, &why);
	if ((r == -EEXIST || r == -EPERM || r == -ESTALE) && !*loop->landing)
		return give_back(loop, n == 1 ? only : 0, why.message, err);
	/* The host changed a file between the look at it and the change. What was merged can't be taken apart. */
	if ((r == -EEXIST || r == -EPERM || r == -ESTALE) && *loop->landing) {
		cordon_loop_remove_view(loop, loop->landing);
		loop->landing[0] = '\0';
		return give_back(loop, 0, why.message, err);
	}
	if (r < 0 && err)
		*err = why;
	return r;
}

static int write_tree(struct cordon_loop *loop, struct cordon_error *err)
{
	int r = 0;

	do {
		loop->gave_back = false;
		r = write_once(loop, err);
	} while (r == 0 && loop->gave_back && loop->n_stack);
	return r;
}

static int mark_prds(struct cordon_loop *loop, struct cordon_error *err)
{
	int r = 0;

	for (size_t p = 0; r == 0 && p < loop->options.n_prds; p++) {
		struct cordon_errors errors CORDON_CLEANUP(cordon_errors_done) = { 0 };
		struct cordon_prd_edit edits[CORDON_LOOP_STACK_MAX + 1];
		size_t n = 0;

		for (size_t i = 0; i < loop->n_stack; i++)
			if (loop->stories[loop->stack[i].story].prd == p)
				edits[n++] = (struct cordon_prd_edit){ .id = loop->stories[loop->stack[i].story].story->id,
								       .set_passes = true,
								       .passes = true };
		if (n && cordon_prd_apply(loop->options.prds[p].path, edits, n, &errors) < 0)
			r = cordon_errors_first(&errors, err);
	}
	return r;
}

static int say_passed(struct cordon_loop *loop, struct cordon_error *err)
{
	json_t *calls = json_array(), *stories = json_array();

	for (size_t i = 0; i < loop->n_stack; i++) {
		struct cordon_loop_accepted *item = &loop->stack[i];
		json_t *story = item->result ? json_copy(item->result) : json_object();

		json_object_set_new(story, "story_id", json_string(loop->stories[item->story].story->id));
		if (*item->commit)
			json_object_set_new(story, "commit", json_string(item->commit));
		json_array_append_new(calls, json_integer((json_int_t)item->n));
		json_array_append_new(stories, story);
		cordon_loop_set(loop, item->story, CORDON_STORY_PASSED);
		loop->summary.done++;
	}
	return cordon_loop_say(loop, json_pack("{s:s, s:o, s:o}", "event", "passed", "calls", calls, "stories", stories),
			       false, err);
}

int cordon_loop_land(struct cordon_loop *loop, struct cordon_error *err)
{
	int64_t began = cordon_loop_us();
	const char *keep = "";
	int r = write_tree(loop, err);

	if (r == 0 && loop->n_stack)
		r = cordon_loop_git_land(loop, err);
	if (r == 0 && loop->n_stack)
		r = mark_prds(loop, err);
	if (r == 0 && loop->n_stack)
		r = cordon_loop_update_scope(loop, 0, err);
	if (r == 0 && loop->n_stack)
		r = say_passed(loop, err);
	/* One result that was applied by itself stays, so that it can be undone. */
	for (size_t i = 0; i < loop->n_stack; i++)
		keep = *loop->stack[i].view ? loop->stack[i].view : keep;
	if (r == 0) {
		remove_views(loop, *loop->landing || loop->git.active ? "" : keep);
		cordon_loop_pop(loop, 0);
		loop->landing[0] = '\0';
		loop->git.has_parent = false;
	}
	loop->summary.own_us += (uint64_t)(cordon_loop_us() - began);
	return r;
}
