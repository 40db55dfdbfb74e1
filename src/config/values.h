/* SPDX-License-Identifier: Apache-2.0 */
/* Parses values that occur both in options and in the policy file, with one set of rules for both. */
#ifndef CORDON_CONFIG_VALUES_H
#define CORDON_CONFIG_VALUES_H

#include "base/error.h"

#define CORDON_PIDS_MAX 4194304 /* PID_MAX_LIMIT of the kernel */
#define CORDON_TIMEOUT_MAX_MS (UINT64_C(366) * 24 * 3600 * 1000)
#define CORDON_MEMORY_MIN (UINT64_C(1) << 20)
#define CORDON_CPUS_MAX UINT64_C(8192)
#define CORDON_CPU_MILLIS_MIN 10 /* the smallest quota that the kernel allows */

/* PATH of every run; more directories may come before these. */
#define CORDON_SANDBOX_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

/* "DIR[:PATH][:ro]"; `\:` is a colon in a name. */
struct cordon_share_value {
	char *source; /* as written */
	char *target; /* clean, absolute or "~/..." in the run's home; NULL: the same place as the source */
	bool read_only;
};

/* What a run may do with the repository in its root. DEFAULT is for whoever was not asked: see git/git.h. */
typedef enum cordon_git_mode {
	CORDON_GIT_DEFAULT,
	CORDON_GIT_NONE,   /* there is no git directory inside */
	CORDON_GIT_READ,   /* it can't be changed */
	CORDON_GIT_COMMIT, /* the run has one of its own, and its commits are taken over */
	CORDON_GIT__MAX
} cordon_git_mode;

/* Errors are of kind `usage` and about the value only; the caller puts the option or the place before them. */
int cordon_mode_parse(const char *s, cordon_mode *ret_mode, struct cordon_error *err);
int cordon_lens_parse(const char *s, cordon_lens_use *ret_lens, struct cordon_error *err);
int cordon_git_parse(const char *s, cordon_git_mode *ret_git, struct cordon_error *err);
/* Whether a run in the mode `inner` can do nothing with the repository that one in the mode `outer` can't. By default a run
 * works in the repository itself, which is the most. */
bool cordon_git_within(cordon_git_mode inner, cordon_git_mode outer);
/* "none", "read", "commit"; "" for the default. */
const char *cordon_git_mode_name(cordon_git_mode git);
int cordon_share_parse(const char *s, struct cordon_share_value *ret_share, struct cordon_error *err);
void cordon_share_done(struct cordon_share_value *share);
/* A letter or underscore, then letters, digits and underscores. */
int cordon_env_name_check(const char *name, size_t len, struct cordon_error *err);
/* The same, or the beginning of such names and a star: "NPM_*". */
int cordon_env_pattern_check(const char *text, struct cordon_error *err);
/* What follows "~/" or "$HOME/" in a path; NULL when it begins with neither. "" for "~" and "$HOME" alone. */
const char *cordon_home_rest(const char *path);
/* The limits; nothing may be 0. "2" or "0.5" CPUs to thousandths. */
int cordon_timeout_parse(const char *s, uint64_t *ret_ms, struct cordon_error *err);
int cordon_memory_parse(const char *s, uint64_t *ret_bytes, struct cordon_error *err);
int cordon_pids_parse(const char *s, uint64_t *ret_pids, struct cordon_error *err);
int cordon_cpus_parse(const char *s, uint64_t *ret_millis, struct cordon_error *err);

#endif
