/* SPDX-License-Identifier: Apache-2.0 */
/* The hand finds the calls that it has to serve. */
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "base/path.h"
#include "base/sys.h"
#include "sandbox/inside/deed.h"

#define SYS_setxattrat_ 463

static const struct served_call {
	long nr;
	cordon_deed_kind kind;
	int arg; /* -1: none */
} served_calls[] = {
	{ SYS_openat, CORDON_DEED_OPEN, -1 },	      { SYS_mkdirat, CORDON_DEED_MKDIR, 2 },
	{ SYS_mknodat, CORDON_DEED_MKNOD, 2 },	      { SYS_symlinkat, CORDON_DEED_SYMLINK, 0 },
	{ SYS_linkat, CORDON_DEED_LINK, 4 },	      { SYS_renameat2, CORDON_DEED_RENAME, 4 },
	{ SYS_renameat, CORDON_DEED_RENAME, -1 },     { SYS_bind, CORDON_DEED_BIND, -1 },
	{ SYS_unlinkat, CORDON_DEED_REMOVE, 2 },      { SYS_truncate, CORDON_DEED_TRUNCATE, 1 },
	{ SYS_setxattr, CORDON_DEED_SET_XATTR, -1 },  { SYS_lsetxattr, CORDON_DEED_SET_XATTR, -1 },
	{ SYS_fsetxattr, CORDON_DEED_SET_XATTR, -1 }, { SYS_setxattrat_, CORDON_DEED_SET_XATTR, -1 },
#ifdef SYS_open
	{ SYS_open, CORDON_DEED_OPEN, -1 },	      { SYS_creat, CORDON_DEED_OPEN, -1 },
	{ SYS_mkdir, CORDON_DEED_MKDIR, 1 },	      { SYS_mknod, CORDON_DEED_MKNOD, 1 },
	{ SYS_symlink, CORDON_DEED_SYMLINK, 0 },      { SYS_link, CORDON_DEED_LINK, -1 },
	{ SYS_rename, CORDON_DEED_RENAME, -1 },	      { SYS_unlink, CORDON_DEED_REMOVE, -1 },
	{ SYS_rmdir, CORDON_DEED_REMOVE, -1 },
#endif
};

static const struct served_call *find_call(long nr)
{
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(served_calls); i++)
		if (served_calls[i].nr == nr)
			return &served_calls[i];
	return NULL;
}

bool cordon_deed_caller_waits(const struct cordon_hand *hand, uint64_t id)
{
	return ioctl(hand->listener, SECCOMP_IOCTL_NOTIF_ID_VALID, &id) == 0;
}

void cordon_deed_done(struct cordon_deed *deed)
{
	cordon_closep(&deed->file_fd);
	cordon_closep(&deed->fd);
	for (size_t i = 0; i < CORDON_TOUCHES_MAX; i++)
		cordon_spot_done(&deed->spots[i]);
}

/* Opens the file that a linkat(2) names by a descriptor instead of a path; or -1. */
static int open_linked(const struct cordon_deed *deed)
{
	const struct cordon_touch *touch = &deed->touches[0];
	uint64_t flags = deed->notif->data.nr == SYS_linkat ? deed->notif->data.args[4] : 0;
	const char *rest;
	int fd = -1;

	if ((flags & AT_EMPTY_PATH) && touch->has_text && !touch->text[0]) {
		char path[CORDON_PROC_PATH_SIZE], what[CORDON_DIGITS_SIZE + 4], digits[CORDON_DIGITS_SIZE];

		if (touch->start < 0)
			return -1;
		cordon_concat(what, sizeof(what), "fd/", cordon_digits((unsigned int)touch->start, digits),
			      (char *)NULL);
		return open(cordon_proc_path(deed->who.thread, what, path), O_PATH | O_CLOEXEC);
	}
	if (!(flags & AT_SYMLINK_FOLLOW) || !touch->has_text || touch->text[0] != '/' ||
	    !cordon_spot_base(&deed->who, touch, &fd, &rest))
		return -1;
	if (*rest)
		cordon_closep(&fd);
	return fd;
}

/* For O_TMPFILE: the path names the directory itself. */
static bool find_dir(const struct cordon_hand *hand, struct cordon_deed *deed)
{
	const struct cordon_touch *touch = &deed->touches[0];
	struct open_how how = { .flags = O_PATH | O_DIRECTORY | O_CLOEXEC, .resolve = RESOLVE_NO_MAGICLINKS };
	struct cordon_spot *spot = &deed->spots[0];
	autofd int base = -1;
	const char *rest;

	if (!touch->has_text || !touch->text[0] || !cordon_spot_base(&deed->who, touch, &base, &rest))
		return false;
	spot->dir_fd = cordon_sys_openat2(base < 0 ? hand->spots.root_fd : base, *rest ? rest : ".", &how, sizeof(how));
	if (spot->dir_fd < 0 && errno == ELOOP)
		spot->dir_fd = cordon_spot_walk(&hand->spots, &deed->who, base, rest, true);
	spot->name[0] = '\0';
	spot->guard = spot->temp = NULL;
	spot->exists = spot->slash = false;
	return spot->dir_fd >= 0 && cordon_spot_classify(&hand->spots, spot->dir_fd, spot);
}

