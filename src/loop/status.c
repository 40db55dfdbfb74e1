/* SPDX-License-Identifier: Apache-2.0 */
/* How a loop stands, from its journal and its PRDs: nobody asks the process that runs it. */
#include <fcntl.h>
#include <stdio.h>

#include "base/io.h"
#include "base/json.h"
#include "loop/control.h"
#include "loop/internal.h"
#include "state/kinds.h"

#define SHOWN_MAX 500 /* stories in one status; those that have not passed come first */

struct looking {
	struct cordon_loop_progress progress;
	json_t *stories; /* all that the PRDs have, as they are shown */
	cordon_loop_looks what;
};

static void looking_done(struct looking *l)
{
	cordon_loop_progress_done(&l->progress);
	json_decref(l->stories);
}

static void set_state(json_t *story, cordon_story_state state)
{
	json_object_set_new(story, "state", json_string(cordon_story_state_name(state)));
}

static bool has_state(const json_t *story, cordon_story_state state)
{
	return cordon_json_is(story, "state", cordon_story_state_name(state));
}

/* Nobody has taken the request yet; the loop that goes on does it first. */
static int take_request(void *data, const char *name, const json_t *request)
{
	struct looking *l = data;

	(void)name;
	cordon_loop_progress_retry(&l->progress, request);
	l->progress.done = false;
	return 0;
}

/* ---- stories ---- */

static json_t *dependencies_of(const struct cordon_prd *prd, const struct cordon_prd_story *one)
{
	json_t *ids = json_array();

	for (size_t i = 0; i < one->n_deps; i++)
		json_array_append_new(ids, json_string(prd->stories[one->deps[i]].id));
	return ids;
}

/* Copies what the journal says about a story. */
static void put_known(const struct looking *l, json_t *story, const char *prd, const char *id)
{
	static const char *const keys[] = { "state", "attempts", "failures", "violations", "reason", "commit" };
	static const char *const more[] = { "since", "duration_ms", "calls" };
	const json_t *known = cordon_loop_progress_story(&l->progress, prd, id);

	for (size_t i = 0; i < CORDON_ARRAY_SIZE(keys); i++)
		if (json_object_get(known, keys[i]))
			json_object_set(story, keys[i], json_object_get(known, keys[i]));
	for (size_t i = 0; l->what == CORDON_LOOP_LOOK_BOARD && i < CORDON_ARRAY_SIZE(more); i++)
		if (json_object_get(known, more[i]))
			json_object_set(story, more[i], json_object_get(known, more[i]));
}

/* The PRD has the last word about what has passed; and nobody works for a loop that does not run. */
static int add_prd(struct looking *l, const char *path, bool running, struct cordon_error *err)
{
	struct cordon_errors errors CORDON_CLEANUP(cordon_errors_done) = { 0 };
	autoprd struct cordon_prd *prd = NULL;

	if (cordon_prd_load(path, &prd, &errors) < 0)
		return cordon_errors_first(&errors, err);
	for (size_t i = 0; i < prd->n_stories; i++) {
		const struct cordon_prd_story *one = &prd->stories[i];
		json_t *story = json_pack("{s:s, s:s, s:s, s:s}", "prd", path, "id", one->id, "title",
					  one->title ? one->title : "", "state",
					  cordon_story_state_name(CORDON_STORY_WAITING));

		if (json_array_append_new(l->stories, story) < 0)
			return cordon_fail_errno(err, -ENOMEM, "the loop");
		put_known(l, story, path, one->id);
		if (one->passes)
			set_state(story, CORDON_STORY_PASSED);
		else if (!running && (has_state(story, CORDON_STORY_WORKING) || has_state(story, CORDON_STORY_CHECKING)))
			set_state(story, CORDON_STORY_WAITING);
		if (l->what == CORDON_LOOP_LOOK_BOARD)
			json_object_set_new(story, "dependencies", dependencies_of(prd, one));
	}
	return 0;
}

static size_t count(const struct looking *l, cordon_story_state state)
{
	json_t *story;
	size_t i, n = 0;

	json_array_foreach(l->stories, i, story)
		n += has_state(story, state);
	return n;
}

static json_t *shown_stories(const struct looking *l)
{
	json_t *shown = json_array(), *story;
	size_t i;

	if (l->what != CORDON_LOOP_LOOK_SOME || json_array_size(l->stories) <= SHOWN_MAX) {
		json_array_extend(shown, l->stories);
		return shown;
	}
	for (int passed = 0; passed <= 1; passed++)
		json_array_foreach(l->stories, i, story)
			if (has_state(story, CORDON_STORY_PASSED) == passed && json_array_size(shown) < SHOWN_MAX)
				json_array_append(shown, story);
	return shown;
}

/* ---- the status ---- */

