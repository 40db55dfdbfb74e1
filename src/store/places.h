/* SPDX-License-Identifier: Apache-2.0 */
/* What the agents of a project see of the host beside their workspace. */
#ifndef CORDON_STORE_PLACES_H
#define CORDON_STORE_PLACES_H

#include "recipe/recipe.h"
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
/* Completes a recipe with the profiles, shares and home of the settings, and compiles it. The root is a descriptor,
 * too. Unless the session starts, nothing that is missing is made but the home. */
int cordon_places_compile(const struct cordon_project *project, const char *workspace,
			  const struct cordon_settings *settings, int root_fd, bool starts,
			  struct cordon_recipe *recipe, struct cordon_error *err);

#endif
