/* SPDX-License-Identifier: Apache-2.0 */
/* What is known of agents that run or ran: their results, and the runs themselves. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <strings.h>
#include <sys/stat.h>
#include <time.h>

#include "agent/job.h"
#include "base/json.h"
#include "base/text.h"
#include "base/time.h"
#include "config/suggest.h"

#define CLEAN_EVERY_S 3600
#define CLEAN_STAMP "crew-cleaned"
#define PREFIX_MIN 4

const char *cordon_agent_state_name(cordon_job_state state)
{
	switch (state) {
	case CORDON_JOB_QUEUED:
	case CORDON_JOB_STARTING:
		return "pending";
	case CORDON_JOB_RUNNING:
	case CORDON_JOB_COMPLETED:
	case CORDON_JOB_TIMEOUT:
	case CORDON_JOB_CANCELLED:
		return cordon_job_state_name(state);
	case CORDON_JOB_FAILED:
	case CORDON_JOB_REFUSED:
	case CORDON_JOB_LOST:
	case CORDON_JOB__MAX:
	default:
		return "failed";
	}
}

bool cordon_agent_is_run(const struct cordon_crew_info *crew)
{
	return strncmp(crew->label, CORDON_AGENT_LABEL, strlen(CORDON_AGENT_LABEL)) == 0;
}

void cordon_agent_reason(const struct cordon_job *job, char *ret_text, size_t size)
{
	long long ms = job->ended > job->started ? job->ended - job->started : 0;

	*ret_text = '\0';
	if (*job->message)
		snprintf(ret_text, size, "%s", job->message);
	else if (job->state == CORDON_JOB_TIMEOUT)
		snprintf(ret_text, size,
			 "did not end within its time and was ended after %lld ms; it may have been waiting for something that never comes",
			 ms);
	else if (job->state == CORDON_JOB_CANCELLED)
		snprintf(ret_text, size, "was cancelled%s", job->started ? "" : " before it started");
	else if (job->state == CORDON_JOB_LOST)
		snprintf(ret_text, size, "its supervisor was killed, and the sandbox with it");
	else if (job->state == CORDON_JOB_FAILED && job->signal)
		snprintf(ret_text, size, "was killed by signal %d (%s)", job->signal,
			 sigdescr_np(job->signal) ? sigdescr_np(job->signal) : "unknown");
	else if (job->state == CORDON_JOB_FAILED)
		snprintf(ret_text, size, "exit code %d", job->exit_code);
}

/* Adds a piece to a text of which only the end is kept. */
static int add_piece(struct cordon_buf *text, const char *piece, size_t n, bool *cut)
{
	size_t drop;

	if (n > text->max) {
		piece += n - text->max;
		n = text->max;
		*cut = true;
	}
	if (text->len + n > text->max) {
		drop = text->len + n - text->max;
		memmove(text->data, text->data + drop, text->len - drop);
		text->len -= drop;
		*cut = true;
	}
	return cordon_buf_add(text, piece, n);
}

/* The end of a text may begin in the middle of a character. */
static json_t *end_json(const struct cordon_buf *text)
{
	const char *at = text->data ? text->data : "";
	size_t n = text->len;

	while (n && ((unsigned char)*at & 0xc0) == 0x80) {
		at++;
		n--;
	}
	return json_stringn(at, n);
}

static int add_output(const struct cordon_home *home, const char *run, size_t index, size_t max, json_t *result)
{
	autobuf struct cordon_buf out = CORDON_BUF(max);
	autobuf struct cordon_buf err = CORDON_BUF(max);
	int64_t last, dropped = 0;
	json_auto_t *events = NULL;
	bool cut = false;
	json_t *event;
	size_t i;
	int r = cordon_crew_log(home, run, index, -1, 0, &events, &last, &dropped, NULL);

	if (r < 0)
		return r;
	json_array_foreach(events, i, event) {
		const char *type = cordon_json_string(event, "type");
		const json_t *text = json_object_get(event, "text");
		bool error = type && cordon_streq(type, "stderr");

		if (!type || !json_is_string(text) || (!error && !cordon_streq(type, "stdout")))
			continue;
		r = add_piece(error ? &err : &out, json_string_value(text), json_string_length(text), &cut);
		if (r < 0)
			return r;
	}
	json_object_set_new(result, "stdout", end_json(&out));
	json_object_set_new(result, "stderr", end_json(&err));
	json_object_set_new(result, "outputCut", json_boolean(cut || dropped > 0));
	return 0;
}

static json_t *time_json(int64_t ms)
{
	char text[CORDON_TIME_SIZE];

	if (!ms)
		return json_null();
	cordon_time_format(ms, text);
	return json_string(text);
}

