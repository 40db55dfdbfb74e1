/* SPDX-License-Identifier: Apache-2.0 */
/* Decides which steps of a plan become tripwires, and reads the table that they make up. */
#include <fcntl.h>
#include <linux/major.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "base/path.h"
#include "policy/policy.h"
#include "sandbox/plan/tripwire.h"

#define FUSE_MINOR 229 /* linux/miscdevice.h, which is not for programs */

/* The root is not granted, and directories of ours take its place. */
static bool is_skeleton(const struct cordon_plan *plan, const struct cordon_step *step)
{
	return step->kind == CORDON_STEP_PRIVATE && step->right == CORDON_RIGHT_LIST &&
	       cordon_streq(step->path, plan->at);
}

/* A mask that the system needs, or that keeps a socket away, may find nothing to cover; one of a rule must. */
static bool is_denial(const struct cordon_step *step)
{
	return step->kind == CORDON_STEP_MASK && !(step->flags & CORDON_STEP_IF_THERE);
}

bool cordon_plan_hides(const struct cordon_plan *plan)
{
	for (size_t i = 0; i < plan->n_guards; i++)
		if (plan->guards[i].kind == CORDON_GUARD_DENIED)
			return true;
	for (size_t i = 0; i < plan->n_steps; i++)
		if (is_denial(&plan->steps[i]) || is_skeleton(plan, &plan->steps[i]))
			return true;
	return false;
}

/* Whether the skeleton can be a tree of ours: only what is mounted comes into it later. */
static bool is_plain_skeleton(const struct cordon_plan *plan)
{
	for (size_t i = 0; i < plan->n_steps; i++) {
		const struct cordon_step *step = &plan->steps[i];

		if (!cordon_path_within(step->path, plan->at) || cordon_streq(step->path, plan->at))
			continue;
		if (step->kind != CORDON_STEP_DIR && step->kind != CORDON_STEP_BIND && step->kind != CORDON_STEP_MASK &&
		    step->kind != CORDON_STEP_PIN && (step->kind != CORDON_STEP_FILE || step->text))
			return false;
	}
	return true;
}

/* Whether the device of FUSE can be opened: a container may show it and refuse it, or have something else in its place. */
static bool has_fuse(void)
{
	autofd int fd = open("/dev/fuse", O_RDWR | O_NONBLOCK | O_CLOEXEC);
	struct stat st;

	return fd >= 0 && fstat(fd, &st) == 0 && S_ISCHR(st.st_mode) && st.st_rdev == makedev(MISC_MAJOR, FUSE_MINOR);
}

void cordon_plan_tripwires(struct cordon_plan *plan, const struct cordon_plan_spec *spec)
{
	bool skeleton = false;
	size_t masks = 0;

	/* Where reads are trapped anyway, a tripwire would report them once more. */
	if (plan->tier != CORDON_TIER_FULL || plan->mode == CORDON_MODE_PERMISSIVE || spec->run->learns ||
	    spec->run->policy->reports_reads || !cordon_plan_hides(plan))
		return;
	for (size_t i = 0; i < plan->n_steps; i++) {
		masks += is_denial(&plan->steps[i]);
		skeleton |= is_skeleton(plan, &plan->steps[i]);
	}
	if (masks > CORDON_TRIPWIRES_MAX || (skeleton && !is_plain_skeleton(plan)) || !has_fuse())
		return;
	plan->tripwires = true;
	for (size_t i = 0; i < plan->n_steps; i++) {
		struct cordon_step *step = &plan->steps[i];
		bool made = step->kind == CORDON_STEP_DIR || step->kind == CORDON_STEP_FILE;

		if (is_denial(step) || is_skeleton(plan, step) ||
		    (skeleton && made && cordon_path_within(step->path, plan->at) && !cordon_streq(step->path, plan->at)))
			step->flags |= CORDON_STEP_TRIP;
	}
}

bool cordon_trip_find(const struct cordon_plan *plan, uint64_t number, struct cordon_trip_node *ret)
{
	uint64_t i = number - cordon_trip_of_step(0);
	const struct cordon_step *step;

	*ret = (struct cordon_trip_node){ .inside = "", .dir = true };
	if (number == CORDON_TRIP_TOP)
		return true;
	if (number < CORDON_TRIP_TOP || i >= plan->n_steps + 2 * plan->n_guards)
		return false;
	if (i >= plan->n_steps) {
		i -= plan->n_steps;
		ret->inside = plan->guards[i / 2].inside;
		ret->dir = i % 2;
		ret->hidden = true;
		return plan->guards[i / 2].kind == CORDON_GUARD_DENIED;
	}
	step = &plan->steps[i];
	ret->inside = step->path;
	ret->dir = step->kind == CORDON_STEP_MASK ? step->flags & CORDON_STEP_IS_DIR : step->kind != CORDON_STEP_FILE;
	ret->hidden = step->kind == CORDON_STEP_MASK || (step->kind != CORDON_STEP_PRIVATE && !step->mode);
	return step->flags & CORDON_STEP_TRIP;
}

/* The name of a node in a directory of the skeleton; NULL when it does not stand there. */
static const char *name_in(const struct cordon_plan *plan, size_t i, const char *dir)
{
	const struct cordon_step *step = &plan->steps[i];
	size_t n = strlen(dir);

	if (!(step->flags & CORDON_STEP_TRIP) || (step->kind != CORDON_STEP_DIR && step->kind != CORDON_STEP_FILE) ||
	    strncmp(step->path, dir, n) != 0 || step->path[n] != '/' || strchr(step->path + n + 1, '/'))
		return NULL;
	for (size_t j = 0; j < i; j++) /* one that is made twice is one entry */
		if (plan->steps[j].flags & CORDON_STEP_TRIP && plan->steps[j].kind != CORDON_STEP_MASK &&
		    cordon_streq(plan->steps[j].path, step->path))
			return NULL;
	return step->path + n + 1;
}

uint64_t cordon_trip_next(const struct cordon_plan *plan, uint64_t dir, uint64_t from, const char **ret_name,
			  char digits[static CORDON_DIGITS_SIZE])
{
	struct cordon_trip_node node;

	if (!cordon_trip_find(plan, dir, &node) || !node.dir || node.hidden)
		return 0;
	for (size_t i = from <= cordon_trip_of_step(0) ? 0 : from - cordon_trip_of_step(0); i < plan->n_steps; i++) {
		const struct cordon_step *step = &plan->steps[i];

		if (dir != CORDON_TRIP_TOP)
			*ret_name = name_in(plan, i, node.inside);
		else if (step->flags & CORDON_STEP_TRIP &&
			 (step->kind == CORDON_STEP_MASK || step->kind == CORDON_STEP_PRIVATE))
			*ret_name = cordon_digits(cordon_trip_of_step(i), digits);
		else
			*ret_name = NULL;
		if (*ret_name)
			return cordon_trip_of_step(i);
	}
	return 0;
}

uint64_t cordon_trip_entry(const struct cordon_plan *plan, uint64_t dir, const char *name)
{
	char digits[CORDON_DIGITS_SIZE];
	struct cordon_trip_node node;
	const char *found;
	uint64_t number;

	if (dir == CORDON_TRIP_TOP) {
		number = strtoull(name, NULL, 10);
		return number != CORDON_TRIP_TOP && cordon_trip_find(plan, number, &node) ? number : 0;
	}
	for (number = cordon_trip_next(plan, dir, 0, &found, digits); number && !cordon_streq(found, name);)
		number = cordon_trip_next(plan, dir, number + 1, &found, digits);
	return number;
}
