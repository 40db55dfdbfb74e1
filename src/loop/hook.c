/* SPDX-License-Identifier: Apache-2.0 */
/* Runs validation hooks in sandboxes. */
#include <jansson.h>
#include <stdio.h>

#include "audit/audit.h"
#include "loop/hook.h"
#include "recipe/recipe.h"
#include "run/captured.h"

#define TEXT_MAX ((size_t)4096)		/* of what a hook says */
#define HOOK_MEMORY ((uint64_t)1 << 30) /* bytes */
#define HOOK_PIDS 256

bool cordon_hooks_have(const struct cordon_settings_file *settings, cordon_hook_event event)
{
	for (size_t i = 0; settings && i < settings->n_hooks; i++)
		if (settings->hooks[i].on[event])
			return true;
	return false;
}

/* Names of files need not be UTF-8; what is not is escaped, as in the audit log. */
static json_t *texts(const char *const *items, size_t n)
{
	json_t *array = json_array();

	for (size_t i = 0; i < n; i++)
		json_array_append_new(array, cordon_audit_text(items[i]));
	return array;
}

static char *make_input(const struct cordon_hook_ask *ask)
{
	json_auto_t *object = json_pack("{s:s, s:o, s:s, s:o}", "event", cordon_hook_event_name(ask->event), "folders",
					texts(ask->folders, ask->n_folders), "mode",
					ask->mode == CORDON_MODE_STRICT ? "strict" : "permissive", "paths",
					texts(ask->paths, ask->n_paths));

	return object ? json_dumps(object, JSON_COMPACT) : NULL;
}

/* The hook may read the whole repository, and what else it needs is its own program. */
static int compile(const struct cordon_hook *hook, const struct cordon_hook_ask *ask, struct cordon_recipe *recipe,
		   struct cordon_error *err)
{
	struct cordon_errors errors CORDON_CLEANUP(cordon_errors_done) = { 0 };
	int r = cordon_recipe_add_rule(recipe, CORDON_RULE_NET, "none", "a validation hook", err);

	if (r < 0)
		return r;
	recipe->root = ask->root->path;
	recipe->program = hook->run[0];
	recipe->program_of = "the validation hook";
	recipe->without_worktree = true;
	cordon_recipe_set_value(recipe, CORDON_RECIPE_READ_ONLY, true);
	cordon_recipe_set_value(recipe, CORDON_RECIPE_MEMORY, HOOK_MEMORY);
	cordon_recipe_set_value(recipe, CORDON_RECIPE_PIDS, HOOK_PIDS);
	cordon_recipe_set_value(recipe, CORDON_RECIPE_TIMEOUT, hook->timeout_ms);
	cordon_recipe_set_value(recipe, CORDON_RECIPE_GRACE, 100);
	recipe->spec.argv = hook->run;
	recipe->spec.cwd = ask->root->path;
	r = cordon_recipe_compile(recipe, CORDON_RECIPE_PLANS, &errors);
	return r < 0 ? cordon_errors_first(&errors, err) : 0;
}

/* The first line that says something; errors escape it. */
static void first_line(const struct cordon_buf *text, char *ret, size_t size)
{
	const char *p = text->len ? text->data : "", *end = p + text->len;

	while (p < end && (*p == '\n' || *p == '\r' || *p == ' ' || *p == '\t'))
		p++;
	snprintf(ret, size, "%.*s", (int)strcspn(p, "\r\n"), p);
}

static int refuse(const struct cordon_hook *hook, const char *why, struct cordon_error *err)
{
	return cordon_fail(err, -EPERM, CORDON_KIND_POLICY_DENIED, "the validation hook %s refuses%s%s", hook->name,
			   *why ? ": " : "", why);
}

static int run_hook(const struct cordon_hook *hook, const struct cordon_hook_ask *ask, const char *input,
		    struct cordon_error *err)
{
	struct cordon_recipe recipe CORDON_CLEANUP(cordon_recipe_done) = { 0 };
	struct cordon_buf text autobuf = CORDON_BUF(TEXT_MAX);
	struct cordon_captured end = { 0 };
	struct cordon_error own = { 0 };
	char line[512];
	int r = compile(hook, ask, &recipe, &own);

	if (r == 0)
		r = cordon_run_captured(&recipe.spec, input, strlen(input), NULL, &text, &end, &own);
	if (r < 0)
		return refuse(hook, own.message, err);
	if (end.state == CORDON_STATE_TIMEOUT)
		return refuse(hook, "it took too long", err);
	if (end.error.code)
		return refuse(hook, end.error.message, err);
	if (end.state == CORDON_STATE_COMPLETED && end.own_exit == 0)
		return 0;
	first_line(&text, line, sizeof(line));
	return refuse(hook, line, err);
}

int cordon_hooks_run(const struct cordon_settings_file *settings, const struct cordon_hook_ask *ask,
		     struct cordon_error *err)
{
	autofree char *input = NULL;
	int r = 0;

	if (!cordon_hooks_have(settings, ask->event))
		return 0;
	if (ask->n_paths > CORDON_HOOK_PATHS_MAX)
		return cordon_fail(err, -E2BIG, CORDON_KIND_LIMIT, "validation hooks are told of at most %d paths",
				   CORDON_HOOK_PATHS_MAX);
	input = make_input(ask);
	if (!input)
		return cordon_fail_errno(err, -ENOMEM, "validation hooks");
	for (size_t i = 0; r == 0 && i < settings->n_hooks; i++)
		if (settings->hooks[i].on[ask->event])
			r = run_hook(&settings->hooks[i], ask, input, err);
	return r;
}
