/* SPDX-License-Identifier: Apache-2.0 */
/* This runs in the engine of a run: one attempt of a step, from its copy of the run directory to its end. */
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>

#include "base/dirs.h"
#include "base/io.h"
#include "base/json.h"
#include "base/time.h"
#include "flow/envelope.h"
#include "flow/internal.h"
#include "flow/outputs.h"
#include "flow/step.h"
#include "flow/step_view.h"
#include "job/crew.h"

#define PROMPT_MAX ((size_t)4 << 20) /* bytes of a prompt with its values */

struct attempt {
	struct cordon_flow_engine *engine;
	const struct cordon_flow_step *step;
	struct cordon_flow_step_state *state;
	unsigned int number;
	uint64_t serial;
	char token[CORDON_ENVELOPE_TOKEN_SIZE];
	char run_workspace[CORDON_PATH_MAX];
	char job[CORDON_CREW_NAME_MAX + 1];
	struct cordon_settings_file *settings;
	struct stat settings_stat; /* of the file before it was read; zeroes when there was none */
	const struct cordon_orchestrator *orchestrator;
	struct cordon_step_spec made;
	char **argv;
	const char **protect; /* paths below the private workspace */
	size_t n_protect;
	int input; /* the prompt, or -1 */
	struct cordon_buf answer;
	size_t index;			/* of the job */
	char view_id[CORDON_UUID_SIZE]; /* of the private workspace; "" when the step works without one */
	struct cordon_view view;
	bool kept; /* the journal says that the view is to be taken over */
};

static void attempt_done(struct attempt *attempt)
{
	cordon_step_spec_done(&attempt->made);
	cordon_flow_argv_free(attempt->argv);
	for (size_t i = 0; i < attempt->n_protect; i++)
		free((char *)(uintptr_t)attempt->protect[i]);
	free(attempt->protect);
	cordon_settings_freep(&attempt->settings);
	cordon_closep(&attempt->input);
	cordon_buf_done(&attempt->answer);
	cordon_view_close(&attempt->view);
	if (*attempt->view_id && !attempt->kept)
		cordon_step_view_drop(attempt->engine->home, attempt->view_id);
}

/* ---- what the step gets ---- */

static int make_token(char ret[static CORDON_ENVELOPE_TOKEN_SIZE])
{
	static const char digits[] = "0123456789abcdef";
	unsigned char bytes[(CORDON_ENVELOPE_TOKEN_SIZE - 1) / 2];

	if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
		return -EIO;
	for (size_t i = 0; i < sizeof(bytes); i++) {
		ret[2 * i] = digits[bytes[i] >> 4];
		ret[2 * i + 1] = digits[bytes[i] & 15];
	}
	ret[CORDON_ENVELOPE_TOKEN_SIZE - 1] = '\0';
	return 0;
}

/* A private file in memory: the agent reads it from the start, and nobody else has it. */
static int make_input(const struct cordon_buf *text)
{
	int fd = memfd_create("prompt", MFD_CLOEXEC);

	if (fd >= 0 && (cordon_write_all(fd, text->data ? text->data : "", text->len) < 0 || lseek(fd, 0, SEEK_SET) < 0))
		cordon_closep(&fd);
	return fd;
}

static int add_protect(struct attempt *a, const char *name)
{
	size_t size = strlen(name) + strlen(a->engine->run.id) + sizeof("work/runs//");
	char *path = malloc(size);

	if (!path || cordon_concat(path, size, "work/runs/", a->engine->run.id, "/", name, (char *)NULL) < 0) {
		free(path);
		return -ENOMEM;
	}
	a->protect[a->n_protect++] = path;
	return 0;
}

/* Whether the step itself writes to this path now. */
static bool is_own_output(const struct attempt *a, const char *path)
{
	char own[CORDON_PATH_MAX];

	for (size_t i = 0; i < a->step->n_outputs; i++)
		if (a->step->outputs[i].file &&
		    cordon_output_path(&a->step->outputs[i], a->engine->run.id, a->step->id, a->number, own, NULL) == 0 &&
		    cordon_streq(own, path))
			return true;
	return false;
}

