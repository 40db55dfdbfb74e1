/* SPDX-License-Identifier: Apache-2.0 */
/* Paths as sequences of components. */
#include "base/path.h"

bool cordon_path_within(const char *path, const char *dir)
{
	size_t n = strlen(dir);

	if (n == 0)
		return path[0] != '/';
	if (cordon_streq(dir, "/"))
		return path[0] == '/';
	return strncmp(path, dir, n) == 0 && (path[n] == '\0' || path[n] == '/');
}

int cordon_path_clean(const char *path, char *ret, size_t size)
{
	CORDON_UNCLEARED char out[CORDON_PATH_MAX];
	size_t at = 0;

	if (*path == '/')
		out[at++] = '/';
	for (const char *p = path; *p;) {
		size_t n;

		while (*p == '/')
			p++;
		n = strcspn(p, "/");
		if (n == 2 && p[0] == '.' && p[1] == '.')
			return -EXDEV;
		if (n && !(n == 1 && p[0] == '.')) {
			bool slash = at > 0 && out[at - 1] != '/';

			if (at + slash + n >= sizeof(out))
				return -ENAMETOOLONG;
			if (slash)
				out[at++] = '/';
			memcpy(out + at, p, n);
			at += n;
		}
		p += n;
	}
	return cordon_copy(ret, size, out, at);
}

bool cordon_path_is_deleted(const char *path)
{
	static const char mark[] = " (deleted)";
	size_t n = strlen(path);

	return n >= sizeof(mark) - 1 && memcmp(path + n - (sizeof(mark) - 1), mark, sizeof(mark) - 1) == 0;
}

int cordon_path_join(const char *dir, const char *name, char *ret, size_t size)
{
	size_t n = strlen(dir), len = strlen(name);
	bool slash = n && len && dir[n - 1] != '/' && *name != '/';

	if (len >= size || n + slash >= size - len)
		return -ENAMETOOLONG;
	memmove(ret, dir, n); /* NOLINT: the NUL follows below, and `dir` may be `ret` itself */
	if (slash)
		ret[n++] = '/';
	memcpy(ret + n, name, len + 1);
	return 0;
}

const char *cordon_path_base(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}
