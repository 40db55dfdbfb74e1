/* SPDX-License-Identifier: Apache-2.0 */
/* What people want to see of a loop beyond its status: every call of the agent, times, last lines, and an estimate. */
#include <fcntl.h>

#include "base/json.h"
#include "base/time.h"
#include "loop/control.h"
#include "loop/internal.h"

struct filling {
	const json_t *index; /* stories by key */
	json_t *calls;	     /* by number */
	json_t *owners;	     /* stories, by the numbers of their calls */
	const char *crew;
	json_int_t workers;
	uint64_t calls_ms;
	size_t n_ended;
};

static const char *text_of(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : "";
}

static void set_text(json_t *object, const char *key, const char *text)
{
	if (object && *text)
		json_object_set_new(object, key, json_string(text));
}

static json_t *story_of(const struct filling *f, const json_t *event)
{
	autofree char *key = cordon_loop_story_key(text_of(event, "prd"), text_of(event, "story"));

	return key ? json_object_get(f->index, key) : NULL;
}

/* ---- calls ---- */

static void set_call(json_t *call, cordon_story_state state)
{
	set_text(call, "state", cordon_story_state_name(state));
}

static bool is_open(const json_t *call)
{
	return cordon_streq(text_of(call, "state"), cordon_story_state_name(CORDON_STORY_WORKING)) ||
	       cordon_streq(text_of(call, "state"), cordon_story_state_name(CORDON_STORY_CHECKING));
}

/* The process that made these calls was killed, and nobody said how they ended. */
static void end_open(const struct filling *f)
{
	const char *number;
	json_t *call;

	json_object_foreach(f->calls, number, call)
		if (is_open(call))
			set_text(call, "state", "interrupted");
}

static void begin_call(struct filling *f, json_t *story, const char *number, const json_t *event)
{
	json_t *call = json_pack("{s:O?, s:O?, s:s, s:s, s:s, s:O?}", "n", json_object_get(event, "n"), "attempt",
				 json_object_get(event, "attempt"), "began_at", text_of(event, "time"), "log",
				 text_of(event, "log"), "crew", f->crew, "job", json_object_get(event, "job"));

	if (!call)
		return;
	set_call(call, CORDON_STORY_WORKING);
	if (!json_object_get(story, "calls"))
		json_object_set_new(story, "calls", json_array());
	json_array_append(json_object_get(story, "calls"), call);
	json_object_set(f->owners, number, story);
	json_object_set_new(f->calls, number, call);
}

/* What the result of a call says. */
static void take_result(struct filling *f, json_t *story, json_t *call, const json_t *result)
{
	static const char *const keys[] = { "duration_ms", "violations", "exit_code" };
	json_int_t ms = json_integer_value(json_object_get(result, "duration_ms"));

	if (!result || json_object_get(call, "duration_ms"))
		return; /* none, or it was accepted before and has gone back */
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(keys); i++)
		json_object_set(call, keys[i], json_object_get(result, keys[i]));
	set_text(call, "run_id", text_of(result, "session_id"));
	json_object_set_new(call, "files",
			    json_integer((json_int_t)json_array_size(json_object_get(result, "files_changed"))));
	json_object_set_new(story, "duration_ms",
			    json_integer(json_integer_value(json_object_get(story, "duration_ms")) + ms));
	f->calls_ms += (uint64_t)ms;
	f->n_ended++;
}

static void end_call(struct filling *f, json_t *story, json_t *call, const json_t *event)
{
	const char *what = text_of(event, "event");

	if (!call)
		return;
	set_text(call, "state", what);
	set_text(call, "ended_at", text_of(event, "time"));
	set_text(call, "note", text_of(event, "note"));
	take_result(f, story, call, json_object_get(event, "result"));
}

