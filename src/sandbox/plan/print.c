/* SPDX-License-Identifier: Apache-2.0 */
/* Prints a plan as JSON and as text. */
#include <stdio.h>

#include "audit/audit.h"
#include "base/path.h"
#include "base/text.h"
#include "config/net_setting.h"
#include "config/recipe_table.h"
#include "sandbox/plan/print.h"

#define PLAN_VERSION 1
#define TEXT_MAX (16 << 20)

const char *cordon_step_name(cordon_step_kind kind)
{
	static const char *const names[] = {
		[CORDON_STEP_DIR] = "directory", [CORDON_STEP_FILE] = "file",	  [CORDON_STEP_LINK] = "link",
		[CORDON_STEP_FREEZE] = "freeze", [CORDON_STEP_BIND] = "bind",	  [CORDON_STEP_PRIVATE] = "private",
		[CORDON_STEP_MASK] = "mask",	 [CORDON_STEP_PIN] = "pin",	  [CORDON_STEP_PROC] = "proc",
		[CORDON_STEP_DEVPTS] = "devpts", [CORDON_STEP_MQUEUE] = "mqueue", [CORDON_STEP_RULE] = "rule",
		[CORDON_STEP_LENS] = "lens",	 [CORDON_STEP_LAYER] = "layer",	  [CORDON_STEP_VIEW] = "view",
	};

	return (unsigned int)kind < CORDON_STEP__MAX ? names[kind] : "?";
}

const char *cordon_right_name(cordon_right right)
{
	static const char *const names[] = {
		[CORDON_RIGHT_NONE] = "none",	[CORDON_RIGHT_LIST] = "list",	  [CORDON_RIGHT_READ] = "read",
		[CORDON_RIGHT_WRITE] = "write", [CORDON_RIGHT_DEVICE] = "device",
	};

	return (unsigned int)right < CORDON_RIGHT__MAX ? names[right] : "?";
}

static const char *guard_state_name(cordon_guard_state state)
{
	return state == CORDON_GUARD_PRESENT ? "present" : state == CORDON_GUARD_ABSENT ? "absent" : "link";
}

static json_t *text_or_null(const char *s)
{
	return s ? cordon_audit_text(s) : json_null();
}

static json_t *texts(char *const *items)
{
	json_t *array = json_array();

	for (size_t i = 0; items && items[i]; i++)
		json_array_append_new(array, cordon_audit_text(items[i]));
	return array;
}

static json_t *step_json(const struct cordon_step *step)
{
	json_t *object = json_pack("{s:s, s:o}", "step", cordon_step_name(step->kind), "path",
				   cordon_audit_text(step->path));

	if (step->source)
		json_object_set_new(object, "source", cordon_audit_text(step->source));
	if (step->kind == CORDON_STEP_LINK)
		json_object_set_new(object, "target", cordon_audit_text(step->text));
	if (step->kind == CORDON_STEP_BIND && step->text)
		json_object_set_new(object, "lower", cordon_audit_text(step->text));
	if (step->kind == CORDON_STEP_BIND)
		json_object_set_new(object, "read_only", json_boolean(step->flags & CORDON_STEP_READ_ONLY));
	if (step->flags & CORDON_STEP_PROTECT)
		json_object_set_new(object, "protected", json_true());
	if (step->flags & CORDON_STEP_IS_DEVICE)
		json_object_set_new(object, "device", json_true());
	if (step->flags & CORDON_STEP_SHARE)
		json_object_set_new(object, "share", json_true());
	if (step->right != CORDON_RIGHT_NONE)
		json_object_set_new(object, "landlock", json_string(cordon_right_name(step->right)));
	return object;
}

json_t *cordon_plan_protected_json(const struct cordon_plan *plan)
{
	json_t *array = json_array();

	for (size_t i = 0; i < plan->n_guards; i++) {
		const struct cordon_guard *guard = &plan->guards[i];

		if (guard->kind != CORDON_GUARD_PROTECTED)
			continue;
		json_array_append_new(array,
				      json_pack("{s:o, s:s, s:b, s:o, s:b}", "path", cordon_audit_text(guard->path),
						"state", guard_state_name(guard->state), "by_default", guard->by_default,
						"where", text_or_null(guard->where), "hard_links", guard->hard_links));
	}
	return array;
}

