/* SPDX-License-Identifier: Apache-2.0 */
/* Refs as lists, and reading them from a git directory. A run could write it; of the host's, an earlier run. */
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/io.h"
#include "base/path.h"
#include "base/refname.h"
#include "git/internal.h"

#define DEPTH_MAX 32
#define LOOSE_MAX 1536 /* bytes of a loose ref */
#define SYMBOLIC_MAX 256
#define HOPS_MAX 5
#define HEAD_MAX 4096

bool cordon_git_id_valid(const char *id, size_t n)
{
	if (n != 40 && n != 64)
		return false;
	for (size_t i = 0; i < n; i++)
		if (!((id[i] >= '0' && id[i] <= '9') || (id[i] >= 'a' && id[i] <= 'f')))
			return false;
	return true;
}

void cordon_git_refs_done(struct cordon_git_refs *refs)
{
	for (size_t i = 0; i < refs->n; i++)
		free(refs->items[i].name);
	free(refs->items);
	*refs = (struct cordon_git_refs){ 0 };
}

static const struct cordon_git_named *find(const struct cordon_git_refs *refs, const char *name)
{
	size_t low = 0, high = refs->n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		int order = strcmp(refs->items[middle].name, name);

		if (order == 0)
			return &refs->items[middle];
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
}

const char *cordon_git_refs_find(const struct cordon_git_refs *refs, const char *name)
{
	const struct cordon_git_named *found = find(refs, name);

	return found ? found->id : NULL;
}

bool cordon_git_refs_is_symbolic(const struct cordon_git_refs *refs, const char *name)
{
	const struct cordon_git_named *found = find(refs, name);

	return found && found->symbolic;
}

/* Adds a ref behind the others. arrange() makes a list of it again. */
static int put(struct cordon_git_refs *refs, const char *name, const char *id, size_t id_len, struct cordon_error *err)
{
	struct cordon_git_named *item;

	if (refs->n == (size_t)2 * CORDON_GIT_REFS_MAX)
		return cordon_fail(err, -E2BIG, CORDON_KIND_LIMIT, "more than %d refs", CORDON_GIT_REFS_MAX);
	if (refs->n == refs->space) {
		size_t space = refs->space ? 2 * refs->space : 64;
		struct cordon_git_named *items = reallocarray(refs->items, space, sizeof(*items));

		if (!items)
			return cordon_fail_errno(err, -ENOMEM, "refs");
		refs->items = items;
		refs->space = space;
	}
	item = &refs->items[refs->n];
	*item = (struct cordon_git_named){ .name = strdup(name), .order = refs->n };
	if (!item->name)
		return cordon_fail_errno(err, -ENOMEM, "refs");
	memcpy(item->id, id, id_len);
	refs->n++;
	return 0;
}

static int by_name(const void *a, const void *b)
{
	const struct cordon_git_named *x = a, *y = b;
	int order = strcmp(x->name, y->name);

	return order ? order : x->order < y->order ? -1 : x->order > y->order;
}

/* Sorts the refs. What was added last under a name has the last word. */
static int arrange(struct cordon_git_refs *refs, struct cordon_error *err)
{
	size_t n = 0;

	if (refs->n > 1)
		qsort(refs->items, refs->n, sizeof(*refs->items), by_name);
	for (size_t i = 0; i < refs->n; i++) {
		if (n && cordon_streq(refs->items[n - 1].name, refs->items[i].name))
			free(refs->items[--n].name);
		refs->items[n++] = refs->items[i];
	}
	refs->n = n;
	return n > CORDON_GIT_REFS_MAX
		       ? cordon_fail(err, -E2BIG, CORDON_KIND_LIMIT, "more than %d refs", CORDON_GIT_REFS_MAX)
		       : 0;
}

static bool is_taken(const char *name)
{
	return strncmp(name, "refs/heads/", 11) == 0 || strncmp(name, "refs/tags/", 10) == 0 ||
	       cordon_streq(name, CORDON_GIT_STASH);
}

static int parse_line(struct cordon_git_refs *refs, char *line, bool taken_only, struct cordon_error *err)
{
	size_t n = strcspn(line, " ");
	char *name = line + n + 1;

	if (line[n] != ' ' || !cordon_git_id_valid(line, n) || !cordon_refname_valid(name) ||
	    (taken_only && !is_taken(name)))
		return 0;
	return put(refs, name, line, n, err);
}

