/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The settings of a run, one row each: its option on the command line, its key in a policy file and in a file of
 * agents, what values it may have, its default, and what makes it wider. Whoever reads settings finds them here, and
 * recipe/recipe.h says what becomes of them. The table is in config/ and not in recipe/, because libcordon reads
 * policy files.
 *
 * To add a setting that is a number, a word or a flag: an id, a row, and a member of struct cordon_run_spec that the
 * row names. Options, keys of files, settings of projects, JSON Schemas and completions follow from the row. Its text
 * for manual pages is in man/settings.mdoc.
 */
#ifndef CORDON_CONFIG_RECIPE_TABLE_H
#define CORDON_CONFIG_RECIPE_TABLE_H

#include <jansson.h>

#include "base/option.h"
#include "config/reader.h"

/* In the order of help texts, and of the keys that messages list. */
typedef enum cordon_recipe_id {
	CORDON_RECIPE_VERSION,
	CORDON_RECIPE_ROOT,
	CORDON_RECIPE_WORKSPACE,
	CORDON_RECIPE_WRITE,
	CORDON_RECIPE_PRESET,
	CORDON_RECIPE_MODE,
	CORDON_RECIPE_RW,
	CORDON_RECIPE_RO,
	CORDON_RECIPE_DENY,
	CORDON_RECIPE_DENY_SECRETS,
	CORDON_RECIPE_WITHIN,
	CORDON_RECIPE_READ_ONLY,
	CORDON_RECIPE_PROTECT,
	CORDON_RECIPE_UNPROTECT,
	CORDON_RECIPE_DEFAULT_PROTECT,
	CORDON_RECIPE_POLICY,
	CORDON_RECIPE_PROFILE,
	CORDON_RECIPE_AT,
	CORDON_RECIPE_HOME,
	CORDON_RECIPE_SHARE,
	CORDON_RECIPE_NET,
	CORDON_RECIPE_PROGRAM,
	CORDON_RECIPE_ENV,
	CORDON_RECIPE_KEEP_ENV,
	CORDON_RECIPE_LIMITS, /* the mapping that has the limits in a file */
	CORDON_RECIPE_TIMEOUT,
	CORDON_RECIPE_GRACE,
	CORDON_RECIPE_MEMORY,
	CORDON_RECIPE_PIDS,
	CORDON_RECIPE_CPUS,
	CORDON_RECIPE_TMP_SIZE,
	CORDON_RECIPE_NICE,
	CORDON_RECIPE_LENS,
	CORDON_RECIPE_EDITOR_TEMPS,
	CORDON_RECIPE_BEST_EFFORT,
	CORDON_RECIPE_COW,
	CORDON_RECIPE_GIT,
	CORDON_RECIPE_FAIL_ON_VIOLATION,
	CORDON_RECIPE_DESCRIPTION,
	CORDON_RECIPE_STATE,
	CORDON_RECIPE_PRIVATE,
	CORDON_RECIPE_ARGV,
	CORDON_RECIPE_ARGV_HINT,
	CORDON_RECIPE__MAX
} cordon_recipe_id;

/* Commands, of which each has the options of the rows that name it. */
enum {
	CORDON_RECIPE_OF_RUN = 1 << 0,
	CORDON_RECIPE_OF_QUESTIONS = 1 << 1, /* check, why, tree */
	CORDON_RECIPE_OF_LEARN = 1 << 2,
	CORDON_RECIPE_OF_LOOP = 1 << 3,
	CORDON_RECIPE_OF_GIT = 1 << 4,	    /* git check, git hook */
	CORDON_RECIPE_OF_FOLDERS = 1 << 5,  /* what works on a list of folders */
	CORDON_RECIPE_OF_MODES = 1 << 6,    /* of these, what judges by a mode */
	CORDON_RECIPE_OF_SECTION = 1 << 7,  /* prompt-section */
	CORDON_RECIPE_OF_ROOTS = 1 << 8,    /* what needs the repository alone */
	CORDON_RECIPE_OF_PROJECTS = 1 << 9, /* project create, import and update */
	CORDON_RECIPE_OF_EXECUTE = 1 << 10, /* what counts instead of an agent's own */
};

