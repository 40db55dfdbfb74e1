/* SPDX-License-Identifier: Apache-2.0 */
/* What the files that compare a view with the root share. */
#ifndef CORDON_VIEW_DELTA_INTERNAL_H
#define CORDON_VIEW_DELTA_INTERNAL_H

#include "view/delta.h"
#include "view/known.h"

struct cordon_walk {
	struct cordon_delta *delta;
	struct cordon_lower layers; /* without the root; only if all of them are applied */
	struct cordon_known known;
	struct cordon_buf hidden; /* whiteouts of ours (hide.h), where the run was killed or lives */
	size_t most;		  /* changes; one more ends the walk */
	bool ended;
	bool doubts; /* some change has `doubt` */
	struct cordon_error *err;
};

/* Two directories with one path: in the upper layer and below it. Either may be missing. */
struct cordon_level {
	const char *path;
	int upper; /* -1: the view deletes the directory */
	const struct cordon_lower *lower;
	bool opaque;  /* what the host has here is hidden, and so deleted */
	bool moved;   /* the host put this directory here after the view began; nothing in it is as it was */
	bool changed; /* the host made or removed an entry after the view began */
	unsigned int depth;
};

/* Whether two files have the same bytes from here on. */
int cordon_delta_same_bytes(int a, int b, bool *ret_same);

/* ---- delta_host.c: what the host did since the view began ---- */

/* Whether the host changed what is at a path, or put it there. `dir` is the directory in which it lies. */
bool cordon_host_edited(const struct cordon_walk *walk, const struct cordon_level *level, const char *path,
			const struct cordon_ident *old, int dir);
/* Finds out what happened to the host's directory of a level that lies in `parent`. Returns -errno if it can't be read. */
int cordon_host_look(const struct cordon_walk *walk, const struct cordon_level *parent, struct cordon_level *level);
/* Whether the host made its directory of a level after the view began. */
bool cordon_host_made(const struct cordon_walk *walk, const struct cordon_level *level);
/* Decides which permission bits a file or directory gets that both sides have; new.mode has those of the view before. */
void cordon_host_settle_mode(const struct cordon_walk *walk, struct cordon_delta_change *change);

/* ---- delta_gone.c: what the host removed since the view began ---- */

/* Looks whether a file that only the view has is one that the host removed, or else sets `doubt`. */
void cordon_gone_look(struct cordon_walk *walk, const struct cordon_level *level, const char *name,
		      struct cordon_delta_change *change);
/* Settles the doubts when the whole list of changes is there. */
int cordon_gone_settle(struct cordon_walk *walk, const struct cordon_view *view);

#endif
