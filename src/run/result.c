/* SPDX-License-Identifier: Apache-2.0 */
/* Turns the result of a run into JSON, and frees it. */
#include "run/result.h"
#include "audit/audit.h"
#include "base/exit.h"
#include "base/time.h"
#include "protect/repositories.h"
#include "run/metrics.h"
#include "sandbox/plan/print.h"

#define RESULT_VERSION 1

static json_t *time_json(const struct timespec *ts)
{
	char text[CORDON_TIME_SIZE];

	cordon_time_format((int64_t)ts->tv_sec * 1000 + ts->tv_nsec / 1000000, text);
	return json_string(text);
}

/* The layers that a run may have. A run is refused when a layer can't be applied, so a run that started has all of
 * them, except those of which a best-effort run knew before that the machine lacks them. */
enum { LAYERS = 9 };

struct layer {
	const char *name;
	bool on;
	bool held; /* it is on, or others do what it would do */
};

static void find_layers(cordon_tier tier, const struct cordon_layers *chosen, struct layer ret[static LAYERS])
{
	bool full = tier == CORDON_TIER_FULL;
	const struct layer layers[LAYERS] = {
		{ "namespaces", full, full },
		{ "mounts", full, full },
		{ "protected_paths", full, full },
		/* Modes, owners and times of files outside the scope: Landlock judges none of them. */
		{ "file_metadata", full, full },
		{ "landlock", chosen->landlock_abi > 0, chosen->landlock_abi > 0 },
		{ "landlock_scopes", chosen->scopes, chosen->scopes_held },
		{ "seccomp", true, true }, /* no run starts without this and the next two */
		{ "no_capabilities", true, true },
		{ "no_new_privs", true, true },
	};

	memcpy(ret, layers, sizeof(layers));
}

json_t *cordon_missing_json(const struct cordon_plan *plan)
{
	json_t *missing = json_array();
	struct layer layers[LAYERS];

	find_layers(plan->tier, &plan->layers, layers);
	for (size_t i = 0; i < LAYERS; i++)
		if (!layers[i].held)
			json_array_append_new(missing, json_string(layers[i].name));
	return missing;
}

json_t *cordon_result_enforcement(const struct cordon_result *result)
{
	static const char *const watching[] = {
		[CORDON_WATCHING_NOTHING] = "off",
		[CORDON_WATCHING_CHANGES] = "changes",
		[CORDON_WATCHING_ALL] = "all accesses",
		[CORDON_WATCHING_TRIPWIRES] = "changes and tripwires",
	};
	bool launched = result->launched, full = launched && result->plan->tier == CORDON_TIER_FULL;
	json_t *missing = launched ? cordon_missing_json(result->plan) : json_array();
	json_t *differs = launched ? cordon_plan_differs_json(result->plan) : json_array();
	const struct cordon_layers none = { 0 };
	json_t *on = json_object();
	struct layer layers[LAYERS];

	find_layers(full ? CORDON_TIER_FULL : CORDON_TIER_LANDLOCK, launched ? &result->plan->layers : &none, layers);
	for (size_t i = 0; i < LAYERS; i++)
		json_object_set_new(on, layers[i].name, json_boolean(launched && layers[i].on));
	json_object_set_new(on, "lens", json_boolean(launched && result->plan->lens));
	json_object_set_new(on, "watch", json_string(watching[launched ? result->watching : CORDON_WATCHING_NOTHING]));
	return json_pack("{s:s, s:o, s:o, s:o}", "tier",
			 !launched ? "none"
			 : full	   ? "full"
				   : "landlock",
			 "layers", on, "missing", missing, "differs", differs);
}

json_t *cordon_result_repositories(const struct cordon_result *result)
{
	const struct cordon_repositories *found = result->repositories;
	json_t *list = found && found->n ? json_array() : NULL;

	for (size_t i = 0; list && i < found->n && i < CORDON_REPOSITORIES_SHOWN_MAX; i++) {
		const struct cordon_repository *item = &found->items[i];

		json_array_append_new(list, json_pack("{s:o, s:o*, s:b}", "path", cordon_audit_text(item->path),
						      "executes", item->names ? cordon_audit_text(item->names) : NULL,
						      "gitlink", item->gitlink));
	}
	return list;
}

