/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cordon-lens: a view of a directory tree through the policy, served to the kernel over /dev/fuse.
 *
 * A *node* is what the kernel knows by a node id: one file, reached under one or several names that give the same
 * rights. A *name* is an entry of a directory node. The path of a node is the chain of its names, kept up to date on
 * every rename that goes through the view.
 *
 * INVARIANT: nothing is opened, changed or told except through lens_open_node() and single names below a directory
 * that it returned. It judges the path, walks it from the root without following any link, and compares what it
 * found with the identity of the node. So what the host moved, replaced or swapped is never served under a node that
 * stands for something else: the answer is ESTALE, and the kernel looks the name up again.
 *
 * Two threads: one serves requests and holds `lock` while it does; the other (notice.c) hears what changes on the
 * host. What the kernel must drop for it goes to a process of its own (teller.c), which the kernel may keep waiting.
 * Changes of which nobody hears show when the kernel asks for attributes; that answer waits for the teller (late.c).
 */
#ifndef CORDON_LENS_LENS_H
#define CORDON_LENS_LENS_H

#define FUSE_USE_VERSION 314
#include <fuse_lowlevel.h>
#include <pthread.h>
#include <sys/stat.h>

#include "policy/policy.h"

#define LENS_BUCKETS (1u << 16)
#define LENS_NODES_MAX (1u << 18)     /* above, the kernel is asked to forget; twice that many is an error */
#define LENS_FILES_MAX 512	      /* descriptors kept open for reading and listing */
#define LENS_HANDLES_MAX 256	      /* files that only the descriptor they were made with can write */
#define LENS_RECENT 16		      /* directories in which names were just looked up */
#define LENS_RECENT_NS 1000000	      /* how long they need not be verified anew for another name */
#define LENS_MARKS_MAX (1u << 15)     /* directories whose changes the host reports to us */
#define LENS_TEMPS_MAX 1024	      /* temporary names of atomic saves that live at one time */
#define LENS_REQUEST_MAX (256u << 10) /* bytes in one read or write */
#define LENS_COPY_MAX (16u << 20)     /* bytes copied in one request */
#define LENS_MOVE_MAX 4096	      /* entries judged one by one before a directory is moved */
#define LENS_MOVE_LEVELS 64	      /* and how deep they may lie: each level costs stack and a descriptor */
#define LENS_STALE_MAX 4096	      /* nodes waiting to be dropped from the kernel's caches */

/* How long the kernel may believe an answer, in seconds: when the host's changes are reported to us, and when not. */
#define LENS_BELIEVE 86400.0
#define LENS_DOUBT 0.5

/* Tells files apart for as long as one of them lives; the time of birth tells a reused inode number. */
struct lens_id {
	dev_t dev;
	ino_t ino;
	int64_t born;
};

enum lens_rights {
	LENS_HIDDEN, /* does not exist for the run: EACCES */
	LENS_LEADS,  /* a directory on the way to something granted: can be walked, lists what is granted */
	LENS_READ,
	LENS_WRITE,
};

struct lens_node;

struct lens_name {
	struct lens_node *parent;
	struct lens_node *node;
	struct lens_name *next;	     /* another name of the same node */
	struct lens_name *hash_next; /* same bucket of (parent, text) */
	char text[];
};

struct lens_node {
	struct lens_id id;
	struct lens_node *hash_next; /* same bucket of id */
	struct lens_name *names;     /* none: the root, or a file whose last name was taken away */
	uint64_t lookups;	     /* references the kernel holds */
	uint64_t generation;
	size_t children;		 /* names and temporary names below it */
	mode_t type;			 /* S_IFMT part */
	bool writable;			 /* rights of its names: write, or only read */
	bool gone;			 /* taken out of the table of ids: only the pin leads to it */
	bool told;			 /* the kernel was told of the content below */
	bool doubted;			 /* its changes may go unreported */
	bool fresh;			 /* so new that another change may bear the same time */
	int pin_fd;			 /* O_PATH descriptor of a file without a name, or -1 */
	int file_fd;			 /* open for reading or listing, or -1; counted in lens.n_files */
	struct lens_node *newer, *older; /* list of open files, by use */
	struct timespec ctime;		 /* with size: the content as last told */
	off_t size;
	uint64_t drop;		/* the last time the kernel was asked to drop the content; see lens.dropped */
	struct lens_mark *mark; /* directories: how the host's reports name it, or NULL */
};

