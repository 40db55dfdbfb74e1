/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cordon-lens: a process that shows the run a directory tree as the policy allows it, served to the kernel over
 * /dev/fuse.
 *
 * A *node* is what the kernel knows by a node id: one file, reached under one or several names that give the same
 * rights. A *name* is an entry of a directory node. The path of a node is the chain of its names; every rename
 * through the view updates it.
 *
 * INVARIANT: the lens opens, changes and shows files only through lens_open_node() and through single names below a
 * directory that it returned. lens_open_node() judges the path, walks it from the root without following any link,
 * and compares what it found with the identity of the node. So a file that the host moved, replaced or swapped is
 * never served under a node that stands for another file: the answer is ESTALE, and the kernel looks the name up
 * again.
 *
 * The process has two threads. One serves requests and holds `lock` while it does. The other one (monitor.c) learns
 * from fanotify what changes on the host. When the kernel must drop something from its caches, a separate process
 * (invalidator.c) asks it to, because the kernel may keep that process waiting. Changes that fanotify does not
 * report show when the kernel asks for attributes; that answer waits until the kernel has dropped the old content
 * (delayed.c).
 */
#ifndef CORDON_LENS_LENS_H
#define CORDON_LENS_LENS_H

#define FUSE_USE_VERSION 314
#include <fuse_lowlevel.h>
#include <pthread.h>
#include <sys/stat.h>

#include "base/meter.h"
#include "policy/policy.h"
#include "sandbox/host/lens_record.h"

#define LENS_BUCKETS (1u << 16)
#define LENS_NODES_MAX (1u << 18)     /* with more, the kernel is asked to forget some; twice as many is an error */
#define LENS_FILES_MAX 512	      /* descriptors kept open for reading and listing */
#define LENS_HANDLES_MAX 256	      /* descriptors kept because the file can be written only through them */
#define LENS_RECENT 16		      /* directories kept open because a name was just looked up in them */
#define LENS_RECENT_NS 1000000	      /* how long another look-up may use one of them without verifying it again */
#define LENS_MARKS_MAX (1u << 15)     /* directories whose changes fanotify reports */
#define LENS_TEMP_NAMES_MAX 1024      /* temporary names of atomic saves that exist at one time */
#define LENS_REQUEST_MAX (256u << 10) /* bytes in one read or write */
#define LENS_COPY_MAX (16u << 20)     /* bytes copied in one request */
#define LENS_MOVE_MAX 4096	      /* entries judged one by one before a directory is moved */
#define LENS_MOVE_LEVELS 64	      /* levels below that directory: each costs stack and a descriptor */
#define LENS_STALE_MAX 4096	      /* nodes waiting to be dropped from the kernel's caches */
#define LENS_SHOWN_MAX (1u << 20)     /* bytes of the names that the run sees outside the root */
#define LENS_MADE_MAX (1u << 21)      /* files that are remembered because the run made them beside a boundary */
#define LENS_LISTED_DIRS 64	      /* directories of boundaries whose names are remembered at the start */
#define LENS_LISTED_NAMES 4096	      /* names remembered of each */
#define LENS_REFUSALS_MAX 256	      /* refused requests whose answers wait for the supervisor */

/* How long an answer stays valid in the kernel, in seconds: where fanotify reports the host's changes, and where it
 * does not. */
#define LENS_VALID_LONG 86400.0
#define LENS_VALID_SHORT 0.5

/* Identifies a file as long as it exists. The time of birth distinguishes files that had the same inode number one
 * after the other. */
struct lens_id {
	dev_t dev;
	ino_t ino;
	int64_t born;
};

