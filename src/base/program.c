/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the other executables of cordon. */
#include "base/program.h"
#include "base/util.h"

/* Whether `name` can be executed in the directory that is the first `n` characters of `path`. Writes its path to
 * `path`. */
static bool is_in(char path[static CORDON_PATH_MAX], size_t n, const char *name)
{
	size_t len = strlen(name);

	if (n + 1 + len + 1 > CORDON_PATH_MAX)
		return false;
	path[n] = '/';
	memcpy(path + n + 1, name, len + 1);
	return access(path, X_OK) == 0;
}

void cordon_data_find(const char *name, char ret_path[static CORDON_PATH_MAX])
{
	char path[CORDON_PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);
	const char *slash = NULL;

	ret_path[0] = '\0';
	if (n > 0) {
		path[n] = '\0';
		slash = strrchr(path, '/');
	}
	if ((slash && is_in(path, (size_t)(slash - path), name)) ||
	    (cordon_copy(path, sizeof(path), CORDON_DATA, sizeof(CORDON_DATA) - 1) == 0 &&
	     is_in(path, sizeof(CORDON_DATA) - 1, name)))
		cordon_copy(ret_path, CORDON_PATH_MAX, path, strlen(path));
}

int cordon_program_find(const char *name, char ret_path[static CORDON_PATH_MAX], struct cordon_error *err)
{
	char path[CORDON_PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);
	const char *slash = NULL;

	if (n > 0) {
		path[n] = '\0';
		slash = strrchr(path, '/');
	}
	if (slash && is_in(path, (size_t)(slash - path), name))
		return cordon_copy(ret_path, CORDON_PATH_MAX, path, strlen(path));
	if (cordon_copy(path, sizeof(path), CORDON_LIBEXEC, sizeof(CORDON_LIBEXEC) - 1) == 0 &&
	    is_in(path, sizeof(CORDON_LIBEXEC) - 1, name))
		return cordon_copy(ret_path, CORDON_PATH_MAX, path, strlen(path));
	return cordon_fail(err, -ENOENT, CORDON_KIND_NOT_FOUND, "%s is neither beside cordon nor in %s", name,
			   CORDON_LIBEXEC);
}