static json_t *make_status(const struct looking *l, const char *id, bool running)
{
	const struct cordon_loop_progress *p = &l->progress;
	size_t total = json_array_size(l->stories), passed = count(l, CORDON_STORY_PASSED),
	       parked = count(l, CORDON_STORY_PARKED);
	json_t *workers = json_array(), *worker;
	json_t *status;
	const char *number;
	char summary[128];

	if (running)
		json_object_foreach(p->workers, number, worker)
			json_array_append(workers, worker);
	snprintf(summary, sizeof(summary), "%zu of %zu stories have passed, %zu parked, %zu agents run", passed, total,
		 parked, json_array_size(workers));
	status = json_pack("{s:s, s:s, s:s, s:s, s:O, s:I, s:I, s:I, s:I, s:I, s:o, s:O, s:s, s:s}", "loop_id", id,
			   "state",
			   running   ? "running"
			   : p->done ? "done"
				     : "stopped",
			   "summary", summary, "root", cordon_json_text(p->begin, "root"), "prds",
			   json_object_get(p->begin, "prds"), "total", (json_int_t)total, "passed", (json_int_t)passed,
			   "parked", (json_int_t)parked, "iterations", p->iterations, "violations", p->violations,
			   "workers", workers, "kept_views", p->kept, "began_at", cordon_json_text(p->begin, "time"),
			   "updated_at", p->last_time ? p->last_time : "");
	if (status)
		json_object_set(status, "pid", json_object_get(p->begin, "pid"));
	return status;
}

static int look(const struct cordon_home *home, const char *id, struct looking *l, json_t **ret_status,
		struct cordon_error *err)
{
	json_auto_t *events = NULL;
	struct cordon_error failure = { 0 };
	autofd int dir = -1;
	json_t *item;
	bool running;
	size_t i;
	int r = cordon_loop_dir_open(home, id, &dir, err);

	if (r < 0)
		return r;
	running = cordon_loop_is_running(dir); /* first: what it says until it ends is in the journal then */
	r = cordon_journal_read(dir, &events, err);
	if (r == 0)
		r = cordon_loop_progress_read(events, &l->progress, err);
	if (r < 0)
		return r;
	if (!json_array_size(json_object_get(l->progress.begin, "prds")))
		return cordon_fail(err, -ENOENT, CORDON_KIND_NOT_FOUND, "there is no loop %s", id);
	(void)cordon_loop_requests(dir, take_request, l);
	json_array_foreach(json_object_get(l->progress.begin, "prds"), i, item) {
		r = json_is_string(item) ? add_prd(l, json_string_value(item), running, err) : -EINVAL;
		if (r < 0)
			return r;
	}
	*ret_status = make_status(l, id, running);
	if (!*ret_status)
		return cordon_fail_errno(err, -ENOMEM, "the loop");
	if (l->what != CORDON_LOOP_LOOK_NONE)
		json_object_set_new(*ret_status, "stories", shown_stories(l));
	if (l->what == CORDON_LOOP_LOOK_SOME && json_array_size(l->stories) > SHOWN_MAX)
		json_object_set_new(*ret_status, "truncated", json_true());
	if (l->what == CORDON_LOOP_LOOK_BOARD)
		cordon_loop_board_fill(*ret_status, dir, &l->progress);
	if (!running && cordon_loop_failure(home, id, &failure))
		json_object_set_new(*ret_status, "error", json_string(failure.message));
	return 0;
}

int cordon_loop_look(const struct cordon_home *home, const char *id, cordon_loop_looks what, json_t **ret_status,
		     struct cordon_error *err)
{
	CORDON_CLEANUP(looking_done)
	struct looking l = { .stories = json_array(), .what = what };

	return look(home, id, &l, ret_status, err);
}

int cordon_loop_status(const struct cordon_home *home, const char *id, json_t **ret_status, struct cordon_error *err)
{
	return cordon_loop_look(home, id, CORDON_LOOP_LOOK_SOME, ret_status, err);
}

int cordon_loop_board(const struct cordon_home *home, const char *id, json_t **ret_board, struct cordon_error *err)
{
	return cordon_loop_look(home, id, CORDON_LOOP_LOOK_BOARD, ret_board, err);
}

struct listing {
	const struct cordon_home *home;
	json_t *list;
};

static int add_to_list(void *data, int loops, const char *id)
{
	struct listing *listing = data;
	json_t *status = NULL;

	(void)loops;
	if (cordon_loop_look(listing->home, id, CORDON_LOOP_LOOK_NONE, &status, NULL) == 0)
		json_array_append_new(listing->list, status);
	return 0;
}

int cordon_loop_list(const struct cordon_home *home, json_t **ret_list, struct cordon_error *err)
{
	json_auto_t *list = json_array();
	struct listing listing = { .home = home, .list = list };
	int r = cordon_state_kind_each(home, CORDON_STATE_KIND_LOOPS, add_to_list, &listing, err);

	if (r == 0)
		*ret_list = cordon_steal_ptr(&list);
	return r;
}
