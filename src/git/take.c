/* SPDX-License-Identifier: Apache-2.0 */
/* Judges what a run has committed: compares refs, has git pack and check the new objects in a sandbox (scratch.c), and
 * asks the policy about each path. Nothing of the host changes. */
#include <fcntl.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/dirs.h"
#include "base/io.h"
#include "base/lock.h"
#include "base/name_list.h"
#include "base/path.h"
#include "base/upper.h"
#include "git/taking.h"

/* ---- what the run did to refs and HEAD ---- */

#define LOG_MAX ((size_t)4 << 20)

/* Notes why nothing can be taken over. */
int cordon_git_refuse(struct cordon_git_take *take, struct cordon_error *err, const char *fmt, ...)
{
	autofree char *text = NULL;
	va_list args;
	int n;

	take->state = CORDON_GIT_REFUSED;
	va_start(args, fmt);
	n = vasprintf(&text, fmt, args);
	va_end(args);
	if (n < 0) {
		text = NULL;
		return cordon_fail_errno(err, -ENOMEM, "taking over");
	}
	return cordon_git_note(take, err, "%s", text);
}

/* ---- refs ---- */

static int add_ref(struct cordon_git_take *take, const char *name, const char *old, const char *new,
		   struct cordon_error *err)
{
	struct cordon_git_ref *refs = reallocarray(take->refs, take->n_refs + 1, sizeof(*refs)), *ref;

	if (!refs)
		return cordon_fail_errno(err, -ENOMEM, "refs");
	take->refs = refs;
	ref = &refs[take->n_refs++];
	*ref = (struct cordon_git_ref){ .name = strdup(name), .old = strdup(old ? old : ""), .new = strdup(new) };
	return ref->name && ref->old && ref->new ? 0 : cordon_fail_errno(err, -ENOMEM, "refs");
}

static int compare_ref(struct cordon_git_taking *t, struct cordon_git_take *take, const struct cordon_git_named *ref,
		       struct cordon_error *err)
{
	const char *start = cordon_git_refs_find(&t->start, ref->name);
	const char *host = cordon_git_refs_find(&t->host, ref->name);
	CORDON_UNCLEARED char other[CORDON_PATH_MAX];

	if (cordon_git_same(start, ref->id) || cordon_git_same(host, ref->id) ||
	    cordon_streq(ref->name, CORDON_GIT_STASH))
		return 0;
	if (start && strncmp(ref->name, "refs/tags/", 10) == 0)
		return cordon_git_note(take, err, "%s: the run moved the tag, which stays as it is on the host",
				       ref->name);
	if (!cordon_git_same(start, host))
		return cordon_git_refuse(take, err, "%s: %s on the host while the run went on", ref->name,
					 !start	 ? "it was made"
					 : !host ? "it was deleted"
						 : "it moved");
	/* Moving it would move the other one, whose files and index nobody brings along. */
	if (cordon_git_refs_is_symbolic(&t->host, ref->name))
		return cordon_git_refuse(take, err, "%s: on the host it stands for another branch", ref->name);
	cordon_git_repo_in_use(&t->repo, ref->name, other);
	if (*other)
		return cordon_git_refuse(take, err, "%s: it is checked out in %s", ref->name, other);
	return add_ref(take, ref->name, start, ref->id, err);
}

/* Fills the refs of the take, HEAD and the new entries of the stash, and refuses what the host has changed meanwhile. */
static int git_compare_refs(struct cordon_git_taking *t, struct cordon_git_take *take, struct cordon_error *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < t->run.n; i++)
		r = compare_ref(t, take, &t->run.items[i], err);
	for (size_t i = 0; r == 0 && i < t->start.n; i++) {
		const char *name = t->start.items[i].name;
		bool taken = strncmp(name, "refs/heads/", 11) == 0 || strncmp(name, "refs/tags/", 10) == 0;

		if (taken && !cordon_git_refs_find(&t->run, name) && cordon_git_refs_find(&t->host, name))
			r = cordon_git_note(take, err, "%s: the run deleted it, and it stays on the host", name);
	}
	return r;
}