typedef enum cordon_recipe_type {
	CORDON_RECIPE_OTHER, /* whoever reads it knows */
	CORDON_RECIPE_RULE, /* a text that becomes a rule of the policy (config/policy_build.h); there may be several */
	/* These are kept as numbers in struct cordon_recipe_values. */
	CORDON_RECIPE_FLAG,
	CORDON_RECIPE_NUMBER,
	CORDON_RECIPE_WORD,
} cordon_recipe_type;

/* What makes a value wider than another one. */
typedef enum cordon_recipe_widens {
	CORDON_RECIPE_NEVER,
	CORDON_RECIPE_ON,     /* a flag that is set */
	CORDON_RECIPE_OFF,    /* a flag that is not */
	CORDON_RECIPE_HIGHER, /* a limit: a higher number, or none, which is 0 */
	CORDON_RECIPE_LOWER,  /* a lower number */
	CORDON_RECIPE_GITS,   /* cordon_git_within() says */
} cordon_recipe_widens;

typedef int cordon_recipe_parse_fn(const char *text, uint64_t *ret_value, struct cordon_error *err);

struct cordon_recipe_row {
	struct cordon_option option; /* its name is NULL when there is none */
	const char *dashed;	     /* the name with its dashes */
	unsigned int commands;
	const char *key;     /* in a policy file; NULL: none */
	bool limit;	     /* it is below `limits` there */
	const char *agent;   /* the key in a file of agents, with `limits.` before it if it is below that; NULL: none */
	const char *project; /* the same in the settings of a project */
	uint64_t least, most; /* of a number in a project */
	uint64_t unit;	      /* what 1 in a project is here; 0: 1 */
	bool always;	      /* the record of a project has it also when it is 0 */
	cordon_recipe_type type;
	cordon_recipe_parse_fn *parse; /* of a number or a word */
	uint64_t initial;
	unsigned int rule; /* the kind of rule */
	bool once;	   /* a second option is an error */
	bool of_policy;	   /* what a file says of it becomes part of the policy, and counts nowhere else */
	cordon_recipe_widens widens;
	const char *wider; /* for messages about an agent that extends another: why it is wider */
	bool planned;	   /* plans and results show it among the limits when it is not 0 */
	size_t spec, size; /* the member of struct cordon_run_spec that gets the value; size 0: none */
};

extern const struct cordon_recipe_row cordon_recipe_rows[CORDON_RECIPE__MAX];

/* The values of a file, an agent or a command line, by their ids. */
struct cordon_recipe_values {
	uint64_t of[CORDON_RECIPE__MAX];
	const char *where[CORDON_RECIPE__MAX]; /* who set it; NULL: nobody did */
};

static inline uint64_t cordon_recipe_value(const struct cordon_recipe_values *values, cordon_recipe_id id)
{
	return values->where[id] ? values->of[id] : cordon_recipe_rows[id].initial;
}

/* Takes what a file says where nobody before said something; of flags any that is not the default counts. */
void cordon_recipe_values_add(struct cordon_recipe_values *values, const struct cordon_recipe_values *from);
/* Reads a value at a node, and reports a wrong one there. `name` is for messages; `parse` NULL: the row's own. Returns
 * 0 or -ENOMEM. */
int cordon_recipe_read(const struct cordon_reader *reader, const struct cordon_node *node, const char *name,
		       cordon_recipe_id id, cordon_recipe_parse_fn *parse, struct cordon_recipe_values *values);

/* What follows `limits.` in the key of an agent or a project; NULL when it does not begin so. */
const char *cordon_recipe_limit(const char *key);

/* The setting of a project with this key, below `limits` or not; CORDON_RECIPE__MAX when there is none. */
cordon_recipe_id cordon_recipe_of_project(const char *key, bool limit);
/* The value of a setting in JSON, in the unit of projects. "default" is the word for 0. Returns -EINVAL for a value of
 * another type or an unknown word, with an error about it (kind usage). */
int cordon_recipe_from_json(cordon_recipe_id id, const json_t *value, uint64_t *ret_value, struct cordon_error *err);
json_t *cordon_recipe_to_json(cordon_recipe_id id, uint64_t value);

struct cordon_run_spec;
/* Puts the values into the members that have them. */
void cordon_recipe_values_put(const struct cordon_recipe_values *values, struct cordon_run_spec *spec);

/* Whether the value may stand where the outer one holds; *ret_why says why not. A value that nobody set may. */
bool cordon_recipe_narrow_value(const struct cordon_recipe_values *values, const struct cordon_recipe_values *outer,
				cordon_recipe_id id, const char **ret_why);

#endif
