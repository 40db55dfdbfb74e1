/* SPDX-License-Identifier: Apache-2.0 */
/* Paths as sequences of components. */
#include "base/path.h"
#include "base/resolve.h"

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

/* Takes the first component off a path, with the slashes behind it. */
static void take_component(char *path, char ret_name[static CORDON_PATH_MAX])
{
	size_t n = strcspn(path, "/");
	const char *behind = path + n + strspn(path + n, "/");

	memcpy(ret_name, path, n);
	ret_name[n] = '\0';
	memmove(path, behind, strlen(behind) + 1);
}

int cordon_path_walk(const char *path, cordon_path_link link, void *data, char ret[static CORDON_PATH_MAX])
{
	char rest[CORDON_PATH_MAX], name[CORDON_PATH_MAX], next[CORDON_PATH_MAX], text[CORDON_PATH_MAX];
	unsigned int links = 0;
	ssize_t n;

	memcpy(ret, "/", 2);
	if (cordon_copy(rest, sizeof(rest), path, strlen(path)) < 0)
		return -ENAMETOOLONG;
	while (*rest) {
		take_component(rest, name);
		if (!*name || cordon_streq(name, "."))
			continue;
		if (cordon_streq(name, "..")) {
			char *slash = strrchr(ret, '/');

			slash[slash == ret] = '\0';
			continue;
		}
		if (cordon_path_join(ret, name, next, sizeof(next)) < 0)
			return -ENAMETOOLONG;
		n = link(data, next, rest, text);
		if (n < 0)
			return (int)n;
		if (n == 0) {
			memcpy(ret, next, CORDON_PATH_MAX);
			continue;
		}
		if (++links > CORDON_LINKS_MAX)
			return -ELOOP;
		if (text[0] == '/')
			ret[1] = '\0';
		if (cordon_path_join(text, rest, next, sizeof(next)) < 0)
			return -ENAMETOOLONG;
		memcpy(rest, next, sizeof(rest));
	}
	return 0;
}

const char *cordon_path_base(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

int cordon_path_absolute(const char *path, char ret[static CORDON_PATH_MAX], struct cordon_error *err)
{
	char cwd[CORDON_PATH_MAX] = "";

	if (path[0] != '/' && !getcwd(cwd, sizeof(cwd)))
		return cordon_fail_errno(err, -errno, "cannot tell the current directory");
	return cordon_path_join(cwd, path, ret, CORDON_PATH_MAX) < 0 ? cordon_fail_errno(err, -ENAMETOOLONG, "%s", path)
								     : 0;
}