/* What earlier steps produced, and what cordon itself wrote there, can only be read. */
static int protect_files(struct attempt *a, bool prompt_in_file)
{
	const json_t *files = a->engine->progress.files;
	int r = 0;

	a->protect = calloc(json_array_size(files) + 2, sizeof(*a->protect));
	if (!a->protect)
		return -ENOMEM;
	for (size_t i = 0; r == 0 && i < json_array_size(files); i++)
		if (!is_own_output(a, json_string_value(json_array_get(files, i))))
			r = add_protect(a, json_string_value(json_array_get(files, i)));
	if (r == 0)
		r = add_protect(a, "context.md");
	if (r == 0 && prompt_in_file)
		r = add_protect(a, "prompt.md");
	return r;
}

/* An earlier agent may have made anything under this name. Nothing is synced: the copy is, when the step has finished. */
static int write_own(const struct attempt *a, const char *name, const struct cordon_buf *text, struct cordon_error *err)
{
	int dir = a->engine->stage.dir_fd;
	autofd int fd = -1;
	int r = cordon_dirs_remove(dir, name, err);

	if (r < 0)
		return cordon_error_prefix(err, r, "the run directory");
	fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	r = fd < 0 ? -errno : cordon_write_all(fd, text->data ? text->data : "", text->len);
	return r < 0 ? cordon_fail_errno(err, r, "cannot write %s in the run directory", name) : 0;
}

/* Writes prompt and context, and finds the command. */
static int make_texts(struct attempt *a, struct cordon_error *err)
{
	struct cordon_flow_engine *engine = a->engine;
	const json_t *agent = json_object_get(engine->run.agents, a->step->agent);
	const char *name = cordon_json_string(agent, "provider");
	struct cordon_flow_prompt prompt = { .run = &engine->run,
					     .progress = &engine->progress,
					     .step = a->step,
					     .attempt = a->number,
					     .run_workspace = a->run_workspace,
					     .token = a->token };
	autobuf struct cordon_buf text = CORDON_BUF(PROMPT_MAX);
	autobuf struct cordon_buf context = CORDON_BUF(PROMPT_MAX);
	const struct cordon_provider *provider = NULL;
	struct cordon_errors found CORDON_CLEANUP(cordon_errors_done) = { 0 };
	char file[CORDON_PATH_MAX];
	bool in_file = false;
	int r = cordon_settings_provider(a->settings, name ? name : "", &provider, err);

	if (r == 0)
		r = cordon_flow_prompt(&prompt, &text, err);
	if (r == 0)
		r = cordon_flow_context(&prompt, a->orchestrator, &context, err);
	if (r == 0)
		r = write_own(a, "context.md", &context, err);
	if (r < 0)
		return r;
	if (cordon_concat(file, sizeof(file), a->run_workspace, "/prompt.md", (char *)NULL) < 0)
		return cordon_fail_errno(err, -ENAMETOOLONG, "%s", a->run_workspace);
	a->argv = cordon_flow_argv(provider, cordon_json_string(agent, "model"), file, &in_file);
	if (!a->argv || protect_files(a, in_file) < 0)
		return cordon_fail_errno(err, -ENOMEM, "cannot start the step %s", a->step->id);
	if (in_file)
		r = write_own(a, "prompt.md", &text, err);
	else if ((a->input = make_input(&text)) < 0)
		r = cordon_fail_errno(err, -errno, "cannot give the step %s its prompt", a->step->id);
	if (r < 0)
		return r;
	struct cordon_step_spec_ask ask = { .settings = a->settings,
					    .orchestrator = a->orchestrator,
					    .run_id = engine->run.id,
					    .run_dir = engine->stage.dir,
					    .run_workspace = a->step->run_workspace,
					    .protect = a->protect,
					    .n_protect = a->n_protect,
					    .argv = a->argv,
					    .provider = provider };
	uint64_t limit = a->step->timeout_s ? a->step->timeout_s * 1000 : engine->run.step_timeout_ms;
	uint64_t left = engine->run.run_timeout_ms - engine->progress.used_ms;

	if (engine->run.max_step_timeout_ms && limit > engine->run.max_step_timeout_ms)
		limit = engine->run.max_step_timeout_ms;
	ask.timeout_ms = limit < left ? limit : left;
	r = cordon_step_spec_init(&ask, &a->made, &found);
	return r < 0 ? cordon_errors_first(&found, err) : 0;
}

