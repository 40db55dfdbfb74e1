/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Judges a workflow before anything starts: whether each step's definition names only what its orchestrator has, and whether
 * its sandbox can be built. A refusal names the step and the path, and goes to the audit log. What an agent opens while it
 * runs is judged by the kernel, whatever was found here.
 */
#include <fcntl.h>

#include "audit/audit.h"
#include "base/path.h"
#include "flow/internal.h"
#include "flow/step.h"

/* ---- words of a command ---- */

static char *replace(const char *word, const char *name, const char *value, bool *ret_used)
{
	struct cordon_buf text = CORDON_BUF(65536);
	const char *at;
	int r = 0;

	while (r == 0 && (at = strstr(word, name))) {
		r = cordon_buf_add(&text, word, (size_t)(at - word));
		if (r == 0)
			r = cordon_buf_adds(&text, value);
		word = at + strlen(name);
		*ret_used = true;
	}
	if (r == 0)
		r = cordon_buf_adds(&text, word);
	if (r < 0) {
		cordon_buf_done(&text);
		return NULL;
	}
	return cordon_buf_steal(&text);
}

void cordon_flow_argv_free(char **argv)
{
	for (size_t i = 0; argv && argv[i]; i++)
		free(argv[i]);
	free(argv);
}

/* The name of the prompt's file is replaced after the model's: it is ours and contains no braces. An agent without a model
 * has no word for it, nor the option before that word. */
char **cordon_flow_argv(const struct cordon_provider *provider, const char *model, const char *prompt_file,
			bool *ret_file)
{
	size_t n = 0, made = 0;
	char **argv;
	bool ignored = false;

	*ret_file = false;
	while (provider->command[n])
		n++;
	argv = calloc(n + 1, sizeof(*argv));
	for (size_t i = 0; argv && i < n; i++) {
		autofree char *word = NULL;

		if (!model && strstr(provider->command[i], "{model}")) {
			if (cordon_streq(provider->command[i], "{model}") && made > 1 && argv[made - 1][0] == '-') {
				made--;
				free(cordon_steal_ptr(&argv[made]));
			}
			continue;
		}
		word = replace(provider->command[i], "{model}", model ? model : "", &ignored);
		argv[made] = word ? replace(word, "{prompt_file}", prompt_file, ret_file) : NULL;
		if (!argv[made++]) {
			cordon_flow_argv_free(argv);
			return NULL;
		}
	}
	return argv;
}

/* ---- refusals ---- */

void cordon_flow_record_refusal(const struct cordon_home *home, const char *orchestrator, const char *workflow,
				const char *step, const struct cordon_error *why)
{
	struct cordon_audit_ids ids = { .orchestrator_id = orchestrator };
	struct cordon_audit *audit = NULL;
	json_auto_t *detail = json_object();
	struct cordon_audit_event event = { .type = CORDON_AUDIT_REFUSAL,
					    .op = "workflow",
					    .decision = "deny",
					    .success = CORDON_AUDIT_FAILED,
					    .kind = why->kind,
					    .detail = detail };

	json_object_set_new(detail, "workflow", cordon_audit_text(workflow));
	if (step)
		json_object_set_new(detail, "step", cordon_audit_text(step));
	json_object_set_new(detail, "message", cordon_audit_text(why->message));
	/* Without a log the refusal stands all the same. */
	if (cordon_audit_open(home, &ids, &audit, NULL) == 0)
		(void)cordon_audit_write(audit, &event, NULL);
	cordon_audit_close(audit);
}

/* ---- paths in a definition ---- */

static bool is_path_char(char c)
{
	return c && (strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-.", c) ||
		     (unsigned char)c >= 0x80);
}

/* Whether the text names this path or something below it, as a path and not as a part of a longer name. */
static bool names_path(const char *text, const char *path)
{
	size_t n = strlen(path);

	for (const char *at = text; (at = strstr(at, path)); at++) {
		bool begins = at == text || (!is_path_char(at[-1]) && at[-1] != '/');

		if (begins && !is_path_char(at[n]))
			return true;
	}
	return false;
}

struct judging {
	const struct cordon_home *home;
	const struct cordon_settings_file *settings;
	const struct cordon_orchestrator *orchestrator;
	const struct cordon_workflow *workflow;
	const struct cordon_flow_step *step;
	const struct cordon_document *doc;
	struct cordon_errors *errors;
};

