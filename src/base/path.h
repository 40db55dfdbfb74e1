/* SPDX-License-Identifier: Apache-2.0 */
/* Paths as sequences of components. A string prefix is not a parent directory: only these helpers compare two paths. */
#ifndef CORDON_BASE_PATH_H
#define CORDON_BASE_PATH_H

#include "base/error.h"

/* For open(2) of a directory that is read. Needs <fcntl.h>. */
#define CORDON_OPEN_DIR (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

/* True when `path` is `dir` or lies below it. Both are clean (see below) and of one kind, relative or absolute;
 * "" is the root that relative paths start from, "/" holds every absolute path. */
bool cordon_path_within(const char *path, const char *dir);

/*
 * Cleans a path by its text, into `ret` of `size` bytes: "a//b/./c/" becomes "a/b/c", "./" and "." become "". An
 * absolute path keeps its leading slash. ".." is -EXDEV (callers that allow it resolve the path through the kernel
 * instead), and a result that does not fit is -ENAMETOOLONG.
 */
int cordon_path_clean(const char *path, char *ret, size_t size);

/* Whether a path ends with " (deleted)", as the kernel shows removed names in /proc. A file may also really have
 * such a name. */
bool cordon_path_is_deleted(const char *path);

/* dir + "/" + name, without doubling or losing a slash; -ENAMETOOLONG. Either may be "". */
int cordon_path_join(const char *dir, const char *name, char *ret, size_t size);

/* Makes a path of the command line absolute; the links in it, "." and ".." stay as they are. */
int cordon_path_absolute(const char *path, char ret[static CORDON_PATH_MAX], struct cordon_error *err);

/*
 * Walks an absolute path component by component, as the kernel does, and sets `ret` to where it leads, without links.
 * `link` is asked of each place on the way: it copies the text of the link that stands there and returns its length, 0
 * if something else stands there, or an error that ends the walk. `rest` is what follows the place in the path.
 * -ELOOP when there are too many links.
 */
typedef ssize_t (*cordon_path_link)(void *data, const char *place, const char *rest, char ret[static CORDON_PATH_MAX]);
int cordon_path_walk(const char *path, cordon_path_link link, void *data, char ret[static CORDON_PATH_MAX]);

/* The last component of a clean path; "" for "" and "/". */
const char *cordon_path_base(const char *path);

#endif
