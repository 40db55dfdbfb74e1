/* SPDX-License-Identifier: Apache-2.0 */
/* Finds out what this machine can enforce, and what that means for each front end. */
#include "run/doctor.h"

#include <fcntl.h>
#include <stdio.h>

#include "config/managed.h"
#include "config/settings_file.h"
#include "sandbox/host/nested.h"
#include "sandbox/inside/landlock.h"

static void add_end(struct cordon_doctor *d, const char *name, const char *state, const char *why)
{
	d->ends[d->n_ends++] = (struct cordon_doctor_end){ name, state, why };
}

static void find_ends(struct cordon_doctor *d)
{
	const struct cordon_probe *p = d->probes;
	const char *missing = NULL, *state = "works", *why = "";

	for (size_t i = 0; i < CORDON_PROBE__MAX; i++)
		if (p[i].required && !p[i].ok && !missing)
			missing = p[i].name;
	if (missing) {
		state = p[CORDON_PROBE_LANDLOCK].ok && p[CORDON_PROBE_SECCOMP].ok ? "best effort only" : "does not work";
		why = missing;
	} else if (d->tested && d->error.code) {
		state = p[CORDON_PROBE_LANDLOCK].ok && p[CORDON_PROBE_SECCOMP].ok ? "best effort only" : "does not work";
		why = "no sandbox can be set up";
	} else if (d->tested && !d->tests.ok) {
		state = "does not work";
		why = "the self-test failed";
	}
	add_end(d, "run, folder scopes", state, why);
	if (p[CORDON_PROBE_FUSE].ok)
		add_end(d, "run, name patterns", state, why);
	else
		add_end(d, "run, name patterns", "does not work", "FUSE");
	if (p[CORDON_PROBE_PIDS].ok)
		add_end(d, "limits on the whole tree", "works", "");
	else
		add_end(d, "limits on the whole tree", "memory and CPUs only", "process limit");
}

/* Whether the orchestrators of the settings can work: the settings are valid, and each can write its private workspace. */
static void find_orchestrators(struct cordon_doctor *d)
{
	struct cordon_errors errors CORDON_CLEANUP(cordon_errors_done) = { 0 };
	autosettings struct cordon_settings_file *settings = NULL;
	int r = cordon_settings_load(NULL, 0, &settings, &errors);

	if (r < 0)
		snprintf(d->why, sizeof(d->why), "%zu errors in the settings; see 'cordon config validate'",
			 errors.n + errors.dropped);
	for (size_t i = 0; r == 0 && !*d->why && i < settings->n_orchestrators; i++)
		if (faccessat(AT_FDCWD, settings->orchestrators[i].private_workspace, W_OK | X_OK, AT_EACCESS) < 0 &&
		    errno != ENOENT)
			snprintf(d->why, sizeof(d->why), "the private workspace of %s can't be written: %s",
				 settings->orchestrators[i].id, strerror(errno));
	if (r < 0 || settings->n_orchestrators)
		add_end(d, "orchestrators", *d->why ? "does not work" : "works", d->why);
}

static void find_machine(struct cordon_doctor *d)
{
	const struct cordon_probe *p = d->probes;
	bool lower = p[CORDON_PROBE_LANDLOCK].ok && p[CORDON_PROBE_SECCOMP].ok;
	bool set_up = p[CORDON_PROBE_NAMESPACES].ok && p[CORDON_PROBE_MOUNT_API].ok && !(d->tested && d->error.code);
	bool held = !d->tested || d->error.code ||
		    d->tests.ok; /* else a run would be set up, and not hold its promises */
	struct cordon_layers_spec spec = { .tier = set_up ? CORDON_TIER_FULL : CORDON_TIER_LANDLOCK,
					   .best_effort = true,
					   .enterable = true,
					   .landlock_abi = cordon_landlock_abi() };

	d->tier = !lower || (set_up && !held) ? "none" : set_up ? "full" : "landlock";
	for (size_t i = 0; i < CORDON_PROBE__MAX && !d->change; i++)
		if (p[i].required && !p[i].ok)
			d->change = p[i].fix;
	if (!d->change && d->tested && d->error.code)
		d->change = "allow this user what the self-test was refused";
	cordon_layers_choose(&spec, &d->layers, NULL); /* with best effort it refuses nothing */
}

static void find_managed(struct cordon_doctor *d)
{
	CORDON_CLEANUP(cordon_policy_file_freep) struct cordon_policy_file *file = NULL;
	struct cordon_errors errors CORDON_CLEANUP(cordon_errors_done) = { 0 };

	if (cordon_managed_load(&file, &errors) < 0) {
		d->managed = "broken";
		cordon_errors_first(&errors, &d->managed_error);
		d->ok = false; /* no run starts */
	} else {
		d->managed = file ? "in force" : "none";
	}
}

void cordon_doctor_examine(bool test, struct cordon_doctor *ret)
{
	*ret = (struct cordon_doctor){ .ok = true, .nested = cordon_nested(), .tested = test };
	cordon_probe_all(ret->probes);
	for (size_t i = 0; i < CORDON_PROBE__MAX; i++)
		ret->ok &= ret->probes[i].ok || !ret->probes[i].required;
	if (test)
		ret->ok &= cordon_selftest_run(&ret->tests, &ret->error) == 0 && ret->tests.ok;
	find_ends(ret);
	find_orchestrators(ret);
	find_machine(ret);
	find_managed(ret);
}

const char *cordon_doctor_tier(const struct cordon_doctor *doctor)
{
	return cordon_streq(doctor->tier, "landlock") ? "lower (Landlock and seccomp only)" : doctor->tier;
}
