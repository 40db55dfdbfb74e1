/* SPDX-License-Identifier: Apache-2.0 */
/* Applies the changes of a view: chooses, judges, merges and stages them, and has a journal carry them out. */
#include <fcntl.h>
#include <search.h>
#include <sys/stat.h>

#include "base/path.h"
#include "view/apply.h"
#include "view/internal.h"
#include "view/journal.h"
#include "view/judge.h"
#include "view/merge.h"
#include "view/pick.h"
#include "view/shown.h"
#include "view/stage.h"

/* What is known of a change while it is applied. */
struct cordon_choice {
	bool chosen;
	bool part;
	bool merged;
	bool warned;
	struct cordon_buf content; /* merged or picked; else it is the upper layer's */
};

struct cordon_applying {
	struct cordon_view *view;
	const struct cordon_apply_request *request;
	struct cordon_apply_result *result;
	struct cordon_delta delta;
	struct cordon_policy *policy;
	struct cordon_choice *choices; /* one for each change of the delta */
	size_t n_choices;
	struct cordon_apply_journal journal;
	void *links;		      /* a tree (tsearch) of files with several names that are staged */
	char opened[CORDON_PATH_MAX]; /* the directory that was looked at last, whether it must be opened; "": the root */
	struct cordon_error *err;
};

/* ---- carrying out ---- */

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

/* Adds a step that opens the directory of a path while others work in it, if it is ours and closed to us: native work
 * would have done the same, or the view has. */
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
		/* What the host has keeps its time: the steps have just changed it, as the same work on the host
		 * would. */
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

/* Stages what was chosen, and has a journal carry it out. `whole`: that is all of the view. */
static int apply_carry_out(struct cordon_applying *apply, bool whole)
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

/* ---- judging and applying ---- */

#define REPOSITORIES_MS                                                                                                \
	2000 /* as if a run had taken so long: the bound of the search, see cordon_repositories_find() */

static void apply_done(struct cordon_applying *apply)
{
	for (size_t i = 0; i < apply->n_choices; i++)
		cordon_buf_done(&apply->choices[i].content);
	free(apply->choices);
	tdestroy(apply->links, free);
	cordon_apply_journal_done(&apply->journal);
	cordon_policy_freep(&apply->policy);
	cordon_delta_done(&apply->delta);
}

void cordon_apply_done(struct cordon_apply_result *result)
{
	free(result->applied.item);
	free(result->conflicts.item);
	free(result->refused.item);
	free(result->left.item);
	cordon_git_take_free(result->git);
	cordon_repositories_done(&result->repositories);
	cordon_arena_free(result->arena);
	*result = (struct cordon_apply_result){ 0 };
}

static int add_item(struct cordon_applying *apply, struct cordon_apply_items *items,
		    const struct cordon_apply_item *item)
{
	if (items->n == items->cap) {
		size_t cap = items->cap ? 2 * items->cap : 16;
		struct cordon_apply_item *more = reallocarray(items->item, cap, sizeof(*more));

		if (!more)
			return cordon_no_memory(apply->err);
		items->item = more;
		items->cap = cap;
	}
	items->item[items->n] = *item;
	items->item[items->n].path = cordon_arena_strdup(apply->result->arena, item->path);
	return items->item[items->n++].path ? 0 : cordon_no_memory(apply->err);
}

static int add_change(struct cordon_applying *apply, struct cordon_apply_items *items, size_t i, const char *why)
{
	const struct cordon_delta_change *change = &apply->delta.changes[i];
	const struct cordon_choice *choice = &apply->choices[i];

	return add_item(apply, items,
			&(struct cordon_apply_item){
				.path = change->path,
				.letter = cordon_patch_letter(change),
				.dir = S_ISDIR(change->kind == CORDON_DELTA_DELETED ? change->old.mode
										    : change->new.mode),
				.merged = choice->merged,
				.warned = choice->warned,
				.part = choice->part,
				.who = change->who,
				.why = why,
				.change = i,
			});
}

/* ---- choosing ---- */

static bool is_dir(const struct cordon_delta_change *change)
{
	return S_ISDIR(change->kind == CORDON_DELTA_DELETED ? change->old.mode : change->new.mode);
}

