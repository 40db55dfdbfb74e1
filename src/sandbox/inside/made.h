/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a run made in directories of boundaries. There the hand opens for writing, links, moves, replaces and removes only
 * what the run made, or what was there when it started: anything else is the host's, and may be about to become a boundary
 * (an editor saves by a temporary name and renames it). An inode number alone says too little, because file systems use
 * it again at once, and a time alone falls to a clock that is set back; so both must fit, and for what the run made the file
 * handle, too. What stands at a name that was
 * there at the start counts as well: a name by which something is saved is a new one.
 */
#ifndef CORDON_SANDBOX_INSIDE_MADE_H
#define CORDON_SANDBOX_INSIDE_MADE_H

#include "sandbox/inside/spot.h"

/* Remembers that the run made, or brought in, what `fd` is open on, or what has this name. */
void cordon_made_add(struct cordon_hand_memory *memory, int fd, const char *name);
/* Forgets what had this number, and is gone from the directories of boundaries. */
void cordon_made_forget(struct cordon_hand_memory *memory, uint64_t ino);
/* Whether what exists at a spot in a directory of a boundary is of the run, or was there at its start. */
bool cordon_made_knows(const struct cordon_hand_memory *memory, const struct cordon_plan *plan,
		       const struct cordon_spot *spot);

#endif
