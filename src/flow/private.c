/* SPDX-License-Identifier: Apache-2.0 */
/* Opens, makes and prepares the private workspaces of orchestrators. */
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/confirmed.h"
#include "base/path.h"
#include "flow/private.h"

#define DIR_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

/* Opens one component, and makes it when it is missing. -errno. */
static int open_component(int dir_fd, const char *name, bool make, bool *ret_made)
{
	int fd = openat(dir_fd, name, DIR_FLAGS);

	*ret_made = false;
	if (fd >= 0 || errno != ENOENT || !make)
		return fd < 0 ? -errno : fd;
	*ret_made = mkdirat(dir_fd, name, 0700) == 0;
	if (!*ret_made && errno != EEXIST)
		return -errno;
	fd = openat(dir_fd, name, DIR_FLAGS);
	return fd < 0 ? -errno : fd;
}

/* Opens a clean path below dir_fd by component. *ret_made says whether its last component was missing and has been made. */
static int open_path(int dir_fd, const char *path, bool make, int *ret_fd, bool *ret_made)
{
	autofd int at = dup(dir_fd);
	char name[NAME_MAX + 1];

	if (at < 0)
		return -errno;
	while (*path) {
		size_t n = strcspn(path, "/");
		int next = cordon_copy(name, sizeof(name), path, n);

		if (next == 0)
			next = open_component(at, name, make, ret_made);
		if (next < 0)
			return next;
		cordon_closep(&at);
		at = next;
		path += n + strspn(path + n, "/");
	}
	*ret_fd = cordon_steal_fd(&at);
	return 0;
}

/* What cordon keeps in its own directory needs no identity: no agent reaches the directories above it. */
static int check_identity(const struct cordon_orchestrator *orchestrator, bool make, bool made, int fd,
			  struct cordon_error *err)
{
	const char *path = orchestrator->private_workspace;
	struct cordon_named named = { .given = orchestrator->given ? orchestrator->given : path, .path = path, .fd = fd };
	autohome struct cordon_home home = CORDON_HOME_NONE;
	int r = cordon_home_open(&home, err);

	if (r == 0 && !cordon_path_within(path, home.path))
		r = made   ? cordon_confirmed_take(&home, &named, true, NULL, err)
		    : make ? cordon_confirmed_use(&home, &named, err)
			   : cordon_confirmed_check(&home, &named, NULL, err);
	return r < 0 ? cordon_error_prefix(err, r, "the private workspace of %s", orchestrator->id) : 0;
}

int cordon_private_open(const struct cordon_orchestrator *orchestrator, bool make, int *ret_fd, struct cordon_error *err)
{
	const char *path = orchestrator->private_workspace;
	autofd int slash = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	autofd int fd = -1;
	struct stat st = { 0 };
	bool made = false;
	int r = slash < 0 ? -errno : open_path(slash, path + strspn(path, "/"), make, &fd, &made);

	if (r == 0 && fstat(fd, &st) < 0)
		r = -errno;
	if (r < 0) {
		cordon_fail_errno(err, r, "the private workspace of %s: %s", orchestrator->id, path);
		if (r == -ENOENT && err)
			err->kind = CORDON_KIND_NOT_FOUND;
		return r;
	}
	if (st.st_uid != geteuid() && st.st_uid != 0)
		return cordon_fail(err, -EACCES, CORDON_KIND_POLICY_DENIED,
				   "the private workspace of %s belongs to another user: %s", orchestrator->id, path);
	if (st.st_mode & (S_IWGRP | S_IWOTH)) {
		cordon_fail(err, -EACCES, CORDON_KIND_POLICY_DENIED,
			    "other users can write to the private workspace of %s: %s", orchestrator->id, path);
		cordon_error_hint(err, "chmod go-w %s", path);
		return -EACCES;
	}
	r = check_identity(orchestrator, make, made, fd, err);
	if (r == 0)
		*ret_fd = cordon_steal_fd(&fd);
	return r;
}

