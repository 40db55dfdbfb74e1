/* SPDX-License-Identifier: Apache-2.0 */
/* What the agents of a project see of the host beside their workspace. */
#ifndef CORDON_STORE_PLACES_H
#define CORDON_STORE_PLACES_H

#include "config/profile.h"
#include "store/internal.h"

/* The profiles of settings, which are read again for each session. */
struct cordon_profiles {
	struct cordon_profile_dirs dirs;
	struct cordon_policy_file *files[CORDON_PROJECT_PROFILES_MAX];
	const char *names[CORDON_PROJECT_PROFILES_MAX]; /* of the settings */
	size_t n;
};
#define autoprofiles CORDON_CLEANUP(cordon_profiles_done)
/* On failure, some are loaded. */
int cordon_profiles_load(const struct cordon_settings *settings, struct cordon_profiles *ret, struct cordon_error *err);
void cordon_profiles_done(struct cordon_profiles *profiles);
/* Adds profiles, shares and the home of the settings to the policy of a workspace. `ret_use` (may be NULL, and then
 * nothing that is missing is made but the home) has the variables that the profiles give. */
int cordon_places_add(const struct cordon_project *project, const char *workspace,
		      const struct cordon_settings *settings, const struct cordon_profiles *profiles,
		      struct cordon_policy *policy, struct cordon_profile_use *ret_use, struct cordon_error *err);

#endif
