/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The options of commands that run an agent (run, learn) or answer questions about one (check, why, tree), merged with
 * the settings of a policy file.
 */
#ifndef CORDON_CLI_RUN_OPTIONS_H
#define CORDON_CLI_RUN_OPTIONS_H

#include "cli/reports.h"
#include "cli/scope.h"
#include "config/values.h"

enum cordon_run_key {
	CORDON_RUN_AT = 800,
	CORDON_RUN_ENV,
	CORDON_RUN_KEEP_ENV,
	CORDON_RUN_HOME,
	CORDON_RUN_SHARE,
	CORDON_RUN_PROGRAM,
	CORDON_RUN_TIMEOUT,
	CORDON_RUN_GRACE,
	CORDON_RUN_MEMORY,
	CORDON_RUN_PIDS,
	CORDON_RUN_CPUS,
	CORDON_RUN_TMP_SIZE,
	CORDON_RUN_LENS,
	CORDON_RUN_BEST_EFFORT,
	CORDON_RUN_REPORTS,
	CORDON_RUN_FAIL_ON_VIOLATION,
	CORDON_RUN_COW,
	CORDON_RUN_GIT,
	CORDON_RUN__END,
};

/* clang-format off */
#define CORDON_SHARE_OPTIONS \
	{ "at", 0, CORDON_ARG_TEXT, "PATH", "where the agent sees the root (default: the same path)", CORDON_RUN_AT }, \
	{ "home", 0, CORDON_ARG_DIR, "DIR", "home directory that stays (default: private and empty)", CORDON_RUN_HOME }, \
	{ "share", 0, CORDON_ARG_DIR, "DIR[:PATH][:ro]", "show another host directory (repeatable)", CORDON_RUN_SHARE }, \
	CORDON_SCOPE_NET_OPTION
#define CORDON_CALL_OPTIONS \
	CORDON_SHARE_OPTIONS, \
	{ "program", 0, CORDON_ARG_TEXT, "PROGRAM", "show a program of the caller's PATH with its package (repeatable)", CORDON_RUN_PROGRAM }, \
	{ "env", 0, CORDON_ARG_TEXT, "NAME=VALUE", "set a variable (repeatable)", CORDON_RUN_ENV }, \
	{ "keep-env", 0, CORDON_ARG_TEXT, "NAME", "pass a variable on; NAME_* passes all that begin so (repeatable)", CORDON_RUN_KEEP_ENV }, \
	{ "timeout", 0, CORDON_ARG_TEXT, "DURATION", "end the run after this time (90, 90s, 1500ms, 2m, 1h)", CORDON_RUN_TIMEOUT }, \
	{ "grace", 0, CORDON_ARG_TEXT, "DURATION", "time between SIGTERM and SIGKILL (default: 5s)", CORDON_RUN_GRACE }, \
	{ "memory", 0, CORDON_ARG_TEXT, "SIZE", "memory of the whole run (512M, 2G)", CORDON_RUN_MEMORY }, \
	{ "pids", 0, CORDON_ARG_TEXT, "N", "processes and threads of the run", CORDON_RUN_PIDS }, \
	{ "cpus", 0, CORDON_ARG_TEXT, "N", "CPUs the run may use (2, 0.5)", CORDON_RUN_CPUS }, \
	{ "tmp-size", 0, CORDON_ARG_TEXT, "SIZE", "bytes of the private /tmp, /run and home (default: 2G)", CORDON_RUN_TMP_SIZE }
#define CORDON_RUN_OPTIONS \
	CORDON_CALL_OPTIONS, \
	{ "reports", 0, CORDON_ARG_TEXT, "now|end|file:PATH", "when or where reports are printed (default: end on a terminal, else now)", \
	  CORDON_RUN_REPORTS }
/* clang-format on */

/* A list of strings that grows with the options. */
struct cordon_run_list {
	char **items;
	size_t n;
};

/* Initialise it with zeroes and the command's table of options, which error messages name. */
struct cordon_run_options {
	const struct cordon_option *table;
	struct cordon_scope scope;
	struct cordon_run_spec spec; /* what the run asks for; the caller sets its policy and command */
	const char *home;
	struct cordon_run_list env, keep_env, programs; /* the shares of the spec, once they are merged */
	struct cordon_share_value *shares;
	size_t n_shares;
	bool lens_given;
	bool cow;			   /* the run works in a copy-on-write view */
	cordon_git_mode git;		   /* what the run may do with the repository */
	struct cordon_profile_use profile; /* what the profiles give */
	cordon_reports_when reports;
	const char *reports_path;
};

static inline bool cordon_run_options_own(int key)
{
	return cordon_scope_owns(key) || (key >= CORDON_RUN_AT && key < CORDON_RUN__END);
}

int cordon_run_options_set(struct cordon_run_options *options, int key, const char *arg, struct cordon_error *err);
void cordon_run_options_done(struct cordon_run_options *options);

typedef enum cordon_run_use {
	CORDON_RUN_ASKS,   /* a question: a share that is missing on this machine is left out */
	CORDON_RUN_PLANS,  /* a missing share is an error; nothing is made */
	CORDON_RUN_STARTS, /* the same; the state directories of profiles are made */
} cordon_run_use;

/* Builds the policy with its shares, which is also set in the spec. Returns 0, or an exit code after having printed
 * every error. */
int cordon_run_options_policy(struct cordon_cli *cli, struct cordon_run_options *options, cordon_run_use use,
			      struct cordon_policy **ret_policy);
/* Adds the shares to another policy of the same root, made by cordon_scope_again(). */
int cordon_run_options_share(const struct cordon_run_options *options, struct cordon_policy *policy,
			     struct cordon_error *err);

#endif
