/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The policy file, cordon.yaml or .json (cordon.yaml(5)): what the options of `cordon run` and `cordon check` say,
 * one key per option. Both have their names and values from one table (recipe_table.h).
 *
 *     version: 1
 *     mode: strict                  # or permissive
 *     workspace: [lib, src]         # folders, for writing
 *     rw: [docs, "*.md"]            # patterns
 *     ro: [vendor]
 *     deny: [config/secrets]
 *     within: ["lib/*.ts"]          # a fence: whatever is granted, nothing else may be used
 *     deny_secrets: false           # hide known secrets in the root
 *     read_only: false
 *     protect: [AGENTS.md, .factory/]
 *     default_protect: true
 *     unprotect: [.vscode]          # one of the built-in list
 *     env: {CI: "1"}
 *     keep_env: [ANTHROPIC_API_KEY, "NPM_*"]
 *     home: /srv/agent-home         # host directories are absolute, or begin with ~/
 *     at: /workspace
 *     share: ["/opt/data:/data:ro"]
 *     net: host                     # or none, profile, or a list of hosts: [api.example.com, "github.com:22/tcp"]; or
 *                                   # {allow: [...], inject: [{host: api.example.com, header: x-api-key,
 *                                   #  from_env: API_KEY, base_url_env: API_URL}]}
 *     lens: auto                    # or always, never
 *     editor_temps: true            # names that editors use while they save
 *     limits: {timeout: 10m, memory: 2G, pids: 500, cpus: 2, tmp_size: 1G}
 *     best_effort: false
 *     cow: false                    # work in a copy-on-write view
 *     git: commit                   # or none, read: what the run may do with the repository
 *     profiles: [claude]            # policy files with a name (profile.h)
 *
 * and, in profiles and wherever else a file may speak of the home:
 *
 *     description: Claude Code
 *     program: claude               # found on the caller's PATH, and shown with its package and its interpreter
 *     state:                        # directories of the home that stay
 *       - path: ~/.claude
 *         variable: CLAUDE_CONFIG_DIR       # names the directory: on the host if it is set there, and inside
 *         hold: [settings.json, hooks]      # can't be changed or made in it
 *         hold_moved: [.claude.json]        # the same, if the caller's variable names the directory
 *     private: [~/.cache/opencode]  # directories of the home that are shown, and keep nothing of what is written
 *     net: [api.anthropic.com]      # of a profile: hosts that the program needs, which `--net profile` takes
 *     argv: [--no-daemon]           # of a profile: arguments without which the program can't work inside
 *     argv_hint: [claude, --resume]
 *
 * Every key is optional; an unknown one is an error. All errors are found in one pass.
 *
 * INVARIANT: a policy file has authority only because a person named it (`--policy`). Cordon never searches for one or
 * loads one by itself: a file that an agent can write must not be able to widen what the agent may do.
 */
#ifndef CORDON_CONFIG_POLICY_FILE_H
#define CORDON_CONFIG_POLICY_FILE_H

#include "config/net_setting.h"
#include "config/recipe_table.h"
#include "config/values.h"

struct cordon_env_setting {
	const char *name;
	const char *value;
	const char *where;
};

struct cordon_share_setting {
	struct cordon_share_value share; /* source is absolute and clean */
	const char *where;
};

struct cordon_state_setting {
	const char *path;     /* relative to the home */
	const char *variable; /* or NULL */
	struct cordon_setting_list hold, hold_moved;
	const char *where;
};

/* What a file may speak of. */
struct cordon_policy_trust {
	const char *home; /* what ~ stands for on the host, canonical; NULL: it can't be used, because of why_not */
	const char *why_not;
	bool profile; /* the file is a profile */
	/* The file may name variables of the host whose values go to others: its owner is the user, and it lies outside
	 * the workspace. */
	bool credentials;
};

/* All strings and lists belong to the file. */
struct cordon_policy_file {
	struct cordon_document *doc;
	struct cordon_recipe_values values; /* numbers, words and flags, by their ids */
	struct cordon_setting_list workspace;
	struct cordon_setting_list rw;
	struct cordon_setting_list ro;
	struct cordon_setting_list deny;
	struct cordon_setting_list within; /* one fence; none when empty */
	struct cordon_setting_list protect;
	struct cordon_setting_list unprotect; /* not part of a policy: used when the built-in list is added */
	struct cordon_env_setting *env;
	size_t n_env;
	struct cordon_setting_list keep_env;
	struct cordon_setting home; /* its text is NULL when the file does not set it */
	struct cordon_setting at;
	struct cordon_share_setting *shares;
	size_t n_shares;
	struct cordon_net_setting net;
	struct cordon_setting_list profiles; /* names */
	struct cordon_setting description;
	struct cordon_setting_list program; /* names to look up on the caller's PATH */
	struct cordon_state_setting *state;
	size_t n_state;
	struct cordon_setting_list private_dirs; /* relative to the home */
	struct cordon_setting_list argv, argv_hint;
};

/* Reads and checks the whole file, including patterns and protected paths. `trust` NULL: as for a file that may not
 * speak of the home. */
int cordon_policy_file_load(const char *path, const struct cordon_policy_trust *trust,
			    struct cordon_policy_file **ret_file, struct cordon_errors *errors);
/* The same from memory, without trust; `name` is for messages. */
int cordon_policy_file_parse(const char *name, cordon_format format, const char *text, size_t len,
			     struct cordon_policy_file **ret_file, struct cordon_errors *errors);
struct cordon_policy_file *cordon_policy_file_free(struct cordon_policy_file *file);
void cordon_policy_file_freep(struct cordon_policy_file **file);

/*
 * Adds grants, folders, the fence, protected paths, mode, read_only and editor_temps to a policy. Folders must exist
 * in the policy's root; a missing one is an error at its place in the file. On failure the policy is unchanged.
 */
int cordon_policy_file_apply(const struct cordon_policy_file *file, struct cordon_policy *policy,
			     struct cordon_errors *errors);

#endif