json_t *cordon_agent_result(const struct cordon_home *home, const char *run, const struct cordon_job *job, size_t output)
{
	json_auto_t *record = NULL;
	bool ended = cordon_job_state_ended(job->state);
	char reason[1024], log[CORDON_PATH_MAX + 128];
	json_t *result, *enforcement;
	int64_t until = ended ? job->ended : cordon_time_now();

	cordon_agent_reason(job, reason, sizeof(reason));
	snprintf(log, sizeof(log), "%s/state/crew/%s/%zu/events", home->path, run, job->index);
	result = json_pack("{s:s, s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:i}", "runId", run, "agentName", job->name,
			   "state", cordon_agent_state_name(job->state), "exitCode",
			   ended && job->exit_code >= 0 ? json_integer(job->exit_code) : json_null(), "signal",
			   job->signal ? json_integer(job->signal) : json_null(), "startTime", time_json(job->started),
			   "endTime", time_json(job->ended), "durationMs",
			   job->started && until >= job->started ? json_integer(until - job->started) : json_null(),
			   "error", *reason && !(job->state == CORDON_JOB_COMPLETED) ? json_string(reason) : json_null(),
			   "violations", (int)job->violations);
	if (!result)
		return NULL;
	json_object_set_new(result, "sessionId", *job->run_id ? json_string(job->run_id) : json_null());
	if (job->started || job->state > CORDON_JOB_STARTING)
		json_object_set_new(result, "log", json_string(log));
	if (ended && cordon_crew_result(home, run, job->index, &record, NULL) == 0 &&
	    (enforcement = json_object_get(record, "enforcement")))
		json_object_set(result, "enforcement", enforcement);
	if (json_object_get(record, "view"))
		json_object_set(result, "view", json_object_get(record, "view"));
	if (json_object_get(record, "git"))
		json_object_set(result, "git", json_object_get(record, "git"));
	if (output && add_output(home, run, job->index, output, result) < 0) {
		json_object_set_new(result, "stdout", json_string(""));
		json_object_set_new(result, "stderr", json_string(""));
	}
	return result;
}

/* ---- runs ---- */

int cordon_agent_list_runs(const struct cordon_home *home, struct cordon_crew_info **ret_runs, size_t *ret_n,
			   struct cordon_error *err)
{
	size_t n = 0, kept = 0;
	int r = cordon_crew_list(home, ret_runs, &n, err);

	if (r < 0)
		return r;
	for (size_t i = 0; i < n; i++)
		if (cordon_agent_is_run(&(*ret_runs)[i]))
			(*ret_runs)[kept++] = (*ret_runs)[i];
	*ret_n = kept;
	return 0;
}

int cordon_agent_find_run(const struct cordon_home *home, const char *prefix, struct cordon_crew_info *ret_run,
			  struct cordon_error *err)
{
	autofree struct cordon_crew_info *runs = NULL;
	const struct cordon_crew_info *found = NULL;
	size_t n = 0;
	int r;

	if (prefix && (strlen(prefix) < PREFIX_MIN || strspn(prefix, "0123456789abcdefABCDEF-") != strlen(prefix)))
		return cordon_fail(err, -EINVAL, CORDON_KIND_USAGE,
				   "not the id of a run, nor %d or more characters of one: %.80s", PREFIX_MIN, prefix);
	r = cordon_agent_list_runs(home, &runs, &n, err);
	if (r < 0)
		return r;
	for (size_t i = 0; i < n; i++) {
		if (prefix && strncasecmp(runs[i].id, prefix, strlen(prefix)) != 0)
			continue;
		if (prefix && found)
			return cordon_fail(err, -EINVAL, CORDON_KIND_USAGE, "more than one run begins with %s", prefix);
		found = &runs[i];
	}
	if (!found && prefix)
		return cordon_fail(err, -ENOENT, CORDON_KIND_NOT_FOUND, "there is no run %s", prefix);
	if (!found)
		return cordon_fail(err, -ENOENT, CORDON_KIND_NOT_FOUND, "no agent has run yet");
	*ret_run = *found;
	return 0;
}

int cordon_agent_find_job(const struct cordon_home *home, const char *run, const char *name, struct cordon_job *ret_job,
			  struct cordon_error *err)
{
	autofree struct cordon_job *jobs = NULL;
	size_t n = 0, best = CORDON_SUGGEST_FAR, nearest = SIZE_MAX;
	struct cordon_crew_info info;
	int r = cordon_crew_read(home, run, &info, &jobs, &n, err);

	if (r < 0)
		return r;
	for (size_t i = 0; i < n; i++) {
		if (strcasecmp(jobs[i].name, name) == 0) {
			*ret_job = jobs[i];
			return 0;
		}
		if (cordon_suggest_closer(name, jobs[i].name, &best))
			nearest = i;
	}
	cordon_fail(err, -ENOENT, CORDON_KIND_NOT_FOUND, "the run %s has no agent '%.80s'", run, name);
	if (nearest != SIZE_MAX)
		cordon_error_hint(err, "did you mean '%s'?", jobs[nearest].name);
	return -ENOENT;
}

void cordon_agent_clean(const struct cordon_home *home)
{
	autofd int fd = openat(home->state_fd, CLEAN_STAMP, O_WRONLY | O_NOFOLLOW | O_CLOEXEC);
	size_t removed, live;
	struct stat st;
	time_t now = time(NULL);

	if (fd >= 0 && fstat(fd, &st) == 0 && st.st_mtime <= now && now - st.st_mtime < CLEAN_EVERY_S)
		return;
	if (fd < 0)
		fd = openat(home->state_fd, CLEAN_STAMP, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0 || futimens(fd, NULL) < 0)
		return;
	(void)cordon_crew_gc(home, CORDON_CREW_KEEP_MS, &removed, &live, NULL);
}
