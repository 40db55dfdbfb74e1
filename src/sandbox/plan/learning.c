/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plans what a learning run sees of the host outside the root: what the user can see, read-only, without known secrets.
 * The system (/usr, /etc, /dev, /proc, /run) is the same as in every run, and other people's homes are not shown. The
 * user's own home and /tmp are under a layer that receives what the run writes; it is discarded at the end.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/arena.h"
#include "base/overlay.h"
#include "base/path.h"
#include "protect/homes.h"
#include "protect/secrets.h"
#include "sandbox/plan/plan.h"

/* Top-level names that a learning run does not take from the host: parts of every run, homes, and places of sockets. */
static const char *const own[] = { "bin",	 "dev",	 "etc",	 "home", "lib",	 "lib32", "lib64", "libx32",
				   "lost+found", "proc", "root", "run",	 "sbin", "sys",	  "tmp",   "usr" };

static bool shows_host(const struct cordon_plan_spec *spec)
{
	/* Around a workspace in $CORDON_HOME there are only cordon's own records. */
	return spec->run->learns &&
	       !(spec->home_path && cordon_path_within(spec->run->policy->root.path, spec->home_path));
}

static bool has_home(const struct cordon_policy *policy)
{
	for (size_t i = 0; i < policy->n_shares; i++)
		if (policy->shares[i].home)
			return true;
	return false;
}

const char *cordon_plan_learn_home(struct cordon_plan *plan, const struct cordon_plan_spec *spec)
{
	const char *home = getenv("HOME");
	char path[CORDON_PATH_MAX];

	if (!shows_host(spec) || has_home(spec->run->policy) || !home || *home != '/' ||
	    !cordon_homes_canonical(home, path) || cordon_streq(path, "/") || cordon_streq(path, "/tmp") ||
	    cordon_path_within(path, plan->root) || cordon_path_within(path, plan->at))
		return NULL;
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(own); i++) {
		size_t n = strlen(own[i]);
		bool homes = cordon_streq(own[i], "home") || cordon_streq(own[i], "root") || cordon_streq(own[i], "tmp");

		if (!homes && strncmp(path + 1, own[i], n) == 0 && (path[1 + n] == '/' || !path[1 + n]))
			return NULL;
	}
	if (spec->home_path && cordon_path_within(path, spec->home_path))
		return NULL;
	return cordon_overlay_probe(path) == 0 ? cordon_arena_strdup(plan->arena, path) : NULL;
}

/* Whether the plan shows something of the host at this path; a learning run shows host paths under their own names. */
static bool is_shown(const struct cordon_plan *plan, const char *path)
{
	const struct cordon_step *best = NULL;

	for (size_t i = 0; i < plan->n_steps; i++) {
		const struct cordon_step *s = &plan->steps[i];
		bool counts = s->kind == CORDON_STEP_BIND || s->kind == CORDON_STEP_PRIVATE ||
			      s->kind == CORDON_STEP_MASK;

		if (counts && cordon_path_within(path, s->path) && (!best || strlen(s->path) >= strlen(best->path)))
			best = s;
	}
	return best && best->kind == CORDON_STEP_BIND;
}

/* Masks a path that the agent must not see. When it is a link, the mask covers the place to which the link leads. */
static int mask(struct cordon_plan *plan, const struct cordon_policy *policy, const char *path, struct cordon_error *err)
{
	char real[CORDON_PATH_MAX];
	struct cordon_step *step;
	struct stat st;

	if (!cordon_homes_canonical(path, real) || !is_shown(plan, real) || lstat(real, &st) < 0)
		return 0;
	for (size_t i = 0; i < policy->n_shares; i++)
		if (policy->shares[i].target && cordon_streq(policy->shares[i].target, real))
			return 0; /* the user asked for a share at exactly this path */
	/* The workspace covers this path, or lies below it and the user wants to see it. */
	if (cordon_path_within(real, plan->root) || cordon_path_within(plan->root, real))
		return 0;
	step = cordon_plan_step(plan, CORDON_STEP_MASK, real);
	if (!step)
		return cordon_fail_errno(err, -ENOMEM, "plan");
	step->flags = S_ISDIR(st.st_mode) ? CORDON_STEP_IS_DIR : 0;
	return 0;
}

static int show_read_only(struct cordon_plan *plan, const char *path, struct cordon_error *err)
{
	return cordon_plan_bind(plan, path, path, CORDON_STEP_READ_ONLY, CORDON_RIGHT_READ, err);
}