enum lens_rights {
	LENS_HIDDEN, /* the run does not see it and gets EACCES */
	LENS_LEADS,  /* a directory above something granted: it can be walked, and lists what is granted */
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
	struct lens_name *names;     /* NULL for the root, and for a file whose last name was removed */
	uint64_t lookups;	     /* references the kernel holds */
	uint64_t generation;
	size_t children;		 /* names and temporary names below it */
	mode_t type;			 /* S_IFMT part */
	bool writable;			 /* its names may be written; otherwise they may only be read */
	bool gone;			 /* removed from the table of ids: only pin_fd leads to it */
	bool known;			 /* the kernel has the content with the time and size below */
	bool unmonitored;		 /* fanotify may not report its changes */
	bool fresh;			 /* changed so recently that another change may have the same time */
	int pin_fd;			 /* O_PATH descriptor of a file without a name, or -1 */
	int file_fd;			 /* open for reading or listing, or -1; counted in lens.n_files */
	struct lens_node *newer, *older; /* list of open files, the most recently used first */
	struct timespec ctime;		 /* with size: the content that the kernel has */
	off_t size;
	uint64_t drop;		/* number of the last request to drop the content; see lens.dropped */
	struct lens_mark *mark; /* of a directory: how fanotify names it in its reports, or NULL */
};

/* A temporary name that this run made, and that is out of scope by its name. */
struct lens_temp_name {
	struct lens_temp_name *next;
	struct lens_node *parent; /* counted in parent->children */
	struct lens_id id;
	char text[];
};

/* A directory that was verified less than LENS_RECENT_NS ago. */
struct lens_recent {
	const struct lens_node *node;
	int fd;
	int64_t until; /* CLOCK_MONOTONIC, ns */
};

/* A descriptor that only the process which made the file can use (lens_op_create). The kernel sends RELEASE only as
 * long as it sends OPEN, so the oldest descriptor is closed to make room for the next. */
struct lens_handle {
	uint64_t number; /* the kernel's number for it, never used again; 0: free */
	int fd;
};

/* Entries of a directory that were read and that the kernel has not asked for yet. */
struct lens_listing {
	const struct lens_node *node;
	off_t next; /* the offset of the entry at `at` */
	size_t at, end;
	_Alignas(8) char entries[32768];
};

/* known.c: what the run made beside boundaries, which names were there when the lens started, and when that was. */
struct lens_known {
	struct lens_id *made; /* hashed; `size` slots, the number 0 is free */
	size_t size, n_made;
	uint64_t *names; /* sums of a directory's identity and a name in it, sorted */
	size_t n_names;
	int64_t started; /* CLOCK_BOOTTIME, ns */
	int64_t offset; /* of CLOCK_REALTIME from it: the smallest one seen, which a clock that is set back makes smaller */
};

struct lens_delayed;

/* A refused request, which is answered when the supervisor has seen the record of it. */
struct lens_refusal {
	fuse_req_t req;
	uint64_t number;
	int64_t until; /* CLOCK_MONOTONIC, ms */
	int error;
};

struct lens {
	pthread_mutex_t lock;
	struct cordon_policy *policy;
	int root_fd;
	uid_t euid;
	bool editor_temps;
	bool no_attributes;	    /* the file system has no attributes of users */
	struct cordon_meter *meter; /* or NULL */
	struct cordon_buf shown;    /* absolute paths outside the root that the run sees, each with its NUL */
	struct fuse_session *session;
	struct lens_node *root;
	struct lens_node **by_id;
	struct lens_name **by_name;
	size_t n_nodes;
	uint64_t generation;
	struct lens_node *newest, *oldest;
	size_t n_files, max_files;
	struct lens_temp_name *temp_names;
	size_t n_temp_names;
	struct lens_listing listing;
	struct lens_recent recent[LENS_RECENT];
	struct lens_handle handles[LENS_HANDLES_MAX]; /* at number % LENS_HANDLES_MAX */
	uint64_t last_handle;
	struct lens_known known;
	char *bytes; /* LENS_REQUEST_MAX, for reads */
	/* delayed.c: used by the serving thread only */
	struct lens_delayed *delayed, **delayed_end;
	uint64_t last_drop, dropped; /* the kernel has done the requests to drop content up to this number */
	/* refusals.c: used by the serving thread only */
	int refusals_fd;     /* socket of the supervisor, or -1 */
	unsigned int missed; /* refusals that could not be sent to it */
	struct lens_refusal refusals[LENS_REFUSALS_MAX];
	size_t n_refusals;
	uint64_t last_record;
	uint64_t reported; /* number of the record about the current request, or 0 */
	/* invalidator.c */
	int invalidator_fd; /* socket of the invalidator, or -1 */
	int content_fd;	    /* the same, for content that a delayed answer waits for */
	pid_t invalidator;
	/* monitor.c */
	int fanotify_fd; /* -1 without fanotify: then no answer is valid for long */
	int wake_fd;
	struct lens_mark **marks;
	size_t n_marks;
	uint64_t stale[LENS_STALE_MAX];
	size_t n_stale;
	bool all_stale;
	bool ending;
	bool invalidator_gone; /* the invalidator is gone: nobody can correct what the kernel caches */
};

