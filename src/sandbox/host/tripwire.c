/* SPDX-License-Identifier: Apache-2.0 */
/* The supervisor answers the FUSE requests for tripwires, and reports who tries to read one. */
#include <fcntl.h>
#include <linux/fuse.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include "base/path.h"
#include "sandbox/host/stopped.h"
#include "sandbox/host/tripwire.h"
#include "sandbox/inside/where.h"
#include "sandbox/plan/tripwire.h"
#include "sandbox/watch/outside.h"

#define REQUEST_SIZE (FUSE_MIN_READ_BUFFER + 4096)
#define LISTING_SIZE 16384
#define AT_ONCE 64	      /* requests that are answered before the loop looks at something else */
#define FOR_EVER (1ULL << 32) /* seconds that the kernel keeps an entry and its attributes */
#define FOR_A_SECOND 1

struct cordon_tripwires {
	const struct cordon_plan *plan;
	const struct cordon_watched *watched;
	bool trapped; /* the hand sees what is executed, too */
	int fd;
	uint64_t made; /* in seconds: the time of all nodes */
	cordon_tripwires_fn tell;
	void *data;
	struct cordon_stopped stopped;
	struct cordon_hand_message message;
	union {
		struct fuse_in_header header;
		char bytes[REQUEST_SIZE];
	} in;
	union {
		uint64_t align;
		char bytes[LISTING_SIZE];
	} out;
};

struct cordon_tripwires *cordon_tripwires_new(int fuse_fd, const struct cordon_child *child,
					      const struct cordon_watched *watched, cordon_tripwires_fn tell, void *data)
{
	struct cordon_tripwires *t = fcntl(fuse_fd, F_SETFL, O_NONBLOCK) < 0 ? NULL : malloc(sizeof(*t));

	if (!t) {
		close(fuse_fd);
		return NULL;
	}
	t->plan = child->plan;
	t->watched = watched;
	t->trapped = child->variant == CORDON_SECCOMP_FULL || child->variant == CORDON_SECCOMP_LEARN;
	t->fd = fuse_fd;
	t->made = (uint64_t)child->started.tv_sec;
	t->tell = tell;
	t->data = data;
	t->stopped.child = child;
	t->stopped.proc_fd = -1;
	return t;
}

int cordon_tripwires_poll(const struct cordon_tripwires *t)
{
	return t ? t->fd : -1;
}

struct cordon_tripwires *cordon_tripwires_free(struct cordon_tripwires *t)
{
	if (t) {
		cordon_closep(&t->fd);
		cordon_stopped_done(&t->stopped);
		free(t);
	}
	return NULL;
}

/* An answer that does not go through changes nothing: the caller was killed meanwhile, or the file system is gone. */
static void answer(const struct cordon_tripwires *t, int error, const void *data, size_t n)
{
	struct fuse_out_header header = { .unique = t->in.header.unique, .error = error };
	struct iovec parts[] = { { &header, sizeof(header) }, { (void *)(uintptr_t)data, error ? 0 : n } };

	header.len = (uint32_t)(sizeof(header) + parts[1].iov_len);
	if (writev(t->fd, parts, 2) < 0)
		return;
}

static void fill_attr(const struct cordon_tripwires *t, uint64_t number, const struct cordon_trip_node *node,
		      struct fuse_attr *ret)
{
	*ret = (struct fuse_attr){ .ino = number,
				   .atime = t->made,
				   .mtime = t->made,
				   .ctime = t->made,
				   .mode = (node->dir ? S_IFDIR : S_IFREG) | (node->hidden ? 0 : 0555),
				   .nlink = node->dir ? 2 : 1,
				   .uid = t->plan->uid,
				   .gid = t->plan->gid,
				   .blksize = 4096 };
}

static void fill_entry(const struct cordon_tripwires *t, uint64_t number, const struct cordon_trip_node *node,
		       struct fuse_entry_out *ret)
{
	*ret = (struct fuse_entry_out){ .nodeid = number, .entry_valid = FOR_EVER, .attr_valid = FOR_EVER };
	fill_attr(t, number, node, &ret->attr);
}

/* PID 1 mounts tripwires, and hands look where a path leads: neither attempts anything. */
static bool is_ours(const struct cordon_tripwires *t)
{
	for (size_t i = 0; i < CORDON_HANDS_MAX; i++)
		if (t->watched->hands[i] == (int)t->in.header.pid)
			return true;
	return t->in.header.pid <= 1;
}

static uint8_t op_number(const char *op)
{
	uint8_t i = 0;

	while (!cordon_streq(cordon_touch_ops[i], op))
		i++;
	return i;
}

/* Reports as the watch does what the hand tells. `shown`: the directory of the path is there inside. */
static void report(struct cordon_tripwires *t, const char *op, const char *inside, bool shown,
		   const struct cordon_trip_node *node)
{
	struct cordon_hand_message *message = &t->message;

	message->kind = CORDON_HAND_TOUCHES;
	message->code = CORDON_ERROR_UNKNOWN;
	message->n = 1;
	message->touches[0] = (struct cordon_hand_touch){
		.op = op_number(op), .known = true, .follows = true, .shown = shown, .exists = node != NULL
	};
	if (node)
		message->touches[0].type = node->dir ? S_IFDIR : S_IFREG;
	if (cordon_copy(message->texts, sizeof(message->texts), inside, strlen(inside)) == 0)
		t->tell(t->data, message);
}

