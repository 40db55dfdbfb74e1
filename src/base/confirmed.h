/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The paths of the host that settings name: shares, shared areas, homes, allowances, the state of profiles. Agents have the
 * caller's uid, so whoever owns a directory says nothing about who put it there. What counts is what stood at the path
 * when a person said yes:
 *
 *     state/confirmed/<hash of the path>   the path as it is written, where it led, and the identity of what was there
 *     state/written/<hash of the path>     a directory in which agents could write: a root, a writable share, a home
 *
 * A path that nobody confirmed gets its identity when it is first used. That is refused when an agent could have chosen
 * what stands there: when the path lies in a directory of the second kind, or leads through a link in one.
 *
 * INVARIANT: one descriptor, opened without following links, is judged here, and a run mounts the object that it is.
 */
#ifndef CORDON_BASE_CONFIRMED_H
#define CORDON_BASE_CONFIRMED_H

#include "base/home.h"

/* A path and what it is. The caller keeps the strings. */
struct cordon_named {
	const char *given; /* as the settings write it, absolute */
	const char *path;  /* where that leads, canonical */
	int fd;		   /* what is there */
};

/* Judges a path before it is used, and writes nothing. -ESTALE (kind policy_denied) when something else than what was
 * confirmed is there; -EPERM likewise when an agent could have chosen what is there. *ret_known (may be NULL) says whether
 * the identity is on record. */
int cordon_confirmed_check(const struct cordon_home *home, const struct cordon_named *named, bool *ret_known,
			   struct cordon_error *err);
/* The same, and keeps the identity when none is on record. For the start of what uses the path. */
int cordon_confirmed_use(const struct cordon_home *home, const struct cordon_named *named, struct cordon_error *err);
/* A person says yes to a path. Refuses what differs from what was confirmed before, and a path that leads through a link
 * which an agent could have turned, unless `anew`. *ret_changed (may be NULL) says whether something else, or nothing, was
 * on record. */
int cordon_confirmed_take(const struct cordon_home *home, const struct cordon_named *named, bool anew,
			  bool *ret_changed, struct cordon_error *err);
/* Refuses a path that leads through a link that an agent could have turned, also in `root` (may be NULL), in which the
 * agent of a run that is about to start writes. `ret_path` is where the path leads by the links that were judged, so a caller
 * uses that, or compares it with what it has opened. The end of the path may be missing. */
int cordon_confirmed_links(const struct cordon_home *home, const char *given, const char *root,
			   char ret_path[static CORDON_PATH_MAX], struct cordon_error *err);
/* The same for a caller that has opened the path: -ESTALE when the links lead elsewhere by now. */
int cordon_confirmed_way(const struct cordon_home *home, const char *given, const char *root, const char *path,
			 struct cordon_error *err);

/* Remembers that agents write in a directory; `path` is canonical. What lies in $CORDON_HOME need not be remembered. */
int cordon_written_add(const struct cordon_home *home, const char *path, struct cordon_error *err);

#endif
