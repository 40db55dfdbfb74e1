/* SPDX-License-Identifier: Apache-2.0 */
/* The table of nodes and names of cordon-lens, their paths, and the only function that opens a node. */
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <time.h>

#include "base/path.h"
#include "lens/lens.h"

#define NOT_OF_RUN EKEYREJECTED /* the policy allows it, and known.c does not; no file system answers so */

bool lens_id_equal(const struct lens_id *a, const struct lens_id *b)
{
	return a->ino == b->ino && a->dev == b->dev && a->born == b->born;
}

/*
 * The root is a view of the run, on overlayfs. There a file gets another time of birth when it is first changed, and
 * may get another number later. But nobody else changes the view, so what has a name that we know is the file that we
 * know.
 */
static bool in_view;

bool lens_in_view(void)
{
	return in_view;
}

struct lens_id lens_id_of(const struct statx *stx)
{
	int64_t born = 0;

	if (stx->stx_mask & STATX_BTIME && !in_view)
		born = (int64_t)((uint64_t)stx->stx_btime.tv_sec * 1000000000u + stx->stx_btime.tv_nsec);
	return (struct lens_id){
		.dev = makedev(stx->stx_dev_major, stx->stx_dev_minor),
		.ino = stx->stx_ino,
		.born = born,
	};
}

bool lens_node_is(const struct lens_node *node, const struct statx *stx)
{
	struct lens_id id = lens_id_of(stx);

	return in_view ? node->type == (stx->stx_mode & S_IFMT) : lens_id_equal(&id, &node->id);
}

int lens_stat(int fd, const char *name, struct statx *ret)
{
	int flags = AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT | (*name ? 0 : AT_EMPTY_PATH);

	return statx(fd, name, flags, STATX_BASIC_STATS | STATX_BTIME, ret) < 0 ? -errno : 0;
}

static uint64_t mix(uint64_t h)
{
	h ^= h >> 31;
	h *= 0x9e3779b97f4a7c15u;
	return h ^ (h >> 29);
}

static struct lens_node **id_bucket(const struct lens *lens, const struct lens_id *id)
{
	return &lens->by_id[mix(id->ino * 31 + id->dev) % LENS_BUCKETS];
}

static struct lens_name **name_bucket(const struct lens *lens, const struct lens_node *parent, const char *text)
{
	uint64_t h = mix((uint64_t)(uintptr_t)parent);

	for (const char *p = text; *p; p++)
		h = (h ^ (unsigned char)*p) * 0x100000001b3u;
	return &lens->by_name[mix(h) % LENS_BUCKETS];
}

static struct lens_node *node_new(struct lens *lens, const struct statx *stx, bool writable)
{
	struct lens_node *node = calloc(1, sizeof(*node));

	if (!node)
		return NULL;
	node->id = lens_id_of(stx);
	node->type = stx->stx_mode & S_IFMT;
	node->writable = writable;
	node->generation = ++lens->generation;
	node->pin_fd = -1;
	node->file_fd = -1;
	lens->n_nodes++;
	return node;
}

int lens_nodes_init(struct lens *lens)
{
	struct statx stx;
	struct statfs fs;
	int r = lens_stat(lens->root_fd, "", &stx);

	if (r < 0)
		return r;
	in_view = fstatfs(lens->root_fd, &fs) == 0 && fs.f_type == OVERLAYFS_SUPER_MAGIC;
	if (!S_ISDIR(stx.stx_mode))
		return -ENOTDIR;
	lens->by_id = calloc(LENS_BUCKETS, sizeof(struct lens_node *));
	lens->by_name = calloc(LENS_BUCKETS, sizeof(struct lens_name *));
	lens->root = node_new(lens, &stx, lens_judge(lens, "") == LENS_WRITE);
	if (!lens->by_id || !lens->by_name || !lens->root)
		return -ENOMEM;
	lens->root->lookups = 1;
	return 0;
}

struct lens_node *lens_node(struct lens *lens, fuse_ino_t ino)
{
	return ino == FUSE_ROOT_ID ? lens->root : (struct lens_node *)(uintptr_t)ino;
}

fuse_ino_t lens_ino(const struct lens *lens, const struct lens_node *node)
{
	return node == lens->root ? FUSE_ROOT_ID : (fuse_ino_t)(uintptr_t)node;
}

