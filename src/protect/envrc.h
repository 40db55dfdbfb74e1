/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an `.envrc` reads. A user who allowed one runs it on entering the directory, and direnv compares the bytes of
 * that file alone: what it sources, loads or puts on the path of the shell counts without another question.
 */
#ifndef CORDON_PROTECT_ENVRC_H
#define CORDON_PROTECT_ENVRC_H

#include "protect/collect.h"

#define CORDON_ENVRC_BYTES_MAX (64 * 1024) /* of one file */
#define CORDON_ENVRC_FILES_MAX 16	   /* that source each other */

/*
 * Collects the files that the root's `.envrc` sources or loads, those that it names anywhere and that exist, and the
 * directories that it puts on the path; but for those in which a package manager keeps programs (node_modules, .venv).
 * The text is searched for words, not interpreted. Returns 0, -ENOMEM, or -E2BIG when there is more than a bound allows.
 */
int cordon_protect_envrc(struct cordon_protect_collector *c);

#endif
