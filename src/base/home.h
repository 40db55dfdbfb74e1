/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state directory: $CORDON_HOME, else $XDG_DATA_HOME/cordon, else ~/.local/share/cordon. It is made on first
 * use with mode 0700, state/ in it too. An empty variable counts as not set.
 *
 * INVARIANT: what is opened here belongs to the caller and nobody else may write to it. A home that is a symbolic
 * link, is owned by somebody else or can be written by group or others is refused, not repaired: its records
 * could be anybody's. A home that exists costs six system calls.
 */
#ifndef CORDON_BASE_HOME_H
#define CORDON_BASE_HOME_H

#include "base/error.h"

struct cordon_home {
	int fd;			    /* the home itself, O_PATH */
	int state_fd;		    /* state/, which is never mounted in any sandbox */
	char path[CORDON_PATH_MAX]; /* canonical */
	char asked[CORDON_PATH_MAX]; /* as the environment names it, clean; links above the last component are followed */
};

#define CORDON_HOME_NONE                                                                                               \
	{                                                                                                              \
		.fd = -1, .state_fd = -1                                                                               \
	}
#define autohome CORDON_CLEANUP(cordon_home_done)

int cordon_home_open(struct cordon_home *ret_home, struct cordon_error *err);
/* Accepts one that was never opened (CORDON_HOME_NONE), and a second call. */
void cordon_home_done(struct cordon_home *home);

/*
 * Opens (O_RDONLY) a directory below state/ by a relative path such as "audit" or "runs/<id>", making missing
 * components with mode 0700. Follows no link; a directory of somebody else is refused.
 */
int cordon_home_subdir(const struct cordon_home *home, const char *path, int *ret_fd, struct cordon_error *err);

#endif