struct lens_name *lens_name_find(const struct lens *lens, const struct lens_node *parent, const char *text)
{
	for (struct lens_name *name = *name_bucket(lens, parent, text); name; name = name->hash_next)
		if (name->parent == parent && cordon_streq(name->text, text))
			return name;
	return NULL;
}

int lens_name_add(struct lens *lens, struct lens_node *node, struct lens_node *parent, const char *text)
{
	size_t n = strlen(text);
	struct lens_name *name = malloc(sizeof(*name) + n + 1);
	struct lens_name **bucket = name_bucket(lens, parent, text);

	if (!name)
		return -ENOMEM;
	memcpy(name->text, text, n + 1);
	name->parent = parent;
	name->node = node;
	name->next = node->names;
	node->names = name;
	name->hash_next = *bucket;
	*bucket = name;
	parent->children++;
	cordon_closep(&node->pin_fd);
	return 0;
}

/* Removes a node from the table of ids, so that a new file with the same inode number gets a node of its own. */
static void remove_from_table(struct lens *lens, struct lens_node *node)
{
	if (node->gone || node == lens->root)
		return;
	for (struct lens_node **at = id_bucket(lens, &node->id); *at; at = &(*at)->hash_next) {
		if (*at != node)
			continue;
		*at = node->hash_next;
		break;
	}
	node->gone = true;
}

void lens_name_drop(struct lens *lens, struct lens_name *name, int pin_fd)
{
	struct lens_node *node = name->node, *parent = name->parent;

	for (struct lens_name **at = name_bucket(lens, parent, name->text); *at; at = &(*at)->hash_next) {
		if (*at != name)
			continue;
		*at = name->hash_next;
		break;
	}
	for (struct lens_name **at = &node->names; *at; at = &(*at)->next) {
		if (*at != name)
			continue;
		*at = name->next;
		break;
	}
	free(name);
	if (!node->names && node->pin_fd < 0)
		node->pin_fd = cordon_steal_fd(&pin_fd);
	cordon_closep(&pin_fd);
	if (!node->names)
		remove_from_table(lens, node);
	parent->children--;
	lens_node_release(lens, parent);
	lens_node_release(lens, node);
}

void lens_node_release(struct lens *lens, struct lens_node *node)
{
	if (node == lens->root || node->lookups || node->children)
		return;
	/* lens_name_drop() calls this function again: the node must outlive its last name. */
	node->children++;
	lens_monitor_unmark(lens, node);
	while (node->names)
		lens_name_drop(lens, node->names, -1);
	remove_from_table(lens, node);
	lens_listing_drop(lens, node);
	lens_recent_drop(lens, node);
	lens_file_close(lens, node);
	cordon_closep(&node->pin_fd);
	free(node);
	lens->n_nodes--;
}

void lens_node_forget(struct lens *lens, struct lens_node *node, uint64_t lookups)
{
	node->lookups -= lookups < node->lookups ? lookups : node->lookups;
	lens_node_release(lens, node);
}

static struct lens_node *find_by_id(const struct lens *lens, const struct lens_id *id, mode_t type, bool writable)
{
	for (struct lens_node *node = *id_bucket(lens, id); node; node = node->hash_next)
		if (lens_id_equal(&node->id, id) && node->type == type && (S_ISDIR(type) || node->writable == writable))
			return node;
	return NULL;
}

static void renumber(struct lens *lens, struct lens_node *node, const struct lens_id *id)
{
	struct lens_node **bucket = id_bucket(lens, id);

	if (node->gone || lens_id_equal(&node->id, id))
		return;
	remove_from_table(lens, node);
	lens_file_close(lens, node);
	node->gone = false;
	node->id = *id;
	node->hash_next = *bucket;
	*bucket = node;
}