/* What a request wants to do to a name. The refusal depends on it. An empty directory is made and removed as such; what
 * comes or goes by a rename is created or removed. */
enum lens_change { LENS_CREATE, LENS_REMOVE, LENS_MODIFY, LENS_MAKE_DIR, LENS_REMOVE_DIR };

/* ---- judge.c: the rights of paths; pure except that it reads links ---- */

/* Protects also what protected paths lead to through links, so that neither the links nor their targets can be
 * changed. */
int lens_judge_prepare(struct lens *lens, struct cordon_error *err);
/* The rights of a path by its name alone. LENS_LEADS holds only if it is a directory. */
enum lens_rights lens_judge(const struct lens *lens, const char *path);
/* Whether a rule refuses the path (`none`, or protected), and not only the lack of a grant. */
bool lens_judge_forbidden(const struct lens *lens, const char *path);
/* Returns 0, or the refusal: -EACCES, -EROFS, -EBUSY. */
int lens_judge_change(const struct lens *lens, const char *path, bool directory, enum lens_change change);
/* Whether something that the run may write could be made below the directory. */
bool lens_judge_leads_write(const struct lens *lens, const char *path);
/* Whether the run may reach what the link at `path` with the text `target` resolves to. */
bool lens_judge_link(const struct lens *lens, const char *path, const char *target);
/* Resolves such a link; false when the text is too long. */
bool lens_judge_resolve(const struct lens *lens, const char *path, const char *target, struct cordon_resolved *ret);
/* A directory may move only if everything below it is writable under both names. Returns 0, or -EXDEV so that
 * programs copy instead. */
int lens_judge_move(struct lens *lens, int dir_fd, const char *name, const char *from, const char *to);
/* Whether everything at and below the path may be written, now and later. */
bool lens_judge_uniform(const struct lens *lens, const char *path);

/* ---- known.c: what the run may change beside a boundary ---- */

/* Reads the names in the directories of boundaries. After lens_nodes_init(). */
void lens_known_init(struct lens *lens);
/* Whether the policy's right to write the path counts for this file: false for what the host made during the run beside
 * a boundary. */
bool lens_known(struct lens *lens, const char *path, const struct statx *stx);
/* The run made the file at this path, or moved it there. */
void lens_known_made(struct lens *lens, const char *path, const struct statx *stx);
/* The file is gone. */
void lens_known_drop(struct lens *lens, const struct lens_id *id);
/* Whether the path is a predictable temporary name of something in the same directory that the run
 * may not write; `ret` gets the name of that. */
bool lens_temp_of_boundary(const struct lens *lens, int dir_fd, const char *path, char ret[static NAME_MAX + 1]);

/* ---- node.c: the table, paths, verified opens ---- */

int lens_nodes_init(struct lens *lens);
struct lens_node *lens_node(struct lens *lens, fuse_ino_t ino);
fuse_ino_t lens_ino(const struct lens *lens, const struct lens_node *node);
/* Finds or makes the node of the file under (parent, text) and counts a lookup. NULL without memory. */
struct lens_node *lens_node_take(struct lens *lens, struct lens_node *parent, const char *text, const struct statx *stx,
				 bool writable);
