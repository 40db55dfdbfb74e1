/* SPDX-License-Identifier: Apache-2.0 */
/* Reports the paths that a learning run uses to its observer, before each call continues. */
#ifndef CORDON_SANDBOX_WATCH_SIGHT_H
#define CORDON_SANDBOX_WATCH_SIGHT_H

#include "sandbox/watch/watched.h"
#include "sandbox/inside/where.h"

void cordon_sight_report(const struct cordon_watched *watched, const struct cordon_touch *touch);

#endif
