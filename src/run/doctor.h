/* SPDX-License-Identifier: Apache-2.0 */
/* What this machine can enforce for this user, and what follows from it: for `cordon doctor` and for the page. */
#ifndef CORDON_RUN_DOCTOR_H
#define CORDON_RUN_DOCTOR_H

#include "sandbox/host/probe.h"
#include "sandbox/host/selftest.h"
#include "sandbox/plan/layers.h"

#define CORDON_DOCTOR_ENDS_MAX 4

/* What the probes mean for a user of one front end. */
struct cordon_doctor_end {
	const char *name;
	const char *state; /* "works", "best effort only", "does not work", "memory and CPUs only" */
	const char *why;   /* "" when it works */
};

struct cordon_doctor {
	bool ok;     /* runs have all their layers */
	bool nested; /* this is inside a sandbox of cordon, and so all of this is about that */
	struct cordon_probe probes[CORDON_PROBE__MAX];
	bool tested; /* the next two are known */
	struct cordon_selftests tests;
	struct cordon_error error; /* of a self-test that could not begin */
	/* How much of a sandbox this machine lets a run have, and what differs in any run or session. */
	const char *tier;	     /* "full", "landlock" (the lower one), "none" */
	const char *change;	     /* the line that gives it all layers, or NULL */
	struct cordon_layers layers; /* its `differs`: what is not the same as on newer kernels */
	struct cordon_doctor_end ends[CORDON_DOCTOR_ENDS_MAX];
	size_t n_ends;
	char why[CORDON_PATH_MAX]; /* of the last end */
	/* The fence of the machine's owner (config/managed.h): "none", "in force", "broken", and then what is wrong. */
	const char *managed;
	struct cordon_error managed_error;
};

/* Tries each kernel feature, and with `test` a live sandbox; without it the sandbox counts as good. */
void cordon_doctor_examine(bool test, struct cordon_doctor *ret);
/* "full", "lower (Landlock and seccomp only)", "none" */
const char *cordon_doctor_tier(const struct cordon_doctor *doctor);

#endif