/* Whether a call renames a directory of a view, which overlayfs may refuse. */
static bool moves_dir_of_view(const struct cordon_hand *hand, const struct cordon_deed *deed)
{
	return deed->kind == CORDON_DEED_RENAME && hand->plan->view && !hand->plan->lens && deed->spots[0].dir_fd >= 0 &&
	       S_ISDIR(deed->spots[0].type) && cordon_path_within(deed->touches[0].path, hand->plan->at) &&
	       cordon_path_within(deed->touches[1].path, hand->plan->at);
}

/* Whether an open file has no name at all, as one made with O_TMPFILE. */
static bool is_nameless(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && st.st_nlink == 0;
}

/* Finds the spots of the deed; says whether the hand has to serve it. */
static cordon_deed_answer find(struct cordon_hand *hand, struct cordon_deed *deed)
{
	bool found = true, any = false, all = true, free = true;

	hand->spots.quick = deed->n == 1;
	if (deed->kind == CORDON_DEED_OPEN && (deed->touches[0].flags & O_TMPFILE) == O_TMPFILE) {
		found = find_dir(hand, deed);
		any = found && deed->spots[0].class == CORDON_SPOT_HELD;
		free = found && deed->spots[0].class == CORDON_SPOT_FREE && !deed->spots[0].mixed;
	} else {
		if (deed->kind == CORDON_DEED_LINK)
			deed->file_fd = open_linked(deed);
		for (size_t i = 0; i < deed->n; i++) {
			bool of_file = i == 0 && deed->file_fd >= 0;
			bool here = of_file ? cordon_spot_of_file(&hand->spots, deed->file_fd, &deed->spots[0])
					    : cordon_spot_find(&hand->spots, &deed->who, &deed->touches[i],
							       &deed->spots[i]);

			/* INVARIANT: a file that has a name is judged by it. Its name may have changed since we read it, because
			 * the host renames it. */
			if (of_file && !here && !is_nameless(deed->file_fd))
				return CORDON_DEED_CONTINUE;
			/* The result for the last path counts: when the first one does not exist, the kernel says so. */
			found = here;
			any |= here && deed->spots[i].class == CORDON_SPOT_HELD;
			all &= !here || deed->spots[i].class != CORDON_SPOT_ELSEWHERE;
			free &= here && deed->spots[i].class == CORDON_SPOT_FREE && !deed->spots[i].mixed;
		}
	}
	/* INVARIANT: the hand, which has no Landlock domain, acts only where all places of the deed are judged: the place below
	 * a boundary, on which PID 1 has yet to mount when the host has just made it, is none. */
	if (found && (all || !hand->plan->n_held) && (any || moves_dir_of_view(hand, deed)))
		return CORDON_DEED_DONE;
	/* What is remembered says nothing about git directories. */
	if (free && deed->n == 1 && !deed->spots[0].in_git)
		cordon_spot_remember_free(&hand->spots, &deed->spots[0]);
	return found && free ? CORDON_DEED_FREE : CORDON_DEED_CONTINUE;
}

static bool concerns_us(const struct cordon_hand *hand, const struct cordon_deed *deed)
{
	const struct cordon_touch *last = &deed->touches[deed->n - 1];

	if (deed->kind == CORDON_DEED_SET_XATTR)
		return true;
	if (deed->kind == CORDON_DEED_NONE || !last->writes)
		return false;
	return hand->plan->n_held || hand->plan->view;
}

/* INVARIANT: one deed at a time, of all the hands in this root: between the look at a place and the deed there, no other
 * hand moves anything. */
static bool lock(const struct cordon_hand *hand, bool on)
{
	const struct cordon_area *root = &hand->plan->areas[0];
	/* Each root has a byte of its own in the file; that two may share one does no harm. */
	struct flock range = { .l_type = on ? F_WRLCK : F_UNLCK,
			       .l_whence = SEEK_SET,
			       .l_start = (off_t)((root->ino ^ (root->dev << 32)) & INT64_MAX >> 1),
			       .l_len = 1 };

	int r = 0;

	while (hand->lock_fd >= 0 && (r = fcntl(hand->lock_fd, on ? F_SETLKW : F_SETLK, &range)) < 0 && errno == EINTR)
		;
	return r == 0;
}

