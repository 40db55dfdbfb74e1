/* SPDX-License-Identifier: Apache-2.0 */
/* Turns what a profile says into shares and variables of a run. */
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>

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

/* Makes a directory and what leads to it below `base`; follows no link below it. */
static int make_below(const char *base, const char *path, struct cordon_error *err)
{
	autofd int fd = open(base, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int r = fd < 0 ? -errno : 0;

	for (const char *p = path; r == 0 && *p;) {
		size_t n = strcspn(p, "/");
		char name[NAME_MAX + 1];
		int next;

		r = cordon_copy(name, sizeof(name), p, n);
		if (r == 0 && mkdirat(fd, name, 0700) < 0 && errno != EEXIST)
			r = -errno;
		/* The user may have put a link there; then the rest is made behind it. */
		next = r < 0 ? -1 : openat(fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (r == 0 && next < 0)
			r = -errno;
		if (r == 0) {
			cordon_closep(&fd);
			fd = next;
		}
		p += n + strspn(p + n, "/");
	}
	return r < 0 ? cordon_fail_errno(err, r, "cannot make %s/%s", base, path) : 0;
}

/* The directory in which the state lies, and whether the caller's variable named it. */
static int find_state(const struct collect *c, const struct cordon_state_setting *state,
		      char ret[static CORDON_PATH_MAX], bool *ret_moved, struct cordon_error *err)
{
	const char *named = state->variable ? getenv(state->variable) : NULL;
	const char *base = c->ask->state_dir ? c->ask->state_dir : c->ask->run_home ? c->ask->run_home : c->ask->home;
	struct stat st;

	*ret_moved = false;
	if (named && *named == '/' && !c->ask->state_dir && !c->ask->run_home) {
		char usual[CORDON_PATH_MAX], clean[CORDON_PATH_MAX];

		if (cordon_path_clean(named, clean, sizeof(clean)) < 0)
			return cordon_fail(err, -EINVAL, CORDON_KIND_USAGE, "%s: %s=%s can't be used", c->where,
					   state->variable, named);
		*ret_moved = true;
		if (cordon_path_join(base, state->path, usual, sizeof(usual)) < 0 || !cordon_streq(usual, clean)) {
			if (c->ask->make && mkdir(clean, 0700) < 0 && errno != EEXIST)
				return cordon_fail_errno(err, -errno, "cannot make %s", clean);
			memcpy(ret, clean, strlen(clean) + 1);
			return 0;
		}
	}
	if (!*base)
		return cordon_fail(err, -ENOENT, CORDON_KIND_NOT_FOUND, "%s: there is no home directory (HOME)",
				   c->where);
	if (cordon_path_join(base, state->path, ret, CORDON_PATH_MAX) < 0)
		return cordon_fail_errno(err, -ENAMETOOLONG, "%s", state->path);
	return c->ask->make && lstat(ret, &st) < 0 ? make_below(base, state->path, err) : 0;
}

static int set_variable(const struct collect *c, const struct cordon_state_setting *state, struct cordon_error *err)
{
	if (!state->variable)
		return 0;
	return cordon_profile_add_text(c->use, &c->use->home_env, &c->use->n_home_env,
				       cordon_arena_printf(c->use->arena, "%s=%s", state->variable, state->path), err);
}

static int add_state(const struct collect *c, const struct cordon_state_setting *state, struct cordon_error *err)
{
	char source[CORDON_PATH_MAX];
	struct cordon_share share = { .source = source, .own = c->ask->state_dir != NULL };
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
	struct cordon_share share = { .source = source, .kind = CORDON_SHARE_LAYER };
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
		/* The layer needs a directory to lie on. */
		if (c->ask->make && lstat(source, &st) < 0)
			r = make_below(state->source, rest, err);
	} else if (c->ask->run_home) {
		if (cordon_path_join(c->ask->run_home, setting->text, source, sizeof(source)) < 0)
			return cordon_fail_errno(err, -ENAMETOOLONG, "%s", setting->text);
		if (c->ask->make && lstat(source, &st) < 0)
			r = make_below(c->ask->run_home, setting->text, err);
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
