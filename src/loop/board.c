/* SPDX-License-Identifier: Apache-2.0 */
/* What people want to see of a loop beyond its status: every call of the agent, times, last lines, and an estimate. */
#include <fcntl.h>

#include "base/json.h"
#include "base/time.h"
#include "loop/control.h"
#include "loop/internal.h"

static void set_text(json_t *object, const char *key, const char *text)
{
	if (object && *text)
		json_object_set_new(object, key, json_string(text));
}

/* The last line of the call that a story is at. */
static void add_last_line(json_t *story, int dir_fd)
{
	const json_t *calls = json_object_get(story, "calls");
	const json_t *call = json_array_get(calls, json_array_size(calls) ? json_array_size(calls) - 1 : 0);
	char last[CORDON_LOOP_LINE_MAX + 1] = "";

	if (!cordon_loop_call_is_open(call))
		return;
	cordon_loop_logs_last(dir_fd, cordon_json_text(call, "log"), last);
	set_text(story, "last", last);
}

static bool is_left(const json_t *story)
{
	for (int state = CORDON_STORY_WAITING; state < CORDON_STORY_ACCEPTED; state++)
		if (cordon_json_is(story, "state", cordon_story_state_name((cordon_story_state)state)))
			return true;
	return false;
}

/* How many calls of a story have told their result. */
static size_t count_ended(const json_t *story)
{
	size_t i, n = 0;
	json_t *call;

	json_array_foreach(json_object_get(story, "calls"), i, call)
		n += json_object_get(call, "files") != NULL;
	return n;
}

static void sum_up(json_t *status, int dir_fd, size_t workers)
{
	size_t i, left = 0, ended = 0;
	uint64_t calls_ms = 0;
	json_t *story;
	int64_t ms;

	json_array_foreach(json_object_get(status, "stories"), i, story) {
		left += is_left(story);
		ended += count_ended(story);
		calls_ms += (uint64_t)cordon_json_integer(story, "duration_ms");
		add_last_line(story, dir_fd);
	}
	ms = cordon_loop_estimate_of(calls_ms, ended, left, workers);
	if (ms >= 0 && left)
		json_object_set_new(status, "estimate_ms", json_integer(ms));
	if (faccessat(dir_fd, CORDON_LOOP_STOP, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
		json_object_set_new(status, "stopping", json_true());
}

void cordon_loop_board_fill(json_t *status, int dir_fd, const struct cordon_loop_progress *progress)
{
	json_int_t workers = cordon_json_integer(progress->begin, "workers");
	json_t *story;
	size_t i;

	set_text(status, "crew", cordon_json_text(progress->begin, "crew"));
	json_object_set_new(status, "workers_max", json_integer(workers));
	if (cordon_json_is(status, "state", "running")) {
		sum_up(status, dir_fd, (size_t)workers);
		return;
	}
	json_array_foreach(json_object_get(status, "stories"), i, story)
		cordon_loop_calls_end(json_object_get(story, "calls"));
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
