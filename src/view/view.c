/* SPDX-License-Identifier: Apache-2.0 */
/* Makes, lists, finds, opens, ends and removes views, with their records and the directories that they were made of. */
#include <fcntl.h>
#include <sodium.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include "base/dirs.h"
#include "base/io.h"
#include "base/lock.h"
#include "base/path.h"
#include "base/text.h"
#include "base/time.h"
#include "policy/handover.h"
#include "store/store.h"
#include "view/base.h"
#include "view/hide.h"
#include "view/internal.h"
#include "view/journal.h"

/* ---- records ---- */

static const char *const state_names[] = {
	[CORDON_VIEW_LIVE] = "live",
	[CORDON_VIEW_ENDED] = "ended",
	[CORDON_VIEW_APPLIED] = "applied",
	[CORDON_VIEW_DISCARDED] = "discarded",
	NULL,
};

static const char *const git_names[] = {
	[CORDON_VIEW_GIT_NONE] = "none",
	[CORDON_VIEW_GIT_READ] = "read",
	[CORDON_VIEW_GIT_COMMIT] = "commit",
	NULL,
};

/* NOLINTBEGIN(bugprone-macro-parentheses, bugprone-sizeof-expression): names of members; pointers have a size, too. */
#define FIELD(struct_, key_, type_, member_)                                                                           \
	.key = key_, .type = CORDON_FIELD_##type_, .offset = offsetof(struct struct_, member_),                        \
	.size = sizeof(((struct struct_ *)0)->member_)

static const struct cordon_field time_fields[] = {
	{ FIELD(cordon_view_time, "sec", NUMBER, sec) },
	{ FIELD(cordon_view_time, "nsec", NUMBER, nsec) },
	{ 0 },
};

static const struct cordon_record_kind time_kind = {
	.what = "view",
	.size = sizeof(struct cordon_view_time),
	.other = offsetof(struct cordon_view_time, other),
	.fields = time_fields,
};

#define VIEW(key_, type_, member_) FIELD(cordon_view_record, key_, type_, member_)

static const struct cordon_field view_fields[] = {
	{ VIEW("id", TEXT, id), .needed = true },
	{ VIEW("state", NAME, state), .names = state_names, .needed = true },
	{ VIEW("root", STRING, root), .needed = true },
	{ VIEW("created_at", TEXT, created_at) },
	{ VIEW("command", STRINGS, command) },
	{ VIEW("run", TEXT, run) },
	{ VIEW("session", TEXT, session) },
	{ VIEW("git", NAME, git), .names = git_names, .needed = true },
	{ VIEW("lost", FLAG, lost) },
	{ VIEW("dev", NUMBER, dev), .hidden = true, .needed = true },
	{ VIEW("ino", NUMBER, ino), .hidden = true, .needed = true },
	{ VIEW("lasting", TEXT, lasting), .hidden = true },
	{ VIEW("started", INNER, started), .inner = &time_kind, .needed = true },
	{ VIEW("ended", INNER, ended), .inner = &time_kind },
	{ VIEW("layers", STRINGS, layers) },
	{ 0 },
};

const struct cordon_record_kind cordon_view_kind = {
	.what = "view",
	.size = sizeof(struct cordon_view_record),
	.other = offsetof(struct cordon_view_record, other),
	.id = offsetof(struct cordon_view_record, id),
	.created_at = offsetof(struct cordon_view_record, created_at),
	.fields = view_fields,
};
/* NOLINTEND(bugprone-macro-parentheses, bugprone-sizeof-expression) */

void cordon_view_record_done(struct cordon_view_record *record)
{
	cordon_fields_done(&cordon_view_kind, record);
}

json_t *cordon_view_json(const struct cordon_view_record *record)
{
	return cordon_fields_write(&cordon_view_kind, record, true);
}

const char *cordon_view_state_name(cordon_view_state state)
{
	return (unsigned int)state < CORDON_VIEW_STATE__MAX ? state_names[state] : "?";
}

