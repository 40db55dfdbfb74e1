/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of the store share. Lock order: project, then external id, then workspace, then session. Readers
 * take no lock. The project's lock is held shared by whoever works on one of its workspaces, exclusive to
 * change or delete the project.
 */
#ifndef CORDON_STORE_INTERNAL_H
#define CORDON_STORE_INTERNAL_H

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>

#include "store/store.h"

#define CORDON_SCHEMA 1
#define CORDON_RECORD_MAX (8 << 20)
#define CORDON_OPEN_DIR (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

/* lock.c. A lock is a file that flock holds; releasing is closing. `operation` is LOCK_SH or LOCK_EX, LOCK_NB as
 * well gives -EWOULDBLOCK. A lock file that was removed while we waited is made anew. */
int cordon_lock_take(int dir_fd, const char *name, int operation, int *ret_fd, struct cordon_error *err);

/* record.c. A missing record is -ENOENT with kind not_found; a newer schema is kind config. */
int cordon_record_read(int dir_fd, const char *name, json_t **ret_record, struct cordon_error *err);
int cordon_record_write(int dir_fd, const char *name, const json_t *record, struct cordon_error *err);
/* "" when there is no such string. */
const char *cordon_record_text(const json_t *record, const char *key);
/* A copy without `schema` and the fields in `hidden` (NULL-terminated, may be NULL). */
json_t *cordon_record_public(const json_t *record, const char *const *hidden);
/* Puts created_at or another time key, now. */
int cordon_record_stamp(json_t *record, const char *key);
/* Names of a directory without "." and ".."; `suffix` (may be NULL) must end each and is cut off. The array is
 * sorted by the callers that need an order. */
int cordon_record_names(int dir_fd, const char *suffix, json_t **ret_names, struct cordon_error *err);
int cordon_no_memory(struct cordon_error *err);
/* Makes (0700) and opens a directory; one of somebody else or a link is refused. */
int cordon_store_dir(int dir_fd, const char *name, int *ret_fd, struct cordon_error *err);

/* A project that is held: its lock, its records and the tree agents may see. */
struct cordon_project {
	char id[CORDON_ID_SIZE];
	int lock_fd;
	int state_fd;
	int tree_fd;
	json_t *record;
};

#define CORDON_PROJECT_NONE                                                                                            \
	{                                                                                                              \
		.lock_fd = -1, .state_fd = -1, .tree_fd = -1                                                           \
	}
#define autoproject CORDON_CLEANUP(cordon_project_release)

/* operation 0 takes no lock. kind usage for a bad id, not_found for a missing project. */
int cordon_project_hold(const struct cordon_store *store, const char *id, int operation,
			struct cordon_project *ret_project, struct cordon_error *err);
void cordon_project_release(struct cordon_project *project);
bool cordon_project_isolated(const struct cordon_project *project);
/* Opens the directory of all workspaces, made when it is missing. */
int cordon_project_workspaces(const struct cordon_project *project, int *ret_fd, struct cordon_error *err);
json_t *cordon_project_public(const json_t *record);
json_t *cordon_workspace_public(const json_t *record);

/* settings.c. Judges the settings that are `wanted` and puts them into `record`; on failure the record may be half changed. */
int cordon_settings_apply(json_t *record, json_t *wanted, struct cordon_error *err);
/* All keys at their defaults. */
json_t *cordon_settings_default(void);
/* A program and its arguments; `what` names it in errors. */
int cordon_command_judge(const char *what, json_t *command, struct cordon_error *err);
int cordon_text_judge(const char *what, const char *text, size_t max, struct cordon_error *err);

/*
 * stage.c. A stage is a directory in state/staging whose name says what is under way and whose lock says that
 * somebody is at it. All writes of a change go there first; two renames make it true. Whoever finds a stage that
 * nobody holds finishes or takes back the change, so a kill at any instant leaves nothing half made.
 */
struct cordon_stage {
	const struct cordon_store *store;
	int fd;
	char name[160];
};

#define CORDON_STAGE_NONE                                                                                              \
	{                                                                                                              \
		.fd = -1                                                                                               \
	}
#define autostage CORDON_CLEANUP(cordon_stage_close)

