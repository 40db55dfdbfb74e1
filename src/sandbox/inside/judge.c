/* SPDX-License-Identifier: Apache-2.0 */
/* The hand judges a deed in a held directory: whether a boundary, the host or a git directory forbids it. */
#include <fcntl.h>
#include <linux/fs.h>
#include <sys/stat.h>

#include "base/listing.h"
#include "base/path.h"
#include "sandbox/inside/deed.h"
#include "sandbox/inside/made.h"

#define LINKS_LOOKED_AT 4096 /* entries of a directory that moves within a git directory */
#define LINKS_DEPTH 16

static cordon_deed_answer refuse(const struct cordon_hand *hand, struct cordon_deed *deed,
				 const struct cordon_spot *spot, const struct cordon_guard *guard, int why, int error)
{
	deed->blame = spot;
	deed->why = guard ? (int)(guard - hand->plan->guards) : why;
	deed->error = error;
	return CORDON_DEED_REFUSED;
}

/* Whether what has the name is the run's, or was there at its start. */
static bool is_known(const struct cordon_hand *hand, const struct cordon_spot *spot)
{
	return spot->class != CORDON_SPOT_HELD || !spot->boundary || hand->plan->held[spot->held].all_known ||
	       cordon_made_knows(hand->memory, hand->plan, spot);
}

/* Whether all boundaries below `path` are there by default, and none has that path itself. */
static bool leads_only_to_defaults(const struct cordon_plan *plan, const char *path)
{
	for (size_t i = 0; i < plan->n_guards; i++)
		if (cordon_path_within(plan->guards[i].inside, path) &&
		    (!plan->guards[i].by_default || cordon_streq(plan->guards[i].inside, path)))
			return false;
	return true;
}

/* Judges a name that the deed would make, or replace. */
static cordon_deed_answer judge_new(const struct cordon_hand *hand, struct cordon_deed *deed,
				    const struct cordon_spot *spot)
{
	if (spot->class != CORDON_SPOT_HELD)
		return CORDON_DEED_DONE;
	/* An empty directory that leads to paths which are protected by default may be made: each name in it is judged
	 * later. */
	if (spot->guard && !(deed->kind == CORDON_DEED_MKDIR && leads_only_to_defaults(hand->plan, spot->path)))
		return refuse(hand, deed, spot, spot->guard, 0, spot->exists ? -EBUSY : -EACCES);
	if (spot->temp)
		return refuse(hand, deed, spot, spot->temp, 0, -EACCES);
	if (spot->exists && !is_known(hand, spot))
		return refuse(hand, deed, spot, NULL, CORDON_HAND_NOT_OF_RUN, -EACCES);
	return CORDON_DEED_DONE;
}

