/* SPDX-License-Identifier: Apache-2.0 */
/* Puts the new files of an apply into the stage of its journal, and has it carried out. */
#include <fcntl.h>
#include <search.h>
#include <sys/stat.h>

#include "base/path.h"
#include "view/apply_internal.h"
#include "view/stage.h"

/* A file with several names that is staged under one of them. */
struct staged_link {
	uint64_t ino;
	uint32_t n;
};

static int by_ino(const void *a, const void *b)
{
	const struct staged_link *x = a, *y = b;

	return x->ino < y->ino ? -1 : x->ino > y->ino;
}

static const struct staged_link *find_link(const struct cordon_applying *apply, uint64_t ino)
{
	const struct staged_link key = { .ino = ino };
	struct staged_link *const *found = tfind(&key, &apply->links, by_ino);

	return found ? *found : NULL;
}

static int remember_link(struct cordon_applying *apply, uint64_t ino, uint32_t n)
{
	struct staged_link *link = malloc(sizeof(*link)), **added;

	if (!link)
		return -ENOMEM;
	*link = (struct staged_link){ .ino = ino, .n = n };
	added = tsearch(link, &apply->links, by_ino);
	if (added && *added != link)
		(*added)->n = n; /* the copy before has as many names as its file system lets it have */
	if (!added || *added != link)
		free(link);
	return added ? 0 : -ENOMEM;
}