static void refuse(const struct judging *j, struct cordon_error *err)
{
	cordon_flow_record_refusal(j->home, j->orchestrator->id, j->workflow->id, j->step->id, err);
	if (*err->where)
		cordon_errors_add(j->errors, err, NULL, 0, 0);
	else
		cordon_errors_add(j->errors, err, j->doc->name, j->step->node->line, j->step->node->column);
}

/* An area that the step's text names by its path or its place in the workspace must be granted. */
static void judge_text(const struct judging *j, const char *text)
{
	for (size_t i = 0; text && i < j->settings->n_areas; i++) {
		const struct cordon_shared_area *area = &j->settings->areas[i];
		char place[CORDON_SETTINGS_ID_MAX + 16];
		struct cordon_error err = { 0 };
		const char *found = NULL;

		if (cordon_orchestrator_grant(j->orchestrator, area->key))
			continue;
		(void)cordon_concat(place, sizeof(place), "shared/", area->key, (char *)NULL);
		if (names_path(text, area->path))
			found = area->path;
		else if (names_path(text, area->given))
			found = area->given;
		else if (names_path(text, place))
			found = place;
		if (!found)
			continue;
		cordon_fail(&err, -EACCES, CORDON_KIND_POLICY_DENIED,
			    "the step %s names %s, but the shared area %s is not granted to %s", j->step->id, found,
			    area->key, j->orchestrator->id);
		cordon_error_hint(&err, "'cordon orchestrator grant-shared-access %s %s' grants it",
				  j->orchestrator->id, area->key);
		refuse(j, &err);
	}
}

/* Builds the sandbox's plan and judges the places where the step's outputs come to be. */
static int judge_sandbox(const struct judging *j, const struct cordon_provider *provider, const char *model)
{
	struct cordon_errors found CORDON_CLEANUP(cordon_errors_done) = { 0 };
	struct cordon_step_spec_ask ask = { .settings = j->settings,
					    .orchestrator = j->orchestrator,
					    .run_workspace = j->step->run_workspace,
					    .provider = provider,
					    .dry = true };
	struct cordon_step_spec step = CORDON_STEP_SPEC_NONE;
	struct cordon_error err = { 0 };
	bool in_file;
	char **argv = cordon_flow_argv(provider, model, "", &in_file);
	int r = argv ? 0 : -ENOMEM;

	ask.argv = argv;
	if (r == 0 && cordon_step_spec_init(&ask, &step, &found) == 0)
		cordon_step_spec_done(&step);
	cordon_flow_argv_free(argv);
	for (size_t i = 0; i < found.n; i++) {
		err = found.items[i];
		cordon_error_prefix(&err, err.code, "the step %s", j->step->id);
		refuse(j, &err);
	}
	return r;
}

static int judge_step(struct judging *j, const struct cordon_orchestrator_file *file)
{
	const struct cordon_flow_agent *agent = NULL;
	const struct cordon_provider *provider = NULL;
	struct cordon_error err = { 0 };

	judge_text(j, j->step->prompt);
	judge_text(j, j->step->context);
	if (j->step->type == CORDON_FLOW_HUMAN_REVIEW)
		return 0;
	if (cordon_orchestrator_file_agent(file, j->step->agent, &agent, &err) < 0 ||
	    cordon_settings_provider(j->settings, agent->provider, &provider, &err) < 0) {
		cordon_error_prefix(&err, err.code, "the step %s", j->step->id);
		refuse(j, &err);
		return 0;
	}
	return judge_sandbox(j, provider, agent->model);
}

int cordon_flow_access(const struct cordon_home *home, const struct cordon_settings_file *settings,
		       const struct cordon_orchestrator *orchestrator, const struct cordon_orchestrator_file *file,
		       const struct cordon_workflow *workflow, struct cordon_errors *errors)
{
	struct judging judging = { .home = home,
				   .settings = settings,
				   .orchestrator = orchestrator,
				   .workflow = workflow,
				   .doc = file->doc,
				   .errors = errors };
	int r = 0;

	for (size_t i = 0; r == 0 && i < workflow->n_steps; i++) {
		judging.step = &workflow->steps[i];
		r = judge_step(&judging, file);
	}
	return r < 0 ? r : errors->n ? -EACCES : 0;
}
