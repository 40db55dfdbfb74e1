/* SPDX-License-Identifier: Apache-2.0 */
/* Finds secrets in the tree that the run did not use and that a grant would open anyway. */
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/path.h"
#include "base/time.h"
#include "learn/learned.h"

struct search {
	struct cordon_learned *learned;
	struct cordon_pattern **grants;
	char **dirs; /* directories that are still to be read, relative to the root */
	size_t n, cap, looked;
	int64_t deadline;
};

static int push(struct search *search, const char *path)
{
	if (search->n == search->cap) {
		size_t cap = search->cap ? search->cap * 2 : 64;
		char **bigger = reallocarray(search->dirs, cap, sizeof(*bigger));

		if (!bigger)
			return -ENOMEM;
		search->dirs = bigger;
		search->cap = cap;
	}
	search->dirs[search->n] = strdup(path);
	return search->dirs[search->n] ? (int)(search->n++, 0) : -ENOMEM;
}

static bool granted(const struct search *search, const char *path, bool leads)
{
	for (size_t i = 0; i < search->learned->grants.n; i++)
		if (cordon_pattern_match(search->grants[i], path, NULL) ||
		    (leads && cordon_pattern_leads(search->grants[i], path)))
			return true;
	return false;
}

static int look_at(struct search *search, const char *path, int dir_fd, const struct dirent *entry)
{
	struct stat st;
	bool directory = entry->d_type == DT_DIR;

	if (cordon_secret(path)) {
		int r = granted(search, path, false)
				? cordon_learn_add(search->learned->inside, path, CORDON_LEARN_EXISTED)
				: 0;

		return r == -E2BIG ? 0 : r;
	}
	if (entry->d_type == DT_UNKNOWN)
		directory = fstatat(dir_fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode);
	/* Nothing in .git is a key of the user. */
	return directory && !cordon_streq(entry->d_name, ".git") && granted(search, path, true) ? push(search, path) : 0;
}

static int read_dir(struct search *search, const char *dir)
{
	int fd = cordon_open_beneath(search->learned->policy->root.fd, dir,
				     O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *stream = fd < 0 ? NULL : fdopendir(fd);
	int r = 0;

	if (!stream) {
		if (fd >= 0)
			close(fd);
		return 0;
	}
	for (struct dirent *entry; r == 0 && (entry = readdir(stream));) {
		char path[CORDON_PATH_MAX];

		if (cordon_streq(entry->d_name, ".") || cordon_streq(entry->d_name, ".."))
			continue;
		if (++search->looked > CORDON_LEARNED_SEARCH_MAX ||
		    (search->looked % 256 == 0 && cordon_time_monotonic() > search->deadline)) {
			search->learned->unsearched = true;
			break;
		}
		if (cordon_path_join(dir, entry->d_name, path, sizeof(path)) == 0)
			r = look_at(search, path, dirfd(stream), entry);
	}
	closedir(stream);
	return r;
}

int cordon_learned_find_secrets(struct cordon_learned *learned, struct cordon_error *err)
{
	size_t n = learned->grants.n;
	struct search search = { .learned = learned, .deadline = cordon_time_monotonic() + CORDON_LEARNED_SEARCH_MS };
	int r;

	search.grants = calloc(n + 1, sizeof(struct cordon_pattern *));
	r = search.grants ? 0 : cordon_fail_errno(err, -ENOMEM, "learned paths");
	for (size_t i = 0; r == 0 && i < n; i++)
		r = cordon_pattern_compile(learned->grants.items[i].pattern, &search.grants[i], err);
	learned->unsearched = false;
	if (r == 0 && n && (r = push(&search, "")) < 0)
		cordon_fail_errno(err, r, "learned paths");
	while (r == 0 && search.n && !learned->unsearched) {
		autofree char *dir = search.dirs[--search.n];

		r = read_dir(&search, dir);
		if (r < 0)
			cordon_fail_errno(err, r, "learned paths");
	}
	while (search.n)
		free(search.dirs[--search.n]);
	free(search.dirs);
	for (size_t i = 0; search.grants && i < n; i++)
		cordon_pattern_free(search.grants[i]);
	free(search.grants);
	return r;
}