static int copy_id(char ret[static CORDON_GIT_ID_SIZE], const char *id)
{
	return id ? cordon_copy(ret, CORDON_GIT_ID_SIZE, id, strlen(id)) : (ret[0] = '\0', 0);
}

/* The commit to which the text of a HEAD leads; "" when its branch has none yet. */
static void resolve_head(const struct cordon_buf *head, const struct cordon_git_refs *refs,
			 char ret[static CORDON_GIT_ID_SIZE])
{
	copy_id(ret, strncmp(head->data, "ref: ", 5) == 0 ? cordon_git_refs_find(refs, head->data + 5) : head->data);
}

static int git_compare_head(struct cordon_git_taking *t, struct cordon_git_take *take, struct cordon_error *err)
{
	static const char *const unfinished[][2] = { { "rebase-merge", "rebase" }, { "rebase-apply", "rebase" } };
	autobuf struct cordon_buf host = { 0 };
	CORDON_UNCLEARED char other[CORDON_PATH_MAX];
	struct stat st;
	int r = cordon_git_repo_head(&t->repo, &host, err);

	if (r < 0)
		return r;
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(unfinished); i++)
		if (fstatat(t->own_fd, unfinished[i][0], &st, AT_SYMLINK_NOFOLLOW) == 0)
			return cordon_git_refuse(take, err, "the run ended in the middle of a %s", unfinished[i][1]);
	t->head_there = cordon_streq(host.data, t->head_run.data);
	t->host_went_on = !cordon_streq(host.data, t->head_start.data) && !(t->interrupted && t->head_there);
	resolve_head(&t->head_start, &t->start, t->head_old_id);
	resolve_head(&t->head_run, &t->run, t->head_id);
	if (cordon_streq(t->head_run.data, t->head_start.data))
		return 0;
	if (!*t->head_id) {
		r = cordon_git_note(take, err, "HEAD: the run changed to a branch without a commit; the host's stays");
		cordon_buf_reset(&t->head_run);
		copy_id(t->head_id, t->head_old_id);
		return r < 0 || cordon_buf_adds(&t->head_run, t->head_start.data) == 0
			       ? r
			       : cordon_fail_errno(err, -ENOMEM, "HEAD");
	}
	if (strncmp(t->head_run.data, "ref: ", 5) != 0)
		return 0;
	cordon_git_repo_in_use(&t->repo, t->head_run.data + 5, other);
	return *other ? cordon_git_refuse(take, err, "HEAD: %s is checked out in %s", t->head_run.data + 5, other) : 0;
}

/* ---- the stash ---- */

/* "OLD NEW NAME <ADDRESS> TIME ZONE\tMESSAGE" */
static int add_stash(struct cordon_git_taking *t, const char *line, const struct cordon_buf *known,
		     struct cordon_error *err)
{
	size_t old = strcspn(line, " "), new = line[old] ? strcspn(line + old + 1, " ") : 0;
	const char *message = strchr(line, '\t');
	struct cordon_git_stash *stash = &t->stashes[t->n_stashes];
	char id[CORDON_GIT_ID_SIZE];

	if (!cordon_git_id_valid(line, old) || !cordon_git_id_valid(line + old + 1, new) ||
	    cordon_copy(id, sizeof(id), line + old + 1, new) < 0 || (known->data && strstr(known->data, id)) ||
	    t->n_stashes == CORDON_GIT_STASHES_MAX)
		return 0;
	memcpy(stash->id, id, sizeof(id));
	stash->message = strndup(message ? message + 1 : "stash", 200);
	if (!stash->message)
		return cordon_fail_errno(err, -ENOMEM, "stash");
	for (char *c = stash->message; *c; c++)
		if ((unsigned char)*c < ' ' || *c == 127)
			*c = ' ';
	t->n_stashes++;
	return 0;
}

