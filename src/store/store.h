/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Projects, workspaces and sessions on disk (design.md, "State on disk").
 *
 *     state/projects/<uuid>/project.json          the project's record; authority
 *     state/projects/<uuid>/workspaces/<id>.json  one per workspace
 *     state/projects/<uuid>/external/<hash>       which workspace an external id means
 *     state/projects/<uuid>/active/<id>.<uuid>    sessions that may be running, by workspace
 *     state/projects/<uuid>/lock, locks/<id>      see internal.h for their order
 *     state/sessions/<uuid>/                      record, logs and control socket of a session
 *     state/staging/<name>/                       changes under way; stage.c
 *     projects/<uuid>/                            what agents may be shown: metadata.json (a published copy),
 *                                                 AGENTS.md, .factory/, sessions/ (published), workspaces/<id>/
 *
 * INVARIANT: everything below projects/<uuid> may have been changed by an agent. It is opened by component, no link
 * is followed, and nothing in it is ever believed. Only records below state/ have authority.
 *
 * Records are JSON objects, one file each, with a `schema` number; readers see whole ones or none. The objects handed
 * out here are new references without the fields that are only ours.
 */
#ifndef CORDON_STORE_STORE_H
#define CORDON_STORE_STORE_H

#include <jansson.h>

#include "base/home.h"

#define CORDON_ID_SIZE 65 /* a workspace id has up to 64 characters, a UUID 36 */
#define CORDON_NAME_MAX 256
#define CORDON_DESCRIPTION_MAX 16384
#define CORDON_EXTERNAL_MAX 1024
#define CORDON_LIST_MAX 100000

struct cordon_store_order;

struct cordon_store {
	struct cordon_home home;
	int projects_fd;		  /* state/projects */
	int sessions_fd;		  /* state/sessions */
	int staging_fd;			  /* state/staging */
	int trees_fd;			  /* projects */
	struct cordon_store_order *order; /* of the last list, so that its next page is not sorted out again; list.c */
};

#define CORDON_STORE_NONE                                                                                              \
	{                                                                                                              \
		.home = CORDON_HOME_NONE, .projects_fd = -1, .sessions_fd = -1, .staging_fd = -1, .trees_fd = -1       \
	}
#define autostore CORDON_CLEANUP(cordon_store_done)

/* Makes what is missing, and finishes or takes back what a killed process left half made. */
int cordon_store_open(struct cordon_store *ret_store, struct cordon_error *err);
void cordon_store_done(struct cordon_store *store);
/* The repair that every open does, with the number of changes it finished or took back. */
int cordon_store_repair(const struct cordon_store *store, size_t *ret_repaired, struct cordon_error *err);

/*
 * Ids are judged before any path is made of them. A project or session id is a UUID, a workspace id 1 to 64 of
 * a-z, 0-9 and '-'; upper case is folded. kind usage otherwise; `what` names it: "project_id".
 */
int cordon_id_uuid(const char *what, const char *text, char ret_id[static CORDON_ID_SIZE], struct cordon_error *err);
int cordon_id_workspace(const char *what, const char *text, char ret_id[static CORDON_ID_SIZE],
			struct cordon_error *err);

/*
 * Creates a project with its default workspace. `settings` is an object with the keys of the interface (name,
 * description, workspace_isolation, protected_paths, remote_url, init_git, agent_command, limits, network, env,
 * env_pass, model, ...); all of them are judged, an unknown one is an error. `template_dir` may be NULL: a host
 * directory whose AGENTS.md and .factory are copied.
 */
int cordon_project_create(const struct cordon_store *store, const json_t *settings, const char *template_dir,
			  json_t **ret_project, struct cordon_error *err);
int cordon_project_get(const struct cordon_store *store, const char *id, json_t **ret_project, struct cordon_error *err);
/*
 * Changes settings for the sessions that start from now on; null resets one to its default. `ret_running` (may be
 * NULL) lists the ids of running sessions, which keep what they started with.
 */
int cordon_project_update(const struct cordon_store *store, const char *id, const json_t *changes, json_t **ret_project,
			  json_t **ret_running, struct cordon_error *err);
/* Refused (conflict) while a session runs. *ret_deleted is false when there was none. */
int cordon_project_delete(const struct cordon_store *store, const char *id, bool *ret_deleted, struct cordon_error *err);

struct cordon_list_query {
	const char *name_contains; /* projects: ignoring case; NULL for all */
	size_t limit;		   /* 0: CORDON_LIST_MAX */
	size_t offset;
};

/* Arrays of records, oldest first; *ret_total (may be NULL) is how many there are beyond the limit too. */
int cordon_project_list(const struct cordon_store *store, const struct cordon_list_query *query, json_t **ret_projects,
			size_t *ret_total, struct cordon_error *err);
int cordon_workspace_list(const struct cordon_store *store, const char *project, const struct cordon_list_query *query,
			  json_t **ret_workspaces, size_t *ret_total, struct cordon_error *err);

/* What a caller says about a workspace; each may be NULL. */
struct cordon_workspace_request {
	const char *id;
	const char *external_id;
	const char *source;
};

/*
 * Creates a workspace, or returns the one that exists and touches nothing: by id, else by (external_id, source),
 * else a new one. Copies AGENTS.md (isolated projects) and .factory of the project, never over anything; what
 * can't be copied fails the creation.
 */
int cordon_workspace_create(const struct cordon_store *store, const char *project,
			    const struct cordon_workspace_request *request, json_t **ret_workspace, bool *ret_created,
			    struct cordon_error *err);
/* The table of the interface: which workspace a session means, and whether it may be made. */
int cordon_workspace_resolve(const struct cordon_store *store, const char *project,
			     const struct cordon_workspace_request *request, bool create, json_t **ret_workspace,
			     bool *ret_created, struct cordon_error *err);
int cordon_workspace_get(const struct cordon_store *store, const char *project, const char *id, json_t **ret_workspace,
			 struct cordon_error *err);
/* Refused for the default workspace and while a session runs in it; a missing one is fine. */
int cordon_workspace_delete(const struct cordon_store *store, const char *project, const char *id, bool *ret_deleted,
			    struct cordon_error *err);
/* Brings the project's AGENTS.md (isolated projects) and .factory into an existing workspace, replacing its files
 * of these names. *ret_copied is an array of what was there to copy. Refused while a session runs in it. */
int cordon_workspace_sync(const struct cordon_store *store, const char *project, const char *id, json_t **ret_copied,
			  struct cordon_error *err);

/*
 * What a session of the project would be held to in this workspace: the workspace is the root when the project is
 * isolated, else the whole project. The caller frees it.
 */
struct cordon_policy;
int cordon_workspace_policy(const struct cordon_store *store, const char *project, const char *id,
			    struct cordon_policy **ret_policy, bool *ret_isolated, struct cordon_error *err);

/* The host directory of a workspace, for people: "<home>/projects/<project>/workspaces/<id>". */
int cordon_workspace_path(const struct cordon_store *store, const char *project, const char *id,
			  char ret_path[static CORDON_PATH_MAX], struct cordon_error *err);

#endif
