/* SPDX-License-Identifier: Apache-2.0 */
/* Writes changes in git's format. */
#include <stdio.h>

#include "base/text.h"
#include "view/patch.h"
#include "view/sha1.h"

#define NO_NAME "0000000000000000000000000000000000000000"
#define NAME_DIGITS 10 /* of a blob's name where the whole one is not needed */

int cordon_patch_path(struct cordon_buf *buf, const char *prefix, const char *path)
{
	static const char letters[] = "abtnvfr"; /* \a is 7 */
	bool quoted = false;
	int r;

	for (const unsigned char *p = (const unsigned char *)path; *p; p++)
		quoted = quoted || *p < 0x20 || *p >= 0x7f || *p == '"' || *p == '\\';
	if (!quoted) {
		r = cordon_buf_adds(buf, prefix);
		return r == 0 ? cordon_buf_adds(buf, path) : r;
	}
	r = cordon_buf_addf(buf, "\"%s", prefix);
	for (const unsigned char *p = (const unsigned char *)path; r == 0 && *p; p++) {
		if (*p == '"' || *p == '\\')
			r = cordon_buf_addf(buf, "\\%c", *p);
		else if (*p >= 7 && *p <= 13)
			r = cordon_buf_addf(buf, "\\%c", letters[*p - 7]);
		else if (*p < 0x20 || *p >= 0x7f)
			r = cordon_buf_addf(buf, "\\%03o", *p);
		else
			r = cordon_buf_addc(buf, (char)*p);
	}
	return r == 0 ? cordon_buf_addc(buf, '"') : r;
}

/* The modes that git knows; 0 for what it does not know. */
static unsigned int git_mode(mode_t mode)
{
	return S_ISLNK(mode) ? 0120000 : S_ISREG(mode) ? (mode & 0100 ? 0100755 : 0100644) : 0;
}

char cordon_patch_letter(const struct cordon_delta_change *change)
{
	switch (change->kind) {
	case CORDON_DELTA_ADDED:
		return 'A';
	case CORDON_DELTA_DELETED:
		return 'D';
	case CORDON_DELTA_MODIFIED:
		return (change->old.mode & S_IFMT) != (change->new.mode &S_IFMT) ? 'T' : 'M';
	case CORDON_DELTA_TOUCHED:
		break;
	}
	return 't';
}

/* One side of a patch. */
struct side {
	unsigned int mode; /* 0: there is nothing */
	struct cordon_buf content;
	bool too_large;
	char name[CORDON_BLOB_NAME_SIZE];
};

static void side_done(struct side *side)
{
	cordon_buf_done(&side->content);
}

#define autoside CORDON_CLEANUP(side_done)

static int read_side(const struct cordon_delta *delta, const struct cordon_delta_change *change, bool old,
		     struct side *side, struct cordon_error *err)
{
	int r;

	side->mode = git_mode(old ? change->old.mode : change->new.mode);
	side->content.max = CORDON_PATCH_FILE_MAX;
	memcpy(side->name, NO_NAME, sizeof(side->name));
	if (!side->mode)
		return 0;
	r = cordon_delta_read(delta, change, old, &side->content, err);
	if (r == -E2BIG) {
		side->too_large = true;
		cordon_buf_reset(&side->content);
		return 0;
	}
	if (r == 0)
		cordon_blob_name(side->content.data, side->content.len, side->name);
	return r;
}

static bool is_text(const struct side *side)
{
	return !side->too_large && cordon_text_is(side->content.data, side->content.len);
}

void cordon_hunk_at(const struct cordon_text *a, const struct cordon_text *b, const struct cordon_edits *edits,
		    size_t first, struct cordon_hunk *ret_hunk)
{
	const struct cordon_edit *begin = &edits->edit[first], *end = begin;
	size_t before = begin->a < CORDON_PATCH_CONTEXT ? begin->a : CORDON_PATCH_CONTEXT, after;
	size_t last = first;

	while (last + 1 < edits->n && edits->edit[last + 1].a - (end->a + end->n_a) <= (size_t)2 * CORDON_PATCH_CONTEXT)
		end = &edits->edit[++last];
	after = a->n - (end->a + end->n_a);
	if (after > CORDON_PATCH_CONTEXT)
		after = CORDON_PATCH_CONTEXT;
	(void)b;
	*ret_hunk = (struct cordon_hunk){
		.first = first, .n = last - first + 1, .a = begin->a - before, .b = begin->b - before
	};
	ret_hunk->n_a = end->a + end->n_a + after - ret_hunk->a;
	ret_hunk->n_b = end->b + end->n_b + after - ret_hunk->b;
}

