/* SPDX-License-Identifier: Apache-2.0 */
/* Walks the tree as an agent would see it. */
#include "run/tree.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "base/path.h"
#include "base/time.h"
#include "policy/shares.h"

#define ENTRIES_TOP 60	 /* entries shown of the directory that was asked for */
#define ENTRIES_BELOW 20 /* entries shown of each directory below it */
#define LINES_MAX 1000	 /* after this many entries all further directories are folded */
#define NAMES_MAX 100000 /* entries read of one directory */

struct entry {
	char *name;
	unsigned char type; /* DT_* */
	cordon_mark mark;
	bool notable; /* its mark differs from that of its directory, or something below it has another mark */
	bool hidden;
};

struct listing {
	struct entry *entries;
	size_t n;
	bool cut; /* the directory has more names than we read */
};

struct tree {
	const struct cordon_tree_spec *spec;
	const struct cordon_policy *policy;
	size_t lines;
	size_t path_len;
	char path[CORDON_PATH_MAX];   /* path of the current entry, relative to the root */
	char target[CORDON_PATH_MAX]; /* of the current link; here, because the walk may be deep */
	struct cordon_resolved resolved;
	struct cordon_decision decision;
};

/* ---- reading ---- */

static void listing_done(struct listing *listing)
{
	for (size_t i = 0; i < listing->n; i++)
		free(listing->entries[i].name);
	free(listing->entries);
	*listing = (struct listing){ 0 };
}

static int open_dir(const struct tree *t, DIR **ret_dir)
{
	int fd = cordon_open_beneath(t->policy->root.fd, t->path, O_RDONLY | O_DIRECTORY | O_NONBLOCK);

	if (fd < 0)
		return fd;
	*ret_dir = fdopendir(fd);
	if (!*ret_dir)
		close(fd);
	return *ret_dir ? 0 : -errno;
}

static const struct dirent *next_entry(DIR *dir)
{
	const struct dirent *d;

	do
		d = readdir(dir);
	while (d && (cordon_streq(d->d_name, ".") || cordon_streq(d->d_name, "..")));
	return d;
}

static unsigned char type_of(DIR *dir, const struct dirent *d)
{
	struct stat st;

	if (d->d_type != DT_UNKNOWN || fstatat(dirfd(dir), d->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return d->d_type;
	return (unsigned char)IFTODT(st.st_mode);
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct entry *)a)->name, ((const struct entry *)b)->name);
}

static int read_dir(const struct tree *t, struct listing *listing)
{
	const struct dirent *d;
	DIR *dir;
	size_t room = 0;
	int r = open_dir(t, &dir);

	if (r < 0)
		return r;
	while (r == 0 && (d = next_entry(dir))) {
		if (listing->n == NAMES_MAX && !t->spec->all) {
			listing->cut = true;
			break;
		}
		if (listing->n == room) {
			struct entry *more = reallocarray(listing->entries, room ? 2 * room : 64, sizeof(*more));

			if (!more) {
				r = -ENOMEM;
				break;
			}
			listing->entries = more;
			room = room ? 2 * room : 64;
		}
		listing->entries[listing->n] = (struct entry){ .name = strdup(d->d_name), .type = type_of(dir, d) };
		r = listing->entries[listing->n].name ? 0 : -ENOMEM;
		listing->n += r == 0;
	}
	closedir(dir);
	if (listing->n)
		qsort(listing->entries, listing->n, sizeof(*listing->entries), by_name);
	return r;
}

/* Counts the entries of the current directory, up to CORDON_TREE_COUNT_MAX. Returns -errno when it can't be read. */
static int count_entries(const struct tree *t)
{
	DIR *dir;
	int n = 0, r = open_dir(t, &dir);

	if (r < 0)
		return r;
	while (n < CORDON_TREE_COUNT_MAX && next_entry(dir))
		n++;
	closedir(dir);
	return n;
}

/* ---- judging ---- */

static bool push(struct tree *t, const char *name)
{
	size_t len = strlen(name), slash = t->path_len ? 1 : 0;

	if (t->path_len + slash + len >= sizeof(t->path))
		return false;
	if (slash)
		t->path[t->path_len] = '/';
	memcpy(t->path + t->path_len + slash, name, len + 1);
	t->path_len += slash + len;
	return true;
}

static void pop(struct tree *t, size_t len)
{
	t->path_len = len;
	t->path[len] = '\0';
}

/* Returns the mark of the current path. A link has the mark of the path that it leads to. */
static cordon_mark judge(struct tree *t, unsigned char type)
{
	if (type == DT_LNK) {
		cordon_resolve(&t->policy->root, t->path, &t->resolved);
	} else {
		t->resolved.place = CORDON_PLACE_INSIDE;
		t->resolved.exists = true;
		memcpy(t->resolved.path, t->path, t->path_len + 1);
	}
	return cordon_mark_of(t->policy, &t->resolved, &t->decision);
}