/* A temporary name that this run made and that is out of scope by its name. */
struct lens_temp {
	struct lens_temp *next;
	struct lens_node *parent; /* counted in its children */
	struct lens_id id;
	char text[];
};

/* A directory that was verified a moment ago. */
struct lens_recent {
	const struct lens_node *node;
	int fd;
	int64_t until; /* CLOCK_MONOTONIC, ns */
};

/* A descriptor that only the maker of its file can use (lens_op_create). The kernel says when it is closed only as
 * long as it sends OPEN, so the oldest one makes room for the next. */
struct lens_handle {
	uint64_t number; /* how the kernel knows it; never used again, 0: free */
	int fd;
};

/* What was read of a directory and not asked for yet. */
struct lens_listing {
	const struct lens_node *node;
	off_t next; /* the offset at which `at` continues */
	size_t at, end;
	_Alignas(8) char entries[32768];
};

struct lens_late;

struct lens {
	pthread_mutex_t lock;
	struct cordon_policy *policy;
	int root_fd;
	uid_t euid;
	bool editor_temps;
	struct fuse_session *session;
	struct lens_node *root;
	struct lens_node **by_id;
	struct lens_name **by_name;
	size_t n_nodes;
	uint64_t generation;
	struct lens_node *newest, *oldest;
	size_t n_files, max_files;
	struct lens_temp *temps;
	size_t n_temps;
	struct lens_listing listing;
	struct lens_recent recent[LENS_RECENT];
	struct lens_handle handles[LENS_HANDLES_MAX]; /* at number % LENS_HANDLES_MAX */
	uint64_t last_handle;
	char *bytes; /* LENS_REQUEST_MAX, for reads */
	/* late.c: of the serving thread alone */
	struct lens_late *late, **late_end;
	uint64_t last_drop, dropped; /* the kernel has dropped what was asked for up to this */
	/* teller.c */
	int teller_fd;	/* socket of the teller, or -1 */
	int content_fd; /* the same for content that an answer waits for */
	pid_t teller;
	/* notice.c */
	int watch_fd; /* fanotify, or -1: then nothing is believed for long */
	int wake_fd;
	struct lens_mark **marks;
	size_t n_marks;
	uint64_t stale[LENS_STALE_MAX];
	size_t n_stale;
	bool all_stale;
	bool ending;
	bool untold; /* the teller is gone: what the kernel holds cannot be put right any more */
};

/* What a request wants to do to a name, for the choice of the refusal. */
enum lens_change { LENS_CREATE, LENS_REMOVE, LENS_MODIFY };

/* ---- judge.c: rights of paths; pure but for links ---- */

/* Adds to the policy where protected paths lead through links, so that links and targets are held. */
int lens_judge_prepare(struct lens *lens, struct cordon_error *err);
/* Rights by name alone; LEADS means "if it is a directory". */
enum lens_rights lens_judge(const struct lens *lens, const char *path);
/* Whether the path is refused by a rule that says so (`none`, protected), not only by the lack of a grant. */
bool lens_judge_forbidden(const struct lens *lens, const char *path);
/* 0 or the refusal: -EACCES, -EROFS, -EBUSY. */
int lens_judge_change(const struct lens *lens, const char *path, bool directory, enum lens_change change);
/* Whether a file or directory that can be written may come to be below the directory. */
bool lens_judge_leads_write(const struct lens *lens, const char *path);
/* What the link at `path` with text `target` resolves to may be reached. */
bool lens_judge_link(const struct lens *lens, const char *path, const char *target);
/* Everything below a directory that moves must be writable under both names: 0, or -EXDEV so that programs copy. */
int lens_judge_move(const struct lens *lens, int dir_fd, const char *name, const char *from, const char *to);