static int add_marked(struct cordon_buf *buf, char mark, const struct cordon_text *text, size_t from, size_t to)
{
	int r = 0;

	for (size_t i = from; r == 0 && i < to; i++) {
		size_t n = text->at[i + 1] - text->at[i];

		r = cordon_buf_addc(buf, mark);
		if (r == 0)
			r = cordon_buf_add(buf, text->bytes + text->at[i], n);
		if (r == 0 && text->bytes[text->at[i + 1] - 1] != '\n')
			r = cordon_buf_adds(buf, "\n\\ No newline at end of file\n");
	}
	return r;
}

/* Git counts an empty range from the line before it. */
static int add_range(struct cordon_buf *buf, char mark, size_t from, size_t n)
{
	int r = cordon_buf_addf(buf, "%c%zu", mark, n ? from + 1 : from);

	return r == 0 && n != 1 ? cordon_buf_addf(buf, ",%zu", n) : r;
}

int cordon_hunk_add(const struct cordon_text *a, const struct cordon_text *b, const struct cordon_edits *edits,
		    const struct cordon_hunk *hunk, struct cordon_buf *ret_text)
{
	size_t at = hunk->a;
	int r = cordon_buf_adds(ret_text, "@@ ");

	if (r == 0)
		r = add_range(ret_text, '-', hunk->a, hunk->n_a);
	if (r == 0)
		r = cordon_buf_addc(ret_text, ' ');
	if (r == 0)
		r = add_range(ret_text, '+', hunk->b, hunk->n_b);
	if (r == 0)
		r = cordon_buf_adds(ret_text, " @@\n");
	for (size_t i = hunk->first; r == 0 && i < hunk->first + hunk->n; i++) {
		const struct cordon_edit *edit = &edits->edit[i];

		r = add_marked(ret_text, ' ', a, at, edit->a);
		if (r == 0)
			r = add_marked(ret_text, '-', a, edit->a, edit->a + edit->n_a);
		if (r == 0)
			r = add_marked(ret_text, '+', b, edit->b, edit->b + edit->n_b);
		at = edit->a + edit->n_a;
	}
	return r == 0 ? add_marked(ret_text, ' ', a, at, hunk->a + hunk->n_a) : r;
}

/* A line "--- a/path". A tab ends a name with blanks. */
static int add_file_line(struct cordon_buf *buf, const char *mark, const char *prefix, const char *path, bool exists)
{
	int r = cordon_buf_adds(buf, mark);

	if (r == 0 && !exists)
		return cordon_buf_adds(buf, "/dev/null\n");
	if (r == 0)
		r = cordon_patch_path(buf, prefix, path);
	if (r == 0 && strchr(path, ' '))
		r = cordon_buf_addc(buf, '\t');
	return r == 0 ? cordon_buf_addc(buf, '\n') : r;
}

static int add_text(const char *path, const struct side *old, const struct side *new, struct cordon_buf *buf)
{
	autotext struct cordon_text a = { 0 }, b = { 0 };
	autoedits struct cordon_edits edits = { 0 };
	struct cordon_hunk hunk = { 0 };
	int r = cordon_text_init(&a, old->content.data, old->content.len);

	if (r == 0)
		r = cordon_text_init(&b, new->content.data, new->content.len);
	if (r == 0)
		r = cordon_lines_diff(&a, &b, &edits);
	if (r == 0 && edits.n)
		r = add_file_line(buf, "--- ", "a/", path, old->mode != 0);
	if (r == 0 && edits.n)
		r = add_file_line(buf, "+++ ", "b/", path, new->mode != 0);
	for (size_t i = 0; r == 0 && i < edits.n; i = hunk.first + hunk.n) {
		cordon_hunk_at(&a, &b, &edits, i, &hunk);
		r = cordon_hunk_add(&a, &b, &edits, &hunk, buf);
	}
	return r;
}

