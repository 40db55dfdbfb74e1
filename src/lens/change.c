/* SPDX-License-Identifier: Apache-2.0 */
/* Requests to cordon-lens that make or remove names. */
#include <fcntl.h>
#include <stdio.h>

#include "lens/lens.h"

/* A directory that was opened to change one of its names, and the path by which we judge that change. */
struct place {
	struct lens *lens;
	struct lens_node *dir;
	const char *name;
	int dir_fd;
	char path[CORDON_PATH_MAX];
	bool temp; /* allowed only as a temporary name */
};

static void place_done(struct place *place)
{
	cordon_closep(&place->dir_fd);
}

#define autoplace CORDON_CLEANUP(place_done)

static int place_open(fuse_req_t req, fuse_ino_t parent, const char *name, struct place *ret)
{
	int r;

	ret->lens = fuse_req_userdata(req);
	ret->dir = lens_node(ret->lens, parent);
	ret->name = name;
	ret->temp = false;
	ret->dir_fd = lens_open_node(ret->lens, ret->dir, false);
	if (ret->dir_fd < 0)
		return ret->dir_fd;
	r = lens_path_below(ret->lens, ret->dir, name, ret->path);
	return r;
}

/* Judges whether a name may be made. A temporary name of an atomic save is allowed and marked as such. */
static int judge_making(struct place *place, mode_t type)
{
	struct lens *lens = place->lens;
	int r = lens_judge_change(lens, place->path, S_ISDIR(type), LENS_CREATE);
	char dir_path[CORDON_PATH_MAX];

	if (r == 0)
		return 0;
	if ((!S_ISREG(type) && !S_ISLNK(type)) || lens_path(lens, place->dir, dir_path) < 0 ||
	    !lens_temp_name_shape(lens, dir_path, place->dir_fd, place->name, S_ISLNK(type))) {
		lens_report_change(lens, CORDON_LENS_OP_CREATE, place->path);
		return r;
	}
	place->temp = true;
	return 0;
}

/* Fills in the entry of what was made. Records a temporary name first. */
static int entry_made(fuse_req_t req, const struct place *place, struct fuse_entry_param *ret)
{
	struct lens *lens = place->lens;
	struct statx stx;
	int r = 0;

	lens_listing_drop(lens, place->dir);
	if (place->temp) {
		r = lens_stat(place->dir_fd, place->name, &stx);
		if (r == 0) {
			struct lens_id id = lens_id_of(&stx);

			r = lens_temp_name_add(lens, place->dir, place->name, &id);
		}
		if (r < 0)
			(void)unlinkat(place->dir_fd, place->name, 0);
	}
	return r < 0 ? r : lens_entry_made(lens, fuse_req_ctx(req), place->dir, place->dir_fd, place->name, ret);
}

static void reply_made(fuse_req_t req, const struct place *place)
{
	struct fuse_entry_param entry;
	int r = entry_made(req, place, &entry);

	if (r < 0)
		lens_reply_err(req, -r);
	else
		lens_reply_entry(req, &entry);
}

/*
 * Makes a file and opens it, in one request. With some modes the file cannot be opened again (git makes its objects
 * 0444 and then writes them). Then the descriptor that the file was made with is the only way to read and write it,
 * and we keep it.
 */
void lens_op_create(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode, struct fuse_file_info *fi)
{
	autoplace struct place place;
	struct fuse_entry_param entry = { 0 };
	autofd int fd = -1;
	int r = place_open(req, parent, name, &place);

	if (r == 0)
		r = judge_making(&place, S_IFREG);
	if (r == 0) {
		fd = openat(place.dir_fd, name, O_CREAT | O_EXCL | O_RDWR | O_NOFOLLOW | O_CLOEXEC, mode & 01777);
		r = fd < 0 ? -errno : 0;
	}
	/* Somebody else made the file first, and the caller allows that. If we answered with that file, the kernel
	 * would take it for a new one: it would neither truncate it nor check its mode. ESTALE makes the kernel look
	 * the name up again and open what is there. */
	if (r == -EEXIST && !(fi->flags & O_EXCL))
		r = -ESTALE;
	if (r == 0)
		r = entry_made(req, &place, &entry);
	if (r == 0 && !S_ISREG(entry.attr.st_mode)) {
		lens_node_forget(place.lens, lens_node(place.lens, entry.ino), 1);
		r = -ESTALE;
	}
	if (r < 0) {
		lens_reply_err(req, -r);
		return;
	}
	fi->keep_cache = 1;
	fi->fh = fd >= 0 && (mode & (S_IRUSR | S_IWUSR)) != (S_IRUSR | S_IWUSR)
			 ? lens_handle_keep(place.lens, cordon_steal_fd(&fd))
			 : 0;
	if (fuse_reply_create(req, &entry, fi) < 0) {
		lens_handle_drop(place.lens, fi->fh);
		lens_node_forget(place.lens, lens_node(place.lens, entry.ino), 1);
	}
}

void lens_op_release(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	(void)ino;
	lens_handle_drop(fuse_req_userdata(req), fi->fh);
	fuse_reply_err(req, 0);
}

