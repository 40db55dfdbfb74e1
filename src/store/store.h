/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Projects, workspaces and sessions on disk, below the home directory of cordon (base/home.h).
 *
 *     state/projects/<uuid>/project.json          the project's record
 *     state/projects/<uuid>/workspaces/<id>.json  one per workspace
 *     state/projects/<uuid>/external/<hash>       which workspace an external id means
 *     state/projects/<uuid>/active/<id>.<uuid>    sessions that may be running, by workspace
 *     state/projects/<uuid>/homes/<id>/           what belongs to one workspace alone; places.c
 *     state/projects/<uuid>/template/             what every workspace begins with; import.c
 *     state/projects/<uuid>/lock, locks/<id>      see internal.h for their order
 *     state/sessions/<uuid>/                      record, logs and control socket of a session
 *     state/staging/<name>/                       changes under way; stage.c
 *     projects/<uuid>/                            what agents may see: metadata.json (a published copy),
 *                                                 AGENTS.md, .factory/, sessions/ (published), workspaces/<id>/
 *
 * INVARIANT: everything below projects/<uuid> may have been changed by an agent. It is opened by component, no link
 * is followed, and no decision depends on its content. cordon trusts only the records below state/.
 *
 * Records (records.h) are JSON objects on disk, one file each, with a `schema` number. A reader sees a whole record or
 * none. Lists are arrays of what cordon_<kind>_json() returns for each record.
 */
#ifndef CORDON_STORE_STORE_H
#define CORDON_STORE_STORE_H

#include <jansson.h>

#include "base/home.h"
#include "store/records.h"

#define CORDON_NAME_MAX 256
#define CORDON_DEPTH_MAX 64 /* the longest chain of sessions that start sessions */
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
	struct cordon_store_order *order; /* of the last list, so that its next page need not sort it again; list.c */
};

/* clang-format off */
#define CORDON_STORE_NONE \
	{ .home = CORDON_HOME_NONE, .projects_fd = -1, .sessions_fd = -1, .staging_fd = -1, .trees_fd = -1 }
/* clang-format on */
#define autostore CORDON_CLEANUP(cordon_store_done)

/*
 * cordon_child_fork() for a server: makes a child that uses the store, and has no other descriptors than the standard
 * streams, those of the store, and `fd` (or -1). What a hostile agent left (a view of millions of files) must not take
 * the memory of the machine, nor the time of the server's clients: a child that only reads has bounds. INVARIANT: one
 * that changes something has none, and is not cut off by Ctrl-C in the terminal of the server either.
 */
pid_t cordon_store_fork(const struct cordon_store *store, int fd, bool reads);
#define CORDON_STORE_READ_SECONDS 60
#define CORDON_STORE_READ_MEMORY ((uint64_t)1 << 30)

/* Makes the directories that are missing, and finishes or takes back every change that a killed process left half
 * made. */
int cordon_store_open(struct cordon_store *ret_store, struct cordon_error *err);
void cordon_store_done(struct cordon_store *store);
/* The repair that cordon_store_open() does. *ret_repaired is the number of changes that it finished or took back. */
int cordon_store_repair(const struct cordon_store *store, size_t *ret_repaired, struct cordon_error *err);

/*
 * These judge an id before any path is made of it. A project or session id is a UUID. A workspace id is 1 to 64 of a-z,
 * 0-9 and '-', and '-' is not the first. Upper case becomes lower case. Any other text is an error of kind usage, in
 * which `what` names the id: "project_id".
 */
int cordon_id_uuid(const char *what, const char *text, char ret_id[static CORDON_ID_SIZE], struct cordon_error *err);
int cordon_id_workspace(const char *what, const char *text, char ret_id[static CORDON_ID_SIZE],
			struct cordon_error *err);

/*
 * What a person may say instead of an id. A project: its id, its name, or the first characters of its id. A workspace:
 * its id, its external id, or the first characters of an id that is a UUID. A session: its id or the first characters.
 * An id comes before a name, and a name before first characters. What several have is an error of kind usage that names
 * them (-ENOTUNIQ). A whole id is returned without looking for it, and so is a workspace id that no workspace has, so
 * that the caller says what a missing one means. For a deletion more characters are needed, because a name that is gone
 * must not become the beginning of another id.
 */
#define CORDON_FIND_MIN 4
#define CORDON_FIND_DELETE_MIN 8
enum { CORDON_FIND_TO_DELETE = 1 };
int cordon_project_find(const struct cordon_store *store, const char *text, unsigned int flags,
			char ret_id[static CORDON_ID_SIZE], struct cordon_error *err);
int cordon_workspace_find(const struct cordon_store *store, const char *project_id, const char *text,
			  unsigned int flags, char ret_id[static CORDON_ID_SIZE], struct cordon_error *err);
int cordon_session_find(const struct cordon_store *store, const char *text, char ret_id[static CORDON_ID_SIZE],
			struct cordon_error *err);

