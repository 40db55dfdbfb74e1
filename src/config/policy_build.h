/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The only way to build a policy, for every front end: options, settings of a project and a policy file become
 * rules. What the host would execute later is protected (protect/defaults.h), and so is the policy file itself.
 *
 * All errors are found in one pass. An error in a rule names the option or setting it came from; an error in the
 * policy file has its place in the file.
 */
#ifndef CORDON_CONFIG_POLICY_BUILD_H
#define CORDON_CONFIG_POLICY_BUILD_H

#include "config/policy_file.h"
#include "policy/policy.h"

typedef enum cordon_rule_kind {
	CORDON_RULE_FOLDERS, /* a list of folders separated by commas, for writing */
	CORDON_RULE_WRITE,   /* a pattern */
	CORDON_RULE_READ,    /* a pattern */
	CORDON_RULE_DENY,    /* a pattern */
	CORDON_RULE_WITHIN,  /* a list of patterns separated by commas: one fence around everything else */
	CORDON_RULE_PROTECT, /* a path */
	/* A path of the built-in list, or a directory above such paths, that must not be protected. */
	CORDON_RULE_UNPROTECT,
	CORDON_RULE_NET, /* "host", "none", "profile", or a list of hosts separated by commas */
} cordon_rule_kind;

struct cordon_policy_rule {
	cordon_rule_kind kind;
	const char *text;
	const char *where; /* the option or setting, for messages */
};

/* Everything belongs to the caller, who may free it when the policy is built. */
struct cordon_policy_spec {
	const char *root;
	const struct cordon_policy_rule *rules;
	size_t n_rules;
	const struct cordon_policy_file *file;	    /* or NULL */
	const struct cordon_policy_file *managed;   /* the fence of the machine's owner (managed.h), or NULL */
	struct cordon_policy_file *const *profiles; /* files that add to it */
	size_t n_profiles;
	/* What an agent or the record of a project says about the network, or NULL; a rule comes before them. */
	const struct cordon_net_setting *net;
	json_t *net_record;
	bool profile_net; /* the hosts of the profiles count, unless somebody chose "host" or "none" */
	/* Absolute, as the user named the file, or NULL; it and what it leads to are protected. */
	const char *file_path;
	cordon_mode mode;   /* of the result, whatever the file says; a strict fence makes it strict */
	bool reports_reads; /* reported, whatever the scope consists of */
	bool read_only;
	bool no_default_protection;
	/* Known secrets (protect/secrets.h) are hidden in the homes that lie in the root; with this also in the root itself,
	 * and with the next one nowhere: for questions that are not about a run. */
	bool deny_secrets;
	bool shows_secrets;
	/* Directories in the root that have a built-in list of their own, such as the workspaces of a project that
	 * is not isolated. A missing one has nothing to protect. */
	const char *const *defaults_below;
	size_t n_defaults_below;
	/* The last ones of them, this many, have only what exists there now, and what git would execute: too many names
	 * would have to be held otherwise. */
	size_t n_present_below;
};

/* Whether a policy file lies in the root, by its own path or by where that leads; also when it can't be told. */
bool cordon_policy_file_inside(const char *path, const char *root);
/* Part of cordon_policy_build(): the hosts that a run may reach. */
int cordon_net_build(const struct cordon_policy_spec *spec, const char *root, struct cordon_net_list *ret_list,
		     struct cordon_error *err);

int cordon_policy_build(const struct cordon_policy_spec *spec, struct cordon_policy **ret_policy,
			struct cordon_errors *errors);

#endif
