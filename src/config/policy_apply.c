/* SPDX-License-Identifier: Apache-2.0 */
/* Applies a policy file to a policy: all of it, or nothing. */
#include "base/buf.h"
#include "config/policy_file.h"
#include "policy/policy.h"

struct apply {
	const struct cordon_policy_file *file;
	struct cordon_policy *policy;
	struct cordon_errors *errors;
	int code; /* of the first failure, or 0 */
};

static void report(struct apply *apply, struct cordon_error *err, const struct cordon_setting *setting)
{
	if (err->kind == CORDON_KIND_USAGE)
		err->kind = CORDON_KIND_CONFIG;
	if (!apply->code)
		apply->code = err->code;
	cordon_errors_add(apply->errors, err, apply->file->doc->name, setting->line, setting->column);
}

static void add_grants(struct apply *apply, const struct cordon_setting_list *list, cordon_access access)
{
	struct cordon_error err;

	for (size_t i = 0; i < list->n; i++)
		if (cordon_policy_add_grant(apply->policy, list->items[i].text, access, list->items[i].where, &err) < 0)
			report(apply, &err, &list->items[i]);
}

static void add_protected(struct apply *apply)
{
	const struct cordon_setting_list *list = &apply->file->protect;
	struct cordon_error err;

	for (size_t i = 0; i < list->n; i++) {
		const struct cordon_setting *item = &list->items[i];

		if (cordon_policy_add_protected(apply->policy, item->text, item->where, false, &err) < 0)
			report(apply, &err, item);
	}
}

/* The patterns under `within` are one fence. It has no mode of its own, so it gets the policy's. */
static void add_fence(struct apply *apply)
{
	const struct cordon_setting_list *list = &apply->file->within;
	autobuf struct cordon_buf name = CORDON_BUF(CORDON_PATH_MAX);
	struct cordon_policy *fence = NULL;
	struct cordon_error err;
	int r;

	if (!list->n || apply->code)
		return;
	r = cordon_policy_new_like(apply->policy, &fence, &err);
	for (size_t i = 0; r == 0 && i < list->n; i++)
		r = cordon_policy_add_grant(fence, list->items[i].text, CORDON_ACCESS_WRITE, list->items[i].where, &err);
	if (r == 0 && (cordon_buf_addf(&name, "within (%s)", list->items[0].where) < 0))
		r = cordon_fail_errno(&err, -ENOMEM, "cannot add a fence");
	if (r == 0) {
		cordon_policy_set_mode(fence, CORDON_MODE_PERMISSIVE);
		r = cordon_policy_fence(apply->policy, name.data, cordon_steal_ptr(&fence), &err);
	}
	if (r < 0)
		report(apply, &err, &list->items[0]);
	cordon_policy_free(fence);
}

/* Makes the folder list for messages: the policy's own, then the file's. NULL without memory. */
static char *join_folders(const struct apply *apply)
{
	struct cordon_buf text autobuf = CORDON_BUF((size_t)2 * CORDON_CONFIG_SIZE_MAX);
	const struct cordon_setting_list *list = &apply->file->workspace;
	int r = apply->policy->folders ? cordon_buf_adds(&text, apply->policy->folders) : 0;

	for (size_t i = 0; r == 0 && i < list->n; i++)
		r = cordon_buf_addf(&text, "%s%s", text.len ? "," : "", list->items[i].text);
	return r < 0 ? NULL : cordon_buf_steal(&text);
}

static void add_folders(struct apply *apply)
{
	const struct cordon_setting_list *list = &apply->file->workspace;
	struct cordon_error err;

	for (size_t i = 0; i < list->n; i++)
		if (cordon_policy_add_folder(apply->policy, list->items[i].text, list->items[i].where, &err) < 0)
			report(apply, &err, &list->items[i]);
}

int cordon_policy_file_apply(const struct cordon_policy_file *file, struct cordon_policy *policy,
			     struct cordon_errors *errors)
{
	struct apply apply = { .file = file, .policy = policy, .errors = errors };
	size_t n_grants = policy->n_grants, n_protected = policy->n_protected;
	struct cordon_error err;
	char *folders = NULL;

	add_folders(&apply);
	add_grants(&apply, &file->rw, CORDON_ACCESS_WRITE);
	add_grants(&apply, &file->ro, CORDON_ACCESS_READ);
	add_grants(&apply, &file->deny, CORDON_ACCESS_NONE);
	add_protected(&apply);
	if (!apply.code && file->workspace.n) {
		folders = join_folders(&apply);
		if (!folders) {
			cordon_fail_errno(&err, -ENOMEM, "cannot apply %s", file->doc->name);
			apply.code = cordon_errors_add(errors, &err, NULL, 0, 0);
		}
	}
	if (!apply.code)
		add_fence(&apply); /* last, because everything else can be removed after a failure, but not a fence */
	if (apply.code) {
		free(folders);
		cordon_policy_truncate(policy, n_grants, n_protected);
		return apply.code;
	}
	if (folders) {
		free(policy->folders);
		policy->folders = folders;
		policy->reports_reads = true;
	}
	if (file->values.where[CORDON_RECIPE_MODE])
		cordon_policy_set_mode(policy, (cordon_mode)file->values.of[CORDON_RECIPE_MODE]);
	policy->read_only |= cordon_recipe_value(&file->values, CORDON_RECIPE_READ_ONLY);
	policy->no_editor_temps |= !cordon_recipe_value(&file->values, CORDON_RECIPE_EDITOR_TEMPS);
	return 0;
}

int cordon_policy_load(struct cordon_policy *policy, const char *path, struct cordon_error *err)
{
	CORDON_CLEANUP(cordon_policy_file_freep) struct cordon_policy_file *file = NULL;
	struct cordon_errors errors CORDON_CLEANUP(cordon_errors_done) = { 0 };
	struct cordon_net_list net = { 0 };
	int r = cordon_policy_file_load(path, NULL, &file, &errors);

	if (r == 0)
		r = cordon_net_setting_list(&file->net, NULL, &net, err);
	if (r < 0 && !errors.n)
		return r;
	if (r == 0)
		r = cordon_policy_file_apply(file, policy, &errors);
	if (r < 0)
		cordon_errors_first(&errors, err);
	else
		r = cordon_net_list_narrow(&policy->net, &net, err);
	cordon_net_list_done(&net);
	return r;
}
