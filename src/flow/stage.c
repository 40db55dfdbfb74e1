/* SPDX-License-Identifier: Apache-2.0 */
/* The directories in which steps run: copies of the run directory that become the run directory, or go. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/dirs.h"
#include "base/path.h"
#include "flow/stage.h"

#define OPEN_DIR (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

static const struct cordon_copy_bounds bounds = { CORDON_COPY_TREE };

void cordon_flow_stage_done(struct cordon_flow_stage *stage)
{
	cordon_closep(&stage->dir_fd);
	cordon_closep(&stage->own_fd);
	cordon_closep(&stage->runs_fd);
}

/* Opens a directory that is ours alone, and makes it if it is missing. */
static int open_own(int parent, const char *name, int *ret_fd)
{
	struct stat st;
	autofd int fd = -1;

	if (mkdirat(parent, name, 0700) < 0 && errno != EEXIST)
		return -errno;
	fd = openat(parent, name, OPEN_DIR);
	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) < 0 || st.st_uid != geteuid())
		return -EPERM;
	*ret_fd = cordon_steal_fd(&fd);
	return 0;
}

int cordon_flow_stage_open(const char *private_path, const char *run_id, struct cordon_flow_stage *ret_stage,
			   struct cordon_error *err)
{
	CORDON_CLEANUP(cordon_flow_stage_done) struct cordon_flow_stage stage = CORDON_FLOW_STAGE_NONE;
	autofd int root = open(private_path, OPEN_DIR);
	autofd int work = -1;
	autofd int run = -1;
	char hidden[64];
	int r = root < 0 ? -errno : open_own(root, "work", &work);

	snprintf(hidden, sizeof(hidden), ".%s", run_id);
	if (r == 0)
		r = open_own(work, "runs", &stage.runs_fd);
	if (r == 0)
		r = open_own(stage.runs_fd, run_id, &run);
	if (r == 0)
		r = open_own(stage.runs_fd, hidden, &stage.own_fd);
	if (r == 0)
		r = cordon_copy(stage.id, sizeof(stage.id), run_id, strlen(run_id));
	if (r == 0)
		r = cordon_concat(stage.own, sizeof(stage.own), private_path, "/work/runs/", hidden, (char *)NULL);
	if (r == -ELOOP || r == -ENOTDIR)
		return cordon_fail(err, r, CORDON_KIND_POLICY_DENIED,
				   "something that is no directory stands in the way of %s/work/runs", private_path);
	if (r < 0)
		return cordon_fail_errno(err, r, "cannot make the run directory in %s/work/runs", private_path);
	*ret_stage = stage;
	stage = (struct cordon_flow_stage)CORDON_FLOW_STAGE_NONE;
	return 0;
}

static void remove_copies(struct cordon_flow_stage *stage)
{
	int fd = openat(stage->own_fd, ".", OPEN_DIR);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);

	if (!dir) {
		cordon_closep(&fd);
		return;
	}
	for (struct dirent *entry; (entry = readdir(dir));)
		if (entry->d_name[0] != '.')
			(void)cordon_dirs_remove(stage->own_fd, entry->d_name, NULL);
	closedir(dir);
}

void cordon_flow_stage_clear(struct cordon_flow_stage *stage)
{
	cordon_closep(&stage->dir_fd);
	stage->dir[0] = '\0';
	remove_copies(stage);
}

void cordon_flow_stage_remove(struct cordon_flow_stage *stage)
{
	char hidden[64];

	cordon_flow_stage_clear(stage);
	snprintf(hidden, sizeof(hidden), ".%s", stage->id);
	(void)cordon_dirs_remove(stage->runs_fd, hidden, NULL);
}

int cordon_flow_stage_copy(struct cordon_flow_stage *stage, uint64_t n, struct cordon_error *err)
{
	struct cordon_copy_budget budget = CORDON_COPY_BUDGET_OF(&bounds);
	autofd int run = openat(stage->runs_fd, stage->id, OPEN_DIR);
	char name[CORDON_DIGITS_SIZE];
	int r = run < 0 ? -errno : 0;

	cordon_flow_stage_clear(stage);
	snprintf(name, sizeof(name), "%llu", (unsigned long long)n);
	if (r == 0)
		r = open_own(stage->own_fd, name, &stage->dir_fd);
	if (r < 0)
		return cordon_fail_errno(err, r, "cannot make a copy of the run directory");
	r = cordon_dirs_copy_all(run, stage->dir_fd, &budget, err);
	if (r < 0)
		return cordon_error_prefix(err, r, "cannot copy the run directory");
	if (cordon_path_join(stage->own, name, stage->dir, sizeof(stage->dir)) < 0)
		return cordon_fail_errno(err, -ENAMETOOLONG, "cannot make a copy of the run directory");
	return 0;
}

static int identify(int fd, char ret[static CORDON_STAGE_IDENTITY_SIZE])
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	snprintf(ret, CORDON_STAGE_IDENTITY_SIZE, "%llu:%llu", (unsigned long long)st.st_dev,
		 (unsigned long long)st.st_ino);
	return 0;
}

int cordon_flow_stage_seal(struct cordon_flow_stage *stage, char ret_identity[static CORDON_STAGE_IDENTITY_SIZE],
			   struct cordon_error *err)
{
	int r = identify(stage->dir_fd, ret_identity);

	if (r == 0 && syncfs(stage->dir_fd) < 0)
		r = -errno;
	return r < 0 ? cordon_fail_errno(err, r, "cannot write what the step left to the disk") : 0;
}

/* The rename need not reach the disk before we go on: whoever resumes the run after a loss of power does it again. */
int cordon_flow_stage_commit(struct cordon_flow_stage *stage, uint64_t n, const char *identity, struct cordon_error *err)
{
	autofd int run = openat(stage->runs_fd, stage->id, OPEN_DIR);
	autofd int copy = -1;
	char name[CORDON_DIGITS_SIZE], found[CORDON_STAGE_IDENTITY_SIZE] = "";
	int r = run < 0 ? -errno : identify(run, found);

	if (r == 0 && cordon_streq(found, identity))
		return 0;
	snprintf(name, sizeof(name), "%llu", (unsigned long long)n);
	copy = openat(stage->own_fd, name, OPEN_DIR);
	if (r == 0)
		r = copy < 0 ? -errno : identify(copy, found);
	if (r == 0 && !cordon_streq(found, identity))
		r = -ESTALE;
	if (r == 0 && renameat2(stage->own_fd, name, stage->runs_fd, stage->id, RENAME_EXCHANGE) < 0)
		r = -errno;
	return r < 0 ? cordon_fail_errno(err, r, "cannot take over what the step left in the run directory") : 0;
}
