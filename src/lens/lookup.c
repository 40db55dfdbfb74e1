/* SPDX-License-Identifier: Apache-2.0 */
/* Looking up names: the place where the policy decides whether something exists for the run. */
#include <fcntl.h>

#include "lens/lens.h"

/* The text of the link that `stx` saw under the name; -ESTALE when it was exchanged since. */
static int read_link(int dir_fd, const char *name, char ret[static CORDON_PATH_MAX])
{
	ssize_t n = readlinkat(dir_fd, name, ret, CORDON_PATH_MAX - 1);

	if (n < 0)
		return errno == EINVAL ? -ESTALE : -errno;
	ret[n] = '\0';
	return 0;
}

/* Rights of something that exists. A link out of scope by its name is judged by what it resolves to. */
static enum lens_rights rights_of(struct lens *lens, struct lens_node *parent, int dir_fd, const char *name,
				  const char *path, const struct statx *stx)
{
	enum lens_rights rights = lens_judge(lens, path);
	struct lens_id id = lens_id_of(stx);
	char target[CORDON_PATH_MAX];

	if (rights < LENS_WRITE && lens_temp_find_file(lens, parent, name, &id))
		return LENS_WRITE;
	if (rights >= LENS_READ || S_ISDIR(stx->stx_mode))
		return rights;
	if (S_ISLNK(stx->stx_mode) && !lens_judge_forbidden(lens, path) && read_link(dir_fd, name, target) == 0 &&
	    lens_judge_link(lens, path, target))
		return LENS_READ;
	return LENS_HIDDEN;
}

enum lens_rights lens_rights(struct lens *lens, struct lens_node *parent, int dir_fd, const char *name)
{
	char path[CORDON_PATH_MAX];
	struct statx stx;

	if (lens_path_below(lens, parent, name, path) < 0 || lens_stat(dir_fd, name, &stx) < 0)
		return LENS_HIDDEN;
	return rights_of(lens, parent, dir_fd, name, path, &stx);
}

/* Has a new directory's changes reported before anything of it is told: what `stx` says is looked at again. */
static void watch_directory(struct lens *lens, struct lens_node *node, int dir_fd, const char *name, struct statx *stx)
{
	autofd int fd = -1;
	struct statx found;
	struct lens_id id;

	if (node->mark || lens->watch_fd < 0)
		return;
	fd = openat(dir_fd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || lens_stat(fd, "", &found) < 0)
		return;
	id = lens_id_of(&found);
	if (!lens_id_equal(&id, &node->id))
		return;
	lens_notice_watch(lens, node, fd);
	if (lens_stat(fd, "", &found) == 0)
		*stx = found;
}

static int make_entry(struct lens *lens, const struct fuse_ctx *ctx, struct lens_node *parent, int dir_fd,
		      const char *name, struct statx *stx, enum lens_rights rights, struct fuse_entry_param *ret)
{
	bool writable = rights == LENS_WRITE;
	struct lens_node *node = lens_node_take(lens, parent, name, stx, writable);
	double entry_timeout = parent->mark ? LENS_BELIEVE : LENS_DOUBT;

	if (!node)
		return -ENOMEM;
	if (S_ISDIR(node->type))
		watch_directory(lens, node, dir_fd, name, stx);
	*ret = (struct fuse_entry_param){
		.ino = lens_ino(lens, node),
		.generation = node->generation,
		.attr_timeout = lens_attr_told(lens, node, stx),
		/* Where the attributes are asked for soon, the name is instead: the answer serves for both, and a mode
		 * that is told with it counts even when the content must be dropped. */
		.entry_timeout = node->doubted ? LENS_DOUBT : entry_timeout,
	};
	lens_attr(lens, ctx, dir_fd, name, stx, writable, &ret->attr);
	return 0;
}

int lens_lookup(struct lens *lens, const struct fuse_ctx *ctx, struct lens_node *parent, int dir_fd, const char *name,
		struct fuse_entry_param *ret)
{
	char path[CORDON_PATH_MAX], dir_path[CORDON_PATH_MAX];
	enum lens_rights rights;
	struct statx stx;
	int r = lens_path_below(lens, parent, name, path);