/* Puts the new file or link into the stage, under the step's number. */
static int stage_file(struct cordon_applying *apply, size_t i, const struct cordon_apply_step *step)
{
	const struct cordon_delta_change *change = &apply->delta.changes[i];
	const struct cordon_choice *choice = &apply->choices[i];
	bool content = choice->merged || choice->part;
	struct cordon_stage_like like = {
		.mode = change->new.mode,
		.content = content ? &choice->content : NULL,
		.owned = change->old.mode && (change->old.uid != geteuid() || change->old.gid != getegid()),
		.uid = change->old.uid,
		.gid = change->old.gid,
		.acl_fd = -1,
	};
	char buf[CORDON_SLOT_SIZE], other[CORDON_SLOT_SIZE];
	const char *name = cordon_apply_journal_slot(step->n, CORDON_SLOT_NEW, buf);
	const struct staged_link *known;
	struct stat st;
	autofd int fd = cordon_delta_open(&apply->delta, change, &st), acl = -1;

	if (fd < 0)
		return fd;
	if (S_ISLNK(st.st_mode))
		return cordon_stage_link(fd, &st, apply->journal.stage_fd, name);
	known = change->links > 1 && !content ? find_link(apply, st.st_ino) : NULL;
	if (known && linkat(apply->journal.stage_fd, cordon_apply_journal_slot(known->n, CORDON_SLOT_NEW, other),
			    apply->journal.stage_fd, name, 0) == 0)
		return 0;
	if (S_ISREG(change->old.mode))
		like.acl_fd = acl = cordon_open_beneath(apply->delta.root_fd, change->path,
							O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (change->links > 1 && !content && remember_link(apply, st.st_ino, step->n) < 0)
		return -ENOMEM;
	return cordon_stage_file(fd, &st, &like, apply->journal.stage_fd, name);
}

/* Makes a new directory in the stage. Its rights come last; until then we must be able to fill it. */
static int stage_dir(struct cordon_applying *apply, const struct cordon_delta_change *change,
		     const struct cordon_apply_step *step)
{
	char buf[CORDON_SLOT_SIZE];
	const char *name = cordon_apply_journal_slot(step->n, CORDON_SLOT_NEW, buf);
	autofd int fd = cordon_open_beneath(apply->delta.upper_fd, change->path,
					    O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (mkdirat(apply->journal.stage_fd, name, 0700) < 0)
		return -errno;
	if (fd >= 0)
		cordon_stage_attributes(fd, apply->journal.stage_fd, name);
	return 0;
}

/* Adds a step that opens the directory of a path while others work in it, if it is ours and closed to us: native work would
 * have done the same, or the view has. */
static int stage_open(struct cordon_applying *apply, const char *path)
{
	struct cordon_apply_step step = { .kind = CORDON_APPLY_STEP_OPEN, .n = apply->journal.next++ };
	size_t n = (size_t)(cordon_path_base(path) - path);
	char dir[CORDON_PATH_MAX];
	autofd int fd = -1;
	struct stat st;

	if (geteuid() == 0 || cordon_copy(dir, sizeof(dir), path, n ? n - 1 : 0) < 0 || cordon_streq(dir, apply->opened))
		return 0;
	memcpy(apply->opened, dir, sizeof(dir));
	fd = cordon_open_beneath(apply->delta.root_fd, dir, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0 || st.st_uid != geteuid() || (st.st_mode & 0300) == 0300)
		return 0; /* the view makes it, or we need not or can't open it */
	step.path = dir;
	cordon_ident_of(&st, &step.old);
	step.old.mtime = (struct timespec){ 0 };
	step.new = step.old;
	step.new.mode |= 0300;
	return cordon_apply_journal_add(&apply->journal, &step, apply->err);
}

static int add_step(struct cordon_applying *apply, struct cordon_apply_step *step)
{
	char buf[CORDON_SLOT_SIZE];
	struct stat st;
	int r = stage_open(apply, step->path);

	if (r < 0)
		return r;
	if (step->kind == CORDON_APPLY_STEP_SWAP || step->kind == CORDON_APPLY_STEP_PUT) {
		if (fstatat(apply->journal.stage_fd, cordon_apply_journal_slot(step->n, CORDON_SLOT_NEW, buf), &st,
			    AT_SYMLINK_NOFOLLOW) < 0)
			return cordon_fail_errno(apply->err, -errno, "cannot prepare %s", step->path);
		cordon_ident_of(&st, &step->new);
	}
	r = cordon_apply_journal_keep(&apply->journal, step);
	if (r == -ESTALE)
		return cordon_fail(apply->err, r, CORDON_KIND_CONFLICT, "the host changed %s meanwhile", step->path);
	if (r < 0)
		return cordon_fail_errno(apply->err, r, "cannot keep what %s is, so nothing was written", step->path);
	return cordon_apply_journal_add(&apply->journal, step, apply->err);
}

static int stage_change(struct cordon_applying *apply, size_t i)
{
	const struct cordon_delta_change *change = &apply->delta.changes[i];
	struct cordon_apply_step step = { .path = change->path,
					  .old = change->old,
					  .n = apply->journal.next++,
					  .edited = change->edited,
					  .part = apply->choices[i].part };
	int r = 0;

	if (change->kind == CORDON_DELTA_DELETED) {
		step.kind = CORDON_APPLY_STEP_TAKE;
	} else if (S_ISDIR(change->new.mode)) {
		if (change->kind != CORDON_DELTA_ADDED)
			return 0; /* its rights come last */
		step.kind = CORDON_APPLY_STEP_PUT;
		r = stage_dir(apply, change, &step);
	} else if (change->kind == CORDON_DELTA_TOUCHED && !change->attributes) {
		return 0;
	} else {
		step.kind = change->old.mode ? CORDON_APPLY_STEP_SWAP : CORDON_APPLY_STEP_PUT;
		r = stage_file(apply, i, &step);
	}
	if (r < 0)
		return cordon_fail_errno(apply->err, r, "cannot prepare %s", change->path);
	return add_step(apply, &step);
}

/* Adds the steps that set rights and times: after all others, and what is deeper first, because changes in a directory
 * change its time. */
static int stage_meta(struct cordon_applying *apply)
{
	size_t n = apply->journal.n, at = n;

	for (size_t i = apply->delta.n; i-- > 0;) {
		const struct cordon_delta_change *change = &apply->delta.changes[i];
		struct cordon_apply_step step = {
			.kind = CORDON_APPLY_STEP_META, .path = change->path, .old = change->old, .new = change->new
		};
		int r;

		if (!apply->choices[i].chosen || change->kind == CORDON_DELTA_DELETED ||
		    !(S_ISDIR(change->new.mode) || (change->kind == CORDON_DELTA_TOUCHED && !change->attributes)))
			continue;
		/* What the host has keeps its time: the steps have just changed it, as the same work on the host would. */
		if (S_ISDIR(change->new.mode) && change->kind == CORDON_DELTA_TOUCHED)
			continue;
		if (S_ISDIR(change->new.mode) && change->kind == CORDON_DELTA_MODIFIED)
			step.old.mtime = step.new.mtime = (struct timespec){ 0 };
		if (change->kind == CORDON_DELTA_ADDED) {
			/* The steps are in the order of the changes. */
			while (at > 0 && !(apply->journal.steps[at - 1].kind == CORDON_APPLY_STEP_PUT &&
					   cordon_streq(apply->journal.steps[at - 1].path, change->path)))
				at--;
			if (at == 0)
				continue;
			step.old = apply->journal.steps[at - 1].new;
			step.old.mtime = (struct timespec){ 0 };
		}
		r = cordon_apply_journal_add(&apply->journal, &step, apply->err);
		if (r < 0)
			return r;
	}
	return 0;
}

int cordon_apply_carry_out(struct cordon_applying *apply, bool whole)
{
	int r = cordon_apply_journal_begin(apply->view, apply->delta.root_fd, &apply->journal, apply->err);

	apply->journal.whole = whole;
	apply->opened[0] = '/'; /* none */
	for (size_t i = 0; r == 0 && i < apply->delta.n; i++)
		if (apply->choices[i].chosen)
			r = stage_change(apply, i);
	if (r == 0)
		r = stage_meta(apply);
	if (r < 0) {
		cordon_apply_journal_drop(&apply->journal);
		return r;
	}
	if (apply->journal.n == 0) {
		cordon_apply_journal_drop(&apply->journal);
		return 0;
	}
	return cordon_apply_journal_commit(&apply->journal, apply->err);
}
