/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the agents of a project see of the host beside their workspace: profiles, shares and the home.
 *
 *     state/projects/<uuid>/homes/<workspace>/home    the home of a workspace that stays
 *     state/projects/<uuid>/homes/<workspace>/state/  the state of its profiles (~/.claude), if it has no such home
 *
 * INVARIANT: what is made for one workspace is shown in sessions of that workspace only. It lies below state/, which
 * no sandbox shows otherwise, and is removed with its workspace.
 */
#include <limits.h>
#include <stdio.h>

#include "base/confirmed.h"
#include "base/json.h"
#include "base/path.h"
#include "base/resolve.h"
#include "config/policy_build.h"
#include "config/values.h"
#include "protect/shares.h"
#include "store/places.h"

/* The shares of settings, parsed. */
struct places {
	struct cordon_share_value *values;
	struct cordon_share *shares;
	size_t n;
};

static void places_done(struct places *places)
{
	for (size_t i = 0; places->values && i < places->n; i++)
		cordon_share_done(&places->values[i]);
	free(places->values);
	free(places->shares);
}

#define autoplaces CORDON_CLEANUP(places_done)

static int parse(const struct cordon_settings *settings, cordon_share_named named, struct places *ret,
		 struct cordon_error *err)
{
	size_t n = json_array_size(settings->shares);
	int r = 0;

	ret->values = calloc(n + 1, sizeof(*ret->values));
	ret->shares = calloc(n + 1, sizeof(*ret->shares));
	if (!ret->values || !ret->shares)
		return cordon_no_memory(err);
	for (; r == 0 && ret->n < n; ret->n++) {
		struct cordon_share_value *value = &ret->values[ret->n];

		r = cordon_share_parse(json_string_value(json_array_get(settings->shares, ret->n)), value, err);
		ret->shares[ret->n] = (struct cordon_share){
			.source = value->source, .target = value->target, .read_only = value->read_only, .named = named
		};
	}
	return r;
}

static bool is_shared_home(const struct cordon_settings *settings)
{
	return settings->home[0] == '/';
}

/* ---- profiles ---- */

void cordon_profiles_done(struct cordon_profiles *profiles)
{
	while (profiles->n)
		cordon_policy_file_free(profiles->files[--profiles->n]);
}

/* Loads one; the error is the first of its file. */
static int load_profile(const char *name, struct cordon_profiles *profiles, struct cordon_error *err)
{
	struct cordon_errors errors CORDON_CLEANUP(cordon_errors_done) = { 0 };
	int r = cordon_profile_load(&profiles->dirs, name, &profiles->files[profiles->n], &errors);

	if (r < 0)
		return cordon_errors_first(&errors, err);
	profiles->names[profiles->n++] = name;
	return 0;
}

int cordon_profiles_load(const struct cordon_settings *settings, struct cordon_profiles *ret, struct cordon_error *err)
{
	size_t n = json_array_size(settings->profile);
	int r = 0;

	if (n)
		cordon_profile_dirs_find(&ret->dirs);
	for (size_t i = 0; r == 0 && i < n && i < CORDON_PROJECT_PROFILES_MAX; i++)
		r = load_profile(json_string_value(json_array_get(settings->profile, i)), ret, err);
	return r;
}

int cordon_settings_net(const struct cordon_settings *settings, struct cordon_net_list *ret_list,
			struct cordon_error *err)
{
	autoprofiles struct cordon_profiles profiles = { 0 };
	struct cordon_policy_spec spec = { .net_record = settings->net };
	int r = cordon_profiles_load(settings, &profiles, err);

	spec.profiles = profiles.files;
	spec.n_profiles = profiles.n;
	return r < 0 ? r : cordon_net_build(&spec, NULL, ret_list, err);
}

