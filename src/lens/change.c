/* SPDX-License-Identifier: Apache-2.0 */
/* Requests to cordon-lens that make, remove or rename names. */
#include <fcntl.h>
#include <stdio.h>

#include "base/move_dir.h"
#include "lens/lens.h"

/* A directory that was opened to change one of its names, and the path by which we judge that change. */
struct place {
	struct lens *lens;
	struct lens_node *dir;
	const char *name;
	int dir_fd;
	char path[CORDON_PATH_MAX];
	bool temp;   /* allowed only as a temporary name */
	int made_fd; /* what was made, where that has a descriptor; or -1. Not closed by place_done(). */
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
	ret->made_fd = -1;
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
	int r = lens_judge_change(lens, place->path, S_ISDIR(type), S_ISDIR(type) ? LENS_MAKE_DIR : LENS_CREATE);
	char dir_path[CORDON_PATH_MAX], boundary[NAME_MAX + 1];

	if (r < 0 && ((!S_ISREG(type) && !S_ISLNK(type)) || lens_path(lens, place->dir, dir_path) < 0 ||
		      !lens_temp_name_shape(lens, dir_path, place->dir_fd, place->name, S_ISLNK(type)))) {
		lens_report_change(lens, CORDON_LENS_OP_CREATE, place->path);
		return r;
	}
	/* Who makes the name first would have the file that the host writes and renames. */
	if (lens_temp_of_boundary(lens, place->dir_fd, place->path, boundary))
		return lens_report_beside(lens, CORDON_LENS_OP_CREATE, place->path, boundary);
	place->temp = r < 0;
	return 0;
}