/* What the waiting call attempts, so far as only we hear of it; NULL when it is no attempt, or the trap reports it. */
static const char *attempt_of(const struct cordon_tripwires *t)
{
	const struct cordon_stopped *stopped = &t->stopped;
	uint64_t flags = stopped->flags;
	const char *op = NULL;

	/* When we can't read the process, we report the refusal rather than leave it out. */
	if (!stopped->known)
		return "read";
	if (stopped->kind == CORDON_CALL_EXECUTE)
		return t->trapped ? NULL : "execute";
	if ((flags & O_ACCMODE) == O_RDONLY)
		flags &= ~(uint64_t)O_DIRECTORY; /* to list what is hidden is to read it */
	if ((stopped->kind == CORDON_CALL_OPEN || stopped->kind == CORDON_CALL_OPEN_BY_STRUCT) && !(flags & O_CREAT))
		op = cordon_stopped_open(flags, true);
	return op && cordon_streq(op, "read") ? op : NULL;
}

/* Reports an attempt to open or execute a node. */
static void on_attempt(struct cordon_tripwires *t, const struct cordon_trip_node *node, bool runs)
{
	const char *op;

	if (is_ours(t))
		return;
	cordon_stopped_read(&t->stopped, t->in.header.pid);
	if (runs && (!t->stopped.known || t->stopped.kind != CORDON_CALL_EXECUTE))
		return;
	op = attempt_of(t);
	if (op)
		report(t, op, node->inside, true, node);
}

/* Reports an attempt to get at a name that is not there, or that lies in a hidden directory. `path` is where it would stand. */
static void on_lost_attempt(struct cordon_tripwires *t, const char *path, const char *name, bool hidden)
{
	CORDON_UNCLEARED char clean[CORDON_PATH_MAX], whole[CORDON_PATH_MAX];
	const char *op, *rest;

	if (is_ours(t))
		return;
	cordon_stopped_read(&t->stopped, t->in.header.pid);
	op = attempt_of(t);
	if (!op)
		return;
	rest = cordon_stopped_rest(t->stopped.path, name);
	/* A rest with ".." leads somewhere else: then we know only this name. */
	if (!rest || !*rest || cordon_path_clean(rest, clean, sizeof(clean)) < 0 ||
	    cordon_path_join(path, clean, whole, sizeof(whole)) < 0)
		report(t, op, path, !hidden, NULL);
	else
		report(t, op, whole, false, NULL);
}

static void on_lookup(struct cordon_tripwires *t, const struct cordon_trip_node *dir, const char *name)
{
	uint64_t number = dir->hidden ? 0 : cordon_trip_entry(t->plan, t->in.header.nodeid, name);
	CORDON_UNCLEARED char path[CORDON_PATH_MAX], host[CORDON_PATH_MAX];
	struct fuse_entry_out entry = { .entry_valid = FOR_A_SECOND };
	struct cordon_trip_node node;
	bool named = *dir->inside && cordon_path_join(dir->inside, name, path, sizeof(path)) == 0;

	if (number && cordon_trip_find(t->plan, number, &node)) {
		fill_entry(t, number, &node, &entry);
		answer(t, 0, &entry, sizeof(entry));
	} else if (dir->hidden) {
		if (named)
			on_lost_attempt(t, path, name, true);
		answer(t, -EACCES, NULL, 0);
	} else if (named && cordon_where_to_host(t->plan, path, host) && cordon_outside_exists(host)) {
		/* The host made it later, or there are too many names to show all. */
		on_lost_attempt(t, path, name, false);
		answer(t, -ENOENT, NULL, 0);
	} else {
		answer(t, 0, &entry, sizeof(entry)); /* there is no such name, and the kernel may remember it */
	}
}

static void on_getattr(struct cordon_tripwires *t, const struct cordon_trip_node *node)
{
	struct fuse_attr_out attr = { .attr_valid = FOR_EVER };

	/* The kernel asks for the mode of a file before it executes it. */
	if (node->hidden && !node->dir && !t->trapped)
		on_attempt(t, node, true);
	fill_attr(t, t->in.header.nodeid, node, &attr.attr);
	answer(t, 0, &attr, sizeof(attr));
}

static void on_open(struct cordon_tripwires *t, const struct cordon_trip_node *node)
{
	struct fuse_open_out open = { 0 };

	if (node->hidden)
		on_attempt(t, node, false);
	answer(t, node->hidden || !node->dir ? -EACCES : 0, &open, sizeof(open));
}

