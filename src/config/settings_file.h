/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The settings of a user, config.yaml in $CORDON_HOME (cordon-config.yaml(5)): which orchestrators there are, which
 * directories they share, and who may use which.
 *
 *     workspaces_path: /srv/agents            # private workspaces; default: $CORDON_HOME/workspaces
 *     shared_workspaces:
 *       docs: {path: /srv/docs, description: "Manuals", domain: support}
 *     orchestrators:
 *       helpdesk:
 *         private_workspace: /srv/helpdesk    # default: <workspaces_path>/helpdesk
 *         shared_access:
 *           - docs                            # for reading and writing
 *           - {name: specs, access: read-only, cross_domain: true}
 *     channel_profiles:
 *       desk: {channel: slack, orchestrator_id: helpdesk, domain: support, default_workflow: triage}
 *     defaults:
 *       providers:
 *         anthropic: {command: [claude, -p], env: {}, env_pass: [ANTHROPIC_API_KEY], profile: claude}
 *       presets:
 *         web: {folders: [web, shared], mode: strict, protected_paths: [web/vendor], env_pass: [NPM_TOKEN]}
 *         web-only: {extends: web, folders: [web]}
 *       loop: {command: [claude, -p], profile: claude}
 *       validation_hooks:
 *         - {name: size, run: [/srv/hooks/size], on: apply, timeout: 10}
 *
 * An orchestrator has its private workspace and the areas that shared_access names, and nothing else. The keys of the
 * system from which this format comes (monitoring, channels, ...) are read and kept, and have no effect.
 *
 * cordon_settings_parse() judges the text, and cordon_settings_check() what the paths lead to. Each finds all errors in one
 * pass. Paths are resolved before they are judged, also the beginnings of paths that do not exist yet.
 *
 * INVARIANT: no area lies in another area, in a private workspace or in $CORDON_HOME, no private workspace lies in another,
 * and all of them belong to the caller or to root. So a grant gives exactly one area, and nobody else can change what it is.
 */
#ifndef CORDON_CONFIG_SETTINGS_FILE_H
#define CORDON_CONFIG_SETTINGS_FILE_H

#include "base/digest.h"
#include "config/policy_file.h"

#define CORDON_SETTINGS_FILE "config.yaml"
#define CORDON_SETTINGS_ID_MAX 64
#define CORDON_SETTINGS_MAX 10000      /* orchestrators, areas or channel profiles in one file */
#define CORDON_SETTINGS_GRANTS_MAX 100 /* areas of one orchestrator */

/* A directory that orchestrators can be granted. Strings here and below belong to the file. */
struct cordon_shared_area {
	const char *key;
	const char *given;	 /* the path as it is written */
	const char *path;	 /* where that leads */
	const char *description; /* the key if the file has none */
	const char *domain;	 /* or NULL */
	const struct cordon_node *node;
};

struct cordon_area_grant {
	const struct cordon_shared_area *area;
	bool read_only;
	bool cross_domain; /* a person knows that the area belongs to another domain */
	const struct cordon_node *node;
};

struct cordon_orchestrator {
	const char *id;
	const char *given;	       /* private_workspace as it is written; NULL: the default */
	const char *private_workspace; /* where it leads; it need not exist yet */
	struct cordon_area_grant *grants;
	size_t n_grants;
	const struct cordon_node *node;
};

struct cordon_channel_profile {
	const char *id;
	const char *channel;
	const struct cordon_orchestrator *orchestrator;
	const char *domain;	      /* or NULL */
	const char *default_workflow; /* or NULL */
	const struct cordon_node *node;
};

/* How the agents of one provider are started. */
struct cordon_provider {
	const char *name;
	char **command; /* ends with NULL */
	struct cordon_env_setting *env;
	size_t n_env;
	struct cordon_setting_list env_pass;
	const char *profile; /* cordon-profile(1); or NULL */
	const struct cordon_node *node;
};

/* A workspace with a name, defaults.presets.<name>. What it does not say itself it has from the one that it extends. */
struct cordon_preset {
	const char *name;
	const struct cordon_preset *parent; /* `extends`; or NULL */
	bool has_folders;
	struct cordon_setting_list folders; /* its own; none in the whole chain: the whole repository */
	const char *mode_where;		    /* NULL: it has no mode of its own */
	cordon_mode mode;
	struct cordon_setting_list protected_paths; /* in addition to those of the parent */
	bool has_env_pass;
	struct cordon_setting_list env_pass;
	const struct cordon_node *node;
};

typedef enum cordon_hook_event {
	CORDON_HOOK_START,
	CORDON_HOOK_STORY,
	CORDON_HOOK_APPLY,
	CORDON_HOOK__MAX
} cordon_hook_event;

/* A program that may refuse, defaults.validation_hooks[]. */
struct cordon_hook {
	const char *name;
	char **run; /* ends with NULL */
	bool on[CORDON_HOOK__MAX];
	uint64_t timeout_ms;
	const struct cordon_node *node;
};

