/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of the store share. Lock order: project, then external id, then workspace, then session. Readers
 * take no lock. A process that works on a workspace holds the lock of its project shared; a process that changes or
 * deletes the project holds it exclusive.
 */
#ifndef CORDON_STORE_INTERNAL_H
#define CORDON_STORE_INTERNAL_H

#include <dirent.h>
#include <fcntl.h>

#include "base/lock.h"
#include "base/path.h"
#include "state/record.h"
#include "store/store.h"

#define CORDON_PROJECT_PROFILES_MAX 8
#define CORDON_TEMPLATE "template" /* the same: what every new workspace begins with */
#define CORDON_HOMES "homes"	   /* below the directory of a project in state/: what belongs to one workspace */

extern const struct cordon_record_kind cordon_project_kind, cordon_workspace_kind, cordon_session_kind;

/* An open project: its lock (if one was taken), its directory below state/, the tree that agents may see, and its
 * record. */
struct cordon_project {
	char id[CORDON_ID_SIZE];
	int lock_fd;
	int state_fd;
	int tree_fd;
	struct cordon_project_record record;
};

/* clang-format off */
#define CORDON_PROJECT_NONE { .lock_fd = -1, .state_fd = -1, .tree_fd = -1 }
/* clang-format on */
#define autoproject CORDON_CLEANUP(cordon_project_release)

/* Opens a project. `operation` 0 takes no lock and opens no tree. kind usage for a bad id, not_found for a missing
 * project. */
int cordon_project_hold(const struct cordon_store *store, const char *id, int operation,
			struct cordon_project *ret_project, struct cordon_error *err);
void cordon_project_release(struct cordon_project *project);
/* Opens the directory of all workspaces, and makes it when it is missing. */
int cordon_project_workspaces(const struct cordon_project *project, int *ret_fd, struct cordon_error *err);

/* Writes the published copy of the record. */
struct cordon_stage;
int cordon_project_publish(const struct cordon_stage *stage, const struct cordon_project_record *record, int tree_fd,
			   struct cordon_error *err);
/* Moves `tree` and `state` of a stage to their places. Moves the tree first: the project exists as soon as its records
 * are in place. -errno. */
int cordon_project_commit(const struct cordon_store *store, int stage_fd, const char *id);

/* settings.c. Judges the `wanted` settings and puts them into `record`, which is unchanged on failure. A limit that is
 * not named keeps its value. */
int cordon_settings_apply(struct cordon_project_record *record, const json_t *wanted, struct cordon_error *err);
/* Fills in the defaults of all settings, and nothing else. */
int cordon_settings_default(struct cordon_project_record *ret_record, struct cordon_error *err);
/* places.c. A person said yes to the settings: keeps the identity of what stands at each path that `before` (may be NULL)
 * does not name (base/confirmed.h). */
int cordon_places_confirm(const struct cordon_settings *before, const struct cordon_settings *settings,
			  struct cordon_error *err);
/* Judges a program and its arguments; `what` names it in errors. */
int cordon_command_judge(const char *what, json_t *command, struct cordon_error *err);

/*
 * stage.c. A stage is a directory in state/staging for one change under way. Its name says which change it is, and the
 * process that makes the change holds its lock. All writes of the change go there first, and two renames put them into
 * place. A process that finds a stage that nobody holds finishes the change or takes it back, so a kill at any moment
 * leaves nothing half made.
 */
struct cordon_stage {
	const struct cordon_store *store;
	int fd;
	char name[160];
};

/* clang-format off */
#define CORDON_STAGE_NONE { .fd = -1 }
/* clang-format on */
#define autostage CORDON_CLEANUP(cordon_stage_close)

/* Names: "pj.<project>" creates or deletes a project, "im.<uuid>" imports some, "up.<project>" changes one,
 * "ws.<project>.<workspace>" creates or deletes a workspace, "tmp.<uuid>" (cordon_stage_temp) holds copies only. */
int cordon_stage_open(const struct cordon_store *store, const char *name, struct cordon_stage *ret_stage,
		      struct cordon_error *err);
int cordon_stage_temp(const struct cordon_store *store, struct cordon_stage *ret_stage, struct cordon_error *err);
/* Marks the change as a deletion; what is then moved into the stage is removed with the stage. */
int cordon_stage_delete(const struct cordon_stage *stage, struct cordon_error *err);
/* Removes the stage and what is left in it. */
void cordon_stage_close(struct cordon_stage *stage);

/* Writes the record into the stage and renames it to its place, so that no temporary file is ever left there. */
int cordon_stage_save(const struct cordon_stage *stage, const struct cordon_record_kind *kind, int dir_fd,
		      const char *name, const void *record, struct cordon_error *err);

/* publish.c. Writes a copy of a record to `name` in the tree that agents see, and replaces whatever has that name. */
int cordon_publish(const struct cordon_stage *stage, int tree_fd, const char *name, const json_t *value,
		   struct cordon_error *err);

/* For stage.c: these finish a change or take it back. The caller holds the stage. */
int cordon_project_recover(const struct cordon_store *store, int stage_fd, const char *id);
int cordon_import_recover(const struct cordon_store *store, int stage_fd);
int cordon_project_republish(const struct cordon_stage *stage, const char *id);
int cordon_workspace_recover(const struct cordon_store *store, int stage_fd, const char *project, const char *id);

/* list.c. A list has the record "<name><path>" for every name of the directory that ends in `suffix`, in the form that
 * `show` returns. */