static int parse(char *text, struct cordon_git_refs *refs, bool taken_only, struct cordon_error *err)
{
	int r = 0;

	for (char *line = text; r == 0 && line && *line;) {
		size_t n = strcspn(line, "\n");
		char *next = line + n + (line[n] == '\n');

		line[n] = '\0';
		r = parse_line(refs, line, taken_only, err);
		line = next;
	}
	return r;
}

int cordon_git_refs_parse(const char *text, size_t n, struct cordon_git_refs *ret_refs, struct cordon_error *err)
{
	autofree char *copy = strndup(text ? text : "", n);
	int r = copy ? parse(copy, ret_refs, false, err) : cordon_fail_errno(err, -ENOMEM, "refs");

	return r < 0 ? r : arrange(ret_refs, err);
}

/* ---- the refs of a git directory ---- */

/* A ref that stands for another one, such as refs/remotes/origin/HEAD. */
struct symbolic {
	char *name, *target;
};

struct walk {
	struct cordon_git_refs *refs;
	bool all;    /* else only what is taken over */
	size_t left; /* entries */
	struct symbolic symbolic[SYMBOLIC_MAX];
	size_t n_symbolic;
	struct cordon_error *err;
};

static void walk_done(struct walk *walk)
{
	for (size_t i = 0; i < walk->n_symbolic; i++) {
		free(walk->symbolic[i].name);
		free(walk->symbolic[i].target);
	}
}

static int add_symbolic(struct walk *walk, const char *name, const char *target)
{
	struct symbolic *symbolic = &walk->symbolic[walk->n_symbolic];

	target += strspn(target, " \t");
	if (!walk->all || walk->n_symbolic == SYMBOLIC_MAX || !cordon_refname_valid(target))
		return 0;
	*symbolic = (struct symbolic){ .name = strdup(name), .target = strdup(target) };
	walk->n_symbolic++;
	return symbolic->name && symbolic->target ? 0 : cordon_fail_errno(walk->err, -ENOMEM, "refs");
}

static int read_loose(struct walk *walk, int dir, const char *entry, const char *name)
{
	autobuf struct cordon_buf text = CORDON_BUF(LOOSE_MAX);
	int r = cordon_read_file(dir, entry, O_NOFOLLOW, &text, NULL);

	/* What is no file, or too large for one, has no value for git either. */
	if (r < 0)
		return r == -ENOENT || r == -ENOTDIR || r == -ELOOP || r == -EINVAL || r == -E2BIG
			       ? 0
			       : cordon_fail_errno(walk->err, r, "cannot read %s", name);
	while (text.len && (text.data[text.len - 1] == '\n' || text.data[text.len - 1] == '\r'))
		text.data[--text.len] = '\0';
	if (!text.data || strlen(text.data) != text.len)
		return 0;
	if (strncmp(text.data, "ref:", 4) == 0)
		return add_symbolic(walk, name, text.data + 4);
	/* For anything else git has no value either. */
	return cordon_git_id_valid(text.data, text.len) ? put(walk->refs, name, text.data, text.len, walk->err) : 0;
}

/* A descriptor; -ENOENT when there is no such directory; another error where commits could be lost without a word. */
static int open_refs(int dir_fd, const char *dir_name, const char *shown, struct cordon_error *err)
{
	int fd = openat(dir_fd, dir_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd >= 0)
		return fd;
	return errno == ENOENT || errno == ENOTDIR || errno == ELOOP
		       ? -ENOENT
		       : cordon_fail_errno(err, -errno, "cannot open %s", shown);
}

