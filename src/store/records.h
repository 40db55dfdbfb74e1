/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the store keeps about projects, workspaces and sessions. Each record is a struct with one reader and one writer
 * (fields.h); no other code reads a value of the JSON by its key. Lists and objects that cordon only passes on stay
 * jansson values. A record owns everything that it points to: cordon_<kind>_record_done() frees it. A record of zeros
 * is empty.
 */
#ifndef CORDON_STORE_RECORDS_H
#define CORDON_STORE_RECORDS_H

#include <jansson.h>

#include "base/digest.h"
#include "base/error.h"
#include "base/time.h"
#include "config/recipe_table.h"
#include "config/values.h"
#include "policy/net.h"
#include "store/protected.h"

#define CORDON_ID_SIZE 65 /* a workspace id has up to 64 characters, a UUID 36 */

#define CORDON_HOME_PRIVATE "private"	  /* empty at every start, and gone at the end */
#define CORDON_HOME_WORKSPACE "workspace" /* each workspace has one, which stays */

struct cordon_settings_limits {
	int64_t max_sessions, max_recursion_depth, max_agents_per_session;
	uint64_t run[CORDON_RECIPE__MAX]; /* those of each run: cordon_settings_value() */
	double max_cost_usd; /* 0: none is given. The agent is told; cordon can't know what a call costs. */
	json_t *other;
};

/* The settings that bind a session from its start to its end: those that its project had when the session started. */
struct cordon_settings {
	bool workspace_isolation;
	json_t *protected_paths; /* strings */
	bool default_protection;
	json_t *net;	 /* "host", "none", "profile", a list of hosts, or an object (config/net_setting.h) */
	json_t *profile; /* strings: names of profiles */
	json_t *shares;	 /* strings: "DIR[:PATH][:ro]" */
	/* "private", "workspace" (one for each workspace, which stays), or a directory for all workspaces */
	char home[CORDON_PATH_MAX];
	json_t *env;			  /* object of strings */
	json_t *env_pass;		  /* strings */
	uint64_t run[CORDON_RECIPE__MAX]; /* numbers, words and flags of each run: cordon_settings_value() */
	json_t *agent;			  /* object that the agent gets; cordon does not enforce it */
	struct cordon_settings_limits limits;
};

/* A setting of a run by its row in config/recipe_table.h, in the unit of projects; 0 when nobody set it. */
static inline uint64_t cordon_settings_value(const struct cordon_settings *settings, cordon_recipe_id id)
{
	return cordon_recipe_limit(cordon_recipe_rows[id].project) ? settings->limits.run[id] : settings->run[id];
}

struct cordon_project_record {
	char id[CORDON_ID_SIZE];
	char created_at[CORDON_TIME_SIZE], updated_at[CORDON_TIME_SIZE];
	char default_workspace_id[CORDON_ID_SIZE];
	char *name, *description, *remote_url;
	json_t *agent_command; /* strings */
	struct cordon_settings settings;
	json_t *other;
};

struct cordon_workspace_record {
	char id[CORDON_ID_SIZE];
	char project_id[CORDON_ID_SIZE];
	char *external_id, *source;
	char created_at[CORDON_TIME_SIZE], last_session_at[CORDON_TIME_SIZE];
	char last_session_id[CORDON_ID_SIZE];
	json_t *other;
};

/* The status of a session has the three values of the interface; its state has those of a run, and more. */
typedef enum cordon_session_status {
	CORDON_SESSION_ACTIVE,
	CORDON_SESSION_COMPLETED,
	CORDON_SESSION_FAILED,
	CORDON_SESSION__MAX
} cordon_session_status;

typedef enum cordon_session_state {
	CORDON_SESSION_STARTING,
	CORDON_SESSION_RUNNING,
	CORDON_SESSION_RUN_COMPLETED,
	CORDON_SESSION_RUN_FAILED,
	CORDON_SESSION_RUN_TIMEOUT,
	CORDON_SESSION_RUN_CANCELLED,
	CORDON_SESSION_REFUSED, /* its program never ran */
	CORDON_SESSION_LOST,	/* its process was killed, or the machine went down */
	CORDON_SESSION_STATE__MAX
} cordon_session_state;