json_t *cordon_plan_limits_json(const struct cordon_plan *plan, const char *const *by)
{
	static const char *const names[] = {
		[CORDON_LIMIT_MEMORY] = "memory", [CORDON_LIMIT_PIDS] = "pids", [CORDON_LIMIT_CPUS] = "cpus"
	};
	const uint64_t values[] = { [CORDON_LIMIT_MEMORY] = plan->limits.memory_bytes,
				    [CORDON_LIMIT_PIDS] = plan->limits.pids,
				    [CORDON_LIMIT_CPUS] = plan->limits.cpu_millis };
	json_t *object = json_object();

	for (size_t i = 0; i < CORDON_LIMIT__MAX; i++) {
		json_t *limit;

		if (!values[i])
			continue;
		limit = json_pack("{s:I}",
				  i == CORDON_LIMIT_CPUS   ? "thousandths"
				  : i == CORDON_LIMIT_PIDS ? "processes"
							   : "bytes",
				  (json_int_t)values[i]);
		if (by)
			json_object_set_new(limit, "mechanism", by[i] ? json_string(by[i]) : json_null());
		json_object_set_new(object, names[i], limit);
	}
	for (cordon_recipe_id id = 0; id < CORDON_RECIPE__MAX; id++) {
		const struct cordon_recipe_row *row = &cordon_recipe_rows[id];
		uint64_t value = row->planned ? *(const uint64_t *)(const void *)((const char *)&plan->asked + row->spec)
					      : 0;

		if (value)
			json_object_set_new(object, row->key, json_pack("{s:I}", "value", (json_int_t)value));
	}
	json_object_set_new(object, "tmp", json_pack("{s:I}", "bytes", (json_int_t)plan->tmp_size));
	if (plan->timeout_ms)
		json_object_set_new(object, "timeout", json_pack("{s:I}", "ms", (json_int_t)plan->timeout_ms));
	return object;
}

/* The directories in which the hand makes entries. */
static json_t *held_json(const struct cordon_plan *plan)
{
	json_t *array = json_array();

	for (size_t i = 0; i < plan->n_held; i++)
		json_array_append_new(array, cordon_audit_text(plan->held[i].path));
	return array;
}

json_t *cordon_plan_differs_json(const struct cordon_plan *plan)
{
	json_t *array = json_array();

	for (size_t i = 0; i < CORDON_DIFFERENCE__MAX; i++)
		if (plan->layers.differs[i])
			json_array_append_new(array, json_string(cordon_difference_text((cordon_difference)i)));
	return array;
}

/* Where the changes of a run in a view go; null for a run without one. */
static json_t *view_json(const struct cordon_plan *plan)
{
	json_t *layers = json_array();
	char upper[CORDON_PATH_MAX] = "";

	for (size_t i = 0; i < plan->n_view_layers; i++)
		json_array_append_new(layers, cordon_audit_text(plan->view_layers[i]));
	if (!plan->view || cordon_path_join(plan->view, "upper", upper, sizeof(upper)) < 0) {
		json_decref(layers);
		return json_null();
	}
	return json_pack("{s:o, s:o}", "upper", cordon_audit_text(upper), "layers", layers);
}

json_t *cordon_plan_json(const struct cordon_plan *plan)
{
	json_t *steps = json_array();
	json_t *notes = json_array();

	for (size_t i = 0; i < plan->n_steps; i++)
		json_array_append_new(steps, step_json(&plan->steps[i]));
	for (size_t i = 0; i < plan->n_notes; i++)
		json_array_append_new(notes, cordon_audit_text(plan->notes[i]));
	return json_pack(
		"{s:i, s:s, s:o, s:o, s:o, s:o, s:s, s:s, s:o*, s:s, s:i, s:i, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}",
		"version", PLAN_VERSION, "session_id", plan->run_id, "root", cordon_audit_text(plan->root), "at",
		cordon_audit_text(plan->at), "view", view_json(plan), "cwd", cordon_audit_text(plan->cwd), "mode",
		plan->mode == CORDON_MODE_STRICT ? "strict" : "permissive", "net", cordon_plan_network(plan), "hosts",
		plan->net ? cordon_net_list_json(plan->net) : NULL, "hostname", plan->hostname, "uid", (int)plan->uid,
		"gid", (int)plan->gid, "argv", texts(plan->argv), "env", texts(plan->env), "limits",
		cordon_plan_limits_json(plan, NULL), "steps", steps, "protected", cordon_plan_protected_json(plan),
		"held", held_json(plan), "differs", cordon_plan_differs_json(plan), "notes", notes);
}

static int add_escaped(struct cordon_buf *text, const char *s)
{
	return cordon_text_escape(text, s, strlen(s));
}

static int step_text(const struct cordon_step *step, struct cordon_buf *text)
{
	const char *mark = step->kind == CORDON_STEP_LENS      ? "lens"
			   : step->kind == CORDON_STEP_LAYER   ? "layer"
			   : step->kind == CORDON_STEP_VIEW    ? "view"
			   : step->kind == CORDON_STEP_MASK    ? "denied"
			   : step->flags & CORDON_STEP_PROTECT ? "protected"
			   : step->kind == CORDON_STEP_PIN     ? "pinned"
			   : step->kind == CORDON_STEP_PRIVATE ? step->right == CORDON_RIGHT_WRITE ? "private" : "closed"
			   : step->flags & CORDON_STEP_IS_DEVICE				     ? "device"
			   : step->flags & CORDON_STEP_READ_ONLY || step->right == CORDON_RIGHT_READ ? "ro"
												     : "rw";
	int r;

	if (step->kind != CORDON_STEP_BIND && step->kind != CORDON_STEP_MASK && step->kind != CORDON_STEP_PIN &&
	    step->kind != CORDON_STEP_PRIVATE && step->kind != CORDON_STEP_RULE && step->kind != CORDON_STEP_LENS &&
	    step->kind != CORDON_STEP_LAYER && step->kind != CORDON_STEP_VIEW)
		return 0;
	if ((r = cordon_buf_addf(text, "  %-10s ", mark)) < 0 || (r = add_escaped(text, step->path)) < 0)
		return r;
	if (step->kind == CORDON_STEP_VIEW &&
	    ((r = cordon_buf_adds(text, "  changes go to ")) < 0 || (r = add_escaped(text, step->text)) < 0))
		return r;
	if (step->kind == CORDON_STEP_BIND && !cordon_streq(step->source, step->path) &&
	    ((r = cordon_buf_adds(text, "  from ")) < 0 || (r = add_escaped(text, step->source)) < 0))
		return r;
	return cordon_buf_addc(text, '\n');
}

