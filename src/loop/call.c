/* SPDX-License-Identifier: Apache-2.0 */
/* Starts the agent of a story: its policy, view, prompt, logs and job. */
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>

#include "base/io.h"
#include "base/path.h"
#include "loop/internal.h"
#include "policy/shares.h"

#define PROMPT_MAX ((size_t)4 << 20)
#define PROMPT_FILE "{prompt_file}"

/* ---- scope ---- */

bool cordon_loop_scope_inferred(const struct cordon_loop *loop, size_t story)
{
	const struct cordon_loop_prd *prd = &loop->options.prds[loop->stories[story].prd];

	return cordon_prd_scope_inferred(loop->stories[story].story, prd->items, prd->n_items);
}

bool cordon_loop_scope_enforced(const struct cordon_loop *loop, size_t story)
{
	const struct cordon_loop_prd *prd = &loop->options.prds[loop->stories[story].prd];

	if (!loop->stories[story].story->n_scope)
		return false;
	if (loop->options.file_scope == CORDON_FILE_SCOPE_ENFORCE)
		return true;
	return loop->options.file_scope == CORDON_FILE_SCOPE_DEFAULT && prd->mode == CORDON_MODE_STRICT &&
	       !cordon_loop_scope_inferred(loop, story);
}

static int add_fence(const struct cordon_loop *loop, size_t story, struct cordon_policy *policy,
		     struct cordon_error *err)
{
	const struct cordon_prd_story *one = loop->stories[story].story;
	CORDON_CLEANUP(cordon_policy_freep) struct cordon_policy *fence = NULL;
	char name[CORDON_PRD_ID_MAX + 32];
	int r = cordon_policy_new_like(policy, &fence, err);

	snprintf(name, sizeof(name), "fileScope of %s", one->id);
	for (size_t i = 0; r == 0 && i < one->n_scope; i++)
		r = cordon_policy_add_grant(fence, one->scope[i], CORDON_ACCESS_WRITE, name, err);
	if (r < 0)
		return r;
	cordon_policy_set_mode(fence, policy->mode);
	return cordon_policy_fence(policy, name, cordon_steal_ptr(&fence), err);
}

int cordon_loop_protect(const struct cordon_loop *loop, struct cordon_policy *policy, struct cordon_error *err)
{
	size_t n = strlen(loop->root.path);
	int r = 0;

	for (size_t i = 0; r == 0 && i < loop->options.n_prds; i++) {
		const char *path = loop->options.prds[i].path;

		if (cordon_path_within(path, loop->root.path) && path[n] == '/')
			r = cordon_policy_add_protected(policy, path + n + 1, "the PRD", false, err);
	}
	return r;
}

static int make_policy(struct cordon_loop *loop, struct cordon_loop_call *call, struct cordon_error *err)
{
	struct cordon_loop_scope scope = { .prd = &loop->options.prds[loop->stories[call->story].prd],
					   .strict = loop->options.file_scope == CORDON_FILE_SCOPE_ENFORCE &&
						     loop->stories[call->story].story->n_scope };
	int r = loop->options.observer.policy(loop->options.observer.maker, &scope, &call->policy, err);

	if (r == 0)
		r = cordon_loop_protect(loop, call->policy, err);
	if (r == 0 && cordon_loop_scope_enforced(loop, call->story))
		r = add_fence(loop, call->story, call->policy, err);
	return r;
}

/* ---- the prompt ---- */

static int make_input(const struct cordon_buf *text)
{
	int fd = memfd_create("prompt", MFD_CLOEXEC);

	if (fd >= 0 && (cordon_write_all(fd, text->data ? text->data : "", text->len) < 0 || lseek(fd, 0, SEEK_SET) < 0))
		cordon_closep(&fd);
	return fd;
}

/* The agent's command, with {prompt_file} replaced wherever it stands in a word. */
static int make_argv(const struct cordon_loop *loop, struct cordon_loop_call *call, bool *ret_file,
		     struct cordon_error *err)
{
	size_t n = 0;

