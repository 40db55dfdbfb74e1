/* SPDX-License-Identifier: Apache-2.0 */
/* Requests to cordon-lens that rename: both names are judged, in every variant of the call. */
#include <fcntl.h>
#include <stdio.h>

#include "base/move_dir.h"
#include "lens/lens.h"

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
	return r;
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

	if (r == 0)
		return brings_link(lens, from, end, type) ? -EXDEV : 0;
	if (S_ISREG(type) && (end->temp || (!end->exists && lens_path(lens, end->dir, dir_path) == 0 &&
					    lens_temp_name_shape(lens, dir_path, end->dir_fd, end->name, false)))) {
		end->becomes_temp = true;
		return 0;
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

/* Renames. *ret_moved says that what has the new name is another directory, with what the old one had in it: overlayfs does
 * not rename its lower directories. */
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
		pin_fd = lens_pin(lens, to.dir, to.dir_fd, to_name);
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
	if (exchange)
		exchange_names(lens, &from, &to);
	else
		move_name(lens, &from, &to, cordon_steal_fd(&pin_fd));
	if (moved && lens_name_find(lens, to.dir, to_name))
		lens_node_renumber(lens, lens_name_find(lens, to.dir, to_name)->node);
	fuse_reply_err(req, 0);
}