/* ---- the root ---- */

/*
 * What identifies a directory as long as it exists; "" when its file system has no such thing. The time of
 * birth, and what the file system itself calls the directory: an inode number alone is given again, and each file
 * system has its own. No part of it can be chosen by who makes a directory.
 */
static void view_identify(int root_fd, char ret_lasting[static CORDON_VIEW_LASTING_SIZE])
{
	union {
		struct file_handle handle;
		char room[sizeof(struct file_handle) + MAX_HANDLE_SZ];
	} name = { .handle.handle_bytes = MAX_HANDLE_SZ };
	char text[2 * MAX_HANDLE_SZ + 1];
	struct statx stx;
	int mount;

	ret_lasting[0] = '\0';
	if (statx(root_fd, "", AT_EMPTY_PATH, STATX_BTIME, &stx) < 0 || !(stx.stx_mask & STATX_BTIME) ||
	    name_to_handle_at(root_fd, "", &name.handle, &mount, AT_EMPTY_PATH) < 0)
		return;
	sodium_bin2hex(text, sizeof(text), name.handle.f_handle, name.handle.handle_bytes);
	snprintf(ret_lasting, CORDON_VIEW_LASTING_SIZE, "%lld.%09u %d %s", (long long)stx.stx_btime.tv_sec,
		 stx.stx_btime.tv_nsec, name.handle.handle_type, text);
}

/* Whether a view was made of this directory. */
static bool view_is_of(const struct cordon_view_record *record, int root_fd)
{
	char lasting[CORDON_VIEW_LASTING_SIZE];
	struct stat st;

	if (fstat(root_fd, &st) < 0 || (int64_t)st.st_ino != record->ino)
		return false;
	if ((int64_t)st.st_dev == record->dev)
		return true;
	view_identify(root_fd, lasting);
	return *lasting && cordon_streq(lasting, record->lasting);
}

int cordon_view_root(const struct cordon_view *view, int *ret_fd, struct cordon_error *err)
{
	autofd int fd = open(view->record.root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return cordon_fail_errno(err, -errno, "cannot open the root %s of the view", view->record.root);
	if (!view_is_of(&view->record, fd))
		return cordon_fail(err, -ESTALE, CORDON_KIND_CONFLICT,
				   "%s is not the directory any more that the view %s was made of", view->record.root,
				   view->record.id);
	*ret_fd = cordon_steal_fd(&fd);
	return 0;
}

void cordon_view_devices(const struct cordon_view *view, int root_fd, struct cordon_view_devices *ret_devices)
{
	struct stat st;

	ret_devices->noted = ret_devices->now = (uint64_t)view->record.dev;
	if (fstat(root_fd, &st) == 0)
		ret_devices->now = st.st_dev;
}

uint64_t cordon_view_renumber(const struct cordon_view_devices *devices, uint64_t dev)
{
	return dev == devices->noted ? devices->now : dev == devices->now ? devices->noted : dev;
}

/* ---- views ---- */

/* The attribute by which we find out whether the file system of a view keeps those that overlayfs needs. */
#define TRIAL_ATTRIBUTE "user.cordon.view"

int cordon_view_dir(const struct cordon_home *home, int *ret_fd, struct cordon_error *err)
{
	return cordon_home_subdir(home, "views", ret_fd, err);
}

void cordon_view_close(struct cordon_view *view)
{
	cordon_closep(&view->dir_fd);
	cordon_closep(&view->lock_fd);
	cordon_view_record_done(&view->record);
}

static int no_view(const char *text, struct cordon_error *err)
{
	int r = cordon_fail(err, -ENOENT, CORDON_KIND_NOT_FOUND, "there is no view %.80s", text);

	cordon_error_hint(err, "see 'cordon changes list'");
	return r;
}

static int name_path(const struct cordon_home *home, struct cordon_view *view, const char *id, struct cordon_error *err)
{
	if (cordon_concat(view->path, sizeof(view->path), home->path, "/state/views/", id, (char *)NULL) < 0)
		return cordon_fail_errno(err, -ENAMETOOLONG, "view %s", id);
	return 0;
}

/* Locks a view by its directory, which costs the start no file. Never waits: -EWOULDBLOCK. */
static int view_lock_dir(int dir_fd, int *ret_fd, struct cordon_error *err)
{
	autofd int fd = openat(dir_fd, ".", CORDON_OPEN_DIR);
	int r = fd < 0 ? -errno : cordon_lock(fd, LOCK_EX | LOCK_NB);

	if (r < 0)
		return cordon_fail_errno(err, r, "cannot lock the view");
	*ret_fd = cordon_steal_fd(&fd);
	return 0;
}

static int load(struct cordon_view *view, const char *id, struct cordon_error *err)
{
	struct cordon_view_record record = { 0 };
	int r = cordon_record_load(&cordon_view_kind, view->dir_fd, CORDON_VIEW_RECORD, &record, err);

	if (r == -ENOENT)
		return no_view(id, err);
	if (r < 0)
		return r;
	cordon_view_record_done(&view->record);
	view->record = record;
	return 0;
}

/* The arguments of a command may have any bytes; people see them escaped. */
static json_t *command_of(char *const *argv)
{
	json_auto_t *command = json_array();

	for (; command && argv && *argv; argv++) {
		autobuf struct cordon_buf text = CORDON_BUF(4 * CORDON_RECORD_MAX);

		if (cordon_text_escape(&text, *argv, strlen(*argv)) < 0 ||
		    json_array_append_new(command, json_stringn(text.data ? text.data : "", text.len)) < 0)
			return NULL;
	}
	return cordon_steal_ptr(&command);
}

/* What the host changed before now has an earlier time. What it changes after the program of the run has begun does
 * not, because the sandbox lets the clock of file times pass the start before that (sandbox/inside/agent.c). */
static void take_start(struct cordon_view_time *ret_start)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	ret_start->sec = now.tv_sec;
	ret_start->nsec = now.tv_nsec;
}