/*
 * Creates a project with its default workspace. `settings` is an object with the keys of the interface (name,
 * description, workspace_isolation, protected_paths, default_protection, remote_url, init_git, agent_command, limits,
 * net, profile, shares, home, env, env_pass, model, ...); all of them are judged, and one message names every fault; an
 * unknown one is an error. `template` may be NULL.
 */
struct cordon_copy_bounds;
struct cordon_template {
	const char *dir; /* a host directory from which AGENTS.md and .factory are copied */
	/* What else is copied: every workspace of the project begins with it. NULL: nothing. */
	const struct cordon_copy_bounds *whole;
};
int cordon_project_create(const struct cordon_store *store, const json_t *settings,
			  const struct cordon_template *template, struct cordon_project_record *ret_project,
			  struct cordon_error *err);

/*
 * Takes over what DIR has: the projects of a store of the original (or of another cordon) with their workspaces, one
 * such project, or any other directory, of which every workspace of one new project gets a copy. `settings` win over what
 * the directory says. *ret_projects is an array of records; each thing that is not taken over adds a text to `notices`.
 * Follows no link in DIR. On failure nothing has changed.
 */
int cordon_project_import(const struct cordon_store *store, const char *dir, const json_t *settings,
			  json_t **ret_projects, json_t *notices, struct cordon_error *err);
int cordon_project_get(const struct cordon_store *store, const char *id, struct cordon_project_record *ret_project,
		       struct cordon_error *err);
/*
 * The settings of a project before and after `changes` (of create or update), for a caller that asks a person first.
 * `project` is NULL for a project that is to be created, which begins with the defaults. Writes nothing.
 */
int cordon_project_preview(const struct cordon_project_record *project, const json_t *changes,
			   struct cordon_project_record *ret_before, struct cordon_project_record *ret_after,
			   struct cordon_error *err);

/* Judges a change of settings under the lock with which it is made: a negative errno with err, and nothing is changed. */
struct cordon_settings_judge {
	int (*judge)(const void *data, const struct cordon_project_record *before,
		     const struct cordon_project_record *after, struct cordon_error *err);
	const void *data;
};
/*
 * Changes settings for the sessions that start from now on; null resets a setting to its default. `judge` may be NULL.
 * `ret_running` (may be NULL) lists the ids of running sessions, which keep the settings that they started with.
 */
int cordon_project_update(const struct cordon_store *store, const char *id, const json_t *changes,
			  const struct cordon_settings_judge *judge, struct cordon_project_record *ret_project,
			  json_t **ret_running, struct cordon_error *err);
/* The same with changes that depend on the settings as they are: `make` finds them out under the lock. */
struct cordon_settings_change {
	int (*make)(const void *data, const struct cordon_project_record *project, json_t **ret_changes,
		    struct cordon_error *err);
	const void *data;
};
int cordon_project_change(const struct cordon_store *store, const char *id, const struct cordon_settings_change *change,
			  const struct cordon_settings_judge *judge, struct cordon_project_record *ret_project,
			  json_t **ret_running, struct cordon_error *err);
/* Refuses (kind conflict) while a session runs. *ret_deleted is false when there was no such project. */
int cordon_project_delete(const struct cordon_store *store, const char *id, bool *ret_deleted, struct cordon_error *err);

/* Judges what agents would see of the host: profiles, shares and the home. All faults are in one message. */
int cordon_places_judge(const struct cordon_settings *settings, struct cordon_error *err);
/* A person said yes to this path: keeps the identity of what stands there now (base/confirmed.h). */
int cordon_place_confirm(const char *path, struct cordon_error *err);
/* Judges a text that somebody wrote; `what` names it in errors. */
int cordon_text_judge(const char *what, const char *text, size_t max, struct cordon_error *err);

/* From now on, messages of this process name settings as a project does (base/setting.h). For processes without a
 * command line. */
void cordon_settings_name(void);

/*
 * Translates the names that the original gave to settings: its flat limits become `limits`, and what is about containers
 * is dropped. Each thing that has no effect here adds a text to the array `notices` (may be NULL). -ENOMEM.
 */
int cordon_original_settings(json_t *settings, json_t *notices);

struct cordon_list_query {
	const char *name_contains; /* only projects with this text in their name, ignoring case; NULL for all */
	const json_t *only;	   /* only projects with these ids; NULL for all */
	size_t limit;		   /* 0: CORDON_LIST_MAX */
	size_t offset;
	bool ids_only; /* strings instead of records */
};

/* Return arrays of records, oldest first. *ret_total (may be NULL) counts all of them, also those beyond the limit. */
int cordon_project_list(const struct cordon_store *store, const struct cordon_list_query *query, json_t **ret_projects,
			size_t *ret_total, struct cordon_error *err);
