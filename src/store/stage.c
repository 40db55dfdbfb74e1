/* SPDX-License-Identifier: Apache-2.0 */
/* Changes under way: each has a directory, from which a later process can finish the change or take it back. */
#include <stdio.h>
#include <sys/stat.h>

#include "base/dirs.h"
#include "base/lock.h"
#include "store/internal.h"

/* Opens and locks a stage; -ENOENT when it was removed meanwhile, -EWOULDBLOCK when another process holds it. */
static int lock_stage(const struct cordon_store *store, const char *name, int operation, int *ret_fd)
{
	autofd int fd = openat(store->staging_fd, name, CORDON_OPEN_DIR);
	struct stat held, named;
	int r = fd < 0 ? -errno : cordon_lock(fd, operation);

	if (r < 0)
		return r;
	if (fstat(fd, &held) < 0)
		return -errno;
	if (fstatat(store->staging_fd, name, &named, AT_SYMLINK_NOFOLLOW) < 0 || named.st_ino != held.st_ino)
		return -ENOENT;
	*ret_fd = cordon_steal_fd(&fd);
	return 0;
}

/* Reads what follows the kind: "<project>" or "<project>.<workspace>"; false for anything else. */
static bool parse_ids(const char *id, char project[static CORDON_ID_SIZE], char workspace[static CORDON_ID_SIZE])
{
	if (strlen(id) < CORDON_UUID_SIZE - 1 || cordon_copy(project, CORDON_ID_SIZE, id, CORDON_UUID_SIZE - 1) < 0 ||
	    !cordon_uuid_valid(project))
		return false;
	id += CORDON_UUID_SIZE - 1;
	workspace[0] = '\0';
	return !*id || (*id == '.' && cordon_id_workspace("", id + 1, workspace, NULL) == 0);
}

/* Removes a stage that is no longer needed. Removes its record first: a stage that has a record but none of its other
 * entries looks like a creation that must be finished. */
static int remove_stage(const struct cordon_store *store, const char *name, int fd, struct cordon_error *err)
{
	unlinkat(fd, "record.json", 0);
	return cordon_dirs_remove(store->staging_fd, name, err);
}

/* Finishes or takes back a change whose stage is held, then removes the stage. */
static int recover(const struct cordon_store *store, const char *name, int fd, struct cordon_error *err)
{
	char project[CORDON_ID_SIZE], workspace[CORDON_ID_SIZE];
	struct cordon_stage stage = { .store = store, .fd = fd };
	int r = 0;

	if (strlen(name) > 3 && parse_ids(name + 3, project, workspace)) {
		if (strncmp(name, "ws.", 3) == 0 && *workspace)
			r = cordon_workspace_recover(store, fd, project, workspace);
		else if (strncmp(name, "im.", 3) == 0)
			r = cordon_import_recover(store, fd);
		else if (strncmp(name, "pj.", 3) == 0)
			r = cordon_project_recover(store, fd, project);
		else if (strncmp(name, "up.", 3) == 0)
			r = cordon_project_republish(&stage, project);
	}
	if (r < 0)
		return cordon_fail_errno(err, r, "cannot repair the unfinished change %s", name);
	return remove_stage(store, name, fd, err);
}

int cordon_stage_open(const struct cordon_store *store, const char *name, struct cordon_stage *ret_stage,
		      struct cordon_error *err)
{
	struct cordon_stage stage = { .store = store, .fd = -1 };
	int r = cordon_copy(stage.name, sizeof(stage.name), name, strlen(name));

	while (r == 0) {
		bool ours = mkdirat(store->staging_fd, name, 0700) == 0;

		if (!ours && errno != EEXIST)
			return cordon_fail_errno(err, -errno, "cannot prepare a change of the store");
		r = lock_stage(store, name, LOCK_EX, &stage.fd);
		if (r == -ENOENT) {
			/* Another process finished or took back that change before we had the lock. */
			r = 0;
			continue;
		}
		if (r < 0)
			break;
		if (ours) {
			*ret_stage = stage;
			return 0;
		}
		r = recover(store, name, stage.fd, err);
		cordon_closep(&stage.fd);
		if (r < 0)
			return r;
	}
	return cordon_fail_errno(err, r, "cannot prepare a change of the store");
}

int cordon_stage_temp(const struct cordon_store *store, struct cordon_stage *ret_stage, struct cordon_error *err)
{
	char name[64] = "tmp.";
	int r = cordon_uuid_new(name + 4);

	return r < 0 ? cordon_fail_errno(err, r, "cannot prepare a change of the store")
		     : cordon_stage_open(store, name, ret_stage, err);
}

int cordon_stage_delete(const struct cordon_stage *stage, struct cordon_error *err)
{
	autofd int fd = openat(stage->fd, "delete", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	return fd < 0 ? cordon_fail_errno(err, -errno, "cannot prepare a change of the store") : 0;
}

int cordon_stage_save(const struct cordon_stage *stage, const struct cordon_record_kind *kind, int dir_fd,
		      const char *name, const void *record, struct cordon_error *err)
{
	int r = cordon_record_save(kind, stage->fd, "new", record, err);

	if (r == 0 && (renameat(stage->fd, "new", dir_fd, name) < 0 || fsync(dir_fd) < 0))
		r = cordon_fail_errno(err, -errno, "cannot write %s", name);
	return r;
}

void cordon_stage_close(struct cordon_stage *stage)
{
	if (stage->fd < 0)
		return;
	/* The next repair removes what can't be removed now. */
	remove_stage(stage->store, stage->name, stage->fd, NULL);
	cordon_closep(&stage->fd);
}

int cordon_store_repair(const struct cordon_store *store, size_t *ret_repaired, struct cordon_error *err)
{
	json_auto_t *names = NULL;
	size_t i, repaired = 0;
	json_t *name;
	int failure = 0;
	int r = cordon_record_names(store->staging_fd, NULL, &names, err);

	if (r < 0)
		return r;
	json_array_foreach(names, i, name) {
		autofd int fd = -1;

		r = lock_stage(store, json_string_value(name), LOCK_EX | LOCK_NB, &fd);
		if (r == -EWOULDBLOCK || r == -ENOENT)
			continue;
		/* If one stage can't be repaired, we still repair the others. */
		r = r < 0 ? cordon_fail_errno(err, r, "cannot repair the store")
			  : recover(store, json_string_value(name), fd, err);
		if (r < 0)
			failure = r;
		else
			repaired++;
	}
	if (failure < 0)
		return failure;
	*ret_repaired = repaired;
	return 0;
}