/* "docs" for an area that can be written, "specs:ro" for one that can't. */
static json_t *area_names(const struct cordon_orchestrator *orchestrator)
{
	json_t *names = json_array();

	for (size_t i = 0; i < orchestrator->n_grants; i++)
		json_array_append_new(names, json_sprintf("%s%s", orchestrator->grants[i].area->key,
							  orchestrator->grants[i].read_only ? ":ro" : ""));
	return names;
}

/* Reads the settings as they are now: the next step of a run sees grants that were given or revoked meanwhile. */
static int load_settings(struct attempt *a, struct cordon_error *err)
{
	struct cordon_errors found CORDON_CLEANUP(cordon_errors_done) = { 0 };
	const char *config = cordon_json_string(a->engine->run.record, "config");
	int r;

	cordon_settings_freep(&a->settings);
	if (!config || stat(config, &a->settings_stat) < 0)
		a->settings_stat = (struct stat){ 0 };
	r = cordon_settings_load(config, 0, &a->settings, &found);
	if (r < 0 || found.n)
		return found.n ? cordon_errors_first(&found, err)
			       : cordon_fail_errno(err, r, "cannot read the settings");
	r = cordon_settings_orchestrator(a->settings, a->engine->run.orchestrator, &a->orchestrator, err);
	if (r == 0 && !cordon_streq(a->orchestrator->private_workspace, a->engine->run.private_path))
		r = cordon_fail(err, -ESTALE, CORDON_KIND_CONFLICT,
				"the private workspace of %s is not where the run began (%s)",
				a->engine->run.orchestrator, a->engine->run.private_path);
	return r;
}

static int prepare(struct attempt *a, struct cordon_error *err)
{
	struct cordon_flow_engine *engine = a->engine;
	int r = make_token(a->token);

	if (r < 0)
		return cordon_fail_errno(err, r, "cannot make a token");
	if (cordon_concat(a->run_workspace, sizeof(a->run_workspace), engine->run.private_path, "/work/runs/",
			  engine->run.id, (char *)NULL) < 0)
		return cordon_fail_errno(err, -ENAMETOOLONG, "%s", engine->run.private_path);
	snprintf(a->job, sizeof(a->job), "%.40s.%llu", a->step->id, (unsigned long long)a->serial);
	r = load_settings(a, err);
	/* Nothing but the work area of the run can be written in the other mode. */
	if (r == 0 && !a->step->run_workspace && a->settings->step_views && (r = cordon_uuid_new(a->view_id)) < 0)
		cordon_fail_errno(err, r, "cannot make an id");
	if (r == 0)
		r = cordon_flow_stage_copy(&engine->stage, a->serial, err);
	if (r == 0)
		r = cordon_outputs_clear(engine->stage.dir_fd, a->step, engine->run.id, a->number, err);
	return r < 0 ? r : make_texts(a, err);
}

/* ---- the run of the agent ---- */

/* Keeps the last bytes of what the agent wrote. */
void cordon_flow_hear(struct cordon_flow_engine *engine, const char *bytes, size_t n)
{
	struct cordon_buf *answer = engine->answer;

	if (answer && answer->len + n > answer->max) {
		size_t keep = CORDON_ENVELOPE_MAX < answer->len ? CORDON_ENVELOPE_MAX : answer->len;

		memmove(answer->data, answer->data + answer->len - keep, keep);
		answer->len = keep;
		engine->cut = true;
	}
	if (answer)
		(void)cordon_buf_add(answer, bytes, n);
}

/* The answer without a line whose beginning is lost: half a line of JSON would make text of all the others, and what the
 * tools of the agent printed would count like its own words. */
static const char *whole_lines(const struct attempt *a, size_t *ret_n)
{
	const char *text = a->answer.data ? a->answer.data : "", *end;

	*ret_n = a->answer.len;
	if (!a->engine->cut || !(end = memchr(text, '\n', *ret_n)))
		return text;
	*ret_n -= (size_t)(end - text) + 1;
	return end + 1;
}

/* Whether the settings are still the file that the sandbox was built with. A revoke replaces the file before it looks for
 * running steps and their jobs; so one that does not find the job of this attempt is found here, when the job can be seen. */
static bool same_settings(const struct attempt *a)
{
	const struct stat *was = &a->settings_stat;
	struct stat now;

	if (stat(a->settings->path, &now) < 0)
		return errno == ENOENT && !was->st_ino;
	return now.st_dev == was->st_dev && now.st_ino == was->st_ino && now.st_size == was->st_size &&
	       now.st_mtim.tv_sec == was->st_mtim.tv_sec && now.st_mtim.tv_nsec == was->st_mtim.tv_nsec &&
	       now.st_ctim.tv_sec == was->st_ctim.tv_sec && now.st_ctim.tv_nsec == was->st_ctim.tv_nsec;
}

