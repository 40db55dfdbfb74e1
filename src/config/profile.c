/* SPDX-License-Identifier: Apache-2.0 */
/* Finds, lists and reads profiles. */
#include <dirent.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/path.h"
#include "base/program.h"
#include "config/profile.h"
#include "config/suggest.h"
#include "protect/homes.h"

#define SUFFIX ".yaml"

int cordon_profile_name_check(const char *name, struct cordon_error *err)
{
	size_t n = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_.-");

	if (n && !name[n] && n <= CORDON_PROFILE_NAME_MAX && !strchr("_.-", name[0]))
		return 0;
	cordon_fail(err, -EINVAL, CORDON_KIND_USAGE, "'%s' is not the name of a profile", name);
	cordon_error_hint(err, "lower-case letters, digits, '_', '.' and '-'; 'cordon profile list' lists them");
	return -EINVAL;
}

/* $CORDON_HOME, else $XDG_DATA_HOME/cordon, else ~/.local/share/cordon, as base/home.h says; nothing is made. */
static void find_own(char ret[static CORDON_PATH_MAX])
{
	const char *home = getenv("CORDON_HOME"), *data = getenv("XDG_DATA_HOME"), *user = getenv("HOME");
	char dir[CORDON_PATH_MAX] = "";

	if (home && *home == '/')
		cordon_copy(dir, sizeof(dir), home, strlen(home));
	else if (data && *data == '/')
		cordon_path_join(data, "cordon", dir, sizeof(dir));
	else if (user && *user == '/')
		cordon_path_join(user, ".local/share/cordon", dir, sizeof(dir));
	if (!*dir || cordon_path_join(dir, "profiles", ret, CORDON_PATH_MAX) < 0)
		ret[0] = '\0';
}

void cordon_profile_dirs_find(struct cordon_profile_dirs *ret_dirs)
{
	*ret_dirs = (struct cordon_profile_dirs){ 0 };
	cordon_data_find("profiles", ret_dirs->shipped);
	find_own(ret_dirs->own);
	cordon_homes_user(ret_dirs->home);
}

static bool is_file(const char *dir, const char *name, char ret_path[static CORDON_PATH_MAX])
{
	char file[CORDON_PROFILE_NAME_MAX + sizeof(SUFFIX)];
	struct stat st;

	if (!*dir || cordon_concat(file, sizeof(file), name, SUFFIX, (char *)NULL) < 0 ||
	    cordon_path_join(dir, file, ret_path, CORDON_PATH_MAX) < 0)
		return false;
	return lstat(ret_path, &st) == 0;
}

static void suggest(const struct cordon_profile_dirs *dirs, const char *name, struct cordon_error *err)
{
	struct cordon_profile_entry *entries = NULL;
	size_t n = 0, best = CORDON_SUGGEST_FAR;
	const char *meant = NULL;

	if (cordon_profile_list(dirs, &entries, &n, NULL) < 0)
		return;
	for (size_t i = 0; i < n; i++)
		if (cordon_suggest_closer(name, entries[i].name, &best))
			meant = entries[i].name;
	if (meant)
		cordon_error_hint(err, "did you mean '%s'?", meant);
	else if (n)
		cordon_error_hint(err, "'cordon profile list' lists them");
	else
		cordon_error_hint(err, "no profile was found in %s",
				  *dirs->shipped ? dirs->shipped : "this installation");
	free(entries);
}

int cordon_profile_find(const struct cordon_profile_dirs *dirs, const char *name, char ret_path[static CORDON_PATH_MAX],
			bool *ret_own, struct cordon_error *err)
{
	int r = cordon_profile_name_check(name, err);

	if (r < 0)
		return r;
	*ret_own = is_file(dirs->own, name, ret_path);
	if (*ret_own || is_file(dirs->shipped, name, ret_path))
		return 0;
	cordon_fail(err, -ENOENT, CORDON_KIND_NOT_FOUND, "there is no profile '%s'", name);
	suggest(dirs, name, err);
	return -ENOENT;
}

int cordon_profile_load(const struct cordon_profile_dirs *dirs, const char *name, struct cordon_policy_file **ret_file,
			struct cordon_errors *errors)
{
	struct cordon_policy_trust trust = { .home = *dirs->home ? dirs->home : NULL,
					     .why_not = "there is no home directory (HOME)",
					     .profile = true,
					     .credentials = true };
	CORDON_CLEANUP(cordon_policy_file_freep) struct cordon_policy_file *file = NULL;
	struct cordon_error err = { 0 };
	char path[CORDON_PATH_MAX];
	bool own;
	int r = cordon_profile_find(dirs, name, path, &own, &err);

	if (r < 0)
		return cordon_errors_add(errors, &err, NULL, 0, 0);
	r = cordon_policy_file_load(path, &trust, &file, errors);
	if (r == 0 && file->profiles.n) {
		cordon_fail(&err, -EINVAL, CORDON_KIND_CONFIG, "a profile can't name other profiles");
		cordon_error_hint(&err, "name both when you start the run: %s,%s", name, file->profiles.items[0].text);
		return cordon_errors_add(errors, &err, path, file->profiles.items[0].line,
					 file->profiles.items[0].column);
	}
	if (r == 0)
		*ret_file = cordon_steal_ptr(&file);
	return r;
}

static int add_entry(struct cordon_profile_entry **entries, size_t *n, const char *file, bool own)
{
	size_t len = strlen(file), suffix = strlen(SUFFIX);
	struct cordon_profile_entry entry = { .own = own }, *bigger;

	if (len <= suffix || !cordon_streq(file + len - suffix, SUFFIX) ||
	    cordon_copy(entry.name, sizeof(entry.name), file, len - suffix) < 0 ||
	    cordon_profile_name_check(entry.name, NULL) < 0)
		return 0;
	for (size_t i = 0; i < *n; i++)
		if (cordon_streq((*entries)[i].name, entry.name))
			return 0;
	bigger = reallocarray(*entries, *n + 1, sizeof(*bigger));
	if (!bigger)
		return -ENOMEM;
	*entries = bigger;
	bigger[(*n)++] = entry;
	return 0;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct cordon_profile_entry *)a)->name, ((const struct cordon_profile_entry *)b)->name);
}

int cordon_profile_list(const struct cordon_profile_dirs *dirs, struct cordon_profile_entry **ret_entries,
			size_t *ret_n, struct cordon_error *err)
{
	const char *const places[] = { dirs->own, dirs->shipped };
	autofree struct cordon_profile_entry *entries = NULL;
	size_t n = 0;

	for (size_t i = 0; i < CORDON_ARRAY_SIZE(places); i++) {
		DIR *dir = *places[i] ? opendir(places[i]) : NULL;
		int r = 0;

		for (struct dirent *d; dir && r == 0 && (d = readdir(dir));)
			r = add_entry(&entries, &n, d->d_name, i == 0);
		if (dir)
			closedir(dir);
		if (r < 0)
			return cordon_fail_errno(err, r, "profiles");
	}
	if (n)
		qsort(entries, n, sizeof(*entries), by_name);
	*ret_entries = cordon_steal_ptr(&entries);
	*ret_n = n;
	return 0;
}
