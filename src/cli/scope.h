/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The options that make a policy, shared by every command that has one (check, why, tree, run, ...).
 *
 *     struct args { struct cordon_scope scope; ... };
 *     static const struct cordon_option options[] = { CORDON_SCOPE_OPTIONS, { "op", ... }, { 0 } };
 *
 *     static int set(void *data, int key, const char *arg, struct cordon_error *err)
 *     {
 *             if (cordon_scope_owns(key))
 *                     return cordon_scope_set(&args->scope, key, arg, err);
 *             ...
 *
 *     r = cordon_scope_build(cli, &args.scope, &policy);      prints every error there is
 *     if (r)
 *             return r;
 *
 * The texts of a scope are those of argv; it owns its list and the policy file, until cordon_scope_done().
 */
#ifndef CORDON_CLI_SCOPE_H
#define CORDON_CLI_SCOPE_H

#include "cli/cli.h"
#include "config/profile.h"
#include "config/settings_file.h"
#include "policy/policy.h"

enum cordon_scope_key {
	CORDON_SCOPE_ROOT = CORDON_KEY_SCOPE,
	CORDON_SCOPE_WORKSPACE,
	CORDON_SCOPE_PRESET,
	CORDON_SCOPE_MODE,
	CORDON_SCOPE_RW,
	CORDON_SCOPE_RO,
	CORDON_SCOPE_DENY,
	CORDON_SCOPE_WITHIN,
	CORDON_SCOPE_PROTECT,
	CORDON_SCOPE_UNPROTECT,
	CORDON_SCOPE_POLICY,
	CORDON_SCOPE_PROFILE,
	CORDON_SCOPE_NET,
	CORDON_SCOPE_DENY_SECRETS,
	CORDON_SCOPE_READ_ONLY,
	CORDON_SCOPE_NO_DEFAULT_PROTECT,
	CORDON_SCOPE__END,
};

/* clang-format off */
#define CORDON_SCOPE_ROOT_OPTION \
	{ "root", 0, CORDON_ARG_DIR, "DIR", "repository root (default: the git top level, else .)", CORDON_SCOPE_ROOT }
#define CORDON_SCOPE_MODE_OPTION \
	{ "workspace-mode", 0, CORDON_ARG_CHOICE, "strict|permissive", "refuse what lies outside, or only warn", \
	  CORDON_SCOPE_MODE }
#define CORDON_SCOPE_PRESET_OPTION \
	{ "preset", 0, CORDON_ARG_TEXT, "PRESET", "folders, mode, protection and variables of a preset of the settings", \
	  CORDON_SCOPE_PRESET }
#define CORDON_SCOPE_PROFILE_OPTION \
	{ "profile", 0, CORDON_ARG_PROFILE, "NAMES", "comma list of profiles: what a program needs (repeatable)", \
	  CORDON_SCOPE_PROFILE }
#define CORDON_SCOPE_NET_OPTION \
	{ "net", 0, CORDON_ARG_HOSTS, "HOSTS|host|none|profile", "hosts to reach (NAME[:PORT],...); or all, none, those of the profiles", \
	  CORDON_SCOPE_NET }
#define CORDON_SCOPE_OPTIONS \
	CORDON_SCOPE_ROOT_OPTION, \
	{ "workspace", 0, CORDON_ARG_DIR, "FOLDERS", "comma list of folders that may be written", CORDON_SCOPE_WORKSPACE }, \
	CORDON_SCOPE_PRESET_OPTION, \
	CORDON_SCOPE_MODE_OPTION, \
	{ "rw", 0, CORDON_ARG_FILE, "PATTERN", "may be written (repeatable)", CORDON_SCOPE_RW }, \
	{ "ro", 0, CORDON_ARG_FILE, "PATTERN", "may be read (repeatable)", CORDON_SCOPE_RO }, \
	{ "deny", 0, CORDON_ARG_FILE, "PATTERN", "neither; always wins (repeatable)", CORDON_SCOPE_DENY }, \
	{ "deny-secrets", 0, CORDON_ARG_NONE, NULL, "hide .env, .ssh, .aws and other known secrets in the root", \
	  CORDON_SCOPE_DENY_SECRETS }, \
	{ "within", 0, CORDON_ARG_FILE, "PATTERNS", "comma list: nothing else, whatever is granted (repeatable)", \
	  CORDON_SCOPE_WITHIN }, \
	{ "read-only", 0, CORDON_ARG_NONE, NULL, "take every write grant for a read grant", CORDON_SCOPE_READ_ONLY }, \
	{ "protect", 0, CORDON_ARG_FILE, "PATH", "never changes (repeatable)", CORDON_SCOPE_PROTECT }, \
	{ "unprotect", 0, CORDON_ARG_FILE, "PATH", "lift one default protection (repeatable)", CORDON_SCOPE_UNPROTECT }, \
	{ "no-default-protect", 0, CORDON_ARG_NONE, NULL, "leave what the host would execute unprotected", \
	  CORDON_SCOPE_NO_DEFAULT_PROTECT }, \
	{ "policy", 0, CORDON_ARG_FILE, "FILE", "take rules from a cordon.yaml or .json too", CORDON_SCOPE_POLICY }, \
	CORDON_SCOPE_PROFILE_OPTION
/* clang-format on */

struct cordon_scope_rule {
	int key;
	const char *text;
};

struct cordon_scope {
	const char *root;
	const char *mode;
	const char *policy_path;
	const char *preset_name;
	struct cordon_scope_rule *rules; /* in the order given */
	size_t n_rules;
	bool deny_secrets;
	bool read_only;
	bool no_default_protect;
	cordon_mode folder_mode; /* set by the command: the mode for folders if nothing else sets one */
	struct cordon_policy_file *
		file; /* the file of --policy, once it is read; also has settings that are no part of a policy (env, limits) */
	struct cordon_settings_file *settings; /* once the preset is read, which belongs to them */
	const struct cordon_preset *preset;
	struct cordon_profile_dirs *dirs;			  /* where profiles are, once that was asked */
	struct cordon_policy_file *profiles[CORDON_PROFILES_MAX]; /* of --profile and the policy file, once they are read */
	char *profile_names[CORDON_PROFILES_MAX];
	size_t n_profiles;
};

static inline bool cordon_scope_owns(int key)
{
	return key >= CORDON_SCOPE_ROOT && key < CORDON_SCOPE__END;
}

/* A second --root, --workspace-mode, --preset or --policy is an error of kind usage. */
int cordon_scope_set(struct cordon_scope *scope, int key, const char *arg, struct cordon_error *err);
void cordon_scope_done(struct cordon_scope *scope);

/* Builds the policy. Folders come from --workspace and --preset, of which each narrows the other, else (if there is no --rw,
 * --ro or --policy either) from WORKSPACE_FOLDERS; the mode comes from --workspace-mode, the policy file, WORKSPACE_MODE, folder_mode, strict, and
 * from the preset, of which the stricter wins.
 * config/policy_build.h describes the rest. WORKSPACE_ENABLED=false drops the folders, so that the repository is the
 * scope, and reports it on stderr. A root that nobody named is refused when it is the home directory or contains it. Returns 0, or an exit code after having printed every error of the options, the file
 * and the folders. */
int cordon_scope_build(struct cordon_cli *cli, struct cordon_scope *scope, struct cordon_policy **ret_policy);

/*
 * Builds a policy again from what cordon_scope_build() has read, for a front end that needs many: for these folders, a list
 * of places in the root, in this mode. NULL means the root without the grants of the options: for a run that may
 * see and write everything that is not denied or protected.
 */
int cordon_scope_again(const struct cordon_scope *scope, const char *root, const char *folders, cordon_mode mode,
		       struct cordon_policy **ret_policy, struct cordon_error *err);

/* Opens the root: --root, else WORKSPACE_REPO_ROOT, else the git top level above the current directory. */
int cordon_scope_open_root(const struct cordon_scope *scope, const char *env_root, struct cordon_root *ret_root,
			   struct cordon_error *err);

#endif