/* *ret_stale: the settings changed before the agent could start, and it did not. */
static int run_agent(struct attempt *a, struct cordon_job *ret_job, bool *ret_stale, struct cordon_error *err)
{
	struct cordon_flow_engine *engine = a->engine;
	struct cordon_job_spec job = { .name = a->job, .run = a->made.recipe.spec, .input = a->input < 0 ? 0 : a->input };
	int r = cordon_crew_add(engine->crew, &job, &a->index, err);

	if (r < 0)
		return r;
	engine->answer = &a->answer;
	engine->cut = false;
	*ret_stale = !same_settings(a);
	if (*ret_stale)
		cordon_crew_cancel(engine->crew, a->index);
	r = cordon_crew_wait(engine->crew, NULL, err);
	engine->answer = NULL;
	if (r == 0)
		cordon_crew_job(engine->crew, a->index, ret_job);
	return r;
}

/* ---- how it ended ---- */

static json_t *end_event(const struct attempt *a, const struct cordon_job *job, const char *result)
{
	int64_t duration = job->ended && job->started ? job->ended - job->started : 0;
	char ended[CORDON_TIME_SIZE];
	json_t *event = json_pack("{s:s, s:I, s:s, s:I, s:I, s:I}", "event", "end", "n", (json_int_t)a->serial,
				  "result", result, "duration_ms", (json_int_t)(duration > 0 ? duration : 0),
				  "violations", (json_int_t)job->violations, "exit_code", (json_int_t)job->exit_code);

	if (*job->run_id)
		json_object_set_new(event, "session_id", json_string(job->run_id));
	cordon_time_format(job->ended, ended);
	if (job->ended)
		json_object_set_new(event, "ended_at", json_string(ended));
	return event;
}

static int say_failed(struct attempt *a, const struct cordon_job *job, const char *message, struct cordon_error *err)
{
	json_t *event = end_event(a, job, "failed");

	json_object_set_new(event, "message", json_string(message));
	return cordon_flow_say(a->engine, event, err);
}

static void describe_failure(const struct cordon_job *job, char *ret, size_t size)
{
	if (job->state == CORDON_JOB_TIMEOUT)
		snprintf(ret, size, "timeout");
	else if (*job->message)
		snprintf(ret, size, "%s: %s", cordon_job_state_name(job->state), job->message);
	else if (job->signal)
		snprintf(ret, size, "the agent was ended by signal %d", job->signal);
	else
		snprintf(ret, size, "the agent ended with exit code %d", job->exit_code);
}

/* Finds the outputs. An error is the agent's fault. */
static int take_outputs(struct attempt *a, json_t **ret_outputs, json_t **ret_files, struct cordon_error *why)
{
	struct cordon_flow_engine *engine = a->engine;
	json_auto_t *envelope = NULL;
	const char *text;
	bool approve;
	size_t n;
	int r;

	text = whole_lines(a, &n);
	r = cordon_envelope_find(text, n, a->token, &envelope, why);
	if (r == 0 && cordon_json_is(envelope, "status", "failed")) {
		const char *summary = cordon_json_string(envelope, "summary");

		r = cordon_fail(why, -EINVAL, CORDON_KIND_CONFIG, "the agent says that it failed%s%.200s",
				summary ? ": " : "", summary ? summary : "");
	}
	if (r == 0)
		r = cordon_outputs_take(engine->stage.dir_fd, a->step, engine->run.id, a->number, envelope, ret_outputs,
					ret_files, &approve, why);
	return r;
}

/* Takes the outputs, makes what the step left durable, and says so; then it becomes the run directory, and what the step
 * changed in the private workspace comes there. */
