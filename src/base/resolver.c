/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Resolves many paths with few system calls.
 *
 * INVARIANT: a name counts as no link only in three cases: readlinkat() of the name itself said so, its directory
 * was listed and the entry has another type, or its directory was listed completely and has no link at all. A name
 * that is only missing from a listing proves nothing, because a directory may ignore case.
 */
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>

#include "base/path.h"
#include "base/resolve.h"

#define DIRS_MAX 32768	  /* directories remembered; with more, all are forgotten */
#define FDS_MAX 256	  /* directories kept open */
#define NAMES_MAX 1000000 /* names remembered, all listings together */
#define CHUNK ((size_t)64 << 10)

enum dir_state {
	DIR_REAL,    /* exists at `real`, which contains no link */
	DIR_MISSING, /* does not exist; the path below it is only names after `real` */
	DIR_OTHER,   /* outside, or we may not look into it: cordon_resolve() answers for it */
};

/* All names of a directory in a hash table. Each string has one byte before it, which is 1 if the name may be a
 * link. */
struct listing {
	const char **names;
	size_t slots; /* a power of two */
	bool has_links;
};

struct dir {
	const char *text; /* as the caller wrote it */
	const char *real; /* relative to the root */
	size_t real_len;
	uint32_t hash;
	enum dir_state state;
	int fd; /* O_PATH, or -1 when it is not kept open */
	unsigned int asked;
	struct listing *listing;
};

struct chunk {
	struct chunk *next;
	size_t used;
	size_t size;
	char bytes[];
};

struct cordon_resolver_cache {
	struct dir *dirs;
	size_t n_dirs;
	size_t room;
	uint32_t *index;      /* position in dirs plus one; 0 is free */
	size_t slots;	      /* a power of two */
	size_t open[FDS_MAX]; /* which directories are open, the oldest at next_open */
	size_t n_open;
	size_t next_open;
	size_t n_names;
	struct chunk *chunks;
	enum { ROOT_UNKNOWN, ROOT_IN_PLACE, ROOT_MOVED } root; /* whether the root is still where its path says */
};

/* ---- memory ---- */

/* Memory that lives until the next refresh. */
static void *keep(struct cordon_resolver_cache *cache, size_t n)
{
	struct chunk *chunk = cache->chunks;
	size_t aligned = (n + 7) & ~(size_t)7;

	if (!chunk || chunk->size - chunk->used < aligned) {
		size_t size = aligned > CHUNK ? aligned : CHUNK;

		chunk = malloc(sizeof(*chunk) + size);
		if (!chunk)
			return NULL;
		*chunk = (struct chunk){ .next = cache->chunks, .size = size };
		cache->chunks = chunk;
	}
	chunk->used += aligned;
	return chunk->bytes + chunk->used - aligned;
}

static char *keep_text(struct cordon_resolver_cache *cache, const char *s, size_t n)
{
	char *copy = keep(cache, n + 1);

	if (copy) {
		memcpy(copy, s, n);
		copy[n] = '\0';
	}
	return copy;
}

void cordon_resolver_init(struct cordon_resolver *resolver, const struct cordon_root *root)
{
	*resolver = (struct cordon_resolver){ .root = root };
}

void cordon_resolver_refresh(struct cordon_resolver *resolver)
{
	struct cordon_resolver_cache *cache = resolver->cache;

	if (!cache)
		return;
	for (size_t i = 0; i < cache->n_dirs; i++)
		cordon_closep(&cache->dirs[i].fd);
	while (cache->chunks) {
		struct chunk *next = cache->chunks->next;

		free(cache->chunks);
		cache->chunks = next;
	}
	if (cache->n_dirs)
		memset(cache->index, 0, cache->slots * sizeof(*cache->index));
	cache->n_dirs = cache->n_open = cache->next_open = cache->n_names = 0;
	cache->root = ROOT_UNKNOWN;
}

void cordon_resolver_done(struct cordon_resolver *resolver)
{
	cordon_resolver_refresh(resolver);
	if (resolver->cache) {
		free(resolver->cache->dirs);
		free(resolver->cache->index);
	}
	cordon_freep(&resolver->cache);
}

