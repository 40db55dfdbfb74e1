/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a path leads, by component, the way the kernel would walk it; missing tails are fine.
 *
 * INVARIANT: an answer "inside" is never taken from the text of a path alone. Each existing component was looked
 * at without following it, each link was expanded, and only what does not exist yet is judged by its name.
 */
#ifndef CORDON_BASE_RESOLVE_H
#define CORDON_BASE_RESOLVE_H

#include "base/error.h"

#define CORDON_LINKS_MAX 40 /* the kernel's own limit on symbolic links in one walk */

/* A directory that was opened once; `path` is its canonical absolute name at that moment. */
struct cordon_root {
	int fd;
	char path[CORDON_PATH_MAX];
};

typedef enum cordon_place {
	CORDON_PLACE_INSIDE,
	CORDON_PLACE_OUTSIDE,
	CORDON_PLACE_UNRESOLVABLE, /* a loop of links, a name too long, an empty path */
} cordon_place;

struct cordon_resolved {
	cordon_place place;
	bool exists;
	char path[CORDON_PATH_MAX]; /* inside: relative to the root, "" is the root; else absolute where known */
};

/*
 * Answers many questions with few system calls: it remembers the directories it has seen, and reads one from which
 * many names are asked. What it remembers is as old as the last cordon_resolver_refresh(), so whoever asks over time
 * calls that before each batch of questions; an answer is then never older than its question.
 */
struct cordon_resolver {
	const struct cordon_root *root;
	struct cordon_resolver_cache *cache; /* NULL until there is something to remember */
};

/* Follows links in `path` itself: a root may be reached through one. Must be a directory. */
int cordon_root_open(const char *path, struct cordon_root *ret_root, struct cordon_error *err);
void cordon_root_done(struct cordon_root *root);

/* Relative paths start at the root. Never fails: what cannot be resolved is reported as such. */
void cordon_resolve(const struct cordon_root *root, const char *path, struct cordon_resolved *ret_resolved);

void cordon_resolver_init(struct cordon_resolver *resolver, const struct cordon_root *root);
void cordon_resolver_done(struct cordon_resolver *resolver);
/* Forgets everything. */
void cordon_resolver_refresh(struct cordon_resolver *resolver);
/* The answer of cordon_resolve(). */
void cordon_resolver_ask(struct cordon_resolver *resolver, const char *asked, struct cordon_resolved *ret_resolved);

/*
 * Opens a clean path beneath dir_fd without following any link in any component: openat2 where the kernel has it,
 * a walk component by component where it is refused. "" opens dir_fd itself. Returns a descriptor or -errno;
 * -ELOOP when a component is a link.
 */
int cordon_open_beneath(int dir_fd, const char *path, int flags);

#endif
