/* SPDX-License-Identifier: Apache-2.0 */
/* Makes a commit of each accepted result, from the files of its layer. */
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/io.h"
#include "base/path.h"
#include "base/time.h"
#include "loop/git.h"
#include "loop/internal.h"
#include "view/patch.h"

#define LIST_MAX ((size_t)64 << 20)
#define STREAM_MAX ((size_t)1 << 30)
#define FILE_MAX ((size_t)512 << 20)
#define IMPORT_REF "refs/cordon/loop" /* exists only while git fast-import runs */

/* Files that git ignores are applied, and not committed. */
static int find_ignored(const struct cordon_loop *loop, const struct cordon_layer *layer, struct cordon_buf *ret,
			struct cordon_error *err)
{
	static const char *const argv[] = { "check-ignore", "-z", "--stdin", NULL };
	autobuf struct cordon_buf paths = CORDON_BUF(LIST_MAX);
	struct cordon_error ignored = { 0 };

	for (size_t i = 0; i < layer->n; i++)
		if (!S_ISDIR(layer->items[i].mode) &&
		    cordon_buf_add(&paths, layer->items[i].path, strlen(layer->items[i].path) + 1) < 0)
			return cordon_fail_errno(err, -ENOMEM, "the commit");
	/* It fails when nothing is ignored. */
	if (paths.len && cordon_loop_git_run(loop, argv, &paths, NULL, ret, &ignored) < 0)
		cordon_buf_reset(ret);
	return 0;
}

/* Whether a path is the next of the list, which has the order of the layer. */
static bool is_ignored(const struct cordon_buf *list, size_t *at, const char *path)
{
	if (*at >= list->len || !cordon_streq(list->data + *at, path))
		return false;
	*at += strlen(path) + 1;
	return true;
}

static int add_content(struct cordon_buf *out, int upper, const struct cordon_layer_entry *entry)
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
	if (r == 0)
		r = cordon_buf_addf(out, "data %zu\n", content.len);
	if (r == 0)
		r = cordon_buf_add(out, content.data ? content.data : "", content.len);
	return r < 0 ? r : cordon_buf_addc(out, '\n');
}

static int add_change(struct cordon_buf *out, int upper, const struct cordon_layer_entry *entry)
{
	int r = 0;

	if (!entry->mode || entry->opaque) {
		r = cordon_buf_adds(out, "D ");
		if (r == 0)
			r = cordon_patch_path(out, "", entry->path);
		if (r == 0)
			r = cordon_buf_addc(out, '\n');
	}
	if (r < 0 || (!S_ISREG(entry->mode) && !S_ISLNK(entry->mode)))
		return r;
	r = cordon_buf_addf(out, "M %s inline ",
			    S_ISLNK(entry->mode)    ? "120000"
			    : entry->mode & S_IXUSR ? "100755"
						    : "100644");
	if (r == 0)
		r = cordon_patch_path(out, "", entry->path);
	if (r == 0)
		r = cordon_buf_addc(out, '\n');
	return r < 0 ? r : add_content(out, upper, entry);
}

/* Adds the commit of one result; *ret_any is false when git would see no change. The first one has a parent ("": none), and the
 * others are on top of it. */
static int add_commit(struct cordon_loop *loop, size_t i, const char *parent, struct cordon_buf *out, bool *ret_any,
		      struct cordon_error *err)
{
	const struct cordon_loop_accepted *item = &loop->stack[i];
	const struct cordon_prd_story *story = loop->stories[item->story].story;
	autobuf struct cordon_buf changes = CORDON_BUF(STREAM_MAX), ignored = { 0 }, message = CORDON_BUF(65536);
	long long now = (long long)(cordon_time_now() / 1000);
	autofd int upper = -1;
	size_t at = 0;
	int r;

	*ret_any = false;
	if (!*item->view)
		return 0;
	r = cordon_loop_upper(loop, item->view, &upper, err);
	if (r == 0)
		r = find_ignored(loop, &item->layer, &ignored, err);
	if (r < 0)
		return r;
	for (size_t k = 0; r == 0 && k < item->layer.n; k++)
		if (!is_ignored(&ignored, &at, item->layer.items[k].path))
			r = add_change(&changes, upper, &item->layer.items[k]);
	if (r < 0)
		return cordon_fail_errno(err, r, "cannot read the result of %s", story->id);
	if (!changes.len)
		return 0;
	r = cordon_buf_addf(&message, "%s: %s\n", story->id, story->title);
	if (r == 0)
		r = cordon_buf_addf(out,
				    "commit " IMPORT_REF "\nmark :%zu\nauthor %s %lld +0000\ncommitter %s %lld +0000\n",
				    i + 1, loop->git.author, now, loop->git.author, now);
	if (r == 0)
		r = cordon_buf_addf(out, "data %zu\n%s", message.len, message.data);
	if (r == 0 && *parent)
		r = cordon_buf_addf(out, "from %s\n", parent);
	if (r == 0)
		r = cordon_buf_add(out, changes.data, changes.len);
	if (r == 0)
		r = cordon_buf_addf(out, "\nget-mark :%zu\n", i + 1);
	*ret_any = r == 0;
	return r < 0 ? cordon_fail_errno(err, r, "the commit of %s", story->id) : 0;
}

int cordon_loop_git_import(struct cordon_loop *loop, const char *parent, const struct cordon_git_call *own,
			   char (*ret_ids)[CORDON_LOOP_GIT_ID], struct cordon_error *err)
{
	static const char *const argv[] = { "fast-import", "--quiet", "--done", NULL };
	autobuf struct cordon_buf stream = CORDON_BUF(STREAM_MAX), ids = { 0 };
	struct cordon_git_call call = { .argv = argv,
					.git_dir = own ? own->git_dir : NULL,
					.objects = own ? own->objects : NULL };
	bool made[CORDON_LOOP_STACK_MAX + 1] = { false }, any = false;
	const char *at;
	int r = 0;

	for (size_t i = 0; r == 0 && i < loop->n_stack; i++) {
		ret_ids[i][0] = '\0';
		r = add_commit(loop, i, any ? "" : parent, &stream, &made[i], err);
		any |= made[i];
	}
	if (r < 0 || !any)
		return r;
	if (cordon_buf_adds(&stream, "reset " IMPORT_REF "\nfrom " CORDON_LOOP_NO_ID "\n\ndone\n") < 0)
		return cordon_fail_errno(err, -E2BIG, "the commits");
	call.input = stream.data;
	call.n_input = stream.len;
	r = cordon_loop_git_call(loop, &call, &ids, err);
	if (r < 0)
		return r;
	at = ids.data ? ids.data : "";
	for (size_t i = 0; i < loop->n_stack; i++) {
		size_t n = strcspn(at, "\n");

		if (!made[i])
			continue;
		if (!cordon_git_id_valid(at, n) || cordon_copy(ret_ids[i], CORDON_LOOP_GIT_ID, at, n) < 0)
			return cordon_fail(err, -EBADMSG, CORDON_KIND_INTERNAL, "git fast-import named no commit");
		at += n + (at[n] == '\n');
	}
	return 0;
}
