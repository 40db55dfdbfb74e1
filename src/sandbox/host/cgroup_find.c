/* SPDX-License-Identifier: Apache-2.0 */
/* The supervisor finds the directories of its own control groups, from /proc/self/cgroup and /proc/self/mountinfo. */
#include <fcntl.h>

#include "base/io.h"
#include "base/path.h"
#include "sandbox/host/cgroup.h"

/* Fields of a line of mountinfo (proc_pid_mountinfo(5)): ID PARENT MAJ:MIN ROOT POINT OPTIONS TAG... - TYPE SOURCE SUPER */
enum { FIELD_ROOT = 3, FIELD_POINT = 4, FIELDS_MAX = 32 };

struct mount {
	char root[CORDON_PATH_MAX];
	char point[CORDON_PATH_MAX];
	const char *type, *super; /* in the line */
	size_t type_len, super_len;
};

/* Decodes escapes such as \040. False when the result does not fit. */
static bool unescape(const char *text, size_t n, char *ret, size_t size)
{
	size_t len = 0;

	for (size_t i = 0; i < n; i++) {
		char c = text[i];

		if (c == '\\' && i + 3 < n && text[i + 1] >= '0' && text[i + 1] <= '3' && text[i + 2] >= '0' &&
		    text[i + 2] <= '7' && text[i + 3] >= '0' && text[i + 3] <= '7') {
			c = (char)((text[i + 1] - '0') << 6 | (text[i + 2] - '0') << 3 | (text[i + 3] - '0'));
			i += 3;
		}
		if (len + 1 >= size)
			return false;
		ret[len++] = c;
	}
	ret[len] = '\0';
	return true;
}

static bool parse_mount(const char *line, size_t n, struct mount *ret)
{
	const char *field[FIELDS_MAX];
	size_t len[FIELDS_MAX], fields = 0, dash = 0;

	for (size_t i = 0; i < n && fields < FIELDS_MAX; fields++) {
		field[fields] = line + i;
		len[fields] = 0;
		while (i < n && line[i] != ' ')
			i++, len[fields]++;
		if (i < n)
			i++;
		if (dash == 0 && fields > FIELD_POINT + 1 && len[fields] == 1 && *field[fields] == '-')
			dash = fields;
	}
	if (dash == 0 || dash + 3 >= fields)
		return false;
	ret->type = field[dash + 1];
	ret->type_len = len[dash + 1];
	ret->super = field[dash + 3];
	ret->super_len = len[dash + 3];
	/* Refuse most mounts before the expensive part: they are no cgroups. */
	if (ret->type_len < 6 || memcmp(ret->type, "cgroup", 6) != 0)
		return false;
	return unescape(field[FIELD_ROOT], len[FIELD_ROOT], ret->root, sizeof(ret->root)) &&
	       unescape(field[FIELD_POINT], len[FIELD_POINT], ret->point, sizeof(ret->point));
}

static bool list_has(const char *list, size_t n, const char *word)
{
	size_t len = strlen(word);

	while (n > 0) {
		const char *comma = memchr(list, ',', n);
		size_t part = comma ? (size_t)(comma - list) : n;

		if (part == len && memcmp(list, word, len) == 0)
			return true;
		if (!comma)
			return false;
		n -= part + 1;
		list = comma + 1;
	}
	return false;
}

/* Our group in the hierarchy of `controller` ("" is v2), as a path from the root of the cgroup namespace. `cgroup` is
 * the text of /proc/self/cgroup. */
static bool own_path(const char *cgroup, const char *controller, char *ret, size_t size)
{
	while (*cgroup) {
		size_t n = strcspn(cgroup, "\n");
		const char *list = memchr(cgroup, ':', n);
		const char *path = list ? memchr(list + 1, ':', n - (size_t)(list + 1 - cgroup)) : NULL;

		if (path) {
			size_t list_len = (size_t)(path - list - 1);
			bool match = *controller ? list_has(list + 1, list_len, controller) : list_len == 0;

			if (match)
				return cordon_copy(ret, size, path + 1, n - (size_t)(path + 1 - cgroup)) == 0 &&
				       *ret == '/';
		}
		cgroup += n;
		cgroup += strspn(cgroup, "\n");
	}
	return false;
}

/* Fills `tree` when this mount shows our group: a mount shows the part of the hierarchy below its root. A path that
 * begins with "/.." is a group outside the cgroup namespace. */
static void fill_tree(const char *own, const struct mount *mount, struct cordon_cgroup_tree *tree)
{
	char path[CORDON_PATH_MAX], root[CORDON_PATH_MAX];
	const char *below = path;

	if (*tree->dir || cordon_path_clean(own, path, sizeof(path)) < 0 ||
	    cordon_path_clean(mount->root, root, sizeof(root)) < 0 || !cordon_path_within(path, root))
		return;
	if (!cordon_streq(root, "/"))
		below += strlen(root);
	below += *below == '/';
	if (cordon_path_join(mount->point, below, tree->dir, sizeof(tree->dir)) < 0 ||
	    cordon_copy(tree->top, sizeof(tree->top), mount->point, strlen(mount->point)) < 0)
		*tree->dir = '\0';
}

void cordon_cgroup_parse(const char *cgroup, const char *mountinfo, struct cordon_cgroup_trees *ret_trees)
{
	char own_v2[CORDON_PATH_MAX], own_v1[CORDON_CONTROLLER__MAX][CORDON_PATH_MAX];
	bool have_v2 = own_path(cgroup, "", own_v2, sizeof(own_v2)), have_v1[CORDON_CONTROLLER__MAX];
	struct mount mount;

	memset(ret_trees, 0, sizeof(*ret_trees));
	for (size_t c = 0; c < CORDON_CONTROLLER__MAX; c++)
		have_v1[c] = own_path(cgroup, cordon_controller_names[c], own_v1[c], sizeof(own_v1[c]));

	while (*mountinfo) {
		size_t n = strcspn(mountinfo, "\n");

		if (parse_mount(mountinfo, n, &mount)) {
			if (mount.type_len == 7 && mount.type[6] == '2' && have_v2)
				fill_tree(own_v2, &mount, &ret_trees->v2);
			for (size_t c = 0; mount.type_len == 6 && c < CORDON_CONTROLLER__MAX; c++)
				if (have_v1[c] && list_has(mount.super, mount.super_len, cordon_controller_names[c]))
					fill_tree(own_v1[c], &mount, &ret_trees->v1[c]);
		}
		mountinfo += n;
		mountinfo += strspn(mountinfo, "\n");
	}
}

int cordon_cgroup_find(struct cordon_cgroup_trees *ret_trees)
{
	autobuf struct cordon_buf cgroup = CORDON_BUF(CORDON_CGROUP_TEXT_MAX);
	autobuf struct cordon_buf mountinfo = CORDON_BUF(CORDON_CGROUP_MOUNTINFO_MAX);
	int r = cordon_read_file(AT_FDCWD, "/proc/self/cgroup", 0, &cgroup, NULL);

	if (r == -ENOENT) {
		memset(ret_trees, 0, sizeof(*ret_trees)); /* a kernel without cgroups */
		return 0;
	}
	if (r == 0)
		r = cordon_read_file(AT_FDCWD, "/proc/self/mountinfo", 0, &mountinfo, NULL);
	if (r < 0)
		return r;
	cordon_cgroup_parse(cgroup.data ? cgroup.data : "", mountinfo.data ? mountinfo.data : "", ret_trees);
	return 0;
}