/* ---- node.c: the table, paths, verified opens ---- */

int lens_nodes_init(struct lens *lens);
struct lens_node *lens_node(struct lens *lens, fuse_ino_t ino);
fuse_ino_t lens_ino(const struct lens *lens, const struct lens_node *node);
/* Finds or makes the node for what stands under (parent, text) and counts a lookup. NULL without memory. */
struct lens_node *lens_node_take(struct lens *lens, struct lens_node *parent, const char *text, const struct statx *stx,
				 bool writable);
void lens_node_forget(struct lens *lens, struct lens_node *node, uint64_t lookups);
void lens_node_release(struct lens *lens, struct lens_node *node); /* frees it when nothing refers to it */
struct lens_name *lens_name_find(const struct lens *lens, const struct lens_node *parent, const char *text);
/* The name is gone; a node without names keeps `pin_fd` (taken, -1 when there is none). */
void lens_name_drop(struct lens *lens, struct lens_name *name, int pin_fd);
int lens_name_add(struct lens *lens, struct lens_node *node, struct lens_node *parent, const char *text);

/* "" for the root; -ENAMETOOLONG, -ESTALE for a node without a name. */
int lens_path(const struct lens *lens, const struct lens_node *node, char ret[static CORDON_PATH_MAX]);
int lens_path_below(const struct lens *lens, const struct lens_node *parent, const char *text,
		    char ret[static CORDON_PATH_MAX]);
/* An O_PATH descriptor of exactly this node, reached by a name that still has the rights; see INVARIANT. With
 * `write`, -EROFS or -EACCES where it may only be read. */
int lens_open_node(struct lens *lens, struct lens_node *node, bool write);

/*
 * The same for a directory in which a name is only looked up; the descriptor belongs to the lens. One that was verified
 * within LENS_RECENT_NS is taken as it is: what is told then was true at that time. Changes never use it: a host that
 * moves the directory to a protected name must find no gap.
 */
int lens_open_recent(struct lens *lens, struct lens_node *node);
/* Forgets the descriptor of one directory, or of all (NULL). */
void lens_recent_drop(struct lens *lens, const struct lens_node *node);

bool lens_id_equal(const struct lens_id *a, const struct lens_id *b);
struct lens_id lens_id_of(const struct statx *stx);
/* statx without following a link; "" is the descriptor itself. 0 or -errno. */
int lens_stat(int fd, const char *name, struct statx *ret);

/* ---- file.c: descriptors kept open, bounded ---- */

/* The node's descriptor, open for reading or listing; belongs to the node. `handle` is a file handle or 0. */
int lens_file(struct lens *lens, struct lens_node *node, uint64_t handle);
/* Keeps the descriptor a file was made with; returns the handle for the kernel. */
uint64_t lens_handle_keep(struct lens *lens, int fd);
void lens_handle_drop(struct lens *lens, uint64_t number);
/* A new descriptor for writing, the caller's to close. */
int lens_file_write(struct lens *lens, struct lens_node *node, uint64_t handle);
void lens_file_close(struct lens *lens, struct lens_node *node);
/* Opens what an O_PATH descriptor stands for. */
int lens_reopen(int path_fd, int flags);

/* ---- attr.c ---- */

/* What the kernel is told about a file that stands under `name` in fd. Everything belongs to the caller, and the
 * owner's bits say what the lens can do with it: ids of others have no place in the namespace of the view. */
void lens_attr(const struct lens *lens, const struct fuse_ctx *ctx, int fd, const char *name, const struct statx *stx,
	       bool writable, struct stat *ret);