void lens_node_forget(struct lens *lens, struct lens_node *node, uint64_t lookups);
void lens_node_release(struct lens *lens, struct lens_node *node); /* frees the node when nothing refers to it */
struct lens_name *lens_name_find(const struct lens *lens, const struct lens_node *parent, const char *text);
/* Removes the name. A node without any name keeps `pin_fd` (which this function takes; -1 for none). */
void lens_name_drop(struct lens *lens, struct lens_name *name, int pin_fd);
int lens_name_add(struct lens *lens, struct lens_node *node, struct lens_node *parent, const char *text);

/* The path is "" for the root. Returns -ENAMETOOLONG, or -ESTALE for a node without a name. */
int lens_path(const struct lens *lens, const struct lens_node *node, char ret[static CORDON_PATH_MAX]);
int lens_path_below(const struct lens *lens, const struct lens_node *parent, const char *text,
		    char ret[static CORDON_PATH_MAX]);
/* Returns an O_PATH descriptor of exactly this node, reached by a name that still has the rights; see the INVARIANT
 * above. With `write`, returns -EROFS or -EACCES where the node may only be read. */
int lens_open_node(struct lens *lens, struct lens_node *node, bool write);
/* The same with `write`. Reports a refusal by the policy. */
int lens_open_to_change(struct lens *lens, struct lens_node *node);

/*
 * The same for a directory in which a name is only looked up; the descriptor belongs to the lens. A directory that
 * was verified within LENS_RECENT_NS is not verified again: the answer was true at that time. Changes never use this
 * function, so that there is no gap when the host moves the directory to a protected name.
 */
int lens_open_recent(struct lens *lens, struct lens_node *node);
/* Closes the descriptor of one directory, or of all (NULL). */
void lens_recent_drop(struct lens *lens, const struct lens_node *node);

bool lens_id_equal(const struct lens_id *a, const struct lens_id *b);
struct lens_id lens_id_of(const struct statx *stx);
/* Whether the root is a view of the run, which nobody else changes. */
bool lens_in_view(void);
/* Whether what has a name of the node, which `stx` describes, is its file. */
bool lens_node_is(const struct lens_node *node, const struct statx *stx);
/* A directory was moved entry by entry: gives the nodes of it and of the directories below it the numbers of the new
 * directories, so that what the kernel knows of them stays valid. Call it when the node has its new name. */
void lens_node_renumber(struct lens *lens, struct lens_node *dir);
/* statx() without following a link; with the name "", of the descriptor itself. Returns 0 or -errno. */
int lens_stat(int fd, const char *name, struct statx *ret);

/* ---- file.c: descriptors kept open, bounded ---- */

/* Returns the node's descriptor, open for reading or listing, which belongs to the node. `handle` is a file handle
 * or 0. */
int lens_file(struct lens *lens, struct lens_node *node, uint64_t handle);
/* Keeps the descriptor with which a file was made; returns its handle for the kernel. */
uint64_t lens_handle_keep(struct lens *lens, int fd);
void lens_handle_drop(struct lens *lens, uint64_t number);
/* Returns a new descriptor for writing, which the caller must close. */
int lens_file_write(struct lens *lens, struct lens_node *node, uint64_t handle);
void lens_file_close(struct lens *lens, struct lens_node *node);

/* ---- attr.c ---- */

/* Fills in the attributes that the kernel gets for the file `name` in fd. Every file belongs to the caller, and the
 * owner's bits show what the lens can do with it: the user namespace of the view has no ids of other users. */
void lens_attr(const struct lens *lens, const struct fuse_ctx *ctx, int fd, const char *name, const struct statx *stx,
	       bool writable, struct stat *ret);
/* Returns for how many seconds the kernel may use the attributes that it gets now. 0 when the kernel may hold other
 * content than the file has: then it asks for the attributes again before it reads, and that answer waits until it
 * has dropped the content. */
double lens_attr_valid_for(const struct lens *lens, struct lens_node *node, const struct statx *stx);
/* Called before and after a change of content or attributes through the view: if the kernel had the content of
 * before the change, it has the content of after it. */
