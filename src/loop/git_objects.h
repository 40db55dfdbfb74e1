/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Objects of a repository. One git per loop is asked for them (git cat-file --batch), and new ones are written here: a commit
 * of a story has a handful of them, and a git process for each kind would take longer than all the rest.
 *
 * INVARIANT: what is read may be hostile. An object that is there already is compared with the new one, byte by byte, because
 * two contents with one name can be made.
 */
#ifndef CORDON_LOOP_GIT_OBJECTS_H
#define CORDON_LOOP_GIT_OBJECTS_H

#include "base/arena.h"
#include "git/repo.h"

struct cordon_loop;

/* ---- git_objects.c ---- */

/* Reads the object that `name` means, an id or ID^{tree}; -ENOENT when there is none, -EBADMSG when it is of another type.
 * ret_id may be NULL. */
int cordon_loop_object_read(struct cordon_loop *loop, const char *name, const char *type, size_t max,
			    char ret_id[CORDON_GIT_ID_SIZE], struct cordon_buf *ret_content, struct cordon_error *err);
/* Writes an object to a directory of objects, unless the repository has it, and names it. */
int cordon_loop_object_write(struct cordon_loop *loop, int objects_fd, const char *type, const void *content, size_t n,
			     char ret_id[static CORDON_GIT_ID_SIZE], struct cordon_error *err);

/* ---- git_trees.c ---- */

struct cordon_git_tree;

/* A tree that is changed in memory. What is not changed is not read. */
struct cordon_git_trees {
	struct cordon_loop *loop;
	struct cordon_arena *arena;
	struct cordon_git_tree *root;
	struct cordon_error *err;
};

/* Begins with the tree of a commit, or with an empty one (""). */
int cordon_git_trees_open(struct cordon_loop *loop, const char *commit, struct cordon_git_trees *ret,
			  struct cordon_error *err);
void cordon_git_trees_close(struct cordon_git_trees *trees);
/* `path` becomes a file or a link with this content, whatever was there, or goes. */
int cordon_git_trees_set(struct cordon_git_trees *trees, const char *path, unsigned int mode, const char *id);
int cordon_git_trees_remove(struct cordon_git_trees *trees, const char *path);
/* Writes what was changed, and names the tree. Directories that are empty now go. */
int cordon_git_trees_write(struct cordon_git_trees *trees, int objects_fd, char ret_id[static CORDON_GIT_ID_SIZE]);

/* What differs between two commits ("": none), as `git update-index -z --index-info` reads it. */
int cordon_git_trees_compare(struct cordon_loop *loop, const char *from, const char *to, struct cordon_buf *ret,
			     struct cordon_error *err);

#endif
