/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a program in a new view, and with a git directory of its own, where that was asked for. */
#include "base/exit.h"
#include "base/path.h"
#include "git/record.h"
#include "run/result.h"
#include "view/internal.h"
#include "view/show.h"

struct work {
	const struct cordon_home *home;
	const struct cordon_view_work *ask;
	bool dry; /* only a plan is made */
	cordon_git_mode mode;
	struct cordon_error why; /* the repository is only read, and nobody asked for that */
	struct cordon_view view;
	struct cordon_git_record record; /* of a run that commits and works in no view */
};

cordon_view_git cordon_view_git_of(cordon_git_mode mode)
{
	return mode == CORDON_GIT_COMMIT ? CORDON_VIEW_GIT_COMMIT
	       : mode == CORDON_GIT_READ ? CORDON_VIEW_GIT_READ
					 : CORDON_VIEW_GIT_NONE;
}

static void choose_mode(struct work *work)
{
	const struct cordon_view_work *ask = work->ask;

	if (ask->git_chosen)
		work->mode = ask->git;
	/* A scope says what is seen of the repository. The history would show what it hides. */
	else if (ask->git != CORDON_GIT_DEFAULT || (ask->cow && !cordon_policy_has_scope(ask->policy)))
		work->mode = cordon_git_mode_choose(ask->policy, ask->git, ask->cow, &work->why);
}

/* Makes what the run works in. The view and the record store the policy before it is changed for the repository. */
static int begin(struct work *work, struct cordon_run_spec *spec, struct cordon_error *err)
{
	struct cordon_view_request request = { .policy = work->ask->policy,
					       .argv = spec->argv,
					       .session = work->ask->session,
					       .git = cordon_view_git_of(work->mode) };
	bool view = work->ask->cow && !work->dry;
	struct cordon_git_begin git = { .mode = work->mode,
					.asked = work->ask->git != CORDON_GIT_DEFAULT && !work->ask->git_chosen,
					.view = view,
					.at = spec->at };
	int r = 0;

	if (view)
		r = cordon_view_create(work->home, &request, &work->view, err);
	else if (work->mode == CORDON_GIT_COMMIT)
		r = cordon_git_record_make(work->home, work->ask->policy, &work->record, err);
	git.record = view ? work->view.path : work->record.path;
	if (r == 0 && work->ask->cow && work->dry &&
	    cordon_path_join(work->home->path, "state/views/ID", work->view.path, sizeof(work->view.path)) < 0)
		r = cordon_fail_errno(err, -ENAMETOOLONG, "view");
	if (r == 0)
		r = cordon_git_begin(work->ask->policy, &git, err);
	if (work->ask->cow)
		spec->view = work->view.path;
	return r;
}

/* Removes what was made for a run that was not started. */
static void drop(struct work *work)
{
	if (work->view.dir_fd >= 0)
		cordon_view_remove(work->home, &work->view, NULL);
	if (work->record.dir_fd >= 0)
		cordon_git_record_remove(work->home, &work->record, NULL);
}

/* The program ran; that an end could not be recorded is not its fault. The next reader of a view repairs it, and
 * commits wait. */
static void note_error(struct cordon_result *result, const struct cordon_error *err)
{
	if (!result->error.code)
		result->error = *err;
}

static void end_view(struct work *work, struct cordon_result *result)
{
	struct cordon_error err = { 0 };
	bool removed = false, keep = cordon_git_changed(work->view.path);

	if (cordon_view_end(work->home, &work->view, result->run_id, keep, &removed, &err) < 0)
		note_error(result, &err);
	if (removed)
		result->view_id[0] = '\0';
}

/* What became of the commits, with the id of the record if they wait. */
static json_t *describe(const struct work *work, const struct cordon_git_take *take, bool waits)
{
	json_t *object = take ? cordon_git_take_json(take) : json_object();

	if (object && waits)
		json_object_set_new(object, "id", json_string(work->record.id));
	return object;
}

static void take_commits(struct work *work, const struct cordon_run_spec *spec, struct cordon_result *result)
{
	struct cordon_git_take *take = NULL;
	struct cordon_error err = { 0 };
	int r = cordon_git_record_take(work->home, &work->record, &take, &err);
	bool refused = r < 0 || take->state == CORDON_GIT_REFUSED;
	json_auto_t *object = refused || take->state != CORDON_GIT_NOTHING || take->n_notes
				      ? describe(work, take, refused)
				      : NULL;

	if (r < 0)
		note_error(result, &err);
	if (object)
		result->git = json_dumps(object, JSON_COMPACT);
	if (refused && spec->fail_on_violation && result->own_exit == 0) {
		result->own_exit = CORDON_EXIT_VIOLATION;
		result->failed_on_violation = true;
		result->state = CORDON_STATE_FAILED;
	}
	if (work->ask->ret_take)
		*work->ask->ret_take = cordon_steal_ptr(&take);
	cordon_git_take_free(take);
}

/* Says why the run could not commit. */
static void note_why(const struct work *work, struct cordon_result *result)
{
	json_auto_t *object = NULL;

	if (work->why.code && !result->git) {
		object = json_pack("{s:s, s:[s++]}", "state", "nothing", "notes",
				   "the repository can only be read inside: ", work->why.message, "");
		result->git = object ? json_dumps(object, JSON_COMPACT) : NULL;
	}
}

int cordon_view_run(const struct cordon_home *home, const struct cordon_run_spec *spec,
		    const struct cordon_view_work *ask, const struct cordon_observer *observer,
		    struct cordon_result *ret_result, struct cordon_error *err)
{
	struct work work = { .home = home, .ask = ask, .view = CORDON_VIEW_NONE, .record = CORDON_GIT_RECORD_NONE };
	struct cordon_run_spec own_spec = *spec;
	struct cordon_error own = { 0 };
	int r;

	err = err ? err : &own;
	*ret_result = (struct cordon_result){ 0 };
	choose_mode(&work);
	r = begin(&work, &own_spec, err);
	if (ask->ret_git_id)
		memcpy(ask->ret_git_id, work.record.id, sizeof(work.record.id));
	if (r < 0) {
		drop(&work);
		cordon_result_refuse(ret_result, err);
		return r;
	}
	r = cordon_run(&own_spec, observer, ret_result, err);
	if (work.view.dir_fd >= 0)
		end_view(&work, ret_result);
	if (work.record.dir_fd >= 0)
		take_commits(&work, spec, ret_result);
	note_why(&work, ret_result);
	cordon_view_close(&work.view);
	return r;
}

int cordon_view_plan(const struct cordon_home *home, const struct cordon_run_spec *spec,
		     const struct cordon_view_work *ask, struct cordon_plan **ret_plan, struct cordon_error *err)
{
	struct work work = {
		.home = home, .ask = ask, .dry = true, .view = CORDON_VIEW_NONE, .record = CORDON_GIT_RECORD_NONE
	};
	struct cordon_run_spec own_spec = *spec;
	int r;

	choose_mode(&work);
	r = begin(&work, &own_spec, err);
	if (r == 0)
		r = cordon_run_plan(&own_spec, ret_plan, err);
	drop(&work);
	return r;
}
