/* SPDX-License-Identifier: Apache-2.0 */
/* Makes a commit of each accepted result, from the files of its layer. */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/io.h"
#include "base/path.h"
#include "base/time.h"
#include "loop/git.h"
#include "loop/git_objects.h"
#include "loop/internal.h"

#define LIST_MAX ((size_t)64 << 20)
#define FILE_MAX ((size_t)512 << 20)
#define IGNORE_MAX ((size_t)256 << 10)
#define IGNORES_MAX 64 /* directories */

/* ---- files that git ignores ---- */

/* The rules of one directory of the host. */
struct rules {
	char *dir; /* relative to the root */
	struct cordon_buf text;
};

struct ignores {
	const struct cordon_loop *loop;
	struct rules items[IGNORES_MAX];
	size_t n;
};

static void ignores_done(struct ignores *ignores)
{
	for (size_t i = 0; i < ignores->n; i++) {
		free(ignores->items[i].dir);
		cordon_buf_done(&ignores->items[i].text);
	}
}

/* The .gitignore of a directory; empty when there is none. Another -errno than -ENOMEM: only git can tell. */
static int find_rules(struct ignores *ignores, const char *dir, size_t n, const struct cordon_buf **ret)
{
	autofree char *name = strndup(dir, n);
	autofd int fd = -1;
	struct rules *rules;
	int r;

	for (size_t i = 0; i < ignores->n; i++)
		if (strncmp(ignores->items[i].dir, dir, n) == 0 && !ignores->items[i].dir[n]) {
			*ret = &ignores->items[i].text;
			return 0;
		}
	if (!name || ignores->n == IGNORES_MAX)
		return name ? -E2BIG : -ENOMEM;
	rules = &ignores->items[ignores->n];
	*rules = (struct rules){ .text = CORDON_BUF(IGNORE_MAX) };
	fd = cordon_open_beneath(ignores->loop->root.fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	r = fd < 0 ? fd : cordon_read_file(fd, ".gitignore", O_NOFOLLOW, &rules->text, NULL);
	if (r < 0 && r != -ENOENT) {
		cordon_buf_done(&rules->text);
		return r;
	}
	rules->dir = cordon_steal_ptr(&name);
	ignores->n++;
	*ret = &rules->text;
	return 0;
}

/* Whether a rule could be about the path: it can't when the path lacks letters that the rule names as they are. Letters after a
 * bracket or a backslash are not looked at, and neither is their case. */
static bool rule_may_match(const char *rule, size_t n, const char *path)
{
	char letters[NAME_MAX + 1];

	while (n && (rule[n - 1] == '\r' || rule[n - 1] == ' '))
		n--;
	if (!n || *rule == '#' || *rule == '!') /* the last takes only back */
		return false;
	for (size_t at = 0; at < n && !strchr("[\\", rule[at]);) {
		size_t end = at;

		while (end < n && !strchr("*?/[\\", rule[end])) /* finds NUL, too */
			end++;
		if (end > at &&
		    (cordon_copy(letters, sizeof(letters), rule + at, end - at) < 0 || !strcasestr(path, letters)))
			return false;
		at = end + (end < n && rule[end] && !strchr("[\\", rule[end]));
		if (end < n && !rule[end])
			break;
	}
	return true;
}

static bool rules_may_match(const struct cordon_buf *text, const char *path)
{
	const char *at = text->data, *end = at + text->len;

	if (text->len >= 3 && memcmp(at, "\xef\xbb\xbf", 3) == 0)
		at += 3;
	while (at < end) {
		const char *line = memchr(at, '\n', (size_t)(end - at));
		size_t n = (size_t)((line ? line : end) - at);

		if (rule_may_match(at, n, path))
			return true;
		at += n + 1;
	}
	return false;
}

/* Whether git must be asked: false when no rule on the way to the path could be about it. */
static bool may_be_ignored(struct ignores *ignores, const char *path)
{
	for (const char *slash = path; slash; slash = strchr(slash + (slash != path), '/')) {
		const struct cordon_buf *text;
		int r = find_rules(ignores, path, (size_t)(slash - path), &text);

		if (r < 0 || (text->data && rules_may_match(text, path)))
			return true;
	}
	return false;
}

/* Adds the paths of some results that git ignores to a list. */
static int ask_ignored(const struct cordon_loop *loop, struct ignores *ignores, size_t from, size_t to,
		       struct cordon_buf *list, struct cordon_error *err)
{
	static const char *const argv[] = { "check-ignore", "-z", "--stdin", NULL };
	struct cordon_git_call call = { .argv = argv, .may_differ = true }; /* the status when nothing is ignored */
	autobuf struct cordon_buf paths = CORDON_BUF(LIST_MAX), found = { 0 };
	bool asked = false;
	int r;

	for (size_t i = from; i < to; i++) {
		const struct cordon_layer *layer = &loop->stack[i].layer;

		for (size_t k = 0; *loop->stack[i].view && k < layer->n; k++) {
			const char *path = layer->items[k].path;

			if (S_ISDIR(layer->items[k].mode))
				continue;
			asked = asked || may_be_ignored(ignores, path);
			if (cordon_buf_add(&paths, path, strlen(path) + 1) < 0)
				return cordon_fail_errno(err, -ENOMEM, "the commit");
		}
	}
	if (!asked)
		return 0;
	call.input = paths.data;
	call.n_input = paths.len;
	r = cordon_loop_git_call(loop, &call, &found, NULL);
	if (r == 0 && found.len && cordon_buf_add(list, found.data, found.len) < 0)
		return cordon_fail_errno(err, -ENOMEM, "the commit");
	return r < 0 ? 1 : 0;
}

/* Files that git ignores are applied, and not committed. Lists them for all results, one after the other. Git has no answer when a path of
 * a result lies behind a link of the tree: then none of that result is ignored. */
static int find_ignored(const struct cordon_loop *loop, struct cordon_buf *ret, struct cordon_error *err)
{
	CORDON_CLEANUP(ignores_done) struct ignores ignores = { .loop = loop };
	int r;

	ret->max = LIST_MAX;
	r = ask_ignored(loop, &ignores, 0, loop->n_stack, ret, err);
	for (size_t i = 0; r > 0 && loop->n_stack > 1 && i < loop->n_stack; i++)
		if (ask_ignored(loop, &ignores, i, i + 1, ret, err) < 0)
			r = -ENOMEM;
	return r < 0 ? r : 0;
}

/* Whether a path is the next of the list, which has the order of the layer. */
static bool is_ignored(const struct cordon_buf *list, size_t *at, const char *path)
{
	if (*at >= list->len || !cordon_streq(list->data + *at, path))
		return false;
	*at += strlen(path) + 1;
	return true;
}

/* ---- commits ---- */

/* Commits that are being made, one on top of the other. */
struct import {
	struct cordon_loop *loop;
	struct cordon_git_trees trees;
	int objects_fd;
	struct cordon_buf ignored; /* paths, in the order in which they come up */
	size_t at;		   /* in them */
	struct cordon_error *err;
};

static void import_done(struct import *import)
{
	cordon_git_trees_close(&import->trees);
	cordon_closep(&import->objects_fd);
	cordon_buf_done(&import->ignored);
}

static int write_content(const struct import *import, int upper, const struct cordon_layer_entry *entry,
			 char ret_id[static CORDON_LOOP_GIT_ID])
{
	autobuf struct cordon_buf content = CORDON_BUF(FILE_MAX);
	struct stat st;
	autofd int fd = cordon_layer_open(upper, entry, &st);
	int r = fd < 0 ? fd : 0;

	if (r == 0 && S_ISLNK(entry->mode)) {
		char target[CORDON_PATH_MAX];
		ssize_t n = readlinkat(fd, "", target, sizeof(target));

		r = n < 0 ? -errno : cordon_buf_add(&content, target, (size_t)n);
	} else if (r == 0) {
		r = cordon_read_regular(fd, &st, entry->path, &content, NULL);
	}
	return r < 0 ? cordon_fail_errno(import->err, r, "cannot read %s", entry->path)
		     : cordon_loop_object_write(import->loop, import->objects_fd, "blob", content.data, content.len,
						ret_id, import->err);
}

static int add_change(struct import *import, int upper, const struct cordon_layer_entry *entry, bool *ret_any)
{
	char id[CORDON_LOOP_GIT_ID];
	int r = 0;

	if (!entry->mode || entry->opaque) {
		r = cordon_git_trees_remove(&import->trees, entry->path);
		*ret_any = true;
	}
	if (r < 0 || (!S_ISREG(entry->mode) && !S_ISLNK(entry->mode)))
		return r;
	*ret_any = true;
	r = write_content(import, upper, entry, id);
	return r < 0 ? r
		     : cordon_git_trees_set(&import->trees, entry->path,
					    S_ISLNK(entry->mode) ? S_IFLNK
								 : S_IFREG | (entry->mode & S_IXUSR ? 0755 : 0644),
					    id);
}

/* The commit of a tree, on top of `parent` ("" for none). */
static int write_commit(const struct import *import, const struct cordon_prd_story *story, const char *tree,
			const char *parent, char ret_id[static CORDON_LOOP_GIT_ID])
{
	autobuf struct cordon_buf text = CORDON_BUF(65536 + 2048);
	const char *author = import->loop->git.author;
	long long now = (long long)(cordon_time_now() / 1000);
	int r = cordon_buf_addf(&text, "tree %s\n", tree);

	if (r == 0 && *parent)
		r = cordon_buf_addf(&text, "parent %s\n", parent);
	if (r == 0)
		r = cordon_buf_addf(&text, "author %s %lld +0000\ncommitter %s %lld +0000\n\n%s: %s\n", author, now,
				    author, now, story->id, story->title);
	return r < 0 ? cordon_fail_errno(import->err, r, "the message")
		     : cordon_loop_object_write(import->loop, import->objects_fd, "commit", text.data, text.len, ret_id,
						import->err);
}

/* Makes the commit of one result; ret_id is "" when git would see no change. */
static int make_commit(struct import *import, const struct cordon_loop_accepted *item, const char *parent,
		       char ret_id[static CORDON_LOOP_GIT_ID])
{
	const struct cordon_prd_story *story = import->loop->stories[item->story].story;
	char tree[CORDON_LOOP_GIT_ID];
	autofd int upper = -1;
	bool any = false;
	int r = cordon_loop_upper(import->loop, item->view, &upper, import->err);

	for (size_t k = 0; r == 0 && k < item->layer.n; k++)
		if (!is_ignored(&import->ignored, &import->at, item->layer.items[k].path))
			r = add_change(import, upper, &item->layer.items[k], &any);
	if (r == 0 && any)
		r = cordon_git_trees_write(&import->trees, import->objects_fd, tree);
	if (r == 0 && any)
		r = write_commit(import, story, tree, parent, ret_id);
	return r < 0 ? cordon_error_prefix(import->err, r, "the commit of %s", story->id) : 0;
}

int cordon_loop_git_import(struct cordon_loop *loop, const char *parent, const char *objects,
			   char (*ret_ids)[CORDON_LOOP_GIT_ID], struct cordon_error *err)
{
	CORDON_CLEANUP(import_done) struct import import = { .loop = loop, .objects_fd = -1, .err = err };
	bool any = false;
	int r;

	for (size_t i = 0; i < loop->n_stack; i++) {
		ret_ids[i][0] = '\0';
		any |= *loop->stack[i].view != '\0';
	}
	if (!any)
		return 0;
	import.objects_fd = openat(loop->git.repo.common_fd, objects ? objects : "objects", CORDON_LOOP_OPEN_DIR);
	if (import.objects_fd < 0)
		return cordon_fail_errno(err, -errno, "cannot open the objects of the repository");
	r = find_ignored(loop, &import.ignored, err);
	if (r == 0)
		r = cordon_git_trees_open(loop, parent, &import.trees, err);
	for (size_t i = 0; r == 0 && i < loop->n_stack; i++) {
		if (*loop->stack[i].view)
			r = make_commit(&import, &loop->stack[i], parent, ret_ids[i]);
		parent = *ret_ids[i] ? ret_ids[i] : parent;
	}
	return r;
}
