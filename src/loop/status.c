/* SPDX-License-Identifier: Apache-2.0 */
/* How a loop stands, from its journal and its PRDs: nobody asks the process that runs it. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>

#include "base/io.h"
#include "base/json.h"
#include "loop/control.h"
#include "loop/internal.h"

#define SHOWN_MAX 500 /* stories in one status; those that have not passed come first */

struct looking {
	json_t *stories; /* all of them, as they are shown */
	json_t *index;	 /* the same by PRD and id */
	json_t *calls;	 /* numbers of calls: the story of each */
	json_t *workers; /* calls that have not ended, by number */
	json_t *kept;
	cordon_loop_looks what;
	const json_t *begin;   /* the last event of this kind */
	const char *last_time; /* of all events */
	json_int_t violations, iterations;
	bool done;
};

static void looking_done(struct looking *l)
{
	json_decref(l->stories);
	json_decref(l->index);
	json_decref(l->calls);
	json_decref(l->workers);
	json_decref(l->kept);
}

static const char *text_of(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : "";
}

char *cordon_loop_story_key(const char *prd, const char *id)
{
	char *key;

	return asprintf(&key, "%zu %s %s", strlen(id), id, prd) < 0 ? NULL : key;
}

static json_t *story_of(const struct looking *l, const json_t *event)
{
	autofree char *key = cordon_loop_story_key(text_of(event, "prd"), text_of(event, "story"));

	return key ? json_object_get(l->index, key) : NULL;
}

static void set_state(json_t *story, cordon_story_state state)
{
	if (story)
		json_object_set_new(story, "state", json_string(cordon_story_state_name(state)));
}

static bool has_state(const json_t *story, cordon_story_state state)
{
	return cordon_streq(text_of(story, "state"), cordon_story_state_name(state));
}

static void add_number(json_t *story, const char *key, json_int_t more)
{
	if (story && more)
		json_object_set_new(story, key, json_integer(json_integer_value(json_object_get(story, key)) + more));
}

static void set_reason(json_t *story, const char *text)
{
	if (story && *text)
		json_object_set_new(story, "reason", json_stringn(text, strcspn(text, "\n")));
}

/* ---- events ---- */

static void take_call(struct looking *l, json_t *story, const char *number, const json_t *event)
{
	json_object_set_new(l->workers, number,
			    json_pack("{s:s, s:s, s:s, s:s, s:I}", "story", text_of(event, "story"), "prd",
				      text_of(event, "prd"), "view", text_of(event, "view"), "since",
				      text_of(event, "time"), "attempt",
				      json_integer_value(json_object_get(event, "attempt"))));
	if (story)
		json_object_set(l->calls, number, story);
	set_state(story, CORDON_STORY_WORKING);
	add_number(story, "attempts", 1);
	l->iterations++;
}

/* A call has ended, whatever came of it. */
static void take_end(struct looking *l, json_t *story, const char *number, const json_t *event)
{
	json_int_t violations = json_integer_value(json_object_get(json_object_get(event, "result"), "violations"));

	json_object_del(l->workers, number);
	add_number(story, "violations", violations);
	l->violations += violations;
}

static void take_passed(struct looking *l, const json_t *event)
{
	const json_t *calls = json_object_get(event, "calls"), *results = json_object_get(event, "stories");
	const char *number;
	char digits[CORDON_DIGITS_SIZE];

	for (size_t i = 0; i < json_array_size(calls); i++) {
		json_t *story, *commit = json_object_get(json_array_get(results, i), "commit");

		number = cordon_digits((uint64_t)json_integer_value(json_array_get(calls, i)), digits);
		story = json_object_get(l->calls, number);
		set_state(story, CORDON_STORY_PASSED);
		if (story && commit)
			json_object_set(story, "commit", commit);
	}
}

/* The attempts of a story were given back. */
static void take_retry(struct looking *l, const json_t *event)
{
	json_t *story = story_of(l, event);

	if (!story)
		return;
	json_object_del(story, "failures");
	if (has_state(story, CORDON_STORY_PARKED))
		set_state(story, CORDON_STORY_WAITING);
}

/* Nobody has taken the request yet; the loop that goes on does it first. */
static int take_request(void *data, const char *name, const json_t *request)
{
	struct looking *l = data;

	(void)name;
	take_retry(l, request);
	l->done = false;
	return 0;
}