	if (r < 0)
		return r;
	r = lens_stat(dir_fd, name, &stx);
	if (r == 0) {
		rights = rights_of(lens, parent, dir_fd, name, path, &stx);
		/* What is mounted below the root on the host is not part of the tree. */
		if (rights == LENS_HIDDEN || (stx.stx_attributes & STATX_ATTR_MOUNT_ROOT))
			return -EACCES;
		return make_entry(lens, ctx, parent, dir_fd, name, &stx, rights, ret);
	}
	if (r != -ENOENT)
		return r;
	/* A missing name is told only where the run may know it, or make it: as a file, as a directory that leads to
	 * files, or as a temporary name. */
	if (lens_judge(lens, path) >= LENS_READ || lens_judge_leads_write(lens, path))
		return -ENOENT;
	if (lens_path(lens, parent, dir_path) == 0 && lens_temp_shape(lens, dir_path, dir_fd, name, false))
		return -ENOENT;
	return -EACCES;
}

int lens_entry_made(struct lens *lens, const struct fuse_ctx *ctx, struct lens_node *parent, int dir_fd,
		    const char *name, struct fuse_entry_param *ret)
{
	char path[CORDON_PATH_MAX];
	struct statx stx;
	int r = lens_path_below(lens, parent, name, path);

	if (r < 0)
		return r;
	r = lens_stat(dir_fd, name, &stx);
	if (r < 0)
		return r;
	return make_entry(lens, ctx, parent, dir_fd, name, &stx, rights_of(lens, parent, dir_fd, name, path, &stx), ret);
}

void lens_op_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	struct lens *lens = fuse_req_userdata(req);
	struct lens_node *dir = lens_node(lens, parent);
	int dir_fd = lens_open_recent(lens, dir);
	struct fuse_entry_param entry = { 0 };
	int r = dir_fd < 0 ? dir_fd : lens_lookup(lens, fuse_req_ctx(req), dir, dir_fd, name, &entry);

	if (r == -ENOENT) {
		/* The kernel may remember that it is missing; its coming is reported. */
		entry = (struct fuse_entry_param){ .entry_timeout = dir->mark ? LENS_BELIEVE : 0 };
		r = 0;
	}
	if (r < 0)
		fuse_reply_err(req, -r);
	else
		lens_reply_entry(req, &entry);
}

void lens_reply_entry(fuse_req_t req, const struct fuse_entry_param *entry)
{
	struct lens *lens = fuse_req_userdata(req);

	/* Nobody took the answer: then nobody will forget the node either. */
	if (fuse_reply_entry(req, entry) < 0 && entry->ino)
		lens_node_forget(lens, lens_node(lens, entry->ino), 1);
}

void lens_op_forget(fuse_req_t req, fuse_ino_t ino, uint64_t lookups)
{
	struct lens *lens = fuse_req_userdata(req);

	lens_node_forget(lens, lens_node(lens, ino), lookups);
	fuse_reply_none(req);
}

void lens_op_forget_multi(fuse_req_t req, size_t n, struct fuse_forget_data *forgets)
{
	struct lens *lens = fuse_req_userdata(req);

	for (size_t i = 0; i < n; i++)
		lens_node_forget(lens, lens_node(lens, forgets[i].ino), forgets[i].nlookup);
	fuse_reply_none(req);
}

static int link_target(struct lens *lens, struct lens_node *node, char ret[static CORDON_PATH_MAX])
{
	autofd int fd = lens_open_node(lens, node, false);
	char path[CORDON_PATH_MAX];
	int r = fd < 0 ? fd : read_link(fd, "", ret);

	if (r < 0 || !node->names)
		return r;
	/* Judged under each of its names: a relative link means something else in another directory. */
	for (const struct lens_name *name = node->names; name; name = name->next) {
		r = lens_path_below(lens, name->parent, name->text, path);
		if (r < 0)
			return r;
		if (!lens_temp_find_file(lens, name->parent, name->text, &node->id) && !lens_judge_link(lens, path, ret))
			return -EACCES;
	}
	return 0;
}

void lens_op_readlink(fuse_req_t req, fuse_ino_t ino)
{
	struct lens *lens = fuse_req_userdata(req);
	char target[CORDON_PATH_MAX];
	int r = link_target(lens, lens_node(lens, ino), target);

	if (r < 0)
		fuse_reply_err(req, -r);
	else
		fuse_reply_readlink(req, target);
}
