/* SPDX-License-Identifier: Apache-2.0 */
/* Applies the changes of a view: chooses, judges, merges and stages them, and has a journal carry them out. */
#include <fcntl.h>
#include <stdio.h>

#include "base/path.h"
#include "view/apply.h"
#include "view/base.h"
#include "view/internal.h"
#include "view/journal.h"
#include "view/judge.h"
#include "view/lines.h"
#include "view/patch.h"
#include "view/stage.h"

/* What is known of a change while it is applied. */
struct choice {
	bool chosen;
	bool part;
	bool merged;
	bool warned;
	struct cordon_buf content; /* merged or picked; else it is the upper layer's */
};

struct link_of {
	uint64_t ino;
	uint32_t n;
};

struct apply {
	struct cordon_view *view;
	const struct cordon_apply_request *request;
	struct cordon_apply_result *result;
	struct cordon_delta delta;
	struct cordon_policy *policy;
	struct choice *choices;
	struct cordon_journal journal;
	struct link_of *links; /* files with several names that are staged */
	size_t n_links, links_cap;
	struct cordon_error *err;
};

static void apply_done(struct apply *apply)
{
	for (size_t i = 0; apply->choices && i < apply->delta.n; i++)
		cordon_buf_done(&apply->choices[i].content);
	free(apply->choices);
	free(apply->links);
	cordon_journal_done(&apply->journal);
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
	cordon_arena_free(result->arena);
	*result = (struct cordon_apply_result){ 0 };
}

static int add_item(struct apply *apply, struct cordon_apply_items *items, const struct cordon_apply_item *item)
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

static int add_change(struct apply *apply, struct cordon_apply_items *items, size_t i, const char *why)
{
	const struct cordon_delta_change *change = &apply->delta.changes[i];
	const struct choice *choice = &apply->choices[i];

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
			});
}

/* ---- choosing ---- */

static bool is_dir(const struct cordon_delta_change *change)
{
	return S_ISDIR(change->kind == CORDON_DELTA_DELETED ? change->old.mode : change->new.mode);
}

/* Chooses by path, and checks that each path names something. */
static int choose_paths(struct apply *apply)
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

