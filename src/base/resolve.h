/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds where a path leads, component by component, as the kernel would walk it. The end of the path may be missing.
 *
 * INVARIANT: the answer "inside" never comes from the text of a path alone. Each existing component was looked at
 * without following it, each link was expanded, and only components that do not exist yet are judged by their names.
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

struct cordon_resolved {
	cordon_place place;
	bool exists;
	char path[CORDON_PATH_MAX]; /* inside: relative to the root, "" is the root; else absolute where known */
};

/*
 * Resolves many paths with few system calls: it remembers the directories it has seen, and lists a directory when
 * many names in it are resolved. The answers are as old as the last cordon_resolver_refresh(), so a caller that asks
 * over time calls that before each batch of paths.
 */
struct cordon_resolver {
	const struct cordon_root *root;
	struct cordon_resolver_cache *cache; /* NULL until there is something to remember */
};

/* Follows links in `path` itself, because a root may be reached through one. It must be a directory. */
int cordon_root_open(const char *path, struct cordon_root *ret_root, struct cordon_error *err);
void cordon_root_done(struct cordon_root *root);

/* Relative paths start at the root. Never fails: for a path that cannot be resolved, `place` says so. */
void cordon_resolve(const struct cordon_root *root, const char *path, struct cordon_resolved *ret_resolved);

/* The same, and reports every link that it meets inside the root, by the place of the link itself. `rest` is the
 * part of the path behind the link, as written; it may end with an extra slash. */
typedef int (*cordon_link_fn)(void *data, const char *link, const char *rest);
/* Returns 0, or what `met` returned when that was not 0; then *ret_resolved is not valid. */
int cordon_resolve_links(const struct cordon_root *root, const char *path, cordon_link_fn met, void *data,
			 struct cordon_resolved *ret_resolved);

void cordon_resolver_init(struct cordon_resolver *resolver, const struct cordon_root *root);
void cordon_resolver_done(struct cordon_resolver *resolver);
/* Forgets everything. */
void cordon_resolver_refresh(struct cordon_resolver *resolver);
/* The same answer as cordon_resolve(). */
void cordon_resolver_ask(struct cordon_resolver *resolver, const char *asked, struct cordon_resolved *ret_resolved);

/*
 * Opens a clean path beneath dir_fd without following any link in any component: with openat2(), or component by
 * component where openat2() is not allowed. "" opens dir_fd itself. Returns a descriptor or -errno; -ELOOP when a
 * component is a link.
 */
int cordon_open_beneath(int dir_fd, const char *path, int flags);

/* Resolves an absolute path of the host, and opens what is there (O_PATH) without following a link that came to stand there
 * since. `ret_path` is where it leads. Returns a descriptor or -errno: -ENOENT when nothing is there. */
int cordon_resolve_open(const char *given, char ret_path[static CORDON_PATH_MAX]);

#endif