static int fill_record(struct cordon_view_record *record, const struct cordon_view_request *request, const char *id,
		       struct cordon_error *err)
{
	const struct cordon_root *root = &request->policy->root;
	struct stat st;

	if (!cordon_utf8_valid(root->path, strlen(root->path)))
		return cordon_fail(err, -EILSEQ, CORDON_KIND_POLICY_DENIED,
				   "the path of the root is not UTF-8, which a view needs: %s", root->path);
	if (fstat(root->fd, &st) < 0)
		return cordon_fail_errno(err, -errno, "cannot stat %s", root->path);
	cordon_copy(record->id, sizeof(record->id), id, strlen(id));
	if (request->session)
		cordon_copy(record->session, sizeof(record->session), request->session, strlen(request->session));
	record->dev = (int64_t)st.st_dev;
	record->ino = (int64_t)st.st_ino;
	view_identify(root->fd, record->lasting);
	record->state = CORDON_VIEW_LIVE;
	record->git = request->git;
	cordon_record_stamp(record->created_at);
	record->root = strdup(root->path);
	record->command = command_of(request->argv);
	record->layers = request->layers ? json_deep_copy(request->layers) : json_array();
	return record->root && record->command && record->layers ? 0 : cordon_no_memory(err);
}

static int write_policy(const struct cordon_view *view, const struct cordon_policy *policy, struct cordon_error *err)
{
	autofd int fd = openat(view->dir_fd, CORDON_VIEW_POLICY, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
			       0600);

	if (fd < 0)
		return cordon_fail_errno(err, -errno, "cannot write the policy of the view");
	return cordon_handover_write(policy, !policy->no_editor_temps, fd, err);
}

