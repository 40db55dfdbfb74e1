/* SPDX-License-Identifier: Apache-2.0 */
/* The attacker of the matrix: what its three tables (calls, spellings, targets) and its loop share. */
#ifndef MATRIX_H
#define MATRIX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* What stands in every content, attribute, name and link that no agent may learn. The host adds a random part. */
#define SECRET "S3CR3T-"
#define PATH_ROOM 8192

/* One name that cells attack. */
struct target {
	const char *path; /* relative to the root; "../outside" is allowed */
	char kind; /* 'b' boundary; 'g' a place where no link may appear; 'f', 'd', 'n' allowed: file, directory, missing name */
};

/* One way to say a name, ready to be used. */
struct spelled {
	int dirfd; /* AT_FDCWD, or what the path is relative to; a call that takes no descriptor can't use it then */
	char path[PATH_ROOM];
	int opened[3]; /* closed after the group */
	int count;
};

struct call {
	const char *name;
	int number;
	const char *args;
	uint64_t a, b;
	uint64_t resolve; /* for openat2 */
	char then;	  /* what is done with the result */
	bool core;	  /* takes part in the whole product; else only with the main spellings */
};

struct world {
	const char *root; /* as the attacker sees it */
	struct target *targets;
	int target_count;
	int deep; /* a directory whose path is longer than PATH_MAX */
	int deep_levels;
	pid_t child; /* a process that stands where it was told to */
	int child_in;
	const char *beside; /* where what the attacker owns lies, relative to the root */
	bool compare;	    /* on allowed paths: results and effects are told */
};

extern struct world world;

/* spellings.c */
extern const int spelling_count;
const char *spelling_name(int spelling);
bool spelling_is_main(int spelling);
/* Makes the links and directories that spellings use. */
void spellings_prepare(void);
/* Whether this target can be spelled so; done() closes what it opened and goes back to the root. */
bool spell(int spelling, int target, struct spelled *out);
void spelled_done(struct spelled *spelled);
/* Makes a link that a spelling goes through anew, where a cell removed or replaced it. */
void spelling_restore(int spelling, int target);

/* calls.c and tries.c */
int calls_prepare(void);
const struct call *call_at(int index);
/* The outcome of one call: -1 for "does not apply", 0 for success, else an errno. *ret_told is what went wrong in itself. */
int call_try(const struct call *call, const struct target *target, struct spelled *spelled, const char **ret_told);
/* Whether the outcome of a cell shows the secret. */
bool has_secret(const void *data, size_t size);

void die(const char *what) __attribute__((noreturn));

#endif