static cordon_deed_answer serve(struct cordon_hand *hand, struct cordon_deed *deed)
{
	cordon_deed_answer answer;
	bool held;

	if (deed->kind == CORDON_DEED_SET_XATTR)
		return cordon_deed_set_xattr(hand, deed);
	answer = find(hand, deed);
	if (answer != CORDON_DEED_DONE)
		return answer;
	held = deed->spots[0].class == CORDON_SPOT_HELD || deed->spots[deed->n - 1].class == CORDON_SPOT_HELD;
	answer = cordon_deed_judge(hand, deed);
	if (answer != CORDON_DEED_DONE || deed->error)
		return answer;
	/* INVARIANT: a process that gave up rights gets none of them back through the hand. */
	if (deed->caller.filters != hand->filters || deed->caller.marked) {
		if (!held)
			return CORDON_DEED_CONTINUE; /* the kernel refuses to rename the directory, or does it */
		deed->error = -EACCES;
		deed->why = CORDON_HAND_SELF_RESTRICTED;
		deed->blame = &deed->spots[deed->n - 1];
		return CORDON_DEED_REFUSED;
	}
	/* Make sure that all we read belongs to the process that called, and not to another one that got its pid. */
	if (!cordon_deed_caller_waits(hand, deed->notif->id))
		return CORDON_DEED_GONE;
	umask(deed->caller.umask);
	hand->memory->acting[hand->number] = true;
	answer = cordon_deed_act(hand, deed);
	hand->memory->acting[hand->number] = false;
	return answer;
}

/* A quick test, for most calls of a build: whether a call has one place, in a directory in which the agent itself has the right. Then
 * the kernel decides, whatever we have seen; so neither the lock nor a look at the caller is needed. */
static bool is_plainly_free(struct cordon_hand *hand, struct cordon_deed *deed)
{
	const struct cordon_spot_caller caller = { (pid_t)deed->notif->pid, (pid_t)deed->notif->pid };
	const struct cordon_touch *touch = &deed->touches[0];
	struct cordon_spot *spot = &deed->spots[0];
	bool free;

	if (deed->n != 1 || deed->kind == CORDON_DEED_SET_XATTR || !hand->plan->n_held || !touch->has_text ||
	    strncmp(touch->text, "/proc/", 6) == 0 || strncmp(touch->text, "/dev/", 5) == 0 ||
	    (touch->flags & O_TMPFILE) == O_TMPFILE)
		return false;
	hand->spots.quick = true;
	free = cordon_spot_find(&hand->spots, &caller, touch, spot) && spot->class == CORDON_SPOT_FREE && !spot->mixed;
	if (free && !spot->in_git)
		cordon_spot_remember_free(&hand->spots, spot);
	cordon_spot_done(spot);
	return free;
}

cordon_deed_answer cordon_deed_serve(struct cordon_hand *hand, const struct seccomp_notif *notif,
				     const struct cordon_touch *touches, size_t n, struct cordon_deed *ret_deed)
{
	const struct served_call *call = find_call(notif->data.nr);
	struct cordon_deed *deed = ret_deed;
	cordon_deed_answer answer;

	deed->kind = call ? call->kind : CORDON_DEED_NONE;
	deed->arg = call ? call->arg : -1;
	deed->notif = notif;
	deed->touches = touches;
	deed->n = n;
	deed->file_fd = deed->fd = -1;
	deed->error = deed->why = 0;
	deed->blame = NULL;
	deed->too_large = false;
	for (size_t i = 0; i < CORDON_TOUCHES_MAX; i++) {
		deed->spots[i].dir_fd = -1;
		deed->spots[i].class = CORDON_SPOT_ELSEWHERE;
		deed->spots[i].type = 0;
		deed->spots[i].exists = deed->spots[i].slash = deed->spots[i].in_git = deed->spots[i].boundary =
			deed->spots[i].mixed = false;
		deed->spots[i].guard = deed->spots[i].temp = NULL;
		deed->spots[i].path[0] = '\0';
	}
	if (n == 0 && deed->kind != CORDON_DEED_SET_XATTR)
		return CORDON_DEED_CONTINUE;
	if (!concerns_us(hand, deed))
		return CORDON_DEED_CONTINUE;
	/* The test is wasted on a call that is served, and of those many follow each other. */
	if (!hand->served_last && is_plainly_free(hand, deed))
		return CORDON_DEED_FREE;
	/* What can't be looked into is not served: the kernel refuses. */
	if (!cordon_caller_read(&hand->files, (pid_t)notif->pid, &deed->caller))
		return hand->served_last && is_plainly_free(hand, deed) ? CORDON_DEED_FREE : CORDON_DEED_CONTINUE;
	deed->who = (struct cordon_spot_caller){ .thread = (pid_t)notif->pid, .leader = deed->caller.leader };
	/* Without the lock nothing is done: the kernel refuses. Attributes need none. */
	if (!lock(hand, true) && deed->kind != CORDON_DEED_SET_XATTR)
		return CORDON_DEED_CONTINUE;
	answer = serve(hand, deed);
	(void)lock(hand, false);
	hand->served_last = answer == CORDON_DEED_DONE || answer == CORDON_DEED_REFUSED;
	return answer;
}
