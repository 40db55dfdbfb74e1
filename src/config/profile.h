/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Profiles: policy files with a name (cordon-profile(1)). A profile says what a program needs beyond the workspace:
 * the program itself, the directories of the home that it keeps its state in, and variables.
 *
 * cordon ships profiles, and a user has own ones in $CORDON_HOME/profiles; an own one replaces a shipped one of the
 * same name. INVARIANT: a profile is found by its name in one of these two directories and nowhere else, so nothing
 * that an agent can write becomes a profile.
 */
#ifndef CORDON_CONFIG_PROFILE_H
#define CORDON_CONFIG_PROFILE_H

#include "base/arena.h"
#include "config/policy_file.h"
#include "policy/shares.h"

#define CORDON_PROFILE_NAME_MAX 64
#define CORDON_PROFILES_MAX 16

/* Lower-case letters, digits, `_`, `.` and `-`; begins with a letter or digit. */
int cordon_profile_name_check(const char *name, struct cordon_error *err);

struct cordon_profile_dirs {
	char shipped[CORDON_PATH_MAX]; /* "" when there is none */
	char own[CORDON_PATH_MAX];     /* $CORDON_HOME/profiles; "" when there is none */
	char home[CORDON_PATH_MAX];    /* the user's home, canonical; "" when there is none */
};

/* Finds the directories. Makes nothing. */
void cordon_profile_dirs_find(struct cordon_profile_dirs *ret_dirs);

/* Finds a profile's file. -ENOENT of kind not_found suggests the nearest name. */
int cordon_profile_find(const struct cordon_profile_dirs *dirs, const char *name, char ret_path[static CORDON_PATH_MAX],
			bool *ret_own, struct cordon_error *err);
int cordon_profile_load(const struct cordon_profile_dirs *dirs, const char *name, struct cordon_policy_file **ret_file,
			struct cordon_errors *errors);

struct cordon_profile_entry {
	char name[CORDON_PROFILE_NAME_MAX + 1];
	bool own;
};
/* All names, sorted, each once. The caller frees the array. */
int cordon_profile_list(const struct cordon_profile_dirs *dirs, struct cordon_profile_entry **ret_entries,
			size_t *ret_n, struct cordon_error *err);

/* ---- what a profile gives to a run ---- */

/* Everything belongs to the caller. */
struct cordon_profile_ask {
	const char *home; /* the user's home on the host, canonical; "" when there is none */
	const char *path; /* the caller's PATH, or NULL */
	const char *root; /* the workspace on the host, canonical: nothing in it decides what the run sees */
	/* A host directory that has the state instead of the user's home, such as one for each workspace; NULL: the
	 * user's own. */
	const char *state_dir;
	const char *run_home; /* the host directory that becomes the run's home; NULL: a private one */
	bool make;	      /* make missing state directories, with mode 0700 */
};

/* All memory belongs to the arena. */
struct cordon_profile_use {
	struct cordon_arena *arena;
	struct cordon_share *shares;
	size_t n_shares;
	char **env; /* NAME=VALUE */
	size_t n_env;
	char **home_env; /* NAME=PATH below the run's home */
	size_t n_home_env;
	char **keep_env; /* names, and beginnings of names with a star */
	size_t n_keep_env;
	char *path; /* directories for the front of PATH, separated by colons; NULL: none */
};

/*
 * Collects what profiles and policy files (`program`, `state`, `private`, `env`, `keep_env`, `share`) give to a run. What a profile
 * names and this machine does not have is left out. `profile` says which name messages use for each file.
 */
int cordon_profile_collect(const struct cordon_policy_file *file, const char *profile,
			   const struct cordon_profile_ask *ask, struct cordon_profile_use *use,
			   struct cordon_error *err);
void cordon_profile_use_done(struct cordon_profile_use *use);

/* The same for one program, which is found on the caller's PATH or has an absolute path: its links, its package or file, and its interpreter.
 * 1 when it was found, 0 when there is none. */
int cordon_profile_program(const char *name, const char *where, const struct cordon_profile_ask *ask,
			   struct cordon_profile_use *use, struct cordon_error *err);
/* Finds a program as a shell would on this PATH, outside the workspace; `ret` is its path as found, links included. */
bool cordon_program_on_path(const char *name, const char *path, const char *root, char ret[static CORDON_PATH_MAX]);
/* Whether every run sees this canonical host path, because it is part of the system. */
bool cordon_is_system_path(const char *path);

/* For the parts of this module. */
int cordon_profile_add_share(struct cordon_profile_use *use, const struct cordon_share *share, struct cordon_error *err);
int cordon_profile_add_text(struct cordon_profile_use *use, char ***list, size_t *n, char *text,
			    struct cordon_error *err);

#endif
