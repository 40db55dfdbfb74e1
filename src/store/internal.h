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

#include "base/path.h"
#include "store/held.h"

#define CORDON_PROJECT_PROFILES_MAX 8
#define CORDON_TEMPLATE "template" /* the same: what every new workspace begins with */
#define CORDON_HOMES "homes"	   /* below the directory of a project in state/: what belongs to one workspace */

extern const struct cordon_record_kind cordon_project_kind, cordon_workspace_kind, cordon_session_kind;

/* Writes the published copy of the record. */
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
/* stage.c. Names: "pj.<project>" creates or deletes a project, "im.<uuid>" imports some, "up.<project>" changes one,
 * "ws.<project>.<workspace>" creates or deletes a workspace, "tmp.<uuid>" (cordon_stage_temp) holds copies only. */
int cordon_stage_open(const struct cordon_store *store, const char *name, struct cordon_stage *ret_stage,
		      struct cordon_error *err);
/* Marks the change as a deletion; what is then moved into the stage is removed with the stage. */
int cordon_stage_delete(const struct cordon_stage *stage, struct cordon_error *err);

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

/* git.c. Writes an empty repository into a directory of our own, without running git. */
int cordon_git_init(int dir_fd, const char *remote_url, struct cordon_error *err);
int cordon_git_url_judge(const char *url, struct cordon_error *err);

/* active.c. Returns -EBUSY (kind conflict) when a session runs; the message names it. */
int cordon_active_none(const struct cordon_store *store, const struct cordon_project *project, const char *workspace,
		       const char *what, struct cordon_error *err);
#endif