static void pass_calls(const struct filling *f, const json_t *event)
{
	const json_t *numbers = json_object_get(event, "calls"), *results = json_object_get(event, "stories");

	for (size_t i = 0; i < json_array_size(numbers); i++) {
		const char *number;
		char digits[CORDON_DIGITS_SIZE];
		json_t *call;

		number = cordon_digits((uint64_t)json_integer_value(json_array_get(numbers, i)), digits);
		call = json_object_get(f->calls, number);
		set_call(call, CORDON_STORY_PASSED);
		set_text(call, "commit", text_of(json_array_get(results, i), "commit"));
		set_text(json_object_get(f->owners, number), "since", text_of(event, "time"));
	}
}

static void take(struct filling *f, const json_t *event)
{
	const char *what = text_of(event, "event");
	json_t *story = story_of(f, event), *call;
	const char *number;
	char digits[CORDON_DIGITS_SIZE];

	number = cordon_digits((uint64_t)json_integer_value(json_object_get(event, "n")), digits);
	call = json_object_get(f->calls, number);
	if (cordon_streq(what, "begin")) {
		end_open(f);
		f->crew = text_of(event, "crew");
		f->workers = json_integer_value(json_object_get(event, "workers"));
	} else if (cordon_streq(what, "passed")) {
		pass_calls(f, event);
	}
	if (!story)
		return;
	set_text(story, "since", text_of(event, "time"));
	if (cordon_streq(what, "call"))
		begin_call(f, story, number, event);
	else if (cordon_streq(what, "check"))
		set_call(call, CORDON_STORY_CHECKING);
	else if (cordon_streq(what, "failed") || cordon_streq(what, "interrupted") || cordon_streq(what, "accepted"))
		end_call(f, story, call, event);
}

/* ---- the rest ---- */

/* The last line of the call that a story is at. */
static void add_last_line(json_t *story, int dir_fd)
{
	const json_t *calls = json_object_get(story, "calls");
	const json_t *call = json_array_get(calls, json_array_size(calls) ? json_array_size(calls) - 1 : 0);
	char last[CORDON_LOOP_LINE_MAX + 1] = "";

	if (!is_open(call))
		return;
	cordon_loop_logs_last(dir_fd, text_of(call, "log"), last);
	set_text(story, "last", last);
}

static bool is_left(const json_t *story)
{
	for (int state = CORDON_STORY_WAITING; state < CORDON_STORY_ACCEPTED; state++)
		if (cordon_streq(text_of(story, "state"), cordon_story_state_name((cordon_story_state)state)))
			return true;
	return false;
}

static void sum_up(const struct filling *f, json_t *status, int dir_fd)
{
	size_t i, left = 0;
	json_t *story;
	int64_t ms;

	json_array_foreach(json_object_get(status, "stories"), i, story) {
		left += is_left(story);
		add_last_line(story, dir_fd);
	}
	ms = cordon_loop_estimate_of(f->calls_ms, f->n_ended, left, (size_t)f->workers);
	if (ms >= 0 && left)
		json_object_set_new(status, "estimate_ms", json_integer(ms));
	if (faccessat(dir_fd, CORDON_LOOP_STOP, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
		json_object_set_new(status, "stopping", json_true());
}

void cordon_loop_board_fill(json_t *status, int dir_fd, const json_t *events, const json_t *index)
{
	struct filling f = { .index = index, .calls = json_object(), .owners = json_object(), .crew = "" };
	json_t *event;
	size_t i;

	json_array_foreach(events, i, event)
		take(&f, event);
	set_text(status, "crew", f.crew);
	json_object_set_new(status, "workers_max", json_integer(f.workers));
	if (cordon_streq(text_of(status, "state"), "running"))
		sum_up(&f, status, dir_fd);
	else
		end_open(&f);
	json_decref(f.calls);
	json_decref(f.owners);
}

int cordon_loop_log(const struct cordon_home *home, const char *id, const char *log, const char *name, int *ret_fd,
		    struct cordon_error *err)
{
	autofd int dir = -1;
	int r = cordon_loop_dir_open(home, id, &dir, err);

	if (r < 0)
		return r;
	return cordon_loop_logs_read(dir, log, name, ret_fd) < 0
		       ? cordon_fail(err, -ENOENT, CORDON_KIND_NOT_FOUND, "this call of the agent has no %s", name)
		       : 0;
}