struct lens_node *lens_node_take(struct lens *lens, struct lens_node *parent, const char *text, const struct statx *stx,
				 bool writable)
{
	struct lens_id id = lens_id_of(stx);
	struct lens_node *node = find_by_id(lens, &id, stx->stx_mode & S_IFMT, writable);
	struct lens_name *name = lens_name_find(lens, parent, text);

	if (lens_id_equal(&id, &lens->root->id))
		return NULL; /* a mount shows the root below itself, which would be no tree */
	if (!node && in_view && name && name->node->type == (stx->stx_mode & S_IFMT) &&
	    (S_ISDIR(stx->stx_mode) || name->node->writable == writable)) {
		node = name->node;
		renumber(lens, node, &id);
	}
	if (!node) {
		struct lens_node **bucket = id_bucket(lens, &id);

		if (lens->n_nodes >= 2 * LENS_NODES_MAX)
			return NULL;
		node = node_new(lens, stx, writable);
		if (!node)
			return NULL;
		node->hash_next = *bucket;
		*bucket = node;
		if (lens->n_nodes > LENS_NODES_MAX && lens->n_nodes % 4096 == 0)
			lens_monitor_trim(lens);
	}
	/* A directory is one node, whatever its rights: its names are judged at every use. */
	if (S_ISDIR(node->type))
		node->writable = writable;
	/* From here on the node must not be freed while its names change. */
	node->lookups++;
	if (name && name->node != node) {
		lens_name_drop(lens, name, -1);
		name = NULL;
	}
	if (!name) {
		/* The host moved the directory: a directory has only one name. */
		if (S_ISDIR(node->type) && node->names)
			lens_name_drop(lens, node->names, -1);
		if (lens_name_add(lens, node, parent, text) < 0) {
			lens_node_forget(lens, node, 1);
			return NULL;
		}
		if (node->gone) {
			struct lens_node **bucket = id_bucket(lens, &id);

			node->hash_next = *bucket;
			*bucket = node;
			node->gone = false;
		}
	}
	return node;
}

/* Writes the chain of names backwards from the end of the buffer. Returns 0 and where it begins, -ENAMETOOLONG, or
 * -ESTALE when a directory has no name any more. */
static int write_parents(const struct lens *lens, const struct lens_node *node, char *end, const char *start,
			 char **ret_begin)
{
	while (node != lens->root) {
		const struct lens_name *name = node->names;
		size_t n;

		if (!name)
			return -ESTALE;
		n = strlen(name->text);
		if ((size_t)(end - start) < n + 1)
			return -ENAMETOOLONG;
		end -= n + 1;
		memcpy(end, name->text, n);
		end[n] = '/';
		node = name->parent;
	}
	*ret_begin = end;
	return 0;
}

int lens_path_below(const struct lens *lens, const struct lens_node *parent, const char *text,
		    char ret[static CORDON_PATH_MAX])
{
	size_t n = strlen(text);
	char *begin, *end;
	int r;

	if (n >= CORDON_PATH_MAX)
		return -ENAMETOOLONG;
	end = ret + CORDON_PATH_MAX - 1 - n;
	r = write_parents(lens, parent, end, ret, &begin);
	if (r < 0)
		return r;
	memcpy(end, text, n + 1);
	memmove(ret, begin, (size_t)(end - begin) + n + 1);
	return 0;
}

int lens_path(const struct lens *lens, const struct lens_node *node, char ret[static CORDON_PATH_MAX])
{
	if (node == lens->root) {
		ret[0] = '\0';
		return 0;
	}
	if (!node->names)
		return -ESTALE;
	return lens_path_below(lens, node->names->parent, node->names->text, ret);
}

static bool is_below(const struct lens *lens, const struct lens_node *node, const struct lens_node *dir)
{
	while (node != lens->root && node != dir && node->names)
		node = node->names->parent;
	return node == dir;
}

void lens_node_renumber(struct lens *lens, struct lens_node *dir)
{
	for (size_t i = 0; i < LENS_BUCKETS; i++) {
		for (const struct lens_name *name = lens->by_name[i]; name; name = name->hash_next) {
			struct lens_node *node = name->node;
			char path[CORDON_PATH_MAX];
			struct lens_id id;
			struct statx stx;

			if (!S_ISDIR(node->type) || !is_below(lens, node, dir) || lens_path(lens, node, path) < 0 ||
			    lens_stat(lens->root_fd, path, &stx) < 0 || !S_ISDIR(stx.stx_mode))
				continue;
			id = lens_id_of(&stx);
			renumber(lens, node, &id);
		}
	}
}