/* Chooses by path, and checks that each path names something. */
static int choose_paths(struct cordon_applying *apply)
{
	const struct cordon_apply_request *request = apply->request;

	for (size_t p = 0; p < request->n_paths; p++) {
		bool found = false;

		for (size_t i = 0; !found && i < apply->delta.n; i++)
			found = cordon_path_within(apply->delta.changes[i].path, request->paths[p]);
		for (size_t i = 0; !found && i < apply->delta.n_left; i++)
			found = cordon_path_within(apply->delta.left[i].path, request->paths[p]);
		if (!found)
			return cordon_fail(apply->err, -ENOENT, CORDON_KIND_NOT_FOUND, "the view does not change %s",
					   request->paths[p]);
	}
	for (size_t i = 0; i < apply->delta.n; i++)
		apply->choices[i].chosen = cordon_delta_named(apply->delta.changes[i].path, request->paths,
							      request->n_paths);
	return 0;
}

static int choose_by_person(struct cordon_applying *apply)
{
	struct cordon_pick_list list = { .view = apply->view,
					 .items = apply->request->picked,
					 .n = apply->request->n_picked };
	int (*ask)(void *, const struct cordon_delta *, const struct cordon_delta_change *, cordon_pick *,
		   struct cordon_buf *, struct cordon_error *) = list.n ? cordon_pick_listed : apply->request->pick;
	void *data = list.n ? &list : apply->request->data;

	for (size_t i = 0; i < apply->delta.n; i++) {
		const struct cordon_delta_change *change = &apply->delta.changes[i];
		struct cordon_choice *choice = &apply->choices[i];
		cordon_pick pick = CORDON_PICK_NO;
		int r;

		if (!choice->chosen)
			continue;
		/* A directory comes along with what is in it; a deleted one goes if all that was in it goes. */
		if (!cordon_pick_asks(&apply->delta, change)) {
			choice->chosen = change->kind == CORDON_DELTA_DELETED;
			continue;
		}
		choice->content.max = CORDON_TEXT_BYTES_MAX;
		r = ask(data, &apply->delta, change, &pick, &choice->content, apply->err);
		if (r < 0)
			return r;
		if (pick == CORDON_PICK_QUIT)
			return cordon_fail(apply->err, -ECANCELED, CORDON_KIND_USAGE, "stopped; nothing was written");
		choice->chosen = pick != CORDON_PICK_NO;
		choice->part = pick == CORDON_PICK_PART;
	}
	if (list.at < list.n)
		return cordon_fail(apply->err, -EINVAL, CORDON_KIND_USAGE,
				   "the list names what can't be chosen; nothing was written");
	/* What lies in a deleted directory comes before it in the list. */
	for (size_t i = 0; i < apply->delta.n; i++) {
		const struct cordon_delta_change *change = &apply->delta.changes[i];

		if (!is_dir(change) || change->kind != CORDON_DELTA_DELETED || !apply->choices[i].chosen)
			continue;
		for (size_t k = i; k-- > 0 && cordon_path_within(apply->delta.changes[k].path, change->path);)
			if (!apply->choices[k].chosen)
				apply->choices[i].chosen = false;
	}
	return 0;
}

/* Adds the new directories above what was chosen, and the file that had to go for one of them. */
static void choose_above(struct cordon_applying *apply)
{
	const struct cordon_delta *delta = &apply->delta;

	for (size_t i = 0; i < delta->n; i++) {
		const struct cordon_delta_change *change = &delta->changes[i];

		if (apply->choices[i].chosen || change->kind != CORDON_DELTA_ADDED || !S_ISDIR(change->new.mode))
			continue;
		for (size_t k = i + 1; k < delta->n && cordon_path_within(delta->changes[k].path, change->path); k++)
			if (apply->choices[k].chosen) {
				apply->choices[i].chosen = true;
				break;
			}
	}
	for (size_t i = 0; i + 1 < delta->n; i++)
		if (delta->changes[i].kind == CORDON_DELTA_DELETED && apply->choices[i + 1].chosen &&
		    cordon_streq(delta->changes[i].path, delta->changes[i + 1].path))
			apply->choices[i].chosen = true;
}

/* ---- judging and merging ---- */