struct cordon_settings_file {
	struct cordon_document *doc;
	char path[CORDON_PATH_MAX];	   /* of the file, absolute */
	char digest[CORDON_DIGEST_SIZE];   /* of its text */
	char home[CORDON_PATH_MAX];	   /* $CORDON_HOME, canonical */
	char user[CORDON_PATH_MAX];	   /* the user's home, canonical, or "" */
	const char *workspaces_path;	   /* where it leads */
	const char *workspaces_path_given; /* as it is written, or NULL */
	struct cordon_shared_area *areas;
	size_t n_areas;
	struct cordon_orchestrator *orchestrators;
	size_t n_orchestrators;
	struct cordon_channel_profile *profiles;
	size_t n_profiles;
	struct cordon_provider *providers;
	size_t n_providers;
	struct cordon_preset *presets; /* defaults.presets */
	size_t n_presets;
	struct cordon_hook *hooks; /* defaults.validation_hooks */
	size_t n_hooks;
	struct cordon_provider *loop;	    /* defaults.loop: the agent of `cordon loop`; or NULL */
	struct cordon_recipe_values limits; /* of every step; defaults.limits */
	bool step_views; /* steps that write to the private workspace do it in views; defaults.step_views */
	const struct cordon_node *defaults; /* or NULL */
};

/* The path of the file: `config` if it is not NULL, else $CORDON_CONFIG, else config.yaml in $CORDON_HOME. */
int cordon_settings_path(const char *config, char ret_path[static CORDON_PATH_MAX], struct cordon_error *err);

/* Reads the file and judges its text, and unless `text_only` also what the paths lead to. A missing config.yaml in
 * $CORDON_HOME has no settings; a missing file that was named is an error. */
enum { CORDON_SETTINGS_TEXT_ONLY = 1 };
int cordon_settings_load(const char *config, unsigned int flags, struct cordon_settings_file **ret_settings,
			 struct cordon_errors *errors);
/* The same with a text in memory; `path` is where the file would be. */
int cordon_settings_parse(const char *path, const char *text, size_t len, struct cordon_settings_file **ret_settings,
			  struct cordon_errors *errors);
/* Looks at the paths: missing areas, owners, places that no area or workspace may have, overlaps; and at domains. */
int cordon_settings_check(const struct cordon_settings_file *settings, struct cordon_errors *errors);
/* Finds out whether each area is what a person said yes to, or may be taken for it (base/confirmed.h). A step asks that again
 * of what it uses, and whoever opens a private workspace of that. */
int cordon_settings_check_confirmed(const struct cordon_settings_file *settings, struct cordon_errors *errors);
struct cordon_settings_file *cordon_settings_free(struct cordon_settings_file *settings);
void cordon_settings_freep(struct cordon_settings_file **settings);
#define autosettings CORDON_CLEANUP(cordon_settings_freep)

/* Calls `fn` for each thing of the file that has no effect, or means another path than is written. */
void cordon_settings_notices(const struct cordon_settings_file *settings,
			     void (*fn)(void *data, const char *where, const char *text), void *data);

/* Each finds by id; the error of kind not_found suggests the nearest. */
int cordon_settings_orchestrator(const struct cordon_settings_file *settings, const char *id,
				 const struct cordon_orchestrator **ret_orchestrator, struct cordon_error *err);
int cordon_settings_area(const struct cordon_settings_file *settings, const char *key,
			 const struct cordon_shared_area **ret_area, struct cordon_error *err);
int cordon_settings_profile(const struct cordon_settings_file *settings, const char *id,
			    const struct cordon_channel_profile **ret_profile, struct cordon_error *err);
/* Also the built-in ones: anthropic starts claude, openai starts codex, each with its profile. */
int cordon_settings_provider(const struct cordon_settings_file *settings, const char *name,
			     const struct cordon_provider **ret_provider, struct cordon_error *err);
int cordon_settings_preset(const struct cordon_settings_file *settings, const char *name,
			   const struct cordon_preset **ret_preset, struct cordon_error *err);
/* The preset of the chain from which another one has its folders, its mode or its env_pass; NULL: nobody says. */
const struct cordon_preset *cordon_preset_with_folders(const struct cordon_preset *preset);
const struct cordon_preset *cordon_preset_with_mode(const struct cordon_preset *preset);
const struct cordon_preset *cordon_preset_with_env_pass(const struct cordon_preset *preset);
const char *cordon_hook_event_name(cordon_hook_event event);
/* The grant of an area, or NULL. */
const struct cordon_area_grant *cordon_orchestrator_grant(const struct cordon_orchestrator *orchestrator,
							  const char *key);
/* Whether a grant crosses domains: a channel profile of the orchestrator belongs to another domain than the area. */
bool cordon_settings_crosses(const struct cordon_settings_file *settings,
			     const struct cordon_orchestrator *orchestrator, const struct cordon_shared_area *area);

/* 1 to 64 of A-Z a-z 0-9 _ and -. `what` names the id in the error, of kind usage. */
int cordon_settings_id_check(const char *what, const char *id, struct cordon_error *err);
/* Where a path leads. Missing components at its end stay as they are. Returns 0 or -errno. */
int cordon_settings_resolve(const char *path, char ret[static CORDON_PATH_MAX]);

#endif