int cordon_private_subdir(int fd, const char *path, int *ret_fd, struct cordon_error *err)
{
	bool made;
	int r = open_path(fd, path, true, ret_fd, &made);

	if (r == -ELOOP || r == -ENOTDIR) {
		cordon_fail(err, r, CORDON_KIND_CONFLICT,
			    "something else than a directory stands at %s in the private workspace", path);
		cordon_error_hint(err, "move it away");
		return r;
	}
	return r < 0 ? cordon_fail_errno(err, r, "cannot make %s in the private workspace", path) : 0;
}

/* ---- places of areas ---- */

/* Where a link in shared/ leads; false when that is nowhere. */
static bool leads(const char *private_workspace, int dir_fd, const char *name, char ret[static CORDON_PATH_MAX])
{
	char text[CORDON_PATH_MAX], path[CORDON_PATH_MAX];
	ssize_t n = readlinkat(dir_fd, name, text, sizeof(text) - 1);

	if (n <= 0)
		return false;
	text[n] = '\0';
	if (text[0] != '/' && (cordon_path_join(private_workspace, CORDON_PRIVATE_SHARED, path, sizeof(path)) < 0 ||
			       cordon_path_join(path, text, path, sizeof(path)) < 0))
		return false;
	return cordon_settings_resolve(text[0] == '/' ? text : path, ret) == 0;
}

/* Takes away the links that an older system made, each with the key of the area to which it leads, and the places of areas
 * that are not granted any more. */
static void clear(const struct cordon_settings_file *settings, const struct cordon_orchestrator *orchestrator,
		  int dir_fd)
{
	int listing = openat(dir_fd, ".", DIR_FLAGS);
	DIR *dir = listing < 0 ? NULL : fdopendir(listing);

	if (!dir) {
		cordon_closep(&listing);
		return;
	}
	for (const struct dirent *entry; (entry = readdir(dir));) {
		char path[CORDON_PATH_MAX];

		if (cordon_streq(entry->d_name, ".") || cordon_streq(entry->d_name, ".."))
			continue;
		if (leads(orchestrator->private_workspace, dir_fd, entry->d_name, path)) {
			for (size_t i = 0; i < settings->n_areas; i++)
				if (cordon_streq(settings->areas[i].key, entry->d_name) &&
				    cordon_streq(settings->areas[i].path, path))
					(void)unlinkat(dir_fd, entry->d_name, 0);
		} else if (!cordon_orchestrator_grant(orchestrator, entry->d_name)) {
			/* This removes nothing but an empty directory. */
			(void)unlinkat(dir_fd, entry->d_name, AT_REMOVEDIR);
		}
	}
	closedir(dir);
}

int cordon_private_prepare(const struct cordon_settings_file *settings, const struct cordon_orchestrator *orchestrator,
			   int fd, struct cordon_error *err)
{
	autofd int shared = -1;
	autofd int runs = -1;
	int r = cordon_private_subdir(fd, CORDON_PRIVATE_SHARED, &shared, err);

	if (r == 0)
		r = cordon_private_subdir(fd, CORDON_PRIVATE_RUNS, &runs, err);
	if (r < 0)
		return r;
	clear(settings, orchestrator, shared);
	for (size_t i = 0; r == 0 && i < orchestrator->n_grants; i++) {
		const char *key = orchestrator->grants[i].area->key;
		bool made;
		int place = open_component(shared, key, true, &made);

		if (place == -ELOOP || place == -ENOTDIR) {
			cordon_fail(err, place, CORDON_KIND_CONFLICT,
				    "the shared area %s can't be shown at %s/%s/%s: something else stands there", key,
				    orchestrator->private_workspace, CORDON_PRIVATE_SHARED, key);
			cordon_error_hint(err, "move it away");
			r = place;
		} else if (place < 0) {
			r = cordon_fail_errno(err, place, "cannot make the place for the shared area %s", key);
		}
		cordon_closep(&place);
	}
	return r;
}