/* The bytes as a zlib stream that compresses nothing. */
static int store(const char *bytes, size_t n, struct cordon_buf *ret_stream)
{
	uint32_t low = 1, high = 0;
	size_t at = 0;
	int r = cordon_buf_add(ret_stream, "\x78\x01", 2);

	do {
		size_t take = n - at < 65535 ? n - at : 65535;
		unsigned char head[5] = { at + take == n, (unsigned char)take, (unsigned char)(take >> 8),
					  (unsigned char)~take, (unsigned char)(~take >> 8) };

		if (r == 0)
			r = cordon_buf_add(ret_stream, head, sizeof(head));
		if (r == 0 && take)
			r = cordon_buf_add(ret_stream, bytes + at, take);
		at += take;
	} while (r == 0 && at < n);
	for (size_t i = 0; i < n; i++) {
		low = (low + (unsigned char)bytes[i]) % 65521;
		high = (high + low) % 65521;
	}
	if (r == 0) {
		unsigned char sum[4] = { (unsigned char)(high >> 8), (unsigned char)high, (unsigned char)(low >> 8),
					 (unsigned char)low };

		r = cordon_buf_add(ret_stream, sum, sizeof(sum));
	}
	return r;
}

/* Git's lines for bytes: how many there are, then five characters for each four bytes. */
static int add_base85(struct cordon_buf *buf, const char *bytes, size_t n)
{
	static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~";
	int r = 0;

	for (size_t at = 0; r == 0 && at < n; at += 52) {
		size_t take = n - at < 52 ? n - at : 52;

		r = cordon_buf_addc(buf, (char)(take <= 26 ? 'A' + take - 1 : 'a' + take - 27));
		for (size_t i = 0; r == 0 && i < take; i += 4) {
			uint32_t word = 0;
			char out[5];

			for (size_t k = 0; k < 4; k++)
				word = word << 8 | (i + k < take ? (unsigned char)bytes[at + i + k] : 0);
			for (size_t k = 5; k-- > 0; word /= 85)
				out[k] = digits[word % 85];
			r = cordon_buf_add(buf, out, sizeof(out));
		}
		if (r == 0)
			r = cordon_buf_addc(buf, '\n');
	}
	return r == 0 ? cordon_buf_addc(buf, '\n') : r;
}

static int add_literal(struct cordon_buf *buf, const struct side *side)
{
	autobuf struct cordon_buf stream = CORDON_BUF(2 * CORDON_PATCH_FILE_MAX);
	int r = store(side->content.data, side->content.len, &stream);

	if (r == 0)
		r = cordon_buf_addf(buf, "literal %zu\n", side->content.len);
	return r == 0 ? add_base85(buf, stream.data, stream.len) : r;
}

static int add_binary(const char *path, const struct side *old, const struct side *new, struct cordon_buf *buf)
{
	int r;

	if (old->too_large || new->too_large) {
		r = cordon_buf_adds(buf, "Binary files ");
		if (r == 0)
			r = old->mode ? cordon_patch_path(buf, "a/", path) : cordon_buf_adds(buf, "/dev/null");
		if (r == 0)
			r = cordon_buf_adds(buf, " and ");
		if (r == 0)
			r = new->mode ? cordon_patch_path(buf, "b/", path) : cordon_buf_adds(buf, "/dev/null");
		return r == 0 ? cordon_buf_adds(buf, " differ\n") : r;
	}
	r = cordon_buf_adds(buf, "GIT binary patch\n");
	if (r == 0)
		r = add_literal(buf, new);
	return r == 0 ? add_literal(buf, old) : r;
}

static int add_header(const char *path, const struct side *old, const struct side *new, bool whole_names,
		      struct cordon_buf *buf)
{
	int digits = whole_names ? CORDON_BLOB_NAME_SIZE - 1 : NAME_DIGITS;
	int r = cordon_buf_adds(buf, "diff --git ");

	if (r == 0)
		r = cordon_patch_path(buf, "a/", path);
	if (r == 0)
		r = cordon_buf_addc(buf, ' ');
	if (r == 0)
		r = cordon_patch_path(buf, "b/", path);
	if (r == 0)
		r = cordon_buf_addc(buf, '\n');
	if (r == 0 && !old->mode)
		r = cordon_buf_addf(buf, "new file mode %06o\n", new->mode);
	else if (r == 0 && !new->mode)
		r = cordon_buf_addf(buf, "deleted file mode %06o\n", old->mode);
	else if (r == 0 && old->mode != new->mode)
		r = cordon_buf_addf(buf, "old mode %06o\nnew mode %06o\n", old->mode, new->mode);
	if (r < 0 || (cordon_streq(old->name, new->name) && old->mode && new->mode && !old->too_large))
		return r;
	r = cordon_buf_addf(buf, "index %.*s..%.*s", digits, old->name, digits, new->name);
	if (r == 0 && old->mode == new->mode)
		r = cordon_buf_addf(buf, " %06o", new->mode);
	return r == 0 ? cordon_buf_addc(buf, '\n') : r;
}

