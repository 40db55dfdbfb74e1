/* SPDX-License-Identifier: Apache-2.0 */
/* Requests to cordon-lens that look up and list names. Here the policy decides whether a file exists for the run. */
#include <dirent.h>
#include <fcntl.h>
#include <sys/syscall.h>

#include "base/path.h"
#include "lens/lens.h"

/* Reads the text of a link; -ESTALE when it is no link any more. */
static int read_link(int dir_fd, const char *name, char ret[static CORDON_PATH_MAX])
{
	ssize_t n = readlinkat(dir_fd, name, ret, CORDON_PATH_MAX - 1);

	if (n < 0)
		return errno == EINVAL ? -ESTALE : -errno;
	ret[n] = '\0';
	return 0;
}

/* The rights of something that exists. A link that is out of scope by its name is judged by what it resolves to. */
static enum lens_rights rights_of(struct lens *lens, struct lens_node *parent, int dir_fd, const char *name,
				  const char *path, const struct statx *stx)
{
	enum lens_rights rights = lens_judge(lens, path);
	struct lens_id id = lens_id_of(stx);
	char target[CORDON_PATH_MAX];

	if (rights < LENS_WRITE && lens_temp_name_find_file(lens, parent, name, &id))
		return LENS_WRITE;
	/* What the host made beside a boundary may be read. In a directory each name is judged for itself. */
	if (rights == LENS_WRITE && !S_ISDIR(stx->stx_mode) && !lens_known(lens, path, stx))
		return LENS_READ;
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

/* Has fanotify report the changes of a directory before the kernel learns anything of it. So `stx` is read again
 * afterwards. */
static void mark_directory(struct lens *lens, struct lens_node *node, int dir_fd, const char *name, struct statx *stx)
{
	autofd int fd = -1;
	struct statx found;

	if (node->mark || lens->fanotify_fd < 0)
		return;
	fd = openat(dir_fd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || lens_stat(fd, "", &found) < 0)
		return;
	if (!lens_node_is(node, &found))
		return;
	lens_monitor_mark(lens, node, fd);
	if (lens_stat(fd, "", &found) == 0)
		*stx = found;
}

static int make_entry(struct lens *lens, const struct fuse_ctx *ctx, struct lens_node *parent, int dir_fd,
		      const char *name, struct statx *stx, enum lens_rights rights, struct fuse_entry_param *ret)
{
	bool writable = rights == LENS_WRITE;
	struct lens_node *node = lens_node_take(lens, parent, name, stx, writable);
	double entry_timeout = parent->mark ? LENS_VALID_LONG : LENS_VALID_SHORT;

	if (!node)
		return -ENOMEM;
	if (S_ISDIR(node->type))
		mark_directory(lens, node, dir_fd, name, stx);
	*ret = (struct fuse_entry_param){
		.ino = lens_ino(lens, node),
		.generation = node->generation,
		.attr_timeout = lens_attr_valid_for(lens, node, stx),
		/* Where the attributes are valid for a short time only, the name is too. Then the kernel asks for
		 * the name, and this one answer gives it both; it uses the mode in such an answer even when it must
		 * drop the content. */
		.entry_timeout = node->unmonitored ? LENS_VALID_SHORT : entry_timeout,
	};
	lens_attr(lens, ctx, dir_fd, name, stx, writable, &ret->attr);
	return 0;
}

/* Judges and looks up one name of an open directory, and counts a lookup. Returns 0, -ENOENT for a name that may be
 * made, or the refusal. */
static int lookup(struct lens *lens, const struct fuse_ctx *ctx, struct lens_node *parent, int dir_fd, const char *name,
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
		/* A file system that the host mounted below the root is not part of the tree. */
		if (rights == LENS_HIDDEN || (stx.stx_attributes & STATX_ATTR_MOUNT_ROOT))
			return -EACCES;
		return make_entry(lens, ctx, parent, dir_fd, name, &stx, rights, ret);
	}
	if (r != -ENOENT)
		return r;
	/* We admit that a name is missing only where the run may know it or make it: as a file, as a directory that
	 * leads to files, or as a temporary name. */
	if (lens_judge(lens, path) >= LENS_READ || lens_judge_leads_write(lens, path))
		return -ENOENT;
	if (lens_path(lens, parent, dir_path) == 0 && lens_temp_name_shape(lens, dir_path, dir_fd, name, false))
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

/* Whether a look-up ended with EACCES because of the policy, and not because of the host's own permissions. Then it
 * is reported, and the answer waits. */
static bool refused_by_policy(fuse_req_t req, struct lens_node *dir, int dir_fd, const char *name)
{
	struct lens *lens = fuse_req_userdata(req);
	char path[CORDON_PATH_MAX];
	struct statx stx;
	int r = lens_stat(dir_fd, name, &stx);

	if ((r < 0 && r != -ENOENT) || lens_path_below(lens, dir, name, path) < 0)
		return false;
	return lens_report_lookup(req, name, path, r == 0);
}

static void look_up(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	struct lens *lens = fuse_req_userdata(req);
	struct lens_node *dir = lens_node(lens, parent);
	int dir_fd = lens_open_recent(lens, dir);
	struct fuse_entry_param entry = { 0 };
	int r = dir_fd < 0 ? dir_fd : lookup(lens, fuse_req_ctx(req), dir, dir_fd, name, &entry);

	if (r == -ENOENT) {
		/* The kernel may remember that the name is missing where fanotify reports that it appears. */
		entry = (struct fuse_entry_param){ .entry_timeout = dir->mark ? LENS_VALID_LONG : 0 };
		r = 0;
	}
	if (r == -EACCES && dir_fd >= 0 && refused_by_policy(req, dir, dir_fd, name))
		return;
	if (r < 0)
		fuse_reply_err(req, -r);
	else
		lens_reply_entry(req, &entry);
}

void lens_op_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	const struct lens *lens = fuse_req_userdata(req);
	uint64_t begun = lens->meter ? cordon_meter_now() : 0;

	look_up(req, parent, name);
	if (lens->meter)
		cordon_histogram_add(&lens->meter->lookup, cordon_meter_now() - begun);
}