int cordon_settings_narrow_net(struct cordon_settings *settings, json_t *net, struct cordon_error *err)
{
	struct cordon_settings wanted = *settings;
	struct cordon_net_list outer = { 0 }, inner = { 0 };
	json_t *value = NULL;
	int r = cordon_net_json_valid("net", net, err);

	wanted.net = net;
	if (r == 0)
		r = cordon_settings_net(settings, &outer, err);
	if (r == 0)
		r = cordon_settings_net(&wanted, &inner, err);
	if (r == 0 && (r = cordon_net_list_within(&inner, &outer, err)) < 0) {
		cordon_error_prefix(err, r, "net is wider than the project's");
		cordon_error_hint(err, "a session narrows the list of its project; change that one to widen it");
	}
	/* What was judged is what counts, whatever becomes of the profiles. */
	if (r == 0 && !(value = cordon_net_list_json(&inner)))
		r = cordon_no_memory(err);
	if (r == 0) {
		json_decref(settings->net);
		settings->net = value;
	}
	cordon_net_list_done(&outer);
	cordon_net_list_done(&inner);
	return r;
}

/* ---- judging settings ---- */

static void add_fault(struct cordon_buf *faults, struct cordon_error *first, const struct cordon_error *fault)
{
	cordon_buf_addf(faults, "%s%s", faults->len ? "; " : "", fault->message);
	if (!first->code)
		*first = *fault;
}

/* The plan refuses these too; but a person who sets them wants to know it now. */
static int check_share(const struct cordon_policy_share *share, const struct cordon_home *home, struct cordon_error *err)
{
	if (cordon_path_within(share->source, home->path) || cordon_path_within(home->path, share->source))
		return cordon_fail(err, -EACCES, CORDON_KIND_POLICY_DENIED, "%s %s cordon's own records (%s)",
				   share->where, cordon_path_within(home->path, share->source) ? "holds" : "lies in",
				   home->path);
	if (share->target && cordon_path_within(CORDON_WORKSPACE_AT, share->target))
		return cordon_fail(err, -EBUSY, CORDON_KIND_POLICY_DENIED,
				   "%s can't be shown at %s: that is where the workspace is", share->where,
				   share->target);
	return 0;
}

/* Tries the shares with a policy that is thrown away. Its root does not matter. */
static int try(const struct cordon_share *shares, size_t n, const struct cordon_share *home_dir, bool protect,
	       const struct cordon_home *home, struct cordon_error *err)
{
	struct cordon_policy *policy = NULL;
	int r = cordon_policy_new("/", &policy, err);

	if (r == 0)
		r = cordon_shares_add(policy, shares, n, home_dir, CORDON_WORKSPACE_AT, protect, err);
	for (size_t i = 0; r == 0 && i < policy->n_shares; i++)
		r = check_share(&policy->shares[i], home, err);
	cordon_policy_free(policy);
	return r;
}

int cordon_places_judge(const struct cordon_settings *settings, struct cordon_error *err)
{
	autobuf struct cordon_buf faults = CORDON_BUF(sizeof(err->message));
	autohome struct cordon_home home = CORDON_HOME_NONE;
	autoplaces struct places places = { 0 };
	struct cordon_error first = { 0 }, fault = { 0 };
	const struct cordon_share own_home = { .source = settings->home, .named = CORDON_NAMED_NOW };
	const struct cordon_share *home_dir = is_shared_home(settings) ? &own_home : NULL;
	autoprofiles struct cordon_profiles profiles = { 0 };
	bool protect = settings->default_protection;
	size_t i;
	json_t *name;
	int r;

	if (!home_dir && !json_array_size(settings->shares) && !json_array_size(settings->profile))
		return 0;
	cordon_profile_dirs_find(&profiles.dirs);
	json_array_foreach(settings->profile, i, name) {
		if (load_profile(json_string_value(name), &profiles, &fault) < 0)
			add_fault(&faults, &first, &fault);
	}
	r = cordon_home_open(&home, err);
	if (r == 0)
		r = parse(settings, CORDON_NAMED_NOW, &places, err);
	if (r < 0)
		return r;
	if (home_dir && try(NULL, 0, home_dir, protect, &home, &fault) < 0)
		add_fault(&faults, &first, &fault);
	for (i = 0; i < places.n; i++)
		if (try(&places.shares[i], 1, NULL, protect, &home, &fault) < 0)
			add_fault(&faults, &first, &fault);
	/* Then all together: two shares may contradict each other. */
	if (!first.code && try(places.shares, places.n, home_dir, protect, &home, &fault) < 0)
		add_fault(&faults, &first, &fault);
	if (!first.code)
		return 0;
	r = cordon_fail(err, first.code, first.kind, "%s", faults.data ? faults.data : first.message);
	if (*first.hint)
		cordon_error_hint(err, "%s", first.hint);
	return r;
}