static void take(struct looking *l, const json_t *event)
{
	const char *what = text_of(event, "event");
	json_t *story = story_of(l, event);
	const char *number;
	char digits[CORDON_DIGITS_SIZE];

	number = cordon_digits((uint64_t)json_integer_value(json_object_get(event, "n")), digits);
	l->last_time = text_of(event, "time");
	l->done = cordon_streq(what, "done");
	if (cordon_streq(what, "begin")) {
		l->begin = event;
		l->iterations = 0;
		json_object_clear(l->workers); /* they have ended with the process before */
		json_array_clear(l->kept);
	} else if (cordon_streq(what, "call")) {
		take_call(l, story, number, event);
	} else if (cordon_streq(what, "check")) {
		set_state(story, CORDON_STORY_CHECKING);
	} else if (cordon_streq(what, "failed")) {
		take_end(l, story, number, event);
		set_state(story, CORDON_STORY_WAITING);
		add_number(story, "failures", json_is_true(json_object_get(event, "counts")));
		set_reason(story, text_of(event, "note"));
	} else if (cordon_streq(what, "interrupted")) {
		take_end(l, story, number, event);
		set_state(story, CORDON_STORY_WAITING);
		if (*text_of(event, "view"))
			json_array_append_new(l->kept, json_pack("{s:s, s:s}", "view", text_of(event, "view"), "story",
								 text_of(event, "story")));
	} else if (cordon_streq(what, "accepted")) {
		take_end(l, story, number, event);
		set_state(story, CORDON_STORY_ACCEPTED);
	} else if (cordon_streq(what, "passed")) {
		take_passed(l, event);
	} else if (cordon_streq(what, "parked")) {
		set_state(story, CORDON_STORY_PARKED);
		set_reason(story, text_of(event, "reason"));
	} else if (cordon_streq(what, "retry")) {
		take_retry(l, event);
	}
}

/* ---- stories ---- */

static json_t *dependencies_of(const struct cordon_prd *prd, const struct cordon_prd_story *one)
{
	json_t *ids = json_array();

	for (size_t i = 0; i < one->n_deps; i++)
		json_array_append_new(ids, json_string(prd->stories[one->deps[i]].id));
	return ids;
}

static int add_prd(struct looking *l, const char *path, struct cordon_error *err)
{
	struct cordon_errors errors CORDON_CLEANUP(cordon_errors_done) = { 0 };
	autoprd struct cordon_prd *prd = NULL;

	if (cordon_prd_load(path, &prd, &errors) < 0)
		return cordon_errors_first(&errors, err);
	for (size_t i = 0; i < prd->n_stories; i++) {
		const struct cordon_prd_story *one = &prd->stories[i];
		autofree char *key = cordon_loop_story_key(path, one->id);
		json_t *story = json_pack("{s:s, s:s, s:s, s:s}", "prd", path, "id", one->id, "title",
					  one->title ? one->title : "", "state",
					  cordon_story_state_name(CORDON_STORY_WAITING));

		if (!key || !story || json_object_set(l->index, key, story) < 0 ||
		    json_array_append_new(l->stories, story) < 0)
			return cordon_fail_errno(err, -ENOMEM, "the loop");
		if (one->passes)
			json_object_set_new(story, "passes", json_true());
		if (l->what == CORDON_LOOP_LOOK_BOARD)
			json_object_set_new(story, "dependencies", dependencies_of(prd, one));
	}
	return 0;
}

/* The PRD has the last word about what has passed; and nobody works for a loop that does not run. */
static void settle(const struct looking *l, bool running)
{
	json_t *story;
	size_t i;

	json_array_foreach(l->stories, i, story) {
		if (json_is_true(json_object_get(story, "passes")))
			set_state(story, CORDON_STORY_PASSED);
		else if (!running && (has_state(story, CORDON_STORY_WORKING) || has_state(story, CORDON_STORY_CHECKING)))
			set_state(story, CORDON_STORY_WAITING);
		json_object_del(story, "passes");
	}
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
	size_t total = json_array_size(l->stories), passed = count(l, CORDON_STORY_PASSED),
	       parked = count(l, CORDON_STORY_PARKED);
	json_t *workers = json_array(), *worker;
	json_t *status;
	const char *number;
	char summary[128];

	if (running)
		json_object_foreach(l->workers, number, worker)
			json_array_append(workers, worker);
	snprintf(summary, sizeof(summary), "%zu of %zu stories have passed, %zu parked, %zu agents run", passed, total,
		 parked, json_array_size(workers));
	status = json_pack("{s:s, s:s, s:s, s:s, s:O, s:I, s:I, s:I, s:I, s:I, s:o, s:O, s:s, s:s}", "loop_id", id,
			   "state",
			   running   ? "running"
			   : l->done ? "done"
				     : "stopped",
			   "summary", summary, "root", text_of(l->begin, "root"), "prds",
			   json_object_get(l->begin, "prds"), "total", (json_int_t)total, "passed", (json_int_t)passed,
			   "parked", (json_int_t)parked, "iterations", l->iterations, "violations", l->violations,
			   "workers", workers, "kept_views", l->kept, "began_at", text_of(l->begin, "time"),
			   "updated_at", l->last_time ? l->last_time : "");
	if (status)
		json_object_set(status, "pid", json_object_get(l->begin, "pid"));
	return status;
}

