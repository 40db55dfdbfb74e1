/* SPDX-License-Identifier: Apache-2.0 */
/* Watches the settings while a command of an orchestrator runs: a grant that is revoked ends the command. */
#ifndef CORDON_CLI_HELD_GRANTS_H
#define CORDON_CLI_HELD_GRANTS_H

#include <poll.h>

#include "base/home.h"
#include "config/settings_file.h"

struct cordon_held_grants {
	const struct cordon_orchestrator *orchestrator; /* as it was when the command started */
	const char *config;				/* as for cordon_settings_load() */
	int fd;						/* of inotify, or -1 */
	struct cordon_home home;
	char revoked[CORDON_SETTINGS_ID_MAX + 1]; /* the area that ended the command, or "" */
};

/* Begins to watch. Call it before the settings are read, so that no change is missed; fill in the orchestrator then. */
int cordon_held_grants_begin(struct cordon_held_grants *held, const char *config, struct cordon_error *err);
void cordon_held_grants_done(struct cordon_held_grants *held);

/* For struct cordon_observer; `data` is the struct. serve() returns true once when the settings have changed, no longer
 * grant what the command has, and nobody said --keep-running. */
size_t cordon_held_grants_fds(void *data, struct pollfd *ret_fds);
bool cordon_held_grants_serve(void *data, const struct pollfd *fds, size_t n);

#endif