static void judge_all(struct tree *t, struct listing *listing, cordon_mark dir_mark)
{
	size_t len = t->path_len;
	const char *except;

	for (size_t i = 0; i < listing->n; i++) {
		struct entry *entry = &listing->entries[i];

		if (!push(t, entry->name)) {
			entry->mark = CORDON_MARK_DENIED;
			continue;
		}
		entry->mark = judge(t, entry->type);
		entry->notable = entry->mark != dir_mark ||
				 (entry->type == DT_DIR &&
				  !cordon_mark_uniform(t->policy, t->path, entry->mark, &except));
		pop(t, len);
	}
}

/* Hides the entries above the limit, and of these first the ones that have the mark of their directory. */
static size_t hide(const struct tree *t, struct listing *listing, size_t limit)
{
	size_t over = t->spec->all || listing->n <= limit ? 0 : listing->n - limit;

	for (int notable = 0; notable <= 1; notable++) {
		for (size_t i = listing->n; over && i-- > 0;) {
			if (listing->entries[i].hidden || listing->entries[i].notable != notable)
				continue;
			listing->entries[i].hidden = true;
			over--;
		}
	}
	return t->spec->all || listing->n <= limit ? 0 : listing->n - limit;
}

/* ---- showing ---- */

/* Reads the text of the link at the current path. */
static void link_text(const struct tree *t, char text[static CORDON_PATH_MAX])
{
	char parent[CORDON_PATH_MAX];
	const char *base = cordon_path_base(t->path);
	size_t len = base == t->path ? 0 : (size_t)(base - t->path) - 1;
	autofd int fd = -1;
	ssize_t n = -1;

	if (cordon_copy(parent, sizeof(parent), t->path, len) == 0)
		fd = cordon_open_beneath(t->policy->root.fd, parent, O_PATH | O_DIRECTORY);
	if (fd >= 0)
		n = readlinkat(fd, base, text, CORDON_PATH_MAX - 1);
	text[n < 0 ? 0 : n] = '\0';
}

const char *cordon_tree_type(unsigned char type)
{
	switch (type) {
	case DT_DIR:
		return "directory";
	case DT_LNK:
		return "link";
	case DT_REG:
		return "file";
	default:
		return "other";
	}
}

static void show_dir(struct tree *t, cordon_mark mark, unsigned int level);

/* Fills in what is said of a directory that is not opened. */
static void fold(const struct tree *t, struct cordon_tree_entry *entry)
{
	entry->folded = true;
	entry->n = entry->mark == CORDON_MARK_DENIED && entry->uniform ? 0 : count_entries(t);
}

/* A share covers what lies at its place in the root. Returns NULL when no share is mounted here. */
static const char *share_here(const struct tree *t)
{
	const char *rest = "";
	const struct cordon_policy_share *share = cordon_share_at(t->policy, t->path, &rest);

	return share && !*rest ? share->source : NULL;
}

/* Shows the current path, and what is in it. */
static void show(struct tree *t, const char *name, unsigned char type, cordon_mark mark, unsigned int level)
{
	const struct cordon_tree_spec *spec = t->spec;
	struct cordon_tree_entry entry = { .name = name, .path = t->path, .type = type, .mark = mark, .level = level };

	t->lines++;
	if (type == DT_LNK) {
		link_text(t, t->target);
		entry.target = t->target;
	} else if (type == DT_DIR && level > 0) {
		entry.share = share_here(t);
		entry.uniform = !entry.share && cordon_mark_uniform(t->policy, t->path, mark, &entry.except);
		if (!entry.share &&
		    ((spec->depth && level >= spec->depth) || (!spec->all && (entry.uniform || t->lines >= LINES_MAX))))
			fold(t, &entry);
	}
	spec->entry(spec->data, &entry);
	if (type == DT_DIR && !entry.folded && !entry.share)
		show_dir(t, mark, level);
}

/* Shows the entries of the current directory, which is on `level`. */
static void show_dir(struct tree *t, cordon_mark mark, unsigned int level)
{
	struct listing listing CORDON_CLEANUP(listing_done) = { 0 };
	struct cordon_tree_rest rest = { .level = level };
	size_t len = t->path_len;
	int r = read_dir(t, &listing);

	judge_all(t, &listing, mark);
	rest.error = r < 0 ? r : 0;
	rest.cut = listing.cut;
	rest.hidden = hide(t, &listing, level ? ENTRIES_BELOW : ENTRIES_TOP);
	for (size_t i = 0; i < listing.n; i++) {
		const struct entry *entry = &listing.entries[i];

		rest.by_mark[entry->mark] += entry->hidden;
		if (entry->hidden || !push(t, entry->name))
			continue;
		show(t, entry->name, entry->type, entry->mark, level + 1);
		pop(t, len);
	}
	t->spec->end(t->spec->data, &rest);
}