struct cordon_list_source {
	const struct cordon_record_kind *kind;
	int dir_fd;
	const char *path, *suffix;
	size_t limit, offset;
	bool ids_only, newest_first;
	bool quick; /* records are large: those that are not shown are read for their age and not parsed. Needs `path`. */
	json_t *(*show)(const void *record);
	/* Reads a record; -ENOENT for one that does not belong to the list. NULL: cordon_record_load(). */
	int (*load)(const struct cordon_store *store, const char *name, void *ret_record, struct cordon_error *err);
	bool (*matches)(const void *record, const void *wanted); /* NULL: all records match */
	const void *wanted;
};

struct cordon_store_order *cordon_store_order_new(void);
struct cordon_store_order *cordon_store_order_free(struct cordon_store_order *order);
int cordon_record_list(const struct cordon_store *store, const struct cordon_list_source *source, json_t **ret_list,
		       size_t *ret_total, struct cordon_error *err);

/* workspace.c. The caller has judged `id`. -ENOENT with kind not_found when there is none. */
int cordon_workspace_read(const struct cordon_project *project, const char *id,
			  struct cordon_workspace_record *ret_record, struct cordon_error *err);
/* Records that this session is the latest that was started in the workspace. */
int cordon_workspace_stamp(const struct cordon_store *store, const struct cordon_project *project, const char *id,
			   const char *session, struct cordon_error *err);
/* Copies the files that a workspace gets from its project (or a project from its template): AGENTS.md when `isolated`,
 * .factory always. A file that is missing is not an error; what the target has already stays. */
int cordon_workspace_fill(int project_fd, bool isolated, int dst_fd, struct cordon_error *err);
/* Copies everything that a new workspace begins with: the project's template, then these files. */
int cordon_workspace_populate(int project_fd, int state_fd, bool isolated, int dst_fd, struct cordon_error *err);
/* Writes the entry that says which workspace an external id means; the other says whether there is one. */
int cordon_workspace_index(int state_fd, const struct cordon_stage *stage,
			   const struct cordon_workspace_request *request, const char *id, struct cordon_error *err);
bool cordon_workspace_indexed(int state_fd, const struct cordon_workspace_request *request);
/* Fills in the record of a new workspace; -ENOMEM. */
int cordon_workspace_new(const char *project, const char *id, const struct cordon_workspace_request *request,
			 struct cordon_workspace_record *ret_record);

/* sync.c. Prepares the workspace for the start of a session: makes its directory if it is missing, and copies AGENTS.md
 * into it if the project is isolated and has one and the workspace has nothing of that name. */
int cordon_workspace_prepare(const struct cordon_store *store, const struct cordon_project *project, const char *id,
			     struct cordon_error *err);

/* Compiles the recipe of a session in a workspace from `settings`: those of the project, or those in the record of the
 * session. `ancestors` (may be NULL) are the workspaces of the session's parent, of the parent's parent, and so on.
 * What the recipe has already stays. Unless the session starts, nothing that is missing is made but its home. */
struct cordon_policy;
struct cordon_recipe;
int cordon_settings_compile(const struct cordon_project *project, const char *id,
			    const struct cordon_settings *settings, const json_t *ancestors, bool starts,
			    struct cordon_recipe *recipe, struct cordon_error *err);
/* Only the policy. */
int cordon_policy_of(const struct cordon_project *project, const char *id, const struct cordon_settings *settings,
		     const json_t *ancestors, struct cordon_policy **ret_policy, struct cordon_error *err);

/* session.c. Reads the record of a session as it is on disk; -ENOENT with kind not_found. */
int cordon_session_read(const struct cordon_store *store, const char *id, struct cordon_session_record *ret_record,
			struct cordon_error *err);
/* Writes the record through a stage, with the time in updated_at. Only the holder of the lock `alive` may call it. */
int cordon_session_write(const struct cordon_store *store, struct cordon_session_record *record,
			 struct cordon_error *err);
/* Makes the directory of a new session with its record. The caller holds the session's lock before anybody can see the
 * directory. */
int cordon_session_make(const struct cordon_store *store, struct cordon_session_record *record, int *ret_alive,
			struct cordon_error *err);
/* Writes a copy of the record into the project's sessions/, for readers there; cordon never reads it. The caller holds
 * the project. */
int cordon_session_publish(const struct cordon_store *store, const struct cordon_project *project,
			   const struct cordon_session_record *record, struct cordon_error *err);

/* git.c. Writes an empty repository into a directory of our own, without running git. */
int cordon_git_init(int dir_fd, const char *remote_url, struct cordon_error *err);
int cordon_git_url_judge(const char *url, struct cordon_error *err);

/* active.c. Lists the sessions that run; `workspace` NULL means the whole project. *ret_ids is an array of session
 * ids. */
int cordon_active_list(const struct cordon_store *store, const struct cordon_project *project, const char *workspace,
		       json_t **ret_ids, struct cordon_error *err);
/* Returns -EBUSY (kind conflict) when a session runs; the message names it. */
int cordon_active_none(const struct cordon_store *store, const struct cordon_project *project, const char *workspace,
		       const char *what, struct cordon_error *err);
/* A session lives while its process does; it runs while, in addition, its record does not say that it has ended. */
bool cordon_session_runs(const struct cordon_store *store, const char *session);
bool cordon_session_lives(const struct cordon_store *store, const char *session);
int cordon_active_add(const struct cordon_project *project, const char *workspace, const char *session,
		      struct cordon_error *err);
void cordon_active_remove(const struct cordon_project *project, const char *workspace, const char *session);

#endif