/* Names: "pj.<project>" creates or deletes, "up.<project>" changes, "ws.<project>.<workspace>" creates or deletes,
 * "tmp.<uuid>" (cordon_stage_temp) holds copies only. */
int cordon_stage_open(const struct cordon_store *store, const char *name, struct cordon_stage *ret_stage,
		      struct cordon_error *err);
int cordon_stage_temp(const struct cordon_store *store, struct cordon_stage *ret_stage, struct cordon_error *err);
/* Marks the change as a deletion; what is then moved into the stage is removed with it. */
int cordon_stage_delete(const struct cordon_stage *stage, struct cordon_error *err);
/* Removes the stage and what is left in it. */
void cordon_stage_close(struct cordon_stage *stage);

/* Replaces a record by way of the stage, so that no temporary file is ever left beside it. */
int cordon_stage_record(const struct cordon_stage *stage, int dir_fd, const char *name, const json_t *record,
			struct cordon_error *err);

/* publish.c. Replaces `name` in an agent's tree by a copy of a record; whatever stood there goes. */
int cordon_publish(const struct cordon_stage *stage, int tree_fd, const char *name, const json_t *value,
		   struct cordon_error *err);
json_t *cordon_project_metadata(const json_t *record);

/* Finishing or taking back, for stage.c. The stage is held. */
int cordon_project_recover(const struct cordon_store *store, int stage_fd, const char *id);
int cordon_project_republish(const struct cordon_stage *stage, const char *id);
int cordon_workspace_recover(const struct cordon_store *store, int stage_fd, const char *project, const char *id);

/* list.c. The records "<name><path>" for every name of the directory that ends in `suffix`, as `show` shows them. */
struct cordon_store_order *cordon_store_order_new(void);
struct cordon_store_order *cordon_store_order_free(struct cordon_store_order *order);
int cordon_record_list(const struct cordon_store *store, int dir_fd, const char *path, const char *suffix,
		       const struct cordon_list_query *query, json_t *(*show)(const json_t *), json_t **ret_list,
		       size_t *ret_total, struct cordon_error *err);

/* workspace.c. `id` was judged; -ENOENT with kind not_found. */
int cordon_workspace_read(const struct cordon_project *project, const char *id, json_t **ret_record,
			  struct cordon_error *err);
/* The files that a workspace takes over from its project (or a project from its template): AGENTS.md when
 * isolated, .factory always; what is missing is fine. And the record of a new one. */
int cordon_workspace_fill(int project_fd, bool isolated, int dst_fd, struct cordon_error *err);
json_t *cordon_workspace_record(const char *project, const char *id, const struct cordon_workspace_request *request);

/* sync.c. What every session start does: the directory is there, and AGENTS.md in it when the project is isolated, has
 * one and the workspace has nothing of that name. */
int cordon_workspace_prepare(const struct cordon_store *store, const struct cordon_project *project, const char *id,
			     struct cordon_error *err);

/* The policy of a workspace under `settings`: a project's record, or what a session keeps of it. */
struct cordon_policy;
int cordon_policy_of(const struct cordon_project *project, const char *id, const json_t *settings,
		     struct cordon_policy **ret_policy, struct cordon_error *err);

/* git.c. An empty repository in a directory of our own, written without running git. */
int cordon_git_init(int dir_fd, const char *remote_url, struct cordon_error *err);
int cordon_git_url_judge(const char *url, struct cordon_error *err);

/* active.c. Which sessions run; `workspace` NULL means the whole project. *ret_ids is an array of session ids. */
int cordon_active_list(const struct cordon_store *store, const struct cordon_project *project, const char *workspace,
		       json_t **ret_ids, struct cordon_error *err);
/* -EBUSY (conflict) naming the sessions when one runs. */
int cordon_active_none(const struct cordon_store *store, const struct cordon_project *project, const char *workspace,
		       const char *what, struct cordon_error *err);
/* Whether a supervisor holds the session; and whether its program has not ended. */
bool cordon_session_runs(const struct cordon_store *store, const char *session);
bool cordon_session_lives(const struct cordon_store *store, const char *session);
int cordon_active_add(const struct cordon_project *project, const char *workspace, const char *session,
		      struct cordon_error *err);
void cordon_active_remove(const struct cordon_project *project, const char *workspace, const char *session);

#endif
