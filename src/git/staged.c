/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a run staged. The index that the host gets is its own one, brought from the old HEAD to the new one as `git checkout`
 * does it, and with what the run staged besides. An entry that the host itself had staged is not judged: it stays, unless the
 * run committed or changed it.
 */
#include "git/taking.h"

/* A list of differences between HEAD and an index, or between two commits, sorted by path. */
struct list {
	struct cordon_buf text;
	struct cordon_git_changes changes;
};

static void list_done(struct list *list)
{
	cordon_buf_done(&list->text);
	cordon_git_changes_done(&list->changes);
}

static int list_read(const struct cordon_git_taking *t, const char *name, struct list *ret, struct cordon_error *err)
{
	autobuf struct cordon_buf raw = { 0 };
	struct cordon_git_pair pair = { 0 };
	int r = cordon_git_scratch_read(t, name, CORDON_GIT_DIFF_BYTES, &raw, err);

	if (r < 0)
		return r;
	ret->text.max = 2 * CORDON_GIT_DIFF_BYTES;
	memset(pair.commit, '0', 40);
	if (cordon_buf_add(&ret->text, pair.commit, 41) < 0 ||
	    (raw.len && cordon_buf_add(&ret->text, raw.data, raw.len) < 0))
		return cordon_fail_errno(err, -ENOMEM, "what is staged");
	return cordon_git_changes_parse(ret->text.data, ret->text.len, &pair, 1, &ret->changes, err);
}

static int by_path(const void *a, const void *b)
{
	return strcmp(((const struct cordon_git_change *)a)->path, ((const struct cordon_git_change *)b)->path);
}

static const struct cordon_git_change *find(const struct list *list, const char *path)
{
	struct cordon_git_change key = { .path = path };

	return list->changes.n ? bsearch(&key, list->changes.items, list->changes.n, sizeof(key), by_path) : NULL;
}

static size_t id_length(const struct cordon_git_change *change)
{
	return strcspn(change->id, " ");
}

/* Behind the id stands the kind of the change. */
static bool is_unmerged(const struct cordon_git_change *change)
{
	return change->id[id_length(change) + 1] == 'U';
}

static bool same_entry(const struct cordon_git_change *a, const struct cordon_git_change *b)
{
	return a->new_mode == b->new_mode && is_unmerged(a) == is_unmerged(b) && id_length(a) == id_length(b) &&
	       memcmp(a->id, b->id, id_length(a)) == 0;
}

static int add_line(struct cordon_buf *text, unsigned int mode, const char *id, const struct cordon_git_change *change,
		    struct cordon_error *err)
{
	int r = cordon_buf_addf(text, "%o %.*s\t%s", mode, (int)id_length(change), id, change->path);

	r = r < 0 ? r : cordon_buf_addc(text, '\0');
	return r < 0 ? cordon_fail_errno(err, r, "what is staged") : 0;
}

/* The entry gets the value of the old HEAD, from which the index goes on to the new one. */
static int give_way(struct cordon_git_taking *t, const struct cordon_git_change *host, struct cordon_error *err)
{
	return add_line(&t->unstaged, host->old_mode, host->id - id_length(host) - 1, host, err);
}

static int stage(struct cordon_git_taking *t, const struct cordon_git_change *change, struct cordon_error *err)
{
	return add_line(&t->staged, change->new_mode, change->id, change, err);
}

/* The host's entry stays. Where the commit itself has changed as well, it must be out of the way meanwhile. */
static int keep(struct cordon_git_taking *t, const struct cordon_git_change *host, bool moved, struct cordon_error *err)
{
	int r;

	if (!host || !moved || is_unmerged(host))
		return 0;
	r = give_way(t, host, err);
	return r < 0 ? r : stage(t, host, err);
}

/* What is staged after the run. A path that is not allowed stays as it was. */
static int judge_one(const struct cordon_policy *policy, struct cordon_git_taking *t, struct cordon_git_take *take,
		     const struct cordon_git_change *run, const struct cordon_git_change *host, bool moved,
		     struct cordon_error *err)
{
	bool allowed = false;
	int r = 0;

	if (!(host && same_entry(host, run)) && !is_unmerged(run))
		r = cordon_git_judge(policy, "", run, take, &allowed, err);
	if (r < 0 || !allowed)
		return r < 0 ? r : keep(t, host, moved, err);
	r = host ? give_way(t, host, err) : 0;
	return r < 0 ? r : stage(t, run, err);
}

/* What the host had staged, and what is the same as in the new HEAD after the run: it was committed or taken back. */
static int judge_gone(const struct cordon_policy *policy, struct cordon_git_taking *t, struct cordon_git_take *take,
		      const struct cordon_git_change *host, bool moved, struct cordon_error *err)
{
	struct cordon_git_change back = { .path = host->path, .old_mode = host->new_mode, .new_mode = host->old_mode };
	bool allowed = true;
	int r = moved ? 0 : cordon_git_judge(policy, "", &back, take, &allowed, err);

	return r < 0 || !allowed ? r : give_way(t, host, err);
}

int cordon_git_judge_staged(const struct cordon_policy *policy, struct cordon_git_taking *t,
			    struct cordon_git_take *take, struct cordon_error *err)
{
	CORDON_CLEANUP(list_done) struct list start = { 0 }, run = { 0 }, moved = { 0 };
	int r;

	t->unstaged.max = t->staged.max = 4 * CORDON_GIT_DIFF_BYTES;
	if ((r = list_read(t, "staged.start", &start, err)) < 0 || (r = list_read(t, "staged", &run, err)) < 0 ||
	    (r = list_read(t, "moved", &moved, err)) < 0)
		return r;
	for (size_t i = 0; r == 0 && i < run.changes.n; i++) {
		const struct cordon_git_change *change = &run.changes.items[i];

		r = judge_one(policy, t, take, change, find(&start, change->path), find(&moved, change->path), err);
	}
	/* A file that the host only intends to add is in the way of one that the run committed. */
	for (size_t i = 0; r == 0 && i < moved.changes.n; i++) {
		const struct cordon_git_change *change = &moved.changes.items[i];

		if (!change->old_mode && !find(&start, change->path))
			r = give_way(t, change, err);
	}
	for (size_t i = 0; r == 0 && i < start.changes.n; i++) {
		const struct cordon_git_change *change = &start.changes.items[i];

		if (!find(&run, change->path))
			r = judge_gone(policy, t, take, change, find(&moved, change->path), err);
	}
	return r;
}