/* Puts an entry into a listing; 0 when it is full. */
static size_t add_listed(const struct cordon_tripwires *t, bool plus, uint64_t number, const char *name, char *to,
			 size_t room)
{
	const size_t head = plus ? FUSE_NAME_OFFSET_DIRENTPLUS : FUSE_NAME_OFFSET;
	size_t len = strlen(name), n = FUSE_DIRENT_ALIGN(head + len);
	struct fuse_dirent *entry = (struct fuse_dirent *)(void *)(to + (head - FUSE_NAME_OFFSET));
	struct cordon_trip_node node;

	if (n > room || !cordon_trip_find(t->plan, number, &node))
		return 0;
	memset(to, 0, n);
	if (plus)
		fill_entry(t, number, &node, (struct fuse_entry_out *)(void *)to);
	entry->ino = number;
	entry->off = number + 1;
	entry->namelen = (uint32_t)len;
	entry->type = node.dir ? S_IFDIR >> 12 : S_IFREG >> 12;
	memcpy(entry->name, name, len);
	return n;
}

/* A listing has no "." and "..": nobody needs them, and most programs skip them. */
static void on_list(struct cordon_tripwires *t, const struct fuse_read_in *asked, bool plus)
{
	size_t room = asked->size < sizeof(t->out.bytes) ? asked->size : sizeof(t->out.bytes), used = 0, n;
	char digits[CORDON_DIGITS_SIZE];
	uint64_t from = asked->offset, number;
	const char *name;

	while ((number = cordon_trip_next(t->plan, t->in.header.nodeid, from, &name, digits)) &&
	       (n = add_listed(t, plus, number, name, t->out.bytes + used, room - used))) {
		used += n;
		from = number + 1;
	}
	answer(t, 0, t->out.bytes, used);
}

static void on_init(const struct cordon_tripwires *t, const struct fuse_init_in *asked)
{
	struct fuse_init_out init = { .major = FUSE_KERNEL_VERSION,
				      .minor = asked->minor < FUSE_KERNEL_MINOR_VERSION ? asked->minor
											: FUSE_KERNEL_MINOR_VERSION,
				      .max_readahead = asked->max_readahead,
				      .flags = asked->flags & FUSE_DO_READDIRPLUS,
				      .max_write = 4096 };

	answer(t, asked->major == FUSE_KERNEL_VERSION ? 0 : -EPROTO, &init, sizeof(init));
}

static void on_access(const struct cordon_tripwires *t, const struct cordon_trip_node *node, uint32_t mask)
{
	answer(t, node->hidden || mask & W_OK ? -EACCES : 0, NULL, 0);
}

/* Answers the request of n bytes that was read. */
static void serve(struct cordon_tripwires *t, size_t n)
{
	static const struct fuse_statfs_out statfs = { .st = { .bsize = 4096, .frsize = 4096, .namelen = NAME_MAX } };
	const struct fuse_in_header *header = &t->in.header;
	const void *argument = t->in.bytes + sizeof(*header);
	struct cordon_trip_node node;

	if (header->opcode == FUSE_FORGET || header->opcode == FUSE_BATCH_FORGET || header->opcode == FUSE_INTERRUPT)
		return; /* they want no answer */
	if (header->opcode == FUSE_INIT) {
		on_init(t, argument);
		return;
	}
	if (!cordon_trip_find(t->plan, header->nodeid, &node)) {
		answer(t, -ESTALE, NULL, 0);
		return;
	}
	t->in.bytes[n < sizeof(t->in.bytes) ? n : sizeof(t->in.bytes) - 1] = '\0';
	switch (header->opcode) {
	case FUSE_LOOKUP:
		on_lookup(t, &node, argument);
		break;
	case FUSE_GETATTR:
		on_getattr(t, &node);
		break;
	case FUSE_OPEN:
	case FUSE_OPENDIR:
		on_open(t, &node);
		break;
	case FUSE_READDIR:
	case FUSE_READDIRPLUS:
		on_list(t, argument, header->opcode == FUSE_READDIRPLUS);
		break;
	case FUSE_ACCESS:
		on_access(t, &node, ((const struct fuse_access_in *)argument)->mask);
		break;
	case FUSE_STATFS:
		answer(t, 0, &statfs, sizeof(statfs));
		break;
	case FUSE_RELEASEDIR:
	case FUSE_DESTROY:
		answer(t, 0, NULL, 0);
		break;
	case FUSE_GETXATTR:
	case FUSE_LISTXATTR:
	case FUSE_FSYNCDIR:
	case FUSE_IOCTL:
	case FUSE_POLL:
		answer(t, -ENOSYS, NULL, 0);
		break;
	default:
		/* A newer kernel may ask something new; it can do without. All others change something. */
		answer(t, header->opcode > FUSE_COPY_FILE_RANGE ? -ENOSYS : -EACCES, NULL, 0);
	}
}

void cordon_tripwires_serve(struct cordon_tripwires *t)
{
	for (unsigned int i = 0; i < AT_ONCE && t->fd >= 0; i++) {
		ssize_t n = read(t->fd, t->in.bytes, sizeof(t->in.bytes) - 1);

		if (n < 0 && (errno == EINTR || errno == ENOENT))
			continue; /* ENOENT: the caller was killed before we read its request */
		if (n < 0 && errno == EAGAIN)
			return;
		if (n < (ssize_t)sizeof(t->in.header)) {
			cordon_closep(&t->fd); /* ENODEV: the last mount is gone */
			return;
		}
		serve(t, (size_t)n);
	}
}
