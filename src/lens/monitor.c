/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The second thread of cordon-lens: fanotify reports what changes on the host, and the invalidator has the kernel
 * drop what it caches of it.
 *
 * A mark on a directory reports every change in it, and which process made the change. Our own changes are skipped:
 * the run made them, and the kernel knows them. Where a directory has no mark (too many marks, no fanotify, a file
 * system without file handles) no answer about it is valid for longer than LENS_VALID_SHORT.
 */
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/fanotify.h>
#include <sys/vfs.h>

#include "lens/lens.h"

#ifndef AT_HANDLE_FID
#define AT_HANDLE_FID 0x200
#endif

#define NAME_EVENTS (FAN_CREATE | FAN_DELETE | FAN_MOVED_FROM | FAN_MOVED_TO)
#define DATA_EVENTS (FAN_MODIFY | FAN_CLOSE_WRITE)
/* FAN_CLOSE_WRITE is the only report of content that was written through a shared mapping. */
#define EVENTS (NAME_EVENTS | DATA_EVENTS | FAN_ATTRIB | FAN_ONDIR | FAN_EVENT_ON_CHILD)
#define HANDLE_MAX 32 /* a directory with a longer file handle gets no mark */
#define REST_MS 5     /* pause after reports of our own changes only */
#define READS_MAX 16  /* reads of reports before the thread looks at its other work */
#define TRIM_MAX 1024 /* names dropped at one time */

struct lens_mark {
	struct lens_mark *hash_next;
	struct lens_node *node;
	int type;
	unsigned int n;
	unsigned char bytes[HANDLE_MAX];
};

static struct lens_mark **bucket_of(const struct lens *lens, int type, const unsigned char *bytes, unsigned int n)
{
	uint64_t h = (uint64_t)(unsigned int)type;

	for (unsigned int i = 0; i < n; i++)
		h = (h ^ bytes[i]) * 0x100000001b3u;
	h ^= h >> 32;
	return &lens->marks[h % LENS_BUCKETS];
}

/* Whether this kernel makes, and so reports, every change of the file system. Others (network, FUSE) may change
 * without a report. */
static bool is_local(int fd)
{
	static const unsigned long types[] = {
		0xef53 /* ext */,      0x58465342 /* xfs */, 0x9123683e /* btrfs */,	0x01021994 /* tmpfs */,
		0xf2f52010 /* f2fs */, 0x2fc12fc1 /* zfs */, 0xca451a4e /* bcachefs */, 0x794c7630 /* overlay */,
	};
	struct statfs st;

	if (fstatfs(fd, &st) < 0)
		return false;
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(types); i++)
		if ((unsigned long)st.f_type == types[i])
			return true;
	return false;
}

int lens_monitor_init(struct lens *lens)
{
	/* Reports help only if an invalidator can pass them on, and if they are complete. */
	if (lens->invalidator_fd >= 0 && is_local(lens->root_fd))
		lens->fanotify_fd = fanotify_init(FAN_CLASS_NOTIF | FAN_REPORT_DFID_NAME | FAN_CLOEXEC | FAN_NONBLOCK,
						  O_RDONLY);
	lens->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	lens->marks = calloc(LENS_BUCKETS, sizeof(struct lens_mark *));
	if (lens->wake_fd < 0)
		return -errno;
	if (!lens->marks)
		return -ENOMEM;
	lens_monitor_mark(lens, lens->root, lens->root_fd);
	/* fanotify reports nothing about the root: then the kernel must compare times by itself. */
	if (!lens->root->mark)
		cordon_closep(&lens->fanotify_fd);
	return 0;
}

void lens_monitor_mark(struct lens *lens, struct lens_node *node, int path_fd)
{
	_Alignas(struct file_handle) char room[sizeof(struct file_handle) + HANDLE_MAX];
	struct file_handle *handle = (struct file_handle *)(void *)room;
	struct lens_mark **bucket, *mark;
	int mount;

	if (node->mark || lens->fanotify_fd < 0 || lens->n_marks >= LENS_MARKS_MAX)
		return;
	handle->handle_bytes = HANDLE_MAX;
	if (name_to_handle_at(path_fd, "", handle, &mount, AT_EMPTY_PATH) < 0 &&
	    name_to_handle_at(path_fd, "", handle, &mount, AT_EMPTY_PATH | AT_HANDLE_FID) < 0)
		return;
	if (fanotify_mark(lens->fanotify_fd, FAN_MARK_ADD | FAN_MARK_ONLYDIR, EVENTS, path_fd, ".") < 0)
		return;
	mark = calloc(1, sizeof(*mark));
	if (!mark)
		return;
	mark->node = node;
	mark->type = handle->handle_type;
	mark->n = handle->handle_bytes;
	memcpy(mark->bytes, handle->f_handle, mark->n);
	bucket = bucket_of(lens, mark->type, mark->bytes, mark->n);
	mark->hash_next = *bucket;
	*bucket = mark;
	node->mark = mark;
	lens->n_marks++;
}

