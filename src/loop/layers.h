/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Results of stories as layers: the upper directories of views, each on top of the ones that were accepted before it.
 *
 * INVARIANT: agents made these directories. Everything is opened by component from a descriptor, no link is followed, and
 * nothing waits.
 */
#ifndef CORDON_LOOP_LAYERS_H
#define CORDON_LOOP_LAYERS_H

#include <sys/stat.h>

#include "base/arena.h"
#include "base/error.h"

#define CORDON_LAYER_ENTRIES_MAX 2000000
#define CORDON_LAYER_DEPTH_MAX 200

/* What an upper directory has at a path. */
struct cordon_layer_entry {
	const char *path;
	mode_t mode;   /* 0: a whiteout, which deletes what lies below */
	bool opaque;   /* a directory that hides what lower layers have in it */
	bool in_scope; /* the story's scope has it; set by whoever judges */
};

struct cordon_layer {
	struct cordon_arena *arena;
	struct cordon_layer_entry *items; /* by path; special files are left out */
	size_t n, cap;
};

#define autolayer CORDON_CLEANUP(cordon_layer_done)

/* Lists the upper directory. */
int cordon_layer_read(int upper_fd, struct cordon_layer *ret_layer, struct cordon_error *err);
void cordon_layer_done(struct cordon_layer *layer);

/* Returns a path at which both layers change something, so that one can't be put on top of the other; NULL when there is
 * none. That both have a directory, or delete the same name, is no conflict. */
const char *cordon_layer_conflict(const struct cordon_layer *a, const struct cordon_layer *b);

/* Moves everything from one upper directory to the one below it, so that the lower one shows what both together showed. It
 * may be killed and called again: the two together always show the same. */
int cordon_layer_merge(int from_fd, int to_fd, struct cordon_error *err);

/* Copies the entries that are in scope to an empty upper directory. */
int cordon_layer_copy(int from_fd, const struct cordon_layer *layer, int to_fd, struct cordon_error *err);

/* Opens what an entry names, by component: O_RDONLY for a file, O_PATH for a link. A descriptor or -errno. */
int cordon_layer_open(int upper_fd, const struct cordon_layer_entry *entry, struct stat *ret_st);

#endif