/* Makes PATH the current path. Returns -errno with err when it does not exist or lies outside. */
static int start_at(struct tree *t, const char *path, unsigned char *ret_type, struct cordon_error *err)
{
	struct cordon_resolved resolved;
	autofd int fd = -1;
	struct stat st;

	cordon_resolve(&t->policy->root, path, &resolved);
	if (resolved.place != CORDON_PLACE_INSIDE)
		return cordon_fail(err, -EXDEV, CORDON_KIND_POLICY_DENIED, "%s lies outside the root %s", path,
				   t->policy->root.path);
	fd = cordon_open_beneath(t->policy->root.fd, resolved.path, O_PATH | O_NOFOLLOW);
	if (fd < 0 || fstat(fd, &st) < 0)
		return cordon_fail_errno(err, fd < 0 ? fd : -errno, "cannot show %s", path);
	*ret_type = (unsigned char)IFTODT(st.st_mode);
	t->path_len = strlen(resolved.path);
	return cordon_copy(t->path, sizeof(t->path), resolved.path, t->path_len);
}

int cordon_tree_walk(const struct cordon_tree_spec *spec, struct cordon_error *err)
{
	struct tree t = { .spec = spec, .policy = spec->policy };
	unsigned char type = DT_UNKNOWN;
	int r = start_at(&t, spec->path, &type, err);

	if (r < 0)
		return r;
	show(&t, t.path_len ? t.path : spec->policy->root.path, type, judge(&t, type), 0);
	return 0;
}

/* ---- searching ---- */

/* Directories that are still to be looked at, in the order in which they were found. */
struct waiting {
	char **paths;
	size_t n, at, room;
};

static void waiting_done(struct waiting *waiting)
{
	for (size_t i = waiting->at; i < waiting->n; i++)
		free(waiting->paths[i]);
	free(waiting->paths);
}

static int wait_for(struct waiting *waiting, const char *path)
{
	if (waiting->n == waiting->room) {
		size_t room = waiting->room ? 2 * waiting->room : 64;
		char **more = reallocarray(waiting->paths, room, sizeof(*more));

		if (!more)
			return -ENOMEM;
		waiting->paths = more;
		waiting->room = room;
	}
	waiting->paths[waiting->n] = strdup(path);
	if (!waiting->paths[waiting->n])
		return -ENOMEM;
	waiting->n++;
	return 0;
}

/* Looks at one entry of the current directory. Returns false when the search is over. */
static bool look_at(struct tree *t, const struct cordon_tree_search *search, const struct entry *entry,
		    struct waiting *waiting, int *ret_error)
{
	struct cordon_tree_entry found = { .name = entry->name, .path = t->path, .type = entry->type };
	bool go_on = true;

	if (strcasestr(strchr(search->text, '/') ? t->path : entry->name, search->text)) {
		found.mark = judge(t, entry->type);
		if (entry->type == DT_LNK) {
			link_text(t, t->target);
			found.target = t->target;
		}
		go_on = search->found(search->data, &found);
	}
	if (go_on && entry->type == DT_DIR && !share_here(t))
		*ret_error = wait_for(waiting, t->path);
	return go_on && *ret_error == 0;
}

/* Looks at one directory. Returns false when the search is over. */
static bool look_into(struct tree *t, const struct cordon_tree_search *search, struct waiting *waiting,
		      struct cordon_tree_searched *searched, int *ret_error)
{
	struct listing listing CORDON_CLEANUP(listing_done) = { 0 };
	size_t len = t->path_len;
	bool go_on = true;

	searched->more |= read_dir(t, &listing) < 0 || listing.cut;
	for (size_t i = 0; i < listing.n && go_on; i++) {
		if (searched->entries == search->entries)
			return false;
		searched->entries++;
		if (!push(t, listing.entries[i].name)) {
			searched->more = true;
			continue;
		}
		go_on = look_at(t, search, &listing.entries[i], waiting, ret_error);
		pop(t, len);
	}
	return go_on && cordon_time_monotonic() < search->deadline;
}

int cordon_tree_find(const struct cordon_tree_search *search, struct cordon_tree_searched *ret_searched,
		     struct cordon_error *err)
{
	static const struct cordon_tree_spec all_alike = { 0 };
	struct waiting waiting CORDON_CLEANUP(waiting_done) = { 0 };
	struct tree t = { .spec = &all_alike, .policy = search->policy };
	struct cordon_tree_searched searched = { 0 };
	int r = wait_for(&waiting, "");
	bool go_on = r == 0;

	while (go_on && waiting.at < waiting.n) {
		autofree char *path = waiting.paths[waiting.at++];

		t.path_len = strlen(path);
		memcpy(t.path, path, t.path_len + 1);
		go_on = look_into(&t, search, &waiting, &searched, &r);
	}
	if (r < 0)
		return cordon_fail_errno(err, r, "cannot search for %s", search->text);
	searched.more |= !go_on;
	*ret_searched = searched;
	return 0;
}
