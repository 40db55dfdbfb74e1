/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What one step of an orchestrator runs with. The sandbox shows
 *
 *     <private>                      the private workspace, at its own path; the step starts here
 *     <private>/shared/<key>         each granted area, for reading or for reading and writing
 *     the area's own path            the same again, because prompts name it
 *     <private>/work/runs/<run_id>   of all runs only this one
 *
 * and nothing else of the host but the system. An area without a grant is not there, and neither is its name. The step
 * can't change orchestrator.yaml, prompts/, workflows/ and shared/ itself. Its environment has nothing of the caller's.
 *
 *     CORDON_ORCHESTRATOR    the id
 *     CORDON_SHARED          [{"name","path","mount","access","description"}], the granted areas
 *     CORDON_RUN_WORKSPACE   the work area of the run, if there is one
 */
#ifndef CORDON_FLOW_STEP_H
#define CORDON_FLOW_STEP_H

#include "base/home.h"
#include "flow/private.h"
#include "recipe/recipe.h"

/* Everything belongs to the caller, until the step has ended. */
struct cordon_step_spec_ask {
	const struct cordon_settings_file *settings;
	const struct cordon_orchestrator *orchestrator;
	const char *run_id; /* its directory is made when it is missing; NULL: the step belongs to no run */
	const char *run_dir; /* the host directory that the step sees as the work area of the run; NULL: that one itself */
	bool run_workspace; /* the private workspace can only be read, except for the work area of the run */
	/* More paths in the private workspace that the step can't change, relative to it: outputs of earlier steps. */
	const char *const *protect;
	size_t n_protect;
	char *const *argv;			/* ends with NULL */
	const struct cordon_provider *provider; /* whose program, variables and profile the step has; or NULL */
	char *const *env;			/* NAME=VALUE, in addition */
	size_t n_env;
	uint64_t timeout_ms; /* 0: that of the settings */
	bool dry;	     /* nothing will be started: make the places for mounts, and no work area of a run */
};

/* It owns what the recipe refers to, except what the caller gave. */
struct cordon_step_spec {
	struct cordon_recipe recipe;
	char run_workspace[CORDON_PATH_MAX]; /* "" without a run */
	int cover;			     /* holds what covers other runs; or -1 */
};

/* clang-format off */
#define CORDON_STEP_SPEC_NONE { .cover = -1 }
/* clang-format on */

int cordon_step_spec_init(const struct cordon_step_spec_ask *ask, struct cordon_step_spec *ret_step,
			  struct cordon_errors *errors);
void cordon_step_spec_done(struct cordon_step_spec *step);
#define autostepspec CORDON_CLEANUP(cordon_step_spec_done)

/* Removes what cordon_step_spec_init() made in the state directory for a run that will have no more steps. */
void cordon_step_spec_forget(const struct cordon_home *home, const char *run_id);
/* The same for all runs of which no step runs: a run that goes on makes it again. */
void cordon_step_spec_gc(const struct cordon_home *home);

#endif
