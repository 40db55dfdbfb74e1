/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the home directories of this machine. */
#include <fcntl.h>

#include "base/buf.h"
#include "base/io.h"
#include "base/path.h"
#include "protect/homes.h"

#define PASSWD_MAX ((size_t)4 << 20)
#define FIRST_PERSON 1000 /* the first uid that belongs to a person */

bool cordon_homes_canonical(const char *path, char ret[static CORDON_PATH_MAX])
{
	struct cordon_root slash = { .fd = -1, .path = "/" };
	struct cordon_resolved found;

	cordon_resolve(&slash, path, &found);
	return found.place == CORDON_PLACE_INSIDE && found.exists &&
	       cordon_path_join("/", found.path, ret, CORDON_PATH_MAX) == 0;
}

void cordon_homes_user(char ret[static CORDON_PATH_MAX])
{
	const char *home = getenv("HOME");

	if (!home || *home != '/' || !cordon_homes_canonical(home, ret) || cordon_streq(ret, "/"))
		ret[0] = '\0';
}

static int each(bool only_own, int (*fn)(void *data, const char *home, uid_t uid), void *data)
{
	uid_t own = geteuid();
	autobuf struct cordon_buf text = CORDON_BUF(PASSWD_MAX);
	int r = 0;

	/* A static program has no NSS, so we read the file ourselves. */
	if (cordon_read_file(AT_FDCWD, "/etc/passwd", 0, &text, NULL) < 0 || !text.data)
		return 0;
	for (char *line = text.data, *next; r == 0 && line && *line; line = next) {
		char *fields[6] = { line }, path[CORDON_PATH_MAX];
		size_t n = 1;
		unsigned long uid;

		next = strchr(line, '\n');
		if (next)
			*next++ = '\0';
		for (char *p = line; *p && n < CORDON_ARRAY_SIZE(fields); p++)
			if (*p == ':')
				fields[n++] = p + 1;
		if (n < CORDON_ARRAY_SIZE(fields))
			continue;
		uid = strtoul(fields[2], NULL, 10);
		fields[5][strcspn(fields[5], ":")] = '\0';
		if ((uid != own && (only_own || (uid > 0 && uid < FIRST_PERSON))) || fields[5][0] != '/' ||
		    !cordon_homes_canonical(fields[5], path) || cordon_streq(path, "/"))
			continue;
		r = fn(data, path, (uid_t)uid);
	}
	return r;
}

int cordon_homes_each(int (*fn)(void *data, const char *home, uid_t uid), void *data)
{
	return each(false, fn, data);
}

static int compare_own(void *data, const char *home, uid_t uid)
{
	const struct cordon_root *root = data;

	(void)uid;
	return cordon_path_within(home, root->path) ? 1 : 0;
}

bool cordon_homes_own_in(const struct cordon_root *root)
{
	const char *home = getenv("HOME");
	char path[CORDON_PATH_MAX];

	if (home && *home == '/') {
		if (!cordon_streq(root->path, home) && cordon_path_within(root->path, home) && !cordon_streq(home, "/"))
			return false;
		if (cordon_homes_canonical(home, path) && !cordon_streq(path, "/")) {
			if (cordon_path_within(path, root->path))
				return true;
			if (cordon_path_within(root->path, path))
				return false;
		}
	}
	return each(true, compare_own, (void *)(uintptr_t)root) == 1;
}