static int take_result(struct attempt *a, const struct cordon_job *job, struct cordon_error *err)
{
	struct cordon_flow_engine *engine = a->engine;
	char identity[CORDON_STAGE_IDENTITY_SIZE];
	struct cordon_error why = { 0 };
	json_auto_t *outputs = NULL;
	json_auto_t *files = NULL;
	autofd int taking = -1;
	bool changed = false;
	json_t *event;
	int r = take_outputs(a, &outputs, &files, &why);

	if (r < 0)
		return say_failed(a, job, why.message, err);
	r = cordon_flow_stage_seal(&engine->stage, identity, err);
	if (r == 0 && *a->view_id)
		r = cordon_step_view_judge(engine->home, engine->run.orchestrator, &a->view, job->run_id, &changed,
					   &taking, err);
	if (r == -EEXIST || r == -EPERM || r == -EACCES) {
		why = *err;
		return say_failed(a, job, why.message, err);
	}
	if (r < 0)
		return r;
	event = end_event(a, job, "complete");
	json_object_set(event, "outputs", outputs);
	json_object_set(event, "files", files);
	json_object_set_new(event, "dir", json_string(identity));
	if (changed)
		json_object_set_new(event, "view", json_string(a->view_id));
	a->kept = changed;
	r = cordon_flow_say(engine, event, err);
	if (r == 0)
		r = cordon_flow_stage_commit(&engine->stage, a->serial, identity, err);
	cordon_view_close(&a->view);
	return r == 0 && changed ? cordon_step_view_take(engine->home, a->view_id, err) : r;
}

static int finish(struct attempt *a, const struct cordon_job *job, struct cordon_error *err)
{
	char message[1024];

	switch (job->state) {
	case CORDON_JOB_COMPLETED:
		return take_result(a, job, err);
	case CORDON_JOB_LOST: /* it starts again */
		return 0;
	case CORDON_JOB_CANCELLED:
		if (cordon_flow_requested(&a->engine->run, CORDON_FLOW_REVOKED))
			return say_failed(a, job, CORDON_FLOW_REVOKED, err);
		if (cordon_flow_requested(&a->engine->run, CORDON_FLOW_CANCEL))
			return say_failed(a, job, "canceled", err);
		return cordon_fail(err, -EINTR, CORDON_KIND_INTERNAL, "the engine was asked to end");
	case CORDON_JOB_QUEUED:
	case CORDON_JOB_STARTING:
	case CORDON_JOB_RUNNING:
	case CORDON_JOB_FAILED:
	case CORDON_JOB_TIMEOUT:
	case CORDON_JOB_REFUSED:
	case CORDON_JOB__MAX:
	default:
		describe_failure(job, message, sizeof(message));
		return say_failed(a, job, message, err);
	}
}

int cordon_flow_attempt(struct cordon_flow_engine *engine, struct cordon_error *err)
{
	CORDON_CLEANUP(attempt_done)
	struct attempt a = {
		.engine = engine, .input = -1, .answer = CORDON_BUF(2 * CORDON_ENVELOPE_MAX), .view = CORDON_VIEW_NONE
	};
	struct cordon_job job = { 0 };
	bool stale = false;
	json_t *event;
	int r;

	a.step = &engine->run.workflow->steps[engine->progress.at];
	a.state = &engine->progress.steps[engine->progress.at];
	/* What never ended starts again under its number. */
	a.number = a.state->attempt + (engine->progress.open ? 0 : 1);
	a.serial = engine->progress.serial + 1;
	r = prepare(&a, err);
	if (r < 0)
		return r;
	/* A request that came too late for an earlier step means nothing for this one; only an open attempt gets requests. */
	if (!engine->progress.open)
		(void)unlinkat(engine->run.fd, CORDON_FLOW_REVOKED, 0);
	event = json_pack("{s:s, s:I, s:s, s:I, s:s, s:o}", "event", "attempt", "n", (json_int_t)a.serial, "step",
			  a.step->id, "attempt", (json_int_t)a.number, "job", a.job, "areas",
			  area_names(a.orchestrator));
	if (*a.view_id)
		json_object_set_new(event, "view", json_string(a.view_id));
	r = cordon_flow_say(engine, event, err);
	if (r == 0 && *a.view_id)
		r = cordon_step_view_make(engine->home, a.view_id, &a.made.recipe.spec, &a.view, err);
	if (r == 0)
		r = run_agent(&a, &job, &stale, err);
	/* An attempt that never ran starts again, with the settings as they are now. */
	if (r < 0 ||
	    (stale && job.state == CORDON_JOB_CANCELLED && !cordon_flow_requested(&engine->run, CORDON_FLOW_CANCEL)))
		return r;
	return finish(&a, &job, err);
}
