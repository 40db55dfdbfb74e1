/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Allowances: one host or one path of the host that a person allows a session, or all sessions of a project, beside what the
 * settings say. An allowance is an object in the form that settings have: {"host": "example.org:443"} or {"share": "/data:ro"};
 * with "once": true it counts for the next start of a session only.
 */
#ifndef CORDON_APPROVAL_ALLOWANCE_H
#define CORDON_APPROVAL_ALLOWANCE_H

#include "store/store.h"

#define CORDON_ALLOWANCES_MAX 32 /* of one session; a person reads all of them */

/* A host or a path of the host that a session is to get beside what its settings say. */
struct cordon_allowance {
	const char *host; /* a rule of a list of hosts (policy/net.h); or NULL */
	const char *path; /* absolute, on the host; or NULL */
	bool write;	  /* of a path */
};

/* Judges the words and makes the allowance of them. Kind usage, or policy_denied for a path that lies in the workspace: what is
 * protected there stays so. */
int cordon_allowance_make(const struct cordon_allowance *wanted, json_t **ret_allowance, struct cordon_error *err);
/* The text of the host or share. */
const char *cordon_allowance_text(const json_t *allowance);

/* Whether the settings allow it already. What can't be told is not allowed. */
bool cordon_allowance_within(const json_t *allowance, const struct cordon_settings *settings);
/* Adds it to the settings. cordon_allowance_judge() also finds out whether the result can be: no share shows cordon's own
 * records, or contradicts another one. */
int cordon_allowance_add(const json_t *allowance, struct cordon_settings *settings, struct cordon_error *err);
int cordon_allowance_judge(const json_t *allowance, const struct cordon_settings *settings, struct cordon_error *err);
/* A person said yes: keeps the identity of what stands at the path now, which alone the session gets. */
int cordon_allowance_confirm(const json_t *allowance, struct cordon_error *err);

/* The allowances of a session. Adds one that is not there; what was for one start only becomes what the new one is. -ENOSPC with
 * kind limit. */
int cordon_allowances_put(json_t **allowances, const json_t *allowance, struct cordon_error *err);
/* Adds all to the settings, or only those that stay. A path that is gone is left out. */
int cordon_allowances_apply(const json_t *allowances, bool only_lasting, struct cordon_settings *settings,
			    struct cordon_error *err);
/* Removes those that were for one start. */
void cordon_allowances_used(json_t *allowances);

/* Writes an allowance into the settings of a project. */
int cordon_project_allow(const struct cordon_store *store, const char *id, const json_t *allowance,
			 struct cordon_error *err);

#endif
