/* SPDX-License-Identifier: Apache-2.0 */
/* The watch reports the paths that a learning run uses. */
#include <fcntl.h>
#include <sys/stat.h>

#include "base/path.h"
#include "sandbox/watch/sight.h"

/* Resolves a host path as the call would: unlink, rename and calls that make names do not follow a link in the last
 * component. */
static void resolve_sight(const struct cordon_root *root, const char *host, bool follow, struct cordon_resolved *ret)
{
	char dir[CORDON_PATH_MAX];
	const char *name = strrchr(host, '/') + 1;
	struct stat st;
	int fd;

	if (follow || !*name || cordon_streq(name, ".") || cordon_streq(name, "..") ||
	    cordon_copy(dir, sizeof(dir), host, (size_t)(name - host)) < 0) {
		cordon_resolve(root, host, ret);
		return;
	}
	cordon_resolve(root, dir, ret);
	if (ret->place == CORDON_PLACE_UNRESOLVABLE || cordon_path_join(ret->path, name, dir, sizeof(dir)) < 0) {
		ret->place = CORDON_PLACE_UNRESOLVABLE;
		return;
	}
	memcpy(ret->path, dir, strlen(dir) + 1);
	fd = ret->place == CORDON_PLACE_INSIDE ? root->fd : AT_FDCWD;
	ret->exists = fstatat(fd, ret->path, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

/* Runs while the process is stopped, so that the tree is as the call will find it. */
void cordon_sight_report(const struct cordon_watched *watched, const struct cordon_touch *touch)
{
	const struct cordon_root *root = &watched->policy->root;
	char host[CORDON_PATH_MAX], clean[CORDON_PATH_MAX], full[CORDON_PATH_MAX];
	bool exclusive = cordon_streq(touch->op, "delete") || cordon_streq(touch->op, "rename") ||
			 cordon_streq(touch->op, "create");
	struct cordon_sight sight = { .op = touch->op, .writes = touch->writes, .creates = touch->creates };
	struct cordon_resolved found;
	struct stat st;

	if (!touch->known || cordon_where_is_system(touch->path) ||
	    !cordon_where_to_host(watched->plan, touch->path, host) ||
	    (!cordon_path_within(host, watched->plan->root) && cordon_plan_is_private(watched->plan, touch->path)))
		return;
	resolve_sight(root, host, !exclusive, &found);
	if (found.place == CORDON_PLACE_UNRESOLVABLE)
		return;
	sight.place = found.place;
	sight.path = found.path;
	if (found.exists && fstatat(found.place == CORDON_PLACE_INSIDE ? root->fd : AT_FDCWD,
				    *found.path ? found.path : ".", &st, AT_SYMLINK_NOFOLLOW) == 0)
		sight.type = st.st_mode & S_IFMT;
	if (cordon_path_clean(host, clean, sizeof(clean)) == 0 && found.place == CORDON_PLACE_INSIDE &&
	    cordon_path_join(root->path, found.path, full, sizeof(full)) == 0)
		sight.linked = !cordon_streq(clean, full);
	watched->observer->sight(watched->observer->data, &sight);
}