static int add_sides(const char *path, const struct side *old, const struct side *new, struct cordon_buf *buf)
{
	bool text = is_text(old) && is_text(new);
	int r = add_header(path, old, new, !text, buf);

	if (r < 0 || (cordon_streq(old->name, new->name) && old->mode && new->mode && !old->too_large))
		return r;
	return text ? add_text(path, old, new, buf) : add_binary(path, old, new, buf);
}

/* Comments stand before a patch, where git looks at nothing. */
static int add_comments(const struct cordon_delta_change *change, struct cordon_buf *buf)
{
	mode_t old = change->old.mode & 0777, new = change->new.mode & 0777;
	int r = 0;

	if (change->who)
		r = cordon_buf_addf(buf, "# the host would execute this file: %s\n", change->who);
	if (r == 0 && change->set_id)
		r = cordon_buf_adds(buf, "# without its set-id or sticky bit, which does not come out of a view\n");
	if (r == 0 && old && new &&old != new &&git_mode(change->old.mode) == git_mode(change->new.mode)) {
		r = cordon_buf_addf(buf, "# mode %04o becomes %04o: ", old, new);
		if (r == 0)
			r = cordon_patch_path(buf, "", change->path);
		if (r == 0)
			r = cordon_buf_addc(buf, '\n');
	}
	return r;
}

int cordon_patch_add(const struct cordon_delta *delta, const struct cordon_delta_change *change,
		     struct cordon_buf *ret_text, struct cordon_error *err)
{
	autoside struct side old = { 0 }, new = { 0 };
	const struct side none = { .name = NO_NAME };
	int r;

	if (change->kind == CORDON_DELTA_TOUCHED || (!git_mode(change->old.mode) && !git_mode(change->new.mode)))
		return 0;
	r = read_side(delta, change, true, &old, err);
	if (r == 0)
		r = read_side(delta, change, false, &new, err);
	if (r < 0)
		return r;
	r = add_comments(change, ret_text);
	if (r == 0 && old.mode == new.mode && cordon_streq(old.name, new.name) && !old.too_large)
		return 0; /* only the mode changed, in a way that git does not know */
	/* A link that became a file, or the other way round, is two changes. */
	if (r == 0 && old.mode && new.mode && (old.mode == 0120000) != (new.mode == 0120000)) {
		r = add_sides(change->path, &old, &none, ret_text);
		if (r == 0)
			r = add_sides(change->path, &none, &new, ret_text);
	} else if (r == 0) {
		r = add_sides(change->path, &old, &new, ret_text);
	}
	if (r == -E2BIG)
		return cordon_fail(err, r, CORDON_KIND_LIMIT, "the diff is longer than %zu MiB", CORDON_PATCH_MAX >> 20);
	return r < 0 ? cordon_fail_errno(err, r, "cannot show the change of %s", change->path) : 0;
}

int cordon_patch_left(const struct cordon_delta_left *left, struct cordon_buf *ret_text)
{
	int r = cordon_buf_addf(ret_text, "# left out, %s: ", left->what);

	if (r == 0)
		r = cordon_text_escape(ret_text, left->path, strlen(left->path));
	return r == 0 ? cordon_buf_addc(ret_text, '\n') : r;
}

int cordon_patch_count(const struct cordon_delta *delta, const struct cordon_delta_change *change,
		       struct cordon_patch_count *ret_count, struct cordon_error *err)
{
	autoside struct side old = { 0 }, new = { 0 };
	autotext struct cordon_text a = { 0 }, b = { 0 };
	autoedits struct cordon_edits edits = { 0 };
	struct cordon_patch_count count = { 0 };
	int r = read_side(delta, change, true, &old, err);

	if (r == 0)
		r = read_side(delta, change, false, &new, err);
	if (r < 0)
		return r;
	count.binary = !is_text(&old) || !is_text(&new);
	if (!count.binary) {
		r = cordon_text_init(&a, old.content.data, old.content.len);
		if (r == 0)
			r = cordon_text_init(&b, new.content.data, new.content.len);
		if (r == 0)
			r = cordon_lines_diff(&a, &b, &edits);
	}
	for (size_t i = 0; r == 0 && i < edits.n; i++) {
		count.removed += edits.edit[i].n_a;
		count.added += edits.edit[i].n_b;
	}
	if (r < 0)
		return cordon_fail_errno(err, r, "cannot compare %s", change->path);
	*ret_count = count;
	return 0;
}