/* Whether the file system of a directory has no extended attributes of users. */
bool lens_attr_has_none(int dir_fd);
bool lens_attr_kernel_knows(const struct lens_node *node, int fd);
void lens_attr_own_change(struct lens_node *node, int fd, bool known);
void lens_op_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi);
void lens_op_setattr(fuse_req_t req, fuse_ino_t ino, struct stat *attr, int to_set, struct fuse_file_info *fi);
void lens_op_setxattr(fuse_req_t req, fuse_ino_t ino, const char *name, const char *value, size_t size, int flags);
void lens_op_getxattr(fuse_req_t req, fuse_ino_t ino, const char *name, size_t size);
void lens_op_listxattr(fuse_req_t req, fuse_ino_t ino, size_t size);
void lens_op_removexattr(fuse_req_t req, fuse_ino_t ino, const char *name);
void lens_op_statfs(fuse_req_t req, fuse_ino_t ino);

/* ---- lookup.c ---- */

/* The rights of the file under a name of an open directory; LENS_HIDDEN when there is none. */
enum lens_rights lens_rights(struct lens *lens, struct lens_node *parent, int dir_fd, const char *name);
/* Fills in the entry of something that was just made under (parent, name). */
int lens_entry_made(struct lens *lens, const struct fuse_ctx *ctx, struct lens_node *parent, int dir_fd,
		    const char *name, struct fuse_entry_param *ret);
void lens_reply_entry(fuse_req_t req, const struct fuse_entry_param *entry);
void lens_op_lookup(fuse_req_t req, fuse_ino_t parent, const char *name);
void lens_op_forget(fuse_req_t req, fuse_ino_t ino, uint64_t lookups);
void lens_op_forget_multi(fuse_req_t req, size_t n, struct fuse_forget_data *forgets);
void lens_op_readlink(fuse_req_t req, fuse_ino_t ino);

void lens_op_readdir(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off, struct fuse_file_info *fi);
void lens_op_readdirplus(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off, struct fuse_file_info *fi);
void lens_op_fsyncdir(fuse_req_t req, fuse_ino_t ino, int datasync, struct fuse_file_info *fi);
void lens_listing_drop(struct lens *lens, const struct lens_node *node);

/* ---- file.c: requests ---- */

void lens_op_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off, struct fuse_file_info *fi);
void lens_op_write(fuse_req_t req, fuse_ino_t ino, const char *bytes, size_t size, off_t off, struct fuse_file_info *fi);
void lens_op_fsync(fuse_req_t req, fuse_ino_t ino, int datasync, struct fuse_file_info *fi);
void lens_op_fallocate(fuse_req_t req, fuse_ino_t ino, int mode, off_t offset, off_t length, struct fuse_file_info *fi);
void lens_op_lseek(fuse_req_t req, fuse_ino_t ino, off_t off, int whence, struct fuse_file_info *fi);
void lens_op_copy_file_range(fuse_req_t req, fuse_ino_t ino_in, off_t off_in, struct fuse_file_info *fi_in,
			     fuse_ino_t ino_out, off_t off_out, struct fuse_file_info *fi_out, size_t len, int flags);

/* ---- change.c ---- */

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

/* ---- temp_names.c ---- */

/* Whether `name` has the shape of the temporary name of an atomic save, beside something that the run may write.
 * `link` is for a symbolic link, which only one of the shapes allows. */
bool lens_temp_name_shape(const struct lens *lens, const char *dir_path, int dir_fd, const char *name, bool link);
struct lens_temp_name *lens_temp_name_find(const struct lens *lens, const struct lens_node *parent, const char *name);
/* The same, but only if the name still stands for this file: the host may have put another in its place. */
struct lens_temp_name *lens_temp_name_find_file(const struct lens *lens, const struct lens_node *parent,
						const char *name, const struct lens_id *id);
