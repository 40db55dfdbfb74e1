/* SPDX-License-Identifier: Apache-2.0 */
/* Journals on disk: how a change of the host's tree is begun, ended, taken back, and repaired after a kill. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>

#include "base/dirs.h"
#include "base/io.h"
#include "base/path.h"
#include "view/internal.h"
#include "view/journal_steps.h"
#include "view/known.h"
#include "view/stage.h"

/* ---- the file ---- */

#define HEADER_ANY "cordon-journal "
#define HEADER "cordon-journal 2"
#define HEADER_WHOLE "cordon-journal 2 whole"
#define FIRST_HEADER "cordon-journal 1"
#define FIRST_HEADER_WHOLE "cordon-journal 1 whole"

int cordon_apply_journal_add(struct cordon_apply_journal *journal, const struct cordon_apply_step *step,
			     struct cordon_error *err)
{
	char *path = cordon_arena_strdup(journal->arena, step->path);

	if (path && journal->n == journal->cap) {
		size_t cap = journal->cap ? 2 * journal->cap : 64;
		struct cordon_apply_step *more = reallocarray(journal->steps, cap, sizeof(*more));

		if (!more)
			return cordon_no_memory(err);
		journal->steps = more;
		journal->cap = cap;
	}
	if (!path)
		return cordon_no_memory(err);
	journal->steps[journal->n] = *step;
	journal->steps[journal->n++].path = path;
	return 0;
}

static int add_ident(struct cordon_buf *buf, const struct cordon_ident *ident, const struct cordon_view_devices *devices)
{
	return cordon_buf_addf(buf, " %o %llu %llu %llu %lld %ld", ident->mode,
			       (unsigned long long)cordon_view_renumber(devices, ident->dev),
			       (unsigned long long)ident->ino, (unsigned long long)ident->size,
			       (long long)ident->mtime.tv_sec, ident->mtime.tv_nsec);
}

/* The list of steps as the journal's file has it. -EBADMSG when the text is none, -EPROTO when another version wrote
 * it. *ret_first: it is of the first version, whose stage has old and new entries under the same names. */
static int apply_journal_write(const struct cordon_apply_journal *journal, struct cordon_buf *buf)
{
	int r = journal->whole ? cordon_buf_add(buf, HEADER_WHOLE, sizeof(HEADER_WHOLE))
			       : cordon_buf_add(buf, HEADER, sizeof(HEADER));
	struct cordon_view_devices devices;

	cordon_view_devices(journal->view, journal->root_fd, &devices);
	for (size_t i = 0; r == 0 && i < journal->n; i++) {
		const struct cordon_apply_step *step = &journal->steps[i];

		r = cordon_buf_addf(buf, "%c %u %d", (char)step->kind, step->n, step->edited | step->part << 1);
		if (r == 0)
			r = add_ident(buf, &step->old, &devices);
		if (r == 0)
			r = add_ident(buf, &step->new, &devices);
		if (r == 0)
			r = cordon_buf_add(buf, "", 1);
		if (r == 0)
			r = cordon_buf_add(buf, step->path, strlen(step->path) + 1);
	}
	return r == 0 ? cordon_buf_add(buf, "end", 4) : r;
}

static int read_ident(const char **text, const struct cordon_view_devices *devices, struct cordon_ident *ret)
{
	unsigned long long dev, ino, size;
	unsigned int mode;
	long long sec;
	long nsec;
	int used = 0;

	/* NOLINTNEXTLINE(cert-err34-c): we wrote it, and a number that does not fit is no file's. */
	if (sscanf(*text, " %o %llu %llu %llu %lld %ld%n", &mode, &dev, &ino, &size, &sec, &nsec, &used) != 6)
		return -EBADMSG;
	*text += used;
	*ret = (struct cordon_ident){
		.mode = mode, .dev = cordon_view_renumber(devices, dev), .ino = ino, .size = size, .mtime = { sec, nsec }
	};
	return 0;
}

static int apply_journal_read(struct cordon_apply_journal *journal, const struct cordon_buf *buf, bool *ret_first,
			      struct cordon_error *err)
{
	const char *at = buf->data, *end = buf->data + buf->len;
	struct cordon_view_devices devices;

	cordon_view_devices(journal->view, journal->root_fd, &devices);
	if (buf->len < sizeof(HEADER) || end[-1] != '\0')
		return -EBADMSG;
	*ret_first = cordon_streq(at, FIRST_HEADER) || cordon_streq(at, FIRST_HEADER_WHOLE);
	journal->whole = cordon_streq(at, HEADER_WHOLE) || cordon_streq(at, FIRST_HEADER_WHOLE);
	if (!*ret_first && !journal->whole && !cordon_streq(at, HEADER))
		return strncmp(at, HEADER_ANY, strlen(HEADER_ANY)) == 0 ? -EPROTO : -EBADMSG;
	for (at += strlen(at) + 1; at < end && !cordon_streq(at, "end");) {
		struct cordon_apply_step step = { 0 };
		const char *text = at;
		unsigned int n;
		char kind;
		int used = 0, flags, r;

		/* NOLINTNEXTLINE(cert-err34-c): we wrote it, and a number that does not fit names no file. */
		if (sscanf(text, "%c %u %d%n", &kind, &n, &flags, &used) != 3 || !strchr("sptmo", kind))
			return -EBADMSG;
		text += used;
		step.kind = (cordon_apply_step_kind)kind;
		step.n = n;
		step.edited = flags & 1;
		step.part = flags & 2;
		if (read_ident(&text, &devices, &step.old) < 0 || read_ident(&text, &devices, &step.new) < 0 || *text)
			return -EBADMSG;
		at = text + 1;
		if (at >= end)
			return -EBADMSG;
		step.path = at;
		at += strlen(at) + 1;
		r = cordon_apply_journal_add(journal, &step, err);
		if (r < 0)
			return r;
		if (step.n >= journal->next)
			journal->next = step.n + 1;
	}
	return at < end ? 0 : -EBADMSG;
}

