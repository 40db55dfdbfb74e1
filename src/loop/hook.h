/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Validation hooks (cordon-config.yaml(5)): programs of the user that may refuse a start, a story or what a story changed.
 * Each runs in a sandbox in which it can read the repository, and change and reach nothing.
 *
 * INVARIANT: a hook can only refuse. Whatever it does, nothing is allowed that would not be allowed without it; and a hook that
 * can't run, or does not end in time, has refused.
 */
#ifndef CORDON_LOOP_HOOK_H
#define CORDON_LOOP_HOOK_H

#include "base/resolve.h"
#include "config/settings_file.h"

#define CORDON_HOOK_PATHS_MAX 100000 /* that a hook is told of; more are refused */

/* What hooks are told, as JSON on their standard input: {"event", "folders", "mode", "paths"}. */
struct cordon_hook_ask {
	cordon_hook_event event;
	const struct cordon_root *root;
	const char *const *folders; /* relative to the root; none: the whole repository */
	size_t n_folders;
	cordon_mode mode;
	const char *const *paths; /* relative to the root: what a story is about, or has changed */
	size_t n_paths;
};

/* Whether a hook is there for the event: without one there is nothing to prepare. */
bool cordon_hooks_have(const struct cordon_settings_file *settings, cordon_hook_event event);
/* Runs the hooks of the event, in the order of the settings, until one refuses: -EPERM with kind policy_denied, the hook's
 * name and the first line of its standard error. */
int cordon_hooks_run(const struct cordon_settings_file *settings, const struct cordon_hook_ask *ask,
		     struct cordon_error *err);

#endif
