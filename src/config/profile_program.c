/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds a program on the caller's PATH and what it takes to run it: the links that lead to it, its package or its single
 * file, and the interpreter that its first line names. Nothing else of the directories on the way is shown.
 *
 * INVARIANT: nothing in the workspace decides what a run is shown. A program, link or package that lies there is
 * passed over, because an earlier run may have put it there.
 */
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/io.h"
#include "base/path.h"
#include "base/resolve.h"
#include "config/profile.h"
#include "protect/homes.h"

#define INTERPRETERS_MAX 4 /* a script may name an interpreter that is a script */
#define FIRST_LINE_MAX 512
#define MOVED_HOME "/opt/cordon" /* shows what lies in the user's home, where the run has a home of its own */

struct search {
	const struct cordon_profile_ask *ask;
	struct cordon_profile_use *use;
	const char *where;
	unsigned int depth;
};

bool cordon_is_system_path(const char *path)
{
	static const char *const system[] = { "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32" };

	for (size_t i = 0; i < CORDON_ARRAY_SIZE(system); i++)
		if (cordon_path_within(path, system[i]))
			return true;
	return false;
}

static const struct cordon_root slash = { .fd = -1, .path = "/" };

static int refuse_link_within(void *data, const char *link, const char *rest)
{
	char path[CORDON_PATH_MAX];

	(void)rest;
	return cordon_path_join("/", link, path, sizeof(path)) < 0 || cordon_path_within(path, data);
}

/* Whether the path, all links on its way and the file that it leads to lie outside the workspace. */
static bool lies_outside(const char *path, const char *root)
{
	CORDON_UNCLEARED struct cordon_resolved found;
	CORDON_UNCLEARED char file[CORDON_PATH_MAX];

	if (!root)
		return true;
	return cordon_resolve_links(&slash, path, refuse_link_within, (void *)(uintptr_t)root, &found) == 0 &&
	       found.place == CORDON_PLACE_INSIDE && cordon_path_join("/", found.path, file, sizeof(file)) == 0 &&
	       !cordon_path_within(file, root);
}

static bool is_program(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0;
}

bool cordon_program_on_path(const char *name, const char *path, const char *root, char ret[static CORDON_PATH_MAX])
{
	for (const char *p = path ? path : ""; *p;) {
		size_t n = strcspn(p, ":");
		char dir[CORDON_PATH_MAX], file[CORDON_PATH_MAX];

		/* A relative directory would mean one in the workspace. */
		if (*p == '/' && cordon_copy(dir, sizeof(dir), p, n) == 0 &&
		    cordon_path_join(dir, name, file, sizeof(file)) == 0 && is_program(file) &&
		    lies_outside(file, root)) {
			memcpy(ret, file, strlen(file) + 1);
			return true;
		}
		p += n + (p[n] == ':');
	}
	return false;
}

int cordon_profile_add_share(struct cordon_profile_use *use, const struct cordon_share *share, struct cordon_error *err)
{
	struct cordon_share copy = *share;
	struct cordon_share *shares;

	for (size_t i = 0; i < use->n_shares; i++) {
		const struct cordon_share *there = &use->shares[i];
		const char *a = share->target ? share->target : share->source;
		const char *b = there->target ? there->target : there->source;

		/* Said twice, or part of what is shown anyway. */
		if (there->kind == share->kind && cordon_streq(a, b))
			return 0;
		if (share->read_only && there->read_only && there->kind == share->kind && !share->target &&
		    !there->target && cordon_path_within(share->source, there->source))
			return 0;
	}
	shares = cordon_arena_grow(use->arena, use->shares, use->n_shares, use->n_shares + 1, sizeof(*shares));
	copy.source = cordon_arena_strdup(use->arena, share->source);
	copy.target = share->target ? cordon_arena_strdup(use->arena, share->target) : NULL;
	copy.where = share->where ? cordon_arena_strdup(use->arena, share->where) : NULL;
	if (!shares || !copy.source || (share->target && !copy.target) || (share->where && !copy.where))
		return cordon_fail_errno(err, -ENOMEM, "profile");
	use->shares = shares;
	use->shares[use->n_shares++] = copy;
	return 0;
}

