/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A recipe: what a run is asked to be. Whoever starts runs or answers questions about them (the command line, agents,
 * sessions, steps, hooks) fills one, by the table of settings (config/recipe_table.h) as far as the settings are in
 * it, and has it compiled. There is no other way to a policy with shares and to the specification of a run, so a
 * question and a run never differ.
 *
 *     struct cordon_recipe recipe CORDON_CLEANUP(cordon_recipe_done) = { .root = path };
 *
 *     r = cordon_recipe_set(&recipe, CORDON_RECIPE_RW, "src", "scope", &err);
 *     r = cordon_recipe_compile(&recipe, CORDON_RECIPE_STARTS, &errors);
 *     r = cordon_view_run(&home, &recipe.spec, ...);
 *
 * Texts belong to the caller, unless a member says something else; all else belongs to the recipe, which needs
 * cordon_recipe_done().
 */
#ifndef CORDON_RECIPE_RECIPE_H
#define CORDON_RECIPE_RECIPE_H

#include "config/policy_build.h"
#include "config/profile.h"
#include "config/settings_file.h"
#include "config/values.h"

/* A list of copies. */
struct cordon_recipe_list {
	char **items;
	size_t n;
};

/* What the WORKSPACE_ variables say, for whoever wants them to count. */
struct cordon_recipe_variables {
	const char *folders; /* WORKSPACE_FOLDERS, or NULL */
	const char *root;    /* WORKSPACE_REPO_ROOT, or NULL */
	bool has_mode;
	cordon_mode mode; /* WORKSPACE_MODE */
	bool disabled;	  /* WORKSPACE_ENABLED is false, 0, no or off: the repository is the scope */
};

struct cordon_recipe {
	/* ---- what is asked for ---- */
	const char *root; /* NULL: the variable's, else the git top level above the current directory */
	const char *preset_name, *policy_path;
	const char *write; /* folders, relative to the current directory: strict, the rest of the root can be read */
	const char *at, *home;
	bool home_of_file;		    /* a policy file or a profile names the home */
	struct cordon_recipe_values values; /* numbers, words and flags */
	struct cordon_policy_rule *rules;   /* in the order given; `where` is copied nowhere */
	size_t n_rules;
	struct cordon_recipe_list env, keep_env; /* a variable that is kept by its name wins over one of a profile */
	struct cordon_recipe_list pass_env;	 /* kept where nobody sets it */
	struct cordon_recipe_list programs;	 /* of the caller's PATH, which must be there */
	struct cordon_recipe_list profile_lists; /* names, separated by commas */
	struct cordon_share_value *shares;	 /* as written */
	size_t n_shares;
	struct cordon_recipe_variables variables;
	bool names_options;	 /* messages about the root name its option */
	cordon_mode folder_mode; /* the mode of folders if nothing else sets one */

	/* ---- what only front ends with records of their own say ---- */
	const char *file_path;		      /* a file that must not change, such as the one of agents; absolute */
	const struct cordon_net_setting *net; /* as in struct cordon_policy_spec */
	json_t *net_record;
	bool profile_net;		  /* as in struct cordon_policy_spec */
	const char *net_within;		  /* hosts, as an option has them, to which the others are narrowed; or NULL */
	const char *program, *program_of; /* a program of the caller's PATH, if it is there, and its name in messages */
	const struct cordon_share *places; /* shares that are ready */
	size_t n_places;
	bool collected; /* the caller has filled `profile` */
	bool reports_reads;
	bool without_settings;		   /* profiles give what a program needs, and no limits and the like */
	bool without_worktree;		   /* a worktree does not get the git directory that it belongs to */
	const char *const *defaults_below; /* as in struct cordon_policy_spec */
	size_t n_defaults_below, n_present_below;

