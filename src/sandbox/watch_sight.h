/* SPDX-License-Identifier: Apache-2.0 */
/* Tells whoever learns from a run which paths it uses, before each call goes on. */
#ifndef CORDON_SANDBOX_WATCH_SIGHT_H
#define CORDON_SANDBOX_WATCH_SIGHT_H

#include "sandbox/launch.h"
#include "sandbox/watch_where.h"

void cordon_sight_tell(const struct cordon_child *child, const struct cordon_observer *observer,
		       const struct cordon_touch *touch);

#endif