/* ---- the table of directories ---- */

static uint32_t hash_bytes(const char *s, size_t n)
{
	uint32_t h = 2166136261u;

	for (size_t i = 0; i < n; i++)
		h = (h ^ (unsigned char)s[i]) * 16777619u;
	return h;
}

static struct dir *find_dir(const struct cordon_resolver_cache *cache, const char *text, size_t n, uint32_t hash)
{
	for (size_t i = hash & (cache->slots - 1); cache->index[i]; i = (i + 1) & (cache->slots - 1)) {
		struct dir *dir = &cache->dirs[cache->index[i] - 1];

		if (dir->hash == hash && strncmp(dir->text, text, n) == 0 && dir->text[n] == '\0')
			return dir;
	}
	return NULL;
}

static void index_dir(struct cordon_resolver_cache *cache, size_t at)
{
	size_t i = cache->dirs[at].hash & (cache->slots - 1);

	while (cache->index[i])
		i = (i + 1) & (cache->slots - 1);
	cache->index[i] = (uint32_t)at + 1;
}

/* Makes room for one more directory, also in the index, which stays half empty. */
static bool make_room(struct cordon_resolver_cache *cache)
{
	size_t room = cache->room ? 2 * cache->room : 64;
	struct dir *dirs;
	uint32_t *index;

	if (cache->n_dirs < cache->room)
		return true;
	dirs = reallocarray(cache->dirs, room, sizeof(*dirs));
	if (dirs)
		cache->dirs = dirs;
	index = dirs ? calloc(2 * room, sizeof(*index)) : NULL;
	if (!index)
		return false;
	free(cache->index);
	cache->index = index;
	cache->slots = 2 * room;
	cache->room = room;
	for (size_t i = 0; i < cache->n_dirs; i++)
		index_dir(cache, i);
	return true;
}

/* Returns the descriptor of a directory that exists, and closes the one that was open longest if there are too many.
 * Negative when the directory is gone. */