static int choose_by_person(struct apply *apply)
{
	for (size_t i = 0; i < apply->delta.n; i++) {
		const struct cordon_delta_change *change = &apply->delta.changes[i];
		struct choice *choice = &apply->choices[i];
		cordon_pick pick = CORDON_PICK_NO;
		int r;

		if (!choice->chosen)
			continue;
		/* Directories come along with what is in them; a deleted one goes if all that was in it goes. */
		if (is_dir(change) || change->kind == CORDON_DELTA_TOUCHED) {
			choice->chosen = change->kind == CORDON_DELTA_DELETED;
			continue;
		}
		choice->content.max = CORDON_TEXT_BYTES_MAX;
		r = apply->request->pick(apply->request->data, &apply->delta, change, &pick, &choice->content,
					 apply->err);
		if (r < 0)
			return r;
		if (pick == CORDON_PICK_QUIT)
			return cordon_fail(apply->err, -ECANCELED, CORDON_KIND_USAGE, "stopped; nothing was written");
		choice->chosen = pick != CORDON_PICK_NO;
		choice->part = pick == CORDON_PICK_PART;
	}
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
static void choose_above(struct apply *apply)
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

static int merge(struct apply *apply, size_t i, const char **ret_why)
{
	const struct cordon_delta_change *change = &apply->delta.changes[i];
	struct choice *choice = &apply->choices[i];
	autobuf struct cordon_buf base = CORDON_BUF(CORDON_TEXT_BYTES_MAX), host = CORDON_BUF(CORDON_TEXT_BYTES_MAX);
	autobuf struct cordon_buf view = CORDON_BUF(CORDON_TEXT_BYTES_MAX),
				  merged = CORDON_BUF(2 * CORDON_TEXT_BYTES_MAX);
	autotext struct cordon_text b = { 0 }, h = { 0 }, v = { 0 };
	bool certain = false, common = false;
	int r;

	*ret_why = "the host changed it, too";
	if (!S_ISREG(change->old.mode) || !S_ISREG(change->new.mode))
		return 0;
	if (cordon_delta_read(&apply->delta, change, true, &host, NULL) < 0 ||
	    cordon_delta_read(&apply->delta, change, false, &view, NULL) < 0 || !cordon_text_is(host.data, host.len) ||
	    !cordon_text_is(view.data, view.len))
		return 0;
	if (choice->part) {
		/* The person saw the host's text and chose hunks for it, so that is what the choice is based on. */
		*ret_why = NULL;
		return 0;
	}
	if (cordon_base_read(apply->view, &apply->delta, change, &base, &certain) < 0 ||
	    !cordon_text_is(base.data, base.len)) {
		*ret_why = "the host changed it, too, and what it was before is not known";
		return 0;
	}
	r = cordon_text_init(&b, base.data, base.len);
	if (r == 0)
		r = cordon_text_init(&h, host.data, host.len);
	if (r == 0)
		r = cordon_text_init(&v, view.data, view.len);
	if (r == 0)
		r = cordon_lines_merge(&b, &h, &v, &merged, &common);
	if (r == -EEXIST) {
		*ret_why = "the host changed the same lines";
		return 0;
	}
	if (r < 0)
		return cordon_fail_errno(apply->err, r, "cannot merge %s", change->path);
	/* Both have a change that git does not know: the file was not clean when the view began. If the host has git's
	 * own text, it may have taken back what it had changed before. In both cases the blob is not the base. */
	if (!certain && (common || (host.len == base.len &&
				    memcmp(host.data ? host.data : "", base.data ? base.data : "", base.len) == 0))) {
		*ret_why = "the host changed it, too, and it had changes that git did not know";
		return 0;
	}
	cordon_buf_done(&choice->content);
	choice->content = merged;
	merged = (struct cordon_buf){ 0 };
	choice->merged = true;
	*ret_why = NULL;
	return 0;
}

/* Finds out whether the host's own change is in the way; *ret_why is NULL when it is not. */
static int check_edited(struct apply *apply, size_t i, const char **ret_why)
{
	const struct cordon_delta_change *change = &apply->delta.changes[i];

	*ret_why = NULL;
	if (!change->edited)
		return 0;
	switch (change->kind) {
	case CORDON_DELTA_ADDED:
		/* A person who names the very path has seen the conflict, or knows that the run moved the file. */
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
	return is_dir(change) ? 0 : merge(apply, i, ret_why);
}

static int judge_all(struct apply *apply)
{
	for (size_t i = 0; i < apply->delta.n; i++) {
		const struct cordon_delta_change *change = &apply->delta.changes[i];
		struct choice *choice = &apply->choices[i];
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

/* ---- staging ---- */

static struct link_of *find_link(struct apply *apply, uint64_t ino)
{
	for (size_t i = 0; i < apply->n_links; i++)
		if (apply->links[i].ino == ino)
			return &apply->links[i];
	return NULL;
}

static int remember_link(struct apply *apply, uint64_t ino, uint32_t n)
{
	if (apply->n_links == apply->links_cap) {
		size_t cap = apply->links_cap ? 2 * apply->links_cap : 16;
		struct link_of *more = reallocarray(apply->links, cap, sizeof(*more));

		if (!more)
			return -ENOMEM;
		apply->links = more;
		apply->links_cap = cap;
	}
	apply->links[apply->n_links++] = (struct link_of){ .ino = ino, .n = n };
	return 0;
}

/* Puts the new file or link into the stage, under the step's number. */
static int stage_file(struct apply *apply, size_t i, const struct cordon_step *step)
{
	const struct cordon_delta_change *change = &apply->delta.changes[i];
	const struct choice *choice = &apply->choices[i];
	bool content = choice->merged || choice->part;
	struct cordon_stage_like like = {
		.mode = change->new.mode,
		.content = content ? &choice->content : NULL,
		.owned = change->old.mode && (change->old.uid != geteuid() || change->old.gid != getegid()),
		.uid = change->old.uid,
		.gid = change->old.gid,
	};
	char digits[CORDON_DIGITS_SIZE], other[CORDON_DIGITS_SIZE];
	const char *name = cordon_journal_entry(step->n, digits);
	struct link_of *known;
	struct stat st;
	autofd int fd = cordon_delta_open(&apply->delta, change, &st);

	if (fd < 0)
		return fd;
	if (S_ISLNK(st.st_mode))
		return cordon_stage_link(fd, &st, apply->journal.stage_fd, name);
	known = change->links > 1 && !content ? find_link(apply, st.st_ino) : NULL;
	if (known && linkat(apply->journal.stage_fd, cordon_journal_entry(known->n, other), apply->journal.stage_fd,
			    name, 0) == 0)
		return 0;
	if (change->links > 1 && !content && remember_link(apply, st.st_ino, step->n) < 0)
		return -ENOMEM;
	return cordon_stage_file(fd, &st, &like, apply->journal.stage_fd, name);
}

static int add_step(struct apply *apply, struct cordon_step *step)
{
	char digits[CORDON_DIGITS_SIZE];
	struct stat st;

	if (step->kind == CORDON_STEP_SWAP || step->kind == CORDON_STEP_PUT) {
		if (fstatat(apply->journal.stage_fd, cordon_journal_entry(step->n, digits), &st, AT_SYMLINK_NOFOLLOW) < 0)
			return cordon_fail_errno(apply->err, -errno, "cannot prepare %s", step->path);
		cordon_ident_of(&st, &step->new);
	}
	return cordon_journal_add(&apply->journal, step, apply->err);
}

static int stage_change(struct apply *apply, size_t i)
{
	const struct cordon_delta_change *change = &apply->delta.changes[i];
	struct cordon_step step = { .path = change->path,
				    .old = change->old,
				    .n = apply->journal.next++,
				    .edited = change->edited,
				    .part = apply->choices[i].part };
	char digits[CORDON_DIGITS_SIZE];
	int r = 0;

	if (change->kind == CORDON_DELTA_DELETED) {
		step.kind = CORDON_STEP_TAKE;
	} else if (S_ISDIR(change->new.mode)) {
		if (change->kind != CORDON_DELTA_ADDED)
			return 0; /* its rights come last */
		step.kind = CORDON_STEP_PUT;
		if (mkdirat(apply->journal.stage_fd, cordon_journal_entry(step.n, digits), 0700) < 0)
			r = -errno;
	} else if (change->kind == CORDON_DELTA_TOUCHED && !change->attributes) {
		return 0;
	} else {
		step.kind = change->old.mode ? CORDON_STEP_SWAP : CORDON_STEP_PUT;
		r = stage_file(apply, i, &step);
	}
	if (r < 0)
		return cordon_fail_errno(apply->err, r, "cannot prepare %s", change->path);
	return add_step(apply, &step);
}

/* Adds the steps that set rights and times: after all others, and what is deeper first, because changes in a directory
 * change its time. */
static int stage_meta(struct apply *apply)
{
	size_t n = apply->journal.n, at = n;

	for (size_t i = apply->delta.n; i-- > 0;) {
		const struct cordon_delta_change *change = &apply->delta.changes[i];
		struct cordon_step step = {
			.kind = CORDON_STEP_META, .path = change->path, .old = change->old, .new = change->new
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
			while (at > 0 && !(apply->journal.steps[at - 1].kind == CORDON_STEP_PUT &&
					   cordon_streq(apply->journal.steps[at - 1].path, change->path)))
				at--;
			if (at == 0)
				continue;
			step.old = apply->journal.steps[at - 1].new;
			step.old.mtime = (struct timespec){ 0 };
		}
		r = cordon_journal_add(&apply->journal, &step, apply->err);
		if (r < 0)
			return r;
	}
	return 0;
}

/* Whether all of the view is chosen. */
static bool is_whole(const struct apply *apply)
{
	for (size_t i = 0; i < apply->delta.n; i++)
		if (apply->choices[i].part ||
		    (!apply->choices[i].chosen && apply->delta.changes[i].kind != CORDON_DELTA_TOUCHED))
			return false;
	return true;
}

static int carry_out(struct apply *apply)
{
	int r = cordon_journal_begin(apply->view, apply->delta.root_fd, &apply->journal, apply->err);

	apply->journal.whole = is_whole(apply);
	for (size_t i = 0; r == 0 && i < apply->delta.n; i++)
		if (apply->choices[i].chosen)
			r = stage_change(apply, i);
	if (r == 0)
		r = stage_meta(apply);
	if (r < 0) {
		cordon_journal_drop(&apply->journal);
		return r;
	}
	if (apply->journal.n == 0) {
		cordon_journal_drop(&apply->journal);
		return 0;
	}
	return cordon_journal_commit(&apply->journal, apply->err);
}

/* ---- the whole ---- */

static int fill_applied(struct apply *apply)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < apply->delta.n; i++)
		if (apply->choices[i].chosen && apply->delta.changes[i].kind != CORDON_DELTA_TOUCHED)
			r = add_change(apply, &apply->result->applied, i, NULL);
	apply->result->whole = is_whole(apply);
	return r;
}

static int fill_left(struct apply *apply)
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

static int check_state(struct apply *apply)
{
	const struct cordon_view_record *record = &apply->view->record;

	if (record->state == CORDON_VIEW_LIVE)
		return cordon_fail(apply->err, -EBUSY, CORDON_KIND_CONFLICT, "the run of view %s has not ended",
				   record->id);
	if (record->state == CORDON_VIEW_DISCARDED)
		return cordon_fail(apply->err, -ENOENT, CORDON_KIND_NOT_FOUND, "view %s was discarded", record->id);
	return 0;
}

/* Names the lowest view that must be applied before this one. */
static int check_layers(const struct apply *apply)
{
	const struct cordon_view_record *record = &apply->view->record;
	int r = 0;

	for (size_t i = json_array_size(record->layers); apply->delta.stacked && r == 0 && i-- > 0;) {
		const char *id = json_string_value(json_array_get(record->layers, i));

		if (cordon_view_beside_state(apply->view, id) == CORDON_VIEW_APPLIED)
			continue;
		r = cordon_fail(apply->err, -EEXIST, CORDON_KIND_CONFLICT,
				"view %s was made on top of view %s, whose changes are not in the host's tree; nothing was "
				"written",
				record->id, id);
		cordon_error_hint(apply->err, "'cordon changes apply %.8s' first", id);
	}
	return r;
}

/* Judges what the run committed. It comes with the whole view or not at all, because its files are part of it. */
static int judge_commits(struct apply *apply)
{
	struct cordon_git_take *take = NULL;
	int r;

	if (apply->view->record.git != CORDON_VIEW_GIT_COMMIT || apply->request->n_paths || apply->request->pick)
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
static int take_commits(struct apply *apply)
{
	struct cordon_git_take *take = apply->result->git;
	int r = take && take->state == CORDON_GIT_READY ? cordon_git_take_finish(take, apply->err) : 0;

	if (r < 0 && take->state != CORDON_GIT_TAKEN)
		cordon_error_hint(apply->err, "the files were written; apply the view again to take its commits over");
	return r;
}

static int decide_and_write(struct apply *apply)
{
	struct cordon_apply_result *result = apply->result;
	int r = choose_paths(apply);

	if (r == 0 && apply->request->pick)
		r = choose_by_person(apply);
	if (r == 0)
		choose_above(apply);
	if (r == 0)
		r = judge_all(apply);
	if (r == 0)
		r = fill_left(apply);
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
		r = carry_out(apply);
	if (r == 0)
		r = fill_applied(apply);
	return r == 0 && !apply->request->only_judge ? take_commits(apply) : r;
}

int cordon_view_apply(struct cordon_view *view, const struct cordon_apply_request *request,
		      struct cordon_apply_result *ret_result, struct cordon_error *err)
{
	struct apply apply = {
		.view = view,
		.request = request,
		.result = ret_result,
		.delta = CORDON_DELTA_NONE,
		.journal = CORDON_JOURNAL_NONE,
		.err = err,
	};
	size_t ended;
	int r;

	*ret_result = (struct cordon_apply_result){ .arena = cordon_arena_new() };
	if (!ret_result->arena)
		return cordon_no_memory(err);
	r = cordon_view_lock(view, err);
	if (r == 0)
		r = check_state(&apply);
	if (r == 0)
		r = cordon_journal_recover(view, &ended, err);
	if (r == 0)
		r = cordon_view_policy(view, &apply.policy, err);
	if (r == 0)
		r = cordon_delta_find(view, &apply.delta, err);
	if (r == 0)
		r = check_layers(&apply);
	if (r == 0 && !(apply.choices = calloc(apply.delta.n + 1, sizeof(*apply.choices))))
		r = cordon_no_memory(err);
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