static int plan_text(const struct cordon_plan *plan, struct cordon_buf *ret_text)
{
	int r;

	if ((r = cordon_buf_adds(ret_text, "workspace  ")) < 0 || (r = add_escaped(ret_text, plan->root)) < 0 ||
	    (r = cordon_buf_adds(ret_text, "\nseen at    ")) < 0 || (r = add_escaped(ret_text, plan->at)) < 0 ||
	    (r = cordon_buf_adds(ret_text, "\nstarts in  ")) < 0 || (r = add_escaped(ret_text, plan->cwd)) < 0 ||
	    (r = cordon_buf_addf(ret_text, "\nmode       %s\nnetwork    %s\n",
				 plan->mode == CORDON_MODE_STRICT ? "strict" : "permissive",
				 plan->net_none ? "none"
				 : plan->net	? "a list of hosts"
						: "the host's")) < 0)
		return r;
	for (size_t i = 0; plan->net && i < plan->net->n; i++)
		if ((r = cordon_buf_addf(ret_text, "           %s\n", plan->net->rules[i].text)) < 0)
			return r;
	for (size_t i = 0; plan->net && i < plan->net->n_inject; i++)
		if ((r = cordon_buf_addf(ret_text, "           %s:%u with the credential in %s\n",
					 plan->net->inject[i].host, plan->net->inject[i].port,
					 plan->net->inject[i].from_env)) < 0)
			return r;
	if ((r = cordon_buf_addf(ret_text, "as         %s (uid %u)\n\nmounts\n", plan->user, plan->uid)) < 0)
		return r;
	for (size_t i = 0; i < plan->n_steps; i++)
		if ((r = step_text(&plan->steps[i], ret_text)) < 0)
			return r;
	if ((r = cordon_buf_adds(ret_text, "\nnames that must not come to be\n")) < 0)
		return r;
	for (size_t i = 0; i < plan->n_guards; i++) {
		if (plan->guards[i].state != CORDON_GUARD_ABSENT)
			continue;
		if ((r = cordon_buf_adds(ret_text, "  ")) < 0 ||
		    (r = add_escaped(ret_text, plan->guards[i].inside)) < 0 || (r = cordon_buf_addc(ret_text, '\n')) < 0)
			return r;
	}
	if ((r = cordon_buf_adds(ret_text, "\nheld directories, in which the hand makes entries\n")) < 0)
		return r;
	for (size_t i = 0; i < plan->n_held; i++)
		if ((r = cordon_buf_adds(ret_text, "  ")) < 0 || (r = add_escaped(ret_text, plan->held[i].path)) < 0 ||
		    (r = cordon_buf_addc(ret_text, '\n')) < 0)
			return r;
	if ((r = cordon_buf_adds(ret_text, "\nenvironment\n")) < 0)
		return r;
	for (size_t i = 0; i < plan->n_env; i++)
		if ((r = cordon_buf_adds(ret_text, "  ")) < 0 || (r = add_escaped(ret_text, plan->env[i])) < 0 ||
		    (r = cordon_buf_addc(ret_text, '\n')) < 0)
			return r;
	for (size_t i = 0; i < CORDON_DIFFERENCE__MAX; i++)
		if (plan->layers.differs[i] && (r = cordon_buf_addf(ret_text, "\non this kernel: %s\n",
								    cordon_difference_text((cordon_difference)i))) < 0)
			return r;
	for (size_t i = 0; i < plan->n_notes; i++)
		if ((r = cordon_buf_adds(ret_text, "\nnote: ")) < 0 ||
		    (r = add_escaped(ret_text, plan->notes[i])) < 0 || (r = cordon_buf_addc(ret_text, '\n')) < 0)
			return r;
	return 0;
}

char *cordon_plan_to_text(const struct cordon_plan *plan)
{
	autobuf struct cordon_buf text = CORDON_BUF(TEXT_MAX);

	return plan_text(plan, &text) < 0 ? NULL : cordon_buf_steal(&text);
}

char *cordon_plan_to_json(const struct cordon_plan *plan)
{
	json_auto_t *object = cordon_plan_json(plan);

	return object ? json_dumps(object, JSON_COMPACT) : NULL;
}