static int git_find_stashes(struct cordon_git_taking *t, struct cordon_git_take *take, struct cordon_error *err)
{
	autobuf struct cordon_buf theirs = CORDON_BUF(LOG_MAX), ours = CORDON_BUF(LOG_MAX);
	autofd int from = cordon_open_beneath(t->git_fd, "logs/refs", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	autofd int host = cordon_open_beneath(t->repo.common_fd, "logs/refs", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	const char *start = cordon_git_refs_find(&t->start, CORDON_GIT_STASH);
	const char *run = cordon_git_refs_find(&t->run, CORDON_GIT_STASH);
	int r = 0;

	if (cordon_git_same(start, run))
		return 0;
	if (host >= 0 && cordon_read_file(host, "stash", O_NOFOLLOW, &ours, NULL) < 0)
		cordon_buf_reset(&ours);
	if (from < 0 || cordon_read_file(from, "stash", O_NOFOLLOW, &theirs, NULL) < 0)
		return 0;
	for (char *line = theirs.data; r == 0 && line && *line;) {
		size_t n = strcspn(line, "\n");
		char *next = line + n + (line[n] == '\n');

		line[n] = '\0';
		r = add_stash(t, line, &ours, err);
		line = next;
	}
	if (r == 0 && start && !t->n_stashes)
		r = cordon_git_note(take, err, "the run dropped entries of the stash, which stay on the host");
	return r;
}

/* ---- taking over ---- */

#define START_MAX ((size_t)64 << 10)
#define LIST_MAX ((size_t)256 << 20) /* of the lists of commits and pairs */

/* ---- opening ---- */

static void taking_free(struct cordon_git_taking *t)
{
	if (!t)
		return;
	cordon_git_repo_done(&t->repo);
	cordon_git_refs_done(&t->start);
	cordon_git_refs_done(&t->run);
	cordon_git_refs_done(&t->host);
	cordon_buf_done(&t->head_start);
	cordon_buf_done(&t->head_run);
	cordon_buf_done(&t->unstaged);
	cordon_buf_done(&t->staged);
	for (size_t i = 0; i < t->n_stashes; i++)
		free(t->stashes[i].message);
	cordon_closep(&t->git_fd);
	cordon_closep(&t->own_fd);
	cordon_closep(&t->start_fd);
	cordon_closep(&t->index_fd);
	cordon_closep(&t->scratch_fd);
	if (t->take_fd >= 0) {
		cordon_closep(&t->take_fd);
		cordon_dirs_remove(t->record_fd, CORDON_GIT_TAKE, NULL);
	}
	cordon_closep(&t->record_fd);
	free(t);
}

struct cordon_git_take *cordon_git_take_free(struct cordon_git_take *take)
{
	if (!take)
		return NULL;
	for (size_t i = 0; i < take->n_refs; i++) {
		free(take->refs[i].name);
		free(take->refs[i].old);
		free(take->refs[i].new);
	}
	for (size_t i = 0; i < take->n_findings; i++) {
		free(take->findings[i].commit);
		free(take->findings[i].path);
		free(take->findings[i].why);
	}
	for (size_t i = 0; i < take->n_notes; i++)
		free(take->notes[i]);
	free(take->commits);
	free(take->refs);
	free(take->findings);
	free(take->notes);
	taking_free(take->taking);
	free(take);
	return NULL;
}

static int open_dirs(struct cordon_git_taking *t, const char *record, struct cordon_error *err)
{
	static const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

	if (cordon_copy(t->record, sizeof(t->record), record, strlen(record)) < 0 ||
	    cordon_path_join(record, CORDON_GIT_TAKE, t->take, sizeof(t->take)) < 0 ||
	    cordon_path_join(t->take, CORDON_GIT_SCRATCH, t->scratch, sizeof(t->scratch)) < 0 ||
	    cordon_path_join(t->take, CORDON_GIT_SHIM, t->shim, sizeof(t->shim)) < 0)
		return cordon_fail_errno(err, -ENAMETOOLONG, "%s", record);
	t->record_fd = open(record, flags);
	if (t->record_fd < 0)
		return cordon_fail_errno(err, -errno, "cannot open %s", record);
	t->start_fd = openat(t->record_fd, CORDON_GIT_START, flags);
	t->git_fd = t->start_fd < 0 ? -1 : cordon_upper_open(t->record_fd, CORDON_GIT_DIR, O_RDONLY | O_DIRECTORY);
	return t->start_fd < 0 || t->git_fd < 0 ? (errno == ENOENT ? 1 : cordon_fail_errno(err, -errno, "%s", record))
						: 0;
}

/* Of a view, the index at the start is where the rest of the git directory at the start is. */
static int find_index(struct cordon_git_taking *t, struct cordon_error *err)
{
	autofd int left = openat(t->start_fd, CORDON_GIT_LEFT, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	t->index_fd = left < 0 ? fcntl(t->start_fd, F_DUPFD_CLOEXEC, 3)
			       : cordon_open_beneath(left, *t->own ? t->own : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return t->index_fd < 0 ? cordon_fail_errno(err, -errno, "cannot open %s", t->record) : 0;
}

/* Whether a run in a view changed nothing at all in its git directory. */
static bool is_untouched(const struct cordon_git_taking *t)
{
	autonames struct cordon_name_list names = { 0 };
	struct stat st;

	return fstatat(t->start_fd, CORDON_GIT_LOWER, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	       cordon_name_list_read(t->git_fd, &names) == 0 && !names.n;
}

/* Reads refs, HEAD and the worktree of the start. 1 when the run was killed before it began. *ret_origin says which
 * repository it was. */
static int read_start(struct cordon_git_taking *t, json_t **ret_origin, struct cordon_error *err)
{
	autobuf struct cordon_buf text = CORDON_BUF(CORDON_GIT_REFS_BYTES + START_MAX);
	json_auto_t *origin = NULL;
	const char *own, *head, *refs;
	int r = cordon_read_file(t->start_fd, CORDON_GIT_STARTED, O_NOFOLLOW, &text, err);

	if (r < 0)
		return r == -ENOENT ? 1 : r;
	head = text.data ? strchr(text.data, '\n') : NULL;
	refs = head ? strchr(head + 1, '\n') : NULL;
	origin = refs ? json_loadb(text.data, (size_t)(head - text.data), 0, NULL) : NULL;
	if (!origin || json_unpack(origin, "{s:s}", "own", &own) < 0)
		return cordon_fail(err, -EBADMSG, CORDON_KIND_CONFIG,
				   "%s/" CORDON_GIT_START "/" CORDON_GIT_STARTED " is damaged", t->record);
	t->head_start.max = START_MAX;
	if (cordon_copy(t->own, sizeof(t->own), own, strlen(own)) < 0 ||
	    cordon_buf_add(&t->head_start, head + 1, (size_t)(refs - head - 1)) < 0)
		return cordon_fail_errno(err, -ENOMEM, "%s", t->record);
	r = cordon_git_refs_parse(refs + 1, text.len - (size_t)(refs + 1 - text.data), &t->start, err);
	if (r == 0 && ret_origin)
		*ret_origin = cordon_steal_ptr(&origin);
	return r;
}

/* The repository must be the one that the run started with. */
static int check_origin(struct cordon_git_taking *t, json_t *origin, struct cordon_error *err)
{
	const char *common;
	json_int_t dev, ino;
	struct stat st;

	if (json_unpack(origin, "{s:s, s:I, s:I}", "common", &common, "dev", &dev, "ino", &ino) < 0)
		return cordon_fail(err, -EBADMSG, CORDON_KIND_CONFIG, "%s is damaged", t->record);
	if (cordon_streq(common, t->repo.common) && cordon_streq(t->own, t->repo.own) &&
	    fstat(t->repo.common_fd, &st) == 0 && (json_int_t)st.st_dev == dev && (json_int_t)st.st_ino == ino)
		return 0;
	return cordon_fail(err, -ESTALE, CORDON_KIND_CONFLICT,
			   "the repository is not the one that the run started with");
}

/* Reads what the run left. What it damaged is refused, and is no error of ours. Before a view is settled, its git directory has
 * only what the run changed. */
static int read_run(struct cordon_git_taking *t, struct cordon_git_take *take, struct cordon_error *err)
{
	struct cordon_error fault = { 0 };
	struct stat st;
	bool settled = fstatat(t->start_fd, CORDON_GIT_LOWER, &st, AT_SYMLINK_NOFOLLOW) < 0;
	int r = 0;

	t->own_fd = cordon_open_beneath(t->git_fd, t->own, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (t->own_fd < 0 && (settled || t->own_fd != -ENOENT))
		r = cordon_fail_errno(&fault, t->own_fd, "cannot open %s", t->own);
	if (r == 0)
		r = cordon_git_refs_read(t->git_fd, false, &t->run, &fault);
	if (r == 0 && t->own_fd >= 0)
		r = cordon_git_head_read(t->own_fd, &t->head_run, &fault);
	if (r == -ENOENT && !settled)
		r = 0;
	return r < 0 ? cordon_git_refuse(take, err, "the run's git directory can't be read: %s", fault.message) : 0;
}

/* ---- judging ---- */

bool cordon_git_same_file(int a_dir, const char *a_name, int b_dir, const char *b_name)
{
	autofd int a = openat(a_dir, a_name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	autofd int b = openat(b_dir, b_name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stat x, y;
	char left[65536], right[65536];

	if (a < 0 || b < 0)
		return a < 0 && b < 0;
	if (fstat(a, &x) < 0 || fstat(b, &y) < 0 || !S_ISREG(x.st_mode) || x.st_size != y.st_size)
		return false;
	if (x.st_dev == y.st_dev && x.st_ino == y.st_ino)
		return true;
	for (;;) {
		ssize_t n = read(a, left, sizeof(left)), m = read(b, right, sizeof(right));

		if (n != m || n < 0 || memcmp(left, right, (size_t)n) != 0)
			return false;
		if (n == 0)
			return true;
	}
}

static int mark_forced(struct cordon_git_take *take, const struct cordon_buf *forced)
{
	for (size_t i = 0; i < take->n_refs; i++) {
		char pair[2 * CORDON_GIT_ID_SIZE + 2];

		snprintf(pair, sizeof(pair), "%s %s", take->refs[i].old, take->refs[i].new);
		take->refs[i].forced = forced->len && *take->refs[i].old && strstr(forced->data, pair);
	}
	return 0;
}

/* The commits between which the index goes, as git named them in the sandbox. */
static int read_trees(struct cordon_git_taking *t, struct cordon_error *err)
{
	autobuf struct cordon_buf text = { 0 };
	int r = cordon_git_scratch_read(t, "trees", 256, &text, err);
	size_t n = r == 0 && text.len ? strcspn(text.data, " ") : 0;

	if (r < 0)
		return r;
	if (n && text.data[n] == ' ' && cordon_git_id_valid(text.data, n) && strlen(text.data) == 2 * n + 2 &&
	    cordon_git_id_valid(text.data + n + 1, n)) {
		cordon_copy(t->tree_old, sizeof(t->tree_old), text.data, n);
		cordon_copy(t->tree_new, sizeof(t->tree_new), text.data + n + 1, n);
		return 0;
	}
	return cordon_fail(err, -EBADMSG, CORDON_KIND_INTERNAL, "cannot read what git says about HEAD");
}

static size_t count_lines(const struct cordon_buf *text)
{
	size_t n = 0;

	for (const char *c = text->data; c && *c; c++)
		n += *c == '\n';
	return n;
}

/* Keeps the first word of each line. */
static int keep_ids(struct cordon_git_take *take, const struct cordon_buf *lines, struct cordon_error *err)
{
	autobuf struct cordon_buf ids = CORDON_BUF(LIST_MAX);
	int r = 0;

	for (const char *line = lines->len ? lines->data : ""; r == 0 && *line; line += *line == '\n') {
		size_t n = strcspn(line, " \n");

		if (!cordon_git_id_valid(line, n))
			return cordon_fail(err, -EINVAL, CORDON_KIND_IO, "the list of new commits can't be read");
		r = cordon_buf_add(&ids, line, n);
		r = r < 0 ? r : cordon_buf_addc(&ids, '\n');
		line += strcspn(line, "\n");
	}
	if (r < 0)
		return cordon_fail_errno(err, r, "commits");
	free(take->commits);
	take->commits = ids.len ? cordon_buf_steal(&ids) : NULL;
	return 0;
}

static int judge_commits(const struct cordon_policy *policy, const struct cordon_git_taking *t,
			 struct cordon_git_take *take, struct cordon_error *err)
{
	autobuf struct cordon_buf commits = { 0 }, list = { 0 }, diff = { 0 }, forced = { 0 };
	CORDON_CLEANUP(cordon_git_changes_done) struct cordon_git_changes changes = { 0 };
	autofree struct cordon_git_pair *pairs = NULL;
	size_t n = 0;
	int r;

	if ((r = cordon_git_scratch_read(t, "commits", LIST_MAX, &commits, err)) < 0 ||
	    (r = cordon_git_scratch_read(t, "pairs", LIST_MAX, &list, err)) < 0 ||
	    (r = cordon_git_scratch_read(t, "diff", CORDON_GIT_DIFF_BYTES, &diff, err)) < 0 ||
	    (r = cordon_git_scratch_read(t, "forced", CORDON_GIT_REFS_BYTES, &forced, err)) < 0)
		return r;
	take->n_commits = count_lines(&commits);
	if ((r = keep_ids(take, &commits, err)) < 0)
		return r;
	mark_forced(take, &forced);
	if ((r = cordon_git_pairs_parse(list.data, list.len, &pairs, &n, err)) < 0 ||
	    (r = cordon_git_changes_parse(diff.data, diff.len, pairs, n, &changes, err)) < 0)
		return r;
	return cordon_git_judge_pairs(policy, pairs, n, &changes, take, err);
}

static int judge_all(const struct cordon_policy *policy, struct cordon_git_taking *t, struct cordon_git_take *take,
		     struct cordon_error *err)
{
	autobuf struct cordon_buf at_start = { 0 }, on_host = { 0 };
	size_t refused;
	struct stat st;
	int r = judge_commits(policy, t, take, err);

	if (r == 0 && take->n_refused)
		take->state = CORDON_GIT_REFUSED;
	refused = take->n_refused;
	if (r == 0)
		r = cordon_git_judge_staged(policy, t, take, err);
	if (r == 0 && take->n_refused > refused)
		r = cordon_git_note(take, err, "what is staged and not allowed is not taken over");
	if (r < 0 || (r = cordon_git_scratch_read(t, "staged.start", CORDON_GIT_DIFF_BYTES, &at_start, err)) < 0 ||
	    (r = cordon_git_scratch_read(t, "staged.host", CORDON_GIT_DIFF_BYTES, &on_host, err)) < 0 ||
	    (r = read_trees(t, err)) < 0)
		return r;
	t->has_pack = fstatat(t->scratch_fd, "packed", &st, AT_SYMLINK_NOFOLLOW) == 0;
	if (take->state == CORDON_GIT_REFUSED)
		return 0;
	if (!take->n_refs && !t->n_stashes && cordon_streq(t->head_run.data, t->head_start.data) && !t->unstaged.len &&
	    !t->staged.len && !t->interrupted)
		return 0;
	if (t->host_went_on)
		return cordon_git_refuse(take, err, "HEAD: the host changed to another branch while the run went on");
	if (at_start.len != on_host.len || (at_start.len && memcmp(at_start.data, on_host.data, at_start.len) != 0))
		return cordon_git_refuse(take, err, "the host staged changes while the run went on");
	take->state = CORDON_GIT_READY;
	return 0;
}

/* The git of a process that was killed may still be at work: it has the lock until it ends. */
static int wait_for_git(const struct cordon_git_taking *t, struct cordon_error *err)
{
	int r = cordon_lock(t->start_fd, LOCK_EX | LOCK_NB);

	if (r == 0)
		return 0;
	r = r == -EWOULDBLOCK ? cordon_fail(err, -EBUSY, CORDON_KIND_CONFLICT,
					    "a git that takes over the commits of this run has not ended")
			      : cordon_fail_errno(err, r, "cannot lock %s", t->record);
	cordon_error_hint(err, "try again in a moment");
	return r;
}

static int judge(const struct cordon_policy *policy, const char *record, struct cordon_git_take *take,
		 struct cordon_error *err)
{
	struct cordon_git_taking *t = calloc(1, sizeof(*t));
	json_auto_t *origin = NULL;
	bool moved, ended = false;
	int r;

	if (!t)
		return cordon_fail_errno(err, -ENOMEM, "taking over");
	take->taking = t;
	t->repo = (struct cordon_git_repo)CORDON_GIT_REPO_NONE;
	t->record_fd = t->start_fd = t->index_fd = t->take_fd = t->scratch_fd = t->git_fd = t->own_fd = -1;
	r = open_dirs(t, record, err);
	if (r == 0)
		r = read_start(t, &origin, err);
	if (r != 0 || is_untouched(t))
		return r > 0 ? 0 : r;
	if ((r = cordon_git_settle(t->record_fd, t->start_fd, err)) < 0 || (r = find_index(t, err)) < 0)
		return r;
	r = cordon_git_repo_open(&policy->root, &t->repo, err);
	if (r > 0)
		r = cordon_fail(err, -ENOENT, CORDON_KIND_CONFLICT, "%s has no repository any more", policy->root.path);
	if (r == 0)
		r = check_origin(t, origin, err);
	if (r == 0)
		r = wait_for_git(t, err);
	if (r < 0)
		return r;
	cordon_git_locks_recover(t, &t->interrupted, &ended);
	if (ended)
		return 0;
	if ((r = cordon_dirs_remove(t->record_fd, CORDON_GIT_TAKE, err)) < 0)
		return r;
	if (mkdirat(t->record_fd, CORDON_GIT_TAKE, 0700) < 0 ||
	    (t->take_fd = openat(t->record_fd, CORDON_GIT_TAKE, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)) < 0)
		return cordon_fail_errno(err, -errno, "cannot make %s", t->take);
	if ((r = cordon_git_refs_read(t->repo.common_fd, true, &t->host, err)) < 0 ||
	    (r = read_run(t, take, err)) < 0 || take->state == CORDON_GIT_REFUSED)
		return r;
	if ((r = git_compare_refs(t, take, err)) < 0 || (r = git_compare_head(t, take, err)) < 0 ||
	    (r = git_find_stashes(t, take, err)) < 0 || take->state == CORDON_GIT_REFUSED)
		return r;
	if (cordon_git_was_taken(t) && !t->interrupted && !take->n_refs && !t->n_stashes && t->head_there)
		return 0;
	t->index_differs = !cordon_git_same_file(t->own_fd, "index", t->index_fd, "index");
	moved = take->n_refs || t->n_stashes || !cordon_streq(t->head_run.data, t->head_start.data);
	if (!moved && !t->index_differs && !t->interrupted)
		return 0;
	if ((r = cordon_git_scratch_make(t, take, err)) < 0 || (r = cordon_git_scratch_check(t, take, err)) < 0 ||
	    take->state == CORDON_GIT_REFUSED)
		return r;
	return judge_all(policy, t, take, err);
}

int cordon_git_take_judge(const struct cordon_policy *policy, const char *record, struct cordon_git_take **ret_take,
			  struct cordon_error *err)
{
	struct cordon_git_take *take = calloc(1, sizeof(*take));
	int r = take ? judge(policy, record, take, err) : cordon_fail_errno(err, -ENOMEM, "taking over");

	if (r < 0) {
		cordon_git_take_free(take);
		return r;
	}
	*ret_take = take;
	return 0;
}

bool cordon_git_changed(const char *record)
{
	struct cordon_git_taking *t = calloc(1, sizeof(*t));
	struct cordon_git_take unused = { 0 };
	bool changed = false;

	if (!t)
		return true;
	t->repo = (struct cordon_git_repo)CORDON_GIT_REPO_NONE;
	t->record_fd = t->start_fd = t->index_fd = t->take_fd = t->scratch_fd = t->git_fd = t->own_fd = -1;
	if (open_dirs(t, record, NULL) == 0 && read_start(t, NULL, NULL) == 0) {
		/* What can't be read was changed. */
		changed = cordon_git_locks_left(t) || read_run(t, &unused, NULL) < 0 ||
			  unused.state == CORDON_GIT_REFUSED ||
			  (t->head_run.len && !cordon_streq(t->head_run.data, t->head_start.data));
		for (size_t i = 0; !changed && i < t->run.n; i++)
			changed = !cordon_git_same(cordon_git_refs_find(&t->start, t->run.items[i].name),
						   t->run.items[i].id);
	}
	for (size_t i = 0; i < unused.n_notes; i++)
		free(unused.notes[i]);
	free(unused.notes);
	taking_free(t);
	return changed;
}