void lens_op_mknod(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode, dev_t rdev)
{
	autoplace struct place place;
	int r = place_open(req, parent, name, &place);

	(void)rdev;
	if (r == 0 && !S_ISREG(mode) && !S_ISFIFO(mode) && !S_ISSOCK(mode))
		r = -EPERM;
	if (r == 0)
		r = judge_making(&place, mode);
	if (r == 0 && mknodat(place.dir_fd, name, mode & (S_IFMT | 01777), 0) < 0)
		r = -errno;
	if (r < 0)
		lens_reply_err(req, -r);
	else
		reply_made(req, &place);
}

void lens_op_mkdir(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode)
{
	autoplace struct place place;
	int r = place_open(req, parent, name, &place);

	if (r == 0)
		r = judge_making(&place, S_IFDIR);
	if (r == 0 && mkdirat(place.dir_fd, name, mode & 01777) < 0)
		r = -errno;
	if (r < 0)
		lens_reply_err(req, -r);
	else
		reply_made(req, &place);
}

void lens_op_symlink(fuse_req_t req, const char *target, fuse_ino_t parent, const char *name)
{
	autoplace struct place place;
	int r = place_open(req, parent, name, &place);

	/* Where the link leads is judged whenever it is followed; now we judge only its name. */
	if (r == 0)
		r = judge_making(&place, S_IFLNK);
	if (r == 0 && cordon_policy_in_git_dir(place.lens->policy, place.path)) {
		lens_report_change(place.lens, CORDON_LENS_OP_CREATE, place.path);
		r = -EACCES;
	}
	if (r == 0 && symlinkat(target, place.dir_fd, name) < 0)
		r = -errno;
	if (r < 0)
		lens_reply_err(req, -r);
	else
		reply_made(req, &place);
}

void lens_op_link(fuse_req_t req, fuse_ino_t ino, fuse_ino_t parent, const char *name)
{
	autoplace struct place place;
	struct lens_node *node = lens_node(fuse_req_userdata(req), ino);
	autofd int fd = -1;
	int r = place_open(req, parent, name, &place);

	if (r == 0) {
		r = lens_judge_change(place.lens, place.path, false, LENS_CREATE);
		if (r < 0)
			lens_report_change(place.lens, CORDON_LENS_OP_CREATE, place.path);
	}
	if (r == 0) {
		/* Both names must be writable: a second, writable name would make a read-only file writable. */
		fd = lens_open_to_change(place.lens, node);
		r = fd < 0 ? fd : S_ISDIR(node->type) ? -EPERM : 0;
		if (r == 0 && S_ISLNK(node->type) && cordon_policy_in_git_dir(place.lens->policy, place.path))
			r = -EACCES;
	}
	if (r == 0) {
		char source[32];

		(void)snprintf(source, sizeof(source), "/proc/self/fd/%d", fd);
		if (linkat(AT_FDCWD, source, place.dir_fd, name, AT_SYMLINK_FOLLOW) < 0)
			r = -errno;
	}
	if (r < 0) {
		lens_reply_err(req, -r);
		return;
	}
	/* In a view the new name may show another number than the old one; it is the same file. */
	if (!lens_name_find(place.lens, place.dir, name))
		lens_name_add(place.lens, node, place.dir, name);
	reply_made(req, &place);
}

int lens_pin(struct lens *lens, struct lens_node *parent, int dir_fd, const char *name)
{
	const struct lens_name *known = lens_name_find(lens, parent, name);
	autofd int fd = -1;
	struct statx stx;

	if (!known || !known->node->lookups || known->node->names != known || known->next)
		return -1;
	fd = openat(dir_fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || lens_stat(fd, "", &stx) < 0)
		return -1;
	return lens_node_is(known->node, &stx) ? cordon_steal_fd(&fd) : -1;
}

static void reply_removed(fuse_req_t req, const struct place *place, int pin_fd)
{
	struct lens *lens = place->lens;
	struct lens_name *known = lens_name_find(lens, place->dir, place->name);
	struct lens_temp_name *temp = lens_temp_name_find(lens, place->dir, place->name);

	lens_recent_drop(lens, known ? known->node : NULL);
	lens_listing_drop(lens, place->dir);
	if (temp)
		lens_temp_name_drop(lens, temp);
	if (known)
		lens_name_drop(lens, known, pin_fd);
	else
		cordon_closep(&pin_fd);
	fuse_reply_err(req, 0);
}

static int judge_removing(const struct place *place, bool directory)
{
	int r = lens_judge_change(place->lens, place->path, directory, LENS_REMOVE);

	if (r == 0 || (lens_temp_name_find(place->lens, place->dir, place->name) &&
		       lens_rights(place->lens, place->dir, place->dir_fd, place->name) == LENS_WRITE))
		return 0;
	lens_report_change(place->lens, CORDON_LENS_OP_DELETE, place->path);
	return r;
}

static void remove_name(fuse_req_t req, fuse_ino_t parent, const char *name, bool directory)
{
	autoplace struct place place;
	autofd int pin_fd = -1;
	int r = place_open(req, parent, name, &place);

	if (r == 0)
		r = judge_removing(&place, directory);
	if (r == 0) {
		pin_fd = lens_pin(place.lens, place.dir, place.dir_fd, name);
		if (unlinkat(place.dir_fd, name, directory ? AT_REMOVEDIR : 0) < 0)
			r = -errno;
	}
	if (r < 0)
		lens_reply_err(req, -r);
	else
		reply_removed(req, &place, cordon_steal_fd(&pin_fd));
}

void lens_op_unlink(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	remove_name(req, parent, name, false);
}

void lens_op_rmdir(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	remove_name(req, parent, name, true);
}