/* For how long the kernel may believe what it is told now. Not at all (0) when the content is not the one that it was
 * told of, and may hold: then it asks for the attributes before it reads, and that answer waits until it is dropped. */
double lens_attr_told(const struct lens *lens, struct lens_node *node, const struct statx *stx);
/* Around a change of content or attributes through the view: what is there afterwards counts as told, if what was there
 * before did. */
bool lens_attr_as_told(const struct lens_node *node, int fd);
void lens_attr_own_change(struct lens_node *node, int fd, bool as_told);
void lens_op_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi);
void lens_op_setattr(fuse_req_t req, fuse_ino_t ino, struct stat *attr, int to_set, struct fuse_file_info *fi);
void lens_op_setxattr(fuse_req_t req, fuse_ino_t ino, const char *name, const char *value, size_t size, int flags);
void lens_op_getxattr(fuse_req_t req, fuse_ino_t ino, const char *name, size_t size);
void lens_op_listxattr(fuse_req_t req, fuse_ino_t ino, size_t size);
void lens_op_removexattr(fuse_req_t req, fuse_ino_t ino, const char *name);
void lens_op_statfs(fuse_req_t req, fuse_ino_t ino);

/* ---- lookup.c ---- */

/* Rights of what stands under a name of an open directory; HIDDEN when there is nothing. */
enum lens_rights lens_rights(struct lens *lens, struct lens_node *parent, int dir_fd, const char *name);
/* Judges and looks up one name of an open directory; counts a lookup. 0, -ENOENT for a name that may be made, or
 * the refusal. */
int lens_lookup(struct lens *lens, const struct fuse_ctx *ctx, struct lens_node *parent, int dir_fd, const char *name,
		struct fuse_entry_param *ret);
/* The entry of something that was just made under (parent, name). */
int lens_entry_made(struct lens *lens, const struct fuse_ctx *ctx, struct lens_node *parent, int dir_fd,
		    const char *name, struct fuse_entry_param *ret);
void lens_reply_entry(fuse_req_t req, const struct fuse_entry_param *entry);
void lens_op_lookup(fuse_req_t req, fuse_ino_t parent, const char *name);
void lens_op_forget(fuse_req_t req, fuse_ino_t ino, uint64_t lookups);
void lens_op_forget_multi(fuse_req_t req, size_t n, struct fuse_forget_data *forgets);
void lens_op_readlink(fuse_req_t req, fuse_ino_t ino);

/* ---- dir.c ---- */

void lens_op_readdir(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off, struct fuse_file_info *fi);
void lens_op_readdirplus(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off, struct fuse_file_info *fi);
void lens_op_fsyncdir(fuse_req_t req, fuse_ino_t ino, int datasync, struct fuse_file_info *fi);
void lens_listing_drop(struct lens *lens, const struct lens_node *node);

/* ---- io.c ---- */

void lens_op_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off, struct fuse_file_info *fi);
void lens_op_write(fuse_req_t req, fuse_ino_t ino, const char *bytes, size_t size, off_t off, struct fuse_file_info *fi);
void lens_op_fsync(fuse_req_t req, fuse_ino_t ino, int datasync, struct fuse_file_info *fi);
void lens_op_fallocate(fuse_req_t req, fuse_ino_t ino, int mode, off_t offset, off_t length, struct fuse_file_info *fi);
void lens_op_lseek(fuse_req_t req, fuse_ino_t ino, off_t off, int whence, struct fuse_file_info *fi);
void lens_op_copy_file_range(fuse_req_t req, fuse_ino_t ino_in, off_t off_in, struct fuse_file_info *fi_in,
			     fuse_ino_t ino_out, off_t off_out, struct fuse_file_info *fi_out, size_t len, int flags);

/* ---- change.c, rename.c ---- */