/* Writes the first record without waiting for the disk: a start must not. The end of the run writes it durably. */
static int write_first(const struct cordon_view *view, struct cordon_error *err)
{
	json_auto_t *object = json_pack("{s:i}", "schema", CORDON_SCHEMA);
	json_auto_t *fields = cordon_fields_write(&cordon_view_kind, &view->record, false);
	autofree char *text = NULL;
	autofd int fd = -1;
	int r;

	if (!object || !fields || json_object_update(object, fields) < 0 || !(text = json_dumps(object, JSON_INDENT(2))))
		return cordon_no_memory(err);
	fd = openat(view->dir_fd, ".record", O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	r = fd < 0 ? -errno : cordon_write_all(fd, text, strlen(text));
	if (r == 0 && renameat(view->dir_fd, ".record", view->dir_fd, CORDON_VIEW_RECORD) < 0)
		r = -errno;
	return r < 0 ? cordon_fail_errno(err, r, "cannot record the view") : 0;
}

/* Makes the layer's directories. The upper one has the mode and the times of the root, because they become those of the
 * view. */
static int make_layers(const struct cordon_view *view, const struct cordon_home *home, int root_fd,
		       struct cordon_error *err)
{
	autofd int upper = -1;
	struct timespec times[2];
	struct stat st;

	if (mkdirat(view->dir_fd, CORDON_VIEW_UPPER, 0700) < 0 || mkdirat(view->dir_fd, CORDON_VIEW_WORK, 0700) < 0 ||
	    fstat(root_fd, &st) < 0 || (upper = openat(view->dir_fd, CORDON_VIEW_UPPER, CORDON_OPEN_DIR)) < 0 ||
	    fchmod(upper, st.st_mode & 0777) < 0)
		return cordon_fail_errno(err, -errno, "cannot make the layer of the view");
	times[0] = st.st_atim;
	times[1] = st.st_mtim;
	if (fsetxattr(upper, TRIAL_ATTRIBUTE, "", 0, 0) == 0 && fremovexattr(upper, TRIAL_ATTRIBUTE) == 0)
		return futimens(upper, times) < 0 ? cordon_fail_errno(err, -errno, "cannot make the layer of the view")
						  : 0;
	cordon_fail(err, -errno, CORDON_KIND_KERNEL_UNSUPPORTED,
		    "a view needs extended attributes, which the file system of %s refuses: %s", home->path,
		    strerror(errno));
	cordon_error_hint(err, "set CORDON_HOME to a directory on ext4, XFS, btrfs or (from Linux 6.6 on) tmpfs");
	return err ? err->code : -ENOTSUP;
}

/* Makes the directory of the view and locks it, so that cordon_view_gc() sees that it is in use. */
static int make_dir(const struct cordon_home *home, const char *id, struct cordon_view *view, struct cordon_error *err)
{
	autofd int views = -1;
	int r = cordon_view_dir(home, &views, err);

	if (r < 0)
		return r;
	r = cordon_lock(views, LOCK_SH);
	if (r < 0)
		return cordon_fail_errno(err, r, "cannot lock the views");
	if (mkdirat(views, id, 0700) < 0 || (view->dir_fd = openat(views, id, CORDON_OPEN_DIR)) < 0)
		return cordon_fail_errno(err, -errno, "cannot make the view %s", id);
	return view_lock_dir(view->dir_fd, &view->lock_fd, err);
}

int cordon_view_create(const struct cordon_home *home, const struct cordon_view_request *request,
		       struct cordon_view *ret_view, struct cordon_error *err)
{
	struct cordon_view view = CORDON_VIEW_NONE;
	char id[CORDON_UUID_SIZE];
	int r = request->id ? cordon_copy(id, sizeof(id), request->id, strlen(request->id)) : cordon_uuid_new(id);

	if (r < 0)
		return cordon_fail_errno(err, r, "cannot make an id");
	take_start(&view.record.started);
	r = fill_record(&view.record, request, id, err);
	if (r == 0)
		r = name_path(home, &view, id, err);
	if (r == 0)
		r = make_dir(home, id, &view, err);
	if (r == 0)
		r = make_layers(&view, home, request->policy->root.fd, err);
	if (r == 0)
		r = cordon_view_hide(&view, request->policy, err);
	if (r == 0)
		r = write_policy(&view, request->policy, err);
	if (r == 0)
		r = write_first(&view, err);
	if (r < 0) {
		if (view.dir_fd >= 0)
			cordon_view_remove(home, &view, NULL);
		cordon_view_close(&view);
		return r;
	}
	*ret_view = view;
	return 0;
}

int cordon_view_lock(struct cordon_view *view, struct cordon_error *err)
{
	char id[CORDON_ID_SIZE];
	int r;

	memcpy(id, view->record.id, sizeof(id));
	if (view->lock_fd >= 0)
		return 0;
	r = view_lock_dir(view->dir_fd, &view->lock_fd, err);
	if (r == -EWOULDBLOCK) {
		cordon_fail(err, -EBUSY, CORDON_KIND_CONFLICT,
			    "view %s is in use: its run has not ended, or another command works on it", id);
		return -EBUSY;
	}
	if (r == 0)
		r = load(view, id, err);
	if (r < 0)
		cordon_closep(&view->lock_fd);
	return r;
}

int cordon_view_save(struct cordon_view *view, struct cordon_error *err)
{
	return cordon_record_save(&cordon_view_kind, view->dir_fd, CORDON_VIEW_RECORD, &view->record, err);
}

/* Records the end of a view whose process was killed. Whoever finds it first writes it. */
static int mark_if_lost(struct cordon_view *view, struct cordon_error *err)
{
	int r;

	if (view->record.state != CORDON_VIEW_LIVE || cordon_view_lock(view, NULL) < 0)
		return 0;
	r = 0;
	if (view->record.state == CORDON_VIEW_LIVE) {
		view->record.state = CORDON_VIEW_ENDED;
		view->record.lost = true;
		r = cordon_view_save(view, err);
	}
	cordon_closep(&view->lock_fd);
	return r;
}

int cordon_view_open(const struct cordon_home *home, const char *id, struct cordon_view *ret_view,
		     struct cordon_error *err)
{
	struct cordon_view view = CORDON_VIEW_NONE;
	autofd int views = -1;
	int r;

	if (!cordon_uuid_valid(id))
		return cordon_fail(err, -EINVAL, CORDON_KIND_USAGE, "not the id of a view: %.80s", id);
	r = cordon_view_dir(home, &views, err);
	if (r == 0)
		r = name_path(home, &view, id, err);
	if (r < 0)
		return r;
	view.dir_fd = openat(views, id, CORDON_OPEN_DIR);
	if (view.dir_fd < 0)
		return errno == ENOENT ? no_view(id, err)
				       : cordon_fail_errno(err, -errno, "cannot open the view %s", id);
	r = load(&view, id, err);
	if (r == 0)
		r = mark_if_lost(&view, err);
	if (r < 0) {
		cordon_view_close(&view);
		return r;
	}
	*ret_view = view;
	return 0;
}

cordon_view_state cordon_view_beside_state(const struct cordon_view *view, const char *id)
{
	struct cordon_view_record record = { 0 };
	cordon_view_state state = CORDON_VIEW_STATE__MAX;
	char path[CORDON_UUID_SIZE + 4];
	autofd int dir = -1;

	if (id && cordon_uuid_valid(id) && cordon_concat(path, sizeof(path), "../", id, (char *)NULL) == 0)
		dir = openat(view->dir_fd, path, CORDON_OPEN_DIR);
	if (dir >= 0 && cordon_record_load(&cordon_view_kind, dir, CORDON_VIEW_RECORD, &record, NULL) == 0)
		state = record.state;
	cordon_view_record_done(&record);
	return state;
}

static bool is_empty(int dir_fd, const char *name)
{
	int fd = openat(dir_fd, name, CORDON_OPEN_DIR);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	bool empty = dir != NULL;

	if (!dir && fd >= 0)
		close(fd);
	for (struct dirent *entry; empty && (errno = 0, entry = readdir(dir));)
		empty = cordon_streq(entry->d_name, ".") || cordon_streq(entry->d_name, "..");
	if (errno)
		empty = false;
	if (dir)
		closedir(dir);
	return empty;
}

/* Whether the run left nothing, or only copies of what the host has. */
static bool has_no_changes(const struct cordon_view *view)
{
	autodelta struct cordon_delta delta = CORDON_DELTA_NONE;

	return is_empty(view->dir_fd, CORDON_VIEW_UPPER) ||
	       (cordon_delta_find(view, &delta, NULL) == 0 && !delta.n && !delta.n_left);
}

int cordon_view_end(const struct cordon_home *home, struct cordon_view *view, const char *run_id, bool keep,
		    bool *ret_removed, struct cordon_error *err)
{
	struct timespec now;
	int r;

	cordon_view_unhide(view);
	if (!keep && has_no_changes(view)) {
		r = cordon_view_remove(home, view, err);
		if (r == 0)
			*ret_removed = true;
		return r;
	}
	clock_gettime(CLOCK_REALTIME, &now);
	view->record.ended.sec = now.tv_sec;
	view->record.ended.nsec = now.tv_nsec;
	view->record.state = CORDON_VIEW_ENDED;
	cordon_base_keep(view);
	if (run_id)
		cordon_copy(view->record.run, sizeof(view->record.run), run_id, strlen(run_id));
	*ret_removed = false;
	return cordon_view_save(view, err);
}

int cordon_view_remove(const struct cordon_home *home, struct cordon_view *view, struct cordon_error *err)
{
	autofd int views = -1;
	int r = cordon_view_dir(home, &views, err);

	if (r < 0)
		return r;
	/* From here on it does not exist for anybody but cordon_view_gc(). */
	if (unlinkat(view->dir_fd, CORDON_VIEW_RECORD, 0) < 0 && errno != ENOENT)
		return cordon_fail_errno(err, -errno, "cannot remove the view %s", view->record.id);
	r = cordon_dirs_remove(views, view->record.id, err);
	cordon_view_close(view);
	return r;
}

int cordon_view_policy(const struct cordon_view *view, struct cordon_policy **ret_policy, struct cordon_error *err)
{
	autofd int file = openat(view->dir_fd, CORDON_VIEW_POLICY, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	autofd int root = -1;
	struct cordon_policy *policy;
	bool temps;
	int r;

	if (file < 0)
		return cordon_fail_errno(err, -errno, "cannot read the policy of the view %s", view->record.id);
	r = cordon_view_root(view, &root, err);
	if (r < 0)
		return r;
	r = cordon_handover_read(file, root, &policy, &temps, err);
	if (r < 0)
		return r;
	policy->no_editor_temps = !temps;
	*ret_policy = policy;
	return 0;
}

/* ---- all views ---- */

void cordon_view_list_done(struct cordon_view_list *list)
{
	for (size_t i = 0; i < list->n; i++)
		cordon_view_record_done(&list->items[i]);
	free(list->items);
	*list = (struct cordon_view_list){ 0 };
}

static int add(struct cordon_view_list *list, struct cordon_view_record *record)
{
	if (list->n == list->space) {
		size_t space = list->space ? 2 * list->space : 16;
		struct cordon_view_record *items = reallocarray(list->items, space, sizeof(*items));

		if (!items)
			return -ENOMEM;
		list->items = items;
		list->space = space;
	}
	list->items[list->n++] = *record;
	*record = (struct cordon_view_record){ 0 };
	return 0;
}

static int by_start(const void *a, const void *b)
{
	const struct cordon_view_record *x = a, *y = b;

	if (x->started.sec != y->started.sec)
		return x->started.sec < y->started.sec ? -1 : 1;
	if (x->started.nsec != y->started.nsec)
		return x->started.nsec < y->started.nsec ? -1 : 1;
	return strcmp(x->id, y->id);
}

int cordon_view_list(const struct cordon_home *home, int root_fd, struct cordon_view_list *ret_list,
		     struct cordon_error *err)
{
	autoviewlist struct cordon_view_list list = { 0 };
	json_auto_t *names = NULL;
	autofd int views = -1;
	size_t i;
	json_t *name;
	int r = cordon_view_dir(home, &views, err);

	if (r == 0)
		r = cordon_record_names(views, NULL, &names, err);
	if (r < 0)
		return r;
	json_array_foreach(names, i, name) {
		autoview struct cordon_view view = CORDON_VIEW_NONE;

		if (cordon_view_open(home, json_string_value(name), &view, NULL) < 0)
			continue;
		if (root_fd >= 0 && !view_is_of(&view.record, root_fd))
			continue;
		if (add(&list, &view.record) < 0)
			return cordon_no_memory(err);
	}
	if (list.n)
		qsort(list.items, list.n, sizeof(*list.items), by_start);
	*ret_list = list;
	list = (struct cordon_view_list){ 0 };
	return 0;
}

static int not_found(const char *text, struct cordon_error *err)
{
	int r = cordon_fail(err, -ENOENT, CORDON_KIND_NOT_FOUND, "there is no view %.80s", text);

	cordon_error_hint(err, "see 'cordon changes list'; of an id, %d characters are enough if no other has them",
			  CORDON_FIND_MIN);
	return r;
}

static int find_latest(const struct cordon_home *home, int root_fd, char ret_id[static CORDON_ID_SIZE],
		       struct cordon_error *err)
{
	autoviewlist struct cordon_view_list list = { 0 };
	int r = cordon_view_list(home, root_fd, &list, err);

	if (r < 0)
		return r;
	for (size_t i = list.n; i-- > 0;) {
		if (list.items[i].state == CORDON_VIEW_DISCARDED)
			continue;
		memcpy(ret_id, list.items[i].id, CORDON_ID_SIZE);
		return 0;
	}
	r = cordon_fail(err, -ENOENT, CORDON_KIND_NOT_FOUND, "this root has no view");
	cordon_error_hint(err, "see 'cordon changes list'");
	return r;
}

int cordon_view_find(const struct cordon_home *home, const char *text, int root_fd, char ret_id[static CORDON_ID_SIZE],
		     struct cordon_error *err)
{
	char beginning[CORDON_UUID_SIZE] = "", found[CORDON_ID_SIZE] = "";
	json_auto_t *names = NULL;
	autofd int views = -1;
	size_t n = strlen(text), i;
	json_t *name;
	int r;

	if (cordon_streq(text, "latest"))
		return find_latest(home, root_fd, ret_id, err);
	if (n < CORDON_FIND_MIN || n >= CORDON_UUID_SIZE || strspn(text, "0123456789abcdefABCDEF-") != n)
		return not_found(text, err);
	for (i = 0; i < n; i++)
		beginning[i] = (char)(text[i] >= 'A' && text[i] <= 'F' ? text[i] | 0x20 : text[i]);
	r = cordon_view_dir(home, &views, err);
	if (r == 0)
		r = cordon_record_names(views, NULL, &names, err);
	if (r < 0)
		return r;
	json_array_foreach(names, i, name) {
		const char *id = json_string_value(name);

		if (!cordon_uuid_valid(id) || strncmp(id, beginning, n) != 0)
			continue;
		if (*found) {
			r = cordon_fail(err, -ENOTUNIQ, CORDON_KIND_USAGE, "%.80s may be several views: %s, %s", text,
					found, id);
			cordon_error_hint(err, "say more of the id");
			return r;
		}
		cordon_copy(found, sizeof(found), id, strlen(id));
	}
	if (!*found)
		return not_found(text, err);
	memcpy(ret_id, found, sizeof(found));
	return 0;
}

/* Removes a directory of views that has no record, because its process was killed while it made or removed the view. */
static bool remove_half(int views, const char *id)
{
	autofd int dir = openat(views, id, CORDON_OPEN_DIR);
	autofd int lock = -1;
	struct stat st;

	return dir >= 0 && fstatat(dir, CORDON_VIEW_RECORD, &st, AT_SYMLINK_NOFOLLOW) < 0 && errno == ENOENT &&
	       view_lock_dir(dir, &lock, NULL) == 0 && cordon_dirs_remove(views, id, NULL) == 0;
}

/* The first view that may still be applied and that was made on top of view `id`, or NULL. */
static const struct cordon_view_record *find_above(const struct cordon_view_list *list, const char *id)
{
	for (size_t i = 0; i < list->n; i++) {
		const struct cordon_view_record *record = &list->items[i];
		json_t *layer;
		size_t k;

		if (record->state != CORDON_VIEW_LIVE && record->state != CORDON_VIEW_ENDED)
			continue;
		json_array_foreach(record->layers, k, layer) {
			const char *below = json_string_value(layer);

			if (below && cordon_streq(below, id))
				return record;
		}
	}
	return NULL;
}

int cordon_view_check_above(const struct cordon_home *home, const char *id, struct cordon_error *err)
{
	autoviewlist struct cordon_view_list list = { 0 };
	const struct cordon_view_record *above;
	int r = cordon_view_list(home, -1, &list, err);

	if (r < 0 || !(above = find_above(&list, id)))
		return r;
	r = cordon_fail(err, -EBUSY, CORDON_KIND_CONFLICT, "view %s was made on top of view %s", above->id, id);
	cordon_error_hint(err, "apply or discard that one first");
	return r;
}

static bool is_settled(const struct cordon_view_record *record, uint64_t max_age_ms)
{
	int64_t age_ms = cordon_time_now() - record->ended.sec * 1000;

	return (record->state == CORDON_VIEW_APPLIED || record->state == CORDON_VIEW_DISCARDED) && age_ms >= 0 &&
	       (uint64_t)age_ms >= max_age_ms;
}

/* Removes a view that nobody needs any more. One whose undo was interrupted, or that has something of the host's which
 * could not be restored, is left for a person. */
static bool remove_settled(const struct cordon_home *home, struct cordon_view *view, uint64_t max_age_ms)
{
	return is_settled(&view->record, max_age_ms) && cordon_view_lock(view, NULL) == 0 &&
	       is_settled(&view->record, max_age_ms) && !cordon_apply_journal_pending(view) &&
	       !cordon_apply_journal_has_kept(view) && cordon_view_remove(home, view, NULL) == 0;
}

int cordon_view_gc(const struct cordon_home *home, uint64_t max_age_ms, struct cordon_view_counts *ret_counts,
		   struct cordon_error *err)
{
	autoviewlist struct cordon_view_list all = { 0 };
	struct cordon_view_counts counts = { 0 };
	json_auto_t *names = NULL;
	autofd int views = -1;
	size_t i;
	json_t *name;
	int r = cordon_view_dir(home, &views, err);

	if (r < 0)
		return r;
	/* A view that is just being made holds this lock shared until it has its own. */
	r = cordon_lock(views, LOCK_EX);
	if (r < 0)
		return cordon_fail_errno(err, r, "cannot lock the views");
	r = cordon_record_names(views, NULL, &names, err);
	if (r == 0)
		r = cordon_view_list(home, -1, &all, err);
	if (r < 0)
		return r;
	json_array_foreach(names, i, name) {
		autoview struct cordon_view view = CORDON_VIEW_NONE;
		const char *id = json_string_value(name);

		if (!cordon_uuid_valid(id))
			continue;
		if (remove_half(views, id)) {
			counts.removed++;
		} else if (cordon_view_open(home, id, &view, NULL) == 0) {
			if (!find_above(&all, id) && remove_settled(home, &view, max_age_ms))
				counts.removed++;
			else if (view.record.state == CORDON_VIEW_LIVE)
				counts.live++;
			else if (view.record.state == CORDON_VIEW_ENDED)
				counts.waiting++;
		}
	}
	*ret_counts = counts;
	return 0;
}
