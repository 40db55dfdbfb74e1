/* SPDX-License-Identifier: Apache-2.0 */
/* The options of commands that run an agent (run, learn), and what a policy file says where no option does. */
#ifndef CORDON_CLI_RUN_OPTIONS_H
#define CORDON_CLI_RUN_OPTIONS_H

#include "cli/scope.h"
#include "config/values.h"
#include "sandbox/plan.h"

enum cordon_run_key {
	CORDON_RUN_AT = 800,
	CORDON_RUN_ENV,
	CORDON_RUN_KEEP_ENV,
	CORDON_RUN_HOME,
	CORDON_RUN_SHARE,
	CORDON_RUN_NET,
	CORDON_RUN_TIMEOUT,
	CORDON_RUN_GRACE,
	CORDON_RUN_MEMORY,
	CORDON_RUN_PIDS,
	CORDON_RUN_CPUS,
	CORDON_RUN_TMP_SIZE,
	CORDON_RUN_LENS,
	CORDON_RUN_BEST_EFFORT,
	CORDON_RUN__END,
};

/* clang-format off */
#define CORDON_RUN_OPTIONS \
	{ "at", 0, CORDON_ARG_TEXT, "PATH", "where the agent sees the root (default: the same path)", CORDON_RUN_AT }, \
	{ "env", 0, CORDON_ARG_TEXT, "NAME=VALUE", "set a variable (repeatable)", CORDON_RUN_ENV }, \
	{ "keep-env", 0, CORDON_ARG_TEXT, "NAME", "pass a variable on (repeatable)", CORDON_RUN_KEEP_ENV }, \
	{ "home", 0, CORDON_ARG_DIR, "DIR", "home directory that stays (default: private and empty)", CORDON_RUN_HOME }, \
	{ "share", 0, CORDON_ARG_DIR, "DIR[:PATH][:ro]", "show another host directory (repeatable)", CORDON_RUN_SHARE }, \
	{ "net", 0, CORDON_ARG_CHOICE, "host|none", "network: the host's, or only a loopback of its own", CORDON_RUN_NET }, \
	{ "timeout", 0, CORDON_ARG_TEXT, "DURATION", "end the run after this time (90, 90s, 1500ms, 2m, 1h)", CORDON_RUN_TIMEOUT }, \
	{ "grace", 0, CORDON_ARG_TEXT, "DURATION", "time between SIGTERM and SIGKILL (default: 5s)", CORDON_RUN_GRACE }, \
	{ "memory", 0, CORDON_ARG_TEXT, "SIZE", "memory of the whole run (512M, 2G)", CORDON_RUN_MEMORY }, \
	{ "pids", 0, CORDON_ARG_TEXT, "N", "processes and threads of the run", CORDON_RUN_PIDS }, \
	{ "cpus", 0, CORDON_ARG_TEXT, "N", "CPUs the run may use (2, 0.5)", CORDON_RUN_CPUS }, \
	{ "tmp-size", 0, CORDON_ARG_TEXT, "SIZE", "bytes of the private /tmp, /run and home (default: 2G)", CORDON_RUN_TMP_SIZE }
/* clang-format on */

/* A list of strings that grows with the options. */
struct cordon_run_list {
	char **items;
	size_t n;
};

/* Start from zeroes and the command's table of options, which errors name. */
struct cordon_run_options {
	const struct cordon_option *table;
	struct cordon_scope scope;
	const char *at, *home;
	struct cordon_run_list env, keep_env;
	struct cordon_share_value *shares;
	size_t n_shares;
	bool net_given;
	cordon_net net;
	uint64_t timeout_ms, grace_ms, memory, pids, cpus, tmp_size;
	bool best_effort;
	bool lens_given;
	cordon_lens_use lens;
};

static inline bool cordon_run_options_own(int key)
{
	return cordon_scope_owns(key) || (key >= CORDON_RUN_AT && key < CORDON_RUN__END);
}

int cordon_run_options_set(struct cordon_run_options *options, int key, const char *arg, struct cordon_error *err);
/* What the policy file says where no option does; lists add up, the file's entries first. After cordon_scope_build(). */
int cordon_run_options_merge(struct cordon_run_options *options, struct cordon_error *err);
void cordon_run_options_done(struct cordon_run_options *options);

/* A relative host directory of an option is relative to the current directory. */
int cordon_run_absolute(const char *path, char ret[static CORDON_PATH_MAX], struct cordon_error *err);

#endif
