/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state directory: $CORDON_HOME, else $XDG_DATA_HOME/cordon, else ~/.local/share/cordon. It is made on first use
 * with mode 0700, and so is state/ in it. An empty variable counts as not set.
 *
 * INVARIANT: everything that is opened here belongs to the caller, and nobody else may write to it. A home that is a
 * symbolic link, belongs to another user or can be written by group or others is refused, not repaired: anybody
 * could have written its records. Opening a home that exists costs six system calls.
 */
#ifndef CORDON_BASE_HOME_H
#define CORDON_BASE_HOME_H

#include "base/error.h"

struct cordon_home {
	int fd;			    /* the home itself, O_PATH */
	int state_fd;		    /* state/, which is never mounted in any sandbox */
	char path[CORDON_PATH_MAX]; /* canonical */
	/* as the environment names it, clean; may contain links above the last component */
	char asked[CORDON_PATH_MAX];
};

/* clang-format off */
#define CORDON_HOME_NONE { .fd = -1, .state_fd = -1 }
/* clang-format on */
#define autohome CORDON_CLEANUP(cordon_home_done)

int cordon_home_open(struct cordon_home *ret_home, struct cordon_error *err);
/* Accepts a home that was never opened (CORDON_HOME_NONE), and a second call. */
void cordon_home_done(struct cordon_home *home);

/*
 * Opens (O_RDONLY) a directory below state/ by a relative path such as "audit" or "runs/<id>", and makes missing
 * components with mode 0700. Follows no link, and refuses a directory of another user.
 */
int cordon_home_subdir(const struct cordon_home *home, const char *path, int *ret_fd, struct cordon_error *err);

#endif
