/* SPDX-License-Identifier: Apache-2.0 */
/* Notes at commits of the host's repository: they are written for runs that are attested, and read when somebody asks. */
#include <stdio.h>

#include "git/internal.h"

#define DEPTH_MAX                                                                                                      \
	3 /* directories that git puts into the tree of notes when there are many: two digits of the id each */
#define AUTHOR "-c", "user.name=cordon", "-c", "user.email=cordon@localhost"

/* ---- writing ---- */

/* The other commits get the note of the first. */
static int copy_notes(struct cordon_git_call *call, const char *commits, struct cordon_error *err)
{
	static const char *const argv[] = { AUTHOR, "notes", "--ref", CORDON_GIT_NOTES, "copy", "-f", "--stdin", NULL };
	autobuf struct cordon_buf lines = CORDON_BUF((size_t)256 << 20);
	int n = (int)strcspn(commits, "\n"), r = 0;

	for (const char *at = commits + n + 1; r == 0 && *at; at += strcspn(at, "\n") + 1)
		r = cordon_buf_addf(&lines, "%.*s %.*s\n", n, commits, (int)strcspn(at, "\n"), at);
	if (r < 0)
		return cordon_fail_errno(err, r, "notes");
	call->argv = argv;
	call->input = lines.data;
	call->n_input = lines.len;
	return lines.len ? cordon_git_call(call, NULL, err) : 0;
}

int cordon_git_notes_write(const struct cordon_git_call *base, const char *commits, const char *text, size_t n,
			   struct cordon_error *err)
{
	static const char *const store[] = { "hash-object", "-w", "--stdin", NULL };
	struct cordon_git_call call = *base;
	char first[CORDON_GIT_ID_SIZE];
	const char *add[] = { AUTHOR, "notes", "--ref", CORDON_GIT_NOTES, "add", "-f", "-C", NULL, first, NULL };
	autobuf struct cordon_buf id = { 0 };
	int r;

	if (cordon_copy(first, sizeof(first), commits, strcspn(commits, "\n")) < 0)
		return cordon_fail_errno(err, -EINVAL, "notes");
	call.argv = store;
	call.input = text;
	call.n_input = n;
	if ((r = cordon_git_call(&call, &id, err)) < 0)
		return r;
	id.data[strcspn(id.data, "\n")] = '\0';
	add[CORDON_ARRAY_SIZE(add) - 3] = id.data;
	call.argv = add;
	call.input = NULL;
	r = cordon_git_call(&call, NULL, err);
	return r < 0 ? r : copy_notes(&call, commits, err);
}

int cordon_git_attach(const struct cordon_root *root, const char *commits, const char *text, size_t n,
		      struct cordon_error *err)
{
	CORDON_CLEANUP(cordon_git_desk_done) struct cordon_git_desk desk = CORDON_GIT_DESK_NONE;
	struct cordon_git_call call;
	int r = cordon_git_desk_open(&desk, root, err);

	if (r < 0)
		return r;
	call = cordon_git_desk_call(&desk, NULL);
	return cordon_git_notes_write(&call, commits, text, n, err);
}

/* ---- reading ---- */

/* Asks git for every place at which the note of a commit may be. */
static int add_places(struct cordon_buf *ret, const char *notes, const char *id)
{
	int r = 0;

	for (int depth = 0; r == 0 && depth <= DEPTH_MAX; depth++) {
		r = cordon_buf_addf(ret, "%s:", notes);
		for (int i = 0; r == 0 && i < depth; i++)
			r = cordon_buf_addf(ret, "%.2s/", id + 2 * i);
		r = r < 0 ? r : cordon_buf_addf(ret, "%s\n", id + 2 * depth);
	}
	return r;
}

/* The id of the first blob in the answers about one commit; "" when there is none. Returns what follows them. */
static const char *read_places(const char *answer, char ret_id[static CORDON_GIT_ID_SIZE])
{
	ret_id[0] = '\0';
	for (int depth = 0; depth <= DEPTH_MAX; depth++) {
		size_t n = strcspn(answer, "\n"), word = strcspn(answer, " \n");

		if (!*ret_id && cordon_git_id_valid(answer, word) && strncmp(answer + word, " blob ", 6) == 0)
			cordon_copy(ret_id, CORDON_GIT_ID_SIZE, answer, word);
		answer += n + (answer[n] == '\n');
	}
	return answer;
}

static int read_note(const struct cordon_git_desk *desk, const char *id, struct cordon_buf *ret,
		     struct cordon_error *err)
{
	const char *const argv[] = { "cat-file", "blob", id, NULL };
	struct cordon_git_call call = cordon_git_desk_call(desk, argv);

	call.max_output = CORDON_GIT_ATTESTATION_MAX;
	return cordon_git_call(&call, ret, err);
}

int cordon_git_notes_each(const struct cordon_root *root, const struct cordon_git_check *ask,
			  int (*fn)(void *data, const char *id, const char *text, size_t n, struct cordon_error *err),
			  void *data, struct cordon_error *err)
{
	static const char *const argv[] = { "cat-file", "--batch-check", NULL };
	CORDON_CLEANUP(cordon_git_desk_done) struct cordon_git_desk desk = CORDON_GIT_DESK_NONE;
	autobuf struct cordon_buf commits = { 0 }, places = CORDON_BUF((size_t)512 << 20), answers = { 0 }, note = { 0 };
	char id[CORDON_GIT_ID_SIZE], blob[CORDON_GIT_ID_SIZE], last[CORDON_GIT_ID_SIZE] = "";
	struct cordon_git_call call;
	const char *answer;
	int r = cordon_git_desk_open(&desk, root, err);

	if (r == 0)
		r = cordon_git_desk_commits(&desk, ask, &commits, err);
	for (const char *at = commits.len ? commits.data : ""; r == 0 && *at; at += strcspn(at, "\n") + 1)
		if (cordon_copy(id, sizeof(id), at, strcspn(at, " \n")) < 0 ||
		    add_places(&places, ask->notes ? ask->notes : CORDON_GIT_NOTES, id) < 0)
			r = cordon_fail_errno(err, -E2BIG, "notes");
	if (r < 0 || !places.len)
		return r;
	call = cordon_git_desk_call(&desk, argv);
	call.input = places.data;
	call.n_input = places.len;
	call.max_output = (size_t)512 << 20;
	if ((r = cordon_git_call(&call, &answers, err)) < 0)
		return r;
	answer = answers.len ? answers.data : "";
	for (const char *at = commits.data; r == 0 && *at; at += strcspn(at, "\n") + 1) {
		if (cordon_copy(id, sizeof(id), at, strcspn(at, " \n")) < 0)
			return cordon_fail_errno(err, -EINVAL, "notes");
		answer = read_places(answer, blob);
		if (!cordon_streq(blob, last)) {
			cordon_buf_reset(&note);
			memcpy(last, blob, sizeof(last));
			r = *blob ? read_note(&desk, blob, &note, err) : 0;
		}
		if (r == 0)
			r = fn(data, id, note.len ? note.data : "", note.len, err);
	}
	return r;
}
