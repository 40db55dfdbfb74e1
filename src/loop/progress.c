/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the journal of a loop: what each event changes. */
#include "loop/progress.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/json.h"
#include "base/text.h"
#include "loop/internal.h"

char *cordon_loop_story_key(const char *prd, const char *id)
{
	char *key;

	return asprintf(&key, "%zu %s %s", strlen(id), id, prd) < 0 ? NULL : key;
}

json_t *cordon_loop_progress_story(const struct cordon_loop_progress *progress, const char *prd, const char *id)
{
	autofree char *key = cordon_loop_story_key(prd, id);

	return key ? json_object_get(progress->stories, key) : NULL;
}

/* The story that an event names; it is made when it is named for the first time. NULL for an event about none. */
static json_t *story_of(const struct cordon_loop_progress *p, const json_t *event)
{
	const char *prd = cordon_json_string(event, "prd"), *id = cordon_json_string(event, "story");
	autofree char *key = prd && id ? cordon_loop_story_key(prd, id) : NULL;
	json_t *story = key ? json_object_get(p->stories, key) : NULL;

	if (key && !story) {
		story = json_object();
		json_object_set_new(p->stories, key, story);
	}
	return story;
}

static void set_text(json_t *object, const char *key, const char *text)
{
	if (object && *text)
		json_object_set_new(object, key, json_string(text));
}

static void set_state(json_t *object, cordon_story_state state)
{
	set_text(object, "state", cordon_story_state_name(state));
}

static bool has_state(const json_t *object, cordon_story_state state)
{
	return cordon_json_is(object, "state", cordon_story_state_name(state));
}

static void add_number(json_t *story, const char *key, json_int_t more)
{
	if (story && more)
		json_object_set_new(story, key, json_integer(cordon_json_integer(story, key) + more));
}

static void add_to(json_t *story, const char *key, json_t *item)
{
	if (!json_object_get(story, key))
		json_object_set_new(story, key, json_array());
	json_array_append_new(json_object_get(story, key), item);
}

/* The first line of a text, unless it is empty. */
static void set_reason(json_t *story, const char *text)
{
	if (story && *text)
		json_object_set_new(story, "reason", json_stringn(text, strcspn(text, "\n")));
}

/* ---- calls ---- */

bool cordon_loop_call_is_open(const json_t *call)
{
	return has_state(call, CORDON_STORY_WORKING) || has_state(call, CORDON_STORY_CHECKING);
}

static void end_if_open(json_t *call)
{
	if (cordon_loop_call_is_open(call))
		set_text(call, "state", "interrupted");
}

void cordon_loop_calls_end(const json_t *calls)
{
	size_t i;
	json_t *call;

	json_array_foreach(calls, i, call)
		end_if_open(call);
}

static void take_begin(struct cordon_loop_progress *p, const json_t *event)
{
	const char *number;
	json_t *call;

	json_object_foreach(p->calls, number, call)
		end_if_open(call);
	p->begin = event;
	p->crew = cordon_json_string(event, "crew");
	p->boot = cordon_json_string(event, "boot");
	p->base = cordon_json_string(event, "base");
	if (p->base)
		json_object_set(p->views, p->base, json_object_get(event, "base"));
	p->iterations = 0;
	json_object_clear(p->workers); /* they have ended with the process before */
	json_array_clear(p->kept);
}

static void take_call(struct cordon_loop_progress *p, json_t *story, const char *number, const json_t *event)
{
	json_t *call = json_pack("{s:O?, s:O?, s:s, s:s, s:s, s:O?}", "n", json_object_get(event, "n"), "attempt",
				 json_object_get(event, "attempt"), "began_at", cordon_json_text(event, "time"), "log",
				 cordon_json_text(event, "log"), "crew", p->crew ? p->crew : "", "job",
				 json_object_get(event, "job"));

	json_object_set_new(p->views, number, json_string(cordon_json_text(event, "view")));
	json_object_set_new(p->workers, number,
			    json_pack("{s:s, s:s, s:s, s:s, s:I}", "story", cordon_json_text(event, "story"), "prd",
				      cordon_json_text(event, "prd"), "view", cordon_json_text(event, "view"), "since",
				      cordon_json_text(event, "time"), "attempt", cordon_json_integer(event, "attempt")));
	p->iterations++;
	set_state(call, CORDON_STORY_WORKING);
	set_state(story, CORDON_STORY_WORKING);
	add_number(story, "attempts", 1);
	if (story) {
		json_object_set(p->owners, number, story);
		add_to(story, "calls", json_incref(call));
	}
	json_object_set_new(p->calls, number, call);
}