static int by_path(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Reports what the host put into a directory that the change made. */
static int find_strangers(const struct cordon_apply_journal *journal, const char *dir, const char **ours, size_t n,
			  void (*met)(void *data, const char *path), void *data)
{
	int fd = cordon_open_beneath(journal->root_fd, dir, CORDON_OPEN_DIR);
	DIR *list = fd < 0 ? NULL : fdopendir(fd);

	if (!list) {
		if (fd >= 0)
			close(fd);
		return fd == -ENOENT || fd == -EACCES || fd >= 0 ? 0 : fd;
	}
	for (struct dirent *entry; (entry = readdir(list));) {
		char path[CORDON_PATH_MAX];
		const char *key = path;

		if (cordon_streq(entry->d_name, ".") || cordon_streq(entry->d_name, "..") ||
		    cordon_path_join(dir, entry->d_name, path, sizeof(path)) < 0)
			continue;
		if (!bsearch(&key, ours, n, sizeof(*ours), by_path))
			met(data, path);
	}
	closedir(list);
	return 0;
}

/* Reports a directory or file whose mode is not what the change gave it. Times of the host's stay anyway. */
static void check_mode(const struct cordon_apply_step *step, const struct cordon_ident *found,
		       void (*met)(void *data, const char *path), void *data)
{
	bool other = ((found->mode ^ step->new.mode) & (S_IFMT | 0777)) != 0;

	if (found->mode && other && ((step->old.mode ^ step->new.mode) & 0777))
		met(data, step->path);
}

/* Collects the paths of all steps, or of those that give a name; sorted. */
static size_t collect(const struct cordon_apply_journal *journal, bool given, const char **ret_paths)
{
	size_t n = 0;

	for (size_t i = 0; i < journal->n; i++)
		if (!given || journal->steps[i].kind == CORDON_APPLY_STEP_PUT)
			ret_paths[n++] = journal->steps[i].path;
	qsort(ret_paths, n, sizeof(*ret_paths), by_path);
	return n;
}

int cordon_apply_journal_obstacles(const struct cordon_apply_journal *journal,
				   void (*met)(void *data, const char *path), void *data, struct cordon_error *err)
{
	autofree const char **ours = calloc(journal->n + 1, sizeof(*ours));
	autofree const char **given = calloc(journal->n + 1, sizeof(*given));
	size_t n_given;
	int r = 0;

	if (!ours || !given)
		return cordon_no_memory(err);
	collect(journal, false, ours);
	n_given = collect(journal, true, given);
	for (size_t i = 0; r == 0 && i < journal->n; i++) {
		const struct cordon_apply_step *step = &journal->steps[i];
		struct cordon_ident found;

		if (step->kind == CORDON_APPLY_STEP_OPEN)
			continue;
		r = cordon_apply_steps_look(journal, step->path, &found);
		/* The change closed a directory to its owner. The steps open it first, and look again. */
		if (r == -EACCES) {
			r = 0;
			continue;
		}
		if (r < 0)
			return cordon_fail_errno(err, r, "cannot read %s", step->path);
		if (step->kind == CORDON_APPLY_STEP_META) {
			check_mode(step, &found, met, data);
		} else if (step->kind == CORDON_APPLY_STEP_TAKE) {
			/* A file may have become a directory: then another step put it there. */
			if (found.mode && !bsearch(&step->path, given, n_given, sizeof(*given), by_path))
				met(data, step->path);
		} else if (S_ISDIR(step->new.mode) && S_ISDIR(found.mode)) {
			r = find_strangers(journal, step->path, ours, journal->n, met, data);
		} else if (!cordon_ident_same(&found, &step->new)) {
			met(data, step->path);
		}
	}
	return r < 0 ? cordon_fail_errno(err, r, "cannot read the root") : 0;
}

/* ---- the journal ---- */

#define JOURNALS "journal"
#define STAGE "stage"
#define KEPT "kept-"
#define PLACE "place"
#define JOURNAL_MAX ((size_t)1 << 30)

static const char *const state_names[] = {
	[CORDON_APPLY_JOURNAL_PREPARED] = NULL,
	[CORDON_APPLY_JOURNAL_INTENT] = "intent",
	[CORDON_APPLY_JOURNAL_APPLIED] = "applied",
	[CORDON_APPLY_JOURNAL_UNDO] = "undo",
};

const char *cordon_apply_journal_slot(uint32_t n, cordon_slot slot, char buf[static CORDON_SLOT_SIZE])
{
	static const char *const suffixes[] = {
		[CORDON_SLOT_NEW] = "", [CORDON_SLOT_OLD] = ".old", [CORDON_SLOT_COPY] = ".copy"
	};

	snprintf(buf, CORDON_SLOT_SIZE, "%u%s", n, suffixes[slot]);
	return buf;
}

/* Whether a step has an old entry that the stage gets. */
static bool has_old(const struct cordon_apply_step *step)
{
	return step->kind == CORDON_APPLY_STEP_SWAP || step->kind == CORDON_APPLY_STEP_TAKE;
}

void cordon_apply_journal_done(struct cordon_apply_journal *journal)
{
	cordon_closep(&journal->all_fd);
	cordon_closep(&journal->dir_fd);
	cordon_closep(&journal->stage_fd);
	cordon_arena_free(journal->arena);
	free(journal->steps);
	*journal = (struct cordon_apply_journal)CORDON_APPLY_JOURNAL_NONE;
}

/* ---- the file ---- */

static int save(struct cordon_apply_journal *journal, cordon_apply_journal_state state, struct cordon_error *err)
{
	autobuf struct cordon_buf buf = CORDON_BUF(JOURNAL_MAX);
	int r = apply_journal_write(journal, &buf);

	if (r < 0)
		return cordon_fail_errno(err, r, "cannot write the journal");
	r = cordon_write_file(journal->dir_fd, state_names[state], 0600, buf.data, buf.len, err);
	if (r == 0)
		journal->state = state;
	return r;
}

/*
 * Gives the file the name of its next state. `durable`: before anything else happens. If a power cut takes the last
 * state back, after all steps were synced, the next command finds that they were carried out, and enters it again.
 */
static int enter(struct cordon_apply_journal *journal, cordon_apply_journal_state state, bool durable,
		 struct cordon_error *err)
{
	if (renameat(journal->dir_fd, state_names[journal->state], journal->dir_fd, state_names[state]) < 0 ||
	    (durable && fsync(journal->dir_fd) < 0))
		return cordon_fail_errno(err, -errno, "cannot write the journal");
	journal->state = state;
	return 0;
}

/* ---- the stage ---- */

/* Whether entries can be moved from one to the other. Two subvolumes of btrfs have one mount. */
static bool same_mount(int a, int b)
{
	struct statx x, y;

	return statx(a, "", AT_EMPTY_PATH, STATX_MNT_ID, &x) == 0 &&
	       statx(b, "", AT_EMPTY_PATH, STATX_MNT_ID, &y) == 0 && (x.stx_mask & y.stx_mask & STATX_MNT_ID) &&
	       x.stx_mnt_id == y.stx_mnt_id && x.stx_dev_major == y.stx_dev_major && x.stx_dev_minor == y.stx_dev_minor;
}

/* Makes the stage in the root, where entries can be exchanged. Its name is written down first. No run can have made an
 * entry with that name, because nobody knows it. */
static int make_place(struct cordon_apply_journal *journal, struct cordon_error *err)
{
	char name[sizeof(journal->place)], id[CORDON_UUID_SIZE];
	int r = cordon_uuid_new(id);

	if (r < 0)
		return cordon_fail_errno(err, r, "cannot make an id");
	snprintf(name, sizeof(name), ".cordon-%s", id);
	r = cordon_write_file(journal->dir_fd, PLACE, 0600, name, strlen(name), err);
	if (r < 0)
		return r;
	if (mkdirat(journal->root_fd, name, 0700) < 0 ||
	    (journal->stage_fd = openat(journal->root_fd, name, CORDON_OPEN_DIR)) < 0)
		return cordon_fail_errno(err, -errno, "cannot prepare the changes in the root");
	memcpy(journal->place, name, sizeof(name));
	return 0;
}

/* The name of the stage in the root is written down before it is made, and forgotten after it was removed: while there
 * are steps to be carried out or taken back, it must be there. */
static int open_stage(struct cordon_apply_journal *journal, struct cordon_error *err)
{
	autobuf struct cordon_buf place = CORDON_BUF(sizeof(journal->place) - 1);
	int r = cordon_read_file(journal->dir_fd, PLACE, O_NOFOLLOW, &place, NULL);

	if (r == 0 && place.len && !strchr(place.data, '/')) {
		journal->stage_fd = openat(journal->root_fd, place.data, CORDON_OPEN_DIR);
		if (journal->stage_fd >= 0) {
			memcpy(journal->place, place.data, place.len + 1);
			return 0;
		}
		if (errno != ENOENT && errno != ENOTDIR && errno != ELOOP)
			return cordon_fail_errno(err, -errno, "cannot open %s in the root", place.data);
		journal->lost = journal->state == CORDON_APPLY_JOURNAL_INTENT ||
				journal->state == CORDON_APPLY_JOURNAL_UNDO;
	}
	journal->stage_fd = openat(journal->dir_fd, STAGE, CORDON_OPEN_DIR);
	return journal->stage_fd < 0 ? cordon_fail_errno(err, -errno, "cannot open the journal") : 0;
}

/* In the first version old and new entries had the same names. */
static int rename_entries(const struct cordon_apply_journal *journal, struct cordon_error *err)
{
	for (size_t i = 0; i < journal->n; i++) {
		const struct cordon_apply_step *step = &journal->steps[i];
		char new[CORDON_SLOT_SIZE], old[CORDON_SLOT_SIZE];
		struct stat st;

		cordon_apply_journal_slot(step->n, CORDON_SLOT_NEW, new);
		if (!has_old(step) || fstatat(journal->stage_fd, new, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
		    (step->kind == CORDON_APPLY_STEP_SWAP && st.st_ino == step->new.ino &&st.st_dev == step->new.dev))
			continue;
		cordon_apply_journal_slot(step->n, CORDON_SLOT_OLD, old);
		/* If the step has an old entry, this one is about to be filled with the new one. */
		if (renameat2(journal->stage_fd, new, journal->stage_fd, old, RENAME_NOREPLACE) < 0 && errno != EEXIST)
			return cordon_fail_errno(err, -errno, "cannot read the journal");
	}
	return 0;
}

static int open_all(const struct cordon_view *view, bool make, int *ret_fd)
{
	if (make && (mkdirat(view->dir_fd, JOURNALS, 0700) < 0 ? errno != EEXIST : fsync(view->dir_fd) < 0))
		return -errno;
	*ret_fd = openat(view->dir_fd, JOURNALS, CORDON_OPEN_DIR);
	return *ret_fd < 0 ? -errno : 0;
}

/* The numbers of all journals, or with `prefix` of those that were kept for a person; the largest is the newest.
 * Returns how many, at most `max`, or -errno. */
static int list_numbers(int all_fd, const char *prefix, uint64_t *ret, size_t max)
{
	int fd = openat(all_fd, ".", CORDON_OPEN_DIR);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	size_t n = 0;

	if (!dir) {
		int r = -errno;

		cordon_closep(&fd);
		return r;
	}
	for (struct dirent *entry; n < max && (entry = readdir(dir));)
		if (strncmp(entry->d_name, prefix, strlen(prefix)) == 0 &&
		    cordon_parse_u64(entry->d_name + strlen(prefix), 1, 999999, &ret[n]) == 0)
			n++;
	closedir(dir);
	return (int)n;
}

#define NUMBERS_MAX 1024
#define SYNC_MAX 32 /* steps whose files are synced one by one */

int cordon_apply_journal_begin(struct cordon_view *view, int root_fd, struct cordon_apply_journal *ret_journal,
			       struct cordon_error *err)
{
	autojournal struct cordon_apply_journal journal = CORDON_APPLY_JOURNAL_NONE;
	uint64_t numbers[2 * NUMBERS_MAX], next = 1;
	int n, kept, r = open_all(view, true, &journal.all_fd);

	if (r < 0 || (n = list_numbers(journal.all_fd, "", numbers, NUMBERS_MAX)) < 0 ||
	    (kept = list_numbers(journal.all_fd, KEPT, numbers + n, NUMBERS_MAX)) < 0)
		return cordon_fail_errno(err, r < 0 ? r : n < 0 ? n : kept, "cannot begin a journal");
	if (n == NUMBERS_MAX || kept == NUMBERS_MAX)
		return cordon_fail(err, -E2BIG, CORDON_KIND_LIMIT, "view %s was applied too many times",
				   view->record.id);
	for (int i = 0; i < n + kept; i++)
		if (numbers[i] >= next)
			next = numbers[i] + 1;
	snprintf(journal.name, sizeof(journal.name), "%llu", (unsigned long long)next);
	journal.root_fd = root_fd;
	journal.view = view;
	journal.arena = cordon_arena_new();
	if (!journal.arena)
		return cordon_no_memory(err);
	if (mkdirat(journal.all_fd, journal.name, 0700) < 0 ||
	    (journal.dir_fd = openat(journal.all_fd, journal.name, CORDON_OPEN_DIR)) < 0 ||
	    mkdirat(journal.dir_fd, STAGE, 0700) < 0 ||
	    (journal.stage_fd = openat(journal.dir_fd, STAGE, CORDON_OPEN_DIR)) < 0)
		return cordon_fail_errno(err, -errno, "cannot begin a journal");
	if (!same_mount(journal.stage_fd, root_fd)) {
		cordon_closep(&journal.stage_fd);
		r = make_place(&journal, err);
		if (r < 0) {
			cordon_apply_journal_drop(&journal);
			return r;
		}
	}
	*ret_journal = journal;
	journal = (struct cordon_apply_journal)CORDON_APPLY_JOURNAL_NONE;
	return 0;
}

void cordon_apply_journal_drop(struct cordon_apply_journal *journal)
{
	cordon_closep(&journal->stage_fd);
	/* Without its file it is a journal of which nothing was carried out, whenever we are killed. */
	for (size_t i = CORDON_APPLY_JOURNAL_INTENT; journal->dir_fd >= 0 && i < CORDON_ARRAY_SIZE(state_names); i++)
		unlinkat(journal->dir_fd, state_names[i], 0);
	if (*journal->place)
		cordon_dirs_remove(journal->root_fd, journal->place, NULL);
	if (*journal->name && journal->all_fd >= 0)
		cordon_dirs_remove(journal->all_fd, journal->name, NULL);
	cordon_apply_journal_done(journal);
}

/* ---- its life ---- */

int cordon_apply_journal_keep(struct cordon_apply_journal *journal, const struct cordon_apply_step *step)
{
	char buf[CORDON_SLOT_SIZE];
	autofd int parent = -1, own = -1;
	const char *name;
	int r = 0;

	if (!has_old(step))
		return 0;
	if (S_ISDIR(step->old.mode))
		r = cordon_apply_steps_copy_dir(journal, step);
	if (r < 0 || !*journal->place)
		return r;
	parent = cordon_apply_steps_open_parent(journal, step->path, &name);
	if (parent < 0)
		return parent;
	own = openat(journal->dir_fd, STAGE, CORDON_OPEN_DIR);
	if (own < 0)
		return -errno;
	return cordon_stage_again(parent, name, own, cordon_apply_journal_slot(step->n, CORDON_SLOT_OLD, buf));
}

/* Copies what a stage in the root has of the host's to our own directory: all of it, or what we have no copy of. */
static int bring_home(struct cordon_apply_journal *journal, bool all, struct cordon_error *err)
{
	autofd int own = -1;

	if (!*journal->place)
		return 0;
	own = openat(journal->dir_fd, STAGE, CORDON_OPEN_DIR);
	if (own < 0)
		return cordon_fail_errno(err, -errno, "cannot keep what was replaced");
	for (size_t i = 0; i < journal->n; i++) {
		const struct cordon_apply_step *step = &journal->steps[i];
		char old[CORDON_SLOT_SIZE], copy[CORDON_SLOT_SIZE];
		int r;

		cordon_apply_journal_slot(step->n, CORDON_SLOT_OLD, old);
		cordon_apply_journal_slot(step->n, CORDON_SLOT_COPY, copy);
		if (!has_old(step) || (!all && faccessat(own, old, F_OK, AT_SYMLINK_NOFOLLOW) == 0))
			continue;
		cordon_dirs_remove(own, copy, NULL);
		r = cordon_stage_again(journal->stage_fd, old, own, copy);
		if (r == 0 && renameat(own, copy, own, old) < 0)
			r = -errno;
		/* Of a step that was taken back, there is nothing to keep. */
		if (r < 0 && r != -ENOENT)
			return cordon_fail_errno(err, r, "cannot keep what %s was", step->path);
	}
	return syncfs(own) < 0 ? cordon_fail_errno(err, -errno, "cannot keep what was replaced") : 0;
}

/* The other way round, before an undo: the entries are new files then, and the journal must know them. */
static int bring_back(struct cordon_apply_journal *journal, struct cordon_error *err)
{
	autofd int own = -1;
	int r;

	if (same_mount(journal->stage_fd, journal->root_fd))
		return 0;
	own = cordon_steal_fd(&journal->stage_fd);
	unlinkat(journal->dir_fd, PLACE, 0);
	r = make_place(journal, err);
	for (size_t i = 0; r == 0 && i < journal->n; i++) {
		struct cordon_apply_step *step = &journal->steps[i];
		char buf[CORDON_SLOT_SIZE];
		const char *entry = cordon_apply_journal_slot(step->n, CORDON_SLOT_OLD, buf);
		struct stat st = { 0 };

		if (!has_old(step))
			continue;
		r = cordon_stage_again(own, entry, journal->stage_fd, entry);
		if (r == 0 && fstatat(journal->stage_fd, entry, &st, AT_SYMLINK_NOFOLLOW) < 0)
			r = -errno;
		if (r < 0)
			return cordon_fail_errno(err, r, "cannot restore %s", step->path);
		/* A directory is open until it is filled; it gets the mode and the time that the journal has. */
		if (!S_ISDIR(st.st_mode))
			cordon_ident_of(&st, &step->old);
	}
	return r;
}

/* Keeps a stage that still has something of the host's, which could not be restored because the host changed it
 * again. */
static void set_aside(struct cordon_apply_journal *journal, struct cordon_error *err)
{
	char kept[32];
	int home;

	snprintf(kept, sizeof(kept), KEPT "%s", journal->name);
	home = bring_home(journal, true, NULL);
	cordon_closep(&journal->stage_fd);
	if (home == 0 && *journal->place)
		cordon_dirs_remove(journal->root_fd, journal->place, NULL);
	renameat(journal->all_fd, journal->name, journal->all_fd, kept);
	cordon_error_hint(err,
			  "not everything could be taken back, because the host went on; what it had is in "
			  "state/views/%s/journal/%s%s%s",
			  journal->view->record.id, kept, home < 0 ? ", and in the root in " : "",
			  home < 0 ? journal->place : "");
	cordon_apply_journal_done(journal);
}

/* Waits until what the steps did is on the disk. Waiting for a whole file system also waits for what others write, so
 * few entries are waited for one by one. */
static int sync_entries(const struct cordon_apply_journal *journal, bool staged)
{
	if (journal->n > SYNC_MAX)
		return syncfs(staged ? journal->stage_fd : journal->root_fd) < 0 ? -errno : 0;
	for (size_t i = 0; i < journal->n; i++) {
		const struct cordon_apply_step *step = &journal->steps[i];
		char buf[CORDON_SLOT_SIZE], dir[CORDON_PATH_MAX];
		size_t n = (size_t)(cordon_path_base(step->path) - step->path);
		autofd int fd = -1;

		if (staged && (!S_ISREG(step->new.mode) ||
			       (step->kind != CORDON_APPLY_STEP_SWAP && step->kind != CORDON_APPLY_STEP_PUT)))
			continue;
		if (staged) {
			fd = openat(journal->stage_fd, cordon_apply_journal_slot(step->n, CORDON_SLOT_NEW, buf),
				    O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
			/* A file that nobody may read was just written by us: wait for everything then. */
			if (fd < 0 && errno == EACCES)
				return syncfs(journal->stage_fd) < 0 ? -errno : 0;
		} else if (cordon_copy(dir, sizeof(dir), step->path, n ? n - 1 : 0) == 0) {
			/* The directory may be gone: then its parent is one of the others. */
			fd = cordon_open_beneath(journal->root_fd, dir, CORDON_OPEN_DIR);
			if (fd < 0)
				continue;
		}
		if (fd < 0 || fsync(fd) < 0)
			return -errno;
	}
	return fsync(journal->stage_fd) < 0 || (!staged && fsync(journal->root_fd) < 0) ? -errno : 0;
}

/* Records whether the view is applied, before the journal records that it has ended: a kill in between is noticed. */
static int record_state(struct cordon_apply_journal *journal, cordon_view_state from, cordon_view_state to,
			struct cordon_error *err)
{
	if (!journal->whole || journal->view->record.state != from)
		return 0;
	journal->view->record.state = to;
	return cordon_view_save(journal->view, err);
}

/* Takes everything back after a step failed. The stage is on the disk before the journal is: its entries show which
 * steps were carried out. */
static void roll_back(struct cordon_apply_journal *journal, struct cordon_error *err)
{
	int r = fsync(journal->stage_fd) < 0 ? -errno : enter(journal, CORDON_APPLY_JOURNAL_UNDO, true, NULL);

	if (r == 0)
		r = cordon_apply_steps_run(journal, false, true, NULL);
	if (r == 0)
		sync_entries(journal, false);
	cordon_known_add(journal->view->dir_fd, journal, false);
	if (r == -ESTALE)
		set_aside(journal, err);
	else if (r == 0)
		cordon_apply_journal_drop(journal);
	else /* the disk is full, or the like: the journal stays, and the next call goes on */
		cordon_error_hint(err, "not everything could be taken back; the next call goes on with it");
}

/* Ends the way forward: all steps are carried out, or all are taken back. */
static int finish(struct cordon_apply_journal *journal, bool forced, struct cordon_error *err)
{
	int r = cordon_apply_steps_run(journal, true, forced, err), synced, recorded;
	bool home;

	if (r < 0 && !forced) {
		roll_back(journal, err);
		return r;
	}
	synced = sync_entries(journal, false);
	if (synced < 0 && r == 0)
		r = cordon_fail_errno(err, synced, "cannot write the changes to the disk");
	cordon_known_add(journal->view->dir_fd, journal, true);
	/* We have copies already, but of what the host did in that very moment, or in a journal of the first
	 * version. */
	home = bring_home(journal, r < 0, r == 0 ? err : NULL) == 0;
	recorded = r == 0 ? record_state(journal, CORDON_VIEW_ENDED, CORDON_VIEW_APPLIED, home ? err : NULL) : 0;
	if (!home) {
		set_aside(journal, r == 0 ? err : NULL);
		return r == 0 ? -EIO : r;
	}
	if (r == 0)
		r = recorded;
	if (r < 0 && !forced) {
		cordon_error_hint(err, "the changes are in the host's tree; the next call goes on with what is left");
		return r;
	}
	if (enter(journal, CORDON_APPLY_JOURNAL_APPLIED, *journal->place, r == 0 ? err : NULL) < 0 && r == 0)
		return err ? err->code : -EIO;
	cordon_closep(&journal->stage_fd);
	if (*journal->place) {
		cordon_dirs_remove(journal->root_fd, journal->place, NULL);
		unlinkat(journal->dir_fd, PLACE, 0);
	}
	return r;
}

int cordon_apply_journal_commit(struct cordon_apply_journal *journal, struct cordon_error *err)
{
	int r = sync_entries(journal, true);

	/* Everything is on the disk before the list of steps is, and the list before the first step. */
	if (r < 0)
		r = cordon_fail_errno(err, r, "cannot write the changes to the disk");
	else if (*journal->place && (fsync(journal->root_fd) < 0 || syncfs(journal->dir_fd) < 0))
		r = cordon_fail_errno(err, -errno, "cannot write the changes to the disk");
	else
		r = fsync(journal->all_fd) < 0 ? cordon_fail_errno(err, -errno, "cannot write the journal")
					       : save(journal, CORDON_APPLY_JOURNAL_INTENT, err);
	if (r < 0) {
		cordon_apply_journal_drop(journal);
		return r;
	}
	return finish(journal, false, err);
}

/* Opens a journal and reads its file, if it has one. */
static int open_number(struct cordon_view *view, int all_fd, uint64_t number, int root_fd,
		       struct cordon_apply_journal *ret, struct cordon_error *err)
{
	/* An undo may have begun while the file of the state before is still there. */
	static const cordon_apply_journal_state order[] = { CORDON_APPLY_JOURNAL_UNDO, CORDON_APPLY_JOURNAL_INTENT,
							    CORDON_APPLY_JOURNAL_APPLIED };
	autojournal struct cordon_apply_journal journal = CORDON_APPLY_JOURNAL_NONE;
	autobuf struct cordon_buf text = CORDON_BUF(JOURNAL_MAX);
	bool first = false;
	int r = -ENOENT;

	snprintf(journal.name, sizeof(journal.name), "%llu", (unsigned long long)number);
	journal.root_fd = root_fd;
	journal.view = view;
	journal.arena = cordon_arena_new();
	if (!journal.arena)
		return cordon_no_memory(err);
	journal.all_fd = openat(all_fd, ".", CORDON_OPEN_DIR);
	journal.dir_fd = openat(all_fd, journal.name, CORDON_OPEN_DIR);
	if (journal.all_fd < 0 || journal.dir_fd < 0)
		return cordon_fail_errno(err, -errno, "cannot open the journal %s", journal.name);
	for (size_t i = 0; r == -ENOENT && i < CORDON_ARRAY_SIZE(order); i++) {
		r = cordon_read_file(journal.dir_fd, state_names[order[i]], O_NOFOLLOW, &text, err);
		if (r == 0)
			journal.state = order[i];
	}
	if (r < 0 && r != -ENOENT)
		return r;
	if (r == 0)
		r = apply_journal_read(&journal, &text, &first, err);
	else
		r = 0; /* it is only prepared */
	if (r == -EPROTO)
		return cordon_fail(err, r, CORDON_KIND_IO, "another version of cordon wrote the journal %s of view %s",
				   journal.name, view->record.id);
	if (r < 0)
		return cordon_fail(err, r, CORDON_KIND_IO, "the journal %s of view %s is damaged", journal.name,
				   view->record.id);
	r = open_stage(&journal, err);
	if (r < 0 && journal.state != CORDON_APPLY_JOURNAL_PREPARED)
		return r;
	if (first && !journal.lost)
		r = rename_entries(&journal, err);
	if (r < 0 && journal.state != CORDON_APPLY_JOURNAL_PREPARED)
		return r;
	*ret = journal;
	journal = (struct cordon_apply_journal)CORDON_APPLY_JOURNAL_NONE;
	return 0;
}

int cordon_apply_journal_latest(struct cordon_view *view, int root_fd, struct cordon_apply_journal *ret_journal,
				struct cordon_error *err)
{
	uint64_t numbers[NUMBERS_MAX], newest = 0;
	autofd int all = -1;
	int n = open_all(view, false, &all);

	if (n >= 0)
		n = list_numbers(all, "", numbers, NUMBERS_MAX);
	for (int i = 0; i < n; i++)
		if (numbers[i] > newest)
			newest = numbers[i];
	if (n < 0 && n != -ENOENT)
		return cordon_fail_errno(err, n, "cannot read the journals");
	if (!newest)
		return cordon_fail(err, -ENOENT, CORDON_KIND_NOT_FOUND, "nothing of view %s is applied",
				   view->record.id);
	return open_number(view, all, newest, root_fd, ret_journal, err);
}

/* Ends an undo: all steps are taken back, or all are carried out again. */
static int finish_undo(struct cordon_apply_journal *journal, bool forced, struct cordon_error *err)
{
	int r = cordon_apply_steps_run(journal, false, forced, err), synced, recorded;

	if (r < 0 && !forced) {
		if (fsync(journal->stage_fd) == 0 && enter(journal, CORDON_APPLY_JOURNAL_INTENT, true, NULL) == 0)
			finish(journal, true, NULL);
		return r;
	}
	synced = sync_entries(journal, false);
	if (synced < 0 && r == 0)
		r = cordon_fail_errno(err, synced, "cannot write the changes to the disk");
	cordon_known_add(journal->view->dir_fd, journal, false);
	/* What is kept for a person is not applied any more either. */
	recorded = r == 0 || r == -ESTALE
			   ? record_state(journal, CORDON_VIEW_APPLIED, CORDON_VIEW_ENDED, r == 0 ? err : NULL)
			   : 0;
	if (recorded < 0)
		return r == 0 ? recorded : r;
	if (r == -ESTALE)
		set_aside(journal, err);
	else if (r == 0)
		cordon_apply_journal_drop(journal);
	return r;
}

int cordon_apply_journal_undo(struct cordon_apply_journal *journal, struct cordon_error *err)
{
	int r = bring_back(journal, err);

	if (r == 0 && *journal->place) {
		if (syncfs(journal->stage_fd) < 0)
			r = cordon_fail_errno(err, -errno, "cannot write to the disk");
		if (r == 0)
			r = save(journal, CORDON_APPLY_JOURNAL_UNDO, err);
		if (r == 0)
			unlinkat(journal->dir_fd, state_names[CORDON_APPLY_JOURNAL_APPLIED], 0);
	} else if (r == 0) {
		r = enter(journal, CORDON_APPLY_JOURNAL_UNDO, true, err);
	}
	if (r < 0) {
		if (*journal->place)
			cordon_dirs_remove(journal->root_fd, journal->place, NULL);
		return r;
	}
	return finish_undo(journal, false, err);
}

/* Without its stage, nothing can be carried out or taken back any more. */
static int give_up(struct cordon_apply_journal *journal, struct cordon_error *err)
{
	int r = journal->state == CORDON_APPLY_JOURNAL_UNDO
			? record_state(journal, CORDON_VIEW_APPLIED, CORDON_VIEW_ENDED, err)
			: 0;

	if (r < 0)
		return r;
	cordon_fail(err, -ESTALE, CORDON_KIND_CONFLICT,
		    "the host removed the directory in the root that had the other half of the changes of view %s",
		    journal->view->record.id);
	set_aside(journal, err);
	cordon_error_hint(err, "what the replaced files were is in the view; apply it again to get the rest");
	return -ESTALE;
}

static int recover_one(struct cordon_apply_journal *journal, size_t *ended, struct cordon_error *err)
{
	if (journal->lost)
		return give_up(journal, err);
	switch (journal->state) {
	case CORDON_APPLY_JOURNAL_PREPARED:
		cordon_apply_journal_drop(journal);
		++*ended;
		return 0;
	case CORDON_APPLY_JOURNAL_INTENT:
		++*ended;
		return finish(journal, false, err);
	case CORDON_APPLY_JOURNAL_UNDO:
		++*ended;
		return finish_undo(journal, true, err);
	case CORDON_APPLY_JOURNAL_APPLIED:
		/* A stage that an undo prepared, or that was copied already, may still be in the root. */
		cordon_closep(&journal->stage_fd);
		if (*journal->place)
			cordon_dirs_remove(journal->root_fd, journal->place, NULL);
		if (unlinkat(journal->dir_fd, PLACE, 0) == 0)
			++*ended;
		break;
	}
	return 0;
}

/* It can't be read, so it is neither finished nor taken back. It must not block the view for ever. */
static void keep_damaged(int all_fd, uint64_t number, struct cordon_error *err)
{
	char name[16], kept[32];

	snprintf(name, sizeof(name), "%llu", (unsigned long long)number);
	snprintf(kept, sizeof(kept), KEPT "%s", name);
	if (renameat(all_fd, name, all_fd, kept) == 0)
		cordon_error_hint(err, "it is %s now; its stage may have files of the host's", kept);
}

int cordon_apply_journal_recover(struct cordon_view *view, size_t *ret_ended, struct cordon_error *err)
{
	uint64_t numbers[NUMBERS_MAX];
	autofd int all = -1, root = -1;
	size_t ended = 0;
	int n, r = 0;

	*ret_ended = 0;
	if (!cordon_apply_journal_pending(view))
		return 0;
	n = open_all(view, false, &all);
	if (n >= 0)
		n = list_numbers(all, "", numbers, NUMBERS_MAX);
	if (n > 0)
		r = cordon_view_root(view, &root, err);
	for (int i = 0; r == 0 && i < n; i++) {
		autojournal struct cordon_apply_journal journal = CORDON_APPLY_JOURNAL_NONE;

		r = open_number(view, all, numbers[i], root, &journal, err);
		if (r == 0)
			r = recover_one(&journal, &ended, err);
		else if (r == -EBADMSG)
			keep_damaged(all, numbers[i], err);
	}
	*ret_ended = ended;
	return r;
}

bool cordon_apply_journal_pending(const struct cordon_view *view)
{
	uint64_t numbers[NUMBERS_MAX];
	autofd int all = -1;
	int n = open_all(view, false, &all);

	if (n >= 0)
		n = list_numbers(all, "", numbers, NUMBERS_MAX);
	for (int i = 0; i < n; i++) {
		char path[64];

		snprintf(path, sizeof(path), "%llu/applied", (unsigned long long)numbers[i]);
		if (faccessat(all, path, F_OK, 0) < 0)
			return true;
		snprintf(path, sizeof(path), "%llu/undo", (unsigned long long)numbers[i]);
		if (faccessat(all, path, F_OK, 0) == 0)
			return true;
		snprintf(path, sizeof(path), "%llu/place", (unsigned long long)numbers[i]);
		if (faccessat(all, path, F_OK, 0) == 0)
			return true;
	}
	return false;
}

bool cordon_apply_journal_has_kept(const struct cordon_view *view)
{
	autofd int all = -1;
	uint64_t number;

	return open_all(view, false, &all) == 0 && list_numbers(all, KEPT, &number, 1) > 0;
}