void lens_monitor_unmark(struct lens *lens, struct lens_node *node)
{
	struct lens_mark *mark = node->mark;
	autofd int fd = -1;

	if (!mark)
		return;
	for (struct lens_mark **at = bucket_of(lens, mark->type, mark->bytes, mark->n); *at; at = &(*at)->hash_next) {
		if (*at != mark)
			continue;
		*at = mark->hash_next;
		break;
	}
	/* A directory that we cannot open any more keeps its mark until it is deleted; no node is found for its
	 * reports. */
	fd = lens_open_node(lens, node, false);
	if (fd >= 0)
		(void)fanotify_mark(lens->fanotify_fd, FAN_MARK_REMOVE | FAN_MARK_ONLYDIR, EVENTS, fd, ".");
	free(mark);
	node->mark = NULL;
	lens->n_marks--;
}

static struct lens_mark *find_mark(const struct lens *lens, int type, const unsigned char *bytes, unsigned int n)
{
	struct lens_mark *mark = *bucket_of(lens, type, bytes, n);

	while (mark && (mark->type != type || mark->n != n || memcmp(mark->bytes, bytes, n) != 0))
		mark = mark->hash_next;
	return mark;
}

static void wake(const struct lens *lens)
{
	uint64_t one = 1;
	ssize_t n = write(lens->wake_fd, &one, sizeof(one));

	(void)n; /* the counter is full: the thread is awake already */
}

void lens_monitor_trim(const struct lens *lens)
{
	if (lens->invalidator_fd >= 0)
		wake(lens);
}

void lens_monitor_drop_later(struct lens *lens, const struct lens_node *node)
{
	/* Without an invalidator no answer is valid for long, and the kernel compares times by itself. */
	if (lens->invalidator_fd < 0)
		return;
	if (lens->n_stale < LENS_STALE_MAX)
		lens->stale[lens->n_stale++] = lens_ino(lens, node);
	else
		lens->all_stale = true;
	wake(lens);
}

/* One report of fanotify. */
struct report {
	uint64_t mask;
	int type; /* type of the directory's file handle, whose bytes follow */
	unsigned int n;
	unsigned char handle[HANDLE_MAX];
	char text[NAME_MAX + 1];
};

/* The kernel packs its reports without regard to alignment. False for a report that concerns none of our marks. */
static bool parse_report(const char *at, size_t len, struct report *ret)
{
	const size_t info_at = sizeof(struct fanotify_event_metadata);
	const size_t handle_at = info_at + offsetof(struct fanotify_event_info_fid, handle);
	const size_t bytes_at = handle_at + offsetof(struct file_handle, f_handle);
	struct fanotify_event_info_header info;
	struct file_handle handle;

	if (len <= bytes_at)
		return false;
	memcpy(&info, at + info_at, sizeof(info));
	memcpy(&handle, at + handle_at, offsetof(struct file_handle, f_handle));
	if (info.info_type != FAN_EVENT_INFO_TYPE_DFID_NAME || handle.handle_bytes > HANDLE_MAX ||
	    len <= bytes_at + handle.handle_bytes)
		return false;
	ret->type = handle.handle_type;
	ret->n = handle.handle_bytes;
	memcpy(ret->handle, at + bytes_at, ret->n);
	at += bytes_at + ret->n;
	len -= bytes_at + ret->n;
	return cordon_copy(ret->text, sizeof(ret->text), at, strnlen(at, len)) == 0;
}

/* Has the kernel drop what is out of date according to a report: a name appeared or disappeared, or a file changed. */
static void invalidate(struct lens *lens, const struct report *report)
{
	const char *text = report->text;
	fuse_ino_t dir = 0, child = 0;
	const struct lens_mark *mark;
	const struct lens_name *name;

	(void)pthread_mutex_lock(&lens->lock);
	mark = find_mark(lens, report->type, report->handle, report->n);
	if (mark) {
		dir = lens_ino(lens, mark->node);
		name = lens_name_find(lens, mark->node, text);
		if (name)
			child = lens_ino(lens, name->node);
	}
	(void)pthread_mutex_unlock(&lens->lock);
	if (!dir)
		return;
	if (cordon_streq(text, ".")) {
		lens_invalidate_inode(lens, dir, false);
		return;
	}
	if (report->mask & NAME_EVENTS) {
		lens_invalidate_entry(lens, dir, text);
		lens_invalidate_inode(lens, dir, true);
	}
	if (child && (report->mask & (DATA_EVENTS | NAME_EVENTS)))
		lens_invalidate_inode(lens, child, true);
	else if (child)
		lens_invalidate_inode(lens, child, false);
}

/* Copies of names that the kernel shall drop. */
struct batch {
	fuse_ino_t parent[TRIM_MAX], ino[TRIM_MAX];
	char *text[TRIM_MAX];
	size_t n;
};