/* ---- a person says yes ---- */

int cordon_place_confirm(const char *path, struct cordon_error *err)
{
	autohome struct cordon_home home = CORDON_HOME_NONE;
	char leads[CORDON_PATH_MAX];
	autofd int fd = cordon_resolve_open(path, leads);
	struct cordon_named named = { .given = path, .path = leads, .fd = fd };
	int r = fd < 0 ? cordon_fail_errno(err, fd, "%s", path) : cordon_home_open(&home, err);

	return r < 0 ? r : cordon_confirmed_take(&home, &named, false, NULL, err);
}

int cordon_places_confirm(const struct cordon_settings *before, const struct cordon_settings *settings,
			  struct cordon_error *err)
{
	size_t i;
	json_t *item;
	int r = 0;

	if (is_shared_home(settings) && !(before && cordon_streq(before->home, settings->home)))
		r = cordon_place_confirm(settings->home, err);
	json_array_foreach(settings->shares, i, item) {
		struct cordon_share_value share = { 0 };

		if (r < 0 || (before && cordon_json_has(before->shares, json_string_value(item))))
			continue;
		r = cordon_share_parse(json_string_value(item), &share, err);
		if (r == 0)
			r = cordon_place_confirm(share.source, err);
		cordon_share_done(&share);
	}
	return r;
}

/* ---- what a workspace gets ---- */

/* Opens, and makes if need be, the directory in which everything lies that belongs to one workspace alone. */
static int open_own(const struct cordon_project *project, const char *workspace, int *ret_fd, struct cordon_error *err)
{
	autofd int homes = -1;
	int r = cordon_state_dir(project->state_fd, CORDON_HOMES, &homes, err);

	return r < 0 ? r : cordon_state_dir(homes, workspace, ret_fd, err);
}

/* The path of an open directory. Everything above it belongs to us alone, so the path stays what it is. */
static int path_of(int fd, char ret_path[static CORDON_PATH_MAX], struct cordon_error *err)
{
	char link[CORDON_FD_PATH_SIZE];
	ssize_t n = readlink(cordon_fd_path(fd, link), ret_path, CORDON_PATH_MAX - 1);

	if (n < 0)
		return cordon_fail_errno(err, -errno, "cannot find the home of a workspace");
	ret_path[n] = '\0';
	return 0;
}

/* Whether every component of the path below the directory is a directory and no link. An agent could write what lies
 * in the state of an earlier session. */
