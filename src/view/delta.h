/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a view changed: its upper layer compared with the root as it is now, or with the views below it (lower.h).
 *
 * INVARIANT: the run made the upper layer, and may have made it to attack whoever reads it. Everything is opened by
 * descriptor from its directory, no link is followed, nothing waits, and only regular files, links and directories come
 * out. A whiteout or an opaque directory, whoever made it, is a list of deletions, and each is judged like one.
 */
#ifndef CORDON_VIEW_DELTA_H
#define CORDON_VIEW_DELTA_H

#include <sys/stat.h>

#include "base/arena.h"
#include "base/buf.h"
#include "view/view.h"

#define CORDON_DELTA_CHANGES_MAX 2000000
#define CORDON_DELTA_DEPTH_MAX 200

typedef enum cordon_delta_kind {
	CORDON_DELTA_ADDED,
	CORDON_DELTA_DELETED,
	CORDON_DELTA_MODIFIED, /* other content, another mode, or another type */
	CORDON_DELTA_TOUCHED,  /* the same content with other times or attributes */
} cordon_delta_kind;

/* Which file it is, and in which state. */
struct cordon_ident {
	mode_t mode; /* with the type; 0: nothing is there */
	uint64_t dev, ino, size;
	struct timespec mtime, ctime;
	uid_t uid;
	gid_t gid;
};

struct cordon_delta_change {
	const char *path; /* relative to the root */
	cordon_delta_kind kind;
	struct cordon_ident old; /* on the host, now, or in a layer below the view */
	struct cordon_ident new; /* in the upper layer; the mode is the one that it gets on the host */
	mode_t base_mode;	 /* of a file or directory that both sides have: when the view began; 0: not known */
	const char *who;	 /* the program of the host that would execute it later, or NULL */
	bool edited;		 /* the host changed, made or removed it after the view began */
	bool gone;		 /* `edited`: the view changed a file that the host has removed */
	bool fresh;	  /* ADDED, where the host has the directory: the host had no such file, as far as is known */
	bool copied;	  /* ADDED: the kernel copied it from a file of the host's */
	bool doubt;	  /* ADDED: its directory alone does not show whether it is `gone` or `fresh` */
	bool mode_edited; /* `edited`: both changed the permission bits of a file, and not to the same */
	bool of_layer;	  /* `old` lies in a layer below the view, and not on the host */
	bool set_id;	  /* had a bit that does not come out: set-user-id, set-group-id or sticky */
	bool attributes;  /* TOUCHED: attributes differ, not only times */
	uint32_t links;	  /* in the upper layer */
};

/* What never comes out of a view, and why. */
struct cordon_delta_left {
	const char *path;
	const char *what; /* "a device", ... */
};

/* A directory below the upper layer of a view (lower.h): that of each layer that has a part of it, topmost first, and
 * of the root, or -1. */
struct cordon_lower {
	int layer[CORDON_VIEW_LAYERS_MAX];
	size_t n;
	int root;
};

struct cordon_delta {
	struct cordon_arena *arena;
	int upper_fd, root_fd;
	struct cordon_lower base; /* what the view is compared with */
	bool stacked;		  /* views below it are not applied yet: `old` may be theirs, and not the host's */
	struct timespec since;
	struct cordon_delta_change *changes; /* parents before what is in them, by name */
	size_t n, cap;
	struct cordon_delta_left *left;
	size_t n_left, left_cap;
	size_t n_executes; /* changes with `who` */
};

/* clang-format off */
#define CORDON_DELTA_NONE { .upper_fd = -1, .root_fd = -1, .base = { .root = -1 } }
/* clang-format on */
#define autodelta CORDON_CLEANUP(cordon_delta_done)

/* Compares. The view need not be locked; of a live one the answer may be old at once. */
int cordon_delta_find(const struct cordon_view *view, struct cordon_delta *ret_delta, struct cordon_error *err);
/* The same for who only wants to know about how much there is: stops after `most` changes, and then *ret_more is
 * true. */
int cordon_delta_find_most(const struct cordon_view *view, size_t most, struct cordon_delta *ret_delta, bool *ret_more,
			   struct cordon_error *err);
void cordon_delta_done(struct cordon_delta *delta);

/* Reads the content of a regular file, or the target of a link, before (`old`) or after the change. A side that has
 * nothing, or a directory, is empty. -E2BIG when there is more than the buffer may hold. */
int cordon_delta_read(const struct cordon_delta *delta, const struct cordon_delta_change *change, bool old,
		      struct cordon_buf *ret_content, struct cordon_error *err);

/* Opens a regular file of the upper layer, or a link (O_PATH). A descriptor or -errno. */
int cordon_delta_open(const struct cordon_delta *delta, const struct cordon_delta_change *change, struct stat *ret_st);

/* Whether a path is one of `paths` or lies below one; all paths are when there are none. */
bool cordon_delta_named(const char *path, const char *const *paths, size_t n);

/* Whether a change at the time `time`, by the clock of file times, came after the start of a view, or may have. */
bool cordon_delta_later(const struct timespec *time, const struct timespec *since);

void cordon_ident_of(const struct stat *st, struct cordon_ident *ret_ident);
/* Whether these are the same file, with the same size, mode and time of the last change to its content. */
bool cordon_ident_same(const struct cordon_ident *a, const struct cordon_ident *b);

#endif
