/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A PRD, a JSON file of user stories (cordon-prd(5)): reading it with all errors in one pass, the order in which stories
 * can be done, the fileScope that folders stand for, and edits that leave every other byte of the file alone.
 *
 *     {"project": "shop", "branchName": "feature/cart", "workspace": {"folders": ["lib"], "mode": "strict"},
 *      "userStories": [{"id": "US-001", "title": "Cart", "dependencies": [], "passes": false, "fileScope": ["lib/**"]}]}
 *
 * Keys that are not known are kept and have no effect, because other programs use them; a key that looks like a mistyped
 * one is told as a notice. Only the keys of `workspace` and `parallelization` must be known.
 */
#ifndef CORDON_CONFIG_PRD_H
#define CORDON_CONFIG_PRD_H

#include <jansson.h>

#include "base/buf.h"
#include "config/document.h"

#define CORDON_PRD_SIZE_MAX (4u << 20)
#define CORDON_PRD_DEPTH_MAX 2048 /* the limit of jansson */
#define CORDON_PRD_STORIES_MAX 10000
#define CORDON_PRD_WORKERS_MAX 64
#define CORDON_PRD_ID_MAX 128

/* ---- the model ---- */

/* Optional texts are NULL when they are absent or null. All strings belong to the PRD. */
struct cordon_prd_story {
	const char *id; /* unique, printable, without a slash, begins with neither '.' nor '-': it can name a file */
	const char *title;
	const char *description;
	const char *notes;
	const char *model;	/* suggestedModel */
	const char *complexity; /* simple, medium or complex; medium when the file does not say */
	const char **criteria;	/* acceptanceCriteria */
	size_t n_criteria;
	int64_t priority;
	bool has_priority;
	bool passes;
	size_t *deps; /* indices of stories, each once, in the order of the file */
	size_t n_deps;
	const char **scope; /* fileScope as written, each a pattern of the grammar; absent, null and [] are n_scope 0 */
	size_t n_scope;
	const struct cordon_node *node; /* for errors that others find in it */
};

/* Stories that wait for each other: each depends on the next, and the last one on the first. */
struct cordon_prd_cycle {
	size_t *stories;
	size_t n;
};

struct cordon_prd {
	const char *project;
	const char *branch; /* branchName, a valid name of a branch */
	const char *description;
	const char *source_project;
	bool parallel_enabled;	  /* true when the file does not say */
	unsigned int max_workers; /* 0: the file does not say */
	const char *default_model;
	const char *model_strategy;
	bool has_workspace;
	const char **folders; /* none: the file names none, which means all that the caller has */
	size_t n_folders;
	const char *preset;
	bool has_mode;
	cordon_mode mode;
	const struct cordon_node *workspace; /* for errors that others find in it; or NULL */
	struct cordon_prd_story *stories;
	size_t n_stories;
	struct cordon_prd_cycle *cycles; /* none, unless they were allowed */
	size_t n_cycles;
	const char **notices; /* "file:line:column: ...": what has no effect and looks like a mistake */
	size_t n_notices;
	struct cordon_document *doc;
};

/* With CYCLES_ALLOWED cycles are no errors, but in `cycles`. */
enum { CORDON_PRD_CYCLES_ALLOWED = 1 };

/* Reads a PRD. `name` is for messages. Finds all errors, cycles included; `errors` must not be NULL. */
int cordon_prd_read(const char *name, const char *text, size_t len, struct cordon_prd **ret_prd,
		    struct cordon_errors *errors);
/* The same from a file, which must be regular and not a link. A missing one is an error of kind not_found. */
int cordon_prd_load(const char *path, struct cordon_prd **ret_prd, struct cordon_errors *errors);
int cordon_prd_read_flags(const char *name, const char *text, size_t len, unsigned int flags,
			  struct cordon_prd **ret_prd, struct cordon_errors *errors);
int cordon_prd_load_flags(const char *path, unsigned int flags, struct cordon_prd **ret_prd,
			  struct cordon_errors *errors);
struct cordon_prd *cordon_prd_free(struct cordon_prd *prd);
void cordon_prd_freep(struct cordon_prd **prd);
#define autoprd CORDON_CLEANUP(cordon_prd_freep)