static bool is_in_path(const char *path, const char *dir)
{
	size_t n = strlen(dir);

	for (const char *p = path; *p; p += strcspn(p, ":"), p += *p == ':')
		if (strncmp(p, dir, n) == 0 && (p[n] == ':' || !p[n]))
			return true;
	return false;
}

/* Adds a directory to the front of PATH, behind those that were added before. */
static int add_to_path(struct cordon_profile_use *use, const char *dir, struct cordon_error *err)
{
	if (is_in_path(CORDON_SANDBOX_PATH, dir) || (use->path && is_in_path(use->path, dir)))
		return 0;
	use->path = use->path ? cordon_arena_printf(use->arena, "%s:%s", use->path, dir)
			      : cordon_arena_strdup(use->arena, dir);
	return use->path ? 0 : cordon_fail_errno(err, -ENOMEM, "profile");
}

/* The package of a file in an npm directory: what follows the first node_modules, with the scope if it has one. */
static bool npm_package(const char *file, char ret[static CORDON_PATH_MAX])
{
	static const char modules[] = "/node_modules/";
	const char *p = strstr(file, modules), *end;

	if (!p)
		return false;
	p += sizeof(modules) - 1;
	end = p + strcspn(p, "/");
	if (*p == '@' && *end)
		end += 1 + strcspn(end + 1, "/");
	return *end && cordon_copy(ret, CORDON_PATH_MAX, file, (size_t)(end - file)) == 0;
}

/* The virtual environment of a file DIR/bin/NAME: DIR, if it says that it is one. */
static bool python_environment(const char *file, char ret[static CORDON_PATH_MAX])
{
	char dir[CORDON_PATH_MAX], mark[CORDON_PATH_MAX];
	const char *name = cordon_path_base(file);
	struct stat st;
	size_t n = name > file ? (size_t)(name - file) - 1 : 0;

	if (n < 5 || memcmp(file + n - 4, "/bin", 4) != 0 || cordon_copy(dir, sizeof(dir), file, n - 4) < 0 ||
	    cordon_path_join(dir, "pyvenv.cfg", mark, sizeof(mark)) < 0 || lstat(mark, &st) < 0 || !S_ISREG(st.st_mode))
		return false;
	memcpy(ret, dir, strlen(dir) + 1);
	return true;
}

/*
 * Where a path is shown: under its own name. But when a directory of the host becomes the run's home, nothing can be
 * mounted below it that is not there; so what lies in the user's home is shown in a directory of its own.
 */
static const char *place_of(const struct search *s, const char *path, char ret[static CORDON_PATH_MAX])
{
	const char *home = s->ask->home;

	if (!s->ask->run_home || !home || !*home || !cordon_path_within(path, home) ||
	    cordon_path_join(MOVED_HOME, path + strlen(home), ret, CORDON_PATH_MAX) < 0)
		return path;
	return ret;
}

static int meet_link(void *data, const char *link, const char *rest)
{
	const struct search *s = data;
	char path[CORDON_PATH_MAX], place[CORDON_PATH_MAX];
	struct cordon_share share = { .source = path, .read_only = true, .kind = CORDON_SHARE_LINK, .where = s->where };

	(void)rest;
	if (cordon_path_join("/", link, path, sizeof(path)) < 0)
		return -ENAMETOOLONG;
	if (place_of(s, path, place) == place)
		share.target = place;
	return cordon_is_system_path(path) ? 0 : cordon_profile_add_share(s->use, &share, NULL);
}

/* A name in a directory that is kept as state must be one that the run can't change. */
static int check_state(const struct search *s, const char *path, bool *ret_covered, struct cordon_error *err)
{
	for (size_t i = 0; i < s->use->n_shares; i++) {
		const struct cordon_share *share = &s->use->shares[i];
		const char *rest = path + strlen(share->source);

		if (share->kind != CORDON_SHARE_PLAIN || share->read_only || !cordon_path_within(path, share->source))
			continue;
		rest += strspn(rest, "/");
		for (size_t k = 0; k < share->n_protect; k++)
			*ret_covered |= cordon_path_within(rest, share->protect[k]);
		if (!*ret_covered)
			return cordon_fail(err, -EACCES, CORDON_KIND_POLICY_DENIED,
					   "%s: %s lies in %s, which the run may write", s->where, path, share->source);
	}
	return 0;
}