static bool leads_straight(int dir_fd, const char *path)
{
	autofd int fd = openat(dir_fd, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);

	while (fd >= 0 && *path) {
		size_t n = strcspn(path, "/");
		char name[NAME_MAX + 1];
		int next;

		if (cordon_copy(name, sizeof(name), path, n) < 0)
			return false;
		next = openat(fd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		close(fd);
		fd = next;
		path += n + strspn(path + n, "/");
	}
	return fd >= 0;
}

/* Collects what the profiles give to a session of this workspace, whose own state they get. */
static int collect(struct cordon_recipe *recipe, int root_fd, int state_fd, bool make, bool with_state,
		   struct cordon_error *err)
{
	struct cordon_profile_use *use = &recipe->profile;
	char state[CORDON_PATH_MAX], root[CORDON_PATH_MAX];
	struct cordon_profile_ask ask = { .home = recipe->dirs->home,
					  .path = getenv("PATH"),
					  .root = root,
					  .state_dir = state,
					  .make = make && with_state };
	size_t kept = 0;
	int r = path_of(state_fd, state, err);

	if (r == 0)
		r = path_of(root_fd, root, err);
	for (size_t i = 0; r == 0 && i < recipe->n_profiles; i++)
		r = cordon_profile_collect(recipe->profiles[i], recipe->profile_names[i], &ask, use, err);
	for (size_t i = 0; r == 0 && i < use->n_shares; i++) {
		struct cordon_share *share = &use->shares[i];
		bool of_state = cordon_path_within(share->source, state);

		/* A home that stays has the state already. What the operator's own home has is for no tenant, not even
		 * under a layer. */
		if ((of_state && !with_state) || (!of_state && share->kind == CORDON_SHARE_LAYER))
			continue;
		/* INVARIANT: the state of one workspace never leads to that of another, or to the host. */
		if (of_state &&
		    !leads_straight(state_fd, share->source + strlen(state) + (share->source[strlen(state)] == '/')))
			return cordon_fail(err, -ELOOP, CORDON_KIND_CONFLICT,
					   "%s: something in the state of this workspace is a link or no directory: %s",
					   share->where, share->source + strlen(state));
		share->own |= of_state;
		use->shares[kept++] = *share;
	}
	if (r == 0)
		use->n_shares = kept;
	return r;
}

/* The recipe takes the profiles over. */
static int give_profiles(const struct cordon_settings *settings, struct cordon_recipe *recipe, struct cordon_error *err)
{
	autoprofiles struct cordon_profiles profiles = { 0 };
	size_t given = 0;
	int r = json_array_size(settings->profile) ? cordon_recipe_find_dirs(recipe, err) : 0;

	if (r == 0)
		r = cordon_profiles_load(settings, &profiles, err);
	while (r == 0 && given < profiles.n) {
		r = cordon_recipe_add_profile(recipe, profiles.names[given], profiles.files[given], err);
		profiles.files[given++] = NULL;
	}
	return r;
}

static int add_home(int own_fd, struct cordon_policy *policy, struct cordon_error *err)
{
	char path[CORDON_PATH_MAX];
	autofd int home = -1;
	size_t before = policy->n_shares;
	int r = cordon_state_dir(own_fd, "home", &home, err);

	if (r == 0)
		r = path_of(home, path, err);
	/* The host executes nothing that lies there, so nothing in it is protected by default. */
	if (r == 0)
		r = cordon_shares_add(policy, NULL, 0, &(struct cordon_share){ .source = path }, CORDON_WORKSPACE_AT,
				      false, err);
	for (size_t i = before; r == 0 && i < policy->n_shares; i++)
		policy->shares[i].own = true;
	return r;
}

int cordon_places_compile(const struct cordon_project *project, const char *workspace,
			  const struct cordon_settings *settings, int root_fd, bool starts,
			  struct cordon_recipe *recipe, struct cordon_error *err)
{
	bool stays = cordon_streq(settings->home, CORDON_HOME_WORKSPACE);
	struct cordon_errors errors CORDON_CLEANUP(cordon_errors_done) = { 0 };
	autoplaces struct places places = { 0 };
	autofd int own = -1;
	autofd int state = -1;
	int r = parse(settings, CORDON_NAMED_BEFORE, &places, err);

	if (r == 0)
		r = give_profiles(settings, recipe, err);
	if (r == 0 && (stays || recipe->n_profiles))
		r = open_own(project, workspace, &own, err);
	if (r == 0 && recipe->n_profiles)
		r = cordon_state_dir(own, "state", &state, err);
	if (r == 0 && recipe->n_profiles)
		r = collect(recipe, root_fd, state, starts, !stays, err);
	if (r < 0)
		return r;
	recipe->collected = true;
	recipe->without_settings = true;
	recipe->without_worktree = true;
	recipe->at = CORDON_WORKSPACE_AT;
	recipe->places = places.shares;
	recipe->n_places = places.n;
	recipe->home = is_shared_home(settings) ? settings->home : NULL;
	recipe->home_of_file = true;
	r = cordon_recipe_compile(recipe, CORDON_RECIPE_PLANS, &errors);
	recipe->places = NULL;
	recipe->n_places = 0;
	if (r < 0)
		return cordon_errors_first(&errors, err);
	return stays ? add_home(own, recipe->policy, err) : 0;
}