void lens_op_create(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode, struct fuse_file_info *fi);
void lens_op_release(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi);
void lens_op_mknod(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode, dev_t rdev);
void lens_op_mkdir(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode);
void lens_op_symlink(fuse_req_t req, const char *target, fuse_ino_t parent, const char *name);
void lens_op_link(fuse_req_t req, fuse_ino_t ino, fuse_ino_t parent, const char *name);
void lens_op_unlink(fuse_req_t req, fuse_ino_t parent, const char *name);
void lens_op_rmdir(fuse_req_t req, fuse_ino_t parent, const char *name);
void lens_op_rename(fuse_req_t req, fuse_ino_t parent, const char *name, fuse_ino_t to_parent, const char *to_name,
		    unsigned int flags);
/* Before a name is taken away: an O_PATH descriptor of its node, when the kernel still refers to it; else -1. */
int lens_pin(struct lens *lens, struct lens_node *parent, int dir_fd, const char *name);

/* ---- temps.c ---- */

/* Whether `name` has the shape of an atomic save's temporary name beside something that can be written. `link` for
 * a symbolic link, which only one shape may be. */
bool lens_temp_shape(const struct lens *lens, const char *dir_path, int dir_fd, const char *name, bool link);
struct lens_temp *lens_temp_find(const struct lens *lens, const struct lens_node *parent, const char *name);
/* The same, if it is this file: the host may have put another in its place. */
struct lens_temp *lens_temp_find_file(const struct lens *lens, const struct lens_node *parent, const char *name,
				      const struct lens_id *id);
int lens_temp_add(struct lens *lens, struct lens_node *parent, const char *name, const struct lens_id *id);
void lens_temp_drop(struct lens *lens, struct lens_temp *temp);
/* Whether there is one in the directory or below it. */
bool lens_temps_below(const struct lens *lens, const struct lens_node *dir);
/* Removes from the host what is left of them. */
void lens_temps_clean(struct lens *lens);

/* ---- teller.c ---- */

/* A clone of the device, for the teller; -errno where it cannot be had. */
int lens_teller_device(int fuse_fd);
/* Starts it; the calling process has no threads yet. Without one nothing may be believed for long. */
int lens_teller_start(struct lens *lens, int device);
void lens_teller_stop(struct lens *lens);
/* The kernel shall drop attributes (and content) of a node, or a name. May wait; the lock must not be held. */
void lens_tell_inode(const struct lens *lens, uint64_t ino, bool content);
void lens_tell_entry(const struct lens *lens, uint64_t parent, const char *name);

/* The same for content that an answer waits for, of the serving thread: never waits; -EAGAIN when there is no room.
 * Numbers grow from 1 on; the other call says up to which of them it is done (all of them without a teller). */
int lens_tell_content(const struct lens *lens, uint64_t ino, uint64_t number);
uint64_t lens_told_content(const struct lens *lens);

/* ---- late.c ---- */

/* Has the kernel drop the content of the node, and then answers with these attributes; 0 or -ENOMEM. */
int lens_late_attr(fuse_req_t req, struct lens_node *node, const struct stat *attr);
/* Before a request is read: gives answers that are due, and when others are not yet, waits for those or a request. */
void lens_late_serve(struct lens *lens);

/* ---- notice.c ---- */

int lens_notice_init(struct lens *lens);
/* The second thread: until lens_notice_stop(), which a signal handler may call. */
void lens_notice_run(struct lens *lens);
void lens_notice_stop(struct lens *lens);
/* Has changes below a directory reported; `path_fd` is its O_PATH descriptor. */
void lens_notice_watch(struct lens *lens, struct lens_node *node, int path_fd);
void lens_notice_unwatch(struct lens *lens, struct lens_node *node);
/* There are more nodes than there should be: the kernel shall forget some. */
void lens_notice_crowded(const struct lens *lens);
/* The kernel shall drop what it holds of the node; called with the lock held, done a moment later. */
void lens_notice_stale(struct lens *lens, const struct lens_node *node);

#endif