static int show_program(struct search *s, const char *path, struct cordon_error *err);

/* Takes the next word of a line; NULL at its end. */
static char *next_word(char **line)
{
	char *word = *line + strspn(*line, " \t\r");
	size_t n = strcspn(word, " \t\r");

	if (!n)
		return NULL;
	*line = word + n + (word[n] != '\0');
	word[n] = '\0';
	return word;
}

/* Shows the interpreter that the first line of a script names. */
/* NOLINTNEXTLINE(misc-no-recursion): INTERPRETERS_MAX bounds it. */
static int show_interpreter(struct search *s, const char *file, struct cordon_error *err)
{
	char line[FIRST_LINE_MAX] = "", found[CORDON_PATH_MAX], *word, *rest = line + 2;
	autofd int fd = open(file, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, line, sizeof(line) - 1);

	if (n < 3 || line[0] != '#' || line[1] != '!' || s->depth >= INTERPRETERS_MAX)
		return 0;
	line[strcspn(line, "\n")] = '\0';
	word = next_word(&rest);
	if (!word || *word != '/')
		return 0;
	s->depth++;
	if (!cordon_streq(cordon_path_base(word), "env"))
		return is_program(word) && lies_outside(word, s->ask->root) ? show_program(s, word, err) : 0;
	do
		word = next_word(&rest);
	while (word && (*word == '-' || strchr(word, '=')));
	if (!word || strchr(word, '/') || !cordon_program_on_path(word, s->ask->path, s->ask->root, found))
		return 0;
	return show_program(s, found, err);
}

/* `path` is the program as it was found: maybe a link. */
/* NOLINTNEXTLINE(misc-no-recursion): INTERPRETERS_MAX bounds it. */
static int show_program(struct search *s, const char *path, struct cordon_error *err)
{
	char file[CORDON_PATH_MAX], dir[CORDON_PATH_MAX], package[CORDON_PATH_MAX], place[CORDON_PATH_MAX];
	struct cordon_share share = { .source = file, .read_only = true, .where = s->where };
	CORDON_UNCLEARED struct cordon_resolved found;
	const char *name = cordon_path_base(path);
	bool covered = false;
	int r;

	if (!cordon_homes_canonical(path, file) || cordon_copy(dir, sizeof(dir), path, (size_t)(name - path)) < 0 ||
	    !cordon_homes_canonical(dir, dir))
		return cordon_fail(err, -ENOENT, CORDON_KIND_NOT_FOUND, "%s: %s can't be resolved", s->where, path);
	r = add_to_path(s->use, place_of(s, dir, place), err);
	if (r < 0)
		return r;
	r = cordon_resolve_links(&slash, path, meet_link, s, &found);
	if (r < 0)
		return cordon_fail_errno(err, r, "%s: %s", s->where, path);
	if (!cordon_is_system_path(file)) {
		if (npm_package(file, package) || python_environment(file, package))
			share.source = package;
		if (place_of(s, share.source, place) == place)
			share.target = place;
		r = check_state(s, share.source, &covered, err);
		if (r == 0 && !covered)
			r = cordon_profile_add_share(s->use, &share, err);
	}
	return r < 0 ? r : show_interpreter(s, file, err);
}

int cordon_profile_program(const char *name, const char *where, const struct cordon_profile_ask *ask,
			   struct cordon_profile_use *use, struct cordon_error *err)
{
	struct search s = { .ask = ask, .use = use, .where = where };
	char path[CORDON_PATH_MAX];
	int r;

	if (!use->arena && !(use->arena = cordon_arena_new()))
		return cordon_fail_errno(err, -ENOMEM, "program");
	if (name[0] == '/' ? !is_program(name) || !lies_outside(name, ask->root) ||
				     cordon_copy(path, sizeof(path), name, strlen(name)) < 0
			   : !cordon_program_on_path(name, ask->path, ask->root, path))
		return 0;
	r = show_program(&s, path, err);
	return r < 0 ? r : 1;
}