void lens_reply_entry(fuse_req_t req, const struct fuse_entry_param *entry)
{
	struct lens *lens = fuse_req_userdata(req);

	/* The kernel did not take the answer, so it will not send a FORGET for the node either. */
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

/* Reads the text of a link and judges where it leads. When that is refused, `ret_refused` is the path of the link. */
static int link_target(struct lens *lens, struct lens_node *node, char ret[static CORDON_PATH_MAX],
		       char ret_refused[static CORDON_PATH_MAX])
{
	autofd int fd = lens_open_node(lens, node, false);
	int r = fd < 0 ? fd : read_link(fd, "", ret);

	ret_refused[0] = '\0';
	if (r < 0 || !node->names)
		return r;
	/* Judge it under each of its names: a relative link means something else in another directory. */
	for (const struct lens_name *name = node->names; name; name = name->next) {
		r = lens_path_below(lens, name->parent, name->text, ret_refused);
		if (r < 0)
			break;
		if (!lens_temp_name_find_file(lens, name->parent, name->text, &node->id) &&
		    !lens_judge_link(lens, ret_refused, ret))
			return -EACCES;
	}
	ret_refused[0] = '\0';
	return r;
}

/* The link at `path` leads where the run may not go. Reports the place to which it leads. */
static bool refused_to_follow(fuse_req_t req, const char *path, const char *target)
{
	const struct lens *lens = fuse_req_userdata(req);
	struct cordon_resolved resolved;

	if (!lens_judge_resolve(lens, path, target, &resolved) || resolved.place == CORDON_PLACE_UNRESOLVABLE)
		return false;
	return lens_report_lookup(req, cordon_path_base(path), resolved.path, resolved.exists);
}

void lens_op_readlink(fuse_req_t req, fuse_ino_t ino)
{
	struct lens *lens = fuse_req_userdata(req);
	char target[CORDON_PATH_MAX], refused[CORDON_PATH_MAX];
	int r = link_target(lens, lens_node(lens, ino), target, refused);

	if (r == -EACCES && *refused && refused_to_follow(req, refused, target))
		return;
	if (r < 0)
		fuse_reply_err(req, -r);
	else
		fuse_reply_readlink(req, target);
}

/* ---- listing ---- */

/* One entry as getdents64(2) writes it. */
struct entry {
	uint64_t ino;
	int64_t off;
	unsigned short reclen;
	unsigned char type;
	char name[];
};

void lens_listing_drop(struct lens *lens, const struct lens_node *node)
{
	if (lens->listing.node == node)
		lens->listing.node = NULL;
}

/* The entry at offset `off`, from the buffer or from a new read. NULL at the end of the directory, or on an error,
 * which is in *ret_error. */
static const struct entry *entry_at(struct lens *lens, const struct lens_node *node, int fd, off_t off, int *ret_error)
{
	struct lens_listing *listing = &lens->listing;
	ssize_t n;

	*ret_error = 0;
	if (listing->node != node || listing->next != off || listing->at >= listing->end) {
		listing->node = NULL;
		n = lseek(fd, off, SEEK_SET) < 0
			    ? -1
			    : syscall(SYS_getdents64, fd, listing->entries, sizeof(listing->entries));
		if (n <= 0) {
			*ret_error = n < 0 ? -errno : 0;
			return NULL;
		}
		listing->node = node;
		listing->next = off;
		listing->at = 0;
		listing->end = (size_t)n;
	}
	return (const struct entry *)(const void *)(listing->entries + listing->at);
}

static bool is_dot(const char *name)
{
	return name[0] == '.' && (!name[1] || (name[1] == '.' && !name[2]));
}

/* Whether a plain listing shows the entry. Does not stat the entry where its name and type suffice. */
static bool visible(struct lens *lens, struct lens_node *node, int fd, const struct entry *entry)
{
	char path[CORDON_PATH_MAX];
	enum lens_rights rights;

	if (is_dot(entry->name))
		return true;
	if (lens_path_below(lens, node, entry->name, path) < 0)
		return false;
	rights = lens_judge(lens, path);
	if (rights >= LENS_READ || (rights == LENS_LEADS && entry->type == DT_DIR))
		return true;
	if (entry->type != DT_LNK && entry->type != DT_UNKNOWN && !lens_temp_name_find(lens, node, entry->name))
		return false;
	return lens_rights(lens, node, fd, entry->name) != LENS_HIDDEN;
}

static size_t add_plain(fuse_req_t req, struct lens_node *node, int fd, const struct entry *entry, char *at, size_t room)
{
	struct lens *lens = fuse_req_userdata(req);
	struct stat st = { .st_ino = entry->ino, .st_mode = (mode_t)entry->type << 12 };

	if (!visible(lens, node, fd, entry))
		return 0;
	/* The run must not learn the inode number of the directory above the root. */
	if (node == lens->root && cordon_streq(entry->name, ".."))
		st.st_ino = node->id.ino;
	return fuse_add_direntry(req, at, room, entry->name, &st, entry->off);
}

/* Whether the host allows us to list the entry, but not to stat it. */
static bool listed_only(struct lens *lens, struct lens_node *node, int fd, const struct entry *entry)
{
	struct statx stx;

	return lens_stat(fd, entry->name, &stx) == -EACCES && visible(lens, node, fd, entry);
}

static size_t add_plus(fuse_req_t req, struct lens_node *node, int fd, const struct entry *entry, char *at, size_t room)
{
	struct lens *lens = fuse_req_userdata(req);
	struct fuse_entry_param param = { .attr.st_ino = entry->ino, .attr.st_mode = (mode_t)entry->type << 12 };
	size_t need = fuse_add_direntry_plus(req, NULL, 0, entry->name, NULL, 0);

	if (need > room)
		return need;
	if (is_dot(entry->name)) {
		param.attr.st_ino = node->id.ino;
	} else {
		int r = lookup(lens, fuse_req_ctx(req), node, fd, entry->name, &param);

		/* The table is full, or we have no right to search the directory: list the entry without looking it
		 * up. */
		if (r < 0 && r != -ENOMEM && !(r == -EACCES && listed_only(lens, node, fd, entry)))
			return 0;
	}
	return fuse_add_direntry_plus(req, at, room, entry->name, &param, entry->off);
}

static void list(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off,
		 size_t (*add)(fuse_req_t, struct lens_node *, int, const struct entry *, char *, size_t))
{
	struct lens *lens = fuse_req_userdata(req);
	struct lens_node *node = lens_node(lens, ino);
	const struct entry *entry;
	size_t used = 0;
	int fd, r;

	if (size > LENS_REQUEST_MAX)
		size = LENS_REQUEST_MAX;
	if (off == 0) {
		/* A listing from the start shows the directory that now has the name. */
		lens_file_close(lens, node);
		lens_listing_drop(lens, node);
	}
	fd = lens_file(lens, node, 0);
	if (fd < 0) {
		fuse_reply_err(req, -fd);
		return;
	}
	while ((entry = entry_at(lens, node, fd, off, &r)) != NULL) {
		size_t n = add(req, node, fd, entry, lens->bytes + used, size - used);

		if (n > size - used)
			break;
		used += n;
		off = entry->off;
		lens->listing.at += entry->reclen;
		lens->listing.next = off;
	}
	/* fanotify does not report changes of this directory, so the kernel must not keep the list. */
	if (!node->mark)
		lens_monitor_drop_later(lens, node);
	if (r < 0 && used == 0)
		fuse_reply_err(req, -r);
	else
		fuse_reply_buf(req, lens->bytes, used);
}

void lens_op_readdir(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off, struct fuse_file_info *fi)
{
	(void)fi;
	list(req, ino, size, off, add_plain);
}

void lens_op_readdirplus(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off, struct fuse_file_info *fi)
{
	(void)fi;
	list(req, ino, size, off, add_plus);
}

void lens_op_fsyncdir(fuse_req_t req, fuse_ino_t ino, int datasync, struct fuse_file_info *fi)
{
	struct lens *lens = fuse_req_userdata(req);
	int fd = lens_file(lens, lens_node(lens, ino), 0);

	(void)fi;
	if (fd < 0)
		fuse_reply_err(req, -fd);
	else
		fuse_reply_err(req, (datasync ? fdatasync(fd) : fsync(fd)) < 0 ? errno : 0);
}