/* Opens what stands under a path now, as an O_PATH descriptor, if it is the file of the node. */
static int open_verified(struct lens *lens, const struct lens_node *node, const char *path, bool write)
{
	autofd int fd = cordon_open_beneath(lens->root_fd, path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	struct statx stx;
	int r;

	/* The name is missing, or a link is where a directory was: the node is not there any more, whatever else is. */
	if (fd < 0)
		return fd == -ENOENT || fd == -ELOOP || fd == -ENOTDIR ? -ESTALE : fd;
	r = lens_stat(fd, "", &stx);
	if (r < 0)
		return r;
	if (!lens_node_is(node, &stx))
		return -ESTALE;
	return write && !lens_known(lens, path, &stx) ? -NOT_OF_RUN : cordon_steal_fd(&fd);
}

/* Why a file may not be written; never 0. */
static int refusal(const struct lens *lens, const char *path)
{
	int r = lens_judge_change(lens, path, false, LENS_MODIFY);

	return r < 0 ? r : -EROFS;
}

static int open_by_name(struct lens *lens, struct lens_node *node, const struct lens_name *name, bool write)
{
	char path[CORDON_PATH_MAX];
	enum lens_rights rights;
	int r = lens_path_below(lens, name->parent, name->text, path);

	if (r < 0)
		return r;
	/* The name of a temporary file is out of scope. It is allowed because this run made it. */
	rights = lens_judge(lens, path);
	if (rights < LENS_WRITE && lens_temp_name_find_file(lens, name->parent, name->text, &node->id))
		rights = LENS_WRITE;
	if (write && (rights < LENS_WRITE || (!node->writable && !S_ISDIR(node->type))))
		return rights < LENS_WRITE ? refusal(lens, path) : -NOT_OF_RUN;
	/* The kernel knows a link whose own name is hidden only because of what it leads to. */
	if (!S_ISLNK(node->type) && rights < (S_ISDIR(node->type) ? LENS_LEADS : LENS_READ))
		return -EACCES;
	return open_verified(lens, node, path, write);
}

int lens_open_node(struct lens *lens, struct lens_node *node, bool write)
{
	int r = -ESTALE;

	if (node == lens->root) {
		if (write && lens_judge(lens, "") < LENS_WRITE)
			return refusal(lens, "");
		r = fcntl(lens->root_fd, F_DUPFD_CLOEXEC, 3);
		return r < 0 ? -errno : r;
	}
	if (!node->names && node->pin_fd >= 0) {
		if (write && !node->writable)
			return -EROFS;
		r = fcntl(node->pin_fd, F_DUPFD_CLOEXEC, 3);
		return r < 0 ? -errno : r;
	}
	for (const struct lens_name *name = node->names; name; name = name->next) {
		r = open_by_name(lens, node, name, write);
		if (r >= 0)
			break;
	}
	return r;
}

int lens_open_to_change(struct lens *lens, struct lens_node *node)
{
	int fd = lens_open_node(lens, node, true);
	char path[CORDON_PATH_MAX];

	if (fd == -NOT_OF_RUN)
		return lens_path(lens, node, path) < 0 ? -EACCES
						       : lens_report_beside(lens, CORDON_LENS_OP_WRITE, path, NULL);
	if (fd < 0 && lens_path(lens, node, path) == 0 && lens_judge_change(lens, path, false, LENS_MODIFY) == fd)
		lens_report_change(lens, CORDON_LENS_OP_WRITE, path);
	return fd;
}

static int64_t now_ns(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

int lens_open_recent(struct lens *lens, struct lens_node *node)
{
	struct lens_recent *recent = &lens->recent[mix((uint64_t)(uintptr_t)node) % LENS_RECENT];
	int64_t now = now_ns();
	int fd;

	if (node == lens->root)
		return lens->root_fd;
	if (recent->node == node && now < recent->until)
		return recent->fd;
	fd = lens_open_node(lens, node, false);
	if (fd < 0)
		return fd;
	if (recent->node)
		(void)close(recent->fd);
	*recent = (struct lens_recent){ .node = node, .fd = fd, .until = now + LENS_RECENT_NS };
	return fd;
}

void lens_recent_drop(struct lens *lens, const struct lens_node *node)
{
	for (size_t i = 0; i < LENS_RECENT; i++) {
		struct lens_recent *recent = &lens->recent[i];

		if (!recent->node || (node && recent->node != node))
			continue;
		(void)close(recent->fd);
		recent->node = NULL;
	}
}