	/* ---- what was read on the way ---- */
	struct cordon_policy_file *file;    /* of policy_path */
	struct cordon_policy_file *managed; /* the fence of the machine's owner, or NULL */
	struct cordon_settings_file *settings;
	const struct cordon_preset *preset;
	struct cordon_profile_dirs *dirs;
	struct cordon_policy_file *profiles[CORDON_PROFILES_MAX];
	char *profile_names[CORDON_PROFILES_MAX];
	size_t n_profiles;
	struct cordon_profile_use profile; /* what the profiles and programs give */

	/* ---- what it was compiled to ---- */
	struct cordon_policy *policy;
	struct cordon_run_spec spec; /* members that no setting has are the caller's: argv, cwd, terminal, ids, ... */
	/* Folders that are missing or outside: they have a wording of their own, on which scripts rely. */
	struct cordon_errors folder_errors;
	char root_path[CORDON_PATH_MAX]; /* of the root, also when there is no policy */
	bool disabled;			 /* there were folders, and the variable drops them */
};

/* Takes one setting; `text` is NULL for flags. `where` is the option or setting, for messages. Errors are of kind
 * usage and name it. */
int cordon_recipe_set(struct cordon_recipe *recipe, cordon_recipe_id id, const char *text, const char *where,
		      struct cordon_error *err);
/* Takes a number, a word or a flag that is known; 0 counts as not set. */
void cordon_recipe_set_value(struct cordon_recipe *recipe, cordon_recipe_id id, uint64_t value);
int cordon_recipe_add_rule(struct cordon_recipe *recipe, cordon_rule_kind kind, const char *text, const char *where,
			   struct cordon_error *err);
/* NAME=VALUE, after those before it. */
int cordon_recipe_add_env(struct cordon_recipe *recipe, const char *name, const char *value, struct cordon_error *err);
int cordon_recipe_add_text(struct cordon_recipe_list *list, const char *text, struct cordon_error *err);
/* Takes a profile that has been loaded. */
int cordon_recipe_add_profile(struct cordon_recipe *recipe, const char *name, struct cordon_policy_file *file,
			      struct cordon_error *err);
void cordon_recipe_done(struct cordon_recipe *recipe);

typedef enum cordon_recipe_use {
	CORDON_RECIPE_ASKS,   /* a question: a share that is missing on this machine is left out */
	CORDON_RECIPE_PLANS,  /* a missing share is an error; nothing is made */
	CORDON_RECIPE_STARTS, /* the same; the state directories of profiles are made */
} cordon_recipe_use;

/*
 * Makes the policy, with its shares, and the specification of the run. Folders come from `workspace` and the preset,
 * of which each narrows the other, else (if there are no grants and no policy file either) from the variable. The mode
 * is the setting's, the policy file's, the variable's, folder_mode or strict, and the preset's, of which the stricter
 * wins. A root that nobody named is refused when it is the home directory or contains it. Lists of options, policy
 * file and profiles are joined; of single values the first counts. All errors are found in one pass; those in
 * folder_errors count, too.
 */
int cordon_recipe_compile(struct cordon_recipe *recipe, cordon_recipe_use use, struct cordon_errors *errors);

/* Makes another policy from what has been compiled, for a front end that needs many: for these folders, a list of
 * places in the root, in this mode. NULL means the root without the grants of the settings: for a run that may see and
 * write everything that is not denied or protected. */
int cordon_recipe_again(const struct cordon_recipe *recipe, const char *folders, cordon_mode mode,
			struct cordon_policy **ret_policy, struct cordon_error *err);
/* Adds the shares of the recipe to such a policy. */
int cordon_recipe_share(const struct cordon_recipe *recipe, struct cordon_policy *policy, struct cordon_error *err);

/* Opens the root that a recipe names or finds. */
int cordon_recipe_open_root(const struct cordon_recipe *recipe, struct cordon_root *ret_root, struct cordon_error *err);

/* scope.c, part of compiling: the policy without shares. */
int cordon_recipe_policy(struct cordon_recipe *recipe, struct cordon_errors *errors);
/* Finds the directories of profiles, and the home, once. */
int cordon_recipe_find_dirs(struct cordon_recipe *recipe, struct cordon_error *err);

#endif
