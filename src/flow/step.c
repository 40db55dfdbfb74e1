/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From an orchestrator and its grants to the recipe of a run.
 *
 * The work areas of other runs are covered by an empty directory of our own (state/steps/<run_id>), which is mounted
 * read-only at work/runs and has one place in it, for the work area of this run. So a run that begins later does not
 * appear either, and no list of runs is needed.
 */
#include <dirent.h>
#include <fcntl.h>
#include <jansson.h>
#include <sys/stat.h>

#include "base/dirs.h"
#include "base/identity.h"
#include "base/lock.h"
#include "base/path.h"
#include "flow/orchestrator_file.h"
#include "flow/step.h"

#define COVERS "steps"
#define NO_RUN "none"
#define LOCK_MS 100

/* What a step is made from, while it is made. */
struct making {
	const struct cordon_step_spec_ask *ask;
	struct cordon_step_spec *step;
	int private_fd; /* the private workspace, opened without links and found to be the right one */
	char cover[CORDON_PATH_MAX], runs[CORDON_PATH_MAX];
	struct cordon_share *shares;
	size_t n_shares;
	char **targets, **wheres; /* of shares, and what messages call them: one for each grant */
	const char **protect;	  /* in the work area of the run */
	size_t n_protect;
};

static void making_done(struct making *making)
{
	for (size_t i = 0; making->targets && i < making->ask->orchestrator->n_grants; i++)
		free(making->targets[i]);
	for (size_t i = 0; making->wheres && i < making->ask->orchestrator->n_grants; i++)
		free(making->wheres[i]);
	free(making->targets);
	free(making->wheres);
	free(making->shares);
	free(making->protect);
	cordon_closep(&making->private_fd);
}

static int fail(struct cordon_errors *errors, const struct cordon_error *err)
{
	return cordon_errors_add(errors, err, NULL, 0, 0);
}

static int no_memory(struct cordon_error *err)
{
	return cordon_fail_errno(err, -ENOMEM, "a step");
}

/* ---- places on the host ---- */

/*
 * Locks the cover, so that cordon_step_spec_gc() leaves it alone: removing it would take the work area away from a step that
 * runs. The step itself sees the directory and can lock it, too; then it lives, and our own lock is not needed. Returns whether
 * the directory is still there.
 */
static bool hold(int fd)
{
	struct stat st;

	(void)cordon_lock_within(fd, LOCK_SH, LOCK_MS);
	return fstat(fd, &st) == 0 && st.st_nlink > 0;
}

/* Makes the cover and returns its path. *ret_fd holds it. */
static int make_cover(const struct cordon_step_spec_ask *ask, char ret[static CORDON_PATH_MAX], int *ret_fd,
		      struct cordon_error *err)
{
	autohome struct cordon_home home = CORDON_HOME_NONE;
	autofd int fd = -1;
	autofd int cover = -1;
	char path[CORDON_PATH_MAX] = "";
	const char *name = ask->run_id ? ask->run_id : NO_RUN;
	int r = cordon_home_open(&home, err);

	if (r < 0)
		return r;
	if (cordon_concat(path, sizeof(path), COVERS "/", ask->run_id ? "run-" : "", name, ask->run_id ? "/" : "",
			  ask->run_id ? name : "", (char *)NULL) < 0 ||
	    cordon_concat(ret, CORDON_PATH_MAX, home.path, "/state/" COVERS "/", ask->run_id ? "run-" : "", name,
			  (char *)NULL) < 0)
		return cordon_fail_errno(err, -ENAMETOOLONG, "%s", name);
	do {
		cordon_closep(&fd);
		cordon_closep(&cover);
		r = cordon_home_subdir(&home, path, &fd, err);
		if (r == 0 && (cover = open(ret, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)) < 0 && errno != ENOENT)
			r = cordon_fail_errno(err, -errno, "cannot open %s", ret);
	} while (r == 0 && (cover < 0 || !hold(cover)));
	if (r == 0)
		*ret_fd = cordon_steal_fd(&cover);
	return r;
}

