/* SPDX-License-Identifier: Apache-2.0 */
/* Requests to cordon-lens that list directories: what is granted, what leads to it, and the run's own temporary
 * names. */
#include <dirent.h>
#include <fcntl.h>
#include <sys/syscall.h>

#include "lens/lens.h"

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
		int r = lens_lookup(lens, fuse_req_ctx(req), node, fd, entry->name, &param);

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