static const json_t *last_begin(const json_t *events)
{
	for (size_t i = json_array_size(events); i-- > 0;)
		if (cordon_streq(text_of(json_array_get(events, i), "event"), "begin"))
			return json_array_get(events, i);
	return NULL;
}

static int look(const struct cordon_home *home, const char *id, struct looking *l, json_t **ret_status,
		struct cordon_error *err)
{
	json_auto_t *events = NULL;
	const json_t *begin;
	struct cordon_error failure = { 0 };
	autofd int dir = -1;
	json_t *item;
	bool running;
	size_t i;
	int r = cordon_loop_dir_open(home, id, &dir, err);

	if (r < 0)
		return r;
	running = cordon_loop_is_running(dir); /* first: what it says until it ends is in the journal then */
	r = cordon_loop_journal_read(dir, &events, err);
	begin = r < 0 ? NULL : last_begin(events);
	if (r < 0)
		return r;
	if (!begin || !json_array_size(json_object_get(begin, "prds")))
		return cordon_fail(err, -ENOENT, CORDON_KIND_NOT_FOUND, "there is no loop %s", id);
	json_array_foreach(json_object_get(begin, "prds"), i, item) {
		r = json_is_string(item) ? add_prd(l, json_string_value(item), err) : -EINVAL;
		if (r < 0)
			return r;
	}
	json_array_foreach(events, i, item)
		take(l, item);
	(void)cordon_loop_requests(dir, take_request, l);
	settle(l, running);
	*ret_status = make_status(l, id, running);
	if (!*ret_status)
		return cordon_fail_errno(err, -ENOMEM, "the loop");
	if (l->what != CORDON_LOOP_LOOK_NONE)
		json_object_set_new(*ret_status, "stories", shown_stories(l));
	if (l->what == CORDON_LOOP_LOOK_SOME && json_array_size(l->stories) > SHOWN_MAX)
		json_object_set_new(*ret_status, "truncated", json_true());
	if (l->what == CORDON_LOOP_LOOK_BOARD)
		cordon_loop_board_fill(*ret_status, dir, events, l->index);
	if (!running && cordon_loop_failure(home, id, &failure))
		json_object_set_new(*ret_status, "error", json_string(failure.message));
	return 0;
}

int cordon_loop_look(const struct cordon_home *home, const char *id, cordon_loop_looks what, json_t **ret_status,
		     struct cordon_error *err)
{
	CORDON_CLEANUP(looking_done)
	struct looking l = { .stories = json_array(),
			     .index = json_object(),
			     .calls = json_object(),
			     .workers = json_object(),
			     .kept = json_array(),
			     .what = what };

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

int cordon_loop_list(const struct cordon_home *home, json_t **ret_list, struct cordon_error *err)
{
	autofd int loops = -1;
	json_t *list;
	DIR *dir;
	int r = cordon_home_subdir(home, CORDON_LOOP_DIRS, &loops, err);

	if (r < 0)
		return r;
	dir = fdopendir(loops);
	if (!dir)
		return cordon_fail_errno(err, -errno, "cannot list the loops");
	loops = -1; /* closedir() closes it */
	list = json_array();
	for (struct dirent *entry = readdir(dir); entry; entry = readdir(dir)) {
		json_t *status = NULL;

		if (cordon_loop_look(home, entry->d_name, CORDON_LOOP_LOOK_NONE, &status, NULL) == 0)
			json_array_append_new(list, status);
	}
	closedir(dir);
	*ret_list = list;
	return 0;
}
