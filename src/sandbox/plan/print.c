/* SPDX-License-Identifier: Apache-2.0 */
/* A plan and a result as JSON, and a plan as text. */
#include <stdio.h>

#include "audit/audit.h"
#include "base/text.h"
#include "base/time.h"
#include "sandbox/landlock.h"
#include "sandbox/report.h"

#define PLAN_VERSION 1
#define RESULT_VERSION 1

const char *cordon_step_name(cordon_step_kind kind)
{
	static const char *const names[] = {
		[CORDON_STEP_DIR] = "directory", [CORDON_STEP_FILE] = "file", [CORDON_STEP_LINK] = "link",
		[CORDON_STEP_FREEZE] = "freeze", [CORDON_STEP_BIND] = "bind", [CORDON_STEP_PRIVATE] = "private",
		[CORDON_STEP_MASK] = "mask",	 [CORDON_STEP_PIN] = "pin",   [CORDON_STEP_PROC] = "proc",
		[CORDON_STEP_DEVPTS] = "devpts", [CORDON_STEP_RULE] = "rule", [CORDON_STEP_LENS] = "lens",
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
	if (step->kind == CORDON_STEP_BIND)
		json_object_set_new(object, "read_only", json_boolean(step->flags & CORDON_STEP_READ_ONLY));
	if (step->flags & CORDON_STEP_PROTECT)
		json_object_set_new(object, "protected", json_true());
	if (step->flags & CORDON_STEP_IS_DEVICE)
		json_object_set_new(object, "device", json_true());
	if (step->right != CORDON_RIGHT_NONE)
		json_object_set_new(object, "landlock", json_string(cordon_right_name(step->right)));
	return object;
}

static json_t *guards_json(const struct cordon_plan *plan)
{
	json_t *array = json_array();

	for (size_t i = 0; i < plan->n_guards; i++) {
		const struct cordon_guard *guard = &plan->guards[i];

		json_array_append_new(array,
				      json_pack("{s:o, s:s, s:b, s:o, s:b}", "path", cordon_audit_text(guard->path),
						"state", guard_state_name(guard->state), "by_default", guard->by_default,
						"where", text_or_null(guard->where), "hard_links", guard->hard_links));
	}
	return array;
}

static json_t *limits_json(const struct cordon_plan *plan, const struct cordon_limits_state *state)
{
	static const char *const names[] = {
		[CORDON_LIMIT_MEMORY] = "memory", [CORDON_LIMIT_PIDS] = "pids", [CORDON_LIMIT_CPUS] = "cpus"
	};
	const uint64_t values[] = { [CORDON_LIMIT_MEMORY] = plan->limits.memory_bytes,
				    [CORDON_LIMIT_PIDS] = plan->limits.pids,
				    [CORDON_LIMIT_CPUS] = plan->limits.cpu_millis };
	json_t *object = json_object();

	for (size_t i = 0; i < CORDON_LIMIT__MAX; i++) {
		const char *mechanism = state ? cordon_limits_mechanism(state, (enum cordon_limit)i) : NULL;
		json_t *limit;

		if (!values[i])
			continue;
		limit = json_pack("{s:I}",
				  i == CORDON_LIMIT_CPUS   ? "thousandths"
				  : i == CORDON_LIMIT_PIDS ? "processes"
							   : "bytes",
				  (json_int_t)values[i]);
		if (state)
			json_object_set_new(limit, "mechanism", mechanism ? json_string(mechanism) : json_null());
		json_object_set_new(object, names[i], limit);
	}
	json_object_set_new(object, "tmp", json_pack("{s:I}", "bytes", (json_int_t)plan->tmp_size));
	if (plan->timeout_ms)
		json_object_set_new(object, "timeout", json_pack("{s:I}", "ms", (json_int_t)plan->timeout_ms));
	return object;
}

json_t *cordon_plan_json(const struct cordon_plan *plan)
{
	json_t *steps = json_array();
	json_t *notes = json_array();

	for (size_t i = 0; i < plan->n_steps; i++)
		json_array_append_new(steps, step_json(&plan->steps[i]));
	for (size_t i = 0; i < plan->n_notes; i++)
		json_array_append_new(notes, cordon_audit_text(plan->notes[i]));
	return json_pack("{s:i, s:s, s:o, s:o, s:o, s:s, s:s, s:s, s:i, s:i, s:o, s:o, s:o, s:o, s:o, s:o}", "version",
			 PLAN_VERSION, "session_id", plan->run_id, "root", cordon_audit_text(plan->root), "at",
			 cordon_audit_text(plan->at), "cwd", cordon_audit_text(plan->cwd), "mode",
			 plan->mode == CORDON_MODE_STRICT ? "strict" : "permissive", "net",
			 plan->net_none ? "none" : "host", "hostname", plan->hostname, "uid", (int)plan->uid, "gid",
			 (int)plan->gid, "argv", texts(plan->argv), "env", texts(plan->env), "limits",
			 limits_json(plan, NULL), "steps", steps, "protected", guards_json(plan), "notes", notes);
}

static int add_escaped(struct cordon_buf *text, const char *s)
{
	return cordon_text_escape(text, s, strlen(s));
}

static int step_text(const struct cordon_step *step, struct cordon_buf *text)
{
	const char *mark = step->kind == CORDON_STEP_LENS      ? "lens"
			   : step->kind == CORDON_STEP_MASK    ? "denied"
			   : step->flags & CORDON_STEP_PROTECT ? "protected"
			   : step->kind == CORDON_STEP_PIN     ? "pinned"
			   : step->kind == CORDON_STEP_PRIVATE ? step->right == CORDON_RIGHT_WRITE ? "private" : "closed"
			   : step->flags & CORDON_STEP_IS_DEVICE				     ? "device"
			   : step->flags & CORDON_STEP_READ_ONLY || step->right == CORDON_RIGHT_READ ? "ro"
												     : "rw";
	int r;

	if (step->kind != CORDON_STEP_BIND && step->kind != CORDON_STEP_MASK && step->kind != CORDON_STEP_PIN &&
	    step->kind != CORDON_STEP_PRIVATE && step->kind != CORDON_STEP_RULE && step->kind != CORDON_STEP_LENS)
		return 0;
	if ((r = cordon_buf_addf(text, "  %-10s ", mark)) < 0 || (r = add_escaped(text, step->path)) < 0)
		return r;
	if (step->kind == CORDON_STEP_BIND && !cordon_streq(step->source, step->path) &&
	    ((r = cordon_buf_adds(text, "  from ")) < 0 || (r = add_escaped(text, step->source)) < 0))
		return r;
	return cordon_buf_addc(text, '\n');
}

int cordon_plan_text(const struct cordon_plan *plan, struct cordon_buf *ret_text)
{
	int r;

	if ((r = cordon_buf_adds(ret_text, "workspace  ")) < 0 || (r = add_escaped(ret_text, plan->root)) < 0 ||
	    (r = cordon_buf_adds(ret_text, "\nseen at    ")) < 0 || (r = add_escaped(ret_text, plan->at)) < 0 ||
	    (r = cordon_buf_adds(ret_text, "\nstarts in  ")) < 0 || (r = add_escaped(ret_text, plan->cwd)) < 0 ||
	    (r = cordon_buf_addf(ret_text, "\nmode       %s\nnetwork    %s\nas         %s (uid %u)\n\nmounts\n",
				 plan->mode == CORDON_MODE_STRICT ? "strict" : "permissive",
				 plan->net_none ? "none" : "the host's", plan->user, plan->uid)) < 0)
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
	if ((r = cordon_buf_adds(ret_text, "\nenvironment\n")) < 0)
		return r;
	for (size_t i = 0; i < plan->n_env; i++)
		if ((r = cordon_buf_adds(ret_text, "  ")) < 0 || (r = add_escaped(ret_text, plan->env[i])) < 0 ||
		    (r = cordon_buf_addc(ret_text, '\n')) < 0)
			return r;
	for (size_t i = 0; i < plan->n_notes; i++)
		if ((r = cordon_buf_adds(ret_text, "\nnote: ")) < 0 ||
		    (r = add_escaped(ret_text, plan->notes[i])) < 0 || (r = cordon_buf_addc(ret_text, '\n')) < 0)
			return r;
	return 0;
}

static json_t *time_json(const struct timespec *ts)
{
	char text[CORDON_TIME_SIZE];

	cordon_time_format((int64_t)ts->tv_sec * 1000 + ts->tv_nsec / 1000000, text);
	return json_string(text);
}

/* Which layers hold. Each is fatal when it can't be put on, so a run that started has them all; what a best-effort
 * run lacks is known before it starts. */
enum { LAYERS = 8 };

struct layer {
	const char *name;
	bool on;
};

static void find_layers(cordon_tier tier, unsigned int landlock_abi, struct layer ret[static LAYERS])
{
	bool full = tier == CORDON_TIER_FULL;
	const struct layer layers[LAYERS] = {
		{ "namespaces", full },
		{ "mounts", full },
		{ "protected_paths", full },
		{ "landlock", landlock_abi > 0 },
		{ "landlock_scopes", landlock_abi >= CORDON_LANDLOCK_ABI_REQUIRED },
		{ "seccomp", true }, /* without these nothing is started */
		{ "no_capabilities", true },
		{ "no_new_privs", true },
	};

	memcpy(ret, layers, sizeof(layers));
}

json_t *cordon_missing_json(cordon_tier tier, unsigned int landlock_abi)
{
	json_t *missing = json_array();
	struct layer layers[LAYERS];

	find_layers(tier, landlock_abi, layers);
	for (size_t i = 0; i < LAYERS; i++)
		if (!layers[i].on)
			json_array_append_new(missing, json_string(layers[i].name));
	return missing;
}

static json_t *enforcement_json(const struct cordon_child *child)
{
	bool full = child && child->plan->tier == CORDON_TIER_FULL;
	json_t *missing = child ? cordon_missing_json(child->plan->tier, child->landlock_abi) : json_array();
	json_t *on = json_object();
	struct layer layers[LAYERS];

	find_layers(full ? CORDON_TIER_FULL : CORDON_TIER_LANDLOCK, child ? child->landlock_abi : 0, layers);
	for (size_t i = 0; i < LAYERS; i++)
		json_object_set_new(on, layers[i].name, json_boolean(child && layers[i].on));
	json_object_set_new(on, "lens", json_boolean(child && child->plan->lens));
	json_object_set_new(on, "watch",
			    json_string(!child || child->variant == CORDON_SECCOMP_BASE ? "off"
					: child->variant == CORDON_SECCOMP_CREATE	? "guarded names"
											: "all accesses"));
	return json_pack("{s:s, s:o, s:o}", "tier",
			 !child ? "none"
			 : full ? "full"
				: "landlock",
			 "layers", on, "missing", missing);
}

json_t *cordon_result_json(const char *run_id, const struct cordon_plan *plan, const struct cordon_child *child,
			   const struct cordon_result *result)
{
	const struct rusage *usage = &result->usage;
	json_t *object = json_pack("{s:i, s:s, s:s, s:o, s:o, s:o, s:o, s:I, s:i, s:{s:I, s:I, s:I}, s:{s:i, s:i}, s:o}",
				   "version", RESULT_VERSION, "session_id", run_id, "state",
				   cordon_state_name(result->state), "exit_code",
				   result->exit_code >= 0 ? json_integer(result->exit_code) : json_null(), "signal",
				   result->signal ? json_integer(result->signal) : json_null(), "started_at",
				   time_json(&result->started), "ended_at", time_json(&result->ended), "duration_ms",
				   (json_int_t)result->duration_ms, "violations", (int)result->violations, "resources",
				   "user_ms", (json_int_t)usage->ru_utime.tv_sec * 1000 + usage->ru_utime.tv_usec / 1000,
				   "system_ms",
				   (json_int_t)usage->ru_stime.tv_sec * 1000 + usage->ru_stime.tv_usec / 1000,
				   "max_rss_bytes", (json_int_t)usage->ru_maxrss * 1024, "protected_events", "lost",
				   (int)result->protected_lost, "made", (int)result->protected_made, "enforcement",
				   enforcement_json(child));

	if (object && plan) {
		json_object_set_new(object, "limits", limits_json(plan, child ? &child->limits : NULL));
		json_object_set_new(object, "limits_hit",
				    json_pack("{s:b, s:b, s:b}", "memory", result->hits.memory, "pids",
					      result->hits.pids, "timeout", result->state == CORDON_STATE_TIMEOUT));
		json_object_set_new(object, "protected", guards_json(plan));
	}
	if (object && result->error.code)
		json_object_set_new(object, "error",
				    json_pack("{s:s, s:s, s:s, s:s}", "kind", cordon_kind_name(result->error.kind),
					      "message", result->error.message, "where", result->error.where, "hint",
					      result->error.hint));
	return object;
}