/* Fills in the entry of what was made. Records a temporary name first. */
static int entry_made(fuse_req_t req, const struct place *place, struct fuse_entry_param *ret)
{
	struct lens *lens = place->lens;
	struct statx stx;
	int r = place->made_fd >= 0 ? lens_stat(place->made_fd, "", &stx) : lens_stat(place->dir_fd, place->name, &stx);

	lens_listing_drop(lens, place->dir);
	if (r == 0)
		lens_known_made(lens, place->path, &stx);
	if (place->temp) {
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
	place.made_fd = fd;
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
	autofd int fd = -1;
	int r = place_open(req, parent, name, &place);

	(void)rdev;
	if (r == 0 && !S_ISREG(mode) && !S_ISFIFO(mode) && !S_ISSOCK(mode))
		r = -EPERM;
	if (r == 0)
		r = judge_making(&place, mode);
	if (r == 0 && S_ISREG(mode)) {
		fd = openat(place.dir_fd, name, O_CREAT | O_EXCL | O_WRONLY | O_NOFOLLOW | O_CLOEXEC, mode & 01777);
		r = fd < 0 ? -errno : 0;
		place.made_fd = fd;
	} else if (r == 0 && mknodat(place.dir_fd, name, mode & (S_IFMT | 01777), 0) < 0)
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

/* A second name would keep the file that the host writes under a temporary name of a boundary. */
static int judge_linked(struct lens *lens, const struct lens_node *node)
{
	for (const struct lens_name *name = node->names; name; name = name->next) {
		autofd int dir_fd = lens_open_node(lens, name->parent, false);
		char path[CORDON_PATH_MAX], boundary[NAME_MAX + 1];

		if (dir_fd < 0)
			return dir_fd;
		if (lens_path_below(lens, name->parent, name->text, path) == 0 &&
		    lens_temp_of_boundary(lens, dir_fd, path, boundary))
			return lens_report_beside(lens, CORDON_LENS_OP_CREATE, path, boundary);
	}
	return 0;
}

void lens_op_link(fuse_req_t req, fuse_ino_t ino, fuse_ino_t parent, const char *name)
{
	autoplace struct place place;
	struct lens_node *node = lens_node(fuse_req_userdata(req), ino);
	char boundary[NAME_MAX + 1];
	autofd int fd = -1;
	int r = place_open(req, parent, name, &place);

	if (r == 0) {
		r = lens_judge_change(place.lens, place.path, false, LENS_CREATE);
		if (r < 0)
			lens_report_change(place.lens, CORDON_LENS_OP_CREATE, place.path);
		else if (lens_temp_of_boundary(place.lens, place.dir_fd, place.path, boundary))
			r = lens_report_beside(place.lens, CORDON_LENS_OP_CREATE, place.path, boundary);
	}
	if (r == 0)
		r = judge_linked(place.lens, node);
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
	place.made_fd = fd;
	reply_made(req, &place);
}

/* Called before a name is removed: returns an O_PATH descriptor of its node if the kernel still refers to it, else
 * -1. */
static int pin(struct lens *lens, struct lens_node *parent, int dir_fd, const char *name)
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

static int judge_removing(const struct place *place, bool directory, struct statx *ret)
{
	int r = lens_judge_change(place->lens, place->path, directory, directory ? LENS_REMOVE_DIR : LENS_REMOVE);
	char boundary[NAME_MAX + 1];

	if (r == 0) {
		r = lens_stat(place->dir_fd, place->name, ret);
		if (r < 0)
			return r;
		if (lens_temp_of_boundary(place->lens, place->dir_fd, place->path, boundary))
			return lens_report_beside(place->lens, CORDON_LENS_OP_DELETE, place->path, boundary);
		return lens_known(place->lens, place->path, ret)
			       ? 0
			       : lens_report_beside(place->lens, CORDON_LENS_OP_DELETE, place->path, NULL);
	}
	if (lens_temp_name_find(place->lens, place->dir, place->name) &&
	    lens_rights(place->lens, place->dir, place->dir_fd, place->name) == LENS_WRITE)
		return 0;
	lens_report_change(place->lens, CORDON_LENS_OP_DELETE, place->path);
	return r;
}

static void remove_name(fuse_req_t req, fuse_ino_t parent, const char *name, bool directory)
{
	autoplace struct place place;
	autofd int pin_fd = -1;
	struct statx stx = { 0 };
	int r = place_open(req, parent, name, &place);

	if (r == 0)
		r = judge_removing(&place, directory, &stx);
	if (r == 0) {
		pin_fd = pin(place.lens, place.dir, place.dir_fd, name);
		if (unlinkat(place.dir_fd, name, directory ? AT_REMOVEDIR : 0) < 0)
			r = -errno;
	}
	if (r == 0 && (directory || stx.stx_nlink == 1)) {
		struct lens_id id = lens_id_of(&stx);

		lens_known_drop(place.lens, &id);
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

/* ---- renames ---- */

/* One end of a rename. */
struct end {
	struct lens_node *dir;
	const char *name;
	int dir_fd;
	bool exists;
	struct statx stx;
	char path[CORDON_PATH_MAX];
	struct lens_temp_name *temp; /* it is a temporary name of this run */
	bool becomes_temp;	     /* it may become one */
};

static void end_done(struct end *end)
{
	cordon_closep(&end->dir_fd);
}

#define autoend CORDON_CLEANUP(end_done)

static int end_open(struct lens *lens, fuse_ino_t dir, const char *name, struct end *ret)
{
	int r;

	*ret = (struct end){ .dir = lens_node(lens, dir), .name = name, .dir_fd = -1 };
	ret->dir_fd = lens_open_node(lens, ret->dir, false);
	if (ret->dir_fd < 0)
		return ret->dir_fd;
	r = lens_path_below(lens, ret->dir, name, ret->path);
	if (r < 0)
		return r;
	r = lens_stat(ret->dir_fd, name, &ret->stx);
	if (r < 0 && r != -ENOENT)
		return r;
	ret->exists = r == 0;
	if (ret->exists) {
		struct lens_id id = lens_id_of(&ret->stx);

		ret->temp = lens_temp_name_find_file(lens, ret->dir, name, &id);
	}
	return 0;
}

/* Beside a boundary only what is known moves or is replaced, and no temporary name of the boundary comes or goes. */
static int judge_beside(struct lens *lens, const struct end *end)
{
	char boundary[NAME_MAX + 1];

	if (lens_temp_of_boundary(lens, end->dir_fd, end->path, boundary))
		return lens_report_beside(lens, CORDON_LENS_OP_RENAME, end->path, boundary);
	if (end->exists && !lens_known(lens, end->path, &end->stx))
		return lens_report_beside(lens, CORDON_LENS_OP_RENAME, end->path, NULL);
	return 0;
}

/* Whether the file at this end may be moved away. */
static int judge_leaving(struct lens *lens, const struct end *end)
{
	int r;

	if (end->temp)
		return 0;
	/* A missing name is not reported. */
	r = lens_judge_change(lens, end->path, !end->exists || S_ISDIR(end->stx.stx_mode), LENS_REMOVE);
	if (r < 0 && end->exists)
		lens_report_change(lens, CORDON_LENS_OP_RENAME, end->path);
	return r == 0 && end->exists ? judge_beside(lens, end) : r;
}

/* INVARIANT: no link comes into a git directory, and no directory that may have one in it. */
static bool brings_link(const struct lens *lens, const struct end *from, const struct end *to, mode_t type)
{
	return cordon_policy_in_git_dir(lens->policy, to->path) &&
	       (S_ISLNK(type) || (S_ISDIR(type) && !cordon_policy_in_git_dir(lens->policy, from->path)));
}

/* Whether something of the given type may be moved to this end, in place of what is there. */
static int judge_coming(struct lens *lens, const struct end *from, struct end *end, mode_t type)
{
	char dir_path[CORDON_PATH_MAX];
	int r = lens_judge_change(lens, end->path, S_ISDIR(type), end->exists ? LENS_REMOVE : LENS_CREATE);

	if (r == 0) {
		r = judge_beside(lens, end);
		return r == 0 && brings_link(lens, from, end, type) ? -EXDEV : r;
	}
	if (S_ISREG(type) && (end->temp || (!end->exists && lens_path(lens, end->dir, dir_path) == 0 &&
					    lens_temp_name_shape(lens, dir_path, end->dir_fd, end->name, false)))) {
		end->becomes_temp = true;
		return judge_beside(lens, end);
	}
	lens_report_change(lens, CORDON_LENS_OP_RENAME, end->path);
	return r;
}

static int judge(struct lens *lens, struct end *from, struct end *to, bool exchange)
{
	int r = judge_leaving(lens, from);

	if (r < 0)
		return r;
	if (!from->exists)
		return -ENOENT;
	if (exchange && (from->temp || to->temp)) {
		lens_report_change(lens, CORDON_LENS_OP_RENAME, from->temp ? from->path : to->path);
		return -EACCES;
	}
	r = judge_coming(lens, from, to, from->stx.stx_mode);
	if (r == 0 && S_ISDIR(from->stx.stx_mode))
		r = lens_judge_move(lens, from->dir_fd, from->name, from->path, to->path);
	if (r < 0 || !exchange)
		return r;
	if (!to->exists)
		return -ENOENT;
	r = judge_leaving(lens, to);
	if (r == 0)
		r = judge_coming(lens, to, from, to->stx.stx_mode);
	if (r == 0 && from->becomes_temp)
		r = -EACCES;
	if (r == 0 && S_ISDIR(to->stx.stx_mode))
		r = lens_judge_move(lens, to->dir_fd, to->name, to->path, from->path);
	return r;
}

/* Moves the node from one name to the other. Without memory for the new name the kernel looks it up again. */
static void move_name(struct lens *lens, const struct end *from, const struct end *to, int pin_fd)
{
	struct lens_name *old = lens_name_find(lens, to->dir, to->name);
	struct lens_name *moved = lens_name_find(lens, from->dir, from->name);
	struct lens_node *node = moved ? moved->node : NULL;

	if (old && old->node == node) {
		/* Two names of one file: renaming one over the other does nothing. */
		cordon_closep(&pin_fd);
		return;
	}
	if (old)
		lens_name_drop(lens, old, cordon_steal_fd(&pin_fd));
	cordon_closep(&pin_fd);
	if (!node)
		return;
	if (lens_name_add(lens, node, to->dir, to->name) == 0)
		lens_name_drop(lens, moved, -1);
	else
		lens_monitor_drop_later(lens, node);
}

static void exchange_names(struct lens *lens, const struct end *from, const struct end *to)
{
	struct lens_name *a = lens_name_find(lens, from->dir, from->name);
	struct lens_name *b = lens_name_find(lens, to->dir, to->name);
	struct lens_node *node_a = a ? a->node : NULL, *node_b = b ? b->node : NULL;

	if (node_a == node_b)
		return;
	if (node_a && lens_name_add(lens, node_a, to->dir, to->name) < 0)
		lens_monitor_drop_later(lens, node_a);
	if (node_b && lens_name_add(lens, node_b, from->dir, from->name) < 0)
		lens_monitor_drop_later(lens, node_b);
	if (a)
		lens_name_drop(lens, a, -1);
	if (b)
		lens_name_drop(lens, b, -1);
}

static int record_temp_name(struct lens *lens, const struct end *from, const struct end *to)
{
	struct lens_id id = lens_id_of(&from->stx);

	/* This happens before the rename, so that no temporary name is ever without a record. */
	return to->becomes_temp && !to->temp ? lens_temp_name_add(lens, to->dir, to->name, &id) : 0;
}

/* Renames. *ret_moved: what has the new name is another directory, with what the old one had in it: overlayfs
 * does not rename its lower directories. */
static int rename_entry(struct lens *lens, const struct end *from, const struct end *to, unsigned int flags,
			bool *ret_moved)
{
	bool too_large = false;
	struct statx stx;
	int r = cordon_move_dir(from->dir_fd, from->name, to->dir_fd, to->name, flags, &too_large);

	if (r == 0 && S_ISDIR(from->stx.stx_mode) && lens_stat(to->dir_fd, to->name, &stx) == 0) {
		struct lens_id was = lens_id_of(&from->stx), is = lens_id_of(&stx);

		*ret_moved = !(flags & RENAME_EXCHANGE) && !lens_id_equal(&was, &is);
	}
	if (too_large)
		lens_report_too_large(lens, from->path);
	return r;
}

/* The run brought in what it moved; what it replaced is gone. */
static void remember(struct lens *lens, const struct end *from, const struct end *to, bool exchange)
{
	struct lens_id was = lens_id_of(&from->stx), replaced = lens_id_of(&to->stx);

	if (!exchange && to->exists && to->stx.stx_nlink == 1 && !lens_id_equal(&was, &replaced))
		lens_known_drop(lens, &replaced);
	lens_known_made(lens, to->path, &from->stx);
	if (exchange)
		lens_known_made(lens, from->path, &to->stx);
}

void lens_op_rename(fuse_req_t req, fuse_ino_t parent, const char *name, fuse_ino_t to_parent, const char *to_name,
		    unsigned int flags)
{
	struct lens *lens = fuse_req_userdata(req);
	bool exchange = flags & RENAME_EXCHANGE;
	autoend struct end from = { .dir_fd = -1 }, to = { .dir_fd = -1 };
	autofd int pin_fd = -1;
	bool moved = false;
	int r = flags & ~(unsigned int)(RENAME_EXCHANGE | RENAME_NOREPLACE) ? -EINVAL : 0;

	if (r == 0)
		r = end_open(lens, parent, name, &from);
	if (r == 0)
		r = end_open(lens, to_parent, to_name, &to);
	if (r == 0)
		r = judge(lens, &from, &to, exchange);
	if (r == 0)
		r = record_temp_name(lens, &from, &to);
	if (r == 0 && !exchange)
		pin_fd = pin(lens, to.dir, to.dir_fd, to_name);
	if (r == 0 && (r = rename_entry(lens, &from, &to, flags, &moved)) < 0) {
		if (to.becomes_temp && !to.temp)
			lens_temp_name_drop(lens, lens_temp_name_find(lens, to.dir, to_name));
	}
	if (r < 0) {
		lens_reply_err(req, -r);
		return;
	}
	lens_recent_drop(lens, NULL); /* a directory may have moved, and the paths below it changed */
	lens_listing_drop(lens, from.dir);
	lens_listing_drop(lens, to.dir);
	if (from.temp)
		lens_temp_name_drop(lens, from.temp);
	if (to.temp && to.becomes_temp)
		to.temp->id = lens_id_of(&from.stx);
	else if (to.temp)
		lens_temp_name_drop(lens, to.temp);
	remember(lens, &from, &to, exchange);
	if (exchange)
		exchange_names(lens, &from, &to);
	else
		move_name(lens, &from, &to, cordon_steal_fd(&pin_fd));
	if (moved && lens_name_find(lens, to.dir, to_name))
		lens_node_renumber(lens, lens_name_find(lens, to.dir, to_name)->node);
	fuse_reply_err(req, 0);
}