static int merge(struct cordon_applying *apply, size_t i, const char **ret_why)
{
	struct cordon_choice *choice = &apply->choices[i];
	autobuf struct cordon_buf merged = CORDON_BUF(2 * CORDON_TEXT_BYTES_MAX);
	int r;

	/* The person saw the host's text and chose hunks for it, so that is what the choice is based on. */
	if (choice->part)
		return 0;
	r = cordon_merge_change(apply->view, &apply->delta, &apply->delta.changes[i], &merged, ret_why, apply->err);
	if (r < 0 || *ret_why)
		return r;
	cordon_buf_done(&choice->content);
	choice->content = merged;
	merged = (struct cordon_buf){ 0 };
	choice->merged = true;
	return 0;
}

/* Finds out whether the host's own change is in the way; *ret_why is NULL when it is not. */
static int check_edited(struct cordon_applying *apply, size_t i, const char **ret_why)
{
	const struct cordon_delta_change *change = &apply->delta.changes[i];

	*ret_why = NULL;
	if (!change->edited)
		return 0;
	switch (change->kind) {
	case CORDON_DELTA_ADDED:
		/* A person who names the very path has seen the conflict, or knows that the run moved the file. */
		if (apply->request->n_picked && !is_dir(change))
			return 0;
		for (size_t p = 0; p < apply->request->n_paths; p++)
			if (!is_dir(change) && cordon_streq(apply->request->paths[p], change->path))
				return 0;
		*ret_why = is_dir(change) ? "the host removed the directory" : "the host removed or renamed it";
		return 0;
	case CORDON_DELTA_DELETED:
		*ret_why = "the host changed it, and the view deletes it";
		return 0;
	case CORDON_DELTA_TOUCHED:
		apply->choices[i].chosen = false; /* the host's times and attributes are the newer ones */
		return 0;
	case CORDON_DELTA_MODIFIED:
		break;
	}
	if (change->mode_edited) {
		*ret_why = "the host changed its mode, too, or may have";
		return 0;
	}
	return is_dir(change) ? 0 : merge(apply, i, ret_why);
}

static int judge_all(struct cordon_applying *apply)
{
	for (size_t i = 0; i < apply->delta.n; i++) {
		const struct cordon_delta_change *change = &apply->delta.changes[i];
		struct cordon_choice *choice = &apply->choices[i];
		const char *why = NULL;
		int r;

		if (!choice->chosen)
			continue;
		why = cordon_judge_change(apply->policy, change, apply->result->arena, &choice->warned);
		if (why && change->kind == CORDON_DELTA_TOUCHED) {
			choice->chosen = false; /* the kernel copies directories on the way, which changes nothing */
			continue;
		}
		r = why ? add_change(apply, &apply->result->refused, i, why) : 0;
		if (r == 0)
			r = check_edited(apply, i, &why);
		if (r == 0 && why)
			r = add_change(apply, &apply->result->conflicts, i, why);
		if (r < 0)
			return r;
	}
	return 0;
}

/* ---- the whole ---- */

/* Whether all of the view is chosen. */
static bool is_whole(const struct cordon_applying *apply)
{
	for (size_t i = 0; i < apply->delta.n; i++)
		if (apply->choices[i].part ||
		    (!apply->choices[i].chosen && apply->delta.changes[i].kind != CORDON_DELTA_TOUCHED))
			return false;
	return true;
}

static int fill_applied(struct cordon_applying *apply)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < apply->delta.n; i++)
		if (apply->choices[i].chosen && apply->delta.changes[i].kind != CORDON_DELTA_TOUCHED)
			r = add_change(apply, &apply->result->applied, i, NULL);
	apply->result->whole = is_whole(apply);
	return r;
}

static int fill_left(struct cordon_applying *apply)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < apply->delta.n_left; i++) {
		const struct cordon_delta_left *left = &apply->delta.left[i];

		if (cordon_delta_named(left->path, apply->request->paths, apply->request->n_paths))
			r = add_item(apply, &apply->result->left,
				     &(struct cordon_apply_item){ .path = left->path, .letter = '-', .why = left->what });
	}
	return r;
}

static int check_state(const struct cordon_view_record *record, struct cordon_error *err)
{
	if (record->state == CORDON_VIEW_LIVE)
		return cordon_fail(err, -EBUSY, CORDON_KIND_CONFLICT, "the run of view %s has not ended", record->id);
	if (record->state == CORDON_VIEW_DISCARDED)
		return cordon_fail(err, -ENOENT, CORDON_KIND_NOT_FOUND, "view %s was discarded", record->id);
	return 0;
}

