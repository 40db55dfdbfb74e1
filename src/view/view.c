/* SPDX-License-Identifier: Apache-2.0 */
/* Makes, opens, ends and removes views. */
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
#include "view/base.h"
#include "view/hide.h"
#include "view/internal.h"

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

int cordon_view_lock_dir(int dir_fd, int *ret_fd, struct cordon_error *err)
{
	autofd int fd = openat(dir_fd, ".", CORDON_OPEN_DIR);

	if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0)
		return cordon_fail_errno(err, -errno, "cannot lock the view");
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

/* What the host changed before now has an earlier time. What it changes after the program of the run has begun does not,
 * because the sandbox lets the clock of file times pass the start before that (sandbox/inside/agent.c). */
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
	cordon_view_identify(root->fd, record->lasting);
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

/* Makes the layer's directories. The upper one has the mode and the times of the root, because they become those of the view. */
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
	if (flock(views, LOCK_SH) < 0)
		return cordon_fail_errno(err, -errno, "cannot lock the views");
	if (mkdirat(views, id, 0700) < 0 || (view->dir_fd = openat(views, id, CORDON_OPEN_DIR)) < 0)
		return cordon_fail_errno(err, -errno, "cannot make the view %s", id);
	return cordon_view_lock_dir(view->dir_fd, &view->lock_fd, err);
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
	r = cordon_view_lock_dir(view->dir_fd, &view->lock_fd, err);
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

	if (id && cordon_uuid_valid(id) && cordon_concat(path, sizeof(path), "../", id, NULL) == 0)
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