/* What the result of a call says. */
static void take_result(json_t *story, json_t *call, const json_t *result)
{
	static const char *const keys[] = { "duration_ms", "violations", "exit_code" };

	if (!result || json_object_get(call, "duration_ms"))
		return; /* none, or it was accepted before and has gone back */
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(keys); i++)
		json_object_set(call, keys[i], json_object_get(result, keys[i]));
	set_text(call, "run_id", cordon_json_text(result, "session_id"));
	json_object_set_new(call, "files",
			    json_integer((json_int_t)json_array_size(json_object_get(result, "files_changed"))));
	if (story)
		json_object_set_new(story, "duration_ms",
				    json_integer(cordon_json_integer(story, "duration_ms") +
						 cordon_json_integer(result, "duration_ms")));
}

/* A call has ended, whatever came of it. */
static void take_end(struct cordon_loop_progress *p, json_t *story, const char *number, const json_t *event)
{
	const json_t *result = json_object_get(event, "result");
	json_int_t violations = cordon_json_integer(result, "violations");
	json_t *call = json_object_get(p->calls, number);

	json_object_del(p->workers, number);
	json_object_del(p->views, number);
	add_number(story, "violations", violations);
	p->violations += violations;
	if (!call)
		return;
	set_text(call, "state", cordon_json_text(event, "event"));
	set_text(call, "ended_at", cordon_json_text(event, "time"));
	set_text(call, "note", cordon_json_text(event, "note"));
	take_result(story, call, result);
}

/* A call came to nothing. It may have been accepted before; then the commits that were made with it are of no use. */
static void take_loss(struct cordon_loop_progress *p, json_t *story, const char *number, const json_t *event)
{
	take_end(p, story, number, event);
	set_state(story, CORDON_STORY_WAITING);
	for (size_t i = json_array_size(p->accepted); i-- > 0;) {
		if (cordon_json_integer(json_array_get(p->accepted, i), "n") != cordon_json_integer(event, "n"))
			continue;
		json_array_remove(p->accepted, i);
		p->parent = NULL;
	}
}

static void take_failed(struct cordon_loop_progress *p, json_t *story, const char *number, const json_t *event)
{
	const char *note = cordon_json_text(event, "note");

	take_loss(p, story, number, event);
	add_number(story, "failures", cordon_json_true(event, "counts"));
	set_reason(story, note);
	if (story)
		add_to(story, "notes", json_pack("[I, s]", cordon_json_integer(story, "attempts"), note));
}

static void take_interrupted(struct cordon_loop_progress *p, json_t *story, const char *number, const json_t *event)
{
	take_loss(p, story, number, event);
	if (*cordon_json_text(event, "view"))
		json_array_append_new(p->kept, json_pack("{s:s, s:s}", "view", cordon_json_text(event, "view"), "story",
							 cordon_json_text(event, "story")));
}

static void take_accepted(struct cordon_loop_progress *p, json_t *story, const char *number, json_t *event)
{
	take_end(p, story, number, event);
	set_state(story, CORDON_STORY_ACCEPTED);
	json_array_append(p->accepted, event);
	p->landing = NULL;
}

static void take_committed(struct cordon_loop_progress *p, const json_t *event)
{
	char digits[CORDON_DIGITS_SIZE];
	json_t *one;
	size_t i;

	p->parent = cordon_json_text(event, "parent");
	json_array_foreach(p->accepted, i, one) {
		const char *number = cordon_digits((uint64_t)cordon_json_integer(one, "n"), digits);

		json_object_set(one, "commit", json_object_get(json_object_get(event, "commits"), number));
	}
}