static int walk_dir(struct walk *walk, int dir_fd, const char *dir_name, const char *prefix, unsigned int depth)
{
	int fd = open_refs(dir_fd, dir_name, prefix, walk->err);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	int r = 0;

	if (!dir) {
		if (fd >= 0)
			close(fd);
		return fd == -ENOENT ? 0 : fd < 0 ? fd : cordon_fail_errno(walk->err, -ENOMEM, "refs");
	}
	for (struct dirent *entry; r == 0 && (entry = readdir(dir));) {
		char name[CORDON_REFNAME_MAX];
		struct stat st;

		if (cordon_streq(entry->d_name, ".") || cordon_streq(entry->d_name, ".."))
			continue;
		if (walk->left-- == 0 || depth == DEPTH_MAX) {
			r = cordon_fail(walk->err, -E2BIG, CORDON_KIND_LIMIT, "there are too many refs");
			break;
		}
		if (cordon_concat(name, sizeof(name), prefix, "/", entry->d_name, (char *)NULL) < 0 ||
		    !cordon_refname_valid(name) || fstatat(fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		if (S_ISDIR(st.st_mode))
			r = walk_dir(walk, fd, entry->d_name, name, depth + 1);
		else if (S_ISREG(st.st_mode) && (walk->all || is_taken(name)))
			r = read_loose(walk, fd, entry->d_name, name);
	}
	closedir(dir);
	return r;
}

/* Gives a ref that stands for another one the value of that one, as `git for-each-ref` shows it. */
static int resolve(struct walk *walk)
{
	int r = 0;

	for (unsigned int hop = 0; r == 0 && walk->n_symbolic && hop < HOPS_MAX; hop++) {
		for (size_t i = 0; r == 0 && i < walk->n_symbolic; i++) {
			const char *found = cordon_git_refs_find(walk->refs, walk->symbolic[i].target);
			char id[CORDON_GIT_ID_SIZE];

			/* Adding a ref moves the others. */
			if (found && cordon_copy(id, sizeof(id), found, strlen(found)) == 0 &&
			    (r = put(walk->refs, walk->symbolic[i].name, id, strlen(id), walk->err)) == 0) {
				walk->refs->items[walk->refs->n - 1].symbolic = true;
				r = arrange(walk->refs, walk->err);
			}
		}
	}
	return r;
}

int cordon_git_refs_read(int git_fd, bool all, struct cordon_git_refs *ret_refs, struct cordon_error *err)
{
	autobuf struct cordon_buf packed = CORDON_BUF(CORDON_GIT_REFS_BYTES);
	autofd int refs_fd = open_refs(git_fd, "refs", "refs", err);
	CORDON_CLEANUP(walk_done)
	struct walk walk = { .refs = ret_refs, .all = all, .left = CORDON_GIT_REFS_MAX, .err = err };
	int r = refs_fd < 0 && refs_fd != -ENOENT ? refs_fd
						  : cordon_read_file(git_fd, "packed-refs", O_NOFOLLOW, &packed, err);

	/* A loose ref has the last word. */
	if (r == -ENOENT)
		r = 0;
	if (r == 0 && packed.data)
		r = parse(packed.data, ret_refs, !all, err);
	if (r == 0 && refs_fd >= 0 && all)
		r = walk_dir(&walk, git_fd, "refs", "refs", 0);
	if (r == 0 && refs_fd >= 0 && !all)
		r = walk_dir(&walk, refs_fd, "heads", "refs/heads", 0);
	if (r == 0 && refs_fd >= 0 && !all)
		r = walk_dir(&walk, refs_fd, "tags", "refs/tags", 0);
	if (r == 0 && refs_fd >= 0 && !all)
		r = read_loose(&walk, refs_fd, "stash", CORDON_GIT_STASH);
	if (r == 0)
		r = arrange(ret_refs, err);
	return r < 0 ? r : resolve(&walk);
}

int cordon_git_head_read(int dir_fd, struct cordon_buf *ret_text, struct cordon_error *err)
{
	int r;

	ret_text->max = HEAD_MAX;
	r = cordon_read_file(dir_fd, "HEAD", O_NOFOLLOW, ret_text, err);
	if (r < 0)
		return r;
	while (ret_text->len && (ret_text->data[ret_text->len - 1] == '\n' || ret_text->data[ret_text->len - 1] == ' '))
		ret_text->data[--ret_text->len] = '\0';
	if (ret_text->len && strlen(ret_text->data) == ret_text->len &&
	    (cordon_git_id_valid(ret_text->data, ret_text->len) ||
	     (strncmp(ret_text->data, "ref: refs/heads/", 16) == 0 && cordon_refname_valid(ret_text->data + 5))))
		return 0;
	return cordon_fail(err, -EBADMSG, CORDON_KIND_CONFIG, "HEAD leads to no branch and to no commit");
}
