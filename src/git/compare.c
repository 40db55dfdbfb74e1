/* SPDX-License-Identifier: Apache-2.0 */
/* Compares what a run left with the start and with the host: refs, HEAD and the stash. */
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/io.h"
#include "git/taking.h"

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

int cordon_git_compare_refs(struct cordon_git_taking *t, struct cordon_git_take *take, struct cordon_error *err)
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

int cordon_git_compare_head(struct cordon_git_taking *t, struct cordon_git_take *take, struct cordon_error *err)
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

int cordon_git_find_stashes(struct cordon_git_taking *t, struct cordon_git_take *take, struct cordon_error *err)
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
