/* SPDX-License-Identifier: Apache-2.0 */
/* Shows the changes of a view. */
#include <stdio.h>

#include "base/text.h"
#include "cli/changes_view.h"
#include "view/patch.h"

#define BOLD "\x1b[1m"
#define RED "\x1b[31m"
#define GREEN "\x1b[32m"
#define YELLOW "\x1b[33m"
#define CYAN "\x1b[36m"
#define PLAIN "\x1b[m"
#define STAT_WIDTH 40

static bool is_dir(const struct cordon_delta_change *change)
{
	return S_ISDIR(change->kind == CORDON_DELTA_DELETED ? change->old.mode : change->new.mode);
}

/* Returns the colour of a line of a patch. *in_hunk says whether the line before was part of a hunk. */
static const char *colour_of(const char *line, size_t n, bool *in_hunk)
{
	if (n >= 3 && strncmp(line, "@@ ", 3) == 0) {
		*in_hunk = true;
		return CYAN;
	}
	if (*in_hunk && n > 0 && strchr("+- \\", line[0]))
		return line[0] == '+' ? GREEN : line[0] == '-' ? RED : "";
	*in_hunk = false;
	return n > 0 && line[0] == '#' ? YELLOW : BOLD;
}

/* Writes a patch line by line: as it is for a program, without control characters and with colours for a person. */
static void write_patch(struct cordon_pager *pager, const struct cordon_buf *patch)
{
	autobuf struct cordon_buf out = CORDON_BUF(2 * CORDON_PATCH_MAX);
	bool in_hunk = false;

	if (!pager->terminal) {
		cordon_pager_write(pager, patch->data, patch->len);
		return;
	}
	for (size_t at = 0; at < patch->len;) {
		const char *line = patch->data + at, *end = memchr(line, '\n', patch->len - at);
		size_t n = end ? (size_t)(end - line) : patch->len - at;
		const char *colour = pager->colour ? colour_of(line, n, &in_hunk) : "";

		cordon_buf_adds(&out, colour);
		cordon_text_escape_lines(&out, line, n);
		cordon_buf_addf(&out, "%s\n", *colour ? PLAIN : "");
		at += n + 1;
	}
	cordon_pager_write(pager, out.data, out.len);
}

/* One line "M<tab>path"; a mark behind it says who would execute it. */
static void write_name(struct cordon_pager *pager, const struct cordon_delta_change *change)
{
	autobuf struct cordon_buf line = CORDON_BUF(8 * CORDON_PATH_MAX);

	cordon_buf_addf(&line, "%c\t", cordon_patch_letter(change));
	if (pager->terminal)
		cordon_text_escape(&line, change->path, strlen(change->path));
	else
		cordon_patch_path(&line, "", change->path);
	cordon_buf_adds(&line, is_dir(change) ? "/" : "");
	if (change->who)
		cordon_buf_addf(&line, "\t%s# executed by %s%s", pager->colour ? YELLOW : "", change->who,
				pager->colour ? PLAIN : "");
	cordon_buf_addc(&line, '\n');
	cordon_pager_write(pager, line.data, line.len);
}

struct totals {
	size_t files, added, removed;
};

static void add_bar(struct cordon_buf *line, const struct cordon_pager *pager, const struct cordon_patch_count *count)
{
	size_t all = count->added + count->removed;
	size_t width = all < STAT_WIDTH ? all : STAT_WIDTH;
	size_t plus = all ? (count->added * width + all - 1) / all : 0;

	cordon_buf_addf(line, "%5zu %s", all, pager->colour ? GREEN : "");
	for (size_t i = 0; i < plus; i++)
		cordon_buf_addc(line, '+');
	cordon_buf_adds(line, pager->colour ? RED : "");
	for (size_t i = plus; i < width; i++)
		cordon_buf_addc(line, '-');
	cordon_buf_adds(line, pager->colour ? PLAIN : "");
}

static int write_stat(struct cordon_pager *pager, const struct cordon_delta *delta,
		      const struct cordon_delta_change *change, struct totals *totals, struct cordon_error *err)
{
	autobuf struct cordon_buf line = CORDON_BUF(16 * CORDON_PATH_MAX);
	struct cordon_patch_count count = { 0 };
	int r = is_dir(change) ? 0 : cordon_patch_count(delta, change, &count, err);

	if (r < 0 || is_dir(change))
		return r;
	cordon_buf_addc(&line, ' ');
	if (pager->terminal)
		cordon_text_escape(&line, change->path, strlen(change->path));
	else
		cordon_patch_path(&line, "", change->path);
	cordon_buf_adds(&line, " | ");
	if (count.binary)
		cordon_buf_addf(&line, "  Bin %llu -> %llu bytes", (unsigned long long)change->old.size,
				(unsigned long long)change->new.size);
	else
		add_bar(&line, pager, &count);
	if (change->who)
		cordon_buf_addf(&line, "  # executed by %s", change->who);
	cordon_buf_addc(&line, '\n');
	cordon_pager_write(pager, line.data, line.len);
	totals->files++;
	totals->added += count.added;
	totals->removed += count.removed;
	return 0;
}

static int show_one(struct cordon_pager *pager, const struct cordon_delta *delta,
		    const struct cordon_delta_change *change, cordon_changes_form form, struct totals *totals,
		    struct cordon_error *err)
{
	autobuf struct cordon_buf patch = CORDON_BUF(CORDON_PATCH_MAX);
	int r;

	switch (form) {
	case CORDON_CHANGES_NAME_STATUS:
		write_name(pager, change);
		return 0;
	case CORDON_CHANGES_STAT:
		return write_stat(pager, delta, change, totals, err);
	case CORDON_CHANGES_DIFF:
		break;
	}
	r = cordon_patch_add(delta, change, &patch, err);
	if (r == 0)
		write_patch(pager, &patch);
	return r;
}

static void write_left(struct cordon_pager *pager, const struct cordon_delta *delta, const char *const *paths,
		       size_t n_paths)
{
	for (size_t i = 0; i < delta->n_left; i++) {
		autobuf struct cordon_buf line = CORDON_BUF(8 * CORDON_PATH_MAX);

		if (!cordon_delta_named(delta->left[i].path, paths, n_paths))
			continue;
		cordon_patch_left(&delta->left[i], &line);
		cordon_pager_write(pager, line.data, line.len);
	}
}

int cordon_changes_show(const struct cordon_cli *cli, const struct cordon_delta *delta, cordon_changes_form form,
			const char *const *paths, size_t n_paths, bool page)
{
	struct cordon_error err = { 0 };
	struct totals totals = { 0 };
	struct cordon_pager pager;
	autofree size_t *places = NULL;
	size_t n = 0;
	int code, r = cordon_changes_order(delta, paths, n_paths, &places, &n);

	if (r < 0)
		cordon_fail_errno(&err, r, "cannot list the changes");
	cordon_pager_open(cli, page, &pager);
	write_left(&pager, delta, paths, n_paths);
	for (size_t i = 0; r == 0 && i < n; i++)
		r = show_one(&pager, delta, &delta->changes[places[i]], form, &totals, &err);
	if (r == 0 && form == CORDON_CHANGES_STAT) {
		char line[128];
		int length = snprintf(line, sizeof(line), " %zu files changed, %zu insertions(+), %zu deletions(-)\n",
				      totals.files, totals.added, totals.removed);

		cordon_pager_write(&pager, line, (size_t)length);
	}
	code = cordon_pager_close(cli, &pager);
	return r < 0 ? cordon_cli_fail(cli, &err) : code;
}