static void collect_names(struct lens *lens, size_t *at, bool leaves, struct batch *ret)
{
	ret->n = 0;
	(void)pthread_mutex_lock(&lens->lock);
	for (; *at < LENS_BUCKETS; (*at)++) {
		size_t before = ret->n;

		for (const struct lens_name *name = lens->by_name[*at]; name; name = name->hash_next) {
			if (leaves && name->node->children)
				continue;
			if (ret->n == TRIM_MAX) {
				/* Take the whole bucket next time, unless it fills a batch by itself. */
				*at += before == 0;
				goto out;
			}
			ret->parent[ret->n] = lens_ino(lens, name->parent);
			ret->ino[ret->n] = lens_ino(lens, name->node);
			ret->text[ret->n] = strdup(name->text);
			ret->n++;
		}
	}
out:
	(void)pthread_mutex_unlock(&lens->lock);
}

/* Has the kernel drop names: all of them after reports were lost, or only some leaves when there are too many nodes. */
static void drop_names(struct lens *lens, bool leaves)
{
	struct batch *batch = calloc(1, sizeof(*batch));
	size_t at = 0, dropped = 0;

	if (!batch)
		return;
	do {
		collect_names(lens, &at, leaves, batch);
		for (size_t i = 0; i < batch->n; i++) {
			if (!leaves)
				lens_invalidate_inode(lens, batch->ino[i], true);
			if (batch->text[i])
				lens_invalidate_entry(lens, batch->parent[i], batch->text[i]);
			free(batch->text[i]);
		}
		dropped += batch->n;
	} while (batch->n && (!leaves || dropped < LENS_NODES_MAX / 2));
	if (!leaves)
		lens_invalidate_inode(lens, FUSE_ROOT_ID, true);
	free(batch);
}

/* Reads what fanotify reports. False when all reports were about the lens's own changes. */
static bool read_reports(struct lens *lens, pid_t self)
{
	bool foreign = false;
	char events[16384];
	ssize_t n;

	/* Read a part at a time: a busy host must not keep the other work, or the end of the lens, waiting. */
	for (int i = 0; i < READS_MAX && (n = read(lens->fanotify_fd, events, sizeof(events))) > 0; i++) {
		struct fanotify_event_metadata meta;
		const char *end = events + n;
		struct report report;

		for (const char *at = events; (size_t)(end - at) >= sizeof(meta); at += meta.event_len) {
			memcpy(&meta, at, sizeof(meta));
			if (meta.event_len < sizeof(meta) || meta.event_len > (size_t)(end - at))
				break;
			if (meta.pid == self && !(meta.mask & FAN_Q_OVERFLOW))
				continue;
			foreign = true;
			report.mask = meta.mask;
			if (meta.mask & FAN_Q_OVERFLOW)
				drop_names(lens, false);
			else if (parse_report(at, meta.event_len, &report))
				invalidate(lens, &report);
		}
	}
	return foreign;
}

static void drop_stale(struct lens *lens)
{
	uint64_t count, stale[64];
	bool all, many;
	size_t n = 1;

	if (read(lens->wake_fd, &count, sizeof(count)) < 0)
		return;
	while (n) {
		(void)pthread_mutex_lock(&lens->lock);
		n = lens->n_stale < CORDON_ARRAY_SIZE(stale) ? lens->n_stale : CORDON_ARRAY_SIZE(stale);
		lens->n_stale -= n;
		memcpy(stale, lens->stale + lens->n_stale, n * sizeof(*stale));
		all = lens->all_stale;
		lens->all_stale = false;
		many = lens->n_nodes > LENS_NODES_MAX;
		(void)pthread_mutex_unlock(&lens->lock);
		for (size_t i = 0; i < n; i++)
			lens_invalidate_inode(lens, stale[i], true);
		if (all)
			drop_names(lens, false);
		else if (many)
			drop_names(lens, true);
	}
}

void lens_monitor_run(struct lens *lens)
{
	pid_t self = getpid();
	bool resting = false;

	while (!__atomic_load_n(&lens->ending, __ATOMIC_ACQUIRE)) {
		struct pollfd fds[] = {
			{ .fd = lens->wake_fd, .events = POLLIN },
			{ .fd = resting ? -1 : lens->fanotify_fd, .events = POLLIN },
			{ .fd = lens->invalidator_fd, .events = POLLRDHUP },
		};

		/* fanotify reports every change through the lens, too. The pause collects such reports, so that each
		 * of them does not cost a switch of processes. */
		if (poll(fds, CORDON_ARRAY_SIZE(fds), resting ? REST_MS : -1) < 0)
			continue;
		resting = fds[1].revents && !read_reports(lens, self);
		if (fds[0].revents)
			drop_stale(lens);
		/* Without an invalidator the kernel would use wrong answers for a day. So the lens ends. */
		lens->invalidator_gone = fds[2].revents;
		if (lens->invalidator_gone)
			break;
	}
}

void lens_monitor_stop(struct lens *lens)
{
	__atomic_store_n(&lens->ending, true, __ATOMIC_RELEASE);
	wake(lens);
}