/* Names the lowest view that must be applied before this one. */
static int check_layers(const struct cordon_view *view, const struct cordon_delta *delta, struct cordon_error *err)
{
	const struct cordon_view_record *record = &view->record;
	int r = 0;

	for (size_t i = json_array_size(record->layers); delta->stacked && r == 0 && i-- > 0;) {
		const char *id = json_string_value(json_array_get(record->layers, i));

		if (cordon_view_beside_state(view, id) == CORDON_VIEW_APPLIED)
			continue;
		r = cordon_fail(err, -EEXIST, CORDON_KIND_CONFLICT,
				"view %s was made on top of view %s, whose changes are not in the host's tree; nothing was "
				"written",
				record->id, id);
		cordon_error_hint(err, "'cordon changes apply %.8s' first", id);
	}
	return r;
}

int cordon_view_check_apply(const struct cordon_view *view, const struct cordon_delta *delta, struct cordon_error *err)
{
	int r = check_state(&view->record, err);

	return r == 0 ? check_layers(view, delta, err) : r;
}

/* INVARIANT: what a person looked at is what is written. */
static int check_shown(const struct cordon_applying *apply)
{
	char now[CORDON_SHOWN_SIZE];

	if (!apply->request->shown)
		return 0;
	cordon_shown_delta(apply->view, &apply->delta, now);
	if (cordon_streq(now, apply->request->shown))
		return 0;
	cordon_fail(apply->err, -ESTALE, CORDON_KIND_CONFLICT,
		    "the view or the host's tree has changed since it was shown; nothing was written");
	cordon_error_hint(apply->err, "look at the changes again");
	return -ESTALE;
}

/* Judges what the run committed. It comes with the whole view or not at all, because its files are part of it. */
static int judge_commits(struct cordon_applying *apply)
{
	struct cordon_git_take *take = NULL;
	int r;

	if (apply->view->record.git != CORDON_VIEW_GIT_COMMIT || apply->request->n_paths || apply->request->pick ||
	    apply->request->n_picked)
		return 0;
	r = cordon_git_take_judge(apply->policy, apply->view->path, &take, apply->err);
	apply->result->git = take;
	if (r < 0 || take->state != CORDON_GIT_REFUSED)
		return r;
	cordon_fail(apply->err, -EPERM, CORDON_KIND_POLICY_DENIED,
		    "the commits can't be taken over (%s); nothing was written",
		    take->n_findings ? take->findings[0].path
		    : take->n_notes  ? take->notes[take->n_notes - 1]
				     : "refused");
	cordon_error_hint(apply->err, "name paths to apply files without commits, or see 'cordon changes diff'");
	return -EPERM;
}

/* Takes the commits over when the files are there. What fails then can be repeated: the files are the same by now. */
static int take_commits(struct cordon_applying *apply)
{
	struct cordon_git_take *take = apply->result->git;
	int r = take && take->state == CORDON_GIT_READY ? cordon_git_take_finish(take, apply->err) : 0;

	if (r < 0 && take->state != CORDON_GIT_TAKEN)
		cordon_error_hint(apply->err, "the files were written; apply the view again to take its commits over");
	return r;
}

/* Finds the changes and what is needed to judge them. */
static int look(struct cordon_applying *apply)
{
	int r = cordon_view_policy(apply->view, &apply->policy, apply->err);

	if (r == 0)
		r = cordon_delta_find(apply->view, &apply->delta, apply->err);
	if (r == 0 && !(apply->choices = calloc(apply->delta.n + 1, sizeof(*apply->choices))))
		r = cordon_no_memory(apply->err);
	if (r == 0)
		apply->n_choices = apply->delta.n;
	return r;
}

static int choose_and_judge(struct cordon_applying *apply)
{
	int r = choose_paths(apply);

	if (r == 0 && (apply->request->pick || apply->request->n_picked))
		r = choose_by_person(apply);
	if (r == 0)
		choose_above(apply);
	if (r == 0)
		r = judge_all(apply);
	return r == 0 ? fill_left(apply) : r;
}