struct cordon_session_record {
	char id[CORDON_ID_SIZE];
	char project_id[CORDON_ID_SIZE];
	char workspace_id[CORDON_ID_SIZE];
	cordon_session_status status;
	cordon_session_state state;
	json_t *turns; /* [{at, message}] */
	int64_t depth;
	json_t *child_sessions; /* ids */
	char created_at[CORDON_TIME_SIZE], updated_at[CORDON_TIME_SIZE];
	struct cordon_settings settings;
	json_t *command;  /* strings */
	bool own_command; /* whoever started the session gave it; else it is the project's */
	bool terminal;
	json_t *context; /* object */
	int64_t timeout_ms;
	bool fail_on_violation;
	json_t *ancestor_workspaces; /* ids; that of its parent comes first */
	json_t *allowances; /* what a person allowed beside the settings, for its next starts (allowance.h); or NULL */
	char parent_session_id[CORDON_ID_SIZE];
	/* The following belong to its present run, or to its last one. */
	json_t *notes; /* strings */
	char run_id[CORDON_ID_SIZE];
	char view_id[CORDON_ID_SIZE]; /* "" when it works in no view, or changed nothing */
	json_t *git_result;	      /* object, as `git` in the result of a run; or NULL */
	int64_t pid;
	char started_at[CORDON_TIME_SIZE];
	json_t *enforcement;				   /* object, as in the result of a run */
	json_t *protected;				   /* array, likewise, in its short form (store/protected.h) */
	char protected_table[CORDON_PROTECTED_TABLE_SIZE]; /* which the short form is made with; "" for an older record */
	bool ended;					   /* the next five fields are known */
	int64_t exit_code, signal;			   /* -1: none */
	char ended_at[CORDON_TIME_SIZE];
	int64_t duration_ms, violations;
	bool failed_on_violation;
	json_t *error; /* {kind, message, ...} */
	json_t *other;
};

#define autoprojectrecord CORDON_CLEANUP(cordon_project_record_done)
#define autoworkspacerecord CORDON_CLEANUP(cordon_workspace_record_done)
#define autosessionrecord CORDON_CLEANUP(cordon_session_record_done)

void cordon_project_record_done(struct cordon_project_record *record);
void cordon_workspace_record_done(struct cordon_workspace_record *record);
void cordon_session_record_done(struct cordon_session_record *record);

/* Return what others see of a record, a new reference; NULL when there is no memory. People see all of a project. */
/* The digest of all that a record says but when it was changed; -ENOMEM. */
int cordon_project_digest(const struct cordon_project_record *record, char ret_digest[static CORDON_DIGEST_SIZE]);
json_t *cordon_project_json(const struct cordon_project_record *record);
json_t *cordon_project_public_json(const struct cordon_project_record *record); /* as it is published */
json_t *cordon_workspace_json(const struct cordon_workspace_record *record);
json_t *cordon_session_json(const struct cordon_session_record *record);
json_t *cordon_session_brief_json(const struct cordon_session_record *record); /* without `protected` */

const char *cordon_session_status_name(cordon_session_status status);
const char *cordon_session_state_name(cordon_session_state state);
/* Returns CORDON_SESSION__MAX when no status has this name. */
cordon_session_status cordon_session_status_parse(const char *name);

/* The hosts that the settings allow, with those of their profiles; needs cordon_net_list_done(). */
int cordon_settings_net(const struct cordon_settings *settings, struct cordon_net_list *ret_list,
			struct cordon_error *err);

/* Replaces the network of the settings by another one, which must not reach further; -EPERM (kind policy_denied). */
int cordon_settings_narrow_net(struct cordon_settings *settings, json_t *net, struct cordon_error *err);

/* Returns 0, or -ENOMEM, and then `to` is unchanged. */
int cordon_settings_copy(struct cordon_settings *to, const struct cordon_settings *from);

#endif