void cordon_step_spec_gc(const struct cordon_home *home)
{
	autofd int covers = -1;
	DIR *dir = NULL;
	int listing = -1;

	if (cordon_home_subdir(home, COVERS, &covers, NULL) < 0 ||
	    (listing = openat(covers, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0 || !(dir = fdopendir(listing))) {
		cordon_closep(&listing);
		return;
	}
	for (const struct dirent *entry; (entry = readdir(dir));) {
		autofd int fd = -1;

		if (strncmp(entry->d_name, "run-", 4) != 0)
			continue;
		fd = openat(covers, entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (fd >= 0 && cordon_lock(fd, LOCK_EX | LOCK_NB) == 0)
			(void)cordon_dirs_remove(covers, entry->d_name, NULL);
	}
	closedir(dir);
}

void cordon_step_spec_forget(const struct cordon_home *home, const char *run_id)
{
	autofd int fd = -1;
	char name[CORDON_SETTINGS_ID_MAX + 8];

	if (cordon_concat(name, sizeof(name), "run-", run_id, (char *)NULL) == 0 &&
	    cordon_home_subdir(home, COVERS, &fd, NULL) == 0)
		(void)cordon_dirs_remove(fd, name, NULL);
}

/* Makes what the mounts of the step need. */
static int make_places(struct making *making, struct cordon_error *err)
{
	const struct cordon_step_spec_ask *ask = making->ask;
	const char *private = ask->orchestrator->private_workspace;
	char path[CORDON_PATH_MAX];
	autofd int run = -1;
	int r = ask->run_id ? cordon_settings_id_check("the id of a run", ask->run_id, err) : 0;

	if (r < 0)
		return r;
	if (cordon_path_join(private, CORDON_PRIVATE_RUNS, making->runs, sizeof(making->runs)) < 0 ||
	    (ask->run_id && cordon_path_join(making->runs, ask->run_id, making->step->run_workspace,
					     sizeof(making->step->run_workspace)) < 0))
		return cordon_fail_errno(err, -ENAMETOOLONG, "%s", private);
	r = cordon_private_open(ask->orchestrator, true, &making->private_fd, err);
	if (r == 0)
		r = make_cover(ask, making->cover, &making->step->cover, err);
	if (r == 0)
		r = cordon_private_prepare(ask->settings, ask->orchestrator, making->private_fd, err);
	if (r < 0 || !ask->run_id || ask->dry)
		return r;
	if (cordon_path_join(CORDON_PRIVATE_RUNS, ask->run_id, path, sizeof(path)) < 0)
		return cordon_fail_errno(err, -ENAMETOOLONG, "%s", ask->run_id);
	return cordon_private_subdir(making->private_fd, path, &run, err);
}

/* ---- rules and shares ---- */

static int add_rule(struct making *making, const char *path)
{
	return cordon_recipe_add_rule(&making->step->recipe, CORDON_RULE_PROTECT, path, "the step", NULL);
}

/* A protected path in the work area of the run belongs to the share that shows it. */
static int make_rules(struct making *making)
{
	static const char *const always[] = { CORDON_ORCHESTRATOR_FILE, "prompts", "workflows" };
	const struct cordon_step_spec_ask *ask = making->ask;
	char run[CORDON_PATH_MAX] = "";
	int r = 0;

	making->protect = calloc(ask->n_protect + 1, sizeof(*making->protect));
	if (!making->protect ||
	    (ask->run_id && cordon_path_join(CORDON_PRIVATE_RUNS, ask->run_id, run, sizeof(run)) < 0))
		return -ENOMEM;
	for (size_t i = 0; r == 0 && i < CORDON_ARRAY_SIZE(always); i++)
		r = add_rule(making, always[i]);
	/* With areas in it, the directory is held for their sake. */
	if (r == 0 && !ask->orchestrator->n_grants)
		r = add_rule(making, CORDON_PRIVATE_SHARED);
	for (size_t i = 0; r == 0 && i < ask->n_protect; i++) {
		const char *path = ask->protect[i];

		if (*run && cordon_path_within(path, run) && !cordon_streq(path, run))
			making->protect[making->n_protect++] = path + strlen(run) + 1;
		else
			r = add_rule(making, path);
	}
	return r;
}

static char *join(const char *a, const char *b, const char *c)
{
	size_t size = strlen(a) + strlen(b) + strlen(c) + 1;
	char *text = malloc(size);

	if (text)
		(void)cordon_concat(text, size, a, b, c, (char *)NULL);
	return text;
}

static int make_shares(struct making *making)
{
	const struct cordon_step_spec_ask *ask = making->ask;
	const struct cordon_orchestrator *orchestrator = ask->orchestrator;
	size_t n = orchestrator->n_grants;

	making->shares = calloc(2 * n + 2, sizeof(*making->shares));
	making->targets = calloc(n + 1, sizeof(*making->targets));
	making->wheres = calloc(n + 1, sizeof(*making->wheres));
	if (!making->shares || !making->targets || !making->wheres)
		return -ENOMEM;
	making->shares[making->n_shares++] = (struct cordon_share){
		.source = making->cover, .target = making->runs, .read_only = true, .own = true, .where = "other runs"
	};
	/* A plan that nobody runs shows what there is. */
	if (ask->run_id && !(ask->dry && access(making->step->run_workspace, F_OK) < 0))
		making->shares[making->n_shares++] = (struct cordon_share){
			.source = ask->run_dir ? ask->run_dir : making->step->run_workspace,
			.target = making->step->run_workspace,
			.own = true,
			.where = "the work area of the run",
			.protect = making->protect,
			.n_protect = making->n_protect
		};
	for (size_t i = 0; i < n; i++) {
		const struct cordon_area_grant *grant = &orchestrator->grants[i];
		struct cordon_share share = { .source = grant->area->path,
					      .as = grant->area->given,
					      .named = CORDON_NAMED_BEFORE,
					      .read_only = grant->read_only };

		making->wheres[i] = join("the shared area ", "", grant->area->key);
		making->targets[i] = join(orchestrator->private_workspace, "/" CORDON_PRIVATE_SHARED "/",
					  grant->area->key);
		if (!making->wheres[i] || !making->targets[i])
			return -ENOMEM;
		share.where = making->wheres[i];
		making->shares[making->n_shares++] = share;
		share.target = making->targets[i];
		making->shares[making->n_shares++] = share;
	}
	return 0;
}

/* ---- the provider ---- */

/* What the provider's program needs of the host: its profile, or the program alone. */
static int use_provider(struct making *making, struct cordon_errors *errors)
{
	const struct cordon_provider *provider = making->ask->provider;
	struct cordon_recipe *recipe = &making->step->recipe;
	struct cordon_policy_file *file = NULL;
	struct cordon_error err = { 0 };
	int r;

	if (!provider)
		return 0;
	if (!provider->profile) {
		recipe->program = provider->command[0];
		recipe->program_of = "the provider's command";
		return 0;
	}
	if (cordon_recipe_find_dirs(recipe, &err) < 0)
		return fail(errors, &err);
	r = cordon_profile_load(recipe->dirs, provider->profile, &file, errors);
	if (r < 0)
		return r;
	if (file->rw.n || file->ro.n || file->workspace.n)
		r = cordon_fail(&err, -EPERM, CORDON_KIND_POLICY_DENIED,
				"the profile %s grants paths of the workspace, which a step does not need",
				provider->profile);
	if (cordon_recipe_add_profile(recipe, provider->profile, file, r < 0 ? NULL : &err) < 0 && r == 0)
		r = err.code;
	return r < 0 ? fail(errors, &err) : 0;
}

/* ---- the environment ---- */

static json_t *shared_json(const struct making *making)
{
	const struct cordon_orchestrator *orchestrator = making->ask->orchestrator;
	json_t *list = json_array();

	for (size_t i = 0; i < orchestrator->n_grants; i++) {
		const struct cordon_area_grant *grant = &orchestrator->grants[i];

		json_array_append_new(list, json_pack("{s:s, s:s, s:s, s:s, s:s}", "name", grant->area->key, "path",
						      grant->area->path, "mount", making->targets[i], "access",
						      grant->read_only ? "read-only" : "read-write", "description",
						      grant->area->description));
	}
	return list;
}

/* Variables come after those of the profile; names of env_pass count where nobody sets them. */
static int make_env(struct making *making, struct cordon_error *err)
{
	const struct cordon_step_spec_ask *ask = making->ask;
	const struct cordon_provider *provider = ask->provider;
	struct cordon_recipe *recipe = &making->step->recipe;
	json_auto_t *list = shared_json(making);
	autofree char *shared = list ? json_dumps(list, JSON_COMPACT) : NULL;
	int r = shared ? 0 : no_memory(err);

	for (size_t i = 0; r == 0 && provider && i < provider->n_env; i++)
		r = cordon_recipe_add_env(recipe, provider->env[i].name, provider->env[i].value, err);
	for (size_t i = 0; r == 0 && provider && i < provider->env_pass.n; i++)
		r = cordon_recipe_add_text(&recipe->pass_env, provider->env_pass.items[i].text, err);
	for (size_t i = 0; r == 0 && i < ask->n_env; i++)
		r = cordon_recipe_add_text(&recipe->env, ask->env[i], err);
	if (r == 0)
		r = cordon_recipe_add_env(recipe, "CORDON_ORCHESTRATOR", ask->orchestrator->id, err);
	if (r == 0)
		r = cordon_recipe_add_env(recipe, "CORDON_SHARED", shared, err);
	if (r == 0 && ask->run_id)
		r = cordon_recipe_add_env(recipe, "CORDON_RUN_WORKSPACE", making->step->run_workspace, err);
	return r;
}

/* ---- the whole ---- */

static void fill_recipe(const struct making *making)
{
	const struct cordon_step_spec_ask *ask = making->ask;
	struct cordon_recipe *recipe = &making->step->recipe;

	recipe->root = ask->orchestrator->private_workspace;
	recipe->reports_reads = true;
	recipe->without_settings = true;
	recipe->without_worktree = true;
	recipe->places = making->shares;
	recipe->n_places = making->n_shares;
	recipe->values = ask->settings->limits;
	cordon_recipe_set_value(recipe, CORDON_RECIPE_READ_ONLY, ask->run_workspace);
	if (ask->timeout_ms)
		cordon_recipe_set_value(recipe, CORDON_RECIPE_TIMEOUT, ask->timeout_ms);
	recipe->spec.argv = ask->argv;
	recipe->spec.cwd = ask->orchestrator->private_workspace;
	recipe->spec.agent = ask->orchestrator->id;
	recipe->spec.agent_role = "orchestrator";
	recipe->spec.orchestrator_id = ask->orchestrator->id;
}

static int compile(struct making *making, struct cordon_errors *errors)
{
	const struct cordon_step_spec_ask *ask = making->ask;
	struct cordon_recipe *recipe = &making->step->recipe;
	struct cordon_error err = { 0 };
	int r;

	fill_recipe(making);
	r = cordon_recipe_compile(recipe, ask->dry ? CORDON_RECIPE_PLANS : CORDON_RECIPE_STARTS, errors);
	recipe->places = NULL;
	recipe->n_places = 0;
	/* INVARIANT: the policy judges the directory that was opened without links and found to be the right one. */
	if (r < 0 || cordon_same_object(making->private_fd, recipe->policy->root.fd))
		return r;
	cordon_fail(&err, -ESTALE, CORDON_KIND_CONFLICT,
		    "the private workspace of %s: something else was just put in its place", ask->orchestrator->id);
	return fail(errors, &err);
}

int cordon_step_spec_init(const struct cordon_step_spec_ask *ask, struct cordon_step_spec *ret_step,
			  struct cordon_errors *errors)
{
	struct making making CORDON_CLEANUP(making_done) = { .ask = ask, .step = ret_step, .private_fd = -1 };
	struct cordon_error err = { 0 };
	int r;

	*ret_step = (struct cordon_step_spec){ .cover = -1 };
	r = make_places(&making, &err);
	if (r == 0 && (make_rules(&making) < 0 || make_shares(&making) < 0))
		r = no_memory(&err);
	if (r == 0)
		r = make_env(&making, &err);
	if (r < 0)
		fail(errors, &err);
	else
		r = use_provider(&making, errors);
	if (r == 0)
		r = compile(&making, errors);
	if (r < 0)
		cordon_step_spec_done(ret_step);
	return r;
}

void cordon_step_spec_done(struct cordon_step_spec *step)
{
	cordon_recipe_done(&step->recipe);
	cordon_closep(&step->cover);
	*step = (struct cordon_step_spec){ .cover = -1 };
}