	while (loop->options.argv[n])
		n++;
	call->argv = calloc(n + 1, sizeof(*call->argv));
	for (size_t i = 0; call->argv && i < n; i++) {
		autobuf struct cordon_buf word = CORDON_BUF((size_t)1 << 20);
		const char *at = loop->options.argv[i];
		int r = 0;

		for (const char *mark; r == 0 && (mark = strstr(at, PROMPT_FILE)); at = mark + strlen(PROMPT_FILE)) {
			*ret_file = true;
			r = cordon_buf_add(&word, at, (size_t)(mark - at));
			if (r == 0)
				r = cordon_buf_adds(&word, CORDON_LOOP_PROMPT_AT);
		}
		if (r < 0 || cordon_buf_adds(&word, at) < 0 || !(call->argv[i] = cordon_buf_steal(&word)))
			return cordon_fail_errno(err, -ENOMEM, "the command of the agent");
	}
	return call->argv ? 0 : cordon_fail_errno(err, -ENOMEM, "the command of the agent");
}

static int show_prompt_file(const struct cordon_loop *loop, struct cordon_loop_call *call, struct cordon_error *err)
{
	CORDON_UNCLEARED char source[CORDON_PATH_MAX];
	struct cordon_share share = {
		.source = source, .target = CORDON_LOOP_PROMPT_AT, .read_only = true, .own = true, .where = PROMPT_FILE
	};

	if (cordon_concat(source, sizeof(source), loop->dir, "/logs/", call->logs.name, "/prompt.txt", (char *)NULL) < 0)
		return cordon_fail_errno(err, -ENAMETOOLONG, "%s", loop->dir);
	return cordon_policy_add_share(call->policy, &share, false, loop->options.spec.at, err);
}

static int make_prompt(struct cordon_loop *loop, struct cordon_loop_call *call, struct cordon_error *err)
{
	autobuf struct cordon_buf text = CORDON_BUF(PROMPT_MAX);
	bool in_file = false;
	int r = cordon_loop_prompt(loop, call->story, &text, err);

	if (r == 0)
		r = cordon_loop_logs_open(loop->dir_fd, loop->stories[call->story].story->id, call->n, &text,
					  &call->logs, err);
	if (r == 0)
		r = make_argv(loop, call, &in_file, err);
	if (r == 0 && in_file)
		return show_prompt_file(loop, call, err);
	if (r == 0 && (call->input = make_input(&text)) < 0)
		r = cordon_fail_errno(err, -errno, "cannot give the agent its prompt");
	return r;
}

/* ---- the view ---- */

static int add_layer(const struct cordon_loop *loop, struct cordon_loop_call *call, const char *view, json_t *ids,
		     struct cordon_error *err)
{
	CORDON_UNCLEARED char path[CORDON_PATH_MAX];

	if (cordon_concat(path, sizeof(path), loop->home->path, "/state/views/", view, "/" CORDON_VIEW_UPPER,
			  (char *)NULL) < 0)
		return cordon_fail_errno(err, -ENAMETOOLONG, "%s", loop->home->path);
	call->layers[call->n_layers] = strdup(path);
	if (!call->layers[call->n_layers] || json_array_append_new(ids, json_string(view)) < 0)
		return cordon_fail_errno(err, -ENOMEM, "layers");
	call->n_layers++;
	return 0;
}

/* Everything that was accepted, the newest first, then what only the branch has. */
static int make_view(struct cordon_loop *loop, struct cordon_loop_call *call, struct cordon_error *err)
{
	json_auto_t *ids = json_array();
	struct cordon_view_request request = {
		.policy = call->policy, .argv = call->argv, .layers = ids, .git = cordon_view_git_of(loop->options.git)
	};
	int r = 0;

	call->n_stack = loop->n_stack;
	for (size_t i = loop->n_stack; r == 0 && i-- > 0;)
		if (*loop->stack[i].view)
			r = add_layer(loop, call, loop->stack[i].view, ids, err);
	if (r == 0 && *loop->git.base)
		r = add_layer(loop, call, loop->git.base, ids, err);
	return r < 0 ? r : cordon_view_create(loop->home, &request, &call->view, err);
}

/* ---- starting ---- */

/* Agent and check are told which story it is. */
static int make_env(const struct cordon_loop *loop, struct cordon_loop_call *call, struct cordon_error *err)
{
	const struct cordon_run_spec *spec = &loop->options.spec;

	call->env = calloc(spec->n_env + 2, sizeof(*call->env));
	for (size_t i = 0; call->env && i < spec->n_env; i++)
		call->env[call->n_env++] = spec->env[i];
	if (!call->env || asprintf(&call->env[call->n_env], "CORDON_STORY=%s", loop->stories[call->story].story->id) < 0)
		return cordon_fail_errno(err, -ENOMEM, "the environment of the agent");
	call->n_env++;
	return 0;
}