/* Adds what is known only of a run that has a plan. */
static void add_plan(json_t *object, const struct cordon_result *result)
{
	const char *const by[] = {
		[CORDON_LIMIT_MEMORY] = result->memory_by, [CORDON_LIMIT_PIDS] = result->pids_by, [CORDON_LIMIT_CPUS] = result->cpus_by
	};

	json_object_set_new(object, "limits", cordon_plan_limits_json(result->plan, result->launched ? by : NULL));
	json_object_set_new(object, "limits_hit",
			    json_pack("{s:b, s:b, s:b, s:b, s:b}", "memory", result->hit_memory, "outer_memory",
				      result->hit_outer_memory, "pids", result->hit_pids, "timeout",
				      result->state == CORDON_STATE_TIMEOUT, "tmp", result->hit_tmp));
	if (result->limit)
		json_object_set_new(object, "limit", json_string(result->limit));
	if (result->offline)
		json_object_set_new(object, "offline", json_true());
	json_object_set_new(object, "protected", cordon_plan_protected_json(result->plan));
}

json_t *cordon_result_json(const struct cordon_result *result)
{
	const struct rusage *usage = &result->usage;
	json_t *object = json_pack("{s:i, s:s, s:s, s:o, s:o, s:o, s:o, s:I, s:i, s:{s:I, s:I, s:I}, s:{s:i, s:i}, s:o}",
				   "version", RESULT_VERSION, "session_id", result->run_id, "state",
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
				   cordon_result_enforcement(result));

	json_t *repositories = cordon_result_repositories(result);

	if (object && result->plan)
		add_plan(object, result);
	if (object && *result->view_id)
		json_object_set_new(object, "view", json_string(result->view_id));
	if (object && result->git)
		json_object_set_new(object, "git", json_loads(result->git, 0, NULL));
	if (object && result->discarded)
		json_object_set_new(object, "discarded_files", json_integer(result->discarded));
	if (object && result->failed_on_violation)
		json_object_set_new(object, "failed_on_violation", json_true());
	if (object && result->error.code)
		json_object_set_new(object, "error",
				    json_pack("{s:s, s:s, s:s, s:s}", "kind", cordon_kind_name(result->error.kind),
					      "message", result->error.message, "where", result->error.where, "hint",
					      result->error.hint));
	if (object && result->metrics)
		json_object_set_new(object, "metrics", cordon_metrics_json(result));
	if (object && repositories)
		json_object_set(object, "repositories", repositories);
	json_decref(repositories);
	return object;
}

char *cordon_result_to_json(const struct cordon_result *result)
{
	json_auto_t *object = cordon_result_json(result);

	return object ? json_dumps(object, JSON_COMPACT | JSON_REAL_PRECISION(12)) : NULL;
}

void cordon_result_refuse(struct cordon_result *result, const struct cordon_error *why)
{
	result->state = CORDON_STATE_REFUSED;
	result->exit_code = -1;
	result->own_exit = cordon_exit_of_error(why, CORDON_EXIT_REFUSED);
	result->error = *why;
	clock_gettime(CLOCK_REALTIME, &result->started);
	result->ended = result->started;
}

void cordon_result_done(struct cordon_result *result)
{
	result->metrics = cordon_metrics_free(result->metrics);
	if (result->repositories)
		cordon_repositories_done(result->repositories);
	free(result->repositories);
	result->repositories = NULL;
	free(result->git);
	result->git = NULL;
	result->plan = cordon_plan_free(result->plan);
}

const char *cordon_state_name(cordon_run_state state)
{
	static const char *const names[] = {
		[CORDON_STATE_COMPLETED] = "completed", [CORDON_STATE_FAILED] = "failed",
		[CORDON_STATE_TIMEOUT] = "timeout",	[CORDON_STATE_CANCELLED] = "cancelled",
		[CORDON_STATE_REFUSED] = "refused",
	};

	return (unsigned int)state < CORDON_STATE__MAX ? names[state] : "refused";
}