static int show_top(struct cordon_plan *plan, const char *name, struct cordon_error *err)
{
	char path[CORDON_PATH_MAX], target[CORDON_PATH_MAX];
	struct cordon_step *step;
	struct stat st;
	ssize_t n;

	for (size_t i = 0; i < CORDON_ARRAY_SIZE(own); i++)
		if (cordon_streq(name, own[i]))
			return 0;
	if (cordon_streq(name, ".") || cordon_streq(name, "..") ||
	    cordon_path_join("/", name, path, sizeof(path)) < 0 || lstat(path, &st) < 0)
		return 0;
	if (S_ISDIR(st.st_mode))
		return show_read_only(plan, path, err);
	if (!S_ISLNK(st.st_mode) || (n = readlink(path, target, sizeof(target) - 1)) <= 0)
		return 0;
	target[n] = '\0';
	step = cordon_plan_step(plan, CORDON_STEP_LINK, path);
	if (!step || !(step->text = cordon_arena_strdup(plan->arena, target)))
		return cordon_fail_errno(err, -ENOMEM, "plan");
	return 0;
}

static int show_tops(struct cordon_plan *plan, struct cordon_error *err)
{
	DIR *dir = opendir("/");
	int r = 0;

	if (!dir)
		return cordon_fail_errno(err, -errno, "cannot list /");
	for (struct dirent *entry; r == 0 && (entry = readdir(dir));)
		r = show_top(plan, entry->d_name, err);
	closedir(dir);
	return r;
}

/* Masks the known places of secrets in a home directory (protect/secrets.h). */
static int mask_home(struct cordon_plan *plan, const struct cordon_policy *policy, const char *home,
		     struct cordon_error *err)
{
	char path[CORDON_PATH_MAX];
	DIR *dir = opendir(home);
	int r = 0;

	if (!dir)
		return mask(plan, policy, home, err);
	for (struct dirent *entry; r == 0 && (entry = readdir(dir));)
		if (cordon_secret_in_home(entry->d_name) &&
		    cordon_path_join(home, entry->d_name, path, sizeof(path)) == 0)
			r = mask(plan, policy, path, err);
	closedir(dir);
	for (const char *const *place = cordon_secret_places(); r == 0 && *place; place++)
		if (cordon_path_join(home, *place, path, sizeof(path)) == 0)
			r = mask(plan, policy, path, err);
	return r;
}

struct masking {
	struct cordon_plan *plan;
	const struct cordon_policy *policy;
	struct cordon_error *err;
};

/* Masks the home of another person where the plan shows it. In the caller's home of /etc/passwd, which differs from
 * $HOME when the user set that, it masks the secrets. */
static int mask_other_home(void *data, const char *home, uid_t uid)
{
	const struct masking *m = data;

	if (cordon_path_within(m->plan->home, home))
		return 0;
	return uid == m->plan->uid ? mask_home(m->plan, m->policy, home, m->err)
				   : mask(m->plan, m->policy, home, m->err);
}

int cordon_plan_learn(struct cordon_plan *plan, const struct cordon_plan_spec *spec, struct cordon_error *err)
{
	struct masking masking = { plan, spec->run->policy, err };
	bool tmp = false;
	int r;

	if (!shows_host(spec))
		return cordon_plan_note(plan, "the root lies in cordon's own records: nothing outside it is shown") < 0
			       ? cordon_fail_errno(err, -ENOMEM, "plan")
			       : 0;
	r = show_tops(plan, err);
	if (r == 0 && !cordon_path_within("/tmp", plan->root) && cordon_overlay_probe("/tmp") == 0) {
		tmp = true;
		r = cordon_plan_layer(plan, "/tmp", "/tmp", err);
	}
	if (r == 0 && plan->home_shown)
		r = cordon_plan_layer(plan, plan->home, plan->home, err);
	if (r == 0 && plan->home_shown)
		r = mask_home(plan, spec->run->policy, plan->home, err);
	if (r == 0)
		r = cordon_homes_each(mask_other_home, &masking);
	for (const char *const *place = cordon_secret_system_places(); r == 0 && *place; place++)
		r = mask(plan, spec->run->policy, *place, err);
	if (r == 0 && spec->home_path)
		r = mask(plan, spec->run->policy, spec->home_path, err);
	/* When the agent sees the workspace at another path, its own path must not show it a second time without the
	 * denials. */
	if (r == 0 && !cordon_streq(plan->at, plan->root) && is_shown(plan, plan->root)) {
		struct cordon_step *step = cordon_plan_step(plan, CORDON_STEP_MASK, plan->root);

		if (!step)
			return cordon_fail_errno(err, -ENOMEM, "plan");
		step->flags = CORDON_STEP_IS_DIR;
	}
	if (r < 0)
		return r;
	r = cordon_plan_note(
		plan, "outside the root the command sees what you see, read-only, known secrets left out; %s",
		plan->home_shown && tmp ? "what it writes in the home and in /tmp is discarded"
		: plan->home_shown
			? "what it writes in the home is discarded"
			: "its home is a private one, which is discarded, because no layer can be laid on yours");
	return r < 0 ? cordon_fail_errno(err, r, "plan") : 0;
}