/* Writes the files, and looks for repositories among them in which git would execute something. */
static int write_files(struct cordon_applying *apply)
{
	struct cordon_repositories_mark mark = CORDON_REPOSITORIES_MARK_NONE;
	int r;

	cordon_repositories_begin(apply->policy, &mark);
	r = apply_carry_out(apply, is_whole(apply));
	if (r == 0 && apply->delta.n)
		cordon_repositories_find(apply->policy, &mark, CORDON_REPOSITORIES_IN_ROOT, REPOSITORIES_MS,
					 &apply->result->repositories);
	cordon_closep(&mark.index_fd);
	return r;
}

static int decide_and_write(struct cordon_applying *apply)
{
	struct cordon_apply_result *result = apply->result;
	int r = choose_and_judge(apply);

	if (r < 0)
		return r;
	if (result->refused.n) {
		cordon_fail(apply->err, -EPERM, CORDON_KIND_POLICY_DENIED,
			    "%zu of the paths may not be changed, the first is %s; nothing was written",
			    result->refused.n, result->refused.item[0].path);
		cordon_error_hint(apply->err, "name the paths that are to be applied");
		return -EPERM;
	}
	if (result->conflicts.n) {
		cordon_fail(apply->err, -EEXIST, CORDON_KIND_CONFLICT,
			    "%zu conflicts, the first is %s; nothing was written", result->conflicts.n,
			    result->conflicts.item[0].path);
		cordon_error_hint(apply->err, "name the paths that are to be applied, or see 'cordon changes diff'");
		return -EEXIST;
	}
	r = judge_commits(apply);
	if (r == 0 && !apply->request->only_judge)
		r = write_files(apply);
	if (r == 0)
		r = fill_applied(apply);
	return r == 0 && !apply->request->only_judge ? take_commits(apply) : r;
}

static int begin(struct cordon_view *view, const struct cordon_apply_request *request,
		 struct cordon_apply_result *ret_result, struct cordon_error *err, struct cordon_applying *ret_apply)
{
	*ret_apply = (struct cordon_applying){
		.view = view,
		.request = request,
		.result = ret_result,
		.delta = CORDON_DELTA_NONE,
		.journal = CORDON_APPLY_JOURNAL_NONE,
		.err = err,
	};
	*ret_result = (struct cordon_apply_result){ .arena = cordon_arena_new() };
	return ret_result->arena ? 0 : cordon_no_memory(err);
}

int cordon_view_apply(struct cordon_view *view, const struct cordon_apply_request *request,
		      struct cordon_apply_result *ret_result, struct cordon_error *err)
{
	struct cordon_applying apply;
	size_t ended;
	int r = begin(view, request, ret_result, err, &apply);

	if (r == 0)
		r = cordon_view_lock(view, err);
	if (r == 0)
		r = check_state(&view->record, err);
	if (r == 0)
		r = cordon_apply_journal_recover(view, &ended, err);
	if (r == 0)
		r = look(&apply);
	if (r == 0)
		r = check_layers(view, &apply.delta, err);
	if (r == 0)
		r = check_shown(&apply);
	if (r == 0 && request->only_judge)
		cordon_shown_delta(view, &apply.delta, ret_result->shown);
	if (r == 0)
		r = decide_and_write(&apply);
	/* A journal records it; there is none when nothing was left to be changed. */
	if (r == 0 && !request->only_judge && ret_result->whole && view->record.state != CORDON_VIEW_APPLIED) {
		view->record.state = CORDON_VIEW_APPLIED;
		r = cordon_view_save(view, err);
	}
	apply_done(&apply);
	return r;
}

int cordon_view_foresee(struct cordon_view *view, struct cordon_delta *ret_delta,
			struct cordon_apply_result *ret_result, struct cordon_error *err)
{
	const struct cordon_apply_request everything = { .only_judge = true };
	struct cordon_applying apply;
	int r = begin(view, &everything, ret_result, err, &apply);

	if (r == 0)
		r = look(&apply);
	if (r == 0) {
		cordon_shown_delta(view, &apply.delta, ret_result->shown);
		cordon_shown_settle(&apply.delta);
		r = choose_and_judge(&apply);
	}
	if (r == 0)
		r = fill_applied(&apply);
	if (r == 0) {
		*ret_delta = apply.delta;
		apply.delta = (struct cordon_delta)CORDON_DELTA_NONE;
	}
	apply_done(&apply);
	return r;
}
