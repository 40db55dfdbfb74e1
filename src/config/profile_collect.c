/* SPDX-License-Identifier: Apache-2.0 */
/* Turns what a profile says into shares and variables of a run. */
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>

#include "base/confirmed.h"
#include "base/path.h"
#include "base/resolve.h"
#include "config/profile.h"

struct collect {
	const struct cordon_policy_file *file;
	const struct cordon_profile_ask *ask;
	struct cordon_profile_use *use;
	const char *where; /* "profile claude" */
};

int cordon_profile_add_text(struct cordon_profile_use *use, char ***list, size_t *n, char *text,
			    struct cordon_error *err)
{
	char **bigger = text ? cordon_arena_grow(use->arena, *list, *n, *n + 1, sizeof(*bigger)) : NULL;

	if (!bigger)
		return cordon_fail_errno(err, -ENOMEM, "profile");
	bigger[(*n)++] = text;
	*list = bigger;
	return 0;
}

/* Makes a directory and what leads to it; `path` is canonical, and no link is followed. */
static int make_path(const char *path, struct cordon_error *err)
{
	autofd int fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	int r = fd < 0 ? -errno : 0;

	for (const char *p = path + 1; r == 0 && *p;) {
		size_t n = strcspn(p, "/");
		char name[NAME_MAX + 1];
		int next;

		if (cordon_copy(name, sizeof(name), p, n) < 0)
			return cordon_fail_errno(err, -ENAMETOOLONG, "cannot make %s", path);
		next = openat(fd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (next < 0 && errno == ENOENT && (mkdirat(fd, name, 0700) == 0 || errno == EEXIST))
			next = openat(fd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		r = next < 0 ? -errno : 0;
		if (r == 0) {
			cordon_closep(&fd);
			fd = next;
		}
		p += n + strspn(p + n, "/");
	}
	return r < 0 ? cordon_fail_errno(err, r, "cannot make %s", path) : 0;
}

/* Refuses a path that leads through a link in a directory in which the agent of this run writes. */
static int judge_links(const char *path, const char *in, struct cordon_error *err)
{
	autohome struct cordon_home home = CORDON_HOME_NONE;
	char leads[CORDON_PATH_MAX];
	int r = cordon_home_open(&home, err);

	return r < 0 ? r : cordon_confirmed_links(&home, path, in, leads, err);
}

/*
 * Makes a directory that is missing, whose path may lead through links that the user put there. INVARIANT: a link that an
 * agent could have turned decides neither what a run sees nor where a directory is made. `in` is a directory in which the
 * agent of this run writes. With `keeps`, the directory is one of the user's: what was just made is empty and ours, so nobody
 * needs to be asked whether it may stand where another one stood.
 */
static int make_missing(const char *path, const char *in, bool keeps, struct cordon_error *err)
{
	autohome struct cordon_home home = CORDON_HOME_NONE;
	char leads[CORDON_PATH_MAX], opened[CORDON_PATH_MAX];
	struct cordon_named named = { .given = path, .path = opened };
	autofd int fd = -1;
	struct stat st;
	int r;

	if (lstat(path, &st) == 0)
		return 0;
	r = cordon_home_open(&home, err);
	if (r == 0)
		r = cordon_confirmed_links(&home, path, in, leads, err);
	if (r == 0)
		r = make_path(leads, err);
	if (r < 0 || !keeps)
		return r;
	named.fd = fd = cordon_resolve_open(path, opened);
	if (fd < 0 || !cordon_streq(opened, leads))
		return cordon_fail_errno(err, fd < 0 ? fd : -ESTALE, "cannot open %s", path);
	return cordon_confirmed_take(&home, &named, true, NULL, err);
}

/* Judges a directory that lies in `in`, where the agent of this run writes (NULL: in the user's home), and makes it if need
 * be. What a workspace has of its own is judged by the store. */
static int place_ready(const struct collect *c, const char *in, const char *path, bool keeps, struct cordon_error *err)
{
	int r = in && !c->ask->state_dir ? judge_links(path, in, err) : 0;

	return r == 0 && c->ask->make ? make_missing(path, in ? in : c->ask->root, keeps && !c->ask->state_dir, err) : r;
}

/* The directory in which the state lies, and whether the caller's variable named it. */
static int find_state(const struct collect *c, const struct cordon_state_setting *state,
		      char ret[static CORDON_PATH_MAX], bool *ret_moved, struct cordon_error *err)
{
	const char *named = state->variable ? getenv(state->variable) : NULL;
	const char *base = c->ask->state_dir ? c->ask->state_dir : c->ask->run_home ? c->ask->run_home : c->ask->home;

	*ret_moved = false;
	if (named && *named == '/' && !c->ask->state_dir && !c->ask->run_home) {
		char usual[CORDON_PATH_MAX], clean[CORDON_PATH_MAX];

		if (cordon_path_clean(named, clean, sizeof(clean)) < 0)
			return cordon_fail(err, -EINVAL, CORDON_KIND_USAGE, "%s: %s=%s can't be used", c->where,
					   state->variable, named);
		*ret_moved = true;
		if (cordon_path_join(base, state->path, usual, sizeof(usual)) < 0 || !cordon_streq(usual, clean)) {
			memcpy(ret, clean, strlen(clean) + 1);
			return place_ready(c, NULL, ret, true, err);
		}
	}
	if (!*base)
		return cordon_fail(err, -ENOENT, CORDON_KIND_NOT_FOUND, "%s: there is no home directory (HOME)",
				   c->where);
	if (cordon_path_join(base, state->path, ret, CORDON_PATH_MAX) < 0)
		return cordon_fail_errno(err, -ENAMETOOLONG, "%s", state->path);
	return place_ready(c, c->ask->run_home, ret, !c->ask->run_home, err);
}

static int set_variable(const struct collect *c, const struct cordon_state_setting *state, struct cordon_error *err)
{
	if (!state->variable)
		return 0;
	return cordon_profile_add_text(c->use, &c->use->home_env, &c->use->n_home_env,
				       cordon_arena_printf(c->use->arena, "%s=%s", state->variable, state->path), err);
}

/* What lies in the run's own home is written by its agent anyway; only links count there. */
static cordon_share_named named_by(const struct collect *c)
{
	return c->ask->state_dir ? CORDON_NAMED_BY_NOBODY : c->ask->run_home ? CORDON_NAMED_NOW : CORDON_NAMED_BEFORE;
}

static int add_state(const struct collect *c, const struct cordon_state_setting *state, struct cordon_error *err)
{
	char source[CORDON_PATH_MAX];
	struct cordon_share share = { .source = source, .own = c->ask->state_dir != NULL, .named = named_by(c) };
	size_t n = state->hold.n + state->hold_moved.n, k = 0;
	const char **protect = cordon_arena_alloc(c->use->arena, (n + 1) * sizeof(*protect));
	bool moved;
	int r = find_state(c, state, source, &moved, err);

	if (r < 0)
		return r;
	share.target = cordon_arena_printf(c->use->arena, "~/%s", state->path);
	share.where = cordon_arena_printf(c->use->arena, "%s, state %s", c->where, share.target ? share.target : "");
	if (!protect || !share.target || !share.where)
		return cordon_fail_errno(err, -ENOMEM, "profile");
	for (size_t i = 0; i < state->hold.n; i++)
		if (!(protect[k++] = cordon_arena_strdup(c->use->arena, state->hold.items[i].text)))
			return cordon_fail_errno(err, -ENOMEM, "profile");
	for (size_t i = 0; moved && i < state->hold_moved.n; i++)
		if (!(protect[k++] = cordon_arena_strdup(c->use->arena, state->hold_moved.items[i].text)))
			return cordon_fail_errno(err, -ENOMEM, "profile");
	share.protect = protect;
	share.n_protect = k;
	r = set_variable(c, state, err);
	/* Without `make` nothing is run, and a directory that is still missing has nothing to say about. */
	if (r < 0 || (!c->ask->make && access(source, F_OK) < 0))
		return r;
	return cordon_profile_add_share(c->use, &share, err);
}

/* The state that a private directory lies in, or NULL. */
static const struct cordon_share *state_around(const struct collect *c, const char *target)
{
	for (size_t i = 0; i < c->use->n_shares; i++) {
		const struct cordon_share *share = &c->use->shares[i];

		if (share->kind == CORDON_SHARE_PLAIN && !share->read_only && share->target &&
		    cordon_path_within(target, share->target))
			return share;
	}
	return NULL;
}

static int add_private(const struct collect *c, const struct cordon_setting *setting, struct cordon_error *err)
{
	char source[CORDON_PATH_MAX];
	struct cordon_share share = { .source = source, .kind = CORDON_SHARE_LAYER, .named = named_by(c) };
	const struct cordon_share *state;
	struct stat st;
	int r = 0;

	share.target = cordon_arena_printf(c->use->arena, "~/%s", setting->text);
	share.where = cordon_arena_printf(c->use->arena, "%s, private ~/%s", c->where, setting->text);
	if (!share.target || !share.where)
		return cordon_fail_errno(err, -ENOMEM, "profile");
	state = state_around(c, share.target);
	if (state) {
		const char *rest = share.target + strlen(state->target);

		rest += strspn(rest, "/");
		if (cordon_path_join(state->source, rest, source, sizeof(source)) < 0)
			return cordon_fail_errno(err, -ENAMETOOLONG, "%s", setting->text);
		if (share.named == CORDON_NAMED_BEFORE)
			share.named = CORDON_NAMED_NOW;
		/* The layer needs a directory to lie on. */
		r = place_ready(c, state->source, source, false, err);
	} else if (c->ask->run_home) {
		if (cordon_path_join(c->ask->run_home, setting->text, source, sizeof(source)) < 0)
			return cordon_fail_errno(err, -ENAMETOOLONG, "%s", setting->text);
		r = place_ready(c, c->ask->run_home, source, false, err);
	} else if (cordon_path_join(c->ask->home, setting->text, source, sizeof(source)) < 0) {
		return cordon_fail_errno(err, -ENAMETOOLONG, "%s", setting->text);
	}
	/* The home of the run is private anyway: a directory that is missing on the host needs no layer. */
	if (r < 0 || (state ? lstat(source, &st) : stat(source, &st)) < 0 || !S_ISDIR(st.st_mode))
		return r; /* INVARIANT: an agent writes in the state, so a link there never decides what a run sees */
	return cordon_profile_add_share(c->use, &share, err);
}

static int add_variables(const struct collect *c, struct cordon_error *err)
{
	struct cordon_profile_use *use = c->use;
	int r = 0;

	for (size_t i = 0; r == 0 && i < c->file->n_env; i++) {
		const struct cordon_env_setting *env = &c->file->env[i];

		r = cordon_profile_add_text(use, &use->env, &use->n_env,
					    cordon_arena_printf(use->arena, "%s=%s", env->name, env->value), err);
	}
	for (size_t i = 0; r == 0 && i < c->file->keep_env.n; i++)
		r = cordon_profile_add_text(use, &use->keep_env, &use->n_keep_env,
					    cordon_arena_strdup(use->arena, c->file->keep_env.items[i].text), err);
	return r;
}

static int add_shares(const struct collect *c, struct cordon_error *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < c->file->n_shares; i++) {
		const struct cordon_share_value *value = &c->file->shares[i].share;
		struct cordon_share share = { .source = value->source,
					      .target = value->target,
					      .read_only = value->read_only,
					      .named = CORDON_NAMED_BEFORE,
					      .where = c->where };

		if (access(value->source, F_OK) == 0)
			r = cordon_profile_add_share(c->use, &share, err);
	}
	return r;
}

int cordon_profile_collect(const struct cordon_policy_file *file, const char *profile,
			   const struct cordon_profile_ask *ask, struct cordon_profile_use *use,
			   struct cordon_error *err)
{
	struct collect c = { .file = file, .ask = ask, .use = use };
	int r = 0;

	if (!use->arena && !(use->arena = cordon_arena_new()))
		return cordon_fail_errno(err, -ENOMEM, "profile");
	c.where = profile ? cordon_arena_printf(use->arena, "profile %s", profile)
			  : cordon_arena_strdup(use->arena, file->doc->name);
	if (!c.where)
		return cordon_fail_errno(err, -ENOMEM, "profile");
	for (size_t i = 0; r == 0 && i < file->n_state; i++)
		r = add_state(&c, &file->state[i], err);
	for (size_t i = 0; r == 0 && i < file->private_dirs.n; i++)
		r = add_private(&c, &file->private_dirs.items[i], err);
	for (size_t i = 0; r == 0 && i < file->program.n; i++) {
		r = cordon_profile_program(file->program.items[i].text, c.where, ask, use, err);
		r = r > 0 ? 0 : r;
	}
	/* The variables and shares of a policy file itself are merged with the options. */
	if (r == 0 && profile)
		r = add_variables(&c, err);
	return r == 0 && profile ? add_shares(&c, err) : r;
}

void cordon_profile_use_done(struct cordon_profile_use *use)
{
	use->arena = cordon_arena_free(use->arena);
	*use = (struct cordon_profile_use){ 0 };
}