static int add_job(struct cordon_loop *loop, struct cordon_loop_call *call, struct cordon_error *err)
{
	char name[CORDON_CREW_NAME_MAX + 1];
	struct cordon_job_spec job = { .name = name,
				       .run = loop->options.spec,
				       .input = call->input < 0 ? 0 : call->input };

	snprintf(name, sizeof(name), "call.%llu", (unsigned long long)call->n);
	job.run.policy = call->policy;
	job.run.argv = call->argv;
	job.run.env = call->env;
	job.run.n_env = call->n_env;
	job.run.cwd = loop->root.path;
	job.run.view = call->view.dir_fd >= 0 ? call->view.path : NULL;
	job.run.view_layers = call->layers;
	job.run.n_view_layers = call->n_layers;
	return cordon_crew_add(loop->crew, &job, &call->job, err);
}

int cordon_loop_call_start(struct cordon_loop *loop, struct cordon_loop_call *call, size_t story,
			   struct cordon_error *err)
{
	struct cordon_loop_story *one = &loop->stories[story];
	json_t *event;
	int r;

	call->n = loop->n + 1;
	call->story = story;
	call->attempt = one->calls + 1;
	call->mark_us = cordon_loop_us();
	call->check_output = (struct cordon_buf)CORDON_BUF(CORDON_LOOP_NOTE_MAX + 1);
	loop->n_live++;
	r = make_policy(loop, call, err);
	if (r == 0)
		r = make_prompt(loop, call, err);
	if (r == 0)
		r = make_env(loop, call, err);
	if (r == 0 && !loop->options.no_views)
		r = make_view(loop, call, err);
	if (r == 0)
		r = cordon_loop_git_begin(loop, call, err);
	if (r < 0)
		return r;
	event = cordon_loop_event(loop, "call", call->n, story);
	json_object_set_new(event, "attempt", json_integer(call->attempt));
	json_object_set_new(event, "iteration", json_integer(loop->summary.iterations + 1));
	json_object_set_new(event, "title", json_string(one->story->title));
	json_object_set_new(event, "view", json_string(call->view.dir_fd >= 0 ? call->view.record.id : ""));
	json_object_set_new(event, "log", json_string(call->logs.name));
	json_object_set_new(event, "job", json_integer((json_int_t)cordon_crew_count(loop->crew))); /* the next one */
	r = cordon_loop_say(loop, event, false, err);
	if (r < 0)
		return r;
	loop->n++;
	one->calls++;
	one->last[0] = '\0';
	loop->summary.iterations++;
	cordon_loop_set(loop, story, CORDON_STORY_WORKING);
	return add_job(loop, call, err);
}

static void drop_view(const struct cordon_loop *loop, struct cordon_view *view)
{
	if (view->dir_fd >= 0)
		(void)cordon_view_remove(loop->home, view, NULL);
	cordon_view_close(view);
}

void cordon_loop_call_done(struct cordon_loop *loop, struct cordon_loop_call *call)
{
	if (!call->n)
		return;
	drop_view(loop, &call->view);
	drop_view(loop, &call->check_view);
	drop_view(loop, &call->check_result);
	cordon_policy_freep(&call->policy);
	cordon_policy_freep(&call->check_policy);
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(call->layers); i++)
		free(call->layers[i]);
	for (size_t i = 0; call->argv && call->argv[i]; i++)
		free(call->argv[i]);
	free(call->argv);
	if (call->n_env > loop->options.spec.n_env)
		free(call->env[call->n_env - 1]);
	free(call->env);
	free(call->check_argv[2]);
	cordon_closep(&call->input);
	cordon_loop_logs_done(&call->logs);
	cordon_buf_done(&call->check_output);
	cordon_layer_done(&call->result);
	cordon_delta_done(&call->changed);
	json_decref(call->outside);
	if (call->mark_us)
		call->own_us += (uint64_t)(cordon_loop_us() - call->mark_us);
	loop->summary.own_us += call->own_us;
	loop->n_live--;
	*call = (struct cordon_loop_call){ .view = CORDON_VIEW_NONE,
					   .check_view = CORDON_VIEW_NONE,
					   .check_result = CORDON_VIEW_NONE,
					   .changed = CORDON_DELTA_NONE,
					   .logs = CORDON_LOOP_LOGS_NONE,
					   .input = -1 };
}
