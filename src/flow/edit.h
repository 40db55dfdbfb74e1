/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Changes of config.yaml and of orchestrator.yaml, for the command line and the MCP server. Each change reads the file
 * under a lock, edits its text (config/edit_yaml.h), judges the result as a whole, and replaces the file in one step. When
 * anything fails, nothing has changed. A change that is there already changes nothing and succeeds.
 */
#ifndef CORDON_FLOW_EDIT_H
#define CORDON_FLOW_EDIT_H

#include <jansson.h>

#include "base/home.h"
#include "config/settings_file.h"

#define CORDON_SETTINGS_LOCK_MS 30000

typedef enum cordon_settings_edit_kind {
	CORDON_EDIT_ADD_ORCHESTRATOR, /* id. Makes the private workspace and its orchestrator.yaml, if they are missing */
	CORDON_EDIT_REMOVE_ORCHESTRATOR, /* id. Keeps all data. Refused while a channel profile uses it */
	CORDON_EDIT_SET_PRIVATE,	 /* id, path; NULL: the default. Makes the directory, and moves nothing */
	CORDON_EDIT_GRANT,		 /* id, key, read_only, cross_domain */
	CORDON_EDIT_REVOKE,		 /* id, key */
	CORDON_EDIT_ADD_AREA,		 /* key, path, text, domain or NULL */
	CORDON_EDIT_REMOVE_AREA,	 /* key. Refused while it is granted */
	CORDON_EDIT_ADD_PROFILE, /* id, channel, key (the orchestrator), domain or NULL, text (default workflow) or NULL */
	CORDON_EDIT_REMOVE_PROFILE, /* id */
	CORDON_EDIT_SET_PROFILE,    /* id, key (the orchestrator) */
	CORDON_EDIT_IMPORT,	    /* path of a file, whose text becomes that of the settings, which must be empty */
} cordon_settings_edit_kind;

struct cordon_settings_edit {
	cordon_settings_edit_kind kind;
	const char *config; /* as for cordon_settings_load() */
	const char *id, *key, *path, *text, *domain, *channel;
	bool read_only, cross_domain;
	bool keep_running; /* REVOKE: nothing that holds the area ends */
	/* The digest of the settings that a person was asked about; NULL: nobody was. When they are others now, nothing changes:
	 * -ESTALE, kind conflict. */
	const char *shown;
};

struct cordon_settings_edited {
	struct cordon_settings_file *before,
		*after; /* `before` may have errors in its paths; both are freed by _done() */
	bool changed;
};
void cordon_settings_edited_done(struct cordon_settings_edited *edited);
#define autoedited CORDON_CLEANUP(cordon_settings_edited_done)

/* A change that takes something away only needs a text that can be read: an area whose directory is gone can be revoked
 * and removed. All other changes need settings without any error. */
int cordon_settings_edit(const struct cordon_settings_edit *edit, struct cordon_settings_edited *ret_edited,
			 struct cordon_errors *errors);

/*
 * The same, and then ends the running steps that hold what was taken away (flow.h); with `keep_running` it only lists them.
 * *ret_holders is an array of {run_id, step, attempt}, or NULL when nothing was taken away. The change stands also when the steps
 * can't be ended, which is an error.
 */
int cordon_settings_change(const struct cordon_home *home, const struct cordon_settings_edit *edit,
			   struct cordon_settings_edited *ret_edited, json_t **ret_holders,
			   struct cordon_errors *errors);

/* ---- orchestrator.yaml ---- */

typedef enum cordon_orchestrator_edit_kind {
	CORDON_EDIT_ADD_AGENT,		   /* id, provider, model or NULL, can_orchestrate */
	CORDON_EDIT_REMOVE_AGENT,	   /* id */
	CORDON_EDIT_SELECTOR_AGENT,	   /* id */
	CORDON_EDIT_DEFAULT_WORKFLOW,	   /* id */
	CORDON_EDIT_SELECTION_MAX_RETRIES, /* number */
	CORDON_EDIT_ADD_WORKFLOW,	   /* id, agent or NULL (the selector), prompt or NULL, description or NULL */
	CORDON_EDIT_REMOVE_WORKFLOW,	   /* id. Refused for the default one */
} cordon_orchestrator_edit_kind;

struct cordon_orchestrator_edit {
	cordon_orchestrator_edit_kind kind;
	const char *id, *provider, *model, *agent, *prompt, *description;
	bool can_orchestrate;
	uint64_t number;
};

int cordon_orchestrator_edit(const struct cordon_orchestrator *orchestrator, const struct cordon_orchestrator_edit *edit,
			     bool *ret_changed, struct cordon_errors *errors);

#endif