/* Finds the stories that are ready: not passed, and everything they depend on passed. `ret_indices` has room for all
 * stories. The lower priority number comes first, stories without one last, and ties are in the order of the file. Returns
 * how many there are. */
size_t cordon_prd_ready(const struct cordon_prd *prd, size_t *ret_indices);
/* The index of a story; -ENOENT with kind not_found, and the nearest id as a hint. */
int cordon_prd_find(const struct cordon_prd *prd, const char *id, size_t *ret_index, struct cordon_error *err);
/* Marks everything that a story depends on, directly or not. `ret_marks` has n_stories entries, all false. */
int cordon_prd_mark_deps(const struct cordon_prd *prd, size_t story, bool *ret_marks);
/* Fills `cycles`, each cycle found once; in the memory of the document. Used by the reader. */
int cordon_prd_find_cycles(struct cordon_prd *prd);

/* The JSON Schema of a PRD, as text. */
extern const char cordon_prd_schema[];

/* ---- fileScope ---- */

enum { CORDON_SCOPE_WITH_FOLDER = 1 };

/* The characters of an extension that is added to an inferred scope. */
#define CORDON_PRD_EXTENSION "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_+-"

/*
 * Returns the patterns of each folder as a JSON array of strings: every file below it that ends in .sh .js .ts .py
 * .json .md .yaml .yml, then `FOLDER/` with CORDON_SCOPE_WITH_FOLDER. Folders are relative to the repository root,
 * as cordon_folder_resolve() returns them ("" is the root itself); a repeated one counts once. Special characters
 * are escaped, so that the patterns mean that folder. A name that is not UTF-8 cannot be written in JSON and is an
 * error.
 */
int cordon_prd_infer_scope(const char *const *folders, size_t n, unsigned int flags, json_t **ret_patterns,
			   struct cordon_error *err);
/* Whether the scope of a story is what cordon_prd_infer_scope() gives for these folders, perhaps followed by patterns
 * of the same form for other extensions (FOLDER/ **, then *.EXT), which 'cordon loop --update-scope write' adds. */
bool cordon_prd_scope_inferred(const struct cordon_prd_story *story, const char *const *folders, size_t n);

/* ---- edits ---- */

/* What one edit changes in the story `id`. */
struct cordon_prd_edit {
	const char *id;
	bool set_passes;
	bool passes;
	const char *notes;   /* UTF-8; NULL: unchanged */
	const json_t *scope; /* an array of strings; NULL: unchanged */
};

/* The ids of the stories that were changed, in the order of the file. */
struct cordon_prd_changes {
	char **ids;
	size_t n;
};
void cordon_prd_changes_done(struct cordon_prd_changes *changes);

/*
 * Applies all edits. Pure: text in, text out. `ret_text` (empty; its max bounds the result) gets the whole new text. The
 * changed stories were parsed again and compared: except for the edited values they equal the old ones, and all bytes
 * between stories are the same. A value that is already there stays as it is written. An unknown id, or one that two
 * stories have, is an error. Errors have line and column, and all are found in one pass.
 */
int cordon_prd_edit_text(const char *name, const char *text, size_t len, const struct cordon_prd_edit *edits, size_t n,
			 struct cordon_buf *ret_text, struct cordon_prd_changes *ret_changes,
			 struct cordon_errors *errors);
/* Sets `fileScope` in every story where it is absent, null or []. The same in all else. */
int cordon_prd_edit_scope(const char *name, const char *text, size_t len, const json_t *patterns,
			  struct cordon_buf *ret_text, struct cordon_prd_changes *ret_changes,
			  struct cordon_errors *errors);

/* The same in a file, as cordon_edit_file() edits: one atomic step under a lock. Writes only when a story changes. */
int cordon_prd_apply(const char *path, const struct cordon_prd_edit *edits, size_t n, struct cordon_errors *errors);
int cordon_prd_update_scope(const char *path, const json_t *patterns, struct cordon_prd_changes *ret_changes,
			    struct cordon_errors *errors);

#endif
