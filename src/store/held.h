/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What of the store those need that keep sessions (job/): open projects, the records of their sessions, and stages
 * through which these are written. internal.h says in which order locks are taken.
 */
#ifndef CORDON_STORE_HELD_H
#define CORDON_STORE_HELD_H

#include "base/lock.h"
#include "state/record.h"
#include "store/store.h"

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

/* A stage that holds copies only; internal.h has the others. */
int cordon_stage_temp(const struct cordon_store *store, struct cordon_stage *ret_stage, struct cordon_error *err);
/* Removes the stage and what is left in it. */
void cordon_stage_close(struct cordon_stage *stage);

/* Writes the record into the stage and renames it to its place, so that no temporary file is ever left there. */
int cordon_stage_save(const struct cordon_stage *stage, const struct cordon_record_kind *kind, int dir_fd,
		      const char *name, const void *record, struct cordon_error *err);

/* workspace.c. The caller has judged `id`. -ENOENT with kind not_found when there is none. */
int cordon_workspace_read(const struct cordon_project *project, const char *id,
			  struct cordon_workspace_record *ret_record, struct cordon_error *err);
/* Records that this session is the latest that was started in the workspace. */
int cordon_workspace_stamp(const struct cordon_store *store, const struct cordon_project *project, const char *id,
			   const char *session, struct cordon_error *err);

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

/* active.c. Lists the sessions that run; `workspace` NULL means the whole project. *ret_ids is an array of session
 * ids. */
int cordon_active_list(const struct cordon_store *store, const struct cordon_project *project, const char *workspace,
		       json_t **ret_ids, struct cordon_error *err);
/* A session lives while its process does; it runs while, in addition, its record does not say that it has ended. */
bool cordon_session_runs(const struct cordon_store *store, const char *session);
bool cordon_session_lives(const struct cordon_store *store, const char *session);
int cordon_active_add(const struct cordon_project *project, const char *workspace, const char *session,
		      struct cordon_error *err);
void cordon_active_remove(const struct cordon_project *project, const char *workspace, const char *session);

#endif