static void take_passed(struct cordon_loop_progress *p, const json_t *event)
{
	const json_t *numbers = json_object_get(event, "calls"), *results = json_object_get(event, "stories");
	char digits[CORDON_DIGITS_SIZE];

	for (size_t i = 0; i < json_array_size(numbers); i++) {
		const char *number = cordon_digits((uint64_t)json_integer_value(json_array_get(numbers, i)), digits);
		json_t *story = json_object_get(p->owners, number), *call = json_object_get(p->calls, number);
		json_t *commit = json_object_get(json_array_get(results, i), "commit");

		set_state(call, CORDON_STORY_PASSED);
		set_state(story, CORDON_STORY_PASSED);
		if (json_string_length(commit))
			json_object_set(call, "commit", commit);
		if (story && commit)
			json_object_set(story, "commit", commit);
		set_text(story, "since", cordon_json_text(event, "time"));
	}
	json_array_clear(p->accepted);
	p->landing = NULL;
	p->parent = NULL;
}

static void take_parked(json_t *story, const json_t *event)
{
	set_state(story, CORDON_STORY_PARKED);
	set_reason(story, cordon_json_text(event, "reason"));
	json_object_set_new(story, "parked", json_true());
}

void cordon_loop_progress_retry(struct cordon_loop_progress *progress, const json_t *event)
{
	json_t *story = story_of(progress, event);

	if (!story)
		return;
	json_object_del(story, "failures");
	json_object_del(story, "parked");
	if (has_state(story, CORDON_STORY_PARKED))
		set_state(story, CORDON_STORY_WAITING);
}

/* ---- all of them ---- */

static void take(struct cordon_loop_progress *p, json_t *event)
{
	const char *what = cordon_json_text(event, "event");
	json_int_t n = cordon_json_integer(event, "n");
	json_t *story = story_of(p, event);
	char digits[CORDON_DIGITS_SIZE];
	const char *number = cordon_digits((uint64_t)n, digits);

	p->last_time = cordon_json_text(event, "time");
	p->done = cordon_streq(what, "done");
	if (n > 0 && (uint64_t)n > p->n)
		p->n = (uint64_t)n;
	set_text(story, "since", p->last_time);
	if (cordon_streq(what, "begin"))
		take_begin(p, event);
	else if (cordon_streq(what, "call"))
		take_call(p, story, number, event);
	else if (cordon_streq(what, "check")) {
		set_state(story, CORDON_STORY_CHECKING);
		set_state(json_object_get(p->calls, number), CORDON_STORY_CHECKING);
	} else if (cordon_streq(what, "failed"))
		take_failed(p, story, number, event);
	else if (cordon_streq(what, "interrupted"))
		take_interrupted(p, story, number, event);
	else if (cordon_streq(what, "accepted"))
		take_accepted(p, story, number, event);
	else if (cordon_streq(what, "committed"))
		take_committed(p, event);
	else if (cordon_streq(what, "landing"))
		p->landing = cordon_json_string(event, "view");
	else if (cordon_streq(what, "passed"))
		take_passed(p, event);
	else if (cordon_streq(what, "parked"))
		take_parked(story, event);
	else if (cordon_streq(what, "retry"))
		cordon_loop_progress_retry(p, event);
}

int cordon_loop_progress_read(json_t *events, struct cordon_loop_progress *ret_progress, struct cordon_error *err)
{
	struct cordon_loop_progress p = { .events = json_incref(events),
					  .stories = json_object(),
					  .calls = json_object(),
					  .owners = json_object(),
					  .workers = json_object(),
					  .views = json_object(),
					  .accepted = json_array(),
					  .kept = json_array() };
	json_t *event;
	size_t i;

	if (!p.stories || !p.calls || !p.owners || !p.workers || !p.views || !p.accepted || !p.kept) {
		cordon_loop_progress_done(&p);
		return cordon_fail_errno(err, -ENOMEM, "the loop");
	}
	json_array_foreach(events, i, event)
		take(&p, event);
	*ret_progress = p;
	return 0;
}

void cordon_loop_progress_done(struct cordon_loop_progress *progress)
{
	json_decref(progress->stories);
	json_decref(progress->calls);
	json_decref(progress->owners);
	json_decref(progress->workers);
	json_decref(progress->views);
	json_decref(progress->accepted);
	json_decref(progress->kept);
	json_decref(progress->events);
	*progress = (struct cordon_loop_progress){ 0 };
}