int lens_temp_name_add(struct lens *lens, struct lens_node *parent, const char *name, const struct lens_id *id);
void lens_temp_name_drop(struct lens *lens, struct lens_temp_name *temp);
/* Whether a temporary name lies in the directory or below it. */
bool lens_temp_names_below(const struct lens *lens, const struct lens_node *dir);
/* Removes the remaining temporary names from the host. */
void lens_temp_names_remove(struct lens *lens);

/* ---- invalidator.c ---- */

/* Returns a clone of the device for the invalidator, or -errno. */
int lens_invalidator_device(int fuse_fd);
/* Starts the invalidator. The calling process must not have threads yet. Without an invalidator no answer is valid
 * for long. */
int lens_invalidator_start(struct lens *lens, int device);
void lens_invalidator_stop(struct lens *lens);
/* Has the kernel drop the attributes (and the content) of a node, or a name. May wait, so the lock must not be held. */
void lens_invalidate_inode(const struct lens *lens, uint64_t ino, bool content);
void lens_invalidate_entry(const struct lens *lens, uint64_t parent, const char *name);

/* The same for content that a delayed answer waits for. Called by the serving thread: it never waits, and returns
 * -EAGAIN when the socket is full. Numbers grow from 1. lens_invalidated_content() returns the last number that is
 * done (UINT64_MAX without an invalidator). */
int lens_invalidate_content(const struct lens *lens, uint64_t ino, uint64_t number);
uint64_t lens_invalidated_content(const struct lens *lens);

/* ---- delayed.c ---- */

/* Has the kernel drop the content of the node, and then answers with these attributes. Returns 0 or -ENOMEM. */
int lens_delayed_attr(fuse_req_t req, struct lens_node *node, const struct stat *attr);
/* Called before a request is read. Sends the answers that are due. While others still
 * wait, it waits for them or for a request. */
void lens_delayed_serve(struct lens *lens);
/* Called when an answer begins to wait: reading from the device must not block any more. */
void lens_delayed_wait(const struct lens *lens);

/* ---- refusals.c ---- */

/* Reports to the supervisor that the policy refused a change of `path`. Not for refusals that are only differences
 * from the host's file system. */
void lens_report_change(struct lens *lens, enum cordon_lens_op op, const char *path);
/* Reports a change that was refused because the host made the file during the run, beside a boundary; or, with the name
 * of a boundary, because the path is a temporary name of it. Returns -EACCES. */
int lens_report_beside(struct lens *lens, enum cordon_lens_op op, const char *path, const char *boundary);
/* Reports that a directory was not renamed, because too much is in it (base/move_dir.h). */
void lens_report_too_large(struct lens *lens, const char *path);
/* Answers a request with an error. If a refusal was reported during this request, the answer waits until the
 * supervisor has seen it. */
void lens_reply_err(fuse_req_t req, int error);
/* Reports that the policy refused a look-up of `name`, which stands for `path`. True when the request will be
 * answered later. */
bool lens_report_lookup(fuse_req_t req, const char *name, const char *path, bool exists);
/* Reports how many refusals could not be sent, if the socket takes it now. */
void lens_report_missed(struct lens *lens);
/* How long poll() may wait for the refusals whose answers wait; and a call that sends the answers that are due. */
int lens_refusals_ms(const struct lens *lens);
void lens_refusals_serve(struct lens *lens);

/* ---- monitor.c ---- */

int lens_monitor_init(struct lens *lens);
/* What the second thread runs, until lens_monitor_stop(), which a signal handler may call. */
void lens_monitor_run(struct lens *lens);
void lens_monitor_stop(struct lens *lens);
/* Has fanotify report changes in a directory; `path_fd` is its O_PATH descriptor. */
void lens_monitor_mark(struct lens *lens, struct lens_node *node, int path_fd);
void lens_monitor_unmark(struct lens *lens, struct lens_node *node);
/* There are too many nodes: has the second thread ask the kernel to forget some. */
void lens_monitor_trim(const struct lens *lens);
/* Has the second thread ask the kernel to drop what it caches of the node. Called with the lock held; returns at
 * once. */
void lens_monitor_drop_later(struct lens *lens, const struct lens_node *node);

#endif