static bool has_entries(const struct cordon_spot *spot)
{
	CORDON_UNCLEARED struct cordon_listing listing;
	autofd int fd = openat(spot->dir_fd, spot->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	cordon_listing_init(&listing, fd);
	return fd >= 0 && cordon_listing_next(&listing);
}

/* Judges a name that the deed would take away. With the error of the mount that protects a boundary: the host may just have
 * replaced what has the name, and then there is no mount. */
static cordon_deed_answer judge_taken(const struct cordon_hand *hand, struct cordon_deed *deed,
				      const struct cordon_spot *spot, bool moves)
{
	const struct cordon_guard *guard = spot->guard && !moves ? cordon_plan_guard_of_name(hand->plan, spot->path)
								 : spot->guard;

	if (spot->class != CORDON_SPOT_HELD)
		return CORDON_DEED_DONE;
	if (guard && !moves && S_ISDIR(spot->type) && has_entries(spot)) {
		deed->error = -ENOTEMPTY; /* whatever the rules are */
		return CORDON_DEED_DONE;
	}
	if (guard)
		return refuse(hand, deed, spot, guard, 0, -EBUSY);
	if (spot->temp)
		return refuse(hand, deed, spot, spot->temp, 0, -EACCES);
	if (!is_known(hand, spot))
		return refuse(hand, deed, spot, NULL, CORDON_HAND_NOT_OF_RUN, -EACCES);
	return CORDON_DEED_DONE;
}

/* Whether a directory has a symbolic link in it, or more than we look at. */
static bool holds_links(int dir_fd, const char *name, size_t *looked, unsigned int depth)
{
	CORDON_UNCLEARED struct cordon_listing listing;
	autofd int fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	const struct dirent64 *entry;

	if (fd < 0 || depth == LINKS_DEPTH)
		return true;
	cordon_listing_init(&listing, fd);
	while ((entry = cordon_listing_next(&listing))) {
		struct stat st;

		if (++*looked > LINKS_LOOKED_AT || fstatat(fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
		    S_ISLNK(st.st_mode) || (S_ISDIR(st.st_mode) && holds_links(fd, entry->d_name, looked, depth + 1)))
			return true;
	}
	return false;
}

/*
 * INVARIANT: no symbolic link comes into a git directory of the host's, nor to another place in one: git on the host would
 * follow it and write where it leads. What comes from elsewhere could become a link between our look at it and the deed. The
 * answer to that is the one that makes programs copy instead. Where no held directory takes part, Landlock decides in the
 * same way.
 */
static cordon_deed_answer judge_links(const struct cordon_hand *hand, struct cordon_deed *deed, bool exchange)
{
	const struct cordon_spot *first = &deed->spots[0], *last = &deed->spots[deed->n - 1];
	size_t looked = 0;

	if (!last->in_git && !(exchange && first->in_git))
		return CORDON_DEED_DONE;
	if (deed->kind == CORDON_DEED_SYMLINK || S_ISLNK(first->type) || (exchange && S_ISLNK(last->type)))
		return refuse(hand, deed, last, NULL, CORDON_HAND_LINK_IN_GIT, -EACCES);
	if (deed->n == 2 && first->in_git != last->in_git) {
		deed->error = -EXDEV;
		return CORDON_DEED_DONE;
	}
	if (deed->kind == CORDON_DEED_RENAME &&
	    ((S_ISDIR(first->type) && holds_links(first->dir_fd, first->name, &looked, 0)) ||
	     (exchange && S_ISDIR(last->type) && holds_links(last->dir_fd, last->name, &looked, 0))))
		return refuse(hand, deed, last, NULL, CORDON_HAND_LINK_IN_GIT, -EACCES);
	return CORDON_DEED_DONE;
}

static cordon_deed_answer judge_open(const struct cordon_hand *hand, struct cordon_deed *deed)
{
	const struct cordon_spot *spot = &deed->spots[0];
	const struct cordon_touch *touch = &deed->touches[0];
	bool writes = deed->kind == CORDON_DEED_TRUNCATE || (touch->flags & O_TRUNC) ||
		      (touch->flags & O_ACCMODE) == O_WRONLY || (touch->flags & O_ACCMODE) == O_RDWR;

	if (!spot->name[0])
		return CORDON_DEED_DONE; /* a file without a name */
	if (spot->slash)
		return CORDON_DEED_CONTINUE;
	if (!spot->exists)
		return touch->creates ? judge_new(hand, deed, spot) : CORDON_DEED_CONTINUE;
	/* The mount of a boundary answers; and what is only read is not ours to serve. */
	if (!writes || (spot->guard && cordon_streq(spot->guard->inside, spot->path)))
		return CORDON_DEED_CONTINUE;
	if (!S_ISREG(spot->type) && !S_ISFIFO(spot->type))
		return CORDON_DEED_CONTINUE;
	if ((touch->flags & (O_CREAT | O_EXCL)) == (O_CREAT | O_EXCL))
		return CORDON_DEED_CONTINUE;
	return is_known(hand, spot) ? CORDON_DEED_DONE : refuse(hand, deed, spot, NULL, CORDON_HAND_NOT_OF_RUN, -EACCES);
}

static cordon_deed_answer judge_pair(const struct cordon_hand *hand, struct cordon_deed *deed)
{
	const struct cordon_spot *first = &deed->spots[0], *last = &deed->spots[1];
	bool renames = deed->kind == CORDON_DEED_RENAME;
	bool exchange = renames && deed->arg >= 0 && (deed->notif->data.args[deed->arg] & RENAME_EXCHANGE);
	cordon_deed_answer answer = CORDON_DEED_DONE;

	/* The kernel says that the first one is missing, or that the second one is there. A file without a name has no
	 * first spot. */
	if ((first->dir_fd < 0 && deed->file_fd < 0) || (first->dir_fd >= 0 && !first->exists) ||
	    (!renames && last->exists && deed->file_fd < 0) || (exchange && !last->exists))
		return CORDON_DEED_CONTINUE;
	/* The kernel would look at who opened the file, and that may have been us. */
	if (!renames && last->exists) {
		deed->error = -EEXIST;
		return CORDON_DEED_DONE;
	}
	/* No second name for a boundary: its mount answers, and where the host has just replaced it, Landlock does. */
	if (!renames && first->guard)
		return CORDON_DEED_CONTINUE;
	if (first->dir_fd >= 0 && renames)
		answer = judge_taken(hand, deed, first, true);
	else if (first->dir_fd >= 0 && first->temp)
		answer = refuse(hand, deed, first, first->temp, 0, -EACCES);
	else if (first->dir_fd >= 0 && !is_known(hand, first))
		answer = refuse(hand, deed, first, NULL, CORDON_HAND_NOT_OF_RUN, -EACCES);
	if (answer == CORDON_DEED_DONE && exchange)
		answer = judge_taken(hand, deed, last, true);
	if (answer == CORDON_DEED_DONE)
		answer = judge_new(hand, deed, last);
	if (answer == CORDON_DEED_DONE && exchange)
		answer = judge_new(hand, deed, first);
	return answer == CORDON_DEED_DONE ? judge_links(hand, deed, exchange) : answer;
}

cordon_deed_answer cordon_deed_judge(struct cordon_hand *hand, struct cordon_deed *deed)
{
	const struct cordon_spot *spot = &deed->spots[0];
	cordon_deed_answer answer;

	switch (deed->kind) {
	case CORDON_DEED_OPEN:
	case CORDON_DEED_TRUNCATE:
		return judge_open(hand, deed);
	case CORDON_DEED_REMOVE:
		return spot->exists ? judge_taken(hand, deed, spot, false) : CORDON_DEED_CONTINUE;
	case CORDON_DEED_LINK:
	case CORDON_DEED_RENAME:
		return judge_pair(hand, deed);
	case CORDON_DEED_MKDIR:
	case CORDON_DEED_MKNOD:
	case CORDON_DEED_SYMLINK:
	case CORDON_DEED_BIND:
		if (spot->exists)
			return CORDON_DEED_CONTINUE; /* EEXIST */
		answer = judge_new(hand, deed, spot);
		return answer == CORDON_DEED_DONE ? judge_links(hand, deed, false) : answer;
	case CORDON_DEED_NONE:
	case CORDON_DEED_SET_XATTR:
		break;
	}
	return CORDON_DEED_CONTINUE;
}