int cordon_workspace_list(const struct cordon_store *store, const char *project, const struct cordon_list_query *query,
			  json_t **ret_workspaces, size_t *ret_total, struct cordon_error *err);

/* How a caller names a workspace; each may be NULL. */
struct cordon_workspace_request {
	const char *id;
	const char *external_id;
	const char *source;
};

/*
 * Returns the workspace with this id, or else with this (external_id, source), and changes nothing. If there is none,
 * creates one. Then it copies AGENTS.md (isolated projects) and .factory of the project, and never replaces a file. If
 * something can't be copied, the creation fails.
 */
int cordon_workspace_create(const struct cordon_store *store, const char *project,
			    const struct cordon_workspace_request *request,
			    struct cordon_workspace_record *ret_workspace, bool *ret_created, struct cordon_error *err);
/* Finds the workspace that the request of a session means, as cordon_workspace_create() does. Without `create` it
 * creates none: a request that names none then means the default workspace, and one that names a missing one is an
 * error (kind not_found). */
int cordon_workspace_resolve(const struct cordon_store *store, const char *project,
			     const struct cordon_workspace_request *request, bool create,
			     struct cordon_workspace_record *ret_workspace, bool *ret_created, struct cordon_error *err);
int cordon_workspace_get(const struct cordon_store *store, const char *project, const char *id,
			 struct cordon_workspace_record *ret_workspace, struct cordon_error *err);
/* Refuses the default workspace, and one in which a session runs. A missing one is not an error. */
int cordon_workspace_delete(const struct cordon_store *store, const char *project, const char *id, bool *ret_deleted,
			    struct cordon_error *err);
/* Copies the project's AGENTS.md (isolated projects) and .factory into an existing workspace, and replaces its files of
 * these names. *ret_copied is an array of what it copied. Refuses while a session runs in the workspace. */
int cordon_workspace_sync(const struct cordon_store *store, const char *project, const char *id, json_t **ret_copied,
			  struct cordon_error *err);

/*
 * The policy that a session of the project would have in this workspace. Its root is the workspace when the project is
 * isolated, else the whole project. The caller frees it.
 */
struct cordon_policy;
int cordon_workspace_policy(const struct cordon_store *store, const char *project, const char *id,
			    struct cordon_policy **ret_policy, bool *ret_isolated, struct cordon_error *err);

/* Where an agent of a project sees its workspace, or, if the project is not isolated, the whole project. */
#define CORDON_WORKSPACE_AT "/workspace"
/* Turns a path as such an agent names it into one relative to the root of that policy: absolute ones are below CORDON_WORKSPACE_AT, others begin
 * in the workspace. -EXDEV for what lies elsewhere, -ENAMETOOLONG. */
int cordon_workspace_below(const char *path, bool isolated, const char *id, char *ret_path, size_t size);

/* The host directory of a workspace, for people: "<home>/projects/<project>/workspaces/<id>". */
int cordon_workspace_path(const struct cordon_store *store, const char *project, const char *id,
			  char ret_path[static CORDON_PATH_MAX], struct cordon_error *err);

/*
 * The records of sessions; session/session.h starts and stops sessions. A session whose record says active and whose
 * lock nobody holds was lost: the process that kept it was killed, or the machine went down. The first process that
 * reads the record with one of these functions writes that into it.
 */
int cordon_session_get(const struct cordon_store *store, const char *id, struct cordon_session_record *ret_session,
		       struct cordon_error *err);

struct cordon_session_query {
	const char *project;   /* NULL: all */
	const json_t *only;    /* only sessions of projects with these ids; NULL: all */
	const char *workspace; /* NULL: all */
	const char *status;    /* active, completed or failed; NULL: all */
	size_t limit, offset;
	bool ids_only; /* strings instead of records */
	bool brief;    /* without `protected`, which is long */
	bool newest_first;
};

/* Oldest first, unless the query says otherwise. Those that run are found without reading the records of all others. */
int cordon_session_list(const struct cordon_store *store, const struct cordon_session_query *query,
			json_t **ret_sessions, size_t *ret_total, struct cordon_error *err);

/* Removes the records and logs of sessions that ended more than max_age_ms ago. */
int cordon_session_cleanup(const struct cordon_store *store, uint64_t max_age_ms, size_t *ret_removed,
			   struct cordon_error *err);
/* The same for `cordon gc`: a session whose record can't be read stays and is no error. */
int cordon_session_gc(const struct cordon_home *home, uint64_t max_age_ms, size_t *ret_removed,
		      struct cordon_error *err);

/* The policy of a session: of its settings when it started, for the files as they are now. The caller frees it. */
int cordon_session_policy(const struct cordon_store *store, const struct cordon_session_record *session,
			  struct cordon_policy **ret_policy, struct cordon_error *err);

/* Opens the directory of a session; kind not_found when there is none. */
int cordon_session_open(const struct cordon_store *store, const char *id, int *ret_dir_fd, struct cordon_error *err);

#endif