static int hold_open(const struct cordon_resolver *resolver, struct dir *dir)
{
	struct cordon_resolver_cache *cache = resolver->cache;
	int fd;

	if (dir->fd >= 0)
		return dir->fd;
	if (cache->n_open == FDS_MAX)
		cordon_closep(&cache->dirs[cache->open[cache->next_open]].fd);
	fd = cordon_open_beneath(resolver->root->fd, dir->real, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return fd;
	dir->fd = fd;
	if (cache->n_open < FDS_MAX)
		cache->n_open++;
	cache->open[cache->next_open] = (size_t)(dir - cache->dirs);
	cache->next_open = (cache->next_open + 1) % FDS_MAX;
	return dir->fd;
}

/* Finds out the state of a directory. One system call suffices if there is no link on the way. */
static bool look_at(const struct cordon_resolver *resolver, struct dir *dir)
{
	struct cordon_resolved resolved;
	int r = hold_open(resolver, dir);

	if (r >= 0 || r == -ENOENT || r == -ENOTDIR) {
		/* A walk that ends in ENOENT or ENOTDIR met no link before. */
		dir->state = r >= 0 ? DIR_REAL : DIR_MISSING;
		return true;
	}
	dir->state = DIR_OTHER;
	if (r != -ELOOP)
		return true;
	cordon_resolve(resolver->root, dir->text, &resolved);
	if (resolved.place != CORDON_PLACE_INSIDE)
		return true;
	dir->real_len = strlen(resolved.path);
	dir->real = keep_text(resolver->cache, resolved.path, dir->real_len);
	if (!dir->real)
		return false;
	if (!resolved.exists)
		dir->state = DIR_MISSING;
	else if (hold_open(resolver, dir) >= 0)
		dir->state = DIR_REAL;
	return true;
}

static bool make_cache(struct cordon_resolver *resolver)
{
	if (!resolver->cache)
		resolver->cache = calloc(1, sizeof(*resolver->cache));
	return resolver->cache;
}

static struct dir *get_dir(struct cordon_resolver *resolver, const char *text, size_t n)
{
	uint32_t hash = hash_bytes(text, n);
	struct cordon_resolver_cache *cache;
	struct dir *dir = NULL;

	if (!make_cache(resolver))
		return NULL;
	cache = resolver->cache;
	if (cache->slots)
		dir = find_dir(cache, text, n, hash);
	if (dir)
		return dir;
	if (cache->n_dirs == DIRS_MAX)
		cordon_resolver_refresh(resolver);
	if (!make_room(cache))
		return NULL;
	dir = &cache->dirs[cache->n_dirs];
	*dir = (struct dir){ .hash = hash, .fd = -1, .real_len = n };
	dir->text = dir->real = keep_text(cache, text, n);
	if (!dir->text || !look_at(resolver, dir)) {
		cordon_closep(&dir->fd);
		return NULL;
	}
	index_dir(cache, cache->n_dirs++);
	return dir;
}

/* ---- listings ---- */

static bool add_name(struct cordon_resolver_cache *cache, struct listing *listing, const struct dirent64 *d)
{
	size_t n = strlen(d->d_name);
	size_t i = hash_bytes(d->d_name, n) & (listing->slots - 1);
	bool link = d->d_type == DT_LNK || d->d_type == DT_UNKNOWN;
	char *copy = keep(cache, n + 2);

	if (!copy)
		return false;
	copy[0] = link ? 1 : 0;
	memcpy(copy + 1, d->d_name, n + 1);
	listing->has_links |= link;
	while (listing->names[i])
		i = (i + 1) & (listing->slots - 1);
	listing->names[i] = copy;
	return true;
}

static const char *find_name(const struct listing *listing, const char *name, size_t n)
{
	for (size_t i = hash_bytes(name, n) & (listing->slots - 1); listing->names[i];
	     i = (i + 1) & (listing->slots - 1))
		if (cordon_streq(listing->names[i] + 1, name))
			return listing->names[i];
	return NULL;
}

/* Reads the directory, if it has fewer than `limit` (a power of two) entries. */
static void list_dir(const struct cordon_resolver *resolver, struct dir *dir, size_t limit)
{
	struct cordon_resolver_cache *cache = resolver->cache;
	autofd int fd = openat(dir->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct listing *listing = fd < 0 ? NULL : keep(cache, sizeof(*listing));
	_Alignas(struct dirent64) char bytes[8192];
	size_t n = 0;
	ssize_t got;

	if (!listing)
		return;
	*listing = (struct listing){ .slots = 2 * limit };
	listing->names = keep(cache, listing->slots * sizeof(*listing->names));
	if (!listing->names)
		return;
	memset(listing->names, 0, listing->slots * sizeof(*listing->names));
	while ((got = getdents64(fd, bytes, sizeof(bytes))) > 0) {
		for (ssize_t at = 0; at < got; at += ((const struct dirent64 *)(bytes + at))->d_reclen)
			if (++n >= limit || !add_name(cache, listing, (const struct dirent64 *)(bytes + at)))
				return;
	}
	cache->n_names += n;
	if (got == 0)
		dir->listing = listing;
}

/* Lists a directory when many names in it were resolved: the more names, the larger it may be. */
static void consider_listing(const struct cordon_resolver *resolver, struct dir *dir)
{
	static const struct {
		unsigned int asked;
		size_t limit;
	} steps[] = { { 4, 64 }, { 32, 512 }, { 256, 4096 }, { 4096, 65536 } };

	for (size_t i = 0; i < CORDON_ARRAY_SIZE(steps); i++)
		if (dir->asked == steps[i].asked && resolver->cache->n_names + steps[i].limit < NAMES_MAX &&
		    hold_open(resolver, dir) >= 0)
			list_dir(resolver, dir, steps[i].limit);
}

/* ---- resolving ---- */

/* True for a relative path whose components are all ordinary names, so that walking it needs no `..`. */
static bool plain(const char *path, size_t *ret_dir_len, size_t *ret_len)
{
	if (!*path || *path == '/')
		return false;
	for (const char *p = path;; p++) {
		const char *start = p;
		size_t n;

		while (*p && *p != '/')
			p++;
		n = (size_t)(p - start);
		if (n == 0 || n > NAME_MAX || (start[0] == '.' && (n == 1 || (n == 2 && start[1] == '.'))))
			return false;
		if (!*p) {
			*ret_dir_len = start == path ? 0 : (size_t)(start - path) - 1;
			*ret_len = (size_t)(p - path);
			return true;
		}
	}
}

/* Whether the path of the root still leads to the root without any link. Checked once per batch. */
static bool root_in_place(struct cordon_resolver *resolver)
{
	const struct cordon_root *root = resolver->root;
	autofd int slash = -1, fd = -1;
	struct stat here, there;

	if (!make_cache(resolver))
		return false;
	if (resolver->cache->root != ROOT_UNKNOWN)
		return resolver->cache->root == ROOT_IN_PLACE;
	resolver->cache->root = ROOT_MOVED;
	slash = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (slash >= 0)
		fd = cordon_open_beneath(slash, root->path + 1, O_PATH | O_DIRECTORY);
	if (fd >= 0 && fstat(fd, &here) == 0 && fstat(root->fd, &there) == 0 && here.st_ino == there.st_ino &&
	    here.st_dev == there.st_dev)
		resolver->cache->root = ROOT_IN_PLACE;
	return resolver->cache->root == ROOT_IN_PLACE;
}

/* Makes an absolute path below the root relative to it, if the root is still in its place. */
static const char *from_root(struct cordon_resolver *resolver, const char *path)
{
	size_t n = strlen(resolver->root->path);

	if (path[0] != '/' || n < 2 || strncmp(path, resolver->root->path, n) != 0 || path[n] != '/')
		return path;
	return root_in_place(resolver) ? path + n + 1 : path;
}

/* Returns 1 when `name` exists in the directory and is no link, 0 when it does not exist, -1 when it is a link or
 * not known. */
static int look_for(const struct cordon_resolver *resolver, struct dir *dir, const char *name, size_t n)
{
	char target[1];

	if (dir->state == DIR_MISSING)
		return 0;
	if (dir->state == DIR_OTHER)
		return -1;
	dir->asked++;
	if (!dir->listing)
		consider_listing(resolver, dir);
	if (dir->listing) {
		const char *found = find_name(dir->listing, name, n);

		if (found && !found[0])
			return 1;
		if (!found && !dir->listing->has_links)
			return 0;
	}
	if (hold_open(resolver, dir) < 0 || readlinkat(dir->fd, name, target, sizeof(target)) >= 0)
		return -1;
	return errno == EINVAL ? 1 : errno == ENOENT ? 0 : -1;
}

void cordon_resolver_ask(struct cordon_resolver *resolver, const char *asked, struct cordon_resolved *ret_resolved)
{
	const char *path = from_root(resolver, asked);
	size_t dir_len, len, base_len, slash;
	struct dir *dir;
	int found;

	if (!plain(path, &dir_len, &len) || len >= CORDON_PATH_MAX) {
		cordon_resolve(resolver->root, asked, ret_resolved);
		return;
	}
	base_len = len - dir_len - (dir_len ? 1 : 0);
	dir = get_dir(resolver, path, dir_len);
	found = dir ? look_for(resolver, dir, path + len - base_len, base_len) : -1;
	slash = dir && dir->real_len ? 1 : 0;
	/* cordon_resolve() limits the length of the whole path from "/", and so must we; the path as written has a
	 * limit, too. */
	if (found < 0 || (size_t)(path - asked) + len >= CORDON_PATH_MAX ||
	    strlen(resolver->root->path) + 1 + dir->real_len + slash + base_len >= CORDON_PATH_MAX) {
		cordon_resolve(resolver->root, asked, ret_resolved);
		return;
	}
	ret_resolved->place = CORDON_PLACE_INSIDE;
	ret_resolved->exists = found;
	memcpy(ret_resolved->path, dir->real, dir->real_len);
	if (slash)
		ret_resolved->path[dir->real_len] = '/';
	memcpy(ret_resolved->path + dir->real_len + slash, path + len - base_len, base_len + 1);
}
